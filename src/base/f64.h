/* f64.h — floating-point numbers as text, always with a decimal point, in any locale: the program that links
 * libsluice chooses its locale. */
#pragma once
#include "base/base.h"

/* strtod() and printf("%.*g") of the C locale. */
double slu_f64_parse(const char *s, char **end);
void slu_f64_print(char *out, size_t size, int digits, double v);
