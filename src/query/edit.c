#include "query/edit.h"

#include <stdlib.h>
#include <unistd.h>

#include "query/session_internal.h"

#ifdef SLU_HAVE_LIBEDIT
#include <editline/readline.h>

#define HISTORY_LINES 1000

/* The library keeps its state in globals and calls back without an argument. */
static struct slu_session *completing;

static const char *const match_ops[] = { "allocate",
					 "allocate_orelse_reserve",
					 "allocate_with_satisfiability",
					 "satisfiability",
					 "without_allocating",
					 "without_allocating_future",
					 NULL };
static const char *const find_keys[] = { "status=up",
					 "status=down",
					 "sched-now=free",
					 "sched-now=allocated",
					 "sched-future=free",
					 "sched-future=reserved",
					 "names=",
					 "property=",
					 "jobid-alloc=",
					 "jobid-reserved=",
					 "jobid-span=",
					 "jobid-tag=",
					 "agfilter=true",
					 "and",
					 "or",
					 NULL };
static const char *const update_ops[] = { "allocate", "reserve", NULL };
static const char *const update_readers[] = { "jgf", "jgf_shorthand", "rv1exec", NULL };
static const char *const cancel_readers[] = { "jgf", "rv1exec", NULL };
static const char *const states[] = { "up", "down", NULL };

static const char *const *offered;

static char *next_word(const char *text, int state)
{
	static size_t i, n;

	if (!state) {
		i = 0;
		n = strlen(text);
	}
	while (offered[i]) {
		const char *w = offered[i++];

		if (!strncmp(w, text, n))
			return strdup(w);
	}
	return NULL;
}

static char *next_command(const char *text, int state)
{
	static size_t i, n;
	const char *w;

	if (!state) {
		i = 0;
		n = strlen(text);
	}
	while ((w = slu_session_command_name(i))) {
		i++;
		if (!strncmp(w, text, n))
			return strdup(w);
	}
	return NULL;
}

/* Paths of the graph's vertices. */
static char *next_path(const char *text, int state)
{
	static uint32_t v;
	static size_t n;
	struct slu_graph *g = slu_session_graph(completing);
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	char *found = NULL;

	if (!state) {
		v = 0;
		n = strlen(text);
	}
	for (; v < g->v.n && !found; v++) {
		slu_buf_reset(&b);
		if (!g->v.p[v].dead && slu_graph_path_put(g, v, 0, &b) &&
		    !strncmp(slu_buf_str(&b), text, n))
			found = strdup(slu_buf_str(&b));
	}
	slu_buf_done(&b);
	return found;
}

/* Which word of the line is being typed, from 0, and the first word in `name`. */
static int word_number(const char *line, int at, char *name, size_t max)
{
	int n = 0;
	bool in = false;
	size_t k = 0;

	for (int i = 0; i < at && line[i]; i++) {
		bool blank = line[i] == ' ' || line[i] == '\t';

		if (blank && in)
			n++;
		if (!blank && n == 0 && k + 1 < max)
			name[k++] = line[i];
		in = !blank;
	}
	name[k] = '\0';
	return n;
}

static char **complete_word(const char *text, int start, int end)
{
	char name[32];
	int n = word_number(rl_line_buffer, start, name, sizeof name);
	bool path = !strcmp(name, "set-status") || !strcmp(name, "get-status") ||
		    !strcmp(name, "set-property") || !strcmp(name, "get-property") ||
		    !strcmp(name, "remove");

	rl_attempted_completion_over = 1;
	if (n == 0)
		return rl_completion_matches(text, next_command);
	offered = NULL;
	if (n == 1 && (!strcmp(name, "match") || !strcmp(name, "multi-match")))
		offered = match_ops;
	else if (!strcmp(name, "find"))
		offered = find_keys;
	else if (!strcmp(name, "update") && n <= 2)
		offered = n == 1 ? update_ops : update_readers;
	else if (!strcmp(name, "partial-cancel") && n == 2)
		offered = cancel_readers;
	else if (!strcmp(name, "set-status") && n == 2)
		offered = states;
	else if (!strcmp(name, "help"))
		return rl_completion_matches(text, next_command);
	if (offered)
		return rl_completion_matches(text, next_word);
	if (path && n == 1)
		return rl_completion_matches(text, next_path);
	rl_attempted_completion_over = 0; /* file names */
	return NULL;
}

static int edit_loop(struct slu_session *s, const char *prompt)
{
	char *line;
	int rc = 0;

	completing = s;
	rl_readline_name = (char *)(uintptr_t)"sluice-query";
	rl_attempted_completion_function = complete_word;
	rl_completer_word_break_characters = (char *)(uintptr_t)" \t\n";
	using_history();
	stifle_history(HISTORY_LINES);
	while (!rc && (line = readline(prompt))) {
		if (*line)
			add_history(line);
		rc = slu_session_command(s, line);
		free(line);
	}
	if (!rc) /* the end of input leaves the cursor behind the prompt */
		fputc('\n', stdout);
	return rc < 0 ? rc : 0;
}
#endif

#define LINE_MAX_LEN ((size_t)16 << 20)

/* One line without its newline; false at the end of input. */
static bool read_byte(FILE *in, struct slu_buf *b)
{
	int c;

	slu_buf_reset(b);
	while ((c = getc_unlocked(in)) != EOF && c != '\n')
		slu_buf_putc(b, (char)c);
	return c != EOF || b->n || b->error;
}

static int plain_loop(struct slu_session *s, FILE *in, const char *prompt)
{
	struct slu_buf b = SLU_BUF_INIT(LINE_MAX_LEN);
	int rc = 0;

	while (!rc) {
		if (*prompt) {
			fputs(prompt, stdout);
			fflush(stdout);
		}
		if (!read_byte(in, &b))
			break;
		if (b.error == -EMSGSIZE)
			slu_session_err(s, "ERROR: the line is too long\n");
		else
			rc = b.error ? b.error : slu_session_command(s, slu_buf_str(&b));
	}
	slu_buf_done(&b);
	return rc < 0 ? rc : 0;
}

int slu_query_loop(struct slu_session *s, FILE *in, bool prompt)
{
	const char *text = prompt ? "resource-query> " : "";

	if (!isatty(fileno(in)))
		return plain_loop(s, in, "");
#ifdef SLU_HAVE_LIBEDIT
	return edit_loop(s, text);
#else
	return plain_loop(s, in, text);
#endif
}
