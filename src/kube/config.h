/* config.h — the address of the API server and our credentials: kubeconfig files or the pod's own
 * account.
 *
 * Files are merged as kubectl does: the first file that names a cluster, user, context or the
 * current context wins; relative paths are relative to the file they stand in.  Proxies are not
 * used; server certificates are always verified unless the file says insecure-skip-tls-verify.
 * Every error names the file and the field. */
#pragma once
#include "base/base.h"
#include "net/http.h"

struct slu_kube_config; /* immutable once loaded, reference-counted, one thread */

struct slu_kube_config_options {
	const char *path;    /* --kubeconfig; NULL: $KUBECONFIG, ~/.kube/config, in-cluster */
	const char *context; /* --context; NULL: the file's current-context */
	const char *cluster, *user, *namespace_; /* override the context's; NULL */
	const char *in_cluster_dir; /* NULL: /var/run/secrets/kubernetes.io/serviceaccount */
};

/* -ENOENT: nothing configured; -EINVAL: a file or field is wrong; -ENOMEM. */
int slu_kube_config_load(const struct slu_kube_config_options *o, struct slu_kube_config **out,
			 struct slu_error *err);
struct slu_kube_config *slu_kube_config_ref(struct slu_kube_config *c);
void slu_kube_config_unref(struct slu_kube_config *c);
SLU_DEFINE_CLEANUP(struct slu_kube_config, slu_kube_config_unref)

/* "https://10.0.0.1:6443", the namespace of the context ("default" if none), where it came from
 * (file or "in-cluster"), and the names in use; borrowed. */
const char *slu_kube_config_server(const struct slu_kube_config *c);
const char *slu_kube_config_namespace(const struct slu_kube_config *c);
const char *slu_kube_config_source(const struct slu_kube_config *c);
const char *slu_kube_config_user(const struct slu_kube_config *c);
