/* The bodies we write, read back. */
#include "kube/encode.h"
#include "tap.h"
#include "wire/json.h"
#include "wire/pb.h"

/* Field numbers as in k8s.io/api/events/v1/generated.proto. */
static void check_event_pb(const struct slu_kenc_event *ev)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	struct slu_pb_field f, g, h;
	struct slu_pb p, q, in;
	uint32_t seen = 0;

	ok(slu_kenc_event(&b, ev) == 0 && memcmp(b.p, "k8s\0", 4) == 0,
	   "an Event in protobuf, in its envelope");
	p = slu_pb(b.p + 4, b.n - 4);
	while (slu_pb_next(&p, &f) > 0 && f.num != 2)
		;
	q = slu_pb_sub(&f);
	while (slu_pb_next(&q, &g) > 0) {
		char *s = slu_pb_dup(&g);

		seen |= g.num == 4 && !strcmp(s, "fluence") ? 1u : 0;
		seen |= g.num == 5 && !strcmp(s, "fluence-0") ? 2u : 0;
		seen |= g.num == 6 && !strcmp(s, "Binding") ? 4u : 0;
		seen |= g.num == 7 && !strcmp(s, "Scheduled") ? 8u : 0;
		seen |= g.num == 10 && !strcmp(s, "a \"quoted\" note\n") ? 16u : 0;
		seen |= g.num == 11 && !strcmp(s, "Normal") ? 32u : 0;
		slu_free(s);
		if (g.num > 2 && g.num != 8)
			continue;
		in = slu_pb_sub(&g);
		while (slu_pb_next(&in, &h) > 0) {
			s = h.wire == SLU_PB_BYTES ? slu_pb_dup(&h) : NULL;
			seen |= g.num == 1 && h.num == 1 && !strcmp(s, "p.1") ? 64u : 0;
			seen |= g.num == 1 && h.num == 3 && !strcmp(s, "team-a") ? 128u : 0;
			seen |= g.num == 2 && h.num == 1 && h.u == 1794781020 ? 256u : 0;
			seen |= g.num == 2 && h.num == 2 && h.u == 42000 ? 512u : 0;
			seen |= g.num == 8 && h.num == 1 && !strcmp(s, "Pod") ? 1024u : 0;
			seen |= g.num == 8 && h.num == 2 && !strcmp(s, "team-a") ? 2048u : 0;
			seen |= g.num == 8 && h.num == 3 && !strcmp(s, "p") ? 4096u : 0;
			seen |= g.num == 8 && h.num == 4 && !strcmp(s, "u-1") ? 8192u : 0;
			seen |= g.num == 8 && h.num == 5 && !strcmp(s, "v1") ? 16384u : 0;
			slu_free(s);
		}
	}
	ok(seen == 0x7fff, "the body holds what was put in: %x", seen);
	slu_buf_done(&b);
}

static void check_bodies(void)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	struct slu_kenc_event ev = {
		.name = "p.1",
		.regarding = { "v1", "Pod", "team-a", "p", "u-1" },
		.type = "Normal",
		.reason = "Scheduled",
		.action = "Binding",
		.note = "a \"quoted\" note\n",
		.controller = "fluence",
		.instance = "fluence-0",
		.time_us = INT64_C(1794781020000042),
	};

	check_event_pb(&ev);

	/* the binding, read back: envelope, then Binding {1 metadata, 2 target} */
	struct slu_pb_field f, g;
	struct slu_pb p, q;
	int seen = 0;

	slu_buf_reset(&b);
	ok(slu_kenc_binding(&b, "team-a", "p", "u-1", "node-7") == 0 &&
		   memcmp(b.p, "k8s\0", 4) == 0,
	   "a Binding in its envelope");
	p = slu_pb(b.p + 4, b.n - 4);
	while (slu_pb_next(&p, &f) > 0) {
		if (f.num == 2) {
			q = slu_pb_sub(&f);
			while (slu_pb_next(&q, &g) > 0) {
				struct slu_pb in = slu_pb_sub(&g);
				struct slu_pb_field h;

				while (slu_pb_next(&in, &h) > 0) {
					char *s = slu_pb_dup(&h);

					seen += g.num == 1 && h.num == 1 && strcmp(s, "p") == 0;
					seen += g.num == 1 && h.num == 3 &&
						strcmp(s, "team-a") == 0;
					seen += g.num == 1 && h.num == 5 && strcmp(s, "u-1") == 0;
					seen += g.num == 2 && h.num == 1 && strcmp(s, "Node") == 0;
					seen += g.num == 2 && h.num == 3 &&
						strcmp(s, "node-7") == 0;
					slu_free(s);
				}
			}
		}
	}
	ok(seen == 5, "names the pod, its uid and the node");
	slu_buf_done(&b);
}

static bool is_text(const struct slu_json *v, const char *want)
{
	return slu_json_str(v) && !strcmp(slu_json_str(v), want);
}

static void check_json(void)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	struct slu_json_doc *doc = NULL;
	struct slu_kenc_condition c = { "PodScheduled", "False", "Unschedulable",
					"a \"quoted\" one", INT64_C(1794781020000042) };
	const struct slu_json *r;

	ok(slu_kenc_pod_condition(&b, "u-1", &c) == 0 &&
		   slu_json_parse(b.p, b.n, NULL, &doc, NULL) == 0,
	   "a condition is JSON");
	r = slu_json_item(slu_json_dig(slu_json_root(doc), "status", "conditions", NULL), 0);
	ok(is_text(slu_json_dig(slu_json_root(doc), "metadata", "uid", NULL), "u-1") &&
		   is_text(slu_json_get(r, "message"), "a \"quoted\" one") &&
		   is_text(slu_json_get(r, "lastTransitionTime"), "2026-11-15T22:17:00Z"),
	   "a condition names one pod, with its time in whole seconds");
	slu_json_free(doc);
	doc = NULL;
	slu_buf_reset(&b);
	ok(slu_kenc_eviction(&b, "team-a", "p", "u-1") == 0 &&
		   slu_json_parse(b.p, b.n, NULL, &doc, NULL) == 0,
	   "an Eviction is JSON");
	ok(is_text(slu_json_dig(slu_json_root(doc), "deleteOptions", "preconditions", "uid", NULL),
		   "u-1"),
	   "the eviction holds for this uid and no later pod of the name");
	slu_json_free(doc);
	slu_buf_done(&b);
}

int main(void)
{
	check_bodies();
	check_json();
	return tap_done();
}
