#include "cli/term.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

bool slu_term_live(void)
{
	const char *term = getenv("TERM");

	return isatty(2) && term && strcmp(term, "dumb");
}

bool slu_term_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(1) && !(no && *no) && term && strcmp(term, "dumb");
}

int slu_term_width(void)
{
	struct winsize w;

	if (!ioctl(2, TIOCGWINSZ, &w) && w.ws_col > 20)
		return w.ws_col;
	return 80;
}

double slu_now_s(void)
{
	return (double)slu_clock_ns() * 1e-9;
}

char *slu_term_time(int64_t s, char buf[32])
{
	int64_t d = s / 86400;

	if (d)
		snprintf(buf, 32, "%" PRId64 "d %02d:%02d:%02d", d, (int)(s / 3600 % 24),
			 (int)(s / 60 % 60), (int)(s % 60));
	else
		snprintf(buf, 32, "%02d:%02d:%02d", (int)(s / 3600 % 24), (int)(s / 60 % 60),
			 (int)(s % 60));
	return buf;
}

void slu_progress_start(struct slu_progress *p, const char *label, bool wanted)
{
	*p = (struct slu_progress){ .label = label,
				    .began_s = slu_now_s(),
				    .on = wanted && slu_term_live() };
}

void slu_progress_show(struct slu_progress *p, uint64_t done, uint64_t total, const char *unit)
{
	double now = p->on ? slu_now_s() : 0;

	if (!p->on || now - p->shown_s < 0.1)
		return;
	p->shown_s = now;
	if (!total) { /* the total is not known */
		fprintf(stderr, "\r\033[K%-14.14s %" PRIu64 " %s, %.0f s", p->label, done, unit,
			now - p->began_s);
		fflush(stderr);
		return;
	}
	double share = (double)done / (double)total, took = now - p->began_s;
	double rate = took > 0 ? (double)done / took : 0;
	int64_t left = rate > 0 ? (int64_t)((double)(total - done) / rate) : 0;
	int width = SLU_MAX(slu_term_width() - 64, 10), full = (int)(share * width);
	char eta[32], bar[256];

	width = SLU_MIN(width, 60);
	full = SLU_MIN(full, width);
	memset(bar, '#', (size_t)full);
	memset(bar + full, '.', (size_t)(width - full));
	bar[width] = 0;
	fprintf(stderr, "\r\033[K%-14.14s [%s] %3d%% %.0f %s/s, %s left", p->label, bar,
		(int)(share * 100), rate, unit, slu_term_time(left, eta));
	fflush(stderr);
}

void slu_progress_end(struct slu_progress *p)
{
	if (p->on)
		fprintf(stderr, "\r\033[K");
}

/* Bytes of a character at `s` that must not reach a terminal; 0: it may. */
static size_t unruly(const unsigned char *s)
{
	if (*s < 0x20 || *s == 0x7f)
		return 1;
	if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0) /* U+0080 to U+009F */
		return 2;
	if (s[0] != 0xe2)
		return 0;
	if (s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xaa && s[2] <= 0xae)))
		return 3; /* U+200E, U+200F, U+202A to U+202E */
	return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9 ? 3 : 0; /* U+2066 to U+2069 */
}

char *slu_term_tame(char *text)
{
	unsigned char *to = (unsigned char *)text, *from = to;

	while (*from) {
		size_t n = unruly(from);

		*to++ = n ? '?' : *from;
		from += n ? n : 1;
	}
	*to = 0;
	return text;
}

int slu_term_columns(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}
