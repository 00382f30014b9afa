/* again.h — complete the work that was left undone when memory ran out. */
#pragma once
#include "control/frame/frame.h"

/* Check everything again, once CORE_AT_MEMORY is due. */
void core_look_again(struct slu_core *c);
/* At the end of a cycle: if memory ran out in it, set CORE_AT_MEMORY. */
void core_memory_watch(struct slu_core *c);
