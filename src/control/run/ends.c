/* How members and gangs ended, in sight and out of it: outcome, use, and what the store's row says
 * about a life of which the cluster shows only a part.
 *
 * Use is exact: each member from its own start (its kubelet's, else the decision) to its own end
 * (its containers', else when it was seen to be gone), times what it asked for. */
#include "control/run/run.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define SET       "set"       /* key in a row: values that a person set */
#define AVOID     "avoid"     /* key: nodes that refused a member lately */
#define AGAIN     "again"     /* key: earliest time to plan the group again */
#define ON_HOLD   "held"      /* key: a person holds its later members */
#define CANCELLED "cancelled" /* key: a person cancelled its later members */
#define VACANT    "vacant"    /* key: nodes with places kept for members to come */
#define VACANT_LATER \
	"vacantLater"      /* key: such nodes of followers, each with the start of its run */
#define LIST_MAX_ROW 1000u /* places and makers in a row of the store */

static int64_t used_by(int64_t millicores, int64_t start_us, int64_t end_us)
{
	return end_us > start_us ? (int64_t)((__int128)millicores * (end_us - start_us) / 1000000)
				 : 0;
}

static int64_t end_us_of(const struct slu_core *c, const struct slu_kpod *k)
{
	return slu_kpod_ended(k) && k->finish_us ? k->finish_us : c->now_us;
}

void core_used(struct slu_core *c, struct run *r, const struct slot *s)
{
	const struct slu_kpod *k = s->pod && s->state == SLOT_BOUND ? s->pod->k : NULL;
	int64_t cpu, end_us, start_us;

	if (!k || r->state == RUN_QUEUED)
		return;
	cpu = slu_kamount_get(k->spec.requests, k->spec.nrequests, "cpu");
	end_us = end_us_of(c, k);
	start_us = k->start_us ? k->start_us : r->start_s * 1000000;
	r->g->used += used_by(cpu, start_us, end_us);
	r->g->ended_us = SLU_MAX(r->g->ended_us, end_us);
}

/* What its Jobs say, else what became of its members; one that was deleted has not succeeded. */
enum slu_result core_outcome(struct slu_core *c, const struct group *g)
{
	bool complete = false;

	for (uint32_t i = 0; i < g->maker.n; i++) {
		const struct slu_kobj *o = core_owner(c, g->ns, g->maker.p[i]);

		if (!o || o->kind != SLU_KIND_JOB)
			continue;
		if (slu_kjob(o)->failed_cond == SLU_TRI_TRUE)
			return SLU_RESULT_FAILED;
		complete |= slu_kjob(o)->complete == SLU_TRI_TRUE;
	}
	return complete || (g->ended_ok && !g->ended_bad) ? SLU_RESULT_OK : SLU_RESULT_FAILED;
}

void core_result_keep(struct slu_core *c, const struct group *g, uint64_t job, int64_t start_s,
		      enum slu_result how)
{
	struct slu_store_result res = { .job = job,
					.key = g->key,
					.name = g->id.name,
					.user = g->user,
					.queue = g->wish.queue,
					.outcome = how == SLU_RESULT_OK       ? "ok"
						   : how == SLU_RESULT_FAILED ? "failed"
									      : "cancelled",
					.first_seen_us = g->first_seen_us,
					.start_s = start_s,
					.end_s = g->ended_us ? g->ended_us / 1000000 : c->now_s,
					.size = g->wish.min,
					.usage = g->used };

	slu_log(SLU_INFO, "gang ended", SLU_STR("job", g->id.name), SLU_STR("ns", g->ns),
		SLU_STR("result", res.outcome), SLU_I64("ran_s", res.end_s - start_s));
	if (slu_batch_put_result(slu_intents_batch(c->door), &res) < 0)
		slu_log(SLU_WARN, "result not saved in the store", SLU_STR("job", g->id.name));
}

/* ---- the row ---- */

static void put_count(struct slu_jsonw *w, const char *key, int64_t n)
{
	if (n)
		slu_jsonw_ki64(w, key, n);
}

static void put_makers(const struct group *g, struct slu_jsonw *w)
{
	if (!g->maker.n || !g->id.explicit)
		return; /* the key names the maker */
	slu_jsonw_key(w, "makers");
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < SLU_MIN(g->maker.n, LIST_MAX_ROW); i++)
		slu_jsonw_str(w, g->maker.p[i]);
	slu_jsonw_end_arr(w);
}

static void put_vacant_of(struct slu_core *c, const struct run *r, struct slu_jsonw *w, uint32_t *n)
{
	for (uint32_t k = 0; k < r->slot.n && *n < LIST_MAX_ROW; k++) {
		const char *node = core_node_name(c, r->slot.p[k].node);

		if (r->slot.p[k].state != SLOT_VACANT)
			continue;
		if (!(*n)++) {
			slu_jsonw_key(w, r->gang ? VACANT : VACANT_LATER);
			slu_jsonw_arr(w);
		}
		if (r->gang) {
			slu_jsonw_str(w, node);
			continue;
		}
		slu_jsonw_obj(w);
		slu_jsonw_kstr(w, "node", node);
		slu_jsonw_ki64(w, "start", r->start_s);
		slu_jsonw_end_obj(w);
	}
}

/* The places of members that came later, each with the start of its run: it ends later, too. */
static void put_vacant(struct slu_core *c, const struct group *g, struct slu_jsonw *w)
{
	for (int gang = 1; gang >= 0; gang--) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < g->run.n; i++)
			if (g->run.p[i]->gang == gang && g->run.p[i]->n_slot[SLOT_VACANT])
				put_vacant_of(c, g->run.p[i], w, &n);
		if (n)
			slu_jsonw_end_arr(w);
	}
}

static void put_flag(struct slu_jsonw *w, const char *key, bool set)
{
	if (!set)
		return;
	slu_jsonw_key(w, key);
	slu_jsonw_bool(w, true);
}

/* What a person set.  The state of the row says that a group waits on hold; one that runs may be on hold or
 * cancelled, too, with members that wait. */
static void put_set(const struct group *g, struct slu_jsonw *w)
{
	if (core_started(g)) {
		put_flag(w, ON_HOLD, g->on_hold);
		put_flag(w, CANCELLED, g->cancelled);
	}
	if (!g->has_priority && !g->limit_s)
		return;
	slu_jsonw_key(w, SET);
	slu_jsonw_obj(w);
	if (g->has_priority)
		slu_jsonw_ki64(w, "priority", g->priority);
	if (g->limit_s)
		slu_jsonw_ki64(w, "limit", g->limit_s);
	slu_jsonw_end_obj(w);
}

static int copy_name(const char *name, size_t n, struct core_names *out)
{
	char *s = slu_strndup(name, n);

	if (!s || slu_vec_push(out, s) < 0) {
		slu_free(s);
		return -ENOMEM;
	}
	return 0;
}

static int copy_list(const struct slu_json *arr, struct core_names *out)
{
	slu_json_each (arr, it) {
		if (slu_json_str(it.val) &&
		    copy_name(slu_json_str(it.val), strlen(slu_json_str(it.val)), out) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Where the gang is not tried again for a while, and when it is tried again at all. */
static void put_refused(struct slu_core *c, const struct group *g, struct slu_jsonw *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SLU_MIN(g->n_avoid, SLU_LEN(g->avoid)); i++) {
		const char *name = core_node_name(c, g->avoid[i]);

		if (!*name) /* the node is gone */
			continue;
		if (!n++) {
			slu_jsonw_ki64(w, "until", g->avoid_until_s);
			slu_jsonw_key(w, AVOID);
			slu_jsonw_arr(w);
		}
		slu_jsonw_str(w, name);
	}
	if (n)
		slu_jsonw_end_arr(w);
	if (g->again_s)
		slu_jsonw_ki64(w, AGAIN, g->again_s);
	if (n || g->again_s)
		put_count(w, "undone", g->undone);
}

/* There may be very many rows, and few of them have any of this. */
static int read_rare(struct core_memory *m, const char *text)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *root, *set, *priority;
	int rc;

	if (!strstr(text, "\"" SET "\"") && !strstr(text, "\"" AVOID "\"") &&
	    !strstr(text, "\"" AGAIN "\"") && !strstr(text, "\"" ON_HOLD "\"") &&
	    !strstr(text, "\"" CANCELLED "\""))
		return 0;
	rc = slu_json_parse(text, strlen(text), NULL, &doc, NULL);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	root = slu_json_root(doc);
	m->on_hold = slu_json_get(root, ON_HOLD) != NULL;
	m->cancelled |= slu_json_get(root, CANCELLED) != NULL;
	set = slu_json_get(root, SET);
	priority = slu_json_get(set, "priority");
	m->has_priority = priority != NULL;
	m->priority = (int32_t)slu_json_i64_or(priority, 0);
	m->limit_s = slu_json_i64_or(slu_json_get(set, "limit"), 0);
	m->avoid_until_s = slu_json_i64_or(slu_json_get(root, "until"), 0);
	m->again_s = slu_json_i64_or(slu_json_get(root, AGAIN), 0);
	m->undone = (uint32_t)slu_json_i64_or(slu_json_get(root, "undone"), 0);
	return copy_list(slu_json_get(root, AVOID), &m->avoid);
}

/* Members that came later, with their own start: they end later, too. */
static void put_later(const struct group *g, struct slu_jsonw *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->run.n; i++) {
		const struct run *r = g->run.p[i];

		for (uint32_t k = 0; !r->gang && r->state != RUN_QUEUED && k < r->slot.n; k++) {
			if (!r->slot.p[k].pod || n == LIST_MAX_ROW)
				continue;
			if (!n++) {
				slu_jsonw_key(w, "later");
				slu_jsonw_obj(w);
			}
			slu_jsonw_ki64(w, core_pod_uid(r->slot.p[k].pod), r->start_s);
		}
	}
	if (n)
		slu_jsonw_end_obj(w);
}

void core_life_put(struct slu_core *c, const struct group *g, struct slu_jsonw *w)
{
	put_makers(g, w);
	put_count(w, "ok", g->ended_ok);
	put_count(w, "failed", g->ended_bad);
	put_count(w, "alone", g->ended_alone);
	put_count(w, "used", g->used);
	put_count(w, "ended_us", g->ended_us);
	put_set(g, w);
	put_refused(c, g, w);
	put_vacant(c, g, w);
	put_later(g, w);
}

static int copy_later(const struct slu_json *obj, struct core_memory *m)
{
	slu_json_each (obj, it) {
		struct core_later l = { slu_strdup(it.key), slu_json_i64_or(it.val, 0) };

		if (!l.name || slu_vec_push(&m->later, l) < 0) {
			slu_free(l.name);
			return -ENOMEM;
		}
	}
	return 0;
}

static int copy_vacant_later(const struct slu_json *arr, struct core_memory *m)
{
	slu_json_each (arr, it) {
		const char *node = slu_json_str(slu_json_get(it.val, "node"));
		struct core_later l = { .start_s = slu_json_i64_or(slu_json_get(it.val, "start"),
								   0) };

		if (!node)
			continue;
		l.name = slu_strdup(node);
		if (!l.name || slu_vec_push(&m->vacant_later, l) < 0) {
			slu_free(l.name);
			return -ENOMEM;
		}
	}
	return 0;
}

int core_memory_read(struct core_memory *m, const struct slu_store_job *j)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const char *group = strchr(j->key, '/');
	const struct slu_json *spec, *role;
	bool past; /* members of it have ended, or ran before it was taken back */
	int rc;

	rc = read_rare(m, j->spec);
	if (rc < 0)
		return rc;
	m->size = (uint32_t)j->size;
	m->max_size = (uint32_t)j->max_size;
	m->wish_priority = j->priority;
	m->duration_s = j->limit_s;
	m->begin_s = j->begin_s;
	m->deadline_s = j->deadline_s;
	m->named = group && group[1] != 'u';
	m->retired = strchr(j->key, CORE_RETIRED);
	m->ran = m->begun || j->state == SLU_STORE_STARTING;
	past = strstr(j->spec, "\"ok\"") || strstr(j->spec, "\"failed\"") ||
	       strstr(j->spec, "\"used\"");
	if (!m->ran && !m->named && !past)
		return 0; /* its key is all there is to know, and there may be very many */
	if (!m->ran && !past && !strstr(j->spec, "\"makers\""))
		return 0; /* the pods it waited with tell */
	/* "/u:UID": what makes it, or the pod itself */
	if (!m->named && group &&
	    copy_name(group + 3, strcspn(group + 3, (char[]){ CORE_RETIRED, 0 }), &m->maker) < 0)
		return -ENOMEM;
	m->name = slu_strdup(j->name);
	m->user = slu_strdup(j->user);
	m->queue = slu_strdup(j->queue);
	if (!m->name || !m->user || !m->queue)
		return -ENOMEM;
	rc = slu_json_parse(j->spec, strlen(j->spec), NULL, &doc, NULL);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0; /* an older row says less */
	spec = slu_json_root(doc);
	m->ok = (uint32_t)slu_json_i64_or(slu_json_get(spec, "ok"), 0);
	m->bad = (uint32_t)slu_json_i64_or(slu_json_get(spec, "failed"), 0);
	m->alone = (uint32_t)slu_json_i64_or(slu_json_get(spec, "alone"), 0);
	m->used = slu_json_i64_or(slu_json_get(spec, "used"), 0);
	m->ended_us = slu_json_i64_or(slu_json_get(spec, "ended_us"), 0);
	role = slu_json_item(slu_json_get(spec, "roles"), 0);
	m->cpu = slu_json_i64_or(slu_json_get(slu_json_get(role, "need"), "cpu"), 0);
	rc = copy_later(slu_json_get(spec, "later"), m);
	rc = rc ? rc : copy_vacant_later(slu_json_get(spec, VACANT_LATER), m);
	rc = rc ? rc : copy_list(slu_json_get(spec, "makers"), &m->maker);
	return rc ? rc : copy_list(slu_json_get(spec, VACANT), &m->vacant);
}

int core_memory_pod(struct core_memory *m, const char *uid)
{
	return m->ran || m->named ? copy_name(uid, strlen(uid), &m->pod) : 0;
}

static void names_free(struct core_names *l)
{
	while (l->n)
		slu_free(l->p[--l->n]);
	slu_vec_done(l);
}

void core_memory_done(struct core_memory *m)
{
	names_free(&m->maker);
	names_free(&m->pod);
	names_free(&m->vacant);
	names_free(&m->avoid);
	while (m->later.n)
		slu_free(m->later.p[--m->later.n].name);
	slu_vec_done(&m->later);
	while (m->vacant_later.n)
		slu_free(m->vacant_later.p[--m->vacant_later.n].name);
	slu_vec_done(&m->vacant_later);
	slu_free(m->name);
	slu_free(m->user);
	slu_free(m->queue);
}

/* ---- one life or another ---- */

static bool has_name(const struct core_names *l, const char *s)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (!strcmp(l->p[i], s))
			return true;
	return false;
}

bool core_memory_is(const struct core_memory *m, const struct group *g)
{
	if (!m->named || (!m->maker.n && !m->pod.n))
		return true; /* the key tells, or nothing does */
	for (uint32_t i = 0; i < g->maker.n; i++)
		if (has_name(&m->maker, g->maker.p[i]))
			return true;
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (has_name(&m->pod, core_pod_uid(g->pod.p[i])))
			return true;
	return false;
}

/* The latest end the makers know of, for members whose end was not seen. */
static int64_t gone_us(struct slu_core *c, const struct core_memory *m)
{
	int64_t at = 0;

	for (uint32_t i = 0; i < m->maker.n; i++) {
		const struct slu_kobj *o = core_owner(c, m->key, m->maker.p[i]);

		if (o && o->kind == SLU_KIND_JOB)
			at = SLU_MAX(at, slu_kjob(o)->completion_us);
	}
	return at ? at : c->now_us;
}

void core_memory_account(struct slu_core *c, struct core_memory *m)
{
	bool ran = m->state == SLU_STORE_STARTING || m->state == SLU_STORE_RUNNING;

	for (uint32_t i = 0; i < m->pod.n; i++) {
		const struct pod *p = pod_of(slu_table_finds(&c->cluster->pods, m->pod.p[i]));
		const struct slu_kpod *k = p ? p->k : NULL;
		int64_t start_us = k && k->start_us ? k->start_us : m->start_s * 1000000;
		int64_t end_us = k ? end_us_of(c, k) : gone_us(c, m), cpu = m->cpu;

		if (k && !slu_kpod_ended(k))
			continue;
		if (k) {
			const struct slu_kowner *o = slu_kmeta_controller(&k->o.meta);
			bool ok = k->phase == SLU_PHASE_SUCCEEDED;

			cpu = slu_kamount_get(k->spec.requests, k->spec.nrequests, "cpu");
			m->ok += ok;
			m->bad += !ok;
			m->alone += ok && (!o || !slu_kind_owns(o));
		}
		if (ran && m->start_s) {
			m->used += used_by(cpu, start_us, end_us);
			m->ended_us = SLU_MAX(m->ended_us, end_us);
		}
		if (slu_batch_del_pod(slu_intents_batch(c->door), m->job, m->pod.p[i]) < 0)
			slu_log(SLU_WARN, "pod not removed from the store",
				SLU_STR("job", m->name));
		slu_free(m->pod.p[i]);
		m->pod.p[i--] = m->pod.p[--m->pod.n];
	}
}

void core_memory_over(struct slu_core *c, struct core_memory *m)
{
	struct group g = { .key = m->key,
			   .user = m->user,
			   .first_seen_us = m->first_seen_us,
			   .ended_us = m->ended_us };
	struct slu_store_result past = { .key = m->key, .name = m->name };
	enum slu_result how;

	if ((m->state != SLU_STORE_STARTING && m->state != SLU_STORE_RUNNING) || !m->start_s)
		return;
	core_memory_account(c, m);
	g.ended_ok = m->ok;
	g.ended_bad = m->bad;
	g.used = m->used;
	g.ended_us = m->ended_us;
	g.wish.min = m->size;
	g.maker.p = m->maker.p;
	g.maker.n = m->maker.n;
	snprintf(g.id.name, sizeof g.id.name, "%s", m->name);
	snprintf(g.wish.queue, sizeof g.wish.queue, "%s", m->queue);
	g.ns = m->key; /* for the log: begins with it */
	how = core_outcome(c, &g);
	core_result_keep(c, &g, m->job, m->start_s, how);
	past.outcome = how == SLU_RESULT_OK ? "ok" : "failed";
	core_after_recall(c, &past);
}

int64_t core_recall_later(struct slu_core *c, const struct group *g, const struct pod *p)
{
	const struct core_memory *m = core_remembered(c, g);

	for (uint32_t i = 0; m && i < m->later.n; i++)
		if (!strcmp(m->later.p[i].name, core_pod_uid(p)))
			return m->later.p[i].start_s;
	return 0;
}

const struct core_later *core_recall_vacant_later(struct slu_core *c, const struct group *g,
						  uint32_t i)
{
	const struct core_memory *m = core_remembered(c, g);

	return m && i < m->vacant_later.n ? &m->vacant_later.p[i] : NULL;
}

const char *core_recall_vacant(struct slu_core *c, const struct group *g, uint32_t i)
{
	const struct core_memory *m = core_remembered(c, g);

	return m && i < m->vacant.n ? m->vacant.p[i] : NULL;
}
