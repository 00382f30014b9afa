#include "graph/hwloc.h"

#include "graph/xml.h"

#define MAX_XML     ((size_t)256 << 20)
#define MAX_OBJECTS (1u << 20)
#define MAX_DEPTH   256u

struct reader {
	struct slu_hwloc *h;
	struct slu_xml xml;
	bool topology; /* the first element was <topology> */
	uint32_t open[MAX_DEPTH], depth;
	uint32_t skip; /* depth below an object that is left out; 0: nothing is skipped */
};

static void stop_parser(struct reader *x, int rc)
{
	slu_xml_stop(&x->xml, rc);
}

static const char *keep_text(struct reader *x, const char *s)
{
	const char *p = s ? slu_arena_strndup(&x->h->text, s, strlen(s)) : "";

	if (!p)
		stop_parser(x, -ENOMEM);
	return p;
}

static enum slu_hwloc_kind cache_kind(int depth, bool icache)
{
	if (icache)
		return SLU_HWLOC_OTHER;
	switch (depth) {
	case 1:
		return SLU_HWLOC_L1;
	case 2:
		return SLU_HWLOC_L2;
	case 3:
		return SLU_HWLOC_L3;
	default:
		return SLU_HWLOC_OTHER;
	}
}

/* Fill in the object's kind; false for an object that is not kept (Misc). */
static bool set_kind(struct slu_hwloc_obj *o, const char *type, const XML_Char **a)
{
	static const struct {
		const char *name;
		enum slu_hwloc_kind kind;
	} kinds[] = {
		{ "Machine", SLU_HWLOC_MACHINE },   { "System", SLU_HWLOC_MACHINE },
		{ "Group", SLU_HWLOC_GROUP },       { "Package", SLU_HWLOC_PACKAGE },
		{ "Socket", SLU_HWLOC_PACKAGE },    { "L3Cache", SLU_HWLOC_L3 },
		{ "L2Cache", SLU_HWLOC_L2 },        { "L1Cache", SLU_HWLOC_L1 },
		{ "Core", SLU_HWLOC_CORE },         { "PU", SLU_HWLOC_PU },
		{ "NUMANode", SLU_HWLOC_NUMANODE }, { "OSDev", SLU_HWLOC_OSDEV },
		{ "Bridge", SLU_HWLOC_OTHER_IO },   { "PCIDev", SLU_HWLOC_OTHER_IO },
	};
	const char *s = slu_xml_attribute(a, "osdev_type"), *depth = slu_xml_attribute(a, "depth");
	const char *cache = slu_xml_attribute(a, "cache_type"),
		   *size = slu_xml_attribute(a, "cache_size");

	const char *nodeset = slu_xml_attribute(a, "nodeset");

	o->no_memory = nodeset && !nodeset[strspn(nodeset, "0x,")];
	o->osdev = s ? atoi(s) : -1;
	o->cache_size = size ? strtoull(size, NULL, 10) : 0;
	o->kind = SLU_HWLOC_OTHER;
	if (!strcmp(type, "Misc"))
		return false;
	if (!strcmp(type, "Cache")) {
		o->icache = cache && !strcmp(cache, "2");
		o->kind = cache_kind(depth ? atoi(depth) : 0, o->icache);
		return true;
	}
	for (size_t i = 0; i < SLU_LEN(kinds); i++)
		if (!strcmp(type, kinds[i].name))
			o->kind = kinds[i].kind;
	return true;
}

static void append_child(struct slu_hwloc *h, uint32_t *first, uint32_t *last, uint32_t i)
{
	h->o.p[i].next = SLU_NONE;
	if (*first == SLU_NONE)
		*first = i;
	else
		h->o.p[*last].next = i;
	*last = i;
}

/* Put the chain that a removed parent leaves to its child in front of a list. */
static void prepend_chain(struct slu_hwloc *h, uint32_t *first, uint32_t *last, uint32_t cf,
			  uint32_t cl)
{
	if (cf == SLU_NONE)
		return;
	h->o.p[cl].next = *first;
	if (*first == SLU_NONE)
		*last = cl;
	*first = cf;
}

static void append_chain(struct slu_hwloc *h, uint32_t *first, uint32_t *last, uint32_t cf,
			 uint32_t cl)
{
	if (cf == SLU_NONE)
		return;
	if (*first == SLU_NONE)
		*first = cf;
	else
		h->o.p[*last].next = cf;
	*last = cl;
}

static void attach(struct slu_hwloc *h, uint32_t parent, uint32_t i)
{
	struct slu_hwloc_obj *p = &h->o.p[parent];

	switch (h->o.p[i].kind) {
	case SLU_HWLOC_NUMANODE:
		append_child(h, &p->mem_first, &p->mem_last, i);
		break;
	case SLU_HWLOC_OSDEV:
	case SLU_HWLOC_OTHER_IO:
		append_child(h, &p->io_first, &p->io_last, i);
		break;
	default:
		append_child(h, &p->first, &p->last, i);
	}
}

static void on_object(struct reader *x, const XML_Char **a)
{
	struct slu_hwloc_obj o = { .first = SLU_NONE,
				   .last = SLU_NONE,
				   .mem_first = SLU_NONE,
				   .mem_last = SLU_NONE,
				   .io_first = SLU_NONE,
				   .io_last = SLU_NONE,
				   .next = SLU_NONE };
	const char *type = slu_xml_attribute(a, "type");

	if (!type) {
		stop_parser(x, -EINVAL);
		return;
	}
	if (!set_kind(&o, type, a)) {
		x->skip = 1;
		return;
	}
	o.name = keep_text(x, slu_xml_attribute(a, "name"));
	o.cpuset = keep_text(x, slu_xml_attribute(a, "cpuset"));
	if (x->depth >= MAX_DEPTH || x->h->o.n >= MAX_OBJECTS)
		stop_parser(x, -EFBIG);
	else if (slu_vec_push(&x->h->o, o) < 0)
		stop_parser(x, -ENOMEM);
	else
		x->open[x->depth++] = x->h->o.n - 1;
}

static void on_info(struct reader *x, const XML_Char **a)
{
	const char *name = slu_xml_attribute(a, "name"), *value = slu_xml_attribute(a, "value");
	struct slu_hwloc_obj *o = x->depth ? &x->h->o.p[x->open[x->depth - 1]] : NULL;
	const char **slot;

	if (!o || !name || !value)
		return;
	slot = !strcmp(name, "HostName")        ? &o->host
	       : !strcmp(name, "Size")          ? &o->size
	       : !strcmp(name, "LinuxDeviceID") ? &o->device
						: NULL;
	if (slot && !*slot)
		*slot = keep_text(x, value);
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **a)
{
	struct reader *x = arg;

	if (x->xml.rc)
		return;
	if (x->skip) {
		x->skip++;
		return;
	}
	if (!x->topology) {
		if (strcmp(name, "topology") != 0)
			stop_parser(x, -EINVAL);
		x->topology = true;
		return;
	}
	if (!strcmp(name, "object"))
		on_object(x, a);
	else if (!strcmp(name, "info"))
		on_info(x, a);
}

/* In version 1 processors are children of their memory.  Move the memory beside the processor
 * tree; its children go into a group, or into the parent if the parent has the same set of
 * processors. */
static void place_numanode(struct reader *x, uint32_t parent, uint32_t i)
{
	struct slu_hwloc *h = x->h;
	struct slu_hwloc_obj *o = &h->o.p[i], *p = &h->o.p[parent], group = *o;

	if (o->first != SLU_NONE || o->io_first != SLU_NONE || o->mem_first != SLU_NONE) {
		o->first = o->last = o->io_first = o->io_last = SLU_NONE;
		o->mem_first = o->mem_last = SLU_NONE;
		if (*group.cpuset && !strcmp(group.cpuset, p->cpuset)) {
			append_chain(h, &p->first, &p->last, group.first, group.last);
			append_chain(h, &p->io_first, &p->io_last, group.io_first, group.io_last);
			append_chain(h, &p->mem_first, &p->mem_last, group.mem_first,
				     group.mem_last);
		} else {
			group.kind = SLU_HWLOC_GROUP;
			group.name = "";
			if (slu_vec_push(&h->o, group) < 0) {
				stop_parser(x, -ENOMEM);
				return;
			}
			attach(h, parent, h->o.n - 1);
			parent = h->o.n - 1;
		}
	}
	if (!group.no_memory)
		attach(h, parent, i);
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
	struct reader *x = arg;
	uint32_t i, parent;

	if (x->xml.rc)
		return;
	if (x->skip) {
		x->skip--;
		return;
	}
	if (strcmp(name, "object") != 0 || !x->depth)
		return;
	i = x->open[--x->depth];
	if (!x->depth) {
		if (x->h->root == SLU_NONE)
			x->h->root = i;
		return;
	}
	parent = x->open[x->depth - 1];
	if (x->h->o.p[i].kind == SLU_HWLOC_NUMANODE)
		place_numanode(x, parent, i);
	else
		attach(x->h, parent, i);
}

/* --- levels without structure --- */

static bool only_child(const struct slu_hwloc *h, uint32_t i)
{
	const struct slu_hwloc_obj *o = &h->o.p[i];

	return o->first != SLU_NONE && o->first == o->last;
}

struct census {
	uint32_t count[SLU_HWLOC_KINDS];     /* objects of a kind in the tree */
	uint32_t one_child[SLU_HWLOC_KINDS]; /* ... that have one child, of kind `below` */
	enum slu_hwloc_kind below[SLU_HWLOC_KINDS];
	uint32_t only[SLU_HWLOC_KINDS]; /* ... that are the only child of a kind `above` */
	enum slu_hwloc_kind above[SLU_HWLOC_KINDS];
};

static void take_census(const struct slu_hwloc *h, uint32_t i, struct census *c)
{
	const struct slu_hwloc_obj *o = &h->o.p[i];

	c->count[o->kind]++;
	if (only_child(h, i)) {
		enum slu_hwloc_kind k = h->o.p[o->first].kind;

		c->one_child[o->kind]++;
		c->below[o->kind] = c->one_child[o->kind] == 1 || c->below[o->kind] == k
					    ? k
					    : SLU_HWLOC_KINDS;
		c->only[k]++;
		c->above[k] = c->only[k] == 1 || c->above[k] == o->kind ? o->kind : SLU_HWLOC_KINDS;
	}
	for (uint32_t k = o->first; k != SLU_NONE; k = h->o.p[k].next)
		take_census(h, k, c);
}

static bool is_structure(enum slu_hwloc_kind k)
{
	return k == SLU_HWLOC_GROUP || k == SLU_HWLOC_L1 || k == SLU_HWLOC_L2 || k == SLU_HWLOC_L3;
}

/* Remove the objects of one kind that are 1:1 with their parent or with their child. */
static void remove_kind(struct slu_hwloc *h, uint32_t *link, enum slu_hwloc_kind kind)
{
	while (*link != SLU_NONE) {
		uint32_t i = *link;
		struct slu_hwloc_obj *o = &h->o.p[i], *c;

		remove_kind(h, &o->first, kind);
		if (o->kind == kind && only_child(h, i)) {
			c = &h->o.p[o->first];
			prepend_chain(h, &c->io_first, &c->io_last, o->io_first, o->io_last);
			prepend_chain(h, &c->mem_first, &c->mem_last, o->mem_first, o->mem_last);
			c->next = o->next;
			*link = o->first;
		}
		link = &h->o.p[*link].next;
	}
}

static void fix_last(struct slu_hwloc *h, uint32_t i)
{
	struct slu_hwloc_obj *o = &h->o.p[i];

	o->last = SLU_NONE;
	for (uint32_t k = o->first; k != SLU_NONE; k = h->o.p[k].next) {
		fix_last(h, k);
		o->last = k;
	}
}

static bool same_set(const struct slu_hwloc_obj *a, const struct slu_hwloc_obj *b)
{
	return *a->cpuset && !strcmp(a->cpuset, b->cpuset);
}

/* A group adds nothing if it has the same set of processors as its only child or its parent, or
 * has no processors at all. */
static void merge_groups(struct slu_hwloc *h, uint32_t parent)
{
	uint32_t *link = &h->o.p[parent].first;

	while (*link != SLU_NONE) {
		uint32_t i = *link;
		struct slu_hwloc_obj *o = &h->o.p[i], *p = &h->o.p[parent];

		merge_groups(h, i);
		if (o->kind != SLU_HWLOC_GROUP) {
			link = &o->next;
		} else if (only_child(h, i) && same_set(o, &h->o.p[o->first])) {
			struct slu_hwloc_obj *c = &h->o.p[o->first];

			prepend_chain(h, &c->io_first, &c->io_last, o->io_first, o->io_last);
			prepend_chain(h, &c->mem_first, &c->mem_last, o->mem_first, o->mem_last);
			c->next = o->next;
			*link = o->first;
			link = &c->next;
		} else if (o->first == SLU_NONE || same_set(o, p)) {
			append_chain(h, &p->io_first, &p->io_last, o->io_first, o->io_last);
			append_chain(h, &p->mem_first, &p->mem_last, o->mem_first, o->mem_last);
			if (o->first == SLU_NONE) {
				*link = o->next;
			} else {
				h->o.p[o->last].next = o->next;
				*link = o->first;
				link = &h->o.p[o->last].next;
			}
		} else {
			link = &o->next;
		}
	}
	h->o.p[parent].last = SLU_NONE;
	for (uint32_t k = h->o.p[parent].first; k != SLU_NONE; k = h->o.p[k].next)
		h->o.p[parent].last = k;
}

/* Remove a structure level if all its objects have exactly one child of one kind, unless that
 * child is a weaker structure level itself (a group below a cache). */
static bool drop_level(struct slu_hwloc *h)
{
	static const enum slu_hwloc_kind order[] = { SLU_HWLOC_L1, SLU_HWLOC_L2, SLU_HWLOC_L3,
						     SLU_HWLOC_GROUP };
	struct census c = { 0 };

	take_census(h, h->root, &c);
	for (size_t k = 0; k < SLU_LEN(order); k++) {
		enum slu_hwloc_kind kind = order[k], below = c.below[kind], above = c.above[kind];

		if (c.count[kind] && c.one_child[kind] == c.count[kind] &&
		    below != SLU_HWLOC_KINDS && c.count[below] == c.count[kind] &&
		    !(below == SLU_HWLOC_GROUP)) {
			remove_kind(h, &h->root, kind);
			fix_last(h, h->root);
			return true;
		}
		/* 1:1 with a level above that is kept: its children move up. */
		if (c.count[kind] && c.only[kind] == c.count[kind] && above != SLU_HWLOC_KINDS &&
		    c.count[above] == c.count[kind] &&
		    (!is_structure(above) || kind == SLU_HWLOC_GROUP)) {
			for (uint32_t i = 0; i < h->o.n; i++) {
				struct slu_hwloc_obj *o = &h->o.p[i], *x;

				if (o->kind != above || !only_child(h, i) ||
				    h->o.p[o->first].kind != kind)
					continue;
				x = &h->o.p[o->first];
				append_chain(h, &o->io_first, &o->io_last, x->io_first, x->io_last);
				append_chain(h, &o->mem_first, &o->mem_last, x->mem_first,
					     x->mem_last);
				o->first = x->first;
				o->last = x->last;
			}
			return true;
		}
	}
	return false;
}

/* --- logical indexes, in the order libhwloc lists objects --- */

static void number_objects(struct slu_hwloc *h, uint32_t i, uint32_t *count)
{
	struct slu_hwloc_obj *o = &h->o.p[i];

	o->logical = count[o->kind]++;
	for (uint32_t k = o->first; k != SLU_NONE; k = h->o.p[k].next)
		number_objects(h, k, count);
	for (uint32_t k = o->mem_first; k != SLU_NONE; k = h->o.p[k].next)
		number_objects(h, k, count);
	for (uint32_t k = o->io_first; k != SLU_NONE; k = h->o.p[k].next)
		number_objects(h, k, count);
}

/* Leave out unimportant devices (DMA engines), as libhwloc does. */
static void drop_dma(struct slu_hwloc *h, uint32_t i)
{
	struct slu_hwloc_obj *o = &h->o.p[i];
	uint32_t *link = &o->io_first;

	o->io_last = SLU_NONE;
	while (*link != SLU_NONE) {
		struct slu_hwloc_obj *d = &h->o.p[*link];

		if (d->kind == SLU_HWLOC_OSDEV && d->osdev == SLU_OSDEV_DMA) {
			*link = d->next;
			continue;
		}
		drop_dma(h, *link);
		o->io_last = *link;
		link = &d->next;
	}
	for (uint32_t k = o->first; k != SLU_NONE; k = h->o.p[k].next)
		drop_dma(h, k);
}

int slu_hwloc_parse(struct slu_hwloc *h, const char *text, size_t n)
{
	struct reader x = { .h = h };
	uint32_t count[SLU_HWLOC_KINDS] = { 0 };

	h->root = SLU_NONE;
	slu_xml_parse(&x.xml, &x, text, n, MAX_XML, on_start, on_end, NULL);
	if (!x.xml.rc && h->root == SLU_NONE)
		x.xml.rc = -EINVAL;
	if (x.xml.rc < 0)
		return x.xml.rc;
	drop_dma(h, h->root);
	merge_groups(h, h->root);
	while (drop_level(h))
		;
	number_objects(h, h->root, count);
	return 0;
}

void slu_hwloc_done(struct slu_hwloc *h)
{
	slu_vec_done(&h->o);
	slu_arena_done(&h->text);
}
