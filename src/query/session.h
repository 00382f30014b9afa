/* session.h — one session of sluice-query: a graph, a matcher, a writer, the jobs so far; and the
 * commands that work on them.  Prints what Fluxion's resource-query prints, on the same stream. */
#pragma once
#include <stdio.h>

#include "match/match.h"
#include "query/options.h"

struct slu_session;

/* Where a session reads and writes.  Streams are borrowed. */
struct slu_session_io {
	FILE *out; /* results */
	FILE *std; /* list, info, stat, cat, help, times */
	FILE *err;
	bool person; /* a person types the commands and is told of unknown ones, which scripts may contain */
	/* Append the text of a file; 0 or a negative errno.  NULL: slu_file_read. */
	int (*read)(void *arg, const char *path, struct slu_buf *out);
	void *arg;
	int64_t (*clock_ns)(void); /* monotonic; NULL: the system's */
};

/* Load the graph and make the matcher.  -EINVAL with the reference's message in `msg`, -ENOMEM. */
int slu_session_new(const struct slu_query_options *o, const struct slu_session_io *io,
		    struct slu_session **out, struct slu_buf *msg);
void slu_session_free(struct slu_session *s);
SLU_DEFINE_CLEANUP(struct slu_session, slu_session_free)

/* Send results to a file from now on; the session closes it.  False with errno if it cannot. */
bool slu_session_output(struct slu_session *s, const char *path);

/* Whether everything printed so far has reached its file. */
bool slu_session_written(struct slu_session *s);

/* Carry out one line.  1: the session ends ("quit"); 0: go on; -ENOMEM. */
int slu_session_command(struct slu_session *s, const char *line);

/* Print what -e prints after loading. */
void slu_session_print_load(struct slu_session *s);

/* Names of the commands, in the order of `help`; NULL after the last. */
const char *slu_session_command_name(size_t i);
struct slu_graph *slu_session_graph(struct slu_session *s);
