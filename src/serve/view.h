/* view.h — the snapshot as JSON, the form the command, the page and scripts read. */
#pragma once
#include "control/report/snapshot.h"
#include "wire/jsonw.h"

/* {"at": ..., "jobs": [...]}; without the members' list. */
void slu_view_jobs(const struct slu_snapshot *s, struct slu_jsonw *w);
/* One job with its members.  -ENOENT. */
int slu_view_job(const struct slu_snapshot *s, const char *ns, const char *name,
		 struct slu_jsonw *w);
void slu_view_nodes(const struct slu_snapshot *s, struct slu_jsonw *w);
void slu_view_reservations(const struct slu_snapshot *s, struct slu_jsonw *w);
void slu_view_queues(const struct slu_snapshot *s, struct slu_jsonw *w);
