/* codec_tool — the same objects in both encodings must give the same result.  TAP.
 *
 *	codec_tool DIR		reads RESOURCE.jsonl and RESOURCE.frames, which tests/kube/objgen makes */
#include <stdio.h>

#include "../tap.h"
#include "kube/codec.h"

struct lines {
	char **p;
	uint32_t n, cap;
};

static struct slu_kcodec *codec;
static enum slu_kkind kind;
static enum slu_kencoding enc;

static int one(void *arg, const void *p, size_t n)
{
	struct lines *l = arg;
	struct slu_buf b = SLU_BUF_INIT(64u << 20);
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };

	if (slu_kcodec_object(codec, kind, enc, p, n, &o, &err) < 0)
		slu_buf_puts(&b, err.text);
	else
		slu_kobj_dump(o, &b);
	slu_kobj_unref(o);
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 1024;
		l->p = realloc(l->p, l->cap * sizeof *l->p);
	}
	l->p[l->n++] = slu_buf_take(&b);
	return 0;
}

static struct lines read_all(const char *dir, const char *ext)
{
	struct slu_kframes f = { .enc = enc };
	struct lines l = { 0 };
	char path[1024], piece[65536];
	size_t n;
	FILE *fp;

	snprintf(path, sizeof path, "%s/%s.%s", dir, slu_kkind_info(kind)->resource, ext);
	fp = fopen(path, "rb");
	while (fp && (n = fread(piece, 1, sizeof piece, fp)) > 0) {
		if (slu_kframes_feed(&f, piece, n, one, &l, NULL) < 0)
			break;
	}
	if (fp)
		fclose(fp);
	slu_kframes_done(&f);
	return l;
}

/* What the scheduler of Kubernetes counts, line by line. */
static void check_requests(const char *dir, const struct lines *l)
{
	char path[1024], want[65536];
	uint32_t n = 0, differ = 0;
	FILE *fp;

	snprintf(path, sizeof path, "%s/pods.requests", dir);
	fp = fopen(path, "r");
	for (; fp && n < l->n && fgets(want, sizeof want, fp); n++) {
		want[strcspn(want, "\n")] = '\0';
		if (!strstr(l->p[n], want) && differ++ == 0)
			printf("# want: %s\n# have: %s\n", want, l->p[n]);
	}
	if (fp)
		fclose(fp);
	ok(n > 0 && n == l->n && !differ,
	   "requests of %u pods as Kubernetes counts them, %u differ", n, differ);
}

int main(int argc, char **argv)
{
	struct slu_strpool *pool = slu_strpool_new();

	codec = slu_kcodec_new(pool);
	for (kind = SLU_KIND_NODE; argc > 1 && kind < SLU_KIND_PARTIAL; kind++) {
		uint32_t differ = 0;

		/* The library that writes these objects does not know the groups of 1.37. */
		if (slu_kkind_info(kind)->json_only || kind == SLU_KIND_PODGROUP_BETA)
			continue;
		enc = SLU_ENC_JSON;
		struct lines a = read_all(argv[1], "jsonl");

		enc = SLU_ENC_PROTOBUF;
		struct lines b = read_all(argv[1], "frames");

		if (kind == SLU_KIND_POD)
			check_requests(argv[1], &b);
		for (uint32_t i = 0; i < a.n && i < b.n; i++) {
			if (strcmp(a.p[i], b.p[i]) != 0 && differ++ == 0)
				printf("# json: %s\n# pb:   %s\n", a.p[i], b.p[i]);
			slu_free(a.p[i]);
			slu_free(b.p[i]);
		}
		ok(a.n > 0 && a.n == b.n && !differ, "%s: %u and %u objects, %u differ",
		   slu_kkind_info(kind)->resource, a.n, b.n, differ);
		free(a.p);
		free(b.p);
	}
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return tap_done();
}
