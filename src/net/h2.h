/* h2.h — one HTTP/2 connection as a machine without sockets: bytes in, bytes out (nghttp2 inside).
 * Works as client or server.  Pseudo headers stand in the header list under their names (":path").
 *
 * Callbacks come from slu_h2_recv() and slu_h2_send(); inside them every call here is allowed
 * except those two and slu_h2_free(). */
#pragma once
#include "net/http.h"

struct slu_h2;
struct slu_h2_stream;

struct slu_h2_ops {
	/* A request (server) or final response (client) head is complete: slu_h2_headers(). */
	void (*head)(void *arg, struct slu_h2_stream *s);
	/* Body bytes; give the room back with slu_h2_consume(). */
	void (*data)(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n);
	/* The peer has sent everything. */
	void (*end)(void *arg, struct slu_h2_stream *s);
	/* The stream is over (0: both sides ended in good order, else an HTTP/2 error code); the
	 * pointer is dead after this.  `refused`: the peer certainly did not act on it. */
	void (*closed)(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused);
	/* Optional.  Everything added to a stream's body so far was handed to the wire. */
	void (*drained)(void *arg, struct slu_h2_stream *s);
	/* Optional.  The peer wants no further streams. */
	void (*goaway)(void *arg, uint32_t code, const char *text);
	/* Optional.  A PING was answered, or SETTINGS arrived. */
	void (*pong)(void *arg);
	void (*settings)(void *arg);
};

struct slu_h2_options {
	bool server;
	uint32_t max_streams;      /* server: how many the peer may open; 0: 128 */
	uint32_t stream_window;    /* 0: 4 MiB client, 256 KiB server */
	uint32_t conn_window;      /* 0: 16 MiB client, 4 MiB server */
	uint32_t max_header_bytes; /* per block; 0: 64 KiB */
};

/* NULL: no memory.  The connection preface and SETTINGS are ready to be sent. */
struct slu_h2 *slu_h2_new(const struct slu_h2_options *o, const struct slu_h2_ops *ops, void *arg);
/* Frees all streams; closed is called for each with code SLU_H2_LOST first. */
void slu_h2_free(struct slu_h2 *h);

/* 0, or -EPROTO / -ENOMEM with a sentence: send what slu_h2_send() gives, then close. */
int slu_h2_recv(struct slu_h2 *h, const uint8_t *p, size_t n, struct slu_error *err);
/* Append frames to `out` until about `limit` bytes are there or nothing is left. */
int slu_h2_send(struct slu_h2 *h, struct slu_buf *out, size_t limit, struct slu_error *err);
/* Whether slu_h2_send() would produce bytes. */
bool slu_h2_wants_send(const struct slu_h2 *h);
/* Whether the session is over: nothing more to read nor to write. */
bool slu_h2_is_over(const struct slu_h2 *h);

/* Streams open now; streams the peer lets us open (client). */
uint32_t slu_h2_streams(const struct slu_h2 *h);
uint32_t slu_h2_peer_max(const struct slu_h2 *h);
/* Memory of the headers that were not taken and of bodies not sent. */
size_t slu_h2_bytes(const struct slu_h2 *h);
int slu_h2_ping(struct slu_h2 *h);
/* Accept no further streams (server) and tell the peer so (GOAWAY). */
int slu_h2_goaway(struct slu_h2 *h);

/* ---- streams ---- */

struct slu_h2_header {
	const char *name, *value; /* copied */
	size_t value_len;
	bool sensitive; /* never put into a compression table */
};

/* Client: a new request; `more`: body bytes follow by slu_h2_body() ... slu_h2_body_end(). */
int slu_h2_request(struct slu_h2 *h, const struct slu_h2_header *hdr, size_t n, const void *body,
		   size_t body_len, bool more, void *user, struct slu_h2_stream **out);
/* Server: the head of the answer; `more`: a body follows. */
int slu_h2_respond(struct slu_h2_stream *s, const struct slu_h2_header *hdr, size_t n, bool more);
int slu_h2_body(struct slu_h2_stream *s, const void *p, size_t n);
/* `trailers` may be NULL or empty; copied. */
int slu_h2_body_end(struct slu_h2_stream *s, const struct slu_headers *trailers);
/* End the stream at once, in both directions.  `closed` follows, not from inside. */
void slu_h2_reset(struct slu_h2_stream *s, uint32_t code);
/* Report that body bytes were processed; the peer may send as many more. */
void slu_h2_consume(struct slu_h2_stream *s, size_t n);

const struct slu_headers *slu_h2_headers(const struct slu_h2_stream *s);
/* Move them out. */
void slu_h2_headers_take(struct slu_h2_stream *s, struct slu_headers *out);
/* Headers above the ceiling were left out. */
bool slu_h2_headers_cut(const struct slu_h2_stream *s);
int slu_h2_status(const struct slu_h2_stream *s); /* client; 0 before the head */
void *slu_h2_user(const struct slu_h2_stream *s);
void slu_h2_set_user(struct slu_h2_stream *s, void *user);
bool slu_h2_peer_ended(const struct slu_h2_stream *s);

/* "REFUSED_STREAM" and so on. */
const char *slu_h2_code_name(uint32_t code);
#define SLU_H2_NO_ERROR       0x0u
#define SLU_H2_PROTOCOL_ERROR 0x1u
#define SLU_H2_INTERNAL_ERROR 0x2u
#define SLU_H2_STREAM_CLOSED  0x5u
#define SLU_H2_REFUSED_STREAM 0x7u
#define SLU_H2_CANCEL         0x8u
#define SLU_H2_LOST           UINT32_MAX /* not on the wire: the connection went away */
