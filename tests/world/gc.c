/* What becomes of objects whose owner is deleted: deleted after it (background), before it
 * (foreground), or set free (orphan). */
#include "world.h"

static bool has_dependents(struct world *w, uint64_t owner)
{
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		for (uint32_t i = 0; i < w->obj[k].n; i++)
			if (w->obj[k].p[i]->owner == owner)
				return true;
	return false;
}

/* The owner waits for its dependents. */
static void owner_waits(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *o = kube_get(w, uid);

	if (!is_live(o) || !(o->fin & (FIN_FOREGROUND | FIN_ORPHAN)))
		return;
	if (has_dependents(w, uid))
		world_at(w, w->now_us + SECOND / 4, owner_waits, uid, 0);
	else
		kube_unfinalize(w, o, FIN_FOREGROUND | FIN_ORPHAN);
}

static void orphaned(struct obj *o)
{
	o->orphan = true;
}

static void set_free(struct world *w, struct obj *o)
{
	o->asked |= kube_get(w, o->owner)->asked;
	o->owner = 0;
	orphaned(o);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		if (w->obj[SLU_KIND_POD].p[i]->owner == o->uid)
			orphaned(w->obj[SLU_KIND_POD].p[i]);
	kube_changed(w, o, false);
	kube_unfinalize(w, o, FIN_JOB); /* nobody counts it any more */
}

void gc_tick(struct world *w, uint64_t uid, uint64_t by)
{
	struct obj *o = kube_get(w, uid), *owner = kube_get(w, by);

	if (!is_live(o) || o->owner != by)
		return;
	if (owner->fin & FIN_ORPHAN) {
		set_free(w, o);
	} else {
		kube_delete(w, o, owner->fin & FIN_FOREGROUND ? FOREGROUND : BACKGROUND);
	}
}

void gc_owner_gone(struct world *w, struct obj *owner)
{
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		for (uint32_t i = 0; i < w->obj[k].n; i++) {
			struct obj *o = w->obj[k].p[i];

			if (o->owner == owner->uid)
				world_at(w, w->now_us + world_span(w, o->uid, 5000, 1500000),
					 gc_tick, o->uid, owner->uid);
		}
	if (is_live(owner))
		world_at(w, w->now_us + SECOND / 4, owner_waits, owner->uid, 0);
}
