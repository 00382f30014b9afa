#include "queue/log_internal.h"

#include "base/map.h"

#define SWEEP 4096 /* frames between two searches for unused sets */

struct known_set {
	struct slu_nodeset *set; /* a reference: its address stays its own */
	uint64_t id, version;
};

struct slu_qlog {
	struct slu_buf row, event, dec;
	struct slu_buf picture; /* of a beginning in the middle: what is not in a row yet */
	size_t shown;           /* so much of it is */
	SLU_VEC(struct known_set) set;
	struct slu_map by_set; /* address -> place in `set` */
	uint64_t next_set;
	uint32_t resources, levels, decisions, frames;
	bool on, begins;
};

struct slu_qlog *slu_qlog_new(void)
{
	struct slu_qlog *l = slu_calloc(1, sizeof *l);

	if (l) {
		l->row = (struct slu_buf)SLU_BUF_INIT(SLU_QLOG_ROW_MAX);
		l->event = (struct slu_buf)SLU_BUF_INIT(SLU_QLOG_ROW_MAX);
		l->dec = (struct slu_buf)SLU_BUF_INIT(SLU_QLOG_ROW_MAX);
		l->picture = (struct slu_buf)SLU_BUF_INIT(SLU_QLOG_PICTURE_MAX);
	}
	return l;
}

static void forget_sets(struct slu_qlog *l)
{
	for (uint32_t i = 0; i < l->set.n; i++)
		slu_nodeset_unref(l->set.p[i].set);
	l->set.n = 0;
	slu_map_clear(&l->by_set);
}

void slu_qlog_free(struct slu_qlog *l)
{
	if (!l)
		return;
	forget_sets(l);
	slu_vec_done(&l->set);
	slu_map_done(&l->by_set);
	slu_buf_done(&l->row);
	slu_buf_done(&l->event);
	slu_buf_done(&l->dec);
	slu_buf_done(&l->picture);
	slu_free(l);
}

static void begin_log(struct slu_qlog *l, const struct slu_queue_opts *opts, unsigned version)
{
	slu_buf_done(&l->picture);
	slu_qlog_clear(l);
	forget_sets(l);
	l->next_set = l->resources = l->levels = 0;
	l->on = l->begins = true;
	slu_bytes_put_u(&l->row, LOG_BEGIN);
	slu_bytes_put_u(&l->row, version);
	slu_bytes_put_i(&l->row, opts->overrun_s);
	slu_bytes_put_u(&l->row, opts->lazy);
	slu_bytes_put_u(&l->row, opts->keep_results);
}

void slu_qlog_begin(struct slu_qlog *l, const struct slu_queue_opts *opts)
{
	begin_log(l, opts, LOG_VERSION);
}

void slu_qlog_stop(struct slu_qlog *l)
{
	if (!l->on)
		return;
	l->on = false;
	forget_sets(l);
	slu_bytes_put_u(&l->row, LOG_STOP);
}

bool slu_qlog_on(const struct slu_qlog *l)
{
	return l->on;
}

const struct slu_buf *slu_qlog_bytes(const struct slu_qlog *l)
{
	return &l->row;
}

uint32_t slu_qlog_decisions(const struct slu_qlog *l)
{
	return l->decisions;
}

bool slu_qlog_begins(const struct slu_qlog *l)
{
	return l->begins;
}

/* The next piece of the picture. */
static void write_picture(struct slu_qlog *l)
{
	size_t n = SLU_MIN(l->picture.n - l->shown, (size_t)LOG_PIECE);

	slu_bytes_put_u(&l->row, LOG_PICTURE);
	slu_bytes_put_u(&l->row, l->shown + n < l->picture.n);
	slu_bytes_put_u(&l->row, n);
	slu_buf_add(&l->row, l->picture.p + l->shown, n);
	l->shown += n;
	if (l->shown == l->picture.n)
		slu_buf_done(&l->picture);
}

void slu_qlog_clear(struct slu_qlog *l)
{
	slu_buf_reset(&l->row);
	l->decisions = 0;
	l->begins = false;
	if (l->picture.n)
		write_picture(l);
}

/* ---- sets ---- */

static void put_set(struct slu_qlog *l, const struct known_set *k)
{
	uint32_t n = k->set->n_word;

	while (n && !k->set->word[n - 1])
		n--;
	slu_bytes_put_u(&l->row, LOG_SET);
	slu_bytes_put_u(&l->row, k->id);
	slu_bytes_put_u(&l->row, n);
	for (uint32_t i = 0; i < n; i++)
		slu_buf_add(&l->row, &k->set->word[i], sizeof k->set->word[i]);
}

/* The number of a set in the log; a set that is met for the first time is written. */
static uint64_t set_id(void *arg, const struct slu_nodeset *s)
{
	struct slu_qlog *l = arg;
	uint64_t *at = slu_map_get(&l->by_set, (uintptr_t)s);
	struct known_set *k = at ? &l->set.p[*at] : NULL;

	if (k && k->version != s->version) { /* changed behind our back */
		k->version = s->version;
		put_set(l, k);
	}
	if (k)
		return k->id;
	if (l->set.n >= LOG_SETS_MAX || slu_vec_reserve(&l->set, l->set.n + 1) < 0 ||
	    slu_map_put(&l->by_set, (uintptr_t)s, l->set.n) < 0) {
		l->row.error = -ENOMEM;
		return 0;
	}
	k = &l->set.p[l->set.n++];
	*k = (struct known_set){ slu_nodeset_ref(s), l->next_set++, s->version };
	put_set(l, k);
	return k->id;
}

void slu_qlog_set(struct slu_qlog *l, const struct slu_nodeset *s, uint32_t index, bool in)
{
	uint64_t *at = l->on ? slu_map_get(&l->by_set, (uintptr_t)s) : NULL;

	if (!at)
		return;
	slu_bytes_put_u(&l->row, LOG_CHANGE);
	slu_bytes_put_u(&l->row, l->set.p[*at].id);
	slu_bytes_put_u(&l->row, index);
	slu_bytes_put_u(&l->row, in);
	l->set.p[*at].version = s->version;
}

static void sweep_sets(struct slu_qlog *l)
{
	for (uint32_t i = l->set.n; i-- > 0;) {
		struct known_set k = l->set.p[i];

		if (k.set->refs > 1)
			continue;
		slu_bytes_put_u(&l->row, LOG_DROP);
		slu_bytes_put_u(&l->row, k.id);
		slu_map_del(&l->by_set, (uintptr_t)k.set);
		slu_nodeset_unref(k.set);
		l->set.p[i] = l->set.p[--l->set.n];
		if (i < l->set.n)
			*slu_map_get(&l->by_set, (uintptr_t)l->set.p[i].set) = i;
	}
}

int slu_qlog_renew(struct slu_qlog *l, const struct slu_queue *q)
{
	const struct slu_set_names names = { .id = set_id, .arg = l };
	const struct slu_machine *m = slu_queue_machine(q);
	int rc;

	begin_log(l, slu_queue_opts(q), LOG_MIDDLE);
	l->resources = slu_machine_resources(m);
	l->levels = slu_machine_levels(m);
	slu_queue_picture(q, &names, &l->picture);
	rc = l->picture.error ? l->picture.error : l->row.error;
	l->shown = 0;
	if (!rc)
		write_picture(l);
	if (!rc)
		return 0;
	slu_buf_done(&l->picture);
	slu_qlog_clear(l);
	slu_qlog_stop(l);
	return rc;
}

/* ---- calls ---- */

/* Kinds and levels get their numbers in the order they are met. */
static void put_names(struct slu_qlog *l, const struct slu_queue *q)
{
	const struct slu_machine *m = slu_queue_machine(q);

	for (; l->resources < slu_machine_resources(m); l->resources++) {
		slu_bytes_put_u(&l->row, LOG_RESOURCE);
		slu_bytes_put_s(&l->row, slu_machine_resource_name(m, l->resources));
	}
	for (; l->levels < slu_machine_levels(m); l->levels++) {
		slu_bytes_put_u(&l->row, LOG_LEVEL);
		slu_bytes_put_s(&l->row, slu_machine_level_name(m, l->levels));
	}
}

static void put_run(struct slu_buf *b, const struct slu_buf *run)
{
	slu_bytes_put_u(b, run->n);
	slu_buf_add(b, run->p, run->n);
	if (run->error)
		b->error = run->error;
}

void queue_log_put_decisions(struct slu_buf *b, const struct slu_decisions *d, uint32_t from)
{
	slu_bytes_put_u(b, d->v.n - from);
	for (uint32_t i = from; i < d->v.n; i++) {
		const struct slu_decision *x = &d->v.p[i];

		slu_bytes_put_u(b, x->kind);
		slu_bytes_put_u(b, x->job);
		slu_bytes_put_i(b, x->start_s);
		slu_bytes_put_i(b, x->end_s);
		slu_bytes_put_i(b, x->was_s);
		slu_bytes_put_u(b, x->how);
		slu_bytes_put_u(b, x->cause);
		slu_bytes_put_u(b, x->cause_job);
		slu_bytes_put_u(b, x->cause_node);
		slu_bytes_put_i(b, x->size);
		slu_bytes_put_s(b, x->text == UINT32_MAX ? NULL : slu_decision_text(d, x));
		slu_bytes_put_u(b, x->n_part);
		for (uint32_t k = 0; k < x->n_part; k++) {
			const struct slu_gang_part *p = &d->part.p[x->part + k];

			slu_bytes_put_u(b, p->node);
			slu_bytes_put_u(b, p->role);
			slu_bytes_put_u(b, p->slots);
		}
	}
}

static void put_answer(struct slu_qlog *l, const struct slu_decisions *out, uint32_t from)
{
	slu_buf_reset(&l->dec);
	queue_log_put_decisions(&l->dec, out, from);
	put_run(&l->row, &l->dec);
	l->decisions += out->v.n - from;
	if (++l->frames % SWEEP == 0)
		sweep_sets(l);
	if (l->row.error) { /* no memory, or a row too large: a later log begins again */
		slu_qlog_clear(l);
		slu_qlog_stop(l);
	}
}

int slu_qlog_apply(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
		   const struct slu_event *ev, struct slu_decisions *out, struct slu_error *err)
{
	const struct slu_set_names names = { .id = set_id, .arg = l };
	uint32_t from = out->v.n;
	struct slu_node_spec node;
	struct slu_event copy = *ev;
	int rc;

	if (l->on && ev->node_spec) { /* the tag is the caller's own */
		node = *ev->node_spec;
		node.tag = 0;
		copy.node_spec = &node;
	}
	if (l->on) {
		slu_buf_reset(&l->event);
		put_names(l, q);
		slu_event_encode(now_s, &copy, &names, &l->event);
	}
	rc = slu_queue_apply(q, now_s, ev, out, err);
	if (rc < 0 || !l->on)
		return rc; /* refused: the queue is as it was */
	slu_bytes_put_u(&l->row, LOG_EVENT);
	put_run(&l->row, &l->event);
	put_answer(l, out, from);
	return rc;
}

int slu_qlog_schedule(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
		      struct slu_decisions *out, struct slu_error *err)
{
	uint32_t from = out->v.n;
	int rc;

	for (uint32_t i = 0; l->on && i < l->set.n; i++) /* changes that were not reported */
		(void)set_id(l, l->set.p[i].set);
	rc = slu_queue_schedule(q, now_s, out, err);
	if (!l->on)
		return rc;
	if (rc < 0) {
		slu_qlog_stop(l);
		return rc;
	}
	slu_bytes_put_u(&l->row, LOG_PASS);
	slu_bytes_put_i(&l->row, now_s);
	put_answer(l, out, from);
	return rc;
}
