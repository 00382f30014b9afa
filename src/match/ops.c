/* ops.c — the operations: allocate now, reserve for later, or report that the request can never
 * fit. */
#include "match/allowed.h"
#include "match/match_internal.h"
#include "match/fast/fast.h"

#include <math.h>
#include <stdio.h>

/* --- life --- */

static const struct {
	const char *upper, *lower, *subs;
} matchers[] = {
	{ "CA", "ca", "containment" },
	{ "IBA", "iba", "ibnet" },
	{ "IBBA", "ibba", "ibnetbw" },
	{ "PA", "pa", "power" },
	{ "PFS1BA", "pfs1ba", "pfs1bw" },
	{ "C+IBA", "c+iba", "containment ibnet" },
	{ "C+IBBA", "c+ibba", "containment ibnetbw" },
	{ "C+PA", "c+pa", "containment power" },
	{ "C+PFS1BA", "c+pfs1ba", "containment pfs1bw" },
	{ "IB+IBBA", "ib+ibba", "ibnet ibnetbw" },
	{ "C+P+IBA", "c+p+iba", "containment power ibnet" },
	{ "V+PFS1BA", "v+pfs1ba", "virtual1 pfs1bw" },
	{ "VA", "va", "virtual1" },
	{ "ALL", "all", "containment ibnet ibnetbw pfs1bw power" },
};

static int choose_subsystems(struct slu_match *m, const char *name)
{
	const char *s = NULL;

	for (size_t i = 0; i < SLU_LEN(matchers); i++)
		if (strcmp(name, matchers[i].upper) == 0 || strcmp(name, matchers[i].lower) == 0)
			s = matchers[i].subs;
	if (!s)
		return -EINVAL;
	while (*s) {
		size_t n = strcspn(s, " ");
		uint32_t id = slu_intern_find_n(&m->g->subsystems, s, n);

		if (id == SLU_INTERN_NONE || m->g->root[id] == SLU_NONE)
			return -EINVAL;
		m->sub[m->nsub++] = (uint8_t)id;
		s += n;
		s += *s == ' ';
	}
	return 0;
}

/* A node that is down when the graph is read is subtracted from the number of nodes, as the
 * reference counts. */
static void count_nodes_up(struct slu_match *m)
{
	m->nodes_up = 0;
	slu_vec_each (&m->g->v, struct slu_vertex, v)
		if (!v->dead && v->type == SLU_TYPE_NODE)
			m->nodes_up += v->status == SLU_UP ? 1 : -1;
}

int slu_match_new(struct slu_graph *g, const struct slu_match_options *o, struct slu_match **out,
		  struct slu_error *err)
{
	slu_cleanup(slu_match_freep) struct slu_match *m = slu_calloc(1, sizeof *m);
	const char *traverser = o->traverser ? o->traverser : "simple";
	int rc;

	if (!m)
		return -ENOMEM;
	m->g = g;
	m->gen = 1; /* 0 marks vertices that were never visited */
	m->end_s = o->end_s ? o->end_s : SLU_GRAPH_END;
	m->count_visits = o->count_visits;
	m->stale = o->stale_error ? o->stale_error : EBUSY;
	m->msg = SLU_BUF_INIT(64 << 20);
	m->flexible = strcmp(traverser, "flexible") == 0;
	if (match_policy_parse(o->policy ? o->policy : "first", &m->policy) < 0)
		return slu_fail(err, -EINVAL, "can't create matcher");
	if (!m->flexible && strcmp(traverser, "simple") != 0)
		return slu_fail(err, -EINVAL, "can't create traverser");
	rc = match_filter_parse(m, o->filters);
	if (rc < 0)
		return rc == -ENOMEM ? rc : slu_fail(err, rc, "can't set pruning filters");
	if (choose_subsystems(m, o->subsystems ? o->subsystems : "CA") < 0)
		return slu_fail(err, -EINVAL, "can't initialize traverser");
	rc = match_filter_prime(m);
	if (rc < 0)
		return rc == -ENOMEM ? rc : slu_fail(err, rc, "can't initialize traverser");
	count_nodes_up(m);
	*out = slu_take(m);
	return 0;
}

void slu_match_free(struct slu_match *m)
{
	if (!m)
		return;
	match_filter_done(m);
	match_led_done(&m->led);
	slu_intern_done(&m->words);
	slu_map_done(&m->labels);
	slu_vec_done(&m->whole);
	slu_buf_done(&m->msg);
	slu_arena_done(&m->req);
	slu_arena_done(&m->tmp);
	slu_free(m);
}

size_t slu_match_memory(const struct slu_match *m)
{
	size_t bytes = match_led_memory(&m->led);

	for (size_t i = 0; i < (size_t)m->nv * m->nsub; i++)
		if (m->multi[i])
			bytes += slu_multi_memory(m->multi[i]);
	return bytes;
}

/* --- jobs --- */

bool slu_match_has_job(const struct slu_match *m, int64_t jobid)
{
	return match_led_job_find(&m->led, jobid) >= 0;
}

/* Set the types whose vertices are taken whole once the walk touches them. */
static void exclusive_types(const struct slu_request *list, uint32_t n, uint8_t *types)
{
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].excl == SLU_EXCL_TRUE)
			types[list[i].type] = 1;
		exclusive_types(list[i].with, list[i].nwith, types);
	}
}

/* The exclusive types of the refused request stay in force, as in the reference. */
static int leave_behind(struct slu_match *m, const struct slu_request *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		bool known = list[i].excl != SLU_EXCL_TRUE;

		for (uint32_t k = 0; k < m->whole.n && !known; k++)
			known = m->whole.p[k] == list[i].type;
		if ((!known && slu_vec_push(&m->whole, list[i].type) < 0) ||
		    leave_behind(m, list[i].with, list[i].nwith) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int duration_of(const struct slu_match *m, const struct slu_jobspec *spec, int64_t now,
		       int64_t *out)
{
	double d = spec->duration;
	int64_t whole;

	if (isnan(d) || d < 0 || d > (double)m->end_s)
		return -EINVAL;
	whole = d == 0 ? m->end_s : (int64_t)ceil(d);
	if (now > m->end_s - whole)
		whole = m->end_s - now;
	if (whole < 1)
		return -EINVAL;
	*out = whole;
	return 0;
}

static int64_t nodes_needed(const struct attempt *a)
{
	const struct slu_match *m = a->m;
	uint16_t at = SLU_TYPE_NODE < m->ntypes ? m->prune_at[SLU_TYPE_NODE] : NO_PRUNE;

	return at == NO_PRUNE ? 0 : a->top_needs[at];
}

/* Refuse at once a request for more nodes than there are. */
static bool feasible(const struct attempt *a, enum slu_match_op op)
{
	const struct slu_match *m = a->m;
	int64_t need = nodes_needed(a), have = 0;
	bool now = op == SLU_MATCH_ALLOCATE || op == SLU_MATCH_WITHOUT_ALLOCATING;
	int64_t at = now ? a->now : m->end_s - 1;

	if (need > m->nodes_up)
		return false;
	if (!a->constraint)
		return true;
	for (uint32_t v = 0; v < m->g->v.n && have < need; v++) {
		const struct slu_vertex *x = &m->g->v.p[v];

		if (x->dead || x->type != SLU_TYPE_NODE ||
		    !slu_constraint_match(a->constraint, m->g, v) ||
		    (x->status != SLU_UP && op != SLU_MATCH_ALLOCATE_SATISFIABILITY) ||
		    match_led_avail(&m->led, v, x->size, at, at + a->duration) != 1)
			continue;
		have++;
	}
	return have >= need;
}

static int try_at(struct attempt *a, enum mode mode, int64_t at)
{
	int rc;

	a->mode = mode;
	a->at = at;
	if (!a->m->flexible)
		return match_attempt_run(a);
	rc = match_flex_variants(a);
	if (rc == -EOVERFLOW) {
		slu_buf_printf(&a->m->msg, "select: split_xor_slots failed.\n%s\n",
			       strerror(EOVERFLOW));
		a->error = EOVERFLOW;
	}
	if (rc < 0)
		return rc;
	rc = -EBUSY;
	for (uint32_t i = 0; i < a->variants && rc < 0 && rc != -ENOMEM; i++) {
		a->list = a->variant[i];
		a->nlist = a->variant_n[i];
		rc = match_attempt_run(a);
	}
	if (rc < 0 && rc != -ENOMEM && a->gave_up) {
		slu_buf_puts(&a->m->msg,
			     "dom_slot: too many mixes of the alternatives: gave up.\n");
		a->error = E2BIG;
		rc = -E2BIG;
	}
	return rc;
}

/* The search gave up, so whether the request fits is unknown at any time: do not try another. */
static bool unanswered(int rc)
{
	return rc == -ENOMEM || rc == -E2BIG;
}

static int satisfiable(struct attempt *a)
{
	return try_at(a, MODE_SATISFY, INT64_MAX - a->duration - 1);
}

/* What a failing attempt in the far future means. */
static int never_fits(const struct attempt *a)
{
	return a->error == EBUSY || a->error == ERANGE ? ENODEV : a->error;
}

/* Make attempts at later and later times until one succeeds: 0 with a->at and a->mode set, or a
 * positive errno. */
static int search_time(struct attempt *a, enum slu_match_op op, bool dry)
{
	struct slu_match *m = a->m;
	struct slu_multi *mu = m->multi[m->g->root[m->sub[0]]];
	bool later = op == SLU_MATCH_ALLOCATE_ORELSE_RESERVE ||
		     op == SLU_MATCH_WITHOUT_ALLOCATING_FUTURE;
	int64_t *want, t;
	int rc;

	if (!feasible(a, op))
		return op == SLU_MATCH_ALLOCATE_SATISFIABILITY ? ENODEV : EBUSY;
	rc = try_at(a, dry ? MODE_WITHOUT : MODE_ALLOCATE, a->now);
	if (unanswered(rc))
		return -rc;
	if (!rc) {
		m->pre = a->pre;
		m->post = a->post;
		return 0;
	}
	if (op == SLU_MATCH_ALLOCATE || op == SLU_MATCH_WITHOUT_ALLOCATING)
		return EBUSY;
	if (later && mu && mu->n) {
		want = slu_arena_alloc(&m->req, mu->n * sizeof *want);
		if (!want)
			return ENOMEM;
		for (uint32_t i = 0; i < mu->n; i++)
			want[i] = a->top_needs[m->prune_at[mu->type[i]]];
		rc = -EBUSY;
		t = slu_multi_first(mu, a->now + 1, a->duration, want);
		while (t >= 0 && rc < 0) {
			rc = try_at(a, dry ? MODE_WITHOUT : MODE_RESERVE, t);
			if (unanswered(rc))
				return -rc;
			m->pre += a->pre;
			m->post += a->post;
			t = slu_multi_next(mu, want);
		}
		if (!rc) {
			/* What a walk without bookings reports in that case. */
			if (t < 0)
				a->error = ENOENT;
			return 0;
		}
	}
	rc = satisfiable(a);
	if (unanswered(rc))
		return -rc;
	if (!later) {
		m->pre += a->pre;
		m->post += a->post;
	}
	return rc < 0 ? never_fits(a) : EBUSY;
}

/* A walk that succeeded and books nothing reports the error of the last vertex it refused on the
 * way.  The fast room does not visit vertices that cannot serve, so run the plain walk to learn
 * that error. */
static int error_of_nothing(struct attempt *a)
{
	if (a->fast && a->error == EBUSY) {
		a->plain = true;
		a->error = a->m->stale;
		match_attempt_run(a);
	}
	return a->error;
}

/* Turn the marks of a successful attempt into bookings and output. */
static int commit_match(struct attempt *a, bool dry, int64_t jobid, const struct slu_sink *sink,
			struct slu_match_result *out)
{
	struct slu_match *m = a->m;
	uint8_t *types = slu_arena_zalloc(&m->tmp, m->g->types.n + 1);
	struct booking b = {
		.m = m,
		.sink = sink,
		.excl_types = types,
		.now = a->now,
		.flag = a->mode == MODE_RESERVE ? LED_PLANNED : LED_HELD,
		.dry = dry,
		.plans = true,
		.weights = m->policy.stop,
	};
	int64_t job = 0, n;
	int rc = 0;

	if (!types)
		return -ENOMEM;
	match_exclusive_always(m, types);
	exclusive_types(a->spec->resources, a->spec->nresources, types);
	if (!dry) {
		job = match_led_job_new(&m->led, jobid, a->at, a->duration);
		if (job < 0)
			return (int)job;
	}
	b.job = (uint32_t)job;
	n = match_book_run(&b, m->g->root[m->sub[0]], a->root_needs, a->root_excl);
	if (n < 0 && !dry)
		match_cancel_job(m, b.job);
	if (n <= 0) {
		if (!dry)
			match_led_job_drop(&m->led, b.job);
		if (!n)
			out->code = error_of_nothing(a);
		return (int)n;
	}
	out->at_s = a->at;
	out->end_s = a->at + a->duration;
	out->reserved = a->at > a->now;
	if (sink && sink->ops && sink->ops->times)
		rc = sink->ops->times(sink->w, out->at_s, out->end_s);
	if (!rc && a->spec->queue && *a->spec->queue && sink && sink->ops && sink->ops->queue)
		rc = sink->ops->queue(sink->w, a->spec->queue);
	return rc;
}

int slu_match_run(struct slu_match *m, enum slu_match_op op, const struct slu_jobspec *spec,
		  int64_t jobid, int64_t now_s, const struct slu_sink *sink,
		  struct slu_match_result *out)
{
	bool dry = op == SLU_MATCH_WITHOUT_ALLOCATING || op == SLU_MATCH_WITHOUT_ALLOCATING_FUTURE;
	struct attempt a;
	int rc;

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	rc = match_attempt_prepare(&a, m, spec);
	if (rc < 0)
		return rc;
	a.now = now_s;
	if (!spec->nresources || duration_of(m, spec, now_s, &a.duration) < 0) {
		out->code = EINVAL;
		out->preorder = m->pre; /* messages of the operation before */
		out->postorder = m->post;
		return leave_behind(m, spec->resources, spec->nresources);
	}
	if (op == SLU_MATCH_SATISFIABILITY) {
		rc = satisfiable(&a);
		m->pre = a.pre;
		m->post = a.post;
		out->code = !rc ? 0 : never_fits(&a);
		rc = rc == -ENOMEM ? rc : 0;
	} else {
		out->code = search_time(&a, op, dry);
		if (out->code == ENOMEM)
			return -ENOMEM;
		if (!out->code && a.at >= m->end_s)
			out->code = a.at == m->end_s ? EBUSY : EINVAL;
		if (!out->code && a.at > m->end_s - a.duration)
			a.duration = m->end_s - a.at; /* the job ends with the graph */
		if (!out->code)
			rc = commit_match(&a, dry, jobid, sink, out);
	}
	out->preorder = m->pre;
	out->postorder = m->post;
	out->messages = slu_buf_str(&m->msg);
	return rc;
}

/* --- status and properties --- */

static int64_t nodes_below(struct slu_match *m, uint32_t u, uint32_t depth)
{
	const struct slu_vertex *v = &m->g->v.p[u];
	int64_t n = v->type == SLU_TYPE_NODE ? v->size : 0;

	if (depth > m->depth)
		return n;
	if (m->colour)
		m->colour[u] = m->gen;
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		uint32_t c = m->g->e.p[m->kid[k]].dst;

		if (!m->colour || m->colour[c] != m->gen)
			n += nodes_below(m, c, depth + 1);
	}
	return n;
}

void slu_match_status_set(struct slu_match *m, uint32_t v, enum slu_status status)
{
	int64_t n;

	if (m->g->v.p[v].status == status)
		return;
	match_family_status(m, v, m->g->v.p[v].status, status);
	m->g->v.p[v].status = (uint8_t)status;
	match_alike_change(m, v);
	match_fast_touch(m, v, true);
	match_mark_tick(m);
	n = nodes_below(m, v, 0);
	m->nodes_up += status == SLU_UP ? n : -n;
}

int slu_match_property_set(struct slu_match *m, uint32_t v, const char *key, const char *val)
{
	/* Scores may depend on properties, so forget what the fast room knows.  Constraints
	 * depend on them too, but their answers are not remembered. */
	if (m->policy.scorer == SCORE_VARIATION)
		match_fast_drop(m);
	return slu_graph_property_set(m->g, v, key, val);
}
