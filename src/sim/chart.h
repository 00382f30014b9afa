/* chart.h — a run to look at: SVG drawings, and one HTML page that holds them all. */
#pragma once
#include "sim/report.h"

/* Draw which job ran where: the busiest stretch of the run (or all of it if it is short), nodes down, time
 * across, one colour per user.  Needs parts (slu_sim_opts.keep_parts). */
int slu_chart_gantt(const struct slu_trace *t, const struct slu_run *run, struct slu_buf *out);
/* Cores in use and jobs waiting, over the whole run; one line per policy. */
int slu_chart_load(const struct slu_trace *t, const struct slu_run *run, uint32_t n,
		   struct slu_buf *out);
/* The policies as points: average bounded slowdown across, longest wait up.  What lies left of and
 * below a point is better in both. */
int slu_chart_frontier(const struct slu_run *run, uint32_t n, struct slu_buf *out);
/* The policies side by side: bars for what is compared most. */
int slu_chart_compare(const struct slu_run *run, uint32_t n, struct slu_buf *out);

/* The page; needs nothing from outside. */
int slu_chart_page(const struct slu_trace *t, const struct slu_run *run, uint32_t n,
		   const char *title, struct slu_buf *out);

/* Text made safe for XML. */
void slu_xml_text(struct slu_buf *b, const char *s);
