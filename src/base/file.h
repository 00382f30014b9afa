/* file.h — read a whole file into a buffer. */
#pragma once
#include "base/buf.h"

/* Append the file's bytes to `out`, which brings its ceiling.  0, -EMSGSIZE when the file is larger
 * than that (a device: than 16 MiB), -EISDIR, -ENOENT and the other errors of open and read,
 * -ENOMEM. */
int slu_file_read(const char *path, struct slu_buf *out);
