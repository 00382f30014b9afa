/* What goes over a watch and comes with a list, in JSON or in the protobuf that sluiced asks real
 * servers for.  Objects are written as JSON once (kube_text.c); the protobuf follows from that by the
 * tables of kube/, which tests/kube compares with the published libraries. */
#include "wire.h"

#include "kube/codec_internal.h"
#include "kube/time.h"
#include "wire/json.h"
#include "wire/pb.h"

#define YEAR_0_S (-62167219200) /* what "0000-01-01T00:00:00Z" is in protobuf */

enum slu_kencoding wire_encoding(const struct world *w, enum slu_kkind kind)
{
	return w->protobuf && !is_custom(kind) ? SLU_ENC_PROTOBUF : SLU_ENC_JSON;
}

/* ---- protobuf from JSON ---- */

static void put_message(struct slu_buf *b, const struct kmsg *m, const struct slu_json *v);

static void put_time(struct slu_buf *b, uint32_t num, const struct slu_json *v)
{
	const char *s = slu_json_str_or(v, "");
	size_t at = slu_pb_begin(b, num);
	int64_t us;

	if (slu_ktime_parse(s, strlen(s), &us) < 0)
		us = YEAR_0_S * SECOND;
	slu_pb_put_i64(b, 1, us / SECOND);
	slu_pb_end(b, at);
}

static void put_map(struct slu_buf *b, uint32_t num, const struct slu_json *v, bool amounts)
{
	slu_json_each (v, it) {
		size_t at = slu_pb_begin(b, num), in;

		slu_pb_put_str(b, 1, it.key);
		if (amounts) {
			in = slu_pb_begin(b, 2);
			slu_pb_put_str(b, 1, slu_json_str_or(it.val, ""));
			slu_pb_end(b, in);
		} else {
			slu_pb_put_str(b, 2, slu_json_str_or(it.val, ""));
		}
		slu_pb_end(b, at);
	}
}

static void put_sub(struct slu_buf *b, uint32_t num, const struct kmsg *m, const struct slu_json *v)
{
	size_t at = slu_pb_begin(b, num);

	put_message(b, m, v);
	slu_pb_end(b, at);
}

static void put_field(struct slu_buf *b, uint32_t num, const struct kfield *f,
		      const struct slu_json *v)
{
	switch (f->type) {
	case KF_STR:
	case KF_SLICE:
	case KF_RV:
	case KF_WORD:
		slu_pb_put_str(b, num, slu_json_str(v));
		break;
	case KF_STRS:
		slu_json_each (v, it)
			slu_pb_put_str(b, num, slu_json_str(it.val));
		break;
	case KF_I32:
	case KF_I64:
		slu_pb_put_i64(b, num, slu_json_i64_or(v, 0));
		break;
	case KF_BOOL:
		slu_pb_put_varint(b, num, slu_json_bool_or(v, false));
		break;
	case KF_TIME:
		put_time(b, num, v);
		break;
	case KF_PAIRS:
	case KF_ANNOTATIONS:
	case KF_AMOUNTS:
		put_map(b, num, v, f->type == KF_AMOUNTS);
		break;
	case KF_MSG:
		put_sub(b, num, f->sub, v);
		break;
	case KF_MSGS:
		slu_json_each (v, it)
			put_sub(b, num, f->sub, it.val);
		break;
	case KF_PRESENT:
		if (!slu_json_is_arr(v) || slu_json_count(v))
			slu_pb_put_bytes(b, num, "", 0);
		break;
	default:
		break;
	}
}

static void put_message(struct slu_buf *b, const struct kmsg *m, const struct slu_json *v)
{
	for (uint32_t num = 1; num < m->nfields; num++) {
		const struct kfield *f = &m->f[num];
		const struct slu_json *x = f->json ? slu_json_get(v, f->json) : NULL;

		if (f->type == KF_INLINE)
			put_sub(b, num, f->sub, v);
		else if (f->type != KF_NONE && x)
			put_field(b, num, f, x);
	}
}

static void put_json(struct slu_buf *b, const struct kmsg *m, const char *text, size_t n)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;

	if (slu_json_parse(text, n, NULL, &doc, NULL) < 0)
		abort();
	put_message(b, m, slu_json_root(doc));
}

/* ---- frames of a watch ---- */

/* {type, object: bytes in an envelope}, behind its length. */
static void put_frame(struct slu_buf *b, const char *type, const struct slu_buf *object)
{
	struct slu_buf ev = SLU_BUF_INIT(64u << 20), in = SLU_BUF_INIT(64u << 20);
	unsigned char head[4];
	size_t at;

	slu_buf_add(&in, "k8s", 4);
	slu_pb_put_bytes(&in, 2, slu_buf_str(object), object->n);
	slu_pb_put_str(&ev, 1, type);
	at = slu_pb_begin(&ev, 2);
	slu_pb_put_bytes(&ev, 1, slu_buf_str(&in), in.n);
	slu_pb_end(&ev, at);
	for (int i = 0; i < 4; i++)
		head[i] = (unsigned char)(ev.n >> (24 - 8 * i));
	slu_buf_add(b, head, sizeof head);
	slu_buf_add(b, slu_buf_str(&ev), ev.n);
	slu_buf_done(&ev);
	slu_buf_done(&in);
}

static void event(const struct world *w, enum slu_kkind kind, const struct kmsg *m,
		  const char *type, const char *text, size_t n, struct slu_buf *b)
{
	struct slu_buf object = SLU_BUF_INIT(64u << 20);

	if (wire_encoding(w, kind) == SLU_ENC_JSON) {
		slu_buf_printf(b, "{\"type\":\"%s\",\"object\":", type);
		slu_buf_add(b, text, n);
		slu_buf_puts(b, "}\n");
		return;
	}
	put_json(&object, m, text, n);
	put_frame(b, type, &object);
	slu_buf_done(&object);
}

void wire_event(struct world *w, const struct obj *o, int what, struct slu_buf *b)
{
	static const char *const word[] = { "ADDED", "MODIFIED", "DELETED" };
	struct slu_buf text = SLU_BUF_INIT(64u << 20);

	kube_text(o, &text);
	event(w, o->kind, slu_kkinds[o->kind].msg, word[what], slu_buf_str(&text), text.n, b);
	slu_buf_done(&text);
}

void wire_bookmark(struct world *w, enum slu_kkind kind, struct slu_buf *b)
{
	char text[80];
	int n = snprintf(text, sizeof text, "{\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"}}",
			 w->rv);

	event(w, kind, &slu_kbookmark_msg, "BOOKMARK", text, (size_t)n, b);
}

void wire_gone(struct world *w, enum slu_kkind kind, struct slu_buf *b)
{
	static const char text[] =
		"{\"status\":\"Failure\",\"reason\":\"Expired\",\"message\":\"too old resource version\",\"code\":410}";

	event(w, kind, &slu_kstatus_msg, "ERROR", text, sizeof text - 1, b);
}

/* ---- lists ---- */

static void put_page(struct world *w, enum slu_kkind kind, uint32_t from, uint32_t to,
		     struct slu_buf *b)
{
	struct slu_buf all = SLU_BUF_INIT(64u << 20), text = SLU_BUF_INIT(64u << 20);
	bool json = wire_encoding(w, kind) == SLU_ENC_JSON;
	size_t at;

	slu_buf_printf(&text, "{\"resourceVersion\":\"%" PRIu64 "\"", w->rv);
	if (to < w->obj[kind].n)
		slu_buf_printf(&text, ",\"continue\":\"from %u\"", to);
	slu_buf_puts(&text, "}");
	if (json) {
		slu_buf_printf(&all, "{\"metadata\":%s,\"items\":[", slu_buf_str(&text));
	} else {
		at = slu_pb_begin(&all, 1);
		put_json(&all, &slu_klistmeta_msg, slu_buf_str(&text), text.n);
		slu_pb_end(&all, at);
	}
	for (uint32_t i = from; i < to; i++) {
		text.n = 0;
		kube_text(w->obj[kind].p[i], &text);
		if (json) {
			slu_buf_puts(&all, i > from ? "," : "");
			slu_buf_add(&all, slu_buf_str(&text), text.n);
			continue;
		}
		at = slu_pb_begin(&all, 2);
		put_json(&all, slu_kkinds[kind].msg, slu_buf_str(&text), text.n);
		slu_pb_end(&all, at);
	}
	if (json) {
		slu_buf_puts(&all, "]}");
		slu_buf_add(b, slu_buf_str(&all), all.n);
	} else {
		slu_buf_add(b, "k8s", 4);
		slu_pb_put_bytes(b, 2, slu_buf_str(&all), all.n);
	}
	slu_buf_done(&all);
	slu_buf_done(&text);
}

void wire_list(struct world *w, enum slu_kkind kind, uint32_t each, struct pages *out)
{
	uint32_t n = w->obj[kind].n, step = each ? each : SLU_MAX(n, 1u);

	for (uint32_t from = 0; !from || from < n; from += step) {
		struct slu_buf b = SLU_BUF_INIT(64u << 20);

		put_page(w, kind, from, SLU_MIN(from + step, n), &b);
		if (slu_vec_push(&out->page, b) < 0)
			abort();
	}
}

void wire_pages_done(struct pages *p)
{
	for (uint32_t i = 0; i < p->page.n; i++)
		slu_buf_done(&p->page.p[i]);
	slu_vec_done(&p->page);
	*p = (struct pages){ 0 };
}
