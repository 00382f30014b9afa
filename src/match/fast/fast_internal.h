/* fast_internal.h — what the files of this room share.  Others include fast.h.
 *
 *	alike.c   subtrees that are the same       front.c   vertices in order of score
 *	memo.c    what is remembered of a request  known.c   which vertices serve it, or fail
 *	take.c    the best vertices of a front
 *	offers.c  the slots that vertices offer    slots.c   the best of all slots
 *	levels.c  how many slots have which score  ties.c    which of the equal slots are taken
 *	ranks.c, sort_ranks.c, sort_runs.c         the reference's sort without sorting everything
 */
#pragma once
#include "match/fast/fast.h"
#include "match/fast/ranks_internal.h"

#define FRONTS_MAX    16
#define MEMOS_MAX     16
#define SIG_MAX       512
#define SLOT_KIDS_MAX 4

struct front {
	uint16_t type;
	bool bad;   /* the front has ids or shapes that the rules do not cover */
	bool apart; /* sums may overflow, so no vertex may answer for others */
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
	/* By chunk of 64 positions. */
	uint32_t *like;    /* what alike.c calls all of them; SLU_NONE if they differ */
	uint64_t *touched; /* as bits: the vertex may have bookings, or has changed */
	uint64_t *parted;  /* as bits: has another parent than the one before in the chunk */
	/* Fronts of top-level slots: vertices whose children have all these types. */
	uint16_t kids[SLOT_KIDS_MAX];
	uint32_t nkids;
	struct ground ground;
};

/* The answer of all vertices with one name that have no bookings; for slots, the pattern with
 * the same number. */
struct model {
	uint32_t like;
	bool serves;
	uint32_t count; /* units; slots: offers that are the same and not counted in levels yet */
};

#define KEPT_MAX 4

/* The edges to the slots of a vertex that was asked lately: one edge for each slot, to a leaf. */
struct kept {
	uint32_t p, n, cap;
	struct pick *pick;
};

/* The answers of a chunk in which at least one vertex was asked. */
struct asked {
	uint32_t count[CHUNK_N];  /* units, of those that serve */
	uint32_t marked[CHUNK_N]; /* generation the edges were marked in */
};

struct memo {
	uint32_t front;
	uint64_t used; /* time of the last use: the oldest memo is dropped first */
	enum mode mode;
	int64_t at, now, duration;
	bool constrained; /* the answers hold only under the constraint of this request */
	uint32_t nsig;
	uint8_t sig[SIG_MAX];
	uint64_t *maybe; /* not known, or serves */
	uint64_t *known;
	uint64_t *later; /* has bookings that start later: the answer depends on the duration */
	struct asked **asked; /* by chunk; NULL: none was */
	uint8_t *plain;       /* by chunk: number of the model all answer like + 1, or 0 */
	struct model model[PATTERNS_MAX];
	uint32_t nmodel;
	uint32_t passed, passed_gen; /* a vertex that the walk can reach in this generation */
	/* Top-level slots: the scores of all slots a vertex offers, in order. */
	struct offers offers; /* no `chunk`: none yet */
	bool unordered;       /* some vertex offered its slots not in order of score */
	struct levels levels;
	struct range *extent; /* for ties, as keys: the best and the worst, by subtree of chunks */
	struct range **part;  /* the same by chunk that is written down: by subtree of vertices */
	struct ranks ranks;   /* for ties; made when first needed, no `row` if not */
	struct kept kept[KEPT_MAX];
	uint32_t nkept; /* number of entries ever kept: the oldest is replaced */
};

struct fast {
	struct front front[FRONTS_MAX];
	uint32_t nfront;
	struct memo *memo[MEMOS_MAX];
	uint32_t nmemo;
	uint64_t clock;
	uint32_t last[FRONTS_MAX]; /* position made unknown last, unless one was asked since */
};

/* --- known.c --- */
/* Words of a bitmap of n vertices. */
static inline uint32_t memo_words(uint32_t n)
{
	return n / 64 + 1;
}
/* Forget what is known of all vertices. */
void match_memo_forget(const struct front *f, struct memo *x);
/* Note that the answer of p is known, and whether it depends on the duration. */
void match_memo_know(struct slu_match *m, const struct front *f, struct memo *x, uint32_t p);

/* --- memo.c --- */
/* Free what slots.c keeps in a memo. */
void match_memo_slots_done(struct memo *x);
struct memo *match_memo_for(struct attempt *a, uint32_t front, const uint8_t *sig, uint32_t nsig);
/* Make room for the answers of a chunk; NULL without memory. */
struct asked *match_memo_asked(struct memo *x, uint32_t c);
/* The generation vertex p was marked in. */
uint32_t match_memo_marked(const struct memo *x, uint32_t p);
/* Whether the rules cover a request; if so, its key as bytes. */
bool match_request_sign(const struct slu_request *list, uint32_t n, uint8_t *sig, uint32_t *at);
/* match_walk_above(), remembered, because all vertices below one parent have the same answer. */
bool match_passes(struct attempt *a, struct memo *x, uint32_t v);
/* The name of p's subtree, if all vertices of that name without bookings have one answer in this
 * attempt. */
uint32_t match_kind_of(const struct attempt *a, const struct front *f, uint32_t p);
/* The number of the model of a name; if there is none, the number it will get. */
uint32_t match_model_of(const struct memo *x, uint32_t like);
/* Whether the vertices of chunk c are alike and can be reached, so that one answers for the
 * others; *pure has a bit for each vertex without bookings. */
bool match_chunk_alike(struct attempt *a, struct front *f, struct memo *x, uint32_t c,
		       uint64_t *pure);

/* --- front.c --- */
/* The front for a request's type, or for its slot; NULL when there is no room. */
struct front *match_front_for(struct slu_match *m, const struct slu_request *r);
void match_front_done(struct front *f);

/* --- slots.c: a top-level slot that fits in vertices below the root --- */
int match_fast_slots(struct attempt *a, const struct slu_request *r, struct front *f,
		     struct memo *x);

/* --- ties.c --- */
/* The slots the reference's sort puts first.  0, -ENOMEM; -EAGAIN: take the plain walk. */
int match_tie_decide(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
		     struct chosen *out);
/* Prepare the tables for ties, once all offers are known. 0 or -ENOMEM. */
int match_extent_make(const struct slu_match *m, struct memo *x);
void match_extent_done(struct memo *x);
/* Report that chunk c was written down. */
void match_extent_write(struct memo *x, uint32_t c);
/* Report that vertex p offers other slots. */
void match_extent_change(struct memo *x, uint32_t p);

/* --- sort_runs.c --- */

/* The numbers below n, given as they are or in reverse. */
struct sequence {
	uint32_t n;
	bool reversed;
	void *arg;
	/* The key by which number i is sorted, lowest first. */
	int64_t (*key)(void *arg, uint32_t i);
	/* How number i compares to a key of the sequence (-1, 0, 1), and the first behind it that
	 * compares otherwise, or `end`. */
	uint32_t (*stretch)(void *arg, uint32_t i, uint32_t end, int64_t key, int *cmp);
};
/* The first `need` of a sequence; 0, -ENOMEM; -EAGAIN if more than `most` had to be written down.
 */
int match_sort_sequence(struct slu_arena *mem, const struct sequence *s, uint32_t need,
			uint32_t most, uint32_t *out);
/* The interval of numbers that are equal to i; lower intervals come first. */
typedef void run_fn(void *arg, uint32_t i, uint32_t *lo, uint32_t *hi);
/* The first `need` of the numbers below n, given as they are or in reverse.  0, -ENOMEM. */
int match_sort_runs(struct slu_arena *mem, uint32_t n, bool reversed, uint32_t need, run_fn *run_of,
		    void *arg, uint32_t *out);
