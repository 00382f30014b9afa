/* intent.h — the one door between a decision and the cluster.
 *
 * The core decides a whole gang; before anything of it is written to the cluster the decision is an
 * intent in the store.  The changes of one cycle are gathered in one batch (slu_intents_batch(),
 * slu_intent_propose(), slu_intent_settle()) and sent (slu_intents_send()), and the core continues.
 * The journal's thread commits the batch.  Once slu_intents_durable() is true for the batch's ticket,
 * the core places the gang:
 *
 *	core                     journal                      core, later
 *	propose(job 7) ──┐
 *	put_plan(job 9) ─┼─ send ─► one transaction ─► wake ─► durable(ticket): place job 7
 *	settle(job 3) ───┘
 *
 * While the store cannot write, nothing becomes durable and so nothing new is placed; the health
 * reports that, and the core catches up by itself.  Without a store (url "memory:") the cluster is the only
 * memory and every intent counts at once. */
#pragma once
#include "store/journal.h"

struct slu_intents;

/* url NULL or "memory:" in the setup: no journal. */
int slu_intents_new(const struct slu_journal_setup *setup, struct slu_intents **out,
		    struct slu_error *err);
/* Send the open batch, wait up to `wait_ms` until it is durable, and stop.  NULL is fine. */
void slu_intents_free(struct slu_intents *d, int wait_ms);

/* Whether there is a store; false for "memory:". */
bool slu_intents_kept(const struct slu_intents *d);

/* The batch of this cycle, for jobs, pods, plans, results; owned by the door. */
struct slu_batch *slu_intents_batch(struct slu_intents *d);

/* A pod of a gang and the node chosen for it. */
struct slu_intent_pod {
	const char *uid, *space, *name, *node;
};

/* Note the decision.  Returns 0 or -ENOMEM (then nothing of it may be carried out). */
int SLU_MUST_CHECK slu_intent_propose(struct slu_intents *d, uint64_t intent, uint64_t job,
				      int64_t now_us, const char *verb,
				      const struct slu_intent_pod *pod, uint32_t n);
/* Note the outcome of an intent: SLU_INTENT_DONE or SLU_INTENT_UNDONE. */
int SLU_MUST_CHECK slu_intent_settle(struct slu_intents *d, uint64_t intent, uint64_t job,
				     int64_t made_us, const char *verb,
				     enum slu_store_intent_state how);

/* Send the batch.  *ticket is for slu_intents_durable(); an empty batch has the ticket of the one before.  0;
 * -EAGAIN if the journal's queue is full: the batch stays open and goes with the next send; -ESTALE if
 * another leader has taken over; -EIO if the store needs a person; -ENOMEM. */
int SLU_MUST_CHECK slu_intents_send(struct slu_intents *d, uint64_t *ticket);
/* Batches were dropped because the store was away for too long: note it, or forget it once
 * everything has been written again. */
void slu_intents_lost(struct slu_intents *d, bool lost);
/* As slu_journal_keep(). */
void slu_intents_keep(struct slu_intents *d, int64_t before_us, int64_t bytes, bool log);
bool slu_intents_durable(const struct slu_intents *d, uint64_t ticket);
/* Of the journal; state OK without one. */
void slu_intents_health(struct slu_intents *d, struct slu_journal_health *out);
