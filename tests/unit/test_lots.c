/* Members that are alike and wait are counted, not copied (run/lots.c): what a Job or FluxJob of any size
 * costs until it has places, and that each of its members is found again once it has one. */
#include <limits.h>

#include "held_kit.h"
#include "control/fluxjob/fluxjob.h"

#define MANY (LONG_MAX / 2)

static long allocated(void)
{
	long n = MANY - slu_fault_left();

	slu_fault_disarm();
	return n;
}

static struct group *only_group(struct world *w)
{
	return group_of(slu_table_next(&w->core->groups->table, NULL));
}

static void flux(struct world *w, const char *name, const char *count, bool gone)
{
	feed(w, SLU_KIND_FLUXJOB, gone,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"flux-%s\",\"generation\":1,"
	     "\"resourceVersion\":\"%" PRIu64
	     "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"jobspec\":\"version: 1\\n"
	     "resources: [{type: slot, count: %s, label: s, with: [{type: core, count: 2}]}]\\n"
	     "tasks: [{command: [x], slot: s, count: {per_slot: 1}}]\\n"
	     "attributes: {system: {duration: 600}}\\n\"}}",
	     name, name, ++w->rv, count);
}

static void gone_job(struct world *w, const char *name)
{
	feed(w, SLU_KIND_JOB, true,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"job-%s\",\"generation\":1,"
	     "\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"template\":{\"spec\":{\"containers\":"
	     "[{\"name\":\"c\"}]}}}}",
	     name, name, ++w->rv);
}

/* Allocations while an object of that size comes, changes and goes, on nodes without room for it. */
struct cost {
	long comes, changes, goes;
	uint32_t records, members;
};

static struct cost cost_of(bool job, int pods)
{
	struct world w;
	struct cost c;
	char count[16];

	snprintf(count, sizeof count, "%d", pods);
	begin(&w, 1);
	add_pod(&w, "full", "sluice", "4", "");
	turn(&w);
	slu_fault_arm_once(MANY);
	if (job)
		feed_job(&w, "j", pods, true, "yes", "");
	else
		flux(&w, "f", count, false);
	turn(&w);
	later(&w, 2);
	c.comes = allocated();
	for (struct slu_entry *e = slu_table_next(&w.core->groups->table, NULL); e;
	     e = slu_table_next(&w.core->groups->table, e))
		if (core_members(group_of(e)) == (uint32_t)pods && strstr(group_of(e)->key, "-")) {
			c.records = group_of(e)->pod.n;
			c.members = core_members(group_of(e));
		}
	slu_fault_arm_once(MANY);
	for (int i = 0; i < 10; i++) {
		if (job)
			feed_job(&w, "j", pods, true, "yes", i % 2 ? ",\"x\":\"y\"" : "");
		turn(&w);
		w.now_us += 20000000;
	}
	c.changes = allocated();
	slu_fault_arm_once(MANY);
	if (job)
		gone_job(&w, "j");
	else
		flux(&w, "f", count, true);
	turn(&w);
	c.goes = allocated();
	ok(w.core->groups->table.n == 1 && !w.core->holds->n_stands && !w.core->fluxjobs->n_slots &&
		   w.core->cluster->pods.n == 1,
	   "a lot that is deleted leaves no group, stand-in, slot or pod");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
	return c;
}

static void test_cost(bool job, int many)
{
	struct cost few = cost_of(job, 3), lot = cost_of(job, many);
	const char *what = job ? "Job" : "FluxJob";

	ok(lot.records == 1 && lot.members == (uint32_t)many,
	   "a %s of %u members that wait has %u record", what, lot.members, lot.records);
	ok(lot.comes <= few.comes + 20, "a %s of %d comes with %ld allocations, one of 3 with %ld",
	   what, many, lot.comes, few.comes);
	ok(lot.changes <= few.changes + 20,
	   "a %s of %d changes ten times with %ld allocations, one of 3 with %ld", what, many,
	   lot.changes, few.changes);
	ok(lot.goes <= few.goes + 20, "a %s of %d goes with %ld allocations, one of 3 with %ld",
	   what, many, lot.goes, few.goes);
}

/* A gang that starts with what fits takes only those out of the lot. */
static void test_part_of_a_lot(void)
{
	struct world w;
	struct group *g;

	begin(&w, 2);
	feed_job(&w, "e", 5000, true, "yes",
		 ",\"sluice.sh/min-size\":\"2\",\"sluice.sh/max-size\":\"5000\"");
	turn(&w);
	g = only_group(&w);
	ok(seen.jobs == 1 && strstr(seen.job, "n0*2,n1*2"),
	   "an elastic Job of 5000 is let go with the places that are there: %.300s", seen.job);
	ok(g && g->run.n == 1 && g->run.p[0]->slot.n == 4 && !g->others && !g->pod.n,
	   "its other stand-ins go with the first ones (%u, %u)", g ? g->pod.n : 0,
	   g ? g->others : 0);
	ok(!w.core->holds->n_stands, "no stand-in is counted after the Job was resumed");
	close_world(&w);

	begin(&w, 2);
	flux(&w, "f", "{min: 2, max: 900, operator: '+', operand: 1}", false);
	turn(&w);
	g = only_group(&w);
	ok(g && g->run.n == 1 && g->run.p[0]->slot.n == 4 && core_members(g) == 900 &&
		   g->pod.n <= 8,
	   "an elastic FluxJob of %u runs with 4 slots and has %u records", g ? core_members(g) : 0,
	   g ? g->pod.n : 0);
	feed_node(&w, "n2", 4, "", "", "True");
	turn(&w);
	later(&w, 2);
	ok(g->run.p[0]->slot.n == 6 && core_members(g) == 900 && g->pod.n <= 8,
	   "it grows by the room of a new node (%u), one record each (%u)", g->run.p[0]->slot.n,
	   g->pod.n);
	ok(differences(&w) == 0, "the books are right");
	flux(&w, "f", "{min: 2, max: 900, operator: '+', operand: 1}", true);
	turn(&w);
	ok(!w.core->groups->table.n && !w.core->cluster->pods.n,
	   "a deleted FluxJob takes all its slots with it");
	close_world(&w);
}

/* All members of a lot get places: each then has a record of its own, and they return to the
 * queue one by one if their node goes. */
static void test_whole_lot(void)
{
	struct world w;
	struct group *g;

	begin(&w, 3);
	flux(&w, "f", "5", false);
	turn(&w);
	g = only_group(&w);
	ok(g && g->pod.n == 5 && !g->others && g->run.n == 1 && g->run.p[0]->slot.n == 5,
	   "five slots with places are five records");
	ok(slu_table_finds(&w.core->cluster->pods, "flux-f#0") &&
		   slu_table_finds(&w.core->cluster->pods, "flux-f#4") &&
		   !slu_table_finds(&w.core->cluster->pods, "flux-f#5"),
	   "they are numbered from 0 to 4");
	ok(w.core->cluster->pods.n == 5 && differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* The gang of a named group runs, and a Job of thousands joins the group: they follow one by one, and the
 * queue holds a few at a time. */
static void test_followers(void)
{
	struct world w;
	struct group *g;
	uint32_t queued = 0;

	begin(&w, 1);
	add_pod(&w, "a-0", "sluice", "4", GROUP("one", "1"));
	turn(&w);
	ok(bound(&w, "a-") == 1, "the gang runs");
	feed_job(
		&w, "late", 3000, true, "yes",
		",\"sluice.sh/group\":\"one\",\"sluice.sh/size\":\"1\",\"sluice.sh/max-size\":\"1\"");
	turn(&w);
	later(&w, 3);
	g = only_group(&w);
	for (uint32_t i = 0; g && i < g->run.n; i++)
		queued += g->run.p[i]->state == RUN_QUEUED;
	ok(w.core->groups->table.n == 1 && core_members(g) == 3001 && g->pod.n <= 66 &&
		   queued <= 64,
	   "3000 later members are %u records, and %u of them wait in the queue", g ? g->pod.n : 0,
	   queued);
	gone_job(&w, "late");
	turn(&w);
	ok(core_members(g) == 1 && g->pod.n == 1, "the members of a deleted Job leave the group");
	close_world(&w);
}

/* Pods that share a claim for one pod only: no member waits for the rest of the lot. */
static void test_claim(void)
{
	struct world w;
	struct slu_snap_job j;

	begin(&w, 2);
	feed(&w, SLU_KIND_PVC, false,
	     "{\"metadata\":{\"name\":\"once\",\"namespace\":\"ns\",\"uid\":\"claim-once\","
	     "\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"volumeName\":\"pv-once\"},"
	     "\"status\":{\"phase\":\"Bound\"}}",
	     ++w.rv);
	feed(&w, SLU_KIND_PV, false,
	     "{\"metadata\":{\"name\":\"pv-once\",\"uid\":\"pv-once\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{},\"status\":{\"phase\":\"Bound\"}}",
	     ++w.rv);
	feed_job_as(
		&w, "c", 2000, true, "yes", "", "",
		"\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"once\"}}],",
		"");
	turn(&w);
	later(&w, 2);
	j = pictured(&w, "c");
	ok(only_group(&w)->pod.n <= 2 && strstr(j.reason, "ReadWriteOncePod"),
	   "2000 pods that share a claim for one are told so, in %u records: %s",
	   only_group(&w)->pod.n, j.reason);
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_cost(true, 40000);
	test_cost(false, 10000);
	test_part_of_a_lot();
	test_whole_lot();
	test_followers();
	test_claim();
	return tap_done();
}
