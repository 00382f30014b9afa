/* wire.h — bytes as the API server sends them: events of a watch, pages of a list. */
#pragma once
#include "kube/codec.h"
#include "world.h"

/* Of the kind's lists and watches in this world; custom resources come as JSON always. */
enum slu_kencoding wire_encoding(const struct world *w, enum slu_kkind kind);
void wire_event(struct world *w, const struct obj *o, int what, struct slu_buf *b); /* LINE_* */
/* The version of now, without an object. */
void wire_bookmark(struct world *w, enum slu_kkind kind, struct slu_buf *b);
/* 410 within a stream. */
void wire_gone(struct world *w, enum slu_kkind kind, struct slu_buf *b);
/* A list of the kind as it is now, in pages of `each` objects (0: in one).  Pages that are asked for later
 * still show this moment. */
struct pages {
	SLU_VEC(struct slu_buf) page;
};
void wire_list(struct world *w, enum slu_kkind kind, uint32_t each, struct pages *out);
void wire_pages_done(struct pages *p);
