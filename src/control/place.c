#include "control/place.h"

#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "wire/jsonw.h"

#define BODY_MAX (1u << 20)

enum { PRIORITY_LOW, PRIORITY_EVENT, PRIORITY_SCHEDULED, PRIORITY_BIND = 7 };

struct slu_place {
	struct slu_kube_client *client;
	struct slu_loop *loop;
	struct slu_inbox *in, *core;
	char instance[128];
	uint64_t serial; /* makes event names unique, with the time of start */
	uint64_t born_us;
	struct slu_place_stats stats;
	struct call *first; /* under way */
	bool closing;
	bool (*held)(void *arg);
	void *held_arg;
	void (*look)(void *arg, enum slu_kkind kind, bool again);
	void *look_arg;
};

struct call {
	struct call *next, **link;
	struct slu_place *p;
	struct slu_rec_write *w;
};

static void stamp_us(char out[40])
{
	struct timespec t;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	n = strftime(out, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 40 - n, ".%06ldZ", t.tv_nsec / 1000);
}

/* ---- bodies ---- */

static void bind_body(const struct slu_rec_write *w, struct slu_jsonw *j)
{
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "apiVersion", "v1");
	slu_jsonw_kstr(j, "kind", "Binding");
	slu_jsonw_key(j, "metadata");
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "name", w->name);
	slu_jsonw_kstr(j, "namespace", w->ns);
	slu_jsonw_kstr(j, "uid", w->uid); /* never a later pod of the same name */
	slu_jsonw_end_obj(j);
	slu_jsonw_key(j, "target");
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "kind", "Node");
	slu_jsonw_kstr(j, "name", w->node);
	slu_jsonw_end_obj(j);
	slu_jsonw_end_obj(j);
}

static void event_body(struct slu_place *p, const struct slu_rec_write *w, const char *reason,
		       const char *action, const char *note, struct slu_jsonw *j)
{
	const struct slu_kkind_info *k = slu_kkind_info(w->kind);
	char name[320], at[40], api[128], instance[256];

	snprintf(name, sizeof name, "%.230s.%" PRIx64 "%04" PRIx64, w->name, p->born_us,
		 ++p->serial);
	snprintf(api, sizeof api, "%s%s%s", k->group, *k->group ? "/" : "", k->version);
	snprintf(instance, sizeof instance, "%.100s-%.120s", w->reporter, p->instance);
	stamp_us(at);
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "apiVersion", "events.k8s.io/v1");
	slu_jsonw_kstr(j, "kind", "Event");
	slu_jsonw_key(j, "metadata");
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "name", name);
	slu_jsonw_kstr(j, "namespace", w->ns);
	slu_jsonw_end_obj(j);
	slu_jsonw_kstr(j, "eventTime", at);
	slu_jsonw_kstr(j, "type", w->warning ? "Warning" : "Normal");
	slu_jsonw_kstr(j, "reason", reason);
	slu_jsonw_kstr(j, "action", action);
	slu_jsonw_key(j, "note");
	slu_jsonw_strn(j, note, strnlen(note, 1000)); /* the server refuses more than 1 kB */
	slu_jsonw_kstr(j, "reportingController", w->reporter);
	slu_jsonw_kstr(j, "reportingInstance", instance);
	slu_jsonw_key(j, "regarding");
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "apiVersion", api);
	slu_jsonw_kstr(j, "kind", k->kind);
	slu_jsonw_kstr(j, "name", w->name);
	slu_jsonw_kstr(j, "namespace", w->ns);
	slu_jsonw_kstr(j, "uid", w->uid);
	slu_jsonw_end_obj(j);
	slu_jsonw_end_obj(j);
}

static void condition_body(const struct slu_rec_write *w, struct slu_jsonw *j)
{
	char at[40];

	stamp_us(at);
	strcpy(at + strlen("2026-01-01T00:00:00"), "Z"); /* whole seconds */
	slu_jsonw_obj(j);
	slu_jsonw_key(j, "metadata");
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "uid", w->uid);
	slu_jsonw_end_obj(j);
	slu_jsonw_key(j, "status");
	slu_jsonw_obj(j);
	slu_jsonw_key(j, "conditions");
	slu_jsonw_arr(j);
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "type", "PodScheduled");
	slu_jsonw_kstr(j, "status", "False");
	slu_jsonw_kstr(j, "reason", w->reason);
	slu_jsonw_kstr(j, "message", w->text);
	slu_jsonw_kstr(j, "lastTransitionTime", at);
	slu_jsonw_end_obj(j);
	slu_jsonw_end_arr(j);
	slu_jsonw_end_obj(j);
	slu_jsonw_end_obj(j);
}

static void part_body(const struct slu_rec_write *w, struct slu_jsonw *j)
{
	slu_jsonw_obj(j);
	if (w->verb == SLU_WRITE_STATUS) {
		slu_jsonw_key(j, "status");
		slu_jsonw_raw(j, w->text, strlen(w->text));
	} else {
		slu_jsonw_key(j, "metadata");
		slu_jsonw_obj(j);
		slu_jsonw_kstr(j, "uid", w->uid);
		slu_jsonw_key(j, "annotations");
		slu_jsonw_raw(j, w->text, strlen(w->text));
		slu_jsonw_end_obj(j);
	}
	slu_jsonw_end_obj(j);
}

static void evict_body(const struct slu_rec_write *w, struct slu_jsonw *j)
{
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "apiVersion", "policy/v1");
	slu_jsonw_kstr(j, "kind", "Eviction");
	slu_jsonw_key(j, "metadata");
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "name", w->name);
	slu_jsonw_kstr(j, "namespace", w->ns);
	slu_jsonw_end_obj(j);
	slu_jsonw_key(j, "deleteOptions");
	slu_jsonw_obj(j);
	slu_jsonw_key(j, "preconditions");
	slu_jsonw_obj(j);
	slu_jsonw_kstr(j, "uid", w->uid);
	slu_jsonw_end_obj(j);
	slu_jsonw_end_obj(j);
	slu_jsonw_end_obj(j);
}

/* ---- sending ---- */

static void call_free(struct call *k)
{
	*k->link = k->next;
	if (k->next)
		k->next->link = k->link;
	k->p->stats.under_way--;
	if (k->w)
		k->w->base.free(&k->w->base);
	slu_free(k);
}

static struct call *call_new(struct slu_place *p, struct slu_rec_write *w)
{
	struct call *k = slu_calloc(1, sizeof *k);

	if (!k)
		return NULL;
	k->p = p;
	k->w = w;
	k->next = p->first;
	k->link = &p->first;
	if (k->next)
		k->next->link = &k->next;
	p->first = k;
	p->stats.under_way++;
	return k;
}

static void answer(struct slu_place *p, const struct slu_rec_write *w, enum slu_kube_outcome o,
		   bool uncertain, const char *text)
{
	struct slu_record *r;

	if (o != SLU_KUBE_OK) {
		p->stats.failed[w->verb]++;
		if (o != SLU_KUBE_NOT_FOUND && o != SLU_KUBE_CANCELLED)
			slu_log(w->run ? SLU_WARN : SLU_DEBUG, "write failed",
				SLU_STR("verb", slu_write_name(w->verb)), SLU_STR("err", text));
	}
	if (!w->run)
		return;
	r = slu_rec_written_new(w, o, uncertain, text);
	if (r && slu_inbox_put_answer(p->core, r) < 0)
		r->free(r);
}

static void event_done(void *arg, const struct slu_kube_reply *r)
{
	struct call *k = arg;

	if (r->outcome != SLU_KUBE_OK)
		slu_log(SLU_DEBUG, "event not written", SLU_STR("err", r->error));
	call_free(k);
}

static int send(struct slu_place *p, struct slu_kube_request *q, const char *group,
		const char *version, const char *ns, const char *plural, const char *name,
		const char *sub, struct slu_buf *body)
{
	struct slu_buf path = SLU_BUF_INIT(2048);
	int rc = slu_kube_path(&path, group, version, ns, plural, name, sub);

	if (!rc)
		rc = path.error ? path.error : body->error;
	if (!rc) {
		q->path = path.p;
		q->body = body->p;
		q->body_len = body->n;
		/* The answer is not read: the small form will do, where there is one. */
		if (!q->accept)
			q->accept = SLU_KUBE_PROTOBUF;
		q->guard = p->held; /* it may wait for its turn longer than we lead */
		q->guard_arg = p->held_arg;
		rc = slu_kube_send(p->client, q, NULL);
	}
	slu_buf_done(&path);
	return rc;
}

static void scheduled_event(struct slu_place *p, const struct slu_rec_write *w)
{
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_jsonw j = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct slu_kube_request q = { .method = SLU_HTTP_POST,
				      .priority = PRIORITY_SCHEDULED,
				      .done = event_done };
	char note[700];
	struct call *k = call_new(p, NULL);

	if (!k)
		return;
	q.arg = k;
	snprintf(note, sizeof note, "Successfully assigned %s/%s to %s", w->ns, w->name, w->node);
	event_body(p, w, "Scheduled", "Binding", note, &j);
	p->stats.scheduled_events++;
	if (send(p, &q, "events.k8s.io", "v1", w->ns, "events", NULL, NULL, &b) < 0)
		call_free(k);
	slu_buf_done(&b);
}

static void done(void *arg, const struct slu_kube_reply *r)
{
	struct call *k = arg;
	struct slu_place *p = k->p;

	if (k->w->verb == SLU_WRITE_BIND && r->outcome == SLU_KUBE_OK && !p->closing)
		scheduled_event(p, k->w);
	answer(p, k->w, r->outcome, r->uncertain, r->error);
	call_free(k);
}

static void carry_out(struct slu_place *p, struct slu_rec_write *w)
{
	const struct slu_kkind_info *i = slu_kkind_info(w->kind);
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_jsonw j = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct slu_kube_request q = { .method = SLU_HTTP_POST,
				      .priority = PRIORITY_LOW,
				      .done = done,
				      .timeout_ns = w->limit_ns };
	struct call *k = call_new(p, w);
	int rc = k ? 0 : -ENOMEM;

	q.arg = k;
	if (p->held && !p->held(p->held_arg))
		rc = -EPERM;
	else
		p->stats.sent[w->verb]++;
	if (!rc) {
		switch (w->verb) {
		case SLU_WRITE_BIND:
			/* Twice is harmless: the second finds it bound. */
			q.priority = PRIORITY_BIND;
			q.repeatable = true;
			bind_body(w, &j);
			rc = send(p, &q, "", "v1", w->ns, "pods", w->name, "binding", &b);
			break;
		case SLU_WRITE_EVENT:
			q.priority = PRIORITY_EVENT;
			event_body(p, w, w->reason, "Scheduling", w->text, &j);
			rc = send(p, &q, "events.k8s.io", "v1", w->ns, "events", NULL, NULL, &b);
			break;
		case SLU_WRITE_CONDITION:
			q.method = SLU_HTTP_PATCH;
			q.content_type = SLU_KUBE_STRATEGIC_PATCH;
			condition_body(w, &j);
			rc = send(p, &q, "", "v1", w->ns, "pods", w->name, "status", &b);
			break;
		case SLU_WRITE_ANNOTATE:
		case SLU_WRITE_STATUS:
			q.method = SLU_HTTP_PATCH;
			/* Conditions of a built-in kind are merged by type; others have only one
			 * writer. */
			q.content_type = w->verb == SLU_WRITE_STATUS && w->kind == SLU_KIND_PODGROUP
						 ? SLU_KUBE_STRATEGIC_PATCH
						 : SLU_KUBE_MERGE_PATCH;
			part_body(w, &j);
			q.accept = i->json_only ? SLU_KUBE_JSON : NULL;
			rc = send(p, &q, i->group, i->version, w->ns, i->resource, w->name,
				  w->verb == SLU_WRITE_STATUS && w->kind != SLU_KIND_PODGROUP_SIGS
					  ? "status"
					  : NULL,
				  &b);
			break;
		case SLU_WRITE_EVICT:
			evict_body(w, &j);
			rc = send(p, &q, "", "v1", w->ns, "pods", w->name, "eviction", &b);
			break;
		case SLU_WRITE_PATCH:
			/* Names the uid and the values as they shall be: twice is once. */
			q.method = SLU_HTTP_PATCH;
			q.content_type = SLU_KUBE_STRATEGIC_PATCH;
			q.priority = PRIORITY_BIND;
			q.repeatable = true;
			slu_buf_puts(&b, w->text);
			rc = send(p, &q, i->group, i->version, w->ns, i->resource, w->name, NULL,
				  &b);
			break;
		case SLU_WRITE_COUNT:
			rc = -EINVAL;
		}
	}
	slu_buf_done(&b);
	if (rc == 0)
		return;
	answer(p, w, SLU_KUBE_RETRYABLE, false,
	       rc == -EPERM ? "this replica leads no more" : "could not be sent");
	if (k)
		call_free(k);
	else
		w->base.free(&w->base);
}

static void look_for(struct slu_place *p, struct slu_record *r)
{
	const struct slu_rec_look *l = (struct slu_rec_look *)r;

	if (p->look)
		p->look(p->look_arg, l->kind, l->again);
	r->free(r);
}

static void drain(void *arg)
{
	struct slu_place *p = arg;
	struct slu_record *r[256];
	uint32_t n;

	while ((n = slu_inbox_take(p->in, r, SLU_LEN(r))))
		for (uint32_t i = 0; i < n; i++)
			if (r[i]->kind == SLU_REC_LOOK)
				look_for(p, r[i]);
			else
				carry_out(p, (struct slu_rec_write *)r[i]);
}

/* On the core thread. */
static void wake(void *arg)
{
	struct slu_place *p = arg;

	if (slu_loop_post(p->loop, drain, p) < 0)
		slu_log(SLU_ERROR, "cannot wake the io thread");
}

struct slu_place *slu_place_new(struct slu_kube_client *client, const char *instance)
{
	struct slu_place *p = slu_calloc(1, sizeof *p);
	struct timespec t;

	if (!p)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &t);
	p->born_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	p->client = client;
	p->loop = slu_kube_client_loop(client);
	snprintf(p->instance, sizeof p->instance, "%s", instance);
	p->in = slu_inbox_new(UINT32_MAX, wake, p);
	if (!p->in) {
		slu_free(p);
		return NULL;
	}
	return p;
}

void slu_place_free(struct slu_place *p)
{
	if (!p)
		return;
	slu_inbox_free(p->in);
	slu_free(p);
}

struct slu_inbox *slu_place_inbox(struct slu_place *p)
{
	return p->in;
}

void slu_place_answers(struct slu_place *p, struct slu_inbox *core)
{
	p->core = core;
}

void slu_place_look(struct slu_place *p, void (*fn)(void *arg, enum slu_kkind kind, bool again),
		    void *arg)
{
	p->look = fn;
	p->look_arg = arg;
}

void slu_place_fence(struct slu_place *p, bool (*held)(void *arg), void *arg)
{
	p->held = held;
	p->held_arg = arg;
}

void slu_place_close(struct slu_place *p)
{
	p->closing = true;
}

void slu_place_stats(const struct slu_place *p, struct slu_place_stats *out)
{
	*out = p->stats;
}
