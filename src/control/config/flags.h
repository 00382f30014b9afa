/* flags.h — options of the programs Sluice replaces (Fluence's and Fluxnetes' sidecar, Fluence's
 * controller, Fluxqueue's manager), so that their command lines and charts keep working.
 *
 * One table has all of them: each option changes a setting of Sluice, or is listed as one without effect. */
#pragma once
#include "control/config/config.h"

struct slu_flag {
	const char *name; /* without dashes */
	const char *word; /* of its value, for the help; NULL: it needs none */
	bool optional;    /* the value may be left out */
	const char *sets; /* setting of sluiced.yaml; NULL: ignored */
	const char *help; /* why it is ignored, or a remark; "" */
};

extern const struct slu_flag slu_flags[];
extern const uint32_t slu_n_flags;

/* Put the value of slu_flags[i] into the configuration (NULL: none was given).  The value must
 * outlive it.  0, or -EINVAL with the option named. */
int slu_flag_apply(uint32_t i, const char *value, struct slu_config *c, struct slu_error *err);
/* The same for the variables of those programs that are set in the environment. */
void slu_flag_environment(struct slu_config *c);
