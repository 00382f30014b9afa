/* jobspec.c — match a Flux jobspec against a resource graph until nothing is left.
 *
 *	cc jobspec.c $(pkg-config --cflags --libs sluice) -o jobspec
 *	./jobspec cluster.graphml job.yaml
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sluice/sluice.h>

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t room = 0;

	*n = 0;
	while (f && !ferror(f) && !feof(f)) {
		if (*n == room) {
			char *more = realloc(text, room = room ? room * 2 : 4096);

			if (!more)
				break;
			text = more;
		}
		*n += fread(text + *n, 1, room - *n, f);
	}
	if (f)
		fclose(f);
	else
		perror(path);
	return text;
}

int main(int argc, char **argv)
{
	struct sluice_error err = { 0 };
	struct sluice_match r = { 0 };
	struct sluice_graph *g, *copy;
	size_t n_graph, n_spec;
	char *graph, *spec, *held = NULL;
	int answer;

	if (argc != 3) {
		fprintf(stderr, "usage: jobspec GRAPH.graphml JOB.yaml\n");
		return 2;
	}
	graph = slurp(argv[1], &n_graph);
	spec = slurp(argv[2], &n_spec);
	if (!graph || !spec)
		return 1;
	if (sluice_graph_new(graph, n_graph,
			     "{\"load_format\": \"grug\", \"matcher_policy\": \"low\","
			     " \"match_format\": \"rv1_nosched\"}",
			     &g, &err) < 0) {
		fprintf(stderr, "jobspec: %s: %s\n", argv[1], err.text);
		return 1;
	}
	/* Fill the machine, then reserve behind the first job that ends. */
	while ((answer = sluice_graph_match(g, SLUICE_ALLOCATE, 0, spec, n_spec, &r, &err)) ==
	       SLUICE_NOW)
		printf("job %" PRIu64 ": %s\n", r.job, r.text);
	if (answer < 0) {
		fprintf(stderr, "jobspec: %s: %s\n", argv[2], err.text);
		return 1;
	}
	answer = sluice_graph_allocate(g, true, 0, spec, n_spec, &r, &err);
	if (answer == SLUICE_LATER)
		printf("job %" PRIu64 " waits until %" PRId64 "\n", r.job, r.start_s);

	/* On a copy, job 1 goes and a node fails; the original does not notice. */
	copy = sluice_graph_clone(g);
	if (!copy)
		return 1;
	sluice_graph_cancel(copy, 1);
	sluice_graph_set_rank_status(copy, "0", SLUICE_DOWN);
	if (sluice_graph_find(copy, "sched-now=allocated", NULL, 0, &held, &err) == 0 && held)
		printf("held in the copy: %s\n", held);
	sluice_free(held);
	answer = sluice_graph_match(copy, SLUICE_ALLOCATE, 0, spec, n_spec, NULL, &err);
	printf("in the copy: %s\n", answer == SLUICE_NOW ? "fits" : "busy");

	sluice_match_done(&r);
	sluice_graph_free(copy);
	sluice_graph_free(g);
	free(graph);
	free(spec);
	return 0;
}
