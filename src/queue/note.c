/* The last starts of a queue, to explain which jobs passed a waiting one. */
#include "queue/queue_internal.h"

#include <stdio.h>

int queue_notes_new(struct slu_queue *q)
{
	q->note = slu_calloc(SLU_PASS_KEPT, sizeof *q->note);
	return q->note ? 0 : -ENOMEM;
}

static struct note *note_of(const struct slu_queue *q, const struct job *job)
{
	struct note *n = &q->note[job->note % SLU_PASS_KEPT];

	return n->id == job->id && n->seq == job->note ? n : NULL;
}

void queue_note_start(struct slu_queue *q, uint32_t j, uint32_t slots, bool told)
{
	struct job *job = &q->job.p[j];
	struct note *n = &q->note[q->notes % SLU_PASS_KEPT];

	*n = (struct note){ .id = job->id,
			    .seq = q->notes,
			    .at_s = job->start_s,
			    .end_s = SLU_TIME_NONE,
			    .priority = job->priority,
			    .first_seen_us = job->first_seen_us,
			    .limit_s = job->limit_s,
			    .queue = job->queue,
			    .slots = slots,
			    .member = job->flags & JOB_MEMBER,
			    .told = told,
			    .played = queue_pass_plays(&q->sub.p[job->queue]) };
	snprintf(n->name, sizeof n->name, "%s", job_name(job));
	job->note = q->notes++;
}

void queue_note_end(struct slu_queue *q, uint32_t j)
{
	struct note *n = note_of(q, &q->job.p[j]);

	if (n)
		n->end_s = q->now_s;
}

void queue_note_undo(struct slu_queue *q, uint32_t j)
{
	struct note *n = note_of(q, &q->job.p[j]);

	if (n)
		n->id = 0;
}
