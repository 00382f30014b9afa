/* hostlist.h — lists of host names and their compressed text form (Flux RFC 29): "n[0-3,7],login".
 * Order and repetitions are kept. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

#define SLU_HOSTLIST_MAX   (1u << 20)         /* names in one list */
#define SLU_HOSTLIST_BYTES ((size_t)32 << 20) /* and the bytes of their text */

/* Zero-initialise. */
struct slu_hostlist {
	struct slu_arena text;
	SLU_VEC(const char *) h;
	size_t bytes;
	size_t max; /* ceiling of `bytes`; 0: SLU_HOSTLIST_BYTES */
};

/* Append the names of a text: words separated by commas or blanks, "foo[1-3,07],bar".
 * No words are no names.  0, -EINVAL, -EOVERFLOW (too many, or too long together), -ENOMEM; on
 * failure the list may hold a part of the words. */
int slu_hostlist_parse(struct slu_hostlist *l, const char *text);
int slu_hostlist_add(struct slu_hostlist *l, const char *host);
/* Position of the first such name, or -1. */
int64_t slu_hostlist_find(const struct slu_hostlist *l, const char *host);
/* Append the compressed form of the names in their order. */
int slu_hostlist_put(const struct slu_hostlist *l, struct slu_buf *out);
/* The same from an array of names. */
int slu_hostlist_put_names(const char *const *name, uint32_t n, struct slu_buf *out);
void slu_hostlist_done(struct slu_hostlist *l);
