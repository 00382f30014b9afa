#include "graph/listing.h"

bool slu_listing_frees(const struct slu_listing *l, int64_t rank)
{
	return rank >= 0 && rank <= INT32_MAX && slu_idset_has(&l->free_ranks, (uint32_t)rank);
}

void slu_listing_done(struct slu_listing *l)
{
	slu_arena_done(&l->text);
	slu_vec_done(&l->v);
	slu_vec_done(&l->e);
	slu_vec_done(&l->paths);
	slu_vec_done(&l->props);
	slu_vec_done(&l->ranks);
	slu_idset_done(&l->free_ranks);
}
