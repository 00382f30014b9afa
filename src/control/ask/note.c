/* Find the group that a user names, and note on its objects what the user decided about it.
 *
 * A group that a person took out of the queue stays out: the core writes a note on the object that makes
 * the members, where the core after a restart, another replica and people can read it. */
#include "control/ask/ask.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "wire/jsonw.h"

struct group *core_group_named(struct slu_core *c, const char *ns, const char *name)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e)) {
		struct group *g = group_of(e);

		if (!strcmp(g->ns, ns) &&
		    (!strcmp(g->id.name, name) || !strcmp(g->id.key + 2, name)))
			return g;
	}
	return NULL;
}

static void note_number(struct slu_jsonw *w, const char *key, bool is, int64_t n)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, n);
	slu_jsonw_kstr(w, key, is ? text : NULL);
}

static void note_on(struct slu_core *c, const struct group *g, enum slu_kkind kind,
		    const struct slu_kmeta *m)
{
	const struct slu_kowner *maker = slu_kmeta_controller(m);
	struct slu_rec_write w = { .verb = SLU_WRITE_ANNOTATE,
				   .kind = kind,
				   .ns = g->ns,
				   .name = m->name,
				   .uid = m->uid };
	struct slu_buf b = SLU_BUF_INIT(1000);
	struct slu_jsonw out = slu_jsonw(&b, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&out);
	slu_jsonw_kstr(&out, SLU_CANCELLED, g->cancelled ? "true" : NULL);
	slu_jsonw_kstr(&out, SLU_ON_HOLD, g->on_hold ? "true" : NULL);
	note_number(&out, SLU_SET_PRIORITY, g->has_priority, g->priority);
	note_number(&out, SLU_SET_LIMIT, g->limit_s, g->limit_s);
	slu_jsonw_end_obj(&out);
	w.text = slu_buf_str(&b);
	if (core_phantom_is(m->uid) && maker) {
		w.kind = SLU_KIND_FLUXJOB;
		w.name = maker->name;
		w.uid = maker->uid;
	}
	core_write(c, &w);
	slu_buf_done(&b);
}

/* The pods may be replaced, and the group with them, so the note goes on the objects that make them. */
void core_ask_note(struct slu_core *c, const struct group *g)
{
	bool any = false;

	for (uint32_t i = 0; i < g->maker.n; i++) {
		const struct slu_kobj *o = core_owner(c, g->ns, g->maker.p[i]);

		if (o)
			note_on(c, g, (enum slu_kkind)o->kind, &o->meta);
		any |= o != NULL;
	}
	if (!any && g->pod.n)
		note_on(c, g, SLU_KIND_POD, &g->pod.p[0]->k->o.meta);
}
