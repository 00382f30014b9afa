/* Which nodes pods of the same wishes may use, and why not the others: of one node, or of all together. */
#include "control/cluster/cluster.h"

static bool volumes_reach(struct slu_core *c, const struct slu_kpod *p, const struct slu_knode *k)
{
	for (uint16_t i = 0; i < p->spec.nclaims; i++) {
		const struct slu_kobj *o = core_lookup(c, SLU_KIND_PVC, p->o.meta.ns,
						       p->spec.claims[i]);
		const struct slu_kpvc *claim = o ? slu_kpvc(o) : NULL;

		if (claim && !*claim->volume)
			continue; /* a group with one that must be bound first is not planned */
		o = claim && *claim->volume ? core_lookup(c, SLU_KIND_PV, "", claim->volume) : NULL;
		if (!o)
			return false;
		if (slu_kpv(o)->nrequired &&
		    !slu_predicate_terms(slu_kpv(o)->required, slu_kpv(o)->nrequired, k))
			return false;
	}
	return true;
}

enum slu_no core_against(struct slu_core *c, const struct where *w, const struct node *n)
{
	const struct slu_kpod *p = slu_kpod(w->pod);
	enum slu_no no = slu_predicate_node(&p->spec, n->k, core_drain_covers(c, n));

	if (no == SLU_NO_NOT && w->volumes && !volumes_reach(c, p, n->k))
		no = SLU_NO_VOLUME;
	if (no == SLU_NO_NOT && w->volumes && core_claims_taken(c, p, false))
		no = SLU_NO_CLAIM;
	if (no == SLU_NO_NOT && w->volumes && core_volumes_full(c, n, p, false))
		no = SLU_NO_ATTACH;
	if (no == SLU_NO_NOT && !core_zones_allow(n, &p->spec))
		no = SLU_NO_ZONE;
	if (no == SLU_NO_NOT && w->ports && core_ports_taken(n, &p->spec, NULL))
		no = SLU_NO_PORT;
	for (uint32_t i = 0; no == SLU_NO_NOT && i < w->repel.n; i++)
		if (core_repel_forbids(w->repel.p[i], n->k))
			no = SLU_NO_REPELLED;
	for (uint32_t i = 0; no == SLU_NO_NOT && i < w->carries.n; i++)
		if (core_repel_meets(c, w->carries.p[i], n))
			no = SLU_NO_REPELS;
	return no;
}

/* ---- all nodes together ---- */

struct sieve {
	struct slu_core *c;
	const struct where *w;
	const struct slu_kpod *p;
	struct slu_nodeset *set;
	uint32_t left, *count;
};

/* Those that are no longer in the set are out for that reason. */
static void note_reason(struct sieve *v, enum slu_no no)
{
	uint32_t n = slu_nodeset_count(v->set);

	v->count[no] += v->left - n;
	v->left = n;
}

static void leave_none(struct slu_nodeset *s)
{
	memset(s->word, 0, s->n_word * sizeof *s->word);
	s->version++;
}

static bool comes_back(const void *c, const void *node)
{
	return core_drain_covers(c, node);
}

static int sift_volumes(struct sieve *v)
{
	const struct slu_kpod *p = v->p;

	for (uint16_t i = 0; i < p->spec.nclaims; i++) {
		const struct slu_kobj *o = core_lookup(v->c, SLU_KIND_PVC, p->o.meta.ns,
						       p->spec.claims[i]);
		const struct slu_kpvc *claim = o ? slu_kpvc(o) : NULL;

		if (claim && !*claim->volume)
			continue; /* as in volumes_reach() */
		o = claim ? core_lookup(v->c, SLU_KIND_PV, "", claim->volume) : NULL;
		if (!o)
			leave_none(v->set);
		else if (slu_kpv(o)->nrequired &&
			 core_index_terms(&v->c->cluster->index, slu_kpv(o)->required,
					  slu_kpv(o)->nrequired, v->set) < 0)
			return -ENOTSUP;
	}
	note_reason(v, SLU_NO_VOLUME);
	if (core_claims_taken(v->c, p, false))
		leave_none(v->set);
	note_reason(v, SLU_NO_CLAIM);
	return 0;
}

/* What has to be asked of each node that is left. */
static enum slu_no sift_node(const struct sieve *v, const struct node *n, bool attach,
			     const struct slu_map *ports)
{
	if (attach && core_volumes_full(v->c, n, v->p, false))
		return SLU_NO_ATTACH;
	if (!core_zones_allow(n, &v->p->spec))
		return SLU_NO_ZONE;
	if (v->w->ports && core_ports_taken(n, &v->p->spec, ports))
		return SLU_NO_PORT;
	return SLU_NO_NOT;
}

static enum slu_no sift_meeting(const struct sieve *v, const struct node *n)
{
	for (uint32_t i = 0; i < v->w->carries.n; i++)
		if (core_repel_meets(v->c, v->w->carries.p[i], n))
			return SLU_NO_REPELS;
	return SLU_NO_NOT;
}

static void leave_out(struct sieve *v, uint32_t at, enum slu_no no)
{
	if (no == SLU_NO_NOT)
		return;
	slu_nodeset_del(v->set, at);
	v->count[no]++;
	v->left--;
}

/* The first node of the set from `at` on, or UINT32_MAX. */
static uint32_t left_from(const struct slu_nodeset *s, uint32_t at)
{
	for (; at / 64 < s->n_word; at = (at | 63) + 1) {
		uint64_t w = s->word[at / 64] >> at % 64;

		if (w)
			return at + (uint32_t)__builtin_ctzll(w);
	}
	return UINT32_MAX;
}

static void sift_nodes(struct sieve *v)
{
	const struct nodeindex *x = &v->c->cluster->index;
	bool attach = v->w->volumes && core_volumes_beyond(v->c);
	struct slu_map ports = { 0 };
	bool mapped = v->w->ports && core_ports_map(&v->p->spec, &ports) == 0;

	if (attach || v->w->ports || v->p->spec.flags & SLU_POD_PINS_CPUS)
		for (uint32_t at = 0; (at = left_from(v->set, at)) != UINT32_MAX; at++)
			leave_out(v, at,
				  sift_node(v, x->tag.p[at], attach, mapped ? &ports : NULL));
	slu_map_done(&ports);
	for (uint32_t i = 0; i < v->w->repel.n; i++)
		core_repel_without(v->w->repel.p[i], x, v->set);
	note_reason(v, SLU_NO_REPELLED);
	for (uint32_t at = 0; v->w->carries.n && (at = left_from(v->set, at)) != UINT32_MAX; at++)
		leave_out(v, at, sift_meeting(v, x->tag.p[at]));
}

static int sift_all(struct sieve *v)
{
	const struct nodeindex *x = &v->c->cluster->index;
	const struct slu_kpodspec *s = &v->p->spec;

	core_index_selector(x, s, v->set);
	note_reason(v, SLU_NO_SELECTOR);
	if (s->flags & SLU_POD_NODE_AFFINITY &&
	    core_index_terms(x, s->required, s->nrequired, v->set) < 0)
		return -ENOTSUP;
	note_reason(v, SLU_NO_AFFINITY);
	core_index_taints(x, s, comes_back, v->c, v->set);
	note_reason(v, SLU_NO_TAINT);
	if (v->w->volumes && sift_volumes(v) < 0)
		return -ENOTSUP;
	sift_nodes(v);
	v->count[SLU_NO_NOT] = v->left;
	return 0;
}

/* One after the other: the index is broken, or cannot answer. */
static struct slu_nodeset *ask_each(struct slu_core *c, const struct where *w,
				    uint32_t count[SLU_NO_COUNT])
{
	struct slu_nodeset *set = slu_nodeset_new(c->cluster->nodes.n);

	memset(count, 0, SLU_NO_COUNT * sizeof *count);
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e && set;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		const struct node *n = node_of(e);
		enum slu_no no;

		if (n->handle == SLU_NODE_NONE || !n->k)
			continue;
		no = core_against(c, w, n);
		count[no]++;
		if (no == SLU_NO_NOT && slu_nodeset_add(set, slu_node_index(n->handle)) < 0) {
			slu_nodeset_unref(set);
			set = NULL;
		}
	}
	return set;
}

struct slu_nodeset *core_eligible(struct slu_core *c, const struct where *w,
				  uint32_t count[SLU_NO_COUNT])
{
	struct sieve v = { .c = c, .w = w, .p = slu_kpod(w->pod), .count = count };
	int rc;

	if (c->cluster->index_broken)
		core_reindex(c);
	if (c->cluster->index_broken || !c->cluster->index.all)
		return ask_each(c, w, count);
	v.set = slu_nodeset_clone(c->cluster->index.all);
	if (!v.set)
		return NULL;
	memset(count, 0, SLU_NO_COUNT * sizeof *count);
	v.left = slu_nodeset_count(v.set);
	rc = sift_all(&v);
	if (!rc)
		return v.set;
	slu_nodeset_unref(v.set);
	return ask_each(c, w, count);
}

/* ---- what they prefer ---- */

static void score_all(struct slu_core *c, const struct slu_kpodspec *s,
		      const struct slu_nodeset *good, int32_t *score)
{
	if (!c->cluster->index_broken && c->cluster->index.all &&
	    good->n_word == c->cluster->index.all->n_word &&
	    core_index_scores(&c->cluster->index, s, good, score) == 0)
		return;
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		const struct node *n = node_of(e);

		if (n->handle != SLU_NODE_NONE && n->k &&
		    slu_nodeset_has(good, slu_node_index(n->handle)))
			score[slu_node_index(n->handle)] = slu_predicate_score(s, n->k);
	}
}

int core_preferred(struct slu_core *c, const struct where *w, const struct slu_nodeset *good,
		   struct slu_nodeset **out)
{
	const struct slu_kpodspec *s = &slu_kpod(w->pod)->spec;
	slu_cleanup(slu_freep) int32_t *score = NULL;
	struct slu_nodeset *set;
	bool asked = w->prefer || slu_predicate_scores(s);

	*out = NULL;
	if (!asked && !c->cluster->index_broken && !core_index_is_scored(&c->cluster->index, s))
		return 0;
	score = slu_calloc(good->n_word * 64, sizeof *score);
	set = slu_nodeset_clone(good);
	if (!score || !set) {
		slu_nodeset_unref(set);
		return -ENOMEM;
	}
	score_all(c, s, good, score);
	for (uint32_t at = 0; at < good->n_word * 64; at++)
		if (slu_nodeset_has(good, at)) {
			asked |= score[at] < 0;
			if (s->npreferred ? score[at] <= 0 : score[at] < 0)
				slu_nodeset_del(set, at);
		}
	if (asked)
		*out = set;
	else
		slu_nodeset_unref(set);
	return 0;
}

/* ---- keeping the index ---- */

static uint32_t number_of(const void *nodes, const char *name)
{
	const struct node *n = node_of(slu_table_finds(nodes, name));

	return n && n->indexed ? slu_node_index(n->handle) : UINT32_MAX;
}

void core_index_node(struct slu_core *c, struct node *n)
{
	struct nodeindex *x = &c->cluster->index;

	if (n->indexed || n->handle == SLU_NODE_NONE || !n->k || c->cluster->index_broken)
		return;
	x->find = number_of;
	x->arg = &c->cluster->nodes;
	n->indexed = core_index_add(x, slu_node_index(n->handle), n->k, n) == 0;
	c->cluster->index_broken = !n->indexed;
}

void core_unindex_node(struct slu_core *c, struct node *n, const struct slu_knode *k)
{
	if (n->indexed && k && !c->cluster->index_broken &&
	    core_index_del(&c->cluster->index, slu_node_index(n->handle), k) < 0)
		c->cluster->index_broken = true;
	n->indexed = false;
}

void core_reindex(struct slu_core *c)
{
	core_index_clear(&c->cluster->index);
	c->cluster->index_broken = false;
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		node_of(e)->indexed = false;
		core_index_node(c, node_of(e));
	}
}
