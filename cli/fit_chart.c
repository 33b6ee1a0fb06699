#include "cli/fit_chart.h"

#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/charts.h"

enum { BARS = 9 }; /* as it is, and eight proposals */

struct bars {
    const struct vp_result *result[BARS];
    const char *name[BARS];
    uint32_t count;
};

static void add(struct bars *bars, const char *name, const struct vp_result *result) {
    if (!result || bars->count == BARS)
        return;
    bars->name[bars->count] = name;
    bars->result[bars->count++] = result;
}

/* "weights fp8, kv-cache fp8"; of a quantity that was driven as far as it goes, how far. */
static const char *name_of(struct vp_arena *arena, const struct vp_outcome *outcome,
                           const struct vp_proposal *proposal) {
    struct vp_buf out = {.arena = arena};
    for (uint32_t i = 0; i < proposal->changes; i++)
        vp_buf_printf(&out, "%s%s %s", i ? ", " : "", proposal->change[i].lever,
                      proposal->change[i].to);
    if (outcome->question == VP_ASK_MOST)
        vp_buf_printf(&out, "%s%s %" PRIu64, out.size ? ", " : "", outcome->goal, proposal->most);
    if (outcome->question == VP_ASK_FEWEST)
        vp_buf_printf(&out, "%s%" PRIu64 " x %s", out.size ? ", " : "", proposal->trial.gpus,
                      proposal->trial.gpu ? proposal->trial.gpu : "GPU");
    return out.size ? vp_buf_text(&out) : "a proposal";
}

static void add_changes(struct vp_ctx *ctx, struct bars *bars, struct vp_fit_found *found) {
    for (uint32_t i = 0; i < found->outcome->count; i++) {
        const struct vp_proposal *p = &found->outcome->item[i];
        struct vp_setting *set = VP_NEW_ARRAY(ctx->arena, p->patches + 1, struct vp_setting);
        for (uint32_t k = 0; k < p->patches; k++)
            set[k] = (struct vp_setting){p->patch[k].field, p->patch[k].value, "fit"};
        if (p->patches > 0 && bars->count < BARS)
            add(bars, name_of(ctx->arena, found->outcome, p),
                vp_search_plan(&found->search, set, p->patches));
    }
}

/* "33 layers, 8192 x 4" */
static const char *llama_name(struct vp_arena *arena, const struct vp_fit_settings *set) {
    return vp_arena_printf(arena, "%" PRIu64 " layers, %" PRIu64 " x %" PRIu64 ", %s",
                           set->gpu_layers, set->slots, set->context, vp_dtype_name(set->type_k));
}

static void add_llama(struct vp_ctx *ctx, struct bars *bars, const struct vp_fit_found *found) {
    struct vp_ctx quiet = *ctx;
    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena;
    for (uint32_t i = 0; i < found->llama->count && bars->count < BARS; i++) {
        const struct vp_fit_settings *set = &found->llama->item[i].set;
        struct vp_scenario *scenario = VP_NEW(ctx->arena, struct vp_scenario);
        struct vp_result *result = VP_NEW(ctx->arena, struct vp_result);
        *scenario = vp_fit_llama_scenario(found->result->scenario, &found->llama->fixed, set);
        if (vp_plan_answer(&quiet, result, scenario) == VP_OK)
            add(bars, llama_name(ctx->arena, set), result);
    }
}

struct vp_chart *vp_fit_chart(struct vp_ctx *ctx, struct vp_fit_found *found) {
    struct bars bars = {.count = 0};
    add(&bars, "as it is", found->result);
    if (found->llama)
        add_llama(ctx, &bars, found);
    else
        add_changes(ctx, &bars, found);
    struct vp_chart *chart = vp_chart_breakdowns(ctx->arena, bars.result, bars.name, bars.count);
    chart->name = "fit";
    chart->title = "What fit proposes: memory of the fullest device";
    if (found->result)
        chart->subtitle = vp_chart_assumptions(ctx->arena, found->result);
    return chart;
}
