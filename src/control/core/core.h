/* core.h — the thread that decides: mirror, groups, queue, graph.
 *
 *	records in ──► mirror ──► groups ──► queue ──► decisions ──► intents ──► writes out
 *
 * The core owns all of it and touches nothing else: objects come in as records, writes to the
 * cluster go out as records, the time is an argument.  So the same core runs in the daemon (its own
 * thread, slu_core_start()) and in tests (slu_core_take() and slu_core_cycle() by hand). */
#pragma once
#include "control/config/config.h"
#include "control/post/intent.h"
#include "control/post/record.h"
#include "control/report/snapshot.h"

struct slu_core;

struct slu_core_setup {
	const struct slu_config *config; /* the core takes a reference */
	/* Borrowed.  NULL: this is a standby, which keeps its mirror warm and decides nothing until
	 * an SLU_REC_LEADER names the store. */
	struct slu_intents *door;
	struct slu_inbox *out;    /* writes for the io thread; borrowed */
	uint64_t first_id;        /* numbers of jobs and intents begin above it */
	uint32_t inbox_max;       /* records that may wait; 0: 65536 */
	struct slu_strpool *pool; /* of the objects, for those made here; NULL: none are */
	bool verify;              /* check the queue's invariants after each cycle */
};

int slu_core_new(const struct slu_core_setup *setup, struct slu_core **out, struct slu_error *err);
/* The thread must have been stopped.  NULL is fine. */
void slu_core_free(struct slu_core *c);
SLU_DEFINE_CLEANUP(struct slu_core, slu_core_free)

/* Read the store and decide from now on: order and open intents count where the cluster shows the
 * same groups.  Call this on a core without a door, before its thread starts, or through a record.  A store that
 * is away (-EAGAIN) is no failure: the cluster is enough to continue.  -EBADMSG, -EPROTO, -EXDEV and -ESTALE
 * are those of slu_journal_recover(). */
int slu_core_lead(struct slu_core *c, const struct slu_journal_setup *setup, struct slu_error *err);

/* The inbox of the core, into which any thread may put records. */
struct slu_inbox *slu_core_inbox(struct slu_core *c);

/* ---- by hand ---- */

/* Take one record (and free it). */
void slu_core_take(struct slu_core *c, struct slu_record *r, int64_t now_us);
/* One scheduling cycle.  0, or a negative errno that no event can mend (a broken invariant). */
int slu_core_cycle(struct slu_core *c, int64_t now_us, struct slu_error *err);
/* When the next cycle is due although no record came: microseconds since the epoch, INT64_MAX. */
int64_t slu_core_wake_us(const struct slu_core *c);

/* ---- as a thread ---- */

int slu_core_start(struct slu_core *c, struct slu_error *err);
/* Finish the present cycle and join the thread; rows on their way still reach the store. */
void slu_core_stop(struct slu_core *c);

/* The newest published snapshot, from any thread; NULL before the first cycle.  Give it back with
 * slu_snapshot_unref().  It may be some seconds old; a caller that needs the last cycle's sends
 * SLU_ASK_SNAPSHOT first. */
struct slu_snapshot *slu_core_snapshot(struct slu_core *c);
