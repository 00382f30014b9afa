#include "control/rules/kinds.h"

const struct slu_kind slu_kinds[SLU_KINDS_WATCHED] = {
	{ SLU_KIND_NODE },
	{ SLU_KIND_POD, .word = "pod" },
	{ SLU_KIND_JOB, .word = "job", .size = "parallelism", .suspends = true },
	{ SLU_KIND_REPLICASET, .word = "replicaset", .size = "replicas" },
	{ SLU_KIND_STATEFULSET, .word = "statefulset", .size = "replicas" },
	{ SLU_KIND_DEPLOYMENT, .word = "deployment", .size = "replicas" },
	{ SLU_KIND_PVC },
	{ SLU_KIND_PV },
	{ SLU_KIND_PODGROUP_X, .optional = true },
	{ SLU_KIND_PODGROUP_SIGS, .optional = true },
	{ SLU_KIND_PODGROUP, .optional = true },
	{ SLU_KIND_NAMESPACE },
	{ SLU_KIND_PRIORITYCLASS },
	{ SLU_KIND_STORAGECLASS },
	{ SLU_KIND_FLUXJOB, .optional = true },
	{ SLU_KIND_LIMITRANGE },
	{ SLU_KIND_RUNTIMECLASS },
};

const struct slu_kind *slu_kind(enum slu_kkind k)
{
	for (size_t i = 0; i < SLU_KINDS_WATCHED; i++)
		if (slu_kinds[i].kind == k)
			return &slu_kinds[i];
	return NULL;
}

const struct slu_kind *slu_kind_named(const char *name)
{
	for (size_t i = 0; name && i < SLU_KINDS_WATCHED; i++)
		if (slu_kinds[i].word && !strcmp(slu_kkind_info(slu_kinds[i].kind)->kind, name))
			return &slu_kinds[i];
	return NULL;
}

bool slu_kind_makes(enum slu_kkind k)
{
	const struct slu_kind *row = slu_kind(k);

	return row && row->size;
}

bool slu_kind_owns(const struct slu_kowner *o)
{
	const struct slu_kind *row = o ? slu_kind_named(o->kind) : NULL;
	const char *group;
	size_t n;

	if (!row || !row->size)
		return false;
	group = slu_kkind_info(row->kind)->group;
	n = strcspn(o->api_version,
		    "/"); /* "batch/v1"; the core group has no name and no such kind */
	return !o->api_version[n] || (n == strlen(group) && !strncmp(o->api_version, group, n));
}
