/* The gate's report for people: per scenario what is wrong, what grew and why, what would help. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/difference_words.h"
#include "reports/gate_report.h"
#include "reports/gate_words.h"
#include "reports/sections.h"
#include "reports/words.h"

enum { INDENT = 2, NAME = 16, GIB = 9, MOVED = 12, CAUSE = INDENT + NAME + 2 * GIB + MOVED + 2 };

static enum vp_style style_of(enum vp_check_state state) {
    if (state >= VP_CHECK_FAIL)
        return VP_STYLE_BAD;
    if (state >= VP_CHECK_WARN)
        return VP_STYLE_WARN;
    return state == VP_CHECK_PASS ? VP_STYLE_GOOD : VP_STYLE_STRONG;
}

/* "needs 176.70 of 172.79 GiB (+22.50 GiB)" */
static const char *need_text(struct vp_arena *arena, const struct vp_gate_scenario *s) {
    if (!s->head)
        return "";
    const struct vp_device *head = vp_words_worst(s->head);
    const char *text =
        vp_arena_printf(arena, "needs %s of %s GiB", vp_format_gib(arena, head->need.likely, 2),
                        vp_format_gib(arena, head->usable_bytes, 2));
    if (!s->base)
        return text;
    int64_t moved = vp_words_need_moved(s->base, s->head);
    return vp_arena_printf(arena, "%s (%s)", text, moved ? vp_words_moved(arena, moved) : "+0");
}

/* Cells of the column of names: as wide as the longest one, within limits. */
static int name_cells(const struct vp_gate *gate) {
    enum { LEAST = 12, MOST = 40 };
    int cells = LEAST;

    for (uint32_t i = 0; i < gate->scenario_count; i++) {
        int own = vp_text_cells(gate->scenarios[i].name);
        cells = own > cells ? own : cells;
    }
    return cells > MOST ? MOST : cells;
}

static void head_line(const struct vp_page *page, const struct vp_gate_scenario *s, int name) {
    const char *word = vp_gate_word(s->worst);
    int column = name + 4 + vp_text_cells(word);

    vp_page_left(page, s->name, name);
    vp_page_spaces(page, 2);
    vp_page_styled(page, style_of(s->worst), word);
    vp_page_spaces(page, 2);
    vp_page_wrap(page, column, INDENT, need_text(page->out->arena, s));
}

/* "FAIL memory: need of one GPU ..., budget.yaml:13": the name is what waivers use. */
static void check_line(const struct vp_page *page, const struct vp_check *c) {
    struct vp_arena *arena = page->out->arena;
    const char *place = vp_words_place(arena, &c->pos), *name = "", *code = "";

    if (c->kind != VP_CHECK_SCENARIO)
        name = vp_arena_printf(arena, " %s", c->name);
    if (c->state != VP_CHECK_PASS && c->id < VP_DIAG_COUNT)
        code = vp_arena_printf(arena, " [%s]", vp_diag_code(c->id));
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT, "%s%s: %s%s%s%s", vp_gate_word(c->state), name,
                   c->message, code, place ? ", " : "", place ? place : "");
    if (c->hint && c->state != VP_CHECK_PASS) {
        vp_page_spaces(page, 2 * INDENT);
        vp_page_printf(page, 2 * INDENT, 2 * INDENT, "hint: %s", c->hint);
    }
}

static void moved_row(const struct vp_page *page, const struct vp_gate_scenario *s, int component) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_device *head = vp_words_worst(s->head), *base = vp_words_worst(s->base);
    bool whole = component == VP_COMPONENT_COUNT;
    uint64_t old = whole ? base->need.likely : base->component[component].likely;
    uint64_t new = whole ? head->need.likely : head->component[component].likely;
    const struct vp_difference_step *cause = vp_difference_main(s->difference, component);

    vp_page_spaces(page, INDENT);
    vp_page_left(page, whole ? "needed" : vp_words_component(arena, (enum vp_component)component),
                 NAME);
    vp_page_right(page, vp_format_gib(arena, old, 2), GIB);
    vp_page_right(page, vp_format_gib(arena, new, 2), GIB);
    vp_page_right(page, vp_words_moved(arena, vp_words_minus(new, old)), MOVED);
    vp_page_spaces(page, 2);
    if (!cause || whole) {
        vp_page_wrap(page, CAUSE, CAUSE, "");
        return;
    }
    const char *place = vp_words_place(arena, vp_step_place(cause));
    vp_page_printf(page, CAUSE, 2 * INDENT, "%s%s%s", vp_words_causes(arena, cause, 2),
                   place ? ", " : "", place ? place : "");
}

/* What grew and what shrank, by which change. */
static void moved_rows(const struct vp_page *page, const struct vp_gate_scenario *s) {
    uint32_t rows = 0;

    if (!s->head || !s->base || !s->difference)
        return;
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        if (vp_words_worst(s->head)->component[c].likely ==
            vp_words_worst(s->base)->component[c].likely)
            continue;
        if (rows++ == 0) {
            vp_page_spaces(page, INDENT);
            vp_page_left(page, "GiB of one GPU", NAME);
            vp_page_right(page, "base", GIB);
            vp_page_right(page, "now", GIB);
            vp_page_right(page, "change", MOVED);
            vp_buf_add(page->out, "  mostly by\n");
        }
        moved_row(page, s, c);
    }
    if (rows > 1)
        moved_row(page, s, VP_COMPONENT_COUNT);
}

static void scenario(const struct vp_page *page, const struct vp_gate_scenario *s, int name,
                     bool verbose) {
    struct vp_arena *arena = page->out->arena;
    bool told = s->worst >= VP_CHECK_WAIVED || verbose;

    head_line(page, s, name);
    /* the same file in a folder given by --base-dir is no other one */
    if (told && s->base_file && s->file && !vp_text_ends(s->base_file, s->file)) {
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, INDENT, "was in %s", s->base_file);
    }
    for (uint32_t i = 0; i < s->check_count; i++)
        if (s->checks[i].state != VP_CHECK_PASS || verbose)
            check_line(page, &s->checks[i]);
    if (told)
        moved_rows(page, s);
    const char *changes = s->head ? NULL : vp_words_changes(arena, s->difference, 6);
    if (changes) {
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "changed since the base: %s", changes);
    }
    const char *ways = s->worst >= VP_CHECK_WARN ? vp_gate_to_pass(arena, s) : NULL;
    if (ways) {
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "to pass: %s", ways);
    }
}

void vp_gate_text(struct vp_buf *out, const struct vp_gate *gate, int exit_code,
                  const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);
    const uint32_t *order = vp_gate_order(out->arena, gate);
    int name = name_cells(gate);

    vp_page_printf(&page, 0, 2, "base: %s", vp_gate_base_text(out->arena, gate));
    vp_buf_add(out, "\n");
    for (uint32_t i = 0; i < gate->scenario_count; i++)
        scenario(&page, &gate->scenarios[order[i]], name, options && options->verbose);
    if (gate->scenario_count > 0)
        vp_buf_add(out, "\n");
    vp_page_printf(&page, 0, 2, "%s; exit %d", vp_gate_counts(out->arena, gate), exit_code);
}
