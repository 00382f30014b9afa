/* timer.h — when each pass that waits for its time is due.  One row of moments for all rooms: the
 * core sleeps until the earliest of them. */
#pragma once
#include "base/base.h"

enum core_timer {
	CORE_AT_VACANCY,     /* the first place kept for a missing member becomes free */
	CORE_AT_ENDING,      /* decisions no longer wait for a gang that is ending */
	CORE_AT_LIMIT,       /* members beyond their limit, whose eviction was refused or lost */
	CORE_AT_UNDO,        /* evictions are requested again, nodes that refused are tried again */
	CORE_AT_RELEASED,    /* pods whose scheduler refuses them, resumes and holds that failed */
	CORE_AT_AHEAD,       /* Jobs that may be resumed ahead of their turn */
	CORE_AT_HELD,        /* reports about held objects */
	CORE_AT_FLUXJOBS,    /* FluxJobs that end, or whose status is due */
	CORE_AT_STATUS,      /* status of waiting work */
	CORE_AT_AUDIT,       /* the books are compared with the pods */
	CORE_AT_AFTER,       /* groups that wait for others are checked */
	CORE_AT_DRAIN,       /* the window of a drain begins or ends */
	CORE_AT_RESERVATION, /* a Reservation begins, ends or has changed */
	CORE_AT_KEEP,        /* old rows are removed from the store */
	CORE_AT_MEMORY,      /* memory ran out: the core checks everything again */
	CORE_TIMERS
};

#define CORE_NEVER INT64_MAX
