/* Two lives are one life: at any moment, a daemon that begins with the store and the cluster as they
 * are says the same as the one that has been there all the time.
 *
 * At points of the script the clock stands still.  The daemon takes everything that happened, decides
 * and commits; then its store is copied, another daemon begins with the copy and with the cluster as
 * it is, and both are compared: every job with its state, reason, place, promise, members and nodes;
 * the books of every node; and every row of the store that is needed to go on or is history.  The
 * other life is dropped without having written anything; the same script also kills the daemon, so
 * what is compared has often been through several lives. */
#include <sqlite3.h>
#include <stdio.h>

#include "control/report/snapshot.h"
#include "daemon.h"
#include "postgres.h"

/* ---- histories ---- */

/* What leaves the first daemon with less knowledge than a list has, or with another clock: then the
 * second one knows better, which is no fault of either. */
static const char *const unfair[] = { "gap in a watch", "clock back two hours", "clock a day ahead",
				      "second daemon on the store", "store away",
				      "a pod that cannot be decoded", "pause the daemon",
				      "writes fail", "writes answered 429",
				      /* age 1 and 2 */
				      "clock back ten minutes", "clock up to an hour ahead",
				      "clocks drift", "disk full", "store does not answer",
				      "transactions torn", "store put back",
				      "store of an older version", "kubelet refuses pods" };

bool lives_wants(const struct world *w, const struct op *o)
{
	if (!w->lives)
		return o->fn != lives_compare;
	for (size_t i = 0; i < SLU_LEN(unfair); i++)
		if (!strcmp(o->name, unfair[i]))
			return false;
	return true;
}

/* ---- what both say ---- */

static void differ(struct world *w, const char *what, const char *name, const char *a,
		   const char *b)
{
	char rule[40];

	snprintf(rule, sizeof rule, "lives: %s", what);
	world_broken(w, rule, "%s of %s: \"%s\", in another life \"%s\"", what, name, a, b);
}

static void same_text(struct world *w, const char *what, const char *name, const char *a,
		      const char *b)
{
	if (strcmp(a, b))
		differ(w, what, name, a, b);
}

static void same(struct world *w, const char *what, const char *name, int64_t a, int64_t b)
{
	char x[24], y[24];

	if (a == b)
		return;
	snprintf(x, sizeof x, "%" PRId64, a);
	snprintf(y, sizeof y, "%" PRId64, b);
	differ(w, what, name, x, y);
}

static int by_name(const void *a, const void *b)
{
	const struct slu_snap_job *x = a, *y = b;
	int c = strcmp(x->ns, y->ns);

	c = c ? c : strcmp(x->name, y->name);
	c = c ? c : (x->first_seen_us > y->first_seen_us) - (x->first_seen_us < y->first_seen_us);
	return c ? c : strcmp(x->state, y->state);
}

static int by_pod(const void *a, const void *b)
{
	const struct slu_snap_pod *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* No node is away: then no promise may move later. */
static bool is_whole(const struct world *w)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_NODE].n; i++)
		if (!w->obj[SLU_KIND_NODE].p[i]->node.ready ||
		    w->obj[SLU_KIND_NODE].p[i]->node.cordoned)
			return false;
	return true;
}

/* What makes it is being deleted. */
static bool is_going(struct world *w, const struct slu_snap_job *j)
{
	const struct obj *p = j->n_pods ? kube_find(w, SLU_KIND_POD, j->ns, j->pod[0].name) : NULL;
	const struct obj *o = p ? kube_get(w, p->owner) : NULL;

	return (p && p->deleted_us) || (o && o->deleted_us);
}

static void same_job(struct world *w, struct slu_snap_job *a, struct slu_snap_job *b)
{
	same_text(w, "state", a->name, a->state, b->state);
	same(w, "size", a->name, a->size, b->size);
	same(w, "smallest size", a->name, a->min, b->min);
	same(w, "members there", a->name, a->ready, b->ready);
	same(w, "members placed", a->name, a->bound, b->bound);
	same(w, "members", a->name, a->n_pods, b->n_pods);
	if (!is_going(w, a))
		same(w, "arrival", a->name, a->first_seen_us, b->first_seen_us);
	same(w, "priority", a->name, a->priority, b->priority);
	same(w, "limit", a->name, a->limit_s, b->limit_s);
	same_text(w, "queue", a->name, a->queue, b->queue);
	same_text(w, "user", a->name, a->user, b->user);
	same(w, "start", a->name, a->start_s, b->start_s);
	same(w, "planned end", a->name, a->end_s, b->end_s);
	if (a->promised && a->estimate_s > w->now_us / SECOND + 1 && is_whole(w) &&
	    (!b->promised || b->estimate_s > a->estimate_s))
		same(w, "promise", a->name, a->estimate_s, b->promised ? b->estimate_s : 0);
	same(w, "position", a->name, a->position, b->position);
	if (w->failed)
		return;
	qsort(a->pod, a->n_pods, sizeof a->pod[0], by_pod);
	qsort(b->pod, b->n_pods, sizeof b->pod[0], by_pod);
	for (uint32_t i = 0; i < a->n_pods; i++) {
		same_text(w, "member", a->name, a->pod[i].name, b->pod[i].name);
		same_text(w, "node", a->pod[i].name, a->pod[i].node, b->pod[i].node);
		same_text(w, "state", a->pod[i].name, a->pod[i].state, b->pod[i].state);
	}
}

/* A sentence names four of those who hold what it needs, no matter which. */
static void same_reason(struct world *w, const struct slu_snap_job *a, const struct slu_snap_job *b)
{
	char x[600], y[600];

	snprintf(x, sizeof x, "%s", a->reason);
	snprintf(y, sizeof y, "%s", b->reason);
	if (strstr(x, "; held by") && strstr(y, "; held by"))
		*strstr(x, "; held by") = *strstr(y, "; held by") = 0;
	same_text(w, "reason", a->name, x, y);
}

/* What follows from the plan as a whole. */
static void same_words(struct world *w, const struct slu_snapshot *a, const struct slu_snapshot *b)
{
	/* A new plan of everything may find an earlier start for somebody, which is told to all the
	 * others behind him. */
	for (uint32_t i = 0; i < a->n_jobs; i++)
		if (a->job[i].promised != b->job[i].promised ||
		    (a->job[i].promised && a->job[i].estimate_s != b->job[i].estimate_s))
			return;
	for (uint32_t i = 0; i < a->n_jobs && !w->failed; i++) {
		const struct slu_snap_job *x = &a->job[i], *y = &b->job[i];

		same(w, "estimate", x->name, x->estimate_s, y->estimate_s);
		/* Told again when it is another, not for a number; and not before a while. */
		if (strcmp(x->state, "never") && *x->reason && *y->reason)
			same_reason(w, x, y);
		same_text(w, "remedy", x->name, x->remedy, y->remedy);
	}
}

static void same_jobs(struct world *w, struct slu_snapshot *a, struct slu_snapshot *b)
{
	uint32_t i = 0;

	if (a->n_jobs)
		qsort(a->job, a->n_jobs, sizeof a->job[0], by_name);
	if (b->n_jobs)
		qsort(b->job, b->n_jobs, sizeof b->job[0], by_name);
	for (; i < a->n_jobs && i < b->n_jobs && !w->failed; i++) {
		int c = by_name(&a->job[i], &b->job[i]);

		if (strcmp(a->job[i].ns, b->job[i].ns) || strcmp(a->job[i].name, b->job[i].name))
			differ(w, "presence", c < 0 ? a->job[i].name : b->job[i].name,
			       c < 0 ? a->job[i].state : "none", c < 0 ? "none" : b->job[i].state);
		else
			same_job(w, &a->job[i], &b->job[i]);
	}
	if (i < a->n_jobs)
		differ(w, "presence", a->job[i].name, a->job[i].state, "none");
	if (i < b->n_jobs)
		differ(w, "presence", b->job[i].name, "none", b->job[i].state);
}

static int by_node(const void *a, const void *b)
{
	const struct slu_snap_node *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int64_t amount_free(const struct slu_snap_node *n, const char *name)
{
	for (uint32_t i = 0; i < n->n_amounts; i++)
		if (!strcmp(n->amount[i].name, name))
			return n->amount[i].free;
	return -1;
}

static void same_nodes(struct world *w, struct slu_snapshot *a, struct slu_snapshot *b)
{
	same(w, "nodes", "the machine", a->n_nodes, b->n_nodes);
	if (w->failed || !a->n_nodes)
		return;
	qsort(a->node, a->n_nodes, sizeof a->node[0], by_node);
	qsort(b->node, b->n_nodes, sizeof b->node[0], by_node);
	for (uint32_t i = 0; i < a->n_nodes; i++) {
		struct slu_snap_node *x = &a->node[i], *y = &b->node[i];

		same_text(w, "name", x->name, x->name, y->name);
		same_text(w, "state", x->name, x->state, y->state);
		for (uint32_t k = 0; k < x->n_amounts; k++)
			same(w, x->amount[k].name, x->name, x->amount[k].free,
			     amount_free(y, x->amount[k].name));
		same(w, "gangs", x->name, x->jobs, y->jobs);
		same(w, "work of others", x->name, x->foreign, y->foreign);
	}
}

/* ---- what both wrote down ---- */

/* What the next life goes by, and what people will read for ever.  Numbers of intents and terms are
 * of the life that made them; the event log begins anew with each. */
static const struct {
	const char *what, *sql;
} tables[] = {
	{ "row of a job",
	  "SELECT id, key, space, name, kind, usr, queue, priority, first_seen_us, state, size,"
	  " max_size, current_size, limit_s, begin_s, start_s, cause IN ('begun', 'cancelled'),"
	  " (SELECT group_concat(value) FROM (SELECT value FROM json_each(spec, '$.vacant')"
	  " ORDER BY 1)), (SELECT group_concat(value) FROM (SELECT value FROM json_each(spec,"
	  " '$.vacantLater') ORDER BY 1)), (SELECT group_concat(v) FROM (SELECT key || ' ' || value AS v FROM"
	  " json_each(spec, '$.later') ORDER BY 1)), (SELECT group_concat(value) FROM (SELECT value FROM"
	  " json_each(spec, '$.makers') ORDER BY 1)), json_remove(spec, '$.makers', '$.places', '$.vacant', '$.vacantLater',"
	  " '$.later', CASE WHEN state > 3 THEN '$.roles' ELSE '$.later' END)"
	  " FROM jobs WHERE key NOT IN (%s) ORDER BY key" },
	{ "row of a member", "SELECT j.key, p.uid, p.name FROM pods p JOIN jobs j ON j.id = p.job"
			     " WHERE j.key NOT IN (%s) ORDER BY 1, 2" },
	{ "result",
	  "SELECT key, name, usr, queue, outcome, first_seen_us, start_s, end_s, size, used"
	  " FROM results ORDER BY key, job" },
	{ "span", "SELECT kind, name, from_s, to_s, spec FROM spans ORDER BY 1, 2" },
};

/* Keys of what is being deleted: its row goes when its pods can start no more, not when they go. */
static void put_leaving(struct world *w, struct slu_buf *b)
{
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		for (uint32_t i = 0; i < w->obj[k].n; i++)
			if (w->obj[k].p[i]->deleted_us)
				slu_buf_printf(b, "'%s/u:u%" PRIu64 "', ", w->obj[k].p[i]->ns,
					       w->obj[k].p[i]->uid);
	slu_buf_puts(b, "''");
}

static sqlite3_stmt *rows_of(struct world *w, sqlite3 *db, uint32_t t)
{
	struct slu_buf b = SLU_BUF_INIT(1u << 20);
	const char *at = strstr(tables[t].sql, "%s"), *sql;
	sqlite3_stmt *s = NULL;

	if (at) {
		slu_buf_printf(&b, "%.*s", (int)(at - tables[t].sql), tables[t].sql);
		put_leaving(w, &b);
		slu_buf_puts(&b, at + 2);
	} else {
		slu_buf_puts(&b, tables[t].sql);
	}
	sql = slu_buf_str(&b);

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		abort();
	slu_buf_done(&b);
	return s;
}

static void row_text(sqlite3_stmt *s, bool there, char *text, size_t size)
{
	size_t n = 0;

	text[0] = 0;
	if (!there)
		snprintf(text, size, "none");
	for (int i = 0; there && i < sqlite3_column_count(s) && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? " " : "",
				      (const char *)sqlite3_column_text(s, i));
}

static void same_rows(struct world *w, sqlite3 *a, sqlite3 *b, uint32_t t)
{
	sqlite3_stmt *x = rows_of(w, a, t), *y = rows_of(w, b, t);
	bool more_x, more_y;

	do {
		char s[4000], u[4000];

		more_x = sqlite3_step(x) == SQLITE_ROW;
		more_y = sqlite3_step(y) == SQLITE_ROW;
		row_text(x, more_x, s, sizeof s);
		row_text(y, more_y, u, sizeof u);
		if (strcmp(s, u))
			world_broken(w, tables[t].what, "%s: %s\n#\tin another life: %s",
				     tables[t].what, s, u);
	} while (more_x && more_y && !w->failed);
	sqlite3_finalize(x);
	sqlite3_finalize(y);
}

/* ---- the comparison ---- */

static sqlite3 *open_memory(const char *name)
{
	sqlite3 *db = NULL;

	if (sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "memdb") !=
	    SQLITE_OK)
		abort();
	return db;
}

static sqlite3 *copy_store(struct world *w, const char *name)
{
	sqlite3 *to = open_memory(name);
	sqlite3_backup *b;

	b = sqlite3_backup_init(to, "main", w->disk, "main");
	if (!b || sqlite3_backup_step(b, -1) != SQLITE_DONE ||
	    sqlite3_backup_finish(b) != SQLITE_OK)
		abort();
	return to;
}

static void compare(struct world *w, sqlite3 *copy, uint64_t before)
{
	struct slu_snapshot *a = daemon_picture(w, 0), *b = daemon_picture(w, 1);

	if (a && b && b->count.cycles > before) { /* else it waits for members that are just made */
		w->compared++;
		same_jobs(w, a, b);
		same_nodes(w, a, b);
		for (uint32_t t = 0; t < SLU_LEN(tables); t++)
			same_rows(w, w->disk, copy, t);
		if (!w->failed)
			same_words(w, a, b);
	}
	slu_snapshot_unref(a);
	slu_snapshot_unref(b);
}

/* Nothing is decided for a moment (while members of a gang end, while objects of a group come): the
 * other life does not know of that moment. */
#define MOMENT_US (SECOND / 4)

static void try(struct world *w, uint64_t tries, uint64_t unused);

static void try_later(struct world *w, uint64_t tries)
{
	if (tries < 10)
		world_at(w, w->now_us + SECOND / 10, try, tries + 1, 0);
}

/* Pods whose controller is gone and which are not deleted yet: whether a controller that a pod names
 * was deleted or is still to come is decided after three seconds. */
static bool leaves_behind(struct world *w)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *p = w->obj[SLU_KIND_POD].p[i];

		for (const struct obj *o = kube_get(w, p->owner); o; o = kube_get(w, o->owner))
			if (!is_live(o))
				return true;
	}
	return false;
}

/* Cycles in which it decided, so far. */
static uint64_t cycles_of(const struct daemon *d)
{
	struct slu_snapshot *s = slu_core_snapshot(d->core);
	uint64_t n = s ? s->count.cycles : 0;

	slu_snapshot_unref(s);
	return n;
}

/* Another daemon has begun with the store `url` and with the cluster as it is: they say the same. */
static void begin_another(struct world *w, const char *url, const char *rows)
{
	uint64_t before = w->daemon[1] ? cycles_of(w->daemon[1]) : 0;
	sqlite3 *copy;

	w->handed_over += w->daemon[1] != NULL;
	/* Its second cycle writes down what its first one carried out. */
	if ((w->daemon[1] ? daemon_take_over(w, url) : daemon_twin(w, url) != NULL) &&
	    daemon_catch_up(w, 1) && daemon_catch_up(w, 1)) {
		daemon_catch_up(w, 0);
		copy = open_memory(rows);
		if (w->postgres)
			postgres_carry(url, rows);
		compare(w, copy, before);
		sqlite3_close(copy);
	}
	daemon_kill(w, 1, NULL);
}

/* A daemon looks at the whole plan again when room appears, and when it starts: then it may find a better
 * one.  So the first one looks at everything too before it is compared. */
static bool looks_again(struct world *w)
{
	bool done = daemon_catch_up(w, 0);

	for (int i = 0; done && i < 3 && !w->failed; i++) {
		plan_anew(w->daemon[0]->core);
		done = daemon_catch_up(w, 0);
	}
	return done;
}

static void try(struct world *w, uint64_t tries, uint64_t unused)
{
	static uint64_t number;
	char name[40], back[40], url[300];
	sqlite3 *copy;

	if (!w->lives || leaves_behind(w) || !w->daemon[0] || !looks_again(w) ||
	    (w->daemon[1] && !daemon_catch_up(w, 1)) ||
	    slu_core_wake_us(w->daemon[0]->core) < w->now_us + MOMENT_US ||
	    plan_is_due(w->daemon[0]->core)) {
		try_later(w, tries);
		return;
	}
	if (w->daemon[1] && w->daemon[1]->settings != w->daemon[0]->settings)
		daemon_kill(w, 1, NULL); /* the first was started anew with others */
	snprintf(name, sizeof name, "/life-%" PRIu64, ++number);
	copy = copy_store(w, name);
	if (w->postgres) {
		snprintf(back, sizeof back, "/back-%" PRIu64, number);
		postgres_make(w->postgres, number, url, sizeof url);
		postgres_carry(name, url);
		begin_another(w, url, back);
		postgres_drop(w->postgres, number);
	} else {
		begin_another(w, name, name);
	}
	sqlite3_close(copy);
	/* Every other time a standby watches from here on, and takes over at the next comparison. */
	if (!w->calm && w->compared % 2)
		daemon_standby(w);
}

void lives_compare(struct world *w, struct slu_rng *r)
{
	try(w, 0, 0);
}
