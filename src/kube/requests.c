#include "kube/requests.h"

#include "kube/layout_internal.h"

struct sum {
	struct slu_kamount a[SLU_KREQUESTS_MAX];
	uint16_t n;
	bool bad;
};

/* Names of one pool are equal pointers; those of two pools are compared. */
static bool is_same(const char *a, const char *b)
{
	return a == b || !strcmp(a, b);
}

static const struct slu_kamount *amount_named(const struct slu_kamount *a, uint16_t n,
					      const char *name)
{
	for (uint16_t i = 0; i < n; i++)
		if (is_same(a[i].name, name))
			return &a[i];
	return NULL;
}

static struct slu_kamount *slot(struct sum *s, const char *name)
{
	for (uint16_t i = 0; i < s->n; i++)
		if (is_same(s->a[i].name, name))
			return &s->a[i];
	if (s->n == SLU_KREQUESTS_MAX) {
		s->bad = true;
		return NULL;
	}
	s->a[s->n] = (struct slu_kamount){ .name = name };
	return &s->a[s->n++];
}

static void sum_amounts(struct sum *s, const struct slu_kamount *a, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct slu_kamount *t = slot(s, a[i].name);

		if (t && slu_add_i64(t->amount, a[i].amount, &t->amount) < 0) {
			t->amount = INT64_MAX;
			s->bad = true;
		}
	}
}

static void raise_to(struct sum *s, const struct slu_kamount *a, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct slu_kamount *t = slot(s, a[i].name);

		if (t)
			t->amount = SLU_MAX(t->amount, a[i].amount);
	}
}

static void add_container(struct sum *s, const struct slu_kcontainer *k,
			  const struct slu_kamount *missing, uint16_t nmissing)
{
	sum_amounts(s, k->requests, k->nrequests);
	for (uint16_t i = 0; i < nmissing; i++)
		if (!amount_named(k->requests, k->nrequests, missing[i].name))
			sum_amounts(s, &missing[i], 1);
}

static bool is_pod_level(const char *name)
{
	return !strcmp(name, "cpu") || !strcmp(name, "memory") || !strncmp(name, "hugepages-", 10);
}

/* A limit without a request counts as the request for a resource that no container requests
 * (huge pages: always). */
static void replace_by_level(struct sum *all, const struct slu_kdemand *d)
{
	for (uint16_t i = 0; i < d->nlevel; i++) {
		struct slu_kamount *t = is_pod_level(d->level[i].name) ? slot(all, d->level[i].name)
								       : NULL;

		if (t)
			t->amount = d->level[i].amount;
	}
	for (uint16_t i = 0; i < d->nlevel_limits; i++) {
		const struct slu_kamount *a = &d->level_limits[i];
		struct slu_kamount *t;

		if (!is_pod_level(a->name) || amount_named(d->level, d->nlevel, a->name) ||
		    (amount_named(all->a, all->n, a->name) && a->name[0] != 'h'))
			continue;
		t = slot(all, a->name);
		if (t)
			t->amount = a->amount;
	}
}

uint16_t slu_krequests(const struct slu_kdemand *d, const struct slu_kamount *missing,
		       uint16_t nmissing, struct slu_kamount out[SLU_KREQUESTS_MAX], bool *bad)
{
	struct sum all, init, side, one;
	uint16_t n = 0;

	all.n = init.n = side.n = 0;
	all.bad = init.bad = side.bad = one.bad = false;
	for (uint16_t i = 0; i < d->ncontainers; i++) {
		const struct slu_kcontainer *k = &d->containers[i];

		if (k->role == SLU_CONTAINER_APP) {
			add_container(&all, k, missing, nmissing);
		} else if (k->role == SLU_CONTAINER_SIDECAR) {
			add_container(&all, k, missing, nmissing);
			add_container(&side, k, missing, nmissing);
			raise_to(&init, side.a, side.n);
		} else {
			one.n = 0;
			add_container(&one, k, missing, nmissing);
			sum_amounts(&one, side.a, side.n);
			raise_to(&init, one.a, one.n);
		}
	}
	raise_to(&all, init.a, init.n);
	replace_by_level(&all, d);
	sum_amounts(&all, d->overhead, d->noverhead);
	*bad = all.bad || init.bad || side.bad || one.bad;
	for (uint16_t i = 0; i < all.n; i++) {
		uint16_t k = n;

		if (!all.a[i].amount)
			continue;
		for (; k && strcmp(out[k - 1].name, all.a[i].name) > 0; k--)
			out[k] = out[k - 1];
		out[k] = all.a[i];
		n++;
	}
	return n;
}

/* ---- a pod as it will be ---- */

struct admitted {
	struct slu_kamount requests[SLU_KREQUESTS_MAX];
	struct slu_kpair *selector;
	struct slu_ktoleration *tolerations;
};

/* The class's node selector is merged, its tolerations are appended; labels stay sorted. */
static int take_class(const struct slu_kruntimeclass *rc, struct slu_kpodspec *s,
		      struct admitted *room)
{
	uint32_t n = (uint32_t)s->nnode_selector + rc->nnode_selector;
	uint32_t nt = (uint32_t)s->ntolerations + rc->ntolerations;
	uint16_t i = 0, k = 0, at = 0;

	if (n > UINT16_MAX || nt > UINT16_MAX)
		return 0; /* the server would refuse it */
	room->selector = slu_reallocarray(NULL, n + 1, sizeof *room->selector);
	room->tolerations = slu_reallocarray(NULL, nt + 1, sizeof *room->tolerations);
	if (!room->selector || !room->tolerations)
		return -ENOMEM;
	while (i < s->nnode_selector || k < rc->nnode_selector) {
		int cmp = i == s->nnode_selector ? 1
			  : k == rc->nnode_selector
				  ? -1
				  : strcmp(s->node_selector[i].key, rc->node_selector[k].key);

		room->selector[at++] = cmp <= 0 ? s->node_selector[i] : rc->node_selector[k];
		i += cmp <= 0;
		k += cmp >= 0;
	}
	for (uint16_t t = 0; t < s->ntolerations; t++)
		room->tolerations[t] = s->tolerations[t];
	for (uint16_t t = 0; t < rc->ntolerations; t++)
		room->tolerations[s->ntolerations + t] = rc->tolerations[t];
	s->node_selector = room->selector;
	s->nnode_selector = at;
	s->tolerations = room->tolerations;
	s->ntolerations = (uint16_t)nt;
	return 0;
}

const struct slu_kobj *slu_kpod_stand_in(const struct slu_kobj *from, const struct slu_ktemplate *t,
					 const struct slu_kadmission *a)
{
	const struct slu_kowner maker = { .name = from->meta.name,
					  .uid = from->meta.uid,
					  .controller = true };
	struct slu_kpod raw = { .o = { .pool = from->pool,
				       .kind = SLU_KIND_POD,
				       .flags = from->flags & SLU_KOBJ_BAD_AMOUNT,
				       .problem = from->problem,
				       .meta = from->meta },
				.spec = t->spec,
				.phase = SLU_PHASE_PENDING,
				.scheduled = SLU_TRI_ABSENT,
				.ready = SLU_TRI_ABSENT,
				.disrupted = SLU_TRI_ABSENT };
	struct slu_kdemand demand = t->demand;
	struct admitted *room = slu_calloc(1, sizeof *room);
	const struct slu_kobj *o = NULL;
	bool bad = false;

	if (!room)
		return NULL;
	raw.o.meta.labels = t->labels;
	raw.o.meta.nlabels = t->nlabels;
	raw.o.meta.annotations = t->annotations;
	raw.o.meta.nannotations = t->nannotations;
	raw.o.meta.owners = &maker;
	raw.o.meta.nowners = 1;
	raw.o.meta.nfinalizers = 0;
	if (!raw.spec.has_priority)
		raw.spec.priority = a->priority;
	if (a->rc && !demand.noverhead) {
		demand.overhead = a->rc->overhead;
		demand.noverhead = a->rc->noverhead;
	}
	if (a->rc && take_class(a->rc, &raw.spec, room) < 0)
		goto out;
	if (a->nmissing || a->rc) {
		raw.spec.nrequests = slu_krequests(&demand, a->missing, a->nmissing, room->requests,
						   &bad);
		raw.spec.requests = room->requests;
	}
	if (bad)
		raw.o.flags |= SLU_KOBJ_BAD_AMOUNT;
	slu_strpool_lock(from->pool);
	o = slu_klay_pack(&raw.o);
	slu_strpool_unlock(from->pool);
out:
	slu_free(room->selector);
	slu_free(room->tolerations);
	slu_free(room);
	return o;
}

const struct slu_kobj *slu_kpod_like(const struct slu_kpod *like, const char *name, const char *uid,
				     const char *node, enum slu_kphase phase, int64_t start_us)
{
	struct slu_strpool *pool = like->o.pool;
	struct slu_kpod raw = *like;
	const struct slu_kobj *o = NULL;
	const char *text[3];

	slu_strpool_lock(pool);
	raw.o.meta.name = text[0] = slu_strpool_get_locked(pool, name, strlen(name));
	raw.o.meta.uid = text[1] = slu_strpool_get_locked(pool, uid, strlen(uid));
	raw.spec.node = text[2] = slu_strpool_get_locked(pool, node, strlen(node));
	raw.phase = (uint8_t)phase;
	raw.start_us = start_us;
	if (text[0] && text[1] && text[2])
		o = slu_klay_pack(&raw.o); /* with references of its own */
	for (size_t i = 0; i < SLU_LEN(text); i++)
		if (text[i])
			slu_strpool_put_locked(pool, text[i]);
	slu_strpool_unlock(pool);
	return o;
}
