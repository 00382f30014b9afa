/* swf.h — reader of the Standard Workload Format (Parallel Workloads Archive, version 2.2).
 *
 * Lines go in one by one; no files here (see input.h).  Each job asks for as many slots of one
 * core as it has processors.  The filter is the one of the comparison studies: a job is dropped
 * that has no processors, more than the machine (`procs`, when given), a run time of 0 or less, no
 * estimate, or a negative submit time; a run time above the estimate is cut to it; where only one
 * of the two processor fields (allocated, requested) is given, it stands for both, and where both
 * are given, the requested one counts.
 */
#pragma once
#include "sim/trace.h"

/* How many of the malformed lines are remembered with their cause. */
#define SLU_SWF_NOTES 20

struct slu_swf_note {
	uint64_t line;
	char text[96];
};

/* Zero-initialise with the fields of the first block set. */
struct slu_swf {
	struct slu_trace *trace;
	int64_t procs; /* size of the machine; 0: what the header says */
	bool strict;   /* a malformed line is an error */

	uint64_t line; /* lines seen */
	uint32_t nnote;
	struct slu_swf_note note[SLU_SWF_NOTES];
};

/* Read one line without its newline.  0; with strict -EINVAL and the sentence; -ENOMEM, -EFBIG. */
int slu_swf_line(struct slu_swf *s, const char *p, size_t n, struct slu_error *err);
