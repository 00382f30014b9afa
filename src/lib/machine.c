/* machine.c — the functions of sluice.h on machines and gangs.  Public structs that come in arrays or hold the
 * caller's memory have the layout of the internal ones; static assertions check that.  The others are copied
 * field by field. */
#include "gang/gang.h"
#include "sluice/sluice.h"

#define SAME(a, b, field)                                                                        \
	_Static_assert(offsetof(struct a, field) == offsetof(struct b, field) &&                 \
			       sizeof(((struct a *)0)->field) == sizeof(((struct b *)0)->field), \
		       #a "." #field)

_Static_assert(sizeof(struct sluice_error) == sizeof(struct slu_error), "error");
_Static_assert(sizeof(struct sluice_amount) == sizeof(struct slu_amount), "amount");
SAME(sluice_amount, slu_amount, resource);
SAME(sluice_amount, slu_amount, n);
_Static_assert(sizeof(struct sluice_part) == sizeof(struct slu_gang_part), "part");
SAME(sluice_part, slu_gang_part, node);
SAME(sluice_part, slu_gang_part, role);
SAME(sluice_part, slu_gang_part, slots);
_Static_assert(sizeof(struct sluice_place) == sizeof(struct slu_gang_place), "place");
SAME(sluice_place, slu_gang_place, start_s);
SAME(sluice_place, slu_gang_place, end_s);
SAME(sluice_place, slu_gang_place, slots);
SAME(sluice_place, slu_gang_place, close);
_Static_assert(offsetof(struct sluice_place, room) == offsetof(struct slu_gang_place, cap), "room");
SAME(sluice_place, slu_gang_place, n);
SAME(sluice_place, slu_gang_place, part);
_Static_assert(SLUICE_NOW == (int)SLU_GANG_NOW && SLUICE_LATER == (int)SLU_GANG_LATER &&
		       SLUICE_BUSY == (int)SLU_GANG_BUSY && SLUICE_NEVER == (int)SLU_GANG_NEVER,
	       "answers");
_Static_assert(SLUICE_ROLE_ALONE == (int)SLU_ROLE_ALONE &&
		       SLUICE_ROLE_EXCLUSIVE == (int)SLU_ROLE_EXCLUSIVE &&
		       SLUICE_GANG_CLOSE_REQUIRED == (int)SLU_GANG_CLOSE_REQUIRED &&
		       SLUICE_GANG_TIME_FIT == (int)SLU_GANG_TIME_FIT,
	       "flags");

static struct slu_machine *engine_of(const struct sluice_machine *m)
{
	return (struct slu_machine *)(uintptr_t)m;
}

static struct slu_error *err_in(struct sluice_error *e)
{
	return (struct slu_error *)e;
}

static const struct slu_amount *as_amounts(const struct sluice_amount *a)
{
	return (const struct slu_amount *)a;
}

static const struct slu_nodeset *set_of(const struct sluice_nodeset *s)
{
	return (const struct slu_nodeset *)s;
}

/* ---- machines ---- */

struct sluice_machine *sluice_machine_new(void)
{
	return (struct sluice_machine *)slu_machine_new();
}

void sluice_machine_free(struct sluice_machine *m)
{
	slu_machine_free(engine_of(m));
}

struct sluice_machine *sluice_machine_clone(const struct sluice_machine *m)
{
	return (struct sluice_machine *)slu_machine_clone(engine_of(m));
}

int sluice_machine_resource(struct sluice_machine *m, const char *name)
{
	return slu_machine_resource(engine_of(m), name);
}

int sluice_machine_level(struct sluice_machine *m, const char *name)
{
	return slu_machine_level(engine_of(m), name);
}

int sluice_machine_add(struct sluice_machine *m, const struct sluice_node_spec *spec,
		       sluice_node *out, struct sluice_error *err)
{
	struct slu_node_spec s = { .name = spec->name,
				   .rank = spec->rank,
				   .total = as_amounts(spec->total),
				   .n_total = spec->n_total,
				   .domain = spec->domain,
				   .n_domain = spec->n_domain };

	return slu_machine_node_add(engine_of(m), &s, out, err_in(err));
}

int sluice_machine_remove(struct sluice_machine *m, sluice_node node)
{
	return slu_machine_node_remove(engine_of(m), node);
}

int sluice_machine_resize(struct sluice_machine *m, sluice_node node,
			  const struct sluice_amount *total, uint32_t n_total,
			  struct sluice_error *err)
{
	return slu_machine_node_resize(engine_of(m), node, as_amounts(total), n_total, err_in(err));
}

int sluice_machine_set_down(struct sluice_machine *m, sluice_node node, bool down)
{
	return slu_machine_node_set_down(engine_of(m), node, down);
}

int sluice_machine_set_domain(struct sluice_machine *m, sluice_node node, uint32_t level,
			      const char *domain)
{
	return slu_machine_node_set_domain(engine_of(m), node, level, domain);
}

sluice_node sluice_machine_find(const struct sluice_machine *m, const char *name)
{
	return slu_machine_node_find(engine_of(m), name);
}

uint32_t sluice_machine_slots(const struct sluice_machine *m)
{
	return slu_machine_node_slots(engine_of(m));
}

sluice_node sluice_machine_at(const struct sluice_machine *m, uint32_t i)
{
	return slu_machine_node_at(engine_of(m), i);
}

const char *sluice_machine_name(const struct sluice_machine *m, sluice_node node)
{
	return slu_machine_node_is(engine_of(m), node) ? slu_machine_node_name(engine_of(m), node)
						       : NULL;
}

static bool is_known(const struct sluice_machine *m, sluice_node node, uint32_t resource)
{
	return slu_machine_node_is(engine_of(m), node) &&
	       resource < slu_machine_resources(engine_of(m));
}

int64_t sluice_machine_total(const struct sluice_machine *m, sluice_node node, uint32_t resource)
{
	return is_known(m, node, resource) ? slu_machine_node_total(engine_of(m), node, resource)
					   : 0;
}

int64_t sluice_machine_free_amount(const struct sluice_machine *m, sluice_node node,
				   uint32_t resource, int64_t from_s, int64_t to_s)
{
	if (!is_known(m, node, resource))
		return 0;
	return slu_machine_node_free_during(engine_of(m), node, resource, from_s, to_s);
}

void sluice_machine_stats(const struct sluice_machine *m, struct sluice_machine_stats *out)
{
	struct slu_machine_stats s;

	slu_machine_stats(engine_of(m), &s);
	*out = (struct sluice_machine_stats){ .nodes = s.nodes,
					      .up = s.up,
					      .overbooked = s.overbooked,
					      .running = s.running,
					      .reserved = s.reserved,
					      .blocks = s.blocks,
					      .bytes = s.bytes };
}

/* ---- sets ---- */

struct sluice_nodeset *sluice_nodeset_new(void)
{
	return (struct sluice_nodeset *)slu_nodeset_new(64);
}

struct sluice_nodeset *sluice_nodeset_ref(struct sluice_nodeset *s)
{
	return (struct sluice_nodeset *)slu_nodeset_ref(set_of(s));
}

void sluice_nodeset_unref(struct sluice_nodeset *s)
{
	slu_nodeset_unref((struct slu_nodeset *)s);
}

int sluice_nodeset_add(struct sluice_nodeset *s, sluice_node node)
{
	if (node == SLUICE_NO_NODE)
		return -EINVAL;
	return slu_nodeset_add((struct slu_nodeset *)s, slu_node_index(node));
}

bool sluice_nodeset_has(const struct sluice_nodeset *s, sluice_node node)
{
	return slu_nodeset_has(set_of(s), slu_node_index(node));
}

/* ---- gangs ---- */

struct request {
	struct slu_gang_role role[SLU_ROLES_MAX];
	struct slu_gang_req req;
};

static int read_request(struct request *r, const struct sluice_gang *g, struct sluice_error *err)
{
	int policy = g->policy ? slu_gang_policy_find(g->policy) : SLU_GANG_FIRST;

	if (policy < 0)
		return slu_fail(err_in(err), -EINVAL, "there is no policy \"%s\"", g->policy);
	if (!g->n_role || g->n_role > SLU_ROLES_MAX)
		return slu_fail(err_in(err), -EINVAL, "a gang has 1 to %u roles, not %u",
				SLU_ROLES_MAX, g->n_role);
	for (uint32_t i = 0; i < g->n_role; i++) {
		const struct sluice_role *x = &g->role[i];

		r->role[i] = (struct slu_gang_role){ .name = x->name,
						     .min = x->min,
						     .max = x->max,
						     .need = as_amounts(x->need),
						     .n_need = x->n_need,
						     .nodes = set_of(x->nodes),
						     .prefer = set_of(x->prefer),
						     .flags = x->flags };
	}
	r->req = (struct slu_gang_req){ .role = r->role,
					.n_role = g->n_role,
					.min = g->min,
					.max = g->max,
					.level = g->level,
					.flags = g->flags,
					.policy = (enum slu_gang_policy)policy,
					.duration_s = g->duration_s,
					.begin_s = g->begin_s,
					.deadline_s = g->deadline_s,
					.nodes = set_of(g->nodes),
					.use = g->use,
					.n_use = g->n_use };
	return 0;
}

void sluice_place_done(struct sluice_place *p)
{
	slu_gang_place_done((struct slu_gang_place *)p);
}

int sluice_gang_match(struct sluice_machine *m, enum sluice_op op, int64_t now_s, uint64_t job,
		      const struct sluice_gang *gang, struct sluice_place *place,
		      struct sluice_error *err)
{
	static const int to[] = {
		[SLUICE_ALLOCATE] = SLU_GANG_ALLOCATE,
		[SLUICE_ALLOCATE_SATISFIABLE] = SLU_GANG_ALLOCATE_SAT,
		[SLUICE_ALLOCATE_OR_RESERVE] = SLU_GANG_ALLOCATE_OR_RESERVE,
		[SLUICE_MATCH] = SLU_GANG_TRY,
		[SLUICE_MATCH_LATER] = SLU_GANG_TRY_LATER,
	};
	struct request r;
	int rc = read_request(&r, gang, err);

	if (rc < 0)
		return rc;
	if (op < SLUICE_ALLOCATE || op > SLUICE_MATCH_LATER || op == SLUICE_SATISFIABLE)
		return slu_fail(err_in(err), -EINVAL, "no gang is matched by operation %d",
				(int)op);
	return slu_gang_match(engine_of(m), (enum slu_gang_op)to[op], now_s, job, &r.req,
			      (struct slu_gang_place *)place, err_in(err));
}

int sluice_gang_satisfiable(struct sluice_machine *m, const struct sluice_gang *gang,
			    struct sluice_error *err)
{
	struct request r;
	int rc = read_request(&r, gang, err);

	if (!rc)
		rc = slu_gang_satisfiable(engine_of(m), &r.req, err_in(err));
	return rc < 0 ? rc : rc == SLU_GANG_NOW;
}

int sluice_gang_explain(struct sluice_machine *m, int64_t now_s, const struct sluice_gang *gang,
			struct sluice_error *why, struct sluice_error *err)
{
	struct slu_gang_why w;
	struct request r;
	int rc = read_request(&r, gang, err);

	if (!rc)
		rc = slu_gang_explain(engine_of(m), now_s, &r.req, &w, err_in(err));
	if (rc < 0)
		return rc;
	if (why)
		memcpy(why, &w.text, sizeof *why);
	return (int)w.answer;
}

int sluice_gang_register(struct sluice_machine *m, int64_t now_s, uint64_t job,
			 const struct sluice_gang *gang, int64_t start_s, int64_t end_s,
			 const struct sluice_part *part, uint32_t n_part, struct sluice_error *err)
{
	struct slu_gang_booking b = { .job = job,
				      .start_s = start_s,
				      .end_s = end_s,
				      .n_role = gang->n_role,
				      .part = (const struct slu_gang_part *)part,
				      .n_part = n_part };
	struct request r;
	int rc = read_request(&r, gang, err);

	if (rc < 0)
		return rc;
	b.role = r.role;
	return slu_gang_register(engine_of(m), now_s, &b, err_in(err));
}

int sluice_gang_block(struct sluice_machine *m, int64_t now_s, uint64_t id, int64_t from_s,
		      int64_t to_s, const struct sluice_nodeset *nodes,
		      const struct sluice_amount *amount, uint32_t n_amount,
		      struct sluice_error *err)
{
	struct slu_gang_block b = { .id = id,
				    .from_s = from_s,
				    .to_s = to_s,
				    .nodes = set_of(nodes),
				    .amount = as_amounts(amount),
				    .n_amount = n_amount };

	return slu_gang_block_add(engine_of(m), now_s, &b, err_in(err));
}

int sluice_gang_cancel(struct sluice_machine *m, uint64_t job)
{
	return slu_gang_cancel(engine_of(m), job);
}

int sluice_gang_start(struct sluice_machine *m, int64_t now_s, uint64_t job)
{
	return slu_gang_start(engine_of(m), now_s, job);
}

int sluice_gang_set_end(struct sluice_machine *m, uint64_t job, int64_t end_s)
{
	return slu_gang_set_end(engine_of(m), job, end_s);
}

int64_t sluice_gang_release(struct sluice_machine *m, uint64_t job, uint32_t role, sluice_node node,
			    uint32_t slots)
{
	return slu_gang_release(engine_of(m), job, role, node, slots);
}

int sluice_gang_grow(struct sluice_machine *m, int64_t now_s, uint64_t job,
		     const struct sluice_gang *gang, struct sluice_place *place,
		     struct sluice_error *err)
{
	struct request r;
	int rc = read_request(&r, gang, err);

	if (rc < 0)
		return rc;
	return slu_gang_grow(engine_of(m), now_s, job, &r.req, (struct slu_gang_place *)place,
			     err_in(err));
}

int sluice_gang_shrink(struct sluice_machine *m, uint64_t job, uint32_t role, uint32_t slots,
		       struct sluice_place *place)
{
	return slu_gang_shrink(engine_of(m), job, role, slots, (struct slu_gang_place *)place);
}

int sluice_gang_info(const struct sluice_machine *m, uint64_t job, enum sluice_job_state *state,
		     struct sluice_place *place)
{
	struct slu_gang_info i;
	int rc = slu_gang_info(engine_of(m), job, &i, (struct slu_gang_place *)place);

	if (rc < 0)
		return rc;
	if (state)
		*state = i.state == SLU_GANG_RUNNING ? SLUICE_ALLOCATED : SLUICE_RESERVED;
	return 0;
}
