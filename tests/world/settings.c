/* The configuration file: what it says, who changes it, and how it comes to the daemon: read again
 * within a life, or with the next one. */
#include <stdio.h>

#include "control/post/record.h"
#include "world.h"

void world_config(const struct world *w, char *text, size_t size)
{
	static const char *const policy[] = { "fcfs", "easy", "hybrid", "conservative",
					      "first-fit" };
	const struct settings *s = &w->set;
	size_t n = (size_t)snprintf(text, size,
				    "queues:\n- {name: main, policy: %s, maxRunningPerUser: %u}\n",
				    policy[s->policy[0]], s->per_user);

	if (!s->removed)
		n += (size_t)snprintf(text + n, size - n,
				      "- {name: %s, policy: %s, maxRunning: %u, maxSize: %u}\n",
				      s->renamed ? "renamed" : "other", policy[s->policy[1]],
				      s->running, s->max_size);
	n += (size_t)snprintf(
		text + n, size - n,
		"jobs: {onMemberFailure: %s, enforceDeadlines: %s, holdVacant: %ds}\n",
		w->restart ? "restart" : "replace", s->enforce ? "true" : "false", s->vacant_s);
	if (s->other_name)
		n += (size_t)snprintf(text + n, size - n, "schedulerNames: [another]\n");
	if (w->age >= 4) /* Jobs of which no pod comes are taken back within a world's time */
		n += (size_t)snprintf(text + n, size - n, "held: {placeTimeout: 5s}\n");
	if (!s->racks)
		snprintf(text + n, size - n,
			 "nodes: {topology: [{name: rack, label: example.com/no-such-label}]}\n");
}

static void rise(struct world *w, uint64_t n, uint64_t unused)
{
	if (!daemon_alive(w, 0) && !daemon_alive(w, 1))
		daemon_start(w, (int)n);
}

static void read_again(struct world *w, const char *what)
{
	world_say(w, "the configuration changes, and is read again: %s", what);
	w->set_us = w->now_us;
	for (int n = 0; n < DAEMONS; n++)
		daemon_reload(w, n);
}

/* ---- within a life ---- */

static void other_policy(struct world *w, struct slu_rng *r)
{
	w->mixed = true;
	w->set.policy[slu_rng_below(r, 2)] = (uint8_t)slu_rng_below(r, 5);
	read_again(w, "a queue has another policy");
}

static void other_limits(struct world *w, struct slu_rng *r)
{
	w->set.running = (uint32_t)slu_rng_below(r, 4);
	w->set.per_user = (uint32_t)slu_rng_below(r, 6);
	w->set.max_size = slu_rng_below(r, 2) ? 0 : 1 + (uint32_t)slu_rng_below(r, 8);
	read_again(w, "other limits");
}

static void other_name(struct world *w, struct slu_rng *r)
{
	w->mixed = true;
	w->set.renamed = !w->set.renamed;
	read_again(w, w->set.renamed ? "queue other is called renamed" : "queue other is back");
}

static void no_queue(struct world *w, struct slu_rng *r)
{
	w->mixed = true;
	w->set.removed = !w->set.removed;
	read_again(w, w->set.removed ? "queue other is removed" : "queue other is there again");
}

static void other_jobs(struct world *w, struct slu_rng *r)
{
	w->set.enforce = slu_rng_below(r, 2);
	w->restart = slu_rng_below(r, 2);
	w->restarted |= w->restart;
	w->set.vacant_s = slu_rng_below(r, 2) ? 30 : 0;
	read_again(w, "deadlines, failures of members, places that are kept");
}

/* ---- with the next life ---- */

static void other_racks(struct world *w, struct slu_rng *r)
{
	w->set.racks = !w->set.racks;
	world_say(w, "sluiced is restarted: racks have %s",
		  w->set.racks ? "their label" : "no label");
	daemon_kill(w, 0, "");
	world_at(w, w->now_us + SECOND / 10, rise, 0, 0);
}

/* Who names the old name waits until it is back. */
static void other_scheduler(struct world *w, struct slu_rng *r)
{
	w->mixed = w->restarted = w->forgot = true; /* what runs is somebody else's meanwhile */
	w->set.other_name = !w->set.other_name;
	world_say(w, "sluiced is restarted: its scheduler is called %s",
		  w->set.other_name ? "another" : "sluice");
	daemon_kill(w, 1, ""); /* whoever leads: it would know only the old name */
	daemon_kill(w, 0, "");
	world_at(w, w->now_us + SECOND / 10, rise, 0, 0);
}

static void unreserve_all(struct world *w)
{
	for (uint32_t i = w->obj[SLU_KIND_RESERVATION].n; i-- > 0;)
		kube_delete(w, w->obj[SLU_KIND_RESERVATION].p[i], BACKGROUND);
}

/* Late writes of the daemon may have made Reservations since the end of the script. */
static void take_back_all(struct world *w, uint64_t unused, uint64_t unused2)
{
	unreserve_all(w);
	if (!daemon_answers(w, 0)) { /* asked again until somebody does */
		world_at(w, w->now_us + SECOND, take_back_all, 0, 0);
		return;
	}
	for (uint32_t i = 0; i < w->by_uid.n; i++) { /* also nodes that are deleted and come back */
		const struct obj *o = (struct obj *)(uintptr_t)w->by_uid.e[i].val;

		if (o->kind == SLU_KIND_NODE)
			daemon_ask(w, 0, SLU_ASK_UNDRAIN, "", o->name);
	}
}

void settings_calm(struct world *w)
{
	bool racks = w->set.racks;

	if (!w->age)
		return;
	w->set.removed = false;
	w->set.racks = true;
	w->set.running = w->first_set.running;
	w->set.per_user = w->first_set.per_user;
	w->set.max_size = 0;
	if (!racks && daemon_alive(w, 0))
		daemon_kill(w, 0, "");
	read_again(w, "as it was");
	world_at(w, w->now_us + 20 * SECOND, take_back_all, 0, 0);
	unreserve_all(w);
}

/* ---- what operators ask for ---- */

static struct obj *any(struct world *w, enum slu_kkind kind, struct slu_rng *r)
{
	uint32_t n = w->obj[kind].n;

	return n ? w->obj[kind].p[slu_rng_below(r, n)] : NULL;
}

static void undrain(struct world *w, uint64_t uid, uint64_t unused)
{
	const struct obj *o = kube_get(w, uid);

	world_say(w, "sluice undrain %s", o->name);
	daemon_ask(w, 0, SLU_ASK_UNDRAIN, "", o->name);
}

static void drain(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);
	struct slu_rec_ask a = { .what = SLU_ASK_DRAIN };
	int64_t in = (int64_t)slu_rng_below(r, 30), lasts = 1 + (int64_t)slu_rng_below(r, 40);

	if (!o)
		return;
	snprintf(a.name, sizeof a.name, "%s", o->name);
	if (slu_rng_below(r, 2)) {
		a.from_s = w->now_us / SECOND + in;
		a.until_s = a.from_s + lasts;
	} else {
		world_at(w, w->now_us + lasts * SECOND, undrain, o->uid, 0);
	}
	world_say(w,
		  a.from_s ? "sluice drain %s, in %" PRId64 " s, for %" PRId64 " s"
			   : "sluice drain %s",
		  o->name, in, lasts);
	daemon_ask_for(w, 0, &a);
}

static void change_job(struct world *w, struct slu_rng *r, enum slu_ask what, int64_t value)
{
	const struct obj *o = any(w, SLU_KIND_JOB, r);
	struct slu_rec_ask a = { .what = what, .value = slu_rng_below(r, 4) ? value : SLU_ASK_OWN };

	if (!o)
		return;
	snprintf(a.ns, sizeof a.ns, "%s", o->ns);
	snprintf(a.name, sizeof a.name, "%s", o->name);
	world_say(w, "sluice %s %s %" PRId64, what == SLU_ASK_LIMIT ? "limit" : "priority", o->name,
		  a.value);
	daemon_ask_for(w, 0, &a);
}

static void set_priority(struct world *w, struct slu_rng *r)
{
	w->mixed = true;
	change_job(w, r, SLU_ASK_PRIORITY, (int64_t)slu_rng_below(r, 200) - 100);
}

static void set_limit(struct world *w, struct slu_rng *r)
{
	w->mixed = true;
	w->limits_set = true;
	w->restarted = true; /* a limit below what runs ends it: nobody says when it is too soon */
	change_job(w, r, SLU_ASK_LIMIT, 130 + (int64_t)slu_rng_below(r, 600));
}

static void resize(struct world *w, struct slu_rng *r)
{
	const struct obj *o = any(w, SLU_KIND_JOB, r);
	struct slu_rec_ask a = { .what = SLU_ASK_RESIZE,
				 .size = 1 + (uint32_t)slu_rng_below(r, 6) };

	if (!o || strcmp(o->ns, "ns"))
		return;
	snprintf(a.ns, sizeof a.ns, "%s", o->ns);
	snprintf(a.name, sizeof a.name, "%s", o->name);
	world_say(w, "sluice resize %s %u", o->name, a.size);
	daemon_ask_for(w, 0, &a);
}

const struct op setting_ops[] = {
	{ "reload: policy", 3, other_policy, 1 },
	{ "reload: limits", 4, other_limits, 1 },
	{ "reload: queue renamed", 2, other_name, 1 },
	{ "reload: queue removed", 2, no_queue, 1 },
	{ "reload: jobs", 2, other_jobs, 1 },
	{ "topology changed", 2, other_racks, 1 },
	{ "schedulers renamed", 2, other_scheduler, 3 },
	{ "drain a node", 4, drain, 1 },
	{ "set a priority", 4, set_priority, 1 },
	{ "set a limit", 3, set_limit, 1 },
	{ "resize a Job", 3, resize, 1 },
	{ 0 },
};
