/* rows_internal.h — the table of settings; for the files of this room only.
 *
 * Reading, printing, the schema and "what needs a restart" all walk the same rows. */
#pragma once
#include "control/config/config.h"

#define SLU_CONFIG_FILE_MAX (1 << 20)

enum type { STR, BOOL, U32, I32, REAL, SECONDS, CHOICE, STRS, LIST, SECTION };

struct row {
	const char *key;
	enum type type;
	size_t off;
	const char *def; /* as written in YAML; NULL: none */
	int64_t min, max;
	const char *const *choice;
	const struct row *sub; /* LIST, SECTION */
	size_t size;           /* LIST: of an element */
	size_t n_off;          /* LIST: where the count goes */
	bool restart;
	/* STR: as it is shown, where the value may hold a secret */
	void (*shown)(const char *value, char *out, size_t size);
	const char *help;
};

extern const struct row slu_config_rows[]; /* of struct slu_config; ends with a NULL key */
