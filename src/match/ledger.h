/* ledger.h — what each job holds on each vertex.
 *
 * What the reference calls plans, allocations, reservations, x_checker, x_spans and tags is read
 * off one record per job and vertex (records.h):
 *
 *	HELD      units are taken from the vertex (allocations)
 *	PLANNED   the same for a reservation
 *	SHARED    the job is at or below this vertex: no other job can have it exclusively
 *	TAGGED    the job can be found from here
 *
 * Families: sibling leaves (the cores of a node) that a job takes whole and all at once get one record
 * for all of them.  That record lies at a number of its own behind those of the vertices, the family's
 * stand-in, and every question about a leaf looks there too.  Where a job is to keep only some of the
 * leaves, match_led_split() turns the record into one for each leaf. */
#pragma once
#include "base/map.h"
#include "base/vec.h"
#include "match/records.h"

#define LED_NONE UINT32_MAX

struct led_jobinfo {
	int64_t id;
	uint32_t refs;  /* records and spans that name the job */
	uint32_t older; /* index + 1 of the job that had this number before, 0: none */
	bool live;
	bool plain; /* booked without a refusal on a tree: `at` lists all its bookings */
	/* Where it was booked, in order of booking: vertices, and stand-ins (whose record may have
	 * been split since). */
	SLU_VEC(uint32_t) at;
};

struct led_family {
	uint32_t first, n; /* vertices */
	uint32_t own;      /* records of single leaves */
	int64_t own_end;   /* the latest end of these records */
};

struct ledger {
	struct led_vertex *v; /* vertices, then the stand-ins */
	uint32_t nv;
	SLU_VEC(struct led_family) family;
	uint32_t *all;               /* by vertex: its family's stand-in, or LED_NONE; NULL: none */
	SLU_VEC(struct led_job) job; /* by index */
	SLU_VEC(struct led_jobinfo) info;
	SLU_VEC(uint32_t) unused; /* job indexes */
	struct slu_map by_id;     /* job id -> index */
};

int match_led_init(struct ledger *l, uint32_t nv);
void match_led_done(struct ledger *l);
/* More vertices; there must be no families.  0 or -ENOMEM. */
int match_led_grow(struct ledger *l, uint32_t nv);
int match_led_copy(struct ledger *to, const struct ledger *from);
size_t match_led_memory(const struct ledger *l);

/* Index for a new job, or a negative errno. */
int64_t match_led_job_new(struct ledger *l, int64_t id, int64_t start, int64_t duration);
/* Index or -1. */
int64_t match_led_job_find(const struct ledger *l, int64_t id);
/* Forget the job once no record or span names it. */
void match_led_job_drop(struct ledger *l, uint32_t job);

/* --- one vertex --- */

static inline uint32_t led_all(const struct ledger *l, uint32_t v)
{
	return l->all && v < l->nv ? l->all[v] : LED_NONE;
}
/* Prefetch the records of v. */
static inline void led_prefetch(const struct ledger *l, uint32_t v)
{
	const struct led_vertex *x = &l->v[v];

	if (x->cap)
		__builtin_prefetch(x->p + x->n, 1);
}
/* Whether nothing is booked at v from `at` on (ever, if not `later`).  A cheap test: it may
 * return false although nothing is booked. */
static inline bool led_over(const struct ledger *l, uint32_t v, int64_t at, bool later)
{
	uint32_t s = led_all(l, v);
	int64_t from = later ? at : INT64_MIN;

	return rec_over(&l->v[v], from) && (s == LED_NONE || rec_over(&l->v[s], from));
}

/* Fewest units free at v during the window; size = units of the vertex. */
int64_t match_led_avail(const struct ledger *l, uint32_t v, uint32_t size, int64_t at, int64_t end);
/* Whether no job is at or below v during the window. */
bool match_led_untouched(const struct ledger *l, uint32_t v, int64_t at, int64_t end);
/* Whether some booking at v starts after `at`; may be true for a booking that has ended already. */
bool match_led_starts_after(const struct ledger *l, uint32_t v, int64_t at);
/* Whether any job has LED_HELD (LED_PLANNED) at v, at any time. */
bool match_led_any(const struct ledger *l, uint32_t v, uint32_t flag);
/* The job's record here, flags and units; .job == 0 and units == 0 when it has none (flags are
 * never 0 in a record). */
struct led_rec match_led_get(const struct ledger *l, uint32_t v, uint32_t job);
/* Records of v in some order, without those of its family. */
const struct led_rec *match_led_records(const struct ledger *l, uint32_t v, uint32_t *n);

/* Add flags to the job's record at v (made if absent); units count with LED_UNITS.
 * 0, -ENOMEM, or -EINVAL if the units are not free (nothing is changed). */
int match_led_put(struct ledger *l, uint32_t v, uint32_t size, uint32_t job, uint32_t flags,
		  uint32_t units);
/* Take flags away; a record without flags is removed.  A record of the family stays. */
void match_led_clear(struct ledger *l, uint32_t v, uint32_t job, uint32_t flags);
/* Drop all records of a vertex that leaves the graph; there must be no families. */
void match_led_clear_all(struct ledger *l, uint32_t v);

/* --- families --- */

/* Form these families; there must be none yet.  The leaves of a family have one size above 0, and
 * each leaf is in at most one family.  The stand-in of family i has the number nv + i. 0 or
 * -ENOMEM. */
int match_led_unite(struct ledger *l, const struct led_family *list, uint32_t n);
/* Dissolve all families; the bookings stay.  0, or -ENOMEM and nothing is changed. */
int match_led_disband(struct ledger *l);
/* The family of a stand-in, or NULL for a vertex. */
static inline const struct led_family *led_family(const struct ledger *l, uint32_t s)
{
	return s < l->nv ? NULL : &l->family.p[s - l->nv];
}
/* Whether all leaves are free during the window and, if not `later`, not held at any time.  A
 * cheap test: it may return false although all are free. */
bool match_led_all_free(const struct ledger *l, uint32_t s, uint32_t size, int64_t at, int64_t end,
			bool later);
/* Take all leaves whole. 0, -ENOMEM; -EAGAIN: nothing is changed, the caller has to take them
 * one by one. */
int match_led_put_all(struct ledger *l, uint32_t s, uint32_t size, uint32_t job, uint32_t flags);
/* Give v a record of its own for what the job has there through the family.  0, or -ENOMEM and nothing
 * is changed. */
int match_led_split(struct ledger *l, uint32_t v, uint32_t job);
