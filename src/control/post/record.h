/* record.h — the records that travel between the threads, in one place (see inbox.h). */
#pragma once
#include "base/vec.h"
#include "control/post/inbox.h"
#include "kube/client.h"
#include "kube/object.h"

enum slu_record_kind {
	/* io -> core */
	SLU_REC_OBJECT = 1, /* an object appeared, changed or went */
	SLU_REC_SYNCED,     /* the first list of a kind is complete */
	SLU_REC_WRITTEN,    /* a write to the cluster was answered */
	SLU_REC_ASK,        /* a person asks for something: cancel, drain, hold */
	SLU_REC_CONFIG,     /* a new configuration */
	SLU_REC_LEADER,     /* leadership was won */
	SLU_REC_CENSUS,     /* the contents of a fresh list */
	SLU_REC_RESENT,     /* everything the mirror holds of a kind */
	/* journal -> core */
	SLU_REC_WAKE, /* something became durable, or a snapshot is wanted: run a cycle */
	/* core -> io */
	SLU_REC_WRITE, /* write this to the cluster */
	SLU_REC_LOOK,  /* list again (see census.h) */
};

struct slu_rec_object {
	struct slu_record base;
	const struct slu_kobj *obj; /* a reference; the last version when it is gone */
	bool gone;
};
/* Takes its own reference to obj.  NULL: no memory. */
struct slu_record *slu_rec_object_new(const struct slu_kobj *obj, bool gone);

struct slu_rec_synced {
	struct slu_record base;
	enum slu_kkind kind;
	bool absent;  /* the server does not know the kind; comes again once it does */
	bool refused; /* absent, because this account may not list it */
};
struct slu_record *slu_rec_synced_new(enum slu_kkind kind);

struct slu_record *slu_rec_wake_new(void);

struct slu_config;
struct slu_rec_config {
	struct slu_record base;
	const struct slu_config *config; /* a reference */
};
/* Takes its own reference; a newer one takes the place of one that still waits. */
struct slu_record *slu_rec_config_new(const struct slu_config *config);

struct slu_journal_setup;
struct slu_rec_leader {
	struct slu_record base;
	const struct slu_journal_setup *setup; /* store and term; must outlive the core */
	char other[254]; /* setup NULL: this one leads, as the lease says; "": no replica */
};
struct slu_record *slu_rec_leader_new(const struct slu_journal_setup *setup, const char *other);

/* An object of a fresh list: a hash of its uid, and its version. */
struct slu_census_row {
	uint64_t uid, rv;
};
struct slu_rec_census {
	struct slu_record base;
	enum slu_kkind kind;
	uint64_t rv; /* of the list */
	SLU_VEC(struct slu_census_row) row;
};
struct slu_rec_census *slu_rec_census_new(enum slu_kkind kind);

/* Nothing that comes later may be handed over before it. */
struct slu_rec_resent {
	struct slu_record base;
	enum slu_kkind kind;
	SLU_VEC(const struct slu_kobj *) obj; /* references */
};
struct slu_rec_resent *slu_rec_resent_new(enum slu_kkind kind);

struct slu_rec_look {
	struct slu_record base;
	enum slu_kkind kind;
	bool again; /* list the kind again and send all of it; else a census */
};
struct slu_record *slu_rec_look_new(enum slu_kkind kind, bool again);

enum slu_write {
	SLU_WRITE_BIND,      /* pod -> node; a Scheduled event follows by itself */
	SLU_WRITE_EVENT,     /* reason, message about the object */
	SLU_WRITE_CONDITION, /* PodScheduled=False with reason and message */
	SLU_WRITE_ANNOTATE,  /* merge `text` (a JSON object) into metadata.annotations */
	SLU_WRITE_STATUS,    /* merge `text` into status (PodGroups) */
	SLU_WRITE_EVICT,     /* pod */
	SLU_WRITE_PATCH,     /* strategic merge patch `text` of the object (built-in kinds) */
	SLU_WRITE_SPEC,      /* merge `text` into spec */
	SLU_WRITE_CREATE,    /* `text` is the whole object */
	SLU_WRITE_COUNT,
};
const char *slu_write_name(enum slu_write w);

struct slu_rec_write {
	struct slu_record base;
	enum slu_write verb;
	enum slu_kkind kind;  /* of the object */
	uint64_t run, serial; /* come back in the answer; run 0: no answer wanted */
	const char *ns, *name, *uid;
	const char *node;     /* BIND */
	const char *reporter; /* BIND, EVENT: schedulerName */
	const char *reason;   /* EVENT, CONDITION */
	const char *text;     /* message or JSON */
	bool warning;         /* EVENT: type Warning */
	int64_t limit_ns;     /* give up after this long; 0: the client's */
	/* while it waits on the io side */
	struct slu_rec_write *next;
	int64_t done_us; /* BIND: when it was done, wall clock */
	uint32_t tries;  /* BIND: times its fate was looked up; EVENT: times it was sent again */
};
/* All strings are copied, in the same piece of memory; NULL becomes "".  NULL: no memory. */
struct slu_rec_write *slu_rec_write_new(const struct slu_rec_write *from);

struct slu_rec_written {
	struct slu_record base;
	enum slu_write verb;
	enum slu_kkind kind;
	uint64_t run, serial;
	enum slu_kube_outcome outcome;
	bool uncertain;
	char text[256];
};
struct slu_record *slu_rec_written_new(const struct slu_rec_write *w, enum slu_kube_outcome outcome,
				       bool uncertain, const char *text);

#define SLU_ASK_ALL "all"
#define SLU_ASK_OWN INT64_MIN
enum slu_ask {
	SLU_ASK_CANCEL,
	SLU_ASK_HOLD,
	SLU_ASK_RELEASE,
	SLU_ASK_DRAIN,
	SLU_ASK_UNDRAIN,
	SLU_ASK_RESIZE,    /* of a job: to `size` members */
	SLU_ASK_PRIORITY,  /* of a job: `value`; SLU_ASK_OWN: as its objects say */
	SLU_ASK_LIMIT,     /* of a job: `value` seconds; SLU_ASK_OWN */
	SLU_ASK_RESERVE,   /* a Reservation: `text` is the object */
	SLU_ASK_UNRESERVE, /* ... ends now */
	/* Make a fresh snapshot, and answer once it is published.  The snapshot has the foreign pods if the
	 * name is SLU_ASK_ALL, and the full explanation of one job if the record has a namespace, too. */
	SLU_ASK_SNAPSHOT,
	SLU_ASK_MATCH,   /* room for `text`, a jobspec; size: later rather than not at all */
	SLU_ASK_UNMATCH, /* of the match with this number in `name` */
};

struct slu_rec_ask {
	struct slu_record base;
	enum slu_ask what;
	char ns[64], name[256];
	char user[128];          /* the asking user, for the log; "": not known */
	uint32_t size;           /* RESIZE */
	int64_t value;           /* PRIORITY, LIMIT */
	int64_t from_s, until_s; /* DRAIN: its window; 0: from now on, for ever */
	const char *text;        /* MATCH, RESERVE; valid until the answer */
	/* Whether the answer is no longer awaited, from any thread; NULL: it is awaited. */
	bool (*over)(void *arg);
	/* Called on the core thread, exactly once, with a sentence; must not block. */
	void (*answer)(void *arg, int rc, const char *text);
	void *arg;
};
