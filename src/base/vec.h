/* vec.h — a growable array of any plain type.
 *	SLU_VEC(uint32_t) ids = { 0 };
 *	if (slu_vec_push(&ids, 7) < 0) ...	// -ENOMEM, vector unchanged
 *	slu_vec_each (&ids, uint32_t, p) use(*p);
 *	slu_vec_done(&ids);
 */
#pragma once
#include "base/base.h"

#define SLU_VEC(T)               \
	struct {                 \
		T *p;            \
		uint32_t n, cap; \
	}

/* Room for `want` elements in all.  0 or -ENOMEM. */
int slu_vec_grow(void **p, uint32_t *cap, uint32_t want, size_t size);

#define slu_vec_reserve(v, want) \
	((v)->cap >= (want) ? 0 : slu_vec_grow((void **)&(v)->p, &(v)->cap, (want), sizeof *(v)->p))
#define slu_vec_push(v, ...)                                  \
	({                                                    \
		int slu_rc_ = slu_vec_reserve(v, (v)->n + 1); \
		if (!slu_rc_)                                 \
			(v)->p[(v)->n++] = (__VA_ARGS__);     \
		slu_rc_;                                      \
	})
#define slu_vec_done(v)                \
	do {                           \
		slu_free((v)->p);      \
		(v)->p = NULL;         \
		(v)->n = (v)->cap = 0; \
	} while (0)
#define slu_vec_each(v, T, it) for (T *it = (v)->p; it && it < (v)->p + (v)->n; it++)
