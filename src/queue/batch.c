#include "queue/batch.h"

enum { AS_SUBMITTED, MOST_WORK, WIDEST, LONGEST, RULES };

struct outcome {
	int64_t end_s;
	double waited; /* share times limit times wait: how late the work gets done */
};

static int later(const void *x, const void *y)
{
	const struct batch_busy *a = x, *b = y;

	return a->end_s < b->end_s ? -1 : a->end_s > b->end_s;
}

static bool goes_before(const struct batch_item *x, const struct batch_item *y, int rule)
{
	int64_t a = 0, b = 0, c = 0, d = 0;

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
	default:
		break;
	}
	return a != b ? a > b : c > d;
}

/* By insertion, which keeps equals as they were submitted. */
static uint32_t sort_by(const struct batch *b, int rule, uint8_t *order)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t k = n;

		if (i == b->head)
			continue;
		for (; k && goes_before(&b->item[i], &b->item[order[k - 1]], rule); k--)
			order[k] = order[k - 1];
		order[k] = (uint8_t)i;
		n++;
	}
	return n;
}

struct player {
	struct batch *b;
	uint32_t first, n; /* of play[]: what runs, by end */
	uint32_t waiting;  /* of line[] */
	int64_t now_s, free;
	struct outcome out;
};

static void begin(struct player *p, uint32_t i)
{
	const struct batch_item *it = &p->b->item[i];
	struct batch_busy *run = p->b->play, add = { p->now_s + it->limit_s, it->share };
	uint32_t k = p->n++;

	for (; k > p->first && run[k - 1].end_s > add.end_s; k--)
		run[k] = run[k - 1];
	run[k] = add;
	p->free -= it->share;
	p->out.end_s = SLU_MAX(p->out.end_s, add.end_s);
	p->out.waited += (double)(p->now_s - p->b->now_s) * (double)it->share * (double)it->limit_s;
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

/* Start what may; the reserved one, BATCH_MAX if nobody is left to be. */
static uint32_t start_some(struct player *p, uint32_t head)
{
	const struct batch_item *it = p->b->item;
	uint8_t *line = p->b->line;
	int64_t beside = 0, at = INT64_MAX;
	uint32_t kept = 0;

	if (head != BATCH_MAX && it[head].share <= p->free) {
		begin(p, head);
		head = BATCH_MAX;
	} else if (head != BATCH_MAX) {
		at = room_at(p, it[head].share, &beside);
	}
	for (uint32_t i = 0; i < p->waiting; i++) {
		uint32_t x = line[i];
		bool room = it[x].share <= p->free;

		if (head == BATCH_MAX && room) {
			begin(p, x);
			continue;
		}
		if (head == BATCH_MAX) {
			head = x; /* out of the line: it is next */
			at = room_at(p, it[head].share, &beside);
			continue;
		}
		if (room && (p->now_s + it[x].limit_s <= at || it[x].share <= beside)) {
			beside -= p->now_s + it[x].limit_s > at ? it[x].share : 0;
			begin(p, x);
			continue;
		}
		line[kept++] = (uint8_t)x;
	}
	p->waiting = kept;
	return head;
}

static struct outcome play(struct batch *b, const uint8_t *order, uint32_t n)
{
	struct player p = { .b = b, .n = b->n_busy, .waiting = n, .now_s = b->now_s };
	uint32_t head = b->head;

	p.free = b->free;
	memcpy(b->play, b->busy, b->n_busy * sizeof *b->busy);
	memcpy(b->line, order, n);
	for (;;) {
		head = start_some(&p, head);
		if (head == BATCH_MAX && !p.waiting)
			return p.out;
		if (p.first == p.n) { /* the model is too small for it: let it have all there is */
			p.free = SLU_MAX(p.free, b->item[head].share);
			continue;
		}
		p.now_s = SLU_MAX(p.now_s, b->play[p.first].end_s);
		while (p.first < p.n && b->play[p.first].end_s <= p.now_s)
			p.free += b->play[p.first++].share;
	}
}

void batch_choose(struct batch *b)
{
	uint8_t order[BATCH_MAX];
	struct outcome best = { INT64_MAX, 0 };

	if (b->n_busy)
		qsort(b->busy, b->n_busy, sizeof *b->busy, later);
	for (int rule = 0; rule < RULES; rule++) {
		uint32_t n = sort_by(b, rule, order);
		struct outcome o = play(b, order, n);

		if (o.end_s > best.end_s || (o.end_s == best.end_s && o.waited >= best.waited))
			continue;
		best = o;
		memcpy(b->order, order, n);
		b->n_order = n;
	}
}
