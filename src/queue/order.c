#include "queue/queue_internal.h"

bool queue_order_before(const struct job *a, const struct job *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->first_seen_us != b->first_seen_us)
		return a->first_seen_us < b->first_seen_us;
	int c = a->name == b->name ? 0 : strcmp(job_name(a), job_name(b));

	return c ? c < 0 : a->id < b->id;
}

bool queue_order_shorter(const struct job *a, const struct job *b)
{
	return a->limit_s != b->limit_s ? a->limit_s < b->limit_s : queue_order_before(a, b);
}

bool queue_order_sooner(const struct job *a, const struct job *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return a->due_s != b->due_s ? a->due_s < b->due_s : queue_order_before(a, b);
}

static void pull_up(struct job *t, uint32_t i)
{
	struct order_node *n = &t[i].ord;

	n->size = 1;
	n->shortest = n->soonest = i;
	for (int side = 0; side < 2; side++) {
		uint32_t c = side ? n->right : n->left;

		if (c == SLU_NIL)
			continue;
		n->size += t[c].ord.size;
		if (queue_order_shorter(&t[t[c].ord.shortest], &t[n->shortest]))
			n->shortest = t[c].ord.shortest;
		if (queue_order_sooner(&t[t[c].ord.soonest], &t[n->soonest]))
			n->soonest = t[c].ord.soonest;
	}
}

/* Everything before j goes left, the rest right. */
static void split_tree(struct job *t, uint32_t root, const struct job *j, uint32_t *left,
		       uint32_t *right)
{
	if (root == SLU_NIL) {
		*left = *right = SLU_NIL;
	} else if (queue_order_before(&t[root], j)) {
		*left = root;
		split_tree(t, t[root].ord.right, j, &t[root].ord.right, right);
		pull_up(t, root);
	} else {
		*right = root;
		split_tree(t, t[root].ord.left, j, left, &t[root].ord.left);
		pull_up(t, root);
	}
}

static uint32_t merge_trees(struct job *t, uint32_t a, uint32_t b)
{
	if (a == SLU_NIL)
		return b;
	if (b == SLU_NIL)
		return a;
	if (t[a].ord.heap > t[b].ord.heap) {
		t[a].ord.right = merge_trees(t, t[a].ord.right, b);
		pull_up(t, a);
		return a;
	}
	t[b].ord.left = merge_trees(t, a, t[b].ord.left);
	pull_up(t, b);
	return b;
}

static void insert_job(struct job *t, uint32_t *root, uint32_t j)
{
	if (*root != SLU_NIL && t[*root].ord.heap >= t[j].ord.heap) {
		insert_job(t,
			   queue_order_before(&t[j], &t[*root]) ? &t[*root].ord.left
								: &t[*root].ord.right,
			   j);
		pull_up(t, *root);
		return;
	}
	split_tree(t, *root, &t[j], &t[j].ord.left, &t[j].ord.right);
	*root = j;
	pull_up(t, j);
}

void queue_order_insert(struct job *t, uint32_t *root, uint32_t j)
{
	t[j].ord = (struct order_node){ .left = SLU_NIL,
					.right = SLU_NIL,
					.heap = (uint32_t)slu_hash_u64(t[j].id) };
	insert_job(t, root, j);
}

void queue_order_remove(struct job *t, uint32_t *root, uint32_t j)
{
	if (*root == j) {
		*root = merge_trees(t, t[j].ord.left, t[j].ord.right);
		return;
	}
	assert(*root != SLU_NIL);
	queue_order_remove(
		t, queue_order_before(&t[j], &t[*root]) ? &t[*root].ord.left : &t[*root].ord.right,
		j);
	pull_up(t, *root);
}

uint32_t queue_order_first(const struct job *t, uint32_t root)
{
	while (root != SLU_NIL && t[root].ord.left != SLU_NIL)
		root = t[root].ord.left;
	return root;
}

uint32_t queue_order_last(const struct job *t, uint32_t root)
{
	while (root != SLU_NIL && t[root].ord.right != SLU_NIL)
		root = t[root].ord.right;
	return root;
}

uint32_t queue_order_soonest(const struct job *t, uint32_t root)
{
	return root == SLU_NIL ? SLU_NIL : t[root].ord.soonest;
}

uint32_t queue_order_first_below(const struct job *t, uint32_t root, int64_t below)
{
	while (root != SLU_NIL) {
		uint32_t l = t[root].ord.left;

		if (l != SLU_NIL && t[t[l].ord.shortest].limit_s < below)
			root = l;
		else if (t[root].limit_s < below)
			return root;
		else if (t[t[root].ord.shortest].limit_s < below)
			root = t[root].ord.right;
		else
			return SLU_NIL;
	}
	return SLU_NIL;
}

uint32_t queue_order_shortest(const struct job *t, uint32_t root, const struct job *last)
{
	uint32_t best = SLU_NIL;

	if (!last)
		return root == SLU_NIL ? SLU_NIL : t[root].ord.shortest;
	while (root != SLU_NIL) {
		if (queue_order_before(last, &t[root])) {
			root = t[root].ord.left;
			continue;
		}
		uint32_t l = t[root].ord.left;

		if (best == SLU_NIL || queue_order_shorter(&t[root], &t[best]))
			best = root;
		if (l != SLU_NIL && queue_order_shorter(&t[t[l].ord.shortest], &t[best]))
			best = t[l].ord.shortest;
		root = t[root].ord.right;
	}
	return best;
}

uint32_t queue_order_next(const struct job *t, uint32_t root, const struct job *j)
{
	uint32_t best = SLU_NIL;

	while (root != SLU_NIL) {
		if (queue_order_before(j, &t[root])) {
			best = root;
			root = t[root].ord.left;
		} else {
			root = t[root].ord.right;
		}
	}
	return best;
}

uint32_t queue_order_rank(const struct job *t, uint32_t root, const struct job *j)
{
	uint32_t before = 0;

	while (root != SLU_NIL) {
		uint32_t l = t[root].ord.left;

		if (queue_order_before(&t[root], j)) {
			before += 1 + (l == SLU_NIL ? 0 : t[l].ord.size);
			root = t[root].ord.right;
		} else {
			root = l;
		}
	}
	return before;
}

uint32_t queue_order_list(const struct job *t, uint32_t root, uint32_t *out)
{
	uint32_t n = 0;

	for (; root != SLU_NIL; root = t[root].ord.right) {
		n += queue_order_list(t, t[root].ord.left, out + n);
		out[n++] = root;
	}
	return n;
}
