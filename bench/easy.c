/* easy.c — EASY that only counts processors, by the rules of two simulators, beside ours.
 *
 *	bench-easy [--jobs] LOG PROCESSORS
 *
 * What happens within one second decides chains of starts in a log with many jobs that run to their limit.
 * The rules of the published study (pyss, the simulator of Gaussier and others): submissions before ends; one pass for each; and a
 * job's processors are free from the second on in which its limit ends, whether or not its end has been handled, for its books
 * are a table of planned times.  Ours: ends before submissions, one pass for each; what runs holds its processors until its end is
 * reported, as in a cluster; and once the second of the first in line has come, what comes free in it is kept for that job.
 *
 * Prints the average bounded slowdown of `order` and of counting by both sets of rules, how many starts differ, and who starts at
 * another time in the first such second (--jobs: all).  Counting by our rules differs from `order` only where it
 * matters which nodes a promise holds, so the difference between the two sets of rules is the difference to the published figure. */
#include "base/error.h"
#include "sim/load.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct event {
	int64_t at_s, seq;
	bool end;
	uint32_t job;
};

struct running {
	int64_t until_s; /* by its limit */
	uint32_t job;
};

struct model {
	const struct slu_trace *t;
	bool ours; /* by our rules, else by the published ones */
	int64_t procs, seq;
	int64_t *start_s;
	struct event *heap;
	struct running *run; /* by until_s */
	uint32_t *line;
	uint32_t n_heap, n_run, n_line;
};

static int64_t wide(const struct model *m, uint32_t j)
{
	return slu_trace_slots(m->t, m->t->job.p[j].req);
}

static bool before(const struct model *m, const struct event *a, const struct event *b)
{
	if (a->at_s != b->at_s)
		return a->at_s < b->at_s;
	if (a->end != b->end)
		return a->end == m->ours;
	return m->ours && a->end ? a->job < b->job : a->seq < b->seq;
}

static void push(struct model *m, struct event e)
{
	uint32_t i = m->n_heap++;

	for (; i && before(m, &e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = e;
}

static struct event pop(struct model *m)
{
	struct event top = m->heap[0], e = m->heap[--m->n_heap];
	uint32_t i = 0;

	for (uint32_t c; (c = 2 * i + 1) < m->n_heap; i = c) {
		if (c + 1 < m->n_heap && before(m, &m->heap[c + 1], &m->heap[c]))
			c++;
		if (!before(m, &m->heap[c], &e))
			break;
		m->heap[i] = m->heap[c];
	}
	m->heap[i] = e;
	return top;
}

static void start(struct model *m, uint32_t j, int64_t now_s)
{
	const struct slu_trace_job *job = &m->t->job.p[j];
	struct running r = { now_s + job->limit_s, j };
	uint32_t i = m->n_run++;

	for (; i && m->run[i - 1].until_s > r.until_s; i--)
		m->run[i] = m->run[i - 1];
	m->run[i] = r;
	m->start_s[j] = now_s;
	push(m, (struct event){ now_s + job->run_s, ++m->seq, true, j });
}

static int64_t free_at(const struct model *m, int64_t now_s)
{
	int64_t n = m->procs;

	for (uint32_t i = 0; i < m->n_run; i++)
		n -= m->ours || m->run[i].until_s > now_s ? wide(m, m->run[i].job) : 0;
	return n;
}

static void pass(struct model *m, int64_t now_s)
{
	int64_t room = free_at(m, now_s), then_s = INT64_MAX, beside;
	uint32_t first = 0, kept = 1;

	for (; first < m->n_line && wide(m, m->line[first]) <= room; first++) {
		room -= wide(m, m->line[first]);
		start(m, m->line[first], now_s);
	}
	m->n_line -= first;
	memmove(m->line, m->line + first, m->n_line * sizeof *m->line);
	if (m->n_line < 2)
		return;
	beside = room - wide(m, m->line[0]);
	for (uint32_t i = 0; i < m->n_run && (beside < 0 || m->run[i].until_s == then_s); i++)
		if (m->ours || m->run[i].until_s > now_s) {
			beside += wide(m, m->run[i].job);
			then_s = m->run[i].until_s;
		}
	/* Its second has come: what comes free in it is kept for the first in line. */
	if (m->ours && then_s <= now_s)
		return;
	for (uint32_t i = 1; i < m->n_line; i++) {
		uint32_t j = m->line[i];
		bool over = now_s + m->t->job.p[j].limit_s <= then_s;

		if (wide(m, j) > room || (!over && wide(m, j) > beside)) {
			m->line[kept++] = j;
			continue;
		}
		beside -= over ? 0 : wide(m, j);
		room -= wide(m, j);
		start(m, j, now_s);
	}
	m->n_line = kept;
}

static void ended(struct model *m, uint32_t j)
{
	uint32_t i = 0;

	while (m->run[i].job != j)
		i++;
	memmove(m->run + i, m->run + i + 1, (--m->n_run - i) * sizeof *m->run);
}

static double play(struct model *m)
{
	uint32_t n = m->t->job.n;
	double sum = 0;

	for (uint32_t j = 0; j < n; j++)
		push(m, (struct event){ m->t->job.p[j].submit_s, ++m->seq, false, j });
	while (m->n_heap) {
		struct event e = pop(m);

		if (e.end)
			ended(m, e.job);
		else
			m->line[m->n_line++] = e.job;
		pass(m, e.at_s);
	}
	for (uint32_t j = 0; j < n; j++)
		sum += slu_bounded_slowdown(m->start_s[j] - m->t->job.p[j].submit_s,
					    m->t->job.p[j].run_s);
	return n ? sum / n : 0;
}

/* How many starts differ, and the first second in which one does. */
static uint32_t differ(const struct model *m, const struct slu_sim *s, int64_t *first_s)
{
	uint32_t n = 0;

	*first_s = INT64_MAX;
	for (uint32_t j = 0; j < m->t->job.n; j++)
		if (m->start_s[j] != s->job.p[j].start_s) {
			n++;
			*first_s = SLU_MIN(*first_s, m->start_s[j]);
			*first_s = SLU_MIN(*first_s, s->job.p[j].start_s);
		}
	return n;
}

/* The jobs that start at another time when counted: all, or those of the first second. */
static void list(const struct model *m, const struct slu_sim *s, int64_t first_s, bool all)
{
	for (uint32_t j = 0; j < m->t->job.n; j++)
		if (m->start_s[j] != s->job.p[j].start_s &&
		    (all || m->start_s[j] == first_s || s->job.p[j].start_s == first_s))
			printf("  job %" PRIu64 " of %" PRId64 ": counted %" PRId64
			       ", `order` %" PRId64 "\n",
			       m->t->job.p[j].id, wide(m, j), m->start_s[j], s->job.p[j].start_s);
}

static void compare(const struct model *m, const struct slu_sim *s, bool all)
{
	int64_t first_s;
	uint32_t n = differ(m, s, &first_s), limit = 0;

	printf("starts that differ from `order`: %u of %u\n", n, m->t->job.n);
	if (!n)
		return;
	for (uint32_t j = 0; j < m->t->job.n; j++) {
		const struct slu_trace_job *job = &m->t->job.p[j];

		limit += job->run_s == job->limit_s && m->start_s[j] + job->run_s == first_s;
	}
	printf("first at %" PRId64 "; %u jobs end at their limit in that second\n", first_s, limit);
	list(m, s, first_s, all);
}

/* 0, or 1 without memory. */
static int model(const struct slu_trace *t, int64_t procs, bool ours, const struct slu_sim *sim,
		 bool all)
{
	struct model m = { .t = t, .ours = ours, .procs = procs };
	uint32_t n = SLU_MAX(t->job.n, 1u);
	int rc = 1;

	m.start_s = slu_calloc(n, sizeof *m.start_s);
	m.heap = slu_calloc(2 * n, sizeof *m.heap);
	m.run = slu_calloc(n, sizeof *m.run);
	m.line = slu_calloc(n, sizeof *m.line);
	if (m.start_s && m.heap && m.run && m.line) {
		printf("%s: average bounded slowdown %.4f\n",
		       ours ? "counted by our rules" : "counted by the published rules", play(&m));
		compare(&m, sim, all);
		rc = 0;
	}
	slu_free(m.start_s);
	slu_free(m.heap);
	slu_free(m.run);
	slu_free(m.line);
	return rc;
}

int main(int argc, char **argv)
{
	bool all = argc == 4 && !strcmp(argv[1], "--jobs");
	struct slu_load_opts lo = { .procs = argc == 3 + all ? atoll(argv[2 + all]) : 0 };
	struct slu_sim_opts so = { .policy = SLU_POLICY_EASY };
	struct slu_trace t = { 0 };
	struct slu_error err = { 0 };
	struct slu_sim sim;

	if (lo.procs < 1) {
		fprintf(stderr, "usage: bench-easy [--jobs] LOG PROCESSORS\n");
		return 2;
	}
	int rc = slu_load_trace(argv[1 + all], &lo, &t, NULL, NULL, &err);

	if (!rc)
		rc = slu_trace_machine(&t, (uint32_t)lo.procs, 1, 0, &err);
	if (!rc)
		rc = slu_sim_run(&t, &so, &sim, &err);
	if (rc < 0) {
		fprintf(stderr, "bench-easy: %s\n", *err.text ? err.text : strerror(-rc));
		return 1;
	}
	printf("`order`: average bounded slowdown %.4f\n", sim.metrics.avg_bounded_slowdown);
	rc = model(&t, lo.procs, false, &sim, all);
	if (!rc)
		rc = model(&t, lo.procs, true, &sim, all);
	slu_sim_done(&sim);
	slu_trace_done(&t);
	return rc;
}
