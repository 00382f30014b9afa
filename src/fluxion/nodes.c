/* nodes.c — the nodes of an allocation.  The JGF writer puts each node right behind its cores, so one pass
 * over the vertices is enough. */
#include "fluxion/service.h"
#include "wire/json.h"

#include "base/vec.h"

/* The Kubernetes name of a node: the basename, or the last part of the path if the basename is just "node". */
static const char *name_of(const struct slu_json *meta)
{
	const char *base = slu_json_str(slu_json_get(meta, "basename"));
	const char *path = slu_json_str(slu_json_dig(meta, "paths", "containment", NULL));
	const char *step = path ? strrchr(path, '/') : NULL;

	if (base && strcmp(base, "node") != 0)
		return base;
	return step ? step + 1 : base;
}

static int64_t size_of(const struct slu_json *meta)
{
	int64_t n;

	return slu_json_i64(slu_json_get(meta, "size"), &n) < 0 ? 1 : n;
}

int slu_flux_nodes(const char *jgf, size_t n, int32_t cpu, struct slu_arena *a,
		   struct slu_subs *out)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *list;
	struct slu_flux_node *node;
	int64_t cores = 0;
	int rc = slu_json_parse(jgf, n, NULL, &doc, NULL);

	if (rc < 0)
		return rc;
	list = slu_json_dig(slu_json_root(doc), "graph", "nodes", NULL);
	node = slu_arena_zalloc(a, (slu_json_count(list) + 1) * sizeof *node);
	if (!node)
		return -ENOMEM;
	*out = (struct slu_subs){ node, 0 };
	slu_json_each (list, it) {
		const struct slu_json *meta = slu_json_get(it.val, "metadata");
		const char *type = slu_json_str(slu_json_get(meta, "type")), *name;

		if (type && !strcmp(type, "core"))
			cores += size_of(meta);
		if (!type || strcmp(type, "node") != 0)
			continue;
		name = name_of(meta);
		name = slu_arena_strndup(a, name ? name : "", name ? strlen(name) : 0);
		if (!name)
			return -ENOMEM;
		node[out->n++] = (struct slu_flux_node){ slu_text(name), (int32_t)(cores / cpu) };
		cores = 0;
	}
	return 0;
}
