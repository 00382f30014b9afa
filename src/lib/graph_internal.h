/* graph_internal.h — struct sluice_graph and its jobs, for the files of this directory. */
#pragma once
#include "base/map.h"
#include "base/vec.h"
#include "match/match.h"
#include "match/write.h"
#include "sluice/sluice.h"

struct lib_job {
	uint64_t id;
	enum sluice_job_state state;
	int64_t start_s, end_s;
};

struct sluice_graph {
	struct slu_graph *g;
	struct slu_match *m;
	struct slu_writer *w;
	enum slu_format format;
	char load_format[16];
	uint64_t next; /* number of the next job */
	struct slu_map by_id;
	SLU_VEC(struct lib_job) job; /* also cancelled ones, until the caller forgets them */
	uint64_t allocated, reserved;
	struct slu_buf messages;
};

#define LIB_TEXT_MAX ((size_t)1 << 31)

_Static_assert(sizeof(struct sluice_error) == sizeof(struct slu_error), "one error, two names");
static inline struct slu_error *lib_err(struct sluice_error *e)
{
	return (struct slu_error *)e;
}

/* Put the message into `err` and add it to the graph's messages; returns `code`. */
int lib_fail(struct sluice_graph *g, struct sluice_error *err, int code, const char *what,
	     const char *fmt, ...) SLU_PRINTF(5, 6);
/* The job with this number; NULL if there is none. */
struct lib_job *lib_job_find(const struct sluice_graph *g, uint64_t id);
/* Make room for one more job, so that lib_job_put() cannot fail. */
int lib_job_room(struct sluice_graph *g, uint64_t id);
void lib_job_put(struct sluice_graph *g, uint64_t id, enum sluice_job_state state, int64_t start_s,
		 int64_t end_s);
/* Mark a job as cancelled: it no longer has an allocation. */
void lib_job_end(struct sluice_graph *g, struct lib_job *j);
/* Take the text that the writer collected, without the last newline; *text is NULL if there is none. */
int lib_text(struct slu_writer *w, char **text);
