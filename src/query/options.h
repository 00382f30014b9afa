/* options.h — the command line of sluice-query: that of Fluxion's resource-query. */
#pragma once
#include <stdio.h>

#include "match/write.h"

struct slu_query_options {
	const char *load_file;   /* -L */
	const char *load_format; /* -f */
	const char *allow;       /* -W; NULL = all */
	const char *subsystems;  /* -S */
	const char *policy;      /* -P */
	const char *traverser;   /* -T */
	const char *filters;     /* -p; NULL = default */
	enum slu_format format;  /* -F */
	const char *output;      /* -t; NULL = standard output */
	uint32_t reserve;        /* -r */
	bool elapse;             /* -e */
	bool no_prompt;          /* -d */
	bool filters_twice;      /* -p was given twice, which the reference cannot do */
};

/* Read the command line; messages and usage go to `err`.
 * 0: go on; 1: end with status 0 (help was asked for); -EINVAL: end with status 1. */
int slu_query_options_parse(struct slu_query_options *o, int argc, char **argv, FILE *err);
void slu_query_usage(FILE *f, const char *program);
