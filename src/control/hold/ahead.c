/* Jobs that are resumed before their turn.
 *
 * The controller of a suspended Job makes its pods only after the Job is resumed; the nodes would be idle in
 * the meantime.  So the core resumes the Jobs at the head of the queue ahead of their turn: their pods wait
 * at our gate, no scheduler can start them, and each pod takes the place of a stand-in in its group, so that
 * nothing changes for gathering and queue.  held.ahead limits the number of such pods.  A Job that is
 * cancelled in the meantime is suspended again; a Job that its user suspends stays suspended, as after its
 * release. */
#include "control/hold/hold.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

#define PASS_US  200000
#define RETRY_US 5000000
#define MOST     4 /* how many times held.ahead pods may wait if the order keeps changing */

bool core_ahead_is(const struct slu_core *c, const struct held *h)
{
	return h->obj->kind == SLU_KIND_JOB &&
	       (h->early == EARLY_GOING || slu_held_ahead(c->cfg, slu_kjob(h->obj)));
}

static uint32_t count_pods(const struct held *h, bool placed)
{
	uint32_t n = 0;

	if (!h->group || h->group->pod.n == h->group->stands)
		return 0;
	for (uint32_t i = 0; i < h->group->pod.n; i++) {
		const struct pod *p = h->group->pod.p[i];
		const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);

		n += !p->stand && !p->k->o.meta.deleted_us && o &&
		     !strcmp(o->uid, h->obj->meta.uid) && (!placed || core_pod_at(p));
	}
	return n;
}

uint32_t core_ahead_pods(const struct held *h)
{
	return count_pods(h, false);
}

/* Whether a pod of the Job has ended.  (Another program released that pod, without a note on it.) */
bool core_ahead_begun(struct slu_core *c, const struct held *h)
{
	const struct slu_kjob *j;
	uint32_t there;

	if (h->turn != TURN_NONE || !core_ahead_is(c, h))
		return false;
	j = slu_kjob(h->obj);
	there = core_ahead_pods(h);
	if (j->succeeded > 0)
		return true;
	if (!j->start_us || (int64_t)there >= slu_life_makes(h->obj) ||
	    (there && !count_pods(h, true)))
		return false;
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e)) {
		const struct slu_kpod *p = pod_of(e)->k;
		const struct slu_kowner *o = slu_kmeta_controller(&p->o.meta);

		if (slu_kpod_ended(p) && o && !strcmp(o->uid, h->obj->meta.uid) &&
		    !strcmp(p->o.meta.ns, h->obj->meta.ns))
			return true;
	}
	return false;
}

static void patch_held(struct slu_core *c, const struct held *h, const char *text)
{
	const struct slu_kmeta *m = &h->obj->meta;

	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_PATCH,
					       .kind = SLU_KIND_JOB,
					       .run = h->group && h->group->job ? h->group->job
										: UINT64_MAX,
					       .serial = h->serial,
					       .ns = m->ns,
					       .name = m->name,
					       .uid = m->uid,
					       .text = text });
}

/* The deadline of a Job counts from its resuming, so a Job with one waits for its turn; so does a Job that
 * is too wide. */
static bool may_go(const struct slu_core *c, const struct held *h)
{
	const struct slu_kjob *j = h->obj->kind == SLU_KIND_JOB ? slu_kjob(h->obj) : NULL;

	return j && slu_held_waits(c->cfg, j) && h->early == EARLY_NONE && h->turn == TURN_NONE &&
	       h->stands && h->stands <= c->cfg->held.ahead && j->active_deadline_s == SLU_KNONE &&
	       c->now_us >= h->again_us;
}

static void go_ahead(struct slu_core *c, struct held *h)
{
	struct slu_buf b = SLU_BUF_INIT(4096);

	if (slu_held_go_ahead(slu_kjob(h->obj), &b) == 0) {
		core_held_early_to(c, h, EARLY_GOING);
		patch_held(c, h, b.p);
	}
	slu_buf_done(&b);
}

static void come_back(struct slu_core *c, struct held *h)
{
	struct slu_buf b = SLU_BUF_INIT(4096);

	if (slu_held_again(slu_kjob(h->obj), &b) == 0) {
		core_held_early_to(c, h, EARLY_COMING_BACK);
		patch_held(c, h, b.p);
	}
	slu_buf_done(&b);
}

struct walk {
	struct slu_core *c;
	uint32_t window, room; /* pods at the head of the queue; pods that may still go */
};

/* Called for each waiting job, in the order of the queue. */
static int visit_waiting(const struct slu_job_view *v, void *arg)
{
	struct walk *w = arg;
	struct run *r;

	if (v->state == SLU_JOB_RUNNING)
		return 0;
	if (v->state != SLU_JOB_WAITING)
		return 1;
	r = run_of(slu_table_find(&w->c->runs->table, &v->id, sizeof v->id));
	for (uint32_t i = 0; r && r->gang && i < r->g->owned.n; i++) {
		struct held *h = r->g->owned.p[i];

		if (may_go(w->c, h) && h->stands <= w->room) {
			w->room -= h->stands;
			go_ahead(w->c, h);
		}
	}
	for (uint32_t i = 0; v->req && i < v->req->n_role; i++)
		w->window -= SLU_MIN(w->window, SLU_MAX(v->req->role[i].min, v->req->role[i].max));
	return !w->window || !w->room;
}

void core_ahead(struct slu_core *c)
{
	struct walk w = { .c = c, .window = c->cfg->held.ahead, .room = c->cfg->held.ahead * MOST };
	bool waits = false;

	if (!core_is_due(c, CORE_AT_AHEAD))
		return;
	core_due_at(c, CORE_AT_AHEAD, CORE_NEVER);
	for (struct slu_entry *e = slu_table_next(&c->groups->held, NULL); e;
	     e = slu_table_next(&c->groups->held, e)) {
		struct held *h = slu_entry_of(e, struct held, e);
		const struct group *g = h->group;

		waits |= h->stands > 0;
		if (core_ahead_is(c, h) && h->turn == TURN_NONE) {
			waits = true;
			w.room -= SLU_MIN(w.room, h->stands + core_ahead_pods(h));
			if (g && g->cancelled && !g->run.n && h->early == EARLY_NONE)
				come_back(c, h);
		}
	}
	if (!waits)
		return;
	/* Putting a long queue in order costs more than it is worth. */
	core_due_at(c, CORE_AT_AHEAD, c->now_us + PASS_US + (int64_t)c->groups->waiting * 20);
	if (w.window && w.room)
		(void)(slu_queue_each(c->q, visit_waiting, &w) < 0); /* no memory: the next time */
}

/* If a release is on its way, too, it also resumes the Job. */
bool core_ahead_written(struct slu_core *c, struct held *h, const struct slu_rec_written *w)
{
	if (h->turn != TURN_NONE || h->early == EARLY_NONE)
		return false;
	slu_log(SLU_WARN, "Job could not be resumed early, or suspended again",
		SLU_STR("job", h->obj->meta.name), SLU_STR("ns", h->obj->meta.ns),
		SLU_STR("err", w->text));
	core_held_early_to(c, h, EARLY_NONE);
	h->again_us = c->now_us + RETRY_US;
	core_held_again(c, h);
	return true;
}
