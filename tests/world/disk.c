/* What becomes of the store: full, answers lost, put back from a copy, written by an older version. */
#include <sqlite3.h>
#include <stdio.h>

#include "world.h"

static int64_t seconds(struct slu_rng *r, uint64_t most)
{
	return (int64_t)(1 + slu_rng_below(r, most * 1000)) * 1000;
}

static void rise(struct world *w, uint64_t unused, uint64_t unused2)
{
	if (!daemon_alive(w, 0) && !daemon_alive(w, 1))
		daemon_start(w, 0);
}

static void copy(sqlite3 *to, sqlite3 *from)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");

	if (!b || sqlite3_backup_step(b, -1) != SQLITE_DONE ||
	    sqlite3_backup_finish(b) != SQLITE_OK)
		abort();
}

static void full(struct world *w, struct slu_rng *r)
{
	w->fault.store_full_until_us = w->now_us + seconds(r, 20);
	world_say(w, "the disk is full");
}

static void forgets(struct world *w, struct slu_rng *r)
{
	w->fault.store_forgets += 1 + (int)slu_rng_below(r, 3);
	world_say(w, "the store commits and does not answer");
}

/* ---- transactions that end in the middle ---- */

static struct {
	bool commit;    /* the next COMMIT becomes a ROLLBACK */
	uint32_t steps; /* a statement is interrupted after so many; 0: none is */
} tear;

#define STEP 20 /* instructions of SQLite between two looks */

static int at_commit(void *unused)
{
	return tear.commit;
}

static int at_step(void *unused)
{
	return tear.steps && !--tear.steps;
}

static int connected(sqlite3 *db, char **err, const struct sqlite3_api_routines *api)
{
	sqlite3_commit_hook(db, at_commit, NULL);
	sqlite3_progress_handler(db, STEP, at_step, NULL);
	return SQLITE_OK;
}

void disk_begin(void)
{
	sqlite3_auto_extension((void (*)(void))connected);
}

void disk_tear(struct world *w, bool on)
{
	tear.commit = on && w->fault.store_tears && !w->fault.tear_after;
	tear.steps = on && w->fault.store_tears ? w->fault.tear_after : 0;
	if (on && w->fault.store_tears)
		w->fault.store_tears--;
}

static void tears(struct world *w, struct slu_rng *r)
{
	w->fault.store_tears += 1 + (int)slu_rng_below(r, 3);
	w->fault.tear_after = (uint32_t)slu_rng_below(r, 12);
	world_say(w, "the store interrupts transactions %s",
		  w->fault.tear_after ? "in the middle" : "before they are committed");
}

void disk_die(struct world *w, int n)
{
	w->fault.die_at_commit = 0;
	daemon_kill(w, n, "");
	world_at(w, w->now_us + SECOND / 10, rise, 0, 0);
}

static void die(struct world *w, struct slu_rng *r)
{
	w->fault.die_at_commit = 1 + (int)slu_rng_below(r, 2);
}

/* ---- copies ---- */

/* The copy does not say that these pods were let go: to the daemon their marks may be forged, until
 * somebody binds them. */
static void unknown_since(struct world *w, int64_t us)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		struct obj *o = w->obj[SLU_KIND_POD].p[i];

		o->pod.late |= *o->pod.pin && !*o->pod.node && o->changed_us >= us;
	}
}

/* A copy is taken now and put back later, with everybody stopped. */
static void put_back(struct world *w, uint64_t p, uint64_t made_us)
{
	sqlite3 *old = (sqlite3 *)(uintptr_t)p;

	if (!w->calm && !w->leased) {
		world_say(w, "the store is put back as it was");
		daemon_kill(w, 1, "");
		daemon_kill(w, 0, "");
		copy(w->disk, old);
		w->forgot = true;
		unknown_since(w, (int64_t)made_us);
		world_at(w, w->now_us + SECOND / 10, rise, 0, 0);
	}
	sqlite3_close(old);
}

static void restore(struct world *w, struct slu_rng *r)
{
	sqlite3 *to = NULL;

	if (sqlite3_open_v2(":memory:", &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
	    SQLITE_OK)
		abort();
	copy(to, w->disk);
	world_say(w, "a copy of the store is made");
	world_at(w, w->now_us + seconds(r, w->slow ? 5400 : 60), put_back, (uint64_t)(uintptr_t)to,
		 (uint64_t)w->now_us);
}

/* The first version had the same rows, without an index, and another view. */
static void older(struct world *w, struct slu_rng *r)
{
	if (w->leased || daemon_alive(w, 1))
		return;
	world_say(w, "an older sluiced has written the store");
	daemon_kill(w, 0, "");
	if (sqlite3_exec(w->disk, "DROP INDEX IF EXISTS events_begin; PRAGMA user_version = 1",
			 NULL, NULL, NULL) != SQLITE_OK)
		abort();
	world_at(w, w->now_us + SECOND / 10, rise, 0, 0);
}

/* Clocks of the daemons' machines are apart, by little. */
static void drift(struct world *w, struct slu_rng *r)
{
	for (int n = 0; n < DAEMONS; n++)
		daemon_step_clock(w, n, (int64_t)slu_rng_below(r, 10000000) - 5 * SECOND);
}

/* One of the clocks is a little fast or slow: it gains or loses as many parts of ten thousand. */
static void gain(struct world *w, uint64_t parts, uint64_t left)
{
	if (!left || w->calm)
		return;
	daemon_step_clock(w, (int)(parts & 1), ((int64_t)(parts >> 1) - 100) * SECOND / 10000);
	world_at(w, w->now_us + SECOND, gain, parts, left - 1);
}

static void run_apart(struct world *w, struct slu_rng *r)
{
	gain(w, slu_rng_below(r, 400), 10 + slu_rng_below(r, 100));
}

void disk_done(struct world *w)
{
	for (uint32_t i = 0; i < w->heap.n; i++)
		if (w->heap.p[i].fn == put_back)
			sqlite3_close((sqlite3 *)(uintptr_t)w->heap.p[i].a);
}

const struct op disk_ops[] = {
	{ "disk full", 2, full, 1 },
	{ "store does not answer", 3, forgets, 1 },
	{ "transactions torn", 4, tears, 2 },
	{ "killed at a commit", 4, die, 2 },
	{ "store put back", 2, restore, 1 },
	{ "store of an older version", 2, older, 1 },
	{ "clocks drift", 3, drift, 1 },
	{ "clocks run apart", 2, run_apart, 3 },
	{ 0 },
};
