/* What libsluice reads besides graphs and jobspecs: options, and the R of update and
 * partial-cancel.  The first byte says which; whatever comes, the small graph stays usable. */
#include <string.h>
#include <sluice/sluice.h>

#include "fuzz.h"

static const char graph[] =
	"{\"graph\":{\"nodes\":["
	"{\"id\":\"0\",\"metadata\":{\"type\":\"cluster\",\"basename\":\"cluster\",\"name\":\"cluster0\","
	"\"id\":0,\"uniq_id\":0,\"rank\":-1,\"size\":1,\"paths\":{\"containment\":\"/cluster0\"}}},"
	"{\"id\":\"1\",\"metadata\":{\"type\":\"node\",\"basename\":\"node\",\"name\":\"node0\",\"id\":0,"
	"\"uniq_id\":1,\"rank\":0,\"size\":1,\"paths\":{\"containment\":\"/cluster0/node0\"}}},"
	"{\"id\":\"2\",\"metadata\":{\"type\":\"core\",\"basename\":\"core\",\"name\":\"core0\",\"id\":0,"
	"\"uniq_id\":2,\"rank\":0,\"size\":1,\"paths\":{\"containment\":\"/cluster0/node0/core0\"}}},"
	"{\"id\":\"3\",\"metadata\":{\"type\":\"core\",\"basename\":\"core\",\"name\":\"core1\",\"id\":1,"
	"\"uniq_id\":3,\"rank\":0,\"size\":1,\"paths\":{\"containment\":\"/cluster0/node0/core1\"}}}],"
	"\"edges\":[{\"source\":\"0\",\"target\":\"1\",\"metadata\":{\"subsystem\":\"containment\"}},"
	"{\"source\":\"1\",\"target\":\"2\",\"metadata\":{\"subsystem\":\"containment\"}},"
	"{\"source\":\"1\",\"target\":\"3\",\"metadata\":{\"subsystem\":\"containment\"}}]}}";
static const char spec[] =
	"{\"version\":1,\"resources\":[{\"type\":\"slot\",\"count\":1,\"label\":\"a\",\"with\":"
	"[{\"type\":\"core\",\"count\":2}]}],\"attributes\":{\"system\":{\"duration\":10}},"
	"\"tasks\":[{\"command\":[\"a\"],\"slot\":\"a\",\"count\":{\"per_slot\":1}}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sluice_graph *g = NULL;
	struct sluice_match r = { 0 };
	struct sluice_error err = { 0 };
	char *text;
	int rc;

	if (!n || n > 1 << 16)
		return 0;
	text = malloc(n);
	memcpy(text, data + 1, n - 1);
	text[n - 1] = '\0';
	if (data[0] == 'o') {
		if (sluice_graph_new(graph, strlen(graph), text, &g, &err) == 0)
			sluice_graph_free(g);
		free(text);
		return 0;
	}
	must(sluice_graph_new(graph, strlen(graph), NULL, &g, &err) == 0);
	if (data[0] == 'p') {
		must(sluice_graph_match(g, SLUICE_ALLOCATE, 0, spec, strlen(spec), &r, &err) ==
		     SLUICE_NOW);
		rc = sluice_graph_partial_cancel(g, 1, text, n - 1, &err);
		/* All of it gone: there is room again. */
		if (rc == 1)
			must(sluice_graph_match(g, SLUICE_ALLOCATE, 0, spec, strlen(spec), &r,
						&err) == SLUICE_NOW);
	} else {
		rc = sluice_graph_update(g, 7, text, n - 1, &r, &err);
		must(rc <= 0);
		if (!rc)
			must(sluice_graph_cancel(g, 7) == 0);
		must(sluice_graph_match(g, SLUICE_ALLOCATE, 0, spec, strlen(spec), &r, &err) ==
			     SLUICE_NOW ||
		     rc < 0);
	}
	sluice_match_done(&r);
	sluice_graph_free(g);
	free(text);
	return 0;
}
