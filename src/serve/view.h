/* view.h — write the snapshot as JSON, for the command and for scripts. */
#pragma once
#include "control/report/snapshot.h"
#include "wire/jsonw.h"

/* Write {"at": ..., "jobs": [...]}, without the members of each job. */
void slu_view_jobs(const struct slu_snapshot *s, struct slu_jsonw *w);
/* Write one job with its members.  0, or -ENOENT if there is no such job. */
int slu_view_job(const struct slu_snapshot *s, const char *ns, const char *name,
		 struct slu_jsonw *w);
void slu_view_nodes(const struct slu_snapshot *s, struct slu_jsonw *w);
void slu_view_reservations(const struct slu_snapshot *s, struct slu_jsonw *w);
void slu_view_queues(const struct slu_snapshot *s, struct slu_jsonw *w);
