/* nodeset.h — a set of nodes, by index: which nodes a role may use, prefers, or a queue owns.
 *
 * Shared and counted: many requests may point at one set.  The counter is atomic, the bits are
 * not: a set is filled by one thread and then only read.  Changing a set that requests still use is
 * allowed between two calls into a machine; the machine notices by the version.
 *
 * A set speaks of node *indices* (slu_node_index()).  A node added later is not in it, and the
 * index of a removed node may be given to a new one: rebuild sets when nodes come and go. */
#pragma once
#include "base/base.h"

struct slu_nodeset {
	uint64_t *word;
	uint32_t n_word;
	uint32_t refs;
	uint64_t version; /* counts changes */
};

/* An empty set with room for indices below `n` (it grows as needed).  NULL: out of memory. */
struct slu_nodeset *slu_nodeset_new(uint32_t n);
struct slu_nodeset *slu_nodeset_clone(const struct slu_nodeset *s);
/* One more owner; returns its argument.  NULL is fine. */
struct slu_nodeset *slu_nodeset_ref(const struct slu_nodeset *s);
/* One owner less; the last one frees.  NULL is fine. */
void slu_nodeset_unref(struct slu_nodeset *s);
SLU_DEFINE_CLEANUP(struct slu_nodeset, slu_nodeset_unref)

/* 0 or -ENOMEM with the set unchanged. */
int slu_nodeset_add(struct slu_nodeset *s, uint32_t index);
void slu_nodeset_del(struct slu_nodeset *s, uint32_t index);
void slu_nodeset_swap(struct slu_nodeset *a, struct slu_nodeset *b); /* the nodes, not the owners */
uint32_t slu_nodeset_count(const struct slu_nodeset *s);

static inline bool slu_nodeset_has(const struct slu_nodeset *s, uint32_t index)
{
	return index / 64 < s->n_word && (s->word[index / 64] >> (index % 64) & 1);
}
