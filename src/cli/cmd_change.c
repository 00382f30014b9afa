/* The commands that ask a running sluiced to change something: cancel, hold, release, resize, priority,
 * limit, reserve, unreserve, drain, undrain. */
#include "cli/live_internal.h"

#include <stdio.h>

static const struct slu_option plain_option[] = { LIVE_OPTIONS, { 0 } };
static const struct slu_option space_option[] = { LIVE_OPTIONS,
						  LIVE_NAMESPACE("namespace of the job (default)"),
						  { 0 } };
static const struct slu_option reservations_option[] = {
	LIVE_OPTIONS,
	LIVE_NAMESPACE("namespace of the reservation"),
	{ 0 },
};
static const struct slu_option drain_option[] = {
	LIVE_OPTIONS,
	{ "from", 0, SLU_OPT_STRING, "TIME", "start of the drain (now)",
	  offsetof(struct live, from) },
	{ "until", 0, SLU_OPT_STRING, "TIME", "end of the drain (until undrain)",
	  offsetof(struct live, until) },
	{ 0 },
};

static const struct slu_option reserve_option[] = {
	LIVE_OPTIONS,
	LIVE_NAMESPACE("namespace of the reservation (default)"),
	{ "from", 0, SLU_OPT_STRING, "TIME", "start of the reservation (now)",
	  offsetof(struct live, from) },
	{ "until", 0, SLU_OPT_STRING, "TIME", "end of the reservation",
	  offsetof(struct live, until) },
	{ "every", 0, SLU_OPT_STRING, "TIME", "repeat after this time: 12h, 1d, 7d (once)",
	  offsetof(struct live, every) },
	{ "nodes", 0, SLU_OPT_STRING, "LIST", "names of the nodes, separated by commas",
	  offsetof(struct live, nodes) },
	{ "count", 'c', SLU_OPT_INT, "N", "or number of nodes", offsetof(struct live, count),
	  .min = 1, .max = 10000 },
	{ "label", 'l', SLU_OPT_STRING, "LABEL", "with --count: only nodes with this label",
	  offsetof(struct live, label) },
	{ "amounts", 0, SLU_OPT_STRING, "LIST",
	  "amounts of each node: cpu=4,memory=8Gi (whole nodes)", offsetof(struct live, amounts) },
	{ "users", 'u', SLU_OPT_STRING, "LIST",
	  "users who may use the reservation without naming it", offsetof(struct live, users) },
	{ 0 },
};

static int post_path(void *conf, const char *path, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	int rc = cli_live_ask(conf, SLU_HTTP_POST, path, &doc, err);

	if (!rc && doc)
		printf("%s\n", cli_live_field(slu_json_root(doc), "message"));
	return rc;
}

static int post_job(void *conf, const char *name, const char *verb, struct slu_error *err)
{
	struct slu_buf path = SLU_BUF_INIT(2048);
	int rc = cli_live_job_path(conf, name, verb, &path);

	if (!rc)
		rc = post_path(conf, path.p, err);
	slu_buf_done(&path);
	return rc;
}

static int post_node(void *conf, const char *name, const char *verb, struct slu_error *err)
{
	const struct live *c = conf;
	struct slu_buf path = SLU_BUF_INIT(2048), query = SLU_BUF_INIT(1000);
	int rc;

	slu_buf_puts(&path, "/v1/nodes/");
	slu_http_escape(&path, name, strlen(name));
	slu_buf_printf(&path, "/%s", verb);
	if (c->from)
		slu_http_query_add(&query, "from", c->from);
	if (c->until)
		slu_http_query_add(&query, "until", c->until);
	if (query.n)
		slu_buf_printf(&path, "?%s", query.p);
	slu_buf_done(&query);
	rc = path.error ? path.error : post_path(conf, path.p, err);
	slu_buf_done(&path);
	return rc;
}

static int run_cancel(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_job(conf, argv[0], "cancel", err);
}

static int run_hold(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_job(conf, argv[0], "hold", err);
}

static int run_release(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_job(conf, argv[0], "release", err);
}

static int run_resize(void *conf, int argc, char **argv, struct slu_error *err)
{
	char verb[40];
	size_t n = strspn(argv[1], "0123456789");

	if (!n || n > 9 || argv[1][n])
		return slu_fail(err, SLU_WRONG, "\"%s\" is not a number of members", argv[1]);
	snprintf(verb, sizeof verb, "resize/%.20s", argv[1]);
	return post_job(conf, argv[0], verb, err);
}

/* `verb` and the user's word for it, one part of the path. */
static int post_change(void *conf, const char *name, const char *verb, const char *value,
		       struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(1000);
	int rc;

	slu_buf_printf(&b, "%s/", verb);
	slu_http_escape(&b, value, strlen(value));
	rc = b.error ? b.error : post_job(conf, name, slu_buf_str(&b), err);
	slu_buf_done(&b);
	return rc;
}

static int run_priority(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_change(conf, argv[0], "priority", argv[1], err);
}

static int run_limit(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_change(conf, argv[0], "limit", argv[1], err);
}

static void reservation_path(const struct live *c, const char *name, struct slu_buf *b)
{
	const char *ns = c->ns ? c->ns : "default";

	slu_buf_puts(b, "/v1/reservations/");
	slu_http_escape(b, ns, strlen(ns));
	slu_buf_putc(b, '/');
	slu_http_escape(b, name, strlen(name));
}

static int run_reserve(void *conf, int argc, char **argv, struct slu_error *err)
{
	const struct live *c = conf;
	const char *const word[][2] = { { "from", c->from },   { "until", c->until },
					{ "every", c->every }, { "nodes", c->nodes },
					{ "label", c->label }, { "amounts", c->amounts },
					{ "users", c->users } };
	struct slu_buf path = SLU_BUF_INIT(64u << 10), query = SLU_BUF_INIT(32u << 10);
	int rc;

	if (!c->until)
		return slu_fail(err, SLU_WRONG, "a reservation needs an end: give --until");
	if (!c->nodes == !c->count)
		return slu_fail(err, SLU_WRONG, "give either --nodes or --count");
	if (c->label && !c->count)
		return slu_fail(err, SLU_WRONG, "--label goes with --count");
	reservation_path(c, argv[0], &path);
	for (size_t i = 0; i < SLU_LEN(word); i++)
		if (word[i][1])
			slu_http_query_add(&query, word[i][0], word[i][1]);
	if (c->count) {
		char n[24];

		snprintf(n, sizeof n, "%" PRId64, c->count);
		slu_http_query_add(&query, "count", n);
	}
	slu_buf_printf(&path, "?%s", slu_buf_str(&query));
	rc = path.error ? path.error : query.error ? query.error : post_path(conf, path.p, err);
	slu_buf_done(&path);
	slu_buf_done(&query);
	return rc;
}

static int run_unreserve(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct slu_buf path = SLU_BUF_INIT(4096);
	int rc;

	reservation_path(conf, argv[0], &path);
	slu_buf_puts(&path, "/end");
	rc = path.error ? path.error : post_path(conf, path.p, err);
	slu_buf_done(&path);
	return rc;
}

static int run_drain(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_node(conf, argv[0], "drain", err);
}

static int run_undrain(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_node(conf, argv[0], "undrain", err);
}

LIVE_COMMAND(
	cancel, "NAME", "take a waiting gang out of the queue",
	"The gang's objects stay as they are; sluice release puts the gang back. To end a running gang, delete its object.",
	space_option, 1, 1);
LIVE_COMMAND(hold, "NAME", "keep a gang waiting", NULL, space_option, 1, 1);
LIVE_COMMAND(release, "NAME", "put a held or cancelled gang back into the queue", NULL,
	     space_option, 1, 1);
LIVE_COMMAND(
	resize, "NAME N", "give a gang another number of members",
	"Sets the size of the Job, Deployment, ReplicaSet or StatefulSet that makes the members; if no object makes them, evicts the newest pods. 0 cancels the gang.",
	space_option, 2, 2);
LIVE_COMMAND(
	priority, "NAME N", "give a waiting gang another priority",
	"The higher priority goes first. It overrides the PriorityClass until you set it to \"own\". Write -- before a negative number.",
	space_option, 2, 2);
LIVE_COMMAND(
	limit, "NAME TIME", "give a waiting or running gang another time limit",
	"TIME is 90, 15m, 12h, 7d, or \"own\" for the limit that the gang's objects name. If a Job has activeDeadlineSeconds, sluiced sets that field.",
	space_option, 2, 2);
LIVE_COMMAND(
	reserve, "NAME", "set nodes aside for some time",
	"Creates a Reservation. Gangs of its namespace that name it (sluice.sh/reservation) and gangs of --users may use it. TIME is 2026-01-31T14:00:00Z, +15m, or seconds since 1970.",
	reserve_option, 1, 1);
LIVE_COMMAND(unreserve, "NAME", "end a reservation now", NULL, reservations_option, 1, 1);
LIVE_COMMAND(
	drain, "NODE", "start nothing new on a node; running pods keep running",
	"With --from, gangs that end before that time may still use the node. With --until, the plan counts on the node again from that time, even if the node is down or cordoned until then. TIME is 2026-01-31T14:00:00Z, +15m, or seconds since 1970.",
	drain_option, 1, 1);
LIVE_COMMAND(undrain, "NODE", "use a drained node again", NULL, plain_option, 1, 1);
