#include "base/near.h"

/* Number of letters to change. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64], n = (unsigned)strlen(b);

	if (n >= SLU_LEN(row))
		return UINT32_MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diag = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned sub = diag + (*a != b[j - 1]);
			unsigned one = SLU_MIN(row[j], row[j - 1]) + 1;

			diag = row[j];
			row[j] = SLU_MIN(sub, one);
		}
	}
	return row[n];
}

struct slu_near slu_near(const char *word)
{
	return (struct slu_near){ .word = word, .letters = 4 };
}

void slu_near_try(struct slu_near *n, const char *candidate)
{
	unsigned d = distance(n->word, candidate);

	/* A short word is not near to every other short word: at least half of it must stay. */
	if (d < n->letters && 2 * d <= strlen(candidate)) {
		n->letters = d;
		n->best = candidate;
	}
}
