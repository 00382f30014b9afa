/* Required anti-affinity: what pods on a node forbid to others, and which pods a newcomer refuses
 * to share a node with.
 *
 * Equal terms are one `repel`, with the domains (values of its topology label) where a pod carries
 * it.  The pods it selects may not go to nodes of those domains; which terms select a pod is part
 * of the signature of its eligible nodes (shapes.c).  Terms by host count the other way round, too:
 * a pod that carries one may not go to a node with a pod that the term selects.  Terms of pods that
 * wait are known from the moment the pod is seen, so that pods of one gang that may not meet are
 * roles of their own, kept apart by the plan (core_shapes_apart()). */
#include "control/cluster/cluster.h"

/* Different terms of the pods of one namespace, and of all; pods with further ones are not placed.  Each term is
 * compared with many pods, and no namespace takes those of the others. */
#define SPACE_TERMS_MAX 1024u
#define TERMS_MAX       65536u

/* Terms that ask for the same label: only pods that have it are compared with them. */
struct chosen {
	struct slu_entry e; /* key: key and value of the label; empty: terms that ask for none */
	char *text;
	struct repels of;
};

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

void core_repel_without(const struct repel *r, const struct nodeindex *x, struct slu_nodeset *set)
{
	for (struct slu_entry *e = slu_table_next(&r->domains, NULL); e;
	     e = slu_table_next(&r->domains, e))
		if (domain_of(e)->pods)
			core_index_without(x, r->term->topology, domain_of(e)->value, set);
}

bool core_repel_meets(struct slu_core *c, const struct repel *r, const struct node *n)
{
	/* Like the default scheduler: a node without the label is in no domain. */
	if (!n->k || !slu_kmeta_label(&n->k->o.meta, r->term->topology))
		return false;
	for (uint32_t i = 0; i < n->pod.n; i++)
		if (core_repel_selects(c, r, &n->pod.p[i]->k->o.meta))
			return true;
	return false;
}

/* ---- which terms select a pod ---- */

static struct chosen *chosen_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct chosen, e) : NULL;
}

/* The label as a key; 0: too long to be one. */
static size_t label_key(const char *key, const char *value, char out[400])
{
	size_t k = strlen(key) + 1, v = strlen(value) + 1;

	if (k + v > 400)
		return 0;
	memcpy(out, key, k);
	memcpy(out + k, value, v);
	return k + v;
}

/* A label that every pod has which the term selects; 0: none. */
static size_t asked_label(const struct slu_kanti *t, char out[400])
{
	if (t->nlabels)
		return label_key(t->labels[0].key, t->labels[0].value, out);
	for (uint16_t i = 0; i < t->nexprs; i++)
		if (t->exprs[i].op == SLU_SEL_IN && t->exprs[i].nvalues == 1)
			return label_key(t->exprs[i].key, t->exprs[i].values[0], out);
	return 0;
}

static int list_term(struct slu_core *c, struct repel *r)
{
	char key[400];
	size_t n = asked_label(r->term, key);
	struct chosen *x = chosen_of(slu_table_find(&c->cluster->chosen, key, n));

	if (!x) {
		x = slu_calloc(1, sizeof *x);
		if (x)
			x->text = slu_malloc(n + 1);
		if (!x || !x->text) {
			slu_free(x);
			return -ENOMEM;
		}
		memcpy(x->text, key, n);
		x->e.key = x->text;
		x->e.n = n;
		if (slu_table_add(&c->cluster->chosen, &x->e) < 0) {
			slu_free(x->text);
			slu_free(x);
			return -ENOMEM;
		}
	}
	r->chosen = x;
	return slu_vec_push(&x->of, r);
}

static void unlist_term(struct slu_core *c, const struct repel *r)
{
	struct chosen *x = r->chosen;

	if (!x)
		return;
	for (uint32_t i = 0; i < x->of.n; i++)
		if (x->of.p[i] == r) {
			x->of.p[i] = x->of.p[--x->of.n];
			break;
		}
	if (x->of.n)
		return;
	slu_table_del(&c->cluster->chosen, &x->e);
	slu_vec_done(&x->of);
	slu_free(x->text);
	slu_free(x);
}

/* In order of their serials, each once. */
static int add_repel(struct repels *out, struct repel *r)
{
	uint32_t k = out->n;

	while (k && out->p[k - 1]->serial > r->serial)
		k--;
	if (k && out->p[k - 1] == r)
		return 0;
	if (slu_vec_reserve(out, out->n + 1) < 0)
		return -ENOMEM;
	memmove(&out->p[k + 1], &out->p[k], (out->n++ - k) * sizeof *out->p);
	out->p[k] = r;
	r->refs++;
	return 0;
}

static int add_selecting(struct slu_core *c, const char *key, size_t n, const struct slu_kmeta *m,
			 struct repels *out)
{
	const struct chosen *x = chosen_of(slu_table_find(&c->cluster->chosen, key, n));

	for (uint32_t i = 0; x && i < x->of.n; i++)
		if (core_repel_selects(c, x->of.p[i], m) && add_repel(out, x->of.p[i]) < 0)
			return -ENOMEM;
	return 0;
}

int core_repels_of(struct slu_core *c, const struct slu_kmeta *m, struct repels *out)
{
	char key[400];
	int rc = 0;

	if (!c->cluster->repels.n)
		return 0;
	for (uint16_t i = 0; i < m->nlabels && !rc; i++) {
		size_t n = label_key(m->labels[i].key, m->labels[i].value, key);

		rc = n ? add_selecting(c, key, n, m, out) : 0;
	}
	return rc ? rc : add_selecting(c, "", 0, m, out);
}

void core_repels_put(struct slu_core *c, struct repels *r)
{
	while (r->n)
		core_repel_unref(c, r->p[--r->n]);
	slu_vec_done(r);
}

static uint64_t *terms_in(const struct slu_core *c, const char *ns)
{
	return slu_map_get(&c->cluster->space_terms, (uintptr_t)ns);
}

static bool is_full(const struct slu_core *c, const char *ns)
{
	const uint64_t *n = terms_in(c, ns);

	return c->cluster->repels.n >= TERMS_MAX || (n && *n >= SPACE_TERMS_MAX);
}

static int count_term(struct slu_core *c, const char *ns)
{
	uint64_t *n = terms_in(c, ns);

	if (!n)
		return slu_map_put(&c->cluster->space_terms, (uintptr_t)ns, 1);
	++*n;
	return 0;
}

static void uncount_term(struct slu_core *c, const char *ns)
{
	uint64_t *n = terms_in(c, ns);

	if (n && !--*n)
		slu_map_del(&c->cluster->space_terms, (uintptr_t)ns);
}

void core_repel_unref(struct slu_core *c, struct repel *r)
{
	if (--r->refs)
		return;
	slu_table_del(&c->cluster->repels, &r->e);
	uncount_term(c, r->pod->meta.ns);
	unlist_term(c, r);
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

static struct repel *repel_get(struct slu_core *c, const struct slu_kobj *pod,
			       const struct slu_kanti *t)
{
	struct slu_buf b = SLU_BUF_INIT(SLU_REQUEST_MAX);
	struct repel *r = NULL;
	bool counted;

	put_term(&b, pod->meta.ns, t);
	if (b.error)
		goto out;
	r = repel_of(slu_table_find(&c->cluster->repels, b.p, b.n));
	if (r || is_full(c, pod->meta.ns))
		goto out;
	r = slu_calloc(1, sizeof *r);
	if (!r)
		goto out;
	r->pod = slu_kobj_ref(pod);
	r->term = t;
	r->serial = ++c->serial;
	r->e.n = b.n;
	r->e.key = slu_buf_take(&b);
	counted = count_term(c, pod->meta.ns) == 0;
	if (!counted || !r->e.key || list_term(c, r) < 0 ||
	    slu_table_add(&c->cluster->repels, &r->e) < 0) {
		if (counted)
			uncount_term(c, pod->meta.ns);
		unlist_term(c, r);
		slu_kobj_unref(r->pod);
		slu_free((void *)(uintptr_t)r->e.key);
		slu_free(r);
		r = NULL;
		goto out;
	}
	/* From now on the pods that the term selects have a shape of their own. */
	if (add_repel(&c->cluster->new_repels, r) < 0)
		slu_log(SLU_WARN, "out of memory: anti-affinity not recorded",
			SLU_STR("pod", pod->meta.name), SLU_STR("ns", pod->meta.ns));
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

static void look_at_domain(struct slu_core *c, struct node *n, const char *topology, const char *v,
			   bool room)
{
	if (!strcmp(topology, "kubernetes.io/hostname")) {
		core_shapes_node_later(c, n, room);
		return;
	}
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		const struct slu_knode *k = node_of(e)->k;
		const char *has = k ? slu_kmeta_label(&k->o.meta, topology) : NULL;

		if (has && !strcmp(has, v))
			core_shapes_node_later(c, node_of(e), room);
	}
}

/* Whether a pod that Sluice places carries a term that selects this one, which comes or goes. */
static bool is_minded(struct slu_core *c, const struct pod *p)
{
	struct repels r = { 0 };
	bool yes = core_repels_of(c, &p->k->o.meta, &r) < 0; /* no memory: look to be sure */

	for (uint32_t i = 0; i < r.n && !yes; i++)
		yes = r.p[i]->carried;
	core_repels_put(c, &r);
	return yes;
}

void core_repel_enter(struct slu_core *c, struct node *n, struct pod *p)
{
	const struct slu_kpodspec *s = &p->k->spec;
	bool minded = is_minded(c, p);

	for (uint16_t i = 0; i < s->nanti && n->k; i++) {
		const char *v = slu_kmeta_label(&n->k->o.meta, s->anti[i].topology);
		struct repel *r = v ? repel_get(c, &p->k->o, &s->anti[i]) : NULL;
		struct domain *d = r ? domain_get(r, v) : NULL;

		if (!d || slu_vec_push(&p->repels, ((struct repelled){ r, d })) < 0)
			continue;
		r->refs++;
		if (!d->pods++) {
			look_at_domain(c, n, r->term->topology, d->value, false);
			minded = false; /* its own node was among them */
		}
	}
	if (minded)
		core_shapes_node_later(c, n, false);
}

void core_repel_leave(struct slu_core *c, struct node *n, struct pod *p)
{
	bool minded = is_minded(c, p);

	while (p->repels.n) {
		struct repelled x = p->repels.p[--p->repels.n];
		struct domain *d = x.domain;

		if (!--d->pods) {
			look_at_domain(c, n, x.repel->term->topology, d->value, false);
			core_shapes_node_later(c, n, true);
		}
		core_repel_unref(c, x.repel);
	}
	slu_vec_done(&p->repels);
	if (minded)
		core_shapes_node_later(c, n, true);
}

/* ---- what a pod carries ---- */

int core_repels_carried(struct slu_core *c, const struct slu_kobj *pod, struct repels *out)
{
	const struct slu_kpodspec *s = &slu_kpod(pod)->spec;

	for (uint16_t i = 0; i < s->nanti; i++) {
		struct repel *r = slu_predicate_by_host(&s->anti[i])
					  ? repel_get(c, pod, &s->anti[i])
					  : NULL;

		if (!r && slu_predicate_by_host(&s->anti[i]))
			return is_full(c, pod->meta.ns) ? -ENOSPC : -ENOMEM;
		if (r && add_repel(out, r) < 0) {
			r->refs++; /* a new one has no other user: let it go */
			core_repel_unref(c, r);
			return -ENOMEM;
		}
	}
	return 0;
}

bool core_repels_full(const struct slu_core *c, const struct slu_kpod *k)
{
	return k->spec.nanti && is_full(c, k->o.meta.ns);
}

static bool carries(const struct pod *p, const struct repel *r)
{
	for (uint32_t i = 0; i < p->repels.n; i++)
		if (p->repels.p[i].repel == r)
			return true;
	return false;
}

const struct pod *core_repels_clash(struct slu_core *c, const struct node *n, const struct pod *p)
{
	const struct where *w = p->shape ? p->shape->where : NULL;

	if (!w || (!w->repel.n && !w->carries.n))
		return NULL;
	for (uint32_t i = 0; i < n->pod.n; i++) {
		const struct pod *other = n->pod.p[i];

		if (other == p)
			continue;
		for (uint32_t k = 0; k < w->repel.n; k++)
			if (slu_predicate_by_host(w->repel.p[k]->term) &&
			    carries(other, w->repel.p[k]))
				return other;
		for (uint32_t k = 0; k < w->carries.n; k++)
			if (core_repel_selects(c, w->carries.p[k], &other->k->o.meta))
				return other;
	}
	return NULL;
}
