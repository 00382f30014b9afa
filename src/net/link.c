#include "net/link.h"
#include "net/conn.h"
#include "net/dial.h"

#include <stdio.h>

struct slu_link {
	struct slu_loop *loop;
	struct slu_link_options o;
	const struct slu_link_ops *ops;
	void *arg;
	struct slu_dial *dial;
	struct slu_conn *conn;
	struct slu_h2 *h2;
	struct slu_timer timer; /* connect, then PING */
	struct slu_task reap, drain;
	int depth; /* inside slu_h2_recv or slu_h2_send */
	bool ready, draining, dead;
	bool ping_out; /* a PING waits for its answer */
	uint64_t seen; /* bytes_in at the last tick */
	uint64_t bytes_in, bytes_out;
};

static void link_free(void *arg)
{
	struct slu_link *k = arg;

	slu_timer_stop(&k->timer);
	slu_task_cancel(&k->reap);
	slu_task_cancel(&k->drain);
	slu_dial_cancel(k->dial);
	slu_conn_close(k->conn);
	slu_h2_free(k->h2);
	slu_tls_unref(k->o.tls);
	slu_free(k);
}

void slu_link_close(struct slu_link *k)
{
	if (!k || k->dead)
		return;
	k->dead = true;
	slu_timer_stop(&k->timer);
	slu_conn_close(k->conn);
	k->conn = NULL;
	if (k->depth)
		slu_task_defer(&k->reap, k->loop, link_free, k);
	else
		link_free(k);
}

/* Close and tell the owner. */
static void go_down(struct slu_link *k, int code, const struct slu_error *err)
{
	const struct slu_link_ops *ops = k->ops;
	void *arg = k->arg;
	struct slu_error copy = { 0 };

	if (k->dead)
		return;
	if (err)
		copy = *err;
	k->ready = false;
	slu_conn_close(k->conn);
	k->conn = NULL;
	/* Close the streams before telling the owner. */
	if (!k->depth && k->h2) {
		struct slu_h2 *h2 = k->h2;

		k->h2 = NULL;
		k->depth++;
		slu_h2_free(h2);
		k->depth--;
	}
	if (k->dead) /* the owner closed the link in a stream's callback */
		return;
	k->dead = true;
	slu_timer_stop(&k->timer);
	ops->down(arg, code, &copy);
	if (k->depth)
		slu_task_defer(&k->reap, k->loop, link_free, k);
	else
		link_free(k);
}

/* ---- from the HTTP/2 machine ---- */

static void on_head(void *arg, struct slu_h2_stream *s)
{
	struct slu_link *k = arg;

	if (!k->dead)
		k->ops->head(k->arg, s);
}

static void on_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	struct slu_link *k = arg;

	if (!k->dead)
		k->ops->data(k->arg, s, p, n);
}

static void on_end(void *arg, struct slu_h2_stream *s)
{
	struct slu_link *k = arg;

	if (!k->dead)
		k->ops->end(k->arg, s);
}

static void on_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	struct slu_link *k = arg;

	if (!k->dead)
		k->ops->closed(k->arg, s, code, refused);
}

static void arm_ping(struct slu_link *k);

/* SETTINGS arrived.  The first ones make the link usable; before them the number of streams that
 * the server accepts is unknown. */
static void on_settings(void *arg)
{
	struct slu_link *k = arg;

	if (k->dead)
		return;
	if (!k->ready && !k->draining) {
		k->ready = true;
		arm_ping(k);
	}
	if (k->ready)
		k->ops->room(k->arg);
}

static void on_goaway(void *arg, uint32_t code, const char *text)
{
	struct slu_link *k = arg;

	if (k->dead)
		return;
	k->draining = true;
	k->ops->goaway(k->arg, code, text);
}

static void on_pong(void *arg)
{
	struct slu_link *k = arg;

	k->ping_out = false;
}

static const struct slu_h2_ops h2_ops = {
	.head = on_head,
	.data = on_data,
	.end = on_end,
	.closed = on_closed,
	.goaway = on_goaway,
	.settings = on_settings,
	.pong = on_pong,
};

/* ---- from the connection ---- */

static void on_ping_time(void *arg);

static void arm_ping(struct slu_link *k)
{
	slu_timer_start(&k->timer, k->loop, k->ping_out ? k->o.ping_ns / 2 : k->o.ping_ns,
			on_ping_time, k);
}

static void on_ping_time(void *arg)
{
	struct slu_link *k = arg;
	char where[300];

	if (k->ping_out && k->bytes_in == k->seen) {
		struct slu_error err = { 0 };

		slu_addr_text(&k->o.addr, where, sizeof where);
		go_down(k, slu_fail(&err, -ETIMEDOUT, "%s does not answer a PING", where), &err);
		return;
	}
	k->seen = k->bytes_in;
	if (!k->ping_out && slu_h2_ping(k->h2) == 0) {
		k->ping_out = true;
		slu_conn_kick(k->conn);
	} else {
		k->ping_out = false;
	}
	arm_ping(k);
}

static void conn_open(void *arg, const char *alpn)
{
	struct slu_link *k = arg;
	struct slu_h2_options o = { 0 };
	struct slu_error err = { 0 };
	char where[300];

	slu_addr_text(&k->o.addr, where, sizeof where);
	if (k->o.tls && strcmp(alpn, "h2")) {
		go_down(k,
			slu_fail(
				&err, -EPROTONOSUPPORT,
				"%s does not offer HTTP/2 (an HTTP/1.1-only gateway in front of it?)",
				where),
			&err);
		return;
	}
	k->h2 = slu_h2_new(&o, &h2_ops, k);
	if (!k->h2) {
		go_down(k, slu_fail(&err, -ENOMEM, "no memory for a connection"), &err);
		return;
	}
	slu_conn_kick(k->conn);
}

static void drained(struct slu_link *k)
{
	if (!k->dead && k->draining && k->h2 && !slu_h2_streams(k->h2) && !slu_h2_wants_send(k->h2))
		go_down(k, 0, NULL);
}

static int conn_data(void *arg, const uint8_t *p, size_t n, struct slu_error *err)
{
	struct slu_link *k = arg;
	uint32_t before = slu_h2_streams(k->h2);
	int rc;

	k->bytes_in += n;
	k->depth++; /* the owner may close the link in any callback */
	rc = slu_h2_recv(k->h2, p, n, err);
	if (!k->dead) {
		slu_conn_kick(k->conn);
		if (rc >= 0 && before != slu_h2_streams(k->h2) && !k->draining)
			k->ops->room(k->arg);
	}
	k->depth--;
	return rc;
}

static int conn_fill(void *arg, struct slu_buf *out, struct slu_error *err)
{
	struct slu_link *k = arg;
	uint32_t before = slu_h2_streams(k->h2);
	int rc;

	k->depth++;
	rc = slu_h2_send(k->h2, out, SLU_CONN_BATCH, err);
	if (!k->dead && rc >= 0) {
		k->bytes_out += out->n;
		if (before != slu_h2_streams(k->h2) && !k->draining)
			k->ops->room(k->arg);
		if (!out->n)
			drained(k);
		if (!k->dead && !out->n && slu_h2_is_over(k->h2))
			rc = slu_fail(err, -EPROTO, "the server broke the HTTP/2 protocol");
	}
	k->depth--;
	return rc;
}

static void conn_closed(void *arg, int code, const struct slu_error *err)
{
	struct slu_link *k = arg;
	struct slu_error why = { 0 };
	char where[300];

	k->conn = NULL; /* the connection frees itself */
	slu_addr_text(&k->o.addr, where, sizeof where);
	if (!code && !k->draining)
		code = slu_fail(&why, -ECONNRESET, "%s closed the connection", where);
	else if (code)
		slu_fail(&why, code, "%s: %s", where, err->text);
	go_down(k, code, &why);
}

static const struct slu_conn_ops conn_ops = {
	.open = conn_open,
	.data = conn_data,
	.fill = conn_fill,
	.closed = conn_closed,
};

static void dialled(void *arg, int fd, const struct slu_error *err)
{
	struct slu_link *k = arg;
	struct slu_error why = { 0 };
	int rc;

	k->dial = NULL;
	if (fd < 0) {
		go_down(k, fd, err);
		return;
	}
	rc = slu_conn_open(k->loop, fd, k->o.tls, k->o.addr.host, &conn_ops, k, &k->conn, &why);
	if (rc < 0)
		go_down(k, rc, &why);
}

static void connect_late(void *arg)
{
	struct slu_link *k = arg;
	struct slu_error err = { 0 };
	char where[300];

	slu_addr_text(&k->o.addr, where, sizeof where);
	go_down(k, slu_fail(&err, -ETIMEDOUT, "%s accepts connections but does not answer", where),
		&err);
}

/* ---- the owner's side ---- */

int slu_link_open(struct slu_loop *l, const struct slu_link_options *o,
		  const struct slu_link_ops *ops, void *arg, struct slu_link **out)
{
	struct slu_link *k = slu_calloc(1, sizeof *k);
	int rc;

	if (!k)
		return -ENOMEM;
	k->loop = l;
	k->o = *o;
	k->ops = ops;
	k->arg = arg;
	if (!k->o.connect_ns)
		k->o.connect_ns = 10 * SLU_NS_PER_S;
	if (!k->o.ping_ns)
		k->o.ping_ns = 30 * SLU_NS_PER_S;
	slu_tls_ref(o->tls);
	rc = slu_dial_start(l, &o->addr, k->o.connect_ns, o->rotate, dialled, k, &k->dial);
	if (rc < 0) {
		link_free(k);
		return rc;
	}
	/* slu_dial() has a timeout of its own; this one covers the handshake. */
	slu_timer_start(&k->timer, l, k->o.connect_ns + SLU_NS_PER_MS, connect_late, k);
	*out = k;
	return 0;
}

static void close_if_drained(void *arg)
{
	struct slu_link *k = arg;

	if (k->ready)
		drained(k);
	else
		go_down(k, 0, NULL);
}

void slu_link_drain(struct slu_link *k)
{
	k->draining = true;
	slu_task_defer(&k->drain, k->loop, close_if_drained, k);
}

bool slu_link_ready(const struct slu_link *k)
{
	return k->ready && !k->dead && !k->draining;
}

uint32_t slu_link_room(const struct slu_link *k)
{
	uint32_t max, n;

	if (!slu_link_ready(k))
		return 0;
	max = slu_h2_peer_max(k->h2);
	if (max > 1000)
		max = 1000;
	if (k->o.max_streams)
		max = SLU_MIN(max, k->o.max_streams);
	n = slu_h2_streams(k->h2);
	return n < max ? max - n : 0;
}

uint32_t slu_link_streams(const struct slu_link *k)
{
	return k->h2 ? slu_h2_streams(k->h2) : 0;
}

uint64_t slu_link_bytes_in(const struct slu_link *k)
{
	return k->bytes_in;
}

uint64_t slu_link_bytes_out(const struct slu_link *k)
{
	return k->bytes_out;
}

int slu_link_request(struct slu_link *k, const struct slu_h2_header *hdr, size_t n,
		     const void *body, size_t body_len, void *user, struct slu_h2_stream **out)
{
	int rc;

	if (!slu_link_ready(k))
		return -EPIPE;
	rc = slu_h2_request(k->h2, hdr, n, body, body_len, false, user, out);
	if (!rc)
		slu_conn_kick(k->conn);
	return rc;
}

void slu_link_reset(struct slu_link *k, struct slu_h2_stream *s)
{
	if (k->dead || !k->conn)
		return;
	slu_h2_reset(s, SLU_H2_CANCEL);
	slu_conn_kick(k->conn);
}

void slu_link_consume(struct slu_link *k, struct slu_h2_stream *s, size_t n)
{
	if (k->dead || !k->conn)
		return;
	slu_h2_consume(s, n);
	slu_conn_kick(k->conn);
}
