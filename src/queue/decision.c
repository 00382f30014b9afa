#include "queue/queue_internal.h"

#include <stdarg.h>
#include <stdio.h>

void slu_decisions_clear(struct slu_decisions *d)
{
	d->v.n = d->part.n = d->text.n = 0;
}

void slu_decisions_done(struct slu_decisions *d)
{
	slu_vec_done(&d->v);
	slu_vec_done(&d->part);
	slu_vec_done(&d->text);
}

const char *slu_decision_text(const struct slu_decisions *d, const struct slu_decision *x)
{
	return x->text == UINT32_MAX ? "" : d->text.p + x->text;
}

const char *slu_decision_name(enum slu_decision_kind k)
{
	static const char *const name[] = {
		[SLU_DEC_START] = "start",     [SLU_DEC_PLAN] = "plan",
		[SLU_DEC_STATE] = "state",     [SLU_DEC_NEVER] = "never",
		[SLU_DEC_REFUSED] = "refused", [SLU_DEC_RESIZED] = "resized",
		[SLU_DEC_LOST] = "lost",       [SLU_DEC_EXPIRED] = "expired",
		[SLU_DEC_OVERRUN] = "overrun", [SLU_DEC_MOVED] = "moved",
	};

	return (unsigned)k < SLU_LEN(name) ? name[k] : "?";
}

const char *slu_cause_name(enum slu_cause c)
{
	static const char *const name[] = {
		[SLU_CAUSE_NONE] = "none",           [SLU_CAUSE_NEW] = "new",
		[SLU_CAUSE_EARLY_END] = "early-end", [SLU_CAUSE_REPLAN] = "replan",
		[SLU_CAUSE_GREW] = "machine-grew",   [SLU_CAUSE_NODE_LOST] = "node-lost",
		[SLU_CAUSE_FOREIGN] = "foreign",     [SLU_CAUSE_OVERRUN] = "overrun",
		[SLU_CAUSE_LATE] = "late-pass",      [SLU_CAUSE_OWN] = "own-change",
		[SLU_CAUSE_STARTED] = "started",     [SLU_CAUSE_DROPPED] = "dropped",
	};

	return (unsigned)c < SLU_LEN(name) ? name[c] : "?";
}

const char *slu_how_name(enum slu_how h)
{
	static const char *const name[] = { "immediate", "backfill", "reserved" };

	return (unsigned)h < SLU_LEN(name) ? name[h] : "?";
}

const char *slu_job_state_name(enum slu_job_state s)
{
	static const char *const name[] = { "waiting", "held", "blocked", "never", "running" };

	return (unsigned)s < SLU_LEN(name) ? name[s] : "?";
}

struct slu_decision *queue_decide(struct slu_decisions *out, enum slu_decision_kind kind,
				  slu_job_id job)
{
	struct slu_decision d = { .kind = kind,
				  .job = job,
				  .start_s = SLU_TIME_NONE,
				  .end_s = SLU_TIME_NONE,
				  .was_s = SLU_TIME_NONE,
				  .cause_node = SLU_NODE_NONE,
				  .text = UINT32_MAX };

	if (slu_vec_push(&out->v, d) < 0)
		return NULL;
	return &out->v.p[out->v.n - 1];
}

int queue_decide_parts(struct slu_decisions *out, struct slu_decision *d,
		       const struct slu_gang_part *p, uint32_t n)
{
	if (slu_vec_reserve(&out->part, out->part.n + n) < 0)
		return -ENOMEM;
	d->part = out->part.n;
	d->n_part = n;
	if (n)
		memcpy(out->part.p + out->part.n, p, n * sizeof *p);
	out->part.n += n;
	return 0;
}

int queue_decide_text(struct slu_decisions *out, enum slu_decision_kind kind, slu_job_id job,
		      const char *fmt, ...)
{
	char text[SLU_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	uint32_t n = (uint32_t)strlen(text) + 1;

	if (slu_vec_reserve(&out->text, out->text.n + n) < 0)
		return -ENOMEM;
	struct slu_decision *d = queue_decide(out, kind, job);

	if (!d)
		return -ENOMEM;
	memcpy(out->text.p + out->text.n, text, n);
	d->text = out->text.n;
	out->text.n += n;
	return 0;
}
