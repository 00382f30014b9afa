/* attempt.c — one attempt to match a request at one time: by the fast room (fast/fast.h) where
 * its rules cover the request, otherwise by the plain walk. */
#include "match/fast/fast.h"
#include "match/walk_internal.h"

int match_attempt_run(struct attempt *a)
{
	struct slu_match *m = a->m;
	int rc;

	match_mark_tick(m);
	slu_arena_reset(&m->tmp);
	a->pre = a->post = 0;
	a->centre = 0;
	if (__builtin_add_overflow(a->at, a->duration, &a->end))
		a->end = INT64_MIN;
	rc = a->plain ? -EAGAIN : match_fast_attempt(a);
	a->fast = rc != -EAGAIN;
	if (a->fast)
		return rc;
	a->skip = NULL;
	if (m->policy.stop)
		match_fast_skip_begin(a);
	return match_walk_root(a);
}
