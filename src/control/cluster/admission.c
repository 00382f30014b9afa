/* What the server's admission adds to a pod that is made from a template: the requests a LimitRange
 * gives, what a RuntimeClass costs and where it runs, the priority of its class. */
#include "control/cluster/cluster.h"

/* The LimitRanges of one namespace. */
struct space {
	struct slu_entry e; /* key: namespace */
	char *name;
	SLU_VEC(const struct slu_kobj *) limit;
};

static struct space *space_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct space, e) : NULL;
}

static struct space *space_new(struct slu_core *c, const char *ns)
{
	struct space *s = slu_calloc(1, sizeof *s);

	if (s)
		s->name = slu_strdup(ns);
	if (!s || !s->name) {
		slu_free(s);
		return NULL;
	}
	s->e.key = s->name;
	s->e.n = strlen(ns);
	if (slu_table_add(&c->cluster->spaces, &s->e) < 0) {
		slu_free(s->name);
		slu_free(s);
		return NULL;
	}
	return s;
}

static void space_free(struct slu_core *c, struct space *s)
{
	for (uint32_t i = 0; i < s->limit.n; i++)
		slu_kobj_unref(s->limit.p[i]);
	slu_vec_done(&s->limit);
	slu_table_del(&c->cluster->spaces, &s->e);
	slu_free(s->name);
	slu_free(s);
}

/* LimitRanges in the order of their names, so that the result is always the same: the server
 * applies them in no fixed order. */
static int insert(struct space *s, const struct slu_kobj *obj)
{
	uint32_t at = s->limit.n;

	if (slu_vec_push(&s->limit, obj) < 0)
		return -ENOMEM;
	slu_kobj_ref(obj);
	for (; at && strcmp(s->limit.p[at - 1]->meta.name, obj->meta.name) > 0; at--)
		s->limit.p[at] = s->limit.p[at - 1];
	s->limit.p[at] = obj;
	return 0;
}

void core_limits_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	struct space *s = space_of(slu_table_finds(&c->cluster->spaces, obj->meta.ns));

	for (uint32_t i = 0; s && i < s->limit.n; i++)
		if (!strcmp(s->limit.p[i]->meta.name, obj->meta.name)) {
			slu_kobj_unref(s->limit.p[i]);
			memmove(&s->limit.p[i], &s->limit.p[i + 1],
				(--s->limit.n - i) * sizeof s->limit.p[0]);
			break;
		}
	if (!gone && !s)
		s = space_new(c, obj->meta.ns);
	if (!gone && (!s || insert(s, obj) < 0))
		slu_log(SLU_ERROR, "out of memory: LimitRange not recorded",
			SLU_STR("ns", obj->meta.ns));
	if (s && !s->limit.n)
		space_free(c, s);
}

const struct slu_kobj *core_admitted(struct slu_core *c, const struct slu_kobj *from,
				     const struct slu_ktemplate *t)
{
	struct space *s = space_of(slu_table_finds(&c->cluster->spaces, from->meta.ns));
	const struct slu_kobj *rc = *t->runtime_class ? core_lookup(c, SLU_KIND_RUNTIMECLASS, "",
								    t->runtime_class)
						      : NULL;
	struct slu_kadmission a = { .priority = core_priority(c, t->spec.priority_class),
				    .rc = rc ? slu_kruntimeclass(rc) : NULL };

	/* Objects begin with their head: a list of heads is a list of objects. */
	if (s) {
		a.limits = (const struct slu_klimitrange *const *)s->limit.p;
		a.nlimits = s->limit.n;
	}
	return slu_kpod_stand_in(from, t, &a);
}

void core_admission_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->spaces, NULL), *next; e; e = next) {
		next = slu_table_next(&c->cluster->spaces, e);
		space_free(c, space_of(e));
	}
	slu_table_done(&c->cluster->spaces);
}
