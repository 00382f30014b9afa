#include "gang/gang.h"
#include "tap.h"

enum { CPU = 1, MEM };

/* `n` nodes of `cpu` cpus and `mem` bytes in racks of `rack`. */
static struct slu_machine *machine(uint32_t n, int64_t cpu, int64_t mem, uint32_t rack)
{
	struct slu_machine *m = slu_machine_new();
	char name[32], dom[32];

	if (!m || slu_machine_resource(m, "cpu") != CPU ||
	    slu_machine_resource(m, "memory") != MEM || slu_machine_level(m, "rack") != 0) {
		slu_machine_free(m);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct slu_amount total[] = { { CPU, cpu }, { MEM, mem } };
		const char *domain[] = { dom };
		struct slu_node_spec s = { .name = name,
					   .rank = i,
					   .total = total,
					   .n_total = 2,
					   .domain = domain,
					   .n_domain = 1 };

		snprintf(name, sizeof name, "n%u", i);
		snprintf(dom, sizeof dom, "r%u", i / rack);
		if (slu_machine_node_add(m, &s, NULL, NULL) < 0) {
			slu_machine_free(m);
			return NULL;
		}
	}
	return m;
}

/* One role: n slots of so many cpus for so long. */
static struct slu_amount need_buf[1];
static struct slu_gang_role role_buf;
static struct slu_gang_req gang(uint32_t n, int64_t cpu, int64_t dur)
{
	need_buf[0] = (struct slu_amount){ CPU, cpu };
	role_buf = (struct slu_gang_role){ .min = n, .need = need_buf, .n_need = 1 };
	return (struct slu_gang_req){
		.role = &role_buf, .n_role = 1, .level = -1, .duration_s = dur
	};
}

static const char *shown(const struct slu_machine *m, const struct slu_gang_place *p)
{
	static char buf[1024];
	int n = snprintf(buf, sizeof buf, "@%" PRId64, p->start_s);

	for (uint32_t i = 0; i < p->n && n < 900; i++)
		n += snprintf(buf + n, sizeof buf - (size_t)n, " %s%s*%u",
			      p->part[i].role ? "+" : "", slu_machine_node_name(m, p->part[i].node),
			      p->part[i].slots);
	return buf;
}

static struct slu_gang_place place;

/* Match, compare the answer and the placement ("" where there is none). */
static bool expect(struct slu_machine *m, enum slu_gang_op op, int64_t now, uint64_t job,
		   const struct slu_gang_req *q, int want, const char *text)
{
	struct slu_error err = { 0 };
	int rc = slu_gang_match(m, op, now, job, q, &place, &err);
	const char *got = rc == SLU_GANG_NOW || rc == SLU_GANG_LATER ? shown(m, &place) : "";

	if (rc == want && !strcmp(got, text))
		return true;
	printf("# got %d \"%s\" (%s), want %d \"%s\"\n", rc, got, err.text, want, text);
	return false;
}

static void test_time(void)
{
	struct slu_machine *m = machine(4, 4, 100, 2);
	struct slu_gang_req q = gang(6, 1, 10);
	struct slu_gang_info info;

	ok(expect(m, SLU_GANG_ALLOCATE, 100, 1, &q, SLU_GANG_NOW, "@100 n0*4 n1*2"),
	   "first fills nodes in order");
	ok(slu_gang_match(m, SLU_GANG_ALLOCATE, 100, 1, &q, NULL, NULL) == -EEXIST,
	   "a job id is booked once");
	q = gang(12, 1, 10);
	ok(expect(m, SLU_GANG_ALLOCATE, 100, 2, &q, SLU_GANG_BUSY, ""), "12 of 10 do not fit now");
	ok(expect(m, SLU_GANG_TRY_LATER, 100, 0, &q, SLU_GANG_LATER, "@110 n0*4 n1*4 n2*4"),
	   "a question about later books nothing");
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 100, 2, &q, SLU_GANG_LATER,
		  "@110 n0*4 n1*4 n2*4"),
	   "reserved for the moment the first ends");
	q = gang(6, 1, 10);
	ok(expect(m, SLU_GANG_ALLOCATE, 100, 3, &q, SLU_GANG_NOW, "@100 n1*2 n2*4"),
	   "a short one slips in front");
	q = gang(5, 1, 11);
	ok(expect(m, SLU_GANG_ALLOCATE, 100, 4, &q, SLU_GANG_BUSY, ""),
	   "a long one would delay the reservation");
	q = gang(4, 1, 0);
	ok(expect(m, SLU_GANG_ALLOCATE, 100, 4, &q, SLU_GANG_NOW, "@100 n3*4"),
	   "a gang without limit goes to a node that no reservation needs");
	q = gang(13, 1, 5);
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 100, 5, &q, SLU_GANG_BUSY, ""),
	   "behind endless work there is no time, but it could run");
	q = gang(17, 1, 5);
	ok(expect(m, SLU_GANG_ALLOCATE_SAT, 100, 5, &q, SLU_GANG_NEVER, ""), "17 of 16 never fit");
	ok(slu_gang_start(m, 104, 2) == 0, "slu_gang_start() starts a reserved gang early");
	ok(slu_gang_info(m, 2, &info, NULL) == 0 && info.state == SLU_GANG_RUNNING &&
		   info.start_s == 104 && info.end_s == 114,
	   "a gang that is started early keeps its length");
	ok(slu_machine_node_free(m, slu_machine_node_find(m, "n0"), CPU) == -4,
	   "an overbooked node says so");
	ok(slu_gang_cancel(m, 1) == 0 && slu_gang_cancel(m, 1) == -ENOENT,
	   "a gang is cancelled once");
	slu_machine_free(m);
}

/* Behind many full nodes: scanned the first time, indexed the next, the same answer. */
static void test_full_front(void)
{
	struct slu_machine *m = machine(200, 4, 100, 200);
	struct slu_gang_req q = gang(200, 2, 10);

	ok(slu_gang_match(m, SLU_GANG_ALLOCATE, 0, 1, &q, NULL, NULL) == SLU_GANG_NOW,
	   "the first hundred nodes are full");
	q = gang(4, 1, 10);
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 2, &q, SLU_GANG_NOW, "@0 n100*4") &&
		   expect(m, SLU_GANG_ALLOCATE, 0, 3, &q, SLU_GANG_NOW, "@0 n101*4") &&
		   expect(m, SLU_GANG_ALLOCATE, 0, 4, &q, SLU_GANG_NOW, "@0 n102*4"),
	   "the first free ones come next");
	slu_machine_free(m);
}

static void test_overrun(void)
{
	struct slu_machine *m = machine(1, 4, 100, 1);
	struct slu_gang_req q = gang(4, 1, 10), r = gang(4, 1, 10);

	ok(expect(m, SLU_GANG_ALLOCATE, 0, 1, &q, SLU_GANG_NOW, "@0 n0*4"),
	   "a gang of four slots fills the machine");
	ok(expect(m, SLU_GANG_TRY_LATER, 15, 0, &r, SLU_GANG_LATER, "@16 n0*4"),
	   "overrunning work is expected to end any second");
	ok(slu_gang_set_end(m, 1, 40) == 0, "running work may get a later end");
	ok(expect(m, SLU_GANG_TRY_LATER, 15, 0, &r, SLU_GANG_LATER, "@40 n0*4"),
	   "the plan follows the later end");
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 15, 2, &r, SLU_GANG_LATER, "@40 n0*4"),
	   "a gang that does not fit now is reserved");
	ok(slu_gang_cancel(m, 1) == 0, "a gang ends early");
	ok(expect(m, SLU_GANG_ALLOCATE, 41, 3, &r, SLU_GANG_BUSY, ""),
	   "a reservation that is due holds its nodes");
	slu_machine_free(m);
}

static void test_policies(void)
{
	static const struct {
		enum slu_gang_policy policy;
		const char *where;
	} row[] = {
		/* free cpus: n0 1, n1 4, n2 2, n3 0, n4 4, n5 4 */
		{ SLU_GANG_FIRST, "@0 n0*1 n1*3" },
		{ SLU_GANG_LOW, "@0 n0*1 n1*3" },
		{ SLU_GANG_LONODE, "@0 n0*1 n1*3" },
		{ SLU_GANG_HIGH, "@0 n5*4" },
		{ SLU_GANG_HINODE, "@0 n5*4" },
		{ SLU_GANG_FIRSTNODEX, "@0 n1*4" },
		{ SLU_GANG_LONODEX, "@0 n1*4" },
		{ SLU_GANG_HINODEX, "@0 n5*4" },
		{ SLU_GANG_LOCALITY, "@0 n1*4" },
		{ SLU_GANG_PACK, "@0 n0*1 n2*2 n1*1" },
		{ SLU_GANG_SPREAD, "@0 n1*1 n4*1 n5*1 n2*1" },
	};
	static const uint32_t used[] = { 3, 0, 2, 4 };
	struct slu_machine *m = machine(6, 4, 100, 3);
	struct slu_gang_req q;

	for (uint32_t i = 0; i < SLU_LEN(used); i++) {
		struct slu_gang_part part = { slu_machine_node_at(m, i), 0, used[i] };
		struct slu_gang_booking b = { .job = 100 + i,
					      .end_s = 50,
					      .role = &role_buf,
					      .n_role = 1,
					      .part = &part,
					      .n_part = 1 };

		q = gang(1, 1, 10);
		if (used[i] && slu_gang_register(m, 0, &b, NULL) < 0)
			ok(false, "running work is registered");
	}
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		q = gang(4, 1, 10);
		q.policy = row[i].policy;
		ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, row[i].where),
		   "policy %s chooses its nodes", slu_gang_policy_name(row[i].policy));
		ok(slu_gang_policy_find(slu_gang_policy_name(row[i].policy)) == (int)row[i].policy,
		   "the name of the policy is known");
	}
	q = gang(9, 1, 10);
	q.policy = SLU_GANG_SPREAD;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n1*2 n4*2 n5*2 n2*2 n0*1"),
	   "spread lays whole layers first");
	q = gang(6, 1, 10);
	q.policy = SLU_GANG_LOCALITY;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n1*4 n2*2"),
	   "the shortest stretch, the first of two equally long ones");
	ok(slu_gang_policy_find("best") == -EINVAL, "an unknown policy is refused");
	slu_machine_free(m);
}

static void test_constraints(void)
{
	struct slu_machine *m = machine(6, 4, 100, 3);
	struct slu_nodeset *odd = slu_nodeset_new(6);
	int32_t score[] = { 0, 0, 0, 5, 9, 0 };
	struct slu_gang_req q = gang(3, 1, 10);

	for (uint32_t i = 1; i < 6; i += 2)
		slu_nodeset_add(odd, i);
	role_buf.nodes = odd;
	role_buf.flags = SLU_ROLE_ALONE;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n1*1 n3*1 n5*1"),
	   "SLU_ROLE_ALONE puts one slot on each eligible node");
	role_buf.min = 4;
	ok(slu_gang_satisfiable(m, &q, NULL) == SLU_GANG_NEVER,
	   "four slots on three eligible nodes, one per node, can never run");
	slu_nodeset_add(odd, 0);
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n0*1 n1*1 n3*1 n5*1"),
	   "a set that grew is noticed");
	q = gang(3, 1, 10);
	q.nodes = odd;
	role_buf.prefer = odd;
	role_buf.score = score;
	role_buf.n_score = SLU_LEN(score);
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n3*3"),
	   "the score decides among the queue's nodes");
	q.nodes = NULL;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n4*3"),
	   "a score comes before the preference");
	role_buf.score = NULL;
	role_buf.prefer = odd;
	slu_nodeset_del(odd, 0);
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n1*3"),
	   "preferred nodes are used first");
	q = gang(9, 1, 10);
	q.level = 0;
	q.flags = SLU_GANG_CLOSE_REQUIRED;
	slu_machine_node_set_down(m, slu_machine_node_find(m, "n1"), true);
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n3*4 n4*4 n5*1") && place.close,
	   "a gang that must be close gets all its slots in one rack");
	slu_machine_node_set_cordoned(m, slu_machine_node_find(m, "n4"), true);
	ok(expect(m, SLU_GANG_ALLOCATE_SAT, 0, 1, &q, SLU_GANG_BUSY, ""),
	   "no rack has room while nodes are down");
	q.flags = 0;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n0*4 n2*4 n3*1") && !place.close,
	   "preferred closeness gives way");
	q = gang(13, 1, 10);
	q.level = 0;
	q.flags = SLU_GANG_CLOSE_REQUIRED;
	ok(slu_gang_satisfiable(m, &q, NULL) == SLU_GANG_NEVER, "13 never fit a rack of 12");
	slu_nodeset_unref(odd);
	slu_machine_free(m);
}

static void test_whole_nodes(void)
{
	struct slu_machine *m = machine(3, 4, 100, 3);
	struct slu_gang_part part = { slu_machine_node_at(m, 0), 0, 1 };
	struct slu_gang_booking daemon = { .job = 1,
					   .end_s = SLU_FOREVER,
					   .role = &role_buf,
					   .n_role = 1,
					   .part = &part,
					   .n_part = 1,
					   .flags = SLU_BOOK_BACKGROUND };
	struct slu_gang_req q = gang(1, 1, 0);

	ok(slu_gang_register(m, 0, &daemon, NULL) == 0, "a daemon on the first node");
	q = gang(3, 1, 10);
	role_buf.flags = SLU_ROLE_EXCLUSIVE;
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 2, &q, SLU_GANG_NOW, "@0 n0*3"),
	   "a whole node in spite of the daemon, slots share it");
	q = gang(1, 1, 10);
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 3, &q, SLU_GANG_NOW, "@0 n1*1"),
	   "no other gang is placed on a whole node");
	role_buf.flags = SLU_ROLE_EXCLUSIVE | SLU_ROLE_ALONE;
	role_buf.min = 2;
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 0, 4, &q, SLU_GANG_LATER, "@10 n0*1 n1*1"),
	   "two whole nodes when the others are done");
	slu_machine_free(m);
}

static void test_mixed(void)
{
	struct slu_machine *m = machine(3, 4, 100, 3);
	struct slu_amount one[] = { { CPU, 1 } }, four[] = { { CPU, 4 } };
	struct slu_gang_role role[] = {
		{ .name = "launcher", .min = 1, .need = one, .n_need = 1 },
		{ .name = "worker", .min = 2, .max = 4, .need = four, .n_need = 1 },
	};
	struct slu_gang_req q = { .role = role, .n_role = 2, .level = -1, .duration_s = 10 };

	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n0*1 +n1*1 +n2*1"),
	   "launcher and workers are placed together");
	role[1].min = 3;
	ok(expect(m, SLU_GANG_ALLOCATE_SAT, 0, 1, &q, SLU_GANG_NEVER, ""),
	   "three workers never fit beside the launcher");
	role[0].min = 2;
	role[1] = (struct slu_gang_role){ .min = 1, .max = 9, .need = one, .n_need = 1 };
	q.max = 8;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n0*2 +n0*2 +n1*4"),
	   "elastic roles fill up to the size of the gang");
	role[0] = (struct slu_gang_role){ .min = 2, .max = 20, .need = one, .n_need = 1 };
	q.n_role = 1;
	q.max = 0;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n0*4 n1*4 n2*4"),
	   "an elastic role takes what is there");
	slu_machine_free(m);
}

/* Two roles that compete: the greedy orders both fail, only a search finds the way. */
static void test_mixed_search(void)
{
	struct slu_machine *m = slu_machine_new();
	struct slu_amount a[] = { { CPU, 2 }, { MEM, 1 } }, b[] = { { CPU, 1 }, { MEM, 2 } };
	struct slu_gang_role role[] = {
		{ .min = 2, .need = a, .n_need = 2 },
		{ .min = 2, .need = b, .n_need = 2 },
	};
	struct slu_gang_req q = { .role = role, .n_role = 2, .level = -1, .duration_s = 10 };

	slu_machine_resource(m, "cpu");
	slu_machine_resource(m, "memory");
	for (int i = 0; i < 2; i++) {
		struct slu_amount total[] = { { CPU, i ? 3 : 4 }, { MEM, i ? 3 : 4 } };
		struct slu_node_spec s = {
			.name = i ? "y" : "x", .rank = i, .total = total, .n_total = 2
		};

		slu_machine_node_add(m, &s, NULL, NULL);
	}
	/* x holds a+a or a+b or b+b, y holds a+b: only one of each on both nodes will do. */
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 x*1 y*1 +x*1 +y*1"),
	   "a search finds the only way to place both roles");
	slu_machine_free(m);
}

static void test_release(void)
{
	struct slu_machine *m = machine(3, 4, 100, 3);
	struct slu_gang_req q = gang(10, 1, 10);
	slu_node n0 = slu_machine_node_find(m, "n0"), n2 = slu_machine_node_find(m, "n2");
	struct slu_gang_info info;

	ok(expect(m, SLU_GANG_ALLOCATE, 0, 1, &q, SLU_GANG_NOW, "@0 n0*4 n1*4 n2*2"),
	   "a role asks for ten slots");
	ok(slu_gang_release(m, 1, 0, n0, 3) == 7, "three slots of a gang end");
	ok(slu_gang_release(m, 1, 0, n0, 2) == -EINVAL,
	   "a node with one slot left cannot release two");
	ok(slu_gang_release(m, 1, 0, n0, 1) == 6 && slu_gang_release(m, 1, 0, n0, 1) == -ENOENT,
	   "a second release of the last slot on a node is refused");
	ok(slu_machine_node_free(m, n0, CPU) == 4, "the share of released slots is free");
	q = gang(3, 1, 99);
	ok(slu_gang_grow(m, 2, 1, &q, &place, NULL) == SLU_GANG_NOW &&
		   !strcmp(shown(m, &place), "@2 n0*3") && place.end_s == 10,
	   "three more until its end: %s", shown(m, &place));
	q = gang(4, 1, 99);
	ok(slu_gang_grow(m, 2, 1, &q, &place, NULL) == SLU_GANG_BUSY,
	   "a gang cannot grow by more slots than fit");
	q = gang(1, 2, 99);
	ok(slu_gang_grow(m, 2, 1, &q, &place, NULL) == -EINVAL,
	   "a gang cannot grow by slots of another request");
	ok(slu_gang_shrink(m, 1, 0, 4, &place) == 0 && !strcmp(shown(m, &place), "@0 n0*3 n2*1"),
	   "four fewer, last placed first: %s", shown(m, &place));
	ok(slu_gang_info(m, 1, &info, &place) == 0 && info.slots == 5 &&
		   !strcmp(shown(m, &place), "@0 n1*4 n2*1"),
	   "five are left: %s", shown(m, &place));
	ok(slu_machine_node_remove(m, n2) == 0 && !slu_machine_node_is(m, n2) &&
		   slu_gang_info(m, 1, &info, NULL) == 0 && info.slots == 4,
	   "a node goes, and its share");
	ok(slu_gang_shrink(m, 1, 0, 4, NULL) == 0 && slu_gang_info(m, 1, &info, NULL) == -ENOENT,
	   "a gang without slots is gone");
	slu_machine_free(m);
}

/* More slots keep the distance that the job asked for, also from those it has. */
static void test_grow_apart(void)
{
	struct slu_machine *m = machine(3, 4, 100, 3);
	struct slu_amount need = { CPU, 1 };
	struct slu_gang_role role[2] = {
		{ .min = 1, .need = &need, .n_need = 1, .flags = SLU_ROLE_APART, .apart = 3 },
		{ .min = 2, .need = &need, .n_need = 1 },
	};
	struct slu_gang_req q = { .role = role, .n_role = 2, .level = -1, .duration_s = 10 };

	ok(expect(m, SLU_GANG_ALLOCATE, 0, 1, &q, SLU_GANG_NOW, "@0 n0*1 +n1*2"),
	   "two roles share no node");
	role[1].min = role[1].max = 0;
	ok(slu_gang_grow(m, 1, 1, &q, &place, NULL) == SLU_GANG_NOW &&
		   !strcmp(shown(m, &place), "@1 n2*1"),
	   "one more of the role that is alone has a node without either: %s", shown(m, &place));
	ok(slu_gang_grow(m, 1, 1, &q, &place, NULL) == SLU_GANG_BUSY, "no further node is free");
	slu_machine_free(m);
}

/* A node goes with what runs there, and comes back with it. */
static void test_regain(void)
{
	struct slu_machine *m = machine(2, 4, 100, 2);
	struct slu_gang_req q = gang(8, 1, 10);
	struct slu_amount total[] = { { CPU, 3 }, { MEM, 100 } };
	struct slu_node_spec small = { .name = "n1", .total = total, .n_total = 2 };
	slu_node n0 = slu_machine_node_find(m, "n0"), n1 = slu_machine_node_find(m, "n1");
	struct slu_gang_part part = { .slots = 4 };
	struct slu_gang_info info;

	ok(expect(m, SLU_GANG_ALLOCATE, 0, 1, &q, SLU_GANG_NOW, "@0 n0*4 n1*4"),
	   "a gang fills two nodes");
	slu_machine_node_remove(m, n1);
	ok(slu_gang_give_back(m, 1, 0, n0, 4) == 0 && slu_gang_info(m, 1, &info, NULL) == 0 &&
		   info.slots == 0,
	   "nothing is left of the job, but for what went with the node");
	slu_machine_node_add(m, &small, &n1, NULL);
	part.node = n1;
	part.role = 1;
	ok(slu_gang_regain(m, 1, 1, &part, 1, NULL) == -EINVAL,
	   "regain: a role that the job does not have is refused");
	ok(slu_gang_regain(m, 1, 2, &part, 1, NULL) == -ENOENT,
	   "cancelling an unknown job is refused");
	part.role = 0;
	ok(slu_gang_regain(m, 1, 1, &part, 1, NULL) == 0 &&
		   slu_gang_info(m, 1, &info, &place) == 0 && !strcmp(shown(m, &place), "@0 n1*4"),
	   "regain: the job has its slots again: %s", shown(m, &place));
	ok(slu_machine_node_free(m, n1, CPU) == -1, "the node came back smaller, and is overfull");
	ok(slu_gang_release(m, 1, 0, n1, 4) == 0 && slu_gang_info(m, 1, &info, NULL) == -ENOENT,
	   "regain: the job ends with its last slots");
	slu_machine_free(m);
}

static void test_blocks(void)
{
	struct slu_machine *m = machine(2, 4, 100, 2);
	struct slu_nodeset *set = slu_nodeset_new(2);
	struct slu_gang_block b = { .id = 50, .from_s = 10, .to_s = 20, .nodes = set };
	struct slu_amount two = { CPU, 2 };
	struct slu_gang_req q = gang(6, 1, 15);
	uint64_t use = 50;

	slu_nodeset_add(set, 0);
	ok(slu_gang_block_add(m, 0, &b, NULL) == 0, "a node is taken from 10 to 20");
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 0, 1, &q, SLU_GANG_LATER, "@20 n0*4 n1*2"),
	   "a gang is planned after the block");
	q.duration_s = 10;
	ok(expect(m, SLU_GANG_TRY, 0, 0, &q, SLU_GANG_NOW, "@0 n0*4 n1*2"),
	   "a short gang starts before the block");
	q.duration_s = 15;
	q.use = &use;
	q.n_use = 1;
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 2, &q, SLU_GANG_NOW, "@0 n0*4 n1*2"),
	   "a gang that may use the block starts in it");
	slu_gang_cancel(m, 1);
	slu_gang_cancel(m, 2);
	slu_machine_advance(m, 20);
	ok(slu_gang_cancel(m, 50) == -ENOENT, "a block ends by itself");
	b = (struct slu_gang_block){
		.id = 51, .from_s = 30, .to_s = 40, .nodes = set, .amount = &two, .n_amount = 1
	};
	slu_gang_block_add(m, 20, &b, NULL);
	q = gang(3, 1, 10);
	q.begin_s = 30;
	use = 51;
	q.use = &use;
	q.n_use = 1;
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 20, 3, &q, SLU_GANG_LATER, "@30 n0*3"),
	   "three slots, two of them from the block");
	q.n_use = 0;
	q.begin_s = 30;
	role_buf.min = 6;
	ok(expect(m, SLU_GANG_TRY_LATER, 20, 0, &q, SLU_GANG_LATER, "@40 n0*4 n1*2"),
	   "the others see block and guest as one");
	role_buf.min = 5;
	ok(expect(m, SLU_GANG_TRY_LATER, 20, 0, &q, SLU_GANG_LATER, "@30 n0*1 n1*4"),
	   "a later gang gets what is left beside earlier ones");
	slu_nodeset_unref(set);
	slu_machine_free(m);
}

static void test_time_fit(void)
{
	/* Counting EASY on 6 interchangeable cpus: 2 run until 10, the head wants 5 at 10, so one
	 * cpu is extra: a long job of 1 may start, and a short one takes the reserved cpus. */
	struct slu_machine *m = machine(6, 1, 100, 6);
	struct slu_gang_req q = gang(2, 1, 10);

	q.flags = SLU_GANG_TIME_FIT;
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 1, &q, SLU_GANG_NOW, "@0 n0*1 n1*1"), "two gangs run");
	q = gang(5, 1, 10);
	q.flags = SLU_GANG_TIME_FIT;
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 0, 2, &q, SLU_GANG_LATER,
		  "@10 n0*1 n1*1 n2*1 n3*1 n4*1"),
	   "the head takes what is not free yet first");
	q = gang(3, 1, 10);
	q.flags = SLU_GANG_TIME_FIT;
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 3, &q, SLU_GANG_NOW, "@0 n2*1 n3*1 n4*1"),
	   "short work takes nodes that a later job will use");
	q = gang(1, 1, 99);
	q.flags = SLU_GANG_TIME_FIT;
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 4, &q, SLU_GANG_NOW, "@0 n5*1"),
	   "long work runs beside the reservation");
	slu_machine_free(m);
}

static void test_explain(void)
{
	struct slu_machine *m = machine(4, 4, 8, 2);
	struct slu_gang_req q = gang(10, 1, 30);
	struct slu_gang_why why;

	ok(expect(m, SLU_GANG_ALLOCATE, 0, 7, &q, SLU_GANG_NOW, "@0 n0*4 n1*4 n2*2"),
	   "ten gangs run");
	q = gang(8, 1, 50);
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_RESOURCE &&
		   why.resource == CPU && why.have == 6 && why.slots_now == 6 &&
		   why.answer == SLU_GANG_LATER && why.start_s == 30 && why.n_holder == 1 &&
		   why.holder[0].job == 7 && why.holder[0].amount == 10 && why.fewer_slots == 6,
	   "too little cpu is the limit, with its holder: %s", why.text.text);
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 5, 8, &q, SLU_GANG_LATER, "@30 n0*4 n1*4"),
	   "a gang that does not fit now is reserved");
	ok(expect(m, SLU_GANG_ALLOCATE_OR_RESERVE, 5, 9, &q, SLU_GANG_LATER, "@30 n2*4 n3*4"),
	   "another gang of the same size is planned beside it");
	q = gang(6, 1, 40);
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_TIME &&
		   why.shorter_s == 25 && why.holder[0].start_s == 30,
	   "a reservation in the way is the limit: %s", why.text.text);
	q = gang(5, 1, 10);
	q.level = 0;
	q.flags = SLU_GANG_CLOSE_REQUIRED;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.answer == SLU_GANG_NOW,
	   "a gang that fits in one domain has no limit: %s", why.text.text);
	role_buf.min = 7;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_RESOURCE &&
		   why.fewer_slots == 6,
	   "too little cpu is the limit within domains, too: %s", why.text.text);
	slu_gang_cancel(m, 7);
	q = gang(5, 1, 10);
	ok(expect(m, SLU_GANG_ALLOCATE, 5, 10, &q, SLU_GANG_NOW, "@5 n0*4 n1*1"), "five gangs run");
	q = gang(3, 3, 10);
	q.level = 0;
	q.flags = SLU_GANG_CLOSE_REQUIRED;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.answer == SLU_GANG_NEVER,
	   "a gang larger than every domain can never run: %s", why.text.text);
	slu_machine_node_set_down(m, slu_machine_node_find(m, "n3"), true);
	q = gang(2, 3, 10);
	q.level = 0;
	q.flags = SLU_GANG_CLOSE_REQUIRED;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_CLOSE &&
		   why.without_close && why.fewer_slots == 1,
	   "closeness is the limit: %s", why.text.text);
	q = gang(2, 4, 10);
	role_buf.flags = SLU_ROLE_EXCLUSIVE;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_RESOURCE,
	   "too little cpu is the limit of whole nodes: %s", why.text.text);
	role_buf.need = &(struct slu_amount){ CPU, 2 };
	role_buf.flags = SLU_ROLE_EXCLUSIVE | SLU_ROLE_ALONE;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_EXCLUSIVE,
	   "too few empty nodes are the limit: %s", why.text.text);
	q = gang(4, 1, 10);
	role_buf.flags = SLU_ROLE_ALONE;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_NODES,
	   "too few nodes are the limit: %s", why.text.text);
	q = gang(1, 1, 10);
	q.begin_s = 9;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_BEGIN &&
		   why.start_s == 9,
	   "the begin time is the limit: %s", why.text.text);
	q = gang(1, 1, 10);
	q.deadline_s = 13;
	ok(slu_gang_explain(m, 5, &q, &why, NULL) == 0 && why.limit == SLU_LIMIT_DEADLINE &&
		   why.shorter_s == 8,
	   "the deadline is the limit: %s", why.text.text);
	slu_machine_free(m);
}

static void test_never(void)
{
	static const struct {
		uint32_t n;
		int64_t cpu;
		unsigned flags;
		const char *text;
	} row[] = {
		{ 1, 5, 0,
		  "role 0: one slot needs cpu 5m, the largest of 2 eligible nodes has 4m" },
		{ 9, 1, 0, "role 0: 9 slots requested, 8 fit on 2 eligible nodes when empty" },
		{ 3, 1, SLU_ROLE_ALONE,
		  "role 0: 3 slots requested, 2 fit on 2 eligible nodes when empty, one per node" },
	};
	struct slu_machine *m = machine(2, 4, 8, 2);

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_gang_req q = gang(row[i].n, row[i].cpu, 10);
		struct slu_error err = { 0 };

		role_buf.flags = row[i].flags;
		ok(slu_gang_satisfiable(m, &q, &err) == SLU_GANG_NEVER &&
			   !strcmp(err.text, row[i].text),
		   "a gang that can never run is told why: %s", err.text);
	}
	slu_machine_free(m);
}

static void test_bad_requests(void)
{
	struct slu_machine *m = machine(2, 4, 8, 2);
	struct slu_gang_req q;
	struct slu_error err;
	struct slu_node_spec again = { .name = "n1" };
	struct slu_amount twice[] = { { CPU, 1 }, { CPU, 2 } }, less = { CPU, -1 };

#define REFUSED(change, what)                                                               \
	do {                                                                                \
		q = gang(1, 1, 10);                                                         \
		err.text[0] = 0;                                                            \
		change;                                                                     \
		ok(slu_gang_match(m, SLU_GANG_ALLOCATE, 0, 1, &q, NULL, &err) == -EINVAL && \
			   strstr(err.text, what),                                          \
		   "a request that is wrong is refused: %s", err.text);                     \
	} while (0)
	REFUSED(q.n_role = 0, "1 to 64 roles");
	REFUSED(role_buf.min = 0, "no slots");
	REFUSED(role_buf.min = UINT32_MAX, "more than");
	REFUSED((role_buf.min = 3, role_buf.max = 2), "at least 3 but at most 2");
	REFUSED(q.min = 5, "asks for 5");
	REFUSED(need_buf[0].n = -1, "outside");
	REFUSED(need_buf[0].resource = 9, "there is no resource 9");
	REFUSED(need_buf[0].resource = 0, "there is no resource 0");
	REFUSED((role_buf.need = twice, role_buf.n_need = 2), "twice");
	REFUSED(q.level = 1, "no level 1");
	REFUSED(q.flags = SLU_GANG_CLOSE_REQUIRED, "no level is named");
	REFUSED(q.duration_s = -1, "negative");
	REFUSED((q.duration_s = 0, q.deadline_s = 5), "without limit");
	REFUSED(q.deadline_s = 5, "do not end by 5");
	REFUSED(q.policy = SLU_GANG_POLICIES, "no policy");
	REFUSED(q.n_use = 17, "blocks");
	REFUSED(role_buf.flags = 64, "flags");
	ok(slu_machine_node_add(m, &again, NULL, &err) == -EEXIST,
	   "a second node of one name is refused: %s", err.text);
	again = (struct slu_node_spec){ .name = "n9", .total = &less, .n_total = 1 };
	ok(slu_machine_node_add(m, &again, NULL, &err) == -EINVAL,
	   "a negative amount is refused: %s", err.text);
	less.n = SLU_AMOUNT_MAX + 1;
	ok(slu_machine_node_add(m, &again, NULL, &err) == -ERANGE,
	   "an amount above the largest is refused: %s", err.text);
	again = (struct slu_node_spec){ .name = "n9", .n_domain = 3 };
	ok(slu_machine_node_add(m, &again, NULL, &err) == -EINVAL,
	   "a domain of an unknown level is refused: %s", err.text);
	slu_machine_free(m);
}

static void test_limits_of_names(void)
{
	struct slu_machine *m = machine(1, 4, 8, 1);
	char name[8];
	int rc = 0, n = 0;

	for (; rc >= 0 && n < 100; n++) {
		snprintf(name, sizeof name, "k%d", n);
		rc = slu_machine_resource(m, name);
	}
	ok(rc == -ENOSPC && slu_machine_resources(m) == SLU_RESOURCES_MAX,
	   "a machine has 32 resources, one of them its own");
	ok(slu_machine_node_total(m, slu_machine_node_at(m, 0), CPU) == 4,
	   "rows keep their amounts when they grow");
	for (rc = n = 0; rc >= 0 && n < 100; n++) {
		snprintf(name, sizeof name, "l%d", n);
		rc = slu_machine_level(m, name);
	}
	ok(rc == -ENOSPC && slu_machine_levels(m) == SLU_LEVELS_MAX, "a machine has 8 levels");
	slu_machine_free(m);
}

static void test_churn_of_nodes(void)
{
	struct slu_machine *m = machine(3, 4, 8, 3);
	slu_node old = slu_machine_node_find(m, "n1");
	struct slu_amount total = { CPU, 8 };
	struct slu_node_spec s = { .name = "n7", .rank = -1, .total = &total, .n_total = 1 };
	struct slu_gang_req q = gang(9, 1, 10);
	slu_node node;

	slu_machine_node_remove(m, old);
	ok(slu_machine_node_add(m, &s, &node, NULL) == 0 &&
		   slu_node_index(node) == slu_node_index(old) && node != old &&
		   !slu_machine_node_is(m, old),
	   "an index is used again, the handle is another");
	ok(expect(m, SLU_GANG_ALLOCATE, 0, 1, &q, SLU_GANG_NOW, "@0 n7*8 n0*1"),
	   "the lowest rank comes first");
	total.n = 2;
	ok(slu_machine_node_resize(m, node, &total, 1, NULL) == 0 &&
		   slu_machine_node_free(m, node, CPU) == -6,
	   "a node that shrinks below its jobs has negative room");
	ok(slu_machine_node_find(m, "n1") == SLU_NODE_NONE &&
		   slu_machine_node_find(m, "n7") == node,
	   "names follow their nodes");
	slu_machine_free(m);
}

/* Everything once, with every allocation made to fail in turn. */
static int scenario(void)
{
	struct slu_machine *m = machine(3, 4, 8, 2), *c = NULL;
	struct slu_nodeset *set = slu_nodeset_new(3);
	struct slu_gang_place p = { 0 };
	struct slu_gang_why why;
	struct slu_gang_req q;
	struct slu_gang_part part = { 0, 0, 1 };
	struct slu_gang_booking b = { .job = 9,
				      .start_s = 5,
				      .end_s = 9,
				      .role = &role_buf,
				      .n_role = 1,
				      .part = &part,
				      .n_part = 1 };
	struct slu_gang_block k = { .id = 10, .from_s = 3, .to_s = 6, .nodes = set };
	struct slu_gang_role two[2];
	int rc = m && set ? slu_nodeset_add(set, 2) : -ENOMEM;

	for (uint64_t id = 1; rc >= 0 && id < 5; id++) {
		q = gang(5, 1, 10);
		q.level = id == 2 ? 0 : -1;
		q.policy = (enum slu_gang_policy)(id * 3 % SLU_GANG_POLICIES);
		rc = slu_gang_match(m, SLU_GANG_ALLOCATE_OR_RESERVE, 0, id, &q, &p, NULL);
	}
	q = gang(1, 1, 10);
	if (rc >= 0) {
		part.node = slu_machine_node_at(m, 1);
		rc = slu_gang_register(m, 0, &b, NULL);
	}
	if (rc >= 0)
		rc = slu_gang_block_add(m, 0, &k, NULL);
	if (rc >= 0) {
		q = gang(2, 1, 3);
		two[0] = two[1] = role_buf;
		q.role = two;
		q.n_role = 2;
		rc = slu_gang_match(m, SLU_GANG_TRY_LATER, 0, 0, &q, &p, NULL);
	}
	if (rc >= 0) {
		q = gang(1, 1, 3);
		rc = slu_gang_grow(m, 1, 1, &q, &p, NULL);
	}
	if (rc >= 0)
		rc = slu_gang_set_end(m, 1, 30);
	if (rc >= 0)
		rc = slu_gang_shrink(m, 1, 0, 1, &p);
	if (rc >= 0) {
		q = gang(12, 1, 3);
		rc = slu_gang_explain(m, 1, &q, &why, NULL);
	}
	if (rc >= 0) {
		c = slu_machine_clone(m);
		rc = c ? 0 : -ENOMEM;
	}
	slu_gang_place_done(&p);
	slu_machine_free(c);
	slu_machine_free(m);
	slu_nodeset_unref(set);
	return rc < 0 ? rc : 0;
}

static void test_faults(void)
{
	bool good = true;

	for (long k = 0;; k++) {
		int rc;

		slu_fault_arm(k);
		rc = scenario();
		if (!slu_fault_disarm()) {
			ok(good && rc == 0 && k > 50, "clean after %ld failing allocations", k);
			break;
		}
		if (rc != -ENOMEM) {
			ok(false, "allocation %ld: %d", k, rc);
			good = false;
		}
	}
}

/* A match that runs out of memory leaves the machine as it was. */
static void test_unchanged(void)
{
	struct slu_machine *m = machine(40, 4, 8, 4);
	struct slu_gang_req q = gang(30, 1, 10);
	struct slu_machine_stats a, b;
	bool good = true;
	long k = 0;

	slu_machine_stats(m, &a);
	for (;; k++) {
		int rc;

		slu_fault_arm(k);
		q = gang(30, 1 + k % 2, 10);
		rc = slu_gang_match(m, SLU_GANG_ALLOCATE, 0, 77, &q, NULL, NULL);
		if (!slu_fault_disarm())
			break;
		slu_machine_stats(m, &b);
		good &= rc == -ENOMEM && b.jobs == 0 && b.shares == 0 && b.free[CPU] == a.free[CPU];
	}
	ok(good && k > 5, "after each of %ld failures nothing is booked", k);
	slu_machine_free(m);
}

static bool whole_is_right(const struct slu_machine *m)
{
	struct slu_machine_stats s;

	slu_machine_stats(m, &s);
	return slu_machine_up(m) == s.up && slu_machine_whole(m, CPU) == s.total[CPU];
}

/* The sum over all nodes that are up stays right while nodes come, go and change. */
static void test_whole(void)
{
	struct slu_machine *m = machine(12, 4, 8, 4), *c;
	struct slu_amount less = { CPU, 3 };
	bool good = whole_is_right(m);

	for (uint32_t i = 0; i < 12; i++) {
		slu_node v = slu_machine_node_at(m, i);

		good &= !slu_machine_node_set_down(m, v, i % 3 == 1) && whole_is_right(m);
		good &= !slu_machine_node_set_cordoned(m, v, i % 2) && whole_is_right(m);
		good &= !slu_machine_node_resize(m, v, &less, 1, NULL) && whole_is_right(m);
		if (i % 5 == 0)
			good &= !slu_machine_node_remove(m, v) && whole_is_right(m);
	}
	ok(good && slu_machine_up(m) > 0, "totals of the machine are those of its nodes");
	c = slu_machine_clone(m);
	ok(c && whole_is_right(c), "totals of a copied machine are those of its nodes");
	slu_machine_free(c);
	slu_machine_free(m);
}

/* Work that exists is booked whether it fits or not, up to what a number holds; never beyond. */
static void test_overbooked(void)
{
	struct slu_machine *m = machine(2, 4, 100, 2);
	slu_node v = slu_machine_node_at(m, 0);
	struct slu_amount need = { CPU, SLU_AMOUNT_MAX };
	struct slu_gang_role role = { .min = 1, .need = &need, .n_need = 1 };
	struct slu_gang_part part = { v, 0, 1 };
	struct slu_gang_booking b = {
		.end_s = 50, .role = &role, .n_role = 1, .part = &part, .n_part = 1
	};
	struct slu_machine_stats s;
	struct slu_gang_req q;
	uint32_t booked = 0;
	bool negative = true;
	int rc = 0;

	for (; booked < 10000 && !rc; booked += !rc) {
		b.job = booked + 1;
		rc = slu_gang_register(m, 0, &b, NULL);
		negative &= rc || slu_machine_node_free(m, v, CPU) ==
					  4 - (int64_t)(booked + 1) * SLU_AMOUNT_MAX;
	}
	ok(rc == -ERANGE && booked == 4097 && negative,
	   "2^50 each: %u are booked and counted exactly, the next is refused", booked);
	part.slots = SLU_SLOTS_MAX;
	part.node = slu_machine_node_at(m, 1);
	b.job = 20000;
	ok(slu_gang_register(m, 0, &b, NULL) == -ERANGE, "2^20 slots of 2^50 are refused");
	slu_machine_stats(m, &s);
	ok(s.overbooked == 1 && s.free[CPU] == 4 && s.total[CPU] == 8,
	   "the sum over the machine counts the other node");
	q = gang(8, 1, 10);
	ok(expect(m, SLU_GANG_TRY_LATER, 0, 0, &q, SLU_GANG_LATER, "@50 n0*4 n1*4"),
	   "the node is free when all of that ends");
	while (booked)
		rc = slu_gang_cancel(m, booked--);
	ok(!rc && slu_machine_node_free(m, v, CPU) == 4,
	   "the node is free when all of it has gone");
	slu_machine_free(m);
}

int main(void)
{
	test_overbooked();
	test_whole();
	test_time();
	test_full_front();
	test_overrun();
	test_policies();
	test_constraints();
	test_whole_nodes();
	test_mixed();
	test_mixed_search();
	test_release();
	test_grow_apart();
	test_regain();
	test_blocks();
	test_time_fit();
	test_explain();
	test_never();
	test_bad_requests();
	test_limits_of_names();
	test_churn_of_nodes();
	test_faults();
	test_unchanged();
	slu_gang_place_done(&place);
	return tap_done();
}
