/* The reflector against a server that does everything wrong, step by step: each request gets the
 * next answer of a script, and must be the one the script expects. */
#include "kube/reflector.h"
#include "kubefake.h"

struct answer {
	const char *want; /* in the query; a leading '!' text must not be there */
	int status;       /* 0: break off after the body; -1: leave open */
	const char *body;
};

#define N(name, uid, rv) \
	"{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv "\"}}"
#define EV(type, obj) "{\"type\":\"" type "\",\"object\":" obj "}\n"
#define STATUS(code, reason)                                          \
	"{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason \
	"\",\"message\":\"it " reason "\"}"

static const struct answer hard_life[] = {
	{ "limit=2", 503, STATUS("503", "ServiceUnavailable") },
	{ "limit=2", 200,
	  "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" N("a", "1", "3") },
	{ "limit=2", 200, "{\"items\":[]}" }, /* no version */
	{ "limit=2", 0, "{\"metadata\"" },
	{ "!continue", 200,
	  "{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"a b&c\"},\"items\":[" N(
		  "a", "1", "3") "]}" },
	{ "continue=a%20b%26c", 410, STATUS("410", "Expired") },
	{ "!continue", 200,
	  "{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"t2\"},\"items\":[" N(
		  "a", "1", "3") "]}" },
	{ "continue=t2", 200,
	  "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" N("b", "2", "4") "]}" },
	/* a break in the middle of a frame */
	{ "resourceVersion=10", 0, EV("ADDED", N("c", "3", "11")) "{\"type\":\"MODI" },
	/* the same again from the last safe version, then rubbish */
	{ "resourceVersion=10", -1,
	  EV("ADDED", N("c", "3", "11")) EV("MODIFIED", N("a", "1", "12")) "rubbish\n" },
	{ "resourceVersion=11", -1,
	  EV("MODIFIED", N("a", "1", "12")) EV("ERROR", STATUS("410", "Expired")) },
	/* b is gone, c has changed, a is as it was */
	{ "!watch", 200,
	  "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" N("a", "1", "12") "," N(
		  "c", "3", "15") "]}" },
	{ "resourceVersion=20", 410, STATUS("410", "Expired") },
	{ "!watch", 200,
	  "{\"metadata\":{\"resourceVersion\":\"30\"},\"items\":[" N("a", "1", "12") "," N(
		  "c", "9", "22") "]}" },
	{ "resourceVersion=30", 500, STATUS("500", "InternalError") },
	{ "resourceVersion=30", 200, EV("BOOKMARK", N("", "", "40")) },
	{ "resourceVersion=40", 504, STATUS("504", "Timeout") },
	{ "resourceVersion=40", -1, EV("DELETED", N("a", "1", "41")) EV("TOMORROW", "{}") },
};

struct world {
	struct fake f;
	const struct answer *script;
	size_t n, at;
	uint32_t wrong, troubles, recoveries, firsts, syncs, refusals, allowances;
	struct slu_exchange *open[32];
	uint32_t nopen;
	char journal[512];
	char last_trouble[256];
	bool over;
};

static void serve(struct slu_exchange *x, void *arg)
{
	struct world *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	const struct answer *a = &w->script[w->at];
	bool found;

	if (w->at >= w->n) { /* what comes after the script is held */
		w->open[w->nopen++ % 32] = x;
		return;
	}
	found = strstr(q->query, a->want + (a->want[0] == '!'));
	if (found != (a->want[0] != '!')) {
		w->wrong++;
		printf("# step %zu: %s?%s instead of %s\n", w->at, q->path, q->query, a->want);
	}
	w->at++;
	w->over = w->at == w->n;
	if (a->status > 0) {
		slu_http_reply(x, a->status, "application/json", a->body, strlen(a->body));
		return;
	}
	slu_http_reply_begin(x, 200, "application/json");
	slu_http_reply_write(x, a->body, strlen(a->body));
	if (a->status < 0)
		w->open[w->nopen++ % 32] = x;
	else
		slu_http_reply_on_drain(x, (slu_call_fn *)slu_http_reply_abort, x);
}

static void changed(void *arg, const struct slu_kobj *old, const struct slu_kobj *now)
{
	struct world *w = arg;
	size_t n = strlen(w->journal);

	snprintf(w->journal + n, sizeof w->journal - n, "%s%s%" PRIu64 " ",
		 !old  ? "+"
		 : now ? "~"
		       : "-",
		 (now ? now : old)->meta.name, (now ? now : old)->meta.rv);
}

static void synced(void *arg, bool first)
{
	struct world *w = arg;

	w->syncs++;
	w->firsts += first;
}

static void trouble(void *arg, const char *sentence)
{
	struct world *w = arg;

	if (sentence) {
		w->troubles++;
		snprintf(w->last_trouble, sizeof w->last_trouble, "%s", sentence);
	} else {
		w->recoveries++;
	}
}

static void refused(void *arg, const char *sentence)
{
	struct world *w = arg;

	if (sentence) {
		w->refusals += !w->firsts; /* before the mirror is synced */
		snprintf(w->last_trouble, sizeof w->last_trouble, "%s", sentence);
	} else {
		w->allowances++;
	}
}

static bool never;

static void run(struct world *w, const struct answer *script, size_t n, bool optional,
		struct slu_mirror_stats *st)
{
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_kcodec *codec = slu_kcodec_new(pool);
	struct slu_reflector_options o = { .page = 2,
					   .page_bytes = 4096,
					   .json = true,
					   .optional = optional,
					   .absent_ns = 20 * SLU_NS_PER_MS,
					   .retry_ns = 2 * SLU_NS_PER_MS,
					   .retry_max_ns = 10 * SLU_NS_PER_MS,
					   .trouble = trouble,
					   .refused = refused };
	struct slu_mirror_handler h = { changed, synced, w };
	struct slu_kube_client *c = NULL;
	struct slu_reflector *r = NULL;
	struct slu_kube_config *cfg;
	struct slu_error err = { 0 };
	uint32_t strings = 1;
	size_t bytes;

	memset(w, 0, sizeof *w);
	w->script = script;
	w->n = n;
	fake_begin(&w->f);
	fake_serve(&w->f, serve, w, NULL, 100);
	cfg = fake_config(&w->f, "http", "", "    token: secret\n");
	if (slu_kube_client_new(w->f.loop, cfg, NULL, &c, &err) < 0 ||
	    slu_reflector_new(c, SLU_KIND_NODE, codec, &h, &o, &r, &err) < 0)
		printf("# %s\n", err.text);
	slu_loop_run_until(w->f.loop, &w->over, 60 * SLU_NS_PER_S);
	for (int i = 0; i < 100; i++) /* turns of the loop, however slow the machine is */
		slu_loop_run_until(w->f.loop, &never, SLU_NS_PER_MS);
	slu_mirror_stats(slu_reflector_mirror(r), st);
	slu_reflector_free(r);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	for (uint32_t i = 0; i < w->nopen && i < 32; i++)
		slu_http_reply_abort(w->open[i]);
	fake_end(&w->f);
	slu_strpool_stat(pool, &strings, &bytes);
	w->wrong += strings != 0;
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
}

int main(void)
{
	static const struct answer absent[] = {
		{ "limit=2", 404, STATUS("404", "NotFound") },
		{ "limit=2", 404, STATUS("404", "NotFound") },
		{ "limit=2", 200,
		  "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" N("a", "1", "3") "]}" },
		{ "resourceVersion=5", 404, STATUS("404", "NotFound") },
		{ "!watch", 404, STATUS("404", "NotFound") },
	};
	static const struct answer refused[] = {
		{ "limit=2", 403, STATUS("403", "Forbidden") },
		{ "limit=2", 403, STATUS("403", "Forbidden") },
	};
#define FORBIDDEN { "limit=2", 403, STATUS("403", "Forbidden") }
	/* Newer than its rules; then they are applied, taken away for a moment, and there again. */
	static const struct answer not_allowed[] = {
		FORBIDDEN,
		FORBIDDEN,
		FORBIDDEN,
		FORBIDDEN,
		FORBIDDEN,
		{ "limit=2", 503, STATUS("503", "ServiceUnavailable") },
		FORBIDDEN,
		{ "limit=2", 200,
		  "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" N("a", "1", "3") "]}" },
		{ "resourceVersion=5", 410, STATUS("410", "Expired") },
		FORBIDDEN,
		FORBIDDEN,
		FORBIDDEN,
		FORBIDDEN,
		FORBIDDEN,
		{ "limit=2", 200,
		  "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" N("a", "1", "3") "," N(
			  "b", "2", "8") "]}" },
	};
	/* A server that starts does not know the rules yet. */
	static const struct answer starting[] = {
		FORBIDDEN,
		FORBIDDEN,
		{ "limit=2", 200,
		  "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" N("a", "1", "3") "]}" },
	};
	static const struct answer no_token[] = {
		{ "limit=2", 401, STATUS("401", "Unauthorized") },
		{ "limit=2", 401, STATUS("401", "Unauthorized") },
		{ "limit=2", 401, STATUS("401", "Unauthorized") },
		{ "limit=2", 401, STATUS("401", "Unauthorized") },
		{ "limit=2", 401, STATUS("401", "Unauthorized") },
		{ "limit=2", 401, STATUS("401", "Unauthorized") },
	};
	static char big[6000];
	const struct answer large[] = {
		{ "limit=2", 200, big },
		{ "limit=1", 200,
		  "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" N("a", "1", "3") "]}" },
	};
	struct slu_mirror_stats st = { 0 };
	struct world w;

	memset(big, ' ', sizeof big - 1);
	run(&w, large, SLU_LEN(large), false, &st);
	ok(w.over && !w.wrong && !strcmp(w.journal, "+a3 "),
	   "a page that is too large is asked for in halves: %s", w.journal);

	run(&w, hard_life, SLU_LEN(hard_life), false, &st);
	ok(w.over && w.wrong == 0, "%zu of %zu requests as expected, %u wrong", w.at, w.n, w.wrong);
	ok(strcmp(w.journal, "+a3 +b4 +c11 ~a12 ~c15 -b4 -c15 +c22 -a41 ") == 0,
	   "each change is handed over once: %s", w.journal);
	ok(w.firsts == 1 && w.syncs == 3, "synced once for the first time, three times in all");
	ok(st.expired == 3 && st.bad == 3 && st.repeated >= 3,
	   "%d times 410, %d unreadable, %d repeated", (int)st.expired, (int)st.bad,
	   (int)st.repeated);
	ok(w.troubles >= 2 && w.recoveries >= 1 && w.recoveries <= w.troubles,
	   "%u troubles told (last: %s), %u recoveries", w.troubles, w.last_trouble, w.recoveries);

	run(&w, absent, SLU_LEN(absent), true, &st);
	ok(w.over && w.wrong == 0 && strcmp(w.journal, "+a3 -a3 ") == 0 && w.firsts == 1 &&
		   !w.troubles,
	   "a kind that comes and goes: %s", w.journal);

	run(&w, refused, SLU_LEN(refused), false, &st);
	ok(w.over && w.firsts == 0 && strstr(w.last_trouble, "nodes"),
	   "a refused list is told as trouble: %s", w.last_trouble);
	run(&w, not_allowed, SLU_LEN(not_allowed) - 8, true, &st);
	ok(w.over && w.wrong == 0 && w.firsts == 1 && !w.troubles && w.refusals == 1 &&
		   !w.allowances && strstr(w.last_trouble, "nodes"),
	   "an optional kind that is refused counts as absent, told once: %s", w.last_trouble);
	run(&w, not_allowed, SLU_LEN(not_allowed), true, &st);
	ok(w.over && w.wrong == 0 && w.firsts == 1 && w.syncs == 3 && w.refusals == 1 &&
		   w.allowances == 1 && w.troubles && w.recoveries &&
		   strcmp(w.journal, "+a3 +b8 ") == 0,
	   "a kind is listed once it is allowed, and stays when the right is taken back: %s",
	   w.journal);
	run(&w, starting, SLU_LEN(starting), true, &st);
	ok(w.over && w.wrong == 0 && w.firsts == 1 && w.syncs == 1 && !w.refusals && !w.allowances,
	   "a refusal or two while the server starts leave nothing out");
	run(&w, no_token, SLU_LEN(no_token), true, &st);
	ok(w.over && w.firsts == 0 && !w.refusals && w.troubles,
	   "whoever is not known at all is not told that kinds are missing");
	return tap_done();
}
