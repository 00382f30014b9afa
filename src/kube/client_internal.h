/* client_internal.h — the client's insides, shared by client.c (requests), try.c (one try of
 * one) and pool.c (connections).
 *
 *	queued ──start──► in flight ──answer──► done
 *	  ▲                  │ 429, 5xx, cut off, refused
 *	  └──── waiting ◄────┘
 */
#pragma once
#include "base/rng.h"
#include "kube/auth.h"
#include "kube/client.h"
#include "net/gzip.h"
#include "net/link.h"

#define KUBE_PRIORITIES 8

enum kube_call_state { CALL_QUEUED, CALL_WAITING, CALL_INFLIGHT, CALL_DONE };

struct kube_list {
	struct slu_kube_call *first, *last;
};

/* One connection of a lane. */
struct kube_conn {
	struct kube_lane *lane;
	struct slu_link *link;
	struct kube_conn *next, *prev;
	struct slu_timer rotate;
	uint32_t generation; /* of the credentials it was opened with */
	bool up;             /* was usable */
	bool answered;       /* at least one answer came over it */
	bool draining; /* GOAWAY or rotation: no new requests, answers to old ones still come */
};

struct kube_lane {
	struct slu_kube_client *c;
	enum slu_kube_lane id;
	struct kube_list queue[KUBE_PRIORITIES];
	struct kube_list waiting, inflight;
	uint32_t n_queued, n_inflight;
	struct kube_conn *conns;
	uint32_t n_conns, max_conns; /* without those that are draining */
	unsigned rotate, fails;
	struct slu_timer again; /* pause before the next connect */
	struct slu_task dispatch;
};

struct slu_kube_client {
	struct slu_loop *loop;
	struct slu_kube_config *cfg;
	struct kube_auth *auth;
	struct slu_kube_client_options o;
	char *user_agent;
	char authority[300];
	struct kube_lane lane[SLU_KUBE_LANES];
	struct slu_kube_stats st;
	struct slu_rng rng;
	double tokens; /* of the rate limit */
	int64_t tokens_ns;
	struct slu_timer rate;
	bool closing;
};

struct slu_kube_call {
	struct kube_lane *lane;
	enum kube_call_state state;
	struct kube_list *list;
	struct slu_kube_call *next, *prev;
	struct slu_timer deadline, pause, idle;
	enum slu_http_method method;
	uint8_t priority;
	bool repeatable, once, stream_wanted;
	char *text; /* path and query, accept, content type, one after the other */
	const char *path, *accept, *content_type;
	char *body;
	size_t body_len, max_body;
	int64_t idle_ns, timeout_ns, started_ns, sent_ns;
	slu_kube_data_fn *data;
	slu_kube_done_fn *done;
	void *arg;
	/* the current try */
	struct kube_conn *conn;
	struct slu_h2_stream *stream;
	struct slu_gunzip *gz;
	struct slu_buf answer, held;
	int status;
	bool head_seen, streaming, paused, in_data, cancel_asked;
	/* over all tries */
	unsigned tries;
	bool reauthed, may_be_done;
	struct slu_error last; /* why the last try failed */
	bool (*guard)(void *arg);
	void *guard_arg;
#ifdef SLU_CRASH_POINTS
	struct slu_timer crash;
#endif
};

/* ---- client.c: the life of a call ---- */

/* End a call that cannot be sent at all. */
void kube_call_fail(struct slu_kube_call *q, enum slu_kube_outcome o, const struct slu_error *err);
/* Count a connection that could not be opened as a try of the call, which may end the call. */
void kube_call_unreached(struct slu_kube_call *q, const struct slu_error *err);
void kube_call_move(struct slu_kube_call *q, enum kube_call_state to);
/* Give the caller its one answer and free q. */
void kube_call_finish(struct slu_kube_call *q, enum slu_kube_outcome o, const char *reason,
		      const char *cause, int64_t retry_after_ns);
/* Try again after a pause; false: the call has been tried often enough. */
bool kube_call_retry(struct slu_kube_call *q, int64_t delay_ns);
bool kube_call_repeatable(const struct slu_kube_call *q); /* whatever the last try did */
bool kube_call_writes(const struct slu_kube_call *q);
void kube_call_idle(void *arg); /* timer of streams: no byte came for too long */

void kube_list_add(struct kube_list *l, struct slu_kube_call *q);
void kube_list_del(struct slu_kube_call *q);
int64_t kube_backoff(struct slu_kube_client *c, unsigned n);

/* ---- try.c: one try of a call ---- */

/* Put a queued request on a connection that has room. */
void kube_call_start(struct slu_kube_call *q, struct kube_conn *k, const char *authorization);
void kube_call_head(struct slu_kube_call *q, struct slu_h2_stream *s);
void kube_call_data(struct slu_kube_call *q, const uint8_t *p, size_t n);
void kube_call_end(struct slu_kube_call *q);
void kube_call_cut(struct slu_kube_call *q, uint32_t code, bool refused);
/* Hand bytes of the body to the caller, or add them to the answer.  Non-zero: the call is over. */
int kube_call_deliver(struct slu_kube_call *q, const uint8_t *p, size_t n);

/* ---- pool.c ---- */

void kube_lane_init(struct slu_kube_client *c, enum slu_kube_lane id, uint32_t max_conns);
/* At the end of this round of the loop, send all requests that can be sent. */
void kube_lane_wake(struct kube_lane *l);
void kube_lane_close(struct kube_lane *l);

/* ---- points.c ---- */

#ifdef SLU_CRASH_POINTS
void kube_crash_point(const struct slu_kube_call *q, const char *when);
/* "sent" once the bytes have left. */
void kube_crash_sent(struct slu_kube_call *q);
#else
#define kube_crash_point(q, when) ((void)0)
#define kube_crash_sent(q)        ((void)0)
#endif

/* ---- status.c ---- */

/* "create pods/binding \"web-0\" in namespace \"default\"" from a request. */
void kube_describe(enum slu_http_method m, const char *path, char *out, size_t size);
/* Message and reason of a Status in JSON or protobuf; "" where it has none. */
void kube_status_read(const char *content_type, const char *body, size_t n, char *message,
		      size_t message_size, char *reason, size_t reason_size);
/* The outcome that an HTTP status means. */
enum slu_kube_outcome kube_outcome_of(int status, const char *reason);
