/* codec.h — bytes of the API server in, objects of object.h out; and the few bodies we send.
 *
 * Both encodings of every kind go through one table of fields per message (codec_tables.c), which
 * gives JSON name and protobuf number side by side; what is not in the table is skipped in place.
 *
 * A codec is scratch memory plus a string pool.  One thread at a time; make one per thread. Objects
 * outlive their codec but not their pool. */
#pragma once
#include "base/buf.h"
#include "kube/object.h"

struct slu_kcodec;

/* `pool` is borrowed for the life of the codec and of every object made with it. */
struct slu_kcodec *slu_kcodec_new(struct slu_strpool *pool);
void slu_kcodec_free(struct slu_kcodec *c);
SLU_DEFINE_CLEANUP(struct slu_kcodec, slu_kcodec_free)

/* The pool it was made with. */
struct slu_strpool *slu_kcodec_pool(const struct slu_kcodec *c);

/* Annotations are kept only if their key starts with a prefix on the list.  The list begins with
 * sluice.sh/, fluence, fluxnetes, fluxqueue, scheduling., pod-group.scheduling; this adds one (""
 * keeps everything).  0 or -ENOMEM. */
int slu_kcodec_keep_annotations(struct slu_kcodec *c, const char *prefix);

enum slu_kencoding {
	SLU_ENC_JSON,
	SLU_ENC_PROTOBUF,
};

/* The encoding that a Content-Type names; JSON if it is unknown. */
enum slu_kencoding slu_kencoding_of(const char *content_type);

/* Ceiling of one watch frame (etcd's own limit is far below): beyond it -EMSGSIZE.  Arrays inside
 * an object end at 65535 elements: the rest is left out and SLU_KOBJ_CUT is set. */
#define SLU_KCODEC_MAX_FRAME (16 << 20) /* one watch frame; etcd's own limit is far below */

/* Decode one object (protobuf: with or without the "k8s\0" envelope).  0 with *out owned by the
 * caller (slu_kobj_unref); -EPROTO when the bytes are not what they should be, -EMSGSIZE beyond a
 * ceiling, -ENOMEM.  `bytes` is not kept. */
int SLU_MUST_CHECK slu_kcodec_object(struct slu_kcodec *c, enum slu_kkind kind,
				     enum slu_kencoding enc, const void *bytes, size_t n,
				     const struct slu_kobj **out, struct slu_error *err);

/* An object that cannot be read.  The reader leaves it out and goes on with the others. */
struct slu_kbad {
	uint64_t rv; /* 0, "" if not even that can be read */
	char ns[64], name[256];
	char why[160];
	bool gone; /* the event said that the object was deleted (slu_mirror) */
};

struct slu_klist {
	char rv[32];    /* resourceVersion of the list; "" if absent or absurdly long */
	char *cont;     /* continue token, malloc'ed (slu_free), NULL on the last page */
	int64_t remain; /* remainingItemCount or SLU_KNONE */
	uint32_t items;
	uint32_t bad; /* left out */
};

/* Called with each item, which the callee owns from then on, even if it returns an error; an
 * error ends the decoding. */
typedef int slu_kitem_fn(void *arg, const struct slu_kobj *o);
/* Called for each item that is left out. */
typedef void slu_kbad_fn(void *arg, const struct slu_kbad *bad);

/* The bytes of a list, and the functions that get its items. */
struct slu_klist_in {
	enum slu_kkind kind;
	enum slu_kencoding enc;
	const void *bytes;
	size_t n;
	slu_kitem_fn *item;
	slu_kbad_fn *bad; /* NULL: only counted */
	void *arg;        /* of both */
};

/* Decode a list and hand over its items one by one in order, but for those that cannot be read. */
int SLU_MUST_CHECK slu_kcodec_list(struct slu_kcodec *c, const struct slu_klist_in *in,
				   struct slu_klist *out, struct slu_error *err);

enum slu_kevent_type {
	SLU_KEVENT_ADDED,
	SLU_KEVENT_MODIFIED,
	SLU_KEVENT_DELETED,
	SLU_KEVENT_BOOKMARK,
	SLU_KEVENT_ERROR,
	SLU_KEVENT_OTHER,      /* a type we do not know */
	SLU_KEVENT_UNREADABLE, /* an object was added, modified or deleted that cannot be read */
};

/* The part of metav1.Status that code or people use. */
struct slu_kstatus {
	int32_t code;          /* 410, ... */
	int32_t retry_after_s; /* 0 if absent */
	char reason[64];       /* "Expired", "AlreadyExists", ... */
	char message[256];
};

struct slu_kevent {
	enum slu_kevent_type type;
	/* ADDED, MODIFIED, DELETED: the object, owned by the caller.  BOOKMARK: NULL. */
	const struct slu_kobj *obj;
	uint64_t rv;               /* of the object or the bookmark */
	bool initial_end;          /* bookmark with k8s.io/initial-events-end */
	struct slu_kstatus status; /* ERROR */
	struct slu_kbad bad;       /* UNREADABLE */
	bool gone;                 /* UNREADABLE: the object was deleted */
};

/* Decode one event: the payload of a protobuf frame, or one line of JSON. */
int SLU_MUST_CHECK slu_kcodec_event(struct slu_kcodec *c, enum slu_kkind kind,
				    enum slu_kencoding enc, const void *bytes, size_t n,
				    struct slu_kevent *out, struct slu_error *err);

/* Decode a Status answer in either encoding. */
int SLU_MUST_CHECK slu_kcodec_status(struct slu_kcodec *c, enum slu_kencoding enc,
				     const void *bytes, size_t n, struct slu_kstatus *out,
				     struct slu_error *err);

/* Cuts a watch body, which arrives in pieces of any size, into events: 4-byte length frames
 * (protobuf) or lines (JSON).  Zero-initialise, set enc. */
struct slu_kframes {
	enum slu_kencoding enc;
	struct slu_buf held; /* an incomplete frame */
};

/* Called with each complete frame; a non-zero return stops and is returned. */
typedef int slu_kframe_fn(void *arg, const void *p, size_t n);
int slu_kframes_feed(struct slu_kframes *f, const void *p, size_t n, slu_kframe_fn *fn, void *arg,
		     struct slu_error *err);
/* Whether the stream stopped in the middle of a frame. */
bool slu_kframes_partial(const struct slu_kframes *f);
void slu_kframes_done(struct slu_kframes *f);
