#include "serve/https.h"

#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "serve/cert_secret.h"

#define PEM_MAX (1u << 20)
#define LOOK_NS (5 * SLU_NS_PER_S)

struct slu_https {
	struct slu_loop *loop;
	struct slu_server *server;
	int listener;
	const struct slu_config *config;
	const char *client_ca;
	struct slu_cert_secret *cert;
	struct slu_timer look;
	struct timespec cert_time, key_time;
};

/* ---- files ---- */

static int read_file(const char *path, struct slu_buf *b, struct slu_error *err)
{
	int rc = slu_file_read(path, b);

	return rc < 0 ? slu_fail(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* Add the authorities of client certificates and make the identity. */
static int with_clients(struct slu_tls_server_options *o, const char *client_ca,
			struct slu_tls **out, struct slu_error *err)
{
	slu_cleanup(slu_buf_done) struct slu_buf ca = SLU_BUF_INIT(PEM_MAX);
	int rc = *client_ca ? read_file(client_ca, &ca, err) : 0;

	if (rc < 0)
		return rc;
	o->client_ca = (struct slu_pem){ slu_buf_str(&ca), ca.n };
	o->ca_from = client_ca;
	return slu_tls_server_new(o, out, err);
}

static int from_files(const struct slu_config *c, const char *client_ca, struct slu_tls **out,
		      struct slu_error *err)
{
	slu_cleanup(slu_buf_done) struct slu_buf cert = SLU_BUF_INIT(PEM_MAX);
	slu_cleanup(slu_buf_done) struct slu_buf key = SLU_BUF_INIT(PEM_MAX);
	struct slu_tls_server_options o = { .cert_from = c->serve.certificate,
					    .key_from = c->serve.key };
	int rc = read_file(c->serve.certificate, &cert, err);

	if (!rc)
		rc = read_file(c->serve.key, &key, err);
	if (rc < 0)
		return rc;
	o.cert = (struct slu_pem){ slu_buf_str(&cert), cert.n };
	o.key = (struct slu_pem){ slu_buf_str(&key), key.n };
	return with_clients(&o, client_ca, out, err);
}

static bool newer(const char *path, struct timespec *seen)
{
	struct stat st;
	bool is;

	if (stat(path, &st) < 0)
		return false;
	is = st.st_mtim.tv_sec != seen->tv_sec || st.st_mtim.tv_nsec != seen->tv_nsec;
	*seen = st.st_mtim;
	return is;
}

static bool files_changed(struct slu_https *h)
{
	bool cert = newer(h->config->serve.certificate, &h->cert_time);

	return newer(h->config->serve.key, &h->key_time) || cert;
}

static void look_at_files(void *arg)
{
	struct slu_https *h = arg;
	slu_cleanup(slu_tls_unrefp) struct slu_tls *tls = NULL;
	struct slu_error err = { 0 };

	slu_timer_start(&h->look, h->loop, LOOK_NS, look_at_files, h);
	if (!files_changed(h))
		return;
	/* Perhaps only one of the two files is new yet: look again. */
	if (from_files(h->config, h->client_ca, &tls, &err) < 0) {
		slu_log(SLU_WARN, "serve.https: new certificate rejected; the old one stays in use",
			SLU_STR("err", err.text));
		h->cert_time = (struct timespec){ 0 };
		return;
	}
	slu_server_tls(h->server, h->listener, tls);
	slu_log(SLU_INFO, "serve.https: certificate reloaded");
}

/* ---- a certificate of our own ---- */

static int from_bundle(const struct slu_certs *c, const char *client_ca, struct slu_tls **out,
		       struct slu_error *err)
{
	struct slu_tls_server_options o = { .cert = { c->cert, strlen(c->cert) },
					    .key = { c->key, strlen(c->key) },
					    .cert_from = "own certificate",
					    .key_from = "own key" };

	return with_clients(&o, client_ca, out, err);
}

static void use_certificate(void *arg, const struct slu_certs *c)
{
	struct slu_https *h = arg;
	slu_cleanup(slu_tls_unrefp) struct slu_tls *tls = NULL;
	struct slu_error err = { 0 };

	if (from_bundle(c, h->client_ca, &tls, &err) < 0) {
		slu_log(SLU_ERROR, "serve.https: cannot use the certificate",
			SLU_STR("err", err.text));
		return;
	}
	slu_server_tls(h->server, h->listener, tls);
	slu_log(SLU_INFO, "serve.https: using the certificate in its Secret",
		SLU_STR("secret", h->config->serve.secret));
}

int slu_https_first(const struct slu_config *config, const char *client_ca, struct slu_tls **out,
		    struct slu_error *err)
{
	struct slu_certs c = { 0 };
	int rc;

	if (!*config->serve.certificate != !*config->serve.key)
		return slu_fail(err, -EINVAL,
				"serve.certificate and serve.key must be given together");
	if (*config->serve.certificate) {
		rc = from_files(config, client_ca, out, err);
		return rc < 0 ? slu_fail_prefix(err, rc, "serve.certificate") : 0;
	}
	rc = slu_certs_make(&c, config->serve.names.p, config->serve.names.n, time(NULL), err);
	if (rc < 0)
		return slu_fail_prefix(err, rc, "serve.names");
	rc = from_bundle(&c, client_ca, out, err);
	slu_certs_done(&c);
	return rc;
}

int slu_https_new(struct slu_loop *loop, struct slu_kube_client *client, struct slu_server *server,
		  int listener, const struct slu_config *config, const char *client_ca,
		  struct slu_https **out, struct slu_error *err)
{
	slu_cleanup(slu_https_freep) struct slu_https *h = slu_calloc(1, sizeof *h);
	int rc = 0;

	if (!h)
		return slu_fail(err, -ENOMEM, "out of memory");
	h->loop = loop;
	h->server = server;
	h->listener = listener;
	h->config = config;
	h->client_ca = client_ca;
	if (*config->serve.certificate) {
		files_changed(h);
		slu_timer_start(&h->look, loop, LOOK_NS, look_at_files, h);
	} else if (*config->serve.secret) {
		rc = slu_cert_secret_new(
			&(struct slu_cert_secret_setup){ .loop = loop,
							 .client = client,
							 .ns = config->serve.ns,
							 .secret = config->serve.secret,
							 .dns = config->serve.names.p,
							 .n_dns = config->serve.names.n,
							 .what = "serve.https",
							 .have = use_certificate,
							 .arg = h },
			&h->cert, err);
	}
	if (rc < 0)
		return rc;
	*out = slu_take(h);
	return 0;
}

void slu_https_free(struct slu_https *h)
{
	if (!h)
		return;
	slu_timer_stop(&h->look);
	slu_cert_secret_free(h->cert);
	slu_free(h);
}
