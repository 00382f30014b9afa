/* again.h — complete the work that was left undone when memory ran out. */
#pragma once
#include "control/frame/frame.h"

void core_look_again(struct slu_core *c);   /* at everything, when it is time */
void core_memory_watch(struct slu_core *c); /* at the end of a cycle: whether memory ran out */
