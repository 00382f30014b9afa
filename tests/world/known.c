/* Bugs that are known and not mended yet: `make world ALL=1` meets them, the others do not.  A row
 * leaves the table with the mend of its bug; its seed moves to the fixed ones in main.c. */
#include "world.h"

const struct known known_bugs[] = {
	{ "deleted-gang", "members of a waiting gang start while its owner is being deleted", 6 },
	{ "vacant-place",
	  "a successor takes a kept place that its node has no right or room for any more", 24 },
	{ "nowhere", "a bind names no node: the node went while the store was away", 47 },
	{ "late-owner", "pods that are seen long before their ReplicaSet split their gang", 85 },
	{ "node-remade", "the books keep what ran on a node that was deleted and made again", 27 },
	{ "limit-from-decision",
	  "a gang's limit counts from the decision, not from when it is whole", 202 },
	{ "orphans", "pods whose Job is deleted without them wait for ever, or start one by one",
	  1794858652559826 },
	{ "missed-webhook", "a Job that the webhook was not asked about stays suspended for ever",
	  4 },
	{ "bare-rest",
	  "the rest of a group without a controller, some of which ended, waits for ever after a restart",
	  65 },
	{ "lost-release", "a hold comes back: the write that takes its mark off the owner failed",
	  19 },
	{ "queue-renamed", "what runs in a queue that was renamed is not counted after a restart",
	  0 },
	{ "two-daemons", "two daemons on one SQLite file both lead", 0 },
	{ "forged-node", "a pending pod with our marks takes a node's room for ever", 0 },
	{ "undecodable", "one object that cannot be decoded blinds the watch of its kind", 0 },
	{ "clock-back", "a clock set back stops scheduling until it has caught up", 0 },
	{ "clock-ahead", "a clock set ahead ends gangs before their time", 0 },
	{ 0 },
};

bool is_known(const struct world *w, const char *name)
{
	for (const struct known *k = known_bugs; k->name && !w->all; k++)
		if (!strcmp(k->name, name))
			return true;
	return false;
}
