/* The queue as the rooms reach it: each event is applied and noted in the log. */
#include "control/frame/frame.h"

#define ROW_BYTES (1u << 20) /* a cycle that notes more than this is kept in several rows */

int64_t core_log_row(struct slu_core *c)
{
	const struct slu_buf *b = slu_qlog_bytes(c->log);
	struct slu_store_event e = { .seq = c->rows.seq + 1,
				     .at_us = c->now_us,
				     .kind = slu_qlog_begins(c->log) ? SLU_STORE_EVENT_BEGIN
								     : SLU_STORE_EVENT_ROW,
				     .data = b->p,
				     .size = b->n };
	int64_t n = (int64_t)b->n;

	if (!n)
		return 0;
	if (slu_batch_put_event(slu_intents_batch(c->door), &e) < 0) {
		slu_qlog_stop(c->log);
		slu_log(SLU_WARN, "event log interrupted: out of memory");
	} else {
		c->rows.seq = e.seq;
		c->rows.size += n;
	}
	slu_qlog_clear(c->log);
	c->rows.since_us = c->now_us;
	return n;
}

int core_apply(struct slu_core *c, struct slu_event *ev)
{
	struct slu_error err = { 0 };
	int rc = slu_qlog_apply(c->log, c->q, c->now_s, ev, &c->dec, &err);

	if (rc < 0)
		slu_log(SLU_ERROR, "queue rejected an event", SLU_I64("kind", ev->kind),
			SLU_I64("job", ev->job), SLU_I64("rc", rc), SLU_STR("err", err.text));
	if (c->door && slu_qlog_bytes(c->log)->n >= ROW_BYTES)
		c->rows.bytes += core_log_row(c);
	return rc;
}

const struct slu_queue_conf *core_queue_conf(const struct slu_core *c, const char *name)
{
	struct slu_queue_view v;

	for (uint32_t i = 0; slu_queue_view(c->q, i, &v) == 0; i++)
		if (!strcmp(v.conf->name, name))
			return v.conf;
	return NULL;
}

/* Queues that the settings name no longer. */
static int remove_queues(struct slu_core *c, struct slu_error *err)
{
	struct slu_queue_view v;
	int rc = 0;

	for (uint32_t i = 0; !rc && slu_queue_view(c->q, i, &v) == 0; i++) {
		struct slu_queue_conf conf = *v.conf;
		struct slu_event ev = { .kind = SLU_EV_QUEUE_SET, .conf = &conf };
		uint32_t k = 0;

		while (k < c->cfg->n_queues && strcmp(c->cfg->queue[k].name, conf.name))
			k++;
		if (k < c->cfg->n_queues || conf.removed)
			continue;
		conf.removed = true;
		slu_log(SLU_WARN, "queue removed; its jobs wait until it is configured again",
			SLU_STR("queue", conf.name), SLU_I64("waiting", v.waiting),
			SLU_I64("running", v.running));
		rc = slu_qlog_apply(c->log, c->q, c->now_s, &ev, &c->dec, err);
	}
	return rc;
}

int core_set_queues(struct slu_core *c, struct slu_error *err)
{
	for (uint32_t i = 0; i < c->cfg->n_queues; i++) {
		const struct slu_config_queue *q = &c->cfg->queue[i];
		struct slu_queue_conf conf = {
			.name = q->name,
			.queue_depth = q->depth,
			.reservation_depth = q->reservation_depth,
			.priority = q->priority,
			.default_duration = q->default_duration_s ? q->default_duration_s
					    : c->cfg->jobs.default_duration_s
						    ? c->cfg->jobs.default_duration_s
						    : SLU_LIMIT_MAX,
			.property = q->node_label,
			.limit = { .max_slots = q->max_size,
				   .max_duration = q->max_duration_s,
				   .max_running = q->max_running,
				   .max_waiting = q->max_waiting,
				   .max_running_user = q->max_running_per_user,
				   .max_waiting_user = q->max_waiting_per_user },
		};
		struct slu_event ev = { .kind = SLU_EV_QUEUE_SET, .conf = &conf };
		int rc = slu_config_policy(q, &conf, err);

		if (!rc)
			rc = slu_qlog_apply(c->log, c->q, c->now_s, &ev, &c->dec, err);
		if (rc < 0)
			return slu_fail_prefix(err, rc, "queue \"%s\"", q->name);
	}
	return remove_queues(c, err);
}

void core_changes(const struct slu_core *c, const char *what, uint32_t may, unsigned from,
		  unsigned to)
{
	if (may >> to & 1)
		return;
	slu_log(SLU_ERROR, "impossible change of state", SLU_STR("of", what), SLU_I64("from", from),
		SLU_I64("to", to));
	if (c->verify)
		abort();
}
