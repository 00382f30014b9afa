/* fast.h — what the fast paths share.  Not for others; see fast.c. */
#pragma once
#include "match/ranks.h"

#define FRONTS_MAX    4
#define MEMOS_MAX     16
#define SIG_MAX       512
#define SLOT_KIDS_MAX 4

struct front {
	uint16_t type;
	bool bad; /* ids or shapes the rules above do not cover */
	uint32_t n;
	uint32_t *v; /* in order of score, best first; equals in order of discovery */
	int64_t *score;
	int64_t *centre; /* F of node_centric above the vertex; NULL = 0 for all */
	uint32_t *found; /* by position: order of discovery */
	uint32_t *at;    /* by vertex: position + 1, or 0 */
	bool distinct;   /* no two scores are equal */
	/* Discovered in order of score, best first or best last. */
	bool falling, rising;
	uint64_t *gap; /* by position, as bits: the next score is not the neighbour of this */
	/* Fronts of top-level slots: vertices whose children have all these types. */
	uint16_t kids[SLOT_KIDS_MAX];
	uint32_t nkids;
};

/* The best and the worst of some slots, as keys: lowest first. */
struct extent {
	int64_t low, high; /* low > high: none */
};

struct chosen {
	uint32_t p, i; /* position of the vertex, number of its slot */
};

#define MODELS_MAX 4
#define SHARED_MAX 16

/* A vertex asked in this attempt, for all of its kind. */
struct model {
	uint32_t like, p;
	int64_t centre; /* F of node_centric below it */
	uint32_t picks; /* of each slot; 0: they differ, or there are none */
	uint32_t more;  /* offers that are the same and not counted in levels yet */
};

#define KEPT_MAX 4

/* The edges to the slots of a vertex asked lately, one a slot, to leaves. */
struct kept {
	uint32_t p, n, cap;
	struct pick *pick;
};

struct memo {
	uint32_t front;
	uint64_t used; /* for throwing out the oldest */
	enum mode mode;
	int64_t at, now, duration;
	bool constrained; /* what is known holds under some constraint only */
	uint32_t nsig;
	uint8_t sig[SIG_MAX];
	uint64_t *maybe; /* not known, or serves */
	uint64_t *known;
	uint64_t *later;  /* has bookings that start later: the answer depends on the duration */
	uint32_t *count;  /* units, of those that serve */
	uint32_t *marked; /* generation its edges were marked in */
	/* Top-level slots: the scores of all slots a vertex offers, in order. */
	struct offer *offer;
	int64_t slots;  /* offered in all */
	bool unordered; /* some vertex offered a better slot after a worse one */
	uint32_t *tree; /* tournament: the position with the best first slot */
	uint32_t leaves;
	uint32_t *sums;  /* Fenwick tree over positions: slots offered */
	uint32_t *level; /* how many slots have score base + i */
	int64_t base;
	uint32_t nlevel, filled; /* entries; those above 0 */
	bool spread;             /* no `level`: scores too far apart, or no memory */
	struct extent *extent;   /* for ties: by subtree of `tree` */
	struct ranks ranks;      /* for ties; made when first needed, no `row` if not */
	struct kept kept[KEPT_MAX];
	uint32_t nkept; /* ever: the oldest makes room */
	struct model model[MODELS_MAX];
	bool models;                 /* they can be had in this generation */
	uint32_t nmodel, model_gen;  /* how many, all of this generation */
	uint32_t passed, passed_gen; /* a vertex; it and those above let pass in this generation */
	int64_t *shared[SHARED_MAX]; /* scores of several offers */
	uint32_t nshared;
	bool bulk; /* `tree` and `sums` will be made when all are asked */
};

struct fast {
	struct front front[FRONTS_MAX];
	uint32_t nfront;
	struct memo *memo[MEMOS_MAX];
	uint32_t nmemo;
	uint64_t clock;
	uint32_t last[FRONTS_MAX]; /* position made unknown last, if nothing was asked since */
};

/* --- fast.c --- */
uint32_t memo_words(uint32_t n);
void memo_forget(const struct front *f, struct memo *x);
/* The front for a request's type, or for its slot; NULL when there is no room. */
struct front *front_for(struct slu_match *m, const struct slu_request *r);
struct memo *memo_for(struct attempt *a, uint32_t front, const uint8_t *sig, uint32_t nsig);
/* The model for vertex p: NULL if there is none; if it is p itself, it is to be asked as such.
 * `centre` is F of node_centric below p. */
struct model *model_for(struct attempt *a, const struct front *f, struct memo *x, uint32_t p,
			int64_t *centre);
/* walk_above, which has the same answer for all below one vertex. */
bool passes(struct attempt *a, struct memo *x, uint32_t v);
/* Note that p is known, and whether the answer depends on the duration. */
void memo_know(struct slu_match *m, const struct front *f, struct memo *x, uint32_t p);
/* Whether the rules cover a request, and what it is, as bytes. */
bool request_sign(const struct slu_request *list, uint32_t n, uint8_t *sig, uint32_t *at);
/* Put the greater score first? */
bool greater_first(const struct slu_match *m);

/* --- fast_front.c --- */
/* Mark all edges above v that are not marked yet. */
void mark_above(struct slu_match *m, uint32_t v);

/* --- fast_slot.c: a top-level slot that fits in vertices below the root --- */
int fast_slots(struct attempt *a, const struct slu_request *r, struct front *f, struct memo *x);
void memo_slots_done(struct memo *x, uint32_t n);

/* --- fast_tie.c --- */
/* The slots the reference's sort puts first.  0, -ENOMEM; -EAGAIN: take the plain walk. */
int tie_decide(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
	       struct chosen *out);
/* What ties will need, once all offers are known.  0 or -ENOMEM. */
int extent_make(const struct slu_match *m, const struct front *f, struct memo *x);
/* Vertex p offers other slots. */
void extent_change(const struct slu_match *m, struct memo *x, uint32_t p);
