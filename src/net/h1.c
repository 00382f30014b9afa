#include "net/h1.h"

#include <llhttp.h>

#define WAIT_MAX   (1u << 20)
#define OUT_MAX    (16u << 20)
#define TARGET_MAX (16u << 10)

struct slu_h1 {
	llhttp_t ll;
	llhttp_settings_t set;
	struct slu_h1_options o;
	enum slu_h1_state state;
	int bad;
	const char *bad_reason;
	bool nomem;
	struct slu_buf target, field, value;
	struct slu_headers headers;
	struct slu_buf body, waiting, out;
	bool keep_alive, head_only, chunked, http10, close_after;
	bool in_value;
};

/* Remember why the request is refused; llhttp stops. */
static int refuse_request(struct slu_h1 *h, int status, const char *reason)
{
	h->bad = status;
	h->bad_reason = reason;
	return HPE_USER;
}

static int out_of_memory(struct slu_h1 *h)
{
	h->nomem = true;
	return HPE_USER;
}

static int on_begin(llhttp_t *ll)
{
	struct slu_h1 *h = ll->data;

	h->state = SLU_H1_RECEIVING;
	return 0;
}

static int on_url(llhttp_t *ll, const char *p, size_t n)
{
	struct slu_h1 *h = ll->data;
	int rc = slu_buf_add(&h->target, p, n);

	if (rc == -EMSGSIZE)
		return refuse_request(h, 414, "the target is too long");
	return rc < 0 ? out_of_memory(h) : 0;
}

static int flush_header(struct slu_h1 *h)
{
	int rc;

	if (!h->in_value)
		return 0;
	h->in_value = false;
	rc = slu_headers_add(&h->headers, slu_buf_str(&h->field), h->field.n,
			     slu_buf_str(&h->value), h->value.n);
	slu_buf_reset(&h->field);
	slu_buf_reset(&h->value);
	if (rc == -EMSGSIZE)
		return refuse_request(h, 431, "the header fields are too large");
	if (rc == -EINVAL)
		return refuse_request(h, 400, "a header field has a forbidden character");
	return rc < 0 ? out_of_memory(h) : 0;
}

static int on_field(llhttp_t *ll, const char *p, size_t n)
{
	struct slu_h1 *h = ll->data;
	int rc = flush_header(h);

	if (rc)
		return rc;
	rc = slu_buf_add(&h->field, p, n);
	if (rc == -EMSGSIZE)
		return refuse_request(h, 431, "a header field is too large");
	return rc < 0 ? out_of_memory(h) : 0;
}

static int on_value(llhttp_t *ll, const char *p, size_t n)
{
	struct slu_h1 *h = ll->data;
	int rc = slu_buf_add(&h->value, p, n);

	h->in_value = true;
	if (rc == -EMSGSIZE)
		return refuse_request(h, 431, "a header field is too large");
	return rc < 0 ? out_of_memory(h) : 0;
}

static int on_value_complete(llhttp_t *ll)
{
	struct slu_h1 *h = ll->data;

	h->in_value = true; /* llhttp does not call on_value for an empty value */
	return flush_header(h);
}

static int on_headers_complete(llhttp_t *ll)
{
	struct slu_h1 *h = ll->data;
	const char *expect = slu_headers_get(&h->headers, "expect");

	h->http10 = ll->http_major == 1 && ll->http_minor == 0;
	h->head_only = ll->method == HTTP_HEAD;
	h->keep_alive = llhttp_should_keep_alive(ll);
	if (ll->http_major != 1)
		return refuse_request(h, 505, "only HTTP/1.0 and HTTP/1.1 are supported");
	if (ll->method == HTTP_CONNECT)
		return refuse_request(h, 501, "CONNECT is not supported");
	if ((ll->flags & F_CONTENT_LENGTH) && ll->content_length > h->o.max_body)
		return refuse_request(h, 413, "the body is too large");
	if (expect && !h->http10)
		slu_buf_puts(&h->out, "HTTP/1.1 100 Continue\r\n\r\n");
	return 0;
}

static int on_body(llhttp_t *ll, const char *p, size_t n)
{
	struct slu_h1 *h = ll->data;
	int rc;

	if (n > h->o.max_body)
		return refuse_request(h, 413, "the body is too large");
	h->body.max = h->o.max_body;
	rc = slu_buf_add(&h->body, p, n);
	if (rc == -EMSGSIZE)
		return refuse_request(h, 413, "the body is too large");
	return rc < 0 ? out_of_memory(h) : 0;
}

static int on_complete(llhttp_t *ll)
{
	struct slu_h1 *h = ll->data;

	h->state = SLU_H1_READY;
	return HPE_PAUSED;
}

struct slu_h1 *slu_h1_new(const struct slu_h1_options *o)
{
	struct slu_h1 *h = slu_calloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->o = *o;
	h->target = SLU_BUF_INIT(TARGET_MAX);
	h->field = SLU_BUF_INIT(o->max_header_bytes);
	h->value = SLU_BUF_INIT(o->max_header_bytes);
	h->headers.max_bytes = o->max_header_bytes;
	h->waiting = SLU_BUF_INIT(WAIT_MAX);
	h->out = SLU_BUF_INIT(OUT_MAX);
	llhttp_settings_init(&h->set);
	h->set.on_message_begin = on_begin;
	h->set.on_url = on_url;
	h->set.on_header_field = on_field;
	h->set.on_header_value = on_value;
	h->set.on_header_value_complete = on_value_complete;
	h->set.on_headers_complete = on_headers_complete;
	h->set.on_body = on_body;
	h->set.on_message_complete = on_complete;
	llhttp_init(&h->ll, HTTP_REQUEST, &h->set);
	h->ll.data = h;
	return h;
}

void slu_h1_free(struct slu_h1 *h)
{
	if (!h)
		return;
	slu_buf_done(&h->target);
	slu_buf_done(&h->field);
	slu_buf_done(&h->value);
	slu_headers_done(&h->headers);
	slu_buf_done(&h->body);
	slu_buf_done(&h->waiting);
	slu_buf_done(&h->out);
	slu_free(h);
}

static int execute(struct slu_h1 *h, const char *p, size_t n)
{
	enum llhttp_errno e = llhttp_execute(&h->ll, p, n);
	const char *at = llhttp_get_error_pos(&h->ll);

	while (e == HPE_PAUSED_UPGRADE && h->state != SLU_H1_READY && at >= p && at <= p + n) {
		/* We did not accept the upgrade, so the bytes that follow are HTTP/1.1 as
		 * before. */
		n -= (size_t)(at - p);
		p = at;
		llhttp_resume_after_upgrade(&h->ll);
		e = llhttp_execute(&h->ll, p, n);
		at = llhttp_get_error_pos(&h->ll);
	}
	if (h->nomem)
		return -ENOMEM;
	if (e == HPE_OK)
		return 0;
	if (h->state == SLU_H1_READY) { /* paused behind a complete message */
		size_t used = at >= p && at <= p + n ? (size_t)(at - p) : n;
		int rc = slu_buf_add(&h->waiting, p + used, n - used);

		return rc;
	}
	h->state = SLU_H1_BAD;
	h->keep_alive = false;
	if (!h->bad) {
		h->bad = 400;
		h->bad_reason = llhttp_get_error_reason(&h->ll);
	}
	return 0;
}

int slu_h1_recv(struct slu_h1 *h, const uint8_t *p, size_t n)
{
	if (h->state == SLU_H1_BAD)
		return 0;
	if (h->state == SLU_H1_READY)
		return slu_buf_add(&h->waiting, p, n);
	return execute(h, (const char *)p, n);
}

enum slu_h1_state slu_h1_state(const struct slu_h1 *h)
{
	return h->state;
}

int slu_h1_bad_status(const struct slu_h1 *h)
{
	return h->bad;
}

const char *slu_h1_bad_reason(const struct slu_h1 *h)
{
	return h->bad_reason && *h->bad_reason ? h->bad_reason : "the request is malformed";
}

const char *slu_h1_method(const struct slu_h1 *h)
{
	return llhttp_method_name((llhttp_method_t)h->ll.method);
}

const char *slu_h1_target(const struct slu_h1 *h)
{
	return slu_buf_str(&h->target);
}

struct slu_headers *slu_h1_headers(struct slu_h1 *h)
{
	return &h->headers;
}

struct slu_buf *slu_h1_body(struct slu_h1 *h)
{
	return &h->body;
}

/* ---- answers ---- */

static bool bodyless(int status)
{
	return status == 204 || status == 304 || status < 200;
}

int slu_h1_respond(struct slu_h1 *h, int status, const struct slu_headers *headers, int64_t length)
{
	struct slu_buf *b = &h->out;

	slu_buf_printf(b, "HTTP/1.1 %d %s\r\n", status, slu_http_status_text(status));
	for (uint32_t i = 0; headers && i < slu_headers_count(headers); i++) {
		slu_buf_puts(b, slu_headers_name(headers, i));
		slu_buf_puts(b, ": ");
		slu_buf_puts(b, slu_headers_value(headers, i));
		slu_buf_puts(b, "\r\n");
	}
	h->chunked = false;
	if (length >= 0 && !bodyless(status)) {
		slu_buf_printf(b, "content-length: %" PRId64 "\r\n", length);
	} else if (length < 0 && !bodyless(status)) {
		if (h->http10)
			h->keep_alive = false; /* the end of the connection ends the body */
		else
			h->chunked = true;
		if (h->chunked)
			slu_buf_puts(b, "transfer-encoding: chunked\r\n");
	}
	if (bodyless(status))
		h->head_only = true;
	if (h->close_after)
		h->keep_alive = false;
	if (!h->keep_alive)
		slu_buf_puts(b, "connection: close\r\n");
	else if (h->http10)
		slu_buf_puts(b, "connection: keep-alive\r\n");
	slu_buf_puts(b, "\r\n");
	return b->error;
}

int slu_h1_write(struct slu_h1 *h, const void *p, size_t n)
{
	struct slu_buf *b = &h->out;

	if (!n || h->head_only)
		return b->error;
	if (n > OUT_MAX / 2 || b->n > OUT_MAX / 2)
		return -EMSGSIZE; /* nothing was added: the answer may go on later */
	if (h->chunked)
		slu_buf_printf(b, "%zx\r\n", n);
	slu_buf_add(b, p, n);
	if (h->chunked)
		slu_buf_puts(b, "\r\n");
	return b->error;
}

int slu_h1_end(struct slu_h1 *h, const struct slu_headers *trailers)
{
	struct slu_buf *b = &h->out;

	if (!h->chunked || h->head_only)
		return b->error;
	slu_buf_puts(b, "0\r\n");
	for (uint32_t i = 0; trailers && i < slu_headers_count(trailers); i++) {
		slu_buf_puts(b, slu_headers_name(trailers, i));
		slu_buf_puts(b, ": ");
		slu_buf_puts(b, slu_headers_value(trailers, i));
		slu_buf_puts(b, "\r\n");
	}
	slu_buf_puts(b, "\r\n");
	return b->error;
}

bool slu_h1_keep_alive(const struct slu_h1 *h)
{
	return h->keep_alive && !h->close_after;
}

void slu_h1_close_after(struct slu_h1 *h)
{
	h->close_after = true;
}

int slu_h1_next(struct slu_h1 *h)
{
	struct slu_buf rest = h->waiting;
	int rc = 0;

	slu_buf_reset(&h->target);
	slu_buf_reset(&h->field);
	slu_buf_reset(&h->value);
	slu_headers_reset(&h->headers);
	slu_buf_done(&h->body);
	h->in_value = h->head_only = h->chunked = h->http10 = false;
	h->state = SLU_H1_IDLE;
	h->waiting = SLU_BUF_INIT(WAIT_MAX);
	llhttp_resume(&h->ll);
	if (rest.n)
		rc = execute(h, rest.p, rest.n);
	slu_buf_done(&rest);
	return rc;
}

int slu_h1_send(struct slu_h1 *h, struct slu_buf *out)
{
	int rc = h->out.error ? h->out.error : slu_buf_add(out, slu_buf_str(&h->out), h->out.n);

	slu_buf_reset(&h->out);
	return rc;
}

size_t slu_h1_unsent(const struct slu_h1 *h)
{
	return h->out.n;
}

size_t slu_h1_bytes(const struct slu_h1 *h)
{
	return h->target.cap + h->field.cap + h->value.cap + h->headers.text.cap + h->body.cap +
	       h->waiting.cap + h->out.cap;
}
