#include "control/io/leftout.h"

#include "kube/object.h"

static uint32_t find_left_out(const struct slu_leftout *l, enum slu_kkind kind, const char *ns,
			      const char *name)
{
	uint32_t i = 0;

	while (i < l->n && (l->p[i].kind != kind || strcmp(l->p[i].bad.name, name) ||
			    strcmp(l->p[i].bad.ns, ns)))
		i++;
	return i;
}

/* The order in which they were met is kept. */
static void remove_at(struct slu_leftout *l, uint32_t i)
{
	l->n--;
	memmove(&l->p[i], &l->p[i + 1], (l->n - i) * sizeof l->p[0]);
}

void slu_leftout_add(struct slu_leftout *l, enum slu_kkind kind, const struct slu_kbad *bad)
{
	uint32_t i = find_left_out(l, kind, bad->ns, bad->name);

	if (i == SLU_LEFTOUT_MAX) {
		l->more[kind] = l->list[kind] + 1;
		return;
	}
	l->n += i == l->n;
	l->p[i].kind = kind;
	l->p[i].list = l->list[kind];
	l->p[i].bad = *bad;
}

void slu_leftout_drop(struct slu_leftout *l, enum slu_kkind kind, const char *ns, const char *name)
{
	/* Every change of an object comes here, and as a rule the list is empty. */
	uint32_t i = l->n ? find_left_out(l, kind, ns, name) : 0;

	if (i < l->n)
		remove_at(l, i);
}

void slu_leftout_listed(struct slu_leftout *l, enum slu_kkind kind)
{
	for (uint32_t i = l->n; i-- > 0;)
		if (l->p[i].kind == kind && l->p[i].list != l->list[kind])
			remove_at(l, i);
	if (l->more[kind] != l->list[kind] + 1)
		l->more[kind] = 0;
	l->list[kind]++;
}

/* A cause may quote the object: no newline in it may begin a line of the report. */
static void put_clean(struct slu_buf *b, const char *text)
{
	for (; *text; text++)
		slu_buf_putc(b, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

void slu_leftout_write(const struct slu_leftout *l, struct slu_buf *b)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct slu_kbad *bad = &l->p[i].bad;

		slu_buf_printf(b, "left out: %s ", slu_kkind_info(l->p[i].kind)->kind);
		put_clean(b, bad->ns);
		if (*bad->ns)
			slu_buf_putc(b, '/');
		put_clean(b, *bad->name ? bad->name : "?");
		slu_buf_puts(b, ": ");
		put_clean(b, bad->why);
		slu_buf_putc(b, '\n');
	}
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		if (l->more[k])
			slu_buf_printf(b, "left out: more objects of kind %s\n",
				       slu_kkind_info((enum slu_kkind)k)->kind);
}
