/* config_internal.h — the settings that a kubeconfig resolves to; for config.c, auth.c and
 * client.c only. */
#pragma once
#include "base/arena.h"
#include "kube/config.h"

/* A certificate, key or token: in the file itself, or in a file it names. */
struct kube_blob {
	const char *data; /* decoded; NULL: none or in a file */
	size_t n;
	const char *file; /* absolute, or NULL */
	const char *from; /* "FILE: users[\"x\"].user.client-key", for messages; NULL: not set */
};

struct kube_pair {
	const char *name, *value;
};

struct kube_exec {
	const char *command; /* NULL: no plug-in */
	const char *api_version;
	const char *from; /* "FILE: users[\"x\"].user.exec" */
	const char *install_hint;
	const char **args; /* NULL-terminated */
	struct kube_pair *env;
	uint32_t n_env;
	bool provide_cluster_info, never_interactive, always_interactive;
};

struct slu_kube_config {
	struct slu_arena mem; /* everything below */
	uint32_t refs;
	const char *source, *context, *cluster, *user, *namespace_;
	const char *server;      /* URL as written */
	const char *server_from; /* place of the field */
	struct slu_addr addr;
	bool insecure, no_compression;
	const char *tls_server_name;
	struct kube_blob ca, cert, key;
	struct kube_blob token; /* file wins over data, as in client-go */
	const char *username, *password;
	const char *as_user, *as_uid;
	const char **as_groups; /* NULL-terminated; NULL: none */
	struct kube_pair *as_extra;
	uint32_t n_as_extra;
	struct kube_exec exec;
};
