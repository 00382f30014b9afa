/* file.h — read a whole file into a buffer; the three standard descriptors. */
#pragma once
#include "base/buf.h"

/* Append the file's bytes to `out`, which brings its ceiling.  0, -EMSGSIZE when the file is larger
 * than that (a device: than 16 MiB), -EISDIR, -ENOENT and the other errors of open and read,
 * -ENOMEM. */
int slu_file_read(const char *path, struct slu_buf *out);

/* Open /dev/null under each of the first three descriptors that is closed.  A process that was started without
 * standard error would otherwise write its log to whatever it opens first: a connection, the store. */
void slu_file_standard(void);
