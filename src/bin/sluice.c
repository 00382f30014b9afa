/* sluice — the command; installed as kubectl-sluice too. */
#include "cli/commands.h"

int main(int argc, char **argv)
{
	return slu_command_main(slu_commands, argc, argv);
}
