/* family.c — leaves that are taken all at once.
 *
 * A machine of 1 000 nodes has 32 000 cores, and a job that takes whole nodes would look at each of
 * them, mark it, book it and give it back.  But side by side below one vertex, of one type and size
 * and numbered one after the other, the leaves are a family: whether all are free, and that all are
 * taken, is one entry of the ledger (see there).  Only trees with one subsystem have families. */
#include "match/match_internal.h"
#include "match/fast/fast.h"

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

	/* Siblings of one type are either all in a front, or none of them is. */
	if (match_fast_touch(m, v, units))
		for (uint32_t i = 1; i < f->n; i++)
			match_fast_touch(m, v + i, units);
}
