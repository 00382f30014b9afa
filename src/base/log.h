/* log.h — structured log lines: a constant message and typed pairs.  Only programs and the daemon's
 * layers log; the core (graph, planner, match, gang, queue) is silent.
 *	slu_log(SLU_INFO, "pod bound", SLU_STR("pod", name), SLU_I64("took_us", us));
 */
#pragma once
#include "base/base.h"

enum slu_log_level { SLU_DEBUG, SLU_INFO, SLU_WARN, SLU_ERROR };
enum slu_log_format { SLU_LOG_TEXT, SLU_LOG_JSON };

struct slu_log_field {
	const char *key;
	const char *str; /* NULL: the number counts */
	int64_t num;
};

#define SLU_STR(k, v) ((struct slu_log_field){ .key = (k), .str = (v) ? (v) : "" })
#define SLU_I64(k, v) ((struct slu_log_field){ .key = (k), .num = (int64_t)(v) })

/* Process-wide, set once at start (and by a configuration reload). */
void slu_log_setup(enum slu_log_level least, enum slu_log_format format, int fd);
bool slu_log_enabled(enum slu_log_level level);
/* "debug", "info", ...: 0 or -EINVAL. */
int slu_log_level_parse(const char *s, enum slu_log_level *out);

void slu_log_fields(enum slu_log_level level, const char *msg, const struct slu_log_field *f,
		    size_t n);

#define slu_log(level, msg, ...)                                                        \
	do {                                                                            \
		if (slu_log_enabled(level)) {                                           \
			const struct slu_log_field slu_f_[] = { { 0 }, ##__VA_ARGS__ }; \
			slu_log_fields(level, msg, slu_f_ + 1, SLU_LEN(slu_f_) - 1);    \
		}                                                                       \
	} while (0)
