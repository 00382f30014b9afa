/* Every wait has a wake: the queue looks at every job that fits and is allowed to start,
 * whatever event made that so. */
#include "queue_kit.h"

/* Two nodes of four, one of them down: job 1 needs both and has no planned start; job 2 fits. */
static void behind(struct kit *k, enum slu_policy policy, uint32_t depth)
{
	struct slu_queue_conf c = { .name = "batch", .policy = policy, .queue_depth = depth };

	kit_new(k, 2, 4, policy);
	kit_queue(k, &c);
	kit_node_do(k, SLU_EV_NODE_DOWN, "n1");
	kit_job(k, 1, 6, 60, NULL);
	kit_job(k, 2, 1, 5, NULL);
	kit_at(k, 0);
	k->now = 1;
}

static void leaves(enum slu_policy policy, uint32_t depth, const struct slu_event *ev,
		   const char *how)
{
	struct kit k;

	behind(&k, policy, depth);
	ok(k.planned[1] == SLU_TIME_NONE && k.start[2] == SLU_TIME_NONE,
	   "%s, %s: the first has no planned start, and the second waits behind it", how,
	   slu_policy_name(policy));
	is(kit_apply(&k, ev), 0, "%s: the first goes", how);
	is(kit_at(&k, 1), 0, "%s: no wait without a wake", how);
	is(k.start[2], 1, "%s: the second starts at once", how);
	kit_done(&k);
}

static void first_leaves(void)
{
	struct slu_amount one = { 0, 1 };
	struct slu_gang_role role = { .min = 20, .need = &one, .n_need = 1 };
	struct slu_gang_req wide = { .role = &role, .n_role = 1, .level = -1 };
	struct slu_job_spec spec = { .req = &wide };

	for (int way = 0; way < 2; way++) {
		enum slu_policy p = way ? SLU_POLICY_EASY : SLU_POLICY_FCFS;
		uint32_t depth = way;

		leaves(p, depth, &(struct slu_event){ .kind = SLU_EV_CANCEL, .job = 1 }, "cancel");
		leaves(p, depth, &(struct slu_event){ .kind = SLU_EV_END, .job = 1 }, "delete");
		leaves(p, depth, &(struct slu_event){ .kind = SLU_EV_HOLD, .job = 1 }, "hold");
		leaves(p, depth,
		       &(struct slu_event){ .kind = SLU_EV_REQUEST, .job = 1, .spec = &spec },
		       "asks for what cannot be");
		leaves(p, depth,
		       &(struct slu_event){ .kind = SLU_EV_PRIORITY, .job = 1, .priority = -1 },
		       "less urgent");
	}
}

/* A job whose deadline has become impossible goes by the clock alone. */
static void deadline_passes(void)
{
	struct kit k;

	kit_new(&k, 2, 4, SLU_POLICY_FCFS);
	kit_node_do(&k, SLU_EV_NODE_DOWN, "n1");
	kit_job(&k, 1, 6, 60, KIT_SPEC(.deadline_s = 70));
	kit_job(&k, 2, 1, 5, NULL);
	kit_at(&k, 5);
	is(k.start[2], SLU_TIME_NONE, "deadline: the second waits behind the first");
	kit_at(&k, 11);
	ok(k.expired[1] == 1 && k.start[2] == 11,
	   "deadline: the second starts when the first has expired");
	kit_done(&k);
}

/* A queue that is looked at later gives up its promise when it is stopped. */
static void other_queue_gives_up(void)
{
	struct slu_queue_conf low = { .name = "low", .policy = SLU_POLICY_EASY, .priority = -1 };
	struct kit k;

	kit_new(&k, 1, 4, SLU_POLICY_EASY);
	kit_queue(&k, &low);
	kit_job(&k, 1, 3, 100, NULL);
	kit_at(&k, 0);
	kit_job(&k, 2, 4, 50, KIT_SPEC(.queue = "low"));
	kit_at(&k, 1);
	is(k.planned[2], 100, "stopped: the second queue has a promise");
	k.now = 2;
	kit_job(&k, 3, 1, 200, NULL);
	kit_at(&k, 2);
	is(k.start[3], SLU_TIME_NONE, "stopped: a long job of the first would delay it");
	k.now = 3;
	low.stopped = true;
	kit_queue(&k, &low);
	is(kit_at(&k, 3), 0, "stopped: no wait without a wake");
	is(k.start[3], 3, "stopped: it starts in the pass that gives up the promise");
	kit_done(&k);
}

static void looks_on_demand(void)
{
	struct kit k;

	behind(&k, SLU_POLICY_FCFS, 0);
	is(kit_do(&k, SLU_EV_LOOK, 0), 0, "look: an event of its own");
	kit_at(&k, 1);
	is(k.start[2], SLU_TIME_NONE, "look: a job that may not start does not");
	slu_job_id job;

	is(slu_queue_overlooked(k.q, &job, NULL), 0, "look: no job is overlooked");
	kit_done(&k);
}

/* A job that waits outside a full queue enters when there is a place, in order. */
static void full(void)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .limit = { .max_waiting = 2 } };
	struct slu_why w;
	struct kit k;

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	kit_job(&k, 1, 1, 100, NULL);
	kit_at(&k, 0);
	for (slu_job_id j = 2; j <= 6; j++)
		kit_job(&k, j, 1, 10, KIT_SPEC(.priority = j == 6));
	ok(!k.refused[3] && k.refused[4] == 1 && k.refused[5] == 1 && k.refused[6] == 1,
	   "full: two wait, three are told (%s)", k.text[4]);
	is(slu_queue_why(k.q, 0, 4, &w, NULL), 0,
	   "full: the queue explains the job that stays outside");
	ok(w.state == SLU_JOB_BLOCKED && strstr(w.reason, "enters when"),
	   "full: the reason says when the job enters (%s)", w.reason);
	slu_why_done(&w);
	is(kit_job(&k, 7, 1, 10, KIT_SPEC(.member = true)), 0,
	   "full: a member of a running gang is submitted");
	is(k.refused[7], 0, "full: a member of a running gang is always let in");
	k.now = 1;
	kit_do(&k, SLU_EV_CANCEL, 2);
	kit_at(&k, 1);
	struct slu_job_view v;

	ok(!slu_queue_job(k.q, 6, &v) && v.state == SLU_JOB_WAITING,
	   "full: the urgent job is let in");
	ok(!slu_queue_job(k.q, 4, &v) && v.state == SLU_JOB_BLOCKED,
	   "full: the next job stays outside");
	kit_do(&k, SLU_EV_CANCEL, 5);
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 2);
	ok(!slu_queue_job(k.q, 4, &v) && v.state == SLU_JOB_WAITING,
	   "full: when a job starts, the next is let in in the same pass");
	c.limit.max_waiting = 1;
	kit_queue(&k, &c);
	kit_at(&k, 3);
	ok(!slu_queue_job(k.q, 4, &v) && v.state == SLU_JOB_WAITING,
	   "full: a lower limit sends no job out");
	kit_done(&k);
}

static void full_by_user(void)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .limit = { .max_waiting_user = 1 } };
	struct slu_job_view v;
	struct kit k;

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	kit_job(&k, 1, 1, 100, NULL);
	kit_at(&k, 0);
	kit_job(&k, 2, 1, 10, KIT_SPEC(.user = "ann"));
	kit_job(&k, 3, 1, 10, KIT_SPEC(.user = "ann"));
	kit_job(&k, 4, 1, 10, KIT_SPEC(.user = "bob"));
	ok(k.refused[3] == 1 && !k.refused[4], "full for one: ann has one waiting, bob another");
	struct slu_queue *copy = slu_queue_clone(k.q);

	k.now = 1;
	kit_do(&k, SLU_EV_CANCEL, 2);
	kit_at(&k, 1);
	ok(!slu_queue_job(k.q, 3, &v) && v.state == SLU_JOB_WAITING, "full for one: ann's next");
	slu_queue_free(k.q);
	k.q = copy;
	c.limit.max_waiting_user = 0;
	kit_queue(&k, &c);
	kit_at(&k, 1);
	ok(!slu_queue_job(k.q, 3, &v) && v.state == SLU_JOB_WAITING,
	   "full for one: a limit that is lifted lets her in");
	kit_done(&k);
}

/* A job that may not start yet does not take away the promise of the next one. */
static void limited_is_not_ahead(void)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .limit = { .max_running_user = 1 } };
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	kit_job(&k, 1, 2, 1000, KIT_SPEC(.user = "ann"));
	kit_at(&k, 0);
	kit_job(&k, 2, 1, 1000, KIT_SPEC(.user = "ann"));
	kit_at(&k, 1);
	kit_job(&k, 3, 4, 100, KIT_SPEC(.user = "bob"));
	kit_at(&k, 2);
	is(k.planned[3], 1000, "limited: the wide job behind it is promised the first end");
	kit_job(&k, 4, 1, 10000, KIT_SPEC(.user = "cyd"));
	kit_at(&k, 3);
	is(k.start[4], SLU_TIME_NONE, "limited: a long job does not delay that");
	kit_done(&k);
}

/* With a depth, jobs that may not start do not count towards it. */
static void limited_is_not_deep(void)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .queue_depth = 1,
				    .limit = { .max_running_user = 1 } };
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	for (slu_job_id j = 1; j <= 3; j++)
		kit_job(&k, j, 1, 100, KIT_SPEC(.user = "ann"));
	kit_at(&k, 0);
	kit_job(&k, 4, 1, 100, KIT_SPEC(.user = "bob"));
	kit_at(&k, 1);
	ok(k.start[1] == 0 && k.start[2] == SLU_TIME_NONE && k.start[4] == 1,
	   "limited: ann's own jobs do not keep bob from being looked at");
	kit_done(&k);
}

/* A limit that is lowered holds for jobs that were promised a start before. */
static void lowered_ends_promises(void)
{
	struct slu_queue_conf c = { .name = "batch", .policy = SLU_POLICY_CONSERVATIVE };
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_CONSERVATIVE);
	kit_job(&k, 1, 2, 100, KIT_SPEC(.user = "ann"));
	kit_job(&k, 2, 2, 1000, KIT_SPEC(.user = "ann"));
	kit_at(&k, 0);
	kit_job(&k, 3, 2, 100, KIT_SPEC(.user = "ann"));
	kit_job(&k, 4, 2, 100, KIT_SPEC(.user = "bob"));
	kit_at(&k, 1);
	ok(k.planned[3] == 100 && k.planned[4] == 200, "lowered: both are promised a start");
	c.limit.max_running_user = 1;
	k.now = 2;
	kit_queue(&k, &c);
	kit_at(&k, 2);
	ok(k.planned[3] == SLU_TIME_NONE && k.planned[4] == 100,
	   "lowered: ann's promise ends, and bob has its place");
	k.now = 100;
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 100);
	ok(k.start[3] == SLU_TIME_NONE && k.start[4] == 100,
	   "lowered: no job of ann starts while one runs");
	k.now = 150;
	kit_do(&k, SLU_EV_END, 2);
	kit_at(&k, 150);
	is(k.start[3], 150, "lowered: a job of ann starts when none of hers runs");
	kit_done(&k);
}

/* Members of a running gang belong to it, for every limit. */
static void members(void)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .limit = { .max_running = 1, .max_slots = 1 } };
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	kit_job(&k, 1, 1, 100, NULL);
	kit_at(&k, 0);
	kit_job(&k, 2, 2, 100, KIT_SPEC(.member = true));
	kit_job(&k, 3, 1, 100, NULL);
	kit_at(&k, 1);
	ok(k.start[2] == 1 && k.start[3] == SLU_TIME_NONE,
	   "members: one gang may run, and its later members with it");
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 2);
	is(k.start[3], 2,
	   "members: they do not keep the next gang from running unless one stands for theirs");
	kit_done(&k);
}

/* The first members of a gang have ended, later ones run or wait: limits count the gang. */
static void members_left(void)
{
	struct kit k;
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .limit = { .max_running = 1 } };
	struct slu_event end = { .kind = SLU_EV_END, .job = 1, .result = SLU_RESULT_OK };
	struct slu_event stands = { .kind = SLU_EV_STANDS, .job = 2, .size = 1 };

	kit_new(&k, 2, 4, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	kit_job(&k, 1, 1, 100, NULL);
	kit_job(&k, 2, 1, 100, KIT_SPEC(.member = true));
	kit_job(&k, 3, 1, 100, NULL);
	kit_at(&k, 0);
	kit_apply(&k, &end);
	is(kit_apply(&k, &stands), 0, "left: a member that runs stands for its gang");
	is(kit_at(&k, 1), 0, "left: the books are right (%s)", k.err.text);
	is(k.start[3], SLU_TIME_NONE, "left: a later member that runs counts as its gang would");
	kit_job(&k, 4, 1, 100, KIT_SPEC(.member = true, .stands = true));
	kit_at(&k, 2);
	is(k.start[4], SLU_TIME_NONE,
	   "left: nor does a member of a gang start of which nothing runs");
	end.job = 2;
	kit_apply(&k, &end);
	is(kit_at(&k, 3), 0, "left: the books are right again (%s)", k.err.text);
	is(k.start[3], 3, "left: when the last of them has ended, the next gang runs");
	stands.job = 4;
	is(kit_apply(&k, &stands), -EINVAL, "left: only a running job can stand for its gang");
	end.job = 3;
	kit_apply(&k, &end);
	kit_at(&k, 4);
	is(k.start[4], 4, "left: the member starts when the limit allows its gang");
	stands.size = 0;
	is(kit_apply(&k, &stands), 0, "left: another one stands for it");
	kit_job(&k, 5, 1, 100, NULL);
	kit_at(&k, 5);
	is(k.start[5], 5, "left: a member for which another one stands does not count");
	kit_done(&k);
}

/* A job that runs in a queue that was renamed still takes its nodes. */
static void runs_in_no_queue(void)
{
	struct slu_gang_part part = { .slots = 1 };
	struct slu_event ev = { .kind = SLU_EV_RUNNING, .part = &part, .n_part = 1 };
	struct kit k;

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	part.node = slu_machine_node_at(slu_queue_machine(k.q), 0);
	is(kit_job_as(&k, 1, 1, 100, KIT_SPEC(.queue = "gone"), &ev), 0,
	   "renamed: running work of a renamed queue is accepted");
	kit_job(&k, 2, 1, 100, NULL);
	kit_at(&k, 1);
	is(k.start[2], SLU_TIME_NONE, "renamed: its node is not given away");
	kit_done(&k);
}

int main(void)
{
	full();
	full_by_user();
	limited_is_not_ahead();
	limited_is_not_deep();
	lowered_ends_promises();
	members();
	members_left();
	runs_in_no_queue();
	first_leaves();
	deadline_passes();
	other_queue_gives_up();
	looks_on_demand();
	return tap_done();
}
