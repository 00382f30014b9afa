#include "control/rules/keys.h"

#include "base/near.h"
#include "control/rules/hold.h"

const struct slu_key_row slu_key_table[] = {
	{ "sluice.sh/group", SLU_KEY_GROUP, false, "group name" },
	{ "scheduling.x-k8s.io/pod-group", SLU_KEY_GROUP, true,
	  "group name; the PodGroup of that name, where there is one, decides its size" },
	{ "pod-group.scheduling.sigs.k8s.io", SLU_KEY_GROUP, true,
	  "the same, for PodGroups of scheduling.sigs.k8s.io" },
	{ "fluence.flux-framework.org/pod-group", SLU_KEY_GROUP, false, "group name (Fluence)" },
	{ "fluence.flux-framework.org/group", SLU_KEY_GROUP, false, "group name (Fluence, 2026)" },
	{ "fluence.pod-group", SLU_KEY_GROUP, false, "group name (Fluence, early 2024)" },
	{ "fluxnetes.group-name", SLU_KEY_GROUP, false, "group name (Fluxnetes)" },
	/* Written by a controller on the pods it makes, so the lowest: what a person wrote counts. */
	{ "jobset.sigs.k8s.io/jobset-name", SLU_KEY_GROUP, false, "all Jobs of a JobSet" },
	{ SLU_LED_GROUP, SLU_KEY_GROUP, false, "leader and workers of a LeaderWorkerSet" },

	{ "sluice.sh/size", SLU_KEY_SIZE, false, "number of members that start together" },
	{ "fluence.flux-framework.org/group-size", SLU_KEY_SIZE, false, "the same (Fluence)" },
	{ "fluence.group-size", SLU_KEY_SIZE, false, "the same (Fluence)" },
	{ "fluxnetes.group-size", SLU_KEY_SIZE, false, "the same (Fluxnetes)" },
	{ "leaderworkerset.sigs.k8s.io/size", SLU_KEY_SIZE, false,
	  "the same, leader included (LeaderWorkerSet)" },

	{ "sluice.sh/min-size", SLU_KEY_MIN_SIZE, false,
	  "elastic: least number of members to start with" },
	{ "sluice.sh/max-size", SLU_KEY_MAX_SIZE, false, "elastic: largest number of members" },
	{ "sluice.sh/queue", SLU_KEY_QUEUE, false, "queue to wait in" },
	{ "sluice.sh/duration", SLU_KEY_DURATION, false,
	  "how long the group runs (90, 15m, 1h30m, 7d, 01:30:00), unless activeDeadlineSeconds says so" },
	{ "sluice.sh/begin", SLU_KEY_BEGIN, false,
	  "earliest start (RFC 3339, or seconds since the epoch)" },
	{ "sluice.sh/deadline", SLU_KEY_DEADLINE, false,
	  "time by which the group must have ended, counting its whole duration" },
	{ "sluice.sh/reservation", SLU_KEY_RESERVATION, false,
	  "the Reservation of its namespace that the group may use" },
	{ "sluice.sh/topology", SLU_KEY_TOPOLOGY, false,
	  "all members in one rack, block, zone ...: \"rack\", \"required:rack\", "
	  "\"preferred:rack\"" },
	{ "sluice.sh/exclusive", SLU_KEY_EXCLUSIVE, false, "\"true\": whole nodes" },
	{ "sluice.sh/after", SLU_KEY_AFTER, false,
	  "start after other groups: \"a\", \"ok:a\", \"failed:a\", \"start:a\", or a comma-separated list; "
	  "\"job/a\" by kind, \"app=a&stage=1\" by labels" },

	{ "fluxqueue.pod-group", SLU_KEY_IGNORED, false, "never read by Fluxqueue itself" },
	{ "fluxqueue.group-size", SLU_KEY_IGNORED, false, "never read by Fluxqueue itself" },

	{ SLU_OUT_START, SLU_KEY_OUTPUT, false, "when the group is expected to start" },
	{ SLU_OUT_POSITION, SLU_KEY_OUTPUT, false, "place of the group in the queue" },
	{ SLU_OUT_REASON, SLU_KEY_OUTPUT, false, "why the group does not run yet" },
	{ SLU_CANCELLED, SLU_KEY_OUTPUT, false,
	  "\"true\": a person took the group out of the queue (sluice cancel, a deleted FluxJob)" },
	{ SLU_ON_HOLD, SLU_KEY_OUTPUT, false,
	  "\"true\": a person holds the group; written on the object that makes its members" },
	{ SLU_SET_PRIORITY, SLU_KEY_OUTPUT, false,
	  "priority that a person gave the group (sluice priority); on the same object" },
	{ SLU_SET_LIMIT, SLU_KEY_OUTPUT, false,
	  "limit in seconds that a person gave the group (sluice limit); on the same object" },
	{ SLU_IN_USER, SLU_KEY_OUTPUT, false,
	  "user who submitted the object (written by the webhook)" },
	{ SLU_IN_SEEN, SLU_KEY_OUTPUT, false,
	  "when the object was submitted, in microseconds (written by the webhook)" },
	{ SLU_HELD_MARK, SLU_KEY_OUTPUT, false,
	  "whether Sluice or its user holds the Job, or the Job was released" },
	{ SLU_HELD_AHEAD, SLU_KEY_OUTPUT, false, "the Job was resumed before its turn" },
	{ SLU_HELD_NODE, SLU_KEY_OUTPUT, false, "the node to which Sluice released the pod" },
	{ SLU_HELD_NODES, SLU_KEY_OUTPUT, false, "the nodes of the whole group" },
	{ SLU_HELD_PLACES, SLU_KEY_OUTPUT, false, "the places of the pods of a released Job" },
};
const uint32_t slu_key_rows = SLU_LEN(slu_key_table);

const struct slu_key_row *slu_key_find(const char *key)
{
	for (uint32_t i = 0; i < slu_key_rows; i++)
		if (!strcmp(slu_key_table[i].key, key))
			return &slu_key_table[i];
	return NULL;
}

int slu_key_check(const char *key, struct slu_error *err)
{
	struct slu_near near = slu_near(key);

	if (strncmp(key, SLU_KEY_PREFIX, strlen(SLU_KEY_PREFIX)) || slu_key_find(key) ||
	    !strcmp(key, SLU_HELD_SPACE))
		return 0;
	for (uint32_t i = 0; i < slu_key_rows; i++)
		if (slu_key_table[i].means < SLU_KEY_IGNORED)
			slu_near_try(&near, slu_key_table[i].key);
	return slu_fail(err, -EINVAL, "%.80s: no such key%s%s%s", key,
			near.best ? "; did you mean " : "", near.best ? near.best : "",
			near.best ? "?" : "");
}

int slu_key_check_place(const struct slu_key_place *p, struct slu_error *err)
{
	int rc = 0;

	for (uint16_t i = 0; i < p->nlabels && !rc; i++)
		rc = slu_key_check(p->labels[i].key, err);
	for (uint16_t i = 0; i < p->nannotations && !rc; i++)
		rc = slu_key_check(p->annotations[i].key, err);
	return rc;
}

const char *slu_key_value(const struct slu_key_place *p, enum slu_key k,
			  const struct slu_key_row **row)
{
	for (uint32_t i = 0; i < slu_key_rows; i++) {
		const struct slu_key_row *r = &slu_key_table[i];
		const char *v;

		if (r->means != k)
			continue;
		v = slu_kpair_get(p->labels, p->nlabels, r->key);
		if (!v || !*v)
			v = slu_kpair_get(p->annotations, p->nannotations, r->key);
		if (v && *v) {
			if (row)
				*row = r;
			return v;
		}
	}
	return NULL;
}

static bool same_pairs(const struct slu_kpair *a, uint16_t n, const struct slu_kpair *b, uint16_t m)
{
	for (uint16_t i = 0; n == m && i < n; i++)
		if (a[i].key != b[i].key || a[i].value != b[i].value)
			return false; /* strings are pooled: at least it looks different */
	return n == m;
}

bool slu_key_wishes_changed(const struct slu_kmeta *was, const struct slu_kmeta *now)
{
	struct slu_key_place a = slu_key_place_meta(was), b = slu_key_place_meta(now);

	if (same_pairs(a.labels, a.nlabels, b.labels, b.nlabels) &&
	    same_pairs(a.annotations, a.nannotations, b.annotations, b.nannotations))
		return false;
	for (int k = 0; k < SLU_KEY_IGNORED; k++) {
		const char *x = slu_key_value(&a, (enum slu_key)k, NULL);
		const char *y = slu_key_value(&b, (enum slu_key)k, NULL);

		if (!x != !y || (x && strcmp(x, y)))
			return true;
	}
	return false;
}

bool slu_key_jobspec(const struct slu_key_place *p, const char *value)
{
	for (uint16_t i = 0; i < p->nlabels; i++)
		if (strstr(p->labels[i].key, "jobspec") && !strcmp(p->labels[i].value, value))
			return true;
	return false;
}
