/* Write the operations of an admission's JSON patch. */
#include "serve/admit_internal.h"

/* `path` is an escaped JSON pointer; `key`, if given, is escaped and appended. */
void slu_admit_op(struct slu_admit_patch *p, const char *what, const char *path, const char *key)
{
	struct slu_buf full = SLU_BUF_INIT(4096);

	slu_buf_puts(&full, path);
	if (key) {
		slu_buf_putc(&full, '/');
		for (; *key; key++) {
			if (*key == '~')
				slu_buf_puts(&full, "~0");
			else if (*key == '/')
				slu_buf_puts(&full, "~1");
			else
				slu_buf_putc(&full, *key);
		}
	}
	slu_jsonw_obj(&p->w);
	slu_jsonw_kstr(&p->w, "op", what);
	slu_jsonw_kstr(&p->w, "path", slu_buf_str(&full));
	slu_jsonw_key(&p->w, "value");
	slu_buf_done(&full);
	p->ops++;
}

void slu_admit_op_end(struct slu_admit_patch *p)
{
	slu_jsonw_end_obj(&p->w);
}

void slu_admit_set(struct slu_admit_patch *p, const char *path, const char *key, const char *value)
{
	slu_admit_op(p, "add", path, key);
	slu_jsonw_str(&p->w, value);
	slu_admit_op_end(p);
}

void slu_admit_pairs(struct slu_admit_patch *p, const struct slu_json *map, const char *path,
		     const char *const (*pair)[2], uint32_t n)
{
	if (!slu_json_is_obj(map)) {
		slu_admit_op(p, "add", path, NULL);
		slu_jsonw_obj(&p->w);
		slu_jsonw_end_obj(&p->w);
		slu_admit_op_end(p);
	}
	for (uint32_t i = 0; i < n; i++)
		slu_admit_set(p, path, pair[i][0], pair[i][1]);
}
