/* grpc_live.h — the engine behind the Fluxion services in a cluster: the graph is the live one.
 *
 * A match is a claim (control/claim/claim.h) that the core's queue plans like any gang; answers come
 * when they are durable.  Time is the cluster's: `at` is a second since the epoch, and a duration
 * ends an allocation.  Nodes come and go with the cluster, so Init succeeds and changes nothing,
 * and Grow and Shrink are refused.  A match never uses room that pods of gangs or of other schedulers
 * take. */
#pragma once
#include "control/core/core.h"
#include "fluxion/service.h"

struct slu_grpc_live;

/* 0 or -ENOMEM. */
int slu_grpc_live_new(struct slu_loop *loop, struct slu_core *core, struct slu_grpc_live **out);
struct slu_flux_engine slu_grpc_live_engine(struct slu_grpc_live *l);
/* On the loop's thread, after the core was freed (so that everything is answered) and before the
 * port.  NULL is fine. */
void slu_grpc_live_free(struct slu_grpc_live *l);
