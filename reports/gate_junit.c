/* JUnit XML as CI systems read it: testsuites > testsuite (scenario) > testcase (check). A check
 * that fails, or is inconclusive, is a failure; a scenario without a plan an error; a waived check
 * is skipped, with the reason. */
#include <inttypes.h>

#include "reports/difference_words.h"
#include "reports/gate_report.h"
#include "reports/gate_words.h"
#include "reports/markup.h"

struct counts {
    uint32_t tests, failures, errors, skipped;
};

static void count(struct counts *all, const struct vp_gate_scenario *s) {
    for (uint32_t i = 0; i < s->check_count; i++) {
        enum vp_check_state state = s->checks[i].state;
        all->tests++;
        all->failures += state == VP_CHECK_FAIL || state == VP_CHECK_INCONCLUSIVE;
        all->errors += state == VP_CHECK_INVALID;
        all->skipped += state == VP_CHECK_WAIVED;
    }
}

static void attribute(struct vp_buf *out, const char *name, const char *value) {
    vp_buf_printf(out, " %s=\"", name);
    vp_markup_add(out, value);
    vp_buf_add(out, "\"");
}

static void add_counts(struct vp_buf *out, struct counts c) {
    vp_buf_printf(out, " tests=\"%" PRIu32 "\" failures=\"%" PRIu32 "\" errors=\"%" PRIu32 "\"",
                  c.tests, c.failures, c.errors);
}

/* ---- figures ---- */

static void property(struct vp_buf *out, const char *name, const char *value) {
    vp_buf_add(out, "      <property");
    attribute(out, "name", name);
    attribute(out, "value", value);
    vp_buf_add(out, "/>\n");
}

static void property_i64(struct vp_buf *out, const char *name, int64_t value) {
    property(out, name, vp_arena_printf(out->arena, "%" PRId64, value));
}

static void result_properties(struct vp_buf *out, const char *side,
                              const struct vp_result *result) {
    struct vp_arena *arena = out->arena;

    if (!result)
        return;
    const struct vp_device *worst = &result->devices[result->worst];
    property(out, vp_arena_printf(arena, "%s.verdict", side), vp_verdict_name(result->verdict));
    property_i64(out, vp_arena_printf(arena, "%s.need_bytes", side), (int64_t)worst->need.likely);
    property_i64(out, vp_arena_printf(arena, "%s.usable_bytes", side),
                 (int64_t)worst->usable_bytes);
    property_i64(out, vp_arena_printf(arena, "%s.headroom_bytes", side), result->headroom_bytes);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (worst->present[c])
            property_i64(out,
                         vp_arena_printf(arena, "%s.%s_bytes", side,
                                         vp_component_name((enum vp_component)c)),
                         (int64_t)worst->component[c].likely);
}

static void properties(struct vp_buf *out, const struct vp_gate_scenario *s) {
    vp_buf_add(out, "    <properties>\n");
    if (s->file)
        property(out, "file", s->file);
    property(out, "state", vp_check_state_name(s->worst));
    result_properties(out, "base", s->base);
    result_properties(out, "head", s->head);
    vp_buf_add(out, "    </properties>\n");
}

/* ---- checks ---- */

static void line(struct vp_buf *out, const char *text) {
    vp_markup_add(out, text);
    vp_buf_add(out, "\n");
}

/* What failed, what did it, what would help: a line each. */
static void body(struct vp_buf *out, const struct vp_gate_scenario *s, const struct vp_check *c) {
    struct vp_arena *arena = out->arena;
    const char *limit = vp_words_place(arena, &c->pos);
    const char *ways = vp_gate_to_pass(arena, s);

    line(out, c->message);
    if (limit)
        line(out, vp_arena_printf(arena, "%s %s",
                                  c->kind == VP_CHECK_SCENARIO ? "at" : "the limit:", limit));
    for (uint32_t i = 0; s->difference && i < s->difference->steps; i++) {
        const struct vp_difference_step *step = &s->difference->step[i];
        const char *place = vp_words_place(arena, vp_step_place(step));
        if (vp_difference_moves(step))
            line(out, vp_arena_printf(arena, "%s%s%s%s: %s", vp_words_causes(arena, step, 4),
                                      place ? " (" : "", place ? place : "", place ? ")" : "",
                                      vp_words_step(arena, step)));
    }
    const char *changes = s->head ? NULL : vp_words_changes(arena, s->difference, 6);
    if (changes)
        line(out, vp_arena_printf(arena, "changed since the base: %s", changes));
    if (c->hint)
        line(out, vp_arena_printf(arena, "hint: %s", c->hint));
    if (ways)
        line(out, vp_arena_printf(arena, "to pass: %s", ways));
}

static void outcome(struct vp_buf *out, const char *element, const struct vp_gate_scenario *s,
                    const struct vp_check *c) {
    vp_buf_printf(out, "      <%s", element);
    attribute(out, "message", c->message);
    attribute(out, "type",
              vp_arena_printf(out->arena, "%s%s%s", vp_check_state_name(c->state),
                              c->id < VP_DIAG_COUNT ? " " : "",
                              c->id < VP_DIAG_COUNT ? vp_diag_code(c->id) : ""));
    vp_buf_add(out, ">");
    body(out, s, c);
    vp_buf_printf(out, "</%s>\n", element);
}

static void one_check(struct vp_buf *out, const struct vp_gate_scenario *s,
                      const struct vp_check *c) {
    vp_buf_add(out, "    <testcase");
    attribute(out, "classname", s->name);
    attribute(out, "name", c->name);
    attribute(out, "time", "0");
    if (c->state == VP_CHECK_PASS) {
        vp_buf_add(out, "/>\n");
        return;
    }
    vp_buf_add(out, ">\n");
    if (c->state == VP_CHECK_INVALID)
        outcome(out, "error", s, c);
    else if (c->state == VP_CHECK_FAIL || c->state == VP_CHECK_INCONCLUSIVE)
        outcome(out, "failure", s, c);
    else if (c->state == VP_CHECK_WAIVED) {
        vp_buf_add(out, "      <skipped");
        attribute(out, "message", c->message);
        vp_buf_add(out, "/>\n");
    } else {
        vp_buf_add(out, "      <system-out>");
        vp_markup_add(out, c->message);
        vp_buf_add(out, "</system-out>\n");
    }
    vp_buf_add(out, "    </testcase>\n");
}

void vp_gate_junit(struct vp_buf *out, const struct vp_gate *gate) {
    struct counts all = {0};

    for (uint32_t i = 0; i < gate->scenario_count; i++)
        count(&all, &gate->scenarios[i]);
    vp_buf_add(out,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"vramplan gate\"");
    add_counts(out, all);
    vp_buf_add(out, " time=\"0\">\n");
    for (uint32_t i = 0; i < gate->scenario_count; i++) {
        const struct vp_gate_scenario *s = &gate->scenarios[i];
        struct counts own = {0};
        count(&own, s);
        vp_buf_add(out, "  <testsuite");
        attribute(out, "name", s->name);
        add_counts(out, own);
        vp_buf_printf(out, " skipped=\"%" PRIu32 "\" time=\"0\">\n", own.skipped);
        properties(out, s);
        for (uint32_t c = 0; c < s->check_count; c++)
            one_check(out, s, &s->checks[c]);
        vp_buf_add(out, "  </testsuite>\n");
    }
    vp_buf_add(out, "</testsuites>\n");
}
