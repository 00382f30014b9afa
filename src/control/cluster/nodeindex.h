/* nodeindex.h — which nodes have a label or a taint.
 *
 * Any user may create pods whose node affinity no other pod has.  Asked of every node, ten thousand
 * conditions on two thousand nodes take seconds; here a condition is answered for all nodes at once, as a
 * set.  The answers are those of rules/predicate.h (tests/unit/test_nodeindex.c compares them). */
#pragma once
#include "base/buf.h"
#include "base/table.h"
#include "base/vec.h"
#include "control/rules/predicate.h"
#include "gang/nodeset.h"

/* Zero-initialise. */
struct nodeindex {
	struct slu_table keys;   /* of labels */
	struct slu_table taints; /* by effect, key and value */
	struct slu_nodeset *all; /* the nodes in the index */
	SLU_VEC(void *) tag;     /* by number of the node; NULL: not in the index */
	uint64_t *scratch;       /* three sets */
	/* The number of the node of that name, or UINT32_MAX. */
	uint32_t (*find)(const void *arg, const char *name);
	const void *arg;
};

/* -ENOMEM: the node is in the index in part, and only core_index_clear() helps. */
int SLU_MUST_CHECK core_index_add(struct nodeindex *x, uint32_t at, const struct slu_knode *k,
				  void *tag);
int SLU_MUST_CHECK core_index_del(struct nodeindex *x, uint32_t at, const struct slu_knode *k);
void core_index_clear(struct nodeindex *x); /* find and arg stay */

/* Each keeps in `set`, a clone of `all` or what is left of one, the nodes that meet the condition. */
void core_index_selector(const struct nodeindex *x, const struct slu_kpodspec *s,
			 struct slu_nodeset *set);
/* -ENOTSUP: a condition on the name that the index cannot answer; the set is unchanged. */
int core_index_terms(const struct nodeindex *x, const struct slu_kterm *t, uint16_t n,
		     struct slu_nodeset *set);
/* Nodes for which `comes_back` is true may have taints that only tell their present state. */
void core_index_taints(const struct nodeindex *x, const struct slu_kpodspec *s,
		       bool (*comes_back)(const void *arg, const void *tag), const void *arg,
		       struct slu_nodeset *set);
void core_index_without(const struct nodeindex *x, const char *key, const char *value,
			struct slu_nodeset *set);

/* score[at] of the nodes in `set`, as slu_predicate_score(); there is room for 64 * set->n_word.  -ENOTSUP as
 * above. */
int core_index_scores(const struct nodeindex *x, const struct slu_kpodspec *s,
		      const struct slu_nodeset *set, int32_t *score);
/* Whether a node could score other than 0. */
bool core_index_is_scored(const struct nodeindex *x, const struct slu_kpodspec *s);
bool core_index_has(const struct nodeindex *x, const char *key, const char *value);
