/* Candidates against a model server with lost, late and refused answers, on clocks that run apart
 * and processes that stop for a while: at no moment may two of them act. */
#include <stdio.h>

#include "base/rng.h"
#include "kube/lease.h"
#include "tap.h"
#include "wire/json.h"

#define MS   SLU_NS_PER_MS
#define S    SLU_NS_PER_S
#define LIFE 5

struct record {
	bool there;
	uint64_t rv;
	char holder[32];
	int32_t duration, transitions;
	int64_t acquire_us, renew_us;
};

struct candidate {
	struct slu_elector *e;
	char id[32];
	int64_t skew_ns;  /* its monotonic clock starts elsewhere */
	int64_t stuck_ns; /* the process does nothing until then */
	int64_t due_ns;   /* of the answer under way; 0: none */
	bool carried;     /* the server has done it */
	enum slu_elector_ask ask;
	struct slu_buf body;
	enum slu_kube_outcome outcome;
	struct record answer;
	uint32_t led, lost;
	int32_t term;
};

static struct record server;
static struct slu_strpool *pool;
static struct slu_kcodec *codec;

static void leading(void *arg, int32_t term)
{
	struct candidate *c = arg;

	c->led++;
	c->term = term;
}

static void lost(void *arg)
{
	struct candidate *c = arg;

	c->lost++;
}

static const struct slu_kobj *object_of(const struct record *r)
{
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(4096);
	const struct slu_kobj *o = NULL;

	slu_buf_printf(
		&b,
		"{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{"
		"\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%d,\"leaseTransitions\":%d,"
		"\"acquireTime\":\"2026-11-15T22:17:00.%06dZ\","
		"\"renewTime\":\"2026-11-15T22:17:00.%06dZ\"}}",
		r->rv, r->holder, r->duration, r->transitions, (int)(r->acquire_us % 1000000),
		(int)(r->renew_us % 1000000));
	if (slu_kcodec_object(codec, SLU_KIND_LEASE, SLU_ENC_JSON, b.p, b.n, &o, NULL) < 0)
		abort();
	return o;
}

static int64_t spec_int(const struct slu_json *spec, const char *key)
{
	return slu_json_i64_or(slu_json_get(spec, key), 0);
}

/* What the API server does with a write of the Lease. */
static enum slu_kube_outcome carry_out(enum slu_elector_ask ask, const struct slu_buf *body)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *spec;
	const char *rv;
	static int64_t stamp;

	if (ask == SLU_ELECTOR_GET)
		return server.there ? SLU_KUBE_OK : SLU_KUBE_NOT_FOUND;
	if (slu_json_parse(body->p, body->n, NULL, &doc, NULL) < 0)
		return SLU_KUBE_INVALID;
	if (ask == SLU_ELECTOR_CREATE && server.there)
		return SLU_KUBE_EXISTS;
	if (ask == SLU_ELECTOR_PATCH) {
		if (!server.there)
			return SLU_KUBE_NOT_FOUND;
		rv = slu_json_str(
			slu_json_dig(slu_json_root(doc), "metadata", "resourceVersion", NULL));
		if (!rv || strtoull(rv, NULL, 10) != server.rv)
			return SLU_KUBE_CONFLICT;
	}
	spec = slu_json_get(slu_json_root(doc), "spec");
	server.there = true;
	server.rv++;
	snprintf(server.holder, sizeof server.holder, "%s",
		 slu_json_str_or(slu_json_get(spec, "holderIdentity"), "?"));
	server.duration = (int32_t)spec_int(spec, "leaseDurationSeconds");
	server.transitions = (int32_t)spec_int(spec, "leaseTransitions");
	server.renew_us = ++stamp;
	return SLU_KUBE_OK;
}

static void start(struct candidate *c, int n, uint64_t seed)
{
	struct slu_lease_options o = { .ns = "ns", .name = "l", .duration_s = 15, .renew_s = 10 };
	struct slu_lease_handler h = { leading, lost, NULL, c };

	snprintf(c->id, sizeof c->id, "candidate-%d", n);
	o.id = c->id;
	c->body = SLU_BUF_INIT(4096);
	c->skew_ns = (int64_t)n * 1000 * S;
	if (slu_elector_new(&o, &h, seed * 7 + (uint64_t)n, &c->e, NULL) < 0)
		abort();
}

/* One millisecond-grained moment of one candidate. */
static void moment(struct candidate *c, int64_t t, struct slu_rng *rng, uint32_t trouble)
{
	int64_t now = t + c->skew_ns, wake;

	if (t < c->stuck_ns)
		return;
	if (c->due_ns && t >= c->due_ns) {
		const struct slu_kobj *o = NULL;

		c->due_ns = 0;
		if (c->outcome == SLU_KUBE_OK)
			o = object_of(&c->answer);
		slu_elector_answer(c->e, now, c->outcome, slu_klease(o));
		slu_kobj_unref(o);
	}
	slu_buf_reset(&c->body);
	c->ask = slu_elector_step(c->e, now, t / 1000, &c->body, &wake);
	if (c->ask == SLU_ELECTOR_WAIT)
		return;
	c->due_ns = t + 1 * MS + (int64_t)slu_rng_below(rng, 20) * MS;
	c->outcome = SLU_KUBE_RETRYABLE;
	if (slu_rng_below(rng, 100) < trouble) {
		switch (slu_rng_below(rng, 3)) {
		case 0:
			c->due_ns = t + 5 * S; /* lost on the way there */
			return;
		case 1:
			carry_out(c->ask, &c->body); /* done, the answer lost */
			c->due_ns = t + 5 * S;
			return;
		default:
			c->due_ns = t + (int64_t)slu_rng_below(rng, 4000) * MS; /* late */
		}
	}
	c->outcome = carry_out(c->ask, &c->body);
	c->answer = server;
}

static void run(uint64_t seed, uint32_t trouble)
{
	struct candidate c[3] = { 0 };
	struct slu_rng rng = { .state = seed };
	uint32_t two = 0, changes = 0, backwards = 0;
	int64_t led_ns = 0, t;
	int32_t term = -1;

	server = (struct record){ .rv = 10 };
	for (int i = 0; i < 3; i++)
		start(&c[i], i, seed);
	for (t = 0; t < 1800 * S; t += 50 * MS) {
		uint32_t held = 0;

		for (int i = 0; i < 3; i++) {
			/* now and then a replica stops for up to half a minute, or starts again */
			if (slu_rng_below(&rng, 6000) == 0)
				c[i].stuck_ns = t + (int64_t)slu_rng_below(&rng, 30) * S;
			if (slu_rng_below(&rng, 20000) == 0) {
				slu_elector_free(c[i].e);
				slu_buf_done(&c[i].body);
				c[i] = (struct candidate){ 0 };
				start(&c[i], i, seed + (uint64_t)t);
			}
			moment(&c[i], t, &rng, trouble);
		}
		for (int i = 0; i < 3; i++) {
			/* a stopped process acts on nothing, but would ask first when it wakes */
			if (slu_elector_held(c[i].e, t + c[i].skew_ns)) {
				held++;
				if (c[i].term < term)
					backwards++;
				if (c[i].term > term)
					changes++;
				term = SLU_MAX(term, c[i].term);
			}
		}
		two += held > 1;
		led_ns += held ? 50 * MS : 0;
	}
	ok(two == 0 && backwards == 0 && changes > 0 && led_ns > t / 2,
	   "seed %" PRIu64
	   ", %u%% trouble: %u moments with two leaders, %u terms, led %d%% of the time",
	   seed, trouble, two, changes, (int)(led_ns * 100 / t));
	for (int i = 0; i < 3; i++) {
		slu_elector_free(c[i].e);
		slu_buf_done(&c[i].body);
	}
}

static void check_takeover(void)
{
	struct candidate a = { 0 }, b = { 0 };
	struct slu_rng rng = { .state = 3 };
	struct slu_buf body = SLU_BUF_INIT(4096);
	int64_t t = 0, died;

	server = (struct record){ .rv = 10 };
	start(&a, 1, 1);
	start(&b, 2, 2);
	for (; t < 30 * S; t += 50 * MS) {
		moment(&a, t, &rng, 0);
		moment(&b, t, &rng, 0);
	}
	ok(a.led == 1 && b.led == 0 && slu_elector_held(a.e, t + a.skew_ns) &&
		   strcmp(slu_elector_holder(b.e), "candidate-1") == 0,
	   "the first one leads, the second knows it");
	for (died = t; !slu_elector_held(b.e, t + b.skew_ns) && t < died + 60 * S; t += 50 * MS)
		moment(&b, t, &rng, 0);
	ok(t - died > 10 * S && t - died < 20 * S && b.term == 1,
	   "the leader died: taken over after %d ms, term %d", (int)((t - died) / MS), b.term);
	ok(!slu_elector_held(a.e, t + a.skew_ns), "the old leader may not act any more");
	/* given up, the lease is free at once */
	ok(slu_elector_release(b.e, t / 1000, &body) &&
		   carry_out(SLU_ELECTOR_PATCH, &body) == SLU_KUBE_OK && b.lost == 1 &&
		   !slu_elector_held(b.e, t + b.skew_ns) && server.holder[0] == '\0',
	   "the lease is given up");
	for (died = t; !slu_elector_held(a.e, t + a.skew_ns) && t < died + 60 * S; t += 50 * MS)
		moment(&a, t, &rng, 0);
	ok(t - died < 4 * S && a.term == 2,
	   "a lease that was given up is taken within %d ms, term %d", (int)((t - died) / MS),
	   a.term);
	slu_elector_free(a.e);
	slu_elector_free(b.e);
	slu_buf_done(&a.body);
	slu_buf_done(&b.body);
	slu_buf_done(&body);
}

/* A user deletes the Lease. */
static void check_deleted(void)
{
	struct candidate a = { 0 }, b = { 0 };
	struct slu_rng rng = { .state = 4 };
	uint32_t two = 0, asked = 0;
	int64_t t = 0, died;

	server = (struct record){ .rv = 10 };
	start(&a, 1, 1);
	start(&b, 2, 2);
	for (; t < 120 * S; t += 50 * MS) {
		moment(&a, t, &rng, 0);
		moment(&b, t, &rng, 0);
		if (t % (10 * S) == 0)
			server.there = false;
		two += slu_elector_held(a.e, t + a.skew_ns) && slu_elector_held(b.e, t + b.skew_ns);
	}
	ok(a.led == 1 && a.lost == 0 && b.led == 0 && two == 0 && server.there,
	   "the Lease is deleted again and again: its holder makes it anew and leads on");
	server.there = false;
	for (died = t; !slu_elector_held(b.e, t + b.skew_ns) && t < died + 60 * S; t += 50 * MS) {
		moment(&b, t, &rng, 0);
		two += slu_elector_held(a.e, t + a.skew_ns) && slu_elector_held(b.e, t + b.skew_ns);
		asked += b.ask != SLU_ELECTOR_WAIT;
	}
	ok(t - died > 9 * S && t - died < 20 * S && two == 0 && b.term == a.term + 1 && asked < 100,
	   "deleted as its holder dies: it has run out before another makes one (%d ms, term %d)",
	   (int)((t - died) / MS), b.term);
	slu_elector_free(a.e);
	slu_elector_free(b.e);
	slu_buf_done(&a.body);
	slu_buf_done(&b.body);
}

static void check_options(void)
{
	struct slu_lease_options o = {
		.ns = "n", .name = "l", .id = "me", .duration_s = 5, .renew_s = 5
	};
	struct slu_elector *e = NULL;
	struct slu_error err = { 0 };

	ok(slu_elector_new(&o, NULL, 1, &e, &err) == -EINVAL && strstr(err.text, "duration (5 s)"),
	   "a lease no longer than its renewal is refused: %s", err.text);
	o.renew_s = 2;
	ok(slu_elector_new(&o, NULL, 1, &e, &err) == -EINVAL, "retry must be below renew");
	o.retry_ns = 500 * MS;
	ok(slu_elector_new(&o, NULL, 1, &e, &err) == 0, "a retry below renew is accepted");
	slu_elector_free(e);
}

int main(void)
{
	pool = slu_strpool_new();
	codec = slu_kcodec_new(pool);
	check_options();
	check_takeover();
	check_deleted();
	for (uint64_t seed = 1; seed <= LIFE; seed++)
		run(seed, 0);
	for (uint64_t seed = 1; seed <= LIFE; seed++)
		run(seed, 25);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return tap_done();
}
