#include "planner/plan/generate.h"

#include "planner/base/sum.h"
#include "planner/plan/plan.h"

struct vp_scenario vp_generate_variant(const struct vp_scenario *scenario, uint64_t context,
                                       uint64_t sequences) {
    struct vp_scenario out = *scenario;

    out.serve.context = out.engine.max_model_len = context;
    out.serve.concurrency = sequences;
    if (!vp_scenario_is_given(scenario, VP_F_MAX_NUM_SEQS))
        out.engine.max_num_seqs = sequences;
    if (!vp_scenario_is_given(scenario, VP_F_BATCHED_TOKENS))
        out.engine.max_batched_tokens = vp_generate_tokens(&out);
    return out;
}

/* What the variant needs on its worst device; UINT64_MAX: more than there is, or than 64 bits. */
static uint64_t need(struct vp_arena *arena, const struct vp_scenario *scenario, uint64_t context,
                     uint64_t sequences, bool *fits) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_scenario variant = vp_generate_variant(scenario, context, sequences);
    struct vp_result plan;
    bool ok = vp_plan_evaluate(arena, &plan, &variant);
    uint64_t bytes = ok ? plan.devices[plan.worst].need.likely : UINT64_MAX;

    *fits = ok && plan.headroom_bytes >= 0;
    vp_arena_rewind(arena, mark);
    return bytes;
}

/* The largest number up to `limit` for which the workload fits; 0: none. The need never falls with
 * either number, so bisection finds it. */
static uint64_t largest(struct vp_arena *arena, const struct vp_scenario *scenario, bool lengths,
                        uint64_t other, uint64_t limit) {
    uint64_t fits = 0, beyond = limit;
    bool ok;

    need(arena, scenario, lengths ? limit : other, lengths ? other : limit, &ok);
    if (ok)
        return limit;
    while (beyond - fits > 1) {
        uint64_t middle = fits + (beyond - fits) / 2;
        need(arena, scenario, lengths ? middle : other, lengths ? other : middle, &ok);
        if (ok)
            fits = middle;
        else
            beyond = middle;
    }
    return fits;
}

void vp_generate_prices(struct vp_arena *arena, struct vp_result *result) {
    enum { MORE = 1024 };
    const uint64_t most = UINT64_C(1) << 32;
    const struct vp_scenario *scenario = result->scenario;
    struct vp_prices *prices = &result->prices;
    uint64_t context = scenario->serve.context, sequences = scenario->serve.concurrency;
    uint64_t model = scenario->model->max_position, limit = model > 0 ? model : most;
    bool fits;

    if (!result->kv.known)
        return;
    uint64_t now = need(arena, scenario, context, sequences, &fits);
    uint64_t longer = need(arena, scenario, context + MORE, sequences, &fits);
    uint64_t wider = need(arena, scenario, context, sequences + 1, &fits);
    prices->per_1k_context = longer > now ? longer - now : 0;
    prices->per_sequence = wider > now ? wider - now : 0;
    prices->max_context = largest(arena, scenario, true, sequences, limit);
    prices->max_concurrency = largest(arena, scenario, false, context, most);
    prices->context_capped = model > 0 && prices->max_context == limit;
    result->kv.max_context = largest(arena, scenario, true, 1, limit);
    result->kv.max_concurrency_milli = 1000 * prices->max_concurrency;
}
