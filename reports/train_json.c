#include "reports/train_json.h"

#include "planner/plan/figures.h"

static void likely_figures(struct vp_json *json, const struct vp_training_stage *stage) {
    struct vp_figure figures[VP_FIGURES];
    size_t count = vp_figures_of_stage(figures, stage);

    for (size_t i = 0; i < count; i++)
        vp_json_key_u64(json, figures[i].key, figures[i].amount.likely);
}

void vp_train_json_report(struct vp_json *json, const struct vp_result *result) {
    const struct vp_training_stage *worst = &result->training.stage[result->training.worst];
    struct vp_figure figures[VP_FIGURES];
    size_t count = vp_figures_of_stage(figures, worst);

    vp_json_key(json, "engine_report");
    vp_json_map(json);
    likely_figures(json, worst);
    vp_json_end(json, '}');
    vp_json_key(json, "intervals");
    vp_json_map(json);
    for (size_t i = 0; i < count; i++) {
        if (figures[i].amount.low == figures[i].amount.high)
            continue;
        vp_json_key(json, figures[i].key);
        vp_json_map_inline(json);
        vp_json_key_u64(json, "low", figures[i].amount.low);
        vp_json_key_u64(json, "high", figures[i].amount.high);
        vp_json_end(json, '}');
    }
    vp_json_end(json, '}');
}

static void instant(struct vp_json *json, const struct vp_instant *at) {
    vp_json_map_inline(json);
    vp_json_key_text(json, "instant", vp_step_name(at->step));
    vp_json_key_text(json, "cause", at->cause);
    vp_json_key(json, "layer");
    if (at->layer == VP_NO_LAYER)
        vp_json_null(json);
    else
        vp_json_u64(json, at->layer);
    vp_json_key(json, "bytes");
    vp_json_map(json);
    vp_json_key_u64(json, "low", at->bytes.low);
    vp_json_key_u64(json, "likely", at->bytes.likely);
    vp_json_key_u64(json, "high", at->bytes.high);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

void vp_train_json_training(struct vp_json *json, const struct vp_result *result) {
    const struct vp_training_report *report = &result->training;
    const struct vp_training_stage *worst = &report->stage[report->worst];

    vp_json_key(json, "training");
    vp_json_map(json);
    vp_json_key(json, "stages");
    vp_json_list(json);
    for (uint32_t i = 0; i < report->stages; i++) {
        vp_json_map(json);
        vp_json_key_u64(json, "layers", report->stage[i].numbers.layers);
        vp_json_key_u64(json, "in_flight", report->stage[i].numbers.in_flight);
        likely_figures(json, &report->stage[i]);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    vp_json_key(json, "peak");
    instant(json, &worst->peak);
    vp_json_key(json, "candidates");
    vp_json_list(json);
    for (size_t i = 0; i < sizeof worst->candidate / sizeof *worst->candidate; i++)
        instant(json, &worst->candidate[i]);
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}
