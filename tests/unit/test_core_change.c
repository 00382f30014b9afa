/* Changes to a gang while it waits or runs: priority, limit, deadline, begin, queue. */
#include "core_kit.h"

#include "control/frame/frame.h"
#include "store/store.h"

static void change(struct world *w, enum slu_ask what, const char *name, int64_t value)
{
	question(w, name, &(struct slu_rec_ask){ .what = what, .value = value });
	for (int i = 0; i < 10000 && w->answer_rc == 1; i++) { /* the answer waits for the store */
		turn(w);
		usleep(1000);
	}
	turn(w);
}

#define NOTES(text)       "\"annotations\":{" text "}"
#define ONE_AFTER_ANOTHER "queues: [{name: default, policy: first-fit}]"

/* One node: `a` runs for ten minutes, b and c wait in that order. */
static void open_line(struct world *w, const char *yaml)
{
	open_world(w, 1, 2, yaml);
	add_pod(w, "a", "sluice", "2", NOTES("\"sluice.sh/duration\":\"600\""));
	turn(w);
	add_pod(w, "b", "sluice", "2", NOTES("\"sluice.sh/duration\":\"600\""));
	turn(w);
	add_pod(w, "c", "sluice", "2", NOTES("\"sluice.sh/duration\":\"600\""));
	turn(w);
	ok(bound(w, "a") == 1 && pictured(w, "b").position == 1 && pictured(w, "c").position == 2,
	   "a runs, b and c wait");
}

/* A node of two cpus: a holds one for ten minutes, w wants both, x needs one for a minute and passes it. */
static void test_why(void)
{
	struct slu_snap_job j;
	struct world w;

	open_world(&w, 1, 2, "queues: [{name: default, objective: response}]");
	add_pod(&w, "a", "sluice", "1", NOTES("\"sluice.sh/duration\":\"600\""));
	turn(&w);
	add_pod(&w, "w", "sluice", "2", NOTES("\"sluice.sh/duration\":\"900\""));
	turn(&w);
	add_pod(&w, "x", "sluice", "1", NOTES("\"sluice.sh/duration\":\"60\""));
	turn(&w);
	ok(bound(&w, "a") == 1 && bound(&w, "x") == 1 && bound(&w, "w") == 0,
	   "a short job passes the one that waits");
	later(&w, 3);
	turn(&w);
	j = pictured(&w, "w");
	ok(!j.promised && j.estimate_s == pictured(&w, "a").end_s,
	   "foretold: w follows a (%" PRId64 ")", j.estimate_s);
	ok(!j.passed && !j.n_help, "no explanation is made unless a user asks for it");
	take_ask(&w, SLU_ASK_SNAPSHOT, "w", ignore_answer);
	turn(&w);
	struct slu_snapshot *s = slu_core_snapshot(w.core);

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, "w"))
			j = s->job[i];
	ok(j.passers == 1 && j.n_passed == 1 && strstr(j.passed[0], "delay 0s") &&
		   strstr(j.passed[0], "the shortest goes first"),
	   "passed by %s", j.n_passed ? j.passed[0] : "nobody");
	ok(j.n_help == 0 || !strstr(j.help[0], "slots"), "one pod cannot be fewer: %s",
	   j.n_help ? j.help[0] : "");
	slu_snapshot_unref(s);
	close_world(&w);
}

static void test_priority(void)
{
	struct world w;

	open_line(&w, ONE_AFTER_ANOTHER);
	change(&w, SLU_ASK_PRIORITY, "c", 7);
	ok(!w.answer_rc && strstr(w.answer, "c has priority 7 now"),
	   "the answer names the new priority: %s", w.answer);
	ok(strstr(w.last_annotation, "\"sluice.sh/set-priority\":\"7\""),
	   "the new priority is noted on the object: %s", w.last_annotation);
	ok(pictured(&w, "c").priority == 7 && pictured(&w, "c").position == 1,
	   "the job with the higher priority is first in line");
	end_pod(&w, &w.pod[0], "Succeeded");
	later(&w, 1);
	ok(bound(&w, "c") == 1 && bound(&w, "b") == 0,
	   "the job with the new priority starts first");
	change(&w, SLU_ASK_PRIORITY, "b", -3);
	ok(pictured(&w, "b").priority == -3, "a priority below zero is accepted");
	change(&w, SLU_ASK_PRIORITY, "b", SLU_ASK_OWN);
	ok(pictured(&w, "b").priority == 0 &&
		   strstr(w.last_annotation, "\"sluice.sh/set-priority\":null"),
	   "own: what its objects say, and the note is gone: %s", w.last_annotation);
	change(&w, SLU_ASK_PRIORITY, "c", 1);
	ok(strstr(w.answer, "running pods are not affected"),
	   "the answer says that running pods are not affected: %s", w.answer);
	change(&w, SLU_ASK_PRIORITY, "nobody", 1);
	ok(w.answer_rc == -ENOENT, "the priority of an unknown job is refused: %s", w.answer);
	ok(differences(&w) == 0, "books and cluster agree");
	close_world(&w);
}

static void test_limit(void)
{
	struct world w;
	int64_t start;

	open_line(&w, FIRST_PROMISED);
	start = pictured(&w, "a").start_s;
	ok(pictured(&w, "b").estimate_s == start + 600 && pictured(&w, "b").promised,
	   "the estimate of b is the end of a");
	change(&w, SLU_ASK_LIMIT, "a", 100);
	ok(!w.answer_rc && strstr(w.answer, "a has a limit of 1m40s now"),
	   "the answer names the new limit: %s", w.answer);
	ok(pictured(&w, "a").end_s == start + 100 && pictured(&w, "b").estimate_s == start + 100,
	   "a shorter limit of a running gang moves the plan up");
	change(&w, SLU_ASK_LIMIT, "a", 1000);
	ok(pictured(&w, "b").estimate_s == start + 1000, "a longer one: it moves back");
	change(&w, SLU_ASK_LIMIT, "b", 50);
	ok(pictured(&w, "b").limit_s == 50, "a waiting job gets a new limit, too");
	change(&w, SLU_ASK_LIMIT, "b", SLU_ASK_OWN);
	ok(pictured(&w, "b").limit_s == 600, "\"own\" brings back the limit the job wished for: %s",
	   w.answer);
	change(&w, SLU_ASK_LIMIT, "b", INT64_C(100) * 366 * 86400);
	ok(w.answer_rc == -EINVAL && strstr(w.answer, "at most"),
	   "a limit above the largest is refused: %s", w.answer);
	/* The user changes the wish itself. */
	snprintf(w.pod[1].meta, sizeof w.pod[1].meta, NOTES("\"sluice.sh/duration\":\"120\""));
	feed_pod(&w, &w.pod[1], false);
	turn(&w);
	ok(pictured(&w, "b").limit_s == 120, "an annotation that is changed counts");
	ok(differences(&w) == 0, "books and cluster agree");
	close_world(&w);
}

static void test_limit_of_queue(void)
{
	struct world w;

	open_line(&w, "queues: [{name: default, maxDuration: 10m, defaultDuration: 10m}]");
	change(&w, SLU_ASK_LIMIT, "b", 601);
	ok(w.answer_rc == -EINVAL && strstr(w.answer, "allows at most 10m"),
	   "a waiting job gets no limit above its queue's: %s", w.answer);
	change(&w, SLU_ASK_LIMIT, "a", 601);
	ok(!w.answer_rc, "an operator may let a running one go on: %s", w.answer);
	snprintf(w.pod[1].meta, sizeof w.pod[1].meta, NOTES("\"sluice.sh/duration\":\"900\""));
	feed_pod(&w, &w.pod[1], false);
	turn(&w);
	ok(!strcmp(pictured(&w, "b").state, "refused") &&
		   strstr(pictured(&w, "b").reason, "allows at most 10m"),
	   "a wish beyond it is refused: %s", pictured(&w, "b").reason);
	snprintf(w.pod[1].meta, sizeof w.pod[1].meta, NOTES("\"sluice.sh/duration\":\"60\""));
	feed_pod(&w, &w.pod[1], false);
	turn(&w);
	ok(!strcmp(pictured(&w, "b").state, "waiting"),
	   "a wish within the queue's limit is accepted");
	close_world(&w);
}

static void timed_job(struct world *w, int generation, int deadline, const char *notes)
{
	feed(w, SLU_KIND_JOB, false,
	     "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"ju\",\"resourceVersion\":\"%" PRIu64
	     "\",\"generation\":%d,%s},\"spec\":{\"parallelism\":1,\"completions\":1%s%.0d,"
	     "\"template\":{}},\"status\":{\"active\":1}}",
	     ++w->rv, generation, notes, deadline ? ",\"activeDeadlineSeconds\":" : "", deadline);
}

static void test_limit_of_job(void)
{
	struct world w;

	open_world(&w, 1, 2, "");
	timed_job(&w, 1, 300, NOTES(""));
	add_pod(&w, "j-0", "sluice", "2", OWNED("Job", "ju", "j"));
	turn(&w);
	change(&w, SLU_ASK_LIMIT, "j", 900);
	ok(!w.answer_rc && strstr(w.answer, "activeDeadlineSeconds 300 becomes 900"),
	   "the answer names the old and the new deadline: %s", w.answer);
	ok(!strcmp(w.last_spec, "j {\"activeDeadlineSeconds\":900}"), "the Job is patched: %s",
	   w.last_spec);
	timed_job(&w, 2, 900, NOTES(""));
	turn(&w);
	ok(pictured(&w, "j").limit_s == 900 &&
		   pictured(&w, "j").end_s == pictured(&w, "j").start_s + 900,
	   "the plan follows what the patched Job says");
	w.bind_outcome = SLU_KUBE_FAILED;
	change(&w, SLU_ASK_LIMIT, "j", 100);
	ok(w.answer_rc == -EIO && strstr(w.answer, "the API server refused"),
	   "a refusal of the API server is told: %s", w.answer);
	timed_job(&w, 3, 0, NOTES("\"sluice.sh/duration\":\"1h\""));
	turn(&w);
	ok(pictured(&w, "j").limit_s == 3600, "the duration noted on the Job becomes its limit");
	timed_job(&w, 3, 0, NOTES("\"sluice.sh/duration\":\"2h\""));
	turn(&w);
	ok(pictured(&w, "j").limit_s == 7200, "another value of the same note");
	close_world(&w);
}

static void test_deadline(void)
{
	struct world w;
	char notes[200], said[1000];
	int64_t now;

	open_line(&w, FIRST_PROMISED);
	now = w.now_us / 1000000;
	snprintf(notes, sizeof notes,
		 NOTES("\"sluice.sh/duration\":\"60\",\"sluice.sh/deadline\":\"%" PRId64 "\""),
		 now + 120);
	*w.last_event = 0;
	add_pod(&w, "d", "sluice", "2", notes);
	turn(&w);
	turn(&w);
	w.now_us += 500000; /* the next look at who waits, far below status.interval */
	turn(&w);
	snprintf(said, sizeof said, "%s", w.last_event);
	ok(strstr(said, "cannot end by its deadline 2026-01-01T00:02"), "told at once: %s", said);
	ok(strstr(pictured(&w, "d").reason, "cannot end by its deadline"), "why says so: %s",
	   pictured(&w, "d").reason);
	ok(pictured(&w, "d").deadline_s == now + 120, "why shows the time of the earliest start");
	later(&w, 62);
	ok(!strcmp(pictured(&w, "d").state, "never") &&
		   strstr(pictured(&w, "d").reason, "too late to start") &&
		   strstr(pictured(&w, "d").reason, "2026-01-01T00:02"),
	   "too late: never started: %s", pictured(&w, "d").reason);
	end_pod(&w, &w.pod[0], "Succeeded");
	end_pod(&w, &w.pod[1], "Succeeded");
	delete_pod(&w, &w.pod[2]);
	later(&w, 1);
	ok(bound(&w, "d") == 0,
	   "a gang that cannot meet its deadline does not start even when there is room");
	snprintf(w.pod[3].meta, sizeof w.pod[3].meta,
		 NOTES("\"sluice.sh/duration\":\"60\",\"sluice.sh/deadline\":\"%" PRId64 "\""),
		 now + 1200);
	feed_pod(&w, &w.pod[3], false);
	later(&w, 1);
	ok(bound(&w, "d") == 1, "a later deadline lets it start");
	close_world(&w);

	open_world(&w, 1, 2, "");
	snprintf(notes, sizeof notes,
		 NOTES("\"sluice.sh/duration\":\"60\",\"sluice.sh/deadline\":\"%" PRId64 "\""),
		 w.now_us / 1000000 + 600);
	add_pod(&w, "soon", "sluice", "2", notes);
	turn(&w);
	ok(bound(&w, "soon") == 1, "a deadline that can be met is no obstacle");
	add_pod(&w, "odd", "sluice", "2", NOTES("\"sluice.sh/deadline\":\"tomorrow\""));
	later(&w, 1);
	ok(!strcmp(pictured(&w, "odd").state, "refused") &&
		   strstr(pictured(&w, "odd").reason,
			  "sluice.sh/deadline: \"tomorrow\" is not a time"),
	   "nonsense is named: %s", pictured(&w, "odd").reason);
	close_world(&w);
}

static void test_begin_and_queue(void)
{
	struct world w;
	char notes[200];

	open_world(&w, 2, 2, "queues: [{name: default}, {name: other}]");
	snprintf(notes, sizeof notes, NOTES("\"sluice.sh/begin\":\"%" PRId64 "\""),
		 w.now_us / 1000000 + 3600);
	add_pod(&w, "p", "sluice", "2", notes);
	turn(&w);
	ok(bound(&w, "p") == 0 && pictured(&w, "p").begin_s,
	   "a gang with a begin in an hour does not start before it");
	snprintf(w.pod[0].meta, sizeof w.pod[0].meta,
		 NOTES("\"sluice.sh/begin\":\"%" PRId64 "\",\"sluice.sh/queue\":\"other\""),
		 w.now_us / 1000000 + 60);
	feed_pod(&w, &w.pod[0], false);
	turn(&w);
	ok(!strcmp(pictured(&w, "p").queue, "other"), "a job moves to another queue");
	later(&w, 61);
	ok(bound(&w, "p") == 1, "a job with another begin time starts then");
	ok(differences(&w) == 0, "books and cluster agree");
	close_world(&w);
}

static void drain(struct world *w, const char *node, bool is, int64_t from_s, int64_t until_s)
{
	question(w, node,
		 &(struct slu_rec_ask){ .what = is ? SLU_ASK_DRAIN : SLU_ASK_UNDRAIN,
					.from_s = from_s,
					.until_s = until_s });
}

/* The Job with the changed field, as the API server writes it. */
#define CORDONED                                                                            \
	"\"unschedulable\":true,\"taints\":[{\"key\":\"node.kubernetes.io/unschedulable\"," \
	"\"effect\":\"NoSchedule\"}]"

static const char *node_state(struct world *w, const char *name)
{
	static char state[32];
	struct slu_snapshot *s;

	take_ask(w, SLU_ASK_SNAPSHOT, "", ignore_answer);
	turn(w);
	s = slu_core_snapshot(w->core);
	*state = 0;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (!strcmp(s->node[i].name, name))
			snprintf(state, sizeof state, "%s", s->node[i].state);
	slu_snapshot_unref(s);
	return state;
}

static void test_drain_window(void)
{
	struct world w;
	int64_t now;

	open_world(&w, 1, 2, FIRST_PROMISED);
	turn(&w);
	now = w.now_us / 1000000;
	drain(&w, "n0", true, now + 300, now + 900);
	ok(!w.answer_rc && strstr(w.answer, "from 2026-01-01T00:05:10Z until 2026-01-01T00:15:10Z"),
	   "the answer names the window of the drain: %s", w.answer);
	ok(!strcmp(node_state(&w, "n0"), "up"), "before its window it is up");
	add_pod(&w, "long", "sluice", "2", NOTES("\"sluice.sh/duration\":\"600\""));
	turn(&w);
	ok(!bound(&w, "long") && pictured(&w, "long").estimate_s == now + 900 &&
		   pictured(&w, "long").promised,
	   "what would not end in time is planned behind it: %s", pictured(&w, "long").reason);
	add_pod(&w, "short", "sluice", "2", NOTES("\"sluice.sh/duration\":\"200\""));
	turn(&w);
	ok(bound(&w, "short"), "a gang that ends before the drain starts");
	later(&w, 290);
	end_pod(&w, &w.pod[1], "Succeeded");
	later(&w, 20);
	ok(!strcmp(node_state(&w, "n0"), "drained"), "the node is drained in its window");
	/* Cordoned, then down: it was said to come back. */
	feed_node(&w, "n0", 2, "", CORDONED, "True");
	later(&w, 10);
	feed_node(&w, "n0", 2, "", CORDONED, "False");
	later(&w, 10);
	ok(pictured(&w, "long").promised && pictured(&w, "long").estimate_s == now + 900,
	   "the promise on it stands while it reboots: %s", pictured(&w, "long").reason);
	feed_node(&w, "n0", 2, "\"kubernetes.io/hostname\":\"n0\"", "", "True");
	later(&w, 900);
	ok(bound(&w, "long") && !strcmp(node_state(&w, "n0"), "up"),
	   "the promise on a node is kept when the node is back");
	ok(differences(&w) == 0, "books and cluster agree");

	now = w.now_us / 1000000;
	end_pod(&w, &w.pod[0], "Succeeded");
	drain(&w, "n0", true, 0, now + 60);
	add_pod(&w, "next", "sluice", "2", "");
	turn(&w);
	ok(!bound(&w, "next") && pictured(&w, "next").estimate_s == now + 60,
	   "a job behind a drain with an end is planned for the end of the drain");
	feed_node(&w, "n0", 2, "\"kubernetes.io/hostname\":\"n0\"", "", "False");
	later(&w, 70);
	ok(!bound(&w, "next") && !strcmp(node_state(&w, "n0"), "down"),
	   "a node that is not back at the end of its window is down");
	feed_node(&w, "n0", 2, "\"kubernetes.io/hostname\":\"n0\"", "", "True");
	later(&w, 1);
	ok(bound(&w, "next"), "a gang starts once the node is back");
	drain(&w, "n0", true, now + 500, now + 400);
	ok(w.answer_rc == -EINVAL && strstr(w.answer, "over before it begins"),
	   "a window that ends before it begins is refused: %s", w.answer);
	drain(&w, "n0", true, 0, 0);
	ok(!strcmp(node_state(&w, "n0"), "drained"), "a drain without a window lasts for ever: %s",
	   w.answer);
	drain(&w, "n0", true, 0, 0);
	ok(strstr(w.answer, "already"), "a second drain is told that there is one already: %s",
	   w.answer);
	drain(&w, "n0", true, 0, now + 5000);
	ok(strstr(w.answer, "until"), "a drain may get another window: %s", w.answer);
	drain(&w, "n0", false, 0, 0);
	ok(!strcmp(node_state(&w, "n0"), "up"), "a node that is undrained is up: %s", w.answer);
	close_world(&w);
}

/* A node that was cordoned while it was down stays so when it comes up. */
static void test_cordoned_comes_up(void)
{
	struct world w;

	open_world(&w, 1, 2, "");
	feed_node(&w, "n0", 2, "", "\"unschedulable\":true", "False");
	turn(&w);
	feed_node(&w, "n0", 2, "", "\"unschedulable\":true", "True");
	add_pod(&w, "p", "sluice", "2", "");
	later(&w, 1);
	ok(!bound(&w, "p"), "up again, and still cordoned: nothing is placed there");
	feed_node(&w, "n0", 2, "", "", "True");
	later(&w, 1);
	ok(bound(&w, "p"), "the node is uncordoned");
	close_world(&w);
}

/* ---- over a restart ---- */

static void again_as(struct world *w, const char *store, const char *ready)
{
	next_life(w, store);
	feed_node(w, "n0", 2, "", "", ready);
	for (int i = 0; i < w->n_pods; i++)
		if (w->pod[i].there)
			feed_pod(w, &w->pod[i], false);
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(w->core, slu_rec_synced_new((enum slu_kkind)k), w->now_us);
	turn(w);
}

static void again(struct world *w, const char *store)
{
	again_as(w, store, "True");
}

/* Turns, each of which waits until the store has written everything; ten seconds are enough on any
 * machine. */
static void turn_kept(struct world *w)
{
	for (int i = 0, naps = 0; i < 20; i++) {
		struct slu_journal_health h;

		turn(w);
		slu_intents_health(w->core->door, &h);
		for (; h.waiting && naps < 10000; naps++) {
			usleep(1000);
			slu_intents_health(w->core->door, &h);
		}
	}
}

static void test_away_restart(void)
{
	struct world w;
	int64_t promise_s;
	char store[64];

	snprintf(store, sizeof store, "/tmp/sluice-away-%d.db", (int)getpid());
	unlink(store);
	open_world_at(&w, store, 1, 2, FIRST_PROMISED "\nnodes: {expectBack: 10m}");
	add_pod(&w, "runs", "sluice", "2", NOTES("\"sluice.sh/duration\":\"900\""));
	turn_kept(&w);
	add_pod(&w, "next", "sluice", "2", NOTES("\"sluice.sh/duration\":\"100\""));
	turn_kept(&w);
	promise_s = pictured(&w, "next").estimate_s;
	feed_node(&w, "n0", 2, "", "", "False");
	turn_kept(&w);
	w.now_us += 60000000;
	again_as(&w, store, "False");
	turn_kept(&w);
	ok(pictured(&w, "next").promised && pictured(&w, "next").estimate_s == promise_s,
	   "the next life counts on the node, too: %s", pictured(&w, "next").reason);
	later(&w, 545);
	ok(!pictured(&w, "next").promised, "no longer than the first did: %s",
	   pictured(&w, "next").reason);
	feed_node(&w, "n0", 2, "", "", "True");
	later(&w, 1);
	feed_node(&w, "n0", 2, "", "", "False");
	turn_kept(&w);
	again_as(&w, store, "True");
	later(&w, 1);
	ok(!strcmp(node_state(&w, "n0"), "up"), "a node that came back between two lives is up");
	close_world(&w);
	unlink(store);
}

struct seen {
	uint64_t job;
	int n;
	char text[2000];
};

static int see_plan(void *arg, const struct slu_store_plan *p)
{
	struct seen *s = arg;

	s->n++;
	snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "[%s]", p->cause);
	return 0;
}

static void test_restart(void)
{
	struct world w;
	struct seen seen = { 0 };
	struct slu_store *s = NULL;
	struct slu_error err = { 0 };
	char store[64];

	snprintf(store, sizeof store, "/tmp/sluice-change-%d.db", (int)getpid());
	unlink(store);
	open_world_at(&w, store, 1, 2, FIRST_PROMISED);
	for (int i = 0; i < 3; i++) {
		add_pod(&w, (const char *[]){ "a", "b", "c" }[i], "sluice", "2",
			NOTES("\"sluice.sh/duration\":\"600\""));
		turn(&w);
		usleep(2000);
		turn(&w);
	}
	for (int i = 0; i < 5000 && !bound(&w, "a"); i++) {
		usleep(2000);
		turn(&w);
	}
	change(&w, SLU_ASK_PRIORITY, "c", 9);
	change(&w, SLU_ASK_LIMIT, "c", 77);
	change(&w, SLU_ASK_LIMIT, "a", 300);
	seen.job = pictured(&w, "c").id;
	ok(pictured(&w, "c").priority == 9 && pictured(&w, "c").limit_s == 77,
	   "the priority and the limit are set");
	again(&w, store); /* the notes did not get onto the objects: the store knows */
	ok(pictured(&w, "c").priority == 9 && pictured(&w, "c").limit_s == 77,
	   "the next life knows both (%d, %" PRId64 ")", pictured(&w, "c").priority,
	   pictured(&w, "c").limit_s);
	ok(pictured(&w, "a").end_s == pictured(&w, "a").start_s + 300,
	   "the next life knows the limit of a running job, too");
	slu_core_free(w.core);
	w.core = NULL;
	if (slu_store_open(store, 0, &s, &err) < 0)
		ok(false, "store: %s", err.text);
	slu_store_plans(s, seen.job, see_plan, &seen, &err);
	ok(strstr(seen.text, "[priority 0 becomes 9]") &&
		   strstr(seen.text, "[limit 600 s becomes 77 s]"),
	   "the history has both: %s", seen.text);
	slu_store_close(s);
	slu_inbox_free(w.out);
	slu_config_free(w.cfg);
	slu_kcodec_free(w.codec);
	slu_strpool_free(w.pool);
	unlink(store);
}

static void feed_ready(struct world *w, const char *ready)
{
	feed_node(w, "n0", 2, "\"kubernetes.io/hostname\":\"n0\"", "", ready);
}

/* One gang runs on the node for 900 s, the next is promised the node after it. */
static void open_busy(struct world *w, const char *conf, int64_t *promise_s)
{
	open_world(w, 1, 2, conf);
	add_pod(w, "runs", "sluice", "2", NOTES("\"sluice.sh/duration\":\"900\""));
	turn(w);
	add_pod(w, "next", "sluice", "2", NOTES("\"sluice.sh/duration\":\"100\""));
	later(w, 1);
	*promise_s = pictured(w, "next").estimate_s;
	ok(pictured(w, "next").promised && *promise_s > w->now_us / 1000000 + 800,
	   "the next gang is promised the node");
}

static void test_expected_back(void)
{
	struct world w;
	int64_t promise_s;

	open_busy(&w, FIRST_PROMISED, &promise_s);
	feed_ready(&w, "False");
	later(&w, 1);
	ok(!pictured(&w, "next").promised,
	   "a node that is not ready takes its promises with it: %s", pictured(&w, "next").reason);
	close_world(&w);

	open_busy(&w, FIRST_PROMISED "\nnodes: {expectBack: 10m}", &promise_s);
	feed_ready(&w, "False");
	later(&w, 30);
	ok(pictured(&w, "next").promised && pictured(&w, "next").estimate_s == promise_s,
	   "a promise on a node that is expected back stands: %s", pictured(&w, "next").reason);
	ok(!strcmp(node_state(&w, "n0"), "down"), "the node is shown as down while it is away");
	end_pod(&w, &w.pod[0], "Succeeded");
	later(&w, 1);
	ok(!bound(&w, "next") && pictured(&w, "next").promised,
	   "no gang starts on a node that is away: %s", pictured(&w, "next").reason);
	feed_ready(&w, "True");
	later(&w, 1);
	ok(bound(&w, "next") && !strcmp(node_state(&w, "n0"), "up"),
	   "the promised gang starts as soon as the node is back");
	ok(differences(&w) == 0, "books and cluster agree");

	feed_ready(&w, "False");
	add_pod(&w, "last", "sluice", "2", NOTES("\"sluice.sh/duration\":\"100\""));
	later(&w, 590);
	ok(pictured(&w, "last").promised, "the plan counts on the node for ten minutes: %s",
	   pictured(&w, "last").reason);
	later(&w, 20);
	ok(!pictured(&w, "last").promised,
	   "after ten minutes the plan no longer counts on the node: %s",
	   pictured(&w, "last").reason);
	feed_ready(&w, "True");
	end_pod(&w, &w.pod[1], "Succeeded");
	later(&w, 1);
	ok(bound(&w, "last"), "a node that comes back later is used again");
	close_world(&w);
}

static void test_undrain_while_gone(void)
{
	struct world w;

	open_world(&w, 1, 2, "");
	turn(&w);
	drain(&w, "n0", true, 0, 0);
	feed(&w, SLU_KIND_NODE, true,
	     "{\"metadata\":{\"name\":\"n0\",\"uid\":\"node-n0\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{},\"status\":{}}",
	     ++w.rv);
	turn(&w);
	drain(&w, "n0", true, 0, 0);
	ok(w.answer_rc == -ENOENT, "a node that is not there is not drained: %s", w.answer);
	drain(&w, "n0", false, 0, 0);
	ok(!w.answer_rc && strstr(w.answer, "as soon as it is back"),
	   "the drain of a node that was deleted can be ended: %s", w.answer);
	feed_node(&w, "n0", 2, "\"kubernetes.io/hostname\":\"n0\"", "", "True");
	turn(&w);
	ok(!strcmp(node_state(&w, "n0"), "up"), "a node that is made again after that is up");
	drain(&w, "n9", false, 0, 0);
	ok(w.answer_rc == -ENOENT, "a node that never was is not undrained: %s", w.answer);
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_why();
	test_priority();
	test_limit();
	test_limit_of_queue();
	test_limit_of_job();
	test_deadline();
	test_begin_and_queue();
	test_drain_window();
	test_expected_back();
	test_undrain_while_gone();
	test_cordoned_comes_up();
	test_away_restart();
	test_restart();
	return tap_done();
}
