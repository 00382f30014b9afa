/* What a decision costs: with 1 000, 10 000, 100 000 jobs waiting, and on 1 000 and 10 000 nodes,
 * under each objective.
 *
 *	bench-queue [--json] [OBJECTIVE]
 *
 * A full machine of nodes with 32 cores, jobs of 64 sizes and many limits.  Then cycles: one
 * job ends, one is submitted, one pass after each; every job that fits starts.  CPU time of this thread.
 * With `balanced` and `response` every job in line is due for a promise from the hundredth cycle on, so that most decisions are
 * made with a full set of promises; 120 jobs are a line that `balanced` plays to the end.
 */
#include "base/rng.h"
#include "queue/queue.h"

#include <stdio.h>
#include <time.h>

#define DUE_S 100

struct bench {
	struct slu_queue *q;
	struct slu_decisions out;
	struct slu_error err;
	struct slu_rng rng;
	uint32_t cpu;
	SLU_VEC(slu_job_id) running;
	slu_job_id next;
	uint64_t started;
	int64_t now;
};

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void die(const struct bench *b, const char *what, int rc)
{
	fprintf(stderr, "bench-queue: %s: %d %s\n", what, rc, b->err.text);
	exit(1);
}

static void apply(struct bench *b, const struct slu_event *ev)
{
	int rc = slu_queue_apply(b->q, b->now, ev, &b->out, &b->err);

	if (rc < 0)
		die(b, "event", rc);
}

static void pass(struct bench *b)
{
	int rc = slu_queue_schedule(b->q, b->now, &b->out, &b->err);

	if (rc < 0)
		die(b, "pass", rc);
	for (uint32_t i = 0; i < b->out.v.n; i++)
		if (b->out.v.p[i].kind == SLU_DEC_START) {
			if (slu_vec_push(&b->running, b->out.v.p[i].job) < 0)
				die(b, "memory", -ENOMEM);
			b->started++;
		}
	slu_decisions_clear(&b->out);
}

static void submit(struct bench *b, uint32_t slots)
{
	struct slu_amount need = { b->cpu, 1000 };
	struct slu_gang_role role = { .min = slots, .need = &need, .n_need = 1 };
	struct slu_gang_req req = { .role = &role, .n_role = 1, .level = -1 };
	struct slu_job_spec s = { .id = ++b->next,
				  .first_seen_us = (int64_t)b->next,
				  .limit_s = 600 + (int64_t)slu_rng_below(&b->rng, 100000),
				  .begin_s = SLU_TIME_NONE,
				  .deadline_s = SLU_TIME_NONE,
				  .req = &req };
	struct slu_event ev = { .kind = SLU_EV_SUBMIT, .spec = &s };

	apply(b, &ev);
}

static uint32_t size(struct bench *b)
{
	return 16 * (1 + (uint32_t)slu_rng_below(&b->rng, 64));
}

static void fill_machine(struct bench *b, uint32_t nodes, const char *objective)
{
	struct slu_queue_conf c = { .name = "q" };
	struct slu_event conf = { .kind = SLU_EV_QUEUE_SET, .conf = &c };
	int rc = slu_queue_new(NULL, &b->q, &b->err);

	if (rc < 0)
		die(b, "queue", rc);
	rc = slu_objective_parse(objective, &c, &b->err);
	if (rc < 0)
		die(b, "objective", rc);
	c.max_wait_s = c.max_wait_s ? DUE_S : 0;
	b->cpu = (uint32_t)slu_queue_resource(b->q, "cpu");
	apply(b, &conf);
	for (uint32_t i = 0; i < nodes; i++) {
		char name[24];
		struct slu_amount total = { b->cpu, 32000 };
		struct slu_node_spec spec = {
			.name = name, .rank = i, .total = &total, .n_total = 1
		};
		struct slu_event ev = { .kind = SLU_EV_NODE_ADD, .node_spec = &spec };

		snprintf(name, sizeof name, "n%u", i);
		apply(b, &ev);
	}
	for (uint64_t left = (uint64_t)nodes * 32; left;) {
		uint32_t n = (uint32_t)SLU_MIN((uint64_t)size(b), left);

		submit(b, n);
		left -= n;
	}
	pass(b);
}

struct row {
	const char *objective;
	uint32_t nodes, waiting;
	double submit_us, decision_us;
	uint64_t started;
};

static void run(struct row *r)
{
	struct bench b = { .rng = { 1 } };
	uint32_t cycles = 400;

	fill_machine(&b, r->nodes, r->objective);
	double t = cpu_s();

	for (uint32_t i = 0; i < r->waiting; i++) {
		submit(&b, size(&b));
		pass(&b);
	}
	r->submit_us = (cpu_s() - t) / r->waiting * 1e6;
	b.started = 0;
	t = cpu_s();
	for (uint32_t i = 0; i < cycles && b.running.n; i++) {
		uint32_t k = (uint32_t)slu_rng_below(&b.rng, b.running.n);
		struct slu_event end = { .kind = SLU_EV_END, .job = b.running.p[k] };

		b.running.p[k] = b.running.p[--b.running.n];
		b.now++;
		apply(&b, &end);
		pass(&b);
		submit(&b, size(&b));
		pass(&b);
	}
	r->decision_us = (cpu_s() - t) / (2 * cycles) * 1e6;
	r->started = b.started;
	slu_queue_free(b.q);
	slu_decisions_done(&b.out);
	slu_vec_done(&b.running);
}

static void print(const struct row *r, bool json, bool first, bool last)
{
	if (json)
		printf("%s{\"bench\":\"queue\",\"objective\":\"%s\",\"nodes\":%u,\"waiting\":%u,"
		       "\"submit_us\":%.2f,\"decision_us\":%.2f,\"started\":%llu}%s\n",
		       first ? "[" : " ", r->objective, r->nodes, r->waiting, r->submit_us,
		       r->decision_us, (unsigned long long)r->started, last ? "]" : ",");
	else
		printf("%-11s %8u %9u %18.2f %18.2f %9llu\n", r->objective, r->nodes, r->waiting,
		       r->submit_us, r->decision_us, (unsigned long long)r->started);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const uint32_t size[][2] = { { 1000, 120 },    { 1000, 1000 },  { 1000, 10000 },
					    { 1000, 100000 }, { 10000, 1000 }, { 10000, 100000 } };
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	const char *only = argc > 1 + json ? argv[1 + json] : NULL;
	bool first = true;

	if (argc > 2 + json || (only && *only == '-')) {
		fprintf(stderr, "usage: bench-queue [--json] [OBJECTIVE]\n");
		return 2;
	}
	if (!json)
		printf("%-11s %8s %9s %18s %18s %9s\n", "objective", "nodes", "waiting",
		       "us per submission", "us per decision", "started");
	for (uint32_t o = 0; only ? !o : slu_objective_names[o] != NULL; o++)
		for (size_t i = 0; i < SLU_LEN(size); i++) {
			struct row r = { .objective = only ? only : slu_objective_names[o],
					 .nodes = size[i][0],
					 .waiting = size[i][1] };
			bool end = i + 1 == SLU_LEN(size) && (only || !slu_objective_names[o + 1]);

			run(&r);
			print(&r, json, first, end);
			first = false;
		}
	return 0;
}
