#include "net/h2.h"

#include <stdio.h>

#include <nghttp2/nghttp2.h>

#include "net/h2_heads_internal.h"

struct slu_h2_stream {
	struct slu_h2 *h2;
	int32_t id;
	void *user;
	struct slu_headers in;
	struct slu_buf out;
	size_t out_at;
	struct slu_headers trailers;
	int status;
	bool head_done, peer_ended, cut, sent;
	bool out_ended, parked; /* parked: nghttp2 waits for resume_data */
	struct slu_h2_stream *next, *prev;
};

struct slu_h2 {
	nghttp2_session *ng;
	const struct slu_h2_ops *ops;
	void *arg;
	bool server, freeing;
	uint32_t max_header_bytes;
	struct slu_h2_stream *streams;
	uint32_t n_streams;
	struct net_h2_heads heads; /* server */
};

#define BODY_MAX (16u << 20) /* unsent bytes of one stream */

static struct slu_h2_stream *stream_new(struct slu_h2 *h, void *user)
{
	struct slu_h2_stream *s = slu_calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->h2 = h;
	s->user = user;
	s->in.max_bytes = h->max_header_bytes;
	s->out = SLU_BUF_INIT(BODY_MAX);
	s->next = h->streams;
	if (s->next)
		s->next->prev = s;
	h->streams = s;
	h->n_streams++;
	return s;
}

static void stream_free(struct slu_h2_stream *s)
{
	struct slu_h2 *h = s->h2;

	if (s->prev)
		s->prev->next = s->next;
	else
		h->streams = s->next;
	if (s->next)
		s->next->prev = s->prev;
	h->n_streams--;
	slu_headers_done(&s->in);
	slu_headers_done(&s->trailers);
	slu_buf_done(&s->out);
	slu_free(s);
}

static struct slu_h2_stream *find_stream(nghttp2_session *ng, int32_t id)
{
	return nghttp2_session_get_stream_user_data(ng, id);
}

/* ---- nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct slu_h2 *h = arg;
	struct slu_h2_stream *s;

	if (!h->server || f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = stream_new(h, NULL);
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* this stream alone is refused */
	s->id = f->hd.stream_id;
	nghttp2_session_set_stream_user_data(ng, s->id, s);
	return 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *f, const uint8_t *name, size_t nn,
		     const uint8_t *value, size_t vn, uint8_t flags, void *arg)
{
	struct slu_h2_stream *s = find_stream(ng, f->hd.stream_id);
	int rc;

	(void)flags, (void)arg;
	if (!s || s->cut)
		return 0;
	if (nn == 7 && !memcmp(name, ":status", 7) && vn == 3)
		s->status = (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
	rc = slu_headers_add(&s->in, (const char *)name, nn, (const char *)value, vn);
	if (rc == -ENOMEM)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (rc < 0)
		s->cut = true;
	return 0;
}

static void head_complete(struct slu_h2 *h, struct slu_h2_stream *s)
{
	if (s->head_done)
		return; /* trailers, which are now in the list */
	if (!h->server && s->status < 200) {
		slu_headers_reset(&s->in); /* 1xx: the real one follows */
		s->status = 0;
		return;
	}
	s->head_done = true;
	h->ops->head(h->arg, s);
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct slu_h2 *h = arg;
	struct slu_h2_stream *s;

	switch (f->hd.type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA:
		s = find_stream(ng, f->hd.stream_id);
		if (s && f->hd.type == NGHTTP2_HEADERS)
			head_complete(h, s);
		s = find_stream(ng, f->hd.stream_id);
		if (s && (f->hd.flags & NGHTTP2_FLAG_END_STREAM) && s->head_done) {
			s->peer_ended = true;
			h->ops->end(h->arg, s);
		}
		break;
	case NGHTTP2_SETTINGS:
		if (!(f->hd.flags & NGHTTP2_FLAG_ACK) && h->ops->settings)
			h->ops->settings(h->arg);
		break;
	case NGHTTP2_PING:
		if ((f->hd.flags & NGHTTP2_FLAG_ACK) && h->ops->pong)
			h->ops->pong(h->arg);
		break;
	case NGHTTP2_GOAWAY:
		if (h->ops->goaway) {
			char text[128];

			snprintf(text, sizeof text, "%.*s",
				 (int)SLU_MIN(f->goaway.opaque_data_len, sizeof text - 1),
				 f->goaway.opaque_data_len ? (const char *)f->goaway.opaque_data
							   : "");
			h->ops->goaway(h->arg, f->goaway.error_code, text);
		}
		break;
	default:
		break;
	}
	return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *arg)
{
	struct slu_h2 *h = arg;
	struct slu_h2_stream *s = find_stream(ng, id);

	(void)flags;
	/* Give the connection's window back at once, so that one slow stream does not stop the
	 * others. */
	nghttp2_session_consume_connection(ng, n);
	if (s)
		h->ops->data(h->arg, s, p, n);
	else
		nghttp2_session_consume_stream(ng, id, n);
	return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *arg)
{
	struct slu_h2 *h = arg;
	struct slu_h2_stream *s = find_stream(ng, id);

	if (!s)
		return 0;
	nghttp2_session_set_stream_user_data(ng, id, NULL);
	h->ops->closed(h->arg, s, code, code == NGHTTP2_REFUSED_STREAM);
	stream_free(s);
	return 0;
}

static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct slu_h2 *h = arg;
	struct slu_h2_stream *s;

	if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
		return 0;
	s = find_stream(ng, f->hd.stream_id);
	if (s && f->hd.type == NGHTTP2_HEADERS)
		s->sent = true;
	/* The answer was complete before the request was: tell the client not to send the rest
	 * (RFC 9113, 8.1). */
	if (s && h->server && (f->hd.flags & NGHTTP2_FLAG_END_STREAM) && !s->peer_ended)
		nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
	return 0;
}

static ssize_t read_body(nghttp2_session *ng, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
			 nghttp2_data_source *src, void *arg)
{
	struct slu_h2_stream *s = src->ptr;
	struct slu_h2 *h = arg;
	size_t left = s->out.n - s->out_at;

	if (!left && !s->out_ended) {
		s->parked = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	n = SLU_MIN(n, left);
	if (n)
		memcpy(p, s->out.p + s->out_at, n);
	s->out_at += n;
	if (n == left) {
		slu_buf_reset(&s->out);
		s->out_at = 0;
		if (s->out_ended) {
			uint32_t k = slu_headers_count(&s->trailers);

			*flags |= NGHTTP2_DATA_FLAG_EOF;
			if (k) {
				nghttp2_nv nv[32];

				k = SLU_MIN(k, (uint32_t)SLU_LEN(nv));
				for (uint32_t i = 0; i < k; i++) {
					const char *name = slu_headers_name(&s->trailers, i);
					const char *value = slu_headers_value(&s->trailers, i);

					nv[i] = (nghttp2_nv){ .name = (uint8_t *)name,
							      .namelen = strlen(name),
							      .value = (uint8_t *)value,
							      .valuelen = strlen(value) };
				}
				*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
				if (nghttp2_submit_trailer(ng, id, nv, k) < 0)
					return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
			}
		} else if (h->ops->drained) {
			h->ops->drained(h->arg, s);
		}
	} else if (s->out_at >= 1 << 20) {
		slu_buf_shift(&s->out, s->out_at);
		s->out_at = 0;
	}
	return (ssize_t)n;
}

/* nghttp2 allocates through us, so that tests can make any allocation fail. */
static void *ng_malloc(size_t n, void *arg)
{
	(void)arg;
	return slu_malloc(n);
}
static void ng_free(void *p, void *arg)
{
	(void)arg;
	slu_free(p);
}
static void *ng_calloc(size_t n, size_t size, void *arg)
{
	(void)arg;
	return slu_calloc(n, size);
}
static void *ng_realloc(void *p, size_t n, void *arg)
{
	(void)arg;
	return slu_realloc(p, n);
}
static nghttp2_mem ng_mem = { NULL, ng_malloc, ng_free, ng_calloc, ng_realloc };

/* ---- the session ---- */

static int session_new(struct slu_h2 *h, const struct slu_h2_options *o)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *opt = NULL;
	int rc = -ENOMEM;

	if (nghttp2_session_callbacks_new(&cb) < 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	if (nghttp2_option_new(&opt) < 0)
		goto out;
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_max_settings(opt, 32);
	nghttp2_option_set_max_outbound_ack(opt, 1000);
	if (o->server) {
		nghttp2_option_set_no_closed_streams(opt, 1);
#ifdef HAVE_NGHTTP2_RESET_RATE_LIMIT
		nghttp2_option_set_stream_reset_rate_limit(opt, 500, 50);
#endif
#ifdef HAVE_NGHTTP2_MAX_CONTINUATIONS
		nghttp2_option_set_max_continuations(opt, 8);
#endif
	}
	if ((o->server ? nghttp2_session_server_new3
		       : nghttp2_session_client_new3)(&h->ng, cb, h, opt, &ng_mem) == 0)
		rc = 0;
out:
	nghttp2_option_del(opt);
	nghttp2_session_callbacks_del(cb);
	return rc;
}

struct slu_h2 *slu_h2_new(const struct slu_h2_options *o, const struct slu_h2_ops *ops, void *arg)
{
	struct slu_h2 *h = slu_calloc(1, sizeof *h);
	uint32_t stream_window = o->stream_window, conn_window = o->conn_window;
	nghttp2_settings_entry set[4];
	size_t n = 0;

	if (!h)
		return NULL;
	h->ops = ops;
	h->arg = arg;
	h->server = o->server;
	h->heads.skip = NGHTTP2_CLIENT_MAGIC_LEN;
	h->max_header_bytes = o->max_header_bytes ? o->max_header_bytes : 64 << 10;
	if (!stream_window)
		stream_window = o->server ? 256 << 10 : 4 << 20;
	if (!conn_window)
		conn_window = o->server ? 4 << 20 : 16 << 20;
	if (session_new(h, o) < 0) {
		slu_free(h);
		return NULL;
	}
	set[n++] = (nghttp2_settings_entry){ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window };
	set[n++] = (nghttp2_settings_entry){ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
					     h->max_header_bytes };
	if (o->server)
		set[n++] = (nghttp2_settings_entry){ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
						     o->max_streams ? o->max_streams : 128 };
	else
		set[n++] = (nghttp2_settings_entry){ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 };
	if (nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, set, n) < 0 ||
	    nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0,
						  (int32_t)conn_window) < 0) {
		slu_h2_free(h);
		return NULL;
	}
	return h;
}

void slu_h2_free(struct slu_h2 *h)
{
	if (!h)
		return;
	h->freeing = true;
	while (h->streams) {
		struct slu_h2_stream *s = h->streams;

		nghttp2_session_set_stream_user_data(h->ng, s->id, NULL);
		h->ops->closed(h->arg, s, SLU_H2_LOST, !s->sent);
		stream_free(s);
	}
	nghttp2_session_del(h->ng);
	slu_free(h);
}

static int explain_nghttp2(int rc, struct slu_error *err)
{
	if (rc == NGHTTP2_ERR_NOMEM)
		return slu_fail(err, -ENOMEM, "no memory for HTTP/2");
	if (rc == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		return slu_fail(err, -EPROTO, "the peer does not speak HTTP/2");
	if (rc == NGHTTP2_ERR_FLOODED)
		return slu_fail(err, -EPROTO, "HTTP/2: the peer floods us with control frames");
	return slu_fail(err, -EPROTO, "HTTP/2: %s", nghttp2_strerror(rc));
}

int slu_h2_recv(struct slu_h2 *h, const uint8_t *p, size_t n, struct slu_error *err)
{
	uint32_t code = SLU_H2_NO_ERROR;
	size_t good = h->server ? net_h2_heads_look(&h->heads, p, n, &code) : n;
	ssize_t r = nghttp2_session_mem_recv(h->ng, p, good);

	if (r < 0)
		return explain_nghttp2((int)r, err);
	if ((size_t)r != good)
		return slu_fail(err, -EPROTO, "HTTP/2: bytes after the end of the session");
	if (code) {
		nghttp2_session_terminate_session(h->ng, code);
		return slu_fail(err, -EPROTO, "HTTP/2: a frame for a stream that was %s",
				code == SLU_H2_STREAM_CLOSED ? "ended" : "passed over");
	}
	return 0;
}

int slu_h2_send(struct slu_h2 *h, struct slu_buf *out, size_t limit, struct slu_error *err)
{
	while (out->n < limit) {
		const uint8_t *p;
		ssize_t r = nghttp2_session_mem_send(h->ng, &p);
		int rc;

		if (r < 0)
			return explain_nghttp2((int)r, err);
		if (!r)
			break;
		rc = slu_buf_add(out, p, (size_t)r);
		if (rc < 0)
			return slu_fail(err, rc, "no memory for HTTP/2");
	}
	return 0;
}

bool slu_h2_wants_send(const struct slu_h2 *h)
{
	return nghttp2_session_want_write(h->ng);
}

bool slu_h2_is_over(const struct slu_h2 *h)
{
	return !nghttp2_session_want_read(h->ng) && !nghttp2_session_want_write(h->ng);
}

size_t slu_h2_bytes(const struct slu_h2 *h)
{
	size_t n = 0;

	for (const struct slu_h2_stream *s = h->streams; s; s = s->next)
		n += sizeof *s + s->in.text.cap + s->trailers.text.cap + s->out.cap;
	return n;
}

uint32_t slu_h2_streams(const struct slu_h2 *h)
{
	return h->n_streams;
}

uint32_t slu_h2_peer_max(const struct slu_h2 *h)
{
	return nghttp2_session_get_remote_settings(h->ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

int slu_h2_ping(struct slu_h2 *h)
{
	return nghttp2_submit_ping(h->ng, NGHTTP2_FLAG_NONE, NULL) < 0 ? -ENOMEM : 0;
}

int slu_h2_goaway(struct slu_h2 *h)
{
	return nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE,
				     nghttp2_session_get_last_proc_stream_id(h->ng),
				     NGHTTP2_NO_ERROR, NULL, 0) < 0
		       ? -ENOMEM
		       : 0;
}

/* ---- streams ---- */

#define NV_MAX 64

static int to_nv(const struct slu_h2_header *hdr, size_t n, nghttp2_nv *nv)
{
	if (n > NV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < n; i++)
		nv[i] = (nghttp2_nv){ .name = (uint8_t *)hdr[i].name,
				      .namelen = strlen(hdr[i].name),
				      .value = (uint8_t *)hdr[i].value,
				      .valuelen = hdr[i].value_len,
				      .flags = hdr[i].sensitive ? NGHTTP2_NV_FLAG_NO_INDEX
								: NGHTTP2_NV_FLAG_NONE };
	return 0;
}

int slu_h2_request(struct slu_h2 *h, const struct slu_h2_header *hdr, size_t n, const void *body,
		   size_t body_len, bool more, void *user, struct slu_h2_stream **out)
{
	nghttp2_nv nv[NV_MAX];
	nghttp2_data_provider dp = { .read_callback = read_body };
	struct slu_h2_stream *s;
	int32_t id;
	int rc = to_nv(hdr, n, nv);

	if (rc < 0)
		return rc;
	s = stream_new(h, user);
	if (!s)
		return -ENOMEM;
	if (body_len) {
		rc = slu_buf_add(&s->out, body, body_len);
		if (rc < 0) {
			stream_free(s);
			return rc;
		}
	}
	s->out_ended = !more;
	dp.source.ptr = s;
	id = nghttp2_submit_request(h->ng, NULL, nv, n, body_len || more ? &dp : NULL, s);
	if (id < 0) {
		stream_free(s);
		return id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPIPE;
	}
	s->id = id;
	*out = s;
	return 0;
}

int slu_h2_respond(struct slu_h2_stream *s, const struct slu_h2_header *hdr, size_t n, bool more)
{
	nghttp2_nv nv[NV_MAX];
	nghttp2_data_provider dp = { .source.ptr = s, .read_callback = read_body };
	int rc = to_nv(hdr, n, nv);

	if (rc < 0)
		return rc;
	rc = nghttp2_submit_response(s->h2->ng, s->id, nv, n, more ? &dp : NULL);
	return !rc ? 0 : rc == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPIPE;
}

static void unpark(struct slu_h2_stream *s)
{
	if (s->parked) {
		s->parked = false;
		nghttp2_session_resume_data(s->h2->ng, s->id);
	}
}

int slu_h2_body(struct slu_h2_stream *s, const void *p, size_t n)
{
	int rc;

	if (s->out_ended)
		return -EPIPE;
	rc = slu_buf_add(&s->out, p, n);
	if (rc < 0) {
		s->out.error = 0; /* frames that are queued already are still sent */
		return rc;
	}
	if (n)
		unpark(s);
	return 0;
}

int slu_h2_body_end(struct slu_h2_stream *s, const struct slu_headers *trailers)
{
	for (uint32_t i = 0; trailers && i < slu_headers_count(trailers); i++) {
		int rc = slu_headers_put(&s->trailers, slu_headers_name(trailers, i),
					 slu_headers_value(trailers, i));

		if (rc < 0)
			return rc;
	}
	s->out_ended = true;
	unpark(s);
	return 0;
}

void slu_h2_reset(struct slu_h2_stream *s, uint32_t code)
{
	nghttp2_submit_rst_stream(s->h2->ng, NGHTTP2_FLAG_NONE, s->id, code);
}

void slu_h2_consume(struct slu_h2_stream *s, size_t n)
{
	if (n && !s->h2->freeing)
		nghttp2_session_consume_stream(s->h2->ng, s->id, n);
}

const struct slu_headers *slu_h2_headers(const struct slu_h2_stream *s)
{
	return &s->in;
}

void slu_h2_headers_take(struct slu_h2_stream *s, struct slu_headers *out)
{
	*out = s->in;
	s->in = (struct slu_headers){ .max_bytes = s->h2->max_header_bytes };
}

bool slu_h2_headers_cut(const struct slu_h2_stream *s)
{
	return s->cut;
}

int slu_h2_status(const struct slu_h2_stream *s)
{
	return s->head_done ? s->status : 0;
}

void *slu_h2_user(const struct slu_h2_stream *s)
{
	return s->user;
}

void slu_h2_set_user(struct slu_h2_stream *s, void *user)
{
	s->user = user;
}

bool slu_h2_peer_ended(const struct slu_h2_stream *s)
{
	return s->peer_ended;
}

const char *slu_h2_code_name(uint32_t code)
{
	return nghttp2_http2_strerror(code);
}
