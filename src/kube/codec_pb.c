/* Reading Kubernetes protobuf by table. */
#include "kube/codec_internal.h"
#include "wire/pb.h"

static int broken_field(struct slu_kcodec *c, const struct kmsg *m, const struct kfield *f)
{
	return slu_fail(c->err, -EPROTO, "%s: broken protobuf in %s%s%s", c->kind, m->name,
			f ? "." : "", f ? f->json : "");
}

/* {1 key, 2 value} of a map; both borrowed. */
static int map_entry(const struct slu_pb_field *f, struct slu_pb_field kv[2])
{
	struct slu_pb r = slu_pb_sub(f);
	struct slu_pb_field e;
	int rc;

	kv[0] = kv[1] = (struct slu_pb_field){ .p = (const uint8_t *)"" };
	while ((rc = slu_pb_next(&r, &e)) > 0) {
		if (e.num != 1 && e.num != 2)
			continue;
		if (e.wire != SLU_PB_BYTES)
			return -EPROTO;
		kv[e.num - 1] = e;
	}
	return rc;
}

/* resource.Quantity is a message with one string, number 1. */
static int quantity(const struct slu_pb_field *f, struct slu_pb_field *text)
{
	struct slu_pb r = slu_pb_sub(f);
	struct slu_pb_field e;
	int rc;

	*text = (struct slu_pb_field){ .p = (const uint8_t *)"" };
	while ((rc = slu_pb_next(&r, &e)) > 0) {
		if (e.num == 1 && e.wire == SLU_PB_BYTES)
			*text = e;
	}
	return rc;
}

/* Time and MicroTime: {1 seconds, 2 nanos}. Leave out an impossible time and note it on the
 * object, as the JSON reader does; if it were an error, a user who may write a status could hide
 * all other objects from the daemon. */
static int time_us(struct slu_kcodec *c, const struct kfield *fd, const struct slu_pb_field *f,
		   int64_t *out)
{
	struct slu_pb r = slu_pb_sub(f);
	struct slu_pb_field e;
	int64_t s = 0, ns = 0;
	int rc;

	while ((rc = slu_pb_next(&r, &e)) > 0) {
		if (e.wire != SLU_PB_VARINT)
			continue;
		if (e.num == 1)
			s = (int64_t)e.u;
		else if (e.num == 2)
			ns = (int64_t)e.u;
	}
	if (rc < 0)
		return rc;
	/* Kubernetes has no times outside the years 1 to 9999. */
	if (s < -62135596800 || s > 253402300799 || ns < 0 || ns > 999999999)
		slu_kdec_problem(c, "%s is not a time", fd->json);
	else
		*out = s * 1000000 + ns / 1000;
	return 0;
}

static int add_pair(struct slu_kcodec *c, const struct kfield *fd, char *base,
		    const struct slu_pb_field *f)
{
	struct slu_kpair *e;
	struct slu_pb_field kv[2];
	bool full = false;
	int rc = map_entry(f, kv);

	if (rc < 0)
		return rc;
	if (fd->type == KF_ANNOTATIONS && !slu_kdec_keeps(c, (const char *)kv[0].p, kv[0].n))
		return 0;
	e = slu_kdec_push(c, base + fd->off, (uint16_t *)(base + fd->noff), sizeof *e, &full);
	if (!e)
		return full ? 0 : -ENOMEM;
	e->key = slu_kdec_str(c, (const char *)kv[0].p, kv[0].n);
	e->value = slu_kdec_str(c, (const char *)kv[1].p, kv[1].n);
	return e->key && e->value ? 0 : -ENOMEM;
}

static int add_amount(struct slu_kcodec *c, const struct kfield *fd, char *base,
		      const struct slu_pb_field *f)
{
	struct slu_pb_field kv[2], text = { 0 };
	int rc = map_entry(f, kv);

	if (rc == 0)
		rc = quantity(&kv[1], &text);
	if (rc < 0)
		return rc;
	return slu_kdec_amount(c, (struct slu_kamount **)(base + fd->off),
			       (uint16_t *)(base + fd->noff), fd->json, (const char *)kv[0].p,
			       kv[0].n, (const char *)text.p, text.n);
}

static int bytes_field(struct slu_kcodec *c, const struct kfield *fd, char *base,
		       const struct slu_pb_field *f)
{
	const char *text = (const char *)f->p, *s;
	void *at = base + fd->off;
	bool full = false;
	void *e;

	switch (fd->type) {
	case KF_STR:
		s = slu_kdec_str(c, text, f->n);
		if (!s)
			return -ENOMEM;
		*(const char **)at = s;
		return 0;
	case KF_SLICE:
		*(struct kslice *)at = (struct kslice){ text, (uint32_t)f->n };
		return 0;
	case KF_STRS:
		e = slu_kdec_push(c, at, (uint16_t *)(base + fd->noff), sizeof(char *), &full);
		if (!e)
			return full ? 0 : -ENOMEM;
		*(const char **)e = slu_kdec_str(c, text, f->n);
		return *(const char **)e ? 0 : -ENOMEM;
	case KF_TIME:
		return time_us(c, fd, f, at);
	case KF_RV:
		*(uint64_t *)at = slu_kdec_rv(text, f->n);
		return 0;
	case KF_WORD:
		*(uint8_t *)at = slu_kdec_word(fd->words, text, f->n);
		return 0;
	case KF_PAIRS:
	case KF_ANNOTATIONS:
		return add_pair(c, fd, base, f);
	case KF_AMOUNTS:
		return add_amount(c, fd, base, f);
	case KF_MSG:
	case KF_INLINE:
		return slu_kdec_pb(c, fd->sub, at, f->p, f->n);
	case KF_MSGS:
		e = slu_kdec_push(c, at, (uint16_t *)(base + fd->noff), fd->sub->size, &full);
		if (!e)
			return full ? 0 : -ENOMEM;
		if (fd->sub->defaults)
			memcpy(e, fd->sub->defaults, fd->sub->size);
		else
			memset(e, 0, fd->sub->size);
		return slu_kdec_pb(c, fd->sub, e, f->p, f->n);
	case KF_PRESENT:
		return 0;
	default:
		return -EPROTO;
	}
}

static int varint_field(const struct kfield *fd, char *base, uint64_t u)
{
	void *at = base + fd->off;

	switch (fd->type) {
	case KF_I32:
		*(int32_t *)at = (int32_t)u;
		return 0;
	case KF_I64:
		*(int64_t *)at = (int64_t)u;
		return 0;
	case KF_BOOL:
		*(bool *)at = u != 0;
		return 0;
	case KF_PRESENT:
		return 0;
	default:
		return -EPROTO;
	}
}

int slu_kdec_pb(struct slu_kcodec *c, const struct kmsg *m, void *base, const void *p, size_t n)
{
	struct slu_pb r = slu_pb(p, n);
	struct slu_pb_field f;
	int rc;

	while ((rc = slu_pb_next(&r, &f)) > 0) {
		const struct kfield *fd;

		if (f.num >= m->nfields)
			continue;
		fd = &m->f[f.num];
		if (fd->type == KF_NONE)
			continue;
		if (f.wire == SLU_PB_BYTES)
			rc = bytes_field(c, fd, base, &f);
		else if (f.wire == SLU_PB_VARINT)
			rc = varint_field(fd, base, f.u);
		else
			rc = -EPROTO;
		if (rc == -EPROTO && (!c->err || !c->err->text[0]))
			return broken_field(c, m, fd);
		if (rc < 0)
			return rc;
		if (fd->bit)
			*(uint32_t *)((char *)base + fd->noff) |= fd->bit;
	}
	if (rc < 0)
		return broken_field(c, m, NULL);
	return m->maps ? slu_kdec_sort_maps(c, m, base) : 0;
}

int slu_kdec_envelope(const void **p, size_t *n)
{
	struct slu_pb r;
	struct slu_pb_field f;
	const void *raw = "";
	size_t rawn = 0;
	int rc;

	if (*n < 4 || memcmp(*p, "k8s\0", 4) != 0)
		return 0;
	/* runtime.Unknown: 1 typeMeta, 2 raw, 3 contentEncoding, 4 contentType */
	r = slu_pb((const char *)*p + 4, *n - 4);
	while ((rc = slu_pb_next(&r, &f)) > 0) {
		if (f.num == 2 && f.wire == SLU_PB_BYTES) {
			raw = f.p;
			rawn = f.n;
		}
	}
	if (rc < 0)
		return -EPROTO;
	*p = raw;
	*n = rawn;
	return 0;
}
