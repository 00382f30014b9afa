/* walk.c — one attempt to match a request at one time: down from the root, candidates up.
 *
 * visit() asks a vertex whether it can serve the request (fit.c); on the way back each vertex
 * chooses the best of its children for what the request wants below it (cand.c) and marks the edges
 * to them.  At the root the choice for the whole request is made.  book.c then follows the marks.
 */
#include "match/walk_internal.h"
#include "match/fast/fast.h"

struct answer {
	int64_t score;
	int64_t count;
	bool excl;
};

/* What the walk asks of a vertex, and then of its children. */
struct question {
	const struct slu_request *list; /* what is requested at or below the vertex */
	uint32_t n;
	bool pristine;   /* no vertex above serves a part of the request */
	bool excl;       /* a vertex above is taken exclusively, and so is this vertex */
	uint32_t shares; /* this many children are enough for policies that stop early */
	uint32_t depth;  /* below the root */
};

static int visit_vertex(struct attempt *a, uint32_t u, const struct question *q, struct pool *up,
			struct answer *out);

/* --- the policy's hooks --- */

/* As in the reference, a node subtracts on the way back the term that was added last; with nodes
 * inside nodes that is the term of an inner node. */
static int discover(struct attempt *a, uint32_t u)
{
	const struct slu_vertex *v = &a->m->g->v.p[u];
	int64_t f;

	if (!a->m->policy.node_centric || v->type != SLU_TYPE_NODE)
		return 0;
	if (v->id < -1 || __builtin_add_overflow(v->id, 2, &f) ||
	    __builtin_mul_overflow(f, 10000, &f) ||
	    __builtin_add_overflow(f, llabs(v->uniq_id % 10000 - 1), &f) ||
	    __builtin_add_overflow(a->centre, f, &a->centre))
		return match_refuse(a, EBUSY);
	a->term = f;
	return 0;
}

static void uncentre(struct attempt *a, uint32_t u)
{
	if (a->m->policy.node_centric && a->m->g->v.p[u].type == SLU_TYPE_NODE)
		(void)__builtin_sub_overflow(a->centre, a->term, &a->centre);
}

static int finish_vertex(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
			 struct pool *own, int64_t *score)
{
	uint16_t type = a->m->g->v.p[u].type;

	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *r = &list[i];

		if (r->type != type)
			continue;
		for (uint32_t k = 0; k < r->nwith; k++) {
			const struct slu_request *c = &r->with[k];
			struct cands *cs = match_pool_cands(a, own, c->type, a->m->sub[0], false);
			int64_t q = cs ? cs->qualified : 0;
			uint32_t take = slu_count_select(&c->count,
							 (uint32_t)SLU_MIN(q, (int64_t)UINT32_MAX));

			if (!take || !match_choose(a, cs, take, match_usual_order(a)))
				return match_refuse(a, EBUSY);
		}
	}
	return match_walk_score(a->m, u, a->centre, score) ? 0 : match_refuse(a, EBUSY);
}

/* --- the children --- */

static int visit_edge(struct attempt *a, uint32_t e, const struct question *q, struct pool *into)
{
	const struct slu_graph *g = a->m->g;
	uint32_t v = g->e.p[e].dst;
	struct answer got;
	struct cands *k;
	struct cand *c;
	bool front;

	if (a->m->colour && a->m->colour[v] == a->m->gen)
		return -EBUSY;
	front = a->skip && q->pristine;
	if (front && match_fast_fails(a, v))
		return match_refuse(a, EBUSY);
	if (visit_vertex(a, v, q, into, &got) < 0 || a->no_memory) {
		if (front && !a->no_memory)
			match_fast_failed(a, v);
		return -EBUSY;
	}
	c = match_cand_new(a, 1);
	k = c ? match_pool_cands(a, into, g->v.p[v].type, a->m->sub[0], true) : NULL;
	if (!k)
		return -ENOMEM;
	c->score = got.score;
	c->count = (uint32_t)got.count;
	c->one = (struct pick){ e, (uint32_t)got.count, got.excl };
	match_pool_add(k, c);
	a->aux_score = got.score;
	a->aux_count = got.count;
	return 0;
}

struct tally {
	uint16_t type;
	uint32_t share;
	int64_t before, sum;
	uint32_t shares;
	bool done;
};

static int64_t total_of(struct attempt *a, struct pool *p, uint16_t type)
{
	struct cands *k = match_pool_cands(a, p, type, a->m->sub[0], false);

	return k ? k->total : 0;
}

static bool only_leaves(struct attempt *a, const struct question *q, struct leaves *out)
{
	return q->n == 1 && !q->pristine && match_leaves_begin(a, q->list, q->excl, q->depth, out);
}

/* Explore children in order of weight until enough of them match (policies that stop early). */
static void explore_some(struct attempt *a, uint32_t u, const struct question *q, struct pool *into)
{
	const struct slu_match *m = a->m;
	struct tally small[8], *t = small;
	struct leaves leaves;
	bool quick = only_leaves(a, q, &leaves);
	uint32_t types = 0;

	if (q->n > SLU_LEN(small))
		t = slu_arena_alloc(&a->m->tmp, q->n * sizeof *t);
	if (!t) {
		a->no_memory = true;
		return;
	}
	/* One tally per type; if several requests have one type (or-slots), the last one defines
	 * a share. */
	for (uint32_t i = 0; i < q->n; i++) {
		uint32_t k = 0;

		while (k < types && t[k].type != q->list[i].type)
			k++;
		types = SLU_MAX(types, k + 1);
		t[k] = (struct tally){ .type = q->list[i].type,
				       .share = a->info[q->list[i].index].emax };
	}
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		uint32_t e = m->ord[k];
		uint16_t type = m->g->v.p[m->g->e.p[e].dst].type;
		bool skip = false, enough = true;
		int rc;

		for (uint32_t i = 0; i < types && !skip; i++)
			skip = t[i].type == type && t[i].done;
		if (skip)
			continue;
		rc = quick ? match_leaves_visit(a, &leaves, e, into) : -EAGAIN;
		if (rc == -EAGAIN)
			rc = visit_edge(a, e, q, into);
		if (rc < 0) {
			if (a->no_memory)
				return;
			continue;
		}
		for (uint32_t i = 0; i < types; i++) {
			int64_t now = total_of(a, into, t[i].type);

			if (now > t[i].before) {
				t[i].sum += now - t[i].before;
				t[i].before = now;
				if (t[i].share && t[i].sum >= t[i].share) {
					t[i].sum = 0;
					t[i].shares++;
				}
			}
			t[i].done = !t[i].share || t[i].shares >= q->shares;
			enough = enough && t[i].done;
		}
		if (enough)
			return;
	}
}

static void explore_aux(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
			bool x, struct pool *into)
{
	struct slu_match *m = a->m;

	for (uint32_t s = 1; s < m->nsub; s++)
		slu_graph_each_out(m->g, u, e)
		{
			uint32_t v = m->g->e.p[e].dst;
			struct cands *k;
			struct cand *c;
			int64_t avail;

			if (m->g->e.p[e].subsystem != m->sub[s] ||
			    match_prune(a, v, s, list, n, x, &avail) < 0)
				continue;
			c = match_cand_new(a, 1);
			k = c ? match_pool_cands(a, into, m->g->v.p[v].type, m->sub[s], true)
			      : NULL;
			if (!k)
				return;
			c->score = a->aux_score;
			c->count = (uint32_t)a->aux_count;
			c->one = (struct pick){ e, c->count, false };
			match_pool_add(k, c);
		}
}

static void explore(struct attempt *a, uint32_t u, const struct question *q, struct pool *into)
{
	const struct slu_match *m = a->m;
	struct leaves leaves;
	bool quick;

	a->aux_score = -1;
	a->aux_count = 0;
	if (m->policy.stop) {
		explore_some(a, u, q, into);
		return;
	}
	quick = only_leaves(a, q, &leaves);
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1] && !a->no_memory; k++)
		if (!quick || match_leaves_visit(a, &leaves, m->kid[k], into) == -EAGAIN)
			visit_edge(a, m->kid[k], q, into);
}

int match_visit_parts(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		      uint32_t shares, struct pool *into)
{
	explore(a, u, &(struct question){ list, n, false, true, shares, a->depth }, into);
	return a->no_memory ? -ENOMEM : 0;
}

/* --- slots --- */

/* How many shares of n units the sorted candidates make. */
static uint32_t count_shares(const struct cands *k, uint32_t n)
{
	uint32_t shares = 0;
	int64_t units = 0;

	if (!n)
		return 0;
	for (const struct cand *c = k->head; c; c = c->next) {
		units += cand_picks(c)->needs;
		if (units >= n) {
			shares++;
			units = 0;
		}
	}
	return shares;
}

static void slots(struct attempt *a, uint32_t u, const struct slu_request *slot, uint32_t depth,
		  struct pool *into)
{
	struct slu_match *m = a->m;
	struct pool own = { 0 };
	struct cand **next;
	struct cands *out;
	uint32_t avail = UINT32_MAX, *want, k;

	if (match_family_slot(a, u, slot, depth, into))
		return;
	explore(a, u,
		&(struct question){ slot->with, slot->nwith, .excl = true,
				    .shares = a->info[slot->index].emax, .depth = depth },
		&own);
	if (a->no_memory)
		return;
	match_choose_all(a, &own, true);
	next = slu_arena_alloc(&m->tmp, slot->nwith * sizeof *next);
	want = slu_arena_alloc(&m->tmp, slot->nwith * sizeof *want);
	if (!next || !want) {
		a->no_memory = true;
		return;
	}
	for (k = 0; k < slot->nwith && avail; k++) {
		struct cands *cs = match_pool_cands(a, &own, slot->with[k].type, m->sub[0], false);
		int64_t q = cs ? cs->qualified : 0;

		want[k] = slu_count_select(&slot->with[k].count,
					   (uint32_t)SLU_MIN(q, (int64_t)UINT32_MAX));
		next[k] = cs ? cs->head : NULL;
		avail = cs ? SLU_MIN(avail, count_shares(cs, want[k])) : 0;
	}
	if (!avail)
		return;
	out = match_pool_cands(a, into, SLU_TYPE_SLOT, m->sub[0], true);
	for (uint32_t i = 0; i < avail && out && !a->no_memory; i++) {
		uint32_t picks = 0, p = 0;
		int64_t score = 1;
		struct cand *c, *s;

		for (k = 0; k < slot->nwith; k++) {
			int64_t units = 0;

			for (c = next[k]; units < want[k]; c = c->next) {
				units += cand_picks(c)->needs;
				picks++;
			}
		}
		s = match_cand_new(a, picks);
		if (!s)
			return;
		for (k = 0; k < slot->nwith; k++) {
			int64_t units = 0;

			for (c = next[k]; units < want[k]; c = c->next) {
				struct pick *to = s->n > 1 ? &s->many[p++] : &s->one;

				*to = *cand_picks(c);
				to->excl = true;
				units += to->needs;
				score += c->score;
			}
			next[k] = c;
		}
		s->score = score;
		s->count = 1;
		match_pool_add(out, s);
	}
}

/* --- the visit --- */

static int put_label(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].type == a->m->g->v.p[u].type && list[i].label[0])
			return match_label_set(a->m, u, list[i].label);
	return 0;
}

static int visit_vertex(struct attempt *a, uint32_t u, const struct question *q, struct pool *up,
			struct answer *out)
{
	const struct slu_request *list = q->list;
	uint32_t n = q->n, depth = q->depth;
	bool x = q->excl;
	struct slu_match *m = a->m;
	uint16_t type = m->g->v.p[u].type;
	struct cands first[6];
	struct pool own = { first, 0, SLU_LEN(first) };
	struct part part;
	int64_t avail;
	int rc;

	for (uint32_t i = 0; i < n; i++)
		x = x || (list[i].type == type && list[i].excl == SLU_EXCL_TRUE);
	part = match_part_of(a, u, list, n, q->pristine);
	a->pre++;
	if (part.fit == FIT_NONE || depth >= DEPTH_MAX)
		return match_refuse(a, EBUSY);
	rc = match_prune(a, u, 0, list, n, x, &avail);
	if (rc < 0)
		return rc;
	rc = discover(a, u);
	if (rc < 0)
		return rc;
	if (m->colour)
		m->colour[u] = m->gen;
	if (part.fit == FIT_RESOURCE && !part.n && m->kid_off[u] == m->kid_off[u + 1] &&
	    m->nsub == 1) {
		/* A leaf of graph and request: nothing to explore, nothing to choose. */
		uncentre(a, u);
		if (!match_walk_score(m, u, a->centre, &out->score))
			return match_refuse(a, EBUSY);
		goto good;
	}
	if (part.fit == FIT_SLOT && m->flexible) {
		a->depth = depth + 1;
		rc = match_flex_slots(a, u, part.slot, part.nslot, &own);
	} else if (part.fit == FIT_SLOT) {
		slots(a, u, part.slot, depth + 1, &own);
	} else {
		explore(a, u,
			&(struct question){ part.list, part.n, part.fit == FIT_SKIP, x, 1,
					    depth + 1 },
			&own);
		if (m->nsub > 1)
			explore_aux(a, u, part.list, part.n, x, &own);
	}
	if (a->no_memory)
		return -ENOMEM;
	uncentre(a, u);
	rc = finish_vertex(a, u, list, n, &own, &out->score);
	if (rc < 0)
		return rc;
	/* Below a score of 0 nothing counts. */
	if (out->score > 0 && !match_mark_chosen(a, &own))
		match_pool_append(a, up, &own);
good:
	out->count = avail;
	out->excl = x;
	rc = put_label(a, u, list, n);
	if (rc < 0) {
		a->no_memory = true;
		return rc;
	}
	a->post++;
	return 0;
}

bool match_walk_above(struct attempt *a, uint32_t v)
{
	struct slu_match *m = a->m;

	for (uint32_t e = m->up[v]; e != SLU_NONE; e = m->up[v]) {
		int64_t avail;

		v = m->g->e.p[e].src;
		if (match_prune(a, v, 0, a->list, a->nlist, false, &avail) < 0)
			return false;
	}
	return true;
}

bool match_walk_visit(struct attempt *a, uint32_t v, int64_t centre, int64_t *count,
		      struct pool *up)
{
	const struct question q = { a->list, a->nlist, .pristine = true, .depth = 1 };
	struct pool none = { 0 };
	struct answer got;

	a->centre = centre;
	if (visit_vertex(a, v, &q, up ? up : &none, &got) < 0)
		return false;
	*count = got.count;
	return true;
}

int match_walk_root(struct attempt *a)
{
	struct slu_match *m = a->m;
	uint32_t root = m->g->root[m->sub[0]];
	struct pool own = { 0 };
	struct answer got;
	struct cands *k;
	struct cand *c;
	struct question q = { a->list, a->nlist, .pristine = true };
	int rc;

	a->centre = m->centre;
	for (uint32_t i = 0; i < a->nlist; i++)
		q.excl |= a->list[i].type == m->g->v.p[root].type &&
			  a->list[i].excl == SLU_EXCL_TRUE;
	rc = visit_vertex(a, root, &q, &own, &got);
	if (a->no_memory)
		return -ENOMEM;
	m->centre = rc < 0 ? a->centre : 0;
	if (rc < 0)
		return -a->error;
	c = match_cand_new(a, 0);
	k = c ? match_pool_cands(a, &own, m->g->v.p[root].type, m->sub[0], true) : NULL;
	if (!k)
		return -ENOMEM;
	c->score = got.score;
	c->count = (uint32_t)got.count;
	match_pool_add(k, c);
	rc = match_decide(a, root, &own, got.count);
	if (rc < 0) {
		if (rc == -ENODEV)
			a->error = ENODEV;
		return rc;
	}
	a->root_excl = got.excl;
	return 0;
}
