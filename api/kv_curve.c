#include "api/kv_curve.h"

#include "api/levers.h"
#include "planner/base/units.h"

enum { POINTS = 24, STEP = 256, SETTINGS = 8 };
static const char *const FORMATS[] = {"bf16", "fp16", "fp8", "int8", "fp4", "q8_0", "q4_0"};
enum { FORMAT_COUNT = sizeof FORMATS / sizeof FORMATS[0] };

struct asker {
    const struct vp_variants *variants;
    const struct vp_scenario *base;
    struct vp_ctx scratch;
    struct vp_diags diags;
    struct vp_arena *arena; /* of the scratch, given back after each question */
};

/* NULL in place of a format: as the scenario has it. */
static size_t settings_of(struct asker *a, struct vp_setting out[SETTINGS], const char *format,
                          uint64_t context) {
    const char *path = vp_field_path_for(a->base->engine.kind, VP_F_KV_DTYPE);
    size_t n = 0;
    if (format)
        out[n++] = (struct vp_setting){.key = path, .path = path, .value = format};
    if (context) {
        struct vp_lever_value v = vp_lever_workload(a->arena, a->base, VP_F_CONTEXT, context);
        for (uint32_t i = 0; i < v.sets && n < SETTINGS; i++)
            out[n++] = v.set[i];
    }
    return n;
}

/* False: the variant is refused. */
static bool ask(struct asker *a, struct vp_result *out, const char *format, uint64_t context,
                bool whole) {
    struct vp_setting settings[SETTINGS];
    const struct vp_scenario *scenario;
    a->diags = (struct vp_diags){.arena = a->arena};
    size_t n = settings_of(a, settings, format, context);
    if (vp_variants_make(a->variants, &a->scratch, &scenario, settings, n) != VP_OK)
        return false;
    return whole ? vp_plan_answer(&a->scratch, out, scenario) == VP_OK
                 : vp_plan_evaluate(a->arena, out, scenario);
}

static uint64_t cache_of(const struct vp_result *result) {
    const struct vp_device *worst = &result->devices[result->worst];
    return worst->component[VP_C_KV_CACHE].likely;
}

/* A line without points for a format that may be had, and that takes other bytes than those before
 * it. own: bytes of the lines so far, at the scenario's context. */
static void open_line(struct asker *a, struct vp_kv_lines *out, const char *format, uint64_t *own) {
    struct vp_arena_mark mark = vp_arena_mark(a->arena);
    struct vp_result result;
    bool good = ask(a, &result, format, 0, true) && result.kv.known && cache_of(&result) > 0;
    for (uint32_t i = 0; i < out->count && good; i++) /* fp16 takes what bf16 does */
        good = own[i] != cache_of(&result);
    if (good) {
        own[out->count] = cache_of(&result);
        out->line[out->count++] =
            (struct vp_kv_line){.format = format, .most = result.prices.max_context};
    }
    vp_arena_rewind(a->arena, mark);
}

static void fill_line(struct asker *a, struct vp_arena *arena, struct vp_kv_line *line,
                      uint64_t step) {
    line->context = VP_NEW_ARRAY(arena, POINTS, uint64_t);
    line->bytes = VP_NEW_ARRAY(arena, POINTS, uint64_t);
    for (uint64_t k = 1; k <= POINTS; k++) {
        struct vp_arena_mark mark = vp_arena_mark(a->arena);
        struct vp_result result;
        if (ask(a, &result, line->format, k * step, false)) {
            line->context[line->count] = k * step;
            line->bytes[line->count++] = cache_of(&result);
        }
        vp_arena_rewind(a->arena, mark);
    }
}

void vp_kv_curve(struct vp_ctx *ctx, struct vp_kv_lines *out, const struct vp_variants *variants,
                 const struct vp_result *base) {
    struct vp_arena arena = {.oom = ctx->arena->oom, .take = ctx->arena->take};
    struct asker a = {.variants = variants, .base = base->scenario, .scratch = *ctx};
    const struct vp_device *worst = &base->devices[base->worst];
    uint64_t own[FORMAT_COUNT + 1], most = base->scenario->serve.context;
    a.arena = a.scratch.arena = &arena;
    a.scratch.diags = &a.diags;
    *out = (struct vp_kv_lines){
        .room_bytes = vp_above(worst->usable_bytes, vp_above(worst->need.likely, cache_of(base)))};
    out->line = VP_NEW_ARRAY(ctx->arena, FORMAT_COUNT + 1, struct vp_kv_line);
    open_line(&a, out, vp_dtype_name(base->scenario->precision.kv_cache), own);
    if (out->count > 0)
        out->line[0].now = true;
    for (int f = 0; f < (int)FORMAT_COUNT; f++)
        open_line(&a, out, FORMATS[f], own);
    for (uint32_t i = 0; i < out->count; i++)
        most = vp_max(most, out->line[i].most);
    for (uint32_t i = 0; i < out->count; i++)
        fill_line(&a, ctx->arena, &out->line[i],
                  vp_ceil_div(vp_ceil_div(most, POINTS), STEP) * STEP);
    vp_arena_free(&arena);
}
