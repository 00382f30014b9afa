/* constraint.h — which nodes a job may use (RFC 31: properties, hostlist, ranks, and, or, not). */
#pragma once
#include "base/hostlist.h"
#include "base/arena.h"
#include "base/buf.h"

struct slu_constraint;
struct slu_json;

struct slu_constraint_mem {
	struct slu_arena *arena;   /* owns the whole constraint */
	struct slu_hostlist hosts; /* scratch; its ceilings bound all host lists together */
};

/* Build from a parsed mapping.  *out is NULL for the empty mapping.
 * 0; -EINVAL with the reference's text in err; -ENOMEM. */
int slu_constraint_parse(const struct slu_json *v, struct slu_constraint_mem *mem,
			 struct slu_constraint **out, struct slu_error *err);

/* Read a constraint, to match it against something other than a graph. */
enum slu_constraint_op {
	SLU_CONSTRAINT_PROPERTIES, /* all of them */
	SLU_CONSTRAINT_HOSTLIST,   /* any of them */
	SLU_CONSTRAINT_RANKS,
	SLU_CONSTRAINT_AND,
	SLU_CONSTRAINT_OR,
	SLU_CONSTRAINT_NOT, /* not all of them */
};
enum slu_constraint_op slu_constraint_op(const struct slu_constraint *c);
uint32_t slu_constraint_count(const struct slu_constraint *c);
/* The i-th property or host; *negate: the subject must not have the property. */
const char *slu_constraint_word(const struct slu_constraint *c, uint32_t i, bool *negate);
/* The i-th operand of an operation; NULL is always satisfied. */
const struct slu_constraint *slu_constraint_sub(const struct slu_constraint *c, uint32_t i);

/* A node (or a vertex of a graph) as a constraint sees it. */
struct slu_constraint_subject {
	int64_t rank;
	bool (*has)(const void *arg, const char *property);
	const char *(*name)(const void *arg, struct slu_buf *scratch);
	const void *arg;
};
/* Whether the subject satisfies the constraint; every subject satisfies NULL. */
bool slu_constraint_holds(const struct slu_constraint *c, const struct slu_constraint_subject *s);
