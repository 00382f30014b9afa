/* caps.c — how many slots of each role fit on each node in a window of time. */
#include "gang/gang_internal.h"

void slu_caps_own(struct plan *p, uint32_t r)
{
	struct slu_machine *m = p->m;
	struct caps *c = &p->caps[r];

	if (c->cap == m->s.cap[r])
		return;
	memcpy(m->s.cap[r], c->cap, m->n_pos * sizeof *c->cap);
	memcpy(m->s.bits[r], c->bits, (m->n_pos / 64 + 1) * sizeof *c->bits);
	c->cap = m->s.cap[r];
	c->bits = m->s.bits[r];
}

void slu_caps_set(struct plan *p, uint32_t r, uint32_t pos, int32_t cap)
{
	struct caps *c = &p->caps[r];
	int32_t *own = p->m->s.cap[r], was = own[pos];

	if (cap == was)
		return;
	own[pos] = cap;
	c->sum += cap - was;
	c->nodes += (uint32_t)(cap > 0) - (uint32_t)(was > 0);
	if (cap)
		bit_set(p->m->s.bits[r], pos);
	else
		bit_clear(p->m->s.bits[r], pos);
}

/* Slots of role r at a position in the window in hand. */
int32_t slu_caps_at(struct plan *p, uint32_t r, uint32_t pos)
{
	struct slu_machine *m = p->m;
	uint32_t node = m->order[pos];
	int64_t row[SLU_RESOURCES_MAX];

	if (!node_up(&m->node[node]) || !bit(p->role[r].fitmap->elig, pos))
		return 0;
	if (!m->node[node].blocks)
		return slu_window_fits(m, node, p->t, p->end, p->role[r].need, p->role[r].flags);
	slu_window(m, node, p->t, p->end, p->req->use, p->req->n_use, row);
	return need_fits(p->role[r].need, row, p->role[r].flags);
}

static void from_fitmap(struct caps *c, const struct fitmap *s, bool least)
{
	*c = (struct caps){ .cap = least ? s->least : s->now,
			    .bits = least ? s->least_bits : s->now_bits,
			    .sum = least ? s->least_sum : s->now_sum,
			    .nodes = least ? s->least_nodes : s->now_nodes };
}

int slu_caps_now(struct plan *p)
{
	struct slu_machine *m = p->m;
	uint32_t words = m->n_pos / 64 + 1;
	bool some = m->starts.n > 0, now_only, least_only;

	p->t = m->now;
	p->end = later(m->now, p->duration);
	/* No booking begins before the first start; beyond the last one only ends follow. */
	now_only = !some || p->end <= m->starts.p[0].t;
	least_only = some && p->end > m->starts.p[m->starts.n - 1].t;
	for (uint32_t r = 0; r < p->n_role; r++) {
		const struct fitmap *s = p->role[r].fitmap;
		bool exact = (now_only || least_only) && !p->req->n_use;

		from_fitmap(&p->caps[r], s, exact && !now_only);
		p->before[r] = some && !(exact && !now_only) ? s->least : NULL;
		if (p->caps[r].sum < p->role[r].min && !p->req->n_use)
			return 0;
		if (!exact || p->n_role > 1)
			slu_caps_own(p, r);
		if (exact)
			continue;
		for (uint32_t w = 0; w < words; w++) {
			for (uint64_t b = m->future_bits[w] & s->now_bits[w]; b; b &= b - 1) {
				uint32_t pos = w * 64 + (uint32_t)__builtin_ctzll(b);

				slu_caps_set(p, r, pos, slu_caps_at(p, r, pos));
			}
		}
		for (uint32_t pos = 0; p->req->n_use && pos < m->n_pos; pos++) {
			if (m->node[m->order[pos]].blocks)
				slu_caps_set(p, r, pos, slu_caps_at(p, r, pos));
		}
		if (p->caps[r].sum < p->role[r].min)
			return 0;
	}
	return 1;
}

int slu_caps_empty(struct plan *p)
{
	struct slu_machine *m = p->m;

	p->empty = true;
	for (uint32_t r = 0; r < p->n_role; r++) {
		struct fitmap *s = p->role[r].fitmap;

		slu_fitmap_satisfy(m, s);
		if (s->sat_sum < p->role[r].min)
			return 0;
		memset(m->s.cap[r], 0, m->n_pos * sizeof **m->s.cap);
		memset(m->s.bits[r], 0, (m->n_pos / 64 + 1) * sizeof **m->s.bits);
		p->caps[r] = (struct caps){ .cap = m->s.cap[r], .bits = m->s.bits[r] };
		p->before[r] = NULL;
		for (uint32_t pos = 0; pos < m->n_pos; pos++) {
			const int64_t *row = m->total + (size_t)m->order[pos] * m->stride;

			if (bit(s->elig, pos))
				slu_caps_set(p, r, pos,
					     need_fits(p->role[r].need, row, p->role[r].flags));
		}
	}
	return 1;
}

/* ---- slots that were not asked for lately ---- */

#define SCAN_MOST 2048u

#define SCAN_LONG 64u

static uint64_t scan_key(const struct plan *p)
{
	uint64_t h = slu_hash_u64((uintptr_t)p->role[0].need ^ p->role[0].flags);

	h = slu_hash_u64(h ^ (uintptr_t)p->req->role[0].nodes);
	return slu_hash_u64(h ^ (uintptr_t)p->req->nodes) | 1;
}

static bool scanned_before(const struct slu_machine *m, uint64_t key)
{
	for (size_t i = 0; i < SLU_LEN(m->scanned); i++) {
		if (m->scanned[i] == key)
			return true;
	}
	return false;
}

int slu_scan(struct plan *p)
{
	struct slu_machine *m = p->m;
	const struct slu_gang_req *q = p->req;
	const struct slu_gang_role *r = q->role;
	bool down = p->policy == SLU_GANG_HIGH || p->policy == SLU_GANG_HINODE ||
		    p->policy == SLU_GANG_HINODEX;
	uint32_t got = 0, most = SLU_MIN(m->n_pos, SCAN_MOST), i = 0;
	uint64_t key;

	if (p->n_role > 1 || q->level >= 0 || q->n_use || r->prefer || r->score ||
	    p->policy >= SLU_GANG_LOCALITY || (m->starts.n && q->flags & SLU_GANG_TIME_FIT) ||
	    p->max > SCAN_MOST ||
	    slu_fitmap_known(m, p->role[0].need, p->role[0].flags, r->nodes, q->nodes))
		return 0;
	key = scan_key(p);
	if (scanned_before(m, key))
		return 0;
	if (slu_vec_reserve(&m->s.out, p->max) < 0)
		return -ENOMEM;
	p->t = m->now;
	p->end = later(m->now, p->duration);
	m->s.out.n = 0;
	for (; i < most && got < p->max; i++) {
		uint32_t pos = down ? m->n_pos - 1 - i : i, node = m->order[pos], n;
		int64_t row[SLU_RESOURCES_MAX];
		int32_t cap;

		cap = need_fits(p->role[0].need, row_free(m, node), p->role[0].flags);
		if (!cap || !node_up(&m->node[node]) ||
		    (r->nodes && !slu_nodeset_has(r->nodes, node)) ||
		    (q->nodes && !slu_nodeset_has(q->nodes, node)))
			continue;
		if (m->node[node].future) {
			slu_window(m, node, p->t, p->end, NULL, 0, row);
			cap = need_fits(p->role[0].need, row, p->role[0].flags);
			if (!cap)
				continue;
		}
		n = SLU_MIN((uint32_t)cap, p->max - got);
		m->s.out.p[m->s.out.n++] = (struct part){ .node = pos, .slots = n };
		got += n;
	}
	if (i > SCAN_LONG)
		m->scanned[m->n_scanned++ % SLU_LEN(m->scanned)] = key;
	return got == p->max;
}
