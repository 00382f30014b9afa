#include "net/loop.h"
#include "base/vec.h"

#include <signal.h>
#include <uv.h>

struct post {
	slu_call_fn *fn;
	void *arg;
};

struct watch_signal {
	uv_signal_t uv;
	slu_call_fn *fn;
	void *arg;
	struct watch_signal *next;
};

struct slu_loop {
	uv_loop_t uv;
	uv_timer_t tick; /* due at the root of the timer heap */
	uv_prepare_t prepare;
	uv_check_t check;
	uv_async_t wake;
	struct slu_timer *timers; /* pairing heap, earliest first */
	uint64_t seq;
	struct slu_task *tasks, **tasks_end;
	uv_mutex_t lock; /* guards posts and calls */
	struct slu_call *calls, **calls_end;
	SLU_VEC(struct post) posts;
	SLU_VEC(struct post)
	running; /* swapped with posts, so that posting never waits for a call */
	struct watch_signal *signals;
	const bool *until; /* slu_loop_run_until() */
	bool late;
	bool stop;
};

/* ---- timers ---- */

static bool earlier(const struct slu_timer *a, const struct slu_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

/* prev is the left sibling, or the parent for a first child; the root has none. */
static struct slu_timer *meld(struct slu_timer *a, struct slu_timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (earlier(b, a)) {
		struct slu_timer *t = a;

		a = b;
		b = t;
	}
	b->next = a->child;
	if (b->next)
		b->next->prev = b;
	b->prev = a;
	a->child = b;
	a->next = a->prev = NULL;
	return a;
}

/* Two passes over the siblings: pair from the left, then meld from the right. */
static struct slu_timer *meld_siblings(struct slu_timer *t)
{
	struct slu_timer *pairs = NULL, *root = NULL;

	while (t) {
		struct slu_timer *a = t, *b = t->next, *p;

		t = b ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b)
			b->next = b->prev = NULL;
		p = meld(a, b);
		p->next = pairs;
		pairs = p;
	}
	while (pairs) {
		struct slu_timer *p = pairs;

		pairs = p->next;
		p->next = NULL;
		root = meld(root, p);
	}
	if (root)
		root->prev = root->next = NULL;
	return root;
}

static void on_tick(uv_timer_t *h);

static void set_tick(struct slu_loop *l)
{
	int64_t wait;

	if (!l->timers) {
		uv_timer_stop(&l->tick);
		return;
	}
	wait = l->timers->due_ns - (int64_t)uv_now(&l->uv) * SLU_NS_PER_MS;
	wait = wait <= 0 ? 0 : (wait + SLU_NS_PER_MS - 1) / SLU_NS_PER_MS;
	uv_timer_start(&l->tick, on_tick, (uint64_t)wait, 0);
}

static void timer_unlink(struct slu_loop *l, struct slu_timer *t)
{
	if (t == l->timers) {
		l->timers = meld_siblings(t->child);
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		l->timers = meld(l->timers, meld_siblings(t->child));
	}
	t->child = t->next = t->prev = NULL;
	t->loop = NULL;
}

static void on_tick(uv_timer_t *h)
{
	struct slu_loop *l = h->data;
	int64_t now = (int64_t)uv_now(&l->uv) * SLU_NS_PER_MS;
	uint64_t limit = l->seq; /* timers started by callbacks wait for the next round */

	while (l->timers && l->timers->due_ns <= now && l->timers->seq <= limit) {
		struct slu_timer *t = l->timers;

		timer_unlink(l, t);
		t->fn(t->arg);
	}
	set_tick(l);
}

void slu_timer_start(struct slu_timer *t, struct slu_loop *l, int64_t delay_ns, slu_call_fn *fn,
		     void *arg)
{
	int64_t now = (int64_t)uv_now(&l->uv) * SLU_NS_PER_MS;

	slu_timer_stop(t);
	t->loop = l;
	t->fn = fn;
	t->arg = arg;
	t->seq = ++l->seq;
	if (delay_ns < 0)
		delay_ns = 0;
	t->due_ns = delay_ns > INT64_MAX - now ? INT64_MAX : now + delay_ns;
	l->timers = meld(l->timers, t);
	if (l->timers == t)
		set_tick(l);
}

void slu_timer_stop(struct slu_timer *t)
{
	struct slu_loop *l = t->loop;
	bool first;

	if (!l)
		return;
	first = l->timers == t;
	timer_unlink(l, t);
	if (first)
		set_tick(l);
}

/* ---- tasks ---- */

void slu_task_defer(struct slu_task *t, struct slu_loop *l, slu_call_fn *fn, void *arg)
{
	if (t->link)
		return;
	t->fn = fn;
	t->arg = arg;
	t->next = NULL;
	t->loop = l;
	t->link = l->tasks_end;
	*l->tasks_end = t;
	l->tasks_end = &t->next;
}

void slu_task_cancel(struct slu_task *t)
{
	if (!t->link)
		return;
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	else
		t->loop->tasks_end = t->link;
	t->link = NULL;
	t->next = NULL;
}

static void run_tasks(struct slu_loop *l)
{
	/* A task may defer itself or others again; they run in this same sweep, bounded so that
	 * sockets are not starved. */
	for (int i = 0; l->tasks && i < 100000; i++) {
		struct slu_task *t = l->tasks;

		slu_task_cancel(t);
		t->fn(t->arg);
	}
}

static void on_prepare(uv_prepare_t *h)
{
	struct slu_loop *l = h->data;

	run_tasks(l);
	/* A timer or task may have made run_until's condition true: do not wait for sockets. */
	if (l->until && (*l->until || l->late))
		uv_stop(&l->uv);
}

static void on_check(uv_check_t *h)
{
	run_tasks(h->data);
}

/* ---- calls from other threads ---- */

static void on_wake(uv_async_t *h)
{
	struct slu_loop *l = h->data;

	for (;;) {
		__typeof__(l->posts) t;
		struct slu_call *call;
		slu_call_fn *fn = NULL;
		void *arg = NULL;

		uv_mutex_lock(&l->lock);
		call = l->calls;
		if (call) {
			fn = call->fn;
			arg = call->arg;
			call->waits = false;
			l->calls = call->next;
			if (!l->calls)
				l->calls_end = &l->calls;
		}
		if (!l->posts.n && !call) {
			uv_mutex_unlock(&l->lock);
			return;
		}
		memcpy(&t, &l->posts, sizeof t);
		memcpy(&l->posts, &l->running, sizeof t);
		memcpy(&l->running, &t, sizeof t);
		uv_mutex_unlock(&l->lock);
		slu_vec_each (&l->running, struct post, p)
			p->fn(p->arg);
		l->running.n = 0;
		if (fn)
			fn(arg);
	}
}

int slu_loop_post(struct slu_loop *l, slu_call_fn *fn, void *arg)
{
	int rc;

	uv_mutex_lock(&l->lock);
	rc = slu_vec_push(&l->posts, (struct post){ fn, arg });
	uv_mutex_unlock(&l->lock);
	return rc < 0 ? rc : uv_async_send(&l->wake);
}

void slu_loop_call(struct slu_loop *l, struct slu_call *call)
{
	uv_mutex_lock(&l->lock);
	if (!call->waits) {
		call->waits = true;
		call->next = NULL;
		*l->calls_end = call;
		l->calls_end = &call->next;
	}
	uv_mutex_unlock(&l->lock);
	uv_async_send(&l->wake);
}

void slu_loop_call_off(struct slu_loop *l, struct slu_call *call)
{
	uv_mutex_lock(&l->lock);
	for (struct slu_call **at = &l->calls; call->waits && *at; at = &(*at)->next)
		if (*at == call) {
			*at = call->next;
			if (!*at)
				l->calls_end = at;
			call->waits = false;
			break;
		}
	uv_mutex_unlock(&l->lock);
}

static void on_signal(uv_signal_t *h, int signo)
{
	struct watch_signal *s = h->data;

	(void)signo;
	s->fn(s->arg);
}

int slu_loop_signal(struct slu_loop *l, int signo, slu_call_fn *fn, void *arg)
{
	struct watch_signal *s = slu_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return -ENOMEM;
	s->fn = fn;
	s->arg = arg;
	uv_signal_init(&l->uv, &s->uv);
	s->uv.data = s;
	s->next = l->signals;
	l->signals = s;
	rc = uv_signal_start(&s->uv, on_signal, signo);
	uv_unref((uv_handle_t *)&s->uv);
	return rc;
}

/* ---- life ---- */

struct slu_loop *slu_loop_new(void)
{
	struct slu_loop *l = slu_calloc(1, sizeof *l);

	if (!l)
		return NULL;
	if (uv_loop_init(&l->uv) < 0) {
		slu_free(l);
		return NULL;
	}
	signal(SIGPIPE, SIG_IGN);
	uv_loop_configure(&l->uv, UV_METRICS_IDLE_TIME);
	l->tasks_end = &l->tasks;
	l->calls_end = &l->calls;
	uv_mutex_init(&l->lock);
	uv_timer_init(&l->uv, &l->tick);
	uv_prepare_init(&l->uv, &l->prepare);
	uv_check_init(&l->uv, &l->check);
	l->tick.data = l->prepare.data = l->check.data = l->wake.data = l;
	uv_prepare_start(&l->prepare, on_prepare);
	uv_check_start(&l->check, on_check);
	if (uv_async_init(&l->uv, &l->wake, on_wake) < 0) {
		uv_close((uv_handle_t *)&l->tick, NULL);
		uv_close((uv_handle_t *)&l->prepare, NULL);
		uv_close((uv_handle_t *)&l->check, NULL);
		uv_run(&l->uv, UV_RUN_NOWAIT);
		uv_loop_close(&l->uv);
		uv_mutex_destroy(&l->lock);
		slu_free(l);
		return NULL;
	}
	l->wake.data = l;
	return l;
}

static void close_left(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (!uv_is_closing(h))
		uv_close(h, NULL);
}

void slu_loop_free(struct slu_loop *l)
{
	if (!l)
		return;
	run_tasks(l); /* some of these tasks free handles that were closed last */
	while (l->timers)
		slu_timer_stop(l->timers);
	/* Run the loop until it is empty: the close callbacks of handles free the structs around
	 * them, and requests in the work pool (name resolution) have to end. */
	uv_walk(&l->uv, close_left, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	uv_loop_close(&l->uv);
	while (l->signals) {
		struct watch_signal *s = l->signals;

		l->signals = s->next;
		slu_free(s);
	}
	uv_mutex_destroy(&l->lock);
	slu_vec_done(&l->posts);
	slu_vec_done(&l->running);
	slu_free(l);
}

void slu_loop_run(struct slu_loop *l)
{
	l->stop = false;
	uv_update_time(&l->uv);
	while (!l->stop)
		uv_run(&l->uv, UV_RUN_ONCE);
}

static void set_true(void *arg)
{
	*(bool *)arg = true;
}

bool slu_loop_run_until(struct slu_loop *l, const bool *done, int64_t timeout_ns)
{
	struct slu_timer t = { 0 };
	const bool *outer = l->until;

	uv_update_time(&l->uv);
	l->until = done;
	l->late = false;
	if (timeout_ns >= 0)
		slu_timer_start(&t, l, timeout_ns, set_true, &l->late);
	while (!*done && !l->late)
		uv_run(&l->uv, UV_RUN_ONCE);
	slu_timer_stop(&t);
	l->until = outer;
	l->late = false;
	return *done;
}

void slu_loop_stop(struct slu_loop *l)
{
	l->stop = true;
	uv_stop(&l->uv);
}

int64_t slu_loop_now_ns(const struct slu_loop *l)
{
	return (int64_t)uv_now(&l->uv) * SLU_NS_PER_MS;
}

int64_t slu_loop_idle_ns(struct slu_loop *l)
{
	return (int64_t)uv_metrics_idle_time(&l->uv);
}

struct uv_loop_s *slu_loop_uv(struct slu_loop *l)
{
	return &l->uv;
}
