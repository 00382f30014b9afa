#include "queue/batch_internal.h"

enum rule { AS_SUBMITTED, MOST_WORK, WIDEST, LONGEST, LEAST_WORK, SHORTEST, NARROWEST };

/* In the order in which equals are preferred. */
static const struct {
	uint32_t n;
	enum rule rule[7];
} rules[] = {
	[BATCH_DONE] = { 4, { AS_SUBMITTED, MOST_WORK, WIDEST, LONGEST } },
	[BATCH_BALANCED] = { 7,
			     { LEAST_WORK, SHORTEST, NARROWEST, AS_SUBMITTED, MOST_WORK, WIDEST,
			       LONGEST } },
};

struct outcome {
	int64_t end_s;
	double late;   /* sum of share * limit * wait: how late the work gets done */
	double waited; /* by all jobs together */
};

static int later(const void *x, const void *y)
{
	const struct batch_busy *a = x, *b = y;

	return a->end_s < b->end_s ? -1 : a->end_s > b->end_s;
}

static bool goes_before(const struct batch_item *x, const struct batch_item *y, enum rule rule)
{
	int64_t a = 0, b = 0, c = 0, d = 0;

	if (x->priority != y->priority)
		return x->priority > y->priority;
	switch (rule) {
	case MOST_WORK:
		a = x->share * x->limit_s;
		b = y->share * y->limit_s;
		break;
	case WIDEST:
		a = x->share, b = y->share;
		c = x->limit_s, d = y->limit_s;
		break;
	case LONGEST:
		a = x->limit_s, b = y->limit_s;
		c = x->share, d = y->share;
		break;
	case LEAST_WORK:
		a = y->share * y->limit_s;
		b = x->share * x->limit_s;
		break;
	case SHORTEST:
		a = y->limit_s, b = x->limit_s;
		c = y->share, d = x->share;
		break;
	case NARROWEST:
		a = y->share, b = x->share;
		break;
	default:
		break;
	}
	return a != b ? a > b : c > d;
}

/* By insertion, which keeps equals as they were submitted. */
static uint32_t sort_by(const struct batch *b, enum rule rule, uint8_t *order)
{
	uint32_t n = 0;

	for (uint32_t i = b->promised; i < b->n; i++) {
		uint32_t k = 0, high = n;

		while (k < high) {
			uint32_t mid = (k + high) / 2;

			if (goes_before(&b->item[i], &b->item[order[mid]], rule))
				high = mid;
			else
				k = mid + 1;
		}
		memmove(order + k + 1, order + k, n++ - k);
		order[k] = (uint8_t)i;
	}
	return n;
}

struct player {
	struct batch *b;
	uint32_t first, n; /* of play[]: what runs, by end */
	uint32_t waiting;  /* of line[] */
	int64_t now_s, free;
	int64_t least;  /* share of the narrowest: with less free no job can start */
	int64_t narrow; /* ... of those in line, or less */
	int64_t due_s;  /* the earliest at which a job gets a reservation */
	bool hold;      /* the first job that does not fit gets the reservation */
	struct outcome out;
};

static void begin_role(struct player *p, uint32_t i)
{
	const struct batch_item *it = &p->b->item[i];
	struct batch_busy *run = p->b->play, add = { p->now_s + it->limit_s, it->share };
	uint32_t k = p->first, high = p->n;

	while (k < high) {
		uint32_t mid = (k + high) / 2;

		if (run[mid].end_s > add.end_s)
			high = mid;
		else
			k = mid + 1;
	}
	memmove(run + k + 1, run + k, (p->n++ - k) * sizeof *run);
	run[k] = add;
	p->free -= it->share;
	p->out.end_s = SLU_MAX(p->out.end_s, add.end_s);
	double wait = (double)(p->now_s - p->b->now_s);

	p->out.waited += wait;
	p->out.late += wait * (double)it->share * (double)it->limit_s;
}

/* When the reserved one will find room, and what is left beside it then. */
static int64_t room_at(const struct player *p, int64_t share, int64_t *beside)
{
	int64_t free = p->free;

	for (uint32_t i = p->first; i < p->n; i++) {
		free += p->b->play[i].share;
		if (free >= share) {
			*beside = free - share;
			return p->b->play[i].end_s;
		}
	}
	*beside = 0;
	return INT64_MAX;
}

/* Whether this job gets a reservation, now that it does not fit and no other job has one. */
static bool is_next(const struct player *p, uint32_t i)
{
	return p->hold || i < p->b->promised || p->b->item[i].due_s <= p->now_s;
}

/* Start every job that may; returns the reserved job, BATCH_MAX if no job is left to reserve for. */
static uint32_t start_some(struct player *p, uint32_t head)
{
	const struct batch_item *it = p->b->item;
	uint8_t *line = p->b->line;
	int64_t beside = 0, at = INT64_MAX, narrow = INT64_MAX;
	uint32_t kept = 0, i;
	/* Whether no job of the line can get a reservation now. */
	bool settled = head != BATCH_MAX || p->now_s < p->due_s;

	if (p->free < p->least ||
	    (p->free < p->narrow && settled && (head == BATCH_MAX || it[head].share > p->free)))
		return head;
	if (head != BATCH_MAX && it[head].share <= p->free) {
		begin_role(p, head);
		head = BATCH_MAX;
		settled = p->now_s < p->due_s;
	} else if (head != BATCH_MAX) {
		at = room_at(p, it[head].share, &beside);
	}
	for (i = 0; i < p->waiting && (p->free >= p->narrow || !settled); i++) {
		uint32_t x = line[i];
		bool room = it[x].share <= p->free;

		if (!room && !settled && is_next(p, x)) {
			head = x; /* out of the line */
			settled = true;
			at = room_at(p, it[head].share, &beside);
		} else if (room && (head == BATCH_MAX || p->now_s + it[x].limit_s <= at ||
				    it[x].share <= beside)) {
			if (head != BATCH_MAX && p->now_s + it[x].limit_s > at)
				beside -= it[x].share;
			begin_role(p, x);
		} else {
			line[kept++] = (uint8_t)x;
			narrow = SLU_MIN(narrow, it[x].share);
		}
	}
	if (i < p->waiting) { /* no other job can start */
		memmove(line + kept, line + i, p->waiting - i);
		narrow = SLU_MIN(narrow, p->narrow);
	}
	p->waiting = kept + p->waiting - i;
	p->narrow = narrow;
	return head;
}

static struct player player_of(struct batch *b, const uint8_t *order, uint32_t n, bool hold)
{
	struct player p = { .b = b,
			    .n = b->n_busy,
			    .now_s = b->now_s,
			    .free = b->free,
			    .least = INT64_MAX,
			    .due_s = hold || b->promised ? INT64_MIN : INT64_MAX,
			    .hold = hold };

	for (uint32_t i = 0; i < b->n; i++) {
		p.least = SLU_MIN(p.least, b->item[i].share);
		p.due_s = SLU_MIN(p.due_s, b->item[i].due_s);
	}
	p.narrow = p.least;
	memcpy(b->play, b->busy, b->n_busy * sizeof *b->busy);
	for (uint32_t i = 0; i < b->promised; i++)
		b->line[p.waiting++] = (uint8_t)i;
	memcpy(b->line + p.waiting, order, n);
	p.waiting += n;
	return p;
}

static struct outcome play_batch(struct batch *b, const uint8_t *order, uint32_t n, bool hold)
{
	struct player p = player_of(b, order, n, hold);
	uint32_t head = BATCH_MAX;

	for (;;) {
		head = start_some(&p, head);
		if (head == BATCH_MAX && !p.waiting)
			return p.out;
		if (p.first == p.n) { /* the model is too small for it: let it have all there is */
			p.free = SLU_MAX(p.free,
					 b->item[head == BATCH_MAX ? b->line[0] : head].share);
			continue;
		}
		p.now_s = SLU_MAX(p.now_s, b->play[p.first].end_s);
		while (p.first < p.n && b->play[p.first].end_s <= p.now_s)
			p.free += b->play[p.first++].share;
	}
}

/* A hold leaves nodes idle now for a gain that is certain only if the limits are exact and no job
 * comes meanwhile.  So a hold must be better by this part of the cost. */
#define HOLD_GAIN 0.02

/* What BATCH_BALANCED minimises: the time until all is done and the mean wait, times the jobs. */
static double cost_of(const struct batch *b, const struct outcome *x, bool hold)
{
	return ((double)(x->end_s - b->now_s) * b->n + x->waited) * (hold ? 1 + HOLD_GAIN : 1);
}

/* Less is better; the second number decides between equals. */
static bool is_better(const struct batch *b, const struct outcome *x, bool hold,
		      const struct outcome *best)
{
	if (b->goal == BATCH_DONE)
		return x->end_s != best->end_s ? x->end_s < best->end_s : x->late < best->late;
	double cost_x = cost_of(b, x, hold), cost_best = cost_of(b, best, b->hold);

	return cost_x != cost_best ? cost_x < cost_best : x->end_s < best->end_s;
}

/* Play one order; store its answer if it is the best so far, or the first. */
static void try_order(struct batch *b, const uint8_t *order, uint32_t n, bool hold,
		      struct outcome *best)
{
	struct outcome o = play_batch(b, order, n, hold);

	if (b->n_order && !is_better(b, &o, hold, best))
		return;
	*best = o;
	memcpy(b->order, order, n);
	b->n_order = n;
	b->hold = hold;
}

/* The first of `order` that are unlike all before them and would find room now, each in front of
 * the others once: the next start is what matters, the rest is decided when its time comes. */
static void try_fronts(struct batch *b, struct outcome *best)
{
	uint8_t base[BATCH_MAX], order[BATCH_MAX];
	bool hold = b->hold;
	uint32_t tries = 0;

	memcpy(base, b->order, b->n_order);
	for (uint32_t i = 1; i < b->n_order && tries < BATCH_TRIES; i++) {
		const struct batch_item *x = &b->item[base[i]];
		bool new = x->share <= b->free && x->priority == b->item[base[0]].priority;

		for (uint32_t k = 0; k < i && new; k++)
			new = b->item[base[k]].share != x->share ||
			      b->item[base[k]].limit_s != x->limit_s;
		if (!new)
			continue;
		order[0] = base[i];
		memcpy(order + 1, base, i);
		memcpy(order + i + 1, base + i + 1, b->n_order - i - 1);
		try_order(b, order, b->n_order, hold, best);
		tries++;
	}
}

/* One job moved to another place, each better order the base of the next try.  The places are drawn, from
 * the same seed each time. */
static void try_moves(struct batch *b, struct outcome *best)
{
	uint8_t order[BATCH_MAX];
	bool hold = b->hold;
	uint64_t x = UINT64_C(88172645463325252);

	for (uint32_t t = 0; t < BATCH_MOVES && b->n_order > 1; t++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		uint32_t from = (uint32_t)(x >> 8) % b->n_order;
		uint32_t to = (uint32_t)(x >> 40) % b->n_order;
		uint8_t moved = b->order[from];

		/* The jobs are sorted by priority: if the first and the last are equal, all are. */
		if (from == to || b->item[moved].priority != b->item[b->order[to]].priority)
			continue;
		memcpy(order, b->order, b->n_order);
		if (from < to)
			memmove(order + from, order + from + 1, to - from);
		else
			memmove(order + to + 1, order + to, from - to);
		order[to] = moved;
		try_order(b, order, b->n_order, hold, best);
	}
}

void queue_batch_choose(struct batch *b)
{
	uint8_t order[BATCH_MAX];
	struct outcome best = { 0 };

	if (b->n_busy)
		qsort(b->busy, b->n_busy, sizeof *b->busy, later);
	b->n_order = 0;
	for (uint32_t i = 0; i < rules[b->goal].n; i++) {
		uint32_t n = sort_by(b, rules[b->goal].rule[i], order);

		if (!n)
			return;
		if (b->goal == BATCH_BALANCED)
			try_order(b, order, n, false, &best);
		if (b->goal == BATCH_DONE || !b->promised)
			try_order(b, order, n, true, &best);
	}
	if (b->goal == BATCH_BALANCED) {
		try_fronts(b, &best);
		try_moves(b, &best);
	}
}
