#include "base/hostlist.h"

#include <stdio.h>

#define NAME_MAX_LEN 1024u
#define DIGITS_MAX   18u /* a longer row of digits is text, not a number */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_sep(char c)
{
	return c == ',' || c == ' ' || c == '\t';
}

static int add_n(struct slu_hostlist *l, const char *s, size_t n)
{
	size_t max = l->max ? l->max : SLU_HOSTLIST_BYTES;
	char *p;

	if (l->h.n >= SLU_HOSTLIST_MAX || l->bytes + n + 1 > max)
		return -EOVERFLOW;
	if (slu_vec_reserve(&l->h, l->h.n + 1) < 0)
		return -ENOMEM;
	p = slu_arena_strndup(&l->text, s, n);
	if (!p)
		return -ENOMEM;
	l->h.p[l->h.n++] = p;
	l->bytes += n + 1;
	return 0;
}

int slu_hostlist_add(struct slu_hostlist *l, const char *host)
{
	return add_n(l, host, strlen(host));
}

/* Read a number as strtoul() does: blanks and a plus sign may precede it, and a number that is
 * too large becomes the largest.  Returns the text behind the number, NULL if there is none. */
static const char *parse_number(const char *s, const char *end, uint64_t *out)
{
	const char *p = s;

	while (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r')))
		p++;
	p += p < end && *p == '+';
	s = p;
	for (*out = 0; p < end && is_digit(*p); p++)
		if (__builtin_mul_overflow(*out, 10u, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(*p - '0'), out))
			*out = UINT64_MAX;
	return p > s ? p : NULL;
}

struct range {
	uint64_t lo, hi;
	int width; /* of what is written for lo, whatever it is */
};

/* "7", "1-3", "07-12"; "3-" is 3. */
static int parse_range(const char *s, const char *end, struct range *r)
{
	const char *dash = memchr(s, '-', (size_t)(end - s)), *mid = dash ? dash : end;
	const char *after = parse_number(s, mid, &r->lo);

	if (!after || mid - s > (ptrdiff_t)NAME_MAX_LEN)
		return -EINVAL;
	r->width = (int)(mid - s);
	r->hi = r->lo;
	if (dash && dash + 1 < end) {
		mid = end;
		after = parse_number(dash + 1, end, &r->hi);
	}
	if (after != mid || r->hi < r->lo)
		return -EINVAL;
	return r->hi - r->lo < SLU_HOSTLIST_MAX ? 0 : -EOVERFLOW;
}

/* Increment the number of w digits at d, which n bytes follow; return its new width. */
static int next_number(char *d, int w, size_t n)
{
	int k = w;

	while (k && d[k - 1] == '9')
		d[--k] = '0';
	if (k) {
		d[k - 1]++;
		return w;
	}
	memmove(d + 1, d, (size_t)w + n);
	*d = '1';
	return w + 1;
}

/* "pre[1-3,07]suf": p stands after the bracket, end after the word. */
static int expand_bracket(struct slu_hostlist *l, const char *pre, size_t npre, const char *p,
			  const char *end)
{
	const char *close = memchr(p, ']', (size_t)(end - p));
	size_t nsuf = close ? (size_t)(end - close - 1) : 0;
	char name[NAME_MAX_LEN + 2]; /* the number after the last may be longer */

	if (!close || npre > NAME_MAX_LEN || nsuf >= NAME_MAX_LEN)
		return -EINVAL;
	for (;;) {
		const char *comma = memchr(p, ',', (size_t)(close - p));
		struct range r;
		int n, w, rc = parse_range(p, comma ? comma : close, &r);

		if (rc < 0)
			return rc;
		n = snprintf(name, sizeof name, "%.*s%0*" PRIu64 "%.*s", (int)npre, pre, r.width,
			     r.lo, (int)nsuf, close + 1);
		w = n - (int)npre - (int)nsuf;
		for (uint64_t i = 0; i <= r.hi - r.lo; i++) {
			if (npre + (size_t)w + nsuf > NAME_MAX_LEN)
				return -EINVAL;
			rc = add_n(l, name, npre + (size_t)w + nsuf);
			if (rc < 0)
				return rc;
			w = next_number(name + npre, w, nsuf);
		}
		if (!comma)
			return 0;
		p = comma + 1;
	}
}

int slu_hostlist_parse(struct slu_hostlist *l, const char *text)
{
	while (*text) {
		const char *end = text, *open;
		int level = 0, rc;

		if (is_sep(*text)) {
			text++;
			continue;
		}
		for (; *end && (level || !is_sep(*end)); end++)
			level += (*end == '[') - (*end == ']');
		open = memchr(text, '[', (size_t)(end - text));
		if (!open && (memchr(text, ']', (size_t)(end - text)) ||
			      end - text > (ptrdiff_t)NAME_MAX_LEN))
			return -EINVAL;
		rc = open ? expand_bracket(l, text, (size_t)(open - text), open + 1, end)
			  : add_n(l, text, (size_t)(end - text));
		if (rc < 0)
			return rc;
		text = end;
	}
	return 0;
}

int64_t slu_hostlist_find(const struct slu_hostlist *l, const char *host)
{
	for (uint32_t i = 0; i < l->h.n; i++)
		if (!strcmp(l->h.p[i], host))
			return i;
	return -1;
}

/* A name as prefix and trailing number. */
struct part {
	const char *s;
	size_t prefix, digits; /* digits 0: no number */
	uint64_t num;
};

static struct part split_host(const char *s)
{
	struct part p = { .s = s };
	size_t n = strlen(s);

	while (p.digits < n && is_digit(s[n - 1 - p.digits]))
		p.digits++;
	if (p.digits > DIGITS_MAX)
		p.digits = 0;
	p.prefix = n - p.digits;
	for (size_t i = p.prefix; i < n; i++)
		p.num = p.num * 10 + (uint64_t)(s[i] - '0');
	return p;
}

static bool padded(const struct part *p)
{
	return p->digits > 1 && p->s[p->prefix] == '0';
}

/* Whether b follows a in a range: either neither number is padded, or both have the same width. */
static bool follows(const struct part *a, const struct part *b)
{
	return b->num == a->num + 1 && (a->digits == b->digits || (!padded(a) && !padded(b)));
}

static bool same_group(const struct part *a, const struct part *b)
{
	return a->digits && b->digits && a->prefix == b->prefix && !memcmp(a->s, b->s, a->prefix);
}

int slu_hostlist_put_names(const char *const *name, uint32_t n, struct slu_buf *out)
{
	for (uint32_t i = 0; i < n;) {
		struct part first = split_host(name[i]), prev = first, cur;
		uint32_t j = i + 1;

		if (i)
			slu_buf_putc(out, ',');
		while (j < n && (cur = split_host(name[j]), same_group(&first, &cur)))
			j++;
		if (j == i + 1) {
			slu_buf_puts(out, name[i++]);
			continue;
		}
		slu_buf_add(out, first.s, first.prefix);
		slu_buf_putc(out, '[');
		for (uint32_t k = i; k < j;) {
			uint32_t last = k;

			prev = split_host(name[k]);
			if (k > i)
				slu_buf_putc(out, ',');
			slu_buf_add(out, prev.s + prev.prefix, prev.digits);
			while (last + 1 < j &&
			       (cur = split_host(name[last + 1]), follows(&prev, &cur))) {
				prev = cur;
				last++;
			}
			if (last > k) {
				slu_buf_putc(out, '-');
				slu_buf_add(out, prev.s + prev.prefix, prev.digits);
			}
			k = last + 1;
		}
		slu_buf_putc(out, ']');
		i = j;
	}
	return out->error;
}

int slu_hostlist_put(const struct slu_hostlist *l, struct slu_buf *out)
{
	return slu_hostlist_put_names(l->h.p, l->h.n, out);
}

void slu_hostlist_done(struct slu_hostlist *l)
{
	slu_vec_done(&l->h);
	slu_arena_done(&l->text);
}
