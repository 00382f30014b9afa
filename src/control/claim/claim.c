#include "control/claim/claim.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "control/ask/ask.h"
#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"
#include "kube/codec.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define ROW_KIND   "match"
#define ROW_MAX    ((size_t)4 << 20)
#define CLAIMS_MAX 100000u
#define SWEEP_US   1000000
#define LATER_US   10000 /* rows without an answer behind them go with others, or after this */
#define SWEEP_MAX  1000u /* of those that run at once */

/* ---- all of them ---- */

static struct claim *nth(const struct slu_core *c, uint32_t i)
{
	return (struct claim *)(uintptr_t)c->claims->all.e[i].val;
}

static struct claim *claim_of(const struct slu_core *c, uint64_t number)
{
	const uint64_t *at = slu_map_get(&c->claims->all, number);

	return at ? (struct claim *)(uintptr_t)*at : NULL;
}

static int claim_add(struct slu_core *c, struct claim *x)
{
	struct claims *all = c->claims;

	if (slu_vec_reserve(&all->open, all->open.n + 1) < 0 ||
	    slu_map_put(&all->all, x->number, (uintptr_t)x) < 0)
		return -ENOMEM;
	all->open.p[all->open.n++] = x->number;
	return 0;
}

/* ---- one of them ---- */

static void claim_free(struct claim *x)
{
	if (!x)
		return;
	slu_kobj_unref(x->obj);
	slu_free(x->name);
	slu_free(x->jobspec);
	slu_free(x->places);
	slu_free(x);
}

/* A name that is legal for an object, made unique by the claim's number. */
static char *name_of(const char *said, uint64_t number)
{
	char text[64], all[100];
	size_t n = 0;

	for (; *said && n < sizeof text - 1; said++)
		text[n++] = isalnum((unsigned char)*said) ? (char)tolower((unsigned char)*said)
							  : '-';
	text[n] = '\0';
	snprintf(all, sizeof all, "%s-%" PRIu64, n ? text : "match", number);
	return slu_strdup(all);
}

static void put_time(struct slu_jsonw *w, const char *key, int64_t s)
{
	time_t t = (time_t)s;
	struct tm tm;
	char at[32];

	gmtime_r(&t, &tm);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	slu_jsonw_kstr(w, key, at);
}

static void put_object(struct slu_core *c, const struct claim *x, struct slu_jsonw *w)
{
	char uid[40];

	snprintf(uid, sizeof uid, "match-%" PRIu64, x->number);
	slu_jsonw_obj(w);
	slu_jsonw_key(w, "metadata");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "name", x->name);
	slu_jsonw_kstr(w, "namespace", SLU_CLAIM_SPACE);
	slu_jsonw_kstr(w, "uid", uid);
	put_time(w, "creationTimestamp", c->now_s);
	slu_jsonw_end_obj(w);
	slu_jsonw_key(w, "spec");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "jobspec", x->jobspec);
	slu_jsonw_end_obj(w);
	if (x->places) {
		slu_jsonw_key(w, "status");
		slu_jsonw_obj(w);
		slu_jsonw_kstr(w, "state", "Running");
		slu_jsonw_kstr(w, "places", x->places);
		put_time(w, "startTime", x->start_s);
		slu_jsonw_end_obj(w);
	}
	slu_jsonw_end_obj(w);
}

/* Put the claim's FluxJob into the table, so that its slots enter the queue. */
static int show_claim(struct slu_core *c, struct claim *x, struct slu_error *err)
{
	struct claims *all = c->claims;
	struct slu_buf b = SLU_BUF_INIT(ROW_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const struct fluxjob *f;
	int rc;

	if (!all->codec)
		all->codec = slu_kcodec_new(all->pool);
	if (!all->codec)
		return slu_fail(err, -ENOMEM, "out of memory");
	put_object(c, x, &w);
	rc = b.error ? b.error
		     : slu_kcodec_object(all->codec, SLU_KIND_FLUXJOB, SLU_ENC_JSON, b.p, b.n,
					 &x->obj, err);
	slu_buf_done(&b);
	if (rc < 0)
		return rc;
	x->shown = true;
	core_fluxjob_changed(c, x->obj, false);
	f = core_fluxjob_of(c, SLU_CLAIM_SPACE, x->name);
	if (!f)
		return slu_fail(err, -ENOMEM, "out of memory");
	if (f->life == FLUXJOB_REFUSED)
		return slu_fail(err, -EINVAL, "%s", f->message ? f->message : "");
	return 0;
}

/* ---- the store ---- */

static int store_claim(struct slu_core *c, struct claim *x)
{
	struct slu_buf b = SLU_BUF_INIT(ROW_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct slu_store_span s = { .id = x->number,
				    .kind = ROW_KIND,
				    .name = x->name,
				    .from_s = x->start_s,
				    .to_s = SLU_TIME_EVER };
	int rc;

	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "jobspec", x->jobspec);
	if (x->places)
		slu_jsonw_kstr(&w, "places", x->places);
	slu_jsonw_end_obj(&w);
	s.spec = slu_buf_str(&b);
	rc = b.error ? b.error : slu_batch_put_span(slu_intents_batch(c->door), &s);
	if (rc < 0)
		slu_log(SLU_WARN, "match not saved in the store", SLU_STR("name", x->name));
	x->kept |= !rc;
	c->claims->changed = true;
	slu_buf_done(&b);
	return rc;
}

void core_claims_keep(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->claims->all.n; i++)
		if (!nth(c, i)->ask || nth(c, i)->kept)
			store_claim(c, nth(c, i));
}

int core_claim_recall(struct slu_core *c, const struct slu_store_span *s)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *root;
	const char *jobspec, *places;
	struct claim *x;

	if (strcmp(s->kind, ROW_KIND) != 0)
		return 0;
	c->next_job = SLU_MAX(c->next_job, s->id);
	if (slu_json_parse(s->spec, strlen(s->spec), NULL, &doc, NULL) < 0)
		return 0; /* not a claim, although its kind says so */
	root = slu_json_root(doc);
	jobspec = slu_json_str(slu_json_get(root, "jobspec"));
	places = slu_json_str(slu_json_get(root, "places"));
	if (!jobspec)
		return 0;
	x = slu_calloc(1, sizeof *x);
	if (!x)
		return -ENOMEM;
	x->number = s->id;
	x->start_s = s->from_s;
	x->kept = true;
	x->reserve = x->promised = true; /* a claim that waits has a promise */
	x->name = slu_strdup(s->name);
	x->jobspec = slu_strdup(jobspec);
	x->places = places ? slu_strdup(places) : NULL;
	if (!x->name || !x->jobspec || (places && !x->places) || claim_add(c, x) < 0) {
		claim_free(x);
		return -ENOMEM;
	}
	c->claims->recalled++;
	return 0;
}

/* ---- answers ---- */

static bool is_over(const struct slu_rec_ask *a)
{
	return a->over && a->over(a->arg);
}

static void answer_client(struct claim *x, int rc, const char *text)
{
	struct slu_rec_ask *a = slu_take(x->ask);

	a->answer(a->arg, rc, text);
	a->answer = NULL;
	a->base.free(&a->base);
}

/* The part of one node that a client gets. */
struct share {
	slu_node node;
	uint32_t slots;
	int64_t cpu, memory, gpu;
};

typedef SLU_VEC(struct share) shares;

static int add_share(struct slu_core *c, const struct run *r, slu_node node, uint32_t role,
		     uint32_t slots, shares *all)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	struct share *s = NULL;

	/* Slots of one node mostly follow one another. */
	for (uint32_t i = all->n; i-- > 0 && !s;)
		if (all->p[i].node == node)
			s = &all->p[i];
	if (!s) {
		if (slu_vec_push(all, (struct share){ .node = node }) < 0)
			return -ENOMEM;
		s = &all->p[all->n - 1];
	}
	s->slots += slots;
	for (uint32_t k = 0; role < r->role.n && k < r->role.p[role].shape->n_need; k++) {
		const struct slu_amount *need = &r->role.p[role].shape->need[k];
		const char *resource = slu_machine_resource_name(m, need->resource);

		if (!strcmp(resource, "cpu"))
			s->cpu = slu_plus_sat(s->cpu, need->n, slots);
		else if (!strcmp(resource, "memory"))
			s->memory = slu_plus_sat(s->memory, need->n, slots);
		else if (!strcmp(resource, "nvidia.com/gpu"))
			s->gpu = slu_plus_sat(s->gpu, need->n, slots);
	}
	return 0;
}

static int find_shares(struct slu_core *c, const struct run *r, bool runs, shares *all)
{
	struct slu_gang_place place = { 0 };
	struct slu_gang_info info;
	int rc = 0;

	if (runs) {
		for (uint32_t i = 0; !rc && i < r->slot.n; i++)
			rc = add_share(c, r, r->slot.p[i].node, r->slot.p[i].role, 1, all);
		return rc;
	}
	rc = slu_gang_info(slu_queue_machine(c->q), r->id, &info, &place);
	for (uint32_t i = 0; !rc && i < place.n; i++)
		rc = add_share(c, r, place.part[i].node, place.part[i].role, place.part[i].slots,
			       all);
	slu_gang_place_done(&place);
	return rc;
}

/* {"job": 7, "reserved": false, "at": 0, "nodes": [{"name": "a", "cpu": 2000, ...}]}
 * `durable`: its row is in the store already; otherwise the answer waits for that. */
static void answer_match(struct slu_core *c, struct claim *x, const struct run *r, bool runs,
			 bool durable)
{
	struct slu_buf b = SLU_BUF_INIT(ROW_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const struct slu_machine *m = slu_queue_machine(c->q);
	shares all = { 0 };
	int rc = find_shares(c, r, runs, &all);

	slu_jsonw_obj(&w);
	slu_jsonw_ki64(&w, "job", (int64_t)x->number);
	slu_jsonw_key(&w, "reserved");
	slu_jsonw_bool(&w, !runs);
	slu_jsonw_ki64(&w, "at", runs ? 0 : x->start_s);
	slu_jsonw_key(&w, "nodes");
	slu_jsonw_arr(&w);
	slu_vec_each (&all, struct share, s) {
		const char *name = slu_machine_node_name(m, s->node);

		slu_jsonw_obj(&w);
		slu_jsonw_kstr(&w, "name", name ? name : "");
		slu_jsonw_ki64(&w, "slots", s->slots);
		slu_jsonw_ki64(&w, "cpu", s->cpu);
		slu_jsonw_ki64(&w, "memory", s->memory);
		slu_jsonw_ki64(&w, "gpu", s->gpu);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_arr(&w);
	slu_jsonw_end_obj(&w);
	if (!rc)
		rc = b.error;
	if (!rc && !durable && core_answer_later(c, x->ask, slu_buf_str(&b))) {
		x->ask = NULL;
		c->claims->waiting = true;
	} else {
		answer_client(x, rc, rc ? "out of memory" : slu_buf_str(&b));
	}
	slu_vec_done(&all);
	slu_buf_done(&b);
}

/* ---- its end ---- */

static void drop_claim(struct slu_core *c, struct claim *x)
{
	if (x->shown)
		core_fluxjob_changed(c, x->obj, true);
	if (x->kept && c->door && slu_batch_del_span(slu_intents_batch(c->door), x->number) < 0)
		slu_log(SLU_WARN, "match not removed from the store", SLU_STR("name", x->name));
	c->claims->changed = true;
	slu_map_del(&c->claims->all, x->number);
	claim_free(x);
}

/* ---- its life ---- */

/* Give a claim that may wait a promise at once, wherever it is in line. */
static void promise_claim(struct slu_core *c, struct claim *x, const struct run *r)
{
	struct slu_event ev = { .kind = SLU_EV_PROMISE, .job = r->id, .start_s = c->now_s + 1 };

	x->promised = true;
	core_apply(c, &ev);
	c->claims->next_us = c->now_us;
}

/* The node of each slot, as a FluxJob's status has them.  NULL: no memory. */
static char *places_of(const struct slu_core *c, const struct run *r)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	struct slu_buf at = SLU_BUF_INIT(ROW_MAX);

	for (uint32_t i = 0; i < r->slot.n; i++) {
		const char *node = slu_machine_node_name(m, r->slot.p[i].node);

		slu_buf_printf(&at, "%s%s", i ? "," : "", node ? node : "-");
	}
	return slu_buf_take(&at);
}

/* Note in the row where the claim runs.  1: the row changed; 0: it says so already; negative: no
 * memory, to be tried again. */
static int keep_places(struct slu_core *c, struct claim *x, const struct run *r)
{
	char *places = places_of(c, r);
	int rc;

	if (!places)
		return -ENOMEM;
	if (x->kept && x->places && !strcmp(x->places, places) && x->start_s == r->start_s) {
		slu_free(places);
		return 0;
	}
	slu_free(x->places);
	x->places = places;
	x->start_s = r->start_s;
	rc = store_claim(c, x);
	if (!rc)
		return 1;
	slu_free(x->places);
	x->places = NULL;
	return rc;
}

void core_claims_placed(struct slu_core *c)
{
	slu_vec_each (&c->runs->open, struct run *, at) {
		const struct run *r = *at;
		struct claim *x;

		if (r->state != RUN_INTENT || r->ticket != UINT64_MAX || !r->gang ||
		    strcmp(r->g->ns, SLU_CLAIM_SPACE) != 0)
			continue;
		x = claim_of(c, core_claim_number(r->g->id.key));
		if (x)
			(void)(keep_places(c, x, r) < 0); /* when it runs, then */
	}
}

/* The claim runs; it awaits its answer, or was not seen to run before. */
static void claim_started(struct slu_core *c, struct claim *x, const struct run *r)
{
	int rc = keep_places(c, x, r);

	x->runs = rc >= 0;
	c->claims->changed = true;
	/* A row that did not change went to the store with the intent, which was waited for. */
	if (x->runs && x->ask)
		answer_match(c, x, r, true, rc == 0);
}

/* The claim was placed and taken back before it ran: its place was lost while the store was slow. */
static void unplaced(struct slu_core *c, struct claim *x)
{
	slu_free(x->places);
	x->places = NULL;
	x->runs = false;
	if (!x->ask)
		store_claim(c, x);
}

/* The claim waits.  true: it was answered with "no room" and goes. */
static bool claim_waits(struct slu_core *c, struct claim *x, const struct run *r)
{
	if (core_awaits_ending(c))
		return false; /* no decisions while a gang ends; CORE_AT_ENDING wakes */
	if (r->never || r->refused || !x->reserve) {
		answer_client(x, -EBUSY, r->reason ? r->reason : "there is no room now");
		return true;
	}
	if (r->planned_s == SLU_TIME_NONE && !x->promised) {
		promise_claim(c, x, r);
		return false;
	}
	if (r->planned_s == SLU_TIME_NONE) {
		answer_client(x, -EBUSY, "no time was found at which there is room");
		return true;
	}
	x->start_s = r->planned_s;
	store_claim(c, x);
	answer_match(c, x, r, false, false);
	return false;
}

/* true: it is over. */
static bool look_at_claim(struct slu_core *c, struct claim *x)
{
	const struct fluxjob *f = core_fluxjob_of(c, SLU_CLAIM_SPACE, x->name);
	const struct group *g;
	const struct run *r;
	char key[64];

	if (!f || f->life == FLUXJOB_OVER) {
		if (x->ask)
			answer_client(x, -EBUSY, "it ended before it was answered");
		return true;
	}
	if (x->ask && is_over(x->ask)) { /* without an answer the client would never cancel */
		answer_client(x, -ECANCELED, "the client no longer waits for the answer");
		return true;
	}
	snprintf(key, sizeof key, "u:match-%" PRIu64, x->number);
	g = core_group_find(c, SLU_CLAIM_SPACE, key);
	r = g ? core_gang_of(g) : NULL;
	if (g && (g->wrong || g->cancelled)) {
		if (x->ask)
			answer_client(x, g->wrong ? -EINVAL : -EBUSY,
				      g->wrong ? g->wrong : "it was cancelled");
		return true;
	}
	if (!r)
		return false;
	if (r->state == RUN_QUEUED && x->places)
		unplaced(c, x);
	if (r->state == RUN_RUNNING && (!x->runs || x->ask))
		claim_started(c, x, r);
	else if (r->state == RUN_QUEUED && x->ask)
		return claim_waits(c, x, r);
	return false;
}

void core_claims_show(struct slu_core *c)
{
	if (!c->claims->recalled)
		return;
	c->claims->recalled = 0;
	for (uint32_t i = c->claims->all.n; i-- > 0;) {
		struct claim *x = nth(c, i);
		struct slu_error err = { 0 };

		if (x->shown || show_claim(c, x, &err) == 0)
			continue;
		slu_log(SLU_ERROR, "match not restored from the store", SLU_STR("name", x->name),
			SLU_STR("err", err.text));
		drop_claim(c, x);
	}
}

int64_t core_claims_wake_us(const struct slu_core *c)
{
	return c->claims->next_us;
}

/* Look at the claims that are not answered or do not run yet. */
static void look_at_open(struct slu_core *c)
{
	struct claims *all = c->claims;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < all->open.n; i++) {
		struct claim *x = claim_of(c, all->open.p[i]);

		if (!x)
			continue;
		if (look_at_claim(c, x))
			drop_claim(c, x);
		else if (x->ask || !x->runs)
			all->open.p[kept++] = x->number;
	}
	all->open.n = kept;
}

/* Look at the claims that have ended. */
static void look_at_over(struct slu_core *c)
{
	slu_vec_each (&c->fluxjobs->claims_over, uint64_t, number) {
		struct claim *x = claim_of(c, *number);

		if (x && look_at_claim(c, x))
			drop_claim(c, x);
	}
	c->fluxjobs->claims_over.n = 0;
}

/* Check the running claims, some in each sweep: a claim may have ended without an event. */
static void sweep(struct slu_core *c)
{
	struct claims *all = c->claims;

	all->sweep_us = c->now_us;
	for (uint32_t n = SLU_MIN(all->all.n, SWEEP_MAX); n && all->all.n; n--) {
		struct claim *x;

		/* The last claim fills the gap; it was looked at already, or will be. */
		if (all->swept == 0 || all->swept > all->all.n)
			all->swept = all->all.n;
		x = nth(c, --all->swept);
		if (!x->ask && x->runs && look_at_claim(c, x))
			drop_claim(c, x);
	}
}

bool core_claims(struct slu_core *c)
{
	struct claims *all = c->claims;

	all->next_us = CORE_NEVER;
	all->waiting = all->changed = false;
	look_at_over(c);
	look_at_open(c);
	if (c->now_us - all->sweep_us >= SWEEP_US)
		sweep(c);
	if (all->changed && !all->waiting)
		all->next_us = SLU_MIN(all->next_us, c->now_us + LATER_US);
	return all->waiting;
}

/* ---- requests of clients ---- */

static void refuse_ask(struct slu_rec_ask *a, int rc, const char *text)
{
	if (a->answer)
		a->answer(a->arg, rc, text);
	a->answer = NULL;
	a->base.free(&a->base);
}

static void ask_match(struct slu_core *c, struct slu_rec_ask *a)
{
	struct claim *x = slu_calloc(1, sizeof *x);
	struct slu_error err = { 0 };
	int rc;

	if (x)
		x->number = ++c->next_job;
	if (!x || claim_add(c, x) < 0) {
		slu_free(x);
		refuse_ask(a, -ENOMEM, "out of memory");
		return;
	}
	x->reserve = a->size;
	x->name = name_of(a->name, x->number);
	x->jobspec = slu_strdup(a->text);
	x->ask = a;
	rc = x->name && x->jobspec ? show_claim(c, x, &err)
				   : slu_fail(&err, -ENOMEM, "out of memory");
	if (rc < 0) {
		answer_client(x, rc, err.text);
		drop_claim(c, x);
	}
}

static void ask_cancel(struct slu_core *c, struct slu_rec_ask *a, uint64_t number)
{
	struct claim *x = claim_of(c, number);

	if (!x || x->ask) {
		refuse_ask(a, -ENOENT, "there is no such job");
		return;
	}
	drop_claim(c, x);
	if (!core_answer_later(c, a, "cancelled"))
		refuse_ask(a, 0, "cancelled");
}

bool core_claim_asked(const struct slu_rec_ask *a)
{
	return a->what == SLU_ASK_MATCH || a->what == SLU_ASK_UNMATCH ||
	       (a->what == SLU_ASK_CANCEL && !strcmp(a->ns, SLU_CLAIM_SPACE));
}

void core_claim_ask(struct slu_core *c, struct slu_rec_ask *a)
{
	if (!c->door || !slu_core_synced(c) || !c->claims->pool) {
		char text[320];

		snprintf(text, sizeof text, "%s%s",
			 c->store_waits
				 ? "the store cannot be read; sluiced decides nothing until it can"
			 : !c->door ? "this replica is on standby; ask the leader: "
				    : "the cluster has not been listed yet; try again",
			 !c->door && !c->store_waits ? c->leader : "");
		refuse_ask(a, -EAGAIN, text);
	} else if (a->what == SLU_ASK_MATCH && c->claims->all.n >= CLAIMS_MAX) {
		refuse_ask(a, -EAGAIN, "too many matches are live already");
	} else if (a->what == SLU_ASK_MATCH && is_over(a)) {
		refuse_ask(a, -ECANCELED, "the client no longer waits for the answer");
	} else if (a->what == SLU_ASK_MATCH) {
		ask_match(c, a);
	} else {
		ask_cancel(c, a, core_claim_number(a->name));
	}
}

void core_claims_done(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->claims->all.n; i++) {
		if (nth(c, i)->ask)
			refuse_ask(nth(c, i)->ask, -EAGAIN, "the daemon is stopping");
		claim_free(nth(c, i));
	}
	slu_map_done(&c->claims->all);
	slu_vec_done(&c->claims->open);
	slu_kcodec_free(c->claims->codec);
}
