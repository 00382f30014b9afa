/* graph.h — the resource graph: vertices (pools of units), edges that belong to one subsystem each,
 * and the indexes by path, type and rank.
 *
 * Built for size: a vertex is a flat record, a name is (basename, number) and a path is (parent's
 * path, name) unless the reader gave something else, so that 330 000 vertices stay well below
 * 50 MB.  Vertices and edges are numbered from 0 in order of creation; a number is never reused, a
 * removed vertex stays as a dead record.  The graph knows nothing of jobs.
 *
 * Everything a reader (slu_read_*) needs is here: types and strings become numbers once, then
 * slu_graph_add, slu_graph_path_under or slu_graph_path_set, slu_graph_link.
 *
 * The structs are open for reading so that the matcher's walk costs no calls; only graph*.c writes
 * them.  One owner, one thread; nothing here locks.  Functions that can run out of memory return
 * -ENOMEM (or SLU_NONE) and leave the graph as it was. */
#pragma once
#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#define SLU_NONE          UINT32_MAX
#define SLU_GRAPH_MAX     (1u << 28) /* ceiling for vertices, and for edges */
#define SLU_TYPES_MAX     4096
#define SLU_SUBSYSTEM_MAX 64

/* Types every graph has from the start, in this order. */
enum {
	SLU_TYPE_CLUSTER,
	SLU_TYPE_CORE,
	SLU_TYPE_SOCKET,
	SLU_TYPE_GPU,
	SLU_TYPE_NODE,
	SLU_TYPE_RACK,
	SLU_TYPE_SLOT,
	SLU_TYPE_XOR_SLOT,
	SLU_TYPE_SSD,
	SLU_TYPE_STORAGE_NODE,
};

enum slu_status { SLU_UP, SLU_DOWN, SLU_UNKNOWN }; /* only SLU_UP can be used */

struct slu_vertex {
	int64_t id;      /* logical id, -1 = none */
	int64_t uniq_id; /* identity in output */
	uint32_t basename;
	uint32_t name; /* string, or SLU_NONE: basename + id (id -1 adds nothing) */
	uint32_t unit;
	uint32_t size;
	int32_t rank; /* -1 = none */
	uint16_t type;
	uint8_t status; /* enum slu_status */
	uint8_t dead;
	uint32_t path;                /* first of its paths, in order of giving */
	uint32_t props;               /* first property, sorted by key; SLU_NONE = none */
	uint32_t out_first, out_last; /* edges, in order of insertion */
	uint32_t in_first, in_last;
};

struct slu_edge {
	uint32_t src, dst;
	uint32_t next_out, next_in;
	uint8_t subsystem;
	uint8_t dead;
};

/* One path of one vertex. */
struct slu_path {
	uint32_t vertex;
	uint32_t next;   /* of the same vertex */
	uint32_t parent; /* path above, when derived: parent's text + "/" + name */
	uint32_t text;   /* string when not derived, else SLU_NONE */
	uint32_t hash;
	uint8_t subsystem;
	uint8_t dead; /* removed from the index; paths below it are still derived from it */
};

struct slu_prop {
	uint32_t key, val, next;
};

struct slu_graph {
	struct slu_intern types;      /* order = order of first use */
	struct slu_intern subsystems; /* 0 = containment */
	struct slu_intern strings;    /* 0 = "" */
	SLU_VEC(struct slu_vertex) v;
	SLU_VEC(struct slu_edge) e;
	SLU_VEC(struct slu_path) path;
	SLU_VEC(struct slu_prop) prop;
	/* Types that a recipe looked up among the vertices made so far; slu_graph_counts()
	 * counts them even if no vertex has them. */
	SLU_VEC(uint16_t) asked;
	uint32_t root[SLU_SUBSYSTEM_MAX]; /* SLU_NONE = none */
	uint32_t live_v, live_e;
	uint32_t *path_slot; /* open addressing over path[] */
	uint32_t path_mask, path_used;
	struct slu_map edge_of; /* (src, dst) -> edge, for targets with many in-edges */
	uint64_t change;        /* grows with every change of the graph's shape */
	uint32_t by_rank_n;     /* lazily: vertices with a rank, sorted by (rank, creation) */
	uint32_t *by_rank;
	uint64_t by_rank_at; /* the value of `change` for which the list was made */
};

struct slu_graph *slu_graph_new(void);
void slu_graph_free(struct slu_graph *g);
SLU_DEFINE_CLEANUP(struct slu_graph, slu_graph_free)
/* An independent copy; NULL when memory runs out. */
struct slu_graph *slu_graph_clone(const struct slu_graph *g);

/* The number of a word, which is added if new; SLU_NONE when memory runs out or the table is
 * full. */
uint32_t slu_graph_type(struct slu_graph *g, const char *type);
uint32_t slu_graph_subsystem(struct slu_graph *g, const char *name);
/* Why slu_graph_type() or slu_graph_subsystem() returned SLU_NONE: -EFBIG (the table is full) or
 * -ENOMEM. */
int slu_graph_full(const struct slu_graph *g);
uint32_t slu_graph_string(struct slu_graph *g, const char *s);
uint32_t slu_graph_string_n(struct slu_graph *g, const char *s, size_t n);

/* The description of a new vertex, filled in by a reader. */
struct slu_vertex_desc {
	uint32_t type;     /* from slu_graph_type */
	uint32_t basename; /* from slu_graph_string */
	uint32_t name;     /* string, or SLU_NONE: basename + id; an equal text is noticed */
	uint32_t unit;     /* string; 0 = none */
	int64_t id;
	int64_t uniq_id; /* SLU_UNIQ_INDEX: the vertex number */
	int32_t rank;
	uint32_t size;
	uint8_t status;
};
#define SLU_UNIQ_INDEX INT64_MIN

/* The new vertex, or SLU_NONE (memory, or SLU_GRAPH_MAX). */
uint32_t slu_graph_add(struct slu_graph *g, const struct slu_vertex_desc *d);
/* A hint: the graph will hold n vertices and edges in all. */
int slu_graph_reserve(struct slu_graph *g, uint32_t n);

/* Give `v` the path (path of `parent` in the subsystem) + "/" + name; parent SLU_NONE: "/" + name.
 * A path given before in the same subsystem is replaced in the vertex and stays in the index (an
 * association of a vertex to several parents indexes every path).  -EINVAL if the parent has no
 * path there. */
int slu_graph_path_under(struct slu_graph *g, uint32_t v, uint8_t subsystem, uint32_t parent);
/* The same with the text given; kept as a derived path where it is one. */
int slu_graph_path_set(struct slu_graph *g, uint32_t v, uint8_t subsystem, const char *path);

/* Make `v` the root of the subsystem.  -EEXIST if it has another one. */
int slu_graph_root_set(struct slu_graph *g, uint8_t subsystem, uint32_t v);
/* SLU_NONE if none. */
uint32_t slu_graph_root(const struct slu_graph *g, uint8_t subsystem);

/* Add src -> dst.  An edge between the two that exists already is re-used and moves to the given
 * subsystem (as in the reference).  0, -ENOMEM, -EFBIG. */
int slu_graph_link(struct slu_graph *g, uint32_t src, uint32_t dst, uint8_t subsystem);

/* Set a property (key not empty); 0 or -ENOMEM. */
int slu_graph_property_set(struct slu_graph *g, uint32_t v, const char *key, const char *val);
/* Value, or NULL if the vertex has no such key. */
const char *slu_graph_property(const struct slu_graph *g, uint32_t v, const char *key);

/* Remove one vertex from all indexes and drop its edges. */
void slu_graph_remove(struct slu_graph *g, uint32_t v);

/* Undo everything added since the mark; for readers that fail half-way in a live graph. */
struct slu_graph_mark {
	uint32_t v, e, path, prop;
	uint32_t root[SLU_SUBSYSTEM_MAX];
};
struct slu_graph_mark slu_graph_mark(const struct slu_graph *g);
void slu_graph_rollback(struct slu_graph *g, const struct slu_graph_mark *m);

/* --- reading --- */

static inline const struct slu_vertex *slu_graph_vertex(const struct slu_graph *g, uint32_t v)
{
	return &g->v.p[v];
}
static inline const char *slu_graph_str(const struct slu_graph *g, uint32_t string)
{
	return slu_intern_str(&g->strings, string);
}
static inline const char *slu_graph_type_name(const struct slu_graph *g, uint32_t type)
{
	return slu_intern_str(&g->types, type);
}
static inline const char *slu_graph_subsystem_name(const struct slu_graph *g, uint8_t s)
{
	return slu_intern_str(&g->subsystems, s);
}

/* Append the vertex's name, or its path in the subsystem (false: it has none there). */
void slu_graph_name_put(const struct slu_graph *g, uint32_t v, struct slu_buf *out);
bool slu_graph_path_put(const struct slu_graph *g, uint32_t v, uint8_t subsystem,
			struct slu_buf *out);
/* Append the text of one path record. */
void slu_graph_path_text(const struct slu_graph *g, uint32_t path, struct slu_buf *out);
/* The name as a string: a stored one, or composed in `scratch` (reset first). */
const char *slu_graph_name(const struct slu_graph *g, uint32_t v, struct slu_buf *scratch);
bool slu_graph_name_is(const struct slu_graph *g, uint32_t v, const char *name);

/* Vertices with this path in any subsystem, in order of creation: start with *cursor = 0, ends with
 * SLU_NONE.  Do not change the graph in between. */
uint32_t slu_graph_by_path(const struct slu_graph *g, const char *path, uint32_t *cursor);
/* Whether the vertex has exactly this path in the subsystem. */
bool slu_graph_has_path(const struct slu_graph *g, uint32_t v, uint8_t subsystem, const char *path);
/* Vertices of a rank in order of creation; *n = 0 if none.  Borrowed until the graph changes.
 * NULL with *n = 0 when memory runs out, too. */
const uint32_t *slu_graph_by_rank(struct slu_graph *g, int64_t rank, uint32_t *n);
/* The edge src -> dst, or SLU_NONE. */
uint32_t slu_graph_edge(const struct slu_graph *g, uint32_t src, uint32_t dst);

/* The counts that -e prints after loading. 0 or -ENOMEM. */
struct slu_graph_counts {
	uint32_t vertices, edges, by_type, by_name, by_path;
	uint32_t ranks; /* different ranks; see slu_graph_rank_counts */
};
int slu_graph_counts(struct slu_graph *g, struct slu_graph_counts *out);
/* Call `fn` for each rank ascending with its number of vertices. */
int slu_graph_rank_counts(struct slu_graph *g, void (*fn)(void *arg, int64_t rank, uint32_t n),
			  void *arg);

#define slu_graph_each_out(G, V, E) \
	for (uint32_t E = (G)->v.p[V].out_first; E != SLU_NONE; E = (G)->e.p[E].next_out)
#define slu_graph_each_in(G, V, E) \
	for (uint32_t E = (G)->v.p[V].in_first; E != SLU_NONE; E = (G)->e.p[E].next_in)
