/* describe.c — tables of messages as descriptor.proto has them.  The numbers are those of
 * google/protobuf/descriptor.proto. */
#include "wire/message.h"

#include <stdio.h>

/* FieldDescriptorProto.Type */
static const uint8_t types[] = {
	[SLU_MSG_BOOL] = 8,   [SLU_MSG_I32] = 5,   [SLU_MSG_I64] = 3,  [SLU_MSG_U64] = 4,
	[SLU_MSG_FLOAT] = 2,  [SLU_MSG_ENUM] = 14, [SLU_MSG_STR] = 9,  [SLU_MSG_RAW] = 9,
	[SLU_MSG_BYTES] = 12, [SLU_MSG_SUB] = 11,  [SLU_MSG_STRS] = 9, [SLU_MSG_BLOBS] = 12,
	[SLU_MSG_SUBS] = 11,
};

#define MAX_MESSAGES 32

/* Every message of a file once. */
struct found {
	const struct slu_msg *m[MAX_MESSAGES];
	uint32_t n;
};

static void find_messages(struct found *all, const struct slu_msg *m)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->m[i] == m)
			return;
	assert(all->n < MAX_MESSAGES);
	all->m[all->n++] = m;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->f[i].sub)
			find_messages(all, m->f[i].sub);
}

static struct found find_all(const struct slu_msg_file *f)
{
	struct found all = { 0 };

	for (uint32_t i = 0; i < f->service->n; i++) {
		find_messages(&all, f->service->method[i].in);
		find_messages(&all, f->service->method[i].out);
	}
	for (uint32_t i = 0; f->extra && f->extra[i]; i++)
		find_messages(&all, f->extra[i]);
	return all;
}

static void put_type_name(struct slu_buf *out, uint32_t num, const char *package,
			  const char *message, const char *nested)
{
	char name[256];

	snprintf(name, sizeof name, ".%s.%s%s%s", package, message, nested ? "." : "",
		 nested ? nested : "");
	slu_pb_put_str(out, num, name);
}

static void put_field(const struct slu_msg_file *file, const struct slu_msg *m,
		      const struct slu_msg_field *f, struct slu_buf *out)
{
	bool repeated = f->type >= SLU_MSG_STRS;
	size_t at = slu_pb_begin(out, 2);

	slu_pb_put_str(out, 1, f->name);
	slu_pb_put_varint(out, 3, f->num);
	slu_pb_put_varint(out, 4, repeated ? 3 : 1);
	slu_pb_put_varint(out, 5, types[f->type]);
	if (f->sub)
		put_type_name(out, 6, file->package, f->sub->name, NULL);
	else if (f->words)
		put_type_name(out, 6, file->package, m->name, f->words->name);
	if (f->oneof)
		slu_pb_put_varint(out, 9, 0);
	slu_pb_end(out, at);
}

static void put_enum(const struct slu_msg_enum *e, struct slu_buf *out)
{
	size_t at = slu_pb_begin(out, 4);

	slu_pb_put_str(out, 1, e->name);
	for (const struct slu_msg_word *w = e->word; w->name; w++) {
		size_t value = slu_pb_begin(out, 2);

		slu_pb_put_str(out, 1, w->name);
		slu_pb_put_varint(out, 2, (uint64_t)w->value);
		slu_pb_end(out, value);
	}
	slu_pb_end(out, at);
}

static void put_message(const struct slu_msg_file *file, const struct slu_msg *m,
			struct slu_buf *out)
{
	size_t at = slu_pb_begin(out, 4);

	slu_pb_put_str(out, 1, m->name);
	for (uint32_t i = 0; i < m->n; i++)
		put_field(file, m, &m->f[i], out);
	for (uint32_t i = 0; i < m->n; i++)
		if (m->f[i].words)
			put_enum(m->f[i].words, out);
	if (m->oneof) {
		size_t decl = slu_pb_begin(out, 8);

		slu_pb_put_str(out, 1, m->oneof);
		slu_pb_end(out, decl);
	}
	slu_pb_end(out, at);
}

static void put_service(const struct slu_msg_file *file, struct slu_buf *out)
{
	size_t at = slu_pb_begin(out, 6);

	slu_pb_put_str(out, 1, file->service->name);
	for (uint32_t i = 0; i < file->service->n; i++) {
		const struct slu_msg_method *m = &file->service->method[i];
		size_t method = slu_pb_begin(out, 2);

		slu_pb_put_str(out, 1, m->name);
		put_type_name(out, 2, file->package, m->in->name, NULL);
		put_type_name(out, 3, file->package, m->out->name, NULL);
		if (m->client_streams)
			slu_pb_put_varint(out, 5, 1);
		if (m->server_streams)
			slu_pb_put_varint(out, 6, 1);
		slu_pb_end(out, method);
	}
	slu_pb_end(out, at);
}

void slu_msg_describe(const struct slu_msg_file *f, struct slu_buf *out)
{
	struct found all = find_all(f);

	slu_pb_put_str(out, 1, f->name);
	slu_pb_put_str(out, 2, f->package);
	for (uint32_t i = 0; i < all.n; i++)
		put_message(f, all.m[i], out);
	put_service(f, out);
	slu_pb_put_str(out, 12, "proto3");
}

/* Remove "name" or "name." from the front of the text; the rest is "" or the part behind the
 * dot. */
static bool take_name(struct slu_text *s, const char *name)
{
	size_t n = strlen(name);

	if (s->n < n || memcmp(s->p, name, n) != 0 || (s->n > n && s->p[n] != '.'))
		return false;
	n += s->n > n;
	s->p += n;
	s->n -= n;
	return true;
}

static bool declares_inside(const struct slu_msg *m, struct slu_text s)
{
	for (uint32_t i = 0; i < m->n; i++) {
		struct slu_text rest = s;

		if (take_name(&rest, m->f[i].name) && !rest.n)
			return true;
		rest = s;
		if (m->f[i].words && take_name(&rest, m->f[i].words->name) && !rest.n)
			return true;
	}
	return false;
}

bool slu_msg_declares(const struct slu_msg_file *f, struct slu_text symbol)
{
	struct found all = find_all(f);
	struct slu_text s = symbol, rest;

	if (!take_name(&s, f->package) || !s.n)
		return false;
	rest = s;
	if (take_name(&rest, f->service->name)) {
		if (!rest.n)
			return true;
		for (uint32_t i = 0; i < f->service->n; i++) {
			struct slu_text method = rest;

			if (take_name(&method, f->service->method[i].name) && !method.n)
				return true;
		}
	}
	for (uint32_t i = 0; i < all.n; i++) {
		rest = s;
		if (take_name(&rest, all.m[i]->name) &&
		    (!rest.n || declares_inside(all.m[i], rest)))
			return true;
	}
	return false;
}
