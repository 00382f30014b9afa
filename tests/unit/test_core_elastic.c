/* Elastic groups: start small, are filled up with room that is left, change their size on request.
 */
#include "core_kit.h"

#define ELASTIC(lo, hi) \
	"\"labels\":{\"sluice.sh/min-size\":\"" lo "\",\"sluice.sh/max-size\":\"" hi "\"}"

static void resize(struct world *w, const char *name, uint32_t size)
{
	question(w, name, &(struct slu_rec_ask){ .what = SLU_ASK_RESIZE, .size = size });
}

static struct fpod *members(struct world *w, const char *prefix, int from, int to, const char *meta)
{
	struct fpod *first = NULL;

	for (int i = from; i < to; i++) {
		char name[32];
		struct fpod *p;

		snprintf(name, sizeof name, "%s-%d", prefix, i);
		p = add_pod(w, name, "sluice", "1", meta);
		first = first ? first : p;
	}
	return first;
}

static void wait_a_bit(struct world *w)
{
	for (int i = 0; i < 3; i++) {
		w->now_us += 60000;
		turn(w);
	}
}

static void test_fill_up(void)
{
	struct world w;
	struct fpod *a;

	open_world(&w, 4, 1, "");
	a = members(&w, "a", 0, 2, GROUP("a", "2"));
	turn(&w);
	job(&w, "j1", "e", "\"parallelism\":6,\"completions\":6", "");
	members(&w, "e", 0, 6,
		"\"annotations\":{\"sluice.sh/duration\":\"2h\"}," ELASTIC("2", "5") "," OWNED(
			"Job", "j1", "e"));
	turn(&w);
	ok(bound(&w, "e-") == 2, "starts with the two that fit (%d)", bound(&w, "e-"));
	members(&w, "b", 0, 2, GROUP("b", "2"));
	turn(&w);
	end_pod(&w, &a[0], "Succeeded");
	turn(&w);
	wait_a_bit(&w);
	ok(bound(&w, "e-") == 2, "a place is free, but it is promised to b (%d)", bound(&w, "e-"));
	end_pod(&w, &a[1], "Succeeded");
	turn(&w);
	wait_a_bit(&w);
	ok(bound(&w, "b-") == 2 && bound(&w, "e-") == 2,
	   "a waiting gang gets its promised room, not the elastic gang that could grow");
	feed_node(&w, "n8", 1, "", "", "True");
	turn(&w);
	wait_a_bit(&w);
	ok(bound(&w, "e-") == 3, "a node comes that nobody waits for: one more member (%d)",
	   bound(&w, "e-"));
	for (int i = 10; i < 14; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%d", i);
		feed_node(&w, name, 1, "", "", "True");
	}
	wait_a_bit(&w);
	ok(bound(&w, "e-") == 5, "never more than max-size (%d)", bound(&w, "e-"));
	later(&w, 10);
	ok(w.conditions > 0, "the member without a place is told");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_gives_back(void)
{
	struct world w;
	struct fpod *e;

	open_world(&w, 4, 1, "");
	job(&w, "j1", "e", "\"parallelism\":4,\"completions\":4", "");
	e = members(&w, "e", 0, 4, ELASTIC("1", "4") "," OWNED("Job", "j1", "e"));
	turn(&w);
	wait_a_bit(&w);
	ok(bound(&w, "e-") == 4, "the elastic gang runs with four members");
	members(&w, "b", 0, 1, "");
	turn(&w);
	ok(bound(&w, "b-") == 0, "another gang waits while the elastic gang has all nodes");
	job(&w, "j1", "e", "\"parallelism\":2,\"completions\":4", "");
	delete_pod(&w, &e[3]);
	turn(&w);
	ok(bound(&w, "b-") == 1, "parallelism is lowered, a pod goes: its place is free at once");
	delete_pod(&w, &e[2]);
	job(&w, "j1", "e", "\"parallelism\":4,\"completions\":4", "");
	members(&w, "e", 4, 6, ELASTIC("1", "4") "," OWNED("Job", "j1", "e"));
	turn(&w);
	wait_a_bit(&w);
	ok(bound(&w, "e-") == 3, "raised again: the plan follows as far as there is room (%d)",
	   bound(&w, "e-"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_restart(void)
{
	struct world w, v;

	open_world(&w, 3, 1, "");
	members(&w, "e", 0, 5,
		"\"labels\":{\"sluice.sh/group\":\"e\",\"sluice.sh/min-size\":\"2\"}");
	turn(&w);
	wait_a_bit(&w);
	ok(bound(&w, "e-") == 3, "an elastic gang starts with the three of five members that fit");
	open_world(&v, 4, 1, "");
	memcpy(v.pod, w.pod, sizeof v.pod);
	v.n_pods = w.n_pods;
	for (int i = 0; i < v.n_pods; i++)
		feed_pod(&v, &v.pod[i], false);
	turn(&v);
	wait_a_bit(&v);
	ok(bound(&v, "e-") == 4 && v.evictions == 0,
	   "a new daemon takes them over and goes on filling (%d)", bound(&v, "e-"));
	ok(differences(&v) == 0, "the books are right");
	close_world(&w);
	close_world(&v);
}

static void test_resize_owner(void)
{
	struct world w;

	open_world(&w, 8, 1, "");
	job(&w, "j1", "e", "\"parallelism\":4,\"completions\":8", "");
	members(&w, "e", 0, 4, ELASTIC("2", "6") "," OWNED("Job", "j1", "e"));
	turn(&w);
	resize(&w, "e", 6);
	ok(w.answer_rc == 0 && !strcmp(w.last_spec, "e {\"parallelism\":6}"), "grow: %s: %s",
	   w.last_spec, w.answer);
	resize(&w, "e", 7);
	ok(w.answer_rc == -EINVAL, "a resize above the maximum is refused: %s", w.answer);
	resize(&w, "e", 1);
	ok(w.answer_rc == -EINVAL, "a resize below the minimum is refused: %s", w.answer);
	resize(&w, "e", 4);
	ok(w.answer_rc == 0 && strstr(w.answer, "already"),
	   "a resize to the present size changes nothing: %s", w.answer);
	resize(&w, "e", 0);
	ok(w.answer_rc == 0 && !strcmp(w.last_spec, "e {\"parallelism\":0}"),
	   "a resize of a running gang to 0 sets its owner to 0: %s", w.answer);
	w.bind_outcome = SLU_KUBE_FAILED;
	resize(&w, "e", 2);
	ok(w.answer_rc == -EIO && strstr(w.answer, "so it is"), "the server's no is told: %s",
	   w.answer);
	resize(&w, "nobody", 2);
	ok(w.answer_rc == -ENOENT, "the resize of an unknown group is refused: %s", w.answer);
	close_world(&w);
	open_world(&w, 8, 1, "");
	job(&w, "j2", "i", "\"parallelism\":4,\"completions\":4,\"completionMode\":\"Indexed\"",
	    "");
	members(&w, "i", 0, 4, OWNED("Job", "j2", "i"));
	job(&w, "j3", "c", "\"parallelism\":3,\"completions\":3", "");
	members(&w, "c", 0, 3, OWNED("Job", "j3", "c"));
	turn(&w);
	resize(&w, "i", 2);
	ok(!strcmp(w.last_spec, "i {\"parallelism\":2,\"completions\":2}"),
	   "an indexed Job keeps completions equal: %s", w.last_spec);
	resize(&w, "c", 5);
	ok(w.answer_rc == -EINVAL && strstr(w.answer, "completes after 3 pods"),
	   "a resize that Kubernetes would not do is refused: %s", w.answer);
	close_world(&w);
}

static void test_resize_bare(void)
{
	struct world w;

	open_world(&w, 3, 1, "");
	members(&w, "a", 0, 5, GROUP("a", "2"));
	turn(&w);
	resize(&w, "a", 4);
	ok(w.answer_rc == 0 && w.evictions == 1, "bare pods: one is evicted: %s", w.answer);
	resize(&w, "a", 6);
	ok(w.answer_rc == -EINVAL, "a group without a maker cannot grow: %s", w.answer);
	members(&w, "b", 0, 4, GROUP("b", "4"));
	turn(&w);
	w.evictions = 0;
	resize(&w, "b", 0);
	ok(w.answer_rc == 0 && w.evictions == 0 && strstr(w.answer, "out of the queue"),
	   "a resize of a waiting gang to 0 cancels it: %s", w.answer);
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_fill_up();
	test_gives_back();
	test_restart();
	test_resize_owner();
	test_resize_bare();
	return tap_done();
}
