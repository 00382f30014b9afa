/* A mirror fed by a hostile server: the input is cut into lists and pieces of watches.  The changes
 * handed over must fold to what the mirror holds. */
#include "base/map.h"
#include "fuzz.h"
#include "kube/mirror.h"

static struct slu_map fold; /* object -> version */

static void changed(void *arg, const struct slu_kobj *old, const struct slu_kobj *now)
{
	if (old && now)
		must(slu_map_del(&fold, (uintptr_t)old));
	if (!now) {
		/* the state of a deletion is not the object held: find it by name */
		for (uint32_t i = 0; i < fold.n; i++) {
			const struct slu_kobj *o = (const void *)(uintptr_t)fold.e[i].key;

			if (o->meta.name == old->meta.name && o->meta.ns == old->meta.ns) {
				must(slu_map_del(&fold, fold.e[i].key));
				return;
			}
		}
		must(!"deleted what was never added");
	}
	must(!slu_map_get(&fold, (uintptr_t)now));
	must(slu_map_put(&fold, (uintptr_t)now, now->meta.rv) == 0);
}

/* Each step is one byte of what, two of how many, and the bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_strpool *pool = slu_strpool_new();
	struct slu_kcodec *codec = slu_kcodec_new(pool);
	struct slu_mirror_handler h = { changed, NULL, NULL };
	struct slu_mirror *m = NULL;
	const struct slu_kobj *o;
	uint32_t i = 0, n = 0;

	must(slu_mirror_new(SLU_KIND_NODE, codec, &h, &m) == 0);
	for (size_t at = 0; at + 3 <= size;) {
		uint8_t what = data[at];
		size_t len = (size_t)data[at + 1] << 8 | data[at + 2];
		enum slu_kencoding enc = what & 128 ? SLU_ENC_PROTOBUF : SLU_ENC_JSON;

		at += 3;
		len = SLU_MIN(len, size - at);
		switch (what & 7) {
		case 0:
			slu_mirror_watch_begin(m, enc);
			break;
		case 1:
			slu_mirror_watch_end(m);
			break;
		case 2:
			slu_mirror_expired(m);
			break;
		case 3:
			slu_mirror_absent(m);
			break;
		case 4:
		case 5:
			(void)!slu_mirror_page(m, enc, data + at, len, NULL);
			at += len;
			break;
		default:
			(void)!slu_mirror_watch_data(m, data + at, len, NULL);
			at += len;
		}
	}
	while ((o = slu_mirror_next(m, &i))) {
		uint64_t *rv = slu_map_get(&fold, (uintptr_t)o);

		must(rv && *rv == o->meta.rv && slu_mirror_get(m, o->meta.ns, o->meta.name) == o);
		n++;
	}
	must(n == fold.n && n == slu_mirror_count(m));
	slu_map_done(&fold);
	slu_mirror_free(m);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return 0;
}
