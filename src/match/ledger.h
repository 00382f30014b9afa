/* ledger.h — who holds what on which vertex.
 *
 * All bookings of a job share one start and one duration, so a booking is eight bytes: the job and
 * its units.  A vertex with one booking keeps it in place, one with a few in a short array sorted
 *by start, one with many that overlap in planners.  What the reference calls plans, allocations,
 * reservations, x_checker, x_spans and tags is read off these records:
 *
 *	HELD      units are taken from the vertex (allocations)
 *	PLANNED   the same for a reservation
 *	SHARED    the job is at or below this vertex: nobody else can have it exclusively
 *	TAGGED    the job can be found from here
 */
#pragma once
#include "base/map.h"
#include "base/vec.h"
#include "planner/planner.h"

#define SLU_JOB_BITS 28
#define SLU_JOB_MAX  (1u << SLU_JOB_BITS)

enum {
	LED_HELD = 1u << SLU_JOB_BITS,
	LED_PLANNED = 2u << SLU_JOB_BITS,
	LED_SHARED = 4u << SLU_JOB_BITS,
	LED_TAGGED = 8u << SLU_JOB_BITS,
};
#define LED_UNITS (LED_HELD | LED_PLANNED)

struct led_rec {
	uint32_t job; /* index | flags */
	uint32_t units;
};

static inline uint32_t led_job(struct led_rec r)
{
	return r.job & (SLU_JOB_MAX - 1);
}

struct led_heavy;

struct led_vertex {
	union {
		struct led_rec one; /* n <= 1 and cap == 0 */
		struct led_rec *p;
		struct led_heavy *h;
	};
	uint32_t n;
	uint32_t cap : 30;
	uint32_t overlap : 1; /* some two bookings overlap in time */
	uint32_t heavy : 1;
	int64_t last_end; /* the latest end of all (not heavy): most questions are about later */
};

struct led_job {
	int64_t start, end;
};

struct led_jobinfo {
	int64_t id;
	uint32_t refs; /* records and spans that name the job */
	bool live;
	bool plain;           /* booked without a refusal on a tree: `at` is all there is */
	SLU_VEC(uint32_t) at; /* vertices it was booked at, in order of booking */
};

struct ledger {
	struct led_vertex *v;
	uint32_t nv;
	SLU_VEC(struct led_job) job; /* by index */
	SLU_VEC(struct led_jobinfo) info;
	SLU_VEC(uint32_t) unused; /* job indexes */
	struct slu_map by_id;     /* job id -> index */
};

int led_init(struct ledger *l, uint32_t nv);
void led_done(struct ledger *l);
/* The records of v are wanted soon. */
static inline void led_prefetch(const struct ledger *l, uint32_t v)
{
	const struct led_vertex *x = &l->v[v];

	if (x->cap)
		__builtin_prefetch(x->p + x->n, 1);
}
/* More vertices.  0 or -ENOMEM. */
int led_grow(struct ledger *l, uint32_t nv);
int led_copy(struct ledger *to, const struct ledger *from);
size_t led_memory(const struct ledger *l);

/* Index for a new job, or a negative errno. */
int64_t led_job_new(struct ledger *l, int64_t id, int64_t start, int64_t duration);
/* Index or -1. */
int64_t led_job_find(const struct ledger *l, int64_t id);
/* Forget the job once nothing names it. */
void led_job_drop(struct ledger *l, uint32_t job);

/* Fewest units free at v during the window; size = units of the vertex. */
int64_t led_avail(const struct ledger *l, uint32_t v, uint32_t size, int64_t at, int64_t end);
/* Whether no job is at or below v during the window. */
bool led_untouched(const struct ledger *l, uint32_t v, int64_t at, int64_t end);
/* Whether some booking here starts after `at` (may say yes for one that is gone already). */
bool led_starts_after(const struct ledger *l, uint32_t v, int64_t at);
/* Whether any job has LED_HELD (LED_PLANNED) here, at any time. */
bool led_any(const struct ledger *l, uint32_t v, uint32_t flag);
/* The job's record here, flags and units; .job == 0 and units == 0 when it has none (flags are
 * never 0 in a record). */
struct led_rec led_get(const struct ledger *l, uint32_t v, uint32_t job);
/* Add flags to the job's record at v (made if absent); units count with LED_UNITS.
 * 0, -ENOMEM, or -EINVAL if the units are not free (nothing is changed). */
int led_put(struct ledger *l, uint32_t v, uint32_t size, uint32_t job, uint32_t flags,
	    uint32_t units);
/* Take flags away; the record goes with its last flag. */
void led_clear(struct ledger *l, uint32_t v, uint32_t job, uint32_t flags);
/* Drop all records of a vertex (it leaves the graph). */
void led_clear_all(struct ledger *l, uint32_t v);
/* Records of v in some order. */
const struct led_rec *led_records(const struct ledger *l, uint32_t v, uint32_t *n);
