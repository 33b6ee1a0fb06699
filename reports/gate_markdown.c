/* Markdown for a comment on a pull request, and for a step summary: a table of all scenarios, the
 * worst first, then why. Parts that have no room any more are left out, and counted. */
#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/difference_words.h"
#include "reports/gate_report.h"
#include "reports/gate_words.h"
#include "reports/layout.h"
#include "reports/markdown_text.h"
#include "reports/words.h"

enum {
    TABLE_MOST = 24000,  /* of the table's rows */
    FOOTER_ROOM = 1500,  /* for what comes after the details */
    DETAIL_MOST = 12000, /* of one scenario */
    TEXT_MOST = 300,     /* cells of one name or sentence */
    STEPS_MOST = 20
};

/* Of foreign length: as Markdown, shortened. */
static const char *brief(struct vp_arena *arena, const char *text) {
    struct vp_buf unused = {.arena = arena};
    struct vp_page page = {.out = &unused, .width = VP_PAGE_WIDTH, .utf8 = true};

    return vp_markdown_text(arena, vp_page_shorten(&page, text, TEXT_MOST));
}

/* ---- the table ---- */

static const char *memory_limit(struct vp_arena *arena, const struct vp_gate_scenario *s) {
    for (uint32_t i = 0; i < s->check_count; i++) {
        const struct vp_check *c = &s->checks[i];
        if (c->kind == VP_CHECK_BOUND && c->bound == VP_BOUND_MEMORY && c->limit_known)
            return vp_check_show(arena, c->unit, c->limit);
    }
    return "";
}

static void table_row(struct vp_buf *out, const struct vp_gate_scenario *s) {
    struct vp_arena *arena = out->arena;
    const char *name = brief(arena, s->name);
    const char *mark = s->worst >= VP_CHECK_WARN ? "**" : "";

    if (!s->head) {
        vp_buf_printf(out, "| %s | | | | | %s%s%s |\n", name, mark, vp_gate_word(s->worst), mark);
        return;
    }
    const char *change =
        s->base ? vp_words_moved(arena, vp_words_need_moved(s->base, s->head)) : "new";
    if (!s->base && s->in_base)
        change = "?";
    vp_buf_printf(out, "| %s | %s GiB | %s | %s | %s GiB | %s%s%s |\n", name,
                  vp_format_gib(arena, vp_words_worst(s->head)->need.likely, 2), change,
                  memory_limit(arena, s), vp_words_signed_gib(arena, s->head->headroom_bytes), mark,
                  vp_gate_word(s->worst), mark);
}

static void table(struct vp_buf *out, const struct vp_gate *gate, const uint32_t *order) {
    size_t begin = out->size;
    uint32_t shown = 0;

    if (gate->scenario_count == 0)
        return;
    vp_buf_add(out, "\n| scenario | needs per GPU | change | budget | headroom | |\n"
                    "|---|---:|---:|---:|---:|---|\n");
    while (shown < gate->scenario_count && out->size - begin < TABLE_MOST)
        table_row(out, &gate->scenarios[order[shown++]]);
    if (shown < gate->scenario_count)
        vp_buf_printf(out, "\n%" PRIu32 " further scenarios are not listed; none is worse.\n",
                      gate->scenario_count - shown);
}

/* ---- details ---- */

static void checks(struct vp_buf *out, const struct vp_gate_scenario *s) {
    struct vp_arena *arena = out->arena;

    for (uint32_t i = 0; i < s->check_count && out->size < DETAIL_MOST; i++) {
        const struct vp_check *c = &s->checks[i];
        const char *place = vp_words_place(arena, &c->pos);
        if (c->state == VP_CHECK_PASS)
            continue;
        vp_buf_printf(out, "* **%s** ", vp_gate_word(c->state));
        if (c->kind != VP_CHECK_SCENARIO)
            vp_buf_printf(out, "%s: ", brief(arena, c->name));
        vp_buf_add(out, brief(arena, c->message));
        if (c->id < VP_DIAG_COUNT)
            vp_buf_printf(out, " (%s)", vp_diag_code(c->id));
        if (place)
            vp_buf_printf(out, ", %s", vp_markdown_code(arena, place));
        if (c->hint)
            vp_buf_printf(out, "; %s", brief(arena, c->hint));
        vp_buf_add(out, "\n");
    }
}

static void steps(struct vp_buf *out, const struct vp_difference *d) {
    struct vp_arena *arena = out->arena;
    uint32_t shown = 0, left = 0;

    for (uint32_t i = 0; i < d->steps; i++) {
        const struct vp_difference_step *step = &d->step[i];
        const char *place = vp_words_place(arena, vp_step_place(step));
        if (!vp_difference_moves(step))
            continue;
        if (shown == STEPS_MOST || out->size > DETAIL_MOST) {
            left++;
            continue;
        }
        if (shown++ == 0)
            vp_buf_add(out, "\n| what changed | where | moved |\n|---|---|---|\n");
        vp_buf_printf(out, "| %s | %s | %s |\n", brief(arena, vp_words_causes(arena, step, 4)),
                      place ? vp_markdown_code(arena, place) : "",
                      brief(arena, vp_words_step(arena, step)));
    }
    if (left > 0)
        vp_buf_printf(out, "\n%" PRIu32 " further changes are not listed.\n", left);
}

static bool has_details(const struct vp_gate_scenario *s) {
    bool moved = s->head && s->base && vp_words_need_moved(s->base, s->head) != 0;

    return s->worst >= VP_CHECK_WAIVED || moved;
}

static const char *details(struct vp_arena *arena, const struct vp_gate_scenario *s) {
    struct vp_buf out = {.arena = arena};
    const char *ways = s->worst >= VP_CHECK_WARN ? vp_gate_to_pass(arena, s) : NULL;

    /* inside an HTML element, Markdown's backslashes are text */
    vp_buf_printf(&out, "\n<details><summary>");
    vp_buf_add(&out, vp_markdown_html(arena, s->name));
    vp_buf_add(&out, "</summary>\n\n");
    checks(&out, s);
    const char *changes = s->head ? NULL : vp_words_changes(arena, s->difference, 6);
    if (changes)
        vp_buf_printf(&out, "* changed since the base: %s\n", brief(arena, changes));
    if (s->difference)
        steps(&out, s->difference);
    if (ways)
        vp_buf_printf(&out, "\nTo pass: %s.\n", brief(arena, ways));
    vp_buf_add(&out, "\n</details>\n");
    return vp_buf_text(&out);
}

/* ---- the whole ---- */

static void title(struct vp_buf *out, const struct vp_gate *gate) {
    vp_buf_printf(out, "<!-- vramplan-gate -->\n### Memory plan: %s\n",
                  vp_gate_counts(out->arena, gate));
}

static void notes(struct vp_buf *out, const struct vp_gate *gate) {
    size_t begin = out->size;
    uint32_t left = 0, count = gate->notes ? gate->notes->count : 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct vp_diag *d = &gate->notes->items[i];
        if (out->size - begin > FOOTER_ROOM / 2) {
            left++;
            continue;
        }
        vp_buf_printf(out, "%s* %s: %s (%s)\n", i == 0 ? "\n" : "",
                      vp_severity_name(vp_diag_severity(d->id)), brief(out->arena, d->message),
                      vp_diag_code(d->id));
    }
    if (left > 0)
        vp_buf_printf(out, "* and %" PRIu32 " further notes\n", left);
}

void vp_gate_markdown(struct vp_buf *out, const struct vp_gate *gate) {
    struct vp_arena *arena = out->arena;
    const uint32_t *order = vp_gate_order(arena, gate);
    struct vp_buf last = {.arena = arena};
    uint32_t left = 0;

    notes(&last, gate);
    vp_buf_printf(&last, "\nBase: %s. Planned, not measured, by vramplan %s.\n",
                  brief(arena, vp_gate_base_text(arena, gate)), VP_VERSION);
    title(out, gate);
    table(out, gate, order);
    for (uint32_t i = 0; i < gate->scenario_count; i++) {
        const struct vp_gate_scenario *s = &gate->scenarios[order[i]];
        struct vp_arena_mark mark = vp_arena_mark(arena);
        const char *text = has_details(s) ? details(arena, s) : "";
        size_t size = strlen(text);
        if (out->size + size + last.size + 100 > VP_GATE_MARKDOWN_MOST) {
            left++;
            vp_arena_rewind(arena, mark);
            continue;
        }
        vp_buf_add_n(out, text, size);
    }
    if (left > 0)
        vp_buf_printf(out, "\nDetails of %" PRIu32 " further scenarios have no room here.\n", left);
    vp_buf_add_n(out, vp_buf_text(&last), last.size);
}
