#include "graph/listing.h"

void slu_listing_done(struct slu_listing *l)
{
	slu_arena_done(&l->text);
	slu_vec_done(&l->v);
	slu_vec_done(&l->e);
	slu_vec_done(&l->paths);
	slu_vec_done(&l->props);
	slu_vec_done(&l->ranks);
	slu_vec_done(&l->free_ranks);
}
