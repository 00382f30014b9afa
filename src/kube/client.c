#include "kube/client_internal.h"

#include <stdio.h>
#include <time.h>

#define DEFAULT_MAX_BODY ((size_t)64 << 20)
#define DEFAULT_QUEUE    100000

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

void kube_call_move(struct slu_kube_call *q, enum kube_call_state to)
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
		return; /* the duration of a stream is not a latency */
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
	slu_gunzip_free(q->gz);
	slu_buf_done(&q->answer);
	slu_buf_done(&q->held);
	slu_free(q->text);
	slu_free(q->body);
	slu_free(q);
}

/* Detach the call from its stream; a running stream is reset. */
static void detach_stream(struct slu_kube_call *q)
{
	if (!q->stream)
		return;
	slu_h2_set_user(q->stream, NULL);
	if (!slu_h2_peer_ended(q->stream))
		slu_link_reset(q->conn->link, q->stream);
	q->stream = NULL;
	q->conn = NULL;
}

void kube_call_finish(struct slu_kube_call *q, enum slu_kube_outcome o, const char *reason,
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
	/* A 4xx answer settles the fate of the write; silence and most 5xx answers do not, and
	 * 401 and 403 say nothing about an earlier try. */
	r.uncertain = q->may_be_done && (o == SLU_KUBE_RETRYABLE || o == SLU_KUBE_FAILED ||
					 o == SLU_KUBE_CANCELLED || o == SLU_KUBE_REFUSED);
	if (!r.status)
		q->lane->c->st.answers[0]++;
	count_done(q, o, r.took_ns);
	slu_timer_stop(&q->deadline);
	slu_timer_stop(&q->pause);
	slu_timer_stop(&q->idle);
	kube_call_move(q, CALL_DONE);
	detach_stream(q); /* before the callback, which may close connections */
	kube_crash_point(q, "answered");
	q->done(q->arg, &r);
	kube_crash_point(q, "told");
	call_free(q);
}

void kube_call_fail(struct slu_kube_call *q, enum slu_kube_outcome o, const struct slu_error *err)
{
	kube_call_finish(q, o, NULL, err->text, 0);
}

/* ---- trying again ---- */

bool kube_call_repeatable(const struct slu_kube_call *q)
{
	return q->method == SLU_HTTP_GET || q->method == SLU_HTTP_HEAD || q->repeatable;
}

bool kube_call_writes(const struct slu_kube_call *q)
{
	return q->method != SLU_HTTP_GET && q->method != SLU_HTTP_HEAD;
}

static void try_again(void *arg)
{
	struct slu_kube_call *q = arg;

	kube_call_move(q, CALL_QUEUED);
	kube_lane_wake(q->lane);
}

/* Forget the bytes that the last try received. */
static void clear_try(struct slu_kube_call *q)
{
	detach_stream(q);
	q->conn = NULL;
	slu_gunzip_free(q->gz);
	q->gz = NULL;
	slu_buf_done(&q->answer);
	slu_buf_done(&q->held);
	q->status = 0;
	q->head_seen = false;
}

/* Try the call again after a pause of `delay_ns`; false if the call may not be tried again, and
 * the caller has to end it. */
bool kube_call_retry(struct slu_kube_call *q, int64_t delay_ns)
{
	struct slu_kube_client *c = q->lane->c;

	if (q->once || c->closing || q->tries >= c->o.max_tries)
		return false;
	if (slu_timer_armed(&q->deadline) &&
	    slu_loop_now_ns(c->loop) + delay_ns >= q->deadline.due_ns)
		return false;
	clear_try(q);
	c->st.retries++;
	kube_call_move(q, CALL_WAITING);
	slu_timer_start(&q->pause, c->loop, delay_ns, try_again, q);
	return true;
}

void kube_call_unreached(struct slu_kube_call *q, const struct slu_error *err)
{
	q->last = *err;
	if (++q->tries >= q->lane->c->o.max_tries || q->once) {
		kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, err->text, 0);
		return;
	}
	kube_call_move(q, CALL_QUEUED); /* the lane pauses as a whole */
}

static void on_deadline(void *arg)
{
	struct slu_kube_call *q = arg;
	char cause[SLU_ERROR_MAX + 100];

	q->lane->c->st.timeouts++;
	q->may_be_done |= q->state == CALL_INFLIGHT && kube_call_writes(q);
	snprintf(cause, sizeof cause, "no answer within %.1f s%s%s", (double)q->timeout_ns / 1e9,
		 *q->last.text ? "; last try: " : "", q->last.text);
	q->head_seen = false; /* ignore an answer that is not complete */
	slu_buf_reset(&q->answer);
	kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, cause, 0);
}

void kube_call_idle(void *arg)
{
	struct slu_kube_call *q = arg;

	q->lane->c->st.timeouts++;
	kube_call_finish(q, SLU_KUBE_RETRYABLE, NULL, "the stream fell silent", 0);
}

/* ---- public functions ---- */

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
	kube_call_move(q, CALL_QUEUED);
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
		q->cancel_asked = true; /* kube_call_deliver() finishes it */
		return;
	}
	q->head_seen = false;
	q->may_be_done |= q->state == CALL_INFLIGHT && kube_call_writes(q);
	kube_call_finish(q, SLU_KUBE_CANCELLED, NULL, "cancelled", 0);
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
	if (held.n && kube_call_deliver(q, (const uint8_t *)held.p, held.n)) {
		slu_buf_done(&held);
		return;
	}
	if (held.n)
		slu_link_consume(link, s, held.n);
	slu_buf_done(&held);
	if (slu_h2_peer_ended(s))
		kube_call_end(q);
	else if (q->idle_ns && q->streaming)
		slu_timer_start(&q->idle, q->lane->c->loop, q->idle_ns, kube_call_idle, q);
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
