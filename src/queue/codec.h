/* codec.h — events as bytes and back, for an event log that can be replayed.
 *
 * Each event is a frame of its own: no pointer, no table beside it.  Numbers are little-endian
 * base-128, signed ones zigzag; strings and lists carry their length.  A frame begins with a
 * version; what a newer program wrote is refused, not guessed at.  Node sets are written as bits,
 * or by number if the caller keeps them: replaying the same events gives nodes the same indices.
 *
 *	slu_event_encode(now_s, &ev, NULL, &buf);
 *	slu_event_decode(p, n, NULL, &box, &err);   slu_queue_apply(q, box.now_s, &box.ev, ...);
 *	slu_event_box_done(&box);
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "queue/queue.h"

/* A decoded event and everything it points to.  Zero-initialise; may be used again after _done. */
struct slu_event_box {
	int64_t now_s;
	struct slu_event ev;
	struct slu_arena mem;
	SLU_VEC(struct slu_nodeset *) set;
};

/* The caller's numbers for node sets: `id` gives a set its number (encoding), `find` returns the set
 * of a number (decoding; NULL if there is none).  Without these a set is written as its bits. */
struct slu_set_names {
	uint64_t (*id)(void *arg, const struct slu_nodeset *s);
	struct slu_nodeset *(*find)(void *arg, uint64_t id);
	void *arg;
};

/* Append one frame.  0, or the buffer's error. */
int slu_event_encode(int64_t now_s, const struct slu_event *ev, const struct slu_set_names *names,
		     struct slu_buf *out);
/* Read one frame of exactly n bytes.  0, -EINVAL (not a frame, cut short, too long), -ENOTSUP (a
 * newer version), -ENOMEM. */
int slu_event_decode(const void *p, size_t n, const struct slu_set_names *names,
		     struct slu_event_box *out, struct slu_error *err);
void slu_event_box_done(struct slu_event_box *b);

/* The whole queue as bytes, with `names` for its node sets; and back: the one that is read decides
 * as the other does from there on.  Equal queues have equal bytes. */
void slu_queue_picture(const struct slu_queue *q, const struct slu_set_names *names,
		       struct slu_buf *out);
/* -EINVAL: not a picture; -ENOTSUP: of a newer program; -ENOMEM. */
int slu_queue_restore(const struct slu_queue_opts *opts, const void *p, size_t n,
		      const struct slu_set_names *names, struct slu_queue **out,
		      struct slu_error *err);

/* A number for what was decided: equal decisions, equal number.  For logs that prove a replay. */
uint64_t slu_decisions_digest(const struct slu_decisions *d);
