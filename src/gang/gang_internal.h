/* gang_internal.h — the inside of a machine, shared by the files of this directory only.
 *
 * Numbers: a node has an *index* (its slot in m->node, what node sets speak of) and a *position*
 * (its place in rank order, what the policies go by).  Amounts lie in one row per node, `stride`
 * wide, indexed by resource.
 *
 * Resource 0 is the right to share a node: every node has WHOLE of it, each slot takes 1, an exclusive
 * part takes all.  So whole nodes need no rules of their own, neither now nor over time.
 *
 * Invariant: free[node] = total[node] - the shares of everything that counts now (running work,
 * reservations that are due, blocks that have begun).  Bookings that begin later are in m->starts;
 * nodes they touch have node.future > 0.  A node without future only gets freer with time. */
#pragma once
#include <stdio.h>

#include "base/map.h"
#include "base/vec.h"
#include "gang/gang.h"

#define WHOLE (INT64_C(1) << 30)
#define NONE  UINT32_MAX
#define SLU_SWAP(a, b)                     \
	do {                               \
		__typeof__(a) swap_ = (a); \
		(a) = (b);                 \
		(b) = swap_;               \
	} while (0)

/* What one slot needs: interned, since thousands of jobs ask for the same. */
struct need {
	uint64_t hash;
	uint32_t refs, n;
	int64_t per_slot;      /* of resource 0 */
	int64_t per_part;      /* of resource 0 */
	struct slu_amount a[]; /* by resource, all > 0, resource 0 not among them */
};

struct part {
	uint32_t node, role, slots;
	uint32_t pos; /* in node.share */
};

struct job {
	uint64_t id;
	int64_t start, end;
	struct part *part;
	struct need **need; /* by role */
	uint64_t *use;
	uint32_t n_part, cap_part, n_role, cap_role, n_use, cap_use;
	uint32_t slots;
	uint8_t state;      /* enum slu_gang_state */
	bool live, counted; /* counted: in m->free, else in m->starts */
};

/* A part as its node sees it, with its times, so that a look at a moment opens only the jobs that
 * matter then. */
struct share {
	int64_t start; /* COUNTED: it is in m->free */
	int64_t end;
	uint32_t job, part;
};
#define COUNTED INT64_MIN

struct node {
	char *name; /* NULL: empty slot */
	int64_t rank;
	uint64_t tag, changed; /* changed: number of its newest journal entry */
	uint32_t gen, pos, same_hash, future, blocks;
	uint32_t coming; /* parts about to be booked; 0 between calls */
	bool down, cordoned;
	bool least_ok; /* m->least is valid for it */
	uint32_t domain[SLU_LEVELS_MAX];
	SLU_VEC(struct share) share;
};

struct when {
	int64_t t;
	uint32_t job;
};

struct names { /* resources, levels, domains: few, never removed */
	char **p;
	uint32_t n, cap;
};

struct level {
	struct names domain;
	struct slu_map by_hash; /* hash of the name -> domain number (first of that hash) */
	uint32_t *first;        /* members of domain d: list[first[d]] .. list[first[d + 1]] */
	uint32_t *list;         /* positions, ascending within a domain */
	uint32_t *by_pos;       /* domains that have members, by their first position */
	uint32_t n_by_pos;
};

/* How many slots of one need fit where: kept up to date by following the journal. */
struct fitmap {
	struct need *need;
	struct slu_nodeset *nodes, *part; /* the role's and the queue's */
	uint64_t nodes_version, part_version;
	unsigned flags;
	uint64_t order_gen;   /* of the order its arrays are in; 0: in none */
	uint32_t n_pos;       /* room in the arrays */
	uint64_t seen;        /* journal entries it knows */
	uint64_t used;        /* clock of the last use */
	uint64_t *elig;       /* by position: may use the node, if it is up */
	int32_t *now, *least; /* by position: slots now; slots now and for ever */
	uint64_t *now_bits, *least_bits;
	int64_t now_sum, least_sum;
	uint32_t now_nodes, least_nodes;
	uint64_t sat_gen; /* of the two below */
	int64_t sat_sum;
	uint32_t sat_nodes;
};

#define FITMAPS      64 /* not below SLU_ROLES_MAX: a request needs all of its own at once */
#define JOURNAL_BITS 14

struct cand {
	uint64_t key;
	uint32_t pos;
	int32_t cap;
};

/* Slots of one role that fit in a certain window of time, by position. */
struct caps {
	const int32_t *cap;
	const uint64_t *bits;
	int64_t sum;
	uint32_t nodes;
};

struct undo {
	uint32_t role, pos;
	int32_t cap;
};

struct scratch {
	/* sized for the nodes */
	uint32_t n;
	int32_t *cap[SLU_ROLES_MAX];
	uint64_t *bits[SLU_ROLES_MAX];
	int64_t *row;    /* free amounts at the time of the sweep */
	uint32_t *stamp; /* row is valid if equal to epoch */
	uint32_t *dirty_stamp;
	uint32_t *dirty;
	int64_t *left;  /* what the roles placed so far leave of a node, where marked */
	uint32_t *mark; /* left is valid if equal to attempt */
	uint64_t *here; /* bits of the roles placed so far, by position; valid as left is */
	uint32_t attempt;
	uint32_t *taken;      /* slots of the role in hand, by position; all 0 between calls */
	uint32_t epoch, pass; /* pass: number of the newest dirty list */
	struct cand *cand, *cand2;
	int32_t *fit_cap;
	uint64_t *fit_bits;
	SLU_VEC(uint32_t) touched; /* marked positions */
	SLU_VEC(struct undo) undo;
	SLU_VEC(struct part) out; /* node is a position here until the match is done */
	SLU_VEC(struct when) ev;
};

struct slu_machine {
	struct names resource, level_name;
	struct level level[SLU_LEVELS_MAX];
	uint32_t stride;
	struct node *node;
	uint32_t n_slot, cap_slot, n_node;
	SLU_VEC(uint32_t) empty; /* slots to use again */
	struct slu_map by_name;
	int64_t *total, *free, *least;
	int64_t sum[SLU_RESOURCES_MAX]; /* free now on all nodes that are up, negative ones as 0 */
	int64_t whole[SLU_RESOURCES_MAX]; /* what these nodes have */
	/* Bookings that begin later may exceed what the nodes have (see later.c).  Cleared when no
	 * booking begins later. */
	bool odd;
	uint32_t n_unfit; /* nodes down or cordoned */

	uint32_t *order;       /* position -> index */
	uint64_t *future_bits; /* by position */
	uint32_t n_pos;
	uint64_t order_gen; /* counts rebuilds of the order */
	bool order_ok;

	struct job *job;
	uint32_t n_job, cap_job;
	SLU_VEC(uint32_t) job_empty;
	struct slu_map by_id;
	SLU_VEC(struct when) ends;   /* finite ends of everything, by time */
	SLU_VEC(struct when) starts; /* of what does not count yet, by time */
	uint32_t n_running, n_reserved, n_block;
	uint64_t n_share;
	int64_t block_end; /* the first end of a block */

	struct slu_map need_by_hash;
	uint32_t n_need_idle; /* of them without a user */

	struct fitmap *fitmap[FITMAPS];
	uint32_t n_fitmap;
	uint64_t scanned[8]; /* fitmaps whose last scan was long: next time they get an index */
	uint32_t n_scanned;
	uint64_t clock;
	uint32_t *journal;
	uint64_t changes; /* journal entries ever written */

	int64_t now;
	uint64_t version;
	uint64_t size_gen; /* counts changes to totals, domains, nodes */
	struct scratch s;
};

static inline int64_t *row_free(const struct slu_machine *m, uint32_t node)
{
	return m->free + (size_t)node * m->stride;
}

static inline bool bit(const uint64_t *w, uint32_t i)
{
	return w[i / 64] >> (i % 64) & 1;
}
static inline void bit_set(uint64_t *w, uint32_t i)
{
	w[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void bit_clear(uint64_t *w, uint32_t i)
{
	w[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* When the plan expects a job to end: counted work past its end is expected to end any second. */
static inline int64_t planned_end(const struct slu_machine *m, const struct job *j)
{
	if (j->counted && j->state != SLU_GANG_BLOCK && j->end <= m->now)
		return m->now + 1;
	return j->end;
}

/* The same for a share; not for blocks, which end when they say. */
static inline int64_t share_end(const struct slu_machine *m, const struct share *s)
{
	return s->start == COUNTED && s->end <= m->now ? m->now + 1 : s->end;
}

static inline int64_t later(int64_t t, int64_t d)
{
	return d > SLU_FOREVER - t ? SLU_FOREVER : t + d;
}

/* What a part takes of resource 0. */
static inline int64_t need_whole(const struct need *n, uint32_t slots)
{
	return n->per_part ? n->per_part : n->per_slot * slots;
}

/* Slots that fit into a row of free amounts. */
static inline int32_t need_fits(const struct need *n, const int64_t *row, unsigned flags)
{
	int64_t cap = SLU_SLOTS_MAX;

	if (n->per_part ? row[0] < n->per_part : row[0] < n->per_slot)
		return 0;
	for (uint32_t i = 0; i < n->n; i++) {
		int64_t have = row[n->a[i].resource], q;

		if (have < n->a[i].n)
			return 0;
		/* Both are below 2^51 (what is free may be far below 0, never above the total): the quotient of the doubles, cut, is exact. */
		q = (int64_t)((double)have / (double)n->a[i].n);
		if (q < cap)
			cap = q;
	}
	if (!n->per_part && n->per_slot && row[0] < cap)
		cap = row[0];
	return flags & SLU_ROLE_ALONE ? 1 : (int32_t)cap;
}

/* Whether new slots may be placed there. */
static inline bool node_up(const struct node *v)
{
	return !v->down && !v->cordoned;
}

static inline void need_take(const struct need *n, uint32_t slots, int64_t *row)
{
	row[0] -= need_whole(n, slots);
	for (uint32_t i = 0; i < n->n; i++)
		row[n->a[i].resource] = slu_plus_mod(row[n->a[i].resource], n->a[i].n,
						     -(int64_t)slots);
}
static inline void need_give(const struct need *n, uint32_t slots, int64_t *row)
{
	row[0] += need_whole(n, slots);
	for (uint32_t i = 0; i < n->n; i++)
		row[n->a[i].resource] = slu_plus_mod(row[n->a[i].resource], n->a[i].n, slots);
}

static inline void share_take(const struct slu_machine *m, const struct share *s, int64_t *row)
{
	const struct job *j = &m->job[s->job];

	need_take(j->need[j->part[s->part].role], j->part[s->part].slots, row);
}
static inline void share_give(const struct slu_machine *m, const struct share *s, int64_t *row)
{
	const struct job *j = &m->job[s->job];

	need_give(j->need[j->part[s->part].role], j->part[s->part].slots, row);
}

/* machine.c */
int slu_node_slot(const struct slu_machine *m, slu_node node); /* index or -ENOENT */
int slu_domain_get(struct level *l, const char *name);         /* its number, new if need be */

/* order.c: 0 or -ENOMEM. */
int slu_order_make(struct slu_machine *m);
int slu_scratch_make(struct slu_machine *m, uint32_t n_role);
void slu_scratch_done(struct scratch *s);

/* need.c: whether two needs ask for the same. */
bool slu_need_same(const struct need *a, const struct need *b);
/* need.c: one more user of the need; NULL when memory runs out. */
struct need *slu_need_get(struct slu_machine *m, const struct slu_amount *a, uint32_t n,
			  unsigned role_flags, bool background);
void slu_need_put(struct slu_machine *m, struct need *n);

/* window.c: least free of every resource over [t, end) into out, as seen by a job that may use the
 * blocks named; t not before now. */
void slu_window(const struct slu_machine *m, uint32_t node, int64_t t, int64_t end,
		const uint64_t *use, uint32_t n_use, int64_t *out);
/* Slots that fit all the time, on a node without blocks. */
int32_t slu_window_fits(const struct slu_machine *m, uint32_t node, int64_t t, int64_t end,
			const struct need *need, unsigned flags);
/* The same for [now, for ever), kept. */
const int64_t *slu_window_least(struct slu_machine *m, uint32_t node);

/* Take a row out of m->sum and m->whole before changing it, put it in after. */
void slu_sum_out(struct slu_machine *m, uint32_t node);
void slu_sum_in(struct slu_machine *m, uint32_t node);
/* Recompute what is free now from scratch (nodes with blocks). */
void slu_node_recount(struct slu_machine *m, uint32_t node);
void slu_when_sort(struct when *w, uint32_t n); /* by time, then number */

/* The order of slu_when_sort(), as qsort() wants it. */
static inline int when_cmp(const void *a, const void *b)
{
	const struct when *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* What a node adds to the machine's sum: never more than it has. */
static inline int64_t sum_usable(int64_t free, int64_t total)
{
	return SLU_MAX(SLU_MIN(free, total), (int64_t)0);
}

/* book.c */
void slu_touch(struct slu_machine *m, uint32_t node); /* tell the journal */
struct job *slu_job_find(const struct slu_machine *m, uint64_t id);
/* A job without parts, its needs taken over (one reference each) only on success. */
int slu_job_make(struct slu_machine *m, uint64_t id, uint32_t n_role, struct need *const *need,
		 const uint64_t *use, uint32_t n_use, struct job **out);
/* Book parts (node = index) for a job just made.  On -ENOMEM the job is gone again. */
int slu_job_book(struct slu_machine *m, struct job *j, enum slu_gang_state state, int64_t start,
		 int64_t end, const struct part *part, uint32_t n_part);
/* Add parts to a job that is booked. */
int slu_job_extend(struct slu_machine *m, struct job *j, const struct part *part, uint32_t n_part);
void slu_job_drop(struct slu_machine *m, struct job *j);
/* Take `slots` from the i-th part; an empty part is removed, and the job's last part moves to its
 * place. */
void slu_job_reduce(struct slu_machine *m, struct job *j, uint32_t i, uint32_t slots);

/* fitmap.c: the cached fitmap, up to date; NULL when memory runs out. */
bool slu_fitmap_known(const struct slu_machine *m, const struct need *need, unsigned flags,
		      const struct slu_nodeset *nodes, const struct slu_nodeset *part);
struct fitmap *slu_fitmap_get(struct slu_machine *m, struct need *need, unsigned flags,
			      const struct slu_nodeset *nodes, const struct slu_nodeset *part);
void slu_fitmap_free(struct slu_machine *m, struct fitmap *s);
/* On the empty machine. */
void slu_fitmap_satisfy(struct slu_machine *m, struct fitmap *s);

/* A request in the terms of the machine. */
struct plan {
	struct slu_machine *m;
	const struct slu_gang_req *req;
	uint32_t n_role;
	uint32_t min, max; /* of all roles together */
	int64_t duration;  /* SLU_FOREVER: unlimited */
	enum slu_gang_policy policy;
	struct plan_role {
		struct need *need;     /* one reference */
		struct fitmap *fitmap; /* set by slu_plan_fitmaps(); the next call may drop it */
		uint32_t min, max;
		unsigned flags;
		uint64_t apart; /* bits of roles, both ways, never its own */
	} role[SLU_ROLES_MAX];
	uint32_t steps; /* of searching that are left */
	bool empty;     /* the machine is thought to be empty and up */
	bool close;     /* the last attempt put all in one domain */
	int64_t t, end; /* the window in hand */
	struct caps caps[SLU_ROLES_MAX];
	const int32_t *before[SLU_ROLES_MAX];
};

/* plan.c: check and translate; slu_plan_done() in any case. */
int slu_plan_make(struct slu_machine *m, const struct slu_gang_req *req, struct plan *p,
		  struct slu_error *err);
void slu_plan_done(struct plan *p);
int slu_role_check(const struct slu_machine *m, const struct slu_gang_role *r, uint32_t i,
		   struct slu_error *err);
/* Find the fitmaps, up to date. 0 or -ENOMEM. */
int slu_plan_fitmaps(struct plan *p);

/* attempt.c: place the gang in p's window with p's caps.  1 (m->s.out holds the parts, by role,
 * node = position), 0, or -ENOMEM. */
int slu_attempt(struct plan *p);
/* Without fitmaps: first fit over the nodes themselves, for needs that were not asked for lately.  1,
 * or 0 if slu_attempt() must decide, or -ENOMEM. */
int slu_scan(struct plan *p);
/* Caps for [now, now + duration).  1, or 0 if a role lacks slots anyway, or -ENOMEM. */
int slu_caps_now(struct plan *p);
/* Caps on the empty machine, likewise. */
int slu_caps_empty(struct plan *p);

/* Caps of a role that may be changed: a copy, if they are the fitmap's. */
void slu_caps_own(struct plan *p, uint32_t r);
void slu_caps_set(struct plan *p, uint32_t r, uint32_t pos, int32_t cap);
int32_t slu_caps_at(struct plan *p, uint32_t r, uint32_t pos);

/* later.c: the earliest start from t on (tried: t itself is known not to do).  As slu_attempt(). */
int slu_later(struct plan *p, int64_t t, bool tried, int64_t latest);

/* match.c: the name or number of a role, for messages. */
const char *slu_role_name(const struct slu_gang_req *q, uint32_t r, char buf[32]);

/* pick.c: choose up to `want` slots among `c`, append them to m->s.out as (position, role, slots);
 * returns how many.  `before`: slots that were there anyway, for SLU_GANG_TIME_FIT; may be NULL.
 * `list` limits the choice to some positions, ascending; NULL: all. */
struct pick {
	const struct caps *c;
	const int32_t *before;
	const uint32_t *list;
	uint32_t n_list;
	uint32_t role, want;
	const struct slu_gang_role *spec;
	enum slu_gang_policy policy;
};
uint32_t slu_pick(struct slu_machine *m, const struct pick *p);
