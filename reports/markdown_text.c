#include "reports/markdown_text.h"

#include <string.h>

#include "planner/base/text.h"
#include "reports/layout.h"
#include "reports/markup.h"

const char *vp_markdown_text(struct vp_arena *arena, const char *text) {
    struct vp_buf out = {.arena = arena};

    for (text = vp_text_clean(arena, text, true); *text; text++) {
        if (*text == '<')
            vp_buf_add(&out, "&lt;");
        else if (*text == '&')
            vp_buf_add(&out, "&amp;");
        else {
            if (strchr("\\|`*_[]#@~", *text))
                vp_buf_add(&out, "\\");
            vp_buf_add_n(&out, text, 1);
        }
    }
    return vp_buf_text(&out);
}

/* A code span ends at its backtick, and a table's cell at a '|' even inside of one. */
const char *vp_markdown_code(struct vp_arena *arena, const char *text) {
    struct vp_buf out = {.arena = arena};

    if (strchr(text, '`') || strchr(text, '|'))
        return vp_markdown_text(arena, text);
    vp_buf_printf(&out, "`%s`", vp_text_clean(arena, text, true));
    return vp_buf_text(&out);
}

const char *vp_markdown_html(struct vp_arena *arena, const char *text) {
    return vp_markup_text(arena, text);
}
