#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static __thread long fault_after = -1;
static __thread unsigned long failures;
static __thread bool fault_hit, fault_once;

static bool fault(void)
{
	if (__builtin_expect(fault_after < 0, 1))
		return false;
	if (fault_after > 0) {
		fault_after--;
		return false;
	}
	fault_hit = true;
	if (fault_once)
		fault_after = -1;
	return true;
}

static void *note_failure(void *p)
{
	failures += !p;
	return p;
}

void *slu_malloc(size_t n)
{
	return note_failure(fault() ? NULL : malloc(n ? n : 1));
}

void *slu_calloc(size_t n, size_t size)
{
	return note_failure(fault() ? NULL : calloc(n ? n : 1, size ? size : 1));
}

void *slu_realloc(void *p, size_t n)
{
	return note_failure(fault() ? NULL : realloc(p, n ? n : 1));
}

void *slu_reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return note_failure(NULL);
	return slu_realloc(p, bytes);
}

char *slu_strdup(const char *s)
{
	return slu_strndup(s, strlen(s));
}

char *slu_strndup(const char *s, size_t n)
{
	char *p = slu_malloc(n + 1);

	if (p) {
		memcpy(p, s, n);
		p[n] = '\0';
	}
	return p;
}

void slu_free(void *p)
{
	free(p);
}

unsigned long slu_mem_failures(void)
{
	return failures;
}

void slu_fault_arm(long k)
{
	fault_after = k;
	fault_hit = fault_once = false;
}

void slu_fault_arm_once(long k)
{
	slu_fault_arm(k);
	fault_once = true;
}

long slu_fault_left(void)
{
	return fault_after;
}

bool slu_fault_disarm(void)
{
	fault_after = -1;
	return fault_hit;
}
