#include "net/server_internal.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define DEFAULT_CONNECTIONS 1024u
#define DEFAULT_BYTES       ((size_t)128 << 20)

void net_server_pool_init(struct server_pool *g, const struct slu_pool_options *o,
			  uint32_t connections)
{
	g->o = *o;
	if (!g->o.max_connections)
		g->o.max_connections = connections ? connections : DEFAULT_CONNECTIONS;
	if (!g->o.max_per_address)
		g->o.max_per_address = SLU_MAX(g->o.max_connections / 4, 16u);
	if (!g->o.max_bytes)
		g->o.max_bytes = DEFAULT_BYTES;
}

/* The peer's address: an IPv4 address, the network half of an IPv6 address (one host may use
 * the whole other half), or zeros for a unix socket. */
static void address_of(int fd, uint8_t out[16])
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof sa;

	memset(out, 0, 16);
	if (getpeername(fd, (struct sockaddr *)&sa, &len) < 0)
		return;
	if (sa.ss_family == AF_INET) {
		memcpy(out, &((const struct sockaddr_in *)(const void *)&sa)->sin_addr, 4);
	} else if (sa.ss_family == AF_INET6) {
		const struct in6_addr *a =
			&((const struct sockaddr_in6 *)(const void *)&sa)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(a))
			memcpy(out, a->s6_addr + 12, 4);
		else
			memcpy(out, a->s6_addr, 8);
	}
}

static struct server_source *source_of(struct server_pool *g, const uint8_t address[16])
{
	struct server_source *s = g->sources;

	while (s && memcmp(s->address, address, 16))
		s = s->next;
	return s;
}

/* ---- making room ---- */

enum standing { STRANGER, IDLE, RECEIVING, BUSY };

/* What a connection would lose by being closed: nothing while its first request has never been
 * complete, little while it waits, most while a handler has one of its requests. */
static enum standing standing_of(const struct server_peer *p)
{
	for (const struct slu_exchange *x = p->exchanges; x; x = x->next)
		if (x->handed)
			return BUSY;
	if (!p->asked)
		return STRANGER;
	return p->receiving || p->exchanges ? RECEIVING : IDLE;
}

/* The connection to close for a newcomer of `from` (NULL: of any address): of the address with the
 * most connections the one that loses the least, and of those the oldest. */
static struct server_peer *victim_of(const struct slu_server *s, const struct server_pool *g,
				     const struct server_source *from)
{
	struct server_peer *best = NULL;
	enum standing best_standing = BUSY;

	for (struct server_peer *p = s->peers; p; p = p->next) { /* newest first */
		enum standing st;

		if (p->pool != g || (from && p->source != from))
			continue;
		st = standing_of(p);
		if (st == BUSY)
			continue;
		if (best && best->source->connections > p->source->connections)
			continue;
		if (best && best->source->connections == p->source->connections &&
		    st > best_standing)
			continue;
		best = p;
		best_standing = st;
	}
	return best;
}

struct server_source *net_server_pool_admit(struct slu_server *s, struct server_pool *g, int fd)
{
	uint8_t address[16];
	struct server_source *from;
	struct server_peer *victim = NULL;

	address_of(fd, address);
	from = source_of(g, address);
	if (from && !g->o.one_source && from->connections >= g->o.max_per_address) {
		victim = victim_of(s, g, from);
		if (!victim)
			return NULL;
	} else if (g->connections >= g->o.max_connections) {
		victim = victim_of(s, g, NULL);
		if (!victim)
			return NULL;
	}
	if (!from) {
		from = slu_calloc(1, sizeof *from);
		if (!from)
			return NULL;
		memcpy(from->address, address, 16);
		from->next = g->sources;
		g->sources = from;
	}
	from->connections++; /* before the victim, perhaps the last of its address, goes */
	g->connections++;
	if (victim) {
		s->st.evicted++;
		net_server_peer_drop(victim);
	}
	return from;
}

void net_server_pool_leave(struct server_pool *g, struct server_source *from)
{
	g->connections--;
	if (--from->connections)
		return;
	for (struct server_source **at = &g->sources; *at; at = &(*at)->next)
		if (*at == from) {
			*at = from->next;
			break;
		}
	slu_free(from);
}

/* ---- bytes ---- */

static void count_bytes(struct server_peer *p, size_t now)
{
	p->pool->bytes += now - p->weight;
	p->source->bytes += now - p->weight;
	p->weight = now;
}

/* Close the heaviest connection of the heaviest address until the rest fits. */
static void shed(void *arg)
{
	struct server_pool *g = arg;

	while (g->bytes > g->o.max_bytes) {
		struct server_peer *worst = NULL;

		for (struct server_peer *p = g->server->peers; p; p = p->next) {
			if (p->pool != g || !p->weight)
				continue;
			if (!worst || p->source->bytes > worst->source->bytes ||
			    (p->source == worst->source && p->weight > worst->weight))
				worst = p;
		}
		if (!worst)
			return; /* only requests with handlers hold bytes, and their answers free them */
		g->server->st.shed++;
		net_server_peer_drop(worst);
	}
}

void net_server_pool_weigh(struct server_peer *p)
{
	size_t now = p->sniff.cap;

	if (p->dead)
		return;
	if (p->h1)
		now += slu_h1_bytes(p->h1);
	if (p->h2)
		now += slu_h2_bytes(p->h2);
	for (const struct slu_exchange *x = p->exchanges; x; x = x->next)
		now += net_server_exchange_bytes(x);
	count_bytes(p, now);
	if (p->pool->bytes > p->pool->o.max_bytes)
		slu_task_defer(&p->pool->shed, p->s->loop, shed, p->pool);
}

void net_server_pool_forget(struct server_peer *p)
{
	count_bytes(p, 0);
}

void net_server_pool_orphan(struct slu_exchange *x)
{
	x->orphaned = net_server_exchange_bytes(x);
	x->pool->bytes += x->orphaned;
}

void net_server_pool_done(struct server_pool *g)
{
	slu_task_cancel(&g->shed);
}
