/* match_internal.h — shared by the files of the matcher only.
 *
 *	filter.c  pruning filters, aggregates per vertex, order of children
 *	policy.c  policy names, scores          sort.c   the order among equals
 *	walk.c    one attempt: which vertices   flex.c   or-slots and xor-slots
 *	fit.c     whether a vertex can serve    cand.c   candidates, and the choice among them
 *	marks.c   marked edges, labels          attempt.c the fast way, or the plain walk
 *	book.c    marks become bookings and output
 *	ops.c     operations and time           family.c leaves that are taken all at once
 *	fast/     the same answers with less work: a room of its own, behind fast/fast.h
 *	update.c  cancel.c  find.c  elastic.c   one operation each
 */
#pragma once
#include "graph/graph.h"
#include "jobspec/jobspec.h"
#include "match/ledger.h"
#include "match/match.h"
#include "planner/multi.h"

enum scorer { SCORE_HIGH, SCORE_LOW, SCORE_LOCALITY, SCORE_VARIATION };

struct policy {
	enum scorer scorer;
	bool node_centric, node_exclusive, stop;
};

/* 0 or -EINVAL. */
int match_policy_parse(const char *text, struct policy *out);

enum mode { MODE_ALLOCATE, MODE_RESERVE, MODE_SATISFY, MODE_WITHOUT };

#define SUBSYSTEMS_MAX 5 /* of one matcher */
#define NO_PRUNE       0xffff
#define DEPTH_MAX      1000 /* levels of a graph */
#define LIKE_MAX       8    /* number of different subtrees that are named at a time */

/* A registered pair HIGH:LOW; high SLU_NONE = ALL. */
struct filter {
	uint32_t high;
	uint16_t low;
};

/* Sibling leaves that a job takes all at once; see family.c. */
struct family {
	uint32_t kid;  /* the first of their edges, in `kid` */
	uint32_t n;    /* leaves */
	uint32_t size; /* units of each */
	uint32_t down; /* leaves that are down */
	uint16_t type;
	bool only;   /* their parent has no other children */
	bool usual;  /* all ids are from -1 to INT32_MAX */
	bool rising; /* and each id is one more than the id before */
	int64_t ids; /* their sum then */
	/* Generation in which all leaves are marked to be taken whole; only the first edge shows it. */
	uint32_t gen;
};

struct mark {
	uint32_t needs;
	uint32_t gen : 31;
	uint32_t excl : 1;
};

struct slu_match {
	struct slu_graph *g;
	struct policy policy;
	bool flexible, count_visits;
	int64_t end_s;
	uint8_t sub[SUBSYSTEMS_MAX]; /* sub[0] is dominant */
	uint32_t nsub;

	/* Filters and aggregates. */
	SLU_VEC(struct filter) filters;
	SLU_VEC(uint16_t) prune; /* pruning types, in order of registration */
	uint16_t *prune_at;      /* by type: position in prune, NO_PRUNE = no pruning type */
	uint32_t ntypes;         /* length of prune_at */
	/* Per vertex and subsystem of the matcher: multi[s * nv + v]; NULL = none. */
	struct slu_multi **multi;
	uint32_t nv; /* number of vertices that the arrays have room for */

	/* Shape of the dominant subsystem. */
	bool tree;         /* no vertex has two parents in it */
	bool no_parents;   /* edges to parents are left out below: without them it is a tree */
	uint32_t depth;    /* levels below the root */
	uint32_t *kid_off; /* nv + 1 */
	uint32_t *kid;     /* edges, in order of insertion */
	uint32_t *ord;     /* the same edges in order of exploration (stop policies) */
	uint64_t *weight;  /* by edge (stop policies) */
	uint32_t ne;
	uint32_t *up;       /* edge to the parent, SLU_NONE */
	uint64_t *kidtypes; /* types among the targets of all out-edges; bit 63: some type >= 63 */
	/* By vertex: the name of its subtree, equal for equal subtrees, or SLU_NONE; fast/alike.c */
	uint32_t *like;
	uint32_t seen_like[LIKE_MAX]; /* while naming: one vertex of each name, latest first */
	struct mark *mark;            /* by edge */
	/* Marked edges of vertices with many children, as source << 32 | edge, so that booking
	 * need not test every child; `lost`: memory ran out, test every child. */
	SLU_VEC(uint64_t) wide;
	bool wide_lost;
	uint32_t *colour; /* by vertex: generation it was visited in; only if !tree */

	struct ledger led;
	SLU_VEC(struct family) family; /* by number in the ledger */
	int64_t nodes_up;              /* without those that were down when the graph was read */
	int64_t centre; /* remainder of F after a failed attempt: not 0 only for nodes inside nodes */
	uint32_t gen;   /* of attempts */
	struct slu_intern words;
	struct slu_map labels; /* vertex -> generation << 32 | word */
	/* Types that are taken whole from now on: as in the reference, a request that is refused
	 * for its duration leaves its exclusive types behind. */
	SLU_VEC(uint16_t) whole;
	uint32_t level;     /* of output; see writer.h */
	uint64_t pre, post; /* sums over attempts, kept between operations */
	int stale;          /* see stale_error in match.h */
	struct slu_buf msg;
	struct slu_arena req; /* one operation */
	struct slu_arena tmp; /* one attempt */
	struct fast *fast;
	bool nested;  /* nodes inside nodes, and F counts them */
	bool odd;     /* sums of parents miss some bookings: only the plain walk is right */
	bool inexact; /* sums of parents may exceed what is taken (updates from R cause this) */
	bool unseen;  /* the sums of a vertex may lack bookings of the vertices below it */
};

static inline struct slu_multi *multi_of(const struct slu_match *m, uint32_t v)
{
	return m->multi[v];
}

#define WIDE 64 /* a vertex with at most so many children has them tested one by one */

/* --- marks.c --- */
/* Mark an edge for the current generation. */
void match_mark_put(struct slu_match *m, uint32_t e, uint32_t needs, bool excl);
/* Mark all edges above v that are not marked yet. */
void match_mark_above(struct slu_match *m, uint32_t v);
/* Start a generation. */
void match_mark_tick(struct slu_match *m);
const char *match_label_of(const struct slu_match *m, uint32_t v);
int match_label_set(struct slu_match *m, uint32_t v, const char *text);

/* --- filter.c --- */
int match_filter_parse(struct slu_match *m, const char *text);
/* Shape arrays, aggregates, order.  Called after loading, attach, remove. */
int match_filter_prime(struct slu_match *m);
/* The same without the aggregates. */
int match_filter_reshape(struct slu_match *m);
void match_filter_done(struct slu_match *m);
/* Move edge e of vertex u to its place in the order after its weight changed. */
void match_order_move(struct slu_match *m, uint32_t u, uint32_t e, uint64_t weight);

/* --- candidates --- */
struct pick { /* one edge of a candidate */
	uint32_t edge;
	uint32_t needs;
	bool excl;
	bool all; /* the whole family that begins there; needs are those of each */
};

struct cand {
	struct cand *next;
	int64_t score;
	uint32_t count;
	uint32_t n; /* edges; 0: the root itself */
	union {
		struct pick one;
		struct pick *many; /* n > 1 */
	};
};

/* Mark an edge, or the whole family. */
void match_mark_pick(struct slu_match *m, const struct pick *p);

static inline const struct pick *cand_picks(const struct cand *c)
{
	return c->n > 1 ? c->many : &c->one;
}

/* Candidates of one type in one subsystem. */
struct cands {
	uint16_t type;
	uint8_t sub;
	bool chosen;
	uint32_t n;
	uint32_t best; /* this many candidates from the head are chosen */
	int64_t total, qualified;
	struct cand *head, *tail;
};

struct pool {
	struct cands *k;
	uint32_t n, cap;
};

/* --- sort.c --- */
enum order { ORDER_GREATER, ORDER_LESS };
struct key {
	int64_t key;
	struct cand *c;
};
/* Exactly the order std::sort of GNU libstdc++ gives. */
void match_sort_keys(struct key *k, uint32_t n, bool greater);
/* The same for the first `need` of them; the rest is in any order. */
void match_sort_first(struct key *k, uint32_t n, uint32_t need, bool greater);
/* The same, continuing a sort that may split `depth` more times. */
void match_sort_deeper(struct key *k, uint32_t n, uint32_t need, int depth, bool greater);

/* --- walk.c --- */
struct reqinfo {
	int64_t *needs; /* by position in prune */
	bool *has;      /* whether the type is mentioned below at all */
	bool any;       /* some is */
	uint32_t emax;
};

struct attempt {
	struct slu_match *m;
	const struct slu_jobspec *spec;
	const struct slu_request *list; /* top level (xor-slots: a variant) */
	uint32_t nlist;
	const struct slu_constraint *constraint;
	struct reqinfo *info; /* by request index */
	int64_t *top_needs;
	enum mode mode;
	int64_t now, at, duration, end; /* end = at + duration */
	int64_t centre, term;           /* F of node_centric, and what was added to it last */
	uint64_t pre, post;
	int error;        /* of the last refused vertex */
	bool plain, fast; /* only the plain walk is allowed; the fast room made this attempt */
	int64_t root_needs;
	bool root_excl;
	int64_t aux_score; /* what auxiliary subsystems report */
	int64_t aux_count;
	uint32_t depth;    /* depth of the vertex whose slots flex.c makes */
	struct memo *skip; /* stop policies: vertices known to fail at this time; see fast/fast.h */
	const struct slu_request **variant; /* xor-slots: the lists to try */
	uint32_t *variant_n, variants;
	bool no_memory;
	bool gave_up; /* flex.c: a search for the best mix of alternatives was too long */
};

/* Compute the aggregates of requests; all of it is allocated in m->req. */
int match_attempt_prepare(struct attempt *a, struct slu_match *m, const struct slu_jobspec *spec);
/* One attempt at a->at in a->mode: 0, or a negative errno (-ENOMEM for lack of memory). attempt.c */
int match_attempt_run(struct attempt *a);
/* Collect the members of a slot below u, taken exclusively, for this many shares. 0, -ENOMEM. */
int match_visit_parts(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		      uint32_t shares, struct pool *into);
struct cands *match_pool_cands(struct attempt *a, struct pool *p, uint16_t type, uint8_t sub,
			       bool make);
void match_pool_add(struct cands *k, struct cand *c);
/* Sort the candidates and choose the best n units; false if there are fewer. */
bool match_choose(struct attempt *a, struct cands *k, uint32_t n, bool greater);
/* all: as for slot members */
void match_choose_all(struct attempt *a, struct pool *p, bool slot);
struct cand *match_cand_new(struct attempt *a, uint32_t npicks);
bool match_is_slot(const struct attempt *a, const struct slu_request *r);
bool match_kid_types_fit(const struct slu_match *m, uint32_t u, const struct slu_request *slot);

/* --- flex.c --- */
int match_flex_slots(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		     struct pool *into);
/* Fill in a->variant: one request for each choice among the xor-slots, a single one if there are
 * none. 0, -EOVERFLOW, -ENOMEM. */
int match_flex_variants(struct attempt *a);

/* --- book.c --- */
struct booking {
	struct slu_match *m;
	const struct slu_sink *sink;
	const uint8_t *excl_types; /* by type */
	int64_t now;
	uint32_t job;
	uint32_t flag; /* LED_HELD, LED_PLANNED */
	bool dry;      /* match without allocating */
	bool plans;    /* book units (not for update, which has booked them already) */
	bool weights;
	bool refused; /* a planner refused a span */
	int error;    /* of the writer, or -ENOMEM */
	uint32_t gen;
	SLU_VEC(uint32_t) moved; /* edges whose weight changes */
};
/* Number of bookings from the root on, or a negative errno. */
int64_t match_book_run(struct booking *b, uint32_t root, int64_t needs, bool excl);

/* --- cancel.c --- */
void match_cancel_job(struct slu_match *m, uint32_t job);
/* Reduce the vertices above these ranks by everything that is booked on the ranks. */
int match_cancel_at(struct slu_match *m, const int64_t *ranks, uint32_t n);

/* --- family.c --- */
/* Find the families; shape and aggregates must be complete. 0, -ENOMEM. */
int match_family_make(struct slu_match *m);
/* Dissolve all families.  Called before the graph changes, and before the ledger grows at the
 * latest. 0, or -ENOMEM and nothing is changed. */
int match_family_drop(struct slu_match *m);
/* The family that begins with vertex v, and its stand-in in the ledger; NULL if none does. */
struct family *match_family_at(const struct slu_match *m, uint32_t v, uint32_t *stand_in);
/* Update the leaf's family after the leaf was marked up or down. */
void match_family_status(struct slu_match *m, uint32_t v, enum slu_status old, enum slu_status now);
/* Call match_fast_touch() for all leaves of the family. */
void match_family_touch(struct slu_match *m, const struct family *f, bool units);

/* --- walk.c, policy.c: what the fast room asks the plain walk --- */
/* Visit one vertex of a front as the plain walk does; tell whether the plain walk would reach it
 * from above; tell the score it would have. */
bool match_walk_visit(struct attempt *a, uint32_t v, int64_t centre, int64_t *count,
		      struct pool *up);
bool match_walk_above(struct attempt *a, uint32_t v);
bool match_walk_score(struct slu_match *m, uint32_t v, int64_t centre, int64_t *score);
/* Whether the policy puts the greater score first. */
bool match_greater_first(const struct slu_match *m);
/* Types whose vertices are taken whole once the walk touches them, whatever the request says. */
void match_exclusive_always(const struct slu_match *m, uint8_t *types);
