/* Traffic that was recorded on a real API server (tests/e2e/record.py), told to the world's daemon at the
 * recorded times.  The daemon leads and decides, and what it writes goes nowhere: the answers are in the
 * recording, which shows what another sluiced did.  Where the recorder wrote down what must be so, the
 * mirrors, the books and the groups are compared with it. */
#include <stdio.h>
#include <zlib.h>

#include "control/report/snapshot.h"
#include "coverage.h"
#include "daemon.h"
#include "wire/json.h"

struct piece {
	int64_t at_us;
	enum slu_kkind kind;
	char what; /* the first letter: page, watch, absent, expect */
	enum slu_kencoding enc;
	const char *body;
	size_t n;
};

static SLU_VEC(struct piece) pieces;
static uint32_t marks;

static bool read_all(const char *file, struct slu_buf *b)
{
	gzFile f = gzopen(file, "rb");
	char part[1 << 16];
	int n = f ? 0 : -1;

	while (f && (n = gzread(f, part, sizeof part)) > 0)
		slu_buf_add(b, part, (size_t)n);
	if (f)
		gzclose(f);
	return n == 0 && !b->error;
}

static enum slu_kkind kind_named(const char *group, const char *resource)
{
	for (enum slu_kkind k = SLU_KIND_NODE; k < SLU_KIND_PARTIAL; k++) {
		const struct slu_kkind_info *i = slu_kkind_info(k);

		if (!strcmp(*i->group ? i->group : "core", group) && !strcmp(i->resource, resource))
			return k;
	}
	return SLU_KIND_COUNT;
}

/* The pieces are slices of the text. */
static bool cut(const char *p, const char *end)
{
	while (p < end) {
		struct piece x = { 0 };
		char group[64], resource[64], what[16], enc[8];
		const char *line = memchr(p, '\n', (size_t)(end - p));

		if (!line || sscanf(p, "%" SCNd64 " %63[^/]/%63s %15s %7s %zu", &x.at_us, group,
				    resource, what, enc, &x.n) != 6)
			return false;
		x.kind = kind_named(group, resource);
		x.what = *what;
		x.enc = *enc == 'p' ? SLU_ENC_PROTOBUF : SLU_ENC_JSON;
		x.body = line + 1;
		if (x.kind == SLU_KIND_COUNT || x.n >= (size_t)(end - x.body) ||
		    slu_vec_push(&pieces, x) < 0)
			return false;
		p = x.body + x.n + 1;
	}
	return pieces.n > 0;
}

/* ---- what must be so ---- */

static void check_mirrors(struct world *w, const struct slu_json *objects)
{
	slu_json_each (objects, k) {
		const char *slash = strrchr(k.key, '/');
		char group[64];
		const struct slu_mirror *m;

		snprintf(group, sizeof group, "%.*s", (int)(slash - k.key), k.key);
		m = w->daemon[0]->watch[kind_named(group, slash + 1)].mirror;
		if (slu_mirror_count(m) != slu_json_count(k.val))
			world_broken(w, "mirror", "the mirror of %s has %u objects, there are %u",
				     k.key, slu_mirror_count(m), (unsigned)slu_json_count(k.val));
		slu_json_each (k.val, o) {
			const char *name = strchr(o.key, '/') + 1;
			char ns[256];
			const struct slu_kobj *have;

			snprintf(ns, sizeof ns, "%.*s", (int)(name - 1 - o.key), o.key);
			have = slu_mirror_get(m, ns, name);
			if (!have || have->meta.rv != strtoull(slu_json_str(o.val), NULL, 10))
				world_broken(w, "mirror", "%s %s is not of version %s", k.key,
					     o.key, slu_json_str(o.val));
		}
	}
}

static void check_free(struct world *w, const struct slu_snapshot *s, const struct slu_json *nodes)
{
	if (s->n_nodes != slu_json_count(nodes))
		world_broken(w, "books", "the daemon knows %u nodes, there are %u", s->n_nodes,
			     (unsigned)slu_json_count(nodes));
	slu_json_each (nodes, n)
		for (uint32_t i = 0; i < s->n_nodes; i++)
			for (uint32_t a = 0;
			     !strcmp(s->node[i].name, n.key) && a < s->node[i].n_amounts; a++)
				if (!strcmp(s->node[i].amount[a].name, "cpu") &&
				    s->node[i].amount[a].free != slu_json_i64_or(n.val, -1))
					world_broken(w, "books",
						     "node %s has %" PRId64
						     " millicores free, the daemon says %" PRId64,
						     n.key, slu_json_i64_or(n.val, -1),
						     s->node[i].amount[a].free);
}

static const char *node_in(const struct slu_snap_job *j, const char *pod)
{
	for (uint32_t i = 0; i < j->n_pods; i++)
		if (!strcmp(j->pod[i].name, pod))
			return j->pod[i].node;
	return NULL;
}

/* The job of a namespace that has the pod. */
static const struct slu_snap_job *job_with(const struct slu_snapshot *s, const char *key,
					   const char *pod)
{
	size_t ns = strcspn(key, "/");

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (strlen(s->job[i].ns) == ns && !memcmp(s->job[i].ns, key, ns) &&
		    node_in(&s->job[i], pod))
			return &s->job[i];
	return NULL;
}

/* The pods of a group are one job, each where it is. */
static void check_groups(struct world *w, const struct slu_snapshot *s,
			 const struct slu_json *groups)
{
	slu_json_each (groups, g) {
		const struct slu_snap_job *j = job_with(s, g.key, slu_json_first(g.val).key);

		if (!j)
			world_broken(w, "groups", "the daemon does not know group %s", g.key);
		slu_json_each (g.val, p) {
			const char *node = j ? node_in(j, p.key) : NULL;

			if (!node || strcmp(node, slu_json_str(p.val)) != 0)
				world_broken(w, "groups",
					     "pod %s of group %s is on \"%s\", the daemon says %s",
					     p.key, g.key, slu_json_str(p.val),
					     node ? node : "that it is not there");
		}
	}
}

static void expect(struct world *w, const struct piece *x)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	slu_cleanup(slu_snapshot_unrefp) struct slu_snapshot *s = daemon_picture(w, 0);
	const struct slu_json *root;

	if (slu_json_parse(x->body, x->n, NULL, &doc, NULL) < 0) {
		world_broken(w, "recording", "what is expected cannot be read");
		return;
	}
	root = slu_json_root(doc);
	marks++;
	if (!s || !s->synced || !s->leader)
		world_broken(w, "ready", "the daemon is not ready");
	else {
		check_mirrors(w, slu_json_get(root, "objects"));
		check_free(w, s, slu_json_get(root, "free"));
		check_groups(w, s, slu_json_get(root, "groups"));
	}
}

/* ---- what the daemon hears ---- */

static void arrives(struct world *w, uint64_t i, uint64_t unused)
{
	const struct piece *x = &pieces.p[i];
	struct slu_mirror *m = w->daemon[0]->watch[x->kind].mirror;
	struct slu_error err = { 0 };
	int rc = 0;

	if (x->what == 'e') {
		expect(w, x);
	} else if (x->what == 'a') {
		slu_mirror_absent(m);
	} else if (x->what == 'p') {
		rc = slu_mirror_page(m, x->enc, x->body, x->n, &err);
		if (!rc && slu_mirror_wants(m) == SLU_MIRROR_WATCH)
			slu_mirror_watch_begin(m, x->enc);
	} else {
		rc = slu_mirror_watch_data(m, x->body, x->n, &err);
	}
	if (rc < 0)
		world_broken(w, "recording", "a piece of %ss is not understood: %s",
			     slu_kkind_info(x->kind)->kind, err.text);
}

bool recorded_run(const char *file, bool story, char *text, size_t size)
{
	struct world w = { .seed = 1, .story = story ? stdout : NULL };
	struct slu_buf all = SLU_BUF_INIT(256u << 20);
	bool good = read_all(file, &all) && cut(slu_buf_str(&all), slu_buf_str(&all) + all.n);

	marks = 0;
	if (good) {
		for (uint32_t i = 0; i < pieces.n; i++)
			w.recorded |= UINT64_C(1) << pieces.p[i].kind;
		cover_world(&w);
		world_bare(&w);
		w.now_us = pieces.p[0].at_us;
		daemon_start(&w, 0)->mute = true;
		for (uint32_t i = 0; i < pieces.n; i++)
			world_at(&w, pieces.p[i].at_us, arrives, i, 0);
		world_pass(&w, (pieces.p[pieces.n - 1].at_us - w.now_us) / SECOND + 1);
		world_free(&w);
	}
	snprintf(text, size, "%u pieces of real traffic, compared at %u moments%s%s%s%s", pieces.n,
		 marks,
		 w.failed ? ": "
		 : good   ? ""
			  : ": cannot be read",
		 w.failed ? w.rule : "", w.failed ? ": " : "", w.failed ? w.what : "");
	slu_vec_done(&pieces);
	slu_buf_done(&all);
	return good && !w.failed && marks;
}
