/* mem.h — the allocator everything from base up to engine goes through, so that tests can make the
 * k-th allocation fail and prove that the caller comes out clean. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

void *slu_malloc(size_t n);
void *slu_calloc(size_t n, size_t size);
void *slu_realloc(void *p, size_t n);
/* realloc to n*size bytes; NULL on overflow too. */
void *slu_reallocarray(void *p, size_t n, size_t size);
char *slu_strdup(const char *s);
char *slu_strndup(const char *s, size_t n);
void slu_free(void *p);
static inline void slu_freep(void *p)
{
	slu_free(*(void **)p);
}

/* How many allocations of this thread have failed so far.  When the number grows, something may have
 * been left undone. */
unsigned long slu_mem_failures(void);

/* Fault injection, for tests: the allocation number k (from 0) of this thread and all after it
 * fail. disarm returns whether any failed. */
void slu_fault_arm(long k);
bool slu_fault_disarm(void);
/* Only the allocation number k fails.  left: how many succeed before it; -1: it has failed, or none is
 * to fail.  A test can save and restore the count around allocations of its own. */
void slu_fault_arm_once(long k);
long slu_fault_left(void);
