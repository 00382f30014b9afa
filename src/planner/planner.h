/* planner.h — how much of one resource is free when.
 *
 * A planner has a total from time 0 to the end of time and a list of scheduled points in order of
 * time; between two points nothing changes.  A span takes units during [start, start + duration);
 * the caller remembers its spans and gives the same numbers back to remove them.
 *
 * Points lie in flat arrays: finding one is a binary search, a span changes a run of neighbours, a
 * search for the earliest fit is one pass.  For the thousands of points a planner has in practice
 * that beats balanced trees.  A planner without spans owns no memory. */
#pragma once
#include "base/base.h"

#define SLU_TIME_END INT64_MAX /* a span must end before or at this */

struct slu_planner {
	int64_t total;
	int64_t *t;    /* times; t[0] = 0; n = 0 stands for the first point alone */
	int64_t *left; /* units left from t[i] on */
	uint32_t *ref; /* spans that start or end at t[i] */
	int64_t *seen; /* units left as the search for a time sees them; NULL = the same as left */
	uint8_t *passed; /* the last search passed over the point (only with `seen`) */
	uint32_t n, cap;
	/* The search that slu_planner_next continues. */
	int64_t want, duration, last;
};

void slu_planner_init(struct slu_planner *p, int64_t total);
void slu_planner_done(struct slu_planner *p);
/* 0 or -ENOMEM; `to` must be empty. */
int slu_planner_copy(struct slu_planner *to, const struct slu_planner *from);
size_t slu_planner_memory(const struct slu_planner *p);

/* Units left at one moment. */
int64_t slu_planner_at(const struct slu_planner *p, int64_t at);
/* Fewest units left during [at, at + duration); -ERANGE beyond the end of time. */
int64_t slu_planner_during(const struct slu_planner *p, int64_t at, int64_t duration);
/* 0 if n units are left all the time; -ERANGE if the total is less or time ends before; -EBUSY. */
int slu_planner_fits(const struct slu_planner *p, int64_t at, int64_t duration, int64_t n);

/* Take n units.  -EINVAL if they do not fit, -ENOMEM; the planner is unchanged then. */
int slu_planner_add(struct slu_planner *p, int64_t at, int64_t duration, int64_t n);
/* Give a span back. */
void slu_planner_remove(struct slu_planner *p, int64_t at, int64_t duration, int64_t n);
/* Free n units of a larger span; its points stay. */
void slu_planner_reduce(struct slu_planner *p, int64_t at, int64_t duration, int64_t n);
/* Change the total; the units left change by the difference, but not below 0.  As in the
 * reference, the search for a time keeps using the old number of a point until a span touches
 * the point. 0 or -ENOMEM. */
int slu_planner_resize(struct slu_planner *p, int64_t total);

/* The earliest scheduled point at or after `from` from which n units are left for `duration`.
 * Only scheduled points are answers, so `from` itself is one only if a point lies there.
 * -ENOENT, or -ERANGE if the total is less than n. */
int64_t slu_planner_first(struct slu_planner *p, int64_t from, int64_t duration, int64_t n);
/* The next answer of the same search. */
int64_t slu_planner_next(struct slu_planner *p);
