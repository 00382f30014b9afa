/* dial.h — sockets: connecting out, listening, names of peers. */
#pragma once
#include "net/http.h"
#include "net/loop.h"

struct slu_dial; /* an attempt under way */

/* `fd` is a connected non-blocking socket that now belongs to the callee, or a negative errno with
 * the sentence in err. */
typedef void slu_dial_fn(void *arg, int fd, const struct slu_error *err);

/* Resolve and connect; the addresses of a name are tried in turn, beginning with number `rotate`
 * modulo their count.  fn is called exactly once, never from inside, unless cancelled.
 * 0 or -ENOMEM. */
int slu_dial_start(struct slu_loop *l, const struct slu_addr *a, int64_t timeout_ns,
		   unsigned rotate, slu_dial_fn *fn, void *arg, struct slu_dial **out);
void slu_dial_cancel(struct slu_dial *d);

/* A listening non-blocking socket; see slu_server_listen() for the rules about unix sockets. */
int slu_listen(const struct slu_addr *a, unsigned mode, uint16_t *port, struct slu_error *err);

/* TCP_NODELAY and keep-alive; harmless on unix sockets. */
void slu_socket_tune(int fd);
/* "10.0.0.7:40312" or "unix". */
void slu_socket_peer(int fd, char *out, size_t size);
