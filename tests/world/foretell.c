/* The forecast of a daemon, which has names of its own for what the world calls a node. */
#include "control/report/report.h"

void foretell_anew(struct slu_core *c); /* as in daemon.h */

void foretell_anew(struct slu_core *c)
{
	core_foretold_done(c);
	c->reports->foretold = (struct foretold){ 0 };
}
