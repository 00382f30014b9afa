#include "control/rules/predicate.h"

#define STATE "node.kubernetes.io/" /* taints that tell the state of a node begin with this */

const char *slu_no_text(enum slu_no n)
{
	static const char *const text[SLU_NO_COUNT] = {
		[SLU_NO_NOT] = "nothing",
		[SLU_NO_SELECTOR] = "node selector",
		[SLU_NO_AFFINITY] = "node affinity",
		[SLU_NO_TAINT] = "untolerated taint",
		[SLU_NO_VOLUME] = "volume elsewhere",
		[SLU_NO_PORT] = "host port taken",
		[SLU_NO_REPELLED] = "anti-affinity of a pod there",
		[SLU_NO_CLAIM] = "ReadWriteOncePod claim in use",
		[SLU_NO_ATTACH] = "no room for another volume",
		[SLU_NO_ZONE] = "NUMA zones too small",
		[SLU_NO_REPELS] = "anti-affinity to a pod there",
	};

	return n < SLU_NO_COUNT ? text[n] : "?";
}

bool slu_predicate_integer(const char *s, int64_t *out)
{
	char *end;

	if (!*s)
		return false;
	errno = 0;
	*out = strtoll(s, &end, 10);
	return !errno && !*end;
}

static bool in_values(const struct slu_kexpr *e, const char *v)
{
	for (uint16_t i = 0; i < e->nvalues; i++)
		if (!strcmp(e->values[i], v))
			return true;
	return false;
}

/* `v` NULL: the key is absent. */
static bool expr_holds(const struct slu_kexpr *e, const char *v)
{
	int64_t have, want;

	switch (e->op) {
	case SLU_SEL_IN:
		return v && in_values(e, v);
	case SLU_SEL_NOT_IN:
		return !v || !in_values(e, v);
	case SLU_SEL_EXISTS:
		return v;
	case SLU_SEL_DOES_NOT_EXIST:
		return !v;
	case SLU_SEL_GT:
	case SLU_SEL_LT:
		if (!v || e->nvalues != 1 || !slu_predicate_integer(v, &have) ||
		    !slu_predicate_integer(e->values[0], &want))
			return false;
		return e->op == SLU_SEL_GT ? have > want : have < want;
	default:
		return false;
	}
}

static bool term_holds(const struct slu_kterm *t, const struct slu_knode *node)
{
	const struct slu_kmeta *m = &node->o.meta;

	if (!t->nexprs && !t->nfields)
		return false;
	for (uint16_t i = 0; i < t->nexprs; i++)
		if (!expr_holds(&t->exprs[i], slu_kmeta_label(m, t->exprs[i].key)))
			return false;
	for (uint16_t i = 0; i < t->nfields; i++) {
		const struct slu_kexpr *f = &t->fields[i];

		if (strcmp(f->key, "metadata.name") || !expr_holds(f, m->name))
			return false;
	}
	return true;
}

bool slu_predicate_labels(const struct slu_kpair *pair, uint16_t npair,
			  const struct slu_kexpr *expr, uint16_t nexpr, const struct slu_kmeta *m)
{
	for (uint16_t i = 0; i < npair; i++) {
		const char *v = slu_kmeta_label(m, pair[i].key);

		if (!v || strcmp(v, pair[i].value))
			return false;
	}
	for (uint16_t i = 0; i < nexpr; i++)
		if (!expr_holds(&expr[i], slu_kmeta_label(m, expr[i].key)))
			return false;
	return true;
}

bool slu_predicate_terms(const struct slu_kterm *t, uint16_t n, const struct slu_knode *node)
{
	for (uint16_t i = 0; i < n; i++)
		if (term_holds(&t[i], node))
			return true;
	return false;
}

static bool tolerates(const struct slu_ktoleration *t, const struct slu_ktaint *taint)
{
	int64_t have, want;

	if (t->effect != SLU_EFFECT_ANY && t->effect != taint->effect)
		return false;
	if (*t->key && strcmp(t->key, taint->key))
		return false;
	switch (t->op) {
	case SLU_TOL_EXISTS:
		return true;
	case SLU_TOL_EQUAL:
		return *t->key && !strcmp(t->value, taint->value);
	case SLU_TOL_LT:
	case SLU_TOL_GT:
		if (!slu_predicate_integer(taint->value, &have) ||
		    !slu_predicate_integer(t->value, &want))
			return false;
		return t->op == SLU_TOL_LT ? have < want : have > want;
	default:
		return false;
	}
}

bool slu_predicate_tolerates(const struct slu_ktoleration *t, uint16_t n,
			     const struct slu_ktaint *taint)
{
	if (taint->effect != SLU_EFFECT_NO_SCHEDULE && taint->effect != SLU_EFFECT_NO_EXECUTE)
		return true;
	for (uint16_t i = 0; i < n; i++)
		if (tolerates(&t[i], taint))
			return true;
	return false;
}

bool slu_predicate_is_state(const struct slu_ktaint *taint)
{
	return !strncmp(taint->key, STATE, strlen(STATE));
}

bool slu_predicate_minds(const struct slu_kpodspec *spec, const struct slu_ktaint *taint)
{
	bool ok = taint->effect != SLU_EFFECT_PREFER_NO_SCHEDULE;

	for (uint16_t j = 0; !ok && j < spec->ntolerations; j++)
		ok = tolerates(&spec->tolerations[j], taint);
	return !ok;
}

enum slu_no slu_predicate_node(const struct slu_kpodspec *spec, const struct slu_knode *node,
			       bool comes_back)
{
	for (uint16_t i = 0; i < spec->nnode_selector; i++) {
		const struct slu_kpair *want = &spec->node_selector[i];
		const char *have = slu_kmeta_label(&node->o.meta, want->key);

		if (!have || strcmp(have, want->value))
			return SLU_NO_SELECTOR;
	}
	if ((spec->flags & SLU_POD_NODE_AFFINITY) &&
	    !slu_predicate_terms(spec->required, spec->nrequired, node))
		return SLU_NO_AFFINITY;
	for (uint16_t i = 0; i < node->ntaints; i++)
		if (!(comes_back && slu_predicate_is_state(&node->taints[i])) &&
		    !slu_predicate_tolerates(spec->tolerations, spec->ntolerations,
					     &node->taints[i]))
			return SLU_NO_TAINT;
	return SLU_NO_NOT;
}

int32_t slu_predicate_score(const struct slu_kpodspec *spec, const struct slu_knode *node)
{
	int32_t score = 0;

	for (uint16_t i = 0; i < spec->npreferred; i++)
		if (term_holds(&spec->preferred[i].term, node))
			score += spec->preferred[i].weight;
	for (uint16_t i = 0; i < node->ntaints; i++)
		score -= slu_predicate_minds(spec, &node->taints[i]);
	return score;
}

bool slu_predicate_scores(const struct slu_kpodspec *spec)
{
	return spec->npreferred > 0;
}

static bool ip_any(const char *ip)
{
	return !*ip || !strcmp(ip, "0.0.0.0") || !strcmp(ip, "::");
}

bool slu_predicate_ports_collide(const struct slu_kpodspec *a, const struct slu_kpodspec *b)
{
	for (uint16_t i = 0; i < a->nhost_ports; i++)
		for (uint16_t j = 0; j < b->nhost_ports; j++) {
			const struct slu_khostport *x = &a->host_ports[i], *y = &b->host_ports[j];

			if (x->port == y->port && x->proto == y->proto &&
			    (ip_any(x->ip) || ip_any(y->ip) || !strcmp(x->ip, y->ip)))
				return true;
		}
	return false;
}

bool slu_predicate_by_host(const struct slu_kanti *t)
{
	return !strcmp(t->topology, "kubernetes.io/hostname");
}

const char *slu_predicate_foreign(const struct slu_kpodspec *spec)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} row[] = {
		{ SLU_POD_AFFINITY_REQUIRED, "required pod affinity" },
		{ SLU_POD_SPREAD_HARD, "a hard topology spread" },
		{ SLU_POD_RESOURCE_CLAIMS, "resource claims" },
		{ SLU_POD_INLINE_DISK, "an in-line disk volume" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++)
		if (spec->flags & row[i].flag)
			return row[i].text;
	for (uint16_t i = 0; i < spec->nanti; i++)
		if (!slu_predicate_by_host(&spec->anti[i]))
			return "required pod anti-affinity by more than a host";
	return NULL;
}
