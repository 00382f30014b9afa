/* explain.c — why a gang does not start now, who is in the way, and what would help. */
#include "base/buf.h"
#include "gang/gang_internal.h"

/* A request that may be varied. */
struct variant {
	struct slu_gang_req req;
	struct slu_gang_role role[SLU_ROLES_MAX];
};

static void variant_of(struct variant *v, const struct slu_gang_req *q)
{
	v->req = *q;
	memcpy(v->role, q->role, q->n_role * sizeof *q->role);
	v->req.role = v->role;
}

/* 1, 0 or an error. */
static int fits_now(struct slu_machine *m, const struct slu_gang_req *q)
{
	int rc = slu_gang_match(m, SLU_GANG_TRY, m->now, 0, q, NULL, NULL);

	return rc < 0 ? rc : rc == SLU_GANG_NOW;
}

/* ---- the limit ---- */

/* Slots of a role on nodes that are up, looking at the window given; `without`: a resource that is
 * thought to be plenty, or NONE. */
static int64_t slots_in(const struct plan *p, uint32_t r, int64_t end, unsigned flags,
			const struct need *need, uint32_t without, bool empty)
{
	const struct slu_machine *m = p->m;
	int64_t sum = 0;

	for (uint32_t pos = 0; pos < m->n_pos; pos++) {
		uint32_t node = m->order[pos];
		int64_t row[SLU_RESOURCES_MAX];

		if (!node_up(&m->node[node]) || !bit(p->role[r].fitmap->elig, pos))
			continue;
		if (empty)
			memcpy(row, m->total + (size_t)node * m->stride,
			       m->resource.n * sizeof *row);
		else
			slu_window(m, node, m->now, end, p->req->use, p->req->n_use, row);
		if (without != NONE)
			row[without] = SLU_AMOUNT_MAX;
		sum += need_fits(need, row, flags);
	}
	return sum;
}

/* Which resource is short: the one without which most would fit. */
static uint32_t short_resource(const struct plan *p, uint32_t r, int64_t end)
{
	const struct need *n = p->role[r].need;
	uint32_t resource = n->n ? n->a[0].resource : 0;
	int64_t most = -1;

	for (uint32_t i = 0; i < n->n; i++) {
		int64_t s = slots_in(p, r, end, p->role[r].flags, n, n->a[i].resource, false);

		if (s > most) {
			most = s;
			resource = n->a[i].resource;
		}
	}
	return resource;
}

static int role_limit(struct plan *p, uint32_t r, struct slu_gang_why *why)
{
	struct slu_machine *m = p->m;
	const struct need *n = p->role[r].need;
	unsigned flags = p->role[r].flags;
	int64_t end = later(m->now, p->duration), min = p->role[r].min;
	int64_t have = slots_in(p, r, end, flags, n, NONE, false);

	if (have >= min)
		return 0;
	why->role = r;
	why->want = min;
	why->have = have;
	if (slots_in(p, r, end, flags, n, NONE, true) < min) {
		why->limit = SLU_LIMIT_NODES;
		return 1;
	}
	if (slots_in(p, r, m->now + 1, flags, n, NONE, false) >= min) {
		why->limit = SLU_LIMIT_TIME;
		why->resource = short_resource(p, r, end);
		return 1;
	}
	if (flags & SLU_ROLE_EXCLUSIVE) {
		struct need *plain = slu_need_get(m, n->a, n->n, 0, false);
		int64_t s;

		if (!plain)
			return -ENOMEM;
		s = slots_in(p, r, end, flags, plain, NONE, false);
		slu_need_put(m, plain);
		if (s >= min) {
			why->limit = SLU_LIMIT_EXCLUSIVE;
			return 1;
		}
	}
	if (flags & SLU_ROLE_ALONE &&
	    slots_in(p, r, end, flags & ~(unsigned)SLU_ROLE_ALONE, n, NONE, false) >= min) {
		why->limit = SLU_LIMIT_ALONE;
		return 1;
	}
	why->limit = SLU_LIMIT_RESOURCE;
	why->resource = short_resource(p, r, end);
	return 1;
}

static int find_limit(struct plan *p, struct slu_gang_why *why)
{
	struct slu_machine *m = p->m;
	int rc = 0;

	if (p->req->begin_s > m->now) {
		why->limit = SLU_LIMIT_BEGIN;
		return 0;
	}
	if (p->req->deadline_s && later(m->now, p->duration) > p->req->deadline_s) {
		why->limit = SLU_LIMIT_DEADLINE;
		return 0;
	}
	for (uint32_t r = 0; r < p->n_role && !rc; r++)
		rc = role_limit(p, r, why);
	if (rc)
		return rc < 0 ? rc : 0;
	why->limit = p->req->flags & SLU_GANG_CLOSE_REQUIRED ? SLU_LIMIT_CLOSE : SLU_LIMIT_MIX;
	why->want = p->min;
	return 0;
}

/* ---- who holds it ---- */

static int64_t amount_of(const struct job *j, const struct part *q, uint32_t resource)
{
	const struct need *n = j->need[q->role];

	if (!resource)
		return q->slots;
	for (uint32_t i = 0; i < n->n; i++) {
		if (n->a[i].resource == resource)
			return slu_plus_sat(0, n->a[i].n, q->slots);
	}
	return n->per_part ? q->slots : 0;
}

/* Jobs on the nodes the limiting role could use, by what they hold of the resource.  For a limit in
 * time those that come later count, otherwise those that are there. */
static int find_holders(const struct plan *p, struct slu_gang_why *why)
{
	const struct slu_machine *m = p->m;
	bool coming = why->limit == SLU_LIMIT_TIME;
	int64_t end = later(m->now, p->duration);
	struct slu_map held = { 0 };
	int rc = 0;

	if (why->limit == SLU_LIMIT_BEGIN || why->limit == SLU_LIMIT_DEADLINE ||
	    why->limit == SLU_LIMIT_NODES)
		return 0;
	for (uint32_t pos = 0; pos < m->n_pos && !rc; pos++) {
		const struct node *v = &m->node[m->order[pos]];

		if (!node_up(v) || !bit(p->role[why->role].fitmap->elig, pos))
			continue;
		for (uint32_t i = 0; i < v->share.n && !rc; i++) {
			const struct job *j = &m->job[v->share.p[i].job];
			int64_t n = amount_of(j, &j->part[v->share.p[i].part], why->resource);
			uint64_t *sum;

			if (j->counted == coming || (coming && j->start >= end) || !n)
				continue;
			sum = slu_map_get(&held, v->share.p[i].job);
			if (sum)
				*sum += (uint64_t)n;
			else
				rc = slu_map_put(&held, v->share.p[i].job, (uint64_t)n);
		}
	}
	for (uint32_t i = 0; i < held.n && !rc; i++) {
		const struct job *j = &m->job[held.e[i].key];
		struct slu_gang_holder h = { j->id, j->start, j->end, (int64_t)held.e[i].val };
		uint32_t k = why->n_holder;

		while (k &&
		       (why->holder[k - 1].amount < h.amount ||
			(why->holder[k - 1].amount == h.amount && why->holder[k - 1].job > h.job)))
			k--;
		if (k == SLU_WHY_HOLDERS)
			continue;
		if (why->n_holder < SLU_WHY_HOLDERS)
			why->n_holder++;
		memmove(&why->holder[k + 1], &why->holder[k],
			(why->n_holder - k - 1) * sizeof why->holder[0]);
		why->holder[k] = h;
	}
	slu_map_done(&held);
	return rc;
}

/* ---- what would help ---- */

/* The largest size at which it fits now, every role cut alike but not below one slot. */
static int fewer(struct plan *p, struct slu_gang_why *why)
{
	uint32_t lo = 0, hi = p->min;
	struct variant v;

	variant_of(&v, p->req);
	v.req.min = v.req.max = 0;
	while (lo + 1 < hi) {
		uint32_t mid = lo + (hi - lo) / 2, sum = 0;
		int rc;

		for (uint32_t r = 0; r < p->n_role; r++) {
			uint32_t was = p->role[r].min;

			v.role[r].min = (uint32_t)((uint64_t)was * mid / p->min);
			if (was && !v.role[r].min)
				v.role[r].min = 1;
			v.role[r].max = v.role[r].min;
			sum += v.role[r].min;
		}
		rc = sum < p->min ? fits_now(p->m, &v.req) : 0;
		if (rc < 0)
			return rc;
		if (rc) {
			lo = mid;
			why->fewer_slots = sum;
		} else {
			hi = mid;
		}
	}
	why->slots_now = why->fewer_slots;
	return 0;
}

/* The longest duration with which it fits now. */
static int shorter(struct plan *p, struct slu_gang_why *why)
{
	const struct slu_machine *m = p->m;
	int64_t lo = 0, hi = p->duration;
	struct variant v;

	variant_of(&v, p->req);
	/* `hi` does not fit: beyond the last start a longer duration changes nothing, and the
	 * deadline is fixed. */
	if (v.req.deadline_s)
		hi = SLU_MIN(hi, v.req.deadline_s - m->now + 1);
	else if (!m->starts.n)
		return 0;
	else
		hi = SLU_MIN(hi, m->starts.p[m->starts.n - 1].t - m->now + 1);
	while (lo + 1 < hi) {
		int64_t mid = lo + (hi - lo) / 2;
		int rc;

		v.req.duration_s = mid;
		rc = fits_now(p->m, &v.req);
		if (rc < 0)
			return rc;
		if (rc)
			lo = mid;
		else
			hi = mid;
	}
	why->shorter_s = lo;
	return 0;
}

static int looser(struct plan *p, struct slu_gang_why *why)
{
	struct variant v;
	int rc;

	if (!(p->req->flags & SLU_GANG_CLOSE_REQUIRED))
		return 0;
	variant_of(&v, p->req);
	v.req.flags &= ~(unsigned)SLU_GANG_CLOSE_REQUIRED;
	rc = fits_now(p->m, &v.req);
	if (rc > 0)
		why->without_close = true;
	return rc < 0 ? rc : 0;
}

/* ---- in words ---- */

static void say_limit(const struct plan *p, const struct slu_gang_why *why, struct slu_buf *b)
{
	const struct slu_machine *m = p->m;
	char buf[32];
	const char *role = slu_role_name(p->req, why->role, buf);

	switch (why->limit) {
	case SLU_LIMIT_BEGIN:
		slu_buf_printf(b, "may not start before %" PRId64, p->req->begin_s);
		return;
	case SLU_LIMIT_DEADLINE:
		slu_buf_printf(b, "cannot end by %" PRId64 " if it starts now", p->req->deadline_s);
		return;
	case SLU_LIMIT_CLOSE:
		slu_buf_printf(b, "no %s has room for the whole gang",
			       m->level_name.p[p->req->level]);
		return;
	case SLU_LIMIT_MIX:
		slu_buf_puts(b, "each role fits, but not all of them together");
		return;
	default:
		break;
	}
	slu_buf_printf(b, "role %s: %" PRId64 " slots requested, %" PRId64 " fit now; ", role,
		       why->want, why->have);
	if (why->limit == SLU_LIMIT_NODES)
		slu_buf_puts(b, "the eligible nodes that are up hold no more, even when empty");
	else if (why->limit == SLU_LIMIT_TIME)
		slu_buf_puts(b,
			     "there is room, but it is promised to others before this would end");
	else if (why->limit == SLU_LIMIT_EXCLUSIVE)
		slu_buf_puts(b, "too few nodes are empty");
	else if (why->limit == SLU_LIMIT_ALONE)
		slu_buf_puts(b, "there is room, but not on enough different nodes");
	else
		slu_buf_printf(b, "not enough %s", m->resource.p[why->resource]);
}

static void say_holders(const struct slu_gang_why *why, struct slu_buf *b)
{
	for (uint32_t i = 0; i < why->n_holder && i < 3; i++) {
		const struct slu_gang_holder *h = &why->holder[i];

		slu_buf_printf(b, "%s job %" PRIu64, i ? "," : "; held by", h->job);
		if (why->limit == SLU_LIMIT_TIME)
			slu_buf_printf(b, " from %" PRId64, h->start_s);
		else if (h->end_s != SLU_FOREVER)
			slu_buf_printf(b, " until %" PRId64, h->end_s);
	}
	if (why->n_holder > 3)
		slu_buf_puts(b, " and others");
}

static int say_why(const struct plan *p, struct slu_gang_why *why)
{
	struct slu_buf b = SLU_BUF_INIT(4096);
	const char *sep = "; would start now with ";
	int rc;

	say_limit(p, why, &b);
	say_holders(why, &b);
	if (why->answer == SLU_GANG_LATER)
		slu_buf_printf(&b, "; earliest start %" PRId64, why->start_s);
	if (why->fewer_slots) {
		slu_buf_printf(&b, "%s%u slots", sep, why->fewer_slots);
		sep = ", or with ";
	}
	if (why->shorter_s) {
		slu_buf_printf(&b, "%sa limit of %" PRId64 " s", sep, why->shorter_s);
		sep = ", or with ";
	}
	if (why->without_close)
		slu_buf_printf(&b, "%sits slots in several %ss", sep,
			       p->m->level_name.p[p->req->level]);
	rc = b.error;
	snprintf(why->text.text, sizeof why->text.text, "%s", slu_buf_str(&b));
	slu_buf_done(&b);
	return rc == -ENOMEM ? rc : 0;
}

int slu_gang_explain(struct slu_machine *m, int64_t now_s, const struct slu_gang_req *req,
		     struct slu_gang_why *out, struct slu_error *err)
{
	slu_cleanup(slu_freep) struct slu_gang_why *why = slu_calloc(1, sizeof *why);
	struct slu_gang_place place = { 0 };
	struct plan p = { .n_role = 0, .m = m };
	int rc;

	if (!why)
		return -ENOMEM;
	rc = slu_gang_match(m, SLU_GANG_TRY_LATER, now_s, 0, req, &place, err);
	if (rc < 0)
		goto out;
	why->answer = (enum slu_gang_answer)rc;
	why->start_s = place.start_s;
	if (rc == SLU_GANG_NOW) {
		why->slots_now = place.slots;
		snprintf(why->text.text, sizeof why->text.text, "fits now");
		rc = 0;
	} else if (rc == SLU_GANG_NEVER) {
		rc = slu_gang_satisfiable(m, req, &why->text);
		why->limit = SLU_LIMIT_NODES;
		rc = rc < 0 ? rc : 0;
	} else {
		rc = slu_plan_make(m, req, &p, err);
		if (!rc)
			rc = slu_plan_fitmaps(&p);
		if (!rc)
			rc = find_limit(&p, why);
		if (!rc)
			rc = find_holders(&p, why);
		if (!rc && why->limit != SLU_LIMIT_BEGIN && why->limit != SLU_LIMIT_DEADLINE)
			rc = fewer(&p, why);
		if (!rc && why->limit != SLU_LIMIT_BEGIN)
			rc = shorter(&p, why);
		if (!rc)
			rc = looser(&p, why);
		if (!rc)
			rc = say_why(&p, why);
	}
	if (!rc)
		*out = *why;
out:
	slu_plan_done(&p);
	slu_gang_place_done(&place);
	return rc;
}
