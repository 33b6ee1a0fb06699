#include "reports/sweep_text.h"

#include <string.h>

#include "planner/base/units.h"
#include "reports/layout.h"
#include "reports/words.h"

enum { VERDICT = 12, GIB = 8, POOL = 8, STEP = 9, WIDEST_FIELD = 24, GAP = 2 };

/* "serve.context" -> "context" */
static const char *heading(const char *field) {
    const char *dot = strrchr(field, '.');
    return dot ? dot + 1 : field;
}

size_t vp_sweep_text_width(const char *field, size_t widest_value) {
    size_t n = strlen(heading(field));
    n = n > widest_value ? n : widest_value;
    return n < WIDEST_FIELD ? n : WIDEST_FIELD;
}

/* A figure is never shortened: a wide one moves the rest of its line. */
static void figure(const struct vp_page *page, const char *text, int cells) {
    int spaces = cells + GAP - (int)strlen(text);
    vp_page_spaces(page, spaces > 0 ? spaces : 1);
    vp_buf_add(page->out, text);
}

static int begin(const struct vp_page *page, const struct vp_sweep_form *form,
                 const char *const *cells) {
    int used = 0;
    for (size_t i = 0; i < form->field_count; i++) {
        vp_page_right(page, cells ? cells[i] : heading(form->fields[i]), (int)form->widths[i]);
        vp_page_spaces(page, GAP);
        used += (int)form->widths[i] + GAP;
    }
    return used;
}

static void end_line(struct vp_buf *out) {
    while (out->size > 0 && out->data[out->size - 1] == ' ')
        out->data[--out->size] = '\0';
    vp_buf_add(out, "\n");
}

void vp_sweep_text_head(struct vp_buf *out, const struct vp_sweep_form *form) {
    struct vp_page page = {.out = out, .width = VP_PAGE_WIDTH, .utf8 = true};
    begin(&page, form, NULL);
    vp_page_left(&page, "verdict", VERDICT);
    figure(&page, "need GiB", GIB);
    figure(&page, "headroom", GIB);
    figure(&page, "max seqs", POOL);
    if (form->latency)
        figure(&page, "step ms", STEP);
    end_line(out);
}

/* "28.5"; ">= 28.5" where only the bound is known */
static const char *step_time(struct vp_arena *arena, const struct vp_estimate *step) {
    if (step->basis == VP_BASIS_NONE)
        return "-";
    bool bound = step->basis == VP_BASIS_BOUND;
    return vp_arena_printf(arena, "%s%.4g", bound ? ">= " : "", bound ? step->low : step->likely);
}

static void refused(const struct vp_page *page, int used, const struct vp_diag *refusal) {
    int room = page->width - used - VERDICT - GAP;
    vp_page_left(page, "refused", VERDICT);
    vp_page_spaces(page, GAP);
    vp_buf_add(page->out,
               vp_page_shorten(page, refusal ? refusal->message : "a size exceeds 64 bits",
                               room > VERDICT ? room : VERDICT));
}

void vp_sweep_text_row(struct vp_buf *out, const struct vp_sweep_form *form,
                       const struct vp_sweep_line *line) {
    struct vp_page page = {.out = out, .width = VP_PAGE_WIDTH, .utf8 = true};
    const struct vp_result *r = line->result;
    int used = begin(&page, form, line->values);

    if (!r) {
        refused(&page, used, line->refusal);
        end_line(out);
        return;
    }
    const struct vp_device *worst = &r->devices[r->worst];
    vp_page_left(&page, vp_verdict_name(r->verdict), VERDICT);
    figure(&page, vp_format_gib(out->arena, worst->need.likely, 2), GIB);
    figure(&page, vp_words_signed_gib(out->arena, r->headroom_bytes), GIB);
    used += VERDICT + 2 * (GIB + GAP);
    if (r->kv.known || form->latency) {
        const char *pool =
            r->kv.known ? vp_words_milli(out->arena, r->kv.max_concurrency_milli) : "-";
        figure(&page, pool, POOL);
        used += POOL + GAP;
    }
    if (form->latency) {
        figure(&page, step_time(out->arena, &r->latency.step_ms), STEP);
        used += STEP + GAP;
    }
    if (r->reason != VP_REASON_NONE &&
        used + GAP + (int)strlen(vp_words_reason(r->reason)) <= page.width) {
        vp_page_spaces(&page, GAP);
        vp_buf_add(out, vp_words_reason(r->reason));
    }
    end_line(out);
}
