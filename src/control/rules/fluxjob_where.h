/* fluxjob_where.h — the constraints of a jobspec as the node affinity of its pods. */
#pragma once
#include "control/rules/fluxjob.h"
#include "jobspec/constraint.h"

/* The nodeSelectorTerms, as JSON, that a node satisfies where it satisfies the constraint (NULL: every
 * node does) and, if there are any, is one of the named nodes; NULL: every node does.  To be freed.
 * -EINVAL with a sentence for what nodes cannot be asked, -ENOMEM. */
int slu_fluxjob_where(const struct slu_constraint *c, const char *const *node, uint32_t n_node,
		      char **out, struct slu_error *err);
