/* Every setting: its name, type, place, default, limits and purpose. */
#include "control/config/rows_internal.h"
#include "gang/gang.h"
#include "queue/queue.h"
#include "store/store.h"

#define AT(field)  offsetof(struct slu_config, field)
#define ATQ(field) offsetof(struct slu_config_queue, field)
#define ATL(field) offsetof(struct slu_config_level, field)

static const char *const backfill_orders[] = { "auto",   "submission", "shortest",
					       "packed", "balanced",   NULL };
static const char *const member_failure[] = { "replace", "restart", NULL };
static const char *const held_modes[] = { "own", "bind", "compatible", NULL };
static const char *const log_levels[] = { "debug", "info", "warn", "error", NULL };
static const char *const log_formats[] = { "text", "json", NULL };

static const struct row kube_rows[] = {
	{ "qps", REAL, AT(kube.qps), "500", 1, 100000,
	  .help = "average number of requests per second to the API server" },
	{ "burst", U32, AT(kube.burst), "1000", 1, 100000,
	  .help = "number of requests that may go out at once" },
	{ "nativeGroups", BOOL, AT(kube.native_groups), "true", .restart = true,
	  .help = "take part in Kubernetes' own PodGroups (scheduling.k8s.io), if the server has them" },
	{ 0 },
};

static const struct row level_rows[] = {
	{ "name", STR, ATL(name), NULL, .help = "name of the level in sluice.sh/topology" },
	{ "label", STR, ATL(label), NULL,
	  .help = "node label whose value names the place, such as one rack" },
	{ 0 },
};

static const struct row nodes_rows[] = {
	{ "controlPlane", BOOL, AT(nodes.control_plane), "false", .restart = true,
	  .help = "use control-plane nodes too" },
	{ "includeLabel", STR, AT(nodes.include_label), "", .restart = true,
	  .help = "use only nodes with this label (key, or key=value)" },
	{ "excludeLabel", STR, AT(nodes.exclude_label), "", .restart = true,
	  .help = "leave out nodes with this label (key, or key=value)" },
	{ "expectBack", SECONDS, AT(nodes.back_s), "0s", 0, 86400,
	  .help = "how long the plan counts on the return of a node that stopped being ready: promises on it that begin later stay; 0: not at all" },
	{ "topology", LIST, AT(nodes.level),
	  "[{name: zone, label: topology.kubernetes.io/zone}, {name: block, label: topology.sluice.sh/block}, "
	  "{name: rack, label: topology.sluice.sh/rack}]",
	  .sub = level_rows, .size = sizeof(struct slu_config_level), .n_off = AT(nodes.n_levels),
	  .restart = true, .help = "levels of closeness, the coarsest first" },
	{ 0 },
};

static const struct row match_rows[] = {
	{ "policy", CHOICE, AT(match.policy), "lonode", .choice = slu_gang_policy_names,
	  .help = "which of the fitting nodes a gang gets" },
	{ 0 },
};

static const struct row queue_rows[] = {
	{ "name", STR, ATQ(name), NULL, .help = "name of the queue in sluice.sh/queue" },
	{ "objective", CHOICE, ATQ(objective), "balanced", .choice = slu_objective_names,
	  .help = "what the queue optimises" },
	{ "maxStretch", U32, ATQ(max_stretch), "0", 0, SLU_STRETCH_MAX,
	  .help = "a job is promised a start once it has waited this many times its duration; "
		  "0: the value of the objective" },
	{ "maxWait", SECONDS, ATQ(max_wait_s), "0", 0, INT32_MAX,
	  .help = "a job is promised a start once it has waited this long, if that is sooner than maxStretch; "
		  "0: the value of the objective" },
	{ "policy", CHOICE, ATQ(policy), "auto", .choice = slu_policy_words,
	  .help = "order of the jobs, and which of them get a reservation; auto: the policy of the objective" },
	{ "backfill", CHOICE, ATQ(backfill), "auto", .choice = backfill_orders,
	  .help = "which jobs fill the gaps first; auto: the order of the objective or policy" },
	{ "depth", U32, ATQ(depth), "0", 0, 1000000,
	  .help = "number of jobs that a cycle looks at; 0: all" },
	{ "reservationDepth", U32, ATQ(reservation_depth), "4", 1, 1000000,
	  .help = "number of jobs that get a reservation under the hybrid policy" },
	{ "priority", I32, ATQ(priority), "0", -1000000000, 1000000000,
	  .help = "priority among queues: the queue with the higher one is served first" },
	{ "defaultDuration", SECONDS, ATQ(default_duration_s), "0", 0, INT32_MAX,
	  .help = "duration assumed for jobs that name none; 0: jobs.defaultDuration" },
	{ "maxDuration", SECONDS, ATQ(max_duration_s), "0", 0, INT32_MAX,
	  .help = "longest duration accepted; 0: any" },
	{ "exclusive", BOOL, ATQ(exclusive), "true",
	  .help = "jobs may ask for whole nodes (sluice.sh/exclusive, exclusive slots of FluxJobs)" },
	{ "maxSize", U32, ATQ(max_size), "0", 0, INT32_MAX,
	  .help = "largest gang accepted; 0: any" },
	{ "maxRunning", U32, ATQ(max_running), "0", 0, INT32_MAX,
	  .help = "number of gangs that may run at once, later members included; 0: any number" },
	{ "maxWaiting", U32, ATQ(max_waiting), "0", 0, INT32_MAX,
	  .help = "number of gangs that may wait at once; further gangs stay outside and are let in, in order, when one leaves; 0: any number" },
	{ "maxRunningPerUser", U32, ATQ(max_running_per_user), "0", 0, INT32_MAX,
	  .help = "like maxRunning, for each user: the one that the webhook saw, otherwise the namespace" },
	{ "maxWaitingPerUser", U32, ATQ(max_waiting_per_user), "0", 0, INT32_MAX,
	  .help = "like maxWaiting, for each user: the one that the webhook saw, otherwise the namespace" },
	{ "nodeLabel", STR, ATQ(node_label), "",
	  .help = "label (key=value) that the nodes of this queue carry; empty: all nodes" },
	{ 0 },
};

static const struct row jobs_rows[] = {
	{ "defaultDuration", SECONDS, AT(jobs.default_duration_s), "1h", 0, INT32_MAX,
	  .help = "duration planned for jobs that name none; 0: without end. Sluice ends no job because of it" },
	{ "maxSize", U32, AT(jobs.max_size), "100000", 1, 1000000,
	  .help = "largest gang accepted; Sluice takes a larger size for a mistake and refuses it" },
	{ "onMemberFailure", CHOICE, AT(jobs.on_member_failure), "replace",
	  .choice = member_failure,
	  .help = "what Sluice does when a member fails: replace it on a fitting node, or restart the whole gang" },
	{ "holdVacant", SECONDS, AT(jobs.hold_vacant_s), "30s", 0, 86400,
	  .help = "how long Sluice keeps the place of an ended member for its successor" },
	{ "enforceDeadlines", BOOL, AT(jobs.enforce_deadlines), "false",
	  .help = "evict members that run longer than the duration they named" },
	{ 0 },
};

static const struct row place_rows[] = {
	{ "parallel", U32, AT(place.parallel), "64", 1, 1000, .restart = true,
	  .help = "number of bindings in flight at once" },
	{ "retryFor", SECONDS, AT(place.retry_s), "30s", 0, 3600,
	  .help = "how long Sluice retries a failing binding before it takes the gang back" },
	{ 0 },
};

static const struct row status_rows[] = {
	{ "annotate", BOOL, AT(status.annotate), "true",
	  .help = "write position, start estimate and reason to waiting pods and PodGroups" },
	{ "interval", SECONDS, AT(status.interval_s), "5s", 1, 3600,
	  .help = "shortest time between two status writes for one job" },
	{ "audit", SECONDS, AT(status.audit_s), "60s", 1, 86400,
	  .help = "how often Sluice compares its books with the cluster" },
	{ 0 },
};

static const struct row serve_rows[] = {
	{ "socket", STR, AT(serve.socket), "/run/sluice/sluiced.sock", .restart = true,
	  .help = "Unix socket that the sluice command talks to; empty: none" },
	{ "https", STR, AT(serve.https), ":8443", .restart = true,
	  .help = "address of the HTTPS port (for the command and metrics); empty: none" },
	{ "certificate", STR, AT(serve.certificate), "", .restart = true,
	  .help = "PEM file with the certificate of the HTTPS port; empty: sluiced makes its own" },
	{ "key", STR, AT(serve.key), "", .restart = true,
	  .help = "PEM file with the key of the HTTPS certificate" },
	{ "names", STRS, AT(serve.names), "[localhost, sluice.sluice-system.svc]", .restart = true,
	  .help = "DNS names in the certificate that sluiced makes" },
	{ "namespace", STR, AT(serve.ns), "sluice-system", .restart = true,
	  .help = "namespace of the Secret" },
	{ "secret", STR, AT(serve.secret), "sluice-https", .restart = true,
	  .help = "Secret that keeps the certificate that sluiced makes, and its authority; created if missing; "
		  "empty: a new certificate at each start" },
	{ "health", STR, AT(serve.health), ":8081", .restart = true,
	  .help = "address of /healthz, /readyz and /metrics in plain HTTP; empty: none" },
	{ 0 },
};

static const struct row grpc_rows[] = {
	{ "port", U32, AT(grpc.port), "0", 0, 65535, .restart = true,
	  .help = "port of the services of Fluence, Fluxnetes and Fluxion (whose own port is 4242); 0: none, or 4242 with --standalone" },
	{ "host", STR, AT(grpc.host), "127.0.0.1", .restart = true,
	  .help = "address that the services listen on; empty: all addresses. Any address but a loopback one needs TLS and callers who identify themselves" },
	{ "external", BOOL, AT(grpc.external), "false", .restart = true,
	  .help = "also serve service.ExternalPluginService" },
	{ "clientCA", STR, AT(grpc.client_ca), "", .restart = true,
	  .help = "PEM file with authorities; a caller with a certificate of one of them may call every method" },
	{ 0 },
};

static const struct row webhook_rows[] = {
	{ "enabled", BOOL, AT(webhook.enabled), "false", .restart = true,
	  .help = "record who submits what and when, and refuse objects that are plainly wrong (deploy/webhook.yaml)" },
	{ "listen", STR, AT(webhook.listen), ":9443", .restart = true,
	  .help = "address that the webhook answers on" },
	{ "names", STRS, AT(webhook.names), "[sluice-webhook.sluice-system.svc]", .restart = true,
	  .help = "DNS names by which the API server may call the webhook" },
	{ "namespace", STR, AT(webhook.ns), "sluice-system", .restart = true,
	  .help = "namespace of the Secret" },
	{ "secret", STR, AT(webhook.secret), "sluice-webhook", .restart = true,
	  .help = "Secret that keeps the webhook's authority and certificate; created if missing" },
	{ "configuration", STR, AT(webhook.configuration), "sluice", .restart = true,
	  .help = "MutatingWebhookConfiguration into which sluiced writes the authority" },
	{ "clientCA", STR, AT(webhook.client_ca), "", .restart = true,
	  .help = "PEM file with an authority: the webhook answers only callers with a certificate of this authority; empty: any caller" },
	{ "clientName", STR, AT(webhook.client_name), "", .restart = true,
	  .help = "common name that the caller's certificate must have; empty: any" },
	{ "controllers", STRS, AT(webhook.controllers),
	  "[system:kube-controller-manager, \"system:serviceaccount:kube-system:\"]",
	  .help = "accounts that make objects for others: the user of such an object is the user of its owner. A name that ends in a colon matches every name that begins with it" },
	{ 0 },
};

static const struct row held_rows[] = {
	{ "enabled", BOOL, AT(held.enabled), "true", .restart = true,
	  .help = "hold work in namespaces that ask for it, and handle FluxJobs" },
	{ "selector", STR, AT(held.selector), "",
	  .help = "hold all work in namespaces with this label (key, or key=value), in addition to those labelled sluice.sh/hold" },
	{ "mode", CHOICE, AT(held.mode), "own", .choice = held_modes,
	  .help = "own: held work keeps its schedulerName; bind: held work gets the schedulerName of Sluice, which binds it; compatible: held work gets the schedulerName FluxionScheduler, as with Fluxqueue" },
	{ "never", STRS, AT(held.never),
	  "[kube-system, kube-public, kube-node-lease, sluice-system]",
	  .help = "namespaces in which no work is ever held" },
	{ "refusedFor", SECONDS, AT(held.refused_s), "60s", 1, 86400,
	  .help = "a released pod that its scheduler refuses for this long gets another place" },
	{ "placeTimeout", SECONDS, AT(held.appear_s), "10m", 5, 604800,
	  .help = "how long Sluice keeps places for a resumed Job of which no pod appears" },
	{ "ahead", U32, AT(held.ahead), "512", 0, 10000,
	  .help = "Sluice resumes Jobs at the head of the queue before their turn, up to this many pods in all, which wait at their gates; 0: none" },
	{ 0 },
};

static const char *const store_outage[] = { "hold", "continue", NULL };

static const struct row store_rows[] = {
	{ "url", STR, AT(store.url), "/var/lib/sluice/sluice.db", .restart = true,
	  .shown = slu_store_url_shown,
	  .help = "SQLite file, postgres:// URL (DATABASE_URL overrides it), or memory: for no store" },
	{ "outage", CHOICE, AT(store.outage), "hold", .choice = store_outage,
	  .help = "what happens while the store cannot be written: hold back new placements, or continue with the cluster as the only memory" },
	{ "log", BOOL, AT(store.log), "true", .restart = true,
	  .help = "keep every event that the queue receives and every decision that it makes, for sluice replay" },
	{ "keepFor", SECONDS, AT(store.keep_s), "30d", 3600, INT32_MAX,
	  .help = "Sluice removes history that is older than this" },
	{ "keepMegabytes", U32, AT(store.keep_mb), "4096", 1, 1000000000,
	  .help = "while the store is larger than this, Sluice removes history, the oldest first" },
	{ 0 },
};

static const struct row leader_rows[] = {
	{ "elect", BOOL, AT(leader.elect), "false", .restart = true,
	  .help = "run several replicas: one decides, the others stand by" },
	{ "namespace", STR, AT(leader.ns), "sluice-system", .restart = true,
	  .help = "namespace of the lease" },
	{ "name", STR, AT(leader.name), "sluice", .restart = true, .help = "name of the lease" },
	{ "lease", SECONDS, AT(leader.lease_s), "15s", 3, 3600, .restart = true,
	  .help = "a leader that has been silent for this long is replaced" },
	{ 0 },
};

static const struct row log_rows[] = {
	{ "level", CHOICE, AT(log.level), "info", .choice = log_levels,
	  .help = "least important level that is written" },
	{ "format", CHOICE, AT(log.format), "text", .choice = log_formats,
	  .help = "text for people, json for machines" },
	{ 0 },
};

const struct row slu_config_rows[] = {
	{ "schedulerNames", STRS, AT(scheduler_names),
	  "[sluice, fluence, fluxnetes, FluxionScheduler, kubeflux, scheduling-plugin]",
	  .restart = true,
	  .help = "Sluice places the pods that name one of these in spec.schedulerName" },
	{ "kube", SECTION, .sub = kube_rows, .help = "how sluiced talks to the API server" },
	{ "nodes", SECTION, .sub = nodes_rows,
	  .help = "which nodes Sluice uses, and which of them are close to each other" },
	{ "match", SECTION, .sub = match_rows, .help = "how Sluice chooses nodes" },
	{ "queues", LIST, AT(queue), "[{name: default}]", .sub = queue_rows,
	  .size = sizeof(struct slu_config_queue), .n_off = AT(n_queues),
	  .help = "the queues; the first one takes jobs that name no queue" },
	{ "jobs", SECTION, .sub = jobs_rows, .help = "defaults and limits of gangs" },
	{ "place", SECTION, .sub = place_rows,
	  .help = "how Sluice writes decisions to the cluster" },
	{ "status", SECTION, .sub = status_rows,
	  .help = "what Sluice writes back about waiting work" },
	{ "serve", SECTION, .sub = serve_rows, .help = "where the daemon listens" },
	{ "grpc", SECTION, .sub = grpc_rows, .help = "the Fluxion services" },
	{ "webhook", SECTION, .sub = webhook_rows, .help = "the admission webhook" },
	{ "held", SECTION, .sub = held_rows, .help = "how Sluice holds all work of a namespace" },
	{ "store", SECTION, .sub = store_rows, .help = "what sluiced keeps across restarts" },
	{ "leader", SECTION, .sub = leader_rows, .help = "high availability" },
	{ "log", SECTION, .sub = log_rows, .help = "the log of sluiced" },
	{ 0 },
};
