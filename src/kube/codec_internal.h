/* codec_internal.h — the tables of fields and the state of the decoder.  Private to kube/.
 *
 * A message is an array of fields indexed by protobuf number, so looking one up is one load and the
 * numbers stand beside the names as in the published .proto files.  Custom resources have no
 * numbers; their tables count from 1. */
#pragma once
#include "base/arena.h"
#include "base/vec.h"
#include "kube/codec.h"
#include "kube/layout_internal.h"

/* Text that decoding uses and does not keep. */
struct kslice {
	const char *p;
	uint32_t n;
};

enum kftype {
	KF_NONE,  /* not ours: skipped */
	KF_STR,   /* const char *, pooled */
	KF_SLICE, /* struct kslice */
	KF_STRS,  /* repeated string */
	KF_I32,
	KF_I64,
	KF_BOOL,
	KF_TIME,        /* Time or MicroTime -> int64_t microseconds */
	KF_RV,          /* decimal text -> uint64_t */
	KF_WORD,        /* one of some words -> uint8_t */
	KF_PAIRS,       /* map<string, string> */
	KF_ANNOTATIONS, /* the same, filtered */
	KF_AMOUNTS,     /* map<string, Quantity> */
	KF_MSG,         /* a message; off 0 puts its fields into the parent's struct */
	KF_INLINE,      /* a message whose fields JSON shows in the parent */
	KF_MSGS,        /* repeated message */
	KF_PRESENT,     /* any value, a non-empty array: sets `bit` */
};

struct kword {
	const char *text; /* NULL ends the list; its value stands for all other words */
	uint8_t value;
};

struct kmsg;

struct kfield {
	const char *json;
	uint8_t type; /* enum kftype */
	uint16_t off;
	uint16_t noff; /* arrays: of the 16-bit count; MSG with bit: of the flags */
	uint32_t bit;  /* set in the uint32_t at noff when the field is there */
	const struct kmsg *sub;
	const struct kword *words;
};

struct kmsg {
	const char *name;
	uint16_t size; /* of one element in an array */
	uint8_t nfields;
	bool maps; /* has maps: they are sorted once the message is read */
	const struct kfield *f;
	const void *defaults; /* what an element holds before decoding; NULL: zeros */
};

struct slu_kcodec {
	struct slu_strpool *pool;
	struct slu_arena scratch;   /* lives as long as the decoding of one object */
	SLU_VEC(const char *) strs; /* references taken on the way, given back at its end */
	SLU_VEC(char *) prefixes;   /* annotations to keep */
	struct slu_buf clean;       /* JSON text with its NUL escapes replaced */
	const char *kind;           /* for messages */
	uint8_t flags;              /* SLU_KOBJ_* found on the way */
	char problem[192];          /* the first one, or "" */
	struct slu_error *err;
};

struct kkind {
	struct slu_kkind_info info;
	const struct kmsg *msg;
	uint32_t raw_size; /* of what the message decodes into; starts with the object's struct */
	const void *defaults; /* of raw_size, or NULL for zeros */
	int (*finish)(struct slu_kcodec *c, void *raw);
};
extern const struct kkind slu_kkinds[SLU_KIND_COUNT];
extern const struct kmsg slu_kstatus_msg, slu_kbookmark_msg, slu_klistmeta_msg, slu_kname_msg;

struct kraw_status {
	int32_t code, retry_after;
	struct kslice reason, message;
};
struct kraw_bookmark {
	uint64_t rv;
	const struct slu_kpair *annotations;
	uint16_t nannotations;
};
struct kraw_name {
	uint64_t rv;
	struct kslice ns, name;
};
struct kraw_listmeta {
	struct kslice rv, cont;
	int64_t remain;
};

/* ---- parts that several kinds share (codec_parts.c); tolerations are in codec_pod.c ---- */

extern const struct kmsg slu_kmeta_msg, slu_kterm_msg, slu_kexpr_msg, slu_ktoleration_msg;
extern const struct kword slu_ktri_words[], slu_keffect_words[];

/* ---- pods and templates of pods: decoded at length, kept in short (codec_pod.c) ---- */

struct kraw_container {
	struct kslice name;
	const struct slu_kamount *requests, *limits; /* limits: of templates only */
	struct kraw_port *ports;
	uint16_t nrequests, nlimits, nports;
	uint8_t sidecar; /* an init container with restartPolicy Always */
};

struct kraw_podspec {
	struct slu_kpodspec s;
	struct kraw_container *containers, *inits;
	const struct slu_kamount *overhead, *pod_requests, *pod_limits;
	struct kraw_volume *volumes;
	struct kraw_spread *spreads;
	const char *runtime_class;
	uint16_t ncontainers, ninits, noverhead, npod_requests, npod_limits, nvolumes, nspreads;
	uint32_t seen; /* fields whose presence matters */
	bool host_network;
	uint8_t never_preempts;
};

struct kraw_template {
	struct slu_kmeta meta; /* name and the like are decoded and not kept */
	struct kraw_podspec spec;
};

struct kraw_pod {
	struct slu_kpod p;
	struct kraw_podspec spec;
	struct kraw_cond *conds;
	struct kraw_cstatus *cstatus, *istatus;
	const struct slu_kamount *allocated, *actual; /* pod-level amounts, by the kubelet */
	uint16_t nconds, ncstatus, nistatus, nallocated, nactual;
	uint32_t bits;
	uint8_t guaranteed; /* status.qosClass */
};

extern const struct kmsg slu_kpod_msg, slu_ktemplate_msg;
extern const struct kraw_pod slu_kraw_pod_defaults;
#define KRAW_PODSPEC_DEFAULTS                                                \
	{                                                                    \
		.s = {.active_deadline_s = SLU_KNONE, .grace_s = SLU_KNONE } \
	}

int slu_kdec_finish_pod(struct slu_kcodec *c, void *raw);
/* Make a template, as it is kept, from its decoded form. */
int slu_kdec_finish_template(struct slu_kcodec *c, struct kraw_template *raw,
			     struct slu_ktemplate *out);

/* ---- shorthands of the tables; T is the struct the offsets are in ---- */

#define KAT(T, m)          .off = offsetof(struct T, m)
#define KN(T, m)           .noff = offsetof(struct T, n##m)
#define K_STR(j, T, m)     { .json = j, .type = KF_STR, KAT(T, m) }
#define K_SLICE(j, T, m)   { .json = j, .type = KF_SLICE, KAT(T, m) }
#define K_STRS(j, T, m)    { .json = j, .type = KF_STRS, KAT(T, m), KN(T, m) }
#define K_I32(j, T, m)     { .json = j, .type = KF_I32, KAT(T, m) }
#define K_I64(j, T, m)     { .json = j, .type = KF_I64, KAT(T, m) }
#define K_BOOL(j, T, m)    { .json = j, .type = KF_BOOL, KAT(T, m) }
#define K_TIME(j, T, m)    { .json = j, .type = KF_TIME, KAT(T, m) }
#define K_RV(j, T, m)      { .json = j, .type = KF_RV, KAT(T, m) }
#define K_WORD(j, T, m, w) { .json = j, .type = KF_WORD, KAT(T, m), .words = w }
#define K_PAIRS(j, T, m)   { .json = j, .type = KF_PAIRS, KAT(T, m), KN(T, m) }
#define K_NOTES(j, T, m)   { .json = j, .type = KF_ANNOTATIONS, KAT(T, m), KN(T, m) }
#define K_AMOUNTS(j, T, m) { .json = j, .type = KF_AMOUNTS, KAT(T, m), KN(T, m) }
#define K_MSG(j, T, m, s)  { .json = j, .type = KF_MSG, KAT(T, m), .sub = &s }
#define K_PART(j, s)       { .json = j, .type = KF_MSG, .sub = &s }
#define K_INLINE(s)        { .json = "", .type = KF_INLINE, .sub = &s }
#define K_MSGS(j, T, m, s) { .json = j, .type = KF_MSGS, KAT(T, m), KN(T, m), .sub = &s }
#define K_HAS(j, T, m, b)  { .json = j, .type = KF_PRESENT, .noff = offsetof(struct T, m), .bit = b }
#define KMSG_(link, var, text, T, sorted, def, ...)                      \
	static const struct kfield var##_fields[] = { __VA_ARGS__ };     \
	link const struct kmsg var = { .name = text,                     \
				       .size = sizeof(struct T),         \
				       .nfields = SLU_LEN(var##_fields), \
				       .maps = sorted,                   \
				       .f = var##_fields,                \
				       .defaults = def }
#define KMSG(var, text, T, ...)          KMSG_(static, var, text, T, false, NULL, __VA_ARGS__)
#define KMSG_MAPS(var, text, T, ...)     KMSG_(static, var, text, T, true, NULL, __VA_ARGS__)
#define KMSG_DEF(var, text, T, def, ...) KMSG_(static, var, text, T, false, &(def), __VA_ARGS__)
#define KMSG_PUB(var, text, T, ...)      KMSG_(, var, text, T, false, NULL, __VA_ARGS__)
#define KMSG_PUB_MAPS(var, text, T, ...) KMSG_(, var, text, T, true, NULL, __VA_ARGS__)

/* ---- steps that the readers share (codec_steps.c) ---- */

/* The pooled text; its reference belongs to the codec until the object is packed.  NULL without
 * memory. */
const char *slu_kdec_str(struct slu_kcodec *c, const char *p, size_t n);
/* Make room for one more element; NULL without memory. *full: the array already has 65535. */
void *slu_kdec_push(struct slu_kcodec *c, void *arr, uint16_t *n, size_t size, bool *full);
/* Note the first field that cannot be used; the object is kept without that field. */
void slu_kdec_problem(struct slu_kcodec *c, const char *fmt, ...) SLU_PRINTF(2, 3);
/* Add one amount; bad ones are flagged. */
int slu_kdec_amount(struct slu_kcodec *c, struct slu_kamount **arr, uint16_t *n, const char *field,
		    const char *key, size_t klen, const char *text, size_t tlen);
/* Sort all maps of a message by key and drop all but the last of equal keys. */
int slu_kdec_sort_maps(struct slu_kcodec *c, const struct kmsg *m, char *base);
bool slu_kdec_keeps(const struct slu_kcodec *c, const char *key, size_t n);
uint8_t slu_kdec_word(const struct kword *w, const char *p, size_t n);
uint64_t slu_kdec_rv(const char *p, size_t n);

static inline bool kslice_is(struct kslice s, const char *literal)
{
	return s.n == strlen(literal) && memcmp(s.p, literal, s.n) == 0;
}

/* ---- the two readers ---- */

int slu_kdec_pb(struct slu_kcodec *c, const struct kmsg *m, void *base, const void *p, size_t n);
struct slu_json;
int slu_kdec_json(struct slu_kcodec *c, const struct kmsg *m, void *base, const struct slu_json *v);
/* One object, from protobuf or (v) JSON, with the pool locked once; the sentence is in c->err. */
int slu_kdec_object(struct slu_kcodec *c, enum slu_kkind kind, const void *p, size_t n,
		    const struct slu_json *v, const struct slu_kobj **out);
struct slu_json_doc;
/* JSON text to its tree; `what` begins the sentence in c->err. */
int slu_kdec_text(struct slu_kcodec *c, const char *what, const char *p, size_t n,
		  struct slu_json_doc **out);
/* Release the strings that were taken by a decoding that made no object. */
void slu_kdec_forget(struct slu_kcodec *c);
/* "k8s\0" and the envelope taken off where they are; -EPROTO if broken. */
int slu_kdec_envelope(const void **p, size_t *n);
