/* feed.h — the io side of the mirror: reflectors in, records out to the core's inbox.
 *
 * While the inbox is full, the feed does not read from the watches (flow control slows the API server down); it
 * continues once half of the inbox is free.  Call every function on the loop's thread. */
#pragma once
#include "control/config/config.h"
#include "control/io/leftout.h"
#include "control/post/inbox.h"
#include "kube/reflector.h"

struct slu_feed;

struct slu_feed_stats {
	uint64_t changes, pauses;
	struct slu_mirror_stats kind[SLU_KIND_COUNT];
	bool synced; /* every kind has been listed once */
	char trouble[SLU_ERROR_MAX];
	uint64_t unreadable; /* times an object could not be read */
};

/* `pool` holds the strings of all objects: it must outlive the core. */
int slu_feed_new(struct slu_kube_client *client, const struct slu_config *cfg,
		 struct slu_inbox *core, struct slu_strpool *pool, struct slu_feed **out,
		 struct slu_error *err);
void slu_feed_free(struct slu_feed *f);
SLU_DEFINE_CLEANUP(struct slu_feed, slu_feed_free)
/* List the kind again and hand over all of it. */
void slu_feed_again(struct slu_feed *f, enum slu_kkind kind);
/* The newest version of a watched object, borrowed until the caller returns to the loop.  NULL: there is none. */
const struct slu_kobj *slu_feed_find(const struct slu_feed *f, enum slu_kkind kind, const char *ns,
				     const char *name);
/* The objects left out, borrowed until the caller returns to the loop. */
const struct slu_leftout *slu_feed_leftout(const struct slu_feed *f);
void slu_feed_stats(const struct slu_feed *f, struct slu_feed_stats *out);
