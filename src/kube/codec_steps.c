/* codec_steps.c — the steps that both readers (protobuf and JSON) and the tables' finishing
 * functions take: keep a text, grow an array, read an amount, sort a map. */
#include <stdarg.h>
#include <stdio.h>

#include "base/qty.h"
#include "kube/codec_internal.h"

bool slu_kdec_keeps(const struct slu_kcodec *c, const char *key, size_t n)
{
	for (uint32_t i = 0; i < c->prefixes.n; i++) {
		size_t len = strlen(c->prefixes.p[i]);

		if (len <= n && memcmp(key, c->prefixes.p[i], len) == 0)
			return true;
	}
	return false;
}

/* Cut a text at its first NUL, because the rest cannot be compared, printed or sent as a string. */
const char *slu_kdec_str(struct slu_kcodec *c, const char *p, size_t n)
{
	const char *nul = n ? memchr(p, 0, n) : NULL;
	const char *s;

	if (slu_vec_reserve(&c->strs, c->strs.n + 1) < 0)
		return NULL;
	s = slu_strpool_get_locked(c->pool, p, nul ? (size_t)(nul - p) : n);
	if (s)
		c->strs.p[c->strs.n++] = s;
	return s;
}

void *slu_kdec_push(struct slu_kcodec *c, void *arr, uint16_t *n, size_t size, bool *full)
{
	char **p = arr;

	if (*n == UINT16_MAX) {
		c->flags |= SLU_KOBJ_CUT;
		*full = true;
		return NULL;
	}
	/* The room grows at 0, 4, 8, 16, ...: no capacity needs to be kept. */
	if (*n == 0 || (*n >= 4 && (*n & (*n - 1)) == 0)) {
		char *more = slu_arena_alloc(&c->scratch, (*n ? 2 * (size_t)*n : 4) * size);

		if (!more)
			return NULL;
		if (*n)
			memcpy(more, *p, *n * size);
		*p = more;
	}
	return *p + size * (*n)++;
}

void slu_kdec_problem(struct slu_kcodec *c, const char *fmt, ...)
{
	va_list ap;

	if (c->problem[0])
		return;
	va_start(ap, fmt);
	vsnprintf(c->problem, sizeof c->problem, fmt, ap);
	va_end(ap);
}

int slu_kdec_amount(struct slu_kcodec *c, struct slu_kamount **arr, uint16_t *n, const char *field,
		    const char *key, size_t klen, const char *text, size_t tlen)
{
	const char *name = slu_kdec_str(c, key, klen);
	struct slu_kamount *e;
	bool full = false, bad;
	int64_t v = 0;
	int rc;

	if (!name)
		return -ENOMEM;
	rc = slu_qty_parse(text, tlen, slu_qty_scale_of(name), &v, NULL);
	bad = rc < 0 || v < 0;
	if (rc == -EINVAL || v < 0)
		v = 0;
	if (bad) {
		c->flags |= SLU_KOBJ_BAD_AMOUNT;
		slu_kdec_problem(c, "%s: %s \"%.*s\" is %s", field, name,
				 (int)SLU_MIN(tlen, (size_t)40), text,
				 rc == -EINVAL      ? "not a quantity"
				 : rc == -EOVERFLOW ? "beyond 64 bits"
						    : "negative");
	}
	e = slu_kdec_push(c, arr, n, sizeof *e, &full);
	if (!e)
		return full ? 0 : -ENOMEM;
	*e = (struct slu_kamount){ name, v };
	return 0;
}

/* Pairs and amounts are the same to sorting: 16 bytes, the key first. */
struct keyed {
	const char *key;
	uint64_t value;
};
static_assert(sizeof(struct keyed) == sizeof(struct slu_kpair), "pairs are keyed");
static_assert(sizeof(struct keyed) == sizeof(struct slu_kamount), "amounts are keyed");

static void merge_keyed(const struct keyed *a, uint32_t na, const struct keyed *b, uint32_t nb,
			struct keyed *out)
{
	while (na && nb) {
		if (strcmp(a->key, b->key) <= 0) {
			*out++ = *a++;
			na--;
		} else {
			*out++ = *b++;
			nb--;
		}
	}
	memcpy(out, a, na * sizeof *a);
	memcpy(out + na, b, nb * sizeof *b);
}

/* Stable, so that of equal keys the last stays the last. */
static int sort_keyed(struct slu_kcodec *c, struct keyed **arr, uint16_t *n)
{
	struct keyed *a = *arr, *b;
	uint32_t count = *n, kept = 0, i;

	for (i = 1; i < count; i++) {
		if (strcmp(a[i - 1].key, a[i].key) >= 0)
			break;
	}
	if (i >= count)
		return 0; /* the server sends them sorted */
	b = slu_arena_alloc(&c->scratch, count * sizeof *b);
	if (!b)
		return -ENOMEM;
	for (uint32_t run = 1; run < count; run *= 2) {
		struct keyed *t = a;

		for (i = 0; i < count; i += 2 * run) {
			uint32_t na = SLU_MIN(run, count - i);
			uint32_t nb = SLU_MIN(run, count - i - na);

			merge_keyed(a + i, na, a + i + na, nb, b + i);
		}
		a = b;
		b = t;
	}
	for (i = 0; i < count; i++) {
		if (kept && strcmp(a[kept - 1].key, a[i].key) == 0)
			kept--;
		a[kept++] = a[i];
	}
	*arr = a;
	*n = (uint16_t)kept;
	return 0;
}

int slu_kdec_sort_maps(struct slu_kcodec *c, const struct kmsg *m, char *base)
{
	for (const struct kfield *f = m->f; f < m->f + m->nfields; f++) {
		uint16_t *n = (uint16_t *)(base + f->noff);
		int rc;

		if (f->type != KF_PAIRS && f->type != KF_ANNOTATIONS && f->type != KF_AMOUNTS)
			continue;
		rc = *n > 1 ? sort_keyed(c, (struct keyed **)(base + f->off), n) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

uint8_t slu_kdec_word(const struct kword *w, const char *p, size_t n)
{
	for (; w->text; w++) {
		if (strlen(w->text) == n && memcmp(w->text, p, n) == 0)
			break;
	}
	return w->value;
}

uint64_t slu_kdec_rv(const char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9' || __builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(p[i] - '0'), &v))
			return 0;
	}
	return v;
}
