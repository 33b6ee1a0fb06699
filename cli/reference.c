/* Reference pages in Markdown from the tables that the program itself uses: formulas, diagnostics.
 * docs/FORMULAS.md and docs/DIAGNOSTICS.md are this output (`make docs`), a test compares them. */
#include "cli/help.h"
#include "planner/base/diag.h"
#include "planner/memory/ledger.h"

void vp_help_formulas(struct vp_buf *out) {
    vp_buf_add(out, "# Formulas\n\n"
                    "Every row of a plan's ledger names one of these; `vramplan explain` shows the "
                    "numbers put in.\n"
                    "exact: arithmetic. class: an average over cards or runs of one kind, always "
                    "given as an interval.\n"
                    "measured: a value from a real run.\n"
                    "This page is printed by `vramplan help --formulas` (`make docs`).\n\n"
                    "| id | kind | formula | source | leaves out |\n|---|---|---|---|---|\n");
    for (int f = 0; f < VP_FORMULA_COUNT; f++) {
        enum vp_formula formula = (enum vp_formula)f;
        vp_buf_printf(out, "| %s | %s | %s | %s | %s |\n", vp_formula_id(formula),
                      vp_confidence_name(vp_formula_kind(formula)), vp_formula_expression(formula),
                      vp_formula_source(formula), vp_formula_leaves_out(formula));
    }
}

void vp_help_diagnostics(struct vp_buf *out) {
    vp_buf_add(out, "# Diagnostics\n\n"
                    "Errors end a command with exit status 2 (input) or 4 (environment); warnings "
                    "and notes do not.\n"
                    "Ids stay with their meaning. This page is printed by `vramplan help "
                    "--diagnostics` (`make docs`).\n\n"
                    "| id | severity | meaning |\n|---|---|---|\n");
    for (int i = 0; i < VP_DIAG_COUNT; i++) {
        enum vp_diag_id id = (enum vp_diag_id)i;
        vp_buf_printf(out, "| %s | %s | %s |\n", vp_diag_code(id),
                      vp_severity_name(vp_diag_severity(id)), vp_diag_meaning(id));
    }
}
