#include "kube/events.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kube/write.h"

#define QPS      50.0
#define BURST    200.0
#define FLUSH_NS (30 * SLU_NS_PER_S)

struct slu_kevents {
	struct slu_kube_client *client;
	struct slu_kcorrelator *correlator;
	char *controller, *instance;
	double qps, burst, tokens;
	int64_t filled_ns;
	int64_t (*now_us)(void);
	struct slu_timer timer;
	struct slu_kevents_stats stats;
	/* Shared with the answers under way, which may come after the recorder is gone. */
	struct tally {
		uint32_t refs;
		struct slu_kevents *e;
	} *tally;
};

static int64_t wall_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void unref(struct tally *t)
{
	if (--t->refs == 0)
		slu_free(t);
}

static void answered(void *arg, const struct slu_kube_reply *r)
{
	struct tally *t = arg;

	if (t->e && r->outcome != SLU_KUBE_OK)
		t->e->stats.failed++;
	unref(t);
}

/* Whether the rate allows one more now; send_* and create take it. */
static bool may_send(struct slu_kevents *e)
{
	int64_t now = slu_clock_ns();

	e->tokens = SLU_MIN(e->burst, e->tokens + (double)(now - e->filled_ns) * 1e-9 * e->qps);
	e->filled_ns = now;
	return e->tokens >= 1;
}

static int create(struct slu_kevents *e, const struct slu_knote *n, const struct slu_kdecision *d)
{
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(64u << 10);
	const char *controller = n->controller ? n->controller : e->controller;
	struct slu_ktarget t = { "events.k8s.io", "v1", "events", d->ns, NULL, NULL };
	char instance[256];
	struct slu_kenc_event ev = {
		.name = d->name,
		.regarding = n->regarding,
		.type = n->type,
		.reason = n->reason,
		.action = n->action,
		.note = d->note,
		.controller = controller,
		.instance = instance,
		.time_us = d->last_us,
		.count = d->count,
		.last_us = d->last_us,
	};
	int rc;

	/* the API refuses more than 128 characters */
	snprintf(instance, sizeof instance, "%.100s-%s", controller, e->instance);
	instance[128] = '\0';
	rc = slu_kenc_event(&b, &ev);
	if (rc == 0)
		rc = slu_kube_create(e->client, &t, b.p, b.n,
				     (struct slu_kdone){ answered, e->tally });
	return rc;
}

static int patch(struct slu_kevents *e, const struct slu_kdecision *d)
{
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(4096);
	struct slu_ktarget t = { "events.k8s.io", "v1", "events", d->ns, d->name, NULL };
	int rc = slu_kenc_event_series(&b, d->count, d->last_us);

	if (rc == 0)
		rc = slu_kube_patch(e->client, &t, SLU_KPATCH_MERGE, b.p, b.n, NULL,
				    (struct slu_kdone){ answered, e->tally });
	return rc;
}

static void send_patch(struct slu_kevents *e, const struct slu_kdecision *d)
{
	e->tokens -= 1;
	e->tally->refs++;
	if (patch(e, d) < 0) {
		e->tally->refs--;
		e->stats.dropped++;
	} else {
		e->stats.patched++;
	}
}

static void flush(struct slu_kevents *e, bool all)
{
	struct slu_kdecision d;

	while (may_send(e) && slu_kcorrelator_flush(e->correlator, e->now_us(), all, &d) > 0)
		send_patch(e, &d);
}

static void on_timer(void *arg)
{
	struct slu_kevents *e = arg;

	flush(e, false);
	slu_timer_start(&e->timer, slu_kube_client_loop(e->client), FLUSH_NS, on_timer, e);
}

int slu_kevents_new(struct slu_kube_client *c, const struct slu_kevents_options *o,
		    struct slu_kevents **out)
{
	slu_cleanup(slu_kevents_freep) struct slu_kevents *e = slu_calloc(1, sizeof *e);
	char host[128] = "unknown";

	if (!e)
		return -ENOMEM;
	gethostname(host, sizeof host - 1);
	e->client = c;
	e->tally = slu_calloc(1, sizeof *e->tally);
	if (!e->tally)
		return -ENOMEM;
	*e->tally = (struct tally){ 1, e };
	e->qps = o && o->qps > 0 ? o->qps : QPS;
	e->burst = o && o->burst > 0 ? o->burst : BURST;
	e->tokens = e->burst;
	e->filled_ns = slu_clock_ns();
	e->now_us = o && o->now_us ? o->now_us : wall_us;
	e->controller = slu_strdup(o && o->controller ? o->controller : "sluice");
	e->instance = slu_strdup(o && o->instance ? o->instance : host);
	e->correlator = slu_kcorrelator_new(o ? &o->correlate : NULL);
	if (!e->controller || !e->instance || !e->correlator)
		return -ENOMEM;
	slu_timer_start(&e->timer, slu_kube_client_loop(c), FLUSH_NS, on_timer, e);
	*out = slu_take(e);
	return 0;
}

void slu_kevents_free(struct slu_kevents *e)
{
	if (!e)
		return;
	slu_timer_stop(&e->timer);
	if (e->tally) {
		e->tally->e = NULL;
		unref(e->tally);
	}
	slu_kcorrelator_free(e->correlator);
	slu_free(e->controller);
	slu_free(e->instance);
	slu_free(e);
}

void slu_kevents_say(struct slu_kevents *e, const struct slu_knote *n)
{
	struct slu_kdecision d;

	e->stats.said++;
	/* Before anything is remembered: what is remembered as written must have been sent. */
	if (!may_send(e)) {
		e->stats.dropped++;
		return;
	}
	if (slu_kcorrelator_see(e->correlator, n, e->now_us(), &d) < 0 ||
	    d.verdict == SLU_KNOTE_DROP) {
		e->stats.dropped++;
		return;
	}
	if (d.verdict == SLU_KNOTE_COUNT) {
		e->stats.counted++;
		return;
	}
	if (d.verdict == SLU_KNOTE_SERIES) {
		send_patch(e, &d);
		return;
	}
	e->tokens -= 1;
	e->tally->refs++;
	if (create(e, n, &d) < 0) {
		e->tally->refs--;
		e->stats.dropped++;
	} else {
		e->stats.created++;
	}
}

void slu_kevents_flush(struct slu_kevents *e)
{
	flush(e, true);
}

void slu_kevents_stats(const struct slu_kevents *e, struct slu_kevents_stats *out)
{
	*out = e->stats;
}
