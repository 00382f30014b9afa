/* Writes of the core on their way to the server, as control/io/place.c carries them out: whatever was
 * lost without an answer is looked up and sent again, answers go back to the core. */
#include <stdio.h>

#include "control/io/place.h"
#include "coverage.h"
#include "daemon.h"
#include "wire/json.h"

struct request {
	struct slu_rec_write *x;
	int daemon;
	uint64_t life;
	int64_t issued_us;
	bool unsure; /* an answer to it was lost */
	enum slu_kube_outcome outcome;
};

static uint64_t uid_of(const char *s)
{
	return *s == 'u' ? strtoull(s + 1, NULL, 10) : 0;
}

/* Metadata of a merge patch: null removes. */
static void merge_pairs(struct pairs *p, const struct slu_json *map)
{
	slu_json_each (map, it)
		pairs_set(p, it.key, slu_json_str(it.val));
}

static void release_pod(struct obj *o, const struct slu_json *spec)
{
	slu_json_each (slu_json_get(spec, "schedulingGates"), it)
		if (slu_json_str(slu_json_get(it.val, "$patch")))
			o->pod.t.gates &= (uint8_t)~GATE_OURS;
	slu_json_each (slu_json_dig(spec, "affinity", "nodeAffinity",
				    "requiredDuringSchedulingIgnoredDuringExecution",
				    "nodeSelectorTerms", NULL),
		       it)
		for (int k = 0; k < 2; k++)
			slu_json_each (slu_json_get(it.val, k ? "matchFields" : "matchExpressions"),
				       e)
				snprintf(o->pod.pin, sizeof o->pod.pin, "%s",
					 slu_json_str_or(
						 slu_json_item(slu_json_get(e.val, "values"), 0),
						 ""));
}

static void patch_owner(struct world *w, struct obj *o, const struct slu_json *spec)
{
	struct tmpl *t = o->kind == SLU_KIND_JOB ? &o->job.t : &o->set.t;

	if (slu_json_get(spec, "suspend"))
		o->job.suspend = slu_json_bool_or(slu_json_get(spec, "suspend"), false);
	if (o->kind == SLU_KIND_JOB && o->job.by_user && !o->job.suspend && w->age >= 3)
		world_broken(w, "resumed", "Job %s is resumed, and its user suspended it", o->name);
	if (slu_json_get(spec, "parallelism"))
		o->job.parallelism = (int32_t)slu_json_i64_or(slu_json_get(spec, "parallelism"), 1);
	if (slu_json_get(spec, "completions"))
		o->job.completions = (int32_t)slu_json_i64_or(slu_json_get(spec, "completions"), 1);
	if (slu_json_get(spec, "replicas"))
		o->set.replicas = (int32_t)slu_json_i64_or(slu_json_get(spec, "replicas"), 1);
	if (slu_json_dig(spec, "template", "spec", "schedulingGates", NULL))
		t->gates |= GATE_OURS;
}

/* `whole`: the text is the object; else it is its annotations, or its spec. */
static enum slu_kube_outcome patch(struct world *w, struct obj *o, const struct request *q)
{
	const struct slu_rec_write *x = q->x;
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *root, *meta, *spec;
	const char *uid, *rv;

	if (slu_json_parse(x->text, strlen(x->text), NULL, &doc, NULL) < 0)
		return SLU_KUBE_INVALID;
	root = slu_json_root(doc);
	if (is_custom(o->kind) && (x->verb == SLU_WRITE_STATUS || x->verb == SLU_WRITE_SPEC)) {
		custom_merge(o, x->verb == SLU_WRITE_STATUS, root);
		kube_changed(w, o, x->verb == SLU_WRITE_SPEC);
		return SLU_KUBE_OK;
	}
	if (x->verb == SLU_WRITE_ANNOTATE) {
		merge_pairs(&o->note, root);
		kube_changed(w, o, false);
		return SLU_KUBE_OK;
	}
	meta = slu_json_get(root, "metadata");
	spec = x->verb == SLU_WRITE_SPEC ? root : slu_json_get(root, "spec");
	uid = slu_json_str(slu_json_get(meta, "uid"));
	rv = slu_json_str(slu_json_get(meta, "resourceVersion"));
	if (uid && uid_of(uid) != o->uid)
		return SLU_KUBE_INVALID;
	if (rv && strtoull(rv, NULL, 10) != o->rv)
		return SLU_KUBE_CONFLICT;
	/* A Job's template changes only before it has had pods. */
	if (o->kind == SLU_KIND_JOB && slu_json_get(spec, "template") &&
	    (!o->job.suspended || o->job.start_us))
		return SLU_KUBE_INVALID;
	/* The spec of a bound pod does not change any more; a patch that says what is so is fine. */
	if (o->kind == SLU_KIND_POD && spec && *o->pod.node) {
		struct obj after = *o;

		release_pod(&after, spec);
		return after.pod.t.gates == o->pod.t.gates && !strcmp(after.pod.pin, o->pod.pin)
			       ? SLU_KUBE_OK
			       : SLU_KUBE_INVALID;
	}
	merge_pairs(&o->note, slu_json_get(meta, "annotations"));
	merge_pairs(&o->label, slu_json_get(meta, "labels"));
	if (o->kind == SLU_KIND_POD && spec) {
		release_pod(o, spec);
		o->pod.late |= !daemon_leads(w, q->daemon, q->life);
		if (*o->pod.pin) /* else the daemon binds it */
			rule_bind(w, q->daemon, q->issued_us, o, o->pod.pin);
	} else if (spec) {
		patch_owner(w, o, spec);
	}
	world_say(w, "%s %s is patched by sluiced: %.100s", slu_kkind_info(o->kind)->kind, o->name,
		  x->text);
	kube_changed(w, o, spec != NULL);
	return SLU_KUBE_OK;
}

int requests_patch(struct world *w, struct obj *o, const char *text)
{
	struct slu_rec_write x = { .verb = SLU_WRITE_PATCH, .kind = o->kind, .text = text };

	return (int)patch(w, o, &(struct request){ .x = &x });
}

/* The server reads which pod is meant from what the daemon's own encoder wrote. */
static enum slu_kube_outcome evict(struct world *w, const struct request *q)
{
	struct slu_buf b = SLU_BUF_INIT(1u << 20);
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct obj *o = kube_find(w, SLU_KIND_POD, q->x->ns, q->x->name);
	const char *uid = NULL;
	bool other;

	slu_place_body(q->x, &b);
	if (slu_json_parse(slu_buf_str(&b), b.n, NULL, &doc, NULL) == 0)
		uid = slu_json_str(slu_json_dig(slu_json_root(doc), "deleteOptions",
						"preconditions", "uid", NULL));
	other = o && uid && uid_of(uid) != o->uid;
	slu_buf_done(&b);
	if (!o)
		return SLU_KUBE_NOT_FOUND;
	rule_evict(w, q->daemon, o, uid_of(q->x->uid), other);
	if (other)
		return SLU_KUBE_CONFLICT;
	return (enum slu_kube_outcome)kube_evict(w, o);
}

static enum slu_kube_outcome apply(struct world *w, const struct request *q)
{
	const struct slu_rec_write *x = q->x;
	struct obj *o = *x->uid ? kube_get(w, uid_of(x->uid))
				: kube_find(w, x->kind, x->ns, x->name);

	if (x->verb == SLU_WRITE_EVENT) {
		cover_hit("event", x->reason);
		return SLU_KUBE_OK;
	}
	if (x->verb == SLU_WRITE_CREATE)
		return (enum slu_kube_outcome)custom_create(w, x->kind, x->text);
	if (x->verb == SLU_WRITE_EVICT)
		return evict(w, q);
	if (!is_live(o))
		return SLU_KUBE_NOT_FOUND;
	switch (x->verb) {
	case SLU_WRITE_BIND: {
		bool there = *o->pod.node;

		if (!there)
			rule_bind(w, q->daemon, q->issued_us, o, x->node);
		o->pod.late |= !there && !daemon_leads(w, q->daemon, q->life);
		/* Once more what is so already is no conflict to whoever looks it up. */
		return there && !strcmp(o->pod.node, x->node)
			       ? SLU_KUBE_OK
			       : (enum slu_kube_outcome)kube_bind(w, o, x->node, q->daemon);
	}
	case SLU_WRITE_CONDITION:
		if (!o->pod.unschedulable && !*o->pod.node) {
			o->pod.unschedulable = true;
			kube_changed(w, o, false);
		}
		return SLU_KUBE_OK;
	default:
		return patch(w, o, q);
	}
}

static void request_free(struct request *q)
{
	q->x->base.free(&q->x->base);
	slu_free(q);
}

static void answered(struct world *w, uint64_t p, uint64_t unused)
{
	struct request *q = (struct request *)(uintptr_t)p;
	struct daemon *d = w->daemon[q->daemon];
	struct obj *pod = kube_get(w, uid_of(q->x->uid));
	char what[64];

	snprintf(what, sizeof what, "%s answered %s", slu_write_name(q->x->verb),
		 slu_kube_outcome_name(q->outcome));
	cover_hit("write", what);
	if (q->x->verb == SLU_WRITE_BIND && q->outcome != SLU_KUBE_OK && pod)
		*pod->pod.sent = 0;
	if (d && d->life == q->life && q->x->run) {
		struct slu_record *r = slu_rec_written_new(q->x, q->outcome, false, "");

		if (slu_inbox_put_answer(slu_core_inbox(d->core), r) < 0)
			abort();
		daemon_wake(d);
	}
	request_free(q);
}

static bool use(int *n)
{
	if (*n <= 0)
		return false;
	(*n)--;
	return true;
}

/* It matters whether it was done: placing and letting go. */
static bool is_decision(const struct slu_rec_write *x)
{
	return x->verb == SLU_WRITE_BIND || (x->verb == SLU_WRITE_PATCH && x->kind == SLU_KIND_POD);
}

/* Whoever is not sure looks the pod up, until there is an answer, before the bind is sent again. */
static bool is_there(struct world *w, const struct request *q)
{
	const struct obj *o = q->unsure && q->x->verb == SLU_WRITE_BIND
				      ? kube_get(w, uid_of(q->x->uid))
				      : NULL;

	return is_live(o) && !strcmp(o->pod.node, q->x->node);
}

static void arrive(struct world *w, uint64_t p, uint64_t unused)
{
	struct request *q = (struct request *)(uintptr_t)p;
	struct faults *f = &w->fault;
	bool lost = false;

	w->events++;
	if (is_there(w, q)) {
		q->outcome = SLU_KUBE_OK;
		world_at(w, w->now_us + world_span(w, q->x->serial + w->rv, 300, 6000), answered, p,
			 0);
		return;
	}
	if (q->x->verb == SLU_WRITE_BIND && daemon_leads(w, 0, q->life) && use(&f->die_at_bind)) {
		world_say(w, "a bind of %s takes its time, and sluiced dies", q->x->name);
		world_at(w, w->now_us + 4 * SECOND, arrive, p, 0);
		faults_at_bind(w);
		return;
	}
	if (use(&f->late)) {
		world_say(w, "a %s takes its time", slu_write_name(q->x->verb));
		world_at(w, w->now_us + 4 * SECOND, arrive, p, 0);
		return;
	}
	if (use(&f->lose_before)) {
		world_say(w, "a %s of %s is lost", slu_write_name(q->x->verb), q->x->name);
		lost = true;
		q->outcome = SLU_KUBE_RETRYABLE;
	} else if (use(&f->strained)) {
		q->outcome = SLU_KUBE_RETRYABLE;
	} else if (!is_decision(q->x) && use(&f->conflict)) { /* a bind that 409 answers is done */
		q->outcome = SLU_KUBE_CONFLICT;
	} else if (use(&f->fail)) {
		q->outcome = SLU_KUBE_FAILED;
	} else {
		q->outcome = apply(w, q);
		if (q->outcome != SLU_KUBE_OK)
			world_say(w, "a %s of %s%s%s is answered %s", slu_write_name(q->x->verb),
				  q->x->name, *q->x->node ? " to " : "", q->x->node,
				  slu_kube_outcome_name(q->outcome));
		if (use(&f->twice))
			apply(w, q);
		if (use(&f->lose_after)) {
			world_say(w, "the answer to a %s of %s is lost", slu_write_name(q->x->verb),
				  q->x->name);
			lost = true;
		}
	}
	if (lost && is_decision(q->x)) {
		q->unsure = true;
		world_at(w, w->now_us + SECOND, arrive, p, 0); /* looked up, sent again */
		return;
	}
	if (lost)
		q->outcome = SLU_KUBE_RETRYABLE;
	world_at(w,
		 w->now_us + world_span(w, q->x->serial + w->rv, 300, 6000) +
			 (use(&f->answer_late) ? 5 * SECOND : 0),
		 answered, p, 0);
}

void requests_send(struct daemon *d, struct slu_rec_write *x)
{
	struct request *q = slu_calloc(1, sizeof *q);

	d->w->writes++;
	d->w->wrote[x->verb]++;
	if (d->w->resting)
		world_say(d->w, "sluiced writes: %s of %s: %.200s", slu_write_name(x->verb),
			  x->name, x->text);
	if (x->verb == SLU_WRITE_BIND)
		rule_sent(d->w, d->n, d->life, kube_get(d->w, uid_of(x->uid)), x->node);
	if (x->verb == SLU_WRITE_EVENT || x->verb == SLU_WRITE_CONDITION)
		rule_said(d->w, d->n, kube_get(d->w, uid_of(x->uid)), x->reason);
	if (x->verb == SLU_WRITE_EVENT && !strcmp(x->reason, "DeadlineExceeded"))
		rule_overdue(d->w, kube_get(d->w, uid_of(x->uid)));
	*q = (struct request){ .x = x, .daemon = d->n, .life = d->life, .issued_us = d->w->now_us };
	world_at(d->w, d->w->now_us + world_span(d->w, x->serial * 13 + d->w->rv, 300, 6000),
		 arrive, (uint64_t)(uintptr_t)q, 0);
}

void requests_drop(struct world *w)
{
	for (uint32_t i = 0; i < w->heap.n; i++)
		if (w->heap.p[i].fn == arrive || w->heap.p[i].fn == answered)
			request_free((struct request *)(uintptr_t)w->heap.p[i].a);
}
