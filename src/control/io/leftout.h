/* leftout.h — the names of objects that cannot be read and are left out, so that users learn why Sluice ignores
 * one.  The number of names is bounded; of further objects only the kind is known. */
#pragma once
#include "base/buf.h"
#include "kube/codec.h"

#define SLU_LEFTOUT_MAX 20

struct slu_leftout {
	struct {
		enum slu_kkind kind;
		uint32_t list; /* the list of its kind it was last met in or after */
		struct slu_kbad bad;
	} p[SLU_LEFTOUT_MAX];
	uint32_t n;
	uint32_t list[SLU_KIND_COUNT];
	uint32_t more[SLU_KIND_COUNT]; /* 1 + the list in which one found no room; 0: none did */
};

/* An object cannot be read; one that is named already gets its newest cause. */
void slu_leftout_add(struct slu_leftout *l, enum slu_kkind kind, const struct slu_kbad *bad);
/* The object can be read again, or has gone. */
void slu_leftout_drop(struct slu_leftout *l, enum slu_kkind kind, const char *ns, const char *name);
/* A list of the kind is complete: those it did not have are gone. */
void slu_leftout_listed(struct slu_leftout *l, enum slu_kkind kind);
/* "left out: Pod ns/name: cause", a line for each. */
void slu_leftout_write(const struct slu_leftout *l, struct slu_buf *b);
