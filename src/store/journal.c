#include "store/journal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"

#define MAX_WAITING   4096
#define GROUP_MAX     256 /* batches in one transaction */
#define PRUNE_STEP    100
#define PRUNE_NS      INT64_C(20000000) /* between two steps */
#define BACKOFF_MIN_S 0.05
#define BACKOFF_MAX_S 5.0

struct slu_journal {
	char *url, *cluster, *holder;
	int64_t term;
	bool (*held)(void *);
	void (*wake)(void *);
	void *arg;

	pthread_t thread;
	pthread_mutex_t lock; /* guards everything below but `durable` */
	pthread_cond_t more, drained;
	struct slu_batch **line; /* ring of `cap` */
	uint32_t head, n, cap;
	uint64_t last_ticket;
	bool stop;
	int64_t began_ns; /* of the transaction under way; 0 */
	int64_t keep_before_us, keep_bytes;
	int64_t prune_ns; /* when to remove some; 0: nothing is left to */
	bool keep_no_log;
	struct slu_journal_health health;

	_Atomic uint64_t durable;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static struct timespec in(double s)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += (time_t)s;
	ts.tv_nsec += (long)((s - (double)(time_t)s) * 1e9);
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	return ts;
}

static enum slu_journal_state state_of(int rc)
{
	switch (rc) {
	case 0:
		return SLU_JOURNAL_OK;
	case -ESTALE:
		return SLU_JOURNAL_FENCED;
	case -EBADMSG:
	case -EPROTO:
	case -EXDEV:
	case -EINVAL:
		return SLU_JOURNAL_BROKEN;
	default:
		return SLU_JOURNAL_AWAY;
	}
}

/* A Lease that was deleted and made again counts its transitions from zero, so the store's term
 * may be above that of the rightful leader.  A replica that still leads after it read the stored
 * term knows that this term is past, because a later leader takes the store only after that
 * moment.  If another leader came in between, the stored term has changed and slu_store_raise_term()
 * refuses. */
static int take_term(struct slu_store *s, const struct slu_journal_setup *w, int64_t *term,
		     struct slu_error *err)
{
	int rc = slu_store_take_term(s, *term, w->holder, err);
	struct slu_error why = { 0 };
	int64_t seen;

	if (rc != -ESTALE || !w->held)
		return rc;
	if (slu_store_term(s, &seen, &why) < 0 || !w->held(w->arg) ||
	    slu_store_raise_term(s, seen, w->holder, &why) < 0)
		return rc;
	slu_log(SLU_WARN, "the lease was recreated: its term is below the store's",
		SLU_I64("lease", *term), SLU_I64("term", seen + 1));
	*term = seen + 1;
	return 0;
}

static int open_store(const struct slu_journal_setup *w, int64_t *term, struct slu_store **out,
		      struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	int rc = slu_store_open(w->url, SLU_STORE_MIGRATE, &s, err);

	if (!rc)
		rc = slu_store_bind_cluster(s, w->cluster, err);
	if (!rc && *term)
		rc = take_term(s, w, term, err);
	if (!rc)
		*out = slu_take(s);
	return rc;
}

static void publish(struct slu_journal *j, int rc, const struct slu_error *err)
{
	pthread_mutex_lock(&j->lock);
	j->health.state = state_of(rc);
	j->began_ns = 0;
	snprintf(j->health.why, sizeof j->health.why, "%s", rc ? err->text : "");
	if (rc)
		j->health.failures++;
	pthread_mutex_unlock(&j->lock);
	if (j->wake)
		j->wake(j->arg);
}

/* Wait for work.  Returns how many batches to take (copied to `group`), 0 to stop, -1 to remove
 * old rows. */
static int next_group(struct slu_journal *j, struct slu_batch **group)
{
	uint32_t n;

	pthread_mutex_lock(&j->lock);
	while (!j->n && !j->stop && !(j->prune_ns && now_ns() >= j->prune_ns)) {
		if (j->prune_ns) {
			struct timespec until = in((double)(j->prune_ns - now_ns()) / 1e9);

			pthread_cond_timedwait(&j->more, &j->lock, &until);
		} else {
			pthread_cond_wait(&j->more, &j->lock);
		}
	}
	n = SLU_MIN(j->n, (uint32_t)GROUP_MAX);
	j->began_ns = n ? now_ns() : 0;
	for (uint32_t i = 0; i < n; i++)
		group[i] = j->line[(j->head + i) % j->cap];
	pthread_mutex_unlock(&j->lock);
	return n ? (int)n : j->stop ? 0 : -1;
}

/* Take one step of removing rows that are too old or too many. */
static int keep_house(struct slu_journal *j, struct slu_store *s, struct slu_error *err)
{
	int64_t before_us, limit, used = 0;
	bool log, large = false;
	int gone;

	pthread_mutex_lock(&j->lock);
	before_us = j->keep_before_us;
	limit = j->keep_bytes;
	log = j->keep_no_log;
	pthread_mutex_unlock(&j->lock);
	gone = slu_store_prune(s, before_us, PRUNE_STEP, log, err);
	if (!gone && limit) {
		gone = slu_store_used(s, &used, err);
		if (!gone && used > limit) {
			gone = slu_store_prune(s, INT64_MAX, PRUNE_STEP, log, err);
			large = !gone && !log;
		}
	}
	if (gone < 0)
		return gone;
	pthread_mutex_lock(&j->lock);
	j->health.pruned += (uint64_t)gone;
	j->health.log_too_large = large;
	j->prune_ns = gone ? now_ns() + PRUNE_NS : 0;
	pthread_mutex_unlock(&j->lock);
	return 0;
}

/* Sleep unless told to stop; whether to go on. */
static bool sleep_or_stop(struct slu_journal *j, double s)
{
	struct timespec until = in(s);
	bool go_on;

	pthread_mutex_lock(&j->lock);
	while (!j->stop && pthread_cond_timedwait(&j->more, &j->lock, &until) != ETIMEDOUT)
		;
	go_on = !j->stop;
	pthread_mutex_unlock(&j->lock);
	return go_on;
}

static void settle_batches(struct slu_journal *j, struct slu_batch **group, uint32_t n,
			   int64_t took_ns)
{
	uint64_t ops = 0;

	for (uint32_t i = 0; i < n; i++) {
		ops += slu_batch_size(group[i]);
		slu_batch_free(group[i]);
	}
	pthread_mutex_lock(&j->lock);
	j->head = (j->head + n) % j->cap;
	j->n -= n;
	j->health.commits++;
	j->health.ops += ops;
	j->health.last_commit_ns = took_ns;
	atomic_fetch_add(&j->durable, n);
	if (!j->n)
		pthread_cond_broadcast(&j->drained);
	pthread_mutex_unlock(&j->lock);
}

static bool journal_is_due(struct slu_journal *j)
{
	bool due;

	pthread_mutex_lock(&j->lock);
	due = j->prune_ns && now_ns() >= j->prune_ns;
	pthread_mutex_unlock(&j->lock);
	return due;
}

/* Open the store if it is not open, and commit the waiting batches. 1: the thread was told to
 * stop; 0; or the failure. */
static int one_round(struct slu_journal *j, struct slu_store **s, struct slu_error *err)
{
	struct slu_batch *group[GROUP_MAX];
	int64_t began;
	int n, rc;

	if (!*s) {
		struct slu_journal_setup w = { .url = j->url,
					       .cluster = j->cluster,
					       .holder = j->holder,
					       /* the store was opened before, so a term above
					        * ours is newer */
					       .held = j->health.term ? NULL : j->held,
					       .arg = j->arg };

		rc = open_store(&w, &j->term, s, err);
		if (rc < 0)
			return rc;
		pthread_mutex_lock(&j->lock);
		j->health.term = j->term;
		pthread_mutex_unlock(&j->lock);
		publish(j, 0, err);
	}
	n = next_group(j, group);
	if (!n)
		return 1;
	began = now_ns();
	rc = n < 0 ? 0 : slu_store_commit(*s, j->term, group, (uint32_t)n, err);
	if (!rc && n > 0) {
		settle_batches(j, group, (uint32_t)n, now_ns() - began);
		publish(j, 0, err);
	}
	if (!rc && (n < 0 || journal_is_due(j)))
		rc = keep_house(j, *s, err);
	if (rc < 0) /* the failure may have broken the connection: open the store again */
		slu_store_close(slu_take(*s));
	return rc;
}

static void *work(void *arg)
{
	struct slu_journal *j = arg;
	struct slu_store *s = NULL;
	double pause = BACKOFF_MIN_S;

	for (;;) {
		struct slu_error err = { 0 };
		int rc = one_round(j, &s, &err);

		if (rc > 0)
			break;
		if (!rc) {
			pause = BACKOFF_MIN_S;
			continue;
		}
		publish(j, rc, &err);
		/* A fenced or damaged store does not recover by itself; try now and then,
		 * because a person may have moved the file away. */
		if (state_of(rc) != SLU_JOURNAL_AWAY)
			pause = BACKOFF_MAX_S;
		if (!sleep_or_stop(j, pause))
			break;
		pause = SLU_MIN(pause * 2, BACKOFF_MAX_S);
	}
	slu_store_close(s);
	return NULL;
}

static void free_fields(struct slu_journal *j)
{
	for (uint32_t i = 0; i < j->n; i++)
		slu_batch_free(j->line[(j->head + i) % j->cap]);
	slu_free(j->line);
	slu_free(j->url);
	slu_free(j->cluster);
	slu_free(j->holder);
	slu_free(j);
}

int slu_journal_new(const struct slu_journal_setup *setup, struct slu_journal **out)
{
	struct slu_journal *j = slu_calloc(1, sizeof *j);
	pthread_condattr_t clock;
	int rc;

	if (!j)
		return -ENOMEM;
	j->cap = setup->max_waiting ? setup->max_waiting : MAX_WAITING;
	j->url = slu_strdup(setup->url);
	j->cluster = slu_strdup(setup->cluster);
	j->holder = slu_strdup(setup->holder);
	j->line = slu_calloc(j->cap, sizeof(struct slu_batch *));
	if (!j->url || !j->cluster || !j->holder || !j->line) {
		free_fields(j);
		return -ENOMEM;
	}
	j->term = setup->term;
	j->held = setup->held;
	j->wake = setup->wake;
	j->arg = setup->arg;
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&j->more, &clock);
	pthread_cond_init(&j->drained, &clock);
	pthread_condattr_destroy(&clock);
	rc = pthread_create(&j->thread, NULL, work, j);
	if (rc) {
		free_fields(j);
		return -rc;
	}
	*out = j;
	return 0;
}

uint32_t slu_journal_free(struct slu_journal *j, int wait_ms)
{
	struct timespec until;
	uint32_t left;

	if (!j)
		return 0;
	until = in(wait_ms / 1e3);
	pthread_mutex_lock(&j->lock);
	while (j->n && pthread_cond_timedwait(&j->drained, &j->lock, &until) != ETIMEDOUT)
		;
	left = j->n;
	j->stop = true;
	pthread_cond_broadcast(&j->more);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->more);
	pthread_cond_destroy(&j->drained);
	free_fields(j);
	return left;
}

int slu_journal_submit(struct slu_journal *j, struct slu_batch *b, uint64_t *ticket)
{
	int rc = 0;

	pthread_mutex_lock(&j->lock);
	if (j->health.state == SLU_JOURNAL_FENCED)
		rc = -ESTALE;
	else if (j->health.state == SLU_JOURNAL_BROKEN)
		rc = -EIO;
	else if (j->n == j->cap)
		rc = -EAGAIN;
	if (!rc) {
		j->line[(j->head + j->n++) % j->cap] = b;
		*ticket = ++j->last_ticket;
		pthread_cond_signal(&j->more);
	}
	pthread_mutex_unlock(&j->lock);
	if (rc)
		slu_batch_free(b);
	return rc;
}

uint64_t slu_journal_durable(const struct slu_journal *j)
{
	return atomic_load(&j->durable);
}

void slu_journal_health(struct slu_journal *j, struct slu_journal_health *out)
{
	pthread_mutex_lock(&j->lock);
	*out = j->health;
	out->waiting = j->n;
	out->busy_ns = j->began_ns ? now_ns() - j->began_ns : 0;
	pthread_mutex_unlock(&j->lock);
}

void slu_journal_lost(struct slu_journal *j, bool lost)
{
	pthread_mutex_lock(&j->lock);
	j->health.lost = lost;
	pthread_mutex_unlock(&j->lock);
}

void slu_journal_keep(struct slu_journal *j, int64_t before_us, int64_t bytes, bool log)
{
	pthread_mutex_lock(&j->lock);
	j->keep_before_us = before_us;
	j->keep_bytes = bytes;
	j->keep_no_log = log;
	j->health.log_too_large = false; /* until the sizes are measured again */
	j->prune_ns = now_ns();
	pthread_cond_signal(&j->more);
	pthread_mutex_unlock(&j->lock);
}

int slu_journal_recover(struct slu_journal_setup *setup, const struct slu_store_reader *r,
			struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	int rc = open_store(setup, &setup->term, &s, err);

	return rc ? rc : slu_store_load(s, r, err);
}
