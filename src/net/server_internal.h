/* server_internal.h — shared by server.c (connections), server_pool.c (limits on their number and
 * memory) and exchange.c (requests and answers). */
#pragma once
#include "net/conn.h"
#include "net/h1.h"
#include "net/h2.h"
#include "net/server.h"

enum server_proto { PROTO_UNKNOWN, PROTO_H1, PROTO_H2 };

/* Connections from one address; freed with the last of them. */
struct server_source {
	uint8_t address[16];
	uint32_t connections;
	size_t bytes;
	struct server_source *next;
};

/* The limits and the account of one listener.  Listeners share nothing, so clients that fill one
 * cannot shut another. */
struct server_pool {
	struct slu_server *server;
	struct slu_pool_options o;
	uint32_t connections;
	size_t bytes; /* held for its connections, and for requests whose peer has left */
	struct server_source *sources;
	struct slu_task shed;
};

struct server_listener {
	struct slu_server *s;
	struct uv_poll_s *poll; /* allocated by itself, because it lives until its close callback */
	int fd;
	int index;
	uint16_t port;
	struct slu_tls *tls;
	struct slu_addr addr;
	struct slu_timer pause; /* out of descriptors */
	struct server_pool pool;
};

/* A connection that a client opened. */
struct server_peer {
	struct slu_server *s;
	struct server_pool *pool;
	struct server_source *source;
	size_t weight; /* bytes counted in pool and source */
	struct slu_conn *conn;
	enum server_proto proto;
	struct slu_h1 *h1;
	struct slu_h2 *h2;
	struct slu_exchange *exchanges; /* not yet answered, or still being received */
	struct server_peer *next, *prev;
	struct slu_timer timer; /* idle, or receiving (HTTP/1.1) */
	struct slu_timer stall; /* the peer does not take our bytes */
	struct slu_task next_request, reap;
	struct slu_buf sniff; /* first bytes of a connection without TLS */
	int depth;            /* inside the protocol machine */
	int listener;
	bool tls, dead, finishing, receiving;
	bool asked; /* one of its requests has been complete */
	uid_t uid;
	char name[64];
	char *cn;
};

struct slu_exchange {
	struct server_peer *peer; /* NULL: gone */
	struct slu_exchange *next, *prev;
	struct slu_h2_stream *stream; /* HTTP/2 */
	struct slu_http_request q;
	struct slu_headers headers, reply, trailers;
	struct slu_buf body;
	char *target;
	char *name, *cn; /* of the peer */
	size_t orphaned; /* bytes in the pool's account since the peer left */
	struct server_pool *pool;
	struct slu_server *server;
	struct slu_timer late; /* HTTP/2: the request must be whole by then */
	struct slu_task drained;
	slu_call_fn *gone_fn, *drain_fn;
	void *gone_arg, *drain_arg;
	void *user;
	struct slu_exchange_sink sink; /* where the body goes instead */
	size_t owed;                   /* room not given back while held */
	bool hold;
	bool handed; /* the handler was called and has not answered yet */
	bool begun;
};

struct slu_server {
	struct slu_loop *loop;
	struct slu_server_options o;
	struct server_listener *listeners;
	int n_listeners;
	struct server_peer *peers;
	struct slu_server_stats st;
	uint32_t refs; /* the owner, and one per exchange */
	bool draining, closed;
	struct slu_timer grace;
	slu_call_fn *drained_fn;
	void *drained_arg;
};

/* ---- exchange.c ---- */

struct slu_exchange *net_server_exchange_new(struct server_peer *p);
/* Fill the request from head and body; -EINVAL: no usable target. */
int net_server_exchange_prepare(struct slu_exchange *x, const char *method, const char *target);
/* Give the exchange to the handler. */
void net_server_exchange_hand_over(struct slu_exchange *x);
/* Tell the exchange that the peer is gone; frees the exchange unless the handler has yet to
 * answer. */
void net_server_exchange_gone(struct slu_exchange *x);
void net_server_exchange_free(struct slu_exchange *x);
/* Memory a request takes. */
size_t net_server_exchange_bytes(const struct slu_exchange *x);
/* A plain answer of the server itself on a stream or connection that has no exchange. */
void net_server_h1_refuse(struct server_peer *p, int status, const char *text);
void net_server_h2_refuse(struct slu_h2_stream *s, int status, const char *text);
/* Standard headers of every answer. */
int net_server_common_headers(struct slu_headers *h);

/* ---- server_pool.c ---- */

/* `connections`: the server's own default; 0: none. */
void net_server_pool_init(struct server_pool *g, const struct slu_pool_options *o,
			  uint32_t connections);
/* Add a connection to the account, closing another one if the pool is full.  NULL: there is no
 * room. */
struct server_source *net_server_pool_admit(struct slu_server *s, struct server_pool *g, int fd);
/* Remove a connection from the account. */
void net_server_pool_leave(struct server_pool *g, struct server_source *from);
/* Recount the bytes that a connection holds.  If the pool is above its ceiling, connections are
 * closed at the end of the round, never inside this call. */
void net_server_pool_weigh(struct server_peer *p);
/* Take a connection that ends out of the account (forget); a request that outlives its
 * connection stays in the account (orphan). */
void net_server_pool_forget(struct server_peer *p);
void net_server_pool_orphan(struct slu_exchange *x);
void net_server_pool_done(struct server_pool *g);

/* ---- server.c ---- */

/* End the connection and tell its exchanges. */
void net_server_peer_drop(struct server_peer *p);

/* An exchange of this connection was answered. */
void net_server_peer_answered(struct server_peer *p);
void net_server_unref(struct slu_server *s);
