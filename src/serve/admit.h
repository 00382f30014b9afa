/* admit.h — the webhook's answer: an AdmissionReview in, an AdmissionReview out, nothing else.
 *
 * A pure function of its input, so that every replica may serve it and a test needs no server.  The
 * webhook
 *  - notes who submitted and when, to the microsecond, on work that asks for Sluice (the API keeps
 *    neither), as annotations that users cannot forge: they are always overwritten at creation, and
 *    removed from what a controller makes from a template;
 *  - removes a priority or limit annotation, which only Sluice writes, later, for users who may set it;
 *  - refuses what is plainly wrong (a group size that is no number), with a message;
 *  - holds all work in namespaces where holding is switched on: pods get a gate, Jobs are suspended;
 *  - gives work that names Sluice but needs what only the default scheduler decides (unbound claims,
 *    pod affinity, hard spread, resource claims) to the default scheduler, gated: Sluice decides when
 *    and where.
 * The webhook fails open: it lets objects that it does not understand pass unchanged. */
#pragma once
#include "base/buf.h"

#define SLU_ADMIT_USER "sluice.sh/user"
#define SLU_ADMIT_SEEN "sluice.sh/seen-us"
/* On a Job: "yes" if we suspended it, "user" if it came suspended. */
#define SLU_ADMIT_HELD "sluice.sh/held"
#define SLU_ADMIT_GATE "fluxqueue"

struct slu_admit_rules {
	/* schedulerNames that are ours. */
	const char *const *scheduler;
	uint32_t n_scheduler;
	/* Accounts of controllers: an object of theirs that has a controller was asked for by its
	 * owner's user.  One that ends in a colon stands for all that begin so. */
	const char *const *controller;
	uint32_t n_controller;
	/* Hold everything in this namespace (the caller looks the namespace up). */
	bool hold;
	/* Held work goes to this scheduler ("FluxionScheduler"), as Fluxqueue did; NULL: left as it
	 * is. */
	const char *held_scheduler;
	/* Is the claim bound to a volume?  NULL: not known, so the claim counts as unbound. */
	bool (*claim_bound)(void *arg, const char *ns, const char *claim);
	void *arg;
	/* Is `value` right for `key`?  -EINVAL with the sentence for the user; keys it does not
	 * know are 0. */
	int (*check)(const char *key, const char *value, uint32_t max_size, struct slu_error *err);
	uint32_t max_size; /* larger gangs are refused */
	/* Does a key with our prefix exist?  Asked about what people submit; NULL: not asked. */
	int (*known)(const char *key, struct slu_error *err);
};

/* The namespace a review is about, copied to `out` (empty if there is none). 0, or -EINVAL if this
 * is no AdmissionReview of admission.k8s.io/v1. */
int slu_admit_namespace(const char *review, size_t n, char *out, size_t size,
			struct slu_error *err);

/* Append the answer.  0; -EINVAL if `review` is no AdmissionReview (answer HTTP 400), -ENOMEM. */
int slu_admit(const char *review, size_t n, const struct slu_admit_rules *rules, int64_t now_us,
	      struct slu_buf *answer, struct slu_error *err);
