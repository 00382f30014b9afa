/* group.h — which group a pod belongs to, and what the group wants: the rules, without state.
 *
 * The rules are those of docs/groups.md (one table for Fluence, Fluxnetes, Fluxqueue and our own
 * keys).  Everything here looks at objects and returns values; nothing is kept. */
#pragma once
#include "control/rules/keys.h"

#define SLU_GROUP_OWNERS     4u /* controllers followed upwards from a pod */
#define SLU_GROUP_NAME_MAX   253u
#define SLU_GROUP_AFTER_MAX  16u
#define SLU_GROUP_AFTER_TEXT 1024u

/* A pod and the controllers above it that the mirror knows, nearest first. */
struct slu_group_source {
	const struct slu_kpod *pod;
	const struct slu_kobj *owner[SLU_GROUP_OWNERS];
	uint32_t n_owners;
};

/* Groups are told apart by (namespace, key). */
struct slu_group_id {
	char key[SLU_GROUP_NAME_MAX + 3]; /* "g:NAME" explicit, "n:NAME" native, "u:UID" derived */
	char name[64];                    /* for people */
	bool explicit;                    /* a user named it: may span objects */
	bool podgroup;                    /* the name is that of a PodGroup */
	bool native;                      /* ... of scheduling.k8s.io */
	bool led; /* a leader and its workers, which may be made only once the leader runs */
	uint32_t led_index; /* which group of its LeaderWorkerSet */
};

/* Always succeeds: a name that is no name (too long, control characters) is replaced by the derived
 * group, with the cause in err and -EINVAL. */
int slu_group_identify(const struct slu_group_source *s, struct slu_group_id *out,
		       struct slu_error *err);

/* The leader of such a group. */
bool slu_group_leads(const struct slu_group_id *id, const struct slu_kpod *p);

enum slu_after { SLU_AFTER_END, SLU_AFTER_OK, SLU_AFTER_FAILED, SLU_AFTER_START };

/* What a group starts after: a group by its name, the group of an object of a kind ("job/a"), or all
 * groups with some labels ("app=a&stage=1"). */
enum slu_after_whom {
	SLU_AFTER_GROUP,
	SLU_AFTER_LABELS,
	SLU_AFTER_OBJECT,
};

struct slu_group_wish {
	uint32_t min;         /* members that must start together, at least 1 */
	uint32_t max;         /* never more at once; UINT32_MAX: as many as there are */
	uint32_t can_exist;   /* members its owner makes; UINT32_MAX: not known */
	uint32_t named_min;   /* the part of min that a user wrote down; 0: none */
	bool elastic;         /* min-size or max-size is given: filled up with room that is left */
	int64_t duration_s;   /* 0: none named */
	int64_t begin_s;      /* 0: at once */
	int64_t deadline_s;   /* must have ended by then; 0: none */
	char queue[64];       /* "": the first */
	char reservation[64]; /* "": none */
	char level[32];       /* topology; "": anywhere */
	bool level_required;
	bool exclusive;
	bool serves; /* made by a Deployment or a set: without end, unless a duration is named */
	bool one_by_one; /* members are made one after another (OrderedReady): hold the places */
	int32_t priority;
	int32_t timeout_s; /* PodGroup scheduleTimeoutSeconds; 0: none */
	uint32_t n_after;
	struct slu_group_after {
		enum slu_after kind;
		enum slu_after_whom whom;
		enum slu_kkind object; /* of SLU_AFTER_OBJECT: its kind */
		uint16_t at;           /* of the text: the name, or the selector */
	} after[SLU_GROUP_AFTER_MAX];
	char after_text[SLU_GROUP_AFTER_TEXT];
};

/* Do the labels have everything that "a=b&c=d" asks for? */
bool slu_group_selects(const char *selector, const struct slu_kpair *labels, uint16_t n);

/* What the group of this pod wants.  `pg` is its PodGroup or NULL.  0; -EINVAL when something on
 * the objects makes no sense: err says what, and the group must not start until it is mended. */
int slu_group_wish(const struct slu_group_source *s, const struct slu_group_id *id,
		   const struct slu_kpodgroup *pg, uint32_t max_size, struct slu_group_wish *out,
		   struct slu_error *err);

/* An annotation of what was submitted: the outermost owner that has it, else the pod; NULL.  `on`,
 * if not NULL: whose it is. */
const char *slu_group_note(const struct slu_group_source *s, const char *key,
			   const struct slu_kmeta **on);

/* The number a person set (SLU_SET_PRIORITY, SLU_SET_LIMIT) on what was submitted; false: none, or it
 * is no number between the two. */
bool slu_group_set(const struct slu_group_source *s, const char *key, int64_t min, int64_t max,
		   int64_t *out);

/* "2026-11-15T22:00:00Z", "+01:00" too, or seconds since the epoch.  0 or -EINVAL. */
int slu_group_parse_time(const char *s, int64_t *out_s);
/* Check that `value` is valid for `key`, for the webhook, which refuses bad sizes, times, groups to
 * start after and switches early.  0 also for keys that are not Sluice's; -EINVAL, -ERANGE with a
 * sentence. */
int slu_group_check_pair(const char *key, const char *value, uint32_t max_size,
			 struct slu_error *err);
/* -EINVAL with a sentence if a key of ours on the pod or its owners means nothing (misspelt). */
int slu_group_check_keys(const struct slu_group_source *s, struct slu_error *err);
/* A positive whole number.  0, -EINVAL, -ERANGE, with a sentence that names the key. */
int slu_group_parse_size(const char *key, const char *s, uint32_t max, uint32_t *out,
			 struct slu_error *err);
