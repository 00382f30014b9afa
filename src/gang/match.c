/* match.c — the operations on gangs: answer, then book. */
#include "base/qty.h"
#include "gang/gang_internal.h"

/* Room in the caller's placement for the parts found, so that hand_out() cannot fail. */
static int place_room(const struct slu_machine *m, struct slu_gang_place *place)
{
	if (!place || place->cap >= m->s.out.n)
		return 0;
	return slu_vec_grow((void **)&place->part, &place->cap, m->s.out.n, sizeof *place->part);
}

/* The parts found (nodes by now) as the caller's placement. */
static void hand_out(const struct plan *p, int64_t start, int64_t end, struct slu_gang_place *place)
{
	const struct slu_machine *m = p->m;
	const struct scratch *s = &m->s;

	if (!place)
		return;
	place->start_s = start;
	place->end_s = end;
	place->close = p->close;
	place->slots = 0;
	place->n = s->out.n;
	for (uint32_t i = 0; i < s->out.n; i++) {
		uint32_t node = s->out.p[i].node;

		place->part[i] = (struct slu_gang_part){ .node = (slu_node)m->node[node].gen << 32 |
								 node,
							 .role = s->out.p[i].role,
							 .slots = s->out.p[i].slots };
		place->slots += s->out.p[i].slots;
	}
}

static void to_nodes(struct slu_machine *m)
{
	for (uint32_t i = 0; i < m->s.out.n; i++)
		m->s.out.p[i].node = m->order[m->s.out.p[i].node];
}

static int book_plan(struct plan *p, uint64_t id, enum slu_gang_state state, int64_t start,
		     int64_t end)
{
	struct slu_machine *m = p->m;
	struct need *need[SLU_ROLES_MAX];
	struct job *j;
	int rc;

	for (uint32_t r = 0; r < p->n_role; r++)
		need[r] = p->role[r].need;
	rc = slu_job_make(m, id, p->n_role, need, p->req->use, p->req->n_use, &j);
	if (rc < 0)
		return rc;
	rc = slu_job_book(m, j, state, start, end, m->s.out.p, m->s.out.n);
	if (rc < 0)
		return rc;
	p->n_role = 0; /* the needs are the job's now */
	return 0;
}

/* Could it run on the empty machine?  1, 0 or -ENOMEM. */
static int possible(struct plan *p)
{
	int rc;

	/* One role anywhere: the sum is kept with the fitmap. */
	if (p->n_role == 1 && (p->req->level < 0 || !(p->req->flags & SLU_GANG_CLOSE_REQUIRED))) {
		slu_fitmap_satisfy(p->m, p->role[0].fitmap);
		return p->role[0].fitmap->sat_sum >= p->min;
	}
	rc = slu_caps_empty(p);
	if (rc > 0)
		rc = slu_attempt(p);
	p->empty = false;
	return rc;
}

int slu_gang_match(struct slu_machine *m, enum slu_gang_op op, int64_t now_s, uint64_t job,
		   const struct slu_gang_req *req, struct slu_gang_place *place,
		   struct slu_error *err)
{
	bool books = op != SLU_GANG_TRY && op != SLU_GANG_TRY_LATER;
	bool waits = op == SLU_GANG_ALLOCATE_OR_RESERVE || op == SLU_GANG_TRY_LATER;
	int64_t latest = SLU_FOREVER, start, end;
	int rc, answer = SLU_GANG_BUSY;
	struct plan p;

	rc = slu_plan_make(m, req, &p, err);
	if (rc < 0)
		goto out;
	if (books && slu_map_get(&m->by_id, job)) {
		rc = slu_fail(err, -EEXIST, "job %" PRIu64 " is booked already", job);
		goto out;
	}
	slu_machine_advance(m, now_s);
	start = SLU_MAX(m->now, req->begin_s);
	if (req->deadline_s)
		latest = req->deadline_s - req->duration_s;
	if (start == m->now && start <= latest) {
		rc = slu_scan(&p);
		if (rc < 0)
			goto out;
		if (rc)
			answer = SLU_GANG_NOW;
	}
	if (!rc)
		rc = slu_plan_fitmaps(&p);
	if (rc < 0)
		goto out;
	if (!rc && start == m->now && start <= latest) {
		rc = slu_caps_now(&p);
		if (rc > 0)
			rc = slu_attempt(&p);
		if (rc < 0)
			goto out;
		if (rc)
			answer = SLU_GANG_NOW;
	}
	if (!rc && (waits || op == SLU_GANG_ALLOCATE_SAT)) {
		rc = possible(&p);
		if (rc < 0)
			goto out;
		if (!rc) {
			answer = SLU_GANG_NEVER;
		} else {
			rc = 0;
			if (waits && start <= latest)
				rc = slu_later(&p, start, start == m->now, latest);
			if (rc < 0)
				goto out;
			if (rc)
				answer = SLU_GANG_LATER;
		}
	}
	if (answer != SLU_GANG_NOW && answer != SLU_GANG_LATER) {
		rc = answer;
		goto out;
	}
	start = p.t;
	end = p.end;
	to_nodes(m);
	rc = place_room(m, place);
	if (!rc && books)
		rc = book_plan(&p, job,
			       answer == SLU_GANG_NOW ? SLU_GANG_RUNNING : SLU_GANG_RESERVED, start,
			       end);
	if (!rc) {
		hand_out(&p, start, end, place);
		rc = answer;
	}
out:
	slu_plan_done(&p);
	return rc;
}

/* ---- the empty machine ---- */

const char *slu_role_name(const struct slu_gang_req *q, uint32_t r, char buf[32])
{
	if (q->role[r].name)
		return q->role[r].name;
	snprintf(buf, 32, "%u", r);
	return buf;
}

/* Say why a role does not fit the empty machine by itself; 0 if it does. */
static int never_role(const struct plan *p, uint32_t r, struct slu_error *err)
{
	const struct slu_machine *m = p->m;
	const struct fitmap *s = p->role[r].fitmap;
	const struct need *n = p->role[r].need;
	uint32_t nodes = 0;
	char buf[32];
	const char *name = slu_role_name(p->req, r, buf);

	if (s->sat_sum >= p->role[r].min)
		return 0;
	for (uint32_t w = 0; w < m->n_pos / 64 + 1; w++)
		nodes += (uint32_t)__builtin_popcountll(s->elig[w]);
	if (!nodes)
		return slu_fail(err, SLU_GANG_NEVER, "role %s: none of the %u nodes is eligible",
				name, m->n_pos);
	for (uint32_t i = 0; i < n->n && !s->sat_sum; i++) {
		int64_t most = 0;
		uint32_t k = n->a[i].resource;

		for (uint32_t pos = 0; pos < m->n_pos; pos++) {
			if (bit(s->elig, pos))
				most = SLU_MAX(most,
					       m->total[(size_t)m->order[pos] * m->stride + k]);
		}
		if (most < n->a[i].n) {
			enum slu_qty_scale scale = slu_qty_scale_of(m->resource.p[k]);
			char want[SLU_QTY_TEXT], has[SLU_QTY_TEXT];

			slu_qty_format(n->a[i].n, scale, SLU_QTY_BINARY, want);
			slu_qty_format(most, scale, SLU_QTY_BINARY, has);
			return slu_fail(err, SLU_GANG_NEVER,
					"role %s: one slot needs %s %s, the largest of %u eligible "
					"nodes has %s",
					name, m->resource.p[k], want, nodes, has);
		}
	}
	if (!s->sat_sum)
		return slu_fail(
			err, SLU_GANG_NEVER,
			"role %s: none of the %u eligible nodes has everything a slot needs", name,
			nodes);
	return slu_fail(err, SLU_GANG_NEVER,
			"role %s: %u slots requested, %" PRId64
			" fit on %u eligible nodes when empty%s",
			name, p->role[r].min, s->sat_sum, nodes,
			p->role[r].flags & SLU_ROLE_ALONE ? ", one per node" : "");
}

int slu_gang_satisfiable(struct slu_machine *m, const struct slu_gang_req *req,
			 struct slu_error *err)
{
	struct plan p;
	int rc = slu_plan_make(m, req, &p, err);

	if (!rc)
		rc = slu_plan_fitmaps(&p);
	if (!rc)
		rc = possible(&p);
	if (rc > 0) {
		rc = SLU_GANG_NOW;
	} else if (!rc) {
		for (uint32_t r = 0; r < p.n_role && !rc; r++) {
			slu_fitmap_satisfy(m, p.role[r].fitmap);
			rc = never_role(&p, r, err);
		}
		if (!rc && req->level >= 0 && req->flags & SLU_GANG_CLOSE_REQUIRED)
			rc = slu_fail(err, SLU_GANG_NEVER, "no %s holds the gang, even when empty",
				      m->level_name.p[req->level]);
		if (!rc)
			rc = slu_fail(
				err, SLU_GANG_NEVER,
				"each role fits the empty machine, but not all of them together");
	}
	slu_plan_done(&p);
	return rc;
}

/* ---- more slots ---- */

/* What the job has on a node keeps away roles that may not share the node with it. */
static void keep_apart(struct plan *p, const struct job *j)
{
	for (uint32_t r = 0; r < p->n_role; r++) {
		uint64_t apart = p->role[r].apart;

		if (p->role[r].flags & SLU_ROLE_ALONE)
			apart |= UINT64_C(1) << r;
		if (!apart)
			continue;
		slu_caps_own(p, r);
		for (uint32_t i = 0; i < j->n_part; i++)
			if (apart >> j->part[i].role & 1)
				slu_caps_set(p, r, p->m->node[j->part[i].node].pos, 0);
	}
}

int slu_gang_grow(struct slu_machine *m, int64_t now_s, uint64_t job,
		  const struct slu_gang_req *req, struct slu_gang_place *place,
		  struct slu_error *err)
{
	struct slu_gang_req q = *req;
	struct job *j = slu_job_find(m, job);
	struct plan p;
	int rc;

	if (!j)
		return slu_fail(err, -ENOENT, "there is no job %" PRIu64, job);
	if (j->state != SLU_GANG_RUNNING)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " does not run", job);
	if (q.n_role != j->n_role)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " has %u roles, not %u", job,
				j->n_role, q.n_role);
	slu_machine_advance(m, now_s);
	q.begin_s = q.deadline_s = 0;
	q.duration_s = j->end == SLU_FOREVER ? 0 : SLU_MAX(j->end - m->now, (int64_t)1);
	q.use = j->use;
	q.n_use = j->n_use;
	rc = slu_plan_make(m, &q, &p, err);
	for (uint32_t r = 0; r < p.n_role && !rc; r++) {
		if (p.role[r].need != j->need[r])
			rc = slu_fail(err, -EINVAL,
				      "role %u of job %" PRIu64 " needs other amounts", r, job);
	}
	if (!rc)
		rc = slu_plan_fitmaps(&p);
	if (!rc)
		rc = slu_caps_now(&p);
	if (rc > 0) {
		keep_apart(&p, j);
		rc = slu_attempt(&p);
	}
	if (rc > 0) {
		to_nodes(m);
		rc = place_room(m, place);
		if (!rc)
			rc = slu_job_extend(m, j, m->s.out.p, m->s.out.n);
		if (!rc) {
			hand_out(&p, m->now, j->end, place);
			rc = SLU_GANG_NOW;
		}
	} else if (!rc) {
		rc = SLU_GANG_BUSY;
	}
	slu_plan_done(&p);
	return rc;
}
