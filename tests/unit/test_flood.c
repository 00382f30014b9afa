/* A server under attack: silent connections, half requests, compressed headers that unfold,
 * bodies where none belong.  A flood on one listener must not close another listener, and must
 * not lock the other clients of a shared address out; the bytes held stay below the ceiling. */
#include "tap.h"
#include "pki.h"

#include "net/h2.h"
#include "net/server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

struct site {
	struct slu_loop *loop;
	struct slu_server *server;
	int port[2];
};

static void handler(struct slu_exchange *x, void *arg)
{
	(void)arg;
	slu_http_reply_text(x, 200, "hello %zu", slu_exchange_request(x)->body_len);
}

static void turn(struct site *s, int ms)
{
	bool no = false;

	slu_loop_run_until(s->loop, &no, ms * SLU_NS_PER_MS);
}

static void counting_handler(struct slu_exchange *x, void *arg);

/* Two listeners, 127.0.0.1; the first is the one that is attacked. */
static void serve(struct site *s, struct slu_tls *tls, const struct slu_server_options *extra)
{
	struct slu_server_options o = extra ? *extra : (struct slu_server_options){ 0 };
	struct slu_addr a;

	o.handler = counting_handler;
	s->loop = slu_loop_new();
	s->server = slu_server_new(s->loop, &o);
	slu_addr_parse("127.0.0.1:0", &a, NULL);
	for (int i = 0; i < 2; i++) {
		int l = slu_server_listen(s->server, &a, i ? NULL : tls, 0, NULL);

		s->port[i] = slu_server_port(s->server, l);
	}
}

static void unserve(struct site *s)
{
	slu_server_free(s->server);
	slu_loop_free(s->loop);
}

static struct slu_server_stats stats(const struct site *s)
{
	struct slu_server_stats st;

	slu_server_stats(s->server, &st);
	return st;
}

/* A connection to the first or second listener from 127.0.0.`from`. */
static int knock(struct site *s, int listener, int from)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(0x7f000000u + (unsigned)from);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0)
		return -1;
	a.sin_addr.s_addr = htonl(0x7f000001u);
	a.sin_port = htons((uint16_t)s->port[listener]);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Send all of it while the server runs; false: it hung up. */
static bool push(struct site *s, int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	for (int i = 0; n && i < 5000; i++) {
		ssize_t r = send(fd, p, n, MSG_NOSIGNAL);

		if (r > 0) {
			p += r;
			n -= (size_t)r;
		} else if (r < 0 && errno != EAGAIN) {
			return false;
		}
		turn(s, n ? 1 : 0);
	}
	return !n;
}

/* The bytes that arrive within two seconds; "" if none do, or the connection ends. */
static const char *hear(struct site *s, int fd)
{
	static char text[2000];

	for (int i = 0; i < 400; i++) {
		ssize_t r;

		turn(s, 5);
		r = recv(fd, text, sizeof text - 1, 0);
		if (r > 0) {
			text[r] = '\0';
			return text;
		}
		if (!r || errno != EAGAIN)
			return "";
	}
	return "";
}

static bool closed(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static bool answers(struct site *s, int listener, int from)
{
	int fd = knock(s, listener, from);
	bool good = fd >= 0 && push(s, fd, HELLO, sizeof HELLO - 1) &&
		    strstr(hear(s, fd), "200 OK");

	close(fd);
	return good;
}

static void shut(int *fd, int n)
{
	for (int i = 0; i < n; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

/* ---- connections ---- */

#define SILENT 1100
static int silent[SILENT];

static void silence(struct site *s, int n, int from, int spread)
{
	for (int i = 0; i < n; i++) {
		silent[i] = knock(s, 0, from + i % spread);
		if (i % 50 == 0)
			turn(s, 2);
	}
	turn(s, 50);
}

static void test_silent(void)
{
	struct site s;

	serve(&s, NULL, NULL);
	silence(&s, SILENT, 2, 1);
	ok(stats(&s).connections == 256, "one address holds a quarter of the pool (%u)",
	   stats(&s).connections);
	ok(answers(&s, 1, 2), "the other listener answers during a flood of silent connections");
	ok(answers(&s, 0, 1), "the flooded one answers another address");
	ok(answers(&s, 0, 2), "a flooded server still answers the address of the flood");
	shut(silent, SILENT);
	turn(&s, 50);
	silence(&s, SILENT, 2, 20);
	ok(stats(&s).connections == 1024, "twenty addresses fill the pool (%u)",
	   stats(&s).connections);
	ok(answers(&s, 1, 1), "the other listener still answers");
	ok(answers(&s, 0, 1), "a new connection takes the place of one that never sent a request");
	shut(silent, SILENT);
	unserve(&s);
}

static void test_known_stay(void)
{
	struct site s;
	struct slu_server_options o = { .max_connections = 16 };
	int known;

	serve(&s, NULL, &o);
	known = knock(&s, 0, 1);
	push(&s, known, HELLO, sizeof HELLO - 1);
	hear(&s, known);
	silence(&s, 200, 2, 40);
	ok(stats(&s).connections == 16 && !closed(known),
	   "a connection that asked before stays through a flood of strangers");
	ok(push(&s, known, HELLO, sizeof HELLO - 1) && strstr(hear(&s, known), "200 OK"),
	   "a request after the flood is answered");
	close(known);
	shut(silent, 200);
	unserve(&s);
}

static void test_handshake(void)
{
	struct pki_pair ca = pki_make("test CA", NULL, -100, 100000, NULL),
			leaf = pki_make("server", "IP:127.0.0.1", -100, 100000, &ca);
	struct slu_tls_server_options to = { .cert = { leaf.cert_pem, strlen(leaf.cert_pem) },
					     .key = { leaf.key_pem, strlen(leaf.key_pem) } };
	struct slu_server_options o = { .handshake_ns = 100 * SLU_NS_PER_MS };
	struct slu_tls *tls = NULL;
	struct site s;
	int tls_fd, plain;

	slu_tls_server_new(&to, &tls, NULL);
	serve(&s, tls, &o);
	tls_fd = knock(&s, 0, 1);
	push(&s, tls_fd, "\x16\x03\x01", 3); /* the first bytes of a handshake, and no more */
	plain = knock(&s, 1, 1);
	turn(&s, 20);
	ok(stats(&s).connections == 2, "two connections wait for their first request");
	turn(&s, 250);
	ok(closed(tls_fd) && closed(plain) && !stats(&s).connections,
	   "a handshake that does not go on ends, a silent connection too");
	close(tls_fd);
	close(plain);
	slu_tls_unref(tls);
	pki_free(&ca);
	pki_free(&leaf);
	unserve(&s);
}

/* ---- bytes ---- */

static void test_half_bodies(void)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n";
	static char half[1 << 20];
	struct site s;
	size_t most = 0;
	int fd[60];

	serve(&s, NULL, NULL);
	slu_server_pool(s.server, 0, &(struct slu_pool_options){ .max_bytes = 16 << 20 });
	for (int i = 0; i < 60; i++) {
		fd[i] = knock(&s, 0, 2);
		if (push(&s, fd[i], head, sizeof head - 1))
			push(&s, fd[i], half, sizeof half);
		most = SLU_MAX(most, stats(&s).held);
	}
	ok(most > (8 << 20) && most <= (17 << 20),
	   "sixty half bodies of HTTP/1.1 hold at most the ceiling of 16 MiB (%zu)", most);
	ok(stats(&s).shed > 0, "because the heaviest were closed (%" PRIu64 ")", stats(&s).shed);
	ok(answers(&s, 0, 1), "a small request of another address is answered during the attack");
	shut(fd, 60);
	turn(&s, 50);
	ok(!stats(&s).held, "no bytes are counted once the connections are gone (%zu)",
	   stats(&s).held);
	unserve(&s);
}

static void no_stream(void *arg, struct slu_h2_stream *s)
{
	(void)arg, (void)s;
}
static void no_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	(void)arg, (void)s, (void)p, (void)n;
}
static void no_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	(void)arg, (void)s, (void)code, (void)refused;
}
static const struct slu_h2_ops quiet = {
	.head = no_stream, .data = no_data, .end = no_stream, .closed = no_closed
};

/* One HTTP/2 connection with 100 requests that never end.  Each carries the same 20 headers of 2
 * 900 bytes, which are sent once and then referred to. */
static size_t bomb(struct site *s, int fd)
{
	static char value[2900];
	struct slu_h2 *h = slu_h2_new(&(struct slu_h2_options){ 0 }, &quiet, NULL);
	struct slu_h2_header hdr[24] = {
		{ ":method", "POST", 4, false },
		{ ":scheme", "https", 5, false },
		{ ":authority", "h", 1, false },
		{ ":path", "/", 1, false },
	};
	struct slu_buf out = SLU_BUF_INIT(64 << 20);
	size_t n;

	memset(value, 'a', sizeof value);
	for (int i = 4; i < 24; i++)
		hdr[i] = (struct slu_h2_header){ "x-bomb", value, sizeof value, false };
	for (int i = 0; i < 100; i++)
		slu_h2_request(h, hdr, 24, NULL, 0, true, NULL, &(struct slu_h2_stream *){ NULL });
	slu_h2_send(h, &out, 64 << 20, NULL);
	push(s, fd, slu_buf_str(&out), out.n);
	n = out.n;
	slu_buf_done(&out);
	slu_h2_free(h);
	return n;
}

static void test_headers(void)
{
	struct site s;
	size_t most = 0, sent = 0;
	int fd[30];

	serve(&s, NULL, NULL);
	slu_server_pool(s.server, 0, &(struct slu_pool_options){ .max_bytes = 16 << 20 });
	for (int i = 0; i < 30; i++) {
		fd[i] = knock(&s, 0, 2);
		sent += bomb(&s, fd[i]);
		most = SLU_MAX(most, stats(&s).held);
	}
	ok(most > (4 << 20) && most <= (24 << 20),
	   "%zu bytes of compressed headers unfold to at most the ceiling and one connection "
	   "(%zu)",
	   sent, most);
	ok(answers(&s, 0, 1), "a small request of another address is answered during the attack");
	shut(fd, 30);
	turn(&s, 50);
	ok(!stats(&s).held, "no bytes are counted once the connections are gone (%zu)",
	   stats(&s).held);
	unserve(&s);
}

/* ---- frames ---- */

static int handled;

static void counting_handler(struct slu_exchange *x, void *arg)
{
	handled++;
	handler(x, arg);
}

static void put_frame(struct slu_buf *b, unsigned type, unsigned flags, uint32_t stream,
		      const void *p, size_t n)
{
	const uint8_t head[9] = {
		(uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,
		(uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
		(uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream
	};

	slu_buf_add(b, (const char *)head, sizeof head);
	slu_buf_add(b, p, n);
}

enum { HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, WINDOW_UPDATE = 8, CONTINUATION = 9 };

/* Send `n` frames of a kind (or pairs of frames) over one connection, and never read an answer.
 * Returns whether the server closed the connection before the end. */
static bool frames(struct site *s, unsigned type, int n, size_t *most)
{
	static const char get[] = "\x82\x84\x86"; /* GET / by the static table */
	static char filler[16384];
	struct slu_buf b = SLU_BUF_INIT(64 << 20);
	int fd = knock(s, 0, 2);
	bool alive = true;

	slu_buf_puts(&b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	put_frame(&b, SETTINGS, 0, 0, "", 0);
	if (type == CONTINUATION) /* headers that never end; each part repeats one indexed field */
		put_frame(&b, HEADERS, 1, 1, get, 3);
	memset(filler, 0x84, sizeof filler);
	for (int i = 0; alive && i < n; i++) {
		uint32_t stream = (uint32_t)i * 2 + 1;

		if (type == RST_STREAM) {
			put_frame(&b, HEADERS, 5, stream, get, 3);
			put_frame(&b, RST_STREAM, 0, stream, "\0\0\0\10", 4);
		} else if (type == CONTINUATION) {
			put_frame(&b, CONTINUATION, 0, 1, filler, 1024);
		} else if (type == SETTINGS) {
			put_frame(&b, SETTINGS, 0, 0, "\0\4\0\0\377\377", 6);
		} else if (type == PING) {
			put_frame(&b, PING, 0, 0, "12345678", 8);
		} else {
			put_frame(&b, WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
		}
		if (b.n < (32 << 10) && i + 1 < n)
			continue;
		alive = push(s, fd, slu_buf_str(&b), b.n);
		slu_buf_reset(&b);
		*most = SLU_MAX(*most, stats(s).held);
	}
	for (int i = 0; alive && i < 20; i++) {
		char c[4096];

		turn(s, 2);
		while (recv(fd, c, sizeof c, 0) > 0)
			;
		alive = !closed(fd);
	}
	slu_buf_done(&b);
	close(fd);
	return !alive;
}

/* CVE-2023-44487 and its kin: cheap frames that make a server work. */
static void test_frames(void)
{
	static const struct {
		unsigned type;
		int n;
		bool hangs_up;
		const char *what;
	} row[] = {
		{ RST_STREAM, 100, false, "a hundred requests that are taken back" },
		{ CONTINUATION, 5, false, "headers in five parts" },
		{ PING, 100, false, "a hundred pings" },
		{ RST_STREAM, 20000, true, "requests that are taken back at once" },
		{ CONTINUATION, 20000, true, "headers that never end" },
		{ SETTINGS, 20000, true, "settings without end" },
		{ PING, 20000, true, "pings whose answers are never read" },
		{ WINDOW_UPDATE, 20000, false, "windows that grow by a byte" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_server_options o = { 0 };
		struct site s;
		size_t most = 0;
		bool hung;

		serve(&s, NULL, &o);
		handled = 0;
		hung = frames(&s, row[i].type, row[i].n, &most);
		ok(hung == row[i].hangs_up, "%s: the server %s", row[i].what,
		   hung ? "hangs up" : "bears them");
		ok(most < (4 << 20) && handled < 2000, "%s: %zu bytes held, %d requests handled",
		   row[i].what, most, handled);
		ok(answers(&s, 0, 1) && answers(&s, 1, 1), "%s: others are answered", row[i].what);
		unserve(&s);
	}
}

static void test_no_body(void)
{
	static const char *const with_body[] = {
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
	};
	struct site s;

	serve(&s, NULL, NULL);
	slu_server_pool(s.server, 0, &(struct slu_pool_options){ .no_body = true });
	for (size_t i = 0; i < SLU_LEN(with_body); i++) {
		int fd = knock(&s, 0, 1);

		push(&s, fd, with_body[i], strlen(with_body[i]));
		ok(strstr(hear(&s, fd), "413"), "a listener without bodies refuses request %zu", i);
		close(fd);
	}
	ok(answers(&s, 0, 1), "a listener without bodies answers a request without one");
	unserve(&s);
}

/* Each allocation of a request fails, alone or with all that follow: that caller may be turned
 * away, but the next one is answered, and no bytes stay counted. */
static void starve(const char *what, const char *request, size_t n)
{
	struct site s;
	long k = 0;
	bool hit = true, good = true;

	serve(&s, NULL, NULL);
	for (int once = 0; once < 2; once++)
		for (k = 0, hit = true; hit && k < 5000; k++) {
			int fd = knock(&s, 0, 1);

			if (once)
				slu_fault_arm_once(k);
			else
				slu_fault_arm(k);
			push(&s, fd, request, n);
			for (int i = 0; i < 3; i++)
				turn(&s, 1);
			hit = slu_fault_disarm();
			close(fd);
			if (good && !answers(&s, 0, 1)) {
				ok(false,
				   "%s: allocation %ld failed, and nobody is answered any more",
				   what, k);
				good = false;
			}
		}
	turn(&s, 20);
	ok(good && k > 3, "%s: %ld allocations may fail, the next caller is answered", what, k);
	ok(!stats(&s).held && !stats(&s).connections, "%s: nothing stays behind (%zu, %u)", what,
	   stats(&s).held, stats(&s).connections);
	unserve(&s);
}

static void test_memory(void)
{
	/* Preface, empty SETTINGS, HEADERS of stream 1: GET / by the static table, END_STREAM. */
	static const char h2[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
				 "\0\0\3\1\5\0\0\0\1\x82\x84\x86";

	static const char body[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";

	starve("HTTP/1", HELLO, sizeof HELLO - 1);
	starve("a body", body, sizeof body - 1);
	starve("HTTP/2", h2, sizeof h2 - 1);
}

int main(void)
{
	struct rlimit lim;

	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
	test_silent();
	test_known_stay();
	test_handshake();
	test_half_bodies();
	test_headers();
	test_frames();
	test_no_body();
	test_memory();
	return tap_done();
}
