#include "base/rng.h"
#include "base/map.h"

uint64_t slu_rng_u64(struct slu_rng *r)
{
	r->state += 0x9e3779b97f4a7c15u;
	return slu_hash_u64(r->state);
}

uint64_t slu_rng_below(struct slu_rng *r, uint64_t n)
{
	/* Reject the incomplete last block so that every value is equally likely. */
	uint64_t limit = UINT64_MAX - UINT64_MAX % n, v;

	do
		v = slu_rng_u64(r);
	while (v >= limit);
	return v % n;
}

double slu_rng_unit(struct slu_rng *r)
{
	return (double)(slu_rng_u64(r) >> 11) * 0x1.0p-53;
}
