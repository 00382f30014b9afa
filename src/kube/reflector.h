/* reflector.h — a mirror of one kind of object: list in pages, watch from there, for ever.
 *
 * The mirror hands over every change exactly once and in order:
 *   - after a lost connection it resumes the watch from the last version seen (bookmarks included);
 *   - when that version is too old (410) it lists again and hands over only what truly differs;
 *   - an event whose version is not newer than the one held is a repetition and is dropped.
 * Invariant: folding all `changed` calls gives the same set as the server had at version rv().
 *
 * Two layers.  `slu_mirror` is pure: pages and watch bytes in, changes out, no sockets, no clock;
 * tests and fuzzers feed it by hand.  `slu_reflector` drives one with a client on a loop. */
#pragma once
#include "kube/client.h"
#include "kube/codec.h"

/* Exactly one of these per change.  old == NULL: added; now == NULL: deleted (old is the last
 * version held).  Both are borrowed for the call; take a reference to keep one.  Must not call back
 * in. */
struct slu_mirror_handler {
	void (*changed)(void *arg, const struct slu_kobj *old, const struct slu_kobj *now);
	/* The first list is complete (once), or a later list after 410 is (again). May be NULL. */
	void (*synced)(void *arg, bool first);
	void *arg;
};

struct slu_mirror_stats {
	uint64_t added, updated, deleted;        /* handed over */
	uint64_t repeated;                       /* dropped: not newer than what is held */
	uint64_t events, bookmarks, bytes;       /* taken in from watches */
	uint64_t lists, pages, watches, expired; /* started; ended by 410 */
	uint64_t bad;                            /* frames or pages that could not be read */
};

/* ---- the pure part ---- */

struct slu_mirror;

int slu_mirror_new(enum slu_kkind kind, struct slu_kcodec *codec,
		   const struct slu_mirror_handler *h, struct slu_mirror **out);
void slu_mirror_free(struct slu_mirror *m);
SLU_DEFINE_CLEANUP(struct slu_mirror, slu_mirror_free)

/* What to ask the server for next. */
enum slu_mirror_want {
	SLU_MIRROR_LIST,  /* a page: slu_mirror_query() gives limit, continue, resourceVersion */
	SLU_MIRROR_WATCH, /* a watch: slu_mirror_query() gives resourceVersion and bookmarks */
};
enum slu_mirror_want slu_mirror_wants(const struct slu_mirror *m);
/* Appends the escaped query string for it (no selectors). */
int slu_mirror_query(const struct slu_mirror *m, uint32_t page, struct slu_buf *b);

/* A whole page arrived.  0, or -EPROTO/-EMSGSIZE/-ENOMEM: the list starts over from its first page.
 */
int slu_mirror_page(struct slu_mirror *m, enum slu_kencoding enc, const void *p, size_t n,
		    struct slu_error *err);
/* The server said 410 to a page or a watch: next comes a fresh list. */
void slu_mirror_expired(struct slu_mirror *m);

/* A watch answer begins, brings bytes, ends (for whatever reason).  data returns 0, -ESTALE when
 * the server sent 410 inside the stream (then expired() has been called already), -EAGAIN when it
 * sent another error, -EPROTO/-EMSGSIZE for broken bytes: in all these cases end the stream and ask
 * slu_mirror_wants() again. */
void slu_mirror_watch_begin(struct slu_mirror *m, enum slu_kencoding enc);
int slu_mirror_watch_data(struct slu_mirror *m, const void *p, size_t n, struct slu_error *err);
void slu_mirror_watch_end(struct slu_mirror *m);

/* The version the mirror is at, "" before the first list. */
const char *slu_mirror_rv(const struct slu_mirror *m);
bool slu_mirror_synced(const struct slu_mirror *m);
uint32_t slu_mirror_count(const struct slu_mirror *m);
/* Borrowed until the next change; NULL if absent.  ns "" for cluster-wide kinds. */
const struct slu_kobj *slu_mirror_get(const struct slu_mirror *m, const char *ns, const char *name);
/* All objects in no order; *i starts at 0; NULL at the end. */
const struct slu_kobj *slu_mirror_next(const struct slu_mirror *m, uint32_t *i);
void slu_mirror_stats(const struct slu_mirror *m, struct slu_mirror_stats *out);

/* ---- on a loop ---- */

struct slu_reflector;

struct slu_reflector_options {
	const char *ns;             /* NULL: all namespaces */
	const char *label_selector; /* unescaped; NULL: none */
	const char *field_selector;
	uint32_t page;   /* objects per page; 0: 500 */
	int64_t watch_s; /* ask the server to end a watch after this; 0: 300..600 at random */
	int64_t retry_ns,
		retry_max_ns; /* pause after a failure, doubling with jitter; 0: 200 ms, 30 s */
	bool json;            /* ask for JSON even where protobuf exists */
	/* The kind may be missing on this server (a CRD not installed, an API switched off): 404 is
	 * then an empty mirror, synced, looked at again every `absent_ns` (0: 60 s). */
	bool optional;
	int64_t absent_ns;
	/* Trouble and recovery, for logs and health: a sentence, or NULL when all is well again. */
	void (*trouble)(void *arg, const char *sentence);
};

/* Starts at once.  The codec may be shared by all reflectors of one loop. */
int slu_reflector_new(struct slu_kube_client *c, enum slu_kkind kind, struct slu_kcodec *codec,
		      const struct slu_mirror_handler *h, const struct slu_reflector_options *o,
		      struct slu_reflector **out, struct slu_error *err);
/* Stops; no handler call after this returns. */
void slu_reflector_free(struct slu_reflector *r);
SLU_DEFINE_CLEANUP(struct slu_reflector, slu_reflector_free)

const struct slu_mirror *slu_reflector_mirror(const struct slu_reflector *r);
/* Hold back the watch while the receiver cannot take more, and go on. */
void slu_reflector_pause(struct slu_reflector *r);
void slu_reflector_resume(struct slu_reflector *r);
