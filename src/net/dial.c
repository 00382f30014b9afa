#include "net/dial.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#define MAX_ADDRS 16

struct slu_dial {
	struct slu_loop *loop;
	slu_dial_fn *fn;
	void *arg;
	struct slu_timer timer; /* whole attempt */
	struct slu_timer next;  /* this address */
	struct slu_addr addr;
	char text[300];
	uv_getaddrinfo_t resolve;
	bool resolving, cancelled;
	uv_poll_t *poll; /* allocated by itself, because it lives until its close callback */
	int fd;
	struct sockaddr_storage sa[MAX_ADDRS];
	socklen_t sa_len[MAX_ADDRS];
	unsigned n, first, tried;
	int64_t share_ns; /* time for one address */
	int last;         /* errno of the last failure */
};

void slu_socket_tune(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void slu_socket_peer(int fd, char *out, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof sa;
	char ip[INET6_ADDRSTRLEN] = "?";

	snprintf(out, size, "unix");
	if (getpeername(fd, (struct sockaddr *)&sa, &len) < 0)
		return;
	if (sa.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)&sa;

		inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip);
		snprintf(out, size, "%s:%u", ip, ntohs(in->sin_port));
	} else if (sa.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)&sa;

		inet_ntop(AF_INET6, &in->sin6_addr, ip, sizeof ip);
		snprintf(out, size, "[%s]:%u", ip, ntohs(in->sin6_port));
	}
}

/* ---- connecting ---- */

static void free_handle(uv_handle_t *h)
{
	slu_free(h);
}

static void drop_socket(struct slu_dial *d)
{
	if (d->poll) {
		uv_poll_stop(d->poll);
		uv_close((uv_handle_t *)d->poll, free_handle);
		d->poll = NULL;
	}
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

static void dial_free(struct slu_dial *d)
{
	slu_timer_stop(&d->timer);
	slu_timer_stop(&d->next);
	drop_socket(d);
	if (d->resolving) { /* the request is part of this struct: wait for its callback */
		d->cancelled = true;
		uv_cancel((uv_req_t *)&d->resolve);
		return;
	}
	slu_free(d);
}

void slu_dial_cancel(struct slu_dial *d)
{
	if (d)
		dial_free(d);
}

static void finish_dial(struct slu_dial *d, int fd, const struct slu_error *err)
{
	slu_dial_fn *fn = d->fn;
	void *arg = d->arg;
	struct slu_error copy = { 0 };

	if (err)
		copy = *err;
	if (fd >= 0) {
		d->fd = -1;
		slu_socket_tune(fd);
	}
	dial_free(d);
	fn(arg, fd, fd < 0 ? &copy : NULL);
}

static void try_next(void *arg);

static void on_writable(uv_poll_t *h, int status, int events)
{
	struct slu_dial *d = h->data;
	int e = 0, fd = d->fd;
	socklen_t len = sizeof e;

	(void)events;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0)
		e = errno;
	if (!e && status < 0) /* libuv reports EBADF for every error of the socket */
		e = -status;
	if (e) {
		d->last = e;
		try_next(d);
		return;
	}
	uv_poll_stop(d->poll);
	uv_close((uv_handle_t *)d->poll, free_handle);
	d->poll = NULL;
	finish_dial(d, fd, NULL);
}

static void too_late(void *arg)
{
	struct slu_dial *d = arg;
	struct slu_error err = { 0 };
	int rc = slu_fail(&err, -ETIMEDOUT, "%s does not answer", d->text);

	finish_dial(d, rc, &err);
}

static void next_address(void *arg)
{
	struct slu_dial *d = arg;

	d->last = ETIMEDOUT;
	try_next(d);
}

static int begin_connect(struct slu_dial *d, unsigned i)
{
	const struct sockaddr *sa = (const struct sockaddr *)&d->sa[i];
	int rc;

	d->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return -errno;
	if (connect(d->fd, sa, d->sa_len[i]) < 0 && errno != EINPROGRESS)
		return -errno;
	d->poll = slu_malloc(sizeof *d->poll);
	if (!d->poll)
		return -ENOMEM;
	rc = uv_poll_init(slu_loop_uv(d->loop), d->poll, d->fd);
	if (rc < 0) {
		slu_free(slu_take(d->poll));
		return rc;
	}
	d->poll->data = d;
	return uv_poll_start(d->poll, UV_WRITABLE, on_writable);
}

static void try_next(void *arg)
{
	struct slu_dial *d = arg;
	struct slu_error err = { 0 };
	int rc;

	slu_timer_stop(&d->next);
	drop_socket(d);
	while (d->tried < d->n) {
		rc = begin_connect(d, (d->first + d->tried++) % d->n);
		if (!rc) {
			if (d->tried < d->n)
				slu_timer_start(&d->next, d->loop, d->share_ns, next_address, d);
			return;
		}
		d->last = -rc;
		drop_socket(d);
	}
	rc = slu_fail(&err, -(d->last ? d->last : EADDRNOTAVAIL), "cannot connect to %s: %s",
		      d->text, strerror(d->last ? d->last : EADDRNOTAVAIL));
	finish_dial(d, rc, &err);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
	struct slu_dial *d = req->data;
	struct slu_error err = { 0 };

	d->resolving = false;
	if (d->cancelled) {
		uv_freeaddrinfo(res);
		slu_free(d);
		return;
	}
	for (struct addrinfo *a = res; a && d->n < MAX_ADDRS; a = a->ai_next) {
		if (a->ai_addrlen > sizeof d->sa[0])
			continue;
		memcpy(&d->sa[d->n], a->ai_addr, a->ai_addrlen);
		d->sa_len[d->n++] = a->ai_addrlen;
	}
	uv_freeaddrinfo(res);
	if (status < 0 || !d->n) {
		int rc = slu_fail(&err, -EHOSTUNREACH, "cannot resolve %s: %s", d->addr.host,
				  status < 0 ? uv_strerror(status) : "no addresses");

		finish_dial(d, rc, &err);
		return;
	}
	d->share_ns /= d->n;
	d->first %= d->n;
	try_next(d);
}

static bool literal(struct slu_dial *d)
{
	struct sockaddr_in *in = (void *)&d->sa[0];
	struct sockaddr_in6 *in6 = (void *)&d->sa[0];

	if (inet_pton(AF_INET, d->addr.host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(d->addr.port);
		d->sa_len[0] = sizeof *in;
	} else if (inet_pton(AF_INET6, d->addr.host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(d->addr.port);
		d->sa_len[0] = sizeof *in6;
	} else {
		return false;
	}
	return true;
}

int slu_dial_start(struct slu_loop *l, const struct slu_addr *a, int64_t timeout_ns,
		   unsigned rotate, slu_dial_fn *fn, void *arg, struct slu_dial **out)
{
	struct slu_dial *d = slu_calloc(1, sizeof *d);
	char port[8];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };

	if (!d)
		return -ENOMEM;
	d->loop = l;
	d->fn = fn;
	d->arg = arg;
	d->addr = *a;
	d->fd = -1;
	d->first = rotate;
	d->share_ns = timeout_ns;
	slu_addr_text(a, d->text, sizeof d->text);
	slu_timer_start(&d->timer, l, timeout_ns, too_late, d);
	if (a->kind == SLU_ADDR_UNIX) {
		struct sockaddr_un *un = (void *)&d->sa[0];

		un->sun_family = AF_UNIX;
		memcpy(un->sun_path, a->path, sizeof a->path);
		d->sa_len[0] = sizeof *un;
		d->n = 1;
	} else if (literal(d)) {
		d->n = 1;
	}
	if (d->n) {
		slu_timer_start(&d->next, l, 0, try_next, d);
	} else {
		int rc;

		snprintf(port, sizeof port, "%u", a->port);
		d->resolve.data = d;
		rc = uv_getaddrinfo(slu_loop_uv(l), &d->resolve, on_resolved, a->host, port,
				    &hints);
		if (rc < 0) {
			dial_free(d);
			return -ENOMEM;
		}
		d->resolving = true;
	}
	*out = d;
	return 0;
}

/* ---- listening ---- */

static bool is_served(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes;

	if (fd < 0)
		return true;
	yes = connect(fd, (const struct sockaddr *)un, sizeof *un) == 0 || errno == EAGAIN;
	close(fd);
	return yes;
}

static int listen_unix(const struct slu_addr *a, unsigned mode, struct slu_error *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct stat st;
	mode_t old;
	int fd, rc = 0;

	memcpy(un.sun_path, a->path, sizeof a->path);
	if (lstat(a->path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return slu_fail(err, -EEXIST, "%s exists and is not a socket", a->path);
		if (is_served(&un))
			return slu_fail(err, -EADDRINUSE, "%s is served by another process",
					a->path);
		unlink(a->path);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return slu_fail(err, -errno, "cannot make a socket: %s", strerror(errno));
	old = umask(0177);
	if (bind(fd, (struct sockaddr *)&un, sizeof un) < 0)
		rc = -errno;
	umask(old);
	if (!rc && (chmod(a->path, mode ? mode : 0600) < 0 || listen(fd, 128) < 0))
		rc = -errno;
	if (rc < 0) {
		close(fd);
		return slu_fail(err, rc, "cannot listen on %s: %s", a->path, strerror(-rc));
	}
	return fd;
}

static int listen_tcp(const struct slu_addr *a, uint16_t *port, struct slu_error *err)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(a->port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(a->port) };
	struct sockaddr_storage got;
	socklen_t len = sizeof got;
	struct sockaddr *sa = (struct sockaddr *)&in;
	socklen_t sa_len = sizeof in;
	int fd, on = 1, off = 0, rc;
	char text[300];

	slu_addr_text(a, text, sizeof text);
	if (!*a->host || inet_pton(AF_INET6, a->host, &in6.sin6_addr) == 1) {
		sa = (struct sockaddr *)&in6;
		sa_len = sizeof in6;
	} else if (!strcmp(a->host, "localhost")) {
		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else if (inet_pton(AF_INET, a->host, &in.sin_addr) != 1) {
		return slu_fail(err, -EINVAL, "cannot listen on %s: the host is not an IP address",
				text);
	}
	fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 && sa->sa_family == AF_INET6 && !*a->host) { /* no IPv6 here */
		sa = (struct sockaddr *)&in;
		sa_len = sizeof in;
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return slu_fail(err, -errno, "cannot make a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (sa->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, *a->host ? &on : &off, sizeof off);
	if (bind(fd, sa, sa_len) < 0 || listen(fd, 1024) < 0 ||
	    getsockname(fd, (struct sockaddr *)&got, &len) < 0) {
		rc = -errno;
		close(fd);
		return slu_fail(err, rc, "cannot listen on %s: %s", text, strerror(-rc));
	}
	*port = ntohs(got.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&got)->sin6_port
						: ((struct sockaddr_in *)&got)->sin_port);
	return fd;
}

int slu_listen(const struct slu_addr *a, unsigned mode, uint16_t *port, struct slu_error *err)
{
	*port = 0;
	return a->kind == SLU_ADDR_UNIX ? listen_unix(a, mode, err) : listen_tcp(a, port, err);
}
