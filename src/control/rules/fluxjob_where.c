/* Constraints of a jobspec (RFC 31) as a required node affinity: alternatives of conditions that
 * all hold, the only form in which Kubernetes can select nodes. */
#include "control/rules/fluxjob_where.h"

#include "wire/jsonw.h"

#define TERMS 64u
#define LITS  32u

struct lit {
	const struct slu_constraint *of;
	uint32_t i; /* which property; a list of hosts is one condition */
	bool no;
};

/* Any of the terms, each with all of its conditions. */
struct any {
	uint32_t n;
	uint32_t lits[TERMS];
	struct lit lit[TERMS][LITS];
};

static int too_many(struct slu_error *err)
{
	return slu_fail(err, -EINVAL,
			"spec.jobspec: constraints with more than %u alternatives of %u conditions",
			TERMS, LITS);
}

static int add_term(struct any *a, const struct lit *lit, uint32_t n, struct slu_error *err)
{
	if (a->n == TERMS || n > LITS)
		return too_many(err);
	if (n)
		memcpy(a->lit[a->n], lit, n * sizeof *lit);
	a->lits[a->n++] = n;
	return 0;
}

/* Both hold: every term of one with every term of the other. */
static int cross(struct any *a, const struct any *b, struct slu_error *err)
{
	slu_cleanup(slu_freep) struct any *was = slu_malloc(sizeof *was);
	int rc = 0;

	if (!was)
		return slu_fail(err, -ENOMEM, "out of memory");
	memcpy(was, a, sizeof *was);
	a->n = 0;
	for (uint32_t i = 0; !rc && i < was->n; i++)
		for (uint32_t k = 0; !rc && k < b->n; k++) {
			uint32_t n = was->lits[i] + b->lits[k];

			if (n > LITS)
				return too_many(err);
			rc = add_term(a, was->lit[i], was->lits[i], err);
			if (rc < 0)
				break;
			memcpy(a->lit[a->n - 1] + was->lits[i], b->lit[k],
			       b->lits[k] * sizeof(struct lit));
			a->lits[a->n - 1] = n;
		}
	return rc;
}

static int properties(const struct slu_constraint *c, bool no, struct any *out,
		      struct slu_error *err)
{
	uint32_t n = slu_constraint_count(c);
	struct lit all[LITS];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < n; i++) {
		struct lit l = { c, i, no };

		if (no)
			rc = add_term(out, &l, 1, err);
		else if (i < LITS)
			all[i] = l;
	}
	return no || rc ? rc : add_term(out, all, n, err);
}

static int spread_constraint(const struct slu_constraint *c, bool no, struct any *out,
			     struct slu_error *err)
{
	enum slu_constraint_op op = c ? slu_constraint_op(c) : SLU_CONSTRAINT_AND;
	bool all;
	int rc = 0;

	out->n = 0;
	if (op == SLU_CONSTRAINT_RANKS)
		return slu_fail(err, -EINVAL,
				"spec.jobspec: nodes of a cluster have no ranks; name them in a "
				"hostlist");
	if (op == SLU_CONSTRAINT_PROPERTIES)
		return properties(c, no, out, err);
	if (op == SLU_CONSTRAINT_HOSTLIST)
		return add_term(out, &(struct lit){ c, 0, no }, 1, err);
	no ^= op == SLU_CONSTRAINT_NOT;
	all = (op != SLU_CONSTRAINT_OR) != no;
	if (all)
		rc = add_term(out, NULL, 0, err);
	for (uint32_t i = 0; c && !rc && i < slu_constraint_count(c); i++) {
		slu_cleanup(slu_freep) struct any *part = slu_malloc(sizeof *part);

		if (!part)
			return slu_fail(err, -ENOMEM, "out of memory");
		rc = spread_constraint(slu_constraint_sub(c, i), no, part, err);
		if (!rc && all)
			rc = cross(out, part, err);
		for (uint32_t k = 0; !rc && !all && k < part->n; k++)
			rc = add_term(out, part->lit[k], part->lits[k], err);
	}
	return rc;
}

/* "key": the label must exist; "key=value": it must have that value. */
static void write_property(struct slu_jsonw *w, const char *word, bool no)
{
	const char *eq = strchr(word, '=');

	slu_jsonw_key(w, "key");
	slu_jsonw_strn(w, word, eq ? (size_t)(eq - word) : strlen(word));
	slu_jsonw_kstr(w, "operator",
		       eq ? (no ? "NotIn" : "In") : (no ? "DoesNotExist" : "Exists"));
	if (!eq)
		return;
	slu_jsonw_key(w, "values");
	slu_jsonw_arr(w);
	slu_jsonw_str(w, eq + 1);
	slu_jsonw_end_arr(w);
}

static void write_hosts(struct slu_jsonw *w, const struct lit *l)
{
	bool negate;

	slu_jsonw_kstr(w, "key", "metadata.name");
	slu_jsonw_kstr(w, "operator", l->no ? "NotIn" : "In");
	slu_jsonw_key(w, "values");
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < slu_constraint_count(l->of); i++)
		slu_jsonw_str(w, slu_constraint_word(l->of, i, &negate));
	slu_jsonw_end_arr(w);
}

static void write_named(struct slu_jsonw *w, const char *const *node, uint32_t n)
{
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "key", "metadata.name");
	slu_jsonw_kstr(w, "operator", "In");
	slu_jsonw_key(w, "values");
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < n; i++)
		slu_jsonw_str(w, node[i]);
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
}

/* Write the conditions of one kind into a list that is open. */
static void write_lits(struct slu_jsonw *w, const struct lit *lit, uint32_t n,
		       enum slu_constraint_op op)
{
	for (uint32_t i = 0; i < n; i++) {
		bool negate = false;

		if (slu_constraint_op(lit[i].of) != op)
			continue;
		slu_jsonw_obj(w);
		if (op == SLU_CONSTRAINT_HOSTLIST) {
			write_hosts(w, &lit[i]);
		} else {
			const char *word = slu_constraint_word(lit[i].of, lit[i].i, &negate);

			write_property(w, word, negate != lit[i].no);
		}
		slu_jsonw_end_obj(w);
	}
}

int slu_fluxjob_where(const struct slu_constraint *c, const char *const *node, uint32_t n_node,
		      char **out, struct slu_error *err)
{
	slu_cleanup(slu_freep) struct any *a = slu_malloc(sizeof *a);
	struct slu_buf b = SLU_BUF_INIT(4u << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	int rc;

	*out = NULL;
	if (!a)
		return slu_fail(err, -ENOMEM, "out of memory");
	rc = spread_constraint(c, false, a, err);
	if (rc < 0)
		return rc;
	if (!a->n)
		return slu_fail(err, -EINVAL, "spec.jobspec: no node can satisfy its constraints");
	for (uint32_t i = 0; !n_node && i < a->n; i++)
		if (!a->lits[i])
			return 0; /* that one always holds */
	slu_jsonw_arr(&w);
	for (uint32_t i = 0; i < a->n; i++) {
		slu_jsonw_obj(&w);
		slu_jsonw_key(&w, "matchExpressions");
		slu_jsonw_arr(&w);
		write_lits(&w, a->lit[i], a->lits[i], SLU_CONSTRAINT_PROPERTIES);
		slu_jsonw_end_arr(&w);
		slu_jsonw_key(&w, "matchFields");
		slu_jsonw_arr(&w);
		write_lits(&w, a->lit[i], a->lits[i], SLU_CONSTRAINT_HOSTLIST);
		if (n_node)
			write_named(&w, node, n_node);
		slu_jsonw_end_arr(&w);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_arr(&w);
	*out = slu_buf_take(&b);
	return *out ? 0 : slu_fail(err, -ENOMEM, "out of memory");
}
