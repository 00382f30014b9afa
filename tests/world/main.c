/* world — runs worlds until the time is over or a rule is broken.
 *
 *	world [--seconds N | --worlds N] the fixed seeds, then fresh ones, for so long (of the processor)
 *	world --seed N [--worlds N]      this seed, and the ones behind it
 *	world --lives N [--seed N]       so many histories, in which another life is compared (lives.c)
 *	      --differed  first the histories that once differed
 *	      --postgres URL  the other lives have their store there, each in a database of its own
 *	      --story   tell everything that happens     --log    with the daemon's own log
 *	      --only "submit a Job,node tainted"         no other actions
 *	      --brief   do not shrink, go on             --whole  do not shrink, stop
 *	      --coverage  what was reached, in all
 *	      --reach FILE  first the seeds of that file, which together reach whatever can be reached; else it
 *	                  says what they do not, and what the file wrongly calls unreachable
 *	      --choose N  of so many fresh seeds, those that reach something new, as such a file
 *	      --honest  what a client of the model sees, for test_honest.py
 *	world [--story] --recorded FILE...  recordings of real traffic (recorded.c)
 *	      --age N   no actions and rules that came after that age (README)
 *
 * Fresh seeds follow from $WORLD_COMMIT, so that a commit meets the same worlds whenever it is
 * tested; without it they follow from the time of day.
 *
 * Prints TAP.  A broken rule prints its seed and a story made as short as possible. */
#include <getopt.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "tap.h"
#include "coverage.h"

struct plan {
	uint64_t seed, worlds;
	uint64_t *compared, *handed_over;
	double seconds;
	const char *only, *reach, *postgres;
	uint64_t choose;
	bool story, brief, whole, lives, differed, cover;
	unsigned age;
};

/* Stories that broke a rule once, each with the actions it needs. */
static const struct {
	uint64_t seed;
	const char *only, *what;
	unsigned age;
} fixed[] = {
	{ 1, NULL, "the first world" },
	{ 42, "writes answered 409,submit a held Job,submit a Job",
	  "a Job whose resume met a conflict is resumed later" },
	{ 12, "submit a Job,suspend a Job,controller stalls",
	  "pods of a Job that its user suspended do not start one by one" },
	{ 22, "submit a Deployment,submit a StatefulSet,slow watch",
	  "pods whose Deployment went with its ReplicaSet do not start" },
	{ 1, "submit a Job,node tainted", "a kept place on a node that was tainted is not taken" },
	{ 1, "submit a Job,node remade at once", "a node that is made again is not overbooked" },
	{ 3, "submit a held Job,webhook calls lost",
	  "a Job that the webhook was not asked about is held, and runs" },
	{ 6, "submit a Job,queue renamed", "what runs in a queue that was renamed counts" },
	{ 4, "submit a Job,second daemon on the store", "one daemon at a time uses a store" },
	{ 300020,
	  "submit a Job,somebody else's pod,kill the daemon,submit a StatefulSet,clock a day ahead",
	  "a clock set ahead ends no gang before its time" },
	{ 200053, NULL, "a limit counts from when the gang is whole" },
	{ 7029, NULL, "a daemon that ends settles nothing" },
	{ 7042, NULL, "a node goes while the store is away: no bind names no node" },
	{ 8111, NULL, "a Job that is suspended while its pods are bound gets its gate" },
	{ 1794948850830401, NULL, "pods whose Job was deleted without them start" },
	{ 1794943701815238, NULL, "a late bind of a dead daemon is seen" },
	{ 242644369091724,
	  "store slow,pause the daemon,somebody else's pod,submit a held Job,submit a Job",
	  "room that others take while the store is slow is not used" },
	{ 555297, "slow watch,submit a Deployment",
	  "pods that come long before their ReplicaSet start with their Deployment" },
	{ 1794951443838393, NULL, "a Job that a late write suspends again runs again" },
	{ 666223, NULL,
	  "a pod that was let go to a node counts there when the node is made again" },
	{ 61016, NULL, "a hold does not come back after sluice release" },
	{ 61009, NULL, "a pod that was let go and cannot be bound there is made again" },
	{ 50032, "submit a Deployment,submit a Job,node tainted",
	  "a job that fits no more since a node was tainted stands in nobody's way" },
	{ 50047, NULL, "a gang that was taken back does not use a node that was tainted since" },
	{ 910030, NULL, "a gated pod is not bound to a node that was cordoned meanwhile" },
	{ 1036, NULL,
	  "the FluxJob of a Job that was made again cancels nothing when it is collected", 1 },
	{ 205472317022791, NULL,
	  "a gang that begins again in two lives of the daemon leaves a store that can be written",
	  1 },
	{ 7800129, NULL,
	  "a pod that was resized in place counts whole on its node when the node is made again",
	  1 },
	{ 118,
	  "submit a Job that takes longer,writes lost before,writes lost after,disruption budget,"
	  "writes fail",
	  "an eviction at a limit that is lost or refused is asked for again", 2 },
	{ 2079, NULL,
	  "a promise that was given before a limit was lowered does not start beyond it", 2 },
	{ 5094, NULL, "a member that came later has the limit from its own start on", 2 },
	{ 710121, NULL, "a commit that was not heard of can be done again though a key moved on",
	  2 },
	{ 710128, NULL, "pods that were let go after the copy of a store was made", 2 },
	{ 1794989441952186, NULL,
	  "a pod that was let go counts after a restart though its Job was deleted without it", 1 },
	{ 1794983419934179, "gap in a watch,a PodGroup",
	  "a member that is found when the others have ended starts", 1 },
	{ 3200000089, NULL, "a promise that is due while members end is no difference of the books",
	  2 },
	{ 3200000062, NULL, "a release that comes before the daemon knows its jobs is asked again",
	  2 },
	{ 3000000125, NULL, "a drain that could not be taken back at first is taken back", 2 },
	{ 72000009, NULL, "a Job that the webhook missed is held though a patch was refused", 2 },
	{ 72000015, NULL, "a queue that is back before the first cycle starts its jobs", 2 },
	{ 83000005, NULL, "of a pod that runs nobody says that it waits when its set is deleted",
	  3 },
	{ 114000008, NULL,
	  "the PodGroup of a gang in part that is gone does not say that members run", 4 },
	{ 900029, NULL, "pods that were let go under another name are bound where there is room",
	  3 },
};

/* Histories in which a daemon once differed from another one (--lives). */
static const struct {
	uint64_t seed;
	const char *what;
	unsigned age;
} differed[] = {
	{ 300488, "a Job whose resume is on its way keeps its start when a node is closed" },
	{ 300200,
	  "a binding of a gang of which only later members run; what runs counts in the plan "
	  "with the members it has left" },
	{ 300217, "members that follow a gang that is over" },
	{ 300268, "promises of the second in which another one is due" },
	{ 100625, "nodes that refused a member are avoided as long as before" },
	{ 300078, "nodes that refused a member and are gone" },
	{ 310182, "a held Job that is scaled while its resume is on its way" },
	{ 310255, "a Job that was resumed ahead and whose pods run gets no other places" },
	{ 700594, "a pod whose Job was deleted while it was let go is not bound" },
	{ 700154, "a job that its queue refused and that is on hold" },
	{ 700173, "a node that refused a member is avoided once, also by a standby that saw it" },
	{ 700471, "a place that was left by a member that came later ends with its own run" },
	{ 700546, "a gang that was cancelled while it ran, with a member that waits" },
	{ 700897, "a binding on its way in a gang that is being taken back" },
	{ 700915, "a gang that is being taken back was taken back once" },
	{ 310562, "a gang of which all that run are being deleted begins again" },
	{ 710372, "no member follows a gang that is being taken back" },
	{ 400011, "jobs of a queue that a reload renamed", 1 },
	{ 400100, "a job that a reload would have refused had it come later", 1 },
	{ 400028, "a running job whose objects name a queue that is not there", 1 },
	{ 400055, "a group whose PodGroup is not there keeps its arrival", 1 },
	{ 400131, "a group that became wrong keeps its arrival and its size", 1 },
	{ 400116, "a pod that was resized in place is no work of others", 1 },
};

static double seconds_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t fresh_seed(void)
{
	const char *commit = getenv("WORLD_COMMIT");
	char digits[13] = "";

	if (!commit || !*commit)
		return (uint64_t)time(NULL) * 1000003u;
	strncat(digits, commit, sizeof digits - 1);
	return strtoull(digits, NULL, 16);
}

static void run(struct world *w, uint64_t seed, const struct plan *p, const bool *off,
		uint32_t n_off, bool story)
{
	*w = (struct world){ .seed = seed,
			     .age = p->age,
			     .lives = p->lives,
			     .postgres = p->postgres,
			     .only = p->only,
			     .off = off,
			     .n_off = n_off,
			     .story = story ? stdout : NULL };
	world_run(w);
}

/* Leave out whatever is not needed to break the same rule: halves first, then less and less. */
static uint32_t shrink(uint64_t seed, const struct plan *p, const char *rule, bool *off, uint32_t n)
{
	uint32_t left = n, tries = 0;

	for (uint32_t step = SLU_MAX(n / 2, 1u); step; step /= 2)
		for (uint32_t from = 0; from < n && tries < 3000; from += step, tries++) {
			struct world w;
			uint32_t newly = 0;
			bool was[1024];

			memcpy(was, off, n * sizeof *off);
			for (uint32_t i = from; i < SLU_MIN(from + step, n); i++) {
				newly += !off[i];
				off[i] = true;
			}
			if (!newly)
				continue;
			run(&w, seed, p, off, n, false);
			if (w.failed && !strcmp(w.rule, rule))
				left -= newly;
			else
				memcpy(off, was, n * sizeof *off);
			world_free(&w);
		}
	return left;
}

static void report(const struct world *w, const struct plan *p, uint64_t events)
{
	char rule[40];
	bool off[1024] = { false };
	uint32_t n = SLU_MIN(w->script.n, 1024u), left;
	struct world again;

	snprintf(rule, sizeof rule, "%s", w->rule);
	printf("# seed %" PRIu64 ", event %" PRIu64 " (%" PRIu64 " in all): %s: %s\n", w->seed,
	       w->events, events, w->rule, w->what);
	fflush(stdout);
	if (p->brief || p->whole)
		return;
	left = shrink(w->seed, p, rule, off, n);
	printf("# the shortest story found, %u of %u actions:\n", left, n);
	fflush(stdout);
	run(&again, w->seed, p, off, n, true);
	world_free(&again);
}

static bool try(uint64_t seed, const struct plan *p, uint64_t *events, uint64_t *digest)
{
	struct world w;
	bool good;

	run(&w, seed, p, NULL, 0, p->story);
	*events += w.events;
	if (p->compared)
		*p->compared += w.compared;
	if (p->handed_over)
		*p->handed_over += w.handed_over;
	if (digest)
		*digest = w.digest;
	good = !w.failed;
	if (!good)
		report(&w, p, *events);
	world_free(&w);
	return good;
}

/* ---- seeds that reach everything ---- */

#define MARKS 1024u

/* Few seeds that together reach whatever all of them do: each time the one that adds most, the first of equals.
 * Worlds that break a rule are left out. */
static void choose(const struct plan *p)
{
	bool(*hit)[MARKS] = slu_calloc(p->choose, sizeof *hit), done[MARKS] = { false };
	uint64_t events = 0, best, adds;

	for (uint64_t i = 0; i < p->choose; i++)
		if (try(p->seed + i, p, &events, NULL))
			cover_seen(hit[i], MARKS);
	printf("# made by world --age %u --seed %" PRIu64 " --choose %" PRIu64 "\nage %u\n", p->age,
	       p->seed, p->choose, p->age);
	do {
		best = adds = 0;
		for (uint64_t i = 0; i < p->choose; i++) {
			uint64_t n = 0;

			for (uint32_t k = 0; k < MARKS; k++)
				n += hit[i][k] && !done[k];
			if (n > adds) {
				adds = n;
				best = i;
			}
		}
		for (uint32_t k = 0; k < MARKS; k++)
			done[k] |= hit[best][k];
		if (adds)
			printf("%" PRIu64 "\n", p->seed + best);
	} while (adds);
	cover_unreached(stdout);
	slu_free(hit);
}

/* Lines: a seed; "- " and what is never reached, " | " and why; "age" and the age of the worlds; "#" and
 * anything. */
static bool reach(const struct plan *p, uint64_t *events, uint64_t *n)
{
	FILE *f = fopen(p->reach, "r");
	struct plan with = *p;
	char line[400];
	bool good = f;

	while (f && fgets(line, sizeof line, f)) {
		char *why = strstr(line, " | ");

		if (why)
			*why = 0;
		if (!strncmp(line, "- ", 2)) {
			cover_excuse(line + 2);
		} else if (sscanf(line, "age %u", &with.age) == 1) {
			cover_begin(with.age);
		} else if (*line >= '0' && *line <= '9') {
			good &= try(strtoull(line, NULL, 10), &with, events, NULL);
			++*n;
		}
	}
	if (f)
		fclose(f);
	return good;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = { { "seconds", 1, 0, 's' },
					      { "seed", 1, 0, 'n' },
					      { "worlds", 1, 0, 'w' },
					      { "story", 0, 0, 't' },
					      { "whole", 0, 0, 'a' },
					      { "log", 0, 0, 'l' },
					      { "brief", 0, 0, 'b' },
					      { "only", 1, 0, 'o' },
					      { "lives", 1, 0, 'i' },
					      { "age", 1, 0, 'g' },
					      { "coverage", 0, 0, 'c' },
					      { "reach", 1, 0, 'r' },
					      { "choose", 1, 0, 'x' },
					      { "honest", 0, 0, 'h' },
					      { "postgres", 1, 0, 'p' },
					      { "differed", 0, 0, 'd' },
					      { "recorded", 0, 0, 'e' },
					      { "bind", 0, 0, 'B' },
					      { 0 } };
	uint64_t compared = 0, handed_over = 0;
	struct plan p = { .worlds = UINT64_MAX,
			  .compared = &compared,
			  .handed_over = &handed_over,
			  .age = AGE_NOW };
	uint64_t events = 0, worlds = 0, a = 0, b = 0;
	enum slu_log_level level = SLU_ERROR + 1;
	double began = seconds_now(CLOCK_PROCESS_CPUTIME_ID);
	bool good = true, given = false, aged = false, recorded = false;
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1)
		switch (c) {
		case 's':
			p.seconds = atof(optarg);
			break;
		case 'n':
			p.seed = strtoull(optarg, NULL, 10);
			given = true;
			break;
		case 'w':
			p.worlds = strtoull(optarg, NULL, 10);
			break;
		case 't':
			p.story = true;
			break;
		case 'a':
			p.whole = true;
			break;
		case 'o':
			p.only = optarg;
			break;
		case 'b':
			p.brief = true;
			break;
		case 'i':
			p.lives = true;
			p.worlds = strtoull(optarg, NULL, 10);
			break;
		case 'h':
			sqlite3_vfs_register(sqlite3_vfs_find("memdb"), 1);
			slu_log_setup(SLU_ERROR + 1, SLU_LOG_TEXT, 2);
			honest_run();
			return 0;
		case 'c':
			p.cover = true;
			break;
		case 'B':
			admit_binds = true;
			break;
		case 'd':
			p.differed = true;
			break;
		case 'p':
			p.postgres = optarg;
			break;
		case 'r':
			p.reach = optarg;
			break;
		case 'x':
			p.choose = strtoull(optarg, NULL, 10);
			p.brief = true;
			break;
		case 'e':
			recorded = true;
			break;
		case 'g':
			p.age = (unsigned)strtoul(optarg, NULL, 10);
			aged = true;
			break;
		case 'l':
			level = SLU_DEBUG;
			break;
		default:
			return 2;
		}
	if (p.lives && !aged)
		p.age = 0;
	mallopt(M_TRIM_THRESHOLD, 1 << 30); /* each world takes what the last one gave back */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	slu_log_setup(level, SLU_LOG_TEXT, 2);
	if (!p.reach)
		cover_begin(p.age);
	disk_begin();
	sqlite3_vfs_register(sqlite3_vfs_find("memdb"), 1);
	if (p.worlds == UINT64_MAX && given && !p.seconds)
		p.worlds = 1;
	else if (p.worlds == UINT64_MAX && !p.seconds)
		p.seconds = 10;
	if (!given)
		p.seed = fresh_seed();
	if (recorded) {
		for (int i = optind; i < argc; i++) {
			char text[800];

			good = recorded_run(argv[i], p.story, text, sizeof text);
			ok(good, "%s: %s", argv[i], text);
		}
		cover_done();
		return tap_done();
	}
	if (p.choose) {
		choose(&p);
		return 0;
	}
	if (p.reach) {
		uint64_t n = 0;

		good = reach(&p, &events, &n);
		ok(good, "%" PRIu64 " worlds that reach everything", n);
		ok(!cover_unreached(stdout), "what they reach is what %s says", p.reach);
	}
	if (!given && !p.lives) {
		for (size_t i = 0; i < SLU_LEN(fixed); i++) {
			struct plan f = { .only = fixed[i].only, .age = fixed[i].age };

			ok(try(fixed[i].seed, &f, &events, NULL), "seed %" PRIu64 ": %s",
			   fixed[i].seed, fixed[i].what);
		}
		good &= try(fixed[0].seed, &p, &events, &a) && try(fixed[0].seed, &p, &events, &b);
		ok(good && a == b, "a seed runs twice in the same way");
	}
	for (size_t i = 0; p.lives && p.differed && i < SLU_LEN(differed); i++) {
		struct plan f = p;

		f.age = differed[i].age;
		ok(try(differed[i].seed, &f, &events, NULL), "seed %" PRIu64 ": %s",
		   differed[i].seed, differed[i].what);
	}
	for (; (good || p.brief) && worlds < p.worlds &&
	       (!p.seconds || seconds_now(CLOCK_PROCESS_CPUTIME_ID) - began < p.seconds);
	     worlds++)
		good &= try(p.seed + worlds, &p, &events, NULL);
	ok(good, "%" PRIu64 " worlds from seed %" PRIu64, worlds, p.seed);
	if (p.cover)
		printf("# %u of what is expected was not reached\n", cover_print(stdout));
	cover_done();
	if (p.lives)
		printf("# %" PRIu64 " lives compared, %" PRIu64
		       " of them standbys that took over\n",
		       compared, handed_over);
	printf("# %" PRIu64 " events, %.1f million in a minute of one processor\n", events,
	       (double)events / seconds_now(CLOCK_PROCESS_CPUTIME_ID) * 60e-6);
	return tap_done();
}
