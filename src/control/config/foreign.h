/* foreign.h — translate the input of the programs that Sluice replaces: the configuration file of
 * their scheduler, and their names of match policies. */
#pragma once
#include "base/buf.h"

struct slu_json;

/* The file is a KubeSchedulerConfiguration. */
bool slu_foreign_scheduler(const struct slu_json *root);
/* Write that file as Sluice's own settings, in JSON; `ignored` gets the paths of the fields that have
 * no effect here.  0 or -ENOMEM. */
int slu_foreign_settings(const struct slu_json *root, struct slu_buf *out, struct slu_buf *ignored);

/* Translate the name of a match policy: "hi" becomes "high".  Returns NULL for "variation", which needs a property of
 * nodes (perf_class) that nodes of a cluster do not have, and any other name unchanged. */
const char *slu_foreign_policy(const char *name);
