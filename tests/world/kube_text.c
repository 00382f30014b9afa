/* Objects as the API server writes them: JSON, as much as the daemon reads. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "world.h"

static void put_time(struct slu_buf *b, const char *key, int64_t us)
{
	time_t s = (time_t)(us / SECOND);
	struct tm tm;
	char text[32];

	gmtime_r(&s, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	slu_buf_printf(b, ",\"%s\":\"%s\"", key, text);
}

static void put_str(struct slu_buf *b, const char *s)
{
	slu_buf_putc(b, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			slu_buf_putc(b, '\\');
		slu_buf_putc(b, *s);
	}
	slu_buf_putc(b, '"');
}

static void put_pairs(struct slu_buf *b, const char *key, const struct pairs *p)
{
	if (!p->n)
		return;
	slu_buf_printf(b, ",\"%s\":{", key);
	for (uint32_t i = 0; i < p->n; i++) {
		slu_buf_printf(b, "%s\"%s\":", i ? "," : "", p->p[i].key);
		put_str(b, p->p[i].value);
	}
	slu_buf_puts(b, "}");
}

static void put_notes(struct slu_buf *b, const struct obj *o)
{
	if (!o->big) {
		put_pairs(b, "annotations", &o->note);
		return;
	}
	slu_buf_puts(b, ",\"annotations\":{\"example.com/big\":\"");
	for (uint32_t i = 0; i < o->big; i += 16)
		slu_buf_puts(b, "0123456789abcdef");
	slu_buf_puts(b, "\"");
	for (uint32_t i = 0; i < o->note.n; i++) {
		slu_buf_printf(b, ",\"%s\":", o->note.p[i].key);
		put_str(b, o->note.p[i].value);
	}
	slu_buf_puts(b, "}");
}

static void put_meta(struct slu_buf *b, const struct obj *o)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} fin[] = { { FIN_FOREGROUND, "foregroundDeletion" },
		    { FIN_ORPHAN, "orphan" },
		    { FIN_JOB, "batch.kubernetes.io/job-tracking" },
		    { FIN_USER, "example.com/hold" } };
	const char *comma = "";

	slu_buf_printf(b,
		       "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u%" PRIu64
		       "\",\"resourceVersion\":\"%" PRIu64 "\",\"generation\":%" PRIu64,
		       o->name, o->uid, o->rv, o->generation);
	if (*o->ns)
		slu_buf_printf(b, ",\"namespace\":\"%s\"", o->ns);
	put_time(b, "creationTimestamp", o->created_us);
	if (o->deleted_us)
		put_time(b, "deletionTimestamp", o->deleted_us);
	put_pairs(b, "labels", &o->label);
	put_notes(b, o);
	if (o->owner)
		slu_buf_printf(
			b,
			",\"ownerReferences\":[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\","
			"\"uid\":\"u%" PRIu64 "\",\"controller\":true}]",
			o->owner_kind == SLU_KIND_JOB       ? "batch/v1"
			: o->owner_kind == SLU_KIND_PARTIAL ? "jobset.x-k8s.io/v1alpha2"
							    : "apps/v1",
			o->owner_kind == SLU_KIND_PARTIAL ? "JobSet"
							  : slu_kkind_info(o->owner_kind)->kind,
			o->owner_name, o->owner);
	if (o->fin) {
		slu_buf_puts(b, ",\"finalizers\":[");
		for (size_t i = 0; i < SLU_LEN(fin); i++)
			if (o->fin & fin[i].bit) {
				slu_buf_printf(b, "%s\"%s\"", comma, fin[i].name);
				comma = ",";
			}
		slu_buf_puts(b, "]");
	}
	slu_buf_puts(b, "}");
}

static void put_amount(struct slu_buf *b, const char *key, int32_t cpu_m)
{
	if (cpu_m)
		slu_buf_printf(b, "\"%s\":{\"cpu\":\"%dm\"}", key, cpu_m);
}

/* Fields of a pod's spec, without the braces. */
static void put_spec(struct slu_buf *b, const struct tmpl *t)
{
	slu_buf_printf(b,
		       "\"schedulerName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{",
		       t->scheduler);
	put_amount(b, "requests", t->cpu_m);
	if (t->cpu_m && t->limit_m)
		slu_buf_puts(b, ",");
	put_amount(b, "limits", t->limit_m);
	slu_buf_puts(b, "}");
	if (t->port)
		slu_buf_printf(b, ",\"ports\":[{\"containerPort\":%d,\"hostPort\":%d}]", t->port,
			       t->port);
	slu_buf_puts(b, "}]");
	if (*t->pool)
		slu_buf_printf(b, ",\"nodeSelector\":{\"pool\":\"%s\"}", t->pool);
	if (t->tolerates)
		slu_buf_puts(b,
			     ",\"tolerations\":[{\"key\":\"dedicated\",\"operator\":\"Exists\"}]");
	if (*t->priority)
		slu_buf_printf(b, ",\"priorityClassName\":\"%s\"", t->priority);
	if (*t->runtime)
		slu_buf_printf(b, ",\"runtimeClassName\":\"%s\"", t->runtime);
	if (*t->claim)
		slu_buf_printf(
			b,
			",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]",
			t->claim);
	if (*t->native)
		slu_buf_printf(b, ",\"schedulingGroup\":{\"podGroupName\":\"%s\"}", t->native);
	if (t->gates)
		slu_buf_printf(b, ",\"schedulingGates\":[%s%s%s]",
			       t->gates & GATE_OURS ? "{\"name\":\"fluxqueue\"}" : "",
			       t->gates == (GATE_OURS | GATE_OTHER) ? "," : "",
			       t->gates & GATE_OTHER ? "{\"name\":\"example.com/wait\"}" : "");
}

static void put_template(struct slu_buf *b, const struct tmpl *t)
{
	slu_buf_puts(b, ",\"template\":{\"metadata\":{\"name\":\"\"");
	put_pairs(b, "labels", &t->label);
	put_pairs(b, "annotations", &t->note);
	slu_buf_puts(b, "},\"spec\":{");
	put_spec(b, t);
	slu_buf_puts(b, "}}");
}

static void put_pod(struct slu_buf *b, const struct obj *o)
{
	static const char *const phase[] = { "Pending", "Running", "Succeeded", "Failed" };
	const struct pod *p = &o->pod;

	slu_buf_puts(b, ",\"spec\":{");
	put_spec(b, &p->t);
	if (p->t.overhead_m)
		slu_buf_printf(b, ",\"overhead\":{\"cpu\":\"%dm\"}", p->t.overhead_m);
	if (*p->t.priority)
		slu_buf_printf(b, ",\"priority\":%d", p->priority);
	if (*p->pin)
		slu_buf_printf(
			b,
			",\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"
			"{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\","
			"\"operator\":\"In\",\"values\":[\"%s\"]}]}]}}}",
			p->pin);
	if (*p->node)
		slu_buf_printf(b, ",\"nodeName\":\"%s\"", p->node);
	slu_buf_printf(b, "},\"status\":{\"phase\":\"%s\"", phase[p->phase]);
	if (*p->reason)
		slu_buf_printf(b, ",\"reason\":\"%s\"", p->reason);
	if (p->bad)
		slu_buf_puts(b, ",\"startTime\":\"0000-01-01T00:00:00Z\"");
	else if (p->start_us)
		put_time(b, "startTime", p->start_us);
	if (*p->node)
		slu_buf_puts(b, ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"}");
	else if (p->unschedulable)
		slu_buf_puts(
			b,
			",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\"}");
	if (*p->node && p->phase == RUNNING)
		slu_buf_puts(b, ",{\"type\":\"Ready\",\"status\":\"True\"}");
	slu_buf_puts(b, *p->node || p->unschedulable ? "]}" : "}");
}

static void put_node(struct slu_buf *b, const struct obj *o)
{
	const struct node *n = &o->node;

	slu_buf_puts(b, ",\"spec\":{");
	if (n->cordoned)
		slu_buf_puts(b, "\"unschedulable\":true");
	if (n->taint)
		slu_buf_printf(b,
			       "%s\"taints\":[{\"key\":\"dedicated\",\"effect\":\"NoSchedule\"}]",
			       n->cordoned ? "," : "");
	slu_buf_printf(
		b,
		"},\"status\":{\"allocatable\":{\"cpu\":\"%dm\",\"memory\":\"64Gi\",\"pods\":\"110\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}",
		n->cpu_m, n->ready ? "True" : "False");
}

static void put_job(struct slu_buf *b, const struct obj *o)
{
	const struct job *j = &o->job;

	slu_buf_printf(b, ",\"spec\":{\"parallelism\":%d", j->parallelism);
	if (j->completions >= 0)
		slu_buf_printf(b, ",\"completions\":%d", j->completions);
	if (j->deadline_s)
		slu_buf_printf(b, ",\"activeDeadlineSeconds\":%d", j->deadline_s);
	slu_buf_printf(b, ",\"backoffLimit\":%d,\"completionMode\":\"%s\",\"suspend\":%s",
		       j->backoff, j->indexed ? "Indexed" : "NonIndexed",
		       j->suspend ? "true" : "false");
	if (j->first_ends)
		slu_buf_puts(b, ",\"successPolicy\":{\"rules\":[{\"succeededIndexes\":\"0\"}]}");
	if (j->failure_ends)
		slu_buf_puts(
			b,
			",\"podFailurePolicy\":{\"rules\":[{\"action\":\"FailJob\",\"onExitCodes\":"
			"{\"operator\":\"NotIn\",\"values\":[0]}}]}");
	put_template(b, &j->t);
	slu_buf_printf(b, "},\"status\":{\"active\":%d,\"succeeded\":%d,\"failed\":%d", j->active,
		       j->succeeded, j->failed);
	if (j->start_us)
		put_time(b, "startTime", j->start_us);
	slu_buf_printf(b, ",\"conditions\":[{\"type\":\"Suspended\",\"status\":\"%s\"}%s%s]}",
		       j->suspended ? "True" : "False",
		       j->complete ? ",{\"type\":\"Complete\",\"status\":\"True\"}" : "",
		       j->failed_cond ? ",{\"type\":\"Failed\",\"status\":\"True\"}" : "");
}

static void put_set(struct slu_buf *b, const struct obj *o)
{
	const struct set *s = &o->set;

	slu_buf_printf(b, ",\"spec\":{\"replicas\":%d", s->replicas);
	if (o->kind == SLU_KIND_STATEFULSET)
		slu_buf_printf(b, ",\"serviceName\":\"s\",\"podManagementPolicy\":\"%s\"",
			       s->parallel ? "Parallel" : "OrderedReady");
	put_template(b, &s->t);
	slu_buf_printf(b, "},\"status\":{\"replicas\":%d}", s->now);
}

void kube_text(const struct obj *o, struct slu_buf *b)
{
	put_meta(b, o);
	switch (o->kind) {
	case SLU_KIND_POD:
		put_pod(b, o);
		break;
	case SLU_KIND_NODE:
		put_node(b, o);
		break;
	case SLU_KIND_JOB:
		put_job(b, o);
		break;
	case SLU_KIND_REPLICASET:
	case SLU_KIND_DEPLOYMENT:
	case SLU_KIND_STATEFULSET:
		put_set(b, o);
		break;
	default:
		if (is_custom(o->kind))
			custom_text(o, b);
		else if (is_plain(o->kind))
			slu_buf_puts(b, o->custom.spec);
		break;
	}
	slu_buf_puts(b, "}");
}
