/* bench/gang — how long a decision about a gang takes, and how that grows with the machine.
 *	bench-gang [--json] [--quick]
 * Times are CPU time per operation, the mean over all repetitions. */
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "gang/gang.h"

#define RACK 32

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Resident memory of the process, now. */
static double resident_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all = 0, res = 0;

	if (!f || fscanf(f, "%ld %ld", &all, &res) != 2)
		res = 0;
	if (f)
		fclose(f);
	return (double)res * (double)sysconf(_SC_PAGESIZE) / 1024;
}

struct row {
	const char *what;
	double us[3];
};
static const uint32_t size[3] = { 1000, 10000, 50000 };
static struct row table[40];
static int n_row, column;

static void note(const char *what, double us)
{
	int i = 0;

	while (i < n_row && strcmp(table[i].what, what) != 0)
		i++;
	if (i == n_row)
		table[n_row++].what = what;
	table[i].us[column] = us;
}

enum { CPU = 1, MEM, PODS, GPU };

static struct slu_machine *machine(uint32_t n)
{
	struct slu_machine *m = slu_machine_new();

	slu_machine_resource(m, "cpu");
	slu_machine_resource(m, "memory");
	slu_machine_resource(m, "pods");
	slu_machine_resource(m, "gpu");
	slu_machine_level(m, "rack");
	for (uint32_t i = 0; i < n; i++) {
		char name[32], rack[32];
		const char *domain[] = { rack };
		struct slu_amount total[] = { { CPU, 32000 },
					      { MEM, INT64_C(128) << 30 },
					      { PODS, 110 },
					      { GPU, i % 8 ? 0 : 4 } };
		struct slu_node_spec s = { .name = name,
					   .rank = i,
					   .total = total,
					   .n_total = 4,
					   .domain = domain,
					   .n_domain = 1 };

		snprintf(name, sizeof name, "node-%05u", i);
		snprintf(rack, sizeof rack, "rack-%u", i / RACK);
		if (slu_machine_node_add(m, &s, NULL, NULL) < 0)
			abort();
	}
	return m;
}

struct shape {
	struct slu_amount need[4];
	struct slu_gang_role role;
	struct slu_gang_req req;
};

static struct slu_gang_req *gang(struct shape *s, uint32_t n, int64_t cpu, int64_t gib, int64_t dur)
{
	*s = (struct shape){ .need = { { CPU, cpu }, { MEM, gib << 30 }, { PODS, 1 } } };
	s->role = (struct slu_gang_role){ .min = n, .need = s->need, .n_need = 3 };
	s->req = (struct slu_gang_req){
		.role = &s->role, .n_role = 1, .level = -1, .duration_s = dur
	};
	return &s->req;
}

/* Fill about half with gangs of all sizes and ends. */
static uint64_t half_fill(struct slu_machine *m, uint32_t n)
{
	struct slu_rng r = { 7 };
	int64_t left = (int64_t)n * 16000;
	struct slu_gang_place place = { 0 };
	uint64_t id = 0;
	struct shape s;

	while (left > 0) {
		uint32_t k = 1 + (uint32_t)slu_rng_below(&r, 24);
		int64_t cpu = 1000 * (1 + (int64_t)slu_rng_below(&r, 8));
		struct slu_gang_req *q = gang(&s, k, cpu, cpu / 500,
					      100 + (int64_t)slu_rng_below(&r, 10000));

		q->policy = SLU_GANG_SPREAD;
		if (slu_gang_match(m, SLU_GANG_ALLOCATE, 0, ++id, q, &place, NULL) == SLU_GANG_NOW)
			left -= k * cpu;
	}
	slu_gang_place_done(&place);
	return id;
}

static uint64_t next_id;

/* Allocate and cancel; the time of both is noted separately. */
static void cycle(struct slu_machine *m, struct slu_gang_req *q, int times, const char *what,
		  const char *what_cancel)
{
	struct slu_gang_place p = { 0 };
	int64_t in = 0, out = 0;

	for (int i = 0; i < times; i++) {
		int64_t t0 = cpu_ns(), t1;
		int rc = slu_gang_match(m, SLU_GANG_ALLOCATE, 0, ++next_id, q, &p, NULL);

		t1 = cpu_ns();
		in += t1 - t0;
		if (rc == SLU_GANG_NOW)
			slu_gang_cancel(m, next_id);
		out += cpu_ns() - t1;
	}
	note(what, (double)in / times / 1000);
	if (what_cancel)
		note(what_cancel, (double)out / times / 1000);
	slu_gang_place_done(&p);
}

/* Every request of a new shape: nothing kept from before helps. */
static void cold(struct slu_machine *m, uint32_t n, int times, const char *what)
{
	struct slu_gang_place p = { 0 };
	int64_t in = 0;
	struct shape s;

	for (int i = 0; i < times; i++) {
		struct slu_gang_req *q = gang(&s, n, 1001 + i, 2, 60);
		int64_t t0 = cpu_ns();
		int rc = slu_gang_match(m, SLU_GANG_ALLOCATE, 0, ++next_id, q, &p, NULL);

		in += cpu_ns() - t0;
		if (rc == SLU_GANG_NOW)
			slu_gang_cancel(m, next_id);
	}
	note(what, (double)in / times / 1000);
	slu_gang_place_done(&p);
}

static void many(struct slu_machine *m, enum slu_gang_op op, struct slu_gang_req *q, int times,
		 const char *what)
{
	struct slu_gang_place p = { 0 };
	int64_t t0 = cpu_ns();

	for (int i = 0; i < times; i++) {
		if (slu_gang_match(m, op, 0, 0, q, &p, NULL) < 0)
			abort();
	}
	note(what, (double)(cpu_ns() - t0) / times / 1000);
	slu_gang_place_done(&p);
}

static void reservations(struct slu_machine *m, struct slu_gang_req *q, int times, const char *what)
{
	struct slu_gang_place p = { 0 };
	int64_t t0 = cpu_ns();
	uint64_t first = next_id + 1;

	for (int i = 0; i < times; i++) {
		if (slu_gang_match(m, SLU_GANG_ALLOCATE_OR_RESERVE, 0, ++next_id, q, &p, NULL) < 0)
			abort();
	}
	note(what, (double)(cpu_ns() - t0) / times / 1000);
	while (next_id >= first)
		slu_gang_cancel(m, next_id--);
	next_id += (uint64_t)times;
	slu_gang_place_done(&p);
}

/* ---- a small EASY loop: all of a scheduler's traffic, nothing of its bookkeeping ---- */

struct sim_job {
	uint32_t n;
	int64_t limit, run, arrive;
};
struct sim_end {
	int64_t t;
	uint32_t job;
};
static struct sim_end *heap;
static uint32_t n_heap;

static void heap_push(struct sim_end e)
{
	uint32_t k = n_heap++;

	for (; k && heap[(k - 1) / 2].t > e.t; k = (k - 1) / 2)
		heap[k] = heap[(k - 1) / 2];
	heap[k] = e;
}

static struct sim_end heap_pop(void)
{
	struct sim_end top = heap[0], e = heap[--n_heap];
	uint32_t k = 0;

	for (;;) {
		uint32_t c = 2 * k + 1;

		if (c + 1 < n_heap && heap[c + 1].t < heap[c].t)
			c++;
		if (c >= n_heap || heap[c].t >= e.t)
			break;
		heap[k] = heap[c];
		k = c;
	}
	heap[k] = e;
	return top;
}

/* Jobs of 1 to n * 8 slots of one core, estimates twice the truth, backfill among 100 waiting. */
static void easy(uint32_t n, uint32_t jobs)
{
	struct slu_machine *m = slu_machine_new();
	struct slu_rng r = { 11 };
	struct sim_job *job = calloc(jobs, sizeof *job);
	uint32_t *wait = malloc(jobs * sizeof *wait), n_wait = 0, next = 0, left = jobs;
	struct slu_amount need = { 1, 1 };
	struct slu_gang_role role = { .need = &need, .n_need = 1 };
	struct slu_gang_req q = {
		.role = &role, .n_role = 1, .level = -1, .flags = SLU_GANG_TIME_FIT
	};
	struct slu_gang_place p = { 0 };
	const uint64_t shadow = UINT64_MAX - 1;
	long cycles = 0, probes = 0;
	int64_t t = 0, t0, last = 0;

	slu_machine_resource(m, "core");
	for (uint32_t i = 0; i < n; i++) {
		char name[32];
		struct slu_amount total = { 1, 32 };
		struct slu_node_spec s = { .name = name, .rank = i, .total = &total, .n_total = 1 };

		snprintf(name, sizeof name, "n%u", i);
		slu_machine_node_add(m, &s, NULL, NULL);
	}
	for (uint32_t i = 0; i < jobs; i++) {
		uint32_t slots = 1u << slu_rng_below(&r, 13);

		slots = 1 + (uint32_t)slu_rng_below(&r, slots);
		job[i].n = slots < n * 32 ? slots : n * 32;
		job[i].run = 10 + (int64_t)slu_rng_below(&r, 3600);
		job[i].limit = job[i].run * (1 + (int64_t)slu_rng_below(&r, 3));
		last += (int64_t)slu_rng_below(&r, 2 * (uint64_t)(310 * 1800 / (n * 32)) + 1);
		job[i].arrive = last;
	}
	heap = malloc(jobs * sizeof *heap);
	n_heap = 0;
	t0 = cpu_ns();
	while (left) {
		uint32_t kept = 0;
		bool head = true;

		t = n_heap && (next == jobs || heap[0].t <= job[next].arrive) ? heap[0].t
									      : job[next].arrive;
		while (n_heap && heap[0].t == t) {
			slu_gang_cancel(m, heap_pop().job);
			left--;
		}
		while (next < jobs && job[next].arrive == t)
			wait[n_wait++] = next++;
		slu_gang_cancel(m, shadow);
		cycles++;
		for (uint32_t i = 0; i < n_wait; i++) {
			uint32_t id = wait[i];
			int rc;

			if (!head && i > 100) {
				wait[kept++] = id;
				continue;
			}
			role.min = job[id].n;
			q.duration_s = job[id].limit;
			rc = slu_gang_match(m, SLU_GANG_ALLOCATE, t, id, &q, &p, NULL);
			probes++;
			if (rc == SLU_GANG_NOW) {
				heap_push((struct sim_end){ t + job[id].run, id });
				continue;
			}
			wait[kept++] = id;
			if (head && slu_gang_match(m, SLU_GANG_ALLOCATE_OR_RESERVE, t, shadow, &q,
						   &p, NULL) != SLU_GANG_LATER)
				abort();
			head = false;
		}
		n_wait = kept;
	}
	note("EASY, all matching per job", (double)(cpu_ns() - t0) / jobs / 1000);
	note("  its cycles per job", (double)cycles / jobs);
	note("  its probes per job", (double)probes / jobs);
	slu_gang_place_done(&p);
	slu_machine_free(m);
	free(job);
	free(wait);
	free(heap);
}

static void bench(uint32_t n)
{
	int64_t t0 = cpu_ns();
	struct slu_machine *m = machine(n), *c;
	struct slu_machine_stats st;
	struct shape s;
	struct slu_gang_req *q;

	note("load", (double)(cpu_ns() - t0) / 1000);
	slu_machine_stats(m, &st);
	note("memory of the empty machine, KB", (double)st.bytes / 1024);
	next_id = half_fill(m, n);
	slu_machine_stats(m, &st);
	note("memory half full, KB", (double)st.bytes / 1024);
	note("resident with it half full, KB", resident_kb());
	cycle(m, gang(&s, 1, 1000, 2, 60), 1000, "1 pod, first", NULL);
	cycle(m, gang(&s, 8, 2000, 4, 60), 1000, "8 pods, first", "cancel of it");
	cold(m, 8, 300, "8 pods, a shape never seen");
	for (int p = 0; p < SLU_GANG_POLICIES; p++) {
		static const char *const names[SLU_GANG_POLICIES] = {
			[SLU_GANG_HIGH] = "8 pods, high",
			[SLU_GANG_LOCALITY] = "8 pods, locality",
			[SLU_GANG_PACK] = "8 pods, pack",
			[SLU_GANG_SPREAD] = "8 pods, spread",
		};

		q = gang(&s, 8, 2000, 4, 60);
		q->policy = (enum slu_gang_policy)p;
		if (names[p])
			cycle(m, q, 200, names[p], NULL);
	}
	q = gang(&s, 8, 2000, 4, 60);
	q->level = 0;
	q->flags = SLU_GANG_CLOSE_REQUIRED;
	cycle(m, q, 300, "8 pods in one rack", NULL);
	{
		struct slu_gang_role two[2];

		q = gang(&s, 8, 2000, 4, 60);
		two[0] = two[1] = s.role;
		two[0].min = 1;
		q->role = two;
		q->n_role = 2;
		cycle(m, q, 200, "1 + 8 pods, two roles", NULL);
	}
	cycle(m, gang(&s, 1000, 2000, 4, 60), 100, "1000 pods, first", "cancel of them");
	q = gang(&s, 1000, 2000, 4, 60);
	q->policy = SLU_GANG_SPREAD;
	cycle(m, q, 50, "1000 pods, spread", NULL);
	many(m, SLU_GANG_TRY, gang(&s, SLU_MIN(40 * n, SLU_SLOTS_MAX), 1000, 2, 60), 10000,
	     "refused now");
	{
		int64_t t = cpu_ns();
		int times = 200;

		for (int i = 0; i < times; i++) {
			q = gang(&s, 8, 40000 + i, 2, 60);
			if (slu_gang_satisfiable(m, q, NULL) != SLU_GANG_NEVER)
				abort();
		}
		note("can never run, a shape never seen", (double)(cpu_ns() - t) / times / 1000);
	}
	many(m, SLU_GANG_TRY_LATER, gang(&s, n, 16000, 2, 1000), 50,
	     "earliest start, half the machine");
	many(m, SLU_GANG_TRY_LATER, gang(&s, n, 32000, 64, 1000), 50,
	     "earliest start, full machine");
	reservations(m, gang(&s, n, 32000, 64, 1000), 20,
		     "reservation of the full machine, 20 in a row");
	reservations(m, gang(&s, 8, 32000, 64, 1000), 200,
		     "reservation of 8 whole nodes, 200 in a row");
	t0 = cpu_ns();
	c = slu_machine_clone(m);
	note("clone", (double)(cpu_ns() - t0) / 1000);
	slu_machine_free(c);
	slu_machine_stats(m, &st);
	note("memory after all of this, KB", (double)st.bytes / 1024);
	slu_machine_free(m);
	if (n <= 10000) /* beyond, such jobs do not fill the machine */
		easy(n, 20000);
}

int main(int argc, char **argv)
{
	bool json = false;
	int columns = 3;
	struct rusage ru;

	for (int i = 1; i < argc; i++) {
		json |= !strcmp(argv[i], "--json");
		if (!strcmp(argv[i], "--quick")) {
			columns = 2;
		} else if (strcmp(argv[i], "--json")) {
			fprintf(stderr, "usage: bench-gang [--json] [--quick]\n");
			return 2;
		}
	}
	for (column = 0; column < columns; column++)
		bench(size[column]);
	getrusage(RUSAGE_SELF, &ru);
	if (json) {
		printf("{\"unit\":\"us\",\"max_rss_kb\":%ld,\"rows\":[", ru.ru_maxrss);
		for (int i = 0; i < n_row; i++) {
			printf("%s{\"what\":\"%s\"", i ? "," : "", table[i].what);
			for (int c = 0; c < columns; c++)
				printf(",\"%u\":%.3f", size[c], table[i].us[c]);
			printf("}");
		}
		printf("]}\n");
		return 0;
	}
	printf("%-46s", "microseconds per operation; nodes:");
	for (int c = 0; c < columns; c++)
		printf("%12u", size[c]);
	printf("\n");
	for (int i = 0; i < n_row; i++) {
		printf("%-46s", table[i].what);
		for (int c = 0; c < columns; c++)
			printf("%12.2f", table[i].us[c]);
		printf("\n");
	}
	printf("resident at the end: %ld KB\n", ru.ru_maxrss);
	return 0;
}
