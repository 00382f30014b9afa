/* layout_internal.h — where the strings and arrays of each object are, so that packing, freeing and printing
 * are one routine each instead of one per kind.  Private to kube/. */
#pragma once
#include "kube/object.h"

enum slu_klay_type {
	SLU_LAY_STR,
	SLU_LAY_STRS, /* array of strings */
	SLU_LAY_BOOL,
	SLU_LAY_U8,
	SLU_LAY_U32,
	SLU_LAY_I32,
	SLU_LAY_I64,
	SLU_LAY_U64,
	SLU_LAY_MSG,  /* a struct inside */
	SLU_LAY_MSGS, /* array of structs */
};

struct slu_klay;

struct slu_klay_field {
	const char *name; /* NULL ends the list */
	uint8_t type;
	uint16_t off;
	uint16_t noff; /* of the 16-bit count */
	const struct slu_klay *sub;
};

struct slu_klay {
	uint16_t size;
	const struct slu_klay_field *f;
};

/* Copy a decoded struct with everything it points to into one block and take a reference to each
 * string (NULL becomes "").  The pool is locked by the caller.  NULL when memory runs out. */
const struct slu_kobj *slu_klay_pack(const struct slu_kobj *raw);
