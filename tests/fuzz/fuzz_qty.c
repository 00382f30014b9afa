/* Quantities: what parses prints as a text that parses to the same value; what overflows is capped.
 */
#include "base/qty.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int scale = SLU_QTY_UNIT; scale <= SLU_QTY_MILLI; scale++) {
		int64_t v = 7, again;
		char text[SLU_QTY_TEXT];
		int rc = slu_qty_parse((const char *)data, size, (enum slu_qty_scale)scale, &v,
				       NULL);

		must(rc == 0 || rc == -EINVAL || rc == -EOVERFLOW);
		must(rc != -EINVAL || v == 7);
		must(rc != -EOVERFLOW || v == INT64_MAX || v == INT64_MIN);
		if (rc)
			continue;
		for (int form = SLU_QTY_DECIMAL; form <= SLU_QTY_BINARY; form++) {
			size_t n = slu_qty_format(v, (enum slu_qty_scale)scale,
						  (enum slu_qty_format)form, text);

			must(n < sizeof text);
			must(slu_qty_parse(text, n, (enum slu_qty_scale)scale, &again, NULL) == 0);
			must(again == v);
		}
	}
	return 0;
}
