#include "base/log.h"
#include "base/buf.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 16384

static _Atomic int least_level = SLU_INFO;
static _Atomic int line_format = SLU_LOG_TEXT;
static _Atomic int log_fd = STDERR_FILENO;
static const char *const level_name[] = { "debug", "info", "warn", "error" };

void slu_log_setup(enum slu_log_level least, enum slu_log_format format, int fd)
{
	least_level = least;
	line_format = format;
	log_fd = fd;
}

bool slu_log_enabled(enum slu_log_level level)
{
	return (int)level >= least_level;
}

int slu_log_level_parse(const char *s, enum slu_log_level *out)
{
	for (size_t i = 0; i < SLU_LEN(level_name); i++)
		if (strcmp(s, level_name[i]) == 0) {
			*out = (enum slu_log_level)i;
			return 0;
		}
	return -EINVAL;
}

static void put_quoted(struct slu_buf *b, const char *s)
{
	slu_buf_putc(b, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\') {
			slu_buf_putc(b, '\\');
			slu_buf_putc(b, *s);
		} else if (c < 0x20 || c == 0x7f) {
			slu_buf_printf(b, "\\u%04x", c);
		} else if (c == 0xc2 && (unsigned char)s[1] < 0xa0 && s[1]) { /* U+0080 to U+009F */
			slu_buf_printf(b, "\\u%04x", (unsigned char)*++s);
		} else {
			slu_buf_putc(b, *s);
		}
	}
	slu_buf_putc(b, '"');
}

static bool is_plain(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s == 0x7f || *s == '"' || *s == '=' || *s == '\\')
			return false;
	return true;
}

/* The reader of the log may stop reading, or its disk may be full: the daemon then drops lines,
 * and logs how many are missing once lines are accepted again.  A pipe that is ready takes
 * PIPE_BUF bytes at once; the lock keeps another thread from filling it in between. */
static bool put_some(const char *s, size_t n)
{
	while (n) {
		struct pollfd p = { .fd = log_fd, .events = POLLOUT };
		ssize_t w;

		if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
			return false;
		w = write(log_fd, s, SLU_MIN(n, (size_t)PIPE_BUF));
		if (w < 0 && errno != EINTR)
			return false;
		s += w > 0 ? w : 0;
		n -= w > 0 ? (size_t)w : 0;
	}
	return true;
}

static void put_line(const char *s, size_t n)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t lost;
	char missing[100];

	pthread_mutex_lock(&lock);
	if (lost) {
		int k = snprintf(
			missing, sizeof missing,
			line_format == SLU_LOG_JSON
				? "{\"level\":\"warn\",\"msg\":\"log lines lost\",\"lines\":%" PRIu64
				  "}\n"
				: "warn  log lines lost lines=%" PRIu64 "\n",
			lost);

		lost = put_some(missing, (size_t)k) ? 0 : lost;
	}
	if (lost || !put_some(s, n))
		lost++;
	pthread_mutex_unlock(&lock);
}

void slu_log_fields(enum slu_log_level level, const char *msg, const struct slu_log_field *f,
		    size_t n)
{
	struct slu_buf b = SLU_BUF_INIT(LINE_MAX_BYTES);
	bool json = line_format == SLU_LOG_JSON;
	struct timespec ts;
	struct tm tm;
	char when[40];
	size_t k;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	k = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(when + k, sizeof when - k, ".%06ldZ", ts.tv_nsec / 1000);
	if (json) {
		slu_buf_printf(&b, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", when,
			       level_name[level]);
		put_quoted(&b, msg);
	} else {
		slu_buf_printf(&b, "%s %-5s %s", when, level_name[level], msg);
	}
	for (size_t i = 0; i < n; i++) {
		slu_buf_puts(&b, json ? "," : " ");
		if (json)
			put_quoted(&b, f[i].key);
		else
			slu_buf_puts(&b, f[i].key);
		slu_buf_putc(&b, json ? ':' : '=');
		if (!f[i].str)
			slu_buf_i64(&b, f[i].num);
		else if (json || !is_plain(f[i].str))
			put_quoted(&b, f[i].str);
		else
			slu_buf_puts(&b, f[i].str);
	}
	slu_buf_puts(&b, json ? "}\n" : "\n");
	/* One write per line keeps lines whole when several threads log. A lost line is not fatal.
	 */
	put_line(b.error ? "log line too long\n" : b.p, b.error ? 18 : b.n);
	slu_buf_done(&b);
}
