/* write_tool — every kind of write against a live API server, checked by its answers.  TAP.
 *
 *	write_tool KUBECONFIG NAMESPACE NODE TOKENFILE
 * The namespace is empty and takes pods; no scheduler but this program places "sluice-test" pods. */
#include <stdio.h>

#include "../tap.h"
#include "kube/encode.h"
#include "kube/lease.h"
#include "kube/write.h"
#include "wire/json.h"

static struct slu_loop *loop;
static struct slu_kube_client *client;
static const char *ns;

/* The last answer, kept. */
static struct {
	bool here;
	enum slu_kube_outcome outcome;
	int status;
	char error[512];
	struct slu_json_doc *doc;
} last;

static void keep(void *arg, const struct slu_kube_reply *r)
{
	slu_json_free(last.doc);
	last.doc = NULL;
	last.outcome = r->outcome;
	last.status = r->status;
	snprintf(last.error, sizeof last.error, "%s", r->error);
	if (r->body_len && strstr(r->content_type, "json") &&
	    slu_json_parse(r->body, r->body_len, NULL, &last.doc, NULL) < 0)
		last.doc = NULL;
	last.here = true;
}

static const struct slu_kdone done = { keep, NULL };

/* Wait for the answer to what was just sent. */
static enum slu_kube_outcome answer(int rc)
{
	if (rc < 0) {
		printf("# not sent: %d\n", rc);
		return SLU_KUBE_FAILED;
	}
	if (!slu_loop_run_until(loop, &last.here, 30 * SLU_NS_PER_S))
		printf("# no answer\n");
	last.here = false;
	return last.outcome;
}

static const char *field(const char *a, const char *b)
{
	const char *s = slu_json_str(slu_json_dig(slu_json_root(last.doc), a, b, NULL));

	return s ? s : "";
}

static enum slu_kube_outcome post(const char *root, const char *rest, const char *type,
				  const struct slu_buf *b)
{
	char path[256];
	struct slu_kube_request q = { .method = SLU_HTTP_POST,
				      .path = path,
				      .content_type = type,
				      .body = b->p,
				      .body_len = b->n,
				      .done = keep };

	snprintf(path, sizeof path, "%s/namespaces/%s/%s", root, ns, rest);
	return answer(slu_kube_send(client, &q, NULL));
}

static void make_pod(const char *name, char uid[64])
{
	struct slu_buf b = SLU_BUF_INIT(4096);
	struct slu_ktarget t = slu_ktarget(SLU_KIND_POD, ns, NULL, NULL);

	slu_buf_printf(
		&b,
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":"
		"{\"schedulerName\":\"sluice-test\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
		name);
	ok(answer(slu_kube_create(client, &t, b.p, b.n, done)) == SLU_KUBE_OK,
	   "create of %s is accepted %s", name, last.error);
	snprintf(uid, 64, "%s", field("metadata", "uid"));
	slu_buf_done(&b);
}

static enum slu_kube_outcome patch(const char *pod, const char *sub, enum slu_kpatch type,
				   const char *text, const struct slu_kpatch_options *o)
{
	struct slu_ktarget t = slu_ktarget(SLU_KIND_POD, ns, pod, sub);

	return answer(slu_kube_patch(client, &t, type, text, strlen(text), o, done));
}

static const char *label(const char *key)
{
	const char *s = slu_json_str(
		slu_json_dig(slu_json_root(last.doc), "metadata", "labels", key, NULL));

	return s ? s : "";
}

static void check_patches(const char *uid)
{
	struct slu_ktarget t = slu_ktarget(SLU_KIND_POD, ns, "a", NULL);
	struct slu_kpatch_options o = { .field_manager = "write-tool", .force = true };
	struct slu_kenc_condition c = { "PodScheduled", "False", "Unschedulable",
					"waiting \"here\"", INT64_C(1794781020000000) };
	struct slu_buf b = SLU_BUF_INIT(4096);

	ok(answer(slu_kube_get(client, &t, NULL, done)) == SLU_KUBE_OK &&
		   strcmp(field("metadata", "uid"), uid) == 0,
	   "get returns the pod with its uid");
	ok(patch("a", NULL, SLU_KPATCH_MERGE, "{\"metadata\":{\"labels\":{\"m\":\"1\"}}}", NULL) ==
			   SLU_KUBE_OK &&
		   strcmp(label("m"), "1") == 0,
	   "a merge patch is applied %s", last.error);
	ok(patch("a", NULL, SLU_KPATCH_JSON,
		 "[{\"op\":\"test\",\"path\":\"/metadata/labels/m\",\"value\":\"1\"},"
		 "{\"op\":\"add\",\"path\":\"/metadata/labels/j\",\"value\":\"2\"}]",
		 NULL) == SLU_KUBE_OK &&
		   strcmp(label("j"), "2") == 0,
	   "a JSON patch is applied %s", last.error);
	ok(patch("a", NULL, SLU_KPATCH_JSON,
		 "[{\"op\":\"test\",\"path\":\"/metadata/labels/m\",\"value\":\"no\"}]",
		 NULL) == SLU_KUBE_INVALID,
	   "a JSON patch whose test fails is refused: %s", last.error);
	ok(patch("a", NULL, SLU_KPATCH_STRATEGIC,
		 "{\"spec\":{\"tolerations\":[{\"key\":\"x\",\"operator\":\"Exists\"}]}}",
		 NULL) == SLU_KUBE_OK,
	   "a strategic merge patch is applied %s", last.error);
	ok(patch("a", NULL, SLU_KPATCH_APPLY,
		 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"s\":\"3\"}}}",
		 &o) == SLU_KUBE_OK &&
		   strcmp(label("s"), "3") == 0,
	   "a server-side apply is accepted %s", last.error);
	ok(patch("a", NULL, SLU_KPATCH_MERGE,
		 "{\"metadata\":{\"resourceVersion\":\"1\",\"labels\":{\"m\":\"9\"}}}",
		 NULL) == SLU_KUBE_CONFLICT,
	   "a patch of an old version conflicts: %s", last.error);
	slu_kenc_pod_condition(&b, uid, &c);
	ok(patch("a", "status", SLU_KPATCH_STRATEGIC, slu_buf_str(&b), NULL) == SLU_KUBE_OK &&
		   strstr(slu_json_str_or(
				  slu_json_get(
					  slu_json_item(slu_json_dig(slu_json_root(last.doc),
								     "status", "conditions", NULL),
							0),
					  "message"),
				  ""),
			  "waiting \"here\""),
	   "the condition PodScheduled is written %s", last.error);
	slu_buf_reset(&b);
	slu_kenc_pod_condition(&b, "00000000-0000-0000-0000-000000000000", &c);
	ok(patch("a", "status", SLU_KPATCH_STRATEGIC, slu_buf_str(&b), NULL) == SLU_KUBE_INVALID,
	   "a condition for another uid is refused: %s", last.error);
	ok(patch("none", NULL, SLU_KPATCH_MERGE, "{}", NULL) == SLU_KUBE_NOT_FOUND,
	   "a patch of a pod that does not exist is not found: %s", last.error);
	slu_buf_done(&b);
}

static void check_binding(const char *node, const char *uid)
{
	struct slu_ktarget t = slu_ktarget(SLU_KIND_POD, ns, "a", NULL);

	ok(answer(slu_kube_bind(client, ns, "a", "00000000-0000-0000-0000-000000000000", node,
				done)) == SLU_KUBE_CONFLICT,
	   "binding a pod of another uid conflicts: %s", last.error);
	ok(answer(slu_kube_bind(client, ns, "a", uid, node, done)) == SLU_KUBE_OK,
	   "a binding is accepted %s", last.error);
	ok(answer(slu_kube_get(client, &t, NULL, done)) == SLU_KUBE_OK &&
		   strcmp(field("spec", "nodeName"), node) == 0,
	   "the bound pod has the node's name");
	ok(answer(slu_kube_bind(client, ns, "a", uid, node, done)) == SLU_KUBE_CONFLICT,
	   "binding a second time conflicts: %s", last.error);
	ok(answer(slu_kube_bind(client, ns, "none", NULL, node, done)) == SLU_KUBE_NOT_FOUND,
	   "binding a pod that does not exist is not found: %s", last.error);
}

static bool asked;
static char who[128];
static uint32_t groups;
static int allowed;

static void token(void *arg, int known, const struct slu_kuser *u, const char *why)
{
	snprintf(who, sizeof who, "%s", known > 0 ? u->name : why);
	groups = u ? u->ngroups : 0;
	asked = true;
}

static void access_(void *arg, int yes, const char *reason)
{
	allowed = yes;
	asked = true;
}

static void check_reviews(const char *file)
{
	struct slu_kuser nobody = { .name = "nobody" };
	const char *const masters[] = { "system:masters" };
	struct slu_kuser root = { .name = "root", .groups = masters, .ngroups = 1 };
	struct slu_kaccess what = { .verb = "list", .resource = "pods", .ns = ns };
	char text[4096] = "";
	FILE *f = fopen(file, "r");

	if (f) {
		text[fread(text, 1, sizeof text - 1, f)] = '\0';
		text[strcspn(text, "\n")] = '\0';
		fclose(f);
	}
	if (slu_kube_token_review(client, text, NULL, token, NULL) == 0)
		slu_loop_run_until(loop, &asked, 30 * SLU_NS_PER_S);
	ok(asked && strcmp(who, "system:serviceaccount:sluice-system:sluice") == 0 && groups > 0,
	   "the token is %s's, in %u groups", who, groups);
	asked = false;
	if (slu_kube_token_review(client, "rubbish", NULL, token, NULL) == 0)
		slu_loop_run_until(loop, &asked, 30 * SLU_NS_PER_S);
	ok(asked && !groups, "a token that is rubbish belongs to no user: %s", who);
	asked = false;
	if (slu_kube_access_review(client, &nobody, &what, access_, NULL) == 0)
		slu_loop_run_until(loop, &asked, 30 * SLU_NS_PER_S);
	ok(asked && allowed == 0, "the user \"nobody\" may not list pods");
	asked = false;
	if (slu_kube_access_review(client, &root, &what, access_, NULL) == 0)
		slu_loop_run_until(loop, &asked, 30 * SLU_NS_PER_S);
	ok(asked && allowed == 1, "an administrator may list pods");
}

static void check_bodies(const char *uid)
{
	struct slu_buf b = SLU_BUF_INIT(4096);
	struct slu_kenc_event e = { .name = "a.1",
				    .regarding = { "v1", "Pod", ns, "a", uid },
				    .type = "Normal",
				    .reason = "Scheduled",
				    .action = "Binding",
				    .note = "placed \"here\"",
				    .controller = "fluence",
				    .instance = "fluence-0",
				    .time_us = INT64_C(1794781020000000) };

	slu_kenc_event(&b, &e);
	ok(post("/apis/events.k8s.io/v1", "events", SLU_KUBE_PROTOBUF, &b) == SLU_KUBE_OK,
	   "an event is accepted %s", last.error);
	slu_buf_reset(&b);
	slu_kenc_eviction(&b, ns, "a", "00000000-0000-0000-0000-000000000000");
	ok(post("/api/v1", "pods/a/eviction", NULL, &b) == SLU_KUBE_CONFLICT,
	   "evicting another uid conflicts: %s", last.error);
	slu_buf_reset(&b);
	slu_kenc_eviction(&b, ns, "a", uid);
	ok(post("/api/v1", "pods/a/eviction", NULL, &b) == SLU_KUBE_OK,
	   "an eviction is accepted %s", last.error);
	slu_buf_done(&b);
}

struct side {
	struct slu_lease *l;
	bool leads, lost;
	int32_t term;
};

static void leads(void *arg, int32_t term)
{
	struct side *s = arg;

	s->leads = true;
	s->term = term;
}

static void loses(void *arg)
{
	struct side *s = arg;

	s->lost = true;
	s->leads = false;
}

static void released(void *arg)
{
	*(bool *)arg = true;
}

static void check_lease(void)
{
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_kcodec *codec = slu_kcodec_new(pool);
	struct slu_lease_options o = { .ns = ns,
				       .name = "leader",
				       .id = "one",
				       .duration_s = 3,
				       .renew_s = 2,
				       .retry_ns = SLU_NS_PER_S / 2 };
	struct side a = { 0 }, b = { 0 };
	struct slu_lease_handler ha = { leads, loses, NULL, &a }, hb = { leads, loses, NULL, &b };
	struct slu_error err = { 0 };
	bool gone = false;
	int64_t t;

	if (slu_lease_new(client, codec, &o, &ha, &a.l, &err) < 0)
		printf("# %s\n", err.text);
	ok(slu_loop_run_until(loop, &a.leads, 5 * SLU_NS_PER_S) && a.term == 0,
	   "the first candidate leads");
	o.id = "two";
	if (slu_lease_new(client, codec, &o, &hb, &b.l, &err) < 0)
		printf("# %s\n", err.text);
	ok(!slu_loop_run_until(loop, &b.leads, 5 * SLU_NS_PER_S) && slu_lease_held(a.l) &&
		   strcmp(slu_lease_holder(b.l), "one") == 0,
	   "the second candidate waits while the first renews its lease");
	slu_lease_release(a.l, released, &gone);
	t = slu_clock_ns();
	slu_loop_run_until(loop, &b.leads, 5 * SLU_NS_PER_S);
	ok(b.leads && gone && a.lost && b.term == 1 && !slu_lease_held(a.l) && slu_lease_held(b.l),
	   "once the lease is given up the second candidate leads within %d ms in term %d",
	   (int)((slu_clock_ns() - t) / SLU_NS_PER_MS), b.term);
	slu_lease_free(a.l);
	/* two dies without a word */
	slu_lease_free(b.l);
	a = (struct side){ 0 };
	o.id = "three";
	if (slu_lease_new(client, codec, &o, &ha, &a.l, &err) < 0)
		printf("# %s\n", err.text);
	t = slu_clock_ns();
	slu_loop_run_until(loop, &a.leads, 10 * SLU_NS_PER_S);
	ok(a.leads && a.term == 2 && slu_clock_ns() - t > 2 * SLU_NS_PER_S,
	   "once the second candidate has died the third leads after %d ms",
	   (int)((slu_clock_ns() - t) / SLU_NS_PER_MS));
	slu_lease_free(a.l);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
}

int main(int argc, char **argv)
{
	struct slu_kube_config_options co = { .path = argc > 1 ? argv[1] : NULL };
	struct slu_kube_config *cfg = NULL;
	struct slu_error err = { 0 };
	char uid_a[64];

	if (argc != 5) {
		fprintf(stderr, "usage: write_tool KUBECONFIG NAMESPACE NODE TOKENFILE\n");
		return 2;
	}
	ns = argv[2];
	loop = slu_loop_new();
	if (slu_kube_config_load(&co, &cfg, &err) < 0 ||
	    slu_kube_client_new(loop, cfg, NULL, &client, &err) < 0) {
		fprintf(stderr, "write_tool: %s\n", err.text);
		return 1;
	}
	make_pod("a", uid_a);
	check_patches(uid_a);
	check_binding(argv[3], uid_a);
	check_bodies(uid_a);
	check_reviews(argv[4]);
	check_lease();
	slu_json_free(last.doc);
	slu_kube_client_free(client);
	slu_kube_config_unref(cfg);
	slu_loop_free(loop);
	return tap_done();
}
