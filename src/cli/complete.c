/* Completion for shells: the words that may stand at the cursor, from the same tables as help and
 * parsing. */
#include "cli/command.h"

#include <stdio.h>

/* The words typed so far, and the file to which the candidates are printed. */
struct typed {
	const char *prefix; /* candidates begin with it */
	const char *before; /* printed in front of each: "--output=" of --output=js */
	FILE *out;
};

static void offer(const struct typed *t, const char *word, size_t n, const char *text)
{
	if (strncmp(word, t->prefix, SLU_MIN(strlen(t->prefix), n)) || strlen(t->prefix) > n)
		return;
	fprintf(t->out, "%s%.*s%s%s\n", t->before, (int)n, word, text ? "\t" : "",
		text ? text : "");
}

static void offer_word(const struct typed *t, const char *word, const char *text)
{
	offer(t, word, strlen(word), text);
}

static void offer_commands(const struct typed *t, const struct slu_command *const *table)
{
	for (; *table; table++)
		offer_word(t, (*table)->name, (*table)->summary);
}

static void offer_choices(const struct typed *t, const struct slu_option *o)
{
	for (const char *const *c = o->choice; c && *c; c++)
		offer_word(t, *c, NULL);
}

static void offer_options(const struct typed *t, const struct slu_command *c)
{
	char word[64];

	for (const struct slu_option *o = c->option; o && o->name; o++) {
		snprintf(word, sizeof word, "--%s", o->name);
		offer_word(t, word, o->help);
	}
	offer_word(t, "--help", "show help for the command");
}

/* "check|migrate [STORE]": the words of an argument that must be one of several. */
static void offer_words(const struct typed *t, const char *args)
{
	size_t all = strcspn(args, " ");

	if (!memchr(args, '|', all))
		return;
	for (const char *at = args; at < args + all;) {
		size_t n = strcspn(at, "| ");

		offer(t, at, n, NULL);
		at += n + 1;
	}
}

/* Find the option that a word names.  *value is the text behind "=" or behind the letter, or NULL. */
static const struct slu_option *option_named(const struct slu_command *c, const char *word,
					     const char **value)
{
	bool is_long = word[0] == '-' && word[1] == '-';
	size_t n = is_long ? strcspn(word + 2, "=") : 0;

	*value = NULL;
	for (const struct slu_option *o = c->option; o && o->name && word[0] == '-'; o++) {
		if (is_long && strlen(o->name) == n && !memcmp(o->name, word + 2, n)) {
			*value = word[2 + n] ? word + 3 + n : NULL;
			return o;
		}
		if (!is_long && o->letter && o->letter == word[1]) {
			*value = word[2] ? word + 2 : NULL;
			return o;
		}
	}
	return NULL;
}

/* The words of one command, its name left out; the last is being typed. */
static void complete_command(const struct slu_command *c, int n, char **word, FILE *out)
{
	const char *last = word[n - 1], *value;
	const struct slu_option *o;
	struct typed t = { .prefix = last, .before = "", .out = out };
	char before[64];
	int args = 0;

	for (int i = 0; i < n - 1; i++) {
		o = option_named(c, word[i], &value);
		if (o && o->type != SLU_OPT_FLAG && !value) {
			if (i + 1 == n - 1) {
				offer_choices(&t, o);
				return;
			}
			i++;
		} else if (word[i][0] != '-') {
			args++;
		}
	}
	o = option_named(c, last, &value);
	if (o && value && last[1] == '-') {
		snprintf(before, sizeof before, "--%s=", o->name);
		t.before = before;
		t.prefix = value;
		offer_choices(&t, o);
	} else if (last[0] == '-') {
		offer_options(&t, c);
	} else if (!args) {
		offer_words(&t, c->args);
	}
}

void slu_command_complete(const struct slu_command *const *table, int n, char **word, FILE *out)
{
	struct typed t = { .prefix = n ? word[n - 1] : "", .before = "", .out = out };
	bool asks = n > 1 && !strcmp(word[0], "help");

	if (n < 2 || asks) {
		offer_commands(&t, table);
		if (asks)
			return;
		offer_word(&t, "help", "show help for a command");
		offer_word(&t, "version", "print the version");
		return;
	}
	for (; *table; table++)
		if (!strcmp((*table)->name, word[0]))
			complete_command(*table, n - 1, word + 1, out);
}
