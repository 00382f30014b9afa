#include "base/table.h"

#include "base/map.h"

struct slu_entry *slu_table_find(const struct slu_table *t, const void *key, size_t n)
{
	uint64_t hash = slu_hash_keyed(key, n);

	if (!t->slot)
		return NULL;
	for (struct slu_entry *e = t->slot[hash & t->mask]; e; e = e->next)
		if (e->hash == hash && e->n == n && !memcmp(e->key, key, n))
			return e;
	return NULL;
}

static int grow_table(struct slu_table *t)
{
	uint32_t size = t->slot ? (t->mask + 1) * 2 : 64;
	struct slu_entry **slot;

	if (t->slot && t->n < t->mask)
		return 0;
	slot = slu_calloc(size, sizeof *slot);
	if (!slot)
		return t->slot ? 0 : -ENOMEM; /* longer chains work, too */
	for (uint32_t i = 0; t->slot && i <= t->mask; i++)
		for (struct slu_entry *e = t->slot[i], *next; e; e = next) {
			next = e->next;
			e->next = slot[e->hash & (size - 1)];
			slot[e->hash & (size - 1)] = e;
		}
	slu_free(t->slot);
	t->slot = slot;
	t->mask = size - 1;
	return 0;
}

int slu_table_add(struct slu_table *t, struct slu_entry *e)
{
	int rc = grow_table(t);

	if (rc < 0)
		return rc;
	e->hash = slu_hash_keyed(e->key, e->n);
	e->next = t->slot[e->hash & t->mask];
	t->slot[e->hash & t->mask] = e;
	t->n++;
	return 0;
}

void slu_table_del(struct slu_table *t, struct slu_entry *e)
{
	struct slu_entry **p = &t->slot[e->hash & t->mask];

	while (*p && *p != e)
		p = &(*p)->next;
	if (*p) {
		*p = e->next;
		t->n--;
	}
}

struct slu_entry *slu_table_next(const struct slu_table *t, const struct slu_entry *e)
{
	uint64_t i = 0;

	if (!t->slot)
		return NULL;
	if (e) {
		if (e->next)
			return e->next;
		i = (e->hash & t->mask) + 1;
	}
	for (; i <= t->mask; i++)
		if (t->slot[i])
			return t->slot[i];
	return NULL;
}

void slu_table_done(struct slu_table *t)
{
	slu_free(t->slot);
	*t = (struct slu_table){ 0 };
}
