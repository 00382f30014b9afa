/* time.h — RFC 3339 times, as Kubernetes writes them. */
#pragma once
#include "base/base.h"

#define SLU_KTIME_TEXT 48

/* "2026-11-15T22:17:00Z", with fraction or offset too, to microseconds since the epoch (digits
 * beyond are cut).  -EINVAL. */
int slu_ktime_parse(const char *p, size_t n, int64_t *us);
/* The inverse, in UTC; `micro` with six digits of fraction (MicroTime), else whole seconds (Time).
 */
void slu_ktime_format(int64_t us, bool micro, char text[SLU_KTIME_TEXT]);
