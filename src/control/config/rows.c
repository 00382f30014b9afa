/* Every setting: its name, type, place, default, limits, and what it is for. */
#include "control/config/rows.h"
#include "gang/gang.h"
#include "queue/queue.h"
#include "store/store.h"

#define AT(field)  offsetof(struct slu_config, field)
#define ATQ(field) offsetof(struct slu_config_queue, field)
#define ATL(field) offsetof(struct slu_config_level, field)

static const char *const backfill_orders[] = { "auto",   "submission", "shortest",
					       "packed", "balanced",   NULL };
static const char *const member_failure[] = { "replace", "restart", NULL };
static const char *const held_modes[] = { "own", "compatible", NULL };
static const char *const log_levels[] = { "debug", "info", "warn", "error", NULL };
static const char *const log_formats[] = { "text", "json", NULL };

static const struct row kube_rows[] = {
	{ "qps", REAL, AT(kube.qps), "500", 1, 100000,
	  .help = "requests per second to the API server, on average" },
	{ "burst", U32, AT(kube.burst), "1000", 1, 100000,
	  .help = "requests that may go out at once" },
	{ "nativeGroups", BOOL, AT(kube.native_groups), "true", .restart = true,
	  .help = "take part in Kubernetes' own PodGroups (scheduling.k8s.io), where the server has them" },
	{ 0 },
};

static const struct row level_rows[] = {
	{ "name", STR, ATL(name), NULL, .help = "what sluice.sh/topology calls it" },
	{ "label", STR, ATL(label), NULL, .help = "node label whose value names the place" },
	{ 0 },
};

static const struct row nodes_rows[] = {
	{ "controlPlane", BOOL, AT(nodes.control_plane), "false", .restart = true,
	  .help = "use control-plane nodes too" },
	{ "includeLabel", STR, AT(nodes.include_label), "", .restart = true,
	  .help = "use only nodes with this label (key, or key=value)" },
	{ "excludeLabel", STR, AT(nodes.exclude_label), "", .restart = true,
	  .help = "leave out nodes with this label (key, or key=value)" },
	{ "topology", LIST, AT(nodes.level),
	  "[{name: zone, label: topology.kubernetes.io/zone}, {name: block, label: topology.sluice.sh/block}, "
	  "{name: rack, label: topology.sluice.sh/rack}]",
	  .sub = level_rows, .size = sizeof(struct slu_config_level), .n_off = AT(nodes.n_levels),
	  .restart = true, .help = "levels of closeness, coarsest first" },
	{ 0 },
};

static const struct row match_rows[] = {
	{ "policy", CHOICE, AT(match.policy), "lonode", .choice = slu_gang_policy_names,
	  .help = "which of the fitting nodes are taken" },
	{ 0 },
};

static const struct row queue_rows[] = {
	{ "name", STR, ATQ(name), NULL, .help = "what sluice.sh/queue names" },
	{ "objective", CHOICE, ATQ(objective), "balanced", .choice = slu_objective_names,
	  .help = "what the queue is for" },
	{ "maxStretch", U32, ATQ(max_stretch), "0", 0, SLU_STRETCH_MAX,
	  .help = "a job is promised a start after waiting so many times its duration; "
		  "0: as the objective says" },
	{ "maxWait", SECONDS, ATQ(max_wait_s), "0", 0, INT32_MAX,
	  .help = "and after waiting so long, if that is sooner; 0: as the objective says" },
	{ "policy", CHOICE, ATQ(policy), "auto", .choice = slu_policy_words,
	  .help = "order and reservations, where the objective is not to say" },
	{ "backfill", CHOICE, ATQ(backfill), "auto", .choice = backfill_orders,
	  .help = "who fills the gaps first, where the objective is not to say" },
	{ "depth", U32, ATQ(depth), "0", 0, 1000000, .help = "jobs looked at in a cycle; 0: all" },
	{ "reservationDepth", U32, ATQ(reservation_depth), "4", 1, 1000000,
	  .help = "jobs that get a reservation under hybrid" },
	{ "priority", I32, ATQ(priority), "0", -1000000000, 1000000000,
	  .help = "among queues: the higher one is served first" },
	{ "defaultDuration", SECONDS, ATQ(default_duration_s), "0", 0, INT32_MAX,
	  .help = "assumed for jobs that name none; 0: jobs.defaultDuration" },
	{ "maxDuration", SECONDS, ATQ(max_duration_s), "0", 0, INT32_MAX,
	  .help = "longest duration accepted; 0: any" },
	{ "exclusive", BOOL, ATQ(exclusive), "true",
	  .help = "jobs may ask for whole nodes (sluice.sh/exclusive, exclusive slots of FluxJobs)" },
	{ "maxSize", U32, ATQ(max_size), "0", 0, INT32_MAX,
	  .help = "largest gang accepted; 0: any" },
	{ "maxRunning", U32, ATQ(max_running), "0", 0, INT32_MAX,
	  .help = "gangs running at once, later members included; 0: any number" },
	{ "maxWaiting", U32, ATQ(max_waiting), "0", 0, INT32_MAX,
	  .help = "gangs waiting at once; those beyond it stay outside and are let in, in order, when one leaves; 0: any number" },
	{ "maxRunningPerUser", U32, ATQ(max_running_per_user), "0", 0, INT32_MAX,
	  .help = "as maxRunning, for each user: the one the webhook saw, else the namespace" },
	{ "maxWaitingPerUser", U32, ATQ(max_waiting_per_user), "0", 0, INT32_MAX,
	  .help = "as maxWaiting, for each user: the one the webhook saw, else the namespace" },
	{ "nodeLabel", STR, ATQ(node_label), "",
	  .help = "key=value the nodes of this queue carry; empty: all nodes" },
	{ 0 },
};

static const struct row jobs_rows[] = {
	{ "defaultDuration", SECONDS, AT(jobs.default_duration_s), "1h", 0, INT32_MAX,
	  .help = "planned for jobs that name no duration; 0: without end. Nothing is ended by it" },
	{ "maxSize", U32, AT(jobs.max_size), "100000", 1, 1000000,
	  .help = "larger gangs are refused as a mistake" },
	{ "onMemberFailure", CHOICE, AT(jobs.on_member_failure), "replace",
	  .choice = member_failure,
	  .help = "a member fails: replace it on a fitting node, or restart the whole gang" },
	{ "holdVacant", SECONDS, AT(jobs.hold_vacant_s), "30s", 0, 86400,
	  .help = "how long the place of an ended member is kept for its successor" },
	{ "enforceDeadlines", BOOL, AT(jobs.enforce_deadlines), "false",
	  .help = "evict members that run longer than the duration they named" },
	{ 0 },
};

static const struct row place_rows[] = {
	{ "parallel", U32, AT(place.parallel), "64", 1, 1000, .restart = true,
	  .help = "bindings in flight at once" },
	{ "retryFor", SECONDS, AT(place.retry_s), "30s", 0, 3600,
	  .help = "how long a failing binding is tried before the gang is taken back" },
	{ 0 },
};

static const struct row status_rows[] = {
	{ "annotate", BOOL, AT(status.annotate), "true",
	  .help = "write position, start estimate and reason to waiting pods and PodGroups" },
	{ "interval", SECONDS, AT(status.interval_s), "5s", 1, 3600,
	  .help = "least time between two such writes for one job" },
	{ "audit", SECONDS, AT(status.audit_s), "60s", 1, 86400,
	  .help = "how often the books are compared with the cluster" },
	{ 0 },
};

static const struct row serve_rows[] = {
	{ "socket", STR, AT(serve.socket), "/run/sluice/sluiced.sock", .restart = true,
	  .help = "unix socket that the command speaks to; empty: none" },
	{ "https", STR, AT(serve.https), ":8443", .restart = true,
	  .help = "address of the HTTPS port (the command, metrics); empty: none" },
	{ "certificate", STR, AT(serve.certificate), "", .restart = true,
	  .help = "PEM file with the certificate of the HTTPS port; empty: one of our own" },
	{ "key", STR, AT(serve.key), "", .restart = true, .help = "PEM file with its key" },
	{ "names", STRS, AT(serve.names), "[localhost, sluice.sluice-system.svc]", .restart = true,
	  .help = "DNS names in a certificate of our own" },
	{ "namespace", STR, AT(serve.ns), "sluice-system", .restart = true,
	  .help = "of the Secret" },
	{ "secret", STR, AT(serve.secret), "sluice-https", .restart = true,
	  .help = "Secret that keeps our own certificate and its authority; made when missing; "
		  "empty: a new certificate at each start" },
	{ "health", STR, AT(serve.health), ":8081", .restart = true,
	  .help = "address of /healthz, /readyz and /metrics in plain HTTP; empty: none" },
	{ 0 },
};

static const struct row grpc_rows[] = {
	{ "port", U32, AT(grpc.port), "0", 0, 65535, .restart = true,
	  .help = "port of the services of Fluence, Fluxnetes and Fluxion (4242 there); 0: none, or 4242 with --standalone" },
	{ "host", STR, AT(grpc.host), "127.0.0.1", .restart = true,
	  .help = "address they listen on; any but this machine's own needs TLS and callers who say who they are; empty: all addresses" },
	{ "external", BOOL, AT(grpc.external), "false", .restart = true,
	  .help = "serve service.ExternalPluginService, too" },
	{ "clientCA", STR, AT(grpc.client_ca), "", .restart = true,
	  .help = "PEM file with authorities; whoever shows a certificate of theirs may call everything" },
	{ 0 },
};

static const struct row webhook_rows[] = {
	{ "enabled", BOOL, AT(webhook.enabled), "false", .restart = true,
	  .help = "note who submits what when, and refuse what is plainly wrong (deploy/webhook.yaml)" },
	{ "listen", STR, AT(webhook.listen), ":9443", .restart = true,
	  .help = "address it answers on" },
	{ "names", STRS, AT(webhook.names), "[sluice-webhook.sluice-system.svc]", .restart = true,
	  .help = "DNS names the API server may call it by" },
	{ "namespace", STR, AT(webhook.ns), "sluice-system", .restart = true,
	  .help = "of the Secret" },
	{ "secret", STR, AT(webhook.secret), "sluice-webhook", .restart = true,
	  .help = "Secret that keeps its authority and certificate; made when missing" },
	{ "configuration", STR, AT(webhook.configuration), "sluice", .restart = true,
	  .help = "MutatingWebhookConfiguration that is told the authority" },
	{ "clientCA", STR, AT(webhook.client_ca), "", .restart = true,
	  .help = "PEM file: only callers with a certificate of this authority are answered; empty: any caller" },
	{ "clientName", STR, AT(webhook.client_name), "", .restart = true,
	  .help = "common name of that certificate; empty: any" },
	{ "controllers", STRS, AT(webhook.controllers),
	  "[system:kube-controller-manager, \"system:serviceaccount:kube-system:\"]",
	  .help = "accounts that make objects for others: the user is the one of the owner. A name that ends in a colon is any that begins so" },
	{ 0 },
};

static const struct row held_rows[] = {
	{ "enabled", BOOL, AT(held.enabled), "true", .restart = true,
	  .help = "hold work in namespaces that ask for it, and look at FluxJobs" },
	{ "selector", STR, AT(held.selector), "",
	  .help = "hold everything in namespaces with this label (key, or key=value), besides those labelled sluice.sh/hold" },
	{ "mode", CHOICE, AT(held.mode), "own", .choice = held_modes,
	  .help = "own: held work keeps its schedulerName; compatible: it gets FluxionScheduler, as Fluxqueue did" },
	{ "never", STRS, AT(held.never),
	  "[kube-system, kube-public, kube-node-lease, sluice-system]",
	  .help = "namespaces in which nothing is ever held" },
	{ "refusedFor", SECONDS, AT(held.refused_s), "60s", 1, 86400,
	  .help = "a released pod that its scheduler refuses for so long gets another place" },
	{ "placeTimeout", SECONDS, AT(held.appear_s), "10m", 5, 604800,
	  .help = "how long places are kept for the pods of a resumed Job that do not appear" },
	{ "ahead", U32, AT(held.ahead), "512", 0, 10000,
	  .help = "Jobs at the head of the queue are resumed early, up to so many pods, which wait at their gates; 0: none" },
	{ 0 },
};

static const char *const store_outage[] = { "hold", "continue", NULL };

static const struct row store_rows[] = {
	{ "url", STR, AT(store.url), "/var/lib/sluice/sluice.db", .restart = true,
	  .shown = slu_store_url_shown,
	  .help = "SQLite file, postgres:// URL (also from DATABASE_URL), or memory: for none" },
	{ "outage", CHOICE, AT(store.outage), "hold", .choice = store_outage,
	  .help = "a store that cannot be written: hold new placements back, or continue with the cluster as the only memory" },
	{ "log", BOOL, AT(store.log), "true", .restart = true,
	  .help = "keep every event and decision, for sluice replay" },
	{ "keepFor", SECONDS, AT(store.keep_s), "30d", 3600, INT32_MAX,
	  .help = "history that is older is removed" },
	{ "keepMegabytes", U32, AT(store.keep_mb), "4096", 1, 1000000000,
	  .help = "history is removed, the oldest first, while the store is larger" },
	{ 0 },
};

static const struct row leader_rows[] = {
	{ "elect", BOOL, AT(leader.elect), "false", .restart = true,
	  .help = "several replicas: one decides, the others stand by" },
	{ "namespace", STR, AT(leader.ns), "sluice-system", .restart = true,
	  .help = "of the lease" },
	{ "name", STR, AT(leader.name), "sluice", .restart = true, .help = "of the lease" },
	{ "lease", SECONDS, AT(leader.lease_s), "15s", 3, 3600, .restart = true,
	  .help = "a leader that was silent for so long is replaced" },
	{ 0 },
};

static const struct row log_rows[] = {
	{ "level", CHOICE, AT(log.level), "info", .choice = log_levels,
	  .help = "least important line that is written" },
	{ "format", CHOICE, AT(log.format), "text", .choice = log_formats,
	  .help = "text for people, json for machines" },
	{ 0 },
};

const struct row slu_config_rows[] = {
	{ "schedulerNames", STRS, AT(scheduler_names),
	  "[sluice, fluence, fluxnetes, FluxionScheduler, kubeflux, scheduling-plugin]",
	  .restart = true, .help = "pods that name one of these are placed by Sluice" },
	{ "kube", SECTION, .sub = kube_rows, .help = "the API server" },
	{ "nodes", SECTION, .sub = nodes_rows, .help = "which nodes are used, and what is close" },
	{ "match", SECTION, .sub = match_rows, .help = "the choice of nodes" },
	{ "queues", LIST, AT(queue), "[{name: default}]", .sub = queue_rows,
	  .size = sizeof(struct slu_config_queue), .n_off = AT(n_queues),
	  .help = "the queues; the first takes jobs that name none" },
	{ "jobs", SECTION, .sub = jobs_rows, .help = "gangs" },
	{ "place", SECTION, .sub = place_rows, .help = "writing decisions to the cluster" },
	{ "status", SECTION, .sub = status_rows, .help = "what is told about waiting work" },
	{ "serve", SECTION, .sub = serve_rows, .help = "where the daemon listens" },
	{ "grpc", SECTION, .sub = grpc_rows, .help = "the Fluxion services" },
	{ "webhook", SECTION, .sub = webhook_rows, .help = "admission" },
	{ "held", SECTION, .sub = held_rows, .help = "holding all work of a namespace" },
	{ "store", SECTION, .sub = store_rows, .help = "what outlives the daemon" },
	{ "leader", SECTION, .sub = leader_rows, .help = "high availability" },
	{ "log", SECTION, .sub = log_rows, .help = "its own log" },
	{ 0 },
};
