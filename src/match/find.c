/* find.c — "find status=up and sched-now=free": which vertices satisfy the criteria, printed with
 * everything above them.
 *
 *	criteria := term { op term }      op := "and" | "or" | nothing (= and)
 *	term     := key=value | "(" criteria ")"
 *
 * Strictly from left to right, no precedence. */
#include "base/hostlist.h"
#include "match/match_internal.h"

#include <ctype.h>

#define TERMS_MAX 10000
#define NEST_MAX  100
#define F58_MAX   12 /* digits */

enum key_kind {
	KEY_GROUP,
	KEY_STATUS,
	KEY_NOW,
	KEY_FUTURE,
	KEY_JOB_ALLOC,
	KEY_JOB_RESERVED,
	KEY_JOB_SPAN,
	KEY_JOB_TAG,
	KEY_NAMES,
	KEY_PROPERTY,
	KEY_AGFILTER,
};

struct term {
	enum key_kind key;
	bool or ;    /* joined by "or" to the terms on its left */
	bool yes;    /* down, allocated, reserved, true */
	int64_t job; /* index in the ledger, -1 = unknown */
	struct slu_intern names;
	char *word;
	struct term *sub; /* KEY_GROUP: first of its terms */
	struct term *next;
};

struct find {
	struct slu_match *m;
	const struct slu_sink *sink;
	struct term *first;
	bool agfilter;
	bool has_job;
	int64_t job;
	int64_t now;
	uint32_t terms;
	struct slu_hostlist names;
};

/* --- reading the criteria --- */

static const char base58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/* Four groups of one to four digits. */
static int parse_dothex(const char *s, uint64_t *out)
{
	*out = 0;
	for (int group = 0; group < 4; group++) {
		uint64_t v = 0;
		int n = 0;

		for (; n < 4 && isxdigit((unsigned char)*s); n++, s++)
			v = v * 16 + (uint64_t)(isdigit((unsigned char)*s)
							? *s - '0'
							: tolower((unsigned char)*s) - 'a' + 10);
		if (!n || *s != (group < 3 ? '.' : '\0'))
			return -EINVAL;
		*out = *out << 16 | v;
		s++;
	}
	return 0;
}

static int parse_f58(const char *s, uint64_t *out)
{
	if (!*s || strlen(s) > F58_MAX)
		return -EINVAL;
	for (*out = 0; *s; s++) {
		const char *at = strchr(base58, *s);

		if (!at || __builtin_mul_overflow(*out, 58, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(at - base58), out))
			return -EINVAL;
	}
	return 0;
}

/* Decimal, 0x..., dotted hexadecimal, or F58 ("f..." or the letter with a hook). */
static int parse_jobid(const char *s, uint64_t *out)
{
	bool hex;
	char *end;

	if (strncmp(s, "job.", 4) == 0)
		s += 4;
	if (strchr(s, '.'))
		return parse_dothex(s, out);
	if (strncmp(s, "\xc6\x92", 2) == 0)
		return parse_f58(s + 2, out);
	if (*s == 'f')
		return parse_f58(s + 1, out);
	hex = strncmp(s, "0x", 2) == 0;
	if (!isdigit((unsigned char)s[*s == '+']))
		return -EINVAL;
	errno = 0;
	*out = strtoull(s, &end, hex ? 16 : 10);
	return errno || *end ? -EINVAL : 0;
}

static const struct {
	const char *key;
	enum key_kind kind;
	const char *yes, *no; /* the two values, if it has two */
} keys[] = {
	{ "status", KEY_STATUS, "down", "up" },
	{ "sched-now", KEY_NOW, "allocated", "free" },
	{ "sched-future", KEY_FUTURE, "reserved", "free" },
	{ "jobid-alloc", KEY_JOB_ALLOC, NULL, NULL },
	{ "jobid-reserved", KEY_JOB_RESERVED, NULL, NULL },
	{ "jobid-span", KEY_JOB_SPAN, NULL, NULL },
	{ "jobid-tag", KEY_JOB_TAG, NULL, NULL },
	{ "names", KEY_NAMES, NULL, NULL },
	{ "property", KEY_PROPERTY, NULL, NULL },
	{ "agfilter", KEY_AGFILTER, NULL, NULL },
};

static void lower_case(char *s)
{
	for (; *s; s++)
		*s = (char)tolower((unsigned char)*s);
}

/* All host lists of the criteria share one list, so that its ceilings bound them together. */
static int parse_names(struct slu_hostlist *l, const char *text, struct slu_intern *out)
{
	uint32_t before = l->h.n;
	int rc = slu_hostlist_parse(l, text);

	for (uint32_t i = before; i < l->h.n && !rc; i++)
		rc = slu_intern(out, l->h.p[i]) == SLU_INTERN_NONE ? -ENOMEM : 0;
	return rc;
}

static int parse_value(struct find *f, struct term *t, char *val)
{
	uint64_t id;

	switch (t->key) {
	case KEY_JOB_ALLOC:
	case KEY_JOB_RESERVED:
	case KEY_JOB_SPAN:
	case KEY_JOB_TAG:
		if (parse_jobid(val, &id) < 0)
			return -EINVAL;
		t->job = match_led_job_find(&f->m->led, (int64_t)id);
		/* For agfilter the reference reads the last value again, in lower case; 0 means
		 * that there is none. */
		lower_case(val);
		if (parse_jobid(val, &id) == 0) {
			f->has_job = id != 0;
			f->job = match_led_job_find(&f->m->led, (int64_t)id);
		}
		return 0;
	case KEY_NAMES:
		lower_case(val);
		return parse_names(&f->names, val, &t->names);
	case KEY_PROPERTY:
		lower_case(val);
		t->word = val;
		return *val ? 0 : -EINVAL;
	case KEY_AGFILTER:
		lower_case(val);
		t->yes = strcmp(val, "true") == 0 || strcmp(val, "t") == 0;
		if (!t->yes && strcmp(val, "false") != 0 && strcmp(val, "f") != 0)
			return -EINVAL;
		f->agfilter = t->yes; /* the last one counts */
		return 0;
	default:
		break;
	}
	lower_case(val);
	for (size_t i = 0; i < SLU_LEN(keys); i++)
		if (keys[i].kind == t->key) {
			t->yes = strcmp(val, keys[i].yes) == 0;
			return t->yes || strcmp(val, keys[i].no) == 0 ? 0 : -EINVAL;
		}
	return -EINVAL;
}

static bool is_blank_char(char c)
{
	return c == ' ' || c == '\t';
}

static int parse_terms(struct find *f, char *s, char *end, uint32_t depth, struct term **out);

/* Read the group that starts at the bracket `s`; *after points behind its closing bracket. */
static int parse_group(struct find *f, char *s, char *end, uint32_t depth, struct term *t,
		       char **after)
{
	uint32_t open = 0;

	for (char *p = s; p < end; p++) {
		open += *p == '(';
		if (*p == ')' && --open == 0) {
			*p = '\0';
			*after = p + 1;
			return parse_terms(f, s + 1, p, depth + 1, &t->sub);
		}
	}
	return -EINVAL;
}

static int parse_terms(struct find *f, char *s, char *end, uint32_t depth, struct term **out)
{
	bool want = true, or = false, any = false;

	if (depth > NEST_MAX)
		return -EINVAL;
	for (;;) {
		struct term *t;
		char *e, *eq;
		int rc;

		while (s < end && is_blank_char(*s))
			s++;
		if (s >= end)
			break;
		for (e = s; e < end && !is_blank_char(*e); e++)
			;
		if (any && !want &&
		    (e - s == 3 ? memcmp(s, "and", 3) == 0
				: e - s == 2 && memcmp(s, "or", 2) == 0)) {
			or = e - s == 2;
			want = true;
			s = e;
			continue;
		}
		t = slu_arena_zalloc(&f->m->tmp, sizeof *t);
		if (!t)
			return -ENOMEM;
		if (++f->terms > TERMS_MAX)
			return -EINVAL;
		t->or = or ;
		t->job = -1;
		*out = t;
		out = &t->next;
		if (*s == '(') {
			t->key = KEY_GROUP;
			rc = parse_group(f, s, end, depth, t, &s);
			if (rc < 0)
				return rc;
			if (s < end && !is_blank_char(*s))
				return -EINVAL;
		} else {
			size_t i;

			if (e < end)
				*e = '\0';
			eq = memchr(s, '=', (size_t)(e - s));
			if (!eq || eq == s)
				return -EINVAL;
			*eq = '\0';
			for (i = 0; i < SLU_LEN(keys) && strcmp(keys[i].key, s) != 0; i++)
				;
			if (i == SLU_LEN(keys))
				return -EINVAL;
			t->key = keys[i].kind;
			rc = parse_value(f, t, eq + 1);
			if (rc < 0)
				return rc;
			s = e < end ? e + 1 : e;
		}
		any = true;
		want = or = false;
	}
	return any && !want ? 0 : -EINVAL;
}

static void free_terms(struct term *t)
{
	for (; t; t = t->next) {
		free_terms(t->sub);
		slu_intern_done(&t->names);
	}
}

/* --- asking a vertex --- */

struct seen { /* itself or an ancestor */
	bool down, allocated, reserved;
	bool unknown; /* itself only */
};

static bool has_span(const struct slu_match *m, uint32_t v, int64_t job)
{
	return job >= 0 && m->multi[v] && slu_multi_span(m->multi[v], (uint32_t)job);
}

static bool has_flag(const struct slu_match *m, uint32_t v, int64_t job, uint32_t flag)
{
	return job >= 0 && match_led_get(&m->led, v, (uint32_t)job).job & flag;
}

static bool term_holds_at(const struct find *f, const struct term *t, uint32_t v,
			  const struct seen *s, struct slu_buf *name);

static bool term_holds(const struct find *f, const struct term *t, uint32_t v, const struct seen *s,
		       struct slu_buf *name)
{
	const struct slu_match *m = f->m;

	switch (t->key) {
	case KEY_GROUP:
		return term_holds_at(f, t->sub, v, s, name);
	case KEY_STATUS:
		return t->yes ? s->down : !s->down && !s->unknown;
	case KEY_NOW:
		return s->allocated == t->yes;
	case KEY_FUTURE:
		return s->reserved == t->yes;
	case KEY_JOB_ALLOC:
		return has_flag(m, v, t->job, LED_HELD);
	case KEY_JOB_RESERVED:
		return has_flag(m, v, t->job, LED_PLANNED);
	case KEY_JOB_SPAN:
		return has_span(m, v, t->job);
	case KEY_JOB_TAG:
		return has_flag(m, v, t->job, LED_TAGGED);
	case KEY_NAMES:
		return slu_intern_find(&t->names, slu_graph_name(m->g, v, name)) != SLU_INTERN_NONE;
	case KEY_PROPERTY:
		return slu_graph_property(m->g, v, t->word) != NULL;
	case KEY_AGFILTER:
		return t->yes;
	}
	return false;
}

static bool term_holds_at(const struct find *f, const struct term *t, uint32_t v,
			  const struct seen *s, struct slu_buf *name)
{
	bool r = term_holds(f, t, v, s, name);

	for (t = t->next; t; t = t->next)
		r = t->or ? r || term_holds(f, t, v, s, name) : r && term_holds(f, t, v, s, name);
	return r;
}

/* --- the walk --- */

static int cmp_ag(const void *a, const void *b, void *g)
{
	return strcmp(slu_graph_type_name(g, ((const struct slu_agfilter *)a)->type),
		      slu_graph_type_name(g, ((const struct slu_agfilter *)b)->type));
}

/* 1 and the numbers, or 0 if the vertex is to be left out. */
static int aggregates(struct find *f, uint32_t v, struct slu_agfilter **out, uint32_t *n)
{
	struct slu_match *m = f->m;
	const struct slu_multi *mu = m->multi[v];
	const int64_t *span = f->has_job && f->job >= 0 ? slu_multi_span(mu, (uint32_t)f->job)
							: NULL;
	struct slu_agfilter *ag = slu_arena_alloc(&m->tmp, (mu->n + 1) * sizeof *ag);

	if (!ag)
		return -ENOMEM;
	/* A vertex without a share of the job is left out, and the vertices below it do not
	 * count. */
	for (uint32_t i = 0; span && i < mu->n; i++)
		if (span[i] < 0)
			return 0;
	if (f->has_job && !span)
		return 0;
	for (uint32_t i = 0; i < mu->n; i++) {
		int64_t total = mu->p[i].total, used;

		if (span) {
			used = span[i];
		} else {
			used = total - slu_planner_at(&mu->p[i], f->now);
			if (!used)
				used = total - slu_planner_at(&mu->p[i], 0);
		}
		ag[i] = (struct slu_agfilter){ mu->type[i], used, total };
	}
	qsort_r(ag, mu->n, sizeof *ag, cmp_ag, m->g);
	*out = ag;
	*n = mu->n;
	return 1;
}

/* 1 if printed, 0 if not, negative errno. */
static int find_at(struct find *f, uint32_t u, struct seen s, uint32_t depth, struct slu_buf *name)
{
	struct slu_match *m = f->m;
	const struct slu_graph *g = m->g;
	const struct slu_writer_ops *ops = f->sink ? f->sink->ops : NULL;
	const struct slu_vertex *v = &g->v.p[u];
	struct slu_agfilter *ag = NULL;
	uint32_t nag = 0;
	bool any = false;
	int rc = 0;

	if (depth > m->depth)
		return 0;
	if (m->colour)
		m->colour[u] = m->gen;
	s.down = s.down || v->status == SLU_DOWN;
	s.unknown = v->status == SLU_UNKNOWN;
	s.allocated = s.allocated || match_led_any(&m->led, u, LED_HELD);
	s.reserved = s.reserved || match_led_any(&m->led, u, LED_PLANNED);
	m->level++;
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1] && rc >= 0; k++) {
		uint32_t e = m->kid[k], c = g->e.p[e].dst;

		if (m->colour && m->colour[c] == m->gen)
			continue;
		rc = find_at(f, c, s, depth + 1, name);
		if (rc <= 0)
			continue;
		any = true;
		if (ops && ops->edge) {
			struct slu_emit_edge x = { u, c, m->sub[0], false, g->v.p[c].size, true };

			rc = ops->edge(f->sink->w, g, &x);
		}
	}
	if (rc >= 0) {
		any = any || term_holds_at(f, f->first, u, &s, name);
		if (any && f->agfilter) {
			rc = m->multi[u] ? aggregates(f, u, &ag, &nag) : 0;
			any = rc > 0;
		}
	}
	/* Drop the label that the last match left at the vertex; `find` never prints it. */
	if (rc >= 0 && any && m->labels.n)
		slu_map_del(&m->labels, u);
	if (rc >= 0 && any && ops && ops->vertex) {
		struct slu_emit_vertex x = {
			.v = u,
			.level = m->level,
			.needs = v->size,
			.exclusive = true,
			.ag = ag,
			.nag = nag,
		};

		rc = ops->vertex(f->sink->w, g, &x);
	}
	m->level--;
	return rc < 0 ? rc : any;
}

int slu_match_find(struct slu_match *m, const char *criteria, int64_t now_s,
		   const struct slu_sink *sink, struct slu_match_result *out)
{
	struct find f = { .m = m, .sink = sink, .job = -1, .now = now_s };
	struct slu_buf name = SLU_BUF_INIT(1 << 20);
	size_t n = strlen(criteria);
	char *text;
	int rc;

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	slu_arena_reset(&m->tmp);
	text = slu_arena_strndup(&m->tmp, criteria, n);
	if (!text)
		return -ENOMEM;
	rc = parse_terms(&f, text, text + n, 0, &f.first);
	if (!rc) {
		if (m->colour) {
			memset(m->colour, 0, m->nv * sizeof *m->colour);
		}
		rc = find_at(&f, m->g->root[m->sub[0]], (struct seen){ 0 }, 0, &name);
		if (rc == -EINVAL) {
			/* The writer cannot express some vertex.  The message has no newline, as
			 * in the reference. */
			slu_buf_printf(&m->msg, "dom_find_dfv: error from emit_vtx: %s",
				       strerror(EINVAL));
			out->code = EINVAL;
			rc = 0;
		}
	} else if (rc == -EINVAL || rc == -EOVERFLOW) {
		if (rc == -EOVERFLOW)
			slu_buf_printf(&m->msg, "find: more than %u names or %zu MiB of them.\n",
				       SLU_HOSTLIST_MAX, SLU_HOSTLIST_BYTES >> 20);
		else
			slu_buf_printf(&m->msg, "find: invalid criteria: %s.\n", criteria);
		out->code = EINVAL;
		rc = 0;
	}
	free_terms(f.first);
	slu_hostlist_done(&f.names);
	slu_buf_done(&name);
	out->messages = slu_buf_str(&m->msg);
	return rc < 0 ? rc : 0;
}
