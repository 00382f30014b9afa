#include "kube/layout_internal.h"

#include "wire/jsonw.h"

#define AT(T, m)     .off = offsetof(struct T, m)
#define STR(T, m)    { .name = #m, .type = SLU_LAY_STR, AT(T, m) }
#define BOOL(T, m)   { .name = #m, .type = SLU_LAY_BOOL, AT(T, m) }
#define U8(T, m)     { .name = #m, .type = SLU_LAY_U8, AT(T, m) }
#define U32(T, m)    { .name = #m, .type = SLU_LAY_U32, AT(T, m) }
#define I32(T, m)    { .name = #m, .type = SLU_LAY_I32, AT(T, m) }
#define I64(T, m)    { .name = #m, .type = SLU_LAY_I64, AT(T, m) }
#define U64(T, m)    { .name = #m, .type = SLU_LAY_U64, AT(T, m) }
#define STRS(T, m)   { .name = #m, .type = SLU_LAY_STRS, AT(T, m), .noff = offsetof(struct T, n##m) }
#define MSG(T, m, s) { .name = #m, .type = SLU_LAY_MSG, AT(T, m), .sub = &s }
#define MSGS(T, m, s) \
	{ .name = #m, .type = SLU_LAY_MSGS, AT(T, m), .noff = offsetof(struct T, n##m), .sub = &s }
#define LAYOUT(name, T, ...)                                                    \
	static const struct slu_klay_field name##_f[] = { __VA_ARGS__, { 0 } }; \
	static const struct slu_klay name = { sizeof(struct T), name##_f }

LAYOUT(pair, slu_kpair, STR(slu_kpair, key), STR(slu_kpair, value));
LAYOUT(amount, slu_kamount, STR(slu_kamount, name), I64(slu_kamount, amount));
LAYOUT(owner, slu_kowner, STR(slu_kowner, api_version), STR(slu_kowner, kind),
       STR(slu_kowner, name), STR(slu_kowner, uid), BOOL(slu_kowner, controller));
LAYOUT(meta, slu_kmeta, STR(slu_kmeta, name), STR(slu_kmeta, ns), STR(slu_kmeta, uid),
       STR(slu_kmeta, generate_name), U64(slu_kmeta, rv), I64(slu_kmeta, generation),
       I64(slu_kmeta, created_us), I64(slu_kmeta, deleted_us), MSGS(slu_kmeta, labels, pair),
       MSGS(slu_kmeta, annotations, pair), MSGS(slu_kmeta, owners, owner),
       STRS(slu_kmeta, finalizers));
LAYOUT(obj, slu_kobj, U8(slu_kobj, kind), U8(slu_kobj, flags), STR(slu_kobj, problem),
       MSG(slu_kobj, meta, meta));
LAYOUT(cond, slu_kcond, STR(slu_kcond, type), U8(slu_kcond, status), STR(slu_kcond, reason),
       STR(slu_kcond, message), I64(slu_kcond, since_us), I64(slu_kcond, observed));
LAYOUT(taint, slu_ktaint, STR(slu_ktaint, key), STR(slu_ktaint, value), U8(slu_ktaint, effect));
LAYOUT(toleration, slu_ktoleration, STR(slu_ktoleration, key), U8(slu_ktoleration, op),
       STR(slu_ktoleration, value), U8(slu_ktoleration, effect), I64(slu_ktoleration, seconds));
LAYOUT(expr, slu_kexpr, STR(slu_kexpr, key), U8(slu_kexpr, op), STRS(slu_kexpr, values));
LAYOUT(term, slu_kterm, MSGS(slu_kterm, exprs, expr), MSGS(slu_kterm, fields, expr));
LAYOUT(preferred, slu_kpreferred, I32(slu_kpreferred, weight), MSG(slu_kpreferred, term, term));
LAYOUT(anti, slu_kanti, STR(slu_kanti, topology), MSGS(slu_kanti, labels, pair),
       MSGS(slu_kanti, exprs, expr), MSGS(slu_kanti, ns_labels, pair),
       MSGS(slu_kanti, ns_exprs, expr), STRS(slu_kanti, namespaces), U32(slu_kanti, bits));
LAYOUT(hostport, slu_khostport, STR(slu_khostport, ip), I32(slu_khostport, port),
       U8(slu_khostport, proto));
LAYOUT(podspec, slu_kpodspec, STR(slu_kpodspec, scheduler), STR(slu_kpodspec, node),
       STR(slu_kpodspec, priority_class), STR(slu_kpodspec, scheduling_group),
       I64(slu_kpodspec, active_deadline_s), I64(slu_kpodspec, grace_s),
       MSGS(slu_kpodspec, requests, amount), I64(slu_kpodspec, whole_cpus),
       MSGS(slu_kpodspec, node_selector, pair), MSGS(slu_kpodspec, required, term),
       MSGS(slu_kpodspec, preferred, preferred), MSGS(slu_kpodspec, anti, anti),
       MSGS(slu_kpodspec, tolerations, toleration), MSGS(slu_kpodspec, host_ports, hostport),
       STRS(slu_kpodspec, gates), STRS(slu_kpodspec, claims), I32(slu_kpodspec, priority),
       U32(slu_kpodspec, flags), BOOL(slu_kpodspec, has_priority), U8(slu_kpodspec, restart));
LAYOUT(container, slu_kcontainer, MSGS(slu_kcontainer, requests, amount), U8(slu_kcontainer, role));
LAYOUT(demand, slu_kdemand, MSGS(slu_kdemand, containers, container),
       MSGS(slu_kdemand, level, amount), MSGS(slu_kdemand, level_limits, amount),
       MSGS(slu_kdemand, overhead, amount));
LAYOUT(tmpl, slu_ktemplate, MSGS(slu_ktemplate, labels, pair),
       MSGS(slu_ktemplate, annotations, pair), MSG(slu_ktemplate, spec, podspec),
       MSG(slu_ktemplate, demand, demand), STR(slu_ktemplate, runtime_class));

LAYOUT(node, slu_knode, MSG(slu_knode, o, obj), MSGS(slu_knode, allocatable, amount),
       MSGS(slu_knode, capacity, amount), MSGS(slu_knode, taints, taint),
       MSGS(slu_knode, conds, cond), BOOL(slu_knode, unschedulable), U8(slu_knode, ready));
LAYOUT(pod, slu_kpod, MSG(slu_kpod, o, obj), MSG(slu_kpod, spec, podspec), STR(slu_kpod, reason),
       STR(slu_kpod, nominated_node), STR(slu_kpod, waits), STR(slu_kpod, sched_reason),
       STR(slu_kpod, sched_message), I64(slu_kpod, sched_us), I64(slu_kpod, start_us),
       I64(slu_kpod, finish_us), I32(slu_kpod, exit_code), I32(slu_kpod, restarts),
       U8(slu_kpod, phase), U8(slu_kpod, scheduled), U8(slu_kpod, ready), U8(slu_kpod, disrupted));
LAYOUT(namespace, slu_knamespace, MSG(slu_knamespace, o, obj), BOOL(slu_knamespace, terminating));
LAYOUT(pvc, slu_kpvc, MSG(slu_kpvc, o, obj), STR(slu_kpvc, volume), STR(slu_kpvc, storage_class),
       STRS(slu_kpvc, access_modes), U8(slu_kpvc, phase));
LAYOUT(pv, slu_kpv, MSG(slu_kpv, o, obj), STR(slu_kpv, storage_class), STR(slu_kpv, claim_ns),
       STR(slu_kpv, claim_name), STR(slu_kpv, claim_uid), STR(slu_kpv, driver),
       STR(slu_kpv, handle), MSGS(slu_kpv, required, term), STRS(slu_kpv, access_modes),
       U8(slu_kpv, phase));
LAYOUT(job, slu_kjob, MSG(slu_kjob, o, obj), MSG(slu_kjob, tmpl, tmpl), MSGS(slu_kjob, conds, cond),
       STR(slu_kjob, managed_by), STR(slu_kjob, completed_indexes), STR(slu_kjob, failed_indexes),
       I64(slu_kjob, active_deadline_s), I64(slu_kjob, start_us), I64(slu_kjob, completion_us),
       I32(slu_kjob, parallelism), I32(slu_kjob, completions), I32(slu_kjob, backoff_limit),
       I32(slu_kjob, active), I32(slu_kjob, succeeded), I32(slu_kjob, failed), I32(slu_kjob, ready),
       I32(slu_kjob, terminating), BOOL(slu_kjob, indexed), BOOL(slu_kjob, suspend),
       U8(slu_kjob, complete), U8(slu_kjob, failed_cond), U8(slu_kjob, suspended));
LAYOUT(replicaset, slu_kreplicaset, MSG(slu_kreplicaset, o, obj), MSG(slu_kreplicaset, tmpl, tmpl),
       I32(slu_kreplicaset, replicas), I32(slu_kreplicaset, now), I32(slu_kreplicaset, ready));
LAYOUT(statefulset, slu_kstatefulset, MSG(slu_kstatefulset, o, obj),
       MSG(slu_kstatefulset, tmpl, tmpl), STR(slu_kstatefulset, service),
       STRS(slu_kstatefulset, claim_templates), I32(slu_kstatefulset, replicas),
       I32(slu_kstatefulset, start), I32(slu_kstatefulset, now), I32(slu_kstatefulset, ready),
       BOOL(slu_kstatefulset, parallel));
LAYOUT(deployment, slu_kdeployment, MSG(slu_kdeployment, o, obj), MSG(slu_kdeployment, tmpl, tmpl),
       I32(slu_kdeployment, replicas), I32(slu_kdeployment, now), I32(slu_kdeployment, updated),
       I32(slu_kdeployment, ready), I32(slu_kdeployment, available), BOOL(slu_kdeployment, paused));
LAYOUT(priorityclass, slu_kpriorityclass, MSG(slu_kpriorityclass, o, obj),
       I32(slu_kpriorityclass, value), BOOL(slu_kpriorityclass, global_default),
       BOOL(slu_kpriorityclass, never_preempts));
LAYOUT(storageclass, slu_kstorageclass, MSG(slu_kstorageclass, o, obj),
       STR(slu_kstorageclass, provisioner), BOOL(slu_kstorageclass, wait_for_consumer));
LAYOUT(lease, slu_klease, MSG(slu_klease, o, obj), STR(slu_klease, holder),
       I64(slu_klease, acquire_us), I64(slu_klease, renew_us), I32(slu_klease, duration_s),
       I32(slu_klease, transitions));
LAYOUT(podgroup, slu_kpodgroup, MSG(slu_kpodgroup, o, obj), I32(slu_kpodgroup, min_member),
       I32(slu_kpodgroup, schedule_timeout_s), MSGS(slu_kpodgroup, min_resources, amount),
       STR(slu_kpodgroup, phase), STR(slu_kpodgroup, occupied_by),
       I64(slu_kpodgroup, schedule_start_us), I64(slu_kpodgroup, creation_us),
       I32(slu_kpodgroup, running), I32(slu_kpodgroup, succeeded), I32(slu_kpodgroup, failed),
       I32(slu_kpodgroup, scheduled), BOOL(slu_kpodgroup, gang), BOOL(slu_kpodgroup, has_priority),
       BOOL(slu_kpodgroup, resource_claims), BOOL(slu_kpodgroup, all), I32(slu_kpodgroup, priority),
       STR(slu_kpodgroup, priority_class), STR(slu_kpodgroup, disruption_mode),
       STRS(slu_kpodgroup, topology), STR(slu_kpodgroup, workload),
       STR(slu_kpodgroup, workload_template), MSGS(slu_kpodgroup, conds, cond));
LAYOUT(fluxjob, slu_kfluxjob, MSG(slu_kfluxjob, o, obj), STR(slu_kfluxjob, jobspec),
       STR(slu_kfluxjob, name), STRS(slu_kfluxjob, nodes), STR(slu_kfluxjob, submit_status),
       STR(slu_kfluxjob, state), STR(slu_kfluxjob, message), STR(slu_kfluxjob, node_list),
       STR(slu_kfluxjob, places), I64(slu_kfluxjob, job_id), I64(slu_kfluxjob, estimate_us),
       I64(slu_kfluxjob, start_us), I32(slu_kfluxjob, position), MSGS(slu_kfluxjob, conds, cond),
       I32(slu_kfluxjob, type), I32(slu_kfluxjob, duration_s), I32(slu_kfluxjob, count),
       I32(slu_kfluxjob, cores), BOOL(slu_kfluxjob, reservation));
LAYOUT(limitrange, slu_klimitrange, MSG(slu_klimitrange, o, obj),
       MSGS(slu_klimitrange, requests, amount));
LAYOUT(runtimeclass, slu_kruntimeclass, MSG(slu_kruntimeclass, o, obj),
       MSGS(slu_kruntimeclass, overhead, amount), MSGS(slu_kruntimeclass, node_selector, pair),
       MSGS(slu_kruntimeclass, tolerations, toleration));
LAYOUT(reservation, slu_kreservation, MSG(slu_kreservation, o, obj), STRS(slu_kreservation, nodes),
       I32(slu_kreservation, count), STR(slu_kreservation, node_label),
       MSGS(slu_kreservation, amounts, amount), I64(slu_kreservation, start_us),
       I64(slu_kreservation, end_us), STR(slu_kreservation, every), STRS(slu_kreservation, users),
       STR(slu_kreservation, phase), STR(slu_kreservation, message), STRS(slu_kreservation, held),
       I64(slu_kreservation, from_us), I64(slu_kreservation, until_us),
       MSGS(slu_kreservation, conds, cond));
LAYOUT(driver, slu_kdriver, STR(slu_kdriver, name), I32(slu_kdriver, count));
LAYOUT(csinode, slu_kcsinode, MSG(slu_kcsinode, o, obj), MSGS(slu_kcsinode, drivers, driver));
LAYOUT(attachment, slu_kattachment, MSG(slu_kattachment, o, obj), STR(slu_kattachment, attacher),
       STR(slu_kattachment, node), STR(slu_kattachment, volume));
LAYOUT(zone, slu_kzone, STR(slu_kzone, name), STR(slu_kzone, type),
       MSGS(slu_kzone, allocatable, amount));
LAYOUT(topology, slu_ktopology, MSG(slu_ktopology, o, obj), MSGS(slu_ktopology, zones, zone),
       STRS(slu_ktopology, policies), MSGS(slu_ktopology, attributes, pair));
LAYOUT(partial, slu_kpartial, MSG(slu_kpartial, o, obj));

static const struct slu_klay *const layouts[SLU_KIND_COUNT] = {
	[SLU_KIND_NODE] = &node,
	[SLU_KIND_POD] = &pod,
	[SLU_KIND_NAMESPACE] = &namespace,
	[SLU_KIND_PVC] = &pvc,
	[SLU_KIND_PV] = &pv,
	[SLU_KIND_JOB] = &job,
	[SLU_KIND_REPLICASET] = &replicaset,
	[SLU_KIND_STATEFULSET] = &statefulset,
	[SLU_KIND_DEPLOYMENT] = &deployment,
	[SLU_KIND_PRIORITYCLASS] = &priorityclass,
	[SLU_KIND_STORAGECLASS] = &storageclass,
	[SLU_KIND_LEASE] = &lease,
	[SLU_KIND_PODGROUP_X] = &podgroup,
	[SLU_KIND_PODGROUP_SIGS] = &podgroup,
	[SLU_KIND_PODGROUP] = &podgroup,
	[SLU_KIND_PODGROUP_BETA] = &podgroup,
	[SLU_KIND_FLUXJOB] = &fluxjob,
	[SLU_KIND_LIMITRANGE] = &limitrange,
	[SLU_KIND_RUNTIMECLASS] = &runtimeclass,
	[SLU_KIND_RESERVATION] = &reservation,
	[SLU_KIND_CSINODE] = &csinode,
	[SLU_KIND_ATTACHMENT] = &attachment,
	[SLU_KIND_TOPOLOGY] = &topology,
	[SLU_KIND_PARTIAL] = &partial,
};

/* Kinds that have no row are decoded into a struct slu_kreplicaset: a template and how many. */
static const struct slu_klay *layout_of(uint8_t kind)
{
	return layouts[kind] ? layouts[kind] : &replicaset;
}

static uint16_t count_of(const struct slu_klay_field *f, const char *base)
{
	return *(const uint16_t *)(base + f->noff);
}

static size_t element(const struct slu_klay_field *f)
{
	return f->type == SLU_LAY_STRS ? sizeof(char *) : f->sub->size;
}

/* Bytes of all arrays below this struct.  Every element size is a multiple of 8, so no padding. */
static size_t array_bytes(const struct slu_klay *l, const char *base)
{
	size_t n = 0;

	for (const struct slu_klay_field *f = l->f; f->name; f++) {
		if (f->type == SLU_LAY_MSG) {
			n += array_bytes(f->sub, base + f->off);
		} else if (f->type == SLU_LAY_STRS) {
			n += count_of(f, base) * element(f);
		} else if (f->type == SLU_LAY_MSGS) {
			const char *e = *(const char *const *)(base + f->off);

			assert(f->sub->size % 8 == 0);
			for (uint16_t i = 0; i < count_of(f, base); i++, e += f->sub->size)
				n += f->sub->size + array_bytes(f->sub, e);
		}
	}
	return n;
}

static void take_str(struct slu_strpool *p, const char **s)
{
	*s = *s ? slu_strpool_ref_locked(p, *s) : slu_strpool_get_locked(p, "", 0);
}

/* Copy the arrays of `base`, which is itself a copy already, to *room. */
static void move_in(struct slu_strpool *p, const struct slu_klay *l, char *base, char **room)
{
	for (const struct slu_klay_field *f = l->f; f->name; f++) {
		void *at = base + f->off;
		size_t n;
		char *e;

		switch (f->type) {
		case SLU_LAY_STR:
			take_str(p, at);
			break;
		case SLU_LAY_MSG:
			move_in(p, f->sub, at, room);
			break;
		case SLU_LAY_STRS:
		case SLU_LAY_MSGS:
			n = count_of(f, base) * element(f);
			e = *room;
			if (n)
				memcpy(e, *(char **)at, n);
			*(char **)at = n ? e : NULL;
			*room += n;
			for (uint16_t i = 0; i < count_of(f, base); i++, e += element(f)) {
				if (f->type == SLU_LAY_STRS)
					take_str(p, (const char **)e);
				else
					move_in(p, f->sub, e, room);
			}
			break;
		default:
			break;
		}
	}
}

const struct slu_kobj *slu_klay_pack(const struct slu_kobj *raw)
{
	const struct slu_klay *l = layout_of(raw->kind);
	size_t size = l->size + array_bytes(l, (const char *)raw);
	char *block = slu_malloc(size), *room;
	struct slu_kobj *o = (struct slu_kobj *)block;

	if (!block)
		return NULL;
	memcpy(block, raw, l->size);
	room = block + l->size;
	move_in(raw->pool, l, block, &room);
	assert(room == block + size);
	o->refs = 1;
	o->size = (uint32_t)size;
	return o;
}

static void put_strings(struct slu_strpool *p, const struct slu_klay *l, const char *base)
{
	for (const struct slu_klay_field *f = l->f; f->name; f++) {
		const void *at = base + f->off;
		const char *e;

		switch (f->type) {
		case SLU_LAY_STR:
			slu_strpool_put_locked(p, *(const char *const *)at);
			break;
		case SLU_LAY_MSG:
			put_strings(p, f->sub, at);
			break;
		case SLU_LAY_STRS:
		case SLU_LAY_MSGS:
			e = *(const char *const *)at;
			for (uint16_t i = 0; i < count_of(f, base); i++, e += element(f)) {
				if (f->type == SLU_LAY_STRS)
					slu_strpool_put_locked(p, *(const char *const *)e);
				else
					put_strings(p, f->sub, e);
			}
			break;
		default:
			break;
		}
	}
}

const struct slu_kobj *slu_kobj_ref(const struct slu_kobj *o)
{
	if (o)
		atomic_fetch_add_explicit(&((struct slu_kobj *)o)->refs, 1, memory_order_relaxed);
	return o;
}

void slu_kobj_unref(const struct slu_kobj *o)
{
	struct slu_kobj *w = (struct slu_kobj *)o;

	if (!o || atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) != 1)
		return;
	slu_strpool_lock(o->pool);
	put_strings(o->pool, layout_of(o->kind), (const char *)o);
	slu_strpool_unlock(o->pool);
	slu_free(w);
}

static void dump(struct slu_jsonw *w, const struct slu_klay *l, const char *base)
{
	slu_jsonw_obj(w);
	for (const struct slu_klay_field *f = l->f; f->name; f++) {
		const void *at = base + f->off;
		const char *e;

		slu_jsonw_key(w, f->name);
		switch (f->type) {
		case SLU_LAY_STR:
			slu_jsonw_str(w, *(const char *const *)at);
			break;
		case SLU_LAY_BOOL:
			slu_jsonw_bool(w, *(const bool *)at);
			break;
		case SLU_LAY_U8:
			slu_jsonw_i64(w, *(const uint8_t *)at);
			break;
		case SLU_LAY_U32:
			slu_jsonw_i64(w, *(const uint32_t *)at);
			break;
		case SLU_LAY_I32:
			slu_jsonw_i64(w, *(const int32_t *)at);
			break;
		case SLU_LAY_I64:
			slu_jsonw_i64(w, *(const int64_t *)at);
			break;
		case SLU_LAY_U64:
			slu_jsonw_u64(w, *(const uint64_t *)at);
			break;
		case SLU_LAY_MSG:
			dump(w, f->sub, at);
			break;
		default:
			slu_jsonw_arr(w);
			e = *(const char *const *)at;
			for (uint16_t i = 0; i < count_of(f, base); i++, e += element(f)) {
				if (f->type == SLU_LAY_STRS)
					slu_jsonw_str(w, *(const char *const *)e);
				else
					dump(w, f->sub, e);
			}
			slu_jsonw_end_arr(w);
		}
	}
	slu_jsonw_end_obj(w);
}

int slu_kobj_dump(const struct slu_kobj *o, struct slu_buf *out)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);

	dump(&w, layout_of(o->kind), (const char *)o);
	return out->error;
}
