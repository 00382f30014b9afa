/* metrics.h — the daemon's numbers in the text format of Prometheus. */
#pragma once
#include "control/io/feed.h"
#include "control/io/place.h"
#include "control/report/snapshot.h"

struct slu_metrics_from {
	const struct slu_snapshot *snap; /* NULL before the first cycle */
	const struct slu_feed *feed;
	const struct slu_place *place;
	struct slu_kube_client *client;
	struct slu_loop *loop;
};

void slu_metrics_write(const struct slu_metrics_from *from, struct slu_buf *out);
