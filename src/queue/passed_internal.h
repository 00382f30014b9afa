/* passed_internal.h — which jobs passed a waiting one, from the remembered starts; for src/queue only. */
#pragma once
#include "queue/explain.h"
#include "queue/queue_internal.h"

/* Fill `out` with the jobs that passed job j. */
int queue_passers(struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_explain *out);
