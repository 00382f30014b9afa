#include "serve/certs.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define DAY_S          86400
#define DNS_MAX        16
#define NAME_MAX_BYTES 253

SLU_DEFINE_CLEANUP(X509, X509_free)
SLU_DEFINE_CLEANUP(EVP_PKEY, EVP_PKEY_free)
SLU_DEFINE_CLEANUP(BIO, BIO_free_all)

static int fail_openssl(struct slu_error *err, const char *doing)
{
	char text[160];

	ERR_error_string_n(ERR_get_error(), text, sizeof text);
	ERR_clear_error();
	return slu_fail(err, -EIO, "certificate: %s: %s", doing, text);
}

static int check_names(const char *const *dns, uint32_t n, struct slu_error *err)
{
	if (!n || n > DNS_MAX)
		return slu_fail(err, -EINVAL, "certificate: %u names, want 1 to %u", n, DNS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		size_t len = strspn(dns[i], "abcdefghijklmnopqrstuvwxyz0123456789-.");

		if (!len || len > NAME_MAX_BYTES || dns[i][len])
			return slu_fail(err, -EINVAL, "certificate: \"%.80s\" is not a DNS name",
					dns[i]);
	}
	return 0;
}

/* ---- PEM ---- */

static char *take_bio(BIO *b)
{
	char *p;
	long n = BIO_get_mem_data(b, &p);

	return n > 0 ? slu_strndup(p, (size_t)n) : NULL;
}

static char *pem_cert(X509 *x)
{
	slu_cleanup(BIO_free_allp) BIO *b = BIO_new(BIO_s_mem());

	return b && PEM_write_bio_X509(b, x) ? take_bio(b) : NULL;
}

static char *pem_key(EVP_PKEY *k)
{
	slu_cleanup(BIO_free_allp) BIO *b = BIO_new(BIO_s_mem());

	return b && PEM_write_bio_PrivateKey(b, k, NULL, NULL, 0, NULL, NULL) ? take_bio(b) : NULL;
}

static X509 *read_cert(const char *pem)
{
	slu_cleanup(BIO_free_allp) BIO *b = pem ? BIO_new_mem_buf(pem, -1) : NULL;

	return b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
}

static EVP_PKEY *read_key(const char *pem)
{
	slu_cleanup(BIO_free_allp) BIO *b = pem ? BIO_new_mem_buf(pem, -1) : NULL;

	return b ? PEM_read_bio_PrivateKey(b, NULL, NULL, NULL) : NULL;
}

/* ---- making ---- */

static bool extend(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool good;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	good = e && X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	return good;
}

/* New certificate with serial number, lifetime and subject, which CA and leaf have in common. */
static X509 *new_certificate(EVP_PKEY *key, const char *name, int64_t now_s, int days)
{
	slu_cleanup(X509_freep) X509 *x = X509_new();
	unsigned char serial[8];
	X509_NAME *subject;
	uint64_t v = 0;

	if (!x || RAND_bytes(serial, sizeof serial) != 1)
		return NULL;
	for (size_t i = 0; i < sizeof serial; i++)
		v = v << 8 | serial[i];
	subject = X509_get_subject_name(x);
	if (!X509_set_version(x, X509_VERSION_3) ||
	    !ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), v >> 1 | 1) ||
	    !ASN1_TIME_set(X509_getm_notBefore(x), (time_t)(now_s - DAY_S)) ||
	    !ASN1_TIME_set(X509_getm_notAfter(x), (time_t)(now_s + (int64_t)days * DAY_S)) ||
	    !X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
					-1, -1, 0) ||
	    !X509_set_pubkey(x, key))
		return NULL;
	return slu_take(x);
}

static X509 *make_ca(EVP_PKEY *key, int64_t now_s)
{
	slu_cleanup(X509_freep)
		X509 *x = new_certificate(key, "sluice CA", now_s, SLU_CERTS_CA_DAYS);

	if (!x || !X509_set_issuer_name(x, X509_get_subject_name(x)) ||
	    !extend(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !extend(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") ||
	    !extend(x, x, NID_subject_key_identifier, "hash") || !X509_sign(x, key, EVP_sha256()))
		return NULL;
	return slu_take(x);
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, const char *const *dns,
		       uint32_t n, int64_t now_s)
{
	slu_cleanup(X509_freep)
		X509 *x = new_certificate(key, "sluice", now_s, SLU_CERTS_LEAF_DAYS);
	char names[DNS_MAX * (NAME_MAX_BYTES + 5) + 1] = "";

	for (uint32_t i = 0; i < n; i++)
		snprintf(names + strlen(names), sizeof names - strlen(names), "%sDNS:%s",
			 i ? "," : "", dns[i]);
	if (!x || !X509_set_issuer_name(x, X509_get_subject_name(ca)) ||
	    !extend(x, ca, NID_basic_constraints, "critical,CA:FALSE") ||
	    !extend(x, ca, NID_key_usage, "critical,digitalSignature") ||
	    !extend(x, ca, NID_ext_key_usage, "serverAuth") ||
	    !extend(x, ca, NID_subject_key_identifier, "hash") ||
	    !extend(x, ca, NID_authority_key_identifier, "keyid:always") ||
	    !extend(x, ca, NID_subject_alt_name, names) || !X509_sign(x, ca_key, EVP_sha256()))
		return NULL;
	return slu_take(x);
}

static void wipe_secret(char **s)
{
	if (*s)
		OPENSSL_cleanse(*s, strlen(*s));
	slu_free(*s);
	*s = NULL;
}

static int set_leaf(struct slu_certs *c, X509 *ca, EVP_PKEY *ca_key, const char *const *dns,
		    uint32_t n, int64_t now_s, struct slu_error *err)
{
	slu_cleanup(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
	slu_cleanup(X509_freep) X509 *leaf = NULL;
	char *cert, *keytext;

	if (!key)
		return fail_openssl(err, "making a key");
	leaf = make_leaf(key, ca, ca_key, dns, n, now_s);
	if (!leaf)
		return fail_openssl(err, "making the leaf");
	cert = pem_cert(leaf);
	keytext = pem_key(key);
	if (!cert || !keytext) {
		slu_free(cert);
		wipe_secret(&keytext);
		return slu_fail(err, -ENOMEM, "certificate: out of memory");
	}
	slu_free(c->cert);
	wipe_secret(&c->key);
	c->cert = cert;
	c->key = keytext;
	return 0;
}

int slu_certs_make(struct slu_certs *out, const char *const *dns, uint32_t n, int64_t now_s,
		   struct slu_error *err)
{
	slu_cleanup(EVP_PKEY_freep) EVP_PKEY *key = NULL;
	slu_cleanup(X509_freep) X509 *ca = NULL;
	struct slu_certs c = { 0 };
	int rc = check_names(dns, n, err);

	if (rc < 0)
		return rc;
	key = EVP_EC_gen("P-256");
	if (!key)
		return fail_openssl(err, "making a key");
	ca = make_ca(key, now_s);
	if (!ca)
		return fail_openssl(err, "making the CA");
	c.ca_cert = pem_cert(ca);
	c.ca_key = pem_key(key);
	rc = c.ca_cert && c.ca_key ? set_leaf(&c, ca, key, dns, n, now_s, err)
				   : slu_fail(err, -ENOMEM, "certificate: out of memory");
	if (rc < 0) {
		slu_certs_done(&c);
		return rc;
	}
	*out = c;
	return 0;
}

int slu_certs_renew(struct slu_certs *c, const char *const *dns, uint32_t n, int64_t now_s,
		    struct slu_error *err)
{
	slu_cleanup(X509_freep) X509 *ca = read_cert(c->ca_cert);
	slu_cleanup(EVP_PKEY_freep) EVP_PKEY *key = read_key(c->ca_key);
	int rc = check_names(dns, n, err);

	if (rc < 0)
		return rc;
	if (!ca || !key)
		return fail_openssl(err, "reading the CA");
	return set_leaf(c, ca, key, dns, n, now_s, err);
}

/* ---- checking ---- */

static bool ends_within(X509 *x, int64_t now_s, int days)
{
	time_t limit = (time_t)(now_s + (int64_t)days * DAY_S);

	return X509_cmp_time(X509_get0_notAfter(x), &limit) <= 0;
}

enum slu_certs_state slu_certs_check(const struct slu_certs *c, const char *const *dns, uint32_t n,
				     int64_t now_s, struct slu_error *err)
{
	slu_cleanup(X509_freep) X509 *ca = read_cert(c->ca_cert);
	slu_cleanup(X509_freep) X509 *leaf = read_cert(c->cert);
	slu_cleanup(EVP_PKEY_freep) EVP_PKEY *ca_key = read_key(c->ca_key);
	slu_cleanup(EVP_PKEY_freep) EVP_PKEY *key = read_key(c->key);

	ERR_clear_error();
	if (!ca || !ca_key || X509_check_private_key(ca, ca_key) != 1) {
		ERR_clear_error();
		slu_fail(err, 0, "the CA cannot be read or does not fit its key");
		return SLU_CERTS_UNUSABLE;
	}
	if (ends_within(ca, now_s, SLU_CERTS_LEAF_DAYS)) {
		slu_fail(err, 0, "the CA expires within a year");
		return SLU_CERTS_UNUSABLE;
	}
	if (!leaf || !key || X509_check_private_key(leaf, key) != 1 ||
	    X509_verify(leaf, X509_get0_pubkey(ca)) != 1) {
		ERR_clear_error();
		slu_fail(err, 0,
			 "the leaf cannot be read, does not fit its key or is not of this CA");
		return SLU_CERTS_LEAF_DUE;
	}
	if (ends_within(leaf, now_s, SLU_CERTS_RENEW_DAYS)) {
		slu_fail(err, 0, "the leaf expires within %d days", SLU_CERTS_RENEW_DAYS);
		return SLU_CERTS_LEAF_DUE;
	}
	for (uint32_t i = 0; i < n; i++)
		if (X509_check_host(leaf, dns[i], 0, 0, NULL) != 1) {
			slu_fail(err, 0, "the leaf is not for %s", dns[i]);
			return SLU_CERTS_LEAF_DUE;
		}
	return SLU_CERTS_GOOD;
}

void slu_certs_done(struct slu_certs *c)
{
	slu_free(c->ca_cert);
	slu_free(c->cert);
	wipe_secret(&c->ca_key);
	wipe_secret(&c->key);
	*c = (struct slu_certs){ 0 };
}
