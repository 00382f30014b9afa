/* The daemon's own HTTP without memory: each allocation of a request fails in turn, in the
 * server, the routes, the core that is asked, the way back.  Each caller gets an answer or loses
 * its connection, and never waits for ever; the next caller is served as usual. */
#include "kubefake.h"

#include <fcntl.h>
#include <sys/un.h>

#include "base/log.h"
#include "control/core/core.h"
#include "control/io/feed.h"
#include "control/io/place.h"
#include "control/post/intent.h"
#include "serve/api.h"

struct world {
	struct fake f;
	struct slu_exchange *watch[64];
	uint32_t n_watches;
	struct slu_config *cfg;
	struct slu_kube_client *client;
	struct slu_strpool *pool;
	struct slu_intents *door;
	struct slu_place *place;
	struct slu_core *core;
	struct slu_feed *feed;
	struct slu_api *api;
	struct slu_api_setup setup;
	int64_t now_us;
	char socket[100];
};

#define LIST "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["

static const char pods[] = LIST
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"x\",\"uid\":\"u\",\"resourceVersion\":\"5\","
	"\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"sluice.sh/group\":\"g\","
	"\"sluice.sh/size\":\"2\"}},\"spec\":{\"schedulerName\":\"sluice\",\"containers\":[{\"name\":"
	"\"c\"}]},\"status\":{\"phase\":\"Pending\"}}]}";
static const char nodes[] = LIST
	"{\"metadata\":{\"name\":\"n\",\"uid\":\"n\",\"resourceVersion\":\"3\"},"
	"\"status\":{\"allocatable\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":\"110\"},"
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}]}";

static void serve(struct slu_exchange *x, void *arg)
{
	struct world *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	const char *body = q->method != SLU_HTTP_GET           ? "{}"
			   : !strcmp(q->path, "/api/v1/pods")  ? pods
			   : !strcmp(q->path, "/api/v1/nodes") ? nodes
							       : LIST "]}";

	if (strstr(q->query, "watch=") && w->n_watches < SLU_LEN(w->watch))
		w->watch[w->n_watches++] = x; /* never answered */
	else if (strstr(q->query, "watch="))
		slu_http_reply_text(x, 500, "no room");
	else
		slu_http_reply(x, 200, "application/json", body, strlen(body));
}

/* One round of the loop, and one cycle of the core, which has no thread here. */
static void turn(struct world *w)
{
	struct slu_record *r;
	bool no = false;

	slu_loop_run_until(w->f.loop, &no, 1);
	while (slu_inbox_take(slu_core_inbox(w->core), &r, 1))
		slu_core_take(w->core, r, w->now_us);
	w->now_us += 1000;
	(void)(slu_core_cycle(w->core, w->now_us, NULL) < 0);
}

static void begin(struct world *w)
{
	struct slu_kube_client_options o = { .max_tries = 1 };
	struct slu_journal_setup js = { .url = "memory:", .cluster = "c", .holder = "test" };
	struct slu_core_setup cs = { 0 };
	struct slu_kube_config *kc;
	struct slu_error err = { 0 };
	char yaml[300];

	*w = (struct world){ .now_us = INT64_C(1767225610000000) };
	fake_begin(&w->f);
	fake_serve(&w->f, serve, w, NULL, 0);
	snprintf(w->socket, sizeof w->socket, "%s/second", w->f.dir);
	snprintf(yaml, sizeof yaml, "serve: {socket: %s, health: \"127.0.0.1:0\"}\n", w->socket);
	kc = fake_config(&w->f, "http", "", "");
	w->pool = slu_strpool_new();
	if (slu_config_parse("test", yaml, strlen(yaml), &w->cfg, &err) < 0 ||
	    slu_kube_client_new(w->f.loop, kc, &o, &w->client, &err) < 0 ||
	    slu_intents_new(&js, &w->door, &err) < 0)
		ok(false, "start: %s", err.text);
	slu_kube_config_unref(kc);
	w->place = slu_place_new(w->client, "test", 8);
	cs.config = w->cfg;
	cs.door = w->door;
	cs.out = slu_place_inbox(w->place);
	cs.pool = w->pool;
	if (slu_core_new(&cs, &w->core, &err) < 0)
		ok(false, "core: %s", err.text);
	slu_place_answers(w->place, slu_core_inbox(w->core));
	if (slu_feed_new(w->client, w->cfg, slu_core_inbox(w->core), w->pool, &w->feed, &err) < 0)
		ok(false, "feed: %s", err.text);
	w->setup = (struct slu_api_setup){ .loop = w->f.loop,
					   .core = w->core,
					   .feed = w->feed,
					   .place = w->place,
					   .client = w->client,
					   .config = w->cfg };
}

static void end(struct world *w)
{
	slu_api_close(w->api);
	slu_place_close(w->place);
	slu_feed_free(w->feed);
	slu_core_free(w->core);
	slu_api_free(w->api);
	slu_kube_client_free(w->client);
	slu_place_free(w->place);
	slu_intents_free(w->door, 1000);
	slu_config_free(w->cfg);
	slu_strpool_free(w->pool);
	for (uint32_t i = 0; i < w->n_watches; i++)
		slu_http_reply_text(w->watch[i], 500,
				    "the test ends"); /* gives the exchange back */
	fake_end(&w->f);
}

static int caller(const struct world *w, const char *request)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", w->socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
		close(fd);
		return -1;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* The status of the answer, 0 if the connection ends, -1 if nothing comes.  `armed`: memory is short for
 * the first rounds. */
static int hear(struct world *w, int fd, bool armed, bool *hit)
{
	char text[4096];
	int status = -1;

	for (int i = 0; status < 0 && i < 3000; i++) {
		ssize_t n;

		turn(w);
		if (armed && i == 12)
			*hit = slu_fault_disarm();
		n = recv(fd, text, sizeof text - 1, 0);
		if (n > 0) {
			text[n] = '\0';
			status = (int)strtol(text + strcspn(text, " "), NULL, 10);
		} else if (!n || errno != EAGAIN) {
			status = 0;
		}
	}
	if (armed)
		*hit |= slu_fault_disarm();
	return status;
}

static int call(struct world *w, const char *request)
{
	int fd = caller(w, request), status = fd < 0 ? -2 : hear(w, fd, false, NULL);

	close(fd);
	return status;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
#define POST(path) \
	"POST " path " HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

/* `once`: one allocation fails; else all from that one on, for a dozen rounds. */
static void starve(struct world *w, const char *request, bool once)
{
	int good = call(w, request), silent = 0, odd = 0;
	char what[60];
	bool hit = true;
	long k = 0;

	snprintf(what, sizeof what, "%.*s", (int)strcspn(strchr(request, '/'), " "),
		 strchr(request, '/'));
	for (; hit && k < 4000; k++) {
		int fd = caller(w, request), status;

		hit = false;
		if (once)
			slu_fault_arm_once(k);
		else
			slu_fault_arm(k);
		status = hear(w, fd, true, &hit);
		close(fd);
		silent += status == -1;
		odd += status != good && status != 0 && status < 500 && status != -1;
		if (status == -1)
			printf("# %s: allocation %ld: silence\n", what, k);
		else if (status != good && status && status < 500)
			printf("# %s: allocation %ld: %d\n", what, k, status);
	}
	ok(k > 5 && k < 4000 && !silent,
	   "%s: %ld allocations may fail%s, and no caller is left waiting (%d)", what, k,
	   once ? "" : " with all that follow", silent);
	ok(!odd, "%s: no caller gets a 4xx status (%d)", what, odd);
	w->now_us += 2000000; /* the core looks at everything again a second later */
	for (int i = 0; i < 10; i++)
		turn(w);
	ok(call(w, request) == good, "%s: the next caller is served (%d)", what, good);
}

/* The API cannot be opened without memory: it says so, and leaves nothing behind. */
static void test_open(struct world *w)
{
	bool hit = true, clean = true;
	long k = 0;

	for (; hit && k < 4000; k++) {
		struct slu_error err = { 0 };
		int rc;

		slu_fault_arm(k);
		rc = slu_api_new(&w->setup, &w->api, &err);
		hit = slu_fault_disarm();
		clean &= rc == 0 || (*err.text && !w->api);
		if (rc < 0 && (!*err.text || w->api))
			printf("# allocation %ld: %d \"%s\"\n", k, rc, err.text);
		if (!rc && hit) {
			slu_api_free(w->api);
			w->api = NULL;
		}
	}
	ok(clean && w->api && k > 3, "%ld allocations of opening may fail", k - 1);
}

int main(void)
{
	static const char *const request[] = {
		GET("/healthz"),
		GET("/readyz"),
		GET("/metrics"),
		GET("/v1/config"),
		GET("/v1/jobs?all=true"),
		GET("/v1/jobs/x/g?why=true"),
		GET("/v1/nodes"),
		GET("/v1/jobs/x/nobody"),
		POST("/v1/jobs/x/g/hold"),
		POST("/v1/jobs/x/g/priority/7"),
		POST("/v1/nodes/n/drain?from=%2B1h&until=%2B2h"),
		POST("/v1/reservations/x/r?nodes=n&label=a&from=%2B1h&until=%2B2h&users=a,,b"),
	};
	struct world w;

	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, open("/dev/null", O_WRONLY | O_CLOEXEC));
	begin(&w);
	test_open(&w);
	for (int i = 0; i < 300; i++)
		turn(&w);
	ok(call(&w, GET("/readyz")) == 200, "the daemon is ready");
	for (size_t i = 0; i < SLU_LEN(request); i++)
		for (int once = 0; once < 2; once++)
			starve(&w, request[i], once);
	end(&w);
	return tap_done();
}
