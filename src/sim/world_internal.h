/* world_internal.h — the simulated world of one run: machine, clock and jobs; only the files of sim/ include it. */
#pragma once
#include "sim/sim.h"

struct end {
	int64_t at_s;
	uint32_t job, gen;
};

struct world {
	const struct slu_trace *t;
	const struct slu_sim_opts *o;
	struct slu_sim *s;
	struct slu_queue *q;
	struct slu_decisions out;
	SLU_VEC(struct end) end; /* heap */
	uint32_t *gen;           /* per job: which of its ends is the true one */
	int64_t *left;           /* per job: slot-seconds of work still to do at `since` */
	int64_t *since;
	SLU_VEC(uint32_t) killed;
	int resource_cpu, resource_mem, resource_gpu, level[3];
	SLU_VEC(struct slu_gang_req) req; /* by request of the trace, roles in `role` */
	SLU_VEC(struct slu_gang_role) role;
	SLU_VEC(struct slu_amount) need;
	SLU_VEC(struct slu_nodeset *) set; /* by interned property, made when needed */
	struct verify *verify;
	uint64_t ended;
	int64_t now_s;
};

/* machine.c: nodes, queues and requests of the trace as the queue wants them. */
int sim_world_build(struct world *w, struct slu_error *err);
void sim_world_done(struct world *w);

/* verify.c: an independent ledger, fed with decisions and ends alone. */
struct verify;
int sim_verify_new(struct world *w, struct verify **out);
void sim_verify_free(struct verify *v);
/* Look at the decisions of a step; -EUCLEAN with a sentence. */
int sim_verify_step(struct verify *v, const struct world *w, struct slu_error *err);
int sim_verify_submit(struct verify *v, const struct world *w, uint32_t job);
void sim_verify_end(struct verify *v, const struct world *w, uint32_t job);

/* verify_bound.c: the bound on the wait, for verify.c. */
struct bound;
int sim_bound_new(const struct world *w, struct bound **out); /* -ENOMEM: free *out all the same */
void sim_bound_free(struct bound *b);
int sim_bound_submit(struct bound *b, const struct world *w, uint32_t job);
int sim_bound_promise(struct bound *b, const struct world *w, uint32_t job, struct slu_error *err);
int sim_bound_start(struct bound *b, const struct world *w, uint32_t job, struct slu_error *err);
/* After the decisions of a step. */
int sim_bound_step(struct bound *b, const struct world *w, struct slu_error *err);
