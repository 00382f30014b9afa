/* pick.c — which nodes, when there is a choice: the policies. */
#include "gang/impl.h"

static uint32_t take(struct slu_machine *m, const struct pick *p, uint32_t pos, uint32_t slots)
{
	m->s.out.p[m->s.out.n++] = (struct part){ .node = pos, .role = p->role, .slots = slots };
	return slots;
}

static bool downwards(enum slu_gang_policy p)
{
	return p == SLU_GANG_HIGH || p == SLU_GANG_HINODE || p == SLU_GANG_HINODEX;
}

/* First fit in order of rank, nothing else to consider. */
static uint32_t first_fit(struct slu_machine *m, const struct pick *p)
{
	const struct caps *c = p->c;
	uint32_t got = 0, words = m->n_pos / 64 + 1;
	bool down = downwards(p->policy);

	if (p->list) {
		for (uint32_t i = 0; i < p->n_list && got < p->want; i++) {
			uint32_t pos = p->list[down ? p->n_list - 1 - i : i];

			if (c->cap[pos])
				got += take(m, p, pos,
					    SLU_MIN((uint32_t)c->cap[pos], p->want - got));
		}
		return got;
	}
	for (uint32_t i = 0; i < words && got < p->want; i++) {
		uint32_t w = down ? words - 1 - i : i;
		uint64_t b = c->bits[w];

		while (b && got < p->want) {
			uint32_t k = down ? 63 - (uint32_t)__builtin_clzll(b)
					  : (uint32_t)__builtin_ctzll(b);
			uint32_t pos = w * 64 + k;

			b &= ~(UINT64_C(1) << k);
			got += take(m, p, pos, SLU_MIN((uint32_t)c->cap[pos], p->want - got));
		}
	}
	return got;
}

/* ---- the candidates as a list ---- */

static uint32_t gather(struct slu_machine *m, const struct pick *p)
{
	struct cand *out = m->s.cand;
	uint32_t n = 0, words = m->n_pos / 64 + 1;

	if (p->list) {
		for (uint32_t i = 0; i < p->n_list; i++) {
			if (p->c->cap[p->list[i]])
				out[n++] = (struct cand){ .pos = p->list[i],
							  .cap = p->c->cap[p->list[i]] };
		}
		return n;
	}
	for (uint32_t w = 0; w < words; w++) {
		for (uint64_t b = p->c->bits[w]; b; b &= b - 1) {
			uint32_t pos = w * 64 + (uint32_t)__builtin_ctzll(b);

			out[n++] = (struct cand){ .pos = pos, .cap = p->c->cap[pos] };
		}
	}
	return n;
}

/* Smaller key first; equal keys by position (in the policy's direction, which is in the key). */
static void sort_cands(struct cand *a, struct cand *tmp, uint32_t n)
{
	struct cand *src = a, *dst = tmp;

	for (uint32_t w = 1; w < n; w *= 2) {
		for (uint32_t lo = 0; lo < n; lo += 2 * w) {
			uint32_t mid = SLU_MIN(lo + w, n), hi = SLU_MIN(lo + 2 * w, n);
			uint32_t i = lo, j = mid, k = lo;

			while (i < mid && j < hi)
				dst[k++] = src[j].key < src[i].key ? src[j++] : src[i++];
			while (i < mid)
				dst[k++] = src[i++];
			while (j < hi)
				dst[k++] = src[j++];
		}
		SLU_SWAP(src, dst);
	}
	if (src != a)
		memcpy(a, src, n * sizeof *a);
}

/* Keep the `want` smallest keys in front, sorted; the rest is left out.  Each candidate gives at
 * least one slot, so more are never needed. */
static uint32_t smallest(struct slu_machine *m, uint32_t n, uint32_t want)
{
	struct cand *a = m->s.cand, *heap = m->s.cand2;
	uint32_t h = 0;

	if (want >= n / 4) {
		sort_cands(a, m->s.cand2, n);
		return n;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k;

		if (h < want) { /* climb */
			for (k = h++; k && heap[(k - 1) / 2].key < a[i].key; k = (k - 1) / 2)
				heap[k] = heap[(k - 1) / 2];
			heap[k] = a[i];
		} else if (a[i].key < heap[0].key) { /* replace the largest */
			for (k = 0;;) {
				uint32_t c = 2 * k + 1;

				if (c + 1 < h && heap[c + 1].key > heap[c].key)
					c++;
				if (c >= h || heap[c].key <= a[i].key)
					break;
				heap[k] = heap[c];
				k = c;
			}
			heap[k] = a[i];
		}
	}
	memcpy(a, heap, h * sizeof *a);
	sort_cands(a, m->s.cand2, h);
	return h;
}

/* Key: score (higher first), preference, the policy's measure, position. 24 + 1 + 14 + 25 bits. */
static void give_keys(struct slu_machine *m, const struct pick *p, uint32_t n, bool roomy_first)
{
	const struct slu_gang_role *r = p->spec;
	bool down = downwards(p->policy);

	for (uint32_t i = 0; i < n; i++) {
		struct cand *c = &m->s.cand[i];
		uint32_t node = m->order[c->pos], room = SLU_MIN((uint32_t)c->cap, 16383u);
		int64_t score = r->score && node < r->n_score ? r->score[node] : 0;
		uint64_t k;

		score = SLU_MAX(SLU_MIN(score, (int64_t)8388607), (int64_t)-8388608);
		k = (uint64_t)(8388607 - score) << 40;
		if (!r->prefer || !slu_nodeset_has(r->prefer, node))
			k |= UINT64_C(1) << 39;
		if (p->policy == SLU_GANG_PACK)
			k |= (uint64_t)room << 25;
		else if (roomy_first)
			k |= (uint64_t)(16383 - room) << 25;
		c->key = k | (down ? (1u << 25) - 1 - c->pos : c->pos);
	}
}

static uint32_t in_order(struct slu_machine *m, const struct pick *p)
{
	uint32_t n = gather(m, p), got = 0;

	give_keys(m, p, n, false);
	n = smallest(m, n, p->want);
	for (uint32_t i = 0; i < n && got < p->want; i++)
		got += take(m, p, m->s.cand[i].pos,
			    SLU_MIN((uint32_t)m->s.cand[i].cap, p->want - got));
	return got;
}

/* Every node gets up to `even` slots, then the ones with most room one more each. */
static uint32_t spread(struct slu_machine *m, const struct pick *p)
{
	uint32_t n = gather(m, p), even = 0, got = 0, rest;
	uint64_t lo = 0, hi = p->want, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (uint32_t)m->s.cand[i].cap;
	rest = (uint32_t)SLU_MIN(sum, (uint64_t)p->want);
	/* The largest height that still stays within what is wanted. */
	while (lo < hi) {
		uint64_t mid = (lo + hi + 1) / 2, s = 0;

		for (uint32_t i = 0; i < n; i++)
			s += SLU_MIN((uint64_t)m->s.cand[i].cap, mid);
		if (s <= rest)
			lo = mid;
		else
			hi = mid - 1;
	}
	even = (uint32_t)lo;
	give_keys(m, p, n, true);
	sort_cands(m->s.cand, m->s.cand2, n);
	for (uint32_t i = 0; i < n; i++)
		rest -= SLU_MIN((uint32_t)m->s.cand[i].cap, even);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t cap = (uint32_t)m->s.cand[i].cap, k = SLU_MIN(cap, even);

		if (cap > even && rest) {
			k++;
			rest--;
		}
		if (k)
			got += take(m, p, m->s.cand[i].pos, k);
	}
	return got;
}

/* The shortest stretch of neighbours that holds what is wanted (or all there is). */
static uint32_t stretch(struct slu_machine *m, const struct pick *p)
{
	uint32_t n = gather(m, p), best = 0, best_len = UINT32_MAX, lo = 0, got = 0;
	uint64_t sum = 0, want = p->want;
	struct cand *c = m->s.cand;

	for (uint32_t i = 0; i < n; i++)
		sum += (uint32_t)c[i].cap;
	want = SLU_MIN(want, sum);
	sum = 0;
	for (uint32_t hi = 0; hi < n; hi++) {
		sum += (uint32_t)c[hi].cap;
		while (sum - (uint32_t)c[lo].cap >= want)
			sum -= (uint32_t)c[lo++].cap;
		if (sum >= want && c[hi].pos - c[lo].pos < best_len) {
			best_len = c[hi].pos - c[lo].pos;
			best = lo;
		}
	}
	for (uint32_t i = best; i < n && got < want; i++)
		got += take(m, p, c[i].pos, SLU_MIN((uint32_t)c[i].cap, (uint32_t)want - got));
	return got;
}

static uint32_t by_policy(struct slu_machine *m, const struct pick *p)
{
	if (p->policy == SLU_GANG_LOCALITY)
		return stretch(m, p);
	if (p->policy == SLU_GANG_SPREAD)
		return spread(m, p);
	if (p->policy == SLU_GANG_PACK || p->spec->prefer || p->spec->score)
		return in_order(m, p);
	return first_fit(m, p);
}

/* Two rounds: first only the room that `before` has not, then the rest.  The answer of the first
 * round is folded into the second. */
static uint32_t fit_in_time(struct slu_machine *m, const struct pick *p)
{
	uint32_t begin = m->s.out.n, got, mid;
	int32_t *cap = m->s.fit_cap;
	uint64_t *bits = m->s.fit_bits;
	uint32_t words = m->n_pos / 64 + 1;
	struct caps c = { .cap = cap, .bits = bits };
	struct pick q = *p;

	q.c = &c;
	memset(bits, 0, words * sizeof *bits);
	if (p->list) /* read by position, bits or not */
		for (uint32_t i = 0; i < p->n_list; i++)
			cap[p->list[i]] = 0;
	for (uint32_t w = 0; w < words; w++) {
		for (uint64_t b = p->c->bits[w]; b; b &= b - 1) {
			uint32_t pos = w * 64 + (uint32_t)__builtin_ctzll(b);
			int32_t more = p->c->cap[pos] - p->before[pos];

			if (more > 0) {
				cap[pos] = more;
				bit_set(bits, pos);
			}
		}
	}
	got = by_policy(m, &q);
	if (got == p->want)
		return got;
	mid = m->s.out.n;
	for (uint32_t i = begin; i < mid; i++)
		m->s.taken[m->s.out.p[i].node] = m->s.out.p[i].slots;
	for (uint32_t w = 0; w < words; w++) {
		for (uint64_t b = p->c->bits[w]; b; b &= b - 1) {
			uint32_t pos = w * 64 + (uint32_t)__builtin_ctzll(b);

			cap[pos] = p->c->cap[pos] - (int32_t)m->s.taken[pos];
			if (cap[pos])
				bit_set(bits, pos);
			else
				bit_clear(bits, pos);
		}
	}
	q.want = p->want - got;
	got += by_policy(m, &q);
	/* Fold: taken[] becomes the number of the part, plus one. */
	for (uint32_t i = begin; i < mid; i++)
		m->s.taken[m->s.out.p[i].node] = i + 1;
	{
		uint32_t n = mid;

		for (uint32_t i = mid; i < m->s.out.n; i++) {
			struct part x = m->s.out.p[i];
			uint32_t at = m->s.taken[x.node];

			if (at)
				m->s.out.p[at - 1].slots += x.slots;
			else
				m->s.out.p[n++] = x;
		}
		for (uint32_t i = begin; i < mid; i++)
			m->s.taken[m->s.out.p[i].node] = 0;
		m->s.out.n = n;
	}
	return got;
}

uint32_t slu_pick(struct slu_machine *m, const struct pick *p)
{
	if (p->before && p->policy != SLU_GANG_LOCALITY && p->policy != SLU_GANG_SPREAD)
		return fit_in_time(m, p);
	return by_policy(m, p);
}
