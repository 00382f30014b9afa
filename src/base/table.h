/* table.h — hash table of structs that carry their entry inside and are found by a text or by
 * bytes.  The key belongs to the struct and must not change while it is in the table. */
#pragma once
#include "base/base.h"

struct slu_entry {
	struct slu_entry *next;
	uint64_t hash;
	const void *key;
	size_t n;
};

/* Zero-initialise. */
struct slu_table {
	struct slu_entry **slot;
	uint32_t n, mask;
};

/* The struct around an entry. */
#define slu_entry_of(e, T, member) ((T *)(void *)((char *)(e) - offsetof(T, member)))

struct slu_entry *slu_table_find(const struct slu_table *t, const void *key, size_t n);
static inline struct slu_entry *slu_table_finds(const struct slu_table *t, const char *key)
{
	return slu_table_find(t, key, strlen(key));
}
/* e->key and e->n are set by the caller; the key must not be in the table yet.  0 or -ENOMEM. */
int SLU_MUST_CHECK slu_table_add(struct slu_table *t, struct slu_entry *e);
void slu_table_del(struct slu_table *t, struct slu_entry *e);
/* All entries in no order: for (e = slu_table_next(t, NULL); e; e = slu_table_next(t, e)). The
 * entry at hand may be removed if its successor was asked for before. */
struct slu_entry *slu_table_next(const struct slu_table *t, const struct slu_entry *e);
void slu_table_done(struct slu_table *t);
