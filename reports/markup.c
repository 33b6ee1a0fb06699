#include "reports/markup.h"

#include "reports/layout.h"

void vp_markup_add(struct vp_buf *out, const char *text) {
    for (text = vp_text_clean(out->arena, text, true); *text; text++)
        switch (*text) {
        case '<':
            vp_buf_add(out, "&lt;");
            break;
        case '>':
            vp_buf_add(out, "&gt;");
            break;
        case '&':
            vp_buf_add(out, "&amp;");
            break;
        case '"':
            vp_buf_add(out, "&quot;");
            break;
        case '\'':
            vp_buf_add(out, "&#39;");
            break;
        default:
            vp_buf_add_n(out, text, 1);
        }
}

const char *vp_markup_text(struct vp_arena *arena, const char *text) {
    struct vp_buf out = {.arena = arena};
    vp_markup_add(&out, text);
    return vp_buf_text(&out);
}

const char *vp_markup_id(struct vp_arena *arena, const char *text) {
    struct vp_buf out = {.arena = arena};
    for (; *text; text++) {
        char c = *text;
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
            c = '-';
        vp_buf_add_n(&out, &c, 1);
    }
    return out.size ? vp_buf_text(&out) : "x";
}
