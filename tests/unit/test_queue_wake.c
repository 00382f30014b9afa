/* Every wait has a wake: whoever fits and is allowed is looked at, whatever let him in. */
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
	ok(k.expired[1] == 1 && k.start[2] == 11, "deadline: and starts when that one gives up");
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
	is(k.start[2], SLU_TIME_NONE, "look: who may not start does not");
	slu_job_id job;

	is(slu_queue_overlooked(k.q, &job, NULL), 0, "look: nobody is overlooked");
	kit_done(&k);
}

int main(void)
{
	first_leaves();
	deadline_passes();
	other_queue_gives_up();
	looks_on_demand();
	return tap_done();
}
