/* lives_kit.h — one life of the core after the other in the fake cluster of core_kit.h, all on the same
 * store. */
#pragma once
#include "held_kit.h"

#include <stdlib.h>
#include <time.h>

#include "control/recover/recover.h"
#include "store/store.h"

#define NONE 1000 /* no limit to what is carried out */

static char store[64];
static struct slu_journal_setup setup;

static inline void die(struct world *w)
{
	slu_core_free(w->core);
	slu_inbox_free(w->out);
	w->core = NULL;
}

/* The next life begins, and knows what the store has. */
static inline void begin_life(struct world *w)
{
	struct slu_core_setup cs = { .config = w->cfg,
				     .verify = true,
				     .first_id = (uint64_t)(w->now_us / 1000) };
	struct slu_error err = { 0 };

	w->now_us += 1000000;
	w->binds = w->evictions = 0;
	w->out = slu_inbox_new(UINT32_MAX, NULL, NULL);
	cs.out = w->out;
	if (slu_core_new(&cs, &w->core, &err) < 0 || slu_core_lead(w->core, &setup, &err) < 0)
		ok(false, "start: %s", err.text);
}

/* It lists the nodes and the pods that are there. */
static inline void list_all(struct world *w, int nodes, int cpu)
{
	for (int i = 0; i < nodes; i++) {
		char name[16], labels[64];

		snprintf(name, sizeof name, "n%d", i);
		snprintf(labels, sizeof labels, "\"which\":\"n%d\",\"pool\":\"%s\"", i,
			 i < 2 ? "front" : "back");
		feed_node(w, name, cpu, labels, "", "True");
	}
	for (int i = 0; i < w->n_pods; i++)
		if (w->pod[i].there)
			feed_pod(w, &w->pod[i], false);
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(w->core, slu_rec_synced_new((enum slu_kkind)k), w->now_us);
}

static inline void live(struct world *w, int nodes, int cpu)
{
	begin_life(w);
	list_all(w, nodes, cpu);
}

static inline void first_life(struct world *w, int nodes, int cpu, const char *yaml)
{
	struct slu_error err = { 0 };

	snprintf(store, sizeof store, "/tmp/sluice-recover-%d.db", (int)getpid());
	unlink(store);
	setup = (struct slu_journal_setup){ .url = store, .cluster = "c", .holder = "test" };
	*w = (struct world){ .now_us = INT64_C(1767225600000000) + 10000000,
			     .bind_outcome = SLU_KUBE_OK };
	w->pool = slu_strpool_new();
	w->codec = slu_kcodec_new(w->pool);
	if (slu_config_parse("test", yaml, strlen(yaml), &w->cfg, &err) < 0)
		ok(false, "settings: %s", err.text);
	live(w, nodes, cpu);
}

static inline void last_life_over(struct world *w)
{
	char name[80];

	die(w);
	slu_config_free(w->cfg);
	slu_kcodec_free(w->codec);
	slu_strpool_free(w->pool);
	for (int i = 0; i < 3; i++) {
		static const char *const end[] = { "", "-wal", "-shm" };

		snprintf(name, sizeof name, "%s%s", store, end[i]);
		unlink(name);
	}
}

/* Cycles until the store has everything and nothing is written any more; of the bindings and
 * evictions only the first `most` reach the API server, the others are noted in `meant`. */
struct meant {
	char pod[32], node[32];
};
static inline int go_on(struct world *w, int most, struct meant *meant)
{
	int lost = 0;

	for (int quiet = 0, round = 0; quiet < 5 && round < 30000; round++) {
		struct slu_journal_health h;
		struct slu_error err = { 0 };
		struct slu_record *r;

		w->now_us += 100;
		if (slu_core_cycle(w->core, w->now_us, &err) < 0)
			ok(false, "cycle: %s", err.text);
		slu_intents_health(w->core->door, &h);
		quiet += h.state == SLU_JOURNAL_OK && !h.waiting;
		while (slu_inbox_take(w->out, &r, 1)) {
			struct slu_rec_write *x = (struct slu_rec_write *)r;
			bool place = r->kind == SLU_REC_WRITE &&
				     (x->verb == SLU_WRITE_BIND || x->verb == SLU_WRITE_EVICT);

			if (r->kind == SLU_REC_WRITE && (!place || most-- > 0)) {
				carry_out(w, x);
			} else if (place) {
				if (meant) {
					snprintf(meant[lost].pod, 32, "%s", x->name);
					snprintf(meant[lost].node, 32, "%s", x->node);
				}
				lost++;
			}
			r->free(r);
			quiet = 0;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	return lost;
}

static inline struct fpod *pod(struct world *w, const char *name)
{
	for (int i = 0; i < w->n_pods; i++)
		if (w->pod[i].there && !strcmp(w->pod[i].name, name))
			return &w->pod[i];
	return NULL;
}
