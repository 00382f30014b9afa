/* config_read_internal.h — reading kubeconfigs: the files that are named, an entry of their lists by name,
 * its fields.  For config.c only; what is kept lives in the memory of the configuration.  Functions
 * return 0, -ENOMEM, or -EINVAL with a sentence that names file, place and line. */
#pragma once
#include "kube/config_internal.h"
#include "wire/json.h"

#define KCFG_FILES_MAX 32
#define KCFG_LIST_MAX  4096

struct kcfg_file {
	char *path;
	struct slu_json_doc *doc;
};

/* A configuration that is being read. */
struct kcfg {
	struct kcfg_file file[KCFG_FILES_MAX];
	uint32_t n;
	struct slu_kube_config *c;
	struct slu_error *err;
};

/* One entry of clusters, users or contexts: the inner object and where it stands. */
struct kcfg_entry {
	const struct kcfg_file *file;
	const struct slu_json *obj;
	char place[400]; /* "clusters[\"prod\"].cluster" */
};

char *kube_config_keep(struct kcfg *l, const char *s);
char *kube_config_keepf(struct kcfg *l, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Report that a field is wrong; returns -EINVAL. */
int kube_config_wrong(struct kcfg *l, const struct kcfg_entry *e, const char *field,
		      const char *why);
/* The string of a field: 0 with *out NULL when absent, null or empty. */
int kube_config_str(struct kcfg *l, const struct kcfg_entry *e, const char *field,
		    const char **out);
int kube_config_bool(struct kcfg *l, const struct kcfg_entry *e, const char *field, bool *out);
int kube_config_list(struct kcfg *l, const struct kcfg_entry *e, const char *field,
		     const char ***out);
/* `field` names a file, `field`-data holds base64 and wins. */
int kube_config_blob(struct kcfg *l, const struct kcfg_entry *e, const char *field,
		     struct kube_blob *b);
/* "FILE: clusters[\"prod\"].cluster.server", kept; NULL without memory. */
const char *kube_config_place(struct kcfg *l, const struct kcfg_entry *e, const char *field);
/* A path in a kubeconfig is relative to the directory of that file. */
const char *kube_config_path(struct kcfg *l, const struct kcfg_file *f, const char *path);

/* Read one file, or a list of files separated by colons, of which some may be missing, but not
 * all (-ENOENT). */
int kube_config_load(struct kcfg *l, const char *path, bool must_exist);
int kube_config_load_list(struct kcfg *l, const char *list);
void kube_config_done(struct kcfg *l);
/* The entry `name` of list `kind` ("clusters") with its inner object ("cluster"): the first file
 * that has it wins as a whole.  -ENOENT: none has. */
int kube_config_find(struct kcfg *l, const char *kind, const char *inner, const char *name,
		     struct kcfg_entry *out);
