/* place.h — the io side of decisions: writes of the core go to the API server, answers go back.
 *
 * Bindings go first, many at once but never more than the server bears (throttle.h); a Scheduled
 * event follows each that succeeded.  Events, conditions and annotations are news for people: they
 * go when there is room, at least one at a time.  News that fail are not repeated, but Scheduled
 * events are.
 *
 * A binding without an answer, or with 504 and the like, is neither done nor failed: this module
 * reads the pod, for as long as that takes, and sends the binding again if the pod is not bound. */
#pragma once
#include "control/post/record.h"

struct slu_place;

struct slu_place_stats {
	uint64_t sent[SLU_WRITE_COUNT], failed[SLU_WRITE_COUNT], scheduled_events;
	uint64_t events_lost; /* Scheduled events that were not written */
	uint64_t lookups;     /* bindings whose fate was looked up */
	uint64_t halvings;    /* times the window was halved to spare the server */
	uint32_t under_way, waiting, events_waiting, window;
};

/* `instance` tells replicas apart in events; at most `parallel` writes at once.  NULL: no memory.
 */
struct slu_place *slu_place_new(struct slu_kube_client *client, const char *instance,
				uint32_t parallel);
/* Begin to stop: send no further events.  Then free the client, which ends the requests under way, and call
 * slu_place_free() last. */
void slu_place_close(struct slu_place *p);
void slu_place_free(struct slu_place *p);
SLU_DEFINE_CLEANUP(struct slu_place, slu_place_free)

/* The inbox the core writes into (owned here). */
struct slu_inbox *slu_place_inbox(struct slu_place *p);
/* Set the inbox for answers; call this before the first write. */
void slu_place_answers(struct slu_place *p, struct slu_inbox *core);
/* Ask before each write whether we still may; a deposed leader must not write. */
void slu_place_fence(struct slu_place *p, bool (*held)(void *arg), void *arg);
/* Set the function that lists again when the core sends SLU_REC_LOOK; called on the io thread. */
void slu_place_look(struct slu_place *p, void (*fn)(void *arg, enum slu_kkind kind, bool again),
		    void *arg);
/* Write the body of the request, in the encoding in which it is sent; nothing for events, whose body also names the
 * replica. */
void slu_place_body(const struct slu_rec_write *w, struct slu_buf *b);
void slu_place_stats(const struct slu_place *p, struct slu_place_stats *out);
