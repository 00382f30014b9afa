#include "serve/metrics.h"

#include <stdio.h>
#include <unistd.h>

static void put_metric_head(struct slu_buf *b, const char *name, const char *type, const char *help)
{
	slu_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct slu_buf *b, const char *name, const char *type, const char *help, double v)
{
	put_metric_head(b, name, type, help);
	slu_buf_printf(b, "%s %.17g\n", name, v);
}

/* Label values come from the cluster: escape them. */
static void put_label(struct slu_buf *b, const char *v)
{
	for (; *v; v++) {
		if (*v == '\\' || *v == '"')
			slu_buf_putc(b, '\\');
		if (*v == '\n')
			slu_buf_puts(b, "\\n");
		else
			slu_buf_putc(b, *v);
	}
}

static void from_queues(const struct slu_snapshot *s, struct slu_buf *b)
{
	static const char *const state[] = { "waiting", "held", "blocked", "never", "running" };

	put_metric_head(b, "sluice_queue_jobs", "gauge", "Jobs in each queue by state.");
	for (uint32_t i = 0; i < s->n_queues; i++) {
		const struct slu_snap_queue *q = &s->queue[i];
		uint32_t n[] = { q->waiting, q->held, q->blocked, q->never, q->running };

		for (size_t k = 0; k < SLU_LEN(state); k++) {
			slu_buf_puts(b, "sluice_queue_jobs{queue=\"");
			put_label(b, q->name);
			slu_buf_printf(b, "\",state=\"%s\"} %u\n", state[k], n[k]);
		}
	}
	put_metric_head(b, "sluice_queue_started_total", "counter",
			"Jobs started from each queue.");
	for (uint32_t i = 0; i < s->n_queues; i++) {
		slu_buf_puts(b, "sluice_queue_started_total{queue=\"");
		put_label(b, s->queue[i].name);
		slu_buf_printf(b, "\"} %" PRIu64 "\n", s->queue[i].started);
	}
	put_metric_head(b, "sluice_queue_backfilled_total", "counter",
			"Jobs that started in front of a reservation.");
	for (uint32_t i = 0; i < s->n_queues; i++) {
		slu_buf_puts(b, "sluice_queue_backfilled_total{queue=\"");
		put_label(b, s->queue[i].name);
		slu_buf_printf(b, "\"} %" PRIu64 "\n", s->queue[i].backfilled);
	}
}

static void from_nodes(const struct slu_snapshot *s, struct slu_buf *b)
{
	static const char *const state[] = { "up", "down", "cordoned", "drained" };
	uint32_t n[SLU_LEN(state)] = { 0 };
	struct {
		const char *name;
		double total, free;
	} sum[32] = { { 0 } };
	uint32_t kinds = 0;

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		for (size_t k = 0; k < SLU_LEN(state); k++)
			n[k] += !strcmp(s->node[i].state, state[k]);
		for (uint32_t a = 0; a < s->node[i].n_amounts; a++) {
			const struct slu_snap_amount *x = &s->node[i].amount[a];
			uint32_t k = 0;

			while (k < kinds && strcmp(sum[k].name, x->name))
				k++;
			if (k == SLU_LEN(sum))
				continue;
			if (k == kinds)
				sum[kinds++].name = x->name;
			sum[k].total += (double)x->total;
			sum[k].free += (double)x->free;
		}
	}
	put_metric_head(b, "sluice_nodes", "gauge", "Nodes that Sluice plans with, by state.");
	for (size_t k = 0; k < SLU_LEN(state); k++)
		slu_buf_printf(b, "sluice_nodes{state=\"%s\"} %u\n", state[k], n[k]);
	put_metric_head(b, "sluice_capacity", "gauge",
			"Sum over nodes of each resource (cpu in millicores, the rest in units).");
	for (uint32_t k = 0; k < kinds; k++) {
		slu_buf_puts(b, "sluice_capacity{resource=\"");
		put_label(b, sum[k].name);
		slu_buf_printf(b, "\"} %.17g\n", sum[k].total);
	}
	put_metric_head(
		b, "sluice_free", "gauge",
		"Amount of each resource that is free now (cpu in millicores, the rest in units).");
	for (uint32_t k = 0; k < kinds; k++) {
		slu_buf_puts(b, "sluice_free{resource=\"");
		put_label(b, sum[k].name);
		slu_buf_printf(b, "\"} %.17g\n", sum[k].free);
	}
}

static void from_core(const struct slu_snapshot *s, struct slu_buf *b)
{
	const struct slu_counters *c = &s->count;

	one(b, "sluice_groups", "gauge", "Groups of pods that the daemon knows.", s->groups);
	one(b, "sluice_pods", "gauge", "Pods in the mirror, of all schedulers.", s->pods);
	one(b, "sluice_pods_foreign", "gauge", "Pods of other schedulers that occupy nodes.",
	    s->pods_foreign);
	one(b, "sluice_gangs_started_total", "counter", "Gangs that Sluice decided to start.",
	    (double)c->gangs_started);
	one(b, "sluice_gangs_ended_total", "counter", "Gangs ended.", (double)c->gangs_ended);
	one(b, "sluice_gangs_taken_back_total", "counter",
	    "Gangs that could not be bound and wait again.", (double)c->taken_back);
	one(b, "sluice_pods_bound_total", "counter", "Pods bound.", (double)c->pods_bound);
	one(b, "sluice_pods_released_total", "counter",
	    "Held pods pinned to their nodes and freed of the gate.", (double)c->pods_released);
	one(b, "sluice_pods_refused_total", "counter",
	    "Released pods that the scheduler they name refused on their nodes.",
	    (double)c->pods_refused);
	one(b, "sluice_bind_failures_total", "counter", "Bindings that failed for good.",
	    (double)c->bind_failures);
	one(b, "sluice_refused_total", "counter", "Groups refused because their objects are wrong.",
	    (double)c->refused_objects);
	one(b, "sluice_audits_total", "counter", "Comparisons of the books with the cluster.",
	    (double)c->audits);
	one(b, "sluice_audit_lists_total", "counter",
	    "Fresh lists of pods or nodes compared with the mirror.", (double)c->audit_lists);
	one(b, "sluice_audit_differences_total", "counter",
	    "Differences that these comparisons found.", (double)c->audit_differences);
	one(b, "sluice_overlooked_jobs_total", "counter",
	    "Jobs that could start but that no event would have made the queue look at: a bug.",
	    (double)c->overlooked);
	one(b, "sluice_memory_failures_total", "counter",
	    "Times that memory ran out, after which the core checks everything again.",
	    (double)c->memory_failures);
	one(b, "sluice_cycles_total", "counter", "Scheduling cycles.", (double)c->cycles);
	one(b, "sluice_cycle_seconds_total", "counter", "Time spent in scheduling cycles.",
	    (double)c->cycle_ns / 1e9);
	one(b, "sluice_cycle_seconds_max", "gauge", "The longest cycle so far.",
	    (double)c->cycle_ns_max / 1e9);
	one(b, "sluice_start_lists_seconds", "gauge",
	    "Time from the first object to the end of the last list, at start.",
	    (double)c->lists_us / 1e6);
	one(b, "sluice_start_cycle_seconds", "gauge", "Time of the first cycle after the lists.",
	    (double)c->first_cycle_us / 1e6);
	one(b, "sluice_leader", "gauge", "1 while this replica decides.", s->leader);
	one(b, "sluice_store_up", "gauge", "1 while the store takes changes.",
	    !strcmp(s->store, "ok"));
	one(b, "sluice_store_waiting", "gauge", "Batches of changes that are not durable yet.",
	    s->store_waiting);
	one(b, "sluice_store_commits_total", "counter", "Transactions of the store.",
	    (double)s->store_commits);
	one(b, "sluice_store_failures_total", "counter", "Transactions that failed.",
	    (double)s->store_failures);
}

static void from_io(const struct slu_metrics_from *f, struct slu_buf *b)
{
	struct slu_place_stats p;
	struct slu_kube_stats k;
	struct slu_feed_stats feed;

	slu_place_stats(f->place, &p);
	slu_kube_client_stats(f->client, &k);
	slu_feed_stats(f->feed, &feed);
	put_metric_head(b, "sluice_writes_total", "counter", "Writes to the cluster by kind.");
	for (int i = 0; i < SLU_WRITE_COUNT; i++)
		slu_buf_printf(b, "sluice_writes_total{verb=\"%s\"} %" PRIu64 "\n",
			       slu_write_name((enum slu_write)i), p.sent[i]);
	slu_buf_printf(b, "sluice_writes_total{verb=\"scheduled-event\"} %" PRIu64 "\n",
		       p.scheduled_events);
	put_metric_head(b, "sluice_write_failures_total", "counter",
			"Writes that failed, by kind.");
	for (int i = 0; i < SLU_WRITE_COUNT; i++)
		slu_buf_printf(b, "sluice_write_failures_total{verb=\"%s\"} %" PRIu64 "\n",
			       slu_write_name((enum slu_write)i), p.failed[i]);
	one(b, "sluice_writes_under_way", "gauge", "Writes not answered yet.", p.under_way);
	one(b, "sluice_writes_waiting", "gauge",
	    "Writes not sent yet, not counting Scheduled events.", p.waiting);
	one(b, "sluice_writes_window", "gauge", "Writes that may be under way at once.", p.window);
	one(b, "sluice_writes_window_halved_total", "counter",
	    "Times that the window was halved to spare the API server.", (double)p.halvings);
	one(b, "sluice_scheduled_events_waiting", "gauge", "Scheduled events not sent yet.",
	    p.events_waiting);
	one(b, "sluice_scheduled_events_lost_total", "counter",
	    "Scheduled events that could not be written.", (double)p.events_lost);
	one(b, "sluice_bindings_looked_up_total", "counter",
	    "Bindings without an answer whose outcome was looked up.", (double)p.lookups);
	one(b, "sluice_watch_changes_total", "counter",
	    "Changes of objects that the watches reported.", (double)feed.changes);
	one(b, "sluice_watch_pauses_total", "counter", "Times that the daemon paused its watches.",
	    (double)feed.pauses);
	one(b, "sluice_watch_unreadable_total", "counter",
	    "Objects left out because they cannot be read; /readyz names them.",
	    (double)feed.unreadable);
	one(b, "sluice_api_retries_total", "counter", "Requests sent again.", (double)k.retries);
	one(b, "sluice_api_throttled_total", "counter", "429 answers from the API server.",
	    (double)k.throttled);
	one(b, "sluice_io_idle_seconds_total", "counter", "Time the io thread waited for work.",
	    (double)slu_loop_idle_ns(f->loop) / 1e9);
}

static void from_process(struct slu_buf *b)
{
	char line[200] = "";
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fgets(line, sizeof line, f))
		sscanf(line, "%*d %ld", &pages);
	if (f)
		fclose(f);
	one(b, "process_resident_memory_bytes", "gauge", "Resident memory.",
	    (double)pages * (double)sysconf(_SC_PAGESIZE));
}

void slu_metrics_write(const struct slu_metrics_from *from, struct slu_buf *out)
{
	put_metric_head(out, "sluice_build_info", "gauge", "Version of the program.");
	slu_buf_printf(out, "sluice_build_info{version=\"%s\"} 1\n", SLU_VERSION);
	if (from->snap) {
		from_queues(from->snap, out);
		from_nodes(from->snap, out);
		from_core(from->snap, out);
	}
	from_io(from, out);
	from_process(out);
}
