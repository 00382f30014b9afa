#include "control/io/place.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "control/io/throttle.h"
#include "kube/encode.h"
#include "kube/write.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define BODY_MAX   (1u << 20)
#define EVENTS_MAX 100000u /* Scheduled events that wait to be written, and other words */
#define SENT_AGAIN 3u      /* times an event or a binding of unknown fate is sent again */
#define REFUSED_S  15u     /* for how long a server that has just started may refuse */
#define PAUSE_NS   SLU_NS_PER_S

enum { PRIORITY_LOW, PRIORITY_EVENT, PRIORITY_SCHEDULED, PRIORITY_BIND = 6 }; /* the lease: 7 */

/* Writes that wait to be sent.  Decisions go first; of the other lines at least one write is always on
 * its way, so that a flood of bindings cannot stop them. */
enum { LINE_DECISIONS, LINE_NEWS, LINE_SCHEDULED, LINE_PAUSED, LINES };

struct line {
	struct slu_rec_write *first, *last;
	uint32_t n;
};

struct slu_place {
	struct slu_kube_client *client;
	struct slu_loop *loop;
	struct slu_inbox *in, *core;
	struct slu_call woken; /* the inbox has become non-empty */
	char instance[128];
	uint64_t serial; /* makes event names unique, with the time of start */
	uint64_t born_us;
	struct slu_place_stats stats;
	struct call *first; /* under way */
	struct slu_throttle window;
	struct line line[LINES];
	uint32_t news;  /* under way and no decision */
	uint64_t begun; /* the gang whose write was sent last */
	struct slu_timer pause;
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
	int64_t sent_ns;
	bool news;
};

/* ---- bodies ---- */

static int event_body(struct slu_place *p, const struct slu_rec_write *w, const char *reason,
		      const char *action, const char *note, int64_t at_us, struct slu_buf *b)
{
	const struct slu_kkind_info *k = slu_kkind_info(w->kind);
	char name[320], api[128], instance[129], cut[1001];
	size_t n = SLU_MIN(strlen(w->name), (size_t)230);

	while (n && strchr("-.", w->name[n - 1])) /* a part of a name ends with neither */
		n--;
	snprintf(name, sizeof name, "%.*s.%" PRIx64 "%04" PRIx64, (int)n, w->name, p->born_us,
		 ++p->serial);
	snprintf(api, sizeof api, "%s%s%s", k->group, *k->group ? "/" : "", k->version);
	/* The server refuses an instance of more than 128 bytes, a note of more than 1024. */
	snprintf(instance, sizeof instance, "%.60s-%.60s", w->reporter, p->instance);
	slu_utf8_cut(cut, sizeof cut, note);
	return slu_kenc_event(
		b, &(struct slu_kenc_event){ .name = name,
					     .regarding = { api, k->kind, w->ns, w->name, w->uid },
					     .type = w->warning ? "Warning" : "Normal",
					     .reason = reason,
					     .action = action,
					     .note = cut,
					     .controller = w->reporter,
					     .instance = instance,
					     .time_us = at_us });
}

static int condition_body(const struct slu_rec_write *w, struct slu_buf *b)
{
	return slu_kenc_pod_condition(
		b, w->uid,
		&(struct slu_kenc_condition){ .type = "PodScheduled",
					      .status = "False",
					      .reason = w->reason,
					      .message = w->text,
					      .since_us = slu_clock_wall_us() });
}

static void part_body(const struct slu_rec_write *w, struct slu_jsonw *j)
{
	slu_jsonw_obj(j);
	if (w->verb == SLU_WRITE_STATUS) {
		slu_jsonw_key(j, "status");
		slu_jsonw_raw(j, w->text, strlen(w->text));
	} else if (w->verb == SLU_WRITE_SPEC) {
		slu_jsonw_key(j, "metadata");
		slu_jsonw_obj(j);
		slu_jsonw_kstr(j, "uid", w->uid);
		slu_jsonw_end_obj(j);
		slu_jsonw_key(j, "spec");
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

/* ---- writes that wait ---- */

static void line_put(struct line *l, struct slu_rec_write *w)
{
	w->next = NULL;
	if (l->last)
		l->last->next = w;
	else
		l->first = w;
	l->last = w;
	l->n++;
}

static void line_put_first(struct line *l, struct slu_rec_write *w)
{
	w->next = l->first;
	if (!l->first)
		l->last = w;
	l->first = w;
	l->n++;
}

static struct slu_rec_write *line_take(struct line *l)
{
	struct slu_rec_write *w = l->first;

	if (!w)
		return NULL;
	l->first = w->next;
	if (!l->first)
		l->last = NULL;
	l->n--;
	return w;
}

static uint32_t line_of(const struct slu_rec_write *w)
{
	switch (w->verb) {
	case SLU_WRITE_EVENT:
	case SLU_WRITE_CONDITION:
	case SLU_WRITE_ANNOTATE:
	case SLU_WRITE_STATUS:
	case SLU_WRITE_CREATE: /* a FluxJob */
		return LINE_NEWS;
	default:
		return LINE_DECISIONS;
	}
}

/* ---- sending ---- */

static void pump_writes(struct slu_place *p);

static void call_free(struct call *k)
{
	*k->link = k->next;
	if (k->next)
		k->next->link = k->link;
	k->p->stats.under_way--;
	k->p->news -= k->news;
	if (k->w)
		k->w->base.free(&k->w->base);
	slu_free(k);
}

static struct call *call_new(struct slu_place *p, struct slu_rec_write *w, bool news)
{
	struct call *k = slu_calloc(1, sizeof *k);

	if (!k)
		return NULL;
	k->p = p;
	k->w = w;
	p->begun = news ? p->begun : w->run;
	k->news = news;
	k->sent_ns = slu_clock_ns();
	k->next = p->first;
	k->link = &p->first;
	if (k->next)
		k->next->link = &k->next;
	p->first = k;
	p->stats.under_way++;
	p->news += news;
	slu_throttle_sent(&p->window);
	return k;
}

/* The server has answered, or will not. */
static void landed(struct call *k, const struct slu_kube_reply *r)
{
	bool strained = r && (r->outcome == SLU_KUBE_RETRYABLE || r->tries > 1);

	slu_throttle_answered(&k->p->window, r ? slu_clock_ns() : k->sent_ns, k->sent_ns, strained);
}

static void pause_over(void *arg)
{
	struct slu_place *p = arg;
	struct slu_rec_write *w;

	/* The rest of its gang is bound, so this binding does not wait behind later decisions. */
	while ((w = line_take(&p->line[LINE_PAUSED])))
		if (w->done_us)
			line_put(&p->line[LINE_SCHEDULED], w);
		else
			line_put_first(&p->line[LINE_DECISIONS], w);
	pump_writes(p);
}

/* Send the write again after a pause for the server. */
static void send_later(struct slu_place *p, struct slu_rec_write *w)
{
	line_put(&p->line[LINE_PAUSED], w);
	if (!slu_timer_armed(&p->pause))
		slu_timer_start(&p->pause, p->loop, PAUSE_NS, pause_over, p);
}

static void report_written(struct slu_place *p, const struct slu_rec_write *w,
			   enum slu_kube_outcome o, bool uncertain, const char *text)
{
	struct slu_record *r;

	if (o != SLU_KUBE_OK) {
		p->stats.failed[w->verb]++;
		if (o != SLU_KUBE_NOT_FOUND && o != SLU_KUBE_CANCELLED)
			slu_log(w->run && o != SLU_KUBE_CONFLICT ? SLU_WARN : SLU_DEBUG,
				"write failed", SLU_STR("verb", slu_write_name(w->verb)),
				SLU_STR("err", text));
	}
	if (!w->run)
		return;
	r = slu_rec_written_new(w, o, uncertain, text);
	if (r && slu_inbox_put_answer(p->core, r) < 0)
		r->free(r);
}

static struct slu_ktarget events_of(const char *ns)
{
	return (struct slu_ktarget){
		.group = "events.k8s.io", .version = "v1", .resource = "events", .ns = ns
	};
}

static struct slu_ktarget pod_target(const struct slu_rec_write *w, const char *sub)
{
	return slu_ktarget(SLU_KIND_POD, w->ns, w->name, sub);
}

static int send_request(struct slu_place *p, struct slu_kube_request *q, struct slu_ktarget t,
			struct slu_buf *body)
{
	struct slu_buf path = SLU_BUF_INIT(2048);
	int rc = slu_kube_path(&path, t.group, t.version, t.ns, t.resource, t.name, t.sub);

	if (!rc)
		rc = path.error ? path.error : body->error;
	if (!rc) {
		q->path = path.p;
		q->body = body->p;
		q->body_len = body->n;
		/* The answer is not read, so the server is asked for the small form, where there is
		 * one. */
		if (!q->accept)
			q->accept = SLU_KUBE_PROTOBUF;
		/* Warnings are not read either, and looking for unknown fields costs the server
		 * time. */
		if (q->method == SLU_HTTP_PATCH)
			q->query = "fieldValidation=Ignore";
		/* A write may wait for its turn longer than this replica leads. */
		q->guard = p->held;
		q->guard_arg = p->held_arg;
		rc = slu_kube_send(p->client, q, NULL);
	}
	slu_buf_done(&path);
	return rc;
}

/* ---- the event of a pod that was bound ---- */

static void event_done(void *arg, const struct slu_kube_reply *r)
{
	struct call *k = arg;
	struct slu_place *p = k->p;
	struct slu_rec_write *w = k->w;

	landed(k, r);
	if (r->outcome == SLU_KUBE_RETRYABLE && !p->closing && w->tries++ < SENT_AGAIN) {
		k->w = NULL;
		send_later(p, w);
	} else if (r->outcome != SLU_KUBE_OK) {
		p->stats.events_lost++;
		slu_log(SLU_DEBUG, "event not written", SLU_STR("err", r->error));
	}
	call_free(k);
	pump_writes(p);
}

static void scheduled_event(struct slu_place *p, struct slu_rec_write *w)
{
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_kube_request q = { .method = SLU_HTTP_POST,
				      .priority = PRIORITY_SCHEDULED,
				      .content_type = SLU_KUBE_PROTOBUF,
				      .done = event_done };
	char note[700];
	struct call *k = call_new(p, w, true);

	if (!k) {
		p->stats.events_lost++;
		w->base.free(&w->base);
		return;
	}
	q.arg = k;
	snprintf(note, sizeof note, "Successfully assigned %s/%s to %s", w->ns, w->name, w->node);
	event_body(p, w, "Scheduled", "Binding", note, w->done_us, &b);
	p->stats.scheduled_events++;
	if (send_request(p, &q, events_of(w->ns), &b) < 0) {
		p->stats.events_lost++;
		landed(k, NULL);
		call_free(k);
	}
	slu_buf_done(&b);
}

/* The pod is bound: write its Scheduled event when nothing more important waits. */
static void note_bound(struct slu_place *p, struct slu_rec_write *w)
{
	w->done_us = slu_clock_wall_us();
	w->tries = 0;
	if (p->line[LINE_SCHEDULED].n < EVENTS_MAX && !p->closing) {
		line_put(&p->line[LINE_SCHEDULED], w);
		return;
	}
	if (!p->stats.events_lost++)
		slu_log(SLU_WARN, "Scheduled events dropped: too many are waiting to be written");
	w->base.free(&w->base);
}

/* ---- a binding whose fate is not known ---- */

static void fate_answered(void *arg, const struct slu_kube_reply *r);

static void look_up_object(struct slu_place *p, struct slu_rec_write *w)
{
	struct slu_buf none = SLU_BUF_INIT(16);
	struct slu_kube_request q = { .path = "", .accept = SLU_KUBE_JSON, .done = fate_answered };
	struct call *k = call_new(p, w, false);

	p->stats.lookups++;
	if (k) {
		q.arg = k;
		if (send_request(p, &q, pod_target(w, NULL), &none) == 0)
			return;
		landed(k, NULL);
		k->w = NULL;
		call_free(k);
	}
	send_later(p, w);
}

/* The pod is bound as wanted, bound elsewhere (the watch says where), not bound, or replaced by
 * another pod of its name. */
static enum slu_kube_outcome fate_of_write(const struct slu_rec_write *w,
					   const struct slu_kube_reply *r)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *pod;
	const char *node;

	if (r->outcome != SLU_KUBE_OK)
		return r->outcome;
	if (slu_json_parse(r->body, r->body_len, NULL, &doc, NULL) < 0)
		return SLU_KUBE_RETRYABLE;
	pod = slu_json_root(doc);
	if (strcmp(slu_json_str_or(slu_json_dig(pod, "metadata", "uid", NULL), ""), w->uid) != 0)
		return SLU_KUBE_NOT_FOUND;
	node = slu_json_str_or(slu_json_dig(pod, "spec", "nodeName", NULL), "");
	if (!*node)
		return SLU_KUBE_RETRYABLE;
	return strcmp(node, w->node) == 0 ? SLU_KUBE_OK : SLU_KUBE_CONFLICT;
}

static void finish_call(struct call *k, enum slu_kube_outcome o, bool uncertain, const char *text)
{
	struct slu_place *p = k->p;

	report_written(p, k->w, o, uncertain, text);
	if (k->w->verb == SLU_WRITE_BIND && o == SLU_KUBE_OK) {
		note_bound(p, k->w);
		k->w = NULL;
	}
	call_free(k);
	pump_writes(p);
}

static void fate_answered(void *arg, const struct slu_kube_reply *r)
{
	struct call *k = arg;
	struct slu_place *p = k->p;
	struct slu_rec_write *w = k->w;
	enum slu_kube_outcome o = fate_of_write(w, r);

	if (o == SLU_KUBE_REFUSED)
		o = SLU_KUBE_RETRYABLE; /* no answer to the question either */
	landed(k, r);
	if (o == SLU_KUBE_RETRYABLE && !p->closing &&
	    (r->outcome != SLU_KUBE_OK || w->tries < SENT_AGAIN)) {
		/* The pod is not bound: send the binding again, a few times.  The read got no
		 * answer: try again as long as there is none. */
		w->tries += r->outcome == SLU_KUBE_OK;
		k->w = NULL;
		send_later(p, w);
		call_free(k);
		pump_writes(p);
		return;
	}
	finish_call(k, o, false, o == SLU_KUBE_OK ? "" : "the pod is not bound");
}

/* A server that has just started refuses everything for a moment, even requests that it carried out
 * before it was stopped. */
static bool starting(const struct slu_kube_reply *r)
{
	return r->outcome == SLU_KUBE_REFUSED && (strstr(r->error, "cannot create resource") ||
						  strstr(r->error, "cannot patch resource"));
}

/* Whether the answer leaves open if the binding was made.  409 may mean that the pod has a node, that the pod changed
 * too often at this moment, or anything that another webhook means by it. */
static bool unknown_fate(const struct slu_kube_reply *r)
{
	return r->uncertain || (r->outcome == SLU_KUBE_RETRYABLE && !r->status) ||
	       r->outcome == SLU_KUBE_CONFLICT || starting(r);
}

/* Whether the write releases a held pod to its node, which counts as a binding. */
static bool releases(const struct slu_rec_write *w)
{
	return w->verb == SLU_WRITE_PATCH && w->kind == SLU_KIND_POD && w->run;
}

static void write_answered(void *arg, const struct slu_kube_reply *r)
{
	struct call *k = arg;
	struct slu_place *p = k->p;

	landed(k, r);
	if ((k->w->verb == SLU_WRITE_BIND || releases(k->w)) && !p->closing && unknown_fate(r) &&
	    (!p->held || p->held(p->held_arg)) &&
	    !(releases(k->w) && (starting(r) || r->outcome == SLU_KUBE_CONFLICT) &&
	      k->w->tries++ == REFUSED_S)) {
		struct slu_rec_write *w = k->w;

		slu_log(SLU_DEBUG, "whether the pod was bound is not known; looking it up",
			SLU_STR("pod", w->name), SLU_STR("ns", w->ns), SLU_STR("err", r->error));
		k->w = NULL;
		call_free(k);
		if (releases(w))
			send_later(p, w); /* in a second; twice is once: no need to look */
		else
			look_up_object(p, w);
		pump_writes(p);
		return;
	}
	/* A release that was refused for that long was not carried out. */
	finish_call(k,
		    releases(k->w) && r->outcome == SLU_KUBE_CONFLICT ? SLU_KUBE_RETRYABLE
								      : r->outcome,
		    r->uncertain, r->error);
}

void slu_place_body(const struct slu_rec_write *w, struct slu_buf *b)
{
	struct slu_jsonw j = slu_jsonw(b, SLU_JSONW_COMPACT);

	switch (w->verb) {
	case SLU_WRITE_BIND:
		slu_kenc_binding(b, w->ns, w->name, w->uid, w->node);
		break;
	case SLU_WRITE_CONDITION:
		condition_body(w, b);
		break;
	case SLU_WRITE_ANNOTATE:
	case SLU_WRITE_STATUS:
	case SLU_WRITE_SPEC:
		part_body(w, &j);
		break;
	case SLU_WRITE_EVICT:
		slu_kenc_eviction(b, w->ns, w->name, w->uid);
		break;
	case SLU_WRITE_PATCH:
	case SLU_WRITE_CREATE:
		slu_buf_puts(b, w->text);
		break;
	case SLU_WRITE_EVENT:
	case SLU_WRITE_COUNT:
		break;
	}
}

/* Send the request of the record; `k` gets the answer.  0 or an error. */
static int send_write(struct slu_place *p, struct slu_rec_write *w, struct call *k)
{
	const struct slu_kkind_info *i = slu_kkind_info(w->kind);
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_kube_request q = { .method = SLU_HTTP_POST,
				      .priority = PRIORITY_LOW,
				      .done = write_answered,
				      .arg = k,
				      .timeout_ns = w->limit_ns };
	int rc = -EINVAL;

	slu_place_body(w, &b);
	switch (w->verb) {
	case SLU_WRITE_BIND:
		/* Twice is harmless: the second finds it bound. */
		q.priority = PRIORITY_BIND;
		q.repeatable = true;
		q.content_type = SLU_KUBE_PROTOBUF;
		rc = send_request(p, &q, pod_target(w, "binding"), &b);
		break;
	case SLU_WRITE_EVENT:
		q.priority = PRIORITY_EVENT;
		q.content_type = SLU_KUBE_PROTOBUF;
		event_body(p, w, w->reason, "Scheduling", w->text, slu_clock_wall_us(), &b);
		rc = send_request(p, &q, events_of(w->ns), &b);
		break;
	case SLU_WRITE_CONDITION:
		q.method = SLU_HTTP_PATCH;
		q.content_type = SLU_KUBE_STRATEGIC_PATCH;
		rc = send_request(p, &q, pod_target(w, "status"), &b);
		break;
	case SLU_WRITE_ANNOTATE:
	case SLU_WRITE_STATUS:
	case SLU_WRITE_SPEC:
		q.method = SLU_HTTP_PATCH;
		/* Conditions of a built-in kind are merged by type; others have only one
		 * writer. */
		q.content_type = w->verb == SLU_WRITE_STATUS && slu_kkind_is_native_group(w->kind)
					 ? SLU_KUBE_STRATEGIC_PATCH
					 : SLU_KUBE_MERGE_PATCH;
		q.accept = i->json_only ? SLU_KUBE_JSON : NULL;
		rc = send_request(
			p, &q,
			slu_ktarget(w->kind, w->ns, w->name,
				    w->verb == SLU_WRITE_STATUS && w->kind != SLU_KIND_PODGROUP_SIGS
					    ? "status"
					    : NULL),
			&b);
		break;
	case SLU_WRITE_EVICT:
		rc = send_request(p, &q, pod_target(w, "eviction"), &b);
		break;
	case SLU_WRITE_PATCH:
		/* The patch names the uid and the final values, so sending it twice does no
		 * harm. */
		q.method = SLU_HTTP_PATCH;
		q.content_type = SLU_KUBE_STRATEGIC_PATCH;
		q.priority = PRIORITY_BIND;
		q.repeatable = true;
		rc = send_request(p, &q, slu_ktarget(w->kind, w->ns, w->name, NULL), &b);
		break;
	case SLU_WRITE_CREATE:
		q.accept = i->json_only ? SLU_KUBE_JSON : NULL;
		rc = send_request(p, &q, slu_ktarget(w->kind, w->ns, NULL, NULL), &b);
		break;
	case SLU_WRITE_COUNT:
		break;
	}
	slu_buf_done(&b);
	return rc;
}

static void carry_out(struct slu_place *p, struct slu_rec_write *w)
{
	struct call *k = call_new(p, w, line_of(w) == LINE_NEWS);
	int rc = k ? 0 : -ENOMEM;

	if (p->held && !p->held(p->held_arg))
		rc = -EPERM;
	else
		p->stats.sent[w->verb]++;
	if (!rc)
		rc = send_write(p, w, k);
	if (rc == 0)
		return;
	report_written(p, w, SLU_KUBE_RETRYABLE, false,
		       rc == -EPERM ? "this replica lost leadership" : "could not be sent");
	if (k) {
		landed(k, NULL);
		call_free(k);
	} else {
		w->base.free(&w->base);
	}
}

static struct slu_rec_write *next_write(struct slu_place *p)
{
	uint32_t from = p->news ? LINE_DECISIONS : LINE_NEWS;

	for (uint32_t i = 0; i < LINE_PAUSED; i++) {
		struct slu_rec_write *w = line_take(&p->line[(from + i) % LINE_PAUSED]);

		if (w)
			return w;
	}
	return NULL;
}

/* All writes of a gang that has begun go out, even past the window: with a slow server, each full
 * window would otherwise keep the gang bound in part for another round of answers. */
static struct slu_rec_write *next_of_gang(struct slu_place *p)
{
	const struct slu_rec_write *w = p->line[LINE_DECISIONS].first;

	if (!w || !w->run || w->run != p->begun || !slu_throttle_excess(&p->window))
		return NULL;
	return line_take(&p->line[LINE_DECISIONS]);
}

static void pump_writes(struct slu_place *p)
{
	struct slu_rec_write *w;

	while (!p->closing &&
	       (w = slu_throttle_room(&p->window) ? next_write(p) : next_of_gang(p))) {
		if (w->done_us)
			scheduled_event(p, w);
		else
			carry_out(p, w);
	}
}

static void look_for(struct slu_place *p, struct slu_record *r)
{
	const struct slu_rec_look *l = (struct slu_rec_look *)r;

	if (p->look && !p->closing)
		p->look(p->look_arg, l->kind, l->again);
	r->free(r);
}

/* While the server is away, events and statuses pile up: drop the oldest. */
static void take_in(struct slu_place *p, struct slu_rec_write *w)
{
	struct line *l = &p->line[line_of(w)];

	if (l == &p->line[LINE_NEWS] && l->n == EVENTS_MAX) {
		struct slu_rec_write *old = line_take(l);

		report_written(p, old, SLU_KUBE_RETRYABLE, false,
			       "too many status writes and events are waiting to be sent");
		old->base.free(&old->base);
	}
	line_put(l, w);
}

static void send_waiting(void *arg)
{
	struct slu_place *p = arg;
	struct slu_record *r[256];
	uint32_t n;

	while ((n = slu_inbox_take(p->in, r, SLU_LEN(r))))
		for (uint32_t i = 0; i < n; i++)
			if (r[i]->kind == SLU_REC_LOOK)
				look_for(p, r[i]);
			else
				take_in(p, (struct slu_rec_write *)r[i]);
	pump_writes(p);
}

/* On the core thread. */
static void wake(void *arg)
{
	struct slu_place *p = arg;

	slu_loop_call(p->loop, &p->woken);
}

struct slu_place *slu_place_new(struct slu_kube_client *client, const char *instance,
				uint32_t parallel)
{
	struct slu_place *p = slu_calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->born_us = (uint64_t)slu_clock_wall_us();
	p->window = slu_throttle(parallel);
	p->client = client;
	p->loop = slu_kube_client_loop(client);
	p->woken = (struct slu_call){ .fn = send_waiting, .arg = p };
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
	for (uint32_t i = 0; i < LINES; i++)
		for (struct slu_rec_write *w; (w = line_take(&p->line[i]));)
			w->base.free(&w->base);
	slu_inbox_free(p->in);
	slu_loop_call_off(p->loop, &p->woken);
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
	uint32_t left = p->line[LINE_SCHEDULED].n;

	p->closing = true;
	slu_timer_stop(&p->pause);
	if (left)
		slu_log(SLU_WARN, "Scheduled events not written", SLU_I64("events", left));
}

void slu_place_stats(const struct slu_place *p, struct slu_place_stats *out)
{
	*out = p->stats;
	out->waiting = p->line[LINE_DECISIONS].n + p->line[LINE_NEWS].n + p->line[LINE_PAUSED].n;
	out->events_waiting = p->line[LINE_SCHEDULED].n;
	out->window = p->window.limit;
	out->halvings = p->window.halvings;
}
