/* The views of the daemon when memory runs out: each allocation of each view fails in turn,
 * alone or with all after it.  A view is then complete, or says that it is not; it is never
 * short without a word. */
#include "core_kit.h"

#include "serve/view.h"

static void all_jobs(const struct slu_snapshot *s, struct slu_buf *b)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_view_jobs(s, &w);
}

static void one_job(const struct slu_snapshot *s, struct slu_buf *b)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	(void)slu_view_job(s, "ns", "wide", &w);
}

static void nodes(const struct slu_snapshot *s, struct slu_buf *b)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_view_nodes(s, &w);
}

static void queues(const struct slu_snapshot *s, struct slu_buf *b)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_view_queues(s, &w);
}

static void starve(const struct slu_snapshot *s, const char *what,
		   void (*view)(const struct slu_snapshot *s, struct slu_buf *b))
{
	struct slu_buf whole = SLU_BUF_INIT(1 << 20);
	bool good = true, hit = true;
	long k = 0;

	view(s, &whole);
	ok(!whole.error && whole.n > 10, "%s: %zu bytes", what, whole.n);
	for (int all = 0; all < 2; all++) {
		for (k = 0, hit = true; hit && k < 10000; k++) {
			struct slu_buf b = SLU_BUF_INIT(1 << 20);

			if (all)
				slu_fault_arm(k);
			else
				slu_fault_arm_once(k);
			view(s, &b);
			hit = slu_fault_disarm();
			good &= b.error || (b.n == whole.n && !memcmp(b.p, whole.p, b.n));
			good &= hit || !b.error;
			slu_buf_done(&b);
		}
	}
	ok(good && k > 1 && !hit, "%s: whole or refused, whichever of %ld allocations fails", what,
	   k - 1);
	slu_buf_done(&whole);
}

int main(void)
{
	struct world w;
	struct slu_snapshot *s;
	char name[16];

	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	open_world(&w, 40, 4, "");
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "p%d", i);
		add_pod(&w, name, "sluice", "4", "");
	}
	add_pod(&w, "wide-0", "sluice", "400", GROUP("wide", "1"));
	turn(&w);
	later(&w, 61);
	s = picture(&w);
	starve(s, "jobs", all_jobs);
	starve(s, "a job", one_job);
	starve(s, "nodes", nodes);
	starve(s, "queues", queues);
	close_world(&w);
	return tap_done();
}
