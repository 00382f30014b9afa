/* cancel.c — give back what a job holds, all of it or a part. */
#include "match/core.h"
#include "match/listed.h"

static void drop_span(struct slu_match *m, uint32_t v, uint32_t job)
{
	const struct led_job *j = &m->led.job.p[job];
	struct slu_multi *mu = m->multi[v];

	if (mu && slu_multi_remove(mu, job, j->start, j->end - j->start))
		m->led.info.p[job].refs--;
}

static void free_vertex(struct slu_match *m, uint32_t v, uint32_t job)
{
	led_clear(&m->led, v, job, LED_TAGGED | LED_SHARED | LED_UNITS);
	drop_span(m, v, job);
	fast_touch(m, v);
}

void cancel_job(struct slu_match *m, uint32_t job)
{
	struct led_jobinfo *i = &m->led.info.p[job];

	for (uint32_t k = 0; k < i->at.n; k++)
		free_vertex(m, i->at.p[k], job);
}

struct counts {
	uint64_t pre, post;
};

static void cancel_from(struct slu_match *m, uint32_t u, uint32_t job, uint32_t depth,
			struct counts *c)
{
	c->pre++;
	if (!(led_get(&m->led, u, job).job & LED_TAGGED) || depth > m->depth)
		return;
	free_vertex(m, u, job);
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		uint32_t v = m->g->e.p[m->kid[k]].dst;

		if (m->colour && m->colour[v] == m->gen)
			continue;
		if (m->colour)
			m->colour[v] = m->gen;
		cancel_from(m, v, job, depth + 1, c);
	}
	c->post++;
}

int slu_match_cancel(struct slu_match *m, int64_t jobid, struct slu_match_result *out)
{
	int64_t job = led_job_find(&m->led, jobid);
	uint32_t root = m->g->root[m->sub[0]];
	struct led_jobinfo *i;
	struct counts c = { 0 };

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	if (job < 0) {
		/* Nothing was ever booked for it. */
		out->code = EINVAL;
		return 0;
	}
	i = &m->led.info.p[job];
	if (!(led_get(&m->led, root, (uint32_t)job).job & LED_TAGGED)) {
		for (uint32_t v = 0; v < m->nv; v++)
			if (m->led.v[v].n)
				led_clear(&m->led, v, (uint32_t)job, LED_UNITS);
		out->code = EINVAL;
	} else if (i->plain) {
		/* On a tree the depth-first walk meets every tagged vertex, and each of their
		 * children. */
		c.pre = 1;
		for (uint32_t k = 0; k < i->at.n; k++) {
			uint32_t v = i->at.p[k];

			if (!(led_get(&m->led, v, (uint32_t)job).job & LED_TAGGED))
				continue;
			c.pre += m->kid_off[v + 1] - m->kid_off[v];
			c.post++;
			free_vertex(m, v, (uint32_t)job);
		}
	} else {
		m->gen++;
		cancel_from(m, root, (uint32_t)job, 0, &c);
	}
	led_job_drop(&m->led, (uint32_t)job);
	out->preorder = c.pre;
	out->postorder = c.post;
	out->messages = slu_buf_str(&m->msg);
	return 0;
}

/* --- a part of it --- */

/* What is freed of one rank. */
struct freed {
	int64_t rank;
	uint32_t top; /* the shallowest vertex */
	uint32_t top_depth;
	int64_t *units; /* by position in prune */
};

struct partial {
	struct slu_match *m;
	uint32_t job;
	SLU_VEC(struct freed) f;
};

static uint32_t depth_of(const struct slu_match *m, uint32_t v)
{
	uint32_t d = 0;

	for (uint32_t e = m->up[v]; e != SLU_NONE && d < DEPTH_MAX; e = m->up[m->g->e.p[e].src])
		d++;
	return d;
}

static int free_part(struct partial *p, uint32_t v)
{
	struct slu_match *m = p->m;
	const struct slu_vertex *x = &m->g->v.p[v];
	struct led_rec r = led_get(&m->led, v, p->job);
	uint32_t d = depth_of(m, v), i = 0;
	uint16_t at = x->type < m->ntypes ? m->prune_at[x->type] : NO_PRUNE;
	struct freed *f;

	while (i < p->f.n && p->f.p[i].rank != x->rank)
		i++;
	if (i == p->f.n) {
		struct freed fresh = { x->rank, v, d, NULL };

		fresh.units = slu_arena_zalloc(&m->tmp, (m->prune.n + 1) * sizeof *fresh.units);
		if (!fresh.units || slu_vec_push(&p->f, fresh) < 0)
			return -ENOMEM;
	}
	f = &p->f.p[i];
	if (d < f->top_depth) {
		f->top = v;
		f->top_depth = d;
	}
	if (at != NO_PRUNE && (r.job & LED_UNITS))
		f->units[at] += x->size;
	free_vertex(m, v, p->job);
	return 0;
}

static int reduce_ancestors(struct partial *p, const struct freed *f)
{
	struct slu_match *m = p->m;
	const struct led_job *j = &m->led.job.p[p->job];
	uint32_t left = DEPTH_MAX;

	for (uint32_t e = m->up[f->top]; e != SLU_NONE && left; left--) {
		uint32_t v = m->g->e.p[e].src;
		struct slu_multi *mu = m->multi[v];
		int rc = 1;

		e = m->up[v];
		if (!(led_get(&m->led, v, p->job).job & (LED_TAGGED | LED_SHARED)))
			continue;
		led_clear(&m->led, v, p->job, LED_SHARED);
		fast_touch(m, v);
		if (mu && slu_multi_span(mu, p->job)) {
			int64_t *less = slu_arena_alloc(&m->tmp, (mu->n + 1) * sizeof *less);

			if (!less)
				return -ENOMEM;
			for (uint32_t i = 0; i < mu->n; i++)
				less[i] = f->units[m->prune_at[mu->type[i]]];
			rc = slu_multi_reduce(mu, p->job, j->start, j->end - j->start, less);
			if (rc < 0)
				return rc;
			if (rc == 1)
				m->led.info.p[p->job].refs--;
		} else {
			rc = 0;
		}
		if (rc == 1)
			led_clear(&m->led, v, p->job, LED_TAGGED);
	}
	return 0;
}

static int free_ranks(struct partial *p, const struct slu_listing *l)
{
	struct slu_match *m = p->m;
	uint32_t n;
	int rc = 0;

	for (uint32_t i = 0; i < l->ranks.n; i++) {
		slu_graph_by_rank(m->g, l->ranks.p[i], &n);
		if (!n) {
			slu_buf_printf(&m->msg, "remove%" PRId64 " not found in by_rank map.\n",
				       l->ranks.p[i]);
			return -ENOENT;
		}
	}
	for (uint32_t i = 0; i < l->ranks.n && !rc; i++) {
		const uint32_t *v = slu_graph_by_rank(m->g, l->ranks.p[i], &n);

		for (uint32_t k = 0; k < n && !rc; k++)
			if (led_get(&m->led, v[k], p->job).job & LED_TAGGED)
				rc = free_part(p, v[k]);
	}
	return rc;
}

static int free_listed(struct partial *p, const struct slu_listing *l)
{
	struct slu_match *m = p->m;
	uint32_t *v = slu_arena_alloc(&m->tmp, (l->v.n + 1) * sizeof *v);
	int rc = v ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < l->v.n && !rc; i++) {
		rc = listed_find(m, l, &l->v.p[i], &v[i]);
		if (!rc && !(led_get(&m->led, v[i], p->job).job & LED_TAGGED))
			rc = -EINVAL;
	}
	if (!rc && l->broken) {
		slu_buf_puts(&m->msg, l->error ? l->error : "");
		rc = -EINVAL;
	}
	for (uint32_t i = 0; i < l->v.n && !rc; i++)
		rc = free_part(p, v[i]);
	return rc;
}

int slu_match_partial_cancel(struct slu_match *m, int64_t jobid, const struct slu_listing *l,
			     bool *full, struct slu_match_result *out)
{
	int64_t job = led_job_find(&m->led, jobid);
	struct partial p = { .m = m, .job = (uint32_t)job };
	int rc;

	*full = false;
	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	slu_arena_reset(&m->tmp);
	if (job < 0) {
		out->code = ENOENT;
		return 0;
	}
	rc = l->kind == SLU_LISTING_RV1 ? free_ranks(&p, l) : free_listed(&p, l);
	if (!rc && !p.f.n) {
		slu_buf_puts(&m->msg, "remove: rank_to_root is empty.\n");
		rc = -EINVAL;
	}
	for (uint32_t i = 0; i < p.f.n && !rc; i++)
		rc = reduce_ancestors(&p, &p.f.p[i]);
	slu_vec_done(&p.f);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		out->code = -rc;
	else
		*full = !(led_get(&m->led, m->g->root[m->sub[0]], p.job).job & LED_TAGGED);
	led_job_drop(&m->led, p.job);
	out->messages = slu_buf_str(&m->msg);
	return 0;
}

int cancel_at(struct slu_match *m, const uint32_t *v, uint32_t n)
{
	int rc = 0;

	/* Job after job: each pass takes one that is still there and frees all of it here. */
	for (uint32_t i = 0; i < n && !rc;) {
		struct partial p = { .m = m };
		uint32_t k;
		const struct led_rec *r = led_records(&m->led, v[i], &k);

		if (!k) {
			i++;
			continue;
		}
		p.job = led_job(r[0]);
		for (uint32_t j = i; j < n && !rc; j++)
			if (led_get(&m->led, v[j], p.job).job)
				rc = free_part(&p, v[j]);
		for (uint32_t j = 0; j < p.f.n && rc >= 0; j++)
			rc = reduce_ancestors(&p, &p.f.p[j]);
		rc = rc == -ENOMEM ? rc : 0;
		slu_vec_done(&p.f);
		led_job_drop(&m->led, p.job);
	}
	return rc;
}
