/* crash.h — named places at which a test can kill the process, to prove that a crash at any moment is
 * survived.
 *
 * They stand before and after every write to the store and to the cluster.  In an ordinary build
 * they are nothing.  With the Meson option crash_points the process kills itself (SIGKILL: no
 * handler, no flush) at the point told in the environment, read once:
 *
 *	SLUICE_CRASH_AT=12                    the twelfth point passed, whichever it is
 *	SLUICE_CRASH_AT='store begin#3'       the third time this one is passed
 *	SLUICE_CRASH_LAST=200                 this many points at most, whatever the other says
 *	SLUICE_CRASH_LOG=FILE                 append a line "COUNT NAME" for each point passed; the
 *	                                      one that kills ends in " KILLED"
 *
 * With a log alone the points are counted and the process lives on.  Any thread. */
#pragma once

#ifdef SLU_CRASH_POINTS
void slu_crash_point(const char *name);
#else
#define slu_crash_point(name) ((void)0)
#endif
