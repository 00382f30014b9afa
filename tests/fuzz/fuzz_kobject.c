/* Decoders of objects, lists, events and statuses in both encodings.  The first byte chooses: kind
 * in the low five bits, then encoding, then what the bytes are.  Objects must hold together and
 * leave no string behind. */
#include "fuzz.h"
#include "kube/codec.h"

static void look(const struct slu_kobj *o)
{
	struct slu_buf b = SLU_BUF_INIT((size_t)64 << 20);

	must(slu_kobj_dump(o, &b) == 0);
	for (uint16_t i = 1; i < o->meta.nlabels; i++)
		must(strcmp(o->meta.labels[i - 1].key, o->meta.labels[i].key) < 0);
	for (uint16_t i = 0; i < o->meta.nlabels; i++)
		must(slu_kmeta_label(&o->meta, o->meta.labels[i].key) == o->meta.labels[i].value);
	if (o->kind == SLU_KIND_POD) {
		const struct slu_kpodspec *s = &slu_kpod(o)->spec;

		for (uint16_t i = 0; i < s->nrequests; i++)
			must(s->requests[i].amount > 0);
	}
	slu_buf_done(&b);
}

static int item(void *arg, const struct slu_kobj *o)
{
	look(o);
	slu_kobj_unref(o);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_strpool *pool;
	struct slu_kcodec *codec;
	const struct slu_kobj *o = NULL;
	struct slu_klist list = { 0 };
	struct slu_kevent ev = { 0 };
	struct slu_kstatus st;
	struct slu_error err = { 0 };
	enum slu_kkind kind;
	enum slu_kencoding enc;
	uint32_t strings;
	size_t bytes;
	int rc;

	if (size < 1)
		return 0;
	kind = 1 + (data[0] & 31) % (SLU_KIND_COUNT - 1);
	enc = data[0] & 32 ? SLU_ENC_PROTOBUF : SLU_ENC_JSON;
	pool = slu_strpool_new();
	codec = slu_kcodec_new(pool);
	must(slu_kcodec_keep_annotations(codec, "") == 0);
	switch (data[0] >> 6) {
	case 0:
		rc = slu_kcodec_object(codec, kind, enc, data + 1, size - 1, &o, &err);
		must((rc == 0) == (o != NULL));
		if (o)
			look(o);
		slu_kobj_unref(o);
		break;
	case 1:
		rc = slu_kcodec_list(codec,
				     &(struct slu_klist_in){ .kind = kind,
							     .enc = enc,
							     .bytes = data + 1,
							     .n = size - 1,
							     .item = item },
				     &list, &err);
		slu_free(list.cont);
		break;
	case 2:
		rc = slu_kcodec_event(codec, kind, enc, data + 1, size - 1, &ev, &err);
		if (ev.obj)
			look(ev.obj);
		slu_kobj_unref(ev.obj);
		break;
	default:
		rc = slu_kcodec_status(codec, enc, data + 1, size - 1, &st, &err);
	}
	must(rc == 0 || rc == -EPROTO || rc == -EMSGSIZE);
	must(rc == 0 || err.text[0]);
	slu_strpool_stat(pool, &strings, &bytes);
	must(strings == 0);
	slu_kcodec_free(codec);
	slu_strpool_free(pool);
	return 0;
}
