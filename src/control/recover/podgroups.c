/* Status of PodGroups whose group is over, or whose members ended while the daemon was down.
 *
 * While a group lives, report/status.c keeps the status of its PodGroup.  The last status may be missing
 * (the daemon was down, or the write failed), so each audit compares the PodGroups with the
 * ended pods that still exist, and corrects the status. */
#include "control/recover/recover.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"

struct tally {
	uint32_t ok, bad;
};

static uint64_t key_of(const char *ns, const char *name)
{
	return slu_hash_u64(slu_hash_keyed(ns, strlen(ns))) ^ slu_hash_keyed(name, strlen(name));
}

/* Count the ended pods of each group that pods name, as (failed << 32 | succeeded). */
static int tally_pods(struct slu_core *c, struct slu_map *out)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e)) {
		const struct pod *p = pod_of(e);
		struct slu_group_source src;
		struct slu_group_id id;
		uint64_t key, *at, add;
		int rc;

		if (!p->managed || !slu_kpod_ended(p->k))
			continue;
		core_source(c, p->k, &src);
		if (slu_group_identify(&src, &id, NULL) < 0 || !id.explicit || id.native)
			continue;
		key = key_of(p->k->o.meta.ns, id.key + 2);
		add = p->k->phase == SLU_PHASE_SUCCEEDED ? 1 : UINT64_C(1) << 32;
		at = slu_map_get(out, key);
		rc = at ? 0 : slu_map_put(out, key, add);
		if (at)
			*at += add;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void write_status(struct slu_core *c, const struct slu_kpodgroup *pg, struct tally t)
{
	uint32_t min = pg->min_member > 0 ? (uint32_t)pg->min_member : 1;
	const char *phase = t.ok >= min ? "Finished" : t.bad ? "Failed" : "Pending";
	struct slu_buf b = SLU_BUF_INIT(1024);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);

	if (!strcmp(pg->phase, phase) && !pg->running && pg->succeeded == (int32_t)t.ok &&
	    pg->failed == (int32_t)t.bad)
		return;
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "phase", phase);
	slu_jsonw_ki64(&w, "running", 0);
	slu_jsonw_ki64(&w, "succeeded", t.ok);
	slu_jsonw_ki64(&w, "failed", t.bad);
	slu_jsonw_end_obj(&w);
	if (!b.error)
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_STATUS,
						       .kind = pg->o.kind,
						       .ns = pg->o.meta.ns,
						       .name = pg->o.meta.name,
						       .text = b.p });
	slu_buf_done(&b);
}

/* Whether the status says that the group has begun and is not over, or that members run (of a gang in part, which is
 * pending): only then do its members have to be counted. */
static bool is_open(const struct slu_kpodgroup *pg)
{
	return pg->running > 0 || !strcmp(pg->phase, "Running") || !strcmp(pg->phase, "Scheduling");
}

void core_podgroups_audit(struct slu_core *c)
{
	struct slu_map ended = { 0 };
	bool counted = false;

	for (struct slu_entry *e = slu_table_next(&c->cluster->lookups, NULL); e;
	     e = slu_table_next(&c->cluster->lookups, e)) {
		const struct slu_kobj *o = slu_entry_of(e, struct lookup, e)->obj;
		char key[SLU_GROUP_NAME_MAX + 3];
		struct group *g;
		const uint64_t *at;
		struct tally t;

		if ((o->kind != SLU_KIND_PODGROUP_X && o->kind != SLU_KIND_PODGROUP_SIGS) ||
		    !is_open(slu_kpodgroup(o)))
			continue;
		if (!counted && tally_pods(c, &ended) < 0)
			break;
		counted = true;
		snprintf(key, sizeof key, "g:%.250s", o->meta.name);
		g = core_group_find(c, o->meta.ns, key);
		at = slu_map_get(&ended, key_of(o->meta.ns, o->meta.name));
		t = (struct tally){ at ? (uint32_t)*at : 0, at ? (uint32_t)(*at >> 32) : 0 };
		if (!g) {
			write_status(c, slu_kpodgroup(o), t);
		} else if (g->run.n) { /* members that ended while the daemon was down count, too */
			g->ended_ok = SLU_MAX(g->ended_ok, t.ok);
			g->ended_bad = SLU_MAX(g->ended_bad, t.bad);
		}
	}
	slu_map_done(&ended);
}
