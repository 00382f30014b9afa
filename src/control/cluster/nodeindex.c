#include "control/cluster/nodeindex.h"

#define FEW_MAX 16u

/* The nodes that have something in common.  Most values of labels are those of one node or of many. */
struct places {
	SLU_VEC(uint32_t) few;
	struct slu_nodeset *many; /* instead of `few` */
	uint32_t n;
};

struct value {
	struct slu_entry e;
	char *text;
	struct places at;
	int64_t number;
	bool is_number;
};

struct key {
	struct slu_entry e;
	char *text;
	struct slu_table values;
	SLU_VEC(struct value *) numbers; /* those of the values that are integers */
	struct places at;
};

struct taint {
	struct slu_entry e;
	char *text; /* effect, key, value: each but the first ends with a zero */
	struct slu_ktaint t;
	struct places at;
};

static struct key *key_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct key, e) : NULL;
}

static struct value *value_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct value, e) : NULL;
}

static struct taint *taint_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct taint, e) : NULL;
}

/* ---- places ---- */

static int become_many(struct places *p, uint32_t at)
{
	struct slu_nodeset *s = slu_nodeset_new(at);

	for (uint32_t i = 0; s && i < p->few.n; i++)
		if (slu_nodeset_add(s, p->few.p[i]) < 0) {
			slu_nodeset_unref(s);
			s = NULL;
		}
	if (!s)
		return -ENOMEM;
	p->many = s;
	slu_vec_done(&p->few);
	return 0;
}

static int places_add(struct places *p, uint32_t at)
{
	if (!p->many && p->few.n == FEW_MAX && become_many(p, at) < 0)
		return -ENOMEM;
	if ((p->many ? slu_nodeset_add(p->many, at) : slu_vec_push(&p->few, at)) < 0)
		return -ENOMEM;
	p->n++;
	return 0;
}

static void places_del(struct places *p, uint32_t at)
{
	if (p->many && slu_nodeset_has(p->many, at)) {
		slu_nodeset_del(p->many, at);
		p->n--;
	}
	for (uint32_t i = 0; i < p->few.n; i++)
		if (p->few.p[i] == at) {
			p->few.p[i] = p->few.p[--p->few.n];
			p->n--;
			break;
		}
}

static void places_done(struct places *p)
{
	slu_vec_done(&p->few);
	slu_nodeset_unref(p->many);
}

static void or_places(uint64_t *w, uint32_t n, const struct places *p)
{
	for (uint32_t i = 0; p->many && i < SLU_MIN(n, p->many->n_word); i++)
		w[i] |= p->many->word[i];
	for (uint32_t i = 0; i < p->few.n; i++)
		if (p->few.p[i] / 64 < n)
			w[p->few.p[i] / 64] |= UINT64_C(1) << p->few.p[i] % 64;
}

static void without_places(uint64_t *w, uint32_t n, const struct places *p)
{
	for (uint32_t i = 0; p->many && i < SLU_MIN(n, p->many->n_word); i++)
		w[i] &= ~p->many->word[i];
	for (uint32_t i = 0; i < p->few.n; i++)
		if (p->few.p[i] / 64 < n)
			w[p->few.p[i] / 64] &= ~(UINT64_C(1) << p->few.p[i] % 64);
}

static void keep_places(const struct nodeindex *x, uint64_t *w, uint32_t n, const struct places *p)
{
	memset(x->scratch, 0, n * sizeof *w);
	or_places(x->scratch, n, p);
	for (uint32_t i = 0; i < n; i++)
		w[i] &= x->scratch[i];
}

/* ---- keeping the index ---- */

static void value_free(struct key *k, struct value *v)
{
	for (uint32_t i = 0; v->is_number && i < k->numbers.n; i++)
		if (k->numbers.p[i] == v) {
			k->numbers.p[i] = k->numbers.p[--k->numbers.n];
			break;
		}
	places_done(&v->at);
	slu_free(v->text);
	slu_free(v);
}

static void key_free(struct key *k)
{
	for (struct slu_entry *e = slu_table_next(&k->values, NULL), *next; e; e = next) {
		next = slu_table_next(&k->values, e);
		value_of(e)->is_number = false; /* the list goes as a whole */
		value_free(k, value_of(e));
	}
	slu_table_done(&k->values);
	slu_vec_done(&k->numbers);
	places_done(&k->at);
	slu_free(k->text);
	slu_free(k);
}

static void taint_free(struct taint *t)
{
	places_done(&t->at);
	slu_free(t->text);
	slu_free(t);
}

static struct key *key_get(struct nodeindex *x, const char *text)
{
	struct key *k = key_of(slu_table_finds(&x->keys, text));

	if (k)
		return k;
	k = slu_calloc(1, sizeof *k);
	if (k)
		k->text = slu_strdup(text);
	if (k && k->text) {
		k->e.key = k->text;
		k->e.n = strlen(text);
		if (slu_table_add(&x->keys, &k->e) == 0)
			return k;
	}
	if (k)
		key_free(k);
	return NULL;
}

static struct value *value_get(struct key *k, const char *text)
{
	struct value *v = value_of(slu_table_finds(&k->values, text));

	if (v)
		return v;
	v = slu_calloc(1, sizeof *v);
	if (v)
		v->text = slu_strdup(text);
	if (v && v->text) {
		v->e.key = v->text;
		v->e.n = strlen(text);
		v->is_number = slu_predicate_integer(text, &v->number);
		if ((!v->is_number || slu_vec_push(&k->numbers, v) == 0) &&
		    slu_table_add(&k->values, &v->e) == 0)
			return v;
	}
	if (v)
		value_free(k, v);
	return NULL;
}

/* The key of a taint in the table; -ENOMEM in b->error. */
static void taint_text(const struct slu_ktaint *t, struct slu_buf *b)
{
	slu_buf_putc(b, (char)('0' + t->effect));
	slu_buf_add(b, t->key, strlen(t->key) + 1);
	slu_buf_add(b, t->value, strlen(t->value) + 1);
}

static struct taint *taint_find(const struct nodeindex *x, const struct slu_ktaint *t,
				struct slu_buf *b)
{
	taint_text(t, b);
	return b->error ? NULL : taint_of(slu_table_find(&x->taints, b->p, b->n));
}

static struct taint *taint_get(struct nodeindex *x, const struct slu_ktaint *t)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct taint *f = taint_find(x, t, &b);

	if (!f && !b.error)
		f = slu_calloc(1, sizeof *f);
	if (f && !f->text) {
		f->e.n = b.n;
		f->text = slu_buf_take(&b);
		f->e.key = f->text;
		if (!f->text || slu_table_add(&x->taints, &f->e) < 0) {
			taint_free(f);
			f = NULL;
		} else {
			f->t.effect = t->effect;
			f->t.key = f->text + 1;
			f->t.value = f->t.key + strlen(f->t.key) + 1;
		}
	}
	slu_buf_done(&b);
	return f;
}

/* Taints that a node has twice count once. */
static bool is_repeated(const struct slu_knode *k, uint16_t i)
{
	for (uint16_t j = 0; j < i; j++)
		if (k->taints[j].effect == k->taints[i].effect &&
		    !strcmp(k->taints[j].key, k->taints[i].key) &&
		    !strcmp(k->taints[j].value, k->taints[i].value))
			return true;
	return false;
}

static int add_number(struct nodeindex *x, uint32_t at, void *tag)
{
	uint64_t *w;

	if (!x->all)
		x->all = slu_nodeset_new(at);
	if (!x->all || slu_vec_reserve(&x->tag, at + 1) < 0 || slu_nodeset_add(x->all, at) < 0)
		return -ENOMEM;
	w = slu_reallocarray(x->scratch, 3 * x->all->n_word, sizeof *w);
	if (!w)
		return -ENOMEM;
	x->scratch = w;
	while (x->tag.n <= at)
		x->tag.p[x->tag.n++] = NULL;
	x->tag.p[at] = tag;
	return 0;
}

int core_index_add(struct nodeindex *x, uint32_t at, const struct slu_knode *k, void *tag)
{
	const struct slu_kmeta *m = &k->o.meta;

	if (add_number(x, at, tag) < 0)
		return -ENOMEM;
	for (uint16_t i = 0; i < m->nlabels; i++) {
		struct key *key = key_get(x, m->labels[i].key);
		struct value *v = key ? value_get(key, m->labels[i].value) : NULL;

		if (!v || places_add(&key->at, at) < 0 || places_add(&v->at, at) < 0)
			return -ENOMEM;
	}
	for (uint16_t i = 0; i < k->ntaints; i++) {
		struct taint *t = is_repeated(k, i) ? NULL : taint_get(x, &k->taints[i]);

		if (!is_repeated(k, i) && (!t || places_add(&t->at, at) < 0))
			return -ENOMEM;
	}
	return 0;
}

static void del_label(struct nodeindex *x, uint32_t at, const struct slu_kpair *l)
{
	struct key *k = key_of(slu_table_finds(&x->keys, l->key));
	struct value *v = k ? value_of(slu_table_finds(&k->values, l->value)) : NULL;

	if (v) {
		places_del(&v->at, at);
		if (!v->at.n) {
			slu_table_del(&k->values, &v->e);
			value_free(k, v);
		}
	}
	if (k) {
		places_del(&k->at, at);
		if (!k->at.n && !k->values.n) {
			slu_table_del(&x->keys, &k->e);
			key_free(k);
		}
	}
}

int core_index_del(struct nodeindex *x, uint32_t at, const struct slu_knode *k)
{
	int rc = 0;

	if (x->all)
		slu_nodeset_del(x->all, at);
	if (at < x->tag.n)
		x->tag.p[at] = NULL;
	for (uint16_t i = 0; i < k->o.meta.nlabels; i++)
		del_label(x, at, &k->o.meta.labels[i]);
	for (uint16_t i = 0; i < k->ntaints; i++) {
		struct slu_buf b = SLU_BUF_INIT(1 << 20);
		struct taint *t = taint_find(x, &k->taints[i], &b);

		rc = b.error ? b.error : rc;
		slu_buf_done(&b);
		if (!t)
			continue;
		places_del(&t->at, at);
		if (!t->at.n) {
			slu_table_del(&x->taints, &t->e);
			taint_free(t);
		}
	}
	return rc;
}

void core_index_clear(struct nodeindex *x)
{
	for (struct slu_entry *e = slu_table_next(&x->keys, NULL), *next; e; e = next) {
		next = slu_table_next(&x->keys, e);
		key_free(key_of(e));
	}
	for (struct slu_entry *e = slu_table_next(&x->taints, NULL), *next; e; e = next) {
		next = slu_table_next(&x->taints, e);
		taint_free(taint_of(e));
	}
	slu_table_done(&x->keys);
	slu_table_done(&x->taints);
	slu_nodeset_unref(x->all);
	x->all = NULL;
	slu_vec_done(&x->tag);
	slu_free(x->scratch);
	x->scratch = NULL;
}

/* ---- questions ---- */

static void none(uint64_t *w, uint32_t n)
{
	memset(w, 0, n * sizeof *w);
}

static bool is_none(const uint64_t *w, uint32_t n)
{
	uint64_t any = 0;

	for (uint32_t i = 0; i < n; i++)
		any |= w[i];
	return !any;
}

static void keep_common(uint64_t *w, const uint64_t *of, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		w[i] &= of[i];
}

static void keep_in(const struct nodeindex *x, const struct key *k, const struct slu_kexpr *e,
		    uint64_t *w, uint32_t n)
{
	none(x->scratch, n);
	for (uint16_t i = 0; k && i < e->nvalues; i++) {
		const struct value *v = value_of(slu_table_finds(&k->values, e->values[i]));

		if (v)
			or_places(x->scratch, n, &v->at);
	}
	keep_common(w, x->scratch, n);
}

static void keep_not_in(const struct key *k, const struct slu_kexpr *e, uint64_t *w, uint32_t n)
{
	for (uint16_t i = 0; k && i < e->nvalues; i++) {
		const struct value *v = value_of(slu_table_finds(&k->values, e->values[i]));

		if (v)
			without_places(w, n, &v->at);
	}
}

static void keep_beyond(const struct nodeindex *x, const struct key *k, const struct slu_kexpr *e,
			uint64_t *w, uint32_t n)
{
	int64_t want;

	none(x->scratch, n);
	if (k && e->nvalues == 1 && slu_predicate_integer(e->values[0], &want))
		for (uint32_t i = 0; i < k->numbers.n; i++) {
			const struct value *v = k->numbers.p[i];

			if (e->op == SLU_SEL_GT ? v->number > want : v->number < want)
				or_places(x->scratch, n, &v->at);
		}
	keep_common(w, x->scratch, n);
}

static void keep_expr(const struct nodeindex *x, const struct slu_kexpr *e, uint64_t *w, uint32_t n)
{
	const struct key *k = key_of(slu_table_finds(&x->keys, e->key));

	switch (e->op) {
	case SLU_SEL_IN:
		keep_in(x, k, e, w, n);
		break;
	case SLU_SEL_NOT_IN:
		keep_not_in(k, e, w, n);
		break;
	case SLU_SEL_EXISTS:
		if (k)
			keep_places(x, w, n, &k->at);
		else
			none(w, n);
		break;
	case SLU_SEL_DOES_NOT_EXIST:
		if (k)
			without_places(w, n, &k->at);
		break;
	case SLU_SEL_GT:
	case SLU_SEL_LT:
		keep_beyond(x, k, e, w, n);
		break;
	default:
		none(w, n);
	}
}

static int keep_name(const struct nodeindex *x, const struct slu_kexpr *e, uint64_t *w, uint32_t n)
{
	if (strcmp(e->key, "metadata.name")) {
		none(w, n);
		return 0;
	}
	if (e->op != SLU_SEL_IN && e->op != SLU_SEL_NOT_IN)
		return -ENOTSUP; /* the API server refuses them */
	none(x->scratch, n);
	for (uint16_t i = 0; i < e->nvalues; i++) {
		uint32_t at = x->find(x->arg, e->values[i]);

		if (at / 64 < n)
			x->scratch[at / 64] |= UINT64_C(1) << at % 64;
	}
	for (uint32_t i = 0; i < n; i++)
		w[i] &= e->op == SLU_SEL_IN ? x->scratch[i] : ~x->scratch[i];
	return 0;
}

static int keep_term(const struct nodeindex *x, const struct slu_kterm *t, uint64_t *w, uint32_t n)
{
	int rc = 0;

	if (!t->nexprs && !t->nfields)
		none(w, n);
	for (uint16_t i = 0; i < t->nfields && !rc; i++)
		rc = keep_name(x, &t->fields[i], w, n);
	for (uint16_t i = 0; i < t->nexprs && !rc && !is_none(w, n); i++)
		keep_expr(x, &t->exprs[i], w, n);
	return rc;
}

int core_index_terms(const struct nodeindex *x, const struct slu_kterm *t, uint16_t n,
		     struct slu_nodeset *set)
{
	uint32_t words = set->n_word;
	uint64_t *one = x->scratch + words, *any = one + words;

	if (!x->scratch)
		return 0; /* no nodes, so none is left */
	none(any, words);
	for (uint16_t i = 0; i < n; i++) {
		uint64_t more = 0;
		int rc;

		for (uint32_t k = 0; k < words; k++)
			more |= one[k] = set->word[k] & ~any[k];
		if (!more)
			break; /* every node has a term that holds */
		rc = keep_term(x, &t[i], one, words);
		if (rc < 0)
			return rc;
		for (uint32_t k = 0; k < words; k++)
			any[k] |= one[k];
	}
	memcpy(set->word, any, words * sizeof *any);
	set->version++;
	return 0;
}

void core_index_selector(const struct nodeindex *x, const struct slu_kpodspec *s,
			 struct slu_nodeset *set)
{
	set->version++;
	for (uint16_t i = 0; i < s->nnode_selector && x->scratch; i++) {
		const char *const value = s->node_selector[i].value;
		struct slu_kexpr e = { .key = s->node_selector[i].key,
				       .values = &value,
				       .nvalues = 1,
				       .op = SLU_SEL_IN };

		keep_expr(x, &e, set->word, set->n_word);
	}
}

static void drop_places(const struct nodeindex *x, const struct places *p,
			bool (*stays)(const void *arg, const void *tag), const void *arg,
			struct slu_nodeset *set)
{
	memset(x->scratch, 0, set->n_word * sizeof *x->scratch);
	or_places(x->scratch, set->n_word, p);
	for (uint32_t i = 0; i < set->n_word; i++)
		for (uint64_t w = x->scratch[i] & set->word[i]; w; w &= w - 1) {
			uint32_t at = i * 64 + (uint32_t)__builtin_ctzll(w);

			if (!stays(arg, x->tag.p[at]))
				slu_nodeset_del(set, at);
		}
}

void core_index_taints(const struct nodeindex *x, const struct slu_kpodspec *s,
		       bool (*comes_back)(const void *arg, const void *tag), const void *arg,
		       struct slu_nodeset *set)
{
	set->version++;
	for (struct slu_entry *e = slu_table_next(&x->taints, NULL); e;
	     e = slu_table_next(&x->taints, e)) {
		const struct taint *t = taint_of(e);

		if (slu_predicate_tolerates(s->tolerations, s->ntolerations, &t->t))
			continue;
		if (slu_predicate_is_state(&t->t))
			drop_places(x, &t->at, comes_back, arg, set);
		else
			without_places(set->word, set->n_word, &t->at);
	}
}

void core_index_without(const struct nodeindex *x, const char *key, const char *value,
			struct slu_nodeset *set)
{
	const struct key *k = key_of(slu_table_finds(&x->keys, key));
	const struct value *v = k ? value_of(slu_table_finds(&k->values, value)) : NULL;

	if (v)
		without_places(set->word, set->n_word, &v->at);
	set->version++;
}

bool core_index_has(const struct nodeindex *x, const char *key, const char *value)
{
	const struct key *k = key_of(slu_table_finds(&x->keys, key));

	return k && slu_table_finds(&k->values, value);
}

static void add_score(const uint64_t *w, uint32_t n, int32_t by, int32_t *score)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint64_t b = w[i]; b; b &= b - 1)
			score[i * 64 + (uint32_t)__builtin_ctzll(b)] += by;
}

bool core_index_is_scored(const struct nodeindex *x, const struct slu_kpodspec *s)
{
	bool soft = false;

	for (struct slu_entry *e = slu_table_next(&x->taints, NULL); e && !soft;
	     e = slu_table_next(&x->taints, e))
		soft = slu_predicate_minds(s, &taint_of(e)->t);
	return soft || slu_predicate_scores(s);
}

int core_index_scores(const struct nodeindex *x, const struct slu_kpodspec *s,
		      const struct slu_nodeset *set, int32_t *score)
{
	uint32_t n = set->n_word;
	uint64_t *one = x->scratch + n;
	int rc = 0;

	if (!x->scratch)
		return 0;
	memset(score, 0, 64 * n * sizeof *score);
	for (uint16_t i = 0; i < s->npreferred && !rc; i++) {
		memcpy(one, set->word, n * sizeof *one);
		rc = keep_term(x, &s->preferred[i].term, one, n);
		add_score(one, n, s->preferred[i].weight, score);
	}
	for (struct slu_entry *e = slu_table_next(&x->taints, NULL); e;
	     e = slu_table_next(&x->taints, e)) {
		if (!slu_predicate_minds(s, &taint_of(e)->t))
			continue;
		none(one, n);
		or_places(one, n, &taint_of(e)->at);
		keep_common(one, set->word, n);
		add_score(one, n, -1, score);
	}
	return rc;
}
