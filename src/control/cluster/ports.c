/* Host ports as resources: one unit of each on every node, so that a busy port is
 * something that becomes free at a time, like a processor, and not a node that can never be used.
 *
 * Only ports that a pod of ours asks for are counted.  The machine has few resources; when so many
 * ports are counted the next ones fall back to the node set (cluster/shapes.c): no two on a node, and
 * nodes where the port is taken are left out until it is free; of two that the queue starts there
 * at once the second is taken back (run/decide.c).  A port asked for on one address
 * only counts as the whole port. */
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

bool core_ports_clash(const struct slu_core *c, const struct node *n, const struct pod *p)
{
	if (core_ports_counted(c, &p->k->spec))
		return false;
	for (uint32_t i = 0; i < n->pod.n; i++)
		if (n->pod.p[i] != p &&
		    slu_predicate_ports_collide(&p->k->spec, &n->pod.p[i]->k->spec))
			return true;
	return false;
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
