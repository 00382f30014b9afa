/* recover.h — reading the store at a start, its outages, the event log, the audits. */
#pragma once
#include "control/run/run.h"

struct recovery {
	struct slu_intents *own_door;  /* made by slu_core_lead() */
	char store_why[SLU_ERROR_MAX]; /* why the store cannot be used; "" if it can */
	struct slu_journal_health store_health;
	struct slu_journal_setup lead; /* as given to core_lead(); its strings are copies */
	bool store_rewrite;            /* the store lacks rows: write everything again */
	bool awaits;      /* the first cycle waits for members that are being created */
	int64_t await_us; /* ... until this time; 0: the wait has not begun */
	/* How much of the log is durable: `log_durable` bytes for certain, and `log_marked` bytes once
	 * the ticket `log_mark` is.  `log_ticket`: of the latest batch. */
	int64_t log_marked, log_durable;
	uint64_t log_ticket, log_mark;
	/* Of the present log: the bytes of the picture it began with, and when it began. */
	int64_t log_picture, log_begun_us;
	bool log_due;      /* a new log is to begin */
	bool log_given_up; /* the store has no room for a log */
	enum {
		CORE_RENEWAL_NO,
		CORE_RENEWAL_MADE, /* the beginning of the new log is in the batch */
		CORE_RENEWAL_SENT, /* ... is durable when log_renewal_ticket is */
	} log_renewal;
	uint64_t log_renewal_ticket;
	struct { /* census.c; [0]: nodes, [1]: pods */
		struct slu_map suspect[2];
		bool second[2];      /* the core has requested a second list */
		int64_t since_us[2]; /* when the suspicion arose, or the request was made */
		/* Hashes of objects deleted lately: a list may be older than the deletion. */
		uint64_t lately[4096], n_lately;
	} audit;
};

/* ---- log.c ---- */

/* Replace the queue by a new one, fill that one from the mirror, and begin a new log with it.  No run may exist
 * yet. */
int core_log_begin(struct slu_core *c, struct slu_error *err);
/* Put the events noted so far into the batch, if they led to a decision or have waited long enough, or if
 * `all`. */
void core_log_flush(struct slu_core *c, bool all);
/* Between two cycles: begin a new log with a picture of the queue, if it is time.  Returns true if a log began:
 * its rows wait in the batch. */
bool core_log_renew(struct slu_core *c);

/* ---- store.c ---- */

/* Read the store and decide from now on: the body of slu_core_lead(). */
int core_lead(struct slu_core *c, const struct slu_journal_setup *setup, struct slu_error *err);
/* Once in a cycle: follow the health of the journal, log when an outage begins and ends, and
 * repair the store after one. */
void core_store_watch(struct slu_core *c);
/* Have the store delete history that is older or larger than the settings allow. */
void core_store_keep(struct slu_core *c);
/* The state of the store in words: a constant, or a text in `buf`. */
const char *core_store_text(const struct slu_core *c, char *buf, size_t n);
/* Replace all rows of the store by the state in memory. */
void core_store_rewrite(struct slu_core *c);
void core_store_done(struct slu_core *c);

/* ---- first.c: read the store, plan the first cycle ---- */

/* Read the rows of the store into memory.  After a failure nothing of them is kept. */
int core_recover(struct slu_core *c, struct slu_journal_setup *setup, struct slu_error *err);
/* Whether the first cycle waits: a gang that has started has no member at this moment (it is between two
 * waves, or was just resumed), and its object is creating the next ones, whose places must stay free. */
bool core_recovery_awaits(struct slu_core *c);
int64_t core_recovery_wake_us(const struct slu_core *c);
/* Settle all groups that the store knows: first those that have started, which take their places; then each promise
 * takes its own in the plan (also promises to later members of running gangs); then the others enter in
 * order of arrival.  Only then may a job start. */
void core_recover_plan(struct slu_core *c);
/* After the first cycle: undo the intents that no pod has claimed, and forget the rows that no group has. */
void core_recovered(struct slu_core *c);

/* ---- podgroups.c ---- */

/* Correct the status of PodGroups that the daemon could not write at its time. */
void core_podgroups_audit(struct slu_core *c);

/* ---- audit.c ---- */

/* When it is time: compare the books of the plan with the pods of the mirror. */
void core_audit(struct slu_core *c);

/* ---- census.c ---- */

/* How a complete list of a kind differs from the mirror: objects that the list lacks, borrowed from the mirror, and
 * objects that the list has in a newer version, borrowed from the record. */
struct core_changes {
	SLU_VEC(const struct slu_kobj *) gone, news;
};
int core_resent(struct slu_core *c, const struct slu_rec_resent *r, struct core_changes *out);
/* Compare a fresh list with the mirror. */
void core_census(struct slu_core *c, const struct slu_rec_census *r);
/* Remember that a watch has reported the deletion of this object. */
void core_census_gone(struct slu_core *c, const struct slu_kobj *o);
/* Request a second list for suspicions that have lasted. */
void core_census_settle(struct slu_core *c);
int64_t core_census_wake_us(const struct slu_core *c);
/* Have the io thread list all pods and nodes again and pass every object to the core. */
void core_census_again(struct slu_core *c);
