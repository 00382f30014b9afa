#include "control/frame/pace.h"

#define AHEAD_US 10000000 /* a namespace may be so far ahead when it asks for more */
#define SPACES   4096u    /* so many are remembered; then all begin again */

bool core_pace_allows(const struct core_pace *p, const char *ns, int64_t n, int64_t now_us)
{
	const uint64_t *paid = slu_map_get(&p->paid, (uintptr_t)ns);

	return n <= CORE_PACE_SMALL || !paid || (int64_t)*paid <= now_us + AHEAD_US;
}

void core_pace_pay(struct core_pace *p, const char *ns, int64_t n, int64_t each_us, int64_t now_us)
{
	const uint64_t *paid = slu_map_get(&p->paid, (uintptr_t)ns);
	int64_t from = paid ? SLU_MAX((int64_t)*paid, now_us) : now_us;

	if (n <= CORE_PACE_SMALL)
		return;
	if (!paid && p->paid.n >= SPACES)
		slu_map_clear(&p->paid);
	(void)slu_map_put(&p->paid, (uintptr_t)ns, (uint64_t)(from + n * each_us));
}
