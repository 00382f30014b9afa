/* known.c — which vertices of a front are known to serve a request, or to fail it; see memo.c.
 *
 * A booking makes a vertex unknown, an answer makes it known.  The plain walk uses this file, too:
 * a policy that stops early skips the vertices that are known to fail.  So nothing here walks. */
#include "match/fast/fast_internal.h"

void match_memo_forget(const struct front *f, struct memo *x)
{
	memset(x->known, 0, memo_words(f->n) * sizeof *x->known);
	memset(x->later, 0, memo_words(f->n) * sizeof *x->later);
	memset(x->maybe, 0xff, f->n / 64 * sizeof *x->maybe);
	x->maybe[f->n / 64] = (1ull << f->n % 64) - 1;
}

void match_memo_know(struct slu_match *m, const struct front *f, struct memo *x, uint32_t p)
{
	uint64_t bit = 1ull << p % 64;

	x->known[p / 64] |= bit;
	if (match_led_starts_after(&m->led, f->v[p], x->at))
		x->later[p / 64] |= bit;
	else
		x->later[p / 64] &= ~bit;
	m->fast->last[x->front] = SLU_NONE;
}

bool match_fast_touch(struct slu_match *m, uint32_t v, bool units)
{
	struct fast *f = m->fast;
	bool itself = false;

	if (!f)
		return false;
	for (uint32_t k = 0; k < f->nfront; k++) {
		const struct front *fr = &f->front[k];
		uint32_t w = v, p = SLU_NONE;

		itself |= fr->at[v] != 0;
		for (;;) {
			p = fr->at[w] - 1;
			if (p != SLU_NONE || m->up[w] == SLU_NONE)
				break;
			w = m->g->e.p[m->up[w]].src;
		}
		if (p == SLU_NONE ? !units : p == f->last[k])
			continue; /* above the front and still passable, or handled already */
		f->last[k] = p;
		if (p != SLU_NONE && fr->touched)
			fr->touched[p / 64] |= 1ull << p % 64;
		for (uint32_t i = 0; i < f->nmemo; i++) {
			struct memo *x = f->memo[i];

			if (x->front != k)
				continue;
			if (p == SLU_NONE) {
				match_memo_forget(fr, x);
				continue;
			}
			x->known[p / 64] &= ~(1ull << p % 64);
			x->maybe[p / 64] |= 1ull << p % 64;
		}
	}
	return itself;
}

bool match_fast_fails(const struct attempt *a, uint32_t v)
{
	uint32_t p = a->m->fast->front[a->skip->front].at[v] - 1;

	return p != SLU_NONE && a->skip->known[p / 64] >> p % 64 & 1;
}

void match_fast_failed(struct attempt *a, uint32_t v)
{
	struct slu_match *m = a->m;
	struct memo *x = a->skip;
	uint32_t p = m->fast->front[x->front].at[v] - 1;

	if (p == SLU_NONE)
		return;
	match_memo_know(m, &m->fast->front[x->front], x, p);
}
