/* hold.h — held work: which objects are held, how they are let go, and what others are
 * told about them.
 *
 * In namespaces where holding is switched on, all work is held: pods carry our scheduling gate, Jobs
 * are suspended as well, and templates carry the gate too, so that no pod can start before its
 * place is decided, no matter which controller makes the pod.  The gate is the guard; suspending a Job
 * only avoids making pods that would wait.  A pod that carries the gate is planned like any other.
 * Once its place is durable it is *released*: pinned to its node by required node affinity and
 * freed of the gate, in one patch; the scheduler it names then binds it there.  Work that names
 * Sluice as its scheduler needs neither gate nor pin: nobody else binds it.
 *
 *	         admission or controller      decided             the named scheduler
 *	object ───────────────────────► held ────────► released ──────────────────────► running
 *
 * The rules here are pure: they look at objects and write texts.  Their state is in hold/objects.c. */
#pragma once
#include "base/buf.h"
#include "control/config/config.h"
#include "kube/object.h"

/* Our scheduling gate (Fluxqueue's name for it), removed only by us; other gates are left alone. */
#define SLU_HELD_GATE "fluxqueue"

/* Label of a namespace: "true" holds everything in it; "own", "bind" and "compatible" name the mode, too. */
#define SLU_HELD_SPACE "sluice.sh/hold"

/* Annotation of what is held: "yes" (by us), "user" (a Job that came suspended: not ours to
 * resume), "released" (a Job whose places are decided). */
#define SLU_HELD_MARK "sluice.sh/held"
/* Annotation of a Job that we resumed before its turn: its pods wait at the gate.  (Not a value of
 * the one above: the patch that releases the Job may overtake this one.) */
#define SLU_HELD_AHEAD "sluice.sh/ahead"
/* On released pods: label with the pod's node (left out beyond 63 characters), the same as
 * annotation, annotation with the nodes of the whole group, label with them where it fits. */
#define SLU_HELD_NODE       "sluice.sh/node"
#define SLU_HELD_NODES      "sluice.sh/nodes"
#define SLU_HELD_FLUX_NODES "fluxqueue/fluxion-nodes"
#define SLU_HELD_FLUX_JOBID "fluxqueue/jobid"
#define SLU_HELD_FLUX_NEVER "fluxqueue/unschedulable"
#define SLU_HELD_FLUX_SEEN  "fluxqueue.seen"
/* On a released Job: "node*2,node", the places its pods will get; enough to go on after a restart
 * without a store. */
#define SLU_HELD_PLACES    "sluice.sh/places"
#define SLU_HELD_SCHEDULER "FluxionScheduler"

/* ---- views: what the FluxJob writer sees of a held object ---- */

enum slu_held_state {
	SLU_HELD_HELD,     /* not in the queue: not whole yet, suspended by its user, other gates */
	SLU_HELD_QUEUED,   /* waits for its turn; position and estimate are filled */
	SLU_HELD_RELEASED, /* its nodes are chosen; not all pods run yet */
	SLU_HELD_RUNNING,  /* all pods it needs run */
	SLU_HELD_DONE,     /* ended by itself; `ok` tells how */
	SLU_HELD_REFUSED,  /* can never run, or its objects make no sense; `reason` says why */
	SLU_HELD_CANCELLED, /* taken out of the queue by a person */
};

/* One held object: the outermost one of a kind we know (a Deployment, not its ReplicaSet; a Job,
 * not the JobSet above it; a pod only if no such object made it).  Strings are borrowed for the
 * call. */
struct slu_held_view {
	const struct slu_kobj *obj; /* Pod, Job, Deployment, ReplicaSet or StatefulSet */
	const char *group;          /* key of its group in the core; "" while it has none */
	const char *user;           /* who submitted it, else the namespace */
	uint64_t job;               /* number in the queue, as in fluxqueue/jobid; 0: none yet */
	enum slu_held_state state;
	bool ok;            /* DONE: succeeded */
	uint32_t pods;      /* wanted: parallelism, replicas, 1 */
	uint32_t running;   /* of them */
	uint32_t position;  /* QUEUED: place in the queue, from 1; 0: none */
	int64_t planned_s;  /* QUEUED: expected start; 0: not known */
	int64_t start_s;    /* RELEASED and later; 0: not yet */
	const char *nodes;  /* RELEASED and later: distinct names, comma between; else "" */
	const char *reason; /* one sentence; "" when there is nothing to say */
};

/* A listener for views.  Called on the core thread inside a cycle, after decisions: `seen` for every
 * held object whose view changed since it was last told (its state at once, the rest at most once
 * in status.interval), and once for each after a start; `gone` when the object is deleted or is not
 * held any more.  `v` is borrowed for the call. */
struct slu_held_sink {
	void (*seen)(void *arg, const struct slu_held_view *v);
	void (*gone)(void *arg, const struct slu_kobj *obj);
	void *arg;
};

/* ---- which objects ---- */

enum slu_held_mode {
	SLU_HELD_OFF,
	SLU_HELD_OWN,        /* schedulerName is left as it is */
	SLU_HELD_BIND,       /* what Sluice can decide alone names Sluice and has no gate */
	SLU_HELD_COMPATIBLE, /* as Fluxqueue: FluxionScheduler */
};
/* How work of the namespace is treated, by its labels and the configuration. */
enum slu_held_mode slu_held_space(const struct slu_config *cfg, const struct slu_kmeta *ns);

/* The spec carries our gate / no other gate keeps it (ours alone, or none). */
bool slu_held_gated(const struct slu_kpodspec *s);
bool slu_held_free(const struct slu_kpodspec *s);
/* Whether only Sluice can start pods of this spec: they carry our gate or name a scheduler of ours. */
bool slu_held_kept(const struct slu_config *cfg, const struct slu_kpodspec *s);
/* Whether the object was held at admission, and still is. */
bool slu_held_marked(const struct slu_config *cfg, const struct slu_kobj *o,
		     const struct slu_kpodspec *s);
/* Where the pod was released to; NULL: it was not. */
const char *slu_held_node(const struct slu_kpod *p);
/* A Job that is suspended by us and waits for us. */
bool slu_held_waits(const struct slu_config *cfg, const struct slu_kjob *j);
/* A Job that we resumed before its turn, and that has not had its turn yet. */
bool slu_held_ahead(const struct slu_config *cfg, const struct slu_kjob *j);
/* The template an object makes its pods from; NULL: it makes none. */
const struct slu_ktemplate *slu_held_template(const struct slu_kobj *o);

/* ---- letting go: bodies of strategic merge patches, appended ---- */

struct slu_held_place {
	const char *node;  /* its name */
	const char *host;  /* its label kubernetes.io/hostname; NULL or "": pinned by name */
	const char *nodes; /* of the whole group, comma between */
	uint64_t job;
	const char *places; /* Jobs: "node*2,node" */
	bool binds;         /* pods: we bind it ourselves, so it needs no pin */
};

/* Pin and free a pod: the host name is added to every term of its required node affinity (it never
 * gets looser), our gate is removed, labels and annotations are set.  A pin cannot be taken off
 * again: a pod that we bind has none, and can be planned again if the binding comes to nothing. */
int slu_held_release_pod(const struct slu_kpod *p, const struct slu_held_place *at,
			 struct slu_buf *out);
/* Resume a Job; its pods appear with the gate and get their places one by one. */
int slu_held_release_job(const struct slu_kjob *j, const struct slu_held_place *at,
			 struct slu_buf *out);
/* Note the places on a Job that was resumed before its turn and has all its pods. */
int slu_held_note_job(const struct slu_kjob *j, const struct slu_held_place *at,
		      struct slu_buf *out);
/* Resume a Job whose turn comes soon: its pods are made, and wait at the gate. */
int slu_held_go_ahead(const struct slu_kjob *j, struct slu_buf *out);
/* Suspend a resumed Job again, of which nothing runs yet: it goes back into the queue. */
int slu_held_again(const struct slu_kjob *j, struct slu_buf *out);
/* Hold an object that the webhook did not see: suspend a Job, put the gate into the template. */
int slu_held_hold(const struct slu_kobj *o, enum slu_held_mode mode, struct slu_buf *out);
