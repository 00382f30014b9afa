/* gang.h — match gangs of pods against a machine, over time, whole or not at all.
 *
 * A *gang* is one or more *roles* (launcher, workers), each a number of identical *slots* (pods)
 * with amounts.  A slot lies in one node; several slots may share a node.  A request says what, how
 * long, where and from when; the answer says when and on which nodes, and an operation that books
 * records it under the caller's job id.
 *
 * What is booked:
 *   running   holds its share from now until it is cancelled or released.  Its end is an expectation:
 *             when that time passes nothing is freed (a job may overrun), and until told otherwise
 *             the plan expects such work to end any second.
 *   reserved  holds [start, end) in the plan; from its start on it holds its share like a running
 *             one, until it is started, cancelled or moved.
 *   block     an advance reservation or drain: holds exactly [from, to), and jobs that name it may
 *             use what it holds.
 *
 * Plans assume that running work ends at its end.  "Earliest" is exact: for the given bookings, the
 * gang fits at no earlier second.  The search for gangs whose roles fit together only in an intricate
 * way is bounded: on large machines such a gang may get a later time than the earliest.
 *
 * Ownership: requests and everything they point to are borrowed for the call (node sets the machine
 * keeps for its caches are ref-counted).  Results are filled into a struct the caller owns. */
#pragma once
#include "gang/machine.h"

#define SLU_ROLES_MAX       64u
#define SLU_SLOTS_MAX       (1u << 20) /* slots of one gang */
#define SLU_BLOCKS_USED_MAX 16u

/* In which order nodes are tried.  "Order" is that of the rank, ties by name (n2 before n10), so it does
 * not depend on when a node came.  Each slot takes the first node in the policy's order that has room,
 * so a node is filled before the next is opened, except with SPREAD. */
enum slu_gang_policy {
	SLU_GANG_FIRST,      /* lowest rank first */
	SLU_GANG_LOW,        /* the same */
	SLU_GANG_HIGH,       /* highest rank first */
	SLU_GANG_LONODE,     /* as LOW */
	SLU_GANG_HINODE,     /* as HIGH */
	SLU_GANG_FIRSTNODEX, /* as FIRST, every role on whole nodes */
	SLU_GANG_LONODEX,    /* as LOW, every role on whole nodes */
	SLU_GANG_HINODEX,    /* as HIGH, every role on whole nodes */
	SLU_GANG_LOCALITY, /* the shortest stretch of neighbouring ranks that holds a role; else as
			    * few and as long stretches as possible */
	SLU_GANG_PACK,   /* nodes with the least room for further slots first: keep others empty */
	SLU_GANG_SPREAD, /* one slot at a time to the node with the fewest of this role, most room
			  * first */
	SLU_GANG_POLICIES
};
/* The names of all, in their order; NULL ends them. */
extern const char *const slu_gang_policy_names[SLU_GANG_POLICIES + 1];
/* The policy of that name ("first", "low", ... "pack", "spread"), or -EINVAL. */
int slu_gang_policy_find(const char *name);
const char *slu_gang_policy_name(enum slu_gang_policy p);

enum {
	SLU_ROLE_ALONE = 1,     /* at most one slot of this role per node */
	SLU_ROLE_EXCLUSIVE = 2, /* whole nodes: no other job, and no other role, on its nodes */
	SLU_ROLE_APART = 4,     /* on no node with slots of the roles in `apart` */
};

struct slu_gang_role {
	const char *name;  /* for messages; may be NULL */
	uint32_t min, max; /* slots; max 0: exactly min */
	const struct slu_amount *need;
	uint32_t n_need;
	const struct slu_nodeset *nodes; /* eligible; NULL: all */
	/* Tried first; NULL: no preference.  LOCALITY and SPREAD look at neither this nor score. */
	const struct slu_nodeset *prefer;
	/* By node index: higher first, before the policy's order; may be NULL. */
	const int32_t *score;
	uint32_t n_score; /* nodes beyond it score 0 */
	unsigned flags;
	/* With SLU_ROLE_APART: a bit for each role of the gang whose slots may not share a node with
	 * this one's.  It holds both ways, so one of the two roles may say it; the bit of the role
	 * itself means SLU_ROLE_ALONE. */
	uint64_t apart;
};

enum {
	SLU_GANG_CLOSE_REQUIRED = 1, /* all slots in one domain of `level`, or no match */
	/* Fit in time: a reservation prefers room that is not free yet to room that is, and work that
	 * starts now prefers nodes that are reserved for later.  Both leave as much as possible to
	 * the jobs behind.  On interchangeable slots EASY then equals plain counting.
	 */
	SLU_GANG_TIME_FIT = 2,
};

/* Zero-initialise, set .level = -1 if closeness does not matter. */
struct slu_gang_req {
	const struct slu_gang_role *role;
	uint32_t n_role;
	uint32_t min, max; /* slots of all roles together; 0: the sum of the roles' min, max */
	int level;         /* closeness: all in one domain of this level; -1: anywhere */
	unsigned flags;
	enum slu_gang_policy policy;
	int64_t duration_s;              /* 0: unlimited */
	int64_t begin_s;                 /* not before; 0: any time */
	int64_t deadline_s;              /* end not after; 0: any time */
	const struct slu_nodeset *nodes; /* the queue's part of the machine; NULL: all */
	const uint64_t *use;             /* blocks whose room this job may use */
	uint32_t n_use;
};

/* Outcomes, not errors. */
enum slu_gang_answer {
	SLU_GANG_NOW = 0, /* fits now (and is booked, where the operation books) */
	/* fits at start_s, the earliest (reserved, where the operation books) */
	SLU_GANG_LATER = 1,
	SLU_GANG_BUSY = 2,  /* not now; it could run on the empty machine (or that was not tried) */
	SLU_GANG_NEVER = 3, /* not even on the empty machine with every node up */
};

struct slu_gang_part {
	slu_node node;
	uint32_t role, slots;
};

/* A placement: caller-owned, zero-initialise, use again as often as you like, then _done. */
struct slu_gang_place {
	int64_t start_s, end_s;     /* end_s SLU_FOREVER if unlimited */
	uint32_t slots;             /* of all roles */
	int close;                  /* 1: all in one domain of the level asked for */
	struct slu_gang_part *part; /* by role, then in the order chosen */
	uint32_t n, cap;
};
void slu_gang_place_done(struct slu_gang_place *p);

enum slu_gang_op {
	SLU_GANG_ALLOCATE,            /* now or BUSY */
	SLU_GANG_ALLOCATE_SAT,        /* now; else tells BUSY from NEVER */
	SLU_GANG_ALLOCATE_OR_RESERVE, /* now, or LATER, or NEVER; BUSY if it could run but no time
				       * is found (down nodes, endless work in the way, deadline) */
	SLU_GANG_TRY,                 /* as ALLOCATE, nothing is booked */
	SLU_GANG_TRY_LATER,           /* as ALLOCATE_OR_RESERVE, nothing is booked */
};

/* Match a gang.  Returns enum slu_gang_answer; or -EINVAL (bad request, with the reason in err),
 * -EEXIST (the job id is booked already), -ENOMEM; both leave the machine as it was.
 * `place` is filled for NOW and LATER; it may be NULL.  `job` is not used by the TRY operations.
 * Elastic gangs get as many slots as fit up to their maximum: first every role its minimum, then
 * the roles in order.  A reservation is for the earliest time at which the minimum fits, with as
 * many as fit then. */
int slu_gang_match(struct slu_machine *m, enum slu_gang_op op, int64_t now_s, uint64_t job,
		   const struct slu_gang_req *req, struct slu_gang_place *place,
		   struct slu_error *err) SLU_MUST_CHECK;

/* Could the gang ever run on this machine, if it were empty with every node up and uncordoned?
 * Returns SLU_GANG_NOW or SLU_GANG_NEVER or an error; for NEVER the reason in words is in err (which
 * role, which resource, how much there is). */
int slu_gang_satisfiable(struct slu_machine *m, const struct slu_gang_req *req,
			 struct slu_error *err) SLU_MUST_CHECK;

/* ---- booking work that exists already ---- */

enum {
	SLU_BOOK_RESERVED = 1,   /* a promise for later; otherwise it runs */
	SLU_BOOK_BACKGROUND = 2, /* does not count against whole nodes (daemons on every node) */
};

struct slu_gang_booking {
	uint64_t job;
	int64_t start_s;
	int64_t end_s;                    /* SLU_FOREVER: no end known */
	const struct slu_gang_role *role; /* need and flags are used, the rest is not */
	uint32_t n_role;
	const struct slu_gang_part *part;
	uint32_t n_part;
	unsigned flags;
};

/* Book work as it stands, whether it fits or not.  -EEXIST: the id is known; -ENOENT: a node is
 * not; -ERANGE: the booking takes more than 2^62 of a resource, or its node is overbooked by more
 * than that already; -EINVAL; -ENOMEM. */
int slu_gang_register(struct slu_machine *m, int64_t now_s, const struct slu_gang_booking *b,
		      struct slu_error *err);

/* ---- blocks of time ---- */

struct slu_gang_block {
	uint64_t id; /* from the same numbers as job ids */
	int64_t from_s, to_s;
	const struct slu_nodeset *nodes; /* on each of these nodes ... */
	const struct slu_amount *amount; /* ... so much; none: the whole node */
	uint32_t n_amount;
};
/* Book a block.  It never fails for lack of room: running work goes on, plans go around it.
 * 0, -EEXIST, -EINVAL, -ENOMEM.  slu_gang_cancel() lifts it. */
int slu_gang_block_add(struct slu_machine *m, int64_t now_s, const struct slu_gang_block *b,
		       struct slu_error *err);

/* ---- the life of a booking ---- */

/* Give everything back.  -ENOENT: no such job. */
int slu_gang_cancel(struct slu_machine *m, uint64_t job);
/* Start a reserved job now, on the nodes and for the duration it was reserved for.  -ENOENT, -EINVAL
 * (it runs already, or is a block). */
int slu_gang_start(struct slu_machine *m, int64_t now_s, uint64_t job);
/* Set another end: the job overruns, or will end earlier.  -EINVAL: the end is before its start. */
int slu_gang_set_end(struct slu_machine *m, uint64_t job, int64_t end_s);
/* Give back `slots` slots of a role on a node.  Returns how many are left of the whole job, 0
 * meaning that the job is gone; -ENOENT (no such job, or none of it there), -EINVAL (more than it
 * holds). */
int64_t slu_gang_release(struct slu_machine *m, uint64_t job, uint32_t role, slu_node node,
			 uint32_t slots);
/* The same, but the job stays booked when nothing is left, until slu_gang_cancel(): it may hold slots
 * on nodes that were removed. */
int64_t slu_gang_give_back(struct slu_machine *m, uint64_t job, uint32_t role, slu_node node,
			   uint32_t slots);
/* Slots that a running job held on a node that was removed, and that are there now that the node is
 * back: book them as they stand, whether they fit or not.  -ENOENT (no such job or node), -EINVAL (it
 * does not run, no such role), -ERANGE as above, -ENOMEM. */
int slu_gang_regain(struct slu_machine *m, int64_t now_s, uint64_t job,
		    const struct slu_gang_part *part, uint32_t n_part, struct slu_error *err);
/* More slots for a running job, from now to its end: `req` counts the additional ones; its roles
 * must be those of the job (same number, same needs); its times are not used.  Answers NOW (place
 * holds the new parts) or BUSY; -ENOENT, -EINVAL, -ENOMEM. */
int slu_gang_grow(struct slu_machine *m, int64_t now_s, uint64_t job,
		  const struct slu_gang_req *req, struct slu_gang_place *place,
		  struct slu_error *err) SLU_MUST_CHECK;
/* Give back `slots` slots of a role, last placed first; `place` (may be NULL) tells which.
 * -ENOENT, -EINVAL (more than it has), -ENOMEM. */
int slu_gang_shrink(struct slu_machine *m, uint64_t job, uint32_t role, uint32_t slots,
		    struct slu_gang_place *place);

enum slu_gang_state { SLU_GANG_RUNNING, SLU_GANG_RESERVED, SLU_GANG_BLOCK };
struct slu_gang_info {
	uint64_t job;
	enum slu_gang_state state;
	int64_t start_s, end_s;
	uint32_t slots;
	bool counted; /* takes its room now: it runs, or its start has come */
};
/* -ENOENT.  `place` may be NULL. */
int slu_gang_info(const struct slu_machine *m, uint64_t job, struct slu_gang_info *info,
		  struct slu_gang_place *place);

/* ---- why not now ---- */

enum slu_gang_limit {
	SLU_LIMIT_NONE,      /* the gang fits */
	SLU_LIMIT_RESOURCE,  /* a role lacks room of one resource */
	SLU_LIMIT_NODES,     /* a role has too few eligible nodes that are up */
	SLU_LIMIT_ALONE,     /* enough room, but not on enough different nodes */
	SLU_LIMIT_EXCLUSIVE, /* too few nodes are empty */
	SLU_LIMIT_CLOSE,     /* enough room, but not within one domain */
	SLU_LIMIT_TIME,  /* enough room now, but another booking needs it before this would end */
	SLU_LIMIT_BEGIN, /* the gang may not begin yet */
	SLU_LIMIT_DEADLINE, /* the gang cannot end in time */
	SLU_LIMIT_MIX,      /* each role fits, not all together */
};

#define SLU_WHY_HOLDERS 8
struct slu_gang_holder {
	uint64_t job;
	int64_t start_s, end_s;
	int64_t amount; /* of the limiting resource, on the nodes in question */
};

struct slu_gang_why {
	enum slu_gang_answer answer; /* NOW, LATER (start_s is the earliest), BUSY or NEVER */
	int64_t start_s;
	enum slu_gang_limit limit;
	uint32_t role;
	uint32_t resource;  /* for LIMIT_RESOURCE */
	int64_t want, have; /* slots of that role: asked at least, would fit now */
	uint32_t slots_now; /* slots of the whole gang that fit now */
	/* The jobs that hold what is lacking, largest first. */
	struct slu_gang_holder holder[SLU_WHY_HOLDERS];
	uint32_t n_holder;
	/* The smallest changes that would let it start now, each by itself; 0: does not help. */
	uint32_t fewer_slots;  /* with this many slots in all (roles scaled alike) */
	int64_t shorter_s;     /* with this duration */
	bool without_close;    /* if closeness were not required */
	struct slu_error text; /* all of it, in words */
};

/* Why a gang does not start now.  0, -EINVAL, -ENOMEM. */
int slu_gang_explain(struct slu_machine *m, int64_t now_s, const struct slu_gang_req *req,
		     struct slu_gang_why *why, struct slu_error *err);
