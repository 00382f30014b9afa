/* policy.c — policy names: "first", "lonode", ..., or "policy=high node_centric=true ..."; scores.
 */
#include "match/match_internal.h"

static const struct {
	const char *name;
	struct policy p;
} named[] = {
	{ "first", { SCORE_HIGH, true, false, true } },
	{ "firstnodex", { SCORE_HIGH, true, true, true } },
	{ "high", { SCORE_HIGH, false, false, false } },
	{ "low", { SCORE_LOW, false, false, false } },
	{ "hinode", { SCORE_HIGH, true, false, false } },
	{ "lonode", { SCORE_LOW, true, false, false } },
	{ "hinodex", { SCORE_HIGH, true, true, false } },
	{ "lonodex", { SCORE_LOW, true, true, false } },
	{ "locality", { SCORE_LOCALITY, false, false, false } },
	{ "variation", { SCORE_VARIATION, false, false, false } },
};

static bool word_is(const char *w, size_t n, const char *text)
{
	return strlen(text) == n && memcmp(w, text, n) == 0;
}

/* Read words "key=value" with one blank between them.  As in the reference, the first word that
 * is not understood ends the list without an error, and the first value of a repeated key
 * counts. */
static int custom(const char *text, struct policy *out)
{
	static const char *const keys[] = { "node_centric", "node_exclusive", "stop_on_1_matches" };
	struct policy p = { 0 };
	bool *flag[] = { &p.node_centric, &p.node_exclusive, &p.stop };
	bool high = false, low = false, said[SLU_LEN(keys)] = { 0 };

	for (const char *s = text;; s++) {
		size_t n = strcspn(s, " "), k = strcspn(s, "= "), v, i = 0;
		const char *val = s + k + 1;
		bool yes;

		if (k >= n)
			break;
		v = strcspn(val, "= ");
		if (word_is(s, k, "policy")) {
			bool is_high = word_is(val, v, "high");

			if (!is_high && !word_is(val, v, "low"))
				break;
			high |= is_high;
			low |= !is_high;
		} else {
			while (i < SLU_LEN(keys) && !word_is(s, k, keys[i]))
				i++;
			yes = word_is(val, v, "true");
			if (i == SLU_LEN(keys) || (!yes && (said[i] || !word_is(val, v, "false"))))
				break;
			if (!said[i])
				*flag[i] = yes;
			said[i] = true;
		}
		s += n;
		if (!*s)
			break;
	}
	if (!high && !low)
		return -EINVAL;
	p.scorer = high ? SCORE_HIGH : SCORE_LOW;
	*out = p;
	return 0;
}

int match_policy_parse(const char *text, struct policy *out)
{
	for (size_t i = 0; i < SLU_LEN(named); i++)
		if (strcmp(named[i].name, text) == 0) {
			*out = named[i].p;
			return 0;
		}
	return custom(text, out);
}

bool slu_match_policy_valid(const char *policy)
{
	struct policy p;

	return match_policy_parse(policy, &p) == 0;
}

static int64_t perf_class(const struct slu_graph *g, uint32_t u)
{
	const char *s = slu_graph_property(g, u, "perf_class");
	char *end;
	long long n;

	if (!s)
		return 9999;
	errno = 0;
	n = strtoll(s, &end, 10);
	return end == s || errno || n < 0 || n > 9999 ? 9999 : n;
}

bool match_walk_score(struct slu_match *m, uint32_t u, int64_t centre, int64_t *out)
{
	int64_t id = m->g->v.p[u].id;

	switch (m->policy.scorer) {
	case SCORE_VARIATION:
		*out = 1 + perf_class(m->g, u);
		return true;
	case SCORE_LOCALITY:
		return !__builtin_add_overflow(id, 2, out);
	default:
		return !__builtin_add_overflow(id, 2, out) &&
		       !__builtin_add_overflow(*out, centre, out);
	}
}

bool match_greater_first(const struct slu_match *m)
{
	return m->policy.scorer == SCORE_HIGH || m->policy.scorer == SCORE_LOCALITY;
}

void match_exclusive_always(const struct slu_match *m, uint8_t *types)
{
	if (m->policy.node_exclusive)
		types[SLU_TYPE_NODE] = 1;
	for (uint32_t i = 0; i < m->whole.n; i++)
		types[m->whole.p[i]] = 1;
}
