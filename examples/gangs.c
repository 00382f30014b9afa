/* gangs.c — pods that start together: place a gang, see why another waits, ask "what if".
 *
 *	cc gangs.c $(pkg-config --cflags --libs sluice) -o gangs && ./gangs
 */
#include <inttypes.h>
#include <stdio.h>
#include <sluice/sluice.h>

#define GIB (INT64_C(1) << 30)

static int die(const char *what, const struct sluice_error *err)
{
	fprintf(stderr, "gangs: %s: %s\n", what, err->text);
	return 1;
}

static void show(const struct sluice_machine *m, const char *name, const struct sluice_place *p)
{
	printf("%s starts at %" PRId64 ":", name, p->start_s);
	for (uint32_t i = 0; i < p->n; i++)
		printf(" %s x%u", sluice_machine_name(m, p->part[i].node), p->part[i].slots);
	printf("\n");
}

int main(void)
{
	struct sluice_error err = { 0 }, why = { 0 };
	struct sluice_place place = { 0 };
	struct sluice_machine *m = sluice_machine_new(), *copy;
	int cpu, mem, rack, answer;

	if (!m)
		return 1;
	/* Eight nodes of 16 cores and 64 GiB in two racks. */
	cpu = sluice_machine_resource(m, "cpu");
	mem = sluice_machine_resource(m, "memory");
	rack = sluice_machine_level(m, "rack");
	for (int i = 0; i < 8; i++) {
		char name[16];
		const char *domain[] = { i < 4 ? "left" : "right" };
		struct sluice_amount total[] = { { (uint32_t)cpu, 16000 },
						 { (uint32_t)mem, 64 * GIB } };
		struct sluice_node_spec spec = { .name = name,
						 .rank = i,
						 .total = total,
						 .n_total = 2,
						 .domain = domain,
						 .n_domain = 1 };

		snprintf(name, sizeof name, "node%d", i);
		if (sluice_machine_add(m, &spec, NULL, &err) < 0)
			return die(name, &err);
	}

	/* A launcher of half a core and five workers that want most of a node each, all in one rack
	 * if possible, for an hour. */
	struct sluice_amount small[] = { { (uint32_t)cpu, 500 }, { (uint32_t)mem, GIB } };
	struct sluice_amount large[] = { { (uint32_t)cpu, 12000 }, { (uint32_t)mem, 32 * GIB } };
	struct sluice_role role[] = {
		{ .name = "launcher", .min = 1, .need = small, .n_need = 2 },
		{ .name = "worker", .min = 5, .need = large, .n_need = 2 },
	};
	struct sluice_gang gang = { .role = role, .n_role = 2, .level = rack, .duration_s = 3600 };

	answer = sluice_gang_match(m, SLUICE_ALLOCATE, 0, 1, &gang, &place, &err);
	if (answer != SLUICE_NOW)
		return die("job 1", &err);
	show(m, "job 1", &place);

	/* The same again does not fit beside it.  It is told when, and what would help. */
	answer = sluice_gang_explain(m, 60, &gang, &why, &err);
	if (answer < 0)
		return die("job 2", &err);
	printf("job 2 waits: %s\n", why.text);
	answer = sluice_gang_match(m, SLUICE_ALLOCATE_OR_RESERVE, 60, 2, &gang, &place, &err);
	if (answer != SLUICE_LATER)
		return die("job 2", &err);
	show(m, "job 2", &place);

	/* What if job 1 ended now?  Try it on a copy. */
	copy = sluice_machine_clone(m);
	if (!copy)
		return 1;
	sluice_gang_cancel(copy, 1);
	sluice_gang_cancel(copy, 2);
	answer = sluice_gang_match(copy, SLUICE_MATCH_LATER, 60, 0, &gang, &place, &err);
	if (answer < 0)
		return die("what if", &err);
	show(copy, "without job 1, job 2", &place);

	/* And this one will never run. */
	role[1].min = 9;
	if (sluice_gang_satisfiable(m, &gang, &why) == 0)
		printf("job 3 never runs: %s\n", why.text);

	sluice_place_done(&place);
	sluice_machine_free(copy);
	sluice_machine_free(m);
	return 0;
}
