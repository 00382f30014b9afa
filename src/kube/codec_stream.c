/* codec_stream.c — the messages that contain objects: lists, events of a watch, statuses. */
#include "kube/codec_internal.h"
#include "wire/json.h"
#include "wire/pb.h"

/* ---- objects among others ---- */

static void copy_slice(char *to, size_t size, struct kslice s)
{
	size_t n = SLU_MIN((size_t)s.n, size - 1);

	if (n)
		memcpy(to, s.p, n);
	to[n] = '\0';
}

/* Decode one object of several. 1: the object cannot be read, and `bad` names it. */
static int one_of_many(struct slu_kcodec *c, enum slu_kkind kind, const void *p, size_t n,
		       const struct slu_json *v, const struct slu_kobj **out, struct slu_kbad *bad)
{
	struct slu_error *outer = c->err, err = { 0 };
	struct kraw_name raw = { 0 };
	int rc;

	c->err = &err;
	rc = slu_kdec_object(c, kind, p, n, v, out);
	if (rc == -EPROTO || rc == -EMSGSIZE) {
		*bad = (struct slu_kbad){ 0 };
		memcpy(bad->why, err.text, SLU_MIN(sizeof bad->why - 1, strlen(err.text)));
		err.text[0] = '\0';
		if ((v ? slu_kdec_json(c, &slu_kname_msg, &raw, v)
		       : slu_kdec_pb(c, &slu_kname_msg, &raw, p, n)) == 0) {
			bad->rv = raw.rv;
			copy_slice(bad->ns, sizeof bad->ns, raw.ns);
			copy_slice(bad->name, sizeof bad->name, raw.name);
		}
		slu_kdec_forget(c);
		rc = 1;
	} else if (rc < 0 && outer) {
		*outer = err;
	}
	c->err = outer;
	return rc;
}

/* ---- lists ---- */

/* Receives the items of a list. */
struct taker {
	slu_kitem_fn *item;
	slu_kbad_fn *bad;
	void *arg;
	struct slu_klist *out;
};

static int take_item(struct slu_kcodec *c, enum slu_kkind kind, const void *p, size_t n,
		     const struct slu_json *v, struct taker *t)
{
	const struct slu_kobj *o;
	struct slu_kbad bad;
	int rc = one_of_many(c, kind, p, n, v, &o, &bad);

	if (rc < 0)
		return rc;
	if (rc > 0) {
		t->out->bad++;
		if (t->bad)
			t->bad(t->arg, &bad);
		return 0;
	}
	t->out->items++;
	return t->item(t->arg, o);
}

static int list_meta(const struct kraw_listmeta *raw, struct slu_klist *out)
{
	out->remain = raw->remain;
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
		   struct taker *t, struct kraw_listmeta *meta)
{
	struct slu_pb r = slu_pb(bytes, n);
	struct slu_pb_field f;
	int rc;

	/* every <Kind>List: 1 metadata, 2 items */
	while ((rc = slu_pb_next(&r, &f)) > 0) {
		if (f.wire != SLU_PB_BYTES || (f.num != 1 && f.num != 2))
			continue;
		if (f.num == 1) {
			c->kind = "list";
			rc = slu_kdec_pb(c, &slu_klistmeta_msg, meta, f.p, f.n);
		} else {
			rc = take_item(c, kind, f.p, f.n, NULL, t);
		}
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? slu_fail(c->err, -EPROTO, "list of %s: broken protobuf",
				 slu_kkinds[kind].info.resource)
		      : 0;
}

static int list_json(struct slu_kcodec *c, enum slu_kkind kind, const struct slu_json *root,
		     struct taker *t, struct kraw_listmeta *meta)
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
		rc = take_item(c, kind, NULL, 0, it.val, t);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int slu_kcodec_list(struct slu_kcodec *c, const struct slu_klist_in *in, struct slu_klist *out,
		    struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct kraw_listmeta meta = { .remain = SLU_KNONE };
	struct slu_klist l = { 0 };
	struct taker t = { in->item, in->bad, in->arg, &l };
	const void *bytes = in->bytes;
	size_t n = in->n;
	int rc;

	c->err = err;
	if (in->enc == SLU_ENC_PROTOBUF) {
		if (slu_kdec_envelope(&bytes, &n) < 0)
			return slu_fail(err, -EPROTO, "list of %s: broken protobuf envelope",
					slu_kkinds[in->kind].info.resource);
		rc = list_pb(c, in->kind, bytes, n, &t, &meta);
	} else {
		rc = slu_kdec_text(c, "list", bytes, n, &doc);
		if (rc == 0)
			rc = list_json(c, in->kind, slu_json_root(doc), &t, &meta);
	}
	if (rc == 0)
		rc = list_meta(&meta, &l);
	if (rc == 0)
		*out = l;
	return rc;
}

/* ---- statuses and events ---- */

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

/* Decode the object of an event, in either encoding, by the type of the event. */
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
		rc = one_of_many(c, kind, p, n, v, &out->obj, &out->bad);
		if (rc < 0)
			return rc;
		out->gone = rc && out->type == SLU_KEVENT_DELETED;
		if (rc)
			out->type = SLU_KEVENT_UNREADABLE;
		out->rv = rc ? out->bad.rv : out->obj->meta.rv;
		return 0;
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
