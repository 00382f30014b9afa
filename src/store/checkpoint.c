#include "store/checkpoint_internal.h"

#include <limits.h>
#include <pthread.h>

#include "base/base.h"

/* Four times SQLite's own measure: restarting the log costs three syncs within a commit, and at a
 * thousand pages one answer in fifty waited for them. */
#define LONG_PAGES 4096
#define FEW_PAGES  64 /* so little may be left to a commit */
#define MAX_PASSES 4  /* of the thread: a flood may bring as much as one pass moves */

struct slu_checkpoint {
	char *path;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	bool runs, stop;
	enum {
		IDLE,
		DUE,   /* the log is long, and the thread is to move it */
		MOVED, /* all but what came in the meantime is moved */
	} work;
};

/* Without waiting for anybody: what cannot be moved now is moved next time.  Returns how many pages
 * are left; 0 after a failure, too. */
static int move_pages(sqlite3 *db)
{
	int all = 0, moved = 0;

	if (sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, &all, &moved) !=
	    SQLITE_OK)
		return 0;
	return all - moved;
}

/* SQLite syncs the file only when nothing is left to be moved, which is never on this thread while others
 * commit; the commit that moves the last few pages would then wait until the disk has all of them. */
static void sync_file(sqlite3 *db)
{
	sqlite3_file *f = NULL;

	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f) == SQLITE_OK && f &&
	    f->pMethods)
		f->pMethods->xSync(f, SQLITE_SYNC_NORMAL);
}

static sqlite3 *open_own(const char *path)
{
	sqlite3 *db = NULL;

	/* The read makes the connection see that there is a log. */
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
		    SQLITE_OK &&
	    sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0; PRAGMA user_version", NULL, NULL,
			 NULL) == SQLITE_OK)
		return db;
	sqlite3_close(db);
	return NULL;
}

static void *thread_main(void *arg)
{
	struct slu_checkpoint *c = arg;
	sqlite3 *db = NULL;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		if (c->work != DUE) {
			pthread_cond_wait(&c->wake, &c->lock);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		if (!db)
			db = open_own(c->path);
		for (int i = 0, left = INT_MAX; db && left > FEW_PAGES && i < MAX_PASSES; i++) {
			left = move_pages(db);
			sync_file(db);
		}
		pthread_mutex_lock(&c->lock);
		c->work = MOVED;
	}
	pthread_mutex_unlock(&c->lock);
	sqlite3_close(db);
	return NULL;
}

/* SQLite calls this after each commit.  SQLite restarts its log only once every page of the log has been
 * moved, so this function moves the few pages that were added while the thread worked. */
static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct slu_checkpoint *c = arg;
	bool here = false;

	(void)name;
	if (pages < LONG_PAGES)
		return SQLITE_OK;
	pthread_mutex_lock(&c->lock);
	if (!c->runs)
		c->runs = pthread_create(&c->thread, NULL, thread_main, c) == 0;
	if (!c->runs || c->work == MOVED) {
		here = true;
		c->work = IDLE;
	} else if (c->work == IDLE) {
		c->work = DUE;
		pthread_cond_signal(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	if (here)
		move_pages(db);
	return SQLITE_OK;
}

struct slu_checkpoint *slu_checkpoint_new(sqlite3 *db)
{
	const char *path = sqlite3_db_filename(db, "main");
	struct slu_checkpoint *c = slu_calloc(1, sizeof *c);

	if (c)
		c->path = slu_strdup(path ? path : "");
	if (!c || !c->path) {
		slu_free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	sqlite3_wal_hook(db, on_commit, c);
	return c;
}

void slu_checkpoint_free(struct slu_checkpoint *c)
{
	if (!c)
		return;
	if (c->runs) {
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_cond_signal(&c->wake);
		pthread_mutex_unlock(&c->lock);
		pthread_join(c->thread, NULL);
	}
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->wake);
	slu_free(c->path);
	slu_free(c);
}
