/* map.h — hash maps from a 64-bit key, or from bytes, to a 64-bit value.  Entries lie densely in
 * order of insertion (a removed one is filled by the last), so iteration is a plain array walk and
 * deterministic. */
#pragma once
#include "base/base.h"

struct slu_map_entry {
	uint64_t key;
	uint64_t val;
};

/* Zero-initialise. */
struct slu_map {
	struct slu_map_entry *e;
	uint32_t *slot; /* open addressing: entry index + 1, 0 = empty */
	uint32_t n, cap, mask;
};

/* Pointer to the value, valid until the next put or del; NULL if absent. */
uint64_t *slu_map_get(const struct slu_map *m, uint64_t key);
/* 0, or -ENOMEM with the map unchanged.  An existing key gets the new value. */
int slu_map_put(struct slu_map *m, uint64_t key, uint64_t val);
/* Remove the key; returns whether the key was in the map. */
bool slu_map_del(struct slu_map *m, uint64_t key);
void slu_map_clear(struct slu_map *m);
void slu_map_done(struct slu_map *m);

uint64_t slu_hash_u64(uint64_t x);
uint64_t slu_hash_bytes(const void *p, size_t n);
/* A keyed hash for names that users choose: an attacker who does not know the key cannot make
 * two names collide.  The key is the same in every process until slu_hash_secret() sets another,
 * before the first table is filled; so never keep a hash beyond the life of the process. */
uint64_t slu_hash_keyed(const void *p, size_t n);
void slu_hash_secret(uint64_t a, uint64_t b);
