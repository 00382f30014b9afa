/* Bugs that are known and not mended yet: `make world ALL=1` meets them, the others do not.  A row
 * leaves the table with the mend of its bug; its story moves to the fixed ones in main.c. */
#include "world.h"

const struct known known_bugs[] = {
	{ 0 },
};

bool is_known(const struct world *w, const char *name)
{
	for (const struct known *k = known_bugs; k->name && !w->all; k++)
		if (!strcmp(k->name, name))
			return true;
	return false;
}
