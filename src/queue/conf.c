#include "queue/queue.h"

#include "base/buf.h"

const char *const slu_policy_words[] = {
	"auto",
	[1 + SLU_POLICY_FCFS] = "fcfs",
	[1 + SLU_POLICY_EASY] = "easy",
	[1 + SLU_POLICY_HYBRID] = "hybrid",
	[1 + SLU_POLICY_CONSERVATIVE] = "conservative",
	[1 + SLU_POLICY_FIRST_FIT] = "first-fit",
	[1 + SLU_POLICY_SELECTIVE] = "selective",
	[1 + SLU_POLICIES] = NULL,
};
static const char *const *const policy_name = &slu_policy_words[1];

/* "unknown WHAT "S"; there are A, B, C" */
static int unknown(struct slu_error *err, const char *what, const char *s, const char *const *names)
{
	struct slu_buf b = SLU_BUF_INIT(400);

	for (uint32_t i = 0; names[i]; i++)
		slu_buf_printf(&b, "%s%s", i ? ", " : "", names[i]);
	slu_fail(err, -EINVAL, "unknown %s \"%s\"; choose one of %s", what, s, slu_buf_str(&b));
	slu_buf_done(&b);
	return -EINVAL;
}

static const char *const backfill_name[] = {
	[SLU_BACKFILL_SUBMISSION] = "submission",
	[SLU_BACKFILL_SHORTEST] = "shortest",
	[SLU_BACKFILL_PACKED] = "packed",
	[SLU_BACKFILL_BALANCED] = "balanced",
};

/* What the words mean.  src/queue/README.md has the reasons, docs/sim.md the figures. */
static const struct {
	const char *name;
	enum slu_policy policy;
	enum slu_backfill backfill;
	uint32_t max_stretch;
	int64_t max_wait_s;
} objective[] = {
	{ "balanced", SLU_POLICY_SELECTIVE, SLU_BACKFILL_BALANCED, SLU_STRETCH, SLU_WAIT_S },
	{ "throughput", SLU_POLICY_EASY, SLU_BACKFILL_PACKED, 0, 0 },
	{ "response", SLU_POLICY_SELECTIVE, SLU_BACKFILL_SHORTEST, SLU_STRETCH, 2 * SLU_WAIT_S },
	{ "order", SLU_POLICY_EASY, SLU_BACKFILL_SUBMISSION, 0, 0 },
};
const char *const slu_objective_names[] = { "balanced", "throughput", "response", "order", NULL };

int slu_objective_parse(const char *s, struct slu_queue_conf *c, struct slu_error *err)
{
	for (unsigned i = 0; i < SLU_LEN(objective); i++)
		if (!strcmp(s, objective[i].name)) {
			c->policy = objective[i].policy;
			c->backfill = objective[i].backfill;
			c->max_stretch = objective[i].max_stretch;
			c->max_wait_s = objective[i].max_wait_s;
			return 0;
		}
	return unknown(err, "objective", s, slu_objective_names);
}

int slu_policy_parse(const char *s, enum slu_policy *out, struct slu_error *err)
{
	for (unsigned i = 0; i < SLU_POLICIES; i++)
		if (!strcmp(s, policy_name[i])) {
			*out = (enum slu_policy)i;
			return 0;
		}
	return unknown(err, "policy", s, policy_name);
}

const char *slu_policy_name(enum slu_policy p)
{
	return (unsigned)p < SLU_POLICIES ? policy_name[p] : "?";
}

int slu_backfill_parse(const char *s, enum slu_backfill *out, struct slu_error *err)
{
	for (unsigned i = 0; i < SLU_LEN(backfill_name); i++)
		if (!strcmp(s, backfill_name[i])) {
			*out = (enum slu_backfill)i;
			return 0;
		}
	return slu_fail(
		err, -EINVAL,
		"unknown backfill order \"%s\"; choose one of submission, shortest, packed, "
		"balanced",
		s);
}

const char *slu_backfill_name(enum slu_backfill b)
{
	return (unsigned)b < SLU_LEN(backfill_name) ? backfill_name[b] : "?";
}

/* Decimal >= 1, no sign, no blanks. */
static int parse_depth(const char *key, const char *s, size_t n, uint32_t *out,
		       struct slu_error *err)
{
	uint64_t v = 0;

	if (!n)
		return slu_fail(err, -EINVAL, "%s: no value", key);
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return slu_fail(err, -EINVAL, "%s: \"%.*s\" is not a decimal number", key,
					(int)SLU_MIN(n, (size_t)32), s);
		v = v * 10 + (uint64_t)(s[i] - '0');
		if (v > UINT32_MAX)
			return slu_fail(err, -ERANGE, "%s: too large", key);
	}
	if (v < 1)
		return slu_fail(err, -ERANGE, "%s: must be 1 or more", key);
	*out = (uint32_t)v;
	return 0;
}

int slu_queue_conf_params(struct slu_queue_conf *c, const char *params, struct slu_error *err)
{
	static const char *const key[] = { "queue-depth", "reservation-depth", "max-queue-depth",
					   "max-reservation-depth" };
	uint32_t val[4] = { c->queue_depth, c->reservation_depth, 1000000, 100000 };

	for (const char *p = params; *p;) {
		size_t n = strcspn(p, ","), eq = strcspn(p, "=,");
		unsigned k = 0;

		while (k < 4 && (strlen(key[k]) != eq || memcmp(key[k], p, eq)))
			k++;
		if (k == 4 || p[eq] != '=')
			return slu_fail(err, -EINVAL,
					"unknown parameter \"%.*s\"; choose one of queue-depth, "
					"reservation-depth, max-queue-depth, max-reservation-depth",
					(int)SLU_MIN(n, (size_t)64), p);
		int rc = parse_depth(key[k], p + eq + 1, n - eq - 1, &val[k], err);

		if (rc < 0)
			return rc;
		p += n + (p[n] == ',');
	}
	c->queue_depth = SLU_MIN(val[0], val[2]);
	/* As in Fluxion: a depth that is not below the maximum leaves the old value. */
	if (val[1] < val[3])
		c->reservation_depth = val[1];
	return 0;
}
