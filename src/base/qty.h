/* qty.h — Kubernetes quantities ("1500m", "3Gi", "1e3", "0.5") as exact 64-bit integers, and
 * durations as people write them.
 *
 * A quantity is  [+-] digits [. digits] suffix  with at least one digit and one of the suffixes
 *	n u m (none) k M G T P E	powers of ten, -9 .. 18
 *	Ki Mi Gi Ti Pi Ei		powers of 1024
 *	e<exp> E<exp>			an explicit, signed power of ten ("12e6", "1E-3")
 * "E" followed by a sign or a digit is an exponent, alone it is exa, "Ei" is exbi.
 *
 * The reader uses no floating point, so values that fit are exact.  A value between two integers of the
 * chosen scale is rounded away from zero, as Kubernetes does when it needs an integer ("0.1m" in millis
 * is 1, "-0.1m" is -1), so a request is never understated. */
#pragma once
#include "base/base.h"

/* Longest accepted text; Kubernetes prints fewer than 30 characters. */
#define SLU_QTY_MAX 256

enum slu_qty_scale {
	SLU_QTY_UNIT,  /* bytes, devices, pods */
	SLU_QTY_MILLI, /* cpu */
};

/* Read `n` bytes at `s`.  0, -EINVAL when it is no quantity, -EOVERFLOW when the rounded value does
 * not fit 64 bits at this scale (then *out is INT64_MAX or INT64_MIN, the nearest there is; in
 * every other failure it is untouched). */
int SLU_MUST_CHECK slu_qty_parse(const char *s, size_t n, enum slu_qty_scale scale, int64_t *out,
				 struct slu_error *err);

/* The scale of a resource by its name: cpu counts millis, everything else units. */
enum slu_qty_scale slu_qty_scale_of(const char *resource);

enum slu_qty_format {
	SLU_QTY_DECIMAL, /* 1500 milli -> "1500m", 3000000 -> "3M" */
	SLU_QTY_BINARY,  /* 3221225472 -> "3Gi"; what is no multiple of 1024 stays plain */
};

/* Room for every result and its NUL. */
#define SLU_QTY_TEXT 32

/* Write the canonical text, which parses back to the same value: the largest suffix that leaves no
 * fraction.  Returns its length. */
size_t slu_qty_format(int64_t v, enum slu_qty_scale scale, enum slu_qty_format form,
		      char text[SLU_QTY_TEXT]);

/* Write a duration of `s` seconds, 0 or more, exactly: "0s", "90m" is "1h30m", a day is "1d".
 * sluiced.yaml(5) and the keys of pods accept the same text.  Returns `text`. */
const char *slu_duration_text(int64_t s, char text[SLU_QTY_TEXT]);
