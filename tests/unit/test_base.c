#include <fcntl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "base/log.h"
#include "tap.h"

static void test_map_against_array(void)
{
	/* A dull array of 512 possible keys is the model. */
	struct slu_map m = { 0 };
	struct slu_rng r = { 42 };
	uint64_t val[512];
	bool has[512] = { 0 }, good = true;

	for (int step = 0; step < 200000; step++) {
		uint64_t k = slu_rng_below(&r, 512), *got;

		switch (slu_rng_below(&r, 3)) {
		case 0:
			val[k] = slu_rng_u64(&r);
			has[k] = true;
			good &= slu_map_put(&m, k, val[k]) == 0;
			break;
		case 1:
			good &= slu_map_del(&m, k) == has[k];
			has[k] = false;
			break;
		default:
			got = slu_map_get(&m, k);
			good &= has[k] ? got && *got == val[k] : !got;
		}
	}
	ok(good, "map agrees with an array over 200000 random steps (seed 42)");
	slu_map_done(&m);
}

static void test_intern(void)
{
	struct slu_intern t = { 0 };
	char name[16];
	bool good = true;

	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "node%u", i);
		good &= slu_intern(&t, name) == i;
	}
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "node%u", i);
		good &= slu_intern_find(&t, name) == i && strcmp(slu_intern_str(&t, i), name) == 0;
	}
	ok(good, "5000 names get dense ids in order of first use");
	ok(slu_intern_find(&t, "nobody") == SLU_INTERN_NONE, "find does not add");
	ok(slu_intern_n(&t, "", 0) == 5000 && slu_intern_len(&t, 5000) == 0,
	   "the empty string is a string");
	slu_intern_done(&t);
}

static void test_buf(void)
{
	struct slu_buf b = SLU_BUF_INIT(10);

	ok(slu_buf_puts(&b, "12345") == 0 && slu_buf_i64(&b, -42) == 0,
	   "appends within the ceiling");
	ok(strcmp(slu_buf_str(&b), "12345-42") == 0, "text is \"%s\"", slu_buf_str(&b));
	ok(slu_buf_puts(&b, "abc") == -EMSGSIZE && b.n == 8, "the ceiling holds, text unchanged");
	ok(slu_buf_putc(&b, 'x') == -EMSGSIZE, "a broken buffer stays broken");
	slu_buf_reset(&b);
	slu_buf_i64(&b, INT64_MIN);
	ok(b.error == -EMSGSIZE, "twenty digits do not fit ten bytes");
	slu_buf_done(&b);
	b = SLU_BUF_INIT(100);
	slu_buf_i64(&b, INT64_MIN);
	ok(strcmp(slu_buf_str(&b), "-9223372036854775808") == 0,
	   "a buffer prints the smallest number");
	slu_buf_shift(&b, 1);
	ok(b.n == 19 && b.p[0] == '9', "shift drops the front");
	slu_buf_done(&b);
}

static int fault_scenario(void)
{
	struct slu_intern t = { 0 };
	struct slu_map m = { 0 };
	SLU_VEC(int) v = { 0 };
	int rc = 0;

	for (int i = 0; i < 100 && !rc; i++) {
		char s[8];

		snprintf(s, sizeof s, "%d", i);
		if (slu_intern(&t, s) == SLU_INTERN_NONE)
			rc = -ENOMEM;
		if (!rc)
			rc = slu_map_put(&m, (uint64_t)i, 1);
		if (!rc)
			rc = slu_vec_push(&v, i);
	}
	slu_intern_done(&t);
	slu_map_done(&m);
	slu_vec_done(&v);
	return rc;
}

static void test_faults(void)
{
	bool good = true;

	for (long k = 0;; k++) {
		int rc;

		slu_fault_arm(k);
		rc = fault_scenario();
		if (!slu_fault_disarm()) {
			ok(good && rc == 0, "clean after %ld failing allocations", k);
			break;
		}
		good &= rc == -ENOMEM;
	}
}

static void test_arena(void)
{
	struct slu_arena a = { 0 };
	bool good = true;

	for (size_t i = 1; i < 3000; i += 7) {
		unsigned char *p = slu_arena_alloc(&a, i);

		good &= p && ((uintptr_t)p & 15) == 0;
		memset(p, 0xab, i);
	}
	ok(good, "allocations are aligned and writable");
	slu_arena_reset(&a);
	ok(slu_arena_zalloc(&a, 100) != NULL, "an arena is usable after a reset");
	ok(!slu_arena_alloc(&a, SIZE_MAX) && !slu_arena_alloc(&a, SIZE_MAX - 15) &&
		   !slu_arena_alloc(&a, SIZE_MAX - 31),
	   "an arena refuses sizes that would wrap round");
	slu_arena_done(&a);
}

static void test_numbers(void)
{
	int64_t v = 5;
	struct slu_error e = { 0 };

	ok(slu_add_i64(INT64_MAX, 1, &v) == -EOVERFLOW && v == 5,
	   "overflow is reported, not wrapped");
	ok(slu_mul_i64(INT64_MAX, 2, &v) == -EOVERFLOW && v == 5,
	   "products that overflow are refused, too");
	slu_fail(&e, -EINVAL, "line %d", 3);
	slu_fail_prefix(&e, -EINVAL, "file %s", "x");
	ok(strcmp(e.text, "file x: line 3") == 0, "errors nest: %s", e.text);
	slu_fail(&e, -EINVAL, "\"%.4s\" is no size", "abc\xc3\xa9");
	ok(strcmp(e.text, "\"abc?\" is no size") == 0, "half a character is not quoted: %s",
	   e.text);
	slu_fail(&e, -EINVAL, "%0*d\xe2\x82\xac", (int)sizeof e.text - 3, 0);
	ok(strlen(e.text) == sizeof e.text - 3, "half a character at the end is cut off");
}

/* The reader of the log has stopped reading: the daemon does not wait for it, and later reports
 * how many lines are missing. */
static void test_log_stalls(void)
{
	char text[4096], last[300];
	ssize_t n, all = 0;
	int p[2];

	if (pipe2(p, O_NONBLOCK) < 0) {
		ok(false, "a pipe can be made");
		return;
	}
	memset(text, 'x', sizeof text);
	while (write(p[1], text, sizeof text) > 0)
		;
	fcntl(p[1], F_SETFL, 0); /* a write blocks, as on the standard error of a daemon */
	slu_log_setup(SLU_INFO, SLU_LOG_TEXT, p[1]);
	alarm(60);
	for (int i = 0; i < 10; i++)
		slu_log(SLU_INFO, "nobody reads this");
	while ((n = read(p[0], text, sizeof text)) > 0)
		all += n;
	slu_log(SLU_INFO, "somebody reads this");
	n = read(p[0], last, sizeof last - 1);
	last[n > 0 ? n : 0] = 0;
	alarm(0);
	ok(all > 0 && strstr(last, "log lines lost lines=10") &&
		   strstr(last, "somebody reads this"),
	   "a log that is not read does not stop the daemon: %s", last);
	slu_log_setup(SLU_INFO, SLU_LOG_TEXT, 2);
	close(p[0]);
	close(p[1]);
}

static void test_keyed_hash(void)
{
	uint64_t a = slu_hash_keyed("name", 4);

	slu_hash_secret(1, 2);
	ok(slu_hash_keyed("name", 4) != a, "another key, another hash");
	slu_hash_secret(0x736c756963652e73u, 0x682f686173686573u);
	ok(slu_hash_keyed("name", 4) == a && slu_hash_keyed("name\0", 5) != a &&
		   slu_hash_keyed("", 0) != slu_hash_keyed("\0", 1),
	   "a keyed hash depends on key, text and length alone");
}

int main(void)
{
	test_log_stalls();
	test_keyed_hash();
	test_map_against_array();
	test_intern();
	test_buf();
	test_faults();
	test_arena();
	test_numbers();
	return tap_done();
}
