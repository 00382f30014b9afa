/* grpc.c — matches over gRPC at a fixed rate from many connections, and how long each answer took.
 *
 *	bench-grpc --port 4242 [--connections 50] [--rate 500] [--seconds 10] [--json]
 *
 * Every match asks for four slots of two cores and is cancelled a second later.  The time of an
 * answer counts from when the question was due, so a server that falls behind is seen; `sent` is the part of it
 * until this program got to send the question, which is no fault of the server's. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "net/link.h"
#include "wire/pb.h"

#define HOLD_NS (1 * SLU_NS_PER_S)

static const char jobspec[] =
	"{\"version\":9999,\"resources\":[{\"type\":\"slot\",\"count\":4,\"label\":\"d\",\"with\":["
	"{\"type\":\"core\",\"count\":2}]}],\"attributes\":{\"system\":{\"duration\":3600}},"
	"\"tasks\":[{\"command\":[\"a\"],\"slot\":\"d\",\"count\":{\"per_slot\":1}}]}";

struct load;

struct peer {
	struct load *l;
	struct slu_link *link;
	bool ready;
};

/* A match, and later its cancel. */
struct job {
	struct load *l;
	struct peer *p;
	struct slu_timer timer;
	int64_t due_ns;
	struct slu_buf answer;
	uint64_t id;
	bool matched;
};

struct load {
	struct slu_loop *loop;
	struct peer *peer;
	uint32_t connections, next, left, open;
	int64_t gap_ns;
	struct slu_timer tick;
	int64_t due_ns;
	uint64_t asked, failed;
	SLU_VEC(int64_t) took, sent; /* nanoseconds since it was due */
	bool up, done;
};

static void ask(struct job *j, const char *path, const struct slu_buf *message)
{
	struct slu_h2_header h[] = {
		{ ":method", "POST", 4, false },
		{ ":scheme", "http", 4, false },
		{ ":path", path, strlen(path), false },
		{ ":authority", "localhost", 9, false },
		{ "te", "trailers", 8, false },
		{ "content-type", "application/grpc", 16, false },
		{ "grpc-timeout", "1S", 2, false },
	};
	struct slu_buf b = SLU_BUF_INIT(64 << 10);
	uint8_t head[5] = { 0, 0, 0, (uint8_t)(message->n >> 8), (uint8_t)message->n };
	struct slu_h2_stream *s;

	slu_buf_add(&b, head, sizeof head);
	slu_buf_add(&b, message->p, message->n);
	if (b.error || slu_link_request(j->p->link, h, SLU_LEN(h), b.p, b.n, j, &s) < 0) {
		fprintf(stderr, "bench-grpc: the server takes no more\n");
		exit(1);
	}
	slu_buf_done(&b);
}

static void cancel(void *arg)
{
	struct job *j = arg;
	struct slu_buf m = SLU_BUF_INIT(64);

	slu_pb_put_varint(&m, 2, j->id);
	slu_buf_reset(&j->answer);
	ask(j, "/fluxion.FluxionService/Cancel", &m);
	slu_buf_done(&m);
}

static void finish(struct job *j)
{
	struct load *l = j->l;

	slu_buf_done(&j->answer);
	slu_free(j);
	l->open--;
	l->done = !l->left && !l->open;
}

static void on_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	struct peer *peer = arg;
	struct job *j = slu_h2_user(s);

	slu_buf_add(&j->answer, p, n);
	slu_link_consume(peer->link, s, n);
}

/* The number in field 2 of a MatchResponse; 0: the match failed. */
static uint64_t number_of(const struct slu_buf *b)
{
	struct slu_pb r;
	struct slu_pb_field f;

	if (b->n < 5)
		return 0;
	r = slu_pb(b->p + 5, b->n - 5);
	while (slu_pb_next(&r, &f) > 0)
		if (f.num == 2)
			return f.u;
	return 0;
}

static void on_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	struct job *j = slu_h2_user(s);
	struct load *l = j->l;

	(void)arg, (void)refused;
	if (j->matched) {
		finish(j);
		return;
	}
	slu_vec_push(&l->took, slu_clock_ns() - j->due_ns);
	j->id = code ? 0 : number_of(&j->answer);
	if (!j->id) {
		l->failed++;
		finish(j);
		return;
	}
	j->matched = true;
	slu_timer_start(&j->timer, l->loop, HOLD_NS, cancel, j);
}

static void on_nothing(void *arg, struct slu_h2_stream *s)
{
	(void)arg, (void)s;
}

static void tick(void *arg)
{
	struct load *l = arg;
	int64_t now = slu_clock_ns();

	while (l->left && l->due_ns <= now) {
		struct job *j = slu_calloc(1, sizeof *j);
		struct slu_buf m = SLU_BUF_INIT(4096);

		j->l = l;
		j->p = &l->peer[l->next++ % l->connections];
		j->due_ns = l->due_ns;
		slu_vec_push(&l->sent, now - l->due_ns);
		j->answer = SLU_BUF_INIT(1 << 20);
		slu_pb_put_str(&m, 1, jobspec);
		slu_pb_put_str(&m, 2, "allocate");
		ask(j, "/fluxion.FluxionService/Match", &m);
		slu_buf_done(&m);
		l->asked++;
		l->open++;
		l->left--;
		l->due_ns += l->gap_ns;
	}
	if (l->left)
		slu_timer_start(&l->tick, l->loop, l->due_ns - now, tick, l);
}

static void on_room(void *arg)
{
	struct peer *p = arg;

	p->ready = true;
	p->l->up = true;
	for (uint32_t i = 0; i < p->l->connections; i++)
		p->l->up &= p->l->peer[i].ready;
}

static void on_down(void *arg, int code, const struct slu_error *err)
{
	(void)arg;
	fprintf(stderr, "bench-grpc: a connection is gone: %s\n", code ? err->text : "closed");
	exit(1);
}

static const struct slu_link_ops ops = {
	.room = on_room,
	.down = on_down,
	.head = on_nothing,
	.data = on_data,
	.end = on_nothing,
	.closed = on_closed,
};

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double ms(const int64_t *sorted, uint32_t n, double part)
{
	return (double)sorted[(uint32_t)((n - 1) * part)] / 1e6;
}

static void report(struct load *l, double rate, double seconds, bool json)
{
	static const double part[] = { 0.5, 0.99, 1 };
	double took[3], sent[3];

	qsort(l->took.p, l->took.n, sizeof *l->took.p, by_time);
	qsort(l->sent.p, l->sent.n, sizeof *l->sent.p, by_time);
	for (int i = 0; i < 3; i++) {
		took[i] = ms(l->took.p, l->took.n, part[i]);
		sent[i] = ms(l->sent.p, l->sent.n, part[i]);
	}
	if (json)
		printf("{\"connections\": %u, \"rate\": %.0f, \"reached\": %.1f, \"matches\": %" PRIu64
		       ", \"failed\": %" PRIu64
		       ", \"p50_ms\": %.2f, \"p99_ms\": %.2f, \"max_ms\": %.2f, \"sent_p99_ms\": %.2f, "
		       "\"sent_max_ms\": %.2f}\n",
		       l->connections, rate, (double)l->asked / seconds, l->asked, l->failed,
		       took[0], took[1], took[2], sent[1], sent[2]);
	else
		printf("connections  rate  reached/s  matches  failed  p50 ms  p99 ms  max ms  sent p99  sent max\n"
		       "%11u  %4.0f  %9.1f  %7" PRIu64 "  %6" PRIu64
		       "  %6.2f  %6.2f  %6.2f  %8.2f  %8.2f\n",
		       l->connections, rate, (double)l->asked / seconds, l->asked, l->failed,
		       took[0], took[1], took[2], sent[1], sent[2]);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "connections", required_argument, NULL, 'c' },
		{ "rate", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	struct load l = { .connections = 50 };
	struct slu_link_options o = {
		.addr = { .kind = SLU_ADDR_TCP, .host = "127.0.0.1", .port = 4242 }
	};
	double rate = 500, seconds = 10;
	bool json = false;
	int64_t began;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'p')
			o.addr.port = (uint16_t)atoi(optarg);
		else if (c == 'c')
			l.connections = (uint32_t)atoi(optarg);
		else if (c == 'r')
			rate = atof(optarg);
		else if (c == 's')
			seconds = atof(optarg);
		else if (c == 'j')
			json = true;
		else
			return 2;
	}
	if (!l.connections || rate <= 0 || rate * seconds < 1)
		return 2;
	l.loop = slu_loop_new();
	l.peer = slu_calloc(l.connections, sizeof *l.peer);
	l.gap_ns = (int64_t)(1e9 / rate);
	l.left = (uint32_t)(rate * seconds);
	for (uint32_t i = 0; i < l.connections; i++) {
		l.peer[i].l = &l;
		slu_link_open(l.loop, &o, &ops, &l.peer[i], &l.peer[i].link);
	}
	if (!slu_loop_run_until(l.loop, &l.up, 10 * SLU_NS_PER_S)) {
		fprintf(stderr, "bench-grpc: no server answers on port %u\n", o.addr.port);
		return 1;
	}
	began = l.due_ns = slu_clock_ns();
	tick(&l);
	slu_loop_run_until(l.loop, &l.done, (int64_t)((seconds + 30) * 1e9));
	seconds = (double)(l.due_ns - began) / 1e9;
	report(&l, rate, seconds, json);
	return l.failed || !l.done;
}
