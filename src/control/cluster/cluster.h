/* cluster.h — the mirror: nodes, pods and the objects above them, and what pods ask for.
 *
 *	node ──► pods (bound to it)             pod ──► shape ──► where (eligible nodes)
 *
 * Invariant (books): every pod that occupies a node of the machine is counted there exactly once,
 * either by the slot of its run or as foreign work under its own key. */
#pragma once
#include "base/map.h"
#include "control/rules/group.h"
#include "control/rules/hold.h"
#include "control/rules/predicate.h"
#include "control/rules/request.h"
#include "control/cluster/nodeindex.h"
#include "control/frame/frame.h"

struct group;
struct held;
struct run;

/* The largest amount of one resource that a pod takes or a node has: 2^46 (64 TiB, in bytes).  Any
 * user may create pods with a nodeName, and such pods are booked whether they fit or not: 65 536
 * of the largest ones on one node are counted (more: slu_gang_register() refuses them, and nothing
 * fits there anyway).  Quantities become amounts in books.c
 * alone, so that pods of others, adopted pods and those Sluice places are all below it. */
#define CORE_AMOUNT_MAX (INT64_C(1) << 46)

struct node {
	struct slu_entry e;        /* key: name */
	char *name;                /* own copy: pods may name a node that is not in the mirror */
	const struct slu_knode *k; /* NULL: not (or no longer) in the mirror */
	slu_node handle;           /* SLU_NODE_NONE: not in the machine */
	SLU_VEC(struct pod *) pod; /* bound here, or about to be */
	bool drained;              /* the core told the queue to start nothing on this node */
	/* Row of its drain in the store, which stays while the node is away; 0: none. */
	uint64_t drain_id;
	int64_t drain_from_s, drain_to_s; /* its window; to: SLU_TIME_EVER */
	bool away; /* not a drain: the node stopped being ready and is expected back by the window's end */
	const struct slu_kcsinode *csi; /* limits of attached volumes; NULL: none are known */
	SLU_VEC(const struct slu_kobj *) attached; /* its VolumeAttachments */
	bool recount;                              /* on the list cluster.recount */
	bool look;                                 /* on the list cluster.look */
	bool indexed;                              /* in cluster.index, under its present handle */
	bool roomier;         /* ... and what left it may be news for pods that wait */
	struct slu_map ports; /* host ports of its pods (ports.c): how many pods have each */
	const struct slu_ktopology *topology; /* its NUMA zones; NULL: none are published */
};

enum zone_policy {
	ZONES_FREE,       /* zones bind no pod */
	ZONES_RESTRICTED, /* a pod has as few zones as it needs */
	ZONES_SINGLE,     /* a pod has one zone */
};
#define CORE_ZONES_MAX   16u /* of a node; the zones of a node with more do not count */
#define CORE_ZONINGS_MAX 4u  /* kinds of nodes with zones whose shares are counted */

/* Nodes with equal zones: zones.c. */
struct zoning {
	uint32_t n;
	int64_t cpu[CORE_ZONES_MAX];
	int resource; /* its number in the machine */
};

/* A driver of volumes that limits how many a node may have: volumes.c. */
struct driver {
	char *name;
	int resource; /* its number in the machine; -1: not counted */
};
#define CORE_DRIVERS_MAX 4u /* drivers that are planned with: the machine has few resources */

struct reserved_node {
	char *name;
	slu_node handle;
};

/* An object that sets room aside: reservations.c. */
struct reservation {
	struct slu_entry e; /* key: NAMESPACE/NAME, also what the plan calls it */
	char *key;
	const struct slu_kreservation *k; /* NULL: gone, or only the store knows it yet */
	uint64_t id;                      /* of its row in the store; 0: none */
	bool booked;                      /* the reservation is in the plan */
	bool changed;                     /* its spec differs from what was booked */
	bool recalled;                    /* its nodes were read from the store */
	int64_t from_s, to_s;             /* the first occurrence in the plan: present or next */
	int64_t every_s;                  /* from one to the next; 0: there is only one */
	int64_t last_s;                   /* when the last one in the plan begins */
	SLU_VEC(struct reserved_node) node;
	const char *phase; /* as its status says */
	char message[300];
	uint64_t sent;   /* digest of the status written last ... */
	int64_t sent_us; /* ... and when that was */
};

/* Pods with equal terms of required anti-affinity: repel.c. */
struct repel {
	struct slu_entry e;         /* key: the term, as text */
	const struct slu_kobj *pod; /* an example, holds the term */
	const struct slu_kanti *term;
	struct chosen *chosen;    /* the list it stands on, by a label that it asks for */
	struct slu_table domains; /* values of its label, with how many pods carry it there */
	uint64_t serial;
	uint32_t refs;
	uint32_t carried; /* by so many `where`s of pods that Sluice places */
};

struct repels {
	struct repel **p; /* by serial */
	uint32_t n, cap;
};

/* Which nodes a pod may use: shared by all pods with the same wishes. */
struct where {
	struct slu_entry e; /* key: signature */
	struct slu_nodeset *set;
	struct slu_nodeset *prefer; /* the nodes it prefers; NULL: no preference */
	const struct slu_kobj *pod; /* an example, holds the specification */
	struct repels repel;        /* the terms that select such pods */
	struct repels carries;      /* the terms by host that such pods carry */
	bool ports, volumes;
	uint32_t refs;
	char *nowhere; /* why the set is empty; made at the first question */
	/* How many nodes are left out for which reason, since all nodes were looked at together. */
	uint32_t count[SLU_NO_COUNT];
	bool counted; /* ... and no node has changed since */
};

/* A host port that is counted: see cluster/ports.c. */
struct port {
	uint32_t key, resource;
};

/* Amounts and nodes: pods of one shape are interchangeable slots. */
struct shape {
	struct slu_entry e;
	struct where *where;
	struct slu_amount *need;
	uint32_t n_need;
	bool alone; /* host ports that are not counted: one per node */
	uint32_t refs;
};

/* A term that a pod carries, and the domain in which it holds. */
struct repelled {
	struct repel *repel;
	struct domain *domain;
};

struct pod {
	struct slu_entry e; /* key: uid */
	const struct slu_kpod *k;
	struct group *group; /* NULL: not ours to place, or over */
	struct run *run;     /* the run that holds a slot for the pod, or queues for it */
	uint32_t slot_at;    /* where its slot was last; slots move down as others go */
	uint32_t member_at;  /* the same for its place among the members of its group */
	uint32_t maker_at;   /* where its maker was found among those of its group */
	struct node *node;   /* the node on whose list the pod stands */
	struct shape *shape; /* of managed pods only */
	uint64_t serial;     /* unique for the life of the process; key of foreign work */
	/* Members exactly like it that wait and have no record: the record is a lot (run/lots.c). */
	uint32_t others;
	/* The record is a stand-in for a pod that this held Job will make, and not in the table. */
	struct held *stand;
	char *stand_key; /* name of the stand-in in intents */
	bool managed;    /* ours to place: by its schedulerName, or held */
	bool binds;      /* its schedulerName is one of ours: we bind it */
	bool foreign;    /* booked as foreign work, as a whole or what `more` says */
	/* The shape its slot has booked: only what the pod asks for beyond it is foreign work. */
	const struct shape *more;
	SLU_VEC(struct repelled) repels; /* what it forbids where it is */
	struct repels carries;           /* its terms by host; of managed pods only */
	uint8_t zone; /* number of the NUMA zone of its node it is noted in, plus one; 0: none */
	uint32_t said_size; /* on its own labels; 0: nothing */
	bool told;          /* PodScheduled=False was written */
	bool kept;          /* has a row in the store */
	int64_t met_us;     /* since when it waits for its controllers to be seen; 0: it does not */
	bool leaving; /* the pod or its maker is being deleted: never started (group/makers.c) */
	bool stale;   /* of an older template than others of its group */
	bool resized; /* asks for other amounts than its shape, and that is not booked yet */
	bool refused; /* its scheduler refused it on the node it was released to */
	/* The node in the release we sent to the API server; by the time the server answers, the node
	 * may be gone.  NULL: no release was sent. */
	char *sent_to;
	bool vouched;        /* we wrote its release annotations (any user could have) */
	int64_t released_us; /* released, but its scheduler has not bound it yet; 0: not so */
};

/* Whether the pod is work of others as a whole. */
static inline bool core_pod_is_foreign(const struct pod *p)
{
	return p->foreign && !p->more;
}

/* Objects that are only looked up: owners by uid, the others by kind and name. */
struct lookup {
	struct slu_entry e;
	char *key;
	const struct slu_kobj *obj;
};

struct cluster {
	struct slu_table nodes, pods, owners, lookups, wheres, shapes, reservations;
	struct slu_table repels, chosen;
	struct repels new_repels; /* pods that wait may be selected by them */
	/* Namespace (the address of its pooled name): number of its repels. */
	struct slu_map space_terms;
	struct slu_table spaces; /* namespaces with LimitRanges: admission.c */
	int32_t default_priority;
	int resource_pods;
	uint64_t resources_asked; /* bits: resources that pods named and no node has had */
	bool new_resources;       /* a node brought resources that were not counted before */
	SLU_VEC(struct port) port;
	bool wider; /* a set of eligible nodes has grown since this was cleared */
	SLU_VEC(struct driver) driver;
	SLU_VEC(struct zoning) zoning;
	bool zones_changed;             /* nodes with other zones may have come */
	SLU_VEC(struct node *) recount; /* volumes were attached or detached there */
	SLU_VEC(struct node *) look;    /* pods came or went that others may not meet there */
	struct slu_table claims_used;
	struct nodeindex index;
	bool index_broken; /* memory ran out: the index is rebuilt before it is used */
};

static inline struct pod *pod_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct pod, e) : NULL;
}
static inline struct node *node_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct node, e) : NULL;
}
static inline struct where *where_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct where, e) : NULL;
}

/* ---- books.c: reports nodes, amounts and foreign pods to the queue ---- */

/* Whether the node has the label `want`: "key" or "key=value". */
bool core_node_labelled(const struct slu_knode *k, const char *want);
struct node *core_node(struct slu_core *c, const char *name); /* made if need be; NULL: no memory */
/* Forget nodes that are not in the mirror and that no pod names any more.  Any user may name a node
 * that does not exist, so they would pile up. */
void core_nodes_forget(struct slu_core *c);
/* Free a node that is in no table any more. */
void core_node_free(struct node *n);
/* Describe the node to the queue, for the first time or again; all nodes that the queue has. */
void core_node_describe(struct slu_core *c, struct node *n);
void core_nodes_describe(struct slu_core *c);
void core_foreign_add(struct slu_core *c, struct pod *p);
void core_foreign_remove(struct slu_core *c, struct pod *p);
/* The pod was resized in place: book as foreign work what it holds beyond `booked`. */
void core_foreign_more(struct slu_core *c, struct pod *p, const struct shape *booked);
/* The amounts booked as foreign work for the pod: all it asks for, or what exceeds its slot. */
int core_foreign_amounts(struct slu_core *c, const struct pod *p, struct slu_amount **out,
			 uint32_t *n);
const char *core_node_name(struct slu_core *c, slu_node n);
/* What the pod asks for, with room for CORE_DRIVERS_MAX + CORE_ZONINGS_MAX amounts behind it. */
int core_amounts(struct slu_core *c, const struct slu_kpodspec *s, struct slu_amount **out,
		 uint32_t *n);
/* Give every node one of each counted port, or the shares of its zones, from now on, and book them for
 * pods that use them already. */
void core_ports_introduce(struct slu_core *c);
void core_zones_introduce(struct slu_core *c);

/* ---- nodes.c ---- */

enum core_node_news {
	CORE_NODE_SAME, /* in all that placement looks at */
	CORE_NODE_CHANGED,
	CORE_NODE_ADDED, /* to the machine: pods that sat there before are not booked yet */
};
enum core_node_news core_node_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
void core_node_enter(struct slu_core *c, struct node *n, struct pod *p);
void core_node_leave(struct slu_core *c, struct pod *p);
/* Before anything runs: number the nodes by their names.  The number decides which of several equal nodes is
 * taken, and must not depend on the order in which this process came to know them. */
void core_nodes_number(struct slu_core *c);
void core_nodes_done(struct slu_core *c);

/* ---- shapes.c ---- */

struct shape *core_shape_get(struct slu_core *c, struct pod *p); /* a reference; NULL: no memory */
void core_shape_put(struct slu_core *c, struct shape *s);
/* Whether a new anti-affinity term that the pod's shape does not know selects the pod. */
bool core_shape_stale(struct slu_core *c, const struct pod *p);
/* Whether the pod's shape was made from other volumes, drivers or zones than are known now. */
bool core_shape_outdated(struct slu_core *c, const struct pod *p);
/* Whether required anti-affinity keeps pods of the two shapes on different hosts; a and b may be one. */
bool core_shapes_apart(const struct shape *a, const struct shape *b);
/* The node changed: compute again which shapes may use it. */
void core_shapes_node(struct slu_core *c, struct node *n);
/* A pod that others may not share a node with came to the node, or left it (`room`): do the same before the
 * next decision, once for all such pods. */
void core_shapes_node_later(struct slu_core *c, struct node *n, bool room);
/* Do so now. */
void core_shapes_look(struct slu_core *c);
/* Whether pods of the shape may use the node, with all pods that are there now. */
bool core_shape_allows(struct slu_core *c, const struct shape *s, const struct node *n);
/* A volume changed: compute again which nodes shapes with volumes may use. */
void core_shapes_volumes(struct slu_core *c);
/* Rebuild the sets of all shapes: nodes have new indices. */
void core_shapes_rebuild(struct slu_core *c);
/* The claim came into use or became free. */
void core_shapes_claim(struct slu_core *c, const char *ns, const char *claim);

/* Why no node may take pods of the shape: ": node selector on 16, ...".  If some node may, the reasons
 * that keep such pods off other nodes only as long as certain pods run; "": none. */
const char *core_nowhere(struct slu_core *c, const struct shape *s);

/* ---- eligible.c ---- */

/* The first reason why pods of such wishes may not use the node. */
enum slu_no core_against(struct slu_core *c, const struct where *w, const struct node *n);
/* All nodes that they may use, and how many may not be used for which reason; NULL: no memory. */
struct slu_nodeset *core_eligible(struct slu_core *c, const struct where *w,
				  uint32_t count[SLU_NO_COUNT]);
/* Those of the nodes in `good` that such pods prefer: by their own preferences, and by taints of nodes that
 * say PreferNoSchedule.  0, or -ENOMEM; *out NULL: no preference. */
int core_preferred(struct slu_core *c, const struct where *w, const struct slu_nodeset *good,
		   struct slu_nodeset **out);
/* Put the node into the index: it is in the machine, or its labels or taints changed. */
void core_index_node(struct slu_core *c, struct node *n);
/* Take the node out of the index: it is about to leave the machine, or to change; `k`: as it was. */
void core_unindex_node(struct slu_core *c, struct node *n, const struct slu_knode *k);
/* Rebuild the index: nodes have new numbers. */
void core_reindex(struct slu_core *c);

/* ---- repel.c ---- */

void core_repel_enter(struct slu_core *c, struct node *n, struct pod *p);
void core_repel_leave(struct slu_core *c, struct node *n, struct pod *p);
/* Whether the term selects pods with that metadata; whether it keeps such pods away from the node. */
bool core_repel_selects(struct slu_core *c, const struct repel *r, const struct slu_kmeta *m);
bool core_repel_forbids(const struct repel *r, const struct slu_knode *k);
/* Remove from the set the nodes that the term keeps pods away from. */
void core_repel_without(const struct repel *r, const struct nodeindex *x, struct slu_nodeset *set);
/* Whether a pod that the term selects is on the node already. */
bool core_repel_meets(struct slu_core *c, const struct repel *r, const struct node *n);
/* The terms that select a pod with that metadata, a reference each; 0 or -ENOMEM. */
int core_repels_of(struct slu_core *c, const struct slu_kmeta *m, struct repels *out);
/* The terms by host that the pod carries, a reference each; -ENOSPC: too many different ones. */
int core_repels_carried(struct slu_core *c, const struct slu_kobj *pod, struct repels *out);
void core_repels_put(struct slu_core *c, struct repels *r); /* the references */
/* Whether the spec has terms by host, and Sluice cannot follow further different ones. */
bool core_repels_full(const struct slu_core *c, const struct slu_kpod *k);
/* A pod on the node that may not share it with this pod, by required anti-affinity; NULL: none. */
const struct pod *core_repels_clash(struct slu_core *c, const struct node *n, const struct pod *p);
void core_repel_unref(struct slu_core *c, struct repel *r);

/* ---- ports.c ---- */

int core_port_resource(const struct slu_core *c, const struct slu_khostport *p); /* or -ENOENT */
/* Count the host ports of the spec from now on; true: some are new, and core_ports_introduce() is due. */
bool core_ports_want(struct slu_core *c, const struct slu_kpodspec *s);
bool core_ports_counted(const struct slu_core *c, const struct slu_kpodspec *s); /* all of them */
/* Note the ports of a pod that comes to the node; -ENOMEM leaves the node as it was. */
int core_ports_enter(struct node *n, const struct slu_kpodspec *s);
void core_ports_leave(struct node *n, const struct slu_kpodspec *s);
/* A pod on the node has one of the ports; `own` (may be NULL): the same ports from core_ports_map(). */
bool core_ports_taken(const struct node *n, const struct slu_kpodspec *s,
		      const struct slu_map *own);
int core_ports_map(const struct slu_kpodspec *s, struct slu_map *out);
/* Whether another pod on the node uses an uncounted host port of the pod. */
bool core_ports_clash(const struct slu_core *c, struct node *n, const struct pod *p);
/* At most nhost_ports amounts. */
uint32_t core_ports_amounts(const struct slu_core *c, const struct slu_kpodspec *s,
			    struct slu_amount *out);

/* ---- zones.c ---- */

/* Whether an empty zone of the node could take the pod, if zones bind it there. */
bool core_zones_allow(const struct node *n, const struct slu_kpodspec *s);
/* Whether no zone of the node has room for the pod now. */
bool core_zones_full(const struct node *n, const struct pod *p);
/* Assign the pod to a zone of the node. */
void core_zones_enter(const struct node *n, struct pod *p);
/* Count the zones of all kinds of nodes from now on, if the pod is bound by zones; true: some are new,
 * and core_zones_introduce() is due. */
bool core_zones_want(struct slu_core *c, const struct slu_kpodspec *s);
/* What a slot of the pod takes on nodes of each kind. */
uint32_t core_zones_amounts(const struct slu_core *c, const struct slu_kpodspec *s,
			    struct slu_amount out[CORE_ZONINGS_MAX]);
/* What the pod takes on the node it is on; false: nothing. */
bool core_zones_taken(const struct slu_core *c, const struct pod *p, struct slu_amount *out);
int64_t core_zones_total(const struct slu_core *c, const struct node *n, const struct zoning *z);
bool core_zones_stale(const struct slu_core *c, const struct pod *p); /* as core_volumes_stale() */
bool core_zones_same(const struct slu_ktopology *a, const struct slu_ktopology *b);

/* ---- inside.c ---- */

void core_volumes_enter(struct slu_core *c, struct node *n, const struct pod *p);
void core_volumes_leave(struct slu_core *c, struct node *n, const struct pod *p);
/* Report the volumes of the nodes on the list `recount` to the queue. */
void core_volumes_count(struct slu_core *c);
/* Returns true if a driver that had no limit on any node has one now. */
bool core_csinode_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
void core_attachment_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
void core_volumes_done(struct slu_core *c);
void core_zones_changed(struct slu_core *c, struct node *n); /* labels, allocatable */
/* Returns true if the zones of a node have changed for pods that wait. */
bool core_topology_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);

/* ---- volumes.c ---- */

/* Count the drivers of the pod's volumes from now on; true: some are new, and core_nodes_describe() is due. */
bool core_volumes_want(struct slu_core *c, const struct slu_kpod *k);
/* How many volumes of each counted driver a slot of the pod takes. */
uint32_t core_volumes_amounts(struct slu_core *c, const struct slu_kpod *k,
			      struct slu_amount out[CORE_DRIVERS_MAX]);
/* Whether the pod's shape was made from other volumes or drivers than are known now. */
bool core_volumes_stale(struct slu_core *c, const struct pod *p);
/* How many volumes of the driver the node has, as the core reports it to the queue. */
int64_t core_volumes_total(struct slu_core *c, const struct node *n, const struct driver *d);
/* Whether the node has no room for the volumes of the pod now; `counted`: look at the drivers that are
 * resources of the machine, too. */
bool core_volumes_full(struct slu_core *c, const struct node *n, const struct slu_kpod *k,
		       bool counted);
/* Whether core_volumes_full() has a driver to look at that is no resource of the machine. */
bool core_volumes_beyond(const struct slu_core *c);
void core_volumes_recount(struct slu_core *c, struct node *n); /* before the next decision */
/* Note that a CSINode limits the driver; true: none did before. */
bool core_driver_remember(struct slu_core *c, const char *name);
/* Pods that have a node and use the claim. */
struct claim_use {
	struct slu_entry e; /* key: NAMESPACE/NAME */
	char *key;
	uint32_t pods;
};
#define CORE_CLAIM_KEY 600
bool core_claim_key(char out[CORE_CLAIM_KEY], const char *ns, const char *claim);
struct claim_use *core_claim_use(struct slu_core *c, const char *ns,
				 const char *claim); /* or NULL */
bool core_claim_is_once(struct slu_core *c, const char *ns,
			const char *claim); /* ReadWriteOncePod */
/* Whether a pod that has a node uses a claim of the pod that is for one pod only; `placed`: the pod
 * itself is on a node. */
bool core_claims_taken(struct slu_core *c, const struct slu_kpod *k, bool placed);
struct core_shared_claim {
	const char *claim; /* NULL: none is shared */
	const struct pod *first, *second;
};
/* Leave out pods of one namespace that share such a claim with one before them; returns how many are
 * left.  `shared` (may be NULL): an example. */
/* The first of the pod's claims that is for one pod only; NULL: it has none. */
const char *core_claim_alone(struct slu_core *c, const struct pod *p);
uint32_t core_claims_once(struct slu_core *c, struct pod **pod, uint32_t n,
			  struct core_shared_claim *shared);

/* ---- lookup.c ---- */

/* Keep the newest version of an owner; true: it differs in a field that Sluice reads. */
bool core_owner_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
/* Keep the newest version of an object; true: it is a volume or a claim, so shapes look again. */
bool core_lookup_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
const struct slu_kobj *core_lookup(struct slu_core *c, enum slu_kkind kind, const char *ns,
				   const char *name);
/* The value of a PriorityClass; the default for "" or for a class that does not exist. */
int32_t core_priority(struct slu_core *c, const char *class);
/* The object with that uid in the namespace, which may stand in front of a slash, as in the key of a group;
 * NULL: not seen.  An owner is in the namespace of what it owns: a reference to any other object is
 * somebody's invention. */
const struct slu_kobj *core_owner(struct slu_core *c, const char *ns, const char *uid);
void core_lookups_done(struct slu_core *c);

/* ---- pods.c ---- */

struct pod *core_pod_new(struct slu_core *c, const struct slu_kpod *k); /* NULL: no memory */
void core_pod_free(struct slu_core *c, struct pod *p);
/* The pod is to be placed: its anti-affinity by host counts before it has a shape. */
void core_pod_carries(struct slu_core *c, struct pod *p);
/* Whether the pod may not be on the node with those there: host ports that are not counted, required
 * anti-affinity by host, claims for one pod only, volumes beyond a limit, zones. */
bool core_pod_clashes(struct slu_core *c, struct node *n, const struct pod *p);
bool core_pod_startable(const struct pod *p);
bool core_pod_stuck(const struct pod *p); /* bound, and a container cannot start */
/* The pod's node, or the one it was released to; NULL: undecided. */
const char *core_pod_at(const struct pod *p);
const char *core_pod_uid(const struct pod *p); /* in intents */
/* The name that intents use for the i-th stand-in of a held Job. */
#define CORE_STAND_KEY 120
void core_stand_key(char *buf, size_t n, const char *job, uint32_t i);
void core_source(struct slu_core *c, const struct slu_kpod *k, struct slu_group_source *out);
bool core_binds(const struct slu_core *c, const struct slu_kpod *k); /* Sluice binds this pod */
void core_pods_done(struct slu_core *c);

/* ---- admission.c ---- */

void core_limits_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
/* A pod as `from` makes it from its template and the server admits it; NULL: no memory. */
const struct slu_kobj *core_admitted(struct slu_core *c, const struct slu_kobj *from,
				     const struct slu_ktemplate *t);
void core_admission_done(struct slu_core *c);

/* ---- drains.c ---- */

#define CORE_DRAIN_PREFIX "drain:"          /* spans of drains are called this and the node */
#define CORE_DRAIN_AWAY   "{\"away\":true}" /* ... of a node that is expected back, in the store */
int core_node_drain(struct slu_core *c, struct node *n, bool drain); /* tell the queue */
/* Whether the node is in a drain window that ends: the plan counts on its return although the node may
 * be down or cordoned. */
bool core_drain_covers(const struct slu_core *c, const struct node *n);
bool core_drain_over(const struct slu_core *c, const struct node *n);
void core_drain_timer(struct slu_core *c, const struct node *n); /* when its window begins, ends */
void core_drain_put(struct slu_core *c, struct node *n, bool drain); /* its row in the store */
void core_drain_keep(struct slu_core *c, struct node *n); /* in the store, if it is drained */
void core_drain_back(struct slu_core *c, struct node *n); /* the node is (again) in the machine */

/* ---- windows.c ---- */

/* Drain the node in that window (to_s 0: for ever), or let it take work again. */
int core_drain_ask(struct slu_core *c, const char *name, bool drain, int64_t from_s, int64_t to_s,
		   struct slu_error *err);
/* The node is, or is no longer, ready: expect it back for nodes.expectBack, or use it again. */
void core_drain_away(struct slu_core *c, struct node *n, const struct slu_knode *was);
void core_drains(struct slu_core *c); /* windows that begin or end now */
int core_drain_recall(struct slu_core *c, const struct slu_store_span *s); /* from the store */

/* ---- reservations.c ---- */

void core_reservation_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
int core_reservation_recall(struct slu_core *c, const struct slu_store_span *s);
void core_reservations(struct slu_core *c); /* plan what is new, end what is over */
void core_reservations_leave(struct slu_core *c, const struct node *n); /* before its removal */
void core_reservations_look(struct slu_core *c);  /* nodes came or went: look at all of them */
void core_reservations_again(struct slu_core *c); /* the queue is a new one and knows none */
void core_reservations_keep(struct slu_core *c);  /* write all rows again */
void core_reservations_done(struct slu_core *c);
/* The reservation of that name; NULL: there is none. */
const struct reservation *core_reservation(const struct slu_core *c, const char *ns,
					   const char *name);

/* ---- say.c ---- */

void core_stamp(char out[32], int64_t s); /* a moment, as in objects */
/* An event on the pod (on the Job a stand-in is of). */
void core_tell(struct slu_core *c, struct pod *p, const char *reason, bool warning, const char *fmt,
	       ...) SLU_PRINTF(5, 6);
/* A warning on the pod and on the object above it that people made: `kubectl describe job` shows no
 * events of pods. */
void core_tell_maker(struct slu_core *c, struct pod *p, const char *reason, const char *text);
/* Write the condition PodScheduled=False with the reason Unschedulable. */
void core_tell_unschedulable(struct slu_core *c, struct pod *p, const char *text);
void core_evict(struct slu_core *c, const struct pod *p);
