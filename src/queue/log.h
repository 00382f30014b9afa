/* log.h — the events a queue was given and its decisions, recorded so that a replay can prove them.
 *
 * The writer stands in front of a queue: every event and every pass goes through it, and the writer
 * notes the answer of the queue behind each.  The bytes that gather are rows of a log; the caller
 * decides where and how often to keep them.
 *
 *	slu_qlog_begin(l, q, &opts);                    q is new and empty
 *	slu_qlog_apply(l, q, now_s, &ev, &out, &err);   instead of slu_queue_apply()
 *	slu_qlog_schedule(l, q, now_s, &out, &err);     instead of slu_queue_schedule()
 *	keep(slu_qlog_bytes(l)); slu_qlog_clear(l);
 *
 * The reader (slu_replay) takes the rows in order, runs them through a queue of its own and holds
 * what that decides against what was noted, byte by byte.
 *
 * A log begins with a new queue, or in the middle, with a picture of one: the rows from there on need
 * none before them.  Node sets are shared by many jobs and change under them; a set is written once and
 * then by number, its changes as they happen (slu_qlog_set()).  A replay cannot repeat what a failing
 * call left behind: after the failure of a pass nothing more is written until the next begin.
 *
 * Threads: one owner at a time. */
#pragma once
#include "queue/codec.h"

struct slu_qlog;

/* No row is larger than this. */
#define SLU_QLOG_ROW_MAX (16u << 20)
/* No picture is larger than this. */
#define SLU_QLOG_PICTURE_MAX (1u << 30)

struct slu_qlog *slu_qlog_new(void); /* NULL: out of memory */
void slu_qlog_free(struct slu_qlog *l);
SLU_DEFINE_CLEANUP(struct slu_qlog, slu_qlog_free)

/* A new log for the new queue `q`, which was made with `opts`.  What was not taken is dropped. */
void slu_qlog_begin(struct slu_qlog *l, const struct slu_queue_opts *opts);
/* Begin a new log for a queue in the middle of its life, with a picture of `q`.  The caller must have
 * taken all noted bytes before.  The picture may need several rows: take them at once, until no bytes
 * are left.  0, or -ENOMEM or -EMSGSIZE with the log stopped. */
int slu_qlog_renew(struct slu_qlog *l, const struct slu_queue *q);
/* Stop noting until the next begin (what was noted so far may still be taken). */
void slu_qlog_stop(struct slu_qlog *l);
bool slu_qlog_on(const struct slu_qlog *l);

/* As the calls they are named after.  Without a begin, or after a stop, nothing is noted. */
int slu_qlog_apply(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
		   const struct slu_event *ev, struct slu_decisions *out, struct slu_error *err);
int slu_qlog_schedule(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
		      struct slu_decisions *out, struct slu_error *err);
/* A node was put into or taken out of a set that requests may use. */
void slu_qlog_set(struct slu_qlog *l, const struct slu_nodeset *set, uint32_t index, bool in);

/* What was noted since the last clear: a row, once it is worth keeping.  Borrowed. */
const struct slu_buf *slu_qlog_bytes(const struct slu_qlog *l);
/* How many decisions are in it, and whether it begins a log. */
uint32_t slu_qlog_decisions(const struct slu_qlog *l);
bool slu_qlog_begins(const struct slu_qlog *l);
/* Drop the row that the caller has taken.  While a picture is being written, the next row is ready at once. */
void slu_qlog_clear(struct slu_qlog *l);

/* ---- reading ---- */

struct slu_replay;

struct slu_replay_opts {
	/* Called for each decision that came out as noted; may be NULL.  A negative return ends the
	 * replay and is handed back.  `q` is to look at. */
	int (*decision)(void *arg, int64_t at_us, const struct slu_queue *q,
			const struct slu_decisions *d, const struct slu_decision *x);
	void *arg;
	bool verify; /* check every invariant at each step */
};

struct slu_replay_count {
	uint64_t rows, begins, events, passes, decisions;
	/* Begins with a picture; if the rows before it are there, too, the replay compares the picture
	 * with the queue that came out of them. */
	uint64_t middle;
	uint64_t skipped; /* rows before the first begin, or behind a stop */
};

int slu_replay_new(const struct slu_replay_opts *opts, struct slu_replay **out);
void slu_replay_free(struct slu_replay *r);
SLU_DEFINE_CLEANUP(struct slu_replay, slu_replay_free)

/* The next row.  0; -EUCLEAN: the first decision that differs, named with time, job, what was noted
 * and what came out, or a picture that does; -EINVAL: not a row, or rows are missing before it;
 * -ENOTSUP: of a newer program; -ENOMEM; what `decision` said.  After a failure only freeing is
 * left. */
int slu_replay_row(struct slu_replay *r, uint64_t seq, int64_t at_us, const void *p, size_t n,
		   struct slu_error *err);
const struct slu_replay_count *slu_replay_count(const struct slu_replay *r);

/* One decision in words: "start of job 7 (team/train) at 1790000000 on n1 x2, n3". */
void slu_decision_describe(const struct slu_queue *q, const struct slu_decisions *d,
			   const struct slu_decision *x, struct slu_buf *out);
