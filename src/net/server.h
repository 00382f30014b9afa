/* server.h — HTTP/1.1 and HTTP/2 server on the loop, with and without TLS, on TCP and unix sockets.
 *
 * The server calls a handler once a request is complete (head and whole body).  From then on the handler owns
 * the exchange.  It answers at once or later, but exactly once, with slu_http_reply() or with
 * begin ... end; after that the pointer is invalid.  If the peer leaves in between, the exchange stays
 * valid and the answer is thrown away.  Call every function on the loop's thread; another thread passes
 * its answer to the loop with slu_loop_post().
 *
 *	static void hello(struct slu_exchange *x, void *arg)
 *	{
 *		slu_http_reply(x, 200, "text/plain", "hello\n", 6);
 *	}
 */
#pragma once
#include "net/http.h"
#include "net/loop.h"
#include "net/tls.h"

#include <sys/types.h>

struct slu_server;
struct slu_exchange;
struct slu_http_request;

typedef void slu_http_handler(struct slu_exchange *x, void *arg);

struct slu_server_options {
	slu_http_handler *handler;
	void *arg;
	size_t max_body;           /* 0: 4 MiB; larger requests get 413 */
	uint32_t max_header_bytes; /* 0: 64 KiB; 431 */
	uint32_t max_connections;  /* per listener; 0: 1024; slu_server_pool() */
	uint32_t max_streams;      /* per HTTP/2 connection; 0: 128 */
	int64_t handshake_ns;      /* a first request must begin within; 0: 10 s */
	int64_t request_ns;        /* head and body must arrive within; 0: 30 s */
	int64_t idle_ns;           /* silent connections close after; 0: 120 s */
	/* HTTP/2: whether the handler takes this request with its head alone.  Its body then follows
	 * by slu_exchange_on_body(), and the time of the request is the handler's to watch.
	 * NULL: every request comes with its body. */
	bool (*early)(const struct slu_http_request *q);
};

/* A server without listeners.  NULL: no memory. */
struct slu_server *slu_server_new(struct slu_loop *l, const struct slu_server_options *o);
/* Listen on an address; with `tls` (a reference is taken) or in the clear.  Several listeners per
 * server are fine.  Port 0 takes a free one.  A unix socket file left over by a dead process is
 * replaced, one that answers is not (-EADDRINUSE); `mode` is its permission (0: 0600).
 * Returns the listener's number (from 0) or a negative errno. */
int slu_server_listen(struct slu_server *s, const struct slu_addr *a, struct slu_tls *tls,
		      unsigned mode, struct slu_error *err);

/* Ceilings for the connections of one listener.  Each listener has a pool of its own, so that a flood
 * on one does not affect the others.
 *
 * A pool that is full makes room for a newcomer by closing a connection of the address that has
 * the most: one that never sent a request, else the oldest idle one, never one that waits for an
 * answer.  The bytes are those of requests (head and body, half of them or whole) and of answers
 * not sent yet; above the ceiling the heaviest connection of the heaviest address is closed. */
struct slu_pool_options {
	uint32_t max_connections; /* 0: the server's */
	uint32_t max_per_address; /* IPv6: per /64; 0: a quarter, at least 16 */
	size_t max_bytes;         /* 0: 128 MiB */
	size_t max_body;          /* 0: the server's */
	uint32_t max_streams;     /* 0: the server's */
	bool no_body;             /* requests with a body get 413 */
	bool one_source;          /* a unix socket: max_per_address does not count */
};
/* Set the limits of a listener, before its first connection. */
void slu_server_pool(struct slu_server *s, int listener, const struct slu_pool_options *o);
/* The port a TCP listener got. */
uint16_t slu_server_port(const struct slu_server *s, int listener);
/* New connections of a listener use this certificate from now on. */
void slu_server_tls(struct slu_server *s, int listener, struct slu_tls *tls);
/* Accept no further connections, answer the requests under way, close idle connections (GOAWAY), and call `fn` once
 * no connection is left or `grace_ns` have passed. */
void slu_server_drain(struct slu_server *s, int64_t grace_ns, slu_call_fn *fn, void *arg);
/* Close all connections now.  Open exchanges remain valid until answered.  NULL is fine. */
void slu_server_free(struct slu_server *s);

struct slu_server_stats {
	uint64_t accepted, refused, tls_failed, requests, bad_requests, bytes_in, bytes_out;
	uint64_t evicted;                /* connections closed to make room for another */
	uint64_t shed;                   /* ... because all together held too many bytes */
	uint32_t connections, exchanges; /* now */
	size_t held;                     /* bytes of requests and unsent answers now */
};
void slu_server_stats(const struct slu_server *s, struct slu_server_stats *out);

/* ---- the request; everything borrowed until the exchange is answered ---- */

struct slu_http_request {
	enum slu_http_method method;
	const char *method_text;
	const char *path;  /* as sent, starts with '/' */
	const char *query; /* without '?'; "" if none */
	const char *authority;
	const struct slu_headers *headers;
	const char *body; /* NUL behind the last byte */
	size_t body_len;
	int version; /* 1 or 2 */
	int listener;
	bool tls;
	const char *peer;      /* "127.0.0.1:40312" or "unix" */
	uid_t uid;             /* of the process behind a unix socket; (uid_t)-1 otherwise */
	const char *client_cn; /* subject of a verified client certificate; NULL */
};

const struct slu_http_request *slu_exchange_request(const struct slu_exchange *x);
/* A place for the handler's own data. */
void slu_exchange_set_user(struct slu_exchange *x, void *user);
void *slu_exchange_user(const struct slu_exchange *x);
/* Call fn(arg) if the peer leaves before the answer is complete.  The exchange still has to be
 * answered. */
void slu_exchange_on_gone(struct slu_exchange *x, slu_call_fn *fn, void *arg);
bool slu_exchange_gone(const struct slu_exchange *x);

/* For a handler that was called early: data gets the bytes of the body as they arrive (borrowed for
 * the call), end follows the last of them.  Neither comes after the answer or after the peer left.
 */
struct slu_exchange_sink {
	void (*data)(void *arg, const uint8_t *p, size_t n);
	void (*end)(void *arg);
	void *arg;
};
void slu_exchange_on_body(struct slu_exchange *x, const struct slu_exchange_sink *sink);
/* Hold or release the peer: while held, its window does not grow, so it stops sending when the
 * window is full. */
void slu_exchange_hold(struct slu_exchange *x, bool hold);

/* ---- the answer ---- */

/* Before reply or begin: a further header (copied).  0, -ENOMEM, -EINVAL, -EMSGSIZE. */
int slu_http_reply_header(struct slu_exchange *x, const char *name, const char *value);
/* The whole answer (copied).  content_type NULL: none.  Ends the exchange. */
void slu_http_reply(struct slu_exchange *x, int status, const char *content_type, const void *body,
		    size_t n);
/* {"error": "..."} style helper: status and a plain-text sentence. */
void slu_http_reply_text(struct slu_exchange *x, int status, const char *fmt, ...) SLU_PRINTF(3, 4);

/* In pieces: begin, any number of writes, trailers (HTTP/2 and chunked HTTP/1.1), end. */
int slu_http_reply_begin(struct slu_exchange *x, int status, const char *content_type);
/* 0; -EPIPE once the peer is gone; -EMSGSIZE above 16 MiB unsent; -ENOMEM. */
int slu_http_reply_write(struct slu_exchange *x, const void *p, size_t n);
/* Call fn(arg) whenever everything written so far has been sent. */
void slu_http_reply_on_drain(struct slu_exchange *x, slu_call_fn *fn, void *arg);
int slu_http_reply_trailer(struct slu_exchange *x, const char *name, const char *value);
/* Ends the exchange. */
void slu_http_reply_end(struct slu_exchange *x);
/* Give up: resets the stream (HTTP/2) or closes the connection.  Ends the exchange. */
void slu_http_reply_abort(struct slu_exchange *x);
