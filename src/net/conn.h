/* conn.h — bytes over one socket, with or without TLS. The connection hands received bytes to
 * the protocol above it and asks that protocol for bytes to send, so that everything queued in
 * one round leaves in one write. */
#pragma once
#include "base/buf.h"
#include "net/loop.h"
#include "net/tls.h"

struct slu_conn;

struct slu_conn_ops {
	/* TLS is up (or the plain socket is ready).  alpn: "h2", "http/1.1" or "". */
	void (*open)(void *arg, const char *alpn);
	/* Bytes arrived.  Negative: the connection is closed with that code. */
	int (*data)(void *arg, const uint8_t *p, size_t n, struct slu_error *err);
	/* Append up to about SLU_CONN_BATCH bytes to send; nothing: idle.  Negative: close. */
	int (*fill)(void *arg, struct slu_buf *out, struct slu_error *err);
	/* The peer is gone or something failed: code 0 is a clean end, otherwise a negative errno
	 * and a sentence.  Last call; the connection is freed after.  Not called after
	 * slu_conn_close(). */
	void (*closed)(void *arg, int code, const struct slu_error *err);
};

#define SLU_CONN_BATCH (48 << 10)

/* Take over a connected socket (closed on failure too).  `host` is verified by a TLS client.
 * Callbacks never come from inside.  0 or a negative errno. */
int slu_conn_open(struct slu_loop *l, int fd, struct slu_tls *tls, const char *host,
		  const struct slu_conn_ops *ops, void *arg, struct slu_conn **out,
		  struct slu_error *err);
/* Announce that there are bytes to send; fill is called at the end of this round. */
void slu_conn_kick(struct slu_conn *c);
/* Send everything that fill still supplies, then close; closed(0) is called at the end. */
void slu_conn_finish(struct slu_conn *c);
/* Close now, without a callback; the pointer is dead. */
void slu_conn_close(struct slu_conn *c);
/* Stop or go on reading. */
void slu_conn_pause(struct slu_conn *c, bool pause);
uint64_t slu_conn_bytes_in(const struct slu_conn *c);
uint64_t slu_conn_bytes_out(const struct slu_conn *c);
/* Subject of the verified peer certificate (owned by the caller) or NULL. */
char *slu_conn_peer_cn(const struct slu_conn *c);
