#include "control/rules/group.h"

#include <stdio.h>
#include <time.h>

#include "base/map.h"
#include "base/utf8.h"
#include "control/config/config.h"
#include "control/rules/kinds.h"
#include "control/rules/life.h"

/* ---- identity ---- */

/* A name is shown in labels, events and on terminals: printable, one line, not too long. */
static bool is_name(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if ((unsigned char)s[n] <= ' ' || s[n] == 0x7f || n >= SLU_GROUP_NAME_MAX)
			return false;
	return n > 0;
}

/* Cut to 63 characters; what is cut off is replaced by a hash of the whole. */
static void fit_name(char out[64], const char *full)
{
	size_t n = strlen(full);

	char head[55];

	while (n && full[n - 1] == '-')
		n--;
	if (!n) /* nothing but dashes is a name too */
		n = strlen(full);
	if (n <= 63) {
		memcpy(out, full, n);
		out[n] = 0;
		return;
	}
	slu_utf8_cut(head, sizeof head, full);
	snprintf(out, 64, "%s-%08x", head, (unsigned)slu_hash_bytes(full, strlen(full)));
}

static const char *find_value(const struct slu_group_source *s, enum slu_key k,
			      const struct slu_key_row **row)
{
	struct slu_key_place p = slu_key_place_meta(&s->pod->o.meta);
	const char *v = slu_key_value(&p, k, row);

	for (uint32_t i = 0; !v && i < s->n_owners; i++) {
		const struct slu_kobj *o = s->owner[i];
		const struct slu_ktemplate *t = slu_kind_template(o);

		if (t) {
			p = slu_key_place_template(t);
			v = slu_key_value(&p, k, row);
		}
		if (!v) {
			p = slu_key_place_meta(&o->meta);
			v = slu_key_value(&p, k, row);
		}
	}
	return v;
}

const char *slu_group_note(const struct slu_group_source *s, const char *key,
			   const struct slu_kmeta **on)
{
	const struct slu_kmeta *m = NULL;
	const char *v = NULL;

	for (uint32_t i = s->n_owners; !v && i-- > 0;) {
		m = &s->owner[i]->meta;
		v = slu_kmeta_annotation(m, key);
	}
	if (!v) {
		m = &s->pod->o.meta;
		v = slu_kmeta_annotation(m, key);
	}
	if (on)
		*on = m;
	return v;
}

bool slu_group_set(const struct slu_group_source *s, const char *key, int64_t min, int64_t max,
		   int64_t *out)
{
	const char *v = slu_group_note(s, key, NULL);
	char *end = NULL;
	long long n;

	if (!v || (*v != '-' && (*v < '0' || *v > '9')))
		return false;
	errno = 0;
	n = strtoll(v, &end, 10);
	if (errno || *end || n < min || n > max)
		return false;
	*out = n;
	return true;
}

static void derive(const struct slu_group_source *s, struct slu_group_id *out)
{
	const struct slu_kmeta *m = &s->pod->o.meta;
	const struct slu_kowner *c = slu_kmeta_controller(m);
	const char *uid = c ? c->uid : m->uid, *name = c ? c->name : m->name;
	const char *by = s->pod->spec.scheduler;
	char full[600];

	/* A ReplicaSet made by a Deployment is a detail of it. */
	if (s->n_owners && s->owner[0]->kind == SLU_KIND_REPLICASET) {
		const struct slu_kowner *d = slu_kmeta_controller(&s->owner[0]->meta);

		if (d) {
			uid = d->uid;
			name = d->name;
		}
	}
	if (slu_kstr_is(by, "fluence") && !c)
		snprintf(full, sizeof full, "fluence-group-%s", name);
	else if (slu_kstr_is(by, "fluence"))
		snprintf(full, sizeof full, "fluence-group-%s-%s", m->ns, name);
	else if (slu_kstr_is(by, "fluxnetes"))
		snprintf(full, sizeof full, "fluxnetes-group-%s-%s", m->ns, name);
	else
		snprintf(full, sizeof full, "%s", name);
	fit_name(out->name, full);
	snprintf(out->key, sizeof out->key, "u:%.250s", *uid ? uid : name);
}

/* A group of a LeaderWorkerSet: its key is a hash, so people are shown the name of its leader.  True
 * if the labels are those its controller writes. */
static bool led_name(const struct slu_kmeta *m, struct slu_group_id *out)
{
	const char *set = slu_kpair_get(m->labels, m->nlabels, SLU_LED_SET);
	const char *index = slu_kpair_get(m->labels, m->nlabels, SLU_LED_INDEX);
	char full[600], *end;
	unsigned long n;

	if (!set || !*set || !index || *index < '0' || *index > '9')
		return false;
	n = strtoul(index, &end, 10);
	if (*end || n > INT32_MAX)
		return false;
	out->led_index = (uint32_t)n;
	snprintf(full, sizeof full, "%.500s-%s", set, index);
	fit_name(out->name, full);
	return true;
}

bool slu_group_leads(const struct slu_group_id *id, const struct slu_kpod *p)
{
	const char *at = slu_kpair_get(p->o.meta.labels, p->o.meta.nlabels, SLU_LED_MEMBER);

	return id->led && at && !strcmp(at, "0");
}

int slu_group_identify(const struct slu_group_source *s, struct slu_group_id *out,
		       struct slu_error *err)
{
	const struct slu_key_row *row = NULL;
	const char *v = find_value(s, SLU_KEY_GROUP, &row);

	*out = (struct slu_group_id){ 0 };
	if (*s->pod->spec.scheduling_group) {
		v = s->pod->spec.scheduling_group;
		out->explicit = out->podgroup = out->native = true;
		snprintf(out->key, sizeof out->key, "n:%.250s", v);
		fit_name(out->name, v);
		return 0;
	}
	if (v && is_name(v)) {
		out->explicit = true;
		out->podgroup = row->podgroup;
		snprintf(out->key, sizeof out->key, "g:%s", v);
		fit_name(out->name, v);
		out->led = !strcmp(row->key, SLU_LED_GROUP) && led_name(&s->pod->o.meta, out);
		return 0;
	}
	derive(s, out);
	if (v)
		return slu_fail(err, -EINVAL, "%s: \"%.60s\" is not a group name", row->key, v);
	return 0;
}

/* ---- wishes ---- */

static int parse_duration(const char *key, const char *v, int64_t *out, struct slu_error *err)
{
	if (slu_config_seconds(v, out) < 0)
		return slu_fail(err, -EINVAL,
				"%s: \"%.60s\" is not a duration (90, 15m, 1h30m, 7d)", key, v);
	if (*out < 1)
		return slu_fail(
			err, -EINVAL,
			"%s: \"%.60s\" is a duration of zero; leave the key out for the default",
			key, v);
	return 0;
}

static const struct {
	const char *word;
	enum slu_after kind;
} after_words[] = { { "ok:", SLU_AFTER_OK },
		    { "failed:", SLU_AFTER_FAILED },
		    { "start:", SLU_AFTER_START },
		    { "end:", SLU_AFTER_END } };

/* What the prefixes of an entry mean; the reader returns the name behind them in *v and *n. */
struct after_one {
	enum slu_after kind;
	enum slu_after_whom whom;
	enum slu_kkind object;
};

static int refuse_kind(const char *key, const char *v, size_t n, struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(512);
	int rc;

	slu_kinds_awaited_text(&b);
	rc = slu_fail(err, -EINVAL, "%s: \"%.*s\" names none of %s", key,
		      (int)SLU_MIN(n, (size_t)60), v, slu_buf_str(&b));
	slu_buf_done(&b);
	return rc;
}

/* "a=b&c=d": every part has a key and a value that labels can have. */
static bool is_selector(const char *v, size_t n)
{
	for (const char *end = v + n;;) {
		const char *stop = memchr(v, '&', (size_t)(end - v));
		size_t part = (size_t)((stop ? stop : end) - v);
		const char *eq = memchr(v, '=', part);

		if (!eq || eq == v || eq - v > 316 || (size_t)(v + part - eq) > 64 ||
		    memchr(eq + 1, '=', (size_t)(v + part - eq - 1)) || strcspn(v, " !<>()") < part)
			return false;
		if (!stop)
			return true;
		v = stop + 1;
	}
}

/* Read the first entry of a list: what it names, and the name (*v, *n).  A name that contains a
 * colon needs a prefix, so that "okay:a" is not taken for the name of a group. */
static int read_one_after(const char *key, const char **v, size_t *n, struct after_one *one,
			  struct slu_error *err)
{
	const char *slash;
	bool said = false;

	*one = (struct after_one){ .kind = SLU_AFTER_END, .whom = SLU_AFTER_GROUP };
	for (size_t i = 0; i < SLU_LEN(after_words) && !said; i++) {
		size_t len = strlen(after_words[i].word);

		said = !strncmp(*v, after_words[i].word, len);
		if (said) {
			one->kind = after_words[i].kind;
			*v += len;
		}
	}
	*n = strcspn(*v, ",");
	if (!said && memchr(*v, ':', *n))
		return slu_fail(err, -EINVAL,
				"%s: \"%.*s\" begins with none of ok:, failed:, start:, end:", key,
				(int)SLU_MIN(*n, (size_t)60), *v);
	if (memchr(*v, '=', *n)) {
		one->whom = SLU_AFTER_LABELS;
		if (is_selector(*v, *n))
			return 0;
		return slu_fail(err, -EINVAL, "%s: \"%.*s\" is not a selector (a=b, a=b&c=d)", key,
				(int)SLU_MIN(*n, (size_t)60), *v);
	}
	slash = memchr(*v, '/', *n);
	if (slash) {
		one->whom = SLU_AFTER_OBJECT;
		one->object = slu_kind_awaited(*v, (size_t)(slash - *v));
		if (one->object == SLU_KIND_NONE)
			return refuse_kind(key, *v, *n, err);
		*n -= (size_t)(slash + 1 - *v);
		*v = slash + 1;
	}
	if (!*n || *n >= (one->whom ? 254u : 64u))
		return slu_fail(err, -EINVAL, "%s: \"%.60s\" is not a group name", key, *v);
	return 0;
}

/* Read them all; `w` may be NULL. */
static int read_afters(const char *key, const char *v, struct slu_group_wish *w,
		       struct slu_error *err)
{
	uint32_t count = 0;
	size_t used = 0, n;

	for (; *v; v += n + (v[n] == ',')) {
		struct after_one one;

		if (read_one_after(key, &v, &n, &one, err) < 0)
			return -EINVAL;
		if (count == SLU_GROUP_AFTER_MAX)
			return slu_fail(err, -EINVAL, "%s: more than %u groups", key,
					SLU_GROUP_AFTER_MAX);
		if (used + n + 1 > SLU_GROUP_AFTER_TEXT)
			return slu_fail(err, -EINVAL, "%s: more than %u characters", key,
					SLU_GROUP_AFTER_TEXT);
		if (w) {
			w->after[count] = (struct slu_group_after){ one.kind, one.whom, one.object,
								    (uint16_t)used };
			memcpy(w->after_text + used, v, n);
			w->after_text[used + n] = 0;
			w->n_after = count + 1;
		}
		used += n + 1;
		count++;
	}
	return 0;
}

bool slu_group_selects(const char *selector, const struct slu_kpair *labels, uint16_t n)
{
	char key[320];

	for (const char *v = selector;; v++) {
		size_t part = strcspn(v, "&"), k = strcspn(v, "=");
		const char *has;

		if (k >= part || k >= sizeof key)
			return false;
		memcpy(key, v, k);
		key[k] = 0;
		has = slu_kpair_get(labels, n, key);
		if (!has || strlen(has) != part - k - 1 || strncmp(has, v + k + 1, part - k - 1))
			return false;
		v += part;
		if (!*v)
			return true;
	}
}

int slu_group_check_pair(const char *key, const char *value, uint32_t max_size,
			 struct slu_error *err)
{
	const struct slu_key_row *row = slu_key_find(key);
	uint32_t size;
	int64_t s;

	if (!row || !*value)
		return 0;
	switch (row->means) {
	case SLU_KEY_SIZE:
	case SLU_KEY_MIN_SIZE:
	case SLU_KEY_MAX_SIZE:
		return slu_group_parse_size(key, value, max_size, &size, err);
	case SLU_KEY_DURATION:
		return parse_duration(key, value, &s, err);
	case SLU_KEY_BEGIN:
	case SLU_KEY_DEADLINE:
		if (slu_group_parse_time(value, &s) < 0)
			return slu_fail(err, -EINVAL, "%s: \"%.60s\" is not a time", key, value);
		return 0;
	case SLU_KEY_EXCLUSIVE:
		if (strcmp(value, "true") && strcmp(value, "false"))
			return slu_fail(err, -EINVAL, "%s: \"%.60s\" is neither true nor false",
					key, value);
		return 0;
	case SLU_KEY_AFTER:
		return read_afters(key, value, NULL, err);
	default:
		return 0;
	}
}

int slu_group_check_keys(const struct slu_group_source *s, struct slu_error *err)
{
	struct slu_key_place p = slu_key_place_meta(&s->pod->o.meta);
	int rc = slu_key_check_place(&p, err);

	for (uint32_t i = 0; i < s->n_owners && !rc; i++) {
		p = slu_key_place_meta(&s->owner[i]->meta);
		rc = slu_key_check_place(&p, err);
	}
	return rc;
}

int slu_group_parse_size(const char *key, const char *s, uint32_t max, uint32_t *out,
			 struct slu_error *err)
{
	uint64_t v = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++)
		if (v <= UINT32_MAX)
			v = v * 10 + (uint64_t)(*p - '0');
	if (p == s || *p)
		return slu_fail(err, -EINVAL, "%s: \"%.60s\" is not a number", key, s);
	if (v < 1 || v > max)
		return slu_fail(err, -ERANGE, "%s: %.60s is outside 1..%u", key, s, max);
	*out = (uint32_t)v;
	return 0;
}

int slu_group_parse_time(const char *s, int64_t *out_s)
{
	struct tm tm = { 0 };
	const char *p = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t t;

	if (!p) {
		int64_t v;

		if (slu_config_seconds(s, &v) < 0 || strpbrk(s, "smhdw:."))
			return -EINVAL;
		*out_s = v;
		return 0;
	}
	t = timegm(&tm);
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9'; p++)
			;
	if (*p == '+' || *p == '-') {
		int h, m, n = 0;

		if (sscanf(p + 1, "%2d:%2d%n", &h, &m, &n) != 2 || n != 5 || p[6] || h > 23 ||
		    m > 59 || h < 0 || m < 0)
			return -EINVAL;
		t -= (*p == '+' ? 1 : -1) * (h * 3600 + m * 60);
	} else if (strcmp(p, "Z")) {
		return -EINVAL;
	}
	*out_s = t;
	return 0;
}

static int read_number(const struct slu_group_source *s, enum slu_key k, uint32_t max,
		       uint32_t *out, struct slu_error *err)
{
	const struct slu_key_row *row = NULL;
	const char *v = find_value(s, k, &row);
	int rc;

	if (!v)
		return 0;
	rc = slu_group_parse_size(row->key, v, max, out, err);
	return rc < 0 ? rc : 1;
}

static int read_sizes(const struct slu_group_source *s, const struct slu_group_id *id,
		      const struct slu_kpodgroup *pg, uint32_t max_size, struct slu_group_wish *w,
		      struct slu_error *err)
{
	uint32_t size = 0, lo = 0, hi = 0;
	int64_t owner = s->n_owners ? slu_life_makes(s->owner[0]) : -1;
	int rc;

	if (!slu_kmeta_controller(&s->pod->o.meta) && !id->explicit)
		owner = 1;
	w->can_exist = owner >= 0 && !id->explicit ? (uint32_t)owner : UINT32_MAX;
	rc = read_number(s, SLU_KEY_SIZE, max_size, &size, err);
	if (rc >= 0)
		rc = read_number(s, SLU_KEY_MIN_SIZE, max_size, &lo, err);
	if (rc >= 0)
		rc = read_number(s, SLU_KEY_MAX_SIZE, max_size, &hi, err);
	if (rc < 0)
		return rc;
	if (lo && hi && lo > hi)
		return slu_fail(err, -EINVAL,
				"sluice.sh/min-size %u is above sluice.sh/max-size %u", lo, hi);
	w->max = hi ? hi : UINT32_MAX;
	w->elastic = lo || hi;
	if (pg && pg->min_member < 0 && pg->min_member != SLU_KNONE)
		return slu_fail(err, -ERANGE, "PodGroup %s: minMember %d is below 0",
				pg->o.meta.name, pg->min_member);
	if (pg && pg->min_member > 0) {
		if ((uint32_t)pg->min_member > max_size)
			return slu_fail(
				err, -ERANGE, "PodGroup %s: %s %d is above %u", pg->o.meta.name,
				slu_kkind_is_native_group(pg->o.kind) ? "minCount" : "minMember",
				pg->min_member, max_size);
		w->min = (uint32_t)pg->min_member;
	} else if (pg && slu_kkind_is_native_group(pg->o.kind)) {
		w->min = 1; /* the basic policy: each member for itself */
	} else if (lo) {
		w->min = lo;
	} else if (size) {
		w->min = size;
	} else {
		w->min = owner > 0 ? (uint32_t)SLU_MIN(owner, (int64_t)max_size) : 1;
	}
	w->named_min = (pg && pg->min_member > 0) || lo || size ? w->min : 0;
	/* A derived group is one object: it can never have more members than that makes. */
	if (w->can_exist != UINT32_MAX && w->can_exist > 0)
		w->min = SLU_MIN(w->min, w->can_exist);
	w->max = SLU_MAX(w->max, w->min);
	return 0;
}

static int read_duration(const struct slu_group_source *s, struct slu_group_wish *w,
			 struct slu_error *err)
{
	const struct slu_key_row *row = NULL;
	const char *v = find_value(s, SLU_KEY_DURATION, &row);
	int64_t d = s->pod->spec.active_deadline_s;

	for (uint32_t i = 0; i < s->n_owners; i++)
		if (s->owner[i]->kind == SLU_KIND_JOB) {
			int64_t jd = slu_kjob(s->owner[i])->active_deadline_s;

			if (jd > 0 && (d <= 0 || jd < d))
				d = jd;
		}
	w->duration_s = d > 0 ? d : 0;
	if (v && parse_duration(row->key, v, &d, err) < 0)
		return -EINVAL;
	if (v && !w->duration_s)
		w->duration_s = d;
	w->duration_s = SLU_MIN(w->duration_s, INT64_C(10) * 366 * 86400);
	return 0;
}

static int read_topology(const struct slu_group_source *s, struct slu_group_wish *w,
			 struct slu_error *err)
{
	struct slu_key_place p = slu_key_place_meta(&s->pod->o.meta);
	const struct slu_key_row *row = NULL;
	const char *v = find_value(s, SLU_KEY_TOPOLOGY, &row);

	w->level_required = true;
	if (!v) {
		if (slu_key_jobspec(&p, "zone"))
			strcpy(w->level, "zone");
		return 0;
	}
	if (!strncmp(v, "required:", 9)) {
		v += 9;
	} else if (!strncmp(v, "preferred:", 10)) {
		v += 10;
		w->level_required = false;
	}
	if (!*v || strlen(v) >= sizeof w->level)
		return slu_fail(err, -EINVAL, "%s: \"%.60s\" is not a topology level", row->key, v);
	strcpy(w->level, v);
	return 0;
}

static int read_after(const struct slu_group_source *s, struct slu_group_wish *w,
		      struct slu_error *err)
{
	const struct slu_key_row *row = NULL;
	const char *v = find_value(s, SLU_KEY_AFTER, &row);

	return v ? read_afters(row->key, v, w, err) : 0;
}

static int read_words(const struct slu_group_source *s, struct slu_group_wish *w,
		      struct slu_error *err)
{
	const struct slu_key_row *row = NULL;
	const char *v = find_value(s, SLU_KEY_QUEUE, &row);

	if (v) {
		if (strlen(v) >= sizeof w->queue)
			return slu_fail(err, -EINVAL, "%s: \"%.60s\" is not a queue name", row->key,
					v);
		strcpy(w->queue, v);
	}
	v = find_value(s, SLU_KEY_RESERVATION, &row);
	if (v) {
		if (strlen(v) >= sizeof w->reservation || strchr(v, '/'))
			return slu_fail(err, -EINVAL,
					"%s: \"%.60s\" is not the name of a Reservation", row->key,
					v);
		strcpy(w->reservation, v);
	}
	v = find_value(s, SLU_KEY_EXCLUSIVE, &row);
	if (v) {
		w->exclusive = !strcmp(v, "true");
		if (!w->exclusive && strcmp(v, "false"))
			return slu_fail(err, -EINVAL, "%s: \"%.60s\" is neither true nor false",
					row->key, v);
	}
	v = find_value(s, SLU_KEY_BEGIN, &row);
	if (v && slu_group_parse_time(v, &w->begin_s) < 0)
		return slu_fail(err, -EINVAL,
				"%s: \"%.60s\" is not a time (2026-01-31T14:00:00Z, or seconds)",
				row->key, v);
	v = find_value(s, SLU_KEY_DEADLINE, &row);
	if (v && slu_group_parse_time(v, &w->deadline_s) < 0)
		return slu_fail(err, -EINVAL,
				"%s: \"%.60s\" is not a time (2026-01-31T14:00:00Z, or seconds)",
				row->key, v);
	return 0;
}

int slu_group_wish(const struct slu_group_source *s, const struct slu_group_id *id,
		   const struct slu_kpodgroup *pg, uint32_t max_size, struct slu_group_wish *out,
		   struct slu_error *err)
{
	struct slu_group_wish w = { 0 };
	int rc = read_sizes(s, id, pg, max_size, &w, err);

	if (!rc)
		rc = read_duration(s, &w, err);
	if (!rc)
		rc = read_topology(s, &w, err);
	if (!rc)
		rc = read_after(s, &w, err);
	if (!rc)
		rc = read_words(s, &w, err);
	if (rc < 0)
		return -EINVAL;
	w.priority = s->pod->spec.priority;
	if (pg && pg->has_priority)
		w.priority = pg->priority;
	if (pg && pg->schedule_timeout_s > 0)
		w.timeout_s = pg->schedule_timeout_s;
	if (s->n_owners && s->owner[0]->kind == SLU_KIND_STATEFULSET)
		w.one_by_one = !slu_kstatefulset(s->owner[0])->parallel;
	/* A service has no end unless a user names one. */
	w.serves = s->n_owners && slu_kind_serves((enum slu_kkind)s->owner[0]->kind);
	*out = w;
	return 0;
}
