#include "control/frame/frame.h"
#include "control/rules/kinds.h"

bool slu_core_synced(const struct slu_core *c)
{
	for (size_t i = 0; i < slu_kinds_n; i++)
		if (!(c->synced & 1u << slu_kinds[i].kind))
			return false;
	return true;
}
