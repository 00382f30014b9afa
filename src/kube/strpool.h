/* strpool.h — counted, shared, immutable strings for cached objects.  Equal texts are one pointer,
 * so code compares pointers; a text that is no longer used is freed, so a mirror may churn for years.
 *
 * Any thread may use a pool.  Reading a held string needs no lock and no pool: it is a plain
 * NUL-terminated `const char *`.  A decoder takes the lock once per object (slu_strpool_lock) and
 * uses the _locked forms inside. */
#pragma once
#include "base/base.h"

struct slu_strpool;

/* NULL only when memory runs out. */
struct slu_strpool *slu_strpool_new(void);
/* All strings must have been given back, unless the process is ending anyway.  NULL is fine. */
void slu_strpool_free(struct slu_strpool *p);
SLU_DEFINE_CLEANUP(struct slu_strpool, slu_strpool_free)

/* The pooled text if there is one, else NULL; takes no reference, so use it only to compare. */
const char *slu_strpool_find(struct slu_strpool *p, const char *s, size_t n);

void slu_strpool_lock(struct slu_strpool *p);
void slu_strpool_unlock(struct slu_strpool *p);
/* A counted reference to the text, NULL when memory runs out.  "" is free and never NULL. */
const char *slu_strpool_get_locked(struct slu_strpool *p, const char *s, size_t n);
const char *slu_strpool_ref_locked(struct slu_strpool *p, const char *s);
void slu_strpool_put_locked(struct slu_strpool *p, const char *s);

/* A hash of a pooled string that was computed already. */
uint32_t slu_str_hash(const char *s);

/* Strings and bytes held now, for metrics and leak checks. */
void slu_strpool_stat(struct slu_strpool *p, uint32_t *strings, size_t *bytes);
