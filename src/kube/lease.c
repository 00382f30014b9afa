#include "kube/lease.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "kube/write.h"

#define TIMEOUT_NS (5 * SLU_NS_PER_S)

struct slu_lease {
	struct slu_kube_client *client;
	struct slu_kcodec *codec;
	struct slu_elector *elector;
	_Atomic int64_t until_ns; /* its slu_elector_until(), for other threads */
	struct slu_lease_handler h;
	char *ns, *name;
	struct slu_kube_call *call;
	struct slu_timer timer;
	bool stopping, giving_up, releasing; /* asked to release; the request is on its way */
	slu_call_fn *released;
	void *released_arg;
};

static void step_lease(void *arg);
static void release_lease(struct slu_lease *l);

static void on_lease_won(void *arg, int32_t term)
{
	struct slu_lease *l = arg;

	atomic_store(&l->until_ns, slu_elector_until(l->elector));
	if (l->h.leading)
		l->h.leading(l->h.arg, term);
}

static void on_lease_lost(void *arg)
{
	struct slu_lease *l = arg;

	atomic_store(&l->until_ns, 0);
	if (l->h.lost)
		l->h.lost(l->h.arg);
}

static void on_lease_seen(void *arg, const char *holder)
{
	struct slu_lease *l = arg;

	if (l->h.observed)
		l->h.observed(l->h.arg, holder);
}

static void lease_answered(void *arg, const struct slu_kube_reply *r)
{
	struct slu_lease *l = arg;
	const struct slu_kobj *o = NULL;
	enum slu_kube_outcome outcome = r->outcome;

	l->call = NULL;
	if (l->stopping || (outcome == SLU_KUBE_CANCELLED && !l->releasing))
		return;
	if (outcome == SLU_KUBE_OK &&
	    slu_kcodec_object(l->codec, SLU_KIND_LEASE, slu_kencoding_of(r->content_type), r->body,
			      r->body_len, &o, NULL) < 0)
		outcome = SLU_KUBE_FAILED;
	if (l->releasing) {
		slu_kobj_unref(o);
		if (l->released)
			l->released(l->released_arg);
		return;
	}
	slu_elector_answer(l->elector, slu_clock_ns(), outcome, slu_klease(o));
	atomic_store(&l->until_ns, slu_elector_until(l->elector));
	slu_kobj_unref(o);
	if (l->giving_up)
		release_lease(l);
	else
		step_lease(l);
}

static int ask_lease(struct slu_lease *l, enum slu_elector_ask what, const struct slu_buf *body)
{
	slu_cleanup(slu_buf_done) struct slu_buf path = SLU_BUF_INIT(2048);
	const struct slu_kkind_info *k = slu_kkind_info(SLU_KIND_LEASE);
	struct slu_kube_request q = {
		.accept = SLU_KUBE_PROTOBUF,
		.once = true, /* the election has its own rounds */
		.priority = 7,
		.timeout_ns = TIMEOUT_NS,
		.lane = SLU_KUBE_LANE_WRITE,
		.body = body->p,
		.body_len = body->n,
		.done = lease_answered,
		.arg = l,
	};
	int rc = slu_kube_path(&path, k->group, k->version, l->ns, k->resource,
			       what == SLU_ELECTOR_CREATE ? NULL : l->name, NULL);

	if (rc < 0)
		return rc;
	q.path = slu_buf_str(&path);
	q.method = what == SLU_ELECTOR_GET      ? SLU_HTTP_GET
		   : what == SLU_ELECTOR_CREATE ? SLU_HTTP_POST
						: SLU_HTTP_PATCH;
	if (what == SLU_ELECTOR_PATCH)
		q.content_type = SLU_KUBE_MERGE_PATCH;
	return slu_kube_send(l->client, &q, &l->call);
}

static void step_lease(void *arg)
{
	struct slu_lease *l = arg;
	slu_cleanup(slu_buf_done) struct slu_buf body = SLU_BUF_INIT(4096);
	int64_t now = slu_clock_ns(), wake;
	enum slu_elector_ask what = slu_elector_step(l->elector, now, slu_clock_wall_us(), &body,
						     &wake);

	if (what != SLU_ELECTOR_WAIT && ask_lease(l, what, &body) < 0) {
		l->call = NULL;
		slu_elector_answer(l->elector, now, SLU_KUBE_RETRYABLE, NULL);
		wake = now + SLU_NS_PER_S;
	}
	if (wake != INT64_MAX)
		slu_timer_start(&l->timer, slu_kube_client_loop(l->client), SLU_MAX(wake - now, 0),
				step_lease, l);
	else
		slu_timer_stop(&l->timer);
}

int slu_lease_new(struct slu_kube_client *c, struct slu_kcodec *codec,
		  const struct slu_lease_options *o, const struct slu_lease_handler *h,
		  struct slu_lease **out, struct slu_error *err)
{
	slu_cleanup(slu_lease_freep) struct slu_lease *l = slu_calloc(1, sizeof *l);
	struct slu_lease_handler own = { on_lease_won, on_lease_lost, on_lease_seen, l };
	int rc;

	if (!l)
		return slu_fail(err, -ENOMEM, "no memory for an election");
	rc = slu_elector_new(o, &own, (uint64_t)slu_clock_ns(), &l->elector, err);
	if (rc < 0)
		return rc;
	if (h)
		l->h = *h;
	l->client = c;
	l->codec = codec;
	l->ns = slu_strdup(o->ns);
	l->name = slu_strdup(o->name);
	if (!l->ns || !l->name)
		return slu_fail(err, -ENOMEM, "no memory for an election");
	slu_timer_start(&l->timer, slu_kube_client_loop(c), 0, step_lease, l);
	*out = slu_take(l);
	return 0;
}

void slu_lease_free(struct slu_lease *l)
{
	if (!l)
		return;
	l->stopping = true;
	slu_timer_stop(&l->timer);
	if (l->call)
		slu_kube_cancel(l->call);
	slu_elector_free(l->elector);
	slu_free(l->ns);
	slu_free(l->name);
	slu_free(l);
}

static void release_lease(struct slu_lease *l)
{
	slu_cleanup(slu_buf_done) struct slu_buf body = SLU_BUF_INIT(4096);
	bool send = slu_elector_release(l->elector, slu_clock_wall_us(), &body);

	l->releasing = true;
	if (send && ask_lease(l, SLU_ELECTOR_PATCH, &body) == 0)
		return;
	if (l->released)
		l->released(l->released_arg);
}

void slu_lease_release(struct slu_lease *l, slu_call_fn *done, void *arg)
{
	slu_timer_stop(&l->timer);
	l->giving_up = true;
	l->released = done;
	l->released_arg = arg;
	if (!l->call) /* otherwise wait for the answer, which brings the version to write to */
		release_lease(l);
}

bool slu_lease_held(const struct slu_lease *l)
{
	return slu_clock_ns() < atomic_load(&l->until_ns);
}

const char *slu_lease_holder(const struct slu_lease *l)
{
	return slu_elector_holder(l->elector);
}
