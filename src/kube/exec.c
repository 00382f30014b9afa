/* exec.c — credential plug-ins: a program prints an ExecCredential.  No shell is involved. */
#include "base/file.h"
#include "base/base64.h"
#include "kube/auth.h"
#include "kube/time.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define OUT_MAX (1u << 20)
#define ERR_MAX 4096u

extern char **environ;

struct kube_exec_run {
	uv_process_t proc;
	uv_pipe_t out, err;
	int open_handles;
	struct slu_loop *loop;
	const struct slu_kube_config *cfg;
	kube_exec_fn *fn;
	void *arg;
	struct slu_timer timer;
	struct slu_buf text, complaint;
	char chunk[4096];
	int pending; /* exit, end of stdout, end of stderr */
	int64_t status;
	int sig;
	bool late, cancelled, started, exited;
};

void kube_exec_result_done(struct kube_exec_result *r)
{
	slu_free(r->token);
	slu_free(r->cert);
	slu_free(r->key);
	memset(r, 0, sizeof *r);
}

static int copy_field(const struct slu_json *status, const char *name, char **out,
		      struct slu_error *err)
{
	const struct slu_json *v = slu_json_get(status, name);

	if (!v || slu_json_is_null(v))
		return 0;
	if (!slu_json_is_str(v))
		return slu_fail(err, -EINVAL, "status.%s is not a string", name);
	if (!*slu_json_str(v))
		return 0;
	*out = slu_strdup(slu_json_str(v));
	return *out ? 0 : slu_fail(err, -ENOMEM, "no memory");
}

int kube_exec_parse(const char *text, size_t n, const char *api_version,
		    struct kube_exec_result *out, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_json_limits lim = { .max_bytes = OUT_MAX, .max_depth = 32 };
	struct kube_exec_result r = { .expires_s = INT64_MAX };
	const struct slu_json *root, *status;
	const char *s;
	int rc;

	rc = slu_json_parse(text, n, &lim, &doc, err);
	if (rc < 0)
		return slu_fail_prefix(err, -EINVAL, "what it printed is not an ExecCredential");
	root = slu_json_root(doc);
	s = slu_json_str_or(slu_json_get(root, "kind"), "");
	if (strcmp(s, "ExecCredential"))
		return slu_fail(err, -EINVAL, "it printed kind \"%.60s\", not ExecCredential", s);
	s = slu_json_str_or(slu_json_get(root, "apiVersion"), "");
	if (strcmp(s, api_version))
		return slu_fail(err, -EINVAL, "it printed apiVersion \"%.80s\", %s is configured",
				s, api_version);
	status = slu_json_get(root, "status");
	if (!slu_json_is_obj(status))
		return slu_fail(err, -EINVAL, "its ExecCredential has no status");
	rc = copy_field(status, "token", &r.token, err);
	if (!rc)
		rc = copy_field(status, "clientCertificateData", &r.cert, err);
	if (!rc)
		rc = copy_field(status, "clientKeyData", &r.key, err);
	if (!rc && !r.cert != !r.key)
		rc = slu_fail(
			err, -EINVAL,
			"its ExecCredential has only one of clientCertificateData and clientKeyData");
	if (!rc && !r.token && !r.cert)
		rc = slu_fail(err, -EINVAL, "its ExecCredential has neither token nor certificate");
	if (!rc && r.token && strpbrk(r.token, "\r\n"))
		rc = slu_fail(err, -EINVAL, "its token has a line break");
	s = slu_json_str(slu_json_get(status, "expirationTimestamp"));
	if (!rc && s) {
		int64_t us;

		if (slu_ktime_parse(s, strlen(s), &us) < 0)
			rc = slu_fail(err, -EINVAL,
				      "its expirationTimestamp \"%.60s\" is not a time", s);
		else
			r.expires_s = us / 1000000;
	}
	if (rc < 0) {
		kube_exec_result_done(&r);
		return rc;
	}
	*out = r;
	return 0;
}

/* ---- running it ---- */

static void on_handle_closed(uv_handle_t *h)
{
	struct kube_exec_run *r = h->data;

	if (--r->open_handles)
		return;
	slu_buf_done(&r->text);
	slu_buf_done(&r->complaint);
	slu_free(r);
}

static void close_all(struct kube_exec_run *r)
{
	uv_handle_t *h[] = { (uv_handle_t *)&r->proc, (uv_handle_t *)&r->out,
			     (uv_handle_t *)&r->err };

	slu_timer_stop(&r->timer);
	for (size_t i = 0; i < SLU_LEN(h); i++)
		if (!uv_is_closing(h[i]))
			uv_close(h[i], on_handle_closed);
}

void kube_exec_cancel(struct kube_exec_run *r)
{
	if (!r)
		return;
	r->cancelled = true;
	if (r->started && !r->exited) {
		uv_process_kill(&r->proc, SIGKILL);
		waitpid(uv_process_get_pid(&r->proc), NULL, 0); /* killed: a short wait */
	}
	close_all(r);
}

static void finished(struct kube_exec_run *r)
{
	const struct kube_exec *x = &r->cfg->exec;
	struct kube_exec_result res = { 0 };
	struct slu_error err = { 0 };
	char said[200];
	size_t n;
	int rc;

	/* Report the first line of stderr, which usually names the cause. */
	n = strcspn(slu_buf_str(&r->complaint), "\r\n");
	snprintf(said, sizeof said, "%s%.*s", n ? ": " : "", (int)SLU_MIN(n, (size_t)180),
		 slu_buf_str(&r->complaint));
	if (r->late)
		rc = slu_fail(&err, -ETIMEDOUT, "%s.command: \"%s\" did not end in time%s", x->from,
			      x->command, said);
	else if (r->sig)
		rc = slu_fail(&err, -EIO, "%s.command: \"%s\" was ended by signal %d%s", x->from,
			      x->command, r->sig, said);
	else if (r->status)
		rc = slu_fail(&err, -EIO, "%s.command: \"%s\" exited with status %" PRId64 "%s",
			      x->from, x->command, r->status, said);
	else if (r->text.error)
		rc = slu_fail(&err, -EMSGSIZE, "%s.command: \"%s\" printed more than 1 MiB",
			      x->from, x->command);
	else
		rc = kube_exec_parse(slu_buf_str(&r->text), r->text.n, x->api_version, &res, &err);
	if (rc == -EINVAL)
		slu_fail_prefix(&err, rc, "%s.command \"%s\"", x->from, x->command);
	close_all(r);
	r->fn(r->arg, rc, &res, &err);
	kube_exec_result_done(&res);
}

static void part_done(struct kube_exec_run *r)
{
	if (!--r->pending && !r->cancelled)
		finished(r);
}

static void on_exited(uv_process_t *p, int64_t status, int sig)
{
	struct kube_exec_run *r = p->data;

	r->status = status;
	r->sig = sig;
	r->exited = true;
	part_done(r);
}

static void give_chunk(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	struct kube_exec_run *r = h->data;

	(void)want;
	*buf = uv_buf_init(r->chunk, sizeof r->chunk);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct kube_exec_run *r = s->data;
	struct slu_buf *b = s == (uv_stream_t *)&r->out ? &r->text : &r->complaint;

	if (n > 0)
		slu_buf_add(b, buf->base, (size_t)n);
	if (n < 0) {
		uv_read_stop(s);
		part_done(r);
	}
}

static void too_late(void *arg)
{
	struct kube_exec_run *r = arg;

	r->late = true;
	/* A grandchild may hold the pipes open, so wait only for the program itself. */
	uv_read_stop((uv_stream_t *)&r->out);
	uv_read_stop((uv_stream_t *)&r->err);
	r->pending = 1;
	if (r->exited)
		part_done(r);
	else
		uv_process_kill(&r->proc, SIGKILL);
}

/* The value of KUBERNETES_EXEC_INFO, which describes the cluster to the plug-in. */
static char *exec_info(const struct slu_kube_config *c, bool interactive)
{
	struct slu_buf b = SLU_BUF_INIT(8u << 20), ca = SLU_BUF_INIT(6u << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	char *out;

	slu_buf_puts(&b, "KUBERNETES_EXEC_INFO=");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", c->exec.api_version);
	slu_jsonw_kstr(&w, "kind", "ExecCredential");
	slu_jsonw_key(&w, "spec");
	slu_jsonw_obj(&w);
	slu_jsonw_kbool(&w, "interactive", interactive);
	if (c->exec.provide_cluster_info) {
		slu_jsonw_key(&w, "cluster");
		slu_jsonw_obj(&w);
		slu_jsonw_kstr(&w, "server", c->server);
		if (c->tls_server_name)
			slu_jsonw_kstr(&w, "tls-server-name", c->tls_server_name);
		if (c->insecure)
			slu_jsonw_kbool(&w, "insecure-skip-tls-verify", true);
		if (c->ca.data) {
			slu_base64_encode(c->ca.data, c->ca.n, &ca);
		} else if (c->ca.file) {
			struct slu_buf file = SLU_BUF_INIT(4u << 20);

			if (!slu_file_read(c->ca.file, &file))
				slu_base64_encode(file.p, file.n, &ca);
			slu_buf_done(&file);
		}
		if (ca.n && !ca.error)
			slu_jsonw_kstr(&w, "certificate-authority-data", ca.p);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	slu_buf_done(&ca);
	out = slu_buf_take(&b);
	slu_buf_done(&b);
	return out;
}

/* The environment of the plug-in: its own variables, the description of the cluster, and our environment. */
static char **make_env(const struct slu_kube_config *c, bool interactive, struct slu_arena *mem)
{
	slu_cleanup(slu_freep) char *info = exec_info(c, interactive);
	uint32_t n = 0, k = 0;
	char **env;

	while (environ[n])
		n++;
	env = slu_arena_zalloc(mem, (n + c->exec.n_env + 2) * sizeof *env);
	if (!env || !info)
		return NULL;
	/* These variables come first, because most C libraries use the first of equal names. */
	for (uint32_t i = 0; i < c->exec.n_env; i++) {
		char t[4096];

		if ((size_t)snprintf(t, sizeof t, "%s=%s", c->exec.env[i].name,
				     c->exec.env[i].value) >= sizeof t)
			return NULL;
		env[k] = slu_arena_strndup(mem, t, strlen(t));
		if (!env[k++])
			return NULL;
	}
	env[k] = slu_arena_strndup(mem, info, strlen(info));
	if (!env[k++])
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		size_t len = strcspn(environ[i], "=");
		bool ours = len == 20 && !memcmp(environ[i], "KUBERNETES_EXEC_INFO", 20);

		for (uint32_t j = 0; j < c->exec.n_env && !ours; j++)
			ours = strlen(c->exec.env[j].name) == len &&
			       !memcmp(c->exec.env[j].name, environ[i], len);
		if (!ours)
			env[k++] = environ[i];
	}
	return env;
}

static int spawn(struct kube_exec_run *r, struct slu_error *err)
{
	const struct kube_exec *x = &r->cfg->exec;
	struct slu_arena mem = { 0 };
	bool tty = isatty(0), interactive = tty && !x->never_interactive;
	uv_stdio_container_t io[3] = {
		{ .flags = interactive ? UV_INHERIT_FD : UV_IGNORE, .data.fd = 0 },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&r->out },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&r->err },
	};
	uv_process_options_t o = {
		.exit_cb = on_exited, .file = x->command, .stdio = io, .stdio_count = 3
	};
	uint32_t n = 0;
	int rc;

	if (x->always_interactive && !tty)
		return slu_fail(
			err, -EINVAL,
			"%s.interactiveMode is Always, but standard input is not a terminal",
			x->from);
	if (interactive) { /* the plug-in may have to ask the user */
		io[2].flags = UV_INHERIT_FD;
		io[2].data.fd = 2;
	}
	while (x->args && x->args[n])
		n++;
	o.args = slu_arena_zalloc(&mem, (n + 2) * sizeof *o.args);
	o.env = make_env(r->cfg, interactive, &mem);
	if (!o.args || !o.env) {
		slu_arena_done(&mem);
		return slu_fail(err, -ENOMEM, "%s: no memory to start \"%s\"", x->from, x->command);
	}
	o.args[0] = (char *)x->command;
	for (uint32_t i = 0; i < n; i++)
		o.args[i + 1] = (char *)x->args[i];
	rc = uv_spawn(slu_loop_uv(r->loop), &r->proc, &o);
	slu_arena_done(&mem);
	if (rc < 0)
		return slu_fail(err, rc, "%s.command: cannot run \"%s\": %s%s%s", x->from,
				x->command, uv_strerror(rc), x->install_hint ? "; " : "",
				x->install_hint ? x->install_hint : "");
	r->started = true;
	r->pending = 2;
	uv_read_start((uv_stream_t *)&r->out, give_chunk, on_read);
	if (!interactive) {
		r->pending++;
		uv_read_start((uv_stream_t *)&r->err, give_chunk, on_read);
	}
	return 0;
}

int kube_exec_start(struct slu_loop *l, const struct slu_kube_config *cfg, int64_t timeout_ns,
		    kube_exec_fn *fn, void *arg, struct kube_exec_run **out, struct slu_error *err)
{
	struct kube_exec_run *r = slu_calloc(1, sizeof *r);
	int rc;

	if (!r)
		return slu_fail(err, -ENOMEM, "no memory to run a credential plug-in");
	r->loop = l;
	r->cfg = cfg;
	r->fn = fn;
	r->arg = arg;
	r->text = SLU_BUF_INIT(OUT_MAX);
	r->complaint = SLU_BUF_INIT(ERR_MAX);
	uv_pipe_init(slu_loop_uv(l), &r->out, 0);
	uv_pipe_init(slu_loop_uv(l), &r->err, 0);
	r->proc.data = r->out.data = r->err.data = r;
	r->open_handles = 3;
	rc = spawn(r, err);
	if (rc < 0) {
		/* uv_spawn() initialises the handle even when it fails; a handle that never got
		 * there has nothing to close. */
		if (!r->proc.loop)
			r->open_handles = 2;
		r->cancelled = true;
		if (r->proc.loop)
			uv_close((uv_handle_t *)&r->proc, on_handle_closed);
		uv_close((uv_handle_t *)&r->out, on_handle_closed);
		uv_close((uv_handle_t *)&r->err, on_handle_closed);
		return rc;
	}
	slu_timer_start(&r->timer, l, timeout_ns, too_late, r);
	*out = r;
	return 0;
}
