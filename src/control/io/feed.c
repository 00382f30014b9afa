#include "control/io/feed.h"

#include <stdio.h>

#include "base/log.h"
#include "control/post/record.h"
#include "control/rules/kinds.h"

#define TELL_NS   (10 * SLU_NS_PER_S)
#define RESUME_NS (5 * SLU_NS_PER_MS)

struct source {
	struct slu_feed *feed;
	enum slu_kkind kind;
	struct slu_reflector *reflector; /* NULL: the settings say not to look */
	bool synced, absent, refused;
	bool troubled, again; /* again: hand over everything after the next list */
};

struct slu_feed {
	struct slu_loop *loop;
	struct slu_inbox *core;
	struct slu_kcodec *codec;
	struct source source[SLU_KIND_COUNT];
	struct slu_timer resume;
	bool paused;
	uint64_t changes, pauses, lost, unreadable;
	int64_t told_ns; /* when an unreadable object was last logged */
	struct slu_leftout leftout;
	char trouble[SLU_ERROR_MAX];
};

static void look_for_room(void *arg)
{
	struct slu_feed *f = arg;

	if (slu_inbox_waiting(f->core) > slu_inbox_room(f->core)) {
		slu_timer_start(&f->resume, f->loop, RESUME_NS, look_for_room, f);
		return;
	}
	f->paused = false;
	for (size_t i = 0; i < slu_kinds_n; i++)
		if (f->source[i].reflector)
			slu_reflector_resume(f->source[i].reflector);
}

static void put_record(struct slu_feed *f, struct slu_record *r)
{
	int rc = r ? slu_inbox_put(f->core, r) : -ENOMEM;

	if (rc == -EAGAIN) {
		/* Objects that are decoded already go in; nothing further is read. */
		rc = slu_inbox_put_answer(f->core, r);
		if (!f->paused) {
			f->paused = true;
			f->pauses++;
			for (size_t i = 0; i < slu_kinds_n; i++)
				if (f->source[i].reflector)
					slu_reflector_pause(f->source[i].reflector);
			slu_timer_start(&f->resume, f->loop, RESUME_NS, look_for_room, f);
		}
	}
	if (rc < 0 && r)
		r->free(r);
	if (rc == -ENOMEM)
		f->lost++;
}

static void on_changed(void *arg, const struct slu_kobj *old, const struct slu_kobj *now)
{
	struct source *s = arg;

	s->feed->changes++;
	slu_leftout_drop(&s->feed->leftout, s->kind, (now ? now : old)->meta.ns,
			 (now ? now : old)->meta.name);
	put_record(s->feed, slu_rec_object_new(now ? now : old, !now));
}

/* Log one line for a flood of unreadable objects; all of them are counted. */
static void on_unreadable(void *arg, const struct slu_kbad *bad)
{
	struct source *s = arg;
	struct slu_feed *f = s->feed;
	int64_t now = slu_loop_now_ns(f->loop);
	char text[500], *object = text;

	if (bad->gone)
		slu_leftout_drop(&f->leftout, s->kind, bad->ns, bad->name);
	else
		slu_leftout_add(&f->leftout, s->kind, bad);
	snprintf(text, sizeof text, "%s %s/%.200s: %.120s", slu_kkind_info(s->kind)->resource,
		 bad->ns, *bad->name ? bad->name : "?", bad->why);
	if (f->unreadable++ && now - f->told_ns < TELL_NS)
		return;
	f->told_ns = now;
	slu_log(SLU_ERROR, "object left out: it cannot be read", SLU_STR("object", object),
		SLU_I64("so_far", (int64_t)f->unreadable));
}

static void send_all(struct source *s)
{
	const struct slu_mirror *m = slu_reflector_mirror(s->reflector);
	struct slu_rec_resent *r = slu_rec_resent_new(s->kind);
	const struct slu_kobj *o;
	uint32_t i = 0;

	s->again = false;
	while (r && (o = slu_mirror_next(m, &i)) && slu_vec_push(&r->obj, o) == 0)
		slu_kobj_ref(o);
	if (r && r->obj.n == slu_mirror_count(m))
		put_record(s->feed, &r->base);
	else if (r)
		r->base.free(&r->base); /* no memory: the next census finds it again */
}

static void on_synced(void *arg, bool first)
{
	struct source *s = arg;

	struct slu_record *r;

	slu_leftout_listed(&s->feed->leftout, s->kind);
	if (!first && s->again)
		send_all(s);
	if (!first && !s->absent)
		return;
	s->synced = true;
	s->absent = first && !*slu_mirror_rv(slu_reflector_mirror(s->reflector));
	r = slu_rec_synced_new(s->kind);
	if (r) {
		((struct slu_rec_synced *)r)->absent = s->absent;
		((struct slu_rec_synced *)r)->refused = s->absent && s->refused;
	}
	put_record(s->feed, r);
}

/* The daemon is newer than its RBAC rules: it works without the kind. */
static void on_list_refused(void *arg, const char *sentence)
{
	struct source *s = arg;
	const struct slu_kkind_info *k = slu_kkind_info(s->kind);

	s->refused = sentence;
	if (sentence)
		slu_log(SLU_WARN,
			"kind left out: this account may not list it; apply deploy/rbac.yaml again",
			SLU_STR("kind", k->kind), SLU_STR("group", k->group),
			SLU_STR("err", sentence));
	else
		slu_log(SLU_INFO, "kind watched: this account may list it now",
			SLU_STR("kind", k->kind), SLU_STR("group", k->group));
}

static void on_trouble(void *arg, const char *sentence)
{
	struct source *s = arg;

	s->troubled = sentence;
	if (sentence) {
		snprintf(s->feed->trouble, sizeof s->feed->trouble, "%s", sentence);
		slu_log(SLU_WARN, "watch interrupted", SLU_STR("err", sentence));
	} else {
		slu_log(SLU_INFO, "watch recovered",
			SLU_STR("kind", slu_kkind_info(s->kind)->kind));
	}
}

/* Whether a kind is watched at all: a list without the right to it would be refused for ever. */
static bool is_wanted(const struct slu_config *cfg, enum slu_kkind kind)
{
	return (!slu_kkind_is_native_group(kind) || cfg->kube.native_groups) &&
	       (kind != SLU_KIND_FLUXJOB || cfg->held.enabled);
}

/* The core waits for every kind; a kind that is not watched counts as listed and empty. */
static void leave_out(struct source *s)
{
	struct slu_record *r = slu_rec_synced_new(s->kind);

	s->synced = s->absent = true;
	if (r)
		((struct slu_rec_synced *)r)->absent = true;
	put_record(s->feed, r);
}

int slu_feed_new(struct slu_kube_client *client, const struct slu_config *cfg,
		 struct slu_inbox *core, struct slu_strpool *pool, struct slu_feed **out,
		 struct slu_error *err)
{
	slu_cleanup(slu_feed_freep) struct slu_feed *f = slu_calloc(1, sizeof *f);

	if (!f)
		return slu_fail(err, -ENOMEM, "out of memory");
	f->loop = slu_kube_client_loop(client);
	f->core = core;
	f->codec = slu_kcodec_new(pool);
	if (!f->codec)
		return slu_fail(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < slu_kinds_n; i++) {
		struct source *s = &f->source[i];
		struct slu_mirror_handler h = { .changed = on_changed,
						.synced = on_synced,
						.arg = s,
						.unreadable = on_unreadable };
		struct slu_reflector_options o = { .optional = slu_kinds[i].optional,
						   .trouble = on_trouble,
						   .refused = on_list_refused };
		int rc;

		s->feed = f;
		s->kind = slu_kinds[i].kind;
		if (!is_wanted(cfg, s->kind)) {
			leave_out(s);
			continue;
		}
		rc = slu_reflector_new(client, s->kind, f->codec, &h, &o, &s->reflector, err);
		if (rc < 0)
			return rc;
	}
	*out = slu_take(f);
	return 0;
}

void slu_feed_again(struct slu_feed *f, enum slu_kkind kind)
{
	for (size_t i = 0; i < slu_kinds_n; i++)
		if (f->source[i].kind == kind && f->source[i].synced && f->source[i].reflector) {
			f->source[i].again = true;
			slu_reflector_relist(f->source[i].reflector);
		}
}

void slu_feed_free(struct slu_feed *f)
{
	if (!f)
		return;
	slu_timer_stop(&f->resume);
	for (size_t i = 0; i < slu_kinds_n; i++)
		slu_reflector_free(f->source[i].reflector);
	slu_kcodec_free(f->codec);
	slu_free(f);
}

const struct slu_leftout *slu_feed_leftout(const struct slu_feed *f)
{
	return &f->leftout;
}

void slu_feed_stats(const struct slu_feed *f, struct slu_feed_stats *out)
{
	*out = (struct slu_feed_stats){ .changes = f->changes,
					.pauses = f->pauses,
					.unreadable = f->unreadable,
					.synced = true };
	for (size_t i = 0; i < slu_kinds_n; i++) {
		const struct source *s = &f->source[i];

		if (s->reflector)
			slu_mirror_stats(slu_reflector_mirror(s->reflector), &out->kind[s->kind]);
		out->synced &= s->synced;
		if (s->troubled)
			memcpy(out->trouble, f->trouble, sizeof out->trouble);
	}
}

const struct slu_kobj *slu_feed_find(const struct slu_feed *f, enum slu_kkind kind, const char *ns,
				     const char *name)
{
	for (size_t i = 0; i < slu_kinds_n; i++)
		if (slu_kinds[i].kind == kind && f->source[i].reflector)
			return slu_mirror_get(slu_reflector_mirror(f->source[i].reflector), ns,
					      name);
	return NULL;
}
