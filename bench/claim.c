/* bench-claim [--json] [LIVE [MATCHES]]: what a match of a client of the Fluxion services costs the core, on 1 000 nodes of 32 cores
 * with LIVE matches (default: 500) in the books.  Each match asks for four slots of two cores; the oldest is cancelled for it, five
 * of each come at once.  Instructions:
 *
 *	valgrind --tool=callgrind --toggle-collect=measured build/bench/bench-claim */
#include "base/log.h"
#include "control/core/core.h"
#include "kube/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NODES 1000
#define BURST 5
#define TABLE "%u matches live: %.0f us of CPU for a match and a cancel, %.1f cycles\n"
#define JSON                                                                                          \
	"{\"bench\":\"claim\",\"nodes\":%d,\"live\":%u,\"cpu_us\":%.1f,\"cycles\":%.2f,\"cycle_us\":" \
	"%.1f}\n"

static const char jobspec[] =
	"{\"version\":9999,\"resources\":[{\"type\":\"slot\",\"count\":4,\"label\":\"d\",\"with\":["
	"{\"type\":\"core\",\"count\":2}]}],\"attributes\":{\"system\":{\"duration\":3600}},"
	"\"tasks\":[{\"command\":[\"a\"],\"slot\":\"d\",\"count\":{\"per_slot\":1}}]}";

struct bench {
	struct slu_strpool *pool;
	struct slu_kcodec *codec;
	struct slu_config *cfg;
	struct slu_inbox *out;
	struct slu_intents *door;
	struct slu_core *core;
	int64_t now_us;
	uint32_t open; /* questions not answered yet */
	uint64_t cycles;
	uint64_t *job; /* a ring of those that are live */
	uint32_t n_ring, first, n_jobs;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench-claim: %s: %s\n", what, why);
	exit(1);
}

static void start(struct bench *b)
{
	struct slu_journal_setup js = { .url = "memory:", .cluster = "c", .holder = "bench" };
	struct slu_core_setup cs = { 0 };
	struct slu_error err = { 0 };
	char text[512];

	b->now_us = INT64_C(1767225600000000);
	b->pool = slu_strpool_new();
	b->codec = slu_kcodec_new(b->pool);
	b->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	if (slu_config_parse("bench", "", 0, &b->cfg, &err) < 0 ||
	    slu_intents_new(&js, &b->door, &err) < 0)
		die("start", err.text);
	cs = (struct slu_core_setup){
		.config = b->cfg, .door = b->door, .out = b->out, .pool = b->pool
	};
	if (slu_core_new(&cs, &b->core, &err) < 0)
		die("start", err.text);
	for (int i = 0; i < NODES; i++) {
		const struct slu_kobj *o = NULL;
		int n = snprintf(
			text, sizeof text,
			"{\"metadata\":{\"name\":\"n%d\",\"uid\":\"n%d\"},\"status\":{\"allocatable\":"
			"{\"cpu\":\"32\",\"memory\":\"64Gi\",\"pods\":\"110\"},\"conditions\":"
			"[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
			i, i);

		if (slu_kcodec_object(b->codec, SLU_KIND_NODE, SLU_ENC_JSON, text, (size_t)n, &o,
				      &err) < 0)
			die("node", err.text);
		slu_core_take(b->core, slu_rec_object_new(o, false), b->now_us);
		slu_kobj_unref(o);
	}
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(b->core, slu_rec_synced_new((enum slu_kkind)k), b->now_us);
}

static void stop(struct bench *b)
{
	slu_core_free(b->core);
	slu_intents_free(b->door, 0);
	slu_inbox_free(b->out);
	slu_config_free(b->cfg);
	slu_kcodec_free(b->codec);
	slu_strpool_free(b->pool);
	free(b->job);
}

static void free_ask(struct slu_record *r)
{
	slu_free(r);
}

static void matched(void *arg, int rc, const char *text)
{
	struct bench *b = arg;
	const char *job = strstr(text, "\"job\":");

	if (rc || !job)
		die("match", text);
	b->open--;
	b->job[(b->first + b->n_jobs++) % b->n_ring] = strtoull(job + 6, NULL, 10);
}

static void cancelled(void *arg, int rc, const char *text)
{
	struct bench *b = arg;

	if (rc)
		die("cancel", text);
	b->open--;
}

static void ask(struct bench *b, enum slu_ask what, uint64_t job)
{
	struct slu_rec_ask *a = slu_calloc(1, sizeof *a);

	if (!a)
		die("ask", "out of memory");
	a->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = free_ask };
	a->what = what;
	a->text = jobspec;
	a->arg = b;
	a->answer = what == SLU_ASK_MATCH ? matched : cancelled;
	if (job)
		snprintf(a->name, sizeof a->name, "%" PRIu64, job);
	b->open++;
	slu_core_take(b->core, &a->base, b->now_us);
}

/* A burst of questions, and cycles until all are answered. */
static void turn(struct bench *b, uint32_t matches, uint32_t cancels)
{
	struct slu_error err = { 0 };
	struct slu_record *r;

	for (uint32_t i = 0; i < matches; i++)
		ask(b, SLU_ASK_MATCH, 0);
	for (uint32_t i = 0; i < cancels; i++, b->n_jobs--)
		ask(b, SLU_ASK_UNMATCH, b->job[b->first++ % b->n_ring]);
	b->first %= b->n_ring;
	while (b->open) {
		b->now_us += 1000;
		b->cycles++;
		if (slu_core_cycle(b->core, b->now_us, &err) < 0)
			die("cycle", err.text);
		while (slu_inbox_take(b->out, &r, 1))
			r->free(r);
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL); /* the store's turn */
	}
	b->now_us += 8000;
}

static __attribute__((noinline, noclone)) void measured(struct bench *b, uint32_t turns)
{
	for (uint32_t i = 0; i < turns; i++)
		turn(b, BURST, BURST);
}

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	uint32_t live = argc > 1 + json ? (uint32_t)strtoul(argv[1 + json], NULL, 10) : 500;
	uint32_t matches = argc > 2 + json ? (uint32_t)strtoul(argv[2 + json], NULL, 10) : 500;
	struct bench b = { .n_ring = live + BURST };
	double began;

	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	b.job = calloc(b.n_ring, sizeof *b.job);
	if (!b.job || live < BURST || matches < BURST)
		die("arguments", "at least 5 live matches and 5 more");
	start(&b);
	for (uint32_t i = 0; i < live / BURST; i++)
		turn(&b, BURST, 0);
	b.cycles = 0;
	began = cpu_us();
	measured(&b, matches / BURST);
	began = (cpu_us() - began) / (matches / BURST * BURST);
	if (json)
		printf(JSON, NODES, live, began, (double)b.cycles / matches,
		       began * matches / (double)b.cycles);
	else
		printf(TABLE, live, began, (double)b.cycles / matches);
	stop(&b);
	return 0;
}
