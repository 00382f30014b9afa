/* base.h — the few definitions that every other file uses. */
#pragma once
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define SLU_LEN(a)       (sizeof(a) / sizeof((a)[0]))
#define SLU_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define SLU_MUST_CHECK   __attribute__((warn_unused_result))

/* Scoped ownership: the local is freed when it leaves its block unless slu_take() moved it out.
 *	slu_cleanup(slu_core_freep) struct slu_core *c = NULL;
 *	...
 *	*out = slu_take(c);
 */
#define slu_cleanup(fn) __attribute__((cleanup(fn)))
#define slu_take(p)                             \
	({                                      \
		__typeof__(p) slu_taken_ = (p); \
		(p) = NULL;                     \
		slu_taken_;                     \
	})
/* Defines FREE##p(T **), the form slu_cleanup() wants. */
#define SLU_DEFINE_CLEANUP(T, FREE)       \
	static inline void FREE##p(T **p) \
	{                                 \
		FREE(*p);                 \
	}

#define SLU_MIN(a, b)                              \
	({                                         \
		__typeof__(a) slu_a_ = (a);        \
		__typeof__(b) slu_b_ = (b);        \
		slu_a_ < slu_b_ ? slu_a_ : slu_b_; \
	})
#define SLU_MAX(a, b)                              \
	({                                         \
		__typeof__(a) slu_c_ = (a);        \
		__typeof__(b) slu_d_ = (b);        \
		slu_c_ > slu_d_ ? slu_c_ : slu_d_; \
	})

/* v + each * count in books that are added to and taken from: defined for all values, exact whenever
 * the true sum fits 64 bits, however large the sums on the way were. */
static inline int64_t slu_plus_mod(int64_t v, int64_t each, int64_t count)
{
	return (int64_t)((uint64_t)v + (uint64_t)each * (uint64_t)count);
}

/* The same where the largest (or least) number will do for a sum that does not fit. */
static inline int64_t slu_plus_sat(int64_t v, int64_t each, int64_t count)
{
	int64_t more;

	if (__builtin_mul_overflow(each, count, &more))
		return (each < 0) == (count < 0) ? INT64_MAX : INT64_MIN;
	return __builtin_add_overflow(v, more, &v) ? (more < 0 ? INT64_MIN : INT64_MAX) : v;
}

/* Sums of amounts never wrap: -EOVERFLOW, *out untouched. */
static inline int SLU_MUST_CHECK slu_add_i64(int64_t a, int64_t b, int64_t *out)
{
	int64_t r;

	if (__builtin_add_overflow(a, b, &r))
		return -EOVERFLOW;
	*out = r;
	return 0;
}

static inline int SLU_MUST_CHECK slu_mul_i64(int64_t a, int64_t b, int64_t *out)
{
	int64_t r;

	if (__builtin_mul_overflow(a, b, &r))
		return -EOVERFLOW;
	*out = r;
	return 0;
}
