#include "control/config/foreign.h"

#include "wire/json.h"
#include "wire/jsonw.h"

/* A setting of another program, and the setting of Sluice with the same meaning. */
struct word {
	const char *theirs, *ours;
};

static const struct word leader_words[] = { { "leaderElect", "elect" },
					    { "resourceNamespace", "namespace" },
					    { "resourceName", "name" },
					    { "leaseDuration", "lease" },
					    { 0 } };
static const struct word client_words[] = { { "qps", "qps" }, { "burst", "burst" }, { 0 } };

bool slu_foreign_scheduler(const struct slu_json *root)
{
	const char *kind = slu_json_str(slu_json_get(root, "kind"));

	return kind && !strcmp(kind, "KubeSchedulerConfiguration");
}

static void ignore(struct slu_buf *b, const char *section, const char *key)
{
	slu_buf_printf(b, "%s%s%s%.60s", b->n ? ", " : "", section, *section ? "." : "", key);
}

static void put_section(struct slu_jsonw *w, const char *ours, const char *theirs,
			const struct word *words, const struct slu_json *v, struct slu_buf *ignored)
{
	slu_jsonw_key(w, ours);
	slu_jsonw_obj(w);
	slu_json_each (v, it) {
		const struct word *a = words;

		while (a->theirs && strcmp(a->theirs, it.key))
			a++;
		if (a->theirs) {
			slu_jsonw_key(w, a->ours);
			slu_jsonw_value(w, it.val);
		} else {
			ignore(ignored, theirs, it.key);
		}
	}
	slu_jsonw_end_obj(w);
}

/* The profile says whose pods the scheduler places.  Its plugins do not matter here: the plan does
 * their work. */
static void put_profiles(struct slu_jsonw *w, const struct slu_json *v, struct slu_buf *ignored)
{
	bool begun = false;

	slu_json_each (v, it) {
		if (!slu_json_is_obj(it.val)) {
			ignore(ignored, "profiles", "?");
			continue;
		}
		slu_json_each (it.val, of) {
			if (strcmp(of.key, "schedulerName")) {
				ignore(ignored, "profiles", of.key);
				continue;
			}
			if (!begun) {
				slu_jsonw_key(w, "schedulerNames");
				slu_jsonw_arr(w);
			}
			begun = true;
			slu_jsonw_value(w, of.val);
		}
	}
	if (begun)
		slu_jsonw_end_arr(w);
}

int slu_foreign_settings(const struct slu_json *root, struct slu_buf *out, struct slu_buf *ignored)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	slu_json_each (root, it) {
		if (!strcmp(it.key, "kind") || !strcmp(it.key, "apiVersion"))
			continue;
		if (!strcmp(it.key, "profiles") && slu_json_is_arr(it.val))
			put_profiles(&w, it.val, ignored);
		else if (!strcmp(it.key, "leaderElection") && slu_json_is_obj(it.val))
			put_section(&w, "leader", it.key, leader_words, it.val, ignored);
		else if (!strcmp(it.key, "clientConnection") && slu_json_is_obj(it.val))
			put_section(&w, "kube", it.key, client_words, it.val, ignored);
		else
			ignore(ignored, "", it.key);
	}
	slu_jsonw_end_obj(&w);
	return out->error ? out->error : ignored->error;
}

const char *slu_foreign_policy(const char *name)
{
	if (!strcmp(name, "hi"))
		return "high";
	return strcmp(name, "variation") ? name : NULL;
}
