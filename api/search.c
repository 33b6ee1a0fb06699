#include "api/search.h"

#include <stdio.h>

#include "api/plan_command.h"
#include "planner/base/text.h"

static void begin(struct vp_ctx *ctx, struct vp_search *out, const char *input,
                  const struct vp_setting *settings, size_t setting_count) {
    *out = (struct vp_search){
        .ctx = ctx, .input = input, .settings = settings, .setting_count = setting_count};
    out->arena.oom = ctx->arena->oom;
    out->arena.take = ctx->arena->take;
}

static enum vp_status complete(struct vp_ctx *ctx, struct vp_search *out, enum vp_status status) {
    if (status == VP_OK)
        status = vp_quality_read(ctx, &out->quality);
    if (status == VP_OK)
        out->base = vp_variants_base(out->variants);
    return status;
}

enum vp_status vp_search_open(struct vp_ctx *ctx, struct vp_search *out, const char *input,
                              const struct vp_setting *settings, size_t setting_count) {
    begin(ctx, out, input, settings, setting_count);
    return complete(ctx, out,
                    vp_variants_open(ctx, &out->variants, input, settings, setting_count));
}

enum vp_status vp_search_over(struct vp_ctx *ctx, struct vp_search *out,
                              const struct vp_variants *variants, const char *input,
                              const struct vp_setting *settings, size_t setting_count) {
    begin(ctx, out, input, settings, setting_count);
    return complete(ctx, out,
                    vp_variants_over(ctx, &out->variants, variants, settings, setting_count));
}

void vp_search_close(struct vp_search *search) {
    vp_variants_close(search->variants);
    vp_arena_free(&search->arena);
}

bool vp_trial_may_fit(const struct vp_trial *t) {
    return t->made && t->verdict != VP_DOES_NOT_FIT && t->slo != VP_SLO_BROKEN;
}

bool vp_trial_fits(const struct vp_trial *t) {
    return vp_trial_may_fit(t) && t->verdict == VP_FITS && t->slo <= VP_SLO_OPEN;
}

/* ---- figures of a plan ---- */

static double price_of(const struct vp_search *search, const struct vp_hardware *hw) {
    double each = hw->price_per_hour;

    for (size_t i = 0; i < search->prices.count; i++)
        if (!search->prices.gpu[i] || vp_name_eq(search->prices.gpu[i], hw->gpu.id) ||
            (hw->gpu_name && vp_name_eq(search->prices.gpu[i], hw->gpu_name)))
            each = search->prices.price[i];
    return each * (double)hw->count;
}

static double best_known(const struct vp_estimate *e) {
    return e->basis == VP_BASIS_NONE ? 0 : e->basis == VP_BASIS_BOUND ? e->low : e->likely;
}

static void take_times(struct vp_trial *out, const struct vp_result *plan) {
    const struct vp_scenario *s = plan->scenario;

    vp_slo_times(out, plan);
    if (!s->training) {
        out->time_ms = best_known(&out->tpot);
        return;
    }
    double tokens = (double)s->train.global_batch * (double)s->train.sequence;
    out->time_ms = tokens > 0 ? best_known(&out->step) * 1000 / tokens : 0;
}

static void take(const struct vp_search *search, struct vp_trial *out,
                 const struct vp_result *plan) {
    const struct vp_scenario *s = plan->scenario;
    const struct vp_device *worst = &plan->devices[plan->worst];

    out->made = true;
    out->verdict = plan->verdict;
    out->reason = plan->reason;
    snprintf(out->device, sizeof out->device, "gpu%u", worst->first_rank);
    out->need = worst->need;
    out->usable_bytes = worst->usable_bytes;
    out->capacity_bytes = worst->capacity_bytes;
    out->reserved_bytes = worst->reserved_bytes;
    out->headroom_bytes = plan->headroom_bytes;
    out->gpus = s->hardware.count;
    out->tensor = s->parallel.tensor;
    out->pipeline = s->parallel.pipeline;
    out->data = s->parallel.data;
    out->expert = s->parallel.expert;
    out->price_per_hour = price_of(search, &s->hardware);
    out->context = s->training ? s->train.sequence : s->serve.context;
    out->sequences = s->training ? s->train.global_batch : s->serve.concurrency;
    take_times(out, plan);
    out->slo = vp_slo_check(&search->slo, out);
}

/* ---- tries ---- */

static const struct vp_scenario *make(struct vp_search *search, const struct vp_setting *set,
                                      size_t count) {
    const struct vp_scenario *scenario = NULL;

    search->scratch = *search->ctx;
    search->scratch.arena = &search->arena;
    search->scratch.diags = &search->diags;
    search->diags.arena = &search->arena;
    search->diags.count = search->diags.errors = search->diags.dropped = 0;
    search->tried++;
    if (vp_variants_make(search->variants, &search->scratch, &scenario, set, count) != VP_OK)
        return NULL;
    return scenario;
}

void vp_search_try(struct vp_search *search, struct vp_trial *out, const struct vp_setting *set,
                   size_t count) {
    struct vp_arena_mark mark = vp_arena_mark(&search->arena);
    const struct vp_scenario *scenario = make(search, set, count);
    struct vp_result *plan = VP_NEW(&search->arena, struct vp_result);

    *out = (struct vp_trial){0};
    if (scenario && vp_plan_evaluate(&search->arena, plan, scenario)) {
        vp_plan_latency(&search->arena, plan);
        take(search, out, plan);
        bool same = vp_text_eq(scenario->hardware.gpu.id, search->base->hardware.gpu.id);
        out->gpu = same ? search->base->hardware.gpu.id
                        : vp_arena_printf(search->ctx->arena, "%s", scenario->hardware.gpu.id);
    }
    vp_arena_rewind(&search->arena, mark);
}

const struct vp_result *vp_search_plan(struct vp_search *search, const struct vp_setting *set,
                                       size_t count) {
    struct vp_ctx ctx = *search->ctx;
    struct vp_result *plan = VP_NEW(ctx.arena, struct vp_result);
    const struct vp_scenario *scenario = NULL;

    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    ctx.diags->arena = ctx.arena;
    search->tried++;
    if (vp_variants_make(search->variants, &ctx, &scenario, set, count) != VP_OK ||
        vp_plan_run(&ctx, plan, scenario) != VP_OK)
        return NULL;
    return plan;
}

const char *vp_search_refusal(struct vp_search *search, const struct vp_setting *set,
                              size_t count) {
    struct vp_arena_mark mark = vp_arena_mark(&search->arena);
    const char *why = NULL;

    if (!make(search, set, count)) {
        why = "refused";
        for (uint32_t i = search->diags.count; i-- > 0;)
            if (vp_diag_severity(search->diags.items[i].id) == VP_ERROR)
                why = search->diags.items[i].message;
        why = vp_arena_printf(search->ctx->arena, "%s", why);
    }
    vp_arena_rewind(&search->arena, mark);
    return why;
}

bool vp_search_says(const struct vp_search *search, const struct vp_setting *set) {
    const struct vp_scenario *s = search->base;
    enum vp_field field = vp_field_find_for(s->engine.kind, set->path);

    if (field == VP_FIELD_COUNT)
        return false;
    enum vp_origin origin = s->source[field].origin;
    return (origin == VP_ORIGIN_DEFAULT || origin >= VP_ORIGIN_FILE) &&
           vp_text_eq(vp_field_value(search->ctx->arena, s, field), set->value);
}

/* ---- what to paste ---- */

const char *vp_search_command(const struct vp_search *search, const struct vp_patch *patch,
                              uint32_t count) {
    struct vp_arena *arena = search->ctx->arena;
    size_t before = search->setting_count;
    struct vp_setting *all = VP_NEW_ARRAY(arena, before + count + 1, struct vp_setting);

    for (size_t i = 0; i < before; i++)
        all[i] = search->settings[i];
    for (uint32_t k = 0; k < count; k++)
        all[before + k] = (struct vp_setting){patch[k].field, patch[k].value, patch[k].field};
    return vp_plan_command(arena, search->input, all, before + count);
}
