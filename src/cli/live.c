#include "cli/live_internal.h"

#include <stdio.h>

const char *const cli_live_forms[] = { "table", "json", NULL };

bool cli_live_json(const struct live *c)
{
	return c->output && !strcmp(c->output, "json");
}

int cli_live_ask(const struct live *c, enum slu_http_method method, const char *path,
		 struct slu_json_doc **doc, struct slu_error *err)
{
	struct slu_buf body = SLU_BUF_INIT(LIVE_ANSWER_MAX);
	int status = 0, rc = slu_client_ask(&c->d, method, path, &body, &status, err);

	*doc = NULL;
	if (!rc && status != 200) {
		slu_cleanup(slu_json_freep) struct slu_json_doc *why = NULL;
		const char *text = slu_buf_str(&body);

		if (slu_json_parse(text, body.n, NULL, &why, NULL) == 0)
			text = slu_json_str_or(slu_json_get(slu_json_root(why), "error"), text);
		rc = slu_fail(err, status == 404 ? -ENOENT : -EACCES, "%.*s",
			      (int)strcspn(text, "\n"), text);
	} else if (!rc && cli_live_json(c)) {
		fwrite(body.p, 1, body.n, stdout);
	} else if (!rc) {
		rc = slu_json_parse(slu_buf_str(&body), body.n, NULL, doc, err);
	}
	slu_buf_done(&body);
	return rc;
}

int cli_live_job_path(const struct live *c, const char *name, const char *verb, struct slu_buf *b)
{
	const char *slash = strchr(name, '/');
	const char *ns = c->ns ? c->ns : "default";

	slu_buf_puts(b, "/v1/jobs/");
	if (slash) { /* NAMESPACE/NAME, as the table prints it */
		slu_http_escape(b, name, (size_t)(slash - name));
		name = slash + 1;
	} else {
		slu_http_escape(b, ns, strlen(ns));
	}
	slu_buf_putc(b, '/');
	slu_http_escape(b, name, strlen(name));
	if (verb)
		slu_buf_printf(b, "/%s", verb);
	return b->error;
}

const char *cli_live_field(const struct slu_json *o, const char *key)
{
	return slu_json_str_or(slu_json_get(o, key), "");
}
