/* life.h — the state of a group's life, computed from the objects that exist and the store's row.
 *
 * A group is a name; its life is what the objects behind that name make of it.  Its makers (Jobs,
 * sets, Deployments) say how many members it asks for, its pods say how far it has come.  The
 * table of docs/groups.md ("The life of a group") has one row per kind and situation; this module
 * is that table as a function.  It keeps no state. */
#pragma once
#include "kube/object.h"

/* An object that makes members: the Deployment, not its ReplicaSets. */
struct slu_life_maker {
	const struct slu_kobj *obj; /* NULL: its members still name it, but it is gone */
	bool held; /* suspended by us: it asks for what it would make, were it resumed */
};

/* A pod of the group that has not ended (or what stands for one). */
struct slu_life_member {
	const struct slu_kpod *pod;
	uint32_t maker;  /* among the makers; SLU_LIFE_ALONE: it has no maker */
	bool placed;     /* the pod has its node, or was released to one */
	uint32_t others; /* members exactly like it that are not listed */
};
#define SLU_LIFE_ALONE UINT32_MAX

/* What the store remembers of this life; zeros: nothing. */
struct slu_life_row {
	uint32_t size;     /* members the group waited for when its size was last known */
	uint32_t finished; /* members of makers that were seen to succeed */
	uint32_t alone;    /* of those without a maker: the same */
};

struct slu_life_objects {
	const struct slu_life_maker *maker;
	const struct slu_life_member *member;
	uint32_t n_makers, n_members;
	uint32_t named;     /* size that a user wrote down, 0: none */
	bool one_object;    /* the group is what one object makes; no user chose its name */
	bool led;           /* a LeaderWorkerSet's, by its name: one set makes the leaders of all */
	uint32_t led_index; /* ... and its groups have numbers */
	bool lacks_podgroup; /* the group names a PodGroup that does not exist */
	struct slu_life_row row;
};

struct slu_life {
	uint32_t size;  /* members that start together, of a gang that has not begun */
	uint32_t asks;  /* the same now: those whose part is done are not waited for */
	uint32_t wants; /* members its makers want alive now; SLU_LIFE_ALONE ones not counted */
	/* members that have not ended */
	uint32_t waiting; /* may be started */
	uint32_t placed;  /* have a node, and are not leaving */
	uint32_t leaving; /* are being deleted, or their maker is, or wait while it is suspended */
	uint32_t left;    /* of the leaving: have a node */
	bool begun;       /* a member that stays has a node */
	bool whole;       /* enough members to start it */
	bool ending;      /* all its members are leaving */
	bool again;       /* a second life: all that have a node are leaving, and others wait */
	bool over;        /* no members, and no maker will create any */
};

void slu_life(const struct slu_life_objects *o, struct slu_life *out);

/* The pod, or what makes it, is being deleted or gone, or its Job was suspended before it had a
 * node: it is not started. */
bool slu_life_leaves(const struct slu_life_objects *o, const struct slu_life_member *m);

/* Members an object makes at once: parallelism bounded by completions, replicas; -1 when the kind
 * says nothing about it. */
int64_t slu_life_makes(const struct slu_kobj *maker);
/* The same for what it still wants to see alive: without those whose part is done or can no longer
 * be done; 0 when it is suspended, over or being deleted. */
int64_t slu_life_wants(const struct slu_kobj *maker);
