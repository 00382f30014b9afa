/* What must hold, in one place.  A daemon is judged by what it had been told: a bind that was
 * issued less than GRACE after a change arrived may still rest on the old state. */
#include <sqlite3.h>
#include <stdio.h>

#include "control/report/snapshot.h"
#include "control/rules/group.h"
#include "coverage.h"
#include "daemon.h"
#include "queue/log.h"
#include "store/store.h"

#define GRACE        (3 * SECOND / 2)
#define SOON         (SECOND / 2) /* the same for what must stop at once: nobody waits for more news */
#define KEPT_US      (45 * SECOND) /* places of ended members are kept for a while: they count */
#define PART_US      (10 * SECOND) /* a gang may be in part that long, while it is placed or undone */
#define DRIFT        20            /* a daemon's time follows a clock that was set by a twentieth */
#define MOST_AT_REST 40            /* writes of a daemon that has nothing to do, in ten minutes */
#define LENIENT      (2 * SECOND) /* limits count from about when the gang was bound */

struct gang {
	bool bound;       /* a member has been */
	bool sent;        /* a bind of a member has left the daemon */
	int64_t first_us; /* ... at that time, or the first was bound */
	bool whole;       /* all it needs have been, at once */
	uint32_t min;
	int64_t whole_us; /* since when */
	int64_t bound_us; /* the latest of them */
	int64_t ran_us;   /* since when as many as it needs ran at once; 0: they never did */
};

/* ---- gangs, as docs/groups.md defines them ---- */

/* The outermost controller; NULL: none. */
static struct obj *maker(struct world *w, const struct obj *pod)
{
	struct obj *o = kube_get(w, pod->owner), *above = o ? kube_get(w, o->owner) : NULL;

	return above ? above : o;
}

/* What ties pods together beside their controller; NULL: nothing. */
static const char *group_name(const struct obj *pod)
{
	static const char *const key[] = { "sluice.sh/group", "scheduling.x-k8s.io/pod-group",
					   "pod-group.scheduling.sigs.k8s.io",
					   "jobset.sigs.k8s.io/jobset-name" };

	for (size_t i = 0; i < SLU_LEN(key); i++)
		if (pairs_get(&pod->label, key[i]))
			return pairs_get(&pod->label, key[i]);
	return *pod->pod.t.native ? pod->pod.t.native : NULL;
}

/* Its PodGroup, which decides the size; NULL: none. */
static const struct obj *podgroup(struct world *w, const struct obj *pod)
{
	static const struct {
		const char *key;
		enum slu_kkind kind;
	} of[] = { { "scheduling.x-k8s.io/pod-group", SLU_KIND_PODGROUP_X },
		   { "pod-group.scheduling.sigs.k8s.io", SLU_KIND_PODGROUP_SIGS } };

	if (*pod->pod.t.native)
		return kube_find(w, SLU_KIND_PODGROUP_BETA, pod->ns, pod->pod.t.native);
	for (size_t i = 0; i < SLU_LEN(of); i++)
		if (pairs_get(&pod->label, of[i].key))
			return kube_find(w, of[i].kind, pod->ns, pairs_get(&pod->label, of[i].key));
	return NULL;
}

static uint64_t gang_key(struct world *w, const struct obj *pod)
{
	const char *name = group_name(pod);
	const struct obj *o = maker(w, pod);

	if (name)
		return slu_hash_bytes(name, strlen(name)) | UINT64_C(1) << 63;
	return o ? o->uid : pod->uid;
}

uint64_t rule_gang(struct world *w, const struct obj *pod)
{
	return gang_key(w, pod);
}

static struct gang *gang_of(struct world *w, const struct obj *pod)
{
	uint64_t key = gang_key(w, pod), *p = slu_map_get(&w->gangs, key);
	struct gang *g = p ? (struct gang *)(uintptr_t)*p : slu_calloc(1, sizeof *g);

	if (!p && slu_map_put(&w->gangs, key, (uint64_t)(uintptr_t)g) < 0)
		abort();
	return g;
}

/* Members that must start together; 0: it cannot be told. */
static uint32_t needs(struct world *w, const struct obj *pod)
{
	const char *size = pairs_get(&pod->label, "sluice.sh/size");
	const char *least = pairs_get(&pod->note, "sluice.sh/min-size");
	const struct obj *o = maker(w, pod);
	int32_t n = 1;

	const struct obj *g = podgroup(w, pod);

	if (pod->edited || (o && o->edited))
		return 0;
	if (size)
		return (uint32_t)atoi(size);
	if (g)
		return (uint32_t)g->custom.min;
	if (least && !o)
		return (uint32_t)SLU_MAX(atoi(least), 0);
	if (group_name(pod))
		return 0; /* a JobSet whose Jobs come one by one, or a PodGroup that is not there */
	if (o && o->kind == SLU_KIND_JOB) {
		n = o->job.parallelism;
		if (o->job.completions >= 0)
			n = SLU_MIN(n, o->job.completions);
		if (least) /* elastic: at most what its Job makes */
			n = SLU_MIN(n, atoi(least));
	} else if (o && o->kind == SLU_KIND_STATEFULSET && !o->set.parallel) {
		n = 1;
	} else if (o) {
		n = o->set.replicas;
	} else if (least) {
		n = atoi(least);
	}
	return (uint32_t)SLU_MAX(n, 0);
}

/* ---- what the daemon knew ---- */

static bool knew(int64_t told_us, int64_t issued_us)
{
	return told_us && told_us + GRACE <= issued_us;
}

/* It had been told the present state of the object, long enough ago. */
static bool current(const struct obj *o, int by, int64_t issued_us)
{
	return o->told_rv[by] >= o->rv && knew(o->told_change[by], issued_us);
}

/* Whether the pod names our scheduler; the daemon reads its names when it starts. */
static bool is_ours(const struct world *w, const struct obj *pod)
{
	return !strcmp(pod->pod.t.scheduler, w->set.other_name ? "another" : "sluice");
}

/* ---- binding ---- */

static void check_deleted(struct world *w, int by, int64_t issued_us, const struct obj *pod)
{
	const struct obj *o = kube_get(w, pod->owner);

	issued_us += GRACE - SOON;
	if (pod->deleted_us && knew(pod->told_doomed[by], issued_us))
		world_broken(w, "deleted", "pod %s is bound, and is being deleted", pod->name);
	for (; o; o = kube_get(w, o->owner))
		if (o->deleted_us && !(o->fin & FIN_ORPHAN) && knew(o->told_doomed[by], issued_us))
			world_broken(w, "deleted", "pod %s is bound, and its %s is %s", pod->name,
				     slu_kkind_info(o->kind)->kind,
				     is_live(o) ? "being deleted" : "deleted");
}

/* Whether a pod that was let go goes where it is pinned: the default scheduler sees to that.  One that
 * names our scheduler goes nowhere without a bind of ours, and one that names a scheduler that nobody runs
 * (ours had another name when it let the pod go) goes nowhere at all. */
static bool goes(const struct obj *pod)
{
	return !pod->pod.t.gates && !strcmp(pod->pod.t.scheduler, "default-scheduler");
}

/* Bound there, or let go to there. */
static bool is_at(const struct obj *pod, const char *node)
{
	const char *at = *pod->pod.node ? pod->pod.node : goes(pod) ? pod->pod.pin : "";

	return !strcmp(at, node);
}

/* What it placed itself it knows; of what others placed, or a daemon before it whose request was
 * still on its way, it must have been told. */
static bool counts_at(int by, int64_t issued_us, const struct obj *o, const struct obj *node)
{
	bool own = (o->pod.by >= 0 || *o->pod.pin) && !o->pod.late;

	return !is_over(o) && is_at(o, node->name) && (own || knew(o->told_bound[by], issued_us));
}

static void check_room(struct world *w, int by, int64_t issued_us, const struct obj *pod,
		       const struct obj *node)
{
	int64_t sum = cpu_of(pod);

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (o != pod && counts_at(by, issued_us, o, node))
			sum += cpu_of(o);
	}
	if (sum <= node->node.cpu_m)
		return;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (o != pod && counts_at(by, issued_us, o, node))
			world_say(w, "  there is pod %s: %d millicores, %s", o->name, cpu_of(o),
				  *o->pod.node ? "bound" : "let go");
	}
	world_broken(w, "overbooked", "pod %s is bound to %s: %" PRId64 " of %d millicores",
		     pod->name, node->name, sum, node->node.cpu_m);
}

static void check_node(struct world *w, const struct obj *pod, const struct obj *node)
{
	const char *volume = classes_node(w, pod->ns, &pod->pod.t);
	const char *why = node->node.cordoned                         ? "is cordoned"
			  : node->node.taint && !pod->pod.t.tolerates ? "is tainted"
			  : *pod->pod.t.pool && strcmp(pod->pod.t.pool, node->node.pool)
				  ? "is in another pool"
			  : !volume                               ? "lacks its volume yet"
			  : *volume && strcmp(volume, node->name) ? "does not have its volume"
								  : NULL;

	if (why)
		world_broken(w, "eligible", "pod %s is bound to %s, which %s", pod->name,
			     node->name, why);
}

static void check_port(struct world *w, int by, int64_t issued_us, const struct obj *pod,
		       const struct obj *node)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n && pod->pod.t.port; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (o != pod && o->pod.t.port == pod->pod.t.port &&
		    counts_at(by, issued_us, o, node))
			world_broken(w, "port", "pod %s is bound to %s, where %s has its port",
				     pod->name, node->name, o->name);
	}
}

/* The first of a gang: the others must be there. */
static void check_whole(struct world *w, int by, int64_t issued_us, const struct obj *pod)
{
	const struct obj *o = maker(w, pod);
	uint64_t key = gang_key(w, pod);
	uint32_t n = 0, min = needs(w, pod);

	if (o && (!current(o, by, issued_us) || o->deleted_us))
		return;
	for (uint32_t i = 0; i < w->by_uid.n; i++) {
		const struct obj *x = (struct obj *)(uintptr_t)w->by_uid.e[i].val;

		if (x->kind == SLU_KIND_POD && gang_key(w, x) == key)
			n += !knew(x->told_doomed[by], issued_us) || x->pod.phase == SUCCEEDED;
	}
	if (n < min)
		world_broken(w, "whole",
			     "pod %s is the first of its gang to be bound: %u of %u are there",
			     pod->name, n, min);
}

static void note_bound(struct world *w, const struct obj *pod, struct gang *g)
{
	uint64_t key = gang_key(w, pod);
	uint32_t n = 1;

	if (!g->bound)
		g->min = needs(w, pod);
	if (!g->first_us)
		g->first_us = w->now_us;
	g->bound = true;
	g->bound_us = w->now_us;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *x = w->obj[SLU_KIND_POD].p[i];

		n += x != pod && (*x->pod.node || *x->pod.pin || is_over(x)) &&
		     gang_key(w, x) == key;
	}
	if (!g->whole && n >= g->min) {
		g->whole = true;
		g->whole_us = w->now_us;
	}
}

/* It waits for a Job that is there, has pods of its own alive, and is not over. */
static void check_after(struct world *w, int by, int64_t issued_us, const struct obj *pod)
{
	const char *name = pairs_get(&pod->note, "sluice.sh/after");
	const struct obj *o = name ? kube_find(w, SLU_KIND_JOB, pod->ns, name) : NULL;

	if (!o || !strcmp(o->name, pod->owner_name) || o->deleted_us || o->job.complete ||
	    o->job.failed_cond || o->edited || !current(o, by, issued_us))
		return;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *x = w->obj[SLU_KIND_POD].p[i];

		if (x->owner == o->uid && !x->deleted_us && !is_over(x) &&
		    current(x, by, issued_us)) {
			world_broken(
				w, "after",
				"pod %s starts, and %s, which it is to follow, is not over: %s is alive",
				pod->name, name, x->name);
			return;
		}
	}
}

/* At most as many members of an elastic gang at once as it says. */
static void check_most(struct world *w, const struct obj *pod)
{
	const char *most = pairs_get(&pod->note, "sluice.sh/max-size");
	const struct obj *o = maker(w, pod);
	uint64_t key = gang_key(w, pod);
	int n = 1;

	if (!most || pod->edited || pod->orphan || (o && o->edited))
		return;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *x = w->obj[SLU_KIND_POD].p[i];

		n += x != pod && *x->pod.node && !is_over(x) && !x->deleted_us && !x->pod.late &&
		     gang_key(w, x) == key;
	}
	if (n > atoi(most))
		world_broken(w, "most", "pod %s is bound as one of %d, and its gang has at most %s",
			     pod->name, n, most);
}

/* Whoever cannot be over by then does not start; the daemon's clock may be another one. */
static void check_deadline(struct world *w, const struct obj *pod)
{
	const char *text = pairs_get(&pod->note, "sluice.sh/deadline");
	const char *limit = pairs_get(&pod->note, "sluice.sh/duration");
	int64_t at_s = 0;

	if (!text || !limit || w->limits_set || w->stepped_us ||
	    slu_group_parse_time(text, &at_s) < 0)
		return;
	if (w->now_us / SECOND + atoi(limit) > at_s + LENIENT / SECOND)
		world_broken(w, "deadline", "pod %s starts for %s s, and is to be over by %s",
			     pod->name, limit, text);
}

/* Nothing is started that the store does not know of: another life must be able to tell. */
static void check_intent(struct world *w, const struct obj *pod)
{
	sqlite3_stmt *st = NULL;
	char uid[24];
	bool there = false;

	if (!w->age || w->fault.store_forgets)
		return;
	snprintf(uid, sizeof uid, "u%" PRIu64, pod->uid);
	if (sqlite3_prepare_v2(w->disk, "SELECT 1 FROM intent_pods WHERE uid = ?", -1, &st, NULL) ==
	    SQLITE_OK) {
		sqlite3_bind_text(st, 1, uid, -1, SQLITE_STATIC);
		there = sqlite3_step(st) == SQLITE_ROW;
	}
	sqlite3_finalize(st);
	if (!there)
		world_broken(w, "intent", "pod %s is bound, and the store has no intent for it",
			     pod->name);
}

/* A pod that is on its way to a node is not sent to another, unless the server said no. */
static void check_twice(struct world *w, uint64_t life, struct obj *pod, const char *node)
{
	if (w->age >= 3 && *pod->pod.sent && pod->pod.sent_by == life &&
	    strcmp(pod->pod.sent, node))
		world_broken(w, "twice", "pod %s is bound to %s, and a bind to %s is not refused",
			     pod->name, node, pod->pod.sent);
	snprintf(pod->pod.sent, sizeof pod->pod.sent, "%s", node);
	pod->pod.sent_by = life;
}

/* Who names another scheduler is not ours to place. */
static void check_named(struct world *w, const struct obj *pod)
{
	if (w->age >= 3 && !is_ours(w, pod))
		world_broken(w, "scheduler", "pod %s is bound, and names scheduler \"%s\"",
			     pod->name, pod->pod.t.scheduler);
}

void rule_said(struct world *w, int by, const struct obj *o, const char *reason)
{
	static const char *const waits[] = { "FailedScheduling", "NotStarting", "Unschedulable" };

	if (w->age < 3 || !is_live(o) || o->kind != SLU_KIND_POD ||
	    w->now_us < daemon_excuse_us(w, by) + GRACE)
		return;
	for (size_t i = 0; i < SLU_LEN(waits); i++)
		if (!strcmp(reason, waits[i]) && *o->pod.node && knew(o->told_bound[by], w->now_us))
			world_broken(w, "said", "%s is said of pod %s, which is bound to %s",
				     reason, o->name, o->pod.node);
}

void rule_sent(struct world *w, int by, uint64_t life, struct obj *pod, const char *node)
{
	if (!is_live(pod))
		return;
	check_twice(w, life, pod, node);
	if (w->now_us > daemon_excuse_us(w, by) + GRACE)
		check_named(w, pod);
	gang_of(w, pod)->sent = true;
	if (!gang_of(w, pod)->first_us)
		gang_of(w, pod)->first_us = w->now_us;
	check_intent(w, pod);
}

static void check_limits(struct world *w, const struct obj *pod);
static void check_order(struct world *w, int by, int64_t issued_us, const struct obj *pod);

void rule_bind(struct world *w, int by, int64_t issued_us, struct obj *pod, const char *node)
{
	const struct obj *n = kube_find(w, SLU_KIND_NODE, "", node);
	struct gang *g = gang_of(w, pod);

	if (pod->deleted_us || *pod->pod.node)
		return; /* the server refuses it */
	if (!*node)
		world_broken(w, "nowhere", "pod %s is bound to no node", pod->name);
	if (issued_us > daemon_excuse_us(w, by) + GRACE) {
		check_most(w, pod);
		check_deleted(w, by, issued_us, pod);
		if (n && current(n, by, issued_us)) {
			check_room(w, by, issued_us, pod, n);
			check_node(w, pod, n);
			check_port(w, by, issued_us, pod, n);
		}
		if (!g->bound) {
			check_whole(w, by, issued_us, pod);
			check_limits(w, pod);
			check_after(w, by, issued_us, pod);
			check_deadline(w, pod);
			check_order(w, by, issued_us, pod);
		}
	}
	note_bound(w, pod, g);
}

/* A daemon's clock that was set follows slowly.  So long it differs from that of the kubelets, who say when
 * members started: a limit may count from that much earlier, but from no time before the decision. */
static int64_t clocks_differ(const struct world *w, const struct gang *g)
{
	return w->stepped_us
		       ? SLU_MIN((w->now_us - w->stepped_us) / DRIFT, g->whole_us - g->first_us)
		       : 0;
}

void rule_evict(struct world *w, int by, struct obj *pod, uint64_t meant, bool other)
{
	const char *limit = pairs_get(&pod->note, "sluice.sh/duration");
	const struct gang *g = gang_of(w, pod);

	if (pod->deleted_us)
		return; /* it is going already: a late eviction by a daemon that was replaced */
	if ((pod->uid == meant) == other)
		world_broken(w, "evicted", "%s is to be evicted, and the request names %s",
			     pod->name, other ? "another pod" : "one of its name that came later");
	if (other)
		return;
	if (*pod->pod.node && pod->pod.by < 0 && !*pod->pod.pin)
		world_broken(w, "evicted", "pod %s is evicted, and somebody else placed it",
			     pod->name);
	if (!w->restarted && g->whole && limit && pod->pod.phase == RUNNING &&
	    w->now_us + LENIENT + atoi(limit) * SECOND / DRIFT + clocks_differ(w, g) <
		    g->whole_us + atoi(limit) * SECOND)
		world_broken(w, "evicted",
			     "pod %s is evicted %" PRId64
			     " s after its gang was whole, which has %s s",
			     pod->name, (w->now_us - g->whole_us) / SECOND, limit);
}

/* ---- limits of gangs ---- */

void rule_started(struct world *w, const struct obj *pod)
{
	struct gang *g = gang_of(w, pod);
	uint64_t key = gang_key(w, pod);
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *x = w->obj[SLU_KIND_POD].p[i];

		n += (x->pod.phase == RUNNING || x->pod.phase == SUCCEEDED) &&
		     gang_key(w, x) == key;
	}
	if (!g->ran_us && n >= needs(w, pod))
		g->ran_us = w->now_us;
}

/* Seconds after which it may be ended; 0: it has no limit, or people changed it. */
static int64_t limit_of(const struct world *w, const struct obj *pod)
{
	const char *limit = pairs_get(&pod->note, "sluice.sh/duration");

	return limit && !w->limits_set ? atoll(limit) : 0;
}

/* The daemon counts from the time that kubelets report, unless that is before its own decision: if the
 * clocks differ, it may be wrong by as much, and by no more than the pods took to start. */
static int64_t skew_us(const struct world *w, const struct gang *g, int64_t from_us)
{
	return w->stepped_us ? SLU_MIN((w->now_us - w->stepped_us) / DRIFT, from_us - g->first_us)
			     : 0;
}

/* A gang that needs less than it did may be whole since its last member started; 0: it is not. */
static int64_t whole_with_less_us(struct world *w, const struct obj *pod)
{
	uint64_t key = gang_key(w, pod);
	int64_t last_us = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *x = w->obj[SLU_KIND_POD].p[i];

		if (x->pod.phase != RUNNING || gang_key(w, x) != key)
			continue;
		n++;
		last_us = SLU_MAX(last_us, x->pod.start_us);
	}
	return n >= needs(w, pod) ? last_us : 0;
}

/* Members that came later count from the gang's start, or from their own. */
void rule_overdue(struct world *w, const struct obj *pod)
{
	const struct gang *g = is_live(pod) ? gang_of(w, pod) : NULL;
	const struct obj *o = g ? maker(w, pod) : NULL;
	int64_t limit = g ? limit_of(w, pod) : 0, from;

	if (w->age < 2 || !limit || w->restarted || pod->orphan || (o && o->deleted_us))
		return; /* what is being deleted need not be whole */
	from = g->ran_us ? g->ran_us : whole_with_less_us(w, pod);
	if (g->whole && pod->pod.bound_us > g->whole_us && pod->pod.start_us)
		from = from ? SLU_MIN(from, pod->pod.start_us) : pod->pod.start_us;
	if (!from)
		world_broken(w, "limit of a gang",
			     "pod %s is ended after %" PRId64 " s, and its gang never ran whole",
			     pod->name, limit);
	else if (w->now_us + LENIENT + limit * SECOND / DRIFT + skew_us(w, g, from) <
		 from + limit * SECOND)
		world_broken(w, "limit of a gang",
			     "pod %s is ended %" PRId64
			     " s after its gang ran whole, which has %" PRId64 " s",
			     pod->name, (w->now_us - from) / SECOND, limit);
}

/* Where limits are enforced nothing runs for longer, for long. */
static void check_overrun(struct world *w)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n && w->set.enforce; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];
		int64_t limit = limit_of(w, o);
		const struct gang *g = gang_of(w, o);

		if (limit && o->owner_kind == SLU_KIND_JOB && o->pod.phase == RUNNING &&
		    o->pod.by >= 0 && !o->deleted_us && !o->orphan && g->ran_us && g->whole &&
		    o->pod.bound_us <= g->whole_us &&
		    g->ran_us + limit * SECOND + limit * SECOND / DRIFT + 60 * SECOND < w->now_us)
			world_broken(w, "overrun",
				     "pod %s has run for %" PRId64 " s, and its limit is %" PRId64
				     " s",
				     o->name, (w->now_us - o->pod.start_us) / SECOND, limit);
	}
}

/* ---- the plan ---- */

/* A promise moves later for one of these causes, and for no other. */
void rule_decided(struct world *w, const struct slu_decision *d)
{
	static const bool delays[SLU_CAUSE_DROPPED + 1] = {
		[SLU_CAUSE_NODE_LOST] = true, [SLU_CAUSE_FOREIGN] = true,
		[SLU_CAUSE_OVERRUN] = true,   [SLU_CAUSE_LATE] = true,
		[SLU_CAUSE_OWN] = true,       [SLU_CAUSE_DROPPED] = true,
	};

	/* Other settings are a plan of everything anew. */
	if (d->cause == SLU_CAUSE_REPLAN && w->set_us && w->set_us + 30 * SECOND > w->now_us)
		return;
	if (w->age && d->kind == SLU_DEC_PLAN && d->was_s != SLU_TIME_NONE &&
	    d->start_s != SLU_TIME_NONE && d->start_s > d->was_s && !delays[d->cause])
		world_broken(w, "promise",
			     "job %" PRIu64 " was promised %" PRId64 ", now %" PRId64
			     " s later, and the cause is %s",
			     d->job, d->was_s, d->start_s - d->was_s, slu_cause_name(d->cause));
}

/* Whoever starts earlier is told why.  In front of this pass something happened that makes room; a pass that names
 * no cause of its own (replan, of no job) has not been told. */
void rule_earlier(struct world *w, const struct slu_decision *d, const char *happened)
{
	if (happened && d->kind == SLU_DEC_PLAN && d->was_s != SLU_TIME_NONE &&
	    d->start_s < d->was_s && d->cause == SLU_CAUSE_REPLAN && !d->cause_job)
		world_broken(w, "cause",
			     "job %" PRIu64 " starts %" PRId64
			     " s earlier than promised, %s, and no cause is told",
			     d->job, d->was_s - d->start_s, happened);
}

/* What the daemon finds wrong with itself. */
void rule_logged(struct world *w, const char *msg)
{
	static const char *const bug[] = { "plan and cluster disagree on a node", "a bug: " };

	for (size_t i = 0; i < SLU_LEN(bug); i++)
		if (!strncmp(msg, bug[i], strlen(bug[i])))
			world_broken(w, "audit", "the daemon says: %s", msg);
}

/* ---- order and limits of queues ---- */

static int64_t places(struct world *w, const char *ns, const struct tmpl *t)
{
	const char *volume = classes_node(w, ns, t);
	int32_t cpu = SLU_MAX(classes_cpu(w, ns, t), 1);
	int64_t n = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_NODE].n; i++) {
		const struct node *x = &w->obj[SLU_KIND_NODE].p[i]->node;

		if (!volume || (*volume && strcmp(volume, w->obj[SLU_KIND_NODE].p[i]->name)))
			continue;
		if ((!x->taint || t->tolerates) && (!*t->pool || !strcmp(t->pool, x->pool)))
			n += t->port ? x->cpu_m >= cpu : x->cpu_m / cpu;
	}
	return n;
}

/* It would fit the machine if that were empty, as it is: all nodes well. */
static int64_t places_now(struct world *w, const char *ns, const struct tmpl *t)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_NODE].n; i++)
		if (!w->obj[SLU_KIND_NODE].p[i]->node.ready ||
		    w->obj[SLU_KIND_NODE].p[i]->node.cordoned)
			return 0;
	return places(w, ns, t);
}

static const char *queue_of(const struct obj *pod)
{
	const char *q = pairs_get(&pod->label, "sluice.sh/queue");

	return q ? q : "main";
}

/* A member of a gang that was whole, on a node that is still that node. */
static bool counts_as_running(struct world *w, const struct obj *o)
{
	const struct obj *n = kube_find(w, SLU_KIND_NODE, "", o->pod.node);
	const struct gang *g = gang_of(w, o);

	return n && n->created_us < o->pod.bound_us && g->whole;
}

/* Gangs of the queue (and of the namespace) that hold nodes. */
static uint32_t running(struct world *w, const char *queue, const char *ns, uint64_t but)
{
	uint64_t seen[512];
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n && n < SLU_LEN(seen); i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];
		uint64_t key = gang_key(w, o);
		bool again = key == but;

		if (!*o->pod.node || is_over(o) || o->deleted_us || o->orphan || o->pod.by < 0 ||
		    o->pod.late || o->edited || strcmp(queue_of(o), queue) ||
		    (ns && strcmp(o->ns, ns)) || !counts_as_running(w, o))
			continue;
		for (uint32_t k = 0; k < n; k++)
			again |= seen[k] == key;
		if (!again)
			seen[n++] = key;
	}
	return n;
}

static void check_limits(struct world *w, const struct obj *pod)
{
	uint64_t key = gang_key(w, pod);
	uint32_t n;

	if (pod->edited || w->set_us + 5 * SECOND > w->now_us || w->set.renamed || w->set.removed ||
	    w->mixed || pod->orphan)
		return;
	if (w->set.running && !strcmp(queue_of(pod), "other") &&
	    (n = running(w, "other", NULL, key)) >= w->set.running)
		world_broken(w, "limit", "pod %s starts in queue other, where %u of %u gangs run",
			     pod->name, n, w->set.running);
	if (w->set.per_user && !strcmp(queue_of(pod), "main") && !strcmp(pod->ns, "ns") &&
	    (n = running(w, "main", "ns", key)) >= w->set.per_user)
		world_broken(w, "limit", "pod %s starts in queue main, where its user has %u of %u",
			     pod->name, n, w->set.per_user);
}

/* Whoever was whole long before this Job was made, could run and waits: it is overtaken. */
static void check_order(struct world *w, int by, int64_t issued_us, const struct obj *pod)
{
	const struct obj *o = maker(w, pod);

	if (!w->age || w->mixed || w->lives || w->set.policy[0] || strcmp(queue_of(pod), "main") ||
	    !o || o->edited || o->kind != SLU_KIND_JOB || o->owner || o->asked || w->set.renamed ||
	    w->set.removed)
		return;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++) {
		const struct obj *x = w->obj[SLU_KIND_JOB].p[i];
		uint64_t *p = slu_map_get(&w->gangs, x->uid);
		const struct gang *g = p ? (struct gang *)(uintptr_t)*p : NULL;
		uint32_t n = 0, want = (uint32_t)SLU_MAX(x->job.parallelism, 0);

		if (x == o || (g && (g->bound || g->sent)) || x->owner || x->deleted_us ||
		    x->asked || x->edited || strcmp(x->ns, "ns") || strcmp(o->ns, "ns") ||
		    x->job.suspend || pairs_get(&x->job.t.label, "sluice.sh/queue") ||
		    x->created_us + 10 * SECOND > o->created_us ||
		    x->changed_us + 10 * SECOND > o->created_us || x->job.complete ||
		    x->job.failed_cond || !current(x, by, issued_us) || w->set.per_user ||
		    places_now(w, x->ns, &x->job.t) < want)
			continue;
		for (uint32_t k = 0; k < w->obj[SLU_KIND_POD].n; k++) {
			const struct obj *y = w->obj[SLU_KIND_POD].p[k];

			n += y->owner == x->uid && !y->deleted_us && !is_over(y) && !*y->pod.node &&
			     y->created_us + 10 * SECOND < o->created_us && !y->edited;
		}
		if (want && n >= want)
			world_broken(
				w, "order",
				"pod %s of Job %s starts, and Job %s has waited before it was made",
				pod->name, o->name, x->name);
	}
}

/* ---- when all is quiet ---- */

/* A pod came to the node, changed there or went lately: its place may be kept, or news is on its way. */
static bool is_settled(struct world *w, const struct obj *node)
{
	for (uint32_t i = 0; i < w->by_uid.n; i++) {
		const struct obj *o = (struct obj *)(uintptr_t)w->by_uid.e[i].val;

		if (o->kind == SLU_KIND_POD && o->changed_us + KEPT_US > w->now_us &&
		    (!strcmp(o->pod.node, node->name) || !strcmp(o->pod.pin, node->name)))
			return false;
	}
	return node->changed_us + KEPT_US < w->now_us;
}

/* Of pods that were let go to the node, and that their scheduler has not bound: the daemon keeps their
 * room, if it was the daemon that let them go. */
static int64_t let_go(struct world *w, const char *node)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (is_live(o) && !is_over(o) && !*o->pod.node && !o->pod.t.gates &&
		    !strcmp(o->pod.pin, node))
			sum += cpu_of(o);
	}
	return sum;
}

/* `all`: no pod has changed for long; otherwise only nodes where none has are compared. */
static void check_books(struct world *w, const struct slu_snapshot *s, bool all)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_NODE].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_NODE].p[i];
		int64_t free = -1, truth = o->node.cpu_m - kube_used(w, o->name);

		if ((!all && !is_settled(w, o)) || daemon_promised(w, 0, o->name))
			continue;

		for (uint32_t k = 0; k < s->n_nodes; k++)
			for (uint32_t a = 0;
			     !strcmp(s->node[k].name, o->name) && a < s->node[k].n_amounts; a++)
				if (!strcmp(s->node[k].amount[a].name, "cpu"))
					free = s->node[k].amount[a].free;
		if (free > truth || free < truth - let_go(w, o->name))
			world_broken(w, "books",
				     "node %s has %" PRId64
				     " millicores free, the daemon says %" PRId64,
				     o->name, truth, free);
	}
}

static const struct slu_snap_job *snap_job(const struct slu_snapshot *s, const char *name)
{
	for (uint32_t i = 0; s && i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name))
			return &s->job[i];
	return NULL;
}

static const char *gang_name(struct world *w, const struct obj *pod)
{
	const char *name = group_name(pod);
	const struct obj *o = maker(w, pod);

	return name ? name : o ? o->name : *pod->owner_name ? pod->owner_name : pod->name;
}

static bool waits(const struct obj *pod)
{
	return !*pod->pod.node && !pod->deleted_us && !is_over(pod) &&
	       (pod->pod.t.gates == GATE_OURS ||
		(!pod->pod.t.gates && !strcmp(pod->pod.t.scheduler, "sluice")));
}

static void check_known(struct world *w, const struct slu_snapshot *s)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];
		const struct slu_snap_job *j;

		if (!waits(o) || o->orphan || o->edited || o->created_us + 20 * SECOND > w->now_us)
			continue;
		j = snap_job(s, gang_name(w, o));
		if (!j)
			world_broken(w, "lost", "pod %s waits, and the daemon does not know %s",
				     o->name, gang_name(w, o));
	}
}

/* A Job that never was whole, some of whose pods run while others wait. */
static void check_part(struct world *w)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_JOB].p[i];
		uint64_t *p = slu_map_get(&w->gangs, o->uid);
		const struct gang *g = p ? (struct gang *)(uintptr_t)*p : NULL;
		uint32_t run = 0, wait = 0;

		for (uint32_t k = 0; g && k < w->obj[SLU_KIND_POD].n; k++) {
			const struct obj *x = w->obj[SLU_KIND_POD].p[k];

			run += x->owner == o->uid && *x->pod.node && !is_over(x);
			wait += x->owner == o->uid && waits(x);
		}
		if (g && g->bound && !g->whole && !o->deleted_us && run && wait &&
		    g->bound_us + PART_US < w->now_us)
			world_broken(w, "part", "Job %s never was whole: %u run, %u wait", o->name,
				     run, wait);
	}
}

/* A pod changed in the last so many microseconds. */
static bool moved_since(const struct world *w, int64_t us)
{
	const struct wlog *l = &w->log[SLU_KIND_POD];

	return l->line.n && l->line.p[l->line.n - 1].at_us + us > w->now_us;
}

/* ---- the store ---- */

static int replay_row(void *arg, const struct slu_store_event *e)
{
	void **x = arg;

	return slu_replay_row(x[0], e->seq, e->at_us, e->data, e->size, x[1]);
}

/* The log of events, run through another queue, gives the same decisions. */
static void check_replay(struct world *w)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	struct slu_replay *r = NULL;
	struct slu_error err = { 0 }, why = { 0 };
	void *arg[2];
	uint64_t begin = 0;
	int rc = slu_store_open(w->store, SLU_STORE_READONLY, &s, &err);

	if (!rc)
		rc = slu_store_log_begin(s, 0, &begin, &err);
	if (!rc)
		rc = slu_replay_new(&(struct slu_replay_opts){ 0 }, &r);
	arg[0] = r;
	arg[1] = &why;
	if (!rc)
		rc = slu_store_events(s, begin, replay_row, arg, &err);
	if (rc)
		world_broken(w, "replay", "%s", *why.text ? why.text : err.text);
	slu_replay_free(r);
}

static int64_t ask_store(struct world *w, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t n = -1;

	if (sqlite3_prepare_v2(w->disk, sql, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

void rule_commit(struct world *w, int by, int64_t term)
{
	int64_t now = ask_store(w, "SELECT term FROM meta WHERE one = 1");

	if (now > term)
		world_broken(w, "fence", "sluiced %d of term %" PRId64 " writes in term %" PRId64,
			     by, term, now);
}

/* Rows are what the daemon says, and it says what is there. */
static void check_store(struct world *w, const struct slu_snapshot *s)
{
	int64_t rows = ask_store(w, "SELECT COUNT(*) FROM jobs");
	uint32_t ours = 0, pods = w->obj[SLU_KIND_POD].n;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		ours += !is_over(w->obj[SLU_KIND_POD].p[i]);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++) /* stand-ins of those to come */
		if (w->obj[SLU_KIND_JOB].p[i]->job.suspend)
			pods += (uint32_t)SLU_MAX(w->obj[SLU_KIND_JOB].p[i]->job.parallelism, 0);
	for (uint32_t i = 0; i < w->by_uid.n; i++) { /* and those whose end is on its way */
		const struct obj *o = (struct obj *)(uintptr_t)w->by_uid.e[i].val;

		pods += o->kind == SLU_KIND_POD && o->gone_us && o->gone_us + GRACE > w->now_us;
	}
	pods += w->matches * 8;
	ours += w->matches * 8;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_FLUXJOB].n; i++)
		pods += w->obj[SLU_KIND_FLUXJOB].p[i]->custom.own ? 8 : 0;
	if (s->pods > pods)
		world_broken(w, "memory", "the daemon knows %u pods, there are %u", s->pods, pods);
	if (rows > (int64_t)s->n_jobs + 2 || rows > (int64_t)s->groups + 2)
		world_broken(w, "store", "%" PRId64 " jobs are in the store, the daemon knows %u",
			     rows, s->n_jobs);
	if (ask_store(w, "SELECT COUNT(*) FROM intents WHERE state = 0") > (int64_t)ours)
		world_broken(w, "store", "there are more open intents than pods");
}

/* Whoever waits is told why, or when. */
static void check_reasons(struct world *w, const struct slu_snapshot *s)
{
	static const char *const ends[] = { "running", "placing", "over", "starting" };

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct slu_snap_job *j = &s->job[i];
		bool told = *j->reason || j->estimate_s || j->start_s;

		for (size_t k = 0; k < SLU_LEN(ends); k++)
			told |= !strcmp(j->state, ends[k]);
		if (!told && j->first_seen_us + 60 * SECOND < w->now_us)
			world_broken(w, "reason", "%s is %s, and nobody is told why", j->name,
				     j->state);
	}
}

/* A user who has promises has no more of them, with what runs, than may run. */
static void check_promised(struct world *w, const struct slu_snapshot *s)
{
	uint32_t run = 0, wait = 0;

	if (!w->set.per_user || w->mixed || w->set.removed || w->set_us + 60 * SECOND > w->now_us)
		return;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct slu_snap_job *j = &s->job[i];

		if (strcmp(j->queue, "main") != 0 || strcmp(j->ns, "ns") != 0)
			continue;
		wait += !strcmp(j->state, "waiting") && j->promised;
		run += !strcmp(j->state, "running") || !strcmp(j->state, "placing");
	}
	if (wait && run + wait > w->set.per_user)
		world_broken(w, "limit", "%u gangs of a user run and %u are promised, of %u", run,
			     wait, w->set.per_user);
}

static int64_t status_number(const struct obj *o, const char *key)
{
	char name[32];
	const char *at;

	snprintf(name, sizeof name, "\"%s\":", key);
	at = o->custom.status ? strstr(o->custom.status, name) : NULL;
	return at ? atoll(at + strlen(name)) : 0;
}

/* What the statuses of PodGroups say is so; and of held work that is over the FluxJob says that. */
static void check_statuses(struct world *w)
{
	static const enum slu_kkind kind[] = { SLU_KIND_PODGROUP_X, SLU_KIND_PODGROUP_SIGS };

	for (size_t k = 0; k < SLU_LEN(kind); k++)
		for (uint32_t i = 0; i < w->obj[kind[k]].n; i++) {
			const struct obj *o = w->obj[kind[k]].p[i];
			int64_t run = 0;
			bool known = true;

			for (uint32_t p = 0; p < w->obj[SLU_KIND_POD].n; p++) {
				const struct obj *x = w->obj[SLU_KIND_POD].p[p];

				if (podgroup(w, x) != o)
					continue;
				run += x->pod.phase == RUNNING;
				known &= !x->edited && x->changed_us + 30 * SECOND < w->now_us &&
					 x->told_rv[0] == x->rv;
			}
			if (known && o->changed_us + 30 * SECOND < w->now_us && !o->deleted_us &&
			    o->custom.status && status_number(o, "running") != run)
				world_broken(w, "status",
					     "PodGroup %s says that %" PRId64 " run, and %" PRId64
					     " do",
					     o->name, status_number(o, "running"), run);
		}
	for (uint32_t i = 0; i < w->obj[SLU_KIND_FLUXJOB].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_FLUXJOB].p[i];
		const struct obj *j = kube_get(w, o->owner);

		if (is_live(j) && j->kind == SLU_KIND_JOB && !j->edited && !j->deleted_us &&
		    !o->deleted_us && (j->job.complete || j->job.failed_cond) &&
		    j->changed_us + 60 * SECOND < w->now_us && o->custom.status &&
		    strstr(o->custom.status, "\"state\":\"Running\""))
			world_broken(w, "status", "FluxJob %s says Running, and Job %s is over",
				     o->name, j->name);
	}
}

void rule_writes(struct world *w, uint64_t since)
{
	uint64_t lines = 0, n = w->writes - since;

	for (int k = 0; k < SLU_KIND_COUNT; k++)
		lines += w->log[k].line.n;
	if (!w->failed && n > MOST_AT_REST + w->obj[SLU_KIND_POD].n)
		world_broken(w, "writes", "%" PRIu64 " writes while nothing happened", n);
	if (!w->failed && w->writes > 1000 + 4 * lines)
		world_broken(w, "writes", "%" PRIu64 " writes, and %" PRIu64 " changes of objects",
			     w->writes, lines);
	cover_hit("writes at rest", n ? "some" : "none");
}

void rule_quiet(struct world *w, bool replay)
{
	struct slu_snapshot *s = daemon_picture(w, 0);

	if (!s)
		return;
	if (!s->synced || !s->leader || !s->store_ok)
		world_broken(w, "ready", "the daemon is not ready: %s%s",
			     s->synced ? "" : "not synced, ", s->store);
	if ((w->age >= 3 || !moved_since(w, KEPT_US)) && !custom_holds(w) && !clients_hold(w))
		check_books(w, s, !moved_since(w, KEPT_US));
	check_known(w, s);
	if (w->age >= 3) {
		check_reasons(w, s);
		check_statuses(w);
		check_promised(w, s);
	}
	check_part(w);
	if (w->age >= 2)
		check_overrun(w);
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		cover_hit("state", s->job[i].state);
		if (*s->job[i].reason)
			cover_words("said", s->job[i].reason);
	}
	if (w->age) {
		check_store(w, s);
		if (replay)
			check_replay(w);
	}
	slu_snapshot_unref(s);
}

/* ---- everything that can run does ---- */

/* A daemon that had another name let pods of the Job go; now they are ours to bind, and the node they are
 * pinned to may not suit them any more.  What a pod requires can never be loosened. */
static bool has_pinned(struct world *w, const struct obj *job)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (o->owner == job->uid && waits(o) && *o->pod.pin && is_ours(w, o))
			return true;
	}
	return false;
}

static bool job_pends(struct world *w, const struct obj *o)
{
	const struct job *j = &o->job;
	int32_t n = SLU_MIN(j->parallelism, j->completions < 0 ? INT32_MAX : j->completions);

	/* A Job of a JobSet that somebody made again is none of the JobSet's, and still of its gang. */
	if (o->edited || (!o->owner && pairs_get(&j->t.label, "jobset.sigs.k8s.io/jobset-name")))
		return false;
	if (o->owner) /* a JobSet: its Jobs are one gang */
		n *= kube_get(w, o->owner)->jobset.jobs;
	return !o->deleted_us && !j->complete && !j->failed_cond && n &&
	       places(w, o->ns, &j->t) >= n && !has_pinned(w, o);
}

/* Whether the pod names a PodGroup that is gone: the group keeps the size that it was told, which
 * the world does not remember. */
static bool lost_podgroup(struct world *w, const struct obj *pod)
{
	return (*pod->pod.t.native || pairs_get(&pod->label, "scheduling.x-k8s.io/pod-group") ||
		pairs_get(&pod->label, "pod-group.scheduling.sigs.k8s.io")) &&
	       !podgroup(w, pod);
}

/* Bare pods: enough of the group must be left.  Which of its members ended in this life of the group, and which in one
 * before under the same name, only the store's row tells. */
static bool pod_pends(struct world *w, const struct obj *o)
{
	uint64_t key = gang_key(w, o);
	uint32_t n = 0;

	if (!waits(o) || o->owner || o->asked || o->edited || lost_podgroup(w, o) || !needs(w, o) ||
	    places(w, o->ns, &o->pod.t) < needs(w, o))
		return false;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *x = w->obj[SLU_KIND_POD].p[i];

		if (gang_key(w, x) != key)
			continue;
		if (w->forgot && is_over(x))
			return false;
		n += !x->deleted_us;
	}
	return n >= needs(w, o);
}

static const struct obj *pending(struct world *w)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++)
		if (job_pends(w, w->obj[SLU_KIND_JOB].p[i]))
			return w->obj[SLU_KIND_JOB].p[i];
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		if (pod_pends(w, w->obj[SLU_KIND_POD].p[i]))
			return w->obj[SLU_KIND_POD].p[i];
	return NULL;
}

int64_t rule_work_us(struct world *w)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++) {
		const struct job *j = &w->obj[SLU_KIND_JOB].p[i]->job;
		int32_t waves = j->completions / SLU_MAX(j->parallelism, 1) + 1;

		if (!j->complete && !j->failed_cond)
			sum += (j->t.run_s + 10) * (int64_t)waves;
	}
	return sum * SECOND;
}

bool rule_drained(struct world *w)
{
	return !pending(w);
}

void rule_not_drained(struct world *w)
{
	const struct obj *o = pending(w);
	struct slu_snapshot *s = daemon_picture(w, 0);
	const struct slu_snap_job *j = snap_job(s, o->kind == SLU_KIND_POD ? gang_name(w, o)
									   : o->name);

	for (uint32_t i = 0; s && i < s->n_jobs; i++)
		world_say(w, "  the daemon knows %s: %s %s", s->job[i].name, s->job[i].state,
			  s->job[i].reason ? s->job[i].reason : "");
	if (o->kind == SLU_KIND_JOB)
		world_broken(
			w, "drains",
			"Job %s can run and does not: %d active, %d of %d done; the daemon says %s: %s",
			o->name, o->job.active, o->job.succeeded, o->job.completions,
			j ? j->state : "nothing", j ? j->reason : "");
	else
		world_broken(w, "drains", "pod %s can run and does not; the daemon says %s: %s",
			     o->name, j ? j->state : "nothing", j ? j->reason : "");
	slu_snapshot_unref(s);
}

void rule_done(struct world *w)
{
	for (uint32_t i = 0; i < w->gangs.n; i++)
		slu_free((void *)(uintptr_t)w->gangs.e[i].val);
	slu_map_done(&w->gangs);
}
