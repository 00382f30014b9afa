/* kubefake.h — a pretend API server on the test's own loop, for answers a real one will not give.
 */
#pragma once
#include "tap.h"

#include "kube/client.h"
#include "net/conn.h"
#include "net/dial.h"
#include "net/server.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct fake {
	struct slu_loop *loop;
	struct slu_server *server;
	int port;
	char dir[64];
	char kubeconfig[128];
};

__attribute__((unused)) static void fake_write(const char *path, const char *text)
{
	FILE *fp = fopen(path, "w");

	fputs(text, fp);
	fclose(fp);
}

/* A loop and an empty folder. */
__attribute__((unused)) static void fake_begin(struct fake *f)
{
	memset(f, 0, sizeof *f);
	f->loop = slu_loop_new();
	snprintf(f->dir, sizeof f->dir, "/tmp/sluice-fake-XXXXXX");
	if (!mkdtemp(f->dir))
		abort();
	snprintf(f->kubeconfig, sizeof f->kubeconfig, "%s/config", f->dir);
}

__attribute__((unused)) static void fake_serve(struct fake *f, slu_http_handler *h, void *arg,
					       struct slu_tls *tls, uint32_t max_streams)
{
	struct slu_server_options o = { .handler = h, .arg = arg, .max_streams = max_streams };
	struct slu_addr a;

	slu_addr_parse("127.0.0.1:0", &a, NULL);
	f->server = slu_server_new(f->loop, &o);
	f->port = slu_server_port(f->server, slu_server_listen(f->server, &a, tls, 0, NULL));
}

/* A kubeconfig for it; `cluster` and `user` are further lines of YAML, indented by four. */
__attribute__((unused)) static struct slu_kube_config *
fake_config(struct fake *f, const char *scheme, const char *cluster, const char *user)
{
	struct slu_kube_config_options o = { .path = f->kubeconfig };
	struct slu_kube_config *c = NULL;
	struct slu_error err = { 0 };
	FILE *fp = fopen(f->kubeconfig, "w");

	fprintf(fp,
		"apiVersion: v1\nkind: Config\ncurrent-context: x\n"
		"contexts:\n- name: x\n  context: {cluster: c, user: u}\n"
		"clusters:\n- name: c\n  cluster:\n    server: %s://127.0.0.1:%d\n%s"
		"users:\n- name: u\n  user:\n%s",
		scheme, f->port, cluster, *user ? user : "    {}\n");
	fclose(fp);
	if (slu_kube_config_load(&o, &c, &err) < 0)
		printf("# %s\n", err.text);
	return c;
}

__attribute__((unused)) static void fake_end(struct fake *f)
{
	char cmd[128];

	slu_server_free(f->server);
	slu_loop_free(f->loop);
	/* Only files the test itself wrote are in there. */
	static const char *const names[] = { "config",   "token",   "plugin", "ca.pem",
					     "cert.pem", "key.pem", "count",  "second" };
	for (size_t i = 0; i < SLU_LEN(names); i++) {
		snprintf(cmd, sizeof cmd, "%s/%s", f->dir, names[i]);
		unlink(cmd);
	}
	rmdir(f->dir);
}

/* ---- a server that plays back bytes ---- */

struct canned {
	struct slu_loop *loop;
	int fd;
	const uint8_t *bytes; /* the first `early` at once, the rest after a request's head */
	size_t n, early;
	int accepted;
	bool close_after;
	struct slu_timer look;
	struct canned_conn {
		struct canned *c;
		struct slu_conn *conn;
		struct slu_buf in;
		size_t sent;
		bool all;
	} conn[64];
};

static void canned_open(void *arg, const char *alpn)
{
	(void)arg, (void)alpn;
}
/* Whether a HEADERS frame has arrived. */
static bool canned_asked(const struct slu_buf *b)
{
	for (size_t at = 24; at + 9 <= b->n;) {
		const uint8_t *f = (const uint8_t *)b->p + at;

		if (f[3] == 1)
			return true;
		at += 9 + ((size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2]);
	}
	return false;
}

static int canned_data(void *arg, const uint8_t *p, size_t n, struct slu_error *err)
{
	struct canned_conn *k = arg;

	(void)err;
	slu_buf_add(&k->in, p, n);
	slu_conn_kick(k->conn);
	return 0;
}
static int canned_fill(void *arg, struct slu_buf *out, struct slu_error *err)
{
	struct canned_conn *k = arg;
	struct canned *c = k->c;

	(void)err;
	if (!k->in.n)
		return 0;
	if (k->sent < c->early) {
		slu_buf_add(out, c->bytes, c->early);
		k->sent = c->early;
	}
	if (!k->all && (c->early == c->n || canned_asked(&k->in))) {
		slu_buf_add(out, c->bytes + k->sent, c->n - k->sent);
		k->all = true;
		if (c->close_after)
			slu_conn_finish(k->conn);
	}
	return 0;
}
static void canned_closed(void *arg, int code, const struct slu_error *err)
{
	(void)code, (void)err;
	((struct canned_conn *)arg)->conn = NULL;
}

static void canned_look(void *arg)
{
	static const struct slu_conn_ops ops = { canned_open, canned_data, canned_fill,
						 canned_closed };
	struct canned *c = arg;
	int fd = c->accepted < 64 ? accept4(c->fd, NULL, NULL, SOCK_NONBLOCK) : -1;

	if (fd >= 0) {
		struct canned_conn *k = &c->conn[c->accepted++];

		k->c = c;
		k->in = SLU_BUF_INIT(1 << 20);
		slu_conn_open(c->loop, fd, NULL, NULL, &ops, k, &k->conn, NULL);
	}
	slu_timer_start(&c->look, c->loop, SLU_NS_PER_MS, canned_look, c);
}

/* Returns the port. */
__attribute__((unused)) static int canned_begin(struct canned *c, struct slu_loop *l,
						const void *bytes, size_t n, size_t early,
						bool close_after)
{
	struct slu_addr a;
	uint16_t port;

	memset(c, 0, sizeof *c);
	c->loop = l;
	c->bytes = bytes;
	c->n = n;
	c->early = early;
	c->close_after = close_after;
	slu_addr_parse("127.0.0.1:0", &a, NULL);
	c->fd = slu_listen(&a, 0, &port, NULL);
	canned_look(c);
	return port;
}

__attribute__((unused)) static void canned_end(struct canned *c)
{
	slu_timer_stop(&c->look);
	for (int i = 0; i < c->accepted; i++)
		slu_conn_close(c->conn[i].conn), slu_buf_done(&c->conn[i].in);
	close(c->fd);
}
