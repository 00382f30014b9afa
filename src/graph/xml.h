/* xml.h — one pass of expat over a text, for the readers of XML. */
#pragma once
#include <expat.h>

#include "base/base.h"

struct slu_xml {
	XML_Parser parser; /* NULL outside slu_xml_parse */
	int rc;            /* the first error, 0 so far */
	bool next;         /* -EINVAL because another document or element begins at `at` */
	size_t at;
};

/* Call back for every element and, if `on_text` is given, for text between them, with `arg`.
 * Returns x->rc: 0, what slu_xml_stop gave, -EFBIG (longer than max), -EINVAL (no XML), -ENOMEM. */
int slu_xml_parse(struct slu_xml *x, void *arg, const char *text, size_t n, size_t max,
		  XML_StartElementHandler on_start, XML_EndElementHandler on_end,
		  XML_CharacterDataHandler on_text);
/* Stop with an error; the first one counts. */
void slu_xml_stop(struct slu_xml *x, int rc);
/* Value of an attribute, NULL if it is not there. */
const char *slu_xml_attribute(const XML_Char **attributes, const char *name);
