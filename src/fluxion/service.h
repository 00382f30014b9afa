/* service.h — the services of Fluence, Fluxnetes and Fluxion on one gRPC server.
 *
 * The service reads and writes the messages and reports errors in the words of the originals.  An engine carries
 * out the matches: on a graph of its own (standalone.h), or in the live cluster (serve/grpc_live.h).  The service
 * passes a question to the engine on the loop's thread; the engine calls slu_flux_done() on that thread, too, at
 * once or later. */
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
	SLU_FLUX_NO_ROOM,  /* the job does not fit now, or never: no service tells which */
	SLU_FLUX_NO_JOB,   /* no job has this number */
	SLU_FLUX_BAD,      /* the question is invalid: `why` says how */
	SLU_FLUX_REFUSED,  /* there is no graph yet, or clients may not change the cluster's */
	SLU_FLUX_NOT_HERE, /* try again later, or elsewhere */
};

struct slu_flux_ask {
	/* the question; texts stay valid until the answer */
	enum slu_flux_op op;
	struct slu_text text; /* jobspec, graph of GROW, or the name of a group */
	void *graph; /* INIT: made by graphs->begin(); the engine may take it and set NULL */
	struct slu_text policy; /* INIT; empty: the engine's */
	struct slu_text name;   /* MATCH: the name of the job; may be empty */
	struct slu_texts paths; /* SHRINK */
	uint64_t job;           /* CANCEL */
	int32_t count;          /* MATCH: number of pods; 0: not given */
	bool reserve;           /* MATCH: reserve a later time if the job does not fit now */
	bool no_exist_ok;       /* CANCEL: succeed also if no such job exists */
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
	struct slu_buf own; /* text made from the message, or a part of it */
	struct slu_grpc_call *call;
	struct slu_flux *service;
	const struct slu_flux_rpc *rpc;
	struct slu_flux_ask *next; /* for the engine's queue */
	bool undo;                 /* the client has left: the engine cancels its match */
};

/* How an engine reads the graph of an INIT: on the loop's thread while the text arrives, beside the graph in use.
 * The engine's `ask` then gets the new graph in the question.  An engine without these functions accepts no
 * graph: the service discards the text as it arrives. */
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

/* New services on an engine.  `external`: also service.ExternalPluginService.  Returns NULL if memory runs out. */
struct slu_flux *slu_flux_new(const struct slu_flux_engine *engine, bool external);
/* Put the services with health and reflection onto a server.  0 or -ENOMEM. */
int slu_flux_serve(struct slu_flux *f, struct slu_grpc *g);
/* Set the status that grpc.health.v1.Health reports. */
void slu_flux_ready(struct slu_flux *f, bool ready);
/* Call this before the server is freed, when the engine has answered every question.  NULL is fine. */
void slu_flux_free(struct slu_flux *f);

void slu_flux_done(struct slu_flux_ask *a);

/* ---- functions for engines ---- */

/* Write the jobspec that Fluence and Fluxnetes make from a pod and a number of pods, as JSON.  0, -EINVAL with the
 * reason, or -ENOMEM. */
int slu_flux_jobspec(const struct slu_flux_podspec *ps, int32_t count, struct slu_buf *out,
		     struct slu_error *err);
/* List the nodes of an allocation in JGF, each with its tasks: the number of its cores divided by `cpu`.  0,
 * -EINVAL or -ENOMEM. */
int slu_flux_nodes(const char *jgf, size_t n, int32_t cpu, struct slu_arena *a,
		   struct slu_subs *out);
