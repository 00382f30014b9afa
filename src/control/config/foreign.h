/* foreign.h — what the programs that were there before wrote, in our words: the file of their
 * scheduler, and names of match policies. */
#pragma once
#include "base/buf.h"

struct slu_json;

/* The file is a KubeSchedulerConfiguration. */
bool slu_foreign_scheduler(const struct slu_json *root);
/* The same as our own settings, in JSON; `ignored`: what of it has no meaning here, by its path.
 * 0 or -ENOMEM. */
int slu_foreign_settings(const struct slu_json *root, struct slu_buf *out, struct slu_buf *ignored);

/* Our name of a match policy: "hi" is high.  "variation" is NULL: it goes by a property of nodes
 * (perf_class) that nodes of a cluster do not have.  Any other is handed back. */
const char *slu_foreign_policy(const char *name);
