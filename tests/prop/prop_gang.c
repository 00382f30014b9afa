/* Gangs against a dull model: a list of bookings, every second counted.  Seeds are printed; run
 * with a seed and a number of steps as arguments to replay one. */
#include "base/rng.h"
#include "gang/gang.h"
#include "tap.h"

#define NODES     5
#define RESOURCES 4 /* 0 is the share of a node */
#define JOBS      64
#define PARTS     64
#define ROLES     3
#define FAR       200 /* ends lie below; nothing changes after */
#define WHOLE     1000000

struct mpart {
	uint32_t node, role, slots;
};
struct mjob {
	bool live, background;
	uint64_t id;
	enum slu_gang_state state;
	int64_t start, end;
	int64_t need[ROLES][RESOURCES];
	bool excl[ROLES];
	struct mpart part[PARTS];
	uint32_t n_part;
	uint64_t use[2];
	uint32_t n_use;
};
struct mnode {
	bool there, down, cordoned;
	slu_node h;
	int64_t total[RESOURCES], rank;
	int rack;
};
static struct model {
	struct mnode node[NODES];
	struct mjob job[JOBS];
	int64_t now;
	uint64_t next;
} M;
static struct slu_rng R;
static struct slu_machine *m;
static uint32_t resource[RESOURCES];
static uint64_t seed;
static int step;
static long checks;

static int64_t below(int64_t n)
{
	return (int64_t)slu_rng_below(&R, (uint64_t)n);
}

static bool wrong(const char *what)
{
	ok(false, "seed %" PRIu64 " step %d: %s", seed, step, what);
	return false;
}

/* ---- the model ---- */

static bool active(const struct mjob *j, int64_t t)
{
	bool counts = j->state == SLU_GANG_RUNNING || j->start <= M.now;
	int64_t end = j->end;

	if (j->state == SLU_GANG_BLOCK)
		return j->start <= t && t < end;
	if (counts && end <= M.now)
		end = M.now + 1;
	return (counts || j->start <= t) && t < end;
}

static int64_t takes(const struct mjob *j, const struct mpart *p, int k)
{
	if (k)
		return j->need[p->role][k] * p->slots;
	if (j->excl[p->role])
		return WHOLE;
	return j->background ? 0 : p->slots;
}

static bool on_node(const struct mjob *j, uint32_t node)
{
	for (uint32_t i = 0; i < j->n_part; i++) {
		if (j->part[i].node == node)
			return true;
	}
	return false;
}

static struct mjob *find(uint64_t id)
{
	for (int i = 0; i < JOBS; i++) {
		if (M.job[i].live && M.job[i].id == id)
			return &M.job[i];
	}
	return NULL;
}

static struct mjob *home(const struct mjob *j, uint32_t node)
{
	for (uint32_t u = 0; u < j->n_use; u++) {
		struct mjob *b = find(j->use[u]);

		if (b && b->state == SLU_GANG_BLOCK && on_node(b, node))
			return b;
	}
	return NULL;
}

static bool in(uint64_t id, const uint64_t *use, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (use[i] == id)
			return true;
	}
	return false;
}

static int64_t sum_on(const struct mjob *j, uint32_t node, int k)
{
	int64_t s = 0;

	for (uint32_t i = 0; i < j->n_part; i++) {
		if (j->part[i].node == node)
			s += takes(j, &j->part[i], k);
	}
	return s;
}

static int64_t free_at(uint32_t node, int k, int64_t t, const uint64_t *use, uint32_t n_use)
{
	int64_t f = k ? M.node[node].total[k] : WHOLE;

	for (int i = 0; i < JOBS; i++) {
		const struct mjob *j = &M.job[i], *b;

		if (!j->live || !active(j, t) || j->state == SLU_GANG_BLOCK)
			continue;
		b = home(j, node);
		if (b && active(b, t) && !in(b->id, use, n_use))
			continue;
		f -= sum_on(j, node, k);
	}
	for (int i = 0; i < JOBS; i++) {
		const struct mjob *b = &M.job[i];
		int64_t block, guests = 0;

		if (!b->live || b->state != SLU_GANG_BLOCK || !active(b, t) ||
		    in(b->id, use, n_use))
			continue;
		block = sum_on(b, node, k);
		for (int g = 0; g < JOBS; g++) {
			if (M.job[g].live && M.job[g].state != SLU_GANG_BLOCK &&
			    active(&M.job[g], t) && home(&M.job[g], node) == b)
				guests += sum_on(&M.job[g], node, k);
		}
		f -= block > guests ? block : guests;
	}
	return f;
}

static int64_t least(uint32_t node, int k, int64_t t, int64_t end, const struct slu_gang_req *q)
{
	int64_t low = INT64_MAX;

	for (; t < end && t <= FAR; t++) {
		int64_t f = free_at(node, k, t, q ? q->use : NULL, q ? q->n_use : 0);

		low = f < low ? f : low;
	}
	return low;
}

/* Rows of all nodes for a window, then pure arithmetic. */
struct rows {
	int64_t f[NODES][RESOURCES];
	unsigned at[NODES]; /* bits of the roles that were placed there */
};

static void window(struct rows *w, const struct slu_gang_req *q, int64_t t, int64_t end, bool empty)
{
	for (uint32_t v = 0; v < NODES; v++) {
		w->at[v] = 0;
		for (int k = 0; k < RESOURCES; k++) {
			w->f[v][k] = -1;
			if (!M.node[v].there)
				continue;
			if (empty)
				w->f[v][k] = k ? M.node[v].total[k] : WHOLE;
			else if (!M.node[v].down && !M.node[v].cordoned)
				w->f[v][k] = least(v, k, t, end, q);
		}
	}
}

static int64_t slots(const struct slu_gang_role *r, const int64_t *f, bool excl)
{
	int64_t n = 1000;

	if (excl ? f[0] < WHOLE : f[0] < 1)
		return 0;
	for (uint32_t i = 0; i < r->n_need; i++) {
		int k = 0;

		while (resource[k] != r->need[i].resource)
			k++;
		if (!r->need[i].n)
			continue;
		if (f[k] < r->need[i].n)
			return 0;
		n = f[k] / r->need[i].n < n ? f[k] / r->need[i].n : n;
	}
	return n;
}

static const struct mjob *growing; /* the job that asks for more slots; NULL: a new one asks */

static bool one_per_node(const struct slu_gang_role *role, uint32_t r)
{
	return role->flags & SLU_ROLE_ALONE ||
	       (role->flags & SLU_ROLE_APART && role->apart >> r & 1);
}

/* Two roles share no node. */
static bool apart(const struct slu_gang_req *q, uint32_t a, uint32_t b)
{
	return (q->role[a].flags & SLU_ROLE_APART && q->role[a].apart >> b & 1) ||
	       (q->role[b].flags & SLU_ROLE_APART && q->role[b].apart >> a & 1);
}

static bool meets_apart(const struct slu_gang_req *q, const struct rows *w, uint32_t r, uint32_t v)
{
	for (uint32_t other = 0; other < q->n_role; other++)
		if (other != r && w->at[v] >> other & 1 && apart(q, r, other))
			return true;
	return false;
}

static bool may(const struct slu_gang_req *q, uint32_t r, uint32_t v)
{
	uint32_t i = slu_node_index(M.node[v].h);

	if (growing && one_per_node(&q->role[r], r) && on_node(growing, v))
		return false;
	return M.node[v].there && (!q->nodes || slu_nodeset_has(q->nodes, i)) &&
	       (!q->role[r].nodes || slu_nodeset_has(q->role[r].nodes, i));
}

static bool nodex(const struct slu_gang_req *q)
{
	return q->policy == SLU_GANG_FIRSTNODEX || q->policy == SLU_GANG_LONODEX ||
	       q->policy == SLU_GANG_HINODEX;
}

/* Can roles r.. be placed, by trying everything?  left: slots of role r to go from node v on. */
static bool search(const struct slu_gang_req *q, struct rows *w, uint32_t r, uint32_t v,
		   uint32_t left, int rack)
{
	bool excl;

	if (!left) {
		if (++r == q->n_role)
			return true;
		return search(q, w, r, 0, q->role[r].min, rack);
	}
	if (v == NODES)
		return false;
	if (search(q, w, r, v + 1, left, rack))
		return true;
	excl = q->role[r].flags & SLU_ROLE_EXCLUSIVE || nodex(q);
	if (may(q, r, v) && (rack < 0 || M.node[v].rack == rack) && !meets_apart(q, w, r, v)) {
		int64_t most = slots(&q->role[r], w->f[v], excl);

		if (one_per_node(&q->role[r], r))
			most = SLU_MIN(most, (int64_t)1);
		for (int64_t n = 1; n <= most && n <= left; n++) {
			struct rows old = *w;
			bool good;

			w->f[v][0] -= excl ? WHOLE : n;
			w->at[v] |= 1u << r;
			for (uint32_t i = 0; i < q->role[r].n_need; i++) {
				for (int k = 1; k < RESOURCES; k++) {
					if (resource[k] == q->role[r].need[i].resource)
						w->f[v][k] -= q->role[r].need[i].n * n;
				}
			}
			good = search(q, w, r, v + 1, left - (uint32_t)n, rack);
			*w = old;
			if (good)
				return true;
		}
	}
	return false;
}

static bool fits_rows(const struct slu_gang_req *q, struct rows *w)
{
	if (!(q->flags & SLU_GANG_CLOSE_REQUIRED))
		return search(q, w, 0, 0, q->role[0].min, -1);
	for (int rack = 0; rack < 2; rack++) {
		if (search(q, w, 0, 0, q->role[0].min, rack))
			return true;
	}
	return false;
}

static bool fits(const struct slu_gang_req *q, int64_t t, bool empty)
{
	int64_t end = q->duration_s ? t + q->duration_s : FAR + 1;
	struct rows w;

	window(&w, q, t, end, empty);
	return fits_rows(q, &w);
}

/* ---- comparing ---- */

static bool same_books(void)
{
	for (uint32_t v = 0; v < NODES; v++) {
		if (!M.node[v].there)
			continue;
		for (int k = 1; k < RESOURCES; k++) {
			for (int64_t t = M.now; t < M.now + 40; t++) {
				int64_t a = free_at(v, k, t, NULL, 0);
				int64_t b = slu_machine_node_free_during(m, M.node[v].h,
									 resource[k], t, t + 1);

				checks++;
				if (a != b)
					return wrong("free amounts differ from the model");
			}
			checks++;
			if (slu_machine_node_free_during(m, M.node[v].h, resource[k], M.now + 3,
							 M.now + 15) !=
			    least(v, k, M.now + 3, M.now + 15, NULL))
				return wrong("the least of a window differs from the model");
		}
	}
	return true;
}

static uint32_t node_of(slu_node h)
{
	for (uint32_t v = 0; v < NODES; v++) {
		if (M.node[v].there && M.node[v].h == h)
			return v;
	}
	return NODES;
}

static struct mjob *slot(void)
{
	for (int i = 0; i < JOBS; i++) {
		if (!M.job[i].live)
			return &M.job[i];
	}
	return NULL;
}

static void remember(struct mjob *j, const struct slu_gang_req *q, const struct slu_gang_place *p,
		     enum slu_gang_state state)
{
	*j = (struct mjob){ .live = true,
			    .id = M.next,
			    .state = state,
			    .start = p->start_s,
			    .end = p->end_s == SLU_FOREVER ? FAR + 1 : p->end_s };
	for (uint32_t r = 0; r < q->n_role; r++) {
		j->excl[r] = q->role[r].flags & SLU_ROLE_EXCLUSIVE || nodex(q);
		for (uint32_t i = 0; i < q->role[r].n_need; i++) {
			for (int k = 1; k < RESOURCES; k++) {
				if (resource[k] == q->role[r].need[i].resource)
					j->need[r][k] = q->role[r].need[i].n;
			}
		}
	}
	for (uint32_t i = 0; i < p->n; i++)
		j->part[j->n_part++] = (struct mpart){ node_of(p->part[i].node), p->part[i].role,
						       p->part[i].slots };
	for (uint32_t i = 0; i < q->n_use; i++)
		j->use[j->n_use++] = q->use[i];
}

/* The placement holds: sizes, eligibility, closeness, room. */
static bool valid(const struct slu_gang_req *q, const struct slu_gang_place *p)
{
	int64_t end = p->end_s == SLU_FOREVER ? FAR + 1 : p->end_s;
	uint32_t count[ROLES] = { 0 }, all = 0;
	struct rows w;
	int rack = -1;

	window(&w, q, p->start_s, end, false);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct slu_gang_part *x = &p->part[i];
		const struct slu_gang_role *r = &q->role[x->role];
		bool excl = r->flags & SLU_ROLE_EXCLUSIVE || nodex(q);
		uint32_t v = node_of(x->node);

		if (v == NODES || !may(q, x->role, v) || M.node[v].down || M.node[v].cordoned)
			return wrong("placed on a node it may not use");
		if (one_per_node(r, x->role) && x->slots > 1)
			return wrong("two slots on a node, one was asked");
		if (meets_apart(q, &w, x->role, v))
			return wrong("roles that are kept apart share a node");
		w.at[v] |= 1u << x->role;
		if (slots(r, w.f[v], excl) < x->slots)
			return wrong("placed where there is no room");
		for (uint32_t k = 0; k < i; k++) {
			if (p->part[k].role == x->role && p->part[k].node == x->node)
				return wrong("a role has two parts on a node");
		}
		w.f[v][0] -= excl ? WHOLE : x->slots;
		for (uint32_t a = 0; a < r->n_need; a++) {
			for (int k = 1; k < RESOURCES; k++) {
				if (resource[k] == r->need[a].resource)
					w.f[v][k] -= r->need[a].n * x->slots;
			}
		}
		if (rack < 0)
			rack = M.node[v].rack;
		if (q->flags & SLU_GANG_CLOSE_REQUIRED && M.node[v].rack != rack)
			return wrong("not in one rack");
		count[x->role] += x->slots;
		all += x->slots;
	}
	for (uint32_t r = 0; r < q->n_role; r++) {
		uint32_t max = q->role[r].max ? q->role[r].max : q->role[r].min;

		if (count[r] < q->role[r].min || count[r] > max)
			return wrong("a role has too few or too many slots");
	}
	if (all != p->slots || (q->duration_s && end != p->start_s + q->duration_s) ||
	    p->start_s < q->begin_s || (q->deadline_s && end > q->deadline_s))
		return wrong("sums or times are wrong");
	return true;
}

/* ---- random steps ---- */

static struct slu_amount amounts[ROLES][RESOURCES];
static struct slu_gang_role roles[ROLES];
static uint64_t use_ids[2];
static struct slu_nodeset *set_a, *set_b;

static struct slu_gang_req random_req(bool mixed)
{
	struct slu_gang_req q = { .role = roles, .level = -1 };
	uint32_t n = 0;

	q.n_role = mixed ? (uint32_t)(2 + below(2)) : 1;
	for (uint32_t r = 0; r < q.n_role; r++) {
		roles[r] = (struct slu_gang_role){ .min = (uint32_t)(1 + below(mixed ? 3 : 6)),
						   .need = amounts[r] };
		n = 0;
		for (int k = 1; k < RESOURCES; k++) {
			if (below(3))
				amounts[r][n++] = (struct slu_amount){ resource[k], below(4) };
		}
		roles[r].n_need = n;
		if (!below(4))
			roles[r].max = roles[r].min + (uint32_t)below(5);
		if (!below(5))
			roles[r].flags |= SLU_ROLE_ALONE;
		if (!below(8))
			roles[r].flags |= SLU_ROLE_EXCLUSIVE;
		if (!below(4)) {
			roles[r].flags |= SLU_ROLE_APART;
			roles[r].apart = (uint64_t)below(INT64_C(1) << q.n_role);
		}
		if (!below(4))
			roles[r].nodes = below(2) ? set_a : set_b;
		if (!below(6))
			roles[r].prefer = set_a;
	}
	if (!below(4)) {
		q.level = 0;
		q.flags |= below(2) ? SLU_GANG_CLOSE_REQUIRED : 0;
	}
	if (!below(2))
		q.flags |= SLU_GANG_TIME_FIT;
	q.policy = (enum slu_gang_policy)below(SLU_GANG_POLICIES);
	q.duration_s = below(8) ? 1 + below(20) : 0;
	if (!below(6))
		q.begin_s = M.now + below(10);
	if (!below(6) && q.duration_s)
		q.deadline_s = (q.begin_s > M.now ? q.begin_s : M.now) + q.duration_s + below(20);
	if (!below(6))
		q.nodes = set_b;
	if (!below(6)) {
		for (int i = 0; i < JOBS && q.n_use < 2; i++) {
			if (M.job[i].live && M.job[i].state == SLU_GANG_BLOCK)
				use_ids[q.n_use++] = M.job[i].id;
		}
		q.use = use_ids;
	}
	return q;
}

static bool check_answer(const struct slu_gang_req *q, int answer, int op,
			 const struct slu_gang_place *p)
{
	bool waits = op == SLU_GANG_ALLOCATE_OR_RESERVE || op == SLU_GANG_TRY_LATER;
	int64_t from = q->begin_s > M.now ? q->begin_s : M.now;
	int64_t latest = q->deadline_s ? q->deadline_s - q->duration_s : FAR;
	int64_t t = from, last = from;
	bool missed = false;

	if (answer == SLU_GANG_NOW || answer == SLU_GANG_LATER) {
		if (answer == SLU_GANG_NOW && p->start_s != M.now)
			return wrong("now is not now");
		if (answer == SLU_GANG_LATER && !waits)
			return wrong("later, though nobody would wait");
		last = p->start_s - 1;
		if (!valid(q, p))
			return false;
	} else if (answer == SLU_GANG_NEVER) {
		missed |= fits(q, M.now, true);
		last = -1;
	} else if (waits) {
		last = latest;
	} else {
		last = from > M.now ? -1 : SLU_MIN(M.now, latest);
	}
	for (; t <= last && t <= FAR && !missed; t++)
		missed = fits(q, t, false);
	checks++;
	if (missed)
		return wrong("it would have fitted earlier");
	if (answer <= SLU_GANG_LATER && q->n_role == 1) {
		int64_t end = p->end_s == SLU_FOREVER ? FAR + 1 : p->end_s;
		uint32_t max = q->role[0].max ? q->role[0].max : q->role[0].min;
		int64_t room = 0;
		struct rows w;

		window(&w, q, p->start_s, end, false);
		for (uint32_t v = 0; v < NODES; v++) {
			int64_t n = slots(&q->role[0], w.f[v],
					  q->role[0].flags & SLU_ROLE_EXCLUSIVE || nodex(q));

			if (may(q, 0, v))
				room += one_per_node(&q->role[0], 0) ? SLU_MIN(n, (int64_t)1) : n;
		}
		if (q->level < 0 && p->slots != SLU_MIN(room, (int64_t)max))
			return wrong("an elastic gang got fewer slots than there are");
	}
	return true;
}

static bool do_match(bool mixed)
{
	struct slu_gang_req q = random_req(mixed);
	enum slu_gang_op op = (enum slu_gang_op)below(5);
	struct slu_gang_place p = { 0 };
	struct mjob *j = slot();
	struct slu_error err = { 0 };
	bool good;
	int rc;

	if (!j)
		return true;
	M.next++;
	rc = slu_gang_match(m, op, M.now, M.next, &q, &p, &err);
	if (rc < 0)
		return wrong(err.text);
	good = check_answer(&q, rc, op, &p);
	if (good && op < SLU_GANG_TRY && rc <= SLU_GANG_LATER)
		remember(j, &q, &p, rc == SLU_GANG_NOW ? SLU_GANG_RUNNING : SLU_GANG_RESERVED);
	slu_gang_place_done(&p);
	return good;
}

static struct mjob *any_job(void)
{
	for (int i = 0, k = (int)below(JOBS); i < JOBS; i++) {
		if (M.job[(i + k) % JOBS].live)
			return &M.job[(i + k) % JOBS];
	}
	return NULL;
}

static bool do_register(void)
{
	struct slu_gang_req q = random_req(false);
	struct slu_gang_part part[2];
	struct slu_gang_place p = { .part = part };
	struct mjob *j = slot();
	struct slu_gang_booking b;

	if (!j)
		return true;
	M.next++;
	q.policy = SLU_GANG_FIRST;
	q.n_use = 0;
	p.start_s = M.now - 5 + below(20);
	p.end_s = p.start_s + 1 + below(25);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t v = (uint32_t)below(NODES);

		if (M.node[v].there && (!i || !p.n || part[0].node != M.node[v].h))
			part[p.n++] = (struct slu_gang_part){ M.node[v].h, 0,
							      (uint32_t)(1 + below(3)) };
	}
	b = (struct slu_gang_booking){ .job = M.next,
				       .start_s = p.start_s,
				       .end_s = p.end_s,
				       .role = roles,
				       .n_role = 1,
				       .part = part,
				       .n_part = p.n,
				       .flags = below(2) ? SLU_BOOK_RESERVED : 0 };
	if (!below(3) && !(roles[0].flags & SLU_ROLE_EXCLUSIVE))
		b.flags |= SLU_BOOK_BACKGROUND;
	if (slu_gang_register(m, M.now, &b, NULL) < 0)
		return wrong("register failed");
	remember(j, &q, &p, b.flags & SLU_BOOK_RESERVED ? SLU_GANG_RESERVED : SLU_GANG_RUNNING);
	j->background = b.flags & SLU_BOOK_BACKGROUND;
	return true;
}

static bool do_block(void)
{
	struct slu_amount a[] = { { resource[1], 1 + below(3) }, { resource[2], below(3) } };
	struct slu_gang_block b = { .nodes = below(2) ? set_a : set_b };
	struct mjob *j = slot();

	if (!j)
		return true;
	b.id = ++M.next;
	b.from_s = M.now - 2 + below(15);
	b.to_s = SLU_MAX(b.from_s, M.now) + 1 + below(20);
	b.amount = a;
	b.n_amount = below(2) ? 2 : 0;
	*j = (struct mjob){
		.live = true, .id = b.id, .state = SLU_GANG_BLOCK, .start = b.from_s, .end = b.to_s
	};
	for (uint32_t v = 0; v < NODES; v++) {
		if (M.node[v].there && slu_nodeset_has(b.nodes, slu_node_index(M.node[v].h)))
			j->part[j->n_part++] = (struct mpart){ v, 0, 1 };
	}
	if (b.n_amount) {
		j->need[0][1] = a[0].n;
		j->need[0][2] = a[1].n;
		j->background = true;
	} else {
		j->excl[0] = true;
	}
	j->live = j->n_part > 0;
	if (slu_gang_block_add(m, M.now, &b, NULL) != (j->live ? 0 : -EINVAL))
		return wrong("block refused");
	return true;
}

static void model_advance(void)
{
	for (int i = 0; i < JOBS; i++) {
		if (M.job[i].live && M.job[i].state == SLU_GANG_BLOCK && M.job[i].end <= M.now)
			M.job[i].live = false;
	}
	slu_machine_advance(m, M.now);
}

static void drop_part(struct mjob *j, uint32_t i)
{
	for (j->n_part--; i < j->n_part; i++)
		j->part[i] = j->part[i + 1];
}

static bool do_life(void)
{
	struct mjob *j = any_job();
	int64_t end, rc;

	if (!j)
		return true;
	switch (below(6)) {
	case 0:
	case 1:
		if (slu_gang_cancel(m, j->id) < 0)
			return wrong("cancel failed");
		j->live = false;
		return true;
	case 2:
		end = j->start + 1 + below(30);
		if (slu_gang_set_end(m, j->id, end) < 0)
			return wrong("set_end failed");
		j->end = end;
		model_advance();
		if (j->state == SLU_GANG_BLOCK && j->end <= M.now) { /* the next second sees it */
			M.now++;
			model_advance();
		}
		return true;
	case 3:
		rc = slu_gang_start(m, M.now, j->id);
		if (rc != (j->state == SLU_GANG_RESERVED ? 0 : -EINVAL))
			return wrong("start failed");
		if (!rc) {
			if (j->end != FAR + 1)
				j->end += M.now - j->start;
			j->start = M.now;
			j->state = SLU_GANG_RUNNING;
		}
		return true;
	case 4: {
		uint32_t i, n;

		if (!j->n_part || j->state == SLU_GANG_BLOCK)
			return true;
		i = (uint32_t)below(j->n_part);
		n = 1 + (uint32_t)below(j->part[i].slots);
		rc = slu_gang_release(m, j->id, j->part[i].role, M.node[j->part[i].node].h, n);
		j->part[i].slots -= n;
		if (!j->part[i].slots)
			drop_part(j, i);
		for (n = 0, i = 0; i < j->n_part; i++)
			n += j->part[i].slots;
		j->live = n > 0;
		return rc == n ? true : wrong("release says another rest");
	}
	default: {
		uint32_t have = 0, n;

		for (uint32_t i = 0; i < j->n_part; i++)
			have += j->part[i].role == 0 ? j->part[i].slots : 0;
		if (!have || j->state == SLU_GANG_BLOCK)
			return true;
		n = 1 + (uint32_t)below(have);
		if (slu_gang_shrink(m, j->id, 0, n, NULL) < 0)
			return wrong("shrink failed");
		for (uint32_t i = j->n_part; i-- > 0 && n;) {
			uint32_t k = SLU_MIN(n, j->part[i].slots);

			if (j->part[i].role)
				continue;
			n -= k;
			j->part[i].slots -= k;
			if (!j->part[i].slots)
				drop_part(j, i);
		}
		j->live = j->n_part > 0;
		return true;
	}
	}
}

static bool do_grow(void)
{
	struct slu_gang_req q = random_req(false);
	struct slu_gang_place p = { 0 };
	struct mjob *j = any_job();
	bool good = true;
	uint32_t n = 0;
	int rc;

	if (!j || j->state != SLU_GANG_RUNNING || j->background || j->excl[0] || j->excl[1] ||
	    j->n_part + 6 > PARTS)
		return true;
	for (uint32_t i = 0; i < j->n_part; i++) {
		if (j->part[i].role)
			return true;
	}
	for (int k = 1; k < RESOURCES; k++)
		amounts[0][n++] = (struct slu_amount){ resource[k], j->need[0][k] };
	roles[0].n_need = n;
	roles[0].flags &= ~(unsigned)SLU_ROLE_EXCLUSIVE;
	q.policy = SLU_GANG_LOW;
	rc = slu_gang_grow(m, M.now, j->id, &q, &p, NULL);
	if (rc == -EINVAL) { /* a job of several roles that lost all but the first */
		slu_gang_place_done(&p);
		return true;
	}
	q.begin_s = q.deadline_s = 0;
	q.duration_s = j->end == FAR + 1 ? 0 : SLU_MAX(j->end - M.now, (int64_t)1);
	q.use = j->use;
	q.n_use = j->n_use;
	if (rc < 0)
		return wrong("grow failed");
	p.end_s = p.end_s == SLU_FOREVER || rc ? p.end_s : M.now + q.duration_s;
	growing = j;
	good = check_answer(&q, rc, SLU_GANG_TRY, &p);
	growing = NULL;
	for (uint32_t i = 0; good && !rc && i < p.n; i++) {
		uint32_t v = node_of(p.part[i].node), k = 0;

		while (k < j->n_part && j->part[k].node != v)
			k++;
		if (k == j->n_part)
			j->part[j->n_part++] = (struct mpart){ v, 0, 0 };
		j->part[k].slots += p.part[i].slots;
	}
	slu_gang_place_done(&p);
	return good;
}

static void add_node(uint32_t v)
{
	struct slu_amount total[RESOURCES];
	const char *domain[1];
	char name[16];
	struct slu_node_spec s = { .name = name, .total = total, .domain = domain, .n_domain = 1 };

	snprintf(name, sizeof name, "n%u", v);
	for (int k = 1; k < RESOURCES; k++) {
		M.node[v].total[k] = below(8);
		total[s.n_total++] = (struct slu_amount){ resource[k], M.node[v].total[k] };
	}
	M.node[v].rack = (int)below(2);
	M.node[v].rank = s.rank = below(10);
	M.node[v].down = M.node[v].cordoned = false;
	domain[0] = M.node[v].rack ? "right" : "left";
	M.node[v].there = slu_machine_node_add(m, &s, &M.node[v].h, NULL) == 0;
}

static bool do_node(void)
{
	uint32_t v = (uint32_t)below(NODES);
	struct mnode *n = &M.node[v];

	if (!n->there) {
		add_node(v);
		return n->there ? true : wrong("node not added");
	}
	switch (below(6)) {
	case 0:
		if (slu_machine_node_remove(m, n->h) < 0)
			return wrong("node not removed");
		n->there = false;
		for (int i = 0; i < JOBS; i++) {
			for (uint32_t k = M.job[i].n_part; M.job[i].live && k-- > 0;) {
				if (M.job[i].part[k].node == v)
					drop_part(&M.job[i], k);
			}
		}
		return true;
	case 1:
	case 2:
		n->down = !n->down;
		return slu_machine_node_set_down(m, n->h, n->down) == 0;
	case 3:
		n->cordoned = !n->cordoned;
		return slu_machine_node_set_cordoned(m, n->h, n->cordoned) == 0;
	case 4:
		n->rack = !n->rack;
		return slu_machine_node_set_domain(m, n->h, 0, n->rack ? "right" : "left") == 0;
	default: {
		struct slu_amount total[RESOURCES];
		uint32_t k = 0;

		for (int i = 1; i < RESOURCES; i++) {
			n->total[i] = below(8);
			total[k++] = (struct slu_amount){ resource[i], n->total[i] };
		}
		return slu_machine_node_resize(m, n->h, total, k, NULL) == 0;
	}
	}
}

/* Work on a copy, then throw it away: the original must not notice. */
static bool do_clone(void)
{
	struct slu_machine *c = slu_machine_clone(m), *own = m;
	static struct model keep;
	uint64_t version = slu_machine_version(m);
	bool good;

	keep = M;
	m = c;
	good = same_books();
	for (int i = 0; i < 4 && good; i++)
		good = do_match(false) && do_life() && do_register();
	good = good && same_books();
	slu_machine_free(c);
	M = keep;
	m = own;
	return good &&
	       (slu_machine_version(m) == version || wrong("the copy changed the original"));
}

static bool run(uint64_t s, int steps)
{
	bool good = true;

	seed = s;
	R.state = s;
	M = (struct model){ .now = 5 };
	m = slu_machine_new();
	resource[1] = (uint32_t)slu_machine_resource(m, "cpu");
	resource[2] = (uint32_t)slu_machine_resource(m, "memory");
	resource[3] = (uint32_t)slu_machine_resource(m, "gpu");
	slu_machine_level(m, "side");
	set_a = slu_nodeset_new(8);
	set_b = slu_nodeset_new(8);
	for (uint32_t v = 0; v < NODES; v++) {
		add_node(v);
		if (v % 2)
			slu_nodeset_add(set_a, slu_node_index(M.node[v].h));
		if (v > 1)
			slu_nodeset_add(set_b, slu_node_index(M.node[v].h));
	}
	slu_machine_advance(m, M.now);
	for (step = 0; step < steps && good && M.now < FAR - 80; step++) {
		switch (below(20)) {
		case 0:
			good = do_register();
			break;
		case 1:
			good = do_block();
			break;
		case 2:
			good = do_node();
			break;
		case 3:
			good = do_clone();
			break;
		case 4:
			good = do_grow();
			break;
		case 5:
		case 6:
		case 7:
		case 8:
			good = do_life();
			break;
		case 9:
		case 10:
			M.now += below(4);
			model_advance();
			break;
		case 11:
		case 12:
			good = do_match(true);
			break;
		default:
			good = do_match(false);
		}
		good = good && same_books();
	}
	slu_machine_free(m);
	slu_nodeset_unref(set_a);
	slu_nodeset_unref(set_b);
	return good;
}

int main(int argc, char **argv)
{
	int runs = 15, failed = 0;

	if (argc > 2) {
		ok(run(strtoull(argv[1], NULL, 10), atoi(argv[2])), "seed %s agrees with the model",
		   argv[1]);
		return tap_done();
	}
	if (argc > 1)
		runs = atoi(argv[1]);
	for (int i = 0; i < runs && failed < 3; i++)
		failed += !run((uint64_t)i + 1, 250);
	ok(!failed, "seeds 1..%d, 250 steps each, agree with the model (%ld comparisons)", runs,
	   checks);
	return tap_done();
}
