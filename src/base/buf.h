/* buf.h — a growable byte buffer born with a ceiling.  After a failed append the buffer is
 * "broken": further appends do nothing, and `error` says why; so writers check once at the end. */
#pragma once
#include "base/base.h"

struct slu_buf {
	char *p; /* NUL-terminated whenever not NULL */
	size_t n, cap, max;
	int error; /* 0, -ENOMEM or -EMSGSIZE; sticky */
};

#define SLU_BUF_INIT(ceiling) ((struct slu_buf){ .max = (ceiling) })

int slu_buf_add(struct slu_buf *b, const void *p, size_t n);
int slu_buf_puts(struct slu_buf *b, const char *s);
int slu_buf_putc(struct slu_buf *b, char c);
int slu_buf_i64(struct slu_buf *b, int64_t v);
int slu_buf_printf(struct slu_buf *b, const char *fmt, ...) SLU_PRINTF(2, 3);
/* Make room for n more bytes without adding them (the caller writes at p + n). */
int slu_buf_room(struct slu_buf *b, size_t n);
/* Drop the first n bytes. */
void slu_buf_shift(struct slu_buf *b, size_t n);
/* Empty the buffer and clear its error; its memory is kept. */
void slu_buf_reset(struct slu_buf *b);
/* Move the text out (the caller frees it; NULL only if the buffer is broken) and leave the
 * buffer empty. */
char *slu_buf_take(struct slu_buf *b);
void slu_buf_done(struct slu_buf *b);
static inline const char *slu_buf_str(const struct slu_buf *b)
{
	return b->p ? b->p : "";
}
