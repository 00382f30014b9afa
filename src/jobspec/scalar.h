/* scalar.h — scalars of a YAML tree read with SLU_YAML_TEXT, taken for what they should be, by the
 * rules of the reference's YAML library. */
#pragma once
#include "wire/json.h"

/* Whether the value is null: plain and empty, ~, null, Null or NULL. */
bool slu_scalar_is_null(const struct slu_json *v);
/* Whether the value is a string and not null in that sense. */
bool slu_scalar_is(const struct slu_json *v);
/* Decimal, 0x.. or 0.. (octal), sign allowed (no '-' where lo is 0), blanks after it allowed.
 * 0, or -EINVAL if it is anything else or outside [lo, hi]. */
int slu_scalar_i64(const struct slu_json *v, int64_t lo, int64_t hi, int64_t *out);
int slu_scalar_f64(const struct slu_json *v, double *out);
/* Exactly one character. */
int slu_scalar_char(const struct slu_json *v, char *out);
/* The value of a key, the first one if there are several; NULL if absent. */
const struct slu_json *slu_key(const struct slu_json *obj, const char *key);
