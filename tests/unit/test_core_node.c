/* What pods say about the inside of a node and about sharing it: required anti-affinity by host,
 * volumes, NUMA zones. */
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

/* ---- volumes ---- */

#define CLAIM(name) \
	"\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" name "\"}}],"
#define DRIVER          "disk.example.com"
#define LIMITED(driver) "{\"name\":\"" driver "\",\"nodeID\":\"x\",\"allocatable\":{\"count\":1}}"

static void persistent(struct world *w, const char *name, const char *driver, const char *handle)
{
	feed(w, SLU_KIND_PV, false,
	     "{\"metadata\":{\"name\":\"pv-%s\",\"uid\":\"pv-%s\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"claimRef\":{\"namespace\":\"ns\",\"name\":\"%s\"},\"csi\":{\"driver\":"
	     "\"%s\",\"volumeHandle\":\"%s\"}},\"status\":{\"phase\":\"Bound\"}}",
	     name, name, ++w->rv, name, driver, handle);
}

static void claim(struct world *w, const char *name, const char *mode)
{
	feed(w, SLU_KIND_PVC, false,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"pvc-%s\",\"resourceVersion\":"
	     "\"%" PRIu64 "\"},\"spec\":{\"accessModes\":[\"%s\"],\"volumeName\":\"pv-%s\"},"
	     "\"status\":{\"phase\":\"Bound\"}}",
	     name, name, ++w->rv, mode, name);
}

static void volume(struct world *w, const char *name, const char *handle, const char *mode)
{
	persistent(w, name, DRIVER, handle);
	claim(w, name, mode);
}

/* A negative limit: the driver names none. */
static void drivers(struct world *w, const char *node, int limit)
{
	char room[60] = "";

	if (limit >= 0)
		snprintf(room, sizeof room, ",\"allocatable\":{\"count\":%d}", limit);
	feed(w, SLU_KIND_CSINODE, false,
	     "{\"metadata\":{\"name\":\"%s\",\"uid\":\"csi-%s\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"drivers\":[{\"name\":\"" DRIVER "\",\"nodeID\":\"x\"%s}]}}",
	     node, node, ++w->rv, room);
}

static void attachment(struct world *w, const char *node, const char *volume, bool gone)
{
	feed(w, SLU_KIND_ATTACHMENT, gone,
	     "{\"metadata\":{\"name\":\"va-%s\",\"uid\":\"va-%s\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"attacher\":\"" DRIVER
	     "\",\"nodeName\":\"%s\",\"source\":{\"persistentVolumeName\":\"pv-%s\"}}}",
	     volume, volume, ++w->rv, node, volume);
}

/* Each member has a volume of its own: its claim is called like the pod. */
static void pods_with_volumes(struct world *w, const char *prefix, int n, const char *meta)
{
	for (int i = 0; i < n; i++) {
		char name[32], claim[200];

		snprintf(name, sizeof name, "%s-%d", prefix, i);
		snprintf(
			claim, sizeof claim,
			"\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}],",
			name);
		volume(w, name, name, "ReadWriteOnce");
		pod(w, name, "sluice", meta, claim);
	}
}

static int on_node(const struct world *w, const char *prefix, const char *node)
{
	int n = 0;

	for (int i = 0; i < w->n_pods; i++)
		n += w->pod[i].there && !strcmp(w->pod[i].node, node) &&
		     !strncmp(w->pod[i].name, prefix, strlen(prefix));
	return n;
}

static void test_attach_limit(void)
{
	struct slu_snap_job j;
	struct world w;

	open_world(&w, 2, 8, "");
	drivers(&w, "n0", 2);
	drivers(&w, "n1", 3);
	pods_with_volumes(&w, "a", 5, MEMBER("a", "5", "a"));
	turn(&w);
	ok(bound(&w, "a") == 5 && on_node(&w, "a", "n0") == 2 && on_node(&w, "a", "n1") == 3,
	   "a node takes as many volumes as its CSINode says (%d, %d)", on_node(&w, "a", "n0"),
	   on_node(&w, "a", "n1"));
	pods_with_volumes(&w, "b", 1, MEMBER("b", "1", "b"));
	pods(&w, "c", 2, MEMBER("c", "2", "c"), "");
	turn(&w);
	j = pictured(&w, "b");
	ok(bound(&w, "b") == 0 && strstr(j.reason, "volumes of " DRIVER),
	   "one more volume waits, and says for what (%s)", j.reason);
	ok(bound(&w, "c") == 2, "pods without volumes start beside a node that is full of volumes");
	end_pod(&w, &w.pod[0], "Succeeded");
	turn(&w);
	later(&w, 5);
	ok(bound(&w, "b") == 1, "a pod that ends gives its volume back");
	pods_with_volumes(&w, "d", 6, MEMBER("d", "6", "d"));
	turn(&w);
	j = pictured(&w, "d");
	ok(!strcmp(j.state, "never"), "a gang with more volumes than all nodes take is told (%s)",
	   j.reason);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* The default scheduler counts each volume once, however many pods use it, and those that are
 * still attached. */
static void test_attached_by_others(void)
{
	struct fpod *x, *y;
	struct world w;

	open_world(&w, 1, 8, "");
	drivers(&w, "n0", 3);
	volume(&w, "shared", "s", "ReadWriteMany");
	volume(&w, "left", "l", "ReadWriteOnce");
	x = running(&w, "n0", "", CLAIM("shared"));
	y = running(&w, "n0", "", CLAIM("shared"));
	attachment(&w, "n0", "shared", false);
	attachment(&w, "n0", "left", false);
	pods_with_volumes(&w, "a", 1, MEMBER("a", "1", "a"));
	pods_with_volumes(&w, "b", 1, MEMBER("b", "1", "b"));
	turn(&w);
	ok(bound(&w, "a") == 1 && bound(&w, "b") == 0,
	   "a volume that two pods share counts once, one that is still attached counts (%d, %d)",
	   bound(&w, "a"), bound(&w, "b"));
	attachment(&w, "n0", "left", true);
	turn(&w);
	ok(bound(&w, "b") == 1, "once the volume is detached there is room");
	pods_with_volumes(&w, "c", 1, MEMBER("c", "1", "c"));
	delete_pod(&w, x);
	turn(&w);
	ok(bound(&w, "c") == 0, "one of two pods that share a volume goes: it stays attached");
	delete_pod(&w, y);
	attachment(&w, "n0", "shared", true);
	turn(&w);
	ok(bound(&w, "c") == 1, "the other goes, too: there is room");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* CSINodes come late, or name no limit. */
static void test_limit_later(void)
{
	struct world w;

	open_world(&w, 1, 8, "");
	drivers(&w, "n0", -1);
	pods_with_volumes(&w, "a", 4, MEMBER("a", "4", "a"));
	turn(&w);
	ok(bound(&w, "a") == 4, "without a limit volumes do not count");
	pods_with_volumes(&w, "b", 2, MEMBER("b", "3", "b"));
	turn(&w);
	drivers(&w, "n0", 5);
	volume(&w, "b-2", "b-2", "ReadWriteOnce");
	pod(&w, "b-2", "sluice", MEMBER("b", "3", "b"), CLAIM("b-2"));
	turn(&w);
	ok(bound(&w, "b") == 0, "a limit that comes later counts for those who wait (%d)",
	   bound(&w, "b"));
	drivers(&w, "n0", 7);
	turn(&w);
	ok(bound(&w, "b") == 3, "a higher one lets them in");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_one_pod_only(void)
{
	struct slu_snap_job j;
	struct fpod *x;
	struct world w;

	open_world(&w, 2, 8, "");
	volume(&w, "once", "o", "ReadWriteOncePod");
	volume(&w, "many", "m", "ReadWriteMany");
	x = running(&w, "n0", "", CLAIM("once"));
	pods(&w, "a", 1, MEMBER("a", "1", "a"), CLAIM("once"));
	pods(&w, "b", 2, MEMBER("b", "2", "b"), CLAIM("once"));
	pods(&w, "c", 2, MEMBER("c", "2", "c"), CLAIM("many"));
	turn(&w);
	j = pictured(&w, "a");
	ok(bound(&w, "a") == 0 && strstr(j.reason, "ReadWriteOncePod claim in use"),
	   "a claim for one pod only that is in use keeps a pod waiting (%s)", j.reason);
	j = pictured(&w, "b");
	ok(bound(&w, "b") == 0 && strstr(j.reason, "never run together"),
	   "a gang whose members share such a claim is told that it can never run (%s)", j.reason);
	ok(bound(&w, "c") == 2, "members may share other claims");
	delete_pod(&w, x);
	turn(&w);
	ok(bound(&w, "a") == 1, "the pod that used it has gone: the next one starts");
	/* pods of their own, decided at once */
	pods(&w, "d", 1, MEMBER("d", "1", "d"), CLAIM("once"));
	pods(&w, "e", 1, MEMBER("e", "1", "e"), CLAIM("once"));
	turn(&w);
	ok(bound(&w, "d") + bound(&w, "e") == 0, "both gangs wait while a pod uses the claim");
	end_all(&w, "a");
	turn(&w);
	ok(bound(&w, "d") + bound(&w, "e") == 1, "one of the two starts (%d, %d)", bound(&w, "d"),
	   bound(&w, "e"));
	end_all(&w, "d");
	turn(&w);
	ok(bound(&w, "e") == 1, "the other starts when the first has ended");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* The volume of a bound claim is seen after the pod: nothing else tells that the pod fits now. */
static void test_volume_later(void)
{
	struct world w;

	open_world(&w, 1, 8, "");
	claim(&w, "late", "ReadWriteOnce");
	pods(&w, "a", 1, MEMBER("a", "1", "a"), CLAIM("late"));
	turn(&w);
	ok(bound(&w, "a") == 0, "a pod whose volume is not known waits");
	feed(&w, SLU_KIND_PV, false,
	     "{\"metadata\":{\"name\":\"pv-late\",\"uid\":\"pv-late\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"claimRef\":{\"namespace\":\"ns\",\"name\":\"late\"}}}",
	     ++w.rv);
	turn(&w);
	ok(bound(&w, "a") == 1, "the pod starts when its volume is seen");
	close_world(&w);
}

/* A volume that is seen late, of a driver that others wait for: the pod asks for it then. */
static void test_limited_volume_later(void)
{
	struct world w;

	open_world(&w, 1, 8, "");
	drivers(&w, "n0", 0);
	pods_with_volumes(&w, "b", 1, MEMBER("b", "1", "b"));
	claim(&w, "late", "ReadWriteOnce");
	pods(&w, "a", 1, MEMBER("a", "1", "a"), CLAIM("late"));
	turn(&w);
	persistent(&w, "late", DRIVER, "l");
	turn(&w);
	ok(bound(&w, "a") == 0 && strstr(pictured(&w, "a").reason, "volumes of " DRIVER),
	   "a pod whose volume turns out to be limited waits for that (%s)",
	   pictured(&w, "a").reason);
	close_world(&w);
}

/* A gang waits for cpus when its node says how many volumes it takes. */
static void test_limit_while_waiting(void)
{
	struct slu_snap_job j;
	struct world w;

	open_world(&w, 1, 8, "");
	pods(&w, "x", 7, MEMBER("x", "7", "x"), "");
	turn(&w);
	pods_with_volumes(&w, "a", 3, MEMBER("a", "3", "a"));
	turn(&w);
	ok(bound(&w, "x") == 7 && bound(&w, "a") == 0, "a gang with volumes waits for cpus");
	drivers(&w, "n0", 2);
	turn(&w);
	j = pictured(&w, "a");
	ok(!strcmp(j.state, "never"), "a waiting gang is told of a limit that came (%s: %s)",
	   j.state, j.reason);
	end_all(&w, "x");
	turn(&w);
	ok(bound(&w, "a") == 0, "a gang does not start against a limit that came");
	drivers(&w, "n0", 3);
	turn(&w);
	ok(bound(&w, "a") == 3, "a higher one lets it in");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* Volumes of pods that others placed, without VolumeAttachments. */
static void test_pods_of_others(void)
{
	struct fpod *x;
	struct world w;

	open_world(&w, 1, 8, "");
	drivers(&w, "n0", 1);
	volume(&w, "other", "o", "ReadWriteOnce");
	pods_with_volumes(&w, "a", 1, MEMBER("a", "1", "a"));
	x = running(&w, "n0", "", CLAIM("other"));
	turn(&w);
	ok(bound(&w, "a") == 0, "the volume of a pod that came in between is attached");
	delete_pod(&w, x);
	turn(&w);
	ok(bound(&w, "a") == 1, "once that pod has gone there is room");
	pods_with_volumes(&w, "b", 1, MEMBER("b", "1", "b"));
	turn(&w);
	ok(bound(&w, "b") == 0, "one volume is as many as the node takes");
	drivers(&w, "n0", 2);
	attachment(&w, "n0", "other", false);
	turn(&w);
	ok(bound(&w, "b") == 0, "a volume that is attached takes the room that was added");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* Four drivers are resources of the machine; further ones are looked at node by node. */
static void test_many_drivers(void)
{
	struct fpod *x = NULL;
	struct world w;

	open_world(&w, 1, 32, "");
	feed(&w, SLU_KIND_CSINODE, false,
	     "{\"metadata\":{\"name\":\"n0\",\"uid\":\"csi-n0\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"drivers\":[" LIMITED("d0") "," LIMITED("d1") "," LIMITED(
		     "d2") "," LIMITED("d3") "," LIMITED("d4") "," LIMITED("d5") "]}}",
	     ++w.rv);
	for (int d = 0; d < 6; d++) {
		char name[32], driver[16], more[200], meta[200];

		snprintf(driver, sizeof driver, "d%d", d);
		for (int i = 0; i < 2; i++) {
			snprintf(name, sizeof name, "%s-%d", driver, i);
			persistent(&w, name, driver, name);
			claim(&w, name, "ReadWriteOnce");
			snprintf(meta, sizeof meta,
				 "\"labels\":{\"sluice.sh/group\":\"%s\",\"sluice.sh/size\":\"1\"}",
				 name);
			snprintf(more, sizeof more,
				 "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":"
				 "{\"claimName\":\"%s\"}}],",
				 name);
			pod(&w, name, "sluice", meta, more);
		}
	}
	turn(&w);
	later(&w, 3);
	for (int d = 0; d < 6; d++) {
		char driver[16];

		snprintf(driver, sizeof driver, "d%d", d);
		ok(bound(&w, driver) == 1, "one volume of driver %s is attached (%d)", driver,
		   bound(&w, driver));
	}
	for (int i = 0; i < w.n_pods; i++)
		if (w.pod[i].there && *w.pod[i].node && !strncmp(w.pod[i].name, "d5", 2))
			x = &w.pod[i];
	if (x)
		end_pod(&w, x, "Succeeded");
	turn(&w);
	later(&w, 40);
	ok(x && bound(&w, "d5") == 1, "the pod ends: the next one of the last driver starts");
	close_world(&w);
}

/* More members than the group needs: those that share a claim for one pod follow one by one. */
static void test_one_pod_of_many(void)
{
	struct world w;

	open_world(&w, 2, 8, "");
	volume(&w, "once", "o", "ReadWriteOncePod");
	pods(&w, "a", 3, MEMBER("a", "1", "a"), CLAIM("once"));
	turn(&w);
	later(&w, 3);
	ok(bound(&w, "a") == 1, "one of three members that share a claim runs (%d)",
	   bound(&w, "a"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* ---- NUMA zones ---- */

/* Two zones with this many cpus each. */
static void zones(struct world *w, const char *node, int a, int b, const char *policy)
{
	feed(w, SLU_KIND_TOPOLOGY, false,
	     "{\"metadata\":{\"name\":\"%s\",\"uid\":\"zones-%s\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"attributes\":[{\"name\":\"topologyManagerPolicy\",\"value\":\"%s\"},"
	     "{\"name\":\"topologyManagerScope\",\"value\":\"pod\"}],\"zones\":["
	     "{\"name\":\"node-0\",\"type\":\"Node\",\"resources\":[{\"name\":\"cpu\",\"capacity\":\"%d\","
	     "\"allocatable\":\"%d\",\"available\":\"%d\"}]},"
	     "{\"name\":\"node-1\",\"type\":\"Node\",\"resources\":[{\"name\":\"cpu\",\"capacity\":\"%d\","
	     "\"allocatable\":\"%d\",\"available\":\"%d\"}]}]}",
	     node, node, ++w->rv, policy, a, a, a, b, b, b);
}

/* A pod of QoS class Guaranteed; `node`: it runs there, placed by another scheduler. */
static struct fpod *pinned(struct world *w, const char *name, int cpu, const char *meta,
			   const char *node)
{
	struct fpod *p = make_pod(w, name, *node ? "default-scheduler" : "sluice", "1", meta);

	snprintf(
		p->spec, sizeof p->spec,
		"\"schedulerName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":"
		"{\"cpu\":\"%d\",\"memory\":\"1Gi\"},\"limits\":{\"cpu\":\"%d\",\"memory\":\"1Gi\"}}}]",
		*node ? "default-scheduler" : "sluice", cpu, cpu);
	snprintf(p->status, sizeof p->status, ",\"qosClass\":\"Guaranteed\"");
	snprintf(p->node, sizeof p->node, "%s", node);
	if (*node)
		snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(w, p, false);
	return p;
}

static void test_zones(void)
{
	struct slu_snap_job j;
	struct world w;

	open_world(&w, 2, 32, "");
	zones(&w, "n0", 16, 16, "single-numa-node");
	zones(&w, "n1", 16, 16, "single-numa-node");
	for (int i = 0; i < 5; i++) {
		char name[8];

		snprintf(name, sizeof name, "a-%d", i);
		pinned(&w, name, 10, MEMBER("a", "5", "a"), "");
	}
	pinned(&w, "big", 20, MEMBER("big", "1", "big"), "");
	turn(&w);
	j = pictured(&w, "a");
	ok(bound(&w, "a") == 0 && !strcmp(j.state, "never"),
	   "a zone of 16 cpus holds one pod of 10: five do not fit on four zones (%s)", j.reason);
	j = pictured(&w, "big");
	ok(bound(&w, "big") == 0 && strstr(j.reason, "NUMA zones too small on 2"),
	   "a pod larger than every zone can never run (%s)", j.reason);
	delete_pod(&w, &w.pod[0]);
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "b-%d", i);
		pinned(&w, name, 10, MEMBER("b", "4", "b"), "");
	}
	turn(&w);
	ok(bound(&w, "b") == 4 && on_node(&w, "b", "n0") == 2 && on_node(&w, "b", "n1") == 2,
	   "four have a zone each (%d, %d)", on_node(&w, "b", "n0"), on_node(&w, "b", "n1"));
	pods(&w, "c", 10, MEMBER("c", "10", "c"), "");
	turn(&w);
	ok(bound(&w, "c") == 10, "pods that pin no cpus use what is left of the zones (%d)",
	   bound(&w, "c"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* Pods of other schedulers in a zone count; when one ends, the plan counts its room again. */
static void test_zones_of_others(void)
{
	struct fpod *x;
	struct world w;

	open_world(&w, 1, 32, "");
	zones(&w, "n0", 16, 16, "single-numa-node");
	x = pinned(&w, "x", 10, "", "n0");
	pinned(&w, "a", 10, MEMBER("a", "1", "a"), "");
	pinned(&w, "b", 10, MEMBER("b", "1", "b"), "");
	turn(&w);
	ok(bound(&w, "a") == 1 && bound(&w, "b") == 0,
	   "32 cpus in two zones have room for one of 10 beside another (%d, %d)", bound(&w, "a"),
	   bound(&w, "b"));
	ok(strstr(pictured(&w, "b").reason, "NUMA zones"),
	   "the reason of the one that waits names the zones (%s)", pictured(&w, "b").reason);
	delete_pod(&w, x);
	turn(&w);
	ok(bound(&w, "b") == 1, "the zone is free: the next one starts");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* Pods of 5 in two zones of 16: after two have gone each zone has 6 cpus left, and none has room for 8. */
static void leave_gaps(struct world *w, struct fpod *x[6])
{
	for (int i = 0; i < 6; i++) {
		char name[8];

		snprintf(name, sizeof name, "x-%d", i);
		x[i] = pinned(w, name, 5, "", "n0");
	}
	turn(w);
	delete_pod(w, x[0]);
	delete_pod(w, x[3]);
}

static void test_zones_with_gaps(void)
{
	struct fpod *x[6];
	struct world w;

	open_world(&w, 1, 32, "");
	zones(&w, "n0", 16, 16, "single-numa-node");
	leave_gaps(&w, x);
	pinned(&w, "a", 8, MEMBER("a", "1", "a"), "");
	turn(&w);
	later(&w, 3);
	ok(bound(&w, "a") == 0, "a pod is not started where no zone has room, though the node has");
	delete_pod(&w, x[1]);
	turn(&w);
	later(&w, 40);
	ok(bound(&w, "a") == 1, "the pod starts when a zone has room");
	close_world(&w);
}

/* The same, and another node has room in a zone: the pod goes there at once. */
static void test_gaps_and_room_elsewhere(void)
{
	struct fpod *x[6];
	struct world w;

	open_world(&w, 2, 32, "");
	zones(&w, "n0", 16, 16, "single-numa-node");
	zones(&w, "n1", 16, 16, "single-numa-node");
	leave_gaps(&w, x);
	pinned(&w, "a", 8, MEMBER("a", "1", "a"), "");
	turn(&w);
	later(&w, 3);
	ok(!strcmp(node_of(&w, "a"), "n1"), "a pod goes where a zone has room (%s)",
	   node_of(&w, "a"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* A zone of 3 cpus holds one pod of 2, one of 5 holds two. */
static void test_unequal_zones(void)
{
	struct world w;

	open_world(&w, 4, 8, "");
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "n%d", i);
		zones(&w, name, 3, 5, "single-numa-node");
	}
	for (int i = 0; i < 12; i++) {
		char name[8];

		snprintf(name, sizeof name, "a-%d", i);
		pinned(&w, name, 2, MEMBER("a", "12", "a"), "");
	}
	turn(&w);
	ok(bound(&w, "a") == 12 && on_node(&w, "a", "n0") == 3 && on_node(&w, "a", "n3") == 3,
	   "three pods on each of four nodes (%d): %s", bound(&w, "a"), pictured(&w, "a").reason);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* Zones are published while pods wait for cpus. */
static void test_zones_while_waiting(void)
{
	struct slu_snap_job j;
	struct fpod *x;
	struct world w;

	open_world(&w, 1, 32, "");
	x = pinned(&w, "x", 30, "", "n0");
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof name, "a-%d", i);
		pinned(&w, name, 10, MEMBER("a", "3", "a"), "");
	}
	turn(&w);
	ok(bound(&w, "a") == 0, "a gang waits for cpus");
	zones(&w, "n0", 16, 16, "single-numa-node");
	turn(&w);
	j = pictured(&w, "a");
	ok(!strcmp(j.state, "never") && strstr(j.reason, "2 fit"),
	   "a waiting gang is told of zones that came (%s: %s)", j.state, j.reason);
	delete_pod(&w, x);
	turn(&w);
	ok(bound(&w, "a") == 0, "a gang does not start against zones that came (%d)",
	   bound(&w, "a"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_zone_policies(void)
{
	struct world w;

	open_world(&w, 1, 32, "");
	zones(&w, "n0", 16, 16, "best-effort");
	pinned(&w, "a", 20, MEMBER("a", "1", "a"), "");
	turn(&w);
	ok(bound(&w, "a") == 1, "where zones restrict no pod, a pod may have several");
	end_all(&w, "a");
	later(&w, 3);
	zones(&w, "n0", 16, 16, "restricted");
	pinned(&w, "b", 20, MEMBER("b", "1", "b"), "");
	turn(&w);
	ok(bound(&w, "b") == 1, "restricted: a pod larger than a zone has two");
	end_all(&w, "b");
	later(&w, 3);
	feed(&w, SLU_KIND_TOPOLOGY, true, "{\"metadata\":{\"name\":\"n0\",\"uid\":\"zones-n0\"}}");
	pinned(&w, "c", 20, MEMBER("c", "1", "c"), "");
	turn(&w);
	ok(bound(&w, "c") == 1, "without published zones nothing binds");
	end_all(&w, "c");
	later(&w, 3);
	feed_node(&w, "n0", 32,
		  "\"kubernetes.io/hostname\":\"n0\",\"topology.sluice.sh/numa-zones\":\"2\","
		  "\"topology.sluice.sh/numa-policy\":\"single-numa-node\"",
		  "", "True");
	pinned(&w, "d", 20, MEMBER("d", "1", "d"), "");
	pinned(&w, "e", 16, MEMBER("e", "1", "e"), "");
	turn(&w);
	ok(bound(&w, "d") == 0 && bound(&w, "e") == 1,
	   "labels of the node tell zones, too (%d, %d)", bound(&w, "d"), bound(&w, "e"));
	ok(differences(&w) == 0, "the books are right");
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
	test_attach_limit();
	test_attached_by_others();
	test_limit_later();
	test_one_pod_only();
	test_one_pod_of_many();
	test_volume_later();
	test_limited_volume_later();
	test_limit_while_waiting();
	test_pods_of_others();
	test_many_drivers();
	test_zones();
	test_zones_of_others();
	test_zones_with_gaps();
	test_gaps_and_room_elsewhere();
	test_unequal_zones();
	test_zones_while_waiting();
	test_zone_policies();
	return tap_done();
}
