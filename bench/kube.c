/* Decoding a list as the API server sends it, and the memory a mirror of it takes.
 *
 *	bench-kube RUNS PODLIST.pb [NODELIST.pb]
 * tests/kube/objgen writes such lists; `objgen decode` does the same with client-go's decoder. */
#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kube/mirror.h"

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long resident_kb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static char *load(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	long size = -1;
	char *b;

	if (f && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size < 0) {
		perror(path);
		exit(1);
	}
	rewind(f);
	b = malloc((size_t)size);
	if (!b || fread(b, 1, (size_t)size, f) != (size_t)size)
		exit(1);
	fclose(f);
	*n = (size_t)size;
	return b;
}

static int drop(void *arg, const struct slu_kobj *o)
{
	++*(uint32_t *)arg;
	slu_kobj_unref(o);
	return 0;
}

struct kept {
	const struct slu_kobj **o;
	uint32_t n;
};

static int keep(void *arg, const struct slu_kobj *o)
{
	struct kept *k = arg;

	k->o[k->n++] = o;
	return 0;
}

static void bench_decode(const char *path, enum slu_kkind kind, int runs)
{
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_kcodec *codec = slu_kcodec_new(pool);
	struct kept k = { calloc(1u << 20, sizeof *k.o), 0 };
	double best_keep = 1e9, best_drop = 1e9;
	size_t n;
	char *b = load(path, &n);

	for (int i = 0; i < runs; i++) {
		struct slu_klist l = { 0 };
		uint32_t count = 0;
		double t = cpu_s(), used;

		struct slu_klist_in in = { .kind = kind,
					   .enc = SLU_ENC_PROTOBUF,
					   .bytes = b,
					   .n = n,
					   .item = keep,
					   .arg = &k };

		if (slu_kcodec_list(codec, &in, &l, NULL) < 0)
			exit(1);
		used = cpu_s() - t;
		best_keep = used < best_keep ? used : best_keep;
		while (k.n)
			slu_kobj_unref(k.o[--k.n]);
		slu_free(l.cont);
		t = cpu_s();
		in.item = drop;
		in.arg = &count;
		if (slu_kcodec_list(codec, &in, &l, NULL) < 0)
			exit(1);
		used = cpu_s() - t;
		best_drop = used < best_drop ? used : best_drop;
		slu_free(l.cont);
		if (i + 1 == runs)
			printf("sluice    %s: %u objects, %.1f MB: %.3f s (%.2f us each), "
			       "kept; %.3f s one at a time\n",
			       slu_kkind_info(kind)->resource, count, (double)n / 1e6, best_keep,
			       best_keep * 1e6 / count, best_drop);
	}
	free(k.o);
	free(b);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
}

/* The file is read and given back before the memory is looked at. */
static struct slu_mirror *mirror_of(struct slu_kcodec *codec, const char *path, enum slu_kkind kind)
{
	struct slu_mirror *m = NULL;
	struct slu_error err = { 0 };
	size_t n;
	char *b = load(path, &n);

	if (slu_mirror_new(kind, codec, NULL, &m) < 0 ||
	    slu_mirror_page(m, SLU_ENC_PROTOBUF, b, n, &err) < 0) {
		fprintf(stderr, "%s: %s\n", path, err.text);
		exit(1);
	}
	free(b);
	return m;
}

int main(int argc, char **argv)
{
	int runs = argc > 1 ? atoi(argv[1]) : 0;
	struct slu_strpool *pool;
	struct slu_kcodec *codec;
	struct slu_mirror *m[2] = { NULL };
	uint32_t strings;
	size_t bytes;
	long before;

	if (argc < 3 || runs < 1) {
		fprintf(stderr, "usage: bench-kube RUNS PODLIST.pb [NODELIST.pb]\n");
		return 2;
	}
	malloc_trim(0);
	before = resident_kb();
	pool = slu_strpool_new();
	codec = slu_kcodec_new(pool);
	m[0] = mirror_of(codec, argv[2], SLU_KIND_POD);
	if (argc > 3)
		m[1] = mirror_of(codec, argv[3], SLU_KIND_NODE);
	malloc_trim(0);
	slu_strpool_stat(pool, &strings, &bytes);
	printf("sluice    mirror of %u pods and %u nodes: %ld kB resident (%ld kB of it the program), "
	       "%u strings in %zu kB\n",
	       slu_mirror_count(m[0]), m[1] ? slu_mirror_count(m[1]) : 0, resident_kb(), before,
	       strings, bytes / 1024);
	slu_mirror_free(m[0]);
	slu_mirror_free(m[1]);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	bench_decode(argv[2], SLU_KIND_POD, runs);
	if (argc > 3)
		bench_decode(argv[3], SLU_KIND_NODE, runs);
	return 0;
}
