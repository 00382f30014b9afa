/* hold.h — act on held objects: make stand-ins for suspended Jobs, resume Jobs, pin and free pods;
 * and carry out decisions that are durable. */
#pragma once
#include "control/frame/pace.h"
#include "control/group/held.h"
#include "control/run/run.h"

/* Why a Job that is held has no place in the queue yet. */
#define CORE_CROWDED                                                                      \
	"too many pods of suspended Jobs wait in this namespace, or too many changed at " \
	"once; Sluice tries this Job again soon, and when some of them start"

struct holds {
	struct slu_held_sink sink;
	SLU_VEC(struct pod *) released; /* pods that wait for the scheduler they name */
	uint64_t pass;                  /* number of the last pass that reported all objects */
	int64_t next_moved_us; /* no report before this about jobs that only moved in the queue */
	struct slu_map stands; /* stand-ins by namespace (the address of its pooled name) */
	uint64_t n_stands;     /* stand-ins of all namespaces */
	struct core_pace pace; /* how fast stand-ins are made */
};

/* ---- objects.c ---- */

void core_held_owner(struct slu_core *c, const struct slu_kobj *obj, bool gone);
/* Look again at all objects of the namespace (NULL: of all). */
void core_held_space(struct slu_core *c, const struct slu_kobj *ns);
/* Admission changes the pods of the namespace (NULL: of all) in another way than before. */
void core_held_templates(struct slu_core *c, const char *ns);
void core_held_pod(struct slu_core *c, struct pod *p, bool gone);
/* Hold objects that the webhook missed. */
void core_held_look(struct slu_core *c);
void core_held_done(struct slu_core *c);
/* Remove the stand-ins of the object. */
void core_held_leave(struct slu_core *c, struct held *h);

/* ---- ahead.c ---- */

bool core_ahead_is(const struct slu_core *c, const struct held *h);
/* Number of members of the object that exist and may start. */
uint32_t core_ahead_pods(const struct held *h);
/* Whether the Job has had its turn although the cluster still shows it as resumed ahead. */
bool core_ahead_begun(struct slu_core *c, const struct held *h);
/* Resume Jobs ahead of their turn, or suspend them again. */
void core_ahead(struct slu_core *c);
/* A patch of the Job failed; true: it was an early resume or its suspension, and will be tried again. */
bool core_ahead_written(struct slu_core *c, struct held *h, const struct slu_rec_written *w);

/* ---- release.c ---- */

/* Carry out decisions that are durable: bind, resume, release. */
void core_place_durable(struct slu_core *c);
void core_held_written(struct slu_core *c, const struct slu_rec_written *w);
/* Handle released pods that their scheduler refuses, and resumes and holds that failed. */
void core_held_watch(struct slu_core *c);
/* A watch shows the pod: note whether it is released and not bound yet. */
void core_held_released(struct slu_core *c, struct pod *p);
void core_held_gone(struct slu_core *c, struct pod *p);

/* ---- view.c ---- */

/* Report changed views of held objects to the sink. */
void core_held_report(struct slu_core *c);
