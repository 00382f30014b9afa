#include "graph/jgf.h"

#include <ctype.h>

#include "wire/jsonw.h"

static int bad_jgf(struct slu_buf *msg, const char *fmt, const char *arg)
{
	const char *at = strstr(fmt, "%s");

	slu_buf_add(msg, fmt, at ? (size_t)(at - fmt) : strlen(fmt));
	if (at) {
		slu_buf_puts(msg, arg);
		slu_buf_puts(msg, at + 2);
	}
	return -EINVAL;
}

/* Accept any value whose text without quotes is an id set. */
static int parse_free_ranks(const struct slu_json *v, struct slu_idset *out, struct slu_buf *msg)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	size_t n = 0;
	int rc;

	slu_jsonw_value(&w, v);
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] != '"')
			b.p[n++] = b.p[i];
	if (b.p)
		b.p[n] = '\0';
	rc = b.error ? b.error : slu_idset_parse(out, slu_buf_str(&b));
	slu_buf_done(&b);
	if (rc == -ENOMEM)
		return rc;
	return rc < 0 ? bad_jgf(msg, "fetch_jgf: failed to decode ranks.\n", NULL) : 0;
}

int slu_jgf_not_json(const struct slu_json_place *place, struct slu_buf *msg)
{
	slu_buf_printf(msg,
		       "fetch_jgf: json_loads returned an error: %s: <string>@%" PRIu32 ":%" PRIu32
		       ".\n",
		       place->what, place->line, place->col);
	return -EINVAL;
}

int slu_jgf_outline(struct slu_jgf *j, const struct slu_json *root, struct slu_buf *msg)
{
	const struct slu_json *graph, *free_ranks;
	int rc;

	if (!slu_json_is_obj(root) && !slu_json_is_arr(root)) {
		slu_buf_puts(msg, "fetch_jgf: json_loads returned an error: "
				  "'[' or '{' expected: <string>@1:1.\n");
		return -EINVAL;
	}
	graph = slu_json_get(root, "graph");
	if (!graph)
		return bad_jgf(msg, "fetch_jgf: JGF does not contain a required key (graph).\n",
			       NULL);
	free_ranks = slu_json_get(root, "free_ranks");
	j->has_free = free_ranks;
	if (free_ranks && (rc = parse_free_ranks(free_ranks, &j->free_ranks, msg)) < 0)
		return rc;
	j->nodes = slu_json_get(graph, "nodes");
	if (!j->nodes)
		return bad_jgf(msg, "fetch_jgf: JGF does not contain a required key (nodes).\n",
			       NULL);
	j->edges = slu_json_get(graph, "edges");
	if (!j->edges)
		return bad_jgf(msg, "fetch_jgf: JGF does not contain a required key (edges).\n",
			       NULL);
	return 0;
}

int slu_jgf_open(struct slu_jgf *j, const char *text, size_t n, struct slu_buf *msg)
{
	struct slu_json_place place;
	int rc;

	*j = (struct slu_jgf){ 0 };
	rc = slu_json_parts_open(&j->parts, text, n, SLU_JSON_PART, &place);
	if (rc == -ENOMEM)
		return rc;
	return rc < 0 ? slu_jgf_not_json(&place, msg)
		      : slu_jgf_outline(j, slu_json_root(j->parts.outline), msg);
}

void slu_jgf_close(struct slu_jgf *j)
{
	slu_json_parts_close(&j->parts);
	slu_idset_done(&j->free_ranks);
}

/* Read the number at the beginning of the text as strtoll() does; false if there is none or it
 * is too large. */
static bool leading_number(const char *s, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(s, &end, 10);
	return end != s && !errno;
}

static int defaults(struct slu_jgf_node *x, struct slu_buf *msg)
{
	if (x->uniq_id == -1 && !leading_number(x->ref, &x->uniq_id))
		return bad_jgf(msg,
			       "apply_defaults: value for key (uniq_id) could not be inferred from "
			       "outer 'id' field %s.\n",
			       x->ref);
	if (x->id == -2) {
		x->id = x->uniq_id;
		if (x->name && !strcmp(x->type, "node")) {
			size_t n = strlen(x->name), k = n;

			while (k && isdigit((unsigned char)x->name[k - 1]))
				k--;
			if (k < n && !leading_number(x->name + k, &x->id))
				return bad_jgf(
					msg,
					"apply_defaults: could not extract ID from hostname %s\n",
					x->name);
		}
	}
	if (x->size == -1)
		x->size = 1;
	if (!x->basename)
		x->basename = x->type;
	return 0;
}

/* Store one key of the metadata in its field; false if its value has a wrong type. */
static bool take_key(struct slu_jgf_node *x, const char *key, size_t n, const struct slu_json *v)
{
	const char **str = NULL;
	int64_t *num = NULL, status = 0;

	switch (n) {
	case 2:
		if (!memcmp(key, "id", 2))
			num = &x->id;
		break;
	case 4:
		if (!memcmp(key, "type", 4))
			str = &x->type;
		else if (!memcmp(key, "name", 4))
			str = &x->name;
		else if (!memcmp(key, "rank", 4))
			num = &x->rank;
		else if (!memcmp(key, "size", 4))
			num = &x->size;
		else if (!memcmp(key, "unit", 4))
			return slu_json_is_str(v);
		break;
	case 5:
		if (!memcmp(key, "paths", 5))
			x->paths = v;
		break;
	case 6:
		if (!memcmp(key, "status", 6)) {
			if (slu_json_i64(v, &status) < 0)
				return false;
			x->status = (int32_t)status == 0   ? SLU_UP
				    : (int32_t)status == 1 ? SLU_DOWN
							   : SLU_UNKNOWN;
		}
		break;
	case 7:
		if (!memcmp(key, "uniq_id", 7))
			num = &x->uniq_id;
		break;
	case 8:
		if (!memcmp(key, "basename", 8))
			str = &x->basename;
		break;
	case 9:
		if (!memcmp(key, "exclusive", 9))
			return slu_json_bool(v, &x->exclusive) == 0;
		break;
	case 10:
		if (!memcmp(key, "properties", 10))
			x->properties = v;
		break;
	default:
		break;
	}
	if (str)
		return (*str = slu_json_str(v));
	return !num || slu_json_i64(v, num) == 0;
}

int slu_jgf_node(const struct slu_json *el, struct slu_jgf_node *x, struct slu_buf *msg)
{
	const struct slu_json *meta = slu_json_get(el, "metadata");
	bool good;

	*x = (struct slu_jgf_node){ .id = -2, .uniq_id = -1, .rank = -1, .size = -1 };
	x->ref = slu_json_str(slu_json_get(el, "id"));
	if (!x->ref)
		return bad_jgf(msg, "fill_fetcher: JGF vertex id key is not found in a node.\n",
			       NULL);
	if (!meta)
		return bad_jgf(msg,
			       "fill_fetcher: key (metadata) is not found in an JGF node for %s.\n",
			       x->ref);
	good = slu_json_is_obj(meta);
	slu_json_each (meta, it)
		good = good && take_key(x, it.key, slu_json_count(it.keyval), it.val);
	if (!good || !x->type || !x->paths)
		return bad_jgf(msg, "fill_fetcher: malformed metadata in an JGF node for %s\n",
			       x->ref);
	if (x->properties && !slu_json_is_obj(x->properties))
		return bad_jgf(msg,
			       "fill_fetcher: key (properties) must be an object or null for %s.\n",
			       x->ref);
	return defaults(x, msg);
}

int slu_jgf_edge(const struct slu_json *el, struct slu_jgf_edge *x, struct slu_buf *msg)
{
	x->el = el;
	x->src = slu_json_str(slu_json_get(el, "source"));
	x->dst = slu_json_str(slu_json_get(el, "target"));
	if (!x->src || !x->dst)
		return bad_jgf(msg, "unpack_edge: encountered a malformed edge.\n", NULL);
	return 0;
}

int slu_jgf_edge_subsystem(const struct slu_json *el, const char **out, struct slu_buf *msg)
{
	const struct slu_json *meta = slu_json_get(el, "metadata");
	const struct slu_json *sub = slu_json_get(meta, "subsystem");

	*out = "containment";
	if ((meta && !slu_json_is_obj(meta)) || (sub && !slu_json_is_str(sub)))
		return bad_jgf(msg, "unpack_edge: could not unpack edge metadata.\n", NULL);
	if (sub)
		*out = slu_json_str(sub);
	return 0;
}
