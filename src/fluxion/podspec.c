/* podspec.c — make the jobspec that Fluence and Fluxnetes make from a pod and a number of pods. */
#include "fluxion/service.h"
#include "wire/jsonw.h"

static void put_count(struct slu_jsonw *w, const char *type, int64_t n)
{
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", type);
	slu_jsonw_key(w, "count");
	slu_jsonw_i64(w, n);
}

static void put_slot(struct slu_jsonw *w, const struct slu_flux_podspec *ps, int32_t count)
{
	int64_t mb = ps->memory >> 20;

	put_count(w, "slot", count);
	slu_jsonw_kstr(w, "label", "default");
	slu_jsonw_key(w, "with");
	slu_jsonw_arr(w);
	put_count(w, "core", ps->cpu);
	slu_jsonw_end_obj(w);
	if (mb > 0) {
		put_count(w, "memory", mb);
		slu_jsonw_end_obj(w);
	}
	if (ps->gpu > 0) {
		put_count(w, "gpu", ps->gpu);
		slu_jsonw_end_obj(w);
	}
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
}

/* Open a level of the jobspec around the resources that follow. */
static void put_level(struct slu_jsonw *w, const char *type)
{
	put_count(w, type, 1);
	slu_jsonw_key(w, "with");
	slu_jsonw_arr(w);
}

static bool wants_zone(const struct slu_flux_podspec *ps)
{
	for (uint32_t i = 0; i < ps->labels.n; i++)
		if (ps->labels.p[i].n == 4 && !memcmp(ps->labels.p[i].p, "zone", 4))
			return true;
	return false;
}

static void put_tasks(struct slu_jsonw *w, const struct slu_flux_podspec *ps)
{
	const struct slu_text *name = ps->id.n ? &ps->id : &ps->container;

	slu_jsonw_key(w, "tasks");
	slu_jsonw_arr(w);
	slu_jsonw_obj(w);
	slu_jsonw_key(w, "command");
	slu_jsonw_arr(w);
	slu_jsonw_strn(w, name->p ? name->p : "", name->n);
	slu_jsonw_end_arr(w);
	slu_jsonw_kstr(w, "slot", "default");
	slu_jsonw_key(w, "count");
	slu_jsonw_obj(w);
	slu_jsonw_key(w, "per_slot");
	slu_jsonw_i64(w, 1);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_arr(w);
}

int slu_flux_jobspec(const struct slu_flux_podspec *ps, int32_t count, struct slu_buf *out,
		     struct slu_error *err)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);
	int levels = wants_zone(ps) ? 2 : 0;

	if (ps->cpu < 1)
		return slu_fail(err, -EINVAL, "PodSpec.cpu is %d; a pod needs at least 1", ps->cpu);
	if (count < 1)
		return slu_fail(err, -EINVAL, "MatchRequest.count is %d; it must be at least 1",
				count);
	if (ps->memory < 0 || ps->gpu < 0)
		return slu_fail(err, -EINVAL, "PodSpec.%s is below 0",
				ps->memory < 0 ? "memory" : "gpu");
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "version");
	slu_jsonw_i64(&w, 9999);
	slu_jsonw_key(&w, "resources");
	slu_jsonw_arr(&w);
	if (levels) {
		put_level(&w, "subnet");
		put_level(&w, "node");
	}
	put_slot(&w, ps, count);
	for (; levels; levels--) {
		slu_jsonw_end_arr(&w);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_arr(&w);
	slu_jsonw_key(&w, "attributes");
	slu_jsonw_raw(&w, "{\"system\":{\"duration\":3600}}", 28);
	put_tasks(&w, ps);
	slu_jsonw_end_obj(&w);
	return out->error;
}
