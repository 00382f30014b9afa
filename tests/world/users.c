/* What people do: submit, change, delete, ask; and what hostile people do.  In one table. */
#include <stdio.h>
#include <time.h>

#include "control/post/record.h"
#include "world.h"

static struct obj *any(struct world *w, enum slu_kkind kind, struct slu_rng *r)
{
	uint32_t n = w->obj[kind].n;

	return n ? w->obj[kind].p[slu_rng_below(r, n)] : NULL;
}

static struct tmpl work(struct slu_rng *r)
{
	struct tmpl t = { .cpu_m = 500 << slu_rng_below(r, 4),
			  .run_s = 1 + (int32_t)slu_rng_below(r, slu_rng_below(r, 3) ? 20 : 120),
			  .fail = slu_rng_below(r, 5) ? 0 : 200 };
	char s[16];

	snprintf(t.scheduler, sizeof t.scheduler, "sluice");
	t.tolerates = !slu_rng_below(r, 4);
	if (!slu_rng_below(r, 5))
		snprintf(t.pool, sizeof t.pool, "a");
	if (!slu_rng_below(r, 3)) {
		snprintf(s, sizeof s, "%d", t.run_s + 1 + (int32_t)slu_rng_below(r, 60));
		pairs_set(&t.note, "sluice.sh/duration", s);
	}
	if (!slu_rng_below(r, 4))
		pairs_set(&t.label, "sluice.sh/queue", "other");
	return t;
}

static int32_t size(struct slu_rng *r)
{
	return 1 + (int32_t)slu_rng_below(r, slu_rng_below(r, 3) ? 6 : 24);
}

/* ---- Jobs ---- */

static struct obj *new_job(struct world *w, struct slu_rng *r, const char *name)
{
	struct obj *o = kube_new(w, SLU_KIND_JOB, "ns", name);
	struct job *j = &o->job;

	j->t = work(r);
	j->parallelism = size(r);
	j->completions = slu_rng_below(r, 6) ? j->parallelism : j->parallelism * 2;
	j->backoff = 6;
	j->indexed = slu_rng_below(r, 2);
	if (!slu_rng_below(r, 6))
		o->fin = FIN_USER;
	return o;
}

static void submit_job(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "j%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	world_say(w, "Job %s: %d pods of %d millicores for %d s%s", name, o->job.parallelism,
		  o->job.t.cpu_m, o->job.t.run_s, *o->job.t.pool ? ", pool a" : "");
	kube_create(w, o);
}

/* In a namespace where everything is held. */
static void submit_held_job(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "k%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	snprintf(o->ns, sizeof o->ns, "held");
	if (slu_rng_below(r, 3))
		snprintf(o->job.t.scheduler, sizeof o->job.t.scheduler, "default-scheduler");
	if (!slu_rng_below(r, 4)) { /* the usual manifest for devices: limits only */
		o->job.t.limit_m = o->job.t.cpu_m;
		o->job.t.cpu_m = 0;
	}
	world_say(w, "held Job %s: %d pods of %d millicores%s for %d s", name, o->job.parallelism,
		  o->job.t.cpu_m + o->job.t.limit_m, o->job.t.limit_m ? " (limits only)" : "",
		  o->job.t.run_s);
	kube_create(w, o);
}

static void resume_own(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *o = kube_get(w, uid);

	if (!is_live(o))
		return;
	o->job.by_user = o->job.suspend = false;
	world_say(w, "Job %s is resumed by its user", o->name);
	kube_changed(w, o, true);
}

/* Suspended by its user when it is made: only the user resumes it. */
static void submit_suspended(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "u%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	snprintf(o->ns, sizeof o->ns, "%s", slu_rng_below(r, 3) ? "held" : "ns");
	o->job.suspend = o->job.by_user = true;
	o->edited = true; /* what becomes of it afterwards is not said here */
	world_say(w, "Job %s, suspended by its user: %d pods of %d millicores for %d s", name,
		  o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s);
	if (kube_create(w, o))
		world_at(w, w->now_us + (int64_t)(2 + slu_rng_below(r, 60)) * SECOND, resume_own,
			 o->uid, 0);
}

static void unhold(struct world *w, uint64_t uid, uint64_t unused)
{
	kube_unfinalize(w, kube_get(w, uid), FIN_USER);
}

static void delete_owner(struct world *w, struct slu_rng *r, enum slu_kkind kind)
{
	static const char *const how[] = { "background", "foreground", "orphan" };
	struct obj *o = any(w, kind, r);
	uint64_t c = slu_rng_below(r, 8);
	enum cascade cascade = c == 7 ? ORPHAN : c > 4 ? FOREGROUND : BACKGROUND;

	if (!o || o->deleted_us)
		return;
	world_say(w, "%s %s is deleted (%s)", slu_kkind_info(kind)->kind, o->name, how[cascade]);
	kube_delete(w, o, cascade);
	if (o->fin & FIN_USER)
		world_at(w, w->now_us + world_span(w, o->uid, SECOND, 30 * SECOND), unhold, o->uid,
			 0);
}

static void delete_job(struct world *w, struct slu_rng *r)
{
	delete_owner(w, r, SLU_KIND_JOB);
}

static void make_again(struct world *w, uint64_t uid, uint64_t unused)
{
	const struct obj *old = kube_get(w, uid);
	struct obj *o;

	if (is_live(old)) {
		world_at(w, w->now_us + SECOND / 2, make_again, uid, 0);
		return;
	}
	o = kube_new(w, SLU_KIND_JOB, old->ns, old->name);
	o->asked = old->asked;
	o->edited = old->edited;
	o->ends_never = old->ends_never;
	o->job = old->job;
	o->job.t.gates = 0;
	o->job.active = o->job.succeeded = o->job.failed = 0;
	o->job.complete = o->job.failed_cond = o->job.suspend = false;
	o->job.suspended = o->job.by_user = false;
	o->job.start_us = 0;
	o->job.done = 0;
	if (kube_create(w, o))
		world_say(w, "Job %s is made again", o->name);
}

static void remake_job(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_JOB, r);

	if (!o || o->deleted_us)
		return;
	world_say(w, "Job %s is deleted, to be made again", o->name);
	kube_delete(w, o, BACKGROUND);
	if (o->fin & FIN_USER)
		world_at(w, w->now_us + SECOND, unhold, o->uid, 0);
	world_at(w, w->now_us + SECOND / 100, make_again, o->uid, 0);
}

static void scale_job(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_JOB, r);

	if (!o || o->deleted_us || o->job.complete || o->job.failed_cond)
		return;
	o->job.parallelism = size(r);
	world_say(w, "Job %s: parallelism becomes %d", o->name, o->job.parallelism);
	kube_changed(w, o, true);
}

static void resume_job(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *o = kube_get(w, uid);

	if (!is_live(o) || !o->job.suspend)
		return;
	o->job.suspend = false;
	world_say(w, "Job %s is resumed", o->name);
	kube_changed(w, o, true);
}

static void suspend_job(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_JOB, r);

	if (!o || o->deleted_us || o->job.suspend || strcmp(o->ns, "ns"))
		return;
	o->job.suspend = true;
	world_say(w, "Job %s is suspended", o->name);
	kube_changed(w, o, true);
	world_at(w, w->now_us + world_span(w, o->uid, SECOND, 20 * SECOND), resume_job, o->uid, 0);
}

/* Starts with less than it asks for, and grows. */
static void submit_elastic(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24], text[16];

	snprintf(name, sizeof name, "e%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	o->job.parallelism = o->job.completions = 2 + (int32_t)slu_rng_below(r, 10);
	snprintf(text, sizeof text, "%d", 1 + (int)slu_rng_below(r, (uint64_t)o->job.parallelism));
	pairs_set(&o->job.t.note, "sluice.sh/min-size", text);
	world_say(w, "elastic Job %s: %s to %d pods of %d millicores for %d s", name, text,
		  o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s);
	kube_create(w, o);
}

/* Makes more pods than it wants to run at once. */
static void submit_most(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24], least[16], most[16];
	int32_t n = 1 + (int32_t)slu_rng_below(r, 4);

	snprintf(name, sizeof name, "m%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	o->job.parallelism = o->job.completions = n + 1 + (int32_t)slu_rng_below(r, 4);
	snprintf(least, sizeof least, "%d", 1 + (int)slu_rng_below(r, (uint64_t)n));
	snprintf(most, sizeof most, "%d", n);
	pairs_set(&o->job.t.note, "sluice.sh/min-size", least);
	pairs_set(&o->job.t.note, "sluice.sh/max-size", most);
	world_say(w, "elastic Job %s: %s to %s of %d pods of %d millicores for %d s", name, least,
		  most, o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s);
	kube_create(w, o);
}

/* Each of its pods has a port of its node to itself. */
static void submit_port(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "o%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	o->job.parallelism = o->job.completions = 1 + (int32_t)slu_rng_below(r, 2);
	o->job.t.cpu_m = 250;
	o->job.t.port = 8080;
	world_say(w, "Job %s: %d pods of %d millicores with a host port for %d s", name,
		  o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s);
	kube_create(w, o);
}

/* Must be over at a certain time; if that cannot be, it does not start. */
static void submit_deadline(struct world *w, struct slu_rng *r)
{
	time_t at = (time_t)(w->now_us / SECOND) + 20 + (time_t)slu_rng_below(r, 200);
	struct tm tm;
	struct obj *o;
	char name[24], text[32];

	snprintf(name, sizeof name, "t%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	snprintf(text, sizeof text, "%d", o->job.t.run_s + 2);
	pairs_set(&o->job.t.note, "sluice.sh/duration", text);
	strftime(text, sizeof text, "%FT%TZ", gmtime_r(&at, &tm));
	pairs_set(&o->job.t.note, "sluice.sh/deadline", text);
	o->edited = o->ends_never = true; /* it may never run */
	world_say(w, "Job %s: %d pods of %d millicores for %d s, over by %s", name,
		  o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s, text);
	kube_create(w, o);
}

/* Says that it takes less time than it does. */
static void submit_overlong(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24], text[16];

	snprintf(name, sizeof name, "l%" PRIu64, ++w->next_name);
	o = new_job(w, r, name);
	o->job.t.run_s = 600;
	snprintf(text, sizeof text, "%d", 3 + (int)slu_rng_below(r, 20));
	pairs_set(&o->job.t.note, "sluice.sh/duration", text);
	o->ends_never = true; /* where limits are enforced its pods are ended and made again */
	world_say(w, "Job %s: %d pods of %d millicores for %d s, and says %s s", name,
		  o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s, text);
	kube_create(w, o);
}

/* ---- pods ---- */

static void delete_pod(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r);

	if (!o || o->deleted_us)
		return;
	world_say(w, "pod %s is deleted", o->name);
	kube_delete(w, o, BACKGROUND);
}

/* Somebody else's pod: the default scheduler places it. */
static void foreign_pod(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "f%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_POD, "ns", name);
	o->pod.t = work(r);
	o->pod.by = o->pod.index = -1;
	snprintf(o->pod.t.scheduler, sizeof o->pod.t.scheduler, "default-scheduler");
	world_say(w, "pod %s for the default scheduler: %d millicores for %d s", name,
		  o->pod.t.cpu_m, o->pod.t.run_s);
	kube_create(w, o);
}

/* A pod that nobody controls. */
static struct obj *bare_pod(struct world *w, const struct tmpl *t, const char *name)
{
	struct obj *o = kube_new(w, SLU_KIND_POD, "ns", name);

	o->pod.t = *t;
	o->pod.by = o->pod.index = -1;
	o->label = t->label;
	o->note = t->note;
	return o;
}

/* Some of them, tied by a group name. */
static void bare_gang(struct world *w, struct slu_rng *r)
{
	struct tmpl t = work(r);
	int32_t n = 1 + (int32_t)slu_rng_below(r, 6);
	char group[24], text[16], name[48];

	snprintf(group, sizeof group, "g%" PRIu64, ++w->next_name);
	snprintf(text, sizeof text, "%d", n);
	pairs_set(&t.label, "sluice.sh/group", group);
	pairs_set(&t.label, "sluice.sh/size", text);
	t.fail = 0;
	world_say(w, "group %s: %d pods of %d millicores for %d s", group, n, t.cpu_m, t.run_s);
	for (int32_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "%s-%d", group, i);
		kube_create(w, bare_pod(w, &t, name));
	}
}

/* Two of the other kind; whether they ever start depends on who is left by then. */
static void other_kind(struct world *w, uint64_t uid, uint64_t n)
{
	const struct obj *first = kube_get(w, uid);
	struct tmpl t = first->pod.t;
	char name[64];

	t.cpu_m = 250;
	for (int i = 0; i < 2; i++) {
		struct obj *o;

		snprintf(name, sizeof name, "%.24s-%d", pairs_get(&t.label, "sluice.sh/group"),
			 (int)n + i);
		o = bare_pod(w, &t, name);
		o->asked = true;
		kube_create(w, o);
	}
}

/* As many as may run at once, and later two of another kind. */
static void bare_kinds(struct world *w, struct slu_rng *r)
{
	struct tmpl t = work(r);
	int32_t n = 1 + (int32_t)slu_rng_below(r, 3);
	char group[24], text[16], name[48];

	snprintf(group, sizeof group, "g%" PRIu64, ++w->next_name);
	snprintf(text, sizeof text, "%d", n);
	pairs_set(&t.label, "sluice.sh/group", group);
	pairs_set(&t.note, "sluice.sh/min-size", text);
	pairs_set(&t.note, "sluice.sh/max-size", text);
	t.fail = 0;
	t.run_s += 10;
	world_say(w, "group %s: at most %d pods of %d millicores, and of 250, for %d s", group, n,
		  t.cpu_m, t.run_s);
	for (int32_t i = 0; i < n; i++) {
		struct obj *o;

		snprintf(name, sizeof name, "%s-%d", group, i);
		o = bare_pod(w, &t, name);
		if (kube_create(w, o) && !i)
			world_at(w, w->now_us + (int64_t)(2 + slu_rng_below(r, 8)) * SECOND,
				 other_kind, o->uid, (uint64_t)n);
	}
}

/* ---- sets ---- */

static void submit_set(struct world *w, struct slu_rng *r, enum slu_kkind kind)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "%c%" PRIu64, kind == SLU_KIND_DEPLOYMENT ? 'd' : 's',
		 ++w->next_name);
	o = kube_new(w, kind, "ns", name);
	o->set.t = work(r);
	o->set.t.run_s = o->set.t.fail = 0;
	o->set.replicas = 1 + (int32_t)slu_rng_below(r, 4);
	o->set.parallel = slu_rng_below(r, 2);
	world_say(w, "%s %s: %d pods of %d millicores%s", slu_kkind_info(kind)->kind, name,
		  o->set.replicas, o->set.t.cpu_m,
		  kind == SLU_KIND_STATEFULSET && !o->set.parallel ? ", one by one" : "");
	kube_create(w, o);
}

static void submit_deployment(struct world *w, struct slu_rng *r)
{
	submit_set(w, r, SLU_KIND_DEPLOYMENT);
}

static void submit_statefulset(struct world *w, struct slu_rng *r)
{
	submit_set(w, r, SLU_KIND_STATEFULSET);
}

static void scale_set(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, slu_rng_below(r, 2) ? SLU_KIND_DEPLOYMENT : SLU_KIND_STATEFULSET, r);

	if (!o || o->deleted_us)
		return;
	o->set.replicas = (int32_t)slu_rng_below(r, 6);
	world_say(w, "%s %s: replicas become %d", slu_kkind_info(o->kind)->kind, o->name,
		  o->set.replicas);
	kube_changed(w, o, true);
}

static void delete_set(struct world *w, struct slu_rng *r)
{
	delete_owner(w, r, slu_rng_below(r, 2) ? SLU_KIND_DEPLOYMENT : SLU_KIND_STATEFULSET);
}

/* ---- questions to the daemon ---- */

static void release(struct world *w, uint64_t uid, uint64_t unused)
{
	const struct obj *o = kube_get(w, uid);

	if (!kube_find(w, SLU_KIND_JOB, o->ns, o->name)) /* it, or one made again */
		return;
	if (!daemon_answers(w, 0)) { /* tried again until somebody does */
		world_at(w, w->now_us + SECOND, release, uid, 0);
		return;
	}
	world_say(w, "sluice release %s", o->name);
	daemon_ask(w, 0, SLU_ASK_RELEASE, o->ns, o->name);
}

/* Ask for something that is taken back later. */
static void ask(struct world *w, struct slu_rng *r, enum slu_ask what, const char *word)
{
	struct obj *o = any(w, SLU_KIND_JOB, r);

	if (!o)
		return;
	o->asked = true;
	world_say(w, "sluice %s %s", word, o->name);
	daemon_ask(w, 0, (int)what, o->ns, o->name);
	world_at(w, w->now_us + world_span(w, o->uid, SECOND, 30 * SECOND), release, o->uid, 0);
}

static void hold_job(struct world *w, struct slu_rng *r)
{
	ask(w, r, SLU_ASK_HOLD, "hold");
}

static void cancel_job(struct world *w, struct slu_rng *r)
{
	ask(w, r, SLU_ASK_CANCEL, "cancel");
}

/* ---- hostile people ---- */

/* A pod that never starts, with the marks of one that we let go to a node. */
static void forge_node(struct world *w, struct slu_rng *r)
{
	struct obj *n = any(w, SLU_KIND_NODE, r), *o;
	char name[24];

	if (!n)
		return;
	snprintf(name, sizeof name, "h%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_POD, "ns", name);
	o->pod.t = (struct tmpl){ .cpu_m = n->node.cpu_m, .run_s = 10, .gates = GATE_OTHER };
	o->pod.by = o->pod.index = -1;
	snprintf(o->pod.t.scheduler, sizeof o->pod.t.scheduler, "default-scheduler");
	snprintf(o->pod.pin, sizeof o->pod.pin, "%.23s", n->name);
	pairs_set(&o->note, "sluice.sh/node", n->name);
	pairs_set(&o->label, "sluice.sh/node", n->name);
	world_say(w, "a hostile pod %s claims to be let go to %s", name, n->name);
	kube_create(w, o);
}

/* A pod whose status no decoder understands. */
static void bad_pod(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "b%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_POD, "ns", name);
	o->pod.t = (struct tmpl){ .cpu_m = 100, .run_s = 10, .gates = GATE_OTHER };
	o->pod.by = o->pod.index = -1;
	o->pod.bad = true;
	snprintf(o->pod.t.scheduler, sizeof o->pod.t.scheduler, "default-scheduler");
	world_say(w, "a hostile pod %s has a startTime in the year 0", name);
	kube_create(w, o);
}

/* ---- the end of the day ---- */

void users_release(struct world *w)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++)
		if (w->obj[SLU_KIND_JOB].p[i]->asked)
			world_at(w, w->now_us + 20 * SECOND, release,
				 w->obj[SLU_KIND_JOB].p[i]->uid, 0);
}

void users_leave(struct world *w)
{
	static const enum slu_kkind serve[] = { SLU_KIND_DEPLOYMENT, SLU_KIND_STATEFULSET,
						SLU_KIND_REPLICASET };

	for (uint32_t i = w->obj[SLU_KIND_JOB].n; i-- > 0;)
		if (w->obj[SLU_KIND_JOB].p[i]->ends_never)
			kube_delete(w, w->obj[SLU_KIND_JOB].p[i], BACKGROUND);
	for (size_t k = 0; k < SLU_LEN(serve); k++)
		for (uint32_t i = w->obj[serve[k]].n; i-- > 0;)
			if (!w->obj[serve[k]].p[i]->owner)
				kube_delete(w, w->obj[serve[k]].p[i], BACKGROUND);
	for (uint32_t i = w->obj[SLU_KIND_POD].n; i-- > 0;)
		if (!w->obj[SLU_KIND_POD].p[i]->pod.t.run_s && !w->obj[SLU_KIND_POD].p[i]->owner) {
			kube_delete(w, w->obj[SLU_KIND_POD].p[i], BACKGROUND);
			i = SLU_MIN(i, w->obj[SLU_KIND_POD].n);
		}
}

const struct op user_ops[] = {
	{ "submit a Job", 30, submit_job },
	{ "submit a held Job", 15, submit_held_job },
	{ "submit a Job that its user suspended", 5, submit_suspended, 3 },
	{ "submit an elastic Job", 8, submit_elastic, 2 },
	{ "submit a Job that takes longer", 6, submit_overlong, 2 },
	{ "submit a Job with a largest size", 6, submit_most, 4 },
	{ "submit a Job with a deadline", 4, submit_deadline, 4 },
	{ "submit a Job with a host port", 8, submit_port, 4 },
	{ "delete a Job", 8, delete_job },
	{ "make a Job again", 4, remake_job },
	{ "scale a Job", 4, scale_job },
	{ "suspend a Job", 3, suspend_job },
	{ "delete a pod", 5, delete_pod },
	{ "somebody else's pod", 8, foreign_pod },
	{ "a group of pods", 8, bare_gang },
	{ "a group of pods of two kinds", 6, bare_kinds, 4 },
	{ "submit a Deployment", 4, submit_deployment },
	{ "submit a StatefulSet", 4, submit_statefulset },
	{ "scale a set", 3, scale_set },
	{ "delete a set", 3, delete_set },
	{ "hold a Job", 3, hold_job },
	{ "cancel a Job", 2, cancel_job },
	{ "forge a released pod", 2, forge_node },
	{ "a pod that cannot be decoded", 1, bad_pod },
	{ 0 },
};
