/* write.h — a trace back into text. */
#pragma once
#include "sim/trace.h"

#include <stdio.h>

/* Standard Workload Format.  -ENOTSUP for what it cannot say: gangs of several roles, closeness,
 * elastic sizes, events. */
int slu_trace_write_swf(const struct slu_trace *t, const char *note, FILE *f,
			struct slu_error *err);
/* JSON lines (jsonl.h); everything. */
int slu_trace_write_jsonl(const struct slu_trace *t, const char *note, FILE *f,
			  struct slu_error *err);
