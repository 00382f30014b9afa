#include "control/io/throttle.h"

struct slu_throttle slu_throttle(uint32_t max)
{
	max = SLU_MAX(max, 1u);
	return (struct slu_throttle){ .max = max, .limit = max, .halved_ns = INT64_MIN };
}

void slu_throttle_answered(struct slu_throttle *w, int64_t now_ns, int64_t sent_ns, bool strained)
{
	bool full = w->flying >= w->limit;

	w->flying -= w->flying > 0;
	if (strained || now_ns - sent_ns > SLU_THROTTLE_SLOW_NS) {
		if (sent_ns < w->halved_ns)
			return;
		w->halved_ns = now_ns;
		w->limit = SLU_MAX(w->limit / 2, SLU_MIN(SLU_THROTTLE_MIN, w->max));
		w->answered = 0;
		w->halvings++;
		return;
	}
	/* Only a window that was used to the full is known to be bearable. */
	if (!full || w->limit >= w->max || ++w->answered < w->limit)
		return;
	w->answered = 0;
	w->limit = SLU_MIN(w->limit + SLU_MAX(w->limit / 8, 1u), w->max);
}
