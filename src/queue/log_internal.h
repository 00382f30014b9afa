/* log_internal.h — the frames of a log row; private to log.c and replay.c.
 *
 * A row is a sequence of frames, each one of these numbers and what belongs to it. */
#pragma once
#include "base/bytes.h"
#include "queue/log.h"

#define LOG_VERSION  1 /* begins with an empty queue */
#define LOG_MIDDLE   2 /* begins with a picture */
#define LOG_PIECE    (1u << 20)
#define LOG_SETS_MAX (1u << 20)
#define LOG_NODE_MAX (1u << 22)

enum log_frame {
	LOG_BEGIN = 1, /* version, overrun_s, lazy, keep_results */
	LOG_RESOURCE,  /* name: the next resource */
	LOG_LEVEL,     /* name: the next topology level */
	LOG_SET,       /* id, words: a node set, new or changed */
	LOG_CHANGE,    /* id, index, in */
	LOG_DROP,      /* id: the set is no longer used */
	LOG_EVENT,     /* length, event, length, decisions */
	LOG_PASS,      /* now_s, length, decisions */
	LOG_STOP,
	LOG_PICTURE, /* whether more follow, length, the next bytes of the picture */
};

/* The decisions from number `from` on: how many, then each. */
void queue_log_put_decisions(struct slu_buf *b, const struct slu_decisions *d, uint32_t from);
