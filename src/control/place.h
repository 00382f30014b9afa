/* place.h — the io side of decisions: writes of the core go to the API server, answers go back.
 *
 * Bindings go first, many at once; a Scheduled event follows each that succeeded.  Events,
 * conditions and annotations are news for people: they go when there is room, and one that fails
 * is not repeated. */
#pragma once
#include "control/record.h"

struct slu_place;

struct slu_place_stats {
	uint64_t sent[SLU_WRITE_COUNT], failed[SLU_WRITE_COUNT], scheduled_events;
	uint32_t under_way;
};

/* `instance` tells replicas apart in events.  NULL: no memory. */
struct slu_place *slu_place_new(struct slu_kube_client *client, const char *instance);
/* Begin to stop: no events follow any more.  Then free the client, which ends what is under way,
 * then this. */
void slu_place_close(struct slu_place *p);
void slu_place_free(struct slu_place *p);
SLU_DEFINE_CLEANUP(struct slu_place, slu_place_free)

/* The inbox the core writes into (owned here). */
struct slu_inbox *slu_place_inbox(struct slu_place *p);
/* Where answers go; before the first write. */
void slu_place_answers(struct slu_place *p, struct slu_inbox *core);
/* Ask before each write whether we still may; a deposed leader must not write. */
void slu_place_fence(struct slu_place *p, bool (*held)(void *arg), void *arg);
/* Who lists again when the core asks for it (SLU_REC_LOOK); io thread. */
void slu_place_look(struct slu_place *p, void (*fn)(void *arg, enum slu_kkind kind, bool again),
		    void *arg);
void slu_place_stats(const struct slu_place *p, struct slu_place_stats *out);
