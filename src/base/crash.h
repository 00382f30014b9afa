/* crash.h — named places at which a test can kill the process, to prove that the daemon survives a
 * crash at any moment.
 *
 * Points are before and after every write to the store and to the cluster.  An ordinary build has none.
 * With the Meson option crash_points the process kills itself (SIGKILL: no handler, no flush) at the
 * point that the environment names, which is read once:
 *
 *	SLUICE_CRASH_AT=12                    the twelfth point passed, whichever it is
 *	SLUICE_CRASH_AT='store begin#3'       the third time this one is passed
 *	SLUICE_CRASH_LAST=200                 after this many points, whatever SLUICE_CRASH_AT says
 *	SLUICE_CRASH_LOG=FILE                 append a line "COUNT NAME" for each point passed; the
 *	                                      one that kills ends in " KILLED"
 *
 * With SLUICE_CRASH_LOG alone the points are only counted.  Any thread. */
#pragma once

#ifdef SLU_CRASH_POINTS
void slu_crash_point(const char *name);
#else
#define slu_crash_point(name) ((void)0)
#endif
