/* held.h — held objects: which there are, and whose members they make.
 *
 * What is done with them (stand-ins, resuming, releasing) is in the room hold. */
#pragma once
#include "control/group/group.h"

/* An object that is held, or was: the outermost of a kind we know (rules/hold.h). */
struct held {
	struct slu_entry e; /* key: uid */
	const struct slu_kobj *obj;
	uint64_t serial;
	struct group *group;         /* of its members; NULL */
	SLU_VEC(struct pod *) stand; /* for the pods of a suspended Job */
	bool crowded;                /* has none: too many stand already */
	bool anew;                   /* its template may have changed */
	bool looks;                  /* is on the list `look` */
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

static inline struct held *held_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct held, e) : NULL;
}

struct held *core_held_find(const struct slu_core *c, const char *uid); /* NULL: not held */
void core_held_link(struct held *h, struct group *g);                   /* NULL: to none */
void core_held_part(struct held *h);                                    /* from its group */
void core_held_unlink(struct group *g);                                 /* all of its own */
/* The held object the pod comes from, if there is one, belongs to the pod's group. */
void core_held_link_pod(struct slu_core *c, struct pod *p);
/* Pods of its owners that somebody else placed, and that live. */
uint32_t core_held_strangers(struct slu_core *c, const struct group *g);
void core_held_again(struct slu_core *c, struct held *h); /* look at it in the next cycle */
/* It was resumed for the run, and is not seen to be yet. */
bool core_held_resumed(const struct held *h, uint64_t run);
