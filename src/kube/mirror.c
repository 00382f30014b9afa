#include "kube/mirror.h"

#include <stdio.h>

#define TOKEN_MAX (256u << 10)
#define SLOTS_MIN 64u
#define BAD_MAX   3 /* unreadable streams in a row before the list is taken again */

struct slu_mirror {
	enum slu_kkind kind;
	struct slu_kcodec *codec;
	struct slu_mirror_handler h;
	/* The objects by namespace and name: open addressing, deletion by shifting back.  mark[i]
	 * is the number of the list that saw the object last. */
	const struct slu_kobj **slot;
	uint32_t *mark;
	uint32_t n, mask;
	bool listing, synced;
	uint32_t pass;    /* number of the list under way or last done */
	uint64_t rv;      /* the version we are at */
	uint64_t safe;    /* every change up to this version was handed over */
	uint64_t list_rv; /* of the list under way, 0 before its first page */
	char *token;      /* of the next page */
	char text[24];    /* rv for people */
	char resume[24];  /* safe for queries */
	uint32_t bad_row;
	struct slu_kframes frames;
	struct slu_error *err; /* of the call under way */
	struct slu_mirror_stats stats;
};

int slu_mirror_new(enum slu_kkind kind, struct slu_kcodec *codec,
		   const struct slu_mirror_handler *h, struct slu_mirror **out)
{
	struct slu_mirror *m = slu_calloc(1, sizeof *m);

	if (!m)
		return -ENOMEM;
	m->slot = slu_calloc(SLOTS_MIN, sizeof *m->slot);
	m->mark = slu_calloc(SLOTS_MIN, sizeof *m->mark);
	if (!m->slot || !m->mark) {
		slu_mirror_free(m);
		return -ENOMEM;
	}
	m->mask = SLOTS_MIN - 1;
	m->kind = kind;
	m->codec = codec;
	if (h)
		m->h = *h;
	m->listing = true;
	*out = m;
	return 0;
}

void slu_mirror_free(struct slu_mirror *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; m->n && i <= m->mask; i++)
		slu_kobj_unref(m->slot[i]);
	slu_kframes_done(&m->frames);
	slu_free(m->slot);
	slu_free(m->mark);
	slu_free(m->token);
	slu_free(m);
}

/* ---- the table ---- */

static uint32_t home_slot(const struct slu_mirror *m, const char *ns, const char *name)
{
	return (slu_str_hash(ns) * 0x9e3779b1u + slu_str_hash(name)) & m->mask;
}

/* Strings are pooled: equal texts are equal pointers. */
static uint32_t find_object(const struct slu_mirror *m, const char *ns, const char *name)
{
	uint32_t i = home_slot(m, ns, name);

	while (m->slot[i] && (m->slot[i]->meta.name != name || m->slot[i]->meta.ns != ns))
		i = (i + 1) & m->mask;
	return i;
}

static int resize_index(struct slu_mirror *m, uint32_t slots)
{
	const struct slu_kobj **slot = slu_calloc(slots, sizeof *slot), **old = m->slot;
	uint32_t *mark = slu_calloc(slots, sizeof *mark), *old_mark = m->mark;
	uint32_t was = m->mask;

	if (!slot || !mark) {
		slu_free(slot);
		slu_free(mark);
		return -ENOMEM;
	}
	m->slot = slot;
	m->mark = mark;
	m->mask = slots - 1;
	for (uint32_t i = 0; i <= was; i++) {
		if (old[i]) {
			uint32_t k = find_object(m, old[i]->meta.ns, old[i]->meta.name);

			slot[k] = old[i];
			mark[k] = old_mark[i];
		}
	}
	slu_free(old);
	slu_free(old_mark);
	return 0;
}

/* Empty slot i and close the hole.  The reference passes to the caller. */
static const struct slu_kobj *take_out(struct slu_mirror *m, uint32_t i)
{
	const struct slu_kobj *o = m->slot[i];
	uint32_t hole = i;

	for (;;) {
		uint32_t h;

		i = (i + 1) & m->mask;
		if (!m->slot[i])
			break;
		h = home_slot(m, m->slot[i]->meta.ns, m->slot[i]->meta.name);
		if (((i - h) & m->mask) >= ((i - hole) & m->mask)) {
			m->slot[hole] = m->slot[i];
			m->mark[hole] = m->mark[i];
			hole = i;
		}
	}
	m->slot[hole] = NULL;
	m->n--;
	return o;
}

/* ---- changes ---- */

static void hand_over(struct slu_mirror *m, const struct slu_kobj *old, const struct slu_kobj *now)
{
	if (!old)
		m->stats.added++;
	else if (!now)
		m->stats.deleted++;
	else
		m->stats.updated++;
	if (m->h.changed)
		m->h.changed(m->h.arg, old, now);
}

/* Store a newer state and hand it over; the function owns the reference even if it fails. */
static int store_object(struct slu_mirror *m, const struct slu_kobj *o)
{
	uint32_t i = find_object(m, o->meta.ns, o->meta.name);
	const struct slu_kobj *old = m->slot[i];

	if (!old) {
		if (m->n >= m->mask / 4 * 3) {
			if (resize_index(m, (m->mask + 1) * 2) < 0) {
				slu_kobj_unref(o);
				return slu_fail(m->err, -ENOMEM, "no memory for one more object");
			}
			i = find_object(m, o->meta.ns, o->meta.name);
		}
		m->n++;
	}
	m->slot[i] = o;
	m->mark[i] = m->pass;
	if (old && old->meta.uid != o->meta.uid) {
		hand_over(m, old, NULL);
		hand_over(m, NULL, o);
	} else {
		hand_over(m, old, o);
	}
	slu_kobj_unref(old);
	return 0;
}

static void remove_at(struct slu_mirror *m, uint32_t i, const struct slu_kobj *last)
{
	const struct slu_kobj *old = take_out(m, i);

	hand_over(m, last ? last : old, NULL);
	slu_kobj_unref(old);
}

/* Remove the objects that the list which just ended did not contain. */
static void sweep_stale(struct slu_mirror *m)
{
	for (uint32_t i = 0; i <= m->mask;) {
		if (m->slot[i] && m->mark[i] != m->pass)
			remove_at(m, i, NULL); /* another object may have moved here */
		else
			i++;
	}
	if (m->mask >= SLOTS_MIN * 4 && m->n < m->mask / 8)
		(void)!resize_index(m, (m->mask + 1) / 4); /* failing to shrink is harmless */
}

/* One transaction may change several objects, whose events then share a version.  So a version is
 * known to be complete only when a later one arrives. */
static void set_rv(struct slu_mirror *m, uint64_t rv, uint64_t safe)
{
	m->rv = rv;
	m->safe = safe;
	snprintf(m->text, sizeof m->text, "%" PRIu64, rv);
	snprintf(m->resume, sizeof m->resume, "%" PRIu64, safe);
}

static void set_synced(struct slu_mirror *m)
{
	bool first = !m->synced;

	m->synced = true;
	if (m->h.synced)
		m->h.synced(m->h.arg, first);
}

/* ---- lists ---- */

static void list_again(struct slu_mirror *m)
{
	slu_free(m->token);
	m->token = NULL;
	m->list_rv = 0;
	m->listing = true;
}

/* A list is the truth at its version, so a state held here is kept only if its version is the
 * same.  A newer version held here means that the server was restored from a backup. */
static int list_item(void *arg, const struct slu_kobj *o)
{
	struct slu_mirror *m = arg;
	uint32_t i = find_object(m, o->meta.ns, o->meta.name);
	const struct slu_kobj *held = m->slot[i];

	if (!o->meta.name[0] || !o->meta.rv) {
		slu_kobj_unref(o);
		return slu_fail(m->err, -EPROTO, "a list holds an object without name or version");
	}
	if (held && held->meta.rv == o->meta.rv && held->meta.uid == o->meta.uid) {
		m->mark[i] = m->pass;
		m->stats.repeated++;
		slu_kobj_unref(o);
		return 0;
	}
	return store_object(m, o);
}

/* The slot of an object known by its text alone; NULL: it is not held. */
static const uint32_t *slot_of(const struct slu_mirror *m, const struct slu_kbad *bad, uint32_t *at)
{
	struct slu_strpool *pool = slu_kcodec_pool(m->codec);
	const char *ns = slu_strpool_find(pool, bad->ns, strlen(bad->ns));
	const char *name = slu_strpool_find(pool, bad->name, strlen(bad->name));

	if (!ns || !name)
		return NULL;
	*at = find_object(m, ns, name);
	return m->slot[*at] ? at : NULL;
}

/* The new state of the object is unknown, but the object exists.  Keep the state held before, so
 * that a pod that runs still counts. */
static void keep_unreadable(void *arg, const struct slu_kbad *bad)
{
	struct slu_mirror *m = arg;
	uint32_t i;

	m->stats.unreadable++;
	if (slot_of(m, bad, &i))
		m->mark[i] = m->pass;
	if (m->h.unreadable)
		m->h.unreadable(m->h.arg, bad);
}

int slu_mirror_page(struct slu_mirror *m, enum slu_kencoding enc, const void *p, size_t n,
		    struct slu_error *err)
{
	struct slu_klist l = { 0 };
	uint64_t rv = 0;
	char *end;
	int rc;

	if (!m->listing)
		return slu_fail(err, -EPROTO, "a page that was not asked for");
	m->err = err;
	m->stats.pages++;
	if (!m->token) {
		m->stats.lists++;
		m->pass++;
	}
	rc = slu_kcodec_list(m->codec,
			     &(struct slu_klist_in){ .kind = m->kind,
						     .enc = enc,
						     .bytes = p,
						     .n = n,
						     .item = list_item,
						     .bad = keep_unreadable,
						     .arg = m },
			     &l, err);
	if (rc == 0) {
		errno = 0;
		rv = strtoull(l.rv, &end, 10);
		if (!l.rv[0] || *end || errno || !rv || (m->token && rv != m->list_rv))
			rc = slu_fail(err, -EPROTO, "list of %s: resourceVersion \"%s\" %s",
				      slu_kkind_info(m->kind)->resource, l.rv,
				      rv && m->token ? "differs between pages" : "is not a number");
		else if (l.cont && strlen(l.cont) > TOKEN_MAX)
			rc = slu_fail(err, -EMSGSIZE, "a continue token of %zu bytes",
				      strlen(l.cont));
	}
	if (rc < 0) {
		m->stats.bad++;
		slu_free(l.cont);
		list_again(m);
		return rc;
	}
	m->list_rv = rv;
	slu_free(m->token);
	m->token = l.cont;
	if (m->token)
		return 0;
	set_rv(m, rv, rv);
	m->listing = false;
	m->bad_row = 0;
	sweep_stale(m);
	set_synced(m);
	return 0;
}

void slu_mirror_expired(struct slu_mirror *m)
{
	m->stats.expired++;
	list_again(m);
}

void slu_mirror_absent(struct slu_mirror *m)
{
	list_again(m);
	m->pass++;
	sweep_stale(m);
	if (!m->synced)
		set_synced(m);
}

/* ---- watches ---- */

void slu_mirror_watch_begin(struct slu_mirror *m, enum slu_kencoding enc)
{
	m->stats.watches++;
	slu_kframes_done(&m->frames);
	m->frames = (struct slu_kframes){ .enc = enc };
}

void slu_mirror_watch_end(struct slu_mirror *m)
{
	slu_kframes_done(&m->frames);
}

/* The version only moves on once the change is handed over. */
static int apply_event(struct slu_mirror *m, struct slu_kevent *ev)
{
	const struct slu_kobj *o = ev->obj;
	uint32_t i = find_object(m, o->meta.ns, o->meta.name);
	const struct slu_kobj *held = m->slot[i];
	int rc = 0;

	if (!o->meta.name[0] || !ev->rv) {
		slu_kobj_unref(o);
		return slu_fail(m->err, -EPROTO, "an event without name or version");
	}
	if (ev->type == SLU_KEVENT_DELETED) {
		if (ev->rv >= m->rv && held)
			remove_at(m, i, o);
		else
			m->stats.repeated++;
		slu_kobj_unref(o);
	} else if (ev->rv < m->rv || (held && ev->rv <= held->meta.rv)) {
		m->stats.repeated++;
		slu_kobj_unref(o);
	} else {
		rc = store_object(m, o);
	}
	if (rc == 0 && ev->rv > m->rv)
		set_rv(m, ev->rv, m->rv);
	return rc;
}

static int one_frame(void *arg, const void *p, size_t n)
{
	struct slu_mirror *m = arg;
	struct slu_kevent ev;
	uint32_t i;
	int rc = slu_kcodec_event(m->codec, m->kind, m->frames.enc, p, n, &ev, m->err);

	if (rc < 0)
		return rc;
	switch (ev.type) {
	case SLU_KEVENT_ADDED:
	case SLU_KEVENT_MODIFIED:
	case SLU_KEVENT_DELETED:
		m->stats.events++;
		rc = apply_event(m, &ev);
		break;
	case SLU_KEVENT_UNREADABLE:
		m->stats.events++;
		ev.bad.gone = ev.gone;
		keep_unreadable(m, &ev.bad);
		if (ev.gone && ev.rv >= m->rv && slot_of(m, &ev.bad, &i))
			remove_at(m, i, NULL);
		if (ev.rv > m->rv)
			set_rv(m, ev.rv, m->rv);
		break;
	case SLU_KEVENT_BOOKMARK:
		m->stats.bookmarks++;
		if (ev.rv >= m->rv)
			set_rv(m, ev.rv, ev.rv);
		break;
	case SLU_KEVENT_ERROR:
		slu_fail(m->err, -EAGAIN, "watch of %s: %s (%d %s)",
			 slu_kkind_info(m->kind)->resource, ev.status.message, ev.status.code,
			 ev.status.reason);
		/* 504 Timeout "Too large resource version": the server will never reach the
		 * version held here. */
		if (ev.status.code == 410 ||
		    strstr(ev.status.message, "Too large resource version")) {
			slu_mirror_expired(m);
			return -ESTALE;
		}
		return -EAGAIN;
	default:
		break; /* a type of event that this program does not know */
	}
	if (rc == 0)
		m->bad_row = 0;
	return rc;
}

int slu_mirror_watch_data(struct slu_mirror *m, const void *p, size_t n, struct slu_error *err)
{
	int rc;

	if (m->listing)
		return slu_fail(err, -ESTALE, "a list is due");
	m->err = err;
	m->stats.bytes += n;
	rc = slu_kframes_feed(&m->frames, p, n, one_frame, m, err);
	if (rc == -EPROTO || rc == -EMSGSIZE) {
		m->stats.bad++;
		if (++m->bad_row >= BAD_MAX) {
			m->bad_row = 0;
			slu_mirror_expired(m);
		}
	}
	return rc;
}

/* ---- reading ---- */

enum slu_mirror_want slu_mirror_wants(const struct slu_mirror *m)
{
	return m->listing ? SLU_MIRROR_LIST : SLU_MIRROR_WATCH;
}

const char *slu_mirror_token(const struct slu_mirror *m)
{
	return m->token;
}

const char *slu_mirror_rv(const struct slu_mirror *m)
{
	return m->text;
}

const char *slu_mirror_resume(const struct slu_mirror *m)
{
	return m->resume;
}

bool slu_mirror_synced(const struct slu_mirror *m)
{
	return m->synced;
}

uint32_t slu_mirror_count(const struct slu_mirror *m)
{
	return m->n;
}

const struct slu_kobj *slu_mirror_get(const struct slu_mirror *m, const char *ns, const char *name)
{
	struct slu_strpool *pool = slu_kcodec_pool(m->codec);
	const char *a = slu_strpool_find(pool, ns, strlen(ns));
	const char *b = slu_strpool_find(pool, name, strlen(name));

	return a && b ? m->slot[find_object(m, a, b)] : NULL;
}

const struct slu_kobj *slu_mirror_next(const struct slu_mirror *m, uint32_t *i)
{
	while (*i <= m->mask) {
		const struct slu_kobj *o = m->slot[(*i)++];

		if (o)
			return o;
	}
	return NULL;
}

void slu_mirror_stats(const struct slu_mirror *m, struct slu_mirror_stats *out)
{
	*out = m->stats;
}
