#include "base/intern.h"
#include "base/map.h"

struct intern_entry {
	const char *s;
	uint32_t len, hash;
};

static uint32_t find_entry(const struct slu_intern *t, const char *s, size_t n, uint32_t hash)
{
	uint32_t i = hash & t->mask;

	for (; t->slot[i]; i = (i + 1) & t->mask) {
		const struct intern_entry *e = &t->e[t->slot[i] - 1];

		if (e->hash == hash && e->len == n && memcmp(e->s, s, n) == 0)
			break;
	}
	return i;
}

static int grow_index(struct slu_intern *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 16, slots = cap * 2;
	struct intern_entry *e;
	uint32_t *slot;

	if (t->cap > UINT32_MAX / 8)
		return -ENOMEM;
	slot = slu_calloc(slots, sizeof *slot);
	if (!slot)
		return -ENOMEM;
	e = slu_reallocarray(t->e, cap, sizeof *e);
	if (!e) {
		slu_free(slot);
		return -ENOMEM;
	}
	slu_free(t->slot);
	t->e = e;
	t->slot = slot;
	t->cap = cap;
	t->mask = slots - 1;
	for (uint32_t k = 0; k < t->n; k++) {
		uint32_t i = e[k].hash & t->mask;

		while (slot[i])
			i = (i + 1) & t->mask;
		slot[i] = k + 1;
	}
	return 0;
}

uint32_t slu_intern_n(struct slu_intern *t, const char *s, size_t n)
{
	uint32_t hash = (uint32_t)slu_hash_bytes(s, n), i;
	char *copy;

	if (n > UINT32_MAX / 2)
		return SLU_INTERN_NONE;
	if (t->n) {
		i = find_entry(t, s, n, hash);
		if (t->slot[i])
			return t->slot[i] - 1;
	}
	if (t->n == t->cap && grow_index(t) < 0)
		return SLU_INTERN_NONE;
	copy = slu_arena_strndup(&t->text, s, n);
	if (!copy)
		return SLU_INTERN_NONE;
	i = find_entry(t, s, n, hash);
	t->e[t->n] = (struct intern_entry){ copy, (uint32_t)n, hash };
	t->slot[i] = ++t->n;
	return t->n - 1;
}

uint32_t slu_intern(struct slu_intern *t, const char *s)
{
	return slu_intern_n(t, s, strlen(s));
}

uint32_t slu_intern_find_n(const struct slu_intern *t, const char *s, size_t n)
{
	uint32_t i;

	if (!t->n)
		return SLU_INTERN_NONE;
	i = find_entry(t, s, n, (uint32_t)slu_hash_bytes(s, n));
	return t->slot[i] ? t->slot[i] - 1 : SLU_INTERN_NONE;
}

uint32_t slu_intern_find(const struct slu_intern *t, const char *s)
{
	return slu_intern_find_n(t, s, strlen(s));
}

const char *slu_intern_str(const struct slu_intern *t, uint32_t id)
{
	assert(id < t->n);
	return t->e[id].s;
}

uint32_t slu_intern_len(const struct slu_intern *t, uint32_t id)
{
	assert(id < t->n);
	return t->e[id].len;
}

void slu_intern_done(struct slu_intern *t)
{
	slu_arena_done(&t->text);
	slu_free(t->e);
	slu_free(t->slot);
	*t = (struct slu_intern){ 0 };
}
