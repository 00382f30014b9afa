#include "graph/xml.h"

#include <limits.h>

#include "base/mem.h"

int slu_xml_parse(struct slu_xml *x, void *arg, const char *text, size_t n, size_t max,
		  XML_StartElementHandler on_start, XML_EndElementHandler on_end,
		  XML_CharacterDataHandler on_text)
{
	static const XML_Memory_Handling_Suite memory = { slu_malloc, slu_realloc, slu_free };

	*x = (struct slu_xml){ 0 };
	if (n > max || n > INT_MAX)
		return x->rc = -EFBIG;
	x->parser = XML_ParserCreate_MM(NULL, &memory, NULL);
	if (!x->parser)
		return x->rc = -ENOMEM;
	XML_SetUserData(x->parser, arg);
	XML_SetElementHandler(x->parser, on_start, on_end);
	XML_SetCharacterDataHandler(x->parser, on_text);
	if (XML_Parse(x->parser, text, (int)n, XML_TRUE) != XML_STATUS_OK && !x->rc) {
		enum XML_Error code = XML_GetErrorCode(x->parser);
		long at = (long)XML_GetCurrentByteIndex(x->parser);

		x->rc = code == XML_ERROR_NO_MEMORY ? -ENOMEM : -EINVAL;
		x->next = (code == XML_ERROR_JUNK_AFTER_DOC_ELEMENT ||
			   code == XML_ERROR_MISPLACED_XML_PI) &&
			  at > 0 && (size_t)at < n && text[at] == '<';
		x->at = x->next ? (size_t)at : 0;
	}
	XML_ParserFree(x->parser);
	x->parser = NULL;
	return x->rc;
}

void slu_xml_stop(struct slu_xml *x, int rc)
{
	if (!x->rc)
		x->rc = rc;
	if (x->parser)
		XML_StopParser(x->parser, XML_FALSE);
}

const char *slu_xml_attribute(const XML_Char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (!strcmp(attributes[0], name))
			return attributes[1];
	return NULL;
}
