#include "serve/view.h"

#include <stdio.h>
#include <time.h>

static void put_time(struct slu_jsonw *w, const char *key, int64_t us)
{
	char text[40];
	time_t s = (time_t)(us / 1000000);
	struct tm tm;
	size_t n;

	slu_jsonw_key(w, key);
	if (!us) {
		slu_jsonw_null(w);
		return;
	}
	gmtime_r(&s, &tm);
	n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof text - n, us % 1000000 ? ".%06dZ" : "Z", (int)(us % 1000000));
	slu_jsonw_str(w, text);
}

static void put_strings(struct slu_jsonw *w, const char *key, const char **text, uint32_t n)
{
	slu_jsonw_key(w, key);
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < n; i++)
		slu_jsonw_str(w, text[i]);
	slu_jsonw_end_arr(w);
}

static void put_job(const struct slu_snap_job *j, bool members, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	slu_jsonw_ki64(w, "id", (int64_t)j->id);
	slu_jsonw_kstr(w, "namespace", j->ns);
	slu_jsonw_kstr(w, "name", j->name);
	slu_jsonw_kstr(w, "state", j->state);
	slu_jsonw_kstr(w, "queue", j->queue);
	slu_jsonw_kstr(w, "scheduler", j->scheduler);
	slu_jsonw_kstr(w, "user", j->user);
	slu_jsonw_ki64(w, "priority", j->priority);
	slu_jsonw_ki64(w, "size", j->size);
	slu_jsonw_ki64(w, "minSize", j->min);
	slu_jsonw_ki64(w, "ready", j->ready);
	slu_jsonw_ki64(w, "bound", j->bound);
	slu_jsonw_ki64(w, "position", j->position);
	put_time(w, "firstSeen", j->first_seen_us);
	put_time(w, "start", j->start_s * 1000000);
	put_time(w, "end", j->end_s == INT64_MAX ? 0 : j->end_s * 1000000);
	put_time(w, "estimate", j->estimate_s * 1000000);
	slu_jsonw_kbool(w, "promised", j->promised);
	slu_jsonw_ki64(w, "limitSeconds", j->limit_s);
	put_time(w, "begin", j->begin_s * 1000000);
	put_time(w, "deadline", j->deadline_s * 1000000);
	slu_jsonw_kstr(w, "reason", j->reason);
	slu_jsonw_kstr(w, "remedy", j->remedy);
	if (members && j->passed) {
		slu_jsonw_ki64(w, "passers", j->passers);
		put_strings(w, "passedBy", j->passed, j->n_passed);
		put_strings(w, "wouldHelp", j->help, j->n_help);
	}
	if (members) {
		slu_jsonw_key(w, "pods");
		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < j->n_pods; i++) {
			slu_jsonw_obj(w);
			slu_jsonw_kstr(w, "name", j->pod[i].name);
			slu_jsonw_kstr(w, "state", j->pod[i].state);
			slu_jsonw_kstr(w, "node", j->pod[i].node);
			slu_jsonw_end_obj(w);
		}
		slu_jsonw_end_arr(w);
	}
	slu_jsonw_end_obj(w);
}

static void foreign(const struct slu_snap_foreign *f, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	slu_jsonw_ki64(w, "id", (int64_t)f->id);
	slu_jsonw_kstr(w, "namespace", f->ns);
	slu_jsonw_kstr(w, "pod", f->name);
	slu_jsonw_kstr(w, "node", f->node);
	slu_jsonw_kstr(w, "scheduler", f->scheduler);
	slu_jsonw_kstr(w, "needs", f->needs);
	slu_jsonw_kbool(w, "background", f->background);
	slu_jsonw_end_obj(w);
}

void slu_view_jobs(const struct slu_snapshot *s, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	put_time(w, "at", s->at_us);
	slu_jsonw_key(w, "jobs");
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		put_job(&s->job[i], false, w);
	slu_jsonw_end_arr(w);
	if (s->foreign) {
		slu_jsonw_key(w, "foreign");
		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < s->n_foreign; i++)
			foreign(&s->foreign[i], w);
		slu_jsonw_end_arr(w);
	}
	slu_jsonw_end_obj(w);
}

int slu_view_job(const struct slu_snapshot *s, const char *ns, const char *name,
		 struct slu_jsonw *w)
{
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].ns, ns) && !strcmp(s->job[i].name, name)) {
			put_job(&s->job[i], true, w);
			return 0;
		}
	return -ENOENT;
}

void slu_view_nodes(const struct slu_snapshot *s, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	put_time(w, "at", s->at_us);
	slu_jsonw_key(w, "nodes");
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct slu_snap_node *n = &s->node[i];

		slu_jsonw_obj(w);
		slu_jsonw_kstr(w, "name", n->name);
		slu_jsonw_kstr(w, "state", n->state);
		put_time(w, "drainFrom", n->drain_from_s * 1000000);
		put_time(w, "drainUntil", n->drain_to_s == INT64_MAX ? 0 : n->drain_to_s * 1000000);
		slu_jsonw_ki64(w, "gangPods", n->jobs);
		slu_jsonw_ki64(w, "foreignPods", n->foreign);
		slu_jsonw_key(w, "resources");
		slu_jsonw_obj(w);
		for (uint32_t k = 0; k < n->n_amounts; k++) {
			slu_jsonw_key(w, n->amount[k].name);
			slu_jsonw_obj(w);
			slu_jsonw_ki64(w, "total", n->amount[k].total);
			slu_jsonw_ki64(w, "free", n->amount[k].free);
			slu_jsonw_end_obj(w);
		}
		slu_jsonw_end_obj(w);
		slu_jsonw_end_obj(w);
	}
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
}

static void put_names(struct slu_jsonw *w, const char *key, const char *const *name, uint32_t n)
{
	slu_jsonw_key(w, key);
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < n; i++)
		slu_jsonw_str(w, name[i]);
	slu_jsonw_end_arr(w);
}

void slu_view_reservations(const struct slu_snapshot *s, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	put_time(w, "at", s->at_us);
	slu_jsonw_key(w, "reservations");
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < s->n_reservations; i++) {
		const struct slu_snap_reservation *r = &s->reservation[i];

		slu_jsonw_obj(w);
		slu_jsonw_kstr(w, "namespace", r->ns);
		slu_jsonw_kstr(w, "name", r->name);
		slu_jsonw_kstr(w, "phase", r->phase);
		put_time(w, "from", r->from_s * 1000000);
		put_time(w, "until", r->until_s * 1000000);
		slu_jsonw_kstr(w, "every", r->every);
		put_names(w, "nodes", r->node, r->n_nodes);
		put_names(w, "users", r->user, r->n_users);
		slu_jsonw_kstr(w, "message", r->message);
		slu_jsonw_end_obj(w);
	}
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
}

void slu_view_queues(const struct slu_snapshot *s, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	put_time(w, "at", s->at_us);
	slu_jsonw_key(w, "queues");
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < s->n_queues; i++) {
		const struct slu_snap_queue *q = &s->queue[i];

		slu_jsonw_obj(w);
		slu_jsonw_kstr(w, "name", q->name);
		slu_jsonw_kstr(w, "policy", q->policy);
		slu_jsonw_ki64(w, "waiting", q->waiting);
		slu_jsonw_ki64(w, "running", q->running);
		slu_jsonw_ki64(w, "held", q->held);
		slu_jsonw_ki64(w, "blocked", q->blocked);
		slu_jsonw_ki64(w, "never", q->never);
		slu_jsonw_ki64(w, "started", (int64_t)q->started);
		slu_jsonw_ki64(w, "ended", (int64_t)q->ended);
		slu_jsonw_ki64(w, "backfilled", (int64_t)q->backfilled);
		slu_jsonw_end_obj(w);
	}
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
}
