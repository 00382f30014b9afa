/* rng.h — seeded random numbers (SplitMix64): same seed, same sequence, on every machine. */
#pragma once
#include "base/base.h"

struct slu_rng {
	uint64_t state;
};

uint64_t slu_rng_u64(struct slu_rng *r);
/* Uniform in [0, n); n > 0. */
uint64_t slu_rng_below(struct slu_rng *r, uint64_t n);
/* Uniform in [0, 1). */
double slu_rng_unit(struct slu_rng *r);
