/* fluxjob.h — FluxJob objects: those that Sluice makes for held work, and those of users, with phantoms as pods. */
#pragma once
#include "control/rules/fluxjob.h"
#include "control/hold/hold.h"

/* The life of a user's own FluxJob; one that wraps held work stays UNREAD.
 *
 *	          its jobspec is wrong
 *	       ┌───────────────────────► REFUSED
 *	       │ no room for its slots
 *	UNREAD ├───────────────────────► CROWDED ──┐ room came
 *	 ▲ │   │ its phantoms are made             ▼
 *	 │ │   └───────────────────────────────► LIVES
 *	 │ │ it has ended                          │
 *	 │ └───────────────────────────► OVER      │
 *	 └── a new jobspec, or its phantoms end ───┘
 *
 * A new jobspec makes a FluxJob UNREAD in each of these states.  One that ends loses its phantoms first, and
 * one that had ended when Sluice first saw it is OVER at once.
 * core_fluxjob_to() refuses every other change. */
enum fluxjob_life {
	FLUXJOB_UNREAD,
	FLUXJOB_REFUSED, /* `message` says why */
	FLUXJOB_CROWDED, /* waits for room for its slots */
	FLUXJOB_LIVES,   /* has phantoms */
	FLUXJOB_OVER,
};

/* A FluxJob: one that wraps held work, or a user's own. */
struct fluxjob {
	struct slu_entry e; /* key: ns/name */
	char *key;
	const char *name;             /* in key */
	const struct slu_kfluxjob *k; /* NULL: not in the cluster (yet) */
	const struct slu_kobj *obj;   /* the held object it wraps; NULL: a user's own */
	bool own;                     /* a user's own */
	bool claim; /* made for a client of the gRPC services; not in the cluster */
	enum fluxjob_life life;
	bool open;        /* counted among the FluxJobs that are not over */
	int64_t turn_us;  /* when core_fluxjobs() looks at it next */
	uint32_t turn_at; /* its place in the heap + 1; 0: not in it */
	int64_t look_us;  /* of a user's own that runs: no check before this time */
	int64_t asked_us; /* when its creation was requested; 0: it was not */
	uint32_t pods;    /* number of pods for which its spec was last written */
	uint32_t wanted;  /* number of pods that the held object wants now */
	struct slu_fluxjob_ask ask;
	uint64_t spec;    /* hash of the text from which `ask` was read */
	uint32_t counted; /* its slots among those counted for its namespace */
	/* The status as it should be, and when the difference to the object must be written. */
	enum slu_held_state state;
	bool ok;
	uint64_t job;
	uint32_t position;
	int64_t planned_s, start_s;
	char *nodes, *places, *message;
	char *had_nodes; /* its last nodes, reported again at its end */
	int64_t had_start_s;
	uint64_t told;
	enum slu_held_state told_state, due_state;
	int64_t due_us, told_us;
	uint32_t told_times; /* in this state */
};

/* A phantom as it is now, or for the last time.  Holds a reference. */
struct core_shown {
	const struct slu_kobj *obj;
	bool gone;
	uint32_t others; /* slots exactly like it: run/lots.c */
};

/* The phantom that others of the same role and FluxJob are copies of, while a batch of them is made. */
struct phantom_like {
	const struct slu_kpod *pod; /* nameless; holds a reference; NULL: there is none */
	const struct fluxjob *f;
	const struct slu_fluxjob_role *role;
};

struct fluxjobs {
	struct slu_table table;
	bool absent, said;
	SLU_VEC(struct fluxjob *) turns; /* a heap by turn_us */
	uint32_t open, crowded;          /* FluxJobs not over; those that wait for room for slots */
	SLU_VEC(uint64_t) claims_over;   /* numbers of claims that ended, for core_claims() */
	struct slu_kcodec *codec;        /* makes phantoms */
	struct phantom_like like;
	SLU_VEC(struct core_shown) shown; /* phantoms that changed, for the mirror */
	struct slu_map slots;             /* number of phantoms of each namespace */
	uint64_t n_slots;                 /* number of all phantoms */
	bool freed;                       /* phantoms were removed since the last pass */
	int64_t try_us;        /* when FluxJobs refused by `pace` try again; 0: none was refused */
	struct core_pace pace; /* how fast phantoms are made */
	int64_t words_us;      /* until when writes of passing states are paid for */
};

/* ---- fluxjobs.c ---- */

void core_fluxjob_synced(struct slu_core *c, bool absent, bool refused);
void core_fluxjob_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
struct fluxjob *core_fluxjob_of(struct slu_core *c, const char *ns, const char *name);
void core_fluxjob_to(struct slu_core *c, struct fluxjob *f, enum fluxjob_life to);
/* Write changed statuses, and end the FluxJobs that are over. */
void core_fluxjobs(struct slu_core *c);
void core_fluxjobs_done(struct slu_core *c);

/* The number of a claim, behind the last dash of its name. */
uint64_t core_claim_number(const char *name);

/* ---- turns.c ---- */

/* Make room in the heap for one more FluxJob.  0 or -ENOMEM. */
int core_fluxjob_turn_room(struct slu_core *c);
/* Set the turn of the FluxJob to `us` unless it comes earlier. */
void core_fluxjob_turn_by(struct slu_core *c, struct fluxjob *f, int64_t us);
void core_fluxjob_turn_none(struct slu_core *c, struct fluxjob *f);
/* The next FluxJob whose turn has come; NULL: there is none, and the timer is set for the first. */
struct fluxjob *core_fluxjob_turn(struct slu_core *c);

/* ---- status.c ---- */

/* The status in the cluster is out of date: decide when to write it. */
void core_fluxjob_due(struct slu_core *c, struct fluxjob *f);
/* Pay for the write of the status.  0: it may be written; otherwise the time to try again. */
int64_t core_fluxjob_pace(struct slu_core *c, const struct fluxjob *f);
/* Write the status of the FluxJob to the cluster. */
void core_fluxjob_tell(struct slu_core *c, struct fluxjob *f);
uint64_t core_fluxjob_digest(const struct fluxjob *f);
bool core_fluxjob_over(const struct fluxjob *f); /* its state is the last one */

/* ---- phantom.c ---- */

int core_phantoms_make(struct slu_core *c, struct fluxjob *f);
/* Whether the FluxJob has to wait before its phantoms are made: its namespace, or all namespaces
 * together, have too many slots, or its namespace had too many made just now. */
bool core_phantoms_crowded(struct slu_core *c, const struct fluxjob *f);
void core_phantoms_end(struct slu_core *c, struct fluxjob *f, const struct slu_kfluxjob *k,
		       bool ok);
void core_phantoms_place(struct slu_core *c);
/* Drop the phantom that serves as the pattern: its jobspec or the settings may have changed. */
void core_phantom_forget(struct slu_core *c);
