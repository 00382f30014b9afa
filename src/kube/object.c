#include "kube/object.h"

const char *slu_kpair_get(const struct slu_kpair *p, uint16_t n, const char *key)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		int d = strcmp(p[mid].key, key);

		if (d == 0)
			return p[mid].value;
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

int64_t slu_kamount_get(const struct slu_kamount *a, uint16_t n, const char *name)
{
	for (uint16_t i = 0; i < n; i++) {
		if (strcmp(a[i].name, name) == 0)
			return a[i].amount;
	}
	return 0;
}

const struct slu_kowner *slu_kmeta_controller(const struct slu_kmeta *m)
{
	for (uint16_t i = 0; i < m->nowners; i++) {
		if (m->owners[i].controller)
			return &m->owners[i];
	}
	return NULL;
}

const struct slu_kcond *slu_kcond_get(const struct slu_kcond *c, uint16_t n, const char *type)
{
	for (uint16_t i = 0; i < n; i++) {
		if (strcmp(c[i].type, type) == 0)
			return &c[i];
	}
	return NULL;
}
