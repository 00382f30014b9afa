/* Clients of the Fluxion services, who match room in the cluster and give it back, or forget to. */
#include <stdio.h>

#include "control/post/record.h"
#include "daemon.h"

static void jobspec(struct slu_rng *r, char *text, size_t size)
{
	snprintf(
		text, size,
		"{\"version\":9999,\"resources\":[{\"type\":\"slot\",\"count\":%d,\"label\":\"d\",\"with\":["
		"{\"type\":\"core\",\"count\":%d}]}],\"attributes\":{\"system\":{\"duration\":%d}},\"tasks\":[{"
		"\"command\":[\"a\"],\"slot\":\"d\",\"count\":{\"per_slot\":1}}]}",
		1 + (int)slu_rng_below(r, 6), 1 << slu_rng_below(r, 3),
		5 + (int)slu_rng_below(r, 90));
}

static void match(struct world *w, struct slu_rng *r)
{
	struct slu_rec_ask a = { .what = SLU_ASK_MATCH, .size = (uint32_t)slu_rng_below(r, 2) };
	char text[600];

	jobspec(r, text, sizeof text);
	a.text = slu_rng_below(r, 10) ? text : "{\"version\":1}";
	w->matches++;
	world_say(w, "a client matches: %.120s", a.text);
	daemon_ask_for(w, 0, &a);
}

static void unmatch(struct world *w, struct slu_rng *r)
{
	struct slu_rec_ask a = { .what = SLU_ASK_UNMATCH };

	if (!w->match.n)
		return;
	snprintf(a.name, sizeof a.name, "%" PRIu64,
		 w->match.p[slu_rng_below(r, w->match.n)] + !slu_rng_below(r, 10));
	world_say(w, "a client gives %s back", a.name);
	daemon_ask_for(w, 0, &a);
}

static void give_back(struct world *w, uint64_t i, uint64_t unused)
{
	struct slu_rec_ask a = { .what = SLU_ASK_UNMATCH };

	if (i >= w->match.n)
		return;
	snprintf(a.name, sizeof a.name, "%" PRIu64, w->match.p[i]);
	daemon_ask_for(w, 0, &a);
	world_at(w, w->now_us + SECOND / 10, give_back, i + 1, 0);
}

void clients_leave(struct world *w)
{
	world_at(w, w->now_us + 25 * SECOND, give_back, 0, 0);
}

bool clients_hold(const struct world *w)
{
	return w->matches;
}

const struct op client_ops[] = {
	{ "a client matches", 4, match, 3 },
	{ "a client gives back", 3, unmatch, 3 },
	{ 0 },
};
