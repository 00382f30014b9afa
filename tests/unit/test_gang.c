#include "gang/gang.h"
#include "tap.h"

/* `n` nodes of `cpu` cpus and `mem` bytes in racks of `rack`. */
static struct slu_machine *machine(uint32_t n, int64_t cpu, int64_t mem, uint32_t rack)
{
	struct slu_machine *m = slu_machine_new();
	int k_cpu = slu_machine_kind(m, "cpu"), k_mem = slu_machine_kind(m, "memory");
	char name[32], dom[32];

	slu_machine_level(m, "rack");
	for (uint32_t i = 0; i < n; i++) {
		struct slu_amount total[] = { { (uint32_t)k_cpu, cpu }, { (uint32_t)k_mem, mem } };
		const char *domain[] = { dom };
		struct slu_node_spec s = { .name = name,
					   .rank = i,
					   .total = total,
					   .n_total = 2,
					   .domain = domain,
					   .n_domain = 1 };

		snprintf(name, sizeof name, "node%u", i);
		snprintf(dom, sizeof dom, "rack%u", i / rack);
		slu_machine_node_add(m, &s, NULL, NULL);
	}
	return m;
}

struct job {
	uint32_t n;
	int64_t cpu, mem, dur;
	unsigned flags;
};

static struct slu_amount need_buf[2];
static struct slu_gang_role role_buf;
static struct slu_gang_req simple(uint32_t n, int64_t cpu, int64_t dur)
{
	need_buf[0] = (struct slu_amount){ 1, cpu };
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
		n += snprintf(buf + n, sizeof buf - (size_t)n, " %s*%u",
			      slu_machine_node_name(m, p->part[i].node), p->part[i].slots);
	return buf;
}

static void test_basics(void)
{
	struct slu_machine *m = machine(4, 4, 100, 2);
	struct slu_gang_place p = { 0 };
	struct slu_gang_req q = simple(6, 1, 10);

	ok(slu_gang_match(m, SLU_GANG_ALLOCATE, 100, 1, &q, &p, NULL) == SLU_GANG_NOW &&
		   !strcmp(shown(m, &p), "@100 node0*4 node1*2"),
	   "first fills nodes in order: %s", shown(m, &p));
	q = simple(12, 1, 10);
	ok(slu_gang_match(m, SLU_GANG_ALLOCATE, 100, 2, &q, &p, NULL) == SLU_GANG_BUSY,
	   "12 of 10 free do not fit now");
	ok(slu_gang_match(m, SLU_GANG_ALLOCATE_OR_RESERVE, 100, 2, &q, &p, NULL) ==
			   SLU_GANG_LATER &&
		   p.start_s == 110 && p.slots == 12,
	   "but when the first ends: %s", shown(m, &p));
	q = simple(2, 1, 10);
	ok(slu_gang_match(m, SLU_GANG_ALLOCATE, 100, 3, &q, &p, NULL) == SLU_GANG_NOW,
	   "a short one slips in front");
	q = simple(8, 1, 11);
	ok(slu_gang_match(m, SLU_GANG_ALLOCATE, 100, 4, &q, &p, NULL) == SLU_GANG_BUSY,
	   "a long one would delay the reservation");
	q = simple(17, 1, 11);
	ok(slu_gang_match(m, SLU_GANG_ALLOCATE_SAT, 100, 4, &q, &p, NULL) == SLU_GANG_NEVER,
	   "17 of 16 never fit");
	ok(slu_gang_cancel(m, 1) == 0 && slu_gang_cancel(m, 1) == -ENOENT, "cancelled once");
	slu_gang_place_done(&p);
	slu_machine_free(m);
}

int main(void)
{
	test_basics();
	return tap_done();
}
