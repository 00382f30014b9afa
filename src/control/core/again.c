/* Recover after memory ran out for a moment.
 *
 * Work that failed for lack of memory was left undone: a group was not settled, the queue was not
 * told, an intent was not recorded, an object did not get into the mirror.  Each of those places simply gives
 * up; only this file makes up for it.  A second later the core checks everything again, and repeats that until
 * a complete check succeeds. */
#include "control/core/again.h"

#include "base/mem.h"
#include "control/cluster/cluster.h"
#include "control/core/objects.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/recover/recover.h"
#include "control/run/run.h"

#define AGAIN_US 1000000

/* Repair a run: the queue may have started or lost its job without the run's knowledge, or the run may
 * have no intent for what was decided. */
static void look_at_run(struct slu_core *c, struct run *r)
{
	struct slu_job_view v;
	int rc = slu_queue_job(c->q, r->id, &v);

	if (r->state == RUN_QUEUED && r->submitted && rc == 0 && v.state == SLU_JOB_RUNNING)
		core_apply(c, &(struct slu_event){ .kind = SLU_EV_TAKE_BACK, .job = r->id });
	else if (r->state == RUN_QUEUED && r->submitted && rc == -ENOENT && !r->refused)
		r->submitted = false;
	else if ((r->state == RUN_INTENT || r->state == RUN_PLACING || r->state == RUN_RUNNING) &&
		 r->n_slot[SLOT_CHOSEN] && !r->waits)
		core_run_intend(c, r);
	if (r->state == RUN_QUEUED && rc == 0 && (v.state == SLU_JOB_HELD) != r->g->on_hold)
		core_run_hold(c, r);
	core_run_settled(c, r);
}

/* A job of the queue without a run: its end could not be reported to the queue. */
struct lost_job {
	uint64_t id;
	bool runs;
};

struct lost {
	struct slu_core *c;
	SLU_VEC(struct lost_job) job;
};

static int find_lost(const struct slu_job_view *v, void *arg)
{
	struct lost *l = arg;

	if (slu_table_find(&l->c->runs->table, &v->id, sizeof v->id))
		return 0;
	return slu_vec_push(&l->job, ((struct lost_job){ v->id, v->state == SLU_JOB_RUNNING }));
}

static void end_lost(struct slu_core *c)
{
	struct lost l = { .c = c };

	(void)slu_queue_each(c->q, find_lost, &l);
	for (uint32_t i = 0; i < l.job.n; i++)
		core_apply(c, &(struct slu_event){ .kind = l.job.p[i].runs ? SLU_EV_END
									   : SLU_EV_CANCEL,
						   .job = l.job.p[i].id,
						   .result = SLU_RESULT_CANCELLED });
	slu_vec_done(&l.job);
}

static void look_again(struct slu_core *c)
{
	slu_log(SLU_WARN, "memory ran out; checking all objects and groups again");
	c->count.memory_failures++;
	core_census_again(c);
	core_mirror_again(c);
	for (struct slu_entry *e = slu_table_next(&c->runs->table, NULL), *next; e; e = next) {
		next = slu_table_next(&c->runs->table, e);
		look_at_run(c, run_of(e));
	}
	end_lost(c);
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e)) {
		core_space_enter(c, group_of(e));
		core_group_dirty(c, group_of(e));
	}
	core_held_space(c, NULL);
	core_due_begin(c, CORE_AT_FLUXJOBS);
}

void core_look_again(struct slu_core *c)
{
	if (core_is_due(c, CORE_AT_MEMORY)) {
		core_due_at(c, CORE_AT_MEMORY, CORE_NEVER);
		look_again(c);
	}
}

void core_memory_watch(struct slu_core *c)
{
	uint64_t n = slu_mem_failures();

	if (n != c->mem_failures)
		core_due_by(c, CORE_AT_MEMORY, c->now_us + AGAIN_US);
	c->mem_failures = n;
}
