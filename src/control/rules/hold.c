#include "control/rules/hold.h"

#include "base/vec.h"
#include "control/rules/kinds.h"

#define HOSTNAME "kubernetes.io/hostname"

/* ---- namespaces ---- */

static bool is_among(const struct slu_config_strs *list, const char *name)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (!strcmp(list->p[i], name))
			return true;
	return false;
}

/* "key" or "key=value". */
static bool selects(const char *selector, const struct slu_kmeta *m)
{
	const char *eq = strchr(selector, '='), *v;
	char key[320];
	size_t n = eq ? (size_t)(eq - selector) : strlen(selector);

	if (!n || n >= sizeof key)
		return false;
	memcpy(key, selector, n);
	key[n] = 0;
	v = slu_kmeta_label(m, key);
	return v && (!eq || !strcmp(v, eq + 1));
}

static enum slu_held_mode mode_named(const char *name)
{
	static const char *const known[] = { [SLU_HELD_OWN] = "own",
					     [SLU_HELD_BIND] = "bind",
					     [SLU_HELD_COMPATIBLE] = "compatible" };

	for (size_t i = SLU_HELD_OWN; i < SLU_LEN(known); i++)
		if (!strcmp(name, known[i]))
			return (enum slu_held_mode)i;
	return SLU_HELD_OFF;
}

enum slu_held_mode slu_held_space(const struct slu_config *cfg, const struct slu_kmeta *ns)
{
	const char *said = slu_kmeta_label(ns, SLU_HELD_SPACE);
	enum slu_held_mode usual = mode_named(cfg->held.mode);

	if (!cfg->held.enabled)
		return SLU_HELD_OFF;
	/* Namespaces of the system and of Sluice: holding their work would stop the programs that
	 * release work. */
	if (is_among(&cfg->held.never, ns->name) || !strncmp(ns->name, "kube-", 5) ||
	    !strcmp(ns->name, cfg->webhook.ns) || !strcmp(ns->name, cfg->leader.ns))
		return SLU_HELD_OFF;
	if (said && !strcmp(said, "true"))
		return usual;
	if (said) /* "false", or something that cannot be meant, is none */
		return mode_named(said);
	return *cfg->held.selector && selects(cfg->held.selector, ns) ? usual : SLU_HELD_OFF;
}

/* ---- objects ---- */

bool slu_held_gated(const struct slu_kpodspec *s)
{
	for (uint16_t i = 0; i < s->ngates; i++)
		if (!strcmp(s->gates[i], SLU_HELD_GATE))
			return true;
	return false;
}

bool slu_held_free(const struct slu_kpodspec *s)
{
	for (uint16_t i = 0; i < s->ngates; i++)
		if (strcmp(s->gates[i], SLU_HELD_GATE))
			return false;
	return true;
}

bool slu_held_kept(const struct slu_config *cfg, const struct slu_kpodspec *s)
{
	return slu_held_gated(s) || is_among(&cfg->scheduler_names, s->scheduler);
}

bool slu_held_marked(const struct slu_config *cfg, const struct slu_kobj *o,
		     const struct slu_kpodspec *s)
{
	return slu_held_gated(s) ||
	       (slu_kmeta_annotation(&o->meta, SLU_HELD_MARK) && slu_held_kept(cfg, s));
}

static bool one_value(const struct slu_kexpr *e, const char *key)
{
	return e->op == SLU_SEL_IN && e->nvalues == 1 && !strcmp(e->key, key);
}

/* Every term names one host: the pod can go nowhere else. */
static bool is_pinned(const struct slu_kpodspec *s)
{
	for (uint16_t i = 0; i < s->nrequired; i++) {
		const struct slu_kterm *t = &s->required[i];
		bool named = false;

		for (uint16_t k = 0; k < t->nexprs; k++)
			named |= one_value(&t->exprs[k], HOSTNAME);
		for (uint16_t k = 0; k < t->nfields; k++)
			named |= one_value(&t->fields[k], "metadata.name");
		if (!named)
			return false;
	}
	return s->nrequired > 0;
}

const char *slu_held_node(const struct slu_kpod *p)
{
	const char *node = slu_kmeta_annotation(&p->o.meta, SLU_HELD_NODE);

	return node && *node && !slu_held_gated(&p->spec) && is_pinned(&p->spec) ? node : NULL;
}

static bool has_ended(const struct slu_kjob *j)
{
	return j->complete == SLU_TRI_TRUE || j->failed_cond == SLU_TRI_TRUE;
}

/* Held by us, and its turn has not come. */
static bool is_ours(const struct slu_config *cfg, const struct slu_kjob *j)
{
	const char *mark = slu_kmeta_annotation(&j->o.meta, SLU_HELD_MARK);

	return mark && !strcmp(mark, "yes") && slu_held_kept(cfg, &j->tmpl.spec) && !has_ended(j) &&
	       !j->o.meta.deleted_us;
}

bool slu_held_waits(const struct slu_config *cfg, const struct slu_kjob *j)
{
	return j->suspend && is_ours(cfg, j) && !slu_kmeta_annotation(&j->o.meta, SLU_HELD_AHEAD);
}

bool slu_held_ahead(const struct slu_config *cfg, const struct slu_kjob *j)
{
	return !j->suspend && is_ours(cfg, j) && slu_kmeta_annotation(&j->o.meta, SLU_HELD_AHEAD);
}

const struct slu_ktemplate *slu_held_template(const struct slu_kobj *o)
{
	return slu_kind_template(o);
}
