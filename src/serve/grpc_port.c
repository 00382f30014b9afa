#include "serve/grpc_port.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "serve/auth.h"
#include "serve/https.h"

#define MAX_CONNECTIONS 1024

struct slu_grpc_port {
	struct slu_grpc *grpc;
	struct slu_flux *flux;
	struct slu_auth *auth;   /* NULL: no cluster that could check tokens */
	struct slu_https *https; /* NULL: no TLS, or no Secret for its certificate */
	int listener;
};

static bool is_loopback(const char *host)
{
	struct in_addr a4;
	struct in6_addr a6;

	if (!strcmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &a4) == 1)
		return ntohl(a4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &a6) == 1 && IN6_IS_ADDR_LOOPBACK(&a6);
}

/* ---- who may call ---- */

static void call_answered(void *arg, struct slu_exchange *x, int status, const char *why)
{
	enum slu_grpc_code code = status == 200   ? SLU_GRPC_OK
				  : status == 401 ? SLU_GRPC_UNAUTHENTICATED
				  : status == 403 ? SLU_GRPC_PERMISSION_DENIED
						  : SLU_GRPC_UNAVAILABLE;

	(void)x;
	slu_grpc_allow(arg, code, why);
}

static void permit(void *arg, struct slu_grpc_call *c, struct slu_exchange *x)
{
	struct slu_grpc_port *p = arg;
	const struct slu_http_request *q = slu_exchange_request(x);

	if (q->client_cn)
		slu_grpc_allow(c, SLU_GRPC_OK, "");
	else if (p->auth && slu_headers_get(q->headers, "authorization"))
		slu_auth_check(p->auth, x, call_answered, c);
	else
		slu_grpc_allow(
			c, SLU_GRPC_UNAUTHENTICATED,
			p->auth ? "a client certificate of grpc.clientCA is needed, or a "
				  "Kubernetes token in the metadata: authorization: Bearer ..."
				: "a client certificate of grpc.clientCA is needed");
}

/* ---- life ---- */

static int listen_on(struct slu_grpc_port *p, struct slu_loop *loop, struct slu_kube_client *client,
		     const struct slu_config *c, bool open, struct slu_error *err)
{
	slu_cleanup(slu_tls_unrefp) struct slu_tls *tls = NULL;
	struct slu_addr a = { .kind = SLU_ADDR_TCP, .port = (uint16_t)c->grpc.port };
	/* On a loopback address all callers come from one address. */
	struct slu_pool_options pool = { .max_connections = MAX_CONNECTIONS, .one_source = open };
	int rc = 0;

	snprintf(a.host, sizeof a.host, "%s", c->grpc.host);
	if (!open)
		rc = slu_https_first(c, c->grpc.client_ca, &tls, err);
	if (rc < 0)
		return rc;
	p->listener = slu_grpc_listen(p->grpc, &a, tls, err);
	if (p->listener < 0)
		return slu_fail_prefix(err, p->listener, "grpc.port");
	slu_server_pool(slu_grpc_server(p->grpc), p->listener, &pool);
	if (!open && client)
		rc = slu_https_new(loop, client, slu_grpc_server(p->grpc), p->listener, c,
				   c->grpc.client_ca, &p->https, err);
	return rc;
}

int slu_grpc_port_new(struct slu_loop *loop, struct slu_kube_client *client,
		      const struct slu_config *config, const struct slu_flux_engine *engine,
		      struct slu_grpc_port **out, struct slu_error *err)
{
	slu_cleanup(slu_grpc_port_freep) struct slu_grpc_port *p = slu_calloc(1, sizeof *p);
	bool open = is_loopback(config->grpc.host);
	struct slu_grpc_options o = { .max_connections = MAX_CONNECTIONS,
				      .permit = open ? NULL : permit,
				      .arg = p };
	int rc;

	if (!open && !client && !*config->grpc.client_ca)
		return slu_fail(err, -EINVAL,
				"grpc.host: \"%s\" is not an address of this machine alone, and "
				"without a cluster only grpc.clientCA can tell who may call",
				config->grpc.host);
	if (!p)
		return slu_fail(err, -ENOMEM, "out of memory");
	p->grpc = slu_grpc_new(loop, &o);
	p->flux = slu_flux_new(engine, config->grpc.external);
	p->auth = client ? slu_auth_new(client) : NULL;
	if (!p->grpc || !p->flux || (client && !p->auth) || slu_flux_serve(p->flux, p->grpc) < 0)
		return slu_fail(err, -ENOMEM, "out of memory");
	rc = listen_on(p, loop, client, config, open, err);
	if (rc < 0)
		return rc;
	*out = slu_take(p);
	return 0;
}

uint16_t slu_grpc_port_number(const struct slu_grpc_port *p)
{
	return slu_server_port(slu_grpc_server(p->grpc), p->listener);
}

void slu_grpc_port_ready(struct slu_grpc_port *p, bool ready)
{
	slu_flux_ready(p->flux, ready);
}

void slu_grpc_port_drain(struct slu_grpc_port *p, int64_t grace_ns, slu_call_fn *fn, void *arg)
{
	slu_server_drain(slu_grpc_server(p->grpc), grace_ns, fn, arg);
}

void slu_grpc_port_free(struct slu_grpc_port *p)
{
	if (!p)
		return;
	slu_https_free(p->https);
	slu_flux_free(p->flux);
	slu_grpc_free(p->grpc);
	slu_auth_free(p->auth);
	slu_free(p);
}
