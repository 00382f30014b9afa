#include "sim/swf.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	F_NUMBER,
	F_SUBMIT,
	F_WAIT,
	F_RUN,
	F_PROCS,
	F_CPU,
	F_MEMORY,
	F_REQ_PROCS,
	F_REQ_TIME,
	F_REQ_MEMORY,
	F_STATUS,
	F_USER,
	F_GROUP,
	F_APP,
	F_QUEUE,
	F_PARTITION,
	F_PRECEDING,
	F_THINK,
	F_COUNT
};

static const char *const field_name[F_COUNT] = {
	"job number", "submit time",   "wait time",       "run time",       "processors",
	"cpu time",   "memory",        "requested procs", "requested time", "requested memory",
	"status",     "user",          "group",           "application",    "queue",
	"partition",  "preceding job", "think time",
};

static int malformed(struct slu_swf *s, struct slu_error *err, const char *fmt, ...)
	SLU_PRINTF(3, 4);

static int malformed(struct slu_swf *s, struct slu_error *err, const char *fmt, ...)
{
	char text[96];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	s->trace->malformed++;
	if (s->nnote < SLU_SWF_NOTES) {
		s->note[s->nnote].line = s->line;
		memcpy(s->note[s->nnote++].text, text, sizeof text);
	}
	if (s->strict)
		return slu_fail(err, -EINVAL, "line %" PRIu64 ": %s", s->line, text);
	return 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* A decimal number, perhaps with a fraction, which is cut off (some logs carry them).
 * Returns the characters used, 0 if there is none or it is out of range. */
static size_t parse_number(const char *p, size_t n, int64_t *out)
{
	size_t i = 0;
	bool neg = false;
	int64_t v = 0;

	if (i < n && (p[i] == '-' || p[i] == '+'))
		neg = p[i++] == '-';
	size_t first = i;

	for (; i < n && p[i] >= '0' && p[i] <= '9'; i++) {
		if (v > SLU_TRACE_MAX_TIME)
			return 0;
		v = v * 10 + (p[i] - '0');
	}
	size_t digits = i - first;

	if (i < n && p[i] == '.') {
		size_t dot = i++;

		while (i < n && p[i] >= '0' && p[i] <= '9')
			i++;
		digits += i - dot - 1;
	}
	if (!digits || v > SLU_TRACE_MAX_TIME || (i < n && !is_space(p[i])))
		return 0;
	*out = neg ? -v : v;
	return i;
}

/* "; MaxProcs: 100": the size of the machine, when the log says it. */
static void header(struct slu_swf *s, const char *p, size_t n)
{
	static const char *const key[] = { "MaxProcs:", "MaxNodes:" };

	while (n && (is_space(*p) || *p == ';'))
		p++, n--;
	for (size_t k = 0; k < SLU_LEN(key); k++) {
		size_t len = strlen(key[k]);
		int64_t v;

		if (n < len || memcmp(p, key[k], len))
			continue;
		const char *v0 = p + len;
		size_t vn = n - len;

		while (vn && is_space(*v0))
			v0++, vn--;
		if (parse_number(v0, vn, &v) && v > 0 && (k == 0 || !s->trace->machine_procs))
			s->trace->machine_procs = v;
	}
}

static int keep_job(struct slu_swf *s, const int64_t *f, struct slu_error *err)
{
	struct slu_trace *t = s->trace;
	int64_t alloc = f[F_PROCS], procs = f[F_REQ_PROCS] > 0 ? f[F_REQ_PROCS] : f[F_PROCS];
	int64_t size = s->procs ? s->procs : t->machine_procs;
	char name[24];

	if (alloc <= 0)
		alloc = procs;
	if (procs <= 0 || f[F_RUN] <= 0 || f[F_REQ_TIME] <= 0 || f[F_SUBMIT] < 0 ||
	    procs > SLU_TRACE_MAX_SLOTS || (size && (procs > size || alloc > size))) {
		t->dropped++;
		return 0;
	}
	if (t->job.n >= SLU_TRACE_MAX_JOBS)
		return slu_fail(err, -EFBIG, "line %" PRIu64 ": more than %u jobs", s->line,
				SLU_TRACE_MAX_JOBS);
	snprintf(name, sizeof name, "u%" PRId64, f[F_USER]);
	uint32_t user = slu_intern(&t->str, name);
	int64_t req = slu_trace_cores_req(t, (uint32_t)procs);
	struct slu_trace_job j = {
		.id = t->job.n + 1,
		.number = f[F_NUMBER] > 0 ? (uint64_t)f[F_NUMBER] : 0,
		.submit_s = f[F_SUBMIT],
		.run_s = SLU_MIN(f[F_RUN], f[F_REQ_TIME]),
		.limit_s = f[F_REQ_TIME],
		.name = SLU_INTERN_NONE,
		.user = user,
		.queue = SLU_INTERN_NONE,
		.req = (uint32_t)req,
		.fails = f[F_STATUS] == 0,
	};

	if (user == SLU_INTERN_NONE || req < 0 || slu_vec_push(&t->job, j) < 0)
		return slu_fail(err, -ENOMEM, "line %" PRIu64 ": out of memory", s->line);
	return 0;
}

int slu_swf_line(struct slu_swf *s, const char *p, size_t n, struct slu_error *err)
{
	int64_t f[F_COUNT];
	int count = 0;

	s->line++;
	while (n && is_space(*p))
		p++, n--;
	if (!n)
		return 0;
	if (*p == ';') {
		header(s, p, n);
		return 0;
	}
	s->trace->records++;
	while (n) {
		if (count == F_COUNT)
			return malformed(s, err, "more than %d fields", F_COUNT);
		size_t used = parse_number(p, n, &f[count]);

		if (!used)
			return malformed(s, err, "%s: not a number", field_name[count]);
		count++;
		p += used;
		n -= used;
		while (n && is_space(*p))
			p++, n--;
	}
	/* The last fields are often left out by tools; those up to the estimate are needed. */
	if (count <= F_REQ_TIME)
		return malformed(s, err, "%d fields; at least %d are needed", count,
				 F_REQ_TIME + 1);
	while (count < F_COUNT)
		f[count++] = -1;
	return keep_job(s, f, err);
}
