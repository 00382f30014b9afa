/* http.h — shared by client and server: methods, header lists, addresses, escaping. */
#pragma once
#include "base/buf.h"
#include "base/vec.h"

enum slu_http_method {
	SLU_HTTP_GET,
	SLU_HTTP_HEAD,
	SLU_HTTP_POST,
	SLU_HTTP_PUT,
	SLU_HTTP_PATCH,
	SLU_HTTP_DELETE,
	SLU_HTTP_OPTIONS,
	SLU_HTTP_OTHER, /* only requests to the server have it */
};

const char *slu_http_method_name(enum slu_http_method m);
enum slu_http_method slu_http_method_parse(const char *s, size_t n);
/* "Not Found"; "" for a number without a name. */
const char *slu_http_status_text(int status);

/* ---- header lists ---- */

struct slu_header_at {
	uint32_t name, value; /* offsets into the text */
};

/* Zero-initialise for the default ceilings.  Names are kept in lower case. */
struct slu_headers {
	struct slu_buf text; /* "name\0value\0" one after the other */
	SLU_VEC(struct slu_header_at) at;
	uint32_t max_bytes; /* 0: 64 KiB */
	uint32_t max_count; /* 0: 128 */
};

/* 0, -ENOMEM, -EMSGSIZE above a ceiling, -EINVAL for a NUL, CR or LF inside. */
int slu_headers_add(struct slu_headers *h, const char *name, size_t nn, const char *value,
		    size_t vn);
int slu_headers_put(struct slu_headers *h, const char *name, const char *value);
/* First value of a header (name in lower case), borrowed until the next add; NULL if absent. */
const char *slu_headers_get(const struct slu_headers *h, const char *name);
static inline uint32_t slu_headers_count(const struct slu_headers *h)
{
	return h->at.n;
}
const char *slu_headers_name(const struct slu_headers *h, uint32_t i);
const char *slu_headers_value(const struct slu_headers *h, uint32_t i);
/* Forget all, keep memory. */
void slu_headers_reset(struct slu_headers *h);
void slu_headers_done(struct slu_headers *h);

/* ---- addresses ---- */

enum slu_addr_kind { SLU_ADDR_TCP, SLU_ADDR_UNIX };

/* An address to connect to or to listen on. */
struct slu_addr {
	enum slu_addr_kind kind;
	bool tls;       /* from the scheme; false for a bare address */
	char host[256]; /* name or literal IP without brackets; "" listens on all addresses */
	uint16_t port;
	char path[108];   /* socket file of a unix address */
	char prefix[256]; /* path part of a URL without trailing '/', usually "" */
};

/* "https://host:port/prefix", "http://[::1]:80", "host:port", ":8443", "unix:/run/sluice.sock".
 * A URL without port gets 443 or 80.  0 or -EINVAL. */
int slu_addr_parse(const char *text, struct slu_addr *out, struct slu_error *err);
/* "host:port", "[::1]:443" or "unix:/path". */
void slu_addr_text(const struct slu_addr *a, char *out, size_t size);

/* ---- paths and queries ---- */

/* Append percent-encoded: everything outside A-Z a-z 0-9 - . _ ~ */
int slu_http_escape(struct slu_buf *b, const char *s, size_t n);
/* Append decoded.  -EINVAL for a broken escape, an encoded NUL, or bytes that are not UTF-8. */
int slu_http_unescape(struct slu_buf *b, const char *s, size_t n);
/* Append "name=value" escaped, with '?' never and '&' where the buffer already holds a pair. */
int slu_http_query_add(struct slu_buf *b, const char *name, const char *value);
/* The decoded value of `name` in a raw query, appended to `out`: 1 found, 0 absent, negative. */
int slu_http_query_get(const char *query, const char *name, struct slu_buf *out);
