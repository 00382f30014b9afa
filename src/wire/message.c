#include "wire/message.h"

#include "base/utf8.h"

/* ---- reading ---- */

/* Where in the message the reader is, for the sentence of an error. */
struct place {
	const struct place *up;
	const char *name;
};

static void say_place(const struct place *at, struct slu_buf *b)
{
	if (!at)
		return;
	say_place(at->up, b);
	if (at->up)
		slu_buf_putc(b, '.');
	slu_buf_puts(b, at->name);
}

static int broken_message(const struct place *at, struct slu_error *err, const char *what)
{
	struct slu_buf b = SLU_BUF_INIT(256);

	say_place(at, &b);
	slu_fail(err, -EPROTO, "%s: %s", slu_buf_str(&b), what);
	slu_buf_done(&b);
	return -EPROTO;
}

static const struct slu_msg_field *field_of(const struct slu_msg *m, uint32_t num)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->f[i].num == num)
			return &m->f[i];
	return NULL;
}

static enum slu_pb_wire wire_of(const struct slu_msg_field *f)
{
	if (f->type == SLU_MSG_FLOAT)
		return SLU_PB_FIXED32;
	return f->type <= SLU_MSG_ENUM ? SLU_PB_VARINT : SLU_PB_BYTES;
}

/* Arrays grow by doubling at the powers of two; what they leave behind goes with the arena. */
static void *push_item(struct slu_arena *a, void **p, uint32_t *n, size_t size)
{
	if (!(*n & (*n - 1))) {
		void *more = slu_arena_zalloc(a, (*n ? 2 * (size_t)*n : 1) * size);

		if (!more)
			return NULL;
		if (*n)
			memcpy(more, *p, *n * size);
		*p = more;
	}
	return (char *)*p + (*n)++ * size;
}

static int read_into(const struct slu_msg *m, struct slu_pb r, char *out, struct slu_arena *a,
		     const struct place *at, struct slu_error *err);

static int read_bytes(const struct slu_msg_field *f, const struct slu_pb_field *v, void *to,
		      struct slu_arena *a, const struct place *at, struct slu_error *err)
{
	struct slu_text text = { (const char *)v->p, v->n };
	struct slu_texts *texts = to;
	struct slu_subs *subs = to;
	struct slu_text *one;
	void *sub;

	if ((f->type == SLU_MSG_STR || f->type == SLU_MSG_STRS) && !slu_utf8_valid(text.p, text.n))
		return broken_message(at, err, "the string is not UTF-8");
	switch (f->type) {
	case SLU_MSG_SUB:
		return read_into(f->sub, slu_pb_sub(v), to, a, at, err);
	case SLU_MSG_STRS:
	case SLU_MSG_BLOBS:
		if (texts->n == SLU_MSG_REPEAT)
			return broken_message(at, err, "the field is repeated too often");
		one = push_item(a, (void **)&texts->p, &texts->n, sizeof *one);
		if (!one)
			return -ENOMEM;
		*one = text;
		return 0;
	case SLU_MSG_SUBS:
		if (subs->n == SLU_MSG_REPEAT)
			return broken_message(at, err, "the field is repeated too often");
		sub = push_item(a, &subs->p, &subs->n, f->sub->size);
		return sub ? read_into(f->sub, slu_pb_sub(v), sub, a, at, err) : -ENOMEM;
	default:
		*(struct slu_text *)to = text;
		return 0;
	}
}

static int read_field(const struct slu_msg_field *f, const struct slu_pb_field *v, char *out,
		      struct slu_arena *a, const struct place *at, struct slu_error *err)
{
	void *to = out + f->off;

	if (v->wire != wire_of(f))
		return broken_message(at, err, "the wire type is not that of the field");
	if (f->has)
		*(bool *)(out + f->has - 1) = true;
	switch (f->type) {
	case SLU_MSG_BOOL:
		*(bool *)to = v->u != 0;
		return 0;
	case SLU_MSG_I32:
	case SLU_MSG_ENUM:
		*(int32_t *)to = (int32_t)v->u;
		return 0;
	case SLU_MSG_I64:
	case SLU_MSG_U64:
		*(uint64_t *)to = v->u;
		return 0;
	case SLU_MSG_FLOAT:
		*(float *)to = (float)slu_pb_real(v);
		return 0;
	default:
		return read_bytes(f, v, to, a, at, err);
	}
}

static int read_into(const struct slu_msg *m, struct slu_pb r, char *out, struct slu_arena *a,
		     const struct place *at, struct slu_error *err)
{
	struct slu_pb_field v;
	int rc;

	while ((rc = slu_pb_next(&r, &v)) > 0) {
		const struct slu_msg_field *f = field_of(m, v.num);
		struct place here = { at, f ? f->name : "" };

		if (!f)
			continue;
		rc = read_field(f, &v, out, a, &here, err);
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? broken_message(at, err, "the message is cut off or is not protobuf") : 0;
}

int slu_msg_read(const struct slu_msg *m, const void *p, size_t n, void *out, struct slu_arena *a,
		 struct slu_error *err)
{
	struct place at = { NULL, m->name };

	return read_into(m, slu_pb(p, n), out, a, &at, err);
}

/* ---- in pieces ---- */

enum {
	TO_HEAD, /* between fields, or in the head of one */
	TO_REST,
	TO_TEXT,
	TO_NOBODY, /* no field of the message */
	TO_END,    /* not protobuf: all that follows is kept for slu_msg_read() to say so */
};

/* One more byte of a head.  1: it is complete, 0: it is not, -EPROTO. */
static int take_head(struct slu_msg_stream *s, uint8_t byte, uint64_t *tag, uint64_t *value)
{
	struct slu_pb r;
	int part = 0; /* 0: the tag, 1: what follows it */

	s->head[s->n_head++] = byte;
	r = slu_pb(s->head, s->n_head);
	if (slu_pb_varint(&r, tag) == 0) {
		if (*tag >> 3 == 0 || *tag >> 32)
			return -EPROTO;
		if ((*tag & 7) == SLU_PB_FIXED32 || (*tag & 7) == SLU_PB_FIXED64)
			return 1;
		if ((*tag & 7) != SLU_PB_VARINT && (*tag & 7) != SLU_PB_BYTES)
			return -EPROTO;
		if (r.p == r.end)
			return 0;
		if (slu_pb_varint(&r, value) == 0)
			return 1;
		part = 1;
	}
	/* A varint that ended and is none, or that has more bytes than one can have. */
	if (byte < 0x80)
		return -EPROTO;
	return s->n_head < (part ? sizeof s->head : sizeof s->head / 2) ? 0 : -EPROTO;
}

static int keep_head(struct slu_msg_stream *s)
{
	int rc = slu_buf_add(&s->rest, s->head, s->n_head);

	s->n_head = 0;
	return rc;
}

static int begin_field(struct slu_msg_stream *s, uint64_t tag, uint64_t value)
{
	uint32_t num = (uint32_t)(tag >> 3), wire = tag & 7;

	s->left = wire == SLU_PB_BYTES     ? value
		  : wire == SLU_PB_FIXED64 ? 8
		  : wire == SLU_PB_FIXED32 ? 4
					   : 0;
	if (num == s->num && wire == SLU_PB_BYTES) {
		s->to = TO_TEXT; /* the head is forgotten once all of the text was there */
		return s->begin(s->arg);
	}
	s->to = field_of(s->m, num) ? TO_REST : TO_NOBODY;
	return s->to == TO_REST ? keep_head(s) : 0;
}

static void end_field(struct slu_msg_stream *s)
{
	s->to = TO_HEAD;
	s->n_head = 0;
}

int slu_msg_stream_feed(struct slu_msg_stream *s, const void *bytes, size_t n)
{
	const uint8_t *p = bytes, *end = p + n;
	uint64_t tag, value = 0;
	int rc = 0;

	while (p < end && !rc) {
		size_t k = s->to == TO_END ? (size_t)(end - p)
					   : (size_t)SLU_MIN((uint64_t)(end - p), s->left);

		switch (s->to) {
		case TO_HEAD:
			rc = take_head(s, *p++, &tag, &value);
			if (rc == -EPROTO) {
				s->to = TO_END;
				rc = keep_head(s);
			} else if (rc > 0) {
				rc = begin_field(s, tag, value);
				if (!rc && !s->left)
					end_field(s);
			}
			continue;
		case TO_TEXT:
			rc = s->text(s->arg, (const char *)p, k);
			break;
		case TO_REST:
		case TO_END:
			rc = slu_buf_add(&s->rest, p, k);
			break;
		default:
			break;
		}
		p += k;
		if (s->to != TO_END && !(s->left -= k))
			end_field(s);
	}
	return rc;
}

int slu_msg_stream_end(struct slu_msg_stream *s, void *out, struct slu_arena *a,
		       struct slu_error *err)
{
	int rc = keep_head(s); /* of a field that is cut off, and so is what was kept of it */

	return rc < 0 ? rc : slu_msg_read(s->m, s->rest.p, s->rest.n, out, a, err);
}

/* ---- writing ---- */

static void write_text(struct slu_buf *out, uint32_t num, const struct slu_text *t)
{
	slu_pb_put_bytes(out, num, t->p ? t->p : "", t->n);
}

static void write_sub(const struct slu_msg_field *f, const void *in, struct slu_buf *out)
{
	size_t at = slu_pb_begin(out, f->num);

	slu_msg_write(f->sub, in, out);
	slu_pb_end(out, at);
}

static void write_field(const struct slu_msg_field *f, const char *in, struct slu_buf *out)
{
	const void *from = in + f->off;
	const struct slu_texts *texts = from;
	const struct slu_subs *subs = from;
	bool must = f->has;
	int64_t i = 0;

	switch (f->type) {
	case SLU_MSG_BOOL:
		i = *(const bool *)from;
		break;
	case SLU_MSG_I32:
	case SLU_MSG_ENUM:
		i = *(const int32_t *)from;
		break;
	case SLU_MSG_I64:
	case SLU_MSG_U64:
		i = *(const int64_t *)from;
		break;
	case SLU_MSG_FLOAT:
		if (*(const float *)from != 0)
			slu_pb_put_float(out, f->num, *(const float *)from);
		return;
	case SLU_MSG_SUB:
		write_sub(f, from, out);
		return;
	case SLU_MSG_STRS:
	case SLU_MSG_BLOBS:
		for (uint32_t k = 0; k < texts->n; k++)
			write_text(out, f->num, &texts->p[k]);
		return;
	case SLU_MSG_SUBS:
		for (uint32_t k = 0; k < subs->n; k++)
			write_sub(f, (const char *)subs->p + k * f->sub->size, out);
		return;
	default:
		if (must || ((const struct slu_text *)from)->n)
			write_text(out, f->num, from);
		return;
	}
	if (must || i)
		slu_pb_put_i64(out, f->num, i);
}

void slu_msg_write(const struct slu_msg *m, const void *in, struct slu_buf *out)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct slu_msg_field *f = &m->f[i];

		if (!f->has || *(const bool *)((const char *)in + f->has - 1))
			write_field(f, in, out);
	}
}
