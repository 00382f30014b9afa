/* All small worlds: two objects, three pods, every order of a dozen events and one, against a dull model
 * that spells out the tables of docs/groups.md ("The life of a group") one row after the other.
 *
 *	prop-life [DEPTH]	orders of so many of the events (default 5) */
#include <stdio.h>
#include <stdlib.h>

#include "control/rules/life.h"
#include "tap.h"

enum kind { JOB, INDEXED, WORK_QUEUE, HELD_JOB, SET, REPLICA_SET, DEPLOYMENT, NOBODY, KINDS };

/* ---- the world, in plain numbers ---- */

struct maker {
	enum kind kind;
	int parallel, completions, succeeded, failed_indexes;
	bool there, deleting, suspended, complete, failed;
};
struct member {
	int maker; /* index of the maker: 0 or 1; -1: the pod has no maker */
	bool there, placed, deleting;
};
struct plain {
	struct maker maker[2];
	struct member pod[3];
	int named;
	bool one_object, lacks_podgroup;
	int remembered, finished, alone;
};

/* ---- a dozen events and one; each may find nothing to change ---- */

enum event {
	A_DELETED, /* by its user, finalizers hold it */
	A_GONE,
	A_SUCCEEDS, /* a member of it */
	A_LOSES,    /* an index for good, or its user suspends it */
	A_SCALED,   /* to one */
	B_DELETED,
	B_GONE,
	B_COMPLETES,
	B_FAILS, /* beyond its backoff limit, or its deadline */
	POD_0_PLACED,
	POD_1_PLACED,
	POD_0_DELETED,
	POD_2_ENDS, /* well */
	EVENTS,
};

static void end_pod(struct plain *w, int i)
{
	struct member *p = &w->pod[i];

	if (!p->there)
		return;
	p->there = false;
	if (p->maker >= 0 && w->maker[p->maker].kind != NOBODY)
		w->finished++;
	else
		w->alone++;
}

static void happen(struct plain *w, enum event e)
{
	struct maker *a = &w->maker[0], *b = &w->maker[1];

	switch (e) {
	case A_DELETED:
		a->deleting = true;
		break;
	case A_GONE:
		a->there = false;
		break;
	case A_SUCCEEDS:
		a->succeeded++;
		break;
	case A_LOSES:
		if (a->kind == INDEXED)
			a->failed_indexes++;
		else if (a->kind == JOB)
			a->suspended = true;
		break;
	case A_SCALED:
		a->parallel = 1;
		break;
	case B_DELETED:
		b->deleting = true;
		break;
	case B_GONE:
		b->there = false;
		break;
	case B_COMPLETES:
		b->complete = !b->failed;
		break;
	case B_FAILS:
		b->failed = !b->complete;
		break;
	case POD_0_PLACED:
		w->pod[0].placed = true;
		break;
	case POD_1_PLACED:
		w->pod[1].placed = true;
		break;
	case POD_0_DELETED:
		w->pod[0].deleting = true;
		break;
	case POD_2_ENDS:
		end_pod(w, 2);
		break;
	case EVENTS:
		break;
	}
}

/* ---- the dull model: the tables, row by row ---- */

static bool is_job(enum kind k)
{
	return k == JOB || k == INDEXED || k == WORK_QUEUE || k == HELD_JOB;
}

static bool stays(const struct maker *m)
{
	return m->kind != NOBODY && m->there && !m->deleting;
}

static int model_makes(const struct maker *m)
{
	if (!stays(m))
		return 0;
	if (is_job(m->kind) && m->kind != WORK_QUEUE && m->completions < m->parallel)
		return m->completions;
	return m->parallel;
}

static int model_wants(const struct maker *m)
{
	int left;

	if (!stays(m))
		return 0;
	if (!is_job(m->kind))
		return m->parallel;
	if (m->complete || m->failed || m->suspended)
		return 0;
	if (m->kind == WORK_QUEUE)
		return m->succeeded ? 0 : m->parallel;
	left = m->completions - m->succeeded - m->failed_indexes;
	if (left < 0)
		left = 0;
	return left < m->parallel ? left : m->parallel;
}

struct answer {
	int size, asks, wants, waiting, placed, leaving;
	bool begun, whole, ending, again, over;
};

static struct answer model(const struct plain *w)
{
	struct answer a = { 0 };
	int makes = 0, all = 0, objects = 0, left_placed = 0, fewer;
	bool bounded = true;

	for (int i = 0; i < 2; i++) {
		const struct maker *m = &w->maker[i];

		makes += model_makes(m);
		a.wants += model_wants(m);
		objects += stays(m);
		if (stays(m) && (!is_job(m->kind) || m->kind == WORK_QUEUE))
			bounded = false;
		if (stays(m))
			all += m->completions;
	}
	fewer = makes > a.wants ? makes - a.wants : 0;
	/* "counted in the row of the group": an end that was seen counts before the Job says so */
	if (objects && bounded && all - w->finished < a.wants)
		a.wants = all - w->finished < 0 ? 0 : all - w->finished;
	if (w->named)
		a.size = w->named;
	else if (w->lacks_podgroup && w->remembered)
		a.size = w->remembered;
	else
		a.size = objects ? makes : 1;
	if (w->one_object && makes > 0 && a.size > makes)
		a.size = makes;
	a.asks = a.size - fewer - w->alone;
	if (a.size < 1)
		a.size = 1;
	if (a.asks < 1)
		a.asks = 1;
	for (int i = 0; i < 3; i++) {
		const struct member *p = &w->pod[i];
		bool made = p->maker >= 0 && w->maker[p->maker].kind != NOBODY;

		if (!p->there)
			continue;
		all++;
		if (p->deleting || (made && !stays(&w->maker[p->maker])) ||
		    (made && w->maker[p->maker].suspended && !p->placed)) {
			a.leaving++;
			left_placed += p->placed;
		} else if (p->placed) {
			a.placed++;
		} else {
			a.waiting++;
		}
	}
	a.begun = a.placed > 0;
	a.whole = a.waiting + a.placed >= a.asks;
	a.ending = a.leaving > 0 && a.waiting + a.placed == 0;
	a.again = left_placed > 0 && a.placed == 0 && a.waiting > 0;
	a.over = a.leaving + a.waiting + a.placed == 0 && a.wants == 0;
	return a;
}

/* ---- the same world as objects ---- */

static union {
	struct slu_kobj o;
	struct slu_kjob job;
	struct slu_kstatefulset set;
	struct slu_kreplicaset replicas;
	struct slu_kdeployment deployment;
} object[2];
static struct slu_kpod pods[3];
static char indexes[2][16];

static const struct slu_kobj *object_of(const struct maker *m, int i)
{
	if (!m->there)
		return NULL;
	memset(&object[i], 0, sizeof object[i]);
	object[i].o.meta.deleted_us = m->deleting;
	if (is_job(m->kind)) {
		struct slu_kjob *j = &object[i].job;

		j->o.kind = SLU_KIND_JOB;
		j->parallelism = m->parallel;
		j->completions = m->kind == WORK_QUEUE ? SLU_KNONE : m->completions;
		j->succeeded = m->succeeded;
		j->suspend = m->suspended || m->kind == HELD_JOB;
		j->complete = m->complete ? SLU_TRI_TRUE : SLU_TRI_ABSENT;
		j->failed_cond = m->failed ? SLU_TRI_TRUE : SLU_TRI_ABSENT;
		j->indexed = m->kind == INDEXED;
		snprintf(indexes[i], sizeof indexes[i], "%s",
			 m->failed_indexes == 0   ? ""
			 : m->failed_indexes == 1 ? "7"
						  : "3-4");
		j->failed_indexes = indexes[i];
	} else if (m->kind == SET) {
		object[i].o.kind = SLU_KIND_STATEFULSET;
		object[i].set.replicas = m->parallel;
	} else if (m->kind == REPLICA_SET) { /* one that no Deployment makes */
		object[i].o.kind = SLU_KIND_REPLICASET;
		object[i].replicas.replicas = m->parallel;
	} else {
		object[i].o.kind = SLU_KIND_DEPLOYMENT;
		object[i].deployment.replicas = m->parallel;
	}
	return &object[i].o;
}

static struct slu_life answer(const struct plain *w)
{
	struct slu_life_maker maker[2];
	struct slu_life_member member[3];
	struct slu_life_objects o = { .maker = maker,
				      .member = member,
				      .named = (uint32_t)w->named,
				      .one_object = w->one_object,
				      .lacks_podgroup = w->lacks_podgroup,
				      .row = { .size = (uint32_t)w->remembered,
					       .finished = (uint32_t)w->finished,
					       .alone = (uint32_t)w->alone } };
	uint32_t at[2] = { SLU_LIFE_ALONE, SLU_LIFE_ALONE };
	struct slu_life l;

	for (int i = 0; i < 2; i++)
		if (w->maker[i].kind != NOBODY) {
			at[i] = o.n_makers;
			maker[o.n_makers++] =
				(struct slu_life_maker){ .obj = object_of(&w->maker[i], i),
							 .held = w->maker[i].kind == HELD_JOB };
		}
	for (int i = 0; i < 3; i++)
		if (w->pod[i].there) {
			pods[i].o.meta.deleted_us = w->pod[i].deleting;
			member[o.n_members++] = (struct slu_life_member){
				.pod = &pods[i],
				.maker = w->pod[i].maker < 0 ? SLU_LIFE_ALONE : at[w->pod[i].maker],
				.placed = w->pod[i].placed
			};
		}
	slu_life(&o, &l);
	return l;
}

/* ---- every order ---- */

static uint64_t looks, differing, shrunk;
static enum event path[EVENTS];

static void tell(const struct plain *w, const struct answer *a, const struct slu_life *l, int n)
{
	if (differing++ >= 5)
		return;
	printf("# kinds %d %d named %d after", w->maker[0].kind, w->maker[1].kind, w->named);
	for (int i = 0; i < n; i++)
		printf(" %d", path[i]);
	printf(": size %d/%u asks %d/%u wants %d/%u waiting %d/%u placed %d/%u leaving %d/%u "
	       "begun %d/%d whole %d/%d ending %d/%d again %d/%d over %d/%d\n",
	       a->size, l->size, a->asks, l->asks, a->wants, l->wants, a->waiting, l->waiting,
	       a->placed, l->placed, a->leaving, l->leaving, a->begun, l->begun, a->whole, l->whole,
	       a->ending, l->ending, a->again, l->again, a->over, l->over);
}

static bool is_deletion(enum event e)
{
	return e == A_DELETED || e == A_GONE || e == B_DELETED || e == B_GONE || e == POD_0_DELETED;
}

static void visit(const struct plain *w, int depth, int n, const struct slu_life *before)
{
	struct answer a = model(w);
	struct slu_life l = answer(w);

	looks++;
	if ((uint32_t)a.size != l.size || (uint32_t)a.asks != l.asks ||
	    (uint32_t)a.wants != l.wants || (uint32_t)a.waiting != l.waiting ||
	    (uint32_t)a.placed != l.placed || (uint32_t)a.leaving != l.leaving ||
	    a.begun != l.begun || a.whole != l.whole || a.ending != l.ending ||
	    a.again != l.again || a.over != l.over)
		tell(w, &a, &l, n);
	/* Nothing that is deleted makes the rest of a named size, or of one object, enough. */
	if (n && is_deletion(path[n - 1]) && (w->named || w->one_object) && l.waiting && l.whole &&
	    !before->whole)
		shrunk++;
	for (int e = 0; e < EVENTS && n < depth; e++) {
		struct plain next = *w;
		bool used = false;

		for (int i = 0; i < n && !used; i++)
			used = path[i] == (enum event)e;
		if (used)
			continue;
		path[n] = (enum event)e;
		happen(&next, (enum event)e);
		visit(&next, depth, n + 1, &l);
	}
}

static struct plain world(enum kind a, enum kind b, int named, bool podgroup)
{
	struct plain w = { .named = named,
			   .one_object = (a == NOBODY) != (b == NOBODY) && !podgroup,
			   .lacks_podgroup = podgroup,
			   .remembered = podgroup ? 3 : 0 };

	w.maker[0] = (struct maker){ .kind = a, .parallel = 2, .completions = 3, .there = true };
	w.maker[1] = (struct maker){ .kind = b, .parallel = 3, .completions = 2, .there = true };
	for (int i = 0; i < 3; i++)
		w.pod[i] = (struct member){ .maker = i < 2 ? 0 : 1, .there = true };
	for (int i = 0; i < 3; i++)
		if (w.one_object) /* all its members come from that one */
			w.pod[i].maker = a == NOBODY;
		else if (w.maker[w.pod[i].maker].kind == NOBODY)
			w.pod[i].maker = -1;
	return w;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 5;

	for (int a = 0; a < KINDS; a++) {
		uint64_t from = looks, wrong = differing;

		for (int b = 0; b < KINDS; b++)
			for (int form = 0; form < 3; form++) {
				struct plain w = world((enum kind)a, (enum kind)b,
						       form == 1 ? 3 : 0, form == 2);

				visit(&w, depth, 0, NULL);
			}
		ok(differing == wrong, "kind %d beside every other: %llu looks, as the tables say",
		   a, (unsigned long long)(looks - from));
	}
	ok(!shrunk, "what is deleted never makes the rest a whole gang (%llu)",
	   (unsigned long long)shrunk);
	printf("# %llu looks at orders of %d of %d events\n", (unsigned long long)looks, depth,
	       EVENTS);
	return tap_done();
}
