/* config_read.c — the files of a kubeconfig and the fields in them. */
#include "kube/config_read_internal.h"
#include "base/base64.h"
#include "base/file.h"
#include "wire/yaml.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_FILE (4u << 20)

char *kube_config_keep(struct kcfg *l, const char *s)
{
	return s ? slu_arena_strndup(&l->c->mem, s, strlen(s)) : NULL;
}

char *kube_config_keepf(struct kcfg *l, const char *fmt, ...)
{
	char t[PATH_MAX + 512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t, sizeof t, fmt, ap);
	va_end(ap);
	return kube_config_keep(l, t);
}

int kube_config_wrong(struct kcfg *l, const struct kcfg_entry *e, const char *field,
		      const char *why)
{
	uint32_t line = slu_json_line(e->file->doc, slu_json_get(e->obj, field));
	char at[32] = "";

	if (line)
		snprintf(at, sizeof at, " (line %u)", line);
	return slu_fail(l->err, -EINVAL, "%s: %s.%s%s %s", e->file->path, e->place, field, at, why);
}

int kube_config_str(struct kcfg *l, const struct kcfg_entry *e, const char *field, const char **out)
{
	const struct slu_json *v = slu_json_get(e->obj, field);

	*out = NULL;
	if (!v || slu_json_is_null(v))
		return 0;
	if (!slu_json_is_str(v))
		return kube_config_wrong(l, e, field, "is not a string");
	if (!*slu_json_str(v))
		return 0;
	*out = kube_config_keep(l, slu_json_str(v));
	return *out ? 0 : -ENOMEM;
}

int kube_config_bool(struct kcfg *l, const struct kcfg_entry *e, const char *field, bool *out)
{
	const struct slu_json *v = slu_json_get(e->obj, field);

	if (!v || slu_json_is_null(v))
		return 0;
	return slu_json_bool(v, out) < 0
		       ? kube_config_wrong(l, e, field, "is neither true nor false")
		       : 0;
}

const char *kube_config_place(struct kcfg *l, const struct kcfg_entry *e, const char *field)
{
	return kube_config_keepf(l, "%s: %s.%s", e->file->path, e->place, field);
}

const char *kube_config_path(struct kcfg *l, const struct kcfg_file *f, const char *path)
{
	const char *slash = strrchr(f->path, '/');

	if (*path == '/' || !slash)
		return path;
	return kube_config_keepf(l, "%.*s/%s", (int)(slash - f->path), f->path, path);
}

int kube_config_blob(struct kcfg *l, const struct kcfg_entry *e, const char *field,
		     struct kube_blob *b)
{
	char data_field[64];
	const char *s;
	int rc;

	snprintf(data_field, sizeof data_field, "%s-data", field);
	rc = kube_config_str(l, e, data_field, &s);
	if (rc < 0)
		return rc;
	if (s) {
		struct slu_buf t = SLU_BUF_INIT(MAX_FILE);

		rc = slu_base64_decode(s, strlen(s), &t);
		if (!rc && !t.n)
			rc = -EINVAL;
		b->data = rc ? NULL : slu_arena_strndup(&l->c->mem, t.p, t.n);
		b->n = t.n;
		slu_buf_done(&t);
		if (rc == -EINVAL)
			return kube_config_wrong(l, e, data_field, "is not base64");
		if (rc < 0 || !b->data)
			return -ENOMEM;
		b->from = kube_config_place(l, e, data_field);
		return b->from ? 0 : -ENOMEM;
	}
	rc = kube_config_str(l, e, field, &s);
	if (rc < 0 || !s)
		return rc;
	b->file = kube_config_path(l, e->file, s);
	b->from = b->file ? kube_config_keepf(l, "%s (%s: %s.%s)", b->file, e->file->path, e->place,
					      field)
			  : NULL;
	if (!b->from)
		return -ENOMEM;
	if (access(b->file, R_OK) < 0)
		return slu_fail(l->err, -EINVAL, "%s: %s.%s: cannot read %s: %s", e->file->path,
				e->place, field, b->file, strerror(errno));
	return 0;
}

int kube_config_list(struct kcfg *l, const struct kcfg_entry *e, const char *field,
		     const char ***out)
{
	const struct slu_json *v = slu_json_get(e->obj, field);
	uint32_t n = 0;
	const char **p;

	if (!v || slu_json_is_null(v))
		return 0;
	if (!slu_json_is_arr(v) || slu_json_count(v) > KCFG_LIST_MAX)
		return kube_config_wrong(l, e, field, "is not a list of strings");
	p = slu_arena_zalloc(&l->c->mem, (slu_json_count(v) + 1) * sizeof *p);
	if (!p)
		return -ENOMEM;
	slu_json_each (v, it) {
		if (!slu_json_is_str(it.val))
			return kube_config_wrong(l, e, field, "is not a list of strings");
		p[n] = kube_config_keep(l, slu_json_str(it.val));
		if (!p[n++])
			return -ENOMEM;
	}
	*out = p;
	return 0;
}

/* ---- files ---- */

void kube_config_done(struct kcfg *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		slu_free(l->file[i].path);
		slu_json_free(l->file[i].doc);
	}
	l->n = 0;
}

int kube_config_load(struct kcfg *l, const char *path, bool must_exist)
{
	struct slu_buf text = SLU_BUF_INIT(MAX_FILE);
	struct kcfg_file *f;
	char abs[PATH_MAX];
	int rc;

	if (l->n == KCFG_FILES_MAX)
		return slu_fail(l->err, -EINVAL, "KUBECONFIG lists more than %d files",
				KCFG_FILES_MAX);
	rc = slu_file_read(path, &text);
	if (rc < 0) {
		slu_buf_done(&text);
		if (rc == -ENOENT && !must_exist)
			return 0;
		if (rc == -ENOMEM)
			return rc;
		return slu_fail(l->err, rc == -ENOENT ? -ENOENT : -EINVAL,
				"cannot read kubeconfig %s: %s", path,
				rc == -EMSGSIZE ? "it is larger than 4 MiB" : strerror(-rc));
	}
	f = &l->file[l->n];
	f->doc = NULL;
	f->path = slu_strdup(realpath(path, abs) ? abs : path);
	if (!f->path) {
		slu_buf_done(&text);
		return -ENOMEM;
	}
	l->n++;
	rc = slu_yaml_parse(slu_buf_str(&text), text.n, 0, NULL, &f->doc, l->err);
	slu_buf_done(&text);
	if (rc < 0)
		return rc == -ENOMEM ? rc : slu_fail_prefix(l->err, -EINVAL, "%s", path);
	if (!slu_json_is_obj(slu_json_root(f->doc)) && !slu_json_is_null(slu_json_root(f->doc)))
		return slu_fail(l->err, -EINVAL, "%s is not a kubeconfig: no fields at its top",
				path);
	return 0;
}

int kube_config_load_list(struct kcfg *l, const char *list)
{
	for (const char *s = list; *s;) {
		size_t n = strcspn(s, ":");

		if (n) {
			slu_cleanup(slu_freep) char *path = slu_strndup(s, n);
			int rc = path ? kube_config_load(l, path, false) : -ENOMEM;

			if (rc < 0)
				return rc;
		}
		s += n;
		if (*s)
			s++;
	}
	return l->n ? 0
		    : slu_fail(l->err, -ENOENT, "none of the files in KUBECONFIG exists: %.300s",
			       list);
}

int kube_config_find(struct kcfg *l, const char *kind, const char *inner, const char *name,
		     struct kcfg_entry *out)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct slu_json *list = slu_json_get(slu_json_root(l->file[i].doc), kind);
		bool found = false;

		if (!list || slu_json_is_null(list))
			continue;
		if (!slu_json_is_arr(list))
			return slu_fail(l->err, -EINVAL, "%s: %s is not a list", l->file[i].path,
					kind);
		slu_json_each (list, it) {
			const char *s = slu_json_str(slu_json_get(it.val, "name"));

			if (!s)
				return slu_fail(l->err, -EINVAL,
						"%s: an entry of %s has no name (a string)",
						l->file[i].path, kind);
			if (strcmp(s, name))
				continue;
			if (found)
				return slu_fail(l->err, -EINVAL, "%s: %s has \"%s\" twice",
						l->file[i].path, kind, name);
			found = true;
			out->file = &l->file[i];
			out->obj = slu_json_get(it.val, inner);
			snprintf(out->place, sizeof out->place, "%s[\"%.300s\"].%s", kind, name,
				 inner);
			if (out->obj && !slu_json_is_obj(out->obj) && !slu_json_is_null(out->obj))
				return slu_fail(l->err, -EINVAL, "%s: %s is not an object",
						out->file->path, out->place);
		}
		if (found)
			return 0;
	}
	return -ENOENT;
}
