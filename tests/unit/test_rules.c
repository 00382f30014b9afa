/* The rules for groups, predicates and requests, as tables over objects. */
#include <stdio.h>

#include "control/rules/group.h"
#include "control/rules/predicate.h"
#include "control/rules/request.h"
#include "kube/codec.h"
#include "tap.h"

static struct slu_strpool *pool;
static struct slu_kcodec *codec;

static const struct slu_kobj *object(enum slu_kkind kind, const char *json)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };

	if (slu_kcodec_object(codec, kind, SLU_ENC_JSON, json, strlen(json), &o, &err) < 0)
		ok(false, "%s: %s", json, err.text);
	return o;
}

#define META(name, more) \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"u-" name "\"" more "}"
#define JOB(more, spec) META("job", more) ",\"spec\":{" spec ",\"template\":{}}}"
#define OWNED                                                                                                     \
	",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"job\",\"uid\":\"u-job\"," \
	"\"controller\":true}]"

static void test_identity(void)
{
	static const struct {
		const char *scheduler, *meta, *job, *key, *name;
		int rc;
		bool podgroup;
	} row[] = {
		/* no key names a group */
		{ "fluence", "", NULL, "u:u-pod", "fluence-group-pod", 0, false },
		{ "fluxnetes", "", NULL, "u:u-pod", "fluxnetes-group-ns-pod", 0, false },
		{ "sluice", "", NULL, "u:u-pod", "pod", 0, false },
		{ "fluence", OWNED, JOB("", "\"parallelism\":2"), "u:u-job", "fluence-group-ns-job",
		  0, false },
		/* labels and annotations, on pod and owner */
		{ "fluence", ",\"labels\":{\"fluence.pod-group\":\"g\"}", NULL, "g:g", "g", 0,
		  false },
		{ "fluence", ",\"annotations\":{\"fluence.flux-framework.org/pod-group\":\"g\"}",
		  NULL, "g:g", "g", 0, false },
		{ "fluence", OWNED,
		  JOB(",\"annotations\":{\"sluice.sh/group\":\"g\"}", "\"parallelism\":2"), "g:g",
		  "g", 0, false },
		{ "fluence", OWNED ",\"labels\":{\"fluxnetes.group-name\":\"pod\"}",
		  JOB(",\"labels\":{\"sluice.sh/group\":\"job\"}", "\"parallelism\":2"), "g:pod",
		  "pod", 0, false },
		/* precedence */
		{ "fluence",
		  ",\"labels\":{\"fluxnetes.group-name\":\"n\",\"fluence.pod-group\":\"f\",\"scheduling.x-k8s.io/pod-group\":\"x\"}",
		  NULL, "g:x", "x", 0, true },
		{ "fluence",
		  ",\"labels\":{\"fluxnetes.group-name\":\"n\",\"fluence.pod-group\":\"f\"},\"annotations\":{\"fluence.flux-framework.org/pod-group\":\"o\"}",
		  NULL, "g:o", "o", 0, false },
		/* known and ignored */
		{ "fluence", ",\"labels\":{\"fluxqueue.pod-group\":\"q\"}", NULL, "u:u-pod",
		  "fluence-group-pod", 0, false },
		/* no name */
		{ "fluence", ",\"annotations\":{\"sluice.sh/group\":\"two\\nlines\"}", NULL,
		  "u:u-pod", "fluence-group-pod", -EINVAL, false },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		char json[2000];
		struct slu_group_id id;
		struct slu_error err = { 0 };
		const struct slu_kobj *pod, *job = NULL;
		struct slu_group_source s = { 0 };
		int rc;

		snprintf(
			json, sizeof json,
			"{\"metadata\":{\"name\":\"pod\",\"namespace\":\"ns\",\"uid\":\"u-pod\"%s},"
			"\"spec\":{\"schedulerName\":\"%s\"}}",
			row[i].meta, row[i].scheduler);
		pod = object(SLU_KIND_POD, json);
		s.pod = slu_kpod(pod);
		if (row[i].job) {
			job = object(SLU_KIND_JOB, row[i].job);
			s.owner[s.n_owners++] = job;
		}
		rc = slu_group_identify(&s, &id, &err);
		ok(rc == row[i].rc && !strcmp(id.key, row[i].key) &&
			   !strcmp(id.name, row[i].name) && id.podgroup == row[i].podgroup,
		   "identity %zu: %s, %s (%s)", i, id.key, id.name, err.text);
		slu_kobj_unref(pod);
		slu_kobj_unref(job);
	}
}

static void test_long_names(void)
{
	struct slu_group_id id;
	struct slu_group_source s = { 0 };
	const struct slu_kobj *pod = object(
		SLU_KIND_POD,
		"{\"metadata\":{\"name\":\"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\","
		"\"namespace\":\"ns\",\"uid\":\"u\"},\"spec\":{\"schedulerName\":\"fluence\"}}");

	s.pod = slu_kpod(pod);
	ok(slu_group_identify(&s, &id, NULL) == 0 && strlen(id.name) == 63 && id.name[62] != '-',
	   "a name beyond 63 characters is cut and hashed: %s", id.name);
	slu_kobj_unref(pod);
	pod = object(
		SLU_KIND_POD,
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{"
		"\"sluice.sh/group\":\"x\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603"
		"\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\"}}}");
	s.pod = slu_kpod(pod);
	ok(slu_group_identify(&s, &id, NULL) == 0 && strlen(id.name) == 1 + 17 * 3 + 9 &&
		   id.name[1 + 17 * 3] == '-',
	   "a long name is not cut within a character: %s", id.name);
	slu_kobj_unref(pod);
	pod = object(SLU_KIND_POD,
		     "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\","
		     "\"annotations\":{\"sluice.sh/group\":\"--\"}}}");
	s.pod = slu_kpod(pod);
	ok(slu_group_identify(&s, &id, NULL) == 0 && !strcmp(id.name, "--"),
	   "nothing but dashes is a name: %s", id.name);
	slu_kobj_unref(pod);
}

static void test_wishes(void)
{
	static const struct {
		const char *labels, *spec, *job, *pg;
		int rc;
		uint32_t min, max;
		int64_t duration;
		const char *err;
	} row[] = {
		{ "", "", NULL, NULL, 0, 1, UINT32_MAX, 0, "" },
		{ "", "", JOB("", "\"parallelism\":5"), NULL, 0, 5, UINT32_MAX, 0, "" },
		{ "", "", JOB("", "\"parallelism\":5,\"completions\":3"), NULL, 0, 3, UINT32_MAX, 0,
		  "" },
		{ "", "", JOB("", "\"parallelism\":0"), NULL, 0, 1, UINT32_MAX, 0, "" },
		{ "\"fluence.group-size\":\"3\"", "", JOB("", "\"parallelism\":5"), NULL, 0, 3,
		  UINT32_MAX, 0, "" },
		/* a derived group is one object: its size cannot be more than that makes */
		{ "\"fluence.group-size\":\"9\"", "", JOB("", "\"parallelism\":5"), NULL, 0, 5,
		  UINT32_MAX, 0, "" },
		/* a named one may span objects */
		{ "\"fluence.pod-group\":\"g\",\"fluence.group-size\":\"9\"", "",
		  JOB("", "\"parallelism\":5"), NULL, 0, 9, UINT32_MAX, 0, "" },
		/* the PodGroup decides */
		{ "\"fluence.pod-group\":\"g\",\"fluence.group-size\":\"9\"", "", NULL,
		  META("g", "") ",\"spec\":{\"minMember\":4}}", 0, 4, UINT32_MAX, 0, "" },
		/* elastic */
		{ "\"sluice.sh/min-size\":\"2\",\"sluice.sh/max-size\":\"4\"", "",
		  JOB("", "\"parallelism\":8"), NULL, 0, 2, 4, 0, "" },
		{ "\"sluice.sh/min-size\":\"5\",\"sluice.sh/max-size\":\"4\"", "", NULL, NULL,
		  -EINVAL, 0, 0, 0, "sluice.sh/min-size 5 is above sluice.sh/max-size 4" },
		/* durations */
		{ "", "\"activeDeadlineSeconds\":30", NULL, NULL, 0, 1, UINT32_MAX, 30, "" },
		{ "", "", JOB("", "\"parallelism\":2,\"activeDeadlineSeconds\":90"), NULL, 0, 2,
		  UINT32_MAX, 90, "" },
		{ "", "\"activeDeadlineSeconds\":30",
		  JOB("", "\"parallelism\":2,\"activeDeadlineSeconds\":90"), NULL, 0, 2, UINT32_MAX,
		  30, "" },
		{ "\"sluice.sh/duration\":\"15m\"", "", NULL, NULL, 0, 1, UINT32_MAX, 900, "" },
		{ "\"sluice.sh/duration\":\"15m\"", "\"activeDeadlineSeconds\":30", NULL, NULL, 0,
		  1, UINT32_MAX, 30, "" },
		{ "\"sluice.sh/duration\":\"soon\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "sluice.sh/duration: \"soon\" is not a duration (90, 15m, 1h30m, 7d)" },
		{ "\"sluice.sh/duration\":\"1h30m\"", "", NULL, NULL, 0, 1, UINT32_MAX, 5400, "" },
		{ "\"sluice.sh/duration\":\"0\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "sluice.sh/duration: \"0\" is a duration of zero; leave the key out for the default" },
		/* nonsense */
		{ "\"sluice.sh/after\":\"ok:a,okay:x,b\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "sluice.sh/after: \"okay:x\" begins with none of ok:, failed:, start:, end:" },
		{ "\"sluice.sh/after\":\"ok:cronjob/x\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "sluice.sh/after: \"cronjob/x\" names none of pod/, job/, replicaset/, statefulset/, "
		  "deployment/, podgroup/, fluxjob/" },
		{ "\"sluice.sh/after\":\"app!=x\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "sluice.sh/after: \"app!=x\" is not a selector (a=b, a=b&c=d)" },
		{ "\"fluence.group-size\":\"five\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "fluence.group-size: \"five\" is not a number" },
		{ "\"fluence.group-size\":\"0\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "fluence.group-size: 0 is outside 1..1000" },
		{ "\"fluence.group-size\":\"99999999999999999999\"", "", NULL, NULL, -EINVAL, 0, 0,
		  0, "fluence.group-size: 99999999999999999999 is outside 1..1000" },
		{ "\"sluice.sh/exclusive\":\"perhaps\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "sluice.sh/exclusive: \"perhaps\" is neither true nor false" },
		{ "\"sluice.sh/begin\":\"tomorrow\"", "", NULL, NULL, -EINVAL, 0, 0, 0,
		  "sluice.sh/begin: \"tomorrow\" is not a time (2026-01-31T14:00:00Z, or seconds)" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		char json[2000];
		struct slu_group_id id;
		struct slu_group_wish w = { 0 };
		struct slu_error err = { 0 };
		struct slu_group_source s = { 0 };
		const struct slu_kobj *pod, *job = NULL, *pg = NULL;
		int rc;

		snprintf(json, sizeof json,
			 "{\"metadata\":{\"name\":\"pod\",\"namespace\":\"ns\",\"uid\":\"u-pod\"%s,"
			 "\"annotations\":{%s}},\"spec\":{\"schedulerName\":\"fluence\"%s%s}}",
			 row[i].job ? OWNED : "", row[i].labels, *row[i].spec ? "," : "",
			 row[i].spec);
		pod = object(SLU_KIND_POD, json);
		s.pod = slu_kpod(pod);
		if (row[i].job) {
			job = object(SLU_KIND_JOB, row[i].job);
			s.owner[s.n_owners++] = job;
		}
		if (row[i].pg)
			pg = object(SLU_KIND_PODGROUP_X, row[i].pg);
		slu_group_identify(&s, &id, NULL);
		rc = slu_group_wish(&s, &id, pg ? slu_kpodgroup(pg) : NULL, 1000, &w, &err);
		ok(rc == row[i].rc && w.min == row[i].min && w.max == row[i].max &&
			   w.duration_s == row[i].duration && !strcmp(err.text, row[i].err),
		   "wish %zu: %u..%u, %" PRId64 " s (%s)", i, w.min, w.max, w.duration_s, err.text);
		slu_kobj_unref(pod);
		slu_kobj_unref(job);
		slu_kobj_unref(pg);
	}
}

/* The webhook refuses early exactly what the daemon refuses later. */
static void test_pairs(void)
{
	static const struct {
		const char *key, *value;
		bool fine;
	} row[] = {
		{ "sluice.sh/size", "1000", true },
		{ "sluice.sh/size", "1001", false },
		{ "sluice.sh/max-size", "1000000000", false },
		{ "fluence.group-size", "0", false },
		{ "sluice.sh/duration", "01:30:00", true },
		{ "sluice.sh/duration", "0", false },
		{ "sluice.sh/duration", "0.0h", false },
		{ "sluice.sh/after", "a,ok:b,start:c,end:d:e", true },
		{ "sluice.sh/after", "okay:b", false },
		{ "sluice.sh/after", "a,,b", false },
		{ "sluice.sh/after", "job/a,ok:Deployment/b,start:fluxjob/c,pod/d,podgroup/e",
		  true },
		{ "sluice.sh/after", "cronjob/a", false },
		{ "sluice.sh/after", "job/", false },
		{ "sluice.sh/after", "app=x,ok:example.com/app=x&stage=1,app=", true },
		{ "sluice.sh/after", "=x", false },
		{ "sluice.sh/after", "app=x&", false },
		{ "sluice.sh/after", "app==x", false },
		{ "sluice.sh/after", "app!=x", false },
		{ "sluice.sh/after", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", false },
		{ "sluice.sh/begin", "5pm", false },
		{ "sluice.sh/exclusive", "yes", false },
		{ "example.com/size", "x", true },
	};
	static const struct {
		const char *key, *err;
	} name[] = {
		{ "sluice.sh/duration", "" },
		{ "sluice.sh/hold", "" },
		{ "sluice.sh/seen-us", "" },
		{ "app.kubernetes.io/name", "" },
		{ "sluice.sh/duraton",
		  "sluice.sh/duraton: no such key; did you mean sluice.sh/duration?" },
		{ "sluice.sh/Queue",
		  "sluice.sh/Queue: no such key; did you mean sluice.sh/queue?" },
		{ "sluice.sh/colour", "sluice.sh/colour: no such key" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_error err = { 0 };
		int rc = slu_group_check_pair(row[i].key, row[i].value, 1000, &err);

		ok((rc == 0) == row[i].fine, "%s=%s: %s", row[i].key, row[i].value,
		   rc ? err.text : "accepted");
	}
	for (size_t i = 0; i < SLU_LEN(name); i++) {
		struct slu_error err = { 0 };
		int rc = slu_key_check(name[i].key, &err);

		ok((rc == 0) == !*name[i].err && !strcmp(err.text, name[i].err), "key %s: \"%s\"",
		   name[i].key, err.text);
	}
}

static void test_times(void)
{
	static const struct {
		const char *in;
		int rc;
		int64_t s;
	} row[] = {
		{ "2026-01-31T14:00:00Z", 0, 1769868000 },
		{ "2026-01-31T15:00:00+01:00", 0, 1769868000 },
		{ "2026-01-31T08:30:00.25-05:30", 0, 1769868000 },
		{ "1769868000", 0, 1769868000 },
		{ "2026-01-31T14:00:00", -EINVAL, 0 },
		{ "2026-01-31T14:00:00+25:00", -EINVAL, 0 },
		{ "15m", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		int64_t s = 0;
		int rc = slu_group_parse_time(row[i].in, &s);

		ok(rc == row[i].rc && s == row[i].s, "the time \"%s\" is read as it should be",
		   row[i].in);
	}
}

static void test_predicates(void)
{
	static const char node[] = META(
		"n1",
		",\"labels\":{\"disk\":\"ssd\",\"cores\":\"16\"}") ",\"spec\":{\"taints\":[{\"key\":\"gpu\",\"value\":\"yes\",\"effect\":\"NoSchedule\"},"
								   "{\"key\":\"old\",\"effect\":\"PreferNoSchedule\"}]}}";
	static const struct {
		const char *spec;
		enum slu_no no;
	} row[] = {
		{ "", SLU_NO_TAINT },
#define TOL "\"tolerations\":[{\"key\":\"gpu\",\"operator\":\"Exists\"}]"
		{ TOL, SLU_NO_NOT },
		{ "\"tolerations\":[{\"operator\":\"Exists\"}]", SLU_NO_NOT },
		{ "\"tolerations\":[{\"key\":\"gpu\",\"value\":\"yes\"}]", SLU_NO_NOT },
		{ "\"tolerations\":[{\"key\":\"gpu\",\"value\":\"no\"}]", SLU_NO_TAINT },
		{ "\"tolerations\":[{\"key\":\"gpu\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}]",
		  SLU_NO_TAINT },
		{ TOL ",\"nodeSelector\":{\"disk\":\"ssd\"}", SLU_NO_NOT },
		{ TOL ",\"nodeSelector\":{\"disk\":\"hdd\"}", SLU_NO_SELECTOR },
		{ TOL ",\"nodeSelector\":{\"rack\":\"\"}", SLU_NO_SELECTOR },
#define REQ(expr)                                                                                  \
	TOL ",\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":" \
	    "{\"nodeSelectorTerms\":[" expr "]}}}"
#define EXPR(k, op, v) \
	"{\"matchExpressions\":[{\"key\":\"" k "\",\"operator\":\"" op "\",\"values\":[" v "]}]}"
		{ REQ(EXPR("disk", "In", "\"hdd\",\"ssd\"")), SLU_NO_NOT },
		{ REQ(EXPR("disk", "NotIn", "\"ssd\"")), SLU_NO_AFFINITY },
		{ REQ(EXPR("rack", "NotIn", "\"a\"")), SLU_NO_NOT },
		{ REQ(EXPR("rack", "Exists", "")), SLU_NO_AFFINITY },
		{ REQ(EXPR("rack", "DoesNotExist", "")), SLU_NO_NOT },
		{ REQ(EXPR("cores", "Gt", "\"15\"")), SLU_NO_NOT },
		{ REQ(EXPR("cores", "Lt", "\"16\"")), SLU_NO_AFFINITY },
		{ REQ(EXPR("disk", "Gt", "\"1\"")), SLU_NO_AFFINITY },
		/* one of the terms is enough; an empty term matches nothing */
		{ REQ(EXPR("rack", "Exists", "") "," EXPR("disk", "Exists", "")), SLU_NO_NOT },
		{ REQ("{}"), SLU_NO_AFFINITY },
		{ REQ("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]}"),
		  SLU_NO_NOT },
		{ REQ("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n2\"]}]}"),
		  SLU_NO_AFFINITY },
	};
	const struct slu_kobj *n = object(SLU_KIND_NODE, node);

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		char json[3000];
		const struct slu_kobj *pod;
		enum slu_no no;

		snprintf(json, sizeof json, META("pod", "") ",\"spec\":{%s}}", row[i].spec);
		pod = object(SLU_KIND_POD, json);
		no = slu_predicate_node(&slu_kpod(pod)->spec, slu_knode(n), false);
		ok(no == row[i].no, "predicate %zu: %s", i, slu_no_text(no));
		slu_kobj_unref(pod);
	}
	slu_kobj_unref(n);
}

static void test_requests(void)
{
#define POD(cpu, more)                                                             \
	META("pod", "")                                                            \
	",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{" \
	"\"cpu\":\"" cpu "\",\"memory\":\"1Gi\"}}" more "}]}}"
	const struct slu_kobj *a = object(SLU_KIND_POD, POD("1500m", ""));
	const struct slu_kobj *b = object(SLU_KIND_POD, POD("1.5", ""));
	const struct slu_kobj *c = object(SLU_KIND_POD, POD("2", ",\"ports\":[{\"hostPort\":80}]"));
	const struct slu_kobj *d = object(SLU_KIND_POD, POD("-1", ""));
	const struct slu_kobj *o[] = { a, b, c };
	struct slu_buf need[3], where[3], text = SLU_BUF_INIT(100);
	struct slu_error err = { 0 };

	for (int i = 0; i < 3; i++) {
		need[i] = where[i] = SLU_BUF_INIT(SLU_REQUEST_MAX);
		slu_request_need(&slu_kpod(o[i])->spec, &need[i]);
		slu_request_where("ns", &slu_kpod(o[i])->spec, &where[i]);
	}
	ok(need[0].n == need[1].n && !memcmp(need[0].p, need[1].p, need[0].n),
	   "1500m and 1.5 cpu are one shape");
	ok(need[0].n != need[2].n || memcmp(need[0].p, need[2].p, need[0].n), "2 cpu is another");
	ok(where[0].n == where[1].n && where[0].n != where[2].n,
	   "a host port changes where it may run");
	ok(slu_predicate_ports_collide(&slu_kpod(c)->spec, &slu_kpod(c)->spec) &&
		   !slu_predicate_ports_collide(&slu_kpod(c)->spec, &slu_kpod(a)->spec),
	   "equal host ports collide");
	slu_request_text(&slu_kpod(a)->spec, &text);
	ok(!strcmp(slu_buf_str(&text), "1500m cpu, 1Gi memory"),
	   "a request is printed in words: %s", slu_buf_str(&text));
	ok(!slu_request_check(slu_kpod(a), INT64_C(1) << 50, &err) &&
		   slu_request_check(slu_kpod(d), INT64_C(1) << 50, &err) == -EINVAL,
	   "a negative request is refused: %s", err.text);
	for (int i = 0; i < 3; i++) {
		slu_buf_done(&need[i]);
		slu_buf_done(&where[i]);
		slu_kobj_unref(o[i]);
	}
	slu_kobj_unref(d);
	slu_buf_done(&text);
}

int main(void)
{
	pool = slu_strpool_new();
	codec = slu_kcodec_new(pool);
	test_identity();
	test_long_names();
	test_wishes();
	test_pairs();
	test_times();
	test_predicates();
	test_requests();
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return tap_done();
}
