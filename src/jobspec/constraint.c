#include "jobspec/constraint.h"

#include "base/hostlist.h"
#include "base/idset.h"
#include "jobspec/scalar.h"
#include "wire/json.h"

struct property {
	bool negate;
	const char *key;
};

struct slu_constraint {
	enum slu_constraint_op op;
	uint32_t n;
	union {
		struct property *prop;
		const char **host; /* sorted by_name() */
		struct slu_id_range *rank;
		struct slu_constraint **sub;
	};
};

static int no_memory(struct slu_error *err)
{
	return slu_fail(err, -ENOMEM, "out of memory");
}

static int parse_properties(const struct slu_json *v, struct slu_constraint_mem *mem,
			    struct slu_constraint *c, struct slu_error *err)
{
	c->prop = slu_arena_alloc(mem->arena, (slu_json_count(v) + 1) * sizeof *c->prop);
	if (!c->prop)
		return no_memory(err);
	slu_json_each (v, it) {
		const char *s = slu_json_str(it.val);
		bool negate;

		if (!s || slu_json_is_plain(it.val))
			return slu_fail(err, -EINVAL, "non-string property specified");
		negate = *s == '^';
		if (strpbrk(s + negate, "!&'\"^`|()"))
			return slu_fail(err, -EINVAL, "%s is invalid", s);
		s = slu_arena_strndup(mem->arena, s + negate, strlen(s + negate));
		if (!s)
			return no_memory(err);
		c->prop[c->n++] = (struct property){ negate, s };
	}
	return 0;
}

/* A list item as text; NULL with the words of the reference's YAML library if it cannot be
 * converted. */
static const char *item_text(const struct slu_json *v, struct slu_error *err)
{
	if (slu_scalar_is_null(v))
		return "null";
	if (!slu_json_is_str(v))
		slu_fail(err, -EINVAL, "yaml-cpp: bad conversion");
	return slu_json_str(v);
}

/* By length, then by bytes: "n[0-99]" comes in this order. */
static int by_name(const void *a, const void *b)
{
	const char *s = *(const char *const *)a, *t = *(const char *const *)b;
	size_t n = strlen(s), m = strlen(t);

	return n != m ? (n < m ? -1 : 1) : memcmp(s, t, n);
}

static int parse_hostlist(const struct slu_json *v, struct slu_constraint_mem *mem,
			  struct slu_constraint *c, struct slu_error *err)
{
	struct slu_hostlist *l = &mem->hosts;
	uint32_t before = l->h.n;
	bool sorted = true;
	int rc = 0;

	slu_json_each (v, it) {
		const char *s = item_text(it.val, err);

		if (!s) {
			rc = -EINVAL;
			break;
		}
		rc = slu_hostlist_parse(l, s);
		if (rc == -ENOMEM)
			no_memory(err);
		else if (rc == -EOVERFLOW && l->max)
			rc = slu_fail(err, -EINVAL, "Invalid hostlist: more than %zu KiB of names",
				      l->max >> 10);
		else if (rc == -EOVERFLOW)
			rc = slu_fail(err, -EINVAL,
				      "Invalid hostlist: more than %u names or %zu MiB",
				      SLU_HOSTLIST_MAX, SLU_HOSTLIST_BYTES >> 20);
		else if (rc < 0)
			rc = slu_fail(err, -EINVAL, "Invalid hostlist `%s'", s);
		if (rc < 0)
			break;
	}
	if (rc < 0)
		return rc;
	c->host = slu_arena_alloc(mem->arena, (l->h.n - before + 1) * sizeof *c->host);
	if (!c->host)
		return no_memory(err);
	for (uint32_t i = before; i < l->h.n; i++, c->n++) {
		const char *s = slu_arena_strndup(mem->arena, l->h.p[i], strlen(l->h.p[i]));

		if (!s)
			return no_memory(err);
		c->host[c->n] = s;
		sorted &= !c->n || by_name(&c->host[c->n - 1], &s) <= 0;
	}
	if (!sorted)
		qsort(c->host, c->n, sizeof *c->host, by_name);
	return 0;
}

static int parse_ranks(const struct slu_json *v, struct slu_constraint_mem *mem,
		       struct slu_constraint *c, struct slu_error *err)
{
	SLU_VEC(struct slu_id_range) all = { 0 };
	struct slu_idset s = { 0 };
	int rc = 0;

	slu_json_each (v, it) {
		const char *text = item_text(it.val, err);

		rc = text ? slu_idset_parse(&s, text) : -EINVAL;
		if (text && rc < 0 && rc != -ENOMEM)
			slu_fail(err, rc, "Invalid idset `%s'", text);
		for (uint32_t i = 0; !rc && i < s.r.n; i++)
			rc = slu_vec_push(&all, s.r.p[i]);
		if (rc < 0)
			break;
	}
	if (!rc) {
		c->n = all.n;
		c->rank = slu_arena_alloc(mem->arena, (all.n + 1) * sizeof *c->rank);
		rc = c->rank ? 0 : -ENOMEM;
		if (!rc && all.n)
			memcpy(c->rank, all.p, all.n * sizeof *c->rank);
	}
	slu_idset_done(&s);
	slu_vec_done(&all);
	return rc == -ENOMEM ? no_memory(err) : rc < 0 ? -EINVAL : 0;
}

static int parse_list(const struct slu_json *v, struct slu_constraint_mem *mem,
		      struct slu_constraint *c, struct slu_error *err)
{
	c->sub = slu_arena_alloc(mem->arena,
				 (slu_json_count(v) + 1) * sizeof(struct slu_constraint *));
	if (!c->sub)
		return no_memory(err);
	slu_json_each (v, it) {
		int rc = slu_constraint_parse(it.val, mem, &c->sub[c->n], err);

		if (rc < 0)
			return rc;
		c->n++;
	}
	return 0;
}

int slu_constraint_parse(const struct slu_json *v, struct slu_constraint_mem *mem,
			 struct slu_constraint **out, struct slu_error *err)
{
	static const struct {
		const char *name;
		enum slu_constraint_op op;
		int (*parse)(const struct slu_json *, struct slu_constraint_mem *,
			     struct slu_constraint *, struct slu_error *);
	} ops[] = {
		{ "properties", SLU_CONSTRAINT_PROPERTIES, parse_properties },
		{ "hostlist", SLU_CONSTRAINT_HOSTLIST, parse_hostlist },
		{ "ranks", SLU_CONSTRAINT_RANKS, parse_ranks },
		{ "and", SLU_CONSTRAINT_AND, parse_list },
		{ "or", SLU_CONSTRAINT_OR, parse_list },
		{ "not", SLU_CONSTRAINT_NOT, parse_list },
	};
	struct slu_json_it it = slu_json_first(v);
	struct slu_constraint *c;

	if (!slu_json_is_obj(v))
		return slu_fail(err, -EINVAL, "constraint is not a mapping");
	if (slu_json_count(v) > 1)
		return slu_fail(err, -EINVAL, "constraint map may not contain > 1 operation");
	*out = NULL;
	if (!it.val)
		return 0;
	if (!slu_json_is_arr(it.val))
		return slu_fail(err, -EINVAL, "%s operator value must be an array", it.key);
	c = slu_arena_zalloc(mem->arena, sizeof *c);
	if (!c)
		return no_memory(err);
	for (size_t i = 0; i < SLU_LEN(ops); i++) {
		if (strcmp(it.key, ops[i].name) != 0)
			continue;
		c->op = ops[i].op;
		*out = c;
		return ops[i].parse(it.val, mem, c, err);
	}
	return slu_fail(err, -EINVAL, "unknown constraint operator: %s", it.key);
}

enum slu_constraint_op slu_constraint_op(const struct slu_constraint *c)
{
	return c->op;
}

uint32_t slu_constraint_count(const struct slu_constraint *c)
{
	return c->n;
}

const char *slu_constraint_word(const struct slu_constraint *c, uint32_t i, bool *negate)
{
	*negate = c->op == SLU_CONSTRAINT_PROPERTIES && c->prop[i].negate;
	return c->op == SLU_CONSTRAINT_PROPERTIES ? c->prop[i].key : c->host[i];
}

const struct slu_constraint *slu_constraint_sub(const struct slu_constraint *c, uint32_t i)
{
	return c->sub[i];
}

static bool has_properties(const struct slu_constraint *c, const struct slu_constraint_subject *s)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (s->has(s->arg, c->prop[i].key) == c->prop[i].negate)
			return false;
	return true;
}

static bool is_a_host(const struct slu_constraint *c, const struct slu_constraint_subject *s)
{
	struct slu_buf scratch = SLU_BUF_INIT(1 << 16);
	const char *name = s->name(s->arg, &scratch);
	bool found = bsearch(&name, c->host, c->n, sizeof *c->host, by_name);

	slu_buf_done(&scratch);
	return found;
}

static bool has_rank(const struct slu_constraint *c, int64_t rank)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (rank >= c->rank[i].lo && rank <= c->rank[i].hi)
			return true;
	return false;
}

/* Whether all operands are satisfied, or any of them is. */
static bool list_holds(const struct slu_constraint *c, const struct slu_constraint_subject *s,
		       bool any)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (slu_constraint_holds(c->sub[i], s) == any)
			return any;
	return !any;
}

bool slu_constraint_holds(const struct slu_constraint *c, const struct slu_constraint_subject *s)
{
	if (!c)
		return true;
	switch (c->op) {
	case SLU_CONSTRAINT_PROPERTIES:
		return has_properties(c, s);
	case SLU_CONSTRAINT_HOSTLIST:
		return is_a_host(c, s);
	case SLU_CONSTRAINT_RANKS:
		return has_rank(c, s->rank);
	case SLU_CONSTRAINT_AND:
		return list_holds(c, s, false);
	case SLU_CONSTRAINT_OR:
		return list_holds(c, s, true);
	case SLU_CONSTRAINT_NOT:
		return !list_holds(c, s, false);
	}
	return false;
}
