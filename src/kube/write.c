#include "kube/write.h"

#include "kube/encode.h"

#define BIND_PRIORITY 6

struct slu_ktarget slu_ktarget(enum slu_kkind kind, const char *ns, const char *name,
			       const char *sub)
{
	const struct slu_kkind_info *k = slu_kkind_info(kind);

	return (struct slu_ktarget){
		.group = k->group,
		.version = k->version,
		.resource = k->resource,
		.ns = k->namespaced && ns && ns[0] ? ns : NULL,
		.name = name,
		.sub = sub,
	};
}

/* Fill in path and answer, send. */
static int send_to(struct slu_kube_client *c, const struct slu_ktarget *t,
		   struct slu_kube_request *q, struct slu_kdone done)
{
	slu_cleanup(slu_buf_done) struct slu_buf path = SLU_BUF_INIT(8192);
	int rc = slu_kube_path(&path, t->group, t->version, t->ns, t->resource, t->name, t->sub);

	if (rc < 0)
		return rc;
	q->path = slu_buf_str(&path);
	q->done = done.fn;
	q->arg = done.arg;
	return slu_kube_send(c, q, NULL);
}

int slu_kube_get(struct slu_kube_client *c, const struct slu_ktarget *t, const char *accept,
		 struct slu_kdone done)
{
	struct slu_kube_request q = { .method = SLU_HTTP_GET, .accept = accept };

	return send_to(c, t, &q, done);
}

int slu_kube_create(struct slu_kube_client *c, const struct slu_ktarget *t, const void *json,
		    size_t n, struct slu_kdone done)
{
	struct slu_kube_request q = { .method = SLU_HTTP_POST, .body = json, .body_len = n };

	return send_to(c, t, &q, done);
}

int slu_kube_replace(struct slu_kube_client *c, const struct slu_ktarget *t, const void *json,
		     size_t n, struct slu_kdone done)
{
	struct slu_kube_request q = { .method = SLU_HTTP_PUT, .body = json, .body_len = n };

	return send_to(c, t, &q, done);
}

int slu_kube_patch(struct slu_kube_client *c, const struct slu_ktarget *t, enum slu_kpatch type,
		   const void *body, size_t n, const struct slu_kpatch_options *o,
		   struct slu_kdone done)
{
	static const char *const types[] = {
		[SLU_KPATCH_JSON] = SLU_KUBE_JSON_PATCH,
		[SLU_KPATCH_MERGE] = SLU_KUBE_MERGE_PATCH,
		[SLU_KPATCH_STRATEGIC] = SLU_KUBE_STRATEGIC_PATCH,
		[SLU_KPATCH_APPLY] = SLU_KUBE_APPLY_PATCH,
	};
	slu_cleanup(slu_buf_done) struct slu_buf query = SLU_BUF_INIT(1024);
	const char *manager = o ? o->field_manager : NULL;
	struct slu_kube_request q = {
		.method = SLU_HTTP_PATCH,
		.content_type = types[type],
		.body = body,
		.body_len = n,
		.priority = o ? o->priority : 0,
		.repeatable = type != SLU_KPATCH_JSON,
	};

	if (!manager && type == SLU_KPATCH_APPLY)
		manager = "sluice";
	if (manager)
		slu_http_query_add(&query, "fieldManager", manager);
	if (o && o->force && type == SLU_KPATCH_APPLY)
		slu_http_query_add(&query, "force", "true");
	if (query.error)
		return query.error;
	q.query = slu_buf_str(&query);
	return send_to(c, t, &q, done);
}

int slu_kube_bind(struct slu_kube_client *c, const char *ns, const char *pod, const char *uid,
		  const char *node, struct slu_kdone done)
{
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(4096);
	struct slu_ktarget t = slu_ktarget(SLU_KIND_POD, ns, pod, "binding");
	struct slu_kube_request q = {
		.method = SLU_HTTP_POST,
		.content_type = SLU_KUBE_PROTOBUF,
		.accept = SLU_KUBE_PROTOBUF,
		.priority = BIND_PRIORITY,
		.repeatable = true,
	};
	int rc = slu_kenc_binding(&b, ns, pod, uid, node);

	if (rc < 0)
		return rc;
	q.body = b.p;
	q.body_len = b.n;
	return send_to(c, &t, &q, done);
}
