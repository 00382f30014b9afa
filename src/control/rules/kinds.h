/* kinds.h — every kind of object that is watched, and what we do with those that make pods.
 *
 * API group, version and plural of a kind are in kube/codec_tables.c (slu_kkind_info()).  A kind that
 * is a template and a number of pods needs a row there and a row here (docs/exercises.md). */
#pragma once
#include "kube/object.h"

struct slu_kind {
	enum slu_kkind kind;
	bool optional; /* a server may not know it */
	bool awaited;  /* sluice.sh/after may name it ("fluxjob/a"), as it may kinds with a word */
	/* Of kinds that make pods, and of pods themselves: */
	const char *word; /* "job", in messages and names; NULL: makes none */
	const char *size; /* field of the specification that says how many; NULL */
	bool suspends;    /* is held by suspending it, too */
	uint16_t tmpl;    /* offset of the struct slu_ktemplate; 0: has none */
	uint16_t wants;   /* offset of the int32_t that says how many; 0: slu_life_makes() knows */
	uint8_t flux;     /* the number Fluxqueue has for it, of those that are shown as FluxJobs */
};

/* In the order in which they are listed at the start. */
extern const struct slu_kind slu_kinds[];
extern const size_t slu_kinds_n;
/* The row of a kind; NULL: it is not watched. */
const struct slu_kind *slu_kind(enum slu_kkind k);
/* The row of a kind of workload (or Pod) by the name it has in its API; NULL: there is none. */
const struct slu_kind *slu_kind_named(const char *name);
/* The kind that the first `n` characters of an entry of sluice.sh/after name, in any case of letters;
 * SLU_KIND_NONE: no such kind, or a group cannot wait for it.  PodGroups of every API group have one
 * row, SLU_KIND_PODGROUP_X. */
enum slu_kkind slu_kind_awaited(const char *word, size_t n);
/* Append what slu_kind_awaited() knows: "pod/, job/". */
void slu_kinds_awaited_text(struct slu_buf *out);
/* What the object makes pods from; NULL: it makes none. */
const struct slu_ktemplate *slu_kind_template(const struct slu_kobj *o);
/* Objects of the kind make pods. */
bool slu_kind_makes(enum slu_kkind k);
/* Objects of the kind keep a number of pods alive without end: a Deployment, unlike a Job. */
bool slu_kind_serves(enum slu_kkind k);
/* Whether the owner is of a kind that makes pods and is watched; not of a foreign kind of the same name
 * (a Job of batch.volcano.sh).  NULL is none. */
bool slu_kind_owns(const struct slu_kowner *o);
