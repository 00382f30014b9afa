/* inbox.h — the bounded queue of plain records between two threads.
 *
 * Any thread puts, one thread takes.  Each record has one owner: putting moves it into the inbox,
 * taking moves it to the taker.  A record with a key stands for the newest state of one
 * object: while an older one with the same key and kind still waits, the newer takes its place (and
 * the older is freed), so a burst of updates of one pod costs one slot.  A full inbox refuses, it
 * never grows: the reader of a watch then stops reading. */
#pragma once
#include "base/base.h"

struct slu_record {
	uint32_t kind;
	uint64_t key; /* 0: never merged */
	bool barrier; /* later records are not merged into records before this one */
	void (*free)(struct slu_record *r);
};

struct slu_inbox;

/* `wake` is called (on the putting thread, outside the lock) when the first record enters an empty
 * inbox; NULL when the taker blocks in slu_inbox_wait(). */
struct slu_inbox *slu_inbox_new(uint32_t max, void (*wake)(void *arg), void *arg);
/* Frees the records that still wait. */
void slu_inbox_free(struct slu_inbox *q);
SLU_DEFINE_CLEANUP(struct slu_inbox, slu_inbox_free)

/* 0: moved in.  -EAGAIN (full), -ENOMEM, -ESHUTDOWN (after close): the caller keeps the record. */
int SLU_MUST_CHECK slu_inbox_put(struct slu_inbox *q, struct slu_record *r);
/* As slu_inbox_put(), for records that must not be lost (answers to our own requests).  They may exceed the bound,
 * since the requests in flight bound their number.  0, -ENOMEM or -ESHUTDOWN. */
int SLU_MUST_CHECK slu_inbox_put_answer(struct slu_inbox *q, struct slu_record *r);
/* Move out up to `max` records in order of arrival; the number. */
uint32_t slu_inbox_take(struct slu_inbox *q, struct slu_record **out, uint32_t max);
/* Block until something waits, `timeout_ns` have passed (negative: no limit) or the inbox is
 * closed.  Number waiting. */
uint32_t slu_inbox_wait(struct slu_inbox *q, int64_t timeout_ns);
/* How many wait, and how many slots are left before put refuses. */
uint32_t slu_inbox_waiting(struct slu_inbox *q);
uint32_t slu_inbox_room(struct slu_inbox *q);
/* Refuse further records and wake the taker, which can still take those that wait. */
void slu_inbox_close(struct slu_inbox *q);
