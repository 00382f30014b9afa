/* The wall clock is set while a gang is in each of its states: ten minutes back, and a day ahead
 * for three seconds.  The clock of the daemon is base/clock.h, as in its core thread.  Because
 * of it, no pod is evicted, waiting gangs start without waiting for the clock, and a limit lasts
 * as long as it did. */
#include "base/clock.h"
#include "core_kit.h"

#include "control/run/run.h"

#define S INT64_C(1000000)

/* A gang with a limit, which is enforced here. */
#define GANG GROUP("g", "2") ",\"annotations\":{\"sluice.sh/duration\":\"1h\"}"

enum moment { GATHERS, WAITS, DECIDED, PLACING, RUNS, ENDING, MOMENTS };

static const char *const called[] = { "gathers", "waits", "is decided", "is bound and starts",
				      "runs",    "ends" };

struct clocked {
	struct world w;
	struct slu_clock clock;
	int64_t wall, boot;
};

/* Let time pass, and set the wall clock by `step` at the end of it. */
static void pass(struct clocked *c, int64_t us, int64_t step)
{
	int64_t seen;

	c->boot += us;
	c->wall += us + step;
	c->w.now_us = slu_clock_at(&c->clock, c->wall, c->boot, &seen);
	turn(&c->w);
}

/* turn() moves the time of the world by itself; that is time that passes. */
static void follow(struct clocked *c, int64_t from)
{
	c->boot += c->w.now_us - from;
	c->wall += c->w.now_us - from;
}

static void step_at(enum moment m, int64_t step, bool back_again)
{
	struct fpod *g[2] = { 0 }, *first = NULL;
	struct clocked c = { 0 };
	int64_t from, seen;

	open_world(&c.w, 1, 4, "jobs: {enforceDeadlines: true}");
	c.wall = from = c.w.now_us;
	c.boot = 5000 * S;
	(void)slu_clock_at(&c.clock, c.wall, c.boot, &seen);
	turn(&c.w);
	if (m == WAITS)
		first = add_pod(&c.w, "first", "sluice", "4",
				"\"annotations\":{\"sluice.sh/duration\":\"12h\"}");
	turn(&c.w);
	c.w.slow_kubelets = m == PLACING;
	g[0] = add_pod(&c.w, "g-0", "sluice", "2", GANG);
	if (m != GATHERS)
		g[1] = add_pod(&c.w, "g-1", "sluice", "2", GANG);
	if (m > DECIDED || m == WAITS)
		turn(&c.w);
	if (m == ENDING)
		end_pod(&c.w, g[0], "Succeeded");
	follow(&c, from);
	pass(&c, 0, step);
	for (int i = 0; i < 3; i++)
		pass(&c, S, 0);
	if (back_again)
		pass(&c, 0, -step);
	c.w.slow_kubelets = false;
	for (int i = 0; m == PLACING && i < 2; i++)
		end_pod(&c.w, g[i], "Running");
	if (m == GATHERS)
		g[1] = add_pod(&c.w, "g-1", "sluice", "2", GANG);
	if (m == WAITS) {
		ok(bound(&c.w, "first") == 1, "a running job goes on over the step of the clock");
		end_pod(&c.w, first, "Succeeded");
	}
	for (int i = 0; i < 3; i++)
		pass(&c, S, 0);
	ok(*g[0]->node && g[1] && *g[1]->node && !c.w.evictions,
	   "set by %d s while a gang %s: it is on its nodes seconds later, and no pod is evicted (%d)",
	   (int)(step / S), called[m], c.w.evictions);
	/* Its hour is an hour that passed, whatever the wall clock said when it began: a core that
	 * goes by the wall clock ends it ten minutes late, or a day. */
	for (int i = 0; i < 35; i++)
		pass(&c, 100 * S, 0);
	ok(!c.w.evictions, "a pod is not evicted before its hour is over (%d)", c.w.evictions);
	for (int i = 0; i < 3; i++)
		pass(&c, 100 * S, 0);
	ok(c.w.evictions, "set by %d s while a gang %s: it is ended after its hour",
	   (int)(step / S), called[m]);
	close_world(&c.w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	for (int m = 0; m < MOMENTS; m++) {
		step_at((enum moment)m, -600 * S, false);
		step_at((enum moment)m, 86400 * S, true);
	}
	return tap_done();
}
