#include "kube/auth.h"
#include "base/base64.h"
#include "base/file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define EXEC_TIMEOUT (60 * SLU_NS_PER_S)
#define EXEC_PAUSE   (5 * SLU_NS_PER_S) /* after a failure */
#define LOOK_EVERY   SLU_NS_PER_S       /* how often to check files that may change */
#define EARLY_S      10                 /* before an expiry */
#define PEM_MAX      (4u << 20)
#define TOKEN_MAX    (256u << 10)

/* Identifies the state of a file, to notice a change. */
struct stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct kube_auth {
	struct slu_loop *loop;
	struct slu_kube_config *cfg;
	slu_call_fn *changed;
	void *arg;
	char *authorization;
	struct stamp token_stamp, ca_stamp, cert_stamp, key_stamp;
	int64_t token_look_ns, tls_look_ns; /* when to check the files next, loop clock */
	struct slu_tls *tls;
	uint32_t generation;
	struct kube_exec_run *run;
	struct kube_exec_result plugin; /* last good answer */
	bool plugin_ok, plugin_new_cert;
	int64_t plugin_again_ns; /* after a failure, when the plug-in may run again */
	int plugin_code;
	struct slu_error plugin_err;
};

static bool take_stamp(const char *path, struct stamp *s)
{
	struct stat st;
	struct stamp now = { 0 };
	bool differs;

	if (!path || stat(path, &st) < 0)
		return false;
	now.dev = st.st_dev;
	now.ino = st.st_ino;
	now.size = st.st_size;
	now.mtime = st.st_mtim;
	differs = now.dev != s->dev || now.ino != s->ino || now.size != s->size ||
		  now.mtime.tv_sec != s->mtime.tv_sec || now.mtime.tv_nsec != s->mtime.tv_nsec;
	*s = now;
	return differs;
}

struct kube_auth *kube_auth_new(struct slu_loop *l, struct slu_kube_config *cfg,
				slu_call_fn *changed, void *arg)
{
	struct kube_auth *a = slu_calloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->loop = l;
	a->cfg = slu_kube_config_ref(cfg);
	a->changed = changed;
	a->arg = arg;
	return a;
}

/* Overwrite a credential before it is freed. */
static void wipe_text(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	slu_free(s);
}

void kube_auth_free(struct kube_auth *a)
{
	if (!a)
		return;
	kube_exec_cancel(a->run);
	kube_exec_result_done(&a->plugin);
	wipe_text(a->authorization);
	slu_tls_unref(a->tls);
	slu_kube_config_unref(a->cfg);
	slu_free(a);
}

static int set_authorization(struct kube_auth *a, const char *kind, const char *s, size_t n)
{
	char *t = slu_malloc(strlen(kind) + n + 2);

	if (!t)
		return -ENOMEM;
	sprintf(t, "%s ", kind);
	memcpy(t + strlen(kind) + 1, s, n);
	t[strlen(kind) + 1 + n] = '\0';
	wipe_text(a->authorization);
	a->authorization = t;
	return 0;
}

/* ---- tokens ---- */

static int look_at_token_file(struct kube_auth *a, struct slu_error *err)
{
	const struct kube_blob *t = &a->cfg->token;
	int64_t now = slu_loop_now_ns(a->loop);
	struct slu_buf b = SLU_BUF_INIT(TOKEN_MAX);
	size_t n;
	int rc;

	if (a->authorization && now < a->token_look_ns)
		return 0;
	a->token_look_ns = now + LOOK_EVERY;
	if (!take_stamp(t->file, &a->token_stamp) && a->authorization)
		return 0;
	rc = slu_file_read(t->file, &b);
	if (rc < 0) {
		slu_buf_done(&b);
		a->token_stamp = (struct stamp){ 0 };
		if (a->authorization)
			return 0; /* use the old token: a volume may be in the middle of an update */
		return slu_fail(err, rc, "cannot read token file %s (%s): %s", t->file, t->from,
				strerror(-rc));
	}
	n = b.n;
	while (n && strchr(" \t\r\n", b.p[n - 1]))
		n--;
	if (!n || memchr(b.p, '\n', n)) {
		slu_buf_done(&b);
		a->token_stamp = (struct stamp){ 0 };
		if (a->authorization)
			return 0;
		return slu_fail(err, -EINVAL, "token file %s (%s) %s", t->file, t->from,
				n ? "has more than one line" : "is empty");
	}
	rc = set_authorization(a, "Bearer", b.p, n);
	explicit_bzero(b.p, b.n);
	slu_buf_done(&b);
	return rc;
}

static int fixed_authorization(struct kube_auth *a)
{
	const struct slu_kube_config *c = a->cfg;
	struct slu_buf plain = SLU_BUF_INIT(64 << 10), b64 = SLU_BUF_INIT(128 << 10);
	int rc;

	if (c->token.data)
		return set_authorization(a, "Bearer", c->token.data, c->token.n);
	if (!c->username)
		return 0;
	slu_buf_printf(&plain, "%s:%s", c->username, c->password ? c->password : "");
	rc = plain.error ? plain.error : slu_base64_encode(plain.p, plain.n, &b64);
	if (!rc)
		rc = set_authorization(a, "Basic", b64.p, b64.n);
	slu_buf_done(&plain);
	slu_buf_done(&b64);
	return rc;
}

/* ---- plug-ins ---- */

static void plugin_done(void *arg, int code, struct kube_exec_result *r,
			const struct slu_error *err)
{
	struct kube_auth *a = arg;
	const char *old = a->plugin.cert, *new = r->cert;

	a->run = NULL;
	a->plugin_code = code;
	if (code < 0) {
		a->plugin_err = *err;
		a->plugin_again_ns = slu_loop_now_ns(a->loop) + EXEC_PAUSE;
	} else {
		a->plugin_new_cert |= !old != !new || (old && strcmp(old, new));
		kube_exec_result_done(&a->plugin);
		a->plugin = *r;
		*r = (struct kube_exec_result){ 0 };
		a->plugin_ok = true;
		a->plugin_again_ns = 0;
		if (a->plugin.token)
			a->plugin_code = set_authorization(a, "Bearer", a->plugin.token,
							   strlen(a->plugin.token));
	}
	a->changed(a->arg);
}

static int plugin_ready(struct kube_auth *a, struct slu_error *err)
{
	int64_t now = slu_loop_now_ns(a->loop);
	int rc;

	if (a->plugin_ok && a->plugin.expires_s - EARLY_S > (int64_t)time(NULL))
		return 0;
	if (a->run)
		return -EAGAIN;
	if (now < a->plugin_again_ns) {
		/* The plug-in failed a moment ago.  Use its last credential while that is valid. */
		if (a->plugin_ok && a->plugin.expires_s > (int64_t)time(NULL))
			return 0;
		return slu_fail(err, a->plugin_code, "%s", a->plugin_err.text);
	}
	rc = kube_exec_start(a->loop, a->cfg, EXEC_TIMEOUT, plugin_done, a, &a->run, err);
	if (rc < 0) {
		a->plugin_code = rc;
		if (err)
			a->plugin_err = *err;
		a->plugin_again_ns = now + EXEC_PAUSE;
		return rc;
	}
	return -EAGAIN;
}

int kube_auth_get(struct kube_auth *a, const char **authorization, struct slu_error *err)
{
	int rc = 0;

	if (a->cfg->exec.command)
		rc = plugin_ready(a, err);
	else if (a->cfg->token.file)
		rc = look_at_token_file(a, err);
	else if (!a->authorization)
		rc = fixed_authorization(a);
	if (rc < 0)
		return rc;
	*authorization = a->authorization;
	return 0;
}

bool kube_auth_rejected(struct kube_auth *a)
{
	if (a->cfg->exec.command) {
		if (!a->plugin_ok)
			return false;
		a->plugin_ok = false;
		a->plugin_again_ns = 0;
		return true;
	}
	if (a->cfg->token.file) {
		a->token_look_ns = 0;
		/* Read the files again only if one of them has changed. */
		struct stamp s = a->token_stamp;

		return take_stamp(a->cfg->token.file, &s);
	}
	return false;
}

void kube_auth_describe(const struct kube_auth *a, char *out, size_t size)
{
	const struct slu_kube_config *c = a->cfg;
	int64_t end_s = a->tls ? slu_tls_not_after_s(a->tls) : INT64_MAX;
	char when[64] = "";

	if (end_s <= (int64_t)time(NULL)) {
		time_t t = (time_t)end_s;
		struct tm tm;

		gmtime_r(&t, &tm);
		strftime(when, sizeof when, ", which expired on %Y-%m-%dT%H:%M:%SZ", &tm);
	}
	if (c->exec.command)
		snprintf(out, size, "plug-in %s%s", c->exec.from, when);
	else if (c->token.from)
		snprintf(out, size, "token %s", c->token.from);
	else if (c->username)
		snprintf(out, size, "user name \"%s\" of users[\"%s\"] in %s", c->username, c->user,
			 c->source);
	else if (c->cert.from)
		snprintf(out, size, "client certificate %s%s", c->cert.from, when);
	else
		snprintf(out, size, "none; users[\"%s\"] in %s has no credentials", c->user,
			 c->source);
}

/* ---- TLS ---- */

static int blob_text(const struct kube_blob *b, struct slu_buf *file, struct slu_pem *out,
		     struct slu_error *err)
{
	int rc;

	if (!b->file) {
		*out = (struct slu_pem){ b->data, b->n };
		return 0;
	}
	file->max = PEM_MAX;
	rc = slu_file_read(b->file, file);
	if (!rc && !file->n)
		return slu_fail(err, -EINVAL, "%s is empty", b->from);
	if (rc < 0)
		return slu_fail(err, rc, "cannot read %s: %s", b->from, strerror(-rc));
	*out = (struct slu_pem){ file->p, file->n };
	return 0;
}

uint32_t kube_auth_generation(const struct kube_auth *a)
{
	return a->generation;
}

int kube_auth_tls(struct kube_auth *a, struct slu_tls **out, struct slu_error *err)
{
	const struct slu_kube_config *c = a->cfg;
	struct slu_buf ca = { 0 }, cert = { 0 }, key = { 0 };
	struct slu_tls_client_options o = { .insecure = c->insecure,
					    .server_name = c->tls_server_name,
					    .alpn = "h2",
					    .ca_from = c->ca.from,
					    .cert_from = c->cert.from,
					    .key_from = c->key.from };
	int64_t now = slu_loop_now_ns(a->loop);
	struct slu_tls *t = NULL;
	bool differs = a->plugin_new_cert;
	int rc;

	if (!c->addr.tls) {
		*out = NULL;
		return 0;
	}
	if (a->tls && !differs && now >= a->tls_look_ns) {
		a->tls_look_ns = now + LOOK_EVERY;
		differs |= take_stamp(c->ca.file, &a->ca_stamp);
		differs |= take_stamp(c->cert.file, &a->cert_stamp);
		differs |= take_stamp(c->key.file, &a->key_stamp);
	}
	if (a->tls && !differs) {
		*out = a->tls;
		return 0;
	}
	take_stamp(c->ca.file, &a->ca_stamp);
	take_stamp(c->cert.file, &a->cert_stamp);
	take_stamp(c->key.file, &a->key_stamp);
	rc = blob_text(&c->ca, &ca, &o.ca, err);
	if (!rc)
		rc = blob_text(&c->cert, &cert, &o.cert, err);
	if (!rc)
		rc = blob_text(&c->key, &key, &o.key, err);
	if (!rc && a->plugin.cert) {
		o.cert = (struct slu_pem){ a->plugin.cert, strlen(a->plugin.cert) };
		o.key = (struct slu_pem){ a->plugin.key, strlen(a->plugin.key) };
		o.cert_from = o.key_from = c->exec.from;
	}
	if (!rc)
		rc = slu_tls_client_new(&o, &t, err);
	if (key.p)
		explicit_bzero(key.p, key.n);
	slu_buf_done(&ca);
	slu_buf_done(&cert);
	slu_buf_done(&key);
	if (rc < 0) {
		if (!a->tls)
			return rc;
		/* Certificate and key are replaced one after the other; keep the old pair until
		 * both fit. */
		a->ca_stamp = a->cert_stamp = a->key_stamp = (struct stamp){ 0 };
		*out = a->tls;
		return 0;
	}
	slu_tls_unref(a->tls);
	a->tls = t;
	a->plugin_new_cert = false;
	a->generation++;
	*out = t;
	return 0;
}
