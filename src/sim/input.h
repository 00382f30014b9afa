/* input.h — files, plain or gzip, line by line. */
#pragma once
#include "base/base.h"

/* Call fn for each line (without its end) of the file; "-" is standard input.  Lines longer than
 * `max` are -EMSGSIZE.  Stops when fn returns non-zero and returns that.  Errors name the file. */
int slu_input_lines(const char *path, size_t max,
		    int (*fn)(const char *p, size_t n, void *arg, struct slu_error *err), void *arg,
		    struct slu_error *err);
