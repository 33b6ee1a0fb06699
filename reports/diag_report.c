/* Diagnostics for standard error, in the form that editors and CI systems know from compilers. */
#include <inttypes.h>

#include "reports/layout.h"
#include "reports/report.h"
#include "reports/words.h"

void vp_report_diagnostics(struct vp_buf *out, const struct vp_diags *diags, bool colour) {
    static const enum vp_style STYLES[] = {
        [VP_INFO] = VP_STYLE_STRONG, [VP_WARNING] = VP_STYLE_WARN, [VP_ERROR] = VP_STYLE_BAD};
    struct vp_page page = {.out = out, .colour = colour, .utf8 = true};
    for (uint32_t i = 0; i < diags->count; i++) {
        const struct vp_diag *diag = &diags->items[i];
        enum vp_severity severity = vp_diag_severity(diag->id);
        const char *at = vp_words_position(out->arena, &diag->pos);
        vp_page_styled(&page, VP_STYLE_STRONG,
                       vp_text_clean(out->arena, at ? at : "vramplan", true));
        vp_buf_add(out, ": ");
        vp_page_styled(&page, STYLES[severity], vp_severity_name(severity));
        vp_buf_printf(out, ": %s [%s]\n", vp_text_clean(out->arena, diag->message, true),
                      vp_diag_code(diag->id));
        if (diag->hint)
            vp_buf_printf(out, "  hint: %s\n", vp_text_clean(out->arena, diag->hint, true));
    }
    if (diags->dropped)
        vp_buf_printf(out, "vramplan: %" PRIu32 " more were left out (%" PRIu32 " errors in all)\n",
                      diags->dropped, diags->errors);
}
