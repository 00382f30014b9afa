#include "wire/jsonstream.h"

#include "base/vec.h"
#include "wire/doc_internal.h"

#define LIST_AT   2u /* containers around a list */
#define LOOKAHEAD 16 /* bytes behind a byte that the reader may need to judge it; numbers aside */

enum state {
	OUTSIDE, /* of the lists: what comes belongs to the outline */
	INSIDE,  /* a list */
	BROKEN,  /* the text will be refused; what comes is kept until the reason is certain */
	REFUSED, /* for a reason that no later byte can change */
};

struct position {
	size_t at;         /* bytes of the text before it */
	size_t line_start; /* ... and before its line */
	uint32_t line;     /* from 1 */
};

/* A run of the text within the outline. */
struct run {
	size_t outline;
	struct position text;
};

struct slu_json_stream {
	const struct slu_json_stream_ops *ops;
	void *arg;
	size_t part;
	enum state state;
	int rc; /* sticky: no memory, or a callback's */
	struct position here;

	struct slu_buf outline;
	SLU_VEC(struct run) run;
	size_t depth;        /* open containers, outside of lists */
	bool obj[LIST_AT];   /* which of the outer ones are objects */
	size_t key[LIST_AT]; /* where in the outline the last string in each of them begins ... */
	size_t key_end[LIST_AT]; /* ... and ends, quotes included */

	struct slu_buf items; /* of the part under way, behind a bracket */
	struct position part_begin;
	size_t bracket; /* the outline's length up to the bracket of the list under way */
	size_t inner;   /* open containers within the list */
	uint32_t lists;
	bool first; /* part of its list */

	bool string, escaped;
	bool deep, nul; /* a part is too deep, or holds a NUL */
	bool nul_seen;  /* something that reads like the escape of one stands at nul_at */
	struct position nul_at;
	char tail[5]; /* the last bytes before `here` */
	uint32_t n_tail;

	size_t try_at; /* BROKEN: length of the outline at which to look for the reason again */
	struct slu_json_place refused;
};

/* ---- places ---- */

static void advance_position(struct position *x, const char *p, size_t n)
{
	const char *end = p + n;

	for (const char *at = p; (at = memchr(at, '\n', (size_t)(end - at))); at++) {
		x->line++;
		x->line_start = x->at + (size_t)(at + 1 - p);
	}
	x->at += n;
}

static void put_place(struct slu_json_place *out, const struct position *x, const char *what)
{
	*out = (struct slu_json_place){ x->line, (uint32_t)(x->at - x->line_start) + 1, what };
}

/* Where a byte of the outline stands in the text. */
static struct position position_of(const struct slu_json_stream *s, size_t pos)
{
	const struct run *r = s->run.p + s->run.n;
	struct position x;

	do
		r--;
	while (r > s->run.p && r->outline > pos);
	x = r->text;
	advance_position(&x, s->outline.p + r->outline, pos - r->outline);
	return x;
}

/* The position in the text of what follows in the outline. */
static int begin_run(struct slu_json_stream *s, const struct position *x)
{
	return slu_vec_push(&s->run, (struct run){ s->outline.n, *x });
}

/* A NUL can only come from an escape, and a refusal names the place of the first one. */
static void look_for_nul(struct slu_json_stream *s, const char *p, size_t n)
{
	static const char escape[] = "\\u0000";
	const size_t len = sizeof escape - 1;
	char border[10];
	size_t more = SLU_MIN(n, sizeof s->tail);
	const char *at;

	memcpy(border, s->tail, s->n_tail);
	memcpy(border + s->n_tail, p, more);
	at = memmem(border, s->n_tail + more, escape, len);
	if (at && (size_t)(at - border) < s->n_tail) {
		s->nul_seen = true;
		s->nul_at = s->here; /* there is no line end in it */
		s->nul_at.at -= s->n_tail - (size_t)(at - border);
		return;
	}
	at = memchr(p, '\\', n);
	at = at ? memmem(at, n - (size_t)(at - p), escape, len) : NULL;
	if (at) {
		s->nul_seen = true;
		s->nul_at = s->here;
		advance_position(&s->nul_at, p, (size_t)(at - p));
		return;
	}
	if (n < sizeof s->tail) {
		size_t keep = SLU_MIN(s->n_tail, sizeof s->tail - n);

		memmove(s->tail, s->tail + s->n_tail - keep, keep);
		memcpy(s->tail + keep, p, n);
		s->n_tail = (uint32_t)(keep + n);
	} else {
		memcpy(s->tail, p + n - sizeof s->tail, sizeof s->tail);
		s->n_tail = sizeof s->tail;
	}
}

/* ---- refusals ---- */

/* Whether what the reader says of the byte at `pos` does not depend on bytes yet to come: only a
 * number may be long and judged at its first digit. */
static bool is_certain(const char *p, size_t n, size_t pos)
{
	for (size_t i = pos + 1; i + LOOKAHEAD < n; i++)
		if (!strchr("0123456789+-.eE", p[i]))
			return true;
	return false;
}

/* Look for the reason in the outline, which holds all that came since the text broke. */
static int try_refuse(struct slu_json_stream *s)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_json_wrong wrong;
	int rc = slu_json_parse_at(s->outline.p, s->outline.n, SLU_JSON_DEPTH, &doc, &wrong);

	if (rc == -ENOMEM)
		return rc;
	s->try_at = s->outline.n * 2;
	if (rc == -EINVAL && is_certain(s->outline.p, s->outline.n, wrong.pos)) {
		struct position x = position_of(s, wrong.pos);

		put_place(&s->refused, &x, wrong.what);
		s->state = REFUSED;
		slu_buf_done(&s->outline);
		slu_buf_done(&s->items);
	}
	return 0;
}

/* Move the items under way to the outline, behind what stands for those before them. */
static int fold_items(struct slu_json_stream *s)
{
	struct position x = s->part_begin;
	int rc;

	if (s->first) {
		s->outline.n = s->bracket;
		rc = begin_run(s, &x);
	} else {
		x.at--; /* a comma that nothing follows is to blame for it */
		rc = begin_run(s, &x);
		if (!rc)
			rc = slu_buf_putc(&s->outline, ',');
	}
	if (!rc)
		rc = slu_buf_add(&s->outline, s->items.p + 1, s->items.n - 1);
	slu_buf_reset(&s->items);
	return rc;
}

static int break_off(struct slu_json_stream *s)
{
	int rc = s->state == INSIDE ? fold_items(s) : 0;

	s->state = BROKEN;
	s->try_at = s->outline.n + 4 * LOOKAHEAD;
	return rc;
}

/* ---- parts ---- */

static int begin_part(struct slu_json_stream *s, bool first)
{
	s->first = first;
	s->part_begin = s->here;
	slu_buf_reset(&s->items);
	return slu_buf_putc(&s->items, '[');
}

/* The part under way ends before the byte `stop`, which is not taken yet: a comma or a bracket. */
static int end_part(struct slu_json_stream *s, char stop)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_json_wrong wrong;
	int rc = slu_buf_putc(&s->items, ']');

	if (rc < 0)
		return rc;
	/* The brackets stand for the list's. */
	rc = slu_json_parse_at(s->items.p, s->items.n, SLU_JSON_DEPTH - LIST_AT, &doc, &wrong);
	s->items.n--;
	s->deep |= rc == -EMSGSIZE;
	s->nul |= rc == -EILSEQ;
	if (rc == -ENOMEM)
		return rc;
	/* An empty place between commas is an error, an empty list is not. */
	if (rc == -EINVAL || stop == '}' ||
	    (!rc && !slu_json_count(slu_json_root(doc)) && !(s->first && stop == ']')))
		return break_off(s);
	rc = !rc && s->ops->part
		     ? s->ops->part(s->arg, slu_json_root(doc), s->part_begin.at, s->items.n - 1)
		     : 0;
	if (rc < 0)
		return rc;
	if (stop == ']') {
		rc = begin_run(s, &s->here);
		s->state = OUTSIDE;
		return rc ? rc : slu_buf_putc(&s->outline, ']');
	}
	return 0;
}

/* The text of a key, as a string of its own; NULL: no memory. */
static char *key_text(const struct slu_json_stream *s, int level)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const char *p = s->outline.p + s->key[level];
	size_t n = s->key_end[level] - s->key[level];
	struct slu_json_wrong wrong;
	int rc;

	if (s->key_end[level] < s->key[level] + 2)
		return slu_strdup(""); /* there was no key: the text will be refused */
	if (!memchr(p, '\\', n))
		return slu_strndup(p + 1, n - 2);
	rc = slu_json_parse_at(p, n, 1, &doc, &wrong);
	if (rc == -ENOMEM)
		return NULL;
	return slu_strdup(rc ? "" : slu_json_str(slu_json_root(doc)));
}

static int begin_list(struct slu_json_stream *s)
{
	char *outer, *inner;
	int rc = 0;

	s->bracket = s->outline.n;
	s->inner = 0;
	if (s->ops->list) {
		outer = key_text(s, 0);
		inner = key_text(s, 1);
		rc = outer && inner ? s->ops->list(s->arg, s->lists, outer, inner) : -ENOMEM;
		slu_free(outer);
		slu_free(inner);
	}
	if (rc < 0)
		return rc;
	rc = slu_buf_i64(&s->outline, s->lists++);
	s->state = INSIDE;
	return rc ? rc : begin_part(s, true);
}

/* ---- the bytes ---- */

/* From p[i] within a string to the byte behind its last quote, or to the end of the piece. */
static size_t through_string(struct slu_json_stream *s, const char *p, size_t i, size_t n)
{
	for (; i < n && s->string; i++) {
		if (s->escaped)
			s->escaped = false;
		else if (p[i] == '\\')
			s->escaped = true;
		else
			s->string = p[i] != '"';
	}
	return i;
}

/* Each of these takes bytes of a piece and returns how many.
 *
 * Outside of the lists only as much of the grammar is followed as is needed to find them.  The
 * outline and the parts are parsed; if they are correct, so is the text they were cut from. */
static size_t take_outside(struct slu_json_stream *s, const char *p, size_t n)
{
	size_t i = 0, in = s->depth - 1;
	bool list = false, closed = false;

	while (i < n && !list && !closed) {
		if (s->string) {
			i = through_string(s, p, i, n);
			if (!s->string && in < LIST_AT)
				s->key_end[in] = s->outline.n + i;
			continue;
		}
		switch (p[i]) {
		case '"':
			s->string = true;
			if (in < LIST_AT)
				s->key[in] = s->outline.n + i;
			break;
		case '[':
		case '{':
			list = p[i] == '[' && s->depth == LIST_AT && s->obj[0] && s->obj[1];
			if (list)
				break;
			if (s->depth < LIST_AT)
				s->obj[s->depth] = p[i] == '{';
			in = s->depth++;
			break;
		case ']':
		case '}':
			closed = !s->depth; /* more of them than were opened */
			if (!closed)
				in = --s->depth - 1;
			break;
		default:
			break;
		}
		i++;
	}
	s->rc = slu_buf_add(&s->outline, p, i);
	advance_position(&s->here, p, i);
	if (!s->rc && list)
		s->rc = begin_list(s);
	if (!s->rc && closed)
		s->rc = break_off(s);
	return i;
}

static size_t take_inside(struct slu_json_stream *s, const char *p, size_t n)
{
	size_t i = 0;
	bool ends = false;

	while (i < n) {
		if (s->string) {
			i = through_string(s, p, i, n);
			continue;
		}
		switch (p[i]) {
		case '"':
			s->string = true;
			break;
		case '[':
		case '{':
			s->inner++;
			break;
		case ']':
		case '}':
			ends = !s->inner;
			s->inner -= !ends;
			break;
		case ',':
			ends = !s->inner && s->items.n - 1 + i >= s->part;
			break;
		default:
			break;
		}
		if (ends)
			break;
		i++;
	}
	s->rc = slu_buf_add(&s->items, p, i);
	advance_position(&s->here, p, i);
	if (s->rc || !ends)
		return i;
	s->rc = end_part(s, p[i]);
	if (s->rc || s->state == BROKEN)
		return i;
	advance_position(&s->here, p + i, 1);
	if (s->state == INSIDE)
		s->rc = begin_part(s, false);
	return i + 1;
}

static size_t take_broken(struct slu_json_stream *s, const char *p, size_t n)
{
	s->rc = slu_buf_add(&s->outline, p, n);
	advance_position(&s->here, p, n);
	if (!s->rc && s->outline.n >= s->try_at)
		s->rc = try_refuse(s);
	return n;
}

static size_t take_nothing(struct slu_json_stream *s, const char *p, size_t n)
{
	(void)p;
	s->here.at += n;
	return n;
}

int slu_json_stream_feed(struct slu_json_stream *s, const char *p, size_t n)
{
	static size_t (*const take[])(struct slu_json_stream *s, const char *p, size_t n) = {
		[OUTSIDE] = take_outside,
		[INSIDE] = take_inside,
		[BROKEN] = take_broken,
		[REFUSED] = take_nothing,
	};

	if (s->here.at + n > SLU_JSON_BYTES)
		s->state = REFUSED;
	if (n && !s->rc && !s->nul_seen && s->state != REFUSED)
		look_for_nul(s, p, n);
	while (n && !s->rc) {
		size_t used = take[s->state](s, p, n);

		p += used;
		n -= used;
	}
	return s->rc;
}

int slu_json_stream_end(struct slu_json_stream *s, struct slu_json_doc **outline,
			struct slu_json_place *place)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_json_wrong wrong;
	struct position x;
	int rc = s->rc;

	if (!rc && s->state == INSIDE)
		rc = fold_items(s);
	if (rc < 0)
		return rc;
	*place = (struct slu_json_place){ 1, 1, "the text is too large" };
	if (s->here.at > SLU_JSON_BYTES)
		return -EMSGSIZE;
	place->what = "empty text";
	if (!s->here.at)
		return -EINVAL;
	if (s->state == REFUSED) {
		*place = s->refused;
		return -EINVAL;
	}
	rc = slu_json_parse_at(s->outline.p, s->outline.n, SLU_JSON_DEPTH, &doc, &wrong);
	if (rc == -ENOMEM)
		return rc;
	if (rc == -EINVAL) {
		x = position_of(s, wrong.pos);
		put_place(place, &x, wrong.what);
		return rc;
	}
	if (rc == -EMSGSIZE || s->deep) {
		place->what = SLU_JSON_TOO_DEEP;
		return -EMSGSIZE;
	}
	if (rc == -EILSEQ || s->nul) {
		put_place(place, &s->nul_at, SLU_JSON_HAS_NUL);
		return -EINVAL;
	}
	*outline = slu_take(doc);
	return 0;
}

/* ---- life ---- */

struct slu_json_stream *slu_json_stream_new(size_t part, const struct slu_json_stream_ops *ops,
					    void *arg)
{
	struct slu_json_stream *s = slu_calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->ops = ops;
	s->arg = arg;
	s->part = part;
	s->here.line = 1;
	s->outline = SLU_BUF_INIT(SIZE_MAX / 2);
	s->items = SLU_BUF_INIT(SIZE_MAX / 2);
	if (begin_run(s, &s->here) < 0) {
		slu_free(s);
		return NULL;
	}
	return s;
}

void slu_json_stream_free(struct slu_json_stream *s)
{
	if (!s)
		return;
	slu_buf_done(&s->outline);
	slu_buf_done(&s->items);
	slu_vec_done(&s->run);
	slu_free(s);
}
