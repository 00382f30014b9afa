/* memo.c — for the requests seen lately, remember which vertices may serve them.
 *
 * The policies that score every candidate make the plain walk visit the whole graph for one core.
 * But for a request of one top-level type T ("node -> slot -> core") on a tree
 *
 *  - the candidates are the topmost vertices of type T, the "front"; whether one can serve the
 *    request depends on its own subtree (and on its ancestors being up and not taken), and its
 *    score on its id alone;
 *  - the order among the chosen does not matter, only which ones are chosen.
 *
 * So the front is kept in order of score, and per kind of request a bitmap of the vertices that
 * might serve it: not known yet, or known to.  An attempt takes them in order and asks only those
 * it does not know (by the plain visit, which also marks the edges below).  A booking or release
 * makes the vertex unknown again.  If the last one chosen ties with one left out, the real sort
 * decides (it looks at all of them, but only as far as needed).
 *
 * Where any of this does not hold, fast_attempt says -EAGAIN and the plain walk is taken. */
#include "match/fast/fast_internal.h"

/* --- life --- */

void match_memo_slots_done(struct memo *x)
{
	match_extent_done(x);
	match_ranks_done(&x->ranks);
	match_offers_done(&x->offers);
	match_levels_done(&x->levels);
	for (uint32_t i = 0; i < KEPT_MAX; i++)
		slu_free(x->kept[i].pick);
	memset(x->kept, 0, sizeof x->kept);
}

static void memo_free(struct memo *x, uint32_t n)
{
	if (!x)
		return;
	match_memo_slots_done(x);
	for (uint32_t c = 0; x->asked && c < chunks_of(n); c++)
		slu_free(x->asked[c]);
	slu_free(x->asked);
	slu_free(x->plain);
	slu_free(x->maybe);
	slu_free(x->known);
	slu_free(x->later);
	slu_free(x);
}

void match_fast_drop(struct slu_match *m)
{
	struct fast *f = m->fast;

	if (!f)
		return;
	for (uint32_t i = 0; i < f->nmemo; i++)
		memo_free(f->memo[i], f->front[f->memo[i]->front].n);
	for (uint32_t i = 0; i < f->nfront; i++)
		match_front_done(&f->front[i]);
	slu_free(f);
	m->fast = NULL;
}

/* --- requests --- */

bool match_request_sign(const struct slu_request *list, uint32_t n, uint8_t *sig, uint32_t *at)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *r = &list[i];
		uint32_t words_[6] = { r->type,          r->excl,
				       r->count.min,     r->count.max,
				       r->count.operand, (uint32_t)r->count.op << 16 | r->nwith };

		/* The plain walk leaves labels on the vertices it visits, and reports conflicts and
		 * types that occur twice: such requests need it. */
		if (r->excl == SLU_EXCL_FALSE || (r->type != SLU_TYPE_SLOT && r->label[0]))
			return false;
		if (r->type == SLU_TYPE_SLOT ? n > 1 || !r->nwith : r->type == SLU_TYPE_XOR_SLOT)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (list[k].type == r->type)
				return false;
		if (*at + sizeof words_ > SIG_MAX)
			return false;
		memcpy(sig + *at, words_, sizeof words_);
		*at += sizeof words_;
		if (!match_request_sign(r->with, r->nwith, sig, at))
			return false;
	}
	return true;
}

static struct memo *memo_new(const struct front *f)
{
	struct memo *x = slu_calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->maybe = slu_calloc(memo_words(f->n), sizeof *x->maybe);
	x->known = slu_calloc(memo_words(f->n), sizeof *x->known);
	x->later = slu_calloc(memo_words(f->n), sizeof *x->later);
	x->asked = slu_calloc(memo_words(f->n), sizeof *x->asked);
	x->plain = slu_calloc(memo_words(f->n), sizeof *x->plain);
	if (!x->maybe || !x->known || !x->later || !x->asked || !x->plain) {
		memo_free(x, f->n);
		return NULL;
	}
	match_memo_forget(f, x);
	return x;
}

struct memo *match_memo_for(struct attempt *a, uint32_t front, const uint8_t *sig, uint32_t nsig)
{
	struct fast *f = a->m->fast;
	const struct front *fr = &f->front[front];
	enum mode mode = a->mode == MODE_WITHOUT && a->at == a->now ? MODE_ALLOCATE
			 : a->mode == MODE_WITHOUT                  ? MODE_RESERVE
								    : a->mode;
	struct memo *x = NULL;
	uint32_t old = 0;

	for (uint32_t i = 0; i < f->nmemo; i++) {
		struct memo *y = f->memo[i];

		if (y->front == front && y->mode == mode && y->at == a->at && y->nsig == nsig &&
		    memcmp(y->sig, sig, nsig) == 0)
			x = y;
		if (y->used < f->memo[old]->used)
			old = i;
	}
	if (!x) {
		x = memo_new(fr);
		if (!x)
			return NULL;
		if (f->nmemo == MEMOS_MAX) {
			memo_free(f->memo[old], f->front[f->memo[old]->front].n);
			f->memo[old] = x;
		} else {
			f->memo[f->nmemo++] = x;
		}
		x->front = front;
		x->mode = mode;
		x->at = a->at;
		x->now = a->now;
		x->duration = a->duration;
		x->nsig = nsig;
		memcpy(x->sig, sig, nsig);
	}
	x->used = ++f->clock;
	if (x->now != a->now || a->constraint || x->constrained) {
		match_memo_forget(fr, x);
		x->now = a->now;
		x->constrained = a->constraint != NULL;
	} else if (x->duration != a->duration) {
		for (uint32_t w = 0; w < memo_words(fr->n); w++) {
			x->known[w] &= ~x->later[w];
			x->maybe[w] |= x->later[w];
			x->later[w] = 0;
		}
	}
	x->duration = a->duration;
	return x;
}

/* --- alike --- */

/* Whether vertices that are alike have the same answer in this attempt. */
static bool models_hold(const struct attempt *a)
{
	return match_alike_known(a->m) && !a->constraint && a->end >= a->at;
}

uint32_t match_kind_of(const struct attempt *a, const struct front *f, uint32_t p)
{
	return models_hold(a) && !f->apart ? match_alike_of(a->m, f->v[p]) : SLU_NONE;
}

uint32_t match_model_of(const struct memo *x, uint32_t like)
{
	uint32_t i = 0;

	while (i < x->nmodel && x->model[i].like != like)
		i++;
	return i;
}

static uint32_t parent_of(const struct slu_match *m, uint32_t v)
{
	return m->up[v] == SLU_NONE ? SLU_NONE : m->g->e.p[m->up[v]].src;
}

/* Whether two vertices without bookings below them let the same requests pass. */
static bool pass_alike(const struct attempt *a, uint32_t u, uint32_t t)
{
	const struct slu_match *m = a->m;

	return models_hold(a) && parent_of(m, u) == parent_of(m, t) &&
	       match_alike_of(m, u) != SLU_NONE && match_alike_of(m, u) == match_alike_of(m, t);
}

bool match_passes(struct attempt *a, struct memo *x, uint32_t v)
{
	struct slu_match *m = a->m;
	uint32_t above = parent_of(m, v);

	if (x->passed_gen == m->gen && (x->passed == above || pass_alike(a, above, x->passed)))
		return true;
	if (!match_walk_above(a, v))
		return false;
	x->passed = above;
	x->passed_gen = m->gen;
	return true;
}

bool match_chunk_alike(struct attempt *a, struct front *f, struct memo *x, uint32_t c,
		       uint64_t *pure)
{
	struct slu_match *m = a->m;
	uint32_t size = SLU_MIN(f->n - c * CHUNK_N, (uint32_t)CHUNK_N);

	if (f->like[c] == SLU_NONE || f->apart || !models_hold(a))
		return false;
	for (uint64_t bits = f->touched[c]; bits; bits &= bits - 1) {
		uint32_t j = (uint32_t)__builtin_ctzll(bits);

		if (match_alike_of(m, f->v[c * CHUNK_N + j]) != f->like[c])
			continue;
		f->touched[c] &= ~(1ull << j); /* free again */
		m->fast->last[x->front] = SLU_NONE;
	}
	*pure = ~0ull >> (CHUNK_N - size) & ~f->touched[c];
	for (uint64_t bits = f->parted[c]; *pure && bits; bits &= bits - 1)
		if (!match_passes(a, x, f->v[c * CHUNK_N + (uint32_t)__builtin_ctzll(bits)]))
			return false;
	return *pure;
}

/* --- what is known --- */

struct asked *match_memo_asked(struct memo *x, uint32_t c)
{
	struct asked *k = x->asked[c];

	if (k)
		return k;
	k = x->asked[c] = slu_calloc(1, sizeof *k);
	for (uint32_t j = 0; k && x->plain[c] && j < CHUNK_N; j++)
		k->count[j] = x->model[x->plain[c] - 1].count;
	return k;
}

uint32_t match_memo_marked(const struct memo *x, uint32_t p)
{
	const struct asked *k = x->asked[p / CHUNK_N];

	return k ? k->marked[p % CHUNK_N] : 0;
}
