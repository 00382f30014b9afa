/* The quick reader for plain YAML against libyaml: what it accepts must be the very same tree. */
#include <math.h>

#include "fuzz.h"
#include "wire/yaml.h"

static void compare(const struct slu_json_doc *da, const struct slu_json *a,
		    const struct slu_json_doc *db, const struct slu_json *b)
{
	struct slu_json_it x, y;
	double fa, fb;

	must(slu_json_kind(a) == slu_json_kind(b));
	must(slu_json_is_plain(a) == slu_json_is_plain(b));
	must(slu_json_count(a) == slu_json_count(b));
	/* Where nothing is written the two differ in where they see it. */
	if (!(slu_json_is_plain(a) && (slu_json_is_null(a) || !slu_json_count(a)))) {
		must(slu_json_line(da, a) == slu_json_line(db, b));
		must(slu_json_col(da, a) == slu_json_col(db, b));
	}
	switch (slu_json_kind(a)) {
	case SLU_JSON_STR:
		must(!memcmp(slu_json_str(a), slu_json_str(b), slu_json_count(a) + 1));
		break;
	case SLU_JSON_BOOL:
		must(slu_json_bool_or(a, false) == slu_json_bool_or(b, true));
		break;
	case SLU_JSON_INT:
	case SLU_JSON_REAL:
		must(!slu_json_f64(a, &fa) && !slu_json_f64(b, &fb));
		must(fa == fb || (isnan(fa) && isnan(fb)));
		break;
	default:
		break;
	}
	x = slu_json_first(a);
	y = slu_json_first(b);
	while (x.val) {
		must(y.val);
		if (x.key) {
			must(!strcmp(x.key, y.key));
			compare(da, x.keyval, db, y.keyval);
		}
		compare(da, x.val, db, y.val);
		slu_json_next(&x);
		slu_json_next(&y);
	}
	must(!y.val);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned flags[] = { 0, SLU_YAML_TEXT, SLU_YAML_STREAM };
	static const struct slu_yaml_limits lim = { .max_bytes = 1 << 16, .max_values = 1 << 16 };

	for (size_t i = 0; i < SLU_LEN(flags); i++) {
		struct slu_json_doc *a = NULL, *b = NULL;
		struct slu_error err = { 0 };
		const char *text = (const char *)data;
		int rc = slu_yaml_parse(text, size, flags[i], &lim, &a, &err);
		int rb = slu_yaml_parse(text, size, flags[i] | SLU_YAML_LIBYAML, &lim, &b, NULL);

		must(rc == rb);
		must(rc == 0 ? a != NULL : !a && err.text[0]);
		if (!rc)
			compare(a, slu_json_root(a), b, slu_json_root(b));
		slu_json_free(a);
		slu_json_free(b);
	}
	return 0;
}
