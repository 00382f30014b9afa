/* Report held objects to the sink: one pass over those that changed. */
#include "control/hold/hold.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

#define PASS_US  250000
#define MOVED_US 1000000 /* in this time, two objects that only moved in the queue are reported */

static void count_one(struct slu_core *c, const struct group *g, const char *uid)
{
	struct held *h = core_held_find(c, g->ns, uid);

	if (h && h->group == g)
		h->running++;
}

/* Count the members that run for each object they come from, in one walk over all of them. */
static void count_running(struct slu_core *c, const struct group *g)
{
	for (uint32_t i = 0; i < g->owned.n; i++)
		g->owned.p[i]->running = 0;
	for (uint32_t i = 0; i < g->pod.n; i++) {
		const struct pod *p = g->pod.p[i];
		struct slu_group_source src;

		if (p->k->phase != SLU_PHASE_RUNNING)
			continue;
		count_one(c, g, p->k->o.meta.uid);
		core_source(c, p->k, &src);
		for (uint32_t o = 0; o < src.n_owners; o++)
			count_one(c, g, src.owner[o]->meta.uid);
	}
}

/* Whether the work of the object is over; *ok: whether it succeeded. */
static bool is_over(const struct slu_kobj *o, bool *ok)
{
	if (o->kind == SLU_KIND_JOB) {
		*ok = slu_kjob(o)->complete == SLU_TRI_TRUE;
		return *ok || slu_kjob(o)->failed_cond == SLU_TRI_TRUE;
	}
	if (o->kind == SLU_KIND_POD) {
		*ok = slu_kpod(o)->phase == SLU_PHASE_SUCCEEDED;
		return slu_kpod_ended(slu_kpod(o));
	}
	return false;
}

static void put_node_names(struct slu_core *c, const struct group *g, struct slu_buf *b)
{
	struct slu_map seen = { 0 };

	for (uint32_t i = 0; i < g->run.n; i++)
		for (uint32_t k = 0; k < g->run.p[i]->slot.n; k++) {
			slu_node n = g->run.p[i]->slot.p[k].node;

			if (slu_map_get(&seen, n) || slu_map_put(&seen, n, 1) < 0)
				continue;
			if (b->n)
				slu_buf_putc(b, ',');
			slu_buf_puts(b, core_node_name(c, n));
		}
	slu_map_done(&seen);
}

/* `nodes`: those of its group, in words. */
static void fill_view(struct slu_core *c, const struct held *h, const char *nodes,
		      struct slu_held_view *v)
{
	const struct group *g = h->group;
	const struct run *r = g ? core_first_run(g) : NULL;
	int64_t size = slu_life_makes(h->obj);
	struct slu_job_view q;

	*v = (struct slu_held_view){ .obj = h->obj,
				     .group = g ? g->id.key : "",
				     .user = g ? g->user : h->obj->meta.ns,
				     .job = g ? g->job : 0,
				     .pods = size < 0 ? 1 : (uint32_t)size,
				     .running = g ? h->running : 0,
				     .nodes = "",
				     .reason = "" };
	if (is_over(h->obj, &v->ok)) {
		v->state = SLU_HELD_DONE;
		return;
	}
	if (h->crowded)
		v->reason = CORE_CROWDED;
	if (!g)
		return;
	if (g->wrong && (!r || r->state == RUN_QUEUED)) {
		v->state = SLU_HELD_REFUSED;
		v->reason = g->wrong;
	} else if (r && r->state != RUN_QUEUED) {
		v->nodes = nodes;
		v->start_s = r->start_s;
		v->state = v->running && v->running >= SLU_MIN(v->pods, g->wish.min)
				   ? SLU_HELD_RUNNING
				   : SLU_HELD_RELEASED;
	} else if (g->cancelled) {
		v->state = SLU_HELD_CANCELLED;
		v->reason = CORE_CANCELLED;
	} else if (r) {
		v->state = r->never || r->refused ? SLU_HELD_REFUSED : SLU_HELD_QUEUED;
		v->reason = r->reason ? r->reason : g->told_text ? g->told_text : "";
		if (slu_queue_job(c->q, r->id, &q) == 0) {
			v->position = q.position;
			q.planned_s = core_estimate(c, q.planned_s);
			v->planned_s = q.planned_s != SLU_TIME_NONE       ? q.planned_s
				       : g->told_start_s != SLU_TIME_NONE ? g->told_start_s
									  : 0;
		}
	} else if (g->told_text) {
		v->reason = g->told_text;
	}
}

static uint64_t digest(const struct slu_held_view *v)
{
	uint64_t h = slu_hash_bytes(v->nodes, strlen(v->nodes));

	h = slu_hash_u64(h ^ slu_hash_bytes(v->reason, strlen(v->reason)));
	h = slu_hash_u64(h ^ v->position ^ (uint64_t)v->planned_s << 20);
	h = slu_hash_u64(h ^ v->pods ^ (uint64_t)v->running << 32);
	return slu_hash_u64(h ^ v->job ^ (uint64_t)v->ok << 63);
}

/* Fluxqueue's users look for a label on work that can never be placed. */
static void mark_never(struct slu_core *c, struct held *h, const struct slu_held_view *v)
{
	const struct slu_kmeta *m = &h->obj->meta;
	const struct group *g = h->group;
	bool never = v->state == SLU_HELD_REFUSED && g && !g->wrong &&
		     slu_kstr_is(g->scheduler, SLU_HELD_SCHEDULER);
	const char *is = slu_kmeta_label(m, SLU_HELD_FLUX_NEVER);

	if (never == (is != NULL) || never == h->marked)
		return;
	h->marked = never;
	core_write(c, &(struct slu_rec_write){
			      .verb = SLU_WRITE_PATCH,
			      .kind = h->obj->kind,
			      .ns = m->ns,
			      .name = m->name,
			      .uid = m->uid,
			      .text = never ? "{\"metadata\":{\"labels\":{\"" SLU_HELD_FLUX_NEVER
					      "\":\"yes\"}}}"
					    : "{\"metadata\":{\"labels\":{\"" SLU_HELD_FLUX_NEVER
					      "\":null}}}" });
}

static void tell_sink(struct slu_core *c, struct held *h, const struct slu_held_view *v)
{
	h->told_state = (int)v->state;
	h->told = digest(v);
	h->told_us = c->now_us;
	c->holds->sink.seen(c->holds->sink.arg, v);
}

/* Among the objects that moved in the queue: the next in line, and the one reported longest ago. */
struct moved {
	struct held *next, *oldest;
	uint32_t position; /* of the first */
};

static void has_moved(struct slu_core *c, struct moved *m, struct held *h, uint32_t position)
{
	if (c->now_us - h->told_us < c->cfg->status.interval_s * 1000000)
		return;
	if (!m->next || position < m->position) {
		m->next = h;
		m->position = position;
	}
	if (!m->oldest || h->told_us < m->oldest->told_us)
		m->oldest = h;
}

static void report_held(struct slu_core *c, struct held *h, const char *nodes, struct moved *m)
{
	struct slu_held_view v;

	fill_view(c, h, nodes, &v);
	mark_never(c, h, &v);
	if (!m || (int)v.state != h->told_state)
		tell_sink(c, h, &v);
	else if (digest(&v) != h->told)
		has_moved(c, m, h, v.position);
}

/* Report all objects that make the members; or only one of them, even if nothing changed since its last report. */
static void report_group(struct slu_core *c, struct group *g, struct held *only, struct moved *m)
{
	struct slu_buf nodes = SLU_BUF_INIT(1u << 20);

	put_node_names(c, g, &nodes);
	count_running(c, g);
	for (uint32_t i = 0; i < g->owned.n; i++)
		if (!only || g->owned.p[i] == only)
			report_held(c, g->owned.p[i], slu_buf_str(&nodes), m);
	slu_buf_done(&nodes);
}

static void report_one(struct slu_core *c, struct held *h)
{
	if (h->group)
		report_group(c, h->group, h, NULL);
	else
		report_held(c, h, "", NULL);
}

void core_held_report(struct slu_core *c)
{
	struct moved m = { 0 };

	if (!core_is_due(c, CORE_AT_HELD))
		return;
	core_due_at(c, CORE_AT_HELD, CORE_NEVER);
	if (!c->holds->sink.seen || !c->groups->held.n)
		return;
	core_due_at(c, CORE_AT_HELD, c->now_us + PASS_US);
	c->holds->pass++;
	for (struct slu_entry *e = slu_table_next(&c->groups->held, NULL); e;
	     e = slu_table_next(&c->groups->held, e)) {
		struct held *h = held_of(e);

		if (!h->group) {
			report_held(c, h, "", &m);
		} else if (h->group->reported != c->holds->pass) {
			h->group->reported = c->holds->pass;
			report_group(c, h->group, NULL, &m);
		}
	}
	if (!m.next || c->now_us < c->holds->next_moved_us)
		return;
	c->holds->next_moved_us = c->now_us + MOVED_US;
	report_one(c, m.next);
	if (m.oldest != m.next)
		report_one(c, m.oldest);
}
