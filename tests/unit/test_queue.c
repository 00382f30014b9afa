/* The rules of the queue one by one, each worked out by hand. */
#include "queue/codec.h"
#include "queue_kit.h"

/* Priority first, then first seen (microseconds), then name, then id. */
static void order(void)
{
	struct kit k;

	kit_new(&k, 1, 1, SLU_POLICY_FCFS);
	kit_job(&k, 1, 1, 10, NULL);
	kit_at(&k, 0);
	kit_job(&k, 2, 1, 10, KIT_SPEC(.first_seen_us = 900, .name = "b"));
	kit_job(&k, 3, 1, 10, KIT_SPEC(.first_seen_us = 900, .name = "a"));
	kit_job(&k, 4, 1, 10, KIT_SPEC(.first_seen_us = 899, .name = "z"));
	kit_job(&k, 5, 1, 10, KIT_SPEC(.first_seen_us = 2000, .priority = 7));
	kit_job(&k, 6, 1, 10, KIT_SPEC(.first_seen_us = 900, .name = "a"));
	kit_at(&k, 0);
	/* 5 is most urgent; 4 was seen first; then "a" (3 before 6 by id), then "b". */
	static const slu_job_id want[] = { 5, 4, 3, 6, 2 };

	for (unsigned i = 0; i < SLU_LEN(want); i++) {
		struct slu_job_view v;

		slu_queue_job(k.q, want[i], &v);
		is(v.position, i + 1, "order: job %d is number %u", (int)want[i], i + 1);
	}
	/* Raised at time 1, 2 goes to the front of those who were not promised anything.  1 ends at
	 * 10; 5 was promised 10 and keeps it, the others follow. */
	struct slu_event up = { .kind = SLU_EV_PRIORITY, .job = 2, .priority = 9 };

	k.now = 1;
	kit_apply(&k, &up);
	kit_at(&k, 1);
	static const slu_job_id then[] = { 1, 5, 2, 4, 3, 6 };

	for (unsigned i = 0; i < SLU_LEN(then); i++) {
		is(k.start[then[i]], i * 10, "order: job %d starts at %u", (int)then[i], i * 10);
		k.now = (i + 1) * 10;
		kit_do(&k, SLU_EV_END, then[i]);
		kit_at(&k, k.now);
	}
	kit_done(&k);
}

struct walk {
	struct kit *k;
	uint32_t last, wrong;
};

static int step(const struct slu_job_view *v, void *arg)
{
	struct walk *w = arg;
	struct slu_job_view alone;

	if (v->state != SLU_JOB_WAITING)
		return 0;
	slu_queue_job(w->k->q, v->id, &alone);
	w->wrong += v->position != ++w->last || alone.position != v->position;
	return 0;
}

/* Seven sizes are seven trees, the promised an eighth: walked over in one line, and each asked for
 * alone, the positions are the same. */
static void line(void)
{
	struct kit k;
	struct walk w = { &k };

	kit_new(&k, 8, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 8, 10, NULL);
	kit_at(&k, 0);
	for (slu_job_id i = 2; i < 60; i++)
		kit_job(&k, i, 2 + i * 5 % 7, 10,
			KIT_SPEC(.first_seen_us = 100 + i * 37 % 23, .priority = i % 3));
	kit_at(&k, 0);
	is(slu_queue_each(k.q, step, &w), 0, "line: every job is visited");
	is(w.last, 58u, "line: the walk over the queue visits all jobs");
	is(w.wrong, 0u, "line: in the order they are told one by one");
	kit_done(&k);
}

static void hold_release_cancel(void)
{
	struct kit k;
	struct slu_job_view v;

	kit_new(&k, 2, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 10, NULL);
	kit_job(&k, 2, 2, 10, NULL);
	kit_job(&k, 3, 2, 10, KIT_SPEC(.held = true));
	kit_at(&k, 0);
	is(k.planned[2], 10, "hold: 2 is promised 10");
	slu_queue_job(k.q, 3, &v);
	ok(v.state == SLU_JOB_HELD && v.position == 0, "hold: 3 is held and not in line");
	k.now = 2;
	kit_do(&k, SLU_EV_HOLD, 2);
	kit_do(&k, SLU_EV_RELEASE, 3);
	kit_at(&k, 2);
	ok(k.planned[2] == SLU_TIME_NONE && k.cause[2] == SLU_CAUSE_OWN,
	   "hold: 2 loses its promise by its own change");
	is(k.planned[3], 10, "hold: 3 takes its place");
	k.now = 4;
	kit_do(&k, SLU_EV_CANCEL, 1);
	kit_at(&k, 4);
	is(k.start[3], 4, "cancel: a running job's room is free at once");
	is(kit_do(&k, SLU_EV_CANCEL, 1), -ENOENT, "cancel: twice is an error");
	is(kit_do(&k, SLU_EV_CANCEL, 2), 0, "cancel: a held job is cancelled");
	kit_do(&k, SLU_EV_END, 3);
	kit_at(&k, 5);
	is(slu_queue_each(k.q, NULL, NULL), 0, "cancel: the queue is empty afterwards");
	kit_done(&k);
}

/* A promise never moves later for a new job, whatever its priority. */
static void promise(void)
{
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 10, NULL);
	kit_job(&k, 2, 4, 10, NULL);
	kit_at(&k, 0);
	is(k.planned[2], 10, "promise: 2 at 10");
	ok(k.cause[2] == SLU_CAUSE_NEW && k.was[2] == SLU_TIME_NONE,
	   "promise: the cause of a first promise is \"new\"");
	k.now = 1;
	kit_job(&k, 3, 4, 100, KIT_SPEC(.priority = 99));
	kit_at(&k, 1);
	is(k.nplan[2], 1, "promise: a more urgent job does not move it");
	is(k.planned[3], 20, "promise: the more urgent job is planned behind it");
	/* 2 ends early: 3 moves forward, and says why. */
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 1);
	is(k.start[2], 1, "promise: 2 starts as soon as it can");
	ok(k.how[2] == SLU_HOW_RESERVED, "promise: the job starts from its reservation");
	ok(k.planned[3] == 11 && k.was[3] == 20 && k.cause[3] == SLU_CAUSE_EARLY_END,
	   "promise: 3 moves from 20 to 11 because of an early end");
	/* A node goes down: the machine shrank, and 3 cannot run at all until it is back. */
	k.now = 5;
	kit_node_do(&k, SLU_EV_NODE_DOWN, "n3");
	kit_at(&k, 5);
	ok(k.planned[3] == SLU_TIME_NONE && k.cause[3] == SLU_CAUSE_NODE_LOST,
	   "promise: 3 has no time while a node is down, and that is the cause");
	is(k.lost[2], 1, "promise: the running job on the node is told");
	k.now = 8;
	kit_node_do(&k, SLU_EV_NODE_UP, "n3");
	kit_at(&k, 8);
	is(k.planned[3], 11, "promise: back as soon as the node is");
	kit_done(&k);
}

static void overrun(void)
{
	struct kit k;

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 1, 10, NULL);
	kit_job(&k, 2, 1, 10, NULL);
	kit_at(&k, 0);
	kit_at(&k, 10);
	ok(k.nplan[2] == 1 && k.start[2] == SLU_TIME_NONE, "overrun: at 10 nothing is said yet");
	kit_at(&k, 11);
	ok(k.overrun[1] == 1 && k.cause[2] == SLU_CAUSE_OVERRUN,
	   "overrun: at 11 job 1 is late and 2 moves because of it");
	is(k.planned[2], 11 + 60, "overrun: by the minute that is expected");
	k.now = 15;
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 15);
	is(k.start[2], 15, "overrun: 2 starts when 1 has gone");
	kit_done(&k);
}

static void begin_and_deadline(void)
{
	struct kit k;
	struct slu_job_view v;

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 1, 5, KIT_SPEC(.begin_s = 20));
	kit_job(&k, 2, 1, 30, NULL);
	kit_at(&k, 0);
	slu_queue_job(k.q, 1, &v);
	ok(v.state == SLU_JOB_BLOCKED && k.start[2] == 0, "begin: 1 waits aside, 2 runs");
	is(slu_queue_wake_s(k.q), 20, "begin: the queue wants to be woken then");
	kit_at(&k, 20);
	is(k.planned[1], 30, "begin: in line from 20 on");
	/* Must end by 34: with 5 s to run it must start by 29, and 2 runs until 30. */
	k.now = 21;
	kit_job(&k, 3, 1, 5, KIT_SPEC(.deadline_s = 34));
	kit_job(&k, 4, 1, 5, KIT_SPEC(.deadline_s = 25));
	kit_at(&k, 21);
	is(k.expired[4], 1, "deadline: hopeless from the start");
	kit_at(&k, 29);
	is(k.expired[3], 0, "deadline: at 29 there is hope");
	kit_at(&k, 30);
	is(k.expired[3], 1, "deadline: at 30 there is none");
	kit_done(&k);
}

static void dependencies(void)
{
	struct kit k;
	struct slu_dep ok1 = { SLU_DEP_AFTER_OK, 1 }, bad1 = { SLU_DEP_AFTER_NOTOK, 1 },
		       any9 = { SLU_DEP_AFTER, 9 }, begun1 = { SLU_DEP_AFTER_START, 1 },
		       on5 = { SLU_DEP_AFTER, 5 };

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 1, 10, KIT_SPEC(.begin_s = 5));
	kit_job(&k, 2, 1, 10, KIT_SPEC(.dep = &ok1, .ndep = 1));
	kit_job(&k, 3, 1, 10, KIT_SPEC(.dep = &bad1, .ndep = 1));
	kit_job(&k, 4, 1, 10, KIT_SPEC(.dep = &begun1, .ndep = 1));
	kit_job(&k, 5, 1, 10, KIT_SPEC(.dep = &any9, .ndep = 1));
	kit_at(&k, 0);
	ok(k.start[2] == SLU_TIME_NONE && k.start[4] == SLU_TIME_NONE,
	   "after: all dependent jobs wait");
	kit_job(&k, 9, 1, 10, KIT_SPEC(.dep = &on5, .ndep = 1));
	ok(k.refused[9] == 1 && strstr(k.text[9], "cyclic"), "after: a cycle is refused (%s)",
	   k.text[9]);
	kit_at(&k, 5);
	ok(k.start[1] == 5 && k.start[4] == 5, "after: 4 starts when 1 has started");
	k.now = 8;
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 8);
	is(k.start[2], 8, "after: 2 starts when 1 has ended well");
	is(k.expired[3], 1, "after: 3 waited for a failure that cannot come");
	kit_job(&k, 6, 1, 10, KIT_SPEC(.dep = &ok1, .ndep = 1));
	kit_at(&k, 8);
	is(k.start[6], 8, "after: results are remembered");
	kit_job(&k, 9, 1, 10, NULL);
	kit_do(&k, SLU_EV_CANCEL, 9);
	kit_at(&k, 9);
	is(k.start[5], 9, "after: a cancelled job has ended too");
	kit_done(&k);
}

static void limits(void)
{
	struct kit k;
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .default_duration = 7,
				    .limit = { .max_slots = 3,
					       .max_duration = 100,
					       .max_running_user = 1,
					       .max_waiting_user = 2,
					       .max_running = 2 } };
	struct slu_job_view v;

	kit_new(&k, 8, 1, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	kit_job(&k, 1, 4, 10, NULL);
	ok(k.refused[1] == 1 && strstr(k.text[1], "allows at most 3"), "limit: size (%s)",
	   k.text[1]);
	kit_job(&k, 1, 3, 101, NULL);
	is(k.refused[1], 2, "limit: a job above maxDuration is refused");
	kit_job(&k, 1, 1, 10, KIT_SPEC(.queue = "nosuch"));
	ok(k.refused[1] == 3 && strstr(k.text[1], "nosuch"),
	   "limit: a job for an unknown queue is refused");
	kit_job(&k, 1, 1, 0, KIT_SPEC(.user = "ann"));
	kit_at(&k, 0);
	slu_queue_job(k.q, 1, &v);
	is(v.limit_s, 7, "limit: a job without a limit gets the default duration");
	kit_job(&k, 2, 1, 10, KIT_SPEC(.user = "ann"));
	kit_job(&k, 3, 1, 10, KIT_SPEC(.user = "ann"));
	kit_job(&k, 4, 1, 10, KIT_SPEC(.user = "ann"));
	is(k.refused[4], 1, "limit: ann has two waiting, as many as allowed");
	kit_job(&k, 5, 1, 10, KIT_SPEC(.user = "bob"));
	kit_job(&k, 6, 1, 10, KIT_SPEC(.user = "cat"));
	kit_at(&k, 0);
	ok(k.start[2] == SLU_TIME_NONE && k.start[5] == 0,
	   "limit: ann runs one at a time and does not hold up bob");
	is(k.start[6], SLU_TIME_NONE, "limit: two at a time in the queue");
	k.now = 3;
	kit_do(&k, SLU_EV_END, 5);
	kit_at(&k, 3);
	is(k.start[6], 3, "limit: cat's turn when bob has gone");
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 4);
	ok(k.start[2] == 4 && k.start[3] == SLU_TIME_NONE,
	   "limit: when one of ann's jobs ends, her next one starts");
	kit_done(&k);
}

/* Two queues on one machine: each keeps its own head's promise; a property fences off nodes. */
static void queues(void)
{
	struct kit k;
	struct slu_queue_conf gpu = {
		.name = "gpu", .policy = SLU_POLICY_EASY, .property = "gpu", .priority = 5
	};
	struct slu_queue_conf low = { .name = "low", .policy = SLU_POLICY_FCFS, .priority = -5 };

	kit_new(&k, 3, 1, SLU_POLICY_EASY);
	kit_node(&k, "g0", 1, NULL, "gpu");
	kit_queue(&k, &gpu);
	kit_queue(&k, &low);
	kit_job(&k, 1, 1, 10, KIT_SPEC(.queue = "gpu"));
	kit_job(&k, 2, 1, 10, KIT_SPEC(.queue = "gpu"));
	kit_at(&k, 0);
	ok(k.start[1] == 0 && k.nnode[1] == 1 && k.node[1][0] == 3, "queues: on the gpu node");
	is(k.planned[2], 10, "queues: the second waits, three other nodes are free");
	kit_job(&k, 3, 2, 10, KIT_SPEC(.queue = "gpu"));
	ok(k.never[3] == 1, "queues: two gpu nodes there are not (%s)", k.text[3]);
	/* low: needs all four; batch sends a stream of one-node jobs that would starve it. */
	kit_job(&k, 4, 4, 5, KIT_SPEC(.queue = "low"));
	kit_at(&k, 0);
	is(k.planned[4], 20, "queues: low is promised the time after gpu");
	for (slu_job_id j = 10; j < 20; j++) {
		k.now = (int64_t)(j - 10);
		kit_job(&k, j, 1, 15, KIT_SPEC(.queue = "batch"));
		kit_at(&k, k.now);
	}
	is(k.planned[4], 20, "queues: the job keeps its reservation");
	/* By 5 none could start that would not end before 20. */
	ok(k.start[10] == 0 && k.start[12] == 2 && k.start[16] == SLU_TIME_NONE,
	   "queues: batch fills the gap in front of it and no more");
	kit_done(&k);
}

static void spans(void)
{
	struct kit k;
	const char *n0 = "n0", *ann = "ann";
	struct slu_span drain = { .kind = SLU_SPAN_DRAIN,
				  .name = "fix",
				  .from_s = 10,
				  .to_s = 20,
				  .node = &n0,
				  .nnode = 1 };
	struct slu_span res = { .kind = SLU_SPAN_RESERVATION,
				.name = "class",
				.from_s = 30,
				.to_s = 40,
				.count = 2,
				.user = &ann,
				.nuser = 1 };
	struct slu_event add = { .kind = SLU_EV_SPAN_ADD, .span = &drain };

	kit_new(&k, 2, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 15, NULL);
	kit_at(&k, 0);
	is(kit_apply(&k, &add), 0, "spans: a drain is accepted");
	kit_at(&k, 0);
	ok(k.start[1] == 0 && k.lost[1] == 0, "spans: what runs there runs on");
	k.now = 1;
	kit_do(&k, SLU_EV_END, 1);
	/* Both nodes for 9 s fit before 10; for 10 s they do not: after the drain. */
	kit_job(&k, 2, 2, 10, NULL);
	kit_at(&k, 1);
	is(k.planned[2], 20, "spans: planned around the drain");
	kit_job(&k, 3, 2, 9, NULL);
	kit_at(&k, 1);
	is(k.start[3], 1, "spans: what fits in front of it starts");
	kit_at(&k, 10);
	kit_do(&k, SLU_EV_END, 3);
	kit_at(&k, 20);
	is(k.start[2], 20, "spans: woken when the drain ends, without any event");
	add.span = &res;
	is(kit_apply(&k, &add), 0, "spans: two nodes for ann from 30 to 40");
	k.now = 30;
	kit_do(&k, SLU_EV_END, 2);
	kit_job(&k, 4, 1, 5, KIT_SPEC(.user = "bob"));
	kit_job(&k, 5, 1, 5, KIT_SPEC(.user = "ann"));
	kit_job(&k, 6, 1, 5, KIT_SPEC(.user = "bob", .reservation = "class"));
	kit_at(&k, 30);
	ok(k.start[5] == 30 && k.start[6] == 30,
	   "spans: ann, and jobs that name the reservation, may use it");
	is(k.planned[4], 40, "spans: bob waits until it is over");
	is(kit_apply(&k, &add), -EEXIST, "spans: a name is taken once");
	add.kind = SLU_EV_SPAN_REMOVE;
	is(kit_apply(&k, &add), 0, "spans: a reservation can be lifted");
	k.now = 35;
	kit_do(&k, SLU_EV_END, 5);
	kit_at(&k, 35);
	is(k.start[4], 35, "spans: a job of bob starts after the span");
	kit_done(&k);
}

/* One core of each of two nodes of two cores is kept for the class from 10 to 20. */
static void span_amounts(void)
{
	struct kit k;
	struct slu_amount one;
	struct slu_span res = { .kind = SLU_SPAN_RESERVATION,
				.name = "class",
				.from_s = 10,
				.to_s = 20,
				.count = 2,
				.amount = &one,
				.n_amount = 1 };
	struct slu_event add = { .kind = SLU_EV_SPAN_ADD, .span = &res };

	kit_new(&k, 2, 2, SLU_POLICY_EASY);
	one = (struct slu_amount){ (uint32_t)k.cpu, 1 };
	is(kit_apply(&k, &add), 0, "amounts: half of two nodes");
	k.now = 5;
	kit_job(&k, 1, 2, 15, NULL);
	kit_job(&k, 2, 1, 15, NULL);
	kit_job(&k, 3, 2, 7, KIT_SPEC(.reservation = "class"));
	kit_at(&k, 5);
	is(k.start[1], 5, "amounts: the other half is free for all");
	is(k.planned[2], 20, "amounts: the reserved half is not given to others");
	is(k.start[3], 5, "amounts: jobs of the reservation use the reserved half");
	kit_done(&k);
}

static void foreign_and_take_back(void)
{
	struct kit k;
	struct slu_amount one = { 0, 1 };
	struct slu_event pod = { .kind = SLU_EV_FOREIGN_ADD,
				 .foreign = 77,
				 .amount = &one,
				 .n_amount = 1,
				 .until_s = SLU_TIME_EVER };
	struct slu_gang_part avoid = { 0 };
	struct slu_event back = {
		.kind = SLU_EV_TAKE_BACK, .job = 1, .part = &avoid, .n_part = 1, .until_s = 50
	};

	kit_new(&k, 2, 1, SLU_POLICY_EASY);
	one.resource = (uint32_t)k.cpu;
	kit_job(&k, 1, 1, 10, NULL);
	kit_job(&k, 2, 2, 10, NULL);
	kit_at(&k, 0);
	is(k.planned[2], 10, "foreign: job 2 is planned after job 1");
	uint32_t other = 1 - k.node[1][0];

	pod.node = slu_machine_node_at(slu_queue_machine(k.q), other);
	is(kit_apply(&k, &pod), 0, "foreign: a pod of another scheduler on the other node");
	kit_at(&k, 1);
	ok(k.planned[2] == SLU_TIME_NONE && k.cause[2] == SLU_CAUSE_FOREIGN,
	   "foreign: no time for 2 while it is there");
	is(kit_apply(&k, &pod), -EEXIST, "foreign: the same key twice");
	pod.kind = SLU_EV_FOREIGN_REMOVE;
	is(kit_apply(&k, &pod), 0, "foreign: a foreign pod can go");
	kit_at(&k, 2);
	is(k.planned[2], 10, "foreign: job 2 is planned again when the pod is gone");
	/* The start of 1 was refused by its node: it waits again.  On the other node it would run
	 * until 13 and break the promise to 2, who can start now: so 2 goes first, and 1 is planned
	 * behind it, away from the node that refused it. */
	avoid.node = slu_machine_node_at(slu_queue_machine(k.q), k.node[1][0]);
	k.start[1] = SLU_TIME_NONE;
	k.now = 3;
	is(kit_apply(&k, &back), 0, "take back: a start can be taken back");
	kit_at(&k, 3);
	ok(k.start[2] == 3 && k.start[1] == SLU_TIME_NONE, "take back: 2 starts");
	ok(k.planned[1] == 13 && k.nnode[1] == 1 && k.node[1][0] == other,
	   "take back: 1 follows on the other node");
	kit_done(&k);
}

/* A node leaves the set of those a job may use, as one that is tainted does. */
static void node_forbidden(void)
{
	struct kit k;
	struct slu_nodeset *may = slu_nodeset_new(3);

	for (uint32_t i = 0; i < 3; i++)
		slu_nodeset_add(may, i);
	kit_new(&k, 3, 1, SLU_POLICY_FCFS);
	struct slu_amount need = { (uint32_t)k.cpu, 1 };
	struct slu_gang_role three = { .min = 3, .nodes = may, .need = &need, .n_need = 1 };
	struct slu_gang_role one = { .min = 1, .nodes = may, .need = &need, .n_need = 1 };
	struct slu_gang_req wide = { .role = &three, .n_role = 1, .level = -1 };
	struct slu_gang_req narrow = { .role = &one, .n_role = 1, .level = -1 };

	kit_job(&k, 1, 1, 100, NULL);
	kit_job(&k, 2, 0, 10, KIT_SPEC(.req = &wide));
	kit_job(&k, 3, 0, 10, KIT_SPEC(.req = &narrow));
	kit_at(&k, 0);
	ok(k.planned[2] == 100 && k.start[3] == SLU_TIME_NONE, "forbidden: 3 waits behind 2");
	uint32_t used = k.node[1][0], gone = (used + 1) % 3, left = (used + 2) % 3;
	char name[16];

	snprintf(name, sizeof name, "n%u", gone);
	slu_nodeset_del(may, gone);
	k.now = 1;
	is(kit_node(&k, name, 1, NULL, NULL), 0, "forbidden: a node is described again");
	kit_at(&k, 1);
	ok(k.never[2] && k.planned[2] == SLU_TIME_NONE,
	   "forbidden: a job with a promised start is reported as one that can never run");
	ok(k.start[3] == 1 && k.node[3][0] == left, "forbidden: the job delays no other");

	/* Refused by the node it has, it avoids it; the one it could use instead is forbidden since,
	 * and it is told to wait, not that it never will run. */
	struct slu_gang_part avoid = { .node = slu_machine_node_at(slu_queue_machine(k.q), left),
				       .slots = 1 };
	struct slu_event back = {
		.kind = SLU_EV_TAKE_BACK, .job = 3, .part = &avoid, .n_part = 1, .until_s = 30
	};

	slu_nodeset_add(may, gone);
	k.now = 2;
	k.start[3] = SLU_TIME_NONE;
	kit_apply(&k, &back);
	slu_nodeset_del(may, gone);
	kit_node(&k, name, 1, NULL, NULL);
	kit_at(&k, 3);
	ok(k.start[3] == SLU_TIME_NONE && !k.never[3],
	   "forbidden: a copy of the nodes it may use does not outlive the original");
	kit_at(&k, 30);
	ok(k.start[3] == 30 && k.node[3][0] == left,
	   "forbidden: the job starts when it may use the first node again");
	kit_done(&k);
	slu_nodeset_unref(may);
}

static void elastic(void)
{
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	struct slu_amount need = { (uint32_t)k.cpu, 1 };
	struct slu_gang_role role = { .min = 1, .max = 3, .need = &need, .n_need = 1 };
	struct slu_gang_req req = { .role = &role, .n_role = 1, .level = -1 };

	kit_job(&k, 1, 2, 10, NULL);
	kit_job(&k, 2, 0, 20, KIT_SPEC(.req = &req, .grow = true));
	kit_at(&k, 0);
	ok(k.start[2] == 0 && k.nnode[2] == 2, "elastic: starts with the two that are there");
	k.now = 5;
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 5);
	is(k.resized[2], 1, "elastic: grows to three when there is room");
	struct slu_event ev = { .kind = SLU_EV_RESIZE, .job = 2, .size = 4 };

	kit_apply(&k, &ev);
	is(k.resized[2], 1, "elastic: one more on request");
	ev.size = 5;
	kit_apply(&k, &ev);
	is(k.refused[2], 1, "elastic: there is no fifth");
	ev.size = 2;
	kit_apply(&k, &ev);
	is(k.resized[2], -2, "elastic: is to give up two");
	struct slu_gang_place place = { 0 };
	struct slu_gang_info info;

	slu_gang_info(slu_queue_machine(k.q), 2, &info, &place);
	is(info.slots, 4, "elastic: they count until they are gone");
	struct slu_event gone = {
		.kind = SLU_EV_END_SLOTS, .job = 2, .part = place.part + place.n - 2, .n_part = 2
	};

	is(kit_apply(&k, &gone), 0, "elastic: two slots ended");
	kit_job(&k, 3, 2, 5, NULL);
	kit_at(&k, 6);
	is(k.start[3], 6, "elastic: their room is used");
	slu_gang_place_done(&place);
	kit_done(&k);
}

static slu_node kit_find(struct kit *k, const char *name)
{
	return slu_machine_node_find(slu_queue_machine(k->q), name);
}

/* The node of a running job is deleted and made again; its slots are still there. */
static void node_back_with_work(void)
{
	struct kit k;
	struct slu_job_view v;
	struct slu_gang_part part = { .slots = 4 };
	struct slu_event ev = { .kind = SLU_EV_REGAIN, .job = 1, .part = &part, .n_part = 1 };

	kit_new(&k, 2, 4, SLU_POLICY_EASY);
	kit_job(&k, 1, 8, 100, NULL);
	kit_at(&k, 0);
	kit_node_do(&k, SLU_EV_NODE_REMOVE, "n1");
	is(k.lost[1], 1, "back: its slots are lost with the node");
	part.node = kit_find(&k, "n0");
	ev.kind = SLU_EV_END_SLOTS;
	ev.size = 4;
	is(kit_apply(&k, &ev), 0, "back: the slots on other nodes end");
	ok(slu_queue_job(k.q, 1, &v) == 0 && v.state == SLU_JOB_RUNNING,
	   "back: the job runs although its node is gone");
	kit_node(&k, "n1", 4, NULL, NULL);
	ev.kind = SLU_EV_REGAIN;
	part.node = kit_find(&k, "n1");
	is(kit_apply(&k, &ev), 0, "back: the node comes back with its slots");
	kit_job(&k, 2, 5, 10, NULL);
	is(kit_at(&k, 1), 0, "back: the books are right (%s)", k.err.text);
	is(k.planned[2], 100, "back: the regained slots count until the job's limit");
	ev.job = 2;
	is(kit_apply(&k, &ev), -EINVAL, "back: a waiting job has no slots to regain");
	ev = (struct slu_event){ .kind = SLU_EV_END_SLOTS, .job = 1, .part = &part, .n_part = 1 };
	is(kit_apply(&k, &ev), 0, "back: the regained slots end");
	is(slu_queue_job(k.q, 1, &v), -ENOENT, "back: the job ends with its last slots");
	kit_at(&k, 2);
	is(k.start[2], 2, "back: the job that waits for their room starts");
	kit_done(&k);
}

static void never_until_grown(void)
{
	struct kit k;
	struct slu_job_view v;

	kit_new(&k, 2, 4, SLU_POLICY_EASY);
	kit_job(&k, 1, 9, 10, NULL);
	kit_at(&k, 0);
	ok(k.never[1] == 1 && k.text[1][0], "never: nine slots on eight cores (%s)", k.text[1]);
	kit_job(&k, 2, 8, 10, NULL);
	kit_at(&k, 0);
	is(k.start[2], 0, "never: a job that can run does not wait for one that cannot");
	kit_node(&k, "extra", 4, NULL, NULL);
	kit_at(&k, 1);
	is(k.planned[1], 10, "never: looked at again when the machine grows");
	kit_node_do(&k, SLU_EV_NODE_REMOVE, "extra");
	kit_at(&k, 2);
	slu_queue_job(k.q, 1, &v);
	ok(v.state == SLU_JOB_NEVER || v.planned_s == SLU_TIME_NONE,
	   "never: the job can never run again when the machine shrinks");
	kit_done(&k);
}

/* The books are right although more runs than the node has by now. */
static void smaller_under_work(void)
{
	struct kit k;

	kit_new(&k, 1, 8, SLU_POLICY_EASY);
	kit_node(&k, "small", 8, NULL, NULL);
	kit_job(&k, 1, 16, 10, NULL);
	kit_at(&k, 5);
	is(k.start[1], 5, "smaller: both nodes are full");
	kit_node(&k, "small", 4, NULL, NULL); /* in the second of the start */
	ok(!slu_queue_check(k.q, k.now, &k.err),
	   "smaller: a node that shrinks below its work breaks no invariant (%s)", k.err.text);
	kit_job(&k, 2, 4, 10, NULL);
	kit_at(&k, 6);
	ok(!slu_queue_check(k.q, k.now, &k.err), "smaller: nor later (%s)", k.err.text);
	is(k.planned[2], 15, "smaller: nothing is put on top");
	kit_done(&k);
}

/* Another program put a job of ours on a node without asking, full or not. */
static void overfilled_by_others(void)
{
	struct kit k;

	kit_new(&k, 1, 4, SLU_POLICY_EASY);
	kit_job(&k, 1, 4, 20, NULL);
	kit_at(&k, 5);
	is(k.start[1], 5, "overfull: the node is full");
	is(kit_runs(&k, 2, 2, 30), 0, "overfull: a full node takes a running job");
	ok(!slu_queue_check(k.q, k.now, &k.err),
	   "overfull: an overfull node breaks no invariant (%s)", k.err.text);
	is(kit_at(&k, 5), 0, "overfull: no invariant is broken after a pass (%s)", k.err.text);
	kit_job(&k, 3, 3, 10, NULL);
	is(kit_at(&k, 6), 0, "overfull: no invariant is broken a second later (%s)", k.err.text);
	is(k.planned[3], 35, "overfull: no job is planned on the node before both have ended");
	is(kit_runs(&k, 4, 4, 40), 0, "overfull: a full node takes running work once more");
	is(kit_at(&k, 6), 0, "overfull: the job planned there moves (%s)", k.err.text);
	is(k.planned[3], 46, "overfull: the job is planned behind all running work");
	kit_done(&k);
}

static void bad_records(void)
{
	struct kit k;

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	is(kit_job(&k, 0, 1, 10, NULL), -EINVAL, "bad: a job with id 0 is refused");
	is(kit_job(&k, 1, 1, -1, NULL), -EINVAL, "bad: a negative limit is refused");
	is(kit_job(&k, 1, 1, 10, NULL), 0, "bad: a valid job is accepted");
	is(kit_job(&k, 1, 1, 10, NULL), -EEXIST, "bad: a second job with the same id is refused");
	is(kit_do(&k, SLU_EV_END, 5), -ENOENT, "bad: the end of an unknown job is refused");
	is(kit_do(&k, SLU_EV_END_SLOTS, 1), -EINVAL, "bad: slots of a waiting job cannot end");
	is(kit_do(&k, SLU_EV_TAKE_BACK, 1), -EINVAL, "bad: a waiting job cannot be taken back");
	struct slu_event node = { .kind = SLU_EV_NODE_DOWN, .node = 12345 };

	is(kit_apply(&k, &node), -ENOENT, "bad: an unknown node is refused");
	kit_at(&k, 10);
	k.now = 9;
	is(kit_do(&k, SLU_EV_TICK, 0), -EINVAL, "bad: a time before the last one is refused");
	kit_done(&k);
}

/* A clone goes its own way, and replaying the same events gives the same decisions. */
static void clone_and_replay(void)
{
	struct kit a, b;

	kit_new(&a, 4, 2, SLU_POLICY_CONSERVATIVE);
	kit_new(&b, 4, 2, SLU_POLICY_CONSERVATIVE);
	for (slu_job_id j = 1; j < 30; j++) {
		uint32_t slots = (uint32_t)(j * 7 % 8 + 1);

		a.now = b.now = (int64_t)j;
		kit_job(&a, j, slots, (int64_t)(j * 5 % 17 + 3), NULL);
		kit_job(&b, j, slots, (int64_t)(j * 5 % 17 + 3), NULL);
		kit_at(&a, a.now);
		kit_at(&b, b.now);
	}
	ok(!memcmp(a.planned, b.planned, sizeof a.planned) &&
		   !memcmp(a.start, b.start, sizeof a.start) &&
		   !memcmp(a.node, b.node, sizeof a.node),
	   "replay: same events, same decisions");
	struct slu_queue *c = slu_queue_clone(a.q);
	struct slu_decisions out = { 0 };
	struct slu_event end = { .kind = SLU_EV_CANCEL, .job = 1 };

	ok(c && !slu_queue_check(c, a.now, &a.err), "clone: the copy breaks no invariant (%s)",
	   a.err.text);
	while (end.job < 30) {
		slu_queue_apply(c, 40, &end, &out, NULL);
		is(slu_queue_schedule(c, 40, &out, &a.err), 0,
		   "clone: the copy plans on without job %d (%s)", (int)end.job, a.err.text);
		end.job++;
	}
	struct slu_job_view v;

	ok(slu_queue_job(c, 7, &v) == -ENOENT && slu_queue_job(a.q, 7, &v) == 0,
	   "clone: empty, the original is untouched");
	ok(!slu_queue_check(a.q, a.now, &a.err), "clone: the original breaks no invariant (%s)",
	   a.err.text);
	slu_queue_free(c);
	slu_decisions_done(&out);
	kit_done(&a);
	kit_done(&b);
}

/* Three roles of one slot; the second is kept apart from the roles in `apart`, the first from all others. */
static int submit_apart(struct kit *k, slu_job_id id, uint64_t apart, struct slu_buf *log)
{
	struct slu_amount need = { (uint32_t)k->cpu, 1 };
	struct slu_gang_role role[3];
	struct slu_gang_req req = { .role = role, .n_role = 3, .level = -1 };
	struct slu_job_spec s = { .id = id,
				  .first_seen_us = (int64_t)id,
				  .limit_s = 10,
				  .begin_s = SLU_TIME_NONE,
				  .deadline_s = SLU_TIME_NONE,
				  .req = &req };
	struct slu_event ev = { .kind = SLU_EV_SUBMIT, .spec = &s };

	for (int i = 0; i < 3; i++)
		role[i] = (struct slu_gang_role){
			.min = 1, .need = &need, .n_need = 1, .flags = SLU_ROLE_APART
		};
	role[0].apart = 6;
	role[1].apart = apart;
	if (log)
		return slu_event_encode(k->now, &ev, NULL, log);
	return kit_apply(k, &ev);
}

/* Roles that share no node: jobs that differ in that alone differ, and a log knows it. */
static void roles_apart(void)
{
	struct slu_buf log = SLU_BUF_INIT(4096);
	struct slu_event_box box = { 0 };
	struct kit k;

	kit_new(&k, 2, 8, SLU_POLICY_EASY);
	is(submit_apart(&k, 1, 4, NULL), 0, "apart: three roles, no two on one node (%s)",
	   k.err.text);
	is(submit_apart(&k, 2, 0, NULL), 0, "apart: three roles, two of them may meet");
	kit_at(&k, 0);
	ok(k.never[1] && k.start[1] == SLU_TIME_NONE, "apart: two nodes are not enough for 1 (%s)",
	   k.text[1]);
	is(k.start[2], 0, "apart: they are enough for 2");
	ok(k.nnode[2] == 3 && k.node[2][1] == k.node[2][2] && k.node[2][0] != k.node[2][1],
	   "apart: two of its roles share a node");

	is(submit_apart(&k, 3, 4, &log), 0, "apart: the event is encoded");
	is(slu_event_decode(log.p, log.n, NULL, &box, &k.err), 0,
	   "apart: the event is decoded (%s)", k.err.text);
	is(kit_apply(&k, &box.ev), 0, "apart: the decoded event is applied");
	kit_at(&k, 0);
	ok(k.never[3], "apart: two nodes are not enough for it either");
	kit_node(&k, "n2", 8, NULL, NULL);
	kit_at(&k, 0);
	ok(k.start[1] == 0 && k.start[3] == 0, "apart: three nodes are enough for 1 and 3");
	slu_event_box_done(&box);
	slu_buf_done(&log);
	kit_done(&k);
}

static int promise_again(struct kit *k, slu_job_id id, int64_t at)
{
	return kit_apply(k,
			 &(struct slu_event){ .kind = SLU_EV_PROMISE, .job = id, .start_s = at });
}

/* A new queue learns what was promised before: all promises stand, whichever job is first in
 * line now. */
static void promised_before(void)
{
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 10, NULL);
	kit_at(&k, 0);
	k.now = 2;
	kit_job(&k, 2, 4, 10, NULL);
	kit_job(&k, 3, 4, 10, KIT_SPEC(.priority = 99));
	kit_job(&k, 4, 3, 50, NULL);
	kit_job(&k, 5, 2, 8, NULL);
	is(promise_again(&k, 2, 10), 0, "before: 2 had been promised 10");
	is(promise_again(&k, 3, 20), 0, "before: 3 had been promised 20");
	is(promise_again(&k, 4, 33), 0, "before: 4 had been promised 33");
	is(promise_again(&k, 5, 12), 0, "before: 5 had been promised a time that is taken");
	ok(k.planned[2] == 10 && k.planned[3] == 20 && k.planned[4] == 33,
	   "before: jobs 2, 3 and 4 have the times they had been promised");
	is(k.planned[5], 83, "before: 5 gets the next free time");
	is(k.start[5], SLU_TIME_NONE, "before: a restored promise starts no job");
	kit_at(&k, 2);
	ok(k.planned[2] == 10 && k.planned[3] == 20, "before: the urgent one does not take it");
	is(k.planned[4], 30, "before: an earlier time is found");
	is(k.start[5], 2, "before: a job that delays no promise starts");
	is(promise_again(&k, 5, 40), 0, "before: an old promise means nothing to a running job");
	is(promise_again(&k, 2, 40), 0,
	   "before: an old promise means nothing to a job that has one");
	is(k.planned[2], 10, "before: a promise that exists stands");
	is(promise_again(&k, 9, 40), -ENOENT, "before: a promise for an unknown job is refused");
	is(promise_again(&k, 2, SLU_TIME_NONE), -EINVAL,
	   "before: a promise without a time is refused");
	kit_done(&k);
}

/* Two jobs were promised places that both could use: by planned start alone, the first would
 * take the place of the second, which has no other. */
static void promised_there(void)
{
	struct slu_gang_part part[2] = { 0 };
	struct kit k;

	kit_new(&k, 0, 0, SLU_POLICY_CONSERVATIVE);
	kit_node(&k, "a", 4, NULL, NULL);
	kit_node(&k, "b", 3, NULL, NULL);
	const struct slu_machine *m = slu_queue_machine(k.q);

	part[0].slots = 3;
	kit_job(&k, 1, 3, 100, NULL);
	kit_job(&k, 2, 4, 100, NULL);
	part[0].node = slu_machine_node_find(m, "b");
	is(kit_apply(&k, &(struct slu_event){ .kind = SLU_EV_PROMISE,
					      .job = 1,
					      .start_s = 50,
					      .part = part,
					      .n_part = 1 }),
	   0, "there: 1 had been promised 50 on b");
	ok(k.planned[1] == 50 && k.nnode[1] == 1 && k.node[1][0] == slu_node_index(part[0].node),
	   "there: job 1 has that place again");
	kit_node_do(&k, SLU_EV_NODE_REMOVE, "b");
	is(kit_apply(&k, &(struct slu_event){ .kind = SLU_EV_PROMISE,
					      .job = 2,
					      .start_s = 60,
					      .part = part,
					      .n_part = 1 }),
	   0, "there: 2 had been promised 60 on a node that is gone");
	is(k.planned[2], 60, "there: job 2 has its time, on another node");
	kit_done(&k);
}

int main(void)
{
	promised_there();
	order();
	line();
	hold_release_cancel();
	promise();
	promised_before();
	overrun();
	begin_and_deadline();
	dependencies();
	limits();
	queues();
	spans();
	span_amounts();
	foreign_and_take_back();
	node_forbidden();
	elastic();
	node_back_with_work();
	never_until_grown();
	smaller_under_work();
	overfilled_by_others();
	bad_records();
	clone_and_replay();
	roles_apart();
	return tap_done();
}
