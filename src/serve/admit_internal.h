/* admit_internal.h — private to admit*.c: the review that came in, the patch that goes out. */
#pragma once
#include "serve/admit.h"
#include "wire/json.h"
#include "wire/jsonw.h"

struct slu_admit_patch {
	struct slu_buf text;
	struct slu_jsonw w;
	uint32_t ops;
};

struct slu_admit_review {
	const struct slu_json *request, *object, *meta, *spec,
		*template;          /* template: NULL for a Pod */
	const struct slu_json *pod; /* the pod spec, of the Pod or of the template */
	const char *uid, *kind, *space, *name;
};

/* admit_patch.c: set a string at `path` (an escaped JSON pointer), or at `key` below it. */
void slu_admit_set(struct slu_admit_patch *p, const char *path, const char *key, const char *value);
/* Set pairs of a string map, which is added if the object has none. */
void slu_admit_pairs(struct slu_admit_patch *p, const struct slu_json *map, const char *path,
		     const char *const (*pair)[2], uint32_t n);
/* Begin an operation, whose value the caller then writes to p->w, and end it. */
void slu_admit_op(struct slu_admit_patch *p, const char *what, const char *path, const char *key);
void slu_admit_op_end(struct slu_admit_patch *p);

/* admit_hold.c: "pod", "job", ...; NULL for a kind that Sluice does not know. */
const char *slu_admit_kind(const char *kind);
/* Hold the object, or give it to the default scheduler, if the rules say so.  `noted`: an earlier operation of
 * the patch has added the map of annotations. */
void slu_admit_hold(const struct slu_admit_review *r, const struct slu_admit_rules *rules,
		    struct slu_admit_patch *p, bool noted);
