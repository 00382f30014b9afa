/* plan.c — requests checked and put into the machine's terms. */
#include "gang/gang_internal.h"

/* Of the search for a way to fit several roles together, per request: some milliseconds. */
#define SEARCH_STEPS 100000

const char *const slu_gang_policy_names[SLU_GANG_POLICIES + 1] = {
	[SLU_GANG_FIRST] = "first",       [SLU_GANG_LOW] = "low",
	[SLU_GANG_HIGH] = "high",         [SLU_GANG_LONODE] = "lonode",
	[SLU_GANG_HINODE] = "hinode",     [SLU_GANG_FIRSTNODEX] = "firstnodex",
	[SLU_GANG_LONODEX] = "lonodex",   [SLU_GANG_HINODEX] = "hinodex",
	[SLU_GANG_LOCALITY] = "locality", [SLU_GANG_PACK] = "pack",
	[SLU_GANG_SPREAD] = "spread",
};

int slu_gang_policy_find(const char *name)
{
	for (int i = 0; i < SLU_GANG_POLICIES; i++) {
		if (!strcmp(slu_gang_policy_names[i], name))
			return i;
	}
	return -EINVAL;
}

const char *slu_gang_policy_name(enum slu_gang_policy p)
{
	return slu_gang_policy_names[p];
}

void slu_gang_place_done(struct slu_gang_place *p)
{
	slu_free(p->part);
	*p = (struct slu_gang_place){ 0 };
}

static const char *role_label(const struct slu_gang_role *r, uint32_t i, char buf[32])
{
	if (r->name)
		return r->name;
	snprintf(buf, 32, "%u", i);
	return buf;
}

static int check_needs(const struct slu_machine *m, const struct slu_gang_role *r, uint32_t i,
		       struct slu_error *err)
{
	uint32_t seen = 0;
	char buf[32];

	for (uint32_t k = 0; k < r->n_need; k++) {
		const struct slu_amount *a = &r->need[k];

		if (!a->resource || a->resource >= m->resource.n)
			return slu_fail(err, -EINVAL, "role %s: there is no resource %u",
					role_label(r, i, buf), a->resource);
		if (seen >> a->resource & 1)
			return slu_fail(err, -EINVAL, "role %s: %s is given twice",
					role_label(r, i, buf), m->resource.p[a->resource]);
		seen |= 1u << a->resource;
		if (a->n < 0 || a->n > SLU_AMOUNT_MAX)
			return slu_fail(err, -EINVAL,
					"role %s: %s %" PRId64 " is outside 0..%" PRId64,
					role_label(r, i, buf), m->resource.p[a->resource], a->n,
					SLU_AMOUNT_MAX);
	}
	return 0;
}

int slu_role_check(const struct slu_machine *m, const struct slu_gang_role *r, uint32_t i,
		   struct slu_error *err)
{
	char buf[32];

	if (r->flags & ~(unsigned)(SLU_ROLE_ALONE | SLU_ROLE_EXCLUSIVE | SLU_ROLE_APART))
		return slu_fail(err, -EINVAL, "role %s: unknown flags", role_label(r, i, buf));
	return check_needs(m, r, i, err);
}

/* Sizes of the roles and of the whole. */
static int check_sizes(const struct slu_gang_req *q, struct plan *p, struct slu_error *err)
{
	uint64_t min = 0, max = 0;
	char buf[32];

	for (uint32_t i = 0; i < q->n_role; i++) {
		const struct slu_gang_role *r = &q->role[i];
		struct plan_role *x = &p->role[i];

		x->min = r->min;
		x->max = r->max ? r->max : r->min;
		if (x->max < x->min)
			return slu_fail(err, -EINVAL, "role %s: at least %u but at most %u slots",
					role_label(r, i, buf), x->min, x->max);
		min += x->min;
		max += x->max;
	}
	if (!max)
		return slu_fail(err, -EINVAL, "the gang has no slots");
	if (max > SLU_SLOTS_MAX)
		return slu_fail(err, -EINVAL, "%" PRIu64 " slots are more than %u", max,
				SLU_SLOTS_MAX);
	p->min = q->min ? q->min : (uint32_t)min;
	p->max = q->max ? q->max : (uint32_t)max;
	p->min = SLU_MAX(p->min, (uint32_t)min);
	p->max = SLU_MIN(p->max, (uint32_t)max);
	if (p->min > p->max || p->max < min)
		return slu_fail(err, -EINVAL,
				"the gang asks for %u to %u slots, its roles for %" PRIu64
				" to %" PRIu64,
				q->min, q->max, min, max);
	if (q->n_role == 1) {
		p->role[0].min = p->min;
		p->role[0].max = p->max;
	}
	return 0;
}

static int check_times(const struct slu_gang_req *q, struct slu_error *err)
{
	if (q->duration_s < 0 || q->begin_s < 0 || q->deadline_s < 0)
		return slu_fail(err, -EINVAL, "times must not be negative");
	if (!q->deadline_s)
		return 0;
	if (!q->duration_s)
		return slu_fail(err, -EINVAL, "a job without limit cannot have a deadline");
	if (later(q->begin_s, q->duration_s) > q->deadline_s)
		return slu_fail(err, -EINVAL,
				"%" PRId64 " s from %" PRId64 " on do not end by %" PRId64,
				q->duration_s, q->begin_s, q->deadline_s);
	return 0;
}

/* Roles that share no node, both ways; a role apart from itself is alone. */
static int set_apart(const struct slu_gang_req *q, struct plan *p, struct slu_error *err)
{
	char buf[32];

	for (uint32_t i = 0; i < q->n_role; i++)
		p->role[i].apart = 0;
	for (uint32_t i = 0; i < q->n_role; i++) {
		const struct slu_gang_role *r = &q->role[i];

		if (!(r->flags & SLU_ROLE_APART))
			continue;
		if (q->n_role < SLU_ROLES_MAX && r->apart >> q->n_role)
			return slu_fail(err, -EINVAL,
					"role %s is kept apart from a role that is not there",
					role_label(r, i, buf));
		for (uint64_t b = r->apart; b; b &= b - 1) {
			uint32_t other = (uint32_t)__builtin_ctzll(b);

			p->role[i].apart |= UINT64_C(1) << other;
			p->role[other].apart |= UINT64_C(1) << i;
		}
	}
	return 0;
}

int slu_plan_make(struct slu_machine *m, const struct slu_gang_req *q, struct plan *p,
		  struct slu_error *err)
{
	const uint32_t n_role = q->n_role;
	int rc;

	p->m = m;
	p->req = q;
	p->n_role = 0;
	p->empty = p->close = false;
	p->steps = SEARCH_STEPS;
	if (!n_role || n_role > SLU_ROLES_MAX)
		return slu_fail(err, -EINVAL, "a gang has 1 to %u roles, not %u", SLU_ROLES_MAX,
				n_role);
	if (q->level < -1 || q->level >= (int)m->level_name.n)
		return slu_fail(err, -EINVAL, "there is no level %d", q->level);
	if (q->level < 0 && q->flags & SLU_GANG_CLOSE_REQUIRED)
		return slu_fail(err, -EINVAL, "closeness is required, but no level is named");
	if ((unsigned)q->policy >= SLU_GANG_POLICIES)
		return slu_fail(err, -EINVAL, "there is no policy %d", (int)q->policy);
	if (q->n_use > SLU_BLOCKS_USED_MAX)
		return slu_fail(err, -EINVAL, "a job may use %u blocks, not %u",
				SLU_BLOCKS_USED_MAX, q->n_use);
	rc = check_times(q, err);
	if (rc < 0)
		return rc;
	rc = check_sizes(q, p, err);
	if (rc < 0)
		return rc;
	rc = set_apart(q, p, err);
	if (rc < 0)
		return rc;
	p->policy = q->policy;
	p->duration = q->duration_s ? q->duration_s : SLU_FOREVER;
	for (uint32_t i = 0; i < n_role; i++) {
		const struct slu_gang_role *r = &q->role[i];
		struct plan_role *x = &p->role[i];

		rc = slu_role_check(m, r, i, err);
		if (rc < 0)
			return rc;
		x->flags = r->flags & ~(unsigned)SLU_ROLE_APART;
		if (x->apart >> i & 1)
			x->flags |= SLU_ROLE_ALONE;
		x->apart &= ~(UINT64_C(1) << i);
		if (q->policy == SLU_GANG_FIRSTNODEX || q->policy == SLU_GANG_LONODEX ||
		    q->policy == SLU_GANG_HINODEX)
			x->flags |= SLU_ROLE_EXCLUSIVE;
		x->need = slu_need_get(m, r->need, r->n_need, x->flags, false);
		if (!x->need)
			return -ENOMEM;
		p->n_role = i + 1;
	}
	if (slu_order_make(m) < 0)
		return -ENOMEM;
	return slu_scratch_make(m, p->n_role);
}

void slu_plan_done(struct plan *p)
{
	for (uint32_t i = 0; i < p->n_role; i++)
		slu_need_put(p->m, p->role[i].need);
	p->n_role = 0;
}

int slu_plan_fitmaps(struct plan *p)
{
	for (uint32_t i = 0; i < p->n_role; i++) {
		p->role[i].fitmap = slu_fitmap_get(p->m, p->role[i].need, p->role[i].flags,
						   p->req->role[i].nodes, p->req->nodes);
		if (!p->role[i].fitmap)
			return -ENOMEM;
	}
	return 0;
}
