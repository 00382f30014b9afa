/* life.c — book work that exists already, and change or end bookings. */
#include "gang/gang_internal.h"

/* Needs of the roles of a booking; the caller puts back `got` of them when this fails. */
static int needs(struct slu_machine *m, const struct slu_gang_role *role, uint32_t n,
		 bool background, struct need **out, uint32_t *got, struct slu_error *err)
{
	*got = 0;
	if (n > SLU_ROLES_MAX)
		return slu_fail(err, -EINVAL, "a job has at most %u roles, not %u", SLU_ROLES_MAX,
				n);
	for (uint32_t r = 0; r < n; r++) {
		int rc = slu_role_check(m, &role[r], r, err);

		if (rc < 0)
			return rc;
		out[r] = slu_need_get(m, role[r].need, role[r].n_need, role[r].flags, background);
		if (!out[r])
			return -ENOMEM;
		*got = r + 1;
	}
	return 0;
}

static int booking_parts(struct slu_machine *m, const struct slu_gang_booking *b, struct part **out,
			 struct slu_error *err)
{
	slu_cleanup(slu_freep) struct part *part = slu_malloc(SLU_MAX(b->n_part, 1u) *
							      sizeof *part);
	uint64_t slots = 0;

	if (!part)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_part; i++) {
		const struct slu_gang_part *q = &b->part[i];
		int node = slu_node_slot(m, q->node);

		if (node < 0)
			return slu_fail(err, -ENOENT, "job %" PRIu64 ": part %u is on no node",
					b->job, i);
		if (q->role >= b->n_role || !q->slots)
			return slu_fail(err, -EINVAL, "job %" PRIu64 ": part %u has %s", b->job, i,
					q->slots ? "no such role" : "no slots");
		slots += q->slots;
		part[i] =
			(struct part){ .node = (uint32_t)node, .role = q->role, .slots = q->slots };
	}
	if (slots > SLU_SLOTS_MAX)
		return slu_fail(err, -EINVAL, "job %" PRIu64 ": more than %u slots", b->job,
				SLU_SLOTS_MAX);
	*out = slu_take(part);
	return 0;
}

/* Work that exists is booked whether it fits or not.  No node is overbooked so far that what is free
 * there is no number any more: half of the numbers below 0 for what is booked, half for one booking. */
static int booking_counts(const struct slu_machine *m, struct need *const *need,
			  const struct part *part, uint32_t n_part, struct slu_error *err)
{
	int64_t sum[SLU_RESOURCES_MAX] = { 0 };

	for (uint32_t i = 0; i < n_part; i++) {
		const struct need *n = need[part[i].role];
		const int64_t *row = row_free(m, part[i].node);

		for (uint32_t k = 0; k < n->n; k++) {
			uint32_t resource = n->a[k].resource;

			sum[resource] = slu_plus_sat(sum[resource], n->a[k].n, part[i].slots);
			if (row[resource] < INT64_MIN / 2 || sum[resource] > INT64_MAX / 2)
				return slu_fail(
					err, -ERANGE,
					"node \"%s\": more %s is booked than can be counted",
					m->node[part[i].node].name, m->resource.p[resource]);
		}
	}
	return 0;
}

int slu_gang_register(struct slu_machine *m, int64_t now_s, const struct slu_gang_booking *b,
		      struct slu_error *err)
{
	slu_cleanup(slu_freep) struct part *part = NULL;
	struct need *need[SLU_ROLES_MAX];
	uint32_t n_need = 0;
	struct job *j;
	int rc;

	if (slu_job_find(m, b->job))
		return slu_fail(err, -EEXIST, "job %" PRIu64 " is booked already", b->job);
	if (b->end_s <= b->start_s)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " ends before it starts", b->job);
	rc = booking_parts(m, b, &part, err);
	if (!rc)
		rc = needs(m, b->role, b->n_role, b->flags & SLU_BOOK_BACKGROUND, need, &n_need,
			   err);
	if (!rc) {
		slu_machine_advance(m, now_s);
		rc = booking_counts(m, need, part, b->n_part, err);
	}
	if (!rc)
		rc = slu_job_make(m, b->job, b->n_role, need, NULL, 0, &j);
	if (!rc)
		rc = slu_job_book(
			m, j, b->flags & SLU_BOOK_RESERVED ? SLU_GANG_RESERVED : SLU_GANG_RUNNING,
			b->start_s, b->end_s, part, b->n_part);
	if (!rc)
		m->odd = true; /* the caller did not ask whether the booking fits */
	while (rc < 0 && n_need > 0)
		slu_need_put(m, need[--n_need]);
	return rc;
}

int slu_gang_block_add(struct slu_machine *m, int64_t now_s, const struct slu_gang_block *b,
		       struct slu_error *err)
{
	const struct slu_gang_role role = { .need = b->amount,
					    .n_need = b->n_amount,
					    .flags = b->n_amount ? 0 : SLU_ROLE_EXCLUSIVE };
	slu_cleanup(slu_freep) struct part *part = NULL;
	struct need *need = NULL;
	uint32_t n = 0, got;
	struct job *j;
	int rc;

	if (slu_job_find(m, b->id))
		return slu_fail(err, -EEXIST, "%" PRIu64 " is booked already", b->id);
	if (b->to_s <= b->from_s || b->to_s <= now_s)
		return slu_fail(err, -EINVAL, "block %" PRIu64 " ends before it begins", b->id);
	if (!b->nodes)
		return slu_fail(err, -EINVAL, "block %" PRIu64 " names no nodes", b->id);
	part = slu_malloc(SLU_MAX(m->n_slot, 1u) * sizeof *part);
	if (!part)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_slot; i++) {
		if (m->node[i].name && slu_nodeset_has(b->nodes, i))
			part[n++] = (struct part){ .node = i, .slots = 1 };
	}
	if (!n)
		return slu_fail(err, -EINVAL, "block %" PRIu64 " names no nodes", b->id);
	rc = needs(m, &role, 1, b->n_amount, &need, &got, err);
	if (rc < 0)
		return rc;
	slu_machine_advance(m, now_s);
	rc = slu_job_make(m, b->id, 1, &need, NULL, 0, &j);
	if (!rc)
		rc = slu_job_book(m, j, SLU_GANG_BLOCK, b->from_s, b->to_s, part, n);
	if (rc < 0)
		slu_need_put(m, need);
	return rc;
}

int slu_gang_regain(struct slu_machine *m, int64_t now_s, uint64_t job,
		    const struct slu_gang_part *part, uint32_t n_part, struct slu_error *err)
{
	slu_cleanup(slu_freep) struct part *own = NULL;
	struct job *j = slu_job_find(m, job);
	struct slu_gang_booking b = { .job = job, .part = part, .n_part = n_part };
	int rc;

	if (!j)
		return slu_fail(err, -ENOENT, "there is no job %" PRIu64, job);
	if (j->state != SLU_GANG_RUNNING)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " does not run", job);
	b.n_role = j->n_role;
	rc = booking_parts(m, &b, &own, err);
	if (rc < 0)
		return rc;
	slu_machine_advance(m, now_s);
	rc = booking_counts(m, j->need, own, n_part, err);
	if (!rc)
		rc = slu_job_extend(m, j, own, n_part);
	if (rc < 0)
		return rc;
	m->odd = true; /* the caller did not ask whether it fits */
	m->version++;
	return 0;
}

int64_t slu_gang_release(struct slu_machine *m, uint64_t job, uint32_t role, slu_node node,
			 uint32_t slots)
{
	int64_t left = slu_gang_give_back(m, job, role, node, slots);

	if (!left)
		slu_job_drop(m, slu_job_find(m, job));
	return left;
}

int64_t slu_gang_give_back(struct slu_machine *m, uint64_t job, uint32_t role, slu_node node,
			   uint32_t slots)
{
	struct job *j = slu_job_find(m, job);
	int v = slu_node_slot(m, node);
	uint32_t have = 0;

	if (!j || v < 0)
		return -ENOENT;
	for (uint32_t i = 0; i < m->node[v].share.n; i++) {
		const struct share *s = &m->node[v].share.p[i];

		if (&m->job[s->job] == j && j->part[s->part].role == role)
			have += j->part[s->part].slots;
	}
	if (!have)
		return -ENOENT;
	if (!slots || slots > have)
		return -EINVAL;
	for (uint32_t i = j->n_part; i-- > 0 && slots;) {
		struct part *p = &j->part[i];
		uint32_t k;

		if (p->node != (uint32_t)v || p->role != role)
			continue;
		k = SLU_MIN(p->slots, slots);
		slots -= k;
		slu_job_reduce(m, j, i, k);
	}
	return j->slots;
}

/* Fill `place` for `slots` slots of the job, with room for all its parts and none in it. */
static int place_begin(struct slu_gang_place *place, const struct job *j, uint32_t slots)
{
	if (place->cap < j->n_part &&
	    slu_vec_grow((void **)&place->part, &place->cap, j->n_part, sizeof *place->part) < 0)
		return -ENOMEM;
	place->start_s = j->start;
	place->end_s = j->end;
	place->slots = slots;
	place->close = 0;
	place->n = 0;
	return 0;
}

int slu_gang_shrink(struct slu_machine *m, uint64_t job, uint32_t role, uint32_t slots,
		    struct slu_gang_place *place)
{
	struct job *j = slu_job_find(m, job);
	uint64_t have = 0;

	if (!j)
		return -ENOENT;
	for (uint32_t i = 0; i < j->n_part; i++)
		have += j->part[i].role == role ? j->part[i].slots : 0;
	if (!slots || slots > have)
		return -EINVAL;
	if (place && place_begin(place, j, slots) < 0)
		return -ENOMEM;
	for (uint32_t i = j->n_part; i-- > 0 && slots;) {
		const struct part *p = &j->part[i];
		uint32_t k = SLU_MIN(p->slots, slots);

		if (p->role != role)
			continue;
		if (place)
			place->part[place->n++] = (struct slu_gang_part){
				.node = slu_machine_node_at(m, p->node), .role = role, .slots = k
			};
		slots -= k;
		slu_job_reduce(m, j, i, k);
	}
	if (!j->n_part)
		slu_job_drop(m, j);
	return 0;
}

int slu_gang_info(const struct slu_machine *m, uint64_t job, struct slu_gang_info *info,
		  struct slu_gang_place *place)
{
	const struct job *j = slu_job_find(m, job);

	if (!j)
		return -ENOENT;
	if (place) {
		if (place_begin(place, j, j->slots) < 0)
			return -ENOMEM;
		place->n = j->n_part;
		for (uint32_t i = 0; i < j->n_part; i++)
			place->part[i] = (struct slu_gang_part){ .node = slu_machine_node_at(
									 m, j->part[i].node),
								 .role = j->part[i].role,
								 .slots = j->part[i].slots };
	}
	*info = (struct slu_gang_info){ .job = job,
					.state = j->state,
					.start_s = j->start,
					.end_s = j->end,
					.slots = j->slots,
					.counted = j->counted };
	return 0;
}
