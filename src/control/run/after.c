/* sluice.sh/after: a group that starts when others have ended, succeeded, failed or started.
 *
 * The core decides this from what the cluster shows, so that the answer is the same after a restart: a
 * group is over when none of its members is left alive; its Job says how it ended, or, without a Job, the
 * outcome of its pods does.  For deleted objects the store remembers the outcome.  A group that does not
 * exist yet is waited for.
 *
 * "job/a" means the group of that object.  "app=a" means every group with the label on its pods or on the
 * objects that make them, as they are now: deleted objects do not count, and if no group has the label
 * there is nothing to wait for.  So the answer needs no memory and is the same after a restart. */
#include "control/run/run.h"

#include <stdarg.h>
#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

#define PAST_MAX     65536u
#define CIRCLE_STEPS 10000 /* of a look for a circle, which only makes for better words */
#define CIRCLE       "which waits for this one"

enum fate { FATE_UNKNOWN, FATE_ALIVE, FATE_OK, FATE_FAILED };

static uint64_t name_hash(const char *ns, const char *name)
{
	return slu_hash_u64(slu_hash_keyed(ns, strlen(ns))) ^ slu_hash_keyed(name, strlen(name));
}

void core_after_born(struct slu_core *c, struct group *g)
{
	/* Without memory it is found by its key only, as most are.  The name is the next life's. */
	if (!g->retired)
		(void)(slu_map_put(&c->runs->after.by_name, name_hash(g->ns, g->id.name),
				   (uintptr_t)g) < 0);
	core_space_enter(c, g);
	core_after_news(c, g->ns);
}

/* An outcome, with as much of the hash of its namespace as there is room for. */
static uint64_t past_of(const char *ns, enum fate f)
{
	return (slu_hash_keyed(ns, strlen(ns)) & ~(uint64_t)3) | f;
}

/* Forget the outcomes of the namespace that has the most: a user who lets tens of thousands of groups end
 * makes nobody else's outcomes unknown. */
static void forget_past(struct slu_core *c)
{
	struct slu_map *past = &c->runs->after.past, count = { 0 };
	uint64_t most = 0, whose = 0;

	for (uint32_t i = 0; i < past->n; i++) {
		uint64_t ns = past->e[i].val & ~(uint64_t)3;
		const uint64_t *had = slu_map_get(&count, ns);
		uint64_t n = had ? *had + 1 : 1;

		if (slu_map_put(&count, ns, n) < 0) {
			slu_map_done(&count);
			slu_map_clear(past);
			return;
		}
		whose = n > most ? ns : whose;
		most = SLU_MAX(most, n);
	}
	slu_map_done(&count);
	for (uint32_t i = past->n; i-- > 0;)
		if ((past->e[i].val & ~(uint64_t)3) == whose)
			slu_map_del(past, past->e[i].key);
}

void core_after_gone(struct slu_core *c, struct group *g)
{
	uint64_t h = name_hash(g->ns, g->id.name), *at = slu_map_get(&c->runs->after.by_name, h);

	if (at && *at == (uintptr_t)g)
		slu_map_del(&c->runs->after.by_name, h);
	if (c->runs->after.past.n >= PAST_MAX)
		forget_past(c);
	/* The group was deleted before any member ended: it has not succeeded. */
	if (slu_map_put(&c->runs->after.past, h,
			past_of(g->ns, g->ended_ok && !g->ended_bad ? FATE_OK : FATE_FAILED)) < 0)
		slu_log(SLU_WARN, "out of memory: end of a group not recorded",
			SLU_STR("job", g->id.name));
	core_space_leave(c, g);
	core_after_news(c, g->ns);
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
				   past_of(ns, !strcmp(r->outcome, "ok") ? FATE_OK : FATE_FAILED)) <
		       0);
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

/* ---- which groups are meant ---- */

/* On the pod itself; a phantom has those of its FluxJob as annotations (fluxjob/phantom.c). */
static bool pod_selected(const struct slu_kmeta *m, const char *selector)
{
	return slu_group_selects(selector, m->labels, m->nlabels) ||
	       (core_phantom_is(m->uid) &&
		slu_group_selects(selector, m->annotations, m->nannotations));
}

static bool object_selected(const struct slu_kobj *o, const char *selector)
{
	const struct slu_ktemplate *t = slu_kind_template(o);

	return slu_group_selects(selector, o->meta.labels, o->meta.nlabels) ||
	       (t && slu_group_selects(selector, t->labels, t->nlabels));
}

static bool is_object(const struct slu_group_after *a, enum slu_kkind kind)
{
	return a->whom == SLU_AFTER_OBJECT && a->object == kind;
}

/* Whether the group is that of the named object, or has the labels. */
static bool is_meant(struct slu_core *c, const struct group *g, const struct slu_group_after *a,
		     const char *name)
{
	const char *kind = a->whom == SLU_AFTER_OBJECT ? slu_kkind_info(a->object)->kind : NULL;
	const struct slu_kowner *last = NULL;

	if (is_object(a, SLU_KIND_PODGROUP_X))
		return g->id.podgroup && !strcmp(g->id.name, name);
	for (uint32_t i = 0; i < g->pod.n; i++) {
		const struct slu_kpod *k = g->pod.p[i]->k;
		const struct slu_kowner *own = slu_kmeta_controller(&k->o.meta);
		struct slu_group_source src;

		if (i && k == g->pod.p[i - 1]->k)
			continue; /* stand-ins made from one template */
		c->runs->after.steps++;
		if (a->whom == SLU_AFTER_LABELS && pod_selected(&k->o.meta, name))
			return true;
		if (is_object(a, SLU_KIND_POD) && !strcmp(k->o.meta.name, name))
			return true;
		if (kind && own && !strcmp(own->kind, kind) && !strcmp(own->name, name))
			return true;
		if (own && last && !strcmp(own->uid, last->uid))
			continue; /* the same owners */
		last = own;
		core_source(c, k, &src);
		for (uint32_t o = 0; o < src.n_owners; o++) {
			const struct slu_kobj *obj = src.owner[o];

			if (a->whom == SLU_AFTER_LABELS
				    ? object_selected(obj, name)
				    : kind && !strcmp(obj->meta.name, name) &&
					      !strcmp(slu_kkind_info(obj->kind)->kind, kind))
				return true;
		}
	}
	return false;
}

/* The group that is alive and meant by the i-th of what `from` waits for, after the group `last` (NULL:
 * the first).  NULL: there is none. */
static struct group *next_meant(struct slu_core *c, const struct group *from, uint32_t i,
				const struct group *last)
{
	const struct slu_group_after *a = &from->wish.after[i];
	const char *name = from->wish.after_text + a->at;
	const struct after_space *s;
	struct group *g;

	c->runs->after.steps++;
	if (a->whom == SLU_AFTER_GROUP)
		return last ? NULL : group_is_alive(c, from->ns, name);
	s = last ? NULL : core_space(c, from->ns);
	for (g = last ? last->space_next : s ? s->first : NULL; g; g = g->space_next) {
		c->runs->after.steps++;
		if (!g->retired && is_meant(c, g, a, name))
			return g;
	}
	return NULL;
}

/* ---- how groups ended that are over ---- */

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

/* The outcome of all groups that are meant, and the name of the group that decided it. */
struct seen {
	enum fate fate;
	const char *name;
	bool begun; /* alive, and some of it runs */
};

/* A living group counts before a failure, and a failure before a success; where failures are
 * wanted, a success counts first. */
static void see_one(struct seen *s, enum fate f, enum fate wanted, const char *name)
{
	static const uint8_t rank[] = {
		[FATE_UNKNOWN] = 0, [FATE_OK] = 1, [FATE_FAILED] = 2, [FATE_ALIVE] = 4
	};
	int mine = f == FATE_OK && wanted == FATE_FAILED ? 3 : rank[f];
	int has = s->fate == FATE_OK && wanted == FATE_FAILED ? 3 : rank[s->fate];

	if (mine > has)
		*s = (struct seen){ f, name, false };
}

static bool makes_for(const struct group *g, const struct slu_kobj *o)
{
	for (uint32_t i = 0; i < g->maker.n; i++)
		if (!strcmp(g->maker.p[i], o->meta.uid))
			return true;
	for (uint32_t i = 0; i < g->owned.n; i++)
		if (g->owned.p[i]->obj == o)
			return true;
	return false;
}

static void see_jobs(struct slu_core *c, const struct group *g, enum slu_after_whom whom,
		     const struct after_space *in, const char *name, enum fate wanted,
		     struct seen *s)
{
	for (uint32_t i = 0; i < in->job.n; i++) {
		const struct slu_kobj *o = in->job.p[i];
		const struct slu_kjob *j;

		c->runs->after.steps++;
		if (whom == SLU_AFTER_GROUP    ? !makes(o, name)
		    : whom == SLU_AFTER_LABELS ? !object_selected(o, name)
					       : strcmp(o->meta.name, name) != 0)
			continue;
		if (makes_for(g, o))
			continue;
		j = slu_kjob(o);
		see_one(s,
			j->failed_cond == SLU_TRI_TRUE ? FATE_FAILED
			: j->complete == SLU_TRI_TRUE  ? FATE_OK
						       : FATE_ALIVE,
			wanted, o->meta.name);
		if (s->name == o->meta.name && s->fate == FATE_ALIVE)
			s->begun = j->active > 0 && j->ready > 0;
	}
}

/* Pods that ended before this process started and still exist. */
static void see_pods(struct slu_core *c, const struct after_space *in, enum slu_after_whom whom,
		     const char *name, enum fate wanted, struct seen *s)
{
	for (uint32_t i = 0; i < in->ended.n; i++) {
		const struct slu_kpod *k = slu_kpod(in->ended.p[i]);
		const struct slu_kmeta *m = &k->o.meta;
		struct slu_group_source src;
		struct slu_group_id id;

		c->runs->after.steps++;
		if (whom == SLU_AFTER_GROUP) {
			core_source(c, k, &src);
			(void)(slu_group_identify(&src, &id, NULL) < 0);
			if (strcmp(id.name, name) && strcmp(id.key + 2, name))
				continue;
		} else if (whom == SLU_AFTER_OBJECT
				   ? strcmp(m->name, name) != 0
				   : slu_kmeta_controller(m) || !pod_selected(m, name)) {
			continue; /* a pod with a controller: the controller is asked instead */
		}
		see_one(s, k->phase == SLU_PHASE_FAILED ? FATE_FAILED : FATE_OK, wanted, m->name);
	}
}

static struct seen fate_of_group(struct slu_core *c, const struct group *g,
				 const struct slu_group_after *a)
{
	const char *name = g->wish.after_text + a->at;
	enum fate wanted = a->kind == SLU_AFTER_FAILED ? FATE_FAILED : FATE_OK;
	struct seen s = { FATE_UNKNOWN, name, false };
	const struct after_space *in = core_space(c, g->ns);
	const uint64_t *past;

	if (a->whom == SLU_AFTER_GROUP || a->whom == SLU_AFTER_LABELS || is_object(a, SLU_KIND_JOB))
		see_jobs(c, g, a->whom, in, name, wanted, &s);
	if (a->whom == SLU_AFTER_LABELS)
		see_pods(c, in, a->whom, name, wanted, &s);
	if (a->whom == SLU_AFTER_LABELS || s.fate != FATE_UNKNOWN)
		return s;
	past = slu_map_get(&c->runs->after.past, name_hash(g->ns, name));
	if (past)
		s.fate = (enum fate)(*past & 3);
	else if (a->whom == SLU_AFTER_GROUP || is_object(a, SLU_KIND_POD))
		see_pods(c, in, a->whom, name, wanted, &s);
	return s;
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
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	slu_free(g->after_text);
	g->after_text = slu_strdup(text);
}

/* Whether what `from` waits for waits for `g`, as far as can be told in so many steps. */
static bool leads_back(struct slu_core *c, const struct group *from, const struct group *g,
		       int depth, uint64_t until)
{
	for (uint32_t i = 0; i < from->wish.n_after && depth > 0; i++)
		for (const struct group *next = next_meant(c, from, i, NULL);
		     next && c->runs->after.steps < until; next = next_meant(c, from, i, next)) {
			if (next == g)
				return true;
			if (next != from && !has_started(next) &&
			    leads_back(c, next, g, depth - 1, until))
				return true;
		}
	return false;
}

/* "group a", "job a", "group a (app=x)": what the group waits for, in words. */
static const char *whom_text(const struct group *g, const struct slu_group_after *a,
			     const char *name, char out[SLU_GROUP_AFTER_TEXT])
{
	const char *text = g->wish.after_text + a->at;

	if (a->whom == SLU_AFTER_LABELS)
		snprintf(out, SLU_GROUP_AFTER_TEXT, "group %.63s (%.150s)", name, text);
	else
		snprintf(out, SLU_GROUP_AFTER_TEXT, "%s %.150s",
			 a->whom == SLU_AFTER_OBJECT ? slu_kkind_info(a->object)->kind : "group",
			 text);
	return out;
}

/* Whether a living group keeps this one waiting; *any: a living group is meant at all. */
static bool live_blocks(struct slu_core *c, struct group *g, uint32_t i, const char *to, bool *any)
{
	const struct slu_group_after *a = &g->wish.after[i];
	char whom[SLU_GROUP_AFTER_TEXT];

	for (struct group *live = next_meant(c, g, i, NULL); live;
	     live = next_meant(c, g, i, live)) {
		if (live == g && a->whom == SLU_AFTER_LABELS)
			continue;
		if (live == g) {
			say_after(g,
				  "it names itself as what it starts after (sluice.sh/after: %s)",
				  g->wish.after_text + a->at);
			return true;
		}
		*any = true;
		if (a->kind == SLU_AFTER_START && has_started(live))
			continue;
		whom_text(g, a, live->id.name, whom);
		if (!has_started(live) &&
		    leads_back(c, live, g, 32, c->runs->after.steps + CIRCLE_STEPS)) {
			if (!g->after_text || !strstr(g->after_text, CIRCLE))
				core_after_news(c, g->ns); /* the others are in it too */
			say_after(g, "waits for %s, " CIRCLE " (sluice.sh/after)", whom);
		} else {
			say_after(g, "waits for %s to %s", whom, to);
		}
		return true;
	}
	return false;
}

static bool blocks(struct slu_core *c, struct group *g, uint32_t i)
{
	static const char *const to[] = { [SLU_AFTER_END] = "end",
					  [SLU_AFTER_OK] = "succeed",
					  [SLU_AFTER_FAILED] = "fail",
					  [SLU_AFTER_START] = "start" };
	const struct slu_group_after *a = &g->wish.after[i];
	char whom[SLU_GROUP_AFTER_TEXT];
	bool any = false;
	struct seen s;

	if (live_blocks(c, g, i, to[a->kind], &any))
		return true;
	if (any && a->whom != SLU_AFTER_LABELS)
		return false;
	if (core_space_view(c, core_space(c, g->ns)) < 0) {
		say_after(g, "waits: memory ran out (sluice.sh/after)");
		return true;
	}
	s = fate_of_group(c, g, a);
	whom_text(g, a, s.name, whom);
	switch (s.fate) {
	case FATE_UNKNOWN:
		if (a->whom == SLU_AFTER_LABELS)
			return false;
		say_after(g, "waits for %s, which has not been submitted yet", whom);
		return true;
	case FATE_ALIVE: /* its members are not there yet, or another scheduler's */
		if (a->kind == SLU_AFTER_START && (any || s.begun))
			return false;
		say_after(g, "waits for %s to %s", whom, to[a->kind]);
		return true;
	case FATE_OK:
	case FATE_FAILED:
		if ((a->kind == SLU_AFTER_OK && s.fate == FATE_FAILED) ||
		    (a->kind == SLU_AFTER_FAILED && s.fate == FATE_OK)) {
			say_after(g, "waits for %s to %s, but it has %s", whom, to[a->kind],
				  s.fate == FATE_OK ? "succeeded" : "failed");
			return true;
		}
	}
	return false;
}

/* Repeat the last answer, for a group whose namespace has used its share of checks. */
static bool waited(struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state == RUN_QUEUED)
			return false;
	if (!g->after_text)
		say_after(g, "waits until Sluice has looked at what it starts after; too many "
			     "groups of this namespace wait for others (sluice.sh/after)");
	return true;
}

bool core_after_blocks(struct slu_core *c, struct group *g)
{
	struct after_space *s = g->wish.n_after ? core_space(c, g->ns) : NULL;
	bool waits = false;

	if (g->wish.n_after && (!s || !core_space_may_look(c, s))) { /* !s: memory ran out */
		waits = waited(g);
	} else if (s) {
		c->runs->after.steps = 0;
		for (uint32_t i = 0; !waits && i < g->wish.n_after; i++)
			waits = blocks(c, g, i);
		core_space_pay(c, s, c->runs->after.steps);
	}
	core_space_waits(c, g, waits);
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
	core_spaces_done(c);
}
