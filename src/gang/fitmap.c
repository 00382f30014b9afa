/* fitmap.c — for each need asked for lately: how many fit on each node, now and for ever.
 *
 * Jobs ask for few different slots.  Instead of looking at all nodes for each of them, every change to a
 * node leaves its number in a journal, and a fitmap that is asked for again reads what it has
 * missed. So a question costs as much as has changed since it was asked last, and "no" mostly costs
 * one comparison. */
#include "gang/gang_internal.h"

void slu_fitmap_free(struct slu_machine *m, struct fitmap *s)
{
	if (!s)
		return;
	if (s->need)
		slu_need_put(m, s->need);
	slu_nodeset_unref(s->nodes);
	slu_nodeset_unref(s->part);
	slu_free(s->elig);
	slu_free(s->now);
	slu_free(s->least);
	slu_free(s->now_bits);
	slu_free(s->least_bits);
	slu_free(s);
}

static bool eligible(const struct fitmap *s, uint32_t node)
{
	return (!s->nodes || slu_nodeset_has(s->nodes, node)) &&
	       (!s->part || slu_nodeset_has(s->part, node));
}

static void refresh_node(struct slu_machine *m, struct fitmap *s, uint32_t node)
{
	const struct node *v = &m->node[node];
	uint32_t p = v->pos;
	int32_t now = 0, least, was = s->now[p], was_least = s->least[p];

	if (node_up(v) && bit(s->elig, p))
		now = need_fits(s->need, row_free(m, node), s->flags);
	least = now;
	if (now && v->future)
		least = need_fits(s->need, slu_window_least(m, node), s->flags);
	if (now != was) {
		s->now[p] = now;
		s->now_sum += now - was;
		s->now_nodes += (uint32_t)(now > 0) - (uint32_t)(was > 0);
		if (now)
			bit_set(s->now_bits, p);
		else
			bit_clear(s->now_bits, p);
	}
	if (least != was_least) {
		s->least[p] = least;
		s->least_sum += least - was_least;
		s->least_nodes += (uint32_t)(least > 0) - (uint32_t)(was_least > 0);
		if (least)
			bit_set(s->least_bits, p);
		else
			bit_clear(s->least_bits, p);
	}
}

/* Count everything again; the arrays are large enough. */
static void rebuild(struct slu_machine *m, struct fitmap *s)
{
	uint32_t words = m->n_pos / 64 + 1;

	memset(s->now, 0, m->n_pos * sizeof *s->now);
	memset(s->least, 0, m->n_pos * sizeof *s->least);
	memset(s->now_bits, 0, words * sizeof *s->now_bits);
	memset(s->least_bits, 0, words * sizeof *s->least_bits);
	memset(s->elig, 0, words * sizeof *s->elig);
	s->now_sum = s->least_sum = 0;
	s->now_nodes = s->least_nodes = 0;
	for (uint32_t p = 0; p < m->n_pos; p++) {
		uint32_t i = m->order[p];
		int32_t now, least;

		if (!eligible(s, i))
			continue;
		bit_set(s->elig, p);
		now = need_fits(s->need, row_free(m, i), s->flags);
		if (!now || !node_up(&m->node[i]))
			continue;
		least = now;
		if (bit(m->future_bits, p))
			least = need_fits(s->need, slu_window_least(m, i), s->flags);
		s->now[p] = now;
		s->now_sum += now;
		s->now_nodes++;
		bit_set(s->now_bits, p);
		if (!least)
			continue;
		s->least[p] = least;
		s->least_sum += least;
		s->least_nodes++;
		bit_set(s->least_bits, p);
	}
	s->order_gen = m->order_gen;
	s->nodes_version = s->nodes ? s->nodes->version : 0;
	s->part_version = s->part ? s->part->version : 0;
	s->sat_gen = 0;
	s->seen = m->changes;
}

static int arrays(struct slu_machine *m, struct fitmap *s)
{
	uint32_t n = SLU_MAX(m->n_pos, 1u), words = m->n_pos / 64 + 1;

	if (s->n_pos >= n)
		return 0;
	slu_free(s->now);
	slu_free(s->least);
	slu_free(s->now_bits);
	slu_free(s->least_bits);
	slu_free(s->elig);
	s->order_gen = 0;
	s->n_pos = 0;
	s->now = slu_malloc(n * sizeof *s->now);
	s->least = slu_malloc(n * sizeof *s->least);
	s->now_bits = slu_malloc(words * sizeof *s->now_bits);
	s->least_bits = slu_malloc(words * sizeof *s->least_bits);
	s->elig = slu_malloc(words * sizeof *s->elig);
	if (!s->now || !s->least || !s->now_bits || !s->least_bits || !s->elig)
		return -ENOMEM;
	s->n_pos = n;
	return 0;
}

static int catch_up(struct slu_machine *m, struct fitmap *s)
{
	uint64_t behind = m->changes - s->seen;

	if (s->order_gen != m->order_gen || behind > (1u << JOURNAL_BITS) ||
	    behind > m->n_pos * 2 + 64 || (s->nodes && s->nodes->version != s->nodes_version) ||
	    (s->part && s->part->version != s->part_version)) {
		if (arrays(m, s) < 0)
			return -ENOMEM;
		rebuild(m, s);
		return 0;
	}
	for (uint64_t c = s->seen; c < m->changes; c++) {
		uint32_t node = m->journal[c & ((1u << JOURNAL_BITS) - 1)];

		/* Only the newest entry of a node counts. */
		if (m->node[node].changed == c)
			refresh_node(m, s, node);
	}
	s->seen = m->changes;
	return 0;
}

bool slu_fitmap_known(const struct slu_machine *m, const struct need *need, unsigned flags,
		      const struct slu_nodeset *nodes, const struct slu_nodeset *part)
{
	flags &= SLU_ROLE_ALONE;
	for (uint32_t i = 0; i < m->n_fitmap; i++) {
		const struct fitmap *t = m->fitmap[i];

		if (t->need == need && t->flags == flags && t->nodes == nodes && t->part == part)
			return true;
	}
	return false;
}

struct fitmap *slu_fitmap_get(struct slu_machine *m, struct need *need, unsigned flags,
			      const struct slu_nodeset *nodes, const struct slu_nodeset *part)
{
	struct fitmap *s = NULL, *old = NULL;
	uint32_t at = 0;

	flags &= SLU_ROLE_ALONE;
	for (uint32_t i = 0; i < m->n_fitmap; i++) {
		struct fitmap *t = m->fitmap[i];

		if (t->need == need && t->flags == flags && t->nodes == nodes && t->part == part) {
			s = t;
			break;
		}
		if (!old || t->used < old->used) {
			old = t;
			at = i;
		}
	}
	if (!s) {
		s = slu_calloc(1, sizeof *s);
		if (!s)
			return NULL;
		s->need = need;
		need->refs++;
		s->flags = flags;
		s->nodes = slu_nodeset_ref(nodes);
		s->part = slu_nodeset_ref(part);
		if (m->n_fitmap < FITMAPS) {
			m->fitmap[m->n_fitmap++] = s;
		} else {
			slu_fitmap_free(m, old);
			m->fitmap[at] = s;
		}
	}
	s->used = ++m->clock;
	return catch_up(m, s) < 0 ? NULL : s;
}

void slu_fitmap_satisfy(struct slu_machine *m, struct fitmap *s)
{
	if (s->sat_gen == m->size_gen + 1)
		return;
	s->sat_sum = 0;
	s->sat_nodes = 0;
	for (uint32_t p = 0; p < m->n_pos; p++) {
		if (bit(s->elig, p)) {
			int32_t c = need_fits(s->need, m->total + (size_t)m->order[p] * m->stride,
					      s->flags);

			s->sat_sum += c;
			s->sat_nodes += c > 0;
		}
	}
	s->sat_gen = m->size_gen + 1;
}
