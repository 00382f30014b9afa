#include "gang/nodeset.h"

#define WORDS_MAX (1u << 20)

struct slu_nodeset *slu_nodeset_new(uint32_t n)
{
	struct slu_nodeset *s = slu_calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->refs = 1;
	s->n_word = n / 64 + 1;
	s->word = slu_calloc(s->n_word, sizeof *s->word);
	if (!s->word) {
		slu_free(s);
		return NULL;
	}
	return s;
}

struct slu_nodeset *slu_nodeset_clone(const struct slu_nodeset *s)
{
	struct slu_nodeset *c = slu_nodeset_new(s->n_word * 64 - 1);

	if (c)
		memcpy(c->word, s->word, s->n_word * sizeof *s->word);
	return c;
}

struct slu_nodeset *slu_nodeset_ref(const struct slu_nodeset *s)
{
	struct slu_nodeset *w = (struct slu_nodeset *)(uintptr_t)s;

	if (w)
		__atomic_fetch_add(&w->refs, 1, __ATOMIC_RELAXED);
	return w;
}

void slu_nodeset_unref(struct slu_nodeset *s)
{
	if (!s || __atomic_fetch_sub(&s->refs, 1, __ATOMIC_ACQ_REL) > 1)
		return;
	slu_free(s->word);
	slu_free(s);
}

int slu_nodeset_add(struct slu_nodeset *s, uint32_t index)
{
	uint32_t w = index / 64;

	if (w >= s->n_word) {
		uint32_t n = SLU_MAX(w + 1, s->n_word * 2);
		uint64_t *p = w < WORDS_MAX ? slu_reallocarray(s->word, n, sizeof *p) : NULL;

		if (!p)
			return -ENOMEM;
		memset(p + s->n_word, 0, (n - s->n_word) * sizeof *p);
		s->word = p;
		s->n_word = n;
	}
	s->word[w] |= UINT64_C(1) << (index % 64);
	s->version++;
	return 0;
}

void slu_nodeset_del(struct slu_nodeset *s, uint32_t index)
{
	if (!slu_nodeset_has(s, index))
		return;
	s->word[index / 64] &= ~(UINT64_C(1) << (index % 64));
	s->version++;
}

void slu_nodeset_swap(struct slu_nodeset *a, struct slu_nodeset *b)
{
	uint64_t *word = a->word;
	uint32_t n = a->n_word;

	a->word = b->word;
	a->n_word = b->n_word;
	b->word = word;
	b->n_word = n;
	a->version++;
	b->version++;
}

uint32_t slu_nodeset_count(const struct slu_nodeset *s)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < s->n_word; w++)
		n += (uint32_t)__builtin_popcountll(s->word[w]);
	return n;
}
