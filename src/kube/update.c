/* Read, change, write; again on conflict. */
#include "kube/write.h"
#include "wire/json.h"

#define TRIES    5u
#define BODY_MAX (8u << 20)

struct update {
	struct slu_kube_client *client;
	struct slu_ktarget t;
	char *text; /* what the target points to */
	unsigned left;
	slu_kchange_fn *change;
	void *arg;
	struct slu_kdone done;
};

static void finish(struct update *u, const struct slu_kube_reply *r)
{
	struct slu_kdone done = u->done;

	slu_free(u->text);
	slu_free(u);
	done.fn(done.arg, r);
}

static void fail(struct update *u, enum slu_kube_outcome outcome, const char *sentence)
{
	struct slu_kube_reply r = {
		.outcome = outcome, .content_type = "", .body = "", .reason = "", .error = sentence
	};

	finish(u, &r);
}

static void got(void *arg, const struct slu_kube_reply *r);

static void read_it(struct update *u)
{
	if (slu_kube_get(u->client, &u->t, NULL, (struct slu_kdone){ got, u }) < 0)
		fail(u, SLU_KUBE_RETRYABLE, "the request could not be queued");
}

static void wrote(void *arg, const struct slu_kube_reply *r)
{
	struct update *u = arg;

	/* A write whose fate is unknown looks like a conflict when it is tried again; reading
	 * tells. */
	if ((r->outcome != SLU_KUBE_CONFLICT && !r->uncertain) || --u->left == 0) {
		finish(u, r);
		return;
	}
	read_it(u);
}

static void got(void *arg, const struct slu_kube_reply *r)
{
	struct update *u = arg;
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	slu_cleanup(slu_buf_done) struct slu_buf body = SLU_BUF_INIT(BODY_MAX);
	struct slu_error err = { 0 };
	int rc;

	if (r->outcome != SLU_KUBE_OK) {
		finish(u, r);
		return;
	}
	if (slu_json_parse(r->body, r->body_len, NULL, &doc, &err) < 0) {
		fail(u, SLU_KUBE_FAILED, err.text);
		return;
	}
	rc = u->change(u->arg, slu_json_root(doc), &body);
	if (rc == 0) {
		finish(u, r);
		return;
	}
	if (rc < 0 || body.error) {
		fail(u, SLU_KUBE_INVALID, "the change was called off");
		return;
	}
	rc = slu_kube_replace(u->client, &u->t, body.p, body.n, (struct slu_kdone){ wrote, u });
	if (rc < 0)
		fail(u, SLU_KUBE_RETRYABLE, "the request could not be queued");
}

/* One block for the six texts of a target. */
static int copy_target(struct update *u, const struct slu_ktarget *t)
{
	const char *const from[] = { t->group, t->version, t->resource, t->ns, t->name, t->sub };
	const char **const to[] = { &u->t.group, &u->t.version, &u->t.resource,
				    &u->t.ns,    &u->t.name,    &u->t.sub };
	size_t n = 1;
	char *at;

	for (size_t i = 0; i < SLU_LEN(from); i++)
		n += from[i] ? strlen(from[i]) + 1 : 0;
	at = u->text = slu_malloc(n);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < SLU_LEN(from); i++) {
		if (!from[i])
			continue;
		*to[i] = strcpy(at, from[i]);
		at += strlen(from[i]) + 1;
	}
	return 0;
}

int slu_kube_update(struct slu_kube_client *c, const struct slu_ktarget *t, unsigned tries,
		    slu_kchange_fn *change, void *arg, struct slu_kdone done)
{
	struct update *u = slu_calloc(1, sizeof *u);
	int rc;

	if (!u || copy_target(u, t) < 0) {
		slu_free(u);
		return -ENOMEM;
	}
	u->client = c;
	u->left = tries ? tries : TRIES;
	u->change = change;
	u->arg = arg;
	u->done = done;
	rc = slu_kube_get(c, &u->t, NULL, (struct slu_kdone){ got, u });
	if (rc < 0) {
		slu_free(u->text);
		slu_free(u);
	}
	return rc;
}
