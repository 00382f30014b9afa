#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

int slu_buf_room(struct slu_buf *b, size_t n)
{
	size_t want, cap;
	char *p;

	if (b->error)
		return b->error;
	if (n > b->max || b->n > b->max - n)
		return b->error = -EMSGSIZE;
	want = b->n + n + 1;
	if (want <= b->cap)
		return 0;
	cap = SLU_MAX(b->cap * 2, (size_t)64);
	cap = SLU_MAX(cap, want);
	p = slu_realloc(b->p, cap);
	if (!p)
		return b->error = -ENOMEM;
	b->p = p;
	b->cap = cap;
	b->p[b->n] = '\0';
	return 0;
}

int slu_buf_add(struct slu_buf *b, const void *p, size_t n)
{
	int rc = slu_buf_room(b, n);

	if (rc < 0)
		return rc;
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
	return 0;
}

int slu_buf_puts(struct slu_buf *b, const char *s)
{
	return slu_buf_add(b, s, strlen(s));
}

int slu_buf_putc(struct slu_buf *b, char c)
{
	return slu_buf_add(b, &c, 1);
}

int slu_buf_i64(struct slu_buf *b, int64_t v)
{
	char t[24], *e = t + sizeof t, *s = e;
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

	do
		*--s = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--s = '-';
	return slu_buf_add(b, s, (size_t)(e - s));
}

int slu_buf_printf(struct slu_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, rc;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return b->error = -EINVAL;
	rc = slu_buf_room(b, (size_t)n);
	if (rc < 0)
		return rc;
	va_start(ap, fmt);
	vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
	return 0;
}

void slu_buf_shift(struct slu_buf *b, size_t n)
{
	assert(n <= b->n);
	if (!n)
		return;
	memmove(b->p, b->p + n, b->n - n + 1);
	b->n -= n;
}

void slu_buf_reset(struct slu_buf *b)
{
	b->n = 0;
	b->error = 0;
	if (b->p)
		b->p[0] = '\0';
}

char *slu_buf_take(struct slu_buf *b)
{
	char *p;

	if (b->error || slu_buf_room(b, 0) < 0)
		return NULL;
	p = b->p;
	b->p = NULL;
	b->n = b->cap = 0;
	return p;
}

void slu_buf_done(struct slu_buf *b)
{
	slu_free(b->p);
	*b = SLU_BUF_INIT(b->max);
}
