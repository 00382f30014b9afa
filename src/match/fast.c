/* fast.c — the same answers with less work. */
#include "match/core.h"

void fast_touch(struct slu_match *m, uint32_t v)
{
	(void)v;
	m->change++;
}
