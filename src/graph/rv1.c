#include "graph/rv1.h"

#include "base/hostlist.h"
#include "graph/read.h"
#include "wire/json.h"

#define MAX_RANKS (1u << 22)
#define MAX_ASKED (1u << 28) /* ranks times properties */

struct children {
	const char *type;
	struct slu_idset ids;
};

int slu_split_hostname(const char *host, size_t *basename, int64_t *id)
{
	size_t n = strlen(host), k = n;

	while (k && host[k - 1] >= '0' && host[k - 1] <= '9')
		k--;
	*basename = k ? k : n;
	*id = -1;
	if (k == n)
		return 0;
	errno = 0;
	*id = strtoll(host + k, NULL, 10);
	return errno ? -EOVERFLOW : 0;
}

struct walker {
	const struct slu_rv1_visitor *v;
	struct slu_buf *msg;
	const struct slu_json *properties;
	struct slu_idset ranks;   /* all of R_lite: the k-th has the k-th host */
	SLU_VEC(uint32_t) before; /* ranks before each of its ranges */
	struct slu_hostlist hosts;
	SLU_VEC(struct slu_idset) held;    /* ranks of each property */
	SLU_VEC(struct children) children; /* of the entry, up to the first wrong one */
	int wrong;
};

static int parse_set(const struct slu_json *v, struct slu_idset *out)
{
	const char *s = slu_json_str(v);
	int rc = s ? slu_idset_parse(out, s) : -EINVAL;

	return rc < 0 && rc != -ENOMEM && rc != -EOVERFLOW ? -EINVAL : rc;
}

static int by_lo(const void *a, const void *b)
{
	const struct slu_id_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Union of the ranks of all entries. */
static int collect_ranks(const struct slu_json *rlite, struct slu_idset *out)
{
	struct slu_idset s = { 0 }, all = { 0 };
	int rc = 0;

	if (!slu_json_is_arr(rlite))
		return 0;
	slu_json_each (rlite, it) {
		rc = parse_set(slu_json_get(it.val, "rank"), &s);
		for (uint32_t i = 0; !rc && i < s.r.n; i++)
			rc = slu_vec_push(&all.r, s.r.p[i]);
		if (rc < 0)
			break;
	}
	if (!rc && all.r.n)
		qsort(all.r.p, all.r.n, sizeof *all.r.p, by_lo);
	for (uint32_t i = 0; !rc && i < all.r.n; i++) {
		struct slu_id_range r = all.r.p[i],
				    *last = out->r.n ? &out->r.p[out->r.n - 1] : NULL;

		if (last && r.lo <= last->hi + 1)
			last->hi = SLU_MAX(last->hi, r.hi);
		else
			rc = slu_vec_push(&out->r, r);
	}
	if (!rc && slu_idset_count(out) > MAX_RANKS)
		rc = -EOVERFLOW;
	slu_idset_done(&s);
	slu_idset_done(&all);
	return rc;
}

static int count_before(struct walker *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->ranks.r.n; i++) {
		if (slu_vec_push(&w->before, n) < 0)
			return -ENOMEM;
		n += w->ranks.r.p[i].hi - w->ranks.r.p[i].lo + 1;
	}
	return 0;
}

/* Position of a rank among all ranks. */
static uint32_t position(const struct walker *w, uint32_t rank)
{
	uint32_t lo = 0, hi = w->ranks.r.n; /* its range is in [lo, hi) */

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (w->ranks.r.p[mid].lo <= rank)
			lo = mid;
		else
			hi = mid;
	}
	return w->before.p[lo] + rank - w->ranks.r.p[lo].lo;
}

static int parse_properties(struct walker *w)
{
	if (!slu_json_is_obj(w->properties))
		return 0;
	slu_json_each (w->properties, it) {
		struct slu_idset s = { 0 };
		int rc = parse_set(it.val, &s);

		if (!rc && slu_vec_push(&w->held, s) < 0)
			rc = -ENOMEM;
		if (rc < 0) {
			slu_idset_done(&s);
			return rc;
		}
	}
	return slu_idset_count(&w->ranks) * w->held.n > MAX_ASKED ? -EOVERFLOW : 0;
}

static int parse_hosts(struct walker *w, const struct slu_json *nodelist)
{
	if (!slu_json_is_arr(nodelist))
		return 0;
	slu_json_each (nodelist, it) {
		const char *s = slu_json_str(it.val);
		int rc = s ? slu_hostlist_parse(&w->hosts, s) : -EINVAL;

		if (rc < 0)
			return rc;
	}
	return 0;
}

static void forget_children(struct walker *w)
{
	for (uint32_t i = 0; i < w->children.n; i++)
		slu_idset_done(&w->children.p[i].ids);
	w->children.n = 0;
}

/* Read the children once for all ranks of an entry; an error is reported after the entry's first
 * node. */
static int parse_children(struct walker *w, const struct slu_json *children)
{
	forget_children(w);
	w->wrong = 0;
	if (!slu_json_is_obj(children))
		return 0;
	slu_json_each (children, it) {
		struct children c = { .type = it.key };

		w->wrong = parse_set(it.val, &c.ids);
		if (w->wrong < 0)
			return 0;
		if (!c.ids.r.n)
			continue;
		if (slu_vec_push(&w->children, c) < 0) {
			slu_idset_done(&c.ids);
			return -ENOMEM;
		}
	}
	return 0;
}

static int visit_children(struct walker *w, uint32_t rank)
{
	int rc = 0;

	for (uint32_t i = 0; i < w->children.n; i++)
		slu_idset_each (&w->children.p[i].ids, id) {
			rc = w->v->child(w->v->arg, w->children.p[i].type, (uint32_t)id, rank);
			if (rc < 0)
				return rc;
		}
	return w->wrong;
}

static int visit_rank(struct walker *w, uint32_t rank)
{
	struct slu_rv1_node x = { .rank = rank };
	uint32_t at = position(w, rank), k = 0;
	int rc;

	if (at >= w->hosts.h.n)
		return -EINVAL;
	x.host = w->hosts.h.p[at];
	if (slu_split_hostname(x.host, &x.basename, &x.id) < 0) {
		slu_buf_puts(w->msg, "unpack_rank: error splitting hostname=");
		slu_buf_puts(w->msg, x.host);
		slu_buf_puts(w->msg, "; ");
		return -EINVAL;
	}
	rc = w->v->node(w->v->arg, &x);
	if (rc < 0)
		return rc;
	if (w->held.n && w->v->property) {
		slu_json_each (w->properties, it) {
			if (slu_idset_has(&w->held.p[k++], rank) &&
			    (rc = w->v->property(w->v->arg, it.key)) < 0)
				return rc;
		}
	}
	return visit_children(w, rank);
}

static int visit_entry(struct walker *w, const struct slu_json *entry)
{
	const struct slu_json *children = slu_json_get(entry, "children");
	struct slu_idset ranks = { 0 };
	int rc = parse_set(slu_json_get(entry, "rank"), &ranks);

	if (!rc)
		rc = children ? parse_children(w, children) : -EINVAL;
	for (uint32_t i = 0; !rc && i < ranks.r.n; i++)
		for (uint64_t r = ranks.r.p[i].lo; !rc && r <= ranks.r.p[i].hi; r++)
			rc = visit_rank(w, (uint32_t)r);
	slu_idset_done(&ranks);
	return rc;
}

static int open_r(const char *text, size_t n, struct slu_json_doc **doc,
		  const struct slu_json **execution, const struct slu_json **rlite)
{
	int64_t version = 0;
	int rc = slu_json_parse(text, n, NULL, doc, NULL);

	if (rc < 0)
		return rc == -ENOMEM ? rc : -EINVAL;
	*execution = slu_json_get(slu_json_root(*doc), "execution");
	*rlite = slu_json_get(*execution, "R_lite");
	if (slu_json_i64(slu_json_get(slu_json_root(*doc), "version"), &version) < 0 ||
	    version != 1 || !*rlite)
		return -EINVAL;
	return 0;
}

int slu_rv1_walk(const char *text, size_t n, const struct slu_rv1_visitor *v, struct slu_buf *msg)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct walker w = { .v = v, .msg = msg };
	const struct slu_json *execution, *rlite, *nodelist = NULL;
	int rc = open_r(text, n, &doc, &execution, &rlite);

	if (!rc) {
		nodelist = slu_json_get(execution, "nodelist");
		w.properties = slu_json_get(execution, "properties");
		rc = nodelist ? 0 : -EINVAL;
	}
	if (!rc)
		rc = collect_ranks(rlite, &w.ranks);
	if (!rc)
		rc = count_before(&w);
	if (!rc)
		rc = parse_properties(&w);
	if (!rc)
		rc = parse_hosts(&w, nodelist);
	if (!rc && slu_json_is_arr(rlite))
		slu_json_each (rlite, it)
			rc = rc ? rc : visit_entry(&w, it.val);
	if (rc == -EOVERFLOW || rc == -EFBIG) {
		slu_buf_puts(msg, "R names too many ranks, hosts or resources.\n");
		rc = -EFBIG;
	}
	for (uint32_t i = 0; i < w.held.n; i++)
		slu_idset_done(&w.held.p[i]);
	slu_vec_done(&w.held);
	forget_children(&w);
	slu_vec_done(&w.children);
	slu_vec_done(&w.before);
	slu_idset_done(&w.ranks);
	slu_hostlist_done(&w.hosts);
	return rc;
}

int slu_rv1_ranks(const char *text, size_t n, struct slu_idset *out)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *execution, *rlite;
	int rc = open_r(text, n, &doc, &execution, &rlite);

	rc = rc ? rc : collect_ranks(rlite, out);
	return rc == -EOVERFLOW ? -EFBIG : rc;
}
