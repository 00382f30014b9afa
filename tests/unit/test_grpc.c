/* gRPC on the HTTP/2 server: what a method, a slow or absent client, a deadline and a late permission
 * do to a call.  The client is our own HTTP/2 machine on a plain socket, so that it can misbehave. */
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/gzip.h"
#include "net/h2.h"
#include "rpc/grpc.h"

#define PATIENCE_NS (60 * SLU_NS_PER_S)
#define BIG         ((size_t)20 << 20)

/* ---- the server's side ---- */

static struct {
	struct slu_loop *loop;
	struct slu_grpc *grpc;
	int port;
	struct slu_grpc_call *held[4]; /* "/t.S/Later": the test answers them */
	uint32_t n_held, n_over, n_messages, n_ends, n_taken, n_pieces;
	struct slu_grpc_call *asking; /* permission is asked for this one */
} site;

static struct slu_buf text(const char *p, size_t n)
{
	struct slu_buf b = SLU_BUF_INIT(64u << 20);

	slu_buf_add(&b, p, n);
	return b;
}

static void echo(void *arg, struct slu_grpc_call *c)
{
	size_t n;
	const char *p = slu_grpc_message(c, &n);
	struct slu_buf b = text(p, n);

	(void)arg;
	site.n_messages++;
	slu_grpc_reply(c, &b);
}

static void over(void *arg)
{
	(void)arg;
	site.n_over++;
}

static void later(void *arg, struct slu_grpc_call *c)
{
	(void)arg;
	site.held[site.n_held++] = c;
	slu_grpc_on_over(c, over, NULL);
}

/* An answer of BIG bytes. */
static void big(void *arg, struct slu_grpc_call *c)
{
	struct slu_buf b = SLU_BUF_INIT(64u << 20);

	(void)arg;
	if (slu_buf_room(&b, BIG) == 0) {
		memset(b.p, 'x', BIG);
		b.n = BIG;
	}
	slu_grpc_reply(c, &b);
}

static void stream_message(void *arg, struct slu_grpc_call *c)
{
	size_t n;
	const char *p = slu_grpc_message(c, &n);
	struct slu_buf b = text(p, n);

	(void)arg;
	site.n_messages++;
	if (slu_grpc_send(c, &b) < 0)
		slu_grpc_end(c);
}

static void stream_end(void *arg, struct slu_grpc_call *c)
{
	(void)arg;
	site.n_ends++;
	slu_grpc_end(c);
}

/* A message that is taken in pieces; site.n_taken counts those under way. */
static void *begin_taking(void *arg)
{
	struct slu_buf *b = slu_calloc(1, sizeof *b);

	(void)arg;
	*b = SLU_BUF_INIT(64u << 20);
	site.n_taken++;
	return b;
}

static int take(void *taken, const void *p, size_t n)
{
	site.n_pieces++;
	return slu_buf_add(taken, p, n);
}

static void drop(void *taken)
{
	slu_buf_done(taken);
	slu_free(taken);
	site.n_taken--;
}

static const struct slu_grpc_taker taker = { begin_taking, take, drop };

static void echo_taken(void *arg, struct slu_grpc_call *c)
{
	struct slu_buf *b = slu_grpc_taken(c), out = *b;
	size_t n;

	(void)arg;
	slu_grpc_message(c, &n);
	ok(n == 0 && !slu_grpc_taken(c), "a message that was taken is not kept");
	site.n_messages++;
	*b = (struct slu_buf){ 0 };
	drop(b);
	slu_grpc_reply(c, &out);
}

static const struct slu_grpc_method methods[] = {
	{ .path = "/t.S/Taken", .message = echo_taken, .taker = &taker, .max_message = 2000 },
	{ .path = "/t.S/Echo", .message = echo },
	{ .path = "/t.S/Small", .message = echo, .max_message = 10 },
	{ .path = "/t.S/Later", .message = later },
	{ .path = "/t.S/Big", .message = big },
	{ .path = "/t.S/Open", .message = echo, .open = true },
	{ .path = "/t.S/Stream", .message = stream_message, .end = stream_end, .streams = true },
};

static void permit(void *arg, struct slu_grpc_call *c, struct slu_exchange *x)
{
	(void)arg;
	(void)x;
	site.asking = c;
}

static void serve(const struct slu_grpc_options *o)
{
	struct slu_error err = { 0 };
	struct slu_addr a;
	int l;

	memset(&site, 0, sizeof site);
	site.loop = slu_loop_new();
	site.grpc = slu_grpc_new(site.loop, o);
	slu_addr_parse("127.0.0.1:0", &a, NULL);
	slu_grpc_serve(site.grpc, methods, SLU_LEN(methods));
	l = slu_grpc_listen(site.grpc, &a, NULL, &err);
	if (l < 0)
		ok(false, "listen: %s", err.text);
	site.port = slu_server_port(slu_grpc_server(site.grpc), l);
}

static void unserve(void)
{
	slu_grpc_free(site.grpc);
	slu_loop_free(site.loop);
}

/* ---- the client's side ---- */

struct client {
	int fd;
	struct slu_h2 *h2;
	bool lazy; /* reads nothing of answers: gives no room back */
	bool went_away, ponged, closed;
};

/* One call and the bytes that have arrived for it. */
struct call {
	struct client *c;
	struct slu_h2_stream *s;
	struct slu_buf in;
	int status; /* grpc-status; -1: none came */
	char why[256];
	uint32_t code; /* of the stream's end */
	bool over;
	size_t unread; /* bytes that no room was given back for */
};

static void on_head(void *arg, struct slu_h2_stream *s)
{
}

static void on_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	struct call *k = slu_h2_user(s);

	slu_buf_add(&k->in, p, n);
	if (k->c->lazy)
		k->unread += n;
	else
		slu_h2_consume(s, n);
}

static void on_end(void *arg, struct slu_h2_stream *s)
{
	struct call *k = slu_h2_user(s);
	const char *status = slu_headers_get(slu_h2_headers(s), "grpc-status");
	const char *why = slu_headers_get(slu_h2_headers(s), "grpc-message");

	k->status = status ? atoi(status) : -1;
	snprintf(k->why, sizeof k->why, "%s", why ? why : "");
}

static void on_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	struct call *k = slu_h2_user(s);

	k->over = true;
	k->code = code;
	k->s = NULL;
}

static void on_goaway(void *arg, uint32_t code, const char *why)
{
	((struct client *)arg)->went_away = true;
}

static void on_pong(void *arg)
{
	((struct client *)arg)->ponged = true;
}

static void dial(struct client *c, uint32_t window)
{
	static const struct slu_h2_ops ops = { .head = on_head,
					       .data = on_data,
					       .end = on_end,
					       .closed = on_closed,
					       .goaway = on_goaway,
					       .pong = on_pong };
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)site.port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct slu_h2_options o = { .stream_window = window, .conn_window = 64u << 20 };

	*c = (struct client){ .fd = socket(AF_INET, SOCK_STREAM, 0) };
	if (connect(c->fd, (struct sockaddr *)&a, sizeof a) < 0)
		ok(false, "the client connects");
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	c->h2 = slu_h2_new(&o, &ops, c);
}

static void hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	slu_h2_free(c->h2);
}

/* Let client and server run until neither has anything to do. */
static void turn(struct client *c)
{
	struct slu_buf out = SLU_BUF_INIT(64u << 20);
	struct slu_error err = { 0 };
	bool no = false;
	uint8_t in[65536];
	ssize_t n;

	slu_h2_send(c->h2, &out, 1u << 20, &err);
	for (size_t at = 0; at < out.n;) {
		n = send(c->fd, out.p + at, out.n - at, MSG_NOSIGNAL);
		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EAGAIN)
			break;
		slu_loop_run_until(site.loop, &no, SLU_NS_PER_MS);
	}
	slu_buf_done(&out);
	slu_loop_run_until(site.loop, &no, SLU_NS_PER_MS);
	while ((n = recv(c->fd, in, sizeof in, 0)) > 0)
		if (slu_h2_recv(c->h2, in, (size_t)n, &err) < 0)
			ok(false, "HTTP/2: %s", err.text);
	c->closed |= n == 0;
}

/* Until it is so; false: it did not become so. */
#define until(c, so)                                           \
	({                                                     \
		int64_t limit_ = slu_clock_ns() + PATIENCE_NS; \
		while (!(so) && slu_clock_ns() < limit_)       \
			turn(c);                               \
		(so);                                          \
	})

struct head {
	const char *path, *timeout, *encoding;
};

static void begin(struct client *c, struct call *k, const struct head *h)
{
	struct slu_h2_header list[10] = {
		{ ":method", "POST", 4, false },
		{ ":scheme", "http", 4, false },
		{ ":path", h->path, strlen(h->path), false },
		{ ":authority", "localhost", 9, false },
		{ "te", "trailers", 8, false },
		{ "content-type", "application/grpc", 16, false },
	};
	size_t n = 6;

	if (h->timeout)
		list[n++] = (struct slu_h2_header){ "grpc-timeout", h->timeout, strlen(h->timeout),
						    false };
	if (h->encoding)
		list[n++] = (struct slu_h2_header){ "grpc-encoding", h->encoding,
						    strlen(h->encoding), false };
	*k = (struct call){ .c = c, .status = -1, .in = SLU_BUF_INIT(64u << 20) };
	if (slu_h2_request(c->h2, list, n, NULL, 0, true, k, &k->s) < 0)
		ok(false, "the client sends a request");
}

static struct slu_buf framed(const char *p, size_t n, uint8_t flag)
{
	uint8_t head[5] = { flag, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
			    (uint8_t)n };
	struct slu_buf b = SLU_BUF_INIT(64u << 20);

	slu_buf_add(&b, head, sizeof head);
	slu_buf_add(&b, p, n);
	return b;
}

/* `flag` stands in the frame's head. */
static void put(struct call *k, const char *p, size_t n, uint8_t flag)
{
	struct slu_buf b = framed(p, n, flag);

	slu_h2_body(k->s, b.p, b.n);
	slu_buf_done(&b);
}

static void ask(struct client *c, struct call *k, const struct head *h, const char *message)
{
	begin(c, k, h);
	put(k, message, strlen(message), 0);
	slu_h2_body_end(k->s, NULL);
}

static bool says(const struct call *k, const char *message)
{
	size_t n = strlen(message);

	return k->status == 0 && k->in.n == n + 5 && !memcmp(k->in.p + 5, message, n);
}

static void forget(struct call *k)
{
	slu_buf_done(&k->in);
}

/* ---- the pieces ---- */

static void test_frames(void)
{
	static const uint8_t wire[] = { 0, 0, 0, 0, 3, 'a', 'b', 'c', 0,  0,
					0, 0, 0, 1, 0, 0,   0,   1,   'z' };
	bool same = true;

	for (size_t piece = 1; piece <= sizeof wire; piece++) {
		struct slu_grpc_frames f = { .max = 3 };
		char got[32] = "";
		size_t at = 0;

		while (at < sizeof wire) {
			size_t used = 0, n = SLU_MIN(piece, sizeof wire - at);
			int rc = slu_grpc_frames_feed(&f, wire + at, n, &used);

			at += used;
			if (rc < 0)
				break;
			if (rc) {
				snprintf(got + strlen(got), 16, "[%s%.*s]", f.packed ? "+" : "",
					 (int)f.body.n, f.body.n ? f.body.p : "");
				slu_grpc_frames_next(&f);
			}
		}
		same &= at == sizeof wire && !strcmp(got, "[abc][][+z]") &&
			!slu_grpc_frames_cut(&f);
		slu_grpc_frames_done(&f);
	}
	ok(same, "three messages, one empty and one packed, in pieces of every size");
	for (size_t n = 1; n < 8; n++) {
		struct slu_grpc_frames f = { .max = 3 };
		size_t used;

		same &= slu_grpc_frames_feed(&f, wire, n, &used) == 0 && slu_grpc_frames_cut(&f);
		slu_grpc_frames_done(&f);
	}
	ok(same, "a message that is cut off anywhere is known to be");
	{
		struct slu_grpc_frames f = { .max = 2 }, g = { .max = 2 };
		size_t used;

		ok(slu_grpc_frames_feed(&f, wire, sizeof wire, &used) == -EMSGSIZE,
		   "a length above the ceiling is refused before the bytes come");
		ok(slu_grpc_frames_feed(&g, (const uint8_t *)"\2\0\0\0", 5, &used) == -EPROTO,
		   "a flag that does not exist");
		slu_grpc_frames_done(&f);
		slu_grpc_frames_done(&g);
	}
}

static void test_texts(void)
{
	static const struct {
		const char *text;
		int64_t ns;
	} times[] = { { "1S", SLU_NS_PER_S },
		      { "250m", 250 * SLU_NS_PER_MS },
		      { "7u", 7000 },
		      { "99999999n", 99999999 },
		      { "2M", 120 * SLU_NS_PER_S },
		      { "1H", 3600 * SLU_NS_PER_S },
		      { "99999999H", INT64_MAX / 4 } };
	static const char *const wrong[] = {
		"", "S", "1", "1s", "-1S", "1SS", "123456789S", " 1S"
	};
	struct slu_buf b = SLU_BUF_INIT(256);
	int64_t ns;

	for (size_t i = 0; i < SLU_LEN(times); i++)
		ok(slu_grpc_timeout(times[i].text, &ns) == 0 && ns == times[i].ns,
		   "%s is %" PRId64 " ns", times[i].text, times[i].ns);
	for (size_t i = 0; i < SLU_LEN(wrong); i++)
		ok(slu_grpc_timeout(wrong[i], &ns) == -EINVAL, "\"%s\" is no time", wrong[i]);
	slu_grpc_escape(&b, "50% of \xc3\xa4\n");
	ok(!strcmp(slu_buf_str(&b), "50%25 of %C3%A4%0A"), "a sentence in a header: %s",
	   slu_buf_str(&b));
	slu_buf_done(&b);
}

/* ---- messages ---- */

static void test_messages(void)
{
	static const struct head to_echo = { "/t.S/Echo", NULL, NULL };
	struct client c;
	struct call k;
	struct slu_buf b;

	serve(&(struct slu_grpc_options){ 0 });
	dial(&c, 0);
	ask(&c, &k, &to_echo, "hello");
	ok(until(&c, k.over) && says(&k, "hello"), "a unary call gets its answer");
	forget(&k);
	ask(&c, &k, &to_echo, "");
	ok(until(&c, k.over) && says(&k, ""), "an empty message gets an empty answer");
	forget(&k);
	begin(&c, &k, &to_echo);
	b = framed("in pieces", 9, 0);
	for (size_t i = 0; i < b.n; i++) { /* each a DATA frame of its own */
		slu_h2_body(k.s, b.p + i, 1);
		turn(&c);
	}
	slu_buf_done(&b);
	ok(site.n_messages == 2, "nothing is handed over before the client has ended");
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && says(&k, "in pieces"), "a message in 14 DATA frames");
	forget(&k);
	begin(&c, &k, &(struct head){ "/t.S/Stream", NULL, NULL });
	put(&k, "one", 3, 0);
	put(&k, "two", 3, 0);
	ok(until(&c, k.in.n == 16) && !k.over && site.n_ends == 0,
	   "a stream is answered message by message");
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == 0 && site.n_ends == 1,
	   "a stream ends after its client has ended it");
	forget(&k);
	hang_up(&c);
	unserve();
}

static int keep(void *arg, const void *p, size_t n)
{
	return slu_buf_add(arg, p, n);
}

static void test_gzip(void)
{
	static const struct head packed = { "/t.S/Small", NULL, "gzip" };
	struct slu_buf z = SLU_BUF_INIT(1 << 20), plain = SLU_BUF_INIT(1 << 20);
	struct slu_gunzip *g = slu_gunzip_new();
	struct client c;
	struct call k;
	char bomb[4096] = { 0 };

	serve(&(struct slu_grpc_options){ 0 });
	dial(&c, 0);
	slu_gzip("small", 5, &z);
	begin(&c, &k, &(struct head){ "/t.S/Echo", NULL, "gzip" });
	put(&k, z.p, z.n, 1);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == 0 && k.in.n > 5 && k.in.p[0] == 1,
	   "a client that packs gets a packed answer, even if it is shorter unpacked: %s", k.why);
	ok(!slu_gunzip_feed(g, (const uint8_t *)k.in.p + 5, k.in.n - 5, keep, &plain) &&
		   plain.n == 5 && !memcmp(plain.p, "small", 5),
	   "the packed answer has the same message inside");
	forget(&k);
	slu_buf_done(&z);
	z = SLU_BUF_INIT(1 << 20);
	begin(&c, &k, &packed);
	put(&k, "tiny", 4, 0);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == 0,
	   "a client that packs may send a message that is not packed");
	forget(&k);
	slu_gzip(bomb, sizeof bomb, &z);
	begin(&c, &k, &(struct head){ "/t.S/Small", NULL, "gzip" });
	put(&k, z.p, z.n, 1);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == SLU_GRPC_RESOURCE_EXHAUSTED,
	   "a message that unfolds above the ceiling: %s", k.why);
	forget(&k);
	begin(&c, &k, &(struct head){ "/t.S/Echo", NULL, NULL });
	put(&k, z.p, z.n, 1);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == SLU_GRPC_INVALID_ARGUMENT,
	   "packed without a word about it: %s", k.why);
	forget(&k);
	begin(&c, &k, &(struct head){ "/t.S/Echo", NULL, "gzip" });
	put(&k, z.p, z.n / 2, 1);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == SLU_GRPC_INVALID_ARGUMENT,
	   "half of a packed message: %s", k.why);
	forget(&k);
	slu_buf_done(&z);
	slu_buf_done(&plain);
	slu_gunzip_free(g);
	hang_up(&c);
	unserve();
}

static void test_taker(void)
{
	static const struct head plain = { "/t.S/Taken", NULL, NULL },
				 packed = { "/t.S/Taken", NULL, "gzip" };
	struct slu_buf z = SLU_BUF_INIT(1 << 20), b;
	char bomb[4096] = { 0 };
	struct client c;
	struct call k;

	serve(&(struct slu_grpc_options){ .max_bytes = 1500 });
	dial(&c, 0);
	begin(&c, &k, &plain);
	b = framed("in pieces", 9, 0);
	for (size_t i = 0; i < b.n; i++) {
		slu_h2_body(k.s, b.p + i, 1);
		turn(&c);
	}
	ok(until(&c, site.n_pieces == 9) && !site.n_messages,
	   "a message is taken while the client sends it");
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && says(&k, "in pieces"),
	   "a message in pieces is answered once it is whole: %s", k.why);
	forget(&k);
	ask(&c, &k, &plain, "");
	ok(until(&c, k.over) && says(&k, ""), "a message of no bytes is answered, too: %s", k.why);
	forget(&k);
	slu_gzip(bomb, 1000, &z);
	begin(&c, &k, &packed);
	slu_buf_done(&b);
	b = framed(z.p, z.n, 1);
	for (size_t i = 0; i < b.n; i++) {
		slu_h2_body(k.s, b.p + i, 1);
		turn(&c);
	}
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == 0 && site.n_messages == 3,
	   "a packed message is taken while the client sends it, too: %s", k.why);
	forget(&k);
	slu_buf_done(&b);
	begin(&c, &k, &packed);
	put(&k, z.p, z.n / 2, 1);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == SLU_GRPC_INVALID_ARGUMENT,
	   "half of a compressed message is refused: %s", k.why);
	forget(&k);
	begin(&c, &k, &packed);
	put(&k, "", 0, 1);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == SLU_GRPC_INVALID_ARGUMENT,
	   "a compressed message without bytes is refused: %s", k.why);
	forget(&k);
	begin(&c, &k, &plain);
	put(&k, z.p, z.n, 1);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == SLU_GRPC_INVALID_ARGUMENT,
	   "packed without a word about it: %s", k.why);
	forget(&k);
	slu_buf_done(&z);
	z = SLU_BUF_INIT(1 << 20);
	slu_gzip(bomb, 2001, &z);
	begin(&c, &k, &packed);
	put(&k, z.p, z.n, 1);
	ok(until(&c, k.status >= 0) && k.status == SLU_GRPC_RESOURCE_EXHAUSTED &&
		   strstr(k.why, "2000"),
	   "one that unfolds above the ceiling: %s", k.why);
	until(&c, k.over);
	forget(&k);
	begin(&c, &k, &plain);
	put(&k, bomb, 1600, 0);
	ok(until(&c, k.status >= 0) && k.status == SLU_GRPC_RESOURCE_EXHAUSTED,
	   "what was taken counts as held: %s", k.why);
	until(&c, k.over);
	forget(&k);
	begin(&c, &k, &plain);
	put(&k, "a", 1, 0);
	put(&k, "b", 1, 0);
	slu_h2_body_end(k.s, NULL);
	ok(until(&c, k.over) && k.status == SLU_GRPC_INVALID_ARGUMENT, "two messages: %s", k.why);
	forget(&k);
	begin(&c, &k, &(struct head){ "/t.S/Taken", "200m", NULL });
	put(&k, "late", 4, 0);
	ok(until(&c, k.status >= 0) && k.status == SLU_GRPC_DEADLINE_EXCEEDED,
	   "a deadline in the middle: %s", k.why);
	until(&c, k.over);
	forget(&k);
	begin(&c, &k, &plain);
	put(&k, "gone", 4, 0);
	until(&c, site.n_taken == 1);
	slu_h2_reset(k.s, SLU_H2_CANCEL);
	ok(until(&c, k.over && !site.n_taken), "a client that leaves in the middle");
	forget(&k);
	ok(site.n_messages == 3 && !site.n_taken, "none of these is left or handed over");
	slu_buf_done(&z);
	hang_up(&c);
	unserve();
}

static void test_refusals(void)
{
	static const struct {
		struct head h;
		const char *bytes;
		size_t n;
		int status;
	} row[] = {
		{ { "/t.S/No", NULL, NULL }, "\0\0\0\0\0", 5, SLU_GRPC_UNIMPLEMENTED },
		{ { "/t.S/Echo", NULL, "zip" }, "\0\0\0\0\0", 5, SLU_GRPC_UNIMPLEMENTED },
		{ { "/t.S/Echo", "soon", NULL }, "\0\0\0\0\0", 5, SLU_GRPC_INVALID_ARGUMENT },
		{ { "/t.S/Echo", NULL, NULL }, "", 0, SLU_GRPC_INVALID_ARGUMENT },
		{ { "/t.S/Echo", NULL, NULL }, "\0\0\0\0\1", 5, SLU_GRPC_INVALID_ARGUMENT },
		{ { "/t.S/Echo", NULL, NULL },
		  "\0\0\0\0\0\0\0\0\0\0",
		  10,
		  SLU_GRPC_INVALID_ARGUMENT },
		{ { "/t.S/Echo", NULL, NULL }, "\2\0\0\0\0", 5, SLU_GRPC_INVALID_ARGUMENT },
		{ { "/t.S/Small", NULL, NULL }, "\0\0\0\0\13", 5, SLU_GRPC_RESOURCE_EXHAUSTED },
		{ { "/t.S/Echo", NULL, NULL }, "\0\100\0\0\0", 5, SLU_GRPC_RESOURCE_EXHAUSTED },
	};
	struct client c;

	serve(&(struct slu_grpc_options){ 0 });
	dial(&c, 0);
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct call k;

		begin(&c, &k, &row[i].h);
		if (row[i].n)
			slu_h2_body(k.s, row[i].bytes, row[i].n);
		/* What is too large is refused while more is to come. */
		if (row[i].status != SLU_GRPC_RESOURCE_EXHAUSTED)
			slu_h2_body_end(k.s, NULL);
		ok(until(&c, k.status >= 0 || k.over) && k.status == row[i].status && k.why[0],
		   "refusal %zu, status %d: %s", i, row[i].status, k.why);
		if (k.s)
			slu_h2_reset(k.s, SLU_H2_CANCEL);
		until(&c, k.over);
		forget(&k);
	}
	ok(site.n_messages == 0, "no method is called for a refused request");
	hang_up(&c);
	unserve();
}

/* ---- time, and clients that leave ---- */

static void test_deadline(void)
{
	struct client c;
	struct call k;
	struct slu_buf b = text("too late", 8);

	serve(&(struct slu_grpc_options){ 0 });
	dial(&c, 0);
	ask(&c, &k, &(struct head){ "/t.S/Later", "2S", NULL }, "x");
	ok(until(&c, site.n_held == 1) && !slu_grpc_over(site.held[0]),
	   "the method gets a call with a deadline");
	ok(until(&c, k.over) && k.status == SLU_GRPC_DEADLINE_EXCEEDED,
	   "a call past its deadline is answered: %s", k.why);
	ok(site.n_over == 1 && slu_grpc_over(site.held[0]), "the method is told once");
	slu_grpc_reply(site.held[0], &b);
	turn(&c);
	ok(k.in.n == 0, "an answer after the deadline is not sent");
	forget(&k);
	/* A deadline passes while the message is on its way. */
	begin(&c, &k, &(struct head){ "/t.S/Echo", "100m", NULL });
	slu_h2_body(k.s, "\0\0\0\0", 4);
	ok(until(&c, k.status >= 0) && k.status == SLU_GRPC_DEADLINE_EXCEEDED && !site.n_messages,
	   "half a message at its deadline: %s", k.why);
	if (k.s)
		slu_h2_reset(k.s, SLU_H2_CANCEL);
	until(&c, k.over);
	forget(&k);
	hang_up(&c);
	unserve();
}

static void test_cancel(void)
{
	struct client c;
	struct call k, second;
	struct slu_buf b = text("x", 1);

	serve(&(struct slu_grpc_options){ .max_calls = 1 });
	dial(&c, 0);
	ask(&c, &k, &(struct head){ "/t.S/Later", NULL, NULL }, "x");
	until(&c, site.n_held == 1);
	slu_h2_reset(k.s, SLU_H2_CANCEL);
	ok(until(&c, site.n_over == 1) && slu_grpc_over(site.held[0]),
	   "the method is told that the client has cancelled");
	ask(&c, &second, &(struct head){ "/t.S/Echo", NULL, NULL }, "x");
	ok(until(&c, second.over) && second.status == SLU_GRPC_RESOURCE_EXHAUSTED,
	   "a call is under way until its method ends it: %s", second.why);
	forget(&second);
	slu_grpc_reply(site.held[0], &b);
	ask(&c, &second, &(struct head){ "/t.S/Echo", NULL, NULL }, "x");
	ok(until(&c, second.over) && says(&second, "x"),
	   "a call after a cancelled one is answered");
	forget(&second);
	forget(&k);
	/* The whole connection goes. */
	ask(&c, &k, &(struct head){ "/t.S/Later", NULL, NULL }, "x");
	until(&c, site.n_held == 2);
	close(c.fd);
	c.fd = -1;
	{
		struct client other;

		dial(&other, 0);
		ok(until(&other, site.n_over == 2), "the method is told that the connection broke");
		slu_grpc_fail(site.held[1], SLU_GRPC_UNKNOWN, "nobody reads this");
		ask(&other, &second, &(struct head){ "/t.S/Echo", NULL, NULL }, "y");
		ok(until(&other, second.over) && says(&second, "y"),
		   "calls on another connection are answered");
		forget(&second);
		hang_up(&other);
	}
	hang_up(&c);
	forget(&k);
	unserve();
}

/* ---- permission ---- */

static void test_permission(void)
{
	static const struct head h = { "/t.S/Echo", NULL, NULL };
	struct client c;
	struct call k;
	char *large = malloc(600000);
	struct slu_server_stats stats;

	serve(&(struct slu_grpc_options){ .permit = permit });
	dial(&c, 0);
	ask(&c, &k, &(struct head){ "/t.S/Open", NULL, NULL }, "health");
	ok(until(&c, k.over) && says(&k, "health") && !site.asking,
	   "an open method needs no permission");
	forget(&k);

	ask(&c, &k, &h, "who");
	until(&c, site.asking);
	for (int i = 0; i < 20; i++)
		turn(&c);
	ok(site.n_messages == 1 && !k.over, "nothing happens before the permission");
	slu_grpc_allow(slu_take(site.asking), SLU_GRPC_OK, "");
	ok(until(&c, k.over) && says(&k, "who"), "a call goes on when its permission comes late");
	forget(&k);

	ask(&c, &k, &h, "who");
	until(&c, site.asking);
	slu_grpc_allow(slu_take(site.asking), SLU_GRPC_UNAUTHENTICATED, "a token is needed");
	ok(until(&c, k.over) && k.status == SLU_GRPC_UNAUTHENTICATED &&
		   !strcmp(k.why, "a token is needed") && site.n_messages == 2,
	   "a call without permission is refused: %s", k.why);
	forget(&k);

	memset(large, 'l', 600000);
	begin(&c, &k, &h);
	put(&k, large, 600000, 0);
	slu_h2_body_end(k.s, NULL);
	until(&c, site.asking);
	for (int i = 0; i < 50; i++)
		turn(&c);
	slu_server_stats(slu_grpc_server(site.grpc), &stats);
	ok(stats.bytes_in < 500000,
	   "a caller without permission sends no more than its window: %" PRIu64, stats.bytes_in);
	slu_grpc_allow(slu_take(site.asking), SLU_GRPC_OK, "");
	ok(until(&c, k.over) && k.status == 0 && k.in.n == 600005,
	   "the rest of a message is read after the permission");
	forget(&k);

	ask(&c, &k, &(struct head){ "/t.S/Echo", "100m", NULL }, "who");
	until(&c, site.asking);
	until(&c, slu_grpc_over(site.asking));
	ok(!k.over,
	   "a call whose deadline passes during the check of its caller waits for the check");
	slu_grpc_allow(slu_take(site.asking), SLU_GRPC_OK, "");
	ok(until(&c, k.over) && k.status == SLU_GRPC_DEADLINE_EXCEEDED && site.n_messages == 3,
	   "after the check such a call is answered, and its method is not called: %s", k.why);
	forget(&k);

	ask(&c, &k, &h, "who");
	until(&c, site.asking);
	slu_h2_reset(k.s, SLU_H2_CANCEL);
	ok(until(&c, slu_grpc_over(site.asking)), "a client may leave during the check");
	slu_grpc_allow(slu_take(site.asking), SLU_GRPC_OK, "");
	turn(&c);
	ok(site.n_messages == 3, "the method of a client that left is not called");
	forget(&k);
	free(large);
	hang_up(&c);
	unserve();
}

/* ---- answers that no client reads ---- */

static void test_unread(void)
{
	static const struct head h = { "/t.S/Big", NULL, NULL };
	struct client c;
	struct call first, second, third;

	serve(&(struct slu_grpc_options){ .max_bytes = BIG + BIG / 2 });
	dial(&c, 65536);
	c.lazy = true;
	ask(&c, &first, &h, "");
	ok(until(&c, first.in.n >= 60000) && !first.over, "the first answer stops at the window");
	ask(&c, &second, &h, "");
	ok(until(&c, second.over) && second.status == SLU_GRPC_RESOURCE_EXHAUSTED,
	   "a second answer is above what the server may hold: %s", second.why);
	ask(&c, &third, &(struct head){ "/t.S/Echo", NULL, NULL }, "small");
	ok(until(&c, third.over) && says(&third, "small"), "small answers fit");
	forget(&second);
	forget(&third);
	c.lazy = false;
	slu_h2_consume(first.s, first.unread);
	ok(until(&c, first.over) && first.status == 0 && first.in.n == BIG + 5,
	   "the first answer is read to its end");
	ask(&c, &second, &h, "");
	ok(until(&c, second.over) && second.in.n == BIG + 5,
	   "once the first answer is read, there is room again");
	forget(&first);
	forget(&second);
	hang_up(&c);
	unserve();
}

/* ---- connections ---- */

static void drained(void *arg)
{
	*(bool *)arg = true;
}

static void test_connections(void)
{
	static const struct head h = { "/t.S/Later", NULL, NULL };
	struct slu_buf b = text("done", 4);
	struct client c;
	struct call k;
	bool gone = false;

	serve(&(struct slu_grpc_options){ .idle_ns = SLU_NS_PER_S });
	dial(&c, 0);
	ask(&c, &k, &h, "x");
	until(&c, site.n_held == 1);
	slu_h2_ping(c.h2);
	ok(until(&c, c.ponged), "a PING beside a call is answered");
	for (int64_t end = slu_clock_ns() + 2500 * SLU_NS_PER_MS; slu_clock_ns() < end;)
		turn(&c);
	ok(!c.went_away && !c.closed, "a connection with a call is not idle");
	slu_grpc_reply(site.held[0], &b);
	ok(until(&c, k.over) && says(&k, "done"), "a call on an old connection gets its answer");
	ok(until(&c, c.closed) && c.went_away, "an idle connection gets GOAWAY and closes");
	forget(&k);
	hang_up(&c);

	dial(&c, 0);
	ask(&c, &k, &h, "x");
	until(&c, site.n_held == 2);
	slu_server_drain(slu_grpc_server(site.grpc), PATIENCE_NS, drained, &gone);
	ok(until(&c, c.went_away) && !gone && !k.over, "a server that stops says GOAWAY and waits");
	b = text("last", 4);
	slu_grpc_reply(site.held[1], &b);
	ok(until(&c, k.over) && says(&k, "last"), "a drain waits for calls under way");
	ok(until(&c, gone), "a drain ends with the last call");
	forget(&k);
	hang_up(&c);
	unserve();
}

/* The server goes before the method has answered. */
static void test_free(void)
{
	struct slu_buf b = text("x", 1);
	struct client c;
	struct call k;

	serve(&(struct slu_grpc_options){ 0 });
	dial(&c, 0);
	ask(&c, &k, &(struct head){ "/t.S/Later", NULL, NULL }, "x");
	until(&c, site.n_held == 1);
	slu_grpc_free(slu_take(site.grpc));
	ok(slu_grpc_over(site.held[0]), "a call outlives its server");
	slu_grpc_reply(site.held[0], &b);
	hang_up(&c);
	forget(&k);
	unserve();
}

int main(void)
{
	test_frames();
	test_texts();
	test_messages();
	test_gzip();
	test_taker();
	test_refusals();
	test_deadline();
	test_cancel();
	test_permission();
	test_unread();
	test_connections();
	test_free();
	return tap_done();
}
