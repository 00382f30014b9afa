#include "sim/trace.h"

#include <stdio.h>

void slu_trace_done(struct slu_trace *t)
{
	slu_intern_done(&t->str);
	slu_vec_done(&t->job);
	slu_vec_done(&t->req);
	slu_vec_done(&t->role);
	slu_vec_done(&t->extra);
	slu_vec_done(&t->dep);
	slu_vec_done(&t->node);
	slu_vec_done(&t->prop);
	slu_vec_done(&t->event);
	slu_vec_done(&t->span);
	slu_vec_done(&t->span_node);
	slu_vec_done(&t->span_user);
	slu_vec_done(&t->queue);
	slu_vec_done(&t->req_next);
	slu_map_done(&t->req_of);
	memset(t, 0, sizeof *t);
}

static uint64_t mix_number(uint64_t h, uint64_t v)
{
	return slu_hash_u64(h ^ (v + 0x9e3779b97f4a7c15ull));
}

static uint64_t req_hash(const struct slu_trace_req *q, const struct slu_trace_role *r)
{
	uint64_t h = mix_number(q->nrole, q->within);

	h = mix_number(h, (uint64_t)q->prefer * 2 + q->exclusive);
	for (uint32_t i = 0; i < q->nrole; i++) {
		h = mix_number(h, ((uint64_t)r[i].slots << 32) | r[i].max_slots);
		h = mix_number(h, (uint64_t)r[i].millicores);
		h = mix_number(h, (uint64_t)r[i].memory);
		h = mix_number(h, ((uint64_t)r[i].gpus << 32) | r[i].property);
		h = mix_number(h, r[i].spread);
	}
	return h;
}

static bool role_equal(const struct slu_trace_role *a, const struct slu_trace_role *b)
{
	return a->slots == b->slots && a->max_slots == b->max_slots &&
	       a->millicores == b->millicores && a->memory == b->memory && a->gpus == b->gpus &&
	       a->property == b->property && a->spread == b->spread;
}

static bool req_equal(const struct slu_trace *t, const struct slu_trace_req *a,
		      const struct slu_trace_req *b, const struct slu_trace_role *br)
{
	if (a->nrole != b->nrole || a->within != b->within || a->prefer != b->prefer ||
	    a->exclusive != b->exclusive)
		return false;
	for (uint32_t i = 0; i < a->nrole; i++)
		if (!role_equal(&t->role.p[a->role + i], &br[i]))
			return false;
	return true;
}

int64_t slu_trace_intern_req(struct slu_trace *t, const struct slu_trace_req *req,
			     const struct slu_trace_role *role)
{
	uint64_t h = req_hash(req, role);
	uint64_t *found = slu_map_get(&t->req_of, h);

	for (uint32_t i = found ? (uint32_t)*found : 0; i; i = t->req_next.p[i - 1])
		if (req_equal(t, &t->req.p[i - 1], req, role))
			return i - 1;
	uint32_t before = found ? (uint32_t)*found : 0;

	if (slu_vec_reserve(&t->role, t->role.n + req->nrole) < 0 ||
	    slu_vec_reserve(&t->req, t->req.n + 1) < 0 ||
	    slu_vec_reserve(&t->req_next, t->req_next.n + 1) < 0 ||
	    slu_map_put(&t->req_of, h, t->req.n + 1) < 0)
		return -ENOMEM;
	struct slu_trace_req own = *req;

	own.role = t->role.n;
	for (uint32_t i = 0; i < req->nrole; i++)
		t->role.p[t->role.n++] = role[i];
	t->req_next.p[t->req_next.n++] = before;
	t->req.p[t->req.n++] = own;
	return t->req.n - 1;
}

int64_t slu_trace_cores_req(struct slu_trace *t, uint32_t slots)
{
	struct slu_trace_role role = {
		.slots = slots, .max_slots = slots, .millicores = 1000, .property = SLU_INTERN_NONE
	};
	struct slu_trace_req req = { .nrole = 1, .within = SLU_INTERN_NONE };

	return slu_trace_intern_req(t, &req, &role);
}

int64_t slu_trace_slots(const struct slu_trace *t, uint32_t req)
{
	const struct slu_trace_req *q = &t->req.p[req];
	int64_t n = 0;

	for (uint32_t i = 0; i < q->nrole; i++)
		n += t->role.p[q->role + i].slots;
	return n;
}

int64_t slu_trace_millicores(const struct slu_trace *t, uint32_t req)
{
	const struct slu_trace_req *q = &t->req.p[req];
	int64_t n = 0;

	for (uint32_t i = 0; i < q->nrole; i++) {
		const struct slu_trace_role *r = &t->role.p[q->role + i];

		n += (int64_t)r->slots * r->millicores;
	}
	return n;
}

int slu_trace_machine(struct slu_trace *t, uint32_t n, uint32_t cores, uint32_t per_rack,
		      struct slu_error *err)
{
	char name[32];

	if (n < 1 || n > SLU_TRACE_MAX_NODES)
		return slu_fail(err, -ERANGE, "a machine of %u nodes: must be 1 to %u", n,
				SLU_TRACE_MAX_NODES);
	if (cores < 1 || cores > 100000)
		return slu_fail(err, -ERANGE, "nodes of %u cores: must be 1 to 100000", cores);
	if (slu_vec_reserve(&t->node, t->node.n + n) < 0)
		return slu_fail(err, -ENOMEM, "out of memory for %u nodes", n);
	for (uint32_t i = 0; i < n; i++) {
		struct slu_trace_node nd = { .zone = SLU_INTERN_NONE,
					     .block = SLU_INTERN_NONE,
					     .rack = SLU_INTERN_NONE,
					     .millicores = (int64_t)cores * 1000 };

		snprintf(name, sizeof name, "node%u", i);
		nd.name = slu_intern(&t->str, name);
		if (per_rack) {
			snprintf(name, sizeof name, "rack%u", i / per_rack);
			nd.rack = slu_intern(&t->str, name);
		}
		if (nd.name == SLU_INTERN_NONE || (per_rack && nd.rack == SLU_INTERN_NONE))
			return slu_fail(err, -ENOMEM, "out of memory for %u nodes", n);
		t->node.p[t->node.n++] = nd;
	}
	return 0;
}

/* Stable merge sort: equal times keep the order of the file. */
static bool job_before(const struct slu_trace_job *a, const struct slu_trace_job *b)
{
	return a->submit_s <= b->submit_s;
}

static void merge_jobs(struct slu_trace_job *a, struct slu_trace_job *tmp, uint32_t n)
{
	if (n < 2)
		return;
	uint32_t h = n / 2, i = 0, j = h, k = 0;

	merge_jobs(a, tmp, h);
	merge_jobs(a + h, tmp, n - h);
	if (job_before(&a[h - 1], &a[h]))
		return;
	while (i < h && j < n)
		tmp[k++] = job_before(&a[i], &a[j]) ? a[i++] : a[j++];
	while (i < h)
		tmp[k++] = a[i++];
	memcpy(a, tmp, (size_t)k * sizeof *a);
}

static int event_order(const void *x, const void *y)
{
	const struct slu_trace_event *a = x, *b = y;

	if (a->at_s != b->at_s)
		return a->at_s < b->at_s ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

int slu_trace_sort(struct slu_trace *t)
{
	bool sorted = true;

	for (uint32_t i = 1; i < t->job.n && sorted; i++)
		sorted = job_before(&t->job.p[i - 1], &t->job.p[i]);
	if (!sorted) {
		struct slu_trace_job *tmp = slu_reallocarray(NULL, t->job.n, sizeof *tmp);

		if (!tmp)
			return -ENOMEM;
		merge_jobs(t->job.p, tmp, t->job.n);
		slu_free(tmp);
	}
	if (t->event.n)
		qsort(t->event.p, t->event.n, sizeof *t->event.p, event_order);
	return 0;
}
