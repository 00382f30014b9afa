/* gzip.h — bytes in gzip's format, unpacked as they arrive, or packed at once. */
#pragma once
#include "base/buf.h"

struct slu_gunzip;
/* Takes unpacked bytes; a negative value ends the work and is returned. */
typedef int slu_gunzip_fn(void *arg, const void *p, size_t n);

struct slu_gunzip *slu_gunzip_new(void);
void slu_gunzip_free(struct slu_gunzip *z);
/* 0, -EPROTO for bytes that are not gzip, -ENOMEM, or what fn returned. */
int slu_gunzip_feed(struct slu_gunzip *z, const uint8_t *p, size_t n, slu_gunzip_fn *fn, void *arg);
/* Whether the input ended with a complete member. */
bool slu_gunzip_complete(const struct slu_gunzip *z);

/* Append `n` bytes packed, with the least effort; errors stick to the buffer too. */
int slu_gzip(const void *p, size_t n, struct slu_buf *out);
