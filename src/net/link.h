/* link.h — one HTTP/2 connection to a server: dial, TLS, PINGs, GOAWAY.  The owner of a link opens
 * another when the link goes down, and keeps requests beyond the server's limit waiting, in the order
 * it chooses. */
#pragma once
#include "net/h2.h"
#include "net/loop.h"
#include "net/tls.h"

struct slu_link;

struct slu_link_ops {
	/* The link is usable, or has room again: see slu_link_room(). */
	void (*room)(void *arg);
	/* The server accepts no further requests on this link; those under way may still be
	 * answered. */
	void (*goaway)(void *arg, uint32_t code, const char *text);
	/* The connection is gone, and every stream was closed before.  Code 0: in good order
	 * after GOAWAY or drain.  The link is freed after the call. */
	void (*down)(void *arg, int code, const struct slu_error *err);
	/* As in h2.h. */
	void (*head)(void *arg, struct slu_h2_stream *s);
	void (*data)(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n);
	void (*end)(void *arg, struct slu_h2_stream *s);
	void (*closed)(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused);
};

struct slu_link_options {
	struct slu_addr addr;
	struct slu_tls *tls;  /* NULL: HTTP/2 in the clear, without negotiation */
	int64_t connect_ns;   /* dial, handshake and first SETTINGS; 0: 10 s */
	int64_t ping_ns;      /* 0: 30 s */
	unsigned rotate;      /* which of several addresses first */
	uint32_t max_streams; /* our own limit; 0: the server's */
};

/* Callbacks never come from inside.  0 or -ENOMEM. */
int slu_link_open(struct slu_loop *l, const struct slu_link_options *o,
		  const struct slu_link_ops *ops, void *arg, struct slu_link **out);
/* Close at once, without further callbacks; allowed everywhere. */
void slu_link_close(struct slu_link *k);
/* No further requests; close once those under way are answered. */
void slu_link_drain(struct slu_link *k);

bool slu_link_ready(const struct slu_link *k);
/* How many requests may be started now; 0 while connecting, draining or full. */
uint32_t slu_link_room(const struct slu_link *k);
uint32_t slu_link_streams(const struct slu_link *k);
uint64_t slu_link_bytes_in(const struct slu_link *k);
uint64_t slu_link_bytes_out(const struct slu_link *k);

/* Start a request; see slu_h2_request(). */
int slu_link_request(struct slu_link *k, const struct slu_h2_header *hdr, size_t n,
		     const void *body, size_t body_len, void *user, struct slu_h2_stream **out);
void slu_link_reset(struct slu_link *k, struct slu_h2_stream *s);
void slu_link_consume(struct slu_link *k, struct slu_h2_stream *s, size_t n);
