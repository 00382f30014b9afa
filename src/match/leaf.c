/* leaf.c — match leaves of the graph with a leaf of the request; most visits are of this kind.
 *
 * Does what visit() would do, but asks only once whatever is the same for all children of a vertex, and
 * does not open the books where a glance shows that they are empty. */
#include "match/walk_internal.h"

#define CHUNK      16          /* candidates made at a time */
#define CENTRE_MAX (1ll << 40) /* sums with this and 2^20 ids are numbers yet */

bool match_leaves_begin(struct attempt *a, const struct slu_request *r, bool x, uint32_t depth,
			struct leaves *l)
{
	const struct slu_match *m = a->m;

	if (r->nwith || r->label[0] || m->nsub > 1 || m->colour || r->type == SLU_TYPE_NODE ||
	    r->type == SLU_TYPE_STORAGE_NODE || match_is_slot(a, r) || depth >= DEPTH_MAX ||
	    (x && r->excl == SLU_EXCL_FALSE) || m->policy.scorer == SCORE_VARIATION ||
	    a->end < a->at)
		return false;
	*l = (struct leaves){
		.r = r,
		.excl = x || r->excl == SLU_EXCL_TRUE,
		.down = a->mode == MODE_SATISFY,
		/* For an exclusive request that starts now, units held at any time are in the
		 * way. */
		.later = a->at != a->now || (a->mode != MODE_ALLOCATE && a->mode != MODE_WITHOUT),
		.centre = m->policy.scorer == SCORE_LOCALITY ? 0 : a->centre,
	};
	return true;
}

/* Units free at v, or 0. */
static int64_t units_of(struct attempt *a, struct leaves *l, uint32_t v)
{
	const struct slu_match *m = a->m;
	const struct slu_vertex *y = &m->g->v.p[v];
	int64_t avail;

	if (y->type != l->r->type || (y->status != SLU_UP && !l->down)) {
		match_refuse(a, EBUSY);
		return 0;
	}
	if (led_over(&m->led, v, a->at, l->later)) {
		if (!y->size)
			match_refuse(a, EBUSY);
		return y->size;
	}
	return match_prune(a, v, 0, l->r, 1, l->excl, &avail) < 0 ? 0 : avail;
}

int match_leaves_visit(struct attempt *a, struct leaves *l, uint32_t e, struct pool *into)
{
	struct slu_match *m = a->m;
	uint32_t v = m->g->e.p[e].dst;
	struct cand *c;
	struct cands *k;
	int64_t avail, score;

	if (m->kid_off[v] != m->kid_off[v + 1] || m->multi[v])
		return -EAGAIN;
	a->pre++;
	avail = units_of(a, l, v);
	if (!avail)
		return -EBUSY;
	if (__builtin_add_overflow(m->g->v.p[v].id, 2, &score) ||
	    __builtin_add_overflow(score, l->centre, &score))
		return match_refuse(a, EBUSY);
	if (!l->left) {
		l->next = slu_arena_alloc(&m->tmp, CHUNK * sizeof *l->next);
		l->left = l->next ? CHUNK : 0;
	}
	k = match_pool_cands(a, into, l->r->type, m->sub[0], true);
	if (!l->left || !k) {
		a->no_memory = true;
		return -ENOMEM;
	}
	l->left--;
	c = l->next++;
	*c = (struct cand){ .score = score, .count = (uint32_t)avail, .n = 1 };
	c->one = (struct pick){ e, (uint32_t)avail, l->excl };
	match_pool_add(k, c);
	a->post++;
	return 0;
}

bool match_family_slot(struct attempt *a, uint32_t u, const struct slu_request *slot,
		       uint32_t depth, struct pool *into)
{
	struct slu_match *m = a->m;
	const struct slu_request *r = slot->with;
	const struct family *f;
	struct leaves l;
	struct cands *k;
	struct cand *c;
	uint32_t s;
	bool each;

	if (slot->nwith != 1 || m->kid_off[u] == m->kid_off[u + 1])
		return false;
	f = match_family_at(m, m->g->e.p[m->kid[m->kid_off[u]]].dst, &s);
	if (!f || !f->only || !f->usual || f->type != r->type ||
	    !match_leaves_begin(a, r, true, depth, &l) || l.centre < 0 || l.centre > CENTRE_MAX ||
	    (f->down && !l.down) || (uint64_t)f->n * f->size > UINT32_MAX ||
	    slu_count_select(&r->count, f->n * f->size) != f->n * f->size ||
	    !match_led_all_free(&m->led, s, f->size, a->at, a->end, l.later))
		return false;
	/* List the leaves one by one where booking follows single edges (many children), and in
	 * a top-level slot, whose members fast/slots.c examines. */
	each = f->n > WIDE || (slot >= a->list && slot < a->list + a->nlist);
	c = match_cand_new(a, each ? f->n : 1);
	k = c ? match_pool_cands(a, into, SLU_TYPE_SLOT, m->sub[0], true) : NULL;
	if (!k)
		return true;
	if (!each)
		c->one = (struct pick){ m->kid[f->kid], f->size, true, true };
	for (uint32_t i = 0; i < f->n && each; i++)
		c->many[i] = (struct pick){ m->kid[f->kid + i], f->size, true, false };
	c->score = 1 + f->ids + f->n * (2 + l.centre);
	c->count = 1;
	match_pool_add(k, c);
	a->pre += f->n;
	a->post += f->n;
	return true;
}
