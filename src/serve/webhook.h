/* webhook.h — the admission webhook: certificate, port, answers.
 *
 * Its certificate authority is made here and kept in a Secret that all replicas share; the leaf is
 * renewed three months before its end.  The authority is patched into the
 * MutatingWebhookConfiguration (deploy/webhook.yaml), which the operator installs and which fails
 * open: nothing depends on this port but the notes it makes.
 *
 * All on the io loop's thread.  The port opens once the certificate is there. */
#pragma once
#include "control/config/config.h"
#include "kube/client.h"
#include "net/loop.h"

struct slu_webhook;

struct slu_feed;
/* Starts at once; `feed` tells which namespaces are held and which claims are bound.  Later failures
 * are logged and tried again.  -EINVAL for an address or name that cannot be used. */
int slu_webhook_new(struct slu_loop *loop, struct slu_kube_client *client,
		    const struct slu_config *config, const struct slu_feed *feed,
		    struct slu_webhook **out, struct slu_error *err);
/* A new configuration is in force; what needs a restart is not looked at. */
void slu_webhook_config(struct slu_webhook *w, const struct slu_config *config);
/* Before the client and the feed are freed. */
void slu_webhook_free(struct slu_webhook *w);
SLU_DEFINE_CLEANUP(struct slu_webhook, slu_webhook_free)

/* The port, 0 while it is not open. */
uint16_t slu_webhook_port(const struct slu_webhook *w);
