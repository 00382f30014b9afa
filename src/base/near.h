/* near.h — "did you mean": which of some words is the nearest to one that does not exist.
 *
 *	struct slu_near n = slu_near("dpeth");
 *	for each word: slu_near_try(&n, word);
 *	n.best: "depth", or NULL if none is near */
#pragma once
#include "base/base.h"

struct slu_near {
	const char *word, *best;
	unsigned letters; /* letters to change to get `best`: at most 3, and at most half of them */
};

struct slu_near slu_near(const char *word);
/* `candidate` is borrowed. */
void slu_near_try(struct slu_near *n, const char *candidate);
