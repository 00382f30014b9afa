/* journal.h — the store behind a thread of its own, so that a slow disk never delays a decision.
 *
 * The core hands over batches and goes on; the thread commits whatever has gathered in one
 * transaction (group commit) and publishes how far it got.  Placement waits only for the ticket of
 * its own intent.
 *
 *	core   submit(batch) -> ticket 17 ...              durable() >= 17: carry the intent out
 *	store         [take all] [one transaction] [publish] [wake]
 *
 * The thread tries an unreachable database again, for ever, with growing pauses; the batches wait in
 * order.  Their line is bounded: when it is full, submit returns -EAGAIN, and the caller holds back
 * (or, told to go on with the cluster as its only memory, drops the batch and calls
 * slu_journal_lost()). */
#pragma once
#include "store/store.h"

struct slu_journal;

enum slu_journal_state {
	SLU_JOURNAL_STARTING, /* not opened yet */
	SLU_JOURNAL_OK,
	SLU_JOURNAL_AWAY,   /* cannot write just now; trying again */
	SLU_JOURNAL_FENCED, /* a newer leader has the store: this process must stop deciding */
	SLU_JOURNAL_BROKEN, /* damaged, another cluster's, or a newer schema: a person has to act */
};

struct slu_journal_health {
	enum slu_journal_state state;
	char why[SLU_ERROR_MAX]; /* the last failure; "": none since the last success */
	uint32_t waiting;        /* batches not yet durable */
	uint64_t commits, ops, failures;
	int64_t last_commit_ns; /* how long the last transaction took */
	int64_t busy_ns;        /* how long the transaction under way has taken; 0: none is */
	uint64_t pruned;        /* rows of history removed */
	bool log_too_large;     /* without the log under way the store would be small enough */
	int64_t term;           /* the store was opened with; may be above the one asked for */
	bool lost; /* batches were dropped: write everything again once the state is OK */
};

struct slu_journal_setup {
	const char *url;     /* copied */
	const char *cluster; /* copied; checked when the store opens */
	const char *holder;  /* copied; name of this replica */
	int64_t term;        /* 0 = not fenced */
	/* Whether this replica leads at this moment, by the lease that gave it the term; called from
	 * any thread.  A store whose term is not below ours belongs to a newer leader, unless we
	 * still lead: then the lease that counts the terms was made again, and our term continues
	 * above the store's.  NULL counts as no. */
	bool (*held)(void *arg);
	uint32_t max_waiting; /* batches; 0 = 4096 */
	/* Called from the store thread after each commit and each change of state; must not block.
	 */
	void (*wake)(void *arg);
	void *arg;
};

/* Start the thread.  An unreachable database is no failure here: see health. */
int slu_journal_new(const struct slu_journal_setup *setup, struct slu_journal **out);
/* Wait up to `wait_ms` for the waiting batches, then stop.  Returns the number of batches given up. */
uint32_t slu_journal_free(struct slu_journal *j, int wait_ms);

/* Take over the batch (also on failure it is freed).  0 with the ticket, -EAGAIN when the line is
 * full, -ESTALE when fenced, -EIO when broken. */
int slu_journal_submit(struct slu_journal *j, struct slu_batch *b, uint64_t *ticket);
/* The highest ticket that is on disk. Any thread. */
uint64_t slu_journal_durable(const struct slu_journal *j);
void slu_journal_health(struct slu_journal *j, struct slu_journal_health *out);
/* Note that a batch was dropped, and forget it once everything has been written again. */
void slu_journal_lost(struct slu_journal *j, bool lost);

/* Remove, once and in small steps between the commits, history older than `before_us`, and the
 * oldest history while rows need more than `bytes` (0: no limit).  Rows that a restart needs
 * stay.  `log`: the event log under way is no longer of use and may be removed, too. */
void slu_journal_keep(struct slu_journal *j, int64_t before_us, int64_t bytes, bool log);

/* Read the store at start, on the caller's thread, before anything is submitted.  Opens its own
 * connection, migrates, binds to the cluster, takes the term (and notes it in the setup, if it is
 * not the one asked for). */
int slu_journal_recover(struct slu_journal_setup *setup, const struct slu_store_reader *r,
			struct slu_error *err);
