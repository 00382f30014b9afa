#include "kube/config.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "kube/config_read_internal.h"

#define IN_CLUSTER "/var/run/secrets/kubernetes.io/serviceaccount"

static int read_cluster(struct kcfg *l, const struct kcfg_entry *e)
{
	struct slu_kube_config *c = l->c;
	struct slu_error why = { 0 };
	const char *proxy;
	int rc;

	rc = kube_config_str(l, e, "server", &c->server);
	if (rc < 0)
		return rc;
	if (!c->server)
		return kube_config_wrong(l, e, "server", "is missing");
	c->server_from = kube_config_place(l, e, "server");
	if (!c->server_from)
		return -ENOMEM;
	if (strncmp(c->server, "https://", 8) && strncmp(c->server, "http://", 7))
		return kube_config_wrong(l, e, "server", "does not start with https:// or http://");
	if (slu_addr_parse(c->server, &c->addr, &why) < 0)
		return kube_config_wrong(l, e, "server", why.text);
	rc = kube_config_str(l, e, "proxy-url", &proxy);
	if (rc < 0)
		return rc;
	if (proxy)
		return kube_config_wrong(l, e, "proxy-url",
					 "asks for a proxy, which Sluice does not support");
	rc = kube_config_str(l, e, "tls-server-name", &c->tls_server_name);
	if (!rc)
		rc = kube_config_bool(l, e, "insecure-skip-tls-verify", &c->insecure);
	if (!rc)
		rc = kube_config_bool(l, e, "disable-compression", &c->no_compression);
	if (!rc)
		rc = kube_config_blob(l, e, "certificate-authority", &c->ca);
	if (!rc && c->insecure && c->ca.from)
		return kube_config_wrong(l, e, "insecure-skip-tls-verify",
					 "contradicts certificate-authority; remove one of them");
	return rc;
}

static int read_exec(struct kcfg *l, const struct kcfg_entry *user)
{
	struct kube_exec *x = &l->c->exec;
	struct kcfg_entry e = *user;
	const struct slu_json *env;
	const char *mode = NULL;
	int rc;

	e.obj = slu_json_get(user->obj, "exec");
	if (!e.obj || slu_json_is_null(e.obj))
		return 0;
	if (!slu_json_is_obj(e.obj))
		return kube_config_wrong(l, user, "exec", "is not an object");
	snprintf(e.place, sizeof e.place, "%.390s.exec", user->place);
	x->from = kube_config_keepf(l, "%s: %s", e.file->path, e.place);
	rc = !x->from ? -ENOMEM : kube_config_str(l, &e, "command", &x->command);
	if (rc < 0)
		return rc;
	if (!x->command)
		return kube_config_wrong(l, &e, "command", "is missing");
	if (strchr(x->command, '/'))
		x->command = kube_config_path(l, e.file, x->command);
	rc = kube_config_str(l, &e, "apiVersion", &x->api_version);
	if (rc < 0)
		return rc;
	if (!x->api_version || (strcmp(x->api_version, "client.authentication.k8s.io/v1") &&
				strcmp(x->api_version, "client.authentication.k8s.io/v1beta1")))
		return kube_config_wrong(
			l, &e, "apiVersion",
			"is neither client.authentication.k8s.io/v1 nor .../v1beta1");
	rc = kube_config_str(l, &e, "installHint", &x->install_hint);
	if (!rc)
		rc = kube_config_list(l, &e, "args", &x->args);
	if (!rc)
		rc = kube_config_bool(l, &e, "provideClusterInfo", &x->provide_cluster_info);
	if (!rc)
		rc = kube_config_str(l, &e, "interactiveMode", &mode);
	if (rc < 0)
		return rc;
	if (mode && !strcmp(mode, "Never"))
		x->never_interactive = true;
	else if (mode && !strcmp(mode, "Always"))
		x->always_interactive = true;
	else if (mode && strcmp(mode, "IfAvailable"))
		return kube_config_wrong(l, &e, "interactiveMode",
					 "is not Never, IfAvailable or Always");
	else if (!mode && !strcmp(x->api_version, "client.authentication.k8s.io/v1"))
		return kube_config_wrong(l, &e, "interactiveMode",
					 "is missing; v1 plug-ins must state it");
	env = slu_json_get(e.obj, "env");
	if (!env || slu_json_is_null(env))
		return 0;
	if (!slu_json_is_arr(env) || slu_json_count(env) > KCFG_LIST_MAX)
		return kube_config_wrong(l, &e, "env", "is not a list");
	x->env = slu_arena_zalloc(&l->c->mem, (slu_json_count(env) + 1) * sizeof *x->env);
	if (!x->env)
		return -ENOMEM;
	slu_json_each (env, it) {
		const char *name = slu_json_str(slu_json_get(it.val, "name"));
		const char *value = slu_json_str(slu_json_get(it.val, "value"));

		if (!name || !*name || strchr(name, '=') || !value)
			return kube_config_wrong(l, &e, "env",
						 "has an entry without name or value");
		x->env[x->n_env] = (struct kube_pair){ kube_config_keep(l, name),
						       kube_config_keep(l, value) };
		if (!x->env[x->n_env].name || !x->env[x->n_env].value)
			return -ENOMEM;
		x->n_env++;
	}
	return 0;
}

static int read_extra(struct kcfg *l, const struct kcfg_entry *e)
{
	const struct slu_json *extra = slu_json_get(e->obj, "as-user-extra");
	struct slu_kube_config *c = l->c;
	size_t n = 0;

	slu_json_each (extra, it)
		n += slu_json_count(it.val);
	if (!n)
		return 0;
	if (!slu_json_is_obj(extra) || n > 32)
		return kube_config_wrong(l, e, "as-user-extra",
					 "is not an object of up to 32 values");
	c->as_extra = slu_arena_zalloc(&c->mem, n * sizeof *c->as_extra);
	if (!c->as_extra)
		return -ENOMEM;
	slu_json_each (extra, it) {
		struct slu_buf name = SLU_BUF_INIT(4096);
		const char *kept;

		slu_buf_puts(&name, "impersonate-extra-");
		slu_http_escape(&name, it.key, strlen(it.key));
		kept = name.error ? NULL : kube_config_keep(l, slu_buf_str(&name));
		slu_buf_done(&name);
		if (!kept)
			return -ENOMEM;
		slu_json_each (it.val, v) {
			if (!slu_json_is_str(v.val))
				return kube_config_wrong(l, e, "as-user-extra",
							 "has a value that is no string");
			c->as_extra[c->n_as_extra] = (struct kube_pair){
				kept, kube_config_keep(l, slu_json_str(v.val))
			};
			if (!c->as_extra[c->n_as_extra++].value)
				return -ENOMEM;
		}
	}
	return 0;
}

static int read_user(struct kcfg *l, const struct kcfg_entry *e)
{
	struct slu_kube_config *c = l->c;
	const char *token = NULL, *file = NULL;
	int rc;

	if (slu_json_is_obj(slu_json_get(e->obj, "auth-provider")))
		return kube_config_wrong(l, e, "auth-provider",
					 "was removed from Kubernetes; use exec instead");
	rc = kube_config_blob(l, e, "client-certificate", &c->cert);
	if (!rc)
		rc = kube_config_blob(l, e, "client-key", &c->key);
	if (!rc)
		rc = kube_config_str(l, e, "token", &token);
	if (!rc)
		rc = kube_config_str(l, e, "tokenFile", &file);
	if (!rc)
		rc = kube_config_str(l, e, "username", &c->username);
	if (!rc)
		rc = kube_config_str(l, e, "password", &c->password);
	if (!rc)
		rc = kube_config_str(l, e, "as", &c->as_user);
	if (!rc)
		rc = kube_config_str(l, e, "as-uid", &c->as_uid);
	if (!rc)
		rc = kube_config_list(l, e, "as-groups", &c->as_groups);
	if (!rc)
		rc = read_extra(l, e);
	if (!rc)
		rc = read_exec(l, e);
	if (rc < 0)
		return rc;
	if (c->cert.from && !c->key.from)
		return kube_config_wrong(l, e, "client-key",
					 "is missing beside client-certificate");
	if (c->key.from && !c->cert.from)
		return kube_config_wrong(l, e, "client-certificate",
					 "is missing beside client-key");
	if (token) {
		if (strpbrk(token, "\r\n"))
			return kube_config_wrong(l, e, "token", "has a line break");
		c->token.data = token;
		c->token.n = strlen(token);
		c->token.from = kube_config_place(l, e, "token");
	}
	if (file) {
		c->token.file = kube_config_path(l, e->file, file);
		c->token.from = kube_config_place(l, e, "tokenFile");
		if (c->token.file && access(c->token.file, R_OK) < 0)
			return slu_fail(l->err, -EINVAL, "%s: cannot read %s: %s", c->token.from,
					c->token.file, strerror(errno));
	}
	if ((token || file) && !c->token.from)
		return -ENOMEM;
	if (c->username && c->token.from)
		return kube_config_wrong(l, e, "username",
					 "contradicts the token; remove one of them");
	return 0;
}

static int pick_context(struct kcfg *l, const struct slu_kube_config_options *o)
{
	struct slu_kube_config *c = l->c;
	const char *cluster = o->cluster, *user = o->user, *ns = o->namespace_, *ctx = o->context;
	struct kcfg_entry e = { 0 };
	int rc;

	for (uint32_t i = 0; i < l->n && !ctx; i++) {
		const struct slu_json *v = slu_json_get(slu_json_root(l->file[i].doc),
							"current-context");

		if (slu_json_str(v) && *slu_json_str(v))
			ctx = slu_json_str(v);
	}
	c->source = kube_config_keep(l, l->file[0].path);
	c->context = kube_config_keep(l, ctx ? ctx : "");
	if (!c->source || !c->context)
		return -ENOMEM;
	if (ctx) {
		rc = kube_config_find(l, "contexts", "context", ctx, &e);
		if (rc == -ENOENT)
			return slu_fail(l->err, -EINVAL,
					"%s: %s names context \"%s\", which does not exist",
					c->source, o->context ? "--context" : "current-context",
					ctx);
		if (rc < 0)
			return rc;
		c->source = kube_config_keep(l, e.file->path);
		if (!cluster)
			rc = kube_config_str(l, &e, "cluster", &cluster);
		if (!rc && !user)
			rc = kube_config_str(l, &e, "user", &user);
		if (!rc && !ns)
			rc = kube_config_str(l, &e, "namespace", &ns);
		if (rc < 0)
			return rc;
		if (!cluster)
			return kube_config_wrong(l, &e, "cluster", "is missing");
	} else if (!cluster) {
		return slu_fail(l->err, -EINVAL,
				"%s: current-context is not set; choose one with --context",
				c->source);
	}
	c->cluster = kube_config_keep(l, cluster);
	c->user = kube_config_keep(l, user ? user : "");
	c->namespace_ = kube_config_keep(l, ns ? ns : "default");
	if (!c->cluster || !c->user || !c->namespace_ || !c->source)
		return -ENOMEM;
	rc = kube_config_find(l, "clusters", "cluster", cluster, &e);
	if (rc == -ENOENT)
		return slu_fail(
			l->err, -EINVAL,
			"%s: contexts[\"%s\"].context.cluster names \"%s\", which is not in clusters",
			c->source, c->context, cluster);
	if (!rc)
		rc = read_cluster(l, &e);
	if (rc < 0 || !user)
		return rc;
	rc = kube_config_find(l, "users", "user", user, &e);
	if (rc == -ENOENT)
		return slu_fail(
			l->err, -EINVAL,
			"%s: contexts[\"%s\"].context.user names \"%s\", which is not in users",
			c->source, c->context, user);
	return rc < 0 ? rc : read_user(l, &e);
}

/* ---- inside a pod ---- */

static int in_cluster(struct kcfg *l, const struct slu_kube_config_options *o)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");
	const char *dir = o->in_cluster_dir ? o->in_cluster_dir : IN_CLUSTER;
	struct slu_kube_config *c = l->c;
	struct slu_buf ns = SLU_BUF_INIT(4096);
	struct slu_error why = { 0 };
	const char *ns_file;

	if (!host || !*host || !port || !*port)
		return slu_fail(
			l->err, -ENOENT,
			"no kubeconfig: --kubeconfig and KUBECONFIG are not set, ~/.kube/config does not exist, and this is not a pod");
	c->source = "in-cluster";
	c->context = "in-cluster";
	c->cluster = "in-cluster";
	c->user = "service account";
	c->server = kube_config_keepf(l, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s",
				      host, port);
	c->server_from = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT";
	c->token.file = kube_config_keepf(l, "%s/token", dir);
	c->token.from = c->token.file;
	c->ca.file = kube_config_keepf(l, "%s/ca.crt", dir);
	c->ca.from = c->ca.file;
	ns_file = kube_config_keepf(l, "%s/namespace", dir);
	if (!c->server || !c->token.file || !c->ca.file || !ns_file)
		return -ENOMEM;
	if (slu_addr_parse(c->server, &c->addr, &why) < 0)
		return slu_fail(l->err, -EINVAL, "%s: %s", c->server_from, why.text);
	if (access(c->token.file, R_OK) < 0)
		return slu_fail(l->err, -EINVAL,
				"cannot read %s: %s; is automountServiceAccountToken off?",
				c->token.file, strerror(errno));
	if (access(c->ca.file, R_OK) < 0)
		return slu_fail(l->err, -EINVAL, "cannot read %s: %s", c->ca.file, strerror(errno));
	if (o->namespace_)
		c->namespace_ = kube_config_keep(l, o->namespace_);
	else if (slu_file_read(ns_file, &ns) == 0 && ns.n)
		c->namespace_ = slu_arena_strndup(&c->mem, ns.p, strcspn(ns.p, "\r\n "));
	else
		c->namespace_ = "default";
	slu_buf_done(&ns);
	return c->namespace_ ? 0 : -ENOMEM;
}

static int load_config(struct kcfg *l, const struct slu_kube_config_options *o)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
	char path[PATH_MAX];
	int rc;

	if (o->path) {
		rc = kube_config_load(l, o->path, true);
		return rc < 0 ? rc : pick_context(l, o);
	}
	if (list && *list) {
		rc = kube_config_load_list(l, list);
		return rc < 0 ? rc : pick_context(l, o);
	}
	if (home && *home &&
	    (size_t)snprintf(path, sizeof path, "%s/.kube/config", home) < sizeof path) {
		rc = kube_config_load(l, path, false);
		if (rc < 0 || l->n)
			return rc < 0 ? rc : pick_context(l, o);
	}
	return in_cluster(l, o);
}

int slu_kube_config_load(const struct slu_kube_config_options *o, struct slu_kube_config **out,
			 struct slu_error *err)
{
	static const struct slu_kube_config_options none;
	struct slu_error own = { 0 };
	struct kcfg l = { .err = err ? err : &own };
	int rc;

	l.c = slu_calloc(1, sizeof *l.c);
	if (!l.c)
		return slu_fail(err, -ENOMEM, "no memory for the kubeconfig");
	l.c->refs = 1;
	rc = load_config(&l, o ? o : &none);
	kube_config_done(&l);
	if (rc < 0) {
		slu_kube_config_unref(l.c);
		return rc == -ENOMEM ? slu_fail(err, rc, "no memory for the kubeconfig") : rc;
	}
	*out = l.c;
	return 0;
}

struct slu_kube_config *slu_kube_config_ref(struct slu_kube_config *c)
{
	c->refs++;
	return c;
}

void slu_kube_config_unref(struct slu_kube_config *c)
{
	if (!c || --c->refs)
		return;
	slu_arena_done(&c->mem);
	slu_free(c);
}

const char *slu_kube_config_server(const struct slu_kube_config *c)
{
	return c->server;
}

const char *slu_kube_config_namespace(const struct slu_kube_config *c)
{
	return c->namespace_;
}

const char *slu_kube_config_source(const struct slu_kube_config *c)
{
	return c->source;
}

const char *slu_kube_config_user(const struct slu_kube_config *c)
{
	return c->user;
}
