#include "reports/diff_report.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/difference_words.h"
#include "reports/markdown_text.h"
#include "reports/sections.h"
#include "reports/words.h"

enum {
    INDENT = 2,
    NAME = 22,
    GIB = 11,
    MOVED = 14,
    NAMED = 4,
    NUMBER = 4,
    TEXT = INDENT + NUMBER + 13
};

static bool is_shown(const struct vp_compared *c, int component) {
    return vp_words_worst(c->before)->component[component].high > 0 ||
           vp_words_worst(c->after)->component[component].high > 0;
}

static int64_t need_moved(const struct vp_compared *c) {
    return vp_words_need_moved(c->before, c->after);
}

static bool has_steps(const struct vp_compared *c) {
    return c->difference && c->difference->causes > 0;
}

/* "16,384", "none" */
static const char *context_text(struct vp_arena *arena, const struct vp_result *result) {
    if (result->prices.max_context == 0)
        return "none";
    return vp_format_count(arena, result->prices.max_context);
}

/* "; longest context 41,840 -> 55,120"; "" where there is no such thing */
static const char *longest_text(struct vp_arena *arena, const struct vp_compared *c) {
    const char *was = context_text(arena, c->before), *is = context_text(arena, c->after);

    if (c->before->training.stage || c->after->training.stage)
        return "";
    return vp_text_eq(was, is) ? vp_arena_printf(arena, "; longest context %s as before", is)
                               : vp_arena_printf(arena, "; longest context %s -> %s", was, is);
}

/* "old.yaml -> new.yaml" */
static const char *inputs_text(struct vp_arena *arena, const struct vp_diff_report *report) {
    return vp_arena_printf(arena, "%s -> %s", report->before, report->after);
}

static const char *missing_text(const struct vp_compared *c) {
    if (!c->in_before)
        return "new: the old input has no scenario of this name";
    if (!c->in_after)
        return "gone: the new input has no scenario of this name";
    if (!c->before && !c->after)
        return "neither of the two could be planned";
    return c->before ? "the new one could not be planned" : "the old one could not be planned";
}

/* ---- text ---- */

static void verdicts(const struct vp_page *page, const struct vp_compared *c) {
    static const enum vp_style STYLES[] = {
        [VP_FITS] = VP_STYLE_GOOD, [VP_AT_RISK] = VP_STYLE_WARN, [VP_DOES_NOT_FIT] = VP_STYLE_BAD};
    struct vp_arena *arena = page->out->arena;
    const struct vp_device *old = vp_words_worst(c->before), *new = vp_words_worst(c->after);
    const char *was = vp_words_verdict(c->before->verdict);
    const char *is = vp_words_verdict(c->after->verdict);
    bool other = c->before->verdict != c->after->verdict;
    int column = vp_text_cells(is) + 2 + (other ? vp_text_cells(was) + 4 : 0);

    if (other)
        vp_buf_printf(page->out, "%s -> ", was);
    vp_page_styled(page, STYLES[c->after->verdict], is);
    vp_page_spaces(page, 2);
    vp_page_printf(
        page, column, 2, "needs %s -> %s GiB (%s) of %s%s%s usable on %s",
        vp_format_gib(arena, old->need.likely, 2), vp_format_gib(arena, new->need.likely, 2),
        vp_words_moved(arena, need_moved(c)),
        old->usable_bytes == new->usable_bytes ? "" : vp_format_gib(arena, old->usable_bytes, 2),
        old->usable_bytes == new->usable_bytes ? "" : " -> ",
        vp_format_gib(arena, new->usable_bytes, 2), new->id);
    vp_page_spaces(page, 2);
    vp_page_printf(page, 2, 2, "headroom %s -> %s GiB%s",
                   vp_words_signed_gib(arena, c->before->headroom_bytes),
                   vp_words_signed_gib(arena, c->after->headroom_bytes), longest_text(arena, c));
}

static void row(const struct vp_page *page, const char *name, uint64_t before, uint64_t after) {
    struct vp_arena *arena = page->out->arena;

    vp_page_spaces(page, INDENT);
    vp_page_left(page, name, NAME);
    vp_page_right(page, vp_format_gib(arena, before, 2), GIB);
    vp_page_right(page, vp_format_gib(arena, after, 2), GIB);
    vp_page_right(page, vp_words_moved(arena, vp_words_minus(after, before)), MOVED);
    vp_buf_add(page->out, "\n");
}

static void table(const struct vp_page *page, const struct vp_compared *c) {
    vp_buf_add(page->out, "\n");
    vp_page_spaces(page, INDENT);
    vp_page_left(page, "on the worst device", NAME);
    vp_page_right(page, "GiB before", GIB);
    vp_page_right(page, "after", GIB);
    vp_page_right(page, "change", MOVED);
    vp_buf_add(page->out, "\n");
    for (int i = 0; i < VP_COMPONENT_COUNT; i++)
        if (is_shown(c, i))
            row(page, vp_words_component(page->out->arena, (enum vp_component)i),
                vp_words_worst(c->before)->component[i].likely,
                vp_words_worst(c->after)->component[i].likely);
    row(page, "needed", vp_words_worst(c->before)->need.likely,
        vp_words_worst(c->after)->need.likely);
}

static void row_moved(const struct vp_page *page, const struct vp_moved *moved) {
    struct vp_arena *arena = page->out->arena;

    vp_page_spaces(page, TEXT);
    vp_page_printf(page, TEXT, TEXT + 2, "- %s, %s %s", vp_words_component(arena, moved->component),
                   moved->owner, vp_words_moved(arena, moved->bytes));
}

/* Number, cause, what it moved in all; below it where it stands, and what it moved in single. */
static void step_lines(const struct vp_page *page, const struct vp_difference_step *step,
                       uint32_t number, bool verbose) {
    struct vp_arena *arena = page->out->arena;
    const char *place = vp_words_place(arena, vp_step_place(step));
    const char *causes = vp_words_causes(arena, step, verbose ? UINT32_MAX : NAMED);

    vp_page_spaces(page, INDENT);
    vp_page_left(page, vp_arena_printf(arena, "%" PRIu32, number), NUMBER);
    vp_page_right(page, vp_words_moved(arena, step->need_bytes), 11);
    vp_page_spaces(page, 2);
    vp_page_wrap(page, TEXT, TEXT, causes);
    vp_page_spaces(page, TEXT);
    vp_page_printf(page, TEXT, TEXT, "%s%s%s", place ? place : "", place ? ": " : "",
                   vp_words_step(arena, step));
    for (uint32_t i = 0; verbose && i < step->moved_count; i++)
        row_moved(page, &step->moved[i]);
}

/* Paths of changes that moved nothing, in one sentence. */
static const char *still_text(struct vp_arena *arena, const struct vp_difference *d) {
    enum { MOST = 12 };
    struct vp_buf out = {.arena = arena};
    uint32_t count = 0;

    for (uint32_t i = 0; i < d->steps; i++)
        for (uint32_t k = 0; k < d->step[i].causes && !vp_difference_moves(&d->step[i]); k++)
            if (count++ < MOST)
                vp_buf_printf(&out, "%s%s", out.size ? "; " : "",
                              vp_words_cause(arena, &d->step[i].cause[k]));
    if (count > MOST)
        vp_buf_printf(&out, "; and %" PRIu32 " more", count - MOST);
    return count > 0 ? vp_buf_text(&out) : NULL;
}

static void steps(const struct vp_page *page, const struct vp_difference *d, bool verbose) {
    const char *still = still_text(page->out->arena, d);
    uint32_t number = 0;

    for (uint32_t i = 0; i < d->steps; i++) {
        if (!vp_difference_moves(&d->step[i]))
            continue;
        if (number++ == 0)
            vp_buf_add(page->out, "\n  what changed, applied in this order\n");
        step_lines(page, &d->step[i], number, verbose);
    }
    if (still) {
        vp_buf_add(page->out, "\n");
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "moved nothing: %s", still);
    }
}

static void compared_text(const struct vp_page *page, const struct vp_compared *c, bool verbose) {
    struct vp_arena *arena = page->out->arena;

    if (!c->before || !c->after) {
        vp_page_wrap(page, 0, 2, missing_text(c));
        for (uint32_t i = 0; c->difference && i < c->difference->causes; i++)
            vp_page_wrap(page, 0, 4, vp_words_cause(arena, &c->difference->cause[i]));
        return;
    }
    if (!has_steps(c)) {
        vp_page_printf(page, 0, 2, "no change: %s GiB, %s",
                       vp_format_gib(arena, vp_words_worst(c->after)->need.likely, 2),
                       vp_words_verdict(c->after->verdict));
        return;
    }
    verdicts(page, c);
    table(page, c);
    steps(page, c->difference, verbose);
}

void vp_diff_text(struct vp_buf *out, const struct vp_diff_report *report,
                  const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);

    vp_page_wrap(&page, 0, 2, inputs_text(out->arena, report));
    for (size_t i = 0; i < report->count; i++) {
        vp_buf_add(out, "\n");
        if (report->count > 1)
            vp_page_title(&page, vp_arena_printf(out->arena, "== %s ==", report->item[i].name));
        compared_text(&page, &report->item[i], options && options->verbose);
    }
}

/* ---- Markdown ---- */

static void markdown_row(struct vp_buf *out, const char *name, uint64_t before, uint64_t after) {
    struct vp_arena *arena = out->arena;

    vp_buf_printf(out, "| %s | %s | %s | %s |\n", name, vp_format_gib(arena, before, 2),
                  vp_format_gib(arena, after, 2),
                  vp_words_moved(arena, vp_words_minus(after, before)));
}

static void markdown_steps(struct vp_buf *out, const struct vp_difference *d) {
    struct vp_arena *arena = out->arena;

    vp_buf_add(out, "\n| what changed, in this order | where | moved |\n|---|---|---|\n");
    for (uint32_t i = 0; i < d->steps; i++) {
        const char *place = vp_words_place(arena, vp_step_place(&d->step[i]));
        vp_buf_printf(out, "| %s | %s | %s |\n",
                      vp_markdown_text(arena, vp_words_causes(arena, &d->step[i], NAMED)),
                      place ? vp_markdown_code(arena, place) : "",
                      vp_markdown_text(arena, vp_words_step(arena, &d->step[i])));
    }
}

static void markdown_compared(struct vp_buf *out, const struct vp_compared *c) {
    struct vp_arena *arena = out->arena;

    vp_buf_printf(out, "\n#### %s\n\n", vp_markdown_text(arena, c->name));
    if (!c->before || !c->after) {
        vp_buf_printf(out, "%s\n", missing_text(c));
        return;
    }
    if (!has_steps(c)) {
        vp_buf_printf(out, "No change: %s GiB, %s.\n",
                      vp_format_gib(arena, vp_words_worst(c->after)->need.likely, 2),
                      vp_words_verdict(c->after->verdict));
        return;
    }
    vp_buf_printf(out, "**%s**", vp_words_verdict(c->after->verdict));
    if (c->before->verdict != c->after->verdict)
        vp_buf_printf(out, " (was %s)", vp_words_verdict(c->before->verdict));
    vp_buf_printf(out, ", headroom %s GiB (was %s)",
                  vp_words_signed_gib(arena, c->after->headroom_bytes),
                  vp_words_signed_gib(arena, c->before->headroom_bytes));
    vp_buf_add(out, longest_text(arena, c));
    vp_buf_add(out, "\n\n| on the worst device, GiB | before | after | change |\n"
                    "|---|---:|---:|---:|\n");
    for (int i = 0; i < VP_COMPONENT_COUNT; i++)
        if (is_shown(c, i))
            markdown_row(out, vp_words_component(arena, (enum vp_component)i),
                         vp_words_worst(c->before)->component[i].likely,
                         vp_words_worst(c->after)->component[i].likely);
    markdown_row(out, "**needed**", vp_words_worst(c->before)->need.likely,
                 vp_words_worst(c->after)->need.likely);
    markdown_steps(out, c->difference);
}

void vp_diff_markdown(struct vp_buf *out, const struct vp_diff_report *report) {
    vp_buf_printf(out, "### Memory plan: %s\n",
                  vp_markdown_text(out->arena, inputs_text(out->arena, report)));
    for (size_t i = 0; i < report->count; i++)
        markdown_compared(out, &report->item[i]);
}

/* ---- CSV ---- */

static void csv_line(struct vp_buf *out, const struct vp_compared *c, uint32_t number,
                     const struct vp_difference_step *step, const char *component, int64_t bytes) {
    struct vp_arena *arena = out->arena;
    const struct vp_pos *pos = vp_step_place(step);

    vp_report_csv_cell(out, c->name);
    vp_buf_printf(out, ",%" PRIu32 ",", number);
    vp_report_csv_cell(out, vp_words_causes(arena, step, UINT32_MAX));
    vp_buf_add(out, ",");
    vp_report_csv_cell(out, pos ? pos->file : NULL);
    vp_buf_add(out, ",");
    if (pos && pos->line)
        vp_buf_printf(out, "%" PRIu32, pos->line);
    vp_buf_printf(out, ",%s,%" PRId64 "\n", component, bytes);
}

void vp_diff_csv(struct vp_buf *out, const struct vp_diff_report *report) {
    vp_buf_add(out, "scenario,step,changes,file,line,component,moved_bytes\n");
    for (size_t i = 0; i < report->count; i++) {
        const struct vp_compared *c = &report->item[i];
        for (uint32_t s = 0; c->difference && s < c->difference->steps; s++) {
            const struct vp_difference_step *step = &c->difference->step[s];
            bool some = false;
            for (int k = 0; k < VP_COMPONENT_COUNT; k++) {
                if (step->component[k] == 0)
                    continue;
                csv_line(out, c, s + 1, step, vp_component_name((enum vp_component)k),
                         step->component[k]);
                some = true;
            }
            if (!some)
                csv_line(out, c, s + 1, step, "", 0);
        }
    }
}

/* ---- JSON ---- */

static const char *state_of(const struct vp_compared *c) {
    if (!c->in_before)
        return "added";
    if (!c->in_after)
        return "removed";
    if (!c->before || !c->after)
        return "refused";
    return c->difference && c->difference->causes > 0 ? "changed" : "unchanged";
}

void vp_diff_json(struct vp_json *json, const struct vp_diff_report *report) {
    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.diff/1");
    vp_json_key_text(json, "old", report->before);
    vp_json_key_text(json, "new", report->after);
    vp_json_key(json, "scenarios");
    vp_json_list(json);
    for (size_t i = 0; i < report->count; i++) {
        const struct vp_compared *c = &report->item[i];
        vp_json_map(json);
        vp_json_key_text(json, "scenario", c->name);
        vp_json_key_text(json, "state", state_of(c));
        vp_json_key(json, "before");
        vp_difference_json_side(json, c->before);
        vp_json_key(json, "after");
        vp_difference_json_side(json, c->after);
        vp_difference_json(json, c->difference);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, report->diags);
    vp_json_end(json, '}');
}
