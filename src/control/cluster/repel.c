/* What pods that are there forbid others: their required anti-affinity.
 *
 * Equal terms are one `repel`, with the domains (values of its topology label) where a pod carries
 * it.  The pods it selects may not go to nodes of those domains; which terms select a pod is part of the
 * signature of its eligible nodes (shapes.c). */
#include "control/cluster/cluster.h"

#define TERMS_MAX 4096u /* different ones; further ones are not looked at */

struct domain {
	struct slu_entry e; /* key: value of the label */
	char *value;
	uint32_t pods;
};

static struct repel *repel_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct repel, e) : NULL;
}

static struct domain *domain_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct domain, e) : NULL;
}

static void put_str(struct slu_buf *b, const char *s)
{
	slu_buf_add(b, s, strlen(s) + 1);
}

static void put_exprs(struct slu_buf *b, const struct slu_kpair *l, uint16_t nl,
		      const struct slu_kexpr *e, uint16_t ne)
{
	for (uint16_t i = 0; i < nl; i++) {
		put_str(b, l[i].key);
		put_str(b, l[i].value);
	}
	slu_buf_putc(b, '|');
	for (uint16_t i = 0; i < ne; i++) {
		slu_buf_printf(b, "%u/%u ", e[i].op, e[i].nvalues);
		put_str(b, e[i].key);
		for (uint16_t k = 0; k < e[i].nvalues; k++)
			put_str(b, e[i].values[k]);
	}
	slu_buf_putc(b, '|');
}

/* Two pods with equal texts forbid the same. */
static void put_term(struct slu_buf *b, const char *ns, const struct slu_kanti *t)
{
	bool own = !t->nnamespaces && !(t->bits & SLU_ANTI_NAMESPACES);

	slu_buf_printf(b, "%u ", t->bits);
	put_str(b, own ? ns : "");
	put_str(b, t->topology);
	put_exprs(b, t->labels, t->nlabels, t->exprs, t->nexprs);
	put_exprs(b, t->ns_labels, t->nns_labels, t->ns_exprs, t->nns_exprs);
	for (uint16_t i = 0; i < t->nnamespaces; i++)
		put_str(b, t->namespaces[i]);
}

static bool selects_space(struct slu_core *c, const struct repel *r, const char *ns)
{
	const struct slu_kanti *t = r->term;
	const struct slu_kobj *o;

	if (!t->nnamespaces && !(t->bits & SLU_ANTI_NAMESPACES))
		return !strcmp(r->pod->meta.ns, ns);
	for (uint16_t i = 0; i < t->nnamespaces; i++)
		if (!strcmp(t->namespaces[i], ns))
			return true;
	o = t->bits & SLU_ANTI_NAMESPACES ? core_lookup(c, SLU_KIND_NAMESPACE, "", ns) : NULL;
	return o && slu_predicate_labels(t->ns_labels, t->nns_labels, t->ns_exprs, t->nns_exprs,
					 &o->meta);
}

bool core_repel_selects(struct slu_core *c, const struct repel *r, const struct slu_kmeta *m)
{
	const struct slu_kanti *t = r->term;

	return t->bits & SLU_ANTI_SELECTS &&
	       slu_predicate_labels(t->labels, t->nlabels, t->exprs, t->nexprs, m) &&
	       selects_space(c, r, m->ns);
}

bool core_repel_forbids(const struct repel *r, const struct slu_knode *k)
{
	const char *v = slu_kmeta_label(&k->o.meta, r->term->topology);
	const struct domain *d = v ? domain_of(slu_table_finds(&r->domains, v)) : NULL;

	return d && d->pods;
}

void core_repels_put(struct slu_core *c, const struct slu_kmeta *m, struct slu_buf *b)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->repels, NULL); e;
	     e = slu_table_next(&c->cluster->repels, e))
		if (core_repel_selects(c, repel_of(e), m))
			slu_buf_printf(b, "!%" PRIu64, repel_of(e)->serial);
}

int core_repels_of(struct slu_core *c, const struct slu_kmeta *m, struct where *w)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->repels, NULL); e;
	     e = slu_table_next(&c->cluster->repels, e))
		if (core_repel_selects(c, repel_of(e), m)) {
			if (slu_vec_push(&w->repel, repel_of(e)) < 0)
				return -ENOMEM;
			repel_of(e)->refs++;
		}
	return 0;
}

void core_repel_unref(struct slu_core *c, struct repel *r)
{
	if (--r->refs)
		return;
	slu_table_del(&c->cluster->repels, &r->e);
	for (struct slu_entry *e = slu_table_next(&r->domains, NULL), *next; e; e = next) {
		next = slu_table_next(&r->domains, e);
		slu_free(domain_of(e)->value);
		slu_free(domain_of(e));
	}
	slu_table_done(&r->domains);
	slu_kobj_unref(r->pod);
	slu_free((void *)(uintptr_t)r->e.key);
	slu_free(r);
}

static struct repel *get(struct slu_core *c, const struct slu_kobj *pod, const struct slu_kanti *t)
{
	struct slu_buf b = SLU_BUF_INIT(SLU_REQUEST_MAX);
	struct repel *r = NULL;

	put_term(&b, pod->meta.ns, t);
	if (b.error)
		goto out;
	r = repel_of(slu_table_find(&c->cluster->repels, b.p, b.n));
	if (r || c->cluster->repels.n >= TERMS_MAX)
		goto out;
	r = slu_calloc(1, sizeof *r);
	if (!r)
		goto out;
	r->pod = slu_kobj_ref(pod);
	r->term = t;
	r->serial = ++c->serial;
	r->e.n = b.n;
	r->e.key = slu_buf_take(&b);
	if (slu_table_add(&c->cluster->repels, &r->e) < 0) {
		slu_kobj_unref(r->pod);
		slu_free((void *)(uintptr_t)r->e.key);
		slu_free(r);
		r = NULL;
		goto out;
	}
	c->cluster->new_repels = true; /* pods it selects have a shape of their own from now on */
out:
	slu_buf_done(&b);
	return r;
}

static struct domain *domain_get(struct repel *r, const char *v)
{
	struct domain *d = domain_of(slu_table_finds(&r->domains, v));

	if (d)
		return d;
	d = slu_calloc(1, sizeof *d);
	if (d)
		d->value = slu_strdup(v);
	if (d && d->value) {
		d->e.key = d->value;
		d->e.n = strlen(v);
		if (slu_table_add(&r->domains, &d->e) == 0)
			return d;
	}
	if (d)
		slu_free(d->value);
	slu_free(d);
	return NULL;
}

static void look_at_domain(struct slu_core *c, struct node *n, const char *topology, const char *v)
{
	if (!strcmp(topology, "kubernetes.io/hostname")) {
		core_shapes_node(c, n);
		return;
	}
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		const struct slu_knode *k = node_of(e)->k;
		const char *has = k ? slu_kmeta_label(&k->o.meta, topology) : NULL;

		if (has && !strcmp(has, v))
			core_shapes_node(c, node_of(e));
	}
}

void core_repel_enter(struct slu_core *c, struct node *n, struct pod *p)
{
	const struct slu_kpodspec *s = &p->k->spec;

	for (uint16_t i = 0; i < s->nanti && n->k; i++) {
		const char *v = slu_kmeta_label(&n->k->o.meta, s->anti[i].topology);
		struct repel *r = v ? get(c, &p->k->o, &s->anti[i]) : NULL;
		struct domain *d = r ? domain_get(r, v) : NULL;

		if (!d || slu_vec_push(&p->repels, ((struct repelled){ r, d })) < 0)
			continue;
		r->refs++;
		if (!d->pods++)
			look_at_domain(c, n, r->term->topology, d->value);
	}
}

void core_repel_leave(struct slu_core *c, struct node *n, struct pod *p)
{
	while (p->repels.n) {
		struct repelled x = p->repels.p[--p->repels.n];
		struct domain *d = x.domain;

		if (!--d->pods) {
			look_at_domain(c, n, x.repel->term->topology, d->value);
			core_node_describe(c, n); /* room is news for pods that wait for it */
		}
		core_repel_unref(c, x.repel);
	}
	slu_vec_done(&p->repels);
}
