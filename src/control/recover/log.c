/* The event log: every event of the queue and every decision it makes, kept in the store in
 * the batches that carry jobs and intents, so that any past decision can be replayed.
 *
 * A log begins with an empty queue.  So a new leader begins with an empty queue, too: it replays into that
 * queue the state it has built up as a standby, and the log records this from its first row.
 *
 * A leader may run for months.  When its log has become large or old, or was interrupted, the leader begins
 * another one with a picture of the queue, and the store may delete the old log. */
#include "control/recover/recover.h"

#include "base/clock.h"
#include "control/cluster/cluster.h"

#define IDLE_BYTES  (64u << 10)
#define IDLE_US     5000000      /* how long events that lead to no decision may wait */
#define BACKLOG_MAX (64ll << 20) /* bytes that are not durable yet; beyond this the log stops */

/* When the store has been away for long, stop the log rather than fill the memory. */
static void watch_backlog(struct slu_core *c)
{
	if (slu_intents_durable(c->door, c->recovery->log_mark)) {
		c->recovery->log_durable = c->recovery->log_marked;
		c->recovery->log_mark = c->recovery->log_ticket;
		c->recovery->log_marked = c->rows.bytes;
	}
	if (!slu_qlog_on(c->log) || c->rows.bytes - c->recovery->log_durable < BACKLOG_MAX)
		return;
	slu_qlog_stop(c->log);
	slu_log(SLU_WARN, "event log interrupted: the store has accepted no writes for too long",
		SLU_I64("bytes", c->rows.bytes - c->recovery->log_durable));
}

void core_log_flush(struct slu_core *c, bool all)
{
	const struct slu_buf *b = slu_qlog_bytes(c->log);

	if (!c->door)
		return;
	watch_backlog(c);
	if (b->n &&
	    (all || slu_batch_size(slu_intents_batch(c->door)) || slu_qlog_decisions(c->log) ||
	     b->n >= IDLE_BYTES || c->now_us - c->rows.since_us >= IDLE_US))
		c->rows.bytes += core_log_row(c);
}

/* ---- a new log of a running leader ---- */

/* A log may grow to a quarter of the space or time that the store keeps, so that the store can delete its
 * history by quarters; but no log ends before it is twice as large as its picture. */
static bool log_is_due(const struct slu_core *c)
{
	int64_t most = ((int64_t)c->cfg->store.keep_mb << 20) / 4;
	int64_t since = c->rows.size - c->recovery->log_picture;

	if (!slu_qlog_on(c->log))
		return !c->recovery->log_given_up;
	return c->recovery->log_due || since >= SLU_MAX(most, c->recovery->log_picture) ||
	       (since && c->now_us - c->recovery->log_begun_us >= c->cfg->store.keep_s * 250000);
}

static void begun(struct slu_core *c, int64_t picture)
{
	c->recovery->log_due = false;
	c->rows.size = c->recovery->log_picture = picture;
	c->recovery->log_begun_us = c->now_us;
}

/* Once the beginning of the new log is durable, have the store delete the old ones. */
static void watch_new(struct slu_core *c)
{
	if (c->recovery->log_renewal == CORE_RENEWAL_SENT &&
	    slu_intents_durable(c->door, c->recovery->log_renewal_ticket)) {
		c->recovery->log_renewal = CORE_RENEWAL_NO;
		core_store_keep(c);
	}
	if (c->recovery->log_renewal == CORE_RENEWAL_MADE) {
		c->recovery->log_renewal_ticket = c->recovery->log_ticket;
		c->recovery->log_renewal = CORE_RENEWAL_SENT;
	}
}

bool core_log_renew(struct slu_core *c)
{
	int64_t begin_ns;
	int64_t n = 0;

	watch_new(c);
	if (!c->recovery->log_begun_us) /* the log began before the core had a clock */
		c->recovery->log_begun_us = c->now_us;
	if (!log_is_due(c) || !c->cfg->store.log || !slu_intents_kept(c->door) ||
	    c->recovery->log_renewal != CORE_RENEWAL_NO || c->store != SLU_JOURNAL_OK ||
	    c->recovery->store_health.lost || c->recovery->store_rewrite || !c->recovered ||
	    c->rows.bytes - c->recovery->log_durable >= BACKLOG_MAX / 2)
		return false;
	begin_ns = slu_clock_ns();
	c->rows.bytes += core_log_row(c);
	if (!slu_qlog_on(c->log))
		c->rows.seq++; /* no row has the events since then: the gap makes a reader stop here */
	if (slu_qlog_renew(c->log, c->q) < 0) {
		slu_log(SLU_WARN, "event log interrupted: out of memory");
		return false;
	}
	while (slu_qlog_bytes(c->log)->n)
		n += core_log_row(c);
	begun(c, n);
	c->recovery->log_renewal = CORE_RENEWAL_MADE;
	slu_log(SLU_INFO, "new event log started", SLU_I64("bytes", n),
		SLU_I64("took_us", (slu_clock_ns() - begin_ns) / 1000));
	return true;
}

/* ---- beginning ---- */

/* Make the new queue give resources and levels the numbers they have in the old one. */
static int same_names(const struct slu_queue *old, struct slu_queue *q)
{
	const struct slu_machine *m = slu_queue_machine(old);

	for (uint32_t i = 0; i < slu_machine_resources(m); i++)
		if (slu_queue_resource(q, slu_machine_resource_name(m, i)) != (int)i)
			return -ENOMEM;
	for (uint32_t i = 0; i < slu_machine_levels(m); i++)
		if (slu_queue_level(q, slu_machine_level_name(m, i)) != (int)i)
			return -ENOMEM;
	return 0;
}

/* Tell the new queue the nodes, reservations, shapes and foreign pods of the mirror. */
static void tell_again(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		struct node *n = node_of(e);

		if (n->handle == SLU_NODE_NONE)
			continue;
		n->handle = SLU_NODE_NONE;
		n->drained = false;
		core_node_describe(c, n);
	}
	core_reservations_again(c);
	core_shapes_rebuild(c);
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e)) {
		struct pod *p = pod_of(e);

		if (!p->foreign)
			continue;
		p->foreign = false;
		core_foreign_add(c, p);
	}
}

int core_log_begin(struct slu_core *c, struct slu_error *err)
{
	struct slu_queue_opts opts = core_queue_opts(c);
	struct slu_queue *old = c->q, *q = NULL;
	int rc = slu_queue_new(&opts, &q, err);

	if (rc < 0)
		return rc;
	if (same_names(old, q) < 0) {
		slu_queue_free(q);
		return slu_fail(err, -ENOMEM, "out of memory");
	}
	c->q = q;
	slu_queue_free(old);
	slu_decisions_clear(&c->dec);
	if (c->cfg->store.log && slu_intents_kept(c->door))
		slu_qlog_begin(c->log, &opts);
	c->rows.since_us = c->now_us;
	begun(c, 0);
	rc = core_set_queues(c, err);
	if (!rc)
		tell_again(c);
	return rc;
}
