#include "queue/log_internal.h"

#include "base/map.h"

#include <stdio.h>

struct slu_replay {
	struct slu_replay_opts opts;
	struct slu_queue *q; /* NULL: waits for a begin, or for the rest of a picture */
	struct slu_map set;  /* id -> struct slu_nodeset *, a reference */
	struct slu_decisions out;
	struct slu_buf got;
	struct slu_replay_count count;
	uint64_t last;
	struct slu_queue_opts now; /* of the log under way */
	bool middle;               /* a picture is under way: */
	struct slu_buf picture;    /* as much as is known of it */
	struct slu_qlog *own;      /* as it should be; NULL: not known */
};

int slu_replay_new(const struct slu_replay_opts *opts, struct slu_replay **out)
{
	struct slu_replay *r = slu_calloc(1, sizeof *r);

	if (!r)
		return -ENOMEM;
	r->opts = *opts;
	r->got = (struct slu_buf)SLU_BUF_INIT(SLU_QLOG_ROW_MAX);
	r->picture = (struct slu_buf)SLU_BUF_INIT(SLU_QLOG_PICTURE_MAX);
	*out = r;
	return 0;
}

static void forget(struct slu_replay *r)
{
	for (uint32_t i = 0; i < r->set.n; i++)
		slu_nodeset_unref((struct slu_nodeset *)(uintptr_t)r->set.e[i].val);
	slu_map_clear(&r->set);
	slu_queue_free(r->q);
	r->q = NULL;
	r->middle = false;
	slu_buf_reset(&r->picture);
}

void slu_replay_free(struct slu_replay *r)
{
	if (!r)
		return;
	forget(r);
	slu_map_done(&r->set);
	slu_decisions_done(&r->out);
	slu_buf_done(&r->got);
	slu_buf_done(&r->picture);
	slu_qlog_free(r->own);
	slu_free(r);
}

const struct slu_replay_count *slu_replay_count(const struct slu_replay *r)
{
	return &r->count;
}

/* ---- words ---- */

static void put_time(struct slu_buf *b, const char *word, int64_t s)
{
	if (s == SLU_TIME_NONE)
		slu_buf_printf(b, " %s never", word);
	else
		slu_buf_printf(b, " %s %" PRId64, word, s);
}

void slu_decision_describe(const struct slu_queue *q, const struct slu_decisions *d,
			   const struct slu_decision *x, struct slu_buf *b)
{
	const struct slu_machine *m = slu_queue_machine(q);
	struct slu_job_view v;

	slu_buf_printf(b, "%s of job %" PRIu64, slu_decision_name(x->kind), x->job);
	if (!slu_queue_job(q, x->job, &v) && v.name)
		slu_buf_printf(b, " (%s)", v.name);
	if (x->kind == SLU_DEC_START || x->kind == SLU_DEC_PLAN)
		put_time(b, "at", x->start_s);
	if (x->kind == SLU_DEC_PLAN)
		put_time(b, "instead of", x->was_s);
	if (x->kind == SLU_DEC_START)
		slu_buf_printf(b, " until %" PRId64 ", %s", x->end_s, slu_how_name(x->how));
	if (x->cause != SLU_CAUSE_NONE)
		slu_buf_printf(b, ", cause %s", slu_cause_name(x->cause));
	if (x->size)
		slu_buf_printf(b, ", size %" PRId64, x->size);
	for (uint32_t i = 0; i < x->n_part; i++) {
		const struct slu_gang_part *p = &d->part.p[x->part + i];

		slu_buf_puts(b, i ? ", " : " on ");
		if (slu_machine_node_is(m, p->node))
			slu_buf_puts(b, slu_machine_node_name(m, p->node));
		else
			slu_buf_printf(b, "node %" PRIu64, (uint64_t)p->node);
		if (p->slots != 1)
			slu_buf_printf(b, " x%u", p->slots);
		if (p->role)
			slu_buf_printf(b, " (role %u)", p->role);
	}
	if (x->text != UINT32_MAX)
		slu_buf_printf(b, ": %s", slu_decision_text(d, x));
}

/* ---- holding one against the other ---- */

static int get_text(struct slu_bytes_in *in, struct slu_decisions *d, struct slu_decision *x)
{
	uint64_t n = slu_bytes_get_u(in);

	x->text = UINT32_MAX;
	if (!n || in->rc)
		return in->rc;
	n--;
	if (n > (size_t)(in->end - in->p) || memchr(in->p, 0, n))
		return -EINVAL;
	if (slu_vec_reserve(&d->text, d->text.n + (uint32_t)n + 1) < 0)
		return -ENOMEM;
	x->text = d->text.n;
	memcpy(d->text.p + d->text.n, in->p, n);
	d->text.p[d->text.n + n] = 0;
	d->text.n += (uint32_t)n + 1;
	in->p += n;
	return 0;
}

/* One noted decision, appended to `d`. */
static int get_decision(struct slu_bytes_in *in, struct slu_decisions *d)
{
	struct slu_decision x = { 0 };
	int rc;

	x.kind = (enum slu_decision_kind)slu_bytes_get_u32(in);
	x.job = slu_bytes_get_u(in);
	x.start_s = slu_bytes_get_i(in);
	x.end_s = slu_bytes_get_i(in);
	x.was_s = slu_bytes_get_i(in);
	x.how = (enum slu_how)slu_bytes_get_u32(in);
	x.cause = (enum slu_cause)slu_bytes_get_u32(in);
	x.cause_job = slu_bytes_get_u(in);
	x.cause_node = slu_bytes_get_u(in);
	x.size = slu_bytes_get_i(in);
	rc = get_text(in, d, &x);
	if (rc < 0)
		return rc;
	x.part = d->part.n;
	x.n_part = slu_bytes_get_u32(in);
	if (x.n_part > (size_t)(in->end - in->p))
		return -EINVAL;
	for (uint32_t i = 0; i < x.n_part && !in->rc; i++) {
		struct slu_gang_part p;

		p.node = slu_bytes_get_u(in);
		p.role = slu_bytes_get_u32(in);
		p.slots = slu_bytes_get_u32(in);
		if (slu_vec_push(&d->part, p) < 0)
			return -ENOMEM;
	}
	return in->rc ? in->rc : slu_vec_push(&d->v, x);
}

static int get_decisions(const uint8_t *p, size_t n, struct slu_decisions *d)
{
	struct slu_bytes_in in = { p, p + n, 0 };
	uint32_t count = slu_bytes_get_u32(&in);
	int rc = in.rc;

	for (uint32_t i = 0; i < count && !rc; i++)
		rc = get_decision(&in, d);
	return rc ? rc : in.p == in.end ? 0 : -EINVAL;
}

/* The bytes differ: name the first decision that does. */
static int name_difference(struct slu_replay *r, int64_t at_us, const uint8_t *p, size_t n,
			   struct slu_error *err)
{
	struct slu_buf a = SLU_BUF_INIT(1 << 20), b = SLU_BUF_INIT(1 << 20);
	struct slu_decisions was = { 0 };
	int rc = get_decisions(p, n, &was);

	slu_fail(err, -EUCLEAN, "at %" PRId64 ".%06d the decisions differ", at_us / 1000000,
		 (int)(at_us % 1000000));
	if (rc < 0) {
		slu_decisions_done(&was);
		return slu_fail(err, rc,
				"the decisions recorded at %" PRId64 ".%06d are unreadable",
				at_us / 1000000, (int)(at_us % 1000000));
	}
	for (uint32_t i = 0; i < was.v.n || i < r->out.v.n; i++) {
		const struct slu_decision *x = i < was.v.n ? &was.v.p[i] : NULL;
		const struct slu_decision *y = i < r->out.v.n ? &r->out.v.p[i] : NULL;

		slu_buf_reset(&a);
		slu_buf_reset(&b);
		if (x)
			slu_decision_describe(r->q, &was, x, &a);
		if (y)
			slu_decision_describe(r->q, &r->out, y, &b);
		if (x && y && a.n == b.n && !memcmp(a.p, b.p, a.n) && x->end_s == y->end_s &&
		    x->how == y->how && x->cause_job == y->cause_job &&
		    x->cause_node == y->cause_node)
			continue;
		slu_fail(err, -EUCLEAN,
			 "at %" PRId64 ".%06d job %" PRIu64 ": recorded: %.180s; replayed: %.180s",
			 at_us / 1000000, (int)(at_us % 1000000), x ? x->job : y->job,
			 x ? slu_buf_str(&a) : "nothing", y ? slu_buf_str(&b) : "nothing");
		break;
	}
	slu_buf_done(&a);
	slu_buf_done(&b);
	slu_decisions_done(&was);
	return -EUCLEAN;
}

static int compare_decisions(struct slu_replay *r, int64_t at_us, const uint8_t *p, size_t n,
			     struct slu_error *err)
{
	slu_buf_reset(&r->got);
	queue_log_put_decisions(&r->got, &r->out, 0);
	if (r->got.error)
		return slu_fail(err, r->got.error, "too many decisions");
	if (r->got.n != n || memcmp(r->got.p, p, n))
		return name_difference(r, at_us, p, n, err);
	r->count.decisions += r->out.v.n;
	for (uint32_t i = 0; r->opts.decision && i < r->out.v.n; i++) {
		int rc = r->opts.decision(r->opts.arg, at_us, r->q, &r->out, &r->out.v.p[i]);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- frames ---- */

static struct slu_nodeset *set_find(void *arg, uint64_t id)
{
	struct slu_replay *r = arg;
	uint64_t *at = slu_map_get(&r->set, id);

	return at ? (struct slu_nodeset *)(uintptr_t)*at : NULL;
}

static int read_head(struct slu_replay *r, struct slu_bytes_in *in, struct slu_error *err)
{
	struct slu_queue_opts o = { .verify = r->opts.verify };
	uint64_t version = slu_bytes_get_u(in);

	if (!in->rc && version > LOG_MIDDLE)
		return slu_fail(err, -ENOTSUP,
				"a log of version %" PRIu64 "; this program knows %d", version,
				LOG_MIDDLE);
	o.overrun_s = slu_bytes_get_i(in);
	o.lazy = slu_bytes_get_u(in);
	o.keep_results = slu_bytes_get_u32(in);
	if (in->rc)
		return in->rc;
	forget(r);
	r->count.begins++;
	r->now = o;
	r->middle = version == LOG_MIDDLE;
	return r->middle ? 0 : slu_queue_new(&o, &r->q, err);
}

static int picture(struct slu_replay *r, struct slu_bytes_in *in, struct slu_error *err)
{
	const struct slu_set_names names = { .find = set_find, .arg = r };
	bool more = slu_bytes_get_u(in);
	size_t n;
	const uint8_t *p = slu_bytes_get_run(in, &n);
	int rc = in->rc;

	if (!rc)
		rc = slu_buf_add(&r->picture, p, n);
	if (rc < 0 || more)
		return rc;
	r->middle = false;
	rc = slu_queue_restore(&r->now, r->picture.p, r->picture.n, &names, &r->q, err);
	slu_buf_reset(&r->picture);
	r->count.middle += !rc;
	if (!rc && r->opts.verify)
		rc = slu_queue_check(r->q, slu_queue_now_s(r->q), err);
	return rc;
}

static int replay_name(struct slu_replay *r, struct slu_bytes_in *in, enum log_frame what)
{
	uint64_t n = slu_bytes_get_u(in);
	char text[320];
	int rc;

	if (in->rc || !n || n > sizeof text || n - 1 > (size_t)(in->end - in->p))
		return -EINVAL;
	memcpy(text, in->p, n - 1);
	text[n - 1] = 0;
	in->p += n - 1;
	rc = what == LOG_RESOURCE ? slu_queue_resource(r->q, text) : slu_queue_level(r->q, text);
	return rc < 0 ? (rc == -ENOMEM ? rc : -EINVAL) : 0;
}

static int set_word(struct slu_nodeset *s, uint32_t w, uint64_t word)
{
	uint64_t have = w < s->n_word ? s->word[w] : 0;
	int rc = 0;

	for (uint64_t gone = have & ~word; gone; gone &= gone - 1)
		slu_nodeset_del(s, w * 64 + (uint32_t)__builtin_ctzll(gone));
	for (uint64_t come = word & ~have; come && !rc; come &= come - 1)
		rc = slu_nodeset_add(s, w * 64 + (uint32_t)__builtin_ctzll(come));
	return rc;
}

static int read_nodeset(struct slu_replay *r, struct slu_bytes_in *in)
{
	uint64_t id = slu_bytes_get_u(in), n = slu_bytes_get_u(in);
	struct slu_nodeset *s = in->rc ? NULL : set_find(r, id);
	int rc = 0;

	if (in->rc || n > (size_t)(in->end - in->p) / 8 || n > LOG_NODE_MAX / 64 ||
	    (!s && r->set.n >= LOG_SETS_MAX))
		return -EINVAL;
	if (!s) {
		s = slu_nodeset_new((uint32_t)n * 64);
		if (!s || slu_map_put(&r->set, id, (uintptr_t)s) < 0) {
			slu_nodeset_unref(s);
			return -ENOMEM;
		}
	}
	for (uint32_t w = 0; w < SLU_MAX(n, s->n_word) && !rc; w++) {
		uint64_t word = 0;

		if (w < n)
			memcpy(&word, in->p + 8 * w, sizeof word);
		rc = set_word(s, w, word);
	}
	in->p += 8 * n;
	return rc;
}

static int replay_change(struct slu_replay *r, struct slu_bytes_in *in)
{
	uint64_t id = slu_bytes_get_u(in);
	uint32_t index = slu_bytes_get_u32(in);
	bool to = slu_bytes_get_u(in);
	struct slu_nodeset *s = in->rc ? NULL : set_find(r, id);

	if (!s || index >= LOG_NODE_MAX)
		return -EINVAL;
	if (to)
		return slu_nodeset_add(s, index);
	slu_nodeset_del(s, index);
	return 0;
}

static int drop_set(struct slu_replay *r, struct slu_bytes_in *in)
{
	uint64_t id = slu_bytes_get_u(in);
	struct slu_nodeset *s = in->rc ? NULL : set_find(r, id);

	if (!s)
		return -EINVAL;
	slu_map_del(&r->set, id);
	slu_nodeset_unref(s);
	return 0;
}

static int replay_event(struct slu_replay *r, struct slu_bytes_in *in, int64_t at_us,
			struct slu_error *err)
{
	const struct slu_set_names names = { .find = set_find, .arg = r };
	struct slu_event_box box = { 0 };
	size_t n, n_dec;
	const uint8_t *p = slu_bytes_get_run(in, &n), *dec = slu_bytes_get_run(in, &n_dec);
	int rc = in->rc;

	if (!rc)
		rc = slu_event_decode(p, n, &names, &box, err);
	if (rc < 0)
		return rc;
	slu_decisions_clear(&r->out);
	rc = slu_queue_apply(r->q, box.now_s, &box.ev, &r->out, err);
	slu_event_box_done(&box);
	if (rc < 0)
		return slu_fail_prefix(err, rc == -ENOMEM ? rc : -EUCLEAN,
				       "at %" PRId64
				       ".%06d an event that was accepted is now refused",
				       at_us / 1000000, (int)(at_us % 1000000));
	r->count.events++;
	return compare_decisions(r, at_us, dec, n_dec, err);
}

static int replay_pass(struct slu_replay *r, struct slu_bytes_in *in, int64_t at_us,
		       struct slu_error *err)
{
	int64_t now_s = slu_bytes_get_i(in);
	size_t n;
	const uint8_t *dec = slu_bytes_get_run(in, &n);
	int rc = in->rc;

	if (rc < 0)
		return rc;
	slu_decisions_clear(&r->out);
	rc = slu_queue_schedule(r->q, now_s, &r->out, err);
	if (rc < 0)
		return slu_fail_prefix(err, rc == -ENOMEM ? rc : -EUCLEAN,
				       "at %" PRId64 ".%06d a pass that succeeded now fails",
				       at_us / 1000000, (int)(at_us % 1000000));
	r->count.passes++;
	return compare_decisions(r, at_us, dec, n, err);
}

static int replay_frame(struct slu_replay *r, struct slu_bytes_in *in, int64_t at_us,
			struct slu_error *err)
{
	uint32_t what = slu_bytes_get_u32(in);

	if (in->rc)
		return in->rc;
	if (what == LOG_BEGIN)
		return read_head(r, in, err);
	if (what == LOG_STOP) {
		forget(r);
		in->p = in->end;
		return 0;
	}
	if (r->middle)
		return what == LOG_SET       ? read_nodeset(r, in)
		       : what == LOG_PICTURE ? picture(r, in, err)
					     : -EINVAL;
	if (!r->q)
		return -EINVAL;
	switch (what) {
	case LOG_RESOURCE:
	case LOG_LEVEL:
		return replay_name(r, in, (enum log_frame)what);
	case LOG_SET:
		return read_nodeset(r, in);
	case LOG_CHANGE:
		return replay_change(r, in);
	case LOG_DROP:
		return drop_set(r, in);
	case LOG_EVENT:
		return replay_event(r, in, at_us, err);
	case LOG_PASS:
		return replay_pass(r, in, at_us, err);
	default:
		return -EINVAL;
	}
}

/* A log that begins in the middle, behind rows that were replayed: the queue that came out of them
 * must be the one in the picture.  So it makes its own, row by row. */
static int hold_against(struct slu_replay *r, bool begins, int64_t at_us, const void *p, size_t n,
			struct slu_error *err)
{
	const struct slu_buf *b;

	if (begins) {
		slu_qlog_free(r->own);
		r->own = NULL;
	}
	if (begins && r->q && n > 1 && ((const uint8_t *)p)[1] == LOG_MIDDLE) {
		r->own = slu_qlog_new();
		if (!r->own || slu_qlog_renew(r->own, r->q) < 0)
			return slu_fail(err, -ENOMEM, "out of memory");
	}
	if (!r->own)
		return 0;
	b = slu_qlog_bytes(r->own);
	if (b->n != n || memcmp(b->p, p, n))
		return slu_fail(err, -EUCLEAN,
				"at %" PRId64
				".%06d the replayed queue differs from the recorded one",
				at_us / 1000000, (int)(at_us % 1000000));
	slu_qlog_clear(r->own);
	if (!b->n) {
		slu_qlog_free(r->own);
		r->own = NULL;
	}
	return 0;
}

int slu_replay_row(struct slu_replay *r, uint64_t seq, int64_t at_us, const void *p, size_t n,
		   struct slu_error *err)
{
	struct slu_bytes_in in = { p, (const uint8_t *)p + n, 0 };
	bool begins = n && *in.p == LOG_BEGIN;
	int rc = 0;

	r->count.rows++;
	if (!begins && !r->q && !r->middle) {
		r->count.skipped++;
		return 0;
	}
	if (!begins && seq != r->last + 1)
		return slu_fail(err, -EINVAL,
				"rows %" PRIu64 " to %" PRIu64 " of the log are missing",
				r->last + 1, seq - 1);
	if (begins && seq != r->last + 1)
		forget(r); /* rows are missing: a new log begins, whatever was before */
	r->last = seq;
	rc = hold_against(r, begins, at_us, p, n, err);
	while (!rc && in.p < in.end) {
		struct slu_error why = { 0 };

		rc = replay_frame(r, &in, at_us, &why);
		if (rc < 0 && *why.text)
			slu_fail(err, rc, "%s", why.text);
		else if (rc < 0)
			slu_fail(err, rc,
				 rc == -ENOMEM ? "out of memory"
					       : "row %" PRIu64 " of the log is unreadable",
				 seq);
	}
	return rc;
}
