#include "serve/api.h"

#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "control/rules/group.h"
#include "serve/auth.h"
#include "serve/https.h"
#include "serve/metrics.h"
#include "serve/view.h"

#define BODY_MAX    (256u << 20)
#define CLOSE_NS    SLU_NS_PER_S
#define REQUEST_MAX (64u << 10) /* no route reads a body */

#define OUT_OF_MEMORY "out of memory; try again\n"

enum endpoint { ENDPOINT_SOCKET, ENDPOINT_HTTPS, ENDPOINT_HEALTH, ENDPOINTS };

/* Any client in the cluster may connect to HTTPS, so the probes and the operator's socket have connections of
 * their own. */
static const struct slu_pool_options endpoint_pool[ENDPOINTS] = {
	[ENDPOINT_SOCKET] = { .max_connections = 128, .one_source = true },
	[ENDPOINT_HTTPS] = { .max_connections = 512 },
	[ENDPOINT_HEALTH] = { .max_connections = 128,
			      .max_bytes = 32u << 20,
			      .max_streams = 16,
			      .no_body = true },
};

struct slu_api {
	struct slu_api_setup s;
	struct slu_server *server;
	struct slu_auth *auth;
	const char *asker;       /* who made the present request; NULL: not known */
	struct slu_https *https; /* NULL: that endpoint is closed */
	struct question *open;   /* the core has not answered yet */
	bool closed;
	int listener[ENDPOINTS]; /* -1: not open */
};

static enum endpoint endpoint_of(const struct slu_api *a, const struct slu_http_request *q)
{
	for (int i = 0; i < ENDPOINTS; i++)
		if (a->listener[i] == q->listener)
			return (enum endpoint)i;
	return ENDPOINT_HEALTH;
}

/* ---- health and metrics ---- */

static void health(struct slu_api *a, struct slu_exchange *x, bool ready)
{
	struct slu_snapshot *s = slu_core_snapshot(a->s.core);
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_feed_stats f;
	bool good;

	slu_feed_stats(a->s.feed, &f);
	good = !ready || (s && s->synced);
	slu_buf_printf(&b, "%s\nmirror: %s\nstore: %s\nwatch: %s\n",
		       !good               ? "not ready"
		       : !s || s->store_ok ? "ok"
					   : "degraded",
		       s && s->synced ? "complete" : "filling", s ? s->store : "starting",
		       *f.trouble ? f.trouble : "ok");
	slu_leftout_write(slu_feed_leftout(a->s.feed), &b);
	/* Without its store, or with an object that it cannot read, the daemon can still serve the webhook, and a
	 * restart would not help: it stays ready. */
	slu_http_reply(x, good ? 200 : 503, "text/plain; charset=utf-8", slu_buf_str(&b), b.n);
	slu_buf_done(&b);
	slu_snapshot_unref(s);
}

static void metrics(struct slu_api *a, struct slu_exchange *x)
{
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_snapshot *s = slu_core_snapshot(a->s.core);
	struct slu_metrics_from from = { .snap = s,
					 .feed = a->s.feed,
					 .place = a->s.place,
					 .client = a->s.client,
					 .loop = a->s.loop };

	slu_metrics_write(&from, &b);
	slu_http_reply(x, b.error ? 500 : 200, "text/plain; version=0.0.4", slu_buf_str(&b), b.n);
	slu_buf_done(&b);
	slu_snapshot_unref(s);
}

/* ---- reading ---- */

static void reply_json(struct slu_exchange *x, struct slu_buf *b)
{
	slu_buf_putc(b, '\n');
	if (b->error == -ENOMEM)
		slu_http_reply_text(x, 503, OUT_OF_MEMORY);
	else if (b->error)
		slu_http_reply_text(x, 500, "the answer is too large\n");
	else
		slu_http_reply(x, 200, "application/json", b->p, b->n);
	slu_buf_done(b);
}

/* ---- questions to the core ---- */

/* A request that the core answers.  The API owns the question; while the core has it, only the core touches rc and
 * text. */
struct question {
	struct slu_api *a;
	struct slu_exchange *x; /* NULL: answered by slu_api_close() */
	struct question *next, *prev;
	void (*then)(struct question *q); /* answers the exchange */
	char *object;                     /* the memory of the record's text, or NULL */
	struct slu_call back;             /* to the loop's thread */
	int rc;
	char text[SLU_ERROR_MAX];
};

static void question_free(struct question *q)
{
	slu_loop_call_off(q->a->s.loop, &q->back);
	if (q->prev)
		q->prev->next = q->next;
	else
		q->a->open = q->next;
	if (q->next)
		q->next->prev = q->prev;
	slu_free(q->object);
	slu_free(q);
}

static void question_reply(struct question *q)
{
	struct slu_buf b = SLU_BUF_INIT(8192);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	int status = !q->rc             ? 200
		     : q->rc == -ENOENT ? 404
		     : q->rc == -EINVAL ? 400
		     : q->rc == -EBUSY  ? 409
		     : q->rc == -EAGAIN ? 503
					: 500;

	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, q->rc ? "error" : "message", q->text);
	slu_jsonw_end_obj(&w);
	slu_buf_putc(&b, '\n');
	slu_http_reply(q->x, status, "application/json", slu_buf_str(&b), b.n);
	slu_buf_done(&b);
}

/* The core's answer, back on the loop's thread. */
static void question_done(void *arg)
{
	struct question *q = arg;

	if (q->x)
		q->then(q);
	question_free(q);
}

/* On the core thread. */
static void question_answer(void *arg, int rc, const char *text)
{
	struct question *q = arg;

	q->rc = rc;
	snprintf(q->text, sizeof q->text, "%s", text);
	q->back = (struct slu_call){ .fn = question_done, .arg = q };
	slu_loop_call(q->a->s.loop, &q->back);
}

static void ask_free(struct slu_record *r)
{
	struct slu_rec_ask *a = (struct slu_rec_ask *)r;

	if (a->answer)
		a->answer(a->arg, -ESHUTDOWN, "the daemon is stopping");
	slu_free(r);
}

/* Send a question to the core.  `ask` has what the request asks for; send_ask() adds the name and the caller, and
 * takes over the text. */
static void send_ask(struct slu_api *a, struct slu_exchange *x, const struct slu_rec_ask *ask,
		     const char *ns, const char *name, void (*then)(struct question *q))
{
	struct slu_rec_ask *r = slu_calloc(1, sizeof *r);
	struct question *q = slu_calloc(1, sizeof *q);

	if (!r || !q || strlen(ns) >= sizeof r->ns || strlen(name) >= sizeof r->name) {
		bool starved = !r || !q;

		slu_free(r);
		slu_free(q);
		slu_free((char *)ask->text);
		slu_http_reply_text(x, starved ? 503 : 400,
				    starved ? OUT_OF_MEMORY : "no such name\n");
		return;
	}
	*q = (struct question){
		.a = a, .x = x, .then = then, .next = a->open, .object = (char *)ask->text
	};
	if (q->next)
		q->next->prev = q;
	a->open = q;
	*r = *ask;
	r->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = ask_free };
	strcpy(r->ns, ns);
	strcpy(r->name, name);
	snprintf(r->user, sizeof r->user, "%s", a->asker ? a->asker : "");
	r->answer = question_answer;
	r->arg = q;
	if (slu_inbox_put(slu_core_inbox(a->s.core), &r->base) < 0)
		ask_free(&r->base);
}

static void ask_core(struct slu_api *a, struct slu_exchange *x, enum slu_ask what, const char *ns,
		     const char *name, void (*then)(struct question *q))
{
	send_ask(a, x, &(struct slu_rec_ask){ .what = what }, ns, name, then);
}

/* ---- routes ---- */

#define PARTS 6

/* Split "/v1/jobs/ns/name" into decoded parts.  Returns their number, -EINVAL for a malformed path, or -ENOMEM. */
static int split_path(const char *path, char part[PARTS][256])
{
	int n = 0;

	while (*path == '/') {
		size_t len = strcspn(++path, "/");
		struct slu_buf b = SLU_BUF_INIT(255);
		int rc = slu_http_unescape(&b, path, len);

		if (!len && !path[0])
			return n;
		if (rc < 0 || n == PARTS) {
			slu_buf_done(&b);
			return rc == -ENOMEM ? rc : -EINVAL;
		}
		snprintf(part[n++], 256, "%s", slu_buf_str(&b));
		slu_buf_done(&b);
		path += len;
	}
	return *path ? -EINVAL : n;
}

static bool read_route(struct slu_api *a, struct slu_exchange *x, char part[PARTS][256], int n)
{
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	slu_cleanup(slu_snapshot_unrefp) struct slu_snapshot *s = slu_core_snapshot(a->s.core);

	if (n == 2 && !strcmp(part[1], "config")) {
		slu_config_write(a->s.config, &w);
		reply_json(x, &b);
		return true;
	}
	if (!s) {
		slu_http_reply_text(x, 503, "starting\n");
		return true;
	}
	if (n == 2 && !strcmp(part[1], "jobs")) {
		slu_view_jobs(s, &w);
	} else if (n == 2 && !strcmp(part[1], "nodes")) {
		slu_view_nodes(s, &w);
	} else if (n == 2 && !strcmp(part[1], "reservations")) {
		slu_view_reservations(s, &w);
	} else if (n == 2 && !strcmp(part[1], "queues")) {
		slu_view_queues(s, &w);
	} else if (n == 4 && !strcmp(part[1], "jobs")) {
		if (slu_view_job(s, part[2], part[3], &w) < 0) {
			slu_http_reply_text(x, 404, "no job \"%s\" in namespace %s\n", part[3],
					    part[2]);
			return true;
		}
	} else {
		return false;
	}
	reply_json(x, &b);
	return true;
}

static void resize_gang(struct slu_api *a, struct slu_exchange *x, const char *ns, const char *name,
			const char *size)
{
	char *end = NULL;
	unsigned long n = strtoul(size, &end, 10);

	if (size[0] < '0' || size[0] > '9' || *end || n > INT32_MAX) {
		slu_http_reply_text(x, 400, "\"%.20s\" is not a number of members\n", size);
		return;
	}
	send_ask(a, x, &(struct slu_rec_ask){ .what = SLU_ASK_RESIZE, .size = (uint32_t)n }, ns,
		 name, question_reply);
}

#define OWN "own" /* what the objects themselves say */

static void change_priority(struct slu_api *a, struct slu_exchange *x, const char *ns,
			    const char *name, const char *text)
{
	char *end = NULL;
	long long n = strtoll(text, &end, 10);
	bool own = !strcmp(text, OWN);

	if (!own && ((text[0] != '-' && (text[0] < '0' || text[0] > '9')) || *end ||
		     n < INT32_MIN || n > INT32_MAX)) {
		slu_http_reply_text(
			x, 400, "\"%.40s\" is not a priority: give a whole number, or " OWN "\n",
			text);
		return;
	}
	send_ask(a, x,
		 &(struct slu_rec_ask){ .what = SLU_ASK_PRIORITY, .value = own ? SLU_ASK_OWN : n },
		 ns, name, question_reply);
}

static void change_limit(struct slu_api *a, struct slu_exchange *x, const char *ns,
			 const char *name, const char *text)
{
	bool own = !strcmp(text, OWN);
	int64_t s = 0;

	if (!own && (slu_config_seconds(text, &s) < 0 || s < 1)) {
		slu_http_reply_text(x, 400,
				    "\"%.40s\" is not a limit: give 90, 15m, 12h, 7d, or " OWN "\n",
				    text);
		return;
	}
	send_ask(a, x,
		 &(struct slu_rec_ask){ .what = SLU_ASK_LIMIT, .value = own ? SLU_ASK_OWN : s }, ns,
		 name, question_reply);
}

/* Read a time from the query: a date, seconds since the epoch, or "+15m" from now on.  `*out` is 0 if there is
 * none. */
static int read_moment(const char *query, const char *name, int64_t *out, struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(100);
	int rc = slu_http_query_get(query, name, &b);
	const char *text = slu_buf_str(&b);
	int64_t s = 0;

	*out = 0;
	if (rc > 0 && *text == '+')
		rc = slu_config_seconds(text + 1, &s) < 0 ? -EINVAL : 0;
	else if (rc > 0)
		rc = slu_group_parse_time(text, &s);
	if (!rc && s)
		*out = *text == '+' ? (int64_t)time(NULL) + s : s;
	if (rc < 0)
		slu_fail(err, rc,
			 "%s: \"%.60s\" is not a time (2026-01-31T14:00:00Z, +15m, or seconds)",
			 name, text);
	slu_buf_done(&b);
	return rc;
}

static void drain_node(struct slu_api *a, struct slu_exchange *x, const char *node)
{
	const char *query = slu_exchange_request(x)->query;
	struct slu_rec_ask ask = { .what = SLU_ASK_DRAIN };
	struct slu_error err = { 0 };
	int rc = read_moment(query, "from", &ask.from_s, &err);

	if (!rc)
		rc = read_moment(query, "until", &ask.until_s, &err);
	if (rc < 0) {
		slu_http_reply_text(x, rc == -ENOMEM ? 503 : 400,
				    rc == -ENOMEM ? OUT_OF_MEMORY : "%s\n", err.text);
		return;
	}
	send_ask(a, x, &ask, "", node, question_reply);
}

/* ---- reservations ---- */

/* Write a list of the query, with commas, as JSON; `pairs`: "cpu=4,memory=8Gi" as an object. */
static int put_list(const char *query, const char *from, struct slu_jsonw *w, const char *key,
		    bool pairs, struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(32u << 10);
	int rc = slu_http_query_get(query, from, &b);
	char *rest = rc > 0 ? b.p : NULL, *part;

	if (rc > 0) {
		slu_jsonw_key(w, key);
		pairs ? slu_jsonw_obj(w) : slu_jsonw_arr(w);
	}
	while ((part = rest ? strsep(&rest, ",") : NULL)) {
		char *eq = pairs ? strchr(part, '=') : NULL;

		if (!*part || (pairs && (!eq || eq == part || !eq[1]))) {
			rc = slu_fail(err, -EINVAL, "%s: \"%.60s\" is not %s", from, part,
				      pairs ? "an amount (cpu=4)" : "a name");
			break;
		}
		if (eq)
			*eq = 0;
		pairs ? slu_jsonw_kstr(w, part, eq + 1) : slu_jsonw_str(w, part);
	}
	if (rc > 0)
		pairs ? slu_jsonw_end_obj(w) : slu_jsonw_end_arr(w);
	slu_buf_done(&b);
	return rc < 0 ? rc : 0;
}

static int put_word(const char *query, const char *from, struct slu_jsonw *w, const char *key)
{
	struct slu_buf b = SLU_BUF_INIT(1000);
	int rc = slu_http_query_get(query, from, &b);

	if (rc > 0)
		slu_jsonw_kstr(w, key, slu_buf_str(&b));
	slu_buf_done(&b);
	return rc < 0 ? rc : 0;
}

static int put_moment(const char *query, const char *from, struct slu_jsonw *w, const char *key,
		      struct slu_error *err)
{
	char text[40];
	int64_t s = 0;
	time_t t;
	struct tm tm;
	int rc = read_moment(query, from, &s, err);

	if (rc < 0)
		return rc;
	if (!s && !strcmp(from, "until"))
		return slu_fail(err, -EINVAL, "a reservation needs an end: give --until");
	t = s ? (time_t)s : time(NULL);
	gmtime_r(&t, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	slu_jsonw_kstr(w, key, text);
	return 0;
}

static int put_count(const char *query, struct slu_jsonw *w, struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(40);
	int rc = slu_http_query_get(query, "count", &b);
	char *end = NULL;
	long n = rc > 0 ? strtol(b.p, &end, 10) : 0;

	if (rc > 0 && (*end || n < 1 || n > 10000))
		rc = slu_fail(err, -EINVAL, "count: \"%.30s\" is outside 1..10000", b.p);
	else if (rc > 0)
		slu_jsonw_ki64(w, "count", n);
	slu_buf_done(&b);
	return rc < 0 ? rc : 0;
}

/* Write the Reservation object that the parameters of the query describe. */
static int put_reservation(const char *query, const char *ns, const char *name, struct slu_buf *b,
			   struct slu_error *err)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);
	int rc;

	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", "sluice.sh/v1alpha1");
	slu_jsonw_kstr(&w, "kind", "Reservation");
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "name", name);
	slu_jsonw_kstr(&w, "namespace", ns);
	slu_jsonw_end_obj(&w);
	slu_jsonw_key(&w, "spec");
	slu_jsonw_obj(&w);
	rc = put_list(query, "nodes", &w, "nodes", false, err);
	if (!rc)
		rc = put_count(query, &w, err);
	if (!rc)
		rc = put_word(query, "label", &w, "nodeLabel");
	if (!rc)
		rc = put_list(query, "amounts", &w, "amounts", true, err);
	if (!rc)
		rc = put_moment(query, "from", &w, "start", err);
	if (!rc)
		rc = put_moment(query, "until", &w, "end", err);
	if (!rc)
		rc = put_word(query, "every", &w, "every");
	if (!rc)
		rc = put_list(query, "users", &w, "users", false, err);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	return rc ? rc : b->error;
}

static void reserve(struct slu_api *a, struct slu_exchange *x, const char *ns, const char *name)
{
	struct slu_buf b = SLU_BUF_INIT(256u << 10);
	struct slu_rec_ask ask = { .what = SLU_ASK_RESERVE };
	struct slu_error err = { 0 };
	int rc = put_reservation(slu_exchange_request(x)->query, ns, name, &b, &err);

	if (rc == -ENOMEM) {
		slu_http_reply_text(x, 503, OUT_OF_MEMORY);
		slu_buf_done(&b);
		return;
	}
	if (rc < 0) {
		slu_http_reply_text(x, 400, "%s\n", *err.text ? err.text : "no such reservation");
		slu_buf_done(&b);
		return;
	}
	ask.text = slu_buf_take(&b);
	send_ask(a, x, &ask, ns, name, question_reply); /* takes the text over */
}

static bool ask_route(struct slu_api *a, struct slu_exchange *x, char part[PARTS][256], int n)
{
	static const struct {
		const char *of, *verb;
		enum slu_ask what;
	} row[] = { { "jobs", "cancel", SLU_ASK_CANCEL },
		    { "jobs", "hold", SLU_ASK_HOLD },
		    { "jobs", "release", SLU_ASK_RELEASE },
		    { "nodes", "undrain", SLU_ASK_UNDRAIN } };
	static const struct {
		const char *verb;
		void (*run)(struct slu_api *a, struct slu_exchange *x, const char *ns,
			    const char *name, const char *value);
	} change[] = { { "resize", resize_gang },
		       { "priority", change_priority },
		       { "limit", change_limit } };

	if (n == 6 && !strcmp(part[1], "jobs"))
		for (size_t i = 0; i < SLU_LEN(change); i++)
			if (!strcmp(part[4], change[i].verb)) {
				change[i].run(a, x, part[2], part[3], part[5]);
				return true;
			}
	if (n == 4 && !strcmp(part[1], "reservations")) {
		reserve(a, x, part[2], part[3]);
		return true;
	}
	if (n == 5 && !strcmp(part[1], "reservations") && !strcmp(part[4], "end")) {
		ask_core(a, x, SLU_ASK_UNRESERVE, part[2], part[3], question_reply);
		return true;
	}
	if (n == 4 && !strcmp(part[1], "nodes") && !strcmp(part[3], "drain")) {
		drain_node(a, x, part[2]);
		return true;
	}
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		bool job = row[i].of[0] == 'j';

		if (n != (job ? 5 : 4) || strcmp(part[1], row[i].of) ||
		    strcmp(part[n - 1], row[i].verb))
			continue;
		ask_core(a, x, row[i].what, job ? part[2] : "", job ? part[3] : part[2],
			 question_reply);
		return true;
	}
	return false;
}

/* The core has published a fresh snapshot, or could not: answer from the newest one. */
static void read_reply(struct question *q)
{
	const struct slu_http_request *req = slu_exchange_request(q->x);
	char part[PARTS][256];
	int n = split_path(req->path, part);

	if (n == -ENOMEM)
		slu_http_reply_text(q->x, 503, OUT_OF_MEMORY);
	else if (n < 2 || !read_route(q->a, q->x, part, n))
		slu_http_reply_text(q->x, 404, "nothing here: %s\n", req->path);
}

static void route(struct slu_api *a, struct slu_exchange *x)
{
	const struct slu_http_request *q = slu_exchange_request(x);
	char part[PARTS][256];
	int n = split_path(q->path, part);

	if (n == -ENOMEM) {
		slu_http_reply_text(x, 503, OUT_OF_MEMORY);
		return;
	}
	if (n == 1 && !strcmp(part[0], "metrics") && q->method == SLU_HTTP_GET) {
		metrics(a, x);
		return;
	}
	if (n == 4 && !strcmp(part[0], "v1") && !strcmp(part[1], "jobs") &&
	    q->method == SLU_HTTP_GET && !strcmp(q->query, "why=true")) {
		ask_core(a, x, SLU_ASK_SNAPSHOT, part[2], part[3], read_reply);
		return;
	}
	if (n >= 2 && !strcmp(part[0], "v1") && q->method == SLU_HTTP_GET) {
		ask_core(a, x, SLU_ASK_SNAPSHOT, "",
			 strcmp(q->query, "all=true") ? "" : SLU_ASK_ALL, read_reply);
		return;
	}
	if (n >= 2 && !strcmp(part[0], "v1") && q->method == SLU_HTTP_POST &&
	    ask_route(a, x, part, n))
		return;
	slu_http_reply_text(x, 404, "nothing here: %s\n", q->path);
}

static void serve_request(struct slu_api *a, struct slu_exchange *x, const char *asker)
{
	a->asker = asker;
	route(a, x);
	a->asker = NULL;
}

static void on_authorized(void *arg, struct slu_exchange *x, int status, const char *why)
{
	const struct slu_api *a = arg;

	if (a->closed)
		slu_http_reply_text(x, 503, "the daemon is stopping\n");
	else if (status == 200)
		serve_request(arg, x, why);
	else
		slu_http_reply_text(x, status, "%s\n", why);
}

static void on_request(struct slu_exchange *x, void *arg)
{
	struct slu_api *a = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	enum endpoint endpoint = endpoint_of(a, q);

	if (a->closed) {
		slu_http_reply_text(x, 503, "the daemon is stopping\n");
		return;
	}

	if (q->method == SLU_HTTP_GET) {
		if (!strcmp(q->path, "/healthz") || !strcmp(q->path, "/livez")) {
			health(a, x, false);
			return;
		}
		if (!strcmp(q->path, "/readyz")) {
			health(a, x, true);
			return;
		}
		if (!strcmp(q->path, "/metrics") && endpoint != ENDPOINT_HTTPS) {
			metrics(a, x);
			return;
		}
	}
	if (endpoint == ENDPOINT_SOCKET) {
		char uid[32];

		snprintf(uid, sizeof uid, "uid:%lld", (long long)q->uid);
		serve_request(a, x, uid);
	} else if (endpoint == ENDPOINT_HTTPS)
		slu_auth_check(a->auth, x, on_authorized, a);
	else
		slu_http_reply_text(x, 404, "nothing here: %s\n", q->path);
}

/* ---- opening ---- */

static int open_endpoint(struct slu_api *a, enum endpoint d, const char *where, struct slu_tls *tls,
			 struct slu_error *err)
{
	static const char *const setting[ENDPOINTS] = {
		[ENDPOINT_SOCKET] = "serve.socket (--socket)",
		[ENDPOINT_HTTPS] = "serve.https",
		[ENDPOINT_HEALTH] = "serve.health"
	};
	char text[200];
	struct slu_addr addr;
	int rc;

	a->listener[d] = -1;
	if (!*where)
		return 0;
	snprintf(text, sizeof text, "%s%s", d == ENDPOINT_SOCKET ? "unix:" : "", where);
	rc = slu_addr_parse(text, &addr, err);
	if (rc == 0)
		rc = slu_server_listen(a->server, &addr, tls, 0600, err);
	if (err && d == ENDPOINT_SOCKET && (rc == -ENOENT || rc == -EACCES || rc == -EROFS)) {
		char why[sizeof err->text];

		snprintf(why, sizeof why, "%s", err->text);
		slu_fail(
			err, rc,
			"%s; create its directory and make it writable for sluiced, or set another path",
			why);
	}
	if (rc < 0)
		return slu_fail_prefix(err, rc, "%s", setting[d]);
	slu_server_pool(a->server, rc, &endpoint_pool[d]);
	a->listener[d] = rc;
	return 0;
}

static int api_new(const struct slu_api_setup *setup, struct slu_api **out, struct slu_error *err)
{
	slu_cleanup(slu_api_freep) struct slu_api *a = slu_calloc(1, sizeof *a);
	slu_cleanup(slu_tls_unrefp) struct slu_tls *tls = NULL;
	const struct slu_config *cfg = setup->config;
	int rc;

	if (!a)
		return slu_fail(err, -ENOMEM, "out of memory");
	a->s = *setup;
	a->server = slu_server_new(
		setup->loop, &(struct slu_server_options){
				     .handler = on_request, .arg = a, .max_body = REQUEST_MAX });
	a->auth = slu_auth_new(setup->client);
	if (!a->server || !a->auth)
		return slu_fail(err, -ENOMEM, "out of memory");
	if (*cfg->serve.https) {
		rc = slu_https_first(cfg, "", &tls, err);
		if (rc < 0)
			return rc;
	}
	rc = open_endpoint(a, ENDPOINT_SOCKET, cfg->serve.socket, NULL, err);
	if (!rc)
		rc = open_endpoint(a, ENDPOINT_HTTPS, cfg->serve.https, tls, err);
	if (!rc)
		rc = open_endpoint(a, ENDPOINT_HEALTH, cfg->serve.health, NULL, err);
	if (!rc && a->listener[ENDPOINT_HTTPS] >= 0)
		rc = slu_https_new(setup->loop, setup->client, a->server,
				   a->listener[ENDPOINT_HTTPS], cfg, "", &a->https, err);
	if (rc < 0)
		return rc;
	*out = slu_take(a);
	return 0;
}

int slu_api_new(const struct slu_api_setup *setup, struct slu_api **out, struct slu_error *err)
{
	int rc = api_new(setup, out, err);

	/* A lower layer may have had no memory even for its message. */
	return rc == -ENOMEM && err && !*err->text ? slu_fail(err, rc, "out of memory") : rc;
}

static void now_closed(void *arg)
{
	*(bool *)arg = true;
}

void slu_api_close(struct slu_api *a)
{
	bool done = false;

	a->closed = true;
	for (struct question *q = a->open; q; q = q->next) {
		slu_http_reply_text(q->x, 503, "the daemon is stopping\n");
		q->x = NULL;
	}
	slu_server_drain(a->server, CLOSE_NS, now_closed, &done);
	slu_loop_run_until(a->s.loop, &done, 2 * CLOSE_NS);
}

void slu_api_free(struct slu_api *a)
{
	if (!a)
		return;
	while (a->open)
		question_free(a->open);
	slu_https_free(a->https);
	slu_server_free(a->server);
	slu_auth_free(a->auth);
	slu_free(a);
}

void slu_api_config(struct slu_api *a, const struct slu_config *config)
{
	a->s.config = config;
}

static uint16_t port_of(const struct slu_api *a, enum endpoint d)
{
	return a->listener[d] < 0 ? 0 : slu_server_port(a->server, a->listener[d]);
}

uint16_t slu_api_health_port(const struct slu_api *a)
{
	return port_of(a, ENDPOINT_HEALTH);
}

uint16_t slu_api_https_port(const struct slu_api *a)
{
	return port_of(a, ENDPOINT_HTTPS);
}
