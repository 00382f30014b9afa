/* jsonstream.h — a JSON text read while it arrives, in pieces of any size.
 *
 * The lists two objects deep, {"…": {"…": [items], …}, …}, are handed out in parts of a bounded size
 * and forgotten.  What remains of the text is the outline, an ordinary document in which the number
 * of a list, counted from 0, stands for its items: [3].
 *
 * A text is accepted or refused, with the same place and words, as slu_json_parse_place() would.
 * That is known at the end only: what the parts say counts if the end does not refuse the text. */
#pragma once
#include "wire/json.h"

#define SLU_JSON_PART ((size_t)64 << 10)

/* Either may be NULL.  A negative return value ends the reading and is what the stream returns from
 * then on. */
struct slu_json_stream_ops {
	/* A list begins under these two keys. */
	int (*list)(void *arg, uint32_t number, const char *outer, const char *inner);
	/* An array with the next items of the list that began last; they stood at byte `at` of the
	 * text and were `n` bytes long. */
	int (*part)(void *arg, const struct slu_json *items, size_t at, size_t n);
};

struct slu_json_stream;

/* A part ends with the first item that makes it at least `part` bytes long.  NULL: no memory. */
struct slu_json_stream *slu_json_stream_new(size_t part, const struct slu_json_stream_ops *ops,
					    void *arg);
/* 0, -ENOMEM, or what a callback returned. */
int slu_json_stream_feed(struct slu_json_stream *s, const char *p, size_t n);
/* After the last piece: 0 with the outline; -EINVAL and -EMSGSIZE with the place; -ENOMEM, or what a
 * callback returned. */
int slu_json_stream_end(struct slu_json_stream *s, struct slu_json_doc **outline,
			struct slu_json_place *place);
void slu_json_stream_free(struct slu_json_stream *s);
SLU_DEFINE_CLEANUP(struct slu_json_stream, slu_json_stream_free)
