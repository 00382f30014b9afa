/* The event log of the core: a busy cluster that keeps it, restarts, new beginnings in the middle
 * and all, and the replay that proves it. */
#include "core_kit.h"

#include "base/rng.h"
#include "control/recover/recover.h"
#include "queue/log_internal.h"
#include "queue/queue.h"

#include <sys/stat.h>
#include <time.h>

static char dir[] = "/tmp/sluice-log-XXXXXX", file[64];

/* A process that leads with the store, at once or after it stood by. */
static void open_core(struct world *w, int nodes, bool at_once)
{
	struct slu_journal_setup js = { .url = file, .cluster = "c", .holder = "test" };
	struct slu_core_setup cs = { .config = w->cfg, .out = w->out, .verify = true };
	struct slu_error err = { 0 };

	if (slu_core_new(&cs, &w->core, &err) < 0)
		ok(false, "core: %s", err.text);
	if (at_once && slu_core_lead(w->core, &js, &err) < 0)
		ok(false, "lead: %s", err.text);
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
	if (!at_once && slu_core_lead(w->core, &js, &err) < 0)
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
	ok(false, "the log begins with the first leader");
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
	} else if (what == 8) { /* a pod that another scheduler placed */
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
	bool middle; /* nothing before the first beginning in the middle is looked at */
};

/* Decision x alone, as it lies in the log. */
static void bytes_of(const struct slu_decisions *d, const struct slu_decision *x,
		     struct slu_buf *out)
{
	struct slu_decisions one = *d;

	one.v.p = (struct slu_decision *)(uintptr_t)x;
	one.v.n = 1;
	queue_log_put_decisions(out, &one, 0);
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

static bool is_middle(const struct slu_store_event *e)
{
	return ((const uint8_t *)e->data)[1] == LOG_MIDDLE;
}

static int on_row(void *arg, const struct slu_store_event *e)
{
	struct proof *p = arg;
	uint8_t *copy, *at = NULL;
	int rc;

	if (p->middle && !p->rows && (e->kind != SLU_STORE_EVENT_BEGIN || !is_middle(e)))
		return 0;
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

static struct world *new_world(const char *name, const char *conf)
{
	struct world *w = slu_calloc(1, sizeof *w);
	struct slu_error err = { 0 };

	snprintf(file, sizeof file, "%s/%s.db", dir, name);
	w->now_us = INT64_C(1767225600000000);
	w->bind_outcome = SLU_KUBE_OK;
	w->pool = slu_strpool_new();
	w->codec = slu_kcodec_new(w->pool);
	w->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	if (slu_config_parse("test", conf, strlen(conf), &w->cfg, &err) < 0)
		ok(false, "config: %s", err.text);
	return w;
}

static void free_world(struct world *w)
{
	slu_core_free(w->core);
	w->core = NULL;
	close_world(w);
	slu_free(w);
}

static void remove_file(void)
{
	static const char *const end[] = { "", "-wal", "-shm" };
	char other[100];

	for (size_t i = 0; i < SLU_LEN(end); i++) {
		snprintf(other, sizeof other, "%s%s", file, end[i]);
		unlink(other);
	}
}

/* `old`: no log is to become older than 75 minutes. */
static void test_churn(uint64_t seed, bool old)
{
	struct slu_rng rng = { seed };
	struct world *w = new_world(old ? "old" : "churn", old ? "store: { keepFor: 5h }\n" : "");
	struct proof p = { .start = SLU_BUF_INIT(1 << 16) };
	uint64_t binds = 0, begun = 0;

	open_core(w, 8, false);
	for (int step = 0; step < 90; step++) {
		churn(w, &rng, step);
		if (step % 7 == 0)
			w->bind_outcome = slu_rng_below(&rng, 3) ? SLU_KUBE_OK : SLU_KUBE_FAILED;
		settle(w);
		if (slu_rng_below(&rng, 4) == 0)
			later(w, (int)slu_rng_below(&rng, 300));
		if (old && step % 40 == 10)
			await_begin(w, &begun);
		if (old && step % 20 == 10) {
			later(w, 4500);
			await_begin(w, &begun);
		}
		if (step % 40 == 39) { /* restart */
			if (!old)
				await_begin(w, &begun);
			slu_core_free(w->core);
			w->n_pods = SLU_MIN(w->n_pods, MAX_PODS / 2);
			open_core(w, 8, true);
		}
	}
	await_begin(w, &begun);
	binds = (uint64_t)w->binds;
	free_world(w);

	ok(prove(&p) == 0, "seed %d: every decision comes out again", (int)seed);
	const struct slu_replay_count *n = slu_replay_count(p.r);
	printf("# %" PRIu64 " rows, %" PRIu64 " begins, %" PRIu64 " events, %" PRIu64
	       " passes, %" PRIu64 " decisions, %" PRIu64 " starts; %" PRIu64 " bindings\n",
	       n->rows, n->begins, n->events, n->passes, n->decisions, p.starts, binds);
	ok(n->begins == 3 + n->middle && n->skipped == 0,
	   "the log has one beginning for each start");
	ok(old ? n->middle == 4 : n->middle == 0,
	   "the log has %d beginnings in the middle of a life", (int)n->middle);
	ok(p.starts > 10 && n->decisions > 100, "the log holds a busy time");
	slu_replay_free(p.r);

	struct proof bad = { .alter = true, .start = p.start };

	ok(prove(&bad) == -EUCLEAN && bad.altered &&
		   strstr(bad.err.text, "recorded: start of job") &&
		   strstr(bad.err.text, "replayed: start of job"),
	   "a start that was changed is named: %s", bad.err.text);
	slu_replay_free(bad.r);
	slu_buf_done(&p.start);
	if (!old)
		return;

	struct proof half = { .middle = true, .start = SLU_BUF_INIT(1 << 16) };

	ok(prove(&half) == 0 &&
		   slu_replay_count(half.r)->middle == slu_replay_count(half.r)->begins - 2,
	   "a replay from the first of them proves the rest of the log");
	ok(half.starts > 10, "the replay makes %d starts", (int)half.starts);
	slu_replay_free(half.r);
	slu_buf_done(&half.start);
}

/* One life that logs several times as much as the store may keep. */
static void test_large(void)
{
	struct world *w = new_world("large", "store: { keepMegabytes: 1 }\n");
	struct proof p = { .start = SLU_BUF_INIT(1 << 16) };
	struct slu_store *s = NULL;
	uint64_t begun = 0, seq = 0;
	int64_t used = INT64_MAX;
	char name[16], node[256];

	open_core(w, 8, false);
	add_pod(w, "first", "sluice", "1", "");
	await_begin(w, &begun);
	for (int round = 0; round < 9; round++) {
		for (int i = 0; i < 1500; i++) {
			snprintf(node, sizeof node, "%0200d", i % 8);
			feed_node(w, node, 3 + (i / 8 + round) % 2, "", "", "True");
		}
		snprintf(name, sizeof name, "p%d", round);
		add_pod(w, name, "sluice", "1", "");
		await_begin(w, &begun);
		later(w, 61); /* what is too much goes once a minute */
	}
	for (int i = 0; i < 500 && used > 1 << 20; i++) {
		settle(w);
		if (slu_store_open(file, SLU_STORE_READONLY, &s, NULL) == 0)
			slu_store_used(s, &used, NULL);
		slu_store_close(slu_take(s));
	}
	free_world(w);
	ok(used <= 1 << 20, "the store keeps to its size: %d bytes", (int)used);
	ok(slu_store_open(file, SLU_STORE_READONLY, &s, NULL) == 0 &&
		   slu_store_log_begin(s, INT64_MAX, &seq, NULL) == 0 && seq == begun,
	   "the log goes on in a store that is full");
	slu_store_close(s);
	int rc = prove(&p);
	const struct slu_replay_count *n = slu_replay_count(p.r);

	ok(!rc && n->middle >= 2 && n->middle == n->begins && !n->skipped,
	   "the part of the log that is left, %d beginnings, replays equally", (int)n->begins);
	ok(p.starts >= 2, "the replay makes %d starts", (int)p.starts);
	slu_replay_free(p.r);
	slu_buf_done(&p.start);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	if (!mkdtemp(dir))
		return 1;
	test_churn(1, false);
	remove_file();
	test_churn(2, true);
	remove_file();
	test_large();
	remove_file();
	rmdir(dir);
	return tap_done();
}
