#include "control/post/record.h"

#include <stdio.h>

#include "base/map.h"
#include "control/config/config.h"

static void plain_free(struct slu_record *r)
{
	slu_free(r);
}

static void object_free(struct slu_record *r)
{
	slu_kobj_unref(((struct slu_rec_object *)r)->obj);
	slu_free(r);
}

/* Newer states of one object take the place of older ones that still wait. */
static uint64_t object_key(const struct slu_kobj *o)
{
	const struct slu_kmeta *m = &o->meta;
	uint64_t h = *m->uid ? slu_hash_bytes(m->uid, strlen(m->uid))
			     : slu_hash_bytes(m->ns, strlen(m->ns)) * 31 +
				       slu_hash_bytes(m->name, strlen(m->name));

	h = slu_hash_u64(h + o->kind);
	return h ? h : 1;
}

struct slu_record *slu_rec_object_new(const struct slu_kobj *obj, bool gone)
{
	struct slu_rec_object *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->base = (struct slu_record){ .kind = SLU_REC_OBJECT,
				       .key = object_key(obj),
				       .free = object_free };
	r->obj = slu_kobj_ref(obj);
	r->gone = gone;
	return &r->base;
}

struct slu_record *slu_rec_synced_new(enum slu_kkind kind)
{
	struct slu_rec_synced *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->base = (struct slu_record){ .kind = SLU_REC_SYNCED, .free = plain_free };
	r->kind = kind;
	return &r->base;
}

struct slu_record *slu_rec_wake_new(void)
{
	struct slu_record *r = slu_calloc(1, sizeof *r);

	if (r)
		*r = (struct slu_record){ .kind = SLU_REC_WAKE, .key = 1, .free = plain_free };
	return r;
}

static void config_free(struct slu_record *r)
{
	slu_config_free(((struct slu_rec_config *)r)->config);
	slu_free(r);
}

struct slu_record *slu_rec_config_new(const struct slu_config *config)
{
	struct slu_rec_config *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->base = (struct slu_record){ .kind = SLU_REC_CONFIG, .key = 1, .free = config_free };
	r->config = slu_config_ref(config);
	return &r->base;
}

struct slu_record *slu_rec_leader_new(const struct slu_journal_setup *setup, const char *other)
{
	struct slu_rec_leader *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->base = (struct slu_record){ .kind = SLU_REC_LEADER, .free = plain_free };
	r->setup = setup;
	snprintf(r->other, sizeof r->other, "%s", other);
	return &r->base;
}

static void census_free(struct slu_record *r)
{
	slu_vec_done(&((struct slu_rec_census *)r)->row);
	slu_free(r);
}

struct slu_rec_census *slu_rec_census_new(enum slu_kkind kind)
{
	struct slu_rec_census *r = slu_calloc(1, sizeof *r);

	if (r)
		*r = (struct slu_rec_census){
			.base = { .kind = SLU_REC_CENSUS, .barrier = true, .free = census_free },
			.kind = kind
		};
	return r;
}

static void resent_free(struct slu_record *r)
{
	struct slu_rec_resent *s = (struct slu_rec_resent *)r;

	for (uint32_t i = 0; i < s->obj.n; i++)
		slu_kobj_unref(s->obj.p[i]);
	slu_vec_done(&s->obj);
	slu_free(s);
}

struct slu_rec_resent *slu_rec_resent_new(enum slu_kkind kind)
{
	struct slu_rec_resent *r = slu_calloc(1, sizeof *r);

	if (r)
		*r = (struct slu_rec_resent){
			.base = { .kind = SLU_REC_RESENT, .barrier = true, .free = resent_free },
			.kind = kind
		};
	return r;
}

struct slu_record *slu_rec_look_new(enum slu_kkind kind, bool again)
{
	struct slu_rec_look *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	*r = (struct slu_rec_look){ .base = { .kind = SLU_REC_LOOK, .free = plain_free },
				    .kind = kind,
				    .again = again };
	return &r->base;
}

const char *slu_write_name(enum slu_write w)
{
	static const char *const name[SLU_WRITE_COUNT] = {
		[SLU_WRITE_BIND] = "bind",           [SLU_WRITE_EVENT] = "event",
		[SLU_WRITE_CONDITION] = "condition", [SLU_WRITE_ANNOTATE] = "annotate",
		[SLU_WRITE_STATUS] = "status",       [SLU_WRITE_EVICT] = "evict",
		[SLU_WRITE_PATCH] = "patch",         [SLU_WRITE_SPEC] = "spec",
		[SLU_WRITE_CREATE] = "create",
	};

	return w < SLU_WRITE_COUNT ? name[w] : "?";
}

/* The strings of a write, which travel with it. */
static const char **write_string(struct slu_rec_write *w, uint32_t i)
{
	const char **all[] = { &w->ns,       &w->name,   &w->uid, &w->node,
			       &w->reporter, &w->reason, &w->text };

	return i < SLU_LEN(all) ? all[i] : NULL;
}

struct slu_rec_write *slu_rec_write_new(const struct slu_rec_write *like)
{
	struct slu_rec_write from = *like, *w;
	size_t size = sizeof *w;
	const char **s;
	char *to;

	for (uint32_t i = 0; (s = write_string(&from, i)); i++)
		size += *s && **s ? strlen(*s) + 1 : 0;
	w = slu_malloc(size);
	if (!w)
		return NULL;
	*w = *like;
	w->base = (struct slu_record){ .kind = SLU_REC_WRITE, .free = plain_free };
	to = (char *)(w + 1);
	for (uint32_t i = 0; (s = write_string(w, i)); i++) {
		size_t n = *s && **s ? strlen(*s) + 1 : 0;

		if (n)
			memcpy(to, *s, n);
		*s = n ? to : "";
		to += n;
	}
	return w;
}

struct slu_record *slu_rec_written_new(const struct slu_rec_write *w, enum slu_kube_outcome outcome,
				       bool uncertain, const char *text)
{
	struct slu_rec_written *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->base = (struct slu_record){ .kind = SLU_REC_WRITTEN, .free = plain_free };
	r->verb = w->verb;
	r->kind = w->kind;
	r->run = w->run;
	r->serial = w->serial;
	r->outcome = outcome;
	r->uncertain = uncertain;
	snprintf(r->text, sizeof r->text, "%s", text ? text : "");
	return &r->base;
}
