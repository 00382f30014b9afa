/* The forecast and the plan of a daemon, which has names of its own for what the world calls a node. */
#include "control/report/report.h"

void foretell_anew(struct slu_core *c); /* both as in daemon.h */
void plan_anew(struct slu_core *c);

void plan_anew(struct slu_core *c)
{
	core_apply(c, &(struct slu_event){ .kind = SLU_EV_LOOK });
}

void foretell_anew(struct slu_core *c)
{
	core_foretold_done(c);
	c->reports->foretold = (struct foretold){ 0 };
}
