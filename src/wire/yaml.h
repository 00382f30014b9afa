/* yaml.h — reading YAML into the tree of json.h (JSON is YAML, so it is read too).
 *
 * Plain scalars are resolved as Kubernetes does (YAML 1.1): null ~, true yes on ..., 12 0x1f 0o17,
 * 1.5e3 .inf; everything else and everything quoted is a string.  slu_json_is_plain() tells the two
 * apart; slu_json_line() and slu_json_col() tell where a value stood.  Keys are always strings, as
 * written.  Anchors and aliases are expanded; tags are ignored but for !!str. */
#pragma once
#include "wire/json.h"

enum slu_yaml_flags {
	SLU_YAML_TEXT = 1,    /* resolve no scalars: each is a string, exactly as written */
	SLU_YAML_STREAM = 2,  /* read all documents, as an array; otherwise only the first */
	SLU_YAML_LIBYAML = 4, /* do not try the quick reader first (for comparing the two) */
};

/* 0 in a field means its default. */
struct slu_yaml_limits {
	size_t max_bytes;    /* default 16 MiB */
	uint32_t max_depth;  /* default 128 */
	uint32_t max_values; /* after expanding aliases; default 4 million */
};

/* 0; -EINVAL (not YAML, a key that is no scalar, an unknown alias), -EMSGSIZE (a limit), -ENOMEM.
 * An empty text is the value null.  err reads "line 3, column 14: <cause>". */
int slu_yaml_parse(const char *text, size_t n, unsigned flags, const struct slu_yaml_limits *lim,
		   struct slu_json_doc **out, struct slu_error *err);
