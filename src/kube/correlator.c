/* Which events are worth writing; see events.h. */
#include <stdio.h>

#include "base/map.h"
#include "base/vec.h"
#include "kube/events.h"

#define NOTE_MAX 1024

/* One event as written, or one object's budget, or one reason's count of notes: three tables of the
 * same small records, each forgetting the longest unused. */
struct entry {
	uint64_t key;
	uint32_t prev, next; /* by last use, index + 1; 0 ends */
	int64_t first_us, last_us, written_us;
	int32_t count, written; /* series: seen, and as the server knows */
	uint32_t tokens;
	char *name; /* of the Event; NULL in the other tables */
	char *ns;
};

struct table {
	struct slu_map at;
	struct entry *e;
	uint32_t n, cap, max;
	uint32_t oldest, newest; /* index + 1 */
};

struct slu_kcorrelator {
	struct slu_kcorrelator_options o;
	struct table series, reasons, budgets;
	uint64_t serial;
};

static void unlink_entry(struct table *t, uint32_t i)
{
	struct entry *e = &t->e[i];

	*(e->prev ? &t->e[e->prev - 1].next : &t->oldest) = e->next;
	*(e->next ? &t->e[e->next - 1].prev : &t->newest) = e->prev;
}

static void append(struct table *t, uint32_t i)
{
	struct entry *e = &t->e[i];

	e->prev = t->newest;
	e->next = 0;
	*(t->newest ? &t->e[t->newest - 1].next : &t->oldest) = i + 1;
	t->newest = i + 1;
}

static void clear(struct entry *e)
{
	slu_free(e->name);
	slu_free(e->ns);
}

/* The record of a key, made if new (*made), moved to the end of the line.  NULL without memory. */
static struct entry *use(struct table *t, uint64_t key, bool *made)
{
	uint64_t *at = slu_map_get(&t->at, key);
	uint32_t i;

	*made = !at;
	if (at) {
		i = (uint32_t)*at;
		unlink_entry(t, i);
		append(t, i);
		return &t->e[i];
	}
	if (t->n < t->max) {
		if (t->cap <= t->n &&
		    slu_vec_grow((void **)&t->e, &t->cap, t->n + 1, sizeof *t->e) < 0)
			return NULL;
		i = t->n;
		if (slu_map_put(&t->at, key, i) < 0)
			return NULL;
		t->n++;
	} else {
		i = t->oldest - 1;
		if (slu_map_put(&t->at, key, i) < 0)
			return NULL;
		slu_map_del(&t->at, t->e[i].key);
		clear(&t->e[i]);
		unlink_entry(t, i);
	}
	t->e[i] = (struct entry){ .key = key };
	append(t, i);
	return &t->e[i];
}

static void table_done(struct table *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		clear(&t->e[i]);
	slu_map_done(&t->at);
	slu_free(t->e);
}

struct slu_kcorrelator *slu_kcorrelator_new(const struct slu_kcorrelator_options *o)
{
	struct slu_kcorrelator *k = slu_calloc(1, sizeof *k);

	if (!k)
		return NULL;
	if (o)
		k->o = *o;
#define DEFAULT(field, value) k->o.field = k->o.field ? k->o.field : (value)
	DEFAULT(series_us, 360 * INT64_C(1000000));
	DEFAULT(refresh_us, 60 * INT64_C(1000000));
	DEFAULT(similar, 10);
	DEFAULT(similar_us, 600 * INT64_C(1000000));
	DEFAULT(burst, 25);
	DEFAULT(refill_us, 300 * INT64_C(1000000));
	DEFAULT(max, 4096);
#undef DEFAULT
	k->series.max = k->reasons.max = k->budgets.max = k->o.max;
	return k;
}

void slu_kcorrelator_free(struct slu_kcorrelator *k)
{
	if (!k)
		return;
	table_done(&k->series);
	table_done(&k->reasons);
	table_done(&k->budgets);
	slu_free(k);
}

static uint64_t mix(uint64_t h, const char *s)
{
	return slu_hash_u64(h ^ (s ? slu_hash_bytes(s, strlen(s)) : 0x51u));
}

/* Take one Event from the object's budget. */
static int spend(struct slu_kcorrelator *k, uint64_t object, int64_t now_us)
{
	bool made;
	struct entry *b = use(&k->budgets, object, &made);
	int64_t back;

	if (!b)
		return -ENOMEM;
	if (made) {
		b->tokens = k->o.burst;
		b->last_us = now_us;
	}
	back = (now_us - b->last_us) / k->o.refill_us;
	if (back > 0) {
		b->tokens = (uint32_t)SLU_MIN((int64_t)b->tokens + back, (int64_t)k->o.burst);
		b->last_us += back * k->o.refill_us;
	}
	if (!b->tokens)
		return 0;
	b->tokens--;
	return 1;
}

/* How many different notes this reason has had lately, this one included. */
static int similar(struct slu_kcorrelator *k, uint64_t reason, bool new_note, int64_t now_us)
{
	bool made;
	struct entry *r = use(&k->reasons, reason, &made);

	if (!r)
		return -ENOMEM;
	if (made || now_us - r->first_us > k->o.similar_us) {
		r->first_us = now_us;
		r->count = 0;
	}
	r->count += new_note;
	return r->count;
}

static void describe(const struct entry *e, struct slu_kdecision *out)
{
	snprintf(out->name, sizeof out->name, "%s", e->name);
	snprintf(out->ns, sizeof out->ns, "%s", e->ns);
	out->count = e->count;
	out->last_us = e->last_us;
}

/* An Event is named after its object and a number that does not come again. */
static int name_it(struct slu_kcorrelator *k, struct entry *e, const struct slu_knote *n,
		   int64_t now_us)
{
	char name[256];

	snprintf(name, sizeof name, "%.230s.%016" PRIx64,
		 n->regarding.name ? n->regarding.name : "",
		 slu_hash_u64((uint64_t)now_us * 1000 + k->serial++ % 1000));
	clear(e);
	e->name = slu_strdup(name);
	e->ns = slu_strdup(n->regarding.ns && n->regarding.ns[0] ? n->regarding.ns : "default");
	return e->name && e->ns ? 0 : -ENOMEM;
}

static bool same_series(const struct slu_kcorrelator *k, const struct entry *e, int64_t now_us)
{
	return e->name && e->ns && now_us - e->last_us <= k->o.series_us;
}

int slu_kcorrelator_see(struct slu_kcorrelator *k, const struct slu_knote *n, int64_t now_us,
			struct slu_kdecision *out)
{
	uint64_t object = mix(mix(mix(1, n->regarding.kind), n->regarding.ns), n->regarding.name);
	uint64_t reason, key;
	uint64_t *held;
	struct entry *e;
	bool made, fresh;
	int rc;

	object = mix(object, n->regarding.uid);
	reason = mix(mix(mix(mix(object, n->type), n->reason), n->action), n->controller);
	key = mix(reason, n->note);
	*out = (struct slu_kdecision){ .verdict = SLU_KNOTE_DROP };
	held = slu_map_get(&k->series.at, key);
	fresh = !held || !same_series(k, &k->series.e[*held], now_us);
	rc = similar(k, reason, fresh, now_us);
	if (rc < 0)
		return rc;
	if (fresh && rc > (int)k->o.similar) {
		key = mix(reason, "(combined)");
		snprintf(out->note, sizeof out->note, "(combined from similar events): %.*s",
			 NOTE_MAX, n->note ? n->note : "");
	} else {
		snprintf(out->note, sizeof out->note, "%.*s", NOTE_MAX, n->note ? n->note : "");
	}
	e = use(&k->series, key, &made);
	if (!e)
		return -ENOMEM;
	if (same_series(k, e, now_us)) {
		e->count++;
		e->last_us = now_us;
		describe(e, out);
		/* the second is written at once, so that people see that it repeats */
		if (e->written > 1 && now_us - e->written_us < k->o.refresh_us) {
			out->verdict = SLU_KNOTE_COUNT;
			return 0;
		}
		out->verdict = SLU_KNOTE_SERIES;
	} else {
		rc = spend(k, object, now_us);
		if (rc == 0)
			return 0; /* over budget */
		if (rc > 0)
			rc = name_it(k, e, n, now_us);
		if (rc < 0) {
			clear(e);
			e->name = e->ns = NULL;
			return rc;
		}
		e->first_us = e->last_us = now_us;
		e->count = 1;
		describe(e, out);
		out->verdict = SLU_KNOTE_CREATE;
	}
	e->written = e->count;
	e->written_us = now_us;
	return 0;
}

int slu_kcorrelator_flush(struct slu_kcorrelator *k, int64_t now_us, bool all,
			  struct slu_kdecision *out)
{
	for (uint32_t i = 0; i < k->series.n; i++) {
		struct entry *e = &k->series.e[i];

		if (!e->name || !e->ns || e->count == e->written ||
		    (!all && now_us - e->written_us < k->o.refresh_us))
			continue;
		*out = (struct slu_kdecision){ .verdict = SLU_KNOTE_SERIES };
		describe(e, out);
		e->written = e->count;
		e->written_us = now_us;
		return 1;
	}
	return 0;
}
