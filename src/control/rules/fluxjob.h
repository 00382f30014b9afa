/* fluxjob.h — FluxJobs (jobs.converged-computing.org): how held work is written as one, and what
 * one that a user wrote asks for.
 *
 * Pure: these look at objects and write texts.  The life of FluxJobs is in fluxjob/fluxjobs.c. */
#pragma once
#include "base/buf.h"
#include "control/config/config.h"
#include "control/rules/hold.h"

/* Label of the FluxJobs that Sluice made: one without it is a user's own. */
#define SLU_FLUXJOB_BY   "app.kubernetes.io/managed-by"
#define SLU_FLUXJOB_US   "sluice"
#define SLU_FLUXJOB_NAME 254u

/* "<name>-job" and the like for a held object.  Beyond 253 characters it is cut, with a hash. */
void slu_fluxjob_name(const struct slu_kobj *held, char out[SLU_FLUXJOB_NAME]);
/* The whole object that wraps a held one, as JSON: owner, and the jobspec of its pods
 * (docs/fluxjobs.md shows one).  0, -EINVAL for a kind that is never held, -ENOMEM. */
int slu_fluxjob_wrap(const struct slu_held_view *v, int64_t duration_s, struct slu_buf *out);
/* The spec of the FluxJob alone, for an object that changed its size. */
int slu_fluxjob_spec(const struct slu_held_view *v, int64_t duration_s, struct slu_buf *out);
bool slu_fluxjob_is_ours(const struct slu_kfluxjob *f);

/* ---- jobspecs of users ---- */

#define SLU_FLUXJOB_ROLES 8u
#define SLU_FLUXJOB_SLOTS 10000u
#define SLU_FLUXJOB_TEXT  (256u << 10) /* of a jobspec */

struct slu_fluxjob_role {
	uint32_t min, max; /* slots; each lies in one node */
	int64_t cores, memory, gpus;
	bool alone; /* nodes were asked for: each slot on one of its own */
};

struct slu_fluxjob_ask {
	struct slu_fluxjob_role role[SLU_FLUXJOB_ROLES];
	uint32_t n_role, min, max;
	char level[32]; /* all within one; "": anywhere */
	bool exclusive;
	int64_t duration_s; /* 0: until it is deleted */
	char queue[64];
	char *where; /* nodeSelectorTerms its nodes satisfy, as JSON; NULL: any node */
};

/* What a FluxJob of a user asks for.  -EINVAL with a sentence when it has no jobspec, a broken one,
 * or one that asks for what nodes of a cluster do not have; -ENOMEM. */
int slu_fluxjob_read(const struct slu_kfluxjob *f, const struct slu_config *cfg,
		     struct slu_fluxjob_ask *out, struct slu_error *err);
void slu_fluxjob_done(struct slu_fluxjob_ask *a); /* after success or failure */
