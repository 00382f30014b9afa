/* Every allocation behind the public header made to fail in turn: -ENOMEM or NULL, no leak (the
 * sanitizer looks), and the next call works. */
#include <errno.h>
#include <string.h>
#include <sluice/sluice.h>

#include "base/mem.h"
#include "tap.h"

static const char graph[] =
	"{\"graph\":{\"nodes\":["
	"{\"id\":\"0\",\"metadata\":{\"type\":\"cluster\",\"basename\":\"cluster\",\"name\":\"cluster0\","
	"\"id\":0,\"uniq_id\":0,\"rank\":-1,\"exclusive\":false,\"unit\":\"\",\"size\":1,"
	"\"paths\":{\"containment\":\"/cluster0\"}}},"
	"{\"id\":\"1\",\"metadata\":{\"type\":\"node\",\"basename\":\"node\",\"name\":\"node0\","
	"\"id\":0,\"uniq_id\":1,\"rank\":0,\"exclusive\":false,\"unit\":\"\",\"size\":1,"
	"\"paths\":{\"containment\":\"/cluster0/node0\"}}},"
	"{\"id\":\"2\",\"metadata\":{\"type\":\"core\",\"basename\":\"core\",\"name\":\"core0\","
	"\"id\":0,\"uniq_id\":2,\"rank\":0,\"exclusive\":false,\"unit\":\"\",\"size\":1,"
	"\"paths\":{\"containment\":\"/cluster0/node0/core0\"}}}],"
	"\"edges\":[{\"source\":\"0\",\"target\":\"1\",\"metadata\":{\"subsystem\":\"containment\"}},"
	"{\"source\":\"1\",\"target\":\"2\",\"metadata\":{\"subsystem\":\"containment\"}}]}}";
static const char spec[] =
	"{\"version\":1,\"resources\":[{\"type\":\"slot\",\"count\":1,\"label\":\"a\",\"with\":"
	"[{\"type\":\"core\",\"count\":1}]}],\"attributes\":{\"system\":{\"duration\":10}},"
	"\"tasks\":[{\"command\":[\"a\"],\"slot\":\"a\",\"count\":{\"per_slot\":1}}]}";

static int scenario(void)
{
	struct sluice_graph *g = NULL, *c = NULL;
	struct sluice_match r = { 0 };
	struct sluice_error err = { 0 };
	char *text = NULL;
	int rc = sluice_graph_new(graph, strlen(graph), "{\"match_format\":\"rv1\"}", &g, &err);

	if (rc >= 0)
		rc = sluice_graph_match(g, SLUICE_ALLOCATE, 0, spec, strlen(spec), &r, &err);
	if (rc >= 0)
		rc = sluice_graph_allocate(g, true, 0, spec, strlen(spec), &r, &err);
	if (rc >= 0)
		rc = sluice_graph_find(g, "sched-now=allocated", NULL, 0, &text, &err);
	if (rc >= 0) {
		c = sluice_graph_clone(g);
		rc = c ? 0 : -ENOMEM;
	}
	if (rc >= 0)
		rc = sluice_graph_cancel(c, 1);
	if (rc >= 0)
		rc = sluice_graph_set_rank_status(c, "0", SLUICE_DOWN);
	sluice_free(text);
	sluice_match_done(&r);
	sluice_graph_free(c);
	sluice_graph_free(g);
	return rc < 0 ? rc : 0;
}

int main(void)
{
	bool good = true;

	for (long k = 0; good; k++) {
		int rc;

		slu_fault_arm(k);
		rc = scenario();
		if (!slu_fault_disarm()) {
			ok(rc == 0 && k > 50, "clean after %ld failing allocations", k);
			break;
		}
		good = rc == -ENOMEM;
		if (!good)
			ok(false, "allocation %ld: %d", k, rc);
	}
	return tap_done();
}
