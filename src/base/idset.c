#include "base/idset.h"

/* Digits without leading zeros, at most 2^31 - 1. */
static int parse_number(const char **s, uint32_t *out)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] >= '0' && p[1] <= '9'))
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v > INT32_MAX)
			return -EOVERFLOW;
	}
	*s = p;
	*out = (uint32_t)v;
	return 0;
}

/* Append at the end, joining a range that touches. */
static int append_range(struct slu_idset *s, uint32_t lo, uint32_t hi)
{
	if (s->r.n && s->r.p[s->r.n - 1].hi + 1 == lo) {
		s->r.p[s->r.n - 1].hi = hi;
		return 0;
	}
	return slu_vec_push(&s->r, (struct slu_id_range){ lo, hi });
}

static int parse_item(struct slu_idset *s, const char **p, uint64_t *count)
{
	uint32_t lo, hi;
	int rc = parse_number(p, &lo);

	if (rc < 0)
		return rc;
	hi = lo;
	if (**p == '-') {
		++*p;
		rc = parse_number(p, &hi);
		if (rc < 0)
			return rc;
		if (hi <= lo)
			return -EINVAL;
	}
	if (s->r.n && lo <= s->r.p[s->r.n - 1].hi)
		return -EINVAL;
	*count += (uint64_t)hi - lo + 1;
	if (*count > SLU_IDSET_MAX)
		return -EOVERFLOW;
	return append_range(s, lo, hi);
}

int slu_idset_parse(struct slu_idset *s, const char *text)
{
	struct slu_idset t = { 0 };
	bool bracket = *text == '[';
	uint64_t count = 0;
	int rc = 0;

	text += bracket;
	while (*text && *text != ']' && !rc) {
		if (*text == ',') {
			text++;
			continue;
		}
		rc = parse_item(&t, &text, &count);
		if (!rc && *text && *text != ',' && *text != ']')
			rc = -EINVAL;
	}
	if (!rc && (bracket ? strcmp(text, "]") != 0 : *text != '\0'))
		rc = -EINVAL;
	if (rc < 0) {
		slu_idset_done(&t);
		return rc;
	}
	slu_idset_done(s);
	*s = t;
	return 0;
}

/* The first range that ends at or after id; the number of ranges if none does. */
static uint32_t find_range(const struct slu_idset *s, uint32_t id)
{
	uint32_t lo = 0, hi = s->r.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->r.p[mid].hi < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int slu_idset_add(struct slu_idset *s, uint32_t id)
{
	uint32_t lo;
	int rc;

	if (id > INT32_MAX)
		return -EOVERFLOW;
	if (!s->r.n || id > s->r.p[s->r.n - 1].hi)
		return append_range(s, id, id);
	lo = find_range(s, id);
	if (s->r.p[lo].lo <= id)
		return 0;
	if (lo && s->r.p[lo - 1].hi + 1 == id) {
		s->r.p[lo - 1].hi = id;
		if (s->r.p[lo].lo == id + 1) {
			s->r.p[lo - 1].hi = s->r.p[lo].hi;
			memmove(s->r.p + lo, s->r.p + lo + 1, (s->r.n - lo - 1) * sizeof *s->r.p);
			s->r.n--;
		}
		return 0;
	}
	if (s->r.p[lo].lo == id + 1) {
		s->r.p[lo].lo = id;
		return 0;
	}
	rc = slu_vec_reserve(&s->r, s->r.n + 1);
	if (rc < 0)
		return rc;
	memmove(s->r.p + lo + 1, s->r.p + lo, (s->r.n - lo) * sizeof *s->r.p);
	s->r.p[lo] = (struct slu_id_range){ id, id };
	s->r.n++;
	return 0;
}

bool slu_idset_has(const struct slu_idset *s, uint32_t id)
{
	uint32_t i = find_range(s, id);

	return i < s->r.n && s->r.p[i].lo <= id;
}

uint64_t slu_idset_count(const struct slu_idset *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->r.n; i++)
		n += (uint64_t)s->r.p[i].hi - s->r.p[i].lo + 1;
	return n;
}

int slu_idset_put(const struct slu_idset *s, struct slu_buf *out)
{
	for (uint32_t i = 0; i < s->r.n; i++) {
		if (i)
			slu_buf_putc(out, ',');
		slu_buf_i64(out, s->r.p[i].lo);
		if (s->r.p[i].hi > s->r.p[i].lo) {
			slu_buf_putc(out, '-');
			slu_buf_i64(out, s->r.p[i].hi);
		}
	}
	return out->error;
}

void slu_idset_done(struct slu_idset *s)
{
	slu_vec_done(&s->r);
}
