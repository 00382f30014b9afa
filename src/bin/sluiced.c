/* sluiced — the daemon.  This file only ties the parts together: options, threads, start and stop.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "bin/standalone.h"
#include "control/io/census.h"
#include "control/core/core.h"
#include "control/io/feed.h"
#include "control/config/flags.h"
#include "control/config/foreign.h"
#include "control/rules/keys.h"
#include "control/io/place.h"
#include "gang/gang.h"
#include "kube/lease.h"
#include "serve/api.h"
#include "serve/grpc_thread.h"
#include "serve/webhook.h"
#include "store/store.h"
#include "wire/json.h"

#define RELOAD_NS  (5 * SLU_NS_PER_S)
#define GIVE_UP_NS (2 * SLU_NS_PER_S)

struct options {
	const char *config, *kubeconfig, *context, *store, *level, *policy, *label, *socket, *graph;
	bool verify, show, standalone;
	struct {
		bool given;
		const char *value;
	} old[32]; /* by number in slu_flags */
};

struct daemon {
	struct options o;
	/* `first` is the configuration of the start, for settings that are read only then */
	struct slu_config *cfg, *first;
	int claim; /* descriptor + 1 that keeps other daemons from our store; 0: none */
	struct slu_loop *loop;
	struct slu_kube_config *kube;
	struct slu_kube_client *client;
	struct slu_journal_setup journal;
	struct slu_strpool *pool; /* strings of all objects */
	struct slu_kcodec *codec;
	struct slu_lease *lease;
	bool stopping, released;
	int status;
	struct slu_place *place;
	struct slu_core *core;
	struct slu_feed *feed;
	struct slu_census *census;
	struct slu_api *api;
	struct slu_webhook *webhook;
	struct slu_grpc_thread *grpc;
	struct slu_timer reload;
	struct timespec config_time;
	char cluster[64], host[100], id[160];
};

/* ---- options ---- */

static const char usage[] =
	"usage: sluiced [OPTIONS]\n"
	"\n"
	"Gang scheduling with time, for Kubernetes.\n"
	"\n"
	"  -c, --config FILE      settings (YAML); without this option, the defaults\n"
	"      --kubeconfig FILE  cluster to work for; default: $KUBECONFIG, ~/.kube/config,\n"
	"                         or the pod's own account\n"
	"      --context NAME     context of the kubeconfig\n"
	"      --store URL        SQLite file, postgres://..., or memory: (default: store.url)\n"
	"      --socket PATH      Unix socket for the sluice command (default: serve.socket)\n"
	"      --policy NAME      match policy (default: match.policy)\n"
	"      --standalone       serve the Fluxion services (gRPC) on a graph of their own, without a\n"
	"                         cluster, at --host (127.0.0.1) and --port (4242)\n"
	"      --graph FILE       the first graph of --standalone: JGF, GRUG, R or hwloc's XML\n"
	"      --label LABEL      leave out nodes with this label (default: nodes.excludeLabel)\n"
	"      --log-level LEVEL  debug, info, warn, error (default: log.level)\n"
	"      --verify           prove the queue's invariants after each cycle\n"
	"      --print-config     print every setting with its value as JSON, and stop\n"
	"      --print-schema     print a JSON schema of the file, and stop\n"
	"      --print-keys       print the table of labels and annotations, and stop\n"
	"      --version\n"
	"  -h, --help\n"
	"\n"
	"sluiced also understands the options of the programs it replaces: sluiced(8) lists them.\n";

enum {
	OPT_KUBECONFIG = 256,
	OPT_CONTEXT,
	OPT_STORE,
	OPT_SOCKET,
	OPT_POLICY,
	OPT_STANDALONE,
	OPT_GRAPH,
	OPT_LABEL,
	OPT_LEVEL,
	OPT_VERIFY,
	OPT_PRINT_CONFIG,
	OPT_PRINT_SCHEMA,
	OPT_PRINT_KEYS,
	OPT_VERSION,
	OPT_OLD, /* and as many as there are in slu_flags */
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "kubeconfig", required_argument, NULL, OPT_KUBECONFIG },
	{ "context", required_argument, NULL, OPT_CONTEXT },
	{ "store", required_argument, NULL, OPT_STORE },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "standalone", no_argument, NULL, OPT_STANDALONE },
	{ "graph", required_argument, NULL, OPT_GRAPH },
	{ "label", required_argument, NULL, OPT_LABEL },
	{ "log-level", required_argument, NULL, OPT_LEVEL },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "print-config", no_argument, NULL, OPT_PRINT_CONFIG },
	{ "print-schema", no_argument, NULL, OPT_PRINT_SCHEMA },
	{ "print-keys", no_argument, NULL, OPT_PRINT_KEYS },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* The exit code of a program that only printed something. */
static int flushed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "sluiced: cannot write: %s\n", strerror(errno));
	return 1;
}

static int print_keys(void)
{
	static const char *const means[SLU_KEYS] = {
		[SLU_KEY_GROUP] = "group",         [SLU_KEY_SIZE] = "size",
		[SLU_KEY_MIN_SIZE] = "min-size",   [SLU_KEY_MAX_SIZE] = "max-size",
		[SLU_KEY_QUEUE] = "queue",         [SLU_KEY_DURATION] = "duration",
		[SLU_KEY_BEGIN] = "begin",         [SLU_KEY_TOPOLOGY] = "topology",
		[SLU_KEY_EXCLUSIVE] = "exclusive", [SLU_KEY_AFTER] = "after",
		[SLU_KEY_IGNORED] = "ignored",     [SLU_KEY_OUTPUT] = "written",
	};

	for (uint32_t i = 0; i < slu_key_rows; i++)
		printf("%-40s %-10s %s\n", slu_key_table[i].key, means[slu_key_table[i].means],
		       slu_key_table[i].help);
	return flushed();
}

static int print_config(const struct slu_config *c)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_INDENT);

	if (c)
		slu_config_write(c, &w);
	else
		slu_config_schema(&w);
	puts(slu_buf_str(&b));
	slu_buf_done(&b);
	return flushed();
}

/* ---- configuration ---- */

/* Flags and variables win over the file. */
static int read_config(const struct options *o, struct slu_config **out, struct slu_error *err)
{
	int rc = o->config ? slu_config_read(o->config, out, err) : slu_config_default(out, err);
	struct slu_config *c = *out;
	enum slu_log_level level;
	const char *policy;

	if (rc < 0)
		return rc;
	slu_flag_environment(c);
	for (uint32_t i = 0; i < slu_n_flags; i++) {
		rc = o->old[i].given ? slu_flag_apply(i, o->old[i].value, c, err) : 0;
		if (rc < 0)
			return rc;
	}
	if (o->store)
		c->store.url = o->store;
	if (o->socket)
		c->serve.socket = o->socket;
	policy = o->policy && !o->standalone ? slu_foreign_policy(o->policy) : o->policy;
	if (policy && !o->standalone && slu_gang_policy_find(policy) < 0)
		return slu_fail(err, -EINVAL, "--policy: unknown match policy \"%s\"", policy);
	if (policy)
		c->match.policy = policy;
	if (o->label)
		c->nodes.exclude_label = o->label;
	if (o->level && slu_log_level_parse(o->level, &level) < 0)
		return slu_fail(
			err, -EINVAL,
			"--log-level: unknown level \"%s\"; choose one of debug, info, warn, error",
			o->level);
	if (o->level)
		c->log.level = o->level;
	return 0;
}

static int set_log(const struct slu_config *c, struct slu_error *err)
{
	enum slu_log_level level;

	if (slu_log_level_parse(c->log.level, &level) < 0)
		return slu_fail(
			err, -EINVAL,
			"log.level: unknown level \"%s\"; choose one of debug, info, warn, error",
			c->log.level);
	slu_log_setup(level, !strcmp(c->log.format, "json") ? SLU_LOG_JSON : SLU_LOG_TEXT, 2);
	return 0;
}

static void say_ignored_settings(const struct slu_config *c)
{
	if (*c->ignored)
		slu_log(SLU_WARN, "settings ignored: they have no meaning here",
			SLU_STR("settings", c->ignored));
}

/* Read the settings of a running daemon.  To open a pipe is to wait for its writer, and the loop cannot wait. */
static int read_config_again(const struct options *o, struct slu_config **out,
			     struct slu_error *err)
{
	struct stat st;

	if (o->config && !stat(o->config, &st) && !S_ISREG(st.st_mode))
		return slu_fail(err, -EINVAL, "%s is not a regular file", o->config);
	return read_config(o, out, err);
}

static void reload(struct daemon *d)
{
	struct slu_buf late = SLU_BUF_INIT(4096);
	struct slu_error err = { 0 };
	struct slu_config *c = NULL;
	struct slu_record *r;

	if (read_config_again(&d->o, &c, &err) < 0 || set_log(c, &err) < 0) {
		slu_log(SLU_ERROR, "configuration rejected; the old one stays in force",
			SLU_STR("err", err.text));
		slu_config_free(c);
		return;
	}
	say_ignored_settings(c);
	slu_config_needs_restart(d->first, c, &late);
	slu_log(SLU_INFO, "configuration reloaded", SLU_STR("after_restart", slu_buf_str(&late)));
	slu_buf_done(&late);
	slu_config_keep(c, d->first);
	slu_kube_client_rate(d->client, c->kube.qps, c->kube.burst);
	slu_api_config(d->api, c);
	slu_census_period(d->census, c->status.audit_s);
	slu_webhook_config(d->webhook, c);
	r = slu_rec_config_new(c);
	if (r && slu_inbox_put_answer(slu_core_inbox(d->core), r) < 0)
		r->free(r);
	if (d->cfg != d->first)
		slu_config_free(d->cfg); /* the core has its own until it takes the record */
	d->cfg = c;
}

static bool config_changed(struct daemon *d)
{
	struct stat st;
	bool changed;

	if (!d->o.config || stat(d->o.config, &st) < 0)
		return false;
	changed = st.st_mtim.tv_sec != d->config_time.tv_sec ||
		  st.st_mtim.tv_nsec != d->config_time.tv_nsec;
	d->config_time = st.st_mtim;
	return changed;
}

static void look_at_config(void *arg)
{
	struct daemon *d = arg;

	if (config_changed(d))
		reload(d);
	slu_timer_start(&d->reload, d->loop, RELOAD_NS, look_at_config, d);
}

static void on_hangup(void *arg)
{
	struct daemon *d = arg;

	if (d->stopping)
		return;
	config_changed(d);
	reload(d);
}

static void on_stop(void *arg)
{
	struct daemon *d = arg;

	slu_log(SLU_INFO, "stopping");
	slu_loop_stop(d->loop);
}

/* ---- start ---- */

/* On the journal's thread. */
static void journal_wake(void *arg)
{
	struct daemon *d = arg;
	struct slu_record *r = slu_rec_wake_new();

	if (r && (!d->core || slu_inbox_put_answer(slu_core_inbox(d->core), r) < 0))
		r->free(r);
}

/* The uid of kube-system names the cluster: a store of another one is refused. */
static int find_cluster(struct daemon *d, struct slu_error *err)
{
	struct slu_kube_request q = { .path = "/api/v1/namespaces/kube-system" };
	struct slu_kube_answer a = { 0 };
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	int rc = slu_kube_do(d->client, &q, &a, err);

	if (!rc)
		rc = slu_json_parse(a.body, a.body_len, NULL, &doc, err);
	if (!rc)
		snprintf(d->cluster, sizeof d->cluster, "%s",
			 slu_json_str_or(slu_json_dig(slu_json_root(doc), "metadata", "uid", NULL),
					 ""));
	slu_kube_answer_done(&a);
	return rc;
}

static void look_again(void *arg, enum slu_kkind kind, bool again)
{
	struct daemon *d = arg;

	if (again)
		slu_feed_again(d->feed, kind);
	else
		slu_census_now(d->census);
}

/* ---- several replicas ---- */

static void tell_leader(struct daemon *d, const struct slu_journal_setup *setup, const char *other)
{
	struct slu_record *r = slu_rec_leader_new(setup, other);

	if (r && slu_inbox_put_answer(slu_core_inbox(d->core), r) < 0)
		r->free(r);
}

static void on_leading(void *arg, int32_t term)
{
	struct daemon *d = arg;

	d->journal.term = term + 1; /* 0 would mean not fenced */
	tell_leader(d, &d->journal, "");
}

/* Remember which replica leads, to name it in answers. */
static void on_observed(void *arg, const char *holder)
{
	struct daemon *d = arg;

	if (strcmp(holder, d->id) != 0)
		tell_leader(d, NULL, holder);
}

/* A replica that lost the lease starts over as a standby, with a mirror that is surely right. */
static void on_lost(void *arg)
{
	struct daemon *d = arg;

	if (d->stopping)
		return; /* the lease is given up */
	slu_log(SLU_ERROR, "lost leadership: the lease was not renewed");
	d->status = 1;
	slu_loop_stop(d->loop);
}

static bool may_write(void *arg)
{
	return slu_lease_held(((struct daemon *)arg)->lease);
}

static int stand_for_election(struct daemon *d, struct slu_error *err)
{
	struct slu_lease_options o = { .ns = d->cfg->leader.ns,
				       .name = d->cfg->leader.name,
				       .id = d->id,
				       .duration_s = (int32_t)d->cfg->leader.lease_s,
				       .renew_s = (int32_t)(d->cfg->leader.lease_s * 2 / 3),
				       .retry_ns = d->cfg->leader.lease_s * SLU_NS_PER_S / 8 };
	struct slu_lease_handler h = {
		.leading = on_leading, .lost = on_lost, .observed = on_observed, .arg = d
	};
	bool sqlite = strcmp(d->cfg->store.url, "memory:") && !strstr(d->cfg->store.url, "://");

	if (sqlite)
		return slu_fail(err, -EINVAL,
				"leader.elect needs a store all replicas share: give store.url a "
				"postgres:// URL (a SQLite file serves one replica)");
	snprintf(d->id, sizeof d->id, "%s_%d_%" PRId64, d->host, (int)getpid(), slu_clock_ns());
	d->journal.holder = d->id;
	d->journal.held = may_write;
	d->codec = slu_kcodec_new(d->pool);
	if (!d->codec)
		return slu_fail(err, -ENOMEM, "out of memory");
	slu_place_fence(d->place, may_write, d);
	return slu_lease_new(d->client, d->codec, &o, &h, &d->lease, err);
}

/* Connections of all ports, watches, the store and files together. */
#define DESCRIPTORS 2048

/* A process is born with 1 024 descriptors on most systems and may have many more: take them, so
 * that full connection pools leave some for the store and the API server. */
static void raise_descriptors(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= DESCRIPTORS)
		return;
	lim.rlim_cur = SLU_MIN(lim.rlim_max, (rlim_t)DESCRIPTORS);
	if (setrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur < DESCRIPTORS)
		slu_log(SLU_WARN,
			"the limit of file descriptors is low: a flood of connections may use up all of them",
			SLU_I64("limit", (int64_t)lim.rlim_cur), SLU_I64("needed", DESCRIPTORS));
}

/* The client of the API server, and the cluster it belongs to. */
static int start_client(struct daemon *d, const struct slu_kube_config_options *ko,
			struct slu_error *err)
{
	struct slu_kube_client_options co = { .qps = d->cfg->kube.qps,
					      .burst = d->cfg->kube.burst,
					      .max_inflight = (d->cfg->place.parallel + 1) / 2 };
	int rc = slu_kube_config_load(ko, &d->kube, err);

	if (!rc)
		rc = slu_kube_client_new(d->loop, d->kube, &co, &d->client, err);
	if (!rc)
		rc = find_cluster(d, err);
	return rc;
}

/* The core without its thread, and the writer of its decisions. */
static int start_core(struct daemon *d, struct slu_error *err)
{
	struct slu_core_setup cs = { .config = d->cfg, .verify = d->o.verify };

	/* Milliseconds: unique over restarts as long as fewer than 1000 jobs a second arrive. */
	if (strcmp(d->cfg->store.url, "memory:"))
		cs.first_id = (uint64_t)slu_clock_wall_us() / 1000;
	d->place = slu_place_new(d->client, d->host, d->cfg->place.parallel);
	d->pool = slu_strpool_new();
	if (!d->place || !d->pool)
		return slu_fail(err, -ENOMEM, "out of memory");
	cs.out = slu_place_inbox(d->place);
	cs.pool = d->pool;
	return slu_core_new(&cs, &d->core, err);
}

/* Lead at once with a store of our own, or stand for election. */
static int start_leading(struct daemon *d, struct slu_error *err)
{
	int rc;

	if (d->cfg->leader.elect)
		return stand_for_election(d, err);
	rc = slu_store_claim(d->cfg->store.url, err); /* no Lease keeps a second daemon away */
	d->claim = rc >= 0 ? rc + 1 : 0;
	rc = rc == -ENOTSUP ? 0 : SLU_MIN(rc, 0);
	return rc ? rc : SLU_MIN(slu_core_lead(d->core, &d->journal, err), 0);
}

/* The watches, which bring objects to the core, and the ports. */
static int start_serving(struct daemon *d, const struct slu_kube_config_options *ko,
			 struct slu_error *err)
{
	struct slu_api_setup as;
	int rc;

	slu_place_answers(d->place, slu_core_inbox(d->core));
	rc = slu_feed_new(d->client, d->cfg, slu_core_inbox(d->core), d->pool, &d->feed, err);
	if (!rc)
		rc = slu_census_new(d->client, slu_core_inbox(d->core), d->pool,
				    d->cfg->status.audit_s, &d->census, err);
	if (rc < 0)
		return rc;
	slu_place_look(d->place, look_again, d);
	as = (struct slu_api_setup){ .loop = d->loop,
				     .core = d->core,
				     .feed = d->feed,
				     .place = d->place,
				     .client = d->client,
				     .config = d->cfg };
	rc = slu_api_new(&as, &d->api, err);
	if (!rc && d->cfg->webhook.enabled)
		rc = slu_webhook_new(d->loop, d->client, d->cfg, d->feed, &d->webhook, err);
	if (!rc && d->cfg->grpc.port)
		rc = slu_grpc_thread_new(ko, d->cfg, d->core, &d->grpc, err);
	return rc;
}

static int start_daemon(struct daemon *d, struct slu_error *err)
{
	struct slu_kube_config_options ko = { .path = d->o.kubeconfig, .context = d->o.context };
	int rc;

	raise_descriptors();
	if (gethostname(d->host, sizeof d->host - 1) < 0)
		snprintf(d->host, sizeof d->host, "sluiced");
	d->journal = (struct slu_journal_setup){ .url = d->cfg->store.url,
						 .cluster = d->cluster,
						 .holder = d->host,
						 .wake = journal_wake,
						 .arg = d };
	d->loop = slu_loop_new();
	if (!d->loop)
		return slu_fail(err, -ENOMEM, "cannot create an event loop");
	rc = start_client(d, &ko, err);
	if (!rc)
		rc = start_core(d, err);
	if (!rc)
		rc = start_leading(d, err);
	if (!rc)
		rc = start_serving(d, &ko, err);
	if (!rc)
		rc = slu_core_start(d->core, err);
	return rc;
}

static void on_released(void *arg)
{
	struct daemon *d = arg;

	d->released = true;
}

/* Every decision is in the store and every write has been answered: give up the lease, so that the next
 * leader begins at once. */
static void give_up_lease(struct daemon *d)
{
	int64_t end = slu_clock_ns() + GIVE_UP_NS;
	struct slu_place_stats st;
	const bool never = false;

	for (;;) {
		slu_place_stats(d->place, &st);
		if (!st.under_way || slu_clock_ns() >= end)
			break;
		slu_loop_run_until(d->loop, &never, 5 * SLU_NS_PER_MS);
	}
	if (st.under_way) /* the server may still carry these writes out: let the lease expire */
		return;
	slu_lease_release(d->lease, on_released, d);
	slu_loop_run_until(d->loop, &d->released, GIVE_UP_NS);
}

/* Stop the parts in an order in which no callback reaches a freed one: the loop runs again and again on the
 * way (the last answers, the lease), so a part is freed after all parts that may call it.  First the ports
 * close, then the sources of new events stop, then the core, then the writers. */
static void stop_daemon(struct daemon *d)
{
	d->stopping = true;
	slu_timer_stop(&d->reload);
	if (d->api)
		slu_api_close(d->api);
	slu_webhook_free(d->webhook);
	slu_census_free(d->census);
	slu_feed_free(d->feed);
	if (d->core)
		slu_core_stop(d->core);
	if (d->place)
		slu_place_close(d->place);
	if (d->lease && slu_lease_held(d->lease))
		give_up_lease(d);
	slu_lease_free(d->lease);
	slu_grpc_thread_stop(d->grpc);
	slu_kube_client_free(d->client); /* ends the API's requests about its callers */
	slu_core_free(d->core);          /* answers the API's questions to the core */
	slu_api_free(d->api);
	slu_grpc_thread_free(d->grpc);
	slu_place_free(d->place);
	slu_kcodec_free(d->codec);
	slu_strpool_free(d->pool);
	slu_kube_config_unref(d->kube);
	slu_loop_free(d->loop);
	if (d->cfg != d->first)
		slu_config_free(d->cfg);
	slu_config_free(d->first);
	if (d->claim)
		close(d->claim - 1);
}

static void say_ignored(const struct options *o)
{
	for (uint32_t i = 0; i < slu_n_flags; i++)
		if (o->old[i].given && !slu_flags[i].sets)
			slu_log(SLU_WARN, "option ignored", SLU_STR("option", slu_flags[i].name),
				SLU_STR("why", slu_flags[i].help));
	if (o->policy && !slu_foreign_policy(o->policy))
		slu_log(SLU_WARN, "option ignored", SLU_STR("option", "policy"),
			SLU_STR("why", "nodes of a cluster have no perf_class to choose by"));
}

static int run_daemon(struct daemon *d)
{
	struct slu_error err = { 0 };
	char url[512];
	const char *store = url;
	int rc = set_log(d->cfg, &err);

	d->first = d->cfg;
	say_ignored(&d->o);
	say_ignored_settings(d->cfg);
	if (!rc)
		rc = start_daemon(d, &err);
	if (rc < 0) {
		slu_log(SLU_ERROR, "cannot start", SLU_STR("err", err.text));
		stop_daemon(d);
		return 1;
	}
	slu_loop_signal(d->loop, SIGTERM, on_stop, d);
	slu_loop_signal(d->loop, SIGINT, on_stop, d);
	slu_loop_signal(d->loop, SIGHUP, on_hangup, d);
	config_changed(d);
	slu_timer_start(&d->reload, d->loop, RELOAD_NS, look_at_config, d);
	slu_store_url_shown(d->cfg->store.url, url, sizeof url);
	slu_log(SLU_INFO, "sluiced started", SLU_STR("version", SLU_VERSION),
		SLU_STR("server", slu_kube_config_server(d->kube)), SLU_STR("store", store),
		SLU_I64("health_port", slu_api_health_port(d->api)),
		SLU_I64("https_port", slu_api_https_port(d->api)),
		SLU_I64("grpc_port", d->grpc ? slu_grpc_thread_port(d->grpc) : 0));
	slu_loop_run(d->loop);
	stop_daemon(d);
	slu_log(SLU_INFO, "stopped");
	return d->status;
}

/* Put the options of sluiced first, then those of the programs it replaces. */
static void all_options(struct option out[64])
{
	uint32_t n = SLU_LEN(long_options) - 1;

	memcpy(out, long_options, n * sizeof *out);
	for (uint32_t i = 0; i < slu_n_flags; i++)
		out[n++] = (struct option){ slu_flags[i].name,
					    slu_flags[i].optional ? optional_argument
								  : required_argument,
					    NULL, OPT_OLD + (int)i };
	out[n] = (struct option){ 0 };
}

/* Handle an option of the programs that sluiced replaces, including -v. */
static bool old_option(struct options *o, int c)
{
	uint32_t i = 0;

	if (c < OPT_OLD && c != 'v')
		return false;
	while (c == 'v' && strcmp(slu_flags[i].name, "v"))
		i++;
	i = c == 'v' ? i : (uint32_t)(c - OPT_OLD);
	o->old[i].given = true;
	o->old[i].value = optarg;
	return true;
}

/* Read the options.  Returns -1 to continue, or the exit code of the program. */
static int read_options(int argc, char **argv, struct options *o)
{
	struct option all[64];
	int c;

	_Static_assert(SLU_LEN(long_options) < 32, "all_options() has room for 64");
	all_options(all);
	while ((c = getopt_long(argc, argv, "c:hv:", all, NULL)) != -1) {
		if (old_option(o, c))
			continue;
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case OPT_KUBECONFIG:
			o->kubeconfig = optarg;
			break;
		case OPT_CONTEXT:
			o->context = optarg;
			break;
		case OPT_STORE:
			o->store = optarg;
			break;
		case OPT_SOCKET:
			o->socket = optarg;
			break;
		case OPT_POLICY:
			o->policy = strcmp(optarg, "hi") ? optarg : "high";
			break;
		case OPT_STANDALONE:
			o->standalone = true;
			break;
		case OPT_GRAPH:
			o->graph = optarg;
			break;
		case OPT_LABEL:
			o->label = optarg;
			break;
		case OPT_LEVEL:
			o->level = optarg;
			break;
		case OPT_VERIFY:
			o->verify = true;
			break;
		case OPT_PRINT_CONFIG:
			o->show = true;
			break;
		case OPT_PRINT_SCHEMA:
			return print_config(NULL);
		case OPT_PRINT_KEYS:
			return print_keys();
		case OPT_VERSION:
			puts("sluiced " SLU_VERSION);
			return flushed();
		case 'h':
			fputs(usage, stdout);
			return flushed();
		default:
			fputs("sluiced --help lists the options\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "sluiced: unexpected argument \"%s\"; --help lists the options\n",
			argv[optind]);
		return 2;
	}
	if (o->graph && !o->standalone) {
		fputs("sluiced: --graph goes with --standalone; a cluster is its own graph\n",
		      stderr);
		return 2;
	}
	return -1;
}

/* Users choose the names of their objects; a secret key keeps them from choosing names that collide in our tables. */
static void hide_hashes(void)
{
	uint64_t key[2];

	if (getrandom(key, sizeof key, 0) == (ssize_t)sizeof key)
		slu_hash_secret(key[0], key[1]);
}

int main(int argc, char **argv)
{
	struct daemon d = { 0 };
	struct slu_error err = { 0 };
	int rc;

	slu_file_standard();
	rc = read_options(argc, argv, &d.o);
	if (rc >= 0)
		return rc;
	if (read_config(&d.o, &d.cfg, &err) < 0) {
		fprintf(stderr, "sluiced: %s\n", err.text);
		slu_config_free(d.cfg);
		return 2;
	}
	if (d.o.show) {
		rc = print_config(d.cfg);
		slu_config_free(d.cfg);
		return rc;
	}
	if (d.o.standalone) {
		rc = set_log(d.cfg, &err);
		rc = rc < 0 ? 1 : run_standalone(d.cfg, d.o.graph, d.o.policy);
		slu_config_free(d.cfg);
		return rc;
	}
	hide_hashes();
	return run_daemon(&d);
}
