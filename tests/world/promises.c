/* A promise outlives the daemon that gave it.  The rows of the store say what a new life must know; its first plan of
 * such a job shows whether it does.  Most promises cannot be judged from outside, because much may have happened
 * meanwhile.  This one can: it was due before any other, while no daemon lived, and its room is free. */
#include <sqlite3.h>
#include <stdio.h>

#include "coverage.h"
#include "daemon.h"
#include "queue/log.h"
#include "store/store.h"

static int64_t count(struct world *w, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t n = 0;

	if (sqlite3_prepare_v2(w->disk, sql, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

/* The promise of the store that comes first, unless something else that was decided may need its room. */
void rule_leads(struct world *w)
{
	static const char sql[] = "SELECT id, space, name, planned_s FROM jobs WHERE planned_s > 0"
				  " AND state = ? ORDER BY planned_s, id LIMIT 1";
	sqlite3_stmt *st = NULL;

	w->due = (struct due){ 0 };
	if (w->age < 2 || w->lives || w->stepped_us || w->mixed || w->set_us || w->set.per_user ||
	    w->set.running || count(w, "SELECT COUNT(*) FROM spans") ||
	    count(w, "SELECT COUNT(*) FROM intents WHERE state = 0"))
		return;
	if (sqlite3_prepare_v2(w->disk, sql, -1, &st, NULL) == SQLITE_OK) {
		sqlite3_bind_int(st, 1, SLU_STORE_WAITING);
		if (sqlite3_step(st) == SQLITE_ROW) {
			w->due.job = (uint64_t)sqlite3_column_int64(st, 0);
			snprintf(w->due.ns, sizeof w->due.ns, "%s", sqlite3_column_text(st, 1));
			snprintf(w->due.name, sizeof w->due.name, "%s", sqlite3_column_text(st, 2));
			w->due.planned_s = sqlite3_column_int64(st, 3);
			w->due.lead_us = w->now_us;
		}
	}
	sqlite3_finalize(st);
}

/* It has a place on the node, or keeps one for a member that may come again. */
static bool takes(struct world *w, const struct obj *pod, const char *node)
{
	const struct obj *o = kube_get(w, pod->owner);

	if (strcmp(*pod->pod.node ? pod->pod.node : pod->pod.pin, node) != 0)
		return false;
	if (is_live(pod) && !is_over(pod))
		return true;
	return is_live(o) && !(o->kind == SLU_KIND_JOB && (o->job.complete || o->job.failed_cond));
}

/* Members that could start on the node at once. */
static int32_t fits(struct world *w, const struct obj *node, const struct tmpl *t)
{
	int32_t free = node->node.cpu_m;

	if (!node->node.ready || node->node.cordoned || (node->node.taint && !t->tolerates) ||
	    (*t->pool && strcmp(t->pool, node->node.pool)))
		return 0;
	for (uint32_t i = 0; i < w->by_uid.n; i++) {
		const struct obj *o = (struct obj *)(uintptr_t)w->by_uid.e[i].val;

		if (o->kind == SLU_KIND_POD && takes(w, o, node->name))
			free -= cpu_of(o);
	}
	return SLU_MAX(free, 0) / SLU_MAX(t->cpu_m, 1);
}

/* The Job is as it was promised, its pods are there, and there is room for all of them. */
static bool could_start(struct world *w, const struct obj *job)
{
	int32_t room = 0, there = 0, want = job->job.parallelism;
	const struct tmpl *t = &job->job.t;

	if (job->edited || job->asked || job->deleted_us || job->owner || job->job.suspend ||
	    job->job.done || job->job.succeeded || job->job.failed || t->port || t->limit_m ||
	    *t->claim || *t->runtime || pairs_get(&t->note, "sluice.sh/min-size") ||
	    pairs_get(&t->note, "sluice.sh/after") || job->changed_us + 5 * SECOND > w->due.lead_us)
		return false;
	if (job->job.completions >= 0)
		want = SLU_MIN(want, job->job.completions);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_NODE].n; i++) {
		const struct obj *n = w->obj[SLU_KIND_NODE].p[i];

		if (n->changed_us > w->due.lead_us)
			return false;
		room += fits(w, n, t);
	}
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (o->owner == job->uid)
			there += !*o->pod.node && !o->deleted_us && !o->edited;
		else if (o->changed_us > w->due.lead_us)
			return false;
	}
	return there == want && room >= want;
}

void rule_kept(struct world *w, const struct slu_decision *d)
{
	const struct due due = w->due;
	const struct obj *job;

	if (!due.job || d->job != due.job || (d->kind != SLU_DEC_PLAN && d->kind != SLU_DEC_START))
		return;
	job = kube_find(w, SLU_KIND_JOB, due.ns, due.name);
	if (due.planned_s <= w->now_us / SECOND && job && !clients_hold(w) && !custom_holds(w) &&
	    could_start(w, job)) {
		cover_hit("promise", "due when a daemon starts");
		if (d->kind == SLU_DEC_PLAN && d->start_s > w->now_us / SECOND + 2)
			world_broken(w, "kept",
				     "Job %s was due %" PRId64
				     " s ago and has room, and a new daemon plans it in %" PRId64
				     " s",
				     job->name, w->now_us / SECOND - due.planned_s,
				     d->start_s - w->now_us / SECOND);
	}
	w->due.job = 0;
}
