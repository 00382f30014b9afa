/* intern.h — strings become small numbers once, at the edge; the inside compares integers.  Ids
 * count from 0 in order of first use. */
#pragma once
#include "base/arena.h"

#define SLU_INTERN_NONE UINT32_MAX

/* Zero-initialise. */
struct slu_intern {
	struct slu_arena text;
	struct intern_entry *e;
	uint32_t *slot;
	uint32_t n, cap, mask;
};

/* Id of the string, adding it if new; SLU_INTERN_NONE when memory runs out. */
uint32_t slu_intern_n(struct slu_intern *t, const char *s, size_t n);
uint32_t slu_intern(struct slu_intern *t, const char *s);
/* Id or SLU_INTERN_NONE; never adds. */
uint32_t slu_intern_find_n(const struct slu_intern *t, const char *s, size_t n);
uint32_t slu_intern_find(const struct slu_intern *t, const char *s);
/* The text, NUL-terminated, stable for the life of the table. */
const char *slu_intern_str(const struct slu_intern *t, uint32_t id);
uint32_t slu_intern_len(const struct slu_intern *t, uint32_t id);
void slu_intern_done(struct slu_intern *t);
