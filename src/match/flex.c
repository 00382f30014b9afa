/* flex.c — the flexible traverser: sibling slots are alternatives ("or"), xor-slots exclude each
 * other for the whole job. */
#include "match/match_internal.h"

#define VARIANTS_MAX 1000
/* Ceilings of one search for the best mix of alternatives.  Past them the search gives up and
 * reports that it did (a->gave_up). */
#define STATES_MAX       (1u << 18)
#define DEPTH_STATES_MAX 20000

/* --- or-slots --- */

struct alt {
	const struct slu_request *slot;
	uint32_t *type; /* by child: position in the state */
};

struct mix {
	struct attempt *a;
	struct alt *alt;
	uint32_t nalt;
	uint32_t ntypes;
	uint32_t nslots;
	struct slu_map seen; /* hash of a state -> the newest struct known with it */
	uint32_t depth;
};

/* The best result from one state; states with the same hash form a list. */
struct known {
	struct known *next;
	uint32_t best, first;
	uint32_t state[];
};

static const struct known *known_find(struct mix *x, uint64_t hash, const uint32_t *state)
{
	const uint64_t *at = slu_map_get(&x->seen, hash);
	const struct known *k = at ? (const struct known *)(uintptr_t)*at : NULL;

	while (k && memcmp(k->state, state, x->ntypes * sizeof *state) != 0)
		k = k->next;
	return k;
}

static void known_put(struct mix *x, uint64_t hash, const uint32_t *state, uint32_t best,
		      uint32_t first)
{
	struct known *k = slu_arena_alloc(&x->a->m->tmp, sizeof *k + x->ntypes * sizeof *state);
	const uint64_t *at = slu_map_get(&x->seen, hash);

	if (!k) {
		x->a->no_memory = true;
		return;
	}
	*k = (struct known){ at ? (struct known *)(uintptr_t)*at : NULL, best, first };
	memcpy(k->state, state, x->ntypes * sizeof *state);
	if (slu_map_put(&x->seen, hash, (uintptr_t)k) < 0)
		x->a->no_memory = true;
}

static uint32_t units_of(uint32_t n, const struct slu_request *c)
{
	return slu_count_select(&c->count, n);
}

/* How often one alternative fits by itself.  The reference keeps its upper limit as a signed
 * number: "no limit" becomes -1, so the reference takes slots until none is left and then
 * reports that it has not found enough. */
static uint32_t fits(const struct mix *x, const struct alt *alt, const uint32_t *state)
{
	int32_t best = (int32_t)x->nslots;

	for (uint32_t k = 0; k < alt->slot->nwith; k++) {
		uint32_t have = state[alt->type[k]], n = units_of(have, &alt->slot->with[k]);

		if (!n || have < n)
			return 0;
		best = SLU_MIN(best, (int32_t)(have / n));
	}
	return (uint32_t)best;
}

static bool take_alternative(const struct alt *alt, const uint32_t *state, uint32_t *rest,
			     uint32_t ntypes)
{
	if (!alt->slot->nwith)
		return false; /* the reference loops for ever here */
	memcpy(rest, state, ntypes * sizeof *rest);
	for (uint32_t k = 0; k < alt->slot->nwith; k++) {
		uint32_t t = alt->type[k], n = units_of(state[t], &alt->slot->with[k]);

		if (!n || rest[t] < n)
			return false;
		rest[t] -= n;
	}
	return true;
}

/* The largest number of slots that can be made from this state on; *first is the alternative to
 * take first (nalt: none). */
static uint32_t best_from(struct mix *x, const uint32_t *state, uint32_t *first)
{
	uint64_t hash = slu_hash_bytes(state, x->ntypes * sizeof *state);
	const struct known *k = known_find(x, hash, state);
	uint32_t best = 0, *rest;

	*first = x->nalt;
	if (k) {
		*first = k->first;
		return k->best;
	}
	if (x->seen.n >= STATES_MAX || x->depth >= DEPTH_STATES_MAX) {
		x->a->gave_up = true;
		return 0;
	}
	rest = slu_arena_alloc(&x->a->m->tmp, x->ntypes * sizeof *rest);
	if (!rest) {
		x->a->no_memory = true;
		return 0;
	}
	x->depth++;
	for (uint32_t i = 0; i < x->nalt; i++) {
		uint32_t n, step;

		if (!take_alternative(&x->alt[i], state, rest, x->ntypes))
			continue;
		n = 1 + best_from(x, rest, &step);
		if (n > best) {
			best = n;
			*first = i;
		}
	}
	x->depth--;
	known_put(x, hash, state, best, *first);
	return best;
}

/* Make one slot of the next candidates; false if there are not enough. */
static bool make_slot(struct attempt *a, const struct alt *alt, const uint32_t *want,
		      struct cand **next, struct cands *out)
{
	const struct slu_request *slot = alt->slot;
	struct cand **from = slu_arena_alloc(&a->m->tmp, (slot->nwith + 1) * sizeof *from);
	uint32_t picks = 0, p = 0;
	struct cand *c, *s;

	if (!from) {
		a->no_memory = true;
		return false;
	}
	for (uint32_t k = 0; k < slot->nwith; k++) {
		int64_t units = 0;

		/* A type that occurs again continues where its last use ended. */
		c = next[alt->type[k]];
		for (uint32_t j = 0; j < k; j++)
			c = alt->type[j] == alt->type[k] ? from[j] : c;
		for (; units < want[k]; c = c->next) {
			if (!c)
				return false;
			units += cand_picks(c)->needs;
			picks++;
		}
		from[k] = c;
	}
	s = match_cand_new(a, picks);
	if (!s)
		return false;
	s->score = 1;
	s->count = 1;
	for (uint32_t k = 0; k < slot->nwith; k++) {
		int64_t units = 0;

		for (c = next[alt->type[k]]; units < want[k]; c = c->next) {
			struct pick *to = s->n > 1 ? &s->many[p++] : &s->one;

			*to = *cand_picks(c);
			to->excl = true;
			units += to->needs;
			s->score += c->score;
		}
		next[alt->type[k]] = c;
	}
	match_pool_add(out, s);
	return true;
}

static int cmp_request(const void *a, const void *b)
{
	return (int)((const struct slu_request *)a)->type -
	       (int)((const struct slu_request *)b)->type;
}

/* All children of all alternatives, one per type (the one with the largest min). */
static uint32_t all_children(const struct slu_request *list, uint32_t n, struct slu_request *out)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < list[i].nwith; j++) {
			const struct slu_request *c = &list[i].with[j];
			uint32_t t = 0;

			while (t < k && out[t].type != c->type)
				t++;
			if (t == k)
				out[k++] = *c;
			else if (c->count.min > out[t].count.min)
				out[t] = *c;
		}
	qsort(out, k, sizeof *out, cmp_request);
	return k;
}

/* One search for slots among the children of a vertex. */
struct search {
	struct mix x;
	struct slu_request *kids; /* of all alternatives, one for each of the x.ntypes types */
	/* By type: units at the start and now, scratch space, the next candidate to use. */
	uint32_t *state, *rest, *spare;
	struct cand **next;
	uint32_t *want; /* by child of an alternative: units for one slot */
};

/* Memory for everything whose size follows from the request. */
static bool search_init(struct search *s, const struct slu_request *list, uint32_t n)
{
	struct attempt *a = s->x.a;
	struct slu_arena *tmp = &a->m->tmp;
	uint32_t nkids = 0;

	for (uint32_t i = 0; i < n; i++) {
		nkids += list[i].nwith;
		if (match_is_slot(a, &list[i]))
			s->x.nslots = a->info[list[i].index].emax;
	}
	s->kids = slu_arena_alloc(tmp, (nkids + 1) * sizeof *s->kids);
	s->x.alt = slu_arena_zalloc(tmp, (n + 1) * sizeof *s->x.alt);
	s->want = slu_arena_alloc(tmp, (nkids + 1) * sizeof *s->want);
	if (!s->kids || !s->x.alt || !s->want)
		return false;
	s->x.ntypes = all_children(list, n, s->kids);
	s->state = slu_arena_alloc(tmp, (s->x.ntypes + 1) * sizeof *s->state);
	s->rest = slu_arena_alloc(tmp, (s->x.ntypes + 1) * sizeof *s->rest);
	s->spare = slu_arena_alloc(tmp, (s->x.ntypes + 1) * sizeof *s->spare);
	s->next = slu_arena_alloc(tmp, (s->x.ntypes + 1) * sizeof *s->next);
	return s->state && s->rest && s->spare && s->next;
}

/* What there is of each type. */
static void count_units(struct search *s, struct pool *own)
{
	struct attempt *a = s->x.a;

	for (uint32_t t = 0; t < s->x.ntypes; t++) {
		struct cands *k = match_pool_cands(a, own, s->kids[t].type, a->m->sub[0], false);

		s->state[t] = k ? (uint32_t)SLU_MIN(k->qualified, (int64_t)UINT32_MAX) : 0;
		s->next[t] = k ? k->head : NULL;
	}
	memcpy(s->rest, s->state, s->x.ntypes * sizeof *s->rest);
}

/* Siblings of the slots that are no slots themselves count as alternatives, too. */
static bool list_alternatives(struct search *s, const struct slu_request *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct alt *alt = &s->x.alt[s->x.nalt++];

		alt->slot = &list[i];
		alt->type = slu_arena_alloc(&s->x.a->m->tmp,
					    (list[i].nwith + 1) * sizeof *alt->type);
		if (!alt->type)
			return false;
		for (uint32_t k = 0; k < list[i].nwith; k++)
			for (uint32_t t = 0; t < s->x.ntypes; t++)
				if (s->kids[t].type == list[i].with[k].type)
					alt->type[k] = t;
	}
	return true;
}

/* The alternative for the next slot; NULL: no more can be made. */
static const struct alt *next_alternative(struct search *s)
{
	uint32_t first;

	if (s->x.nalt == 1)
		return &s->x.alt[0];
	return best_from(&s->x, s->rest, &first) && first < s->x.nalt ? &s->x.alt[first] : NULL;
}

/* As many slots as can be made, into `made`. */
static void make_slots(struct search *s, struct cands *made)
{
	struct mix *x = &s->x;
	struct attempt *a = x->a;
	uint32_t first, left = x->nalt == 1 ? fits(x, &x->alt[0], s->state)
					    : best_from(x, s->state, &first);

	for (; left && !a->no_memory; left--) {
		const struct alt *alt = next_alternative(s);

		if (!alt)
			return;
		/* The number of shares is computed from all candidates, the path from those that
		 * are left. */
		for (uint32_t k = 0; k < alt->slot->nwith; k++)
			s->want[k] = units_of(s->state[alt->type[k]], &alt->slot->with[k]);
		if (!make_slot(a, alt, s->want, s->next, made)) {
			if (!a->no_memory)
				slu_buf_puts(&a->m->msg, "dom_slot: not enough slots.\n");
			*made = (struct cands){ 0 };
			return;
		}
		if (x->nalt == 1)
			continue;
		if (!take_alternative(alt, s->rest, s->spare, x->ntypes))
			return;
		memcpy(s->rest, s->spare, x->ntypes * sizeof *s->rest);
	}
}

int match_flex_slots(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		     struct pool *into)
{
	struct search s = { .x = { .a = a } };
	struct pool own = { 0 };
	struct cands made = { 0 }, *out;

	if (!search_init(&s, list, n)) {
		a->no_memory = true;
		return -ENOMEM;
	}
	if (match_visit_parts(a, u, s.kids, s.x.ntypes, s.x.nslots, &own) < 0)
		return -ENOMEM;
	if (!own.n)
		return 0;
	match_choose_all(a, &own, true);
	count_units(&s, &own);
	if (!list_alternatives(&s, list, n)) {
		a->no_memory = true;
		return -ENOMEM;
	}
	make_slots(&s, &made);
	slu_map_done(&s.x.seen);
	if (a->no_memory)
		return -ENOMEM;
	if (!made.n)
		return 0;
	out = match_pool_cands(a, into, SLU_TYPE_SLOT, a->m->sub[0], true);
	if (!out)
		return -ENOMEM;
	for (struct cand *c = made.head, *after; c; c = after) {
		after = c->next;
		match_pool_add(out, c);
	}
	return 0;
}

/* --- xor-slots --- */

struct variants {
	SLU_VEC(struct slu_request *) list;
	SLU_VEC(uint32_t) n;
};

static void variants_done(struct variants *v)
{
	slu_vec_done(&v->list);
	slu_vec_done(&v->n);
}

static bool has_xor(const struct slu_request *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].type == SLU_TYPE_XOR_SLOT || has_xor(list[i].with, list[i].nwith))
			return true;
	return false;
}

static int push_variant(struct variants *v, struct slu_request *l, uint32_t n)
{
	if (slu_vec_push(&v->list, l) < 0 || slu_vec_push(&v->n, n) < 0)
		return -ENOMEM;
	return v->list.n > VARIANTS_MAX ? -EOVERFLOW : 0;
}

/* Replace `base` by its lists with one more request behind each: any of the `n` in `last`. */
static int append_each(struct attempt *a, struct variants *base, const struct slu_request *last,
		       uint32_t n)
{
	struct variants next = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < base->list.n && !rc; i++)
		for (uint32_t k = 0; k < n && !rc; k++) {
			uint32_t had = base->n.p[i];
			struct slu_request *l = slu_arena_alloc(&a->m->req, (had + 1) * sizeof *l);

			if (!l) {
				rc = -ENOMEM;
				break;
			}
			if (had)
				memcpy(l, base->list.p[i], had * sizeof *l);
			l[had] = last[k];
			rc = push_variant(&next, l, had + 1);
		}
	variants_done(base);
	*base = next;
	return rc;
}

struct requests {
	SLU_VEC(struct slu_request) v;
};

/* Add `r` with each list of parts in `of`. */
static int with_each(struct requests *to, struct slu_request r, const struct variants *of)
{
	for (uint32_t k = 0; k < of->list.n; k++) {
		r.with = of->list.p[k];
		r.nwith = of->n.p[k];
		if (slu_vec_push(&to->v, r) < 0)
			return -ENOMEM;
		if (to->v.n > VARIANTS_MAX)
			return -EOVERFLOW;
	}
	return 0;
}

/* Expand nested lists first.  All other siblings are needed together; of the xor-slots, one. */
static int expand_alternatives(struct attempt *a, const struct slu_request *list, uint32_t n,
			       struct variants *out)
{
	struct requests choice = { 0 };
	int rc = push_variant(out, NULL, 0);

	for (uint32_t i = 0; i < n && !rc; i++) {
		struct requests all = { 0 };
		struct slu_request r = list[i];
		struct variants of = { 0 };
		bool xor = r.type == SLU_TYPE_XOR_SLOT;

		rc = expand_alternatives(a, r.with, r.nwith, &of);
		if (xor)
			r.type = SLU_TYPE_SLOT;
		if (!rc)
			rc = with_each(xor? &choice : &all, r, &of);
		if (!rc && !xor)
			rc = append_each(a, out, all.v.p, all.v.n);
		slu_vec_done(&all.v);
		variants_done(&of);
	}
	if (!rc && choice.v.n)
		rc = append_each(a, out, choice.v.p, choice.v.n);
	slu_vec_done(&choice.v);
	return rc;
}

int match_flex_variants(struct attempt *a)
{
	struct variants v = { 0 };
	int rc = 0;

	if (a->variants)
		return 0;
	if (!has_xor(a->spec->resources, a->spec->nresources)) {
		a->variant = slu_arena_alloc(&a->m->req, sizeof *a->variant);
		a->variant_n = slu_arena_alloc(&a->m->req, sizeof *a->variant_n);
		if (!a->variant || !a->variant_n)
			return -ENOMEM;
		a->variant[0] = a->spec->resources;
		a->variant_n[0] = a->spec->nresources;
		a->variants = 1;
		return 0;
	}
	rc = expand_alternatives(a, a->spec->resources, a->spec->nresources, &v);
	if (!rc) {
		a->variant = slu_arena_alloc(&a->m->req, v.list.n * sizeof *a->variant);
		a->variant_n = slu_arena_alloc(&a->m->req, v.list.n * sizeof *a->variant_n);
		rc = a->variant && a->variant_n ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < v.list.n && !rc; i++) {
		a->variant[i] = v.list.p[i];
		a->variant_n[i] = v.n.p[i];
	}
	if (!rc)
		a->variants = v.list.n;
	variants_done(&v);
	return rc;
}
