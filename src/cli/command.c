#include "cli/command.h"

#include "base/buf.h"
#include "cli/term.h"

#include <stdio.h>

static const struct slu_command *find_command(const struct slu_command *const *table,
					      const char *name)
{
	for (; *table; table++)
		if (!strcmp((*table)->name, name))
			return *table;
	return NULL;
}

static const struct slu_option *find_option(const struct slu_command *c, const char *name, size_t n)
{
	for (const struct slu_option *o = c->option; o && o->name; o++)
		if (strlen(o->name) == n && !memcmp(o->name, name, n))
			return o;
	return NULL;
}

static const struct slu_option *find_letter(const struct slu_command *c, char letter)
{
	for (const struct slu_option *o = c->option; o && o->name; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

static int check_choice(const struct slu_option *o, const char *value, struct slu_error *err)
{
	struct slu_buf list = SLU_BUF_INIT(1024);

	for (const char *const *c = o->choice; *c; c++) {
		if (!strcmp(*c, value)) {
			slu_buf_done(&list);
			return 0;
		}
		slu_buf_printf(&list, "%s%s", list.n ? " or " : "", *c);
	}
	slu_fail(err, -EINVAL, "--%s is %s, not \"%s\"", o->name, slu_buf_str(&list), value);
	slu_buf_done(&list);
	return -EINVAL;
}

static int set_option(const struct slu_option *o, void *conf, const char *value,
		      struct slu_error *err)
{
	char *at = (char *)conf + o->offset, *end;

	errno = 0;
	switch (o->type) {
	case SLU_OPT_FLAG:
		*(bool *)at = true;
		return 0;
	case SLU_OPT_STRING:
		*(const char **)at = value;
		return o->choice ? check_choice(o, value, err) : 0;
	case SLU_OPT_INT: {
		long long v = strtoll(value, &end, 10);

		if (end == value || *end || errno)
			return slu_fail(err, -EINVAL, "--%s: \"%s\" is not a whole number", o->name,
					value);
		if ((o->min || o->max) && (v < o->min || v > o->max))
			return slu_fail(err, -EINVAL, "--%s: %s is outside %" PRId64 "..%" PRId64,
					o->name, value, o->min, o->max);
		*(int64_t *)at = v;
		return 0;
	}
	case SLU_OPT_REAL: {
		double v = strtod(value, &end);

		if (end == value || *end || errno || v != v)
			return slu_fail(err, -EINVAL, "--%s: \"%s\" is not a number", o->name,
					value);
		if ((o->min || o->max) && (v < (double)o->min || v > (double)o->max))
			return slu_fail(err, -EINVAL, "--%s: %s is outside %" PRId64 "..%" PRId64,
					o->name, value, o->min, o->max);
		*(double *)at = v;
		return 0;
	}
	}
	return -EINVAL;
}

int slu_command_parse(const struct slu_command *c, void *conf, int argc, char **argv, int *argn,
		      struct slu_error *err)
{
	bool rest = false;
	int n = 0;

	for (int i = 0; i < argc; i++) {
		const char *a = argv[i], *value = NULL;
		const struct slu_option *o;

		if (rest || a[0] != '-' || !a[1]) {
			argv[n++] = argv[i];
			continue;
		}
		if (!strcmp(a, "--")) {
			rest = true;
			continue;
		}
		if (!strcmp(a, "--help") || !strcmp(a, "-h"))
			return 1;
		if (a[1] == '-') {
			size_t len = strcspn(a + 2, "=");

			o = find_option(c, a + 2, len);
			value = a[2 + len] ? a + 3 + len : NULL;
		} else {
			o = find_letter(c, a[1]);
			value = a[2] ? a + 2 : NULL;
		}
		if (!o)
			return slu_fail(err, -EINVAL, "%s: no such option; see sluice %s --help", a,
					c->name);
		if (o->type == SLU_OPT_FLAG && value)
			return slu_fail(err, -EINVAL, "--%s takes no value", o->name);
		if (o->type != SLU_OPT_FLAG && !value) {
			if (i + 1 >= argc)
				return slu_fail(err, -EINVAL, "--%s needs a value (%s)", o->name,
						o->arg);
			value = argv[++i];
		}
		int rc = set_option(o, conf, value, err);

		if (rc < 0)
			return rc;
	}
	if (n < c->min_args || (c->max_args >= 0 && n > c->max_args))
		return slu_fail(err, -EINVAL, "%s arguments; usage: sluice %s [OPTION]...%s%s",
				n < c->min_args ? "too few" : "too many", c->name,
				*c->args ? " " : "", c->args);
	*argn = n;
	return 0;
}

static void help_option(const struct slu_option *o)
{
	char left[64];

	if (o->letter)
		snprintf(left, sizeof left, "-%c, --%s%s%s", o->letter, o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
	else
		snprintf(left, sizeof left, "    --%s%s%s", o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
	printf("  %-32s %s\n", left, o->help);
}

static void help_command(const struct slu_command *c)
{
	printf("usage: sluice %s [OPTION]...%s%s\n\n%s.\n", c->name, *c->args ? " " : "", c->args,
	       c->summary);
	if (c->details)
		printf("\n%s\n", c->details);
	if (c->option && c->option->name)
		printf("\noptions:\n");
	for (const struct slu_option *o = c->option; o && o->name; o++)
		help_option(o);
	printf("  %-32s %s\n", "-h, --help", "this text");
}

static void help(const struct slu_command *const *table)
{
	printf("usage: sluice COMMAND [OPTION]... [ARGUMENT]...\n\n"
	       "Gangs of pods that start together, planned with time.\n\ncommands:\n");
	for (; *table; table++)
		printf("  %-12s %s\n", (*table)->name, (*table)->summary);
	printf("\nsluice COMMAND --help explains one command.\n");
}

static const char *nearest(const struct slu_command *const *table, const char *name)
{
	for (; *table; table++)
		if ((*table)->name[0] == name[0] &&
		    (strstr((*table)->name, name) || strstr(name, (*table)->name) ||
		     !strncmp((*table)->name, name, 2)))
			return (*table)->name;
	return NULL;
}

static int run_command(const struct slu_command *c, int argc, char **argv)
{
	struct slu_error err = { 0 };
	slu_cleanup(slu_freep) void *conf = slu_calloc(1, SLU_MAX(c->conf_size, (size_t)1));
	int n = 0, rc;

	if (!conf) {
		fprintf(stderr, "sluice: out of memory\n");
		return 1;
	}
	if (c->defaults)
		c->defaults(conf);
	rc = slu_command_parse(c, conf, argc, argv, &n, &err);
	if (rc == 1) {
		help_command(c);
		return 0;
	}
	bool usage = rc < 0;

	if (!rc)
		rc = c->run(conf, n, argv, &err);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = slu_fail(&err, -EIO, "cannot write: %s", strerror(errno));
	if (rc < 0)
		fprintf(stderr, "sluice %s: %s\n", c->name,
			*err.text ? slu_term_tame(err.text) : strerror(-rc));
	return usage || rc == SLU_WRONG ? 2 : rc < 0;
}

int slu_command_main(const struct slu_command *const *table, int argc, char **argv)
{
	if (argc < 2) {
		help(table);
		return 2;
	}
	const char *name = argv[1];

	if (!strcmp(name, "--version") || !strcmp(name, "version")) {
		printf("sluice %s\n", SLU_VERSION);
		return 0;
	}
	if (!strcmp(name, "--complete")) {
		slu_command_complete(table, argc - 2, argv + 2, stdout);
		return 0;
	}
	bool asks = !strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help");

	if (asks && argc > 2)
		name = argv[2];
	else if (asks) {
		help(table);
		return 0;
	}
	const struct slu_command *c = find_command(table, name);

	if (!c) {
		const char *near = nearest(table, name);

		fprintf(stderr, "sluice: there is no command \"%s\"%s%s%s\n", name,
			near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
		return 2;
	}
	if (asks) {
		help_command(c);
		return 0;
	}
	return run_command(c, argc - 2, argv + 2);
}
