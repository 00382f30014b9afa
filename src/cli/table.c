#include "cli/commands.h"

const struct slu_command *const slu_commands[] = {
	&slu_cmd_jobs,      &slu_cmd_job,
	&slu_cmd_why,       &slu_cmd_nodes,
	&slu_cmd_queues,    &slu_cmd_config,
	&slu_cmd_cancel,    &slu_cmd_hold,
	&slu_cmd_release,   &slu_cmd_resize,
	&slu_cmd_priority,  &slu_cmd_limit,
	&slu_cmd_reserve,   &slu_cmd_reservations,
	&slu_cmd_unreserve, &slu_cmd_drain,
	&slu_cmd_undrain,   &slu_cmd_store,
	&slu_cmd_replay,    &slu_cmd_sim,
	&slu_cmd_generate,  NULL,
};
