#include "net/h2_heads_internal.h"

#include "net/h2.h"

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3 };
#define END_STREAM 1

/* A frame of a stream that was there before this frame: is it one that must not have any? */
static uint32_t judge_old(const struct net_h2_heads *w, uint32_t id)
{
	for (size_t i = 0; i < SLU_LEN(w->ended); i++)
		if (w->ended[i] == id)
			return SLU_H2_STREAM_CLOSED;
	for (size_t i = 0; i < SLU_LEN(w->gap); i++)
		if (id > w->gap[i].from && id < w->gap[i].to)
			return SLU_H2_PROTOCOL_ERROR;
	return SLU_H2_NO_ERROR;
}

static void note_new(struct net_h2_heads *w, uint32_t id)
{
	if (id > w->last + 2) {
		w->gap[w->next_gap].from = w->last;
		w->gap[w->next_gap].to = id;
		w->next_gap = (uint8_t)((w->next_gap + 1) % NET_H2_GAPS);
	}
	w->last = id;
}

static void note_end(struct net_h2_heads *w, uint32_t id)
{
	w->ended[w->next_ended] = id;
	w->next_ended = (uint8_t)((w->next_ended + 1) % NET_H2_ENDED);
}

static uint32_t judge_head(struct net_h2_heads *w)
{
	const uint8_t *h = w->head;
	uint32_t id = (uint32_t)(h[5] & 0x7f) << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 |
		      h[8];
	uint8_t type = h[3], flags = h[4];
	uint32_t code = SLU_H2_NO_ERROR;

	w->skip = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
	w->n_head = 0;
	if (!(id & 1) || (type != DATA && type != HEADERS && type != RST_STREAM))
		return code;
	if (id <= w->last && type != RST_STREAM)
		code = judge_old(w, id);
	else if (type == HEADERS)
		note_new(w, id);
	if (!code && id <= w->last && (type == RST_STREAM || (flags & END_STREAM)))
		note_end(w, id);
	return code;
}

size_t net_h2_heads_look(struct net_h2_heads *w, const uint8_t *p, size_t n, uint32_t *code)
{
	size_t i = 0, k;

	*code = SLU_H2_NO_ERROR;
	while (i < n) {
		k = SLU_MIN(n - i, (size_t)w->skip);
		i += k;
		w->skip -= (uint32_t)k;
		if (w->skip || i == n)
			break;
		k = SLU_MIN(n - i, sizeof w->head - w->n_head);
		memcpy(w->head + w->n_head, p + i, k);
		w->n_head += (uint8_t)k;
		if (w->n_head == sizeof w->head && (*code = judge_head(w)))
			return i;
		i += k;
	}
	return n;
}
