/* prop_match — the matcher against itself and against dull models.
 *
 *  - the fast paths answer as the plain walk does (two matchers, one history);
 *  - no vertex is over its size at any time;
 *  - after all jobs are cancelled the machine is as it was;
 *  - a reservation starts at the earliest moment a count of free nodes allows.
 *
 *	prop_match [rounds [first seed]] */
#include "base/rng.h"
#include "jobspec/jobspec.h"
#include "match/match.h"
#include "tap.h"

static const char *const policies[] = {
	"low",     "high",     "lonode",    "hinode", "lonodex",
	"hinodex", "locality", "variation", "first",  "firstnodex"
};

/* --- random machines --- */

static uint32_t add(struct slu_graph *g, uint32_t parent, const char *type, int64_t id,
		    uint32_t size)
{
	struct slu_vertex_desc d = {
		.type = slu_graph_type(g, type),
		.basename = slu_graph_string(g, type),
		.name = SLU_NONE,
		.id = id,
		.uniq_id = SLU_UNIQ_INDEX,
		.rank = -1,
		.size = size,
	};
	uint32_t v = slu_graph_add(g, &d);

	slu_graph_path_under(g, v, 0, parent);
	if (parent == SLU_NONE)
		slu_graph_root_set(g, 0, v);
	else
		slu_graph_link(g, parent, v, 0);
	return v;
}

static void add_node(struct slu_graph *g, struct slu_rng *r, uint32_t above, int64_t id,
		     bool sockets, uint32_t cores, bool alike)
{
	uint32_t node = add(g, above, "node", id, 1);
	char class[8];

	snprintf(class, sizeof class, "%u", (unsigned)slu_rng_below(r, 4));
	slu_graph_property_set(g, node, "perf_class", class);
	for (uint32_t s = 0; s < (sockets ? 2u : 1u); s++) {
		uint32_t box = sockets ? add(g, node, "socket", s, 1) : node;

		for (uint32_t c = 0; c < cores; c++)
			add(g, box, "core", sockets ? s * cores + c : c, 1);
		if (alike || slu_rng_below(r, 2))
			add(g, box, "gpu", s, 1);
		add(g, box, "memory", s, alike ? 2 : 1 + (uint32_t)slu_rng_below(r, 4));
	}
}

static struct slu_graph *machine(struct slu_rng *r)
{
	struct slu_graph *g = slu_graph_new();
	uint32_t root = add(g, SLU_NONE, "cluster", 0, 1);
	uint32_t racks = (uint32_t)slu_rng_below(r, 3), cores = 1 + (uint32_t)slu_rng_below(r, 6);
	uint32_t nodes = 1 + (uint32_t)slu_rng_below(r, slu_rng_below(r, 3) ? 6 : 140);
	bool sockets = slu_rng_below(r, 2), same_ids = slu_rng_below(r, 3) == 0;
	bool alike = slu_rng_below(r, 2);
	int64_t id = (int64_t)slu_rng_below(r, 3);

	for (uint32_t k = 0; k < (racks ? racks : 1); k++) {
		uint32_t above = racks ? add(g, root, "rack", k, 1) : root;

		for (uint32_t i = 0; i < nodes; i++)
			add_node(g, r, above, same_ids ? (int64_t)i : id++, sockets, cores, alike);
	}
	return g;
}

static const char *const shapes[] = {
	"{type: node, count: %u, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}",
	"{type: slot, count: %u, label: a, with: [{type: node, count: %u, with: [{type: core, count: %u}]}]}",
	"{type: slot, count: %3$u, label: a, with: [{type: core, count: %1$u}]}%2$.0u",
	"{type: node, count: %u, exclusive: true, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}",
	"{type: socket, count: %u, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}",
	"{type: node, count: {min: 1, max: %u, operator: '+', operand: 1}, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}",
	"{type: slot, count: %u, label: a, with: [{type: core, count: %u}, {type: memory, count: %u}]}",
	"{type: node, count: %u, with: [{type: socket, count: 1, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}, {type: gpu, count: 1}]}]}]}",
	"{type: rack, count: 1, with: [{type: node, count: %u, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}]}",
	"{type: node, count: %u, label: b, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}",
	"{type: node, count: %u, exclusive: false, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}",
	"{type: node, count: %u, with: [{type: slot, count: %u, label: a, with: [{type: core, count: %u}]}]}, {type: rack, count: 1}",
	"{type: slot, count: %u, label: a, with: [{type: socket, count: %u, with: [{type: core, count: %u}]}]}",
	"{type: node, count: %u, with: [{type: slot, count: %u, label: a, with: [{type: socket, count: 1, with: [{type: memory, count: %u}]}]}]}",
	"{type: core, count: %u}%2$.0u%3$.0u",
	"{type: node, count: %u}%2$.0u%3$.0u",
};

static char *spec(struct slu_rng *r, uint32_t *duration)
{
	struct slu_buf b = SLU_BUF_INIT(4096);

	*duration = 1 + (uint32_t)slu_rng_below(r, 40);
	slu_buf_puts(&b, "version: 1\nresources: [");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	slu_buf_printf(&b, shapes[slu_rng_below(r, SLU_LEN(shapes))],
		       1 + (unsigned)slu_rng_below(r, 3), 1 + (unsigned)slu_rng_below(r, 2),
		       1 + (unsigned)slu_rng_below(r, 4));
#pragma GCC diagnostic pop
	slu_buf_printf(&b,
		       "]\nattributes: {system: {duration: %u}}\n"
		       "tasks: [{command: [x], slot: a, count: {per_slot: 1}}]\n",
		       *duration);
	return slu_buf_take(&b);
}

/* --- what comes out --- */

struct held {
	int64_t job, from, until;
	uint32_t v;
	int64_t needs;
};

struct shown {
	uint32_t v;
	int64_t needs;
	bool exclusive;
};

struct out {
	struct slu_buf text;
	SLU_VEC(struct shown) all; /* everything of this match */
	SLU_VEC(uint32_t) ends;    /* its edges: source, target, ... */
	SLU_VEC(struct held) now;  /* exclusive vertices of this match */
};

static int on_vertex(void *w, const struct slu_graph *g, const struct slu_emit_vertex *x)
{
	struct out *o = w;

	slu_buf_printf(&o->text, "%u/%u:%" PRId64 "%c%c ", x->v, x->level, x->needs,
		       x->exclusive ? 'x' : 's', x->parent_exclusive ? 'x' : 's');
	slu_vec_push(&o->all, (struct shown){ x->v, x->needs, x->exclusive });
	if (x->exclusive)
		return slu_vec_push(&o->now, (struct held){ .v = x->v, .needs = x->needs });
	return 0;
}

static int on_edge(void *w, const struct slu_graph *g, const struct slu_emit_edge *x)
{
	struct out *o = w;

	slu_vec_push(&o->ends, x->src);
	slu_vec_push(&o->ends, x->dst);
	return slu_buf_printf(&o->text, "%u-%u ", x->src, x->dst);
}

static const struct slu_writer_ops ops = { .vertex = on_vertex, .edge = on_edge };

struct side {
	struct slu_graph *g;
	struct slu_match *m;
	struct out o;
};

static const char *const filters[] = { NULL, "ALL:core", "ALL:core,ALL:gpu,node:memory",
				       "rack:node" };

static void open_side(struct side *s, const struct slu_graph *g, const char *policy,
		      const char *filter, bool plain)
{
	struct slu_match_options o = { .policy = policy, .filters = filter, .count_visits = plain };
	struct slu_error err = { 0 };

	*s = (struct side){ .g = slu_graph_clone(g) };
	s->o.text = SLU_BUF_INIT(64 << 20);
	if (!s->g || slu_match_new(s->g, &o, &s->m, &err) < 0)
		ok(false, "matcher: %s", err.text);
}

static void close_side(struct side *s)
{
	slu_match_free(s->m);
	slu_graph_free(s->g);
	slu_buf_done(&s->o.text);
	slu_vec_done(&s->o.now);
	slu_vec_done(&s->o.all);
	slu_vec_done(&s->o.ends);
}

static void forget(struct side *s)
{
	slu_buf_reset(&s->o.text);
	s->o.now.n = s->o.all.n = s->o.ends.n = 0;
}

static struct slu_match_result run(struct side *s, enum slu_match_op op, const char *text,
				   int64_t job)
{
	slu_cleanup(slu_jobspec_freep) struct slu_jobspec *j = NULL;
	struct slu_sink sink = { &ops, &s->o };
	struct slu_match_result res = { .code = -1 };
	struct slu_error err = { 0 };

	forget(s);
	if (slu_jobspec_parse(text, strlen(text), &s->g->types, &j, &err) < 0)
		return (struct slu_match_result){ .code = -1,
						  .messages = "" }; /* no such type here */
	if (slu_match_run(s->m, op, j, job, 0, &sink, &res) < 0)
		ok(false, "a match returns an answer");
	return res;
}

/* The last match as a file would list it. */
static void list(const struct side *s, struct slu_listing *l)
{
	const struct slu_graph *g = s->g;
	struct slu_map at = { 0 };
	struct slu_buf b = SLU_BUF_INIT(4096);

	*l = (struct slu_listing){ .kind = SLU_LISTING_JGF };
	for (uint32_t i = 0; i < s->o.all.n; i++) {
		const struct shown *x = &s->o.all.p[i];
		const struct slu_vertex *v = &g->v.p[x->v];
		struct slu_listing_vertex y = {
			.ref = "0",
			.type = slu_graph_type_name(g, v->type),
			.basename = slu_graph_str(g, v->basename),
			.id = v->id,
			.rank = v->rank,
			.size = v->size,
			.exclusive = x->exclusive,
			.path = l->paths.n,
			.npaths = 1,
		};

		slu_buf_reset(&b);
		slu_graph_name_put(g, x->v, &b);
		y.name = slu_arena_strndup(&l->text, b.p, b.n);
		slu_buf_reset(&b);
		slu_graph_path_put(g, x->v, 0, &b);
		slu_vec_push(&l->paths,
			     (struct slu_listing_path){ "containment",
							slu_arena_strndup(&l->text, b.p, b.n) });
		slu_map_put(&at, x->v, l->v.n);
		slu_vec_push(&l->v, y);
	}
	for (uint32_t i = 0; i < s->o.ends.n; i += 2)
		slu_vec_push(&l->e, (struct slu_listing_edge){
					    (uint32_t)*slu_map_get(&at, s->o.ends.p[i]),
					    (uint32_t)*slu_map_get(&at, s->o.ends.p[i + 1]) });
	l->has_edges = s->o.ends.n;
	slu_map_done(&at);
	slu_buf_done(&b);
}

static struct slu_match_result update(struct side *s, const struct slu_listing *l, int64_t job,
				      const struct slu_match_result *when)
{
	struct slu_sink sink = { &ops, &s->o };
	struct slu_match_result res = { .code = -1 };

	forget(s);
	if (slu_match_update(s->m, l, job, when->at_s, when->end_s - when->at_s, false, &sink,
			     &res) < 0)
		ok(false, "an update returns an answer");
	return res;
}

/* --- the properties --- */

typedef SLU_VEC(struct held) held_list;

/* Is the machine over its size anywhere, now that these are added? */
static bool over(const held_list *all, const struct slu_graph *g, uint32_t from)
{
	for (uint32_t i = from; i < all->n; i++) {
		const struct held *h = &all->p[i];

		/* The load changes only where a booking begins. */
		for (uint32_t k = 0; k < all->n; k++) {
			int64_t t = SLU_MAX(h->from, all->p[k].from), sum = 0;

			if (all->p[k].v != h->v || t >= h->until)
				continue;
			for (uint32_t q = 0; q < all->n; q++)
				if (all->p[q].v == h->v && all->p[q].from <= t &&
				    t < all->p[q].until)
					sum += all->p[q].needs;
			if (sum > g->v.p[h->v].size)
				return true;
		}
	}
	return false;
}

static bool same(const struct side *a, const struct slu_match_result *ra, const struct side *b,
		 const struct slu_match_result *rb)
{
	return ra->code == rb->code && strcmp(ra->messages, rb->messages) == 0 &&
	       ra->at_s == rb->at_s && ra->end_s == rb->end_s &&
	       strcmp(slu_buf_str(&a->o.text), slu_buf_str(&b->o.text)) == 0;
}

static bool history(uint64_t seed)
{
	struct slu_rng r = { seed };
	struct slu_graph *g = machine(&r);
	const char *policy = policies[slu_rng_below(&r, SLU_LEN(policies))];
	struct side fast, plain, fresh;
	held_list all = { 0 };
	SLU_VEC(int64_t) jobs = { 0 };
	bool good = true, down = false;
	const char *filter;
	uint32_t duration;
	char *s;

	filter = filters[slu_rng_below(&r, SLU_LEN(filters))];
	open_side(&fast, g, policy, filter, false);
	open_side(&plain, g, policy, filter, true);
	for (int step = 1; step <= 60 && good; step++) {
		uint32_t what = (uint32_t)slu_rng_below(&r, 10);
		struct slu_match_result a, b;

		if (what < 3 && jobs.n) {
			uint32_t k = (uint32_t)slu_rng_below(&r, jobs.n);
			uint32_t n = 0;

			slu_match_cancel(fast.m, jobs.p[k], &a);
			slu_match_cancel(plain.m, jobs.p[k], &b);
			good = a.code == 0 && b.code == 0 && a.preorder == b.preorder;
			for (uint32_t i = 0; i < all.n; i++)
				if (all.p[i].job != jobs.p[k])
					all.p[n++] = all.p[i];
			all.n = n;
			jobs.p[k] = jobs.p[--jobs.n];
			continue;
		}
		if (what == 3) {
			uint32_t v = 1 + (uint32_t)slu_rng_below(&r, g->v.n - 1);
			enum slu_status st = slu_rng_below(&r, 2) ? SLU_UP : SLU_DOWN;

			slu_match_status_set(fast.m, v, st);
			slu_match_status_set(plain.m, v, st);
			down = down || st == SLU_DOWN;
			continue;
		}
		s = spec(&r, &duration);
		{
			enum slu_match_op op = (enum slu_match_op)slu_rng_below(&r, 6);
			bool books = op < SLU_MATCH_SATISFIABILITY;
			uint32_t from = all.n;

			a = run(&fast, op, s, step);
			b = run(&plain, op, s, step);
			good = same(&fast, &a, &plain, &b);
			if (!good)
				printf("# step %d op %d policy %s: %d@%" PRId64
				       " %s\n# and %d@%" PRId64 " %s\n# %s\n",
				       step, op, policy, a.code, a.at_s, slu_buf_str(&fast.o.text),
				       b.code, b.at_s, slu_buf_str(&plain.o.text), s);
			if (good && books && !a.code) {
				slu_vec_push(&jobs, (int64_t)step);
				for (uint32_t i = 0; i < fast.o.now.n; i++) {
					struct held h = fast.o.now.p[i];

					h.job = step;
					h.from = a.at_s;
					h.until = a.end_s;
					slu_vec_push(&all, h);
				}
				if (slu_rng_below(&r, 6) == 0) {
					/* Forget it and register it again, as after a restart. */
					struct slu_listing l;
					struct slu_match_result ra, rb;

					list(&fast, &l);
					slu_match_cancel(fast.m, step, &ra);
					slu_match_cancel(plain.m, step, &rb);
					ra = update(&fast, &l, step, &a);
					rb = update(&plain, &l, step, &a);
					good = same(&fast, &ra, &plain, &rb);
					if (!good || ra.code)
						printf("# step %d policy %s: update %d %s%s\n# and %d %s\n",
						       step, policy, ra.code, ra.messages,
						       slu_buf_str(&fast.o.text), rb.code,
						       slu_buf_str(&plain.o.text));
					good = good && !ra.code;
					slu_listing_done(&l);
				}
				if (over(&all, g, from)) {
					printf("# step %d policy %s: a vertex is over its size\n",
					       step, policy);
					good = false;
				}
			}
		}
		slu_free(s);
	}
	/* Everything back: the next answers are those of a new machine. */
	for (uint32_t i = 0; i < jobs.n && good; i++) {
		struct slu_match_result a;

		slu_match_cancel(fast.m, jobs.p[i], &a);
		good = a.code == 0 && !slu_match_has_job(fast.m, jobs.p[i]);
	}
	open_side(&fresh, g, policy, filter, true);
	for (int i = 0; i < 6 && good && !down && strncmp(policy, "first", 5) != 0; i++) {
		struct slu_match_result a, b;

		s = spec(&r, &duration);
		a = run(&fast, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, s, 1000 + i);
		b = run(&fresh, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, s, 1000 + i);
		good = same(&fast, &a, &fresh, &b);
		if (!good)
			printf("# not as new after all was cancelled, policy %s\n", policy);
		slu_free(s);
	}
	close_side(&fresh);
	close_side(&fast);
	close_side(&plain);
	slu_vec_done(&all);
	slu_vec_done(&jobs);
	slu_graph_free(g);
	return good;
}

/* Whole nodes only: a count of free nodes per second says when a job can start. */
#define NODES   7
#define HORIZON 400

static bool earliest(uint64_t seed)
{
	struct slu_rng r = { seed };
	struct slu_graph *g = slu_graph_new();
	uint32_t root = add(g, SLU_NONE, "cluster", 0, 1);
	const char *policy = policies[slu_rng_below(&r, SLU_LEN(policies))];
	int used[NODES][HORIZON] = { 0 };
	struct side s;
	bool good = true;

	for (int i = 0; i < NODES; i++) {
		uint32_t node = add(g, root, "node", i, 1);

		add(g, node, "core", 0, 1);
		add(g, node, "core", 1, 1);
	}
	open_side(&s, g, policy, NULL, false);
	for (int job = 1; job <= 14 && good; job++) {
		uint32_t n = 1 + (uint32_t)slu_rng_below(&r, NODES),
			 d = 1 + (uint32_t)slu_rng_below(&r, 20);
		struct slu_match_result res;
		char text[512];
		int64_t t, expect = -1;

		snprintf(
			text, sizeof text,
			"version: 1\nresources: [{type: node, count: %u, with: [{type: slot, count: 1, "
			"label: a, with: [{type: core, count: 2}]}]}]\nattributes: {system: {duration: "
			"%u}}\ntasks: [{command: [x], slot: a, count: {per_slot: 1}}]\n",
			n, d);
		res = run(&s, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, text, job);
		for (t = 0; t + d < HORIZON && expect < 0; t++) {
			uint32_t free_nodes = 0;

			for (int i = 0; i < NODES; i++) {
				bool busy = false;

				for (int64_t q = t; q < t + d; q++)
					busy = busy || used[i][q];
				free_nodes += !busy;
			}
			if (free_nodes >= n)
				expect = t;
		}
		good = !res.code && res.at_s == expect;
		if (!good)
			printf("# job %d of %u nodes for %u: %d at %" PRId64 ", expected %" PRId64
			       "\n",
			       job, n, d, res.code, res.at_s, expect);
		for (uint32_t i = 0; i < s.o.now.n && good; i++) {
			uint32_t v = s.o.now.p[i].v;

			/* Vertices: 0 cluster, then node, core, core, ... */
			if ((v - 1) % 3 == 1)
				for (int64_t q = res.at_s; q < res.end_s; q++)
					used[(v - 1) / 3][q] = 1;
		}
	}
	close_side(&s);
	slu_graph_free(g);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 150;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	uint32_t bad = 0, late = 0;

	for (uint64_t seed = first; seed < first + rounds && bad < 5; seed++)
		if (!history(seed)) {
			ok(false, "history of seed %" PRIu64, seed);
			bad++;
		}
	ok(!bad, "%" PRIu64 " histories: fast as plain, never over, as new after cancel", rounds);
	for (uint64_t seed = first; seed < first + rounds && late < 5; seed++)
		if (!earliest(seed)) {
			ok(false, "reservations of seed %" PRIu64, seed);
			late++;
		}
	ok(!late, "%" PRIu64 " plans: every reservation starts as early as it can", rounds);
	return tap_done();
}
