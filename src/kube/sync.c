/* sync.c — one request after the other, for commands and tests. */
#include "kube/client.h"

struct wait {
	bool done;
	int rc;
	struct slu_kube_answer *out;
	struct slu_error *err;
};

static void on_reply(void *arg, const struct slu_kube_reply *r)
{
	static const int code[] = {
		[SLU_KUBE_OK] = 0,
		[SLU_KUBE_RETRYABLE] = -EAGAIN,
		[SLU_KUBE_CONFLICT] = -ESTALE,
		[SLU_KUBE_EXISTS] = -EEXIST,
		[SLU_KUBE_GONE] = -ESTALE,
		[SLU_KUBE_NOT_FOUND] = -ENOENT,
		[SLU_KUBE_REFUSED] = -EACCES,
		[SLU_KUBE_INVALID] = -EINVAL,
		[SLU_KUBE_FAILED] = -EPROTO,
		[SLU_KUBE_CANCELLED] = -ECANCELED,
	};
	struct wait *w = arg;
	struct slu_kube_answer *a = w->out;

	w->done = true;
	w->rc = code[r->outcome];
	if (w->rc)
		slu_fail(w->err, w->rc, "%s", r->error);
	if (!a)
		return;
	a->outcome = r->outcome;
	a->status = r->status;
	a->body = slu_strndup(r->body, r->body_len);
	a->body_len = r->body_len;
	a->content_type = slu_strdup(r->content_type);
	a->reason = slu_strdup(r->reason);
	if (!a->body || !a->content_type || !a->reason) {
		slu_kube_answer_done(a);
		w->rc = slu_fail(w->err, -ENOMEM, "no memory for the answer");
	}
}

int slu_kube_do(struct slu_kube_client *c, const struct slu_kube_request *q,
		struct slu_kube_answer *out, struct slu_error *err)
{
	struct wait w = { .out = out, .err = err };
	struct slu_kube_request r = *q;
	int rc;

	if (out)
		memset(out, 0, sizeof *out);
	r.data = NULL;
	r.done = on_reply;
	r.arg = &w;
	rc = slu_kube_send(c, &r, NULL);
	if (rc < 0)
		return slu_fail(err, rc, "the request cannot be queued: %s", strerror(-rc));
	slu_loop_run_until(slu_kube_client_loop(c), &w.done,
			   -1); /* no limit here: the call has its own time-out */
	return w.rc;
}

void slu_kube_answer_done(struct slu_kube_answer *a)
{
	slu_free(a->body);
	slu_free(a->content_type);
	slu_free(a->reason);
	a->body = a->content_type = a->reason = NULL;
	a->body_len = 0;
}
