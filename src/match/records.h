/* records.h — the bookings at one vertex of the ledger.
 *
 * All bookings of a job share one start and one end, which lie in a table by the job's index (`t`
 * below), so a booking is eight bytes: the job and its units.  A vertex with one booking keeps it
 * in place, one with a few in a short array sorted by start, one with many that overlap in
 * planners. */
#pragma once
#include "planner/planner.h"

#define SLU_JOB_BITS 28
#define SLU_JOB_MAX  (1u << SLU_JOB_BITS)

/* What a booking means; see ledger.h. */
enum {
	LED_HELD = 1u << SLU_JOB_BITS,
	LED_PLANNED = 2u << SLU_JOB_BITS,
	LED_SHARED = 4u << SLU_JOB_BITS,
	LED_TAGGED = 8u << SLU_JOB_BITS,
};
#define LED_UNITS (LED_HELD | LED_PLANNED)
#define LED_EVERY (LED_UNITS | LED_SHARED | LED_TAGGED)

struct led_rec {
	uint32_t job; /* index | flags */
	uint32_t units;
};

static inline uint32_t led_job(struct led_rec r)
{
	return r.job & (SLU_JOB_MAX - 1);
}

struct led_job {
	int64_t start, end;
};

struct led_heavy;

struct led_vertex {
	union {
		struct led_rec one; /* n <= 1 and cap == 0 */
		struct led_rec *p;
		struct led_heavy *h;
	};
	uint32_t n;
	uint32_t cap : 30;
	uint32_t overlap : 1; /* at least two bookings overlap in time */
	uint32_t heavy : 1;
	int64_t last_end; /* of all bookings (not heavy); most questions are about later */
};

/* Whether nothing is booked from `at` on.  A cheap test: it may return false although nothing is
 * booked. */
static inline bool rec_over(const struct led_vertex *x, int64_t at)
{
	return !x->n || (!x->heavy && x->last_end <= at);
}

void match_rec_done(struct led_vertex *x);
/* 0 or -ENOMEM; `to` must be empty. */
int match_rec_copy(struct led_vertex *to, const struct led_vertex *from);
/* Bytes besides the struct itself. */
size_t match_rec_memory(const struct led_vertex *x);

/* Fewest units free during the window; size = units of the vertex. */
int64_t match_rec_avail(const struct led_job *t, const struct led_vertex *x, uint32_t size,
			int64_t at, int64_t end);
/* Whether no job has LED_SHARED during the window. */
bool match_rec_untouched(const struct led_job *t, const struct led_vertex *x, int64_t at,
			 int64_t end);
/* Whether some booking starts after `at`; may be true for a booking that has ended already. */
bool match_rec_starts_after(const struct led_job *t, const struct led_vertex *x, int64_t at);
/* Whether any job has LED_HELD (LED_PLANNED), at any time. */
bool match_rec_any(const struct led_vertex *x, uint32_t flag);
/* The job's record; .job == 0 and units == 0 when it has none (flags are never 0 in one). */
struct led_rec match_rec_get(const struct led_job *t, const struct led_vertex *x, uint32_t job);
/* All records, in no particular order. */
const struct led_rec *match_rec_list(const struct led_vertex *x, uint32_t *n);

/* Add flags to the job's record, made if absent; units count with LED_UNITS.  1 if it was made, 0,
 * -ENOMEM, or -EINVAL if the units are not free (nothing is changed). */
int match_rec_put(const struct led_job *t, struct led_vertex *x, uint32_t size, uint32_t job,
		  uint32_t flags, uint32_t units);
/* Take flags away; true if no flag is left and the record was removed. */
bool match_rec_clear(const struct led_job *t, struct led_vertex *x, uint32_t job, uint32_t flags);
