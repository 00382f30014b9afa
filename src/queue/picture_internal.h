/* picture_internal.h — one description of a queue for both directions; private to picture.c and
 * picture_jobs.c.
 *
 * Each function writes its argument, or fills it from bytes that were written before.  The bytes may
 * come from a damaged file: every number is checked before it is used. */
#pragma once
#include "base/bytes.h"
#include "queue/codec.h"
#include "queue/queue_internal.h"

struct pic {
	struct slu_buf *out; /* writing, or */
	struct slu_bytes_in in;
	const struct slu_set_names *names;
	struct slu_queue *q;
};

static inline bool pic_reads(const struct pic *p)
{
	return !p->out;
}

static inline void wrong(struct pic *p, int rc)
{
	if (!p->in.rc)
		p->in.rc = rc;
}

static inline bool pic_must(struct pic *p, bool so)
{
	if (pic_reads(p) && !so)
		wrong(p, -EINVAL);
	return !p->in.rc;
}

static inline uint64_t pic_number(struct pic *p, uint64_t v)
{
	if (pic_reads(p))
		return slu_bytes_get_u(&p->in);
	slu_bytes_put_u(p->out, v);
	return v;
}

static inline uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t zagzig(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* U: as it is.  N: an index or none.  I: signed.  T: a time or none. */
#define U(x)                                                \
	do {                                                \
		uint64_t v_ = pic_number(p, (uint64_t)(x)); \
		if (pic_reads(p)) {                         \
			(x) = (__typeof__(x))v_;            \
			pic_must(p, (uint64_t)(x) == v_);   \
		}                                           \
	} while (0)
#define N(x)                                                      \
	do {                                                      \
		uint64_t v_ = pic_number(p, (uint32_t)((x) + 1)); \
		if (pic_reads(p)) {                               \
			(x) = (uint32_t)v_ - 1;                   \
			pic_must(p, v_ <= UINT32_MAX);            \
		}                                                 \
	} while (0)
#define I(x)                                            \
	do {                                            \
		uint64_t v_ = pic_number(p, zigzag(x)); \
		if (pic_reads(p))                       \
			(x) = zagzig(v_);               \
	} while (0)
#define T(x)                                                \
	do {                                                \
		uint64_t v_ = pic_number(p, zigzag(x) + 1); \
		if (pic_reads(p))                           \
			(x) = zagzig(v_ - 1);               \
	} while (0)

/* How many follow; each takes a byte at least. */
static inline uint32_t count(struct pic *p, uint32_t n)
{
	if (pic_reads(p))
		return slu_bytes_get_n(&p->in);
	slu_bytes_put_u(p->out, n);
	return n;
}

#define ROOM(v, want)                                             \
	do {                                                      \
		if (pic_reads(p) && slu_vec_reserve(v, want) < 0) \
			wrong(p, -ENOMEM);                        \
	} while (0)

static inline bool time_sane(int64_t t)
{
	return t == SLU_TIME_NONE || (t > -(SLU_FOREVER / 4) && t < SLU_FOREVER / 4);
}

static inline bool shape_used(const struct slu_queue *q, uint32_t i)
{
	return q->shape.p[i].used;
}

static inline bool bucket_used(const struct slu_queue *q, uint32_t i)
{
	return q->bucket.p[i].used;
}

/* Slots of a table that wait to be used again, the last first. */
void queue_pic_unused(struct pic *p, uint32_t *list, uint32_t *n_list, uint32_t n,
		      bool (*used)(const struct slu_queue *, uint32_t));

/* The jobs with the lines they stand in, what they wait for, and the timers. */
void queue_pic_jobs(struct pic *p);
