/* The curves and bars. */
#include "sim/chart.h"

#include <math.h>
#include <stdio.h>

#define WIDTH  960
#define LEFT   64
#define RIGHT  16
#define BINS   480
#define COLOUR 10

static const char *const colour[COLOUR] = { "#3b6fd4", "#d4553b", "#2f9e62", "#a055c8", "#c8941f",
					    "#2a9db0", "#c7468b", "#7a8a2b", "#6c6f7d", "#8a5a3c" };

void slu_xml_text(struct slu_buf *b, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			slu_buf_puts(b, "&lt;");
		else if (*s == '>')
			slu_buf_puts(b, "&gt;");
		else if (*s == '&')
			slu_buf_puts(b, "&amp;");
		else if (*s == '"')
			slu_buf_puts(b, "&quot;");
		else if ((unsigned char)*s >= 32)
			slu_buf_putc(b, *s);
	}
}

static void open_svg(struct slu_buf *b, int height, const char *title)
{
	slu_buf_printf(
		b,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
		"font-family=\"system-ui,sans-serif\" font-size=\"12\" fill=\"currentColor\">"
		"<title>%s</title>\n"
		"<style>text{fill:#777}.grid{stroke:#8884;stroke-width:1}</style>\n",
		WIDTH, height, title);
}

static void time_label(int64_t s, char out[32])
{
	if (s >= 3 * 86400)
		snprintf(out, 32, "%" PRId64 "d", s / 86400);
	else if (s >= 3 * 3600)
		snprintf(out, 32, "%" PRId64 "h", s / 3600);
	else if (s >= 180)
		snprintf(out, 32, "%" PRId64 "min", s / 60);
	else
		snprintf(out, 32, "%" PRId64 "s", s);
}

/* 1, 2 or 5 times a power of ten (seconds below a minute, then minutes, hours, days). */
static int64_t nice_step(int64_t span)
{
	static const int64_t step[] = { 1,        2,       5,       10,      20,      30,
					60,       120,     300,     600,     1800,    3600,
					7200,     14400,   28800,   43200,   86400,   172800,
					432000,   864000,  1728000, 4320000, 8640000, 17280000,
					43200000, 86400000 };

	for (size_t i = 0; i < SLU_LEN(step); i++)
		if (span / step[i] <= 9)
			return step[i];
	return span / 8 + 1;
}

static void time_axis(struct slu_buf *b, int64_t from, int64_t to, int64_t zero, int top,
		      int bottom)
{
	int64_t step = nice_step(to - from);

	for (int64_t t = (from - zero + step - 1) / step * step; t <= to - zero; t += step) {
		double x = LEFT +
			   (double)(t + zero - from) / (double)(to - from) * (WIDTH - LEFT - RIGHT);
		char label[32];

		time_label(t, label);
		slu_buf_printf(b,
			       "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
			       "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
			       x, x, top, bottom, x, bottom + 16, label);
	}
}

/* Add v over [a, b) to the bins that cover [from, to). */
static void spread_over_bins(double *bin, int64_t from, int64_t to, int64_t a, int64_t b, double v)
{
	double width = (double)(to - from) / BINS;
	double x = SLU_MAX((double)(a - from) / width, 0.0);
	double y = SLU_MIN((double)(b - from) / width, (double)BINS);

	for (int i = (int)x; i < BINS && (double)i < y; i++) {
		double lo = SLU_MAX(x, (double)i), hi = SLU_MIN(y, (double)i + 1);

		if (hi > lo)
			bin[i] += v * (hi - lo);
	}
}

/* Long jobs cover many bins: add differences at their ends and sum up once. */
static void fill_bins(const struct slu_trace *t, const struct slu_sim *s, int64_t from, int64_t to,
		      double *busy, double *waiting)
{
	memset(busy, 0, BINS * sizeof *busy);
	memset(waiting, 0, BINS * sizeof *waiting);
	for (uint32_t j = 0; j < s->job.n; j++) {
		const struct slu_sim_job *r = &s->job.p[j];

		if (r->fate == SLU_SIM_UNSEEN || r->fate == SLU_SIM_REFUSED)
			continue;
		int64_t started = r->start_s == SLU_TIME_NONE ? to : r->start_s;
		int64_t ended = r->end_s == SLU_TIME_NONE ? to : r->end_s;
		int64_t slots = SLU_MAX(slu_trace_slots(t, t->job.p[j].req), (int64_t)1);
		double cores = (double)slu_trace_millicores(t, t->job.p[j].req) / 1000 *
			       (double)(r->slots ? r->slots : slots) / (double)slots;

		spread_over_bins(waiting, from, to, r->submit_s, started, 1);
		if (r->start_s != SLU_TIME_NONE)
			spread_over_bins(busy, from, to, started, ended, cores);
	}
}

static void curve(struct slu_buf *b, const double *bin, double max, int top, int height,
		  const char *col, bool area)
{
	double dx = (double)(WIDTH - LEFT - RIGHT) / BINS;

	slu_buf_printf(b,
		       "<path fill=\"%s\" fill-opacity=\"%s\" stroke=\"%s\" stroke-width=\"1.5\" "
		       "d=\"M%d %d",
		       area ? col : "none", area ? "0.15" : "0", col, LEFT, top + height);
	for (int i = 0; i < BINS; i++)
		slu_buf_printf(b, "L%.1f %.1f", LEFT + (i + 0.5) * dx,
			       top + height - SLU_MIN(bin[i] / max, 1.0) * height);
	slu_buf_printf(b, "L%d %d\"/>\n", WIDTH - RIGHT, top + height);
}

static void value_axis(struct slu_buf *b, double max, int top, int height, const char *label)
{
	for (int i = 0; i <= 4; i++) {
		double y = top + height - i * height / 4.0;

		slu_buf_printf(b,
			       "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
			       "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
			       LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, max * i / 4);
	}
	slu_buf_printf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEFT, top - 8, label);
}

static void legend(struct slu_buf *b, const struct slu_run *run, uint32_t n, int y)
{
	for (uint32_t i = 0; i < n; i++) {
		slu_buf_printf(b,
			       "<rect x=\"%u\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			       "<text x=\"%u\" y=\"%d\">",
			       LEFT + i * 150, y, colour[i % COLOUR], LEFT + i * 150 + 18, y + 10);
		slu_xml_text(b, run[i].policy);
		slu_buf_puts(b, "</text>\n");
	}
}

int slu_chart_load(const struct slu_trace *t, const struct slu_run *run, uint32_t n,
		   struct slu_buf *b)
{
	slu_cleanup(slu_freep) double *bin = slu_calloc((size_t)n * 2 * BINS, sizeof *bin);
	int64_t from = INT64_MAX, to = INT64_MIN;
	double most = 1, cores = 1;

	if (!bin)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		from = SLU_MIN(from, run[i].sim.first_s);
		to = SLU_MAX(to, run[i].sim.last_s);
		cores = SLU_MAX(cores, (double)run[i].sim.capacity / 1000);
	}
	to = SLU_MAX(to, from + 1);
	for (uint32_t i = 0; i < n; i++) {
		double *busy = bin + (size_t)i * 2 * BINS, *waiting = busy + BINS;

		fill_bins(t, &run[i].sim, from, to, busy, waiting);
		for (int k = 0; k < BINS; k++)
			most = SLU_MAX(most, waiting[k]);
	}
	open_svg(b, 520, "Load over time");
	value_axis(b, cores, 32, 190, "cores in use");
	time_axis(b, from, to, from, 32, 222);
	value_axis(b, most, 276, 190, "jobs waiting");
	time_axis(b, from, to, from, 276, 466);
	for (uint32_t i = 0; i < n; i++) {
		curve(b, bin + (size_t)i * 2 * BINS, cores, 32, 190, colour[i % COLOUR], n == 1);
		curve(b, bin + (size_t)i * 2 * BINS + BINS, most, 276, 190, colour[i % COLOUR],
		      n == 1);
	}
	legend(b, run, n, 496);
	slu_buf_puts(b, "</svg>\n");
	return b->error;
}

int slu_chart_frontier(const struct slu_run *run, uint32_t n, struct slu_buf *b)
{
	double x = 1, y = 1;

	for (uint32_t i = 0; i < n; i++) {
		x = SLU_MAX(x, run[i].sim.metrics.avg_bounded_slowdown * 1.1);
		y = SLU_MAX(y, (double)run[i].sim.metrics.max_wait * 1.1);
	}
	open_svg(b, 360, "Slowdown and longest wait");
	value_axis(b, y / 3600, 32, 270, "longest wait in hours; left and below is better");
	for (int i = 0; i <= 4; i++)
		slu_buf_printf(b, "<text x=\"%.1f\" y=\"320\" text-anchor=\"middle\">%.3g</text>\n",
			       LEFT + (WIDTH - LEFT - RIGHT) * i / 4.0, x * i / 4);
	slu_buf_printf(b, "<text x=\"%d\" y=\"342\">average bounded slowdown</text>\n", LEFT);
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_sim_metrics *m = &run[i].sim.metrics;
		double at_x = LEFT + (WIDTH - LEFT - RIGHT) * m->avg_bounded_slowdown / x;
		double at_y = 302 - 270 * (double)m->max_wait / y;
		bool left = at_x > WIDTH - RIGHT - 150;

		slu_buf_printf(b,
			       "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"%s\"/>"
			       "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
			       at_x, at_y, colour[i % COLOUR], at_x + (left ? -10 : 10), at_y + 4,
			       left ? "end" : "start");
		slu_xml_text(b, run[i].policy);
		slu_buf_puts(b, "</text>\n");
	}
	slu_buf_puts(b, "</svg>\n");
	return b->error;
}

int slu_chart_compare(const struct slu_run *run, uint32_t n, struct slu_buf *b)
{
	static const char *const key[] = {
		"avg_bounded_slowdown", "mean_wait", "p95_wait", "max_wait",    "wait_narrow",
		"wait_medium",          "wait_wide", "makespan", "utilisation", "fairness"
	};
	int y = 24, each = (int)(n * 20 + 44);
	uint32_t row[SLU_LEN(key)];

	open_svg(b, (int)SLU_LEN(row) * each + 16, "Policies compared");
	for (size_t r = 0; r < SLU_LEN(row); r++) {
		double most = 0;

		row[r] = slu_report_row(key[r]);

		for (uint32_t i = 0; i < n; i++)
			most = SLU_MAX(most, slu_report_value(&run[i].sim.metrics, row[r]));
		slu_buf_printf(b, "<text x=\"%d\" y=\"%d\" font-weight=\"600\">%s%s</text>\n", 8, y,
			       slu_report_rows[row[r]].label,
			       slu_report_rows[row[r]].better < 0 ? " (less is better)"
								  : " (more is better)");
		for (uint32_t i = 0; i < n; i++) {
			double v = slu_report_value(&run[i].sim.metrics, row[r]);
			char text[48];

			slu_report_text(&run[i].sim.metrics, row[r], text);
			slu_buf_printf(b, "<text x=\"150\" y=\"%d\" text-anchor=\"end\">",
				       y + 20 + (int)i * 20);
			slu_xml_text(b, run[i].policy);
			slu_buf_printf(b,
				       "</text><rect x=\"160\" y=\"%d\" width=\"%.1f\" "
				       "height=\"14\" rx=\"2\" fill=\"%s\"/>"
				       "<text x=\"%.1f\" y=\"%d\">%s</text>\n",
				       y + 9 + (int)i * 20, most > 0 ? v / most * 640 : 0,
				       colour[i % COLOUR], 168 + (most > 0 ? v / most * 640 : 0),
				       y + 20 + (int)i * 20, text);
		}
		y += each;
	}
	slu_buf_puts(b, "</svg>\n");
	return b->error;
}
