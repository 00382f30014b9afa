/* The forecast and the plan of a daemon, which has names of its own for what the world calls a node. */
#include "control/report/report.h"

void foretell_anew(struct slu_core *c); /* all as in daemon.h */
void plan_anew(struct slu_core *c);
bool plan_is_due(struct slu_core *c);

static int is_due(const struct slu_job_view *v, void *arg)
{
	const struct slu_core *c = arg;

	return v->state == SLU_JOB_WAITING && v->planned_s != SLU_TIME_NONE &&
	       v->planned_s <= c->now_s;
}

bool plan_is_due(struct slu_core *c)
{
	return slu_queue_each(c->q, is_due, c);
}

void plan_anew(struct slu_core *c)
{
	core_apply(c, &(struct slu_event){ .kind = SLU_EV_LOOK });
}

void foretell_anew(struct slu_core *c)
{
	core_foretold_done(c);
	c->reports->foretold = (struct foretold){ 0 };
}
