/* The API client against a pretend server: statuses, retries, streams, time-outs, broken peers. */
#include "kubefake.h"
#include "pki.h"

#include <sys/stat.h>
#include <zlib.h>

/* ---- what the server does, by path ---- */

struct world {
	struct fake f;
	int calls[16];   /* per first letter of the last path part */
	char seen[4096]; /* heads of requests, for inspection */
	char order[256]; /* last path parts in order of arrival */
	struct slu_exchange *held[256];
	int n_held;
	const char *token; /* what /auth accepts */
	int fail_times;
};

static void reply_status(struct slu_exchange *x, int status, const char *reason,
			 const char *message)
{
	char text[512];

	snprintf(
		text, sizeof text,
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
		message, reason, status);
	slu_http_reply(x, status, "application/json", text, strlen(text));
}

static void gzip_text(const char *text, size_t n, struct slu_buf *out)
{
	z_stream z = { 0 };

	deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
	slu_buf_room(out, n / 500 + 4096 + n / 100);
	z.next_in = (uint8_t *)text;
	z.avail_in = (unsigned)n;
	z.next_out = (uint8_t *)out->p;
	z.avail_out = (unsigned)out->cap - 1;
	deflate(&z, Z_FINISH);
	out->n = z.total_out;
	deflateEnd(&z);
}

static void serve(struct slu_exchange *x, void *arg)
{
	struct world *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	const char *p = strrchr(q->path, '/') + 1;
	const char *v;

	if (strlen(w->order) + strlen(p) + 2 < sizeof w->order) {
		strcat(w->order, p);
		strcat(w->order, " ");
	}
	snprintf(w->seen, sizeof w->seen, "%s %s?%s", q->method_text, q->path, q->query);
	for (uint32_t i = 0; i < slu_headers_count(q->headers); i++) {
		size_t n = strlen(w->seen);

		snprintf(w->seen + n, sizeof w->seen - n, "\n%s: %s",
			 slu_headers_name(q->headers, i), slu_headers_value(q->headers, i));
	}
	if (!strcmp(p, "ok")) {
		slu_http_reply(x, 200, "application/json", "{\"a\":1}", 7);
	} else if (!strcmp(p, "cn")) {
		slu_http_reply_text(x, 200, "%s", q->client_cn ? q->client_cn : "-");
	} else if (!strcmp(p, "echo")) {
		slu_http_reply(x, 201, "application/json", q->body, q->body_len);
	} else if (!strcmp(p, "busy")) {
		if (w->calls[0]++ < 1) {
			slu_http_reply_header(x, "retry-after", "1");
			reply_status(x, 429, "TooManyRequests", "slow down");
		} else {
			slu_http_reply(x, 200, "application/json", "{}", 2);
		}
	} else if (!strcmp(p, "storm")) {
		if (w->calls[1]++ < w->fail_times)
			reply_status(x, 503, "ServiceUnavailable", "storm");
		else
			slu_http_reply(x, 200, "application/json", "{}", 2);
	} else if (!strcmp(p, "stormra")) {
		if (w->calls[2]++ < 1) {
			slu_http_reply_header(x, "retry-after", "1");
			reply_status(x, 503, "ServiceUnavailable", "later");
		} else {
			slu_http_reply(x, 200, "application/json", "{}", 2);
		}
	} else if (strstr(q->path, "/code-")) {
		p = strstr(q->path, "/code-") + 1;
		int code = atoi(p + 5);

		reply_status(x, code, strchr(p + 5, '-') ? strchr(p + 5, '-') + 1 : "R",
			     "the message");
	} else if (!strcmp(p, "pb403")) {
		/* Unknown{1 typeMeta{}, 2 raw=Status{2 "Failure", 3 "no way", 4 "Forbidden"}} */
		static const char pb[] = "k8s\0\x0a\x00\x12\x1c\x12\x07"
					 "Failure\x1a\x06no way\x22\x09"
					 "Forbidden";

		slu_http_reply(x, 403, "application/vnd.kubernetes.protobuf", pb, sizeof pb - 1);
	} else if (!strcmp(p, "gzip") || !strcmp(p, "gzipcut") || !strcmp(p, "bomb")) {
		size_t n = *p == 'b' ? 8 << 20 : 100000;
		char *text = calloc(1, n);
		struct slu_buf z = SLU_BUF_INIT(4 << 20);

		gzip_text(text, n, &z);
		v = slu_headers_get(q->headers, "accept-encoding");
		if (v && strstr(v, "gzip")) {
			slu_http_reply_header(x, "content-encoding", "gzip");
			slu_http_reply(x, 200, "application/json", z.p,
				       !strcmp(p, "gzipcut") ? z.n - 30 : z.n);
		} else {
			slu_http_reply(x, 200, "application/json", text, n);
		}
		slu_buf_done(&z);
		free(text);
	} else if (!strcmp(p, "notgzip")) {
		slu_http_reply_header(x, "content-encoding", "gzip");
		slu_http_reply(x, 200, "application/json", "plainly not", 11);
	} else if (!strncmp(p, "hold", 4)) {
		if (w->n_held < 256)
			w->held[w->n_held++] = x;
	} else if (!strcmp(p, "stream")) {
		slu_http_reply_begin(x, 200, "application/json;stream=watch");
		slu_http_reply_write(x, "one\n", 4);
		slu_http_reply_write(x, "two\n", 4);
		w->held[w->n_held++] = x;
	} else if (!strcmp(p, "firehose")) {
		char *big = malloc(12 << 20);

		memset(big, 'x', 12 << 20);
		slu_http_reply_begin(x, 200, "text/plain");
		slu_http_reply_write(x, big, 12 << 20);
		slu_http_reply_end(x);
		free(big);
	} else if (!strcmp(p, "headers")) {
		char value[8000];

		memset(value, 'h', sizeof value);
		value[sizeof value - 1] = '\0';
		for (int i = 0; i < 7; i++)
			slu_http_reply_header(x, "x-long", value);
		slu_http_reply(x, 200, NULL, "", 0);
	} else if (!strcmp(p, "auth")) {
		v = slu_headers_get(q->headers, "authorization");
		if (v && w->token && !strcmp(v, w->token))
			slu_http_reply(x, 200, "application/json", "{}", 2);
		else
			reply_status(x, 401, "Unauthorized", "Unauthorized");
	} else {
		reply_status(x, 404, "NotFound", "not here");
	}
}

static void release(struct world *w, bool answer)
{
	for (int i = 0; i < w->n_held; i++) {
		if (answer)
			slu_http_reply(w->held[i], 200, "application/json", "{}", 2);
		else
			slu_http_reply_abort(w->held[i]);
	}
	w->n_held = 0;
}

static const struct slu_kube_client_options quick = { .backoff_ns = 2 * SLU_NS_PER_MS,
						      .backoff_max_ns = 20 * SLU_NS_PER_MS,
						      .seed = 1 };

static struct slu_kube_client *client(struct fake *f, struct slu_kube_config *cfg,
				      const struct slu_kube_client_options *o)
{
	struct slu_kube_client *c = NULL;

	slu_kube_client_new(f->loop, cfg, o ? o : &quick, &c, NULL);
	return c;
}

static struct slu_kube_client *begin(struct world *w, uint32_t max_streams,
				     const struct slu_kube_client_options *o)
{
	struct slu_kube_config *cfg;
	struct slu_kube_client *c;

	memset(w, 0, sizeof *w);
	fake_begin(&w->f);
	fake_serve(&w->f, serve, w, NULL, max_streams);
	cfg = fake_config(&w->f, "http", "", "    token: secret\n");
	c = client(&w->f, cfg, o);
	slu_kube_config_unref(cfg);
	return c;
}

static void end(struct world *w, struct slu_kube_client *c)
{
	slu_kube_client_free(c);
	release(w, false);
	fake_end(&w->f);
}

/* ---- collecting answers ---- */

struct got {
	bool done;
	int n;
	enum slu_kube_outcome outcome;
	int status;
	unsigned tries;
	bool uncertain;
	char error[1024], body[256], reason[64];
	size_t body_len, streamed;
	int64_t took_ns;
	struct slu_kube_call *call;
	int cancel_after, pieces;
	int *left;
};

static void done(void *arg, const struct slu_kube_reply *r)
{
	struct got *g = arg;

	g->done = true;
	g->n++;
	g->outcome = r->outcome;
	g->status = r->status;
	g->tries = r->tries;
	g->uncertain = r->uncertain;
	snprintf(g->error, sizeof g->error, "%s", r->error);
	snprintf(g->reason, sizeof g->reason, "%s", r->reason);
	snprintf(g->body, sizeof g->body, "%.*s", (int)strcspn(r->body, "\n"), r->body);
	g->body_len = r->body_len;
	g->took_ns = r->took_ns;
	g->call = NULL;
	if (g->left)
		--*g->left;
}

static void piece(void *arg, const void *p, size_t n)
{
	struct got *g = arg;

	(void)p;
	g->streamed += n;
	if (g->cancel_after && ++g->pieces == g->cancel_after)
		slu_kube_cancel(g->call);
}

/* Client and server share the loop: what counts is how often it turns, not how fast. */
static void wait_for(struct fake *f, const bool *flag, int ms)
{
	for (int i = 0; i < ms && !*flag; i++)
		slu_loop_run_until(f->loop, flag, SLU_NS_PER_MS);
}

static struct got ask(struct slu_kube_client *c, struct slu_kube_request q)
{
	struct got g = { 0 };

	q.done = done;
	q.arg = &g;
	if (slu_kube_send(c, &q, NULL) < 0)
		return g;
	slu_loop_run_until(slu_kube_client_loop(c), &g.done, 60 * SLU_NS_PER_S);
	return g;
}

#define GET(p) ((struct slu_kube_request){ .path = p })
#define POST(p)                     \
	((struct slu_kube_request){ \
		.method = SLU_HTTP_POST, .path = p, .body = "{}", .body_len = 2 })

/* ---- the cases ---- */

static void test_plain(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	struct got g = ask(c,
			   (struct slu_kube_request){ .path = "/api/v1/ok", .query = "limit=5" });
	struct slu_kube_answer a;
	struct slu_error err = { 0 };
	struct slu_kube_stats st;
	int rc;

	ok(g.outcome == SLU_KUBE_OK && g.status == 200 && !strcmp(g.body, "{\"a\":1}") &&
		   g.tries == 1,
	   "a GET is answered at the first try");
	ok(strstr(w.seen, "GET /api/v1/ok?limit=5") &&
		   strstr(w.seen, "authorization: Bearer secret") &&
		   strstr(w.seen, "user-agent: sluice/") &&
		   strstr(w.seen, "accept: application/json") &&
		   strstr(w.seen, "accept-encoding: gzip"),
	   "a request carries all headers a server needs");
	g = ask(c, (struct slu_kube_request){ .method = SLU_HTTP_PATCH,
					      .path = "/echo",
					      .body = "[1]",
					      .body_len = 3,
					      .content_type = SLU_KUBE_JSON_PATCH });
	ok(g.status == 201 && !strcmp(g.body, "[1]") &&
		   strstr(w.seen, "content-type: application/json-patch+json"),
	   "PATCH carries body and type");
	rc = slu_kube_do(c, &GET("/api/v1/ok"), &a, &err);
	ok(rc == 0 && a.status == 200 && a.body_len == 7,
	   "the synchronous form returns the answer");
	slu_kube_answer_done(&a);
	rc = slu_kube_do(c, &GET("/api/v1/namespaces/ns/pods/code-404-NotFound"), &a, &err);
	ok(rc == -ENOENT && a.outcome == SLU_KUBE_NOT_FOUND && !strcmp(a.reason, "NotFound") &&
		   strstr(err.text,
			  "cannot get pods \"code-404-NotFound\" in namespace \"ns\": 404 Not Found: the message"),
	   "an error answer is put into words: %s", err.text);
	slu_kube_answer_done(&a);
	ok(slu_kube_send(c, &(struct slu_kube_request){ .path = "x", .done = done }, NULL) ==
		   -EINVAL,
	   "a path without / is refused");
	slu_kube_client_stats(c, &st);
	ok(st.done[SLU_KUBE_OK] == 3 && st.answers[2] == 3 && st.answers[4] == 1 &&
		   st.connects == 2 && st.sent[SLU_KUBE_LANE_READ] == 3 && st.latency_count == 4 &&
		   st.bytes_in > 0 && st.queued == 0 && st.inflight == 0,
	   "the counters agree with the requests");
	end(&w, c);
}

static void test_outcomes(void)
{
	static const struct {
		const char *path;
		enum slu_http_method method;
		enum slu_kube_outcome o;
		const char *text;
	} row[] = {
		{ "/api/v1/namespaces/a/pods/code-403/binding", SLU_HTTP_POST, SLU_KUBE_REFUSED,
		  "cannot create pods/binding \"code-403\" in namespace \"a\": 403 Forbidden: the message" },
		{ "/apis/batch/v1/namespaces/a/jobs/code-409-Conflict", SLU_HTTP_PUT,
		  SLU_KUBE_CONFLICT,
		  "cannot update jobs.batch \"code-409-Conflict\" in namespace \"a\": 409" },
		{ "/api/v1/namespaces/code-409-AlreadyExists", SLU_HTTP_POST, SLU_KUBE_EXISTS,
		  "cannot create namespaces \"code-409-AlreadyExists\": 409 Conflict" },
		{ "/api/v1/nodes/code-410-Expired", SLU_HTTP_GET, SLU_KUBE_GONE,
		  "cannot get nodes" },
		{ "/api/v1/code-404-NotFound", SLU_HTTP_GET, SLU_KUBE_NOT_FOUND,
		  "cannot list code-404" },
		{ "/api/v1/pods/code-422-Invalid", SLU_HTTP_PATCH, SLU_KUBE_INVALID,
		  "cannot patch pods" },
		{ "/api/v1/pods/code-400-BadRequest", SLU_HTTP_DELETE, SLU_KUBE_INVALID,
		  "cannot delete pods" },
		{ "/healthz/code-302-Moved", SLU_HTTP_GET, SLU_KUBE_FAILED, "cannot get /healthz" },
		{ "/api/v1/pods/code-500-InternalError", SLU_HTTP_POST, SLU_KUBE_RETRYABLE,
		  "500 Internal Server Error: the message" },
	};
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	struct got g;

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		g = ask(c,
			(struct slu_kube_request){ .method = row[i].method, .path = row[i].path });
		ok(g.outcome == row[i].o && strstr(g.error, row[i].text), "%s: %s",
		   slu_kube_outcome_name(g.outcome), g.error);
	}
	g = ask(c, (struct slu_kube_request){ .path = "/api/v1/pods/pb403",
					      .accept = SLU_KUBE_PROTOBUF });
	ok(g.outcome == SLU_KUBE_REFUSED && !strcmp(g.reason, "Forbidden") &&
		   strstr(g.error, "no way"),
	   "a Status in protobuf is read: %s", g.error);
	end(&w, c);
}

static void test_retries(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	struct got g;
	struct slu_kube_stats st;

	g = ask(c, POST("/busy"));
	ok(g.outcome == SLU_KUBE_OK && g.tries == 2 && g.took_ns >= SLU_NS_PER_S &&
		   g.took_ns < 60 * SLU_NS_PER_S,
	   "429 is tried again after Retry-After (%lld ms)", (long long)g.took_ns / 1000000);
	w.fail_times = 5;
	g = ask(c, GET("/storm"));
	ok(g.outcome == SLU_KUBE_OK && g.tries == 6, "a GET survives five 503");
	w.calls[1] = 0;
	g = ask(c, POST("/storm"));
	ok(g.outcome == SLU_KUBE_RETRYABLE && g.tries == 1 && w.calls[1] == 1,
	   "a POST is not repeated behind the caller's back");
	w.calls[1] = 0;
	{
		struct slu_kube_request q = POST("/storm");

		q.repeatable = true;
		g = ask(c, q);
	}
	ok(g.outcome == SLU_KUBE_OK && g.tries == 6, "a POST is repeated if the caller allows it");
	g = ask(c, POST("/stormra"));
	ok(g.outcome == SLU_KUBE_OK && g.tries == 2,
	   "a POST is repeated if the server says when to come back");
	w.calls[1] = 0;
	w.fail_times = 1000;
	g = ask(c, GET("/storm"));
	ok(g.outcome == SLU_KUBE_RETRYABLE && g.tries == 8 && g.status == 503,
	   "a storm without end ends");
	{
		struct slu_kube_request q = GET("/storm");

		q.once = true;
		g = ask(c, q);
	}
	ok(g.tries == 1, "a request with `once` is sent once");
	slu_kube_client_stats(c, &st);
	ok(st.throttled == 1 && st.retries == 1 + 5 + 5 + 1 + 7, "retries are counted (%llu)",
	   (unsigned long long)st.retries);
	end(&w, c);
}

static void test_bodies(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	struct slu_kube_client_options o = quick;
	struct got g;
	struct slu_kube_request q;

	g = ask(c, GET("/gzip"));
	ok(g.outcome == SLU_KUBE_OK && g.body_len == 100000, "gzip is unpacked");
	g = ask(c, GET("/gzipcut"));
	ok(g.outcome == SLU_KUBE_RETRYABLE && g.tries == 8 && strstr(g.error, "cut short"),
	   "a truncated one is no answer: %s", g.error);
	g = ask(c, GET("/notgzip"));
	ok(g.outcome == SLU_KUBE_FAILED && strstr(g.error, "not valid gzip"),
	   "a body that is not gzip fails: %s", g.error);
	q = GET("/bomb");
	q.max_body = 1 << 20;
	g = ask(c, q);
	ok(g.outcome == SLU_KUBE_FAILED && strstr(g.error, "larger than 1048576"),
	   "a bomb meets the ceiling: %s", g.error);
	q = GET("/headers");
	g = ask(c, q);
	ok(g.outcome == SLU_KUBE_OK, "56 KiB of headers are fine (%s)", g.error);
	slu_kube_client_free(c);
	{
		struct slu_kube_config *cfg = fake_config(&w.f, "http",
							  "    disable-compression: true\n", "");

		c = client(&w.f, cfg, &o);
		slu_kube_config_unref(cfg);
	}
	g = ask(c, GET("/gzip"));
	ok(g.outcome == SLU_KUBE_OK && g.body_len == 100000 && !strstr(w.seen, "accept-encoding"),
	   "disable-compression is obeyed");
	end(&w, c);
}

static void test_streams(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	struct got g = { 0 };
	struct slu_kube_request q = { .path = "/stream", .data = piece, .done = done, .arg = &g };
	bool no = false;

	slu_kube_send(c, &q, &g.call);
	wait_for(&w.f, &g.done, 50);
	ok(!g.done && g.streamed == 8, "pieces arrive while the stream runs (%zu)", g.streamed);
	ok(!strstr(w.seen, "accept-encoding"), "streams are not compressed");
	slu_http_reply_write(w.held[0], "three\n", 6);
	slu_http_reply_end(w.held[0]);
	w.n_held = 0;
	wait_for(&w.f, &g.done, 1000);
	ok(g.done && g.outcome == SLU_KUBE_OK && g.streamed == 14 && g.body_len == 0,
	   "a stream that ends whole is no error");

	memset(&g, 0, sizeof g);
	slu_kube_send(c, &q, &g.call);
	wait_for(&w.f, &g.done, 50);
	slu_kube_client_cut(c, SLU_KUBE_LANE_WATCH);
	wait_for(&w.f, &g.done, 1000);
	ok(g.outcome == SLU_KUBE_RETRYABLE && strstr(g.error, "connection was lost"),
	   "a cut is told: %s", g.error);
	wait_for(&w.f, &no, 20);
	release(&w, false);

	memset(&g, 0, sizeof g);
	g.cancel_after = 1;
	slu_kube_send(c, &q, &g.call);
	wait_for(&w.f, &g.done, 1000);
	ok(g.n == 1 && g.outcome == SLU_KUBE_CANCELLED, "cancelled from inside the data callback");
	wait_for(&w.f, &no, 20);
	release(&w, false);

	memset(&g, 0, sizeof g);
	slu_kube_send(c, &q, &g.call);
	wait_for(&w.f, &g.done, 50);
	slu_kube_cancel(g.call);
	ok(g.n == 1 && g.outcome == SLU_KUBE_CANCELLED, "cancelled from outside, at once");
	wait_for(&w.f, &no, 20);
	release(&w, false);

	memset(&g, 0, sizeof g);
	q.path = "/firehose";
	slu_kube_send(c, &q, &g.call);
	slu_kube_pause(g.call);
	wait_for(&w.f, &g.done, 150);
	{
		struct slu_kube_stats st;

		slu_kube_client_stats(c, &st);
		ok(!g.done && g.streamed == 0 && st.bytes_in < 5 << 20,
		   "a paused stream holds the server back (%llu bytes came)",
		   (unsigned long long)st.bytes_in);
	}
	slu_kube_resume(g.call);
	wait_for(&w.f, &g.done, 3000);
	ok(g.done && g.outcome == SLU_KUBE_OK && g.streamed == 12 << 20,
	   "a paused stream resumes without a loss");

	memset(&g, 0, sizeof g);
	q.path = "/stream";
	q.idle_ns = 30 * SLU_NS_PER_MS;
	slu_kube_send(c, &q, &g.call);
	wait_for(&w.f, &g.done, 1000);
	ok(g.outcome == SLU_KUBE_RETRYABLE && strstr(g.error, "silent"), "silence has an end: %s",
	   g.error);
	wait_for(&w.f, &no, 20);
	release(&w, false);
	memset(&g, 0, sizeof g);
	q.path = "/api/v1/pods/code-410-Expired";
	slu_kube_send(c, &q, &g.call);
	wait_for(&w.f, &g.done, 1000);
	ok(g.outcome == SLU_KUBE_GONE && g.streamed == 0 && g.body_len > 0,
	   "an error answer to a stream is no data");
	end(&w, c);
}

static void test_timeouts(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	struct slu_kube_request q = POST("/api/v1/namespaces/n/pods/hold");
	struct slu_kube_stats st;
	struct got g;

	q.timeout_ns = 500 * SLU_NS_PER_MS;
	g = ask(c, q);
	ok(g.outcome == SLU_KUBE_RETRYABLE && g.uncertain && g.status == 0 &&
		   strstr(g.error, "no answer within 0.5 s"),
	   "a write without an answer is uncertain: %s", g.error);
	q.method = SLU_HTTP_GET;
	g = ask(c, q);
	ok(g.outcome == SLU_KUBE_RETRYABLE && !g.uncertain,
	   "a read without an answer is not uncertain");
	slu_kube_client_stats(c, &st);
	ok(st.timeouts == 2 && st.inflight == 0, "time-outs are counted");
	end(&w, c);
}

/* A body that begins and does not end. */
static void test_slow_body(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	struct slu_kube_request q = GET("/stream"); /* not asked for as a stream */
	struct got g;

	q.timeout_ns = 300 * SLU_NS_PER_MS;
	g = ask(c, q);
	ok(g.outcome == SLU_KUBE_RETRYABLE && g.status == 0 && g.body_len == 0,
	   "half an answer is none: %s", g.error);
	end(&w, c);
}

/* Connections are replaced by age, with requests under way. */
static void test_rotation(void)
{
	struct world w;
	struct slu_kube_client_options o = quick;
	struct slu_kube_client *c;
	struct slu_kube_stats st;
	struct got hold = { 0 };
	struct slu_kube_request q = GET("/x/hold");
	int good = 0;

	o.rotate_ns = 20 * SLU_NS_PER_MS;
	c = begin(&w, 0, &o);
	q.done = done;
	q.arg = &hold;
	slu_kube_send(c, &q, NULL);
	for (int i = 0; i < 60; i++) {
		struct got g = ask(c, GET("/ok"));
		bool no = false;

		good += g.outcome == SLU_KUBE_OK && g.tries == 1;
		wait_for(&w.f, &no, 2);
	}
	slu_kube_client_stats(c, &st);
	ok(good == 60 && st.connects >= 4 && !hold.done,
	   "%d of 60 requests over %llu connections, an old one still waits on its own", good,
	   (unsigned long long)st.connects);
	release(&w, true);
	wait_for(&w.f, &hold.done, 1000);
	ok(hold.outcome == SLU_KUBE_OK && hold.tries == 1,
	   "a request on a connection that goes away is answered there");
	end(&w, c);
}

static void test_order(void)
{
	struct world w;
	struct slu_kube_client_options o = quick;
	struct slu_kube_client *c;
	struct got g[12] = { 0 };
	int left = 12;
	char path[32];
	bool no = false;

	o.connections[SLU_KUBE_LANE_WRITE] = 1;
	c = begin(&w, 1, &o); /* the server takes one at a time */
	for (int i = 0; i < 12; i++) {
		struct slu_kube_request q = { .method = SLU_HTTP_POST,
					      .path = path,
					      .done = done,
					      .arg = &g[i],
					      .priority = i == 11 ? 7 : 0 };

		snprintf(path, sizeof path, "/x/hold%d", i);
		g[i].left = &left;
		slu_kube_send(c, &q, NULL);
		if (i == 0) /* let it learn the limit and fill the only place */
			wait_for(&w.f, &no, 50);
	}
	for (int k = 0; k < 200 && left; k++) {
		release(&w, true);
		wait_for(&w.f, &no, 5);
	}
	ok(!left && !strncmp(w.order, "hold0 hold11 hold1 hold2 hold3 ", 31),
	   "requests wait with us, the urgent one first: %s", w.order);
	end(&w, c);
}

static bool allowed(void *arg)
{
	return *(bool *)arg;
}

/* A leader is deposed while its writes wait for their turn. */
static void test_guard(void)
{
	struct world w;
	struct slu_kube_client_options o = quick;
	struct slu_kube_client *c;
	struct got g[3] = { 0 };
	bool may = true, no = false;
	int left = 3;

	o.connections[SLU_KUBE_LANE_WRITE] = 1;
	c = begin(&w, 1, &o); /* the server takes one at a time */
	for (int i = 0; i < 3; i++) {
		struct slu_kube_request q = { .method = SLU_HTTP_POST,
					      .path = "/x/hold",
					      .done = done,
					      .arg = &g[i],
					      .guard = allowed,
					      .guard_arg = &may };

		g[i].left = &left;
		slu_kube_send(c, &q, NULL);
		if (i == 0)
			wait_for(&w.f, &no, 50);
	}
	may = false;
	for (int k = 0; k < 200 && left; k++) {
		release(&w, true);
		wait_for(&w.f, &no, 5);
	}
	ok(!left && g[0].outcome == SLU_KUBE_OK && g[1].outcome == SLU_KUBE_RETRYABLE &&
		   g[2].outcome == SLU_KUBE_RETRYABLE && !g[1].uncertain && !g[1].tries,
	   "a request that waits while leadership is lost is not sent: %s", g[1].error);
	ok(!strcmp(w.order, "hold "), "the server saw one: %s", w.order);
	end(&w, c);
}

static void test_rate(void)
{
	struct world w;
	struct slu_kube_client_options o = quick;
	struct slu_kube_client *c;
	struct got g[30] = { 0 };
	struct slu_kube_stats st;
	int left = 30;
	int64_t start, took;
	bool no = false;

	o.qps = 100;
	o.burst = 10;
	c = begin(&w, 0, &o);
	start = slu_clock_ns();
	for (int i = 0; i < 30; i++) {
		struct slu_kube_request q = { .path = "/ok", .done = done, .arg = &g[i] };

		g[i].left = &left;
		slu_kube_send(c, &q, NULL);
	}
	while (left && slu_clock_ns() - start < 60 * SLU_NS_PER_S)
		wait_for(&w.f, &no, 5);
	took = (slu_clock_ns() - start) / SLU_NS_PER_MS;
	slu_kube_client_stats(c, &st);
	ok(!left && took >= 190 && st.rate_waits,
	   "30 requests at 100/s with a burst of 10 take at least 200 ms (%lld)", (long long)took);
	/* one in a thousand seconds, and one that does not wait for it */
	slu_kube_client_rate(c, 0.001, 1);
	left = 3;
	for (int i = 0; i < 3; i++) {
		struct slu_kube_request q = {
			.path = "/ok", .priority = i == 2 ? 7 : 6, .done = done, .arg = &g[i]
		};

		g[i] = (struct got){ .left = &left };
		slu_kube_send(c, &q, NULL);
	}
	for (start = slu_clock_ns(); left > 1 && slu_clock_ns() - start < 20 * SLU_NS_PER_S;)
		wait_for(&w.f, &no, 5);
	ok(left == 1 && g[2].outcome == SLU_KUBE_OK && g[2].tries,
	   "the most urgent request is sent before all that wait");
	end(&w, c);
}

static void test_unreachable(void)
{
	struct world w;
	struct slu_kube_client_options o = quick;
	struct slu_kube_client *c;
	struct got g;

	o.max_tries = 3;
	c = begin(&w, 0, &o);
	slu_server_free(w.f.server);
	w.f.server = NULL;
	g = ask(c, POST("/api/v1/namespaces"));
	ok(g.outcome == SLU_KUBE_RETRYABLE && g.tries == 3 && !g.uncertain &&
		   strstr(g.error, "Connection refused") &&
		   strstr(g.error, "clusters[\"c\"].cluster.server"),
	   "a server that does not listen is told as unreachable: %s", g.error);
	end(&w, c);
}

static void test_tls_errors(void)
{
	struct pki_pair ca = pki_make("CA", NULL, -100, 1000, NULL);
	struct pki_pair other = pki_make("other", NULL, -100, 1000, NULL);
	struct pki_pair good = pki_make("api", "IP:127.0.0.1", -100, 1000, &ca);
	struct pki_pair late = pki_make("late", "IP:127.0.0.1", -1000, -100, &ca);
	struct pki_pair wrong = pki_make("wrong", "DNS:kubernetes", -100, 1000, &ca);
	struct pki_pair user = pki_make("me", NULL, -100, 1000, &ca);
	const struct {
		const char *what;
		const struct pki_pair *server, *roots;
		bool need_client;
		const char *cluster; /* further fields */
		bool with_cert;
		enum slu_kube_outcome o;
		const char *text[3];
	} row[] = {
		{ "trusted", &good, &ca, false, "", false, SLU_KUBE_OK, { "" } },
		{ "insecure",
		  &wrong,
		  NULL,
		  false,
		  "    insecure-skip-tls-verify: true\n",
		  false,
		  SLU_KUBE_OK,
		  { "" } },
		{ "tls-server-name",
		  &wrong,
		  &ca,
		  false,
		  "    tls-server-name: kubernetes\n",
		  false,
		  SLU_KUBE_OK,
		  { "" } },
		{ "with client certificate", &good, &ca, true, "", true, SLU_KUBE_OK, { "" } },
		{ "expired",
		  &late,
		  &ca,
		  false,
		  "",
		  false,
		  SLU_KUBE_FAILED,
		  { "expired on", "ca.pem", "certificate-authority" } },
		{ "wrong host",
		  &wrong,
		  &ca,
		  false,
		  "",
		  false,
		  SLU_KUBE_FAILED,
		  { "other names (kubernetes)", "ca.pem", "" } },
		{ "unknown authority",
		  &good,
		  &other,
		  false,
		  "",
		  false,
		  SLU_KUBE_FAILED,
		  { "unknown authority", "ca.pem", "" } },
		{ "no client certificate",
		  &good,
		  &ca,
		  true,
		  "",
		  false,
		  SLU_KUBE_FAILED,
		  { "client certificate", "", "" } },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct world w = { 0 };
		struct slu_tls_server_options so = {
			.cert = { row[i].server->cert_pem, strlen(row[i].server->cert_pem) },
			.key = { row[i].server->key_pem, strlen(row[i].server->key_pem) },
		};
		struct slu_tls *t = NULL;
		struct slu_kube_config *cfg;
		struct slu_kube_client *c;
		struct slu_kube_stats st;
		struct got g;
		char cluster[512], user_text[512] = "", path[128];

		if (row[i].need_client) {
			so.client_ca = (struct slu_pem){ ca.cert_pem, strlen(ca.cert_pem) };
			so.require_client = true;
		}
		slu_tls_server_new(&so, &t, NULL);
		fake_begin(&w.f);
		fake_serve(&w.f, serve, &w, t, 0);
		snprintf(cluster, sizeof cluster, "%s%s", row[i].cluster,
			 row[i].roots ? "    certificate-authority: ca.pem\n" : "");
		snprintf(path, sizeof path, "%s/ca.pem", w.f.dir);
		fake_write(path, row[i].roots ? row[i].roots->cert_pem : "");
		snprintf(path, sizeof path, "%s/cert.pem", w.f.dir);
		fake_write(path, user.cert_pem);
		snprintf(path, sizeof path, "%s/key.pem", w.f.dir);
		fake_write(path, user.key_pem);
		if (row[i].with_cert)
			snprintf(user_text, sizeof user_text,
				 "    client-certificate: cert.pem\n    client-key: %s/key.pem\n",
				 w.f.dir);
		cfg = fake_config(&w.f, "https", cluster, user_text);
		c = client(&w.f, cfg, NULL);
		g = ask(c, GET("/ok"));
		slu_kube_client_stats(c, &st);
		ok(g.outcome == row[i].o && strstr(g.error, row[i].text[0]) &&
			   (!row[i].text[1] || strstr(g.error, row[i].text[1])) &&
			   (!row[i].text[2] || strstr(g.error, row[i].text[2])),
		   "%s: %s", row[i].what, g.error);
		ok(st.connects == 1, "%s: one connection settles it (%llu)", row[i].what,
		   (unsigned long long)st.connects);
		slu_kube_config_unref(cfg);
		slu_kube_client_free(c);
		slu_tls_unref(t);
		fake_end(&w.f);
	}
	pki_free(&ca);
	pki_free(&other);
	pki_free(&good);
	pki_free(&late);
	pki_free(&wrong);
	pki_free(&user);
}

/* ---- peers that break the protocol ---- */

#define SETTINGS "\0\0\0\4\0\0\0\0\0"

static void test_broken(void)
{
	static const char goaway[] = SETTINGS "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
	static const char garbage[] =
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
	static const char http1[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	static const char reset[] = SETTINGS "\0\0\4\3\0\0\0\0\1\0\0\0\x07"; /* REFUSED_STREAM */
	static const char died[] = SETTINGS "\0\0\4\3\0\0\0\0\1\0\0\0\x02";  /* INTERNAL_ERROR */
	/* HEADERS of stream 1, :status 200, then DATA cut in the middle of the frame */
	static const char half[] = SETTINGS "\0\0\1\1\4\0\0\0\1\x88"
					    "\0\0\x40\0\0\0\0\0\1half";
	/* HEADERS with content-length 3 (literal), then one byte and END_STREAM */
	static const char shorter[] = SETTINGS "\0\0\x05\1\4\0\0\0\1\x88\x0f\x0d\1"
					       "3"
					       "\0\0\1\0\1\0\0\0\1"
					       "x";
	static const struct {
		const char *what;
		const char *bytes;
		size_t n, early; /* sent before a request arrives */
		bool close;
		const char *text;
		int least; /* connections used, at least */
		bool post_retried;
	} row[] = {
		{ "GOAWAY before everything", goaway, sizeof goaway - 1, sizeof goaway - 1, false,
		  "closed the connection at once", 4, true },
		{ "garbage", garbage, sizeof garbage - 1, sizeof garbage - 1, false, "HTTP/2", 2,
		  false },
		{ "HTTP/1.1 on the other end", http1, sizeof http1 - 1, sizeof http1 - 1, true, "",
		  2, false },
		{ "refused stream", reset, sizeof reset - 1, 9, true, "REFUSED_STREAM", 1, true },
		{ "stream died", died, sizeof died - 1, 9, false, "", 1, false },
		{ "truncated body", half, sizeof half - 1, 9, true, "connection was lost", 2,
		  false },
		{ "wrong length", shorter, sizeof shorter - 1, 9, false, "PROTOCOL_ERROR", 1,
		  false },
		{ "closes at once", "", 0, 0, true, "", 2, false },
	};
	struct slu_kube_client_options o = quick;

	o.max_tries = 4;
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct fake f;
		struct canned b;
		struct slu_kube_config *cfg;
		struct slu_kube_client *c;
		struct slu_kube_request q = GET("/api/v1/nodes");
		struct got g;

		fake_begin(&f);
		f.port = canned_begin(&b, f.loop, row[i].bytes, row[i].n, row[i].early,
				      row[i].close);
		cfg = fake_config(&f, "http", "", "");
		c = client(&f, cfg, &o);
		q.timeout_ns = 250 * SLU_NS_PER_MS;
		g = ask(c, q);
		ok(g.n == 1 && g.outcome == SLU_KUBE_RETRYABLE && b.accepted >= row[i].least &&
			   strstr(g.error, row[i].text),
		   "%s: %d connections, %u tries: %s", row[i].what, b.accepted, g.tries, g.error);
		q.method = SLU_HTTP_POST;
		g = ask(c, q);
		ok(g.n == 1 && g.outcome == SLU_KUBE_RETRYABLE &&
			   g.tries >= (row[i].post_retried ? 2 : 1),
		   "%s: a POST is %s (%u tries%s)", row[i].what,
		   row[i].post_retried ? "safe to send again" : "not sent again", g.tries,
		   g.uncertain ? ", uncertain" : "");
		slu_kube_client_free(c);
		slu_kube_config_unref(cfg);
		canned_end(&b);
		fake_end(&f);
	}
}

/* Header blocks without end: CONTINUATION after CONTINUATION. */
static void test_endless_headers(void)
{
	struct slu_buf b = SLU_BUF_INIT(8 << 20);
	struct fake f;
	struct canned k;
	struct slu_kube_config *cfg;
	struct slu_kube_client *c;
	struct slu_kube_request q = GET("/api/v1/nodes");
	struct slu_kube_client_options o = quick;
	struct got g;

	slu_buf_add(&b, SETTINGS, 9);
	slu_buf_add(&b, "\0\0\1\1\0\0\0\0\1\x88", 10); /* HEADERS, not the end */
	for (int i = 0; i < 300; i++) {
		/* CONTINUATION of 10004 bytes: literal header a: (10000 times 'b') */
		slu_buf_add(&b, "\0\x27\x16\x09\0\0\0\0\1", 9);
		slu_buf_add(&b, "\0\1a\x7f\x91\x4d", 6);
		for (int k2 = 0; k2 < 10000; k2++)
			slu_buf_putc(&b, 'b');
	}
	o.max_tries = 1;
	fake_begin(&f);
	f.port = canned_begin(&k, f.loop, b.p, b.n, 9, false);
	cfg = fake_config(&f, "http", "", "");
	c = client(&f, cfg, &o);
	q.timeout_ns = 500 * SLU_NS_PER_MS;
	g = ask(c, q);
	ok(g.n == 1 && g.outcome != SLU_KUBE_OK, "a head without end is not waited for: %s",
	   g.error);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	canned_end(&k);
	fake_end(&f);
	slu_buf_done(&b);
}

static void test_ping(void)
{
	struct fake f;
	struct canned k;
	struct slu_kube_config *cfg;
	struct slu_kube_client *c;
	struct slu_kube_client_options o = quick;
	struct slu_kube_stats st;
	struct slu_kube_request q = GET("/api/v1/nodes");
	struct got g;

	o.ping_ns = 40 * SLU_NS_PER_MS;
	o.max_tries = 2;
	fake_begin(&f);
	f.port = canned_begin(&k, f.loop, SETTINGS, 9, 9, false);
	cfg = fake_config(&f, "http", "", "");
	c = client(&f, cfg, &o);
	g = ask(c, q);
	slu_kube_client_stats(c, &st);
	ok(g.outcome == SLU_KUBE_RETRYABLE && g.took_ns < 60 * SLU_NS_PER_S && st.ping_losses == 2,
	   "a server that went silent is noticed by PING (%lld ms): %s",
	   (long long)g.took_ns / SLU_NS_PER_MS, g.error);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	canned_end(&k);
	fake_end(&f);
}

/* ---- credentials ---- */

static void test_tokens(void)
{
	struct world w = { 0 };
	struct slu_kube_config *cfg;
	struct slu_kube_client *c;
	struct got g;
	char path[128];

	fake_begin(&w.f);
	fake_serve(&w.f, serve, &w, NULL, 0);
	snprintf(path, sizeof path, "%s/token", w.f.dir);
	fake_write(path, "first\n");
	cfg = fake_config(&w.f, "http", "", "    tokenFile: token\n");
	c = client(&w.f, cfg, NULL);
	w.token = "Bearer first";
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_OK, "the token is read from its file %s", g.error);
	/* Rotated: the server knows only the new one at once; we notice by its 401. */
	unlink(path);
	fake_write(path, "second-token\n");
	w.token = "Bearer second-token";
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_OK && g.tries <= 2, "a rotated token is re-read (%u tries)",
	   g.tries);
	w.token = "Bearer third";
	g = ask(c, GET("/api/v1/auth"));
	ok(g.outcome == SLU_KUBE_REFUSED && g.status == 401 && g.tries == 1 &&
		   strstr(g.error, "/config: users[\"u\"].user.tokenFile]"),
	   "a wrong one is not tried for ever: %s", g.error);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	fake_end(&w.f);
}

/* A client certificate that is renewed on disk is used by the next connection. */
static void test_renewed_certificate(void)
{
	struct pki_pair ca = pki_make("CA", NULL, -100, 1000, NULL);
	struct pki_pair api = pki_make("api", "IP:127.0.0.1", -100, 1000, &ca);
	struct pki_pair old = pki_make("old me", NULL, -100, 1000, &ca);
	struct pki_pair new = pki_make("new me", NULL, -100, 1000, &ca);
	struct slu_tls_server_options so = {
		.cert = { api.cert_pem, strlen(api.cert_pem) },
		.key = { api.key_pem, strlen(api.key_pem) },
		.client_ca = { ca.cert_pem, strlen(ca.cert_pem) },
	};
	struct world w = { 0 };
	struct slu_tls *t = NULL;
	struct slu_kube_config *cfg;
	struct slu_kube_client *c;
	struct got g;
	char cert[128], key[128], root[128];
	bool no = false;

	slu_tls_server_new(&so, &t, NULL);
	fake_begin(&w.f);
	fake_serve(&w.f, serve, &w, t, 0);
	snprintf(root, sizeof root, "%s/ca.pem", w.f.dir);
	snprintf(cert, sizeof cert, "%s/cert.pem", w.f.dir);
	snprintf(key, sizeof key, "%s/key.pem", w.f.dir);
	fake_write(root, ca.cert_pem);
	fake_write(cert, old.cert_pem);
	fake_write(key, old.key_pem);
	cfg = fake_config(&w.f, "https", "    certificate-authority: ca.pem\n",
			  "    client-certificate: cert.pem\n    client-key: key.pem\n");
	c = client(&w.f, cfg, NULL);
	g = ask(c, GET("/cn"));
	ok(!strcmp(g.body, "old me"), "signed in as \"%s\" %s", g.body, g.error);
	fake_write(cert, new.cert_pem); /* for a moment the two do not belong together */
	slu_loop_run_until(w.f.loop, &no, 1100 * SLU_NS_PER_MS);
	slu_kube_client_cut(c, SLU_KUBE_LANE_READ);
	g = ask(c, GET("/cn"));
	ok(!strcmp(g.body, "old me"), "half a renewal changes nothing (%s) %s", g.body, g.error);
	fake_write(key, new.key_pem);
	slu_loop_run_until(w.f.loop, &no, 1100 * SLU_NS_PER_MS);
	slu_kube_client_cut(c, SLU_KUBE_LANE_READ);
	g = ask(c, GET("/cn"));
	ok(!strcmp(g.body, "new me"), "a whole renewal makes the client \"%s\" %s", g.body,
	   g.error);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	slu_tls_unref(t);
	fake_end(&w.f);
	pki_free(&ca);
	pki_free(&api);
	pki_free(&old);
	pki_free(&new);
}

static void plugin(struct world *w, const char *body)
{
	char path[128];

	snprintf(path, sizeof path, "%s/plugin", w->f.dir);
	fake_write(path, body);
	chmod(path, 0755);
}

#define EXEC_USER                                                                         \
	"    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"                  \
	"      command: ./plugin\n      args: [a, 'b c']\n      interactiveMode: Never\n" \
	"      env: [{name: MARK, value: from-config}]\n      provideClusterInfo: true\n"

static void test_exec(void)
{
	struct world w = { 0 };
	struct slu_kube_config *cfg;
	struct slu_kube_client *c;
	struct got g;

	fake_begin(&w.f);
	fake_serve(&w.f, serve, &w, NULL, 0);
	plugin(&w,
	       "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho x >> count\n"
	       "case \"$KUBERNETES_EXEC_INFO\" in *'\"server\":\"http://127.0.0.1'*) ;; *) exit 9;; esac\n"
	       "echo \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\","
	       "\\\"status\\\":{\\\"token\\\":\\\"$1-$2-$MARK-$(wc -l < count | tr -d ' ')\\\"}}\"\n");
	cfg = fake_config(&w.f, "http", "", EXEC_USER);
	c = client(&w.f, cfg, NULL);
	w.token = "Bearer a-b c-from-config-1";
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_OK, "a plug-in gives the token %s", g.error);
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_OK && g.tries == 1,
	   "a plug-in is not asked again while its token is valid");
	w.token = "Bearer a-b c-from-config-2";
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_OK && g.tries == 2, "until the server says 401 %s", g.error);
	slu_kube_client_free(c);
	plugin(&w, "#!/bin/sh\necho 'please log in' >&2\nexit 3\n");
	c = client(&w.f, cfg, NULL);
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_FAILED && strstr(g.error, "exited with status 3: please log in") &&
		   strstr(g.error, "users[\"u\"].user.exec.command"),
	   "the failure of a plug-in is told: %s", g.error);
	slu_kube_client_free(c);
	plugin(&w,
	       "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}'\n");
	c = client(&w.f, cfg, NULL);
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_FAILED && strstr(g.error, "v1beta1"), "a wrong version too: %s",
	   g.error);
	slu_kube_client_free(c);
	/* Freed while it runs. */
	plugin(&w, "#!/bin/sh\nexec sleep 30\n");
	c = client(&w.f, cfg, NULL);
	{
		struct got h = { 0 };
		struct slu_kube_request q = { .path = "/auth", .done = done, .arg = &h };

		slu_kube_send(c, &q, NULL);
		wait_for(&w.f, &h.done, 50);
		slu_kube_client_free(c);
		ok(h.n == 1 && h.outcome == SLU_KUBE_CANCELLED,
		   "a running plug-in does not keep us");
	}
	slu_kube_config_unref(cfg);
	cfg = fake_config(
		&w.f, "http", "",
		"    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: no-such-plugin-here, installHint: get it there}\n");
	c = client(&w.f, cfg, NULL);
	g = ask(c, GET("/auth"));
	ok(g.outcome == SLU_KUBE_FAILED && strstr(g.error, "get it there"), "a missing one: %s",
	   g.error);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	fake_end(&w.f);
}

/* ---- many, and none ---- */

static void test_many(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	enum { N = 5000 };
	static struct got g[N];
	struct slu_kube_stats st;
	int left = N, good = 0;
	bool no = false;

	for (int i = 0; i < N; i++) {
		struct slu_kube_request q = POST("/x/echo");

		q.done = done;
		q.arg = &g[i];
		g[i].left = &left;
		slu_kube_send(c, &q, NULL);
	}
	for (int k = 0; k < 10000 && left; k++)
		wait_for(&w.f, &no, 5);
	for (int i = 0; i < N; i++)
		good += g[i].n == 1 && g[i].outcome == SLU_KUBE_OK;
	slu_kube_client_stats(c, &st);
	ok(good == N && st.connects == 2, "%d of %d writes on %llu connections", good, N,
	   (unsigned long long)st.connects);
	for (int i = 0; i < 100; i++) {
		struct slu_kube_request q = POST("/x/hold");

		memset(&g[i], 0, sizeof g[i]);
		q.done = done;
		q.arg = &g[i];
		slu_kube_send(c, &q, NULL);
	}
	wait_for(&w.f, &no, 20);
	slu_kube_client_free(c);
	good = 0;
	for (int i = 0; i < 100; i++)
		good += g[i].n == 1 && g[i].outcome == SLU_KUBE_CANCELLED;
	ok(good == 100, "the end of the client ends every request (%d)", good);
	wait_for(&w.f, &no, 20);
	end(&w, NULL);
}

static void set(void *arg)
{
	*(bool *)arg = true;
}

/* GOAWAY while requests run and more wait: the server is replaced behind the same port. */
static void test_goaway(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 10, NULL);
	struct slu_server *old = w.f.server;
	struct slu_server_options o = { .handler = serve, .arg = &w, .max_streams = 10 };
	struct slu_addr a;
	struct got g[40] = { 0 };
	struct slu_kube_stats st;
	int left = 40, good = 0;
	bool no = false, drained = false;
	char where[64];

	for (int i = 0; i < 40; i++) {
		struct slu_kube_request q = POST("/x/hold");

		q.done = done;
		q.arg = &g[i];
		g[i].left = &left;
		slu_kube_send(c, &q, NULL);
	}
	wait_for(&w.f, &no, 30);
	ok(w.n_held == 20, "%d of 40 run on two connections of ten", w.n_held);
	slu_server_drain(old, 5 * SLU_NS_PER_S, set, &drained);
	snprintf(where, sizeof where, "127.0.0.1:%d", w.f.port);
	slu_addr_parse(where, &a, NULL);
	w.f.server = slu_server_new(w.f.loop, &o);
	slu_server_listen(w.f.server, &a, NULL, 0, NULL);
	wait_for(&w.f, &no, 50);
	ok(w.n_held == 40, "after GOAWAY the rest runs on new ones (%d)", w.n_held);
	release(&w, true);
	for (int k = 0; k < 200 && left; k++)
		wait_for(&w.f, &no, 5);
	for (int i = 0; i < 40; i++)
		good += g[i].n == 1 && g[i].outcome == SLU_KUBE_OK;
	slu_kube_client_stats(c, &st);
	ok(good == 40 && st.goaways == 2, "all requests are answered, none twice (%d)", good);
	slu_server_free(old);
	end(&w, c);
}

/* ---- every allocation fails in turn ---- */

static int scenario(struct fake *f, int64_t timeout_ms)
{
	struct slu_kube_config_options o = { .path = f->kubeconfig };
	struct slu_kube_client_options co = quick;
	struct slu_kube_config *cfg = NULL;
	struct slu_kube_client *c = NULL;
	struct slu_kube_answer a = { 0 };
	struct slu_kube_request q = POST("/x/echo");
	int rc = slu_kube_config_load(&o, &cfg, NULL);

	if (rc < 0)
		return rc;
	co.max_tries = 2;
	rc = slu_kube_client_new(f->loop, cfg, &co, &c, NULL);
	slu_kube_config_unref(cfg);
	if (rc < 0)
		return rc;
	q.timeout_ns = timeout_ms * SLU_NS_PER_MS;
	rc = slu_kube_do(c, &q, &a, NULL);
	slu_kube_answer_done(&a);
	slu_kube_client_free(c);
	return rc;
}

static void test_faults(void)
{
	struct world w;
	struct slu_kube_client *c = begin(&w, 0, NULL);
	bool no = false;
	long k;

	slu_kube_client_free(c);
	for (k = 0; k < 2000; k++) {
		int rc;

		slu_fault_arm(k);
		rc = scenario(&w.f, 30);
		if (!slu_fault_disarm()) {
			/* All of it ran, or a busy machine let its time run out before. */
			slu_fault_arm(k);
			rc = scenario(&w.f, 20000);
			if (!slu_fault_disarm()) {
				ok(rc == 0, "clean after %ld faults", k);
				break;
			}
		}
		if (rc == 0 && k < 20)
			ok(false, "allocation %ld failed unnoticed", k);
		wait_for(&w.f, &no, 0);
	}
	ok(k > 50 && k < 2000, "%ld allocations failed in turn", k);
	end(&w, NULL);
}

int main(void)
{
	test_plain();
	test_outcomes();
	test_retries();
	test_bodies();
	test_streams();
	test_timeouts();
	test_slow_body();
	test_rotation();
	test_order();
	test_guard();
	test_rate();
	test_unreachable();
	test_tls_errors();
	test_broken();
	test_endless_headers();
	test_ping();
	test_tokens();
	test_renewed_certificate();
	test_exec();
	test_many();
	test_goaway();
	test_faults();
	return tap_done();
}
