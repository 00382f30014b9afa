/* pick.c — which nodes, when there is a choice: the policies. */
#include "gang/gang_internal.h"

static uint32_t take_slots(struct slu_machine *m, const struct pick *p, uint32_t pos,
			   uint32_t slots)
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
				got += take_slots(m, p, pos,
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
			got += take_slots(m, p, pos, SLU_MIN((uint32_t)c->cap[pos], p->want - got));
		}
	}
	return got;
}

/* ---- one walk over the nodes that have room, by position ---- */

struct walk {
	const struct pick *p;
	uint32_t i, words;
	uint64_t b;
};

static inline struct walk walk_from(const struct slu_machine *m, const struct pick *p)
{
	struct walk w = { .p = p, .words = m->n_pos / 64 + 1 };

	if (!p->list)
		w.b = p->c->bits[0];
	return w;
}

static inline bool walk_next(struct walk *w, uint32_t *pos)
{
	const struct pick *p = w->p;

	if (p->list) {
		while (w->i < p->n_list) {
			*pos = p->list[w->i++];
			if (p->c->cap[*pos])
				return true;
		}
		return false;
	}
	while (!w->b) {
		if (++w->i >= w->words)
			return false;
		w->b = p->c->bits[w->i];
	}
	*pos = w->i * 64 + (uint32_t)__builtin_ctzll(w->b);
	w->b &= w->b - 1;
	return true;
}

/* ---- by keys: scores, preferences ---- */

static uint32_t gather_nodes(struct slu_machine *m, const struct pick *p)
{
	struct walk w = walk_from(m, p);
	uint32_t n = 0, pos;

	while (walk_next(&w, &pos))
		m->s.cand[n++] = (struct cand){ .pos = pos, .cap = p->c->cap[pos] };
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
static void give_keys(struct slu_machine *m, const struct pick *p, uint32_t n)
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
		c->key = k | (down ? (1u << 25) - 1 - c->pos : c->pos);
	}
}

static uint32_t in_order(struct slu_machine *m, const struct pick *p)
{
	uint32_t n = gather_nodes(m, p), got = 0;

	give_keys(m, p, n);
	n = smallest(m, n, p->want);
	for (uint32_t i = 0; i < n && got < p->want; i++)
		got += take_slots(m, p, m->s.cand[i].pos,
				  SLU_MIN((uint32_t)m->s.cand[i].cap, p->want - got));
	return got;
}

/* ---- by room, counted ---- */

/* Nodes with more room than this count as if they had this much. */
#define ROOM_MAX 1023

struct rooms {
	uint32_t nodes[ROOM_MAX + 1]; /* with exactly so much room */
	uint64_t sum;                 /* of the room, each at most ROOM_MAX */
};

static inline uint32_t room_of(const struct pick *p, uint32_t pos)
{
	return SLU_MIN((uint32_t)p->c->cap[pos], (uint32_t)ROOM_MAX);
}

static void count_rooms(struct slu_machine *m, const struct pick *p, struct rooms *r)
{
	struct walk w = walk_from(m, p);
	uint32_t pos;

	memset(r, 0, sizeof *r);
	while (walk_next(&w, &pos)) {
		uint32_t room = room_of(p, pos);

		r->nodes[room]++;
		r->sum += room;
	}
}

/* Up to so many slots are looked for in one walk that keeps the best nodes so far. */
#define FEW 32

/* The `want` nodes with least (most) room into cand, in order; fewer if there are not so many. */
static uint32_t best_few(struct slu_machine *m, const struct pick *p, bool most)
{
	struct walk w = walk_from(m, p);
	struct cand *a = m->s.cand;
	uint32_t n = 0, worst = UINT32_MAX, pos;

	while (worst > (most ? 0 : 1) && walk_next(&w, &pos)) {
		uint32_t room = room_of(p, pos), measure = most ? ROOM_MAX - room : room, i;

		if (measure >= worst)
			continue; /* also if equal: this one comes later */
		for (i = n < p->want ? n++ : n - 1; i && a[i - 1].key >> 32 > measure; i--)
			a[i] = a[i - 1];
		a[i] = (struct cand){ .key = (uint64_t)measure << 32 | pos,
				      .pos = pos,
				      .cap = p->c->cap[pos] };
		if (n == p->want)
			worst = (uint32_t)(a[n - 1].key >> 32);
	}
	return n;
}

/* Least room first: everything below a certain room, and of those with just that room the first few
 * in order. */
static uint32_t pack_many(struct slu_machine *m, const struct pick *p)
{
	struct walk w = walk_from(m, p);
	uint32_t edge = 0, n = 0, at_edge, got = 0, pos;
	uint64_t sum = 0;
	struct rooms r;

	count_rooms(m, p, &r);
	while (edge < ROOM_MAX && sum + (uint64_t)r.nodes[edge] * edge < p->want) {
		sum += (uint64_t)r.nodes[edge] * edge;
		edge++;
	}
	at_edge = edge ? (uint32_t)((p->want - sum + edge - 1) / edge) : 0;
	while (walk_next(&w, &pos)) {
		uint32_t room = room_of(p, pos);

		if (room > edge || (room == edge && !at_edge))
			continue;
		at_edge -= room == edge;
		m->s.cand[n++] = (struct cand){ .key = (uint64_t)room << 32 | pos,
						.pos = pos,
						.cap = p->c->cap[pos] };
	}
	sort_cands(m->s.cand, m->s.cand2, n);
	for (uint32_t i = 0; i < n && got < p->want; i++)
		got += take_slots(m, p, m->s.cand[i].pos,
				  SLU_MIN((uint32_t)m->s.cand[i].cap, p->want - got));
	return got;
}

static uint32_t pack_slots(struct slu_machine *m, const struct pick *p)
{
	uint32_t n, got = 0;

	if (p->want > FEW)
		return pack_many(m, p);
	n = best_few(m, p, false);
	for (uint32_t i = 0; i < n && got < p->want; i++)
		got += take_slots(m, p, m->s.cand[i].pos,
				  SLU_MIN((uint32_t)m->s.cand[i].cap, p->want - got));
	return got;
}

/* Every node gets up to `even` slots, then those with most room one more each. */
static uint32_t spread_many(struct slu_machine *m, const struct pick *p)
{
	struct walk w = walk_from(m, p);
	uint32_t even = 0, n = 0, got = 0, above = 0, edge = ROOM_MAX, at_edge, pos;
	uint64_t rest, more;
	struct rooms r;

	count_rooms(m, p, &r);
	rest = SLU_MIN(r.sum, (uint64_t)p->want);
	for (uint32_t k = 1; k <= ROOM_MAX; k++)
		above += r.nodes[k];
	/* One layer over all that have room for it, as long as it is wanted whole. */
	for (more = above; more && more <= rest && even < ROOM_MAX; more = above) {
		rest -= more;
		above -= r.nodes[++even];
	}
	/* `rest` nodes with more room than `even` get one more: all above the edge, some at it. */
	for (more = 0; edge > even && more + r.nodes[edge] < rest; edge--)
		more += r.nodes[edge];
	at_edge = (uint32_t)(rest - more);
	while (walk_next(&w, &pos)) {
		uint32_t room = room_of(p, pos), k = SLU_MIN(room, even);

		if (rest && room > even && (room > edge || (room == edge && at_edge))) {
			at_edge -= room == edge;
			k++;
		}
		if (k)
			m->s.cand[n++] = (struct cand){ .key = (uint64_t)(ROOM_MAX - room) << 32 |
							       pos,
							.pos = pos,
							.cap = (int32_t)k };
	}
	sort_cands(m->s.cand, m->s.cand2, n);
	for (uint32_t i = 0; i < n; i++)
		got += take_slots(m, p, m->s.cand[i].pos, (uint32_t)m->s.cand[i].cap);
	/* Reached only where a thousand and more slots share a node: fill up. */
	for (uint32_t i = m->s.out.n - n; i < m->s.out.n && got < p->want; i++) {
		struct part *x = &m->s.out.p[i];
		uint32_t k = SLU_MIN((uint32_t)p->c->cap[x->node] - x->slots, p->want - got);

		x->slots += k;
		got += k;
	}
	return got;
}

static uint32_t spread_slots(struct slu_machine *m, const struct pick *p)
{
	/* If there are enough nodes, no node gets two slots. */
	if (p->want > FEW || best_few(m, p, true) < p->want)
		return spread_many(m, p);
	for (uint32_t i = 0; i < p->want; i++)
		take_slots(m, p, m->s.cand[i].pos, 1);
	return p->want;
}

/* ---- by neighbourhood ---- */

/* The shortest stretch of neighbours that holds what is wanted (or all there is). */
static uint32_t stretch(struct slu_machine *m, const struct pick *p)
{
	struct walk front = walk_from(m, p), back = front, best = front, before = front;
	const int32_t *cap = p->c->cap;
	uint64_t sum = 0, want = 0;
	uint32_t hi, lo = 0, len = UINT32_MAX, got = 0, pos;

	if (p->list) {
		for (uint32_t i = 0; i < p->n_list && want < p->want; i++)
			want += (uint32_t)cap[p->list[i]];
	} else {
		while (want < p->want && walk_next(&back, &pos))
			want += (uint32_t)cap[pos];
		back = front;
	}
	want = SLU_MIN(want, (uint64_t)p->want);
	if (!want || !walk_next(&back, &lo))
		return 0;
	while (len && walk_next(&front, &hi)) {
		sum += (uint32_t)cap[hi];
		while (sum - (uint32_t)cap[lo] >= want) {
			sum -= (uint32_t)cap[lo];
			before = back;
			walk_next(&back, &lo);
		}
		if (sum >= want && hi - lo < len) {
			len = hi - lo;
			best = before;
		}
	}
	while (got < want && walk_next(&best, &pos))
		got += take_slots(m, p, pos, SLU_MIN((uint32_t)cap[pos], (uint32_t)want - got));
	return got;
}

static uint32_t by_policy(struct slu_machine *m, const struct pick *p)
{
	if (p->policy == SLU_GANG_LOCALITY)
		return stretch(m, p);
	if (p->policy == SLU_GANG_SPREAD)
		return spread_slots(m, p);
	if (p->spec->prefer || p->spec->score)
		return in_order(m, p);
	if (p->policy == SLU_GANG_PACK)
		return pack_slots(m, p);
	return first_fit(m, p);
}

/* The same as below for first fit, in place.  taken[] holds the number of the part, plus one. */
static uint32_t first_fit_in_time(struct slu_machine *m, const struct pick *p)
{
	uint32_t begin = m->s.out.n, got = 0, words = m->n_pos / 64 + 1, mid;
	const struct caps *c = p->c;
	bool down = downwards(p->policy);

	for (uint32_t i = 0; i < words && got < p->want; i++) {
		uint32_t w = down ? words - 1 - i : i;

		for (uint64_t b = c->bits[w]; b && got < p->want;) {
			uint32_t k = down ? 63 - (uint32_t)__builtin_clzll(b)
					  : (uint32_t)__builtin_ctzll(b);
			uint32_t pos = w * 64 + k;
			int32_t more = c->cap[pos] - p->before[pos];

			b &= ~(UINT64_C(1) << k);
			if (more > 0) {
				got += take_slots(m, p, pos,
						  SLU_MIN((uint32_t)more, p->want - got));
				m->s.taken[pos] = m->s.out.n;
			}
		}
	}
	mid = m->s.out.n;
	for (uint32_t i = 0; i < words && got < p->want; i++) {
		uint32_t w = down ? words - 1 - i : i;

		for (uint64_t b = c->bits[w]; b && got < p->want;) {
			uint32_t k = down ? 63 - (uint32_t)__builtin_clzll(b)
					  : (uint32_t)__builtin_ctzll(b);
			uint32_t pos = w * 64 + k, at = m->s.taken[pos];
			uint32_t room = (uint32_t)c->cap[pos] - (at ? m->s.out.p[at - 1].slots : 0);

			b &= ~(UINT64_C(1) << k);
			room = SLU_MIN(room, p->want - got);
			if (room && at)
				m->s.out.p[at - 1].slots += room;
			else if (room)
				take_slots(m, p, pos, room);
			got += room;
		}
	}
	for (uint32_t i = begin; i < mid; i++)
		m->s.taken[m->s.out.p[i].node] = 0;
	return got;
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
	if (p->before && p->policy != SLU_GANG_LOCALITY && p->policy != SLU_GANG_SPREAD) {
		if (!p->list && !p->spec->prefer && !p->spec->score && p->policy != SLU_GANG_PACK)
			return first_fit_in_time(m, p);
		return fit_in_time(m, p);
	}
	return by_policy(m, p);
}
