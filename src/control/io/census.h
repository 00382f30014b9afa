/* census.h — the io side of the audit: a fresh list of the cluster's objects from time to time.
 *
 * The mirror depends on watches, and a watch that loses an event gives no sign of it.  A census lists pods
 * and nodes page by page, keeps of each object only a hash of its uid and its version (16 bytes), and
 * passes them to the core, which compares them with the mirror (recover/census.c). */
#pragma once
#include "control/post/record.h"
#include "kube/codec.h"

struct slu_census;

/* The first census begins after one period; 0: none begins by itself.  The pool is that of the mirrors. */
int slu_census_new(struct slu_kube_client *client, struct slu_inbox *core, struct slu_strpool *pool,
		   int64_t period_s, struct slu_census **out, struct slu_error *err);
/* Before the client is freed. */
void slu_census_free(struct slu_census *s);
SLU_DEFINE_CLEANUP(struct slu_census, slu_census_free)

/* Set the period, from the next census on. */
void slu_census_period(struct slu_census *s, int64_t period_s);
/* Start a census at once, unless one is under way. */
void slu_census_now(struct slu_census *s);
