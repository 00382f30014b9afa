/* fluxjob.h — FluxJob objects: ours for held work, users' own with phantoms for pods. */
#pragma once
#include "control/rules/fluxjob.h"
#include "control/hold/hold.h"

/* The life of a user's own FluxJob; one that wraps held work stays UNREAD.
 *
 *	          its jobspec is wrong
 *	       ┌───────────────────────► REFUSED
 *	       │ no room for its slots
 *	UNREAD ├───────────────────────► CROWDED ──┐ room came
 *	   ▲   │ its phantoms are made             ▼
 *	   │   └───────────────────────────────► LIVES ────► OVER
 *	   └── a new jobspec, before it runs ──────┘
 *
 * A new jobspec makes each of them UNREAD, and what ended before we saw it is OVER at once.
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
	bool claim;                   /* nobody but a client of the gRPC services knows it */
	enum fluxjob_life life;
	bool open;        /* counted among those that are not over */
	int64_t turn_us;  /* something is to be done then */
	uint32_t turn_at; /* its place in the heap + 1; 0: not in it */
	int64_t look_us;  /* a user's own that runs: nothing is looked for until then */
	int64_t asked_us; /* its creation; 0: not asked for */
	uint32_t pods;    /* its spec was last written for so many */
	struct slu_fluxjob_ask ask;
	uint64_t spec;    /* hash of what `ask` was read from */
	uint32_t counted; /* slots of it among those of its namespace */
	/* status: as it should be, and since when it is not so */
	enum slu_held_state state;
	bool ok;
	uint64_t job;
	uint32_t position;
	int64_t planned_s, start_s;
	char *nodes, *places, *message;
	char *had_nodes; /* before it had none: told again at its end */
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
	uint32_t open, crowded;          /* not over; wait for room for their slots */
	SLU_VEC(uint64_t) claims_over;   /* numbers of claims that ended, for core_claims() */
	struct slu_kcodec *codec;        /* makes phantoms */
	struct phantom_like like;
	SLU_VEC(struct core_shown) shown; /* phantoms that changed, for the mirror */
	struct slu_map slots;             /* phantoms of each namespace */
	uint64_t n_slots;                 /* of all */
	bool freed;                       /* some went since the last pass */
	int64_t try_us;                   /* who was too fast tries again; 0: nobody was */
	struct core_pace pace;            /* how fast they are made */
};

/* ---- fluxjobs.c ---- */

void core_fluxjob_synced(struct slu_core *c, bool absent, bool refused);
void core_fluxjob_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
struct fluxjob *core_fluxjob_of(struct slu_core *c, const char *ns, const char *name);
void core_fluxjob_to(struct slu_core *c, struct fluxjob *f, enum fluxjob_life to);
void core_fluxjobs(struct slu_core *c); /* write what changed, end what is over */
void core_fluxjobs_done(struct slu_core *c);

/* The number of a claim, behind the last dash of its name. */
uint64_t core_claim_number(const char *name);

/* ---- turns.c ---- */

/* For one more.  0 or -ENOMEM. */
int core_fluxjob_turn_room(struct slu_core *c);
void core_fluxjob_turn_by(struct slu_core *c, struct fluxjob *f,
			  int64_t us); /* then at the latest */
void core_fluxjob_turn_none(struct slu_core *c, struct fluxjob *f);
/* The next whose time has come; NULL: nobody's, and the timer is set. */
struct fluxjob *core_fluxjob_turn(struct slu_core *c);

/* ---- status.c ---- */

void core_fluxjob_due(struct slu_core *c, struct fluxjob *f); /* it differs: write it, but when? */
void core_fluxjob_tell(struct slu_core *c, struct fluxjob *f);
uint64_t core_fluxjob_digest(const struct fluxjob *f);
bool core_fluxjob_over(const struct fluxjob *f); /* its state is the last one */

/* ---- phantom.c ---- */

int core_phantoms_make(struct slu_core *c, struct fluxjob *f);
/* Its namespace, or all together, have so many slots that it has to wait for room; or it had too many
 * made just now. */
bool core_phantoms_crowded(struct slu_core *c, const struct fluxjob *f);
void core_phantoms_end(struct slu_core *c, struct fluxjob *f, const struct slu_kfluxjob *k,
		       bool ok);
void core_phantoms_place(struct slu_core *c);
/* What phantoms are made of has changed, or may have. */
void core_phantom_forget(struct slu_core *c);
