/* reflector.h — a mirror (mirror.h) kept current by a client on a loop: it lists in pages,
 * watches from there, and recovers from every kind of interruption. */
#pragma once
#include "kube/client.h"
#include "kube/mirror.h"

struct slu_reflector;

struct slu_reflector_options {
	const char *ns;             /* NULL: all namespaces */
	const char *label_selector; /* unescaped; NULL: none */
	const char *field_selector;
	uint32_t page;     /* objects per page; 0: 500; halved when a page is too large */
	size_t page_bytes; /* of a page; 0: 256 MiB */
	int64_t watch_s;   /* ask the server to end a watch after this; 0: 300..600 at random */
	/* Pause after a failure, doubling with jitter; 0: 200 ms, 30 s. */
	int64_t retry_ns, retry_max_ns;
	bool json; /* ask for JSON even where protobuf exists */
	/* The kind may be missing on this server (a CRD not installed, an API switched off): 404 is
	 * then an empty mirror, synced, looked at again every `absent_ns` (0: 10 s). */
	bool optional;
	int64_t absent_ns;
	/* An optional kind that this account may not list (403, more than once in a row) is treated
	 * like a missing one.  `refused` is called once with a sentence, before the mirror is synced;
	 * and with NULL when the server no longer refuses.  Objects listed before stay, so rules that
	 * are taken away for a moment do not empty the mirror. */
	void (*refused)(void *arg, const char *sentence);
	/* Trouble (from the second failure in a row) and recovery, for logs and health: a sentence,
	 * or NULL when a page, event or bookmark has come again. */
	void (*trouble)(void *arg, const char *sentence);
};

/* Starts at once.  The codec may be shared by all reflectors of one loop. */
int slu_reflector_new(struct slu_kube_client *c, enum slu_kkind kind, struct slu_kcodec *codec,
		      const struct slu_mirror_handler *h, const struct slu_reflector_options *o,
		      struct slu_reflector **out, struct slu_error *err);
/* Stops; no handler call after this returns.  Free it before its client. */
void slu_reflector_free(struct slu_reflector *r);
SLU_DEFINE_CLEANUP(struct slu_reflector, slu_reflector_free)

const struct slu_mirror *slu_reflector_mirror(const struct slu_reflector *r);
/* List again now, as after 410: differences are handed over, then `synced` is called. */
void slu_reflector_relist(struct slu_reflector *r);
/* Pause the watch while the receiver cannot take more, and resume it. */
void slu_reflector_pause(struct slu_reflector *r);
void slu_reflector_resume(struct slu_reflector *r);
