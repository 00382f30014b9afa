/* postgres.h — stores of other lives in a PostgreSQL server (world --lives N --postgres URL). */
#pragma once
#include <stddef.h>
#include <stdint.h>

void postgres_make(const char *server, uint64_t number, char *url, size_t size);
void postgres_drop(const char *server, uint64_t number);
/* All rows of a store into an empty one. */
void postgres_carry(const char *from, const char *to);
