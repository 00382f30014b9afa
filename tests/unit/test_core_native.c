/* Native PodGroups (scheduling.k8s.io): when they start, what their conditions say. */
#include "core_kit.h"

#define RACK "topology.sluice.sh/rack"

static enum slu_kkind kind = SLU_KIND_PODGROUP; /* the version the server has */

static void podgroup(struct world *w, const char *spec, const char *conditions)
{
	feed(w, kind, false,
	     "{\"metadata\":{\"name\":\"pg\",\"namespace\":\"ns\",\"uid\":\"pg-1\",\"generation\":1,"
	     "\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{%s},\"status\":{\"conditions\":[%s]}}",
	     ++w->rv, spec, conditions);
}

static void members(struct world *w, int from, int to, const char *cpu, const char *meta)
{
	for (int i = from; i < to; i++) {
		char name[16];
		struct fpod *p;

		snprintf(name, sizeof name, "p-%d", i);
		p = make_pod(w, name, "sluice", cpu, meta);
		strcat(p->spec, ",\"schedulingGroup\":{\"podGroupName\":\"pg\"}");
		feed_pod(w, p, false);
	}
}

static void test_gang(const char *type)
{
	char want[200], done[200];
	struct world w;

	open_world(&w, 4, 2, "");
	members(&w, 0, 2, "1", "");
	turn(&w);
	later(&w, 6);
	ok(w.binds == 0 && strstr(w.last_annotation, "PodGroup pg does not exist"),
	   "without its PodGroup no member starts, and the reason says so: %s", w.last_annotation);
	podgroup(&w, "\"schedulingPolicy\":{\"gang\":{\"minCount\":3}}", "");
	turn(&w);
	later(&w, 6);
	later(&w, 1);
	ok(w.binds == 0, "two of minCount 3 wait");
	snprintf(want, sizeof want,
		 "\"type\":\"%s\",\"status\":\"False\",\"reason\":\"Unschedulable\","
		 "\"message\":\"group pg has 2 of 3",
		 type);
	ok(strstr(w.last_status, want), "the condition says why: %s", w.last_status);
	members(&w, 2, 3, "1", "");
	turn(&w);
	later(&w, 2);
	ok(bound(&w, "p-") == 3, "the third arrives: all start");
	ok(strstr(w.last_status, "\"status\":\"True\",\"reason\":\"Scheduled\""),
	   "the condition of a started PodGroup says so: %s", w.last_status);
	snprintf(done, sizeof done,
		 "{\"type\":\"%s\",\"status\":\"True\",\"reason\":\"Scheduled\"}", type);
	podgroup(&w, "\"schedulingPolicy\":{\"gang\":{\"minCount\":3}}", done);
	w.statuses = 0;
	members(&w, 3, 9, "2", ""); /* more than fit */
	turn(&w);
	later(&w, 60);
	ok(w.statuses == 0, "members that wait later do not take it back");
	close_world(&w);
}

static void test_basic(void)
{
	struct world w;

	open_world(&w, 2, 1, "");
	podgroup(&w, "\"schedulingPolicy\":{\"basic\":{}}", "");
	job(&w, "j1", "j", "\"parallelism\":4,\"completions\":4", "");
	members(&w, 0, 4, "1", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(bound(&w, "p-") == 2, "the basic policy starts what fits, whatever the owner's size");
	close_world(&w);
}

static void test_topology(void)
{
	struct world w;

	open_world(&w, 6, 1, "");
	podgroup(&w,
		 "\"schedulingPolicy\":{\"gang\":{\"minCount\":1}},"
		 "\"schedulingConstraints\":{\"topology\":[{\"key\":\"" RACK "\"}]}",
		 "");
	members(&w, 0, 1, "1", "");
	turn(&w);
	ok(bound(&w, "p-") == 1, "the first member starts");
	members(&w, 1, 4, "1", "");
	turn(&w);
	ok(bound(&w, "p-") == 2, "of three that follow, one finds room in the gang's rack (%d)",
	   bound(&w, "p-"));
	ok(w.pod[0].node[1] / 2 == w.pod[1].node[1] / 2,
	   "a follower stays in the rack of its gang: %s %s", w.pod[0].node, w.pod[1].node);
	feed_node(&w, "n9", 1, "\"" RACK "\":\"r0\"", "", "True");
	feed_node(&w, "n8", 1, "\"" RACK "\":\"r1\"", "", "True");
	turn(&w);
	ok(bound(&w, "p-") == 3, "a node joins that rack: the next one starts there (%d)",
	   bound(&w, "p-"));
	close_world(&w);
	open_world(&w, 2, 1, "");
	podgroup(&w,
		 "\"schedulingPolicy\":{\"gang\":{\"minCount\":1}},"
		 "\"schedulingConstraints\":{\"topology\":[{\"key\":\"example.com/row\"}]}",
		 "");
	members(&w, 0, 1, "1", "");
	turn(&w);
	later(&w, 2);
	ok(w.binds == 0 && strstr(w.last_event, "no level of nodes.topology has the label") &&
		   strstr(w.last_status, "SchedulerError"),
	   "a label that is no level is named: %s", w.last_event);
	close_world(&w);
}

static void test_priority(void)
{
	struct world w;

	open_world(&w, 1, 1, "");
	podgroup(&w, "\"schedulingPolicy\":{\"gang\":{\"minCount\":1}},\"priority\":1000", "");
	add_pod(&w, "first", "sluice", "1", "");
	members(&w, 0, 1, "1", "");
	turn(&w);
	ok(bound(&w, "p-") == 1 && bound(&w, "first") == 0,
	   "the PodGroup's priority counts, not the pods'");
	close_world(&w);
}

static void test_disruption(const char *mode, bool whole)
{
	struct world w;
	char spec[200];

	open_world(&w, 4, 1, "");
	snprintf(spec, sizeof spec,
		 "\"schedulingPolicy\":{\"gang\":{\"minCount\":3}},\"disruptionMode\":%s", mode);
	podgroup(&w, spec, "");
	job(&w, "j1", "j", "\"parallelism\":3,\"completions\":3", "");
	members(&w, 0, 3, "1", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(bound(&w, "p-") == 3, "%s: the gang runs", mode);
	later(&w, 2);
	snprintf(w.pod[0].status, sizeof w.pod[0].status,
		 ",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\"}]");
	end_pod(&w, &w.pod[0], "Failed");
	turn(&w);
	later(&w, 2);
	ok(w.evictions == (whole ? 2 : 0), "a member is disrupted: %d others are evicted",
	   w.evictions);
	ok(!strstr(w.last_status, "DisruptionTarget") == !whole,
	   "the condition of the PodGroup is set: %s", w.last_status);
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_gang("PodGroupScheduled");
	test_basic();
	test_topology();
	test_priority();
	test_disruption("\"PodGroup\"", true);
	test_disruption("\"Pod\"", false);
	/* Kubernetes 1.37: another version, another condition, a mode that is a union */
	kind = SLU_KIND_PODGROUP_BETA;
	test_gang("PodGroupInitiallyScheduled");
	test_basic();
	test_topology();
	test_disruption("{\"all\":{}}", true);
	test_disruption("{\"single\":{}}", false);
	return tap_done();
}
