/* Which caller may ask what: a pretend API server answers the checks, and the tests compare what
 * callers of the HTTPS port get. */
#include "kubefake.h"

#include <arpa/inet.h>

#include "serve/auth.h"
#include "wire/json.h"

struct world {
	struct fake api, door; /* one loop, the api's */
	struct slu_auth *auth;
	struct slu_kube_client *client;
	int tokens, accesses;          /* asked */
	struct slu_exchange *slow[64]; /* questions about the token "slow" that wait */
	int n_slow;
	int busy, strange; /* of those who came with it: sent away, not known */
	char user[64], path[64], verb[16], groups[64];
};

static void reply(struct slu_exchange *x, const char *json)
{
	slu_http_reply(x, 201, "application/json", json, strlen(json));
}

/* "ada" may get /v1/jobs, "bob" may get nothing, other tokens belong to no user; "broken" gets
 * no answer at all. */
static void api(struct slu_exchange *x, void *arg)
{
	struct world *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *spec, *what;
	const char *token;
	char text[300];

	if (slu_json_parse(q->body, q->body_len, NULL, &doc, NULL) < 0) {
		slu_http_reply(x, 400, NULL, "", 0);
		return;
	}
	spec = slu_json_get(slu_json_root(doc), "spec");
	if (strstr(q->path, "/tokenreviews")) {
		w->tokens++;
		token = slu_json_str_or(slu_json_get(spec, "token"), "");
		if (!strcmp(token, "broken")) {
			reply(x, "no JSON at all");
			return;
		}
		if (!strcmp(token, "slow")) {
			w->slow[w->n_slow++] = x;
			return;
		}
		if (!strcmp(token, "refused")) {
			slu_http_reply(x, 403, "application/json", "{}", 2);
			return;
		}
		snprintf(
			text, sizeof text,
			"{\"status\":{\"authenticated\":%s,\"user\":{\"username\":\"%s\",\"groups\":[\"g1\",\"g2\"]}}}",
			!strcmp(token, "ada") || !strcmp(token, "bob") ? "true" : "false", token);
		reply(x, text);
		return;
	}
	w->accesses++;
	what = slu_json_get(spec, "nonResourceAttributes");
	snprintf(w->user, sizeof w->user, "%s", slu_json_str_or(slu_json_get(spec, "user"), ""));
	snprintf(w->path, sizeof w->path, "%s", slu_json_str_or(slu_json_get(what, "path"), ""));
	snprintf(w->verb, sizeof w->verb, "%s", slu_json_str_or(slu_json_get(what, "verb"), ""));
	w->groups[0] = 0;
	slu_json_each (slu_json_get(spec, "groups"), it)
		snprintf(w->groups + strlen(w->groups), sizeof w->groups - strlen(w->groups), "%s ",
			 slu_json_str_or(it.val, "?"));
	if (!strcmp(w->path, "/v1/unsure"))
		reply(x, "{\"status\":");
	else
		reply(x, !strcmp(w->user, "ada") && !strcmp(w->path, "/v1/jobs") &&
					 !strcmp(w->verb, "get")
				 ? "{\"status\":{\"allowed\":true}}"
				 : "{\"status\":{\"allowed\":false}}");
}

static void answered(void *arg, struct slu_exchange *x, int status, const char *why)
{
	slu_http_reply_text(x, status, "%s", status == 200 ? "come in" : why);
}

static void door(struct slu_exchange *x, void *arg)
{
	struct world *w = arg;

	slu_auth_check(w->auth, x, answered, NULL);
}

/* The answer that a caller with this token gets. */
static void call(struct world *w, const char *token, enum slu_http_method m, const char *path,
		 int status, const char *text)
{
	struct slu_kube_client_options o = { .max_tries = 1 };
	struct slu_kube_request q = { .method = m, .path = path };
	struct slu_kube_answer a = { 0 };
	struct slu_kube_config *cfg;
	struct slu_kube_client *c = NULL;
	char user[64] = "";

	if (*token)
		snprintf(user, sizeof user, "    token: %s\n", token);
	cfg = fake_config(&w->door, "http", "", user);
	slu_kube_client_new(w->api.loop, cfg, &o, &c, NULL);
	(void)(slu_kube_do(c, &q, &a, NULL) < 0);
	ok(a.status == status && (!*text || (a.body && strstr(a.body, text))), "%s %s %s: %d %.*s",
	   *token ? token : "nobody", m == SLU_HTTP_GET ? "gets" : "posts", path, a.status,
	   (int)strcspn(a.body ? a.body : "", "\n"), a.body ? a.body : "");
	slu_kube_answer_done(&a);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
}

static void came(void *arg, const struct slu_kube_reply *r)
{
	struct world *w = arg;

	w->busy += r->status == 503;
	w->strange += r->status == 401;
}

/* Forty come at once with a token that the API server thinks about. */
static void test_crowd(struct world *w)
{
	struct slu_kube_client_options o = { .max_tries = 1, .max_inflight = 40 };
	struct slu_kube_request q = { .path = "/v1/jobs", .done = came, .arg = w };
	struct slu_kube_config *cfg = fake_config(&w->door, "http", "", "    token: slow\n");
	struct slu_kube_client *c = NULL;
	bool never = false;

	slu_kube_client_new(w->api.loop, cfg, &o, &c, NULL);
	for (int i = 0; i < 40; i++)
		if (slu_kube_send(c, &q, NULL) < 0)
			ok(false, "the request is sent");
	for (int i = 0; i < 100000 && w->busy + w->n_slow < 40; i++)
		slu_loop_run_until(w->api.loop, &never, SLU_NS_PER_MS);
	ok(w->n_slow == 32 && w->busy == 8, "%d are asked about, %d sent away", w->n_slow, w->busy);
	for (int i = 0; i < w->n_slow; i++)
		reply(w->slow[i], "{\"status\":{\"authenticated\":false}}");
	for (int i = 0; i < 100000 && w->strange < 32; i++)
		slu_loop_run_until(w->api.loop, &never, SLU_NS_PER_MS);
	ok(w->strange == 32, "%d have their answer", w->strange);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	call(w, "ada", SLU_HTTP_GET, "/v1/nodes", 403, "not allowed");
}

/* The status a bare caller gets while allocation k, and with `all` each one after it, fails; 0: the
 * connection ended, -1: nothing came. */
static int starved_call(struct world *w, const char *token, long k, bool all, bool *hit)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = -1;
	char text[2000];
	bool no = false;
	int n = snprintf(text, sizeof text,
			 "GET /v1/jobs HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n"
			 "Connection: close\r\n\r\n",
			 token);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)w->door.port);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
	    send(fd, text, (size_t)n, MSG_NOSIGNAL) != n) {
		close(fd);
		return -2;
	}
	if (all)
		slu_fault_arm(k);
	else
		slu_fault_arm_once(k);
	for (int i = 0; status < 0 && i < 3000; i++) {
		ssize_t got;

		slu_loop_run_until(w->api.loop, &no, i < 200 ? 50000 : SLU_NS_PER_MS);
		if (i == 150)
			*hit = slu_fault_disarm();
		got = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
		if (got > 0) {
			text[got] = 0;
			status = (int)strtol(text + strcspn(text, " "), NULL, 10);
		} else if (!got || errno != EAGAIN) {
			status = 0;
		}
	}
	*hit |= slu_fault_disarm();
	close(fd);
	return status;
}

/* Each allocation between a caller and the answer fails, in the server, in the check and in the
 * client that asks the API server (and in the pretend server, which runs on the same loop): no
 * caller without the right gets in, and every caller gets an answer or loses its connection. */
static void test_starved(struct world *w, const char *token, int status)
{
	int in = 0, silent = 0, wrong = 0, last = 0;
	long k = 0;
	bool hit;

	for (int all = 0; all < 2; all++) {
		k = 0;
		do {
			int got;

			hit = false;
			/* A permission that is kept needs no review. */
			slu_auth_free(w->auth);
			w->auth = slu_auth_new(w->client);
			got = last = starved_call(w, token, k++, all, &hit);
			in += got == 200;
			silent += got == -1;
			wrong += got != status && got != 0 && got < 500 && got != -1;
		} while (hit && k < 5000);
	}
	ok(!silent && k > 20 && k < 5000 && last == status,
	   "%s: %ld allocations may fail, and no caller waits for ever (%d)", token, k, silent);
	ok(!wrong && (status == 200 || !in), "%s: no answer is wrong (%d)", token, wrong);
	call(w, "ada", SLU_HTTP_GET, "/v1/jobs", 200, "come in");
	call(w, "bob", SLU_HTTP_GET, "/v1/jobs", 403, "not allowed");
}

int main(void)
{
	struct world w = { 0 };
	struct slu_kube_client_options o = { .max_tries = 1 };
	struct slu_kube_config *cfg;
	struct slu_kube_client *c = NULL;

	fake_begin(&w.api);
	fake_serve(&w.api, api, &w, NULL, 0);
	w.door = w.api;
	fake_serve(&w.door, door, &w, NULL, 0);
	cfg = fake_config(&w.api, "http", "", "    token: ours\n");
	slu_kube_client_new(w.api.loop, cfg, &o, &c, NULL);
	w.client = c;
	w.auth = slu_auth_new(c);

	call(&w, "", SLU_HTTP_GET, "/v1/jobs", 401, "token is needed");
	ok(w.tokens == 0, "a request without a token asks no review");
	call(&w, "eve", SLU_HTTP_GET, "/v1/jobs", 401, "not valid in this cluster");
	ok(w.accesses == 0, "the rights of an unknown user are not asked for");
	call(&w, "ada", SLU_HTTP_GET, "/v1/jobs", 200, "come in");
	ok(!strcmp(w.user, "ada") && !strcmp(w.groups, "g1 g2 ") && !strcmp(w.verb, "get"),
	   "asked for %s in %swith the verb %s", w.user, w.groups, w.verb);
	call(&w, "ada", SLU_HTTP_GET, "/v1/jobs", 200, "come in");
	ok(w.tokens == 2 && w.accesses == 1, "the second time the API server is not asked");
	call(&w, "ada", SLU_HTTP_POST, "/v1/jobs", 403, "and verb \"post\" is needed");
	call(&w, "ada", SLU_HTTP_GET, "/v1/nodes", 403, "\"/v1/nodes\"");
	call(&w, "bob", SLU_HTTP_GET, "/v1/jobs", 403, "not allowed");
	ok(w.accesses == 4, "an answer for one user, or one verb, does not count for another");
	call(&w, "ada", SLU_HTTP_GET, "/v1/nodes", 403, "not allowed");
	ok(w.accesses == 5, "a refusal is not kept");
	call(&w, "broken", SLU_HTTP_GET, "/v1/jobs", 503, "whose token");
	call(&w, "refused", SLU_HTTP_GET, "/v1/jobs", 503, "whose token");
	call(&w, "ada", SLU_HTTP_GET, "/v1/unsure", 503, "whether this is allowed");

	test_crowd(&w);
	test_starved(&w, "ada", 200);
	test_starved(&w, "bob", 403);
	test_starved(&w, "eve", 401);

	slu_auth_free(w.auth);
	slu_kube_client_free(c);
	slu_kube_config_unref(cfg);
	slu_server_free(w.door.server);
	fake_end(&w.api);
	return tap_done();
}
