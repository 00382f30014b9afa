/* hold.h — held objects: stand-ins for suspended Jobs, and letting go. */
#pragma once
#include "control/rules/hold.h"
#include "control/run/run.h"

/* An object that is held, or was: the outermost of a kind we know (rules/hold.h). */
struct held {
	struct slu_entry e; /* key: uid */
	const struct slu_kobj *obj;
	uint64_t serial;
	struct group *group;         /* of its members; NULL */
	SLU_VEC(struct pod *) stand; /* for the pods of a suspended Job */
	bool anew;                   /* its template may have changed */
	bool looks;                  /* is on the list `held_look` */
	bool resumed;                /* a resume is on its way, the mirror has not seen it yet */
	bool failed;                 /* ... and failed, or is to be noted only: at again_us */
	bool there;                  /* ... since all its pods are there */
	bool back;                   /* its turn is taken back: that is on its way */
	bool going, coming; /* a resume ahead of its turn is on its way; so is its taking back */
	char *resume;       /* the patch */
	uint64_t run;       /* for which it was resumed */
	SLU_VEC(slu_node) place; /* ... there */
	int64_t again_us;
	bool asked; /* a patch that holds it was sent for this generation */
	int64_t asked_generation;
	bool marked; /* carries the label fluxqueue/unschedulable */
	/* as last told */
	int64_t told_us;
	uint64_t told;
	int told_state;
};

struct holds {
	struct slu_table table;
	struct slu_held_sink sink;
	SLU_VEC(struct held *) look;    /* changed: may have to be held */
	SLU_VEC(struct pod *) released; /* wait for the scheduler they name */
	int64_t next_us, next_report_us, next_moved_us, next_ahead_us;
};

/* ---- objects.c ---- */

void core_held_owner(struct slu_core *c, const struct slu_kobj *obj, bool gone);
/* Look again at all objects of the namespace (NULL: of all). */
void core_held_space(struct slu_core *c, const struct slu_kobj *ns);
/* What admission adds to pods of the namespace (NULL: of all) has changed. */
void core_held_templates(struct slu_core *c, const char *ns);
void core_held_pod(struct slu_core *c, struct pod *p, bool gone);
void core_held_look(struct slu_core *c); /* hold what the webhook did not see */
void core_held_link(struct held *h, struct group *g);
void core_held_unlink(struct group *g); /* the group goes */
void core_held_done(struct slu_core *c);
/* Pods of its owners that somebody else placed, and that live. */
uint32_t core_held_strangers(struct slu_core *c, const struct group *g);
void core_held_leave(struct slu_core *c, struct held *h); /* let go of its stand-ins */
void core_held_again(struct slu_core *c, struct held *h); /* look at it in the next cycle */

/* ---- ahead.c ---- */

bool core_ahead_is(const struct held *h);
uint32_t core_ahead_pods(const struct held *h); /* of its members that exist and may start */
/* It is ahead by the cluster, but has had its turn. */
bool core_ahead_begun(struct slu_core *c, const struct held *h);
void core_ahead(struct slu_core *c); /* who may go, who must come back */
/* What an answer to a patch of the Job means; true: that was all of it. */
bool core_ahead_written(struct slu_core *c, struct held *h, const struct slu_rec_written *w);

/* ---- release.c ---- */

void core_held_resume(struct slu_core *c, struct run *r); /* Jobs whose stand-ins have a slot */
void core_held_release(struct slu_core *c, struct run *r, struct slot *s);
/* A Job of its (this one) was resumed, and is not seen to be yet: the intent is not carried out. */
bool core_held_resumes(const struct run *r);
bool core_held_resumed(const struct run *r, const struct held *h);
void core_held_written(struct slu_core *c, const struct slu_rec_written *w);
void core_held_watch(struct slu_core *c); /* released pods that are refused, resumes that failed */
void core_held_released(struct slu_core *c, struct pod *p); /* (or not any more) */
void core_held_gone(struct slu_core *c, struct pod *p);
/* After a start: a place a released Job of the group had that `r` does not hold; NULL.  Borrowed
 * until the next call. */
const char *core_held_place(struct slu_core *c, const struct group *g, const struct run *r);

/* ---- view.c ---- */

void core_held_report(struct slu_core *c);
