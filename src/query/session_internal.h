/* session_internal.h — what the files of query/ share. */
#pragma once
#include "base/map.h"
#include "base/vec.h"
#include "match/match.h"
#include "match/write.h"
#include "query/session.h"

enum job_state { JOB_ALLOCATED, JOB_RESERVED, JOB_CANCELED };

struct job {
	int64_t id;
	enum job_state state;
	bool allocated, reserved; /* known to cancel and update */
	int64_t at_s;
	char *file;
	double overhead_s;
};

struct slu_session {
	struct slu_query_options o;
	struct slu_session_io io;
	FILE *own_out; /* closed at the end; NULL = none */
	struct slu_graph *g;
	struct slu_match *m;
	struct slu_writer *w;
	struct slu_buf text;          /* the file of the current command */
	struct slu_buf result;        /* the text of the current result */
	SLU_VEC(struct job) jobs;     /* by id */
	int64_t counter;              /* id of the next job */
	uint64_t preorder, postorder; /* of the last operation that counts */
	double min_s, max_s, sum_s;
	double load_s;
};

#define WORDS_MAX 4096

struct words {
	uint32_t n;
	char *w[WORDS_MAX];
};

typedef int command_fn(struct slu_session *s, const struct words *a);

command_fn slu_query_match, slu_query_multi_match, slu_query_update, slu_query_attach,
	slu_query_remove, slu_query_find, slu_query_cancel, slu_query_partial_cancel,
	slu_query_set_property, slu_query_get_property, slu_query_set_status, slu_query_get_status,
	slu_query_list, slu_query_info, slu_query_stat, slu_query_cat, slu_query_help,
	slu_query_quit;

struct command {
	const char *name, *abbr;
	command_fn *run;
	const char *text;
};
/* Ends with a NULL name. */
extern const struct command slu_query_commands[];

/* Numbers of jobs are 64 bits without a sign to the user, and go on beyond 2^63. */
static inline int64_t slu_session_next_id(int64_t id)
{
	return (int64_t)((uint64_t)id + 1);
}

struct job *slu_session_job(struct slu_session *s, int64_t id);
/* Add or replace; -ENOMEM. */
int slu_session_job_set(struct slu_session *s, int64_t id, int64_t at_s, const char *file,
			double overhead_s);
/* The file into s->text; prints "can't open" and returns a negative errno if it cannot. */
int slu_session_read(struct slu_session *s, const char *path);
/* The same without a word. */
int slu_session_read_quiet(struct slu_session *s, const char *path);
int64_t slu_session_clock(const struct slu_session *s);
/* Messages on err, in step with out. */
void slu_session_err(struct slu_session *s, const char *fmt, ...) SLU_PRINTF(2, 3);
void slu_session_line(FILE *f);
/* Put the return value of a matcher call into the result's code and keep its counts.  0, -ENOMEM. */
int slu_session_outcome(struct slu_session *s, int rc, struct slu_match_result *r);
/* Print what the last cancel visited; `what` names its kind. */
void slu_session_counts(struct slu_session *s, const char *what);
/* Says so; 0. */
int slu_session_malformed(struct slu_session *s);

/* --- match.c --- */
void slu_session_print_match(struct slu_session *s, int64_t jobid, bool booked, int64_t at_s,
			     double took_s);
void slu_session_print_no_match(struct slu_session *s, int64_t jobid, bool satisfiable,
				double took_s);
