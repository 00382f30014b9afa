/* service.h — the services of Fluence, Fluxnetes and Fluxion on one gRPC server.
 *
 * This side reads and writes the messages and keeps the originals' words; an engine carries out the
 * matches: on a graph of its own (standalone.h), or in the live cluster.  A question goes to the engine
 * on the loop's thread; the engine answers on that thread too, at once or later, by
 * slu_flux_done(). */
#pragma once
#include "fluxion/messages.h"
#include "rpc/grpc.h"

enum slu_flux_op {
	SLU_FLUX_INIT,
	SLU_FLUX_MATCH,
	SLU_FLUX_CANCEL,
	SLU_FLUX_GROW,
	SLU_FLUX_SHRINK,
	SLU_FLUX_RESOURCES,
	SLU_FLUX_GROUP,
	SLU_FLUX_GROUPS,
};

enum slu_flux_outcome {
	SLU_FLUX_OK,
	SLU_FLUX_NO_ROOM, /* not now, or never: no service tells which */
	SLU_FLUX_NO_JOB,  /* there is no job of that number */
	SLU_FLUX_BAD,     /* the question is wrong: `why` says what */
	SLU_FLUX_REFUSED, /* not in this state: no graph yet, or the cluster's is not the client's */
	SLU_FLUX_NOT_HERE, /* try again later, or elsewhere */
};

struct slu_flux_ask {
	/* the question; texts stay valid until the answer */
	enum slu_flux_op op;
	struct slu_text text; /* jobspec, graph of GROW, or the name of a group */
	void *graph; /* INIT: what the engine made of the text; it takes it, or leaves it */
	struct slu_text policy; /* INIT; empty: the engine's */
	struct slu_text name;   /* MATCH: what the job is called; may be empty */
	struct slu_texts paths; /* SHRINK */
	uint64_t job;           /* CANCEL */
	int32_t count;          /* MATCH: pods; 0: not said */
	bool reserve;           /* MATCH: later rather than not at all */
	bool no_exist_ok;       /* CANCEL: a job that is not there is no failure */
	bool want_nodes;        /* MATCH: fill `nodes` (with `cpu` cores a task), not `out` */
	int32_t cpu;

	/* the answer */
	enum slu_flux_outcome outcome;
	struct slu_buf out; /* allocation, graph, or name */
	uint64_t got;       /* MATCH: the job's number; GROUP, GROUPS: the size */
	bool reserved;
	int64_t at_s; /* start of a reservation */
	double overhead_s;
	struct slu_subs nodes; /* struct slu_flux_node, in the arena */
	struct slu_error why;

	/* the service's own */
	struct slu_arena arena;
	struct slu_buf own; /* a text that was made of the message, or kept of it */
	struct slu_grpc_call *call;
	struct slu_flux *service;
	const struct slu_flux_rpc *rpc;
	struct slu_flux_ask *next; /* for a queue of the engine's */
	bool undo;                 /* the client is gone, and its match is freed */
};

/* The graph of an INIT is read on the loop's thread while it arrives, beside the one in use; `ask` gets
 * it with the rest of the question.  An engine without these takes no graph: the text is thrown away
 * as it comes. */
struct slu_flux_graphs {
	void *(*begin)(void *arg); /* NULL: no memory */
	void (*text)(void *graph, const char *p, size_t n);
	void (*drop)(void *graph);
};

struct slu_flux_engine {
	void (*ask)(void *arg, struct slu_flux_ask *a);
	void *arg;
	const struct slu_flux_graphs *graphs; /* NULL: none */
};

struct slu_flux;

/* `external`: with service.ExternalPluginService.  NULL: no memory. */
struct slu_flux *slu_flux_new(const struct slu_flux_engine *engine, bool external);
/* Put the services with health and reflection onto a server.  0 or -ENOMEM. */
int slu_flux_serve(struct slu_flux *f, struct slu_grpc *g);
/* What grpc.health.v1.Health says. */
void slu_flux_ready(struct slu_flux *f, bool ready);
/* Before the server is freed; the engine must have answered everything.  NULL is fine. */
void slu_flux_free(struct slu_flux *f);

void slu_flux_done(struct slu_flux_ask *a);

/* ---- what engines share ---- */

/* The jobspec Fluence and Fluxnetes make of a pod and a number, as JSON.  0, -EINVAL with the
 * reason, -ENOMEM. */
int slu_flux_jobspec(const struct slu_flux_podspec *ps, int32_t count, struct slu_buf *out,
		     struct slu_error *err);
/* The nodes of an allocation in JGF with their tasks: cores found there divided by `cpu`.  0,
 * -EINVAL, -ENOMEM. */
int slu_flux_nodes(const char *jgf, size_t n, int32_t cpu, struct slu_arena *a,
		   struct slu_subs *out);
