/* foreign.h — translate what the programs that Sluice replaces were given: the configuration file of
 * their scheduler, and their names of match policies. */
#pragma once
#include "base/buf.h"

struct slu_json;

/* The file is a KubeSchedulerConfiguration. */
bool slu_foreign_scheduler(const struct slu_json *root);
/* Write that file as Sluice's own settings, in JSON; `ignored` gets the paths of the fields that have
 * no effect here.  0 or -ENOMEM. */
int slu_foreign_settings(const struct slu_json *root, struct slu_buf *out, struct slu_buf *ignored);

/* Our name of a match policy: "hi" is high.  "variation" is NULL: it goes by a property of nodes
 * (perf_class) that nodes of a cluster do not have.  Any other is handed back. */
const char *slu_foreign_policy(const char *name);
