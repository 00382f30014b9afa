/* Every allocation of a busy scenario made to fail in turn: the call says -ENOMEM, the books stay
 * whole, nothing leaks, and the same call works when there is memory again. */
#include "queue_kit.h"

#include "queue/log.h"

static int again(struct kit *k, const struct slu_event *ev, long fault)
{
	slu_fault_arm(fault);
	int rc = slu_queue_apply(k->q, k->now, ev, &k->out, NULL);
	bool failed = slu_fault_disarm();

	if (!failed)
		return rc;
	if (rc == 0) /* a benign one: what failed was not needed */
		return 0;
	if (rc != -ENOMEM || slu_queue_check(k->q, k->now, &k->err))
		return -1;
	rc = slu_queue_apply(k->q, k->now, ev, &k->out, NULL);
	return rc == -EEXIST || rc == -ENOENT ? -1 : rc;
}

static int pass_again(struct kit *k, long fault)
{
	slu_fault_arm(fault);
	int rc = slu_queue_schedule(k->q, k->now, &k->out, &k->err);
	bool failed = slu_fault_disarm();

	if (failed && rc == -ENOMEM)
		rc = slu_queue_schedule(k->q, k->now, &k->out, &k->err);
	kit_read(k);
	return rc;
}

/* A log that begins in the middle, and its reading: out of memory is said, and all goes well then.
 */
static bool picture_fails_cleanly(const struct slu_queue *q, long fault)
{
	struct slu_qlog *l = slu_qlog_new();
	struct slu_replay *r = NULL;
	int rc, once = 0;

	slu_fault_arm(fault);
	rc = slu_qlog_renew(l, q);
	slu_fault_disarm();
	if (rc != 0 && (rc != -ENOMEM || slu_qlog_on(l)))
		once = -1;
	for (int again = 0; again < 2 && !once; again++) {
		rc = slu_qlog_renew(l, q);
		slu_replay_new(&(struct slu_replay_opts){ 0 }, &r);
		if (!again)
			slu_fault_arm(fault);
		for (uint64_t seq = 1; !rc && slu_qlog_bytes(l)->n; seq++) {
			rc = slu_replay_row(r, seq, 0, slu_qlog_bytes(l)->p, slu_qlog_bytes(l)->n,
					    NULL);
			slu_qlog_clear(l);
		}
		slu_fault_disarm();
		if (rc != 0 && (again || rc != -ENOMEM))
			once = -1;
		slu_replay_free(r);
	}
	slu_qlog_free(l);
	return !once;
}

/* A little life with everything in it; each call sees its `fault`-th allocation fail first.
 * Returns the number of the step that went wrong, 0 if none. */
static int scenario(long fault)
{
	struct kit k;
	struct slu_amount need, total;
	struct slu_gang_role role = { .need = &need, .n_need = 1 };
	struct slu_gang_req req = { .role = &role, .n_role = 1, .level = -1 };
	struct slu_dep dep = { SLU_DEP_AFTER_OK, 1 };
	const char *prop = "fast", *n0 = "n0", *ann = "ann", *rack = "r";
	struct slu_span span = { .kind = SLU_SPAN_RESERVATION,
				 .name = "class",
				 .from_s = 20,
				 .to_s = 40,
				 .node = &n0,
				 .nnode = 1,
				 .user = &ann,
				 .nuser = 1 };
	struct slu_node_spec node = {
		.name = "new", .total = &total, .n_total = 1, .domain = &rack, .n_domain = 1
	};
	struct slu_queue_conf conf = { .name = "second",
				       .policy = SLU_POLICY_CONSERVATIVE,
				       .property = "fast",
				       .limit = { .max_running_user = 2 } };
	int bad = 0, step = 0;

	if (kit_new(&k, 3, 2, SLU_POLICY_EASY) < 0)
		return -1;
	need = (struct slu_amount){ (uint32_t)k.cpu, 1 };
	total = (struct slu_amount){ (uint32_t)k.cpu, 2 };
#define DO(...)                                     \
	do {                                        \
		struct slu_event ev_ = __VA_ARGS__; \
		step++;                             \
		if (!bad && again(&k, &ev_, fault)) \
			bad = step;                 \
		kit_read(&k);                       \
	} while (0)
#define PASS(t)                                    \
	do {                                       \
		step++;                            \
		k.now = (t);                       \
		if (!bad && pass_again(&k, fault)) \
			bad = step;                \
	} while (0)
	DO({ .kind = SLU_EV_QUEUE_SET, .conf = &conf });
	DO({ .kind = SLU_EV_NODE_ADD, .node_spec = &node, .property = &prop, .n_property = 1 });
	for (slu_job_id j = 1; j <= 12; j++) {
		struct slu_job_spec s = { .id = j,
					  .name = "a name",
					  .user = j % 2 ? "ann" : "bob",
					  .queue = j % 5 ? "batch" : "second",
					  .first_seen_us = (int64_t)j,
					  .limit_s = 5 + (int64_t)j,
					  .begin_s = SLU_TIME_NONE,
					  .deadline_s = SLU_TIME_NONE,
					  .dep = &dep,
					  .ndep = j == 7,
					  .grow = j == 2,
					  .req = &req };

		role.min = 1 + (uint32_t)(j % 4);
		role.max = j == 2 ? role.min + 2 : 0;
		DO({ .kind = SLU_EV_SUBMIT, .spec = &s });
	}
	DO({ .kind = SLU_EV_PROMISE, .job = 7, .start_s = 20 });
	PASS(1);
	DO({ .kind = SLU_EV_SPAN_ADD, .span = &span });
	DO({ .kind = SLU_EV_PRIORITY, .job = 11, .priority = 4 });
	DO({ .kind = SLU_EV_HOLD, .job = 9 });
	DO({ .kind = SLU_EV_LIMIT, .job = 10, .limit_s = 3 });
	PASS(2);
	DO({ .kind = SLU_EV_END, .job = 1 });
	PASS(4);
	DO({ .kind = SLU_EV_RELEASE, .job = 9 });
	DO({ .kind = SLU_EV_FOREIGN_ADD,
	     .foreign = 3,
	     .node = slu_machine_node_at(slu_queue_machine(k.q), 1),
	     .amount = &need,
	     .n_amount = 1,
	     .until_s = SLU_TIME_EVER });
	PASS(5);
	DO({ .kind = SLU_EV_CANCEL, .job = 3 });
	PASS(30);
	struct slu_queue *c = NULL;

	slu_fault_arm(fault);
	c = slu_queue_clone(k.q);
	slu_fault_disarm();
	slu_queue_free(c);
	c = slu_queue_clone(k.q);
	if (!bad && (!c || slu_queue_check(c, 30, &k.err)))
		bad = 1000;
	slu_queue_free(c);
	if (!bad && !picture_fails_cleanly(k.q, fault))
		bad = 1002;
	if (!bad && slu_queue_check(k.q, 30, &k.err))
		bad = 1001;
	if (bad)
		printf("# fault %ld: step %d: %s\n", fault, bad, k.err.text);
	kit_done(&k);
	return bad;
}

int main(void)
{
	ok(scenario(-1) == 0, "the scenario passes without faults");
	for (long k = 0; k < 60; k++)
		ok(scenario(k) == 0, "allocation %ld of every call fails first", k);
	return tap_done();
}
