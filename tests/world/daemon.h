/* daemon.h — one sluiced: the real core with its mirrors, a journal without a thread, and the
 * requests it has on their way.  A life begins with empty hands and a store. */
#pragma once
#include "base/clock.h"
#include "control/core/core.h"
#include "kube/mirror.h"
#include "wire.h"

/* What an object was when a list began. */
struct listed {
	struct obj *o;
	uint64_t rv;
	bool doomed, bound;
};

struct watch {
	struct slu_mirror *mirror;
	struct daemon *d;
	enum slu_kkind kind;
	uint32_t at;   /* the next line of the log */
	bool due;      /* a delivery is on its way */
	bool listing;  /* a list is */
	bool again;    /* hand over everything after the next list */
	bool broken;   /* the stream is; it goes on where it was */
	bool modelled; /* the server has this kind */
	int64_t retry_us;
	/* A list on its way: all pages are of the moment of the first. */
	struct pages list;
	SLU_VEC(struct listed) seen;
	uint32_t pages_in, list_at; /* pages that came; the first line of the log behind the list */
};

struct daemon {
	struct world *w;
	int n;
	uint64_t life;
	struct slu_core *core;
	struct slu_inbox *out;
	struct slu_config *cfg;
	struct slu_kcodec *codec;
	struct watch watch[SLU_KIND_COUNT];
	struct slu_journal *journal;
	struct slu_journal_setup setup;
	int64_t offset_us; /* of its machine's wall clock */
	struct slu_clock clock;
	int64_t paused_us; /* until then */
	int64_t excuse_us; /* something slowed it down at that time */
	bool mute;         /* what it writes goes nowhere */
	uint64_t settings; /* digest of those it read last */
	bool stepping;     /* a cycle is due */
	bool fenced;       /* the store belongs to a later term */
	uint64_t wake;     /* number of the alarm that counts */
	int64_t wake_at_us;
	uint64_t cycles;
};

/* The daemon is that one, and nobody has taken the lead from it. */
bool daemon_leads(const struct world *w, int n, uint64_t life);
/* A cycle is due. */
void daemon_wake(struct daemon *d);

/* Another life of the first daemon, on a copy of its store: it has seen the cluster as it is now, and
 * writes nothing.  NULL: it does not start. */
struct daemon *daemon_twin(struct world *w, const char *store);
/* A second daemon that watches and waits for the lead; NULL: it does not start.  What it writes goes
 * nowhere, also when it leads. */
struct daemon *daemon_standby(struct world *w);
/* The standby leads from now on, with this store. */
bool daemon_take_over(struct world *w, const char *store);
/* Hand over all that happened, and decide and commit until there is nothing to do, while the clock
 * stands still.  false: it cannot, now. */
bool daemon_catch_up(struct world *w, int n);
/* journal.c: commit what waits; whether there was something. */
bool journal_commit(struct daemon *d);

/* requests.c: what the core wrote goes to the server, answers come back. */
void requests_send(struct daemon *d, struct slu_rec_write *x); /* takes it over */

/* foretell.c: its next cycle makes a new forecast; the last one may be a second old. */
void foretell_anew(struct slu_core *c);
/* foretell.c: the next cycle looks at every job that waits. */
void plan_anew(struct slu_core *c);
/* The second of a promise has come, and what is to make room for it has not ended: for that second the
 * room counts as taken by the promise.  A daemon that starts books promises from the next second on. */
bool plan_is_due(struct slu_core *c);
