/* standalone.h — the engine with a graph of its own: the Fluxion service without Kubernetes.
 *
 * A thread owns the graph and answers the questions in order of arrival, so that a long match or a
 * large Init never delays a socket.  As in the original there is no clock: every match is tried at
 * second 0, and only Cancel ends an allocation.  Init replaces the graph and forgets all jobs; if the
 * new graph cannot be read, the old one stays. */
#pragma once
#include "fluxion/service.h"

struct slu_standalone;

/* New engine.  `policy` serves graphs whose Init names none; NULL or "" means the matcher's default.  Borrowed.
 * 0, -EINVAL (no such policy), -ENOMEM, or -EAGAIN (the thread cannot be started). */
int slu_standalone_new(struct slu_loop *loop, const char *policy, struct slu_standalone **out,
		       struct slu_error *err);
/* Load the first graph, from JGF, GRUG, R or hwloc's XML.  Call this before the first question. */
int slu_standalone_load(struct slu_standalone *s, const char *text, size_t n,
			struct slu_error *err);
struct slu_flux_engine slu_standalone_engine(struct slu_standalone *s);
/* Answer the questions that wait, and end the thread.  Call this on the loop's thread, before the service is
 * freed.  NULL is fine. */
void slu_standalone_free(struct slu_standalone *s);
