/* bench-bind — bind pods with our client, many in flight.  bench/bind runs it beside client-go.
 *
 *	bench-bind KUBECONFIG NAMESPACE PREFIX COUNT INFLIGHT NODE
 *	bench-bind KUBECONFIG NAMESPACE - COUNT INFLIGHT -	a line "POD NODE" each on its input
 */
#include "kube/write.h"

#include <stdio.h>
#include <sys/resource.h>

struct bench {
	struct slu_kube_client *c;
	const char *ns, *prefix, *node;
	bool listed; /* pods and nodes come as lines */
	long count, next, left, failed;
	int64_t *took_ns;
	bool done;
	char why[600];
};

struct one {
	struct bench *b;
	long i;
};

static int64_t cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

static void bind_next(struct one *o);

static void bound(void *arg, const struct slu_kube_reply *r)
{
	struct one *o = arg;
	struct bench *b = o->b;

	b->took_ns[o->i] = r->took_ns;
	if (r->outcome != SLU_KUBE_OK && !b->failed++)
		snprintf(b->why, sizeof b->why, "%s", r->error);
	b->done = !--b->left;
	bind_next(o);
}

static void bind_next(struct one *o)
{
	struct bench *b = o->b;
	char pod[256], node[256];

	if (b->next >= b->count)
		return;
	o->i = b->next++;
	snprintf(pod, sizeof pod, "%s%ld", b->prefix, o->i);
	snprintf(node, sizeof node, "%s", b->node);
	if (b->listed && scanf("%255s %255s", pod, node) != 2)
		abort();
	if (slu_kube_bind(b->c, b->ns, pod, NULL, node, (struct slu_kdone){ bound, o }) < 0)
		abort();
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	struct slu_kube_config_options co = { 0 };
	struct slu_kube_config *cfg = NULL;
	struct slu_error err = { 0 };
	struct slu_loop *l = slu_loop_new();
	struct bench b = { 0 };
	struct one *ones;
	long inflight;
	int64_t start, cpu, took;
	double s;

	if (argc != 7) {
		fprintf(stderr,
			"usage: bench-bind KUBECONFIG NAMESPACE PREFIX COUNT INFLIGHT NODE\n");
		return 2;
	}
	co.path = argv[1];
	b.ns = argv[2];
	b.prefix = argv[3];
	b.count = b.left = atol(argv[4]);
	inflight = atol(argv[5]);
	b.node = argv[6];
	b.listed = !strcmp(argv[6], "-");
	if (slu_kube_config_load(&co, &cfg, &err) < 0 ||
	    slu_kube_client_new(l, cfg, NULL, &b.c, &err) < 0) {
		fprintf(stderr, "bench-bind: %s\n", err.text);
		return 1;
	}
	/* One write first: connecting is not what is measured. */
	slu_kube_do(b.c,
		    &(struct slu_kube_request){ .method = SLU_HTTP_DELETE,
						.path = "/api/v1/namespaces/default/pods/none" },
		    NULL, NULL);
	b.took_ns = calloc((size_t)b.count, sizeof *b.took_ns);
	ones = calloc((size_t)inflight, sizeof *ones);
	start = slu_clock_ns();
	cpu = cpu_us();
	for (long i = 0; i < inflight; i++) {
		ones[i].b = &b;
		bind_next(&ones[i]);
	}
	slu_loop_run_until(l, &b.done, -1);
	took = slu_clock_ns() - start;
	cpu = cpu_us() - cpu;
	s = (double)took / 1e9;
	if (b.failed)
		fprintf(stderr, "bench-bind: %s\n", b.why);
	qsort(b.took_ns, (size_t)b.count, sizeof *b.took_ns, by_value);
	printf("{\"client\": \"sluice\", \"count\": %ld, \"inflight\": %ld, \"failed\": %ld, \"seconds\": %.3f, "
	       "\"per_second\": %.1f, \"cpu_us_per_bind\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
	       b.count, inflight, b.failed, s, (double)b.count / s, (double)cpu / (double)b.count,
	       (double)b.took_ns[b.count / 2] / 1e6, (double)b.took_ns[b.count * 99 / 100] / 1e6);
	free(b.took_ns);
	free(ones);
	slu_kube_client_free(b.c);
	slu_kube_config_unref(cfg);
	slu_loop_free(l);
	return b.failed ? 1 : 0;
}
