/* Host ports as resources: every node has one unit of each port.  So a busy port becomes free at some
 * time, like a processor, and does not rule its node out for ever.
 *
 * Only ports that a pod of ours asks for are counted, and only as many as the machine has resources to
 * spare.  For further ports the node set decides (cluster/shapes.c): it leaves out nodes where the port
 * is in use, and if the queue starts two such pods on one node at once, the second is taken back
 * (run/decide.c).  A port that is asked for on one address counts as the whole port. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#define PORTS_MAX 12u

static uint32_t key_of(const struct slu_khostport *p)
{
	return (uint32_t)p->port << 8 | p->proto;
}

int core_port_resource(const struct slu_core *c, const struct slu_khostport *p)
{
	for (uint32_t i = 0; i < c->cluster->port.n; i++)
		if (c->cluster->port.p[i].key == key_of(p))
			return (int)c->cluster->port.p[i].resource;
	return -ENOENT;
}

static void drop_port(struct node *n, const struct slu_khostport *p)
{
	uint64_t *pods = slu_map_get(&n->ports, key_of(p));

	if (pods && !--*pods)
		slu_map_del(&n->ports, key_of(p));
}

bool core_ports_counted(const struct slu_core *c, const struct slu_kpodspec *s)
{
	for (uint16_t i = 0; i < s->nhost_ports; i++)
		if (core_port_resource(c, &s->host_ports[i]) < 0)
			return false;
	return true;
}

bool core_ports_want(struct slu_core *c, const struct slu_kpodspec *s)
{
	static const char *const proto[] = {
		[SLU_PROTO_TCP] = "TCP", [SLU_PROTO_UDP] = "UDP", [SLU_PROTO_SCTP] = "SCTP"
	};
	bool news = false;

	for (uint16_t i = 0; i < s->nhost_ports && c->cluster->port.n < PORTS_MAX; i++) {
		const struct slu_khostport *p = &s->host_ports[i];
		char name[40];
		int resource;

		if (core_port_resource(c, p) >= 0)
			continue;
		snprintf(name, sizeof name, "hostPort %d/%s", (int)p->port,
			 p->proto < SLU_LEN(proto) ? proto[p->proto] : "?");
		resource = slu_queue_resource(c->q, name);
		if (resource < 0 ||
		    slu_vec_push(&c->cluster->port,
				 ((struct port){ key_of(p), (uint32_t)resource })) < 0)
			break; /* falls back */
		news = true;
	}
	return news;
}

int core_ports_enter(struct node *n, const struct slu_kpodspec *s)
{
	for (uint16_t i = 0; i < s->nhost_ports; i++) {
		uint64_t *pods = slu_map_get(&n->ports, key_of(&s->host_ports[i]));

		if (pods) {
			++*pods;
		} else if (slu_map_put(&n->ports, key_of(&s->host_ports[i]), 1) < 0) {
			while (i)
				drop_port(n, &s->host_ports[--i]);
			return -ENOMEM;
		}
	}
	return 0;
}

void core_ports_leave(struct node *n, const struct slu_kpodspec *s)
{
	for (uint16_t i = 0; i < s->nhost_ports; i++)
		drop_port(n, &s->host_ports[i]);
}

int core_ports_map(const struct slu_kpodspec *s, struct slu_map *out)
{
	for (uint16_t i = 0; i < s->nhost_ports; i++)
		if (slu_map_put(out, key_of(&s->host_ports[i]), 1) < 0)
			return -ENOMEM;
	return 0;
}

bool core_ports_taken(const struct node *n, const struct slu_kpodspec *s, const struct slu_map *own)
{
	/* Most nodes have few ports in use, and a user may ask for thousands. */
	if (own && n->ports.n < own->n) {
		for (uint32_t i = 0; i < n->ports.n; i++)
			if (slu_map_get(own, n->ports.e[i].key))
				return true;
		return false;
	}
	for (uint16_t i = 0; i < s->nhost_ports; i++)
		if (slu_map_get(&n->ports, key_of(&s->host_ports[i])))
			return true;
	return false;
}

bool core_ports_clash(const struct slu_core *c, struct node *n, const struct pod *p)
{
	const struct slu_kpodspec *s = &p->k->spec;
	bool taken;

	if (core_ports_counted(c, s))
		return false;
	if (p->node == n)
		core_ports_leave(n, s);
	taken = core_ports_taken(n, s, NULL);
	if (p->node == n)
		(void)core_ports_enter(n, s); /* the map has kept its room */
	return taken;
}

uint32_t core_ports_amounts(const struct slu_core *c, const struct slu_kpodspec *s,
			    struct slu_amount *out)
{
	uint32_t n = 0;

	for (uint16_t i = 0; i < s->nhost_ports; i++) {
		int resource = core_port_resource(c, &s->host_ports[i]);
		bool twice = resource < 0;

		for (uint32_t k = 0; k < n; k++)
			twice |= out[k].resource == (uint32_t)resource;
		if (!twice) /* the same port on two addresses is one */
			out[n++] = (struct slu_amount){ (uint32_t)resource, 1 };
	}
	return n;
}
