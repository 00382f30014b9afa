/* sluice reserve, sluice unreserve: a Reservation is an object of the cluster, where users look for it, and
 * it outlives this process.  Sluice ends a Reservation, but never deletes it. */
#include "control/ask/ask.h"

#include <stdio.h>

#include "control/cluster/cluster.h"

#define NO_RUN UINT64_MAX /* no run: the answer is for a person */

static int write_for(struct slu_core *c, struct slu_rec_ask *a, const struct slu_rec_write *like,
		     const char *text, struct slu_error *err)
{
	struct resize r = { .serial = ++c->serial, .ask = a };
	struct slu_rec_write w = *like;

	snprintf(r.text, sizeof r.text, "%s", text);
	if (slu_vec_push(&c->asks->resize, r) < 0)
		return slu_fail(err, -ENOMEM, "out of memory");
	w.kind = SLU_KIND_RESERVATION;
	w.run = NO_RUN;
	w.serial = r.serial;
	w.ns = a->ns;
	w.name = a->name;
	core_write(c, &w);
	return 1;
}

/* End the Reservation now; one that has not begun is moved into the past. */
static int end_reservation(struct slu_core *c, struct slu_rec_ask *a, struct slu_error *err)
{
	const struct reservation *r = core_reservation(c, a->ns, a->name);
	char from[32], to[32], spec[160], text[240];

	if (!r)
		return slu_fail(err, -ENOENT, "no reservation \"%s\" in namespace %s", a->name,
				a->ns);
	if (!strcmp(r->phase, "Ended"))
		return slu_fail(err, 0, "%s is over already", a->name);
	core_stamp(from, SLU_MIN(r->k->start_us / 1000000, c->now_s - 1));
	core_stamp(to, c->now_s);
	snprintf(spec, sizeof spec, "{\"start\":\"%s\",\"end\":\"%s\",\"every\":null}", from, to);
	snprintf(text, sizeof text, "reservation %.200s is over", a->name);
	return write_for(c, a,
			 &(struct slu_rec_write){
				 .verb = SLU_WRITE_SPEC, .uid = r->k->o.meta.uid, .text = spec },
			 text, err);
}

int core_ask_reserve(struct slu_core *c, struct slu_rec_ask *a, struct slu_error *err)
{
	char text[240];

	if (a->what == SLU_ASK_UNRESERVE)
		return end_reservation(c, a, err);
	if (core_reservation(c, a->ns, a->name))
		return slu_fail(err, -EINVAL,
				"there is a reservation \"%s\" in namespace %s already", a->name,
				a->ns);
	snprintf(text, sizeof text,
		 "reservation %.160s was created; sluice reservations shows its nodes", a->name);
	return write_for(c, a, &(struct slu_rec_write){ .verb = SLU_WRITE_CREATE, .text = a->text },
			 text, err);
}
