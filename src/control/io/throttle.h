/* throttle.h — how many writes may be under way at once.
 *
 * A server that is asked for more than it can do answers later and later, and at last gives up on
 * requests it has already worked on.  So the number grows by an eighth with each full round of
 * answers, up to a ceiling, and halves when the server shows that it is overloaded: 429, 5xx, no
 * answer, or an answer that took too long.  Answers to writes sent before the last halving do not
 * halve it again.  Writes that complete something begun may exceed the limit, never the ceiling.
 *
 *	while (slu_throttle_room(&w) && (x = next()))
 *		slu_throttle_sent(&w), send(x);
 *	on answer: slu_throttle_answered(&w, now_ns, sent_ns, strained);
 *
 * Pure: no clock, no input or output. */
#pragma once
#include "base/base.h"

/* With fewer, a server that is only slow would keep a gang half bound for long. */
#define SLU_THROTTLE_MIN     16u
#define SLU_THROTTLE_SLOW_NS INT64_C(5000000000)

struct slu_throttle {
	uint32_t max;      /* ceiling, at least 1 */
	uint32_t limit;    /* now */
	uint32_t flying;   /* sent, not answered */
	uint32_t answered; /* since the limit grew */
	int64_t halved_ns; /* when it was halved last */
	uint64_t halvings;
};

struct slu_throttle slu_throttle(uint32_t max);
static inline bool slu_throttle_room(const struct slu_throttle *w)
{
	return w->flying < w->limit;
}
/* Whether a write that must not wait may be sent: up to the ceiling, even if the server is overloaded. */
static inline bool slu_throttle_excess(const struct slu_throttle *w)
{
	return w->flying < w->max;
}
static inline void slu_throttle_sent(struct slu_throttle *w)
{
	w->flying++;
}
/* Count an answer.  `strained`: the server said or showed that it is overloaded. */
void slu_throttle_answered(struct slu_throttle *w, int64_t now_ns, int64_t sent_ns, bool strained);
