/* Everything that goes wrong, in one table.  A row is a name, how often it comes in comparison to
 * others, and what it does; random choices come from `r` alone. */
#include <stdio.h>

#include "world.h"

static struct obj *any(struct world *w, enum slu_kkind kind, struct slu_rng *r)
{
	uint32_t n = w->obj[kind].n;

	return n ? w->obj[kind].p[slu_rng_below(r, n)] : NULL;
}

static int64_t seconds(struct slu_rng *r, uint64_t most)
{
	return (int64_t)(1 + slu_rng_below(r, most * 1000)) * 1000;
}

/* ---- the daemon ---- */

static void rise(struct world *w, uint64_t n, uint64_t unused)
{
	if (!daemon_alive(w, 0) && !daemon_alive(w, 1))
		daemon_start(w, (int)n);
}

static void kill_daemon(struct world *w, struct slu_rng *r)
{
	daemon_kill(w, 0, "");
	world_at(w, w->now_us + (slu_rng_below(r, 2) ? SECOND / 100 : seconds(r, 20)), rise, 0, 0);
}

/* What it bound then is seen by the next life, or not yet, while the store is slow. */
static void die_at_bind(struct world *w, struct slu_rng *r)
{
	w->fault.die_at_bind += 1 + (int)slu_rng_below(r, 3);
}

void faults_at_bind(struct world *w)
{
	daemon_kill(w, 0, "");
	w->fault.store_slow_until_us = w->now_us + 8 * SECOND;
	world_at(w, w->now_us + 2 * SECOND, rise, 0, 0);
}

static void pause_daemon(struct world *w, struct slu_rng *r)
{
	daemon_pause(w, 0, w->now_us + seconds(r, 30));
}

static void clock_back(struct world *w, struct slu_rng *r)
{
	daemon_step_clock(w, 0, -7200 * SECOND);
}

static void clock_back_little(struct world *w, struct slu_rng *r)
{
	daemon_step_clock(w, 0, -600 * SECOND);
}

static void clock_ahead(struct world *w, struct slu_rng *r)
{
	daemon_step_clock(w, 0, 86400 * SECOND);
}

static void clock_ahead_little(struct world *w, struct slu_rng *r)
{
	daemon_step_clock(w, 0, (int64_t)(60 + slu_rng_below(r, 3600)) * SECOND);
}

/* ---- settings, between two lives ---- */

static void restart_with(struct world *w, const char *what)
{
	world_say(w, "sluiced is restarted: %s", what);
	daemon_kill(w, 0, "");
	world_at(w, w->now_us + SECOND / 10, rise, 0, 0);
}

static void rename_queue(struct world *w, struct slu_rng *r)
{
	w->set.renamed = !w->set.renamed;
	restart_with(w, w->set.renamed ? "queue other is called renamed" : "queue other is back");
}

static void change_policy(struct world *w, struct slu_rng *r)
{
	w->set.policy[slu_rng_below(r, 2)] = (uint8_t)slu_rng_below(r, 5);
	restart_with(w, "a queue has another policy");
}

/* ---- a second daemon ---- */

static void second_goes(struct world *w, uint64_t unused, uint64_t unused2)
{
	daemon_kill(w, 1, "");
	daemon_kill(w, 0, ""); /* it may still wait for a lead that it has lost */
	daemon_start(w, 0);
}

/* With a Lease: the first one stood still for so long that the second took the lead, and goes on
 * where it stood.  On a file: the second is refused as long as the first one lives. */
static void second_daemon(struct world *w, struct slu_rng *r)
{
	int64_t until = w->now_us + seconds(r, 20);

	if (daemon_alive(w, 1))
		return;
	if (w->leased)
		daemon_pause(w, 0, until);
	daemon_start(w, 1);
	world_at(w, until + seconds(r, 40), second_goes, 0, 0);
}

/* ---- writes ---- */

static int few(struct slu_rng *r)
{
	return 1 + (int)slu_rng_below(r, 4);
}

static void lose_before(struct world *w, struct slu_rng *r)
{
	w->fault.lose_before += few(r);
}

static void lose_after(struct world *w, struct slu_rng *r)
{
	w->fault.lose_after += few(r);
}

static void conflict(struct world *w, struct slu_rng *r)
{
	w->fault.conflict += few(r);
}

static void strained(struct world *w, struct slu_rng *r)
{
	w->fault.strained += few(r);
}

static void fail(struct world *w, struct slu_rng *r)
{
	w->fault.fail += few(r);
}

static void late(struct world *w, struct slu_rng *r)
{
	w->fault.late += few(r);
}

static void twice(struct world *w, struct slu_rng *r)
{
	w->fault.twice += few(r);
}

static void answer_late(struct world *w, struct slu_rng *r)
{
	w->fault.answer_late += few(r);
}

/* ---- watches ---- */

static const enum slu_kkind watched[] = { SLU_KIND_POD,        SLU_KIND_POD,
					  SLU_KIND_NODE,       SLU_KIND_JOB,
					  SLU_KIND_REPLICASET, SLU_KIND_STATEFULSET,
					  SLU_KIND_DEPLOYMENT, SLU_KIND_NAMESPACE };

static enum slu_kkind some_kind(struct slu_rng *r)
{
	return watched[slu_rng_below(r, SLU_LEN(watched))];
}

static void slow_watch(struct world *w, struct slu_rng *r)
{
	enum slu_kkind k = some_kind(r);

	w->fault.watch_delay_us[k] = seconds(r, 5);
	w->fault.watch_until_us[k] = w->now_us + seconds(r, 30);
	world_say(w, "the watch of %ss is slow", slu_kkind_info(k)->kind);
}

static void cut_watch(struct world *w, struct slu_rng *r)
{
	enum slu_kkind k = some_kind(r);

	world_say(w, "the watch of %ss is cut: 410", slu_kkind_info(k)->kind);
	daemon_relist(w, 0, k);
}

static void gap_in_watch(struct world *w, struct slu_rng *r)
{
	enum slu_kkind k = slu_rng_below(r, 2) ? SLU_KIND_POD : SLU_KIND_NODE;

	world_say(w, "the watch of %ss loses an event", slu_kkind_info(k)->kind);
	w->fault.skip[k]++;
}

static void break_watch(struct world *w, struct slu_rng *r)
{
	enum slu_kkind k = some_kind(r);

	daemon_break(w, 0, k, slu_rng_below(r, 2) ? SECOND / 20 : seconds(r, 8));
}

static void expire_watch(struct world *w, struct slu_rng *r)
{
	enum slu_kkind k = some_kind(r);

	world_say(w, "the watch of %ss ends with 410", slu_kkind_info(k)->kind);
	daemon_expire(w, 0, k);
}

/* The list that follows loses pages on its way. */
static void expire_pages(struct world *w, struct slu_rng *r)
{
	w->fault.pages_gone += few(r);
	daemon_relist(w, 0, some_kind(r));
}

/* ---- the store ---- */

static void store_away(struct world *w, struct slu_rng *r)
{
	w->fault.store_away_until_us = w->now_us + seconds(r, 30);
	world_say(w, "the store is away");
}

static void store_slow(struct world *w, struct slu_rng *r)
{
	w->fault.store_slow_until_us = w->now_us + seconds(r, 20);
	world_say(w, "the store is slow");
}

/* ---- the webhook ---- */

static void miss_admission(struct world *w, struct slu_rng *r)
{
	w->fault.miss_until_us = w->now_us + seconds(r, 10);
	world_say(w, "calls of the webhook are lost");
}

/* ---- controllers and nodes ---- */

static void stall(struct world *w, struct slu_rng *r)
{
	enum slu_kkind k = some_kind(r);

	w->fault.stall_until_us[k] = w->now_us + seconds(r, 15);
	world_say(w, "the controller of %ss stalls", slu_kkind_info(k)->kind);
}

static void pods_of_node_look(struct world *w, const char *name)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		if (!strcmp(w->obj[SLU_KIND_POD].p[i]->pod.node, name))
			kube_look(w, w->obj[SLU_KIND_POD].p[i]);
}

static void recover(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *o = kube_get(w, uid);

	if (!is_live(o) || (o->node.ready && !o->node.cordoned))
		return;
	o->node.ready = true;
	o->node.cordoned = false;
	world_say(w, "node %s is well", o->name);
	kube_changed(w, o, true);
	pods_of_node_look(w, o->name);
}

static void lose_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o || !o->node.ready)
		return;
	o->node.ready = false;
	world_say(w, "node %s is not ready", o->name);
	kube_changed(w, o, false);
	world_at(w, w->now_us + seconds(r, 40), recover, o->uid, 0);
}

static void cordon_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o || o->node.cordoned)
		return;
	o->node.cordoned = true;
	world_say(w, "node %s is cordoned", o->name);
	kube_changed(w, o, true);
	world_at(w, w->now_us + seconds(r, 40), recover, o->uid, 0);
}

static void taint_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o)
		return;
	o->node.taint = !o->node.taint;
	world_say(w, "node %s is %s", o->name, o->node.taint ? "tainted" : "free of its taint");
	kube_changed(w, o, true);
}

static void shrink_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o || o->node.cpu_m <= 2000)
		return;
	o->node.cpu_m -= 1000;
	world_say(w, "node %s shrinks to %d millicores", o->name, o->node.cpu_m);
	kube_changed(w, o, false);
}

static void grow_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o || o->node.cpu_m >= 16000)
		return;
	o->node.cpu_m += 1000;
	world_say(w, "node %s grows to %d millicores", o->name, o->node.cpu_m);
	kube_changed(w, o, false);
}

/* Pods whose node is gone are collected after a while. */
static void collect(struct world *w, uint64_t uid, uint64_t unused)
{
	const struct obj *n = kube_get(w, uid);

	if (kube_find(w, SLU_KIND_NODE, "", n->name))
		return;
	for (uint32_t i = w->obj[SLU_KIND_POD].n; i-- > 0;) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];

		if (strcmp(p->pod.node, n->name))
			continue;
		kube_remove(w, p);
		i = SLU_MIN(i, w->obj[SLU_KIND_POD].n);
	}
}

void faults_node_gone(struct world *w, const struct obj *node)
{
	world_at(w, w->now_us + 30 * SECOND, collect, node->uid, 0);
}

static void make_again(struct world *w, uint64_t uid, uint64_t unused)
{
	const struct obj *old = kube_get(w, uid);
	struct obj *o = kube_new(w, SLU_KIND_NODE, "", old->name);

	o->node = old->node;
	o->node.ready = true;
	o->node.cordoned = false;
	o->label = old->label;
	if (kube_create(w, o)) {
		world_say(w, "node %s is made again", o->name);
		pods_of_node_look(w, o->name);
	}
}

static struct obj *delete_some_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o || w->obj[SLU_KIND_NODE].n < 2)
		return NULL;
	world_say(w, "node %s is deleted", o->name);
	kube_delete(w, o, BACKGROUND);
	faults_node_gone(w, o);
	return o;
}

static void delete_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = delete_some_node(w, r);

	if (o)
		world_at(w, w->now_us + 45 * SECOND, make_again, o->uid, 0);
}

static void remake_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = delete_some_node(w, r);

	if (o)
		world_at(w, w->now_us + seconds(r, 10), make_again, o->uid, 0);
}

const struct op fault_ops[] = {
	{ "kill the daemon", 12, kill_daemon },
	{ "another life is compared", 40, lives_compare },
	{ "killed as it binds", 4, die_at_bind, 4 },
	{ "pause the daemon", 3, pause_daemon },
	{ "clock back two hours", 2, clock_back },
	{ "clock back ten minutes", 3, clock_back_little, 2 },
	{ "clock a day ahead", 1, clock_ahead },
	{ "clock up to an hour ahead", 4, clock_ahead_little, 2 },
	{ "queue renamed", 3, rename_queue },
	{ "queue policy changed", 2, change_policy },
	{ "second daemon on the store", 2, second_daemon },
	{ "writes lost before", 4, lose_before },
	{ "writes lost after", 4, lose_after },
	{ "writes answered 409", 3, conflict },
	{ "writes answered 429", 3, strained },
	{ "writes fail", 2, fail },
	{ "writes late", 3, late },
	{ "writes twice", 3, twice },
	{ "writes answered late", 3, answer_late, 3 },
	{ "slow watch", 6, slow_watch },
	{ "watch cut", 4, cut_watch },
	{ "gap in a watch", 2, gap_in_watch },
	{ "watch breaks", 5, break_watch, 2 },
	{ "watch ends with 410", 3, expire_watch, 2 },
	{ "pages of a list expire", 3, expire_pages, 2 },
	{ "store away", 3, store_away },
	{ "store slow", 3, store_slow },
	{ "webhook calls lost", 3, miss_admission },
	{ "controller stalls", 4, stall },
	{ "node not ready", 3, lose_node },
	{ "node cordoned", 3, cordon_node },
	{ "node tainted", 2, taint_node },
	{ "node shrinks", 2, shrink_node },
	{ "node grows", 2, grow_node },
	{ "node deleted", 3, delete_node },
	{ "node remade at once", 3, remake_node },
	{ 0 },
};
