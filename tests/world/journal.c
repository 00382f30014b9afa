/* The store's thread without the thread: the interface of store/journal.h for the world, linked
 * instead of the real one.  Batches wait until a tick commits them, with the real store code. */
#include "store/journal.h"

#include <stdio.h>

#include "daemon.h"

struct slu_journal {
	struct daemon *d;
	struct slu_store *store;
	SLU_VEC(struct slu_batch *) line;
	uint64_t last_ticket, durable;
	struct slu_journal_setup setup;
	struct slu_journal_health health;
	int64_t keep_before_us;
	bool keep, due;
};

static bool is_away(const struct world *w)
{
	return w->fault.store_away_until_us > w->now_us;
}

static int open_store(const struct slu_journal_setup *setup, struct slu_store **out,
		      struct slu_error *err)
{
	const struct daemon *d = setup->arg;
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	int rc;

	if (is_away(d->w))
		return slu_fail(err, -EAGAIN, "the disk is away");
	rc = slu_store_open(setup->url, SLU_STORE_MIGRATE, &s, err);
	if (!rc)
		rc = slu_store_bind_cluster(s, setup->cluster, err);
	if (!rc && setup->term)
		rc = slu_store_take_term(s, setup->term, setup->holder, err);
	if (!rc)
		*out = slu_take(s);
	return rc;
}

static void commit(struct world *w, uint64_t n, uint64_t life);

static void later(struct slu_journal *j, int64_t in_us)
{
	if (j->due)
		return;
	j->due = true;
	world_at(j->d->w, j->d->w->now_us + in_us, commit, (uint64_t)j->d->n, j->d->life);
}

static enum slu_journal_state state_of(int rc)
{
	return !rc             ? SLU_JOURNAL_OK
	       : rc == -ESTALE ? SLU_JOURNAL_FENCED
	       : rc == -EBADMSG || rc == -EPROTO || rc == -EXDEV || rc == -EINVAL
		       ? SLU_JOURNAL_BROKEN
		       : SLU_JOURNAL_AWAY;
}

static void committed(struct slu_journal *j)
{
	for (uint32_t i = 0; i < j->line.n; i++) {
		j->health.ops += slu_batch_size(j->line.p[i]);
		slu_batch_free(j->line.p[i]);
	}
	j->durable += j->line.n;
	j->health.commits += j->line.n != 0;
	j->line.n = 0;
}

static void commit(struct world *w, uint64_t n, uint64_t life)
{
	struct daemon *d = w->daemon[n];
	struct slu_journal *j = d && d->life == life ? d->journal : NULL;
	struct slu_error err = { 0 };
	int rc = 0;

	if (!j)
		return;
	j->due = false;
	if (is_away(w))
		rc = slu_fail(&err, -EAGAIN, "the disk is away");
	if (!rc && w->fault.store_full_until_us > w->now_us)
		rc = slu_fail(&err, -ENOSPC, "the disk is full");
	if (!rc && !j->store)
		rc = open_store(&j->setup, &j->store, &err);
	if (!rc && j->line.n && w->fault.die_at_commit == 1) {
		disk_die(w, (int)n);
		return;
	}
	if (!rc && j->line.n) {
		disk_tear(w, true);
		rc = slu_store_commit(j->store, j->setup.term, j->line.p, j->line.n, &err);
		disk_tear(w, false);
	}
	if (!rc && j->line.n && j->setup.term)
		rule_commit(w, d->n, j->setup.term);
	if (!rc && j->line.n && w->fault.die_at_commit == 2) {
		disk_die(w, (int)n);
		return;
	}
	if (!rc && j->line.n && w->fault.store_forgets) { /* done, and nobody hears of it */
		w->fault.store_forgets--;
		rc = slu_fail(&err, -EAGAIN, "the store does not answer");
	}
	if (!rc) {
		committed(j);
		if (j->keep)
			j->keep = slu_store_prune(j->store, j->keep_before_us, 100, false, &err) >
				  0;
	}
	j->health.state = state_of(rc);
	j->health.term = j->setup.term;
	snprintf(j->health.why, sizeof j->health.why, "%s", rc ? err.text : "");
	d->fenced |= rc == -ESTALE;
	if (rc) {
		j->health.failures++;
		d->excuse_us = w->now_us;
		slu_store_close(slu_take(j->store));
		later(j, SECOND);
	}
	daemon_wake(d);
}

bool journal_commit(struct daemon *d)
{
	if (!d->journal || !d->journal->line.n)
		return false;
	commit(d->w, (uint64_t)d->n, d->life);
	return !d->journal->line.n;
}

int slu_journal_new(const struct slu_journal_setup *setup, struct slu_journal **out)
{
	struct slu_journal *j = slu_calloc(1, sizeof *j);

	j->d = setup->arg;
	j->d->journal = j;
	j->setup = *setup;
	later(j, 1000);
	*out = j;
	return 0;
}

/* Whoever is killed takes with it what was not on disk. */
uint32_t slu_journal_free(struct slu_journal *j, int wait_ms)
{
	uint32_t left = j->line.n;

	for (uint32_t i = 0; i < left; i++)
		slu_batch_free(j->line.p[i]);
	slu_vec_done(&j->line);
	slu_store_close(j->store);
	j->d->journal = NULL;
	slu_free(j);
	return left;
}

int slu_journal_submit(struct slu_journal *j, struct slu_batch *b, uint64_t *ticket)
{
	struct world *w = j->d->w;
	int rc = j->health.state == SLU_JOURNAL_FENCED   ? -ESTALE
		 : j->health.state == SLU_JOURNAL_BROKEN ? -EIO
							 : 0;

	if (!rc)
		rc = slu_vec_push(&j->line, b);
	if (rc < 0) {
		slu_batch_free(b);
		return rc;
	}
	*ticket = ++j->last_ticket;
	if (w->fault.store_slow_until_us > w->now_us) {
		j->d->excuse_us = w->now_us + SECOND;
		later(j, SECOND);
	} else {
		later(j, world_span(w, j->last_ticket, 200, 4000));
	}
	return 0;
}

uint64_t slu_journal_durable(const struct slu_journal *j)
{
	return j->durable;
}

void slu_journal_health(struct slu_journal *j, struct slu_journal_health *out)
{
	*out = j->health;
	out->waiting = j->line.n;
}

void slu_journal_lost(struct slu_journal *j, bool lost)
{
	j->health.lost = lost;
}

void slu_journal_keep(struct slu_journal *j, int64_t before_us, int64_t bytes, bool log)
{
	j->keep = true;
	j->keep_before_us = before_us;
}

int slu_journal_recover(struct slu_journal_setup *setup, const struct slu_store_reader *r,
			struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	int rc = open_store(setup, &s, err);

	return rc ? rc : slu_store_load(s, r, err);
}
