/* coverage.h — what the worlds of this process have reached. */
#pragma once
#include <stdio.h>

#include "world.h"

void cover_begin(unsigned age);    /* what is known to be there to be reached, at that age */
void cover_world(struct world *w); /* from now on it is this one */
/* Which of all that is known the last world reached; how many there are. */
uint32_t cover_seen(bool *hit, uint32_t max);
void cover_expect(const char *name); /* "kind: what" */
void cover_excuse(const char *name); /* ... which is never reached */
/* What was expected, has no excuse and was not reached, and what has one and was: a line each; how many. */
uint32_t cover_unreached(FILE *to);
void cover_hit(const char *kind, const char *what);
void cover_words(const char *kind,
		 const char *text); /* a sentence, without its names and numbers */
/* All of it, a line each; how many that were expected were not reached. */
uint32_t cover_print(FILE *to);
void cover_done(void);

/* invariants.c: the queue has decided. */
struct slu_decision;
void rule_decided(struct world *w, const struct slu_decision *d);
void rule_kept(struct world *w, const struct slu_decision *d);
/* ... in a pass; `happened`: in front of it, and it makes room; NULL: nothing did. */
void rule_earlier(struct world *w, const struct slu_decision *d, const char *happened);
void rule_logged(struct world *w, const char *msg); /* a warning or an error */
