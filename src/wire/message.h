/* message.h — protobuf messages by table.  One table per message reads it, writes it and describes
 * it (as a FileDescriptorProto, for reflection), so the three cannot disagree.
 *
 * A message is a plain struct.  Strings are slices of the input and repeated fields arrays in an
 * arena: nothing is copied, so a text of 300 MB costs what it costs to receive.  Fields without a
 * number in the table are skipped, defaults are not written, as proto3 has it.
 *
 *	struct greeting {
 *		struct slu_text name;
 *		int32_t times;
 *	};
 *	static const struct slu_msg_field greeting_fields[] = {
 *		{ 1, "name", SLU_MSG_STR, offsetof(struct greeting, name) },
 *		{ 2, "times", SLU_MSG_I32, offsetof(struct greeting, times) },
 *	};
 *	static const struct slu_msg greeting = SLU_MSG("Greeting", struct greeting, greeting_fields);
 */
#pragma once
#include "base/arena.h"
#include "wire/pb.h"

/* Borrowed text, not NUL-terminated. */
struct slu_text {
	const char *p;
	size_t n;
};

static inline struct slu_text slu_text(const char *s)
{
	return (struct slu_text){ s, s ? strlen(s) : 0 };
}

/* Repeated fields: strings, or structs of the sub-message one after the other. */
struct slu_texts {
	struct slu_text *p;
	uint32_t n;
};
struct slu_subs {
	void *p;
	uint32_t n;
};

enum slu_msg_type {
	SLU_MSG_BOOL, /* bool */
	SLU_MSG_I32,  /* int32_t */
	SLU_MSG_I64,
	SLU_MSG_U64,
	SLU_MSG_FLOAT, /* float */
	SLU_MSG_ENUM,  /* int32_t */
	SLU_MSG_STR,   /* struct slu_text, checked to be UTF-8 */
	SLU_MSG_RAW,   /* a string whose own reader checks it: a graph, a jobspec */
	SLU_MSG_BYTES, /* struct slu_text of any bytes */
	SLU_MSG_SUB,   /* a struct inside */
	SLU_MSG_STRS,  /* struct slu_texts */
	SLU_MSG_BLOBS, /* struct slu_texts of any bytes */
	SLU_MSG_SUBS,  /* struct slu_subs */
};

struct slu_msg_word {
	const char *name; /* NULL ends the list */
	int32_t value;
};

struct slu_msg_enum {
	const char *name; /* nested in the message that uses it */
	const struct slu_msg_word *word;
};

struct slu_msg;

struct slu_msg_field {
	uint32_t num;
	const char *name;
	uint8_t type; /* enum slu_msg_type */
	uint16_t off;
	uint16_t
		has; /* 1 + the offset of a bool that says it was there, and must be to be written */
	bool oneof;  /* one of the message's alternatives */
	const struct slu_msg *sub;
	const struct slu_msg_enum *words;
};

struct slu_msg {
	const char *name; /* within its package */
	uint16_t size, n;
	const struct slu_msg_field *f;
	const char *oneof; /* name of the alternatives; NULL */
};

#define SLU_MSG(text, T, fields) \
	{ .name = (text), .size = sizeof(T), .n = (uint16_t)SLU_LEN(fields), .f = (fields) }

#define SLU_MSG_REPEAT 100000 /* elements of one repeated field */

/* Read `n` bytes into the zeroed struct at `out`; arrays go into the arena, strings stay where they
 * are.  0, -ENOMEM, -EPROTO with the place ("MatchRequest.podspec.cpu: ..."). */
int slu_msg_read(const struct slu_msg *m, const void *p, size_t n, void *out, struct slu_arena *a,
		 struct slu_error *err);
/* Append the struct; errors stick to the buffer. */
void slu_msg_write(const struct slu_msg *m, const void *in, struct slu_buf *out);

/* ---- a message that arrives in pieces ---- */

/* Passes one string of the message, which is too large to be kept, on as it arrives.  Keeps the other
 * fields and reads them at the end, so errors are those of slu_msg_read(). */
struct slu_msg_stream {
	const struct slu_msg *m;
	uint32_t num; /* of the string, a SLU_MSG_RAW */
	/* Its text begins; one that came before does not count.  Then bytes of it.  0, or a negative
	 * value, which slu_msg_stream_feed() returns. */
	int (*begin)(void *arg);
	int (*text)(void *arg, const char *p, size_t n);
	void *arg;
	/* private: zero-initialise, and set rest.max */
	struct slu_buf rest;
	uint8_t head[20]; /* tag and length, or value, of the field under way */
	uint8_t n_head;
	uint8_t to; /* where its bytes go */
	uint64_t left;
};

/* Pieces of any size.  0, -ENOMEM, -EMSGSIZE, or what a callback returned. */
int slu_msg_stream_feed(struct slu_msg_stream *s, const void *p, size_t n);
/* After the last piece, as slu_msg_read(); strings lie in s->rest. */
int slu_msg_stream_end(struct slu_msg_stream *s, void *out, struct slu_arena *a,
		       struct slu_error *err);

/* ---- describing ---- */

struct slu_msg_method {
	const char *name;
	const struct slu_msg *in, *out;
	bool client_streams, server_streams;
};

struct slu_msg_service {
	const char *name; /* within its package */
	const struct slu_msg_method *method;
	uint32_t n;
};

/* A .proto file with one service. */
struct slu_msg_file {
	const char *name;    /* "fluxion.proto" */
	const char *package; /* "fluxion" */
	const struct slu_msg_service *service;
	const struct slu_msg *const *extra; /* messages no method uses, NULL-ended; may be NULL */
};

/* Append it as a FileDescriptorProto, messages in the order in which they are met. */
void slu_msg_describe(const struct slu_msg_file *f, struct slu_buf *out);
/* Whether the file declares this full name: service, method, message, enum or field. */
bool slu_msg_declares(const struct slu_msg_file *f, struct slu_text symbol);
