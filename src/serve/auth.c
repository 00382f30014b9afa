#include "serve/auth.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "base/utf8.h"
#include "kube/write.h"

#define KEEP_NS  (10 * SLU_NS_PER_S)
#define KEPT_MAX 1024u
#define KEY_LEN  32u /* SHA-256 */
#define USER_LEN 128u
/* Any client may send any token.  More reviews than this at once would take time of the API server from
 * the bindings. */
#define ASKED_MAX 32u

/* A cached permission: the token may use this method on this path until `until_ns`.  The key is a cryptographic
 * digest, so that no caller can find another token with the same key and use the permission. */
struct kept {
	unsigned char key[KEY_LEN];
	char user[USER_LEN];
	int64_t until_ns; /* 0: free */
};

struct slu_auth {
	struct slu_kube_client *client;
	uint32_t asked; /* callers that wait for an answer */
	bool closed;    /* slu_auth_free() was called; the last answer frees the memory */
	struct kept kept[KEPT_MAX]; /* indexed by the key's first bytes; the newer entry stays */
};

struct check {
	struct slu_auth *a;
	struct slu_exchange *x;
	slu_auth_fn *fn;
	void *arg;
	unsigned char key[KEY_LEN];
	char user[USER_LEN]; /* the name of the user, once known; a long name is cut */
};

struct slu_auth *slu_auth_new(struct slu_kube_client *client)
{
	struct slu_auth *a = slu_calloc(1, sizeof *a);

	if (a)
		a->client = client;
	return a;
}

void slu_auth_free(struct slu_auth *a)
{
	if (a && a->asked)
		a->closed = true;
	else
		slu_free(a);
}

/* Digest the method, the token and the path, each with its terminating zero. */
static int key_of(const struct slu_http_request *q, const char *token, unsigned char key[KEY_LEN])
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char method = (unsigned char)q->method;
	bool done = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
		    EVP_DigestUpdate(md, &method, 1) == 1 &&
		    EVP_DigestUpdate(md, token, strlen(token) + 1) == 1 &&
		    EVP_DigestUpdate(md, q->path, strlen(q->path) + 1) == 1 &&
		    EVP_DigestFinal_ex(md, key, NULL) == 1;

	EVP_MD_CTX_free(md);
	return done ? 0 : -ENOMEM;
}

static struct kept *place_of(struct slu_auth *a, const unsigned char key[KEY_LEN])
{
	return &a->kept[(key[0] | (unsigned)key[1] << 8) % KEPT_MAX];
}

static void finish_check(struct check *c, int status, const char *why)
{
	struct slu_auth *a = c->a;

	a->asked--;
	if (status == 200) {
		struct kept *k = place_of(a, c->key);

		memcpy(k->key, c->key, KEY_LEN);
		memcpy(k->user, c->user, USER_LEN);
		k->until_ns = slu_clock_ns() + KEEP_NS;
	}
	if (a->closed) /* the caller may be freed, too */
		slu_http_reply_text(c->x, 503, "the daemon is stopping\n");
	else
		c->fn(c->arg, c->x, status, why);
	slu_free(c);
	if (a->closed && !a->asked)
		slu_free(a);
}

static const char *verb_of(const struct slu_http_request *q)
{
	return q->method == SLU_HTTP_GET ? "get" : q->method == SLU_HTTP_POST ? "post" : "other";
}

static void refuse_caller(struct check *c)
{
	const struct slu_http_request *q = slu_exchange_request(c->x);
	char why[300];

	snprintf(
		why, sizeof why,
		"not allowed; a ClusterRole with nonResourceURLs \"%.150s\" and verb \"%s\" is needed",
		q->path, verb_of(q));
	finish_check(c, 403, why);
}

static void access_done(void *arg, int allowed, const char *reason)
{
	struct check *c = arg;

	if (allowed < 0)
		finish_check(c, 503, "the API server does not say whether this is allowed");
	else if (allowed)
		finish_check(c, 200, c->user);
	else
		refuse_caller(c);
}

static void token_done(void *arg, int known, const struct slu_kuser *user, const char *why)
{
	struct check *c = arg;
	const struct slu_http_request *q = slu_exchange_request(c->x);
	struct slu_kaccess what = { .verb = verb_of(q), .path = q->path };

	if (known > 0)
		slu_utf8_cut(c->user, sizeof c->user, user->name);
	if (known < 0)
		finish_check(c, 503, "the API server does not say whose token this is");
	else if (!known)
		finish_check(c, 401, "the token is not valid in this cluster");
	else if (c->a->closed)
		finish_check(c, 503, "");
	else if (slu_kube_access_review(c->a->client, user, &what, access_done, c) < 0)
		finish_check(c, 503, "cannot ask the API server");
}

void slu_auth_check(struct slu_auth *a, struct slu_exchange *x, slu_auth_fn *fn, void *arg)
{
	const struct slu_http_request *q = slu_exchange_request(x);
	const char *h = slu_headers_get(q->headers, "authorization");
	const char *token = h && !strncasecmp(h, "Bearer ", 7) ? h + 7 : NULL;
	struct check *c;
	const struct kept *k;

	if (!token || !*token) {
		fn(arg, x, 401, "a Kubernetes bearer token is needed");
		return;
	}
	c = slu_calloc(1, sizeof *c);
	if (!c) {
		fn(arg, x, 503, "out of memory");
		return;
	}
	*c = (struct check){ .a = a, .x = x, .fn = fn, .arg = arg };
	if (key_of(q, token, c->key) < 0) {
		fn(arg, x, 503, "out of memory");
		slu_free(c);
		return;
	}
	k = place_of(a, c->key);
	if (k->until_ns > slu_clock_ns() && !memcmp(k->key, c->key, KEY_LEN)) {
		fn(arg, x, 200, k->user);
		slu_free(c);
		return;
	}
	if (a->asked == ASKED_MAX) {
		fn(arg, x, 503, "too many callers at once; try again");
		slu_free(c);
		return;
	}
	a->asked++;
	if (slu_kube_token_review(a->client, token, NULL, token_done, c) < 0)
		finish_check(c, 503, "cannot ask the API server");
}
