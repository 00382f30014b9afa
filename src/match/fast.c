/* fast.c — the same answers with less work.
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
#include "match/fast.h"

#define CENTRE_MAX (1ll << 60) /* sums with any id below alike vertices are numbers yet */

/* --- life --- */

static void memo_free(struct memo *x, uint32_t n)
{
	if (!x)
		return;
	memo_slots_done(x, n);
	slu_free(x->maybe);
	slu_free(x->known);
	slu_free(x->later);
	slu_free(x->count);
	slu_free(x->marked);
	slu_free(x);
}

static void front_done(struct front *f)
{
	slu_free(f->v);
	slu_free(f->score);
	slu_free(f->centre);
	slu_free(f->found);
	slu_free(f->gap);
	slu_free(f->at);
	*f = (struct front){ 0 };
}

void fast_drop(struct slu_match *m)
{
	struct fast *f = m->fast;

	if (!f)
		return;
	for (uint32_t i = 0; i < f->nmemo; i++)
		memo_free(f->memo[i], f->front[f->memo[i]->front].n);
	for (uint32_t i = 0; i < f->nfront; i++)
		front_done(&f->front[i]);
	slu_free(f);
	m->fast = NULL;
}

uint32_t memo_words(uint32_t n)
{
	return n / 64 + 1;
}

void memo_forget(const struct front *f, struct memo *x)
{
	memset(x->known, 0, memo_words(f->n) * sizeof *x->known);
	memset(x->later, 0, memo_words(f->n) * sizeof *x->later);
	memset(x->maybe, 0xff, f->n / 64 * sizeof *x->maybe);
	x->maybe[f->n / 64] = (1ull << f->n % 64) - 1;
}

bool fast_touch(struct slu_match *m, uint32_t v, bool units)
{
	struct fast *f = m->fast;
	bool itself = false;

	if (!f)
		return false;
	for (uint32_t k = 0; k < f->nfront; k++) {
		const struct front *fr = &f->front[k];
		uint32_t w = v, p = SLU_NONE;

		itself |= fr->at[v] != 0;
		for (;;) {
			p = fr->at[w] - 1;
			if (p != SLU_NONE || m->up[w] == SLU_NONE)
				break;
			w = m->g->e.p[m->up[w]].src;
		}
		if (p == SLU_NONE ? !units : p == f->last[k])
			continue; /* above the front and still passable; or done already */
		f->last[k] = p;
		for (uint32_t i = 0; i < f->nmemo; i++) {
			struct memo *x = f->memo[i];

			if (x->front != k)
				continue;
			if (p == SLU_NONE) {
				memo_forget(fr, x);
				continue;
			}
			x->known[p / 64] &= ~(1ull << p % 64);
			x->maybe[p / 64] |= 1ull << p % 64;
		}
	}
	return itself;
}

/* --- fronts --- */

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

static int gather(struct building *b, uint32_t u, int64_t centre)
{
	struct slu_match *m = b->m;
	const struct slu_vertex *v = &m->g->v.p[u];

	/* Every score must be above 0. */
	if (v->id < -1)
		b->f->bad = true;
	if (b->slot ? kid_types_fit(m, u, b->slot) : v->type == b->f->type) {
		if (slu_vec_push(&b->v, u) < 0)
			return -ENOMEM;
		return slu_vec_push(&b->centre, centre);
	}
	if (!centre_below(m, u, &centre))
		b->f->bad = true;
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1] && !b->f->bad; k++) {
		int rc = gather(b, m->g->e.p[m->kid[k]].dst, centre);

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

bool greater_first(const struct slu_match *m)
{
	return m->policy.scorer == SCORE_HIGH || m->policy.scorer == SCORE_LOCALITY;
}

/* Mostly they are in order already, or in reverse. */
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
		f->bad = !walk_score(m, b->v.p[i], b->centre.p[i], &s[i].score) || s[i].score <= 0;
	}
	if (!f->bad) {
		sort_front(s, n, greater_first(m));
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

struct front *front_for(struct slu_match *m, const struct slu_request *r)
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
	rc = gather(&b, root, 0);
	if (b.v.n && b.v.p[0] == root)
		b.f->bad = true;
	if (!rc)
		rc = arrange(&b);
	slu_vec_done(&b.v);
	slu_vec_done(&b.centre);
	if (rc < 0) {
		front_done(b.f);
		return NULL;
	}
	f->last[f->nfront++] = SLU_NONE;
	return b.f;
}

/* --- requests --- */

bool request_sign(const struct slu_request *list, uint32_t n, uint8_t *sig, uint32_t *at)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *r = &list[i];
		uint32_t words_[6] = { r->type,          r->excl,
				       r->count.min,     r->count.max,
				       r->count.operand, (uint32_t)r->count.op << 16 | r->nwith };

		/* Labels stick to visited vertices; conflicts and twins are worth a message. */
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
		if (!request_sign(r->with, r->nwith, sig, at))
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
	x->count = slu_calloc(f->n + 1, sizeof *x->count);
	x->marked = slu_calloc(f->n + 1, sizeof *x->marked);
	if (!x->maybe || !x->known || !x->later || !x->count || !x->marked) {
		memo_free(x, f->n);
		return NULL;
	}
	memo_forget(f, x);
	return x;
}

struct memo *memo_for(struct attempt *a, uint32_t front, const uint8_t *sig, uint32_t nsig)
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
		memo_forget(fr, x);
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

struct model *model_for(struct attempt *a, const struct front *f, struct memo *x, uint32_t p,
			int64_t *centre)
{
	struct slu_match *m = a->m;
	uint32_t like;

	if (x->model_gen != m->gen) {
		x->model_gen = m->gen;
		x->nmodel = 0;
		x->models = like_known(m) && !a->constraint && a->end >= a->at;
	}
	if (!x->models)
		return NULL;
	like = like_of(m, f->v[p]);
	*centre = f->centre[p];
	if (like == SLU_NONE || !centre_below(m, f->v[p], centre) || *centre > CENTRE_MAX)
		return NULL;
	for (uint32_t i = 0; i < x->nmodel; i++)
		if (x->model[i].like == like)
			return &x->model[i];
	if (x->nmodel == MODELS_MAX)
		return NULL;
	x->model[x->nmodel] = (struct model){ .like = like, .p = p, .centre = *centre };
	return &x->model[x->nmodel++];
}

bool passes(struct attempt *a, struct memo *x, uint32_t v)
{
	struct slu_match *m = a->m;
	uint32_t above = m->g->e.p[m->up[v]].src;

	if (x->passed == above && x->passed_gen == m->gen)
		return true;
	if (!walk_above(a, v))
		return false;
	x->passed = above;
	x->passed_gen = m->gen;
	return true;
}

void memo_know(struct slu_match *m, const struct front *f, struct memo *x, uint32_t p)
{
	uint64_t bit = 1ull << p % 64;

	x->known[p / 64] |= bit;
	if (led_starts_after(&m->led, f->v[p], x->at))
		x->later[p / 64] |= bit;
	else
		x->later[p / 64] &= ~bit;
	m->fast->last[x->front] = SLU_NONE;
}
