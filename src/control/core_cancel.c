/* What a person took out of the queue stays out: it is noted on the object that makes the members,
 * where a restart, another replica and a reader of the manifest find it. */
#include "control/core_i.h"

bool core_cancel_noted(const struct slu_group_source *src)
{
	const char *v = slu_group_note(src, SLU_CANCELLED);

	return v && !strcmp(v, "true");
}

void core_cancel_note(struct slu_core *c, struct group *g)
{
	const struct slu_kowner *maker;
	struct slu_group_source src;
	struct slu_rec_write w = { .verb = SLU_WRITE_ANNOTATE,
				   .kind = SLU_KIND_POD,
				   .ns = g->ns,
				   .text = g->cancelled ? "{\"" SLU_CANCELLED "\":\"true\"}"
							: "{\"" SLU_CANCELLED "\":null}" };
	const struct slu_kmeta *m;

	if (!g->pod.n)
		return;
	core_source(c, g->pod.p[0]->k, &src);
	m = &src.pod->o.meta;
	if (src.n_owners) {
		m = &src.owner[src.n_owners - 1]->meta;
		w.kind = (enum slu_kkind)src.owner[src.n_owners - 1]->kind;
	}
	w.name = m->name;
	w.uid = m->uid;
	maker = slu_kmeta_controller(m);
	if (core_phantom_is(m->uid) && maker) {
		w.kind = SLU_KIND_FLUXJOB;
		w.name = maker->name;
		w.uid = maker->uid;
	}
	core_write(c, &w);
}
