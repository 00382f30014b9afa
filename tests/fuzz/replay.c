/* replay.c — main() for a fuzz target without a fuzzer: feeds it the files and folders named on the
 * command line, then --mutate N inputs made from them by a seeded generator. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/vec.h"

#define INPUT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	char *p;
	size_t n;
};

static SLU_VEC(struct input) inputs;

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void add(const char *path)
{
	struct slu_buf b = SLU_BUF_INIT(INPUT_MAX);
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		struct dirent **list = NULL;
		int n = scandir(path, &list, NULL, by_name);

		for (int i = 0; i < n; i++) {
			char *name = NULL;

			if (list[i]->d_name[0] != '.' &&
			    asprintf(&name, "%s/%s", path, list[i]->d_name) > 0)
				add(name);
			free(name);
			free(list[i]);
		}
		free(list);
		return;
	}
	if (slu_file_read(path, &b) < 0 || slu_buf_room(&b, 1) < 0 ||
	    slu_vec_push(&inputs, (struct input){ b.p, b.n }) < 0) {
		fprintf(stderr, "replay: cannot read %s\n", path);
		exit(2);
	}
}

/* Bytes that mean something to the parsers here. */
static const char spice[] = "{}[]\"':,-#&*!|>%\n \t0123456789./\\<&;=^()";

static void mutate(struct slu_rng *r, struct slu_buf *b)
{
	const struct input *from = &inputs.p[slu_rng_below(r, inputs.n)];
	int changes = 1 + (int)slu_rng_below(r, 6);

	slu_buf_reset(b);
	slu_buf_add(b, from->p, from->n);
	for (; changes; changes--) {
		size_t at = slu_rng_below(r, b->n + 1);
		size_t len = slu_rng_below(r, SLU_MIN(b->n - at, (size_t)40) + 1);

		switch (slu_rng_below(r, 5)) {
		case 0: /* another byte */
			if (at < b->n)
				b->p[at] = (char)slu_rng_below(r, 256);
			break;
		case 1: /* a telling one */
			if (at < b->n)
				b->p[at] = spice[slu_rng_below(r, sizeof spice - 1)];
			break;
		case 2: /* a piece less */
			memmove(b->p + at, b->p + at + len, b->n - at - len);
			b->n -= len;
			break;
		case 3: { /* a piece twice */
			char piece[40];

			memcpy(piece, b->p + at, len);
			if (slu_buf_room(b, len) < 0)
				break;
			memmove(b->p + at + len, b->p + at, b->n - at);
			memcpy(b->p + at, piece, len);
			b->n += len;
			break;
		}
		default: /* cut off */
			b->n = at;
		}
	}
}

int main(int argc, char **argv)
{
	struct slu_buf b = SLU_BUF_INIT(INPUT_MAX * 2);
	struct slu_rng rng = { 20240 };
	unsigned long runs = 0, more = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--mutate") && i + 1 < argc)
			more = strtoul(argv[++i], NULL, 10);
		else
			add(argv[i]);
	}
	if (!inputs.n) {
		fprintf(stderr, "replay: no inputs\n");
		return 2;
	}
	for (uint32_t i = 0; i < inputs.n; i++, runs++)
		LLVMFuzzerTestOneInput((const uint8_t *)inputs.p[i].p, inputs.p[i].n);
	for (; more; more--, runs++) {
		uint8_t *copy;

		mutate(&rng, &b);
		/* An exact copy, so that a read past the end is seen. */
		copy = malloc(b.n ? b.n : 1);
		if (!copy)
			return 2;
		memcpy(copy, slu_buf_str(&b), b.n);
		LLVMFuzzerTestOneInput(copy, b.n);
		free(copy);
	}
	printf("%lu runs over %u seeds\n", runs, inputs.n);
	for (uint32_t i = 0; i < inputs.n; i++)
		slu_free(inputs.p[i].p);
	slu_vec_done(&inputs);
	slu_buf_done(&b);
	return 0;
}
