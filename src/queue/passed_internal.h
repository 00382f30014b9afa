/* passed_internal.h — what is remembered of starts, and who passed whom; for src/queue only. */
#pragma once
#include "queue/explain.h"
#include "queue/queue_internal.h"

/* Who passed job j, into out. */
int queue_passers(struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_explain *out);
