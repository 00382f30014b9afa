/* Recipes, with a ceiling on what they may make. */
#include "graph_check.h"

FUZZ_READER(slu_read_grug_max(g, text, size, 20000, &msg))
