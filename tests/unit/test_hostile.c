/* A user with nothing but `edit` in one namespace creates a thousand objects each of the largest
 * legal kinds: another user's gang of two still starts, and the daemon stops at once.  The test
 * measures CPU time, because the machine that runs it may be busy. */
#include <malloc.h>
#include <time.h>

#include "held_kit.h"
#include "control/fluxjob/fluxjob.h"

#define OBJECTS 1000

static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void changed_fluxjob(struct world *w, int i, int slots)
{
	w->rv++;
	feed(w, SLU_KIND_FLUXJOB, false,
	     "{\"metadata\":{\"name\":\"f%d\",\"namespace\":\"ns\",\"uid\":\"flux-%d\",\"generation\":1,"
	     "\"resourceVersion\":\"%" PRIu64
	     "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"jobspec\":\"version: 1\\n"
	     "resources: [{type: slot, count: %d, label: s, with: [{type: core, count: 1}]}]\\n"
	     "tasks: [{command: [x], slot: s, count: {per_slot: 1}}]\\n"
	     "attributes: {system: {duration: 60}}\\n\"}}",
	     i, i, w->rv, slots);
}

static void large_fluxjob(struct world *w, int i)
{
	changed_fluxjob(w, i, 10000);
}

static void gang_starts(struct world *w, const char *what)
{
	int64_t from = cpu_us(), took;
	struct fpod *v[2] = { add_pod(w, "v-0", "sluice", "4", GROUP("v", "2")),
			      add_pod(w, "v-1", "sluice", "4", GROUP("v", "2")) };

	turn(w);
	took = cpu_us() - from;
	ok(*v[0]->node && *v[1]->node && took < 1000000,
	   "%s: another user's gang of two starts (%d ms)", what, (int)(took / 1000));
}

/* `jobs`: pods of each Job, 0: none. */
static void flood(int nodes, int jobs, bool fluxjobs, const char *what)
{
	struct world w;
	char name[16];
	int64_t from, took;
	size_t before = mallinfo2().uordblks, held;

	begin_as(&w, nodes, "");
	turn(&w);
	from = cpu_us();
	for (int i = 0; i < OBJECTS; i++) {
		snprintf(name, sizeof name, "h%d", i);
		if (jobs)
			feed_job(&w, name, jobs, true, "yes", "");
		if (fluxjobs)
			large_fluxjob(&w, i);
	}
	turn(&w);
	later(&w, 2);
	took = cpu_us() - from;
	held = mallinfo2().uordblks - before;
	ok(held < (128u << 20), "%s are taken in within %d ms, in %d MiB", what, (int)(took / 1000),
	   (int)(held >> 20));
	gang_starts(&w, what);
	from = cpu_us();
	close_world(&w);
	took = cpu_us() - from;
	ok(took < 1000000, "%s: stopping takes a moment (%d ms)", what, (int)(took / 1000));
}

/* The gangs fit, so they start, run and end: handling one member takes no look at all the
 * others. */
static void flood_that_fits(void)
{
	struct world w;
	int64_t from = cpu_us(), took;

	memset(&seen, 0, sizeof seen);
	seen.outcome = SLU_KUBE_OK;
	open_world(&w, 1300, 250, "");
	w.patched = server;
	turn(&w);
	large_fluxjob(&w, 0);
	large_fluxjob(&w, 1);
	turn(&w);
	later(&w, 2);
	took = cpu_us() - from;
	ok(core_fluxjob_of(w.core, "ns", "f1")->start_s && took < 5000000,
	   "two FluxJobs of 10 000 slots run (%d ms)", (int)(took / 1000));
	from = cpu_us();
	feed_job(&w, "h", 99999, true, "yes", "");
	turn(&w);
	took = cpu_us() - from;
	ok(seen.jobs == 1 && took < 3000000, "a Job of 99 999 pods is let go (%d ms)",
	   (int)(took / 1000));
	from = cpu_us();
	later(&w, 61);
	took = cpu_us() - from;
	ok(core_fluxjob_of(w.core, "ns", "f1")->life == FLUXJOB_OVER && took < 5000000,
	   "the FluxJobs end (%d ms)", (int)(took / 1000));
	gang_starts(&w, "a cluster full of FluxJobs");
	from = cpu_us();
	close_world(&w);
	took = cpu_us() - from;
	ok(took < 1000000, "stopping takes a moment (%d ms)", (int)(took / 1000));
}

/* Large objects that are changed again and again: each change throws away all that was made of them. */
static void churn(void)
{
	struct world w;
	int64_t from, took;

	begin(&w, 2);
	turn(&w);
	from = cpu_us();
	for (int i = 0; i < 200; i++) {
		feed_job(&w, "h", 90000 + i, true, "yes", "");
		changed_fluxjob(&w, 0, 10000 - i);
		turn(&w);
		w.now_us += 50000;
	}
	took = cpu_us() - from;
	ok(took < 4000000, "ten seconds of twenty changes each are less than half the time (%d ms)",
	   (int)(took / 1000));
	gang_starts(&w, "large objects that change");
	later(&w, 30);
	later(&w, 30);
	ok(w.core->holds->n_stands == 90199 &&
		   core_fluxjob_of(w.core, "ns", "f0")->life == FLUXJOB_LIVES,
	   "once they stay as they are they are planned with (%d)", (int)w.core->holds->n_stands);
	close_world(&w);
}

/* Anybody may name nodes that are not there: the names go with the pods. */
static void made_up_nodes(void)
{
	struct world w;
	uint32_t most;

	begin(&w, 2);
	turn(&w);
	for (int i = 0; i < 200; i++) {
		char name[16];
		struct fpod *p;

		snprintf(name, sizeof name, "m%d", i);
		p = make_pod(&w, name, "default-scheduler", "1", "");
		snprintf(p->node, sizeof p->node, "nowhere-%d", i);
		feed_pod(&w, p, false);
	}
	turn(&w);
	most = w.core->cluster->nodes.n;
	for (int i = 0; i < 200; i++)
		delete_pod(&w, &w.pod[i]);
	ok(differences(&w) == 0, "the books are right");
	ok(most == 202 && w.core->cluster->nodes.n == 2, "of %u names of nodes %u are left", most,
	   w.core->cluster->nodes.n);
	close_world(&w);
}

/* A pod of the hostile user, in a namespace of its own. */
static void hostile_pod(struct world *w, int i, bool gone, const char *meta, const char *spec)
{
	feed(w, SLU_KIND_POD, gone,
	     "{\"metadata\":{\"name\":\"m%d\",\"namespace\":\"mal\",\"uid\":\"mal-%d\","
	     "\"resourceVersion\":\"%" PRIu64
	     "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"%s},"
	     "\"spec\":{\"schedulerName\":\"sluice\"%s,\"containers\":[{\"name\":\"c\"}]},"
	     "\"status\":{\"phase\":\"Pending\"}}",
	     i, i, ++w->rv, meta, spec);
}

/* The longest turn while `act` does its part of the harm a hundred times, 10 ms apart. */
static void harassed(struct world *w, void (*act)(struct world *w, int i), const char *what)
{
	int64_t worst = 0, all = 0;

	for (int i = 0; i < 100; i++) {
		int64_t from = cpu_us(), took;

		act(w, i);
		turn(w);
		w->now_us += 10000;
		took = cpu_us() - from;
		worst = SLU_MAX(worst, took);
		all += took;
	}
	ok(worst < 500000, "%s: no turn takes long (%d ms, %d in all)", what, (int)(worst / 1000),
	   (int)(all / 1000));
	gang_starts(w, what);
}

/* Groups that wait for others of sixteen kinds each: for labels that all have, for Jobs that are not
 * there, for each other in circles. */
static void after_pod(struct world *w, int i)
{
	char meta[2000];
	int n = snprintf(meta, sizeof meta,
			 ",\"labels\":{\"app\":\"x\",\"n\":\"%d\"},\"annotations\":{"
			 "\"sluice.sh/after\":\"app=x",
			 i % 7);

	for (int k = 0; k < 15; k++)
		n += snprintf(meta + n, sizeof meta - (size_t)n, k % 3 ? ",job/no-%d" : ",m%d",
			      i * 31 + k);
	snprintf(meta + n, sizeof meta - (size_t)n, "\"}");
	hostile_pod(w, i, false, meta, "");
}

static void unmet_pod(struct world *w, int i)
{
	char meta[2000];
	int n = snprintf(meta, sizeof meta,
			 ",\"labels\":{\"app\":\"x\"},\"annotations\":{\"sluice.sh/after\":\"");

	for (int k = 0; k < 15; k++)
		n += snprintf(meta + n, sizeof meta - (size_t)n, "l%d-%d=y,", i, k);
	snprintf(meta + n, sizeof meta - (size_t)n, "job/no-%d\"}", i);
	hostile_pod(w, i, false, meta, "");
}

static void come_and_go(struct world *w, int i)
{
	hostile_pod(w, 100000 + i, false, "", "");
	hostile_pod(w, 100000 + i - 1, true, "", "");
}

static void after_everything(void (*make)(struct world *w, int i), const char *what)
{
	struct world w;
	int64_t from, took;

	begin(&w, 3);
	for (int i = 0; i < 3000; i++) {
		hostile_pod(&w, 10000 + i, false, ",\"labels\":{\"app\":\"x\"}",
			    ",\"nodeSelector\":{\"no\":\"such\"}");
		make(&w, i);
	}
	from = cpu_us();
	turn(&w);
	took = cpu_us() - from;
	ok(took < 1000000, "%s are taken in (%d ms)", what, (int)(took / 1000));
	harassed(&w, come_and_go, what);
	/* One of another namespace is looked at as if there were no others. */
	add_pod(&w, "first", "sluice", "1", "");
	add_pod(&w, "then", "sluice", "1", "\"annotations\":{\"sluice.sh/after\":\"pod/first\"}");
	turn(&w);
	ok(bound(&w, "first") == 1 && bound(&w, "then") == 0, "a group after another waits");
	end_pod(&w, &w.pod[2], "Succeeded");
	turn(&w);
	ok(slu_core_wake_us(w.core) <= w.now_us, "the end of a group is a reason to look at once");
	turn(&w);
	ok(bound(&w, "then") == 1, "the group starts when the other has ended");
	close_world(&w);
}

/* A thousand Jobs of one named group, some of which have pods: nothing is asked of each Job about the
 * pods of all. */
static void one_of_many_jobs(struct world *w, int i)
{
	char name[16];

	snprintf(name, sizeof name, "j%d", i * 7 % OBJECTS);
	feed_job_as(w, name, 40, true, "yes", ",\"sluice.sh/group\":\"one\"", "", "", "");
}

/* Processor time for a thousand objects; sanitizers take several times as long. */
#ifdef __SANITIZE_ADDRESS__
#define MOMENT_US 10000000
#else
#define MOMENT_US 2000000
#endif

static void many_jobs_of_one_group(void)
{
	struct world w;
	int64_t from, took;

	begin(&w, 2);
	turn(&w);
	from = cpu_us();
	for (int i = 0; i < OBJECTS; i++)
		one_of_many_jobs(&w, i);
	turn(&w);
	later(&w, 2);
	took = cpu_us() - from;
	ok(took < MOMENT_US, "1000 Jobs of one group are taken in (%d ms, %d stand-ins)",
	   (int)(took / 1000), (int)w.core->holds->n_stands);
	harassed(&w, one_of_many_jobs, "1000 Jobs of one group that change");
	from = cpu_us();
	for (int i = 0; i < OBJECTS; i++)
		feed(&w, SLU_KIND_JOB, true,
		     "{\"metadata\":{\"name\":\"j%d\",\"namespace\":\"ns\",\"uid\":\"job-j%d\","
		     "\"generation\":1,\"resourceVersion\":\"%" PRIu64
		     "\"},\"spec\":{\"template\":{\"spec\":"
		     "{\"containers\":[{\"name\":\"c\"}]}}}}",
		     i, i, ++w.rv);
	turn(&w);
	took = cpu_us() - from;
	ok(!w.core->holds->n_stands && took < MOMENT_US, "1000 Jobs of one group go (%d ms)",
	   (int)(took / 1000));
	close_world(&w);
}

/* The Jobs fit: all are released at once, and none of them causes a look at the members of the
 * others. */
static void many_jobs_that_fit(void)
{
	struct world w;
	char name[16], more[100];
	int64_t from, took;

	memset(&seen, 0, sizeof seen);
	seen.outcome = SLU_KUBE_OK;
	open_world(&w, 500, 250, "");
	w.patched = server;
	turn(&w);
	for (int i = 0; i < OBJECTS; i++) {
		snprintf(name, sizeof name, "j%d", i);
		snprintf(more, sizeof more,
			 ",\"sluice.sh/group\":\"one\",\"sluice.sh/size\":\"%d\"", OBJECTS * 40);
		feed_job(&w, name, 40, true, "yes", more);
	}
	from = cpu_us();
	turn(&w);
	later(&w, 2);
	later(&w, 2);
	took = cpu_us() - from;
	ok(seen.jobs == OBJECTS && took < MOMENT_US * 3 / 4,
	   "1000 Jobs of one group of 40 000 pods are let go (%d, %d ms)", seen.jobs,
	   (int)(took / 1000));
	gang_starts(&w, "1000 Jobs of one group that run");
	close_world(&w);
}

/* A change of a claim concerns all groups of its namespace: many changes at once do not go over them again
 * and again. */
static void many_claims(void)
{
	struct world w;
	int64_t from, took;

	begin(&w, 3);
	for (int i = 0; i < 10000; i++)
		hostile_pod(&w, i, false, "", ",\"nodeSelector\":{\"no\":\"such\"}");
	turn(&w);
	from = cpu_us();
	for (int i = 0; i < 2000; i++)
		feed(&w, SLU_KIND_PVC, false,
		     "{\"metadata\":{\"name\":\"c%d\",\"namespace\":\"mal\",\"uid\":\"c-%d\","
		     "\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{\"accessModes\":[]}}",
		     i, i, ++w.rv);
	turn(&w);
	took = cpu_us() - from;
	ok(took < MOMENT_US / 2, "2000 claims beside 10 000 groups are taken in (%d ms)",
	   (int)(took / 1000));
	gang_starts(&w, "2000 claims beside 10 000 groups");
	close_world(&w);
}

/* Tens of thousands of groups come and go: what became of somebody else's group is known all the same. */
static void many_that_end(void)
{
	struct world w;
	int64_t from, took;

	begin(&w, 3);
	add_pod(&w, "first", "sluice", "1", "");
	turn(&w);
	end_pod(&w, &w.pod[0], "Succeeded");
	turn(&w);
	delete_pod(&w, &w.pod[0]);
	turn(&w);
	from = cpu_us();
	for (int i = 0; i < 70000; i++) {
		hostile_pod(&w, i, false, "", ",\"nodeSelector\":{\"no\":\"such\"}");
		hostile_pod(&w, i, true, "", "");
		if (i % 500 == 0)
			turn(&w);
	}
	turn(&w);
	took = cpu_us() - from;
	add_pod(&w, "then", "sluice", "1", "\"annotations\":{\"sluice.sh/after\":\"ok:first\"}");
	turn(&w);
	later(&w, 2);
	ok(bound(&w, "then") == 1 && took < 5 * MOMENT_US,
	   "70 000 groups that ended leave the outcome of another namespace's group known (%d ms)",
	   (int)(took / 1000));
	close_world(&w);
}

/* A hundred thousand pods of a petabyte. */
static void petabytes(void)
{
	struct world w;

	begin(&w, 2);
	feed_job_as(&w, "h", 99999, true, "yes", "", "",
		    "\"initContainers\":[{\"name\":\"i\",\"resources\":{\"requests\":{"
		    "\"memory\":\"1Pi\"}}}],",
		    "");
	turn(&w);
	later(&w, 30);
	gang_starts(&w, "99 999 pods of a petabyte");
	close_world(&w);
}

/* Pods of a petabyte that name their node themselves, as everybody's pods may. */
static void petabytes_on_a_node(void)
{
	struct world w;
	slu_node v;
	int memory;
	const struct slu_machine *m;
	const int n = 10000;
	int64_t from, took;

	begin(&w, 3);
	turn(&w);
	for (int i = 0; i < n; i++)
		hostile_pod(
			&w, i, false, "",
			",\"nodeName\":\"n0\",\"initContainers\":[{\"name\":\"i\",\"resources\":{"
			"\"requests\":{\"memory\":\"1Pi\"}}}]");
	turn(&w);
	m = slu_queue_machine(w.core->q);
	v = slu_machine_node_find(m, "n0");
	memory = slu_machine_resource_find(m, "memory");
	ok(memory >= 0 && slu_machine_node_free(m, v, (uint32_t)memory) ==
				  (INT64_C(16) << 30) - n * CORE_AMOUNT_MAX,
	   "10 000 pods of a petabyte on one node: its books are below nothing");
	from = cpu_us();
	ok(differences(&w) == 0, "the books of a node below nothing are right");
	took = cpu_us() - from;
	ok(took < 1000000, "comparing them with the pods takes a moment (%d ms)",
	   (int)(took / 1000));
	gang_starts(&w, "10 000 pods of a petabyte on a node");
	for (int i = 0; i < n; i++)
		hostile_pod(&w, i, true, "", "");
	turn(&w);
	m = slu_queue_machine(w.core->q);
	ok(slu_machine_node_free(m, v, (uint32_t)memory) == INT64_C(16) << 30 &&
		   differences(&w) == 0,
	   "when the hostile pods are gone the node is free");
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	petabytes();
	petabytes_on_a_node();
	many_jobs_of_one_group();
	many_jobs_that_fit();
	many_claims();
	many_that_end();
	after_everything(after_pod, "3000 pods after labels that all have");
	after_everything(unmet_pod, "3000 pods after what is not there");
	flood(2, 0, false, "no objects");
	flood(2, 2000000, false, "1000 Jobs of 2 000 000 pods");
	flood(2, 99999, false, "1000 Jobs of 99 999 pods");
	flood(2, 400, false, "1000 Jobs of 400 pods");
	flood(2, 0, true, "1000 FluxJobs of 10 000 slots");
	flood(100, 99999, true, "1000 Jobs and 1000 FluxJobs");
	flood_that_fits();
	churn();
	made_up_nodes();
	return tap_done();
}
