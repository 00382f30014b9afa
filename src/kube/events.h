/* events.h — telling people what happened, as Kubernetes Events, without flooding the server.
 *
 * Equal events (same object, type, reason, action, reporter, note) within some minutes become one
 * Event with a series; more than a handful of notes under one reason become one "(combined from
 * similar events)"; each object has a budget, and all of them together have a rate.  What does not
 * fit is counted and dropped: an event is never worth a delay.
 *
 * slu_kcorrelator is the pure half (the caller's clock, no I/O), slu_kevents sends what it decides.
 */
#pragma once
#include "kube/client.h"
#include "kube/encode.h"

struct slu_knote {
	struct slu_kregarding regarding;
	const char *type;   /* "Normal" or "Warning" */
	const char *reason; /* "Scheduled", "FailedScheduling" */
	const char *action; /* "Binding", "Scheduling" */
	const char *note;   /* the sentence; cut at 1024 bytes */
	const char
		*controller; /* reportingController: the pod's schedulerName; NULL: the default */
};

/* ---- the pure half ---- */

struct slu_kcorrelator_options {
	int64_t series_us;  /* a repetition within this is the same series; 0: 6 min */
	int64_t refresh_us; /* a series is written again at most this often; 0: 1 min */
	uint32_t similar;   /* notes under one reason before they are combined; 0: 10 */
	int64_t similar_us; /* counted over; 0: 10 min */
	uint32_t burst;     /* Events per object at once ... */
	int64_t refill_us;  /* ... and one more after each of these; 0: 25, and 5 min */
	uint32_t max;       /* remembered; 0: 4096, the longest unused are forgotten */
};
struct slu_kcorrelator;
struct slu_kcorrelator *slu_kcorrelator_new(const struct slu_kcorrelator_options *o);
void slu_kcorrelator_free(struct slu_kcorrelator *k);

enum slu_kverdict {
	SLU_KNOTE_CREATE, /* a new Event, named `name` */
	SLU_KNOTE_SERIES, /* patch the Event `name`: series of `count`, last seen now */
	SLU_KNOTE_COUNT,  /* counted; a later call or flush will write it */
	SLU_KNOTE_DROP,   /* over budget */
};
struct slu_kdecision {
	enum slu_kverdict verdict;
	char name[256]; /* object name and 16 hex digits */
	char ns[64];
	char note[1088];
	int32_t count;
	int64_t last_us;
};
/* Decide about one note at wall-clock time now_us.  0 or -ENOMEM (then drop it). */
int slu_kcorrelator_see(struct slu_kcorrelator *k, const struct slu_knote *n, int64_t now_us,
			struct slu_kdecision *out);
/* A series with counts not yet written, whose refresh time has come (or `all`): 1 with *out filled,
 * 0 if there is none.  Call until 0. */
int slu_kcorrelator_flush(struct slu_kcorrelator *k, int64_t now_us, bool all,
			  struct slu_kdecision *out);

/* ---- sending ---- */

struct slu_kevents_options {
	const char *controller; /* default reportingController; NULL: "sluice" */
	const char *instance; /* reportingInstance is "<controller>-<instance>"; NULL: host name */
	double qps, burst;    /* of all; 0: 50 and 200 */
	struct slu_kcorrelator_options correlate;
	int64_t (*now_us)(void); /* wall clock; NULL: the system's */
};
struct slu_kevents;
int slu_kevents_new(struct slu_kube_client *c, const struct slu_kevents_options *o,
		    struct slu_kevents **out);
/* Free it before its client.  Counts not yet written are lost; slu_kevents_flush() sends them. */
void slu_kevents_free(struct slu_kevents *e);
SLU_DEFINE_CLEANUP(struct slu_kevents, slu_kevents_free)
void slu_kevents_say(struct slu_kevents *e, const struct slu_knote *n);
void slu_kevents_flush(struct slu_kevents *e);

struct slu_kevents_stats {
	uint64_t said, created, patched, counted, dropped, failed;
};
void slu_kevents_stats(const struct slu_kevents *e, struct slu_kevents_stats *out);
