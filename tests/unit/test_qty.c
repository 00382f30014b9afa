#include "base/qty.h"
#include "base/rng.h"
#include "tap.h"

static const struct {
	const char *in;
	int rc;
	int64_t unit, milli;
} row[] = {
	{ "0", 0, 0, 0 },
	{ "1", 0, 1, 1000 },
	{ "+1", 0, 1, 1000 },
	{ "-1", 0, -1, -1000 },
	{ "1500m", 0, 2, 1500 },
	{ "-1500m", 0, -2, -1500 },
	{ "100m", 0, 1, 100 },
	{ "0.5", 0, 1, 500 },
	{ ".5", 0, 1, 500 },
	{ "1.", 0, 1, 1000 },
	{ "00012", 0, 12, 12000 },
	{ "0.1m", 0, 1, 1 },
	{ "-0.1m", 0, -1, -1 },
	{ "1u", 0, 1, 1 },
	{ "1n", 0, 1, 1 },
	{ "1000000n", 0, 1, 1 },
	{ "1000001n", 0, 1, 2 },
	{ "1e3", 0, 1000, 1000000 },
	{ "1E3", 0, 1000, 1000000 },
	{ "1e-3", 0, 1, 1 },
	{ "12e+6", 0, 12000000, 12000000000 },
	{ "0.05e3", 0, 50, 50000 },
	{ "1.25e2", 0, 125, 125000 },
	{ "1e-100000", 0, 1, 1 },
	{ "0e99999999999", 0, 0, 0 },
	{ "3k", 0, 3000, 3000000 },
	{ "3M", 0, 3000000, 3000000000 },
	{ "3G", 0, 3000000000, 3000000000000 },
	{ "3T", 0, 3000000000000, 3000000000000000 },
	{ "3P", 0, 3000000000000000, 3000000000000000000 },
	{ "1Ki", 0, 1024, 1024000 },
	{ "3Gi", 0, 3221225472, 3221225472000 },
	{ "0.5Gi", 0, 536870912, 536870912000 },
	{ "0.1Ki", 0, 103, 102400 },
	{ "1.1Mi", 0, 1153434, 1153433600 },
	{ "0.0000000001Ei", 0, 115292151, 115292150461 },
	{ "1Ti", 0, 1099511627776, 1099511627776000 },
	{ "1Pi", 0, 1125899906842624, 1125899906842624000 },
	{ "9223372036854775807m", 0, 9223372036854776, INT64_MAX },
	{ "0.00000000000000000000000000000000000000000000000000000000000000000001Ki", 0, 1, 1 },
	/* no quantities */
	{ "", -EINVAL, 0, 0 },
	{ ".", -EINVAL, 0, 0 },
	{ "+", -EINVAL, 0, 0 },
	{ "m", -EINVAL, 0, 0 },
	{ "1mm", -EINVAL, 0, 0 },
	{ "1 ", -EINVAL, 0, 0 },
	{ " 1", -EINVAL, 0, 0 },
	{ "1Gb", -EINVAL, 0, 0 },
	{ "1gi", -EINVAL, 0, 0 },
	{ "1ki", -EINVAL, 0, 0 },
	{ "1K", -EINVAL, 0, 0 },
	{ "1mi", -EINVAL, 0, 0 },
	{ "1e", -EINVAL, 0, 0 },
	{ "1e+", -EINVAL, 0, 0 },
	{ "1e3k", -EINVAL, 0, 0 },
	{ "1.2.3", -EINVAL, 0, 0 },
	{ "--1", -EINVAL, 0, 0 },
	{ "0x10", -EINVAL, 0, 0 },
	{ "1,5", -EINVAL, 0, 0 },
	{ "NaN", -EINVAL, 0, 0 },
};

static const struct {
	const char *in;
	enum slu_qty_scale scale;
	int rc;
	int64_t want;
} edge[] = {
	{ "9223372036854775807", SLU_QTY_UNIT, 0, INT64_MAX },
	{ "9223372036854775808", SLU_QTY_UNIT, -EOVERFLOW, INT64_MAX },
	{ "-9223372036854775808", SLU_QTY_UNIT, 0, INT64_MIN },
	{ "-9223372036854775809", SLU_QTY_UNIT, -EOVERFLOW, INT64_MIN },
	{ "9223372036854775806.1", SLU_QTY_UNIT, 0, INT64_MAX },
	{ "9223372036854775807.1", SLU_QTY_UNIT, -EOVERFLOW, INT64_MAX },
	{ "9223372036854775.8071", SLU_QTY_MILLI, -EOVERFLOW, INT64_MAX },
	{ "9223372036854775.807", SLU_QTY_MILLI, 0, INT64_MAX },
	{ "7Ei", SLU_QTY_UNIT, 0, 8070450532247928832 },
	{ "8Ei", SLU_QTY_UNIT, -EOVERFLOW, INT64_MAX },
	{ "-8Ei", SLU_QTY_UNIT, 0, INT64_MIN },
	{ "1Ei", SLU_QTY_MILLI, -EOVERFLOW, INT64_MAX },
	{ "9E", SLU_QTY_UNIT, 0, 9000000000000000000 },
	{ "10E", SLU_QTY_UNIT, -EOVERFLOW, INT64_MAX },
	{ "1e100000", SLU_QTY_UNIT, -EOVERFLOW, INT64_MAX },
	{ "-1e999999999999999999999", SLU_QTY_UNIT, -EOVERFLOW, INT64_MIN },
	{ "1e18", SLU_QTY_UNIT, 0, 1000000000000000000 },
	{ "1e18", SLU_QTY_MILLI, -EOVERFLOW, INT64_MAX },
};

static const struct {
	int64_t v;
	enum slu_qty_scale scale;
	enum slu_qty_format form;
	const char *want;
} text[] = {
	{ 0, SLU_QTY_UNIT, SLU_QTY_DECIMAL, "0" },
	{ 0, SLU_QTY_MILLI, SLU_QTY_BINARY, "0" },
	{ 1500, SLU_QTY_MILLI, SLU_QTY_DECIMAL, "1500m" },
	{ 2000, SLU_QTY_MILLI, SLU_QTY_DECIMAL, "2" },
	{ -2000, SLU_QTY_MILLI, SLU_QTY_DECIMAL, "-2" },
	{ 3000000, SLU_QTY_UNIT, SLU_QTY_DECIMAL, "3M" },
	{ 3221225472, SLU_QTY_UNIT, SLU_QTY_BINARY, "3Gi" },
	{ 3221225473, SLU_QTY_UNIT, SLU_QTY_BINARY, "3221225473" },
	{ -1536, SLU_QTY_UNIT, SLU_QTY_BINARY, "-1536" },
	{ -2048, SLU_QTY_UNIT, SLU_QTY_BINARY, "-2Ki" },
	{ 1000, SLU_QTY_UNIT, SLU_QTY_BINARY, "1k" },
	{ 1024, SLU_QTY_UNIT, SLU_QTY_DECIMAL, "1024" },
	{ INT64_MIN, SLU_QTY_UNIT, SLU_QTY_BINARY, "-8Ei" },
	{ INT64_MAX, SLU_QTY_UNIT, SLU_QTY_BINARY, "9223372036854775807" },
	{ 1000000000000000000, SLU_QTY_UNIT, SLU_QTY_DECIMAL, "1E" },
	{ INT64_MAX, SLU_QTY_MILLI, SLU_QTY_DECIMAL, "9223372036854775807m" },
};

static void check_tables(void)
{
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_error err = { 0 };
		int64_t u = 0, m = 0;
		int ru = slu_qty_parse(row[i].in, strlen(row[i].in), SLU_QTY_UNIT, &u, &err);
		int rm = slu_qty_parse(row[i].in, strlen(row[i].in), SLU_QTY_MILLI, &m, NULL);

		ok(ru == row[i].rc && rm == row[i].rc && u == row[i].unit && m == row[i].milli,
		   "\"%s\" is %" PRId64 " or %" PRId64 " milli %s", row[i].in, u, m, err.text);
		ok((ru < 0) == (err.text[0] != 0), "\"%s\": a sentence only on failure", row[i].in);
	}
	for (size_t i = 0; i < SLU_LEN(edge); i++) {
		int64_t v = 0;
		int rc = slu_qty_parse(edge[i].in, strlen(edge[i].in), edge[i].scale, &v, NULL);

		ok(rc == edge[i].rc && v == edge[i].want, "\"%s\" rc %d value %" PRId64, edge[i].in,
		   rc, v);
	}
	for (size_t i = 0; i < SLU_LEN(text); i++) {
		char out[SLU_QTY_TEXT];
		size_t n = slu_qty_format(text[i].v, text[i].scale, text[i].form, out);

		ok(n == strlen(text[i].want) && strcmp(out, text[i].want) == 0,
		   "%" PRId64 " prints as %s", text[i].v, out);
	}
}

/* Against a dull model: value = digits / 10^decimals * multiplier as a fraction of 128-bit numbers.
 */
static void check_random(void)
{
	static const struct {
		const char *s;
		int64_t num, den;
	} suf[] = { { "", 1, 1 },           { "m", 1, 1000 },     { "u", 1, 1000000 },
		    { "n", 1, 1000000000 }, { "k", 1000, 1 },     { "M", 1000000, 1 },
		    { "Ki", 1 << 10, 1 },   { "Mi", 1 << 20, 1 }, { "Gi", 1 << 30, 1 },
		    { "e2", 100, 1 },       { "e-4", 1, 10000 },  { "Ti", 1ll << 40, 1 } };
	struct slu_rng rng;
	int bad = 0;

	rng.state = 20261115;
	for (int step = 0; step < 20000; step++) {
		uint64_t whole = slu_rng_below(&rng, 1 + slu_rng_below(&rng, 1000000));
		uint64_t frac = slu_rng_below(&rng, 1000000);
		size_t k = slu_rng_below(&rng, SLU_LEN(suf));
		bool milli = slu_rng_below(&rng, 2), neg = slu_rng_below(&rng, 2);
		__int128 num, den, want;
		char in[64];
		int64_t got = 0;
		bool good;
		int rc;

		snprintf(in, sizeof in, "%s%" PRIu64 ".%06" PRIu64 "%s", neg ? "-" : "", whole,
			 frac, suf[k].s);
		num = (__int128)(whole * 1000000 + frac) * suf[k].num * (milli ? 1000 : 1);
		den = (__int128)1000000 * suf[k].den;
		want = (num + den - 1) / den;
		rc = slu_qty_parse(in, strlen(in), milli ? SLU_QTY_MILLI : SLU_QTY_UNIT, &got,
				   NULL);
		if (want > INT64_MAX)
			good = rc == -EOVERFLOW && got == (neg ? INT64_MIN : INT64_MAX);
		else
			good = rc == 0 && (neg ? -(__int128)got : (__int128)got) == want;
		if (!good) {
			if (bad++ < 5)
				printf("# %s: got %" PRId64 "\n", in, got);
		}
	}
	ok(!bad, "20000 random quantities equal exact fractions rounded away from zero");
	bad = 0;
	for (int step = 0; step < 20000; step++) {
		int64_t v = (int64_t)(slu_rng_u64(&rng) >> slu_rng_below(&rng, 64)), back = 0;
		enum slu_qty_scale scale = slu_rng_below(&rng, 2) ? SLU_QTY_MILLI : SLU_QTY_UNIT;
		char out[SLU_QTY_TEXT];

		if (slu_rng_below(&rng, 3) == 0)
			v &= ~(int64_t)0xfffff;
		if (slu_rng_below(&rng, 2))
			v = v == INT64_MIN ? v : -v;
		slu_qty_format(v, scale, slu_rng_below(&rng, 2) ? SLU_QTY_BINARY : SLU_QTY_DECIMAL,
			       out);
		if (slu_qty_parse(out, strlen(out), scale, &back, NULL) || back != v) {
			if (bad++ < 5)
				printf("# %" PRId64 " -> %s -> %" PRId64 "\n", v, out, back);
		}
	}
	ok(!bad, "20000 random values print and parse back to themselves");
}

static void check_durations(void)
{
	static const struct {
		int64_t s;
		const char *text;
	} span[] = {
		{ 0, "0s" },
		{ 59, "59s" },
		{ 60, "1m" },
		{ 5400, "1h30m" },
		{ 14400, "4h" },
		{ 86400 + 1, "1d1s" },
		{ INT64_MAX, "106751991167300d15h30m7s" },
	};

	for (size_t i = 0; i < SLU_LEN(span); i++) {
		char out[SLU_QTY_TEXT];

		ok(!strcmp(slu_duration_text(span[i].s, out), span[i].text),
		   "%" PRId64 " s are written as %s: %s", span[i].s, span[i].text, out);
	}
}

int main(void)
{
	char longest[SLU_QTY_MAX + 2];
	int64_t v = 7;

	check_tables();
	check_random();
	check_durations();
	memset(longest, '0', sizeof longest);
	ok(slu_qty_parse(longest, SLU_QTY_MAX, SLU_QTY_UNIT, &v, NULL) == 0 && v == 0,
	   "%d zeros are zero", SLU_QTY_MAX);
	ok(slu_qty_parse(longest, SLU_QTY_MAX + 1, SLU_QTY_UNIT, &v, NULL) == -EINVAL,
	   "a text of one more character is refused");
	ok(slu_qty_parse("1\0000", 3, SLU_QTY_UNIT, &v, NULL) == -EINVAL, "a NUL byte is refused");
	ok(slu_qty_scale_of("cpu") == SLU_QTY_MILLI && slu_qty_scale_of("memory") == SLU_QTY_UNIT,
	   "cpu counts in millis, memory in bytes");
	return tap_done();
}
