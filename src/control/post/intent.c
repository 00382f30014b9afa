#include "control/post/intent.h"

#include "base/crash.h"

#define OPEN_MAX 50000u /* operations of a batch that waits for room in the line */

struct slu_intents {
	struct slu_journal *journal; /* NULL: the cluster is the only memory */
	struct slu_batch *batch;
	int64_t term;
	uint64_t last; /* ticket of the last batch sent */
};

int slu_intents_new(const struct slu_journal_setup *setup, struct slu_intents **out,
		    struct slu_error *err)
{
	struct slu_intents *d = slu_calloc(1, sizeof *d);
	int rc = 0;

	if (d)
		d->batch = slu_batch_new();
	if (!d || !d->batch) {
		slu_free(d);
		return slu_fail(err, -ENOMEM, "out of memory");
	}
	d->term = setup->term;
	if (setup->url && strcmp(setup->url, "memory:"))
		rc = slu_journal_new(setup, &d->journal);
	if (rc < 0) {
		slu_batch_free(d->batch);
		slu_free(d);
		return slu_fail(err, rc, "store: cannot start its thread");
	}
	*out = d;
	return 0;
}

void slu_intents_free(struct slu_intents *d, int wait_ms)
{
	uint64_t ticket;

	if (!d)
		return;
	if (d->journal) {
		/* A batch that cannot be sent is lost with the process; the next one reads the
		 * cluster. */
		(void)(slu_intents_send(d, &ticket) < 0);
		slu_journal_free(d->journal, wait_ms);
	}
	slu_batch_free(d->batch);
	slu_free(d);
}

bool slu_intents_kept(const struct slu_intents *d)
{
	return d && d->journal;
}

struct slu_batch *slu_intents_batch(struct slu_intents *d)
{
	return d->batch;
}

int slu_intent_propose(struct slu_intents *d, uint64_t intent, uint64_t job, int64_t now_us,
		       const char *verb, const struct slu_intent_pod *pod, uint32_t n)
{
	struct slu_store_intent i = { .id = intent,
				      .job = job,
				      .term = d->term,
				      .made_us = now_us,
				      .state = SLU_INTENT_OPEN,
				      .verb = verb };
	int rc = slu_batch_put_intent(d->batch, &i);

	for (uint32_t k = 0; !rc && k < n; k++) {
		struct slu_store_intent_pod p = { .intent = intent,
						  .uid = pod[k].uid,
						  .space = pod[k].space,
						  .name = pod[k].name,
						  .node = pod[k].node };

		rc = slu_batch_put_intent_pod(d->batch, &p);
	}
	return rc;
}

int slu_intent_settle(struct slu_intents *d, uint64_t intent, uint64_t job, int64_t made_us,
		      const char *verb, enum slu_store_intent_state how)
{
	struct slu_store_intent i = { .id = intent,
				      .job = job,
				      .term = d->term,
				      .made_us = made_us,
				      .state = how,
				      .verb = verb };

	return slu_batch_put_intent(d->batch, &i);
}

int slu_intents_send(struct slu_intents *d, uint64_t *ticket)
{
	struct slu_batch *next;
	int rc;

	if (!slu_batch_size(d->batch)) {
		*ticket = d->last;
		return 0;
	}
	next = slu_batch_new();
	if (!next)
		return -ENOMEM;
	if (!d->journal) {
		slu_batch_free(d->batch);
		d->batch = next;
		*ticket = ++d->last;
		return 0;
	}
	/* The journal frees a batch that it refuses, so look for room first. */
	struct slu_journal_health h;
	slu_journal_health(d->journal, &h);
	if (h.state == SLU_JOURNAL_FENCED || h.state == SLU_JOURNAL_BROKEN || h.waiting >= 4000) {
		if (slu_batch_size(d->batch) > OPEN_MAX) {
			slu_batch_free(d->batch);
			d->batch = next;
			next = NULL;
			slu_journal_lost(d->journal, true);
		}
		slu_batch_free(next);
		return h.state == SLU_JOURNAL_FENCED   ? -ESTALE
		       : h.state == SLU_JOURNAL_BROKEN ? -EIO
						       : -EAGAIN;
	}
	slu_crash_point("journal submit: before");
	rc = slu_journal_submit(d->journal, d->batch, &d->last);
	slu_crash_point("journal submit: after");
	d->batch = next;
	if (rc < 0) {
		slu_journal_lost(d->journal, true);
		return rc;
	}
	*ticket = d->last;
	return 0;
}

void slu_intents_lost(struct slu_intents *d, bool lost)
{
	if (d->journal)
		slu_journal_lost(d->journal, lost);
}

void slu_intents_keep(struct slu_intents *d, int64_t before_us, int64_t bytes, bool log)
{
	if (d->journal)
		slu_journal_keep(d->journal, before_us, bytes, log);
}

bool slu_intents_durable(const struct slu_intents *d, uint64_t ticket)
{
	return !d->journal || slu_journal_durable(d->journal) >= ticket;
}

void slu_intents_health(struct slu_intents *d, struct slu_journal_health *out)
{
	if (d->journal)
		slu_journal_health(d->journal, out);
	else
		*out = (struct slu_journal_health){ .state = SLU_JOURNAL_OK };
	if (out->term)
		d->term = out->term;
}
