/* machine.h — nodes with sized pools, their places in the topology, and the shares that jobs hold of
 * them over time.
 *
 * A machine is a flat list of nodes.  A node has an amount of each *resource* (millicores,
 * bytes, pod slots, devices, a host port as a resource of size 1 ...) and lies in one *domain* per
 * topology *level* ("rack", "zone").  Work is booked on it by gang.h.
 *
 * Owned by one thread; nothing here locks, prints, asks the time or has globals.  The same calls in
 * the same order give the same answers.  -ENOMEM always leaves the machine as it was.
 *
 * Time is int64_t seconds, intervals are half-open.  Every call that plans takes `now_s`; time
 * never runs backwards: an older now_s counts as the newest one seen. */
#pragma once
#include "base/buf.h"
#include "gang/nodeset.h"

#define SLU_FOREVER       INT64_MAX /* an end that never comes */
#define SLU_RESOURCES_MAX 32u
#define SLU_LEVELS_MAX    8u
#define SLU_NODES_MAX     (1u << 24)
/* Largest amount of one resource in a node: 2^50 (a petabyte, in bytes). */
#define SLU_AMOUNT_MAX (INT64_C(1) << 50)

struct slu_machine;

/* A node: index (low half) and generation (high half), so that a removed node is noticed even when
 * its index has been given away again. */
typedef uint64_t slu_node;
#define SLU_NODE_NONE UINT64_MAX
static inline uint32_t slu_node_index(slu_node n)
{
	return (uint32_t)n;
}

/* An amount of one resource. */
struct slu_amount {
	uint32_t resource;
	int64_t n;
};

/* An empty machine.  NULL: out of memory. */
struct slu_machine *slu_machine_new(void);
/* Frees everything, jobs included.  NULL is fine. */
void slu_machine_free(struct slu_machine *m);
SLU_DEFINE_CLEANUP(struct slu_machine, slu_machine_free)
/* A deep copy with all nodes and bookings, for "what if": neither sees what happens to the other.
 * Handles, resources and levels are the same in both.  NULL: out of memory. */
struct slu_machine *slu_machine_clone(const struct slu_machine *m);

/* Write the whole machine as bytes (a picture), for a log that begins in the middle.  The machine that
 * slu_machine_restore() makes of them gives the same answers from there on: handles, resources, levels,
 * bookings and the order of everything are the same; tags are 0.  Equal machines have equal bytes. */
void slu_machine_picture(const struct slu_machine *m, struct slu_buf *out);
/* -EINVAL: not a picture; -ENOMEM. */
int slu_machine_restore(const void *p, size_t n, struct slu_machine **out);

/* ---- resources and levels: names become small numbers ---- */

/* Number of the resource or level, new if need be; -ENOSPC when there are SLU_RESOURCES_MAX - 1
 * (SLU_LEVELS_MAX) already, -ENOMEM. */
int slu_machine_resource(struct slu_machine *m, const char *name);
int slu_machine_level(struct slu_machine *m, const char *name);
/* The same without adding: -ENOENT. */
int slu_machine_resource_find(const struct slu_machine *m, const char *name);
int slu_machine_level_find(const struct slu_machine *m, const char *name);
/* Borrowed for the life of the machine. */
const char *slu_machine_resource_name(const struct slu_machine *m, uint32_t resource);
const char *slu_machine_level_name(const struct slu_machine *m, uint32_t level);
uint32_t slu_machine_resources(const struct slu_machine *m);
uint32_t slu_machine_levels(const struct slu_machine *m);

/* ---- nodes ---- */

struct slu_node_spec {
	const char *name; /* unique in the machine */
	int64_t rank;     /* logical id: the order the policies go by; ties by name */
	const struct slu_amount *total;
	uint32_t n_total;
	const char *const *domain; /* by level number; NULL entries: in no domain of that level */
	uint32_t n_domain;
	uint64_t tag; /* the caller's own */
	bool down, cordoned;
};

/* -EEXIST: the name is taken; -EINVAL: no such resource or level, a resource twice, a negative amount;
 * -ERANGE: above SLU_AMOUNT_MAX; -ENOSPC: too many nodes.  `out` may be NULL. */
int slu_machine_node_add(struct slu_machine *m, const struct slu_node_spec *spec, slu_node *out,
			 struct slu_error *err);
/* Remove the node and everything booked on it; jobs keep their parts elsewhere (a job with no part
 * left stays known until it is cancelled).  -ENOENT: the node is gone already. */
int slu_machine_node_remove(struct slu_machine *m, slu_node node);
/* New totals; resources not named become 0.  Bookings stay, even if the node is overbooked then. */
int slu_machine_node_resize(struct slu_machine *m, slu_node node, const struct slu_amount *total,
			    uint32_t n_total, struct slu_error *err);
/* Nothing new is placed or planned on a node that is down or cordoned; what is there stays. */
int slu_machine_node_set_down(struct slu_machine *m, slu_node node, bool down);
int slu_machine_node_set_cordoned(struct slu_machine *m, slu_node node, bool cordoned);
int slu_machine_node_set_rank(struct slu_machine *m, slu_node node, int64_t rank);
int slu_machine_node_set_tag(struct slu_machine *m, slu_node node, uint64_t tag);
/* NULL: in no domain of that level. */
int slu_machine_node_set_domain(struct slu_machine *m, slu_node node, uint32_t level,
				const char *domain);

/* SLU_NODE_NONE if there is none of that name. */
slu_node slu_machine_node_find(const struct slu_machine *m, const char *name);
/* The walk over the nodes: indices 0 .. slots - 1, SLU_NODE_NONE where empty. */
uint32_t slu_machine_node_slots(const struct slu_machine *m);
slu_node slu_machine_node_at(const struct slu_machine *m, uint32_t index);
/* The handle still means the node it was made for. */
bool slu_machine_node_is(const struct slu_machine *m, slu_node node);

/* About one node; the handle must be valid.  Names are borrowed until the node goes. */
const char *slu_machine_node_name(const struct slu_machine *m, slu_node node);
uint64_t slu_machine_node_tag(const struct slu_machine *m, slu_node node);
bool slu_machine_node_is_down(const struct slu_machine *m, slu_node node);
bool slu_machine_node_is_cordoned(const struct slu_machine *m, slu_node node);
/* NULL: in none. */
const char *slu_machine_node_domain(const struct slu_machine *m, slu_node node, uint32_t level);
int64_t slu_machine_node_total(const struct slu_machine *m, slu_node node, uint32_t resource);
/* Free at this moment; negative where reality has overbooked the node. */
int64_t slu_machine_node_free(const struct slu_machine *m, slu_node node, uint32_t resource);
/* What work holds at this moment: of the room of a block only what the work in it uses. */
int64_t slu_machine_node_used(const struct slu_machine *m, slu_node node, uint32_t resource);
/* The least that is free during [at_s, end_s), at_s not before the newest now. */
int64_t slu_machine_node_free_during(const struct slu_machine *m, slu_node node, uint32_t resource,
				     int64_t at_s, int64_t end_s);

/* One holder of a share of a node. */
struct slu_node_share {
	uint64_t job;
	uint32_t role, slots;
	int64_t start_s, end_s;
};
/* Shares of the node in no particular but repeatable order; the i-th for i below the count. */
uint32_t slu_machine_node_shares(const struct slu_machine *m, slu_node node);
void slu_machine_node_share(const struct slu_machine *m, slu_node node, uint32_t i,
			    struct slu_node_share *out);

/* ---- the whole ---- */

struct slu_machine_stats {
	uint32_t nodes, up; /* up: neither down nor cordoned */
	uint32_t jobs, running, reserved, blocks;
	uint64_t shares;                  /* job parts on nodes, all times */
	int64_t total[SLU_RESOURCES_MAX]; /* of the nodes that are up */
	int64_t free[SLU_RESOURCES_MAX];  /* of those, now; overbooked nodes count as 0 */
	uint32_t overbooked;              /* nodes with less than nothing free now */
	size_t bytes;                     /* memory held by the machine */
};
void slu_machine_stats(const struct slu_machine *m, struct slu_machine_stats *out);

/* `up` of the above, and `total` of a resource, at no cost. */
uint32_t slu_machine_up(const struct slu_machine *m);
int64_t slu_machine_whole(const struct slu_machine *m, uint32_t resource);

/* Counts every change to nodes or bookings: equal numbers, equal state. */
uint64_t slu_machine_version(const struct slu_machine *m);

/* Let the time pass: reservations whose start has come hold their nodes from now on, blocks whose
 * end has come vanish from the books.  Every planning call does this by itself. */
void slu_machine_advance(struct slu_machine *m, int64_t now_s);
