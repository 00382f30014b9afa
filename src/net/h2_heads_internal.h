/* h2_heads_internal.h — check the frame heads of an HTTP/2 client before nghttp2 gets them.  nghttp2
 * ignores frames for a stream that it has forgotten.  But a client that opens a stream it skipped, or
 * continues a stream it ended, breaks the protocol and must get an error (RFC 9113, 5.1).
 *
 * Only the streams that were skipped or ended last are remembered; nghttp2 still ignores frames for
 * older ones. */
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

/* Returns how many of the bytes are valid.  Fewer than `n`: the next bytes are a forbidden frame, or the
 * last valid byte completes its head; *code is then the connection error to send. */
size_t net_h2_heads_look(struct net_h2_heads *w, const uint8_t *p, size_t n, uint32_t *code);
