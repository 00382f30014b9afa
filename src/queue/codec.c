#include "queue/codec.h"

#include "base/map.h"
#include "base/bytes.h"

/* Odd versions write node sets as bits, even ones by number.  1 and 2 know no bound on the wait. */
#define VERSION  3
#define NAMED    4
#define LIST_MAX (1u << 20)

/* ---- out ---- */

#define put_u slu_bytes_put_u
#define put_i slu_bytes_put_i
#define put_s slu_bytes_put_s

static void put_set(struct slu_buf *b, const struct slu_set_names *names,
		    const struct slu_nodeset *s)
{
	uint32_t n = s ? s->n_word : 0;

	if (names) {
		put_u(b, s ? names->id(names->arg, s) + 1 : 0);
		return;
	}

	while (n && !s->word[n - 1])
		n--;
	put_u(b, s ? n + 1 : 0);
	for (uint32_t i = 0; i < n; i++)
		slu_buf_add(b, &s->word[i], sizeof s->word[i]);
}

static void put_amounts(struct slu_buf *b, const struct slu_amount *a, uint32_t n)
{
	put_u(b, n);
	for (uint32_t i = 0; i < n; i++) {
		put_u(b, a[i].resource);
		put_i(b, a[i].n);
	}
}

static void put_strings(struct slu_buf *b, const char *const *s, uint32_t n)
{
	put_u(b, n);
	for (uint32_t i = 0; i < n; i++)
		put_s(b, s[i]);
}

static void put_req(struct slu_buf *b, const struct slu_set_names *names,
		    const struct slu_gang_req *r)
{
	put_u(b, r != NULL);
	if (!r)
		return;
	put_u(b, r->min);
	put_u(b, r->max);
	put_i(b, r->level);
	put_u(b, r->flags);
	put_u(b, r->policy);
	put_u(b, r->n_role);
	for (uint32_t i = 0; i < r->n_role; i++) {
		const struct slu_gang_role *a = &r->role[i];

		put_s(b, a->name);
		put_u(b, a->min);
		put_u(b, a->max);
		put_u(b, a->flags);
		if (a->flags & SLU_ROLE_APART)
			put_u(b, a->apart);
		put_amounts(b, a->need, a->n_need);
		put_set(b, names, a->nodes);
		put_set(b, names, a->prefer);
		put_u(b, a->n_score);
		for (uint32_t k = 0; k < a->n_score; k++)
			put_i(b, a->score[k]);
	}
}

static void put_spec(struct slu_buf *b, const struct slu_set_names *names,
		     const struct slu_job_spec *s)
{
	put_u(b, s != NULL);
	if (!s)
		return;
	put_u(b, s->id);
	put_s(b, s->name);
	put_s(b, s->user);
	put_s(b, s->queue);
	put_i(b, s->priority);
	put_i(b, s->first_seen_us);
	put_i(b, s->limit_s);
	put_i(b, s->begin_s);
	put_i(b, s->deadline_s);
	put_s(b, s->reservation);
	put_u(b, s->ndep);
	for (uint32_t i = 0; i < s->ndep; i++) {
		put_u(b, s->dep[i].kind);
		put_u(b, s->dep[i].job);
	}
	put_u(b, (s->held ? 1u : 0u) | (s->grow ? 2u : 0u) | (s->member ? 4u : 0u) |
			 (s->stands ? 8u : 0u) | (s->known ? 16u : 0u));
	put_req(b, names, s->req);
}

static void put_node(struct slu_buf *b, const struct slu_node_spec *n)
{
	put_u(b, n != NULL);
	if (!n)
		return;
	put_s(b, n->name);
	put_i(b, n->rank);
	put_amounts(b, n->total, n->n_total);
	put_strings(b, n->domain, n->n_domain);
	put_u(b, n->tag);
	put_u(b, (n->down ? 1u : 0u) | (n->cordoned ? 2u : 0u));
}

static void put_span(struct slu_buf *b, const struct slu_span *s)
{
	put_u(b, s != NULL);
	if (!s)
		return;
	put_u(b, s->kind);
	put_s(b, s->name);
	put_i(b, s->from_s);
	put_i(b, s->to_s);
	put_strings(b, s->node, s->nnode);
	put_u(b, s->count);
	put_s(b, s->property);
	put_amounts(b, s->amount, s->n_amount);
	put_strings(b, s->user, s->nuser);
}

static void put_conf(struct slu_buf *b, const struct slu_queue_conf *c)
{
	put_u(b, c != NULL);
	if (!c)
		return;
	put_s(b, c->name);
	put_u(b, c->policy);
	put_u(b, c->backfill);
	put_u(b, c->queue_depth);
	put_u(b, c->reservation_depth);
	put_i(b, c->priority);
	put_i(b, c->default_duration);
	put_s(b, c->property);
	put_i(b, c->limit.max_slots);
	put_i(b, c->limit.max_duration);
	put_u(b, c->limit.max_running);
	put_u(b, c->limit.max_waiting);
	put_u(b, c->limit.max_running_user);
	put_u(b, c->limit.max_waiting_user);
	put_u(b, (c->stopped ? 1u : 0u) | (c->removed ? 2u : 0u));
	put_u(b, c->max_stretch);
	put_i(b, c->max_wait_s);
}

int slu_event_encode(int64_t now_s, const struct slu_event *ev, const struct slu_set_names *names,
		     struct slu_buf *b)
{
	put_u(b, names ? NAMED : VERSION);
	put_i(b, now_s);
	put_u(b, ev->kind);
	put_u(b, ev->job);
	put_u(b, ev->n_part);
	for (uint32_t i = 0; i < ev->n_part; i++) {
		put_u(b, ev->part[i].node);
		put_u(b, ev->part[i].role);
		put_u(b, ev->part[i].slots);
	}
	put_u(b, ev->node);
	put_strings(b, ev->property, ev->n_property);
	put_u(b, ev->foreign);
	put_amounts(b, ev->amount, ev->n_amount);
	put_u(b, ev->background);
	put_i(b, ev->priority);
	put_i(b, ev->limit_s);
	put_i(b, ev->start_s);
	put_i(b, ev->until_s);
	put_i(b, ev->size);
	put_u(b, ev->role);
	put_u(b, ev->result);
	put_spec(b, names, ev->spec);
	put_node(b, ev->node_spec);
	put_span(b, ev->span);
	put_conf(b, ev->conf);
	return b->error;
}

/* ---- in ---- */

struct in {
	struct slu_bytes_in b;
	struct slu_event_box *box;
	const struct slu_set_names *names; /* NULL: sets are written as bits */
	uint64_t version;
};

static uint64_t get_u(struct in *r)
{
	return slu_bytes_get_u(&r->b);
}

static int64_t get_i(struct in *r)
{
	return slu_bytes_get_i(&r->b);
}

static uint32_t get_u32(struct in *r)
{
	return slu_bytes_get_u32(&r->b);
}

/* The length of a list whose items take at least one byte each. */
static uint32_t get_n(struct in *r)
{
	uint32_t n = get_u32(r);

	if ((n > LIST_MAX || n > (size_t)(r->b.end - r->b.p)) && !r->b.rc)
		r->b.rc = -EINVAL;
	return r->b.rc ? 0 : n;
}

static void *get_mem(struct in *r, size_t n)
{
	void *p = r->b.rc ? NULL : slu_arena_zalloc(&r->box->mem, SLU_MAX(n, (size_t)1));

	if (!p && !r->b.rc)
		r->b.rc = -ENOMEM;
	return p;
}

static const char *get_s(struct in *r)
{
	uint64_t n = get_u(r);

	if (!n || r->b.rc)
		return NULL;
	if (n - 1 > (size_t)(r->b.end - r->b.p) || memchr(r->b.p, 0, n - 1)) {
		r->b.rc = -EINVAL;
		return NULL;
	}
	char *s = slu_arena_strndup(&r->box->mem, (const char *)r->b.p, n - 1);

	r->b.p += n - 1;
	if (!s)
		r->b.rc = -ENOMEM;
	return s;
}

static struct slu_nodeset *get_set(struct in *r)
{
	uint64_t n = get_u(r);

	struct slu_nodeset *s;

	if (!n || r->b.rc)
		return NULL;
	if (r->names) {
		s = r->names->find(r->names->arg, n - 1);
		if (!s)
			r->b.rc = -EINVAL;
		return s;
	}
	if ((n - 1) > (size_t)(r->b.end - r->b.p) / 8) {
		r->b.rc = -EINVAL;
		return NULL;
	}
	s = slu_nodeset_new((uint32_t)(n - 1) * 64);
	if (!s || slu_vec_push(&r->box->set, s) < 0) {
		slu_nodeset_unref(s);
		r->b.rc = -ENOMEM;
		return NULL;
	}
	for (uint32_t w = 0; w < n - 1; w++, r->b.p += 8) {
		uint64_t word;

		memcpy(&word, r->b.p, sizeof word);
		for (; word; word &= word - 1)
			if (slu_nodeset_add(s, w * 64 + (uint32_t)__builtin_ctzll(word)) < 0)
				r->b.rc = -ENOMEM;
	}
	return s;
}

static struct slu_amount *get_amounts(struct in *r, uint32_t *n)
{
	*n = get_n(r);
	struct slu_amount *a = get_mem(r, *n * sizeof *a);

	for (uint32_t i = 0; a && i < *n; i++) {
		a[i].resource = get_u32(r);
		a[i].n = get_i(r);
	}
	return a;
}

static const char *const *get_strings(struct in *r, uint32_t *n)
{
	*n = get_n(r);
	const char **s = get_mem(r, *n * sizeof *s);

	for (uint32_t i = 0; s && i < *n; i++)
		s[i] = get_s(r);
	return s;
}

static const struct slu_gang_req *get_req(struct in *r)
{
	struct slu_gang_req *q = get_u(r) ? get_mem(r, sizeof *q) : NULL;

	if (!q)
		return NULL;
	q->min = get_u32(r);
	q->max = get_u32(r);
	q->level = (int)get_i(r);
	q->flags = get_u32(r);
	q->policy = (enum slu_gang_policy)get_u32(r);
	q->n_role = get_n(r);
	struct slu_gang_role *role = get_mem(r, q->n_role * sizeof *role);

	q->role = role;
	for (uint32_t i = 0; role && i < q->n_role && !r->b.rc; i++) {
		struct slu_gang_role *a = &role[i];

		a->name = get_s(r);
		a->min = get_u32(r);
		a->max = get_u32(r);
		a->flags = get_u32(r);
		if (a->flags & SLU_ROLE_APART)
			a->apart = get_u(r);
		a->need = get_amounts(r, &a->n_need);
		a->nodes = get_set(r);
		a->prefer = get_set(r);
		a->n_score = get_n(r);
		int32_t *score = get_mem(r, a->n_score * sizeof *score);

		for (uint32_t k = 0; score && k < a->n_score; k++)
			score[k] = (int32_t)get_i(r);
		a->score = score;
	}
	return q;
}

static const struct slu_job_spec *get_spec(struct in *r)
{
	struct slu_job_spec *s = get_u(r) ? get_mem(r, sizeof *s) : NULL;

	if (!s)
		return NULL;
	s->id = get_u(r);
	s->name = get_s(r);
	s->user = get_s(r);
	s->queue = get_s(r);
	s->priority = get_i(r);
	s->first_seen_us = get_i(r);
	s->limit_s = get_i(r);
	s->begin_s = get_i(r);
	s->deadline_s = get_i(r);
	s->reservation = get_s(r);
	s->ndep = get_n(r);
	struct slu_dep *dep = get_mem(r, s->ndep * sizeof *dep);

	for (uint32_t i = 0; dep && i < s->ndep; i++) {
		dep[i].kind = (enum slu_dep_kind)get_u32(r);
		dep[i].job = get_u(r);
	}
	s->dep = dep;
	uint32_t flags = get_u32(r);

	s->held = flags & 1;
	s->grow = flags & 2;
	s->member = flags & 4;
	s->stands = flags & 8;
	s->known = flags & 16;
	s->req = get_req(r);
	return s;
}

static const struct slu_node_spec *get_node(struct in *r)
{
	struct slu_node_spec *n = get_u(r) ? get_mem(r, sizeof *n) : NULL;

	if (!n)
		return NULL;
	n->name = get_s(r);
	n->rank = get_i(r);
	n->total = get_amounts(r, &n->n_total);
	n->domain = get_strings(r, &n->n_domain);
	n->tag = get_u(r);
	uint32_t flags = get_u32(r);

	n->down = flags & 1;
	n->cordoned = flags & 2;
	return n;
}

static const struct slu_span *get_span(struct in *r)
{
	struct slu_span *s = get_u(r) ? get_mem(r, sizeof *s) : NULL;

	if (!s)
		return NULL;
	s->kind = (enum slu_span_kind)get_u32(r);
	s->name = get_s(r);
	s->from_s = get_i(r);
	s->to_s = get_i(r);
	s->node = get_strings(r, &s->nnode);
	s->count = get_u32(r);
	s->property = get_s(r);
	s->amount = get_amounts(r, &s->n_amount);
	s->user = get_strings(r, &s->nuser);
	return s;
}

static const struct slu_queue_conf *get_conf(struct in *r)
{
	struct slu_queue_conf *c = get_u(r) ? get_mem(r, sizeof *c) : NULL;

	if (!c)
		return NULL;
	c->name = get_s(r);
	c->policy = (enum slu_policy)get_u32(r);
	c->backfill = (enum slu_backfill)get_u32(r);
	c->queue_depth = get_u32(r);
	c->reservation_depth = get_u32(r);
	c->priority = (int32_t)get_i(r);
	c->default_duration = get_i(r);
	c->property = get_s(r);
	c->limit.max_slots = get_i(r);
	c->limit.max_duration = get_i(r);
	c->limit.max_running = get_u32(r);
	c->limit.max_waiting = get_u32(r);
	c->limit.max_running_user = get_u32(r);
	c->limit.max_waiting_user = get_u32(r);
	uint32_t flags = get_u32(r);

	c->stopped = flags & 1;
	c->removed = flags & 2;
	if (r->version >= 3) {
		c->max_stretch = get_u32(r);
		c->max_wait_s = get_i(r);
	}
	return c;
}

int slu_event_decode(const void *p, size_t n, const struct slu_set_names *names,
		     struct slu_event_box *box, struct slu_error *err)
{
	struct in r = { .b = { .p = p, .end = (const uint8_t *)p + n }, .box = box };
	struct slu_event *ev = &box->ev;
	uint64_t version = get_u(&r);

	memset(ev, 0, sizeof *ev);
	r.version = version;
	r.names = version % 2 ? NULL : names;
	if (!r.b.rc && (!version || version > NAMED || (version % 2 == 0 && !names)))
		return slu_fail(err, version > NAMED ? -ENOTSUP : -EINVAL,
				"an event of version %" PRIu64 "; this program knows %d", version,
				names ? NAMED : VERSION);
	box->now_s = get_i(&r);
	ev->kind = (enum slu_event_kind)get_u32(&r);
	ev->job = get_u(&r);
	ev->n_part = get_n(&r);
	struct slu_gang_part *part = get_mem(&r, ev->n_part * sizeof *part);

	for (uint32_t i = 0; part && i < ev->n_part; i++) {
		part[i].node = get_u(&r);
		part[i].role = get_u32(&r);
		part[i].slots = get_u32(&r);
	}
	ev->part = part;
	ev->node = get_u(&r);
	ev->property = get_strings(&r, &ev->n_property);
	ev->foreign = get_u(&r);
	ev->amount = get_amounts(&r, &ev->n_amount);
	ev->background = get_u(&r);
	ev->priority = get_i(&r);
	ev->limit_s = get_i(&r);
	ev->start_s = get_i(&r);
	ev->until_s = get_i(&r);
	ev->size = get_i(&r);
	ev->role = get_u32(&r);
	ev->result = (enum slu_result)get_u32(&r);
	ev->spec = get_spec(&r);
	ev->node_spec = get_node(&r);
	ev->span = get_span(&r);
	ev->conf = get_conf(&r);
	if (!r.b.rc && r.b.p != r.b.end)
		r.b.rc = -EINVAL;
	if (r.b.rc < 0) {
		slu_event_box_done(box);
		return slu_fail(err, r.b.rc, r.b.rc == -ENOMEM ? "out of memory" : "not an event");
	}
	return 0;
}

void slu_event_box_done(struct slu_event_box *b)
{
	for (uint32_t i = 0; i < b->set.n; i++)
		slu_nodeset_unref(b->set.p[i]);
	slu_vec_done(&b->set);
	slu_arena_done(&b->mem);
	memset(b, 0, sizeof *b);
}

uint64_t slu_decisions_digest(const struct slu_decisions *d)
{
	uint64_t h = d->v.n;

#define MIX(x) (h = slu_hash_u64(h ^ ((uint64_t)(x) + 0x9e3779b97f4a7c15ull)))
	for (uint32_t i = 0; i < d->v.n; i++) {
		const struct slu_decision *x = &d->v.p[i];
		const char *text = slu_decision_text(d, x);

		MIX(x->kind);
		MIX(x->job);
		MIX(x->start_s);
		MIX(x->end_s);
		MIX(x->was_s);
		MIX(x->how);
		MIX(x->cause);
		MIX(x->cause_job);
		MIX(x->cause_node);
		MIX(x->size);
		MIX(slu_hash_bytes(text, strlen(text)));
		for (uint32_t k = 0; k < x->n_part; k++) {
			const struct slu_gang_part *p = &d->part.p[x->part + k];

			MIX(p->node);
			MIX(p->role);
			MIX(p->slots);
		}
	}
#undef MIX
	return h;
}
