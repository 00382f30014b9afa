/* idset.h — sets of small numbers and their text form (Flux RFC 22): "0-3,7". */
#pragma once
#include "base/buf.h"
#include "base/vec.h"

#define SLU_IDSET_MAX (1u << 24) /* ids in one set, and the largest id is below 2^31 */

struct slu_id_range {
	uint32_t lo, hi; /* both included */
};

/* Zero-initialise.  Ranges ascending, apart from each other (no two touch). */
struct slu_idset {
	SLU_VEC(struct slu_id_range) r;
};

/* Replace the set by the ids of the text: "0-3,7" or "[0-3,7]"; ascending, no overlap, no leading
 * zeros, no blanks, low < high; empty items are skipped.  0, -EINVAL, -EOVERFLOW (an id or the
 * number of ids too large), -ENOMEM; the set is unchanged on failure. */
int slu_idset_parse(struct slu_idset *s, const char *text);
/* Add one id; 0 or -ENOMEM, -EOVERFLOW. */
int slu_idset_add(struct slu_idset *s, uint32_t id);
bool slu_idset_has(const struct slu_idset *s, uint32_t id);
uint64_t slu_idset_count(const struct slu_idset *s);
/* Append the text form, without brackets: ranges for two or more consecutive ids. */
int slu_idset_put(const struct slu_idset *s, struct slu_buf *out);
void slu_idset_done(struct slu_idset *s);

/* for (uint32_t r = 0; ...) over every id: slu_idset_each (&s, id) use(id); */
#define slu_idset_each(s, id)                                  \
	for (uint32_t id##_r = 0; id##_r < (s)->r.n; id##_r++) \
		for (uint64_t id = (s)->r.p[id##_r].lo; id <= (s)->r.p[id##_r].hi; id++)
