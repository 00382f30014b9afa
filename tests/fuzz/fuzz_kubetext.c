/* What servers and plug-ins say: Status in JSON and protobuf, ExecCredential, gzip, paths. */
#include "fuzz.h"
#include "kube/client_internal.h"
#include "net/gzip.h"

static int swallow(void *arg, const void *p, size_t n)
{
	size_t *left = arg;

	(void)p;
	if (n > *left)
		return -EMSGSIZE;
	*left -= n;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char message[200], reason[40], *text;
	struct kube_exec_result r = { 0 };
	struct slu_gunzip *z;
	size_t left = 1 << 20;
	uint8_t what;

	if (!size)
		return 0;
	what = data[0] % 5;
	data++;
	size--;
	text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	switch (what) {
	case 0:
		kube_status_read("application/json", text, size, message, sizeof message, reason,
				 sizeof reason);
		must(strlen(message) < sizeof message && strlen(reason) < sizeof reason);
		break;
	case 1:
		kube_status_read("application/vnd.kubernetes.protobuf", text, size, message,
				 sizeof message, reason, sizeof reason);
		must(strlen(message) < sizeof message && strlen(reason) < sizeof reason);
		break;
	case 2:
		if (!kube_exec_parse(text, size, "client.authentication.k8s.io/v1", &r, NULL)) {
			must(r.token || r.cert);
			kube_exec_result_done(&r);
		}
		break;
	case 3:
		z = slu_gunzip_new();
		for (size_t i = 0; i < size; i += 7)
			if (slu_gunzip_feed(z, data + i, SLU_MIN(size - i, (size_t)7), swallow,
					    &left) < 0)
				break;
		slu_gunzip_free(z);
		break;
	case 4:
		kube_describe(SLU_HTTP_GET, text, message, sizeof message);
		must(strlen(message) < sizeof message);
		break;
	}
	free(text);
	return 0;
}
