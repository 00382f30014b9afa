/* commands.c — everything but matching: jobs, the graph, help. */
#include <stdio.h>
#include <unistd.h>

#include "base/idset.h"
#include "graph/read.h"
#include "query/session_internal.h"

const struct command slu_query_commands[] = {
	{ "match", "m", slu_query_match,
	  "Find resources for a jobspec and book them: match OP FILE, where OP is allocate (now),\n"
	  "allocate_orelse_reserve (now or as early as possible), allocate_with_satisfiability (now,\n"
	  "and say whether it could ever run), satisfiability (only say that), without_allocating or\n"
	  "without_allocating_future (show, book nothing): resource-query> match allocate job.yaml" },
	{ "multi-match", "M", slu_query_multi_match,
	  "The same for several jobspecs, up to the first that fails:\n"
	  "resource-query> multi-match allocate a.yaml b.yaml" },
	{ "update", "u", slu_query_update,
	  "Register what runs already: update allocate|reserve jgf|jgf_shorthand|rv1exec FILE JOBID\n"
	  "START DURATION: resource-query> update allocate rv1exec R.json 7 0 3600" },
	{ "attach", "j", slu_query_attach,
	  "Add the vertices of a JGF file to the graph: resource-query> attach new.json" },
	{ "remove", "j", slu_query_remove,
	  "Cut a part out of the graph, by path (true) or by ranks (false):\n"
	  "resource-query> remove /cluster0/rack1 true" },
	{ "find", "f", slu_query_find,
	  "Show resources by criteria joined with and, or, ( ): status=up|down\n"
	  "sched-now=allocated|free sched-future=reserved|free agfilter=true|false names=HOSTS\n"
	  "property=NAME jobid-alloc=ID jobid-reserved=ID jobid-span=ID jobid-tag=ID:\n"
	  "resource-query> find status=down and sched-now=allocated" },
	{ "cancel", "c", slu_query_cancel,
	  "Free what a job holds or has reserved: resource-query> cancel JOBID [stats]" },
	{ "partial-cancel", "pc", slu_query_partial_cancel,
	  "Free a part of it: resource-query> partial-cancel JOBID jgf|rv1exec FILE [stats]" },
	{ "set-property", "p", slu_query_set_property,
	  "Give a vertex a property: resource-query> set-property PATH KEY=VALUE" },
	{ "get-property", "g", slu_query_get_property,
	  "Show a vertex's properties: resource-query> get-property PATH" },
	{ "set-status", "t", slu_query_set_status,
	  "Mark a vertex: resource-query> set-status PATH up|down" },
	{ "get-status", "e", slu_query_get_status,
	  "Show a vertex's status: resource-query> get-status PATH" },
	{ "list", "l", slu_query_list, "List all jobs: resource-query> list" },
	{ "info", "i", slu_query_info, "Show one job: resource-query> info JOBID" },
	{ "stat", "s", slu_query_stat, "Show times: resource-query> stat" },
	{ "cat", "a", slu_query_cat, "Show a file: resource-query> cat job.yaml" },
	{ "help", "h", slu_query_help,
	  "Show this, or help on one command: resource-query> help match" },
	{ "quit", "q", slu_query_quit, "Quit the session: resource-query> quit" },
	{ NULL, NULL, NULL, NULL },
};

/* --- growing and shrinking the graph --- */

static int attach_text(struct slu_session *s, struct slu_buf *msg)
{
	struct slu_graph_mark mark = slu_graph_mark(s->g);
	int rc = slu_read_jgf(s->g, slu_buf_str(&s->text), s->text.n, msg), primed;

	if (rc < 0 && rc != -EEXIST)
		return rc;
	/* The reference complains about an edge it has already, and keeps what came before. */
	primed = rc ? slu_match_attached_part(s->m) : slu_match_attached(s->m);
	if (primed < 0)
		slu_graph_rollback(s->g, &mark);
	return primed < 0 ? primed : rc;
}

int slu_query_attach(struct slu_session *s, const struct words *a)
{
	struct slu_buf msg = SLU_BUF_INIT((size_t)1 << 20);
	int rc;

	if (a->n != 2)
		return slu_session_malformed(s);
	rc = slu_session_read(s, a->w[1]);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	rc = attach_text(s, &msg);
	if (rc < 0 && rc != -ENOMEM) {
		slu_session_err(s, "ERROR: can't attach JGF subgraph \n");
		slu_session_err(s,
				"ERROR: add_subgraph: ERROR: add subgraph error: %s\n"
				"add_subgraph: ERROR: reader returned error: %s\n\n",
				strerror(-rc), slu_buf_str(&msg));
		rc = 0;
	}
	slu_buf_done(&msg);
	return rc;
}

static int remove_path(struct slu_session *s, const char *path)
{
	struct slu_match_result r = { 0 };
	int rc = slu_match_remove_path(s->m, path, &r);

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		r.code = -rc;
	/* A path that is not there leaves errno as it was, and the reference has just asked whether
	 * a pipe is a terminal. */
	if (r.code == EINVAL && !isatty(STDIN_FILENO))
		r.code = ENOTTY;
	if (r.code) {
		slu_session_err(s, "ERROR: can't remove subgraph \n");
		slu_session_err(s,
				"ERROR: remove_subgraph: ERROR: remove_subgraph error: %s\n"
				"remove_subgraph: ERROR: traverser returned error: %s\n\n",
				strerror(r.code), r.messages ? r.messages : "");
	}
	return 0;
}

static int remove_ranks(struct slu_session *s, const char *text)
{
	struct slu_match_result r = { 0 };
	SLU_VEC(int64_t) ranks = { 0 };
	struct slu_idset set = { 0 };
	int rc = slu_idset_parse(&set, text);

	if (rc < 0 && rc != -ENOMEM) {
		slu_session_err(s, "ERROR: failed to decode ranks.\n");
		return 0;
	}
	slu_idset_each (&set, rank)
		rc = rc ? rc : slu_vec_push(&ranks, (int64_t)rank);
	if (!rc)
		rc = slu_match_remove_ranks(s->m, ranks.p, ranks.n, &r);
	slu_idset_done(&set);
	slu_vec_done(&ranks);
	rc = slu_session_outcome(s, rc, &r);
	if (rc < 0)
		return rc;
	if (r.code) {
		/* Jobs are taken off the ranks first; that fails with words, removing without. */
		bool cancel = r.messages && r.messages[0];

		slu_session_err(s, "ERROR: can't %s subgraph \n",
				cancel ? "partial cancel" : "remove");
		slu_session_err(s, "ERROR: %s", cancel ? r.messages : "");
	}
	return 0;
}

int slu_query_remove(struct slu_session *s, const struct words *a)
{
	if (a->n != 3)
		return slu_session_malformed(s);
	if (!strcmp(a->w[2], "true"))
		return remove_path(s, a->w[1]);
	if (!strcmp(a->w[2], "false"))
		return remove_ranks(s, a->w[1]);
	slu_session_err(s, "ERROR: invalid path boolean input \n");
	return 0;
}

/* --- jobs --- */

int slu_query_cancel(struct slu_session *s, const struct words *a)
{
	struct slu_match_result r = { 0 };
	struct job *j;
	int64_t id;
	int rc;

	if (a->n < 2 || a->n > 3)
		return slu_session_malformed(s);
	id = strtoll(a->w[1], NULL, 10);
	j = slu_session_job(s, id);
	if (!j || !(j->allocated || j->reserved)) {
		slu_session_err(s, "cancel: ERROR: nonexistent job %" PRIu64 "\n", (uint64_t)id);
		return 0;
	}
	rc = slu_match_cancel(s->m, id, &r);
	if (rc < 0)
		return rc;
	s->preorder = r.preorder;
	s->postorder = r.postorder;
	if (r.code) {
		slu_session_err(s,
				"cancel: ERROR: error encountered while removing job %" PRIu64 "\n",
				(uint64_t)id);
		return 0;
	}
	j->state = JOB_CANCELED;
	if (j->allocated)
		j->allocated = false;
	else
		j->reserved = false;
	if (a->n == 3 && !strcmp(a->w[2], "stats"))
		slu_session_counts(s, "");
	return 0;
}

static void print_job(struct slu_session *s, const struct job *j)
{
	static const char *const state[] = { "ALLOCATED", "RESERVED", "CANCELED" };

	fprintf(s->io.std, "INFO: %" PRIu64 ", %s, %" PRId64 ", %s, %g\n", (uint64_t)j->id,
		state[j->state], j->at_s, j->file, j->overhead_s);
}

int slu_query_list(struct slu_session *s, const struct words *a)
{
	for (uint32_t i = 0; i < s->jobs.n; i++)
		print_job(s, &s->jobs.p[i]);
	return 0;
}

int slu_query_info(struct slu_session *s, const struct words *a)
{
	struct job *j;
	int64_t id;

	if (a->n != 2)
		return slu_session_malformed(s);
	id = strtoll(a->w[1], NULL, 10);
	j = slu_session_job(s, id);
	if (j)
		print_job(s, j);
	else
		slu_session_err(s, "info: ERROR: nonexistent job %" PRIu64 "\n", (uint64_t)id);
	return 0;
}

int slu_query_stat(struct slu_session *s, const struct words *a)
{
	FILE *f = s->io.std;

	if (a->n != 1)
		return slu_session_malformed(s);
	fprintf(f, "INFO: Num. of Jobs Matched: %" PRIu32 "\n", s->jobs.n);
	fprintf(f, "INFO: Min. Match Time: %g\n", s->jobs.n ? s->min_s : 0.0);
	fprintf(f, "INFO: Max. Match Time: %g\n", s->max_s);
	fprintf(f, "INFO: Avg. Match Time: %g\n", s->jobs.n ? s->sum_s / s->jobs.n : 0.0);
	return 0;
}

/* --- vertices --- */

int slu_query_set_property(struct slu_session *s, const struct words *a)
{
	uint32_t cursor = 0, v;
	bool found = false;
	char *eq;

	if (a->n != 3)
		return slu_session_malformed(s);
	eq = strchr(a->w[2], '=');
	if (!eq || eq == a->w[2] || !eq[1]) {
		fputs("Incorrect input format. \n"
		      "Please use `set-property <resource> PROPERTY=VALUE`.\n",
		      s->io.out);
		return 0;
	}
	*eq = '\0';
	while ((v = slu_graph_by_path(s->g, a->w[1], &cursor)) != SLU_NONE) {
		if (slu_match_property_set(s->m, v, a->w[2], eq + 1) < 0)
			return -ENOMEM;
		found = true;
	}
	if (!found)
		fprintf(s->io.out, "Couldn't find path %s in resource graph.\n", a->w[1]);
	return 0;
}

int slu_query_get_property(struct slu_session *s, const struct words *a)
{
	uint32_t cursor = 0, v;
	bool found = false;

	if (a->n != 2)
		return slu_session_malformed(s);
	while ((v = slu_graph_by_path(s->g, a->w[1], &cursor)) != SLU_NONE) {
		const struct slu_vertex *x = slu_graph_vertex(s->g, v);

		found = true;
		if (x->props == SLU_NONE)
			fprintf(s->io.out,
				"No properties were found for %s (vtx's uniq_id=%" PRId64 ").\n",
				a->w[1], x->uniq_id);
		for (uint32_t p = x->props; p != SLU_NONE; p = s->g->prop.p[p].next)
			fprintf(s->io.out, "%s=%s\n", slu_graph_str(s->g, s->g->prop.p[p].key),
				slu_graph_str(s->g, s->g->prop.p[p].val));
	}
	if (!found)
		fprintf(s->io.out, "Could not find path %s in resource graph.\n", a->w[1]);
	return 0;
}

int slu_query_set_status(struct slu_session *s, const struct words *a)
{
	uint32_t cursor = 0, v;
	bool up, first = true;

	if (a->n != 3)
		return slu_session_malformed(s);
	up = !strcmp(a->w[2], "up");
	while ((v = slu_graph_by_path(s->g, a->w[1], &cursor)) != SLU_NONE) {
		if (first && !up && strcmp(a->w[2], "down") != 0) {
			slu_session_err(s, "ERROR: unrecognized status\n");
			return 0;
		}
		first = false;
		slu_match_status_set(s->m, v, up ? SLU_UP : SLU_DOWN);
	}
	if (first)
		fprintf(s->io.out, "Could not find path %s in resource graph.\n", a->w[1]);
	return 0;
}

int slu_query_get_status(struct slu_session *s, const struct words *a)
{
	uint32_t cursor = 0, v;
	bool found = false;

	if (a->n != 2)
		return slu_session_malformed(s);
	while ((v = slu_graph_by_path(s->g, a->w[1], &cursor)) != SLU_NONE) {
		const struct slu_vertex *x = slu_graph_vertex(s->g, v);

		found = true;
		if (x->status == SLU_UNKNOWN) {
			slu_session_err(s,
					"ERROR: vertex %s(vtx's uniq_id=%" PRId64
					") has unknown status.\n",
					a->w[1], x->uniq_id);
			return 0;
		}
		fprintf(s->io.out, "%s is %s\n", a->w[1], x->status == SLU_UP ? "up" : "down");
	}
	if (!found)
		fprintf(s->io.out, "Could not find path %s in resource graph.\n", a->w[1]);
	return 0;
}

/* --- the rest --- */

int slu_query_cat(struct slu_session *s, const struct words *a)
{
	FILE *f = s->io.std;

	if (a->n < 2)
		return slu_session_malformed(s);
	/* A file that cannot be read is shown as an empty one. */
	if (slu_session_read_quiet(s, a->w[1]) == -ENOMEM)
		return -ENOMEM;
	fwrite(slu_buf_str(&s->text), 1, s->text.n, f);
	if (s->text.n && s->text.p[s->text.n - 1] != '\n')
		fputc('\n', f);
	fprintf(f, "INFO: Jobspec in %s\n", a->w[1]);
	return 0;
}

/* One line per command, as the reference prints it; wrapped and indented where a person reads. */
static void print_help(FILE *f, const struct command *c)
{
	bool person = isatty(fileno(f));

	fprintf(f, "INFO: %s (%s) -- ", c->name, c->abbr);
	for (const char *p = c->text; *p; p++) {
		if (*p != '\n')
			fputc(*p, f);
		else
			fputs(person ? "\n        " : " ", f);
	}
	fputc('\n', f);
}

int slu_query_help(struct slu_session *s, const struct words *a)
{
	const char *want = a->n == 2 ? a->w[1] : NULL;
	bool found = false;

	for (const struct command *c = slu_query_commands; c->name; c++) {
		if (want && strcmp(want, c->name) != 0 && strcmp(want, c->abbr) != 0)
			continue;
		print_help(s->io.std, c);
		found = true;
	}
	if (!found)
		fprintf(s->io.std, "ERROR: unknown command: %s\n", want);
	return 0;
}

int slu_query_quit(struct slu_session *s, const struct words *a)
{
	return 1;
}

/* --- from a line to its command --- */

static void split_words(char *line, struct words *a)
{
	static const char blank[] = " \t\n\v\f\r";
	char *p = line;

	a->n = 0;
	for (;;) {
		p += strspn(p, blank);
		if (!*p || a->n >= WORDS_MAX)
			return;
		a->w[a->n++] = p;
		p += strcspn(p, blank);
		if (*p)
			*p++ = '\0';
	}
}

static const struct command *find_command(const char *name)
{
	for (const struct command *c = slu_query_commands; c->name; c++)
		if (!strcmp(name, c->name) || !strcmp(name, c->abbr))
			return c;
	return NULL;
}

int slu_session_command(struct slu_session *s, const char *line)
{
	slu_cleanup(slu_freep) struct words *a = slu_malloc(sizeof *a);
	slu_cleanup(slu_freep) char *copy = slu_strdup(line);
	const struct command *c;
	int rc = 0;

	if (!a || !copy)
		return -ENOMEM;
	split_words(copy, a);
	c = a->n ? find_command(a->w[0]) : NULL;
	if (c) {
		rc = c->run(s, a);
		fflush(s->io.out);
		fflush(s->io.std);
	} else if (a->n && s->io.person) {
		slu_session_err(s, "unknown command: %s; \"help\" lists them\n", a->w[0]);
	}
	return rc;
}

const char *slu_session_command_name(size_t i)
{
	return slu_query_commands[i].name;
}
