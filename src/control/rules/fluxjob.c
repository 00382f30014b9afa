#include "control/rules/fluxjob_where.h"

#include <math.h>
#include <stdio.h>

#include "base/map.h"
#include "control/rules/group.h"
#include "control/rules/kinds.h"
#include "jobspec/jobspec.h"
#include "queue/queue.h"
#include "wire/jsonw.h"

/* Names of nodes in a jobspec, in bytes: a few thousand.  A line of text may name a million, and every one
 * would be kept for each such FluxJob. */
#define HOSTS_MAX   ((size_t)64 << 10)
#define JOBSPEC_MAX ((size_t)256 << 10) /* its text: all of it is read by the thread that decides */

/* ---- held work as a FluxJob ---- */

/* Pods and what makes them, by rules/kinds.h. */
static const struct slu_kind *find_kind(const struct slu_kobj *o)
{
	const struct slu_kind *k = slu_kind((enum slu_kkind)o->kind);

	return k && k->word ? k : NULL;
}

void slu_fluxjob_name(const struct slu_kobj *held, char out[SLU_FLUXJOB_NAME])
{
	const struct slu_kind *k = find_kind(held);
	const char *suffix = k ? k->word : "unknown";
	int n = snprintf(out, SLU_FLUXJOB_NAME, "%s-%s", held->meta.name, suffix);

	if (n >= (int)SLU_FLUXJOB_NAME)
		snprintf(out, SLU_FLUXJOB_NAME, "%.228s-%08x-%s", held->meta.name,
			 (unsigned)slu_hash_bytes(held->meta.name, strlen(held->meta.name)),
			 suffix);
}

bool slu_fluxjob_is_ours(const struct slu_kfluxjob *f)
{
	const char *by = slu_kmeta_label(&f->o.meta, SLU_FLUXJOB_BY);

	return by && !strcmp(by, SLU_FLUXJOB_US);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* The canonical form: a slot is a pod and lies in one node. */
static void write_jobspec(const struct slu_held_view *v, const struct slu_kpodspec *s,
			  int64_t duration_s, struct slu_buf *b)
{
	int64_t cpu = ceil_div(slu_kamount_get(s->requests, s->nrequests, "cpu"), 1000);
	int64_t memory = ceil_div(slu_kamount_get(s->requests, s->nrequests, "memory"),
				  INT64_C(1) << 20);
	int64_t gpu = slu_kamount_get(s->requests, s->nrequests, "nvidia.com/gpu");

	/* Version 1 of the jobspec knows no memory. */
	slu_buf_printf(b,
		       "version: %d\nresources:\n- type: slot\n  count: %u\n  label: default\n"
		       "  with:\n  - {type: core, count: %" PRId64 "}\n",
		       memory ? 9999 : 1, SLU_MAX(v->pods, 1u), SLU_MAX(cpu, (int64_t)1));
	if (memory)
		slu_buf_printf(b, "  - {type: memory, count: %" PRId64 ", unit: MB}\n", memory);
	if (gpu)
		slu_buf_printf(b, "  - {type: gpu, count: %" PRId64 "}\n", gpu);
	slu_buf_printf(b,
		       "tasks:\n- {command: [\"%s/%s\"], slot: default, count: {per_slot: 1}}\n"
		       "attributes:\n",
		       v->obj->meta.ns, v->obj->meta.name);
	if (duration_s)
		slu_buf_printf(b, "  system: {duration: %" PRId64 "}\n", duration_s);
	else
		slu_buf_puts(b, "  system: {}\n");
}

static void write_owner(const struct slu_kobj *o, struct slu_jsonw *w)
{
	const struct slu_kkind_info *info = slu_kkind_info((enum slu_kkind)o->kind);
	char api[80];

	snprintf(api, sizeof api, "%s%s%s", info->group, *info->group ? "/" : "", info->version);
	slu_jsonw_key(w, "ownerReferences");
	slu_jsonw_arr(w);
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "apiVersion", api);
	slu_jsonw_kstr(w, "kind", info->kind);
	slu_jsonw_kstr(w, "name", o->meta.name);
	slu_jsonw_kstr(w, "uid", o->meta.uid);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_arr(w);
}

int slu_fluxjob_spec(const struct slu_held_view *v, int64_t duration_s, struct slu_buf *out)
{
	const struct slu_kind *k = find_kind(v->obj);
	const struct slu_ktemplate *t = k ? slu_held_template(v->obj) : NULL;
	const struct slu_kpodspec *s = t ? &t->spec : NULL;
	struct slu_buf text = SLU_BUF_INIT(8192);
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);
	int rc;

	if (k && v->obj->kind == SLU_KIND_POD)
		s = &slu_kpod(v->obj)->spec;
	if (!s)
		return -EINVAL;
	write_jobspec(v, s, duration_s, &text);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "jobspec", slu_buf_str(&text));
	slu_jsonw_ki64(&w, "type", k->flux);
	slu_jsonw_kstr(&w, "name", v->obj->meta.name);
	slu_jsonw_ki64(&w, "nodes", v->pods);
	slu_jsonw_ki64(&w, "cores", SLU_MAX(s->whole_cpus, (int64_t)1));
	slu_jsonw_ki64(&w, "duration", SLU_MIN(duration_s, (int64_t)INT32_MAX));
	slu_jsonw_end_obj(&w);
	rc = text.error ? text.error : out->error;
	slu_buf_done(&text);
	return rc;
}

int slu_fluxjob_wrap(const struct slu_held_view *v, int64_t duration_s, struct slu_buf *out)
{
	struct slu_buf spec = SLU_BUF_INIT(16384);
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);
	char name[SLU_FLUXJOB_NAME];
	int rc = slu_fluxjob_spec(v, duration_s, &spec);

	if (rc < 0) {
		slu_buf_done(&spec);
		return rc;
	}
	slu_fluxjob_name(v->obj, name);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", "jobs.converged-computing.org/v1alpha1");
	slu_jsonw_kstr(&w, "kind", "FluxJob");
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "name", name);
	slu_jsonw_kstr(&w, "namespace", v->obj->meta.ns);
	slu_jsonw_key(&w, "labels");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, SLU_FLUXJOB_BY, SLU_FLUXJOB_US);
	slu_jsonw_end_obj(&w);
	write_owner(v->obj, &w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_key(&w, "spec");
	slu_jsonw_raw(&w, spec.p, spec.n);
	slu_jsonw_end_obj(&w);
	slu_buf_done(&spec);
	return out->error;
}

/* ---- jobspecs of users ---- */

/* The engine's reader numbers its own resource types first; this list has the same order. */
enum { CLUSTER, CORE, SOCKET, GPU, NODE, RACK, SLOT, MEMORY = 10 };
static const char *const types[] = { "cluster", "core",         "socket", "gpu",
				     "node",    "rack",         "slot",   "xor_slot",
				     "ssd",     "storage_node", "memory" };

struct reading {
	const struct slu_config *cfg;
	struct slu_fluxjob_ask *ask;
	struct slu_intern type;
	struct slu_error *err;
};

static const char *type_name(const struct reading *r, const struct slu_request *q)
{
	return slu_intern_str(&r->type, q->type);
}

static bool is_level(const struct reading *r, const struct slu_request *q)
{
	for (uint32_t i = 0; i < r->cfg->nodes.n_levels; i++)
		if (!strcmp(r->cfg->nodes.level[i].name, type_name(r, q)))
			return true;
	return q->type == CLUSTER;
}

static int multiply(struct reading *r, int64_t a, int64_t b, int64_t *out)
{
	if (__builtin_mul_overflow(a, b, out) || *out > INT64_C(1) << 50)
		return slu_fail(r->err, -EINVAL, "spec.jobspec asks for more than can be counted");
	return 0;
}

static int64_t memory_unit(const char *u)
{
	/* Vertices of memory are mebibytes, by whatever name. */
	if (!*u || !strcmp(u, "MB") || !strcmp(u, "MiB") || !strcmp(u, "Mi"))
		return INT64_C(1) << 20;
	if (!strcmp(u, "GB") || !strcmp(u, "GiB") || !strcmp(u, "Gi"))
		return INT64_C(1) << 30;
	if (!strcmp(u, "KB") || !strcmp(u, "KiB") || !strcmp(u, "Ki"))
		return INT64_C(1) << 10;
	return !strcmp(u, "B") ? 1 : 0;
}

/* Amounts of everything below q, `times` over, into one slot. */
static int add_amounts(struct reading *r, const struct slu_request *q, uint32_t n, int64_t times,
		       struct slu_fluxjob_role *role)
{
	for (uint32_t i = 0; i < n; i++) {
		int64_t here = 0, unit = 1, *sum = NULL;
		int rc = multiply(r, times, q[i].count.min, &here);

		if (rc < 0)
			return rc;
		if (q[i].type == SLOT || q[i].type == SOCKET) {
			rc = add_amounts(r, q[i].with, q[i].nwith, here, role);
			if (rc < 0)
				return rc;
			continue;
		}
		if (q[i].type == CORE)
			sum = &role->cores;
		else if (q[i].type == GPU)
			sum = &role->gpus;
		else if (q[i].type == MEMORY)
			sum = &role->memory;
		if (!sum)
			return slu_fail(r->err, -EINVAL, "spec.jobspec: a slot cannot contain %s",
					type_name(r, &q[i]));
		if (q[i].type == MEMORY)
			unit = memory_unit(q[i].unit);
		if (!unit)
			return slu_fail(r->err, -EINVAL,
					"spec.jobspec: unknown unit \"%.20s\" of memory",
					q[i].unit);
		rc = multiply(r, here, unit, &here);
		if (rc < 0)
			return rc;
		*sum = SLU_MIN(*sum + here, INT64_C(1) << 50);
	}
	return 0;
}

static int add_role(struct reading *r, const struct slu_request *q, uint64_t times, bool alone)
{
	struct slu_fluxjob_ask *a = r->ask;
	struct slu_fluxjob_role *role = &a->role[a->n_role];
	uint64_t lo = q->count.min * times, hi = slu_count_max(&q->count) * times;

	if (a->n_role == SLU_FLUXJOB_ROLES)
		return slu_fail(r->err, -EINVAL, "spec.jobspec: more than %u kinds of slots",
				SLU_FLUXJOB_ROLES);
	if (!lo || lo + a->min > SLU_MIN(SLU_FLUXJOB_SLOTS, r->cfg->jobs.max_size))
		return slu_fail(r->err, -EINVAL,
				"spec.jobspec: %" PRIu64 " slots are outside 1..%u", lo + a->min,
				SLU_MIN(SLU_FLUXJOB_SLOTS, r->cfg->jobs.max_size));
	*role = (struct slu_fluxjob_role){ .min = (uint32_t)lo, .alone = alone };
	/* "At least N" without an upper bound does not ask for every node of the cluster. */
	role->max = q->count.max == UINT32_MAX ? role->min
					       : (uint32_t)SLU_MIN(hi, lo + SLU_FLUXJOB_SLOTS / 10);
	a->min += role->min;
	a->max += role->max;
	a->n_role++;
	a->exclusive |= q->excl == SLU_EXCL_TRUE;
	return add_amounts(r, q->with, q->nwith, 1, role);
}

static int walk_requests(struct reading *r, const struct slu_request *q, uint32_t n, uint64_t times)
{
	for (uint32_t i = 0; i < n; i++) {
		bool node_below = q[i].type == SLOT && q[i].nwith && q[i].with[0].type == NODE;
		int rc;

		if (is_level(r, &q[i])) {
			if (q[i].count.min != 1)
				return slu_fail(r->err, -EINVAL, "spec.jobspec: only one %s",
						type_name(r, &q[i]));
			if (q[i].type != CLUSTER)
				snprintf(r->ask->level, sizeof r->ask->level, "%s",
					 type_name(r, &q[i]));
			rc = walk_requests(r, q[i].with, q[i].nwith, times);
		} else if (node_below) {
			rc = q[i].count.min > SLU_FLUXJOB_SLOTS
				     ? slu_fail(r->err, -EINVAL,
						"spec.jobspec: %u slots are too many",
						q[i].count.min)
				     : walk_requests(r, q[i].with, q[i].nwith,
						     times * q[i].count.min);
		} else if (q[i].type == NODE || q[i].type == SLOT) {
			rc = add_role(r, &q[i], times, q[i].type == NODE);
		} else {
			rc = slu_fail(r->err, -EINVAL,
				      "spec.jobspec: %s outside a slot; ask for slots or nodes",
				      type_name(r, &q[i]));
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int add_types(struct reading *r)
{
	for (size_t i = 0; i < SLU_LEN(types); i++)
		if (slu_intern(&r->type, types[i]) != i)
			return -ENOMEM;
	for (uint32_t i = 0; i < r->cfg->nodes.n_levels; i++)
		if (slu_intern(&r->type, r->cfg->nodes.level[i].name) == SLU_INTERN_NONE)
			return -ENOMEM;
	return 0;
}

/* A FluxJob that asks for a reservation must wait in a queue that gives some.  Which jobs get one,
 * and when, is for the queue to decide: a reservation on demand would let a job pass those before
 * it. */
static int find_promise(const struct reading *r, const struct slu_kfluxjob *f)
{
	const char *note = slu_kmeta_annotation(&f->o.meta, "sluice.sh/queue");
	const char *name = *r->ask->queue ? r->ask->queue : note ? note : r->cfg->queue[0].name;

	for (uint32_t i = 0; i < r->cfg->n_queues; i++) {
		const struct slu_config_queue *q = &r->cfg->queue[i];
		struct slu_queue_conf conf = { 0 };

		if (!strcmp(q->name, name) && slu_config_policy(q, &conf, NULL) == 0 &&
		    conf.policy == SLU_POLICY_FIRST_FIT)
			return slu_fail(
				r->err, -EINVAL,
				"spec.reservation: queue \"%s\" promises no job a start: its "
				"policy is first-fit",
				name);
	}
	return 0;
}

static int read_spec(struct reading *r, const struct slu_kfluxjob *f)
{
	slu_cleanup(slu_jobspec_freep) struct slu_jobspec *j = NULL;
	struct slu_error why = { 0 };
	size_t n = strlen(f->jobspec);
	int rc;

	if (n > JOBSPEC_MAX)
		return slu_fail(r->err, -EINVAL, "spec.jobspec: more than %zu KiB of text",
				JOBSPEC_MAX >> 10);
	rc = slu_jobspec_parse_within(f->jobspec, n, &r->type, HOSTS_MAX, &j, &why);

	if (rc < 0)
		return slu_fail(r->err, rc, "spec.jobspec: %s", why.text);
	for (uint16_t i = 0; i < f->nnodes; i++)
		if (!*f->nodes[i])
			return slu_fail(r->err, -EINVAL,
					"spec.resources.nodes: item %u is not the name of a node",
					i);
	if (j->constraint || f->nnodes) {
		rc = slu_fluxjob_where(j->constraint, f->nodes, f->nnodes, &r->ask->where, r->err);
		if (rc < 0)
			return rc;
	}
	rc = walk_requests(r, j->resources, j->nresources, 1);
	if (rc < 0)
		return rc;
	if (!r->ask->n_role)
		return slu_fail(r->err, -EINVAL, "spec.jobspec asks for nothing");
	r->ask->duration_s = j->duration > 0     ? (int64_t)ceil(fmin(j->duration, 4e8))
			     : f->duration_s > 0 ? f->duration_s
						 : 0;
	if (j->queue && strlen(j->queue) >= sizeof r->ask->queue)
		return slu_fail(
			r->err, -EINVAL,
			"spec.jobspec: attributes.system.queue: \"%.60s\" is not a queue name",
			j->queue);
	if (j->queue)
		strcpy(r->ask->queue, j->queue);
	return f->reservation ? find_promise(r, f) : 0;
}

int slu_fluxjob_read(const struct slu_kfluxjob *f, const struct slu_config *cfg,
		     struct slu_fluxjob_ask *out, struct slu_error *err)
{
	struct reading r = { .cfg = cfg, .ask = out, .err = err };
	size_t n = strlen(f->jobspec);
	int rc;

	*out = (struct slu_fluxjob_ask){ 0 };
	if (*f->o.problem)
		return slu_fail(err, -EINVAL, "%s", f->o.problem);
	if (strspn(f->jobspec, " \t\r\n") == n)
		return slu_fail(err, -EINVAL, "spec.jobspec is empty: there is nothing to queue");
	if (n > SLU_FLUXJOB_TEXT)
		return slu_fail(err, -EINVAL, "spec.jobspec is longer than %u bytes",
				SLU_FLUXJOB_TEXT);
	rc = add_types(&r);
	if (!rc)
		rc = read_spec(&r, f);
	else
		slu_fail(err, rc, "out of memory");
	slu_intern_done(&r.type);
	return rc;
}

void slu_fluxjob_done(struct slu_fluxjob_ask *a)
{
	slu_free(a->where);
	a->where = NULL;
}
