/* Reservations: objects that set nodes aside, for whom, for how long, again and again. */
#include <time.h>

#include "core_kit.h"

static char status[1500], created[4000];

static void read_status(struct world *w, struct slu_rec_write *x)
{
	(void)w;
	if (x->kind == SLU_KIND_RESERVATION)
		snprintf(status, sizeof status, "%s", x->text);
}

static void stamp(char out[32], int64_t s)
{
	time_t t = (time_t)s;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* A Reservation in namespace ns, so many seconds from now. */
static void reserve(struct world *w, const char *name, int generation, int64_t from, int64_t to,
		    const char *more)
{
	char a[32], b[32];

	stamp(a, w->now_us / 1000000 + from);
	stamp(b, w->now_us / 1000000 + to);
	feed(w, SLU_KIND_RESERVATION, false,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"r-%s\",\"generation\":%d,"
	     "\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{\"start\":\"%s\",\"end\":\"%s\",%s}}",
	     name, name, generation, ++w->rv, a, b, more);
	turn(w);
}

static struct slu_snap_reservation held(struct world *w, const char *name)
{
	struct slu_snapshot *s = picture(w);

	for (uint32_t i = 0; i < s->n_reservations; i++)
		if (!strcmp(s->reservation[i].name, name))
			return s->reservation[i];
	return (struct slu_snap_reservation){ .phase = "", .message = "" };
}

/* The start a waiting gang was promised; 0: none. */
static int64_t promised_to(struct world *w, const char *name)
{
	struct slu_snapshot *s = picture(w);

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name))
			return s->job[i].promised ? s->job[i].estimate_s : 0;
	return 0;
}

#define NOTES(text) "\"annotations\":{" text "}"

static void test_keeps_others_out(void)
{
	struct world w;
	int64_t now;

	open_world(&w, 2, 2, FIRST_PROMISED);
	w.told = read_status;
	turn(&w);
	now = w.now_us / 1000000;
	reserve(&w, "r", 1, 300, 900, "\"count\":2");
	ok(!strcmp(held(&w, "r").phase, "Planned") && held(&w, "r").n_nodes == 2,
	   "the reservation has two nodes");
	ok(strstr(status, "\"phase\":\"Planned\"") && strstr(status, "\"nodes\":[\"n0\",\"n1\"]") &&
		   strstr(status, "\"status\":\"True\""),
	   "the status of the reservation is written: %s", status);
	add_pod(&w, "long", "sluice", "2", NOTES("\"sluice.sh/duration\":\"600\""));
	turn(&w);
	ok(!bound(&w, "long") && pictured(&w, "long").estimate_s == now + 900,
	   "who would not end before it is planned behind it: %s", pictured(&w, "long").reason);
	ok(strstr(pictured(&w, "long").reason, "reservation \"ns/r\""), "why names it: %s",
	   pictured(&w, "long").reason);
	add_pod(&w, "short", "sluice", "2", NOTES("\"sluice.sh/duration\":\"100\""));
	add_pod(&w, "mine", "sluice", "2",
		NOTES("\"sluice.sh/duration\":\"500\",\"sluice.sh/reservation\":\"r\""));
	turn(&w);
	ok(bound(&w, "short") && bound(&w, "mine"),
	   "a gang that ends in time starts, and so does one that names the reservation");
	end_pod(&w, &w.pod[1], "Succeeded");
	later(&w, 310);
	ok(!strcmp(held(&w, "r").phase, "Active") && strstr(status, "\"phase\":\"Active\""),
	   "the reservation begins");
	add_pod(&w, "more", "sluice", "2",
		NOTES("\"sluice.sh/duration\":\"100\",\"sluice.sh/reservation\":\"r\""));
	turn(&w);
	ok(bound(&w, "more") && !bound(&w, "long"),
	   "only gangs that may use the reservation start in it");
	later(&w, 600);
	ok(!strcmp(held(&w, "r").phase, "Ended") && strstr(status, "\"status\":\"False\""),
	   "the reservation ends");
	end_pod(&w, &w.pod[2], "Succeeded");
	end_pod(&w, &w.pod[3], "Succeeded");
	later(&w, 1);
	ok(bound(&w, "long"), "after its end every job may use the reserved nodes");
	ok(differences(&w) == 0, "books and cluster agree");
	close_world(&w);
}

static void test_users_amounts_every(void)
{
	struct world w;
	int64_t now;

	open_world(&w, 1, 4, FIRST_PROMISED);
	turn(&w);
	now = w.now_us / 1000000;
	reserve(&w, "r", 1, 0, 600,
		"\"nodes\":[\"n0\"],\"amounts\":{\"cpu\":\"3\"},\"every\":\"1h\"");
	ok(!strcmp(held(&w, "r").phase, "Active"), "named node, part of it: %s",
	   held(&w, "r").message);
	add_pod(&w, "one", "sluice", "1", NOTES("\"sluice.sh/duration\":\"60\""));
	add_pod(&w, "two", "sluice", "2", NOTES("\"sluice.sh/duration\":\"60\""));
	turn(&w);
	ok(bound(&w, "one") && !bound(&w, "two"),
	   "other gangs may use one core, not the three that are reserved");
	ok(differences(&w) == 0, "the audit does not take reserved cores for used ones");
	add_pod(&w, "guest", "sluice", "2",
		NOTES("\"sluice.sh/duration\":\"60\",\"sluice.sh/reservation\":\"r\""));
	turn(&w);
	ok(bound(&w, "guest") && differences(&w) == 0,
	   "nor does it count the cores of a gang inside the reservation twice");
	end_pod(&w, &w.pod[2], "Succeeded");
	later(&w, 601);
	ok(!strcmp(held(&w, "r").phase, "Planned") && held(&w, "r").from_s == now + 3600 &&
		   held(&w, "r").until_s == now + 4200,
	   "a repeated reservation is planned again an hour later");
	ok(bound(&w, "two"), "between two windows every gang may use the cores");
	reserve(&w, "r", 2, 0, 600, "\"nodes\":[\"n0\"],\"users\":[\"ns\"]");
	end_pod(&w, &w.pod[0], "Succeeded");
	end_pod(&w, &w.pod[1], "Succeeded");
	add_pod(&w, "three", "sluice", "4", NOTES("\"sluice.sh/duration\":\"60\""));
	later(&w, 1);
	ok(bound(&w, "three"), "changed: its users need not name it");
	feed(&w, SLU_KIND_RESERVATION, true,
	     "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"r-r\",\"generation\":2,"
	     "\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{}}",
	     ++w.rv);
	turn(&w);
	ok(!*held(&w, "r").phase, "the reservation is deleted");
	ok(differences(&w) == 0, "books and cluster agree");
	close_world(&w);
}

/* The plan knows the occurrences to come: fifty minutes lie between two of ten. */
static void test_several_occurrences(void)
{
	struct world w;
	int64_t now;

	open_world(&w, 1, 4, FIRST_PROMISED);
	turn(&w);
	now = w.now_us / 1000000;
	reserve(&w, "r", 1, 60, 660, "\"nodes\":[\"n0\"],\"every\":\"1h\"");
	add_pod(&w, "long", "sluice", "4", NOTES("\"sluice.sh/duration\":\"3100\""));
	turn(&w);
	ok(promised_to(&w, "long") == now + 7 * 3600 + 660,
	   "an hour has no room for it as far as the plan reaches: promised after the eighth");
	add_pod(&w, "fits", "sluice", "4", NOTES("\"sluice.sh/duration\":\"2900\""));
	add_pod(&w, "guest", "sluice", "4",
		NOTES("\"sluice.sh/duration\":\"500\",\"sluice.sh/reservation\":\"r\""));
	later(&w, 61);
	ok(bound(&w, "guest") && !bound(&w, "fits"), "the first is used by the gang that names it");
	end_pod(&w, &w.pod[2], "Succeeded");
	later(&w, 600);
	ok(bound(&w, "fits") && !bound(&w, "long"), "a shorter one runs until the second");
	ok(!strcmp(held(&w, "r").phase, "Planned") && held(&w, "r").from_s == now + 3660,
	   "after the first occurrence the second one is planned");
	end_pod(&w, &w.pod[1], "Succeeded");
	add_pod(&w, "again", "sluice", "4",
		NOTES("\"sluice.sh/duration\":\"500\",\"sluice.sh/reservation\":\"r\""));
	later(&w, 1);
	ok(!bound(&w, "long") && bound(&w, "again"),
	   "a job that names the reservation also runs between its occurrences");
	ok(differences(&w) == 0, "books and cluster agree");
	close_world(&w);
}

static void test_wrong(void)
{
	struct world w;

	open_world(&w, 2, 2, "");
	w.told = read_status;
	turn(&w);
	reserve(&w, "a", 1, 0, 600, "\"nodes\":[\"nowhere\"]");
	ok(!strcmp(held(&w, "a").phase, "Unplanned") &&
		   strstr(status, "there is no node \\\"nowhere\\\""),
	   "an unknown node: %s", status);
	feed_node(&w, "nowhere", 2, "", "", "True");
	turn(&w);
	ok(!strcmp(held(&w, "a").phase, "Active"), "a reservation is planned once its node exists");
	reserve(&w, "b", 1, 0, 600, "\"count\":9");
	ok(strstr(status, "needs 9 nodes; only 3 are available"),
	   "more nodes than there are cannot be reserved: %s", status);
	reserve(&w, "c", 1, 0, 600, "\"count\":1,\"nodes\":[\"n0\"]");
	ok(!strcmp(held(&w, "c").phase, "Refused"), "a count beside names of nodes is refused: %s",
	   held(&w, "c").message);
	reserve(&w, "d", 1, 600, 0, "\"count\":1");
	ok(!strcmp(held(&w, "d").phase, "Refused"), "an end before the start is refused: %s",
	   held(&w, "d").message);
	reserve(&w, "e", 1, 0, 600, "\"count\":1,\"every\":\"5m\"");
	ok(!strcmp(held(&w, "e").phase, "Refused"),
	   "an interval shorter than the reservation is refused: %s", held(&w, "e").message);
	add_pod(&w, "p", "sluice", "2", NOTES("\"sluice.sh/reservation\":\"later\""));
	later(&w, 1);
	ok(!bound(&w, "p") && strstr(pictured(&w, "p").reason, "there is no Reservation \"later\""),
	   "a gang that names none: %s", pictured(&w, "p").reason);
	reserve(&w, "later", 1, 0, 600, "\"nodes\":[\"n1\"]");
	later(&w, 1);
	ok(bound(&w, "p"), "a gang starts once the reservation that it names exists");
	close_world(&w);
}

static void test_node_goes(void)
{
	struct world w;

	open_world(&w, 3, 2, "");
	turn(&w);
	reserve(&w, "r", 1, 100, 600, "\"count\":2");
	ok(held(&w, "r").n_nodes == 2 && !strcmp(held(&w, "r").node[1], "n1"),
	   "the reservation of two nodes gets n0 and n1");
	feed(&w, SLU_KIND_NODE, true,
	     "{\"metadata\":{\"name\":\"n0\",\"uid\":\"node-n0\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{},\"status\":{}}",
	     ++w.rv);
	turn(&w);
	ok(held(&w, "r").n_nodes == 2 && !strcmp(held(&w, "r").node[0], "n1") &&
		   !strcmp(held(&w, "r").node[1], "n2"),
	   "another takes the place of one that goes");
	ok(differences(&w) == 0, "books and cluster agree");
	close_world(&w);
}

static void ask_text(struct world *w, enum slu_ask what, const char *name, const char *text)
{
	question(w, name, &(struct slu_rec_ask){ .what = what, .text = text });
}

static void test_asked(void)
{
	struct world w;

	open_world(&w, 1, 2, "");
	turn(&w);
	ask_text(&w, SLU_ASK_RESERVE, "r", "{the object}");
	snprintf(created, sizeof created, "%s", w.last_create);
	ok(!strcmp(created, "{the object}") && w.creates == 1,
	   "the Reservation is created as asked for: %s", created);
	reserve(&w, "r", 1, -10, 600, "\"count\":1");
	ask_text(&w, SLU_ASK_RESERVE, "r", "{the object}");
	ok(w.answer_rc == -EINVAL && strstr(w.answer, "already"),
	   "a name that is taken is refused: %s", w.answer);
	ask_text(&w, SLU_ASK_UNRESERVE, "r", NULL);
	ok(!w.answer_rc && strstr(w.answer, "is over") && strstr(w.last_spec, "\"every\":null"),
	   "a Reservation is ended: %s: %s", w.answer, w.last_spec);
	ask_text(&w, SLU_ASK_UNRESERVE, "nobody", NULL);
	ok(w.answer_rc == -ENOENT, "the end of an unknown Reservation is refused: %s", w.answer);
	close_world(&w);
}

/* The store has the nodes that were chosen for a Reservation: another life keeps them, although
 * others are as good now. */
static void test_restart(void)
{
	struct fpod *p;
	struct world w;
	char store[64];

	snprintf(store, sizeof store, "/tmp/sluice-reserve-%d.db", (int)getpid());
	unlink(store);
	open_world_at(&w, store, 2, 2, "");
	p = add_pod(&w, "other", "default-scheduler", "2", "");
	snprintf(p->node, sizeof p->node, "n0");
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(&w, p, false);
	turn(&w);
	reserve(&w, "r", 1, 300, 900, "\"count\":1");
	ok(held(&w, "r").n_nodes == 1 && !strcmp(held(&w, "r").node[0], "n1"),
	   "a reservation by count gets the node without a job");
	next_life(&w, store);
	feed_node(&w, "n0", 2, "", "", "True");
	feed_node(&w, "n1", 2, "", "", "True");
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		if (k != SLU_KIND_RESERVATION)
			slu_core_take(w.core, slu_rec_synced_new((enum slu_kkind)k), w.now_us);
	w.now_us -= 1000000;
	reserve(&w, "r", 1, 300, 900, "\"count\":1");
	w.now_us += 1000000;
	slu_core_take(w.core, slu_rec_synced_new(SLU_KIND_RESERVATION), w.now_us);
	turn(&w);
	ok(held(&w, "r").n_nodes == 1 && !strcmp(held(&w, "r").node[0], "n1"),
	   "the next life keeps it, although n0 is free now: %s", held(&w, "r").node[0]);
	slu_core_free(w.core);
	slu_inbox_free(w.out);
	slu_config_free(w.cfg);
	slu_kcodec_free(w.codec);
	slu_strpool_free(w.pool);
	unlink(store);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_keeps_others_out();
	test_users_amounts_every();
	test_several_occurrences();
	test_wrong();
	test_node_goes();
	test_asked();
	test_restart();
	return tap_done();
}
