/* ask.h — requests of people: cancel, hold, release, drain, resize, priority, limit. */
#pragma once
#include "control/run/run.h"

/* A reply that is withheld until its change is durable. */
struct core_answer {
	struct slu_rec_ask *ask;
	uint64_t ticket; /* UINT64_MAX: not sent yet */
	char *text;
};

/* A request for another size or limit, for which the owner was patched. */
struct resize {
	uint64_t serial;
	struct slu_rec_ask *ask;
	char text[256]; /* the reply, once the API server has accepted the patch */
};

struct asks {
	SLU_VEC(struct core_answer) answer; /* answers that wait for the store */
	SLU_VEC(struct resize) resize;      /* requests that wait for the API server */
};

/* ---- note.c ---- */

/* The group that users know by this name; NULL: there is none. */
struct group *core_group_named(struct slu_core *c, const char *ns, const char *name);
/* Record decisions of people about the group on the objects that make its members. */
void core_ask_note(struct slu_core *c, const struct group *g);

/* ---- ask.c ---- */

/* Cancel, hold or release a group.  0 with the reply in err, or negative: refused. */
int core_ask_group(struct slu_core *c, const struct slu_rec_ask *a, struct slu_error *err);
/* Answer once the change is in the store; true: the record is kept until then. */
bool core_answer_later(struct slu_core *c, struct slu_rec_ask *a, const char *text);
/* The batch of this cycle was sent with this ticket: replies to its changes wait for it. */
void core_answers_sent(struct slu_core *c, uint64_t ticket);
/* Send the replies whose changes are durable. */
void core_answers(struct slu_core *c);
void core_answers_done(struct slu_core *c);
/* Carry out a request and answer it.  Returns true if the record is kept until the answer is durable. */
bool core_asked(struct slu_core *c, struct slu_rec_ask *a);

/* ---- reserve.c ---- */

/* Make a Reservation, or end one now.  0: there is nothing to do; 1: the record is kept until the API
 * server has answered; negative: refused. */
int core_ask_reserve(struct slu_core *c, struct slu_rec_ask *a, struct slu_error *err);

/* ---- change.c ---- */

/* Set another priority or limit.  0: done; 1: the record is kept until the API server has answered. */
int core_ask_change(struct slu_core *c, struct slu_rec_ask *a, struct slu_error *err);

/* ---- resize.c ---- */

/* Carry out SLU_ASK_RESIZE; takes the record over. */
void core_resize(struct slu_core *c, struct slu_rec_ask *a);
void core_resize_written(struct slu_core *c, const struct slu_rec_written *w);
void core_resize_done(struct slu_core *c);
