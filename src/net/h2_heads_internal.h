/* h2_heads_internal.h — the heads of the frames that an HTTP/2 client sends, looked at before nghttp2 gets
 * them.  nghttp2 ignores what comes for a stream it has forgotten; a client that opens a stream it
 * skipped, or goes on with one it ended, breaks the protocol, and is told so (RFC 9113, 5.1).
 *
 * It remembers the streams that were skipped and ended last, not all of them: the older ones are
 * ignored as before. */
#pragma once
#include "base/base.h"

#define NET_H2_ENDED 16
#define NET_H2_GAPS  4

/* Set skip to the length of the connection preface, the rest to 0. */
struct net_h2_heads {
	uint32_t skip; /* bytes up to the next head */
	uint8_t head[9];
	uint8_t n_head;
	uint8_t next_ended, next_gap; /* rings */
	uint32_t last;                /* stream opened last */
	uint32_t ended[NET_H2_ENDED]; /* by the client; 0: none */
	struct {
		uint32_t from, to; /* ids between these were never opened */
	} gap[NET_H2_GAPS];
};

/* How many of the bytes are in order; fewer than `n` if a frame that must not come begins behind
 * them or ends its head with the last of them; then *code says which error of the connection it is. */
size_t net_h2_heads_look(struct net_h2_heads *w, const uint8_t *p, size_t n, uint32_t *code);
