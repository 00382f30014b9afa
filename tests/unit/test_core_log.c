/* The event log of the core: a busy cluster that keeps it, restarts and all, and the replay that
 * proves it. */
#include "core_kit.h"

#include "base/rng.h"
#include "control/core_i.h"
#include "queue/log_i.h"
#include "queue/queue.h"

#include <sys/stat.h>
#include <time.h>

static char dir[] = "/tmp/sluice-log-XXXXXX", file[64];

/* A process that first stands by, then leads with the store. */
static void open_core(struct world *w, int nodes)
{
	struct slu_journal_setup js = { .url = file, .cluster = "c", .holder = "test" };
	struct slu_core_setup cs = { .config = w->cfg, .out = w->out, .verify = true };
	struct slu_error err = { 0 };

	if (slu_core_new(&cs, &w->core, &err) < 0)
		ok(false, "core: %s", err.text);
	for (int i = 0; i < nodes; i++) {
		char name[16], labels[100];

		snprintf(name, sizeof name, "n%d", i);
		snprintf(labels, sizeof labels, "\"topology.sluice.sh/rack\":\"r%d\"", i / 2);
		feed_node(w, name, 4, labels, "", "True");
		if (i == 1) { /* a hole in the numbers, as a standby may have */
			feed_node(w, "gone", 4, "", "", "True");
			feed(w, SLU_KIND_NODE, true,
			     "{\"metadata\":{\"name\":\"gone\",\"uid\":\"node-gone\"}}");
		}
	}
	for (int i = 0; i < w->n_pods; i++)
		if (w->pod[i].there)
			feed_pod(w, &w->pod[i], false);
	if (slu_core_lead(w->core, &js, &err) < 0)
		ok(false, "lead: %s", err.text);
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(w->core, slu_rec_synced_new((enum slu_kkind)k), w->now_us);
}

/* Cycles; in between the journal's thread writes what it was given. */
static void settle(struct world *w)
{
	for (int i = 0; i < 4; i++) {
		struct slu_journal_health h = { .waiting = 1 };

		turn(w);
		for (int ms = 0; h.waiting && ms < 60000; ms++) {
			slu_intents_health(w->core->door, &h);
			if (h.waiting)
				nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		}
	}
}

/* Until the store holds the beginning of this life's log. */
static void await_begin(struct world *w, uint64_t *last)
{
	for (int i = 0; i < 1000; i++) {
		struct slu_store *s = NULL;
		uint64_t seq = 0;

		settle(w);
		if (slu_store_open(file, SLU_STORE_READONLY, &s, NULL) == 0)
			slu_store_log_begin(s, INT64_MAX, &seq, NULL);
		slu_store_close(s);
		if (seq > *last) {
			*last = seq;
			return;
		}
	}
	ok(false, "the log begins");
}

static void free_ask(struct slu_record *r)
{
}

static void churn(struct world *w, struct slu_rng *rng, int step)
{
	static const char *const cpu[] = { "1", "2", "4" };
	char name[32], meta[200], labels[100];
	uint32_t what = (uint32_t)slu_rng_below(rng, 10), n = (uint32_t)slu_rng_below(rng, 8);

	if (what < 5 && w->n_pods < MAX_PODS - 8) {
		int size = 1 + (int)slu_rng_below(rng, 4);
		const char *c = cpu[slu_rng_below(rng, 3)];

		for (int i = 0; i < size; i++) {
			struct fpod *p;

			snprintf(name, sizeof name, "g%d-%d", step, i);
			snprintf(
				meta, sizeof meta,
				"\"labels\":{\"fluence.pod-group\":\"g%d\",\"fluence.group-size\":\"%d\"},"
				"\"annotations\":{\"sluice.sh/duration\":\"%ds\"}",
				step, size, 60 + (int)slu_rng_below(rng, 600));
			p = make_pod(w, name, "sluice", c, meta);
			if (step % 3 == 0)
				strcat(p->spec, ",\"nodeSelector\":{\"pool\":\"a\"}");
			feed_pod(w, p, false);
		}
	} else if (what < 7) {
		for (int i = 0; i < w->n_pods; i++)
			if (w->pod[i].there && *w->pod[i].node && slu_rng_below(rng, 2)) {
				end_pod(w, &w->pod[i], "Succeeded");
				delete_pod(w, &w->pod[i]);
			}
	} else if (what == 7) { /* labels: sets of nodes change under waiting jobs */
		snprintf(name, sizeof name, "n%u", n);
		snprintf(labels, sizeof labels,
			 "\"topology.sluice.sh/rack\":\"r%u\",\"pool\":\"%s\"", n / 2,
			 slu_rng_below(rng, 2) ? "a" : "b");
		feed_node(w, name, 4, labels, "", slu_rng_below(rng, 4) ? "True" : "False");
	} else if (what == 8) { /* somebody else's work */
		struct fpod *p;

		if (w->n_pods >= MAX_PODS - 8)
			return;
		snprintf(name, sizeof name, "x%d", step);
		p = make_pod(w, name, "default-scheduler", "1", "");
		snprintf(p->node, sizeof p->node, "n%u", n);
		snprintf(p->phase, sizeof p->phase, "Running");
		feed_pod(w, p, false);
	} else {
		static struct slu_rec_ask a;

		snprintf(name, sizeof name, "n%u", n);
		a = (struct slu_rec_ask){ .base = { .kind = SLU_REC_ASK, .free = free_ask },
					  .what = slu_rng_below(rng, 2) ? SLU_ASK_DRAIN
									: SLU_ASK_UNDRAIN,
					  .ns = "ns" };
		snprintf(a.name, sizeof a.name, "%s", name);
		slu_core_take(w->core, &a.base, w->now_us);
	}
}

struct proof {
	struct slu_replay *r;
	struct slu_error err;
	uint64_t starts, rows;
	struct slu_buf start; /* bytes of the seventh start */
	bool alter;           /* change them where they are found */
	bool altered;
};

/* Decision x alone, as it lies in the log. */
static void bytes_of(const struct slu_decisions *d, const struct slu_decision *x,
		     struct slu_buf *out)
{
	struct slu_decisions one = *d;

	one.v.p = (struct slu_decision *)(uintptr_t)x;
	one.v.n = 1;
	log_put_decisions(out, &one, 0);
	slu_buf_shift(out, 1); /* how many */
}

static int on_decision(void *arg, int64_t at_us, const struct slu_queue *q,
		       const struct slu_decisions *d, const struct slu_decision *x)
{
	struct proof *p = arg;

	p->starts += x->kind == SLU_DEC_START;
	if (x->kind == SLU_DEC_START && p->starts == 7 && !p->alter)
		bytes_of(d, x, &p->start);
	return 0;
}

static int on_row(void *arg, const struct slu_store_event *e)
{
	struct proof *p = arg;
	uint8_t *copy, *at = NULL;
	int rc;

	p->rows++;
	copy = slu_malloc(e->size);
	memcpy(copy, e->data, e->size);
	if (p->alter)
		at = memmem(copy, e->size, p->start.p, p->start.n);
	if (at && !p->altered) {
		at[p->start.n - 1] ^= 4; /* slots of its last part */
		p->altered = true;
	}
	rc = slu_replay_row(p->r, e->seq, e->at_us, copy, e->size, &p->err);
	slu_free(copy);
	return rc;
}

static int prove(struct proof *p)
{
	struct slu_replay_opts o = { .decision = on_decision, .arg = p, .verify = true };
	struct slu_error err = { 0 };
	struct slu_store *s = NULL;
	int rc = slu_store_open(file, SLU_STORE_READONLY, &s, &err);

	if (!rc)
		rc = slu_replay_new(&o, &p->r);
	if (!rc)
		rc = slu_store_events(s, 0, on_row, p, &err);
	if (rc < 0)
		printf("# %s%s\n", err.text, p->err.text);
	slu_store_close(s);
	return rc;
}

static void test_churn(uint64_t seed)
{
	struct slu_rng rng = { seed };
	struct world *w = slu_calloc(1, sizeof *w);
	struct slu_error err = { 0 };
	struct proof p = { .start = SLU_BUF_INIT(1 << 16) };
	uint64_t binds = 0, begun = 0;

	snprintf(file, sizeof file, "%s/%d.db", dir, (int)seed);
	w->now_us = INT64_C(1767225600000000);
	w->bind_outcome = SLU_KUBE_OK;
	w->pool = slu_strpool_new();
	w->codec = slu_kcodec_new(w->pool);
	w->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	if (slu_config_parse("test", "", 0, &w->cfg, &err) < 0)
		ok(false, "config: %s", err.text);
	open_core(w, 8);
	for (int step = 0; step < 90; step++) {
		churn(w, &rng, step);
		if (step % 7 == 0)
			w->bind_outcome = slu_rng_below(&rng, 3) ? SLU_KUBE_OK : SLU_KUBE_FAILED;
		settle(w);
		if (slu_rng_below(&rng, 4) == 0)
			later(w, (int)slu_rng_below(&rng, 300));
		if (step % 40 == 39) { /* restart */
			await_begin(w, &begun);
			slu_core_free(w->core);
			w->n_pods = SLU_MIN(w->n_pods, MAX_PODS / 2);
			open_core(w, 8);
		}
	}
	await_begin(w, &begun);
	binds = (uint64_t)w->binds;
	slu_core_free(w->core);
	w->core = NULL;
	close_world(w);
	slu_free(w);

	ok(prove(&p) == 0, "seed %d: every decision comes out again", (int)seed);
	const struct slu_replay_count *n = slu_replay_count(p.r);
	printf("# %" PRIu64 " rows, %" PRIu64 " begins, %" PRIu64 " events, %" PRIu64
	       " passes, %" PRIu64 " decisions, %" PRIu64 " starts; %" PRIu64 " bindings\n",
	       n->rows, n->begins, n->events, n->passes, n->decisions, p.starts, binds);
	ok(n->begins == 3 && n->skipped == 0, "one beginning for each start");
	ok(p.starts > 10 && n->decisions > 100, "and it was a busy time");
	slu_replay_free(p.r);

	struct proof bad = { .alter = true, .start = p.start };

	ok(prove(&bad) == -EUCLEAN && bad.altered && strstr(bad.err.text, "noted: start of job") &&
		   strstr(bad.err.text, "came out: start of job"),
	   "a start that was changed is named: %s", bad.err.text);
	slu_replay_free(bad.r);
	slu_buf_done(&p.start);
}

int main(void)
{
	char other[100];

	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	if (!mkdtemp(dir))
		return 1;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		static const char *const end[] = { "", "-wal", "-shm" };

		test_churn(seed);
		for (int i = 0; i < 3; i++) {
			snprintf(other, sizeof other, "%s%s", file, end[i]);
			unlink(other);
		}
	}
	rmdir(dir);
	return tap_done();
}
