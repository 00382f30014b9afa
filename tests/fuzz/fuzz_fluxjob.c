/* FluxJobs: a jobspec of a user, alone and inside an object, becomes a request or one sentence. */
#include "control/rules/fluxjob.h"
#include "fuzz.h"
#include "kube/codec.h"

static void read(const struct slu_kfluxjob *f, const struct slu_config *cfg)
{
	struct slu_fluxjob_ask a;
	struct slu_error err = { 0 };
	uint32_t min = 0, max = 0;
	int rc = slu_fluxjob_read(f, cfg, &a, &err);

	slu_fluxjob_done(&a);
	if (rc < 0) {
		must(*err.text);
		return;
	}
	must(a.n_role && a.n_role <= SLU_FLUXJOB_ROLES);
	for (uint32_t i = 0; i < a.n_role; i++) {
		const struct slu_fluxjob_role *r = &a.role[i];

		must(r->min && r->max >= r->min);
		must(r->cores >= 0 && r->memory >= 0 && r->gpus >= 0);
		min += r->min;
		max += r->max;
	}
	must(min == a.min && max == a.max && min <= SLU_FLUXJOB_SLOTS && a.duration_s >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	slu_cleanup(slu_strpool_freep) struct slu_strpool *pool = slu_strpool_new();
	slu_cleanup(slu_kcodec_freep) struct slu_kcodec *codec = slu_kcodec_new(pool);
	slu_cleanup(slu_config_freep) struct slu_config *cfg = NULL;
	struct slu_kfluxjob f = { .jobspec = "", .o.problem = "" };
	const struct slu_kobj *o = NULL;
	char *text = malloc(n + 1);

	must(text && slu_config_parse("fuzz", "", 0, &cfg, NULL) == 0);
	memcpy(text, data, n);
	text[n] = 0;
	f.jobspec = text;
	read(&f, cfg);
	if (slu_kcodec_object(codec, SLU_KIND_FLUXJOB, SLU_ENC_JSON, data, n, &o, NULL) == 0) {
		read(slu_kfluxjob(o), cfg);
		slu_kobj_unref(o);
	}
	free(text);
	return 0;
}
