#include "base/arena.h"

#define CHUNK_MIN 4096u
#define CHUNK_MAX (1u << 20)

struct slu_arena_chunk {
	struct slu_arena_chunk *next;
	size_t size;
	_Alignas(16) unsigned char data[];
};

void *slu_arena_alloc(struct slu_arena *a, size_t n)
{
	struct slu_arena_chunk *c = a->head;
	size_t need = (n + 15) & ~(size_t)15;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	if (!c || c->size - a->used < need) {
		/* Chunks double with the arena so that a large one costs few calls. */
		size_t size = SLU_MIN(SLU_MAX(a->total, (size_t)CHUNK_MIN), (size_t)CHUNK_MAX);

		size = SLU_MAX(size, need);
		c = slu_malloc(sizeof *c + size);
		if (!c)
			return NULL;
		c->next = a->head;
		c->size = size;
		a->head = c;
		a->used = 0;
		a->total += size;
	}
	p = c->data + a->used;
	a->used += need;
	return p;
}

void *slu_arena_zalloc(struct slu_arena *a, size_t n)
{
	void *p = slu_arena_alloc(a, n);

	if (p)
		memset(p, 0, n);
	return p;
}

char *slu_arena_strndup(struct slu_arena *a, const char *s, size_t n)
{
	char *p = slu_arena_alloc(a, n + 1);

	if (p) {
		memcpy(p, s, n);
		p[n] = '\0';
	}
	return p;
}

static void free_chunks(struct slu_arena_chunk *c)
{
	while (c) {
		struct slu_arena_chunk *next = c->next;

		slu_free(c);
		c = next;
	}
}

void slu_arena_reset(struct slu_arena *a)
{
	if (!a->head)
		return;
	free_chunks(a->head->next);
	a->head->next = NULL;
	a->used = 0;
	a->total = a->head->size;
}

void slu_arena_done(struct slu_arena *a)
{
	free_chunks(a->head);
	*a = (struct slu_arena){ 0 };
}
