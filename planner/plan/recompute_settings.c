#include "planner/plan/recompute_settings.h"

#include "planner/base/sum.h"
#include "planner/recompute/judge.h"

bool vp_shape_is_enumerated(enum vp_recompute_shape shape) {
    static const bool ENUMERATED[] = {
#define X(name, enumerated, meaning) enumerated,
        VP_RECOMPUTE_SHAPES
#undef X
    };
    return ENUMERATED[shape];
}

/* ---- which numbers there are ---- */

/* Layers of the chunk that layer i lies in, and its place there. */
static uint32_t chunk_of(const struct vp_train_stage *stage, uint32_t i, uint32_t *position) {
    uint32_t first = i, end = i;
    while (first > 0 && stage->layer[first - 1].chunk == stage->layer[i].chunk)
        first--;
    while (end < stage->layers && stage->layer[end].chunk == stage->layer[i].chunk)
        end++;
    *position = i - first;
    return end - first;
}

static uint32_t longest_chunk(const struct vp_train_stage *stage) {
    uint32_t longest = 0, position;
    for (uint32_t i = 0; i < stage->layers; i++)
        longest = (uint32_t)vp_max(longest, chunk_of(stage, i, &position));
    return longest;
}

/* Do both have the same options? Most layers are like the one before. */
static bool is_like(const struct vp_train_layer *a, const struct vp_train_layer *b) {
    return a->block == b->block && a->tape == b->tape &&
           a->weight_temp_bytes == b->weight_temp_bytes &&
           a->gradient_temp_bytes == b->gradient_temp_bytes;
}

/* Regions that leave something out of some layer here. */
static uint32_t regions(const struct vp_scenario *scenario, const struct vp_stage_chain *stage) {
    const struct vp_train_layer *layer = stage->plain->layer;
    uint32_t set = 0;
    for (uint32_t i = 0; i < stage->plain->layers && i < stage->chain.layers; i++)
        for (uint32_t k = 0; k < VP_TAPE_REGIONS && !(i && is_like(&layer[i], &layer[i - 1])); k++)
            if (vp_train_chain_option(scenario, &layer[i], UINT32_C(1) << k).t <
                stage->chain.chain.options[i][0].t)
                set |= UINT32_C(1) << k;
    return set;
}

uint32_t vp_shape_last(enum vp_recompute_shape shape, const struct vp_scenario *scenario,
                       const struct vp_stage_chain *stages, uint32_t count) {
    uint32_t last = 0, layers = 0, set = 0;
    for (uint32_t i = 0; i < count; i++) {
        last = (uint32_t)vp_max(last, longest_chunk(stages[i].plain));
        layers += stages[i].plain->layers;
        if (shape == VP_SHAPE_SELECTIVE)
            set |= regions(scenario, &stages[i]);
    }
    if (shape == VP_SHAPE_SELECTIVE)
        return set;
    if (shape == VP_SHAPE_KTH)
        return layers;
    bool numbered =
        shape == VP_SHAPE_UNIFORM || shape == VP_SHAPE_INTERVAL || shape == VP_SHAPE_BLOCK;
    return numbered ? last : 0;
}

/* ---- chains with other options ---- */

/* The stage's chain with the two options {all, other[i]} in each layer. */
static void set_options(struct vp_arena *arena, struct vp_train_chain *chain,
                        const struct vp_tape_option *other, uint32_t select) {
    uint32_t n = chain->chain.n;
    const struct vp_tape_option **lists = VP_NEW_ARRAY(arena, n, const struct vp_tape_option *);
    uint32_t *counts = VP_NEW_ARRAY(arena, n, uint32_t);
    const uint32_t **selects = VP_NEW_ARRAY(arena, n, const uint32_t *);
    uint32_t *pair = VP_NEW_ARRAY(arena, 2, uint32_t);
    pair[1] = select;
    for (uint32_t i = 0; i < n; i++) {
        struct vp_tape_option *list = VP_NEW_ARRAY(arena, 2, struct vp_tape_option);
        list[0] = chain->chain.options[i][0];
        if (i < chain->layers)
            list[1] = other[i];
        lists[i] = list;
        counts[i] = i < chain->layers ? 2 : 1;
        selects[i] = pair;
    }
    chain->chain.options = lists;
    chain->chain.option_counts = counts;
    chain->select = selects;
}

/* A segment of one layer as a tape option, with exactly the judge's peak and time of the segment:
 * its forward saves nothing, its backward holds the whole tape, and before that the forward runs
 * again while the gradient of its output waits. */
static struct vp_tape_option alone(const struct vp_chain *c, uint32_t i) {
    const struct vp_tape_option *full = &c->options[i][0];
    uint64_t again = vp_above(c->x[i + 1] + full->wf, c->g[i]);
    return (struct vp_tape_option){
        .r = c->f[i], .wf = c->wn[i], .wb = full->t + vp_max(full->wb, again)};
}

static void set_all_or_nothing(struct vp_arena *arena, struct vp_train_chain *chain) {
    struct vp_tape_option *none = VP_NEW_ARRAY(arena, chain->layers, struct vp_tape_option);
    for (uint32_t i = 0; i < chain->layers; i++)
        none[i] = alone(&chain->chain, i);
    set_options(arena, chain, none, UINT32_MAX);
}

static void set_selective(struct vp_arena *arena, struct vp_train_chain *chain,
                          const struct vp_scenario *scenario, const struct vp_train_stage *stage,
                          uint32_t select) {
    struct vp_tape_option *some = VP_NEW_ARRAY(arena, chain->layers, struct vp_tape_option);
    for (uint32_t i = 0; i < chain->layers; i++)
        some[i] = i && is_like(&stage->layer[i], &stage->layer[i - 1])
                      ? some[i - 1]
                      : vp_train_chain_option(scenario, &stage->layer[i], select);
    set_options(arena, chain, some, select);
}

/* ---- plans by rule ---- */

/* Layers from i on that the rule runs again as one piece; 0: layer i is kept. */
static uint32_t piece(const struct vp_train_stage *stage, uint32_t i,
                      const struct vp_recompute_setting *setting) {
    uint32_t position, k = setting->number, length = chunk_of(stage, i, &position);
    switch (setting->shape) {
    case VP_SHAPE_ALL:
        return 1;
    case VP_SHAPE_KTH:
        return (stage->layer[i].layer + 1) % k == 0;
    case VP_SHAPE_UNIFORM:
    case VP_SHAPE_INTERVAL:
        return (uint32_t)vp_min(k, length - position);
    case VP_SHAPE_BLOCK:
        return position < k;
    default:
        return 0;
    }
}

static void make_plan(struct vp_arena *arena, struct vp_stage_plan *out,
                      const struct vp_train_stage *stage,
                      const struct vp_recompute_setting *setting) {
    uint32_t n = out->chain.chain.n, count = 0;
    struct vp_plan_item *items = VP_NEW_ARRAY(arena, n, struct vp_plan_item);
    for (uint32_t i = 0; i < n;) {
        uint32_t length = i < stage->layers ? piece(stage, i, setting) : 0;
        bool part = setting->shape == VP_SHAPE_SELECTIVE && i < stage->layers;
        items[count++] = (struct vp_plan_item){.first = i,
                                               .last = i + (length > 0 ? length - 1 : 0),
                                               .option = part,
                                               .recompute = length > 0};
        i = items[count - 1].last + 1;
    }
    out->plan = (struct vp_recompute_plan){.items = items, .count = count};
}

static void judge(struct vp_arena *arena, struct vp_stage_plan *out, uint64_t budget_bytes) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    const struct vp_chain *chain = &out->chain.chain;
    struct vp_chain_schedule schedule;
    struct vp_judgement j;
    vp_plan_schedule(arena, &schedule, chain, &out->plan);
    vp_judge(arena, &j, chain, &schedule);
    out->peak_bytes = j.peak_bytes + (out->chain.in_flight - 1) * vp_plan_stored(chain, &out->plan);
    out->time = j.time;
    out->feasible = out->peak_bytes <= budget_bytes;
    vp_arena_rewind(arena, mark);
}

static bool divides(const struct vp_train_stage *stage, uint32_t k) {
    uint32_t position;
    for (uint32_t i = 0; i < stage->layers; i++)
        if (chunk_of(stage, i, &position) % k != 0)
            return false;
    return true;
}

/* ---- plans by the solver ---- */

/* Chunks of an interleaved schedule are apart in the model, so no segment spans two: there each
 * layer is recomputed by itself or not. */
static void solve(struct vp_arena *arena, struct vp_stage_plan *out, enum vp_recompute_shape shape,
                  uint64_t budget_bytes) {
    bool apart = out->chain.apart, several = out->chain.in_flight > 1;
    enum vp_recompute_class class = several ? VP_PLACE_PIPELINE : VP_PLACE_JOINT;
    struct vp_recompute_answer answer;
    if (shape == VP_SHAPE_LAYERS || (apart && shape == VP_SHAPE_SEGMENTS)) {
        set_all_or_nothing(arena, &out->chain);
        class = VP_PLACE_OPTIONS;
    } else if (shape == VP_SHAPE_SEGMENTS) {
        class = VP_PLACE_SEGMENTS;
    } else if (apart) {
        class = VP_PLACE_OPTIONS;
    }
    vp_recompute_single(arena, &answer, &out->chain.chain, class, budget_bytes,
                        out->chain.in_flight);
    out->proven = answer.feasible && answer.time == answer.bound;
    if (!answer.feasible)
        vp_recompute_single(arena, &answer, &out->chain.chain, class, answer.least_bytes,
                            out->chain.in_flight);
    out->plan = answer.plan;
    judge(arena, out, budget_bytes);
}

bool vp_setting_apply(struct vp_arena *arena, struct vp_stage_plan *out,
                      const struct vp_scenario *scenario, const struct vp_stage_chain *stage,
                      const struct vp_recompute_setting *setting, uint64_t budget_bytes) {
    *out = (struct vp_stage_plan){.chain = stage->chain, .proven = true};
    if (setting->shape == VP_SHAPE_UNIFORM && !divides(stage->plain, setting->number))
        return false;
    if (!vp_shape_is_enumerated(setting->shape)) {
        solve(arena, out, setting->shape, budget_bytes);
        return true;
    }
    if (setting->shape == VP_SHAPE_SELECTIVE)
        set_selective(arena, &out->chain, scenario, stage->plain, setting->select);
    make_plan(arena, out, stage->plain, setting);
    judge(arena, out, budget_bytes);
    return true;
}
