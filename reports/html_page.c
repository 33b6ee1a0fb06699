#include "reports/html_page.h"

#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/chart_svg.h"
#include "reports/markup.h"
#include "reports/words.h"

/* ---- the document ---- */

static const char STYLE[] =
    ":root{color-scheme:light dark;--page:#fff;--text:#1c1c1c;--soft:#555;--line:#d5d5d5;"
    "--band:#f4f5f7;--good:#0b6b46;--warn:#8a5a00;--bad:#a3240a;--link:#0a58a8}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--page:#161616;--text:#e8e8e8;"
    "--soft:#b0b0b0;--line:#3c3c3c;--band:#202226;--good:#5fd3a4;--warn:#f0bb55;--bad:#ff9072;"
    "--link:#8fc4ff}}\n"
    "body{background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif;"
    "max-width:62rem;margin:0 auto;padding:1rem}\n"
    "h1{font-size:1.6rem}h2{font-size:1.35rem;margin-top:2.2rem;padding-top:.6rem;"
    "border-top:2px solid var(--line)}h3{font-size:1.1rem;margin-top:1.8rem}\n"
    "a{color:var(--link)}.soft{color:var(--soft)}.verdict{font-size:1.15rem;font-weight:600}\n"
    ".fits{color:var(--good)}.at-risk{color:var(--warn)}.does-not-fit{color:var(--bad)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;margin:.6rem 0;font-size:.92em;"
    "font-variant-numeric:tabular-nums}\n"
    "caption{text-align:left;color:var(--soft);padding:.2rem 0}\n"
    "th,td{border-bottom:1px solid var(--line);padding:.22rem .6rem;text-align:left;"
    "vertical-align:top}\nthead th{background:var(--band)}\n"
    ".n{text-align:right;white-space:nowrap}tbody th{font-weight:500}\n"
    ".sum th,.sum td{font-weight:600;border-top:2px solid var(--line)}\n"
    "figure{margin:1rem 0}pre,code{font-family:ui-monospace,monospace;font-size:.92em}\n"
    "pre{background:var(--band);padding:.6rem;overflow-x:auto;white-space:pre-wrap;"
    "overflow-wrap:anywhere}\n"
    "details{margin:.4rem 0}summary{cursor:pointer;color:var(--soft)}\n"
    "dt{font-weight:600;margin-top:.6rem}dd{margin:0 0 0 1.2rem}\n"
    "@media print{body{max-width:none;font-size:10pt;padding:0}a{color:inherit}"
    "svg,tr{break-inside:avoid}h2,h3,caption{break-after:avoid}"
    ".wide{overflow:visible}details::details-content{content-visibility:visible;block-size:auto}"
    "summary{list-style:none}}\n";

void vp_html_begin(struct vp_buf *out, const char *title) {
    vp_buf_printf(out,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "style-src 'unsafe-inline'\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                  "<title>%s</title>\n<style>\n",
                  vp_markup_text(out->arena, title));
    vp_buf_add(out, STYLE);
    vp_chart_svg_style(out);
    vp_buf_add(out, "</style>\n</head>\n<body>\n<main>\n");
}

void vp_html_end(struct vp_buf *out) { vp_buf_add(out, "</main>\n</body>\n</html>\n"); }

/* ---- text ---- */

void vp_html_heading(struct vp_buf *out, int level, const char *id, const char *text) {
    vp_buf_printf(out, "<h%d", level);
    if (id)
        vp_buf_printf(out, " id=\"%s\"", id);
    vp_buf_printf(out, ">%s</h%d>\n", vp_markup_text(out->arena, text), level);
}

void vp_html_paragraph(struct vp_buf *out, const char *class, const char *text) {
    vp_buf_add(out, "<p");
    if (class)
        vp_buf_printf(out, " class=\"%s\"", class);
    vp_buf_printf(out, ">%s</p>\n", vp_markup_text(out->arena, text));
}

void vp_html_fold_begin(struct vp_buf *out, const char *summary) {
    vp_buf_printf(out, "<details>\n<summary>%s</summary>\n", vp_markup_text(out->arena, summary));
}

void vp_html_fold_end(struct vp_buf *out) { vp_buf_add(out, "</details>\n"); }

/* ---- tables ---- */

void vp_html_table_begin(struct vp_buf *out, const char *caption, const char *const *heads,
                         size_t count) {
    vp_buf_printf(out, "<div class=\"wide\">\n<table>\n<caption>%s</caption>\n<thead>\n<tr>",
                  vp_markup_text(out->arena, caption));
    for (size_t i = 0; i < count; i++) {
        bool number = heads[i][0] == '#';
        vp_buf_printf(out, "<th scope=\"col\"%s>%s</th>", number ? " class=\"n\"" : "",
                      vp_markup_text(out->arena, heads[i] + number));
    }
    vp_buf_add(out, "</tr>\n</thead>\n<tbody>\n");
}

void vp_html_row_begin(struct vp_buf *out, const char *class) {
    vp_buf_add(out, "<tr");
    if (class)
        vp_buf_printf(out, " class=\"%s\"", class);
    vp_buf_add(out, ">");
}

static void content(struct vp_buf *out, const char *text, const char *href) {
    if (href)
        vp_buf_printf(out, "<a href=\"%s\">", vp_markup_text(out->arena, href));
    vp_markup_add(out, text);
    if (href)
        vp_buf_add(out, "</a>");
}

void vp_html_head_cell(struct vp_buf *out, const char *text, const char *href) {
    vp_buf_add(out, "<th scope=\"row\">");
    content(out, text, href);
    vp_buf_add(out, "</th>");
}

void vp_html_link(struct vp_buf *out, const char *text, const char *href) {
    vp_buf_add(out, "<td>");
    content(out, text, href);
    vp_buf_add(out, "</td>");
}

void vp_html_cell(struct vp_buf *out, const char *text) { vp_html_link(out, text, NULL); }

void vp_html_number(struct vp_buf *out, const char *text) {
    vp_buf_printf(out, "<td class=\"n\">%s</td>", vp_markup_text(out->arena, text));
}

void vp_html_bytes(struct vp_buf *out, uint64_t bytes) {
    vp_buf_printf(out, "<td class=\"n\"><data value=\"%" PRIu64 "\">%s</data></td>", bytes,
                  vp_format_gib(out->arena, bytes, 2));
}

void vp_html_signed_bytes(struct vp_buf *out, int64_t bytes) {
    vp_buf_printf(out, "<td class=\"n\"><data value=\"%" PRId64 "\">%s</data></td>", bytes,
                  vp_words_signed_gib(out->arena, bytes));
}

void vp_html_interval(struct vp_buf *out, struct vp_amount amount) {
    vp_html_number(out, vp_words_is_exact(amount) ? "" : vp_words_interval(out->arena, amount, 2));
}

void vp_html_row_end(struct vp_buf *out) { vp_buf_add(out, "</tr>\n"); }

void vp_html_table_end(struct vp_buf *out) { vp_buf_add(out, "</tbody>\n</table>\n</div>\n"); }

/* ---- charts ---- */

void vp_html_chart(struct vp_buf *out, const struct vp_chart *chart, const char *id) {
    struct vp_chart_table table = vp_chart_table(chart);
    const char **heads = VP_NEW_ARRAY(out->arena, table.columns, const char *);
    vp_buf_add(out, "<figure>\n");
    vp_chart_svg(out, chart, id);
    vp_html_fold_begin(out, "The figures of this chart");
    for (uint32_t c = 0; c < table.columns; c++)
        heads[c] =
            table.words[c] ? table.head[c] : vp_arena_printf(out->arena, "#%s", table.head[c]);
    vp_html_table_begin(out, chart->title, heads, table.columns);
    for (uint32_t r = 0; r < table.rows; r++) {
        vp_html_row_begin(out, NULL);
        for (uint32_t c = 0; c < table.columns; c++) {
            const char *text = table.cell[(size_t)r * table.columns + c];
            if (c == 0)
                vp_html_head_cell(out, text, NULL);
            else if (table.words[c])
                vp_html_cell(out, text);
            else
                vp_html_number(out, text);
        }
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
    vp_html_fold_end(out);
    vp_buf_add(out, "</figure>\n");
}
