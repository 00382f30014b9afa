/* lease.h — leader election on a Lease, by the rules of client-go, so that its clients and ours can
 * share a lock.
 *
 *	FOLLOWER ──lease free, absent or expired, write accepted──► LEADER
 *	   ▲                                                          │
 *	   └──── no write accepted for renew_s, or another holds it ──┘
 *
 * Expiry is judged by our own clock alone: a lease is expired when its record has not changed for
 * duration_s since we first saw it that way; clocks of machines are never compared.
 *
 * A leader may act only while slu_lease_held() says so: it counts from the start of the last
 * accepted write, so with duration_s > renew_s no other replica can have taken over.  The term is the
 * lease's leaseTransitions, which grows with every change of holder: put it into what you write to
 * fence it.
 *
 * slu_elector is the pure half (results in, requests out, the caller's clock), slu_lease drives it.
 */
#pragma once
#include "kube/client.h"
#include "kube/codec.h"

struct slu_lease_options {
	const char *ns, *name;
	const char *id;     /* unique among the candidates, e.g. "host_uuid" */
	int32_t duration_s; /* 0: 15 */
	int32_t renew_s;    /* 0: 10; below duration_s */
	int64_t retry_ns;   /* 0: 2 s, up to a fifth more by jitter */
};

/* Role changes, on the loop's thread.  Must not free the lease. */
struct slu_lease_handler {
	void (*leading)(void *arg, int32_t term);
	void (*lost)(void *arg);
	void (*observed)(void *arg, const char *holder); /* a replica holds it; may be NULL */
	void *arg;
};

/* ---- the pure half ---- */

struct slu_elector;

enum slu_elector_ask {
	SLU_ELECTOR_WAIT, /* nothing until wake_ns */
	SLU_ELECTOR_GET,
	SLU_ELECTOR_CREATE, /* body: a new lease */
	SLU_ELECTOR_PATCH,  /* body: merge patch with the version in it */
};

int slu_elector_new(const struct slu_lease_options *o, const struct slu_lease_handler *h,
		    uint64_t seed, struct slu_elector **out, struct slu_error *err);
void slu_elector_free(struct slu_elector *e);
/* What to do now; *wake_ns is the latest time to ask again.  While a request is under way, the
 * elector only watches the deadline. now_ns is monotonic, now_us the wall clock for the record. */
enum slu_elector_ask slu_elector_step(struct slu_elector *e, int64_t now_ns, int64_t now_us,
				      struct slu_buf *body, int64_t *wake_ns);
/* The answer: the lease (CREATE and PATCH give it back, too) or NULL with the outcome. */
void slu_elector_answer(struct slu_elector *e, int64_t now_ns, enum slu_kube_outcome outcome,
			const struct slu_klease *l);
/* Give the lease up; true: send the PATCH in body.  The elector no longer leads in either case. */
bool slu_elector_release(struct slu_elector *e, int64_t now_us, struct slu_buf *body);
bool slu_elector_held(const struct slu_elector *e, int64_t now_ns);
/* Until when the leader may act if no further answer arrives; 0: this elector does not lead. */
int64_t slu_elector_until(const struct slu_elector *e);
/* The holder of the lease as far as we know; "": no replica. */
const char *slu_elector_holder(const struct slu_elector *e);

/* ---- on a loop ---- */

struct slu_lease;

int slu_lease_new(struct slu_kube_client *c, struct slu_kcodec *codec,
		  const struct slu_lease_options *o, const struct slu_lease_handler *h,
		  struct slu_lease **out, struct slu_error *err);
/* Stops without giving up the lease: it expires.  Free it before its client. */
void slu_lease_free(struct slu_lease *l);
SLU_DEFINE_CLEANUP(struct slu_lease, slu_lease_free)
/* Give the lease up so that the next leader need not wait; `done` is called once the server has
 * answered (or failed to). */
void slu_lease_release(struct slu_lease *l, slu_call_fn *done, void *arg);
/* Whether this replica leads and may act at this moment.  Any thread. */
bool slu_lease_held(const struct slu_lease *l);
const char *slu_lease_holder(const struct slu_lease *l);
