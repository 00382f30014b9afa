/* objects.h — what each kind of object that changed means to the rooms. */
#pragma once
#include "control/frame/frame.h"

void core_object_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
