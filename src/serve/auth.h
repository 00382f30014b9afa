/* auth.h — decide whether a caller may make a request.  TokenReview checks the bearer token; a
 * SubjectAccessReview for each request, as a non-resource URL with the verb of the request, tells
 * whether the owner of the token may make it.  Answers are cached for a short while, so that not every scrape costs
 * two requests to the API server. */
#pragma once
#include "kube/client.h"
#include "net/server.h"

struct slu_auth;

/* Called once: 200 with the name of the user, or 401, 403, 503 with a sentence. */
typedef void slu_auth_fn(void *arg, struct slu_exchange *x, int status, const char *why);

struct slu_auth *slu_auth_new(struct slu_kube_client *client);
/* Free it.  A caller that still waits for an answer gets 503 when the request to the API server ends; its function
 * is not called. */
void slu_auth_free(struct slu_auth *a);
void slu_auth_check(struct slu_auth *a, struct slu_exchange *x, slu_auth_fn *fn, void *arg);
