/* Pieces of an HTML page: the document around it, sections, tables, charts. Everything that is
 * given as text is escaped here; nothing is fetched from anywhere, no script runs. */
#ifndef VP_REPORTS_HTML_PAGE_H
#define VP_REPORTS_HTML_PAGE_H

#include "planner/base/amount.h"
#include "reports/chart.h"

/* The document up to the first heading, with the style of page and charts. */
void vp_html_begin(struct vp_buf *out, const char *title);
void vp_html_end(struct vp_buf *out);

/* "<h3 id=...>": level 1 to 6; id NULL: none. */
void vp_html_heading(struct vp_buf *out, int level, const char *id, const char *text);
/* "<p class=...>": class NULL: none. */
void vp_html_paragraph(struct vp_buf *out, const char *class, const char *text);
/* What is folded away until it is asked for; printed all the same. */
void vp_html_fold_begin(struct vp_buf *out, const char *summary);
void vp_html_fold_end(struct vp_buf *out);

/* A table: a caption, a line of heads, rows of cells. A head that begins with '#' is of numbers,
 * which are right aligned. */
void vp_html_table_begin(struct vp_buf *out, const char *caption, const char *const *heads,
                         size_t count);
void vp_html_row_begin(struct vp_buf *out, const char *class);
/* The first cell of a row: what the row is about. href NULL: no link. */
void vp_html_head_cell(struct vp_buf *out, const char *text, const char *href);
void vp_html_cell(struct vp_buf *out, const char *text);
void vp_html_link(struct vp_buf *out, const char *text, const char *href);
void vp_html_number(struct vp_buf *out, const char *text);
/* GiB with two decimals; the exact bytes stand in <data value="...">. */
void vp_html_bytes(struct vp_buf *out, uint64_t bytes);
void vp_html_signed_bytes(struct vp_buf *out, int64_t bytes);
/* "1.20..2.85", or "exact" words where it is: three equal numbers say nothing. */
void vp_html_interval(struct vp_buf *out, struct vp_amount amount);
void vp_html_row_end(struct vp_buf *out);
void vp_html_table_end(struct vp_buf *out);

/* The picture, and its figures as a table, folded. id: of the picture, unique in the page. */
void vp_html_chart(struct vp_buf *out, const struct vp_chart *chart, const char *id);

#endif
