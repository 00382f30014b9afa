/* recover.h — the store's rows, what it remembers after a start, the event log, the audits. */
#pragma once
#include "control/run/run.h"

struct recovery {
	struct slu_intents *own_door;  /* made by slu_core_lead() */
	char store_why[SLU_ERROR_MAX]; /* what is wrong with it; "" */
	struct slu_journal_health store_health;
	struct slu_journal_setup lead; /* own copies */
	bool store_rewrite;            /* the store lacks rows: write everything again */
	bool awaits;                   /* the first cycle waits for members that are just made */
	int64_t await_us;              /* ... until then; 0: it has not begun to */
	/* bytes of the log: at the mark, known to be durable; tickets */
	int64_t log_marked, log_durable;
	uint64_t log_ticket, log_mark;
	/* the log under way: bytes of the picture it began with, when that was */
	int64_t log_picture, log_begun_us;
	bool log_due;      /* a new log is to begin */
	bool log_given_up; /* the store has no room for a log */
	enum {
		CORE_RENEWAL_NO,
		CORE_RENEWAL_MADE, /* the beginning is in the batch */
		CORE_RENEWAL_SENT, /* with a ticket not above this: */
	} log_renewal;
	uint64_t log_renewal_ticket;
	struct { /* census.c; [0]: nodes, [1]: pods */
		struct slu_map suspect[2];
		bool second[2];                  /* a second list is asked for */
		int64_t since_us[2];             /* of the suspicion, or of the asking */
		uint64_t lately[4096], n_lately; /* objects that went: a list may be older */
	} audit;
};

/* ---- log.c ---- */

/* A new queue, told again what the mirror holds, and with it a new log.  No run may be there. */
int core_log_begin(struct slu_core *c, struct slu_error *err);
/* Put the noted events into the batch if one of them matters (or if `all`). */
void core_log_flush(struct slu_core *c, bool all);
/* Between two cycles: begin a new log in the middle of the run, if it is time.  true: it did, and
 * there is something to send. */
bool core_log_renew(struct slu_core *c);

/* ---- store.c ---- */

/* Read the store and decide from now on: slu_core_lead(). */
int core_lead(struct slu_core *c, const struct slu_journal_setup *setup, struct slu_error *err);
void core_store_watch(struct slu_core *c);
void core_store_keep(struct slu_core *c); /* how much history stays */
/* The state of the store in words; the text may lie in `buf`. */
const char *core_store_text(const struct slu_core *c, char *buf, size_t n);
void core_store_rewrite(struct slu_core *c); /* everything, in place of what is there */
void core_store_done(struct slu_core *c);

/* ---- first.c: the store is read, the first cycle ---- */

int core_recover(struct slu_core *c, struct slu_journal_setup *setup, struct slu_error *err);
/* Whether the first cycle waits: a gang that began has no member at this moment (it is between two
 * waves, or was just resumed) and its object is making the next ones, whose places must stay free. */
bool core_recovery_awaits(struct slu_core *c);
int64_t core_recovery_wake_us(const struct slu_core *c);
/* Settle what runs, then what was promised a start; the others come after. */
void core_recover_plan(struct slu_core *c);
void core_recovered(struct slu_core *c); /* settle what is left, forget the rest */

/* ---- podgroups.c ---- */

void core_podgroups_audit(struct slu_core *c);

/* ---- audit.c ---- */

void core_audit(struct slu_core *c);

/* ---- census.c ---- */

/* What a second list of a kind tells: objects we hold and it lacks, and those it has in a newer
 * version.  Both borrowed, from the mirror and from the record. */
struct core_changes {
	SLU_VEC(const struct slu_kobj *) gone, news;
};
int core_resent(struct slu_core *c, const struct slu_rec_resent *r, struct core_changes *out);
void core_census(struct slu_core *c, const struct slu_rec_census *r);
void core_census_gone(struct slu_core *c, const struct slu_kobj *o);
void core_census_settle(struct slu_core *c);
int64_t core_census_wake_us(const struct slu_core *c);
/* Have the io thread list all pods and nodes again and hand them over. */
void core_census_again(struct slu_core *c);
