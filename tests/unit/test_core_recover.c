/* One life of the core after the other on the same store: every decision is completed or undone,
 * no gang loses its place, promises stand. */
#include "lives_kit.h"

#include <sqlite3.h>
#include <sys/stat.h>

static struct slu_snap_job view(struct world *w, const char *name)
{
	struct slu_snap_job j = { .state = "", .reason = "" };
	struct slu_snapshot *s;

	w->now_us += 20000000; /* a fresh picture */
	go_on(w, NONE, NULL);
	s = slu_core_snapshot(w->core);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name)) {
			j.first_seen_us = s->job[i].first_seen_us;
			j.estimate_s = s->job[i].estimate_s;
			j.start_s = s->job[i].start_s;
			j.end_s = s->job[i].end_s;
			j.state = !strcmp(s->job[i].state, "waiting")     ? "waiting"
				  : !strcmp(s->job[i].state, "running")   ? "running"
				  : !strcmp(s->job[i].state, "gathering") ? "gathering"
				  : !strcmp(s->job[i].state, "held")      ? "held"
				  : !strcmp(s->job[i].state, "cancelled") ? "cancelled"
				  : !strcmp(s->job[i].state, "refused")   ? "refused"
				  : !strcmp(s->job[i].state, "never")     ? "never"
									  : "other";
		}
	slu_snapshot_unref(s);
	return j;
}

struct found {
	int intents, jobs, cancelled, promised;
	int64_t plans;
	char last[120]; /* job: its kind and its FluxJob */
};
static int count_intent(void *arg, const struct slu_store_intent *i)
{
	((struct found *)arg)->intents += i->state == SLU_INTENT_OPEN;
	return 0;
}
static int count_plan(void *arg, const struct slu_store_plan *p)
{
	((struct found *)arg)->plans++;
	return 0;
}
static int count_job(void *arg, const struct slu_store_job *j)
{
	struct found *f = arg;

	snprintf(f->last, sizeof f->last, "%s %s \"%s\"", j->name, j->kind, j->object);
	((struct found *)arg)->jobs++;
	((struct found *)arg)->promised += j->planned_s > 0;
	((struct found *)arg)->cancelled += !strcmp(j->cause, CORE_CAUSE_CANCELLED);
	return 0;
}
static struct found look(uint64_t job)
{
	struct found f = { 0 };
	struct slu_store_reader r = { .job = count_job, .intent = count_intent, .arg = &f };
	struct slu_store *s = NULL;

	if (slu_store_open(store, 0, &s, NULL) < 0 || slu_store_load(s, &r, NULL) < 0 ||
	    slu_store_plans(s, job, count_plan, &f, NULL) < 0)
		f.intents = -1;
	slu_store_close(s);
	return f;
}

#define TIMED(name, size, seconds)                                                      \
	"\"labels\":{\"fluence.pod-group\":\"" name "\",\"fluence.group-size\":\"" size \
	"\"},\"annotations\":{\"sluice.sh/duration\":\"" seconds "\"}"

static void gang(struct world *w, const char *name, int n, const char *cpu, const char *meta)
{
	for (int i = 0; i < n; i++) {
		char full[32];

		snprintf(full, sizeof full, "%s-%d", name, i);
		add_pod(w, full, "sluice", cpu, meta);
	}
}

static void test_completed_where_meant(void)
{
	struct world w;
	struct meant m[8];
	int lost, right = 0;

	first_life(&w, 6, 2, "");
	gang(&w, "g", 4, "2", GROUP("g", "4"));
	lost = go_on(&w, 1, m);
	ok(lost == 3 && bound(&w, "g-") == 1, "killed after the first of four bindings");
	die(&w);
	live(&w, 6, 2);
	add_pod(&w, "a", "sluice", "2", ""); /* would like those nodes, too */
	go_on(&w, NONE, NULL);
	for (int i = 0; i < lost; i++)
		right += !strcmp(pod(&w, m[i].pod)->node, m[i].node);
	ok(bound(&w, "g-") == 4 && right == 3, "the other three follow, where they were meant to");
	ok(*pod(&w, "a")->node, "the next gang finds another place");
	ok(look(0).intents == 0, "no intent is left open");
	last_life_over(&w);
}

static void test_not_in_part(void)
{
	struct world w;

	first_life(&w, 4, 2, "");
	gang(&w, "g", 3, "2", GROUP("g", "3"));
	ok(go_on(&w, 0, NULL) == 3, "killed when the intent was durable, before any binding");
	die(&w);
	pod(&w, "g-1")->there = false; /* deleted while no daemon ran */
	live(&w, 4, 2);
	go_on(&w, NONE, NULL);
	ok(w.binds == 0, "two of three are no gang: nothing is bound");
	add_pod(&w, "a", "sluice", "2", ""); /* would like those nodes, too */
	add_pod(&w, "b", "sluice", "2", "");
	add_pod(&w, "g-1", "sluice", "2", GROUP("g", "3"));
	go_on(&w, NONE, NULL);
	ok(w.binds == 2 && *pod(&w, "a")->node && *pod(&w, "b")->node,
	   "bindings that may have been sent are expected where they were meant to go");
	w.now_us += 11000000;
	go_on(&w, NONE, NULL);
	ok(bound(&w, "g-") == 0, "the gang does not start in part when none shows");
	feed_pod(&w, pod(&w, "a"), true);
	go_on(&w, NONE, NULL);
	ok(bound(&w, "g-") == 3, "when there is room for all three, they start");
	last_life_over(&w);
}

static void test_started_in_part(void)
{
	struct world w;

	first_life(&w, 4, 2, "");
	gang(&w, "g", 3, "2", GROUP("g", "3"));
	go_on(&w, 1, NULL);
	die(&w);
	for (int i = 0; i < 3; i++)
		if (*w.pod[i].node)
			snprintf(w.pod[i].phase, sizeof w.pod[i].phase, "Succeeded");
	live(&w, 4, 2);
	go_on(&w, NONE, NULL);
	ok(bound(&w, "g-") == 2, "one of three has even ended: the other two still start (%d)",
	   bound(&w, "g-"));
	last_life_over(&w);
}

static void test_follower(void)
{
	struct world w;
	struct meant m[4];
	int lost;

	first_life(&w, 4, 2, "");
	gang(&w, "g", 2, "2", GROUP("g", "2"));
	go_on(&w, NONE, NULL);
	add_pod(&w, "g-2", "sluice", "2", GROUP("g", "2"));
	lost = go_on(&w, 0, m);
	ok(lost == 1, "killed before the binding of a member that came later");
	die(&w);
	live(&w, 4, 2);
	go_on(&w, NONE, NULL);
	ok(lost == 1 && !strcmp(pod(&w, "g-2")->node, m[0].node),
	   "a follower goes to the node its intent names");
	ok(look(0).intents == 0, "the intent of a gang that went where it was meant to is settled");
	last_life_over(&w);
}

static void test_order_while_gathering(void)
{
	struct world w;
	int64_t first;

	first_life(&w, 1, 2, "");
	gang(&w, "x", 1, "2", TIMED("x", "1", "1000s"));
	go_on(&w, NONE, NULL);
	w.now_us += 123456;
	gang(&w, "g", 1, "2", GROUP("g", "2"));
	first = view(&w, "g").first_seen_us;
	die(&w);
	live(&w, 1, 2);
	ok(!strcmp(view(&w, "g").state, "gathering") && view(&w, "g").first_seen_us == first,
	   "a group that still gathers keeps its place to the microsecond");
	delete_pod(&w, pod(&w, "g-0"));
	go_on(&w, NONE, NULL);
	ok(look(0).jobs == 1, "a gathering group leaves the store when its pods go");
	last_life_over(&w);
}

static void test_promise_stands(void)
{
	struct world w;
	int64_t promised, started;
	uint64_t job;
	int64_t plans;

	first_life(&w, 2, 2, FIRST_PROMISED);
	gang(&w, "run", 2, "2", TIMED("run", "2", "500s"));
	go_on(&w, NONE, NULL);
	gang(&w, "a", 2, "2", TIMED("a", "2", "100s"));
	promised = view(&w, "a").estimate_s;
	started = view(&w, "run").start_s;
	ok(promised == started + 500, "promised at the end of what runs");
	go_on(&w, NONE, NULL);
	struct slu_snapshot *s = slu_core_snapshot(w.core);
	job = 0;
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, "a"))
			job = s->job[i].id;
	slu_snapshot_unref(s);
	plans = look(job).plans;
	die(&w);
	/* The kubelet reports a later start than the one that was planned with, and a more
	 * urgent gang comes while no daemon runs. */
	for (int i = 0; i < 2; i++)
		snprintf(w.pod[i].status, sizeof w.pod[i].status,
			 ",\"startTime\":\"2026-01-01T00:00:19Z\"");
	for (int i = 0; i < 2; i++) {
		char name[16];
		struct fpod *p;

		snprintf(name, sizeof name, "b-%d", i);
		p = make_pod(&w, name, "sluice", "2", TIMED("b", "2", "100s"));
		strncat(p->spec, ",\"priority\":1000", sizeof p->spec - strlen(p->spec) - 1);
	}
	w.now_us += 9000000;
	live(&w, 2, 2);
	ok(view(&w, "a").estimate_s == promised, "after a restart the promise stands (%lld, %lld)",
	   (long long)view(&w, "a").estimate_s, (long long)promised);
	ok(view(&w, "run").start_s == started, "a running job keeps its start over a restart");
	ok(view(&w, "b").estimate_s >= promised + 100, "the urgent one is planned around it");
	ok(plans > 0 && look(job).plans == plans, "a plan that stands is no news (%lld)",
	   (long long)look(job).plans);
	feed_node(&w, "n1", 2, "", "", "False"); /* the promise moves */
	go_on(&w, NONE, NULL);
	ok(look(job).plans > plans, "the history of plans grows over lives (%lld)",
	   (long long)plans);
	last_life_over(&w);
}

static int answers, answered_early;

static void answered(void *arg, int rc, const char *text)
{
	answers++;
	answered_early += !look(0).cancelled;
}

static void user_asks(struct world *w, enum slu_ask what, const char *name)
{
	take_ask(w, what, name, what == SLU_ASK_CANCEL ? answered : NULL);
	go_on(w, NONE, NULL);
}

static void test_user_said(void)
{
	struct world w;

	first_life(&w, 1, 2, "");
	gang(&w, "x", 1, "2", TIMED("x", "1", "1000s"));
	go_on(&w, NONE, NULL);
	gang(&w, "c", 1, "2", GROUP("c", "1"));
	gang(&w, "h", 1, "2", GROUP("h", "1"));
	go_on(&w, NONE, NULL);
	user_asks(&w, SLU_ASK_CANCEL, "c");
	ok(answers == 1 && !answered_early, "a cancel is answered once it is in the store");
	user_asks(&w, SLU_ASK_HOLD, "h");
	die(&w);
	snprintf(pod(&w, "x-0")->phase, 16, "Succeeded");
	live(&w, 1, 2);
	go_on(&w, NONE, NULL);
	ok(!*pod(&w, "c-0")->node, "a cancelled group stays cancelled after a restart");
	ok(!*pod(&w, "h-0")->node, "a held group stays held after a restart");
	user_asks(&w, SLU_ASK_RELEASE, "c");
	ok(*pod(&w, "c-0")->node, "a cancelled job starts once it is released");
	last_life_over(&w);
}

/* A gang that runs may be cancelled or on hold, too, with members that wait. */
static void check_said_of_what_runs(enum slu_ask what, const char *said)
{
	struct world w;

	first_life(&w, 1, 4, "");
	add_pod(&w, "c-0", "sluice", "2", TIMED("c", "1", "1000s"));
	add_pod(&w, "x-0", "sluice", "2", TIMED("x", "1", "1000s"));
	go_on(&w, NONE, NULL);
	add_pod(&w, "c-1", "sluice", "2", TIMED("c", "1", "1000s"));
	go_on(&w, NONE, NULL);
	user_asks(&w, what, "c");
	die(&w);
	snprintf(pod(&w, "x-0")->phase, 16, "Succeeded");
	live(&w, 1, 4);
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "c-0")->node && !*pod(&w, "c-1")->node,
	   "a member that waits does not start after a restart if its gang was %s while it ran",
	   said);
	user_asks(&w, SLU_ASK_RELEASE, "c");
	ok(*pod(&w, "c-1")->node, "it starts once its gang is released");
	last_life_over(&w);
}

/* A person asks for a job before the lists of a new process are complete: that the core does not
 * know the job yet does not mean that there is no such job. */
static int put_off;

static void was_put_off(void *arg, int rc, const char *text)
{
	put_off = rc;
}

static void test_asked_too_early(void)
{
	struct world w;

	first_life(&w, 1, 4, "");
	die(&w);
	begin_life(&w);
	take_ask(&w, SLU_ASK_RELEASE, "a", was_put_off);
	ok(put_off == -EAGAIN,
	   "a person who asks before the lists are complete is asked to wait (%d)", put_off);
	last_life_over(&w);
}

static void three_of_a_job(struct world *w)
{
	for (int i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof name, "m-%d", i);
		add_pod(w, name, "sluice", "2", OWNED("Job", "job-1", "m"));
	}
}

#define MADE "\"parallelism\":3,\"completions\":3"

static void test_half_evicted(void)
{
	struct world w;
	int lost;

	first_life(&w, 3, 2, "jobs: {onMemberFailure: restart}\n");
	job(&w, "job-1", "m", MADE, "");
	three_of_a_job(&w);
	go_on(&w, NONE, NULL);
	ok(bound(&w, "m-") == 3, "a gang of a Job runs");
	end_pod(&w, pod(&w, "m-0"), "Failed");
	lost = go_on(&w, 0, NULL);
	ok(lost == 2,
	   "a gang that lost a member starts again; the kill comes before its evictions (%d)",
	   lost);
	die(&w);
	live(&w, 3, 2);
	job(&w, "job-1", "m", MADE, "\"failed\":1");
	go_on(&w, NONE, NULL);
	ok(w.evictions == 2, "the next life carries them out (%d)", w.evictions);
	w.now_us += 11000000;
	go_on(&w, NONE, NULL);
	ok(w.evictions == 4, "the next life evicts again what is still there (%d)", w.evictions);
	delete_pod(&w, pod(&w, "m-1"));
	delete_pod(&w, pod(&w, "m-2"));
	w.pod[0].there = false;
	w.evictions = 0;
	three_of_a_job(&w);
	w.now_us += 11000000;
	go_on(&w, NONE, NULL);
	ok(bound(&w, "m-") == 3 && !w.evictions, "made anew, the gang starts whole");
	ok(look(0).intents == 0, "no intent is left open");
	last_life_over(&w);
}

static void test_bare_pods_stay(void)
{
	struct world w;
	struct slu_error err = { 0 };
	struct slu_record *r;
	int n = 0;

	first_life(&w, 2, 2, "");
	gang(&w, "g", 2, "2", GROUP("g", "2"));
	/* The first binding succeeds, the second is refused for good. */
	for (int round = 0; round < 30000 && n < 2; round++) {
		w.now_us += 100;
		slu_core_cycle(w.core, w.now_us, &err);
		while (slu_inbox_take(w.out, &r, 1)) {
			struct slu_rec_write *x = (struct slu_rec_write *)r;

			if (x->verb == SLU_WRITE_BIND) {
				w.bind_outcome = n++ == 1 ? SLU_KUBE_INVALID : SLU_KUBE_OK;
				carry_out(&w, x);
			}
			r->free(r);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	w.bind_outcome = SLU_KUBE_OK;
	go_on(&w, NONE, NULL);
	w.now_us += 31000000; /* the node that refused is avoided for a while */
	go_on(&w, NONE, NULL);
	ok(!w.evictions && bound(&w, "g-") == 2,
	   "a pod nobody would make again is not evicted; the rest of its gang follows");
	last_life_over(&w);
}

/* Binds one of the gang's two and refuses the other, for some lives. */
static void test_rest_of_what_is_over(void)
{
	struct world w;
	struct slu_error err = { 0 };
	struct slu_record *r;

	first_life(&w, 2, 2, "place: {retryFor: 0s}\n");
	gang(&w, "g", 2, "2", GROUP("g", "2"));
	for (int life = 0; life < 3; life++) {
		/* Until the first is bound, and a hundred rounds of a store with nothing to do. */
		for (int quiet = 0, round = 0; quiet < 100 && round < 30000; round++) {
			struct slu_journal_health h;

			w.now_us += 100;
			slu_core_cycle(w.core, w.now_us, &err);
			slu_intents_health(w.core->door, &h);
			quiet += *pod(&w, "g-0")->node && h.state == SLU_JOURNAL_OK && !h.waiting;
			while (slu_inbox_take(w.out, &r, 1)) {
				struct slu_rec_write *x = (struct slu_rec_write *)r;

				w.bind_outcome = !strcmp(x->name, "g-1") ? SLU_KUBE_INVALID
									 : SLU_KUBE_OK;
				if (r->kind == SLU_REC_WRITE && x->verb == SLU_WRITE_BIND)
					carry_out(&w, x);
				r->free(r);
			}
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		}
		ok(*pod(&w, "g-0")->node && !*pod(&w, "g-1")->node, "life %d: in part", life);
		if (!life) {
			end_pod(&w, pod(&w, "g-0"), "Succeeded");
			continue; /* its gang is over */
		}
		die(&w);
		live(&w, 2, 2);
	}
	w.bind_outcome = SLU_KUBE_OK;
	w.now_us += 31000000;
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "g-1")->node, "the last one of a gang that is over follows, lives later");
	end_pod(&w, pod(&w, "g-1"), "Succeeded");
	go_on(&w, NONE, NULL);
	ok(look(0).jobs == 0, "nothing of a gang that is over waits in the store");
	last_life_over(&w);
}

#define AFTER(what) "\"annotations\":{\"sluice.sh/after\":\"" what "\"}"

/* The store remembers the results of groups that the cluster no longer has. */
static void test_after_those_of_the_past(void)
{
	struct world w;

	first_life(&w, 4, 4, "");
	gang(&w, "good", 2, "1", GROUP("good", "2"));
	gang(&w, "bad", 2, "1", GROUP("bad", "2"));
	go_on(&w, NONE, NULL);
	end_pod(&w, pod(&w, "good-0"), "Succeeded");
	end_pod(&w, pod(&w, "good-1"), "Succeeded");
	end_pod(&w, pod(&w, "bad-0"), "Succeeded");
	end_pod(&w, pod(&w, "bad-1"), "Failed");
	go_on(&w, NONE, NULL);
	for (int i = 0; i < w.n_pods; i++)
		w.pod[i].there = false;
	die(&w);
	live(&w, 4, 4);
	add_pod(&w, "x", "sluice", "1", AFTER("ok:good,failed:bad"));
	add_pod(&w, "y", "sluice", "1", AFTER("good,bad"));
	add_pod(&w, "z", "sluice", "1", AFTER("ok:bad"));
	add_pod(&w, "u", "sluice", "1", AFTER("other"));
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "x")->node && *pod(&w, "y")->node,
	   "after: groups that ended before the restart count");
	ok(!*pod(&w, "z")->node, "after ok: a failure before the restart does not count");
	ok(!*pod(&w, "u")->node, "after: an unknown group is waited for");
	last_life_over(&w);
}

static void test_bound_behind_our_back(void)
{
	struct world w;
	struct fpod *p;

	first_life(&w, 2, 2, "");
	gang(&w, "x", 1, "2", TIMED("x", "1", "100s"));
	go_on(&w, NONE, NULL);
	gang(&w, "g", 2, "2", GROUP("g", "2"));
	go_on(&w, NONE, NULL);
	ok(bound(&w, "g-") == 0, "a gang of two waits for the second node");
	p = pod(&w, "g-1");
	snprintf(p->node, sizeof p->node, "%s", strcmp(pod(&w, "x-0")->node, "n0") ? "n0" : "n1");
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(&w, p, false);
	go_on(&w, NONE, NULL);
	end_pod(&w, pod(&w, "x-0"), "Succeeded");
	w.binds = 0;
	go_on(&w, NONE, NULL);
	ok(bound(&w, "g-") == 2 && w.binds == 1,
	   "somebody bound one of them: the other follows, and only it (%d)", w.binds);
	last_life_over(&w);
}

/* Limits bound the plan; only its end frees a node. */
static void test_outlives_its_limit(void)
{
	struct world w;

	first_life(&w, 1, 2, "");
	gang(&w, "a", 1, "2", TIMED("a", "1", "10s"));
	go_on(&w, NONE, NULL);
	gang(&w, "b", 1, "2", TIMED("b", "1", "10s"));
	go_on(&w, NONE, NULL);
	for (int i = 0; i < 30; i++) {
		w.now_us += 500000;
		go_on(&w, NONE, NULL);
		if (*pod(&w, "b-0")->node)
			break;
	}
	ok(!*pod(&w, "b-0")->node, "the next one does not start on a node that is still in use");
	die(&w);
	live(&w, 1, 2);
	go_on(&w, NONE, NULL);
	for (int i = 0; i < 5; i++) {
		w.now_us += 500000;
		go_on(&w, NONE, NULL);
	}
	ok(!*pod(&w, "b-0")->node, "after a restart the second gang still waits");
	end_pod(&w, pod(&w, "a-0"), "Succeeded");
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "b-0")->node, "the second gang starts at once when the first ends");
	last_life_over(&w);
}

/* A gang is taken back while the binding of one of its members is on its way. */
static void test_binding_on_its_way(void)
{
	struct world w;
	struct slu_error err = { 0 };
	struct slu_rec_write *late = NULL;
	struct slu_record *r;

	first_life(&w, 2, 2, "jobs: {onMemberFailure: restart}\n");
	job(&w, "job-1", "m", "\"parallelism\":2,\"completions\":2", "");
	add_pod(&w, "m-0", "sluice", "2", OWNED("Job", "job-1", "m"));
	add_pod(&w, "m-1", "sluice", "2", OWNED("Job", "job-1", "m"));
	go_on(&w, 1, NULL);
	die(&w);
	live(&w, 2, 2);
	job(&w, "job-1", "m", "\"parallelism\":2,\"completions\":2", "");
	for (int round = 0; round < 30000 && !late; round++) {
		w.now_us += 100;
		slu_core_cycle(w.core, w.now_us, &err);
		while (slu_inbox_take(w.out, &r, 1))
			if (r->kind == SLU_REC_WRITE &&
			    ((struct slu_rec_write *)r)->verb == SLU_WRITE_BIND && !late)
				late = (struct slu_rec_write *)r;
			else
				r->free(r);
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	ok(late, "the next life sends the binding again");
	end_pod(&w, *pod(&w, "m-0")->node ? pod(&w, "m-0") : pod(&w, "m-1"), "Failed");
	gang(&w, "x", 2, "2", GROUP("x", "2"));
	go_on(&w, NONE, NULL);
	ok(bound(&w, "x-") == 0,
	   "the first member fails: the place of the other is not given away");
	if (late) {
		carry_out(&w, late);
		late->base.free(&late->base);
	}
	go_on(&w, NONE, NULL);
	ok(bound(&w, "x-") == 0 && w.evictions == 1,
	   "a member that was bound before the kill is evicted (%d)", w.evictions);
	delete_pod(&w, *pod(&w, "m-0")->node && !strcmp(pod(&w, "m-0")->phase, "Running")
			       ? pod(&w, "m-0")
			       : pod(&w, "m-1"));
	go_on(&w, NONE, NULL);
	ok(bound(&w, "x-") == 2, "when the gang is gone, the next one starts");
	ok(look(0).intents == 0, "no intent is left open");
	last_life_over(&w);
}

/* Two of three members have started and ended; the node of the third is gone when its turn
 * comes. */
static void test_last_of_a_gang(void)
{
	struct world w;
	struct meant m[4];

	first_life(&w, 3, 2, "");
	gang(&w, "g", 3, "2", GROUP("g", "3"));
	ok(go_on(&w, 1, m) == 2, "killed after the first of three bindings");
	for (int life = 0; life < 2; life++) {
		die(&w);
		for (int i = 0; i < 3; i++)
			if (*w.pod[i].node)
				snprintf(w.pod[i].phase, sizeof w.pod[i].phase, "Succeeded");
		live(&w, 3, 2);
		if (life == 1)
			break;
		go_on(&w, 1, m);
	}
	feed_node(&w, m[0].node, 2, "", "\"unschedulable\":true", "True");
	go_on(&w, NONE, NULL);
	ok(bound(&w, "g-") == 0, "a binding to the closed node may be on its way (%d)",
	   bound(&w, "g-"));
	w.now_us += 11000000;
	go_on(&w, NONE, NULL);
	ok(bound(&w, "g-") == 1, "none shows: the last one starts on another node (%d)",
	   bound(&w, "g-"));
	last_life_over(&w);
}

/* Members that came later are in the plan, too: neither side loses its promise to the other. */
static void test_promise_and_later_member(void)
{
	struct world w;
	int64_t promised;

	first_life(&w, 2, 2, FIRST_PROMISED);
	gang(&w, "w", 1, "2", TIMED("w", "1", "2000s"));
	gang(&w, "x", 1, "2", TIMED("x", "1", "1000s"));
	go_on(&w, NONE, NULL);
	gang(&w, "a", 2, "2", TIMED("a", "2", "100s"));
	promised = view(&w, "a").estimate_s;
	add_pod(&w, "w-1", "sluice", "2", TIMED("w", "1", "2000s"));
	ok(promised > 0 && view(&w, "a").estimate_s == promised,
	   "a later member of what runs is planned around a promise");
	for (int life = 0; life < 3; life++) {
		die(&w);
		live(&w, 2, 2);
		go_on(&w, NONE, NULL);
	}
	ok(view(&w, "a").estimate_s == promised, "after restarts, too (%lld, %lld)",
	   (long long)view(&w, "a").estimate_s, (long long)promised);
	last_life_over(&w);
}

/* Two gangs have a promise; the more urgent one came second and starts first. */
static void test_promises_to_both(void)
{
	struct world w;
	struct fpod *p;
	int64_t promised;

	first_life(&w, 2, 2, FIRST_PROMISED);
	gang(&w, "w", 1, "2", TIMED("w", "1", "2000s"));
	gang(&w, "x", 1, "2", TIMED("x", "1", "1000s"));
	go_on(&w, NONE, NULL);
	gang(&w, "a", 2, "2", TIMED("a", "2", "100s"));
	promised = view(&w, "a").estimate_s;
	p = make_pod(&w, "b-0", "sluice", "2", TIMED("b", "1", "500s"));
	strncat(p->spec, ",\"priority\":1000", sizeof p->spec - strlen(p->spec) - 1);
	feed_pod(&w, p, false);
	ok(view(&w, "b").estimate_s < promised && look(0).promised == 2,
	   "both gangs are promised a start");
	for (int life = 0; life < 3; life++) {
		die(&w);
		live(&w, 2, 2);
		go_on(&w, NONE, NULL);
	}
	ok(view(&w, "a").estimate_s == promised && look(0).promised == 2,
	   "both promises stand after restarts (%d)", look(0).promised);
	last_life_over(&w);
}

static void test_promise_to_later_member(void)
{
	struct world w;
	struct fpod *p;

	first_life(&w, 2, 2, FIRST_PROMISED);
	gang(&w, "w", 1, "2", TIMED("w", "1", "2000s"));
	gang(&w, "x", 1, "2", TIMED("x", "1", "1000s"));
	go_on(&w, NONE, NULL);
	add_pod(&w, "w-1", "sluice", "2", TIMED("w", "1", "2000s"));
	go_on(&w, NONE, NULL);
	die(&w);
	p = make_pod(&w, "b-0", "sluice", "2", TIMED("b", "1", "100s"));
	strncat(p->spec, ",\"priority\":1000", sizeof p->spec - strlen(p->spec) - 1);
	live(&w, 2, 2);
	go_on(&w, NONE, NULL);
	end_pod(&w, pod(&w, "x-0"), "Succeeded");
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "w-1")->node && !*pod(&w, "b-0")->node,
	   "a place promised to a later member does not go to a more urgent gang");
	last_life_over(&w);
}

/* A held Job gets the only node, and its release is lost with the process. */
static void held_and_killed(struct world *w)
{
	first_life(w, 1, 4, "");
	memset(&seen, 0, sizeof seen);
	feed_job(w, "j", 2, true, "yes", "");
	go_on(w, NONE, NULL);
	ok(w->patches == 1, "a held Job is let go");
	ok(!strcmp(look(0).last, "j Job \"j-job\""), "the store has its FluxJob: %s", look(0).last);
	gang(w, "a", 1, "4", TIMED("a", "1", "100s"));
	go_on(w, NONE, NULL);
	die(w);
	live(w, 1, 4);
	w->patched = server;
}

static void test_release_lost(void)
{
	struct world w;

	held_and_killed(&w);
	feed_job(&w, "j", 2, true, "yes", "");
	go_on(&w, NONE, NULL);
	ok(seen.jobs == 1 && strstr(seen.job, "\"sluice.sh/places\":\"n0*2\"") &&
		   !*pod(&w, "a-0")->node,
	   "a Job whose release did not come through is released again, and its place is still free");
	ok(look(0).intents == 1, "the intent of a release is open until the release is seen");
	feed_job(&w, "j", 2, false, "released", ",\"sluice.sh/places\":\"n0*2\"");
	gated_pod(&w, "j-0", "j");
	go_on(&w, NONE, NULL);
	ok(look(0).intents == 2 && seen.pods == 0,
	   "while one of two pods is there none is released");
	gated_pod(&w, "j-1", "j");
	go_on(&w, NONE, NULL);
	ok(look(0).intents == 0 && seen.pods == 2,
	   "once both pods are there they are released and the intent is settled");
	last_life_over(&w);
}

/* The same, but the store lost changes in between and was rewritten. */
static void test_release_lost_after_outage(void)
{
	struct world w;

	first_life(&w, 1, 4, "");
	memset(&seen, 0, sizeof seen);
	feed_job(&w, "j", 2, true, "yes", "");
	go_on(&w, NONE, NULL);
	ok(w.patches == 1 && look(0).intents == 1, "a held Job is let go");
	/* More urgent: would go first if the new life did not know of the decision. */
	gang(&w, "a", 1, "4",
	     "\"labels\":{\"fluence.pod-group\":\"a\",\"fluence.group-size\":\"1\"},"
	     "\"annotations\":{\"sluice.sh/duration\":\"100s\",\"sluice.sh/priority\":\"9\"}");
	go_on(&w, NONE, NULL);
	slu_intents_lost(w.core->door, true);
	go_on(&w, NONE, NULL);
	ok(!w.core->recovery->store_health.lost && look(0).intents == 1,
	   "the store is written anew, its intent with it");
	die(&w);
	live(&w, 1, 4);
	w.patched = server;
	feed_job(&w, "j", 2, true, "yes", "");
	go_on(&w, NONE, NULL);
	ok(seen.jobs == 1 && strstr(seen.job, "\"sluice.sh/places\":\"n0*2\"") &&
		   !*pod(&w, "a-0")->node,
	   "a Job whose release did not come through is released again, and its place is still free");
	last_life_over(&w);
}

static void test_release_done(void)
{
	struct world w;

	held_and_killed(&w);
	feed_job(&w, "j", 2, false, "released", ",\"sluice.sh/places\":\"n0*2\"");
	gated_pod(&w, "j-0", "j");
	gated_pod(&w, "j-1", "j");
	go_on(&w, NONE, NULL);
	ok(seen.pods == 2 && !*pod(&w, "a-0")->node,
	   "pods of a release that came through get their nodes before other work (%d)", seen.pods);
	last_life_over(&w);
}

/* While the daemon was away, a user wrote annotations that only Sluice writes; the store has no
 * record of them. */
static void test_forged_release(void)
{
	struct world w;
	struct fpod *p;

	first_life(&w, 1, 4, "");
	gang(&w, "x", 1, "4", TIMED("x", "1", "100s"));
	go_on(&w, NONE, NULL);
	gang(&w, "a", 1, "4", TIMED("a", "1", "100s"));
	go_on(&w, NONE, NULL);
	end_pod(&w, pod(&w, "x-0"), "Succeeded");
	die(&w);
	memset(&seen, 0, sizeof seen);
	live(&w, 1, 4);
	w.patched = server;
	feed_job(&w, "j", 2, false, "released", ",\"sluice.sh/places\":\"n0*2\"");
	gated_pod(&w, "j-0", "j");
	gated_pod(&w, "j-1", "j");
	p = make_pod(&w, "f-0", "default-scheduler", "2", "");
	pin_pod(&w, p, "n0");
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "a-0")->node && !seen.pods,
	   "forged places and a forged release get nothing; who waited before starts (%d)",
	   seen.pods);
	last_life_over(&w);
}

/* Pods that were let go and not bound yet lose their Job (kubectl delete --cascade=orphan): by their
 * objects each is a group of its own, of which the store knows nothing. */
static void test_release_orphaned(void)
{
	struct world w;

	held_and_killed(&w);
	seen.outcome = SLU_KUBE_OK;
	feed_job(&w, "j", 2, false, "released", ",\"sluice.sh/places\":\"n0*2\"");
	gated_pod(&w, "j-0", "j");
	gated_pod(&w, "j-1", "j");
	go_on(&w, NONE, NULL);
	ok(seen.pods == 2 && strstr(pod(&w, "j-0")->spec, "hostname"), "the pods are let go (%d)",
	   seen.pods);
	die(&w);
	for (int i = 0; i < 2; i++) {
		struct fpod *p = pod(&w, i ? "j-1" : "j-0");

		snprintf(p->meta, sizeof p->meta, "\"annotations\":{\"sluice.sh/node\":\"n0\"}");
	}
	for (int i = 0; i < 2; i++) { /* the second life is told by the rows of the first */
		live(&w, 1, 4);
		w.patched = server;
		go_on(&w, NONE, NULL);
		ok(!*pod(&w, "a-0")->node, "pods that were let go count without their Job, too");
		if (!i)
			die(&w);
	}
	last_life_over(&w);
}

static void test_release_of_those_ahead(void)
{
	struct world w;

	held_and_killed(&w);
	feed_job(&w, "j", 2, false, "yes", ",\"sluice.sh/ahead\":\"yes\"");
	gated_pod(&w, "j-0", "j");
	go_on(&w, NONE, NULL);
	ok(seen.pods == 0 && !*pod(&w, "a-0")->node,
	   "a pod that came in place of its stand-in keeps the place meant for it");
	gated_pod(&w, "j-1", "j");
	go_on(&w, NONE, NULL);
	ok(seen.pods == 2 && !*pod(&w, "a-0")->node,
	   "the other one has too: they take what was meant for them (%d)", seen.pods);
	last_life_over(&w);
}

/* ---- what ended, and what came again under the same name ---- */

static void remake(struct world *w, const char *name, int n, const char *cpu, const char *meta)
{
	for (int i = 0; i < w->n_pods; i++)
		if (!strncmp(w->pod[i].name, name, strlen(name)))
			w->pod[i].there = false;
	for (int i = 0; i < n; i++) {
		char full[32];

		snprintf(full, sizeof full, "%s-%d", name, i);
		make_pod(w, full, "sluice", cpu, meta);
	}
}

static void test_same_name_anew(void)
{
	struct world w;

	first_life(&w, 2, 8, "");
	gang(&w, "train", 4, "1", GROUP("train", "4"));
	go_on(&w, NONE, NULL);
	ok(bound(&w, "train") == 4, "the first life of a name runs");
	add_pod(&w, "wide", "sluice", "12", GROUP("held", "1"));
	add_pod(&w, "lost", "sluice", "12", GROUP("canc", "1"));
	go_on(&w, NONE, NULL);
	take_ask(&w, SLU_ASK_HOLD, "held", NULL);
	take_ask(&w, SLU_ASK_CANCEL, "canc", NULL);
	go_on(&w, NONE, NULL);
	die(&w);
	w.now_us += 60000000;
	remake(&w, "train", 2, "1", GROUP("train", "4"));
	remake(&w, "wide", 1, "1", GROUP("held", "1"));
	remake(&w, "lost", 1, "1", GROUP("canc", "1"));
	live(&w, 2, 8);
	go_on(&w, NONE, NULL);
	ok(bound(&w, "train") == 0, "its second life has two of four members: none starts (%d)",
	   bound(&w, "train"));
	ok(bound(&w, "wide") == 1, "a second life is not held because the first was");
	ok(bound(&w, "lost") == 1, "a second life is not cancelled because the first was");
	last_life_over(&w);
}

struct results {
	int n;
	char outcome[16];
	int64_t start_s, end_s, used;
	const char *name;
};
static int read_results(void *arg, const struct slu_store_result *r)
{
	struct results *f = arg;

	if (strcmp(r->name, f->name))
		return 0;
	f->n++;
	snprintf(f->outcome, sizeof f->outcome, "%s", r->outcome);
	f->start_s = r->start_s;
	f->end_s = r->end_s;
	f->used = r->usage;
	return 0;
}
static struct results result_of(const char *name)
{
	struct results f = { .name = name };
	struct slu_store *s = NULL;

	if (slu_store_open(store, 0, &s, NULL) < 0 ||
	    slu_store_results(s, 0, read_results, &f, NULL) < 0)
		f.n = -1;
	slu_store_close(s);
	return f;
}

/* The number of jobs of that name in the snapshot, and how many of them have that many members. */
static int jobs_seen(struct world *w, const char *name, uint32_t members, int *of_that_size)
{
	struct slu_snapshot *s;
	int n = 0;

	view(w, name);
	s = slu_core_snapshot(w->core);
	*of_that_size = 0;
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name)) {
			n++;
			*of_that_size += s->job[i].n_pods == members;
		}
	slu_snapshot_unref(s);
	return n;
}

/* A Job's pods were evicted, it made them again, and the new ones run while the old ones end. */
static void test_earlier_life_leaves(void)
{
	static const char spec[] = "\"parallelism\":2,\"completions\":2";
	struct results r;
	struct world w;
	int n, twos;

	first_life(&w, 4, 2, "");
	job(&w, "j1", "j", spec, "");
	gang(&w, "a", 2, "2", OWNED("Job", "j1", "j"));
	go_on(&w, NONE, NULL);
	delete_softly(&w, pod(&w, "a-0"));
	delete_softly(&w, pod(&w, "a-1"));
	gang(&w, "b", 2, "2", OWNED("Job", "j1", "j"));
	go_on(&w, NONE, NULL);
	n = jobs_seen(&w, "j", 2, &twos);
	ok(n == 2 && twos == 2 && bound(&w, "b") == 2,
	   "a gang begins again while its earlier life ends: two jobs of two (%d, %d)", n, twos);
	die(&w);
	live(&w, 4, 2);
	job(&w, "j1", "j", spec, "");
	go_on(&w, NONE, NULL);
	n = jobs_seen(&w, "j", 2, &twos);
	ok(n == 2 && twos == 2, "after a restart they are two jobs of two still (%d, %d)", n, twos);
	ok(result_of("j").n == 0, "after a restart neither of two jobs with one name is over");
	delete_pod(&w, pod(&w, "a-0"));
	delete_pod(&w, pod(&w, "a-1"));
	go_on(&w, NONE, NULL);
	r = result_of("j");
	ok(r.n == 1 && jobs_seen(&w, "j", 2, &twos) == 1 && twos == 1,
	   "when its members are gone, the earlier life has its result (%d)", r.n);
	last_life_over(&w);
}

/* The kubelet's word: started and ended at these seconds of the first minutes of 2026. */
static void ran(struct world *w, struct fpod *p, const char *phase, const char *from,
		const char *to, bool seen_now)
{
	snprintf(p->phase, sizeof p->phase, "%s", phase);
	snprintf(p->status, sizeof p->status,
		 ",\"startTime\":\"2026-01-01T00:0%sZ\",\"containerStatuses\":[{\"name\":\"c\","
		 "\"state\":{\"terminated\":{\"finishedAt\":\"2026-01-01T00:0%sZ\"}}}]",
		 from, to);
	if (seen_now)
		feed_pod(w, p, false);
}

/* Two members of 1 and two cpu seconds each: 1000 * 60 + 1000 * 90 = 150 000 millicore seconds. */
static void check_use(bool restart, bool away)
{
	struct world w;
	struct results r;

	first_life(&w, 1, 4, "");
	gang(&w, "g", 2, "1", GROUP("g", "2"));
	go_on(&w, NONE, NULL);
	w.now_us = INT64_C(1767225600000000) + 100000000; /* 00:01:40 */
	ran(&w, pod(&w, "g-0"), "Failed", "0:10", "1:10", !away);
	if (!away)
		go_on(&w, NONE, NULL);
	if (restart) {
		die(&w);
		if (away)
			ran(&w, pod(&w, "g-1"), "Succeeded", "0:10", "1:40", false);
		live(&w, 1, 4);
		go_on(&w, NONE, NULL);
	}
	if (!away) {
		w.now_us += 30000000;
		ran(&w, pod(&w, "g-1"), "Succeeded", "0:10", "1:40", true);
		go_on(&w, NONE, NULL);
	}
	r = result_of("g");
	ok(r.n == 1 && !strcmp(r.outcome, "failed"),
	   "restart %d, unseen %d: one result, failed as a member did (%d, %s)", restart, away, r.n,
	   r.outcome);
	ok(r.used == 150000, "each member from its own start to its own end (%lld)",
	   (long long)r.used);
	ok(r.end_s == 1767225600 + 100, "the gang ended with the last of its members");
	add_pod(&w, "next", "sluice", "1", "\"annotations\":{\"sluice.sh/after\":\"ok:g\"}");
	go_on(&w, NONE, NULL);
	ok(bound(&w, "next") == 0, "a group that waits for its success does not start");
	last_life_over(&w);
}

/* A member that came later counts for its gang: 60 + 60 seconds of the two, 30 of the third. */
static void test_use_of_followers(void)
{
	struct world w;
	struct results r;

	first_life(&w, 1, 4, "");
	gang(&w, "g", 2, "1", GROUP("g", "2"));
	go_on(&w, NONE, NULL);
	add_pod(&w, "g-2", "sluice", "1", GROUP("g", "2"));
	go_on(&w, NONE, NULL);
	w.now_us = INT64_C(1767225600000000) + 130000000;
	ran(&w, pod(&w, "g-0"), "Succeeded", "0:10", "1:10", true);
	ran(&w, pod(&w, "g-1"), "Succeeded", "0:10", "1:10", true);
	go_on(&w, NONE, NULL);
	ok(result_of("g").n == 0, "a gang is not over while a later member runs");
	ran(&w, pod(&w, "g-2"), "Succeeded", "1:00", "1:30", true);
	go_on(&w, NONE, NULL);
	r = result_of("g");
	ok(r.n == 1 && r.used == 150000 && !strcmp(r.outcome, "ok"),
	   "the use of the gang is that of all its members (%lld)", (long long)r.used);
	last_life_over(&w);
}

static void feed_set(struct world *w)
{
	feed(w, SLU_KIND_STATEFULSET, false,
	     "{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\",\"uid\":\"ss-1\",\"generation\":1,"
	     "\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{\"replicas\":3,\"template\":{}}}",
	     ++w->rv);
}

static void test_set_half_made(void)
{
	struct world w;

	first_life(&w, 3, 2, "");
	feed_set(&w);
	add_pod(&w, "db-0", "sluice", "2", OWNED("StatefulSet", "ss-1", "db"));
	go_on(&w, NONE, NULL);
	ok(bound(&w, "db") == 1, "a set that makes its pods one by one has begun");
	add_pod(&w, "thief", "sluice", "2", "");
	go_on(&w, NONE, NULL);
	die(&w);
	live(&w, 3, 2);
	feed_set(&w);
	go_on(&w, NONE, NULL);
	ok(bound(&w, "thief") == 0, "the places of its other members are kept over a restart");
	for (int i = 1; i < 3; i++) {
		add_pod(&w, i == 1 ? "db-1" : "db-2", "sluice", "2",
			OWNED("StatefulSet", "ss-1", "db"));
		go_on(&w, NONE, NULL);
	}
	ok(bound(&w, "db") == 3 && bound(&w, "thief") == 0,
	   "members that come after a restart get their kept places");
	last_life_over(&w);
}

static void one_on(struct world *w, const char *name, const char *meta, const char *key,
		   const char *value)
{
	struct fpod *p = make_pod(w, name, "sluice", "2", meta);
	size_t n = strlen(p->spec);

	snprintf(p->spec + n, sizeof p->spec - n, ",\"nodeSelector\":{\"%s\":\"%s\"}", key, value);
	feed_pod(w, p, false);
}

/* Both promises could use n0 by their times alone; only one of them must. */
static void test_promise_keeps_its_place(void)
{
	struct world w;
	int64_t wide, small;

	first_life(&w, 3, 2, "queues: [{name: default, policy: conservative}]");
	one_on(&w, "r0", TIMED("r0", "1", "600s"), "which", "n0");
	one_on(&w, "r1", TIMED("r1", "1", "600s"), "which", "n1");
	one_on(&w, "r2", TIMED("r2", "1", "1200s"), "which", "n2");
	go_on(&w, NONE, NULL);
	one_on(&w, "wide-0", TIMED("wide", "2", "3600s"), "which", "n0");
	one_on(&w, "wide-1", TIMED("wide", "2", "3600s"), "which", "n2");
	go_on(&w, NONE, NULL);
	one_on(&w, "small", TIMED("small", "1", "3600s"), "pool", "front");
	go_on(&w, NONE, NULL);
	wide = view(&w, "wide").estimate_s;
	small = view(&w, "small").estimate_s;
	ok(wide == view(&w, "r2").start_s + 1200 && small == view(&w, "r1").start_s + 600,
	   "the wide one waits for n2, the small one for n1");
	die(&w);
	live(&w, 3, 2);
	ok(view(&w, "wide").estimate_s == wide && view(&w, "small").estimate_s == small,
	   "after a restart each has its time and its node (%lld, %lld; %lld, %lld)",
	   (long long)view(&w, "wide").estimate_s, (long long)wide,
	   (long long)view(&w, "small").estimate_s, (long long)small);
	last_life_over(&w);
}

/* A gang that was inside a full queue is inside after a restart, in whatever order the pods are
 * listed. */
static void test_full_queue(void)
{
	struct world w;

	first_life(&w, 1, 2, "queues: [{name: default, maxWaiting: 2}]");
	add_pod(&w, "blocker", "sluice", "2", TIMED("blocker", "1", "600s"));
	go_on(&w, NONE, NULL);
	w.n_pods++; /* listed first in the next life */
	for (int i = 0; i < 2; i++) {
		w.now_us += 2000000;
		add_pod(&w, i ? "z2" : "z1", "sluice", "2",
			i ? TIMED("z2", "1", "60s") : TIMED("z1", "1", "60s"));
		go_on(&w, NONE, NULL);
	}
	w.now_us += 2000000;
	int last = w.n_pods;

	w.n_pods = 1;
	add_pod(&w, "a1", "sluice", "2", TIMED("a1", "1", "60s"));
	w.n_pods = last;
	go_on(&w, NONE, NULL);
	ok(!strcmp(view(&w, "a1").state, "refused"), "the third finds the queue full");
	die(&w);
	live(&w, 1, 2);
	go_on(&w, NONE, NULL);
	ok(!strcmp(view(&w, "a1").state, "refused") && !strcmp(view(&w, "z2").state, "waiting"),
	   "after a restart, too (%s, %s)", view(&w, "a1").state, view(&w, "z2").state);
	delete_pod(&w, pod(&w, "z1"));
	go_on(&w, NONE, NULL);
	ok(!strcmp(view(&w, "a1").state, "waiting"), "it is let in when one leaves (%s)",
	   view(&w, "a1").state);
	last_life_over(&w);
}

/* A running gang counts, even if its queue was removed. */
static void test_queue_renamed(void)
{
	struct slu_error err = { 0 };
	const char *yaml = "queues: [{name: default}, {name: new}]";
	struct world w;

	first_life(&w, 1, 2, "queues: [{name: default}, {name: old}]");
	add_pod(&w, "runs", "sluice", "2",
		"\"annotations\":{\"sluice.sh/queue\":\"old\",\"sluice.sh/duration\":\"600s\"}");
	go_on(&w, NONE, NULL);
	ok(bound(&w, "runs") == 1, "a job runs in a queue that will be renamed");
	die(&w);
	slu_config_free(w.cfg);
	ok(slu_config_parse("test", yaml, strlen(yaml), &w.cfg, &err) == 0, "the queue is renamed");
	live(&w, 1, 2);
	go_on(&w, NONE, NULL);
	add_pod(&w, "next", "sluice", "2", TIMED("next", "1", "60s"));
	go_on(&w, NONE, NULL);
	ok(bound(&w, "next") == 0, "the node of the running job is not given to another");
	ok(differences(&w) == 0, "the books agree with the pods after the restart");
	last_life_over(&w);
}

/* The settings are read again between the start, which reads the store, and the first cycle. */
static void test_queue_comes_back(void)
{
	static const char *const yaml[] = { "queues: [{name: default}]",
					    "queues: [{name: default}, {name: other}]" };
	struct slu_config *cfg[2] = { NULL };
	struct slu_error err = { 0 };
	struct world w;

	first_life(&w, 1, 2, yaml[1]);
	add_pod(&w, "runs", "sluice", "2", TIMED("runs", "1", "60s"));
	add_pod(&w, "waits", "sluice", "1", "\"annotations\":{\"sluice.sh/queue\":\"other\"}");
	go_on(&w, NONE, NULL);
	die(&w);
	slu_config_free(w.cfg);
	for (int i = 0; i < 2; i++)
		if (slu_config_parse("test", yaml[i], strlen(yaml[i]), &cfg[i], &err) < 0)
			ok(false, "settings: %s", err.text);
	w.cfg = cfg[0];
	begin_life(&w);
	slu_config_keep(cfg[1], cfg[0]);
	slu_core_take(w.core, slu_rec_config_new(cfg[1]), w.now_us);
	slu_config_free(cfg[1]);
	list_all(&w, 1, 2);
	end_pod(&w, pod(&w, "runs"), "Succeeded");
	go_on(&w, NONE, NULL);
	ok(bound(&w, "waits") == 1,
	   "a queue that was away and is back before the first cycle starts its jobs");
	last_life_over(&w);
}

/* A Job was resumed ahead, all its pods exist, and then its user cancelled it. */
static void test_cancelled_ahead(void)
{
	static const char more[] = ",\"sluice.sh/ahead\":\"yes\",\"sluice.sh/cancelled\":\"true\"";
	struct world w;

	first_life(&w, 1, 4, "");
	gated_pod(&w, "j-0", "j");
	gated_pod(&w, "j-1", "j");
	for (int life = 0; life < 2; life++) {
		memset(&seen, 0, sizeof seen);
		w.patched = server;
		feed_job(&w, "j", 2, false, "yes", more);
		go_on(&w, NONE, NULL);
		ok(strstr(seen.job, "\"suspend\":true") && seen.pods == 0,
		   "life %d: a cancelled Job that is ahead is suspended again", life);
		if (!life) {
			die(&w);
			live(&w, 1, 4);
		}
	}
	last_life_over(&w);
}

/* Anybody may write sluice.sh/set-priority on the own objects: the store knows who was given one. */
static void test_forged_priority(void)
{
	static const char set[] = "\"annotations\":{\"sluice.sh/set-priority\":\"1000\"}";
	struct fpod *full, *a, *b;
	struct world w;

	first_life(&w, 1, 2, "queues: [{name: default, policy: first-fit}]");
	full = add_pod(&w, "full", "sluice", "2", "");
	go_on(&w, NONE, NULL);
	a = add_pod(&w, "a", "sluice", "2", "");
	go_on(&w, NONE, NULL);
	b = add_pod(&w, "b", "sluice", "2", set);
	go_on(&w, NONE, NULL);
	die(&w);
	live(&w, 1, 2);
	go_on(&w, NONE, NULL);
	end_pod(&w, full, "Succeeded");
	w.now_us += 1000000;
	go_on(&w, NONE, NULL);
	ok(*a->node && !*b->node, "a priority that somebody wrote down is not believed");
	last_life_over(&w);
}

/* One of two members is bound when the daemon stops, and the other cannot be bound: neither
 * stays. */
static void test_rest_cannot_be_bound(void)
{
	struct world w;

	first_life(&w, 2, 2, "");
	job(&w, "job-1", "m", "\"parallelism\":2,\"completions\":2", "");
	add_pod(&w, "m-0", "sluice", "2", OWNED("Job", "job-1", "m"));
	add_pod(&w, "m-1", "sluice", "2", OWNED("Job", "job-1", "m"));
	go_on(&w, 1, NULL);
	die(&w);
	live(&w, 2, 2);
	w.bind_outcome = SLU_KUBE_INVALID;
	job(&w, "job-1", "m", "\"parallelism\":2,\"completions\":2", "");
	go_on(&w, NONE, NULL);
	ok(w.evictions == 1, "half bound, and the rest cannot be: it is taken back (%d)",
	   w.evictions);
	last_life_over(&w);
}

/* The planned end of a gang is the same in every life. */
static void test_end_is_told(void)
{
	struct world w;
	struct slu_snap_job was, is;

	first_life(&w, 1, 2, "");
	gang(&w, "run", 1, "2", TIMED("run", "1", "500s"));
	go_on(&w, NONE, NULL);
	was = view(&w, "run");
	die(&w);
	live(&w, 1, 2);
	is = view(&w, "run");
	ok(was.end_s == was.start_s + 500 && is.end_s == was.end_s,
	   "the planned end is the same after a restart (%lld, %lld)", (long long)was.end_s,
	   (long long)is.end_s);
	last_life_over(&w);
}

/* "Never" is taken back when it is not true any more, although nothing is free yet. */
static void test_never_taken_back(void)
{
	struct world w;

	first_life(&w, 1, 2, "");
	gang(&w, "run", 1, "2", GROUP("run", "1"));
	go_on(&w, NONE, NULL);
	job(&w, "job-1", "m", "\"parallelism\":4,\"completions\":4", "");
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "m-%d", i);
		add_pod(&w, name, "sluice", "1", OWNED("Job", "job-1", "m"));
	}
	gang(&w, "g", 3, "1", GROUP("g", "3"));
	ok(!strcmp(view(&w, "m").state, "never"), "four do not fit (%s)", view(&w, "m").state);
	job(&w, "job-1", "m", "\"parallelism\":2,\"completions\":4", "");
	delete_pod(&w, pod(&w, "m-2"));
	delete_pod(&w, pod(&w, "m-3"));
	ok(!strcmp(view(&w, "m").state, "waiting"), "it is scaled to two, which do (%s)",
	   view(&w, "m").state);
	ok(!strcmp(view(&w, "g").state, "never"), "three do not fit (%s)", view(&w, "g").state);
	feed_node(&w, "n0", 3, "\"which\":\"n0\",\"pool\":\"front\"", "", "True");
	ok(!strcmp(view(&w, "g").state, "waiting"), "the node grows, and they do (%s)",
	   view(&w, "g").state);
	last_life_over(&w);
}

/* We stop between two waves of a Job: its place is its own. */
static void test_between_two_waves(void)
{
	static const char spec[] = "\"parallelism\":1,\"completions\":2";
	struct world w;

	first_life(&w, 1, 2, "");
	job(&w, "job-1", "m", spec, "");
	add_pod(&w, "m-0", "sluice", "2", OWNED("Job", "job-1", "m"));
	go_on(&w, NONE, NULL);
	gang(&w, "x", 1, "2", GROUP("x", "1"));
	go_on(&w, NONE, NULL);
	end_pod(&w, pod(&w, "m-0"), "Succeeded");
	die(&w);
	live(&w, 1, 2);
	job(&w, "job-1", "m", spec, "\"succeeded\":1");
	go_on(&w, NONE, NULL);
	ok(bound(&w, "x-") == 0, "no other gang gets the place while the Job has no pod");
	add_pod(&w, "m-1", "sluice", "2", OWNED("Job", "job-1", "m"));
	go_on(&w, NONE, NULL);
	ok(bound(&w, "m-1") == 1 && bound(&w, "x-") == 0,
	   "the next wave of a Job gets the place that was kept");
	end_pod(&w, pod(&w, "m-1"), "Succeeded");
	job(&w, "job-1", "m", spec, "\"succeeded\":2");
	go_on(&w, NONE, NULL);
	ok(bound(&w, "x-") == 1, "a place that is kept no longer is free");
	last_life_over(&w);
}

/* The first cycle may wait for the pods of a Job that had some.  In the meantime a person asks
 * about another group: the answer is about the group that the store remembers. */
static void test_asked_before_the_first_cycle(void)
{
	static const char spec[] = "\"parallelism\":1,\"completions\":2";
	int64_t first;
	struct world w;

	first_life(&w, 1, 2, "");
	job(&w, "job-1", "m", spec, "");
	add_pod(&w, "m-0", "sluice", "1", OWNED("Job", "job-1", "m"));
	gang(&w, "y", 1, "1", GROUP("y", "1"));
	go_on(&w, NONE, NULL);
	gang(&w, "x", 1, "2", GROUP("x", "1"));
	first = view(&w, "x").first_seen_us;
	end_pod(&w, pod(&w, "m-0"), "Succeeded");
	die(&w);
	live(&w, 1, 2);
	job(&w, "job-1", "m", spec, "\"succeeded\":1");
	take_ask(&w, SLU_ASK_HOLD, "x", ignore_answer);
	ok(w.core->recovered,
	   "a question is answered after the first cycle, which does not wait then");
	go_on(&w, NONE, NULL);
	ok(view(&w, "x").first_seen_us == first && !strcmp(view(&w, "x").state, "held"),
	   "a group that is asked about before the first cycle keeps its arrival (%s)",
	   view(&w, "x").state);
	last_life_over(&w);
}

/* Six gangs are decided in one cycle.  Until the store has their intents one of them is deleted and
 * a node goes; the other intents of the batch are carried out all the same. */
static void test_rest_of_a_batch(void)
{
	struct slu_error err = { 0 };
	sqlite3 *db = NULL;
	struct world w;

	first_life(&w, 6, 2, "");
	go_on(&w, NONE, NULL);
	ok(sqlite3_open(store, &db) == SQLITE_OK &&
		   sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK,
	   "the test keeps the store from writing");
	gang(&w, "a", 1, "2", GROUP("a", "1"));
	gang(&w, "b", 1, "2", GROUP("b", "1"));
	gang(&w, "c", 1, "2", GROUP("c", "1"));
	gang(&w, "d", 1, "2", GROUP("d", "1"));
	gang(&w, "e", 1, "2", GROUP("e", "1"));
	gang(&w, "f", 1, "2", GROUP("f", "1"));
	w.now_us += 100;
	slu_core_cycle(w.core, w.now_us, &err);
	ok(w.core->runs->open.n == 6, "six gangs wait for a durable intent (%u)",
	   w.core->runs->open.n);
	delete_pod(&w, pod(&w, "a-0"));
	feed(&w, SLU_KIND_NODE, true, "{\"metadata\":{\"name\":\"n1\",\"uid\":\"node-n1\"}}");
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
	go_on(&w, NONE, NULL);
	ok(bound(&w, "") == 5, "every gang that is left is bound, each once (%d, %d)",
	   bound(&w, ""), w.binds);
	ok(w.core->runs->open.n == 0, "no intent is left to carry out (%u)", w.core->runs->open.n);
	last_life_over(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_completed_where_meant();
	test_not_in_part();
	test_started_in_part();
	test_follower();
	test_order_while_gathering();
	test_promise_stands();
	test_promise_keeps_its_place();
	test_full_queue();
	test_queue_renamed();
	test_queue_comes_back();
	test_user_said();
	check_said_of_what_runs(SLU_ASK_CANCEL, "cancelled");
	check_said_of_what_runs(SLU_ASK_HOLD, "held");
	test_asked_too_early();
	test_half_evicted();
	test_bare_pods_stay();
	test_after_those_of_the_past();
	test_rest_of_what_is_over();
	test_bound_behind_our_back();
	test_outlives_its_limit();
	test_binding_on_its_way();
	test_last_of_a_gang();
	test_promise_and_later_member();
	test_promises_to_both();
	test_promise_to_later_member();
	test_release_lost();
	test_release_lost_after_outage();
	test_release_done();
	test_forged_release();
	test_release_orphaned();
	test_release_of_those_ahead();
	test_same_name_anew();
	test_earlier_life_leaves();
	check_use(false, false);
	check_use(true, false);
	check_use(true, true);
	test_use_of_followers();
	test_set_half_made();
	test_cancelled_ahead();
	test_forged_priority();
	test_rest_cannot_be_bound();
	test_end_is_told();
	test_never_taken_back();
	test_between_two_waves();
	test_asked_before_the_first_cycle();
	test_rest_of_a_batch();
	return tap_done();
}
