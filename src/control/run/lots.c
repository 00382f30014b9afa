/* Lots: one record for members that are exactly alike and wait.
 *
 * One line in a Job or a FluxJob can ask for a hundred thousand members.  As long as they wait, they do not
 * differ, so one record counts for all of them, and work on a waiting group costs as much as it has records,
 * not members.  Only members that get a place need records of their own, and the nodes limit the number of
 * places. */
#include "control/run/run.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/held.h"

void core_lot_resize(struct slu_core *c, struct pod *p, uint32_t others)
{
	if (p->others == others)
		return;
	if (p->group) {
		p->group->others += others - p->others;
		core_group_dirty(c, p->group);
	}
	p->others = others;
}

/* "abc#7" with '#' and 1: "abc#8". */
static void number_on(char *buf, size_t n, const char *text, char mark, uint32_t by)
{
	const char *at = strrchr(text, mark);
	uint32_t i = at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;

	snprintf(buf, n, "%.*s%c%u", at ? (int)(at - text) : (int)strlen(text), text, mark, i + by);
}

void core_lot_uid(char *buf, size_t n, const struct pod *p, uint32_t i)
{
	number_on(buf, n, core_pod_uid(p), SLU_PHANTOM_MARK, i);
}

/* A stand-in like this one, with the next number. */
static struct pod *next_stand(struct slu_core *c, const struct pod *p)
{
	struct pod *q = slu_calloc(1, sizeof *q);
	char key[CORE_STAND_KEY];

	if (!q)
		return NULL;
	core_stand_key(key, sizeof key, p->stand->obj->meta.uid, p->stand->stand.n);
	q->stand_key = slu_strdup(key);
	if (!q->stand_key || slu_vec_push(&p->stand->stand, q) < 0) {
		slu_free(q->stand_key);
		slu_free(q);
		return NULL;
	}
	q->k = slu_kpod(slu_kobj_ref(&p->k->o));
	q->stand = p->stand;
	q->managed = p->managed;
	q->binds = p->binds;
	q->serial = ++c->serial;
	core_pod_carries(c, q);
	return q;
}

/* A phantom like this one, with the next number. */
static struct pod *next_phantom(struct slu_core *c, const struct pod *p)
{
	slu_cleanup(slu_kobj_unrefp) const struct slu_kobj *o = NULL;
	char name[300], uid[256];

	number_on(name, sizeof name, p->k->o.meta.name, '-', 1);
	core_lot_uid(uid, sizeof uid, p, 1);
	o = slu_kpod_like(p->k, name, uid, "", SLU_PHASE_PENDING, 0);
	return o ? core_pod_new(c, slu_kpod(o)) : NULL;
}

/* The member after the first of the lot gets a record, which takes the rest of the lot with it; NULL: no
 * memory. */
static struct pod *cut_one(struct slu_core *c, struct pod *p)
{
	struct group *g = p->group;
	struct pod *q;

	if (slu_vec_reserve(&g->pod, g->pod.n + 1) < 0 ||
	    (p->run && slu_vec_reserve(&p->run->want, p->run->want.n + 1) < 0))
		return NULL;
	q = p->stand ? next_stand(c, p) : next_phantom(c, p);
	if (!q)
		return NULL;
	q->group = g;
	q->run = p->run;
	if (q->run)
		q->run->want.p[q->run->want.n++] = q;
	q->shape = p->shape;
	if (q->shape)
		q->shape->refs++;
	q->member_at = g->pod.n;
	q->maker_at = p->maker_at;
	q->said_size = p->said_size;
	q->leaving = p->leaving;
	q->stale = p->stale;
	q->told = p->told;
	g->pod.p[g->pod.n++] = q;
	g->stands += q->stand != NULL;
	q->others = p->others - 1;
	p->others = 0;
	g->others--;
	return q;
}

int core_lot_divide(struct slu_core *c, struct pod *p, uint32_t n)
{
	for (; n && p->others; n--) {
		p = cut_one(c, p);
		if (!p)
			return -ENOMEM;
	}
	return 0;
}

int core_by_age(const void *a, const void *b)
{
	const struct pod *p = *(struct pod *const *)a, *q = *(struct pod *const *)b;
	const struct slu_kmeta *x = &p->k->o.meta, *y = &q->k->o.meta;

	if (p->stale != q->stale) /* what a roll-out replaces comes last */
		return p->stale ? 1 : -1;
	if (x->created_us != y->created_us)
		return x->created_us < y->created_us ? -1 : 1;
	/* worker-2 before worker-10 */
	if (strlen(x->name) != strlen(y->name))
		return strlen(x->name) < strlen(y->name) ? -1 : 1;
	if (strcmp(x->name, y->name))
		return strcmp(x->name, y->name);
	return p->serial < q->serial ? -1
				     : p->serial > q->serial; /* the rest of a lot comes last */
}
