#include "control/post/inbox.h"

#include <pthread.h>
#include <time.h>

#include "base/map.h"

struct slu_inbox {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct slu_record **ring;
	uint32_t cap;        /* power of two */
	uint64_t head, tail; /* positions ever used; waiting = tail - head */
	struct slu_map at;   /* (kind, key) -> position */
	uint32_t max;
	bool closed;
	void (*wake)(void *arg);
	void *arg;
};

struct slu_inbox *slu_inbox_new(uint32_t max, void (*wake)(void *arg), void *arg)
{
	struct slu_inbox *q = slu_calloc(1, sizeof *q);
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	q->cap = 64;
	q->ring = slu_calloc(q->cap, sizeof *q->ring);
	if (!q->ring) {
		slu_free(q);
		return NULL;
	}
	q->max = max;
	q->wake = wake;
	q->arg = arg;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->some, &attr);
	pthread_condattr_destroy(&attr);
	return q;
}

void slu_inbox_free(struct slu_inbox *q)
{
	if (!q)
		return;
	for (uint64_t i = q->head; i < q->tail; i++) {
		struct slu_record *r = q->ring[i & (q->cap - 1)];

		r->free(r);
	}
	slu_map_done(&q->at);
	pthread_cond_destroy(&q->some);
	pthread_mutex_destroy(&q->lock);
	slu_free(q->ring);
	slu_free(q);
}

static uint64_t merge_key(const struct slu_record *r)
{
	return slu_hash_u64(r->key) ^ ((uint64_t)r->kind << 56) ^ r->kind;
}

static int grow_inbox(struct slu_inbox *q)
{
	uint32_t cap = q->cap * 2;
	struct slu_record **ring;

	if (q->tail - q->head < q->cap)
		return 0;
	if (!cap)
		return -ENOMEM;
	ring = slu_calloc(cap, sizeof *ring);
	if (!ring)
		return -ENOMEM;
	for (uint64_t i = q->head; i < q->tail; i++)
		ring[i & (cap - 1)] = q->ring[i & (q->cap - 1)];
	slu_free(q->ring);
	q->ring = ring;
	q->cap = cap;
	return 0;
}

static int put_locked(struct slu_inbox *q, struct slu_record *r, bool bounded,
		      struct slu_record **old)
{
	int rc;

	if (q->closed)
		return -ESHUTDOWN;
	if (r->key) {
		uint64_t *pos = slu_map_get(&q->at, merge_key(r));

		if (pos && *pos >= q->head) {
			struct slu_record **slot = &q->ring[*pos & (q->cap - 1)];

			*old = *slot;
			*slot = r;
			return 0;
		}
	}
	if (bounded && q->tail - q->head >= q->max)
		return -EAGAIN;
	rc = grow_inbox(q);
	if (rc < 0)
		return rc;
	if (r->barrier)
		slu_map_clear(&q->at);
	if (r->key) {
		rc = slu_map_put(&q->at, merge_key(r), q->tail);
		if (rc < 0)
			return rc;
	}
	q->ring[q->tail++ & (q->cap - 1)] = r;
	return 0;
}

static int put_record(struct slu_inbox *q, struct slu_record *r, bool bounded)
{
	struct slu_record *old = NULL;
	bool first;
	int rc;

	pthread_mutex_lock(&q->lock);
	first = q->head == q->tail;
	rc = put_locked(q, r, bounded, &old);
	if (!rc && first)
		pthread_cond_signal(&q->some);
	pthread_mutex_unlock(&q->lock);
	if (old)
		old->free(old);
	if (!rc && first && q->wake)
		q->wake(q->arg);
	return rc;
}

int slu_inbox_put(struct slu_inbox *q, struct slu_record *r)
{
	return put_record(q, r, true);
}

int slu_inbox_put_answer(struct slu_inbox *q, struct slu_record *r)
{
	return put_record(q, r, false);
}

uint32_t slu_inbox_take(struct slu_inbox *q, struct slu_record **out, uint32_t max)
{
	uint32_t n = 0;

	pthread_mutex_lock(&q->lock);
	while (n < max && q->head < q->tail) {
		struct slu_record *r = q->ring[q->head & (q->cap - 1)];

		if (r->key)
			slu_map_del(&q->at, merge_key(r));
		out[n++] = r;
		q->head++;
	}
	pthread_mutex_unlock(&q->lock);
	return n;
}

uint32_t slu_inbox_wait(struct slu_inbox *q, int64_t timeout_ns)
{
	struct timespec until;
	uint32_t n;

	if (timeout_ns >= 0) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += timeout_ns / 1000000000;
		until.tv_nsec += timeout_ns % 1000000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
	}
	pthread_mutex_lock(&q->lock);
	while (q->head == q->tail && !q->closed) {
		if (timeout_ns < 0)
			pthread_cond_wait(&q->some, &q->lock);
		else if (pthread_cond_timedwait(&q->some, &q->lock, &until) == ETIMEDOUT)
			break;
	}
	n = (uint32_t)(q->tail - q->head);
	pthread_mutex_unlock(&q->lock);
	return n;
}

uint32_t slu_inbox_waiting(struct slu_inbox *q)
{
	uint32_t n;

	pthread_mutex_lock(&q->lock);
	n = (uint32_t)(q->tail - q->head);
	pthread_mutex_unlock(&q->lock);
	return n;
}

uint32_t slu_inbox_room(struct slu_inbox *q)
{
	uint32_t n = slu_inbox_waiting(q);

	return n < q->max ? q->max - n : 0;
}

void slu_inbox_close(struct slu_inbox *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->some);
	pthread_mutex_unlock(&q->lock);
	if (q->wake)
		q->wake(q->arg);
}
