/* What is written about one pod: an event, its eviction. */
#include "control/cluster/cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void core_stamp(char out[32], int64_t s)
{
	time_t t = (time_t)s;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void write_event(struct slu_core *c, const struct slu_rec_write *about, const char *reporter,
			const char *reason, bool warning, const char *text)
{
	struct slu_rec_write w = *about;

	w.verb = SLU_WRITE_EVENT;
	w.reporter = reporter;
	w.reason = reason;
	w.text = text;
	w.warning = warning;
	core_write(c, &w);
}

static void tell_pod(struct slu_core *c, const struct pod *p, const char *reason, bool warning,
		     const char *text)
{
	const struct slu_kmeta *m = &p->k->o.meta;

	write_event(c,
		    &(struct slu_rec_write){ .kind = p->stand ? SLU_KIND_JOB : SLU_KIND_POD,
					     .ns = m->ns,
					     .name = m->name,
					     .uid = m->uid },
		    p->k->spec.scheduler, reason, warning, text);
}

void core_tell(struct slu_core *c, struct pod *p, const char *reason, bool warning, const char *fmt,
	       ...)
{
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tell_pod(c, p, reason, warning, text);
}

void core_tell_maker(struct slu_core *c, struct pod *p, const char *reason, const char *text)
{
	struct slu_group_source src;
	const struct slu_kobj *top;

	tell_pod(c, p, reason, true, text);
	core_source(c, p->k, &src);
	top = src.n_owners ? src.owner[src.n_owners - 1] : NULL;
	if (top && !p->stand) /* a stand-in is the Job already */
		write_event(c,
			    &(struct slu_rec_write){ .kind = (enum slu_kkind)top->kind,
						     .ns = top->meta.ns,
						     .name = top->meta.name,
						     .uid = top->meta.uid },
			    p->k->spec.scheduler, reason, true, text);
}

void core_tell_unschedulable(struct slu_core *c, struct pod *p, const char *text)
{
	const struct slu_kmeta *m = &p->k->o.meta;

	p->told = true;
	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_CONDITION,
					       .kind = SLU_KIND_POD,
					       .ns = m->ns,
					       .name = m->name,
					       .uid = m->uid,
					       .reason = "Unschedulable",
					       .text = text });
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
