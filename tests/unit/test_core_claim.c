/* Matches of clients of the Fluxion services in the cluster: matches, cancels and restarts in
 * any order give the answers of the graph matcher on the same nodes.  test-core_claim [SEED] */
#include "core_kit.h"
#include "control/frame/frame.h"

#include <sluice/sluice.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "wire/json.h"
#include "wire/jsonw.h"

#define NODES 6
#define CORES 4
#define STEPS 60

static char store[64];
static struct slu_journal_setup setup;
static uint64_t state;

static uint32_t pick(uint32_t n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % n;
}

/* ---- lives ---- */

static void live(struct world *w)
{
	struct slu_core_setup cs = { .config = w->cfg,
				     .verify = true,
				     .pool = w->pool,
				     .first_id = (uint64_t)(w->now_us / 1000) };
	struct slu_error err = { 0 };

	w->now_us += 1000000;
	w->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	cs.out = w->out;
	if (slu_core_new(&cs, &w->core, &err) < 0 || slu_core_lead(w->core, &setup, &err) < 0)
		ok(false, "start: %s", err.text);
	for (int i = 0; i < NODES; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%d", i);
		feed_node(w, name, CORES, "", "", "True");
	}
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(w->core, slu_rec_synced_new((enum slu_kkind)k), w->now_us);
}

static void die(struct world *w)
{
	slu_core_free(w->core);
	slu_inbox_free(w->out);
	w->core = NULL;
}

static void remove_store(void)
{
	static const char *const end[] = { "", "-wal", "-shm" };
	char name[80];

	for (size_t i = 0; i < SLU_LEN(end); i++) {
		snprintf(name, sizeof name, "%s%s", store, end[i]);
		unlink(name);
	}
}

static void begin(struct world *w)
{
	struct slu_error err = { 0 };

	snprintf(store, sizeof store, "/tmp/sluice-claim-test-%d.db", (int)getpid());
	remove_store();
	setup = (struct slu_journal_setup){ .url = store, .cluster = "c", .holder = "test" };
	*w = (struct world){ .now_us = INT64_C(1767225600000000), .bind_outcome = SLU_KUBE_OK };
	w->pool = slu_strpool_new();
	w->codec = slu_kcodec_new(w->pool);
	if (slu_config_parse("test", "", 0, &w->cfg, &err) < 0)
		ok(false, "settings: %s", err.text);
	live(w);
}

static void end(struct world *w)
{
	die(w);
	slu_config_free(w->cfg);
	slu_kcodec_free(w->codec);
	slu_strpool_free(w->pool);
	remove_store();
}

/* ---- questions ---- */

static struct {
	bool done;
	int rc;
	uint64_t job;
	int64_t cores;
	char text[4096];
} got;

static bool is_left(void *arg)
{
	(void)arg;
	return true;
}

static void answered(void *arg, int rc, const char *text)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	int64_t n = 0;

	(void)arg;
	got.done = true;
	got.rc = rc;
	got.cores = 0;
	snprintf(got.text, sizeof got.text, "%s", text);
	if (rc || slu_json_parse(text, strlen(text), NULL, &doc, NULL) < 0)
		return;
	slu_json_i64(slu_json_get(slu_json_root(doc), "job"), &n);
	got.job = (uint64_t)n;
	slu_json_each (slu_json_get(slu_json_root(doc), "nodes"), it)
		if (slu_json_i64(slu_json_get(it.val, "cpu"), &n) == 0)
			got.cores += n / 1000;
}

static void go_on(struct world *w)
{
	struct slu_error err = { 0 };
	struct slu_record *r;

	w->now_us += 1000;
	if (slu_core_cycle(w->core, w->now_us, &err) < 0)
		ok(false, "cycle: %s", err.text);
	while (slu_inbox_take(w->out, &r, 1))
		r->free(r);
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

static void put_ask(struct world *w, enum slu_ask what, const char *name, const char *jobspec,
		    bool (*over)(void *arg))
{
	struct slu_rec_ask *a = slu_calloc(1, sizeof *a);

	a->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = free_ask_record };
	a->what = what;
	a->text = jobspec;
	a->over = over;
	a->answer = answered;
	snprintf(a->name, sizeof a->name, "%s", name);
	got.done = false;
	slu_core_take(w->core, &a->base, w->now_us);
}

/* Asks until the core knows the cluster, and goes on until it answers. */
static void ask(struct world *w, enum slu_ask what, const char *name, const char *jobspec,
		bool (*over)(void *arg))
{
	time_t limit = time(NULL) + 120;

	do {
		put_ask(w, what, name, jobspec, over);
		while (!got.done && time(NULL) < limit)
			go_on(w);
	} while (got.done && got.rc == -EAGAIN && time(NULL) < limit);
	if (!got.done)
		ok(false, "the claim has an answer");
}

static void cancel(struct world *w, uint64_t job)
{
	char name[24];

	snprintf(name, sizeof name, "%" PRIu64, job);
	ask(w, SLU_ASK_UNMATCH, name, NULL, NULL);
}

/* ---- the matcher to agree with ---- */

static void vertex(struct slu_jsonw *w, int id, const char *type, int number, const char *path)
{
	char text[64];

	slu_jsonw_obj(w);
	snprintf(text, sizeof text, "%d", id);
	slu_jsonw_kstr(w, "id", text);
	slu_jsonw_key(w, "metadata");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", type);
	slu_jsonw_kstr(w, "basename", type);
	snprintf(text, sizeof text, "%s%d", type, number);
	slu_jsonw_kstr(w, "name", text);
	slu_jsonw_ki64(w, "id", number);
	slu_jsonw_ki64(w, "uniq_id", id);
	slu_jsonw_ki64(w, "rank", -1);
	slu_jsonw_key(w, "exclusive");
	slu_jsonw_bool(w, false);
	slu_jsonw_kstr(w, "unit", "");
	slu_jsonw_ki64(w, "size", 1);
	slu_jsonw_key(w, "paths");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "containment", path);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
}

static void edge(struct slu_jsonw *w, int from, int to)
{
	char text[24];

	slu_jsonw_obj(w);
	snprintf(text, sizeof text, "%d", from);
	slu_jsonw_kstr(w, "source", text);
	snprintf(text, sizeof text, "%d", to);
	slu_jsonw_kstr(w, "target", text);
	slu_jsonw_key(w, "metadata");
	slu_jsonw_raw(w, "{\"subsystem\":\"containment\"}", 27);
	slu_jsonw_end_obj(w);
}

static struct sluice_graph *graph(void)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct sluice_graph *g = NULL;
	struct sluice_error err = { 0 };
	char path[100];

	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "graph");
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "nodes");
	slu_jsonw_arr(&w);
	vertex(&w, 0, "cluster", 0, "/cluster0");
	for (int i = 0; i < NODES; i++) {
		snprintf(path, sizeof path, "/cluster0/node%d", i);
		vertex(&w, 1 + i * (CORES + 1), "node", i, path);
		for (int k = 0; k < CORES; k++) {
			snprintf(path, sizeof path, "/cluster0/node%d/core%d", i, k);
			vertex(&w, 2 + i * (CORES + 1) + k, "core", k, path);
		}
	}
	slu_jsonw_end_arr(&w);
	slu_jsonw_key(&w, "edges");
	slu_jsonw_arr(&w);
	for (int i = 0; i < NODES; i++) {
		edge(&w, 0, 1 + i * (CORES + 1));
		for (int k = 0; k < CORES; k++)
			edge(&w, 1 + i * (CORES + 1), 2 + i * (CORES + 1) + k);
	}
	slu_jsonw_end_arr(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	if (sluice_graph_new(slu_buf_str(&b), b.n, "{\"matcher_policy\":\"lonode\"}", &g, &err) < 0)
		ok(false, "graph: %s", err.text);
	slu_buf_done(&b);
	return g;
}

/* Pods of one core, or whole nodes: questions whose answers do not depend on which node was taken
 * before, since the two engines choose their nodes by rules of their own. */
#define HOURS 100000 /* seconds each takes its room */

static void jobspec_of(bool whole, uint32_t n, char out[600])
{
	static const char rest[] =
		"\"attributes\":{\"system\":{\"duration\":100000}},\"tasks\":[{"
		"\"command\":[\"a\"],\"slot\":\"d\",\"count\":{\"per_slot\":1}}]}";

	if (whole)
		snprintf(
			out, 600,
			"{\"version\":9999,\"resources\":[{\"type\":\"node\",\"count\":%u,\"with\":"
			"[{\"type\":\"slot\",\"count\":1,\"label\":\"d\",\"with\":[{\"type\":"
			"\"core\",\"count\":%d}]}]}],%s",
			n, CORES, rest);
	else
		snprintf(out, 600,
			 "{\"version\":9999,\"resources\":[{\"type\":\"slot\",\"count\":%u,"
			 "\"label\":\"d\",\"with\":[{\"type\":\"core\",\"count\":1}]}],%s",
			 n, rest);
}

/* ---- the tests ---- */

struct pair {
	uint64_t ours, theirs;
};

static void in_any_order(bool whole)
{
	struct world w;
	struct sluice_graph *g = graph();
	struct pair job[STEPS];
	uint32_t n_jobs = 0, lives = 0, full = 0, wrong = 0;

	begin(&w);
	for (int step = 0; step < STEPS; step++) {
		uint32_t what = pick(10), n = 1 + pick(whole ? 4 : 2 * NODES);
		struct sluice_match m = { 0 };
		struct sluice_error err = { 0 };
		char text[600];
		int want;

		if (what == 0) {
			die(&w);
			live(&w);
			lives++;
			continue;
		}
		if (what < 4 && n_jobs) {
			uint32_t i = pick(n_jobs);

			cancel(&w, job[i].ours);
			wrong += got.rc != 0 || sluice_graph_cancel(g, job[i].theirs) != 0;
			job[i] = job[--n_jobs];
			continue;
		}
		jobspec_of(whole, n, text);
		want = sluice_graph_allocate(g, false, 0, text, strlen(text), &m, &err);
		ask(&w, SLU_ASK_MATCH, "", text, NULL);
		full += want != SLUICE_NOW;
		if ((got.rc == 0) != (want == SLUICE_NOW) ||
		    (got.rc == 0 && got.cores != (int64_t)n * (whole ? CORES : 1))) {
			wrong++;
			printf("# step %d: %u wanted, we say %d %s with %" PRId64
			       " cores, the matcher %d\n",
			       step, n, got.rc, got.text, got.cores, want);
		}
		if (got.rc == 0)
			job[n_jobs++] = (struct pair){ got.job, m.job };
		sluice_match_done(&m);
	}
	ok(wrong == 0 && full > 0, "%s: %d steps, %u lives, %u times no room",
	   whole ? "whole nodes" : "pods of a core", STEPS, lives + 1, full);
	while (n_jobs) {
		cancel(&w, job[--n_jobs].ours);
		wrong += got.rc != 0;
	}
	{
		char text[600];

		jobspec_of(true, NODES, text);
		ask(&w, SLU_ASK_MATCH, "", text, NULL);
	}
	ok(wrong == 0 && got.rc == 0, "all matched room is free at the end: %s", got.text);
	end(&w);
	sluice_graph_free(g);
}

static void test_left(void)
{
	struct world w;
	char text[600];
	uint64_t job;

	begin(&w);
	jobspec_of(true, NODES, text);
	ask(&w, SLU_ASK_MATCH, "", text, is_left);
	ok(got.rc == -ECANCELED, "a match whose client has left is not begun: %s", got.text);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	ok(got.rc == 0 && got.cores == NODES * CORES, "a match that was not begun takes no room");
	job = got.job;
	cancel(&w, job + 1);
	ok(got.rc == -ENOENT, "a cancel with an unknown number finds no job: %s", got.text);
	cancel(&w, job);
	cancel(&w, job);
	ok(got.rc == -ENOENT, "a second cancel of a match finds no job");
	end(&w);
}

/* Each claim ends with its own duration, and no other job does. */
static void test_duration(void)
{
	struct world w;
	char text[600];
	uint64_t first, second;

	begin(&w);
	jobspec_of(true, 2, text);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	first = got.job;
	w.now_us += (int64_t)HOURS * 500000; /* half of it */
	for (int i = 0; i < 3; i++)
		go_on(&w);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	second = got.job;
	ok(!got.rc && second != first, "two matches, one after half the time of the other");
	w.now_us += (int64_t)HOURS * 500000 + 2000000;
	for (int i = 0; i < 3; i++)
		go_on(&w);
	cancel(&w, first);
	ok(got.rc == -ENOENT, "the first match is over: %s", got.text);
	die(&w);
	live(&w);
	cancel(&w, first);
	ok(got.rc == -ENOENT, "the first match is over in the next life, too");
	jobspec_of(true, NODES - 1, text);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	ok(got.rc == -EBUSY, "the second match still has its nodes: %s", got.text);
	jobspec_of(true, NODES - 2, text);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	ok(got.rc == 0, "the nodes of the first match are free");
	cancel(&w, second);
	ok(got.rc == 0, "the second match is cancelled: %s", got.text);
	end(&w);
}

/* ---- between the decision and the answer ---- */

static void wait_for_store(struct world *w)
{
	struct slu_journal_health h;

	do {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		slu_intents_health(w->core->door, &h);
	} while (h.waiting);
}

/* Asks for all nodes and goes on until the decision is in the store, and no further. */
static void decide(struct world *w)
{
	static char text[600];

	begin(w);
	jobspec_of(true, 1, text);
	ask(w, SLU_ASK_MATCH, "", text, NULL); /* the first cycle is over */
	cancel(w, got.job);
	jobspec_of(true, NODES, text);
	put_ask(w, SLU_ASK_MATCH, "", text, NULL);
	go_on(w);
	wait_for_store(w);
}

static void test_one_commit(void)
{
	struct world w;

	decide(&w);
	ok(!got.done, "no answer before the decision is durable");
	go_on(&w);
	ok(got.done && !got.rc, "the commit of the decision is the only one an answer waits for");
	die(&w);
	live(&w);
	cancel(&w, got.job);
	ok(!got.rc, "the next life knows the match: %s", got.text);
	end(&w);
}

static void test_killed_before_answer(void)
{
	struct world w;
	char text[600];

	decide(&w);
	die(&w);
	live(&w);
	jobspec_of(false, 1, text);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	ok(got.rc == -EBUSY, "a match that was decided and perhaps heard of has its nodes: %s",
	   got.text);
	w.now_us += (int64_t)HOURS * 1000000 + 2000000;
	for (int i = 0; i < 3; i++)
		go_on(&w);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	ok(!got.rc, "such a match has its nodes until its duration is over: %s", got.text);
	end(&w);
}

static void test_taken_back(void)
{
	struct world w;
	char text[600];

	decide(&w);
	feed_node(&w, "n0", CORES, "", "\"unschedulable\":true", "True");
	while (!got.done)
		go_on(&w);
	ok(got.rc == -EBUSY, "a node went before the match began: no room: %s", got.text);
	wait_for_store(&w);
	die(&w);
	live(&w);
	jobspec_of(true, NODES, text);
	ask(&w, SLU_ASK_MATCH, "", text, NULL);
	ok(!got.rc, "the next life does not know a match that was taken back: %s", got.text);
	end(&w);
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL) ^ (uint64_t)getpid();
	printf("# seed %" PRIu64 "\n", state);
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	in_any_order(false);
	in_any_order(true);
	test_left();
	test_duration();
	test_one_commit();
	test_killed_before_answer();
	test_taken_back();
	return tap_done();
}
