/* report.h — results as table, JSON and CSV. */
#pragma once
#include "base/buf.h"
#include "sim/sim.h"

/* One finished run, for reports and pictures. */
struct slu_run {
	const char *policy; /* as it was asked for */
	const char *backfill, *estimates;
	bool verified;
	struct slu_sim sim;
};

/* A JSON array with one object per run. */
int slu_report_json(const struct slu_trace *t, const struct slu_run *run, uint32_t n,
		    struct slu_buf *out);
/* A table for people; `colours` marks the best value of each row. */
int slu_report_table(const struct slu_trace *t, const struct slu_run *run, uint32_t n, bool colours,
		     struct slu_buf *out);
/* Per-job lines; header first when `header`. */
int slu_report_csv(const struct slu_trace *t, const struct slu_run *run, bool header,
		   struct slu_buf *out, int (*flush)(struct slu_buf *b, void *arg), void *arg);

/* The rows of the table, for the page too: value as text, and whether less is better. */
struct slu_report_row {
	const char *label;
	const char *key;
	int better; /* -1: less, 1: more, 0: neither */
};
extern const struct slu_report_row slu_report_rows[];
extern const uint32_t slu_report_nrow;
uint32_t slu_report_row(const char *key); /* `key` must exist */
double slu_report_value(const struct slu_sim_metrics *m, uint32_t row);
void slu_report_text(const struct slu_sim_metrics *m, uint32_t row, char out[48]);
