/* What pods can say about the inside of a node and who may share it: required anti-affinity by host. */
#include "core_kit.h"

#define TERM(app, key) \
	"{\"labelSelector\":{\"matchLabels\":{\"app\":\"" app "\"}},\"topologyKey\":\"" key "\"}"
#define BY_HOST(app) TERM(app, "kubernetes.io/hostname")
#define ANTI(terms)                           \
	"\"affinity\":{\"podAntiAffinity\":{" \
	"\"requiredDuringSchedulingIgnoredDuringExecution\":[" terms "]}},"
#define MEMBER(group, size, app)                                                   \
	"\"labels\":{\"sluice.sh/group\":\"" group "\",\"sluice.sh/size\":\"" size \
	"\",\"app\":\"" app "\"}"

static struct fpod *pod(struct world *w, const char *name, const char *scheduler, const char *meta,
			const char *more)
{
	struct fpod *p = make_pod(w, name, scheduler, "1", meta);

	snprintf(p->spec, sizeof p->spec,
		 "\"schedulerName\":\"%s\",%s\"containers\":[{\"name\":\"c\",\"resources\":{"
		 "\"requests\":{\"cpu\":\"1\"}}}]",
		 scheduler, more);
	feed_pod(w, p, false);
	return p;
}

static void pods(struct world *w, const char *prefix, int n, const char *meta, const char *more)
{
	for (int i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof name, "%s-%d", prefix, i);
		pod(w, name, "sluice", meta, more);
	}
}

static struct fpod *running(struct world *w, const char *node, const char *meta, const char *more)
{
	struct fpod *p = make_pod(w, "other", "default-scheduler", "1", meta);

	snprintf(p->spec, sizeof p->spec,
		 "\"schedulerName\":\"default-scheduler\",%s\"containers\":[{\"name\":\"c\"}]",
		 more);
	snprintf(p->node, sizeof p->node, "%s", node);
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(w, p, false);
	return p;
}

/* Nodes that hold a running pod of the prefix. */
static int nodes_of(const struct world *w, const char *prefix)
{
	int n = 0;

	for (int v = 0; v < 16; v++) {
		char name[16];
		bool here = false;

		snprintf(name, sizeof name, "n%d", v);
		for (int i = 0; i < w->n_pods; i++)
			here |= w->pod[i].there && !strcmp(w->pod[i].node, name) &&
				!strncmp(w->pod[i].name, prefix, strlen(prefix));
		n += here;
	}
	return n;
}

static const char *node_of(const struct world *w, const char *name)
{
	for (int i = 0; i < w->n_pods; i++)
		if (w->pod[i].there && !strcmp(w->pod[i].name, name))
			return w->pod[i].node;
	return "";
}

static void end_all(struct world *w, const char *prefix)
{
	for (int i = 0; i < w->n_pods; i++)
		if (w->pod[i].there && !strncmp(w->pod[i].name, prefix, strlen(prefix)))
			end_pod(w, &w->pod[i], "Succeeded");
}

static void test_one_per_host(void)
{
	struct slu_snap_job j;
	struct world w;

	open_world(&w, 4, 8, "");
	pods(&w, "a", 4, MEMBER("a", "4", "a"), ANTI(BY_HOST("a")));
	pods(&w, "b", 5, MEMBER("b", "5", "b"), ANTI(BY_HOST("b")));
	pods(&w, "c", 4, MEMBER("c", "4", "c"), "");
	turn(&w);
	ok(bound(&w, "a") == 4 && nodes_of(&w, "a") == 4,
	   "a gang with anti-affinity to itself has one member on each host (%d on %d)",
	   bound(&w, "a"), nodes_of(&w, "a"));
	j = pictured(&w, "b");
	ok(bound(&w, "b") == 0 && !strcmp(j.state, "never") && strstr(j.reason, "one per node"),
	   "a gang with more members than hosts is told so at once (%s: %s)", j.state, j.reason);
	ok(bound(&w, "c") == 4 && nodes_of(&w, "c") < 4,
	   "members without anti-affinity share nodes (%d)", nodes_of(&w, "c"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* The launcher may not be where workers are; the workers came first. */
static void test_between_roles(void)
{
	struct world w;

	open_world(&w, 1, 8, "");
	pods(&w, "w", 2, MEMBER("g", "3", "worker"), "");
	turn(&w);
	pods(&w, "l", 1, MEMBER("g", "3", "launcher"), ANTI(BY_HOST("worker")));
	turn(&w);
	ok(bound(&w, "w") == 0 && bound(&w, "l") == 0,
	   "roles that may not meet do not start on a single node (%d)", bound(&w, "w"));
	feed_node(&w, "n1", 8, "\"kubernetes.io/hostname\":\"n1\"", "", "True");
	turn(&w);
	ok(bound(&w, "w") == 2 && bound(&w, "l") == 1 && nodes_of(&w, "w") == 1 &&
		   strcmp(node_of(&w, "l-0"), node_of(&w, "w-0")) != 0,
	   "with a second node the launcher has one, the workers share the other (%s, %s)",
	   node_of(&w, "l-0"), node_of(&w, "w-0"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_against_running(void)
{
	struct slu_snap_job j;
	struct fpod *x, *y;
	struct world w;

	open_world(&w, 2, 8, "");
	x = running(&w, "n0", "\"labels\":{\"app\":\"db\"}", "");
	y = running(&w, "n1", "\"labels\":{\"app\":\"web\"}", "");
	pods(&w, "a", 2, MEMBER("a", "2", "a"), ANTI(BY_HOST("db")));
	turn(&w);
	ok(bound(&w, "a") == 2 && nodes_of(&w, "a") == 1 && !strcmp(node_of(&w, "a-0"), "n1"),
	   "pods are not put on a host with a pod that their anti-affinity selects (%s)",
	   node_of(&w, "a-0"));
	pods(&w, "b", 2, MEMBER("b", "2", "b"), ANTI(BY_HOST("web") "," BY_HOST("b")));
	turn(&w);
	j = pictured(&w, "b");
	ok(bound(&w, "b") == 0 && strstr(j.reason, "anti-affinity to a pod there on 1"),
	   "a gang that lacks a host for a member says so (%s)", j.reason);
	delete_pod(&w, y);
	turn(&w);
	ok(bound(&w, "b") == 2, "a gang starts when the pod in its way has gone");
	delete_pod(&w, x);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* Two gangs that may not share hosts, decided in one cycle; then one after the other. */
static void test_two_gangs(void)
{
	struct world w;

	open_world(&w, 2, 8, "");
	pods(&w, "a", 2, MEMBER("a", "2", "solver"), ANTI(BY_HOST("solver")));
	pods(&w, "b", 2, MEMBER("b", "2", "solver"), ANTI(BY_HOST("solver")));
	turn(&w);
	turn(&w);
	ok(bound(&w, "a") == 2 && bound(&w, "b") == 0,
	   "of two gangs that may not meet one starts (%d, %d)", bound(&w, "a"), bound(&w, "b"));
	end_all(&w, "a");
	turn(&w);
	ok(bound(&w, "b") == 2 && nodes_of(&w, "b") == 2,
	   "the other one starts as soon as the hosts are free (%d)", bound(&w, "b"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* A new member takes the place of one that ended, on the same host. */
static void test_replaced(void)
{
	struct world w;

	open_world(&w, 2, 8, "");
	feed(&w, SLU_KIND_STATEFULSET, false,
	     "{\"metadata\":{\"name\":\"s\",\"namespace\":\"ns\",\"uid\":\"u1\",\"generation\":1,"
	     "\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{\"replicas\":2,\"template\":{}}}",
	     ++w.rv);
	pods(&w, "s", 2, "\"labels\":{\"app\":\"s\"}," OWNED("StatefulSet", "u1", "s"),
	     ANTI(BY_HOST("s")));
	turn(&w);
	ok(bound(&w, "s") == 2 && nodes_of(&w, "s") == 2, "a set with anti-affinity is spread");
	delete_pod(&w, &w.pod[0]);
	turn(&w);
	pod(&w, "s-0", "sluice", "\"labels\":{\"app\":\"s\"}," OWNED("StatefulSet", "u1", "s"),
	    ANTI(BY_HOST("s")));
	turn(&w);
	ok(bound(&w, "s") == 2 && nodes_of(&w, "s") == 2,
	   "a member made again has the host of the one before (%d on %d)", bound(&w, "s"),
	   nodes_of(&w, "s"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_by_rack(void)
{
	struct slu_snap_job j;
	struct world w;

	open_world(&w, 4, 8, "");
	pods(&w, "a", 2, MEMBER("a", "2", "a"), ANTI(TERM("a", "topology.sluice.sh/rack")));
	turn(&w);
	j = pictured(&w, "a");
	ok(bound(&w, "a") == 0 && strstr(j.reason, "anti-affinity by more than a host"),
	   "anti-affinity by rack is left to the default scheduler (%s)", j.reason);
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR + 1, SLU_LOG_TEXT, 2);
	test_one_per_host();
	test_between_roles();
	test_against_running();
	test_two_gangs();
	test_replaced();
	test_by_rack();
	return tap_done();
}
