/* book.c — turn marks into bookings and output.  The walk goes down along the marked edges, and
 * to everything below an exclusive vertex; on its way back it books, counts and emits each
 * vertex. */
#include "match/match_internal.h"
#include "match/fast/fast.h"

struct row {
	int64_t *sum; /* by position in prune */
	bool any;
};

struct rows {
	SLU_VEC(struct row) r; /* by depth */
};

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The marked edges among u's many children: first and end in m->wide (sorted). */
static void wide_range(const struct slu_match *m, uint32_t u, uint32_t *first, uint32_t *end)
{
	uint32_t lo = 0, hi = m->wide.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->wide.p[mid] >> 32 < u)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (*first = lo; lo < m->wide.n && m->wide.p[lo] >> 32 == u;)
		lo++;
	*end = lo;
}

/* --- the walk --- */

static void update_weight(struct booking *b, uint32_t e)
{
	uint32_t u = b->m->g->e.p[e].src, v = b->m->g->e.p[e].dst;
	const struct slu_multi *mu = b->m->multi[v];
	int64_t left;

	if (!mu || !mu->n)
		return;
	left = b->now < 0 ? -1 : slu_planner_at(&mu->p[mu->n - 1], b->now);
	if (left == 0 && !mu->spans)
		return;
	match_order_move(b->m, u, e, left < 0 ? 0 : (uint64_t)left);
}

/* Book the units and the share of the job at u. 0, or -EINVAL if the ledger or a planner
 * refuses. */
static int book_here(struct booking *b, uint32_t u, int64_t needs, bool x, const struct row *below)
{
	struct slu_match *m = b->m;
	const struct slu_vertex *v = &m->g->v.p[u];
	struct slu_multi *mu = m->multi[u];
	const struct led_job *j = &m->led.job.p[b->job];
	uint32_t flags = LED_SHARED | LED_TAGGED;
	int rc;

	if (x && b->plans)
		flags |= b->flag;
	/* Reserve the entry in the job's list first, so that the booking can be undone. */
	if (slu_vec_push(&m->led.info.p[b->job].at, u) < 0)
		return -ENOMEM;
	rc = match_led_put(&m->led, u, v->size, b->job, flags, (uint32_t)needs);
	if (rc == -EINVAL)
		slu_buf_printf(&m->msg, "upd_plan: planner_add_span returned -1.\n%s\n",
			       strerror(EINVAL));
	if (rc < 0)
		return rc;
	if (m->fast)
		match_fast_touch(m, u, flags & LED_UNITS);
	if (mu && mu->n && below->any) {
		int64_t small[16], *want = small;

		if (mu->n > SLU_LEN(small))
			want = slu_arena_alloc(&m->tmp, mu->n * sizeof *want);
		if (!want)
			return -ENOMEM;
		for (uint32_t i = 0; i < mu->n; i++)
			want[i] = below->sum[m->prune_at[mu->type[i]]];
		rc = slu_multi_add(mu, b->job, j->start, j->end - j->start, want);
		if (rc == -EINVAL)
			slu_buf_printf(&m->msg,
				       "upd_agfilter: planner_multi_add_span returned -1.\n%s\n",
				       strerror(EINVAL));
		if (rc < 0)
			return rc;
		m->led.info.p[b->job].refs++;
	}
	return 0;
}

static void hand_up(const struct slu_match *m, uint16_t type, int64_t units, struct row *up)
{
	uint16_t at = type < m->ntypes ? m->prune_at[type] : NO_PRUNE;

	if (at == NO_PRUNE)
		return;
	up->sum[at] += units;
	up->any = true;
}

/* A writer that cannot express a vertex (a core without a number) leaves the vertex out; the job
 * is booked all the same, as in the reference. */
static int report_booking(struct booking *b, int rc)
{
	b->error = rc == -EINVAL ? 0 : rc;
	return b->error;
}

static inline void prefetch(const struct slu_match *m, uint32_t v)
{
	__builtin_prefetch(&m->g->v.p[v].size);
	led_prefetch(&m->led, v);
}

/* --- families --- */

/* Whether all leaves are marked to be taken whole. */
static bool all_marked(const struct booking *b, const struct family *f)
{
	const struct slu_match *m = b->m;

	if (f->gen == b->gen)
		return true;
	for (uint32_t i = 0; i < f->n; i++) {
		const struct mark *mark = &m->mark[m->kid[f->kid + i]];

		if (mark->gen != b->gen || !mark->excl || mark->needs != f->size)
			return false;
	}
	return true;
}

/* Replace the mark of the family by a mark on each of its edges. */
static void mark_each(struct booking *b, const struct family *f)
{
	for (uint32_t i = 0; i < f->n && f->gen == b->gen; i++)
		match_mark_put(b->m, b->m->kid[f->kid + i], f->size, true);
}

/* Hand the leaves of vertex u (exclusive: x) to the writer.  0 or a negative errno. */
static int tell_all(struct booking *b, uint32_t u, bool x, uint32_t first, const struct family *f)
{
	struct slu_match *m = b->m;
	const struct slu_writer_ops *ops = b->sink ? b->sink->ops : NULL;
	struct slu_emit_vertex out = {
		.level = m->level + 1, .needs = f->size, .exclusive = true, .parent_exclusive = x
	};

	if (!ops)
		return 0;
	if (ops->leaves && !m->labels.n) {
		struct slu_emit_leaves all = { first, f->n, f->rising };

		return report_booking(b, ops->leaves(b->sink->w, m->g, &all));
	}
	for (out.v = first; out.v < first + f->n; out.v++) {
		struct slu_emit_edge e = { u, out.v, m->sub[0], x, f->size, true };

		out.label = m->labels.n ? match_label_of(m, out.v) : NULL;
		if ((ops->vertex && report_booking(b, ops->vertex(b->sink->w, m->g, &out)) < 0) ||
		    (ops->edge && report_booking(b, ops->edge(b->sink->w, m->g, &e)) < 0))
			return b->error;
	}
	return 0;
}

/* Book all leaves of the family that begins with child v of u; with `mod`, whatever the marks
 * say.  Return how many leaves there are, 0 if the caller has to book them one by one, -1 on
 * failure (b->error). */
static int64_t book_all(struct booking *b, uint32_t u, uint32_t v, bool x, bool mod,
			struct row *own)
{
	struct slu_match *m = b->m;
	uint32_t s;
	const struct family *f = match_family_at(m, v, &s);
	int rc = 0;

	if (!f || !(mod || all_marked(b, f)))
		return 0;
	if (!b->dry && b->plans) {
		/* As in book_here(), reserve the entry in the job's list first. */
		rc = slu_vec_push(&m->led.info.p[b->job].at, s);
		if (!rc)
			rc = match_led_put_all(&m->led, s, f->size, b->job,
					       LED_SHARED | LED_TAGGED | b->flag);
		if (rc == -EAGAIN)
			m->led.info.p[b->job].at.n--;
		if (!rc) {
			match_family_touch(m, f, true);
			hand_up(m, f->type, (int64_t)f->n * f->size, own);
		}
	} else if (!b->dry) {
		rc = -EAGAIN;
	}
	if (rc == -EAGAIN) {
		mark_each(b, f);
		return 0;
	}
	b->error = rc;
	return rc < 0 || tell_all(b, u, x, v, f) < 0 ? -1 : (int64_t)f->n;
}

/* What a parent hands down to the vertex that is booked next. */
struct step {
	uint32_t u, depth;
	int64_t needs;
	bool excl;        /* the mark says so */
	bool shadow;      /* the vertex lies below a vertex that is taken whole */
	bool parent_excl; /* for the output */
	struct row *up;   /* sums of the parent; NULL at the root */
};

/* Book the vertex, hand its sums up to the parent, and emit it; `own` holds the sums of everything
 * below, x: the vertex is taken whole.  0, or -1 with b->error set. */
static int book_and_tell(struct booking *b, const struct step *at, bool x, const struct row *own)
{
	struct slu_match *m = b->m;
	const struct slu_vertex *v = &m->g->v.p[at->u];
	const struct slu_writer_ops *ops = b->sink ? b->sink->ops : NULL;
	struct row *up = at->up;
	int rc = b->dry ? 0 : book_here(b, at->u, at->needs, x, own);

	if (rc == -ENOMEM) {
		b->error = rc;
		return -1;
	}
	if (rc < 0) {
		/* As in the reference, the vertex is neither printed nor handed up, and the level
		 * stays. */
		b->refused = true;
		return 0;
	}
	if (!b->dry && up)
		hand_up(m, v->type, x ? (int64_t)v->size : (int64_t)v->size - at->needs, up);
	if (!b->dry && up && own->any) {
		for (uint32_t t = 0; t < m->prune.n; t++)
			up->sum[t] += own->sum[t];
		up->any = true;
	}
	if (ops && ops->vertex) {
		struct slu_emit_vertex out = {
			.v = at->u,
			.level = m->level,
			.needs = at->needs,
			.exclusive = x,
			.parent_exclusive = at->parent_excl,
			.label = m->labels.n ? match_label_of(m, at->u) : NULL,
		};

		if (report_booking(b, ops->vertex(b->sink->w, m->g, &out)) < 0)
			return -1;
	}
	m->level--;
	return 0;
}

/* Book everything that is marked at and below the vertex.  The number of bookings, or -1 with
 * b->error set. */
static int64_t book_vertex(struct booking *b, struct rows *rows, const struct step *at)
{
	const uint32_t u = at->u, depth = at->depth;
	struct slu_match *m = b->m;
	const struct slu_graph *g = m->g;
	const struct slu_writer_ops *ops = b->sink ? b->sink->ops : NULL;
	bool mod = at->shadow || b->excl_types[g->v.p[u].type];
	bool x = at->excl || mod;
	bool leaf = m->kid_off[u] == m->kid_off[u + 1];
	struct row none = { 0 }, *own = &none;
	uint32_t k = m->kid_off[u], end = m->kid_off[u + 1];
	int64_t n = 0;
	bool wide;
	int rc;

	if (depth > m->depth)
		return 0;
	m->level++;
	if (m->colour)
		m->colour[u] = b->gen;
	if (!leaf && !b->dry) {
		own = &rows->r.p[depth];
		own->any = false;
		memset(own->sum, 0, m->prune.n * sizeof *own->sum);
	}
	wide = !mod && !m->wide_lost && m->kid_off[u + 1] - m->kid_off[u] > WIDE;
	if (wide)
		wide_range(m, u, &k, &end);
	for (; k < end; k++) {
		/* Edges are numbered in order of insertion, so both lists are in that order. */
		uint32_t e = wide ? (uint32_t)m->wide.p[k] : m->kid[k], c = g->e.p[e].dst;
		const struct mark mark = m->mark[e];
		bool marked = mark.gen == b->gen;
		int64_t sub, want = mod ? (int64_t)g->v.p[c].size : (int64_t)mark.needs;
		bool cx = (marked && mark.excl) || mod;

		if (!wide && k + 6 < end)
			prefetch(m, g->e.p[m->kid[k + 6]].dst);
		if ((!marked && !mod) || (m->colour && m->colour[c] == b->gen))
			continue;
		sub = cx && m->family.n ? book_all(b, u, c, x, mod, own) : 0;
		if (sub > 0) {
			n += sub;
			k += (uint32_t)sub - 1;
			continue;
		}
		if (!sub)
			sub = book_vertex(b, rows,
					  &(struct step){ c, depth + 1, want, cx, mod, x, own });
		if (b->error)
			return -1;
		if (sub <= 0)
			continue;
		/* Weights change after everything is booked; what v has left is the same by
		 * then. */
		if (b->weights && slu_vec_push(&b->moved, e) < 0)
			b->error = -ENOMEM;
		if (b->error)
			return -1;
		if (ops && ops->edge) {
			struct slu_emit_edge out = { u, c, m->sub[0], x, want, cx };

			if (report_booking(b, ops->edge(b->sink->w, g, &out)) < 0)
				return -1;
		}
		n += sub;
	}
	n += x;
	if (!n) {
		m->level--;
		return 0;
	}
	rc = book_and_tell(b, at, x, own);
	return rc < 0 ? -1 : n;
}

int64_t match_book_run(struct booking *b, uint32_t root, int64_t needs, bool excl)
{
	struct slu_match *m = b->m;
	struct rows rows = { 0 };
	int64_t *sums, n = -ENOMEM;
	uint32_t deep = m->depth + 2, level = m->level;

	b->gen = m->gen;
	b->error = 0;
	b->refused = false;
	if (m->colour) {
		/* The colours of the matching walk would be taken for this walk's, so start a
		 * generation. */
		for (uint32_t v = 0; v < m->nv; v++)
			m->colour[v] = 0;
	}
	sums = slu_arena_alloc(&m->tmp, (size_t)deep * (m->prune.n + 1) * sizeof *sums);
	if (!sums || slu_vec_reserve(&rows.r, deep) < 0)
		goto out;
	for (uint32_t i = 0; i < deep; i++)
		rows.r.p[i].sum = sums + (size_t)i * (m->prune.n + 1);
	if (m->wide.n > 1)
		qsort(m->wide.p, m->wide.n, sizeof *m->wide.p, cmp_u64);
	n = book_vertex(b, &rows, &(struct step){ .u = root, .needs = needs, .excl = excl });
	for (uint32_t i = 0; i < b->moved.n && !b->error; i++)
		update_weight(b, b->moved.p[i]);
	if (b->error) {
		m->level = level;
		n = b->error;
	}
	if (!b->dry && (b->refused || !m->tree))
		m->led.info.p[b->job].plain = false;
	if (b->refused)
		m->odd = true;
out:
	slu_vec_done(&rows.r);
	slu_vec_done(&b->moved);
	return n;
}
