/* Held objects and the groups their members are in. */
#include "control/group/held.h"

#include "control/cluster/cluster.h"

struct held *core_held_find(const struct slu_core *c, const char *ns, const char *uid)
{
	struct held *h = held_of(slu_table_finds(&c->groups->held, uid));

	return h && !strcmp(h->obj->meta.ns, ns) ? h : NULL;
}

void core_held_part(struct held *h)
{
	struct group *g = h->group;

	for (uint32_t i = 0; g && i < g->owned.n; i++)
		if (g->owned.p[i] == h) {
			g->owned.p[i] = g->owned.p[--g->owned.n];
			break;
		}
	h->group = NULL;
}

void core_held_link(struct held *h, struct group *g)
{
	if (h->group == g)
		return;
	core_held_part(h);
	if (g && slu_vec_push(&g->owned, h) == 0)
		h->group = g;
}

void core_held_unlink(struct group *g)
{
	while (g->owned.n)
		core_held_part(g->owned.p[0]);
}

void core_held_link_pod(struct slu_core *c, struct pod *p)
{
	struct held *h = p->stand ? p->stand : core_held_find(c, p->k->o.meta.ns, p->k->o.meta.uid);
	struct slu_group_source src;

	core_source(c, p->k, &src);
	for (uint32_t i = src.n_owners; i-- > 0 && !h;)
		h = core_held_find(c, p->k->o.meta.ns, src.owner[i]->meta.uid);
	if (h && p->group)
		core_held_link(h, p->group);
}

uint32_t core_held_strangers(struct slu_core *c, const struct group *g)
{
	uint32_t n = 0;

	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e)) {
		const struct pod *p = pod_of(e);
		struct slu_group_source src;
		struct slu_group_id id;

		if (p->managed || !*p->k->spec.node || strcmp(p->k->o.meta.ns, g->ns) ||
		    slu_kpod_ended(p->k))
			continue;
		core_source(c, p->k, &src);
		n += slu_group_identify(&src, &id, NULL) == 0 && !strcmp(id.key, g->id.key);
	}
	return n;
}

void core_held_again(struct slu_core *c, struct held *h)
{
	if (!h->listed && slu_vec_push(&c->groups->look, h) == 0)
		h->listed = true;
}

void core_held_patch(struct slu_core *c, const struct held *h, const char *text)
{
	const struct slu_kmeta *m = &h->obj->meta;

	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_PATCH,
					       .kind = h->obj->kind,
					       .ns = m->ns,
					       .name = m->name,
					       .uid = m->uid,
					       .text = text });
}

bool core_held_resumed(const struct held *h, uint64_t run)
{
	return (h->turn == TURN_RESUMING || h->turn == TURN_RETRYING) && h->run == run;
}

bool core_held_notes(const struct held *h)
{
	return h->turn == TURN_NOTE_DUE || h->turn == TURN_NOTING;
}

void core_held_turn_to(struct slu_core *c, struct held *h, enum held_turn to)
{
	static const uint32_t may[] = {
		[TURN_NONE] = CORE_BIT(TURN_RESUMING) | CORE_BIT(TURN_NOTE_DUE) |
			      CORE_BIT(TURN_BEGUN),
		[TURN_RESUMING] = CORE_BIT(TURN_NONE) | CORE_BIT(TURN_RETRYING) |
				  CORE_BIT(TURN_TAKEN_BACK),
		[TURN_RETRYING] = CORE_BIT(TURN_NONE) | CORE_BIT(TURN_RETRYING) |
				  CORE_BIT(TURN_RESUMING) | CORE_BIT(TURN_TAKEN_BACK),
		[TURN_NOTE_DUE] = CORE_BIT(TURN_NONE) | CORE_BIT(TURN_NOTE_DUE) |
				  CORE_BIT(TURN_NOTING) | CORE_BIT(TURN_TAKEN_BACK),
		[TURN_NOTING] = CORE_BIT(TURN_NONE) | CORE_BIT(TURN_NOTE_DUE) |
				CORE_BIT(TURN_TAKEN_BACK),
		[TURN_BEGUN] = CORE_BIT(TURN_NONE) | CORE_BIT(TURN_TAKEN_BACK),
		[TURN_TAKEN_BACK] = CORE_BIT(TURN_NONE) | CORE_BIT(TURN_TAKEN_BACK),
	};

	core_changes(c, "turn of a held Job", may[h->turn], h->turn, to);
	h->turn = to;
}

void core_held_early_to(struct slu_core *c, struct held *h, enum held_early to)
{
	static const uint32_t may[] = {
		[EARLY_NONE] = CORE_BIT(EARLY_GOING) | CORE_BIT(EARLY_COMING_BACK),
		[EARLY_GOING] = CORE_BIT(EARLY_NONE),
		[EARLY_COMING_BACK] = CORE_BIT(EARLY_NONE),
	};

	core_changes(c, "early resume of a held Job", may[h->early], h->early, to);
	h->early = to;
}
