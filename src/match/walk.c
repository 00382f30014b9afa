/* walk.c — one attempt to match a request at one time: down from the root, candidates up.
 *
 * visit() asks a vertex whether it can serve the request; on the way back each vertex chooses the
 * best of its children for what the request wants below it and marks the edges to them.  At the
 * root the choice for the whole request is made.  book.c then follows the marks. */
#include "match/constraint.h"
#include "match/core.h"

struct answer {
	int64_t score;
	int64_t count;
	bool excl;
};

static int visit(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		 bool pristine, bool x, uint32_t depth, struct pool *up, struct answer *out);

/* --- candidates --- */

struct kind *pool_kind(struct attempt *a, struct pool *p, uint16_t type, uint8_t sub, bool make)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->k[i].type == type && p->k[i].sub == sub)
			return &p->k[i];
	if (!make)
		return NULL;
	if (p->n == p->cap) {
		uint32_t cap = p->cap ? p->cap * 2 : 4;
		struct kind *k = slu_arena_alloc(&a->m->tmp, cap * sizeof *k);

		if (!k) {
			a->no_memory = true;
			return NULL;
		}
		if (p->n)
			memcpy(k, p->k, p->n * sizeof *k);
		p->k = k;
		p->cap = cap;
	}
	p->k[p->n] = (struct kind){ .type = type, .sub = sub };
	return &p->k[p->n++];
}

void pool_add(struct kind *k, struct cand *c)
{
	c->next = NULL;
	if (k->tail)
		k->tail->next = c;
	else
		k->head = c;
	k->tail = c;
	k->n++;
	k->total += c->count;
	if (c->score > 0)
		k->qualified += c->count;
}

static void pool_append(struct attempt *a, struct pool *to, const struct pool *from)
{
	for (uint32_t i = 0; i < from->n; i++) {
		const struct kind *f = &from->k[i];
		struct kind *k = pool_kind(a, to, f->type, f->sub, true);

		if (!k)
			return;
		if (!f->n)
			continue;
		if (k->tail)
			k->tail->next = f->head;
		else
			k->head = f->head;
		k->tail = f->tail;
		k->n += f->n;
		k->total += f->total;
		k->qualified += f->qualified;
	}
}

struct cand *cand_new(struct attempt *a, uint32_t npicks)
{
	struct cand *c = slu_arena_alloc(&a->m->tmp, sizeof *c);

	if (c) {
		*c = (struct cand){ .n = npicks };
		if (npicks > 1)
			c->many = slu_arena_alloc(&a->m->tmp, npicks * sizeof *c->many);
	}
	if (!c || (npicks > 1 && !c->many)) {
		a->no_memory = true;
		return NULL;
	}
	return c;
}

/* Relink the candidates in the order of their keys. */
static bool sort_kind(struct attempt *a, struct kind *k, bool greater,
		      int64_t (*key)(void *, int64_t), void *arg)
{
	struct key small[64], *keys = small;
	bool in_order = true, reversed = true;
	uint32_t n = 0;

	if (k->n < 2)
		return true;
	if (k->n > SLU_LEN(small))
		keys = slu_arena_alloc(&a->m->tmp, k->n * sizeof *keys);
	if (!keys) {
		a->no_memory = true;
		return false;
	}
	for (struct cand *c = k->head; c; c = c->next, n++) {
		keys[n] = (struct key){ key ? key(arg, c->score) : c->score, c };
		if (n) {
			in_order &= greater ? keys[n - 1].key > keys[n].key
					    : keys[n - 1].key < keys[n].key;
			reversed &= greater ? keys[n - 1].key < keys[n].key
					    : keys[n - 1].key > keys[n].key;
		}
	}
	/* No two are equal and they are in order, or in reverse: that is the only answer. */
	if (in_order)
		return true;
	if (reversed)
		for (uint32_t i = 0, j = n - 1; i < j; i++, j--) {
			struct key t = keys[i];

			keys[i] = keys[j];
			keys[j] = t;
		}
	else
		sort_keys(keys, n, greater);
	for (uint32_t i = 0; i + 1 < n; i++)
		keys[i].c->next = keys[i + 1].c;
	keys[n - 1].c->next = NULL;
	k->head = keys[0].c;
	k->tail = keys[n - 1].c;
	return true;
}

static bool take_best(struct kind *k, uint32_t n)
{
	int64_t units = 0;

	k->best = 0;
	for (struct cand *c = k->head; c && units < n; c = c->next) {
		units += c->count;
		k->best++;
	}
	k->chosen = true;
	return true;
}

bool choose(struct attempt *a, struct kind *k, uint32_t n, bool greater)
{
	if (!n || n > k->qualified || !sort_kind(a, k, greater, NULL, NULL))
		return false;
	return take_best(k, n);
}

void choose_all(struct attempt *a, struct pool *p, bool slot)
{
	bool greater = a->m->policy.scorer != SCORE_LOW &&
		       (a->m->policy.scorer != SCORE_VARIATION || slot);

	for (uint32_t i = 0; i < p->n; i++)
		if (p->k[i].qualified)
			sort_kind(a, &p->k[i], greater, NULL, NULL);
}

static bool usual_order(const struct attempt *a)
{
	return a->m->policy.scorer == SCORE_HIGH || a->m->policy.scorer == SCORE_LOCALITY;
}

/* --- what a request needs below each of its nodes --- */

bool is_slot(const struct attempt *a, const struct slu_request *r)
{
	return r->type == SLU_TYPE_SLOT || (a->m->flexible && r->type == SLU_TYPE_XOR_SLOT);
}

/* Sums of needs stop at the largest number: nobody has that much. */
static int64_t plus(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t times(uint32_t n, int64_t x)
{
	int64_t r;

	return __builtin_mul_overflow((int64_t)n, x, &r) ? INT64_MAX : r;
}

static void add_need(struct reqinfo *to, uint32_t type, int64_t n)
{
	to->needs[type] = plus(to->needs[type], n);
	to->has[type] = to->any = true;
}

/* What the alternatives have in common (flexible): the least of them, and nothing of a type that
 * one of them does not have. */
static void least_needs(const struct slu_match *m, struct reqinfo *to, const struct reqinfo *from,
			uint32_t count)
{
	for (uint32_t t = 0; t < m->prune.n; t++) {
		int64_t n = from->has[t] ? times(count, from->needs[t]) : 0;

		if (!from->has[t] && !to->has[t])
			continue;
		to->needs[t] = to->has[t] ? SLU_MIN(to->needs[t], n) : n;
		to->has[t] = to->any = true;
	}
}

static void add_needs(struct attempt *a, const struct slu_request *list, uint32_t n,
		      struct reqinfo *to)
{
	const struct slu_match *m = a->m;

	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *c = &list[i];
		const struct reqinfo *from = &a->info[c->index];

		if (c->type < m->ntypes && m->prune_at[c->type] != NO_PRUNE)
			add_need(to, m->prune_at[c->type], c->count.min);
		if (m->flexible && is_slot(a, c)) {
			least_needs(m, to, from, c->count.min);
			continue;
		}
		for (uint32_t t = 0; t < m->prune.n; t++)
			if (from->has[t])
				add_need(to, t, times(c->count.min, from->needs[t]));
	}
}

static int info_init(struct attempt *a, struct reqinfo *i)
{
	uint32_t n = a->m->prune.n + 1;

	i->needs = slu_arena_zalloc(&a->m->req, n * sizeof *i->needs);
	i->has = slu_arena_zalloc(&a->m->req, n * sizeof *i->has);
	i->any = false;
	return i->needs && i->has ? 0 : -ENOMEM;
}

static int request_info(struct attempt *a, const struct slu_request *r)
{
	struct reqinfo *i = &a->info[r->index];

	for (uint32_t k = 0; k < r->nwith; k++)
		if (request_info(a, &r->with[k]) < 0)
			return -ENOMEM;
	if (info_init(a, i) < 0)
		return -ENOMEM;
	i->emax = slu_count_max(&r->count);
	add_needs(a, r->with, r->nwith, i);
	return 0;
}

int attempt_prepare(struct attempt *a, struct slu_match *m, const struct slu_jobspec *spec)
{
	struct reqinfo top;

	*a = (struct attempt){
		.m = m,
		.spec = spec,
		.list = spec->resources,
		.nlist = spec->nresources,
		.constraint = spec->constraint,
		.error = m->stale,
	};
	slu_arena_reset(&m->req);
	a->info = slu_arena_zalloc(&m->req, (spec->nrequests + 1) * sizeof *a->info);
	if (!a->info || info_init(a, &top) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->nlist; i++)
		if (request_info(a, &a->list[i]) < 0)
			return -ENOMEM;
	add_needs(a, a->list, a->nlist, &top);
	a->top_needs = top.needs;
	return 0;
}

/* --- step 2: what is this vertex to the request? --- */

enum fit { FIT_NONE, FIT_SLOT, FIT_RESOURCE, FIT_SKIP };

bool kid_types_fit(const struct slu_match *m, uint32_t u, const struct slu_request *slot)
{
	for (uint32_t i = 0; i < slot->nwith; i++) {
		uint16_t t = slot->with[i].type;

		if (!(m->kidtypes[u] & 1ull << (t < 63 ? t : 63)))
			return false;
		if (t >= 63) {
			bool found = false;

			slu_graph_each_out(m->g, u, e)
				found = found || m->g->v.p[m->g->e.p[e].dst].type == t;
			if (!found)
				return false;
		}
	}
	return slot->nwith > 0;
}

struct class
{
	enum fit fit;
	const struct slu_request *list; /* for the level below */
	uint32_t n;
	const struct slu_request *slot; /* FIT_SLOT: the slot; flexible: the whole list above */
	uint32_t nslot;
};

static const struct slu_request *slot_in(const struct attempt *a, const struct slu_request *list,
					 uint32_t n)
{
	const struct slu_request *slot = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (is_slot(a, &list[i]))
			slot = &list[i];
	return slot;
}

static void siblings(struct attempt *a, uint16_t type)
{
	slu_buf_printf(&a->m->msg, "test: siblings in jobspec request same resource type : %s.\n",
		       slu_graph_type_name(a->m->g, type));
}

static struct class classify(struct attempt *a, uint32_t u, const struct slu_request *list,
			     uint32_t n, bool pristine)
{
	const struct slu_match *m = a->m;
	uint16_t type = m->g->v.p[u].type;
	const struct slu_request *match = NULL, *slot = NULL, *alts = NULL;
	uint32_t nalts = 0;
	bool found = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *r = &list[i];

		if (r->type == type) {
			if (found) {
				siblings(a, type);
				return (struct class){ 0 };
			}
			found = true;
			match = r;
			slot = slot_in(a, r->with, r->nwith);
			if (slot) {
				alts = r->with;
				nalts = r->nwith;
			}
		} else if (is_slot(a, r)) {
			if (m->flexible ? match != NULL : found) {
				siblings(a, type);
				return (struct class){ 0 };
			}
			found = true;
			slot = r;
			alts = list;
			nalts = n;
		}
	}
	if (slot && !m->flexible && kid_types_fit(m, u, slot))
		return (struct class){ FIT_SLOT, slot->with, slot->nwith, slot, 1 };
	if (slot && m->flexible) {
		/* Any sibling of the slots will do, also one that wants nothing below it. */
		for (uint32_t i = 0; i < nalts; i++)
			if (!alts[i].nwith || kid_types_fit(m, u, &alts[i]))
				return (struct class){ FIT_SLOT, NULL, 0, alts, nalts };
		match = NULL;
	}
	if (match)
		return (struct class){ FIT_RESOURCE, match->with, match->nwith, NULL, 0 };
	if (pristine)
		return (struct class){ FIT_SKIP, list, n, NULL, 0 };
	return (struct class){ 0 };
}

/* --- step 4: can it be? --- */

static int
refuse(struct attempt *a, int error)
{
	a->error = error;
	return -error;
}

static int exclusive_free(struct attempt *a, uint32_t u, const struct slu_request *r, bool x)
{
	struct slu_match *m = a->m;

	if (x && r->excl == SLU_EXCL_FALSE) {
		slu_buf_printf(&m->msg,
			       "by_excl: exclusivity conflicts at jobspec=%s : vertex=", r->label);
		slu_graph_name_put(m->g, u, &m->msg);
		return refuse(a, EINVAL);
	}
	if (!x && r->excl != SLU_EXCL_TRUE)
		return 0;
	if (a->at == a->now && (a->mode == MODE_ALLOCATE || a->mode == MODE_WITHOUT) &&
	    led_any(&m->led, u, LED_HELD))
		return refuse(a, EBUSY);
	if (!led_untouched(&m->led, u, a->at, a->end))
		return refuse(a, EBUSY);
	return 0;
}

static bool aggregate_fits(const struct attempt *a, const struct slu_multi *mu,
			   const struct reqinfo *i)
{
	for (uint32_t k = 0; k < mu->n; k++) {
		uint16_t at = a->m->prune_at[mu->type[k]];

		if (slu_planner_fits(&mu->p[k], a->at, a->duration,
				     at == NO_PRUNE ? 0 : i->needs[at]) < 0)
			return false;
	}
	return true;
}

static int prune(struct attempt *a, uint32_t u, uint32_t s, const struct slu_request *list,
		 uint32_t n, bool x, int64_t *avail)
{
	struct slu_match *m = a->m;
	const struct slu_vertex *v = &m->g->v.p[u];
	const struct slu_multi *mu = m->multi[(size_t)s * m->nv + u];
	bool slots_fit = true;

	if (v->status == SLU_DOWN && a->mode != MODE_SATISFY)
		return refuse(a, EBUSY);
	if (a->constraint && (v->type == SLU_TYPE_NODE || v->type == SLU_TYPE_STORAGE_NODE) &&
	    !slu_constraint_match(a->constraint, m->g, u))
		return refuse(a, EBUSY);
	if (a->end < a->at) {
		slu_buf_printf(&m->msg,
			       "by_avail: planner_avail_resources_during returned -1.\n%s.\n",
			       strerror(ERANGE));
		return refuse(a, ERANGE);
	}
	*avail = led_avail(&m->led, u, v->size, a->at, a->end);
	if (*avail <= 0)
		return refuse(a, EBUSY);
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *r = &list[i];
		const struct reqinfo *info = &a->info[r->index];
		bool slot = is_slot(a, r);
		int rc;

		if (r->type != v->type && !slot)
			continue;
		if (!slot) {
			rc = exclusive_free(a, u, r, x);
			if (rc < 0)
				return rc;
		}
		if (m->flexible && slot) {
			slots_fit = !mu || !info->any || aggregate_fits(a, mu, info);
			continue;
		}
		if (!mu || !info->any)
			continue;
		if (!aggregate_fits(a, mu, info))
			return refuse(a, EBUSY);
	}
	return slots_fit ? 0 : refuse(a, EBUSY);
}

/* --- steps 5 and 7: the policy's hooks --- */

static int discover(struct attempt *a, uint32_t u, int64_t *mine)
{
	const struct slu_vertex *v = &a->m->g->v.p[u];
	int64_t f;

	*mine = 0;
	if (!a->m->policy.node_centric || v->type != SLU_TYPE_NODE)
		return 0;
	if (v->id < -1 || __builtin_add_overflow(v->id, 2, &f) ||
	    __builtin_mul_overflow(f, 10000, &f) ||
	    __builtin_add_overflow(f, llabs(v->uniq_id % 10000 - 1), &f) ||
	    __builtin_add_overflow(a->centre, f, &a->centre))
		return refuse(a, EBUSY);
	*mine = f;
	return 0;
}

static int64_t perf_class(const struct slu_graph *g, uint32_t u)
{
	const char *s = slu_graph_property(g, u, "perf_class");
	char *end;
	long long n;

	if (!s)
		return 9999;
	errno = 0;
	n = strtoll(s, &end, 10);
	return end == s || errno || n < 0 || n > 9999 ? 9999 : n;
}

bool walk_score(struct slu_match *m, uint32_t u, int64_t centre, int64_t *out)
{
	int64_t id = m->g->v.p[u].id;

	switch (m->policy.scorer) {
	case SCORE_VARIATION:
		*out = 1 + perf_class(m->g, u);
		return true;
	case SCORE_LOCALITY:
		return !__builtin_add_overflow(id, 2, out);
	default:
		return !__builtin_add_overflow(id, 2, out) &&
		       !__builtin_add_overflow(*out, centre, out);
	}
}

static int finish(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		  struct pool *own, int64_t *score)
{
	uint16_t type = a->m->g->v.p[u].type;

	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *r = &list[i];

		if (r->type != type)
			continue;
		for (uint32_t k = 0; k < r->nwith; k++) {
			const struct slu_request *c = &r->with[k];
			struct kind *kind = pool_kind(a, own, c->type, a->m->sub[0], false);
			int64_t q = kind ? kind->qualified : 0;
			uint32_t take = slu_count_select(&c->count,
							 (uint32_t)SLU_MIN(q, (int64_t)UINT32_MAX));

			if (!take || !choose(a, kind, take, usual_order(a)))
				return refuse(a, EBUSY);
		}
	}
	return walk_score(a->m, u, a->centre, score) ? 0 : refuse(a, EBUSY);
}

static void mark_edge(struct attempt *a, const struct pick *p)
{
	mark_put(a->m, p->edge, p->needs, p->excl);
}

/* Mark what was chosen; false if nothing was. */
static bool mark_chosen(struct attempt *a, struct pool *own)
{
	bool any = false;

	for (uint32_t i = 0; i < own->n; i++) {
		const struct kind *k = &own->k[i];
		uint32_t left = k->best;

		if (!k->chosen)
			continue;
		any = true;
		for (const struct cand *c = k->head; c && left; c = c->next, left--) {
			const struct pick *p = cand_picks(c);

			for (uint32_t j = 0; j < c->n; j++)
				mark_edge(a, &p[j]);
		}
	}
	return any;
}

/* --- step 6: the children --- */

/* A leaf of the graph against a leaf of the request, most of all visits: what visit() would do,
 * without its preparations.  1: serves, 0: does not, -EAGAIN: not such a case. */
static int visit_leaf(struct attempt *a, uint32_t v, const struct slu_request *r, bool x,
		      struct answer *out)
{
	struct slu_match *m = a->m;
	const struct slu_vertex *y = &m->g->v.p[v];
	int64_t avail;

	if (y->type != r->type || r->nwith || r->label[0] || m->kid_off[v] != m->kid_off[v + 1] ||
	    m->nsub > 1 || m->multi[v] || y->type == SLU_TYPE_NODE || is_slot(a, r))
		return -EAGAIN;
	a->pre++;
	x = x || r->excl == SLU_EXCL_TRUE;
	if (prune(a, v, 0, r, 1, x, &avail) < 0)
		return 0;
	if (m->colour)
		m->colour[v] = m->gen;
	if (!walk_score(m, v, a->centre, &out->score)) {
		refuse(a, EBUSY);
		return 0;
	}
	out->count = avail;
	out->excl = x;
	a->post++;
	return 1;
}

static int visit_edge(struct attempt *a, uint32_t e, const struct slu_request *list, uint32_t n,
		      bool pristine, bool x, uint32_t depth, struct pool *into)
{
	const struct slu_graph *g = a->m->g;
	uint32_t v = g->e.p[e].dst;
	struct answer got;
	struct kind *k;
	struct cand *c;
	bool front;
	int rc;

	if (a->m->colour && a->m->colour[v] == a->m->gen)
		return -EBUSY;
	front = a->skip && pristine;
	if (front && fast_fails(a, v))
		return refuse(a, EBUSY);
	rc = n == 1 && !pristine ? visit_leaf(a, v, list, x, &got) : -EAGAIN;
	if (!rc)
		return -EBUSY;
	if (rc < 0 && (visit(a, v, list, n, pristine, x, depth, into, &got) < 0 || a->no_memory)) {
		if (front && !a->no_memory)
			fast_failed(a, v);
		return -EBUSY;
	}
	c = cand_new(a, 1);
	k = c ? pool_kind(a, into, g->v.p[v].type, a->m->sub[0], true) : NULL;
	if (!k)
		return -ENOMEM;
	c->score = got.score;
	c->count = (uint32_t)got.count;
	c->one = (struct pick){ e, (uint32_t)got.count, got.excl };
	pool_add(k, c);
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
	struct kind *k = pool_kind(a, p, type, a->m->sub[0], false);

	return k ? k->total : 0;
}

/* As many as needed, in order of weight (policies that stop on the first matches). */
static void explore_some(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
			 bool pristine, bool x, uint32_t shares, uint32_t depth, struct pool *into)
{
	const struct slu_match *m = a->m;
	struct tally small[8], *t = small;
	uint32_t types = 0;

	if (n > SLU_LEN(small))
		t = slu_arena_alloc(&a->m->tmp, n * sizeof *t);
	if (!t) {
		a->no_memory = true;
		return;
	}
	/* One tally per type: of several alike (or-slots) the last one says what a share is. */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < types && t[k].type != list[i].type)
			k++;
		types = SLU_MAX(types, k + 1);
		t[k] = (struct tally){ .type = list[i].type, .share = a->info[list[i].index].emax };
	}
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		uint32_t e = m->ord[k];
		uint16_t type = m->g->v.p[m->g->e.p[e].dst].type;
		bool skip = false, enough = true;

		for (uint32_t i = 0; i < types && !skip; i++)
			skip = t[i].type == type && t[i].done;
		if (skip || visit_edge(a, e, list, n, pristine, x, depth, into) < 0) {
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
			t[i].done = !t[i].share || t[i].shares >= shares;
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
			struct kind *k;
			struct cand *c;
			int64_t avail;

			if (m->g->e.p[e].subsystem != m->sub[s] ||
			    prune(a, v, s, list, n, x, &avail) < 0)
				continue;
			c = cand_new(a, 1);
			k = c ? pool_kind(a, into, m->g->v.p[v].type, m->sub[s], true) : NULL;
			if (!k)
				return;
			c->score = a->aux_score;
			c->count = (uint32_t)a->aux_count;
			c->one = (struct pick){ e, c->count, false };
			pool_add(k, c);
		}
}

static void explore(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		    bool pristine, bool x, uint32_t shares, uint32_t depth, struct pool *into)
{
	const struct slu_match *m = a->m;

	a->aux_score = -1;
	a->aux_count = 0;
	if (m->policy.stop) {
		explore_some(a, u, list, n, pristine, x, shares, depth, into);
		return;
	}
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1] && !a->no_memory; k++)
		visit_edge(a, m->kid[k], list, n, pristine, x, depth, into);
}

int visit_children(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		   bool pristine, bool x, uint32_t shares, struct pool *into)
{
	explore(a, u, list, n, pristine, x, shares, a->depth, into);
	return a->no_memory ? -ENOMEM : 0;
}

/* --- 7.5: slots --- */

/* How many shares of n units the sorted candidates make. */
static uint32_t count_shares(const struct kind *k, uint32_t n)
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
	struct kind *out;
	uint32_t avail = UINT32_MAX, *want, k;

	explore(a, u, slot->with, slot->nwith, false, true, a->info[slot->index].emax, depth, &own);
	if (a->no_memory)
		return;
	choose_all(a, &own, true);
	next = slu_arena_alloc(&m->tmp, slot->nwith * sizeof *next);
	want = slu_arena_alloc(&m->tmp, slot->nwith * sizeof *want);
	if (!next || !want) {
		a->no_memory = true;
		return;
	}
	for (k = 0; k < slot->nwith && avail; k++) {
		struct kind *kind = pool_kind(a, &own, slot->with[k].type, m->sub[0], false);
		int64_t q = kind ? kind->qualified : 0;

		want[k] = slu_count_select(&slot->with[k].count,
					   (uint32_t)SLU_MIN(q, (int64_t)UINT32_MAX));
		next[k] = kind ? kind->head : NULL;
		avail = kind ? SLU_MIN(avail, count_shares(kind, want[k])) : 0;
	}
	if (!avail)
		return;
	out = pool_kind(a, into, SLU_TYPE_SLOT, m->sub[0], true);
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
		s = cand_new(a, picks);
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
		pool_add(out, s);
	}
}

/* --- the visit --- */

static int put_label(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].type == a->m->g->v.p[u].type && list[i].label[0])
			return label_set(a->m, u, list[i].label);
	return 0;
}

static int visit(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
		 bool pristine, bool x, uint32_t depth, struct pool *up, struct answer *out)
{
	struct slu_match *m = a->m;
	uint16_t type = m->g->v.p[u].type;
	struct kind first[6];
	struct pool own = { first, 0, SLU_LEN(first) };
	struct class class;
	int64_t avail, mine;
	int rc;

	for (uint32_t i = 0; i < n; i++)
		x = x || (list[i].type == type && list[i].excl == SLU_EXCL_TRUE);
	class = classify(a, u, list, n, pristine);
	a->pre++;
	if (class.fit == FIT_NONE || depth >= DEPTH_MAX)
		return refuse(a, EBUSY);
	rc = prune(a, u, 0, list, n, x, &avail);
	if (rc < 0)
		return rc;
	rc = discover(a, u, &mine);
	if (rc < 0)
		return rc;
	if (m->colour)
		m->colour[u] = m->gen;
	if (class.fit == FIT_RESOURCE && !class.n && m->kid_off[u] == m->kid_off[u + 1] &&
	    m->nsub == 1) {
		/* A leaf of graph and request: nothing to explore, nothing to choose. */
		a->centre -= mine;
		if (!walk_score(m, u, a->centre, &out->score))
			return refuse(a, EBUSY);
		goto good;
	}
	if (class.fit == FIT_SLOT && m->flexible) {
		a->depth = depth + 1;
		rc = flex_slots(a, u, class.slot, class.nslot, &own);
	} else if (class.fit == FIT_SLOT) {
		slots(a, u, class.slot, depth + 1, &own);
	} else {
		explore(a, u, class.list, class.n, class.fit == FIT_SKIP, x, 1, depth + 1, &own);
		if (m->nsub > 1)
			explore_aux(a, u, class.list, class.n, x, &own);
	}
	if (a->no_memory)
		return -ENOMEM;
	a->centre -= mine;
	rc = finish(a, u, list, n, &own, &out->score);
	if (rc < 0)
		return rc;
	/* Below a score of 0 nothing counts. */
	if (out->score > 0 && !mark_chosen(a, &own))
		pool_append(a, up, &own);
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

/* --- 7.6: the choice for the whole request --- */

struct runs {
	int64_t *score;
	uint32_t n;
};

static int cmp_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Where the run of neighbouring scores that holds this one starts. */
static int64_t run_start(void *arg, int64_t score)
{
	const struct runs *r = arg; /* pairs: score, start of its run */
	uint32_t lo = 0, hi = r->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r->score[2 * mid] < score)
			lo = mid + 1;
		else
			hi = mid;
	}
	return r->score[2 * lo + 1];
}

static int make_runs(struct attempt *a, struct pool *own, uint32_t upto, struct runs *r)
{
	uint32_t n = 0, k = 0;
	int64_t *s;

	for (uint32_t i = 0; i <= upto; i++) {
		struct kind *kind = pool_kind(a, own, a->list[i].type, a->m->sub[0], false);

		n += kind ? kind->n : 0;
	}
	s = slu_arena_alloc(&a->m->tmp, (2 * (size_t)n + 2) * sizeof *s);
	if (!s)
		return -ENOMEM;
	for (uint32_t i = 0; i <= upto; i++) {
		struct kind *kind = pool_kind(a, own, a->list[i].type, a->m->sub[0], false);

		for (struct cand *c = kind ? kind->head : NULL; c; c = c->next)
			s[k++] = c->score;
	}
	qsort(s, k, sizeof *s, cmp_i64);
	n = 0;
	for (uint32_t i = 0; i < k; i++)
		if (!n || s[n - 1] != s[i])
			s[n++] = s[i];
	/* Spread to pairs from the back, then fill in the starts. */
	for (uint32_t i = n; i-- > 0;)
		s[2 * i] = s[i];
	for (uint32_t i = 0; i < n; i++)
		s[2 * i + 1] = i && s[2 * i - 2] == s[2 * i] - 1 ? s[2 * i - 1] : s[2 * i];
	*r = (struct runs){ s, n };
	return 0;
}

/* Mark the edges above what was chosen, for types nobody chose from. */
static void complete_upwards(struct attempt *a, struct pool *own, uint32_t edge)
{
	struct slu_match *m = a->m;
	uint32_t v = m->g->e.p[edge].src;

	for (uint32_t e = m->up[v], left = DEPTH_MAX; e != SLU_NONE && left; e = m->up[v], left--) {
		struct kind *k;

		if (m->mark[e].gen == m->gen)
			return;
		k = pool_kind(a, own, m->g->v.p[v].type, m->sub[0], false);
		if (k && !k->chosen)
			mark_put(m, e, m->g->v.p[v].size, false);
		v = m->g->e.p[e].src;
	}
}

static int decide(struct attempt *a, uint32_t root, struct pool *own, int64_t root_avail)
{
	struct slu_match *m = a->m;

	a->root_needs = 1;
	for (uint32_t i = 0; i < a->nlist; i++) {
		const struct slu_request *r = &a->list[i];
		struct kind *k = pool_kind(a, own, r->type, m->sub[0], false);
		int64_t q = k ? k->qualified : 0;
		uint32_t n = slu_count_select(&r->count, (uint32_t)SLU_MIN(q, (int64_t)UINT32_MAX));

		if (!n)
			return -ENODEV;
		if (m->policy.scorer == SCORE_LOCALITY) {
			struct runs runs;

			if (make_runs(a, own, i, &runs) < 0 ||
			    !sort_kind(a, k, true, run_start, &runs))
				return -ENOMEM;
			take_best(k, n);
		} else if (!choose(a, k, n, usual_order(a))) {
			return a->no_memory ? -ENOMEM : -ENODEV;
		}
		if (r->type == m->g->v.p[root].type) {
			a->root_needs = slu_count_select(&r->count, (uint32_t)root_avail);
			if (!a->root_needs)
				return -ENODEV;
		}
	}
	for (uint32_t i = 0; i < own->n; i++)
		if (own->k[i].qualified <= 0)
			return -ENODEV;
	for (uint32_t i = 0; i < own->n; i++) {
		const struct kind *k = &own->k[i];
		uint32_t left = k->best;

		if (!k->chosen)
			continue;
		for (const struct cand *c = k->head; c && left; c = c->next, left--)
			for (uint32_t j = 0; j < c->n; j++)
				mark_edge(a, &cand_picks(c)[j]);
	}
	for (uint32_t i = 0; i < own->n; i++) {
		const struct kind *k = &own->k[i];
		uint32_t left = k->best;

		if (!k->chosen)
			continue;
		for (const struct cand *c = k->head; c && left; c = c->next, left--)
			for (uint32_t j = 0; j < c->n; j++)
				complete_upwards(a, own, cand_picks(c)[j].edge);
	}
	return 0;
}

bool walk_above(struct attempt *a, uint32_t v)
{
	struct slu_match *m = a->m;

	for (uint32_t e = m->up[v]; e != SLU_NONE; e = m->up[v]) {
		int64_t avail;

		v = m->g->e.p[e].src;
		if (prune(a, v, 0, a->list, a->nlist, false, &avail) < 0)
			return false;
	}
	return true;
}

bool walk_visit(struct attempt *a, uint32_t v, int64_t centre, int64_t *count, struct pool *up)
{
	struct pool none = { 0 };
	struct answer got;

	a->centre = centre;
	if (visit(a, v, a->list, a->nlist, true, false, 1, up ? up : &none, &got) < 0)
		return false;
	*count = got.count;
	return true;
}

int attempt_run(struct attempt *a)
{
	struct slu_match *m = a->m;
	uint32_t root = m->g->root[m->sub[0]];
	struct pool own = { 0 };
	struct answer got;
	struct kind *k;
	struct cand *c;
	bool x = false;
	int rc;

	mark_tick(m);
	slu_arena_reset(&m->tmp);
	a->pre = a->post = 0;
	a->centre = 0;
	if (__builtin_add_overflow(a->at, a->duration, &a->end))
		a->end = INT64_MIN;
	rc = a->plain ? -EAGAIN : fast_attempt(a);
	a->fast = rc != -EAGAIN;
	if (a->fast)
		return rc;
	a->skip = NULL;
	if (m->policy.stop)
		fast_skip_begin(a);
	a->centre = 0;
	for (uint32_t i = 0; i < a->nlist; i++)
		x = x ||
		    (a->list[i].type == m->g->v.p[root].type && a->list[i].excl == SLU_EXCL_TRUE);
	rc = visit(a, root, a->list, a->nlist, true, x, 0, &own, &got);
	if (a->no_memory)
		return -ENOMEM;
	if (rc < 0)
		return -a->error;
	c = cand_new(a, 0);
	k = c ? pool_kind(a, &own, m->g->v.p[root].type, m->sub[0], true) : NULL;
	if (!k)
		return -ENOMEM;
	c->score = got.score;
	c->count = (uint32_t)got.count;
	pool_add(k, c);
	rc = decide(a, root, &own, got.count);
	if (rc < 0) {
		if (rc == -ENODEV)
			a->error = ENODEV;
		return rc;
	}
	a->root_excl = got.excl;
	return 0;
}
