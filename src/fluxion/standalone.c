#include "fluxion/standalone.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <sluice/sluice.h>

#include "base/map.h"
#include "base/vec.h"
#include "wire/jsonw.h"

/* A job as GetGroup and ListGroups report it. */
struct group {
	uint64_t job;
	char *name;
	int64_t size;
};

struct slu_standalone {
	struct slu_loop *loop;
	const char *policy;
	pthread_t thread;
	bool runs;

	/* owned by the thread */
	struct sluice_graph *g;
	SLU_VEC(struct group) group;
	struct slu_map by_job; /* job -> place in `group` */

	/* shared by both threads, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct slu_flux_ask *first, **last;   /* questions for the thread */
	struct slu_flux_ask *done, **done_at; /* answers for the loop */
	struct slu_call back;                 /* tells the loop that answers wait */
	bool stop;
};

/* ---- groups ---- */

static void forget_group(struct slu_standalone *s, uint64_t job)
{
	const uint64_t *at = slu_map_get(&s->by_job, job);
	uint32_t i = at ? (uint32_t)*at : 0;

	if (!at)
		return;
	slu_free(s->group.p[i].name);
	slu_map_del(&s->by_job, job);
	if (i < --s->group.n) {
		s->group.p[i] = s->group.p[s->group.n];
		*slu_map_get(&s->by_job, s->group.p[i].job) = i;
	}
}

static void forget_groups(struct slu_standalone *s)
{
	slu_vec_each (&s->group, struct group, g)
		slu_free(g->name);
	slu_vec_done(&s->group);
	slu_map_done(&s->by_job);
}

static int note_group(struct slu_standalone *s, const struct slu_flux_ask *a)
{
	struct group g = { .job = a->got, .size = a->count };
	char own[32];

	snprintf(own, sizeof own, "job-%" PRIu64, a->got);
	g.name = a->name.n ? slu_strndup(a->name.p, a->name.n) : slu_strdup(own);
	if (!g.name || slu_vec_reserve(&s->group, s->group.n + 1) < 0 ||
	    slu_map_put(&s->by_job, g.job, s->group.n) < 0) {
		slu_free(g.name);
		return -ENOMEM;
	}
	s->group.p[s->group.n++] = g;
	return 0;
}

static void do_group(struct slu_standalone *s, struct slu_flux_ask *a)
{
	a->outcome = SLU_FLUX_NO_JOB;
	slu_vec_each (&s->group, struct group, g) {
		if (strlen(g->name) != a->text.n || memcmp(g->name, a->text.p, a->text.n) != 0)
			continue;
		a->outcome = SLU_FLUX_OK;
		a->got = (uint64_t)g->size;
		slu_buf_puts(&a->out, g->name);
		return;
	}
}

/* The message has room for one name, so it carries all names, one on each line, and their
 * number. */
static void do_groups(struct slu_standalone *s, struct slu_flux_ask *a)
{
	a->outcome = SLU_FLUX_OK;
	slu_vec_each (&s->group, struct group, g) {
		if (a->text.n &&
		    (strlen(g->name) != a->text.n || memcmp(g->name, a->text.p, a->text.n) != 0))
			continue;
		if (a->got++)
			slu_buf_putc(&a->out, '\n');
		slu_buf_puts(&a->out, g->name);
	}
}

/* ---- the graph ---- */

static int answer_error(struct slu_flux_ask *a, int rc, const struct sluice_error *err)
{
	a->outcome = rc == -ENOMEM ? SLU_FLUX_NOT_HERE : SLU_FLUX_BAD;
	slu_fail(&a->why, rc, "%s",
		 rc == -ENOMEM         ? "out of memory"
		 : err && err->text[0] ? err->text
				       : strerror(-rc));
	return rc;
}

/* The format of the text of a graph. */
static const char *format_of(const char *text, size_t n)
{
	size_t i = 0, head = SLU_MIN(n, (size_t)4096);

	while (i < n && strchr(" \t\r\n", text[i]))
		i++;
	if (i < n && text[i] == '<')
		return memmem(text, head, "<graphml", 8) ? "grug" : "hwloc";
	return memmem(text, head, "\"R_lite\"", 8) ? "rv1exec" : "jgf";
}

/* Replace the graph by one from a text in any format, or by one that a loader has read. */
static int replace(struct slu_standalone *s, struct slu_text text, struct sluice_loader *loaded,
		   struct slu_text policy, const char *format, struct sluice_error *err)
{
	struct slu_buf options = SLU_BUF_INIT(4096);
	struct slu_jsonw w = slu_jsonw(&options, SLU_JSONW_COMPACT);
	struct sluice_graph *g = NULL;
	int rc;

	if (!policy.n && s->policy)
		policy = slu_text(s->policy);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "load_format", format);
	if (policy.n) {
		slu_jsonw_key(&w, "matcher_policy");
		slu_jsonw_strn(&w, policy.p, policy.n);
	}
	slu_jsonw_end_obj(&w);
	rc = options.error;
	if (!rc && loaded)
		rc = sluice_loader_graph(loaded, slu_buf_str(&options), &g, err);
	else if (!rc)
		rc = sluice_graph_new(text.p ? text.p : "", text.n, slu_buf_str(&options), &g, err);
	slu_buf_done(&options);
	if (rc < 0)
		return rc;
	sluice_graph_free(s->g);
	s->g = g;
	forget_groups(s);
	return 0;
}

/* ---- the graph of an Init, on the loop's thread ---- */

static void *begin_graph(void *arg)
{
	struct sluice_loader *l = NULL;

	(void)arg;
	return sluice_loader_new(&l) < 0 ? NULL : l;
}

static void add_to_graph(void *graph, const char *p, size_t n)
{
	sluice_loader_feed(graph, p, n); /* the loader keeps the error until the graph is made */
}

static void drop_graph(void *graph)
{
	sluice_loader_free(graph);
}

static const struct slu_flux_graphs graphs = { begin_graph, add_to_graph, drop_graph };

static void do_init(struct slu_standalone *s, struct slu_flux_ask *a)
{
	struct sluice_error err = { 0 };
	struct sluice_loader *loaded = slu_take(a->graph);
	int rc = replace(s, (struct slu_text){ 0 }, loaded, a->policy, "jgf", &err);

	sluice_loader_free(loaded);
	if (rc < 0)
		answer_error(a, rc, &err);
}

static int keep_match(struct slu_standalone *s, struct slu_flux_ask *a,
		      const struct sluice_match *m)
{
	int rc;

	a->got = m->job;
	a->reserved = m->start_s > 0;
	a->at_s = m->start_s;
	if (a->want_nodes)
		rc = slu_flux_nodes(m->text ? m->text : "", m->text ? strlen(m->text) : 0,
				    SLU_MAX(a->cpu, 1), &a->arena, &a->nodes);
	else
		rc = slu_buf_printf(&a->out, "%s\n", m->text ? m->text : "");
	return rc < 0 ? rc : note_group(s, a);
}

static void do_match(struct slu_standalone *s, struct slu_flux_ask *a)
{
	int64_t began = slu_clock_ns();
	struct sluice_match m = { 0 };
	struct sluice_error err = { 0 };
	int rc = sluice_graph_allocate(s->g, a->reserve, 0, a->text.p, a->text.n, &m, &err);

	sluice_graph_clear_messages(s->g);
	if (rc == SLUICE_BUSY || rc == SLUICE_NEVER) {
		a->outcome = SLU_FLUX_NO_ROOM;
	} else if (rc < 0) {
		if (rc == -ENOENT) /* the matcher's code for a search that ended without a time */
			snprintf(err.text, sizeof err.text,
				 "no time was found at which the request fits");
		answer_error(a, rc, &err);
	} else {
		rc = keep_match(s, a, &m);
		if (rc < 0) {
			sluice_graph_cancel(s->g, m.job);
			sluice_graph_forget(s->g, m.job);
			answer_error(a, rc, NULL);
		}
	}
	a->overhead_s = (double)(slu_clock_ns() - began) / 1e9;
	sluice_match_done(&m);
}

static void do_cancel(struct slu_standalone *s, struct slu_flux_ask *a)
{
	int rc = sluice_graph_cancel(s->g, a->job);

	sluice_graph_clear_messages(s->g);
	if (rc == -ENOENT) {
		a->outcome = SLU_FLUX_NO_JOB;
		slu_fail(&a->why, rc, "there is no job %" PRIu64, a->job);
	} else if (rc < 0) {
		answer_error(a, rc, NULL);
	} else {
		sluice_graph_forget(s->g, a->job);
		forget_group(s, a->job);
	}
}

static void do_grow(struct slu_standalone *s, struct slu_flux_ask *a)
{
	struct sluice_error err = { 0 };
	int rc = sluice_graph_add_subgraph(s->g, a->text.p ? a->text.p : "", a->text.n, &err);

	sluice_graph_clear_messages(s->g);
	if (rc < 0)
		answer_error(a, rc, &err);
}

static void do_shrink(struct slu_standalone *s, struct slu_flux_ask *a)
{
	for (uint32_t i = 0; i < a->paths.n; i++) {
		struct sluice_error err = { 0 };
		char *path = slu_strndup(a->paths.p[i].p, a->paths.p[i].n);
		int rc = path ? sluice_graph_remove_subgraph(s->g, path, &err) : -ENOMEM;

		sluice_graph_clear_messages(s->g);
		slu_free(path);
		if (rc < 0) {
			answer_error(a, rc, &err);
			return;
		}
	}
}

static void do_resources(struct slu_standalone *s, struct slu_flux_ask *a)
{
	struct sluice_error err = { 0 };
	char *text = NULL;
	int rc = sluice_graph_find(s->g, "status=up or status=down", "jgf", 0, &text, &err);

	if (!rc && text)
		rc = slu_buf_puts(&a->out, text);
	sluice_free(text);
	if (rc < 0)
		answer_error(a, rc, &err);
}

static void handle_ask(struct slu_standalone *s, struct slu_flux_ask *a)
{
	static void (*const todo[])(struct slu_standalone *s, struct slu_flux_ask *a) = {
		[SLU_FLUX_INIT] = do_init,     [SLU_FLUX_MATCH] = do_match,
		[SLU_FLUX_CANCEL] = do_cancel, [SLU_FLUX_GROW] = do_grow,
		[SLU_FLUX_SHRINK] = do_shrink, [SLU_FLUX_RESOURCES] = do_resources,
		[SLU_FLUX_GROUP] = do_group,   [SLU_FLUX_GROUPS] = do_groups,
	};

	a->outcome = SLU_FLUX_OK;
	if (slu_grpc_over(a->call) && !a->undo) {
		a->outcome = SLU_FLUX_NOT_HERE; /* the client has left: do not begin */
	} else if (!s->g && a->op != SLU_FLUX_INIT) {
		a->outcome = SLU_FLUX_REFUSED;
		slu_fail(&a->why, -ENOENT,
			 "there is no graph yet: call Init, or start with --graph");
	} else {
		todo[a->op](s, a);
	}
}

/* ---- the threads ---- */

/* On the loop's thread. */
static void answer_all(void *arg)
{
	struct slu_standalone *s = arg;
	struct slu_flux_ask *a, *next;

	pthread_mutex_lock(&s->lock);
	a = s->done;
	s->done = NULL;
	s->done_at = &s->done;
	pthread_mutex_unlock(&s->lock);
	for (; a; a = next) {
		next = a->next;
		slu_flux_done(a);
	}
}

/* Pass an answer to the loop; the caller holds the lock. */
static void put_done(struct slu_standalone *s, struct slu_flux_ask *a)
{
	a->next = NULL;
	*s->done_at = a;
	s->done_at = &a->next;
	if (!s->stop)
		slu_loop_call(s->loop, &s->back);
}

static void *thread_main(void *arg)
{
	struct slu_standalone *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct slu_flux_ask *a = s->first;

		if (s->stop)
			break;
		if (!a) {
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		s->first = a->next;
		if (!s->first)
			s->last = &s->first;
		pthread_mutex_unlock(&s->lock);
		handle_ask(s, a);
		pthread_mutex_lock(&s->lock);
		put_done(s, a);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void queue_ask(void *arg, struct slu_flux_ask *a)
{
	struct slu_standalone *s = arg;

	if (!s->runs) { /* the engine stops: the match ends with the graph */
		a->outcome = SLU_FLUX_NOT_HERE;
		slu_fail(&a->why, -ESHUTDOWN, "the server is stopping");
		slu_flux_done(a);
		return;
	}
	a->next = NULL;
	pthread_mutex_lock(&s->lock);
	*s->last = a;
	s->last = &a->next;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

/* Try the policy on a graph of one vertex, so that a wrong name is reported before the first real graph arrives. */
static int try_policy(struct slu_standalone *s, struct slu_error *err)
{
	static const char one[] =
		"{\"graph\":{\"nodes\":[{\"id\":\"0\",\"metadata\":{\"type\":\"cluster\","
		"\"basename\":\"cluster\",\"name\":\"cluster0\",\"id\":0,\"uniq_id\":0,\"rank\":-1,"
		"\"exclusive\":false,\"unit\":\"\",\"size\":1,\"paths\":{\"containment\":"
		"\"/cluster0\"}}}],\"edges\":[]}}";
	struct sluice_error e = { 0 };
	int rc = replace(s, slu_text(one), NULL, (struct slu_text){ 0 }, "jgf", &e);

	sluice_graph_free(s->g);
	s->g = NULL;
	return rc < 0 ? slu_fail(err, rc, "%s", rc == -ENOMEM ? "out of memory" : e.text) : 0;
}

int slu_standalone_new(struct slu_loop *loop, const char *policy, struct slu_standalone **out,
		       struct slu_error *err)
{
	struct slu_standalone *s = slu_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return slu_fail(err, -ENOMEM, "out of memory");
	s->loop = loop;
	s->policy = policy && *policy ? policy : NULL;
	s->last = &s->first;
	s->back = (struct slu_call){ .fn = answer_all, .arg = s };
	s->done_at = &s->done;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	rc = try_policy(s, err);
	if (!rc) {
		rc = -pthread_create(&s->thread, NULL, thread_main, s);
		if (rc < 0)
			slu_fail(err, rc, "cannot start a thread: %s", strerror(-rc));
	}
	if (rc < 0) {
		slu_standalone_free(s);
		return rc;
	}
	s->runs = true;
	*out = s;
	return 0;
}

int slu_standalone_load(struct slu_standalone *s, const char *text, size_t n, struct slu_error *err)
{
	struct sluice_error e = { 0 };
	int rc = replace(s, (struct slu_text){ text, n }, NULL, (struct slu_text){ 0 },
			 format_of(text, n), &e);

	return rc < 0 ? slu_fail(err, rc, "%s", rc == -ENOMEM ? "out of memory" : e.text) : 0;
}

struct slu_flux_engine slu_standalone_engine(struct slu_standalone *s)
{
	return (struct slu_flux_engine){ queue_ask, s, &graphs };
}

void slu_standalone_free(struct slu_standalone *s)
{
	struct slu_flux_ask *a, *next;

	if (!s)
		return;
	if (s->runs) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_signal(&s->wake);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
		s->runs = false;
	}
	slu_loop_call_off(s->loop, &s->back);
	answer_all(s);
	for (a = s->first; a; a = next) {
		next = a->next;
		queue_ask(s, a);
	}
	sluice_graph_free(s->g);
	forget_groups(s);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->wake);
	slu_free(s);
}
