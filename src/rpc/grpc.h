/* grpc.h — gRPC over the HTTP/2 server: length-prefixed messages, deadlines, statuses in trailers.
 * To this layer a method is a path and a message is bytes; the services are elsewhere (fluxion/service.h).
 *
 * The server calls a method's `message` with each whole message of a call.  A unary method gets exactly one
 * message, after the client has ended its side; a call with none or several is refused.  From then on the
 * method owns the call.  It answers at once or later: with slu_grpc_reply(), or with slu_grpc_send() any
 * number of times and slu_grpc_end(), or with slu_grpc_fail().  The pointer is invalid after reply, end or
 * fail.  If the client leaves or its deadline passes first, the call stays valid, slu_grpc_over() returns
 * true, and the answer is thrown away.
 *
 * Call every function on the loop's thread, except slu_grpc_over() and slu_grpc_message(). */
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

/* Reads messages that are too large to be kept.  The taker gets the bytes of a message in pieces as they arrive,
 * decompressed.  The server calls `message` after the last piece; there slu_grpc_taken() returns the object that
 * `begin` made. */
struct slu_grpc_taker {
	void *(*begin)(void *arg); /* NULL: no memory */
	/* Returns 0; a negative value makes the server refuse the call for lack of memory. */
	int (*bytes)(void *taken, const void *p, size_t n);
	/* Free the object: the call has ended before `message`. */
	void (*drop)(void *taken);
};

struct slu_grpc_method {
	const char *path;   /* "/package.Service/Method" */
	size_t max_message; /* bytes, unpacked too; 0: 4 MiB */
	bool streams;       /* takes any number of messages; `end` follows the last */
	bool open;          /* needs no permission (health) */
	void (*message)(void *arg, struct slu_grpc_call *c);
	/* Unary methods only: reads the message while it arrives, instead of keeping it. */
	const struct slu_grpc_taker *taker;
	/* Streams only: the client has sent its last message; the method has to end the call. */
	void (*end)(void *arg, struct slu_grpc_call *c);
	void *arg;
};

struct slu_grpc_options {
	uint32_t max_connections; /* 0: 1024 */
	uint32_t max_calls;       /* under way in all; 0: 4096; RESOURCE_EXHAUSTED above */
	size_t max_bytes;         /* of messages and answers held in all; 0: 512 MiB */
	int64_t idle_ns;          /* connections without a call close (GOAWAY) after; 0: 5 min */
	/* Decides whether the caller may call, and answers once with slu_grpc_allow(), at once or later.  NULL:
	 * every caller may. */
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
/* The HTTP server below: ports, certificates, statistics, drain. */
struct slu_server *slu_grpc_server(struct slu_grpc *g);
/* Close all connections.  Calls that a method still has remain valid until it answers.  NULL is fine. */
void slu_grpc_free(struct slu_grpc *g);

/* ---- a call ---- */

/* The message, borrowed until the call is answered or (streams) the next one arrives. */
const void *slu_grpc_message(const struct slu_grpc_call *c, size_t *n);
/* The object that the method's taker made of the message; the method frees it. */
void *slu_grpc_taken(struct slu_grpc_call *c);
/* Whether the client no longer awaits the answer: it has left, or its deadline has passed.  Any thread may call
 * this, to skip work that it has not begun. */
bool slu_grpc_over(const struct slu_grpc_call *c);
/* Call fn(arg) when the client leaves or the deadline passes before the answer. */
void slu_grpc_on_over(struct slu_grpc_call *c, slu_call_fn *fn, void *arg);

/* The answer of options.permit: SLU_GRPC_OK lets the call continue, any other status ends it with the message
 * `why`. */
void slu_grpc_allow(struct slu_grpc_call *c, enum slu_grpc_code code, const char *why);

/* Send one message of the answer; `b` is empty afterwards, also after a failure.  Returns 0, or -EPIPE if the client
 * has left; after -EMSGSIZE, -ENOBUFS (answers use too much memory already) or -ENOMEM, end the call. */
int slu_grpc_send(struct slu_grpc_call *c, struct slu_buf *b);
/* End the call with SLU_GRPC_OK, once all messages are sent. */
void slu_grpc_end(struct slu_grpc_call *c);
/* Send one message and end the call; if the message cannot be sent, fail the call. */
void slu_grpc_reply(struct slu_grpc_call *c, struct slu_buf *b);
void slu_grpc_fail(struct slu_grpc_call *c, enum slu_grpc_code code, const char *fmt, ...)
	SLU_PRINTF(3, 4);

/* ---- encodings, without sockets ---- */

/* Parse a grpc-timeout ("250m", "1S") into nanoseconds; -EINVAL for any other text. */
int slu_grpc_timeout(const char *s, int64_t *out);
/* Append `s` as grpc-message is encoded: '%' and all bytes but printable ASCII as %XX. */
int slu_grpc_escape(struct slu_buf *b, const char *s);

/* Splits the stream of frames of one direction into messages; the stream is fed in pieces of any size. */
struct slu_grpc_frames {
	size_t max; /* of one message */
	uint8_t head[5];
	uint8_t n_head;
	size_t want, got; /* of the message under way */
	struct slu_buf body;
	bool packed; /* the message is compressed */
	/* If set, it gets the bytes of messages instead of `body`; slu_grpc_frames_feed() returns its negative
	 * results. */
	int (*take)(void *arg, const uint8_t *p, size_t n);
	void *arg;
};

/* Feed bytes.  Returns 1 if a message is complete in `body`: `*used` bytes were read, and the rest is to be fed
 * after slu_grpc_frames_next().  Returns 0 if more bytes are needed, -EMSGSIZE for a message above the ceiling,
 * -EPROTO for an unknown flag, or -ENOMEM. */
int slu_grpc_frames_feed(struct slu_grpc_frames *f, const uint8_t *p, size_t n, size_t *used);
/* Make ready for the next message. */
void slu_grpc_frames_next(struct slu_grpc_frames *f);
/* Whether a message has begun and is not complete. */
bool slu_grpc_frames_cut(const struct slu_grpc_frames *f);
void slu_grpc_frames_done(struct slu_grpc_frames *f);
