/* The mirror against a model of an API server: a log of changes, lists in pages at a version,
 * watches from a version that break at any byte, compaction that answers 410.  Whatever happens,
 * the changes handed over, folded, give the server's state; nothing is handed over twice; and
 * without 410 nothing of the log is left out either. */
#include <stdio.h>

#include "base/rng.h"
#include "base/vec.h"
#include "kube/mirror.h"
#include "tap.h"
#include "wire/pb.h"

#define NAMES 40

/* ---- the server ---- */

struct state {
	uint64_t rv; /* 0: absent */
	uint32_t uid;
};

struct change {
	uint64_t rv;
	uint32_t name, uid;
	enum slu_kevent_type type;
};

struct server {
	struct state now[NAMES];
	SLU_VEC(struct change) log;
	uint64_t rv, compacted;
	uint64_t seen; /* the newest version that a client has seen: changes get a higher one */
	uint32_t uids;
};

static void server_step(struct server *s, struct slu_rng *rng)
{
	uint32_t k = (uint32_t)slu_rng_below(rng, NAMES);
	struct change c = { .rv = s->rv + 1 + slu_rng_below(rng, 3), .name = k };

	/* now and then one transaction changes several objects */
	if (s->rv > s->seen && s->log.n && slu_rng_below(rng, 3) == 0) {
		bool same = false;

		for (uint32_t i = s->log.n; i-- > 0 && s->log.p[i].rv == s->rv;)
			same |= s->log.p[i].name == k;
		if (!same)
			c.rv = s->rv;
	}
	s->rv = c.rv;
	if (!s->now[k].rv) {
		c.type = SLU_KEVENT_ADDED;
		c.uid = ++s->uids;
	} else {
		c.type = slu_rng_below(rng, 3) ? SLU_KEVENT_MODIFIED : SLU_KEVENT_DELETED;
		c.uid = s->now[k].uid;
	}
	s->now[k] = c.type == SLU_KEVENT_DELETED ? (struct state){ 0 }
						 : (struct state){ c.rv, c.uid };
	if (slu_vec_push(&s->log, c) < 0)
		abort();
}

/* The objects that existed at a version. */
static void server_at(const struct server *s, uint64_t rv, struct state out[NAMES])
{
	memset(out, 0, NAMES * sizeof *out);
	for (uint32_t i = 0; i < s->log.n && s->log.p[i].rv <= rv; i++) {
		const struct change *c = &s->log.p[i];

		out[c->name] = c->type == SLU_KEVENT_DELETED ? (struct state){ 0 }
							     : (struct state){ c->rv, c->uid };
	}
}

static void put_meta(struct slu_buf *b, uint32_t name, uint32_t uid, uint64_t rv)
{
	size_t meta = slu_pb_begin(b, 1);
	char t[32];

	snprintf(t, sizeof t, "node-%u", name);
	slu_pb_put_str(b, 1, t);
	snprintf(t, sizeof t, "uid-%u", uid);
	slu_pb_put_str(b, 5, t);
	snprintf(t, sizeof t, "%" PRIu64, rv);
	slu_pb_put_str(b, 6, t);
	slu_pb_end(b, meta);
}

static void json_meta(struct slu_buf *b, uint32_t name, uint32_t uid, uint64_t rv)
{
	slu_buf_printf(b,
		       "{\"metadata\":{\"name\":\"node-%u\",\"uid\":\"uid-%u\","
		       "\"resourceVersion\":\"%" PRIu64 "\"}}",
		       name, uid, rv);
}

/* The page from name `from` on, at a version; the token is the next name. */
static void server_page(const struct server *s, enum slu_kencoding enc, uint64_t rv, uint32_t from,
			uint32_t limit, struct slu_buf *b)
{
	struct state at[NAMES];
	uint32_t n = 0, k;
	char t[32];

	server_at(s, rv, at);
	if (enc == SLU_ENC_JSON)
		slu_buf_puts(b, "{\"kind\":\"NodeList\",\"items\":[");
	for (k = from; k < NAMES && n < limit; k++) {
		if (!at[k].rv)
			continue;
		if (enc == SLU_ENC_JSON) {
			slu_buf_puts(b, n ? "," : "");
			json_meta(b, k, at[k].uid, at[k].rv);
		} else {
			size_t item = slu_pb_begin(b, 2);

			put_meta(b, k, at[k].uid, at[k].rv);
			slu_pb_end(b, item);
		}
		n++;
	}
	while (k < NAMES && !at[k].rv)
		k++;
	if (enc == SLU_ENC_JSON) {
		slu_buf_printf(b, "],\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"", rv);
		if (k < NAMES)
			slu_buf_printf(b, ",\"continue\":\"%u@%" PRIu64 "\"", k, rv);
		slu_buf_puts(b, "}}");
		return;
	}
	size_t meta = slu_pb_begin(b, 1);

	snprintf(t, sizeof t, "%" PRIu64, rv);
	slu_pb_put_str(b, 2, t);
	if (k < NAMES) {
		snprintf(t, sizeof t, "%u@%" PRIu64, k, rv);
		slu_pb_put_str(b, 3, t);
	}
	slu_pb_end(b, meta);
}

static void server_event(enum slu_kencoding enc, const struct change *c, struct slu_buf *b)
{
	static const char *const word[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
	struct slu_buf in = SLU_BUF_INIT(4096), ev = SLU_BUF_INIT(4096);
	size_t at;

	if (enc == SLU_ENC_JSON) {
		slu_buf_printf(b, "{\"type\":\"%s\",\"object\":", word[c->type]);
		if (c->type == SLU_KEVENT_ERROR)
			slu_buf_puts(b,
				     "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
		else
			json_meta(b, c->name, c->uid, c->rv);
		slu_buf_puts(b, "}\n");
		return;
	}
	slu_buf_add(&in, "k8s\0", 4);
	at = slu_pb_begin(&in, 2);
	if (c->type == SLU_KEVENT_ERROR)
		slu_pb_put_i64(&in, 6, 410);
	else
		put_meta(&in, c->name, c->uid, c->rv);
	slu_pb_end(&in, at);
	slu_pb_put_str(&ev, 1, word[c->type]);
	at = slu_pb_begin(&ev, 2);
	slu_pb_put_bytes(&ev, 1, in.p, in.n);
	slu_pb_end(&ev, at);
	slu_buf_add(b, (unsigned char[]){ 0, 0, (unsigned char)(ev.n >> 8), (unsigned char)ev.n },
		    4);
	slu_buf_add(b, ev.p, ev.n);
	slu_buf_done(&in);
	slu_buf_done(&ev);
}

/* ---- the one who listens ---- */

struct listener {
	struct state fold[NAMES];
	SLU_VEC(struct change) got;
	uint32_t wrong, syncs, firsts;
};

static uint32_t number(const char *s)
{
	return (uint32_t)atoi(strchr(s, '-') + 1);
}

static void changed(void *arg, const struct slu_kobj *old, const struct slu_kobj *now)
{
	struct listener *l = arg;
	const struct slu_kobj *o = now ? now : old;
	uint32_t k = number(o->meta.name), uid = number(o->meta.uid);
	struct change c = { .rv = o->meta.rv, .name = k, .uid = uid };

	if (!now) {
		c.type = SLU_KEVENT_DELETED;
		l->wrong += l->fold[k].uid != uid;
		l->fold[k] = (struct state){ 0 };
	} else {
		c.type = old ? SLU_KEVENT_MODIFIED : SLU_KEVENT_ADDED;
		l->wrong += old ? l->fold[k].rv != old->meta.rv || l->fold[k].uid != uid ||
					    l->fold[k].rv >= c.rv
				: l->fold[k].rv != 0;
		l->fold[k] = (struct state){ c.rv, uid };
	}
	if (slu_vec_push(&l->got, c) < 0)
		abort();
}

static void synced(void *arg, bool first)
{
	struct listener *l = arg;

	l->syncs++;
	l->firsts += first;
}

static bool equals(const struct slu_mirror *m, const struct listener *l,
		   const struct state want[NAMES])
{
	uint32_t i = 0, n = 0, held = 0;
	const struct slu_kobj *o;

	for (uint32_t k = 0; k < NAMES; k++) {
		if (l->fold[k].rv != want[k].rv || l->fold[k].uid != want[k].uid)
			return false;
		n += want[k].rv != 0;
	}
	while ((o = slu_mirror_next(m, &i))) {
		if (want[number(o->meta.name)].rv != o->meta.rv ||
		    slu_mirror_get(m, "", o->meta.name) != o)
			return false;
		held++;
	}
	return held == n && slu_mirror_count(m) == n;
}

struct world {
	struct server s;
	struct listener l;
	struct slu_mirror *m;
	struct slu_rng rng;
	enum slu_kencoding enc;
	bool compacts;
};

/* One exchange: the page it wants, or a watch that lasts for a while and may break anywhere. */
static void exchange(struct world *w)
{
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(1 << 20);

	w->s.seen = w->s.rv;
	if (slu_mirror_wants(w->m) == SLU_MIRROR_LIST) {
		const char *token = slu_mirror_token(w->m);
		uint64_t rv = token ? strtoull(strchr(token, '@') + 1, NULL, 10) : w->s.rv;
		uint32_t limit = 1 + (uint32_t)slu_rng_below(&w->rng, 30);

		if (slu_rng_below(&w->rng, 4) == 0)
			return; /* no answer at all */
		if (rv < w->s.compacted) {
			slu_mirror_expired(w->m);
			return;
		}
		server_page(&w->s, w->enc, rv, token ? (uint32_t)atoi(token) : 0, limit, &b);
		if (slu_mirror_page(w->m, w->enc, b.p, b.n, NULL) < 0)
			w->l.wrong++;
		return;
	}
	uint64_t from = strtoull(slu_mirror_resume(w->m), NULL, 10);
	size_t cut, piece;

	if (from < w->s.compacted) {
		struct change gone = { .type = SLU_KEVENT_ERROR };

		if (slu_rng_below(&w->rng, 2)) {
			slu_mirror_expired(w->m);
			return;
		}
		slu_mirror_watch_begin(w->m, w->enc);
		server_event(w->enc, &gone, &b);
		if (slu_mirror_watch_data(w->m, b.p, b.n, NULL) != -ESTALE)
			w->l.wrong++;
		slu_mirror_watch_end(w->m);
		return;
	}
	/* a careless server starts a little early: everything before is a repetition */
	if (slu_rng_below(&w->rng, 5) == 0)
		from -= SLU_MIN(from, slu_rng_below(&w->rng, 10));
	for (uint32_t i = 0; i < w->s.log.n; i++) {
		if (w->s.log.p[i].rv > from && w->s.log.p[i].rv >= w->s.compacted)
			server_event(w->enc, &w->s.log.p[i], &b);
	}
	if (slu_rng_below(&w->rng, 2)) {
		struct change mark = { .type = SLU_KEVENT_BOOKMARK, .rv = w->s.rv };

		server_event(w->enc, &mark, &b);
	}
	cut = slu_rng_below(&w->rng, 2) ? b.n : slu_rng_below(&w->rng, b.n + 1);
	slu_mirror_watch_begin(w->m, w->enc);
	for (size_t i = 0; i < cut; i += piece) {
		piece = SLU_MIN(cut - i, 1 + slu_rng_below(&w->rng, 200));
		if (slu_mirror_watch_data(w->m, b.p + i, piece, NULL) < 0)
			w->l.wrong++;
	}
	slu_mirror_watch_end(w->m);
}

/* Without compaction every change after the first list is handed over, once, in order. */
static bool complete(const struct world *w, uint64_t since, uint32_t skip)
{
	uint32_t k = skip;

	for (uint32_t i = 0; i < w->s.log.n; i++) {
		const struct change *c = &w->s.log.p[i], *g = &w->l.got.p[k];

		if (c->rv <= since)
			continue;
		if (k++ >= w->l.got.n || g->rv != c->rv || g->name != c->name || g->uid != c->uid ||
		    g->type != c->type)
			return false;
	}
	return k == w->l.got.n;
}

static void run(struct slu_kcodec *codec, uint64_t seed, enum slu_kencoding enc, bool compacts)
{
	struct world w = { .enc = enc, .compacts = compacts };
	struct slu_mirror_handler h = { changed, synced, &w.l };
	struct slu_mirror_stats st;
	struct state want[NAMES];
	uint64_t since = 0;
	uint32_t skip = 0;
	uint32_t checked = 0;
	bool good = true;

	w.rng.state = seed;
	w.s.rv = 100;
	if (slu_mirror_new(SLU_KIND_NODE, codec, &h, &w.m) < 0)
		abort();
	for (int step = 0; step < 600; step++) {
		for (uint64_t i = slu_rng_below(&w.rng, 6); i > 0; i--)
			server_step(&w.s, &w.rng);
		if (compacts && slu_rng_below(&w.rng, 6) == 0)
			w.s.compacted = w.s.rv - slu_rng_below(&w.rng, 8);
		exchange(&w);
		if (slu_mirror_wants(w.m) == SLU_MIRROR_LIST)
			continue;
		if (!since) {
			since = strtoull(slu_mirror_rv(w.m), NULL, 10);
			skip = w.l.got.n;
		}
		/* in the middle of a transaction there is no state of the server to compare with */
		if (strcmp(slu_mirror_rv(w.m), slu_mirror_resume(w.m)) != 0)
			continue;
		checked++;
		server_at(&w.s, strtoull(slu_mirror_rv(w.m), NULL, 10), want);
		good &= equals(w.m, &w.l, want);
	}
	/* quiet at last: the same as a fresh list */
	w.s.compacted = compacts ? w.s.rv : 0;
	for (int i = 0; i < 400; i++)
		exchange(&w);
	server_at(&w.s, w.s.rv, want);
	slu_mirror_stats(w.m, &st);
	ok(good && checked > 50 && !w.l.wrong && equals(w.m, &w.l, want) && w.l.firsts == 1 &&
		   (compacts || complete(&w, since, skip)),
	   "seed %" PRIu64 " %s%s: %u changes, %u handed over, %" PRIu64 " lists, %" PRIu64
	   " watches, %" PRIu64 " repeated, %" PRIu64 " times 410, %u wrong",
	   seed, enc == SLU_ENC_JSON ? "json" : "protobuf", compacts ? " with compaction" : "",
	   w.s.log.n, w.l.got.n, st.lists, st.watches, st.repeated, st.expired, w.l.wrong);
	slu_mirror_free(w.m);
	slu_vec_done(&w.s.log);
	slu_vec_done(&w.l.got);
}

/* Every allocation of a list and a watch made to fail once: the same input again, and all is well.
 */
static void check_faults(void)
{
	struct server s = { .rv = 10 };
	struct slu_rng rng = { .state = 7 };
	struct slu_buf page = SLU_BUF_INIT(1 << 20), events = SLU_BUF_INIT(1 << 20);
	struct state want[NAMES];
	uint64_t first;
	long k;

	for (int i = 0; i < 60; i++)
		server_step(&s, &rng);
	first = s.rv;
	server_page(&s, SLU_ENC_PROTOBUF, first, 0, NAMES, &page);
	for (int i = 0; i < 60; i++)
		server_step(&s, &rng);
	for (uint32_t i = 0; i < s.log.n; i++) {
		if (s.log.p[i].rv > first)
			server_event(SLU_ENC_PROTOBUF, &s.log.p[i], &events);
	}
	server_at(&s, s.rv, want);
	for (k = 0;; k++) {
		struct slu_strpool *pool = slu_strpool_new();
		struct slu_kcodec *codec = slu_kcodec_new(pool);
		struct listener l = { 0 };
		struct slu_mirror_handler h = { changed, synced, &l };
		struct slu_mirror *m = NULL;
		bool failed, good;
		int rc;

		if (slu_vec_reserve(&l.got, 4096) < 0)
			abort();
		slu_fault_arm(k);
		rc = slu_mirror_new(SLU_KIND_NODE, codec, &h, &m);
		if (rc == 0)
			rc = slu_mirror_page(m, SLU_ENC_PROTOBUF, page.p, page.n, NULL);
		if (rc == 0) {
			slu_mirror_watch_begin(m, SLU_ENC_PROTOBUF);
			for (size_t i = 0; rc == 0 && i < events.n; i += 100)
				rc = slu_mirror_watch_data(
					m, events.p + i, SLU_MIN((size_t)100, events.n - i), NULL);
			slu_mirror_watch_end(m);
		}
		failed = slu_fault_disarm();
		if (m && slu_mirror_wants(m) == SLU_MIRROR_LIST)
			good = slu_mirror_page(m, SLU_ENC_PROTOBUF, page.p, page.n, NULL) == 0;
		else
			good = true;
		if (m && good) {
			slu_mirror_watch_begin(m, SLU_ENC_PROTOBUF);
			good = slu_mirror_watch_data(m, events.p, events.n, NULL) == 0 &&
			       equals(m, &l, want) && !l.wrong;
		}
		slu_mirror_free(m);
		slu_kcodec_free(codec);
		slu_strpool_free(pool);
		slu_vec_done(&l.got);
		if (!good || (failed && rc != -ENOMEM)) {
			ok(false, "allocation %ld: rc %d", k, rc);
			break;
		}
		if (!failed) {
			ok(rc == 0, "clean after %ld failed allocations, nothing lost or doubled",
			   k);
			break;
		}
	}
	slu_vec_done(&s.log);
	slu_buf_done(&page);
	slu_buf_done(&events);
}

static void check_odd(struct slu_kcodec *codec)
{
	struct listener l = { 0 };
	struct slu_mirror_handler h = { changed, synced, &l };
	struct slu_mirror *m;
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	struct server s = { .rv = 50 };
	struct change c = { .rv = 60, .name = 1, .uid = 1, .type = SLU_KEVENT_ADDED };
	struct slu_mirror_stats st;

	if (slu_mirror_new(SLU_KIND_NODE, codec, &h, &m) < 0)
		abort();
	ok(slu_mirror_page(m, SLU_ENC_JSON, "{}", 2, NULL) == -EPROTO &&
		   slu_mirror_wants(m) == SLU_MIRROR_LIST,
	   "a list without version is refused");
	ok(slu_mirror_watch_data(m, "x", 1, NULL) == -ESTALE, "no watch before a list");
	server_page(&s, SLU_ENC_PROTOBUF, 50, 0, 10, &b);
	ok(slu_mirror_page(m, SLU_ENC_PROTOBUF, b.p, b.n, NULL) == 0 && l.firsts == 1,
	   "an empty list is a list");
	for (int i = 0; i < 3; i++) {
		slu_mirror_watch_begin(m, SLU_ENC_PROTOBUF);
		ok(slu_mirror_watch_data(m, "\0\0\0\2\377\377", 6, NULL) == -EPROTO,
		   "rubbish ends the stream");
		slu_mirror_watch_end(m);
	}
	ok(slu_mirror_wants(m) == SLU_MIRROR_LIST,
	   "after rubbish three times in a row a fresh list is due");
	ok(slu_mirror_page(m, SLU_ENC_PROTOBUF, b.p, b.n, NULL) == 0 && l.syncs == 2,
	   "the kind is listed again");
	slu_buf_reset(&b);
	server_event(SLU_ENC_JSON, &c, &b);
	slu_mirror_watch_begin(m, SLU_ENC_JSON);
	ok(slu_mirror_watch_data(m, b.p, b.n, NULL) == 0 && slu_mirror_count(m) == 1,
	   "one object arrived by the watch");
	/* deleted and created again between two lists */
	c.uid = 2;
	c.rv = 61;
	c.type = SLU_KEVENT_MODIFIED;
	slu_buf_reset(&b);
	server_event(SLU_ENC_JSON, &c, &b);
	ok(slu_mirror_watch_data(m, b.p, b.n, NULL) == 0 && l.got.n == 3 &&
		   l.got.p[1].type == SLU_KEVENT_DELETED && l.got.p[2].type == SLU_KEVENT_ADDED &&
		   !l.wrong,
	   "another uid under the same name is a deletion and an addition");
	slu_mirror_absent(m);
	slu_mirror_stats(m, &st);
	ok(slu_mirror_count(m) == 0 && st.deleted == 2 && slu_mirror_synced(m),
	   "a kind that is gone leaves nothing behind");
	/* a server put back to an old backup */
	s.rv = 20;
	s.now[3] = (struct state){ 15, 9 };
	if (slu_vec_push(&s.log, (struct change){ 15, 3, 9, SLU_KEVENT_ADDED }) < 0)
		abort();
	slu_buf_reset(&b);
	server_page(&s, SLU_ENC_JSON, 20, 0, 10, &b);
	ok(slu_mirror_page(m, SLU_ENC_JSON, b.p, b.n, NULL) == 0 && slu_mirror_count(m) == 1 &&
		   strcmp(slu_mirror_rv(m), "20") == 0,
	   "a list with an older version is the truth all the same");
	slu_mirror_free(m);
	slu_vec_done(&l.got);
	slu_vec_done(&s.log);
	slu_buf_done(&b);
}

static char bad_name[300];

static void note_bad(void *arg, const struct slu_kbad *bad)
{
	(void)arg;
	snprintf(bad_name, sizeof bad_name, "%s@%" PRIu64, bad->name, bad->rv);
}

/* A node; `broken`: a status that ends in the middle of a field; year: of its making. */
static void put_node(struct slu_buf *b, uint32_t num, const char *name, const char *rv, bool broken,
		     int64_t made_s)
{
	size_t item = slu_pb_begin(b, num), meta = slu_pb_begin(b, 1), made;

	slu_pb_put_str(b, 1, name);
	slu_pb_put_str(b, 5, name);
	slu_pb_put_str(b, 6, rv);
	made = slu_pb_begin(b, 8);
	slu_pb_put_i64(b, 1, made_s);
	slu_pb_end(b, made);
	slu_pb_end(b, meta);
	if (broken)
		slu_pb_put_bytes(b, 3, "\x0a\x7f", 2);
	slu_pb_end(b, item);
}

static void put_list(struct slu_buf *b, const char *rv, bool broken)
{
	size_t meta;

	slu_buf_reset(b);
	meta = slu_pb_begin(b, 1);
	slu_pb_put_str(b, 2, rv);
	slu_pb_end(b, meta);
	put_node(b, 2, "a", "3", false, 1700000000);
	put_node(b, 2, "b", broken ? "7" : "4", broken, 1700000000);
	put_node(b, 2, "c", "5", false, INT64_C(-62167219200)); /* in the year 0 */
}

static void put_event(struct slu_buf *b, const char *type, const char *rv, bool broken)
{
	struct slu_buf ev = SLU_BUF_INIT(1 << 16), node = SLU_BUF_INIT(1 << 16);
	size_t at;
	uint8_t len[4] = { 0 };

	put_node(&node, 2, "b", rv, broken, 1700000000);
	slu_pb_put_str(&ev, 1, type);
	at = slu_pb_begin(&ev, 2);
	slu_pb_put_bytes(&ev, 1, node.p + 2, node.n - 2); /* without its own tag and length */
	slu_pb_end(&ev, at);
	len[2] = (uint8_t)(ev.n >> 8);
	len[3] = (uint8_t)ev.n;
	slu_buf_reset(b);
	slu_buf_add(b, len, 4);
	slu_buf_add(b, ev.p, ev.n);
	slu_buf_done(&ev);
	slu_buf_done(&node);
}

static bool holds(const struct slu_mirror *m, const char *name, uint64_t rv)
{
	const struct slu_kobj *o = slu_mirror_get(m, "", name);

	return rv ? o && o->meta.rv == rv : !o;
}

/* One object that cannot be decoded must not hide the others. */
static void check_unreadable(struct slu_kcodec *codec)
{
	struct listener l = { 0 };
	struct slu_mirror_handler h = { NULL, synced, &l, note_bad };
	struct slu_mirror_stats st;
	struct slu_mirror *m;
	struct slu_buf b = SLU_BUF_INIT(1 << 16);

	if (slu_mirror_new(SLU_KIND_NODE, codec, &h, &m) < 0)
		abort();
	put_list(&b, "10", true);
	ok(slu_mirror_page(m, SLU_ENC_PROTOBUF, b.p, b.n, NULL) == 0 && l.firsts == 1 &&
		   holds(m, "a", 3) && holds(m, "b", 0),
	   "a list with an unreadable object gives the others");
	ok(holds(m, "c", 5), "an object created in the year 0 is read without its time");
	ok(!strcmp(bad_name, "b@7"), "the unreadable one is named (%s)", bad_name);
	slu_mirror_watch_begin(m, SLU_ENC_PROTOBUF);
	put_event(&b, "MODIFIED", "11", false);
	ok(slu_mirror_watch_data(m, b.p, b.n, NULL) == 0 && holds(m, "b", 11),
	   "an object that becomes readable is taken in");
	bad_name[0] = '\0';
	put_event(&b, "MODIFIED", "12", true);
	ok(slu_mirror_watch_data(m, b.p, b.n, NULL) == 0 && holds(m, "b", 11) &&
		   !strcmp(bad_name, "b@12") && !strcmp(slu_mirror_rv(m), "12"),
	   "a watch goes on past an unreadable state; what was known before stays");
	slu_mirror_watch_end(m);
	slu_mirror_expired(m);
	put_list(&b, "13", true);
	ok(slu_mirror_page(m, SLU_ENC_PROTOBUF, b.p, b.n, NULL) == 0 && holds(m, "b", 11),
	   "a list does not take it away either");
	slu_mirror_watch_begin(m, SLU_ENC_PROTOBUF);
	put_event(&b, "DELETED", "14", true);
	ok(slu_mirror_watch_data(m, b.p, b.n, NULL) == 0 && holds(m, "b", 0),
	   "the deletion of an unreadable object takes it away");
	slu_mirror_stats(m, &st);
	ok(st.unreadable == 4 && !st.bad, "each is counted (%d)", (int)st.unreadable);
	slu_mirror_free(m);
	slu_vec_done(&l.got);
	slu_buf_done(&b);
}

int main(void)
{
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_kcodec *codec = slu_kcodec_new(pool);
	uint32_t strings;
	size_t bytes;

	check_unreadable(codec);
	for (uint64_t seed = 1; seed <= 24; seed++)
		run(codec, seed, seed % 2 ? SLU_ENC_JSON : SLU_ENC_PROTOBUF, seed % 4 > 1);
	check_odd(codec);
	check_faults();
	slu_strpool_stat(pool, &strings, &bytes);
	ok(strings == 0, "no string is left in the pool (%u)", strings);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return tap_done();
}
