/* Namespaces as sluice.sh/after sees them: the groups of each namespace, which of them wait for others, and
 * how much time the namespace has spent on checks.
 *
 * A group may wait for anything in its namespace, so each check walks over groups, Jobs and pods, and every
 * group that comes, starts or ends is a reason to check all waiting groups.  A user who may create pods can
 * create thousands that wait for labels which all of them have.  So a check stays inside its namespace, and
 * each namespace pays for its checks with time: the groups of a namespace that is too far ahead keep their
 * last answer and are checked in turn later.  Other namespaces do not notice. */
#include "control/run/run.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"

#define STEP_US   3u     /* price of one step; a step takes less than a tenth of that */
#define STRANGERS 16u    /* objects of other namespaces that count as one step */
#define AHEAD_US  200000 /* how far ahead a namespace may be when it asks for another check */
#define FIRST     20     /* how many times that in the first cycle, for which promises wait */
#define AT_ONCE   256u   /* groups of one namespace that are checked in one cycle */

static int64_t ahead_us(const struct slu_core *c)
{
	return (int64_t)AHEAD_US * (c->hurry ? FIRST : 1);
}

static struct after_space *space_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct after_space, e) : NULL;
}

struct after_space *core_space(struct slu_core *c, const char *ns)
{
	return space_of(slu_table_finds(&c->runs->after.spaces, ns));
}

static struct after_space *space_get(struct slu_core *c, const char *ns)
{
	struct after_space *s = core_space(c, ns);

	if (s)
		return s;
	s = slu_calloc(1, sizeof *s);
	if (s)
		s->e.key = slu_strdup(ns);
	if (s && s->e.key) {
		s->e.n = strlen(ns);
		if (slu_table_add(&c->runs->after.spaces, &s->e) == 0)
			return s;
	}
	if (s)
		slu_free((void *)(uintptr_t)s->e.key);
	slu_free(s);
	return NULL;
}

static void forget_view(struct after_space *s)
{
	while (s->job.n)
		slu_kobj_unref(s->job.p[--s->job.n]);
	while (s->ended.n)
		slu_kobj_unref(s->ended.p[--s->ended.n]);
	s->viewed = false;
}

static void space_free(struct slu_core *c, struct after_space *s)
{
	forget_view(s);
	slu_table_del(&c->runs->after.spaces, &s->e);
	slu_vec_done(&s->waits);
	slu_vec_done(&s->job);
	slu_vec_done(&s->ended);
	slu_free((void *)(uintptr_t)s->e.key);
	slu_free(s);
}

/* Put the namespace on the list of those whose waiting groups are checked.  If memory runs out, the next
 * change in the namespace does that. */
static void make_busy(struct slu_core *c, struct after_space *s)
{
	if (!s->busy && slu_vec_push(&c->runs->after.busy, s) == 0)
		s->busy = true;
	core_due_by(c, CORE_AT_AFTER,
		    SLU_MAX(c->now_us, s->left ? s->paid_us - AHEAD_US : s->paid_us));
}

void core_space_enter(struct slu_core *c, struct group *g)
{
	struct after_space *s = g->in_space ? NULL : space_get(c, g->ns);

	if (!s)
		return; /* without memory: core/again.c comes back to it */
	g->in_space = true;
	g->space_next = NULL;
	g->space_prev = s->last;
	*(s->last ? &s->last->space_next : &s->first) = g;
	s->last = g;
}

void core_space_leave(struct slu_core *c, struct group *g)
{
	struct after_space *s = g->in_space ? core_space(c, g->ns) : NULL;

	if (!s)
		return;
	core_space_waits(c, g, false);
	*(g->space_prev ? &g->space_prev->space_next : &s->first) = g->space_next;
	*(g->space_next ? &g->space_next->space_prev : &s->last) = g->space_prev;
	g->in_space = false;
	if (s->first || s->busy)
		return;
	if (s->viewed || s->paid_us > c->now_us)
		make_busy(c, s); /* the namespace stays in debt after its last group is gone */
	else
		space_free(c, s);
}

void core_space_waits(struct slu_core *c, struct group *g, bool waits)
{
	struct after_space *s = g->after_waits == waits ? NULL : core_space(c, g->ns);

	if (!s || (waits && slu_vec_push(&s->waits, g) < 0))
		return;
	g->after_waits = waits;
	if (waits) {
		g->wait_at = s->waits.n - 1;
		return;
	}
	s->waits.p[g->wait_at] = s->waits.p[--s->waits.n];
	s->waits.p[g->wait_at]->wait_at = g->wait_at;
}

void core_after_news(struct slu_core *c, const char *ns)
{
	struct after_space *s = core_space(c, ns);

	if (!s || !s->waits.n)
		return;
	s->left = s->waits.n;
	make_busy(c, s);
}

bool core_space_may_look(struct slu_core *c, struct after_space *s)
{
	if (s->paid_us <= c->now_us + ahead_us(c))
		return true;
	s->left = SLU_MAX(s->left, s->waits.n + 1); /* with the one that asks */
	make_busy(c, s);
	return false;
}

void core_space_pay(struct slu_core *c, struct after_space *s, uint64_t steps)
{
	s->paid_us = SLU_MAX(s->paid_us, c->now_us) + (int64_t)(steps * STEP_US);
}

static int keep_object(const struct slu_kobj *o, int rc)
{
	if (rc == 0)
		slu_kobj_ref(o);
	return rc;
}

/* Find the Jobs of the namespace and its pods that have ended, once for all checks of a cycle. */
int core_space_view(struct slu_core *c, struct after_space *s)
{
	if (s->viewed)
		return 0;
	if (slu_vec_push(&c->runs->after.viewed, s) < 0)
		return -ENOMEM;
	s->viewed = true;
	core_space_pay(c, s, (c->cluster->owners.n + c->cluster->pods.n) / STRANGERS);
	for (struct slu_entry *e = slu_table_next(&c->cluster->owners, NULL); e;
	     e = slu_table_next(&c->cluster->owners, e)) {
		const struct slu_kobj *o = slu_entry_of(e, struct lookup, e)->obj;

		if (o->kind == SLU_KIND_JOB && !strcmp(o->meta.ns, s->e.key) &&
		    keep_object(o, slu_vec_push(&s->job, o)) < 0)
			goto fail;
	}
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e)) {
		const struct slu_kobj *o = &pod_of(e)->k->o;

		if (pod_of(e)->managed && slu_kpod_ended(pod_of(e)->k) &&
		    !strcmp(o->meta.ns, s->e.key) && keep_object(o, slu_vec_push(&s->ended, o)) < 0)
			goto fail;
	}
	return 0;
fail:
	c->runs->after.viewed.n--;
	forget_view(s);
	return -ENOMEM;
}

/* Check the next waiting groups, in turn. */
static void wake_some(struct slu_core *c, struct after_space *s)
{
	uint32_t left = SLU_MIN(s->left, s->waits.n), n = SLU_MIN(left, AT_ONCE);

	for (uint32_t i = 0; i < n; i++) {
		s->next = s->next < s->waits.n ? s->next : 0;
		core_group_dirty(c, s->waits.p[s->next++]);
	}
	s->left = left - n;
}

void core_after_wake(struct slu_core *c)
{
	uint32_t n = c->runs->after.busy.n;

	while (c->runs->after.viewed.n)
		forget_view(c->runs->after.viewed.p[--c->runs->after.viewed.n]);
	if (!core_is_due(c, CORE_AT_AFTER))
		return;
	core_due_at(c, CORE_AT_AFTER, CORE_NEVER);
	c->runs->after.busy.n = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct after_space *s = c->runs->after.busy.p[i];

		s->busy = false;
		if (s->paid_us <= c->now_us + AHEAD_US)
			wake_some(c, s);
		if (s->left || (!s->first && s->paid_us > c->now_us))
			make_busy(c, s); /* there is room: it stood there before */
		else if (!s->first)
			space_free(c, s);
	}
}

void core_spaces_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->runs->after.spaces, NULL), *next; e;
	     e = next) {
		next = slu_table_next(&c->runs->after.spaces, e);
		space_free(c, space_of(e));
	}
	slu_table_done(&c->runs->after.spaces);
	slu_vec_done(&c->runs->after.busy);
	slu_vec_done(&c->runs->after.viewed);
}
