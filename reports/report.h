/* Renderers: pure functions from a result (or diagnostics) into a text buffer. They compute no
 * figures, read no files and print nothing; temporary strings come from the buffer's arena. The
 * same result and options give the same bytes, whatever the locale. */
#ifndef VP_REPORTS_REPORT_H
#define VP_REPORTS_REPORT_H

#include "planner/base/json_writer.h"
#include "planner/base/text.h"
#include "planner/plan/result.h"

struct vp_report_options {
    int width;    /* cells per line: 80 when 0, and at least 80 */
    bool colour;  /* escape sequences; nothing is said by colour alone */
    bool utf8;    /* the reader shows UTF-8; otherwise '?' stands for what is not ASCII */
    bool verbose; /* more: parameters, ranks, the lines that the engine's log should show */
    bool heading; /* begin with the scenario's name: for several reports in one output */
};

/* For people: the answer, the reason, what was assumed. Never wider than options->width.
 * options may be NULL: 80 cells, plain ASCII. */
void vp_report_text(struct vp_buf *out, const struct vp_result *result,
                    const struct vp_report_options *options);
/* The answer and every row it is made of: formula, numbers put in, where they came from. */
void vp_report_explain(struct vp_buf *out, const struct vp_result *result,
                       const struct vp_report_options *options);
/* The part of it that is about one component of a device. */
void vp_report_explain_component(struct vp_buf *out, const struct vp_result *result,
                                 uint32_t device, enum vp_component component,
                                 const struct vp_report_options *options);
/* One row of the ledger: its formula with the numbers put in, where it is from, what it leaves out.
 * As wide as options say, be it less than 80. */
void vp_report_explain_row(struct vp_buf *out, const struct vp_result *result,
                           const struct vp_row *row, const struct vp_report_options *options);
/* A section for a wiki page or a pull request. */
void vp_report_markdown(struct vp_buf *out, const struct vp_result *result);

/* One result object (schema "vramplan.result/1") as the next value of the writer: the whole
 * document or an item of a list. */
void vp_report_json(struct vp_json *json, const struct vp_result *result);
/* Its key "suggestions" with the list of them. */
void vp_report_json_suggestions(struct vp_json *json, const struct vp_result *result);
/* A list of diagnostics as in the result: the next value of the writer. */
void vp_report_json_diagnostics(struct vp_json *json, const struct vp_diags *diags);

/* One line per scenario, worst device; quoted as RFC 4180 says, lines end with LF. Bytes are
 * integers; a cell is empty when there is no such figure. */
void vp_report_csv_header(struct vp_buf *out);
void vp_report_csv_row(struct vp_buf *out, const struct vp_result *result);
/* One cell of such a line; nothing for NULL. */
void vp_report_csv_cell(struct vp_buf *out, const char *text);

/* What is simulated or measured is no better than a millionth of its unit. As JSON: null where it
 * is not finite; as a cell: nothing. */
void vp_report_json_number(struct vp_json *json, const char *key, double v);
void vp_report_csv_number(struct vp_buf *out, double v);

/* For standard error: "file:line:column: error: message [VP101]", then "  hint: ...". */
void vp_report_diagnostics(struct vp_buf *out, const struct vp_diags *diags, bool colour);

#endif
