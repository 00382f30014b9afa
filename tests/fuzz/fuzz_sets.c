/* Id sets and host lists: what is printed reads back as the same. */
#include "base/hostlist.h"
#include "base/idset.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct slu_buf b = SLU_BUF_INIT((size_t)1 << 28);
	struct slu_idset s = { 0 }, t = { 0 };
	struct slu_hostlist l = { 0 }, m = { 0 };

	must(text);
	if (slu_idset_parse(&s, text) == 0) {
		slu_idset_put(&s, &b);
		must(slu_idset_parse(&t, slu_buf_str(&b)) == 0 && t.r.n == s.r.n);
		for (uint32_t i = 0; i < s.r.n; i++)
			must(s.r.p[i].lo == t.r.p[i].lo && s.r.p[i].hi == t.r.p[i].hi);
	}
	slu_buf_reset(&b);
	if (!fuzz_number(data, size, 6, 18) && slu_hostlist_parse(&l, text) == 0 && l.h.n < 5000) {
		bool plain = true;

		must(slu_hostlist_put(&l, &b) == 0);
		for (uint32_t i = 0; i < l.h.n; i++)
			plain &= !strpbrk(l.h.p[i], "[], \t\n");
		if (plain) {
			must(slu_hostlist_parse(&m, slu_buf_str(&b)) == 0 && m.h.n == l.h.n);
			for (uint32_t i = 0; i < l.h.n; i++)
				must(!strcmp(l.h.p[i], m.h.p[i]));
		}
	}
	slu_idset_done(&s);
	slu_idset_done(&t);
	slu_hostlist_done(&l);
	slu_hostlist_done(&m);
	slu_buf_done(&b);
	free(text);
	return 0;
}
