#include "cli/client.h"

#include <stdio.h>

#include "base/file.h"
#include "net/link.h"

#define SOCKET    "unix:/run/sluice/sluiced.sock"
#define ANSWER_NS (20 * SLU_NS_PER_S)
#define TOKEN_MAX (64u << 10)
#define CA_MAX    (4u << 20)

struct exchange {
	struct slu_link *link;
	struct slu_buf *body;
	const struct slu_h2_header *hdr;
	size_t n_hdr;
	int status, rc;
	bool asked, done;
	struct slu_error err;
};

static void finish_exchange(struct exchange *x, int rc, const char *why)
{
	if (x->done)
		return;
	x->rc = rc;
	x->done = true;
	if (why)
		slu_fail(&x->err, rc, "%s", why);
}

static void on_room(void *arg)
{
	struct exchange *x = arg;
	struct slu_h2_stream *s;

	if (x->asked || !slu_link_room(x->link))
		return;
	x->asked = true;
	if (slu_link_request(x->link, x->hdr, x->n_hdr, NULL, 0, x, &s) < 0)
		finish_exchange(x, -EIO, "the request could not be sent");
}

static void on_head(void *arg, struct slu_h2_stream *s)
{
	((struct exchange *)arg)->status = slu_h2_status(s);
}

static void on_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	struct exchange *x = arg;

	slu_buf_add(x->body, p, n);
	slu_link_consume(x->link, s, n);
}

static void on_end(void *arg, struct slu_h2_stream *s)
{
	struct exchange *x = arg;

	finish_exchange(x, x->body->error, x->body->error ? "the answer is too large" : NULL);
}

static void on_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	finish_exchange(arg, -EIO, "the answer was cut off");
}

static void on_down(void *arg, int code, const struct slu_error *err)
{
	struct exchange *x = arg;

	x->link = NULL;
	finish_exchange(x, code ? code : -EIO, err ? err->text : "the connection was closed");
}

static void on_goaway(void *arg, uint32_t code, const char *text)
{
}

static int read_text(const char *file, struct slu_buf *out, struct slu_error *err)
{
	int rc = slu_file_read(file, out);

	if (rc < 0) /* never as -ENOENT: that would be the daemon's socket */
		return slu_fail(err, -EINVAL, "%s: %s", file,
				rc == -EMSGSIZE ? "is too large" : strerror(-rc));
	while (out->n && (out->p[out->n - 1] == '\n' || out->p[out->n - 1] == '\r'))
		out->p[--out->n] = '\0';
	return out->n ? 0 : slu_fail(err, -EINVAL, "%s: is empty", file);
}

static int make_tls(const struct slu_client *d, struct slu_tls **out, struct slu_error *err)
{
	slu_cleanup(slu_buf_done) struct slu_buf ca = SLU_BUF_INIT(CA_MAX);
	struct slu_tls_client_options o = { .insecure = d->insecure,
					    .alpn = "h2",
					    .ca_from = d->ca };
	int rc = d->ca ? read_text(d->ca, &ca, err) : 0;

	if (rc < 0)
		return rc;
	if (d->ca)
		o.ca = (struct slu_pem){ ca.p, ca.n };
	return slu_tls_client_new(&o, out, err);
}

static int exchange(const struct slu_client *d, const struct slu_addr *addr, struct exchange *x,
		    struct slu_error *err)
{
	static const struct slu_link_ops ops = { .room = on_room,
						 .goaway = on_goaway,
						 .down = on_down,
						 .head = on_head,
						 .data = on_data,
						 .end = on_end,
						 .closed = on_closed };
	slu_cleanup(slu_tls_unrefp) struct slu_tls *tls = NULL;
	struct slu_link_options o = { .addr = *addr };
	struct slu_loop *loop = slu_loop_new();
	int rc = loop ? 0 : slu_fail(err, -ENOMEM, "out of memory");

	if (!rc && addr->tls)
		rc = make_tls(d, &tls, err);
	o.tls = tls;
	if (!rc)
		rc = slu_link_open(loop, &o, &ops, x, &x->link);
	if (!rc && !slu_loop_run_until(loop, &x->done, ANSWER_NS))
		rc = slu_fail(err, -ETIMEDOUT, "no answer");
	if (!rc && x->rc) {
		rc = x->rc;
		*err = x->err;
	}
	if (x->link)
		slu_link_close(x->link);
	slu_loop_free(loop);
	return rc;
}

int slu_client_ask(const struct slu_client *d, enum slu_http_method method, const char *path,
		   struct slu_buf *body, int *status, struct slu_error *err)
{
	const char *server = d->server ? d->server : getenv("SLUICE_SERVER");
	const char *token = d->token ? d->token : getenv("SLUICE_TOKEN_FILE");
	slu_cleanup(slu_buf_done) struct slu_buf secret = SLU_BUF_INIT(TOKEN_MAX);
	slu_cleanup(slu_buf_done) struct slu_buf bearer = SLU_BUF_INIT(TOKEN_MAX + 16);
	struct slu_error local = { 0 };
	struct slu_addr addr;
	struct exchange x = { .body = body };
	const char *verb = slu_http_method_name(method);
	int rc;

	server = server && *server ? server : SOCKET;
	rc = slu_addr_parse(server, &addr, err);
	if (rc < 0)
		return rc;
	if (token && *token && addr.tls) {
		rc = read_text(token, &secret, err);
		if (rc < 0)
			return rc;
		slu_buf_printf(&bearer, "Bearer %s", slu_buf_str(&secret));
	}
	struct slu_h2_header hdr[] = {
		{ ":method", verb, strlen(verb), false },
		{ ":scheme", addr.tls ? "https" : "http", addr.tls ? 5 : 4, false },
		{ ":authority", "sluice", 6, false },
		{ ":path", path, strlen(path), false },
		{ "authorization", slu_buf_str(&bearer), bearer.n, true },
	};
	x.hdr = hdr;
	x.n_hdr = SLU_LEN(hdr) - !bearer.n;
	rc = exchange(d, &addr, &x, &local);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return slu_fail(err, rc, "%s; is sluiced running? Set --server or SLUICE_SERVER",
				local.text);
	if (rc < 0)
		return slu_fail(err, rc, "%s: %s", server, local.text);
	*status = x.status;
	return 0;
}
