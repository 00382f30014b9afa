/* try.c — one try of a request: send it on a connection and collect its answer. */
#include "kube/client_internal.h"

#include <stdio.h>

#define HELD_MAX          ((size_t)16 << 20)
#define RETRY_AFTER_MAX_S 300

static struct slu_h2_header header_of(const char *name, const char *value)
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
		kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, "this replica may no longer write",
				 0);
		return;
	}
	kube_crash_point(q, "before");
	h[n++] = header_of(":method", slu_http_method_name(q->method));
	h[n++] = header_of(":scheme", cfg->addr.tls ? "https" : "http");
	h[n++] = header_of(":authority", c->authority);
	h[n++] = header_of(":path", q->path);
	if (authorization)
		h[n++] = header_of("authorization", authorization);
	h[n++] = header_of("accept", q->accept);
	h[n++] = header_of("user-agent", c->user_agent);
	if (!c->o.no_gzip && !q->stream_wanted)
		h[n++] = header_of("accept-encoding", "gzip");
	if (q->body_len) {
		h[n++] = header_of("content-type", q->content_type);
		snprintf(length, sizeof length, "%zu", q->body_len);
		h[n++] = header_of("content-length", length);
	}
	if (cfg->as_user)
		h[n++] = header_of("impersonate-user", cfg->as_user);
	if (cfg->as_uid)
		h[n++] = header_of("impersonate-uid", cfg->as_uid);
	for (const char **g = cfg->as_groups; g && *g && n < 30; g++)
		h[n++] = header_of("impersonate-group", *g);
	for (uint32_t i = 0; i < cfg->n_as_extra && n < SLU_LEN(h); i++)
		h[n++] = header_of(cfg->as_extra[i].name, cfg->as_extra[i].value);
	q->tries++;
	rc = slu_link_request(k->link, h, n, q->body, q->body_len, q, &q->stream);
	if (rc < 0) {
		slu_fail(&err, rc, "the request cannot be sent: %s", strerror(-rc));
		q->last = err;
		if (!kube_call_retry(q, kube_backoff(c, q->tries)))
			kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, err.text, 0);
		return;
	}
	q->conn = k;
	q->sent_ns = slu_clock_ns();
	c->st.sent[q->lane->id]++;
	kube_call_move(q, CALL_INFLIGHT);
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

int kube_call_deliver(struct slu_kube_call *q, const uint8_t *p, size_t n)
{
	char cause[160];
	int rc;

	q->in_data = true;
	rc = q->gz ? slu_gunzip_feed(q->gz, p, n, take_bytes, q) : take_bytes(q, p, n);
	q->in_data = false;
	if (!rc && !q->cancel_asked)
		return 0;
	if (q->cancel_asked) {
		kube_call_finish(q, SLU_KUBE_CANCELLED, NULL, "cancelled", 0);
		return 1;
	}
	if (rc == -EMSGSIZE)
		snprintf(cause, sizeof cause, "the answer is larger than %zu bytes", q->max_body);
	else if (rc == -EPROTO)
		snprintf(cause, sizeof cause, "the answer is not valid gzip");
	else
		snprintf(cause, sizeof cause, "%s", strerror(-rc));
	q->head_seen = false;
	kube_call_finish(q, rc == -ENOMEM ? SLU_KUBE_RETRYABLE : SLU_KUBE_FAILED, NULL, cause, 0);
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
		kube_call_finish(q, SLU_KUBE_FAILED, NULL,
				 "the head of the answer is larger than 64 KiB", 0);
		return;
	}
	if (enc && !strcmp(enc, "gzip")) {
		q->gz = slu_gunzip_new();
		if (!q->gz) {
			q->head_seen = false;
			kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, strerror(ENOMEM), 0);
			return;
		}
	} else if (enc && strcmp(enc, "identity")) {
		char cause[100];

		snprintf(cause, sizeof cause, "the answer is encoded as %.60s", enc);
		kube_call_finish(q, SLU_KUBE_FAILED, NULL, cause, 0);
		return;
	}
	if (q->stream_wanted && q->status / 100 == 2) {
		q->streaming = true;
		c->st.streams++;
		slu_timer_stop(&q->deadline);
		if (q->idle_ns)
			slu_timer_start(&q->idle, c->loop, q->idle_ns, kube_call_idle, q);
	}
}

void kube_call_data(struct slu_kube_call *q, const uint8_t *p, size_t n)
{
	struct slu_h2_stream *s = q->stream;
	struct slu_link *link = q->conn->link;

	if (q->paused) { /* do not consume the bytes, so that the window stops the server */
		q->held.max = HELD_MAX;
		if (slu_buf_add(&q->held, p, n) < 0)
			kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL,
					 "no memory to hold a paused stream", 0);
		return;
	}
	if (q->idle_ns && q->streaming)
		slu_timer_start(&q->idle, q->lane->c->loop, q->idle_ns, kube_call_idle, q);
	if (!kube_call_deliver(q, p, n))
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
	if (q->gz && !slu_gunzip_complete(q->gz)) {
		slu_fail(&q->last, -EPROTO, "the compressed answer is cut short");
		q->head_seen = false;
		q->may_be_done |= kube_call_writes(q);
		if (q->streaming || !kube_call_repeatable(q) ||
		    !kube_call_retry(q, kube_backoff(c, q->tries)))
			kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
		return;
	}
	if (q->status / 100 == 2) {
		kube_call_finish(q, SLU_KUBE_OK, NULL, "", 0);
		return;
	}
	type = slu_headers_get(slu_h2_headers(q->stream), "content-type");
	kube_status_read(type ? type : "", slu_buf_str(&q->answer), q->answer.n, message,
			 sizeof message, reason, sizeof reason);
	o = kube_outcome_of(q->status, reason);
	wait = retry_after(q);
	slu_fail(&q->last, 0, "%d %s: %s", q->status, slu_http_status_text(q->status), message);
	if (q->status == 429 || (q->status >= 500 && wait)) {
		/* The answer says that the server did nothing. */
		c->st.throttled += q->status == 429;
		again = true;
	} else if (o == SLU_KUBE_RETRYABLE) {
		q->may_be_done |= kube_call_writes(
			q); /* 504: the server gave up waiting for its store */
		again = kube_call_repeatable(q);
	} else if (q->status == 401 && !q->reauthed && kube_auth_rejected(c->auth)) {
		q->reauthed = true;
		again = true;
	}
	if (again) {
		int64_t pause = q->status == 401 ? 0 : kube_backoff(c, q->tries);

		if (wait) /* asked for by the server; the jitter keeps clients apart */
			pause = wait + (int64_t)slu_rng_below(&c->rng, (uint64_t)wait / 10 + 1);
		if (kube_call_retry(q, pause))
			return;
	}
	kube_call_finish(q, o, reason, message, wait);
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
		kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
		return;
	}
	q->may_be_done |= !refused && kube_call_writes(q);
	if (!refused && !kube_call_repeatable(q)) {
		kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
		return;
	}
	/* A stream that the server refused while closing the connection moves to the next
	 * connection at once. */
	if (!kube_call_retry(q, refused && q->tries == 1 ? 0 : kube_backoff(c, q->tries)))
		kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, q->last.text, 0);
}
