/* mirror_tool — a reflector under test: keeps a mirror and answers questions on its standard input.
 *
 *	mirror_tool KUBECONFIG RESOURCE [NAMESPACE [PAGE [JOURNAL]]]
 *	  state	 one line per object, "namespace/name uid version", then "."
 *	  fold	 the same from the changes handed over
 *	  stats	 one line of JSON
 *	  cut	 break the connection of the watch
 *	  quit
 * JOURNAL gets one line per change handed over.  Lines on standard output start with "synced" and
 *"trouble" as things happen. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/map.h"
#include "kube/reflector.h"

static struct slu_loop *loop;
static struct slu_kube_client *client;
static struct slu_reflector *reflector;
static FILE *journal;
static uint64_t handed, doubled, lost;

/* What the changes amount to, kept apart from the mirror: uid -> object. */
static struct slu_map fold;

static uint64_t key_of(const struct slu_kobj *o)
{
	return (uint64_t)(uintptr_t)
		o->meta.uid; /* pooled and held by the object: one pointer per uid */
}

static void changed(void *arg, const struct slu_kobj *old, const struct slu_kobj *now)
{
	uint64_t *held = slu_map_get(&fold, key_of(now ? now : old));
	const struct slu_kobj *was = held ? (const void *)(uintptr_t)*held : NULL;

	handed++;
	if (journal)
		fprintf(journal, "%s %s/%s %" PRIu64 "\n",
			!old  ? "ADDED"
			: now ? "MODIFIED"
			      : "DELETED",
			(now ? now : old)->meta.ns, (now ? now : old)->meta.name,
			(now ? now : old)->meta.rv);
	if (!old) {
		doubled += was != NULL;
	} else if (!was) {
		lost++;
	} else {
		doubled += now && was->meta.rv >= now->meta.rv;
		lost += now && was != old;
	}
	if (now) {
		slu_kobj_ref(now);
		if (slu_map_put(&fold, key_of(now), (uint64_t)(uintptr_t)now) < 0)
			abort();
	} else if (was) {
		slu_map_del(&fold, key_of(old));
	}
	slu_kobj_unref(was);
}

static void synced(void *arg, bool first)
{
	printf("synced %d %u %s\n", first, slu_mirror_count(slu_reflector_mirror(reflector)),
	       slu_mirror_rv(slu_reflector_mirror(reflector)));
	fflush(stdout);
}

static void trouble(void *arg, const char *sentence)
{
	printf("trouble %s\n", sentence ? sentence : "over");
	fflush(stdout);
}

static void line_of(const struct slu_kobj *o)
{
	printf("%s/%s %s %" PRIu64 "\n", o->meta.ns, o->meta.name, o->meta.uid, o->meta.rv);
}

static long resident_kb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void print_stats(void)
{
	struct slu_mirror_stats s;
	struct slu_kube_stats k;

	slu_mirror_stats(slu_reflector_mirror(reflector), &s);
	slu_kube_client_stats(client, &k);
	printf("{\"count\":%u,\"rv\":\"%s\",\"handed\":%" PRIu64 ",\"doubled\":%" PRIu64
	       ",\"lost\":%" PRIu64 ",\"added\":%" PRIu64 ",\"updated\":%" PRIu64
	       ",\"deleted\":%" PRIu64 ",\"repeated\":%" PRIu64 ",\"events\":%" PRIu64
	       ",\"bookmarks\":%" PRIu64 ",\"lists\":%" PRIu64 ",\"pages\":%" PRIu64
	       ",\"watches\":%" PRIu64 ",\"expired\":%" PRIu64 ",\"bad\":%" PRIu64
	       ",\"connects\":%" PRIu64 ",\"rss_kb\":%ld}\n",
	       slu_mirror_count(slu_reflector_mirror(reflector)),
	       slu_mirror_rv(slu_reflector_mirror(reflector)), handed, doubled, lost, s.added,
	       s.updated, s.deleted, s.repeated, s.events, s.bookmarks, s.lists, s.pages, s.watches,
	       s.expired, s.bad, k.connects, resident_kb());
}

static void command(void *arg)
{
	char *line = arg;

	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "state") == 0) {
		const struct slu_kobj *o;
		uint32_t i = 0;

		while ((o = slu_mirror_next(slu_reflector_mirror(reflector), &i)))
			line_of(o);
		printf(".\n");
	} else if (strcmp(line, "fold") == 0) {
		for (uint32_t i = 0; i < fold.n; i++)
			line_of((const void *)(uintptr_t)fold.e[i].val);
		printf(".\n");
	} else if (strcmp(line, "stats") == 0) {
		malloc_trim(0);
		if (journal)
			fflush(journal);
		print_stats();
	} else if (strcmp(line, "cut") == 0) {
		slu_kube_client_cut(client, SLU_KUBE_LANE_WATCH);
		printf("cut\n");
	} else if (strcmp(line, "quit") == 0) {
		slu_loop_stop(loop);
	}
	fflush(stdout);
	slu_free(line);
}

static void *reader(void *arg)
{
	char line[256];

	while (fgets(line, sizeof line, stdin)) {
		char *s = slu_strdup(line);

		if (!s || slu_loop_post(loop, command, s) < 0)
			abort();
	}
	if (slu_loop_post(loop, command, slu_strdup("quit")) < 0)
		abort();
	return NULL;
}

int main(int argc, char **argv)
{
	struct slu_kube_config_options co = { .path = argc > 1 ? argv[1] : NULL };
	struct slu_reflector_options ro = { .trouble = trouble };
	struct slu_mirror_handler h = { changed, synced, NULL };
	struct slu_kube_config *cfg = NULL;
	struct slu_error err = { 0 };
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_kcodec *codec = slu_kcodec_new(pool);
	enum slu_kkind kind = SLU_KIND_NONE;
	pthread_t t;

	for (int k = SLU_KIND_NONE + 1; argc > 2 && k < SLU_KIND_PARTIAL; k++) {
		if (strcmp(slu_kkind_info(k)->resource, argv[2]) == 0)
			kind = k;
	}
	if (kind == SLU_KIND_NONE) {
		fprintf(stderr,
			"usage: mirror_tool KUBECONFIG RESOURCE [NAMESPACE [PAGE [JOURNAL]]]\n");
		return 2;
	}
	ro.ns = argc > 3 && argv[3][0] ? argv[3] : NULL;
	ro.page = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
	if (argc > 5) {
		journal = fopen(argv[5], "w");
		if (!journal) {
			perror(argv[5]);
			return 1;
		}
	}
	loop = slu_loop_new();
	if (slu_kube_config_load(&co, &cfg, &err) < 0 ||
	    slu_kube_client_new(loop, cfg, NULL, &client, &err) < 0 ||
	    slu_reflector_new(client, kind, codec, &h, &ro, &reflector, &err) < 0) {
		fprintf(stderr, "mirror_tool: %s\n", err.text);
		return 1;
	}
	if (pthread_create(&t, NULL, reader, NULL))
		return 1;
	pthread_detach(t);
	slu_loop_run(loop);
	slu_reflector_free(reflector);
	slu_kube_client_free(client);
	slu_kube_config_unref(cfg);
	for (uint32_t i = 0; i < fold.n; i++)
		slu_kobj_unref((const void *)(uintptr_t)fold.e[i].val);
	slu_map_done(&fold);
	slu_kcodec_free(codec);
	slu_loop_free(loop);
	slu_strpool_free(pool);
	return 0;
}
