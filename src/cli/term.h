/* term.h — output to terminals: colours if the user wants them, a progress bar, numbers for people.
 */
#pragma once
#include "base/base.h"

/* Standard error is a terminal that understands more than plain text. */
bool slu_term_live(void);
/* Colours on standard output: a terminal, and NO_COLOR is not set. */
bool slu_term_colours(void);
int slu_term_width(void);

struct slu_progress {
	const char *label;
	double began_s, shown_s;
	bool on;
};
void slu_progress_start(struct slu_progress *p, const char *label, bool wanted);
/* Draw the bar, the share, the rate and the time left, at most ten times a second; with total 0, the amount done and
 * the time taken. */
void slu_progress_show(struct slu_progress *p, uint64_t done, uint64_t total, const char *unit);
void slu_progress_end(struct slu_progress *p);

/* Remove, in place, the characters that a terminal would obey instead of show: control characters, and those
 * that turn the direction of writing.  Names and annotations come from strangers.  Returns its
 * argument.
 */
char *slu_term_tame(char *text);
/* Characters, as far as each fills one place. */
int slu_term_columns(const char *text);

double slu_now_s(void); /* monotonic */
/* "1d 02:03:04", "02:03:04"; returns buf. */
char *slu_term_time(int64_t s, char buf[32]);
