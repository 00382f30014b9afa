/* auth.h — decide whether a caller may make a request.  TokenReview checks the bearer token; a
 * SubjectAccessReview for each request, as a non-resource URL with the verb of the request, tells
 * whether its owner may.  Answers are kept for a short while, so that a scrape does not cost two
 * requests. */
#pragma once
#include "kube/client.h"
#include "net/server.h"

struct slu_auth;

/* Called once: 200 with the name of the user, or 401, 403, 503 with a sentence. */
typedef void slu_auth_fn(void *arg, struct slu_exchange *x, int status, const char *why);

struct slu_auth *slu_auth_new(struct slu_kube_client *client);
/* A caller whose answer is not there yet gets 503 when the client's request ends, without a call of its
 * function. */
void slu_auth_free(struct slu_auth *a);
void slu_auth_check(struct slu_auth *a, struct slu_exchange *x, slu_auth_fn *fn, void *arg);
