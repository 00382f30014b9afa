/* pool.c — the connections of each lane: opened when needed, replaced when they close. */
#include "kube/client_internal.h"

#include <stdio.h>

#define SECOND_AT 16 /* requests in flight before another connection is opened */

static void dispatch(void *arg);

static bool lane_has_work(const struct kube_lane *l)
{
	return l->n_queued;
}

void kube_lane_wake(struct kube_lane *l)
{
	slu_task_defer(&l->dispatch, l->c->loop, dispatch, l);
}

void kube_lane_init(struct slu_kube_client *c, enum slu_kube_lane id, uint32_t max_conns)
{
	struct kube_lane *l = &c->lane[id];

	l->c = c;
	l->id = id;
	l->max_conns = max_conns;
}

static void conn_free(struct kube_conn *k)
{
	struct kube_lane *l = k->lane;

	slu_timer_stop(&k->rotate);
	if (k->prev)
		k->prev->next = k->next;
	else
		l->conns = k->next;
	if (k->next)
		k->next->prev = k->prev;
	if (!k->draining)
		l->n_conns--;
	l->c->st.connections--;
	slu_free(k);
}

static void count_bytes(struct kube_conn *k)
{
	k->lane->c->st.bytes_in += slu_link_bytes_in(k->link);
	k->lane->c->st.bytes_out += slu_link_bytes_out(k->link);
}

static void retire(struct kube_conn *k)
{
	if (k->draining)
		return;
	k->draining = true;
	k->lane->n_conns--;
}

/* ---- callbacks of the link ---- */

static void on_room(void *arg)
{
	struct kube_conn *k = arg;

	k->up = true;
	if (lane_has_work(k->lane))
		kube_lane_wake(k->lane);
}

/* Whether no other try can succeed after this error. */
static bool hopeless(int code)
{
	return code == -EKEYREJECTED || code == -EKEYEXPIRED || code == -EACCES ||
	       code == -EPROTONOSUPPORT;
}

/* Add to the message where the setting that caused the error stands. */
static void add_place(const struct slu_kube_config *c, int code, struct slu_error *err)
{
	size_t n = strlen(err->text);
	const char *what, *from;

	if (code == -EKEYREJECTED || code == -EKEYEXPIRED) {
		what = "authority";
		from = c->ca.from ? c->ca.from : "the system's root certificates";
	} else if (code == -EACCES) {
		what = "client certificate";
		from = c->cert.from ? c->cert.from : c->exec.from;
	} else {
		what = "server";
		from = c->server_from;
	}
	if (from)
		snprintf(err->text + n, sizeof err->text - n, " [%s: %s]", what, from);
}

static void dial_again(void *arg)
{
	kube_lane_wake(arg);
}

/* No connection could be opened: count a try for every request that waits for one. */
static void lane_unreached(struct kube_lane *l, int code, const struct slu_error *err)
{
	struct slu_error why = *err;
	struct kube_list all = { 0 };
	bool no_hope = hopeless(code);

	add_place(l->c->cfg, code, &why);
	for (int i = KUBE_PRIORITIES - 1; i >= 0; i--)
		while (l->queue[i].first) {
			struct slu_kube_call *q = l->queue[i].first;

			kube_list_del(q);
			kube_list_add(&all, q);
		}
	while (no_hope && l->waiting.first) {
		struct slu_kube_call *q = l->waiting.first;

		kube_list_del(q);
		kube_list_add(&all, q);
	}
	while (all.first) {
		struct slu_kube_call *q = all.first;

		if (no_hope)
			kube_call_fail(q, SLU_KUBE_FAILED, &why);
		else
			kube_call_unreached(q, &why);
	}
}

static void on_goaway(void *arg, uint32_t code, const char *text)
{
	struct kube_conn *k = arg;
	struct kube_lane *l = k->lane;
	struct slu_error err = { 0 };

	l->c->st.goaways++;
	retire(k);
	if (!k->answered) {
		/* Pause, so as not to flood a server that refuses all connections. */
		slu_fail(&err, 0, "the server closed the connection at once: %s%s%s",
			 slu_h2_code_name(code), *text ? ": " : "", text);
		slu_timer_start(&l->again, l->c->loop, kube_backoff(l->c, ++l->fails), dial_again,
				l);
		lane_unreached(l, -ECONNREFUSED, &err);
	}
	kube_lane_wake(l); /* open a new connection now; old answers may still come over this one */
}

static void on_down(void *arg, int code, const struct slu_error *err)
{
	struct kube_conn *k = arg;
	struct kube_lane *l = k->lane;
	bool answered = k->answered, draining = k->draining;

	count_bytes(k);
	if (code == -ETIMEDOUT && k->up)
		l->c->st.ping_losses++;
	if (!k->up)
		l->c->st.connect_failures++;
	else if (code)
		l->c->st.resets++;
	conn_free(k);
	if (draining) {
		kube_lane_wake(l);
		return;
	}
	if (answered) {
		l->fails = 0;
	} else {
		l->rotate++;
		slu_timer_start(&l->again, l->c->loop, kube_backoff(l->c, ++l->fails), dial_again,
				l);
		lane_unreached(l, code, err);
	}
	kube_lane_wake(l);
}

static void on_head(void *arg, struct slu_h2_stream *s)
{
	struct kube_conn *k = arg;
	struct slu_kube_call *q = slu_h2_user(s);

	k->answered = true;
	k->lane->fails = 0;
	if (q)
		kube_call_head(q, s);
}

static void on_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	struct kube_conn *k = arg;
	struct slu_kube_call *q = slu_h2_user(s);

	if (q)
		kube_call_data(q, p, n);
	else
		slu_link_consume(k->link, s, n);
}

static void on_end(void *arg, struct slu_h2_stream *s)
{
	struct slu_kube_call *q = slu_h2_user(s);

	(void)arg;
	if (q)
		kube_call_end(q);
}

static void on_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	struct slu_kube_call *q = slu_h2_user(s);

	(void)arg;
	if (q)
		kube_call_cut(q, code, refused);
}

static const struct slu_link_ops link_ops = {
	.room = on_room,
	.goaway = on_goaway,
	.down = on_down,
	.head = on_head,
	.data = on_data,
	.end = on_end,
	.closed = on_closed,
};

/* ---- opening ---- */

static void rotate(void *arg)
{
	struct kube_conn *k = arg;

	retire(k);
	slu_link_drain(k->link);
	kube_lane_wake(k->lane);
}

static int open_conn(struct kube_lane *l, struct slu_error *err)
{
	struct slu_kube_client *c = l->c;
	struct slu_link_options o = { .addr = c->cfg->addr,
				      .connect_ns = c->o.connect_ns,
				      .ping_ns = c->o.ping_ns,
				      .max_streams = c->o.max_inflight,
				      .rotate = l->rotate };
	struct kube_conn *k;
	int rc = kube_auth_tls(c->auth, &o.tls, err);

	if (rc < 0)
		return rc;
	k = slu_calloc(1, sizeof *k);
	if (!k)
		return slu_fail(err, -ENOMEM, "no memory for a connection");
	k->lane = l;
	k->generation = kube_auth_generation(c->auth);
	rc = slu_link_open(c->loop, &o, &link_ops, k, &k->link);
	if (rc < 0) {
		slu_free(k);
		return slu_fail(err, rc, "no memory for a connection");
	}
	k->next = l->conns;
	if (k->next)
		k->next->prev = k;
	l->conns = k;
	l->n_conns++;
	c->st.connects++;
	c->st.connections++;
	if (c->o.rotate_ns) /* at random times, so that connections do not all close at once */
		slu_timer_start(&k->rotate, c->loop,
				c->o.rotate_ns / 2 +
					(int64_t)slu_rng_below(&c->rng, (uint64_t)c->o.rotate_ns),
				rotate, k);
	return 0;
}

/* The least busy connection with room. */
static struct kube_conn *best_conn(struct kube_lane *l, bool *connecting)
{
	struct kube_conn *best = NULL, *next;
	uint32_t least = UINT32_MAX;

	*connecting = false;
	for (struct kube_conn *k = l->conns; k; k = next) {
		next = k->next;
		if (k->draining)
			continue;
		if (k->generation != kube_auth_generation(l->c->auth)) {
			retire(k); /* the connection was opened with an older client certificate */
			slu_link_drain(k->link);
			continue;
		}
		if (!k->up)
			*connecting = true;
		if (slu_link_room(k->link) && slu_link_streams(k->link) < least) {
			best = k;
			least = slu_link_streams(k->link);
		}
	}
	return best;
}

static void rate_over(void *arg)
{
	struct slu_kube_client *c = arg;

	for (int i = 1; i < SLU_KUBE_LANES; i++)
		kube_lane_wake(&c->lane[i]);
}

/* Take one token of the bucket; if there is none, start the timer that wakes the lanes when
 * there is. */
static bool rate_allows(struct slu_kube_client *c)
{
	int64_t now;

	if (c->o.qps <= 0)
		return true;
	now = slu_clock_ns();
	c->tokens += c->o.qps * (double)(now - c->tokens_ns) / 1e9;
	c->tokens_ns = now;
	if (c->tokens > c->o.burst)
		c->tokens = c->o.burst;
	if (c->tokens >= 1) {
		c->tokens -= 1;
		return true;
	}
	c->st.rate_waits++;
	if (!slu_timer_armed(&c->rate))
		slu_timer_start(&c->rate, c->loop, (int64_t)((1 - c->tokens) / c->o.qps * 1e9),
				rate_over, c);
	return false;
}

static void fail_all(struct kube_lane *l, const struct slu_error *err)
{
	for (int i = KUBE_PRIORITIES - 1; i >= 0; i--)
		while (l->queue[i].first)
			kube_call_fail(l->queue[i].first, SLU_KUBE_FAILED, err);
}

static struct slu_kube_call *first_queued(struct kube_lane *l)
{
	for (int i = KUBE_PRIORITIES - 1; i >= 0; i--)
		if (l->queue[i].first)
			return l->queue[i].first;
	return NULL;
}

static void dispatch(void *arg)
{
	struct kube_lane *l = arg;
	struct slu_kube_client *c = l->c;

	while (l->n_queued && !c->closing) {
		struct slu_error err = { 0 };
		const char *authorization = NULL;
		struct slu_kube_call *q;
		struct kube_conn *k;
		bool connecting;
		int rc = kube_auth_get(c->auth, &authorization, &err);

		if (rc == -EAGAIN)
			return; /* the end of the plug-in wakes the lane */
		if (rc < 0) {
			fail_all(l, &err);
			return;
		}
		k = best_conn(l, &connecting);
		if (!connecting && !slu_timer_armed(&l->again) && l->n_conns < l->max_conns &&
		    (!k || slu_link_streams(k->link) >= SECOND_AT)) {
			rc = open_conn(l, &err);
			if (rc < 0 && !k) {
				fail_all(l, &err);
				return;
			}
		}
		if (!k)
			return; /* free room, an answer or the end of the pause wakes the lane */
		/* Requests of the leader election skip the rate limit: leadership must not
		 * depend on how much there is to write. */
		q = first_queued(l);
		if (l->id != SLU_KUBE_LANE_WATCH && q->priority < KUBE_PRIORITIES - 1 &&
		    !rate_allows(c))
			return;
		kube_call_start(q, k, authorization);
	}
}

void kube_lane_close(struct kube_lane *l)
{
	slu_timer_stop(&l->again);
	slu_task_cancel(&l->dispatch);
	while (l->conns) {
		struct kube_conn *k = l->conns;

		count_bytes(k);
		slu_link_close(k->link);
		conn_free(k);
	}
}

void slu_kube_client_cut(struct slu_kube_client *c, enum slu_kube_lane lane)
{
	struct kube_lane *l = &c->lane[lane];

	while (l->conns) {
		struct kube_conn *k = l->conns;

		count_bytes(k);
		slu_link_close(k->link);
		while (l->inflight
			       .first) { /* each call gets its own failure, as after a broken connection */
			struct slu_kube_call *q = l->inflight.first;

			for (; q && q->conn != k; q = q->next)
				;
			if (!q)
				break;
			kube_call_cut(q, SLU_H2_LOST, false);
		}
		c->st.resets++;
		conn_free(k);
	}
	kube_lane_wake(l);
}
