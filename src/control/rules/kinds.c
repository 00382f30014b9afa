#include "control/rules/kinds.h"

#include <ctype.h>
#include <strings.h>

#include "base/buf.h"

/* Offsets in the struct a kind is decoded into. */
#define TMPL(type)     .tmpl = offsetof(struct type, tmpl)
#define REPLICAS(type) TMPL(type), .size = "replicas", .wants = offsetof(struct type, replicas)

const struct slu_kind slu_kinds[] = {
	{ SLU_KIND_NODE },
	{ SLU_KIND_POD, .word = "pod" },
	{ SLU_KIND_JOB, .word = "job", .size = "parallelism", TMPL(slu_kjob), .suspends = true,
	  .flux = 1 },
	{ SLU_KIND_REPLICASET, .word = "replicaset", REPLICAS(slu_kreplicaset), .flux = 3 },
	{ SLU_KIND_STATEFULSET, .word = "statefulset", REPLICAS(slu_kstatefulset), .flux = 4 },
	{ SLU_KIND_DEPLOYMENT, .word = "deployment", REPLICAS(slu_kdeployment), .flux = 2 },
	{ SLU_KIND_PVC },
	{ SLU_KIND_PV },
	{ SLU_KIND_PODGROUP_X, .optional = true, .awaited = true },
	{ SLU_KIND_PODGROUP_SIGS, .optional = true },
	{ SLU_KIND_PODGROUP, .optional = true },
	{ SLU_KIND_PODGROUP_BETA, .optional = true },
	{ SLU_KIND_NAMESPACE },
	{ SLU_KIND_PRIORITYCLASS },
	{ SLU_KIND_STORAGECLASS },
	{ SLU_KIND_FLUXJOB, .optional = true, .awaited = true },
	{ SLU_KIND_LIMITRANGE },
	{ SLU_KIND_RUNTIMECLASS },
	{ SLU_KIND_RESERVATION, .optional = true },
	{ SLU_KIND_CSINODE, .optional = true },
	{ SLU_KIND_ATTACHMENT, .optional = true },
	{ SLU_KIND_TOPOLOGY, .optional = true },
};
const size_t slu_kinds_n = SLU_LEN(slu_kinds);

const struct slu_kind *slu_kind(enum slu_kkind k)
{
	for (size_t i = 0; i < slu_kinds_n; i++)
		if (slu_kinds[i].kind == k)
			return &slu_kinds[i];
	return NULL;
}

const struct slu_kind *slu_kind_named(const char *name)
{
	for (size_t i = 0; name && i < slu_kinds_n; i++)
		if (slu_kinds[i].word && !strcmp(slu_kkind_info(slu_kinds[i].kind)->kind, name))
			return &slu_kinds[i];
	return NULL;
}

static bool is_awaited(const struct slu_kind *row)
{
	return row->word || row->awaited;
}

enum slu_kkind slu_kind_awaited(const char *word, size_t n)
{
	for (size_t i = 0; i < slu_kinds_n; i++) {
		const char *kind = slu_kkind_info(slu_kinds[i].kind)->kind;

		if (is_awaited(&slu_kinds[i]) && strlen(kind) == n && !strncasecmp(kind, word, n))
			return slu_kinds[i].kind;
	}
	return SLU_KIND_NONE;
}

void slu_kinds_awaited_text(struct slu_buf *out)
{
	const char *between = "";

	for (size_t i = 0; i < slu_kinds_n; i++) {
		if (!is_awaited(&slu_kinds[i]))
			continue;
		slu_buf_puts(out, between);
		for (const char *c = slu_kkind_info(slu_kinds[i].kind)->kind; *c; c++)
			slu_buf_putc(out, (char)tolower((unsigned char)*c));
		slu_buf_putc(out, '/');
		between = ", ";
	}
}

const struct slu_ktemplate *slu_kind_template(const struct slu_kobj *o)
{
	const struct slu_kind *row = slu_kind((enum slu_kkind)o->kind);

	return row && row->tmpl ? (const void *)((const char *)o + row->tmpl) : NULL;
}

bool slu_kind_makes(enum slu_kkind k)
{
	const struct slu_kind *row = slu_kind(k);

	return row && row->size;
}

bool slu_kind_serves(enum slu_kkind k)
{
	const struct slu_kind *row = slu_kind(k);

	return row && row->wants;
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
