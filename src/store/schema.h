/* schema.h — the tables, as numbered steps that are only ever added to. */
#pragma once
#include "store/sql_internal.h"

/* Bring an open database to the newest version (under a lock), or refuse: see store.h for the
 * codes.  *found: the version it had. */
int slu_schema_settle(struct slu_sql *q, bool migrate, int *found, struct slu_error *err);
