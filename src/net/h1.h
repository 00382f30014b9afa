/* h1.h — the server's side of one HTTP/1.1 connection as a machine without sockets (llhttp inside).
 * One request at a time: bytes behind it wait until slu_h1_next(). */
#pragma once
#include "net/http.h"

struct slu_h1;

struct slu_h1_options {
	size_t max_body; /* 0: none at all */
	uint32_t max_header_bytes;
};

enum slu_h1_state {
	SLU_H1_IDLE,      /* no byte of a request has arrived yet */
	SLU_H1_RECEIVING, /* some of it */
	SLU_H1_READY,     /* the request is complete: answer it, then call slu_h1_next() */
	SLU_H1_BAD,       /* the request is refused: answer slu_h1_bad_status() and close */
};

struct slu_h1 *slu_h1_new(const struct slu_h1_options *o);
void slu_h1_free(struct slu_h1 *h);

/* 0, -ENOMEM, or -EMSGSIZE when more than 1 MiB waits behind a request that is being answered. */
int slu_h1_recv(struct slu_h1 *h, const uint8_t *p, size_t n);
enum slu_h1_state slu_h1_state(const struct slu_h1 *h);
int slu_h1_bad_status(const struct slu_h1 *h);
const char *slu_h1_bad_reason(const struct slu_h1 *h);

/* The request; target and method borrowed until next, headers and body may be moved out. */
const char *slu_h1_method(const struct slu_h1 *h);
const char *slu_h1_target(const struct slu_h1 *h);
struct slu_headers *slu_h1_headers(struct slu_h1 *h);
struct slu_buf *slu_h1_body(struct slu_h1 *h);

/* The answer.  `length` < 0: unknown, sent in chunks (or until close for HTTP/1.0). */
int slu_h1_respond(struct slu_h1 *h, int status, const struct slu_headers *headers, int64_t length);
int slu_h1_write(struct slu_h1 *h, const void *p, size_t n);
int slu_h1_end(struct slu_h1 *h, const struct slu_headers *trailers);
/* Whether the connection may be used again after this answer. */
bool slu_h1_keep_alive(const struct slu_h1 *h);
void slu_h1_close_after(struct slu_h1 *h);
/* Forget this request and parse the bytes behind it. */
int slu_h1_next(struct slu_h1 *h);

/* Bytes to send: move them into `out`. */
int slu_h1_send(struct slu_h1 *h, struct slu_buf *out);
size_t slu_h1_unsent(const struct slu_h1 *h);
/* Memory of the request, of the bytes behind it and of what is not sent. */
size_t slu_h1_bytes(const struct slu_h1 *h);
