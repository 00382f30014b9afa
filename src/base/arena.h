/* arena.h — memory freed all at once.  One arena per lifetime: process, object, cycle, message. */
#pragma once
#include "base/base.h"

struct slu_arena_chunk;

/* Zero-initialise; the first allocation makes the first chunk. */
struct slu_arena {
	struct slu_arena_chunk *head;
	size_t used; /* in head */
	size_t total;
};

/* 16-byte aligned, not cleared.  NULL when memory runs out. */
void *slu_arena_alloc(struct slu_arena *a, size_t n);
void *slu_arena_zalloc(struct slu_arena *a, size_t n);
char *slu_arena_strndup(struct slu_arena *a, const char *s, size_t n);

/* Forget everything, keep the newest chunk for the next cycle. */
void slu_arena_reset(struct slu_arena *a);
void slu_arena_done(struct slu_arena *a);
