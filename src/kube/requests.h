/* requests.h — how much of a node a pod occupies, by the rules of Kubernetes.
 *
 *	max(sum of containers + sum of sidecars,
 *	    for each init container: itself + sidecars started before it),
 * pod-level amounts replace that for cpu, memory and huge pages, overhead comes on top.  The rules
 * are those of k8s.io/component-helpers, resource.PodRequests. */
#pragma once
#include "kube/object.h"

/* The number of resources that one pod may name; further ones are not counted, and *bad is set. */
#define SLU_KREQUESTS_MAX 256

/* Sum up into `out`, sorted by name, without zero amounts; returns how many.  `missing` is what a
 * container gets that names no amount of a resource (LimitRange); may be empty. *bad is set when
 * an amount does not fit 64 bits (it becomes INT64_MAX) or there are too many resources. */
uint16_t slu_krequests(const struct slu_kdemand *d, const struct slu_kamount *missing,
		       uint16_t nmissing, struct slu_kamount out[SLU_KREQUESTS_MAX], bool *bad);
