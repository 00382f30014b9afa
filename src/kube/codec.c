#include "kube/codec.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/qty.h"
#include "kube/codec_int.h"
#include "wire/json.h"
#include "wire/pb.h"

static const char *const kept_prefixes[] = {
	"deployment.kubernetes.io/revision",
	"sluice.sh/",
	"fluence",
	"fluxnetes",
	"fluxqueue",
	"scheduling.",
	"pod-group.scheduling",
};

/* ---- the codec ---- */

struct slu_kcodec *slu_kcodec_new(struct slu_strpool *pool)
{
	struct slu_kcodec *c = slu_calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->pool = pool;
	c->clean = SLU_BUF_INIT(1u << 30);
	for (size_t i = 0; i < SLU_LEN(kept_prefixes); i++) {
		if (slu_kcodec_keep_annotations(c, kept_prefixes[i]) < 0) {
			slu_kcodec_free(c);
			return NULL;
		}
	}
	return c;
}

/* Forget the object that was being decoded. */
void slu_kdec_forget(struct slu_kcodec *c)
{
	slu_strpool_lock(c->pool);
	for (uint32_t i = 0; i < c->strs.n; i++)
		slu_strpool_put_locked(c->pool, c->strs.p[i]);
	slu_strpool_unlock(c->pool);
	c->strs.n = 0;
	slu_arena_reset(&c->scratch);
}

void slu_kcodec_free(struct slu_kcodec *c)
{
	if (!c)
		return;
	slu_kdec_forget(c);
	for (uint32_t i = 0; i < c->prefixes.n; i++)
		slu_free(c->prefixes.p[i]);
	slu_vec_done(&c->prefixes);
	slu_vec_done(&c->strs);
	slu_arena_done(&c->scratch);
	slu_buf_done(&c->clean);
	slu_free(c);
}

struct slu_strpool *slu_kcodec_pool(const struct slu_kcodec *c)
{
	return c->pool;
}

int slu_kcodec_keep_annotations(struct slu_kcodec *c, const char *prefix)
{
	char *p = slu_strdup(prefix);

	if (!p || slu_vec_push(&c->prefixes, p) < 0) {
		slu_free(p);
		return -ENOMEM;
	}
	return 0;
}

bool slu_kdec_keeps(const struct slu_kcodec *c, const char *key, size_t n)
{
	for (uint32_t i = 0; i < c->prefixes.n; i++) {
		size_t len = strlen(c->prefixes.p[i]);

		if (len <= n && memcmp(key, c->prefixes.p[i], len) == 0)
			return true;
	}
	return false;
}

/* ---- shared steps ---- */

/* A text ends at its first NUL: the rest cannot be compared, printed or sent as a string. */
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

static void merge(const struct keyed *a, uint32_t na, const struct keyed *b, uint32_t nb,
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

			merge(a + i, na, a + i + na, nb, b + i);
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

/* ---- one object ---- */

int slu_kdec_object(struct slu_kcodec *c, enum slu_kkind kind, const void *p, size_t n,
		    const struct slu_json *v, const struct slu_kobj **out)
{
	const struct kkind *k = &slu_kkinds[kind];
	struct slu_kobj *raw;
	int rc;

	c->kind = k->info.kind;
	c->flags = 0;
	c->problem[0] = '\0';
	if (v && !slu_json_is_obj(v))
		return slu_fail(c->err, -EPROTO, "%s is not an object", c->kind);
	raw = slu_arena_alloc(&c->scratch, k->raw_size);
	if (!raw)
		return -ENOMEM;
	if (k->defaults)
		memcpy(raw, k->defaults, k->raw_size);
	else
		memset(raw, 0, k->raw_size);
	slu_strpool_lock(c->pool);
	rc = v ? slu_kdec_json(c, k->msg, raw, v) : slu_kdec_pb(c, k->msg, raw, p, n);
	if (rc == 0 && k->finish)
		rc = k->finish(c, raw);
	if (rc == 0 && c->problem[0]) {
		raw->problem = slu_kdec_str(c, c->problem, strlen(c->problem));
		rc = raw->problem ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		raw->pool = c->pool;
		raw->kind = (uint8_t)kind;
		raw->flags = c->flags;
		*out = slu_klay_pack(raw);
		rc = *out ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < c->strs.n; i++)
		slu_strpool_put_locked(c->pool, c->strs.p[i]);
	slu_strpool_unlock(c->pool);
	c->strs.n = 0;
	slu_arena_reset(&c->scratch);
	return rc;
}

/* "\u0000" inside a JSON string is legal and may be in anybody's annotation; our strings end at
 * NUL. Each becomes U+FFFD, as the replacement for what cannot be shown.  NULL: none was there. */
static const char *without_nul(struct slu_kcodec *c, const char *p, size_t n)
{
	const char *at = memmem(p, n, "\\u0000", 6);

	if (!at)
		return NULL;
	slu_buf_reset(&c->clean);
	if (slu_buf_add(&c->clean, p, n) < 0)
		return NULL;
	for (char *q = c->clean.p; (q = memmem(q, (size_t)(c->clean.p + n - q), "\\u0000", 6));
	     q += 6) {
		size_t slashes = 0;

		while (q - slashes > c->clean.p && q[-1 - (ptrdiff_t)slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			memcpy(q, "\\ufffd", 6);
	}
	return c->clean.p;
}

int slu_kdec_text(struct slu_kcodec *c, const char *what, const char *p, size_t n,
		  struct slu_json_doc **out)
{
	static const struct slu_json_limits limits = { .max_depth = 512 };
	const char *clean = without_nul(c, p, n);
	int rc = slu_json_parse(clean ? clean : p, n, &limits, out, c->err);

	if (c->clean.cap > (1u << 20))
		slu_buf_done(&c->clean);
	c->clean.max = 1u << 30;
	if (rc < 0 && rc != -ENOMEM)
		rc = slu_fail_prefix(c->err, rc == -EINVAL ? -EPROTO : rc, "%s", what);
	return rc;
}

int slu_kcodec_object(struct slu_kcodec *c, enum slu_kkind kind, enum slu_kencoding enc,
		      const void *bytes, size_t n, const struct slu_kobj **out,
		      struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const char *name = slu_kkinds[kind].info.kind;
	int rc;

	c->err = err;
	if (enc == SLU_ENC_PROTOBUF) {
		if (slu_kdec_envelope(&bytes, &n) < 0)
			return slu_fail(err, -EPROTO, "%s: broken protobuf envelope", name);
		return slu_kdec_object(c, kind, bytes, n, NULL, out);
	}
	rc = slu_kdec_text(c, name, bytes, n, &doc);
	return rc < 0 ? rc : slu_kdec_object(c, kind, NULL, 0, slu_json_root(doc), out);
}

enum slu_kencoding slu_kencoding_of(const char *content_type)
{
	static const char pb[] = "application/vnd.kubernetes.protobuf";

	return content_type && strncasecmp(content_type, pb, sizeof pb - 1) == 0 ? SLU_ENC_PROTOBUF
										 : SLU_ENC_JSON;
}
