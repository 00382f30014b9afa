/* How `place` handles answers that a real server rarely gives. */
#include "kubefake.h"

#include "base/log.h"
#include "control/io/place.h"

#define PODS    160
#define BURST   40
#define GANG    24
#define CEILING 32
#define WINDOW  16 /* what is left of it when the server has had enough */

struct pod {
	char name[32];
	int binds, looks, events;
	int64_t answered; /* slu_kube_outcome + 1; 0: not yet */
};

struct world {
	struct fake f;
	struct slu_place *place;
	struct slu_inbox *core;
	struct pod pod[PODS];
	uint32_t n_pods, left;
	struct slu_exchange *held[PODS];
	uint32_t n_held;
	uint32_t want; /* until so many have come none is answered; 0: all are */
	struct slu_timer tick;
	bool done;
};

static struct pod *pod_named(struct world *w, const char *name, size_t n)
{
	for (uint32_t i = 0; i < w->n_pods; i++)
		if (strlen(w->pod[i].name) == n && !memcmp(w->pod[i].name, name, n))
			return &w->pod[i];
	abort();
}

static void reply(struct slu_exchange *x, int status, const char *text)
{
	slu_http_reply(x, status, "application/json", text, strlen(text));
}

static void take_binding(struct world *w, struct pod *p, struct slu_exchange *x)
{
	p->binds++;
	if (!strcmp(p->name, "late") && p->binds == 1) {
		reply(x, 504, "{\"kind\":\"Status\",\"reason\":\"Timeout\"}");
		return;
	}
	if (!strcmp(p->name, "late") || !strncmp(p->name, "gang", 4) ||
	    !strncmp(p->name, "behind", 6) || !strncmp(p->name, "burst", 5)) {
		w->held[w->n_held++] = x;
		return;
	}
	if (!strcmp(p->name, "fine") || (!strcmp(p->name, "lost") && p->binds == 2))
		reply(x, 201, "{}");
	else if (!strcmp(p->name, "wrong"))
		reply(x, 422, "{\"kind\":\"Status\",\"reason\":\"Invalid\"}");
	else if ((!strcmp(p->name, "disputed") && p->binds < 3) || !strcmp(p->name, "bound"))
		reply(x, 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\"}");
	else if (!strcmp(p->name, "disputed"))
		reply(x, 201, "{}");
	else
		reply(x, 504, "{\"kind\":\"Status\",\"reason\":\"Timeout\"}");
}

/* No answer at first; then the API server was restarted and does not know any user's rights yet. */
static void release(struct pod *p, struct slu_exchange *x)
{
	if (++p->binds == 2)
		reply(x, 403,
		      "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":"
		      "\"User \\\"sluice\\\" cannot patch resource \\\"pods\\\"\"}");
	else
		reply(x, p->binds == 3 ? 200 : 504, "{\"kind\":\"Status\"}");
}

static void look(struct pod *p, struct slu_exchange *x)
{
	char text[200];
	const char *node = !strcmp(p->name, "made") || !strcmp(p->name, "bound") ? "node-1"
			   : !strcmp(p->name, "elsewhere")                       ? "node-2"
										 : "";

	p->looks++;
	if (!strcmp(p->name, "gone")) {
		reply(x, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}");
		return;
	}
	snprintf(text, sizeof text,
		 "{\"metadata\":{\"uid\":\"%s\"},\"spec\":{\"nodeName\":\"%s\"}}",
		 strcmp(p->name, "another") ? "u-1" : "u-2", node);
	reply(x, 200, text);
}

static void serve(struct slu_exchange *x, void *arg)
{
	struct world *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	const char *pods = strstr(q->path, "/pods/");
	const char *name = pods ? pods + 6 : NULL;
	struct pod *p;

	if (name) {
		p = pod_named(w, name, strcspn(name, "/"));
		if (q->method == SLU_HTTP_POST)
			take_binding(w, p, x);
		else if (q->method == SLU_HTTP_PATCH)
			release(p, x);
		else
			look(p, x);
		return;
	}
	/* An event: the pod's name stands in it, after the note's "assigned ns/". */
	name = memmem(q->body, q->body_len, "assigned ns/", 12);
	if (!name) { /* one of the flood's */
		reply(x, 201, "{}");
		return;
	}
	p = pod_named(w, name + 12, strcspn(name + 12, " "));
	if (++p->events == 1 && !strcmp(p->name, "fine"))
		reply(x, 503, "{\"kind\":\"Status\"}");
	else
		reply(x, 201, "{}");
}

static void tick(void *arg)
{
	struct world *w = arg;
	struct slu_record *r[16];
	uint32_t n;

	while (w->n_held && !w->want)
		reply(w->held[--w->n_held], 201, "{}");
	while ((n = slu_inbox_take(w->core, r, SLU_LEN(r))))
		for (uint32_t i = 0; i < n; i++) {
			struct slu_rec_written *a = (struct slu_rec_written *)r[i];

			w->pod[a->serial].answered = (int64_t)a->outcome + 1;
			w->left--;
			r[i]->free(r[i]);
		}
	w->done = w->want ? w->n_held >= w->want : !w->left;
	slu_timer_start(&w->tick, w->f.loop, 5 * SLU_NS_PER_MS, tick, w);
}

static void ask(struct world *w, const char *name, uint64_t run)
{
	bool held = !strcmp(name, "held");
	struct slu_rec_write like = { .verb = held ? SLU_WRITE_PATCH : SLU_WRITE_BIND,
				      .text = held ? "{}" : NULL,
				      .kind = SLU_KIND_POD,
				      .run = run,
				      .serial = w->n_pods,
				      .ns = "ns",
				      .name = name,
				      .uid = "u-1",
				      .node = "node-1",
				      .reporter = "sluice" };
	struct slu_rec_write *r = slu_rec_write_new(&like);

	snprintf(w->pod[w->n_pods++].name, sizeof w->pod->name, "%s", name);
	w->left++;
	if (slu_inbox_put(slu_place_inbox(w->place), &r->base) < 0)
		abort();
}

static const struct pod *find(struct world *w, const char *name)
{
	return pod_named(w, name, strlen(name));
}

static void check(struct world *w, const char *name, enum slu_kube_outcome want, int binds,
		  int looks, const char *what)
{
	const struct pod *p = find(w, name);

	ok(p->answered == (int64_t)want + 1 && p->binds == binds && p->looks == looks,
	   "%s: %s, %d bindings, %d looks", what,
	   p->answered ? slu_kube_outcome_name((enum slu_kube_outcome)(p->answered - 1)) : "none",
	   p->binds, p->looks);
}

/* Send n writes with that name, each a job of its own if `run` is 0, and wait until `come` of
 * them have reached the server. */
static void hold(struct world *w, const char *name, uint32_t n, uint64_t run, uint32_t come)
{
	char each[32];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(each, sizeof each, "%s-%u", name, i);
		ask(w, each, run ? run : 1000 + w->n_pods);
	}
	w->want = come;
	w->done = false;
	slu_loop_run_until(w->f.loop, &w->done, 20 * SLU_NS_PER_S);
}

/* Answer all of them, and what follows. */
static void let_go(struct world *w)
{
	w->want = 0;
	w->done = false;
	slu_loop_run_until(w->f.loop, &w->done, 20 * SLU_NS_PER_S);
}

/* More words at once than are kept: the oldest go, and nothing waits for ever. */
static void test_flood(struct world *w)
{
	struct slu_rec_write like = { .verb = SLU_WRITE_EVENT,
				      .kind = SLU_KIND_POD,
				      .ns = "ns",
				      .name = "p",
				      .uid = "u",
				      .reporter = "sluice",
				      .reason = "FailedScheduling",
				      .text = "no room" };
	struct slu_place_stats s;
	const bool never = false;

	for (int i = 0; i < 100050; i++) {
		struct slu_rec_write *x = slu_rec_write_new(&like);

		if (!x || slu_inbox_put(slu_place_inbox(w->place), &x->base) < 0)
			abort();
	}
	slu_loop_run_until(w->f.loop, &never, SLU_NS_PER_MS);
	slu_place_stats(w->place, &s);
	ok(s.failed[SLU_WRITE_EVENT] == 50 && s.waiting <= 100000,
	   "of 100 050 events %u wait, %u were dropped", s.waiting,
	   (unsigned)s.failed[SLU_WRITE_EVENT]);
}

int main(void)
{
	static const char *const names[] = { "fine",    "wrong", "made",  "lost",     "elsewhere",
					     "another", "gone",  "never", "disputed", "bound" };
	struct slu_kube_client_options co = { .max_tries = 1 };
	struct slu_place_stats s;
	struct slu_kube_config *cfg;
	struct slu_kube_client *client;
	struct world w = { 0 };
	bool quiet = true, never = false;
	char name[32];
	int events = 0;

	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	fake_begin(&w.f);
	fake_serve(&w.f, serve, &w, NULL, 0);
	cfg = fake_config(&w.f, "http", "", "");
	slu_kube_client_new(w.f.loop, cfg, &co, &client, NULL);
	w.core = slu_inbox_new(1000, NULL, NULL);
	w.place = slu_place_new(client, "here", CEILING);
	slu_place_answers(w.place, w.core);
	for (size_t i = 0; i < SLU_LEN(names); i++)
		ask(&w, names[i], i + 1);
	tick(&w);
	slu_loop_run_until(w.f.loop, &w.done, 20 * SLU_NS_PER_S);

	check(&w, "fine", SLU_KUBE_OK, 1, 0, "a plain binding is answered OK");
	check(&w, "wrong", SLU_KUBE_INVALID, 1, 0, "a refusal is a refusal");
	check(&w, "made", SLU_KUBE_OK, 1, 1, "a binding answered by 504 that was made is OK");
	check(&w, "lost", SLU_KUBE_OK, 2, 1,
	      "a binding answered by 504 that was not made is sent once more");
	check(&w, "elsewhere", SLU_KUBE_CONFLICT, 1, 1,
	      "a binding answered by 504 whose pod is bound elsewhere is CONFLICT");
	check(&w, "another", SLU_KUBE_NOT_FOUND, 1, 1,
	      "a binding answered by 504 whose pod was replaced is NOT_FOUND");
	check(&w, "gone", SLU_KUBE_NOT_FOUND, 1, 1,
	      "a binding answered by 504 whose pod is gone is NOT_FOUND");
	check(&w, "disputed", SLU_KUBE_OK, 3, 2,
	      "a binding answered by 409 that was not made is sent until it is");
	check(&w, "bound", SLU_KUBE_OK, 1, 1, "a binding answered by 409 that was made is OK");
	check(&w, "never", SLU_KUBE_RETRYABLE, 4, 4, "504 for ever is given up");
	slu_place_stats(w.place, &s);
	ok(s.window == WINDOW && s.halvings > 0, "the server is spared: window %u, %u halvings",
	   s.window, (unsigned)s.halvings);

	hold(&w, "burst", BURST, 0, WINDOW);
	slu_place_stats(w.place, &s);
	ok(w.n_held == WINDOW && s.waiting == BURST - WINDOW,
	   "never more than allowed at once: %u, %u wait", w.n_held, s.waiting);
	let_go(&w);
	for (int i = 0; i < BURST; i++) {
		snprintf(name, sizeof name, "burst-%d", i);
		quiet &= find(&w, name)->binds == 1 && find(&w, name)->answered == 1;
	}
	ok(quiet, "a burst is bound, each once");

	hold(&w, "gang", GANG, 99, GANG);
	slu_place_stats(w.place, &s);
	ok(w.n_held == GANG && s.window < GANG, "a gang goes out as a whole: %u, window %u",
	   w.n_held, s.window);
	let_go(&w);

	ask(&w, "late", 300);
	hold(&w, "behind", BURST, 0, WINDOW);
	slu_loop_run_until(w.f.loop, &never, SLU_NS_PER_S + SLU_NS_PER_S / 2);
	while (find(&w, "late")->binds < 2 && w.n_held) {
		reply(w.held[--w.n_held], 201, "{}");
		slu_loop_run_until(w.f.loop, &never, 10 * SLU_NS_PER_MS);
	}
	slu_place_stats(w.place, &s);
	ok(find(&w, "late")->binds == 2 && s.waiting >= BURST - CEILING,
	   "a write that is sent again goes before the %u that wait", s.waiting);
	let_go(&w);
	ask(&w, "held", 400);
	let_go(&w);
	check(&w, "held", SLU_KUBE_OK, 3, 0,
	      "504 to the release of a held pod: until it is answered");
	for (int i = 0; i < 400 && !s.events_lost; i++) {
		slu_loop_run_until(w.f.loop, &never, 10 * SLU_NS_PER_MS);
		slu_place_stats(w.place, &s);
		if (!s.events_waiting && !s.under_way && !s.waiting)
			break;
	}
	for (uint32_t i = 0; i < w.n_pods; i++)
		events += w.pod[i].events;
	ok(events == 1 + 5 + BURST + GANG + 1 + BURST && find(&w, "fine")->events == 2 &&
		   !s.events_lost,
	   "an event for each that was bound, again where the server could not: %d, lost %u",
	   events, (unsigned)s.events_lost);

	test_flood(&w);

	slu_timer_stop(&w.tick);
	slu_place_close(w.place);
	slu_kube_client_free(client);
	slu_place_free(w.place);
	slu_inbox_free(w.core);
	slu_kube_config_unref(cfg);
	fake_end(&w.f);
	return tap_done();
}
