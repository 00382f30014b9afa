/* record.h — the records that travel between the threads, in one place (see inbox.h). */
#pragma once
#include "base/arena.h"
#include "control/inbox.h"
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
	/* journal -> core */
	SLU_REC_WAKE, /* something became durable, or a snapshot is wanted: run a cycle */
	/* core -> io */
	SLU_REC_WRITE, /* write this to the cluster */
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
};
struct slu_record *slu_rec_synced_new(enum slu_kkind kind);

struct slu_record *slu_rec_wake_new(void);

struct slu_config;
struct slu_rec_config {
	struct slu_record base;
	const struct slu_config *config; /* must outlive the core, or the next of these */
};
struct slu_record *slu_rec_config_new(const struct slu_config *config);

struct slu_journal_setup;
struct slu_rec_leader {
	struct slu_record base;
	const struct slu_journal_setup *setup; /* store and term; must outlive the core */
};
struct slu_record *slu_rec_leader_new(const struct slu_journal_setup *setup);

enum slu_write {
	SLU_WRITE_BIND,      /* pod -> node; a Scheduled event follows by itself */
	SLU_WRITE_EVENT,     /* reason, message about the object */
	SLU_WRITE_CONDITION, /* PodScheduled=False with reason and message */
	SLU_WRITE_ANNOTATE,  /* merge `text` (a JSON object) into metadata.annotations */
	SLU_WRITE_STATUS,    /* merge `text` into status (PodGroups) */
	SLU_WRITE_EVICT,     /* pod */
	SLU_WRITE_COUNT,
};
const char *slu_write_name(enum slu_write w);

struct slu_rec_write {
	struct slu_record base;
	enum slu_write verb;
	enum slu_kkind kind;  /* of the object */
	uint64_t run, serial; /* come back in the answer; run 0: no answer wanted */
	const char *ns, *name, *uid;
	const char *node;       /* BIND */
	const char *reporter;   /* BIND, EVENT: schedulerName */
	const char *reason;     /* EVENT, CONDITION */
	const char *text;       /* message or JSON */
	bool warning;           /* EVENT: type Warning */
	int64_t limit_ns;       /* give up after this long; 0: the client's */
	struct slu_arena arena; /* owns the strings */
};
/* All strings are copied; NULL becomes "".  NULL: no memory. */
struct slu_rec_write *slu_rec_write_new(const struct slu_rec_write *like);

struct slu_rec_written {
	struct slu_record base;
	enum slu_write verb;
	uint64_t run, serial;
	enum slu_kube_outcome outcome;
	bool uncertain;
	char text[256];
};
struct slu_record *slu_rec_written_new(const struct slu_rec_write *w, enum slu_kube_outcome outcome,
				       bool uncertain, const char *text);

enum slu_ask {
	SLU_ASK_CANCEL,
	SLU_ASK_HOLD,
	SLU_ASK_RELEASE,
	SLU_ASK_DRAIN,
	SLU_ASK_UNDRAIN,
	SLU_ASK_PICTURE, /* nothing but a fresh snapshot; answered once it is published */
};

struct slu_rec_ask {
	struct slu_record base;
	enum slu_ask what;
	char ns[64], name[256];
	/* Called on the core thread, exactly once, with a sentence; must not block. */
	void (*answer)(void *arg, int rc, const char *text);
	void *arg;
};
