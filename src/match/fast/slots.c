/* slots.c — a top-level slot ("slot -> core", anywhere): every vertex whose children have the
 * slot's types offers slots, each with its score; the best of all offers are chosen.
 *
 * Offers are remembered per vertex until something below it changes, and a tournament over the
 * vertices finds the best first slot.  When the last slot chosen ties with one left out, ties.c
 * decides. */
#include "match/fast/fast_internal.h"

/* The offer of vertex p, written down; NULL without memory. */
static struct offer *offer_of(struct memo *x, uint32_t p)
{
	uint32_t c = p / CHUNK_N;
	struct chunk *k = x->offers.chunk[c];

	if (!k) {
		k = match_offers_write(&x->offers, c);
		if (!k)
			return NULL;
		if (x->ranks.row && match_ranks_write(&x->ranks, c) < 0)
			match_ranks_done(&x->ranks); /* made again when needed */
		match_extent_write(x, c);
	}
	return &k->offer[p % CHUNK_N];
}

/* Add the slots of a block to the counts (this many times) or remove them (-1). */
static void count_slots(struct memo *x, const struct block *b, int by)
{
	if (match_levels_count(&x->levels, b, by))
		match_ranks_done(&x->ranks); /* other values */
}

/* --- offers --- */

static bool same_offer(const struct block *b, const struct cands *k)
{
	uint32_t n = 0;

	if (b->n != (k ? k->n : 0))
		return false;
	for (const struct cand *c = k ? k->head : NULL; c; c = c->next)
		if (c->score != block_score(b, n++))
			return false;
	return true;
}

/* Call before the offer of vertex p, which is written down, changes ... */
static void offer_leaves(struct memo *x, uint32_t p)
{
	struct block b = offers_at(&x->offers, p);

	count_slots(x, &b, -1);
	if (x->ranks.row)
		match_ranks_change(&x->ranks, p, -1);
}

/* ... and after it has changed; `had` is the number of slots before. */
static void offer_enters(struct memo *x, uint32_t p, uint32_t before)
{
	struct block b = offers_at(&x->offers, p);

	match_offers_grew(&x->offers, p, b.n - before);
	count_slots(x, &b, 1);
	if (x->ranks.row)
		match_ranks_change(&x->ranks, p, 1);
	match_extent_change(x, p);
}

/* Write the scores of slots down.  -EAGAIN: the rules do not cover them. */
static int put_scores(const struct slu_match *m, struct front *f, struct memo *x,
		      const struct cands *k, int64_t *to)
{
	uint32_t n = 0;

	for (const struct cand *c = k ? k->head : NULL; c; c = c->next) {
		if (c->score <= 0)
			f->bad = true;
		/* Slots of one vertex mostly come in the order of the policy, but not if they
		 * differ in the number of their members, nor with variation. */
		if (n && (match_greater_first(m) ? c->score > to[n - 1] : c->score < to[n - 1]))
			x->unordered = true;
		to[n++] = c->score;
	}
	return f->bad ? -EAGAIN : 0;
}

/* Store what vertex p offers from now on. */
static int change_offer(struct attempt *a, struct front *f, struct memo *x, uint32_t p,
			const struct cands *k)
{
	struct offer *o = offer_of(x, p);
	int64_t *fresh = NULL;
	uint32_t before = o->n;
	int rc;

	if (k && k->n > o->cap) {
		fresh = slu_reallocarray(NULL, k->n, sizeof *fresh);
		if (!fresh)
			return -ENOMEM;
	}
	offer_leaves(x, p);
	if (fresh) {
		if (o->cap)
			slu_free(o->score);
		o->score = fresh;
		o->cap = k->n;
	}
	o->shift = 0;
	rc = put_scores(a->m, f, x, k, o->score);
	if (rc < 0)
		return rc;
	o->n = k ? k->n : 0;
	offer_enters(x, p, before);
	return 0;
}

/* --- what was asked lately --- */

static struct kept *kept_of(struct memo *x, uint32_t p)
{
	for (uint32_t i = 0; i < KEPT_MAX; i++)
		if (x->kept[i].n && x->kept[i].p == p)
			return &x->kept[i];
	return NULL;
}

/* The next jobs often take from the same few vertices, so keep the edges to these slots, if a
 * search marks nothing but these edges. */
static void keep_blocks(const struct slu_match *m, struct memo *x, uint32_t p,
			const struct cands *k)
{
	struct kept *to = kept_of(x, p);
	uint32_t n = 0;

	if (!to)
		to = &x->kept[x->nkept++ % KEPT_MAX];
	to->p = p;
	to->n = 0;
	if (k && k->n > to->cap) {
		struct pick *more = slu_reallocarray(to->pick, k->n, sizeof *more);

		if (!more)
			return; /* the vertex is asked again */
		to->pick = more;
		to->cap = k->n;
	}
	for (const struct cand *c = k ? k->head : NULL; c; c = c->next) {
		uint32_t v = c->n == 1 ? m->g->e.p[c->one.edge].dst : SLU_NONE;

		if (v == SLU_NONE || m->kid_off[v] != m->kid_off[v + 1])
			return;
		to->pick[n++] = c->one;
	}
	to->n = n;
}

/* Ask vertex p which slots it offers now. */
static int ask_offer(struct attempt *a, struct front *f, struct memo *x, uint32_t p)
{
	struct slu_match *m = a->m;
	struct asked *asked = match_memo_asked(x, p / CHUNK_N);
	struct offer *o = offer_of(x, p);
	struct pool up = { 0 };
	struct cands *k = NULL;
	uint32_t v = f->v[p];
	struct block b;
	int64_t count;

	if (!asked || !o)
		return -ENOMEM;

	/* The vertices above p test their sums of free units, which change with other vertices;
	 * if one of them refuses, take the plain walk instead of remembering the answer. */
	if (!match_passes(a, x, v))
		return -EAGAIN;
	if (match_walk_visit(a, v, f->centre[p], &count, &up))
		k = match_pool_cands(a, &up, SLU_TYPE_SLOT, m->sub[0], false);
	if (a->no_memory)
		return -ENOMEM;
	if (o->n)
		keep_blocks(m, x, p, k);
	b = offers_at(&x->offers, p);
	if (!same_offer(&b, k)) {
		int rc = change_offer(a, f, x, p, k);

		if (rc < 0)
			return rc;
	}
	o->next = 0;
	o->head = k ? k->head : NULL;
	asked->marked[p % CHUNK_N] = m->gen;
	match_memo_know(m, f, x, p);
	match_offers_replay(&x->offers, p);
	return 0;
}

/* --- the same again --- */

/* Edges of each slot; 0 if they differ. */
static uint32_t picks_of(const struct cands *k)
{
	for (const struct cand *c = k ? k->head : NULL; c; c = c->next)
		if (c->n != k->head->n)
			return 0;
	return k && k->head ? k->head->n : 0;
}

/* Ask vertex p on behalf of all vertices with its name, and store the answer as pattern number
 * i. */
static int make_pattern(struct attempt *a, struct front *f, struct memo *x, uint32_t p, uint32_t i)
{
	struct pattern *t = &x->offers.pattern[i];
	struct pool up = { 0 };
	struct cands *k = NULL;
	int64_t count;

	if (match_walk_visit(a, f->v[p], f->centre[p], &count, &up))
		k = match_pool_cands(a, &up, SLU_TYPE_SLOT, a->m->sub[0], false);
	t->n = k ? k->n : 0;
	t->picks = picks_of(k);
	t->centre = f->ground.below ? f->ground.below[p] : 0;
	t->score = slu_reallocarray(t->score, t->n + 1, sizeof *t->score);
	if (a->no_memory || !t->score)
		return -ENOMEM;
	return put_scores(a->m, f, x, k, t->score);
}

/* The pattern of a name, asked of vertex p if it is new; PATTERNS_MAX if there is no room, or
 * -errno. */
static int pattern_for(struct attempt *a, struct front *f, struct memo *x, uint32_t p,
		       uint32_t like)
{
	uint32_t i = match_model_of(x, like);
	int rc;

	if (i < x->nmodel || i == PATTERNS_MAX)
		return (int)i;
	rc = make_pattern(a, f, x, p, i);
	if (rc < 0)
		return rc;
	x->model[x->nmodel++] = (struct model){ .like = like };
	return (int)i;
}

/* Whether a pattern can be shifted that far. */
static bool can_shift(const struct pattern *t, int64_t centre)
{
	int64_t by = centre - t->centre, end;

	if (!by || !t->n)
		return true;
	return t->picks && !__builtin_mul_overflow(by, t->picks, &by) &&
	       !__builtin_add_overflow(t->score[0], by, &end) &&
	       !__builtin_add_overflow(t->score[t->n - 1], by, &end);
}

/* Let p offer what the pattern says. -EAGAIN: the pattern does not fit p, which must be asked. */
static int adopt_pattern(struct attempt *a, struct front *f, struct memo *x, uint32_t p,
			 uint32_t pattern)
{
	const struct pattern *t = &x->offers.pattern[pattern];
	struct offer *o = offer_of(x, p);
	struct kept *kept = kept_of(x, p);
	int64_t by = f->ground.below ? f->ground.below[p] - t->centre : 0;
	uint32_t before;

	if (!o)
		return -ENOMEM;
	if (!can_shift(t, t->centre + by))
		return -EAGAIN;
	by *= t->picks;
	if (o->score != t->score || o->shift != by || o->n != t->n) {
		before = o->n;
		offer_leaves(x, p);
		if (o->cap)
			slu_free(o->score);
		*o = (struct offer){ .score = t->score, .n = t->n, .shift = by };
		offer_enters(x, p, before);
	}
	if (kept)
		kept->n = 0;
	o->next = 0;
	x->known[p / 64] |= 1ull << p % 64;
	x->later[p / 64] &= ~(1ull << p % 64);
	a->m->fast->last[x->front] = SLU_NONE;
	match_offers_replay(&x->offers, p);
	return 0;
}

/* Ask vertex p, or one like it. */
static int learn_offer(struct attempt *a, struct front *f, struct memo *x, uint32_t p)
{
	uint32_t like = match_kind_of(a, f, p);
	int rc = -EAGAIN, i;

	if (like != SLU_NONE && match_passes(a, x, f->v[p])) {
		i = pattern_for(a, f, x, p, like);
		rc = i < 0              ? i
		     : i < PATTERNS_MAX ? adopt_pattern(a, f, x, p, (uint32_t)i)
					: -EAGAIN;
	}
	return rc == -EAGAIN && !f->bad ? ask_offer(a, f, x, p) : rc;
}

/* Whether the slots of a chunk with this pattern can be counted together. */
static bool counts_together(struct memo *x, const struct pattern *t, uint32_t c)
{
	const struct range *r = x->offers.g->range;

	if (!r || !t->n)
		return true;
	r += (size_t)c * 2 * CHUNK_N + 1;
	if (!can_shift(t, r->low) || !can_shift(t, r->high))
		return false;
	if (x->levels.spread || (r->low == t->centre && r->high == t->centre))
		return true;
	if (t->centre - r->low <= LEVELS_MAX && r->high - t->centre <= LEVELS_MAX)
		return false;
	match_ranks_done(&x->ranks);
	x->levels.spread = true;
	return true;
}

/* Let all vertices of a chunk without bookings follow one pattern. 0 even if they cannot. */
static int follow_pattern(struct attempt *a, struct front *f, struct memo *x, uint32_t c)
{
	struct offers *o = &x->offers;
	uint64_t pure;
	int i;

	if (o->chunk[c] || !match_chunk_alike(a, f, x, c, &pure))
		return 0;
	i = pattern_for(a, f, x, c * CHUNK_N + (uint32_t)__builtin_ctzll(pure), f->like[c]);
	if (i < 0 || i == PATTERNS_MAX)
		return SLU_MIN(i, 0);
	if (!o->plain[c]) {
		if (!counts_together(x, &o->pattern[i], c))
			return 0;
		match_offers_plain(o, c, (uint32_t)i);
		o->bulk = true;
		x->model[i].count += chunk_size(o, c);
	}
	x->known[c] |= pure;
	x->later[c] &= ~pure;
	a->m->fast->last[x->front] = SLU_NONE;
	return 0;
}

static int ask_unknown(struct attempt *a, struct front *f, struct memo *x)
{
	struct offers *o = &x->offers;
	uint32_t left = 0;
	int rc = 0;

	for (uint32_t c = 0; c < o->nchunk && !rc; c++) {
		if (x->known[c] == chunk_bits(o, c))
			continue;
		rc = follow_pattern(a, f, x, c);
		if (x->known[c] != chunk_bits(o, c))
			left += (uint32_t)__builtin_popcountll(chunk_bits(o, c) & ~x->known[c]);
	}
	for (uint32_t i = 0; i < x->nmodel; i++) {
		const struct pattern *t = &o->pattern[i];
		struct block b = { t->score, 0, t->n };

		if (x->model[i].count)
			count_slots(x, &b, (int)x->model[i].count);
		x->model[i].count = 0;
	}
	if (o->bulk)
		match_offers_tally(o);
	o->bulk = left > CHUNK_N;
	for (uint32_t c = 0; c < o->nchunk && left && !rc; c++) {
		uint64_t bits = chunk_bits(o, c) & ~x->known[c];

		for (; bits && !rc; bits &= bits - 1)
			rc = learn_offer(a, f, x, c * CHUNK_N + (uint32_t)__builtin_ctzll(bits));
	}
	if (o->bulk)
		match_offers_tally(o);
	return rc;
}

/* Mark slot number i of vertex p. */
static int take_slot(struct attempt *a, struct front *f, struct memo *x, uint32_t p, uint32_t i)
{
	struct slu_match *m = a->m;
	const struct kept *kept = kept_of(x, p);
	const struct pick *picks;
	const struct cand *c;
	struct offer *o;

	if (kept) {
		if (i >= kept->n || !match_passes(a, x, f->v[p]))
			return -EAGAIN;
		match_mark_put(m, kept->pick[i].edge, kept->pick[i].needs, kept->pick[i].excl);
		match_mark_above(m, f->v[p]);
		return 0;
	}
	o = offer_of(x, p);
	if (!o)
		return -ENOMEM;
	if (match_memo_marked(x, p) != m->gen) {
		uint32_t next = o->next, n = o->n;
		int rc = ask_offer(a, f, x, p);

		if (rc < 0)
			return rc;
		if (o->n != n)
			return -EAGAIN;
		o->next = next;
	}
	for (c = o->head; c && i; i--)
		c = c->next;
	if (!c)
		return -EAGAIN;
	picks = cand_picks(c);
	for (uint32_t k = 0; k < c->n; k++)
		match_mark_put(m, picks[k].edge, picks[k].needs, picks[k].excl);
	match_mark_above(m, f->v[p]);
	return 0;
}

/* The best `want` slots by the tournament; -EAGAIN if equals are left out. */
static int by_tournament(struct memo *x, uint32_t want, struct chosen *out)
{
	uint32_t n = 0, p;
	int64_t last = 0;
	struct block b;
	int rc = 0;

	for (; n < want && !rc; n++) {
		struct offer *o;

		p = offers_best(&x->offers);
		o = offer_of(x, p);
		if (!o) {
			rc = -ENOMEM;
			break;
		}
		b = offers_at(&x->offers, p);
		last = block_score(&b, o->next);
		out[n] = (struct chosen){ p, o->next };
		o->next++;
		match_offers_replay(&x->offers, p);
	}
	p = offers_best(&x->offers);
	if (!rc && p != SLU_NONE) {
		const struct chunk *k = x->offers.chunk[p / CHUNK_N];

		b = offers_at(&x->offers, p);
		if (block_score(&b, k ? k->offer[p % CHUNK_N].next : 0) == last)
			rc = -EAGAIN;
	}
	while (n-- > 0) {
		offer_of(x, out[n].p)->next = 0;
		match_offers_replay(&x->offers, out[n].p);
	}
	return rc;
}

int match_fast_slots(struct attempt *a, const struct slu_request *r, struct front *f,
		     struct memo *x)
{
	struct slu_match *m = a->m;
	struct chosen *list;
	uint32_t want;
	int rc;

	if (!x->offers.chunk && match_offers_init(&x->offers, &f->ground) < 0)
		return -ENOMEM;
	rc = ask_unknown(a, f, x);
	if (!rc)
		rc = match_extent_make(m, x);
	if (rc < 0)
		return rc;
	want = slu_count_select(&r->count, (uint32_t)SLU_MIN(x->offers.slots, (int64_t)UINT32_MAX));
	if (!want || want > x->offers.slots) {
		a->error = ENODEV;
		return -ENODEV;
	}
	list = slu_arena_alloc(&m->tmp, want * sizeof *list);
	if (!list)
		return -ENOMEM;
	rc = -EAGAIN;
	if (m->policy.scorer != SCORE_LOCALITY && !x->unordered)
		rc = by_tournament(x, want, list);
	if (rc == -EAGAIN)
		rc = match_tie_decide(a, f, x, want, list);
	for (uint32_t i = 0; i < want && !rc; i++)
		rc = take_slot(a, f, x, list[i].p, list[i].i);
	a->error = EBUSY;
	return rc;
}
