#include "kube/requests.h"

#include "kube/layout_internal.h"

/* Every resource has a number, so that a thousand init containers are added up without comparing names
 * again and again. */
struct sums {
	const char *name[SLU_KREQUESTS_MAX];
	int64_t all[SLU_KREQUESTS_MAX], init[SLU_KREQUESTS_MAX], side[SLU_KREQUESTS_MAX],
		one[SLU_KREQUESTS_MAX];
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

/* The number of the resource; -1: there are too many. */
static int number_of(struct sums *s, const char *name)
{
	for (uint16_t i = 0; i < s->n; i++)
		if (is_same(s->name[i], name))
			return i;
	if (s->n == SLU_KREQUESTS_MAX) {
		s->bad = true;
		return -1;
	}
	s->name[s->n] = name;
	s->all[s->n] = s->init[s->n] = s->side[s->n] = s->one[s->n] = 0;
	return s->n++;
}

static void add_to(struct sums *s, int64_t *to, int64_t amount)
{
	if (slu_add_i64(*to, amount, to) == 0)
		return;
	*to = INT64_MAX;
	s->bad = true;
}

static void sum_amounts(struct sums *s, int64_t *to, const struct slu_kamount *a, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		int at = number_of(s, a[i].name);

		if (at >= 0)
			add_to(s, &to[at], a[i].amount);
	}
}

static void add_container(struct sums *s, int64_t *to, const struct slu_kcontainer *k,
			  const struct slu_kamount *missing, uint16_t nmissing)
{
	sum_amounts(s, to, k->requests, k->nrequests);
	for (uint16_t i = 0; i < nmissing; i++)
		if (!amount_named(k->requests, k->nrequests, missing[i].name))
			sum_amounts(s, to, &missing[i], 1);
}

/* An init container runs beside the sidecars in front of it. */
static void add_init(struct sums *s, const struct slu_kcontainer *k,
		     const struct slu_kamount *missing, uint16_t nmissing)
{
	memset(s->one, 0, s->n * sizeof *s->one);
	add_container(s, s->one, k, missing, nmissing);
	for (uint16_t i = 0; i < s->n; i++) {
		add_to(s, &s->one[i], s->side[i]);
		s->init[i] = SLU_MAX(s->init[i], s->one[i]);
	}
}

static bool is_pod_level(const char *name)
{
	return !strcmp(name, "cpu") || !strcmp(name, "memory") || !strncmp(name, "hugepages-", 10);
}

/* A limit without a request counts as the request for a resource that no container requests
 * (huge pages: always). */
static void replace_by_level(struct sums *s, const struct slu_kdemand *d)
{
	for (uint16_t i = 0; i < d->nlevel; i++) {
		int at = is_pod_level(d->level[i].name) ? number_of(s, d->level[i].name) : -1;

		if (at >= 0)
			s->all[at] = d->level[i].amount;
	}
	for (uint16_t i = 0; i < d->nlevel_limits; i++) {
		const struct slu_kamount *a = &d->level_limits[i];
		uint16_t known = s->n;
		int at = is_pod_level(a->name) && !amount_named(d->level, d->nlevel, a->name)
				 ? number_of(s, a->name)
				 : -1;

		if (at >= known || (at >= 0 && a->name[0] == 'h'))
			s->all[at] = a->amount;
	}
}

uint16_t slu_krequests(const struct slu_kdemand *d, const struct slu_kamount *missing,
		       uint16_t nmissing, struct slu_kamount out[SLU_KREQUESTS_MAX], bool *bad)
{
	struct sums s;
	uint16_t n = 0;

	s.n = 0;
	s.bad = false;
	for (uint16_t i = 0; i < d->ncontainers; i++) {
		const struct slu_kcontainer *k = &d->containers[i];

		if (k->role == SLU_CONTAINER_INIT) {
			add_init(&s, k, missing, nmissing);
			continue;
		}
		add_container(&s, s.all, k, missing, nmissing);
		if (k->role == SLU_CONTAINER_SIDECAR)
			add_container(&s, s.side, k, missing, nmissing);
	}
	/* Sidecars alone ask for no more than all containers together. */
	for (uint16_t i = 0; i < s.n; i++)
		s.all[i] = SLU_MAX(s.all[i], s.init[i]);
	replace_by_level(&s, d);
	sum_amounts(&s, s.all, d->overhead, d->noverhead);
	*bad = s.bad;
	for (uint16_t i = 0; i < s.n; i++) {
		uint16_t k = n;

		if (!s.all[i])
			continue;
		for (; k && strcmp(out[k - 1].name, s.name[i]) > 0; k--)
			out[k] = out[k - 1];
		out[k] = (struct slu_kamount){ .name = s.name[i], .amount = s.all[i] };
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
