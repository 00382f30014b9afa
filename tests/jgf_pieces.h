/* jgf_pieces.h — a JGF text that arrives in pieces against the same text read whole. */
#pragma once
#include "graph/read.h"

static bool same_vertices(const struct slu_graph *a, const struct slu_graph *b)
{
	if (a->v.n != b->v.n || a->live_v != b->live_v || a->path.n != b->path.n ||
	    a->prop.n != b->prop.n || memcmp(a->root, b->root, sizeof a->root) != 0)
		return false;
	for (uint32_t i = 0; i < a->v.n; i++) {
		const struct slu_vertex *x = &a->v.p[i], *y = &b->v.p[i];

		if (x->id != y->id || x->uniq_id != y->uniq_id || x->basename != y->basename ||
		    x->name != y->name || x->size != y->size || x->rank != y->rank ||
		    x->type != y->type || x->status != y->status || x->path != y->path ||
		    x->props != y->props)
			return false;
	}
	for (uint32_t i = 0; i < a->path.n; i++)
		if (a->path.p[i].hash != b->path.p[i].hash ||
		    a->path.p[i].subsystem != b->path.p[i].subsystem)
			return false;
	return true;
}

static bool same_edges(const struct slu_graph *a, const struct slu_graph *b)
{
	if (a->e.n != b->e.n || a->live_e != b->live_e)
		return false;
	for (uint32_t i = 0; i < a->e.n; i++)
		if (a->e.p[i].src != b->e.p[i].src || a->e.p[i].dst != b->e.p[i].dst ||
		    a->e.p[i].subsystem != b->e.p[i].subsystem)
			return false;
	return true;
}

/* What differs, or NULL.  The first piece has `first` bytes, the others `piece`. */
static const char *pieces_differ(const char *text, size_t n, size_t first, size_t piece)
{
	struct slu_buf want = SLU_BUF_INIT((size_t)1 << 24), got = SLU_BUF_INIT((size_t)1 << 24);
	struct slu_graph *whole = slu_graph_new(), *made = NULL;
	struct slu_jgf_loader *l = slu_jgf_loader_new();
	const char *what = whole && l ? NULL : "there is no memory";

	if (!what) {
		int rc = slu_read(whole, "jgf", text, n, NULL, &want), end;

		for (size_t i = 0, k = first; i < n; i += k, k = piece) {
			k = SLU_MIN(k, n - i);
			slu_jgf_loader_feed(l, text + i, k);
		}
		end = slu_jgf_loader_end(l, &made, &got);
		if (end != rc)
			what = "the outcome differs";
		else if (want.n != got.n || memcmp(slu_buf_str(&want), slu_buf_str(&got), want.n))
			what = "the words differ";
		else if (!rc && !same_vertices(whole, made))
			what = "the vertices differ";
		else if (!rc && !same_edges(whole, made))
			what = "the edges differ";
	}
	slu_jgf_loader_free(l);
	slu_graph_free(whole);
	slu_graph_free(made);
	slu_buf_done(&want);
	slu_buf_done(&got);
	return what;
}
