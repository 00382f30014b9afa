/* The feed against a server that refuses kinds or does not have them: the core hears that every kind is
 * complete, or does not, and the log says what to do. */
#include "control/io/feed.h"

#include "base/log.h"
#include "control/post/record.h"
#include "control/rules/kinds.h"
#include "kubefake.h"

#define TAKE 64

struct world {
	struct fake f;
	const char *refused; /* the resources that this account may not list, each in blanks */
	const char *missing; /* those that the server does not have */
	uint32_t synced;     /* kinds that the core was told of */
	bool absent[SLU_KIND_COUNT], by_refusal[SLU_KIND_COUNT];
	struct slu_exchange *open[64];
	uint32_t nopen, lists; /* lists: of what is refused or missing */
	bool over;             /* never */
	char log[8192];
};

static bool is_listed(const char *list, const char *resource)
{
	char word[64];

	snprintf(word, sizeof word, " %s ", resource);
	return strstr(list, word);
}

static void serve(struct slu_exchange *x, void *arg)
{
	static const char none[] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}";
	static const char no[] = "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\","
				 "\"message\":\"not for you\"}";
	static const char unknown[] = "404 page not found\n"; /* of a group that is not there */
	struct world *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	const char *resource = strrchr(q->path, '/') + 1;

	if (strstr(q->query, "watch=1") && w->nopen < SLU_LEN(w->open)) {
		w->open[w->nopen++] = x;
	} else if (is_listed(w->refused, resource)) {
		w->lists++;
		slu_http_reply(x, 403, "application/json", no, sizeof no - 1);
	} else if (is_listed(w->missing, resource)) {
		w->lists++;
		slu_http_reply(x, 404, "text/plain", unknown, sizeof unknown - 1);
	} else {
		slu_http_reply(x, 200, "application/json", none, sizeof none - 1);
	}
}

static void take(struct world *w, struct slu_inbox *in)
{
	struct slu_record *r[TAKE];
	uint32_t n = slu_inbox_take(in, r, TAKE);

	for (uint32_t i = 0; i < n; i++) {
		const struct slu_rec_synced *s = (const struct slu_rec_synced *)r[i];

		if (r[i]->kind == SLU_REC_SYNCED) {
			w->synced |= 1u << s->kind;
			w->absent[s->kind] = s->absent;
			w->by_refusal[s->kind] = s->refused;
		}
		r[i]->free(r[i]);
	}
}

static uint32_t bits(uint32_t v)
{
	return (uint32_t)__builtin_popcount(v);
}

static uint32_t times(const char *text, const char *word)
{
	uint32_t n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* Until so many kinds are complete and those not to be had were asked for `lists` times. */
static void run(struct world *w, const char *refused, const char *missing, uint32_t kinds,
		uint32_t lists, struct slu_feed_stats *st)
{
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_inbox *in = slu_inbox_new(1024, NULL, NULL);
	struct slu_kube_client *c = NULL;
	struct slu_config *settings = NULL;
	struct slu_kube_config *cfg;
	struct slu_feed *f = NULL;
	struct slu_error err = { 0 };
	char path[96];
	FILE *log;
	size_t n;

	memset(w, 0, sizeof *w);
	w->refused = refused;
	w->missing = missing;
	fake_begin(&w->f);
	snprintf(path, sizeof path, "%s/second", w->f.dir);
	log = fopen(path, "w+");
	slu_log_setup(SLU_INFO, SLU_LOG_TEXT, fileno(log));
	fake_serve(&w->f, serve, w, NULL, 100);
	cfg = fake_config(&w->f, "http", "", "    token: secret\n");
	if (slu_config_default(&settings, &err) < 0 ||
	    slu_kube_client_new(w->f.loop, cfg, NULL, &c, &err) < 0 ||
	    slu_feed_new(c, settings, in, pool, &f, &err) < 0)
		printf("# %s\n", err.text);
	for (int i = 0; i < 6000 && (bits(w->synced) < kinds || w->lists < lists); i++) {
		slu_loop_run_until(w->f.loop, &w->over, 10 * SLU_NS_PER_MS);
		take(w, in);
	}
	slu_feed_stats(f, st);
	slu_feed_free(f);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	slu_config_free(settings);
	for (uint32_t i = 0; i < w->nopen; i++)
		slu_http_reply_abort(w->open[i]);
	slu_log_setup(SLU_INFO, SLU_LOG_TEXT, STDERR_FILENO);
	rewind(log);
	n = fread(w->log, 1, sizeof w->log - 1, log);
	w->log[n] = '\0';
	fclose(log);
	fake_end(&w->f);
	slu_inbox_free(in);
	slu_strpool_free(pool);
}

/* Kinds that describe nodes inside, which earlier releases could not read: a daemon that is
 * newer than its rules, or on a server without the kinds, works without them.  It reports each
 * refused kind once, although it asks again. */
static void test_inside_of_nodes(void)
{
	static const enum slu_kkind inside[] = { SLU_KIND_CSINODE, SLU_KIND_ATTACHMENT,
						 SLU_KIND_TOPOLOGY };
	static const char resources[] = " csinodes  volumeattachments  noderesourcetopologies ";
	struct slu_feed_stats st = { 0 };
	static struct world w;
	uint32_t all = (uint32_t)slu_kinds_n;
	bool left_out = true, absent = true;

	run(&w, resources, "", all, 5 * SLU_LEN(inside), &st);
	for (size_t i = 0; i < SLU_LEN(inside); i++)
		left_out &= w.absent[inside[i]] && w.by_refusal[inside[i]];
	ok(bits(w.synced) == all && st.synced && left_out && !*st.trouble,
	   "three kinds that are refused are left out, and all others are complete: %u of %u",
	   bits(w.synced), all);
	ok(times(w.log, "\n") == 3 && times(w.log, "kind=CSINode ") == 1 &&
		   times(w.log, "kind=VolumeAttachment ") == 1 &&
		   times(w.log, "kind=NodeResourceTopology ") == 1,
	   "each of them is told once, however often it is asked for: %s", w.log);

	run(&w, "", resources, all, SLU_LEN(inside), &st);
	for (size_t i = 0; i < SLU_LEN(inside); i++)
		absent &= w.absent[inside[i]] && !w.by_refusal[inside[i]];
	ok(bits(w.synced) == all && st.synced && absent && !*st.trouble && !*w.log,
	   "three kinds that the server does not have are empty, and nothing is said: %s", w.log);
}

int main(void)
{
	struct slu_feed_stats st = { 0 };
	static struct world w;
	uint32_t all = (uint32_t)slu_kinds_n;

	run(&w, " reservations ", "", all, 4, &st);
	ok(bits(w.synced) == all && st.synced && w.absent[SLU_KIND_RESERVATION] &&
		   w.by_refusal[SLU_KIND_RESERVATION],
	   "a daemon newer than its rules has everything it needs: %u of %u kinds", bits(w.synced),
	   all);
	ok(!w.absent[SLU_KIND_POD] && !w.absent[SLU_KIND_NODE] && !*st.trouble,
	   "nothing else is missing, and nothing is wrong: %s", st.trouble);
	ok(times(w.log, "\n") == 1 && strstr(w.log, "apply deploy/rbac.yaml again") &&
		   strstr(w.log, "kind=Reservation") && strstr(w.log, "group=sluice.sh"),
	   "one line says which kind and what to do: %s", w.log);

	run(&w, " pods ", "", all - 1, 5, &st);
	ok(bits(w.synced) == all - 1 && !(w.synced & 1u << SLU_KIND_POD) && !st.synced &&
		   strstr(st.trouble, "pods") && !strstr(w.log, "left out"),
	   "without pods there is nothing to do: %s", st.trouble);
	test_inside_of_nodes();
	return tap_done();
}
