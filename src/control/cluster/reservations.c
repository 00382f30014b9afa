/* Reservations: objects that set nodes, or a part of each node, aside for some time, once or repeatedly,
 * for some users and for gangs that name them.
 *
 *	object ──► occurrence (from, until) ──► nodes ──► a span in the plan, a row in the store ──► status
 *
 * The object in the cluster says what is wanted; the store has the chosen nodes, so that they stay the same
 * after a restart.  The plan has AHEAD occurrences, the present or next one first, all on the same nodes:
 * when one is over, another is added at the far end.  Work that already runs on the nodes keeps running. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#include "base/map.h"

#include "control/config/config.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define SPEC_MAX  (1u << 20)
#define NODES_MAX 10000u
#define AHEAD     8 /* occurrences in the plan; a job uses at most SLU_BLOCKS_USED_MAX spans */
#define AGAIN_US  30000000 /* a status that is not there yet is sent again */

static struct reservation *reservation_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct reservation, e) : NULL;
}

static void forget_nodes(struct reservation *r)
{
	for (uint32_t i = 0; i < r->node.n; i++)
		slu_free(r->node.p[i].name);
	r->node.n = 0;
}

static struct reservation *reservation_get(struct slu_core *c, const char *ns, const char *name)
{
	char key[400];
	struct reservation *r;

	snprintf(key, sizeof key, "%.64s/%.253s", ns, name);
	r = reservation_of(slu_table_finds(&c->cluster->reservations, key));
	if (r)
		return r;
	r = slu_calloc(1, sizeof *r);
	if (r)
		r->key = slu_strdup(key);
	if (!r || !r->key) {
		slu_free(r);
		return NULL;
	}
	r->phase = "";
	r->e.key = r->key;
	r->e.n = strlen(r->key);
	if (slu_table_add(&c->cluster->reservations, &r->e) < 0) {
		slu_free(r->key);
		slu_free(r);
		return NULL;
	}
	return r;
}

static void reservation_free(struct slu_core *c, struct reservation *r)
{
	slu_table_del(&c->cluster->reservations, &r->e);
	if (r->k)
		slu_kobj_unref(&r->k->o);
	forget_nodes(r);
	slu_vec_done(&r->node);
	slu_free(r->key);
	slu_free(r);
}

void core_reservations_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->reservations, NULL), *next; e;
	     e = next) {
		next = slu_table_next(&c->cluster->reservations, e);
		reservation_free(c, reservation_of(e));
	}
	slu_table_done(&c->cluster->reservations);
}

const struct reservation *core_reservation(const struct slu_core *c, const char *ns,
					   const char *name)
{
	char key[400];
	const struct reservation *r;

	snprintf(key, sizeof key, "%.64s/%.253s", ns, name);
	r = reservation_of(slu_table_finds(&c->cluster->reservations, key));
	return r && r->k ? r : NULL;
}

/* ---- the store ---- */

static void store_reservation(struct slu_core *c, struct reservation *r)
{
	struct slu_buf b = SLU_BUF_INIT(SPEC_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct slu_store_span s = { .kind = "reservation", .name = r->key };
	struct slu_batch *batch = c->door ? slu_intents_batch(c->door) : NULL;

	if (!r->id)
		r->id = ++c->next_job;
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "nodes");
	slu_jsonw_arr(&w);
	for (uint32_t i = 0; i < r->node.n; i++)
		slu_jsonw_str(&w, r->node.p[i].name);
	slu_jsonw_end_arr(&w);
	slu_jsonw_end_obj(&w);
	s.id = r->id;
	s.from_s = r->from_s;
	s.to_s = r->to_s;
	s.spec = b.error ? "{}" : slu_buf_str(&b);
	if (batch && slu_batch_put_span(batch, &s) < 0)
		slu_log(SLU_WARN, "reservation not saved in the store", SLU_STR("name", r->key));
	slu_buf_done(&b);
}

static void unstore_reservation(struct slu_core *c, struct reservation *r)
{
	struct slu_batch *batch = c->door ? slu_intents_batch(c->door) : NULL;

	if (r->id && batch && slu_batch_del_span(batch, r->id) < 0)
		slu_log(SLU_WARN, "reservation not removed from the store",
			SLU_STR("name", r->key));
	r->id = 0;
}

void core_reservations_keep(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->reservations, NULL); e;
	     e = slu_table_next(&c->cluster->reservations, e))
		if (reservation_of(e)->id)
			store_reservation(c, reservation_of(e));
}

static int add_node(struct reservation *r, const char *name, slu_node handle)
{
	struct reserved_node n = { slu_strdup(name), handle };

	if (!n.name || slu_vec_push(&r->node, n) < 0) {
		slu_free(n.name);
		return -ENOMEM;
	}
	return 0;
}

int core_reservation_recall(struct slu_core *c, const struct slu_store_span *s)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const char *slash = strchr(s->name, '/');
	struct reservation *r;
	char ns[64];
	int rc;

	if (strcmp(s->kind, "reservation") || !slash || (size_t)(slash - s->name) >= sizeof ns)
		return 0;
	snprintf(ns, sizeof ns, "%.*s", (int)(slash - s->name), s->name);
	r = reservation_get(c, ns, slash + 1);
	rc = slu_json_parse(s->spec, strlen(s->spec), NULL, &doc, NULL);
	if (!r || rc == -ENOMEM)
		return -ENOMEM;
	r->id = s->id;
	r->from_s = s->from_s;
	r->to_s = s->to_s;
	r->recalled = true;
	forget_nodes(r);
	slu_json_each (rc < 0 ? NULL : slu_json_get(slu_json_root(doc), "nodes"), it)
		if (slu_json_str(it.val) && add_node(r, slu_json_str(it.val), SLU_NODE_NONE) < 0)
			return -ENOMEM;
	core_due_begin(c, CORE_AT_RESERVATION);
	return 0;
}

/* ---- what is wanted ---- */

/* The present occurrence, or the next.  0; 1: there is none any more; -EINVAL. */
static int occurrence(const struct slu_core *c, const struct slu_kreservation *k, int64_t *from_s,
		      int64_t *to_s, int64_t *every_s, struct slu_error *err)
{
	int64_t from = k->start_us / 1000000, to = k->end_us / 1000000, every = 0;

	if (!k->start_us || !k->end_us || to <= from)
		return slu_fail(err, -EINVAL, "spec.end must be after spec.start");
	if (*k->every && (slu_config_seconds(k->every, &every) < 0 || every < 60))
		return slu_fail(
			err, -EINVAL,
			"spec.every: \"%.40s\" is not a time of a minute or more (12h, 1d, 7d)",
			k->every);
	if (every && every < to - from)
		return slu_fail(err, -EINVAL, "spec.every is shorter than the reservation itself");
	if (every && to <= c->now_s) {
		int64_t k_th = (c->now_s - to) / every + 1;

		from += k_th * every;
		to += k_th * every;
	}
	*from_s = from;
	*to_s = to;
	*every_s = every;
	return to <= c->now_s;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct node *const *)a)->name, (*(struct node *const *)b)->name);
}

static bool fits(struct slu_core *c, const struct node *n, const struct slu_kreservation *k)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	for (uint16_t i = 0; i < k->namounts; i++) {
		int resource = slu_machine_resource_find(m, k->amounts[i].name);

		if (resource < 0 ||
		    slu_machine_node_total(m, n->handle, (uint32_t)resource) < k->amounts[i].amount)
			return false;
	}
	return true;
}

/* How much the node is wanted by others in that time: nothing, a plan, or work that runs. */
static int node_demand(struct slu_core *c, const struct node *n, int64_t from_s, int64_t to_s)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	int worst = 0;

	if (slu_machine_node_is_down(m, n->handle) || slu_machine_node_is_cordoned(m, n->handle))
		return 3;
	for (uint32_t i = 0; i < slu_machine_node_shares(m, n->handle); i++) {
		struct slu_node_share s;

		slu_machine_node_share(m, n->handle, i, &s);
		if (s.end_s > from_s && s.start_s < to_s)
			worst = SLU_MAX(worst, s.start_s > c->now_s ? 1 : 2);
	}
	return worst;
}

/* Nodes it had come first, then those that no plan uses at that time, each in the order of their names. */
static int choose_nodes(struct slu_core *c, struct reservation *r, struct slu_error *err)
{
	const struct slu_kreservation *k = r->k;
	slu_cleanup(slu_freep) struct node **all = slu_reallocarray(NULL, c->cluster->nodes.n + 1u,
								    sizeof *all);
	uint32_t n = 0, want = (uint32_t)k->count, had = r->node.n;

	if (!all)
		return -ENOMEM;
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		struct node *x = node_of(e);

		if (x->handle == SLU_NODE_NONE || !x->k || !fits(c, x, k) ||
		    (*k->node_label && !core_node_labelled(x->k, k->node_label)))
			continue;
		all[n++] = x;
	}
	qsort(all, n, sizeof(struct node *), by_name);
	for (int pass = -1; pass <= 3; pass++)
		for (uint32_t i = 0; i < n && r->node.n - had < want; i++) {
			bool before = false;

			if (!all[i])
				continue;
			for (uint32_t h = 0; h < had; h++)
				before |= !strcmp(r->node.p[h].name, all[i]->name);
			if (pass < 0 ? !before : node_demand(c, all[i], r->from_s, r->to_s) != pass)
				continue;
			if (add_node(r, all[i]->name, all[i]->handle) < 0)
				return -ENOMEM;
			all[i] = NULL;
		}
	for (uint32_t h = 0; h < had; h++)
		slu_free(r->node.p[h].name);
	memmove(r->node.p, r->node.p + had, (r->node.n - had) * sizeof *r->node.p);
	r->node.n -= had;
	if (r->node.n < want)
		return slu_fail(err, -ENOENT, "needs %u nodes; only %u are available%s%s", want,
				r->node.n, *k->node_label ? " with label " : "", k->node_label);
	return 0;
}

static int find_named_nodes(struct slu_core *c, struct reservation *r, struct slu_error *err)
{
	forget_nodes(r);
	for (uint16_t i = 0; i < r->k->nnodes; i++) {
		const struct node *n = node_of(slu_table_finds(&c->cluster->nodes, r->k->nodes[i]));

		if (!n || n->handle == SLU_NODE_NONE)
			return slu_fail(err, -ENOENT, "there is no node \"%.200s\"",
					r->k->nodes[i]);
		if (!fits(c, n, r->k))
			return slu_fail(err, -ENOENT, "node %.200s has less than spec.amounts",
					n->name);
		if (add_node(r, n->name, n->handle) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int check_spec(const struct slu_kreservation *k, struct slu_error *err)
{
	if (!k->nnodes == !k->count)
		return slu_fail(err, -EINVAL, "give either spec.nodes or spec.count, not both");
	if (k->count < 0 || (uint32_t)k->count > NODES_MAX || k->nnodes > NODES_MAX)
		return slu_fail(err, -EINVAL, "spec.count is outside 1..%u", NODES_MAX);
	if (*k->node_label && k->nnodes)
		return slu_fail(err, -EINVAL, "spec.nodeLabel needs spec.count");
	return 0;
}

/* ---- the plan ---- */

static void unbook(struct slu_core *c, struct reservation *r)
{
	struct slu_span s = { .kind = SLU_SPAN_RESERVATION, .name = r->key };

	/* This also covers a reservation that is over: the queue is told before the pass that would
	 * drop it from the plan. */
	if (r->booked)
		core_apply(c, &(struct slu_event){ .kind = SLU_EV_SPAN_REMOVE, .span = &s });
	r->booked = false;
}

/* Put the occurrences from `first_s` on into the plan, as far ahead as they are planned. */
static int book_reservation(struct slu_core *c, struct reservation *r, int64_t first_s,
			    struct slu_error *err)
{
	const struct slu_kreservation *k = r->k;
	slu_cleanup(slu_freep)
		const char **name = slu_reallocarray(NULL, r->node.n + 1u, sizeof *name);
	slu_cleanup(slu_freep) struct slu_amount *a = slu_reallocarray(NULL, k->namounts + 1u,
								       sizeof *a);
	struct slu_span s = { .kind = SLU_SPAN_RESERVATION,
			      .name = r->key,
			      .node = name,
			      .nnode = r->node.n,
			      .amount = a,
			      .n_amount = k->namounts,
			      .user = k->users,
			      .nuser = k->nusers };

	if (!name || !a)
		return slu_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < r->node.n; i++)
		name[i] = r->node.p[i].name;
	for (uint16_t i = 0; i < k->namounts; i++)
		a[i] = (struct slu_amount){ (uint32_t)slu_machine_resource_find(
						    slu_queue_machine(c->q), k->amounts[i].name),
					    k->amounts[i].amount };
	for (int64_t at = first_s; at <= r->from_s + (AHEAD - 1) * r->every_s; at += r->every_s) {
		s.from_s = SLU_MAX(at, c->now_s);
		s.to_s = at + r->to_s - r->from_s;
		if (core_apply(c, &(struct slu_event){ .kind = SLU_EV_SPAN_ADD, .span = &s }) < 0)
			return slu_fail(err, -EIO, "the queue refused");
		r->booked = true;
		r->last_s = at;
		if (!r->every_s)
			break;
	}
	return 0;
}

/* Whether every node that the reservation holds is still the one that was booked. */
static bool stands(struct slu_core *c, const struct reservation *r)
{
	for (uint32_t i = 0; i < r->node.n; i++) {
		const struct node *n = node_of(
			slu_table_finds(&c->cluster->nodes, r->node.p[i].name));

		if (!n || n->handle == SLU_NODE_NONE || n->handle != r->node.p[i].handle)
			return false;
	}
	return true;
}

void core_reservations_leave(struct slu_core *c, const struct node *n)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->reservations, NULL); e;
	     e = slu_table_next(&c->cluster->reservations, e)) {
		struct reservation *r = reservation_of(e);

		for (uint32_t i = 0; r->booked && i < r->node.n; i++)
			if (r->node.p[i].handle == n->handle)
				unbook(c, r); /* planned again with the next look */
	}
	core_reservations_look(c);
}

/* ---- what it says of itself ---- */

static bool same_status(const struct reservation *r, const struct slu_kreservation *k)
{
	if (strcmp(k->phase, r->phase) || strcmp(k->message, r->message) ||
	    k->nheld != (r->booked ? r->node.n : 0) ||
	    (r->booked && (k->from_us / 1000000 != r->from_s || k->until_us / 1000000 != r->to_s)))
		return false;
	for (uint16_t i = 0; i < k->nheld; i++)
		if (strcmp(k->held[i], r->node.p[i].name))
			return false;
	return true;
}

static uint64_t status_sum(const struct reservation *r)
{
	const int64_t n[] = { r->booked, r->from_s, r->to_s, r->node.n, r->k->o.meta.generation };
	uint64_t h = slu_hash_bytes(n, sizeof n);

	h ^= slu_hash_bytes(r->phase, strlen(r->phase));
	h = slu_hash_u64(h) ^ slu_hash_bytes(r->message, strlen(r->message));
	for (uint32_t i = 0; i < r->node.n; i++)
		h = slu_hash_u64(h) ^ slu_hash_bytes(r->node.p[i].name, strlen(r->node.p[i].name));
	return h;
}

static void put_time(struct slu_jsonw *w, const char *key, int64_t s)
{
	char at[32];

	core_stamp(at, s);
	slu_jsonw_kstr(w, key, s ? at : NULL);
}

static void put_condition(struct slu_core *c, const struct reservation *r, struct slu_jsonw *w)
{
	const struct slu_kcond *was = slu_kcond_get(r->k->conds, r->k->nconds, "Planned");
	enum slu_ktri is = r->booked ? SLU_TRI_TRUE : SLU_TRI_FALSE;

	slu_jsonw_key(w, "conditions");
	slu_jsonw_arr(w);
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", "Planned");
	slu_jsonw_kstr(w, "status", r->booked ? "True" : "False");
	slu_jsonw_kstr(w, "reason", r->phase);
	slu_jsonw_kstr(w, "message", r->message);
	slu_jsonw_ki64(w, "observedGeneration", r->k->o.meta.generation);
	put_time(w, "lastTransitionTime",
		 (was && was->status == is && was->since_us ? was->since_us : c->now_us) / 1000000);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_arr(w);
}

static void write_status(struct slu_core *c, struct reservation *r, const char *phase,
			 const char *message)
{
	struct slu_buf b = SLU_BUF_INIT(SPEC_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const struct slu_kmeta *m = &r->k->o.meta;
	uint64_t sum;

	r->phase = phase;
	snprintf(r->message, sizeof r->message, "%s", message);
	if (same_status(r, r->k))
		return;
	/* The object does not show the status that was sent.  If the status never arrives, it is
	 * sent again. */
	core_due_by(c, CORE_AT_RESERVATION, c->now_us + AGAIN_US);
	sum = status_sum(r);
	if (sum == r->sent && c->now_us - r->sent_us < AGAIN_US)
		return;
	r->sent = sum;
	r->sent_us = c->now_us;
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "phase", phase);
	slu_jsonw_kstr(&w, "message", message);
	slu_jsonw_key(&w, "nodes");
	slu_jsonw_arr(&w);
	for (uint32_t i = 0; r->booked && i < r->node.n; i++)
		slu_jsonw_str(&w, r->node.p[i].name);
	slu_jsonw_end_arr(&w);
	put_time(&w, "from", r->booked ? r->from_s : 0);
	put_time(&w, "until", r->booked ? r->to_s : 0);
	put_condition(c, r, &w);
	slu_jsonw_end_obj(&w);
	if (!b.error && c->door)
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_STATUS,
						       .kind = SLU_KIND_RESERVATION,
						       .ns = m->ns,
						       .name = m->name,
						       .uid = m->uid,
						       .text = b.p });
	slu_buf_done(&b);
}

/* ---- looking ---- */

/* The reservation is not planned: no room is booked, and the object's status says why. */
static void refuse_reservation(struct slu_core *c, struct reservation *r, const char *phase,
			       const char *why)
{
	unbook(c, r);
	unstore_reservation(c, r);
	forget_nodes(r);
	r->from_s = r->to_s = 0;
	write_status(c, r, phase, why);
}

static void look_at_reservation(struct slu_core *c, struct reservation *r)
{
	struct slu_error err = { 0 };
	int64_t from_s = 0, to_s = 0, every_s = 0;
	int rc = check_spec(r->k, &err);

	if (!rc)
		rc = occurrence(c, r->k, &from_s, &to_s, &every_s, &err);
	if (rc) {
		refuse_reservation(c, r, rc > 0 ? "Ended" : "Refused", err.text);
		return;
	}
	bool moved = from_s != r->from_s || to_s != r->to_s;
	bool stays = r->booked && !r->changed && stands(c, r);

	if (!stays || moved) {
		/* The next occurrence is in the plan already, unless all planned ones have
		 * passed. */
		bool on = stays && every_s && from_s <= r->last_s;

		if (!on)
			unbook(c, r);
		if (moved && !r->recalled && !on)
			forget_nodes(r); /* another time: others may be free then */
		r->from_s = from_s;
		r->to_s = to_s;
		r->every_s = every_s;
		rc = on             ? 0
		     : r->k->nnodes ? find_named_nodes(c, r, &err)
				    : choose_nodes(c, r, &err);
		if (!rc)
			rc = book_reservation(c, r, on ? r->last_s + every_s : from_s, &err);
		if (rc < 0) {
			refuse_reservation(c, r, "Unplanned", err.text);
			return;
		}
		store_reservation(c, r);
		slu_log(SLU_INFO, "reservation planned", SLU_STR("name", r->key),
			SLU_I64("nodes", r->node.n), SLU_I64("from_s", from_s),
			SLU_I64("until_s", to_s));
	}
	r->changed = r->recalled = false;
	core_due_by(c, CORE_AT_RESERVATION, (from_s > c->now_s ? from_s : to_s) * 1000000);
	write_status(c, r, from_s > c->now_s ? "Planned" : "Active", "");
}

void core_reservations(struct slu_core *c)
{
	if (!core_is_due(c, CORE_AT_RESERVATION))
		return;
	core_due_at(c, CORE_AT_RESERVATION, CORE_NEVER);
	for (struct slu_entry *e = slu_table_next(&c->cluster->reservations, NULL), *next; e;
	     e = next) {
		struct reservation *r = reservation_of(e);

		next = slu_table_next(&c->cluster->reservations, e);
		if (r->k) {
			look_at_reservation(c, r);
			continue;
		}
		unbook(c, r);
		unstore_reservation(c, r);
		reservation_free(c, r);
	}
}

void core_reservations_look(struct slu_core *c)
{
	if (c->cluster->reservations.n)
		core_due_by(c, CORE_AT_RESERVATION, c->now_us);
}

void core_reservations_again(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->reservations, NULL); e;
	     e = slu_table_next(&c->cluster->reservations, e))
		reservation_of(e)->booked = false;
	core_reservations_look(c);
}

void core_reservation_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	struct reservation *r = reservation_get(c, obj->meta.ns, obj->meta.name);
	const struct slu_kreservation *old;

	if (!r)
		return;
	old = r->k;
	/* Our own status comes back with the same generation. */
	r->changed |= !old || old->o.meta.generation != obj->meta.generation ||
		      strcmp(old->o.meta.uid, obj->meta.uid);
	r->k = gone ? NULL : slu_kreservation(slu_kobj_ref(obj));
	if (old)
		slu_kobj_unref(&old->o);
	if (r->changed || gone)
		core_reservations_look(c);
}
