/* One training step over time: the memory of a pipeline stage at every instant, where its peak is
 * and why, and what each phase takes at its worst. h and l go through the stages. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/words.h"
#include "tui/chart_view.h"
#include "tui/ui.h"

enum { BELOW = 9, NAME = 13, GIB = 7, SHARE = 7 };

static uint32_t stage_of(struct vp_ui *ui) {
    const struct vp_training_report *training = &vp_session_plan(ui->session)->training;
    int column = ui->at[VP_SCREEN_TRAIN].column; /* 0: the worst, then the stages from 1 on */
    return column > 0 && (uint32_t)column <= training->stages ? (uint32_t)column - 1
                                                              : training->worst;
}

static const struct vp_device *device_of(const struct vp_result *plan, uint32_t stage) {
    for (uint32_t i = 0; i < plan->device_count; i++)
        if (!plan->devices[i].host && plan->devices[i].stage == stage)
            return &plan->devices[i];
    return &plan->devices[plan->worst];
}

/* ---- drawing ---- */

static void draw_chart(struct vp_ui *ui, struct vp_view view, uint32_t stage) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const struct vp_timeline *timeline = vp_session_timeline(ui->session, stage);
    const struct vp_training_stage *s = &plan->training.stage[stage];
    const char *which = plan->training.stages > 1
                            ? vp_arena_printf(&ui->frame, "stage %" PRIu32 " of %" PRIu32 "%s",
                                              stage, plan->training.stages,
                                              stage == plan->training.worst ? ", the worst" : "")
                            : "one step";
    struct vp_view in = vp_view_box(
        view, VP_LOOK_EDGE, vp_arena_printf(&ui->frame, "%s, GiB over time", which),
        vp_arena_printf(&ui->frame, "peak %s GiB",
                        vp_format_gib(&ui->frame, s->peak.bytes.likely, 1)),
        vp_arena_printf(&ui->frame, "%s^ reserved   * peak   : a later step   across: events",
                        plan->training.stages > 1 ? "h l stage   " : ""));
    if (!timeline) {
        vp_view_text(in, 1, 1, VP_LOOK_DIM,
                     vp_session_has(ui->session, VP_TASK_TIMELINE)
                         ? "there is no timeline of this step"
                         : "walking through the step ...");
        return;
    }
    struct vp_chart *chart = vp_chart_timeline(&ui->frame, timeline);
    if (chart)
        vp_view_chart(in, &ui->frame, chart, true);
}

static void draw_bar(struct vp_view view, int x, int y, int width,
                     const uint64_t bytes[VP_COMPONENT_COUNT], uint64_t whole, uint64_t limit) {
    struct vp_segment segment[VP_COMPONENT_COUNT];
    size_t count = 0;
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (bytes[c] > 0)
            segment[count++] =
                (struct vp_segment){bytes[c], vp_component_letter((enum vp_component)c),
                                    vp_theme_component((enum vp_component)c)};
    vp_view_bar(view, x, y, width, segment, count, whole, limit);
}

/* "W weights 16.4   O optimizer 32.8 ..." */
static void draw_parts(struct vp_ui *ui, struct vp_view view, int y,
                       const uint64_t bytes[VP_COMPONENT_COUNT]) {
    int x = 0;
    for (int c = 0; c < VP_COMPONENT_COUNT && y < view.height; c++) {
        enum vp_component component = (enum vp_component)c;
        if (bytes[c] == 0)
            continue;
        const char *text =
            vp_arena_printf(&ui->frame, "%s %s", vp_words_component(&ui->frame, component),
                            vp_format_gib(&ui->frame, bytes[c], 2));
        if (x > 0 && x + vp_cells_of(text) + 2 > view.width) {
            x = 0;
            if (++y >= view.height)
                return;
        }
        char letter[2] = {vp_component_letter(component), '\0'};
        vp_view_text(view, x, y, vp_theme_component(component), letter);
        x = vp_view_text(view, x + 2, y, VP_LOOK_PLAIN, text) + 3;
    }
}

/* What there is at the worst instant of a phase: by the timeline, else at the peak alone. */
static const uint64_t *parts_of(struct vp_ui *ui, uint32_t stage, int phase) {
    const struct vp_timeline *timeline = vp_session_timeline(ui->session, stage);
    const struct vp_training_stage *s = &vp_session_plan(ui->session)->training.stage[stage];
    if (timeline && timeline->walk->steady.phase[phase].bytes > 0)
        return timeline->walk->steady.phase[phase].component;
    return (int)s->peak.step - VP_STEP_FORWARD == phase ? s->component_at_peak : NULL;
}

static void draw_phases(struct vp_ui *ui, struct vp_view view, uint32_t stage) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const struct vp_training_stage *s = &plan->training.stage[stage];
    const struct vp_device *device = device_of(plan, stage);
    int at = vp_ui_row(ui, 0, VP_TRAIN_MOMENTS);
    struct vp_view in = vp_view_box(
        view, VP_LOOK_KEY, "the worst instant of each phase, GiB",
        vp_arena_printf(&ui->frame, "%s: needs %s of %s", vp_words_verdict(plan->verdict),
                        vp_format_gib(&ui->frame, device->need.likely, 1),
                        vp_format_gib(&ui->frame, device->usable_bytes, 1)),
        NULL);
    vp_ui_scroll(ui, 0, VP_TRAIN_MOMENTS, VP_TRAIN_MOMENTS);
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        const struct vp_instant *m = &s->candidate[i];
        bool peak = m->step == s->peak.step;
        vp_view_left(in, 1, i, NAME, peak ? VP_LOOK_STRONG : VP_LOOK_LABEL,
                     vp_step_name((enum vp_step)(VP_STEP_FORWARD + i)));
        vp_view_right(in, 1 + NAME, i, GIB, peak ? VP_LOOK_STRONG : VP_LOOK_PLAIN,
                      vp_format_gib(&ui->frame, m->bytes.likely, 2));
        vp_view_right(in, 1 + NAME + GIB, i, SHARE, VP_LOOK_PLAIN,
                      vp_words_share(&ui->frame, m->bytes.likely, device->usable_bytes));
        vp_view_text(in, 3 + NAME + GIB + SHARE, i, peak ? VP_LOOK_STRONG : VP_LOOK_DIM,
                     m->cause ? m->cause : "");
        if (peak)
            vp_view_text(in, 0, i, VP_LOOK_STRONG, "*");
        vp_ui_hit_row(ui, in, 0, i, in.width, 0, i);
        if (i == at)
            vp_view_mark(in, 0, i, in.width);
    }
    const uint64_t *parts = parts_of(ui, stage, at);
    if (!parts)
        return;
    draw_bar(in, 1, VP_TRAIN_MOMENTS, in.width - 2, parts, device->capacity_bytes,
             device->usable_bytes);
    draw_parts(ui, vp_view_part(in, 1, 0, in.width - 2, in.height), VP_TRAIN_MOMENTS + 1, parts);
}

void vp_screen_train_draw(struct vp_ui *ui, struct vp_view view) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    if (!plan->training.stage) {
        vp_view_wrap(view, 2, 2, view.width - 4, 4, VP_LOOK_DIM,
                     "This scenario serves a model; there is no training step. A `train:` block in "
                     "the scenario, with an engine that trains, says what is trained.");
        return;
    }
    uint32_t stage = stage_of(ui);
    draw_chart(ui, vp_view_part(view, 0, 0, view.width, view.height - BELOW), stage);
    draw_phases(ui, vp_view_part(view, 0, view.height - BELOW, view.width, BELOW), stage);
}

/* ---- keys ---- */

bool vp_screen_train_act(struct vp_ui *ui, enum vp_action action) {
    const struct vp_training_report *training = &vp_session_plan(ui->session)->training;
    uint32_t stage = training->stage ? stage_of(ui) : 0;
    if (!training->stage || (action != VP_ACT_LEFT && action != VP_ACT_RIGHT))
        return false;
    if (action == VP_ACT_LEFT)
        stage -= stage > 0;
    else
        stage += stage + 1 < training->stages;
    vp_ui_here(ui)->column = (int)stage + 1;
    return true;
}

int vp_screen_train_rows(struct vp_ui *ui) {
    return vp_session_plan(ui->session)->training.stage ? VP_TRAIN_MOMENTS : 0;
}

const char *vp_screen_train_row_text(struct vp_ui *ui, int row) {
    const struct vp_training_report *training = &vp_session_plan(ui->session)->training;
    if (!training->stage || row < 0 || row >= VP_TRAIN_MOMENTS)
        return NULL;
    const char *cause = training->stage[stage_of(ui)].candidate[row].cause;
    return vp_arena_printf(&ui->frame, "%s %s", vp_step_name((enum vp_step)(VP_STEP_FORWARD + row)),
                           cause ? cause : "");
}
