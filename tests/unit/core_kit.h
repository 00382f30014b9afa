/* core_kit.h — a cluster of a few lines around a core: objects go in as JSON, writes come out, and
 * what was bound is fed back as the API server would. */
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "control/core/core.h"
#include "kube/codec.h"
#include "tap.h"

#define MAX_PODS 256

struct fpod {
	char name[64], uid[80], node[32], phase[16], spec[1000], meta[1000];
	char status[200]; /* more of it: ",\"key\":value" */
	char created[24]; /* "": when the year began */
	bool there;
	uint64_t rv;
};

struct world {
	struct slu_strpool *pool;
	struct slu_kcodec *codec;
	struct slu_config *cfg;
	struct slu_intents *door;
	struct slu_inbox *out;
	struct slu_core *core;
	int64_t now_us;
	uint64_t rv;
	struct fpod pod[MAX_PODS];
	int recounts, resends; /* asked for */
	int n_pods, binds, events, conditions, evictions, statuses, annotations;
	int64_t last_limit_ns; /* of a binding */
	enum slu_kube_outcome bind_outcome;
	void (*patched)(struct world *w, struct slu_rec_write *x); /* who plays the server */
	void (*told)(struct world *w, struct slu_rec_write *x);    /* who reads statuses */
	void (*evicted)(struct world *w, const char *uid);         /* who carries it out */
	char bad_node[32];                                         /* bindings to it fail */
	char last_event[1000], last_annotation[2000], last_status[1500], last_spec[1000],
		last_create[4000];
	int creates, patches, specs;
	bool slow_kubelets; /* what is bound does not run yet */
	int answer_rc;      /* of the last question(); 1 until the answer comes */
	char answer[SLU_ERROR_MAX];
};

static inline void feed(struct world *w, enum slu_kkind kind, bool gone, const char *fmt, ...)
	SLU_PRINTF(4, 5);
static inline void feed(struct world *w, enum slu_kkind kind, bool gone, const char *fmt, ...)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };
	char text[8192];
	va_list ap;
	int n, rc;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	rc = slu_kcodec_object(w->codec, kind, SLU_ENC_JSON, text, (size_t)n, &o, &err);
	if (rc < 0) {
		ok(false, "object: %s: %s", err.text, text);
		return;
	}
	slu_core_take(w->core, slu_rec_object_new(o, gone), w->now_us);
	slu_kobj_unref(o);
}

static inline void feed_node(struct world *w, const char *name, int cpu, const char *labels,
			     const char *spec, const char *ready)
{
	feed(w, SLU_KIND_NODE, false,
	     "{\"metadata\":{\"name\":\"%s\",\"uid\":\"node-%s\",\"resourceVersion\":\"%" PRIu64
	     "\",\"labels\":{%s}},\"spec\":{%s},\"status\":{\"allocatable\":{\"cpu\":\"%d\","
	     "\"memory\":\"16Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
	     name, name, ++w->rv, labels, spec, cpu, ready);
}

static inline void pod_text(const struct fpod *p, char out[4096])
{
	snprintf(out, 4096,
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
		 "\"resourceVersion\":\"%" PRIu64 "\",\"creationTimestamp\":\"%s\"%s%s},"
		 "\"spec\":{%s%s%s%s},\"status\":{\"phase\":\"%s\"%s}}",
		 p->name, p->uid, p->rv, *p->created ? p->created : "2026-01-01T00:00:00Z",
		 *p->meta ? "," : "", p->meta, p->spec, *p->node ? ",\"nodeName\":\"" : "", p->node,
		 *p->node ? "\"" : "", p->phase, p->status);
}

static inline void feed_pod(struct world *w, struct fpod *p, bool gone)
{
	char text[4096];

	p->rv = ++w->rv;
	pod_text(p, text);
	feed(w, SLU_KIND_POD, gone, "%s", text);
}

/* A pod that the core has not seen yet; feed_pod() shows it. */
static inline struct fpod *make_pod(struct world *w, const char *name, const char *scheduler,
				    const char *cpu, const char *meta)
{
	struct fpod *p = &w->pod[w->n_pods++];

	*p = (struct fpod){ 0 }; /* another pod may have had the place before a restart */
	snprintf(p->name, sizeof p->name, "%s", name);
	snprintf(p->uid, sizeof p->uid, "uid-%s-%d", name, w->n_pods);
	snprintf(p->phase, sizeof p->phase, "Pending");
	snprintf(p->meta, sizeof p->meta, "%s", meta);
	snprintf(p->spec, sizeof p->spec,
		 "\"schedulerName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		 "\"requests\":{\"cpu\":\"%s\"}}}]",
		 scheduler, cpu);
	p->there = true;
	return p;
}

static inline struct fpod *add_pod(struct world *w, const char *name, const char *scheduler,
				   const char *cpu, const char *meta)
{
	struct fpod *p = make_pod(w, name, scheduler, cpu, meta);

	feed_pod(w, p, false);
	return p;
}

static inline void end_pod(struct world *w, struct fpod *p, const char *phase)
{
	snprintf(p->phase, sizeof p->phase, "%s", phase);
	feed_pod(w, p, false);
}

static inline void delete_pod(struct world *w, struct fpod *p)
{
	p->there = false;
	feed_pod(w, p, true);
}

static inline void carry_out(struct world *w, struct slu_rec_write *x)
{
	switch (x->verb) {
	case SLU_WRITE_BIND: {
		enum slu_kube_outcome o = strcmp(x->node, w->bad_node) ? w->bind_outcome
								       : SLU_KUBE_FAILED;

		w->binds++;
		w->last_limit_ns = x->limit_ns;
		for (int i = 0; i < w->n_pods && o == SLU_KUBE_OK; i++)
			if (!strcmp(w->pod[i].uid, x->uid) && w->pod[i].there) {
				snprintf(w->pod[i].node, sizeof w->pod[i].node, "%s", x->node);
				if (!w->slow_kubelets)
					snprintf(w->pod[i].phase, sizeof w->pod[i].phase,
						 "Running");
				feed_pod(w, &w->pod[i], false);
			}
		slu_core_take(w->core, slu_rec_written_new(x, o, false, "so it is"), w->now_us);
		break;
	}
	case SLU_WRITE_EVENT:
		w->events++;
		snprintf(w->last_event, sizeof w->last_event, "%s", x->text);
		break;
	case SLU_WRITE_CONDITION:
		w->conditions++;
		break;
	case SLU_WRITE_EVICT:
		w->evictions++;
		if (w->evicted)
			w->evicted(w, x->uid);
		break;
	case SLU_WRITE_ANNOTATE:
		w->annotations++;
		snprintf(w->last_annotation, sizeof w->last_annotation, "%s", x->text);
		break;
	case SLU_WRITE_STATUS:
		w->statuses++;
		if (w->told)
			w->told(w, x);
		snprintf(w->last_status, sizeof w->last_status, "%s", x->text);
		break;
	case SLU_WRITE_SPEC:
		w->specs++;
		snprintf(w->last_spec, sizeof w->last_spec, "%s %s", x->name, x->text);
		slu_core_take(w->core, slu_rec_written_new(x, w->bind_outcome, false, "so it is"),
			      w->now_us);
		break;
	case SLU_WRITE_CREATE:
		w->creates++;
		snprintf(w->last_create, sizeof w->last_create, "%s", x->text);
		break;
	case SLU_WRITE_PATCH:
		w->patches++;
		if (w->patched)
			w->patched(w, x);
		break;
	case SLU_WRITE_COUNT:
		break;
	}
}

/* Cycles until nothing is written any more. */
static inline void turn(struct world *w)
{
	for (int round = 0; round < 20; round++) {
		struct slu_error err = { 0 };
		struct slu_record *r;
		bool any = false;

		w->now_us += 1000;
		if (slu_core_cycle(w->core, w->now_us, &err) < 0)
			ok(false, "cycle: %s", err.text);
		while (slu_inbox_take(w->out, &r, 1)) {
			if (r->kind == SLU_REC_LOOK)
				(*(((struct slu_rec_look *)r)->again ? &w->resends
								     : &w->recounts))++;
			else
				carry_out(w, (struct slu_rec_write *)r);
			r->free(r);
			any = true;
		}
		if (!any)
			return;
	}
}

static inline uint64_t differences(struct world *w)
{
	struct slu_snapshot *s;
	uint64_t n;

	w->now_us += 61000000; /* the next audit, and a fresh picture */
	turn(w);
	s = slu_core_snapshot(w->core);
	n = s->count.audit_differences;
	ok(s->count.audits > 0, "the books were compared");
	slu_snapshot_unref(s);
	return n;
}

static inline void later(struct world *w, int seconds)
{
	w->now_us += (int64_t)seconds * 1000000;
	turn(w);
}

static inline void free_ask_record(struct slu_record *r)
{
	slu_free(r);
}

/* Send a user's request about a gang, as the socket does; `answer` may be NULL. */
static inline void take_ask(struct world *w, enum slu_ask what, const char *name,
			    void (*answer)(void *arg, int rc, const char *text))
{
	struct slu_rec_ask *a = slu_calloc(1, sizeof *a);

	a->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = free_ask_record };
	a->what = what;
	a->answer = answer;
	snprintf(a->ns, sizeof a->ns, "ns");
	snprintf(a->name, sizeof a->name, "%s", name);
	slu_core_take(w->core, &a->base, w->now_us);
}

static inline void note_answer(void *arg, int rc, const char *text)
{
	struct world *w = arg;

	w->answer_rc = rc;
	snprintf(w->answer, sizeof w->answer, "%s", text);
}

/* Ask what `like` asks, about `name` in namespace ns.  The answer comes to w->answer_rc and w->answer. */
static inline void question(struct world *w, const char *name, const struct slu_rec_ask *like)
{
	struct slu_rec_ask *a = slu_calloc(1, sizeof *a);

	*a = *like;
	a->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = free_ask_record };
	a->answer = note_answer;
	a->arg = w;
	snprintf(a->ns, sizeof a->ns, "ns");
	snprintf(a->name, sizeof a->name, "%s", name);
	w->answer_rc = 1;
	*w->answer = 0;
	slu_core_take(w->core, &a->base, w->now_us);
	turn(w);
}

static inline void ignore_answer(void *arg, int rc, const char *text)
{
}

/* A fresh picture; borrowed until eight more were taken, so that one check may name several. */
static inline struct slu_snapshot *picture(struct world *w)
{
	static struct slu_snapshot *kept[8];
	static uint32_t next;
	struct slu_snapshot **at = &kept[next++ % SLU_LEN(kept)];

	slu_snapshot_unref(*at);
	take_ask(w, SLU_ASK_SNAPSHOT, "", ignore_answer);
	turn(w);
	return *at = slu_core_snapshot(w->core);
}

/* ... of one job. */
static inline struct slu_snap_job pictured(struct world *w, const char *name)
{
	struct slu_snapshot *s = picture(w);

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name))
			return s->job[i];
	return (struct slu_snap_job){ .state = "", .reason = "" };
}

static inline int bound(const struct world *w, const char *prefix)
{
	int n = 0;

	for (int i = 0; i < w->n_pods; i++)
		n += w->pod[i].there && *w->pod[i].node && !strcmp(w->pod[i].phase, "Running") &&
		     !strncmp(w->pod[i].name, prefix, strlen(prefix));
	return n;
}

/* For tests that are about the promise to the first in line. */
#define FIRST_PROMISED "queues: [{name: default, objective: throughput}]"

static inline void open_world_at(struct world *w, const char *store, int nodes, int cpu,
				 const char *yaml)
{
	struct slu_journal_setup js = { .url = store, .cluster = "c", .holder = "test" };
	struct slu_core_setup cs = { .verify = true };
	struct slu_error err = { 0 };

	*w = (struct world){ .now_us = INT64_C(1767225600000000) + 10000000 };
	w->bind_outcome = SLU_KUBE_OK;
	w->pool = slu_strpool_new();
	w->codec = slu_kcodec_new(w->pool);
	w->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	if (slu_config_parse("test", yaml, strlen(yaml), &w->cfg, &err) < 0 ||
	    slu_intents_new(&js, &w->door, &err) < 0)
		ok(false, "start: %s", err.text);
	cs.config = w->cfg;
	cs.door = w->door;
	cs.out = w->out;
	if (slu_core_new(&cs, &w->core, &err) < 0)
		ok(false, "core: %s", err.text);
	for (int i = 0; i < nodes; i++) {
		char name[16], labels[100];

		snprintf(name, sizeof name, "n%d", i);
		snprintf(labels, sizeof labels,
			 "\"topology.sluice.sh/rack\":\"r%d\",\"kubernetes.io/hostname\":\"%s\"",
			 i / 2, name);
		feed_node(w, name, cpu, labels, "", "True");
	}
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(w->core, slu_rec_synced_new((enum slu_kkind)k), w->now_us);
}

static inline void open_world(struct world *w, int nodes, int cpu, const char *yaml)
{
	open_world_at(w, "memory:", nodes, cpu, yaml);
}

/* The next life of the core on the same store, a second later.  It has seen no object yet. */
static inline void next_life(struct world *w, const char *store)
{
	struct slu_journal_setup js = { .url = store, .cluster = "c", .holder = "test" };
	struct slu_core_setup cs = { .config = w->cfg, .verify = true };
	struct slu_error err = { 0 };

	slu_core_free(w->core);
	slu_inbox_free(w->out);
	slu_intents_free(w->door, 5000);
	w->door = NULL;
	w->now_us += 1000000;
	w->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	cs.out = w->out;
	cs.first_id = (uint64_t)(w->now_us / 1000);
	if (slu_core_new(&cs, &w->core, &err) < 0 || slu_core_lead(w->core, &js, &err) < 0)
		ok(false, "the next life starts: %s", err.text);
}

static inline void close_world(struct world *w)
{
	slu_core_free(w->core);
	slu_intents_free(w->door, 0);
	slu_inbox_free(w->out);
	slu_config_free(w->cfg);
	slu_kcodec_free(w->codec);
	slu_strpool_free(w->pool);
}

/* Mark the object as being deleted; it still exists. */
static inline void delete_softly(struct world *w, struct fpod *p)
{
	snprintf(p->meta + strlen(p->meta), sizeof p->meta - strlen(p->meta),
		 "%s\"deletionTimestamp\":\"2026-01-01T00:01:00Z\"", *p->meta ? "," : "");
	feed_pod(w, p, false);
}

#define GROUP(name, size) \
	"\"labels\":{\"fluence.pod-group\":\"" name "\",\"fluence.group-size\":\"" size "\"}"
#define OWNED(kind, uid, name)                                                              \
	"\"ownerReferences\":[{\"apiVersion\":\"x\",\"kind\":\"" kind "\",\"name\":\"" name \
	"\",\"uid\":\"" uid "\",\"controller\":true}]"

static inline void job(struct world *w, const char *uid, const char *name, const char *spec,
		       const char *status)
{
	feed(w, SLU_KIND_JOB, false,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"%" PRIu64
	     "\",\"generation\":1},\"spec\":{%s,\"template\":{}},\"status\":{%s}}",
	     name, uid, ++w->rv, spec, status);
}
