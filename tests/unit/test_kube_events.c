/* What becomes of events: series, combinations, budgets; and the bodies we write. */
#include <stdio.h>

#include "kube/events.h"
#include "kube/codec.h"
#include "tap.h"
#include "wire/json.h"
#include "wire/pb.h"

#define SEC INT64_C(1000000)

static struct slu_knote note(const char *pod, const char *reason, const char *text)
{
	return (struct slu_knote){
		.regarding = { "v1", "Pod", "team-a", pod, pod, 7 },
		.type = "Warning",
		.reason = reason,
		.action = "Scheduling",
		.note = text,
		.controller = "fluence",
	};
}

static struct slu_kdecision see(struct slu_kcorrelator *k, struct slu_knote n, int64_t t)
{
	struct slu_kdecision d = { 0 };

	if (slu_kcorrelator_see(k, &n, t, &d) < 0)
		d.verdict = (enum slu_kverdict)99;
	return d;
}

static void check_series(void)
{
	struct slu_kcorrelator *k = slu_kcorrelator_new(NULL);
	struct slu_kdecision a = see(k, note("p", "FailedScheduling", "no room"), 100 * SEC), b, c;

	ok(a.verdict == SLU_KNOTE_CREATE && a.count == 1 && strncmp(a.name, "p.", 2) == 0 &&
		   strcmp(a.ns, "team-a") == 0 && strcmp(a.note, "no room") == 0,
	   "the first is an Event of its own: %s", a.name);
	b = see(k, note("p", "FailedScheduling", "no room"), 101 * SEC);
	ok(b.verdict == SLU_KNOTE_SERIES && b.count == 2 && strcmp(a.name, b.name) == 0 &&
		   b.last_us == 101 * SEC,
	   "the second makes it a series");
	b = see(k, note("p", "FailedScheduling", "no room"), 102 * SEC);
	ok(b.verdict == SLU_KNOTE_COUNT && b.count == 3, "the third is counted");
	c = see(k, note("p", "FailedScheduling", "no gpu"), 103 * SEC);
	ok(c.verdict == SLU_KNOTE_CREATE && strcmp(a.name, c.name) != 0,
	   "another note is another Event");
	c = see(k, note("q", "FailedScheduling", "no room"), 103 * SEC);
	ok(c.verdict == SLU_KNOTE_CREATE, "another object, too");
	ok(slu_kcorrelator_flush(k, 110 * SEC, false, &c) == 0, "nothing to flush yet");
	ok(slu_kcorrelator_flush(k, 170 * SEC, false, &c) == 1 && c.count == 3 &&
		   strcmp(c.name, a.name) == 0 && c.last_us == 102 * SEC &&
		   slu_kcorrelator_flush(k, 170 * SEC, false, &c) == 0,
	   "a minute later the count is written, once");
	b = see(k, note("p", "FailedScheduling", "no room"), 240 * SEC);
	ok(b.verdict == SLU_KNOTE_SERIES && b.count == 4, "and again after another minute");
	b = see(k, note("p", "FailedScheduling", "no room"), 601 * SEC);
	ok(b.verdict == SLU_KNOTE_CREATE && b.count == 1 && strcmp(a.name, b.name) != 0,
	   "after six quiet minutes a new Event begins");
	slu_kcorrelator_free(k);
}

static void check_similar(void)
{
	struct slu_kcorrelator *k = slu_kcorrelator_new(NULL);
	uint32_t created = 0, combined = 0;
	char name[256] = "";
	bool one = true;

	for (int i = 0; i < 40; i++) {
		char text[32];
		struct slu_kdecision d;

		snprintf(text, sizeof text, "0/%d nodes", i);
		d = see(k, note("p", "FailedScheduling", text), (100 + i) * SEC);
		if (strncmp(d.note, "(combined from similar events): 0/", 34) == 0) {
			combined++;
			one &= !name[0] || strcmp(name, d.name) == 0;
			snprintf(name, sizeof name, "%s", d.name);
		} else {
			created += d.verdict == SLU_KNOTE_CREATE;
		}
	}
	ok(created == 10 && combined == 30 && one,
	   "forty notes under one reason: %u Events, then one for the other %u", created, combined);
	slu_kcorrelator_free(k);
}

static void check_budget(void)
{
	struct slu_kcorrelator *k = slu_kcorrelator_new(NULL);
	uint32_t created = 0, dropped = 0;

	for (int i = 0; i < 60; i++) {
		char reason[32];
		struct slu_kdecision d;

		snprintf(reason, sizeof reason, "Reason%d", i);
		d = see(k, note("noisy", reason, "x"), 100 * SEC);
		created += d.verdict == SLU_KNOTE_CREATE;
		dropped += d.verdict == SLU_KNOTE_DROP;
	}
	ok(created == 25 && dropped == 35, "a noisy object: %u Events, %u dropped", created,
	   dropped);
	ok(see(k, note("calm", "Reason1", "x"), 100 * SEC).verdict == SLU_KNOTE_CREATE,
	   "hurts no other");
	ok(see(k, note("noisy", "Later", "x"), 401 * SEC).verdict == SLU_KNOTE_CREATE &&
		   see(k, note("noisy", "Later2", "x"), 401 * SEC).verdict == SLU_KNOTE_DROP,
	   "and gets one more after five minutes");
	slu_kcorrelator_free(k);
}

static void check_memory(void)
{
	struct slu_kcorrelator_options o = { .max = 8 };
	struct slu_kcorrelator *k = slu_kcorrelator_new(&o);
	struct slu_kdecision first = see(k, note("pod-0", "R", "x"), SEC), again;

	for (int i = 1; i < 100; i++) {
		char pod[32];

		snprintf(pod, sizeof pod, "pod-%d", i);
		see(k, note(pod, "R", "x"), SEC);
		if (i < 90)
			see(k, note("pod-1", "R", "x"), SEC);
	}
	again = see(k, note("pod-0", "R", "x"), SEC);
	ok(again.verdict == SLU_KNOTE_CREATE && strcmp(first.name, again.name) != 0,
	   "the longest unused are forgotten");
	slu_kcorrelator_free(k);
	for (long f = 0;; f++) {
		bool failed;
		int rc = -ENOMEM;
		struct slu_kdecision d;

		slu_fault_arm(f);
		k = slu_kcorrelator_new(&o);
		for (int i = 0; k && i < 12; i++) {
			char pod[32];
			struct slu_knote n;

			snprintf(pod, sizeof pod, "pod-%d", i % 10);
			n = note(pod, "R", "x");
			rc = slu_kcorrelator_see(k, &n, SEC, &d);
			if (rc < 0)
				break;
		}
		slu_kcorrelator_free(k);
		failed = slu_fault_disarm();
		if ((failed && rc != -ENOMEM) || !failed) {
			ok(!failed && rc == 0, "clean after %ld failed allocations", f);
			break;
		}
	}
}

static bool is(const struct slu_json *v, const char *want)
{
	return slu_json_str(v) && strcmp(slu_json_str(v), want) == 0;
}

/* Field numbers as in k8s.io/api/events/v1/generated.proto. */
static void check_event_pb(const struct slu_kenc_event *ev)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	struct slu_pb_field f, g, h;
	struct slu_pb p, q, in;
	uint32_t seen = 0;

	ok(slu_kenc_event_pb(&b, ev) == 0 && memcmp(b.p, "k8s\0", 4) == 0,
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
	ok(seen == 0x7fff, "with what was put in: %x", seen);
	slu_buf_done(&b);
}

static void check_bodies(void)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_kenc_event ev = {
		.name = "p.1",
		.regarding = { "v1", "Pod", "team-a", "p", "u-1", 7 },
		.type = "Normal",
		.reason = "Scheduled",
		.action = "Binding",
		.note = "a \"quoted\" note\n",
		.controller = "fluence",
		.instance = "fluence-0",
		.time_us = INT64_C(1794781020000042),
		.count = 2,
		.last_us = INT64_C(1794781021000000),
	};
	const struct slu_json *r;

	ok(slu_kenc_event(&b, &ev) == 0 && slu_json_parse(b.p, b.n, NULL, &doc, NULL) == 0,
	   "an Event is JSON");
	r = slu_json_root(doc);
	ok(is(slu_json_get(r, "eventTime"), "2026-11-15T22:17:00.000042Z") &&
		   is(slu_json_get(r, "note"), "a \"quoted\" note\n") &&
		   is(slu_json_get(r, "reportingController"), "fluence") &&
		   is(slu_json_dig(r, "regarding", "uid", NULL), "u-1") &&
		   is(slu_json_dig(r, "metadata", "namespace", NULL), "team-a") &&
		   slu_json_i64_or(slu_json_dig(r, "series", "count", NULL), 0) == 2,
	   "with what was put in");

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

int main(void)
{
	check_series();
	check_similar();
	check_budget();
	check_memory();
	check_bodies();
	return tap_done();
}
