#include "control/io/census.h"

#include <stdio.h>

#include "base/log.h"
#include "base/map.h"

#define PAGE     "500"
#define PAGE_MAX (256u << 20)

/* Ended pods hold nothing: whether they are still there is of no interest. */
static const struct {
	enum slu_kkind kind;
	const char *fields;
} counted[] = {
	{ SLU_KIND_NODE, NULL },
	{ SLU_KIND_POD, "status.phase!=Succeeded,status.phase!=Failed" },
};

struct slu_census {
	struct slu_kube_client *client;
	struct slu_inbox *core;
	struct slu_kcodec *codec;
	struct slu_timer timer;
	int64_t period_s;
	struct slu_kube_call *call;  /* under way */
	struct slu_rec_census *list; /* being filled */
	size_t kind;                 /* index of `counted` */
	char *more;                  /* continue token */
	uint32_t unreadable;         /* objects of the list so far */
};

static void begin_census(void *arg);

static void rest_census(struct slu_census *s)
{
	if (s->list)
		s->list->base.free(&s->list->base);
	s->list = NULL;
	slu_free(s->more);
	s->more = NULL;
	if (s->period_s)
		slu_timer_start(&s->timer, slu_kube_client_loop(s->client),
				s->period_s * SLU_NS_PER_S, begin_census, s);
}

static void fail_census(struct slu_census *s, const char *why)
{
	slu_log(SLU_DEBUG, "audit skipped: no fresh list", SLU_STR("err", why));
	rest_census(s);
}

static int count_object(void *arg, const struct slu_kobj *o)
{
	struct slu_census *s = arg;
	const char *uid = o->meta.uid;
	struct slu_census_row row = { slu_hash_bytes(uid, strlen(uid)), o->meta.rv };
	int rc = slu_vec_push(&s->list->row, row);

	slu_kobj_unref(o);
	return rc;
}

static void page(struct slu_census *s);

static void page_done(void *arg, const struct slu_kube_reply *r)
{
	struct slu_census *s = arg;
	struct slu_klist l = { 0 };
	struct slu_error err = { 0 };
	int rc;

	s->call = NULL;
	if (r->outcome != SLU_KUBE_OK) {
		if (r->outcome != SLU_KUBE_CANCELLED)
			fail_census(s, r->error);
		return;
	}
	rc = slu_kcodec_list(s->codec,
			     &(struct slu_klist_in){ .kind = s->list->kind,
						     .enc = slu_kencoding_of(r->content_type),
						     .bytes = r->body,
						     .n = r->body_len,
						     .item = count_object,
						     .arg = s },
			     &l, &err);
	slu_free(s->more);
	s->more = l.cont;
	if (rc < 0) {
		fail_census(s, *err.text ? err.text : "a page cannot be read");
		return;
	}
	s->unreadable += l.bad;
	s->list->rv = strtoull(l.rv, NULL, 10);
	if (s->more) {
		page(s);
		return;
	}
	/* A list with a gap would report an object as gone that only cannot be read. */
	if (!s->unreadable && slu_inbox_put_answer(s->core, &s->list->base) == 0)
		s->list = NULL;
	if (++s->kind < SLU_LEN(counted))
		begin_census(s);
	else
		rest_census(s);
}

static void page(struct slu_census *s)
{
	const struct slu_kkind_info *k = slu_kkind_info(s->list->kind);
	slu_cleanup(slu_buf_done) struct slu_buf path = SLU_BUF_INIT(4096);
	slu_cleanup(slu_buf_done) struct slu_buf query = SLU_BUF_INIT(1u << 16);
	struct slu_kube_request q = { .accept = k->json_only ? SLU_KUBE_JSON : SLU_KUBE_PROTOBUF,
				      .max_body = PAGE_MAX,
				      .done = page_done,
				      .arg = s };
	int rc = slu_kube_path(&path, k->group, k->version, NULL, k->resource, NULL, NULL);

	slu_http_query_add(&query, "limit", PAGE);
	if (counted[s->kind].fields)
		slu_http_query_add(&query, "fieldSelector", counted[s->kind].fields);
	if (s->more)
		slu_http_query_add(&query, "continue", s->more);
	q.path = slu_buf_str(&path);
	q.query = slu_buf_str(&query);
	if (!rc)
		rc = path.error ? path.error : query.error;
	if (!rc)
		rc = slu_kube_send(s->client, &q, &s->call);
	if (rc < 0)
		fail_census(s, strerror(-rc));
}

static void begin_census(void *arg)
{
	struct slu_census *s = arg;

	if (s->kind >= SLU_LEN(counted))
		s->kind = 0;
	if (s->list)
		s->list->base.free(&s->list->base);
	s->unreadable = 0;
	s->list = slu_rec_census_new(counted[s->kind].kind);
	if (s->list)
		page(s);
	else
		fail_census(s, "no memory");
}

int slu_census_new(struct slu_kube_client *client, struct slu_inbox *core, struct slu_strpool *pool,
		   int64_t period_s, struct slu_census **out, struct slu_error *err)
{
	struct slu_census *s = slu_calloc(1, sizeof *s);

	if (s)
		s->codec = slu_kcodec_new(pool);
	if (!s || !s->codec) {
		slu_free(s);
		return slu_fail(err, -ENOMEM, "out of memory");
	}
	s->client = client;
	s->core = core;
	s->period_s = period_s;
	rest_census(s);
	*out = s;
	return 0;
}

void slu_census_free(struct slu_census *s)
{
	if (!s)
		return;
	s->period_s = 0;
	if (s->call)
		slu_kube_cancel(s->call);
	rest_census(s);
	slu_timer_stop(&s->timer);
	slu_kcodec_free(s->codec);
	slu_free(s);
}

void slu_census_period(struct slu_census *s, int64_t period_s)
{
	bool change = s->period_s != period_s;

	s->period_s = period_s;
	if (change && !s->call)
		rest_census(s);
}

void slu_census_now(struct slu_census *s)
{
	if (s->call)
		return;
	slu_timer_stop(&s->timer);
	s->kind = 0;
	begin_census(s);
}
