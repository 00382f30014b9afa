/* attempt.c — one try to place a whole gang in one window of time.
 *
 * Slots of one role are independent of each other, so taking nodes in the policy's order until
 * there are enough is exact.  Several roles compete for the same nodes, and finding the one way in
 * which they fit together is as hard as packing bins.  They are placed one after the other, in the
 * order given; if that fails, with the most demanding first; if that fails too, everything is
 * tried, up to a number of steps per request: enough to be exact for a handful of nodes, and never
 * long. */
#include "gang/gang_internal.h"

/* ---- several roles ---- */

/* What is left of a node in this attempt; the first question reads its books.  There must be room for one
 * more in `touched`. */
static int64_t *left_of(struct plan *p, uint32_t pos)
{
	struct slu_machine *m = p->m;
	int64_t *left = m->s.left + (size_t)pos * m->stride;
	uint32_t node = m->order[pos];

	if (m->s.mark[pos] == m->s.attempt)
		return left;
	m->s.mark[pos] = m->s.attempt;
	m->s.here[pos] = 0;
	m->s.touched.p[m->s.touched.n++] = pos;
	if (p->empty)
		memcpy(left, m->total + (size_t)node * m->stride, m->resource.n * sizeof *left);
	else
		slu_window(m, node, p->t, p->end, p->req->use, p->req->n_use, left);
	return left;
}

/* Book the parts from `from` on in what is left of their nodes. */
static int leave_less(struct plan *p, uint32_t from)
{
	struct scratch *s = &p->m->s;

	if (slu_vec_reserve(&s->touched, s->touched.n + s->out.n - from) < 0)
		return -ENOMEM;
	for (uint32_t i = from; i < s->out.n; i++) {
		uint32_t pos = s->out.p[i].node;
		int64_t *left = left_of(p, pos);

		need_take(p->role[s->out.p[i].role].need, s->out.p[i].slots, left);
		s->here[pos] |= UINT64_C(1) << s->out.p[i].role;
	}
	return 0;
}

/* Lower the caps of a role where others have been. */
static int lower_caps(struct plan *p, uint32_t r)
{
	struct slu_machine *m = p->m;
	struct scratch *s = &m->s;

	if (slu_vec_reserve(&s->undo, s->undo.n + s->touched.n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->touched.n; i++) {
		uint32_t pos = s->touched.p[i];
		int32_t cap = s->cap[r][pos];

		if (!cap)
			continue;
		s->undo.p[s->undo.n++] = (struct undo){ r, pos, cap };
		cap = need_fits(p->role[r].need, s->left + (size_t)pos * m->stride,
				p->role[r].flags);
		slu_caps_set(p, r, pos, p->role[r].apart & s->here[pos] ? 0 : cap);
	}
	return 0;
}

/* The same for slots beyond the minimum: a role may go on where it is already, if it may have
 * several on a node; whole nodes it has are its own. */
static int lower_caps_more(struct plan *p, uint32_t r)
{
	struct slu_machine *m = p->m;
	struct scratch *s = &m->s;
	int rc = lower_caps(p, r);

	for (uint32_t i = 0; i < s->out.n && !rc; i++) {
		uint32_t pos = s->out.p[i].node;
		int64_t *left = s->left + (size_t)pos * m->stride;
		int32_t cap = 0;

		if (s->out.p[i].role != r)
			continue;
		if (!(p->role[r].flags & SLU_ROLE_ALONE)) {
			left[0] += p->role[r].need->per_part;
			cap = need_fits(p->role[r].need, left, p->role[r].flags);
			left[0] -= p->role[r].need->per_part;
		}
		slu_caps_set(p, r, pos, cap);
	}
	return rc;
}

static void restore_caps(struct plan *p)
{
	struct scratch *s = &p->m->s;

	while (s->undo.n) {
		struct undo u = s->undo.p[--s->undo.n];

		slu_caps_set(p, u.role, u.pos, u.cap);
	}
	s->touched.n = 0;
}

/* How much of a typical node one slot is, in millionths; whole nodes are most. */
static int64_t slot_weight(const struct plan *p, uint32_t r)
{
	const struct need *n = p->role[r].need;
	int64_t w = n->per_part ? 1000000 : 0;

	for (uint32_t i = 0; i < n->n && p->m->n_pos; i++) {
		const int64_t *row = p->m->total + (size_t)p->m->order[0] * p->m->stride;
		int64_t have = SLU_MAX(row[n->a[i].resource], (int64_t)1);

		w = SLU_MAX(w, (int64_t)SLU_MIN((double)n->a[i].n / (double)have * 1e6, 1e6));
	}
	return w;
}

static int room_for(struct plan *p, uint32_t want)
{
	return slu_vec_reserve(&p->m->s.out, p->m->s.out.n + 2 * SLU_MIN(want, p->m->n_pos) + 1);
}

static uint32_t pick_role(struct plan *p, uint32_t r, uint32_t want, const uint32_t *list,
			  uint32_t n_list)
{
	struct pick q = { .c = &p->caps[r],
			  .before = p->req->flags & SLU_GANG_TIME_FIT ? p->before[r] : NULL,
			  .list = list,
			  .n_list = n_list,
			  .role = r,
			  .want = want,
			  .spec = &p->req->role[r],
			  .policy = p->policy };

	return want ? slu_pick(p->m, &q) : 0;
}

/* Parts by role, one per node and role. */
static int tidy_parts(struct plan *p)
{
	struct slu_machine *m = p->m;
	struct scratch *s = &m->s;
	uint32_t n = s->out.n, k = n;

	if (slu_vec_reserve(&s->out, n * 2) < 0)
		return -ENOMEM;
	for (uint32_t r = 0; r < p->n_role; r++) {
		uint32_t from = k;

		for (uint32_t i = 0; i < n; i++) {
			struct part x = s->out.p[i];

			if (x.role != r)
				continue;
			if (s->taken[x.node]) {
				s->out.p[s->taken[x.node] - 1].slots += x.slots;
			} else {
				s->out.p[k] = x;
				s->taken[x.node] = ++k;
			}
		}
		for (uint32_t i = from; i < k; i++)
			s->taken[s->out.p[i].node] = 0;
	}
	memmove(s->out.p, s->out.p + n, (k - n) * sizeof *s->out.p);
	s->out.n = k - n;
	return 0;
}

/* Place one role after the other, each by the policy.  1, 0 or -ENOMEM. */
static int by_turns(struct plan *p, const uint32_t *order, const uint32_t *list, uint32_t n_list)
{
	struct scratch *s = &p->m->s;
	int rc = 0;

	for (uint32_t i = 0; i < p->n_role && !rc; i++) {
		uint32_t r = order[i], from = s->out.n, want = p->role[r].min;

		rc = i ? lower_caps(p, r) : 0;
		if (!rc)
			rc = room_for(p, want);
		if (!rc && pick_role(p, r, want, list, n_list) < want)
			return 0;
		if (!rc)
			rc = leave_less(p, from);
	}
	return rc < 0 ? rc : 1;
}

/* ---- trying everything ---- */

struct search {
	struct plan *p;
	const uint32_t *list; /* positions; NULL: all */
	uint32_t n;
};

/* Place `todo` slots of role r on nodes from the i-th on, then the roles after it. */
static bool search_nodes(struct search *x, uint32_t r, uint32_t i, uint32_t todo)
{
	struct plan *p = x->p;
	struct scratch *s = &p->m->s;

	while (!todo) {
		if (++r == p->n_role)
			return true;
		todo = p->role[r].min;
		i = 0;
	}
	for (; i < x->n; i++) {
		uint32_t pos = x->list ? x->list[i] : i;
		const struct need *need = p->role[r].need;
		int64_t *left;
		uint32_t k;

		if (!p->caps[r].cap[pos])
			continue;
		left = left_of(p, pos);
		if (p->role[r].apart & s->here[pos])
			continue;
		k = SLU_MIN((uint32_t)need_fits(need, left, p->role[r].flags), todo);
		for (; k; k--) {
			if (!p->steps)
				return false;
			p->steps--;
			s->out.p[s->out.n++] = (struct part){ .node = pos, .role = r, .slots = k };
			need_take(need, k, left);
			s->here[pos] |= UINT64_C(1) << r;
			if (search_nodes(x, r, i + 1, todo - k))
				return true;
			s->here[pos] &= ~(UINT64_C(1) << r); /* each role comes by once */
			need_give(need, k, left);
			s->out.n--;
		}
	}
	return false;
}

#define SEARCH_SLOTS_MAX 256 /* as deep as it may go */

static int by_search(struct plan *p, const uint32_t *list, uint32_t n_list)
{
	struct search x = { p, list, list ? n_list : p->m->n_pos };
	struct scratch *s = &p->m->s;
	uint32_t slots = 0;

	for (uint32_t r = 0; r < p->n_role; r++)
		slots += p->role[r].min;
	if (slots > SEARCH_SLOTS_MAX || !p->steps)
		return 0;
	if (slu_vec_reserve(&s->touched, p->m->n_pos) < 0 ||
	    slu_vec_reserve(&s->out, slots + 1) < 0)
		return -ENOMEM;
	return search_nodes(&x, 0, 0, p->role[0].min);
}

/* All roles with their minimum, in the order given or (NULL) by search; then more, as far as they
 * may. */
static int place_mixed(struct plan *p, const uint32_t *order, const uint32_t *list, uint32_t n_list)
{
	struct scratch *s = &p->m->s;
	uint32_t total = 0;
	int rc;

	s->attempt++;
	s->out.n = s->touched.n = s->undo.n = 0;
	rc = order ? by_turns(p, order, list, n_list) : by_search(p, list, n_list);
	for (uint32_t i = 0; rc > 0 && i < s->out.n; i++)
		total += s->out.p[i].slots;
	for (uint32_t r = 0; r < p->n_role && rc > 0 && total < p->max; r++) {
		uint32_t from = s->out.n;
		uint32_t want = SLU_MIN(p->role[r].max - p->role[r].min, p->max - total);

		if (!want)
			continue;
		if (lower_caps_more(p, r) < 0 || room_for(p, want) < 0) {
			rc = -ENOMEM;
			break;
		}
		total += pick_role(p, r, want, list, n_list);
		if (leave_less(p, from) < 0)
			rc = -ENOMEM;
	}
	restore_caps(p);
	if (rc > 0 && total < p->min)
		rc = 0;
	if (rc > 0 && tidy_parts(p) < 0)
		rc = -ENOMEM;
	return rc;
}

static int place_roles(struct plan *p, const uint32_t *list, uint32_t n_list)
{
	uint32_t order[SLU_ROLES_MAX];
	int64_t w[SLU_ROLES_MAX];
	bool other = false;
	int rc;

	if (p->n_role == 1) {
		p->m->s.out.n = 0;
		if (room_for(p, p->max) < 0)
			return -ENOMEM;
		return pick_role(p, 0, p->max, list, n_list) >= p->min;
	}
	for (uint32_t r = 0; r < p->n_role; r++)
		order[r] = r;
	rc = place_mixed(p, order, list, n_list);
	if (rc)
		return rc;
	for (uint32_t r = 0; r < p->n_role; r++) {
		uint32_t k = r;

		w[r] = slot_weight(p, r);
		for (; k && w[order[k - 1]] < w[r]; k--)
			order[k] = order[k - 1];
		order[k] = r;
		other |= k != r;
	}
	rc = other ? place_mixed(p, order, list, n_list) : 0;
	return rc ? rc : place_mixed(p, NULL, list, n_list);
}

/* ---- closeness ---- */

/* Slots a domain has for the gang, or -1 if some role lacks its minimum there. */
static int64_t domain_room(const struct plan *p, const struct level *l, uint32_t d)
{
	int64_t all = 0;

	for (uint32_t r = 0; r < p->n_role; r++) {
		int64_t sum = 0;

		for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++)
			sum += p->caps[r].cap[l->list[i]];
		if (sum < p->role[r].min)
			return -1;
		all += sum;
	}
	return all;
}

static int place_close(struct plan *p)
{
	const struct level *l = &p->m->level[p->req->level];
	bool tight = p->policy == SLU_GANG_PACK || p->policy == SLU_GANG_LOCALITY;
	bool wide = p->policy == SLU_GANG_SPREAD;
	bool down = p->policy == SLU_GANG_HIGH || p->policy == SLU_GANG_HINODE ||
		    p->policy == SLU_GANG_HINODEX;
	int64_t bound = -1;
	uint32_t bound_at = 0;

	if (!tight && !wide) {
		for (uint32_t i = 0; i < l->n_by_pos; i++) {
			uint32_t d = l->by_pos[down ? l->n_by_pos - 1 - i : i];
			int rc;

			if (domain_room(p, l, d) < p->min)
				continue;
			rc = place_roles(p, l->list + l->first[d], l->first[d + 1] - l->first[d]);
			if (rc)
				return rc;
		}
		return 0;
	}
	/* By room, then by position; each round finds the next after the last one tried. */
	for (;;) {
		int64_t best = -1;
		uint32_t best_at = 0;
		int rc;

		for (uint32_t i = 0; i < l->n_by_pos; i++) {
			int64_t room = domain_room(p, l, l->by_pos[i]);

			if (room < p->min)
				continue;
			if (wide)
				room = SLU_FOREVER - room;
			if (bound >= 0 && (room < bound || (room == bound && i <= bound_at)))
				continue;
			if (best < 0 || room < best) {
				best = room;
				best_at = i;
			}
		}
		if (best < 0)
			return 0;
		rc = place_roles(p, l->list + l->first[l->by_pos[best_at]],
				 l->first[l->by_pos[best_at] + 1] - l->first[l->by_pos[best_at]]);
		if (rc)
			return rc;
		bound = best;
		bound_at = best_at;
	}
}

int slu_attempt(struct plan *p)
{
	int rc;

	p->close = false;
	for (uint32_t r = 0; r < p->n_role; r++) {
		if (p->caps[r].sum < p->role[r].min)
			return 0;
	}
	if (p->req->level >= 0) {
		rc = place_close(p);
		p->close = rc > 0;
		if (rc || p->req->flags & SLU_GANG_CLOSE_REQUIRED)
			return rc;
	}
	return place_roles(p, NULL, 0);
}
