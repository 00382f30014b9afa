/* A user with nothing but `edit` in one namespace creates thousands of objects of every watched
 * kind, each as awkward as the API server allows: the daemon takes them in, other users notice
 * nothing, and another user's gang of two starts.  The test measures CPU time, because the
 * machine that runs it may be busy. */
#include <time.h>

#include "held_kit.h"

/* Sanitizers take several times as long. */
#ifdef __SANITIZE_ADDRESS__
#define SLOWER 6
#else
#define SLOWER 1
#endif

static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* An object of the hostile user, of any length. */
static void feed_long(struct world *w, enum slu_kkind kind, const struct slu_buf *b)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };

	if (slu_kcodec_object(w->codec, kind, SLU_ENC_JSON, slu_buf_str(b), b->n, &o, &err) < 0) {
		ok(false, "object: %s: %.300s", err.text, slu_buf_str(b));
		return;
	}
	slu_core_take(w->core, slu_rec_object_new(o, false), w->now_us);
	slu_kobj_unref(o);
}

static void meta(struct world *w, struct slu_buf *b, const char *name, int i, const char *more)
{
	slu_buf_printf(b,
		       "{\"metadata\":{\"name\":\"%s%d\",\"namespace\":\"mal\",\"uid\":\"%s-%d\","
		       "\"generation\":%" PRIu64 ",\"resourceVersion\":\"%" PRIu64
		       "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"%s}",
		       name, i, name, i, w->rv + 1, w->rv + 1, more);
	w->rv++;
}

/* An object of that kind, `fmt` behind its metadata. */
SLU_PRINTF(6, 7)
static void thing(struct world *w, enum slu_kkind kind, const char *name, int i, const char *more,
		  const char *fmt, ...)
{
	struct slu_buf b = SLU_BUF_INIT(4 << 20);
	char *text = NULL;
	va_list ap;

	meta(w, &b, name, i, more);
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) > 0)
		slu_buf_puts(&b, text);
	va_end(ap);
	free(text);
	feed_long(w, kind, &b);
	slu_buf_done(&b);
}

static void pod(struct world *w, int i, const char *more, const char *spec)
{
	thing(w, SLU_KIND_POD, "m", i, more,
	      ",\"spec\":{\"schedulerName\":\"sluice\"%s,\"containers\":[{\"name\":\"c\"}]},"
	      "\"status\":{\"phase\":\"Pending\"}}",
	      spec);
}

/* A pod whose spec has a list of `n` parts; each part says itself. */
static void long_pod(struct world *w, int i, const char *head, int n,
		     void (*part)(struct slu_buf *b, int i, int k), const char *tail)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 21);

	slu_buf_puts(&b, head);
	for (int k = 0; k < n; k++) {
		slu_buf_puts(&b, k ? "," : "");
		part(&b, i, k);
	}
	slu_buf_puts(&b, tail);
	pod(w, i, "", slu_buf_str(&b));
	slu_buf_done(&b);
}

#define REQUIRED "\"requiredDuringSchedulingIgnoredDuringExecution\":"
#define ANTI     ",\"affinity\":{\"podAntiAffinity\":{" REQUIRED "["
#define AFFINITY ",\"affinity\":{\"nodeAffinity\":{" REQUIRED "{\"nodeSelectorTerms\":["

/* ---- what is made: number `i` of it; made again it has changed ---- */

/* Forty required anti-affinity terms, by hostile labels of nodes, none of which asks for a certain label of pods. */
static void repels_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(b,
		       "{\"topologyKey\":\"%s%d\",\"namespaceSelector\":{},\"labelSelector\":{"
		       "\"matchExpressions\":[{\"key\":\"k%d-%d\",\"operator\":\"%s\"}]}}",
		       k % 2 ? "kubernetes.io/hostname-" : "t", k, i, k,
		       k % 3 ? "Exists" : "DoesNotExist");
}

static void repels(struct world *w, int i)
{
	long_pod(w, i, ANTI, 40, repels_part, "]}}");
}

/* The same by host, while they wait. */
static void by_host_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(
		b,
		"{\"topologyKey\":\"kubernetes.io/hostname\",\"namespaceSelector\":{},"
		"\"labelSelector\":{\"matchExpressions\":[{\"key\":\"k%d-%d\",\"operator\":\"Exists\"}]}}",
		i, k);
}

static void repels_by_host(struct world *w, int i)
{
	long_pod(w, i, ",\"nodeSelector\":{\"no\":\"such\"}" ANTI, 40, by_host_part, "]}}");
}

/* As above by host, on a node that the pod names itself. */
static void repels_there(struct world *w, int i)
{
	char spec[600];

	snprintf(
		spec, sizeof spec,
		",\"nodeName\":\"n%d\",\"affinity\":{\"podAntiAffinity\":{"
		"\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"kubernetes.io/hostname\","
		"\"namespaceSelector\":{},\"labelSelector\":{\"matchExpressions\":[{\"key\":\"k%d\","
		"\"operator\":\"Exists\"}]}}]}}",
		2 + i % 18, i);
	pod(w, i, "", spec);
}

/* A node affinity that no other pod has, of ten terms with ten conditions each. */
static void picky_part(struct slu_buf *b, int i, int k)
{
	slu_buf_puts(b, "{\"matchExpressions\":[");
	for (int x = 0; x < 10; x++)
		slu_buf_printf(b, "{\"key\":\"l%d\",\"operator\":\"NotIn\",\"values\":[\"v%d\"]},",
			       x, i);
	slu_buf_printf(
		b,
		"{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[\"no-%d\"]}]}",
		i);
}

static void picky(struct world *w, int i)
{
	long_pod(w, i, AFFINITY, 10, picky_part, "]}}}");
}

/* The same, and every node but one may be used: none is large enough. */
static void choosy_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(
		b,
		"{\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\",\"operator\":\"NotIn\","
		"\"values\":[\"n%d\",\"%d\"]},{\"key\":\"topology.sluice.sh/rack\",\"operator\":\"Exists\"},"
		"{\"key\":\"topology.sluice.sh/rack\",\"operator\":\"%s\",\"values\":[\"%d\"]}]}",
		i, k, k == 9 ? "NotIn" : "Gt", k);
}

static void choosy(struct world *w, int i)
{
	long_pod(w, i, ",\"overhead\":{\"cpu\":\"5\"}" AFFINITY, 10, choosy_part, "]}}}");
}

/* A name of a node, as DaemonSets have it, and many that do not exist. */
static void named_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(
		b,
		"{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"x%d-%d\"]}]}",
		i, k);
}

static void named(struct world *w, int i)
{
	long_pod(w, i, AFFINITY, 200, named_part, "]}}}");
}

/* A thousand tolerations of its own; the nodes have taints. */
static void tolerant_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(
		b,
		"{\"key\":\"gpu\",\"operator\":\"Equal\",\"value\":\"%d-%d\",\"effect\":\"NoSchedule\"}",
		i, k);
}

static void tolerant(struct world *w, int i)
{
	long_pod(w, i, ",\"tolerations\":[", 1000, tolerant_part, "]");
}

/* A hundred wishes for certain nodes. */
static void wishful_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(
		b,
		"{\"weight\":%d,\"preference\":{\"matchExpressions\":[{\"key\":\"topology.sluice.sh/rack\","
		"\"operator\":\"NotIn\",\"values\":[\"r%d\"]}]}}",
		1 + k, i);
}

static void wishful(struct world *w, int i)
{
	long_pod(w, i,
		 ",\"overhead\":{\"cpu\":\"5\"},\"affinity\":{\"nodeAffinity\":{"
		 "\"preferredDuringSchedulingIgnoredDuringExecution\":[",
		 100, wishful_part, "]}}");
}

/* Five hundred claims, none of which exists. */
static void claims_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(b, "{\"name\":\"v%d\",\"persistentVolumeClaim\":{\"claimName\":\"c%d-%d\"}}",
		       k, i, k);
}

static void claims(struct world *w, int i)
{
	long_pod(w, i, ",\"volumes\":[", 500, claims_part, "]");
}

/* Three hundred init containers, each with a resource of its own. */
static void init_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(
		b,
		"{\"name\":\"i%d\",\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"1m\","
		"\"example.com/i%d-%d\":\"1\"}}}",
		k, i, k);
}

static void inits(struct world *w, int i)
{
	long_pod(w, i, ",\"initContainers\":[", 300, init_part, "]");
}

/* Gangs that wait for each other, in a circle and in one long chain. */
static void afters(struct world *w, int i)
{
	char more[400];

	snprintf(
		more, sizeof more,
		",\"labels\":{\"sluice.sh/group\":\"a%d\",\"sluice.sh/size\":\"1\"},\"annotations\":{"
		"\"sluice.sh/after\":\"ok:a%d,any:a%d,ok:none%d\"}",
		i, i + 1, i % 7, i);
	pod(w, i, more, "");
}

/* Annotations of 200 kB, in one of our own keys and in another's. */
static void annotated(struct world *w, int i)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);

	slu_buf_puts(&b, ",\"annotations\":{\"sluice.sh/after\":\"");
	for (int k = 0; k < 10000; k++)
		slu_buf_printf(&b, "%sok:g%d", k ? "," : "", k);
	slu_buf_puts(&b, "\",\"x\":\"");
	for (int k = 0; k < 10000; k++)
		slu_buf_puts(&b, "0123456789");
	slu_buf_puts(&b, "\"}");
	pod(w, i, slu_buf_str(&b), ",\"nodeSelector\":{\"no\":\"such\"}");
	slu_buf_done(&b);
}

/* A resource that no other pod asks for, and amounts that no machine has. */
static void odd_amounts(struct world *w, int i)
{
	static const char *const amount[] = { "9E", "1Ei", "9223372036854775807",
					      "1n", "8Ei", "1e18" };
	char spec[400];

	snprintf(
		spec, sizeof spec,
		",\"initContainers\":[{\"name\":\"i\",\"resources\":{\"requests\":{\"example.com/r%d\":\"%s\","
		"\"cpu\":\"%s\",\"memory\":\"%s\"}}}],\"overhead\":{\"cpu\":\"%s\"}",
		i, amount[i % 6], amount[(i + 1) % 6], amount[(i + 2) % 6], amount[(i + 3) % 6]);
	pod(w, i, "", spec);
}

/* Two hundred host ports, on addresses of its own. */
static void ports_part(struct slu_buf *b, int i, int k)
{
	slu_buf_printf(b, "{\"containerPort\":1,\"hostPort\":%d,\"hostIP\":\"127.%d.%d.%d\"}",
		       1 + (i * 200 + k) % 65535, i % 200, k % 200, i / 200);
}

static void ports(struct world *w, int i)
{
	long_pod(w, i,
		 ",\"initContainers\":[{\"name\":\"i\",\"restartPolicy\":\"Always\",\"ports\":[",
		 200, ports_part, "]}]");
}

/* Every wish there is, each wrong or out of all proportion. */
static void wishes(struct world *w, int i)
{
	char more[1500];

	snprintf(
		more, sizeof more,
		",\"labels\":{\"sluice.sh/group\":\"g%d\",\"sluice.sh/size\":\"%d\"},\"annotations\":{"
		"\"sluice.sh/topology\":\"required:k%d\",\"sluice.sh/begin\":\"%s\",\"sluice.sh/deadline\":\"%s\","
		"\"sluice.sh/duration\":\"%s\",\"sluice.sh/queue\":\"q%d\",\"sluice.sh/reservation\":\"r%d\","
		"\"sluice.sh/max-size\":\"2147483647\",\"sluice.sh/priority\":\"2147483647\","
		"\"sluice.sh/exclusive\":\"true\",\"sluice.sh/user\":\"u%d\"}",
		i, i % 2 ? 2147483647 : 1, i,
		i % 2 ? "0000-01-01T00:00:00Z" : "9999-12-31T23:59:59Z",
		i % 3 ? "9999-12-31T23:59:59Z" : "1970-01-01T00:00:00Z",
		i % 4 ? "9223372036854775807" : "1s", i, i, i);
	pod(w, i, more, ",\"priority\":2147483647");
}

/* A PodGroup of the largest size, and a pod that names it. */
static void podgroup(struct world *w, int i)
{
	char more[100];

	thing(w, SLU_KIND_PODGROUP_X, "pg", i, "",
	      ",\"spec\":{\"minMember\":%u,\"scheduleTimeoutSeconds\":1,\"minResources\":{\"cpu\":\"9E\"}}}",
	      i % 2 ? 2147483647u : 1u);
	snprintf(more, sizeof more, ",\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"pg%d\"}", i);
	pod(w, i, more, ",\"nodeSelector\":{\"no\":\"such\"}");
}

/* A LimitRange, and a held Job that it concerns. */
static void limit(struct world *w, int i)
{
	thing(w, SLU_KIND_LIMITRANGE, "l", i, "",
	      ",\"spec\":{\"limits\":[{\"type\":\"Container\",\"defaultRequest\":{\"cpu\":\"%dm\","
	      "\"example.com/l%d\":\"1\"}}]}}",
	      i + (int)(w->rv % 100), i);
	thing(w, SLU_KIND_JOB, "j", i, ",\"annotations\":{\"sluice.sh/held\":\"yes\"}",
	      ",\"spec\":{\"parallelism\":60,\"completions\":60,\"suspend\":true,\"template\":{\"spec\":{%s"
	      "\"nodeSelector\":{\"no\":\"such\"},\"containers\":[{\"name\":\"c\"}]}}}}",
	      held_gate);
}

/* Jobs that own each other in one long chain, each with a pod. */
static void chain(struct world *w, int i)
{
	char more[300];

	snprintf(
		more, sizeof more,
		",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"j%d\",\"uid\":\"j-%d\","
		"\"controller\":true}]",
		i + 1, i + 1);
	thing(w, SLU_KIND_JOB, "j", i, more,
	      ",\"spec\":{\"parallelism\":2,\"template\":{\"spec\":{\"schedulerName\":\"sluice\","
	      "\"containers\":[{\"name\":\"c\"}]}}}}");
	pod(w, i, more, ",\"nodeSelector\":{\"no\":\"such\"}");
}

/* A FluxJob that names a million nodes in a few bytes. */
static void hosts(struct world *w, int i)
{
	thing(w, SLU_KIND_FLUXJOB, "f", i, "", "%s",
	      ",\"spec\":{\"jobspec\":\"version: 1\\nresources: [{type: slot, count: 1, label: s, with: [{type: core, "
	      "count: 1}]}]\\ntasks: [{command: [x], slot: s, count: {per_slot: 1}}]\\nattributes: {system: "
	      "{duration: 60, constraints: {hostlist: ['no[0-999999]']}}}\\n\"}}");
}

/* A FluxJob whose text is as long as the API server takes it. */
static void long_text(struct world *w, int i)
{
	struct slu_buf b;

	b = SLU_BUF_INIT(4 << 20);
	meta(w, &b, "f", i, "");
	slu_buf_puts(
		&b,
		",\"spec\":{\"jobspec\":\"version: 1\\nresources: [{type: slot, count: 1, label: s, with: [{type: core, "
		"count: 1}]}]\\ntasks: [{command: [x], slot: s, count: {per_slot: 1}}]\\nattributes: {system: "
		"{duration: 60}, user: [");
	for (int k = 0; k < 200000; k++)
		slu_buf_puts(&b, "[],a,");
	slu_buf_puts(&b, "0]}\\n\"}}");
	feed_long(w, SLU_KIND_FLUXJOB, &b);
	slu_buf_done(&b);
}

/* A Reservation of half the nodes for a minute each day, from tomorrow on. */
static void reserved(struct world *w, int i)
{
	thing(w, SLU_KIND_RESERVATION, "r", i, "",
	      ",\"spec\":{\"start\":\"2026-01-02T%02d:%02d:00Z\",\"end\":\"2026-01-02T%02d:%02d:59Z\","
	      "\"every\":\"1d\",\"count\":10,\"users\":[\"mallory\"]}}",
	      i / 60 % 24, i % 60, i / 60 % 24, i % 60);
}

static const struct attack {
	const char *what;
	void (*make)(struct world *w, int i);
	int n;
	int take_ms; /* to take all of them in */
	int nodes;   /* 0: twenty */
} attacks[] = {
	{ "pods with forty anti-affinity terms", repels, 1000, 1000 },
	{ "pods with forty terms by host", repels_by_host, 2000, 1000 },
	{ "pods on nodes that forbid others there", repels_there, 3000, 1000 },
	{ "pods with a node affinity of their own", picky, 2000, 1000 },
	{ "pods with odd amounts", odd_amounts, 3000, 1000 },
	{ "pods with two hundred host ports", ports, 1000, 1000 },
	{ "pods with every wish", wishes, 3000, 1000 },
	{ "PodGroups", podgroup, 3000, 1000 },
	{ "LimitRanges and held Jobs", limit, 500, 1000 },
	{ "Jobs in one chain of owners", chain, 2000, 1000 },
	{ "FluxJobs of a million hosts", hosts, 100, 1000 },
	{ "FluxJobs of a megabyte", long_text, 50, 1000 },
	{ "pods with a node affinity of their own on 2000 nodes", picky, 1000, 1000, 2000 },
	{ "pods that may use almost every node", choosy, 1000, 1000, 2000 },
	{ "pods that name nodes", named, 1000, 1000, 2000 },
	{ "pods with a thousand tolerations", tolerant, 250, 1000, 2000 },
	{ "pods with a hundred preferences", wishful, 1000, 1000, 2000 },
	{ "pods with five hundred claims", claims, 500, 1000, 2000 },
	{ "pods with two hundred host ports on 2000 nodes", ports, 500, 1000, 2000 },
	{ "pods with forty terms by host on 2000 nodes", repels_by_host, 500, 1000, 2000 },
	{ "pods with three hundred init containers", inits, 300, 1000 },
	{ "gangs that wait for each other", afters, 3000, 1000 },
	{ "pods with huge annotations", annotated, 100, 1000 },
	{ "Reservations", reserved, 1000, 1000 },
};

static void taint(struct world *w, int i)
{
	char name[20], labels[100], spec[200];

	snprintf(name, sizeof name, "n%d", i);
	snprintf(labels, sizeof labels,
		 "\"topology.sluice.sh/rack\":\"r%d\",\"kubernetes.io/hostname\":\"%s\"", i / 2,
		 name);
	snprintf(spec, sizeof spec,
		 "\"taints\":[{\"key\":\"gpu\",\"value\":\"yes\",\"effect\":\"%s\"}]",
		 i == 20 ? "PreferNoSchedule" : "NoSchedule");
	feed_node(w, name, 4, labels, spec, "True");
}

static void attack(const struct attack *a)
{
	struct world w;
	int64_t from, took, worst = 0;
	struct fpod *v[2];

	begin(&w, a->nodes ? a->nodes : 20);
	/* Some are for others, and one says "rather not". */
	for (int i = 20; i < a->nodes / 2; i++)
		taint(&w, i);
	turn(&w);
	from = cpu_us();
	for (int i = 0; i < a->n; i++)
		a->make(&w, i);
	turn(&w);
	later(&w, 3);
	took = (cpu_us() - from) / 1000;
	ok(took < a->take_ms * SLOWER, "%d %s are taken in (%d ms)", a->n, a->what, (int)took);
	for (int i = 0; i < 50; i++) {
		from = cpu_us();
		a->make(&w, i * 7 % a->n);
		turn(&w);
		w.now_us += 10000;
		took = (cpu_us() - from) / 1000;
		worst = SLU_MAX(worst, took);
	}
	ok(worst < 100 * SLOWER, "%s that change: no turn takes long (%d ms)", a->what, (int)worst);
	from = cpu_us();
	v[0] = add_pod(&w, "v-0", "sluice", "4", GROUP("v", "2"));
	v[1] = add_pod(&w, "v-1", "sluice", "4", GROUP("v", "2"));
	turn(&w);
	took = (cpu_us() - from) / 1000;
	ok(*v[0]->node && *v[1]->node && took < 200 * SLOWER,
	   "%s: another user's gang of two starts (%d ms)", a->what, (int)took);
	ok(differences(&w) == 0, "%s: the books are right", a->what);
	from = cpu_us();
	close_world(&w);
	took = (cpu_us() - from) / 1000;
	ok(took < 500 * SLOWER, "%s: stopping takes a moment (%d ms)", a->what, (int)took);
}

/* The terms of one namespace are followed whatever others carry; too many of one are told. */
static void terms_of_others(void)
{
	struct world w;
	struct fpod *v[2];
	const char *told;
	const char *anti =
		",\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
		"\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{\"a\":\"b\"}}}]}}";

	begin(&w, 2);
	turn(&w);
	for (int i = 0; i < 2000; i++)
		repels_by_host(&w, i);
	turn(&w);
	later(&w, 3);
	told = pictured(&w, "m1999").reason;
	ok(strstr(told, "more different terms of required pod anti-affinity"),
	   "a namespace with too many terms is told: %s", told);
	for (int i = 0; i < 2; i++) {
		v[i] = make_pod(
			&w, i ? "v-1" : "v-0", "sluice", "1",
			"\"labels\":{\"a\":\"b\",\"sluice.sh/group\":\"v\",\"sluice.sh/size\":\"2\"}");
		snprintf(v[i]->spec + strlen(v[i]->spec), sizeof v[i]->spec - strlen(v[i]->spec),
			 "%s", anti);
		feed_pod(&w, v[i], false);
	}
	turn(&w);
	ok(*v[0]->node && *v[1]->node && strcmp(v[0]->node, v[1]->node),
	   "another namespace's pods keep off each other (%s, %s)", v[0]->node, v[1]->node);
	close_world(&w);
}

/* The same port is free again when the pod that had it is gone, also beyond those that are counted. */
static void ports_come_and_go(void)
{
	struct world w;
	struct fpod *a, *b;
	char spec[200];

	begin(&w, 1);
	turn(&w);
	ports(&w, 0); /* takes what is counted */
	turn(&w);
	a = make_pod(&w, "a", "sluice", "1", "");
	b = make_pod(&w, "b", "sluice", "1", "");
	snprintf(
		spec, sizeof spec, "%s",
		"\"schedulerName\":\"sluice\",\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":1,"
		"\"hostPort\":9000},{\"containerPort\":2,\"hostPort\":9000,\"hostIP\":\"10.0.0.1\"}]}]");
	snprintf(a->spec, sizeof a->spec, "%s", spec);
	snprintf(b->spec, sizeof b->spec, "%s", spec);
	feed_pod(&w, a, false);
	turn(&w);
	feed_pod(&w, b, false);
	turn(&w);
	ok(*a->node && !*b->node, "a port that is taken keeps a pod away");
	delete_pod(&w, a);
	turn(&w);
	later(&w, 1);
	ok(*b->node, "a port that is free again does not");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	for (size_t i = 0; i < SLU_LEN(attacks); i++)
		attack(&attacks[i]);
	terms_of_others();
	ports_come_and_go();
	return tap_done();
}
