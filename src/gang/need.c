/* need.c — what one slot takes, kept once per machine. */
#include "gang/gang_internal.h"

static uint64_t hash_of(const struct need *n)
{
	uint64_t h = slu_hash_u64((uint64_t)n->per_slot * 2 + (n->per_part != 0) + 1);

	for (uint32_t i = 0; i < n->n; i++)
		h = slu_hash_u64(h ^ slu_hash_u64(n->a[i].resource) ^ (uint64_t)n->a[i].n * 31);
	return h;
}

bool slu_need_same(const struct need *a, const struct need *b)
{
	if (a->hash != b->hash || a->n != b->n || a->per_slot != b->per_slot ||
	    a->per_part != b->per_part)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->a[i].resource != b->a[i].resource || a->a[i].n != b->a[i].n)
			return false;
	}
	return true;
}

struct need *slu_need_get(struct slu_machine *m, const struct slu_amount *a, uint32_t n,
			  unsigned role_flags, bool background)
{
	/* Room on the stack for the struct with all resources. */
	union {
		struct need n;
		char room[sizeof(struct need) + SLU_RESOURCES_MAX * sizeof(struct slu_amount)];
	} u;
	struct need *want = &u.n, *got;
	uint64_t *at;

	want->per_slot = background ? 0 : 1;
	want->per_part = role_flags & SLU_ROLE_EXCLUSIVE ? WHOLE : 0;
	want->n = 0;
	/* Insertion by resource: the same need in another order is the same need. */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = want->n;

		if (!a[i].n)
			continue;
		while (k && want->a[k - 1].resource > a[i].resource) {
			want->a[k] = want->a[k - 1];
			k--;
		}
		want->a[k] = a[i];
		want->n++;
	}
	want->hash = hash_of(want);
	/* Equal hashes of different needs sit in neighbouring keys. */
	for (uint64_t key = want->hash;; key++) {
		at = slu_map_get(&m->need_by_hash, key);
		if (at) {
			got = (struct need *)(uintptr_t)*at;
			if (!slu_need_same(got, want))
				continue;
			if (!got->refs++)
				m->n_need_idle--;
			return got;
		}
		got = slu_malloc(sizeof *got + want->n * sizeof *got->a);
		if (!got)
			return NULL;
		memcpy(got, want, sizeof *got + want->n * sizeof *got->a);
		got->refs = 1;
		if (slu_map_put(&m->need_by_hash, key, (uint64_t)(uintptr_t)got) < 0) {
			slu_free(got);
			return NULL;
		}
		return got;
	}
}

/* Needs outlive their users, since the next job asks for the same; when half of them are idle,
 * those go. */
static void sweep_needs(struct slu_machine *m)
{
	for (uint32_t i = m->need_by_hash.n; i-- > 0;) {
		struct need *n = (struct need *)(uintptr_t)m->need_by_hash.e[i].val;

		if (!n->refs) {
			slu_map_del(&m->need_by_hash, m->need_by_hash.e[i].key);
			slu_free(n);
		}
	}
}

void slu_need_put(struct slu_machine *m, struct need *n)
{
	if (--n->refs)
		return;
	m->n_need_idle++;
	if (m->n_need_idle > 256 && m->n_need_idle > m->need_by_hash.n / 2) {
		sweep_needs(m);
		m->n_need_idle = 0;
	}
}
