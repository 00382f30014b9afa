/* What the server's admission adds to a pod that is made from a template: the requests a LimitRange
 * gives, what a RuntimeClass costs and where it runs, the priority of its class. */
#include "control/cluster/cluster.h"

/* Resources for which the LimitRanges of a namespace give requests: each is compared with those of every
 * container of every held object.  Further ones do not count until the pods are there. */
#define GIVEN_MAX 32u

/* The LimitRanges of one namespace. */
struct space {
	struct slu_entry e; /* key: namespace */
	char *name;
	SLU_VEC(const struct slu_kobj *) limit;
	/* What they give together; of two that name the same resource the first counts. */
	struct slu_kamount given[GIVEN_MAX];
	uint16_t n_given;
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
static int insert_object(struct space *s, const struct slu_kobj *obj)
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

static void add_given(struct space *s, const struct slu_kamount *a)
{
	for (uint16_t i = 0; i < s->n_given; i++)
		if (!strcmp(s->given[i].name, a->name))
			return;
	s->given[s->n_given++] = *a;
}

static void collect_effects(struct space *s)
{
	s->n_given = 0;
	for (uint32_t i = 0; i < s->limit.n; i++) {
		const struct slu_klimitrange *l = slu_klimitrange(s->limit.p[i]);

		for (uint16_t k = 0; k < l->nrequests && s->n_given < GIVEN_MAX; k++)
			add_given(s, &l->requests[k]);
	}
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
	if (!gone && (!s || insert_object(s, obj) < 0))
		slu_log(SLU_ERROR, "out of memory: LimitRange not recorded",
			SLU_STR("ns", obj->meta.ns));
	if (s && !s->limit.n)
		space_free(c, s);
	else if (s)
		collect_effects(s);
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

	if (s) {
		a.missing = s->given;
		a.nmissing = s->n_given;
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
