/* request.h — pods that ask for the same are one role: the signature of what a pod asks for.
 *
 * Two texts of bytes per pod.  `need` covers the amounts; `where` covers everything that decides
 * which nodes are eligible (selector, affinity, tolerations, host ports, volumes).  Pods with equal
 * `need` and `where` are identical slots of one role; pods with equal `where` share one set of
 * nodes. */
#pragma once
#include "base/buf.h"
#include "kube/object.h"

#define SLU_REQUEST_MAX (256u << 10) /* ceiling of a signature */

/* Append the signatures.  0, -ENOMEM, -EMSGSIZE (an absurdly large pod). */
int slu_request_need(const struct slu_kpodspec *s, struct slu_buf *out);
int slu_request_where(const char *ns, const struct slu_kpodspec *s, struct slu_buf *out);

/* The amounts are sound: no negative or unreadable quantity, nothing above `max`.  0 or -EINVAL
 * with the sentence. */
int slu_request_check(const struct slu_kpod *pod, int64_t max, struct slu_error *err);

/* "2 cpu, 3 Gi memory, 1 nvidia.com/gpu" for people; appended. */
void slu_request_text(const struct slu_kpodspec *s, struct slu_buf *out);
