#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "control/post/inbox.h"
#include "control/post/intent.h"
#include "tap.h"

struct note {
	struct slu_record base;
	int value;
};

static atomic_int freed;

static void note_free(struct slu_record *r)
{
	atomic_fetch_add(&freed, 1);
	slu_free(r);
}

static struct slu_record *note(uint32_t kind, uint64_t key, int value)
{
	struct note *n = slu_calloc(1, sizeof *n);

	n->base = (struct slu_record){ .kind = kind, .key = key, .free = note_free };
	n->value = value;
	return &n->base;
}

static int value_of(struct slu_record *r)
{
	int v = ((struct note *)r)->value;

	slu_free(r);
	return v;
}

static void test_order_and_merge(void)
{
	struct slu_inbox *q = slu_inbox_new(4, NULL, NULL);
	struct slu_record *out[8], *extra;

	ok(!slu_inbox_put(q, note(1, 7, 1)) && !slu_inbox_put(q, note(1, 8, 2)) &&
		   !slu_inbox_put(q, note(2, 7, 3)),
	   "three records enter");
	freed = 0;
	ok(!slu_inbox_put(q, note(1, 7, 4)) && freed == 1 && slu_inbox_waiting(q) == 3,
	   "a newer state of the same object replaces the older one");
	ok(!slu_inbox_put(q, note(1, 0, 5)), "a record without key is never merged");
	extra = note(1, 0, 6);
	ok(slu_inbox_put(q, extra) == -EAGAIN, "the fifth is refused");
	ok(!slu_inbox_put(q, note(1, 8, 7)), "a full inbox still merges");
	ok(!slu_inbox_put_answer(q, extra), "an answer is never refused");
	ok(slu_inbox_take(q, out, 8) == 5, "five records come out");
	int v[5];
	for (int i = 0; i < 5; i++)
		v[i] = value_of(out[i]);
	ok(v[0] == 4 && v[1] == 7 && v[2] == 3 && v[3] == 5 && v[4] == 6,
	   "records come in order of first arrival, each in its newest state");
	ok(!slu_inbox_put(q, note(1, 7, 9)) && slu_inbox_waiting(q) == 1,
	   "after the take the key is new again");
	ok(slu_inbox_wait(q, 0) == 1, "waiting returns at once when something is there");
	slu_inbox_close(q);
	extra = note(1, 0, 1);
	ok(slu_inbox_put(q, extra) == -ESHUTDOWN, "a closed inbox refuses");
	slu_free(extra);
	freed = 0;
	slu_inbox_free(q);
	ok(freed == 1, "records that still wait are freed with the inbox");
}

#define PER_THREAD 20000
#define PRODUCERS  3

static void *produce(void *arg)
{
	struct slu_inbox *q = arg;

	for (int i = 0; i < PER_THREAD; i++) {
		struct slu_record *r = note(1, 0, i);

		while (slu_inbox_put(q, r) == -EAGAIN)
			sched_yield();
	}
	return NULL;
}

static void test_threads(void)
{
	struct slu_inbox *q = slu_inbox_new(100, NULL, NULL);
	pthread_t t[PRODUCERS];
	long sum = 0;
	int got = 0;

	for (int i = 0; i < PRODUCERS; i++)
		pthread_create(&t[i], NULL, produce, q);
	while (got < PRODUCERS * PER_THREAD) {
		struct slu_record *out[32];
		uint32_t n;

		slu_inbox_wait(q, -1);
		n = slu_inbox_take(q, out, 32);
		for (uint32_t i = 0; i < n; i++)
			sum += value_of(out[i]);
		got += (int)n;
	}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(t[i], NULL);
	ok(sum == (long)PRODUCERS * PER_THREAD * (PER_THREAD - 1) / 2,
	   "three producers, one taker: nothing lost, nothing doubled");
	slu_inbox_free(q);
}

static atomic_int woken;

static void wake(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

struct found {
	int intents, pods;
	char node[16];
};

static int one_intent(void *arg, const struct slu_store_intent *i)
{
	((struct found *)arg)->intents += i->state == SLU_INTENT_OPEN;
	return 0;
}

static int one_pod(void *arg, const struct slu_store_intent_pod *p)
{
	struct found *f = arg;

	f->pods++;
	snprintf(f->node, sizeof f->node, "%s", p->node);
	return 0;
}

static bool wait_durable(struct slu_intents *d, uint64_t ticket)
{
	for (int i = 0; i < 60000 && !slu_intents_durable(d, ticket); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return slu_intents_durable(d, ticket);
}

static struct found look(struct slu_journal_setup *setup)
{
	struct found f = { 0 };
	struct slu_store_reader r = { .intent = one_intent, .intent_pod = one_pod, .arg = &f };
	struct slu_error err = { 0 };

	ok(slu_journal_recover(setup, &r, &err) == 0, "the store can be read back (%s)", err.text);
	return f;
}

static void test_door(void)
{
	char file[] = "/tmp/sluice-door-XXXXXX", node[] = "n1";
	struct slu_journal_setup setup = {
		.url = file, .cluster = "c", .holder = "h", .wake = wake, .arg = &woken
	};
	struct slu_intent_pod pod[] = { { "u0", "ns", "a-0", node }, { "u1", "ns", "a-1", node } };
	struct slu_store_job job = { .id = 7,
				     .key = "k",
				     .space = "ns",
				     .name = "a",
				     .object = "",
				     .kind = "Job",
				     .user = "ns",
				     .queue = "q",
				     .cause = "",
				     .spec = "{}" };
	struct slu_intents *d = NULL;
	struct found f;
	uint64_t ticket = 0;

	close(mkstemp(file));
	unlink(file);
	ok(slu_intents_new(&setup, &d, NULL) == 0, "the door opens before the store is there");
	ok(!slu_batch_put_job(slu_intents_batch(d), &job) &&
		   !slu_intent_propose(d, 1, 7, 100, "bind", pod, 2),
	   "a job and its intent in one batch");
	node[0] = 'X';
	ok(!slu_intents_send(d, &ticket) && ticket > 0 && wait_durable(d, ticket),
	   "the batch becomes durable");
	ok(atomic_load(&woken) > 0, "a durable batch wakes the core");
	slu_intents_free(d, 1000);
	f = look(&setup);
	ok(f.intents == 1 && f.pods == 2 && !strcmp(f.node, "n1"),
	   "after a restart the intent is open, as it was proposed");
	ok(slu_intents_new(&setup, &d, NULL) == 0 &&
		   !slu_intent_settle(d, 1, 7, 100, "bind", SLU_INTENT_DONE) &&
		   !slu_intents_send(d, &ticket) && wait_durable(d, ticket),
	   "the intent is settled");
	slu_intents_free(d, 1000);
	f = look(&setup);
	ok(f.intents == 0, "nothing is open any more");
	unlink(file);
	setup.url = "memory:";
	ok(slu_intents_new(&setup, &d, NULL) == 0 &&
		   !slu_intent_propose(d, 1, 7, 100, "bind", pod, 2) &&
		   !slu_intents_send(d, &ticket) && slu_intents_durable(d, ticket),
	   "without a store an intent counts at once");
	slu_intents_free(d, 0);
}

int main(void)
{
	test_order_and_merge();
	test_threads();
	test_door();
	return tap_done();
}
