/* write.h — match results as text, in the formats of -F.
 *
 * A writer lives as long as a session: it collects what the matcher hands to its sink and keeps it
 * until it is emitted.  The formats and their oddities (a queue name and the shorthand mark stick
 * for later documents) are the reference's. */
#pragma once
#include "match/writer.h"

enum slu_format {
	SLU_FORMAT_SIMPLE,
	SLU_FORMAT_PRETTY_SIMPLE,
	SLU_FORMAT_JGF,
	SLU_FORMAT_JGF_SHORTHAND,
	SLU_FORMAT_RLITE,
	SLU_FORMAT_RV1,
	SLU_FORMAT_RV1_NOSCHED,
	SLU_FORMAT_RV1_SHORTHAND,
};

struct slu_writer;

/* 0 or -EINVAL. */
int slu_format_parse(const char *name, enum slu_format *out);

struct slu_writer *slu_writer_new(enum slu_format f);
void slu_writer_free(struct slu_writer *w);
SLU_DEFINE_CLEANUP(struct slu_writer, slu_writer_free)

/* Where the matcher sends its result. */
struct slu_sink slu_writer_sink(struct slu_writer *w);

/* Append the text of everything collected, ended by a newline, and forget the collection (rlite
 * keeps ids that no node has taken).  An empty collection appends nothing; for rlite it is an
 * error. 0; -EINVAL (a rank or id below 0, an empty rlite), -ENOENT (a vertex without any edge
 * in JGF), -ENOMEM; after an error the collection stays. */
int slu_writer_emit(struct slu_writer *w, struct slu_buf *out);

/* Forget what was collected. */
void slu_writer_reset(struct slu_writer *w);
/* Set starttime and expiration of the next document; `find` sets 0, 0. */
void slu_writer_times(struct slu_writer *w, int64_t at_s, int64_t end_s);
