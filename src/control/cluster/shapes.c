/* What pods ask for, shared: amounts and eligible nodes. */
#include "control/cluster/cluster.h"

/* If memory is short the node is left out; the set is computed again when the node changes. */
static void set_to(struct slu_core *c, struct slu_nodeset *set, uint32_t at, bool in)
{
	if (in == slu_nodeset_has(set, at))
		return;
	if (!in)
		slu_nodeset_del(set, at);
	else if (slu_nodeset_add(set, at) < 0)
		return;
	c->cluster->wider |= in;
	slu_qlog_set(c->log, set, at, in);
}

static void look_everywhere(struct slu_core *c, struct where *w);

static void look_at_node(struct slu_core *c, struct where *w, const struct node *n)
{
	const struct slu_kpod *p = slu_kpod(w->pod);
	int32_t score = n->k ? slu_predicate_score(&p->spec, n->k) : 0;
	uint32_t at = slu_node_index(n->handle);
	bool good = n->k && core_against(c, w, n) == SLU_NO_NOT;

	slu_free(w->nowhere);
	w->nowhere = NULL;
	w->counted = false;
	set_to(c, w->set, at, good);
	/* The first taint that says "rather not": from now on the others are preferred. */
	if (!w->prefer && good && score < 0)
		look_everywhere(c, w);
	if (w->prefer)
		set_to(c, w->prefer, at, good && (p->spec.npreferred ? score > 0 : score >= 0));
}

/* The first label of the selector that no node carries, if there is one. */
static const struct slu_kpair *unknown_label(const struct slu_core *c, const struct slu_kpodspec *s)
{
	for (uint16_t i = 0; i < s->nnode_selector && !c->cluster->index_broken; i++)
		if (!core_index_has(&c->cluster->index, s->node_selector[i].key,
				    s->node_selector[i].value))
			return &s->node_selector[i];
	return NULL;
}

/* The obstacle goes away when pods that run now end. */
static bool passes(enum slu_no no)
{
	return no == SLU_NO_PORT || no == SLU_NO_REPELLED || no == SLU_NO_REPELS ||
	       no == SLU_NO_CLAIM || no == SLU_NO_ATTACH;
}

/* The reasons are counted once for all pods of the same wishes, until a node changes.  While some
 * nodes are eligible, only what keeps the others away for a time is worth a word. */
static const char *why_nowhere(struct slu_core *c, struct where *w)
{
	bool some = slu_nodeset_count(w->set);
	struct slu_buf b = SLU_BUF_INIT(1024);
	const char *comma = ": ";

	if (w->nowhere)
		return w->nowhere;
	if (!w->counted) {
		struct slu_nodeset *good = core_eligible(c, w, w->count);

		w->counted = good;
		slu_nodeset_unref(good);
	}
	for (enum slu_no no = SLU_NO_NOT + 1; no < SLU_NO_COUNT; no++) {
		const struct slu_kpair *l = NULL;

		if (!w->counted || !w->count[no] || (some && !passes(no)))
			continue;
		if (no == SLU_NO_SELECTOR)
			l = unknown_label(c, &slu_kpod(w->pod)->spec);
		slu_buf_printf(&b, "%s%s", comma, slu_no_text(no));
		if (l)
			slu_buf_printf(&b, " (no node has %s=%s)", l->key, l->value);
		slu_buf_printf(&b, " on %u", w->count[no]);
		comma = ", ";
	}
	w->nowhere = slu_buf_take(&b);
	slu_buf_done(&b);
	return w->nowhere;
}

const char *core_nowhere(struct slu_core *c, const struct shape *s)
{
	const char *text = why_nowhere(c, s->where);

	return text ? text : "";
}

void core_shapes_node(struct slu_core *c, struct node *n)
{
	if (n->handle == SLU_NODE_NONE)
		return;
	core_index_node(c, n);
	for (struct slu_entry *e = slu_table_next(&c->cluster->wheres, NULL); e;
	     e = slu_table_next(&c->cluster->wheres, e))
		look_at_node(c, where_of(e), n);
}

void core_shapes_node_later(struct slu_core *c, struct node *n, bool room)
{
	if (!n->look && slu_vec_push(&c->cluster->look, n) < 0) {
		core_shapes_node(c, n);
		if (room && n->handle != SLU_NODE_NONE)
			core_node_describe(c, n);
		return;
	}
	n->look = true;
	n->roomier |= room;
}

void core_shapes_look(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->cluster->look.n; i++) {
		struct node *n = c->cluster->look.p[i];
		bool room = n->roomier;

		n->look = n->roomier = false;
		core_shapes_node(c, n);
		if (room && n->handle != SLU_NODE_NONE)
			core_node_describe(c, n); /* news for pods that wait */
	}
	c->cluster->look.n = 0;
}

bool core_shape_allows(struct slu_core *c, const struct shape *s, const struct node *n)
{
	if (n->look)
		return n->k && core_against(c, s->where, n) == SLU_NO_NOT;
	return slu_nodeset_has(s->where->set, slu_node_index(n->handle));
}

/* The set becomes equal to `now`, which is freed. */
static void become(struct slu_core *c, struct slu_nodeset *set, struct slu_nodeset *now)
{
	uint32_t n = SLU_MAX(set->n_word, now->n_word);

	if (set->refs == 1) { /* neither the queue nor the log has seen it */
		c->cluster->wider |= slu_nodeset_count(now) > 0;
		slu_nodeset_swap(set, now);
		n = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t was = i < set->n_word ? set->word[i] : 0,
			 is = i < now->n_word ? now->word[i] : 0;

		for (uint64_t x = was ^ is; x; x &= x - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(x);

			set_to(c, set, i * 64 + bit, is >> bit & 1);
		}
	}
	slu_nodeset_unref(now);
}

static void look_everywhere(struct slu_core *c, struct where *w)
{
	struct slu_nodeset *good, *prefer = NULL;

	slu_free(w->nowhere);
	w->nowhere = NULL;
	good = core_eligible(c, w, w->count);
	w->counted = good;
	if (!good)
		return;
	if (core_preferred(c, w, good, &prefer) == 0 && prefer) {
		if (w->prefer)
			become(c, w->prefer, prefer);
		else
			w->prefer = prefer;
	}
	become(c, w->set, good);
}

static void empty(struct slu_nodeset *s)
{
	for (uint32_t i = 0; s && i < s->n_word * 64; i++)
		if (slu_nodeset_has(s, i))
			slu_nodeset_del(s, i);
}

void core_shapes_rebuild(struct slu_core *c)
{
	core_reindex(c);
	for (struct slu_entry *e = slu_table_next(&c->cluster->wheres, NULL); e;
	     e = slu_table_next(&c->cluster->wheres, e)) {
		empty(where_of(e)->set);
		empty(where_of(e)->prefer);
		look_everywhere(c, where_of(e));
	}
}

/* Pods may use more nodes than before, and no node has changed that would wake the jobs that wait. */
static void look_if_wider(struct slu_core *c)
{
	struct slu_event ev = { .kind = SLU_EV_LOOK };

	if (c->cluster->wider)
		core_apply(c, &ev);
}

void core_shapes_volumes(struct slu_core *c)
{
	c->cluster->wider = false;
	for (struct slu_entry *e = slu_table_next(&c->cluster->wheres, NULL); e;
	     e = slu_table_next(&c->cluster->wheres, e))
		if (where_of(e)->volumes)
			look_everywhere(c, where_of(e));
	look_if_wider(c);
}

void core_shapes_claim(struct slu_core *c, const char *ns, const char *claim)
{
	c->cluster->wider = false;
	for (struct slu_entry *e = slu_table_next(&c->cluster->wheres, NULL); e;
	     e = slu_table_next(&c->cluster->wheres, e)) {
		const struct slu_kpod *k = slu_kpod(where_of(e)->pod);
		bool uses = false;

		for (uint16_t i = 0; i < k->spec.nclaims && !uses; i++)
			uses = !strcmp(k->spec.claims[i], claim);
		if (uses && !strcmp(k->o.meta.ns, ns))
			look_everywhere(c, where_of(e));
	}
	look_if_wider(c);
}

static void where_free(struct slu_core *c, struct where *w)
{
	for (uint32_t i = 0; i < w->carries.n; i++)
		w->carries.p[i]->carried--;
	core_repels_put(c, &w->carries);
	core_repels_put(c, &w->repel);
	slu_nodeset_unref(w->set);
	slu_kobj_unref(w->pod);
	slu_nodeset_unref(w->prefer);
	slu_free(w->nowhere);
	slu_free((void *)(uintptr_t)w->e.key);
	slu_free(w);
}

/* Add to the signature what anti-affinity says, and the terms themselves to the lists. */
static int put_repels(struct slu_core *c, const struct slu_kpod *k, struct repels *repel,
		      struct repels *carries, struct slu_buf *b)
{
	int rc = core_repels_carried(c, &k->o, carries);

	if (!rc)
		rc = core_repels_of(c, &k->o.meta, repel);
	for (uint32_t i = 0; i < repel->n; i++)
		slu_buf_printf(b, "!%" PRIu64, repel->p[i]->serial);
	for (uint32_t i = 0; i < carries->n; i++)
		slu_buf_printf(b, "?%" PRIu64, carries->p[i]->serial);
	return rc;
}

static struct repels take_repels(struct repels *from)
{
	struct repels r = *from;

	*from = (struct repels){ 0 };
	return r;
}

static struct where *where_get(struct slu_core *c, const struct slu_kpod *k)
{
	struct slu_buf b = SLU_BUF_INIT(SLU_REQUEST_MAX);
	struct repels repel = { 0 }, carries = { 0 };
	struct where *w = NULL;

	/* Which zones could take it depends on how much it asks for. */
	if (put_repels(c, k, &repel, &carries, &b) < 0 ||
	    (k->spec.flags & SLU_POD_PINS_CPUS && slu_request_need(&k->spec, &b) < 0) ||
	    slu_request_where(k->o.meta.ns, &k->spec, &b) < 0)
		goto out;
	w = where_of(slu_table_find(&c->cluster->wheres, b.p, b.n));
	if (w) {
		w->refs++;
		goto out;
	}
	w = slu_calloc(1, sizeof *w);
	if (!w)
		goto out;
	w->refs = 1;
	w->e.n = b.n;
	w->e.key = slu_buf_take(&b);
	w->set = slu_nodeset_new(c->cluster->nodes.n);
	w->pod = slu_kobj_ref(&k->o);
	w->ports = !core_ports_counted(c, &k->spec);
	w->volumes = k->spec.nclaims;
	if (slu_predicate_scores(&k->spec))
		w->prefer = slu_nodeset_new(c->cluster->nodes.n);
	w->repel = take_repels(&repel);
	w->carries = take_repels(&carries);
	for (uint32_t i = 0; i < w->carries.n; i++)
		w->carries.p[i]->carried++;
	if (!w->e.key || !w->set || slu_table_add(&c->cluster->wheres, &w->e) < 0) {
		where_free(c, w);
		w = NULL;
		goto out;
	}
	look_everywhere(c, w);
out:
	core_repels_put(c, &repel);
	core_repels_put(c, &carries);
	slu_buf_done(&b);
	return w;
}

static void where_put(struct slu_core *c, struct where *w)
{
	if (--w->refs)
		return;
	slu_table_del(&c->cluster->wheres, &w->e);
	where_free(c, w);
}

static void count_drivers(struct slu_core *c, const struct slu_kpod *k)
{
	if (core_volumes_want(c, k))
		core_nodes_describe(c);
}

struct shape *core_shape_get(struct slu_core *c, struct pod *p)
{
	struct slu_buf b = SLU_BUF_INIT(2 * SLU_REQUEST_MAX);
	struct repels repel = { 0 }, carries = { 0 };
	struct slu_amount more[CORE_DRIVERS_MAX + CORE_ZONINGS_MAX];
	uint32_t n_more;
	struct slu_entry *e;
	struct shape *s = NULL;

	count_drivers(c, p->k);
	if (core_zones_want(c, &p->k->spec))
		core_zones_introduce(c);
	n_more = core_volumes_amounts(c, p->k, more);
	n_more += core_zones_amounts(c, &p->k->spec, more + n_more);
	for (uint32_t i = 0; i < n_more; i++)
		slu_buf_printf(&b, "@%u=%" PRId64, more[i].resource, more[i].n);
	if (put_repels(c, p->k, &repel, &carries, &b) < 0 ||
	    slu_request_need(&p->k->spec, &b) < 0 ||
	    slu_request_where(p->k->o.meta.ns, &p->k->spec, &b) < 0)
		goto out;
	e = slu_table_find(&c->cluster->shapes, b.p, b.n);
	if (e) {
		s = slu_entry_of(e, struct shape, e);
		s->refs++;
		goto out;
	}
	s = slu_calloc(1, sizeof *s);
	if (!s)
		goto out;
	s->refs = 1;
	if (core_ports_want(c, &p->k->spec))
		core_ports_introduce(c);
	s->alone = !core_ports_counted(c, &p->k->spec) || (p->k->spec.flags & SLU_POD_ALONE);
	s->e.n = b.n;
	s->e.key = slu_buf_take(&b);
	s->where = where_get(c, p->k);
	if (!s->e.key || !s->where || core_amounts(c, &p->k->spec, &s->need, &s->n_need) < 0 ||
	    slu_table_add(&c->cluster->shapes, &s->e) < 0) {
		if (s->where)
			where_put(c, s->where);
		slu_free(s->need);
		slu_free((void *)(uintptr_t)s->e.key);
		slu_free(s);
		s = NULL;
		goto out;
	}
	for (uint32_t i = 0; i < n_more; i++)
		s->need[s->n_need++] = more[i]; /* there is room */
out:
	core_repels_put(c, &repel);
	core_repels_put(c, &carries);
	slu_buf_done(&b);
	return s;
}

void core_shape_put(struct slu_core *c, struct shape *s)
{
	if (!s || --s->refs)
		return;
	slu_table_del(&c->cluster->shapes, &s->e);
	where_put(c, s->where);
	slu_free(s->need);
	slu_free((void *)(uintptr_t)s->e.key);
	slu_free(s);
}

bool core_shape_outdated(struct slu_core *c, const struct pod *p)
{
	if (p->k->spec.nclaims)
		count_drivers(c, p->k); /* a limit may have come after the shape */
	return (p->k->spec.nclaims && core_volumes_stale(c, p)) || core_zones_stale(c, p);
}

static bool is_among(const struct repels *list, const struct repel *r)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->p[i] == r)
			return true;
	return false;
}

bool core_shape_stale(struct slu_core *c, const struct pod *p)
{
	const struct repels *fresh = &c->cluster->new_repels;

	for (uint32_t i = 0; i < fresh->n; i++)
		if (core_repel_selects(c, fresh->p[i], &p->k->o.meta) &&
		    !is_among(&p->shape->where->repel, fresh->p[i]))
			return true;
	return false;
}

static bool keeps_off(const struct where *a, const struct where *b)
{
	for (uint32_t i = 0; i < a->carries.n; i++)
		if (is_among(&b->repel, a->carries.p[i]))
			return true;
	return false;
}

bool core_shapes_apart(const struct shape *a, const struct shape *b)
{
	return keeps_off(a->where, b->where) || keeps_off(b->where, a->where);
}
