/* client.h — requests to the API server, many in flight on few connections, on one loop.
 *
 * A request is described by a struct, copied by slu_kube_send(), and answered by exactly one call
 * of its `done`.  Connections, TLS, credentials, rate limit, retries with back-off and time-outs
 * are the client's business.  Watches travel on connections of their own, apart from writes and
 * lists.  All calls on the loop's thread.
 *
 *	static void got(void *arg, const struct slu_kube_reply *r)
 *	{
 *		if (r->outcome != SLU_KUBE_OK)
 *			slu_log(SLU_WARN, "read failed", SLU_STR("err", r->error));
 *		else
 *			decode(r->body, r->body_len);
 *	}
 *	struct slu_kube_request q = { .path = "/api/v1/nodes", .query = "limit=500",
 *				      .accept = SLU_KUBE_PROTOBUF, .done = got };
 *	rc = slu_kube_send(client, &q, NULL);
 */
#pragma once
#include "kube/config.h"
#include "net/http.h"
#include "net/loop.h"

#define SLU_KUBE_JSON            "application/json"
#define SLU_KUBE_PROTOBUF        "application/vnd.kubernetes.protobuf"
#define SLU_KUBE_PROTOBUF_WATCH  "application/vnd.kubernetes.protobuf;stream=watch"
#define SLU_KUBE_JSON_PATCH      "application/json-patch+json"
#define SLU_KUBE_MERGE_PATCH     "application/merge-patch+json"
#define SLU_KUBE_STRATEGIC_PATCH "application/strategic-merge-patch+json"
#define SLU_KUBE_APPLY_PATCH     "application/apply-patch+yaml"

struct slu_kube_client;
struct slu_kube_call; /* a request under way */

/* How a request ended: code branches on this, people read the sentence. */
enum slu_kube_outcome {
	SLU_KUBE_OK,        /* 2xx, whole body received (streams: ended in good order) */
	SLU_KUBE_RETRYABLE, /* not reached, 429, 5xx or time-out, and retries are used up */
	SLU_KUBE_CONFLICT,  /* 409: another version is there (or already bound) */
	SLU_KUBE_EXISTS,    /* 409 AlreadyExists */
	SLU_KUBE_GONE,      /* 410: the resourceVersion is too old, list again */
	SLU_KUBE_NOT_FOUND, /* 404 */
	SLU_KUBE_REFUSED,   /* 401, 403 */
	SLU_KUBE_INVALID,   /* 400, 405, 413, 415, 422: the request is wrong */
	SLU_KUBE_FAILED,    /* no retry will help: certificates, credentials, broken answers */
	SLU_KUBE_CANCELLED, /* slu_kube_cancel(), or the client was freed */
};
const char *slu_kube_outcome_name(enum slu_kube_outcome o);

/* Which connections a request uses. */
enum slu_kube_lane {
	SLU_KUBE_LANE_AUTO,
	SLU_KUBE_LANE_READ,
	SLU_KUBE_LANE_WRITE,
	SLU_KUBE_LANE_WATCH
};
#define SLU_KUBE_LANES 4

/* Borrowed, valid during the callback. */
struct slu_kube_reply {
	enum slu_kube_outcome outcome;
	int status;               /* HTTP; 0: no answer arrived */
	const char *content_type; /* "" if none */
	const char *body; /* decompressed, NUL behind the end; empty for streams that got 2xx */
	size_t body_len;
	const struct slu_headers *headers; /* NULL without an answer */
	const char *reason;                /* Status.reason, e.g. "AlreadyExists"; "" */
	const char *error;      /* a sentence with verb, resource and cause; "" when OK */
	int64_t retry_after_ns; /* the server's Retry-After, or 0 */
	/* A write that the server may have carried out: it was sent, and no answer came, or an
	 * answer like 504 that leaves its fate open. */
	bool uncertain;
	unsigned tries;
	int64_t took_ns; /* from send to done, waits included */
};

typedef void slu_kube_done_fn(void *arg, const struct slu_kube_reply *r);
/* A piece of a streamed 2xx body, decompressed.  Borrowed.  The callback may cancel or pause. */
typedef void slu_kube_data_fn(void *arg, const void *p, size_t n);

/* Zero means the default everywhere. */
struct slu_kube_request {
	enum slu_http_method method;
	const char *path;         /* escaped, starts with '/' */
	const char *query;        /* escaped, without '?' */
	const char *accept;       /* NULL: JSON */
	const char *content_type; /* of the body; NULL: JSON */
	const void *body;         /* copied */
	size_t body_len;
	enum slu_kube_lane lane; /* AUTO: watch if `data` is set, read for GET, else write */
	/* higher goes first when requests queue up; 0..7; 7 does not wait for `qps` */
	uint8_t priority;
	bool repeatable; /* a write that may be sent again, as GETs are, when its fate is unknown */
	bool once;       /* no retries at all */
	/* Called each time the request is about to be put on the wire, however long it has waited for
	 * its turn; false: the request ends as RETRYABLE, and nothing is sent. */
	bool (*guard)(void *arg);
	void *guard_arg;
	/* Retries included; 0: the client's.  Streams: until the head arrives. */
	int64_t timeout_ns;
	int64_t idle_ns;        /* streams: longest silence; 0: none (PINGs watch the connection) */
	size_t max_body;        /* ceiling for the decompressed answer; 0: 64 MiB */
	slu_kube_data_fn *data; /* set: the body is streamed */
	slu_kube_done_fn *done;
	void *arg;
};

/* Queue a request.  0, -ENOMEM, -EINVAL (no path or done), -ESHUTDOWN.  `done` is never called from
 * inside.  *call (may be NULL) is valid until done returns. */
int slu_kube_send(struct slu_kube_client *c, const struct slu_kube_request *q,
		  struct slu_kube_call **call);
/* End it; done is called with CANCELLED before this returns, unless this is called from inside
 * done.  From inside the data callback done follows right after that returns. */
void slu_kube_cancel(struct slu_kube_call *call);
/* Streams: stop handing out data; the server is slowed down by flow control.  Resume delivers what
 * was held (not from inside the call). */
void slu_kube_pause(struct slu_kube_call *call);
void slu_kube_resume(struct slu_kube_call *call);

/* ---- the client ---- */

struct slu_kube_client_options {
	double qps;   /* requests per second, watches not counted; 0: no limit */
	double burst; /* 0: 2 * qps */
	uint32_t connections[SLU_KUBE_LANES]; /* per lane; 0: READ 1, WRITE 2, WATCH 1 */
	uint32_t max_inflight;  /* per connection, below the server's own limit; 0: 100 */
	uint32_t max_queue;     /* waiting requests; 0: 100 000; above: -ENOBUFS from send */
	int64_t timeout_ns;     /* 0: 30 s */
	int64_t connect_ns;     /* dial and handshake; 0: 10 s */
	int64_t ping_ns;        /* 0: 30 s; silence of half as long again closes the connection */
	int64_t backoff_ns;     /* first pause after a failure; 0: 100 ms, doubling */
	int64_t backoff_max_ns; /* 0: 15 s */
	unsigned max_tries;     /* 0: 8 */
	int64_t rotate_ns;      /* replace connections this old; 0: never */
	bool no_gzip;
	const char *user_agent; /* NULL: "sluice/VERSION" */
	uint64_t seed;          /* of the jitter; 0: from the clock */
};

/* Nothing is connected before the first request.  `o` may be NULL.  Takes a reference to `cfg`. */
int slu_kube_client_new(struct slu_loop *l, struct slu_kube_config *cfg,
			const struct slu_kube_client_options *o, struct slu_kube_client **out,
			struct slu_error *err);
/* Ends all requests with CANCELLED, closes all connections.  Not from inside a callback.  NULL is
 * fine. */
void slu_kube_client_free(struct slu_kube_client *c);
SLU_DEFINE_CLEANUP(struct slu_kube_client, slu_kube_client_free)

struct slu_loop *slu_kube_client_loop(const struct slu_kube_client *c);
/* Change the rate limit at run time. */
void slu_kube_client_rate(struct slu_kube_client *c, double qps, double burst);
/* Cut all connections of a lane as if the network had done it (for tests). */
void slu_kube_client_cut(struct slu_kube_client *c, enum slu_kube_lane lane);

#define SLU_KUBE_LATENCY_BUCKETS 12
/* Upper bounds in ns; the last bucket has none. */
extern const int64_t slu_kube_latency_bounds[SLU_KUBE_LATENCY_BUCKETS - 1];

struct slu_kube_stats {
	uint64_t sent[SLU_KUBE_LANES];         /* tries put on the wire */
	uint64_t done[SLU_KUBE_CANCELLED + 1]; /* by outcome */
	uint64_t answers[6];                   /* by status / 100; [0]: none */
	uint64_t retries, throttled, rate_waits, timeouts;
	uint64_t connects, connect_failures, goaways, resets, ping_losses;
	uint64_t bytes_in, bytes_out; /* on the wire, before TLS */
	uint64_t latency[SLU_KUBE_LATENCY_BUCKETS];
	uint64_t latency_sum_ns, latency_count;
	uint32_t queued, inflight, streams, connections; /* now */
};
void slu_kube_client_stats(const struct slu_kube_client *c, struct slu_kube_stats *out);

/* ---- for commands and tests: send and run the loop until the answer is there ---- */

struct slu_kube_answer {
	enum slu_kube_outcome outcome;
	int status;
	char *body; /* owned */
	size_t body_len;
	char *content_type; /* owned */
	char *reason;       /* owned */
};

/* 0 with *out filled when the outcome is OK; otherwise -EIO (-ENOENT, -EEXIST, -EAGAIN, -ESTALE,
 * -EACCES, -EINVAL, -EPROTO, -ECANCELED by outcome), the sentence in err, and *out filled too.
 * q->done, q->data and q->arg are ignored. */
int slu_kube_do(struct slu_kube_client *c, const struct slu_kube_request *q,
		struct slu_kube_answer *out, struct slu_error *err);
void slu_kube_answer_done(struct slu_kube_answer *a);

/* ---- paths ---- */

/* "/api/v1/namespaces/NS/pods/NAME/SUB" or "/apis/GROUP/...": group "" or NULL is the core one;
 * ns, name, sub may be NULL.  Parts are escaped. */
int slu_kube_path(struct slu_buf *b, const char *group, const char *version, const char *ns,
		  const char *plural, const char *name, const char *sub);
