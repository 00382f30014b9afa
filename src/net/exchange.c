#include "net/server_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/utf8.h"

struct slu_exchange *net_server_exchange_new(struct server_peer *p)
{
	struct slu_exchange *x = slu_calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->peer = p;
	x->server = p->s;
	x->pool = p->pool;
	x->server->refs++;
	x->next = p->exchanges;
	if (x->next)
		x->next->prev = x;
	p->exchanges = x;
	p->s->st.exchanges++;
	return x;
}

static void unlink_peer(struct slu_exchange *x)
{
	struct server_peer *p = x->peer;

	if (!p)
		return;
	if (x->prev)
		x->prev->next = x->next;
	else
		p->exchanges = x->next;
	if (x->next)
		x->next->prev = x->prev;
	x->next = x->prev = NULL;
	x->peer = NULL;
	if (x->stream)
		slu_h2_set_user(x->stream, NULL);
	x->stream = NULL;
}

void net_server_exchange_free(struct slu_exchange *x)
{
	struct slu_server *s = x->server;

	unlink_peer(x);
	slu_timer_stop(&x->late);
	slu_task_cancel(&x->drained);
	x->pool->bytes -= x->orphaned;
	s->st.exchanges--;
	slu_headers_done(&x->headers);
	slu_headers_done(&x->reply);
	slu_headers_done(&x->trailers);
	slu_buf_done(&x->body);
	slu_free(x->target);
	slu_free(x->name);
	slu_free(x->cn);
	slu_free(x);
	net_server_unref(s);
}

size_t net_server_exchange_bytes(const struct slu_exchange *x)
{
	return sizeof *x + x->headers.text.cap + x->reply.text.cap + x->trailers.text.cap +
	       x->body.cap;
}

void net_server_exchange_gone(struct slu_exchange *x)
{
	unlink_peer(x);
	slu_timer_stop(&x->late);
	slu_task_cancel(&x->drained);
	if (!x->handed) {
		net_server_exchange_free(x);
		return;
	}
	net_server_pool_orphan(x);
	if (x->gone_fn)
		x->gone_fn(x->gone_arg);
}

int net_server_exchange_prepare(struct slu_exchange *x, const char *method, const char *target)
{
	struct server_peer *p = x->peer;
	char *query;

	/* "http://host/path" is allowed in HTTP/1.1; only the path matters. */
	if (!strncmp(target, "http://", 7) || !strncmp(target, "https://", 8)) {
		target = strchr(strstr(target, "://") + 3, '/');
		if (!target)
			target = "/";
	}
	if (*target != '/' && strcmp(target, "*"))
		return -EINVAL;
	x->target = slu_strdup(target);
	x->name = slu_strdup(p->name);
	x->cn = p->cn ? slu_strdup(p->cn) : NULL;
	if (!x->target || !x->name || (p->cn && !x->cn))
		return -ENOMEM;
	query = strchr(x->target, '?');
	if (query)
		*query++ = '\0';
	x->q = (struct slu_http_request){
		.method = slu_http_method_parse(method, strlen(method)),
		.method_text = method,
		.path = x->target,
		.query = query ? query : "",
		.headers = &x->headers,
		.version = p->proto == PROTO_H2 ? 2 : 1,
		.listener = p->listener,
		.tls = p->tls,
		.peer = x->name,
		.uid = p->uid,
		.client_cn = x->cn,
	};
	if (x->q.method != SLU_HTTP_OTHER)
		x->q.method_text = slu_http_method_name(x->q.method);
	return 0;
}

void net_server_exchange_hand_over(struct slu_exchange *x)
{
	const char *host = slu_headers_get(&x->headers, ":authority");

	if (!host)
		host = slu_headers_get(&x->headers, "host");
	x->q.authority = host ? host : "";
	x->q.body = slu_buf_str(&x->body);
	x->q.body_len = x->body.n;
	x->handed = true;
	x->peer->asked = true;
	slu_timer_stop(&x->late);
	x->server->st.requests++;
	x->server->o.handler(x, x->server->o.arg);
}

const struct slu_http_request *slu_exchange_request(const struct slu_exchange *x)
{
	return &x->q;
}

void slu_exchange_set_user(struct slu_exchange *x, void *user)
{
	x->user = user;
}

void *slu_exchange_user(const struct slu_exchange *x)
{
	return x->user;
}

void slu_exchange_on_gone(struct slu_exchange *x, slu_call_fn *fn, void *arg)
{
	x->gone_fn = fn;
	x->gone_arg = arg;
}

void slu_exchange_on_body(struct slu_exchange *x, const struct slu_exchange_sink *sink)
{
	x->sink = *sink;
}

void slu_exchange_hold(struct slu_exchange *x, bool hold)
{
	x->hold = hold;
	if (hold || !x->stream)
		return;
	slu_h2_consume(x->stream, x->owed);
	x->owed = 0;
	slu_conn_kick(x->peer->conn);
}

bool slu_exchange_gone(const struct slu_exchange *x)
{
	return !x->peer;
}

/* ---- answers ---- */

/* "Sun, 06 Nov 1994 08:49:37 GMT", made once a second. */
static const char *http_date(void)
{
	static __thread time_t made;
	static __thread char text[40];
	time_t now = time(NULL);

	if (now != made) {
		struct tm tm;

		gmtime_r(&now, &tm);
		strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
		made = now;
	}
	return text;
}

int net_server_common_headers(struct slu_headers *h)
{
	return slu_headers_put(h, "date", http_date());
}

int slu_http_reply_header(struct slu_exchange *x, const char *name, const char *value)
{
	return slu_headers_put(&x->reply, name, value);
}

int slu_http_reply_trailer(struct slu_exchange *x, const char *name, const char *value)
{
	return slu_headers_put(&x->trailers, name, value);
}

/* Status and headers for an HTTP/2 stream.  `length` < 0: unknown. */
static int h2_head(struct slu_h2_stream *s, int status, const struct slu_headers *h, int64_t length,
		   bool more)
{
	struct slu_h2_header out[60];
	char code[8], len[24];
	size_t n = 0;

	snprintf(code, sizeof code, "%d", status);
	out[n++] = (struct slu_h2_header){ ":status", code, strlen(code), false };
	for (uint32_t i = 0; i < slu_headers_count(h) && n < SLU_LEN(out) - 1; i++) {
		const char *v = slu_headers_value(h, i);

		out[n++] = (struct slu_h2_header){ slu_headers_name(h, i), v, strlen(v), false };
	}
	if (length >= 0 && status != 204 && status != 304) {
		snprintf(len, sizeof len, "%" PRId64, length);
		out[n++] = (struct slu_h2_header){ "content-length", len, strlen(len), false };
	}
	return slu_h2_respond(s, out, n, more);
}

static int head_of(struct slu_exchange *x, int status, const char *content_type)
{
	int rc = net_server_common_headers(&x->reply);

	if (!rc && content_type)
		rc = slu_headers_put(&x->reply, "content-type", content_type);
	return rc;
}

/* End the exchange: the whole answer is written, or writing it failed. */
static void end_exchange(struct slu_exchange *x, int rc)
{
	struct server_peer *p = x->peer;

	if (rc < 0) {
		slu_http_reply_abort(x);
		return;
	}
	if (x->stream)
		slu_h2_set_user(x->stream, NULL);
	net_server_exchange_free(x);
	net_server_peer_answered(p);
}

void slu_http_reply(struct slu_exchange *x, int status, const char *content_type, const void *body,
		    size_t n)
{
	struct server_peer *p = x->peer;
	bool head_only = x->q.method == SLU_HTTP_HEAD || status == 204 || status == 304;
	int rc;

	if (!p) {
		net_server_exchange_free(x);
		return;
	}
	rc = head_of(x, status, content_type);
	if (!rc && x->stream) {
		bool more = n && !head_only;

		rc = h2_head(x->stream, status, &x->reply, (int64_t)n, more);
		if (!rc && more)
			rc = slu_h2_body(x->stream, body, n);
		if (!rc && more)
			rc = slu_h2_body_end(x->stream, NULL);
	} else if (!rc) {
		rc = slu_h1_respond(p->h1, status, &x->reply, (int64_t)n);
		if (!rc)
			rc = slu_h1_write(p->h1, body, n);
		if (!rc)
			rc = slu_h1_end(p->h1, NULL);
	}
	end_exchange(x, rc);
}

void slu_http_reply_text(struct slu_exchange *x, int status, const char *fmt, ...)
{
	char brief[2048], *text = brief;
	size_t room = sizeof brief;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(brief, sizeof brief - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof brief - 2 && (text = slu_malloc((size_t)n + 2))) {
		room = (size_t)n + 2;
		va_start(ap, fmt);
		n = vsnprintf(text, room - 1, fmt, ap);
		va_end(ap);
	}
	if (!text) /* without memory, as much of the answer as there is room for */
		text = brief;
	n = SLU_MAX(SLU_MIN(n, (int)room - 2), 0);
	text[n] = '\0';
	slu_utf8_cut(text, room, text); /* a path of the caller may hold any byte */
	n = (int)strlen(text);
	text[n++] = '\n';
	slu_http_reply(x, status, "text/plain; charset=utf-8", text, (size_t)n);
	if (text != brief)
		slu_free(text);
}

int slu_http_reply_begin(struct slu_exchange *x, int status, const char *content_type)
{
	int rc;

	if (!x->peer)
		return -EPIPE;
	if (x->begun)
		return -EALREADY;
	rc = head_of(x, status, content_type);
	if (!rc && x->stream)
		rc = h2_head(x->stream, status, &x->reply, -1, true);
	else if (!rc)
		rc = slu_h1_respond(x->peer->h1, status, &x->reply, -1);
	if (rc < 0)
		return rc;
	x->begun = true;
	slu_conn_kick(x->peer->conn);
	return 0;
}

int slu_http_reply_write(struct slu_exchange *x, const void *p, size_t n)
{
	int rc;

	if (!x->peer)
		return -EPIPE;
	if (x->q.method == SLU_HTTP_HEAD)
		return 0;
	rc = x->stream ? slu_h2_body(x->stream, p, n) : slu_h1_write(x->peer->h1, p, n);
	net_server_pool_weigh(x->peer);
	if (!rc)
		slu_conn_kick(x->peer->conn);
	return rc;
}

void slu_http_reply_on_drain(struct slu_exchange *x, slu_call_fn *fn, void *arg)
{
	x->drain_fn = fn;
	x->drain_arg = arg;
}

void slu_http_reply_end(struct slu_exchange *x)
{
	struct server_peer *p = x->peer;
	int rc;

	if (!p) {
		net_server_exchange_free(x);
		return;
	}
	if (!x->begun) {
		slu_http_reply_abort(x);
		return;
	}
	rc = x->stream ? slu_h2_body_end(x->stream, &x->trailers) : slu_h1_end(p->h1, &x->trailers);
	end_exchange(x, rc);
}

void slu_http_reply_abort(struct slu_exchange *x)
{
	struct server_peer *p = x->peer;

	if (p && x->stream) {
		slu_h2_set_user(x->stream, NULL);
		slu_h2_reset(x->stream, SLU_H2_INTERNAL_ERROR);
	} else if (p) {
		slu_h1_close_after(p->h1);
	}
	net_server_exchange_free(x);
	if (p)
		net_server_peer_answered(p);
}

/* ---- refusals the handler never sees ---- */

void net_server_h1_refuse(struct server_peer *p, int status, const char *text)
{
	struct slu_headers h = { 0 };
	size_t n = strlen(text);

	p->s->st.bad_requests++;
	net_server_common_headers(&h);
	slu_headers_put(&h, "content-type", "text/plain; charset=utf-8");
	slu_h1_close_after(p->h1);
	if (slu_h1_respond(p->h1, status, &h, (int64_t)n + 1) == 0) {
		slu_h1_write(p->h1, text, n);
		slu_h1_write(p->h1, "\n", 1);
	}
	slu_headers_done(&h);
}

void net_server_h2_refuse(struct slu_h2_stream *s, int status, const char *text)
{
	struct slu_headers h = { 0 };

	net_server_common_headers(&h);
	slu_headers_put(&h, "content-type", "text/plain; charset=utf-8");
	slu_h2_set_user(s, NULL);
	if (h2_head(s, status, &h, (int64_t)strlen(text) + 1, true) < 0 ||
	    slu_h2_body(s, text, strlen(text)) < 0 || slu_h2_body(s, "\n", 1) < 0 ||
	    slu_h2_body_end(s, NULL) < 0)
		slu_h2_reset(s, SLU_H2_INTERNAL_ERROR);
	slu_headers_done(&h);
}
