#include "base/base64.h"

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

int slu_base64_decode(const char *s, size_t n, struct slu_buf *out)
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

int slu_base64_encode(const void *p, size_t n, struct slu_buf *out)
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
