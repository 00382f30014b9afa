/* predicate.h — may this pod run on that node, and how much would it like to?
 *
 * What Sluice decides itself: node selectors, required node affinity, taints, the affinity of bound
 * volumes.  (Cordon, readiness, amounts, pod slots are in the machine; host ports are added by the
 * mirror, which knows the pods that use them.)  Pure functions over objects. */
#pragma once
#include "kube/object.h"

enum slu_no {
	SLU_NO_NOT,      /* nothing speaks against it */
	SLU_NO_SELECTOR, /* node selector */
	SLU_NO_AFFINITY, /* required node affinity */
	SLU_NO_TAINT,    /* an untolerated taint */
	SLU_NO_VOLUME,   /* a bound volume cannot be reached from there */
	SLU_NO_PORT,     /* a host port is taken */
	SLU_NO_REPELLED, /* required anti-affinity of a pod that is there */
	SLU_NO_REPELS,   /* its own required anti-affinity, by host, against a pod that is there */
	SLU_NO_CLAIM,    /* a claim for one pod only is in use */
	SLU_NO_ATTACH,   /* as many volumes are attached there as may be */
	SLU_NO_ZONE,     /* none of its NUMA zones is large enough */
	SLU_NO_COUNT,
};
/* "node selector", ... for sentences. */
const char *slu_no_text(enum slu_no n);

/* The first reason why the pod may not use the node.  comes_back: ignore taints that only tell the
 * present state of the node (node.kubernetes.io/...: cordoned, not ready, unreachable). */
enum slu_no slu_predicate_node(const struct slu_kpodspec *spec, const struct slu_knode *node,
			       bool comes_back);
/* Any of the terms matches the node; no terms: false. */
bool slu_predicate_terms(const struct slu_kterm *t, uint16_t n, const struct slu_knode *node);
/* The node's taint is tolerated (PreferNoSchedule always is). */
bool slu_predicate_tolerates(const struct slu_ktoleration *t, uint16_t n,
			     const struct slu_ktaint *taint);
/* The taint only tells the present state of the node. */
bool slu_predicate_is_state(const struct slu_ktaint *taint);
/* The taint says PreferNoSchedule and the pod does not tolerate it. */
bool slu_predicate_minds(const struct slu_kpodspec *spec, const struct slu_ktaint *taint);
/* The text is a number that Gt and Lt compare. */
bool slu_predicate_integer(const char *s, int64_t *out);
/* Sum of the weights of preferred terms that match, minus one for each untolerated
 * PreferNoSchedule taint: a tie-breaker among fitting nodes. */
int32_t slu_predicate_score(const struct slu_kpodspec *spec, const struct slu_knode *node);
/* Whether any node could score other than 0. */
bool slu_predicate_scores(const struct slu_kpodspec *spec);

/* Host ports of two pods collide on one node. */
bool slu_predicate_ports_collide(const struct slu_kpodspec *a, const struct slu_kpodspec *b);

/* The term of required anti-affinity is by host, which Sluice decides. */
bool slu_predicate_by_host(const struct slu_kanti *t);
/* A request of the pod that only the default scheduler can satisfy (required pod affinity,
 * anti-affinity by more than a host, hard spread, resource claims ...), as words for a sentence; NULL: none. */
const char *slu_predicate_foreign(const struct slu_kpodspec *spec);
/* A label selector: all pairs are equal and all expressions hold. */
bool slu_predicate_labels(const struct slu_kpair *pair, uint16_t npair,
			  const struct slu_kexpr *expr, uint16_t nexpr, const struct slu_kmeta *m);
