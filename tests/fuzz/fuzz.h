/* fuzz.h — what the fuzz targets share. */
#pragma once
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
