/* The index of nodes answers as the predicates do: random nodes that come, change and go, random wishes. */
#include "control/cluster/nodeindex.h"
#include "kube/codec.h"
#include "tap.h"

#define NODES 300u

static struct {
	struct slu_kcodec *codec;
	const struct slu_kobj *node[NODES];
	uint64_t seed;
	struct nodeindex x;
} t;

static uint32_t draw(uint32_t n)
{
	t.seed = t.seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(t.seed >> 33) % n;
}

static const struct slu_kobj *object(enum slu_kkind kind, struct slu_buf *b)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };

	if (slu_kcodec_object(t.codec, kind, SLU_ENC_JSON, slu_buf_str(b), b->n, &o, &err) < 0)
		ok(false, "object: %s: %s", err.text, slu_buf_str(b));
	slu_buf_done(b);
	return o;
}

/* A few keys and values, so that wishes often hold; some are numbers, and one key is that of one node each. */
static void put_value(struct slu_buf *b, uint32_t key, uint32_t at)
{
	static const char *const value[] = { "",  "a",  "b",  "1",
					     "2", "17", "-3", "99999999999999999999" };

	if (key == 0)
		slu_buf_printf(b, "\"n%u\"", at);
	else if (key == 1)
		slu_buf_printf(b, "\"%u\"", draw(200));
	else
		slu_buf_printf(b, "\"%s\"", value[draw(SLU_LEN(value))]);
}

/* `at`: which of the keys; the API server lets no node have two equal taints. */
static void put_taint(struct slu_buf *b, uint32_t at, bool toleration)
{
	static const char *const key[] = { "x", "y", "node.kubernetes.io/not-ready" };
	static const char *const effect[] = { "NoSchedule", "NoExecute", "PreferNoSchedule", "" };
	static const char *const op[] = { "Equal", "Exists", "Lt", "Gt" };

	slu_buf_printf(b, "{\"key\":\"%s\"", key[at]);
	slu_buf_puts(b, ",\"value\":");
	put_value(b, 2, 0);
	if (toleration)
		slu_buf_printf(b, ",\"operator\":\"%s\"", op[draw(4)]);
	slu_buf_printf(b, ",\"effect\":\"%s\"}", effect[draw(toleration ? 4 : 3)]);
}

static const struct slu_kobj *a_node(uint32_t at)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	const char *comma = "";
	uint32_t first = draw(2);

	slu_buf_printf(&b, "{\"metadata\":{\"name\":\"n%u\",\"uid\":\"u%u\",\"labels\":{", at, at);
	for (uint32_t k = 0; k < 6; k++)
		if (draw(4)) {
			slu_buf_printf(&b, "%s\"k%u\":", comma, k);
			put_value(&b, k, at);
			comma = ",";
		}
	slu_buf_puts(&b, "}},\"spec\":{\"taints\":[");
	for (uint32_t k = draw(8); k < 2; k++) {
		put_taint(&b, first + k, false);
		slu_buf_puts(&b, k < 1 ? "," : "");
	}
	slu_buf_puts(&b, "]}}");
	return object(SLU_KIND_NODE, &b);
}

static void put_term(struct slu_buf *b)
{
	static const char *const op[] = { "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt" };
	uint32_t n = draw(4);

	slu_buf_puts(b, "{\"matchExpressions\":[");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t key = draw(7), o = draw(6), values = o < 2 ? 1 + draw(4) : o > 3;

		slu_buf_printf(b, "%s{\"key\":\"k%u\",\"operator\":\"%s\",\"values\":[",
			       i ? "," : "", key, op[o]);
		for (uint32_t k = 0; k < values; k++) {
			slu_buf_puts(b, k ? "," : "");
			put_value(b, key, draw(NODES + 5));
		}
		slu_buf_puts(b, "]}");
	}
	slu_buf_puts(b, "]");
	if (!draw(4))
		slu_buf_printf(
			b,
			",\"matchFields\":[{\"key\":\"%s\",\"operator\":\"%s\",\"values\":[\"n%u\"]}]",
			draw(5) ? "metadata.name" : "metadata.uid", op[draw(20) ? draw(2) : 4],
			draw(NODES + 5));
	slu_buf_puts(b, "}");
}

static const struct slu_kobj *a_pod(void)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	uint32_t terms = 1 + draw(3), preferred = draw(3), tolerations = draw(6);

	slu_buf_puts(
		&b,
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"p\"},\"spec\":{\"nodeSelector\":{");
	if (!draw(3)) {
		slu_buf_printf(&b, "\"k%u\":", 2 + draw(3));
		put_value(&b, 2, 0);
	}
	slu_buf_puts(&b, "},\"affinity\":{\"nodeAffinity\":{");
	if (draw(4)) {
		slu_buf_puts(
			&b,
			"\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[");
		for (uint32_t i = 0; i < terms; i++) {
			slu_buf_puts(&b, i ? "," : "");
			put_term(&b);
		}
		slu_buf_puts(&b, "]},");
	}
	slu_buf_puts(&b, "\"preferredDuringSchedulingIgnoredDuringExecution\":[");
	for (uint32_t i = 0; i < preferred; i++) {
		slu_buf_printf(&b, "%s{\"weight\":%u,\"preference\":", i ? "," : "", 1 + draw(3));
		put_term(&b);
		slu_buf_puts(&b, "}");
	}
	slu_buf_puts(&b, "]}},\"tolerations\":[");
	for (uint32_t i = 0; i < tolerations; i++) {
		slu_buf_puts(&b, i ? "," : "");
		put_taint(&b, draw(3), true);
	}
	slu_buf_puts(&b, "],\"containers\":[{\"name\":\"c\"}]}}");
	return object(SLU_KIND_POD, &b);
}

/* ---- the comparison ---- */

static uint32_t find(const void *arg, const char *name)
{
	uint32_t at = (uint32_t)strtoul(name + 1, NULL, 10);

	return *name == 'n' && at < NODES && t.node[at] ? at : UINT32_MAX;
}

static bool third(const void *arg, const void *tag)
{
	const struct slu_knode *k = tag;

	return strtoul(k->o.meta.name + 1, NULL, 10) % 3 == 0;
}

static void change(uint32_t at)
{
	if (t.node[at]) {
		if (core_index_del(&t.x, at, slu_knode(t.node[at])) < 0)
			ok(false, "taken out");
		slu_kobj_unref(t.node[at]);
		t.node[at] = NULL;
	}
	if (!draw(5))
		return;
	t.node[at] = a_node(at);
	if (core_index_add(&t.x, at, slu_knode(t.node[at]), (void *)(uintptr_t)t.node[at]) < 0)
		ok(false, "added");
}

/* How many nodes differ; -1: the index cannot tell.  `yes`: how many may be used. */
static int compare(const struct slu_kpodspec *s, uint32_t *yes)
{
	struct slu_nodeset *set = slu_nodeset_clone(t.x.all);
	int32_t *score = slu_calloc(64 * set->n_word, sizeof *score);
	int wrong = 0;

	core_index_selector(&t.x, s, set);
	if (s->flags & SLU_POD_NODE_AFFINITY &&
	    core_index_terms(&t.x, s->required, s->nrequired, set) < 0)
		wrong = -1;
	core_index_taints(&t.x, s, third, NULL, set);
	if (!wrong && core_index_scores(&t.x, s, set, score) < 0)
		wrong = -1;
	for (uint32_t at = 0; at < NODES && wrong >= 0; at++) {
		const struct slu_knode *k = t.node[at] ? slu_knode(t.node[at]) : NULL;
		bool good = k && slu_predicate_node(s, k, at % 3 == 0) == SLU_NO_NOT;

		wrong += good != slu_nodeset_has(set, at);
		wrong += good && score[at] != slu_predicate_score(s, k);
		wrong += good && score[at] && !core_index_is_scored(&t.x, s);
		*yes += good;
	}
	slu_nodeset_unref(set);
	slu_free(score);
	return wrong;
}

int main(void)
{
	struct slu_strpool *pool;
	uint32_t yes = 0, cannot = 0, wrong = 0, asked = 0;

	t.seed = 20;
	pool = slu_strpool_new();
	t.codec = slu_kcodec_new(pool);
	t.x.find = find;
	for (uint32_t at = 0; at < NODES; at++)
		change(at);
	for (int i = 0; i < 3000; i++) {
		const struct slu_kobj *pod = a_pod();
		int rc = compare(&slu_kpod(pod)->spec, &yes);

		cannot += rc < 0;
		wrong += rc > 0;
		asked++;
		slu_kobj_unref(pod);
		for (uint32_t k = 0; k < 5; k++)
			change(draw(NODES));
	}
	ok(!wrong, "the index answers as the predicates do (%u of %u differ)", wrong, asked);
	ok(yes > 10 * asked && yes < asked * NODES / 2,
	   "some nodes may be used, some not (%u of %u)", yes, asked * NODES);
	ok(cannot && cannot < asked / 10, "the index reports conditions that it cannot answer (%u)",
	   cannot);
	for (uint32_t at = 0; at < NODES; at++)
		if (t.node[at]) {
			if (core_index_del(&t.x, at, slu_knode(t.node[at])) < 0)
				ok(false, "taken out");
			slu_kobj_unref(t.node[at]);
		}
	ok(!t.x.keys.n && !t.x.taints.n, "nothing is left of nodes that are gone");
	core_index_clear(&t.x);
	slu_kcodec_free(t.codec);
	slu_strpool_free(pool);
	return tap_done();
}
