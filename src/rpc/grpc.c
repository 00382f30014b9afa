#include "rpc/grpc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/vec.h"
#include "net/gzip.h"

#define DEFAULT_MESSAGE ((size_t)4 << 20)
#define DEFAULT_BYTES   ((size_t)512 << 20)
#define DEFAULT_CALLS   4096
#define IDLE_NS         (300 * SLU_NS_PER_S)
#define RECEIVE_NS      (30 * SLU_NS_PER_S)
#define RECEIVE_STEP    ((size_t)64 << 10) /* this many bytes earn a sender another RECEIVE_NS */
#define BEFORE_PERMIT   ((size_t)1 << 20)  /* bytes kept while the permission is pending */
#define WRITE_STEP      ((size_t)1 << 20)
#define ANSWER_MAX      ((size_t)1 << 30)

struct slu_grpc {
	struct slu_loop *loop;
	struct slu_server *server;
	struct slu_grpc_options o;
	SLU_VEC(const struct slu_grpc_method *) method;
	uint32_t under_way; /* calls that have begun and not ended */
	size_t bytes;       /* of messages and answers in memory */
	uint32_t refs;      /* one of the owner, and one of each call */
};

struct slu_grpc_call {
	struct slu_grpc *g;
	struct slu_exchange *x; /* NULL: the call is answered, or its client has left */
	const struct slu_grpc_method *m;
	struct slu_grpc_frames in;
	struct slu_buf before; /* bytes that arrived before the permission */
	void *taken;           /* the message, if the method has a taker */
	size_t n_taken;        /* its length so far, unpacked */
	struct slu_gunzip *unzip;
	size_t held;     /* bytes in the server's account: message and answer */
	size_t progress; /* bytes since the receive timer was started */
	uint32_t messages;
	struct slu_timer deadline, receive;
	struct slu_buf out; /* frames not yet written, from out_at on */
	size_t out_at;
	slu_call_fn *over_fn;
	void *over_arg;
	atomic_bool over;
	bool gzip;    /* grpc-encoding: gzip; answers are packed too */
	bool asking;  /* the permission is pending, and options.permit uses the exchange */
	bool allowed; /* options.permit has allowed the call */
	bool late;    /* the deadline passed */
	bool input_ended;
	bool handed;   /* a method has the call */
	bool begun;    /* the head of the answer is written */
	bool ending;   /* the trailers follow the last byte of `out` */
	bool detached; /* the method has answered */
	int depth;     /* number of callbacks that still use the call */
	enum slu_grpc_code code;
	char why[1024];
};

/* ---- the end of a call ---- */

static void call_unref(struct slu_grpc *g)
{
	if (--g->refs)
		return;
	slu_vec_done(&g->method);
	slu_free(g);
}

/* Free the call once the method, the wire and the callbacks no longer use it. */
static void settle_call(struct slu_grpc_call *c)
{
	struct slu_grpc *g = c->g;

	if (c->x || c->depth || (c->handed && !c->detached))
		return;
	slu_timer_stop(&c->deadline);
	slu_timer_stop(&c->receive);
	if (c->taken)
		c->m->taker->drop(c->taken);
	slu_gunzip_free(c->unzip);
	slu_grpc_frames_done(&c->in);
	slu_buf_done(&c->before);
	slu_buf_done(&c->out);
	g->bytes -= c->held;
	g->under_way--;
	slu_free(c);
	call_unref(g);
}

static void now_over(struct slu_grpc_call *c)
{
	slu_call_fn *fn = c->over_fn;

	atomic_store(&c->over, true);
	slu_timer_stop(&c->deadline);
	slu_timer_stop(&c->receive);
	c->over_fn = NULL;
	if (fn && !c->detached)
		fn(c->over_arg);
}

static void put_status(struct slu_grpc_call *c,
		       int (*put)(struct slu_exchange *x, const char *name, const char *value))
{
	struct slu_buf b = SLU_BUF_INIT(4096);
	char code[8];

	snprintf(code, sizeof code, "%d", c->code);
	put(c->x, "grpc-status", code);
	if (c->why[0] && !slu_grpc_escape(&b, c->why))
		put(c->x, "grpc-message", slu_buf_str(&b));
	slu_buf_done(&b);
}

/* After the last byte of the answer: write the status, which ends the exchange. */
static void write_status(struct slu_grpc_call *c)
{
	struct slu_exchange *x = c->x;

	if (c->begun) {
		put_status(c, slu_http_reply_trailer);
		c->x = NULL;
		slu_http_reply_end(x);
	} else {
		put_status(c, slu_http_reply_header);
		slu_http_reply_header(x, "grpc-accept-encoding", "identity,gzip");
		c->x = NULL;
		slu_http_reply(x, 200, "application/grpc", NULL, 0);
	}
}

/* ---- bytes out ---- */

static void give_up(struct slu_grpc_call *c)
{
	slu_http_reply_abort(slu_take(c->x));
	now_over(c);
}

/* Bring the account up to date with the bytes of the call, and `more` that are about to come; -ENOBUFS if the
 * server would then exceed max_bytes.  A message that a taker reads counts with its length. */
static int account(struct slu_grpc_call *c, size_t more)
{
	struct slu_grpc *g = c->g;
	size_t now = c->in.body.n + c->n_taken + c->out.n + more;

	if (now > c->held && g->bytes + (now - c->held) > g->o.max_bytes)
		return -ENOBUFS;
	g->bytes += now - c->held;
	c->held = now;
	return 0;
}

static void send_more(struct slu_grpc_call *c)
{
	while (c->x && c->out_at < c->out.n) {
		size_t n = SLU_MIN(c->out.n - c->out_at, WRITE_STEP);
		int rc = slu_http_reply_write(c->x, c->out.p + c->out_at, n);

		if (rc == -EMSGSIZE)
			return; /* the client is slow to read: on_drained() continues */
		if (rc < 0) {
			give_up(c);
			return;
		}
		c->out_at += n;
	}
	slu_buf_done(&c->out);
	c->out = SLU_BUF_INIT(ANSWER_MAX);
	c->out_at = 0;
	account(c, 0);
	if (c->x && c->ending)
		write_status(c);
}

static void on_drained(void *arg)
{
	struct slu_grpc_call *c = arg;

	c->depth++;
	send_more(c);
	c->depth--;
	settle_call(c);
}

static int begin_call(struct slu_grpc_call *c)
{
	int rc = 0;

	if (c->begun)
		return 0;
	slu_timer_stop(&c->receive);
	if (c->gzip)
		rc = slu_http_reply_header(c->x, "grpc-encoding", "gzip");
	if (!rc)
		rc = slu_http_reply_header(c->x, "grpc-accept-encoding", "identity,gzip");
	if (!rc)
		rc = slu_http_reply_begin(c->x, 200, "application/grpc");
	c->begun = !rc;
	slu_http_reply_on_drain(c->x, on_drained, c);
	return rc;
}

/* Compress the message if the client compresses its own. */
static int compress_message(struct slu_grpc_call *c, struct slu_buf *b)
{
	struct slu_buf packed = SLU_BUF_INIT(ANSWER_MAX);
	int rc;

	if (!c->gzip)
		return 0;
	rc = slu_gzip(slu_buf_str(b), b->n, &packed);
	slu_buf_done(b);
	*b = packed;
	return rc;
}

/* Append the message with the head of its frame to `out`.  If `out` is empty, as for the only message of a call, the
 * message is moved rather than copied, because it may be large. */
static int put_frame(struct slu_grpc_call *c, struct slu_buf *b)
{
	uint8_t head[5] = { c->gzip };
	int rc = b->error;

	if (!rc)
		rc = compress_message(c, b);
	for (int i = 0; i < 4; i++)
		head[1 + i] = (uint8_t)(b->n >> (24 - 8 * i));
	if (!rc && b->n > ANSWER_MAX)
		rc = -EMSGSIZE;
	if (!rc)
		rc = account(c, b->n + sizeof head);
	if (!rc && !c->out.n && slu_http_reply_write(c->x, head, sizeof head) == 0) {
		slu_buf_done(&c->out);
		c->out = *b;
		c->out.max = ANSWER_MAX;
		*b = (struct slu_buf){ 0 };
		return 0;
	}
	if (!rc)
		rc = slu_buf_room(&c->out, b->n + sizeof head);
	if (!rc) {
		slu_buf_add(&c->out, head, sizeof head);
		slu_buf_add(&c->out, slu_buf_str(b), b->n);
	}
	return rc;
}

int slu_grpc_send(struct slu_grpc_call *c, struct slu_buf *b)
{
	int rc = -EPIPE;

	if (c->x)
		rc = begin_call(c);
	if (!rc)
		rc = put_frame(c, b);
	slu_buf_done(b);
	if (!rc)
		send_more(c);
	return rc;
}

static void detach_call(struct slu_grpc_call *c)
{
	c->detached = true;
	c->over_fn = NULL;
	settle_call(c);
}

void slu_grpc_end(struct slu_grpc_call *c)
{
	if (c->x) {
		c->depth++;
		c->ending = true;
		if (!begin_call(c))
			send_more(c);
		else
			give_up(c);
		c->depth--;
	}
	detach_call(c);
}

void slu_grpc_reply(struct slu_grpc_call *c, struct slu_buf *b)
{
	int rc;

	c->depth++;
	rc = slu_grpc_send(c, b);
	c->depth--;
	if (rc == -ENOBUFS)
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED,
			      "too many bytes of answers wait to be read already; try again");
	else if (rc < 0 && rc != -EPIPE)
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED, "the answer does not fit: %s",
			      strerror(-rc));
	else
		slu_grpc_end(c);
}

void slu_grpc_fail(struct slu_grpc_call *c, enum slu_grpc_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, sizeof c->why, fmt, ap);
	va_end(ap);
	c->code = code;
	if (c->x) {
		c->depth++;
		c->ending = true;
		if (c->begun)
			send_more(c);
		else
			write_status(c);
		c->depth--;
	}
	detach_call(c);
}

/* ---- bytes in ---- */

static void on_gone(void *arg)
{
	struct slu_grpc_call *c = arg;

	c->depth++;
	if (!c->asking)
		slu_http_reply_abort(slu_take(c->x));
	now_over(c);
	c->depth--;
	settle_call(c);
}

/* The client's deadline has passed: tell the client and drop the rest. */
static void end_late(struct slu_grpc_call *c)
{
	if (c->begun) {
		give_up(c);
		return;
	}
	c->code = SLU_GRPC_DEADLINE_EXCEEDED;
	snprintf(c->why, sizeof c->why, "the deadline passed before the answer");
	write_status(c);
}

static void on_deadline(void *arg)
{
	struct slu_grpc_call *c = arg;

	c->late = true;
	c->depth++;
	if (c->x && !c->asking)
		end_late(c);
	now_over(c);
	c->depth--;
	settle_call(c);
}

static void on_stalled(void *arg)
{
	struct slu_grpc_call *c = arg;

	if (!c->asking)
		slu_grpc_fail(arg, SLU_GRPC_DEADLINE_EXCEEDED,
			      "the message did not arrive in time");
}

static int keep_unpacked(void *arg, const void *p, size_t n)
{
	return slu_buf_add(arg, p, n);
}

static int unpack(struct slu_grpc_call *c)
{
	struct slu_buf plain = SLU_BUF_INIT(c->in.max);
	struct slu_gunzip *z;
	int rc;

	if (!c->gzip)
		return -EPROTO;
	z = slu_gunzip_new();
	rc = z ? slu_gunzip_feed(z, (const uint8_t *)slu_buf_str(&c->in.body), c->in.body.n,
				 keep_unpacked, &plain)
	       : -ENOMEM;
	if (!rc && !slu_gunzip_complete(z))
		rc = -EPROTO;
	slu_gunzip_free(z);
	if (rc < 0) {
		slu_buf_done(&plain);
		return rc;
	}
	slu_buf_done(&c->in.body);
	c->in.body = plain;
	return account(c, 0);
}

static int take_plain(void *arg, const void *p, size_t n)
{
	struct slu_grpc_call *c = arg;

	c->n_taken += n;
	if (c->n_taken > c->in.max)
		return -EMSGSIZE;
	if (account(c, 0) < 0)
		return -ENOBUFS;
	return c->m->taker->bytes(c->taken, p, n);
}

static int take_some(void *arg, const uint8_t *p, size_t n)
{
	struct slu_grpc_call *c = arg;

	if (!c->in.packed)
		return take_plain(c, p, n);
	if (!c->gzip)
		return -EPROTO;
	if (!c->unzip)
		c->unzip = slu_gunzip_new();
	return c->unzip ? slu_gunzip_feed(c->unzip, p, n, take_plain, c) : -ENOMEM;
}

/* Call the taker's begin() when the first byte of the message arrives. */
static int begin_taking(struct slu_grpc_call *c)
{
	if (!c->m->taker || c->taken)
		return 0;
	c->in.take = take_some;
	c->in.arg = c;
	c->taken = c->m->taker->begin(c->m->arg);
	return c->taken ? 0 : -ENOMEM;
}

/* Decompress a message that has arrived whole. */
static int unpack_whole(struct slu_grpc_call *c)
{
	if (!c->in.packed)
		return 0;
	if (c->in.take)
		return c->unzip && slu_gunzip_complete(c->unzip) ? 0 : -EPROTO;
	return unpack(c);
}

/* Give the message to the method; a stream then expects the next one.  Returns 0, or -1 when the call is over. */
static int hand_over(struct slu_grpc_call *c)
{
	c->handed = true;
	c->m->message(c->m->arg, c);
	c->handed &= !c->m->streams; /* between two messages no thread uses the call */
	return c->x && !c->detached ? 0 : -1;
}

static void refuse_bytes(struct slu_grpc_call *c, int rc)
{
	if (rc == -EMSGSIZE)
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED,
			      "the message is larger than the %zu bytes %s takes", c->in.max,
			      c->m->path);
	else if (rc == -EPROTO)
		slu_grpc_fail(c, SLU_GRPC_INVALID_ARGUMENT,
			      "the message is not framed as gRPC frames it, or not in the "
			      "encoding announced");
	else
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED,
			      "too many bytes of messages are held already; try again");
}

/* Read bytes of a call that is allowed.  Returns 0, or -1 when the call is over. */
static int take_bytes(struct slu_grpc_call *c, const uint8_t *p, size_t n)
{
	while (n) {
		size_t used = 0;
		int rc = 0;

		if (c->messages && !c->m->streams) {
			slu_grpc_fail(c, SLU_GRPC_INVALID_ARGUMENT, "%s takes one message",
				      c->m->path);
			return -1;
		}
		rc = begin_taking(c);
		if (!rc)
			rc = slu_grpc_frames_feed(&c->in, p, n, &used);
		p += used;
		n -= used;
		if (rc >= 0 && account(c, 0) < 0)
			rc = -ENOBUFS;
		if (rc > 0) {
			int bad = unpack_whole(c);

			rc = bad ? bad : rc;
		}
		if (rc < 0) {
			refuse_bytes(c, rc);
			return -1;
		}
		if (!rc)
			continue;
		c->messages++;
		if (!c->m->streams)
			continue; /* the method gets the message once the client has ended its side */
		if (hand_over(c) < 0)
			return -1;
		slu_grpc_frames_next(&c->in);
	}
	return 0;
}

static void no_more(struct slu_grpc_call *c)
{
	slu_timer_stop(&c->receive);
	if (slu_grpc_frames_cut(&c->in))
		slu_grpc_fail(c, SLU_GRPC_INVALID_ARGUMENT, "the message is cut off");
	else if (c->m->streams) {
		c->handed = true;
		c->m->end(c->m->arg, c);
	} else if (!c->messages)
		slu_grpc_fail(c, SLU_GRPC_INVALID_ARGUMENT, "the call has no message");
	else
		hand_over(c);
}

static void watch_progress(struct slu_grpc_call *c, size_t n)
{
	c->progress += n;
	if (slu_timer_armed(&c->receive) && c->progress < RECEIVE_STEP)
		return;
	c->progress = 0;
	slu_timer_start(&c->receive, c->g->loop, c->m->streams ? IDLE_NS : RECEIVE_NS, on_stalled,
			c);
}

static void on_data(void *arg, const uint8_t *p, size_t n)
{
	struct slu_grpc_call *c = arg;

	c->depth++;
	watch_progress(c, n);
	if (c->allowed) {
		take_bytes(c, p, n);
	} else {
		slu_buf_add(&c->before, p, n); /* an error is reported once the call is allowed */
	}
	c->depth--;
	settle_call(c);
}

static void on_end(void *arg)
{
	struct slu_grpc_call *c = arg;

	c->depth++;
	c->input_ended = true;
	if (c->allowed)
		no_more(c);
	c->depth--;
	settle_call(c);
}

/* ---- the head ---- */

void slu_grpc_allow(struct slu_grpc_call *c, enum slu_grpc_code code, const char *why)
{
	struct slu_buf before = c->before;

	c->asking = false;
	if (atomic_load(&c->over)) { /* the client has left, or its deadline has passed */
		c->depth++;
		if (c->late && !slu_exchange_gone(c->x))
			end_late(c);
		else
			slu_http_reply_abort(slu_take(c->x));
		c->depth--;
		detach_call(c);
		return;
	}
	if (code != SLU_GRPC_OK) {
		slu_grpc_fail(c, code, "%s", why);
		return;
	}
	c->before = (struct slu_buf){ 0 };
	c->handed = false;
	c->allowed = true;
	slu_exchange_hold(c->x, false);
	c->depth++;
	if (!c->input_ended)
		watch_progress(c, 0); /* the receive timer may have expired in the meantime */
	if (before.error)
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED, "out of memory");
	else if (take_bytes(c, (const uint8_t *)slu_buf_str(&before), before.n) == 0 &&
		 c->input_ended)
		no_more(c);
	c->depth--;
	slu_buf_done(&before);
	settle_call(c);
}

static const struct slu_grpc_method *find_method(const struct slu_grpc *g, const char *path)
{
	slu_vec_each (&g->method, const struct slu_grpc_method *, m)
		if (!strcmp((*m)->path, path))
			return *m;
	return NULL;
}

/* Refuse a head that asks for a method or an encoding the server does not have.  Returns true if the call is
 * answered. */
static bool refuse_head(struct slu_grpc_call *c, const struct slu_http_request *q)
{
	const char *encoding = slu_headers_get(q->headers, "grpc-encoding");
	const char *timeout = slu_headers_get(q->headers, "grpc-timeout");
	int64_t ns;

	if (!c->m) {
		slu_grpc_fail(c, SLU_GRPC_UNIMPLEMENTED, "there is no method %.200s", q->path);
		return true;
	}
	c->gzip = encoding && !strcmp(encoding, "gzip");
	if (encoding && !c->gzip && strcmp(encoding, "identity") != 0) {
		slu_grpc_fail(c, SLU_GRPC_UNIMPLEMENTED,
			      "the encoding \"%.40s\" is not supported; use identity or gzip",
			      encoding);
		return true;
	}
	if (c->g->under_way > c->g->o.max_calls) {
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED,
			      "%u calls are under way already; try again", c->g->o.max_calls);
		return true;
	}
	if (!timeout)
		return false;
	if (slu_grpc_timeout(timeout, &ns) < 0) {
		slu_grpc_fail(c, SLU_GRPC_INVALID_ARGUMENT, "grpc-timeout \"%.40s\" is not a time",
			      timeout);
		return true;
	}
	slu_timer_start(&c->deadline, c->g->loop, ns, on_deadline, c);
	return false;
}

static bool is_grpc(const struct slu_http_request *q)
{
	const char *type = slu_headers_get(q->headers, "content-type");

	return q->version == 2 && q->method == SLU_HTTP_POST && type &&
	       !strncmp(type, "application/grpc", 16);
}

static void on_request(struct slu_exchange *x, void *arg)
{
	const struct slu_http_request *q = slu_exchange_request(x);
	struct slu_grpc *g = arg;
	struct slu_grpc_call *c;
	struct slu_exchange_sink sink = { .data = on_data, .end = on_end };

	if (!is_grpc(q)) {
		slu_http_reply_text(x, 415,
				    "this port speaks gRPC: POST over HTTP/2 with "
				    "content-type application/grpc");
		return;
	}
	c = slu_calloc(1, sizeof *c);
	if (!c) {
		slu_http_reply_abort(x);
		return;
	}
	g->refs++;
	g->under_way++;
	c->g = g;
	c->x = x;
	c->m = find_method(g, q->path);
	c->in.max = c->m && c->m->max_message ? c->m->max_message : DEFAULT_MESSAGE;
	c->out = SLU_BUF_INIT(ANSWER_MAX);
	c->before = SLU_BUF_INIT(BEFORE_PERMIT);
	slu_exchange_on_gone(x, on_gone, c);
	c->depth++;
	if (!refuse_head(c, q)) {
		sink.arg = c;
		slu_exchange_on_body(x, &sink);
		watch_progress(c, 0);
		c->allowed = !g->o.permit || c->m->open;
		if (!c->allowed) {
			slu_exchange_hold(x, true);
			c->handed = c->asking = true; /* until options.permit answers */
			g->o.permit(g->o.arg, c, x);
		}
	}
	c->depth--;
	settle_call(c);
}

/* ---- functions for methods ---- */

const void *slu_grpc_message(const struct slu_grpc_call *c, size_t *n)
{
	*n = c->in.body.n;
	return slu_buf_str(&c->in.body);
}

void *slu_grpc_taken(struct slu_grpc_call *c)
{
	return slu_take(c->taken);
}

bool slu_grpc_over(const struct slu_grpc_call *c)
{
	return atomic_load(&c->over);
}

void slu_grpc_on_over(struct slu_grpc_call *c, slu_call_fn *fn, void *arg)
{
	c->over_fn = fn;
	c->over_arg = arg;
}

/* ---- the server ---- */

struct slu_grpc *slu_grpc_new(struct slu_loop *l, const struct slu_grpc_options *o)
{
	struct slu_grpc *g = slu_calloc(1, sizeof *g);
	struct slu_server_options so = { .handler = on_request,
					 .arg = g,
					 .early = is_grpc,
					 .max_body = 64 << 10, /* of requests without gRPC */
					 .max_connections = o->max_connections,
					 .idle_ns = o->idle_ns ? o->idle_ns : IDLE_NS };

	if (!g)
		return NULL;
	g->loop = l;
	g->o = *o;
	g->o.max_calls = o->max_calls ? o->max_calls : DEFAULT_CALLS;
	g->o.max_bytes = o->max_bytes ? o->max_bytes : DEFAULT_BYTES;
	g->refs = 1;
	g->server = slu_server_new(l, &so);
	if (!g->server) {
		slu_free(g);
		return NULL;
	}
	return g;
}

int slu_grpc_serve(struct slu_grpc *g, const struct slu_grpc_method *m, uint32_t n)
{
	if (slu_vec_reserve(&g->method, g->method.n + n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		g->method.p[g->method.n++] = &m[i];
	return 0;
}

int slu_grpc_listen(struct slu_grpc *g, const struct slu_addr *a, struct slu_tls *tls,
		    struct slu_error *err)
{
	return slu_server_listen(g->server, a, tls, 0, err);
}

struct slu_server *slu_grpc_server(struct slu_grpc *g)
{
	return g->server;
}

void slu_grpc_free(struct slu_grpc *g)
{
	if (!g)
		return;
	slu_server_free(slu_take(g->server));
	call_unref(g);
}
