/* sluice.sh/after: a group that starts when others have ended, succeeded, failed or started.
 *
 * Decided from what the cluster shows, so that it holds over restarts: a group is over when none of
 * its members is left alive; how it ended is what its Job says, else what became of its pods.  Of
 * objects that are deleted the store still knows how they ended.  A group that nobody has seen is
 * waited for. */
#include "control/run/run.h"

#include <stdarg.h>
#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

#define PAST_MAX     65536u
#define CIRCLE_STEPS 1000
#define CIRCLE       "which waits for this one"

enum fate { FATE_UNKNOWN, FATE_ALIVE, FATE_OK, FATE_FAILED };

static uint64_t name_hash(const char *ns, const char *name)
{
	return slu_hash_u64(slu_hash_keyed(ns, strlen(ns))) ^ slu_hash_keyed(name, strlen(name));
}

void core_after_born(struct slu_core *c, struct group *g)
{
	/* Without memory it is found by its key only, as most are. */
	(void)(slu_map_put(&c->runs->after.by_name, name_hash(g->ns, g->id.name), (uintptr_t)g) <
	       0);
	c->runs->after.news = true;
}

void core_after_gone(struct slu_core *c, struct group *g)
{
	uint64_t h = name_hash(g->ns, g->id.name), *at = slu_map_get(&c->runs->after.by_name, h);

	if (at && *at == (uintptr_t)g)
		slu_map_del(&c->runs->after.by_name, h);
	if (c->runs->after.past.n >= PAST_MAX)
		slu_map_clear(&c->runs->after.past);
	/* Deleted before anything ended: it has not succeeded. */
	if (slu_map_put(&c->runs->after.past, h,
			g->ended_ok && !g->ended_bad ? FATE_OK : FATE_FAILED) < 0)
		slu_log(SLU_WARN, "out of memory: end of a group not recorded",
			SLU_STR("job", g->id.name));
	for (uint32_t i = 0; g->after_waits && i < c->runs->after.waits.n; i++)
		if (c->runs->after.waits.p[i] == g)
			c->runs->after.waits.p[i--] =
				c->runs->after.waits.p[--c->runs->after.waits.n];
	c->runs->after.news = true;
}

/* Newest first: of several gangs of one name the last one counts. */
void core_after_recall(struct slu_core *c, const struct slu_store_result *r)
{
	size_t n = strcspn(r->key, "/");
	char ns[64];
	uint64_t h;

	if (!r->key[n] || n >= sizeof ns)
		return;
	snprintf(ns, sizeof ns, "%.*s", (int)n, r->key);
	h = name_hash(ns, r->name);
	if (!slu_map_get(&c->runs->after.past, h) && c->runs->after.past.n < PAST_MAX)
		(void)(slu_map_put(&c->runs->after.past, h,
				   !strcmp(r->outcome, "ok") ? FATE_OK : FATE_FAILED) < 0);
}

void core_after_wake(struct slu_core *c)
{
	if (!c->runs->after.news)
		return;
	c->runs->after.news = false;
	for (uint32_t i = 0; i < c->runs->after.waits.n; i++)
		core_group_dirty(c, c->runs->after.waits.p[i]);
}

static struct group *group_is_alive(struct slu_core *c, const char *ns, const char *name)
{
	uint64_t *at = slu_map_get(&c->runs->after.by_name, name_hash(ns, name));
	struct group *g = at ? (struct group *)(uintptr_t)*at : NULL;
	char key[SLU_GROUP_NAME_MAX + 3];

	if (g && !strcmp(g->ns, ns) && !strcmp(g->id.name, name))
		return g;
	snprintf(key, sizeof key, "g:%.250s", name);
	return core_group_find(c, ns, key);
}

/* A Job makes the members of the group: by its own name, or by the group's on it. */
static bool makes(const struct slu_kobj *job, const char *name)
{
	struct slu_key_place own = slu_key_place_meta(&job->meta);
	struct slu_key_place tmpl = slu_key_place_template(&slu_kjob(job)->tmpl);
	const char *group = slu_key_value(&own, SLU_KEY_GROUP, NULL);
	size_t n = strlen(name), k = strlen(job->meta.name);

	if (!group)
		group = slu_key_value(&tmpl, SLU_KEY_GROUP, NULL);
	if (group)
		return !strcmp(group, name);
	/* "name", "fluence-group-NS-name", ... */
	return !strcmp(job->meta.name, name) ||
	       (n > k && name[n - k - 1] == '-' && !strcmp(name + n - k, job->meta.name) &&
		strstr(name, "-group-"));
}

static enum fate fate_of_jobs(struct slu_core *c, const char *ns, const char *name)
{
	enum fate f = FATE_UNKNOWN;

	for (struct slu_entry *e = slu_table_next(&c->cluster->owners, NULL); e;
	     e = slu_table_next(&c->cluster->owners, e)) {
		const struct slu_kobj *o = slu_entry_of(e, struct lookup, e)->obj;

		if (o->kind != SLU_KIND_JOB || strcmp(o->meta.ns, ns) || !makes(o, name))
			continue;
		if (slu_kjob(o)->failed_cond == SLU_TRI_TRUE)
			f = FATE_FAILED;
		else if (slu_kjob(o)->complete != SLU_TRI_TRUE)
			return FATE_ALIVE;
		else if (f == FATE_UNKNOWN)
			f = FATE_OK;
	}
	return f;
}

/* Pods that have ended and are still shown, from before we were there. */
static enum fate fate_of_pods(struct slu_core *c, const char *ns, const char *name)
{
	enum fate f = FATE_UNKNOWN;

	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e)) {
		const struct pod *p = pod_of(e);
		struct slu_group_source src;
		struct slu_group_id id;

		if (!p->managed || !slu_kpod_ended(p->k) || strcmp(p->k->o.meta.ns, ns))
			continue;
		core_source(c, p->k, &src);
		(void)(slu_group_identify(&src, &id, NULL) < 0);
		if (strcmp(id.name, name) && strcmp(id.key + 2, name))
			continue;
		if (p->k->phase == SLU_PHASE_FAILED)
			f = FATE_FAILED;
		else if (f == FATE_UNKNOWN)
			f = FATE_OK;
	}
	return f;
}

static enum fate fate_of_group(struct slu_core *c, const char *ns, const char *name,
			       struct group **live)
{
	const uint64_t *past;
	enum fate f;

	*live = group_is_alive(c, ns, name);
	if (*live)
		return FATE_ALIVE;
	f = fate_of_jobs(c, ns, name);
	if (f != FATE_UNKNOWN)
		return f;
	past = slu_map_get(&c->runs->after.past, name_hash(ns, name));
	return past ? (enum fate) * past : fate_of_pods(c, ns, name);
}

static bool has_started(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state != RUN_QUEUED)
			return true;
	return false;
}

static void say_after(struct group *g, const char *fmt, ...) SLU_PRINTF(2, 3);
static void say_after(struct group *g, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	slu_free(g->after_text);
	g->after_text = slu_strdup(text);
}

/* Whether what `from` waits for waits for `g`; `steps` bounds the look. */
static bool leads_back(struct slu_core *c, const struct group *from, const struct group *g,
		       int depth, int *steps)
{
	for (uint32_t i = 0; i < from->wish.n_after && depth > 0 && --*steps > 0; i++) {
		const struct group *next = group_is_alive(c, from->ns, from->wish.after[i].name);

		if (next == g)
			return true;
		if (next && !has_started(next) && leads_back(c, next, g, depth - 1, steps))
			return true;
	}
	return false;
}

static bool blocks(struct slu_core *c, struct group *g, const char *name, enum slu_after kind)
{
	static const char *const to[] = { [SLU_AFTER_END] = "end",
					  [SLU_AFTER_OK] = "succeed",
					  [SLU_AFTER_FAILED] = "fail",
					  [SLU_AFTER_START] = "start" };
	struct group *live;
	enum fate f = fate_of_group(c, g->ns, name, &live);

	if (live == g) {
		say_after(g, "it shall start after itself (sluice.sh/after: %s)", name);
		return true;
	}
	switch (f) {
	case FATE_UNKNOWN:
		say_after(g, "waits for group %s, which has not been submitted yet", name);
		return true;
	case FATE_ALIVE:
		if (kind == SLU_AFTER_START && live && has_started(live))
			return false;
		if (live && !has_started(live) &&
		    leads_back(c, live, g, 32, &(int){ CIRCLE_STEPS })) {
			if (!g->after_text || !strstr(g->after_text, CIRCLE))
				c->runs->after.news = true; /* the others are in it too */
			say_after(g, "waits for group %s, " CIRCLE " (sluice.sh/after)", name);
			return true;
		}
		say_after(g, "waits for group %s to %s", name, to[kind]);
		return true;
	case FATE_OK:
	case FATE_FAILED:
		if ((kind == SLU_AFTER_OK && f == FATE_FAILED) ||
		    (kind == SLU_AFTER_FAILED && f == FATE_OK)) {
			say_after(g, "waits for group %s to %s, but it has %s", name, to[kind],
				  f == FATE_OK ? "succeeded" : "failed");
			return true;
		}
	}
	return false;
}

bool core_after_blocks(struct slu_core *c, struct group *g)
{
	bool waits = false;

	for (uint32_t i = 0; !waits && i < g->wish.n_after; i++)
		waits = blocks(c, g, g->wish.after[i].name, g->wish.after[i].kind);
	if (waits && !g->after_waits)
		g->after_waits = slu_vec_push(&c->runs->after.waits, g) == 0;
	if (!waits && g->after_waits) {
		g->after_waits = false;
		for (uint32_t i = 0; i < c->runs->after.waits.n; i++)
			if (c->runs->after.waits.p[i] == g) {
				c->runs->after.waits.p[i] =
					c->runs->after.waits.p[--c->runs->after.waits.n];
				break;
			}
	}
	if (!waits) {
		slu_free(g->after_text);
		g->after_text = NULL;
	}
	return waits;
}

void core_after_done(struct slu_core *c)
{
	slu_map_done(&c->runs->after.by_name);
	slu_map_done(&c->runs->after.past);
	slu_vec_done(&c->runs->after.waits);
}
