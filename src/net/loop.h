/* loop.h — the event loop of a thread that owns sockets.
 *
 * A thin coat over libuv.  Timers live inside the structs that use them: starting one allocates
 * nothing and cannot fail, stopping one takes effect at once (no close callback to wait for).
 * Everything here belongs to the thread that runs the loop, except slu_loop_post() and slu_loop_call(). */
#pragma once
#include "base/base.h"
#include "base/clock.h"

#define SLU_NS_PER_MS INT64_C(1000000)
#define SLU_NS_PER_S  INT64_C(1000000000)

struct slu_loop;
struct uv_loop_s;

typedef void slu_call_fn(void *arg);

/* A new loop.  Also makes the process ignore SIGPIPE.  NULL: no memory or no descriptors left. */
struct slu_loop *slu_loop_new(void);
/* Close the handles that are left and free the loop.  Connections, servers and clients made on
 * the loop must have been freed before; their handles are closed here.  NULL is fine. */
void slu_loop_free(struct slu_loop *l);
SLU_DEFINE_CLEANUP(struct slu_loop, slu_loop_free)

/* Run until slu_loop_stop().  */
void slu_loop_run(struct slu_loop *l);
/* Run until *done becomes true or `timeout_ns` passed (< 0: no limit); returns *done. */
bool slu_loop_run_until(struct slu_loop *l, const bool *done, int64_t timeout_ns);
void slu_loop_stop(struct slu_loop *l);

/* The monotonic clock as read at the start of this round; slu_clock_ns() reads it afresh. */
int64_t slu_loop_now_ns(const struct slu_loop *l);

/* From any thread: run fn(arg) on the loop's thread, in order of posting.  0 or -ENOMEM. */
int slu_loop_post(struct slu_loop *l, slu_call_fn *fn, void *arg);
/* The same for a call that lives inside the struct it is about: it allocates nothing and cannot fail.  While
 * it waits, to make it again changes nothing. */
struct slu_call {
	slu_call_fn *fn;
	void *arg;
	struct slu_call *next;
	bool waits;
};
void slu_loop_call(struct slu_loop *l, struct slu_call *call);
/* Take back a call that still waits, before the object of the call is freed. */
void slu_loop_call_off(struct slu_loop *l, struct slu_call *call);

/* Call fn(arg) on each delivery of the signal.  0 or a negative errno. */
int slu_loop_signal(struct slu_loop *l, int signo, slu_call_fn *fn, void *arg);

/* Nanoseconds this loop has spent waiting for work, for the saturation metric. */
int64_t slu_loop_idle_ns(struct slu_loop *l);

/* The libuv loop underneath, for code in net and kube that needs other handles. */
struct uv_loop_s *slu_loop_uv(struct slu_loop *l);

/* ---- timers: zero-initialise, embed ---- */
struct slu_timer {
	struct slu_timer *child, *next, *prev; /* pairing heap */
	struct slu_loop *loop;                 /* set while armed */
	int64_t due_ns;
	uint64_t seq;
	slu_call_fn *fn;
	void *arg;
};

/* Fire once, `delay_ns` from now; an armed timer is moved.  The callback may start it again. */
void slu_timer_start(struct slu_timer *t, struct slu_loop *l, int64_t delay_ns, slu_call_fn *fn,
		     void *arg);
/* Stop the timer; a timer that is not armed stays as it is. */
void slu_timer_stop(struct slu_timer *t);
static inline bool slu_timer_armed(const struct slu_timer *t)
{
	return t->loop;
}

/* ---- tasks: run once at the end of the current round, before the loop waits again ---- */
struct slu_task {
	struct slu_task *next, **link; /* link: set while queued */
	struct slu_loop *loop;
	slu_call_fn *fn;
	void *arg;
};

/* Queue the task; a task that is queued already keeps its place. */
void slu_task_defer(struct slu_task *t, struct slu_loop *l, slu_call_fn *fn, void *arg);
void slu_task_cancel(struct slu_task *t);
static inline bool slu_task_queued(const struct slu_task *t)
{
	return t->link;
}
