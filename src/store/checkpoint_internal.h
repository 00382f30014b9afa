/* checkpoint_internal.h — moves what SQLite has committed from its log to the database file, on a thread of its
 * own.  SQLite itself does that within every commit that finds the log long, and then all who wait for
 * that commit wait for some thousand writes and two syncs of the disk. */
#pragma once
#include <sqlite3.h>

struct slu_checkpoint;

/* From now on, for a database of this process in WAL mode.  Its log grows to 16 MB, and by what comes while
 * it is moved.  NULL: no memory; SQLite does it then.  The thread begins with the first work for it. */
struct slu_checkpoint *slu_checkpoint_new(sqlite3 *db);
/* Before the database is closed.  NULL is fine. */
void slu_checkpoint_free(struct slu_checkpoint *c);
