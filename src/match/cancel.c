/* cancel.c — free everything that a job holds, or a part of it. */
#include "match/match_internal.h"
#include "match/fast/fast.h"
#include "match/listed_internal.h"

static void drop_span(struct slu_match *m, uint32_t v, uint32_t job)
{
	const struct led_job *j = &m->led.job.p[job];
	struct slu_multi *mu = m->multi[v];

	if (mu && slu_multi_remove(mu, job, j->start, j->end - j->start))
		m->led.info.p[job].refs--;
}

/* Free the job's booking at v, whose record must be v's own and not its family's. */
static void free_vertex(struct slu_match *m, uint32_t v, uint32_t job)
{
	if (m->fast)
		match_fast_touch(m, v, match_led_get(&m->led, v, job).job & LED_UNITS);
	match_led_clear(&m->led, v, job, LED_EVERY);
	drop_span(m, v, job);
}

struct counts { /* vertices met */
	uint64_t pre, post;
};

/* Take the flags off all leaves of a family if the job has one record for them; tell whether it
 * had one. */
static bool free_all(struct slu_match *m, uint32_t s, uint32_t job, uint32_t flags)
{
	uint32_t had = match_led_get(&m->led, s, job).job & flags;

	if (!had)
		return false;
	match_family_touch(m, &m->family.p[s - m->led.nv], had & LED_UNITS);
	match_led_clear(&m->led, s, job, flags);
	return true;
}

/* Free what the job booked at one of its places; with `flags`, only at vertices that have one of
 * these flags. */
static void free_place(struct slu_match *m, uint32_t at, uint32_t job, uint32_t flags,
		       struct counts *c)
{
	const struct led_family *f = led_family(&m->led, at);
	uint32_t v = f ? f->first : at, end = f ? f->first + f->n : at + 1;

	if (f && free_all(m, at, job, LED_EVERY)) {
		c->post += f->n;
		return;
	}
	for (; v < end; v++) {
		if (flags && !(match_led_get(&m->led, v, job).job & flags))
			continue;
		c->pre += m->kid_off[v + 1] - m->kid_off[v];
		c->post++;
		free_vertex(m, v, job);
	}
}

void match_cancel_job(struct slu_match *m, uint32_t job)
{
	struct led_jobinfo *i = &m->led.info.p[job];
	struct counts c = { 0 };

	for (uint32_t k = 0; k < i->at.n; k++)
		free_place(m, i->at.p[k], job, 0, &c);
}

/* The job cannot be found from the root: search all vertices and free only the job's units. */
static void free_units(struct slu_match *m, uint32_t job)
{
	for (uint32_t v = 0; v < m->nv; v++)
		if (m->led.v[v].n && match_led_get(&m->led, v, job).job & LED_UNITS) {
			match_led_clear(&m->led, v, job, LED_UNITS);
			match_fast_touch(m, v, true);
		}
	for (uint32_t f = 0; f < m->family.n; f++)
		free_all(m, m->led.nv + f, job, LED_UNITS);
}

static void cancel_from(struct slu_match *m, uint32_t u, uint32_t job, uint32_t depth,
			struct counts *c)
{
	c->pre++;
	if (!(match_led_get(&m->led, u, job).job & LED_TAGGED) || depth > m->depth)
		return;
	free_vertex(m, u, job);
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		uint32_t v = m->g->e.p[m->kid[k]].dst, s;
		const struct family *f = match_family_at(m, v, &s);

		if (f && free_all(m, s, job, LED_EVERY)) {
			c->pre += f->n;
			c->post += f->n;
			k += f->n - 1;
			continue;
		}
		if (m->colour && m->colour[v] == m->gen)
			continue;
		if (m->colour)
			m->colour[v] = m->gen;
		cancel_from(m, v, job, depth + 1, c);
	}
	c->post++;
}

/* 0, or EINVAL for a job that is not tagged at the root. */
static int cancel_one(struct slu_match *m, uint32_t job, struct counts *c)
{
	uint32_t root = m->g->root[m->sub[0]];
	struct led_jobinfo *i = &m->led.info.p[job];
	int code = 0;

	if (!(match_led_get(&m->led, root, job).job & LED_TAGGED)) {
		free_units(m, job);
		code = EINVAL;
	} else if (i->plain) {
		/* On a tree the depth-first walk visits every tagged vertex and each of its
		 * children. */
		c->pre = 1;
		for (uint32_t k = 0; k < i->at.n; k++) {
			if (k + 6 < i->at.n)
				led_prefetch(&m->led, i->at.p[k + 6]);
			free_place(m, i->at.p[k], job, LED_TAGGED, c);
		}
	} else {
		match_mark_tick(m);
		cancel_from(m, root, job, 0, c);
	}
	match_led_job_drop(&m->led, job);
	return code;
}

int slu_match_cancel(struct slu_match *m, int64_t jobid, struct slu_match_result *out)
{
	int64_t job = match_led_job_find(&m->led, jobid), last = -1;
	struct counts c = { 0 };

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	/* Nothing was ever booked for the job, or several jobs have the same number. */
	if (job < 0)
		out->code = EINVAL;
	for (; job >= 0 && job != last; last = job, job = match_led_job_find(&m->led, jobid)) {
		int code = cancel_one(m, (uint32_t)job, &c);

		out->code = out->code ? out->code : code;
	}
	if (last < 0)
		return 0;
	/* Later operations add to these sums, as in the reference. */
	out->preorder = m->pre = c.pre;
	out->postorder = m->post = c.post;
	out->messages = slu_buf_str(&m->msg);
	return 0;
}

/* --- a part of it --- */

/* What is freed of one rank. */
struct freed {
	int64_t rank;
	uint32_t top;    /* the vertex with the shortest path */
	size_t top_path; /* its length */
	bool any;        /* the job held units of this rank */
	int64_t *units;  /* by position in prune */
};

struct partial {
	struct slu_match *m;
	uint32_t job;
	SLU_VEC(struct freed) f;
	struct slu_buf path;
};

static struct freed *freed_of(struct partial *p, int64_t rank)
{
	struct freed fresh = { rank, SLU_NONE, SIZE_MAX, false, NULL };

	for (uint32_t i = p->f.n; i-- > 0;)
		if (p->f.p[i].rank == rank)
			return &p->f.p[i];
	fresh.units = slu_arena_zalloc(&p->m->tmp, (p->m->prune.n + 1) * sizeof *fresh.units);
	if (!fresh.units || slu_vec_push(&p->f, fresh) < 0)
		return NULL;
	return &p->f.p[p->f.n - 1];
}

/* The vertex with the shortest path is the top of its rank. */
static void note_top(struct partial *p, struct freed *f, uint32_t v)
{
	slu_buf_reset(&p->path);
	if (slu_graph_path_put(p->m->g, v, p->m->sub[0], &p->path) && p->path.n < f->top_path) {
		f->top_path = p->path.n;
		f->top = v;
	}
}

static void note_units(struct partial *p, struct freed *f, uint32_t v, struct led_rec r)
{
	uint16_t type = p->m->g->v.p[v].type;
	uint16_t at = type < p->m->ntypes ? p->m->prune_at[type] : NO_PRUNE;

	if (!(r.job & LED_UNITS))
		return;
	f->any = true;
	if (at != NO_PRUNE)
		f->units[at] += r.units;
}

static int free_ranks(struct partial *p, const struct slu_listing *l)
{
	struct slu_match *m = p->m;

	/* Go from the last to the first, because the order decides the message when one of them
	 * does not exist: the reference keeps them in a hash set. */
	for (uint32_t i = l->ranks.n; i-- > 0;) {
		uint32_t n;
		const uint32_t *v = slu_graph_by_rank(m->g, l->ranks.p[i], &n);
		struct freed *f;

		if (!n) {
			slu_buf_printf(&m->msg, "remove%" PRId64 " not found in by_rank map.\n",
				       l->ranks.p[i]);
			return -ENOENT;
		}
		f = freed_of(p, l->ranks.p[i]);
		if (!f)
			return -ENOMEM;
		for (uint32_t k = 0; k < n; k++) {
			struct led_rec r = match_led_get(&m->led, v[k], p->job);

			note_top(p, f, v[k]);
			if (!(r.job & LED_TAGGED))
				continue;
			if (match_led_split(&m->led, v[k], p->job) < 0)
				return -ENOMEM;
			note_units(p, f, v[k], r);
			free_vertex(m, v[k], p->job);
		}
	}
	return 0;
}

static void missing(struct slu_match *m, const char *what, int64_t job, uint32_t v)
{
	slu_buf_printf(&m->msg, "cancel_vtx: can't find %s span for job %" PRId64 " in ", what,
		       job);
	slu_graph_name_put(m->g, v, &m->msg);
	slu_buf_puts(&m->msg, ".\n");
}

/* The ranks in free_ranks are not freed.  Where that key is given, only one vertex of each other
 * rank is freed, because the reference then counts the rank as free already. */
static bool is_left(const struct partial *p, const struct slu_listing *l, int64_t rank)
{
	if (!l->has_free)
		return false;
	for (uint32_t i = p->f.n; i-- > 0;)
		if (p->f.p[i].rank == rank)
			return true;
	return slu_listing_frees(l, rank);
}

static int free_listed(struct partial *p, const struct slu_listing *l)
{
	struct slu_match *m = p->m;

	for (uint32_t i = 0; i < l->v.n; i++) {
		struct led_rec r;
		struct freed *f;
		uint32_t v;
		int rc = match_listed_find(m, l, &l->v.p[i], &v);

		if (rc < 0)
			return rc;
		if (is_left(p, l, m->g->v.p[v].rank))
			continue;
		r = match_led_get(&m->led, v, p->job);
		if (match_led_split(&m->led, v, p->job) < 0)
			return -ENOMEM;
		drop_span(m, v, p->job);
		match_fast_touch(m, v, true);
		if (!(r.job & LED_SHARED)) {
			missing(m, "x_checker", m->led.info.p[p->job].id, v);
			return -EINVAL;
		}
		match_led_clear(&m->led, v, p->job, LED_TAGGED | LED_SHARED);
		if (!(r.job & LED_HELD)) {
			missing(m, "allocation", m->led.info.p[p->job].id, v);
			return -EINVAL;
		}
		match_led_clear(&m->led, v, p->job, LED_HELD);
		f = freed_of(p, m->g->v.p[v].rank);
		if (!f)
			return -ENOMEM;
		note_units(p, f, v, r);
		note_top(p, f, v);
	}
	if (l->broken) {
		slu_buf_puts(&m->msg, l->error ? l->error : "");
		return -EINVAL;
	}
	return 0;
}

/* Take `less` (by position in prune) off the job's share at an ancestor. */
static int reduce_at(struct slu_match *m, uint32_t v, uint32_t job, const int64_t *less)
{
	const struct led_job *j = &m->led.job.p[job];
	struct slu_multi *mu = m->multi[v];
	int64_t *by_index;
	int rc;

	if (!mu || !slu_multi_span(mu, job) || !(match_led_get(&m->led, v, job).job & LED_TAGGED))
		return 0;
	by_index = slu_arena_alloc(&m->tmp, (mu->n + 1) * sizeof *by_index);
	if (!by_index)
		return -ENOMEM;
	for (uint32_t i = 0; i < mu->n; i++)
		by_index[i] = less[m->prune_at[mu->type[i]]];
	rc = slu_multi_reduce(mu, job, j->start, j->end - j->start, by_index);
	match_fast_touch(m, v, true);
	if (rc == -EINVAL) {
		slu_buf_puts(&m->msg, "mod_agfilter: planner_multi_reduce_span returned -1.\n");
		slu_graph_name_put(m->g, v, &m->msg);
		slu_buf_printf(&m->msg, " %s.\n", strerror(EINVAL));
	}
	if (rc < 0)
		return rc;
	if (rc == 1)
		m->led.info.p[job].refs--;
	match_led_clear(&m->led, v, job, rc == 1 ? LED_TAGGED | LED_SHARED : LED_SHARED);
	return 0;
}

/* Reduce the ancestors of the tops, each by the sum over the ranks below it.  On -EINVAL, *failed
 * is the ancestor that does not have as much. */
static int reduce_ancestors(struct partial *p, const uint32_t *jobs, uint32_t njobs,
			    uint32_t *failed)
{
	struct slu_match *m = p->m;
	struct slu_map at = { 0 }; /* vertex -> its sums */
	int rc = 0;

	for (uint32_t i = 0; i < p->f.n && !rc; i++) {
		const struct freed *f = &p->f.p[i];
		uint32_t left = DEPTH_MAX;

		for (uint32_t e = m->up[f->top]; e != SLU_NONE && left-- && !rc;) {
			uint32_t v = m->g->e.p[e].src;
			uint64_t *have = slu_map_get(&at, v);
			int64_t *sum = have ? (int64_t *)(uintptr_t)*have : NULL;

			if (!sum) {
				sum = slu_arena_zalloc(&m->tmp, (m->prune.n + 1) * sizeof *sum);
				rc = sum ? slu_map_put(&at, v, (uint64_t)(uintptr_t)sum) : -ENOMEM;
			}
			for (uint32_t t = 0; t < m->prune.n && !rc; t++)
				sum[t] += f->units[t];
			e = m->up[v];
		}
	}
	/* From the root down; the first ancestor that fails ends the operation. */
	for (uint32_t i = at.n; i-- > 0 && !rc;) {
		*failed = (uint32_t)at.e[i].key;
		for (uint32_t k = 0; k < njobs && !rc; k++)
			rc = reduce_at(m, *failed, jobs[k],
				       (const int64_t *)(uintptr_t)at.e[i].val);
	}
	slu_map_done(&at);
	return rc;
}

static int check_freed(struct partial *p)
{
	struct slu_match *m = p->m;

	if (!p->f.n) {
		slu_buf_puts(&m->msg, "remove: rank_to_root is empty.\n");
		return -EINVAL;
	}
	for (uint32_t i = p->f.n; i-- > 0;)
		if (!p->f.p[i].any) {
			slu_buf_printf(&m->msg,
				       "remove: %" PRId64 " not found in rank_to_counts.\n",
				       p->f.p[i].rank);
			return -EINVAL;
		}
	return 0;
}

int slu_match_partial_cancel(struct slu_match *m, int64_t jobid, const struct slu_listing *l,
			     bool *full, struct slu_match_result *out)
{
	int64_t job = match_led_job_find(&m->led, jobid);
	struct partial p = { .m = m, .job = (uint32_t)job, .path = SLU_BUF_INIT(1 << 20) };
	uint32_t root = m->g->root[m->sub[0]], failed;
	int rc;

	*full = false;
	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	slu_arena_reset(&m->tmp);
	if (job < 0) {
		out->code = ENOENT;
		return 0;
	}
	m->pre = m->post = 0;
	if (l->kind == SLU_LISTING_RV1)
		rc = l->broken ? -EINVAL : free_ranks(&p, l);
	else
		rc = free_listed(&p, l);
	if (rc < 0 && rc != -ENOMEM && (l->broken || l->kind != SLU_LISTING_RV1)) {
		/* The reference does not pass on the messages of the reader. */
		slu_buf_reset(&m->msg);
		slu_buf_puts(&m->msg, "remove: partial_cancel returned error.\n");
	}
	if (!rc)
		rc = check_freed(&p);
	if (!rc && match_led_get(&m->led, root, p.job).job & LED_TAGGED) {
		rc = reduce_ancestors(&p, &p.job, 1, &failed);
		if (rc == -EINVAL) {
			slu_buf_puts(&m->msg, "remove: cancel_vertex failed\n.");
			slu_graph_name_put(m->g, failed, &m->msg);
			slu_buf_puts(&m->msg, ".\n");
		}
		*full = !rc && !(match_led_get(&m->led, root, p.job).job & LED_TAGGED);
	} else if (!rc) {
		free_units(m, p.job);
	}
	m->led.info.p[p.job].plain = false;
	m->inexact = true;
	if (l->kind != SLU_LISTING_RV1)
		m->odd = true;
	slu_vec_done(&p.f);
	slu_buf_done(&p.path);
	match_led_job_drop(&m->led, p.job);
	out->messages = slu_buf_str(&m->msg);
	if (rc < 0 && rc != -ENOMEM) {
		out->code = -rc;
		rc = 0;
	}
	return rc;
}

/* Free all bookings on vertices that leave the graph.  As in the reference, every job that has a
 * booking there is reduced by the units of all these bookings. */
int match_cancel_at(struct slu_match *m, const int64_t *ranks, uint32_t n)
{
	struct partial p = { .m = m, .path = SLU_BUF_INIT(1 << 20) };
	struct slu_map jobs = { 0 };
	SLU_VEC(uint32_t) list = { 0 };
	int rc = match_family_drop(m);

	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t nv;
		const uint32_t *v = slu_graph_by_rank(m->g, ranks[i], &nv);
		struct freed *f = freed_of(&p, ranks[i]);

		rc = f ? 0 : -ENOMEM;
		for (uint32_t k = 0; k < nv && !rc; k++) {
			uint32_t nr;
			const struct led_rec *r = match_led_records(&m->led, v[k], &nr);

			note_top(&p, f, v[k]);
			for (uint32_t j = 0; j < nr && !rc; j++) {
				if (r[j].job & LED_TAGGED && !slu_map_get(&jobs, led_job(r[j])))
					rc = slu_vec_push(&list, led_job(r[j]));
				if (!rc)
					rc = slu_map_put(&jobs, led_job(r[j]), 1);
				if (r[j].job & LED_HELD)
					note_units(&p, f, v[k], r[j]);
			}
		}
	}
	if (!rc && list.n) {
		uint32_t failed;

		m->unseen = true;
		rc = reduce_ancestors(&p, list.p, list.n, &failed);
		if (rc == -EINVAL) {
			slu_buf_puts(&m->msg, "remove: ");
			slu_graph_name_put(m->g, failed, &m->msg);
			slu_buf_puts(&m->msg, ": cancel_vertex failed.\n");
		}
	}
	slu_map_done(&jobs);
	slu_vec_done(&list);
	slu_vec_done(&p.f);
	slu_buf_done(&p.path);
	return rc;
}
