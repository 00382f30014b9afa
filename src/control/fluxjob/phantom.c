/* Phantoms: pods that exist only here.
 *
 * A FluxJob that a user wrote has no pods: it takes its nodes for its duration, and the programs that
 * read its status use them.  For its slots there are phantoms, pod objects like those the API server
 * sends, under uids that no server gives out; as long as they wait, one for all slots that are alike.  So groups, the queue, intents, the audit and
 * reports need no special case; only the writes that would go to the cluster about a phantom are carried
 * out here instead. */
#include "control/fluxjob/fluxjob.h"

#include <stdio.h>
#include <time.h>

#include "base/hostlist.h"
#include "control/cluster/cluster.h"
#include "kube/codec.h"
#include "wire/jsonw.h"

#define MARK SLU_PHANTOM_MARK

/* The role of slot i: first come the slots that must start together, role by role, then the
 * optional ones. */
static const struct slu_fluxjob_role *role_of(const struct slu_fluxjob_ask *a, uint32_t i)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t r = 0; r < a->n_role; r++) {
			uint32_t n = pass ? a->role[r].max - a->role[r].min : a->role[r].min;

			if (i < n)
				return &a->role[r];
			i -= n;
		}
	return &a->role[0];
}

/* How many slots from the i-th on are alike. */
static uint32_t alike_from(const struct slu_fluxjob_ask *a, uint32_t i)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t r = 0; r < a->n_role; r++) {
			uint32_t n = pass ? a->role[r].max - a->role[r].min : a->role[r].min;

			if (i < n)
				return n - i;
			i -= n;
		}
	return 1;
}

static void put_stamp(struct slu_jsonw *w, const char *key, int64_t us)
{
	time_t t = (time_t)(us / 1000000);
	struct tm tm;
	char at[32];

	gmtime_r(&t, &tm);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	slu_jsonw_kstr(w, key, at);
}

static void put_number(struct slu_jsonw *w, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, n);
	slu_jsonw_kstr(w, key, text);
}

/* The annotations from which the group reads its wishes.  User and arrival are left out: the webhook is
 * not asked about FluxJobs, so it did not write such an annotation there. */
static void annotations(const struct fluxjob *f, const struct slu_kfluxjob *k, struct slu_jsonw *w)
{
	static const char *const kept[] = { "sluice.sh/begin",      "sluice.sh/after",
					    "sluice.sh/queue",      "sluice.sh/deadline",
					    SLU_CANCELLED,          SLU_ON_HOLD,
					    SLU_SET_PRIORITY,       SLU_SET_LIMIT,
					    "sluice.sh/reservation" };
	const struct slu_fluxjob_ask *a = &f->ask;
	char level[48];

	slu_jsonw_key(w, "annotations");
	slu_jsonw_obj(w);
	for (size_t i = 0; i < SLU_LEN(kept); i++) {
		const char *v = slu_kmeta_annotation(&k->o.meta, kept[i]);

		if (v && !(*a->queue && !strcmp(kept[i], "sluice.sh/queue")))
			slu_jsonw_kstr(w, kept[i], v);
	}
	/* The labels of the FluxJob, for groups that start after it (run/after.c).  They are copied
	 * as annotations, because labels would be selected by the anti-affinity of pods. */
	for (uint16_t i = 0; i < k->o.meta.nlabels; i++)
		if (!slu_key_find(k->o.meta.labels[i].key) &&
		    !slu_kmeta_annotation(&k->o.meta, k->o.meta.labels[i].key))
			slu_jsonw_kstr(w, k->o.meta.labels[i].key, k->o.meta.labels[i].value);
	put_number(w, a->min < a->max ? "sluice.sh/min-size" : "sluice.sh/size", a->min);
	if (a->min < a->max)
		put_number(w, "sluice.sh/max-size", a->max);
	if (a->duration_s)
		put_number(w, "sluice.sh/duration", a->duration_s);
	if (*a->queue)
		slu_jsonw_kstr(w, "sluice.sh/queue", a->queue);
	if (*a->level) {
		snprintf(level, sizeof level, "required:%s", a->level);
		slu_jsonw_kstr(w, "sluice.sh/topology", level);
	}
	if (a->exclusive)
		slu_jsonw_kstr(w, "sluice.sh/exclusive", "true");
	slu_jsonw_end_obj(w);
}

static void metadata(const struct fluxjob *f, const struct slu_kfluxjob *k, struct slu_jsonw *w)
{
	slu_jsonw_key(w, "metadata");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "namespace", k->o.meta.ns);
	put_stamp(w, "creationTimestamp", k->o.meta.created_us);
	annotations(f, k, w);
	slu_jsonw_key(w, "ownerReferences");
	slu_jsonw_arr(w);
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "apiVersion", "jobs.converged-computing.org/v1alpha1");
	slu_jsonw_kstr(w, "kind", "FluxJob");
	slu_jsonw_kstr(w, "name", k->o.meta.name);
	slu_jsonw_kstr(w, "uid", k->o.meta.uid);
	slu_jsonw_key(w, "controller");
	slu_jsonw_bool(w, true);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
}

static void put_affinity(const char *where, struct slu_jsonw *w)
{
	slu_jsonw_key(w, "affinity");
	slu_jsonw_obj(w);
	slu_jsonw_key(w, "nodeAffinity");
	slu_jsonw_obj(w);
	slu_jsonw_key(w, "requiredDuringSchedulingIgnoredDuringExecution");
	slu_jsonw_obj(w);
	slu_jsonw_key(w, "nodeSelectorTerms");
	slu_jsonw_raw(w, where, strlen(where));
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
}

static void spec(const struct slu_core *c, const struct slu_fluxjob_role *role, const char *where,
		 struct slu_jsonw *w)
{
	slu_jsonw_key(w, "spec");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "schedulerName",
		       c->cfg->scheduler_names.n ? c->cfg->scheduler_names.p[0] : "sluice");
	if (where)
		put_affinity(where, w);
	slu_jsonw_key(w, "containers");
	slu_jsonw_arr(w);
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "name", "slot");
	slu_jsonw_key(w, "resources");
	slu_jsonw_obj(w);
	slu_jsonw_key(w, "requests");
	slu_jsonw_obj(w);
	put_number(w, "cpu", role->cores);
	put_number(w, "memory", role->memory);
	put_number(w, "nvidia.com/gpu", role->gpus);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
}

/* The first phantom of a role is decoded from the text that the API server would send. */
static int first_like(struct slu_core *c, struct fluxjob *f, const struct slu_kfluxjob *k,
		      const struct slu_fluxjob_role *role)
{
	struct slu_buf b = SLU_BUF_INIT(8u << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };
	int rc;

	core_phantom_forget(c);
	if (!c->fluxjobs->codec) {
		struct slu_kcodec *codec = slu_kcodec_new(k->o.pool);

		/* All of them: the labels are among them. */
		if (codec && slu_kcodec_keep_annotations(codec, "") < 0) {
			slu_kcodec_free(codec);
			codec = NULL;
		}
		c->fluxjobs->codec = codec;
	}
	if (!c->fluxjobs->codec)
		return -ENOMEM;
	slu_jsonw_obj(&w);
	metadata(f, k, &w);
	spec(c, role, f->ask.where, &w);
	slu_jsonw_end_obj(&w);
	rc = b.error ? b.error
		     : slu_kcodec_object(c->fluxjobs->codec, SLU_KIND_POD, SLU_ENC_JSON, b.p, b.n,
					 &o, &err);
	slu_buf_done(&b);
	if (rc < 0) {
		slu_log(SLU_ERROR, "out of memory: FluxJob has no slots",
			SLU_STR("name", k->o.meta.name), SLU_STR("err", err.text));
		return rc;
	}
	/* No other room has seen it yet. */
	if (role->alone)
		((struct slu_kpod *)(uintptr_t)o)->spec.flags |= SLU_POD_ALONE;
	c->fluxjobs->like = (struct phantom_like){ slu_kpod(o), f, role };
	return 0;
}

void core_phantom_forget(struct slu_core *c)
{
	if (c->fluxjobs->like.pod)
		slu_kobj_unref(&c->fluxjobs->like.pod->o);
	c->fluxjobs->like = (struct phantom_like){ 0 };
}

static int push_shown(struct slu_core *c, const struct slu_kobj *o, bool gone, uint32_t others)
{
	int rc = o ? slu_vec_push(&c->fluxjobs->shown, ((struct core_shown){ o, gone, others }))
		   : -ENOMEM;

	if (rc < 0)
		slu_kobj_unref(o);
	return rc;
}

static void uid_of(const struct slu_kfluxjob *k, uint32_t i, char out[256])
{
	snprintf(out, 256, "%.200s%c%u", k->o.meta.uid, MARK, i);
}

/* Show the phantom of slot `i` as it is now, in all else like `pod`: the core takes it in as it does the objects of
 * the API server. */
static int show_like(struct slu_core *c, const struct fluxjob *f, const struct slu_kfluxjob *k,
		     const struct slu_kpod *pod, uint32_t i, uint32_t others, const char *node,
		     enum slu_kphase phase)
{
	int64_t start_s = !*node ? 0 : f->start_s ? f->start_s : c->now_s;
	char name[300], uid[256];

	snprintf(name, sizeof name, "%.240s-%u", k->o.meta.name, i);
	uid_of(k, i, uid);
	return push_shown(c, slu_kpod_like(pod, name, uid, node, phase, start_s * 1000000), false,
			  others);
}

/* Show a phantom to the rooms for the first time with the present contents of its FluxJob. */
static int show_phantom(struct slu_core *c, struct fluxjob *f, uint32_t i, uint32_t others,
			const char *node)
{
	const struct phantom_like *like = &c->fluxjobs->like;
	const struct slu_fluxjob_role *role = role_of(&f->ask, i);
	int rc = like->f == f && like->role == role ? 0 : first_like(c, f, f->k, role);

	return rc < 0 ? rc
		      : show_like(c, f, f->k, like->pod, i, others, node,
				  *node ? SLU_PHASE_RUNNING : SLU_PHASE_PENDING);
}

/* ... for the last time. */
static void show_gone(struct slu_core *c, const struct pod *p)
{
	push_shown(c, slu_kobj_ref(&p->k->o), true, 0);
}

/* A FluxJob of one line may ask for 10 000 slots, and any user may make many.  So a namespace has at most
 * SPACE_MAX slots and all namespaces together ALL_MAX; but each namespace gets its first SPACE_FREE
 * whatever others do, and one that has none yet gets one FluxJob of any legal size. */
#define SPACE_FREE  1000u
#define SPACE_MAX   20000u
#define ALL_MAX     200000u
#define WHERE_BYTES 64u     /* this much text about nodes counts as one slot */
#define EACH_US     800     /* time that one slot costs its namespace (frame/pace.h) */
#define LATER_US    1000000 /* when a FluxJob that came too fast is tried again */

static const char *k_ns(const struct fluxjob *f)
{
	return f->k->o.meta.ns;
}

/* The cost of a FluxJob, in slots.  The nodes it names count, too: they take memory and time like slots. */
static uint32_t weight_in_slots(const struct fluxjob *f)
{
	return f->ask.max + (f->ask.where ? (uint32_t)strlen(f->ask.where) / WHERE_BYTES : 0);
}

static bool runs(const struct fluxjob *f)
{
	return slu_kstr_is(f->k->state, "Running") && *f->k->places;
}

static uint64_t slots_in(const struct slu_core *c, const char *ns)
{
	const uint64_t *n = slu_map_get(&c->fluxjobs->slots, (uintptr_t)ns);

	return n ? *n : 0;
}

static int count_slots(struct slu_core *c, const char *ns, int64_t by)
{
	uint64_t n = slots_in(c, ns) + (uint64_t)by;

	if (n && slu_map_put(&c->fluxjobs->slots, (uintptr_t)ns, n) < 0)
		return -ENOMEM;
	if (!n)
		slu_map_del(&c->fluxjobs->slots, (uintptr_t)ns);
	c->fluxjobs->n_slots += (uint64_t)by;
	return 0;
}

bool core_phantoms_crowded(struct slu_core *c, const struct fluxjob *f)
{
	uint64_t here = slots_in(c, k_ns(f)), n = weight_in_slots(f);

	if (runs(f)) /* its nodes are taken, whichever object came first after a restart */
		return false;
	if (!f->claim && !core_pace_allows(&c->fluxjobs->pace, k_ns(f), (int64_t)n, c->now_us)) {
		c->fluxjobs->try_us = c->now_us + LATER_US;
		core_due_by(c, CORE_AT_FLUXJOBS, c->fluxjobs->try_us);
		return true;
	}
	if (here + n <= SPACE_FREE)
		return false;
	return (here && here + n > SPACE_MAX) || c->fluxjobs->n_slots + n > ALL_MAX;
}

int core_phantoms_make(struct slu_core *c, struct fluxjob *f)
{
	bool was = runs(f);
	struct slu_hostlist at = { 0 };
	uint32_t before = c->fluxjobs->shown.n;
	int rc = 0;

	/* The FluxJob started under an earlier process: it stays on the nodes in its status. */
	if (was && (slu_hostlist_parse(&at, f->k->places) < 0 || at.h.n < f->ask.min))
		was = false;
	f->start_s = was ? f->k->start_us / 1000000 : 0;
	if (!f->claim)
		core_pace_pay(&c->fluxjobs->pace, k_ns(f), (int64_t)weight_in_slots(f), EACH_US,
			      c->now_us);
	for (uint32_t i = 0, alike; !rc && i < f->ask.max; i += alike) {
		const char *node = was && i < at.h.n && strcmp(at.h.p[i], "-") ? at.h.p[i] : "";

		alike = was ? 1 : alike_from(&f->ask, i);
		rc = show_phantom(c, f, i, alike - 1, node);
	}
	slu_hostlist_done(&at);
	while (rc && c->fluxjobs->shown.n > before) /* all of them or none */
		slu_kobj_unref(c->fluxjobs->shown.p[--c->fluxjobs->shown.n].obj);
	if (f->life != FLUXJOB_LIVES && count_slots(c, k_ns(f), (int64_t)weight_in_slots(f)) == 0)
		f->counted = weight_in_slots(f);
	core_fluxjob_to(c, f, FLUXJOB_LIVES);
	core_fluxjob_turn_by(c, f, c->now_us);
	return rc;
}

void core_phantoms_end(struct slu_core *c, struct fluxjob *f, const struct slu_kfluxjob *k, bool ok)
{
	for (uint32_t i = f->ask.max;
	     f->life == FLUXJOB_LIVES && i-- > 0;) { /* the last first, which is quicker */
		char uid[256];
		struct slu_entry *e;

		uid_of(k, i, uid);
		e = slu_table_finds(&c->cluster->pods, uid);
		if (!e)
			continue;
		if (ok && *pod_of(e)->k->spec.node)
			show_like(c, f, k, pod_of(e)->k, i, 0, pod_of(e)->k->spec.node,
				  SLU_PHASE_SUCCEEDED);
		show_gone(c, pod_of(e));
	}
	if (f->life == FLUXJOB_LIVES)
		core_fluxjob_to(c, f, FLUXJOB_UNREAD);
	(void)count_slots(c, k->o.meta.ns, -(int64_t)f->counted); /* lowering takes no memory */
	if (f->counted) {
		c->fluxjobs->freed = true;
		core_due_by(c, CORE_AT_FLUXJOBS, c->now_us);
	}
	f->counted = 0;
}

/* ---- instead of writes ---- */

static struct fluxjob *fluxjob_of(struct slu_core *c, const struct pod *p)
{
	const struct slu_kowner *o = p ? slu_kmeta_controller(&p->k->o.meta) : NULL;

	return o ? core_fluxjob_of(c, p->k->o.meta.ns, o->name) : NULL;
}

void core_phantoms_place(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->here.n; i++) {
		struct core_here at = c->here.p[i];
		const struct pod *p = pod_of(slu_table_finds(&c->cluster->pods, at.uid));
		struct fluxjob *f = fluxjob_of(c, p);
		uint32_t slot = (uint32_t)strtoul(strchr(at.uid, MARK) + 1, NULL, 10);

		if (f) {
			f->look_us = 0;
			core_fluxjob_turn_by(c, f, c->now_us);
		}
		if (f && f->k && *at.node)
			show_like(c, f, f->k, p->k, slot, 0, at.node, SLU_PHASE_RUNNING);
		else if (f && f->k)
			show_gone(c, p);
		slu_free(at.uid);
		slu_free(at.node);
	}
	c->here.n = 0;
}
