/* The intents of a run: a decision is written to the store before any part of it is written to the cluster,
 * and settled when it has been carried out or given up. */
#include "control/run/run.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"

int core_intend(struct slu_core *c, struct run *r, bool evict)
{
	slu_cleanup(slu_freep) struct slu_intent_pod *ip = slu_reallocarray(NULL, r->slot.n + 1u,
									    sizeof *ip);
	const char *verb = evict ? "evict" : "bind";
	uint64_t id = c->next_intent + 1;
	uint32_t n = 0;

	if (!ip || slu_vec_reserve(&r->intent, r->intent.n + 1) < 0 ||
	    slu_vec_reserve(&c->runs->open, c->runs->open.n + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->slot.n; i++) {
		const struct slot *s = &r->slot.p[i];

		if (evict ? s->pod != NULL
			  : s->state == SLOT_CHOSEN || (s->state == SLOT_BINDING && r->expect_us))
			ip[n++] = (struct slu_intent_pod){ core_pod_uid(s->pod), r->g->ns,
							   s->pod->k->o.meta.name,
							   core_node_name(c, s->node) };
	}
	if (!n)
		return 0;
	if ((!evict && r->gang &&
	     core_run_keep(c, r, r->state == RUN_RUNNING ? SLU_STORE_RUNNING : SLU_STORE_STARTING) <
		     0) ||
	    slu_intent_propose(c->door, id, r->id, c->now_us, verb, ip, n) < 0)
		return -ENOMEM;
	c->next_intent = id;
	r->intent.p[r->intent.n++] = (struct core_intent){ id, r->id, c->now_us, verb };
	r->ticket = UINT64_MAX;
	if (!r->waits)
		c->runs->open.p[c->runs->open.n++] = r;
	r->waits = true;
	return 0;
}

void core_run_intend(struct slu_core *c, struct run *r)
{
	if (core_intend(c, r, false) < 0) {
		/* Without the intent nothing of the run may be written.  The next cycle tries
		 * again. */
		slu_log(SLU_ERROR, "out of memory: intent not recorded",
			SLU_STR("job", r->g->id.name));
		core_group_dirty(c, r->g);
	}
}

void core_intents_settle(struct slu_core *c, struct run *r, enum slu_store_intent_state how)
{
	for (uint32_t i = 0; i < r->intent.n; i++)
		if (slu_intent_settle(c->door, r->intent.p[i].id, r->id, r->intent.p[i].made_us,
				      r->intent.p[i].verb, how) < 0)
			slu_log(SLU_WARN, "intent not settled", SLU_STR("job", r->g->id.name));
	r->intent.n = 0;
}

void core_run_close(struct slu_core *c, struct run *r)
{
	core_intents_settle(c, r,
			    r->state == RUN_RUNNING || r->state == RUN_UNDOING ? SLU_INTENT_DONE
									       : SLU_INTENT_UNDONE);
}
