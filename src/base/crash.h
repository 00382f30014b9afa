/* crash.h — named places at which a test can kill the process, to prove that any moment will do.
 *
 * They stand before and after every write to the store and to the cluster.  In an ordinary build
 * they are nothing; with the Meson option crash_points, the process kills itself (SIGKILL: no
 * handler, no flush) at the point whose number, counted from 1, is in SLUICE_CRASH_AT, and appends
 * each point's name to the file named in SLUICE_CRASH_LOG. */
#pragma once

#ifdef SLU_CRASH_POINTS
void slu_crash_point(const char *name);
#else
#define slu_crash_point(name) ((void)0)
#endif
