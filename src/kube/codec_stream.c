/* codec_stream.c — what the server sends around objects: lists, events of a watch, statuses. */
#include "kube/codec_int.h"
#include "wire/json.h"
#include "wire/pb.h"

/* ---- lists ---- */

static int list_meta(const struct kraw_listmeta *raw, struct slu_klist *out)
{
	*out = (struct slu_klist){ .remain = raw->remain };
	if (raw->rv.n < sizeof out->rv)
		memcpy(out->rv, raw->rv.p ? raw->rv.p : "", raw->rv.n);
	if (raw->cont.n) {
		out->cont = slu_strndup(raw->cont.p, raw->cont.n);
		if (!out->cont)
			return -ENOMEM;
	}
	return 0;
}

static int list_pb(struct slu_kcodec *c, enum slu_kkind kind, const void *bytes, size_t n,
		   slu_kitem_fn *item, void *arg, struct kraw_listmeta *meta, uint32_t *items)
{
	struct slu_pb r = slu_pb(bytes, n);
	struct slu_pb_field f;
	int rc;

	/* every <Kind>List: 1 metadata, 2 items */
	while ((rc = slu_pb_next(&r, &f)) > 0) {
		const struct slu_kobj *o;

		if (f.wire != SLU_PB_BYTES || (f.num != 1 && f.num != 2))
			continue;
		if (f.num == 1) {
			c->kind = "list";
			rc = slu_kdec_pb(c, &slu_klistmeta_msg, meta, f.p, f.n);
		} else {
			rc = slu_kdec_object(c, kind, f.p, f.n, NULL, &o);
			if (rc == 0) {
				rc = item(arg, o);
				++*items;
			}
		}
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? slu_fail(c->err, -EPROTO, "list of %s: broken protobuf",
				 slu_kkinds[kind].info.resource)
		      : 0;
}

static int list_json(struct slu_kcodec *c, enum slu_kkind kind, const struct slu_json *root,
		     slu_kitem_fn *item, void *arg, struct kraw_listmeta *meta, uint32_t *items)
{
	const struct slu_json *list = slu_json_get(root, "items");
	int rc;

	c->kind = "list";
	if (!slu_json_is_obj(root))
		return slu_fail(c->err, -EPROTO, "list of %s is not an object",
				slu_kkinds[kind].info.resource);
	rc = slu_kdec_json(c, &slu_klistmeta_msg, meta, slu_json_get(root, "metadata"));
	if (rc < 0)
		return rc;
	if (list && !slu_json_is_null(list) && !slu_json_is_arr(list))
		return slu_fail(c->err, -EPROTO, "list of %s: items is not an array",
				slu_kkinds[kind].info.resource);
	slu_json_each (list, it) {
		const struct slu_kobj *o;

		rc = slu_kdec_object(c, kind, NULL, 0, it.val, &o);
		if (rc == 0) {
			rc = item(arg, o);
			++*items;
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

int slu_kcodec_list(struct slu_kcodec *c, enum slu_kkind kind, enum slu_kencoding enc,
		    const void *bytes, size_t n, slu_kitem_fn *item, void *arg,
		    struct slu_klist *out, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct kraw_listmeta meta = { .remain = SLU_KNONE };
	uint32_t items = 0;
	int rc;

	c->err = err;
	if (enc == SLU_ENC_PROTOBUF) {
		if (slu_kdec_envelope(&bytes, &n) < 0)
			return slu_fail(err, -EPROTO, "list of %s: broken protobuf envelope",
					slu_kkinds[kind].info.resource);
		rc = list_pb(c, kind, bytes, n, item, arg, &meta, &items);
	} else {
		rc = slu_kdec_text(c, "list", bytes, n, &doc);
		if (rc == 0)
			rc = list_json(c, kind, slu_json_root(doc), item, arg, &meta, &items);
	}
	if (rc == 0)
		rc = list_meta(&meta, out);
	if (rc == 0)
		out->items = items;
	return rc;
}

/* ---- statuses and events ---- */

static void copy_slice(char *to, size_t size, struct kslice s)
{
	size_t n = SLU_MIN((size_t)s.n, size - 1);

	if (n)
		memcpy(to, s.p, n);
	to[n] = '\0';
}

static void fill_status(const struct kraw_status *raw, struct slu_kstatus *out)
{
	*out = (struct slu_kstatus){ .code = raw->code, .retry_after_s = raw->retry_after };
	copy_slice(out->reason, sizeof out->reason, raw->reason);
	copy_slice(out->message, sizeof out->message, raw->message);
}

int slu_kcodec_status(struct slu_kcodec *c, enum slu_kencoding enc, const void *bytes, size_t n,
		      struct slu_kstatus *out, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct kraw_status raw = { 0 };
	int rc;

	c->err = err;
	c->kind = "Status";
	if (enc == SLU_ENC_PROTOBUF) {
		if (slu_kdec_envelope(&bytes, &n) < 0)
			return slu_fail(err, -EPROTO, "Status: broken protobuf envelope");
		rc = slu_kdec_pb(c, &slu_kstatus_msg, &raw, bytes, n);
	} else {
		rc = slu_kdec_text(c, "Status", bytes, n, &doc);
		if (rc == 0)
			rc = slu_kdec_json(c, &slu_kstatus_msg, &raw, slu_json_root(doc));
	}
	if (rc == 0)
		fill_status(&raw, out);
	return rc;
}

static const struct kword event_words[] = {
	{ "ADDED", SLU_KEVENT_ADDED },     { "MODIFIED", SLU_KEVENT_MODIFIED },
	{ "DELETED", SLU_KEVENT_DELETED }, { "BOOKMARK", SLU_KEVENT_BOOKMARK },
	{ "ERROR", SLU_KEVENT_ERROR },     { NULL, SLU_KEVENT_OTHER },
};

static int bookmark(struct slu_kcodec *c, const void *p, size_t n, const struct slu_json *v,
		    struct slu_kevent *out)
{
	struct kraw_bookmark raw = { 0 };
	int rc;

	c->kind = "bookmark";
	slu_strpool_lock(c->pool);
	rc = v ? slu_kdec_json(c, &slu_kbookmark_msg, &raw, v)
	       : slu_kdec_pb(c, &slu_kbookmark_msg, &raw, p, n);
	slu_strpool_unlock(c->pool);
	if (rc == 0) {
		const char *end = slu_kpair_get(raw.annotations, raw.nannotations,
						"k8s.io/initial-events-end");

		out->rv = raw.rv;
		out->initial_end = end && strcmp(end, "true") == 0;
	}
	slu_kdec_forget(c);
	return rc;
}

/* The object of an event, in whichever encoding, by the type of the event. */
static int event_object(struct slu_kcodec *c, enum slu_kkind kind, const void *p, size_t n,
			const struct slu_json *v, struct slu_kevent *out)
{
	struct kraw_status raw = { 0 };
	int rc;

	switch (out->type) {
	case SLU_KEVENT_BOOKMARK:
		return bookmark(c, p, n, v, out);
	case SLU_KEVENT_ERROR:
		c->kind = "Status";
		rc = v ? slu_kdec_json(c, &slu_kstatus_msg, &raw, v)
		       : slu_kdec_pb(c, &slu_kstatus_msg, &raw, p, n);
		if (rc == 0)
			fill_status(&raw, &out->status);
		return rc;
	case SLU_KEVENT_OTHER:
		return 0;
	default:
		rc = slu_kdec_object(c, kind, p, n, v, &out->obj);
		if (rc == 0)
			out->rv = out->obj->meta.rv;
		return rc;
	}
}

static int event_pb(struct slu_kcodec *c, enum slu_kkind kind, const void *p, size_t n,
		    struct slu_kevent *out)
{
	struct slu_pb r = slu_pb(p, n), in;
	struct slu_pb_field f, e;
	const void *raw = "";
	size_t rawn = 0;
	int rc;

	/* WatchEvent: 1 type, 2 object {1 raw} */
	while ((rc = slu_pb_next(&r, &f)) > 0) {
		if (f.wire != SLU_PB_BYTES)
			continue;
		if (f.num == 1)
			out->type = slu_kdec_word(event_words, (const char *)f.p, f.n);
		if (f.num != 2)
			continue;
		in = slu_pb_sub(&f);
		while ((rc = slu_pb_next(&in, &e)) > 0) {
			if (e.num == 1 && e.wire == SLU_PB_BYTES) {
				raw = e.p;
				rawn = e.n;
			}
		}
		if (rc < 0)
			break;
	}
	if (rc == 0)
		rc = slu_kdec_envelope(&raw, &rawn);
	if (rc < 0)
		return slu_fail(c->err, -EPROTO, "watch of %s: broken protobuf frame",
				slu_kkinds[kind].info.resource);
	return event_object(c, kind, raw, rawn, NULL, out);
}

int slu_kcodec_event(struct slu_kcodec *c, enum slu_kkind kind, enum slu_kencoding enc,
		     const void *bytes, size_t n, struct slu_kevent *out, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_kevent ev = { .type = SLU_KEVENT_OTHER };
	const struct slu_json *type, *obj;
	int rc;

	c->err = err;
	if (enc == SLU_ENC_PROTOBUF) {
		rc = event_pb(c, kind, bytes, n, &ev);
	} else {
		rc = slu_kdec_text(c, "watch event", bytes, n, &doc);
		if (rc < 0)
			return rc;
		type = slu_json_get(slu_json_root(doc), "type");
		obj = slu_json_get(slu_json_root(doc), "object");
		if (!slu_json_is_str(type) || !slu_json_is_obj(obj))
			return slu_fail(err, -EPROTO,
					"watch of %s: an event without type or object",
					slu_kkinds[kind].info.resource);
		ev.type = slu_kdec_word(event_words, slu_json_str(type), slu_json_count(type));
		rc = event_object(c, kind, NULL, 0, obj, &ev);
	}
	if (rc == 0)
		*out = ev;
	return rc;
}
