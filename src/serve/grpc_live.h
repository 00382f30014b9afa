/* grpc_live.h — the engine behind the Fluxion services in a cluster: the graph is the live cluster.
 *
 * A match is a claim (control/claim/claim.h) that the core's queue plans like any gang; the client gets its answer
 * when the claim is durable.  Times are real: `at` is a second since the epoch, and an allocation ends
 * with its duration.  The cluster adds and removes nodes, so Init succeeds and changes nothing,
 * and Grow and Shrink are refused.  A match never uses room that pods of gangs or of other schedulers
 * take. */
#pragma once
#include "control/core/core.h"
#include "fluxion/service.h"

struct slu_grpc_live;

/* New engine on the core.  0 or -ENOMEM. */
int slu_grpc_live_new(struct slu_loop *loop, struct slu_core *core, struct slu_grpc_live **out);
struct slu_flux_engine slu_grpc_live_engine(struct slu_grpc_live *l);
/* Call this on the loop's thread, after the core was freed (which answers every question) and before the port is
 * freed.  NULL is fine. */
void slu_grpc_live_free(struct slu_grpc_live *l);
