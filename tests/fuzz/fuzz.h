/* fuzz.h — what the fuzz targets share. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A finding: say it and stop where the fuzzer notices. */
#define must(good)                                                                 \
	do {                                                                       \
		if (!(good)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #good); \
			abort();                                                   \
		}                                                                  \
	} while (0)

/* Whether there is a number of `from` to `to` digits: a short text may name millions of things,
 * which is legal up to the ceilings, but too slow to be looked at often. */
static inline bool fuzz_number(const uint8_t *data, size_t size, size_t from, size_t to)
{
	size_t run = 0;

	for (size_t i = 0; i <= size; i++) {
		if (i < size && data[i] >= '0' && data[i] <= '9') {
			run++;
			continue;
		}
		if (run >= from && run <= to)
			return true;
		run = 0;
	}
	return false;
}
