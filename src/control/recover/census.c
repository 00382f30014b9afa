/* Compare the mirror with a fresh list of the cluster.
 *
 * Mirror and cluster both change during the comparison, so a difference is only a suspicion at first:
 * the list has a newer version of an object, or one side lacks the object.  A suspicion that
 * lasts for a moment is checked against a second list.  If the second list confirms it, the core counts and
 * logs a difference, and has the io thread list all objects of the kind again, which repairs the mirror. */
#include "control/recover/recover.h"

#include "control/cluster/cluster.h"

#define SETTLE_US  3000000  /* time for watch events that are on their way */
#define PATIENT_US 60000000 /* after this time a request without an answer is repeated */
#define LOGGED_MAX 10u

static int index_of_kind(enum slu_kkind kind)
{
	return kind == SLU_KIND_NODE ? 0 : kind == SLU_KIND_POD ? 1 : -1;
}

static uint64_t hash_of(const struct slu_kobj *o)
{
	return slu_hash_bytes(o->meta.uid, strlen(o->meta.uid));
}

/* ---- all objects of a kind in the mirror ---- */

static const struct slu_kobj *object_of(struct slu_entry *e, int k)
{
	if (k == 0)
		return node_of(e)->k ? &node_of(e)->k->o : NULL;
	return slu_kpod_ended(pod_of(e)->k) || core_phantom_is(pod_of(e)->k->o.meta.uid)
		       ? NULL
		       : &pod_of(e)->k->o;
}

static struct slu_entry *next_object(struct slu_core *c, int k, struct slu_entry *e,
				     const struct slu_kobj **out)
{
	struct slu_table *t = k == 0 ? &c->cluster->nodes : &c->cluster->pods;

	for (e = slu_table_next(t, e); e; e = slu_table_next(t, e)) {
		*out = object_of(e, k);
		if (*out)
			return e;
	}
	return NULL;
}

void core_census_gone(struct slu_core *c, const struct slu_kobj *o)
{
	if (index_of_kind(o->kind) >= 0)
		c->recovery->audit.lately[c->recovery->audit.n_lately++ %
					  SLU_LEN(c->recovery->audit.lately)] = hash_of(o);
}

static bool gone_lately(const struct slu_core *c, uint64_t h)
{
	for (size_t i = 0; i < SLU_LEN(c->recovery->audit.lately); i++)
		if (c->recovery->audit.lately[i] == h)
			return true;
	return false;
}

/* ---- asking the io thread ---- */

static void compare_kind(struct slu_core *c, enum slu_kkind kind, bool again)
{
	struct slu_record *r = slu_rec_look_new(kind, again);

	if (r && slu_inbox_put_answer(c->out, r) < 0)
		r->free(r);
}

void core_census_again(struct slu_core *c)
{
	compare_kind(c, SLU_KIND_NODE, true);
	compare_kind(c, SLU_KIND_POD, true);
}

/* ---- suspicion ---- */

/* Put the hash of every suspicious object into `out`, with the version the list has; 0: the list lacks the
 * object. */
static int suspect(struct slu_core *c, int k, const struct slu_rec_census *r, struct slu_map *out)
{
	struct slu_map list = { 0 };
	const struct slu_kobj *o = NULL;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->row.n; i++)
		rc = slu_map_put(&list, r->row.p[i].uid, r->row.p[i].rv);
	for (struct slu_entry *e = next_object(c, k, NULL, &o); !rc && e;
	     e = next_object(c, k, e, &o)) {
		uint64_t h = hash_of(o), *rv = slu_map_get(&list, h);

		if (!rv && o->meta.rv <= r->rv)
			rc = slu_map_put(out, h, 0);
		else if (rv && *rv > o->meta.rv)
			rc = slu_map_put(out, h, *rv);
		if (rv)
			slu_map_del(&list, h);
	}
	for (uint32_t i = 0; !rc && i < list.n; i++)
		if (!gone_lately(c, list.e[i].key))
			rc = slu_map_put(out, list.e[i].key, list.e[i].val);
	slu_map_done(&list);
	return rc;
}

/* Remove the suspicions that the mirror has caught up with in the meantime. */
static void weed(struct slu_core *c, int k, struct slu_map *s)
{
	struct slu_map have = { 0 };
	const struct slu_kobj *o = NULL;
	int rc = 0;

	for (struct slu_entry *e = next_object(c, k, NULL, &o); !rc && e;
	     e = next_object(c, k, e, &o))
		if (slu_map_get(s, hash_of(o)))
			rc = slu_map_put(&have, hash_of(o), o->meta.rv);
	for (uint32_t i = s->n; !rc && i-- > 0;) {
		const uint64_t *rv = slu_map_get(&have, s->e[i].key);
		uint64_t there = s->e[i].val;
		bool settled = there ? (rv ? *rv >= there : gone_lately(c, s->e[i].key)) : !rv;

		if (settled)
			slu_map_del(s, s->e[i].key);
	}
	slu_map_done(&have);
}

static const char *name_of(struct slu_core *c, int k, uint64_t h)
{
	const struct slu_kobj *o = NULL;

	for (struct slu_entry *e = next_object(c, k, NULL, &o); e; e = next_object(c, k, e, &o))
		if (hash_of(o) == h)
			return o->meta.name;
	return "";
}

static uint32_t confirm(struct slu_core *c, int k, const struct slu_map *was,
			const struct slu_map *is)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < is->n; i++) {
		const uint64_t *before = slu_map_get(was, is->e[i].key);
		const char *name;

		/* Both lists lack the object, or both have a newer version than the mirror. */
		if (!before || !*before != !is->e[i].val || n++ >= LOGGED_MAX)
			continue;
		name = name_of(c, k, is->e[i].key);
		slu_log(SLU_ERROR, "mirror and cluster disagree",
			SLU_STR("kind", k ? "Pod" : "Node"), SLU_STR("name", name),
			SLU_STR("how", !is->e[i].val ? "it is gone"
				       : *name       ? "it changed"
						     : "it was not known"));
	}
	return n;
}

void core_census(struct slu_core *c, const struct slu_rec_census *r)
{
	int k = index_of_kind(r->kind);
	struct slu_map is = { 0 };
	uint32_t n = 0;

	if (k < 0 || !slu_core_synced(c))
		return;
	c->count.audit_lists++;
	if (suspect(c, k, r, &is) < 0) {
		slu_map_done(&is);
		return;
	}
	if (c->recovery->audit.second[k])
		n = confirm(c, k, &c->recovery->audit.suspect[k], &is);
	c->recovery->audit.second[k] = false;
	slu_map_done(&c->recovery->audit.suspect[k]);
	c->recovery->audit.suspect[k] = is;
	c->recovery->audit.since_us[k] = c->now_us;
	if (!n)
		return;
	c->count.audit_differences += n;
	slu_map_clear(&c->recovery->audit.suspect[k]);
	compare_kind(c, r->kind, true);
}

void core_census_settle(struct slu_core *c)
{
	static const enum slu_kkind kind[] = { SLU_KIND_NODE, SLU_KIND_POD };

	for (int k = 0; k < 2; k++) {
		struct slu_map *s = &c->recovery->audit.suspect[k];
		int64_t pause = c->recovery->audit.second[k] ? PATIENT_US : SETTLE_US;

		if (!s->n || c->now_us < c->recovery->audit.since_us[k] + pause)
			continue;
		weed(c, k, s);
		c->recovery->audit.second[k] = s->n;
		c->recovery->audit.since_us[k] = c->now_us;
		if (s->n)
			compare_kind(c, kind[k], false);
	}
}

int64_t core_census_wake_us(const struct slu_core *c)
{
	int64_t at = INT64_MAX;

	for (int k = 0; k < 2; k++)
		if (c->recovery->audit.suspect[k].n)
			at = SLU_MIN(at, c->recovery->audit.since_us[k] +
						 (c->recovery->audit.second[k] ? PATIENT_US
									       : SETTLE_US));
	return at;
}

/* ---- a second list of everything ---- */

int core_resent(struct slu_core *c, const struct slu_rec_resent *r, struct core_changes *out)
{
	int k = index_of_kind(r->kind);
	struct slu_map there = { 0 }, have = { 0 };
	const struct slu_kobj *o = NULL;
	int rc = k < 0 ? -EINVAL : 0;

	for (uint32_t i = 0; !rc && i < r->obj.n; i++)
		rc = slu_map_put(&there, hash_of(r->obj.p[i]), 1);
	for (struct slu_entry *e = rc ? NULL : next_object(c, k, NULL, &o); !rc && e;
	     e = next_object(c, k, e, &o)) {
		rc = slu_map_put(&have, hash_of(o), o->meta.rv);
		if (!rc && !slu_map_get(&there, hash_of(o)))
			rc = slu_vec_push(&out->gone, o);
	}
	for (uint32_t i = 0; !rc && i < r->obj.n; i++) {
		const uint64_t *rv = slu_map_get(&have, hash_of(r->obj.p[i]));

		if (!rv || *rv < r->obj.p[i]->meta.rv)
			rc = slu_vec_push(&out->news, r->obj.p[i]);
	}
	slu_map_done(&there);
	slu_map_done(&have);
	return rc;
}
