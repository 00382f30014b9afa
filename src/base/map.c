#include "base/map.h"

uint64_t slu_hash_u64(uint64_t x)
{
	/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): full avalanche in five operations.
	 */
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t slu_hash_bytes(const void *p, size_t n)
{
	const unsigned char *s = p;
	uint64_t h = 0x9e3779b97f4a7c15u ^ (n * 0xff51afd7ed558ccdu), w;

	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&w, s, 8);
		h = slu_hash_u64(h ^ w);
	}
	w = 0;
	if (n) /* s may be NULL if n is 0 */
		memcpy(&w, s, n);
	return slu_hash_u64(h ^ w);
}

static uint64_t hash_key[2] = { 0x736c756963652e73u, 0x682f686173686573u };

void slu_hash_secret(uint64_t a, uint64_t b)
{
	hash_key[0] = a;
	hash_key[1] = b;
}

static inline uint64_t rotate_left(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate_left(v[1], 13) ^ v[0];
	v[0] = rotate_left(v[0], 32);
	v[2] += v[3];
	v[3] = rotate_left(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate_left(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate_left(v[1], 17) ^ v[2];
	v[2] = rotate_left(v[2], 32);
}

/* SipHash-1-3 (Aumasson, Bernstein 2012). */
uint64_t slu_hash_keyed(const void *p, size_t n)
{
	uint64_t v[4] = { 0x736f6d6570736575u ^ hash_key[0], 0x646f72616e646f6du ^ hash_key[1],
			  0x6c7967656e657261u ^ hash_key[0], 0x7465646279746573u ^ hash_key[1] };
	const unsigned char *s = p;
	uint64_t last = (uint64_t)n << 56, w;

	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&w, s, 8);
		v[3] ^= w;
		sip_round(v);
		v[0] ^= w;
	}
	for (size_t i = 0; i < n; i++)
		last |= (uint64_t)s[i] << (8 * i);
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Position of the key's slot, or of the empty one where it belongs. */
static uint32_t find_position(const struct slu_map *m, uint64_t key)
{
	uint32_t i = (uint32_t)slu_hash_u64(key) & m->mask;

	while (m->slot[i] && m->e[m->slot[i] - 1].key != key)
		i = (i + 1) & m->mask;
	return i;
}

uint64_t *slu_map_get(const struct slu_map *m, uint64_t key)
{
	uint32_t i;

	if (!m->n)
		return NULL;
	i = find_position(m, key);
	return m->slot[i] ? &m->e[m->slot[i] - 1].val : NULL;
}

static int rehash(struct slu_map *m, uint32_t cap)
{
	uint32_t slots = cap * 2;
	uint32_t *slot = slu_calloc(slots, sizeof *slot);
	struct slu_map_entry *e;

	if (!slot)
		return -ENOMEM;
	e = slu_reallocarray(m->e, cap, sizeof *e);
	if (!e) {
		slu_free(slot);
		return -ENOMEM;
	}
	slu_free(m->slot);
	m->e = e;
	m->slot = slot;
	m->cap = cap;
	m->mask = slots - 1;
	for (uint32_t k = 0; k < m->n; k++)
		m->slot[find_position(m, e[k].key)] = k + 1;
	return 0;
}

int slu_map_put(struct slu_map *m, uint64_t key, uint64_t val)
{
	uint64_t *old = slu_map_get(m, key);

	if (old) {
		*old = val;
		return 0;
	}
	if (m->n == m->cap) {
		if (m->cap > UINT32_MAX / 8 || rehash(m, m->cap ? m->cap * 2 : 8) < 0)
			return -ENOMEM;
	}
	m->e[m->n] = (struct slu_map_entry){ key, val };
	m->slot[find_position(m, key)] = ++m->n;
	return 0;
}

bool slu_map_del(struct slu_map *m, uint64_t key)
{
	uint32_t i, j, k, last;

	if (!m->n)
		return false;
	i = find_position(m, key);
	if (!m->slot[i])
		return false;
	k = m->slot[i] - 1;
	/* Close the gap in the probe chain: move back every later entry that may stand earlier. */
	for (j = (i + 1) & m->mask; m->slot[j]; j = (j + 1) & m->mask) {
		uint32_t home = (uint32_t)slu_hash_u64(m->e[m->slot[j] - 1].key) & m->mask;

		if (((j - home) & m->mask) >= ((j - i) & m->mask)) {
			m->slot[i] = m->slot[j];
			i = j;
		}
	}
	m->slot[i] = 0;
	last = m->n - 1;
	if (k != last) {
		m->slot[find_position(m, m->e[last].key)] = k + 1;
		m->e[k] = m->e[last];
	}
	m->n = last;
	return true;
}

void slu_map_clear(struct slu_map *m)
{
	m->n = 0;
	if (m->slot)
		memset(m->slot, 0, (m->mask + 1) * sizeof *m->slot);
}

void slu_map_done(struct slu_map *m)
{
	slu_free(m->e);
	slu_free(m->slot);
	*m = (struct slu_map){ 0 };
}
