#include "reports/sections.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/train_report.h"
#include "reports/words.h"

struct vp_page vp_section_page(struct vp_buf *out, const struct vp_report_options *options) {
    struct vp_page page = {.out = out, .width = VP_PAGE_WIDTH};
    if (!options)
        return page;
    page.colour = options->colour;
    page.utf8 = options->utf8;
    if (options->width)
        page.width = options->width;
    if (page.width < VP_PAGE_MIN)
        page.width = VP_PAGE_MIN;
    if (page.width > VP_PAGE_MAX)
        page.width = VP_PAGE_MAX;
    return page;
}

/* The model's name gives way so that the assumptions stand on one line: first the organisation or
 * folder before it, then its middle, as long as enough is left to know it by. */
static void setup_line(const struct vp_page *page, const struct vp_result *result) {
    enum { NAME_MIN = 18, NAME_MOST = 60 };
    struct vp_arena *arena = page->out->arena;
    const char *setup =
        result->training.stage ? vp_train_setup(arena, result) : vp_words_setup(arena, result);
    const char *name = vp_words_model(result->scenario), *slash = strrchr(name, '/');
    int room = page->width - vp_text_cells(setup) - 2;
    if (slash && slash[1] && vp_text_cells(name) > room)
        name = slash + 1;
    name = vp_page_shorten(page, name, room < NAME_MIN ? NAME_MOST : room); /* two lines anyway */
    vp_page_printf(page, 0, 2, "%s, %s", name, setup);
}

static void verdict_lines(const struct vp_page *page, const struct vp_result *result) {
    static const enum vp_style STYLES[] = {
        [VP_FITS] = VP_STYLE_GOOD, [VP_AT_RISK] = VP_STYLE_WARN, [VP_DOES_NOT_FIT] = VP_STYLE_BAD};
    struct vp_arena *arena = page->out->arena;
    const char *verdict = vp_words_verdict(result->verdict);
    const char *weights = vp_words_weights_alone(arena, result);
    int hang = vp_text_cells(verdict) + 2;
    vp_page_styled(page, STYLES[result->verdict], verdict);
    vp_page_spaces(page, 2);
    vp_page_wrap(page, hang, hang, vp_words_need(arena, result));
    if (result->verdict != VP_FITS && result->reason_text && *result->reason_text) {
        vp_page_spaces(page, 2);
        vp_page_wrap(page, 2, 2, result->reason_text);
    }
    if (result->training.stage) {
        vp_page_spaces(page, 2);
        vp_page_wrap(page, 2, 2, vp_train_peak(arena, result));
    } else if (weights) {
        vp_page_spaces(page, 2);
        vp_page_wrap(page, 2, 2, weights);
    }
}

void vp_section_setup(const struct vp_page *page, const struct vp_result *result,
                      const struct vp_report_options *options) {
    struct vp_arena *arena = page->out->arena;
    if (options && options->heading && result->scenario->name)
        vp_page_title(page, vp_arena_printf(arena, "== %s ==", result->scenario->name));
    setup_line(page, result);
}

void vp_section_head(const struct vp_page *page, const struct vp_result *result,
                     const struct vp_report_options *options) {
    assert(result->device_count > 0 && result->worst < result->device_count);
    vp_section_setup(page, result, options);
    vp_page_wrap(page, 0, 2, vp_words_devices(page->out->arena, result));
    vp_buf_add(page->out, "\n");
    verdict_lines(page, result);
}

static const char *rank_range(struct vp_arena *arena, const struct vp_device *device) {
    if (device->host)
        return "-";
    if (device->ranks <= 1)
        return vp_arena_printf(arena, "%" PRIu32, device->first_rank);
    return vp_arena_printf(arena, "%" PRIu32 "..%" PRIu32, device->first_rank,
                           device->first_rank + device->ranks - 1);
}

void vp_section_devices(const struct vp_page *page, const struct vp_result *result) {
    enum { ID = 16, STAGE = 6, RANKS = 10, GIB = 9 };
    struct vp_arena *arena = page->out->arena;
    if (result->device_count < 2)
        return;
    vp_buf_add(page->out, "\n");
    vp_page_left(page, "  devices, GiB", 2 + ID);
    vp_page_right(page, "stage", STAGE);
    vp_page_right(page, "ranks", RANKS);
    vp_page_right(page, "need", GIB);
    vp_page_right(page, "usable", GIB);
    vp_page_right(page, "spare", GIB);
    vp_page_wrap(page, 2 + ID + STAGE + RANKS + 3 * GIB, 2, "");
    for (uint32_t i = 0; i < result->device_count; i++) {
        const struct vp_device *device = &result->devices[i];
        const char *stage = vp_arena_printf(arena, "%" PRIu32, device->stage);
        bool known = device->usable_bytes > 0; /* host memory may be of any size */
        vp_buf_add(page->out, i == result->worst ? "> " : "  ");
        vp_page_left(page, device->id, ID);
        vp_page_right(page, device->host ? "-" : stage, STAGE);
        vp_page_right(page, rank_range(arena, device), RANKS);
        vp_page_right(page, vp_format_gib(arena, device->need.likely, 2), GIB);
        vp_page_right(page, known ? vp_format_gib(arena, device->usable_bytes, 2) : "?", GIB);
        vp_page_right(page, known ? vp_words_signed_gib(arena, vp_words_headroom(device)) : "?",
                      GIB);
        vp_page_spaces(page, 2);
        vp_page_wrap(page, 4 + ID + STAGE + RANKS + 3 * GIB, 2,
                     i == result->worst ? "the worst" : "");
    }
}

void vp_section_notes(const struct vp_page *page, const struct vp_result *result) {
    const struct vp_diags *diags = result->diags;
    if (!diags || diags->count == 0)
        return;
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < diags->count; i++) {
        const struct vp_diag *diag = &diags->items[i];
        enum vp_severity severity = vp_diag_severity(diag->id);
        const char *word = severity == VP_INFO ? "note" : vp_severity_name(severity);
        const char *at = vp_words_position(page->out->arena, &diag->pos);
        vp_page_styled(page, severity == VP_INFO ? VP_STYLE_STRONG : VP_STYLE_WARN, word);
        vp_buf_add(page->out, ": ");
        vp_page_printf(page, vp_text_cells(word) + 2, 2, "%s%s%s [%s]", at ? at : "",
                       at ? ": " : "", diag->message, vp_diag_code(diag->id));
        if (!diag->hint)
            continue;
        vp_buf_add(page->out, "  hint: ");
        vp_page_wrap(page, 8, 8, diag->hint);
    }
    if (diags->dropped)
        vp_page_printf(page, 0, 2, "... and %" PRIu32 " more", diags->dropped);
}
