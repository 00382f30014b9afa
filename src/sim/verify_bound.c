/* The bound on the wait, checked from submissions, promises and starts alone.
 *
 * "easy" and "fcfs": no later job delays the first in line, and once all jobs before it have started, a job
 * starts within the longest limit L, since by then all running jobs have ended.  With `ahead` jobs in line
 * at its submission it starts within (ahead + 1) * L.  "packed" lets jobs that came up to SLU_BATCH_S later
 * go first: they count as ahead, too.
 *
 * "selective":
 *
 * A job is due once it has waited max_stretch times its limit, or max_wait.  Then
 *   - it has a promise, unless SLU_PROMISES others have one: no job that is due later got it first;
 *   - with `ahead` jobs promised or due before it and no limit longer than L, it starts within
 *     (ahead + 1) * L of that moment: each of those before it starts within L of the one before,
 *     for by then all that ran has ended, and nothing that came later may delay a promise.
 * Traces with failures, holds, priorities or queues of their own have other reasons to wait and are
 * not looked at. */
#include "sim/world_internal.h"

struct due {
	int64_t at_s;
	uint32_t job;
};

struct bound {
	SLU_VEC(struct due) later; /* a heap: not yet due */
	SLU_VEC(struct due) open;  /* due and without a promise, in the order in which they were */
	bool *waits, *told;        /* per job */
	int64_t *latest_s;         /* per job: bound on its start, SLU_TIME_NONE before it is due */
	int64_t longest_s;
	uint32_t promised;
	bool in_order;   /* the first rule above, else the second */
	uint32_t line;   /* waiting */
	uint32_t *ahead; /* per job: waiting when it came */
};

/* Does the rule say when each job of this run is due? */
static bool applies(const struct world *w)
{
	if ((w->o->policy != SLU_POLICY_SELECTIVE && w->o->policy != SLU_POLICY_EASY &&
	     w->o->policy != SLU_POLICY_FCFS) ||
	    w->o->queue_depth || w->t->queue.n || w->t->event.n)
		return false;
	for (uint32_t j = 0; j < w->t->job.n; j++)
		if (w->t->job.p[j].extra || w->t->job.p[j].priority != w->t->job.p[0].priority)
			return false;
	return true;
}

int sim_bound_new(const struct world *w, struct bound **out)
{
	struct bound *b = slu_calloc(1, sizeof *b);
	uint32_t n = w->t->job.n;

	*out = b;
	if (!b)
		return -ENOMEM;
	if (!applies(w) || !n)
		return 0;
	b->waits = slu_calloc(n, sizeof *b->waits);
	b->told = slu_calloc(n, sizeof *b->told);
	b->latest_s = slu_calloc(n, sizeof *b->latest_s);
	b->ahead = slu_calloc(n, sizeof *b->ahead);
	b->in_order = w->o->policy != SLU_POLICY_SELECTIVE;
	if (!b->waits || !b->told || !b->latest_s || !b->ahead)
		return -ENOMEM;
	for (uint32_t j = 0; j < n; j++) {
		b->longest_s = SLU_MAX(b->longest_s, w->s->job.p[j].limit_s);
		b->latest_s[j] = SLU_TIME_NONE;
	}
	return 0;
}

void sim_bound_free(struct bound *b)
{
	if (!b)
		return;
	slu_vec_done(&b->later);
	slu_vec_done(&b->open);
	slu_free(b->waits);
	slu_free(b->told);
	slu_free(b->latest_s);
	slu_free(b->ahead);
	slu_free(b);
}

static bool due_sooner(const struct due *a, const struct due *b)
{
	return a->at_s != b->at_s ? a->at_s < b->at_s : a->job < b->job;
}

static void swap(struct due *a, struct due *b)
{
	struct due tmp = *a;

	*a = *b;
	*b = tmp;
}

int sim_bound_submit(struct bound *b, const struct world *w, uint32_t j)
{
	int64_t stretch = w->o->max_stretch ? w->o->max_stretch : SLU_STRETCH;
	int64_t most_s = w->o->max_wait_s ? w->o->max_wait_s : SLU_WAIT_S;
	int64_t patience_s = stretch * SLU_MAX(w->s->job.p[j].limit_s, (int64_t)10);

	if (!b->waits)
		return 0;
	if (b->in_order) {
		b->waits[j] = true;
		b->ahead[j] = b->line++;
		return 0;
	}
	struct due d = { w->now_s + SLU_MIN(patience_s, most_s), j };

	if (slu_vec_push(&b->later, d) < 0)
		return -ENOMEM;
	b->waits[j] = true;
	for (uint32_t i = b->later.n - 1; i && due_sooner(&b->later.p[i], &b->later.p[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&b->later.p[i], &b->later.p[(i - 1) / 2]);
	return 0;
}

static struct due pop(struct bound *b)
{
	struct due *h = b->later.p, top = h[0];
	uint32_t n = --b->later.n;

	h[0] = h[n];
	for (uint32_t i = 0, c; (c = 2 * i + 1) < n; i = c) {
		if (c + 1 < n && due_sooner(&h[c + 1], &h[c]))
			c++;
		if (!due_sooner(&h[c], &h[i]))
			break;
		swap(&h[c], &h[i]);
	}
	return top;
}

int sim_bound_promise(struct bound *b, const struct world *w, uint32_t j, struct slu_error *err)
{
	if (!b->waits || b->in_order || b->told[j])
		return 0;
	b->told[j] = true;
	b->promised++;
	for (uint32_t i = 0; i < b->open.n; i++) {
		const struct due *d = &b->open.p[i];

		if (d->job == j)
			return 0;
		if (b->waits[d->job] && !b->told[d->job])
			return slu_fail(
				err, -EUCLEAN,
				"verify: at %" PRId64
				" job %u is promised a start before job %u, which was due at "
				"%" PRId64,
				w->now_s, j + 1, d->job + 1, d->at_s);
	}
	return 0;
}

/* Jobs that came after this one and may go first all the same. */
static uint32_t came_with(const struct world *w, uint32_t j)
{
	int64_t until_s = w->s->job.p[j].submit_s + SLU_BATCH_S;
	uint32_t low = j + 1, high = w->t->job.n;

	if (w->o->backfill != SLU_BACKFILL_PACKED)
		return 0;
	while (low < high) { /* in order of submission */
		uint32_t mid = low + (high - low) / 2;

		if (w->s->job.p[mid].submit_s <= until_s)
			low = mid + 1;
		else
			high = mid;
	}
	return low - j - 1;
}

int sim_bound_start(struct bound *b, const struct world *w, uint32_t j, struct slu_error *err)
{
	if (!b->waits)
		return 0;
	if (b->in_order) {
		b->line -= b->waits[j];
		b->latest_s[j] = w->s->job.p[j].submit_s +
				 ((int64_t)b->ahead[j] + came_with(w, j) + 1) * b->longest_s;
	}
	b->waits[j] = false;
	b->promised -= b->told[j];
	b->told[j] = false;
	if (b->latest_s[j] != SLU_TIME_NONE && w->now_s > b->latest_s[j])
		return slu_fail(err, -EUCLEAN,
				"verify: job %u starts at %" PRId64 ", its bound was %" PRId64,
				j + 1, w->now_s, b->latest_s[j]);
	return 0;
}

int sim_bound_step(struct bound *b, const struct world *w, struct slu_error *err)
{
	uint32_t n = 0;

	if (!b->waits || b->in_order)
		return 0;
	for (uint32_t i = 0; i < b->open.n; i++)
		if (b->waits[b->open.p[i].job] && !b->told[b->open.p[i].job])
			b->open.p[n++] = b->open.p[i];
	b->open.n = n;
	while (b->later.n && b->later.p[0].at_s <= w->now_s) {
		struct due d = pop(b);
		int64_t ahead = (int64_t)b->promised + b->open.n - b->told[d.job];

		if (!b->waits[d.job])
			continue;
		b->latest_s[d.job] = d.at_s + (ahead + 1) * b->longest_s;
		if (!b->told[d.job] && slu_vec_push(&b->open, d) < 0)
			return -ENOMEM;
	}
	if (b->open.n && b->promised < SLU_PROMISES)
		return slu_fail(err, -EUCLEAN,
				"verify: at %" PRId64
				" job %u has no promise; it was due at %" PRId64,
				w->now_s, b->open.p[0].job + 1, b->open.p[0].at_s);
	return 0;
}
