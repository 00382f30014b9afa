/* Batches: changes that are committed together, copied when they are put in. */
#include "store/batch_internal.h"

struct slu_batch *slu_batch_new(void)
{
	return slu_calloc(1, sizeof(struct slu_batch));
}

void slu_batch_free(struct slu_batch *b)
{
	if (!b)
		return;
	slu_arena_done(&b->mem);
	slu_vec_done(&b->ops);
	slu_free(b);
}

uint32_t slu_batch_size(const struct slu_batch *b)
{
	return b->ops.n;
}

/* Copy the values (and their checksum behind them) and queue the statement. */
static int queue_statement(struct slu_batch *b, enum slu_store_stmt stmt,
			   const struct slu_sql_val *v, uint32_t n, bool sum)
{
	uint32_t total = n + (sum ? 1 : 0);
	struct slu_sql_val *copy = slu_arena_alloc(&b->mem, (total + 1) * sizeof *copy);

	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		copy[i] = v[i];
		if (v[i].type != SLU_SQL_INT) {
			copy[i].p = slu_arena_strndup(&b->mem, v[i].n ? v[i].p : "", v[i].n);
			if (!copy[i].p)
				return -ENOMEM;
		}
	}
	if (sum)
		copy[n] = slu_sql_int(slu_store_sum(v, n));
	return slu_vec_push(&b->ops, (struct op){ stmt, total, copy });
}

#define I(x) slu_sql_int((int64_t)(x))
#define T(x) slu_sql_text((x) ? (x) : "")

int slu_batch_put_job(struct slu_batch *b, const struct slu_store_job *j)
{
	const struct slu_sql_val v[] = {
		I(j->id),       T(j->key),           T(j->space),        T(j->name),
		T(j->object),   T(j->kind),          T(j->user),         T(j->queue),
		I(j->priority), I(j->first_seen_us), I(j->state),        I(j->size),
		I(j->min_size), I(j->max_size),      I(j->current_size), I(j->limit_s),
		I(j->begin_s),  I(j->deadline_s),    I(j->planned_s),    I(j->promised_s),
		I(j->start_s),  I(j->end_s),         T(j->cause),        T(j->spec),
	};

	return queue_statement(b, ST_PUT_JOB, v, SLU_LEN(v), true);
}

int slu_batch_put_pod(struct slu_batch *b, const struct slu_store_pod *p)
{
	const struct slu_sql_val v[] = { I(p->job),  T(p->uid),  T(p->space),  T(p->name),
					 T(p->node), I(p->role), I(p->seen_us) };

	return queue_statement(b, ST_PUT_POD, v, SLU_LEN(v), true);
}

int slu_batch_put_plan(struct slu_batch *b, const struct slu_store_plan *p)
{
	const struct slu_sql_val v[] = { I(p->job), I(p->seq), I(p->at_us), I(p->planned_s),
					 T(p->cause) };

	return queue_statement(b, ST_PUT_PLAN, v, SLU_LEN(v), true);
}

int slu_batch_put_span(struct slu_batch *b, const struct slu_store_span *s)
{
	const struct slu_sql_val v[] = { I(s->id),     T(s->kind), T(s->name),
					 I(s->from_s), I(s->to_s), T(s->spec) };

	return queue_statement(b, ST_PUT_SPAN, v, SLU_LEN(v), true);
}

int slu_batch_put_intent(struct slu_batch *b, const struct slu_store_intent *i)
{
	const struct slu_sql_val v[] = { I(i->id),      I(i->job),   I(i->term),
					 I(i->made_us), I(i->state), T(i->verb) };

	return queue_statement(b, ST_PUT_INTENT, v, SLU_LEN(v), true);
}

int slu_batch_put_intent_pod(struct slu_batch *b, const struct slu_store_intent_pod *p)
{
	const struct slu_sql_val v[] = { I(p->intent), T(p->uid), T(p->space), T(p->name),
					 T(p->node) };

	return queue_statement(b, ST_PUT_INTENT_POD, v, SLU_LEN(v), true);
}

int slu_batch_put_result(struct slu_batch *b, const struct slu_store_result *r)
{
	const struct slu_sql_val v[] = { I(r->job),           T(r->key),     T(r->name),
					 T(r->user),          T(r->queue),   T(r->outcome),
					 I(r->first_seen_us), I(r->start_s), I(r->end_s),
					 I(r->size),          I(r->usage) };

	return queue_statement(b, ST_PUT_RESULT, v, SLU_LEN(v), true);
}

int slu_batch_put_event(struct slu_batch *b, const struct slu_store_event *e)
{
	const struct slu_sql_val v[] = { I(e->seq), I(e->at_us), I(e->kind),
					 slu_sql_blob(e->data, e->size) };

	return queue_statement(b, ST_PUT_EVENT, v, SLU_LEN(v), true);
}

int slu_batch_del_pod(struct slu_batch *b, uint64_t job, const char *uid)
{
	const struct slu_sql_val v[] = { I(job), T(uid) };

	return queue_statement(b, ST_DEL_POD, v, 2, false);
}

int slu_batch_del_span(struct slu_batch *b, uint64_t id)
{
	const struct slu_sql_val v = I(id);

	return queue_statement(b, ST_DEL_SPAN, &v, 1, false);
}

int slu_batch_del_job(struct slu_batch *b, uint64_t id)
{
	const struct slu_sql_val v = I(id);
	uint32_t n = b->ops.n;
	int rc = queue_statement(b, ST_DEL_JOB_PODS, &v, 1, false);

	if (!rc)
		rc = queue_statement(b, ST_DEL_JOB_PLANS, &v, 1, false);
	if (!rc)
		rc = queue_statement(b, ST_DEL_JOB, &v, 1, false);
	if (rc < 0)
		b->ops.n = n;
	return rc;
}

int slu_batch_del_pods(struct slu_batch *b, uint64_t job)
{
	const struct slu_sql_val v = I(job);

	return queue_statement(b, ST_DEL_JOB_PODS, &v, 1, false);
}

int slu_batch_clear(struct slu_batch *b)
{
	static const enum slu_store_stmt stmt[] = { ST_CLEAR_OPEN_PODS, ST_CLEAR_OPEN,
						    ST_CLEAR_PODS,      ST_CLEAR_PLANS,
						    ST_CLEAR_SPANS,     ST_CLEAR_JOBS };
	uint32_t n = b->ops.n;

	for (size_t i = 0; i < SLU_LEN(stmt); i++)
		if (queue_statement(b, stmt[i], NULL, 0, false) < 0) {
			b->ops.n = n;
			return -ENOMEM;
		}
	return 0;
}
