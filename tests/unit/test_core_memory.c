/* The core without memory: each allocation of a busy minute fails once, or it and all others of that
 * call do.  Nothing falls over, no node is overbooked at any time; and once the cluster has been
 * listed again, as the census does for what was lost, everything is as if nothing had been. */
#include "control/core/core.h"

#include "control/fluxjob/fluxjob.h"

static void faulty_take(struct slu_core *c, struct slu_record *r, int64_t now_us);
static int faulty_cycle(struct slu_core *c, int64_t now_us, struct slu_error *err);

#define slu_core_take  faulty_take
#define slu_core_cycle faulty_cycle
#include "held_kit.h"
#undef slu_core_take
#undef slu_core_cycle

#define NODES 3

/* The number of allocations that succeed; then one fails, or with `all` every further one of the
 * call. */
static struct {
	long left;
	bool all, armed, hit;
} fault;

static void arm(void)
{
	if (!fault.armed || fault.hit)
		return;
	if (fault.all)
		slu_fault_arm(fault.left);
	else
		slu_fault_arm_once(fault.left);
}

static void disarm(void)
{
	if (!fault.armed || fault.hit)
		return;
	fault.left = slu_fault_left();
	fault.hit = slu_fault_disarm();
}

static void faulty_take(struct slu_core *c, struct slu_record *r, int64_t now_us)
{
	if (!r)
		return;
	arm();
	slu_core_take(c, r, now_us);
	disarm();
}

static int faulty_cycle(struct slu_core *c, int64_t now_us, struct slu_error *err)
{
	arm();
	(void)slu_core_cycle(c, now_us, err); /* it says so, and the next one goes on */
	disarm();
	return 0;
}

/* By the server's account: what is bound, and what was let go to a node. */
static bool overbooked(const struct world *w)
{
	for (int n = 0; n < NODES; n++) {
		char name[16];
		int cpu = 0;

		snprintf(name, sizeof name, "n%d", n);
		for (int i = 0; i < w->n_pods; i++)
			if (w->pod[i].there && !strcmp(w->pod[i].node, name) &&
			    !strcmp(w->pod[i].phase, "Running"))
				cpu += 2;
		if (cpu > 4)
			return true;
	}
	return false;
}

#define FLUX                                                                                       \
	"{\"metadata\":{\"name\":\"f\",\"namespace\":\"ns\",\"uid\":\"flux\",\"generation\":1,"    \
	"\"resourceVersion\":\"%" PRIu64                                                           \
	"\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"jobspec\":\"version: 1\\n" \
	"resources: [{type: slot, count: 1, label: s, with: [{type: core, count: 2}]}]\\n"         \
	"tasks: [{command: [x], slot: s, count: {per_slot: 1}}]\\n"                                \
	"attributes: {system: {duration: 6000}}\\n\"}}"

static void feed_flux(struct world *w, bool gone)
{
	w->rv++;
	feed(w, SLU_KIND_FLUXJOB, gone, FLUX, w->rv);
}

static void feed_nodes(struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%d", i);
		feed_node(w, name, 4, "", "", "True");
	}
}

/* A fresh list of the cluster, which the core asked for (SLU_REC_LOOK): the core gets every
 * object that it lacks or has in an older version. */
static void list_again(struct world *w)
{
	feed_nodes(w);
	feed_flux(w, false);
	feed_job(w, "h", 7, true, "yes", "");
	for (int i = 0; i < w->n_pods; i++) {
		const struct pod *p = pod_of(
			slu_table_finds(&w->core->cluster->pods, w->pod[i].uid));

		if (w->pod[i].there && (!p || p->k->o.meta.rv < w->pod[i].rv))
			feed_pod(w, &w->pod[i], false);
	}
}

/* The maker of the pod makes another in its place. */
static void replace(struct world *w, const char *uid)
{
	for (int i = 0; i < w->n_pods; i++)
		if (!strcmp(w->pod[i].uid, uid) && w->pod[i].there) {
			delete_pod(w, &w->pod[i]);
			w->pod[i].there = true;
			snprintf(w->pod[i].uid, sizeof w->pod[i].uid, "again-%d-%" PRIu64, i,
				 w->rv);
			snprintf(w->pod[i].phase, sizeof w->pod[i].phase, "Pending");
			*w->pod[i].node = 0;
			feed_pod(w, &w->pod[i], false);
			return;
		}
}

/* Some gangs come, start and end; one node goes and comes back; people ask.  True: the fault hit. */
static bool life(long k, bool all)
{
	struct fpod *a[2], *b[2], *x;
	bool over = false;
	struct world w;

	fault.armed = false;
	begin(&w, NODES);
	w.evicted = replace;
	turn(&w);
	fault.left = k;
	fault.all = all;
	fault.hit = false;
	fault.armed = true;
	a[0] = add_pod(&w, "a-0", "sluice", "2", GROUP("a", "2"));
	a[1] = add_pod(&w, "a-1", "sluice", "2", GROUP("a", "2"));
	feed_flux(&w, false);
	feed_job(&w, "h", 7, true, "yes", ""); /* more than there ever is room for */
	turn(&w);
	x = add_pod(&w, "x", "default-scheduler", "2", "");
	snprintf(x->node, sizeof x->node, "n2");
	end_pod(&w, x, "Running");
	over |= overbooked(&w);
	b[0] = add_pod(&w, "b-0", "sluice", "2", GROUP("b", "2"));
	b[1] = add_pod(&w, "b-1", "sluice", "2", GROUP("b", "2"));
	take_ask(&w, SLU_ASK_HOLD, "b", ignore_answer);
	turn(&w);
	over |= overbooked(&w);
	feed_node(&w, "n1", 4, "", "\"unschedulable\":true", "True");
	end_pod(&w, x, "Succeeded");
	take_ask(&w, SLU_ASK_RELEASE, "b", ignore_answer);
	take_ask(&w, SLU_ASK_SNAPSHOT, "", ignore_answer);
	later(&w, 2);
	over |= overbooked(&w);
	fault.armed = false;
	/* Memory is back. */
	later(&w, 2);
	if (fault.hit && !w.resends)
		ok(false, "allocation %ld%s: no fresh list is asked for", k,
		   all ? " and all after it" : "");
	list_again(&w);
	take_ask(&w, SLU_ASK_RELEASE, "b", ignore_answer);
	for (int i = 0; i < 8; i++)
		later(&w, 31);
	over |= overbooked(&w);
	if (over)
		ok(false, "allocation %ld%s: a node is overbooked", k,
		   all ? " and all after it" : "");
	if (bound(&w, "a") != 2 || bound(&w, "b") != 2)
		ok(false, "allocation %ld%s: a %d of 2, b %d of 2 run", k,
		   all ? " and all after it" : "", bound(&w, "a"), bound(&w, "b"));
	for (int i = 0; i < 2; i++) {
		end_pod(&w, a[i], "Succeeded");
		delete_pod(&w, a[i]);
		end_pod(&w, b[i], "Succeeded");
		delete_pod(&w, b[i]);
	}
	delete_pod(&w, x);
	feed_flux(&w, true);
	feed(&w, SLU_KIND_JOB, true,
	     "{\"metadata\":{\"name\":\"h\",\"namespace\":\"ns\",\"uid\":\"job-h\"}}");
	later(&w, 31);
	later(&w, 200);
	if (w.core->groups->table.n || w.core->runs->table.n || w.core->cluster->pods.n)
		ok(false, "allocation %ld%s: %u groups, %u runs, %u pods are left", k,
		   all ? " and all after it" : "", w.core->groups->table.n, w.core->runs->table.n,
		   w.core->cluster->pods.n);
	close_world(&w);
	return fault.hit;
}

/* A life takes 20 times longer under the sanitizers: a sample has to do there. */
#ifdef __SANITIZE_ADDRESS__
#define EVERY 13
#else
#define EVERY 1
#endif

int main(int argc, char **argv)
{
	long n[2];

	slu_log_setup(argc > 1 ? SLU_INFO : SLU_ERROR + 1, SLU_LOG_TEXT, 2);
	if (argc > 1) { /* one of them, to look at it */
		life(atol(argv[1]), argc > 2);
		return tap_done();
	}
	for (int all = 0; all < 2; all++)
		for (n[all] = 0; life(n[all], all); n[all] += EVERY)
			;
	ok(n[0] > 100 && n[1] > 100,
	   "one in %d of %ld allocations fails alone, and of %ld with all that follow in the call",
	   EVERY, n[0], n[1]);
	return tap_done();
}
