#include "kube/config_internal.h"
#include "base/base64.h"
#include "base/file.h"
#include "wire/yaml.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_FILES  32
#define MAX_FILE   (4u << 20)
#define MAX_LIST   4096
#define IN_CLUSTER "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_MAX  (256u << 10)

struct file {
	char *path;
	struct slu_json_doc *doc;
};

struct loader {
	struct file file[MAX_FILES];
	uint32_t n;
	struct slu_kube_config *c;
	struct slu_error *err;
};

/* One entry of clusters, users or contexts: the inner object and where it stands. */
struct entry {
	const struct file *file;
	const struct slu_json *obj;
	char place[400]; /* "clusters[\"prod\"].cluster" */
};

static char *keep(struct loader *l, const char *s)
{
	return s ? slu_arena_strndup(&l->c->mem, s, strlen(s)) : NULL;
}

static char *keepf(struct loader *l, const char *fmt, ...) SLU_PRINTF(2, 3);
static char *keepf(struct loader *l, const char *fmt, ...)
{
	char t[PATH_MAX + 512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t, sizeof t, fmt, ap);
	va_end(ap);
	return keep(l, t);
}

static int wrong(struct loader *l, const struct entry *e, const char *field, const char *why)
{
	uint32_t line = slu_json_line(e->file->doc, slu_json_get(e->obj, field));
	char at[32] = "";

	if (line)
		snprintf(at, sizeof at, " (line %u)", line);
	return slu_fail(l->err, -EINVAL, "%s: %s.%s%s %s", e->file->path, e->place, field, at, why);
}

/* The string of a field: 0 with *out NULL when absent, null or empty. */
static int str_field(struct loader *l, const struct entry *e, const char *field, const char **out)
{
	const struct slu_json *v = slu_json_get(e->obj, field);

	*out = NULL;
	if (!v || slu_json_is_null(v))
		return 0;
	if (!slu_json_is_str(v))
		return wrong(l, e, field, "is not a string");
	if (!*slu_json_str(v))
		return 0;
	*out = keep(l, slu_json_str(v));
	return *out ? 0 : -ENOMEM;
}

static int bool_field(struct loader *l, const struct entry *e, const char *field, bool *out)
{
	const struct slu_json *v = slu_json_get(e->obj, field);

	if (!v || slu_json_is_null(v))
		return 0;
	return slu_json_bool(v, out) < 0 ? wrong(l, e, field, "is neither true nor false") : 0;
}

static const char *place_of(struct loader *l, const struct entry *e, const char *field)
{
	return keepf(l, "%s: %s.%s", e->file->path, e->place, field);
}

/* A path in a kubeconfig is relative to the directory of that file. */
static const char *resolve_path(struct loader *l, const struct file *f, const char *path)
{
	const char *slash = strrchr(f->path, '/');

	if (*path == '/' || !slash)
		return path;
	return keepf(l, "%.*s/%s", (int)(slash - f->path), f->path, path);
}

/* `field` names a file, `field`-data holds base64 and wins. */
static int blob_field(struct loader *l, const struct entry *e, const char *field,
		      struct kube_blob *b)
{
	char data_field[64];
	const char *s;
	int rc;

	snprintf(data_field, sizeof data_field, "%s-data", field);
	rc = str_field(l, e, data_field, &s);
	if (rc < 0)
		return rc;
	if (s) {
		struct slu_buf t = SLU_BUF_INIT(MAX_FILE);

		rc = slu_base64_decode(s, strlen(s), &t);
		if (!rc && !t.n)
			rc = -EINVAL;
		b->data = rc ? NULL : slu_arena_strndup(&l->c->mem, t.p, t.n);
		b->n = t.n;
		slu_buf_done(&t);
		if (rc == -EINVAL)
			return wrong(l, e, data_field, "is not base64");
		if (rc < 0 || !b->data)
			return -ENOMEM;
		b->from = place_of(l, e, data_field);
		return b->from ? 0 : -ENOMEM;
	}
	rc = str_field(l, e, field, &s);
	if (rc < 0 || !s)
		return rc;
	b->file = resolve_path(l, e->file, s);
	b->from = b->file ? keepf(l, "%s (%s: %s.%s)", b->file, e->file->path, e->place, field)
			  : NULL;
	if (!b->from)
		return -ENOMEM;
	if (access(b->file, R_OK) < 0)
		return slu_fail(l->err, -EINVAL, "%s: %s.%s: cannot read %s: %s", e->file->path,
				e->place, field, b->file, strerror(errno));
	return 0;
}

static int list_field(struct loader *l, const struct entry *e, const char *field, const char ***out)
{
	const struct slu_json *v = slu_json_get(e->obj, field);
	uint32_t n = 0;
	const char **p;

	if (!v || slu_json_is_null(v))
		return 0;
	if (!slu_json_is_arr(v) || slu_json_count(v) > MAX_LIST)
		return wrong(l, e, field, "is not a list of strings");
	p = slu_arena_zalloc(&l->c->mem, (slu_json_count(v) + 1) * sizeof *p);
	if (!p)
		return -ENOMEM;
	slu_json_each (v, it) {
		if (!slu_json_is_str(it.val))
			return wrong(l, e, field, "is not a list of strings");
		p[n] = keep(l, slu_json_str(it.val));
		if (!p[n++])
			return -ENOMEM;
	}
	*out = p;
	return 0;
}

/* ---- files ---- */

static void loader_done(struct loader *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		slu_free(l->file[i].path);
		slu_json_free(l->file[i].doc);
	}
	l->n = 0;
}

static int load_file(struct loader *l, const char *path, bool must_exist)
{
	struct slu_buf text = SLU_BUF_INIT(MAX_FILE);
	struct file *f;
	char abs[PATH_MAX];
	int rc;

	if (l->n == MAX_FILES)
		return slu_fail(l->err, -EINVAL, "KUBECONFIG lists more than %d files", MAX_FILES);
	rc = slu_file_read(path, &text);
	if (rc < 0) {
		slu_buf_done(&text);
		if (rc == -ENOENT && !must_exist)
			return 0;
		if (rc == -ENOMEM)
			return rc;
		return slu_fail(l->err, rc == -ENOENT ? -ENOENT : -EINVAL,
				"cannot read kubeconfig %s: %s", path,
				rc == -EMSGSIZE ? "it is larger than 4 MiB" : strerror(-rc));
	}
	f = &l->file[l->n];
	f->doc = NULL;
	f->path = slu_strdup(realpath(path, abs) ? abs : path);
	if (!f->path) {
		slu_buf_done(&text);
		return -ENOMEM;
	}
	l->n++;
	rc = slu_yaml_parse(slu_buf_str(&text), text.n, 0, NULL, &f->doc, l->err);
	slu_buf_done(&text);
	if (rc < 0)
		return rc == -ENOMEM ? rc : slu_fail_prefix(l->err, -EINVAL, "%s", path);
	if (!slu_json_is_obj(slu_json_root(f->doc)) && !slu_json_is_null(slu_json_root(f->doc)))
		return slu_fail(l->err, -EINVAL, "%s is not a kubeconfig: no fields at its top",
				path);
	return 0;
}

static int load_list(struct loader *l, const char *list)
{
	for (const char *s = list; *s;) {
		size_t n = strcspn(s, ":");

		if (n) {
			slu_cleanup(slu_freep) char *path = slu_strndup(s, n);
			int rc = path ? load_file(l, path, false) : -ENOMEM;

			if (rc < 0)
				return rc;
		}
		s += n;
		if (*s)
			s++;
	}
	return l->n ? 0
		    : slu_fail(l->err, -ENOENT, "none of the files in KUBECONFIG exists: %.300s",
			       list);
}

/* The entry `name` of list `kind` ("clusters") with its inner object ("cluster"): the first file
 * that has it wins as a whole. 0, -ENOENT or -EINVAL. */
static int find_entry(struct loader *l, const char *kind, const char *inner, const char *name,
		      struct entry *out)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct slu_json *list = slu_json_get(slu_json_root(l->file[i].doc), kind);
		bool found = false;

		if (!list || slu_json_is_null(list))
			continue;
		if (!slu_json_is_arr(list))
			return slu_fail(l->err, -EINVAL, "%s: %s is not a list", l->file[i].path,
					kind);
		slu_json_each (list, it) {
			const char *s = slu_json_str(slu_json_get(it.val, "name"));

			if (!s)
				return slu_fail(l->err, -EINVAL,
						"%s: an entry of %s has no name (a string)",
						l->file[i].path, kind);
			if (strcmp(s, name))
				continue;
			if (found)
				return slu_fail(l->err, -EINVAL, "%s: %s has \"%s\" twice",
						l->file[i].path, kind, name);
			found = true;
			out->file = &l->file[i];
			out->obj = slu_json_get(it.val, inner);
			snprintf(out->place, sizeof out->place, "%s[\"%.300s\"].%s", kind, name,
				 inner);
			if (out->obj && !slu_json_is_obj(out->obj) && !slu_json_is_null(out->obj))
				return slu_fail(l->err, -EINVAL, "%s: %s is not an object",
						out->file->path, out->place);
		}
		if (found)
			return 0;
	}
	return -ENOENT;
}

/* ---- the parts ---- */

static int read_cluster(struct loader *l, const struct entry *e)
{
	struct slu_kube_config *c = l->c;
	struct slu_error why = { 0 };
	const char *proxy;
	int rc;

	rc = str_field(l, e, "server", &c->server);
	if (rc < 0)
		return rc;
	if (!c->server)
		return wrong(l, e, "server", "is missing");
	c->server_from = place_of(l, e, "server");
	if (!c->server_from)
		return -ENOMEM;
	if (strncmp(c->server, "https://", 8) && strncmp(c->server, "http://", 7))
		return wrong(l, e, "server", "does not start with https:// or http://");
	if (slu_addr_parse(c->server, &c->addr, &why) < 0)
		return wrong(l, e, "server", why.text);
	rc = str_field(l, e, "proxy-url", &proxy);
	if (rc < 0)
		return rc;
	if (proxy)
		return wrong(l, e, "proxy-url", "asks for a proxy, which Sluice does not support");
	rc = str_field(l, e, "tls-server-name", &c->tls_server_name);
	if (!rc)
		rc = bool_field(l, e, "insecure-skip-tls-verify", &c->insecure);
	if (!rc)
		rc = bool_field(l, e, "disable-compression", &c->no_compression);
	if (!rc)
		rc = blob_field(l, e, "certificate-authority", &c->ca);
	if (!rc && c->insecure && c->ca.from)
		return wrong(l, e, "insecure-skip-tls-verify",
			     "contradicts certificate-authority; remove one of them");
	return rc;
}

static int read_exec(struct loader *l, const struct entry *user)
{
	struct kube_exec *x = &l->c->exec;
	struct entry e = *user;
	const struct slu_json *env;
	const char *mode = NULL;
	int rc;

	e.obj = slu_json_get(user->obj, "exec");
	if (!e.obj || slu_json_is_null(e.obj))
		return 0;
	if (!slu_json_is_obj(e.obj))
		return wrong(l, user, "exec", "is not an object");
	snprintf(e.place, sizeof e.place, "%.390s.exec", user->place);
	x->from = keepf(l, "%s: %s", e.file->path, e.place);
	rc = !x->from ? -ENOMEM : str_field(l, &e, "command", &x->command);
	if (rc < 0)
		return rc;
	if (!x->command)
		return wrong(l, &e, "command", "is missing");
	if (strchr(x->command, '/'))
		x->command = resolve_path(l, e.file, x->command);
	rc = str_field(l, &e, "apiVersion", &x->api_version);
	if (rc < 0)
		return rc;
	if (!x->api_version || (strcmp(x->api_version, "client.authentication.k8s.io/v1") &&
				strcmp(x->api_version, "client.authentication.k8s.io/v1beta1")))
		return wrong(l, &e, "apiVersion",
			     "is neither client.authentication.k8s.io/v1 nor .../v1beta1");
	rc = str_field(l, &e, "installHint", &x->install_hint);
	if (!rc)
		rc = list_field(l, &e, "args", &x->args);
	if (!rc)
		rc = bool_field(l, &e, "provideClusterInfo", &x->provide_cluster_info);
	if (!rc)
		rc = str_field(l, &e, "interactiveMode", &mode);
	if (rc < 0)
		return rc;
	if (mode && !strcmp(mode, "Never"))
		x->never_interactive = true;
	else if (mode && !strcmp(mode, "Always"))
		x->always_interactive = true;
	else if (mode && strcmp(mode, "IfAvailable"))
		return wrong(l, &e, "interactiveMode", "is not Never, IfAvailable or Always");
	else if (!mode && !strcmp(x->api_version, "client.authentication.k8s.io/v1"))
		return wrong(l, &e, "interactiveMode", "is missing; v1 plug-ins must state it");
	env = slu_json_get(e.obj, "env");
	if (!env || slu_json_is_null(env))
		return 0;
	if (!slu_json_is_arr(env) || slu_json_count(env) > MAX_LIST)
		return wrong(l, &e, "env", "is not a list");
	x->env = slu_arena_zalloc(&l->c->mem, (slu_json_count(env) + 1) * sizeof *x->env);
	if (!x->env)
		return -ENOMEM;
	slu_json_each (env, it) {
		const char *name = slu_json_str(slu_json_get(it.val, "name"));
		const char *value = slu_json_str(slu_json_get(it.val, "value"));

		if (!name || !*name || strchr(name, '=') || !value)
			return wrong(l, &e, "env", "has an entry without name or value");
		x->env[x->n_env] = (struct kube_pair){ keep(l, name), keep(l, value) };
		if (!x->env[x->n_env].name || !x->env[x->n_env].value)
			return -ENOMEM;
		x->n_env++;
	}
	return 0;
}

static int read_extra(struct loader *l, const struct entry *e)
{
	const struct slu_json *extra = slu_json_get(e->obj, "as-user-extra");
	struct slu_kube_config *c = l->c;
	size_t n = 0;

	slu_json_each (extra, it)
		n += slu_json_count(it.val);
	if (!n)
		return 0;
	if (!slu_json_is_obj(extra) || n > 32)
		return wrong(l, e, "as-user-extra", "is not an object of up to 32 values");
	c->as_extra = slu_arena_zalloc(&c->mem, n * sizeof *c->as_extra);
	if (!c->as_extra)
		return -ENOMEM;
	slu_json_each (extra, it) {
		struct slu_buf name = SLU_BUF_INIT(4096);
		const char *kept;

		slu_buf_puts(&name, "impersonate-extra-");
		slu_http_escape(&name, it.key, strlen(it.key));
		kept = name.error ? NULL : keep(l, slu_buf_str(&name));
		slu_buf_done(&name);
		if (!kept)
			return -ENOMEM;
		slu_json_each (it.val, v) {
			if (!slu_json_is_str(v.val))
				return wrong(l, e, "as-user-extra",
					     "has a value that is no string");
			c->as_extra[c->n_as_extra] =
				(struct kube_pair){ kept, keep(l, slu_json_str(v.val)) };
			if (!c->as_extra[c->n_as_extra++].value)
				return -ENOMEM;
		}
	}
	return 0;
}

static int read_user(struct loader *l, const struct entry *e)
{
	struct slu_kube_config *c = l->c;
	const char *token = NULL, *file = NULL;
	int rc;

	if (slu_json_is_obj(slu_json_get(e->obj, "auth-provider")))
		return wrong(l, e, "auth-provider",
			     "was removed from Kubernetes; use exec instead");
	rc = blob_field(l, e, "client-certificate", &c->cert);
	if (!rc)
		rc = blob_field(l, e, "client-key", &c->key);
	if (!rc)
		rc = str_field(l, e, "token", &token);
	if (!rc)
		rc = str_field(l, e, "tokenFile", &file);
	if (!rc)
		rc = str_field(l, e, "username", &c->username);
	if (!rc)
		rc = str_field(l, e, "password", &c->password);
	if (!rc)
		rc = str_field(l, e, "as", &c->as_user);
	if (!rc)
		rc = str_field(l, e, "as-uid", &c->as_uid);
	if (!rc)
		rc = list_field(l, e, "as-groups", &c->as_groups);
	if (!rc)
		rc = read_extra(l, e);
	if (!rc)
		rc = read_exec(l, e);
	if (rc < 0)
		return rc;
	if (c->cert.from && !c->key.from)
		return wrong(l, e, "client-key", "is missing beside client-certificate");
	if (c->key.from && !c->cert.from)
		return wrong(l, e, "client-certificate", "is missing beside client-key");
	if (token) {
		if (strpbrk(token, "\r\n"))
			return wrong(l, e, "token", "has a line break");
		c->token.data = token;
		c->token.n = strlen(token);
		c->token.from = place_of(l, e, "token");
	}
	if (file) {
		c->token.file = resolve_path(l, e->file, file);
		c->token.from = place_of(l, e, "tokenFile");
		if (c->token.file && access(c->token.file, R_OK) < 0)
			return slu_fail(l->err, -EINVAL, "%s: cannot read %s: %s", c->token.from,
					c->token.file, strerror(errno));
	}
	if ((token || file) && !c->token.from)
		return -ENOMEM;
	if (c->username && c->token.from)
		return wrong(l, e, "username", "contradicts the token; remove one of them");
	return 0;
}

static int pick(struct loader *l, const struct slu_kube_config_options *o)
{
	struct slu_kube_config *c = l->c;
	const char *cluster = o->cluster, *user = o->user, *ns = o->namespace_, *ctx = o->context;
	struct entry e = { 0 };
	int rc;

	for (uint32_t i = 0; i < l->n && !ctx; i++) {
		const struct slu_json *v = slu_json_get(slu_json_root(l->file[i].doc),
							"current-context");

		if (slu_json_str(v) && *slu_json_str(v))
			ctx = slu_json_str(v);
	}
	c->source = keep(l, l->file[0].path);
	c->context = keep(l, ctx ? ctx : "");
	if (!c->source || !c->context)
		return -ENOMEM;
	if (ctx) {
		rc = find_entry(l, "contexts", "context", ctx, &e);
		if (rc == -ENOENT)
			return slu_fail(
				l->err, -EINVAL, "%s: %s names context \"%s\", which is not there",
				c->source, o->context ? "--context" : "current-context", ctx);
		if (rc < 0)
			return rc;
		c->source = keep(l, e.file->path);
		if (!cluster)
			rc = str_field(l, &e, "cluster", &cluster);
		if (!rc && !user)
			rc = str_field(l, &e, "user", &user);
		if (!rc && !ns)
			rc = str_field(l, &e, "namespace", &ns);
		if (rc < 0)
			return rc;
		if (!cluster)
			return wrong(l, &e, "cluster", "is missing");
	} else if (!cluster) {
		return slu_fail(l->err, -EINVAL,
				"%s: current-context is not set; choose one with --context",
				c->source);
	}
	c->cluster = keep(l, cluster);
	c->user = keep(l, user ? user : "");
	c->namespace_ = keep(l, ns ? ns : "default");
	if (!c->cluster || !c->user || !c->namespace_ || !c->source)
		return -ENOMEM;
	rc = find_entry(l, "clusters", "cluster", cluster, &e);
	if (rc == -ENOENT)
		return slu_fail(
			l->err, -EINVAL,
			"%s: contexts[\"%s\"].context.cluster names \"%s\", which is not in clusters",
			c->source, c->context, cluster);
	if (!rc)
		rc = read_cluster(l, &e);
	if (rc < 0 || !user)
		return rc;
	rc = find_entry(l, "users", "user", user, &e);
	if (rc == -ENOENT)
		return slu_fail(
			l->err, -EINVAL,
			"%s: contexts[\"%s\"].context.user names \"%s\", which is not in users",
			c->source, c->context, user);
	return rc < 0 ? rc : read_user(l, &e);
}

/* ---- inside a pod ---- */

static int in_cluster(struct loader *l, const struct slu_kube_config_options *o)
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
			"no kubeconfig: --kubeconfig and KUBECONFIG are not set, ~/.kube/config is not there, and this is not a pod");
	c->source = "in-cluster";
	c->context = "in-cluster";
	c->cluster = "in-cluster";
	c->user = "service account";
	c->server = keepf(l, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	c->server_from = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT";
	c->token.file = keepf(l, "%s/token", dir);
	c->token.from = c->token.file;
	c->ca.file = keepf(l, "%s/ca.crt", dir);
	c->ca.from = c->ca.file;
	ns_file = keepf(l, "%s/namespace", dir);
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
		c->namespace_ = keep(l, o->namespace_);
	else if (slu_file_read(ns_file, &ns) == 0 && ns.n)
		c->namespace_ = slu_arena_strndup(&c->mem, ns.p, strcspn(ns.p, "\r\n "));
	else
		c->namespace_ = "default";
	slu_buf_done(&ns);
	return c->namespace_ ? 0 : -ENOMEM;
}

static int load(struct loader *l, const struct slu_kube_config_options *o)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
	char path[PATH_MAX];
	int rc;

	if (o->path) {
		rc = load_file(l, o->path, true);
		return rc < 0 ? rc : pick(l, o);
	}
	if (list && *list) {
		rc = load_list(l, list);
		return rc < 0 ? rc : pick(l, o);
	}
	if (home && *home &&
	    (size_t)snprintf(path, sizeof path, "%s/.kube/config", home) < sizeof path) {
		rc = load_file(l, path, false);
		if (rc < 0 || l->n)
			return rc < 0 ? rc : pick(l, o);
	}
	return in_cluster(l, o);
}

int slu_kube_config_load(const struct slu_kube_config_options *o, struct slu_kube_config **out,
			 struct slu_error *err)
{
	static const struct slu_kube_config_options none;
	struct slu_error own = { 0 };
	struct loader l = { .err = err ? err : &own };
	int rc;

	l.c = slu_calloc(1, sizeof *l.c);
	if (!l.c)
		return slu_fail(err, -ENOMEM, "no memory for the kubeconfig");
	l.c->refs = 1;
	rc = load(&l, o ? o : &none);
	loader_done(&l);
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
