/* standalone.h — sluiced without a cluster: the Fluxion services on a graph of their own. */
#pragma once
#include "control/config/config.h"

/* Serve until SIGTERM or SIGINT.  `graph`: file with the first graph; NULL: the first comes by Init.
 * `policy`: of graphs that name none; NULL: the matcher's own.  The exit code. */
int run_standalone(struct slu_config *config, const char *graph, const char *policy);
