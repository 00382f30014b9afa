/* mirror.h — a mirror of one kind of object, without sockets: pages of a list and bytes of a watch
 * in, changes out.
 *
 * The mirror hands over every change exactly once and in order:
 *   - after a lost connection the watch goes on from the last version seen (bookmarks included);
 *   - when that version is too old (410) a fresh list yields only what truly differs;
 *   - an event that is not newer than what is held is a repetition and is dropped.
 *
 *	        page, more to come                 end of stream
 *	          ┌────┐                             ┌────┐
 *	          ▼    │        last page            ▼    │
 *	start ──► LIST ┴────────────────────────► WATCH ──┘
 *	            ▲                                │
 *	            └────────── 410, rv unusable ────┘
 *
 * Invariant: folding all `changed` calls gives what the server held, object by object, and at the
 * end of a list or after an event exactly what it held at slu_mirror_rv().  The version never moves
 * past an event that was not handed over, so a break at any byte repeats events and loses none;
 * repetitions are told by their version.
 *
 * One thread at a time. */
#pragma once
#include "kube/codec.h"

/* Exactly one of these per change.  old == NULL: added; now == NULL: deleted (old is the last
 * version held).  Both are borrowed for the call; take a reference to keep one.  Must not call back
 * in. */
struct slu_mirror_handler {
	void (*changed)(void *arg, const struct slu_kobj *old, const struct slu_kobj *now);
	/* The first list is complete (once), or a later list after 410 is (again). May be NULL. */
	void (*synced)(void *arg, bool first);
	void *arg;
	/* An object cannot be read and is left as it was held before.  May be NULL. */
	void (*unreadable)(void *arg, const struct slu_kbad *bad);
};

struct slu_mirror_stats {
	uint64_t added, updated, deleted;        /* handed over */
	uint64_t repeated;                       /* dropped: not newer than what is held */
	uint64_t events, bookmarks, bytes;       /* taken in from watches */
	uint64_t lists, pages, watches, expired; /* started; ended by 410 */
	uint64_t bad;                            /* frames or pages that could not be read */
	uint64_t unreadable;                     /* single objects that could not */
};

struct slu_mirror;

int slu_mirror_new(enum slu_kkind kind, struct slu_kcodec *codec,
		   const struct slu_mirror_handler *h, struct slu_mirror **out);
void slu_mirror_free(struct slu_mirror *m);
SLU_DEFINE_CLEANUP(struct slu_mirror, slu_mirror_free)

/* The next request to the server. */
enum slu_mirror_want {
	SLU_MIRROR_LIST,  /* the page after slu_mirror_token(), without resourceVersion */
	SLU_MIRROR_WATCH, /* a watch with bookmarks from slu_mirror_resume() */
};
enum slu_mirror_want slu_mirror_wants(const struct slu_mirror *m);
/* The continue token of the page wanted, NULL for the first one; borrowed until that page. */
const char *slu_mirror_token(const struct slu_mirror *m);

/* A whole page arrived.  0, or -EPROTO/-EMSGSIZE/-ENOMEM: the list starts over from its first page.
 */
int slu_mirror_page(struct slu_mirror *m, enum slu_kencoding enc, const void *p, size_t n,
		    struct slu_error *err);
/* The server said 410 to a page or a watch: next comes a fresh list. */
void slu_mirror_expired(struct slu_mirror *m);
/* The server does not know this kind, or does not show it: an empty mirror, synced; next comes a list. */
void slu_mirror_absent(struct slu_mirror *m);

/* A watch answer begins, brings bytes, ends (for whatever reason).  data returns 0, -ESTALE when
 * the server sent 410 inside the stream (then expired() has been called already), -EAGAIN when it
 * sent another error, -EPROTO/-EMSGSIZE for broken bytes: in all these cases end the stream and ask
 * slu_mirror_wants() again. */
void slu_mirror_watch_begin(struct slu_mirror *m, enum slu_kencoding enc);
int slu_mirror_watch_data(struct slu_mirror *m, const void *p, size_t n, struct slu_error *err);
void slu_mirror_watch_end(struct slu_mirror *m);

/* The version the mirror is at, "" before the first list. */
const char *slu_mirror_rv(const struct slu_mirror *m);
/* The version to watch from: at or just before rv, as events may share a version. */
const char *slu_mirror_resume(const struct slu_mirror *m);
bool slu_mirror_synced(const struct slu_mirror *m);
uint32_t slu_mirror_count(const struct slu_mirror *m);
/* Borrowed until the next change; NULL if absent.  ns "" for cluster-wide kinds. */
const struct slu_kobj *slu_mirror_get(const struct slu_mirror *m, const char *ns, const char *name);
/* All objects in no order; *i starts at 0; NULL at the end. */
const struct slu_kobj *slu_mirror_next(const struct slu_mirror *m, uint32_t *i);
void slu_mirror_stats(const struct slu_mirror *m, struct slu_mirror_stats *out);
