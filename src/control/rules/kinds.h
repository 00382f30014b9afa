/* kinds.h — every kind of object that is watched, and what we do with those that make pods.
 *
 * API group, version and plural of a kind are in kube/object.h (slu_kkind_info()).  To hold a new kind
 * of workload: its row here, its template in slu_held_template(), its size in slu_life_makes(). */
#pragma once
#include "kube/object.h"

struct slu_kind {
	enum slu_kkind kind;
	bool optional; /* a server may not know it */
	/* Of kinds that make pods, and of pods themselves: */
	const char *word; /* "job", in messages and names; NULL: makes none */
	const char *size; /* field of the specification that says how many; NULL */
	bool suspends;    /* is held by suspending it, too */
};

/* In the order in which they are listed at the start. */
extern const struct slu_kind slu_kinds[];
#define SLU_KINDS_WATCHED 17
/* The row of a kind; NULL: it is not watched. */
const struct slu_kind *slu_kind(enum slu_kkind k);
/* The row of a kind of workload (or Pod) by the name it has in its API; NULL: there is none. */
const struct slu_kind *slu_kind_named(const char *name);
/* Objects of the kind make pods. */
bool slu_kind_makes(enum slu_kkind k);
/* The owner is of a kind that makes pods and is watched; not somebody else's kind of the same name
 * (a Job of batch.volcano.sh).  NULL is none. */
bool slu_kind_owns(const struct slu_kowner *o);
