/* fit.c — what a request needs, and whether a vertex can serve it. */
#include "match/allowed.h"
#include "match/walk_internal.h"

/* --- what a request needs below each of its nodes --- */

bool match_is_slot(const struct attempt *a, const struct slu_request *r)
{
	return r->type == SLU_TYPE_SLOT || (a->m->flexible && r->type == SLU_TYPE_XOR_SLOT);
}

/* Sums of needs stop at the largest number, which no vertex has. */
static int64_t sum_capped(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t product_capped(uint32_t n, int64_t x)
{
	int64_t r;

	return __builtin_mul_overflow((int64_t)n, x, &r) ? INT64_MAX : r;
}

static void add_need(struct reqinfo *to, uint32_t type, int64_t n)
{
	to->needs[type] = sum_capped(to->needs[type], n);
	to->has[type] = to->any = true;
}

/* What all alternatives need in common (flexible traverser): the least of each type, and nothing
 * of a type that one of them does not name. */
static void least_needs(const struct slu_match *m, struct reqinfo *to, const struct reqinfo *from,
			uint32_t count)
{
	for (uint32_t t = 0; t < m->prune.n; t++) {
		int64_t n = from->has[t] ? product_capped(count, from->needs[t]) : 0;

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
		if (m->flexible && match_is_slot(a, c)) {
			least_needs(m, to, from, c->count.min);
			continue;
		}
		for (uint32_t t = 0; t < m->prune.n; t++)
			if (from->has[t])
				add_need(to, t, product_capped(c->count.min, from->needs[t]));
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

int match_attempt_prepare(struct attempt *a, struct slu_match *m, const struct slu_jobspec *spec)
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

/* --- what is this vertex to the request? --- */

bool match_kid_types_fit(const struct slu_match *m, uint32_t u, const struct slu_request *slot)
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

static const struct slu_request *slot_in(const struct attempt *a, const struct slu_request *list,
					 uint32_t n)
{
	const struct slu_request *slot = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (match_is_slot(a, &list[i]))
			slot = &list[i];
	return slot;
}

static void siblings(struct attempt *a, uint16_t type)
{
	slu_buf_printf(&a->m->msg, "test: siblings in jobspec request same resource type : %s.\n",
		       slu_graph_type_name(a->m->g, type));
}

struct part match_part_of(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
			  bool pristine)
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
				return (struct part){ 0 };
			}
			found = true;
			match = r;
			slot = slot_in(a, r->with, r->nwith);
			if (slot) {
				alts = r->with;
				nalts = r->nwith;
			}
		} else if (match_is_slot(a, r)) {
			if (m->flexible ? match != NULL : found) {
				siblings(a, type);
				return (struct part){ 0 };
			}
			found = true;
			slot = r;
			alts = list;
			nalts = n;
		}
	}
	if (slot && !m->flexible && match_kid_types_fit(m, u, slot))
		return (struct part){ FIT_SLOT, slot->with, slot->nwith, slot, 1 };
	if (slot && m->flexible) {
		/* Any sibling of the slots is accepted, even one that asks for nothing below it. */
		for (uint32_t i = 0; i < nalts; i++)
			if (!alts[i].nwith || match_kid_types_fit(m, u, &alts[i]))
				return (struct part){ FIT_SLOT, NULL, 0, alts, nalts };
		match = NULL;
	}
	if (match)
		return (struct part){ FIT_RESOURCE, match->with, match->nwith, NULL, 0 };
	if (pristine)
		return (struct part){ FIT_SKIP, list, n, NULL, 0 };
	return (struct part){ 0 };
}

/* --- can it be? --- */

int match_refuse(struct attempt *a, int error)
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
		return match_refuse(a, EINVAL);
	}
	if (!x && r->excl != SLU_EXCL_TRUE)
		return 0;
	if (a->at == a->now && (a->mode == MODE_ALLOCATE || a->mode == MODE_WITHOUT) &&
	    match_led_any(&m->led, u, LED_HELD))
		return match_refuse(a, EBUSY);
	if (!match_led_untouched(&m->led, u, a->at, a->end))
		return match_refuse(a, EBUSY);
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

int match_prune(struct attempt *a, uint32_t u, uint32_t s, const struct slu_request *list,
		uint32_t n, bool x, int64_t *avail)
{
	struct slu_match *m = a->m;
	const struct slu_vertex *v = &m->g->v.p[u];
	const struct slu_multi *mu = m->multi[(size_t)s * m->nv + u];
	bool slots_fit = true;

	if (v->status != SLU_UP && a->mode != MODE_SATISFY)
		return match_refuse(a, EBUSY);
	if (a->constraint && (v->type == SLU_TYPE_NODE || v->type == SLU_TYPE_STORAGE_NODE) &&
	    !slu_constraint_match(a->constraint, m->g, u))
		return match_refuse(a, EBUSY);
	if (a->end < a->at) {
		slu_buf_printf(&m->msg,
			       "by_avail: planner_avail_resources_during returned -1.\n%s.\n",
			       strerror(ERANGE));
		return match_refuse(a, ERANGE);
	}
	*avail = match_led_avail(&m->led, u, v->size, a->at, a->end);
	if (*avail <= 0)
		return match_refuse(a, EBUSY);
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_request *r = &list[i];
		const struct reqinfo *info = &a->info[r->index];
		bool slot = match_is_slot(a, r);
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
			return match_refuse(a, EBUSY);
	}
	return slots_fit ? 0 : match_refuse(a, EBUSY);
}
