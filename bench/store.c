/* bench-store [URL]: how fast the store takes job events and gives jobs back, with the durability
 * it promises.  Prints a table, or JSON with --json. */
#include "store/store.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 100000
#define JOBS   100000

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int die(const char *what, const struct slu_error *err)
{
	fprintf(stderr, "bench-store: %s: %s\n", what, err->text);
	return 1;
}

static struct slu_store_job job(uint64_t id, char *key)
{
	snprintf(key, 48, "0b6f7a52-8f0a-4c51-9d7e-%012" PRIx64, id);
	return (struct slu_store_job){
		.id = id,
		.key = key,
		.space = "default",
		.name = key + 24,
		.kind = "Job",
		.user = "ada",
		.queue = "batch",
		.first_seen_us = (int64_t)id,
		.state = SLU_STORE_WAITING,
		.size = 8,
		.min_size = 8,
		.max_size = 8,
		.limit_s = 3600,
		.spec = "{\"roles\":[{\"name\":\"worker\",\"count\":8,\"cpu\":4000,\"memory\":8589934592,"
			"\"pods\":1}],\"policy\":\"first\"}",
	};
}

/* A job event as the daemon writes it: the job's row and the event, `per` of them in one
 * transaction. */
static int write_events(struct slu_store *s, uint64_t base, uint32_t n, uint32_t per, double *took,
			struct slu_error *err)
{
	double began = now();

	for (uint32_t done = 0; done < n; done += per) {
		struct slu_batch *b = slu_batch_new();
		int rc = 0;

		for (uint32_t i = 0; i < per && b && !rc; i++) {
			uint64_t id = base + done + i;
			char key[48];
			struct slu_store_job j = job(id, key);

			rc = slu_batch_put_job(b, &j);
			if (!rc)
				rc = slu_batch_put_event(
					b, &(struct slu_store_event){ id, 1, 1, key, 36 });
		}
		if (!rc)
			rc = b ? slu_store_commit(s, 0, &b, 1, err) : -ENOMEM;
		slu_batch_free(b);
		if (rc < 0)
			return rc;
	}
	*took = now() - began;
	return 0;
}

static int count(void *arg, const struct slu_store_job *j)
{
	(*(uint32_t *)arg)++;
	return 0;
}

int main(int argc, char **argv)
{
	static const uint32_t per[] = { 1, 10, 100, 1000 };
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	char path[64] = "";
	const char *url = argc > 1 + json ? argv[1 + json] : path;
	struct slu_error err = { 0 };
	struct slu_store *s = NULL;
	uint32_t jobs = 0;
	uint64_t base = 1;
	double took, began;
	int rc;

	if (*url == '-' || argc > 2 + json) {
		fprintf(stderr, "usage: bench-store [--json] [STORE]\n");
		return 2;
	}
	snprintf(path, sizeof path, "bench-store-%d.db", (int)getpid());
	rc = slu_store_open(url, SLU_STORE_MIGRATE, &s, &err);
	if (rc < 0)
		return die("open", &err);
	printf(json ? "{\"bench\":\"store\",\"backend\":\"%s\",\"events_per_second\":{"
		    : "store: %s\n  events per transaction   events/s\n",
	       slu_store_backend(s));
	for (size_t i = 0; i < SLU_LEN(per) && !rc; i++) {
		uint32_t n = per[i] == 1 ? EVENTS / 50 : EVENTS;

		rc = write_events(s, base, n, per[i], &took, &err);
		base += n;
		if (!rc)
			printf(json ? "%s\"%u\":%.0f" : "%s  %22u  %9.0f\n", json && i ? "," : "",
			       per[i], n / took);
	}
	if (!rc) {
		const struct slu_store_reader r = { .job = count, .arg = &jobs };

		began = now();
		rc = slu_store_load(s, &r, &err);
		took = now() - began;
	}
	if (!rc)
		printf(json ? "},\"loaded_jobs\":%u,\"load_seconds_per_100k\":%.3f}\n"
			    : "  load of %u jobs: %.2f s per 100 000\n",
		       jobs, took * JOBS / jobs);
	slu_store_close(s);
	if (url == path) {
		unlink(path);
	}
	return rc < 0 ? die("run", &err) : 0;
}
