#include "serve/budget.h"

#include <stdio.h>

/* Beyond this number, a new address takes over the purse of the address that called least recently. */
#define PURSES 256

struct purse {
	char address[48]; /* "": free */
	int64_t left_ns;  /* negative: a debt */
	int64_t at_ns;    /* when left_ns was computed */
};

struct slu_budget {
	struct purse all;
	struct purse each[PURSES];
};

struct slu_budget *slu_budget_new(void)
{
	struct slu_budget *b = slu_calloc(1, sizeof *b);

	if (b)
		b->all.left_ns = SLU_BUDGET_ALL_BURST_NS;
	return b;
}

void slu_budget_free(struct slu_budget *b)
{
	slu_free(b);
}

static void refill(struct purse *p, int64_t now_ns, int64_t percent, int64_t burst_ns)
{
	int64_t passed = now_ns - p->at_ns;

	if (passed <= 0)
		return;
	p->left_ns = SLU_MIN(p->left_ns + passed / 100 * percent, burst_ns);
	p->at_ns = now_ns;
}

static struct purse *purse_of(struct slu_budget *b, const char *peer, int64_t now_ns)
{
	const char *colon = strrchr(peer, ':');
	struct purse *oldest = &b->each[0];
	char address[sizeof oldest->address];

	snprintf(address, sizeof address, "%.*s", (int)(colon ? colon - peer : (int)strlen(peer)),
		 peer);
	for (int i = 0; i < PURSES; i++) {
		struct purse *p = &b->each[i];

		if (!strcmp(p->address, address)) {
			refill(p, now_ns, SLU_BUDGET_SHARE_PERCENT, SLU_BUDGET_BURST_NS);
			return p;
		}
		if (!*oldest->address)
			continue;
		if (!*p->address || p->at_ns < oldest->at_ns)
			oldest = p;
	}
	if (!*oldest->address)
		oldest->left_ns = SLU_BUDGET_BURST_NS;
	strcpy(oldest->address, address);
	refill(oldest, now_ns, SLU_BUDGET_SHARE_PERCENT, SLU_BUDGET_BURST_NS);
	return oldest;
}

bool slu_budget_allows(struct slu_budget *b, const char *peer, int64_t now_ns)
{
	refill(&b->all, now_ns, SLU_BUDGET_ALL_SHARE_PERCENT, SLU_BUDGET_ALL_BURST_NS);
	return purse_of(b, peer, now_ns)->left_ns > 0 && b->all.left_ns > 0;
}

void slu_budget_spend(struct slu_budget *b, const char *peer, int64_t took_ns, int64_t now_ns)
{
	purse_of(b, peer, now_ns)->left_ns -= took_ns;
	b->all.left_ns -= took_ns;
}
