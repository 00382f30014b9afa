/* explain.h — which jobs passed a waiting one, by which rule and with what harm; what would help it.
 *
 * Passed: a job passed this one if it stands behind it in line (or in a queue that is not served before)
 * and started while this one waited.  The last SLU_PASS_KEPT starts of a queue are remembered for that;
 * decisions do not depend on them, so a queue read from a picture begins with none.  Work that ran before
 * the queue began (SLU_EV_RUNNING, after a restart) is remembered by the time of its start; what had ended
 * by then is not.
 *
 * Harm: by how much this job could start earlier, beside all else that runs or is promised, if the other
 * job did not run.  A start beside a promise harms the promised job by 0 s: that is what a promise is.
 * Of a job that has ended only its running time is known: its harm was at most that.
 *
 * Help: each proposal was tried on a fork of the queue (forecast.h) with the change made, all rules in
 * force; the start it got there is part of the answer.
 *
 * An explanation costs a copy of the queue and up to `steps` steps for each proposal, so it is made only
 * when a person asks. */
#pragma once
#include "queue/queue.h"

#define SLU_PASS_KEPT  512u
#define SLU_PASS_SHOWN 8u
#define SLU_HELP_MAX   10u
#define SLU_PASS_NAME  64u

enum slu_pass_rule {
	SLU_PASS_BESIDE,   /* beside the promise of this job */
	SLU_PASS_GAP,      /* the passing job fits a gap that is too small for this one */
	SLU_PASS_SHORTER,  /* the shortest goes first */
	SLU_PASS_PACKED,   /* so that jobs that came together are done sooner */
	SLU_PASS_BALANCED, /* so that the whole queue ends sooner and waits less */
	SLU_PASS_MEMBER,   /* of a gang that was already running */
	SLU_PASS_QUEUE,    /* of another queue */
};
/* A sentence without subject: "fits a gap that is too small for this job". */
const char *slu_pass_rule_text(enum slu_pass_rule r);

struct slu_passer {
	slu_job_id id;
	char name[SLU_PASS_NAME]; /* cut, if need be */
	int64_t at_s;             /* start of the passing job */
	int64_t end_s;            /* its end; SLU_TIME_NONE: it still runs */
	uint32_t slots;
	enum slu_pass_rule rule;
	int64_t harm_s; /* SLU_TIME_EVER: this job has a start only without the passer */
	bool at_most;   /* harm_s is a bound */
};

enum slu_help_kind {
	SLU_HELP_SLOTS,
	SLU_HELP_LIMIT,
	SLU_HELP_QUEUE,
	SLU_HELP_RESERVATION, /* without it: the user learns what the job waits for */
	SLU_HELP_DRAIN,       /* likewise */
};

struct slu_help {
	enum slu_help_kind kind;
	int64_t value;    /* slots in all, or the limit in seconds */
	const char *name; /* of the queue, reservation or drain; borrowed from the queue */
	int64_t start_s;  /* when the job would start then */
};

struct slu_explain {
	uint32_t n_passed; /* jobs that passed, of those remembered */
	uint32_t n_passer; /* shown: the most harmful, then the latest */
	struct slu_passer passer[SLU_PASS_SHOWN];
	int64_t start_s; /* promised, else forecast; SLU_TIME_NONE: not within `steps`, or never */
	bool promised;
	uint32_t n_help; /* changes that would help, the earliest start first */
	struct slu_help help[SLU_HELP_MAX];
};

/* Of a waiting job; of any other the answer is empty.  -ENOENT, -ENOMEM. */
int slu_queue_explain(const struct slu_queue *q, int64_t now_s, slu_job_id id, uint32_t steps,
		      struct slu_explain *out, struct slu_error *err);
/* Each as one line without line end: "job b (2 slots) at 10: ...; delay 0s".  Times of a clock that
 * began at 0 as seconds, others as dates. */
void slu_passer_text(const struct slu_passer *p, char *out, size_t size);
void slu_help_text(const struct slu_help *h, int64_t now_s, char *out, size_t size);
