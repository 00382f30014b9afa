/* Objects of the real Kubernetes libraries (tests/kube/objgen) in both encodings through our
 * decoders: the two must agree, and the values must be the ones that were put in. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "kube/codec.h"
#include "kube/time.h"
#include "tap.h"
#include "wire/pb.h"

static const struct {
	const char *file;
	enum slu_kkind kind;
} fixture[] = {
	{ "pod-full", SLU_KIND_POD },
	{ "pod-plain", SLU_KIND_POD },
	{ "pod-level", SLU_KIND_POD },
	{ "pod-empty", SLU_KIND_POD },
	{ "node", SLU_KIND_NODE },
	{ "namespace", SLU_KIND_NAMESPACE },
	{ "pvc", SLU_KIND_PVC },
	{ "pv", SLU_KIND_PV },
	{ "job", SLU_KIND_JOB },
	{ "job-empty", SLU_KIND_JOB },
	{ "replicaset", SLU_KIND_REPLICASET },
	{ "statefulset", SLU_KIND_STATEFULSET },
	{ "deployment", SLU_KIND_DEPLOYMENT },
	{ "priorityclass", SLU_KIND_PRIORITYCLASS },
	{ "storageclass", SLU_KIND_STORAGECLASS },
	{ "lease", SLU_KIND_LEASE },
	{ "limitrange", SLU_KIND_LIMITRANGE },
	{ "runtimeclass", SLU_KIND_RUNTIMECLASS },
	{ "podgroup", SLU_KIND_PODGROUP },
	{ "podgroup-beta", SLU_KIND_PODGROUP_BETA },
	{ "partial", SLU_KIND_PARTIAL },
};

static struct slu_strpool *pool;
static struct slu_kcodec *codec;

static char *load(const char *name, const char *ext, size_t *n)
{
	char path[512];
	char *text;
	FILE *f;

	snprintf(path, sizeof path, "%s/kube/%s.%s", TEST_DATA, name, ext);
	f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(1);
	}
	text = malloc(1 << 20);
	*n = fread(text, 1, 1 << 20, f);
	fclose(f);
	/* exactly as long as the content, so that the sanitizer sees every byte read beyond it */
	return realloc(text, *n + !*n);
}

static const struct slu_kobj *decode(const char *name, enum slu_kkind kind, enum slu_kencoding enc)
{
	struct slu_error err = { 0 };
	const struct slu_kobj *o = NULL;
	size_t n;
	char *b = load(name, enc == SLU_ENC_JSON ? "json" : "pb", &n);
	int rc = slu_kcodec_object(codec, kind, enc, b, n, &o, &err);

	free(b);
	if (rc < 0)
		printf("# %s: %d %s\n", name, rc, err.text);
	return o;
}

static const struct slu_kobj *json(enum slu_kkind kind, const char *text, int *rc,
				   struct slu_error *err)
{
	const struct slu_kobj *o = NULL;

	*rc = slu_kcodec_object(codec, kind, SLU_ENC_JSON, text, strlen(text), &o, err);
	return o;
}

static char *dump(const struct slu_kobj *o)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);

	if (!o)
		return strdup("nothing");
	slu_kobj_dump(o, &b);
	return slu_buf_take(&b);
}

/* The replacement character stands for a NUL that JSON can spell and a C string cannot hold; in
 * protobuf the text ends there.  Only the annotation made for it differs. */
static void same_nul(char *a)
{
	char *at = strstr(a, "a\xef\xbf\xbd"
			     "b");

	if (at)
		memmove(at + 1, at + 5, strlen(at + 5) + 1);
}

static void check_both_encodings(void)
{
	for (size_t i = 0; i < SLU_LEN(fixture); i++) {
		const struct slu_kobj *j = decode(fixture[i].file, fixture[i].kind, SLU_ENC_JSON);
		const struct slu_kobj *p = decode(fixture[i].file, fixture[i].kind,
						  SLU_ENC_PROTOBUF);
		char *a = dump(j), *b = dump(p);

		same_nul(a);
		while (strstr(a, "a\xef\xbf\xbd"
				 "b"))
			same_nul(a);
		ok(j && p && strcmp(a, b) == 0, "%s: JSON and protobuf give the same object",
		   fixture[i].file);
		if (strcmp(a, b) != 0)
			printf("# json: %s\n# pb:   %s\n", a, b);
		slu_kobj_unref(j);
		slu_kobj_unref(p);
		slu_free(a);
		slu_free(b);
	}
}

#define EPOCH_US (INT64_C(1794781020) * 1000000) /* 2026-11-15T22:17:00Z */
#define AT(s)    (EPOCH_US + INT64_C(1000000) * (s))

static void check_pod(const struct slu_kpod *p)
{
	const struct slu_kmeta *m = &p->o.meta;
	const struct slu_kpodspec *s = &p->spec;

	ok(slu_kstr_is(m->name, "solver-0-x7k2p") && slu_kstr_is(m->ns, "team-a") &&
		   slu_kstr_is(m->generate_name, "solver-0-") && m->rv == 184467440737 &&
		   m->generation == 3,
	   "names and versions are decoded");
	ok(m->created_us == AT(0) && m->deleted_us == AT(500),
	   "creation and deletion times are decoded");
	ok(m->nlabels == 5 && slu_kstr_is(slu_kmeta_label(m, "app"), "solver") &&
		   slu_kstr_is(slu_kmeta_label(m, "zeta"), "") && !slu_kmeta_label(m, "none") &&
		   slu_kstr_is(slu_kmeta_label(m, "Ünïcode/ok"), "ß"),
	   "a pod's labels are read");
	ok(m->nannotations == 3 && slu_kstr_is(slu_kmeta_annotation(m, "sluice.sh/size"), "4") &&
		   !slu_kmeta_annotation(m, "kubectl.kubernetes.io/last-applied-configuration"),
	   "annotations: only what is kept");
	ok(m->nowners == 2 && slu_kstr_is(slu_kmeta_controller(m)->name, "solver") &&
		   slu_kstr_is(slu_kmeta_controller(m)->api_version, "batch/v1"),
	   "the controlling owner is found");
	ok(m->nfinalizers == 2 && slu_kstr_is(m->finalizers[1], "example.com/hold"),
	   "a pod's finalizers are read");
	ok(slu_kstr_is(s->scheduler, "fluence") && slu_kstr_is(s->node, "node-17") &&
		   slu_kstr_is(s->scheduling_group, "native-group") &&
		   slu_kstr_is(s->priority_class, "high") && s->priority == -7 && s->has_priority,
	   "scheduler, node, group, priority");
	ok(s->active_deadline_s == 3600 && s->grace_s == 0 && s->restart == SLU_RESTART_ON_FAILURE,
	   "deadline, grace period and restart policy are decoded");
	ok(s->flags == (SLU_POD_HOST_NETWORK | SLU_POD_AFFINITY_PREFERRED | SLU_POD_ANTI_REQUIRED |
			SLU_POD_SPREAD_HARD | SLU_POD_SPREAD_SOFT | SLU_POD_RESOURCE_CLAIMS |
			SLU_POD_EPHEMERAL_CLAIM | SLU_POD_NEVER_PREEMPTS | SLU_POD_NODE_AFFINITY |
			SLU_POD_INLINE_DISK),
	   "the flags of the pod are read: %x", s->flags);
	ok(s->nrequired == 2 && s->required[0].nexprs == 3 && s->required[0].nfields == 1 &&
		   s->required[0].exprs[0].op == SLU_SEL_IN &&
		   s->required[0].exprs[0].nvalues == 2 &&
		   slu_kstr_is(s->required[0].exprs[0].values[1], "r2") &&
		   s->required[0].exprs[1].op == SLU_SEL_GT &&
		   s->required[0].exprs[2].op == SLU_SEL_DOES_NOT_EXIST &&
		   slu_kstr_is(s->required[0].fields[0].key, "metadata.name") &&
		   s->required[1].exprs[0].op == SLU_SEL_EXISTS,
	   "required node affinity is decoded");
	ok(s->npreferred == 1 && s->preferred[0].weight == 42 &&
		   s->preferred[0].term.exprs[0].op == SLU_SEL_NOT_IN,
	   "preferred node affinity is decoded");
	ok(s->ntolerations == 4 && s->tolerations[0].op == SLU_TOL_EXISTS &&
		   s->tolerations[0].effect == SLU_EFFECT_NO_SCHEDULE &&
		   s->tolerations[0].seconds == SLU_KNONE && s->tolerations[1].seconds == 300 &&
		   s->tolerations[2].op == SLU_TOL_EQUAL &&
		   s->tolerations[2].effect == SLU_EFFECT_ANY &&
		   slu_kstr_is(s->tolerations[3].key, ""),
	   "a pod's tolerations are read");
	ok(s->ngates == 2 && slu_kstr_is(s->gates[0], "fluxqueue"),
	   "a pod's scheduling gates are read");
	ok(s->nhost_ports == 2 && s->host_ports[0].port == 8080 &&
		   slu_kstr_is(s->host_ports[0].ip, "10.0.0.1") && s->host_ports[1].port == 9000 &&
		   s->host_ports[1].proto == SLU_PROTO_UDP,
	   "host ports, the sidecar's too");
	ok(s->nclaims == 2 && slu_kstr_is(s->claims[0], "data-claim") &&
		   slu_kstr_is(s->claims[1], "solver-0-x7k2p-scratch"),
	   "claims, the ephemeral one by its made-up name");
	/* cpu: containers max(1500,1800 allotted) + 100, sidecar 250 = 2150; init: first 3000, side
	 * 250, second 2000+250; so 3000, + 50 overhead.  memory: 4Gi actual + 64Mi + 10Mi. */
	ok(slu_kamount_get(s->requests, s->nrequests, "cpu") == 3050, "cpu %" PRId64,
	   slu_kamount_get(s->requests, s->nrequests, "cpu"));
	ok(slu_kamount_get(s->requests, s->nrequests, "memory") == (4096 + 64 + 10) * 1048576ll,
	   "a container's memory is read");
	ok(slu_kamount_get(s->requests, s->nrequests, "nvidia.com/gpu") == 1 &&
		   slu_kamount_get(s->requests, s->nrequests, "ephemeral-storage") == 1000000000 &&
		   slu_kamount_get(s->requests, s->nrequests, "hugepages-2Mi") == 4194304 &&
		   s->nrequests == 5,
	   "devices, storage, huge pages");
	ok(s->whole_cpus == 3, "whole cpus per app container: 2 + 1");
	ok(p->phase == SLU_PHASE_FAILED && slu_kpod_ended(p) &&
		   slu_kstr_is(p->reason, "OutOfcpu") &&
		   slu_kstr_is(p->nominated_node, "node-18") && p->start_us == AT(10),
	   "a pod's status is read");
	ok(p->scheduled == SLU_TRI_FALSE && slu_kstr_is(p->sched_reason, "Unschedulable") &&
		   slu_kstr_is(p->sched_message, "0/3 nodes are available") &&
		   p->sched_us == AT(9) && p->ready == SLU_TRI_FALSE &&
		   p->disrupted == SLU_TRI_TRUE,
	   "a pod's conditions are read");
	ok(p->exit_code == 137 && p->restarts == 3 && p->finish_us == AT(90),
	   "a pod's container statuses are read");
}

static void check_others(void)
{
	const struct slu_kobj *o = decode("pod-level", SLU_KIND_POD, SLU_ENC_PROTOBUF);
	const struct slu_kpodspec *s = &slu_kpod(o)->spec;

	ok(slu_kamount_get(s->requests, s->nrequests, "cpu") == 4000 &&
		   slu_kamount_get(s->requests, s->nrequests, "memory") == 12ll << 30 &&
		   slu_kamount_get(s->requests, s->nrequests, "hugepages-2Mi") == 8 << 20 &&
		   s->flags == SLU_POD_LEVEL_RESOURCES,
	   "pod-level amounts take the place of the containers'");
	slu_kobj_unref(o);

	o = decode("node", SLU_KIND_NODE, SLU_ENC_PROTOBUF);
	const struct slu_knode *n = slu_knode(o);

	ok(n->unschedulable && n->ready == SLU_TRI_TRUE && n->ntaints == 4 && n->nconds == 2 &&
		   n->taints[0].effect == SLU_EFFECT_NO_SCHEDULE &&
		   n->taints[2].effect == SLU_EFFECT_PREFER_NO_SCHEDULE &&
		   n->taints[3].effect == SLU_EFFECT_NO_EXECUTE &&
		   slu_kstr_is(n->taints[0].value, "true"),
	   "node: taints and conditions");
	ok(slu_kamount_get(n->allocatable, n->nallocatable, "cpu") == 63500 &&
		   slu_kamount_get(n->capacity, n->ncapacity, "memory") == 256ll << 30 &&
		   slu_kamount_get(n->capacity, n->ncapacity, "pods") == 110 && n->ncapacity == 5,
	   "a node's amounts are read");
	slu_kobj_unref(o);

	o = decode("job", SLU_KIND_JOB, SLU_ENC_PROTOBUF);
	const struct slu_kjob *j = slu_kjob(o);

	ok(j->parallelism == 4 && j->completions == 8 && j->backoff_limit == 0 && j->indexed &&
		   j->suspend && j->active_deadline_s == 1800 &&
		   slu_kstr_is(j->managed_by, "example.com/mgr"),
	   "a Job's specification is read");
	ok(j->active == 1 && j->succeeded == 2 && j->failed == 3 && j->ready == 4 &&
		   j->terminating == 5 && slu_kstr_is(j->completed_indexes, "0-3,7") &&
		   j->start_us == AT(20) && j->completion_us == AT(40) &&
		   j->complete == SLU_TRI_TRUE && j->failed_cond == SLU_TRI_ABSENT &&
		   j->suspended == SLU_TRI_FALSE &&
		   slu_kstr_is(slu_kcond_get(j->conds, j->nconds, "Complete")->message, "done"),
	   "a Job's status is read");
	/* no status of a kubelet in a template: 1500 + 100 + 250 = 1850 < 3000 + 50 */
	ok(slu_kamount_get(j->tmpl.spec.requests, j->tmpl.spec.nrequests, "cpu") == 3050 &&
		   j->tmpl.nlabels == 5 && j->tmpl.nannotations == 3 && j->tmpl.spec.nclaims == 1 &&
		   (j->tmpl.spec.flags & SLU_POD_EPHEMERAL_CLAIM) &&
		   slu_kstr_is(j->tmpl.spec.node, ""),
	   "a Job's template is read");
	slu_kobj_unref(o);

	o = decode("job-empty", SLU_KIND_JOB, SLU_ENC_PROTOBUF);
	ok(slu_kjob(o)->parallelism == SLU_KNONE && slu_kjob(o)->completions == SLU_KNONE &&
		   slu_kjob(o)->active_deadline_s == SLU_KNONE &&
		   slu_kjob(o)->tmpl.spec.active_deadline_s == SLU_KNONE &&
		   slu_kjob(o)->complete == SLU_TRI_ABSENT,
	   "an empty job has none of them");
	slu_kobj_unref(o);

	o = decode("replicaset", SLU_KIND_REPLICASET, SLU_ENC_PROTOBUF);
	ok(slu_kreplicaset(o)->replicas == 0 && slu_kreplicaset(o)->now == 3 &&
		   slu_kreplicaset(o)->ready == 2,
	   "zero replicas are not absent replicas");
	slu_kobj_unref(o);

	o = decode("statefulset", SLU_KIND_STATEFULSET, SLU_ENC_PROTOBUF);
	ok(slu_kstatefulset(o)->parallel && slu_kstatefulset(o)->start == 2 &&
		   slu_kstatefulset(o)->nclaim_templates == 2 &&
		   slu_kstr_is(slu_kstatefulset(o)->claim_templates[1], "db"),
	   "a StatefulSet is read");
	slu_kobj_unref(o);

	o = decode("deployment", SLU_KIND_DEPLOYMENT, SLU_ENC_PROTOBUF);
	ok(slu_kdeployment(o)->replicas == 5 && slu_kdeployment(o)->paused &&
		   slu_kdeployment(o)->now == 4 && slu_kdeployment(o)->updated == 3 &&
		   slu_kdeployment(o)->ready == 2 && slu_kdeployment(o)->available == 1,
	   "a Deployment is read");
	slu_kobj_unref(o);

	o = decode("lease", SLU_KIND_LEASE, SLU_ENC_PROTOBUF);
	ok(slu_klease(o)->renew_us == EPOCH_US + 123456 && slu_klease(o)->duration_s == 15 &&
		   slu_klease(o)->transitions == 3 && slu_kstr_is(slu_klease(o)->holder, "me"),
	   "lease to the microsecond");
	slu_kobj_unref(o);

	o = decode("podgroup", SLU_KIND_PODGROUP, SLU_ENC_PROTOBUF);
	const struct slu_kpodgroup *g = slu_kpodgroup(o);

	ok(g->gang && g->min_member == 4 && g->has_priority && g->priority == 0 &&
		   g->ntopology == 1 && slu_kstr_is(g->topology[0], "rack") && g->resource_claims &&
		   slu_kstr_is(g->disruption_mode, "PodGroup") && slu_kstr_is(g->workload, "w") &&
		   g->nconds == 1 && g->conds[0].observed == 7,
	   "a native PodGroup is decoded");
	slu_kobj_unref(o);

	o = decode("podgroup-beta", SLU_KIND_PODGROUP_BETA, SLU_ENC_PROTOBUF);
	g = slu_kpodgroup(o);
	ok(g->gang && g->min_member == 4 && g->has_priority && g->priority == 5 &&
		   g->ntopology == 1 && slu_kstr_is(g->topology[0], "rack") && g->resource_claims &&
		   g->all && slu_kstr_is(g->workload, "w") &&
		   slu_kstr_is(g->workload_template, "t") &&
		   slu_kstr_is(g->priority_class, "high") && g->nconds == 1 &&
		   slu_kstr_is(g->conds[0].type, "PodGroupInitiallyScheduled"),
	   "native pod group of 1.37");
	slu_kobj_unref(o);

	o = decode("pv", SLU_KIND_PV, SLU_ENC_PROTOBUF);
	ok(slu_kpv(o)->phase == SLU_CLAIM_RELEASED && slu_kpv(o)->nrequired == 1 &&
		   slu_kstr_is(slu_kpv(o)->claim_name, "data") &&
		   slu_kstr_is(slu_kpv(o)->access_modes[0], "ReadWriteOnce"),
	   "a volume is read");
	slu_kobj_unref(o);
}

static void check_custom(void)
{
	struct slu_error err = { 0 };
	int rc;
	const struct slu_kobj *o = json(
		SLU_KIND_PODGROUP_X,
		"{\"metadata\":{\"name\":\"g\",\"namespace\":\"a\",\"resourceVersion\":\"12\","
		"\"annotations\":{\"x\":\"\\u0000\",\"sluice.sh/q\":\"\\\\u0000 \\u0000\"}},"
		"\"spec\":{\"minMember\":4,\"scheduleTimeoutSeconds\":600,\"minResources\":"
		"{\"cpu\":0.1,\"memory\":\"1Gi\",\"nvidia.com/gpu\":2,\"a\":\"-3\",\"b\":\"zzz\"}},"
		"\"status\":{\"phase\":\"Scheduling\",\"running\":3,\"occupiedBy\":\"a/job\","
		"\"creationTime\":\"2026-11-15T23:17:00.5+01:00\"}}",
		&rc, &err);
	const struct slu_kpodgroup *g = slu_kpodgroup(o);

	ok(rc == 0 && g->min_member == 4 && g->schedule_timeout_s == 600 &&
		   slu_kstr_is(g->phase, "Scheduling") && g->running == 3 &&
		   g->creation_us == EPOCH_US + 500000,
	   "PodGroup of scheduling.x-k8s.io %s", err.text);
	ok(rc == 0 && g->nmin_resources == 5 &&
		   slu_kamount_get(g->min_resources, g->nmin_resources, "cpu") == 100 &&
		   slu_kamount_get(g->min_resources, g->nmin_resources, "memory") == 1 << 30 &&
		   slu_kamount_get(g->min_resources, g->nmin_resources, "a") == 0 &&
		   (o->flags & SLU_KOBJ_BAD_AMOUNT),
	   "numbers as quantities; negative and unreadable ones are flagged");
	ok(rc == 0 && slu_kstr_is(slu_kmeta_annotation(&o->meta, "sluice.sh/q"),
				  "\\u0000 \xef\xbf\xbd"),
	   "a NUL in a string is replaced, an escaped backslash is left alone");
	slu_kobj_unref(o);

	o = json(
		SLU_KIND_FLUXJOB,
		"{\"kind\":\"FluxJob\",\"metadata\":{\"name\":\"j-pod\"},\"spec\":{\"jobspec\":\"v: 1\","
		"\"type\":1,\"name\":\"j\",\"nodes\":2,\"duration\":60,\"reservation\":true,"
		"\"resources\":{\"nodes\":[\"n1\",\"n2\"]}},\"status\":{\"submitStatus\":"
		"\"statusSubmit\",\"state\":\"Running\",\"message\":\"m\",\"position\":3,\"jobid\":7,"
		"\"nodeList\":\"n[1-2]\",\"places\":\"n1,n2\",\"startTime\":\"1970-01-01T00:00:09Z\","
		"\"conditions\":[{\"type\":\"Scheduled\",\"status\":\"True\"}]}}",
		&rc, &err);
	const struct slu_kfluxjob *f = slu_kfluxjob(o);

	ok(rc == 0 && f->type == 1 && f->count == 2 && f->duration_s == 60 && f->reservation &&
		   f->nnodes == 2 && slu_kstr_is(f->nodes[1], "n2") &&
		   slu_kstr_is(f->submit_status, "statusSubmit") && f->job_id == 7 &&
		   slu_kstr_is(f->state, "Running") && slu_kstr_is(f->message, "m") &&
		   f->position == 3 && slu_kstr_is(f->node_list, "n[1-2]") &&
		   slu_kstr_is(f->places, "n1,n2") && f->start_us == 9000000 && !f->estimate_us &&
		   f->nconds == 1 && f->conds[0].status == SLU_TRI_TRUE,
	   "FluxJob %s", err.text);
	slu_kobj_unref(o);

	o = json(SLU_KIND_PODGROUP_SIGS,
		 "{\"metadata\":{\"labels\":{\"b\":\"1\",\"a\":\"x\",\"b\":\"2\"}}}", &rc, &err);
	ok(rc == 0 && o->meta.nlabels == 2 && slu_kstr_is(slu_kmeta_label(&o->meta, "b"), "2") &&
		   slu_kpodgroup(o)->min_member == SLU_KNONE,
	   "labels are sorted; of equal keys the last wins");
	slu_kobj_unref(o);
}

static void check_bad_json(void)
{
	static const struct {
		const char *text;
		int rc;
		const char *says;
	} row[] = {
		{ "", -EPROTO, "Pod" },
		{ "[]", -EPROTO, "Pod is not an object" },
		{ "{", -EPROTO, "Pod" },
		{ "{\"spec\":7}", 0, "PodSpec is not an object" },
		{ "{\"spec\":{\"nodeName\":7}}", 0, "PodSpec.nodeName is not a string" },
		{ "{\"spec\":{\"containers\":{}}}", 0, "PodSpec.containers is not an array" },
		{ "{\"spec\":{\"priority\":4294967296}}", 0,
		  "PodSpec.priority is not a 32-bit integer" },
		{ "{\"spec\":{\"priority\":1.5}}", 0, "PodSpec.priority is not an integer" },
		{ "{\"spec\":{\"hostNetwork\":1}}", 0, "PodSpec.hostNetwork is not a boolean" },
		{ "{\"metadata\":{\"finalizers\":[1]}}", 0,
		  "ObjectMeta.finalizers is not an array of strings" },
		{ "{\"metadata\":{\"labels\":{\"a\":1}}}", 0,
		  "ObjectMeta.labels is not a map of strings" },
		{ "{\"metadata\":{\"creationTimestamp\":\"x\"}}", 0,
		  "ObjectMeta.creationTimestamp is not a time" },
		{ "{\"spec\":{\"overhead\":{\"cpu\":\"x\"}}}", 0,
		  "overhead: cpu \"x\" is not a quantity" },
		{ "{\"spec\":{\"overhead\":{\"cpu\":\"-1\"}}}", 0,
		  "overhead: cpu \"-1\" is negative" },
		{ "{\"spec\":{\"overhead\":{\"cpu\":\"1Ei\"}}}", 0,
		  "overhead: cpu \"1Ei\" is beyond 64 bits" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_error err = { 0 };
		int rc;
		const struct slu_kobj *o = json(SLU_KIND_POD, row[i].text, &rc, &err);
		const char *said = o ? o->problem : err.text;

		ok(rc == row[i].rc && !o == (rc < 0) && strstr(said, row[i].says), "%s: %s",
		   row[i].text, said);
		slu_kobj_unref(o);
	}
}

static void check_times(void)
{
	static const struct {
		const char *text;
		int rc;
		int64_t us;
	} row[] = {
		{ "1970-01-01T00:00:00Z", 0, 0 },
		{ "2026-11-15T22:17:00Z", 0, EPOCH_US },
		{ "2026-11-15T22:17:00.123456789Z", 0, EPOCH_US + 123456 },
		{ "2026-11-15T17:17:00-05:00", 0, EPOCH_US },
		{ "2000-02-29T12:00:00Z", 0, INT64_C(951825600000000) },
		{ "0001-01-01T00:00:00Z", 0, INT64_C(-62135596800000000) },
		{ "1969-12-31T23:59:59.5Z", 0, -500000 },
		{ "2001-02-29T12:00:00Z", -EINVAL, 0 },
		{ "2026-13-15T22:17:00Z", -EINVAL, 0 },
		{ "2026-11-15T24:17:00Z", -EINVAL, 0 },
		{ "2026-11-15T22:17:00", -EINVAL, 0 },
		{ "2026-11-15T22:17:00.Z", -EINVAL, 0 },
		{ "2026-11-15T22:17:00ZZ", -EINVAL, 0 },
		{ "2026-11-15T22:17:00+0100", -EINVAL, 0 },
		{ "2026-11-15 22:17:00Z", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
	};
	char text[SLU_KTIME_TEXT];

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		int64_t us = 0;
		int rc = slu_ktime_parse(row[i].text, strlen(row[i].text), &us);

		ok(rc == row[i].rc && us == row[i].us, "the time \"%s\" is read as it should be",
		   row[i].text);
	}
	slu_ktime_format(EPOCH_US + 42, true, text);
	ok(strcmp(text, "2026-11-15T22:17:00.000042Z") == 0, "micro time prints as %s", text);
	slu_ktime_format(-500000, false, text);
	ok(strcmp(text, "1969-12-31T23:59:59Z") == 0, "before the epoch prints as %s", text);
}

struct collected {
	uint32_t n;
	char names[8][64];
};

static int collect(void *arg, const struct slu_kobj *o)
{
	struct collected *c = arg;

	snprintf(c->names[c->n++ % 8], 64, "%s", o->meta.name);
	slu_kobj_unref(o);
	return 0;
}

static void check_lists(void)
{
	static const char *const ext[] = { "json", "pb" };

	for (int e = 0; e < 2; e++) {
		struct collected c = { 0 };
		struct slu_klist l = { 0 };
		struct slu_error err = { 0 };
		size_t n;
		char *b = load("podlist", ext[e], &n);
		struct slu_klist_in in = { .kind = SLU_KIND_POD,
					   .enc = e ? SLU_ENC_PROTOBUF : SLU_ENC_JSON,
					   .bytes = b,
					   .n = n,
					   .item = collect,
					   .arg = &c };
		int rc = slu_kcodec_list(codec, &in, &l, &err);

		ok(rc == 0 && c.n == 2 && l.items == 2 && strcmp(l.rv, "777") == 0 &&
			   strcmp(l.cont, "tok+/=&x") == 0 && l.remain == 12 &&
			   strcmp(c.names[0], "solver-0-x7k2p") == 0,
		   "%s list %s", ext[e], err.text);
		slu_free(l.cont);
		free(b);
	}
}

struct seen {
	enum slu_kencoding enc;
	char text[512];
};

static int one_event(void *arg, const void *p, size_t n)
{
	struct seen *s = arg;
	struct slu_kevent ev;
	struct slu_error err = { 0 };
	size_t at = strlen(s->text);
	int rc = slu_kcodec_event(codec, SLU_KIND_POD, s->enc, p, n, &ev, &err);

	if (rc < 0) {
		printf("# %s\n", err.text);
		return rc;
	}
	snprintf(s->text + at, sizeof s->text - at, "%d:%s:%" PRIu64 ":%d:%d:%s|", ev.type,
		 ev.obj ? ev.obj->meta.name : "", ev.rv, ev.initial_end, ev.status.code,
		 ev.status.reason);
	slu_kobj_unref(ev.obj);
	return 0;
}

static void check_frames(void)
{
	static const char *const ext[] = { "watch.json", "watch.pb" };
	static const char want[] =
		"0:train-000000-1-779b1:5000001:0:0:|1:train-000000-1-779b1:2001:0:0:|"
		"3::2002:1:0:|2:train-000000-1-779b1:2001:0:0:|4::0:0:410:Expired|";

	for (int e = 0; e < 2; e++) {
		size_t n;
		char *b = load("events", ext[e], &n);

		/* pieces of every size: the same events whatever the cuts */
		for (size_t piece = 1; piece < n; piece = piece < 64 ? piece + 1 : piece * 3) {
			struct slu_kframes f = { .enc = e ? SLU_ENC_PROTOBUF : SLU_ENC_JSON };
			struct seen s = { .enc = f.enc };
			int rc = 0;

			for (size_t i = 0; i < n && rc == 0; i += piece)
				rc = slu_kframes_feed(&f, b + i, SLU_MIN(piece, n - i), one_event,
						      &s, NULL);
			if (rc || strcmp(s.text, want) != 0 || slu_kframes_partial(&f)) {
				ok(false, "%s in pieces of %zu: %d %s", ext[e], piece, rc, s.text);
				slu_kframes_done(&f);
				break;
			}
			slu_kframes_done(&f);
		}
		ok(true, "%s: five events, in pieces of any size", ext[e]);
		free(b);
	}
	struct slu_kframes f = { .enc = SLU_ENC_PROTOBUF };
	struct slu_error err = { 0 };

	ok(slu_kframes_feed(&f, "\xff\xff\xff\xff", 4, one_event, NULL, &err) == -EMSGSIZE,
	   "a frame of 4 GiB is refused: %s", err.text);
	slu_kframes_done(&f);
	f = (struct slu_kframes){ .enc = SLU_ENC_PROTOBUF };
	ok(slu_kframes_feed(&f, "\0\0\0\5ab", 6, one_event, NULL, &err) == 0 &&
		   slu_kframes_partial(&f),
	   "an unfinished frame waits");
	slu_kframes_done(&f);
}

static void check_status(void)
{
	for (int e = 0; e < 2; e++) {
		struct slu_kstatus st = { 0 };
		size_t n;
		char *b = load("status", e ? "pb" : "json", &n);
		int rc = slu_kcodec_status(codec, e ? SLU_ENC_PROTOBUF : SLU_ENC_JSON, b, n, &st,
					   NULL);

		ok(rc == 0 && st.code == 410 && st.retry_after_s == 3 &&
			   strcmp(st.reason, "Expired") == 0 && strstr(st.message, "too old"),
		   "a Status is read");
		free(b);
	}
}

/* Every prefix and every flipped byte of a real object: an error or an object, never a stray read.
 */
static void check_mutilated(void)
{
	size_t n, good = 0;
	char *b = load("pod-full", "pb", &n);

	for (size_t i = 0; i < n; i++) {
		const struct slu_kobj *o = NULL;
		char *cut = malloc(i + 1);

		memcpy(cut, b, i);
		cut = realloc(cut, i + !i);
		if (slu_kcodec_object(codec, SLU_KIND_POD, SLU_ENC_PROTOBUF, cut, i, &o, NULL) == 0)
			good++;
		slu_kobj_unref(o);
		free(cut);
		b[i] ^= 0x55;
		o = NULL;
		if (slu_kcodec_object(codec, SLU_KIND_POD, SLU_ENC_PROTOBUF, b, n, &o, NULL) == 0)
			good++;
		slu_kobj_unref(o);
		b[i] ^= 0x55;
	}
	free(b);
	ok(good > 0, "%zu of %zu mutilated pods could still be read", good, 2 * n);
}

/* One label too many for the count. */
static void check_cut(void)
{
	struct slu_buf b = SLU_BUF_INIT(8 << 20);
	const struct slu_kobj *o = NULL;
	size_t meta = slu_pb_begin(&b, 1);
	int rc;

	for (uint32_t i = 70000; i-- > 0;) {
		size_t at = slu_pb_begin(&b, 11);
		char key[16];

		snprintf(key, sizeof key, "k%u", i);
		slu_pb_put_str(&b, 1, key);
		slu_pb_put_str(&b, 2, "v");
		slu_pb_end(&b, at);
	}
	slu_pb_end(&b, meta);
	rc = slu_kcodec_object(codec, SLU_KIND_NODE, SLU_ENC_PROTOBUF, b.p, b.n, &o, NULL);
	ok(rc == 0 && o->meta.nlabels == UINT16_MAX && (o->flags & SLU_KOBJ_CUT) &&
		   slu_kmeta_label(&o->meta, "k69999") &&
		   strcmp(o->meta.labels[0].key, "k10000") == 0,
	   "70000 labels: 65535 are kept, sorted, and the object says so");
	slu_kobj_unref(o);
	slu_buf_done(&b);
}

static void check_faults(void)
{
	static const char *const ext[] = { "json", "pb" };

	for (int e = 0; e < 2; e++) {
		size_t n;
		char *b = load("pod-full", ext[e], &n);
		long k;

		for (k = 0;; k++) {
			const struct slu_kobj *o = NULL;
			uint32_t left;
			size_t bytes;
			int rc = -ENOMEM;

			slu_fault_arm(k);
			struct slu_strpool *p = slu_strpool_new();
			struct slu_kcodec *c = p ? slu_kcodec_new(p) : NULL;

			if (c)
				rc = slu_kcodec_object(c, SLU_KIND_POD,
						       e ? SLU_ENC_PROTOBUF : SLU_ENC_JSON, b, n,
						       &o, NULL);
			slu_kobj_unref(o);
			slu_kcodec_free(c);
			left = 0;
			if (p)
				slu_strpool_stat(p, &left, &bytes);
			slu_strpool_free(p);
			bool failed = slu_fault_disarm();

			if (left || (failed && rc != -ENOMEM)) {
				ok(false, "%s: allocation %ld: rc %d, %u strings left", ext[e], k,
				   rc, left);
				break;
			}
			if (!failed) {
				ok(rc == 0, "%s: clean after %ld failed allocations", ext[e], k);
				break;
			}
		}
		free(b);
	}
}

/* One thread decodes, another reads and lets go, a third decodes with a codec of its own: one pool.
 */
#define HANDOVERS 4000
static _Atomic(const struct slu_kobj *) door;
static char *bytes_pod;
static size_t len_pod;

static void *taker(void *arg)
{
	uintptr_t good = 0;

	for (int i = 0; i < HANDOVERS;) {
		const struct slu_kobj *o = atomic_exchange(&door, NULL);

		if (!o) {
			sched_yield();
			continue;
		}
		good += slu_kstr_is(o->meta.name, "solver-0-x7k2p") &&
			slu_kmeta_label(&o->meta, "app") &&
			slu_kpod(o)->spec.requests[0].amount == 3050;
		slu_kobj_unref(o);
		i++;
	}
	return (void *)good;
}

static void *bystander(void *arg)
{
	struct slu_kcodec *c = slu_kcodec_new(pool);
	uintptr_t good = 0;

	for (int i = 0; i < HANDOVERS / 4; i++) {
		const struct slu_kobj *o = NULL;

		if (slu_kcodec_object(c, SLU_KIND_POD, SLU_ENC_PROTOBUF, bytes_pod, len_pod, &o,
				      NULL) == 0)
			good++;
		slu_kobj_unref(o);
	}
	slu_kcodec_free(c);
	return (void *)good;
}

static void check_threads(void)
{
	pthread_t t[2];
	void *good[2];
	bool made = true;

	bytes_pod = load("pod-full", "pb", &len_pod);
	if (pthread_create(&t[0], NULL, taker, NULL) ||
	    pthread_create(&t[1], NULL, bystander, NULL))
		exit(1);
	for (int i = 0; i < HANDOVERS; i++) {
		const struct slu_kobj *o = NULL, *none = NULL;

		made &= slu_kcodec_object(codec, SLU_KIND_POD, SLU_ENC_PROTOBUF, bytes_pod, len_pod,
					  &o, NULL) == 0;
		while (!atomic_compare_exchange_weak(&door, &none, o)) {
			none = NULL;
			sched_yield();
		}
	}
	pthread_join(t[0], &good[0]);
	pthread_join(t[1], &good[1]);
	ok(made && (uintptr_t)good[0] == HANDOVERS && (uintptr_t)good[1] == HANDOVERS / 4,
	   "%d objects made on one thread were read and let go on another", HANDOVERS);
	free(bytes_pod);
}

/* The kinds that say how many volumes a node takes, and how large a pod. */
static void test_inside_nodes(void)
{
	struct slu_error err = { 0 };
	const struct slu_kobj *o;
	const struct slu_kzone *z;
	int rc;

	o = json(
		SLU_KIND_CSINODE,
		"{\"metadata\":{\"name\":\"n\"},\"spec\":{\"drivers\":[{\"name\":\"a\",\"nodeID\":\"x\","
		"\"topologyKeys\":null,\"allocatable\":{\"count\":25}},{\"name\":\"b\",\"nodeID\":\"x\"},"
		"{\"name\":\"c\",\"nodeID\":\"x\",\"allocatable\":{\"count\":0}},{\"name\":\"d\","
		"\"allocatable\":{}}]}}",
		&rc, &err);
	ok(o && slu_kcsinode(o)->ndrivers == 4 && slu_kcsinode(o)->drivers[0].count == 25 &&
		   slu_kcsinode(o)->drivers[1].count == SLU_KNONE &&
		   slu_kcsinode(o)->drivers[2].count == 0 &&
		   slu_kcsinode(o)->drivers[3].count == SLU_KNONE,
	   "a driver's limit, none, and a limit of none are told apart");
	slu_kobj_unref(o);
	o = json(
		SLU_KIND_ATTACHMENT,
		"{\"metadata\":{\"name\":\"v\"},\"spec\":{\"attacher\":\"a\",\"nodeName\":\"n\",\"source\":"
		"{\"persistentVolumeName\":\"pv\"}},\"status\":{\"attached\":true}}",
		&rc, &err);
	ok(o && slu_kstr_is(slu_kattachment(o)->attacher, "a") &&
		   slu_kstr_is(slu_kattachment(o)->node, "n") &&
		   slu_kstr_is(slu_kattachment(o)->volume, "pv"),
	   "an attachment names volume and node");
	slu_kobj_unref(o);
	o = json(
		SLU_KIND_PV,
		"{\"metadata\":{\"name\":\"pv\"},\"spec\":{\"csi\":{\"driver\":\"a\",\"volumeHandle\":\"h\"}}}",
		&rc, &err);
	ok(o && slu_kstr_is(slu_kpv(o)->driver, "a") && slu_kstr_is(slu_kpv(o)->handle, "h"),
	   "a volume names its driver and handle");
	slu_kobj_unref(o);
	o = json(
		SLU_KIND_TOPOLOGY,
		"{\"metadata\":{\"name\":\"n\"},\"topologyPolicies\":[\"SingleNUMANodeContainerLevel\"],"
		"\"attributes\":[{\"name\":\"topologyManagerPolicy\",\"value\":\"single-numa-node\"}],"
		"\"zones\":[{\"name\":\"node-0\",\"type\":\"Node\",\"resources\":[{\"name\":\"memory\","
		"\"capacity\":\"2Gi\",\"allocatable\":\"1Gi\",\"available\":\"1\"},{\"name\":\"cpu\","
		"\"capacity\":\"16\",\"allocatable\":\"14\",\"available\":\"1\"},{\"name\":\"odd\","
		"\"allocatable\":\"x\"}]},{\"name\":\"core\",\"type\":\"Core\"}]}",
		&rc, &err);
	z = o ? slu_ktopology(o)->zones : NULL;
	ok(o && slu_ktopology(o)->nzones == 2 && z[0].nallocatable == 2 &&
		   slu_kstr_is(z[0].allocatable[0].name, "cpu") &&
		   z[0].allocatable[0].amount == 14000 && z[0].allocatable[1].amount == 1 << 30 &&
		   slu_kstr_is(z[1].type, "Core") && slu_ktopology(o)->npolicies == 1 &&
		   slu_ktopology(o)->nattributes == 1 &&
		   slu_kstr_is(slu_ktopology(o)->attributes[0].value, "single-numa-node"),
	   "zones are read with what pods may have of them, in order of names");
	slu_kobj_unref(o);
}

/* Which pods get processors of their own from a kubelet. */
static void test_pins_cpus(void)
{
	static const struct {
		const char *what, *text;
		enum slu_kkind kind;
		bool pins;
	} row[] = {
		{ "Guaranteed with whole cpus",
		  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]},"
		  "\"status\":{\"qosClass\":\"Guaranteed\"}}",
		  SLU_KIND_POD, true },
		{ "Guaranteed with parts of cpus",
		  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"2500m\"}}}]},"
		  "\"status\":{\"qosClass\":\"Guaranteed\"}}",
		  SLU_KIND_POD, false },
		{ "Burstable with whole cpus",
		  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]},"
		  "\"status\":{\"qosClass\":\"Burstable\"}}",
		  SLU_KIND_POD, false },
		{ "two containers, one with a part",
		  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}},"
		  "{\"name\":\"b\",\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}]},"
		  "\"status\":{\"qosClass\":\"Guaranteed\"}}",
		  SLU_KIND_POD, false },
		{ "a template with limits only",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":"
		  "{\"cpu\":\"2\",\"memory\":\"1Gi\"}}}]}}}}",
		  SLU_KIND_JOB, true },
		{ "a template that asks for less than its limit",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":"
		  "{\"cpu\":\"2\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"1\"}}}]}}}}",
		  SLU_KIND_JOB, false },
		{ "a template without a limit of memory",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":"
		  "{\"cpu\":\"2\"}}}]}}}}",
		  SLU_KIND_JOB, false },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_error err = { 0 };
		int rc;
		const struct slu_kobj *o = json(row[i].kind, row[i].text, &rc, &err);
		const struct slu_kpodspec *s = !o ? NULL
					       : row[i].kind == SLU_KIND_POD
						       ? &slu_kpod(o)->spec
						       : &slu_kjob(o)->tmpl.spec;

		ok(s && !!(s->flags & SLU_POD_PINS_CPUS) == row[i].pins, "%s: %s its cpus",
		   row[i].what, row[i].pins ? "pins" : "does not pin");
		slu_kobj_unref(o);
	}
}

int main(void)
{
	const struct slu_kobj *o;
	uint32_t strings = 1;
	size_t bytes;

	pool = slu_strpool_new();
	codec = slu_kcodec_new(pool);
	check_both_encodings();
	o = decode("pod-full", SLU_KIND_POD, SLU_ENC_PROTOBUF);
	check_pod(slu_kpod(o));
	slu_kobj_unref(o);
	check_others();
	check_custom();
	check_bad_json();
	check_times();
	check_lists();
	check_frames();
	check_status();
	check_mutilated();
	check_cut();
	check_faults();
	check_threads();
	test_inside_nodes();
	test_pins_cpus();
	slu_strpool_stat(pool, &strings, &bytes);
	ok(strings == 0, "no string is left in the pool (%u)", strings);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return tap_done();
}
