/* What a pod made from a template asks for once the server has admitted it; the expected amounts
 * are worked out by hand. */
#include <stdarg.h>
#include <stdio.h>

#include "kube/codec.h"
#include "kube/requests.h"
#include "tap.h"

static struct slu_strpool *pool;
static struct slu_kcodec *codec;

static const struct slu_kobj *made(enum slu_kkind kind, const char *fmt, ...) SLU_PRINTF(2, 3);
static const struct slu_kobj *made(enum slu_kkind kind, const char *fmt, ...)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };
	char text[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (slu_kcodec_object(codec, kind, SLU_ENC_JSON, text, (size_t)n, &o, &err) < 0)
		ok(false, "%s: %s", err.text, text);
	return o;
}

static const struct slu_kobj *job_of(const char *spec)
{
	return made(SLU_KIND_JOB,
		    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u\"},"
		    "\"spec\":{\"template\":{\"spec\":{%s}}}}",
		    spec);
}

static int64_t amount(const struct slu_kobj *pod, const char *name)
{
	const struct slu_kpodspec *s = &slu_kpod(pod)->spec;

	return slu_kamount_get(s->requests, s->nrequests, name);
}

#define MI (INT64_C(1) << 20)

/* One template, admitted with the LimitRanges and the RuntimeClass given; NULL: none. */
static void check(const char *spec, const char *limits, const char *class, int64_t cpu, int64_t mem,
		  int64_t gpu, const char *what)
{
	const struct slu_kobj *j = job_of(spec), *l = NULL, *rc = NULL, *p;
	struct slu_kadmission a = { .priority = 7 };

	if (limits) {
		l = made(SLU_KIND_LIMITRANGE,
			 "{\"metadata\":{\"name\":\"l\",\"namespace\":\"ns\"},"
			 "\"spec\":{\"limits\":[%s]}}",
			 limits);
		a.missing = slu_klimitrange(l)->requests;
		a.nmissing = slu_klimitrange(l)->nrequests;
	}
	if (class) {
		rc = made(SLU_KIND_RUNTIMECLASS, "{\"metadata\":{\"name\":\"kata\"},%s}", class);
		a.rc = slu_kruntimeclass(rc);
	}
	p = slu_kpod_stand_in(j, &slu_kjob(j)->tmpl, &a);
	ok(amount(p, "cpu") == cpu && amount(p, "memory") == mem &&
		   amount(p, "nvidia.com/gpu") == gpu && slu_kpod(p)->spec.priority == 7,
	   "%s (%lld, %lld, %lld)", what, (long long)amount(p, "cpu"),
	   (long long)amount(p, "memory"), (long long)amount(p, "nvidia.com/gpu"));
	slu_kobj_unref(p);
	slu_kobj_unref(l);
	slu_kobj_unref(rc);
	slu_kobj_unref(j);
}

#define C(res)        "\"containers\":[{\"name\":\"c\",\"resources\":{" res "}}]"
#define CONTAINER(it) "{\"type\":\"Container\",\"defaultRequest\":{" it "}}"

static void test_templates(void)
{
	check(C("\"limits\":{\"cpu\":\"8\",\"memory\":\"64Mi\",\"nvidia.com/gpu\":2}"), NULL, NULL,
	      8000, 64 * MI, 2, "limits count where no request is given");
	check(C("\"limits\":{\"cpu\":\"8\",\"memory\":\"64Mi\"},\"requests\":{\"cpu\":\"1\"}"),
	      NULL, NULL, 1000, 64 * MI, 0, "a request counts before its limit");
	check(C("\"limits\":{\"cpu\":\"8\"},\"requests\":{\"cpu\":\"0\"}"), NULL, NULL, 0, 0, 0,
	      "a request of nothing is a request");
	check("\"containers\":[{\"name\":\"a\",\"resources\":{}},{\"name\":\"b\",\"resources\":"
	      "{\"requests\":{\"cpu\":\"3\"}}}]",
	      CONTAINER("\"cpu\":\"2\",\"memory\":\"10Mi\""), NULL, 5000, 20 * MI, 0,
	      "a LimitRange fills in what each container lacks");
	check(C(""),
	      "{\"type\":\"Pod\",\"defaultRequest\":{\"cpu\":\"9\"}}," CONTAINER(
		      "\"cpu\":\"2\"") "," CONTAINER("\"cpu\":\"4\""),
	      NULL, 4000, 0, 0, "of several LimitRange items for containers the last counts");
	/* init 6 alone; side 1 + app 2 = 3, init while the sidecar runs 1 + 6 = 7 */
	check(C("\"requests\":{\"cpu\":\"2\"}") ",\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":"
						"{\"limits\":{\"cpu\":\"1\"}}},{\"name\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"6\"}}}]",
	      NULL, NULL, 7000, 0, 0, "limits of sidecars and init containers count as requests");
	/* the init container gets 5 from the LimitRange, more than the container's 2 */
	check(C("\"requests\":{\"cpu\":\"2\"}") ",\"initContainers\":[{\"name\":\"i\",\"resources\":{}}]",
	      CONTAINER("\"cpu\":\"5\""), NULL, 5000, 0, 0,
	      "a LimitRange fills in init containers too");
	check(C("\"requests\":{\"cpu\":\"2\",\"memory\":\"32Mi\"}"), NULL,
	      "\"overhead\":{\"podFixed\":{\"cpu\":\"250m\",\"memory\":\"16Mi\"}}", 2250, 48 * MI,
	      0, "the overhead of a RuntimeClass comes on top");
	check(C("") ",\"resources\":{\"limits\":{\"cpu\":\"4\"}}", NULL, NULL, 4000, 0, 0,
	      "a pod-level limit counts where nobody asks for anything");
	check(C("\"requests\":{\"cpu\":\"1\"}") ",\"resources\":{\"limits\":{\"cpu\":\"4\"}}", NULL,
	      NULL, 1000, 0, 0, "a pod-level limit does not count where a container has a request");
	check(C("\"requests\":{\"cpu\":\"1\"}") ",\"resources\":{\"requests\":{\"cpu\":\"3\"}}",
	      CONTAINER("\"cpu\":\"2\""), NULL, 3000, 0, 0, "a pod-level request counts above all");
}

static void test_class_places(void)
{
	const struct slu_kobj *j = job_of(C("") ",\"nodeSelector\":{\"a\":\"1\",\"z\":\"2\"},"
						"\"tolerations\":[{\"key\":\"t\"}]");
	const struct slu_kobj *rc = made(
		SLU_KIND_RUNTIMECLASS, "%s",
		"{\"metadata\":{\"name\":\"kata\"},\"scheduling\":{\"nodeSelector\":{\"kata\":\"yes\"},"
		"\"tolerations\":[{\"key\":\"kata\",\"operator\":\"Exists\"}]}}");
	struct slu_kadmission a = { .rc = slu_kruntimeclass(rc) };
	const struct slu_kobj *p = slu_kpod_stand_in(j, &slu_kjob(j)->tmpl, &a);
	const struct slu_kpodspec *s = &slu_kpod(p)->spec;

	ok(s->nnode_selector == 3 && slu_kpair_get(s->node_selector, 3, "kata") &&
		   slu_kpair_get(s->node_selector, 3, "a") &&
		   slu_kpair_get(s->node_selector, 3, "z"),
	   "the nodes of a RuntimeClass are added to the pod's own");
	ok(s->ntolerations == 2 && s->tolerations[1].op == SLU_TOL_EXISTS,
	   "the tolerations of a RuntimeClass are appended");
	slu_kobj_unref(p);
	slu_kobj_unref(rc);
	slu_kobj_unref(j);
}

static void test_host_network(void)
{
	const struct slu_kobj *j = job_of(
		"\"hostNetwork\":true,\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":80}]}]");
	const struct slu_kpodspec *s = &slu_kjob(j)->tmpl.spec;

	ok(s->nhost_ports == 1 && s->host_ports[0].port == 80,
	   "ports of a template in the host's network are host ports");
	slu_kobj_unref(j);
}

/* Asked for 7, allocated 3, actual 1, in every order of largeness. */
static void test_resized(void)
{
	static const struct {
		int asked, allocated, actual, counts;
		const char *reason;
	} row[] = {
		{ 7, 3, 1, 7000, "" },         { 1, 3, 7, 7000, "" },
		{ 1, 7, 3, 7000, "" },         { 7, 3, 1, 3000, "Infeasible" },
		{ 7, 3, 1, 7000, "Deferred" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		const struct slu_kobj *p = made(
			SLU_KIND_POD,
			"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
			"\"requests\":{\"cpu\":\"%d\"}}}]},\"status\":{\"conditions\":[{\"type\":\"%s\","
			"\"reason\":\"%s\"}],\"containerStatuses\":[{\"name\":\"c\",\"allocatedResources\":"
			"{\"cpu\":\"%d\"},\"resources\":{\"requests\":{\"cpu\":\"%d\"}}}]}}",
			row[i].asked, *row[i].reason ? "PodResizePending" : "Ready", row[i].reason,
			row[i].allocated, row[i].actual);

		ok(amount(p, "cpu") == row[i].counts,
		   "resize of a container: asked %d, has %d, uses %d %s", row[i].asked,
		   row[i].allocated, row[i].actual, row[i].reason);
		slu_kobj_unref(p);
		p = made(
			SLU_KIND_POD,
			"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"%d\"}},"
			"\"containers\":[{\"name\":\"c\"}]},\"status\":{\"conditions\":[{\"type\":\"%s\","
			"\"reason\":\"%s\"}],\"allocatedResources\":{\"cpu\":\"%d\"},"
			"\"resources\":{\"requests\":{\"cpu\":\"%d\"}}}}",
			row[i].asked, *row[i].reason ? "PodResizePending" : "Ready", row[i].reason,
			row[i].allocated, row[i].actual);
		ok(amount(p, "cpu") == row[i].counts,
		   "resize of a pod: asked %d, has %d, uses %d %s", row[i].asked, row[i].allocated,
		   row[i].actual, row[i].reason);
		slu_kobj_unref(p);
	}
}

static void test_anti(void)
{
	const struct slu_kobj *o = made(
		SLU_KIND_POD, "%s",
		"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"affinity\":{\"podAntiAffinity\":{"
		"\"requiredDuringSchedulingIgnoredDuringExecution\":["
		"{\"labelSelector\":{\"matchLabels\":{\"app\":\"db\"},\"matchExpressions\":[{\"key\":\"k\","
		"\"operator\":\"In\",\"values\":[\"a\",\"b\"]}]},\"topologyKey\":\"rack\","
		"\"namespaces\":[\"x\"]},{\"namespaceSelector\":{},\"topologyKey\":\"zone\"}]}}}}");
	const struct slu_kpodspec *s = &slu_kpod(o)->spec;

	ok(s->nanti == 2 && (s->flags & SLU_POD_ANTI_REQUIRED),
	   "both terms of the selector are kept");
	ok(s->anti[0].bits == SLU_ANTI_SELECTS && s->anti[0].nlabels == 1 &&
		   s->anti[0].nexprs == 1 && s->anti[0].exprs[0].nvalues == 2 &&
		   s->anti[0].nnamespaces == 1 && slu_kstr_is(s->anti[0].topology, "rack"),
	   "labels, expressions, namespaces and domain of a term");
	ok(s->anti[1].bits == SLU_ANTI_NAMESPACES && !s->anti[1].nns_labels,
	   "an empty selector of namespaces differs from none");
	slu_kobj_unref(o);
}

int main(void)
{
	pool = slu_strpool_new();
	codec = slu_kcodec_new(pool);
	test_templates();
	test_class_places();
	test_host_network();
	test_resized();
	test_anti();
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return tap_done();
}
