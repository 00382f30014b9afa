#include "kube/client_internal.h"

#include <stdio.h>
#include <time.h>

#define DEFAULT_MAX_BODY  ((size_t)64 << 20)
#define DEFAULT_QUEUE     100000
#define HELD_MAX          ((size_t)16 << 20)
#define RETRY_AFTER_MAX_S 300

const int64_t slu_kube_latency_bounds[SLU_KUBE_LATENCY_BUCKETS - 1] = {
	1 * SLU_NS_PER_MS,   2 * SLU_NS_PER_MS,    5 * SLU_NS_PER_MS,    10 * SLU_NS_PER_MS,
	25 * SLU_NS_PER_MS,  50 * SLU_NS_PER_MS,   100 * SLU_NS_PER_MS,  250 * SLU_NS_PER_MS,
	500 * SLU_NS_PER_MS, 1000 * SLU_NS_PER_MS, 5000 * SLU_NS_PER_MS,
};

/* ---- lists and states ---- */

void kube_list_add(struct kube_list *l, struct slu_kube_call *q)
{
	q->list = l;
	q->next = NULL;
	q->prev = l->last;
	if (l->last)
		l->last->next = q;
	else
		l->first = q;
	l->last = q;
}

void kube_list_del(struct slu_kube_call *q)
{
	struct kube_list *l = q->list;

	if (!l)
		return;
	if (q->prev)
		q->prev->next = q->next;
	else
		l->first = q->next;
	if (q->next)
		q->next->prev = q->prev;
	else
		l->last = q->prev;
	q->list = NULL;
}

static void move(struct slu_kube_call *q, enum kube_call_state to)
{
	struct kube_lane *l = q->lane;
	struct slu_kube_stats *st = &l->c->st;

	kube_list_del(q);
	if (q->state == CALL_QUEUED)
		l->n_queued--, st->queued--;
	else if (q->state == CALL_WAITING)
		st->queued--;
	else if (q->state == CALL_INFLIGHT)
		l->n_inflight--, st->inflight--;
	q->state = to;
	switch (to) {
	case CALL_QUEUED:
		l->n_queued++, st->queued++;
		kube_list_add(&l->queue[q->priority], q);
		break;
	case CALL_WAITING:
		st->queued++;
		kube_list_add(&l->waiting, q);
		break;
	case CALL_INFLIGHT:
		l->n_inflight++, st->inflight++;
		kube_list_add(&l->inflight, q);
		break;
	case CALL_DONE:
		break;
	}
}

/* Exponential with jitter: between half and the whole of base * 2^(n-1). */
int64_t kube_backoff(struct slu_kube_client *c, unsigned n)
{
	int64_t ns = c->o.backoff_ns;

	while (n-- > 1 && ns < c->o.backoff_max_ns)
		ns *= 2;
	ns = SLU_MIN(ns, c->o.backoff_max_ns);
	return ns / 2 + (int64_t)slu_rng_below(&c->rng, (uint64_t)ns / 2 + 1);
}

/* ---- the end of a call ---- */

static void count_done(struct slu_kube_call *q, enum slu_kube_outcome o, int64_t took_ns)
{
	struct slu_kube_stats *st = &q->lane->c->st;
	int i = 0;

	st->done[o]++;
	if (q->streaming) {
		st->streams--;
		return; /* their length says nothing about latency */
	}
	while (i < SLU_KUBE_LATENCY_BUCKETS - 1 && took_ns > slu_kube_latency_bounds[i])
		i++;
	st->latency[i]++;
	st->latency_sum_ns += (uint64_t)took_ns;
	st->latency_count++;
}

static void call_free(struct slu_kube_call *q)
{
	slu_timer_stop(&q->deadline);
	slu_timer_stop(&q->pause);
	slu_timer_stop(&q->idle);
#ifdef SLU_CRASH_POINTS
	slu_timer_stop(&q->crash);
#endif
	kube_inflate_free(q->gz);
	slu_buf_done(&q->answer);
	slu_buf_done(&q->held);
	slu_free(q->text);
	slu_free(q->body);
	slu_free(q);
}

/* Let go of the stream; a running one is reset. */
static void detach(struct slu_kube_call *q)
{
	if (!q->stream)
		return;
	slu_h2_set_user(q->stream, NULL);
	if (!slu_h2_peer_ended(q->stream))
		slu_link_reset(q->conn->link, q->stream);
	q->stream = NULL;
	q->conn = NULL;
}

static void finish(struct slu_kube_call *q, enum slu_kube_outcome o, const char *reason,
		   const char *cause, int64_t retry_after_ns)
{
	const struct slu_headers *h = q->stream && q->head_seen ? slu_h2_headers(q->stream) : NULL;
	const char *type = h ? slu_headers_get(h, "content-type") : NULL;
	struct slu_kube_reply r = {
		.outcome = o,
		.status = h ? q->status : 0,
		.content_type = type ? type : "",
		.body = slu_buf_str(&q->answer),
		.body_len = q->answer.n,
		.headers = h,
		.reason = reason ? reason : "",
		.retry_after_ns = retry_after_ns,
		.tries = q->tries,
		.took_ns = slu_clock_ns() - q->started_ns,
	};
	char text[SLU_ERROR_MAX + 400], what[400];

	text[0] = '\0';
	if (o != SLU_KUBE_OK) {
		kube_describe(q->method, q->path + strlen(q->lane->c->cfg->addr.prefix), what,
			      sizeof what);
		if (r.status >= 300)
			snprintf(text, sizeof text, "cannot %s: %d %s%s%s", what, r.status,
				 slu_http_status_text(r.status), *cause ? ": " : "", cause);
		else
			snprintf(text, sizeof text, "cannot %s: %s", what, cause);
	}
	if (r.status == 401) {
		size_t n = strlen(text);
		char who[400];

		kube_auth_describe(q->lane->c->auth, who, sizeof who);
		snprintf(text + n, sizeof text - n, " [credentials: %s]", who);
	}
	r.error = text;
	/* 4xx is a word; silence and most of 5xx are none, and 401 and 403 say nothing of a try
	 * before */
	r.uncertain = q->may_be_done && (o == SLU_KUBE_RETRYABLE || o == SLU_KUBE_FAILED ||
					 o == SLU_KUBE_CANCELLED || o == SLU_KUBE_REFUSED);
	if (!r.status)
		q->lane->c->st.answers[0]++;
	count_done(q, o, r.took_ns);
	slu_timer_stop(&q->deadline);
	slu_timer_stop(&q->pause);
	slu_timer_stop(&q->idle);
	move(q, CALL_DONE);
	detach(q); /* the callback may cut connections; the stream's headers outlive it */
	kube_crash_point(q, "answered");
	q->done(q->arg, &r);
	kube_crash_point(q, "told");
	call_free(q);
}

void kube_call_fail(struct slu_kube_call *q, enum slu_kube_outcome o, const struct slu_error *err)
{
	finish(q, o, NULL, err->text, 0);
}

/* ---- trying again ---- */

static bool safe_to_repeat(const struct slu_kube_call *q)
{
	return q->method == SLU_HTTP_GET || q->method == SLU_HTTP_HEAD || q->repeatable;
}

static bool is_write(const struct slu_kube_call *q)
{
	return q->method != SLU_HTTP_GET && q->method != SLU_HTTP_HEAD;
}

static void try_again(void *arg)
{
	struct slu_kube_call *q = arg;

	move(q, CALL_QUEUED);
	kube_lane_wake(q->lane);
}

/* Forget what the last try brought. */
static void clear_try(struct slu_kube_call *q)
{
	detach(q);
	q->conn = NULL;
	kube_inflate_free(q->gz);
	q->gz = NULL;
	slu_buf_done(&q->answer);
	slu_buf_done(&q->held);
	q->status = 0;
	q->head_seen = false;
}

/* Whether it goes again after a pause of `delay_ns`; if not the caller ends the call. */
static bool retry(struct slu_kube_call *q, int64_t delay_ns)
{
	struct slu_kube_client *c = q->lane->c;

	if (q->once || c->closing || q->tries >= c->o.max_tries)
		return false;
	if (slu_timer_armed(&q->deadline) &&
	    slu_loop_now_ns(c->loop) + delay_ns >= q->deadline.due_ns)
		return false;
	clear_try(q);
	c->st.retries++;
	move(q, CALL_WAITING);
	slu_timer_start(&q->pause, c->loop, delay_ns, try_again, q);
	return true;
}

void kube_call_unreached(struct slu_kube_call *q, const struct slu_error *err)
{
	q->last = *err;
	if (++q->tries >= q->lane->c->o.max_tries || q->once) {
		finish(q, SLU_KUBE_RETRYABLE, NULL, err->text, 0);
		return;
	}
	move(q, CALL_QUEUED); /* the lane pauses as a whole */
}

static void on_deadline(void *arg)
{
	struct slu_kube_call *q = arg;
	char cause[SLU_ERROR_MAX + 100];

	q->lane->c->st.timeouts++;
	q->may_be_done |= q->state == CALL_INFLIGHT && is_write(q);
	snprintf(cause, sizeof cause, "no answer within %.1f s%s%s", (double)q->timeout_ns / 1e9,
		 *q->last.text ? "; last try: " : "", q->last.text);
	q->head_seen = false; /* half an answer is none */
	slu_buf_reset(&q->answer);
	finish(q, SLU_KUBE_RETRYABLE, NULL, cause, 0);
}

static void on_idle(void *arg)
{
	struct slu_kube_call *q = arg;

	q->lane->c->st.timeouts++;
	finish(q, SLU_KUBE_RETRYABLE, NULL, "the stream fell silent", 0);
}

/* ---- one try ---- */

static struct slu_h2_header hdr(const char *name, const char *value)
{
	return (struct slu_h2_header){ .name = name, .value = value, .value_len = strlen(value) };
}

void kube_call_start(struct slu_kube_call *q, struct kube_conn *k, const char *authorization)
{
	struct slu_kube_client *c = q->lane->c;
	const struct slu_kube_config *cfg = c->cfg;
	struct slu_h2_header h[64];
	struct slu_error err = { 0 };
	size_t n = 0;
	char length[24];
	int rc;

	if (q->guard && !q->guard(q->guard_arg)) {
		finish(q, SLU_KUBE_RETRYABLE, NULL, "not allowed to write any more", 0);
		return;
	}
	kube_crash_point(q, "before");
	h[n++] = hdr(":method", slu_http_method_name(q->method));
	h[n++] = hdr(":scheme", cfg->addr.tls ? "https" : "http");
	h[n++] = hdr(":authority", c->authority);
	h[n++] = hdr(":path", q->path);
	if (authorization)
		h[n++] = hdr("authorization", authorization);
	h[n++] = hdr("accept", q->accept);
	h[n++] = hdr("user-agent", c->user_agent);
	if (!c->o.no_gzip && !q->stream_wanted)
		h[n++] = hdr("accept-encoding", "gzip");
	if (q->body_len) {
		h[n++] = hdr("content-type", q->content_type);
		snprintf(length, sizeof length, "%zu", q->body_len);
		h[n++] = hdr("content-length", length);
	}
	if (cfg->as_user)
		h[n++] = hdr("impersonate-user", cfg->as_user);
	if (cfg->as_uid)
		h[n++] = hdr("impersonate-uid", cfg->as_uid);
	for (const char **g = cfg->as_groups; g && *g && n < 30; g++)
		h[n++] = hdr("impersonate-group", *g);
	for (uint32_t i = 0; i < cfg->n_as_extra && n < SLU_LEN(h); i++)
		h[n++] = hdr(cfg->as_extra[i].name, cfg->as_extra[i].value);
	q->tries++;
	rc = slu_link_request(k->link, h, n, q->body, q->body_len, q, &q->stream);
	if (rc < 0) {
		slu_fail(&err, rc, "the request cannot be sent: %s", strerror(-rc));
		q->last = err;
		if (!retry(q, kube_backoff(c, q->tries)))
			finish(q, SLU_KUBE_RETRYABLE, NULL, err.text, 0);
		return;
	}
	q->conn = k;
	q->sent_ns = slu_clock_ns();
	c->st.sent[q->lane->id]++;
	move(q, CALL_INFLIGHT);
	kube_crash_sent(q);
}

static int take_bytes(void *arg, const void *p, size_t n)
{
	struct slu_kube_call *q = arg;

	if (!q->streaming) {
		int rc;

		q->answer.max = q->max_body;
		rc = slu_buf_add(&q->answer, p, n);
		q->answer.error = 0;
		return rc;
	}
	if (q->cancel_asked)
		return -ECANCELED;
	q->data(q->arg, p, n);
	return q->cancel_asked ? -ECANCELED : 0;
}

/* Hand bytes on.  Non-zero: the call is over. */
static int deliver(struct slu_kube_call *q, const uint8_t *p, size_t n)
{
	char cause[160];
	int rc;

	q->in_data = true;
	rc = q->gz ? kube_inflate_feed(q->gz, p, n, take_bytes, q) : take_bytes(q, p, n);
	q->in_data = false;
	if (!rc && !q->cancel_asked)
		return 0;
	if (q->cancel_asked) {
		finish(q, SLU_KUBE_CANCELLED, NULL, "cancelled", 0);
		return 1;
	}
	if (rc == -EMSGSIZE)
		snprintf(cause, sizeof cause, "the answer is larger than %zu bytes", q->max_body);
	else if (rc == -EPROTO)
		snprintf(cause, sizeof cause, "the answer is not valid gzip");
	else
		snprintf(cause, sizeof cause, "%s", strerror(-rc));
	q->head_seen = false;
	finish(q, rc == -ENOMEM ? SLU_KUBE_RETRYABLE : SLU_KUBE_FAILED, NULL, cause, 0);
	return 1;
}

void kube_call_head(struct slu_kube_call *q, struct slu_h2_stream *s)
{
	struct slu_kube_client *c = q->lane->c;
	const char *enc = slu_headers_get(slu_h2_headers(s), "content-encoding");

	q->head_seen = true;
	q->status = slu_h2_status(s);
	c->st.answers[q->status < 600 ? q->status / 100 : 5]++;
	if (slu_h2_headers_cut(s)) {
		q->head_seen = false;
		finish(q, SLU_KUBE_FAILED, NULL, "the head of the answer is larger than 64 KiB", 0);
		return;
	}
	if (enc && !strcmp(enc, "gzip")) {
		q->gz = kube_inflate_new();
		if (!q->gz) {
			q->head_seen = false;
			finish(q, SLU_KUBE_RETRYABLE, NULL, strerror(ENOMEM), 0);
			return;
		}
	} else if (enc && strcmp(enc, "identity")) {
		char cause[100];

		snprintf(cause, sizeof cause, "the answer is encoded as %.60s", enc);
		finish(q, SLU_KUBE_FAILED, NULL, cause, 0);
		return;
	}
	if (q->stream_wanted && q->status / 100 == 2) {
		q->streaming = true;
		c->st.streams++;
		slu_timer_stop(&q->deadline);
		if (q->idle_ns)
			slu_timer_start(&q->idle, c->loop, q->idle_ns, on_idle, q);
	}
}

void kube_call_data(struct slu_kube_call *q, const uint8_t *p, size_t n)
{
	struct slu_h2_stream *s = q->stream;
	struct slu_link *link = q->conn->link;

	if (q->paused) { /* not consumed: the window closes on the server */
		q->held.max = HELD_MAX;
		if (slu_buf_add(&q->held, p, n) < 0)
			finish(q, SLU_KUBE_RETRYABLE, NULL, "no memory to hold a paused stream", 0);
		return;
	}
	if (q->idle_ns && q->streaming)
		slu_timer_start(&q->idle, q->lane->c->loop, q->idle_ns, on_idle, q);
	if (!deliver(q, p, n))
		slu_link_consume(link, s, n);
}

static int64_t retry_after(const struct slu_kube_call *q)
{
	const char *v = slu_headers_get(slu_h2_headers(q->stream), "retry-after");
	long s;

	if (!v)
		return 0;
	s = strtol(v, NULL, 10); /* the form with a date counts as one second */
	s = SLU_MAX(s, 1L);
	return SLU_MIN(s, (long)RETRY_AFTER_MAX_S) * SLU_NS_PER_S;
}

void kube_call_end(struct slu_kube_call *q)
{
	struct slu_kube_client *c = q->lane->c;
	char message[SLU_ERROR_MAX], reason[80];
	const char *type;
	enum slu_kube_outcome o;
	int64_t wait;
	bool again = false;

	if (q->paused && q->streaming)
		return; /* resume delivers the rest and comes back here */
	if (q->gz && !kube_inflate_complete(q->gz)) {
		slu_fail(&q->last, -EPROTO, "the compressed answer is cut short");
		q->head_seen = false;
		q->may_be_done |= is_write(q);
		if (q->streaming || !safe_to_repeat(q) || !retry(q, kube_backoff(c, q->tries)))
			finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
		return;
	}
	if (q->status / 100 == 2) {
		finish(q, SLU_KUBE_OK, NULL, "", 0);
		return;
	}
	type = slu_headers_get(slu_h2_headers(q->stream), "content-type");
	kube_status_read(type ? type : "", slu_buf_str(&q->answer), q->answer.n, message,
			 sizeof message, reason, sizeof reason);
	o = kube_outcome_of(q->status, reason);
	wait = retry_after(q);
	slu_fail(&q->last, 0, "%d %s: %s", q->status, slu_http_status_text(q->status), message);
	if (q->status == 429 || (q->status >= 500 && wait)) {
		/* The server did nothing and says so. */
		c->st.throttled += q->status == 429;
		again = true;
	} else if (o == SLU_KUBE_RETRYABLE) {
		q->may_be_done |= is_write(q); /* 504: it gave up waiting for its own store */
		again = safe_to_repeat(q);
	} else if (q->status == 401 && !q->reauthed && kube_auth_rejected(c->auth)) {
		q->reauthed = true;
		again = true;
	}
	if (again) {
		int64_t pause = q->status == 401 ? 0 : kube_backoff(c, q->tries);

		if (wait) /* what it asks for, and a little jitter so that not all return at once */
			pause = wait + (int64_t)slu_rng_below(&c->rng, (uint64_t)wait / 10 + 1);
		if (retry(q, pause))
			return;
	}
	finish(q, o, reason, message, wait);
}

void kube_call_cut(struct slu_kube_call *q, uint32_t code, bool refused)
{
	struct slu_kube_client *c = q->lane->c;

	q->stream = NULL;
	q->conn = NULL;
	if (code == SLU_H2_LOST)
		slu_fail(&q->last, 0, "the connection was lost before the answer was complete");
	else
		slu_fail(&q->last, 0, "the server ended the stream: %s", slu_h2_code_name(code));
	if (q->streaming) {
		finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
		return;
	}
	q->may_be_done |= !refused && is_write(q);
	if (!refused && !safe_to_repeat(q)) {
		finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
		return;
	}
	/* A stream refused by a connection that says goodbye goes to the next one at once. */
	if (!retry(q, refused && q->tries == 1 ? 0 : kube_backoff(c, q->tries)))
		finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
}

/* ---- what users call ---- */

static enum slu_kube_lane lane_of(const struct slu_kube_request *r)
{
	if (r->lane != SLU_KUBE_LANE_AUTO)
		return r->lane;
	if (r->data)
		return SLU_KUBE_LANE_WATCH;
	return r->method == SLU_HTTP_GET || r->method == SLU_HTTP_HEAD ? SLU_KUBE_LANE_READ
								       : SLU_KUBE_LANE_WRITE;
}

static int copy_texts(struct slu_kube_call *q, const struct slu_kube_request *r, const char *prefix)
{
	const char *accept = r->accept ? r->accept : SLU_KUBE_JSON;
	const char *type = r->content_type ? r->content_type : SLU_KUBE_JSON;
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	size_t at_accept, at_type;

	slu_buf_puts(&b, prefix);
	slu_buf_puts(&b, r->path);
	if (r->query && *r->query) {
		slu_buf_putc(&b, '?');
		slu_buf_puts(&b, r->query);
	}
	slu_buf_putc(&b, '\0');
	at_accept = b.n;
	slu_buf_add(&b, accept, strlen(accept) + 1);
	at_type = b.n;
	slu_buf_puts(&b, type);
	if (b.error) {
		int rc = b.error;

		slu_buf_done(&b);
		return rc;
	}
	q->text = slu_buf_take(&b);
	q->path = q->text;
	q->accept = q->text + at_accept;
	q->content_type = q->text + at_type;
	return 0;
}

int slu_kube_send(struct slu_kube_client *c, const struct slu_kube_request *r,
		  struct slu_kube_call **call)
{
	struct slu_kube_call *q;
	struct kube_lane *l;
	int rc;

	if (!r->path || *r->path != '/' || !r->done || r->priority >= KUBE_PRIORITIES ||
	    r->lane >= SLU_KUBE_LANES || (r->body_len && !r->body))
		return -EINVAL;
	if (c->closing)
		return -ESHUTDOWN;
	if (c->st.queued >= c->o.max_queue)
		return -ENOBUFS;
	q = slu_calloc(1, sizeof *q);
	if (!q)
		return -ENOMEM;
	l = q->lane = &c->lane[lane_of(r)];
	rc = copy_texts(q, r, c->cfg->addr.prefix);
	if (!rc && r->body_len) {
		q->body = slu_malloc(r->body_len);
		if (q->body)
			memcpy(q->body, r->body, r->body_len);
		else
			rc = -ENOMEM;
	}
	if (rc < 0) {
		call_free(q);
		return rc;
	}
	q->body_len = r->body_len;
	q->method = r->method;
	q->priority = r->priority;
	q->repeatable = r->repeatable;
	q->once = r->once;
	q->guard = r->guard;
	q->guard_arg = r->guard_arg;
	q->stream_wanted = r->data;
	q->data = r->data;
	q->done = r->done;
	q->arg = r->arg;
	q->idle_ns = r->idle_ns;
	q->max_body = r->max_body ? r->max_body : DEFAULT_MAX_BODY;
	q->timeout_ns = r->timeout_ns ? r->timeout_ns : c->o.timeout_ns;
	q->started_ns = slu_clock_ns();
	q->state = CALL_DONE; /* in no list yet */
	move(q, CALL_QUEUED);
	slu_timer_start(&q->deadline, c->loop, q->timeout_ns, on_deadline, q);
	kube_lane_wake(l);
	if (call)
		*call = q;
	return 0;
}

void slu_kube_cancel(struct slu_kube_call *q)
{
	if (!q || q->state == CALL_DONE)
		return;
	if (q->in_data) {
		q->cancel_asked = true; /* deliver() finishes it */
		return;
	}
	q->head_seen = false;
	q->may_be_done |= q->state == CALL_INFLIGHT && is_write(q);
	finish(q, SLU_KUBE_CANCELLED, NULL, "cancelled", 0);
}

void slu_kube_pause(struct slu_kube_call *q)
{
	q->paused = true;
	slu_timer_stop(&q->idle);
}

static void deliver_held(void *arg)
{
	struct slu_kube_call *q = arg;
	struct slu_buf held = q->held;
	struct slu_h2_stream *s = q->stream;
	struct slu_link *link;

	if (q->paused || q->state != CALL_INFLIGHT || !s)
		return;
	link = q->conn->link;
	q->held = (struct slu_buf){ 0 };
	if (held.n && deliver(q, (const uint8_t *)held.p, held.n)) {
		slu_buf_done(&held);
		return;
	}
	if (held.n)
		slu_link_consume(link, s, held.n);
	slu_buf_done(&held);
	if (slu_h2_peer_ended(s))
		kube_call_end(q);
	else if (q->idle_ns && q->streaming)
		slu_timer_start(&q->idle, q->lane->c->loop, q->idle_ns, on_idle, q);
}

void slu_kube_resume(struct slu_kube_call *q)
{
	if (!q->paused)
		return;
	q->paused = false;
	if (q->state == CALL_INFLIGHT)
		slu_timer_start(&q->pause, q->lane->c->loop, 0, deliver_held, q);
}

/* ---- the client ---- */

static void auth_changed(void *arg)
{
	struct slu_kube_client *c = arg;

	for (int i = 1; i < SLU_KUBE_LANES; i++)
		kube_lane_wake(&c->lane[i]);
}

static int64_t or_ns(int64_t v, int64_t otherwise)
{
	return v > 0 ? v : otherwise;
}

int slu_kube_client_new(struct slu_loop *l, struct slu_kube_config *cfg,
			const struct slu_kube_client_options *o, struct slu_kube_client **out,
			struct slu_error *err)
{
	static const uint32_t conns[SLU_KUBE_LANES] = {
		[SLU_KUBE_LANE_READ] = 1, [SLU_KUBE_LANE_WRITE] = 2, [SLU_KUBE_LANE_WATCH] = 1
	};
	struct slu_kube_client *c = slu_calloc(1, sizeof *c);

	if (!c)
		return slu_fail(err, -ENOMEM, "no memory for an API client");
	if (o)
		c->o = *o;
	c->loop = l;
	c->o.timeout_ns = or_ns(c->o.timeout_ns, 30 * SLU_NS_PER_S);
	c->o.connect_ns = or_ns(c->o.connect_ns, 10 * SLU_NS_PER_S);
	c->o.ping_ns = or_ns(c->o.ping_ns, 30 * SLU_NS_PER_S);
	c->o.backoff_ns = or_ns(c->o.backoff_ns, 100 * SLU_NS_PER_MS);
	c->o.backoff_max_ns = or_ns(c->o.backoff_max_ns, 15 * SLU_NS_PER_S);
	if (!c->o.max_tries)
		c->o.max_tries = 8;
	if (!c->o.max_inflight)
		c->o.max_inflight = 100;
	if (!c->o.max_queue)
		c->o.max_queue = DEFAULT_QUEUE;
	c->o.no_gzip |= cfg->no_compression;
	slu_kube_client_rate(c, c->o.qps, c->o.burst);
	c->rng.state = c->o.seed ? c->o.seed : (uint64_t)slu_clock_ns() ^ (uintptr_t)c;
	c->user_agent = slu_strdup(c->o.user_agent ? c->o.user_agent : "sluice/" SLU_VERSION);
	c->auth = kube_auth_new(l, cfg, auth_changed, c);
	if (!c->user_agent || !c->auth) {
		kube_auth_free(c->auth);
		slu_free(c->user_agent);
		slu_free(c);
		return slu_fail(err, -ENOMEM, "no memory for an API client");
	}
	c->cfg = slu_kube_config_ref(cfg);
	slu_addr_text(&cfg->addr, c->authority, sizeof c->authority);
	for (int i = 1; i < SLU_KUBE_LANES; i++)
		kube_lane_init(c, (enum slu_kube_lane)i,
			       c->o.connections[i] ? c->o.connections[i] : conns[i]);
	*out = c;
	return 0;
}

void slu_kube_client_free(struct slu_kube_client *c)
{
	if (!c)
		return;
	c->closing = true;
	slu_timer_stop(&c->rate);
	for (int i = 1; i < SLU_KUBE_LANES; i++) {
		struct kube_lane *l = &c->lane[i];

		for (int p = 0; p < KUBE_PRIORITIES; p++)
			while (l->queue[p].first)
				slu_kube_cancel(l->queue[p].first);
		while (l->waiting.first)
			slu_kube_cancel(l->waiting.first);
		while (l->inflight.first)
			slu_kube_cancel(l->inflight.first);
		kube_lane_close(l);
	}
	kube_auth_free(c->auth);
	slu_kube_config_unref(c->cfg);
	slu_free(c->user_agent);
	slu_free(c);
}

struct slu_loop *slu_kube_client_loop(const struct slu_kube_client *c)
{
	return c->loop;
}

void slu_kube_client_rate(struct slu_kube_client *c, double qps, double burst)
{
	c->o.qps = qps;
	c->o.burst = burst >= 1 ? burst : SLU_MAX(2 * qps, 1.0);
	c->tokens = c->o.burst;
	c->tokens_ns = slu_clock_ns();
}

void slu_kube_client_stats(const struct slu_kube_client *c, struct slu_kube_stats *out)
{
	*out = c->st;
	for (int i = 1; i < SLU_KUBE_LANES; i++)
		for (const struct kube_conn *k = c->lane[i].conns; k; k = k->next) {
			out->bytes_in += slu_link_bytes_in(k->link);
			out->bytes_out += slu_link_bytes_out(k->link);
		}
}
