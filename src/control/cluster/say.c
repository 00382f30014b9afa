/* What is written about one pod: an event, its eviction. */
#include "control/cluster/cluster.h"

#include <stdarg.h>
#include <stdio.h>

void core_tell(struct slu_core *c, struct pod *p, const char *reason, bool warning, const char *fmt,
	       ...)
{
	const struct slu_kmeta *m = &p->k->o.meta;
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_EVENT,
					       .kind = p->stand ? SLU_KIND_JOB : SLU_KIND_POD,
					       .ns = m->ns,
					       .name = m->name,
					       .uid = m->uid,
					       .reporter = p->k->spec.scheduler,
					       .reason = reason,
					       .text = text,
					       .warning = warning });
}

void core_evict(struct slu_core *c, const struct pod *p)
{
	const struct slu_kmeta *m = &p->k->o.meta;

	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_EVICT,
					       .kind = SLU_KIND_POD,
					       .ns = m->ns,
					       .name = m->name,
					       .uid = m->uid });
}
