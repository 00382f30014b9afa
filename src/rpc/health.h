/* health.h — grpc.health.v1.Health: Check, and Watch with a message for each change. */
#pragma once
#include "rpc/grpc.h"
#include "wire/message.h"

struct slu_health;

/* New health service; it says NOT_SERVING until slu_health_set().  `services`: the full names that clients may ask
 * about besides "", NULL-ended, borrowed.  Returns NULL if memory runs out. */
struct slu_health *slu_health_new(const char *const *services);
/* Set the status and tell every client that watches. */
void slu_health_set(struct slu_health *h, bool serving);
/* Put the methods onto a server.  0 or -ENOMEM. */
int slu_health_serve(struct slu_health *h, struct slu_grpc *g);
/* End all watches; call it before the server is freed.  NULL is fine. */
void slu_health_free(struct slu_health *h);

/* For reflection. */
extern const struct slu_msg_file slu_health_file;
