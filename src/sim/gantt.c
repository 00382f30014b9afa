/* The Gantt chart, and the page. */
#include "sim/chart.h"

#include <stdio.h>

#define WIDTH     960
#define LEFT      64
#define RIGHT     16
#define MAX_BOXES 6000
#define MAX_ROWS  200

struct window {
	int64_t from, to;
};

static int by_start(const void *x, const void *y, void *arg)
{
	const struct slu_sim_job *j = arg;
	int64_t a = j[*(const uint32_t *)x].start_s, b = j[*(const uint32_t *)y].start_s;

	if (a != b)
		return a < b ? -1 : 1;
	return *(const uint32_t *)x < *(const uint32_t *)y ? -1 : 1;
}

/* All of the run if that is few boxes; else the stretch of starts around the longest wait. */
static int choose_window(const struct slu_sim *s, struct window *w)
{
	slu_cleanup(slu_freep)
		uint32_t *job = slu_reallocarray(NULL, SLU_MAX(s->job.n, 1u), sizeof *job);
	uint32_t n = 0, at = 0;
	uint64_t parts = 0;
	int64_t longest = -1;

	if (!job)
		return -ENOMEM;
	*w = (struct window){ s->first_s, SLU_MAX(s->last_s, s->first_s + 1) };
	for (uint32_t j = 0; j < s->job.n; j++)
		if (s->job.p[j].start_s != SLU_TIME_NONE) {
			job[n++] = j;
			parts += s->job.p[j].n_part;
		}
	if (parts <= MAX_BOXES)
		return 0;
	qsort_r(job, n, sizeof *job, by_start, s->job.p);
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_sim_job *r = &s->job.p[job[i]];

		if (r->start_s - r->submit_s > longest) {
			longest = r->start_s - r->submit_s;
			at = i;
		}
	}
	uint32_t lo = at, hi = at;
	uint64_t have = s->job.p[job[at]].n_part;

	while (have < MAX_BOXES / 2 && (lo > 0 || hi + 1 < n)) {
		if (lo > 0)
			have += s->job.p[job[--lo]].n_part;
		if (hi + 1 < n)
			have += s->job.p[job[++hi]].n_part;
	}
	w->from = s->job.p[job[lo]].start_s;
	w->to = SLU_MAX(s->job.p[job[hi]].start_s, w->from + 1);
	return 0;
}

static int64_t tick(int64_t span)
{
	static const int64_t step[] = { 1,    5,    10,    30,    60,    300,    600,    1800,
					3600, 7200, 14400, 43200, 86400, 172800, 604800, 2419200 };

	for (size_t i = 0; i < SLU_LEN(step); i++)
		if (span / step[i] <= 9)
			return step[i];
	return span / 8 + 1;
}

static void axis(struct slu_buf *b, const struct window *w, int64_t zero, int bottom)
{
	int64_t step = tick(w->to - w->from);

	for (int64_t t = (w->from - zero + step - 1) / step * step; t <= w->to - zero; t += step) {
		double x = LEFT + (double)(t + zero - w->from) / (double)(w->to - w->from) *
					  (WIDTH - LEFT - RIGHT);
		char text[48];

		if (step >= 86400)
			snprintf(text, sizeof text, "day %" PRId64, t / 86400);
		else if (step >= 60)
			snprintf(text, sizeof text, "%" PRId64 ":%02d", t / 3600,
				 (int)(t / 60 % 60));
		else
			snprintf(text, sizeof text, "%" PRId64 " s", t);
		slu_buf_printf(b,
			       "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"8\" y2=\"%d\"/>"
			       "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
			       x, x, bottom, x, bottom + 16, text);
	}
}

static void box(struct slu_buf *b, const struct slu_trace *t, const struct slu_sim *s, uint32_t j,
		const struct window *w, double y, double height)
{
	const struct slu_sim_job *r = &s->job.p[j];
	int64_t end = r->end_s == SLU_TIME_NONE ? w->to : r->end_s;
	double scale = (double)(WIDTH - LEFT - RIGHT) / (double)(w->to - w->from);
	double x0 = LEFT + (double)(SLU_MAX(r->start_s, w->from) - w->from) * scale;
	double x1 = LEFT + (double)(SLU_MIN(end, w->to) - w->from) * scale;
	uint32_t user = t->job.p[j].user;
	const char *how = slu_how_name((enum slu_how)r->how);

	slu_buf_printf(b,
		       "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
		       "fill=\"hsl(%u 55%% 55%%)\"><title>job %" PRIu64 " ",
		       x0, y, SLU_MAX(x1 - x0, 0.3), height,
		       (unsigned)(slu_hash_u64(user + 1) % 360), t->job.p[j].id);
	if (user != SLU_INTERN_NONE)
		slu_xml_text(b, slu_intern_str(&t->str, user));
	slu_buf_printf(b,
		       ": %u slots, waited %" PRId64 " s, ran %" PRId64 " s, %s</title></rect>\n",
		       r->slots, r->start_s - r->submit_s, end - r->start_s, how);
}

int slu_chart_gantt(const struct slu_trace *t, const struct slu_run *run, struct slu_buf *b)
{
	const struct slu_sim *s = &run->sim;
	struct window w;
	int rc = choose_window(s, &w);

	if (rc < 0)
		return rc;
	uint32_t rows = SLU_MIN(t->node.n, (uint32_t)MAX_ROWS), boxes = 0;
	double height = SLU_MIN(SLU_MAX(480.0 / rows, 3.0), 22.0);
	int bottom = (int)(rows * height) + 8;

	slu_buf_printf(
		b,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
		"font-family=\"system-ui,sans-serif\" font-size=\"12\"><title>Gantt chart of ",
		WIDTH, bottom + 28);
	slu_xml_text(b, run->policy);
	slu_buf_puts(
		b, "</title>\n<style>text{fill:#777}.grid{stroke:#8884;stroke-width:1}</style>\n");
	axis(b, &w, s->first_s, bottom);
	for (uint32_t j = 0; j < s->job.n && boxes < MAX_BOXES; j++) {
		const struct slu_sim_job *r = &s->job.p[j];

		if (r->start_s == SLU_TIME_NONE || r->start_s >= w.to ||
		    (r->end_s != SLU_TIME_NONE && r->end_s <= w.from))
			continue;
		/* Neighbouring nodes of a job are one box. */
		for (uint32_t i = 0; i < r->n_part && boxes < MAX_BOXES;) {
			uint32_t first = s->part.p[r->part + i].node, last = first;

			while (++i < r->n_part && s->part.p[r->part + i].node == last + 1)
				last++;
			if (first >= rows)
				continue;
			last = SLU_MIN(last, rows - 1);
			box(b, t, s, j, &w, 8 + first * height, (last - first + 1) * height - 0.4);
			boxes++;
		}
	}
	for (uint32_t r = 0; r < rows; r += SLU_MAX(rows / 12, 1u)) {
		slu_buf_printf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 6,
			       8 + (r + 0.5) * height + 4);
		slu_xml_text(b, slu_intern_str(&t->str, t->node.p[r].name));
		slu_buf_puts(b, "</text>\n");
	}
	slu_buf_puts(b, "</svg>\n");
	return b->error;
}

static void put_table(struct slu_buf *b, const struct slu_run *run, uint32_t n)
{
	slu_buf_puts(b, "<div class=\"wide\"><table><thead><tr><th></th>");
	for (uint32_t i = 0; i < n; i++) {
		slu_buf_puts(b, "<th scope=\"col\">");
		slu_xml_text(b, run[i].policy);
		slu_buf_puts(b, "</th>");
	}
	slu_buf_puts(b, "</tr></thead><tbody>\n");
	for (uint32_t r = 0; r < slu_report_nrow; r++) {
		slu_buf_printf(b, "<tr><th scope=\"row\">%s</th>", slu_report_rows[r].label);
		for (uint32_t i = 0; i < n; i++) {
			char text[48];

			slu_report_text(&run[i].sim.metrics, r, text);
			slu_buf_printf(b, "<td>%s</td>", text);
		}
		slu_buf_puts(b, "</tr>\n");
	}
	slu_buf_puts(b, "</tbody></table></div>\n");
}

int slu_chart_page(const struct slu_trace *t, const struct slu_run *run, uint32_t n,
		   const char *title, struct slu_buf *b)
{
	int rc;

	slu_buf_puts(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
			"<title>");
	slu_xml_text(b, title);
	slu_buf_puts(b, "</title>\n<style>\n"
			":root{color-scheme:light dark;--line:#8883}\n"
			"body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2rem auto;"
			"padding:0 1rem}\n"
			"h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
			"p{margin:.3rem 0;color:#777}svg{width:100%;height:auto}\n"
			".wide{overflow-x:auto}table{border-collapse:collapse;"
			"font-variant-numeric:tabular-nums}\n"
			"th,td{padding:.25rem .8rem;border-bottom:1px solid var(--line)}"
			"th{text-align:left;font-weight:600}td{text-align:right}\n"
			"svg rect:hover{opacity:.7}\n</style></head><body>\n<h1>");
	slu_xml_text(b, title);
	slu_buf_printf(b,
		       "</h1>\n<p>%u jobs on %u nodes, %" PRId64 " cores. %" PRIu64
		       " records read, %" PRIu64 " dropped, %" PRIu64 " malformed.</p>\n"
		       "<h2>Summary</h2>\n",
		       t->job.n, t->node.n, n ? run[0].sim.capacity / 1000 : 0, t->records,
		       t->dropped, t->malformed);
	put_table(b, run, n);
	slu_buf_puts(b, "<h2>Policies compared</h2>\n");
	rc = slu_chart_compare(run, n, b);
	if (rc < 0)
		return rc;
	slu_buf_puts(b, "<h2>Slowdown and longest wait</h2>\n");
	rc = slu_chart_frontier(run, n, b);
	if (rc < 0)
		return rc;
	slu_buf_puts(b, "<h2>Load over time</h2>\n");
	rc = slu_chart_load(t, run, n, b);
	for (uint32_t i = 0; i < n && !rc; i++) {
		slu_buf_puts(b, "<h2>Where each job ran: ");
		slu_xml_text(b, run[i].policy);
		slu_buf_puts(b, "</h2>\n");
		rc = slu_chart_gantt(t, &run[i], b);
	}
	slu_buf_puts(b, "</body></html>\n");
	return rc < 0 ? rc : b->error;
}
