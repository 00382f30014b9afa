/* Names that other users chose are shown on a terminal, and control sequences in them have no
 * effect. */
#include "tap.h"

#include "cli/term.h"

#include <string.h>

static void tame(const char *in, const char *out)
{
	char text[100];

	snprintf(text, sizeof text, "%s", in);
	ok(!strcmp(slu_term_tame(text), out), "a terminal is shown \"%s\"", out);
}

int main(void)
{
	tame("", "");
	tame("plain-name.0", "plain-name.0");
	tame("n\303\244chtlich \342\230\203", "n\303\244chtlich \342\230\203");
	tame("a\033[31mred\a\n\tb\177", "a?[31mred???b?");
	tame("\xc2\x9b[2J\xc2\xa0", "?[2J\xc2\xa0");
	tame("user\342\200\256gnp.exe\342\201\251", "user?gnp.exe?");
	tame("cut \xe2", "cut \xe2");
	tame("cut \xe2\x80", "cut \xe2\x80");
	tame("cut \xc2", "cut \xc2");
	ok(slu_term_columns("") == 0 && slu_term_columns("abc") == 3, "columns of plain text");
	ok(slu_term_columns("n\xc3\xa4\xe2\x98\x83") == 3, "a character is one, however long");
	return tap_done();
}
