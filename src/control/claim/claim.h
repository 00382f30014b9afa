/* claim.h — room that clients of the Fluxion services have matched in the cluster.
 *
 * A claim is a FluxJob that exists only here: it has a jobspec, slots for pods (phantoms), a place
 * in the queue and a duration, and it is not written to the cluster.  So the machine of the queue is
 * the only account of free room: gangs of pods and clients never get the same room.  A reservation is
 * a promise like any other, and users see claims among the jobs.
 *
 *	asked ──► queued ──► started ─────► answered; its duration, Cancel or a lost node end it
 *	             │ └──► promised ──────► answered; starts then
 *	             └────► no room ───────► answered; gone
 *
 * An answer waits until its row is in the store (a span of kind "match"), so the answer
 * survives a restart.  The row of a placed claim is written together with the intent of its gang: one
 * commit makes both durable. */
#pragma once
#include "control/fluxjob/fluxjob.h"

struct claim {
	uint64_t number;
	char *name; /* of its FluxJob */
	char *jobspec;
	char *places; /* node of each slot, as a FluxJob's status has it; NULL: it has none yet */
	int64_t start_s; /* of the row: start, or promised start */
	bool reserve, promised;
	bool kept;  /* the claim has a row in the store, or in the batch that goes next */
	bool runs;  /* the claim was seen to run at its places */
	bool shown; /* its FluxJob is in the table */
	const struct slu_kobj *obj; /* that FluxJob */
	struct slu_rec_ask *ask;    /* the request that waits for its answer; NULL: answered */
};

struct claims {
	struct slu_map all;     /* by number */
	SLU_VEC(uint64_t) open; /* numbers of claims that await their answer or do not run yet */
	uint32_t recalled;      /* claims read from the store and not shown yet */
	struct slu_kcodec *codec;
	struct slu_strpool *pool; /* borrowed; NULL: no claims are taken */
	int64_t next_us;          /* when to look again although nothing has happened */
	bool changed;             /* this pass wrote rows, of claims or of their jobs */
	bool waiting;             /* an answer waits for those rows */
	int64_t sweep_us;         /* when some of the running claims were last checked */
	uint32_t swept;           /* the running claim to check next */
};

/* SLU_ASK_MATCH, SLU_ASK_UNMATCH, and SLU_ASK_CANCEL of a claim.  Takes the record over. */
void core_claim_ask(struct slu_core *c, struct slu_rec_ask *a);
bool core_claim_asked(const struct slu_rec_ask *a);
/* Show the claims that the store remembers; called before groups are settled. */
void core_claims_show(struct slu_core *c);
/* Write down where the claims were placed in this cycle, before its batch is sent. */
void core_claims_placed(struct slu_core *c);
/* Answer, record and end claims, after the decisions were carried out.  true: answers wait for rows,
 * which are to be sent now. */
bool core_claims(struct slu_core *c);
int64_t core_claims_wake_us(const struct slu_core *c);
/* Take a claim back from its row in the store.  0 or -ENOMEM. */
int core_claim_recall(struct slu_core *c, const struct slu_store_span *s);
/* Write all rows again. */
void core_claims_keep(struct slu_core *c);
void core_claims_done(struct slu_core *c);
