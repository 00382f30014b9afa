#include "daemon.h"

#include <stdio.h>

#include "control/frame/frame.h"
#include "coverage.h"
#include "kube/codec.h"

#define BATCH 4096u

/* Of the other kinds there is nothing to list. */
static bool is_modelled(const struct world *w, enum slu_kkind k)
{
	if (w->recorded)
		return w->recorded >> k & 1;
	return (w->customs && is_custom(k)) || (w->age >= 2 && is_plain(k)) || k == SLU_KIND_NODE ||
	       k == SLU_KIND_POD || k == SLU_KIND_NAMESPACE || k == SLU_KIND_JOB ||
	       k == SLU_KIND_REPLICASET || k == SLU_KIND_STATEFULSET || k == SLU_KIND_DEPLOYMENT;
}

/* Custom resources: the server does not know them. */
static bool is_absent(enum slu_kkind k)
{
	return k == SLU_KIND_PODGROUP_X || k == SLU_KIND_PODGROUP_SIGS ||
	       slu_kkind_is_native_group(k) || k == SLU_KIND_FLUXJOB;
}

static struct daemon *living(struct world *w, uint64_t n, uint64_t life)
{
	struct daemon *d = w->daemon[n];

	return d && d->life == life ? d : NULL;
}

/* What the core's thread takes for the time. */
static int64_t time_of(struct daemon *d)
{
	int64_t step_us;

	return slu_clock_at(&d->clock, d->w->now_us + d->offset_us, d->w->now_us, &step_us);
}

static void put(struct daemon *d, struct slu_record *r)
{
	if (slu_inbox_put_answer(slu_core_inbox(d->core), r) < 0)
		abort();
	daemon_wake(d);
}

/* ---- what comes in ---- */

static void changed(void *arg, const struct slu_kobj *old, const struct slu_kobj *now)
{
	struct watch *x = arg;

	put(x->d, slu_rec_object_new(now ? now : old, !now));
}

static void synced(void *arg, bool first)
{
	struct watch *x = arg;

	if (!first && x->again) {
		struct slu_rec_resent *r = slu_rec_resent_new(x->kind);
		const struct slu_kobj *o;
		uint32_t i = 0;

		x->again = false;
		while ((o = slu_mirror_next(x->mirror, &i)))
			if (slu_vec_push(&r->obj, slu_kobj_ref(o)) < 0)
				abort();
		put(x->d, &r->base);
	}
	if (first)
		put(x->d, slu_rec_synced_new(x->kind));
}

static void unreadable(void *arg, const struct slu_kbad *bad)
{
	struct watch *x = arg;

	cover_hit("unreadable", slu_kkind_info(x->kind)->kind);
	world_say(x->d->w, "%s %s cannot be read: %s", slu_kkind_info(x->kind)->kind, bad->name,
		  bad->why);
}

static void told(struct daemon *d, struct obj *o, uint64_t rv, bool doomed, bool bound)
{
	int64_t now = d->w->now_us;

	if (doomed && !o->told_doomed[d->n])
		o->told_doomed[d->n] = now;
	if (bound && !o->told_bound[d->n])
		o->told_bound[d->n] = now;
	o->told_change[d->n] = now;
	o->told_rv[d->n] = rv;
}

static void list(struct world *w, uint64_t at, uint64_t life);

/* A stream that breaks is tried again, at the place where it broke. */
static void in_trouble(struct watch *x, const struct slu_error *err, bool page)
{
	struct world *w = x->d->w;
	uint64_t at = (uint64_t)x->d->n | (uint64_t)x->kind << 8;

	world_say(w, "watch of %ss in trouble: %s", slu_kkind_info(x->kind)->kind, err->text);
	x->retry_us = SLU_MIN(SLU_MAX(x->retry_us * 2, SECOND), 30 * SECOND);
	x->listing = page;
	if (page)
		world_at(w, w->now_us + x->retry_us, list, at, x->d->life);
}

/* ---- lists ---- */

static void drop_pages(struct watch *x)
{
	wire_pages_done(&x->list);
	x->seen.n = x->pages_in = 0;
}

static void look_at_all(struct world *w, struct watch *x)
{
	drop_pages(x);
	x->list_at = w->log[x->kind].line.n;
	wire_list(w, x->kind, w->page, &x->list);
	for (uint32_t i = 0; i < w->by_uid.n; i++) {
		struct obj *o = (struct obj *)(uintptr_t)w->by_uid.e[i].val;
		struct listed l = { o, o->rv, o->deleted_us != 0,
				    o->kind == SLU_KIND_POD && *o->pod.node };

		if (o->kind == x->kind && slu_vec_push(&x->seen, l) < 0)
			abort();
	}
}

static void next_page(struct world *w, uint64_t at, uint64_t life)
{
	struct daemon *d = living(w, at & 0xff, life);
	struct watch *x = d ? &d->watch[at >> 8] : NULL;
	enum slu_kencoding enc = x ? wire_encoding(w, x->kind) : SLU_ENC_JSON;
	struct slu_error err = { 0 };
	const struct slu_buf *b;

	if (!d)
		return;
	if (x->pages_in && w->fault.pages_gone) {
		w->fault.pages_gone--;
		world_say(w, "a page of %ss is gone: 410", slu_kkind_info(x->kind)->kind);
		slu_mirror_expired(x->mirror);
		world_at(w, w->now_us + SECOND / 10, list, at, life);
		return;
	}
	b = &x->list.page.p[x->pages_in++];
	w->events++;
	if (slu_mirror_page(x->mirror, enc, slu_buf_str(b), b->n, &err) < 0) {
		in_trouble(x, &err, true);
		return;
	}
	if (x->pages_in < x->list.page.n) {
		if (d->mute)
			next_page(w, at, life);
		else
			world_at(w, w->now_us + world_span(w, w->seq, 1000, SECOND / 5), next_page,
				 at, life);
		return;
	}
	x->listing = false;
	x->at = x->list_at;
	x->retry_us = 0;
	slu_mirror_watch_begin(x->mirror, enc);
	for (uint32_t i = 0; i < x->seen.n; i++)
		told(d, x->seen.p[i].o, x->seen.p[i].rv, x->seen.p[i].doomed, x->seen.p[i].bound);
	drop_pages(x);
	if (x->at < w->log[x->kind].line.n && !d->mute)
		daemon_news(w, x->kind);
}

static void list(struct world *w, uint64_t at, uint64_t life)
{
	struct daemon *d = living(w, at & 0xff, life);

	if (!d)
		return;
	look_at_all(w, &d->watch[at >> 8]);
	next_page(w, at, life);
}

/* ---- watches ---- */

/* A stream that broke goes on behind the version that the mirror has. */
static void go_on(struct world *w, uint64_t at, uint64_t life)
{
	struct daemon *d = living(w, at & 0xff, life);
	struct watch *x = d ? &d->watch[at >> 8] : NULL;

	if (!d || !x->broken)
		return;
	x->broken = false;
	if (x->listing)
		return;
	if (!kube_since(w, x->kind, strtoull(slu_mirror_resume(x->mirror), NULL, 10), &x->at)) {
		daemon_relist(w, d->n, x->kind);
		return;
	}
	slu_mirror_watch_begin(x->mirror, wire_encoding(w, x->kind));
	daemon_news(w, x->kind);
}

void daemon_break(struct world *w, int n, enum slu_kkind kind, int64_t for_us)
{
	struct daemon *d = w->daemon[n];
	struct watch *x = d ? &d->watch[kind] : NULL;
	struct wlog *l = &w->log[kind];
	struct slu_error err = { 0 };

	if (!d || !x->modelled || x->listing || x->broken)
		return;
	world_say(w, "the watch of %ss breaks", slu_kkind_info(kind)->kind);
	if (x->at >= l->first && x->at < l->line.n) /* in the middle of an event */
		(void)slu_mirror_watch_data(x->mirror, l->line.p[x->at].text,
					    l->line.p[x->at].n / 2, &err);
	slu_mirror_watch_end(x->mirror);
	x->broken = true;
	world_at(w, w->now_us + for_us, go_on, (uint64_t)n | (uint64_t)kind << 8, d->life);
}

/* The server says 410 within the stream. */
void daemon_expire(struct world *w, int n, enum slu_kkind kind)
{
	struct daemon *d = w->daemon[n];
	struct watch *x = d ? &d->watch[kind] : NULL;
	struct slu_error err = { 0 };

	if (!d || !x->modelled || x->listing || x->broken)
		return;
	w->buf.n = 0;
	wire_gone(w, kind, &w->buf);
	if (slu_mirror_watch_data(x->mirror, slu_buf_str(&w->buf), w->buf.n, &err) != -ESTALE)
		world_broken(w, "watch", "410 within a stream is not understood: %s", err.text);
	slu_mirror_watch_end(x->mirror);
	in_trouble(x, &err, true);
}

static void bookmark(struct world *w, struct watch *x)
{
	struct slu_error err = { 0 };

	w->buf.n = 0;
	wire_bookmark(w, x->kind, &w->buf);
	if (slu_mirror_watch_data(x->mirror, slu_buf_str(&w->buf), w->buf.n, &err) < 0)
		world_broken(w, "watch", "a bookmark is not understood: %s", err.text);
}

static void deliver(struct world *w, uint64_t at, uint64_t life)
{
	struct daemon *d = living(w, at & 0xff, life);
	struct watch *x = d ? &d->watch[at >> 8] : NULL;
	struct wlog *l;

	if (!d)
		return;
	l = &w->log[x->kind];
	x->due = false;
	if (x->listing || x->broken)
		return;
	if (x->at < l->first) {
		slu_mirror_watch_end(x->mirror);
		slu_mirror_expired(x->mirror);
		x->listing = true;
		world_at(w, w->now_us + SECOND / 10, list, at, life);
		return;
	}
	while (x->at < l->line.n) {
		struct line *line = &l->line.p[x->at];
		struct slu_error err = { 0 };

		if (w->fault.skip[x->kind]) {
			w->fault.skip[x->kind]--;
			x->at++;
			continue;
		}
		w->events++;
		if (slu_mirror_watch_data(x->mirror, line->text, line->n, &err) < 0) {
			slu_mirror_watch_end(x->mirror);
			in_trouble(x, &err, slu_mirror_wants(x->mirror) == SLU_MIRROR_LIST);
			if (x->listing)
				return;
			slu_mirror_watch_begin(x->mirror, wire_encoding(w, x->kind));
			x->due = true;
			world_at(w, w->now_us + x->retry_us, deliver, at, life);
			return;
		}
		told(d, line->o, line->rv, line->doomed, line->bound);
		x->at++;
	}
	if (w->bookmarks && !world_span(w, w->rv * 5 + x->kind, 0, 4))
		bookmark(w, x);
}

void daemon_news(struct world *w, enum slu_kkind kind)
{
	for (int n = 0; n < DAEMONS; n++) {
		struct daemon *d = w->daemon[n];
		struct watch *x = d ? &d->watch[kind] : NULL;
		int64_t delay = world_span(w, w->rv * 3 + (uint64_t)n, 500, 9000);

		if (!d || !x->modelled || x->due || x->listing)
			continue;
		if (w->fault.watch_until_us[kind] > w->now_us)
			delay += w->fault.watch_delay_us[kind];
		x->due = true;
		world_at(w, w->now_us + delay, deliver, (uint64_t)n | (uint64_t)kind << 8, d->life);
	}
}

void daemon_relist(struct world *w, int n, enum slu_kkind kind)
{
	struct daemon *d = w->daemon[n];

	if (!d || !d->watch[kind].modelled || d->watch[kind].listing)
		return;
	d->watch[kind].broken = false;
	slu_mirror_watch_end(d->watch[kind].mirror);
	slu_mirror_expired(d->watch[kind].mirror);
	d->watch[kind].listing = true;
	world_at(w, w->now_us + world_span(w, w->seq, SECOND / 50, SECOND / 2), list,
		 (uint64_t)n | (uint64_t)kind << 8, d->life);
}

/* ---- the cycle ---- */

static void census(struct world *w, uint64_t at, uint64_t life)
{
	struct daemon *d = living(w, at & 0xff, life);
	struct slu_rec_census *r;

	if (!d)
		return;
	r = slu_rec_census_new((enum slu_kkind)(at >> 8));
	r->rv = w->rv;
	for (uint32_t i = 0; i < w->obj[at >> 8].n; i++) {
		const struct obj *o = w->obj[at >> 8].p[i];
		struct slu_census_row row = { .rv = o->rv };
		char uid[24];

		if (o->kind == SLU_KIND_POD && is_over(o))
			continue;
		row.uid = slu_hash_bytes(uid,
					 (size_t)snprintf(uid, sizeof uid, "u%" PRIu64, o->uid));
		if (slu_vec_push(&r->row, row) < 0)
			abort();
	}
	put(d, &r->base);
}

/* The audit's lists come by themselves, too. */
static void census_period(struct world *w, uint64_t n, uint64_t life)
{
	struct daemon *d = living(w, n, life);

	if (!d)
		return;
	census(w, n | SLU_KIND_NODE << 8, life);
	census(w, n | SLU_KIND_POD << 8, life);
	world_at(w, w->now_us + d->cfg->status.audit_s * SECOND, census_period, n, life);
}

static void carry_out(struct daemon *d, struct slu_record *r)
{
	struct world *w = d->w;

	if (r->kind == SLU_REC_WRITE && !d->mute) {
		requests_send(d, (struct slu_rec_write *)r);
		return;
	}
	if (r->kind == SLU_REC_LOOK && !d->mute) {
		const struct slu_rec_look *l = (struct slu_rec_look *)r;

		if (l->again) {
			d->watch[l->kind].again = true;
			daemon_relist(w, d->n, l->kind);
		} else {
			world_at(w, w->now_us + SECOND / 20, census,
				 (uint64_t)d->n | (uint64_t)l->kind << 8, d->life);
		}
	}
	r->free(r);
}

static void step(struct world *w, uint64_t n, uint64_t life);

static void alarm_rings(struct world *w, uint64_t n, uint64_t number)
{
	struct daemon *d = w->daemon[n];

	if (d && d->wake == number)
		daemon_wake(d);
}

static void set_alarm(struct daemon *d)
{
	int64_t at = slu_core_wake_us(d->core);

	if (at == NEVER)
		return;
	at = SLU_MAX(d->w->now_us + at - time_of(d), d->w->now_us + 1000);
	if (at == d->wake_at_us)
		return;
	d->wake_at_us = at;
	d->wake = ++d->w->seq;
	world_at(d->w, at, alarm_rings, (uint64_t)d->n, d->wake);
}

static void step(struct world *w, uint64_t n, uint64_t life)
{
	struct daemon *d = living(w, n, life);
	struct slu_record *r[64];
	struct slu_error err = { 0 };
	uint32_t k;

	if (!d)
		return;
	if (d->fenced) { /* it notices that another one leads, and ends */
		world_say(w, "sluiced %" PRIu64 " has lost the store to another", n);
		daemon_kill(w, (int)n, NULL);
		return;
	}
	if (d->paused_us > w->now_us) {
		world_at(w, d->paused_us, step, n, life);
		return;
	}
	d->stepping = false;
	d->cycles++;
	while ((k = slu_inbox_take(slu_core_inbox(d->core), r, SLU_LEN(r))))
		for (uint32_t i = 0; i < k; i++)
			slu_core_take(d->core, r[i], time_of(d));
	if (slu_core_cycle(d->core, time_of(d), &err) < 0)
		world_broken(w, "cycle", "the core's own check fails: %s", err.text);
	while ((k = slu_inbox_take(d->out, r, SLU_LEN(r))))
		for (uint32_t i = 0; i < k; i++)
			carry_out(d, r[i]);
	set_alarm(d);
}

void daemon_wake(struct daemon *d)
{
	if (d->stepping)
		return;
	d->stepping = true;
	world_at(d->w, d->w->now_us + world_span(d->w, d->cycles, 200, 3000), step, (uint64_t)d->n,
		 d->life);
}

/* ---- lives ---- */

static void begin_watch(struct daemon *d, enum slu_kkind kind)
{
	struct watch *x = &d->watch[kind];
	struct slu_mirror_handler h = {
		.changed = changed, .synced = synced, .arg = x, .unreadable = unreadable
	};
	struct world *w = d->w;

	x->d = d;
	x->kind = kind;
	x->modelled = is_modelled(w, kind);
	if (x->modelled) {
		if (slu_mirror_new(kind, d->codec, &h, &x->mirror) < 0)
			abort();
		x->listing = true;
		if (!w->recorded)
			world_at(w, w->now_us + world_span(w, d->life + kind, 2000, SECOND / 4),
				 list, (uint64_t)d->n | (uint64_t)kind << 8, d->life);
	} else {
		struct slu_record *r = slu_rec_synced_new(kind);

		((struct slu_rec_synced *)r)->absent = is_absent(kind);
		put(d, r);
	}
}

/* A file is locked by the one daemon that uses it; a database is shared, and fenced by terms. */
static bool is_refused(struct world *w, int n)
{
	if (w->leased || !w->daemon[!n] || w->daemon[!n]->mute)
		return false;
	world_say(w, "sluiced %d does not start: another sluiced uses this store", n);
	return true;
}

bool daemon_leads(const struct world *w, int n, uint64_t life)
{
	const struct daemon *d = w->daemon[n];

	return d && d->life == life && (!w->leased || d->setup.term == w->term);
}

/* Read the store and decide from now on; the error says why not. */
static int lead(struct daemon *d, const char *store, struct slu_error *err)
{
	struct world *w = d->w;

	d->setup.url = store;
	rule_leads(w);
	if (w->leased) /* of the Lease: whoever had it before has lost it, but for a twin */
		d->setup.term = d->mute ? w->term + 1 : ++w->term;
	return slu_core_lead(d->core, &d->setup, err);
}

/* Without a store it is a standby. */
static struct daemon *start(struct world *w, int n, const char *store, bool mute)
{
	struct daemon *d;
	struct slu_core_setup cs = { .verify = true, .first_id = (uint64_t)(w->now_us / 1000) };
	struct slu_error err = { 0 };
	char yaml[1200];

	if (!mute && is_refused(w, n))
		return NULL;
	d = slu_calloc(1, sizeof *d);
	world_config(w, yaml, sizeof yaml);
	d->settings = slu_hash_bytes(yaml, strlen(yaml));
	d->w = w;
	d->n = n;
	d->life = ++w->seq;
	d->excuse_us = w->now_us;
	d->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	d->codec = slu_kcodec_new(w->pool);
	d->setup = (struct slu_journal_setup){ .cluster = "c",
					       .holder = n ? "second" : "first",
					       .arg = d };
	d->mute = mute;
	if (slu_config_parse("world", yaml, strlen(yaml), &d->cfg, &err) < 0)
		world_broken(w, "config", "%s", err.text);
	cs.config = d->cfg;
	cs.out = d->out;
	cs.pool = w->age >= 3 ? w->pool : NULL;
	w->daemon[n] = d;
	if (w->failed || slu_core_new(&cs, &d->core, &err) < 0 ||
	    (store && lead(d, store, &err) < 0)) {
		world_say(w, "sluiced %d does not start: %s", n, err.text);
		if (!n)
			world_broken(w, "start", "sluiced does not start: %s", err.text);
		daemon_kill(w, n, "");
		return NULL;
	}
	world_say(w, w->leased ? "sluiced %d starts, term %" PRId64 : "sluiced %d starts", n,
		  d->setup.term);
	for (enum slu_kkind k = SLU_KIND_NODE; k < SLU_KIND_PARTIAL; k++)
		begin_watch(d, k);
	if (!w->recorded) /* which has no lists for the audit */
		world_at(w, w->now_us + d->cfg->status.audit_s * SECOND, census_period, (uint64_t)n,
			 d->life);
	return d;
}

struct daemon *daemon_start(struct world *w, int n)
{
	return start(w, n, w->store, false);
}

struct daemon *daemon_twin(struct world *w, const char *store)
{
	struct daemon *d = start(w, 1, store, true);

	if (d)
		d->offset_us = w->daemon[0]->offset_us;
	for (enum slu_kkind k = SLU_KIND_NODE; d && k < SLU_KIND_PARTIAL; k++)
		if (d->watch[k].modelled)
			list(w, 1 | (uint64_t)k << 8, d->life);
	return d;
}

struct daemon *daemon_standby(struct world *w)
{
	struct daemon *d = start(w, 1, NULL, true);

	if (d)
		d->offset_us = w->daemon[0]->offset_us;
	return d;
}

bool daemon_take_over(struct world *w, const char *store)
{
	struct daemon *d = w->daemon[1];
	struct slu_error err = { 0 };

	d->offset_us = w->daemon[0]->offset_us;
	world_say(w, "sluiced 1 takes over");
	if (lead(d, store, &err) == 0)
		return true;
	world_broken(w, "start", "the standby does not take over: %s", err.text);
	return false;
}

bool daemon_catch_up(struct world *w, int n)
{
	struct daemon *d = w->daemon[n];
	int rounds = 0;

	do {
		for (enum slu_kkind k = SLU_KIND_NODE; k < SLU_KIND_PARTIAL; k++) {
			if (d->watch[k].broken)
				return false;
			if (d->watch[k].modelled)
				deliver(w, (uint64_t)n | (uint64_t)k << 8, d->life);
			if (d->watch[k].listing)
				return false;
		}
		if (d->paused_us > w->now_us)
			return false;
		step(w, (uint64_t)n, d->life);
	} while (!w->failed && (journal_commit(d) || d->stepping) && ++rounds < 100);
	return !d->stepping;
}

void daemon_kill(struct world *w, int n, const char *how)
{
	struct daemon *d = w->daemon[n];

	if (!d)
		return;
	if (how)
		world_say(w, "sluiced %d is killed", n);
	w->daemon[n] = NULL;
	slu_core_free(d->core);
	slu_inbox_free(d->out);
	for (int k = 0; k < SLU_KIND_COUNT; k++) {
		slu_mirror_free(d->watch[k].mirror);
		drop_pages(&d->watch[k]);
		slu_vec_done(&d->watch[k].seen);
	}
	slu_kcodec_free(d->codec);
	slu_config_free(d->cfg);
	slu_free(d);
	for (uint32_t i = 0; i < w->by_uid.n; i++) {
		struct obj *o = (struct obj *)(uintptr_t)w->by_uid.e[i].val;

		o->told_doomed[n] = o->told_bound[n] = o->told_change[n] = 0;
		o->told_rv[n] = 0;
	}
}

bool daemon_alive(const struct world *w, int n)
{
	return w->daemon[n];
}

bool daemon_promised(const struct world *w, int n, const char *node)
{
	const struct slu_machine *m = slu_queue_machine(w->daemon[n]->core->q);
	slu_node at = slu_machine_node_find(m, node);
	bool due = false;

	for (uint32_t i = 0; at != SLU_NODE_NONE && i < slu_machine_node_shares(m, at); i++) {
		struct slu_node_share share;
		struct slu_gang_info info;

		slu_machine_node_share(m, at, i, &share);
		due |= slu_gang_info(m, share.job, &info, NULL) == 0 &&
		       info.state == SLU_GANG_RESERVED && info.counted;
	}
	return due;
}

bool daemon_answers(const struct world *w, int n)
{
	const struct daemon *d = w->daemon[n];

	return d && d->journal && slu_core_synced(d->core);
}

void daemon_pause(struct world *w, int n, int64_t until_us)
{
	if (!w->daemon[n])
		return;
	world_say(w, "sluiced %d stops for %.1f s", n, (double)(until_us - w->now_us) / 1e6);
	w->daemon[n]->paused_us = until_us;
	w->daemon[n]->excuse_us = until_us;
}

void daemon_step_clock(struct world *w, int n, int64_t by_us)
{
	if (!w->daemon[n])
		return;
	world_say(w, "the clock of sluiced %d steps by %.0f s", n, (double)by_us / 1e6);
	w->daemon[n]->offset_us += by_us;
	w->stepped_us = w->stepped_us ? w->stepped_us : w->now_us;
	daemon_wake(w->daemon[n]);
}

static void free_ask(struct slu_record *r)
{
	slu_free(r);
}

static void heard(void *arg, int rc, const char *text)
{
}

void daemon_reload(struct world *w, int n)
{
	struct daemon *d = w->daemon[n];
	struct slu_config *cfg = NULL;
	struct slu_error err = { 0 };
	char yaml[1200];

	if (!d)
		return;
	world_config(w, yaml, sizeof yaml);
	if (slu_config_parse("world", yaml, strlen(yaml), &cfg, &err) < 0) {
		world_broken(w, "config", "%s", err.text);
		return;
	}
	slu_config_keep(cfg, d->cfg);
	put(d, slu_rec_config_new(cfg));
	slu_config_free(cfg);
	d->settings = slu_hash_bytes(yaml, strlen(yaml));
	if (!n && w->daemon[1] && w->daemon[1]->mute) /* all replicas read the same file */
		daemon_reload(w, 1);
}

/* A client of the Fluxion services hears the number of what it matched. */
static void matched(void *arg, int rc, const char *text)
{
	static const char key[] = "{\"job\":";
	struct world *w = arg;

	cover_hit("match", rc ? "refused" : strstr(text, "true") ? "promised" : "given");
	if (!rc && !strncmp(text, key, strlen(key)) &&
	    slu_vec_push(&w->match, strtoull(text + strlen(key), NULL, 10)) < 0)
		abort();
}

void daemon_ask_for(struct world *w, int n, const struct slu_rec_ask *like)
{
	size_t text = like->text ? strlen(like->text) + 1 : 0;
	struct slu_rec_ask *a;

	if (!w->daemon[n])
		return;
	a = slu_calloc(1, sizeof *a + text);
	*a = *like;
	a->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = free_ask };
	a->answer = like->what == SLU_ASK_MATCH ? matched : heard;
	a->arg = w;
	if (text)
		a->text = memcpy(a + 1, like->text, text);
	put(w->daemon[n], &a->base);
}

static struct slu_rec_ask *ask_new(int what, const char *ns, const char *name)
{
	struct slu_rec_ask *a = slu_calloc(1, sizeof *a);

	a->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = free_ask };
	a->what = (enum slu_ask)what;
	a->answer = heard;
	snprintf(a->ns, sizeof a->ns, "%s", ns);
	snprintf(a->name, sizeof a->name, "%s", name);
	return a;
}

void daemon_ask(struct world *w, int n, int what, const char *ns, const char *name)
{
	if (w->daemon[n])
		put(w->daemon[n], &ask_new(what, ns, name)->base);
}

struct slu_snapshot *daemon_picture(struct world *w, int n)
{
	struct daemon *d = w->daemon[n];
	struct slu_error err = { 0 };

	if (!d)
		return NULL;
	foretell_anew(d->core);
	slu_core_take(d->core, &ask_new(SLU_ASK_SNAPSHOT, "", "")->base, time_of(d));
	if (slu_core_cycle(d->core, time_of(d), &err) < 0)
		world_broken(w, "cycle", "the core's own check fails: %s", err.text);
	return slu_core_snapshot(d->core);
}

int64_t daemon_excuse_us(const struct world *w, int n)
{
	return w->daemon[n] ? w->daemon[n]->excuse_us : w->now_us;
}
