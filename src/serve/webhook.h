/* webhook.h — the admission webhook: certificate, port, answers.
 *
 * The webhook makes its certificate authority and keeps it in a Secret that all replicas share; it renews the leaf
 * three months before its end.  It patches the authority into the
 * MutatingWebhookConfiguration (deploy/webhook.yaml), which the operator installs and which fails
 * open: without the webhook, objects only lack the annotations that it adds.
 *
 * All code runs on the io loop's thread.  The port opens once the certificate is available. */
#pragma once
#include "control/config/config.h"
#include "kube/client.h"
#include "net/loop.h"

struct slu_webhook;

struct slu_feed;
/* Make the webhook and start it.  `feed` tells which namespaces are held and which claims are bound.  The webhook
 * logs later failures and tries again.  -EINVAL for an address or name that cannot be used. */
int slu_webhook_new(struct slu_loop *loop, struct slu_kube_client *client,
		    const struct slu_config *config, const struct slu_feed *feed,
		    struct slu_webhook **out, struct slu_error *err);
/* Use a new configuration, except for the settings that need a restart. */
void slu_webhook_config(struct slu_webhook *w, const struct slu_config *config);
/* Call this before the client and the feed are freed. */
void slu_webhook_free(struct slu_webhook *w);
SLU_DEFINE_CLEANUP(struct slu_webhook, slu_webhook_free)

/* The port; 0 while it is not open. */
uint16_t slu_webhook_port(const struct slu_webhook *w);
