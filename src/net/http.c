#include "net/http.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#include "base/utf8.h"

static const char *const methods[] = {
	[SLU_HTTP_GET] = "GET",         [SLU_HTTP_HEAD] = "HEAD",     [SLU_HTTP_POST] = "POST",
	[SLU_HTTP_PUT] = "PUT",         [SLU_HTTP_PATCH] = "PATCH",   [SLU_HTTP_DELETE] = "DELETE",
	[SLU_HTTP_OPTIONS] = "OPTIONS", [SLU_HTTP_OTHER] = "UNKNOWN",
};

const char *slu_http_method_name(enum slu_http_method m)
{
	return methods[m];
}

enum slu_http_method slu_http_method_parse(const char *s, size_t n)
{
	for (int i = 0; i < SLU_HTTP_OTHER; i++)
		if (strlen(methods[i]) == n && !memcmp(methods[i], s, n))
			return (enum slu_http_method)i;
	return SLU_HTTP_OTHER;
}

const char *slu_http_status_text(int status)
{
	static const struct {
		int code;
		const char *text;
	} t[] = {
		{ 100, "Continue" },
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 206, "Partial Content" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 303, "See Other" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < SLU_LEN(t); i++)
		if (t[i].code == status)
			return t[i].text;
	return "";
}

/* ---- header lists ---- */

static bool is_clean(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] == '\0' || s[i] == '\r' || s[i] == '\n')
			return false;
	return true;
}

int slu_headers_add(struct slu_headers *h, const char *name, size_t nn, const char *value,
		    size_t vn)
{
	uint32_t max = h->max_bytes ? h->max_bytes : 64 << 10;
	size_t start = h->text.n;
	int rc;

	if (!nn || !is_clean(name, nn) || !is_clean(value, vn))
		return -EINVAL;
	if (h->at.n >= (h->max_count ? h->max_count : 128))
		return -EMSGSIZE;
	if (nn > max || vn > max || start + nn + vn + 2 > max)
		return -EMSGSIZE;
	h->text.max = max;
	rc = slu_vec_reserve(&h->at, h->at.n + 1);
	if (!rc)
		rc = slu_buf_room(&h->text, nn + vn + 2);
	if (rc < 0) {
		h->text.error = 0;
		return rc;
	}
	for (size_t i = 0; i < nn; i++) {
		char c = name[i];

		h->text.p[start + i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	h->text.p[start + nn] = '\0';
	if (vn)
		memcpy(h->text.p + start + nn + 1, value, vn);
	h->text.p[start + nn + 1 + vn] = '\0';
	h->text.n = start + nn + vn + 2;
	h->at.p[h->at.n++] = (struct slu_header_at){ (uint32_t)start, (uint32_t)(start + nn + 1) };
	return 0;
}

int slu_headers_put(struct slu_headers *h, const char *name, const char *value)
{
	return slu_headers_add(h, name, strlen(name), value, strlen(value));
}

const char *slu_headers_name(const struct slu_headers *h, uint32_t i)
{
	return h->text.p + h->at.p[i].name;
}

const char *slu_headers_value(const struct slu_headers *h, uint32_t i)
{
	return h->text.p + h->at.p[i].value;
}

const char *slu_headers_get(const struct slu_headers *h, const char *name)
{
	for (uint32_t i = 0; i < h->at.n; i++)
		if (!strcmp(slu_headers_name(h, i), name))
			return slu_headers_value(h, i);
	return NULL;
}

void slu_headers_reset(struct slu_headers *h)
{
	slu_buf_reset(&h->text);
	h->at.n = 0;
}

void slu_headers_done(struct slu_headers *h)
{
	slu_buf_done(&h->text);
	slu_vec_done(&h->at);
}

/* ---- addresses ---- */

static int parse_port(const char *s, size_t n, uint16_t *out)
{
	unsigned v = 0;

	if (!n || n > 5)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	if (v > 65535)
		return -EINVAL;
	*out = (uint16_t)v;
	return 0;
}

static int parse_socket(const char *text, struct slu_addr *a, struct slu_error *err)
{
	const char *s = text + 5; /* "unix:" */

	if (!strncmp(s, "//", 2))
		s += 2;
	if (!*s)
		return slu_fail(err, -EINVAL, "address \"%s\" names no socket file", text);
	if (strlen(s) >= sizeof a->path)
		return slu_fail(err, -EINVAL,
				"socket path \"%.120s\" is longer than %zu characters", s,
				sizeof a->path - 1);
	a->kind = SLU_ADDR_UNIX;
	strcpy(a->path, s);
	return 0;
}

/* Read the path of a URL, which begins at `path`. */
static int parse_prefix(const char *text, const char *path, struct slu_addr *a,
			struct slu_error *err)
{
	size_t n = strlen(path);

	if (*path && *path != '/')
		return slu_fail(err, -EINVAL, "address \"%.200s\" has a query or fragment", text);
	while (n && path[n - 1] == '/')
		n--;
	if (strpbrk(path, "?#") || n >= sizeof a->prefix)
		return slu_fail(err, -EINVAL,
				"address \"%.200s\": the path is too long or has a query", text);
	memcpy(a->prefix, path, n);
	return 0;
}

/* Read "host:port", "[host]:port" or, in a URL, a host alone from [s, end). */
static int parse_host_port(const char *text, const char *s, const char *end, bool url,
			   struct slu_addr *a, struct slu_error *err)
{
	const char *host = s, *colon = NULL;
	size_t n;

	if (*s == '[') {
		const char *close = memchr(s, ']', (size_t)(end - s));

		if (!close)
			return slu_fail(err, -EINVAL, "address \"%.200s\": ']' is missing", text);
		host = s + 1;
		n = (size_t)(close - host);
		if (close + 1 < end) {
			if (close[1] != ':')
				return slu_fail(err, -EINVAL,
						"address \"%.200s\": expected ':' after ']'", text);
			colon = close + 1;
		}
	} else {
		colon = memchr(s, ':', (size_t)(end - s));
		n = (size_t)((colon ? colon : end) - s);
	}
	if (colon) {
		if (parse_port(colon + 1, (size_t)(end - colon - 1), &a->port) < 0)
			return slu_fail(err, -EINVAL,
					"address \"%.200s\": the port is not a number in 0..65535",
					text);
	} else if (!url) {
		return slu_fail(err, -EINVAL, "address \"%.200s\" has no port", text);
	}
	if (n >= sizeof a->host)
		return slu_fail(err, -EINVAL, "address: the host is longer than 255 characters");
	if (url && !n)
		return slu_fail(err, -EINVAL, "address \"%.200s\" has no host", text);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)host[i] <= ' ' || host[i] == '"' || host[i] == '%')
			return slu_fail(err, -EINVAL,
					"address \"%.200s\": the host has a forbidden character",
					text);
	memcpy(a->host, host, n);
	return 0;
}

int slu_addr_parse(const char *text, struct slu_addr *out, struct slu_error *err)
{
	struct slu_addr a = { 0 };
	const char *s = text, *end;
	bool url = true;
	int rc;

	if (!strncmp(s, "unix:", 5)) {
		rc = parse_socket(text, &a, err);
		if (rc == 0)
			*out = a;
		return rc;
	}
	if (!strncasecmp(s, "https://", 8)) {
		s += 8;
		a.tls = true;
		a.port = 443;
	} else if (!strncasecmp(s, "http://", 7)) {
		s += 7;
		a.port = 80;
	} else if (strstr(s, "://")) {
		return slu_fail(err, -EINVAL,
				"address \"%.200s\": the scheme is neither https nor http", text);
	} else {
		url = false;
	}
	end = s + strcspn(s, "/?#");
	if (memchr(s, '@', (size_t)(end - s)))
		return slu_fail(err, -EINVAL, "address holds a user name before '@'; remove it");
	if (*end && !url)
		return slu_fail(err, -EINVAL, "address \"%.200s\" is not host:port", text);
	rc = parse_prefix(text, end, &a, err);
	if (rc == 0)
		rc = parse_host_port(text, s, end, url, &a, err);
	if (rc == 0)
		*out = a;
	return rc;
}

void slu_addr_text(const struct slu_addr *a, char *out, size_t size)
{
	if (a->kind == SLU_ADDR_UNIX)
		snprintf(out, size, "unix:%s", a->path);
	else if (strchr(a->host, ':'))
		snprintf(out, size, "[%s]:%u", a->host, a->port);
	else
		snprintf(out, size, "%s:%u", a->host, a->port);
}

/* ---- paths and queries ---- */

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

int slu_http_escape(struct slu_buf *b, const char *s, size_t n)
{
	static const char hex[] = "0123456789ABCDEF";
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		unsigned char c = (unsigned char)s[i];

		if (is_plain(c)) {
			rc = slu_buf_putc(b, (char)c);
		} else {
			char t[3] = { '%', hex[c >> 4], hex[c & 15] };

			rc = slu_buf_add(b, t, 3);
		}
	}
	return rc;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int slu_http_unescape(struct slu_buf *b, const char *s, size_t n)
{
	size_t from = b->n;

	for (size_t i = 0; i < n; i++) {
		int rc;

		if (s[i] == '%') {
			int hi, lo;

			if (n - i < 3)
				return -EINVAL;
			hi = hex_digit(s[i + 1]);
			lo = hex_digit(s[i + 2]);
			if (hi < 0 || lo < 0 || !(hi | lo))
				return -EINVAL;
			rc = slu_buf_putc(b, (char)(hi << 4 | lo));
			i += 2;
		} else {
			rc = slu_buf_putc(b, s[i]);
		}
		if (rc < 0)
			return rc;
	}
	return slu_utf8_valid(b->p + from, b->n - from) ? 0 : -EINVAL;
}

int slu_http_query_add(struct slu_buf *b, const char *name, const char *value)
{
	if (b->n)
		slu_buf_putc(b, '&');
	slu_http_escape(b, name, strlen(name));
	slu_buf_putc(b, '=');
	return slu_http_escape(b, value, strlen(value));
}

int slu_http_query_get(const char *query, const char *name, struct slu_buf *out)
{
	size_t nn = strlen(name);

	for (const char *s = query; *s;) {
		size_t n = strcspn(s, "&"), eq = 0;

		while (eq < n && s[eq] != '=')
			eq++;
		if (eq == nn && !memcmp(s, name, nn)) {
			const char *v = s + (eq < n ? eq + 1 : n), *end = s + n;
			int rc = 0;

			/* A form's '+' is a space. */
			while (v < end && !rc) {
				size_t k = 0;

				while (v + k < end && v[k] != '+')
					k++;
				rc = slu_http_unescape(out, v, k);
				v += k;
				if (!rc && v < end) {
					rc = slu_buf_putc(out, ' ');
					v++;
				}
			}
			return rc < 0 ? rc : 1;
		}
		s += n;
		if (*s)
			s++;
	}
	return 0;
}
