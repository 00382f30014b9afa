/* auth.h — the credentials of a configuration as they are right now: token files re-read when they
 * change, plug-ins run when needed, client certificates turned into a TLS context.  For client.c.
 */
#pragma once
#include "kube/config_internal.h"
#include "net/loop.h"
#include "net/tls.h"

struct kube_auth;

/* `changed` is called when a plug-in that made kube_auth_get() say -EAGAIN has ended. */
struct kube_auth *kube_auth_new(struct slu_loop *l, struct slu_kube_config *cfg,
				slu_call_fn *changed, void *arg);
void kube_auth_free(struct kube_auth *a);

/* The value of the authorization header (NULL: none), borrowed until the next call.
 * 0; -EAGAIN: a plug-in is running; another negative errno with file and field in the sentence. */
int kube_auth_get(struct kube_auth *a, const char **authorization, struct slu_error *err);
/* The TLS context for a new connection (borrowed; NULL for http://). */
int kube_auth_tls(struct kube_auth *a, struct slu_tls **out, struct slu_error *err);
/* A number that grows whenever the TLS context is replaced; connections opened before carry old
 * certificates. */
uint32_t kube_auth_generation(const struct kube_auth *a);
/* Report that the server answered 401; true if another try may use other credentials. */
bool kube_auth_rejected(struct kube_auth *a);

/* "token of FILE: users[...]", "client certificate FILE, which expired on ...": where the
 * credentials in use come from, for the message about a 401. */
void kube_auth_describe(const struct kube_auth *a, char *out, size_t size);

/* ---- exec.c: one run of a plug-in ---- */

struct kube_exec_result {
	char *token, *cert, *key; /* owned; NULL if not given */
	int64_t expires_s;        /* INT64_MAX: never */
};
void kube_exec_result_done(struct kube_exec_result *r);

struct kube_exec_run;
typedef void kube_exec_fn(void *arg, int code, struct kube_exec_result *r,
			  const struct slu_error *err);

/* Start it; fn is called once, never from inside.  On success it may take the result's strings. */
int kube_exec_start(struct slu_loop *l, const struct slu_kube_config *cfg, int64_t timeout_ns,
		    kube_exec_fn *fn, void *arg, struct kube_exec_run **out, struct slu_error *err);
/* Kill it, without a callback. */
void kube_exec_cancel(struct kube_exec_run *r);

/* Read an ExecCredential.  0 or -EINVAL with a sentence. */
int kube_exec_parse(const char *text, size_t n, const char *api_version,
		    struct kube_exec_result *out, struct slu_error *err);
