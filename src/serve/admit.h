/* admit.h — the webhook's answer to an AdmissionReview.
 *
 * The answer is a pure function of the review and the rules, so that every replica may serve it and a test needs no
 * server.  The webhook
 *  - notes who submitted and when, to the microsecond, on work that asks for Sluice (the API keeps
 *    neither), as annotations that users cannot forge: they are always overwritten at creation, and
 *    removed from objects that a controller makes from a template;
 *  - removes a priority or limit annotation, which only Sluice writes, later, for users who may set it;
 *  - refuses objects with a wrong setting (a group size that is no number), with a message;
 *  - holds all work in namespaces where holding is switched on: pods get a gate or Sluice's schedulerName, Jobs are
 *    suspended;
 *  - gives work that names Sluice but depends on decisions of the default scheduler (unbound claims,
 *    pod affinity, hard spread, resource claims) to that scheduler, gated: Sluice still decides when
 *    and where.
 * The webhook fails open: it lets objects that it does not understand pass unchanged. */
#pragma once
#include "base/buf.h"

#define SLU_ADMIT_USER "sluice.sh/user"
#define SLU_ADMIT_SEEN "sluice.sh/seen-us"
/* On a Job: "yes" if the webhook suspended it, "user" if its author did. */
#define SLU_ADMIT_HELD "sluice.sh/held"
#define SLU_ADMIT_GATE "fluxqueue"

struct slu_admit_rules {
	/* The schedulerNames of Sluice. */
	const char *const *scheduler;
	uint32_t n_scheduler;
	/* Accounts of controllers.  If one of them creates an object that has a controller, the object belongs
	 * to the user of its owner.  A name that ends in a colon stands for all accounts that begin with it. */
	const char *const *controller;
	uint32_t n_controller;
	/* Hold all work in this namespace (the caller has looked the namespace up). */
	bool hold;
	/* The schedulerName that held work gets, as from Fluxqueue ("FluxionScheduler"); NULL: it keeps its
	 * own. */
	const char *held_scheduler;
	/* Held work that names the default scheduler, and needs nothing that only that one decides, gets the first
	 * of `scheduler` instead of the gate. */
	bool binds;
	/* Is the claim bound to a volume?  NULL: not known, so the claim counts as unbound. */
	bool (*claim_bound)(void *arg, const char *ns, const char *claim);
	void *arg;
	/* Check whether `value` is valid for `key`: 0, or -EINVAL with a sentence for the user.  Returns 0 for
	 * unknown keys. */
	int (*check)(const char *key, const char *value, uint32_t max_size, struct slu_error *err);
	uint32_t max_size; /* larger gangs are refused */
	/* Check whether a key with the prefix of Sluice exists.  Called for objects that people submit; NULL: no
	 * check. */
	int (*known)(const char *key, struct slu_error *err);
};

/* Copy the namespace of the object under review to `out` (empty if it has none).  0, or -EINVAL if `review` is no
 * AdmissionReview of admission.k8s.io/v1. */
int slu_admit_namespace(const char *review, size_t n, char *out, size_t size,
			struct slu_error *err);

/* Append the answer to `out`.  0, -EINVAL if `review` is no AdmissionReview (the caller answers HTTP 400), or
 * -ENOMEM. */
int slu_admit(const char *review, size_t n, const struct slu_admit_rules *rules, int64_t now_us,
	      struct slu_buf *answer, struct slu_error *err);
