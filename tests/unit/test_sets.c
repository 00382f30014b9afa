/* Id sets and host lists: the rules of RFC 22 and RFC 29. */
#include <string.h>

#include "base/hostlist.h"
#include "base/idset.h"
#include "base/rng.h"
#include "tap.h"

static const struct {
	const char *in;
	int rc;
	const char *out;
} id_row[] = {
	{ "0-3,7", 0, "0-3,7" },
	{ "[0-3,7]", 0, "0-3,7" },
	{ "", 0, "" },
	{ "[]", 0, "" },
	{ "1,", 0, "1" },
	{ ",,1,,2", 0, "1-2" },
	{ "0,1,2,9", 0, "0-2,9" },
	{ "0-0", -EINVAL, "" },
	{ "3-1", -EINVAL, "" },
	{ "01", -EINVAL, "" },
	{ "1,1", -EINVAL, "" },
	{ "5,3", -EINVAL, "" },
	{ "0-5,5", -EINVAL, "" },
	{ "1 ,2", -EINVAL, "" },
	{ "a", -EINVAL, "" },
	{ "-1", -EINVAL, "" },
	{ "1-", -EINVAL, "" },
	{ "[1", -EINVAL, "" },
	{ "1]", -EINVAL, "" },
	{ "2147483647", 0, "2147483647" },
	{ "2147483648", -EOVERFLOW, "" },
	{ "0-2000000000", -EOVERFLOW, "" },
	{ "99999999999999999999", -EOVERFLOW, "" },
};

static const struct {
	const char *in;
	int rc;
	const char *all, *out;
} host_row[] = {
	{ "a", 0, "a", "a" },
	{ "foo[1-3,07],bar", 0, "foo1 foo2 foo3 foo07 bar", "foo[1-3,07],bar" },
	{ "a1,a2", 0, "a1 a2", "a[1-2]" },
	{ "a[1-1]", 0, "a1", "a1" },
	{ "a[3,1,1]", 0, "a3 a1 a1", "a[3,1,1]" },
	{ "a[007-008],b,12,a[9-10,010]", 0, "a007 a008 b 12 a9 a10 a010",
	  "a[007-008],b,12,a[9-10,010]" },
	{ "n[098-101]", 0, "n098 n099 n100 n101", "n[098-101]" },
	{ "m[8-11,98-101]-x", 0, "m8-x m9-x m10-x m11-x m98-x m99-x m100-x m101-x",
	  "m8-x,m9-x,m10-x,m11-x,m98-x,m99-x,m100-x,m101-x" },
	{ "x[1-2]-ib y", 0, "x1-ib x2-ib y", "x1-ib,x2-ib,y" },
	{ "a[1-2]b[3-4]", 0, "a1b[3-4] a2b[3-4]", "a1b[3-4],a2b[3-4]" },
	{ "12,13", 0, "12 13", "[12-13]" },
	{ "", 0, "", "" },
	{ " , ", 0, "", "" },
	{ "a[1-]", 0, "a1", "a1" },
	{ "a[ 1, +2]", 0, "a01 a002", "a[01,002]" },
	{ "a[1]]", 0, "a1]", "a1]" },
	{ "a[99999999999999999999]", 0, "a18446744073709551615", "a18446744073709551615" },
	{ "a[-1]", -EINVAL, "", "" },
	{ "a[1--2]", -EINVAL, "", "" },
	{ "a[1-2-3]", -EINVAL, "", "" },
	{ "a[1,]", -EINVAL, "", "" },
	{ "a[3-1]", -EINVAL, "", "" },
	{ "a[x]", -EINVAL, "", "" },
	{ "a[1", -EINVAL, "", "" },
	{ "a1]", -EINVAL, "", "" },
	{ "a[]", -EINVAL, "", "" },
	{ "a[0-99999999]", -EOVERFLOW, "", "" },
};

/* As many names as the list may hold, and as many bytes. */
static void test_ceilings(struct slu_buf *b)
{
	struct slu_hostlist l = { 0 };

	ok(slu_hostlist_parse(&l, "node[0-1048575]") == 0 && l.h.n == SLU_HOSTLIST_MAX &&
		   !strcmp(l.h.p[1048575], "node1048575"),
	   "a list of 2^20 names");
	ok(slu_hostlist_parse(&l, "x") == -EOVERFLOW && l.h.n == SLU_HOSTLIST_MAX,
	   "a list takes no more than 2^20 names");
	slu_hostlist_done(&l);
	l = (struct slu_hostlist){ 0 };
	slu_buf_reset(b);
	for (int i = 0; i < 1016; i++)
		slu_buf_putc(b, 'x');
	slu_buf_puts(b, "[0000000-0040000]");
	ok(slu_hostlist_parse(&l, slu_buf_str(b)) == -EOVERFLOW && l.h.n == 32768,
	   "names of 1 KiB: 32 MiB of them");
	slu_hostlist_done(&l);
}

static void test_add(void)
{
	bool in[300] = { 0 };
	struct slu_idset s = { 0 };
	struct slu_rng rng = { 7 };
	bool good = true;
	uint64_t n = 0;

	for (int step = 0; step < 600; step++) {
		uint32_t id = (uint32_t)slu_rng_below(&rng, 300);

		good &= slu_idset_add(&s, id) == 0;
		n += !in[id];
		in[id] = true;
		good &= slu_idset_count(&s) == n;
	}
	for (uint32_t i = 0; i < 300; i++)
		good &= slu_idset_has(&s, i) == in[i];
	for (uint32_t i = 1; i < s.r.n; i++)
		good &= s.r.p[i].lo > s.r.p[i - 1].hi + 1;
	slu_idset_each (&s, id)
		n -= in[id];
	ok(good && n == 0, "600 random additions against an array of flags");
	slu_idset_done(&s);
}

int main(void)
{
	struct slu_buf b = SLU_BUF_INIT(4096);

	for (size_t i = 0; i < SLU_LEN(id_row); i++) {
		struct slu_idset s = { 0 };
		int rc = slu_idset_parse(&s, id_row[i].in);

		slu_buf_reset(&b);
		slu_idset_put(&s, &b);
		ok(rc == id_row[i].rc && !strcmp(slu_buf_str(&b), id_row[i].out),
		   "idset \"%s\": %d \"%s\"", id_row[i].in, rc, slu_buf_str(&b));
		slu_idset_done(&s);
	}
	for (size_t i = 0; i < SLU_LEN(host_row); i++) {
		struct slu_hostlist l = { 0 };
		int rc = slu_hostlist_parse(&l, host_row[i].in);
		bool good = rc == host_row[i].rc;

		if (!rc) {
			slu_buf_reset(&b);
			for (uint32_t k = 0; k < l.h.n; k++)
				slu_buf_printf(&b, "%s%s", k ? " " : "", l.h.p[k]);
			good &= !strcmp(slu_buf_str(&b), host_row[i].all);
			slu_buf_reset(&b);
			slu_hostlist_put(&l, &b);
			good &= !strcmp(slu_buf_str(&b), host_row[i].out);
		}
		ok(good, "hostlist \"%s\": %d \"%s\"", host_row[i].in, rc, slu_buf_str(&b));
		slu_hostlist_done(&l);
	}
	test_add();
	test_ceilings(&b);
	slu_buf_done(&b);
	return tap_done();
}
