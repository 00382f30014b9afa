/* dump.h — a store as JSON lines, to look at, to keep, or to carry from SQLite to PostgreSQL and
 * back.
 *
 * The first line names the format and the cluster, each further line is one row:
 *	{"sluice":"export","schema":1,"cluster":"..."}
 *	{"table":"jobs","id":7,"key":"...",...}
 */
#pragma once
#include "store/store.h"

/* One line with its newline; a negative return stops the export and is handed back. */
typedef int slu_dump_line_fn(void *arg, const char *line, size_t n);

/* All rows of one moment, checksums verified; *rows counts them. */
int slu_dump_export(struct slu_store *s, slu_dump_line_fn *fn, void *arg, uint64_t *rows,
		    struct slu_error *err);

struct slu_import;

/* Begin an import into an empty store (-EEXIST if it holds any row). */
int slu_import_new(struct slu_store *s, struct slu_import **out, struct slu_error *err);
/* One line, without or with its newline. -EINVAL with a sentence that names the column. */
int slu_import_line(struct slu_import *im, const char *line, size_t n, struct slu_error *err);
/* Make the import durable.  It is one transaction: nothing of a failed import stays. */
int slu_import_commit(struct slu_import *im, uint64_t *rows, struct slu_error *err);
/* Free the import; rows that were not committed are rolled back. */
void slu_import_free(struct slu_import *im);
SLU_DEFINE_CLEANUP(struct slu_import, slu_import_free)
