/* keys.h — every label and annotation key that means something to Sluice, in one table.
 *
 * All keys are read as label and as annotation, on the pod, the template and the owners.  Rows of
 * one meaning stand in order of precedence: the first that is there counts. */
#pragma once
#include "kube/object.h"

enum slu_key {
	SLU_KEY_GROUP,       /* name of the group, in the namespace of the pod */
	SLU_KEY_SIZE,        /* members that start together */
	SLU_KEY_MIN_SIZE,    /* elastic: start with at least so many ... */
	SLU_KEY_MAX_SIZE,    /* ... and never more than these */
	SLU_KEY_QUEUE,       /* queue it waits in */
	SLU_KEY_DURATION,    /* how long it runs: 90, 15m, 1h30m, 7d, 01:30:00 */
	SLU_KEY_BEGIN,       /* not before: RFC 3339 or seconds since the epoch */
	SLU_KEY_DEADLINE,    /* must have ended by then: the same */
	SLU_KEY_RESERVATION, /* the Reservation of its namespace that it may use */
	SLU_KEY_TOPOLOGY,    /* "rack", "required:rack", "preferred:rack": all members in one */
	SLU_KEY_EXCLUSIVE,   /* "true": whole nodes; "false" */
	SLU_KEY_AFTER,       /* groups that must have ended: "a", "ok:a", "failed:a,start:b" */
	SLU_KEY_IGNORED,     /* known, without effect on purpose */
	/* written by Sluice, never read as a wish */
	SLU_KEY_OUTPUT,
	SLU_KEYS,
};

/* Written by the controller of LeaderWorkerSets on its pods: one value for a leader and its workers;
 * the set, the number of the group in it, and 0 for the leader, the place in the group for a worker. */
#define SLU_LED_GROUP  "leaderworkerset.sigs.k8s.io/group-key"
#define SLU_LED_SET    "leaderworkerset.sigs.k8s.io/name"
#define SLU_LED_INDEX  "leaderworkerset.sigs.k8s.io/group-index"
#define SLU_LED_MEMBER "leaderworkerset.sigs.k8s.io/worker-index"

/* Noted by the webhook on submitted objects: when, in microseconds, and by which user. */
#define SLU_IN_SEEN "sluice.sh/seen-us"
#define SLU_IN_USER "sluice.sh/user"

/* On what a person took out of the queue: it stays out, also after a restart. */
#define SLU_CANCELLED "sluice.sh/cancelled"
#define SLU_ON_HOLD   "sluice.sh/on-hold"
/* What a person set with sluice priority and sluice limit: stands above what the objects wish. */
#define SLU_SET_PRIORITY "sluice.sh/set-priority"
#define SLU_SET_LIMIT    "sluice.sh/set-limit"

/* What Sluice tells about waiting work. */
#define SLU_OUT_START    "sluice.sh/start-estimate"
#define SLU_OUT_POSITION "sluice.sh/position"
#define SLU_OUT_REASON   "sluice.sh/reason"

struct slu_key_row {
	const char *key;
	enum slu_key means;
	bool podgroup; /* SLU_KEY_GROUP: the value names a PodGroup object */
	const char *help;
};

extern const struct slu_key_row slu_key_table[];
extern const uint32_t slu_key_rows;

/* Two lists of pairs where a key may stand. */
struct slu_key_place {
	const struct slu_kpair *labels, *annotations;
	uint16_t nlabels, nannotations;
};

static inline struct slu_key_place slu_key_place_meta(const struct slu_kmeta *m)
{
	return (struct slu_key_place){ m->labels, m->annotations, m->nlabels, m->nannotations };
}

static inline struct slu_key_place slu_key_place_template(const struct slu_ktemplate *t)
{
	return (struct slu_key_place){ t->labels, t->annotations, t->nlabels, t->nannotations };
}

/* The prefix of every key that Sluice defines. */
#define SLU_KEY_PREFIX "sluice.sh/"

/* The row of a key, or NULL. */
const struct slu_key_row *slu_key_find(const char *key);
/* 0, or -EINVAL with a sentence: a key with our prefix that means nothing, misspelt perhaps. */
int slu_key_check(const char *key, struct slu_error *err);
int slu_key_check_place(const struct slu_key_place *p, struct slu_error *err);

/* The value that counts for a meaning, or NULL; *row (may be NULL) tells which key it was.  Empty
 * values count as absent. */
const char *slu_key_value(const struct slu_key_place *p, enum slu_key k,
			  const struct slu_key_row **row);

/* Whether the wishes on the object changed; keys that Sluice itself writes do not count. */
bool slu_key_wishes_changed(const struct slu_kmeta *was, const struct slu_kmeta *now);

/* Some label's key contains "jobspec" and its value is `value` (compat: "zone" asks for one zone).
 */
bool slu_key_jobspec(const struct slu_key_place *p, const char *value);
