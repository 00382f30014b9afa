/* jobspec.h — a job's request: what resources, for how long, with which constraints.  Version 1 of
 * Flux's jobspec (RFC 14) with Fluxion's extensions, YAML or JSON.
 *
 * A jobspec is one block of memory: everything below hangs in it, is read-only for others and lives
 * until slu_jobspec_free(). */
#pragma once
#include "base/intern.h"

struct slu_constraint;

enum slu_exclusive { SLU_EXCL_UNSAID, SLU_EXCL_FALSE, SLU_EXCL_TRUE };

/* N alone: min = max = N, operator '+', operand 1. */
struct slu_count {
	uint32_t min, max, operand;
	char op; /* '+', '*' or '^' */
};

/* One node of the request tree. */
struct slu_request {
	uint16_t type;  /* number in the graph's table of types */
	uint8_t excl;   /* enum slu_exclusive */
	bool has_count; /* always true after parsing */
	uint32_t index; /* position in pre-order over the whole request, from 0: for side tables */
	struct slu_count count;
	const char *label;        /* "" = none; never NULL */
	const char *unit;         /* the same */
	const char *id;           /* the same */
	struct slu_request *with; /* children, one after another */
	uint32_t nwith;
};

struct slu_jobspec {
	uint32_t version;
	struct slu_request *resources; /* the top-level list */
	uint32_t nresources;
	uint32_t nrequests;                /* nodes in all; every index is below it */
	double duration;                   /* s as written; 0 = as long as the graph lives */
	const char *queue;                 /* NULL = none */
	struct slu_constraint *constraint; /* NULL = none: everything matches */
	struct slu_arena mem;
};

/* Read a jobspec.  Types are looked up in `types` (the graph's), never added.
 * 0; -EINVAL with the reference's text in err ("Key \"type\" missing from resource"); -ENOMEM. */
int slu_jobspec_parse(const char *text, size_t n, const struct slu_intern *types,
		      struct slu_jobspec **out, struct slu_error *err);
/* The same, with at most `hosts` bytes of names in all its host lists. */
int slu_jobspec_parse_within(const char *text, size_t n, const struct slu_intern *types,
			     size_t hosts, struct slu_jobspec **out, struct slu_error *err);
void slu_jobspec_free(struct slu_jobspec *j);
SLU_DEFINE_CLEANUP(struct slu_jobspec, slu_jobspec_free)

/* How many units a node takes if `avail` are free; 0: too few are free. 32-bit unsigned
 * arithmetic, as in the reference. */
uint32_t slu_count_select(const struct slu_count *c, uint32_t avail);
/* The largest number of units a node would take: slu_count_select(c, UINT32_MAX). */
uint32_t slu_count_max(const struct slu_count *c);
