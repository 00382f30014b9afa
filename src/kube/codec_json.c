/* Reading JSON by the same tables. */
#include "kube/codec_internal.h"
#include "kube/time.h"
#include "wire/json.h"
#include "wire/jsonw.h"

/* Leave out a field of the wrong type and note it on the object (slu_kobj.problem): one bad
 * custom resource must not hide all others. */
static int refuse_field(struct slu_kcodec *c, const struct kmsg *m, const struct kfield *f,
			const char *what)
{
	slu_kdec_problem(c, "%s.%s is not %s", m->name, f->json, what);
	return 0;
}

static const char *pooled(struct slu_kcodec *c, const struct slu_json *v)
{
	return slu_kdec_str(c, slu_json_str(v), slu_json_count(v));
}

static int pairs(struct slu_kcodec *c, const struct kmsg *m, const struct kfield *f, char *base,
		 const struct slu_json *v)
{
	if (!slu_json_is_obj(v))
		return refuse_field(c, m, f, "an object");
	slu_json_each (v, it) {
		struct slu_kpair *e;
		bool full = false;

		if (f->type == KF_ANNOTATIONS &&
		    !slu_kdec_keeps(c, it.key, slu_json_count(it.keyval)))
			continue;
		if (!slu_json_is_str(it.val) && !slu_json_is_null(it.val)) {
			refuse_field(c, m, f, "a map of strings");
			continue;
		}
		e = slu_kdec_push(c, base + f->off, (uint16_t *)(base + f->noff), sizeof *e, &full);
		if (!e)
			return full ? 0 : -ENOMEM;
		e->key = pooled(c, it.keyval);
		e->value = slu_json_is_null(it.val) ? slu_kdec_str(c, "", 0) : pooled(c, it.val);
		if (!e->key || !e->value)
			return -ENOMEM;
	}
	return 0;
}

static int read_amounts(struct slu_kcodec *c, const struct kmsg *m, const struct kfield *f,
			char *base, const struct slu_json *v)
{
	if (!slu_json_is_obj(v))
		return refuse_field(c, m, f, "an object");
	slu_json_each (v, it) {
		slu_cleanup(slu_buf_done) struct slu_buf num = SLU_BUF_INIT(64);
		const char *text = slu_json_str(it.val);
		size_t n = slu_json_count(it.val);
		int rc;

		if (!text) { /* a number where a string belongs, as people write in custom resources */
			struct slu_jsonw w = slu_jsonw(&num, SLU_JSONW_COMPACT);

			if (slu_json_kind(it.val) != SLU_JSON_INT &&
			    slu_json_kind(it.val) != SLU_JSON_REAL) {
				refuse_field(c, m, f, "a map of quantities");
				continue;
			}
			slu_jsonw_value(&w, it.val);
			if (num.error)
				return num.error;
			text = slu_buf_str(&num);
			n = num.n;
		}
		rc = slu_kdec_amount(c, (struct slu_kamount **)(base + f->off),
				     (uint16_t *)(base + f->noff), f->json, it.key,
				     slu_json_count(it.keyval), text, n);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int decode_array(struct slu_kcodec *c, const struct kmsg *m, const struct kfield *f,
			char *base, const struct slu_json *v)
{
	size_t size = f->type == KF_STRS ? sizeof(char *) : f->sub->size;

	if (!slu_json_is_arr(v))
		return refuse_field(c, m, f, "an array");
	slu_json_each (v, it) {
		bool full = false;
		void *e;
		int rc;

		if (f->type == KF_STRS && !slu_json_is_str(it.val)) {
			refuse_field(c, m, f, "an array of strings");
			continue;
		}
		e = slu_kdec_push(c, base + f->off, (uint16_t *)(base + f->noff), size, &full);

		if (!e)
			return full ? 0 : -ENOMEM;
		if (f->type == KF_STRS) {
			*(const char **)e = pooled(c, it.val);
			if (!*(const char **)e)
				return -ENOMEM;
			continue;
		}
		if (f->sub->defaults)
			memcpy(e, f->sub->defaults, size);
		else
			memset(e, 0, size);
		rc = slu_kdec_json(c, f->sub, e, it.val);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int integer(struct slu_kcodec *c, const struct kmsg *m, const struct kfield *f, void *at,
		   const struct slu_json *v)
{
	int64_t i;
	double d;

	if (slu_json_i64(v, &i) < 0) {
		/* Go accepts 3.0 nowhere, but YAML tools write 1e3 into custom resources. */
		if (slu_json_f64(v, &d) < 0 || !(d > -9e15 && d < 9e15) || (double)(int64_t)d != d)
			return refuse_field(c, m, f, "an integer");
		i = (int64_t)d;
	}
	if (f->type == KF_I64) {
		*(int64_t *)at = i;
		return 0;
	}
	if (i < INT32_MIN || i > INT32_MAX)
		return refuse_field(c, m, f, "a 32-bit integer");
	*(int32_t *)at = (int32_t)i;
	return 0;
}

static int decode_value(struct slu_kcodec *c, const struct kmsg *m, const struct kfield *f,
			char *base, const struct slu_json *v)
{
	void *at = base + f->off;
	const char *s = slu_json_str(v);
	size_t n = slu_json_count(v);

	switch (f->type) {
	case KF_STR:
	case KF_SLICE:
	case KF_RV:
	case KF_WORD:
	case KF_TIME:
		if (!s)
			return refuse_field(c, m, f, "a string");
		break;
	default:
		break;
	}
	switch (f->type) {
	case KF_STR:
		*(const char **)at = slu_kdec_str(c, s, n);
		return *(const char **)at ? 0 : -ENOMEM;
	case KF_SLICE:
		*(struct kslice *)at = (struct kslice){ s, (uint32_t)n };
		return 0;
	case KF_RV:
		*(uint64_t *)at = slu_kdec_rv(s, n);
		return 0;
	case KF_WORD:
		*(uint8_t *)at = slu_kdec_word(f->words, s, n);
		return 0;
	case KF_TIME:
		return slu_ktime_parse(s, n, at) < 0 ? refuse_field(c, m, f, "a time") : 0;
	case KF_BOOL:
		return slu_json_bool(v, at) < 0 ? refuse_field(c, m, f, "a boolean") : 0;
	case KF_I32:
	case KF_I64:
		return integer(c, m, f, at, v);
	case KF_PAIRS:
	case KF_ANNOTATIONS:
		return pairs(c, m, f, base, v);
	case KF_AMOUNTS:
		return read_amounts(c, m, f, base, v);
	case KF_STRS:
	case KF_MSGS:
		*(void **)at = NULL; /* of equal keys the last wins */
		*(uint16_t *)(base + f->noff) = 0;
		return decode_array(c, m, f, base, v);
	case KF_MSG:
		return slu_kdec_json(c, f->sub, at, v);
	default:
		return 0;
	}
}

static const struct kfield *find_field(const struct kmsg *m, const char *key)
{
	for (const struct kfield *f = m->f; f < m->f + m->nfields; f++) {
		if (f->type != KF_NONE && f->type != KF_INLINE && strcmp(f->json, key) == 0)
			return f;
	}
	return NULL;
}

int slu_kdec_json(struct slu_kcodec *c, const struct kmsg *m, void *base, const struct slu_json *v)
{
	int rc;

	if (!v || slu_json_is_null(v))
		return 0;
	if (!slu_json_is_obj(v)) {
		slu_kdec_problem(c, "%s is not an object", m->name);
		return 0;
	}
	for (const struct kfield *f = m->f; f < m->f + m->nfields; f++) {
		if (f->type != KF_INLINE)
			continue;
		rc = slu_kdec_json(c, f->sub, (char *)base + f->off, v);
		if (rc < 0)
			return rc;
	}
	slu_json_each (v, it) {
		const struct kfield *f = find_field(m, it.key);

		if (!f || slu_json_is_null(it.val))
			continue;
		rc = decode_value(c, m, f, base, it.val);
		if (rc < 0)
			return rc;
		if (f->bit && !(slu_json_is_arr(it.val) && !slu_json_count(it.val)))
			*(uint32_t *)((char *)base + f->noff) |= f->bit;
	}
	return m->maps ? slu_kdec_sort_maps(c, m, base) : 0;
}
