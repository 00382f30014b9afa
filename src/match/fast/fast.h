/* fast.h — the same answers with less work: the only header of this room for the rest of the matcher.
 *
 * A policy that scores every candidate makes the plain walk (../walk.c) visit the whole graph for
 * one core.  The fast room answers the same question from memory: it knows which vertices may serve,
 * in which order, and what changed since.  README.md beside this file works an example on six nodes.
 *
 *	try     match_fast_attempt()   instead of the plain walk; -EAGAIN: take the plain walk
 *	touch   match_fast_touch()     a booking, a release or a status changed a vertex
 *	drop    match_fast_drop()      the graph changed: forget everything
 *
 * Nothing here changes an answer.  tests/prop/prop_match.c runs random histories on two matchers,
 * one of them without this room, and compares every answer. */
#pragma once
#include "match/match_internal.h"

/* --- try, touch, drop --- */

/* Report a change at or below v; `units`: v itself was taken, freed, or marked up or down.
 * Returns whether v, and so each of its siblings, is in a front. */
bool match_fast_touch(struct slu_match *m, uint32_t v, bool units);
/* Forget everything, because the graph changed; then prepare for the usual requests. */
void match_fast_drop(struct slu_match *m);
void match_fast_begin(struct slu_match *m);
/* Make the attempt as match_attempt_run() does, or return -EAGAIN where the plain walk is
 * needed. */
int match_fast_attempt(struct attempt *a);
/* Policies that stop early use the plain walk, but need not ask a vertex again that failed at the same
 * time.  begin sets a->skip if the request allows it; fails tells whether v is known to fail; failed
 * records that v did. */
void match_fast_skip_begin(struct attempt *a);
bool match_fast_fails(const struct attempt *a, uint32_t v);
void match_fast_failed(struct attempt *a, uint32_t v);

/* --- alike.c: vertices whose subtrees are the same --- */

/* Name the subtrees, equal ones equally: begin, then put every vertex after its children. 0,
 * -ENOMEM. */
int match_alike_begin(struct slu_match *m);
void match_alike_put(struct slu_match *m, uint32_t u);
/* Report that the vertex changed after its subtree was named. */
void match_alike_change(struct slu_match *m, uint32_t v);
/* Whether the state of a vertex tells reliably that nothing is booked below it. */
static inline bool match_alike_known(const struct slu_match *m)
{
	return m->like && !m->odd && !m->inexact && !m->unseen;
}
/* If match_alike_known(): the name of v's subtree if nothing is booked in it, or SLU_NONE. */
static inline uint32_t match_alike_of(const struct slu_match *m, uint32_t v)
{
	const struct slu_multi *mu = m->multi[v];

	return m->led.v[v].n || (mu && mu->spans) ? SLU_NONE : m->like[v];
}
