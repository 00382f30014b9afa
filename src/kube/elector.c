/* elector.c — the pure half of leader election: results in, requests out. */
#include "base/rng.h"
#include "kube/encode.h"
#include "kube/lease.h"

#define DURATION_S 15
#define RENEW_S    10
#define RETRY_NS   (2 * SLU_NS_PER_S)
#define LOOK_NS    (SLU_NS_PER_S / 5)

struct slu_elector {
	char *ns, *name, *id;
	int32_t duration_s, renew_s;
	int64_t retry_ns;
	struct slu_lease_handler h;
	struct slu_rng rng;

	enum slu_elector_ask under_way; /* WAIT: none */
	int64_t asked_ns;               /* when that request was made */
	int64_t wake_ns;                /* when the next round begins */
	bool leading, over;

	/* The record as last seen, and when it first looked like that, by our clock. */
	bool known, absent;
	bool look; /* the record may be out of date: read it before the next write */
	uint64_t rv;
	char *holder;
	int32_t lease_s, transitions;
	int64_t acquire_us, renew_us;
	int64_t seen_ns;
	char *told; /* the holder last reported */

	int64_t good_ns; /* start of the last accepted write */
};

int slu_elector_new(const struct slu_lease_options *o, const struct slu_lease_handler *h,
		    uint64_t seed, struct slu_elector **out, struct slu_error *err)
{
	struct slu_elector *e = slu_calloc(1, sizeof *e);

	if (!e)
		return slu_fail(err, -ENOMEM, "no memory for an election");
	e->duration_s = o->duration_s ? o->duration_s : DURATION_S;
	e->renew_s = o->renew_s ? o->renew_s : RENEW_S;
	e->retry_ns = o->retry_ns ? o->retry_ns : RETRY_NS;
	e->rng.state = seed;
	if (h)
		e->h = *h;
	e->ns = slu_strdup(o->ns ? o->ns : "");
	e->name = slu_strdup(o->name ? o->name : "");
	e->id = slu_strdup(o->id ? o->id : "");
	e->holder = slu_strdup("");
	e->told = slu_strdup("");
	if (!e->ns || !e->name || !e->id || !e->holder || !e->told) {
		slu_elector_free(e);
		return slu_fail(err, -ENOMEM, "no memory for an election");
	}
	if (!e->ns[0] || !e->name[0] || !e->id[0] || e->renew_s <= 0 ||
	    e->duration_s <= e->renew_s || e->retry_ns <= 0 ||
	    (int64_t)e->renew_s * SLU_NS_PER_S <= e->retry_ns + e->retry_ns / 5) {
		int rc = slu_fail(err, -EINVAL,
				  "lease %s/%s: namespace, name and identity must be given, and "
				  "duration (%d s) > renew (%d s) > retry (%" PRId64 " ms)",
				  e->ns, e->name, e->duration_s, e->renew_s,
				  e->retry_ns / SLU_NS_PER_MS);

		slu_elector_free(e);
		return rc;
	}
	*out = e;
	return 0;
}

void slu_elector_free(struct slu_elector *e)
{
	if (!e)
		return;
	slu_free(e->ns);
	slu_free(e->name);
	slu_free(e->id);
	slu_free(e->holder);
	slu_free(e->told);
	slu_free(e);
}

static bool is_holder(const struct slu_elector *e)
{
	return e->known && strcmp(e->holder, e->id) == 0;
}

/* Whether another replica may still act as leader.  A Lease that was deleted deposes no leader. */
static bool others(const struct slu_elector *e, int64_t now_ns)
{
	return e->holder[0] && strcmp(e->holder, e->id) != 0 &&
	       now_ns < e->seen_ns + (int64_t)e->lease_s * SLU_NS_PER_S;
}

static int64_t deadline(const struct slu_elector *e)
{
	return e->good_ns + (int64_t)e->renew_s * SLU_NS_PER_S;
}

static void lose(struct slu_elector *e)
{
	if (!e->leading)
		return;
	e->leading = false;
	if (e->h.lost)
		e->h.lost(e->h.arg);
}

/* Add up to a fifth, so that candidates do not act at the same moments.  A lease counts from the
 * moment its renewal is seen, because clocks differ; so a candidate that waits for another's
 * lease to end reads it often: a renewal seen late delays the takeover. */
static void rest_elector(struct slu_elector *e, int64_t now_ns)
{
	bool watches = others(e, now_ns) || (e->known && !is_holder(e) && e->holder[0]);
	int64_t ns = watches ? SLU_MIN(e->retry_ns, LOOK_NS) : e->retry_ns;

	e->wake_ns = now_ns + ns + (int64_t)slu_rng_below(&e->rng, (uint64_t)ns / 5 + 1);
}

static struct slu_kenc_lease lease_record(const struct slu_elector *e, int64_t now_us)
{
	bool first = e->absent && !e->holder[0] && !e->transitions;

	return (struct slu_kenc_lease){
		.holder = e->id,
		.duration_s = e->duration_s,
		.acquire_us = is_holder(e) ? e->acquire_us : now_us,
		.renew_us = now_us,
		.transitions = first || strcmp(e->holder, e->id) == 0 ? e->transitions
								      : e->transitions + 1,
	};
}

enum slu_elector_ask slu_elector_step(struct slu_elector *e, int64_t now_ns, int64_t now_us,
				      struct slu_buf *body, int64_t *wake_ns)
{
	int64_t expires = e->seen_ns + (int64_t)e->lease_s * SLU_NS_PER_S;
	enum slu_elector_ask ask = SLU_ELECTOR_WAIT;
	struct slu_kenc_lease r;

	if (e->leading && now_ns >= deadline(e))
		lose(e);
	if (e->over) {
		*wake_ns = INT64_MAX;
		return SLU_ELECTOR_WAIT;
	}
	/* Try to take another replica's lease at the moment it ends, not in the next round. */
	if (!e->look && others(e, now_ns))
		e->wake_ns = SLU_MIN(e->wake_ns, expires);
	if (e->under_way == SLU_ELECTOR_WAIT && now_ns >= e->wake_ns) {
		r = lease_record(e, now_us);
		if (!e->known) {
			ask = e->absent && !others(e, now_ns) ? SLU_ELECTOR_CREATE
							      : SLU_ELECTOR_GET;
		} else if (!e->look && (is_holder(e) || !e->holder[0] || now_ns >= expires)) {
			ask = SLU_ELECTOR_PATCH;
		} else {
			ask = SLU_ELECTOR_GET;
		}
		if (ask == SLU_ELECTOR_CREATE && slu_kenc_lease(body, e->ns, e->name, &r) < 0)
			ask = SLU_ELECTOR_WAIT;
		if (ask == SLU_ELECTOR_PATCH && slu_kenc_lease_patch(body, e->rv, &r) < 0)
			ask = SLU_ELECTOR_WAIT;
		e->under_way = ask;
		e->asked_ns = now_ns;
		if (ask == SLU_ELECTOR_WAIT)
			rest_elector(e, now_ns);
	}
	*wake_ns = e->under_way == SLU_ELECTOR_WAIT ? e->wake_ns : INT64_MAX;
	if (e->leading)
		*wake_ns = SLU_MIN(*wake_ns, deadline(e));
	return ask;
}

/* Take over the record that the server holds now.  Only a changed record restarts the clock of
 * its expiry. */
static int take_in(struct slu_elector *e, int64_t now_ns, const struct slu_klease *l)
{
	bool same = e->known && strcmp(e->holder, l->holder) == 0 && e->renew_us == l->renew_us &&
		    e->acquire_us == l->acquire_us && e->transitions == l->transitions &&
		    e->lease_s == l->duration_s;

	if (strcmp(e->holder, l->holder) != 0) {
		char *holder = slu_strdup(l->holder);

		if (!holder)
			return -ENOMEM;
		slu_free(e->holder);
		e->holder = holder;
	}
	if (!same)
		e->seen_ns = now_ns;
	e->known = true;
	e->absent = e->look = false;
	e->rv = l->o.meta.rv;
	e->lease_s = l->duration_s;
	e->transitions = l->transitions;
	e->acquire_us = l->acquire_us;
	e->renew_us = l->renew_us;
	if (strcmp(e->told, e->holder) != 0) {
		char *told = slu_strdup(e->holder);

		if (told) {
			slu_free(e->told);
			e->told = told;
			if (e->h.observed)
				e->h.observed(e->h.arg, e->told);
		}
	}
	return 0;
}

void slu_elector_answer(struct slu_elector *e, int64_t now_ns, enum slu_kube_outcome outcome,
			const struct slu_klease *l)
{
	enum slu_elector_ask asked = e->under_way;
	bool wrote = asked == SLU_ELECTOR_CREATE || asked == SLU_ELECTOR_PATCH;

	e->under_way = SLU_ELECTOR_WAIT;
	if (e->over)
		return;
	rest_elector(e, now_ns);
	if (outcome == SLU_KUBE_OK && l && take_in(e, now_ns, l) == 0) {
		if (!is_holder(e)) {
			lose(e);
			/* free or expired: take it in the same round */
			if (!wrote && (!e->holder[0] ||
				       now_ns >= e->seen_ns + (int64_t)e->lease_s * SLU_NS_PER_S))
				e->wake_ns = now_ns;
		} else if (wrote) {
			e->good_ns = e->asked_ns;
			if (!e->leading && now_ns < deadline(e)) {
				e->leading = true;
				if (e->h.leading)
					e->h.leading(e->h.arg, e->transitions);
			}
		} else {
			e->wake_ns =
				now_ns; /* ours from before a restart or a lost answer: renew it */
		}
		return;
	}
	if (outcome == SLU_KUBE_NOT_FOUND) {
		e->known = false;
		e->absent = true;
		if (asked != SLU_ELECTOR_CREATE && !others(e, now_ns))
			e->wake_ns = now_ns;
	} else if (wrote) {
		/* Another candidate was faster, or the fate of the write is unknown: read before
		 * the next write. */
		e->look = true;
		e->absent = false;
		if (outcome == SLU_KUBE_CONFLICT || outcome == SLU_KUBE_EXISTS || e->leading)
			e->wake_ns = SLU_MIN(e->wake_ns, now_ns + e->retry_ns / 4);
	}
	if (e->leading && now_ns >= deadline(e))
		lose(e);
}

bool slu_elector_release(struct slu_elector *e, int64_t now_us, struct slu_buf *body)
{
	struct slu_kenc_lease r = lease_record(e, now_us);
	bool was = e->leading && is_holder(e);

	e->over = true;
	lose(e);
	if (!was)
		return false;
	r.holder = "";
	r.duration_s = 1;
	return slu_kenc_lease_patch(body, e->rv, &r) == 0;
}

int64_t slu_elector_until(const struct slu_elector *e)
{
	return e->leading ? deadline(e) : 0;
}

bool slu_elector_held(const struct slu_elector *e, int64_t now_ns)
{
	return now_ns < slu_elector_until(e);
}

const char *slu_elector_holder(const struct slu_elector *e)
{
	return e->holder;
}
