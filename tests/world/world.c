/* The clock, the script, and the beginning and end of a world. */
#include "coverage.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>

#include "kube/strpool.h"

#define QUIET_US (90 * SECOND)  /* after the script, before the books are compared */
#define REST_US  (600 * SECOND) /* at the very end, with nothing to do */
#define WEIGHTS  200            /* about the sum of those of all actions */
#define DRAIN_US (900 * SECOND) /* and beyond the work that is left, until all must be over */

/* ---- time ---- */

static bool before(const struct tick *a, const struct tick *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

void world_at(struct world *w, int64_t at_us, void (*fn)(struct world *, uint64_t, uint64_t),
	      uint64_t a, uint64_t b)
{
	struct tick t = { SLU_MAX(at_us, w->now_us), ++w->seq, fn, a, b };
	uint32_t i = w->heap.n;

	if (slu_vec_push(&w->heap, t) < 0)
		abort();
	for (; i && before(&t, &w->heap.p[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap.p[i] = w->heap.p[(i - 1) / 2];
	w->heap.p[i] = t;
}

static struct tick take(struct world *w)
{
	struct tick first = w->heap.p[0], last = w->heap.p[--w->heap.n];
	uint32_t i = 0;

	for (uint32_t k; (k = 2 * i + 1) < w->heap.n; i = k) {
		if (k + 1 < w->heap.n && before(&w->heap.p[k + 1], &w->heap.p[k]))
			k++;
		if (!before(&w->heap.p[k], &last))
			break;
		w->heap.p[i] = w->heap.p[k];
	}
	w->heap.p[i] = last;
	return first;
}

int64_t world_span(struct world *w, uint64_t occasion, int64_t lo, int64_t hi)
{
	uint64_t h = slu_hash_u64(w->seed ^ slu_hash_u64(occasion));

	return lo + (int64_t)(h % (uint64_t)(hi - lo));
}

/* ---- the story ---- */

void world_say(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->story)
		return;
	fprintf(w->story, "# %9.3f  ", (double)(w->now_us - EPOCH_US) / 1e6);
	va_start(ap, fmt);
	vfprintf(w->story, fmt, ap);
	va_end(ap);
	fputc('\n', w->story);
}

void world_broken(struct world *w, const char *rule, const char *fmt, ...)
{
	va_list ap;

	if (w->failed)
		return;
	w->failed = true;
	snprintf(w->rule, sizeof w->rule, "%s", rule);
	va_start(ap, fmt);
	vsnprintf(w->what, sizeof w->what, fmt, ap);
	va_end(ap);
	world_say(w, "BROKEN %s: %s", rule, w->what);
}

/* ---- the script ---- */

static const struct op *const tables[] = { user_ops,    fault_ops,   custom_ops,
					   edit_ops,    setting_ops, disk_ops,
					   machine_ops, class_ops,   client_ops };

const struct op *world_op(uint32_t i)
{
	for (size_t t = 0; t < SLU_LEN(tables); t++)
		for (const struct op *o = tables[t]; o->name; o++)
			if (!i--)
				return o;
	return NULL;
}

uint32_t world_ops(void)
{
	uint32_t n = 0;

	while (world_op(n))
		n++;
	return n;
}

static void act(struct world *w, uint64_t i, uint64_t unused)
{
	struct slu_rng r = { w->script.p[i].seed };

	w->events++;
	world_say(w, "* %s", world_op(w->script.p[i].op)->name);
	cover_hit("action", world_op(w->script.p[i].op)->name);
	world_op(w->script.p[i].op)->fn(w, &r);
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->at_us != y->at_us ? (x->at_us < y->at_us ? -1 : 1)
				    : (x->seed > y->seed) - (x->seed < y->seed);
}

static bool is_wanted(const struct world *w, const struct op *o)
{
	size_t n = strlen(o->name);

	if (!lives_wants(w, o) || o->since > w->age)
		return false;
	if (!w->only)
		return true;
	for (const char *p = w->only; (p = strstr(p, o->name)); p++)
		if ((p == w->only || p[-1] == ',') && (!p[n] || p[n] == ','))
			return true;
	return false;
}

/* A world has some kinds of actions and lacks others, so that rare ones meet often.  What one kind
 * does comes from the seed and its name alone: a new row in a table changes no other. */
static void write_script(struct world *w)
{
	uint32_t n = 10 + (uint32_t)slu_rng_below(&w->rng, 120);
	int64_t span = (20 + (int64_t)slu_rng_below(&w->rng, 400)) * SECOND;

	if (w->slow)
		span *= 20;
	for (uint32_t i = 0; i < world_ops(); i++) {
		const struct op *o = world_op(i);
		struct slu_rng r = { w->seed ^ slu_hash_bytes(o->name, strlen(o->name)) };
		bool in = slu_rng_below(&r, 2) || !i || o->fn == lives_compare;
		uint64_t often = in ? (2 * n * o->weight + slu_rng_below(&r, WEIGHTS)) / WEIGHTS
				    : 0;

		for (; often && is_wanted(w, o); often--) {
			struct entry e = { .at_us = w->now_us + SECOND +
						    (int64_t)slu_rng_below(&r, (uint64_t)span),
					   .op = i,
					   .seed = slu_rng_u64(&r) };

			if (slu_vec_push(&w->script, e) < 0)
				abort();
		}
	}
	w->end_us = w->now_us + span + 2 * SECOND;
	if (w->script.n)
		qsort(w->script.p, w->script.n, sizeof w->script.p[0], by_time);
	for (uint32_t i = 0; i < w->script.n; i++)
		if (i >= w->n_off || !w->off[i])
			world_at(w, w->script.p[i].at_us, act, i, 0);
}

/* ---- the beginning ---- */

static void make_nodes(struct world *w)
{
	uint32_t n = 2 + (uint32_t)slu_rng_below(&w->rng, 7);
	int32_t cpu = 4000 << slu_rng_below(&w->rng, 2);

	for (uint32_t i = 0; i < n; i++) {
		struct obj *o;
		char name[24], rack[24];

		snprintf(name, sizeof name, "n%u", i);
		snprintf(rack, sizeof rack, "r%u", i / 2);
		o = kube_new(w, SLU_KIND_NODE, "", name);
		o->node.cpu_m = cpu;
		o->node.ready = true;
		snprintf(o->node.pool, sizeof o->node.pool, "%s", i % 3 ? "a" : "b");
		pairs_set(&o->label, "kubernetes.io/hostname", name);
		pairs_set(&o->label, "topology.sluice.sh/rack", rack);
		pairs_set(&o->label, "pool", o->node.pool);
		kube_create(w, o);
	}
}

static void choose_settings(struct world *w)
{
	w->restart = !slu_rng_below(&w->rng, 3);
	w->set.policy[0] = (uint8_t)slu_rng_below(&w->rng, 5);
	w->set.policy[1] = (uint8_t)slu_rng_below(&w->rng, 5);
	w->set.enforce = !slu_rng_below(&w->rng, 4);
	w->leased = world_span(w, 1000003, 0, 3) ==
		    0; /* not from rng: old seeds stay as they are */
	w->restarted = w->restart;
	w->set.racks = true;
	w->set.vacant_s = 30;
	if (!w->age)
		return;
	w->customs = world_span(w, 1000033, 0, 2);
	w->set.running = (uint32_t)SLU_MAX(world_span(w, 1000037, -4, 4), 0);
	w->set.per_user = (uint32_t)SLU_MAX(world_span(w, 1000039, -6, 6), 0);
	w->first_set = w->set;
	if (w->age < 2)
		return;
	w->protobuf = world_span(w, 1000081, 0, 2);
	w->bookmarks = world_span(w, 1000099, 0, 2);
	w->page = world_span(w, 1000117, 0, 2) ? (uint32_t)world_span(w, 1000121, 1, 30) : 0;
	w->set.enforce = world_span(w, 1000133, 0, 2);
	w->first_set = w->set;
	w->slow = w->age >= 3 && !world_span(w, 1000151, 0, 16);
}

void world_bare(struct world *w)
{
	static uint64_t number;

	w->rng.state = w->seed;
	w->now_us = EPOCH_US;
	w->buf = (struct slu_buf)SLU_BUF_INIT(64u << 20);
	w->pool = slu_strpool_new();
	/* SQLite keeps the file while somebody has it open. */
	snprintf(w->store, sizeof w->store, "/world-%" PRIu64, number++);
	if (sqlite3_open_v2(w->store, (sqlite3 **)&w->disk,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "memdb") != SQLITE_OK)
		abort();
	choose_settings(w);
	kube_create(w, kube_new(w, SLU_KIND_NAMESPACE, "", "ns"));
}

static void begin(struct world *w)
{
	struct obj *held;

	world_bare(w);
	held = kube_new(w, SLU_KIND_NAMESPACE, "", "held");
	held->space.held = true;
	pairs_set(&held->label, "sluice.sh/hold", "true");
	kube_create(w, held);
	make_nodes(w);
	daemon_start(w, 0);
	write_script(w);
}

void world_free(struct world *w)
{
	for (int i = 0; i < DAEMONS; i++)
		daemon_kill(w, i, NULL);
	requests_drop(w);
	slu_vec_done(&w->heap);
	slu_vec_done(&w->script);
	slu_vec_done(&w->match);
	for (int k = 0; k < SLU_KIND_COUNT; k++) {
		for (uint32_t i = 0; i < w->log[k].line.n; i++)
			slu_free(w->log[k].line.p[i].text);
		slu_vec_done(&w->log[k].line);
		slu_vec_done(&w->obj[k]);
	}
	for (uint32_t i = 0; i < w->by_uid.n; i++)
		custom_free((struct obj *)(uintptr_t)w->by_uid.e[i].val);
	slu_map_done(&w->by_uid);
	rule_done(w);
	slu_buf_done(&w->buf);
	slu_strpool_free(w->pool);
	disk_done(w);
	sqlite3_close(w->disk);
}

/* ---- the course ---- */

/* No more faults; whoever is dead lives again, nodes are well, services go. */
static void calm_down(struct world *w)
{
	w->fault = (struct faults){ 0 };
	w->calm = true;
	world_say(w, "from here on nothing happens that somebody did not ask for before");
	if (daemon_alive(w, 1) || w->set.renamed || w->set.other_name) {
		daemon_kill(w, 1, "");
		daemon_kill(w, 0, "");
	}
	w->set.renamed = w->set.other_name = false;
	settings_calm(w);
	if (!daemon_alive(w, 0))
		daemon_start(w, 0);
	users_release(w);
	clients_leave(w);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_NODE].n; i++) {
		struct obj *o = w->obj[SLU_KIND_NODE].p[i];

		bool taint = o->node.taint;

		if (!o->node.ready || o->node.cordoned || o->node.taint != taint) {
			o->node.ready = true;
			o->node.cordoned = false;
			o->node.taint = taint;
			kube_changed(w, o, true);
		}
	}
}

static void run_until(struct world *w, int64_t until_us)
{
	while (!w->failed && w->heap.n && w->heap.p[0].at_us <= until_us) {
		struct tick t = take(w);

		w->now_us = t.at_us;
		w->events++;
		w->digest = slu_hash_u64(w->digest ^ (uint64_t)t.at_us);
		t.fn(w, t.a, t.b);
	}
	w->now_us = SLU_MAX(w->now_us, w->failed ? w->now_us : until_us);
}

void world_pass(struct world *w, int64_t seconds)
{
	run_until(w, w->now_us + seconds * SECOND);
}

void world_run(struct world *w)
{
	uint32_t looks = 0;

	cover_world(w);
	begin(w);
	run_until(w, w->end_us);
	if (w->failed)
		return;
	calm_down(w);
	run_until(w, w->now_us + QUIET_US);
	if (w->failed)
		return;
	rule_quiet(w, true);
	users_leave(w);
	w->limit_us = w->now_us + DRAIN_US + 3 * rule_work_us(w);
	while (!w->failed && !rule_drained(w)) {
		if (w->now_us > w->limit_us) {
			rule_not_drained(w);
			return;
		}
		run_until(w, w->now_us + 10 * SECOND);
		if (w->age >= 3 && ++looks % 6 == 0 && !w->failed)
			rule_quiet(w, false);
	}
	run_until(w, w->now_us + QUIET_US);
	if (w->failed)
		return;
	rule_quiet(w, true);
	if (w->age >= 3 && !w->failed) {
		uint64_t writes = w->writes;

		w->resting = true;
		run_until(w, w->now_us + REST_US);
		rule_writes(w, writes);
	}
}
