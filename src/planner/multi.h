/* multi.h — planners for several resource types that are booked together (the aggregates below a
 * vertex).  A span takes an amount of each at the same time; spans are named by the job that holds
 * them, one per job. */
#pragma once
#include "base/map.h"
#include "planner/planner.h"

struct slu_multi {
	uint32_t n;     /* planners */
	uint16_t *type; /* what each counts */
	struct slu_planner *p;
	/* Spans: `amount` has n numbers per span, -1 = this part is gone already. */
	uint32_t spans, cap;
	uint32_t *job;
	int64_t *amount;
	struct slu_map where; /* job -> span index, once there are many */
};

/* Planners for n types with their totals; NULL when memory runs out. */
struct slu_multi *slu_multi_new(const uint16_t *type, const int64_t *total, uint32_t n);
void slu_multi_free(struct slu_multi *m);
struct slu_multi *slu_multi_copy(const struct slu_multi *m);
size_t slu_multi_memory(const struct slu_multi *m);

/* Index of the planner for a type, or n. */
uint32_t slu_multi_index(const struct slu_multi *m, uint16_t type);
/* Whether want[i] units of each type are free; answers as slu_planner_fits() does. */
int slu_multi_fits(const struct slu_multi *m, int64_t at, int64_t duration, const int64_t *want);

/* Book the amounts for a job.  If planner i refuses, the amounts booked in the planners before it
 * stay booked and no span is kept, as in the reference: -EINVAL. */
int slu_multi_add(struct slu_multi *m, uint32_t job, int64_t at, int64_t duration,
		  const int64_t *want);
/* The job's amounts (by index; -1 = gone), or NULL. */
const int64_t *slu_multi_span(const struct slu_multi *m, uint32_t job);
/* Free the job's span; false if there is none. */
bool slu_multi_remove(struct slu_multi *m, uint32_t job, int64_t at, int64_t duration);
/* Free less[i] units of each part of the span (0 removes parts that hold nothing). 1 if nothing
 * is left and the span is gone, 0 if some units are left, -EINVAL if a part holds fewer units
 * (then nothing more is changed), -ENOENT if there is no span. */
int slu_multi_reduce(struct slu_multi *m, uint32_t job, int64_t at, int64_t duration,
		     const int64_t *less);
/* Set other types and totals after the graph changed; planners of types that stay keep their
 * spans. 0 or -ENOMEM. */
int slu_multi_reshape(struct slu_multi *m, const uint16_t *type, const int64_t *total, uint32_t n);

/* Earliest point of planner 0 where all fit; as slu_planner_first. */
int64_t slu_multi_first(struct slu_multi *m, int64_t from, int64_t duration, const int64_t *want);
int64_t slu_multi_next(struct slu_multi *m, const int64_t *want);
