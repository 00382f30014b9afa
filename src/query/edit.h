/* edit.h — the line a person types: editing, history and completion on a terminal, plain reading
 * everywhere else. */
#pragma once
#include <stdio.h>

#include "query/session.h"

/* Carry out lines until "quit" or the end of input.  `prompt`: show it when `in` is a terminal.
 * 0 or -ENOMEM. */
int slu_query_loop(struct slu_session *s, FILE *in, bool prompt);
