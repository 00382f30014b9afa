/* take.c — an attempt to take the best vertices of a front; see memo.c.
 *
 * Three ways: in order where no two scores are equal; by the reference's sort where the last one
 * chosen may tie with one left out; and, where that sort only ever sees runs of neighbours
 * (locality on ids in order), by the sort of runs, which does not look at every vertex. */
#include "match/fast/fast_internal.h"

static uint32_t count_of(const struct memo *x, uint32_t p)
{
	const struct asked *k = x->asked[p / CHUNK_N];
	uint32_t plain = x->plain[p / CHUNK_N];

	return k ? k->count[p % CHUNK_N] : plain ? x->model[plain - 1].count : 0;
}

/* Note that the vertices of these bits of a chunk serve, or do not. */
static void note_chunk(struct memo *x, uint32_t c, uint64_t bits, bool good)
{
	if (good)
		x->maybe[c] |= bits;
	else
		x->maybe[c] &= ~bits;
}

/* Ask the vertex at position p; true if it serves. */
static bool ask_vertex(struct attempt *a, const struct front *f, struct memo *x, uint32_t p)
{
	struct slu_match *m = a->m;
	struct asked *k = match_memo_asked(x, p / CHUNK_N);
	uint32_t v = f->v[p];
	int64_t count = 0;
	bool good = k && match_passes(a, x, v) &&
		    match_walk_visit(a, v, f->centre[p], &count, NULL);

	a->no_memory |= !k;
	if (a->no_memory)
		return false;
	match_memo_know(m, f, x, p);
	note_chunk(x, p / CHUNK_N, 1ull << p % CHUNK_N, good);
	if (good) {
		k->count[p % CHUNK_N] = (uint32_t)count;
		k->marked[p % CHUNK_N] = m->gen;
	}
	return good;
}

/* Let all vertices of a chunk answer like the model; false: not all are alike. */
static bool learn_chunk(struct attempt *a, struct front *f, struct memo *x, uint32_t c,
			uint32_t model)
{
	const struct model *o = &x->model[model];
	uint64_t pure;

	if (f->like[c] != o->like || !match_chunk_alike(a, f, x, c, &pure))
		return false;
	x->plain[c] = (uint8_t)(model + 1);
	x->known[c] |= pure;
	x->later[c] &= ~pure;
	note_chunk(x, c, pure, o->serves);
	for (uint64_t bits = x->asked[c] ? pure : 0; bits; bits &= bits - 1)
		x->asked[c]->count[__builtin_ctzll(bits)] = o->count;
	a->m->fast->last[x->front] = SLU_NONE;
	return true;
}

/* Ask the vertex at position p, or one like it. */
static bool learn_fit(struct attempt *a, struct front *f, struct memo *x, uint32_t p)
{
	uint32_t like = match_kind_of(a, f, p), i = match_model_of(x, like);
	struct asked *k;

	if (like == SLU_NONE || i == PATTERNS_MAX || !match_passes(a, x, f->v[p]))
		return ask_vertex(a, f, x, p);
	if (i == x->nmodel) {
		bool good = ask_vertex(a, f, x, p);

		if (!a->no_memory)
			x->model[x->nmodel++] = (struct model){ like, good, count_of(x, p) };
		return good;
	}
	if (!learn_chunk(a, f, x, p / CHUNK_N, i)) {
		k = match_memo_asked(x, p / CHUNK_N);
		if (!k)
			return ask_vertex(a, f, x, p);
		match_memo_know(a->m, f, x, p);
		k->count[p % CHUNK_N] = x->model[i].count;
		note_chunk(x, p / CHUNK_N, 1ull << p % CHUNK_N, x->model[i].serves);
	}
	return x->model[i].serves;
}

static bool serves(struct attempt *a, struct front *f, struct memo *x, uint32_t p)
{
	return x->known[p / 64] >> p % 64 & 1 ? true : learn_fit(a, f, x, p);
}

/* First position from p on that may serve; n at the end. */
static uint32_t next_maybe(const struct memo *x, uint32_t n, uint32_t p)
{
	for (uint32_t w = p / 64; p < n; p = ++w * 64) {
		uint64_t bits = x->maybe[w] >> p % 64;

		if (bits) {
			p += (uint32_t)__builtin_ctzll(bits);
			return p < n ? p : n;
		}
	}
	return n;
}

static uint32_t next_serving(struct attempt *a, struct front *f, struct memo *x, uint32_t p)
{
	for (p = next_maybe(x, f->n, p); p < f->n; p = next_maybe(x, f->n, p + 1))
		if (serves(a, f, x, p) || a->no_memory)
			return p;
	return f->n;
}

/* Mark vertex p and all above it. */
static bool take_vertex(struct attempt *a, const struct front *f, struct memo *x, uint32_t p,
			bool excl)
{
	struct slu_match *m = a->m;
	uint32_t v = f->v[p], e = m->up[v];

	if (a->mode == MODE_SATISFY)
		return true; /* no edges: the marks are not followed */
	if (match_memo_marked(x, p) != m->gen && !ask_vertex(a, f, x, p))
		return false;
	match_mark_put(m, e, count_of(x, p), excl);
	match_mark_above(m, m->g->e.p[e].src);
	return true;
}

/* Where the run of neighbouring scores starts, for positions in order of score (falling). */
static void run_keys(const struct front *f, const uint32_t *serving, uint32_t n, int64_t *key)
{
	for (uint32_t i = n; i-- > 0;) {
		int64_t s = f->score[serving[i]];

		key[i] = s;
		if (i + 1 < n && f->score[serving[i + 1]] == s)
			key[i] = key[i + 1];
		else if (i + 1 < n && f->score[serving[i + 1]] == s - 1)
			key[i] = key[i + 1];
	}
}

/* Decide among equals as the reference's sort does. */
static int by_sorting(struct attempt *a, struct front *f, struct memo *x, uint32_t want, bool excl)
{
	struct slu_match *m = a->m;
	uint32_t *serving, n = 0;
	struct key *keys;
	int64_t *run, units = 0;

	serving = slu_arena_alloc(&m->tmp, (f->n + 1) * sizeof *serving);
	keys = slu_arena_alloc(&m->tmp, (f->n + 1) * sizeof *keys);
	run = slu_arena_alloc(&m->tmp, (f->n + 1) * sizeof *run);
	if (!serving || !keys || !run)
		return -ENOMEM;
	for (uint32_t p = next_serving(a, f, x, 0); p < f->n; p = next_serving(a, f, x, p + 1))
		serving[n++] = p;
	if (a->no_memory)
		return -ENOMEM;
	if (m->policy.scorer == SCORE_LOCALITY)
		run_keys(f, serving, n, run);
	else
		for (uint32_t i = 0; i < n; i++)
			run[i] = f->score[serving[i]];
	/* In order of discovery: `found` is a permutation, so put each to its place. */
	{
		uint32_t *slot = slu_arena_alloc(&m->tmp, (f->n + 1) * sizeof *slot), k = 0;

		if (!slot)
			return -ENOMEM;
		memset(slot, 0xff, f->n * sizeof *slot);
		for (uint32_t i = 0; i < n; i++)
			slot[f->found[serving[i]]] = i;
		for (uint32_t d = 0; d < f->n; d++)
			if (slot[d] != SLU_NONE)
				keys[k++] = (struct key){ run[slot[d]],
							  (void *)(uintptr_t)serving[slot[d]] };
	}
	match_sort_first(keys, n, want, match_greater_first(m));
	for (uint32_t i = 0; i < n && units < want; i++) {
		uint32_t p = (uint32_t)(uintptr_t)keys[i].c;

		units += count_of(x, p);
		if (!take_vertex(a, f, x, p, excl))
			return -EAGAIN;
	}
	return 0;
}

/* Vertices that serve, numbered in order of score. */
struct numbered {
	const struct front *f;
	const uint64_t *bits; /* by position */
	uint32_t *upto;       /* by word: how many in the words before */
	uint32_t words;
};

static uint32_t position_of(const struct numbered *s, uint32_t i)
{
	uint32_t lo = 0, hi = s->words;
	uint64_t bits;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->upto[mid] <= i)
			lo = mid;
		else
			hi = mid;
	}
	bits = s->bits[lo];
	for (i -= s->upto[lo]; i; i--)
		bits &= bits - 1;
	return lo * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* As bits: the positions of word w behind which a run of neighbours ends. */
static uint64_t breaks_in(const struct numbered *s, uint32_t w)
{
	return s->f->gap[w] | ~s->bits[w];
}

/* The neighbours around number i, all of which serve. */
static void neighbours(void *arg, uint32_t i, uint32_t *lo, uint32_t *hi)
{
	const struct numbered *s = arg;
	uint32_t p = position_of(s, i), first, last, w = p / 64;
	uint64_t bits = breaks_in(s, w) & ~0ull << p % 64;

	while (!bits && w + 1 < s->words)
		bits = breaks_in(s, ++w);
	/* A run of neighbours ends behind a vertex that serves, or at one that does not. */
	last = w * 64 + (bits ? (uint32_t)__builtin_ctzll(bits) : 63);
	if (!(s->bits[last / 64] >> last % 64 & 1))
		last--;
	w = p / 64;
	bits = breaks_in(s, w) & ((1ull << p % 64) - 1);
	while (!bits && w)
		bits = breaks_in(s, --w);
	first = bits ? w * 64 + 64 - (uint32_t)__builtin_clzll(bits) : 0;
	*lo = i - (p - first);
	*hi = i + (last - p) + 1;
}

/* As by_sorting, for vertices that are discovered in order of score under locality. */
static int by_runs(struct attempt *a, struct front *f, struct memo *x, uint32_t want, bool excl)
{
	struct slu_match *m = a->m;
	struct numbered s = { .f = f, .bits = x->maybe, .words = memo_words(f->n) };
	uint32_t n = 0, need, *out;
	int64_t units = 0;
	int rc;

	s.upto = slu_arena_alloc(&m->tmp, s.words * sizeof *s.upto);
	if (!s.upto)
		return -ENOMEM;
	for (uint32_t w = 0; w < s.words; w++) {
		while (x->maybe[w] & ~x->known[w] && !a->no_memory)
			learn_fit(a, f, x,
				  w * 64 + (uint32_t)__builtin_ctzll(x->maybe[w] & ~x->known[w]));
		s.upto[w] = n;
		n += (uint32_t)__builtin_popcountll(x->maybe[w]);
	}
	if (a->no_memory)
		return -ENOMEM;
	need = SLU_MIN(want, n);
	out = slu_arena_alloc(&m->tmp, (need + 1) * sizeof *out);
	if (!out)
		return -ENOMEM;
	rc = match_sort_runs(&m->tmp, n, !f->falling, need, neighbours, &s, out);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < need; i++)
		out[i] = position_of(&s, out[i]);
	for (uint32_t i = 0; i < need && units < want; i++) {
		units += count_of(x, out[i]);
		if (!take_vertex(a, f, x, out[i], excl))
			return -EAGAIN;
	}
	return units < want ? -ENODEV : 0;
}

/* The best `want` units when no two scores are equal: simply in order. */
static int in_order(struct attempt *a, struct front *f, struct memo *x, uint32_t want, bool excl)
{
	uint32_t p = 0;
	int64_t units = 0;

	for (;;) {
		p = next_serving(a, f, x, p);
		if (a->no_memory)
			return -ENOMEM;
		if (p == f->n)
			return -ENODEV;
		if (!take_vertex(a, f, x, p, excl))
			return -EAGAIN;
		units += count_of(x, p);
		if (units >= want)
			break;
		p++;
	}
	return 0;
}

/* Units that serve, up to `enough`. */
static int64_t units_serving(struct attempt *a, struct front *f, struct memo *x, int64_t enough)
{
	int64_t units = 0;

	for (uint32_t p = next_serving(a, f, x, 0); p < f->n && units < enough;
	     p = next_serving(a, f, x, p + 1))
		units += count_of(x, p);
	return units;
}

void match_fast_skip_begin(struct attempt *a)
{
	struct slu_match *m = a->m;
	uint8_t sig[SIG_MAX];
	uint32_t nsig = 0;
	struct front *f;

	a->skip = NULL;
	if (m->count_visits || !m->tree || m->flexible || m->nsub > 1 || m->odd || a->nlist != 1 ||
	    a->list->type == SLU_TYPE_SLOT || a->constraint ||
	    !match_request_sign(a->list, 1, sig, &nsig))
		return;
	f = match_front_for(m, a->list);
	if (f && !f->bad)
		a->skip = match_memo_for(a, (uint32_t)(f - m->fast->front), sig, nsig);
}

int match_fast_attempt(struct attempt *a)
{
	struct slu_match *m = a->m;
	const struct slu_request *r = a->list;
	uint8_t sig[SIG_MAX];
	uint32_t nsig = 0, want;
	struct front *f;
	struct memo *x;
	bool excl;
	int rc;

	if (m->count_visits || !m->tree || m->flexible || m->nsub > 1 || m->policy.stop || m->odd ||
	    a->nlist != 1 || !match_request_sign(r, 1, sig, &nsig))
		return -EAGAIN;
	if (r->type == SLU_TYPE_SLOT && m->inexact)
		return -EAGAIN; /* the walk above a slot relies on the sums */
	f = match_front_for(m, r);
	if (!f || f->bad)
		return -EAGAIN;
	x = match_memo_for(a, (uint32_t)(f - m->fast->front), sig, nsig);
	if (!x)
		return -EAGAIN;
	excl = r->excl == SLU_EXCL_TRUE;
	a->root_needs = 1;
	a->root_excl = false;
	if (r->type == SLU_TYPE_SLOT)
		return match_fast_slots(a, r, f, x);
	if (r->count.min == r->count.max) {
		want = slu_count_select(&r->count, r->count.min);
		if (!want)
			return -EAGAIN;
	} else {
		int64_t q = units_serving(a, f, x, UINT32_MAX);

		want = slu_count_select(&r->count, (uint32_t)SLU_MIN(q, (int64_t)UINT32_MAX));
	}
	rc = -ENODEV;
	if (want && a->mode == MODE_SATISFY)
		rc = units_serving(a, f, x, want) >= want ? 0 : -ENODEV;
	else if (want && f->distinct && m->policy.scorer != SCORE_LOCALITY)
		rc = in_order(a, f, x, want, excl);
	else if (want && m->policy.scorer == SCORE_LOCALITY && f->distinct &&
		 (f->falling || f->rising))
		rc = by_runs(a, f, x, want, excl);
	else if (want && units_serving(a, f, x, want) >= want)
		rc = by_sorting(a, f, x, want, excl);
	if (a->no_memory)
		return -ENOMEM;
	if (rc == -EAGAIN) {
		match_memo_forget(f, x);
		return rc;
	}
	a->error = rc == -ENODEV ? ENODEV : EBUSY;
	return rc;
}
