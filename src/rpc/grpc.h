/* grpc.h — gRPC over the HTTP/2 server: length-prefixed messages, deadlines, statuses in trailers.
 * It knows methods by their paths and messages as bytes; no service lives here.
 *
 * A method's `message` is called with each whole message of a call; a unary method gets exactly one,
 * after the client has ended its side (a call with none or several is refused).  From then on the
 * call is the method's: it answers at once or later, by slu_grpc_reply(), or slu_grpc_send() any
 * number of times and slu_grpc_end(), or slu_grpc_fail().  After reply, end or fail the pointer is
 * dead.  When the client leaves or its deadline passes first, the call stays valid, slu_grpc_over()
 * says so, and the answer goes nowhere.
 *
 * All calls on the loop's thread, except slu_grpc_over() and slu_grpc_message(). */
#pragma once
#include "net/server.h"

enum slu_grpc_code {
	SLU_GRPC_OK = 0,
	SLU_GRPC_CANCELLED = 1,
	SLU_GRPC_UNKNOWN = 2,
	SLU_GRPC_INVALID_ARGUMENT = 3,
	SLU_GRPC_DEADLINE_EXCEEDED = 4,
	SLU_GRPC_NOT_FOUND = 5,
	SLU_GRPC_PERMISSION_DENIED = 7,
	SLU_GRPC_RESOURCE_EXHAUSTED = 8,
	SLU_GRPC_FAILED_PRECONDITION = 9,
	SLU_GRPC_UNIMPLEMENTED = 12,
	SLU_GRPC_INTERNAL = 13,
	SLU_GRPC_UNAVAILABLE = 14,
	SLU_GRPC_UNAUTHENTICATED = 16,
};

struct slu_grpc;
struct slu_grpc_call;

/* Takes messages that are too large to be kept.  Its bytes come in pieces as they arrive, unpacked;
 * `message` is called behind the last one and gets what `begin` made by slu_grpc_taken(). */
struct slu_grpc_taker {
	void *(*begin)(void *arg); /* NULL: no memory */
	/* 0, or negative: the call is refused for want of room. */
	int (*bytes)(void *taken, const void *p, size_t n);
	/* The call is over before `message`. */
	void (*drop)(void *taken);
};

struct slu_grpc_method {
	const char *path;   /* "/package.Service/Method" */
	size_t max_message; /* bytes, unpacked too; 0: 4 MiB */
	bool streams;       /* takes any number of messages; `end` follows the last */
	bool open;          /* needs no permission (health) */
	void (*message)(void *arg, struct slu_grpc_call *c);
	/* Unary methods only: the message is not kept but taken as it arrives. */
	const struct slu_grpc_taker *taker;
	/* Streams only: the client has sent its last message; the call has to be ended. */
	void (*end)(void *arg, struct slu_grpc_call *c);
	void *arg;
};

struct slu_grpc_options {
	uint32_t max_connections; /* 0: 1024 */
	uint32_t max_calls;       /* under way in all; 0: 4096; RESOURCE_EXHAUSTED above */
	size_t max_bytes;         /* of messages and answers held in all; 0: 512 MiB */
	int64_t idle_ns;          /* connections without a call close (GOAWAY) after; 0: 5 min */
	/* Whether the caller may call; answers once by slu_grpc_allow(), at once or later.  NULL: every
	 * caller may. */
	void (*permit)(void *arg, struct slu_grpc_call *c, struct slu_exchange *x);
	void *arg;
};

/* A server without methods and listeners.  NULL: no memory. */
struct slu_grpc *slu_grpc_new(struct slu_loop *l, const struct slu_grpc_options *o);
/* The table is borrowed and must outlive the server.  0 or -ENOMEM. */
int slu_grpc_serve(struct slu_grpc *g, const struct slu_grpc_method *m, uint32_t n);
/* As slu_server_listen(). */
int slu_grpc_listen(struct slu_grpc *g, const struct slu_addr *a, struct slu_tls *tls,
		    struct slu_error *err);
/* The server underneath: ports, certificates, statistics, drain. */
struct slu_server *slu_grpc_server(struct slu_grpc *g);
/* Close everything.  Calls that a method still has remain valid until answered.  NULL is fine. */
void slu_grpc_free(struct slu_grpc *g);

/* ---- a call ---- */

/* The message, borrowed until the call is answered or (streams) the next one arrives. */
const void *slu_grpc_message(const struct slu_grpc_call *c, size_t *n);
/* What the method's taker made of the message; the method frees it. */
void *slu_grpc_taken(struct slu_grpc_call *c);
/* The answer is no longer awaited: the client left, or its deadline has passed.  From any
 * thread; work that has not begun is better not begun. */
bool slu_grpc_over(const struct slu_grpc_call *c);
/* Call fn(arg) when the client leaves or the deadline passes before the answer. */
void slu_grpc_on_over(struct slu_grpc_call *c, slu_call_fn *fn, void *arg);

/* Answer the question for permission: SLU_GRPC_OK lets the call go on, any other status ends it with
 * the sentence. */
void slu_grpc_allow(struct slu_grpc_call *c, enum slu_grpc_code code, const char *why);

/* One message of the answer; the bytes are moved out of `b` on success, the rest of it is freed in
 * every case.  0; -EPIPE: the client is gone; -EMSGSIZE, -ENOBUFS (too much is held
 * already), -ENOMEM: end the call. */
int slu_grpc_send(struct slu_grpc_call *c, struct slu_buf *b);
/* The end in good order, once everything has been sent. */
void slu_grpc_end(struct slu_grpc_call *c);
/* Send and end. */
void slu_grpc_reply(struct slu_grpc_call *c, struct slu_buf *b);
void slu_grpc_fail(struct slu_grpc_call *c, enum slu_grpc_code code, const char *fmt, ...)
	SLU_PRINTF(3, 4);

/* ---- the pieces, without sockets ---- */

/* "250m", "1S": nanoseconds; -EINVAL for anything else. */
int slu_grpc_timeout(const char *s, int64_t *out);
/* grpc-message: everything but printable ASCII, and '%', percent-encoded. */
int slu_grpc_escape(struct slu_buf *b, const char *s);

/* The stream of frames of one direction, fed in pieces of any size. */
struct slu_grpc_frames {
	size_t max; /* of one message */
	uint8_t head[5];
	uint8_t n_head;
	size_t want, got; /* of the message under way */
	struct slu_buf body;
	bool packed; /* the message is compressed */
	/* Set: gets the bytes of messages instead of `body`, and its negative return value is that of
	 * slu_grpc_frames_feed(). */
	int (*take)(void *arg, const uint8_t *p, size_t n);
	void *arg;
};

/* Take bytes: 1 a message is complete (in `body`) (*used says how many bytes were taken; feed the
 * rest after slu_grpc_frames_next()), 0 more is needed, -EMSGSIZE above the ceiling, -EPROTO for a
 * flag that does not exist, -ENOMEM. */
int slu_grpc_frames_feed(struct slu_grpc_frames *f, const uint8_t *p, size_t n, size_t *used);
/* Be ready for the next message. */
void slu_grpc_frames_next(struct slu_grpc_frames *f);
/* Whether a message was begun and not finished. */
bool slu_grpc_frames_cut(const struct slu_grpc_frames *f);
void slu_grpc_frames_done(struct slu_grpc_frames *f);
