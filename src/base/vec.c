#include "base/vec.h"

int slu_vec_grow(void **p, uint32_t *cap, uint32_t want, size_t size)
{
	uint32_t n = *cap ? *cap : 4;
	void *q;

	while (n < want) {
		if (n > UINT32_MAX / 2)
			return -ENOMEM;
		n *= 2;
	}
	q = slu_reallocarray(*p, n, size);
	if (!q)
		return -ENOMEM;
	*p = q;
	*cap = n;
	return 0;
}
