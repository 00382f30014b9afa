/* objects.h — tell the rooms that an object changed, kind by kind. */
#pragma once
#include "control/frame/frame.h"

/* A watch showed an object, or that it is gone. */
void core_object_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
/* All objects of one kind, listed again after the audit found a difference. */
void core_kind_resent(struct slu_core *c, const struct slu_rec_resent *r);
/* Take the phantoms that the room fluxjob has shown into the mirror. */
void core_phantoms_taken(struct slu_core *c);
/* Anti-affinity that is new: pods that wait and that it selects are planned again. */
void core_look_for_selected(struct slu_core *c);
/* After memory ran out: handle all pods of the mirror as if they had just been seen. */
void core_mirror_again(struct slu_core *c);
/* Tell the rooms above about pods that joined a group, and groups that were born with them. */
void core_joined(struct slu_core *c);
/* The API server's answer to a write of ours. */
void core_written(struct slu_core *c, const struct slu_rec_written *w);
