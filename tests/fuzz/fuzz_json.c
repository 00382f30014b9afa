/* Whatever parses is written and parsed again to the same text. */
#include "fuzz.h"
#include "wire/json.h"
#include "wire/jsonw.h"

static void write_again(const struct slu_json_doc *doc, struct slu_buf *out,
			enum slu_jsonw_style style)
{
	struct slu_jsonw w = slu_jsonw(out, style);

	slu_jsonw_value(&w, slu_json_root(doc));
	must(!out->error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_json_doc *doc = NULL, *again = NULL;
	struct slu_buf a = SLU_BUF_INIT((size_t)1 << 26), b = SLU_BUF_INIT((size_t)1 << 26);
	struct slu_error err = { 0 };
	int rc = slu_json_parse((const char *)data, size, NULL, &doc, &err);

	must(rc == 0 ? doc != NULL : !doc && err.text[0]);
	if (!rc) {
		for (int style = SLU_JSONW_COMPACT; style <= SLU_JSONW_INDENT; style++) {
			slu_buf_reset(&a);
			slu_buf_reset(&b);
			write_again(doc, &a, (enum slu_jsonw_style)style);
			must(slu_json_parse(a.p, a.n, NULL, &again, &err) == 0);
			write_again(again, &b, (enum slu_jsonw_style)style);
			must(a.n == b.n && !memcmp(a.p, b.p, a.n));
			slu_json_free(again);
			again = NULL;
		}
	}
	slu_json_free(doc);
	slu_buf_done(&a);
	slu_buf_done(&b);
	return 0;
}
