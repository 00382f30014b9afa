#include "cli/commands.h"

const struct slu_command *const slu_commands[] = {
	&slu_cmd_sim,
	&slu_cmd_generate,
	NULL,
};
