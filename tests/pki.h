/* pki.h — certificates for tests, made in memory: an authority and leaves with wishes. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct pki_pair {
	X509 *cert;
	EVP_PKEY *key;
	char *cert_pem, *key_pem; /* malloc'ed */
};

static char *pki_text(BIO *b)
{
	char *p, *out;
	long n = BIO_get_mem_data(b, &p);

	out = malloc((size_t)n + 1);
	memcpy(out, p, (size_t)n);
	out[n] = '\0';
	BIO_free(b);
	return out;
}

static void pki_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
}

/* A certificate for `cn`; `names` is "DNS:a,IP:127.0.0.1" or NULL for an authority; valid from now
 * + from_s to now + to_s.  `ca` signs; NULL: self-signed authority. */
static struct pki_pair pki_make(const char *cn, const char *names, long from_s, long to_s,
				const struct pki_pair *ca)
{
	static long serial = 1;
	struct pki_pair p = { .key = EVP_EC_gen("P-256"), .cert = X509_new() };
	X509_NAME *name = X509_get_subject_name(p.cert);
	X509 *issuer = ca ? ca->cert : p.cert;
	BIO *b;

	X509_set_version(p.cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(p.cert), serial++);
	X509_gmtime_adj(X509_getm_notBefore(p.cert), from_s);
	X509_gmtime_adj(X509_getm_notAfter(p.cert), to_s);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
	X509_set_issuer_name(p.cert, X509_get_subject_name(issuer));
	X509_set_pubkey(p.cert, p.key);
	if (names) {
		pki_ext(p.cert, issuer, NID_basic_constraints, "critical,CA:FALSE");
		pki_ext(p.cert, issuer, NID_subject_alt_name, names);
	} else {
		pki_ext(p.cert, issuer, NID_basic_constraints,
			ca ? "critical,CA:FALSE" : "critical,CA:TRUE");
	}
	X509_sign(p.cert, ca ? ca->key : p.key, EVP_sha256());
	b = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(b, p.cert);
	p.cert_pem = pki_text(b);
	b = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(b, p.key, NULL, NULL, 0, NULL, NULL);
	p.key_pem = pki_text(b);
	return p;
}

static void pki_free(struct pki_pair *p)
{
	X509_free(p->cert);
	EVP_PKEY_free(p->key);
	free(p->cert_pem);
	free(p->key_pem);
}
