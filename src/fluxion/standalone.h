/* standalone.h — the engine with a graph of its own: exactly the Fluxion service, no Kubernetes.
 *
 * A thread owns the graph and takes the questions in order of arrival, so that a long match or a
 * large Init never delays a socket.  There is no clock, as in the original: every match is tried at
 * second 0, and what was allocated is given back by Cancel alone.  Init replaces the graph and
 * forgets all jobs; a graph that cannot be read leaves the old one. */
#pragma once
#include "fluxion/service.h"

struct slu_standalone;

/* `policy`: for graphs whose Init names none; NULL or "": the matcher's own.  Borrowed.
 * 0, -EINVAL (no such policy), -ENOMEM, -EAGAIN (no thread). */
int slu_standalone_new(struct slu_loop *loop, const char *policy, struct slu_standalone **out,
		       struct slu_error *err);
/* Load the first graph: JGF, GRUG, R or hwloc's XML, whichever the text is.  Before the first
 * question. */
int slu_standalone_load(struct slu_standalone *s, const char *text, size_t n,
			struct slu_error *err);
struct slu_flux_engine slu_standalone_engine(struct slu_standalone *s);
/* Answers what waits and ends the thread.  On the loop's thread, before the service is freed.  NULL
 * is fine. */
void slu_standalone_free(struct slu_standalone *s);
