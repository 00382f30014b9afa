/* Every message of the services from any bytes: what was read and written again reads the same, and
 * an Init that arrives in pieces reads as the whole does.  First byte: which message. */
#include "fluxion/messages.h"
#include "fuzz.h"

static const struct slu_msg *const messages[] = {
	&slu_cli_match,   &slu_cli_matched,   &slu_cli_cancel, &slu_cli_cancelled,
	&slu_ext_nothing, &slu_ext_resources, &slu_ext_ask,    &slu_ext_group,
	&slu_n_match,     &slu_n_matched,     &slu_n_cancel,   &slu_n_cancelled,
	&slu_f_init,      &slu_f_initialized, &slu_f_match,    &slu_f_matched,
	&slu_f_cancel,    &slu_f_cancelled,   &slu_f_grow,     &slu_f_grown,
	&slu_f_shrink,    &slu_f_shrunk,
};

union any {
	struct slu_cli_match a;
	struct slu_cli_matched b;
	struct slu_n_match c;
	struct slu_n_matched d;
	struct slu_f_matched e;
	struct slu_f_init f;
	struct slu_ext_group g;
};

static int begin_text(void *arg)
{
	slu_buf_reset(arg);
	return 0;
}

static int add_text(void *arg, const char *p, size_t n)
{
	must(n > 0);
	return slu_buf_add(arg, p, n);
}

static bool same_text(const struct slu_text *a, const char *p, size_t n)
{
	return a->n == n && (!n || !memcmp(a->p, p, n));
}

static void check_pieces(const uint8_t *p, size_t n, size_t piece)
{
	struct slu_f_init whole = { 0 }, parts = { 0 };
	struct slu_error a = { 0 }, b = { 0 };
	struct slu_arena arena = { 0 };
	struct slu_buf text = SLU_BUF_INIT(1 << 24);
	struct slu_msg_stream s = { .m = &slu_f_init,
				    .num = 2,
				    .begin = begin_text,
				    .text = add_text,
				    .arg = &text,
				    .rest = SLU_BUF_INIT(1 << 24) };
	int rc = slu_msg_read(&slu_f_init, p, n, &whole, &arena, &a);

	for (size_t i = 0; i < n; i += piece)
		must(!slu_msg_stream_feed(&s, p + i, SLU_MIN(piece, n - i)));
	must(slu_msg_stream_end(&s, &parts, &arena, &b) == rc);
	must(!strcmp(a.text, b.text));
	must(rc < 0 || (same_text(&whole.policy, parts.policy.p, parts.policy.n) &&
			same_text(&whole.jgf, text.p, text.n)));
	slu_buf_done(&s.rest);
	slu_buf_done(&text);
	slu_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slu_msg *m;
	struct slu_arena a = { 0 };
	struct slu_error err = { 0 };
	struct slu_buf once = SLU_BUF_INIT(1 << 24), twice = SLU_BUF_INIT(1 << 24);
	union any x, y;

	if (!size)
		return 0;
	m = messages[data[0] % SLU_LEN(messages)];
	must(m->size <= sizeof x);
	memset(&x, 0, sizeof x);
	memset(&y, 0, sizeof y);
	slu_flux_match_dialect(data + 1, size - 1);
	slu_flux_cancel_dialect(data + 1, size - 1);
	check_pieces(data + 1, size - 1, 1);
	check_pieces(data + 1, size - 1, 2 + size % 9);
	if (slu_msg_read(m, data + 1, size - 1, &x, &a, &err) < 0) {
		must(err.text[0]);
	} else {
		slu_msg_write(m, &x, &once);
		must(!once.error);
		must(!slu_msg_read(m, once.p, once.n, &y, &a, &err));
		slu_msg_write(m, &y, &twice);
		must(once.n == twice.n && (!once.n || !memcmp(once.p, twice.p, once.n)));
	}
	slu_buf_done(&once);
	slu_buf_done(&twice);
	slu_arena_done(&a);
	return 0;
}
