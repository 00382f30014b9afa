/* held.h — the table of held objects, and the groups whose members they make.
 *
 * The room hold acts on them: stand-ins, resuming, releasing. */
#pragma once
#include "control/group/group.h"

/* The turn of a held Job: the decision for it, until the mirror shows the effect in the Job.
 *
 *	         resume sent              refused
 *	     ┌─────────────────► RESUMING ◄──────► RETRYING
 *	     │                             again_us
 *	     │ all its pods exist          again_us
 *	NONE ├─────────────────► NOTE_DUE ◄──────► NOTING
 *	     │                             refused
 *	     │ its pods have ended already
 *	     └─────────────────► BEGUN
 *
 * From each of them TAKEN_BACK, when its pods do not come or cannot start: the Job is being suspended
 * again.  Each returns to NONE once the mirror shows the Job released, or TAKEN_BACK and suspended.
 * core_held_turn_to() refuses every other change. */
enum held_turn {
	TURN_NONE,     /* the Job waits, or the mirror shows all that was decided */
	TURN_RESUMING, /* the patch that releases it is on its way */
	TURN_RETRYING, /* ... and failed, may have been overtaken, or is not urgent: it is sent at again_us */
	TURN_NOTE_DUE, /* the Job was resumed before its turn: the patch only notes its places, at again_us */
	TURN_NOTING, /* ... and is on its way */
	TURN_BEGUN, /* the Job was resumed before its turn, and a pod of it has ended: nothing to write */
	TURN_TAKEN_BACK, /* the patch that suspends it again is on its way */
};

/* The patch on its way for a Job that is resumed before its turn (hold/ahead.c).
 *
 *	     resume sent                 suspension sent
 *	NONE ───────────► GOING     NONE ───────────────► COMING_BACK
 *
 * Both return to NONE when the mirror shows the patch, or when the patch fails. */
enum held_early { EARLY_NONE, EARLY_GOING, EARLY_COMING_BACK };

/* An object that is held, or was: the outermost of a kind we know (rules/hold.h). */
struct held {
	struct slu_entry e; /* key: uid */
	const struct slu_kobj *obj;
	uint64_t serial;
	struct group *group;         /* of its members; NULL */
	SLU_VEC(struct pod *) stand; /* for the pods of a suspended Job; the last may be a lot */
	uint32_t stands;             /* members that they are */
	bool crowded;                /* the object has no stand-ins: there are too many already */
	bool new_template;           /* its template may have changed: other stand-ins are needed */
	bool listed;                 /* is on the list `look` */
	enum held_turn turn;
	enum held_early early;
	char *resume;             /* the patch of its turn */
	uint64_t run;             /* the run for which it was resumed */
	SLU_VEC(slu_node) place;  /* ... and the nodes of that run */
	int64_t again_us;         /* no patch of its turn, and no early resume, before this time */
	int64_t asked_generation; /* the generation that a patch was sent to hold; -1: none was */
	int64_t ask_us;   /* ... which is sent again then if nothing has changed; CORE_NEVER */
	uint32_t asked;   /* patches sent to hold that generation */
	uint32_t running; /* members that come from it and run, as of the last report */
	bool marked;      /* carries the label fluxqueue/unschedulable */
	/* as last reported to the sink */
	int64_t told_us;
	uint64_t told;
	int told_state;
};

static inline struct held *held_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct held, e) : NULL;
}

/* The held object with that uid in the namespace, NULL: there is none. */
struct held *core_held_find(const struct slu_core *c, const char *ns, const char *uid);
void core_held_link(struct held *h, struct group *g); /* NULL: to none */
void core_held_part(struct held *h);                  /* from its group */
void core_held_unlink(struct group *g);               /* all of its own */
/* Link the held object that the pod comes from, if there is one, to the pod's group. */
void core_held_link_pod(struct slu_core *c, struct pod *p);
/* Number of living pods of the group's owners that another scheduler placed. */
uint32_t core_held_strangers(struct slu_core *c, const struct group *g);
void core_held_again(struct slu_core *c, struct held *h); /* look at it in the next cycle */
/* Send a patch of the object without waiting for the answer: the watch shows its effect. */
void core_held_patch(struct slu_core *c, const struct held *h, const char *text);
/* The one way to change each of the two states; see the drawings above. */
void core_held_turn_to(struct slu_core *c, struct held *h, enum held_turn to);
void core_held_early_to(struct slu_core *c, struct held *h, enum held_early to);
/* Whether the Job exists with all its pods, so that its turn only has to be noted on it. */
bool core_held_notes(const struct held *h);
/* Whether the Job was resumed for the run and the mirror does not show that yet. */
bool core_held_resumed(const struct held *h, uint64_t run);
