/* front.c — the vertices that may serve a request, in order of score, and what of them does not
 * depend on the request; see memo.c.
 *
 * The fronts most requests want are made while loading. */
#include "match/fast/fast_internal.h"

#define CENTRE_MAX (1ll << 60) /* sums with any id below alike vertices do not overflow */

struct building {
	struct slu_match *m;
	struct front *f;
	const struct slu_request *slot; /* NULL: by type */
	SLU_VEC(uint32_t) v;
	SLU_VEC(int64_t) centre;
};

static bool centre_of(const struct slu_vertex *v, int64_t *f)
{
	return v->id >= -1 && !__builtin_add_overflow(v->id, 2, f) &&
	       !__builtin_mul_overflow(*f, 10000, f) &&
	       !__builtin_add_overflow(*f, llabs(v->uniq_id % 10000 - 1), f);
}

/* F of node_centric for what is below v, given that above it. */
static bool centre_below(const struct slu_match *m, uint32_t v, int64_t *centre)
{
	const struct slu_vertex *x = &m->g->v.p[v];
	int64_t own;

	if (!m->policy.node_centric || x->type != SLU_TYPE_NODE)
		return true;
	return centre_of(x, &own) && !__builtin_add_overflow(*centre, own, centre);
}

static int gather_vertices(struct building *b, uint32_t u, int64_t centre)
{
	struct slu_match *m = b->m;
	const struct slu_vertex *v = &m->g->v.p[u];

	/* Every score must be above 0; and a vertex of type slot would be taken for the slot that
	 * the request names. */
	if (v->id < -1 || (b->slot && v->type == SLU_TYPE_SLOT))
		b->f->bad = true;
	if (b->slot ? match_kid_types_fit(m, u, b->slot) : v->type == b->f->type) {
		if (slu_vec_push(&b->v, u) < 0)
			return -ENOMEM;
		return slu_vec_push(&b->centre, centre);
	}
	if (!centre_below(m, u, &centre))
		b->f->bad = true;
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1] && !b->f->bad; k++) {
		int rc = gather_vertices(b, m->g->e.p[m->kid[k]].dst, centre);

		if (rc < 0)
			return rc;
	}
	return 0;
}

struct by_score {
	int64_t score;
	uint32_t i;
};

static int cmp_less(const void *a, const void *b)
{
	const struct by_score *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

static int cmp_greater(const void *a, const void *b)
{
	const struct by_score *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/* Most often the vertices are in order already, or in reverse. */
static void sort_front(struct by_score *s, uint32_t n, bool greater)
{
	bool rising = true, falling = true, level = true;

	for (uint32_t i = 1; i < n; i++) {
		rising &= s[i].score > s[i - 1].score;
		falling &= s[i].score < s[i - 1].score;
		level &= s[i].score == s[i - 1].score;
	}
	if (level || (greater ? falling : rising))
		return;
	if (greater ? !rising : !falling)
		qsort(s, n, sizeof *s, greater ? cmp_greater : cmp_less);
	else
		for (uint32_t i = 0, j = n; i + 1 < j; i++) {
			struct by_score t = s[--j];

			s[j] = s[i];
			s[i] = t;
		}
}

static int arrange(struct building *b)
{
	struct slu_match *m = b->m;
	struct front *f = b->f;
	uint32_t n = b->v.n;
	struct by_score *s = slu_reallocarray(NULL, n + 1, sizeof *s);

	f->n = n;
	f->v = slu_reallocarray(NULL, n + 1, sizeof *f->v);
	f->score = slu_reallocarray(NULL, n + 1, sizeof *f->score);
	f->centre = slu_reallocarray(NULL, n + 1, sizeof *f->centre);
	f->found = slu_reallocarray(NULL, n + 1, sizeof *f->found);
	f->gap = slu_calloc(memo_words(n), sizeof *f->gap);
	f->at = slu_calloc(m->nv + 1, sizeof *f->at);
	if (!s || !f->v || !f->score || !f->centre || !f->found || !f->gap || !f->at) {
		slu_free(s);
		return -ENOMEM;
	}
	f->distinct = f->falling = f->rising = true;
	for (uint32_t i = 0; i < n && !f->bad; i++) {
		s[i].i = i;
		s[i].score = 1;
		if (b->slot)
			continue; /* the slots have scores, not the vertex */
		f->bad = !match_walk_score(m, b->v.p[i], b->centre.p[i], &s[i].score) ||
			 s[i].score <= 0;
	}
	if (!f->bad) {
		sort_front(s, n, match_greater_first(m));
		for (uint32_t i = 0; i < n; i++) {
			f->v[i] = b->v.p[s[i].i];
			f->score[i] = s[i].score;
			f->centre[i] = b->centre.p[s[i].i];
			f->found[i] = s[i].i;
			f->at[f->v[i]] = i + 1;
			f->falling &= s[i].i == i;
			f->rising &= s[i].i == n - 1 - i;
			if (i && s[i].score == s[i - 1].score)
				f->distinct = false;
			if (i + 1 == n || llabs(s[i].score - s[i + 1].score) != 1)
				f->gap[i / 64] |= 1ull << i % 64;
		}
	}
	slu_free(s);
	return 0;
}

void match_front_done(struct front *f)
{
	slu_free(f->v);
	slu_free(f->score);
	slu_free(f->centre);
	slu_free(f->found);
	slu_free(f->gap);
	slu_free(f->at);
	slu_free(f->like);
	slu_free(f->touched);
	slu_free(f->parted);
	slu_free(f->ground.below);
	slu_free(f->ground.range);
	slu_free(f->ground.best);
	*f = (struct front){ 0 };
}

/* --- by chunk --- */

static void chart_ranges(struct ground *g, uint32_t c)
{
	struct range *r = g->range + (size_t)c * 2 * CHUNK_N;
	uint32_t best = 0;

	for (uint32_t j = 0; j < CHUNK_N; j++) {
		uint32_t p = c * CHUNK_N + j;

		r[CHUNK_N + j] = (struct range){ INT64_MAX, INT64_MIN };
		if (p >= g->n)
			continue;
		r[CHUNK_N + j] = (struct range){ g->below[p], g->below[p] };
		if (g->greater ? g->below[p] > g->below[c * CHUNK_N + best]
			       : g->below[p] < g->below[c * CHUNK_N + best])
			best = j;
	}
	for (uint32_t i = CHUNK_N; --i;)
		r[i] = (struct range){ SLU_MIN(r[2 * i].low, r[2 * i + 1].low),
				       SLU_MAX(r[2 * i].high, r[2 * i + 1].high) };
	g->best[c] = (uint8_t)best;
}

static void chart_chunk(const struct slu_match *m, struct front *f, uint32_t c)
{
	uint32_t end = SLU_MIN(f->n, (c + 1) * CHUNK_N), all = SLU_NONE, last = SLU_NONE;
	bool same = m->like;

	for (uint32_t p = c * CHUNK_N; p < end; p++) {
		uint32_t v = f->v[p], above = m->g->e.p[m->up[v]].src;
		uint32_t like = m->like ? m->like[v] : SLU_NONE;
		int64_t centre = f->centre[p];

		if (!centre_below(m, v, &centre) || centre > CENTRE_MAX)
			f->apart = true;
		same = same && (like == SLU_NONE || all == SLU_NONE || like == all);
		all = like == SLU_NONE ? all : like;
		if (like == SLU_NONE || match_alike_of(m, v) == SLU_NONE)
			f->touched[c] |= 1ull << p % CHUNK_N;
		if (above != last)
			f->parted[c] |= 1ull << p % CHUNK_N;
		last = above;
		if (f->ground.below)
			f->ground.below[p] = centre;
	}
	f->like[c] = same ? all : SLU_NONE;
	if (f->ground.below)
		chart_ranges(&f->ground, c);
}

static int chart(const struct slu_match *m, struct front *f)
{
	uint32_t chunks = chunks_of(f->n);
	struct ground *g = &f->ground;

	g->n = f->n;
	g->greater = match_greater_first(m);
	f->like = slu_reallocarray(NULL, chunks + 1, sizeof *f->like);
	f->touched = slu_calloc(chunks + 1, sizeof *f->touched);
	f->parted = slu_calloc(chunks + 1, sizeof *f->parted);
	if (!f->like || !f->touched || !f->parted)
		return -ENOMEM;
	if (f->type == SLU_TYPE_SLOT && m->policy.node_centric &&
	    m->policy.scorer != SCORE_LOCALITY) {
		g->below = slu_reallocarray(NULL, f->n + 1, sizeof *g->below);
		g->range = slu_reallocarray(NULL, (size_t)chunks * 2 * CHUNK_N + 1,
					    sizeof *g->range);
		g->best = slu_calloc(chunks + 1, sizeof *g->best);
		if (!g->below || !g->range || !g->best)
			return -ENOMEM;
	}
	for (uint32_t c = 0; c < chunks; c++)
		chart_chunk(m, f, c);
	return 0;
}

/* --- which one --- */

static bool is_front(const struct front *f, const struct slu_request *r)
{
	if (f->type != r->type)
		return false;
	if (r->type != SLU_TYPE_SLOT)
		return true;
	if (f->nkids != r->nwith)
		return false;
	for (uint32_t i = 0; i < r->nwith; i++)
		if (f->kids[i] != r->with[i].type)
			return false;
	return true;
}

struct front *match_front_for(struct slu_match *m, const struct slu_request *r)
{
	struct fast *f = m->fast;
	struct building b = { .m = m, .slot = r->type == SLU_TYPE_SLOT ? r : NULL };
	uint32_t root = m->g->root[m->sub[0]];
	int rc;

	if (!f) {
		f = m->fast = slu_calloc(1, sizeof *f);
		if (!f)
			return NULL;
	}
	for (uint32_t i = 0; i < f->nfront; i++)
		if (is_front(&f->front[i], r))
			return &f->front[i];
	if (f->nfront == FRONTS_MAX || (b.slot && r->nwith > SLOT_KIDS_MAX))
		return NULL;
	b.f = &f->front[f->nfront];
	*b.f = (struct front){ .type = r->type };
	for (uint32_t i = 0; b.slot && i < r->nwith; i++)
		b.f->kids[b.f->nkids++] = r->with[i].type;
	rc = gather_vertices(&b, root, 0);
	if (m->nested || (b.v.n && b.v.p[0] == root))
		b.f->bad = true;
	if (!rc)
		rc = arrange(&b);
	if (!rc && !b.f->bad)
		rc = chart(m, b.f);
	slu_vec_done(&b.v);
	slu_vec_done(&b.centre);
	if (rc < 0) {
		match_front_done(b.f);
		return NULL;
	}
	f->last[f->nfront++] = SLU_NONE;
	return b.f;
}

void match_fast_begin(struct slu_match *m)
{
	struct slu_request core = { .type = SLU_TYPE_CORE };
	struct slu_request node = { .type = SLU_TYPE_NODE };
	struct slu_request slot = { .type = SLU_TYPE_SLOT, .with = &core, .nwith = 1 };

	if (m->count_visits || !m->tree || m->flexible || m->nsub > 1)
		return; /* no request asks for this type */
	/* Without memory the fronts are made when they are needed. */
	match_front_for(m, &node);
	if (!m->policy.stop)
		match_front_for(m, &slot);
}
