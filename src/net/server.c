#include "net/server_internal.h"
#include "net/dial.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define MAX_LISTENERS 8
#define ACCEPT_BURST  64

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static void arm_timer(struct server_peer *p);

/* ---- the end of a connection ---- */

static void peer_free(void *arg)
{
	struct server_peer *p = arg;
	struct slu_server *s = p->s;

	slu_timer_stop(&p->timer);
	slu_timer_stop(&p->stall);
	slu_task_cancel(&p->next_request);
	slu_task_cancel(&p->reap);
	slu_h1_free(p->h1);
	slu_h2_free(p->h2);
	slu_buf_done(&p->sniff);
	slu_free(p->cn);
	slu_free(p);
	net_server_unref(s);
}

static void drained_if_empty(struct slu_server *s)
{
	slu_call_fn *fn = s->drained_fn;

	if (!s->draining || s->peers || !fn)
		return;
	s->drained_fn = NULL;
	slu_timer_stop(&s->grace);
	fn(s->drained_arg);
}

void net_server_peer_drop(struct server_peer *p)
{
	struct slu_server *s = p->s;

	if (p->dead)
		return;
	p->dead = true;
	slu_timer_stop(&p->timer);
	slu_timer_stop(&p->stall);
	slu_task_cancel(&p->next_request);
	if (p->conn) {
		s->st.bytes_in += slu_conn_bytes_in(p->conn);
		s->st.bytes_out += slu_conn_bytes_out(p->conn);
	}
	slu_conn_close(p->conn);
	p->conn = NULL;
	if (p->prev)
		p->prev->next = p->next;
	else
		s->peers = p->next;
	if (p->next)
		p->next->prev = p->prev;
	s->st.connections--;
	net_server_pool_forget(p);
	while (p->exchanges)
		net_server_exchange_gone(p->exchanges);
	net_server_pool_leave(p->pool, p->source);
	slu_task_defer(&p->reap, s->loop, peer_free, p); /* not inside its callback */
	drained_if_empty(s);
}

static void on_timer(void *arg)
{
	struct server_peer *p = arg;

	if (p->proto == PROTO_H1 && p->receiving && !p->finishing) {
		net_server_h1_refuse(p, 408, "the request did not arrive in time");
		p->finishing = true;
		slu_conn_finish(p->conn);
		return;
	}
	if (p->proto == PROTO_H2 && !p->finishing) {
		p->finishing = true;
		slu_h2_goaway(p->h2);
		slu_conn_finish(p->conn);
		return;
	}
	net_server_peer_drop(p);
}

static void on_stall(void *arg)
{
	net_server_peer_drop(arg);
}

/* Start the timer of the connection: a new one waits for its handshake and the first byte of a
 * request, one with half a request for the rest, an idle one for the next request. */
static void arm_timer(struct server_peer *p)
{
	const struct slu_server_options *o = &p->s->o;
	bool receiving = p->proto == PROTO_H1 && slu_h1_state(p->h1) == SLU_H1_RECEIVING;

	if (p->dead || p->finishing)
		return;
	if (p->exchanges) {
		slu_timer_stop(&p->timer);
		p->receiving = false;
		return;
	}
	/* The timer of a request starts once; further bytes do not extend it. */
	if (receiving && p->receiving && slu_timer_armed(&p->timer))
		return;
	/* The end of a handshake does not extend the timer of a silent connection, either. */
	if (!receiving && !p->asked && slu_timer_armed(&p->timer))
		return;
	p->receiving = receiving;
	slu_timer_start(&p->timer, p->s->loop,
			receiving  ? o->request_ns
			: p->asked ? o->idle_ns
				   : o->handshake_ns,
			on_timer, p);
}

/* ---- HTTP/2 ---- */

static void late_stream(void *arg)
{
	struct slu_exchange *x = arg;
	struct server_peer *p = x->peer;
	struct slu_h2_stream *s = x->stream;

	p->s->st.bad_requests++;
	net_server_exchange_free(x);
	net_server_h2_refuse(s, 408, "the request did not arrive in time");
	net_server_peer_answered(p);
}

static void h2_on_head(void *arg, struct slu_h2_stream *s)
{
	struct server_peer *p = arg;
	const char *method, *path;
	struct slu_exchange *x;
	int rc;

	if (p->dead)
		return;
	if (slu_h2_headers_cut(s)) {
		p->s->st.bad_requests++;
		net_server_h2_refuse(s, 431, "the header fields are too large");
		return;
	}
	x = net_server_exchange_new(p);
	if (!x) {
		slu_h2_reset(s, SLU_H2_REFUSED_STREAM);
		return;
	}
	x->stream = s;
	slu_h2_headers_take(s, &x->headers);
	method = slu_headers_get(&x->headers, ":method");
	path = slu_headers_get(&x->headers, ":path");
	rc = net_server_exchange_prepare(x, method ? method : "", path ? path : "");
	if (rc < 0) {
		net_server_exchange_free(x);
		p->s->st.bad_requests++;
		if (rc == -EINVAL)
			net_server_h2_refuse(s, 400, "the target is not a path");
		else
			slu_h2_reset(s, SLU_H2_REFUSED_STREAM);
		return;
	}
	slu_h2_set_user(s, x);
	if (p->s->o.early && p->s->o.early(&x->q)) {
		arm_timer(p);
		net_server_exchange_hand_over(x);
		return;
	}
	slu_timer_start(&x->late, p->s->loop, p->s->o.request_ns, late_stream, x);
	arm_timer(p);
}

static void h2_on_data(void *arg, struct slu_h2_stream *s, const uint8_t *b, size_t n)
{
	struct server_peer *p = arg;
	struct slu_exchange *x = slu_h2_user(s);
	struct slu_server *sv = p->s;
	int rc = 0;

	if (x && x->hold)
		x->owed += n;
	else
		slu_h2_consume(s, n);
	if (!p->dead && x && x->sink.data) {
		x->sink.data(x->sink.arg, b, n);
		return;
	}
	if (p->dead || !x || x->handed)
		return; /* the request was refused, or answered before its end: ignore the rest */
	x->body.max = p->pool->o.max_body;
	rc = n > x->body.max ? -EMSGSIZE : slu_buf_add(&x->body, b, n);
	if (!rc)
		return;
	sv->st.bad_requests++;
	net_server_exchange_free(x);
	if (rc == -EMSGSIZE)
		net_server_h2_refuse(s, 413, "the body is too large");
	else
		net_server_h2_refuse(s, 503, "too many requests at once");
	arm_timer(p);
}

static void h2_on_end(void *arg, struct slu_h2_stream *s)
{
	struct server_peer *p = arg;
	struct slu_exchange *x = slu_h2_user(s);

	if (p->dead || !x)
		return;
	if (!x->handed)
		net_server_exchange_hand_over(x);
	else if (x->sink.end)
		x->sink.end(x->sink.arg);
}

static void h2_on_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	struct server_peer *p = arg;
	struct slu_exchange *x = slu_h2_user(s);

	(void)code, (void)refused;
	if (x)
		net_server_exchange_gone(x);
	if (!p->dead)
		arm_timer(p);
}

static void run_drained(void *arg)
{
	struct slu_exchange *x = arg;

	if (x->drain_fn)
		x->drain_fn(x->drain_arg);
}

static void h2_on_drained(void *arg, struct slu_h2_stream *s)
{
	struct server_peer *p = arg;
	struct slu_exchange *x = slu_h2_user(s);

	if (!p->dead && x && x->drain_fn)
		slu_task_defer(&x->drained, p->s->loop, run_drained, x);
}

static const struct slu_h2_ops h2_ops = {
	.head = h2_on_head,
	.data = h2_on_data,
	.end = h2_on_end,
	.closed = h2_on_closed,
	.drained = h2_on_drained,
};

static int start_h2(struct server_peer *p, struct slu_error *err)
{
	struct slu_h2_options o = { .server = true,
				    .max_streams = p->pool->o.max_streams,
				    .max_header_bytes = p->s->o.max_header_bytes };

	p->h2 = slu_h2_new(&o, &h2_ops, p);
	if (!p->h2)
		return slu_fail(err, -ENOMEM, "no memory for HTTP/2");
	p->proto = PROTO_H2;
	return 0;
}

/* ---- HTTP/1.1 ---- */

static int start_h1(struct server_peer *p, struct slu_error *err)
{
	struct slu_h1_options o = { .max_body = p->pool->o.max_body,
				    .max_header_bytes = p->s->o.max_header_bytes };

	p->h1 = slu_h1_new(&o);
	if (!p->h1)
		return slu_fail(err, -ENOMEM, "no memory for HTTP/1.1");
	p->proto = PROTO_H1;
	return 0;
}

/* A request may have become complete, or broken. */
static int h1_look(struct server_peer *p)
{
	struct slu_exchange *x;
	int rc;

	if (p->exchanges || p->finishing)
		return 0;
	switch (slu_h1_state(p->h1)) {
	case SLU_H1_BAD:
		net_server_h1_refuse(p, slu_h1_bad_status(p->h1), slu_h1_bad_reason(p->h1));
		p->finishing = true;
		slu_conn_finish(p->conn);
		return 0;
	case SLU_H1_READY:
		x = net_server_exchange_new(p);
		if (!x)
			return -ENOMEM;
		rc = net_server_exchange_prepare(x, slu_h1_method(p->h1), slu_h1_target(p->h1));
		if (rc < 0) {
			net_server_exchange_free(x);
			if (rc != -EINVAL)
				return rc;
			net_server_h1_refuse(p, 400, "the target is not a path");
			p->finishing = true;
			slu_conn_finish(p->conn);
			return 0;
		}
		x->headers = *slu_h1_headers(p->h1);
		x->body = *slu_h1_body(p->h1);
		*slu_h1_headers(
			p->h1) = (struct slu_headers){ .max_bytes = p->s->o.max_header_bytes };
		*slu_h1_body(p->h1) = (struct slu_buf){ 0 };
		slu_timer_stop(&p->timer);
		p->receiving = false;
		net_server_exchange_hand_over(x);
		return 0;
	default:
		return 0;
	}
}

static void h1_next(void *arg)
{
	struct server_peer *p = arg;

	p->depth++;
	if (slu_h1_next(p->h1) < 0 || h1_look(p) < 0) {
		p->depth--;
		net_server_peer_drop(p);
		return;
	}
	p->depth--;
	if (!p->dead) {
		arm_timer(p);
		slu_conn_pause(p->conn, p->exchanges);
		slu_conn_kick(p->conn);
	}
}

void net_server_peer_answered(struct server_peer *p)
{
	if (p->dead)
		return;
	net_server_pool_weigh(p);
	slu_conn_kick(p->conn);
	if (p->proto == PROTO_H1) {
		if (p->s->draining)
			slu_h1_close_after(p->h1);
		if (!slu_h1_keep_alive(p->h1)) {
			p->finishing = true;
			slu_conn_finish(p->conn);
		} else {
			slu_task_defer(&p->next_request, p->s->loop, h1_next, p);
		}
		return;
	}
	if (p->s->draining && !p->exchanges) {
		p->finishing = true;
		slu_conn_finish(p->conn);
		return;
	}
	arm_timer(p);
}

/* ---- bytes ---- */

static void peer_open(void *arg, const char *alpn)
{
	struct server_peer *p = arg;
	struct slu_error err = { 0 };
	int rc = 0;

	if (p->tls) {
		p->cn = slu_conn_peer_cn(p->conn);
		rc = !strcmp(alpn, "h2") ? start_h2(p, &err) : start_h1(p, &err);
		arm_timer(p);
	}
	if (rc < 0)
		net_server_peer_drop(p);
}

static int feed(struct server_peer *p, const uint8_t *b, size_t n, struct slu_error *err)
{
	int rc;

	if (p->proto == PROTO_H2) {
		rc = slu_h2_recv(p->h2, b, n, err);
	} else {
		rc = slu_h1_recv(p->h1, b, n);
		if (!rc && !p->dead)
			rc = h1_look(p);
		if (rc < 0)
			slu_fail(err, rc, "HTTP/1.1: %s", strerror(-rc));
		if (!rc && !p->dead) {
			/* While one request is answered the next ones wait in the kernel. */
			if (p->exchanges)
				slu_conn_pause(p->conn, true);
			arm_timer(p);
		}
	}
	if (!p->dead)
		slu_conn_kick(p->conn);
	net_server_pool_weigh(p);
	return rc;
}

static int peer_data(void *arg, const uint8_t *b, size_t n, struct slu_error *err)
{
	struct server_peer *p = arg;
	size_t known;
	int rc;

	if (p->finishing)
		return 0;
	p->depth++;
	if (p->proto != PROTO_UNKNOWN) {
		rc = feed(p, b, n, err);
		p->depth--;
		return rc;
	}
	/* Without TLS the first bytes tell the protocol: HTTP/2 begins with its preface. */
	rc = slu_buf_add(&p->sniff, b, n);
	known = SLU_MIN(p->sniff.n, sizeof preface - 1);
	if (!rc && memcmp(p->sniff.p, preface, known))
		rc = start_h1(p, err);
	else if (!rc && known == sizeof preface - 1)
		rc = start_h2(p, err);
	if (!rc && p->proto != PROTO_UNKNOWN) {
		struct slu_buf first = p->sniff;

		p->sniff = (struct slu_buf){ 0 };
		rc = feed(p, (const uint8_t *)first.p, first.n, err);
		slu_buf_done(&first);
	}
	p->depth--;
	return rc;
}

static int peer_fill(void *arg, struct slu_buf *out, struct slu_error *err)
{
	struct server_peer *p = arg;
	size_t before = out->n;
	int rc = 0;

	p->depth++;
	if (p->proto == PROTO_H2) {
		rc = slu_h2_send(p->h2, out, SLU_CONN_BATCH, err);
		if (!p->dead && !rc && out->n == before && slu_h2_is_over(p->h2) && !p->finishing) {
			p->finishing = true;
			slu_conn_finish(p->conn);
		}
	} else if (p->proto == PROTO_H1) {
		bool had = slu_h1_unsent(p->h1);

		rc = slu_h1_send(p->h1, out);
		if (!had && p->exchanges && p->exchanges->begun && p->exchanges->drain_fn)
			slu_task_defer(&p->exchanges->drained, p->s->loop, run_drained,
				       p->exchanges);
	}
	p->depth--;
	if (p->dead)
		return rc;
	net_server_pool_weigh(p);
	if (out->n > before)
		slu_timer_start(&p->stall, p->s->loop, p->s->o.request_ns, on_stall, p);
	else
		slu_timer_stop(&p->stall);
	return rc;
}

static void peer_closed(void *arg, int code, const struct slu_error *err)
{
	struct server_peer *p = arg;

	(void)err;
	if (code && p->proto == PROTO_UNKNOWN && p->tls)
		p->s->st.tls_failed++;
	p->conn = NULL;
	net_server_peer_drop(p);
}

static const struct slu_conn_ops conn_ops = {
	.open = peer_open,
	.data = peer_data,
	.fill = peer_fill,
	.closed = peer_closed,
};

/* ---- accepting ---- */

static void accept_socket(struct server_listener *l, int fd)
{
	struct slu_server *s = l->s;
	struct server_source *source;
	struct server_peer *p;
	struct ucred cred;
	socklen_t len = sizeof cred;

	source = net_server_pool_admit(s, &l->pool, fd);
	p = source ? slu_calloc(1, sizeof *p) : NULL;
	if (!p) {
		if (source)
			net_server_pool_leave(&l->pool, source);
		s->st.refused++;
		close(fd);
		return;
	}
	p->s = s;
	p->pool = &l->pool;
	p->source = source;
	p->listener = l->index;
	p->tls = l->tls;
	p->uid = (uid_t)-1;
	p->sniff = SLU_BUF_INIT(128 << 10);
	slu_socket_peer(fd, p->name, sizeof p->name);
	if (l->addr.kind == SLU_ADDR_UNIX) {
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
			p->uid = cred.uid;
	} else {
		slu_socket_tune(fd);
	}
	if (slu_conn_open(s->loop, fd, l->tls, NULL, &conn_ops, p, &p->conn, NULL) < 0) {
		net_server_pool_leave(&l->pool, source);
		s->st.refused++;
		slu_free(p);
		return;
	}
	s->refs++;
	s->st.accepted++;
	s->st.connections++;
	p->next = s->peers;
	if (p->next)
		p->next->prev = p;
	s->peers = p;
	arm_timer(p);
}

static void listen_again(void *arg);

static void on_acceptable(uv_poll_t *h, int status, int events)
{
	struct server_listener *l = h->data;

	(void)events;
	if (status < 0)
		return;
	for (int i = 0; i < ACCEPT_BURST && l->poll; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			    errno == ENOBUFS) {
				uv_poll_stop(l->poll);
				slu_timer_start(&l->pause, l->s->loop, SLU_NS_PER_S / 10,
						listen_again, l);
			}
			return;
		}
		accept_socket(l, fd);
	}
}

static void listen_again(void *arg)
{
	struct server_listener *l = arg;

	uv_poll_start(l->poll, UV_READABLE, on_acceptable);
}

static void free_handle(uv_handle_t *h)
{
	slu_free(h);
}

static void close_listener(struct server_listener *l)
{
	slu_timer_stop(&l->pause);
	if (!l->poll)
		return;
	uv_poll_stop(l->poll);
	uv_close((uv_handle_t *)l->poll, free_handle);
	l->poll = NULL;
	close(l->fd);
	if (l->addr.kind == SLU_ADDR_UNIX)
		unlink(l->addr.path);
}

int slu_server_listen(struct slu_server *s, const struct slu_addr *a, struct slu_tls *tls,
		      unsigned mode, struct slu_error *err)
{
	struct server_listener *l;
	int fd, rc;

	if (s->n_listeners == MAX_LISTENERS)
		return slu_fail(err, -ENOSPC, "more than %d listeners", MAX_LISTENERS);
	l = &s->listeners[s->n_listeners];
	memset(l, 0, sizeof *l);
	fd = slu_listen(a, mode, &l->port, err);
	if (fd < 0)
		return fd;
	l->poll = slu_malloc(sizeof *l->poll);
	rc = l->poll ? uv_poll_init(slu_loop_uv(s->loop), l->poll, fd) : -ENOMEM;
	if (rc < 0) {
		slu_free(l->poll);
		close(fd);
		return slu_fail(err, rc, "cannot listen: %s", strerror(-rc));
	}
	l->s = s;
	l->fd = fd;
	l->index = s->n_listeners;
	l->addr = *a;
	l->tls = slu_tls_ref(tls);
	l->poll->data = l;
	l->pool.server = s;
	slu_server_pool(s, l->index,
			&(struct slu_pool_options){ .one_source = a->kind == SLU_ADDR_UNIX });
	uv_poll_start(l->poll, UV_READABLE, on_acceptable);
	return s->n_listeners++;
}

void slu_server_pool(struct slu_server *s, int listener, const struct slu_pool_options *o)
{
	struct server_pool *g = &s->listeners[listener].pool;

	net_server_pool_init(g, o, s->o.max_connections);
	if (!g->o.max_body && !o->no_body)
		g->o.max_body = s->o.max_body;
	if (!g->o.max_streams)
		g->o.max_streams = s->o.max_streams;
}

uint16_t slu_server_port(const struct slu_server *s, int listener)
{
	return s->listeners[listener].port;
}

void slu_server_tls(struct slu_server *s, int listener, struct slu_tls *tls)
{
	struct server_listener *l = &s->listeners[listener];

	slu_tls_ref(tls);
	slu_tls_unref(l->tls);
	l->tls = tls;
}

/* ---- life ---- */

struct slu_server *slu_server_new(struct slu_loop *l, const struct slu_server_options *o)
{
	struct slu_server *s = slu_calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->listeners = slu_calloc(MAX_LISTENERS, sizeof *s->listeners);
	if (!s->listeners) {
		slu_free(s);
		return NULL;
	}
	s->loop = l;
	s->refs = 1;
	s->o = *o;
	if (!s->o.max_body)
		s->o.max_body = 4 << 20;
	if (!s->o.max_header_bytes)
		s->o.max_header_bytes = 64 << 10;
	if (!s->o.handshake_ns)
		s->o.handshake_ns = 10 * SLU_NS_PER_S;
	if (!s->o.request_ns)
		s->o.request_ns = 30 * SLU_NS_PER_S;
	if (!s->o.idle_ns)
		s->o.idle_ns = 120 * SLU_NS_PER_S;
	return s;
}

void net_server_unref(struct slu_server *s)
{
	if (--s->refs)
		return;
	slu_free(s->listeners);
	slu_free(s);
}

static void close_all(struct slu_server *s)
{
	for (int i = 0; i < s->n_listeners; i++)
		close_listener(&s->listeners[i]);
	while (s->peers)
		net_server_peer_drop(s->peers);
}

static void grace_over(void *arg)
{
	struct slu_server *s = arg;

	while (s->peers)
		net_server_peer_drop(s->peers);
	drained_if_empty(s);
}

void slu_server_drain(struct slu_server *s, int64_t grace_ns, slu_call_fn *fn, void *arg)
{
	struct server_peer *next;

	s->draining = true;
	s->drained_fn = fn;
	s->drained_arg = arg;
	for (int i = 0; i < s->n_listeners; i++)
		close_listener(&s->listeners[i]);
	for (struct server_peer *p = s->peers; p; p = next) {
		next = p->next;
		if (p->proto == PROTO_UNKNOWN) {
			net_server_peer_drop(p);
			continue;
		}
		if (p->proto == PROTO_H2)
			slu_h2_goaway(p->h2);
		if (!p->exchanges && !p->finishing && !slu_task_queued(&p->next_request)) {
			p->finishing = true;
			slu_conn_finish(p->conn);
		} else {
			slu_conn_kick(p->conn);
		}
	}
	/* The callback never comes from inside. */
	slu_timer_start(&s->grace, s->loop, s->peers ? grace_ns : 0, grace_over, s);
}

void slu_server_free(struct slu_server *s)
{
	if (!s)
		return;
	s->drained_fn = NULL;
	s->draining = s->closed = true;
	slu_timer_stop(&s->grace);
	close_all(s);
	for (int i = 0; i < s->n_listeners; i++) {
		net_server_pool_done(&s->listeners[i].pool);
		slu_tls_unref(s->listeners[i].tls);
		s->listeners[i].tls = NULL;
	}
	net_server_unref(s);
}

void slu_server_stats(const struct slu_server *s, struct slu_server_stats *out)
{
	*out = s->st;
	for (int i = 0; i < s->n_listeners; i++)
		out->held += s->listeners[i].pool.bytes;
	for (const struct server_peer *p = s->peers; p; p = p->next) {
		out->bytes_in += slu_conn_bytes_in(p->conn);
		out->bytes_out += slu_conn_bytes_out(p->conn);
	}
}
