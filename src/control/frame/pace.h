/* pace.h — limit how fast one namespace may have stand-ins and phantoms made.
 *
 * The pods of a suspended Job and the slots of a FluxJob exist only here, and a user can change or
 * replace such an object as often as the server allows, with one short line.  So each namespace pays
 * for them with time: a namespace may be some seconds ahead, and one that is further ahead waits. */
#pragma once
#include "base/map.h"

#define CORE_PACE_SMALL 64 /* up to so many at once are free: the server is the slower one */

/* Zero-initialise. */
struct core_pace {
	struct slu_map paid; /* namespace (the address of its pooled name): until when, in us */
};

/* Whether the namespace may have n of them made now. */
bool core_pace_allows(const struct core_pace *p, const char *ns, int64_t n, int64_t now_us);
/* Charge the namespace `each_us` for each of n.  If memory runs out, they are free. */
void core_pace_pay(struct core_pace *p, const char *ns, int64_t n, int64_t each_us, int64_t now_us);
