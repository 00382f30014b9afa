/* command.h — the command line as data: a table of commands, each with a table of options.  Help,
 * completion and the checking of values come from the tables.
 *
 * To add a command: write a struct slu_command in a file of its own (cmd_<name>.c), declare it in
 * commands.h and list it in table.c.  Options fill a struct of the command's own, by offset:
 *
 *	struct conf { const char *out; bool json; int64_t depth; };
 *	static const struct slu_option opt[] = {
 *		{ "json", 0, SLU_OPT_FLAG, NULL, "print JSON", offsetof(struct conf, json) },
 *		{ "depth", 'd', SLU_OPT_INT, "N", "jobs looked at", offsetof(struct conf, depth),
 *		  .min = 1, .max = 1000000 },
 *		{ 0 } };
 */
#pragma once
#include "base/base.h"

#include <stdio.h>

enum slu_option_type {
	SLU_OPT_FLAG,   /* bool */
	SLU_OPT_STRING, /* const char *, borrowed from argv */
	SLU_OPT_INT,    /* int64_t in min .. max */
	SLU_OPT_REAL,   /* double in min .. max */
};

struct slu_option {
	const char *name; /* without the dashes; NULL ends the table */
	char letter;      /* short form, 0: none */
	enum slu_option_type type;
	const char *arg; /* what the value is called in the help; NULL for flags */
	const char *help;
	size_t offset;
	int64_t min, max;          /* both 0: any */
	const char *const *choice; /* of a string: what it may be, NULL ends it; NULL: any */
};

struct slu_command {
	const char *name;
	const char *args;    /* "LOG" */
	const char *summary; /* one line, for the list */
	const char *details; /* paragraphs, for its own help; may be NULL */
	const struct slu_option *option;
	size_t conf_size;             /* of the struct the options fill; zeroed first */
	void (*defaults)(void *conf); /* may be NULL */
	int min_args, max_args;       /* max < 0: any number */
	/* 0, or a negative errno with a sentence in err. */
	int (*run)(void *conf, int argc, char **argv, struct slu_error *err);
};

/* run() returns this if the command line is wrong in a way that the tables cannot check: a bad value, or
 * options that do not go together. */
#define SLU_WRONG (-EBADR)

/* Exit codes: 0 success, 1 the command failed, 2 the command line was wrong. */
int slu_command_main(const struct slu_command *const *table, int argc, char **argv);

/* Parse options and arguments of one command into conf; *argn counts what is left in argv.
 * 0; 1: help was asked for; -EINVAL with a sentence. */
int slu_command_parse(const struct slu_command *c, void *conf, int argc, char **argv, int *argn,
		      struct slu_error *err);

/* Print the candidates for the last of n words (those after the program's name; no words count as one
 * empty word), one per line: the word, a tab, a description.  Prints nothing where only the user can
 * know the word, such as the name of a file or of a gang; shells then offer files. */
void slu_command_complete(const struct slu_command *const *table, int n, char **word, FILE *out);
