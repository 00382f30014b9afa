/* Held work: the rules, the patches, and a core that holds and lets go (held_kit.h). */
#include "control/rules/hold.h"

#include "held_kit.h"

#include <time.h>

#include "control/hold/hold.h"

/* ---- rules ---- */

static void test_spaces(void)
{
	static const struct {
		const char *name, *label, *value;
		enum slu_held_mode own, compatible;
	} row[] = {
		{ "lab", "sluice.sh/hold", "true", SLU_HELD_OWN, SLU_HELD_COMPATIBLE },
		{ "lab", "sluice.sh/hold", "own", SLU_HELD_OWN, SLU_HELD_OWN },
		{ "lab", "sluice.sh/hold", "bind", SLU_HELD_BIND, SLU_HELD_BIND },
		{ "lab", "sluice.sh/hold", "compatible", SLU_HELD_COMPATIBLE, SLU_HELD_COMPATIBLE },
		{ "lab", "sluice.sh/hold", "false", SLU_HELD_OFF, SLU_HELD_OFF },
		{ "lab", "sluice.sh/hold", "maybe", SLU_HELD_OFF, SLU_HELD_OFF },
		{ "lab", "team", "hpc", SLU_HELD_OWN, SLU_HELD_COMPATIBLE },
		{ "lab", "team", "web", SLU_HELD_OFF, SLU_HELD_OFF },
		{ "lab", "other", "x", SLU_HELD_OFF, SLU_HELD_OFF },
		{ "kube-system", "sluice.sh/hold", "true", SLU_HELD_OFF, SLU_HELD_OFF },
		{ "kube-anything", "sluice.sh/hold", "true", SLU_HELD_OFF, SLU_HELD_OFF },
		{ "sluice-system", "sluice.sh/hold", "true", SLU_HELD_OFF, SLU_HELD_OFF },
		{ "spared", "sluice.sh/hold", "true", SLU_HELD_OFF, SLU_HELD_OFF },
	};
	static const char *const yaml[] = {
		"held: {selector: team=hpc, never: [spared]}",
		"held: {selector: team=hpc, never: [spared], mode: compatible}"
	};

	for (size_t k = 0; k < SLU_LEN(yaml); k++) {
		struct slu_config *cfg = NULL;
		struct slu_error err = { 0 };

		ok(slu_config_parse("test", yaml[k], strlen(yaml[k]), &cfg, &err) == 0,
		   "the settings are accepted: %s", yaml[k]);
		for (size_t i = 0; cfg && i < SLU_LEN(row); i++) {
			struct slu_kpair label = { row[i].label, row[i].value };
			struct slu_kmeta m = { .name = row[i].name,
					       .labels = &label,
					       .nlabels = 1 };

			ok(slu_held_space(cfg, &m) == (k ? row[i].compatible : row[i].own),
			   "namespace %s with %s=%s", row[i].name, row[i].label, row[i].value);
		}
		slu_config_free(cfg);
	}
}

/* ---- patches ---- */

static const struct slu_kobj *object(struct slu_kcodec *codec, enum slu_kkind kind,
				     const char *text)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };

	if (slu_kcodec_object(codec, kind, SLU_ENC_JSON, text, strlen(text), &o, &err) < 0)
		ok(false, "object: %s", err.text);
	return o;
}

#define META "{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\"}"
#define GATES                                                   \
	"\"schedulingGates\":[{\"$patch\":\"delete\",\"name\":" \
	"\"fluxqueue\"}]"
#define PIN "{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[\"h1\"]}"
#define TERMS(x)                                                                  \
	"\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuring" \
	"Execution\":{\"nodeSelectorTerms\":[" x "]}}}"

static void test_pod_patch(struct slu_kcodec *codec)
{
	static const struct {
		const char *what, *spec, *want;
	} row[] = {
		{ "no affinity: one term with the pin", "{}",
		  "\"spec\":{" TERMS("{\"matchExpressions\":[" PIN "]}") "," GATES "}" },
		{ "every term is tightened, in its order, nothing lost",
		  "{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
		  "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":"
		  "[\"3\"]},{\"key\":\"b\",\"operator\":\"DoesNotExist\"}]},{\"matchFields\":[{\"key\":"
		  "\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"x\",\"y\"]}]}]}}}}",
		  "\"spec\":{" TERMS(
			  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":"
			  "[\"3\"]},{\"key\":\"b\",\"operator\":\"DoesNotExist\"}," PIN
			  "]},{\"matchExpressions\":[" PIN
			  "],\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":"
			  "\"NotIn\",\"values\":[\"x\",\"y\"]}]}") "," GATES "}" },
	};
	struct slu_held_place at = { .node = "n1", .host = "h1", .nodes = "n1,n2", .job = 7 };

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_buf b = SLU_BUF_INIT(1 << 16), text = SLU_BUF_INIT(1 << 16);
		const struct slu_kobj *o;

		slu_buf_printf(&text, "{\"metadata\":" META ",\"spec\":%s}", row[i].spec);
		o = object(codec, SLU_KIND_POD, slu_buf_str(&text));
		ok(slu_held_release_pod(slu_kpod(o), &at, &b) == 0 &&
			   strstr(slu_buf_str(&b), row[i].want),
		   "%s", row[i].what);
		if (!strstr(slu_buf_str(&b), row[i].want))
			printf("# got  %s\n# want %s\n", slu_buf_str(&b), row[i].want);
		slu_kobj_unref(o);
		slu_buf_done(&b);
		slu_buf_done(&text);
	}
}

static void test_pod_labels(struct slu_kcodec *codec)
{
	const struct slu_kobj *o = object(codec, SLU_KIND_POD,
					  "{\"metadata\":" META ",\"spec\":{}}");
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	char name[254];
	struct slu_held_place at = { .node = "n1", .host = "h1", .nodes = "n1,n2", .job = 7 };

	slu_held_release_pod(slu_kpod(o), &at, &b);
	ok(strstr(slu_buf_str(&b),
		  "{\"metadata\":{\"uid\":\"u1\",\"labels\":{\"sluice.sh/node\":\"n1\",\"fluxqueue/jobid\":\"7\","
		  "\"fluxqueue/fluxion-nodes\":\"n1__n2\"},\"annotations\":{\"sluice.sh/node\":\"n1\","
		  "\"sluice.sh/nodes\":\"n1,n2\"}}") == slu_buf_str(&b),
	   "labels and annotations: %s", slu_buf_str(&b));
	slu_buf_reset(&b);
	memset(name, 'x', 63);
	name[63] = 0;
	at = (struct slu_held_place){ .node = name, .nodes = name, .job = 7 };
	slu_held_release_pod(slu_kpod(o), &at, &b);
	ok(strstr(slu_buf_str(&b), "\"fluxqueue/fluxion-nodes\":\"xxx"),
	   "63 characters fit a label");
	ok(strstr(slu_buf_str(&b), "\"matchFields\":[{\"key\":\"metadata.name\""),
	   "without a host name label the pin is on the node's name");
	slu_buf_reset(&b);
	memset(name, 'x', 64);
	name[64] = 0;
	slu_held_release_pod(slu_kpod(o), &at, &b);
	ok(strstr(slu_buf_str(&b), "\"labels\":{\"fluxqueue/jobid\":\"7\"}") &&
		   strstr(slu_buf_str(&b), "\"annotations\":{\"sluice.sh/node\":\"xxx"),
	   "64 do not: the annotations have them");
	slu_buf_reset(&b);
	at = (struct slu_held_place){ .node = "n1", .host = "h1", .binds = true };
	ok(slu_held_release_pod(slu_kpod(o), &at, &b) == 0 &&
		   strstr(slu_buf_str(&b), "\"sluice.sh/node\":\"n1\"") &&
		   strstr(slu_buf_str(&b), "schedulingGates") &&
		   !strstr(slu_buf_str(&b), "affinity"),
	   "a pod that Sluice binds itself is not pinned: %s", slu_buf_str(&b));
	slu_buf_done(&b);
	slu_kobj_unref(o);
}

/* A pod that no node can satisfy must not become satisfiable by the pin. */
static void test_never_looser(struct slu_kcodec *codec)
{
	static const char *const affinity[] = {
		"{\"nodeSelectorTerms\":[]}", "{\"nodeSelectorTerms\":[{}]}",
		"{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Newer\"}]}]}"
	};
	struct slu_held_place at = { .node = "n1", .host = "h1", .nodes = "n1" };

	for (size_t i = 0; i < SLU_LEN(affinity); i++) {
		struct slu_buf b = SLU_BUF_INIT(1 << 16), text = SLU_BUF_INIT(1 << 16);
		const struct slu_kobj *o;

		slu_buf_printf(&text,
			       "{\"metadata\":" META ",\"spec\":{\"affinity\":{\"nodeAffinity\":{"
			       "\"requiredDuringSchedulingIgnoredDuringExecution\":%s}}}}",
			       affinity[i]);
		o = object(codec, SLU_KIND_POD, slu_buf_str(&text));
		ok(slu_held_release_pod(slu_kpod(o), &at, &b) == -EINVAL, "refused: %s",
		   affinity[i]);
		slu_kobj_unref(o);
		slu_buf_done(&b);
		slu_buf_done(&text);
	}
}

static void test_hold_patch(struct slu_kcodec *codec)
{
	static const struct {
		const char *what;
		enum slu_kkind kind;
		const char *spec, *want;
	} row[] = {
		{ "a Job that runs is only suspended: its template may not change yet",
		  SLU_KIND_JOB, "{\"suspend\":false,\"template\":{\"spec\":{}}}",
		  "\"spec\":{\"suspend\":true}}" },
		{ "one that is suspended gets the gate", SLU_KIND_JOB,
		  "{\"suspend\":true,\"template\":{\"spec\":{}}}",
		  "\"spec\":{\"suspend\":true,\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":"
		  "\"fluxqueue\"}]}}}}" },
		{ "a Deployment as Fluxqueue had it", SLU_KIND_DEPLOYMENT,
		  "{\"template\":{\"spec\":{}}}",
		  "\"spec\":{\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}],"
		  "\"schedulerName\":\"FluxionScheduler\"}}}}" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_buf b = SLU_BUF_INIT(1 << 16), text = SLU_BUF_INIT(1 << 16);
		const struct slu_kobj *o;

		slu_buf_printf(&text, "{\"metadata\":" META ",\"spec\":%s}", row[i].spec);
		o = object(codec, row[i].kind, slu_buf_str(&text));
		ok(slu_held_hold(o, SLU_HELD_COMPATIBLE, &b) == 0 &&
			   strstr(slu_buf_str(&b), row[i].want) &&
			   strstr(slu_buf_str(&b), "\"sluice.sh/held\":\"yes\""),
		   "%s: %s", row[i].what, slu_buf_str(&b));
		slu_kobj_unref(o);
		slu_buf_done(&b);
		slu_buf_done(&text);
	}
}

/* ---- the core ---- */

static void test_core_pod(void)
{
	struct world w;
	struct fpod *p, *q;

	begin(&w, 1);
	p = gated_pod(&w, "a", NULL);
	turn(&w);
	ok(seen.pods == 1 && w.binds == 0, "a gated pod is released, not bound");
	ok(strstr(seen.pod, "\"sluice.sh/node\":\"n0\""), "the pod is pinned to its node");
	q = gated_pod(&w, "b", NULL);
	turn(&w);
	ok(seen.pods == 2, "a second one fits beside it");
	gated_pod(&w, "c", NULL);
	turn(&w);
	ok(seen.pods == 2, "a third waits: released pods count before they are bound");
	run_pod(&w, p);
	run_pod(&w, q);
	turn(&w);
	ok(differences(&w) == 0, "the books are right");
	end_pod(&w, p, "Succeeded");
	turn(&w);
	ok(seen.pods == 3, "the third takes the place of one that ended");
	close_world(&w);
}

static void test_core_job(void)
{
	struct world w;
	struct fpod *p[4];

	begin(&w, 2);
	feed_job(&w, "j", 4, true, "yes", "");
	turn(&w);
	ok(seen.jobs == 1 && seen.pods == 0, "a suspended Job is resumed once");
	ok(strstr(seen.job, "\"sluice.sh/places\":\"n0*2,n1*2\"") &&
		   strstr(seen.job, "\"suspend\":false") &&
		   strstr(seen.job, "\"sluice.sh/held\":\"released\""),
	   "the resumed Job carries its places: %s", seen.job);
	gated_pod(&w, "x", NULL);
	turn(&w);
	ok(seen.pods == 0, "no other pod gets the places of the resumed Job");
	feed_job(&w, "j", 4, false, "released", ",\"sluice.sh/places\":\"n0*2,n1*2\"");
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "j-%d", i);
		p[i] = gated_pod(&w, name, "j");
		turn(&w);
	}
	ok(seen.pods == 4, "each pod is released when it appears");
	for (int i = 0; i < 4; i++)
		run_pod(&w, p[i]);
	turn(&w);
	ok(bound(&w, "j-") == 4 && differences(&w) == 0, "all pods run, and the books are right");
	for (int i = 0; i < 4; i++)
		end_pod(&w, p[i], "Succeeded");
	turn(&w);
	ok(seen.pods == 5, "the other job runs when the first has ended");
	close_world(&w);
}

static void test_core_job_gone(void)
{
	struct world w;

	begin(&w, 1);
	feed_job(&w, "big", 3, true, "yes", "");
	turn(&w);
	ok(seen.jobs == 0, "a held Job of three pods does not fit two places");
	feed_job(&w, "big", 2, true, "yes", "");
	turn(&w);
	ok(seen.jobs == 1, "a held Job that was scaled to two pods starts");
	feed(&w, SLU_KIND_JOB, true,
	     "{\"metadata\":{\"name\":\"big\",\"namespace\":\"ns\",\"uid\":\"job-big\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{}}",
	     ++w.rv);
	gated_pod(&w, "x", NULL);
	gated_pod(&w, "y", NULL);
	turn(&w);
	ok(seen.pods == 2, "a Job deleted after its release gives its places back");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_core_user(void)
{
	struct world w;

	begin(&w, 1);
	feed_job(&w, "u", 2, true, "user", "");
	turn(&w);
	ok(seen.jobs == 0, "a Job its user suspended is not ours to resume");
	feed_job(&w, "u", 2, false, "user", "");
	gated_pod(&w, "u-0", "u");
	turn(&w);
	ok(seen.pods == 0, "half of its gang waits");
	gated_pod(&w, "u-1", "u");
	turn(&w);
	ok(seen.pods == 2, "the whole is released");
	feed_job(&w, "r", 1, true, "released", "");
	turn(&w);
	ok(seen.jobs == 0, "a Job that its user suspended after our resume is not resumed");
	close_world(&w);
}

static void test_core_failures(void)
{
	struct world w;
	struct fpod *p;

	begin(&w, 2);
	seen.outcome = SLU_KUBE_FAILED;
	feed_job(&w, "j", 1, true, "yes", "");
	turn(&w);
	ok(seen.jobs == 1, "a held Job is resumed, and the patch fails");
	later(&w, 6);
	ok(seen.jobs == 2, "a resume that failed is tried again");
	seen.outcome = SLU_KUBE_OK;
	later(&w, 6);
	later(&w, 60);
	ok(seen.jobs == 3, "a resume is tried until it succeeds");
	close_world(&w);

	begin(&w, 2);
	p = gated_pod(&w, "a", NULL);
	turn(&w);
	snprintf(
		p->status, sizeof p->status,
		",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
		"\"message\":\"no\"}]");
	feed_pod(&w, p, false);
	turn(&w);
	later(&w, 61);
	ok(w.evictions == 0 && strstr(w.last_event, "delete the pod and make it again"),
	   "a naked pod that is refused is told about: %s", w.last_event);
	close_world(&w);
}

/* Some pods of it ran before its namespace was held: those that come later do not wait for them. */
static void test_core_strangers(void)
{
	struct world w;
	struct fpod *p;

	begin(&w, 2);
	feed(&w, SLU_KIND_NAMESPACE, false,
	     "{\"metadata\":{\"name\":\"ns\",\"uid\":\"ns1\",\"resourceVersion\":\"1\",\"labels\":{\"sluice.sh/hold\":\"true\"}}}");
	w.rv++;
	feed(&w, SLU_KIND_REPLICASET, false,
	     "{\"metadata\":{\"name\":\"rs\",\"namespace\":\"ns\",\"uid\":\"rs1\",\"generation\":1,\"resourceVersion\":"
	     "\"%" PRIu64
	     "\"},\"spec\":{\"replicas\":3,\"template\":{\"spec\":{%s\"containers\":[{\"name\":\"c\"}]}}}}",
	     w.rv, held_gate);
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof name, "rs-%d", i);
		p = make_pod(&w, name, "default-scheduler", "2", OWNED("ReplicaSet", "rs1", "rs"));
		snprintf(
			p->spec, sizeof p->spec,
			"\"schedulerName\":\"default-scheduler\",%s\"containers\":[{\"name\":\"c\",\"resources\":{"
			"\"requests\":{\"cpu\":\"2\"}}}]",
			i < 2 ? "" : held_gate);
		if (i < 2) { /* as the default scheduler left it */
			snprintf(p->node, sizeof p->node, "n%d", i);
			snprintf(p->phase, sizeof p->phase, "Running");
		}
		feed_pod(&w, p, false);
	}
	turn(&w);
	ok(seen.pods == 1 && strstr(seen.pod, "\"sluice.sh/node\""),
	   "a third beside two that ran before is let go alone: %d", seen.pods);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

#define FREE_JOB                                                                  \
	"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"job-%s\"," \
	"\"generation\":1,\"resourceVersion\":\"%" PRIu64                         \
	"\"},\"spec\":{\"parallelism\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}}}"

/* A selector that comes with a new configuration takes what is there, one that goes lets new work
 * be. */
static void test_core_selector(void)
{
	static const char with[] = "held: {selector: team=blue}";
	struct slu_config *cfg[2] = { NULL, NULL };
	struct slu_error err = { 0 };
	struct world w;

	begin(&w, 1);
	feed(&w, SLU_KIND_NAMESPACE, false,
	     "{\"metadata\":{\"name\":\"ns\",\"uid\":\"ns1\",\"resourceVersion\":\"1\",\"labels\":{\"team\":\"blue\"}}}");
	w.rv++;
	feed(&w, SLU_KIND_JOB, false, FREE_JOB, "early", "early", w.rv);
	turn(&w);
	later(&w, 2);
	ok(seen.jobs == 0, "a namespace that no label or setting chooses");
	ok(slu_config_parse("test", with, strlen(with), &cfg[0], &err) == 0 &&
		   slu_config_parse("test", "", 0, &cfg[1], &err) == 0,
	   "configurations: %s", err.text);
	slu_core_take(w.core, slu_rec_config_new(cfg[0]), w.now_us);
	turn(&w);
	ok(seen.jobs == 1 && strstr(seen.job, "\"suspend\":true"),
	   "chosen: what is there is held: %s", seen.job);
	slu_core_take(w.core, slu_rec_config_new(cfg[1]), w.now_us);
	w.rv++;
	feed(&w, SLU_KIND_JOB, false, FREE_JOB, "late", "late", w.rv);
	turn(&w);
	ok(seen.jobs == 1, "in a namespace that is no longer labelled new work is left alone");
	close_world(&w);
	slu_config_free(cfg[0]);
	slu_config_free(cfg[1]);
}

/* The patch that is to hold a Job that the webhook missed is lost: it is sent again, less and less often. */
static void test_core_hold_lost(void)
{
	struct world w;
	int first, soon;

	begin(&w, 1);
	feed(&w, SLU_KIND_NAMESPACE, false,
	     "{\"metadata\":{\"name\":\"ns\",\"uid\":\"ns1\",\"resourceVersion\":\"1\",\"labels\":{\"sluice.sh/hold\":\"true\"}}}");
	w.rv++;
	feed(&w, SLU_KIND_JOB, false, FREE_JOB, "lost", "lost", w.rv);
	turn(&w);
	first = seen.jobs;
	later(&w, 3);
	soon = seen.jobs;
	later(&w, 3);
	later(&w, 1);
	ok(first == 1 && soon == 1 && seen.jobs == 2,
	   "a hold that nothing shows is asked for again after some seconds (%d, %d, %d)", first,
	   soon, seen.jobs);
	for (int i = 0; i < 600; i++)
		later(&w, 1);
	ok(seen.jobs > 3 && seen.jobs < 12, "and then less and less often (%d in ten minutes)",
	   seen.jobs);
	close_world(&w);
}

/* A pod of a Job that runs is refused by its scheduler: whether it may be given up is up to the
 * Job. */
static void test_core_refused_beside_running(int backoff)
{
	static const char refused[] =
		",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
		"\"message\":\"no\"}]";
	struct world w;
	struct fpod *p[2];

	begin(&w, 1);
	w.rv++;
	feed(&w, SLU_KIND_JOB, false,
	     "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"job-j\",\"generation\":1,\"resourceVersion\":"
	     "\"%" PRIu64
	     "\",\"annotations\":{\"sluice.sh/held\":\"released\"}},\"spec\":{\"parallelism\":2,"
	     "\"completions\":2,\"backoffLimit\":%d,\"template\":{\"spec\":{%s\"containers\":[{\"name\":\"c\","
	     "\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]}}}}",
	     w.rv, backoff, held_gate);
	p[0] = gated_pod(&w, "j-0", "j");
	p[1] = gated_pod(&w, "j-1", "j");
	turn(&w);
	run_pod(&w, p[0]);
	snprintf(p[1]->status, sizeof p[1]->status, "%s", refused);
	feed_pod(&w, p[1], false);
	turn(&w);
	later(&w, 61);
	if (backoff)
		ok(w.evictions == 1, "a refused pod that its Job makes again is evicted");
	else
		ok(w.evictions == 0 && strstr(w.last_event, "make it again"),
		   "with backoffLimit 0, where an eviction would end the Job, the pod gets an event: %s",
		   w.last_event);
	ok(bound(&w, "j-0") == 1 && differences(&w) == 0, "the other pod of the Job keeps running");
	close_world(&w);
}

/* A Job was resumed and one of its pods released when the process ended. */
static void test_core_restart(void)
{
	struct world w;
	struct fpod *p;

	begin(&w, 4);
	seen.outcome = SLU_KUBE_FAILED; /* keeps the pod as it is */
	feed_job(&w, "j", 3, false, "released", ",\"sluice.sh/places\":\"n3*2,n1\"");
	p = gated_pod(&w, "j-0", "j");
	snprintf(p->node, sizeof p->node, "n3");
	snprintf(p->phase, sizeof p->phase, "Running");
	snprintf(
		p->spec, sizeof p->spec,
		"\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"requests\":{\"cpu\":\"2\"}}}]");
	seen.outcome = SLU_KUBE_OK;
	feed_pod(&w, p, false);
	gated_pod(&w, "j-1", "j");
	turn(&w);
	ok(seen.pods == 1 && (strstr(seen.pod, "\"sluice.sh/node\":\"n3\"") ||
			      strstr(seen.pod, "\"sluice.sh/node\":\"n1\"")),
	   "the next goes to one of the places the Job has: %s", seen.pod);
	gated_pod(&w, "j-2", "j");
	turn(&w);
	ok(seen.pods == 2 && (strstr(seen.pod, "\"sluice.sh/node\":\"n3\"") ||
			      strstr(seen.pod, "\"sluice.sh/node\":\"n1\"")),
	   "a pod that appears later is released, too: %s", seen.pod);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* A pod that Sluice did not release says that it was released, to a node it can never get; or
 * its user removes the gate. */
static void test_core_forged(void)
{
	struct world w;
	struct fpod *p;

	begin(&w, 2);
	turn(&w);
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "f-%d", i);
		p = make_pod(&w, name, "default-scheduler", "2", "");
		pin_pod(&w, p, i % 2 ? "n1" : "n0");
	}
	turn(&w);
	feed_job(&w, "j", 4, true, "yes", "");
	turn(&w);
	ok(seen.jobs == 1 && strstr(seen.job, "\"sluice.sh/places\":\"n0*2,n1*2\""),
	   "pods that say they were released take no room from others: %s", seen.job);
	close_world(&w);

	begin(&w, 1);
	turn(&w);
	add_pod(&w, "x", "sluice", "4", "");
	turn(&w);
	p = gated_pod(&w, "g", NULL);
	turn(&w);
	pin_pod(&w, p, "n0");
	end_pod(&w, &w.pod[0], "Succeeded");
	turn(&w);
	add_pod(&w, "y", "sluice", "4", "");
	turn(&w);
	ok(bound(&w, "y") == 1, "a pod whose user removed the gate and wrote a node holds nothing");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static int64_t since_ms(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - t->tv_sec) * 1000 + (now.tv_nsec - t->tv_nsec) / 1000000;
}

/* A thousand Jobs of a line each, of the largest size there may be or beyond it. */
static void flood(int pods, const char *what)
{
	struct world w;
	struct timespec t;
	char name[16];
	int64_t took;
	uint64_t stands;

	begin_as(&w, 2, "held: {ahead: 0}");
	turn(&w);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "h%d", i);
		feed_job(&w, name, pods, true, "yes", "");
	}
	turn(&w);
	stands = w.core->holds->n_stands;
	ok(stands <= 100000, "%s: %d stand-ins", what, (int)stands);
	memset(&seen, 0, sizeof seen);
	seen.outcome = SLU_KUBE_OK;
	clock_gettime(CLOCK_MONOTONIC, &t);
	add_pod(&w, "v", "sluice", "4", "");
	turn(&w);
	took = since_ms(&t);
	ok(bound(&w, "v") == 1 && took < 1000, "%s: another's pod starts (%d ms)", what, (int)took);
	clock_gettime(CLOCK_MONOTONIC, &t);
	close_world(&w);
	took = since_ms(&t);
	ok(took < 2000, "%s: stopping is quick (%d ms)", what, (int)took);
}

int main(void)
{
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_kcodec *codec = slu_kcodec_new(pool);

	test_core_forged();
	flood(2000000, "1000 Jobs of 2 000 000 pods");
	flood(100000, "1000 Jobs of 100 000 pods");
	test_spaces();
	test_pod_patch(codec);
	test_pod_labels(codec);
	test_never_looser(codec);
	test_hold_patch(codec);
	test_core_pod();
	test_core_job();
	test_core_job_gone();
	test_core_user();
	test_core_failures();
	test_core_strangers();
	test_core_selector();
	test_core_hold_lost();
	test_core_refused_beside_running(0);
	test_core_refused_beside_running(6);
	test_core_restart();
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return tap_done();
}
