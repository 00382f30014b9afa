#include <limits.h>

#include "graph/hwloc.h"
#include "graph/read.h"

struct reader {
	struct slu_graph *g;
	const struct slu_hwloc *h;
	const char *allow;
	struct slu_buf *msg;
	uint32_t start;
	int32_t rank;
	bool failed;
};

/* Is the word in the comma separated list? */
static bool is_listed(const struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if (!r->allow || !*r->allow)
		return true;
	for (const char *p = r->allow; *p;) {
		size_t k = strcspn(p, ",");

		if (k == n && !memcmp(p, word, n))
			return true;
		p += k + (p[k] == ',');
	}
	return false;
}

struct vertex {
	const char *type, *basename;
	size_t nbasename;
	const char *name; /* NULL: basename + id */
	int64_t id;
	uint32_t size;
	const char *device;
};

static bool name_simply(struct reader *r, struct vertex *v, const char *type)
{
	v->type = v->basename = type;
	v->nbasename = strlen(type);
	return is_listed(r, type);
}

static bool cache(struct reader *r, struct vertex *v, const struct slu_hwloc_obj *o,
		  const char *name)
{
	v->type = "cache";
	v->basename = name;
	v->nbasename = strlen(name);
	v->size = (uint32_t)(o->cache_size / 1024);
	return is_listed(r, name);
}

static void complain(struct reader *r, const char *what)
{
	slu_buf_puts(r->msg, what);
	r->failed = true;
}

static bool describe_machine(struct reader *r, struct vertex *v, const struct slu_hwloc_obj *o)
{
	if (!o->host || !is_listed(r, "node"))
		return false;
	v->type = "node";
	v->basename = v->name = o->host;
	if (!*o->host || slu_split_hostname(o->host, &v->nbasename, &v->id) < 0) {
		complain(r, "Error converting node id for ");
		complain(r, o->host);
		complain(r, "; ");
		return false;
	}
	return true;
}

static bool gpu(struct reader *r, struct vertex *v, const struct slu_hwloc_obj *o)
{
	const char *d;

	if (!strncmp(o->name, "cuda", 4) || !strncmp(o->name, "rsmi", 4))
		v->id = atoi(o->name + 4);
	else if (!strncmp(o->name, "opencl", 6) && (d = strchr(o->name + 6, 'd')))
		v->id = atoi(d + 1);
	return name_simply(r, v, "gpu");
}

static bool storage(struct reader *r, struct vertex *v, const struct slu_hwloc_obj *o)
{
	long size;

	if (!name_simply(r, v, "storage"))
		return false;
	if (!o->size) {
		complain(r, "Error getting the size of block storage device; ");
		return false;
	}
	size = strtol(o->size, NULL, 10);
	if (size <= 0 || size == LONG_MAX || size / 1000000 > UINT32_MAX) {
		complain(r, "Error parsing the size of block storage device; ");
		return false;
	}
	v->size = (uint32_t)(size / 1000000);
	v->device = o->device ? o->device : "-1";
	return true;
}

/* Describe the vertex that the object becomes; false if it becomes none and its children move
 * up. */
static bool describe_vertex(struct reader *r, const struct slu_hwloc_obj *o, struct vertex *v)
{
	*v = (struct vertex){ .id = o->logical, .size = 1 };
	switch (o->kind) {
	case SLU_HWLOC_MACHINE:
		return describe_machine(r, v, o);
	case SLU_HWLOC_GROUP:
		return name_simply(r, v, "group");
	case SLU_HWLOC_NUMANODE:
		return name_simply(r, v, "numanode");
	case SLU_HWLOC_PACKAGE:
		return name_simply(r, v, "socket");
	case SLU_HWLOC_L1:
		return cache(r, v, o, "L1cache");
	case SLU_HWLOC_L2:
		return cache(r, v, o, "L2cache");
	case SLU_HWLOC_L3:
		return cache(r, v, o, "L3cache");
	case SLU_HWLOC_CORE:
		return name_simply(r, v, "core");
	case SLU_HWLOC_PU:
		return name_simply(r, v, "pu");
	case SLU_HWLOC_OSDEV:
		if (o->osdev == SLU_OSDEV_COPROC ||
		    (o->osdev == SLU_OSDEV_GPU && !strncmp(o->name, "rsmi", 4)))
			return gpu(r, v, o);
		return o->osdev == SLU_OSDEV_BLOCK && storage(r, v, o);
	default:
		return false;
	}
}

static int add_vertex(struct reader *r, const struct vertex *v, uint32_t parent, uint32_t *out)
{
	struct slu_vertex_desc d = { .id = v->id,
				     .uniq_id = SLU_UNIQ_INDEX,
				     .rank = -1,
				     .name = SLU_NONE,
				     .size = v->size };
	int rc;

	if (r->g->v.n - r->start >= SLU_READ_MAX)
		return -EFBIG;
	d.type = slu_graph_type(r->g, v->type);
	d.basename = slu_graph_string_n(r->g, v->basename, v->nbasename);
	if (v->name)
		d.name = slu_graph_string(r->g, v->name);
	if (d.type == SLU_NONE)
		return slu_graph_full(r->g);
	if (d.basename == SLU_NONE || (v->name && d.name == SLU_NONE))
		return -ENOMEM;
	if (d.type == SLU_TYPE_NODE)
		d.rank = r->rank++;
	*out = slu_graph_add(r->g, &d);
	if (*out == SLU_NONE)
		return -ENOMEM;
	rc = slu_graph_path_under(r->g, *out, 0, parent);
	if (!rc)
		rc = parent == SLU_NONE ? slu_graph_root_set(r->g, 0, *out)
					: slu_graph_link(r->g, parent, *out, 0);
	if (!rc && v->device)
		rc = slu_graph_property_set(r->g, *out, "LinuxDeviceID", v->device);
	return rc;
}

static int walk_objects(struct reader *r, uint32_t i, uint32_t parent)
{
	const struct slu_hwloc_obj *o = &r->h->o.p[i];
	const uint32_t list[] = { o->first, o->mem_first, o->io_first };
	struct vertex v;
	int rc = 0;

	if (describe_vertex(r, o, &v))
		rc = add_vertex(r, &v, parent, &parent);
	for (size_t k = 0; k < SLU_LEN(list); k++)
		for (uint32_t c = list[k]; !rc && c != SLU_NONE; c = r->h->o.p[c].next)
			rc = walk_objects(r, c, parent);
	return rc;
}

int slu_read_hwloc(struct slu_graph *g, const char *text, size_t n, const char *allow,
		   struct slu_buf *msg)
{
	struct slu_graph_mark mark = slu_graph_mark(g);
	struct slu_hwloc h = { .root = SLU_NONE };
	struct reader r = { .g = g, .h = &h, .allow = allow, .msg = msg, .start = g->v.n };
	struct vertex cluster = {
		.type = "cluster", .basename = "cluster", .nbasename = 7, .size = 1
	};
	uint32_t root = SLU_NONE;
	int rc = add_vertex(&r, &cluster, SLU_NONE, &root);

	if (!rc && n) {
		rc = slu_hwloc_parse(&h, text, n);
		if (rc == -EINVAL)
			slu_buf_puts(msg, "Error setting xmlbuffer; ");
		else if (rc == -EFBIG)
			slu_buf_puts(msg, "the topology is too large or nested too deeply; ");
		if (!rc)
			rc = walk_objects(&r, h.root, root);
		if (!rc && r.failed) {
			slu_buf_puts(msg, "Error hwloc walk: rank -1; ");
			rc = -EINVAL;
		}
	}
	if (rc < 0)
		slu_graph_rollback(g, &mark);
	slu_hwloc_done(&h);
	return rc == -EEXIST ? -EINVAL : rc;
}
