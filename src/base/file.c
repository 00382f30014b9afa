#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE_MAX ((size_t)16 << 20) /* of a terminal; /dev/zero has no end */

int slu_file_read(const char *path, struct slu_buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	size_t step = 4096;
	size_t max = out->max;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (S_ISDIR(st.st_mode))
		rc = -EISDIR;
	else if (S_ISCHR(st.st_mode))
		max = SLU_MIN(max, out->n + DEVICE_MAX);
	else if ((uint64_t)st.st_size > max - out->n)
		rc = -EMSGSIZE;
	else if (st.st_size > 0)
		step = (size_t)st.st_size + 1;
	while (!rc) {
		ssize_t n;

		/* The last read may reach the ceiling, but not exceed it. */
		if (step > max - out->n)
			step = max - out->n;
		if (!step) {
			char c;

			rc = read(fd, &c, 1) > 0 ? -EMSGSIZE : 0;
			break;
		}
		rc = slu_buf_room(out, step);
		if (rc < 0)
			break;
		n = read(fd, out->p + out->n, step);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		out->n += (size_t)n;
		out->p[out->n] = '\0';
		step = SLU_MAX((size_t)4096, out->n);
	}
	close(fd);
	return rc;
}

void slu_file_standard(void)
{
	int fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd < STDERR_FILENO)
		fd = open("/dev/null", O_RDWR);
	if (fd > STDERR_FILENO)
		close(fd);
}
