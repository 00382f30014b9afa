#include "jobspec/jobspec.h"

#include <math.h>

#include "jobspec/constraint.h"
#include "jobspec/scalar.h"
#include "wire/yaml.h"

#define MAX_BYTES    ((size_t)4 << 20)
#define MAX_REQUESTS 65536u

struct reader {
	const struct slu_json_doc *doc;
	const struct slu_intern *types;
	struct slu_jobspec *spec;
	struct slu_error *err;
	struct slu_constraint_mem where;
};

static int bad_jobspec(struct reader *r, const char *what)
{
	return slu_fail(r->err, -EINVAL, "%s", what);
}

static int no_memory(struct reader *r)
{
	return slu_fail(r->err, -ENOMEM, "out of memory");
}

/* Report a scalar of the wrong type in the words of the reference's YAML library. */
static int bad_conversion(struct reader *r, const struct slu_json *v)
{
	return slu_fail(r->err, -EINVAL,
			"yaml-cpp: error at line %" PRIu32 ", column %" PRIu32 ": bad conversion",
			slu_json_line(r->doc, v), slu_json_col(r->doc, v));
}

/* --- count --- */

static int parse_number(struct reader *r, const struct slu_json *v, int64_t lo, int64_t hi,
			int64_t *out)
{
	if (slu_scalar_i64(v, lo, hi, out) < 0)
		return bad_conversion(r, v);
	return 0;
}

static int check_operand(struct reader *r, const struct slu_count *c, int64_t operand)
{
	switch (c->op) {
	case '+':
		if (operand < 1)
			return bad_jobspec(
				r, "\"operand\" must be greater than zero for addition '+'");
		return 0;
	case '*':
		if (operand < 2)
			return bad_jobspec(
				r, "\"operand\" must be greater than one for multiplication '*'");
		return 0;
	case '^':
		if (operand < 2)
			return bad_jobspec(
				r, "\"operand\" must be greater than one for exponentiation '^'");
		if (c->min < 2)
			return bad_jobspec(
				r, "\"min\" must be greater than one for exponentiation '^'");
		return 0;
	default:
		return bad_jobspec(r, "Invalid count operator");
	}
}

static int parse_count(struct reader *r, const struct slu_json *v, struct slu_count *c)
{
	const struct slu_json *min, *max, *op, *operand;
	int64_t n = 0, lo = 0, by = 1;
	int rc;

	*c = (struct slu_count){ .max = UINT32_MAX, .operand = 1, .op = '+' };
	if (slu_scalar_is(v)) {
		rc = parse_number(r, v, 0, UINT32_MAX, &n);
		c->min = c->max = (uint32_t)n;
		return rc;
	}
	if (!slu_json_is_obj(v))
		return bad_jobspec(r, "count is not a mapping");
	min = slu_key(v, "min");
	max = slu_key(v, "max");
	op = slu_key(v, "operator");
	operand = slu_key(v, "operand");
	if (!min)
		return bad_jobspec(r, "Key \"min\" missing from count");
	if (!slu_scalar_is(min))
		return bad_jobspec(r, "Value of \"min\" must be a scalar");
	if (max || op || operand) {
		if (!max || !op || !operand)
			return bad_jobspec(
				r, "All or none of \"max\", \"operator\", and \"operand\" must be "
				   "specified");
		if (!slu_scalar_is(max))
			return bad_jobspec(r, "Value of \"max\" must be a scalar");
		if (!slu_scalar_is(op))
			return bad_jobspec(r, "Value of \"operator\" must be a scalar");
		if (!slu_scalar_is(operand))
			return bad_jobspec(r, "Value of \"operand\" must be a scalar");
		if ((rc = parse_number(r, max, 0, UINT32_MAX, &n)) < 0)
			return rc;
		c->max = (uint32_t)n;
		if (slu_scalar_char(op, &c->op) < 0)
			return bad_conversion(r, op);
		if ((rc = parse_number(r, operand, INT32_MIN, INT32_MAX, &by)) < 0)
			return rc;
	}
	if ((rc = parse_number(r, min, 0, UINT32_MAX, &lo)) < 0)
		return rc;
	c->min = (uint32_t)lo;
	c->operand = (uint32_t)by;
	if (lo < 1)
		return bad_jobspec(r, "\"min\" must be greater than zero");
	if (max && n < lo)
		return bad_jobspec(r, "\"max\" must be greater than or equal to \"min\"");
	return check_operand(r, c, by);
}

/* --- resources --- */

static int parse_list(struct reader *r, const struct slu_json *v, struct slu_request **out,
		      uint32_t *nout);

/* A scalar as text; the reference's YAML library turns null into "null". */
static const char *scalar_text(struct reader *r, const struct slu_json *v)
{
	return slu_arena_strndup(&r->spec->mem, v->u.str, slu_json_count(v));
}

static int parse_word(struct reader *r, const struct slu_json *v, const char *not_scalar,
		      uint32_t *fields, const char **out)
{
	if (!v)
		return 0;
	if (!slu_scalar_is(v))
		return bad_jobspec(r, not_scalar);
	++*fields;
	*out = scalar_text(r, v);
	return *out ? 0 : no_memory(r);
}

static int parse_exclusive(struct reader *r, const struct slu_json *v, uint32_t *fields,
			   uint8_t *out)
{
	const char *s;

	if (!v)
		return 0;
	if (!slu_scalar_is(v))
		return bad_jobspec(r, "Value of \"exclusive\" must be a scalar");
	++*fields;
	s = slu_json_str(v);
	if (!strcmp(s, "true"))
		*out = SLU_EXCL_TRUE;
	else if (!strcmp(s, "false"))
		*out = SLU_EXCL_FALSE;
	else
		return bad_jobspec(r,
				   "Value of \"exclusive\" must be either \"true\" or \"false\"");
	return 0;
}

/* The keys of a resource, found in one pass; the first of equal ones counts, as in the reference.
 */
struct resource_keys {
	const struct slu_json *type, *count, *unit, *exclusive, *with, *label, *id;
};

static void take_key(const struct slu_json **slot, const struct slu_json *v)
{
	if (!*slot)
		*slot = v;
}

static struct resource_keys resource_keys(const struct slu_json *v)
{
	struct resource_keys k = { 0 };

	slu_json_each (v, it) {
		switch (slu_json_count(it.keyval)) {
		case 2:
			if (!memcmp(it.key, "id", 2))
				take_key(&k.id, it.val);
			break;
		case 4:
			if (!memcmp(it.key, "type", 4))
				take_key(&k.type, it.val);
			else if (!memcmp(it.key, "unit", 4))
				take_key(&k.unit, it.val);
			else if (!memcmp(it.key, "with", 4))
				take_key(&k.with, it.val);
			break;
		case 5:
			if (!memcmp(it.key, "count", 5))
				take_key(&k.count, it.val);
			else if (!memcmp(it.key, "label", 5))
				take_key(&k.label, it.val);
			break;
		case 9:
			if (!memcmp(it.key, "exclusive", 9))
				take_key(&k.exclusive, it.val);
			break;
		default:
			break;
		}
	}
	return k;
}

static int parse_resource(struct reader *r, const struct slu_json *v, struct slu_request *q)
{
	struct resource_keys k = resource_keys(v);
	uint32_t fields = 2, type;
	int rc;

	*q = (struct slu_request){ .label = "", .unit = "", .id = "", .has_count = true };
	if (!slu_json_is_obj(v))
		return bad_jobspec(r, "resource is not a mapping");
	if (!k.type)
		return bad_jobspec(r, "Key \"type\" missing from resource");
	if (!slu_scalar_is(k.type))
		return bad_jobspec(r, "Value of \"type\" must be a scalar");
	type = slu_intern_find_n(r->types, slu_json_str(k.type), slu_json_count(k.type));
	if (type == SLU_INTERN_NONE)
		return bad_jobspec(r, "Value of \"type\" must be a resource type known to fluxion");
	q->type = (uint16_t)type;
	q->index = r->spec->nrequests++;
	if (q->index >= MAX_REQUESTS)
		return bad_jobspec(r, "too many resources in the request");
	if (!k.count)
		return bad_jobspec(r, "Key \"count\" missing from resource");
	if ((rc = parse_count(r, k.count, &q->count)) < 0 ||
	    (rc = parse_word(r, k.unit, "Value of \"unit\" must be a scalar", &fields, &q->unit)) <
		    0 ||
	    (rc = parse_exclusive(r, k.exclusive, &fields, &q->excl)) < 0)
		return rc;
	if (k.with) {
		fields++;
		if ((rc = parse_list(r, k.with, &q->with, &q->nwith)) < 0)
			return rc;
	}
	rc = parse_word(r, k.label, "Value of \"label\" must be a scalar", &fields, &q->label);
	if (rc < 0)
		return rc;
	if (!k.label && type == slu_intern_find(r->types, "slot"))
		return bad_jobspec(r, "All slots must be labeled");
	rc = parse_word(r, k.id, "Value of \"id\" must be a scalar", &fields, &q->id);
	if (rc < 0)
		return rc;
	if (fields != slu_json_count(v))
		return bad_jobspec(r, "Unrecognized key in resource mapping");
	return 0;
}

static int parse_list(struct reader *r, const struct slu_json *v, struct slu_request **out,
		      uint32_t *nout)
{
	uint32_t n = 0;

	if (!slu_json_is_arr(v))
		return bad_jobspec(r, "\"resources\" is not a sequence");
	*nout = (uint32_t)slu_json_count(v);
	*out = slu_arena_alloc(&r->spec->mem, SLU_MAX(*nout, 1u) * sizeof **out);
	if (!*out)
		return no_memory(r);
	slu_json_each (v, it) {
		int rc = parse_resource(r, it.val, *out + n++);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* --- tasks: looked at, not kept --- */

static int parse_texts(struct reader *r, const struct slu_json *v)
{
	slu_json_each (v, it)
		if (!slu_scalar_is(it.val) && !slu_scalar_is_null(it.val))
			return bad_conversion(r, it.val);
	return 0;
}

static int parse_task(struct reader *r, const struct slu_json *v)
{
	const struct slu_json *command, *slot, *count, *distribution, *attributes;
	int rc;

	if (!slu_json_is_obj(v))
		return bad_jobspec(r, "task is not a mapping");
	command = slu_key(v, "command");
	slot = slu_key(v, "slot");
	count = slu_key(v, "count");
	distribution = slu_key(v, "distribution");
	attributes = slu_key(v, "attributes");
	if (!command)
		return bad_jobspec(r, "Key \"command\" missing from task");
	if (!slu_json_is_arr(command))
		return bad_jobspec(r, "\"command\" value must be a sequence");
	if ((rc = parse_texts(r, command)) < 0)
		return rc;
	if (!slot)
		return bad_jobspec(r, "Key \"slot\" missing from task");
	if (!slu_scalar_is(slot))
		return bad_jobspec(r, "Value of task \"slot\" must be a YAML scalar");
	if (count) {
		if (!slu_json_is_obj(count))
			return bad_jobspec(r, "\"count\" in task is not a mapping");
		if (slu_json_count(count) != 1)
			return bad_jobspec(r, "\"count\" in task must have exactly one entry");
		if ((rc = parse_texts(r, count)) < 0)
			return rc;
	}
	if (distribution && !slu_scalar_is(distribution))
		return bad_jobspec(r, "Value of task \"distribution\" must be a YAML scalar");
	if (attributes) {
		if (!slu_json_is_obj(attributes))
			return bad_jobspec(r, "\"attributes\" in task is not a mapping");
		if ((rc = parse_texts(r, attributes)) < 0)
			return rc;
	}
	if (slu_json_count(v) < 3 || slu_json_count(v) > 5)
		return bad_jobspec(r, "impossible number of entries in task mapping");
	return 0;
}

static int parse_tasks(struct reader *r, const struct slu_json *v)
{
	if (!slu_json_is_arr(v))
		return bad_jobspec(r, "\"tasks\" is not a sequence");
	slu_json_each (v, it) {
		int rc = parse_task(r, it.val);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* --- attributes --- */

static int parse_system(struct reader *r, const struct slu_json *v)
{
	if (slu_json_is_arr(v) && slu_json_count(v))
		return bad_conversion(r, v);
	slu_json_each (v, it) {
		const struct slu_json *x = it.val;
		bool text = slu_scalar_is(x) || slu_scalar_is_null(x);
		int rc = 0;

		if (!strcmp(it.key, "duration")) {
			if (slu_scalar_f64(x, &r->spec->duration) < 0)
				return bad_conversion(r, x);
		} else if (!strcmp(it.key, "queue")) {
			if (!text)
				return bad_conversion(r, x);
			r->spec->queue = slu_scalar_is_null(x) ? "null" : scalar_text(r, x);
			if (!r->spec->queue)
				return no_memory(r);
		} else if (!strcmp(it.key, "cwd")) {
			if (!text)
				return bad_conversion(r, x);
		} else if (!strcmp(it.key, "environment")) {
			rc = slu_json_is_arr(x) && slu_json_count(x) ? bad_conversion(r, x)
								     : parse_texts(r, x);
		} else if (!strcmp(it.key, "constraints")) {
			rc = slu_constraint_parse(x, &r->where, &r->spec->constraint, r->err);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int parse_attributes(struct reader *r, const struct slu_json *v)
{
	if (!slu_json_is_obj(v))
		return bad_jobspec(r, "\"attributes\" is not a map");
	slu_json_each (v, it) {
		int rc;

		if (!strcmp(it.key, "user"))
			continue;
		if (strcmp(it.key, "system") != 0)
			return bad_jobspec(r, "Unknown key in \"attributes\"");
		rc = parse_system(r, it.val);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int parse_top(struct reader *r, const struct slu_json *top)
{
	const struct slu_json *version, *resources, *tasks, *attributes;
	struct slu_jobspec *s = r->spec;
	int64_t n = 0;
	int rc;

	if (!slu_json_is_obj(top))
		return bad_jobspec(r, "Top level of jobspec is not a mapping");
	version = slu_key(top, "version");
	resources = slu_key(top, "resources");
	tasks = slu_key(top, "tasks");
	attributes = slu_key(top, "attributes");
	if (!version)
		return bad_jobspec(r, "Missing key \"version\" in top level mapping");
	if (!resources)
		return bad_jobspec(r, "Missing key \"resource\" in top level mapping");
	if (!tasks)
		return bad_jobspec(r, "Missing key \"tasks\" in top level mapping");
	if (!attributes)
		return bad_jobspec(r, "Missing key \"attributes\" in top level mapping");
	if (slu_json_count(top) != 4)
		return bad_jobspec(r, "Top mapping in jobspec must have exactly four entries");
	if (!slu_scalar_is(version))
		return bad_jobspec(r, "\"version\" must be an unsigned integer");
	if ((rc = parse_number(r, version, 0, UINT32_MAX, &n)) < 0)
		return rc;
	if (n < 1 || n > 9999)
		return bad_jobspec(r, "Only jobspec \"version\" 1-9999 is supported");
	s->version = (uint32_t)n;
	if (!slu_scalar_is_null(attributes) && (rc = parse_attributes(r, attributes)) < 0)
		return rc;
	if ((rc = parse_list(r, resources, &s->resources, &s->nresources)) < 0)
		return rc;
	return parse_tasks(r, tasks);
}

int slu_jobspec_parse(const char *text, size_t n, const struct slu_intern *types,
		      struct slu_jobspec **out, struct slu_error *err)
{
	return slu_jobspec_parse_within(text, n, types, SLU_HOSTLIST_BYTES, out, err);
}

int slu_jobspec_parse_within(const char *text, size_t n, const struct slu_intern *types,
			     size_t hosts, struct slu_jobspec **out, struct slu_error *err)
{
	static const struct slu_yaml_limits limits = { .max_bytes = MAX_BYTES,
						       .max_values = 1u << 20 };
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	slu_cleanup(slu_jobspec_freep) struct slu_jobspec *spec = NULL;
	struct reader r = { .types = types, .err = err };
	struct slu_error why = { 0 };
	int rc = slu_yaml_parse(text, n, SLU_YAML_TEXT, &limits, &doc, &why);

	if (rc == -ENOMEM)
		return no_memory(&r);
	if (rc < 0)
		return slu_fail(err, -EINVAL, "yaml-cpp: error at %s", why.text);
	spec = slu_calloc(1, sizeof *spec);
	if (!spec)
		return no_memory(&r);
	r.doc = doc;
	r.spec = spec;
	r.where.arena = &spec->mem;
	r.where.hosts.max = hosts < SLU_HOSTLIST_BYTES ? hosts : 0;
	rc = parse_top(&r, slu_json_root(doc));
	slu_hostlist_done(&r.where.hosts);
	if (rc < 0)
		return rc;
	*out = slu_take(spec);
	return 0;
}

void slu_jobspec_free(struct slu_jobspec *j)
{
	if (!j)
		return;
	slu_arena_done(&j->mem);
	slu_free(j);
}

/* --- counts --- */

static uint32_t select_multiply(const struct slu_count *c, uint32_t most)
{
	uint64_t m = c->min;

	if (c->operand < 2)
		return c->min;
	while (m * c->operand <= most)
		m *= c->operand;
	return (uint32_t)m;
}

static uint32_t select_power(const struct slu_count *c, uint32_t most)
{
	uint64_t m = c->min;

	if (c->operand < 2 || c->min < 2)
		return c->min;
	for (;;) {
		uint64_t x = m;

		for (uint32_t i = 1; i < c->operand && x <= most; i++)
			x *= m;
		if (x > most)
			return (uint32_t)m;
		m = x;
	}
}

uint32_t slu_count_select(const struct slu_count *c, uint32_t avail)
{
	uint32_t most = SLU_MIN(avail, c->max);

	if (c->min > c->max || c->min > avail || !c->min)
		return 0;
	switch (c->op) {
	case '*':
		return select_multiply(c, most);
	case '^':
		return select_power(c, most);
	default:
		return c->operand ? most - (most - c->min) % c->operand : most;
	}
}

uint32_t slu_count_max(const struct slu_count *c)
{
	return slu_count_select(c, UINT32_MAX);
}
