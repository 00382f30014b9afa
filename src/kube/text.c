/* text.c — small conversions the configuration needs: files, base64, times. */
#include "kube/config_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int kube_read_file(const char *path, size_t max, struct slu_buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;

	if (fd < 0)
		return -errno;
	out->max = max;
	for (;;) {
		ssize_t r;

		rc = slu_buf_room(out, out->n < max ? SLU_MIN((size_t)8192, max - out->n) : 1);
		if (rc < 0)
			break;
		r = read(fd, out->p + out->n, out->cap - out->n - 1);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			rc = -errno;
		if (r <= 0)
			break;
		out->n += (size_t)r;
		out->p[out->n] = '\0';
		if (out->n > max) {
			rc = -EMSGSIZE;
			break;
		}
	}
	close(fd);
	return rc;
}

static int digit64(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int kube_base64_decode(const char *s, size_t n, struct slu_buf *out)
{
	uint32_t acc = 0;
	int have = 0, pad = 0, rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		int d;

		if (s[i] == '\n' || s[i] == '\r' || s[i] == ' ' || s[i] == '\t')
			continue;
		if (s[i] == '=') {
			if (++pad > 2 || have < 2)
				return -EINVAL;
			acc <<= 6;
		} else {
			d = digit64(s[i]);
			if (d < 0 || pad)
				return -EINVAL;
			acc = acc << 6 | (uint32_t)d;
		}
		if (++have == 4) {
			char t[3] = { (char)(acc >> 16), (char)(acc >> 8), (char)acc };

			rc = slu_buf_add(out, t, (size_t)(3 - pad));
			have = 0;
			acc = 0;
			if (pad) { /* nothing but white space may follow */
				while (++i < n)
					if (!strchr("\n\r \t", s[i]) || !s[i])
						return -EINVAL;
				return rc;
			}
		}
	}
	return rc < 0 ? rc : have ? -EINVAL : 0;
}

int kube_base64_encode(const void *p, size_t n, struct slu_buf *out)
{
	static const char abc[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *s = p;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i += 3) {
		size_t k = SLU_MIN(n - i, (size_t)3);
		uint32_t v = (uint32_t)s[i] << 16 | (k > 1 ? (uint32_t)s[i + 1] << 8 : 0) |
			     (k > 2 ? s[i + 2] : 0);
		char t[4] = { abc[v >> 18], abc[v >> 12 & 63], k > 1 ? abc[v >> 6 & 63] : '=',
			      k > 2 ? abc[v & 63] : '=' };

		rc = slu_buf_add(out, t, 4);
	}
	return rc;
}

int kube_parse_time(const char *s, int64_t *out_s)
{
	struct tm tm = { 0 };
	int n = 0, oh = 0, om = 0;
	int64_t t;

	if (sscanf(s, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n) != 6 ||
	    !n)
		return -EINVAL;
	if (tm.tm_year < 1900 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
	    tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return -EINVAL;
	s += n;
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789");
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	t = (int64_t)timegm(&tm);
	if (*s == '+' || *s == '-') {
		int sign = *s == '+' ? 1 : -1;

		if (sscanf(s + 1, "%2d:%2d%n", &oh, &om, &n) != 2 || s[1 + n])
			return -EINVAL;
		t -= sign * (oh * 3600 + om * 60);
	} else if ((*s != 'Z' && *s != 'z') || s[1]) {
		return -EINVAL;
	}
	*out_s = t;
	return 0;
}
