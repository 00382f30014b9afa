/* bench-restart [--json] [JOBS [URL]]: a daemon's second life.  The first takes so many waiting
 * jobs into the store; the second is given the same objects, reads the store and decides.  Measured
 * from the end of the lists to the end of the first cycle: what a restart costs besides the lists.
 */
#include "base/log.h"
#include "control/core/core.h"
#include "kube/codec.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NODES 1000
#define TABLE \
	"restart with %u waiting jobs: store read %.2f s (%.2f cpu), first cycle %.2f s (%.2f cpu)\n"
#define JSON                                                                                  \
	"{\"bench\":\"restart\",\"jobs\":%u,\"read_seconds\":%.3f,\"read_cpu_seconds\":%.3f," \
	"\"cycle_seconds\":%.3f,\"cycle_cpu_seconds\":%.3f}\n"

struct life {
	struct slu_strpool *pool;
	struct slu_kcodec *codec;
	struct slu_config *cfg;
	struct slu_inbox *out;
	struct slu_core *core;
};

static double wall(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void die(const char *what, const struct slu_error *err)
{
	fprintf(stderr, "bench-restart: %s: %s\n", what, err->text);
	exit(1);
}

static void feed(struct life *l, enum slu_kkind kind, const char *text, int n)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };

	if (slu_kcodec_object(l->codec, kind, SLU_ENC_JSON, text, (size_t)n, &o, &err) < 0)
		die("object", &err);
	slu_core_take(l->core, slu_rec_object_new(o, false), now_us());
	slu_kobj_unref(o);
}

/* Every node is full with work of others, so that all jobs wait. */
static void lists(struct life *l, uint32_t jobs)
{
	char text[1024];

	for (int i = 0; i < NODES; i++)
		feed(l, SLU_KIND_NODE, text,
		     snprintf(
			     text, sizeof text,
			     "{\"metadata\":{\"name\":\"n%d\",\"uid\":\"n%d\"},\"status\":{\"allocatable\":"
			     "{\"cpu\":\"4\",\"memory\":\"16Gi\",\"pods\":\"110\"},\"conditions\":"
			     "[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
			     i, i));
	for (int i = 0; i < NODES; i++)
		feed(l, SLU_KIND_POD, text,
		     snprintf(
			     text, sizeof text,
			     "{\"metadata\":{\"name\":\"x%d\",\"namespace\":\"other\",\"uid\":\"x%d\"},"
			     "\"spec\":{\"schedulerName\":\"default-scheduler\",\"nodeName\":\"n%d\","
			     "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"4\"}}}]},"
			     "\"status\":{\"phase\":\"Running\"}}",
			     i, i, i));
	for (uint32_t i = 0; i < jobs; i++)
		feed(l, SLU_KIND_POD, text,
		     snprintf(
			     text, sizeof text,
			     "{\"metadata\":{\"name\":\"job-%u\",\"namespace\":\"team-%u\",\"uid\":"
			     "\"0b6f7a52-8f0a-4c51-9d7e-%012x\",\"creationTimestamp\":"
			     "\"2026-01-01T00:00:00Z\",\"annotations\":{\"sluice.sh/duration\":\"%us\"}},"
			     "\"spec\":{\"schedulerName\":\"sluice\",\"containers\":[{\"name\":\"c\","
			     "\"resources\":{\"requests\":{\"cpu\":\"%u\"}}}]},"
			     "\"status\":{\"phase\":\"Pending\"}}",
			     i, i % 50, i, 60 + i % 3600, 1 + i % 4));
}

static void live(const char *url, uint32_t jobs, const char *form)
{
	struct slu_journal_setup js = { .url = url, .cluster = "bench", .holder = "bench" };
	struct slu_core_setup cs = { .first_id = (uint64_t)now_us() / 1000 };
	struct slu_error err = { 0 };
	struct life l = { .pool = slu_strpool_new(), .out = slu_inbox_new(UINT32_MAX, NULL, NULL) };
	struct slu_record *r;
	double began, began_cpu, lead, lead_cpu;

	l.codec = slu_kcodec_new(l.pool);
	if (slu_config_default(&l.cfg, &err) < 0)
		die("config", &err);
	cs.config = l.cfg;
	cs.out = l.out;
	if (slu_core_new(&cs, &l.core, &err) < 0)
		die("core", &err);
	began = wall();
	began_cpu = cpu();
	if (slu_core_lead(l.core, &js, &err) < 0)
		die("lead", &err);
	lead = wall() - began;
	lead_cpu = cpu() - began_cpu;
	lists(&l, jobs);
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(l.core, slu_rec_synced_new((enum slu_kkind)k), now_us());
	began = wall();
	began_cpu = cpu();
	if (slu_core_cycle(l.core, now_us(), &err) < 0)
		die("cycle", &err);
	if (form)
		printf(form, jobs, lead, lead_cpu, wall() - began, cpu() - began_cpu);
	while (slu_inbox_take(l.out, &r, 1))
		r->free(r);
	/* What was handed to the store gets there. */
	for (int i = 0; i < 3000; i++) {
		struct slu_snapshot *s = slu_core_snapshot(l.core);
		bool done = s && !s->store_waiting && s->store_ok;

		slu_snapshot_unref(s);
		if (done && i > 2)
			break;
		usleep(100000);
		if (slu_core_cycle(l.core, now_us() + 6000000, &err) < 0)
			die("cycle", &err);
	}
	slu_core_free(l.core);
	while (slu_inbox_take(l.out, &r, 1))
		r->free(r);
	slu_inbox_free(l.out);
	slu_config_free(l.cfg);
	slu_kcodec_free(l.codec);
	slu_strpool_free(l.pool);
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	uint32_t jobs = argc > 1 + json ? (uint32_t)atoi(argv[1 + json]) : 100000;
	char path[64] = "", other[80];
	const char *url = argc > 2 + json ? argv[2 + json] : path;

	if (!jobs || *url == '-') {
		fprintf(stderr, "usage: bench-restart [--json] [JOBS [STORE]]\n");
		return 2;
	}
	slu_log_setup(SLU_WARN, SLU_LOG_TEXT, 2);
	snprintf(path, sizeof path, "bench-restart-%d.db", (int)getpid());
	live(url, jobs, NULL);
	live(url, jobs, json ? JSON : TABLE);
	for (int i = 0; i < 3; i++) {
		snprintf(other, sizeof other, "%s%s", path, i == 1 ? "-wal" : i == 2 ? "-shm" : "");
		unlink(other);
	}
	return 0;
}
