/* Loop, addresses, headers, and a server that is talked to over real sockets: HTTP/1.1 by hand,
 * HTTP/2 by our own link, with and without TLS, on TCP and on a unix socket. */
#include "tap.h"
#include "pki.h"

#include "base/rng.h"
#include "net/conn.h"
#include "net/dial.h"
#include "net/link.h"
#include "net/server.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static struct pki_pair ca, leaf, client_pair;

/* ---- loop ---- */

static void note(void *arg)
{
	(*(int *)arg)++;
}

static struct {
	int64_t due[200];
	int n;
	int64_t want;
} order;

struct tagged {
	struct slu_timer t;
	int64_t delay;
};

static void fired(void *arg)
{
	struct tagged *t = arg;

	order.due[order.n++] = t->delay;
}

static void set(void *arg)
{
	*(bool *)arg = true;
}

static void *poster(void *arg)
{
	static int count;

	for (int i = 0; i < 1000; i++)
		slu_loop_post(arg, note, &count);
	return &count;
}

static void test_loop(void)
{
	struct slu_loop *l = slu_loop_new();
	static struct tagged t[200];
	struct slu_timer stop = { 0 };
	struct slu_task a = { 0 }, b = { 0 };
	struct slu_rng rng = { .state = 7 };
	bool done = false, sorted = true;
	int ran = 0;
	pthread_t th;
	void *count;

	for (int i = 0; i < 200; i++) {
		t[i].delay = (int64_t)slu_rng_below(&rng, 20) * SLU_NS_PER_MS;
		slu_timer_start(&t[i].t, l, t[i].delay, fired, &t[i]);
	}
	for (int i = 0; i < 200; i += 3) /* every third is taken out again */
		slu_timer_stop(&t[i].t);
	for (int i = 1; i < 200; i += 3) { /* and every third moved */
		t[i].delay += 3 * SLU_NS_PER_MS;
		slu_timer_start(&t[i].t, l, t[i].delay, fired, &t[i]);
	}
	slu_timer_start(&stop, l, 40 * SLU_NS_PER_MS, set, &done);
	slu_loop_run_until(l, &done, 5 * SLU_NS_PER_S);
	for (int i = 1; i < order.n; i++)
		sorted &= order.due[i - 1] <= order.due[i];
	ok(order.n == 200 - 67, "%d of 133 timers fired", order.n);
	ok(sorted, "timers fire in order of their times");

	slu_task_defer(&a, l, note, &ran);
	slu_task_defer(&a, l, note, &ran);
	slu_task_defer(&b, l, note, &ran);
	slu_task_cancel(&a);
	done = false;
	slu_timer_start(&stop, l, 0, set, &done);
	slu_loop_run_until(l, &done, SLU_NS_PER_S);
	ok(ran == 1, "a deferred task runs once, a cancelled one never (%d)", ran);

	pthread_create(&th, NULL, poster, l);
	done = false;
	slu_timer_start(&stop, l, 100 * SLU_NS_PER_MS, set, &done);
	slu_loop_run_until(l, &done, SLU_NS_PER_S);
	pthread_join(th, &count);
	done = false;
	slu_timer_start(&stop, l, 0, set, &done);
	slu_loop_run_until(l, &done, SLU_NS_PER_S);
	ok(*(int *)count == 1000, "1000 calls posted by another thread arrived (%d)",
	   *(int *)count);
	done = false;
	ok(!slu_loop_run_until(l, &done, 5 * SLU_NS_PER_MS), "waiting has an end");
	slu_loop_free(l);
}

/* ---- words ---- */

static void test_words(void)
{
	static const struct {
		const char *in;
		int rc;
		const char *text, *prefix;
		bool tls;
	} addr[] = {
		{ "https://10.0.0.1:6443", 0, "10.0.0.1:6443", "", true },
		{ "https://example.org/k8s/", 0, "example.org:443", "/k8s", true },
		{ "http://[::1]:80", 0, "[::1]:80", "", false },
		{ "[fe80::1]:9", 0, "[fe80::1]:9", "", false },
		{ ":8443", 0, ":8443", "", false },
		{ "unix:/run/x.sock", 0, "unix:/run/x.sock", "", false },
		{ "ftp://x", -EINVAL, "", "", false },
		{ "https://", -EINVAL, "", "", false },
		{ "https://h:70000", -EINVAL, "", "", false },
		{ "https://h:1x", -EINVAL, "", "", false },
		{ "https://user:pw@h", -EINVAL, "", "", false },
		{ "host", -EINVAL, "", "", false },
		{ "https://[::1", -EINVAL, "", "", false },
		{ "https://h?x=1", -EINVAL, "", "", false },
		{ "https://h x", -EINVAL, "", "", false },
		{ "unix:", -EINVAL, "", "", false },
	};
	struct slu_headers h = { .max_bytes = 40 };
	struct slu_buf b = SLU_BUF_INIT(1000);

	for (size_t i = 0; i < SLU_LEN(addr); i++) {
		struct slu_addr a = { 0 };
		char text[300] = "";
		int rc = slu_addr_parse(addr[i].in, &a, NULL);

		if (!rc)
			slu_addr_text(&a, text, sizeof text);
		ok(rc == addr[i].rc && !strcmp(text, addr[i].text) &&
			   !strcmp(a.prefix, addr[i].prefix) && a.tls == addr[i].tls,
		   "address \"%s\" is %s", addr[i].in, rc ? "refused" : text);
	}
	ok(slu_headers_put(&h, "X-One", "1") == 0 && !strcmp(slu_headers_get(&h, "x-one"), "1"),
	   "header names become lower case");
	ok(slu_headers_put(&h, "a", "b\r\nevil: 1") == -EINVAL,
	   "a line break in a value is refused");
	ok(slu_headers_put(&h, "a", "0123456789012345678901234567890123456789") == -EMSGSIZE &&
		   slu_headers_count(&h) == 1,
	   "a header list above its ceiling is refused");
	slu_headers_done(&h);
	slu_http_query_add(&b, "labelSelector", "a=b,c in (d)");
	slu_http_query_add(&b, "limit", "5");
	ok(!strcmp(slu_buf_str(&b), "labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5"),
	   "names and values of a query are escaped: %s", slu_buf_str(&b));
	slu_buf_reset(&b);
	ok(slu_http_query_get("x=1&na%2Fme=2&y=a+b%20c", "y", &b) == 1 &&
		   !strcmp(slu_buf_str(&b), "a b c"),
	   "a value is found and decoded");
	slu_buf_reset(&b);
	ok(slu_http_query_get("x=%zz", "x", &b) == -EINVAL, "a broken escape is refused");
	slu_buf_reset(&b);
	ok(slu_http_query_get("x=%00", "x", &b) == -EINVAL, "an encoded NUL is refused");
	slu_buf_reset(&b);
	ok(slu_http_query_get("x=a%ff", "x", &b) == -EINVAL,
	   "bytes that are not UTF-8 are refused");
	slu_buf_done(&b);
}

/* ---- a server ---- */

struct site {
	struct slu_loop *loop;
	struct slu_server *server;
	struct slu_exchange *held;
	int gone, drains;
	struct slu_timer later;
};

static void on_gone(void *arg)
{
	((struct site *)arg)->gone++;
}

static void answer_later(void *arg)
{
	struct site *s = arg;
	struct slu_exchange *x = s->held;

	s->held = NULL;
	slu_http_reply_text(x, 200, "late");
}

static void more(void *arg)
{
	struct slu_exchange *x = arg;
	struct site *s = slu_exchange_user(x);
	char text[64];

	if (++s->drains == 4) {
		slu_http_reply_trailer(x, "x-sum", "10");
		slu_http_reply_end(x);
		return;
	}
	snprintf(text, sizeof text, "piece %d\n", s->drains);
	slu_http_reply_write(x, text, strlen(text));
}

static void handler(struct slu_exchange *x, void *arg)
{
	struct site *s = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	char text[512];

	if (!strcmp(q->path, "/echo")) {
		slu_http_reply_header(x, "x-version", q->version == 2 ? "2" : "1");
		slu_http_reply(x, 200, "application/octet-stream", q->body, q->body_len);
	} else if (!strcmp(q->path, "/who")) {
		snprintf(text, sizeof text, "%s %s q=%s host=%s cn=%s uid=%d tls=%d",
			 q->method_text, q->path, q->query, q->authority,
			 q->client_cn ? q->client_cn : "-", q->uid == getuid(), q->tls);
		slu_http_reply(x, 200, "text/plain", text, strlen(text));
	} else if (!strcmp(q->path, "/late")) {
		s->held = x;
		slu_timer_start(&s->later, s->loop, 20 * SLU_NS_PER_MS, answer_later, s);
	} else if (!strcmp(q->path, "/hold")) {
		s->held = x;
		slu_exchange_on_gone(x, on_gone, s);
	} else if (!strcmp(q->path, "/stream")) {
		s->drains = 0;
		slu_exchange_set_user(x, s);
		slu_http_reply_on_drain(x, more, x);
		slu_http_reply_begin(x, 200, "text/plain");
		slu_http_reply_write(x, "piece 0\n", 8);
	} else if (!strcmp(q->path, "/big")) {
		char *big = calloc(1, 3 << 20);

		slu_http_reply(x, 200, "application/octet-stream", big, 3 << 20);
		free(big);
	} else if (!strcmp(q->path, "/words")) {
		slu_http_reply_text(x, 200, "%05000d end", 7);
	} else {
		slu_http_reply_text(x, 404, "nothing at %s", q->path);
	}
}

static int serve(struct site *s, const char *where, struct slu_tls *tls,
		 const struct slu_server_options *extra)
{
	struct slu_server_options o = extra ? *extra : (struct slu_server_options){ 0 };
	struct slu_addr a;
	struct slu_error err = { 0 };
	int rc;

	memset(s, 0, sizeof *s);
	s->loop = slu_loop_new();
	o.handler = handler;
	o.arg = s;
	s->server = slu_server_new(s->loop, &o);
	slu_addr_parse(where, &a, NULL);
	rc = slu_server_listen(s->server, &a, tls, 0, &err);
	if (rc < 0) {
		printf("# %s\n", err.text);
		return rc;
	}
	return slu_server_port(s->server, rc);
}

static void unserve(struct site *s)
{
	slu_server_free(s->server);
	if (s->held)
		slu_http_reply_text(s->held, 200, "too late");
	slu_loop_free(s->loop);
}

/* ---- HTTP/1.1 by hand, over slu_conn ---- */

struct raw {
	struct slu_buf in, out;
	bool closed;
	int code;
	bool finish;
	struct slu_conn *conn;
	const char *until; /* stop when this has arrived */
	bool done;
};

static void raw_open(void *arg, const char *alpn)
{
	(void)arg, (void)alpn;
}
static int raw_data(void *arg, const uint8_t *p, size_t n, struct slu_error *err)
{
	struct raw *r = arg;

	(void)err;
	slu_buf_add(&r->in, p, n);
	if (r->until && memmem(r->in.p, r->in.n, r->until, strlen(r->until)))
		r->done = true;
	return 0;
}
static int raw_fill(void *arg, struct slu_buf *out, struct slu_error *err)
{
	struct raw *r = arg;

	(void)err;
	slu_buf_add(out, slu_buf_str(&r->out), r->out.n);
	slu_buf_reset(&r->out);
	return 0;
}
static void raw_closed(void *arg, int code, const struct slu_error *err)
{
	struct raw *r = arg;

	(void)err;
	r->closed = r->done = true;
	r->code = code;
	r->conn = NULL;
}
static const struct slu_conn_ops raw_ops = { raw_open, raw_data, raw_fill, raw_closed };

static void raw_dialled(void *arg, int fd, const struct slu_error *err)
{
	*(int *)arg = fd;
	(void)err;
}

/* Send `text`, wait for `until` or the end of the connection. */
static void raw_talk(struct site *s, struct raw *r, const char *where, const void *text, size_t n,
		     const char *until)
{
	if (!r->conn && !r->closed) {
		struct slu_addr a;
		struct slu_dial *d;
		int fd = -12345;
		bool no = false;

		r->in = SLU_BUF_INIT(64 << 20);
		r->out = SLU_BUF_INIT(64 << 20);
		slu_addr_parse(where, &a, NULL);
		slu_dial_start(s->loop, &a, 30 * SLU_NS_PER_S, 0, raw_dialled, &fd, &d);
		for (int i = 0; i < 30000 && fd == -12345; i++)
			slu_loop_run_until(s->loop, &no, SLU_NS_PER_MS);
		if (fd < 0) {
			r->closed = true;
			return;
		}
		slu_conn_open(s->loop, fd, NULL, NULL, &raw_ops, r, &r->conn, NULL);
	}
	slu_buf_reset(&r->in);
	r->until = until;
	r->done = r->closed;
	slu_buf_add(&r->out, text, n);
	if (r->conn)
		slu_conn_kick(r->conn);
	slu_loop_run_until(s->loop, &r->done,
			   until && !strcmp(until, "never") ? SLU_NS_PER_S / 5 : 60 * SLU_NS_PER_S);
}

static void raw_end(struct raw *r)
{
	slu_conn_close(r->conn);
	slu_buf_done(&r->in);
	slu_buf_done(&r->out);
	memset(r, 0, sizeof *r);
}

static bool has(const struct raw *r, const char *s)
{
	return strstr(slu_buf_str(&r->in), s);
}

#define TALK(r, text, until) raw_talk(&s, r, where, text, strlen(text), until)

static void test_h1(void)
{
	struct site s;
	struct raw r = { 0 };
	char where[64];
	struct slu_buf big = SLU_BUF_INIT(1 << 20);
	struct slu_server_options o = { .max_body = 1000,
					.max_header_bytes = 4096,
					.request_ns = 800 * SLU_NS_PER_MS,
					.idle_ns = 1000 * SLU_NS_PER_MS };
	int port = serve(&s, "127.0.0.1:0", NULL, &o);

	snprintf(where, sizeof where, "127.0.0.1:%d", port);
	TALK(&r, "GET /who?a=1 HTTP/1.1\r\nHost: h\r\n\r\n", "tls=0");
	ok(has(&r, "HTTP/1.1 200 OK\r\n") && has(&r, "GET /who q=a=1 host=h"), "GET is answered");
	ok(has(&r, "content-length: ") && has(&r, "date: "), "an answer has a length and a date");
	TALK(&r, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "hello");
	ok(has(&r, "\r\n\r\nhello"), "a body comes back on the same connection");
	TALK(&r,
	     "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	     "abcde");
	ok(has(&r, "content-length: 5"), "a chunked body too");
	TALK(&r,
	     "GET /who?n=1 HTTP/1.1\r\nHost: h\r\n\r\nGET /late HTTP/1.1\r\nHost: h\r\n\r\n"
	     "GET /who?n=3 HTTP/1.1\r\nHost: h\r\n\r\n",
	     "n=3");
	{
		const char *one = strstr(slu_buf_str(&r.in), "n=1"),
			   *two = strstr(slu_buf_str(&r.in), "late"),
			   *three = strstr(slu_buf_str(&r.in), "n=3");

		ok(one && two && three && one < two && two < three,
		   "pipelined requests are answered in order, slow ones included");
	}
	TALK(&r, "HEAD /echo HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n\r\n");
	ok(has(&r, "content-length: 0"), "HEAD is answered without a body");
	TALK(&r, "GET /stream HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n", "x-sum: 10\r\n\r\n");
	ok(has(&r, "transfer-encoding: chunked") && has(&r, "8\r\npiece 3\n\r\n0\r\n"),
	   "a streamed answer arrives in chunks, with a trailer");
	TALK(&r,
	     "GET /who HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n",
	     "tls=0");
	ok(has(&r, "200 OK"), "an upgrade we do not take is answered in HTTP/1.1");
	TALK(&r, "GET /who?after HTTP/1.1\r\nHost: h\r\n\r\n", "q=after");
	ok(has(&r, "q=after"), "the connection goes on after an upgrade that is not taken");
	TALK(&r, "GET /who HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", NULL);
	ok(r.closed && !r.code && has(&r, "connection: close"), "close is honoured");
	raw_end(&r);
	TALK(&r, "GET /stream HTTP/1.0\r\n\r\n", NULL);
	ok(r.closed && has(&r, "piece 3\n") && !has(&r, "chunked"),
	   "an HTTP/1.0 client gets a stream that ends with the connection");
	raw_end(&r);
	TALK(&r,
	     "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
	     "100 Continue");
	ok(has(&r, "HTTP/1.1 100 Continue\r\n\r\n"), "100-continue is sent");
	TALK(&r, "ok", "ok");
	ok(has(&r, "200 OK"), "the request behind 100-continue is answered");
	raw_end(&r);

	static const struct {
		const char *text;
		const char *want;
	} bad[] = {
		{ "NONSENSE\r\n\r\n", "HTTP/1.1 400" },
		{ "GET nopath HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400" },
		{ "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n", "HTTP/1.1 413" },
		{ "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		  "HTTP/1.1 400" },
		{ "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		  "HTTP/1.1 400" },
		{ "GET / HTTP/3.0\r\n\r\n", "HTTP/1.1 " },
		{ "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 501" },
		{ "GET /half HTTP/1.1\r\nHo", "HTTP/1.1 408" },
	};
	for (size_t i = 0; i < SLU_LEN(bad); i++) {
		TALK(&r, bad[i].text, NULL);
		ok(r.closed && has(&r, bad[i].want),
		   "the bad request \"%.40s\" is answered and closed: %.12s", bad[i].text,
		   slu_buf_str(&r.in));
		raw_end(&r);
	}
	slu_buf_puts(&big, "GET / HTTP/1.1\r\n");
	for (int i = 0; i < 300; i++)
		slu_buf_printf(&big, "x-%d: yyyyyyyyyyyyyyyyyyyyyyy\r\n", i);
	slu_buf_puts(&big, "\r\n");
	TALK(&r, slu_buf_str(&big), NULL);
	ok(r.closed && has(&r, "HTTP/1.1 431"), "endless headers get 431");
	raw_end(&r);
	slu_buf_reset(&big);
	slu_buf_puts(&big, "GET /");
	for (int i = 0; i < 20000; i++)
		slu_buf_putc(&big, 'a');
	slu_buf_puts(&big, " HTTP/1.1\r\n\r\n");
	TALK(&r, slu_buf_str(&big), NULL);
	ok(r.closed && has(&r, "HTTP/1.1 414"), "an endless target gets 414");
	raw_end(&r);
	slu_buf_done(&big);
	TALK(&r, "GET /who HTTP/1.1\r\nHost: h\r\n\r\n", "tls=0");
	TALK(&r, "", NULL);
	ok(r.closed, "an idle connection is closed");
	raw_end(&r);
	TALK(&r, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n", "never");
	ok(s.held && !r.closed, "a held answer is waited for");
	raw_end(&r);
	{
		struct raw q = { 0 };

		TALK(&q, "GET /who HTTP/1.1\r\nHost: h\r\n\r\n", "tls=0");
		ok(s.gone == 1 && slu_exchange_gone(s.held),
		   "the handler hears that the peer left");
		raw_end(&q);
	}
	unserve(&s);
}

/* ---- HTTP/2 through a link ---- */

struct fetch {
	struct site *s;
	struct slu_link *link;
	int open, ok, status[8];
	struct slu_buf body;
	char trailer[32];
	bool done, room, down, goaway;
	int code;
	char why[600];
};

static void f_room(void *arg)
{
	((struct fetch *)arg)->room = true;
}
static void f_goaway(void *arg, uint32_t code, const char *text)
{
	(void)code, (void)text;
	((struct fetch *)arg)->goaway = true;
}
static void f_down(void *arg, int code, const struct slu_error *err)
{
	struct fetch *f = arg;

	f->down = f->room = f->done = true;
	f->code = code;
	f->link = NULL;
	snprintf(f->why, sizeof f->why, "%s", err->text);
}
static void f_head(void *arg, struct slu_h2_stream *s)
{
	struct fetch *f = arg;

	f->status[slu_h2_status(s) / 100]++;
}
static void f_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	struct fetch *f = arg;

	slu_buf_add(&f->body, p, n);
	slu_link_consume(f->link, s, n);
}
static void f_end(void *arg, struct slu_h2_stream *s)
{
	struct fetch *f = arg;
	const char *t = slu_headers_get(slu_h2_headers(s), "x-sum");

	f->ok++;
	if (t)
		snprintf(f->trailer, sizeof f->trailer, "%s", t);
}
static void f_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	struct fetch *f = arg;

	(void)s, (void)code, (void)refused;
	if (!--f->open)
		f->done = true;
}
static const struct slu_link_ops f_ops = {
	f_room, f_goaway, f_down, f_head, f_data, f_end, f_closed
};

static void f_connect(struct fetch *f, struct site *s, const char *where, struct slu_tls *tls)
{
	struct slu_link_options o = { .tls = tls, .connect_ns = 30 * SLU_NS_PER_S };

	memset(f, 0, sizeof *f);
	f->s = s;
	f->body = SLU_BUF_INIT(64 << 20);
	slu_addr_parse(where, &o.addr, NULL);
	slu_link_open(s->loop, &o, &f_ops, f, &f->link);
	slu_loop_run_until(s->loop, &f->room, 60 * SLU_NS_PER_S);
}

static void f_ask(struct fetch *f, const char *method, const char *path, const void *body, size_t n)
{
	struct slu_h2_header h[] = {
		{ ":method", method, strlen(method), false },
		{ ":scheme", "https", 5, false },
		{ ":authority", "h", 1, false },
		{ ":path", path, strlen(path), false },
	};
	struct slu_h2_stream *st;

	if (f->link && slu_link_request(f->link, h, 4, body, n, NULL, &st) == 0)
		f->open++;
}

static void f_wait(struct fetch *f)
{
	f->done = !f->open;
	slu_loop_run_until(f->s->loop, &f->done, 60 * SLU_NS_PER_S);
}

static void f_end_all(struct fetch *f)
{
	slu_link_close(f->link);
	slu_buf_done(&f->body);
}

static struct slu_tls *client_tls(const char *roots, const char *name, bool with_cert)
{
	struct slu_tls_client_options o = { .ca = { roots, strlen(roots) },
					    .server_name = name,
					    .alpn = "h2" };
	struct slu_tls *t = NULL;

	if (with_cert) {
		o.cert = (struct slu_pem){ client_pair.cert_pem, strlen(client_pair.cert_pem) };
		o.key = (struct slu_pem){ client_pair.key_pem, strlen(client_pair.key_pem) };
	}
	slu_tls_client_new(&o, &t, NULL);
	return t;
}

static struct slu_tls *server_tls(const struct pki_pair *p, bool need_client)
{
	struct slu_tls_server_options o = { .cert = { p->cert_pem, strlen(p->cert_pem) },
					    .key = { p->key_pem, strlen(p->key_pem) } };
	struct slu_tls *t = NULL;

	if (need_client) {
		o.client_ca = (struct slu_pem){ ca.cert_pem, strlen(ca.cert_pem) };
		o.require_client = true;
	}
	slu_tls_server_new(&o, &t, NULL);
	return t;
}

static void test_h2(const char *listen_at, bool tls)
{
	struct site s;
	struct slu_tls *st = tls ? server_tls(&leaf, false) : NULL,
		       *ct = tls ? client_tls(ca.cert_pem, NULL, false) : NULL;
	struct slu_server_options o = { .max_body = 1 << 20, .max_streams = 50 };
	int port = serve(&s, listen_at, st, &o);
	struct fetch f;
	char where[128];
	char *big = calloc(1, 2 << 20);

	snprintf(where, sizeof where, "127.0.0.1:%d", port);
	if (!strncmp(listen_at, "unix:", 5))
		snprintf(where, sizeof where, "%s", listen_at);
	f_connect(&f, &s, where, ct);
	ok(f.room && !f.down, "%s: a link comes up %s", where, f.why);
	f_ask(&f, "GET", "/who?x=1", NULL, 0);
	f_wait(&f);
	ok(f.ok == 1 && strstr(slu_buf_str(&f.body), tls ? "tls=1" : "tls=0"),
	   "a GET over the link is answered: %s", slu_buf_str(&f.body));
	slu_buf_reset(&f.body);
	ok(slu_link_room(f.link) == 50, "the server's limit of streams is known (%u)",
	   slu_link_room(f.link));
	for (int i = 0; i < 50; i++)
		f_ask(&f, "POST", "/echo", big, 20000);
	ok(slu_link_room(f.link) == 0, "50 in flight leave no room");
	f_wait(&f);
	ok(f.ok == 51 && f.body.n == 50 * 20000, "50 bodies came back at once (%zu bytes)",
	   f.body.n);
	slu_buf_reset(&f.body);
	f_ask(&f, "POST", "/echo", big, 2 << 20);
	f_wait(&f);
	ok(f.status[4] == 1 && strstr(slu_buf_str(&f.body), "too large"),
	   "a body above the limit gets 413 and the connection lives on");
	slu_buf_reset(&f.body);
	f_ask(&f, "GET", "/stream", NULL, 0);
	f_wait(&f);
	ok(!strcmp(slu_buf_str(&f.body), "piece 0\npiece 1\npiece 2\npiece 3\n") &&
		   !strcmp(f.trailer, "10"),
	   "a streamed answer with a trailer");
	slu_buf_reset(&f.body);
	f_ask(&f, "GET", "/big", NULL, 0);
	f_wait(&f);
	ok(f.body.n == 3 << 20, "a body of 3 MiB arrives whole");
	slu_buf_reset(&f.body);
	f_ask(&f, "GET", "/words", NULL, 0);
	f_wait(&f);
	ok(f.body.n == 5005 && !strcmp(slu_buf_str(&f.body) + 4999, "7 end\n"),
	   "a long text is not cut (%zu)", f.body.n);
	slu_buf_reset(&f.body);
	f_ask(&f, "GET", "/late", NULL, 0);
	f_ask(&f, "GET", "/who", NULL, 0);
	f_wait(&f);
	ok(f.body.n && strstr(slu_buf_str(&f.body), "late"),
	   "a late answer does not hold up others");
	/* Drain: what is under way is answered, then the connection ends. */
	f_ask(&f, "GET", "/late", NULL, 0);
	{
		bool done = false, no = false;

		slu_loop_run_until(s.loop, &no, 5 * SLU_NS_PER_MS);
		slu_server_drain(s.server, 30 * SLU_NS_PER_S, set, &done);
		slu_loop_run_until(s.loop, &done, 60 * SLU_NS_PER_S);
		ok(done && f.goaway && f.down && !f.code && !f.open,
		   "drain answers what is under way and says goodbye (%s)", f.why);
	}
	f_end_all(&f);
	free(big);
	slu_tls_unref(st);
	slu_tls_unref(ct);
	unserve(&s);
}

/* ---- TLS ---- */

static void test_tls(void)
{
	struct pki_pair other = pki_make("other CA", NULL, -100, 1000, NULL);
	struct pki_pair expired = pki_make("expired", "DNS:localhost,IP:127.0.0.1", -2000, -1000,
					   &ca);
	struct pki_pair future = pki_make("future", "IP:127.0.0.1", 1000, 2000, &ca);
	struct pki_pair wrong = pki_make("wrong", "DNS:elsewhere.example,IP:10.9.8.7", -100, 1000,
					 &ca);
	const struct {
		const char *what;
		const struct pki_pair *server;
		const char *roots, *name;
		bool ask_client, have_client;
		int code;
		const char *text;
	} row[] = {
		{ "good", &leaf, ca.cert_pem, NULL, false, false, 0, "" },
		{ "good by name", &leaf, ca.cert_pem, "localhost", false, false, 0, "" },
		{ "client certificate", &leaf, ca.cert_pem, NULL, true, true, 0, "" },
		{ "expired", &expired, ca.cert_pem, NULL, false, false, -EKEYEXPIRED,
		  "expired on 20" },
		{ "not yet valid", &future, ca.cert_pem, NULL, false, false, -EKEYREJECTED,
		  "check the clock" },
		{ "wrong host", &wrong, ca.cert_pem, NULL, false, false, -EKEYREJECTED,
		  "(elsewhere.example, 10.9.8.7)" },
		{ "wrong name", &leaf, ca.cert_pem, "example.org", false, false, -EKEYREJECTED,
		  "other names" },
		{ "unknown authority", &leaf, other.cert_pem, NULL, false, false, -EKEYREJECTED,
		  "unknown authority" },
		{ "client certificate missing", &leaf, ca.cert_pem, NULL, true, false, -EACCES,
		  "client certificate" },
	};
	struct slu_error err = { 0 };
	struct slu_tls *t = NULL;
	struct slu_tls_client_options o = { .ca = { "junk", 4 }, .ca_from = "FILE: field" };
	int rc;

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct site s;
		struct slu_tls *st = server_tls(row[i].server, row[i].ask_client);
		struct slu_tls *ct = client_tls(row[i].roots, row[i].name, row[i].have_client);
		int port = serve(&s, "127.0.0.1:0", st, NULL);
		struct fetch f;
		char where[64];

		snprintf(where, sizeof where, "127.0.0.1:%d", port);
		f_connect(&f, &s, where, ct);
		f_ask(&f, "GET", "/who", NULL, 0);
		f_wait(&f);
		ok(f.code == row[i].code && strstr(f.why, row[i].text) &&
			   (row[i].code || f.ok == 1),
		   "%s: %s %s", row[i].what, f.why, slu_buf_str(&f.body));
		if (row[i].have_client)
			ok(strstr(slu_buf_str(&f.body), "cn=the client"),
			   "the handler sees the client's name");
		f_end_all(&f);
		slu_tls_unref(st);
		slu_tls_unref(ct);
		unserve(&s);
	}
	rc = slu_tls_client_new(&o, &t, &err);
	ok(rc == -EINVAL && strstr(err.text, "FILE: field holds no certificate"),
	   "a text that holds no certificate is refused: %s", err.text);
	o = (struct slu_tls_client_options){ .insecure = true,
					     .cert = { leaf.cert_pem, strlen(leaf.cert_pem) },
					     .key = { ca.key_pem, strlen(ca.key_pem) },
					     .cert_from = "A",
					     .key_from = "B" };
	rc = slu_tls_client_new(&o, &t, &err);
	ok(rc == -EINVAL &&
		   strstr(err.text, "the key in B does not belong to the certificate in A"),
	   "a key of another certificate is refused: %s", err.text);
	pki_free(&other);
	pki_free(&expired);
	pki_free(&future);
	pki_free(&wrong);
}

static void test_reload(void)
{
	struct site s;
	struct pki_pair second = pki_make("second", "IP:127.0.0.1", -100, 1000, &client_pair);
	struct slu_tls *a = server_tls(&leaf, false), *b = server_tls(&second, false);
	struct slu_tls *ct = client_tls(ca.cert_pem, NULL, false);
	int port = serve(&s, "127.0.0.1:0", a, NULL);
	struct fetch f, g;
	char where[64];

	snprintf(where, sizeof where, "127.0.0.1:%d", port);
	f_connect(&f, &s, where, ct);
	slu_server_tls(s.server, 0, b);
	f_ask(&f, "GET", "/who", NULL, 0);
	f_wait(&f);
	ok(f.ok == 1, "an open connection survives a change of certificates");
	f_connect(&g, &s, where, ct);
	ok(g.down && g.code == -EKEYREJECTED, "a new one sees the new certificate (%s)", g.why);
	f_end_all(&f);
	f_end_all(&g);
	slu_tls_unref(a);
	slu_tls_unref(b);
	slu_tls_unref(ct);
	pki_free(&second);
	unserve(&s);
}

static void test_unix(void)
{
	struct site s, t;
	char path[64];
	struct slu_error err = { 0 };
	struct slu_addr a;
	FILE *fp;

	snprintf(path, sizeof path, "unix:/tmp/sluice-test-%d.sock", getpid());
	test_h2(path, false);
	ok(access(path + 5, F_OK) < 0, "the socket file is gone after");
	serve(&s, path, NULL, NULL);
	ok(serve(&t, path, NULL, NULL) == -EADDRINUSE, "a served socket is not taken over");
	unserve(&t);
	unserve(&s);
	fp = fopen(path + 5, "w");
	fclose(fp);
	slu_addr_parse(path, &a, NULL);
	{
		uint16_t port;

		ok(slu_listen(&a, 0, &port, &err) == -EEXIST, "a plain file is not replaced: %s",
		   err.text);
	}
	unlink(path + 5);
}

static void test_limits(void)
{
	struct site s;
	struct slu_server_options o = { .max_connections = 2 };
	struct raw r[3] = { 0 };
	char where[64];
	struct slu_server_stats st;
	int port = serve(&s, "127.0.0.1:0", NULL, &o);

	snprintf(where, sizeof where, "127.0.0.1:%d", port);
	TALK(&r[0], "GET /who HTTP/1.1\r\nHost: h\r\n\r\n", "tls=0");
	TALK(&r[1], "GET /who HTTP/1.1\r\nHost: h\r\n\r\n", "tls=0");
	TALK(&r[2], "GET /who HTTP/1.1\r\nHost: h\r\n\r\n", "tls=0");
	ok(has(&r[2], "200 OK"), "a third connection finds room");
	ok(r[0].closed && !r[1].closed, "because the oldest idle one was closed");
	slu_server_stats(s.server, &st);
	ok(st.connections == 2 && st.accepted == 3 && st.requests == 3,
	   "the server's counters agree with the requests");
	for (int i = 0; i < 3; i++)
		raw_end(&r[i]);
	unserve(&s);
}

int main(void)
{
	ca = pki_make("test CA", NULL, -100, 100000, NULL);
	leaf = pki_make("server", "DNS:localhost,IP:127.0.0.1", -100, 100000, &ca);
	client_pair = pki_make("the client", NULL, -100, 100000, &ca);
	test_loop();
	test_words();
	test_h1();
	test_h2("127.0.0.1:0", false);
	test_h2("127.0.0.1:0", true);
	test_unix();
	test_tls();
	test_reload();
	test_limits();
	pki_free(&ca);
	pki_free(&leaf);
	pki_free(&client_pair);
	return tap_done();
}
