#include "sim/input.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

static int each_line(gzFile f, const char *path, size_t max,
		     int (*fn)(const char *p, size_t n, void *arg, struct slu_error *err),
		     void *arg, struct slu_error *err)
{
	size_t cap = 1 << 18, n = 0;
	slu_cleanup(slu_freep) char *buf = slu_malloc(cap);
	uint64_t line = 1;

	if (!buf)
		return slu_fail(err, -ENOMEM, "%s: out of memory", path);
	for (;;) {
		int got = gzread(f, buf + n, (unsigned)SLU_MIN(cap - n, (size_t)1 << 20));

		if (got < 0) {
			int broken = errno, code;
			const char *what = gzerror(f, &code), *name = strchr(what, '>');

			if (code == Z_ERRNO)
				return slu_fail(err, -broken, "%s: %s", path, strerror(broken));
			/* zlib knows the number of the file only: "<fd:3>: what" */
			if (!strncmp(what, "<fd:", 4) && name && !strncmp(name, ">: ", 3))
				what = name + 3;
			return slu_fail(err, -EIO, "%s: %s", path, what);
		}
		size_t end = n + (size_t)got, from = 0;

		for (;;) {
			char *nl = memchr(buf + from, '\n', end - from);
			int rc;

			if (!nl && (got || from == end))
				break;
			size_t len = nl ? (size_t)(nl - (buf + from)) : end - from;

			rc = fn(buf + from, len, arg, err);
			if (rc)
				return rc < 0 ? slu_fail_prefix(err, rc, "%s", path) : rc;
			line++;
			from += len + 1;
			if (!nl)
				break;
		}
		if (!got)
			return 0;
		n = from < end ? end - from : 0;
		memmove(buf, buf + from, n);
		if (n > max)
			return slu_fail(err, -EMSGSIZE,
					"%s: line %" PRIu64 " is longer than %zu bytes", path, line,
					max);
		if (cap - n < 1 << 16) {
			char *more = slu_realloc(buf, cap * 2);

			if (!more)
				return slu_fail(err, -ENOMEM, "%s: out of memory", path);
			buf = more;
			cap *= 2;
		}
	}
}

int slu_input_lines(const char *path, size_t max,
		    int (*fn)(const char *p, size_t n, void *arg, struct slu_error *err), void *arg,
		    struct slu_error *err)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(0);

	if (fd < 0)
		return slu_fail(err, -errno, "%s: %s", path, strerror(errno));
	gzFile f = gzdopen(fd, "rb");

	if (!f) {
		close(fd);
		return slu_fail(err, -ENOMEM, "%s: out of memory", path);
	}
	gzbuffer(f, 1 << 17);
	int rc = each_line(f, path, max, fn, arg, err);
	int closed = gzclose_r(f);

	if (!rc && closed != Z_OK)
		return slu_fail(err, -EIO, "%s: the compressed file ends too early", path);
	return rc;
}
