#include "rpc/health.h"

#include "base/vec.h"

#define MAX_WATCHERS 256

enum { UNKNOWN, SERVING, NOT_SERVING, SERVICE_UNKNOWN };

struct request {
	struct slu_text service;
};
struct response {
	int32_t status;
};

static const struct slu_msg_word words[] = { { "UNKNOWN", UNKNOWN },
					     { "SERVING", SERVING },
					     { "NOT_SERVING", NOT_SERVING },
					     { "SERVICE_UNKNOWN", SERVICE_UNKNOWN },
					     { 0 } };
static const struct slu_msg_enum statuses = { "ServingStatus", words };
static const struct slu_msg_field request_fields[] = {
	{ 1, "service", SLU_MSG_STR, offsetof(struct request, service) },
};
static const struct slu_msg_field response_fields[] = {
	{ 1, "status", SLU_MSG_ENUM, offsetof(struct response, status), .words = &statuses },
};
static const struct slu_msg request = SLU_MSG("HealthCheckRequest", struct request, request_fields);
static const struct slu_msg response = SLU_MSG("HealthCheckResponse", struct response,
					       response_fields);
static const struct slu_msg_method methods[] = {
	{ "Check", &request, &response },
	{ "Watch", &request, &response, .server_streams = true },
};
static const struct slu_msg_service service = { "Health", methods, SLU_LEN(methods) };
const struct slu_msg_file slu_health_file = { .name = "grpc/health/v1/health.proto",
					      .package = "grpc.health.v1",
					      .service = &service };

struct watcher {
	struct slu_health *h;
	struct slu_grpc_call *call;
	struct watcher *next, **link;
	bool known;
};

struct slu_health {
	const char *const *services;
	struct watcher *watchers;
	uint32_t n;
	bool serving;
	struct slu_grpc_method method[2];
};

struct slu_health *slu_health_new(const char *const *services)
{
	struct slu_health *h = slu_calloc(1, sizeof *h);

	if (h)
		h->services = services;
	return h;
}

static bool is_known(const struct slu_health *h, struct slu_text name)
{
	if (!name.n)
		return true;
	for (const char *const *s = h->services; *s; s++)
		if (strlen(*s) == name.n && !memcmp(*s, name.p, name.n))
			return true;
	return false;
}

static int send_status(const struct slu_health *h, struct slu_grpc_call *c, bool known)
{
	struct response r = { !known ? SERVICE_UNKNOWN : h->serving ? SERVING : NOT_SERVING };
	struct slu_buf b = SLU_BUF_INIT(64);

	slu_msg_write(&response, &r, &b);
	return slu_grpc_send(c, &b);
}

/* Read the name of the service that the client asks about.  Returns false if the call is answered with an error. */
static bool read_request(struct slu_health *h, struct slu_grpc_call *c, struct slu_text *name)
{
	struct request q = { 0 };
	struct slu_arena a = { 0 };
	struct slu_error err = { 0 };
	size_t n;
	const void *p = slu_grpc_message(c, &n);
	int rc = slu_msg_read(&request, p, n, &q, &a, &err);

	(void)h;
	slu_arena_done(&a);
	if (rc < 0)
		slu_grpc_fail(c, SLU_GRPC_INVALID_ARGUMENT, "%s", err.text);
	*name = q.service;
	return !rc;
}

static void on_check(void *arg, struct slu_grpc_call *c)
{
	struct slu_health *h = arg;
	struct slu_text name;

	if (!read_request(h, c, &name))
		return;
	if (!is_known(h, name)) {
		slu_grpc_fail(c, SLU_GRPC_NOT_FOUND, "there is no service \"%.*s\"",
			      (int)SLU_MIN(name.n, (size_t)100), name.p ? name.p : "");
		return;
	}
	send_status(h, c, true);
	slu_grpc_end(c);
}

static void drop_watcher(struct watcher *w)
{
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->h->n--;
	slu_free(w);
}

static void on_watcher_left(void *arg)
{
	struct watcher *w = arg;
	struct slu_grpc_call *c = w->call;

	drop_watcher(w);
	slu_grpc_end(c);
}

static void watch(void *arg, struct slu_grpc_call *c)
{
	struct slu_health *h = arg;
	struct slu_text name;
	struct watcher *w;

	if (!read_request(h, c, &name))
		return;
	w = h->n < MAX_WATCHERS ? slu_calloc(1, sizeof *w) : NULL;
	if (!w) {
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED,
			      "too many clients watch the health already");
		return;
	}
	*w = (struct watcher){ .h = h, .call = c, .known = is_known(h, name) };
	w->next = h->watchers;
	w->link = &h->watchers;
	if (w->next)
		w->next->link = &w->next;
	h->watchers = w;
	h->n++;
	slu_grpc_on_over(c, on_watcher_left, w);
	send_status(h, c, w->known);
}

void slu_health_set(struct slu_health *h, bool serving)
{
	if (h->serving == serving)
		return;
	h->serving = serving;
	for (struct watcher *w = h->watchers, *next; w; w = next) {
		next = w->next;
		if (w->known)
			send_status(h, w->call, true);
	}
}

int slu_health_serve(struct slu_health *h, struct slu_grpc *g)
{
	h->method[0] = (struct slu_grpc_method){
		.path = "/grpc.health.v1.Health/Check", .open = true, .message = on_check, .arg = h
	};
	h->method[1] = (struct slu_grpc_method){
		.path = "/grpc.health.v1.Health/Watch", .open = true, .message = watch, .arg = h
	};
	return slu_grpc_serve(g, h->method, SLU_LEN(h->method));
}

void slu_health_free(struct slu_health *h)
{
	if (!h)
		return;
	while (h->watchers) {
		struct slu_grpc_call *c = h->watchers->call;

		drop_watcher(h->watchers);
		slu_grpc_fail(c, SLU_GRPC_UNAVAILABLE, "the server is stopping");
	}
	slu_free(h);
}
