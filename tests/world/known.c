/* Bugs that are known and not mended yet: `make world ALL=1` meets them, the others do not.  A row
 * leaves the table with the mend of its bug; its story moves to the fixed ones in main.c. */
#include "world.h"

const struct known known_bugs[] = {
	{ "deleted-gang", "members of a waiting gang start while its owner is being deleted", 22,
	  "submit a Deployment,submit a StatefulSet,slow watch" },
	{ "vacant-place", "a successor takes a kept place that its node has no right or room for",
	  1, "submit a Job,node tainted" },
	{ "nowhere", "a bind names no node: the node went while the store was away", 0, NULL },
	{ "late-owner", "pods that are seen long before their ReplicaSet split their gang", 0,
	  NULL },
	{ "node-remade", "the books keep what ran on a node that was deleted and made again", 1,
	  "submit a Job,node remade at once" },
	{ "limit-from-decision",
	  "a gang's limit counts from the decision, not from when it is whole", 200053, NULL },
	{ "orphans", "pods whose Job is deleted without them wait for ever", 0, NULL },
	{ "missed-webhook", "a Job that the webhook was not asked about stays suspended for ever",
	  3, "submit a held Job,webhook calls lost" },
	{ "bare-rest", "of a group without a controller some ended: the rest waits after a restart",
	  0, NULL },
	{ "lost-release", "a hold comes back: the write that takes its mark off the owner failed",
	  19, NULL },
	{ "queue-renamed", "what runs in a queue that was renamed is not counted after a restart",
	  6, "submit a Job,queue renamed" },
	{ "two-daemons", "two daemons on one SQLite file both lead", 4,
	  "submit a Job,second daemon on the store" },
	{ "clock-back", "a clock set back stops scheduling until it has caught up", 0, NULL },
	{ "clock-ahead", "a clock set ahead ends gangs before their time", 300020,
	  "submit a Job,somebody else's pod,kill the daemon,submit a StatefulSet,clock a day ahead" },
	{ 0 },
};

bool is_known(const struct world *w, const char *name)
{
	for (const struct known *k = known_bugs; k->name && !w->all; k++)
		if (!strcmp(k->name, name))
			return true;
	return false;
}
