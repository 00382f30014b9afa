/* budget.h — how much of a thread's time unauthenticated callers may take.
 *
 * Each address has a purse of time that refills slowly, and so have all addresses together.  Work
 * is paid for after it is done, so one request may overdraw a purse; the next is refused until the
 * debt is paid.  One flooding address never uses up the share of another.  One thread owns the budget. */
#pragma once
#include "base/base.h"

/* The share of the thread's time that one address and all addresses together may take, and the time each may take at
 * once. */
#define SLU_BUDGET_SHARE_PERCENT     20
#define SLU_BUDGET_BURST_NS          INT64_C(1000000000)
#define SLU_BUDGET_ALL_SHARE_PERCENT 50
#define SLU_BUDGET_ALL_BURST_NS      INT64_C(2000000000)

struct slu_budget;

/* New budget with full purses.  Returns NULL if memory runs out. */
struct slu_budget *slu_budget_new(void);
void slu_budget_free(struct slu_budget *b);

/* Whether a caller may be served now.  `peer` is "address:port"; the port does not matter. */
bool slu_budget_allows(struct slu_budget *b, const char *peer, int64_t now_ns);
/* Charge the caller for the time that serving took. */
void slu_budget_spend(struct slu_budget *b, const char *peer, int64_t took_ns, int64_t now_ns);
