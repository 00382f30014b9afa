/* What a person took out of the queue stays out: it is noted on the object that makes the members,
 * where a restart, another replica and a reader of the manifest find it.  Whoever asks for
 * something is answered when it is in the store: what was answered survives a crash in the next
 * moment. */
#include "control/core_i.h"

bool core_cancel_noted(const struct slu_group_source *src)
{
	const char *v = slu_group_note(src, SLU_CANCELLED);

	return v && !strcmp(v, "true");
}

void core_cancel_note(struct slu_core *c, struct group *g)
{
	const struct slu_kowner *maker;
	struct slu_group_source src;
	struct slu_rec_write w = { .verb = SLU_WRITE_ANNOTATE,
				   .kind = SLU_KIND_POD,
				   .ns = g->ns,
				   .text = g->cancelled ? "{\"" SLU_CANCELLED "\":\"true\"}"
							: "{\"" SLU_CANCELLED "\":null}" };
	const struct slu_kmeta *m;

	if (!g->pod.n)
		return;
	core_source(c, g->pod.p[0]->k, &src);
	m = &src.pod->o.meta;
	if (src.n_owners) {
		m = &src.owner[src.n_owners - 1]->meta;
		w.kind = (enum slu_kkind)src.owner[src.n_owners - 1]->kind;
	}
	w.name = m->name;
	w.uid = m->uid;
	maker = slu_kmeta_controller(m);
	if (core_phantom_is(m->uid) && maker) {
		w.kind = SLU_KIND_FLUXJOB;
		w.name = maker->name;
		w.uid = maker->uid;
	}
	core_write(c, &w);
}

/* ---- answers ---- */

bool core_answer_later(struct slu_core *c, struct slu_rec_ask *a, const char *text)
{
	struct core_answer x = { .ask = a, .ticket = UINT64_MAX };

	if (!a->answer || !slu_intents_kept(c->door) || c->store > SLU_JOURNAL_OK)
		return false;
	x.text = slu_strdup(text);
	if (!x.text || slu_vec_push(&c->answer, x) < 0) {
		slu_free(x.text);
		return false;
	}
	return true;
}

void core_answers_sent(struct slu_core *c, uint64_t ticket)
{
	for (uint32_t i = 0; i < c->answer.n; i++)
		if (c->answer.p[i].ticket == UINT64_MAX)
			c->answer.p[i].ticket = ticket;
}

static void answer(struct core_answer *x)
{
	x->ask->answer(x->ask->arg, 0, x->text);
	x->ask->answer = NULL;
	x->ask->base.free(&x->ask->base);
	slu_free(x->text);
}

/* During an outage nobody waits: everything is written anew afterwards. */
void core_answers(struct slu_core *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->answer.n; i++) {
		struct core_answer *x = &c->answer.p[i];

		if (c->store <= SLU_JOURNAL_OK &&
		    (x->ticket == UINT64_MAX || !slu_intents_durable(c->door, x->ticket)))
			c->answer.p[kept++] = *x;
		else
			answer(x);
	}
	c->answer.n = kept;
}

void core_answers_done(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->answer.n; i++) {
		c->answer.p[i].ask->base.free(&c->answer.p[i].ask->base);
		slu_free(c->answer.p[i].text);
	}
	slu_vec_done(&c->answer);
}
