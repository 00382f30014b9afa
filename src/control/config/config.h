/* config.h — every setting of the daemon, from one YAML file.
 *
 * One table (rows.c) holds for each setting its place in the file, type, default, limits and
 * a help line; the reader, the check, the printed configuration and the schema all come from it.  A
 * configuration is immutable and reference-counted: a reload reads a new one, and each part of the
 * daemon takes the new one and gives up the old one when it next looks.  After a failed reload the
 * old one stays in force.  Settings marked `restart` in the table need a restart; a reload that
 * changes one of them says so. */
#pragma once
#include "base/arena.h"
#include "base/base.h"
#include "wire/jsonw.h"

struct slu_config_strs {
	const char **p;
	uint32_t n;
};

/* A level of closeness, from the coarsest to the finest: nodes with equal labels are together. */
struct slu_config_level {
	const char *name;  /* "zone" */
	const char *label; /* "topology.kubernetes.io/zone" */
};

struct slu_config_queue {
	const char *name;
	const char *objective;
	uint32_t max_stretch;          /* 0: the objective's */
	int64_t max_wait_s;            /* 0: the objective's */
	const char *policy, *backfill; /* "auto": the objective's */
	uint32_t depth;                /* jobs looked at per cycle; 0: all */
	uint32_t reservation_depth;    /* of hybrid */
	int32_t priority;              /* added to the jobs' own */
	int64_t default_duration_s;    /* 0: jobs.defaultDuration */
	int64_t max_duration_s;        /* 0: no limit */
	uint32_t max_size;             /* members; 0: no limit */
	bool exclusive;                /* jobs may ask for whole nodes */
	uint32_t max_running;          /* jobs; 0: no limit */
	uint32_t max_waiting;
	uint32_t max_running_per_user;
	uint32_t max_waiting_per_user;
	const char *node_label; /* "key=value" the nodes of this queue carry; "": all nodes */
};

struct slu_queue_conf;
/* Policy, backfill and bound on the wait of a queue, from its objective and what is set beside it.
 * -EINVAL: a bound for a policy that has none. */
int slu_config_policy(const struct slu_config_queue *q, struct slu_queue_conf *out,
		      struct slu_error *err);

struct slu_config {
	struct slu_config_strs scheduler_names;
	struct {
		double qps;
		uint32_t burst;
		bool native_groups;
	} kube;
	struct {
		bool control_plane;
		const char *include_label, *exclude_label;
		int64_t back_s;
		struct slu_config_level *level;
		uint32_t n_levels;
	} nodes;
	struct {
		const char *policy;
	} match;
	struct slu_config_queue *queue;
	uint32_t n_queues;
	struct {
		int64_t default_duration_s;
		uint32_t max_size;
		const char *on_member_failure; /* "replace" or "restart" */
		int64_t hold_vacant_s;
		bool enforce_deadlines;
	} jobs;
	struct {
		uint32_t parallel;
		int64_t retry_s;
	} place;
	struct {
		bool annotate;
		int64_t interval_s;
		int64_t audit_s;
	} status;
	struct {
		const char *socket, *https, *health;
		const char *certificate, *key; /* files; "": our own */
		const char *ns, *secret;
		struct slu_config_strs names;
	} serve;
	struct {
		const char *host, *client_ca;
		uint32_t port; /* 0: none */
		bool external;
	} grpc;
	struct {
		bool enabled;
		const char *listen, *ns, *secret, *configuration;
		const char *client_ca; /* file; "": any caller is answered */
		const char *client_name;
		struct slu_config_strs names, controllers;
	} webhook;
	struct {
		bool enabled;
		const char *selector, *mode; /* mode: "own", "bind" or "compatible" */
		struct slu_config_strs never;
		int64_t refused_s, appear_s;
		uint32_t ahead;
	} held;
	struct {
		const char *url;
		const char *outage; /* hold, continue */
		bool log;
		int64_t keep_s;
		uint32_t keep_mb;
	} store;
	struct {
		bool elect;
		const char *ns, *name;
		int64_t lease_s;
	} leader;
	struct {
		const char *level, *format;
	} log;

	/* The settings of the file that have no effect here, in one line; "": none. */
	const char *ignored;

	struct slu_arena arena; /* owns everything above */
	_Atomic uint32_t refs;
};

/* The defaults, as if the file were empty. */
int slu_config_default(struct slu_config **out, struct slu_error *err);
/* From YAML text; `file` names it in messages: "sluiced.yaml:12: queues[1].policy: ...".  An
 * unknown key is an error (with the nearest known one).  0, -EINVAL, -ERANGE, -ENOMEM, ... */
int slu_config_parse(const char *file, const char *text, size_t n, struct slu_config **out,
		     struct slu_error *err);
int slu_config_read(const char *file, struct slu_config **out, struct slu_error *err);
/* One more owner; from any thread. */
const struct slu_config *slu_config_ref(const struct slu_config *c);
/* Give one reference up; the last one frees it.  From any thread; NULL is fine. */
void slu_config_free(const struct slu_config *c);
SLU_DEFINE_CLEANUP(struct slu_config, slu_config_free)

/* The whole configuration as JSON, each setting with its value in force. */
void slu_config_write(const struct slu_config *c, struct slu_jsonw *w);
/* A JSON schema of the file, made from the table. */
void slu_config_schema(struct slu_jsonw *w);
/* Names, separated by ", ", of the settings that differ and take effect only after a restart;
 * appended to `out`. */
void slu_config_needs_restart(const struct slu_config *old, const struct slu_config *now,
			      struct slu_buf *out);

/* "90", "90s", "15m", "1h30m", "1.5h", "7d", "1w", "01:30:00", "7-12:00:00": seconds, 0 or more, a
 * part of one counts as a whole.  0, -EINVAL, -ERANGE. */
int slu_config_seconds(const char *s, int64_t *out);
/* Copy the settings that need a restart from `first` to `now`, so that a reload does not apply them
 * in part.  `first` must outlive `now`. */
void slu_config_keep(struct slu_config *now, const struct slu_config *first);
