/* group.h — pods that belong together, and what their group asks for.
 *
 *	group ──► pods (members in the mirror)
 *	  └─────► runs (jobs of the queue), held objects its members come from
 */
#pragma once
#include "base/map.h"
#include "control/cluster/cluster.h"
#include "control/rules/life.h"
#include "control/rules/group.h"
#include "control/rules/kinds.h"

/* Why a group that a user took out of the queue does not run. */
#define CORE_CANCELLED "it was cancelled; sluice release puts it back into the queue"
#define CORE_HELD      "it is held; sluice release lets it wait for its turn again"

struct group {
	struct slu_entry e; /* key: ns '\0' id.key */
	char *key;
	char *ns;
	char *user; /* the submitter, if the webhook recorded one; else its namespace */
	struct slu_group_id id;
	struct slu_group_wish wish;
	SLU_VEC(struct pod *) pod; /* records of its members ... */
	uint32_t others;           /* ... and members without one: run/lots.c */
	uint32_t stands;           /* of the records: stand-ins (hold/objects.c) */
	SLU_VEC(struct run *) run;
	SLU_VEC(struct held *) owned; /* held objects its members come from */
	uint64_t reported;            /* the pass in which those were last reported: hold/view.c */
	int64_t first_seen_us;
	uint64_t job;            /* id of the gang's run, also when it is over */
	uint64_t reuse;          /* id a store remembers for the gang; 0: take a new one */
	uint64_t kept, kept_sum; /* id of its row in the store (0: none), and a hash of the row */
	int64_t promised_s;      /* from the store: the first promise to its gang; 0: none */
	const char *plan_cause;  /* from the store: why its gang is planned as it is; NULL: none */
	SLU_VEC(char *) maker;   /* uids of the objects that make its members: makers.c */
	struct slu_life life;    /* as of the last core_life_look() */
	uint32_t named;          /* the size that a user wrote down; 0: none */
	uint32_t staying;        /* makers that are not being deleted, as of the last look */
	int64_t calm_us;         /* a group without a named size does not start before: makers.c */
	bool calms;              /* the group is on the list `calm` */
	bool retired;            /* an earlier life of a name: its members only leave */
	bool dirty;
	bool on_hold, cancelled; /* a person said so: sluice hold, sluice cancel */
	/* Set by a person: overrides the values of the objects. */
	bool has_priority;
	int32_t priority;
	int64_t limit_s; /* 0: none was set */
	bool begun; /* its gang has started, at least in part: later members need not wait for all */
	uint32_t ended_ok, ended_bad;
	uint32_t ended_alone; /* of ended_ok: those without a maker */
	int64_t newest_us;    /* when the last of ended_ok was created */
	int64_t used;         /* millicore seconds of members that have gone */
	int64_t ended_us;     /* when the last member ended; 0: none has */
	int64_t started_s;    /* when its gang started; 0: it has not */
	bool fills;           /* the group is on the list `fill` */
	bool disrupted;       /* the group starts again because a member was taken away */
	char *wrong;          /* the mistake in its objects; NULL: there is none */
	slu_node avoid[8];    /* nodes that refused a member lately: run/undo.c */
	uint32_t n_avoid, undone;
	uint32_t stalled; /* times its Jobs did not make all their pods: hold/release.c */
	char *stall_text; /* ... and what was missing; NULL */
	int64_t avoid_until_s, again_s;
	bool after_waits; /* the group waits for other groups: run/after.c */
	/* run/spaces.c: its neighbours in its namespace, and its place among those that wait. */
	bool in_space;
	struct group *space_next, *space_prev;
	uint32_t wait_at;
	char *after_text;
	char *scheduler;
	/* status last written */
	int64_t told_us, told_start_s, waiting_us, status_us;
	int64_t stuck_us; /* when an event last said that a member does not start; 0: never */
	uint32_t told_position, told_times;
	uint32_t told_least, told_most; /* sizes its members say */
	bool keys_read;                 /* its misspelt keys were reported */
	uint64_t told_cause;            /* in the last event */
	const char *told_phase;
	char *told_text; /* dropped when a user cancels, holds or releases the group */
};

struct groups {
	struct slu_table table;
	struct slu_table held;       /* held objects by uid: held.h */
	SLU_VEC(struct held *) look; /* ... that changed and may have to be held */
	SLU_VEC(struct group *) dirty;
	/* Hashes of the namespaces all of whose groups are dirty: touch.c. */
	struct slu_map touched;
	SLU_VEC(struct pod *) unowned; /* pods whose controllers are not seen yet: members.c */
	/* News for the rooms above, which the core hands on at once: pods that joined, groups that
	 * came with them; and groups that are over, until the end of the cycle. */
	SLU_VEC(struct pod *) joined;
	SLU_VEC(struct group *) born, over;
	SLU_VEC(struct slu_life_maker) makers;   /* of the group that is looked at */
	SLU_VEC(struct slu_life_member) members; /* the same */
	SLU_VEC(struct group *) calm;            /* groups whose objects are still coming */
	int64_t last_seen_us;
	uint32_t waiting; /* as of the last status pass */
};

static inline struct group *group_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct group, e) : NULL;
}

static inline uint32_t core_members(const struct group *g)
{
	return g->pod.n + g->others;
}

/* Whether this is the first cycle after a start with a long queue: it only decides, and leaves
 * explanations to the next cycle. */
static inline bool core_hurries(const struct slu_core *c)
{
	return c->hurry && c->groups->table.n > 5000;
}

/* ---- members.c ---- */

/* A managed pod that lives joins its group, at once or when its controllers have been seen. */
void core_member_meet(struct slu_core *c, struct pod *p);
void core_member_forget(struct slu_core *c, struct pod *p);
void core_members_join(struct slu_core *c); /* pods that have waited long enough join now */
int64_t core_members_wake_us(const struct slu_core *c);

/* ---- makers.c ---- */

/* Note the object that makes the pod.  0 or -ENOMEM. */
int core_maker_join(struct slu_core *c, struct group *g, const struct pod *p);
/* Read g->life, and which of its members are leaving, from the objects behind the group.  False: memory
 * ran out. */
bool core_life_look(struct slu_core *c, struct group *g);
/* Compute g->life again with the size that was named, right after core_life_look(). */
void core_life_size(struct slu_core *c, struct group *g, uint32_t named);
/* Members the makers still want alive; pods that were seen to end are subtracted before the makers'
 * statuses count them. */
int64_t core_group_wanted(struct slu_core *c, const struct group *g);
/* Whether a StatefulSet makes its members: their places are kept however long it takes. */
bool core_group_ordered(struct slu_core *c, const struct group *g);
/* Whether only the leader of a LeaderWorkerSet's group exists.  The group waits a moment for the
 * workers; after that the leader starts alone, with places kept for the workers it will bring. */
bool core_led_alone(struct slu_core *c, struct group *g);
/* Whether a group without a named size waits a moment, because its objects still come or go. */
bool core_calm_waits(struct slu_core *c, struct group *g);
void core_calm_forget(struct slu_core *c, struct group *g);
void core_calm_wake(struct slu_core *c);
int64_t core_calm_wake_us(const struct slu_core *c);

/* ---- table.c ---- */

struct group *core_group_find(struct slu_core *c, const char *ns, const char *key);
struct group *core_group_join(struct slu_core *c, struct pod *p);
/* Whether the pod's objects name the group. */
bool core_group_names(struct slu_core *c, const struct group *g, const struct pod *p);
/* Let the pod join the earlier life of its group that has this key (with its namespace). */
struct group *core_group_join_retired(struct slu_core *c, struct pod *p, const char *key);
/* Mark the group as an earlier life: no PodGroup speaks of it. */
void core_group_retire(struct group *g);
void core_group_dirty(struct slu_core *c, struct group *g);
/* Whether another scheduler put all its members on nodes that Sluice does not use. */
bool core_group_elsewhere(const struct group *g);
/* The group is over: no lookup finds it any more.  Its memory stays until the end of the cycle, so that
 * the room report can still say how it ended. */
void core_group_over(struct slu_core *c, struct group *g);
void core_groups_reap(struct slu_core *c); /* free the groups that are over */
void core_groups_done(struct slu_core *c);

/* ---- touch.c: which groups may look different now ---- */

void core_groups_touch_owner(struct slu_core *c, const struct slu_kobj *o);
void core_groups_touch(struct slu_core *c, const struct slu_kobj *obj); /* PodGroup, claim */
/* Make the refused groups dirty: they may be acceptable now. */
void core_groups_touch_wrong(struct slu_core *c);
/* Make groups dirty: with `claims` those whose pods have volume claims, else those whose pods NUMA
 * zones may restrict. */
void core_groups_touch_bound(struct slu_core *c, bool claims);

/* ---- wish.c ---- */

/* Read what the group asks for into g->wish; false: the wish is wrong, or cannot be told yet. */
bool core_wish_read(struct slu_core *c, struct group *g);
void core_wish_set(struct group *g); /* apply the values that a person set to the wish */
/* Report a mistake in the group's objects once, in an event; the group is not planned until the user corrects it. */
void core_group_wrong(struct slu_core *c, struct group *g, const char *fmt, ...) SLU_PRINTF(3, 4);

/* ---- native.c ---- */

const struct slu_kpodgroup *core_podgroup(struct slu_core *c, const struct group *g); /* or NULL */
bool core_native_lacks(struct slu_core *c, const struct group *g); /* its PodGroup does not exist */
/* Read the wishes of its PodGroup beyond slu_group_wish(); pg may be NULL or of another kind. */
int core_native_wish(struct slu_core *c, const struct slu_kpodgroup *pg, struct slu_group_wish *w,
		     struct slu_error *err);
/* Whether the member was disrupted and its group can only be disrupted as a whole. */
bool core_native_together(struct slu_core *c, const struct pod *p);
