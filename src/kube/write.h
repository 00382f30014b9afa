/* write.h — requests about objects: create, get, patch, replace, bind, review.
 *
 * Each call sends one request and is answered by exactly one call of `done` (client.h), on the
 * loop's thread, never from inside.  0, -ENOMEM, -ENOBUFS, -ESHUTDOWN from the sending itself; then
 * `done` is not called.  Texts and bodies are copied. */
#pragma once
#include "base/buf.h"
#include "kube/client.h"
#include "kube/object.h"

/* Which object, or which collection if name is NULL. */
struct slu_ktarget {
	const char *group, *version, *resource;
	const char *ns; /* NULL: not in a namespace */
	const char *name;
	const char *sub; /* "status", "binding", ...; NULL */
};

/* A target of a known kind.  ns "" counts as none. */
struct slu_ktarget slu_ktarget(enum slu_kkind kind, const char *ns, const char *name,
			       const char *sub);

/* The function that gets the answer. */
struct slu_kdone {
	slu_kube_done_fn *fn;
	void *arg;
};

/* Read one object; `accept` as in client.h, NULL: JSON. */
int slu_kube_get(struct slu_kube_client *c, const struct slu_ktarget *t, const char *accept,
		 struct slu_kdone done);
/* POST a JSON body to the collection (or to a subresource, with name and sub given). */
int slu_kube_create(struct slu_kube_client *c, const struct slu_ktarget *t, const void *json,
		    size_t n, struct slu_kdone done);
/* PUT; conflicts if the body's resourceVersion is not the current one. */
int slu_kube_replace(struct slu_kube_client *c, const struct slu_ktarget *t, const void *json,
		     size_t n, struct slu_kdone done);

enum slu_kpatch {
	SLU_KPATCH_JSON,      /* RFC 6902 */
	SLU_KPATCH_MERGE,     /* RFC 7386 */
	SLU_KPATCH_STRATEGIC, /* lists merged by key; built-in kinds only */
	SLU_KPATCH_APPLY,     /* server-side apply; needs a field manager */
};
struct slu_kpatch_options {
	const char *field_manager; /* NULL: "sluice" for APPLY, else none */
	bool force;                /* APPLY: take fields over from other managers */
	uint8_t priority;          /* as in client.h */
};
/* A patch that names metadata.resourceVersion or tests values conflicts instead of overwriting.
 * Patches are sent again when their fate is unknown unless they are JSON patches (which may not be
 * repeatable). */
int slu_kube_patch(struct slu_kube_client *c, const struct slu_ktarget *t, enum slu_kpatch type,
		   const void *body, size_t n, const struct slu_kpatch_options *o,
		   struct slu_kdone done);

/* Bind a pod to a node.  The uid prevents binding another pod of the same name.  A binding whose fate
 * is unknown is sent again: if the first one was carried out the server answers CONFLICT, and the
 * pod's nodeName tells to which node it is bound. */
int slu_kube_bind(struct slu_kube_client *c, const char *ns, const char *pod, const char *uid,
		  const char *node, struct slu_kdone done);

/* ---- who is calling, and what the caller may do ---- */

struct slu_kuser {
	const char *name, *uid;
	const char *const *groups;
	uint32_t ngroups;
};
/* known: 1: `user` (borrowed) is the caller; 0: the token belongs to no user; negative: the
 * server could not be asked.  `why` gives the reason for 0 and for a failure ("" if the server
 * gave none). */
typedef void slu_ktoken_fn(void *arg, int known, const struct slu_kuser *user, const char *why);
/* TokenReview.  audience NULL: the server's own. */
int slu_kube_token_review(struct slu_kube_client *c, const char *token, const char *audience,
			  slu_ktoken_fn *fn, void *arg);

struct slu_kaccess {
	const char *verb, *group, *resource, *sub, *ns, *name; /* of a resource; NULL: not given */
	const char *path;                                      /* or of a URL path */
};
/* allowed: 1 yes, 0 no, negative: the server could not be asked. */
typedef void slu_kaccess_fn(void *arg, int allowed, const char *reason);
/* SubjectAccessReview. */
int slu_kube_access_review(struct slu_kube_client *c, const struct slu_kuser *user,
			   const struct slu_kaccess *what, slu_kaccess_fn *fn, void *arg);
