#include "net/tls_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct slu_tls {
	SSL_CTX *ctx;
	uint32_t refs;
	bool server, insecure;
	char *server_name;
	int64_t not_after_s;
};

static const unsigned char alpn_server[] = "\x02h2\x08http/1.1";

/* The oldest OpenSSL error as text, queue cleared. */
static const char *ssl_text(char *out, size_t size)
{
	unsigned long e = ERR_get_error();
	const char *reason = e ? ERR_reason_error_string(e) : NULL;

	snprintf(out, size, "%s", reason ? reason : "unknown error");
	ERR_clear_error();
	return out;
}

static int no_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf, (void)size, (void)rwflag, (void)arg;
	return 0; /* encrypted keys are refused, never asked about on a terminal */
}

static int64_t asn1_seconds(const ASN1_TIME *t)
{
	struct tm tm;

	if (!t || ASN1_TIME_to_tm(t, &tm) != 1)
		return INT64_MAX;
	return (int64_t)timegm(&tm);
}

static void date_text(int64_t s, char *out, size_t size)
{
	time_t t = (time_t)s;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int load_roots(SSL_CTX *ctx, struct slu_pem ca, const char *from, struct slu_error *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	BIO *bio = BIO_new_mem_buf(ca.p, (int)ca.n);
	char why[128];
	int n = 0, rc = 0;
	X509 *x;

	if (!bio)
		return -ENOMEM;
	while ((x = PEM_read_bio_X509(bio, NULL, no_password, NULL))) {
		if (X509_STORE_add_cert(store, x) == 1)
			n++;
		X509_free(x);
	}
	if (!n)
		rc = slu_fail(err, -EINVAL, "%s holds no certificate: %s", from,
			      ssl_text(why, sizeof why));
	ERR_clear_error();
	BIO_free(bio);
	return rc;
}

static int load_chain(struct slu_tls *t, struct slu_pem cert, const char *from,
		      struct slu_error *err)
{
	BIO *bio = BIO_new_mem_buf(cert.p, (int)cert.n);
	char why[128];
	X509 *x;
	int rc = 0;

	if (!bio)
		return -ENOMEM;
	x = PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL);
	if (!x || SSL_CTX_use_certificate(t->ctx, x) != 1) {
		rc = slu_fail(err, -EINVAL, "%s is not a PEM certificate: %s", from,
			      ssl_text(why, sizeof why));
		goto out;
	}
	t->not_after_s = asn1_seconds(X509_get0_notAfter(x));
	for (;;) {
		X509 *more = PEM_read_bio_X509(bio, NULL, no_password, NULL);

		if (!more)
			break;
		if (SSL_CTX_add0_chain_cert(t->ctx, more) != 1) {
			X509_free(more);
			break;
		}
	}
	ERR_clear_error();
out:
	X509_free(x);
	BIO_free(bio);
	return rc;
}

static int load_key(struct slu_tls *t, struct slu_pem key, const char *from, const char *cert_from,
		    struct slu_error *err)
{
	BIO *bio = BIO_new_mem_buf(key.p, (int)key.n);
	EVP_PKEY *k;
	char why[128];
	int rc = 0;

	if (!bio)
		return -ENOMEM;
	k = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	if (!k)
		rc = slu_fail(err, -EINVAL, "%s is not an unencrypted PEM private key: %s", from,
			      ssl_text(why, sizeof why));
	else if (SSL_CTX_use_PrivateKey(t->ctx, k) != 1 || SSL_CTX_check_private_key(t->ctx) != 1)
		rc = slu_fail(err, -EINVAL,
			      "the key in %s does not belong to the certificate in %s", from,
			      cert_from);
	ERR_clear_error();
	EVP_PKEY_free(k);
	BIO_free(bio);
	return rc;
}

static struct slu_tls *tls_new(bool server)
{
	struct slu_tls *t = slu_calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->refs = 1;
	t->server = server;
	t->not_after_s = INT64_MAX;
	t->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (!t->ctx) {
		ERR_clear_error();
		slu_free(t);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
	SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					 SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(t->ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
					    SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_default_passwd_cb(t->ctx, no_password);
	SSL_CTX_set_read_ahead(t->ctx, 1);
	return t;
}

/* The name of a certificate in messages if the caller has given no source. */
static const char *source_or(const char *from, const char *otherwise)
{
	return from ? from : otherwise;
}

/* Remember the certificate that was not accepted, because OpenSSL drops it with the failed
 * handshake. */
static int rejected_index(void)
{
	static int index = -1;

	if (index < 0)
		index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	return index;
}

static int on_verify(int good, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	X509 *x = X509_STORE_CTX_get_current_cert(store);

	if (!good && x && !SSL_get_ex_data(ssl, rejected_index())) {
		X509_up_ref(x);
		SSL_set_ex_data(ssl, rejected_index(), x);
	}
	return good;
}

static int client_fill(struct slu_tls *t, const struct slu_tls_client_options *o,
		       struct slu_error *err)
{
	int rc;

	t->insecure = o->insecure;
	if (o->server_name && *o->server_name) {
		t->server_name = slu_strdup(o->server_name);
		if (!t->server_name)
			return -ENOMEM;
	}
	SSL_CTX_set_verify(t->ctx, o->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
			   o->insecure ? NULL : on_verify);
	if (o->ca.n) {
		rc = load_roots(t->ctx, o->ca, source_or(o->ca_from, "the CA bundle"), err);
		if (rc < 0)
			return rc;
	} else if (!o->insecure && SSL_CTX_set_default_verify_paths(t->ctx) != 1) {
		ERR_clear_error();
		return slu_fail(err, -ENOENT, "the system's root certificates cannot be read");
	}
	if (o->cert.n) {
		const char *from = source_or(o->cert_from, "the client certificate");

		rc = load_chain(t, o->cert, from, err);
		if (!rc)
			rc = load_key(t, o->key, source_or(o->key_from, "the client key"), from,
				      err);
		if (rc < 0)
			return rc;
	}
	if (o->alpn) {
		unsigned char wire[64];
		size_t n = strlen(o->alpn);

		if (n >= sizeof wire)
			return -EINVAL;
		wire[0] = (unsigned char)n;
		memcpy(wire + 1, o->alpn, n);
		SSL_CTX_set_alpn_protos(t->ctx, wire, (unsigned)n + 1);
	}
	return 0;
}

int slu_tls_client_new(const struct slu_tls_client_options *o, struct slu_tls **out,
		       struct slu_error *err)
{
	slu_cleanup(slu_tls_unrefp) struct slu_tls *t = tls_new(false);
	int rc;

	if (!t)
		return -ENOMEM;
	rc = client_fill(t, o, err);
	if (rc < 0)
		return rc;
	*out = slu_take(t);
	return 0;
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen,
		       const unsigned char *in, unsigned inlen, void *arg)
{
	(void)ssl, (void)arg;
	if (SSL_select_next_proto((unsigned char **)out, outlen, alpn_server,
				  sizeof alpn_server - 1, in, inlen) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK; /* no common protocol: fall back to HTTP/1.1 */
	return SSL_TLSEXT_ERR_OK;
}

int slu_tls_server_new(const struct slu_tls_server_options *o, struct slu_tls **out,
		       struct slu_error *err)
{
	slu_cleanup(slu_tls_unrefp) struct slu_tls *t = tls_new(true);
	const char *cert_from = source_or(o->cert_from, "the server certificate");
	int rc;

	if (!t)
		return -ENOMEM;
	rc = load_chain(t, o->cert, cert_from, err);
	if (!rc)
		rc = load_key(t, o->key, source_or(o->key_from, "the server key"), cert_from, err);
	if (!rc && o->client_ca.n) {
		rc = load_roots(t->ctx, o->client_ca, source_or(o->ca_from, "the client CA"), err);
		SSL_CTX_set_verify(
			t->ctx,
			SSL_VERIFY_PEER | (o->require_client ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
			NULL);
	}
	if (rc < 0)
		return rc;
	SSL_CTX_set_alpn_select_cb(t->ctx, choose_alpn, NULL);
	SSL_CTX_set_session_id_context(t->ctx, (const unsigned char *)"sluice", 6);
	*out = slu_take(t);
	return 0;
}

struct slu_tls *slu_tls_ref(struct slu_tls *t)
{
	if (t)
		t->refs++;
	return t;
}

void slu_tls_unref(struct slu_tls *t)
{
	if (!t || --t->refs)
		return;
	SSL_CTX_free(t->ctx);
	slu_free(t->server_name);
	slu_free(t);
}

int64_t slu_tls_not_after_s(const struct slu_tls *t)
{
	return t->not_after_s;
}

SSL *slu_tls_session(struct slu_tls *t, const char *host, struct slu_error *err)
{
	SSL *ssl = SSL_new(t->ctx);
	const char *name = t->server_name ? t->server_name : host;
	unsigned char ip[16];
	bool is_ip;

	if (!ssl) {
		ERR_clear_error();
		slu_fail(err, -ENOMEM, "no memory for a TLS session");
		return NULL;
	}
	if (t->server) {
		SSL_set_accept_state(ssl);
		return ssl;
	}
	SSL_set_connect_state(ssl);
	if (!name || !*name)
		return ssl;
	is_ip = inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1;
	if (!is_ip)
		SSL_set_tlsext_host_name(ssl, name);
	if (!t->insecure) {
		X509_VERIFY_PARAM *p = SSL_get0_param(ssl);

		X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		if ((is_ip ? X509_VERIFY_PARAM_set1_ip_asc(p, name)
			   : X509_VERIFY_PARAM_set1_host(p, name, 0)) != 1) {
			ERR_clear_error();
			SSL_free(ssl);
			slu_fail(err, -EINVAL, "\"%s\" is not a name a certificate can carry",
				 name);
			return NULL;
		}
	}
	return ssl;
}

void slu_tls_session_free(SSL *ssl)
{
	if (!ssl)
		return;
	X509_free(SSL_get_ex_data(ssl, rejected_index()));
	SSL_free(ssl);
}

/* "DNS:a, IP:10.0.0.1" of a certificate, for the message about a wrong name. */
static void alt_names(X509 *x, char *out, size_t size)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	size_t n = 0;

	out[0] = '\0';
	for (int i = 0; names && i < sk_GENERAL_NAME_num(names) && n + 2 < size; i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
		char one[INET6_ADDRSTRLEN + 1] = "";
		const char *s = one;
		int len = 0;

		if (g->type == GEN_DNS) {
			s = (const char *)ASN1_STRING_get0_data(g->d.dNSName);
			len = ASN1_STRING_length(g->d.dNSName);
		} else if (g->type == GEN_IPADD) {
			len = ASN1_STRING_length(g->d.iPAddress);
			inet_ntop(len == 4 ? AF_INET : AF_INET6,
				  ASN1_STRING_get0_data(g->d.iPAddress), one, sizeof one);
			if (len != 4 && len != 16)
				continue;
			len = (int)strlen(one);
		} else {
			continue;
		}
		n += (size_t)snprintf(out + n, size - n, "%s%.*s", n ? ", " : "", SLU_MIN(len, 64),
				      s);
	}
	GENERAL_NAMES_free(names);
}

/* Report which certificate of the server was not accepted, and why. */
static int explain_verify(SSL *ssl, long v, struct slu_error *err)
{
	X509 *x = SSL_get_ex_data(ssl, rejected_index());
	char subject[160] = "?", detail[200];
	X509_NAME *name = x ? X509_get_subject_name(x) : NULL;

	if (name)
		X509_NAME_oneline(name, subject, sizeof subject);
	switch (v) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		date_text(asn1_seconds(x ? X509_get0_notAfter(x) : NULL), detail, sizeof detail);
		return slu_fail(err, -EKEYEXPIRED, "server certificate %s expired on %s", subject,
				detail);
	case X509_V_ERR_CERT_NOT_YET_VALID:
		date_text(asn1_seconds(x ? X509_get0_notBefore(x) : NULL), detail, sizeof detail);
		return slu_fail(err, -EKEYREJECTED,
				"server certificate %s is not valid before %s; check the clock",
				subject, detail);
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		detail[0] = '\0';
		if (x)
			alt_names(x, detail, sizeof detail);
		return slu_fail(
			err, -EKEYREJECTED,
			"server certificate %s is for other names (%s) than the one asked for",
			subject, *detail ? detail : "none");
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		return slu_fail(err, -EKEYREJECTED,
				"server certificate %s is signed by an unknown authority (%s)",
				subject, X509_verify_cert_error_string(v));
	default:
		return slu_fail(err, -EKEYREJECTED, "server certificate %s is not accepted: %s",
				subject, X509_verify_cert_error_string(v));
	}
}

/* Alerts by which a server refuses our certificate. */
static bool is_client_cert_alert(int reason)
{
	switch (reason) {
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return true;
	default:
		return false;
	}
}

int slu_tls_explain(SSL *ssl, int ret, const char *what, struct slu_error *err)
{
	int saved = errno, kind = SSL_get_error(ssl, ret), reason;
	unsigned long e = ERR_peek_error();
	long v = SSL_get_verify_result(ssl);
	char why[160];

	reason = ERR_GET_REASON(e);
	if (kind == SSL_ERROR_ZERO_RETURN || (kind == SSL_ERROR_SYSCALL && !e && !saved)) {
		ERR_clear_error();
		return slu_fail(err, -ECONNRESET, "the peer closed the connection during TLS %s",
				what);
	}
	if (kind == SSL_ERROR_SYSCALL && !e) {
		ERR_clear_error();
		return slu_fail(err, -saved, "TLS %s: %s", what, strerror(saved));
	}
	if (v != X509_V_OK && !SSL_is_server(ssl) && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
		ERR_clear_error();
		return explain_verify(ssl, v, err);
	}
	if (!SSL_is_server(ssl) && is_client_cert_alert(reason)) {
		ssl_text(why, sizeof why);
		return slu_fail(err, -EACCES,
				"the server does not accept our client certificate (%s)", why);
	}
	if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
		ERR_clear_error();
		return slu_fail(err, -EPROTO, "the peer does not speak TLS");
	}
	ssl_text(why, sizeof why);
	return slu_fail(err, -EPROTO, "TLS %s failed: %s", what, why);
}

char *slu_tls_peer_cn(SSL *ssl)
{
	X509 *x = SSL_get0_peer_certificate(ssl);
	char cn[256];

	if (!x || SSL_get_verify_result(ssl) != X509_V_OK)
		return NULL;
	if (X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof cn) <= 0)
		return NULL;
	return slu_strdup(cn);
}
