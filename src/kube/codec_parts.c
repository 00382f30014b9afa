/* codec_parts.c — tables that several kinds share: metadata, the metadata of lists,
 * selectors of nodes, statuses and words.  codec_tables.c and codec_pod.c use them. */
#include "kube/codec_internal.h"

const struct kword slu_ktri_words[] = {
	{ "True", SLU_TRI_TRUE },
	{ "False", SLU_TRI_FALSE },
	{ NULL, SLU_TRI_UNKNOWN },
};
const struct kword slu_keffect_words[] = {
	{ "NoSchedule", SLU_EFFECT_NO_SCHEDULE },
	{ "NoExecute", SLU_EFFECT_NO_EXECUTE },
	{ "PreferNoSchedule", SLU_EFFECT_PREFER_NO_SCHEDULE },
	{ "", SLU_EFFECT_ANY },
	{ NULL, SLU_EFFECT_OTHER },
};

/* ---- metadata ---- */

KMSG(owner_msg, "OwnerReference",
     slu_kowner, [1] = K_STR("kind", slu_kowner, kind), [3] = K_STR("name", slu_kowner, name),
     [4] = K_STR("uid", slu_kowner, uid), [5] = K_STR("apiVersion", slu_kowner, api_version),
     [6] = K_BOOL("controller", slu_kowner, controller));
KMSG_PUB_MAPS(slu_kmeta_msg, "ObjectMeta", slu_kmeta, [1] = K_STR("name", slu_kmeta, name),
	      [2] = K_STR("generateName", slu_kmeta, generate_name),
	      [3] = K_STR("namespace", slu_kmeta, ns), [5] = K_STR("uid", slu_kmeta, uid),
	      [6] = K_RV("resourceVersion", slu_kmeta, rv),
	      [7] = K_I64("generation", slu_kmeta, generation),
	      [8] = K_TIME("creationTimestamp", slu_kmeta, created_us),
	      [9] = K_TIME("deletionTimestamp", slu_kmeta, deleted_us),
	      [11] = K_PAIRS("labels", slu_kmeta, labels),
	      [12] = K_NOTES("annotations", slu_kmeta, annotations),
	      [13] = K_MSGS("ownerReferences", slu_kmeta, owners, owner_msg),
	      [14] = K_STRS("finalizers", slu_kmeta, finalizers));

KMSG_PUB(slu_klistmeta_msg, "ListMeta",
	 kraw_listmeta, [2] = K_SLICE("resourceVersion", kraw_listmeta, rv),
	 [3] = K_SLICE("continue", kraw_listmeta, cont),
	 [4] = K_I64("remainingItemCount", kraw_listmeta, remain));

KMSG_MAPS(bookmark_meta_msg, "ObjectMeta",
	  kraw_bookmark, [6] = K_RV("resourceVersion", kraw_bookmark, rv),
	  [12] = K_PAIRS("annotations", kraw_bookmark, annotations));
KMSG_PUB(slu_kbookmark_msg, "bookmark", kraw_bookmark, [1] = K_PART("metadata", bookmark_meta_msg));

KMSG(name_meta_msg, "ObjectMeta", kraw_name, [1] = K_SLICE("name", kraw_name, name),
     [3] = K_SLICE("namespace", kraw_name, ns), [6] = K_RV("resourceVersion", kraw_name, rv));
KMSG_PUB(slu_kname_msg, "object", kraw_name, [1] = K_PART("metadata", name_meta_msg));

KMSG(details_msg, "StatusDetails",
     kraw_status, [5] = K_I32("retryAfterSeconds", kraw_status, retry_after));
KMSG_PUB(slu_kstatus_msg, "Status", kraw_status, [3] = K_SLICE("message", kraw_status, message),
	 [4] = K_SLICE("reason", kraw_status, reason), [5] = K_PART("details", details_msg),
	 [6] = K_I32("code", kraw_status, code));

/* ---- selectors of nodes ---- */

static const struct kword sel_words[] = {
	{ "In", SLU_SEL_IN },         { "NotIn", SLU_SEL_NOT_IN },
	{ "Exists", SLU_SEL_EXISTS }, { "DoesNotExist", SLU_SEL_DOES_NOT_EXIST },
	{ "Gt", SLU_SEL_GT },         { "Lt", SLU_SEL_LT },
	{ NULL, SLU_SEL_OTHER },
};
KMSG_PUB(slu_kexpr_msg, "NodeSelectorRequirement", slu_kexpr, [1] = K_STR("key", slu_kexpr, key),
	 [2] = K_WORD("operator", slu_kexpr, op, sel_words),
	 [3] = K_STRS("values", slu_kexpr, values));
KMSG_PUB(slu_kterm_msg, "NodeSelectorTerm",
	 slu_kterm, [1] = K_MSGS("matchExpressions", slu_kterm, exprs, slu_kexpr_msg),
	 [2] = K_MSGS("matchFields", slu_kterm, fields, slu_kexpr_msg));
