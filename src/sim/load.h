/* load.h — traces and machines from files. */
#pragma once
#include "sim/trace.h"

struct slu_load_opts {
	int64_t procs; /* processors of the machine, when given; 0: the log's header says */
	bool strict;   /* malformed SWF lines are errors */
};

/* Read an SWF or JSON-lines trace, plain or .gz; which it is, its first line tells.  Malformed SWF
 * lines are counted in the trace; `note` (may be NULL) gets a line about each of the first few. */
int slu_load_trace(const char *path, const struct slu_load_opts *o, struct slu_trace *out,
		   void (*note)(const char *text, void *arg), void *arg, struct slu_error *err);

/* Nodes of a resource graph file (GRUG, JGF, R, hwloc; format NULL: by its name and content):
 * cores, gpus and memory below each node vertex, the rack, block and zone above it, its properties.
 */
int slu_load_machine(const char *path, const char *format, struct slu_trace *out,
		     struct slu_error *err);
