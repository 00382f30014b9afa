/* api.h — the daemon's own HTTP: health, metrics, and the interface that the command speaks.
 *
 *	GET  /healthz /readyz /livez          alive; ready: the mirror is complete
 *	                                      and its store, if it leads, can be written
 *	GET  /metrics                         Prometheus text
 *	GET  /v1/jobs  /v1/jobs/NS/NAME       the snapshot of the last cycle, as JSON
 *	GET  /v1/nodes /v1/queues /v1/config
 *	POST /v1/jobs/NS/NAME/(cancel|hold|release)    /v1/nodes/NAME/(drain|undrain)
 *	POST /v1/jobs/NS/NAME/(resize|priority|limit)/VALUE
 *	GET  /v1/reservations   POST /v1/reservations/NS/NAME?from=...   /v1/reservations/NS/NAME/end
 *
 * There are three endpoints: the unix socket (file permissions decide who may ask), HTTPS (a Kubernetes bearer token,
 * checked by TokenReview and, for each request, SubjectAccessReview), and the plain health port, which
 * answers health and metrics only.  All code runs on the io loop's thread and decides nothing. */
#pragma once
#include "control/core/core.h"
#include "control/io/feed.h"
#include "control/io/place.h"
#include "net/server.h"

struct slu_api;

struct slu_api_setup {
	struct slu_loop *loop;
	struct slu_core *core;
	struct slu_feed *feed;
	struct slu_place *place;
	struct slu_kube_client *client;
	const struct slu_config *config;
};

/* Listen on the endpoints of the configuration.  Fails if one of them cannot be opened. */
int slu_api_new(const struct slu_api_setup *setup, struct slu_api **out, struct slu_error *err);
/* Stop accepting: answer open requests with 503 and run the loop for up to a second until the answers
 * have been sent.  Call this before freeing anything that an answer may read (core, feed). */
void slu_api_close(struct slu_api *a);
/* Free the API after the core, which answers its open requests when it is freed. */
void slu_api_free(struct slu_api *a);
SLU_DEFINE_CLEANUP(struct slu_api, slu_api_free)
/* Show a reloaded configuration from now on. */
void slu_api_config(struct slu_api *a, const struct slu_config *config);
/* The ports in use (0 in the configuration means any port); 0: not open. */
uint16_t slu_api_health_port(const struct slu_api *a);
uint16_t slu_api_https_port(const struct slu_api *a);
