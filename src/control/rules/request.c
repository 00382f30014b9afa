#include "control/rules/request.h"

static void put_str(struct slu_buf *b, const char *s)
{
	slu_buf_add(b, s, strlen(s) + 1);
}

static void num(struct slu_buf *b, int64_t v)
{
	slu_buf_add(b, &v, sizeof v);
}

int slu_request_need(const struct slu_kpodspec *s, struct slu_buf *b)
{
	num(b, s->nrequests | (s->flags & SLU_POD_ALONE ? 1 << 20 : 0) |
		       (s->flags & SLU_POD_PINS_CPUS ? 1 << 21 : 0));
	for (uint16_t i = 0; i < s->nrequests; i++) {
		put_str(b, s->requests[i].name);
		num(b, s->requests[i].amount);
	}
	return b->error;
}

static void put_term(struct slu_buf *b, const struct slu_kterm *t)
{
	const struct slu_kexpr *list[] = { t->exprs, t->fields };
	uint16_t n[] = { t->nexprs, t->nfields };

	for (int k = 0; k < 2; k++) {
		num(b, n[k]);
		for (uint16_t i = 0; i < n[k]; i++) {
			const struct slu_kexpr *e = &list[k][i];

			put_str(b, e->key);
			num(b, e->op);
			num(b, e->nvalues);
			for (uint16_t j = 0; j < e->nvalues; j++)
				put_str(b, e->values[j]);
		}
	}
}

int slu_request_where(const char *ns, const struct slu_kpodspec *s, struct slu_buf *b)
{
	num(b, s->nnode_selector);
	for (uint16_t i = 0; i < s->nnode_selector; i++) {
		put_str(b, s->node_selector[i].key);
		put_str(b, s->node_selector[i].value);
	}
	num(b, (s->flags & SLU_POD_NODE_AFFINITY) ? s->nrequired : -1);
	for (uint16_t i = 0; i < s->nrequired; i++)
		put_term(b, &s->required[i]);
	num(b, s->npreferred);
	for (uint16_t i = 0; i < s->npreferred; i++) {
		num(b, s->preferred[i].weight);
		put_term(b, &s->preferred[i].term);
	}
	num(b, s->ntolerations);
	for (uint16_t i = 0; i < s->ntolerations; i++) {
		const struct slu_ktoleration *t = &s->tolerations[i];

		put_str(b, t->key);
		put_str(b, t->value);
		num(b, t->op << 8 | t->effect);
	}
	num(b, s->nhost_ports);
	for (uint16_t i = 0; i < s->nhost_ports; i++) {
		put_str(b, s->host_ports[i].ip);
		num(b, (int64_t)s->host_ports[i].port << 8 | s->host_ports[i].proto);
	}
	num(b, s->nclaims);
	if (s->nclaims)
		put_str(b, ns);
	for (uint16_t i = 0; i < s->nclaims; i++)
		put_str(b, s->claims[i]);
	return b->error;
}

int slu_request_check(const struct slu_kpod *pod, int64_t max, struct slu_error *err)
{
	const struct slu_kpodspec *s = &pod->spec;

	if (pod->o.flags & SLU_KOBJ_BAD_AMOUNT)
		return slu_fail(err, -EINVAL, "%s",
				pod->o.problem && *pod->o.problem
					? pod->o.problem
					: "a resource amount is negative or too large to count");
	for (uint16_t i = 0; i < s->nrequests; i++)
		if (s->requests[i].amount < 0 || s->requests[i].amount > max)
			return slu_fail(err, -EINVAL,
					"request of %s is outside what can be counted",
					s->requests[i].name);
	return 0;
}

void slu_request_text(const struct slu_kpodspec *s, struct slu_buf *b)
{
	size_t start = b->n;

	for (uint16_t i = 0; i < s->nrequests; i++) {
		const struct slu_kamount *a = &s->requests[i];
		int64_t v = a->amount;

		if (b->n != start)
			slu_buf_puts(b, ", ");
		if (!strcmp(a->name, "cpu")) {
			if (v % 1000)
				slu_buf_printf(b, "%" PRId64 "m cpu", v);
			else
				slu_buf_printf(b, "%" PRId64 " cpu", v / 1000);
		} else if (v && v % (1 << 30) == 0) {
			slu_buf_printf(b, "%" PRId64 "Gi %s", v >> 30, a->name);
		} else if (v && v % (1 << 20) == 0) {
			slu_buf_printf(b, "%" PRId64 "Mi %s", v >> 20, a->name);
		} else {
			slu_buf_printf(b, "%" PRId64 " %s", v, a->name);
		}
	}
	if (b->n == start)
		slu_buf_puts(b, "nothing");
}
