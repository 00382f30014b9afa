/* Writes to the cluster, and those about pods that exist only here. */
#include "control/frame/frame.h"

#include <stdio.h>

#define MARK SLU_PHANTOM_MARK

bool core_phantom_is(const char *uid)
{
	return strchr(uid, MARK);
}

static int hand_over(struct slu_core *c, const struct slu_rec_write *like)
{
	struct slu_rec_write *w;

	if (like->kind == SLU_KIND_FLUXJOB && !strcmp(like->ns, SLU_CLAIM_SPACE))
		return 0; /* a claim is not in the cluster */
	w = slu_rec_write_new(like);
	if (w && slu_inbox_put_answer(c->out, &w->base) == 0) {
		c->count.writes[like->verb]++;
		c->count.writes_all++;
		c->binding += like->run != 0;
		return 0;
	}
	if (w)
		w->base.free(&w->base);
	slu_log(SLU_ERROR, "out of memory: write not sent", SLU_STR("name", like->name));
	return -ENOMEM;
}

/* A phantom exists in the core alone: its events are written on its FluxJob, its binding and
 * eviction are shown to the mirror, all other writes about it are dropped. */
static int write_here(struct slu_core *c, const struct slu_rec_write *w)
{
	struct core_here p = { 0 };

	if (w->verb == SLU_WRITE_EVENT) {
		const char *end = strchr(w->uid, MARK), *dash = strrchr(w->name, '-');
		struct slu_rec_write about = *w;
		char uid[256], name[256];

		snprintf(uid, sizeof uid, "%.*s", (int)(end - w->uid), w->uid);
		snprintf(name, sizeof name, "%.*s", dash ? (int)(dash - w->name) : 0, w->name);
		about.kind = SLU_KIND_FLUXJOB;
		about.uid = uid;
		about.name = name;
		return hand_over(c, &about);
	}
	if (w->verb != SLU_WRITE_BIND && w->verb != SLU_WRITE_EVICT)
		return 0;
	/* The caller is in the middle of an operation, so the mirror is shown the change only after
	 * it. */
	p.uid = slu_strdup(w->uid);
	p.node = slu_strdup(w->verb == SLU_WRITE_BIND ? w->node : "");
	if (!p.uid || !p.node || slu_vec_push(&c->here, p) < 0) {
		slu_free(p.uid);
		slu_free(p.node);
		slu_log(SLU_ERROR, "out of memory: slot not recorded", SLU_STR("name", w->name));
		return -ENOMEM;
	}
	return 0;
}

int core_write(struct slu_core *c, const struct slu_rec_write *like)
{
	if (!c->door)
		return 0; /* a standby says nothing */
	if (like->kind == SLU_KIND_POD && like->uid && core_phantom_is(like->uid))
		return write_here(c, like);
	return hand_over(c, like);
}
