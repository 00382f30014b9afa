/* count.h — counters of the core since the start of the process; published with each snapshot. */
#pragma once
#include "base/base.h"

struct slu_counters {
	uint64_t cycles, cycle_ns, cycle_ns_max;
	uint64_t objects, gangs_started, gangs_ended, pods_bound, bind_failures, taken_back;
	uint64_t writes[16], writes_all;
	uint64_t pods_released, pods_refused;
	int64_t lists_us;       /* from the first object to the last list, at start */
	int64_t first_cycle_us; /* and from there to the first decisions */
	uint64_t audits, audit_lists, audit_differences, overlooked, refused_objects;
	uint64_t memory_failures; /* cycles after which the core checked everything again */
};
