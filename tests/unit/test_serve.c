#include "control/io/leftout.h"
#include "serve/admit.h"
#include "serve/certs.h"
#include "tap.h"
#include "wire/json.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

/* ---- the webhook's answers ---- */

static int check_size(const char *key, const char *value, uint32_t max_size, struct slu_error *err)
{
	(void)max_size;
	if (strcmp(key, "sluice.sh/size") == 0 && strspn(value, "0123456789") != strlen(value))
		return slu_fail(err, -EINVAL, "sluice.sh/size: \"%s\" is not a number", value);
	return 0;
}

static const char *const schedulers[] = { "sluice", "fluence" };

static int digit(char c)
{
	static const char all[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = strchr(all, c);

	return p && c ? (int)(p - all) : -1;
}

static void unbase64(const char *s, char *out)
{
	for (; digit(s[0]) >= 0 && digit(s[1]) >= 0; s += 4) {
		int v = digit(s[0]) << 18 | digit(s[1]) << 12 | (digit(s[2]) & 63) << 6 |
			(digit(s[3]) & 63);

		*out++ = (char)(v >> 16);
		if (s[2] == '=')
			break;
		*out++ = (char)(v >> 8);
		if (s[3] == '=')
			break;
		*out++ = (char)v;
	}
	*out = '\0';
}

/* The allocation of a review that fails, with all after it; -1: none.  Whether one did. */
static long starving = -1;
static bool starved;

#define BIND "" /* in place of a schedulerName: mode "bind" */

/* The answer in short: "no: message", "as it is", or the patch. */
static const char *admit_as(const char *user, const char *kind, const char *operation,
			    const char *object, bool hold, const char *held_scheduler)
{
	static const char *const controllers[] = { "system:kube-controller-manager", "op:" };
	static char short_answer[8192];
	bool binds = held_scheduler && !strcmp(held_scheduler, BIND);
	const struct slu_admit_rules rules = { .scheduler = schedulers,
					       .n_scheduler = 2,
					       .controller = controllers,
					       .n_controller = 2,
					       .hold = hold,
					       .held_scheduler = binds ? NULL : held_scheduler,
					       .binds = binds,
					       .check = check_size };
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *response;
	struct slu_buf in = SLU_BUF_INIT(1 << 20), out = SLU_BUF_INIT(1 << 20);
	struct slu_error err = { 0 };
	const char *patch;
	bool allowed = false;
	int rc;

	slu_buf_printf(
		&in,
		"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
		"\"uid\":\"u-1\",\"kind\":{\"kind\":\"%s\"},\"operation\":\"%s\",\"namespace\":\"lab\","
		"\"userInfo\":{\"username\":\"%s\"},\"object\":%s}}",
		kind, operation, user, object);
	if (starving >= 0)
		slu_fault_arm(starving);
	rc = slu_admit(in.p, in.n, &rules, 1234567, &out, &err);
	starved = slu_fault_disarm();
	slu_buf_done(&in);
	if (rc < 0) {
		snprintf(short_answer, sizeof short_answer, "error %d %s", rc, err.text);
		slu_buf_done(&out);
		return short_answer;
	}
	slu_json_parse(out.p, out.n, NULL, &doc, &err);
	slu_buf_done(&out);
	response = slu_json_get(slu_json_root(doc), "response");
	slu_json_bool(slu_json_get(response, "allowed"), &allowed);
	patch = slu_json_str(slu_json_get(response, "patch"));
	if (strcmp(slu_json_str_or(slu_json_get(response, "uid"), ""), "u-1") != 0)
		return "wrong uid";
	if (!allowed)
		snprintf(short_answer, sizeof short_answer, "no: %s",
			 slu_json_str_or(slu_json_dig(response, "status", "message", NULL), ""));
	else if (patch)
		unbase64(patch, short_answer);
	else
		strcpy(short_answer, "as it is");
	return short_answer;
}

/* Objects that have a controller come from one; others from a user. */
static const char *admit(const char *kind, const char *operation, const char *object, bool hold,
			 const char *held_scheduler)
{
	return admit_as(strstr(object, "\"controller\":true") ? "system:kube-controller-manager"
							      : "ada",
			kind, operation, object, hold, held_scheduler);
}

/* When memory runs out, a review is answered with an error (the API server then continues
 * without Sluice) or as usual: never with half a patch. */
static void test_starved(void)
{
	static const char job[] =
		"{\"metadata\":{\"name\":\"j\",\"annotations\":{\"sluice.sh/duration\":\"1h\"}},"
		"\"spec\":{\"parallelism\":2,\"template\":{\"spec\":{\"schedulerName\":\"sluice\","
		"\"containers\":[{\"name\":\"c\"}]}}}}";
	char whole[8192];
	bool good = true;
	long k = 0;

	snprintf(whole, sizeof whole, "%s", admit("Job", "CREATE", job, true, NULL));
	for (starved = true; starved; k++) {
		const char *said;

		starving = k;
		said = admit("Job", "CREATE", job, true, NULL);
		if (strcmp(said, whole) != 0 && strncmp(said, "error ", 6) != 0) {
			good = false;
			ok(false, "allocation %ld: %s", k, said);
		}
	}
	starving = -1;
	ok(good && k > 3 && *whole == '[', "%ld allocations of a review may fail: %s", k - 1,
	   whole);
}

/* Anybody may write an owner reference, and another user's name beside it. */
static void test_forged_owner(void)
{
	static const char pod[] =
		"{\"metadata\":{\"annotations\":{\"sluice.sh/user\":\"grace\"},\"ownerReferences\":["
		"{\"kind\":\"ConfigMap\",\"controller\":true}]},\"spec\":{\"schedulerName\":\"sluice\"}}";
	static const char cron[] =
		"{\"metadata\":{\"annotations\":{\"sluice.sh/seen-us\":\"1\"},\"ownerReferences\":["
		"{\"kind\":\"CronJob\",\"controller\":true}]},\"spec\":{\"template\":{\"spec\":{\"schedulerName\":\"sluice\"}}}}";

	ok(strstr(admit_as("ada", "Pod", "CREATE", pod, false, NULL), "\"value\":\"ada\""),
	   "a user's pod with an owner is the user's, whatever name it carries");
	ok(!strcmp(admit_as("op:jobset", "Pod", "CREATE", pod, false, NULL),
		   "[{\"op\":\"remove\",\"path\":\"/metadata/annotations/sluice.sh~1user\",\"value\":null}]"),
	   "an object of a listed controller has its owner's user; user keys in a template are removed");
	ok(strstr(admit_as("system:kube-controller-manager", "Job", "CREATE", cron, false, NULL),
		  "\"remove\"") &&
		   strstr(admit_as("system:kube-controller-manager", "Job", "CREATE", cron, true,
				   NULL),
			  "\"remove\""),
	   "the Job of a CronJob, held or not, brings neither a user nor an arrival");
	ok(strstr(admit_as("ops", "Pod", "CREATE", pod, false, NULL), "\"value\":\"ops\""),
	   "a controller that is not listed counts as a user");
}

/* Reviews that no configuration of ours asks for, or no API server would send: each is let through as it is. */
static void test_odd_reviews(void)
{
#define POD "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"schedulerName\":\"sluice\"}}"
	static const struct {
		const char *kind, *operation, *object;
	} row[] = {
		{ "Pod", "UPDATE", POD },
		{ "Pod", "DELETE", "null" },
		{ "Pod", "CONNECT", "{\"kind\":\"PodExecOptions\"}" },
		{ "Pod", "create", POD },
		{ "Pod", "", POD },
		{ "Binding", "CREATE", "{\"metadata\":{},\"target\":{\"name\":\"n0\"}}" },
		{ "Eviction", "CREATE", "{\"metadata\":{\"name\":\"p\"}}" },
		{ "Scale", "UPDATE", "{\"metadata\":{},\"spec\":{\"replicas\":99999}}" },
		{ "Secret", "CREATE", POD },
		{ "Pod", "CREATE", "[" POD "]" },
		{ "Pod", "CREATE",
		  "\""
		  "text"
		  "\"" },
		{ "Pod", "CREATE", "{\"metadata\":[],\"spec\":{\"schedulerName\":\"sluice\"}}" },
		{ "Pod", "CREATE", "{\"metadata\":{},\"spec\":[1]}" },
		{ "Job", "CREATE", "{\"metadata\":{},\"spec\":{\"template\":null}}" },
		{ "Job", "CREATE", "{\"metadata\":{},\"spec\":{\"template\":{\"spec\":7}}}" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++)
		for (int hold = 0; hold < 2; hold++) {
			const char *said = admit(row[i].kind, row[i].operation, row[i].object, hold,
						 NULL);

			ok(!strcmp(said, "as it is"), "%s of a %s like %s: %s", row[i].operation,
			   row[i].kind, row[i].object, said);
		}
#undef POD
}

#define NOTE                                                                                     \
	"{\"op\":\"add\",\"path\":\"/metadata/annotations/sluice.sh~1user\",\"value\":\"ada\"}," \
	"{\"op\":\"add\",\"path\":\"/metadata/annotations/sluice.sh~1seen-us\",\"value\":\"1234567\"}"
#define NOT_SET(what)                                                              \
	"{\"op\":\"remove\",\"path\":\"/metadata/annotations/sluice.sh~1set-" what \
	"\",\"value\":null}"
#define BY_US(spec)     ",{\"op\":\"add\",\"path\":\"" spec "/schedulerName\",\"value\":\"sluice\"}"
#define HELD            "{\"op\":\"add\",\"path\":\"/metadata/annotations/sluice.sh~1held\",\"value\":\"yes\"}"
#define NEW_ANNOTATIONS "{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{}},"

static void test_admit(void)
{
	static const struct {
		const char *what, *kind, *operation, *object, *want;
		bool hold;
		const char *scheduler;
	} row[] = {
		{ "a pod that does not ask for us", "Pod", "CREATE",
		  "{\"metadata\":{},\"spec\":{}}", "as it is", false, NULL },
		{ "a pod for another scheduler", "Pod", "CREATE",
		  "{\"metadata\":{},\"spec\":{\"schedulerName\":\"volcano\"}}", "as it is", false,
		  NULL },
		{ "a pod that asks", "Pod", "CREATE",
		  "{\"metadata\":{},\"spec\":{\"schedulerName\":\"sluice\"}}",
		  "[" NEW_ANNOTATIONS NOTE "]", false, NULL },
		{ "forged notes are overwritten", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{\"sluice.sh/user\":\"root\"}},"
		  "\"spec\":{\"schedulerName\":\"sluice\"}}",
		  "[" NOTE "]", false, NULL },
		{ "a priority and a limit that no operator set are removed", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{\"sluice.sh/set-priority\":\"1000\","
		  "\"sluice.sh/set-limit\":\"60\"}},\"spec\":{\"template\":{\"spec\":{"
		  "\"schedulerName\":\"sluice\"}}}}",
		  "[" NOTE "," NOT_SET("priority") "," NOT_SET("limit") "]", false, NULL },
		{ "a priority and a limit that were not given are removed from what a controller makes, too",
		  "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{\"sluice.sh/set-priority\":\"1000\","
		  "\"sluice.sh/user\":\"grace\"},\"ownerReferences\":[{\"controller\":true}]},"
		  "\"spec\":{\"schedulerName\":\"sluice\"}}",
		  "[" NOT_SET("priority") ",{\"op\":\"remove\",\"path\":\"/metadata/annotations/"
					  "sluice.sh~1user\",\"value\":null}]",
		  false, NULL },
		{ "a priority noted on a pod that is not ours", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{\"sluice.sh/set-priority\":\"1000\"}},\"spec\":{}}",
		  "as it is", false, NULL },
		{ "what we note later is left alone", "Job", "UPDATE",
		  "{\"metadata\":{\"annotations\":{\"sluice.sh/set-priority\":\"7\"}},\"spec\":{"
		  "\"template\":{\"spec\":{\"schedulerName\":\"sluice\"}}}}",
		  "as it is", false, NULL },
		{ "a Job that asks in its template", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"template\":{\"spec\":{\"schedulerName\":"
		  "\"fluence\"}}}}",
		  "[" NOTE "]", false, NULL },
		{ "an update is left alone", "Pod", "UPDATE",
		  "{\"metadata\":{},\"spec\":{\"schedulerName\":\"sluice\"}}", "as it is", false,
		  NULL },
		{ "a pod some controller makes", "Pod", "CREATE",
		  "{\"metadata\":{\"ownerReferences\":[{\"controller\":true}]},\"spec\":{\"schedulerName\":"
		  "\"sluice\"}}",
		  "as it is", false, NULL },
		{ "a size that is no number", "Pod", "CREATE",
		  "{\"metadata\":{\"labels\":{\"sluice.sh/size\":\"many\"}},\"spec\":{\"schedulerName\":"
		  "\"sluice\"}}",
		  "no: sluice.sh/size: \"many\" is not a number", false, NULL },
		{ "the same in a template", "Job", "CREATE",
		  "{\"metadata\":{},\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"sluice.sh/size\":"
		  "\"-\"}},\"spec\":{\"schedulerName\":\"sluice\"}}}}",
		  "no: sluice.sh/size: \"-\" is not a number", false, NULL },
		{ "a wrong size of another user's pod", "Pod", "CREATE",
		  "{\"metadata\":{\"labels\":{\"sluice.sh/size\":\"many\"}},\"spec\":{}}",
		  "as it is", false, NULL },
		{ "a kind we do not know", "ConfigMap", "CREATE", "{\"metadata\":{},\"spec\":{}}",
		  "as it is", true, NULL },
		{ "no object at all (a deletion)", "Pod", "DELETE", "null", "as it is", true,
		  NULL },
		{ "a held pod, other gates kept", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"schedulingGates\":[{\"name\":\"x/y\"}]}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/schedulingGates/-\",\"value\":{\"name\":"
		  "\"fluxqueue\"}},{\"op\":\"add\",\"path\":\"/metadata/annotations/sluice.sh~1held\",\"value\":"
		  "\"yes\"}]",
		  true, NULL },
		{ "a pod that is held already", "Pod", "CREATE",
		  "{\"metadata\":{\"ownerReferences\":[{\"controller\":true}]},\"spec\":{\"schedulingGates\":["
		  "{\"name\":\"fluxqueue\"}]}}",
		  "as it is", true, NULL },
		{ "a held Job is suspended and gated", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"template\":{\"spec\":{}}}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/template/spec/schedulingGates\",\"value\":[{\"name\":"
		  "\"fluxqueue\"}]},{\"op\":\"add\",\"path\":\"/spec/suspend\",\"value\":true},{\"op\":\"add\","
		  "\"path\":\"/metadata/annotations/sluice.sh~1held\",\"value\":\"yes\"}]",
		  true, NULL },
		{ "a Job its user suspended is remembered as such", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"suspend\":true,\"template\":{\"spec\":{}}}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/template/spec/schedulingGates\",\"value\":[{\"name\":"
		  "\"fluxqueue\"}]},{\"op\":\"add\",\"path\":\"/spec/suspend\",\"value\":true},{\"op\":\"add\","
		  "\"path\":\"/metadata/annotations/sluice.sh~1held\",\"value\":\"user\"}]",
		  true, NULL },
		{ "a Deployment as Fluxqueue held it", "Deployment", "CREATE",
		  "{\"metadata\":{\"name\":\"web\",\"annotations\":{},\"labels\":{}},\"spec\":{\"template\":{"
		  "\"metadata\":{\"labels\":{}},\"spec\":{}}}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/template/metadata/labels/fluxqueue.seen\",\"value\":"
		  "\"yes\"},{\"op\":\"add\",\"path\":\"/spec/template/metadata/labels/fluxqueue.selector\","
		  "\"value\":\"deployment-web-lab\"},{\"op\":\"add\",\"path\":\"/spec/template/spec/"
		  "schedulerName\",\"value\":\"FluxionScheduler\"},{\"op\":\"add\",\"path\":\"/spec/template/spec/"
		  "schedulingGates\",\"value\":[{\"name\":\"fluxqueue\"}]},{\"op\":\"add\",\"path\":\"/metadata/"
		  "annotations/sluice.sh~1held\",\"value\":\"yes\"},{\"op\":\"add\",\"path\":\"/metadata/labels/"
		  "fluxqueue.seen\",\"value\":\"yes\"}]",
		  true, "FluxionScheduler" },
		{ "a Job in mode bind names Sluice and has no gate", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"template\":{\"spec\":{"
		  "\"schedulerName\":\"default-scheduler\"}}}}",
		  "[" NOTE BY_US(
			  "/spec/template/spec") ",{\"op\":\"add\",\"path\":\"/spec/template/metadata\",\"value\":{}},"
						 "{\"op\":\"add\",\"path\":\"/spec/template/metadata/annotations\",\"value\":{}},"
						 "{\"op\":\"add\",\"path\":\"/spec/template/metadata/annotations/sluice.sh~1held\","
						 "\"value\":\"yes\"},"
						 "{\"op\":\"add\",\"path\":\"/spec/suspend\",\"value\":true}," HELD
						 "]",
		  true, BIND },
		{ "the same Job, asked about once more", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{\"sluice.sh/held\":\"yes\"}},\"spec\":{\"suspend\":true,"
		  "\"template\":{\"metadata\":{\"annotations\":{\"sluice.sh/held\":\"yes\"}},\"spec\":{"
		  "\"schedulerName\":\"sluice\"}}}}",
		  "[" NOTE "]", true, BIND },
		{ "a pod in mode bind", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{}}",
		  "[" NOTE BY_US("/spec") "," HELD "]", true, BIND },
		{ "a pod that its template holds in mode bind", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{\"sluice.sh/held\":\"yes\"},\"ownerReferences\":["
		  "{\"controller\":true}]},\"spec\":{\"schedulerName\":\"sluice\"}}",
		  "as it is", true, BIND },
		{ "in mode bind, what only the default scheduler decides stays with it, gated",
		  "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"schedulerName\":\"default-scheduler\","
		  "\"resourceClaims\":[{\"name\":\"gpu\"}]}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/schedulingGates\",\"value\":[{\"name\":\"fluxqueue\"}]}," HELD
		  "]",
		  true, BIND },
		{ "in mode bind, a pod for a third scheduler stays with that one, gated", "Pod",
		  "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"schedulerName\":\"volcano\"}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/schedulingGates\",\"value\":[{\"name\":\"fluxqueue\"}]}," HELD
		  "]",
		  true, BIND },
		{ "a user and a priority that nobody gave are removed from a template, too", "Job",
		  "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"template\":{\"metadata\":{\"annotations\":{"
		  "\"sluice.sh/set-priority\":\"1000\",\"sluice.sh/user\":\"root\"}},\"spec\":{"
		  "\"schedulerName\":\"sluice\"}}}}",
		  "[" NOTE
		  ",{\"op\":\"remove\",\"path\":\"/spec/template/metadata/annotations/sluice.sh~1set-priority\","
		  "\"value\":null},{\"op\":\"remove\",\"path\":\"/spec/template/metadata/annotations/"
		  "sluice.sh~1user\",\"value\":null}]",
		  false, NULL },
		{ "a label alone is no way around the door", "Pod", "CREATE",
		  "{\"metadata\":{\"labels\":{\"fluxqueue.seen\":\"yes\"},\"annotations\":{}},\"spec\":{}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/schedulingGates\",\"value\":[{\"name\":\"fluxqueue\"}]},"
		  "{\"op\":\"add\",\"path\":\"/metadata/annotations/sluice.sh~1held\",\"value\":\"yes\"}]",
		  true, NULL },
		{ "a DaemonSet's pod is made for its node", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{},\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"controller\":"
		  "true}]},\"spec\":{}}",
		  "as it is", true, NULL },
		{ "a pod that has its node", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"nodeName\":\"n1\"}}",
		  "[" NOTE "]", true, NULL },
		{ "a Deployment's own ReplicaSet is not changed behind its back", "ReplicaSet",
		  "CREATE",
		  "{\"metadata\":{\"annotations\":{},\"ownerReferences\":[{\"kind\":\"Deployment\",\"controller\":"
		  "true}]},\"spec\":{\"template\":{\"spec\":{}}}}",
		  "as it is", true, NULL },
		{ "a CronJob's Job is held", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{},\"ownerReferences\":[{\"kind\":\"CronJob\",\"controller\":"
		  "true}]},\"spec\":{\"template\":{\"spec\":{}}}}",
		  "[{\"op\":\"add\",\"path\":\"/spec/template/spec/schedulingGates\",\"value\":[{\"name\":"
		  "\"fluxqueue\"}]},{\"op\":\"add\",\"path\":\"/spec/suspend\",\"value\":true},{\"op\":\"add\","
		  "\"path\":\"/metadata/annotations/sluice.sh~1held\",\"value\":\"yes\"}]",
		  true, NULL },
		{ "pod anti-affinity goes to the default scheduler, gated", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"schedulerName\":\"sluice\",\"affinity\":{"
		  "\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{}]}}}}",
		  "[" NOTE ",{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":"
		  "\"default-scheduler\"},{\"op\":\"add\",\"path\":\"/spec/schedulingGates\",\"value\":[{"
		  "\"name\":\"fluxqueue\"}]}]",
		  false, NULL },
		{ "pod anti-affinity by host stays with Sluice", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"schedulerName\":\"sluice\",\"affinity\":{"
		  "\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"
		  "\"kubernetes.io/hostname\"}]}}}}",
		  "[" NOTE "]", false, NULL },
		{ "a soft spread stays with Sluice", "Pod", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"schedulerName\":\"sluice\","
		  "\"topologySpreadConstraints\":[{\"whenUnsatisfiable\":\"ScheduleAnyway\"}]}}",
		  "[" NOTE "]", false, NULL },
		{ "an unbound claim in a template", "Job", "CREATE",
		  "{\"metadata\":{\"annotations\":{}},\"spec\":{\"template\":{\"spec\":{\"schedulerName\":"
		  "\"sluice\",\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}}}",
		  "[" NOTE
		  ",{\"op\":\"add\",\"path\":\"/spec/template/spec/schedulerName\",\"value\":"
		  "\"default-scheduler\"},{\"op\":\"add\",\"path\":\"/spec/template/spec/schedulingGates\","
		  "\"value\":[{\"name\":\"fluxqueue\"}]}]",
		  false, NULL },
	};
	struct slu_buf out = SLU_BUF_INIT(1 << 16);
	const struct slu_admit_rules rules = {
		.scheduler = schedulers, .n_scheduler = 2, .hold = true, .check = check_size
	};
	static const char *const bad[] = {
		"", "{", "[]", "{\"apiVersion\":\"admission.k8s.io/v1beta1\"}",
		"{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{}}"
	};
	static const char named[] =
		"{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":\"1\","
		"\"namespace\":\"lab\"}}";
	struct slu_error err = { 0 };
	char space[64];

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		const char *got = admit(row[i].kind, row[i].operation, row[i].object, row[i].hold,
					row[i].scheduler);

		if (!ok(strcmp(got, row[i].want) == 0, "%s", row[i].what))
			printf("# got  %s\n# want %s\n", got, row[i].want);
	}
	for (size_t i = 0; i < SLU_LEN(bad); i++)
		ok(slu_admit(bad[i], strlen(bad[i]), &rules, 1, &out, &err) == -EINVAL &&
			   out.n == 0,
		   "a body that is not a review is refused: %s", err.text);
	ok(slu_admit_namespace(named, strlen(named), space, sizeof space, &err) == 0 &&
		   strcmp(space, "lab") == 0,
	   "the namespace of a review");
	slu_buf_done(&out);
}

/* ---- certificates ---- */

#define NOW INT64_C(1800000000)

/* Verify as the API server would: chain, purpose, host name, strictly. */
static bool verifies(const struct slu_certs *c, const char *host, int64_t at_s)
{
	BIO *a = BIO_new_mem_buf(c->ca_cert, -1), *b = BIO_new_mem_buf(c->cert, -1);
	X509 *ca = PEM_read_bio_X509(a, NULL, NULL, NULL),
	     *leaf = PEM_read_bio_X509(b, NULL, NULL, NULL);
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_VERIFY_PARAM *param;
	bool good;

	X509_STORE_add_cert(store, ca);
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set_time(param, (time_t)at_s);
	X509_VERIFY_PARAM_set1_host(param, host, 0);
	good = X509_verify_cert(ctx) == 1;
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_free(ca);
	X509_free(leaf);
	BIO_free(a);
	BIO_free(b);
	return good;
}

static void test_certs(void)
{
	static const char *const dns[] = { "sluice.sluice-system.svc",
					   "sluice.sluice-system.svc.cluster.local" };
	static const char *const more[] = { "sluice.sluice-system.svc", "elsewhere.svc" };
	static const char *const odd[] = { "a,DNS:evil.example" };
	const int64_t day = 86400;
	struct slu_certs c = { 0 }, d = { 0 };
	struct slu_error err = { 0 };
	char *ca;

	ok(slu_certs_make(&c, dns, 2, NOW, &err) == 0, "a CA and a leaf are made (%s)", err.text);
	ok(verifies(&c, dns[0], NOW) && verifies(&c, dns[1], NOW),
	   "the certificates verify for both names");
	ok(!verifies(&c, "elsewhere.svc", NOW), "the certificates verify for no other name");
	ok(!verifies(&c, dns[0], NOW + 366 * day), "the certificates do not verify after a year");
	ok(slu_certs_check(&c, dns, 2, NOW, &err) == SLU_CERTS_GOOD,
	   "certificates that were just made are good");
	ok(slu_certs_check(&c, dns, 2, NOW + 276 * day, &err) == SLU_CERTS_LEAF_DUE,
	   "90 days before the end: %s", err.text);
	ok(slu_certs_check(&c, more, 2, NOW, &err) == SLU_CERTS_LEAF_DUE,
	   "the certificate does not verify for another name: %s", err.text);
	ok(slu_certs_check(&c, dns, 2, NOW + 3300 * day, &err) == SLU_CERTS_UNUSABLE,
	   "certificates whose authority expires within a year are unusable: %s", err.text);
	ca = slu_strdup(c.ca_cert);
	ok(slu_certs_renew(&c, more, 2, NOW + 276 * day, &err) == 0 && strcmp(ca, c.ca_cert) == 0,
	   "renewed under the same CA");
	ok(verifies(&c, "elsewhere.svc", NOW + 600 * day), "the new leaf verifies, later");
	slu_free(ca);
	slu_certs_make(&d, dns, 2, NOW, &err);
	slu_free(d.ca_key);
	d.ca_key = slu_strdup(c.ca_key);
	ok(slu_certs_check(&d, dns, 2, NOW, &err) == SLU_CERTS_UNUSABLE, "a foreign key: %s",
	   err.text);
	d.ca_cert[60] ^= 1;
	ok(slu_certs_check(&d, dns, 2, NOW, &err) == SLU_CERTS_UNUSABLE, "a damaged CA: %s",
	   err.text);
	slu_certs_done(&d);
	ok(slu_certs_check(&d, dns, 2, NOW, &err) == SLU_CERTS_UNUSABLE, "an empty bundle: %s",
	   err.text);
	ok(slu_certs_make(&d, odd, 1, NOW, &err) == -EINVAL,
	   "a DNS name with a separator is refused: %s", err.text);
	ok(slu_certs_make(&d, odd, 0, NOW, &err) == -EINVAL,
	   "a certificate without a name is refused: %s", err.text);
	slu_certs_done(&c);
}

/* When memory runs out, a bundle is made whole or not at all, and an existing one stays as it
 * was. */
static void test_certs_starved(void)
{
	static const char *const dns[] = { "sluice.sluice-system.svc" };
	struct slu_certs c = { 0 }, d = { 0 };
	struct slu_error err = { 0 };
	bool hit = true, good = true;
	long k = 0;

	for (; hit && k < 100; k++) {
		int rc;

		slu_fault_arm(k);
		rc = slu_certs_make(&c, dns, 1, NOW, &err);
		hit = slu_fault_disarm();
		good &= rc < 0 ? hit && !c.ca_cert && !c.ca_key && !c.cert && !c.key && *err.text
			       : slu_certs_check(&c, dns, 1, NOW, &err) == SLU_CERTS_GOOD;
		slu_certs_done(&c);
	}
	ok(good && k > 3, "%ld allocations of a new bundle may fail: %s", k - 1, err.text);
	slu_certs_make(&c, dns, 1, NOW, &err);
	for (hit = true, k = 0; hit && k < 100; k++) {
		int rc;

		d = (struct slu_certs){ slu_strdup(c.ca_cert), slu_strdup(c.ca_key),
					slu_strdup(c.cert), slu_strdup(c.key) };
		slu_fault_arm(k);
		rc = slu_certs_renew(&d, dns, 1, NOW + 86400, &err);
		hit = slu_fault_disarm();
		good &= slu_certs_check(&d, dns, 1, NOW, &err) == SLU_CERTS_GOOD &&
			(rc == 0 || (!strcmp(d.cert, c.cert) && !strcmp(d.key, c.key)));
		slu_fault_arm(k);
		if (slu_certs_check(&d, dns, 1, NOW, &err) == SLU_CERTS_UNUSABLE)
			good = false; /* a new authority would be made for want of memory */
		slu_fault_disarm();
		slu_certs_done(&d);
	}
	ok(good && k > 1, "%ld allocations of a renewal may fail, and the old leaf stays", k - 1);
	slu_certs_done(&c);
}

/* ---- objects that cannot be read ---- */

static struct slu_kbad bad_object(const char *ns, const char *name, const char *why)
{
	struct slu_kbad bad = { 0 };

	snprintf(bad.ns, sizeof bad.ns, "%s", ns);
	snprintf(bad.name, sizeof bad.name, "%s", name);
	snprintf(bad.why, sizeof bad.why, "%s", why);
	return bad;
}

static const char *left_out(const struct slu_leftout *l)
{
	static char text[16384];
	struct slu_buf b = SLU_BUF_INIT(sizeof text - 1);

	slu_leftout_write(l, &b);
	snprintf(text, sizeof text, "%s", slu_buf_str(&b));
	slu_buf_done(&b);
	return text;
}

static void leave_out(struct slu_leftout *l, enum slu_kkind kind, const char *ns, const char *name,
		      const char *why)
{
	struct slu_kbad bad = bad_object(ns, name, why);

	slu_leftout_add(l, kind, &bad);
}

static void test_leftout(void)
{
	static struct slu_leftout l;
	uint32_t lines = 0;
	char name[16];

	ok(!*left_out(&l), "nothing is left out at first");
	leave_out(&l, SLU_KIND_POD, "lab", "a", "spec: no object");
	leave_out(&l, SLU_KIND_NODE, "", "a", "status: two\nlines");
	leave_out(&l, SLU_KIND_POD, "lab", "a", "spec.containers: no array");
	leave_out(&l, SLU_KIND_POD, "", "", "no metadata");
	ok(!strcmp(left_out(&l), "left out: Pod lab/a: spec.containers: no array\n"
				 "left out: Node a: status: two?lines\n"
				 "left out: Pod ?: no metadata\n"),
	   "a line for each, with the newest cause:\n%s", left_out(&l));
	slu_leftout_drop(&l, SLU_KIND_JOB, "lab", "a");
	slu_leftout_drop(&l, SLU_KIND_POD, "lab", "a");
	ok(!strcmp(left_out(&l), "left out: Node a: status: two?lines\n"
				 "left out: Pod ?: no metadata\n"),
	   "an object that can be read again is no longer named");
	slu_leftout_listed(&l, SLU_KIND_POD);
	ok(strstr(left_out(&l), "Pod ?"), "the list it was met in leaves it");
	slu_leftout_listed(&l, SLU_KIND_POD);
	ok(!strcmp(left_out(&l), "left out: Node a: status: two?lines\n"),
	   "an object that the next list lacks is dropped");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "p%d", i);
		leave_out(&l, SLU_KIND_POD, "lab", name, "why");
	}
	for (const char *s = left_out(&l); (s = strchr(s, '\n')); s++)
		lines++;
	ok(lines == SLU_LEFTOUT_MAX + 1 &&
		   strstr(left_out(&l), "left out: more objects of kind Pod\n"),
	   "a flood has an end (%u lines)", lines);
	slu_leftout_listed(&l, SLU_KIND_POD);
	slu_leftout_listed(&l, SLU_KIND_POD);
	slu_leftout_listed(&l, SLU_KIND_NODE);
	slu_leftout_listed(&l, SLU_KIND_NODE);
	ok(!*left_out(&l), "once all left-out objects are gone nothing is left out");
}

int main(void)
{
	test_starved();
	test_admit();
	test_forged_owner();
	test_odd_reviews();
	test_certs();
	test_certs_starved();
	test_leftout();
	return tap_done();
}
