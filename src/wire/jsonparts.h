/* jsonparts.h — a large JSON text of the shape {"…": {"…": [items], …}, …} read without holding the
 * document of all of it; jsonstream.h is for a text that is not there yet.
 *
 * The lists two objects deep are cut into parts of a bounded size; what remains of the text is the
 * outline, an ordinary document in which such a list is to be walked with slu_json_parts_each()
 * only.  Opening checks the whole text: it is accepted or refused, with the same place and words,
 * as slu_json_parse_place() would, whatever its shape. */
#pragma once
#include "base/vec.h"
#include "wire/jsonstream.h"

/* Items between two commas of one list. */
struct slu_json_part {
	size_t at, n, count;
};

struct slu_json_parts {
	struct slu_json_doc *outline;
	const char *text; /* borrowed */
	bool cut;         /* false: the outline is the whole text */
	SLU_VEC(struct slu_json_part) part;
	SLU_VEC(uint32_t) list; /* per list: the first of its parts */
};

/* A text of up to `part` bytes is not cut; in a longer text a part ends with the first item that
 * makes it at least that long.  The text must outlive the parts.  Close the parts whatever is
 * returned. */
int slu_json_parts_open(struct slu_json_parts *p, const char *text, size_t n, size_t part,
			struct slu_json_place *place);
void slu_json_parts_close(struct slu_json_parts *p);

/* Number of items of an array of the outline; anything else has none. */
size_t slu_json_parts_count(const struct slu_json_parts *p, const struct slu_json *list);
/* Call `fn` for each of them until it returns other than 0, which is returned; -ENOMEM.  An item is
 * valid during the call. */
int slu_json_parts_each(const struct slu_json_parts *p, const struct slu_json *list,
			int (*fn)(void *arg, const struct slu_json *item), void *arg);
