#include "kube/reflector.h"

#include <stdio.h>

#include "base/rng.h"

#define RETRY_NS     (200 * SLU_NS_PER_MS)
#define RETRY_MAX_NS (30 * SLU_NS_PER_S)
#define ABSENT_NS    (10 * SLU_NS_PER_S)
#define REFUSALS     4u /* a server that is starting answers 403 until it has read its rules */
#define PAGE         500u
#define SHORT_NS     SLU_NS_PER_S /* a watch that ends this soon without an event is a failure */
#define PAGE_MAX     (256u << 20) /* bytes */

struct slu_reflector {
	struct slu_kube_client *client;
	struct slu_mirror *mirror;
	enum slu_kkind kind;
	struct slu_reflector_options o;
	char *ns, *labels, *fields; /* what the options point to */
	void *arg;
	struct slu_kube_call *call; /* under way, or NULL */
	struct slu_timer timer;
	struct slu_rng rng;
	int64_t retry_ns; /* the next pause; 0: none was needed lately */
	int64_t began_ns;
	uint32_t failures; /* in a row */
	uint32_t refusals; /* with 403, before the first list */
	bool listed;       /* a list was complete, and the kind was not found missing since */
	bool refused;      /* an optional kind that is left out */
	bool watching;     /* the call is a watch */
	bool broken;       /* the bytes of the watch were refused, and it is being cancelled */
	bool heard;        /* the watch brought an event */
	bool paused, stopping, troubled;
	char sentence[SLU_ERROR_MAX];
};

static void next_request(struct slu_reflector *r);

static void next_timer(void *arg)
{
	next_request(arg);
}

static void well(struct slu_reflector *r)
{
	r->retry_ns = 0;
	r->failures = 0;
	if (r->troubled && r->o.trouble)
		r->o.trouble(r->arg, NULL);
	r->troubled = false;
}

/* Report trouble from the second failure in a row on; a single failure is normal. */
static void report_trouble(struct slu_reflector *r, const char *sentence)
{
	r->failures++;
	if (r->failures < 2 || !r->o.trouble)
		return;
	r->troubled = true;
	r->o.trouble(r->arg, sentence);
}

static void wait_ns(struct slu_reflector *r, int64_t ns)
{
	slu_timer_start(&r->timer, slu_kube_client_loop(r->client), ns, next_timer, r);
}

/* Pauses double up to the ceiling; each is drawn between half and all of it. */
static void retry_list(struct slu_reflector *r, int64_t at_least_ns)
{
	int64_t ns = r->retry_ns ? r->retry_ns : r->o.retry_ns;

	r->retry_ns = SLU_MIN(ns * 2, r->o.retry_max_ns);
	ns = ns / 2 + (int64_t)slu_rng_below(&r->rng, (uint64_t)ns / 2 + 1);
	wait_ns(r, SLU_MAX(ns, at_least_ns));
}

/* ---- answers ---- */

static void note_kind_absent(struct slu_reflector *r)
{
	slu_mirror_absent(r->mirror);
	well(r);
	wait_ns(r, r->o.absent_ns);
}

/* 403 to an optional kind of which nothing is known. */
static void list_refused(struct slu_reflector *r, const struct slu_kube_reply *p)
{
	if (++r->refusals < REFUSALS && !r->refused) {
		retry_list(r, p->retry_after_ns);
		return;
	}
	if (!r->refused && r->o.refused)
		r->o.refused(r->arg, p->error);
	r->refused = true;
	note_kind_absent(r);
}

static void watch_is_allowed(struct slu_reflector *r)
{
	r->refusals = 0;
	if (r->refused && r->o.refused)
		r->o.refused(r->arg, NULL);
	r->refused = false;
}

static void failed(struct slu_reflector *r, const struct slu_kube_reply *p)
{
	if (p->outcome == SLU_KUBE_NOT_FOUND && r->o.optional) {
		r->listed = false;
		watch_is_allowed(r);
		note_kind_absent(r);
		return;
	}
	if (p->status == 403 && r->o.optional && !r->listed) {
		list_refused(r, p);
		return;
	}
	if (p->outcome == SLU_KUBE_GONE) {
		slu_mirror_expired(r->mirror);
		if (r->retry_ns == 0) { /* list at once the first time */
			r->retry_ns = r->o.retry_ns;
			wait_ns(r, 0);
			return;
		}
	} else if (p->outcome == SLU_KUBE_NOT_FOUND && r->watching) {
		slu_mirror_expired(r->mirror); /* the next list tells whether the kind is gone */
	} else if (strstr(p->error, "Too large resource version")) {
		slu_mirror_expired(r->mirror); /* the server was restored from a backup */
	} else if (!r->watching && strstr(p->error, "larger than") && r->o.page > 1) {
		/* Some objects are so large that a page of them does not fit. */
		r->o.page /= 2;
		slu_mirror_expired(r->mirror);
	}
	report_trouble(r, p->error);
	retry_list(r, p->retry_after_ns);
}

static void page_done(void *arg, const struct slu_kube_reply *p)
{
	struct slu_reflector *r = arg;
	struct slu_error err = { 0 };

	r->call = NULL;
	if (r->stopping || p->outcome == SLU_KUBE_CANCELLED)
		return; /* cancelled by the reflector, or because the client was freed */
	if (p->outcome != SLU_KUBE_OK) {
		failed(r, p);
		return;
	}
	watch_is_allowed(r);
	if (slu_mirror_page(r->mirror, slu_kencoding_of(p->content_type), p->body, p->body_len,
			    &err) < 0) {
		report_trouble(r, err.text[0] ? err.text : "no memory for a list");
		retry_list(r, 0);
		return;
	}
	r->listed |= slu_mirror_wants(r->mirror) == SLU_MIRROR_WATCH;
	well(r);
	wait_ns(r, 0);
}

static void watch_data(void *arg, const void *p, size_t n)
{
	struct slu_reflector *r = arg;
	struct slu_error err = { 0 };
	int rc;

	if (r->stopping || r->broken)
		return;
	rc = slu_mirror_watch_data(r->mirror, p, n, &err);
	if (rc < 0) {
		r->broken = true;
		snprintf(r->sentence, sizeof r->sentence, "%s",
			 err.text[0] ? err.text : "no memory for a watch event");
		slu_kube_cancel(r->call);
		return;
	}
	r->heard = true;
	well(r);
}

static void watch_done(void *arg, const struct slu_kube_reply *p)
{
	struct slu_reflector *r = arg;
	int64_t lasted = slu_loop_now_ns(slu_kube_client_loop(r->client)) - r->began_ns;

	r->call = NULL;
	slu_mirror_watch_end(r->mirror);
	if (r->stopping || (p->outcome == SLU_KUBE_CANCELLED && !r->broken))
		return; /* cancelled by the reflector, or because the client was freed */
	if (r->broken) {
		if (slu_mirror_wants(r->mirror) == SLU_MIRROR_LIST && r->retry_ns == 0) {
			r->retry_ns = r->o.retry_ns;
			wait_ns(r, 0); /* 410 inside the stream: list at once */
			return;
		}
		report_trouble(r, r->sentence);
		retry_list(r, 0);
	} else if (r->heard || (p->outcome == SLU_KUBE_OK && lasted > SHORT_NS)) {
		/* The watch worked until now: continue at once from where it ended. */
		wait_ns(r, 0);
	} else if (p->outcome == SLU_KUBE_OK) {
		report_trouble(r, "a watch ended before it began");
		retry_list(r, 0);
	} else {
		failed(r, p);
	}
}

/* ---- requests ---- */

static int add_query(struct slu_reflector *r, struct slu_buf *q)
{
	char n[32];

	if (r->labels)
		slu_http_query_add(q, "labelSelector", r->labels);
	if (r->fields)
		slu_http_query_add(q, "fieldSelector", r->fields);
	if (!r->watching) {
		snprintf(n, sizeof n, "%u", r->o.page);
		slu_http_query_add(q, "limit", n);
		if (slu_mirror_token(r->mirror))
			slu_http_query_add(q, "continue", slu_mirror_token(r->mirror));
		return q->error;
	}
	slu_http_query_add(q, "watch", "1");
	slu_http_query_add(q, "allowWatchBookmarks", "true");
	slu_http_query_add(q, "resourceVersion", slu_mirror_resume(r->mirror));
	return q->error;
}

static int ask_next(struct slu_reflector *r)
{
	const struct slu_kkind_info *k = slu_kkind_info(r->kind);
	slu_cleanup(slu_buf_done) struct slu_buf path = SLU_BUF_INIT(4096);
	slu_cleanup(slu_buf_done) struct slu_buf query = SLU_BUF_INIT(1u << 20);
	bool json = k->json_only || r->o.json;
	struct slu_kube_request q = { .once = true, .arg = r };
	int64_t watch_s = r->o.watch_s;
	char n[32];
	int rc;

	r->watching = slu_mirror_wants(r->mirror) == SLU_MIRROR_WATCH;
	rc = slu_kube_path(&path, k->group, k->version, r->ns, k->resource, NULL, NULL);
	if (rc == 0)
		rc = add_query(r, &query);
	if (rc == 0 && r->watching) {
		if (!watch_s)
			watch_s = 300 + (int64_t)slu_rng_below(&r->rng, 301);
		snprintf(n, sizeof n, "%" PRId64, watch_s);
		rc = slu_http_query_add(&query, "timeoutSeconds", n);
	}
	if (rc < 0)
		return rc;
	q.path = slu_buf_str(&path);
	q.query = slu_buf_str(&query);
	if (r->watching) {
		q.accept = json ? SLU_KUBE_JSON : SLU_KUBE_PROTOBUF_WATCH;
		q.data = watch_data;
		q.done = watch_done;
		q.idle_ns = (watch_s + 30) * SLU_NS_PER_S;
		r->broken = r->heard = false;
		r->began_ns = slu_loop_now_ns(slu_kube_client_loop(r->client));
		slu_mirror_watch_begin(r->mirror, json ? SLU_ENC_JSON : SLU_ENC_PROTOBUF);
	} else {
		q.accept = json ? SLU_KUBE_JSON : SLU_KUBE_PROTOBUF;
		q.done = page_done;
		q.max_body = r->o.page_bytes;
	}
	return slu_kube_send(r->client, &q, &r->call);
}

static void next_request(struct slu_reflector *r)
{
	int rc;

	if (r->paused || r->call || r->stopping)
		return;
	rc = ask_next(r);
	if (rc < 0) {
		r->call = NULL;
		report_trouble(r, rc == -ENOMEM ? "no memory for a request"
						: "requests cannot be queued");
		retry_list(r, 0);
	}
}

/* ---- life ---- */

static int copy_text(const char *s, char **out)
{
	if (!s)
		return 0;
	*out = slu_strdup(s);
	return *out ? 0 : -ENOMEM;
}

int slu_reflector_new(struct slu_kube_client *c, enum slu_kkind kind, struct slu_kcodec *codec,
		      const struct slu_mirror_handler *h, const struct slu_reflector_options *o,
		      struct slu_reflector **out, struct slu_error *err)
{
	static _Atomic uint64_t serial;
	slu_cleanup(slu_reflector_freep) struct slu_reflector *r = slu_calloc(1, sizeof *r);

	if (!r)
		return slu_fail(err, -ENOMEM, "no memory for a reflector");
	r->client = c;
	r->kind = kind;
	r->arg = h->arg;
	if (o)
		r->o = *o;
	r->o.page = r->o.page ? r->o.page : PAGE;
	r->o.page_bytes = r->o.page_bytes ? r->o.page_bytes : PAGE_MAX;
	r->o.retry_ns = r->o.retry_ns ? r->o.retry_ns : RETRY_NS;
	r->o.retry_max_ns = r->o.retry_max_ns ? r->o.retry_max_ns : RETRY_MAX_NS;
	r->o.absent_ns = r->o.absent_ns ? r->o.absent_ns : ABSENT_NS;
	r->rng.state = (uint64_t)slu_clock_ns() ^ (++serial << 48);
	if (copy_text(r->o.ns, &r->ns) || copy_text(r->o.label_selector, &r->labels) ||
	    copy_text(r->o.field_selector, &r->fields) ||
	    slu_mirror_new(kind, codec, h, &r->mirror) < 0)
		return slu_fail(err, -ENOMEM, "no memory for a reflector");
	wait_ns(r, 0);
	*out = slu_take(r);
	return 0;
}

void slu_reflector_free(struct slu_reflector *r)
{
	if (!r)
		return;
	r->stopping = true;
	slu_timer_stop(&r->timer);
	if (r->call)
		slu_kube_cancel(r->call);
	slu_mirror_free(r->mirror);
	slu_free(r->ns);
	slu_free(r->labels);
	slu_free(r->fields);
	slu_free(r);
}

const struct slu_mirror *slu_reflector_mirror(const struct slu_reflector *r)
{
	return r->mirror;
}

void slu_reflector_relist(struct slu_reflector *r)
{
	if (r->call && !r->watching)
		return; /* one is under way */
	slu_mirror_expired(r->mirror);
	if (!r->call)
		return; /* a pause is under way, and the list follows it */
	r->broken = true;
	snprintf(r->sentence, sizeof r->sentence, "a fresh list was asked for");
	slu_kube_cancel(r->call);
}

void slu_reflector_pause(struct slu_reflector *r)
{
	if (r->paused)
		return;
	r->paused = true;
	if (r->call && r->watching)
		slu_kube_pause(r->call);
}

void slu_reflector_resume(struct slu_reflector *r)
{
	if (!r->paused)
		return;
	r->paused = false;
	if (r->call && r->watching)
		slu_kube_resume(r->call);
	else if (!r->call && !slu_timer_armed(&r->timer))
		wait_ns(r, 0);
}
