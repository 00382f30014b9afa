/* What libsluice reads besides graphs and jobspecs: options, and the R of update and
 * partial-cancel; and any sequence of calls.  The first byte says which; whatever comes, the small
 * graph stays usable, no core is booked twice and a copy answers as the original does. */
#include <errno.h>
#include <stdbool.h>
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

/* --- a sequence of calls: 2 nodes of 2 cores --- */

static const char machine[] = "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"0-1\","
			      "\"children\":{\"core\":\"0-1\"}}],\"nodelist\":[\"n[0-1]\"]}}";
#define CORES 4
#define JOBS  64

static const struct {
	const char *resources;
	int cores;
} asks[] = {
	{ "{\"type\":\"slot\",\"count\":1,\"label\":\"a\",\"with\":[{\"type\":\"core\",\"count\":1}]}",
	  1 },
	{ "{\"type\":\"slot\",\"count\":3,\"label\":\"a\",\"with\":[{\"type\":\"core\",\"count\":1}]}",
	  3 },
	{ "{\"type\":\"node\",\"count\":1,\"exclusive\":true,\"with\":[{\"type\":\"slot\",\"count\":1,"
	  "\"label\":\"a\",\"with\":[{\"type\":\"core\",\"count\":1}]}]}",
	  2 },
	{ "{\"type\":\"node\",\"count\":2,\"with\":[{\"type\":\"slot\",\"count\":1,\"label\":\"a\","
	  "\"with\":[{\"type\":\"core\",\"count\":1}]}]}",
	  2 },
	{ "{\"type\":\"node\",\"count\":2,\"with\":[{\"type\":\"slot\",\"count\":1,\"label\":\"a\","
	  "\"with\":[{\"type\":\"core\",\"count\":2}]}]}",
	  4 },
	{ "{\"type\":\"slot\",\"count\":5,\"label\":\"a\",\"with\":[{\"type\":\"core\",\"count\":1}]}",
	  5 },
};
#define WHOLE 4

struct play {
	struct sluice_graph *g;
	int64_t now;
	struct {
		int64_t start, end;
		int cores; /* 0: not there */
		char *text;
	} job[JOBS];
	bool loose; /* parts were given back or registered: the sums below are not exact */
	bool down;
};

static void ask(char *to, size_t n, uint32_t what, uint32_t duration)
{
	snprintf(to, n,
		 "{\"version\":1,\"resources\":[%s],\"attributes\":{\"system\":{\"duration\":%u}},"
		 "\"tasks\":[{\"command\":[\"a\"],\"slot\":\"a\",\"count\":{\"per_slot\":1}}]}",
		 asks[what].resources, duration);
}

/* Sums of cores where something begins. */
static void check_sums(const struct play *p)
{
	for (int i = 0; i < JOBS && !p->loose; i++) {
		int64_t at = p->job[i].start;
		int sum = 0;

		for (int k = 0; k < JOBS && p->job[i].cores; k++)
			if (p->job[k].start <= at && at < p->job[k].end)
				sum += p->job[k].cores;
		must(sum <= CORES);
	}
}

static void match(struct play *p, uint32_t job, uint32_t what, enum sluice_op op, uint32_t duration)
{
	struct sluice_graph *c = sluice_graph_clone(p->g);
	struct sluice_match r = { 0 }, s = { 0 };
	struct sluice_error err = { 0 };
	char text[600];
	int rc, copy;

	ask(text, sizeof text, what, duration);
	must(c);
	copy = sluice_graph_match_as(c, op, p->now, job, text, strlen(text), &s, &err);
	rc = sluice_graph_match_as(p->g, op, p->now, job, text, strlen(text), &r, &err);
	must(rc == copy && r.start_s == s.start_s && r.end_s == s.end_s && !r.text == !s.text);
	must(!r.text || !strcmp(r.text, s.text));
	must(rc != SLUICE_NOW || asks[what].cores <= CORES);
	must(rc != SLUICE_LATER || r.start_s > p->now);
	must(rc != -EINVAL);
	if ((rc == SLUICE_NOW || rc == SLUICE_LATER) && op <= SLUICE_ALLOCATE_OR_RESERVE) {
		must(r.end_s - r.start_s == duration &&
		     (rc == SLUICE_LATER || r.start_s == p->now));
		p->job[job].start = r.start_s;
		p->job[job].end = r.end_s;
		p->job[job].cores = asks[what].cores;
		free(p->job[job].text);
		p->job[job].text = r.text ? strdup(r.text) : NULL;
	}
	sluice_match_done(&r);
	sluice_match_done(&s);
	sluice_graph_free(c);
}

static void cancel(struct play *p, uint32_t job)
{
	int rc = sluice_graph_cancel(p->g, job);

	must(p->loose || rc == (p->job[job].cores ? 0 : -ENOENT));
	p->job[job].cores = 0;
}

static void one(struct play *p, const uint8_t b[4])
{
	uint32_t job = b[1] % JOBS, other = b[2] % JOBS;
	struct sluice_error err = { 0 };
	struct sluice_match r = { 0 };
	struct sluice_job info;

	switch (b[0] % 12) {
	case 0:
		cancel(p, job);
		break;
	case 1:
		p->now += b[1] % 16;
		break;
	case 2: /* what ran before, once more under another number */
		if (!p->job[other].text)
			break;
		if (sluice_graph_update(p->g, job, p->job[other].text, strlen(p->job[other].text),
					&r, &err) == 0)
			p->loose = true;
		sluice_match_done(&r);
		break;
	case 3: /* what was freed before an error stays free, as in the reference */
		if (p->job[other].text &&
		    sluice_graph_partial_cancel(p->g, job, p->job[other].text,
						strlen(p->job[other].text), &err) != -ENOENT)
			p->loose = true;
		break;
	case 4:
		must(sluice_graph_set_status(p->g, "/cluster0/n1",
					     b[1] & 1 ? SLUICE_DOWN : SLUICE_UP) == 0);
		p->down = b[1] & 1;
		break;
	case 5:
		must(sluice_graph_info(p->g, job, &info) == 0 || !p->job[job].cores);
		break;
	default:
		if (!p->job[job].cores || !p->loose)
			match(p, job, b[2] % (sizeof asks / sizeof *asks), 1 + b[3] % 6,
			      1 + (b[3] >> 3));
	}
	check_sums(p);
}

static void play(const uint8_t *data, size_t n)
{
	static const char *const policy[] = { "first",    "high",     "low",     "lonode",
					      "hinode",   "lonodex",  "hinodex", "firstnodex",
					      "locality", "variation" };
	struct play p = { .now = 5 };
	struct sluice_error err = { 0 };
	char options[200], text[600];

	if (n < 2)
		return;
	snprintf(options, sizeof options,
		 "{\"load_format\":\"rv1exec\",\"match_format\":\"rv1\",\"matcher_policy\":\"%s\","
		 "\"traverser_policy\":\"%s\",\"prune_filters\":\"%s\"}",
		 policy[data[0] % 10], data[1] & 1 ? "flexible" : "simple",
		 data[1] & 2 ? "ALL:core" : "ALL:core,cluster:node");
	must(sluice_graph_new(machine, strlen(machine), options, &p.g, &err) == 0);
	for (size_t i = 2; i + 4 <= n && i < 400; i += 4)
		one(&p, data + i);
	for (uint32_t i = 0; i < JOBS; i++) {
		sluice_graph_cancel(p.g, i);
		free(p.job[i].text);
	}
	must(sluice_graph_set_status(p.g, "/cluster0/n1", SLUICE_UP) == 0);
	ask(text, sizeof text, WHOLE, 1000);
	must(p.loose || sluice_graph_match(p.g, SLUICE_ALLOCATE, 0, text, strlen(text), NULL,
					   &err) == SLUICE_NOW);
	sluice_graph_free(p.g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sluice_graph *g = NULL;
	struct sluice_match r = { 0 };
	struct sluice_error err = { 0 };
	char *text;
	int rc;

	if (!n || n > 1 << 16)
		return 0;
	if (data[0] == 's') {
		play(data + 1, n - 1);
		return 0;
	}
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
