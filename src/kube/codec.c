#include "kube/codec.h"

#include "kube/codec_internal.h"
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
	"leaderworkerset.sigs.k8s.io/size",
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

/* "\u0000" inside a JSON string is legal, and any user may put it into an annotation, but our
 * strings end at NUL. Replace each by U+FFFD. NULL: the text has none. */
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
