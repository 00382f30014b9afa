#include "kube/strpool.h"

#include <pthread.h>

#include "base/map.h"

struct entry {
	uint32_t refs, len, hash;
	char s[];
};

struct slu_strpool {
	pthread_mutex_t lock;
	struct entry **slot; /* open addressing, linear probing, deletion by shifting back */
	uint32_t *tag;       /* hash of the entry in the slot beside it: most misses end here */
	uint32_t n, mask;
	size_t bytes;
};

#define SLOTS_MIN 256u

static const struct {
	struct entry e;
	char nul;
} empty = { .e = { .refs = 1 } };
#define EMPTY ((const char *)&empty + offsetof(struct entry, s))

static struct entry *entry_of(const char *s)
{
	return (struct entry *)(s - offsetof(struct entry, s));
}

struct slu_strpool *slu_strpool_new(void)
{
	struct slu_strpool *p = slu_calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->slot = slu_calloc(SLOTS_MIN, sizeof *p->slot);
	p->tag = slu_calloc(SLOTS_MIN, sizeof *p->tag);
	p->mask = SLOTS_MIN - 1;
	if (!p->slot || !p->tag || pthread_mutex_init(&p->lock, NULL)) {
		slu_free(p->slot);
		slu_free(p->tag);
		slu_free(p);
		return NULL;
	}
	return p;
}

void slu_strpool_free(struct slu_strpool *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; p->n && i <= p->mask; i++)
		slu_free(p->slot[i]);
	pthread_mutex_destroy(&p->lock);
	slu_free(p->slot);
	slu_free(p->tag);
	slu_free(p);
}

void slu_strpool_lock(struct slu_strpool *p)
{
	pthread_mutex_lock(&p->lock);
}

void slu_strpool_unlock(struct slu_strpool *p)
{
	pthread_mutex_unlock(&p->lock);
}

/* The slot of the text, or the empty one where it belongs. */
static uint32_t find_text(const struct slu_strpool *p, uint32_t hash, const char *s, size_t n)
{
	uint32_t i = hash & p->mask;

	for (; p->slot[i]; i = (i + 1) & p->mask) {
		if (p->tag[i] != hash)
			continue;
		if (p->slot[i]->len == n && memcmp(p->slot[i]->s, s, n) == 0)
			break;
	}
	return i;
}

static int resize_index(struct slu_strpool *p, uint32_t slots)
{
	struct entry **slot = slu_calloc(slots, sizeof *slot);
	uint32_t *tag = slu_calloc(slots, sizeof *tag);

	if (!slot || !tag) {
		slu_free(slot);
		slu_free(tag);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i <= p->mask; i++) {
		uint32_t j;

		if (!p->slot[i])
			continue;
		for (j = p->tag[i] & (slots - 1); slot[j]; j = (j + 1) & (slots - 1))
			;
		slot[j] = p->slot[i];
		tag[j] = p->tag[i];
	}
	slu_free(p->slot);
	slu_free(p->tag);
	p->slot = slot;
	p->tag = tag;
	p->mask = slots - 1;
	return 0;
}

const char *slu_strpool_get_locked(struct slu_strpool *p, const char *s, size_t n)
{
	struct entry *e;
	uint32_t hash, i;

	if (!n)
		return EMPTY;
	if (n > UINT32_MAX / 2)
		return NULL;
	hash = (uint32_t)slu_hash_keyed(s, n);
	i = find_text(p, hash, s, n);
	if (p->slot[i]) {
		p->slot[i]->refs++;
		return p->slot[i]->s;
	}
	/* At most 3 of 4 slots taken.  A failed growth is harmless while one slot stays empty. */
	if (p->n >= p->mask / 4 * 3) {
		if (p->mask < UINT32_MAX / 4 && resize_index(p, (p->mask + 1) * 2) == 0)
			i = find_text(p, hash, s, n);
		else if (p->n >= p->mask)
			return NULL;
	}
	e = slu_malloc(sizeof *e + n + 1);
	if (!e)
		return NULL;
	*e = (struct entry){ .refs = 1, .len = (uint32_t)n, .hash = hash };
	memcpy(e->s, s, n);
	e->s[n] = '\0';
	p->slot[i] = e;
	p->tag[i] = hash;
	p->n++;
	p->bytes += sizeof *e + n + 1;
	return e->s;
}

const char *slu_strpool_ref_locked(struct slu_strpool *p, const char *s)
{
	if (s != EMPTY)
		entry_of(s)->refs++;
	return s;
}

static void drop_entry(struct slu_strpool *p, struct entry *e)
{
	uint32_t i = e->hash & p->mask, hole;

	while (p->slot[i] != e)
		i = (i + 1) & p->mask;
	/* Close the hole: move back every later entry of the run that may stand there. */
	for (hole = i;;) {
		uint32_t home;

		i = (i + 1) & p->mask;
		if (!p->slot[i])
			break;
		home = p->tag[i] & p->mask;
		if (((i - home) & p->mask) >= ((i - hole) & p->mask)) {
			p->slot[hole] = p->slot[i];
			p->tag[hole] = p->tag[i];
			hole = i;
		}
	}
	p->slot[hole] = NULL;
	p->n--;
	p->bytes -= sizeof *e + e->len + 1;
	slu_free(e);
	/* Shrink when mostly empty; failing to is harmless. */
	if (p->mask >= SLOTS_MIN * 4 && p->n < p->mask / 8)
		(void)!resize_index(p, (p->mask + 1) / 4);
}

void slu_strpool_put_locked(struct slu_strpool *p, const char *s)
{
	struct entry *e;

	if (!s || s == EMPTY)
		return;
	e = entry_of(s);
	assert(e->refs);
	if (--e->refs == 0)
		drop_entry(p, e);
}

const char *slu_strpool_find(struct slu_strpool *p, const char *s, size_t n)
{
	struct entry *e;

	if (!n)
		return EMPTY;
	slu_strpool_lock(p);
	e = p->slot[find_text(p, (uint32_t)slu_hash_keyed(s, n), s, n)];
	slu_strpool_unlock(p);
	return e ? e->s : NULL;
}

uint32_t slu_str_hash(const char *s)
{
	return entry_of(s)->hash;
}

void slu_strpool_stat(struct slu_strpool *p, uint32_t *strings, size_t *bytes)
{
	slu_strpool_lock(p);
	*strings = p->n;
	*bytes = p->bytes + (p->mask + 1u) * (sizeof *p->slot + sizeof *p->tag);
	slu_strpool_unlock(p);
}
