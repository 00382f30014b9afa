/* family.c — leaves that are taken all at once.
 *
 * A machine of 1 000 nodes has 32 000 cores, and a job that takes whole nodes would look at each of
 * them, mark it, book it and give it back.  But side by side below one vertex, of one type and size
 * and numbered one after the other, the leaves are a family: whether all are free, and that all are
 * taken, is one entry of the ledger (see there).  Only trees with one subsystem have families. */
#include "match/walk.h"
#include "match/fast/fast.h"

#define CENTRE_MAX (1ll << 40) /* sums with this and 2^20 ids are numbers yet */
#define LEAVES_MAX (1u << 20)

static bool is_leaf(const struct slu_match *m, uint32_t v)
{
	return m->kid_off[v] == m->kid_off[v + 1] && !m->multi[v] && m->g->v.p[v].size;
}

/* The family whose first leaf is at the end of kid[k]; end: behind the last child. */
static struct family family_from(const struct slu_match *m, uint32_t k, uint32_t end)
{
	uint32_t v = m->g->e.p[m->kid[k]].dst;
	const struct slu_vertex *x = &m->g->v.p[v];
	struct family f = { .kid = k, .size = x->size, .type = x->type };

	f.usual = f.rising = true;

	for (; k < end && f.n < LEAVES_MAX; k++, f.n++) {
		uint32_t c = m->g->e.p[m->kid[k]].dst;
		const struct slu_vertex *y = &m->g->v.p[c];

		if (c != v + f.n || y->type != f.type || y->size != f.size || !is_leaf(m, c))
			break;
		f.down += y->status != SLU_UP;
		f.usual = f.usual && y->id >= -1 && y->id <= INT32_MAX;
		f.rising = f.rising && f.usual && y->id == x->id + f.n;
		f.ids += f.usual ? y->id : 0;
	}
	return f;
}

int match_family_make(struct slu_match *m)
{
	SLU_VEC(struct led_family) list = { 0 };
	int rc = 0;

	if (!m->tree || m->nsub > 1)
		return 0;
	for (uint32_t u = 0; u < m->nv && !rc; u++) {
		uint32_t begin = m->kid_off[u], end = m->kid_off[u + 1], k = begin;

		while (k < end && !rc) {
			struct family f = family_from(m, k, end);
			uint32_t first = m->g->e.p[m->kid[k]].dst;

			k += SLU_MAX(f.n, 1u);
			if (f.n < 2)
				continue;
			f.only = f.n == end - begin;
			rc = slu_vec_push(&m->family, f);
			if (!rc)
				rc = slu_vec_push(&list,
						  (struct led_family){ .first = first, .n = f.n });
		}
	}
	if (!rc)
		rc = match_led_unite(&m->led, list.p, list.n);
	if (rc < 0)
		m->family.n = 0;
	slu_vec_done(&list);
	return rc;
}

int match_family_drop(struct slu_match *m)
{
	int rc = match_led_disband(&m->led);

	if (!rc)
		m->family.n = 0;
	return rc;
}

struct family *match_family_at(const struct slu_match *m, uint32_t v, uint32_t *stand_in)
{
	uint32_t s = led_all(&m->led, v);

	*stand_in = s;
	return s != LED_NONE && led_family(&m->led, s)->first == v ? &m->family.p[s - m->led.nv]
								   : NULL;
}

void match_family_status(struct slu_match *m, uint32_t v, enum slu_status old, enum slu_status now)
{
	uint32_t s = led_all(&m->led, v);

	if (s != LED_NONE)
		m->family.p[s - m->led.nv].down += (now != SLU_UP) - (old != SLU_UP);
}

void match_family_touch(struct slu_match *m, const struct family *f, bool units)
{
	uint32_t v = m->g->e.p[m->kid[f->kid]].dst;

	/* Siblings of one type: all in a front, or none. */
	if (match_fast_touch(m, v, units))
		for (uint32_t i = 1; i < f->n; i++)
			match_fast_touch(m, v + i, units);
}

bool match_family_slot(struct attempt *a, uint32_t u, const struct slu_request *slot,
		       uint32_t depth, struct pool *into)
{
	struct slu_match *m = a->m;
	const struct slu_request *r = slot->with;
	const struct family *f;
	struct leaves l;
	struct kind *k;
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
	/* Top-level slots are looked into (fast/slots.c), and booking goes by edges where there are
	 * many. */
	each = f->n > WIDE || (slot >= a->list && slot < a->list + a->nlist);
	c = match_cand_new(a, each ? f->n : 1);
	k = c ? match_pool_kind(a, into, SLU_TYPE_SLOT, m->sub[0], true) : NULL;
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
