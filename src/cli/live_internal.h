/* live_internal.h — shared by the commands that talk to a running sluiced: its address, options, and one request
 * with its answer.  cmd_show.c has the commands that show something, cmd_change.c those that
 * change something. */
#pragma once
#include "cli/client.h"
#include "cli/commands.h"
#include "wire/json.h"

#define LIVE_ANSWER_MAX (256u << 20)

/* The options of all these commands. */
struct live {
	struct slu_client d;
	const char *ns, *output, *from, *until;
	const char *nodes, *label, *amounts, *users, *every;
	int64_t count;
	bool all;
};

extern const char *const cli_live_forms[];

#define LIVE_OPTIONS                                                                        \
	{ "server",                                                                         \
	  's',                                                                              \
	  SLU_OPT_STRING,                                                                   \
	  "URL",                                                                            \
	  "unix:PATH or https://HOST:PORT ($SLUICE_SERVER, unix:/run/sluice/sluiced.sock)", \
	  offsetof(struct live, d.server) },                                                \
		{ "token",                                                                  \
		  0,                                                                        \
		  SLU_OPT_STRING,                                                           \
		  "FILE",                                                                   \
		  "Kubernetes token for HTTPS ($SLUICE_TOKEN_FILE)",                        \
		  offsetof(struct live, d.token) },                                         \
		{ "ca",                                                                     \
		  0,                                                                        \
		  SLU_OPT_STRING,                                                           \
		  "FILE",                                                                   \
		  "certificate to trust",                                                   \
		  offsetof(struct live, d.ca) },                                            \
		{ "insecure",                                                               \
		  0,                                                                        \
		  SLU_OPT_FLAG,                                                             \
		  NULL,                                                                     \
		  "trust any certificate",                                                  \
		  offsetof(struct live, d.insecure) },                                      \
	{                                                                                   \
		"output", 'o', SLU_OPT_STRING, "FORM", "table or json (table)",             \
			offsetof(struct live, output), .choice = cli_live_forms             \
	}
/* A command whose function is run_<id>. */
#define LIVE_COMMAND(id, words, text, longer, options, least, most)                 \
	const struct slu_command slu_cmd_##id = { .name = #id,                      \
						  .args = words,                    \
						  .summary = text,                  \
						  .details = longer,                \
						  .option = options,                \
						  .conf_size = sizeof(struct live), \
						  .min_args = least,                \
						  .max_args = most,                 \
						  .run = run_##id }

/* The option --namespace; `text` is its line in the help. */
#define LIVE_NAMESPACE(text) \
	{ "namespace", 'n', SLU_OPT_STRING, "NS", text, offsetof(struct live, ns) }

/* Whether the user wants JSON. */
bool cli_live_json(const struct live *c);
/* Ask one question.  The answer is a document, or with -o json it is printed as it came, and *doc is
 * NULL.  The caller frees *doc. */
int cli_live_ask(const struct live *c, enum slu_http_method method, const char *path,
		 struct slu_json_doc **doc, struct slu_error *err);
/* The path of a job of the interface, "NAME" or "NAMESPACE/NAME", with `verb` behind it unless NULL. */
int cli_live_job_path(const struct live *c, const char *name, const char *verb, struct slu_buf *b);
/* A text of an object; "" if there is none. */
const char *cli_live_field(const struct slu_json *o, const char *key);
