/* timer.h — when each pass that waits for its time is due.  One row of moments for all rooms: the
 * core sleeps until the earliest of them. */
#pragma once
#include "base/base.h"

enum core_timer {
	CORE_AT_VACANCY,  /* the first place that was kept for a member is given back */
	CORE_AT_ENDING,   /* nothing more is left undecided for the sake of a gang that is ending */
	CORE_AT_UNDO,     /* evictions are asked for again, nodes that refused are forgiven */
	CORE_AT_RELEASED, /* pods whose scheduler refuses them, resumes that failed */
	CORE_AT_AHEAD,    /* who may be resumed ahead of its turn */
	CORE_AT_HELD,     /* what is said about held objects */
	CORE_AT_FLUXJOBS, /* FluxJobs that end, or whose status is due */
	CORE_AT_STATUS,   /* what waiting work is told */
	CORE_AT_AUDIT,    /* the books against the pods */
	CORE_AT_DRAIN,    /* the window of a drain begins or ends */
	CORE_AT_RESERVATION, /* one begins, ends or has changed */
	CORE_AT_KEEP,        /* old rows of the store */
	CORE_AT_MEMORY,      /* memory had run out: everything is looked at again */
	CORE_TIMERS
};

#define CORE_NEVER INT64_MAX
