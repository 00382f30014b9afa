/* batch_internal.h — a batch of changes as slu_store_commit() carries it out. */
#pragma once
#include "store/statement.h"

/* One statement with its values, which live in the memory of the batch. */
struct op {
	enum slu_store_stmt stmt;
	uint32_t n;
	struct slu_sql_val *v;
};

struct slu_batch {
	struct slu_arena mem;
	SLU_VEC(struct op) ops;
};
