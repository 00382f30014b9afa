#include "net/conn.h"
#include "net/tls_internal.h"

#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <openssl/err.h>

#define READ_SIZE   (64 << 10)
#define READ_ROUNDS 16 /* reads in one turn; then other connections get theirs */
#define WRITE_LIMIT (1 << 20)

struct slu_conn {
	uv_poll_t poll;
	struct slu_loop *loop;
	struct slu_tls *tls;
	SSL *ssl;
	int fd;
	const struct slu_conn_ops *ops;
	void *arg;
	struct slu_task flush, again;
	struct slu_timer linger;
	struct slu_buf out;
	size_t out_at; /* sent so far */
	int events;
	bool handshaking, open, paused, finishing, lingering, dead;
	bool write_blocked;                      /* the kernel is full */
	bool read_wants_write, write_wants_read; /* TLS crosses over */
	uint64_t bytes_in, bytes_out;
};

static void on_poll(uv_poll_t *h, int status, int events);
static void flush(void *arg);

static void on_closed(uv_handle_t *h)
{
	struct slu_conn *c = h->data;

	close(c->fd);
	slu_tls_session_free(c->ssl);
	slu_tls_unref(c->tls);
	slu_buf_done(&c->out);
	slu_free(c);
}

void slu_conn_close(struct slu_conn *c)
{
	if (!c || c->dead)
		return;
	c->dead = true;
	slu_task_cancel(&c->flush);
	slu_task_cancel(&c->again);
	slu_timer_stop(&c->linger);
	uv_poll_stop(&c->poll);
	uv_close((uv_handle_t *)&c->poll, on_closed);
}

static void fail_conn(struct slu_conn *c, int code, const struct slu_error *err)
{
	const struct slu_conn_ops *ops = c->ops;
	void *arg = c->arg;
	struct slu_error copy = { 0 };

	if (c->dead)
		return;
	if (err)
		copy = *err;
	slu_conn_close(c);
	ops->closed(arg, code, &copy);
}

static void set_events(struct slu_conn *c)
{
	int want = 0;

	if (c->dead)
		return;
	if (!c->paused || c->handshaking || c->write_wants_read)
		want |= UV_READABLE;
	if (c->write_blocked || c->read_wants_write)
		want |= UV_WRITABLE;
	if (c->paused)
		want |= UV_DISCONNECT; /* even while reading is paused, notice that the peer left */
	if (want == c->events)
		return;
	c->events = want;
	if (want)
		uv_poll_start(&c->poll, want, on_poll);
	else
		uv_poll_stop(&c->poll);
}

/* n > 0 bytes; 0 clean end; -EAGAIN; another negative errno with err filled. */
static ssize_t read_some(struct slu_conn *c, uint8_t *p, size_t n, struct slu_error *err)
{
	ssize_t r;
	int kind;

	if (!c->ssl) {
		r = recv(c->fd, p, n, 0);
		if (r >= 0)
			return r;
		if (errno == EAGAIN || errno == EINTR)
			return -EAGAIN;
		return slu_fail(err, -errno, "connection broke: %s", strerror(errno));
	}
	errno = 0;
	r = SSL_read(c->ssl, p, (int)n);
	if (r > 0)
		return r;
	kind = SSL_get_error(c->ssl, (int)r);
	c->read_wants_write = kind == SSL_ERROR_WANT_WRITE;
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (kind == SSL_ERROR_ZERO_RETURN) {
		ERR_clear_error();
		return 0;
	}
	return slu_tls_explain(c->ssl, (int)r, "read", err);
}

static ssize_t write_some(struct slu_conn *c, const char *p, size_t n, struct slu_error *err)
{
	ssize_t r;
	int kind;

	if (!c->ssl) {
		r = send(c->fd, p, n, MSG_NOSIGNAL);
		if (r >= 0)
			return r;
		if (errno == EAGAIN || errno == EINTR)
			return -EAGAIN;
		return slu_fail(err, -errno, "connection broke: %s", strerror(errno));
	}
	errno = 0;
	r = SSL_write(c->ssl, p, (int)SLU_MIN(n, (size_t)INT32_MAX));
	if (r > 0)
		return r;
	kind = SSL_get_error(c->ssl, (int)r);
	c->write_wants_read = kind == SSL_ERROR_WANT_READ;
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	return slu_tls_explain(c->ssl, (int)r, "write", err);
}

static void become_open(struct slu_conn *c)
{
	const unsigned char *p = NULL;
	unsigned n = 0;
	char alpn[32] = "";

	c->open = true;
	if (c->ssl) {
		SSL_get0_alpn_selected(c->ssl, &p, &n);
		if (n && n < sizeof alpn)
			memcpy(alpn, p, n);
	}
	c->ops->open(c->arg, alpn);
}

static void handshake(struct slu_conn *c)
{
	struct slu_error err = { 0 };
	int r, kind;

	errno = 0;
	r = SSL_do_handshake(c->ssl);
	if (r == 1) {
		c->handshaking = false;
		c->write_blocked = false;
		become_open(c);
		if (!c->dead)
			slu_conn_kick(c);
		return;
	}
	kind = SSL_get_error(c->ssl, r);
	c->write_blocked = kind == SSL_ERROR_WANT_WRITE;
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
		set_events(c);
		return;
	}
	r = slu_tls_explain(c->ssl, r, "handshake", &err);
	fail_conn(c, r, &err);
}

static void read_again(void *arg);

static void read_all(struct slu_conn *c)
{
	uint8_t tmp[READ_SIZE];

	for (int i = 0; i < READ_ROUNDS; i++) {
		struct slu_error err = { 0 };
		ssize_t r;
		int rc;

		if (c->dead || c->paused)
			return;
		r = read_some(c, tmp, sizeof tmp, &err);
		if (r == -EAGAIN) {
			set_events(c);
			return;
		}
		if (r <= 0) {
			fail_conn(c, c->lingering ? 0 : (int)r, &err);
			return;
		}
		if (c->lingering)
			continue;
		c->bytes_in += (uint64_t)r;
		rc = c->ops->data(c->arg, tmp, (size_t)r, &err);
		if (c->dead)
			return;
		if (rc < 0) {
			/* Let the protocol send its last frames (GOAWAY) first. */
			flush(c);
			fail_conn(c, rc, &err);
			return;
		}
		if (!c->ssl && r < (ssize_t)sizeof tmp)
			return; /* the socket is empty */
	}
	/* TLS may hold bytes the kernel knows nothing of. */
	if (!c->dead)
		slu_task_defer(&c->again, c->loop, read_again, c);
}

static void read_again(void *arg)
{
	read_all(arg);
}

static void linger_over(void *arg)
{
	fail_conn(arg, 0, NULL);
}

/* Everything is sent.  Closing while the kernel holds unread bytes would reset the connection and
 * could destroy what we sent last, so keep reading for a moment, until the peer closes. */
static void linger(struct slu_conn *c)
{
	c->lingering = true;
	c->paused = false;
	slu_timer_start(&c->linger, c->loop, SLU_NS_PER_S, linger_over, c);
	set_events(c);
}

static void flush(void *arg)
{
	struct slu_conn *c = arg;
	size_t sent = 0;

	if (c->dead || c->handshaking || !c->open || c->write_blocked || c->lingering)
		return;
	for (;;) {
		struct slu_error err = { 0 };
		ssize_t r;

		if (c->out_at == c->out.n) {
			int rc;

			slu_buf_reset(&c->out);
			c->out_at = 0;
			if (c->out.cap > 4 * SLU_CONN_BATCH)
				slu_buf_done(&c->out);
			rc = c->ops->fill(c->arg, &c->out, &err);
			if (c->dead)
				return;
			if (rc >= 0 && c->out.error)
				rc = c->out.error;
			if (rc < 0) {
				fail_conn(c, rc, &err);
				return;
			}
			if (!c->out.n) {
				if (c->finishing) {
					if (c->ssl)
						SSL_shutdown(c->ssl);
					ERR_clear_error();
					shutdown(c->fd, SHUT_WR);
					linger(c);
				}
				return;
			}
		}
		if (sent >= WRITE_LIMIT) { /* others' turn; a writable socket continues this */
			c->write_blocked = true;
			set_events(c);
			return;
		}
		r = write_some(c, c->out.p + c->out_at, c->out.n - c->out_at, &err);
		if (r == -EAGAIN) {
			c->write_blocked = !c->write_wants_read;
			set_events(c);
			return;
		}
		if (r < 0) {
			fail_conn(c, (int)r, &err);
			return;
		}
		c->out_at += (size_t)r;
		c->bytes_out += (uint64_t)r;
		sent += (size_t)r;
	}
}

static int socket_error(int fd, int otherwise)
{
	socklen_t len = sizeof(int);
	int e = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 || !e)
		return otherwise;
	return -e;
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct slu_conn *c = h->data;
	struct slu_error err = { 0 };
	int rc;

	if (c->dead)
		return;
	if (status < 0) {
		/* libuv has stopped polling and reports EBADF for every error of the socket.
		 * Bytes that arrived before the error can still be read. */
		c->events = 0;
		c->write_blocked = false;
		if (c->handshaking)
			handshake(c);
		else if (c->open)
			read_all(c);
		if (c->dead)
			return;
		rc = socket_error(c->fd, status);
		slu_fail(&err, rc, "connection broke: %s", strerror(-rc));
		fail_conn(c, rc, &err);
		return;
	}
	if ((events & UV_DISCONNECT) && c->paused) {
		fail_conn(c, 0, NULL);
		return;
	}
	if (c->handshaking) {
		handshake(c);
		if (c->dead || c->handshaking)
			return;
		/* read at once the data that came with the last handshake record */
		events |= UV_READABLE;
	}
	if ((events & UV_READABLE) || c->read_wants_write) {
		if (c->write_wants_read) {
			c->write_wants_read = false;
			flush(c);
		}
		if (!c->dead)
			read_all(c);
	}
	if (!c->dead && (events & UV_WRITABLE) && c->write_blocked) {
		c->write_blocked = false;
		flush(c);
	}
	set_events(c);
}

static void first_step(void *arg)
{
	struct slu_conn *c = arg;

	if (c->handshaking) {
		handshake(c);
	} else {
		become_open(c);
		if (!c->dead)
			slu_conn_kick(c);
	}
	set_events(c);
}

int slu_conn_open(struct slu_loop *l, int fd, struct slu_tls *tls, const char *host,
		  const struct slu_conn_ops *ops, void *arg, struct slu_conn **out,
		  struct slu_error *err)
{
	struct slu_conn *c = slu_calloc(1, sizeof *c);
	int rc = -ENOMEM;

	if (!c)
		goto bad;
	c->loop = l;
	c->fd = fd;
	c->ops = ops;
	c->arg = arg;
	c->out = SLU_BUF_INIT(64 << 20);
	if (tls) {
		c->ssl = slu_tls_session(tls, host, err);
		if (!c->ssl || SSL_set_fd(c->ssl, fd) != 1) {
			rc = -EINVAL;
			goto bad;
		}
		c->tls = slu_tls_ref(tls);
		c->handshaking = true;
	}
	rc = uv_poll_init(slu_loop_uv(l), &c->poll, fd);
	if (rc < 0)
		goto bad;
	c->poll.data = c;
	slu_task_defer(&c->again, l, first_step, c); /* polling begins there */
	*out = c;
	return 0;
bad:
	if (rc == -ENOMEM)
		slu_fail(err, rc, "no memory for a connection");
	if (c) {
		slu_tls_session_free(c->ssl);
		slu_tls_unref(c->tls);
		slu_free(c);
	}
	close(fd);
	return rc;
}

void slu_conn_kick(struct slu_conn *c)
{
	if (!c->dead)
		slu_task_defer(&c->flush, c->loop, flush, c);
}

void slu_conn_finish(struct slu_conn *c)
{
	c->finishing = true;
	slu_conn_kick(c);
}

void slu_conn_pause(struct slu_conn *c, bool pause)
{
	if (c->dead || c->paused == pause)
		return;
	c->paused = pause;
	set_events(c);
	if (!pause && c->ssl && c->open)
		slu_task_defer(&c->again, c->loop, read_again, c);
}

uint64_t slu_conn_bytes_in(const struct slu_conn *c)
{
	return c->bytes_in;
}

uint64_t slu_conn_bytes_out(const struct slu_conn *c)
{
	return c->bytes_out;
}

char *slu_conn_peer_cn(const struct slu_conn *c)
{
	return c->ssl ? slu_tls_peer_cn(c->ssl) : NULL;
}
