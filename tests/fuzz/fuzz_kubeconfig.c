/* A kubeconfig from anywhere: loaded or refused with a sentence, never more. */
#include "fuzz.h"
#include "kube/config.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_kube_config *c = NULL;
	struct slu_error err = { 0 };
	struct slu_kube_config_options o = { 0 };
	char path[64];
	int fd = memfd_create("kubeconfig", 0);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	o.path = path;
	if (slu_kube_config_load(&o, &c, &err) < 0) {
		must(err.text[0]);
	} else {
		must(*slu_kube_config_server(c) && *slu_kube_config_namespace(c));
		slu_kube_config_unref(c);
	}
	close(fd);
	return 0;
}
