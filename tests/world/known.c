/* Bugs that are known and not mended yet: `make world ALL=1` meets them, the others do not.  A row
 * leaves the table with the mend of its bug; its story moves to the fixed ones in main.c. */
#include "world.h"

const struct known known_bugs[] = {
	{ "bare-rest", "of a group without a controller some ended: the rest waits after a restart",
	  1794943701815238, NULL },
	{ "lost-release", "a hold comes back after sluice release", 61016, NULL },
	{ "stuck-release",
	  "a pod that was let go to a node waits for ever if it cannot be bound there", 61009,
	  NULL },
	{ "avoiding",
	  "a gang that was taken back avoids nodes with a copy of those it may use: one may have "
	  "been tainted since",
	  50047, NULL },
	{ "tainted-head",
	  "a job that fits no more since a node was tainted waits, and stands in the way of a queue "
	  "that lets nobody overtake",
	  50032, NULL },
	{ 0 },
};

bool is_known(const struct world *w, const char *name)
{
	for (const struct known *k = known_bugs; k->name && !w->all; k++)
		if (!strcmp(k->name, name))
			return true;
	return false;
}
