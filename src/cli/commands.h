/* commands.h — every command there is; table.c lists them in the order of the help. */
#pragma once
#include "cli/command.h"

extern const struct slu_command slu_cmd_sim, slu_cmd_generate;

/* NULL-terminated. */
extern const struct slu_command *const slu_commands[];
