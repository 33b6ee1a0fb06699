#include "planner/memory/encoder.h"

#include <string.h>

/* Images of the profile run: what the budget admits, and what so many requests may hold. */
static uint64_t count_items(const struct vp_scenario *scenario, uint64_t budget) {
    const struct vp_engine *engine = &scenario->engine;
    uint64_t tokens = scenario->model->encoder.item_tokens;
    uint64_t per_prompt = engine->max_model_len / tokens;

    if (scenario->images.limit > 0)
        per_prompt = vp_min(per_prompt, scenario->images.limit);
    struct vp_sum requests = vp_sum_mul(vp_sum(engine->max_num_seqs), vp_max(per_prompt, 1));
    uint64_t items = budget / tokens;
    if (!requests.overflow)
        items = vp_min(items, requests.v);
    return vp_max(items, 1);
}

static struct vp_sum elements(uint64_t items, uint64_t each, uint64_t width) {
    return vp_sum_mul(vp_sum_mul(vp_sum(items), each), width);
}

void vp_encoder_run(struct vp_encoder_run *out, const struct vp_scenario *scenario) {
    const struct vp_encoder *e = &scenario->model->encoder;
    enum vp_dtype compute = scenario->precision.compute;
    const uint64_t low = 750, high = 1500; /* permille; see F-A-04 */
    bool runs = scenario->engine.kind == VP_ENGINE_VLLM &&
                scenario->engine.rules.multimodal_bytes > 0 && !scenario->images.off &&
                !scenario->images.unprofiled;

    memset(out, 0, sizeof *out);
    if (!e->known || !runs || e->item_tokens == 0)
        return;
    out->known = true;
    out->budget_tokens = vp_max(scenario->engine.max_batched_tokens, e->item_tokens);
    out->items = count_items(scenario, out->budget_tokens);
    struct vp_sum kept = vp_sum_plus(elements(out->items, e->item_outputs, e->output_width),
                                     elements(out->items, e->item_patches, e->patch_elements));
    uint64_t width = vp_ceil_div(e->width, scenario->parallel.tensor);
    struct vp_sum per_patch =
        vp_sum_plus(vp_sum_mul(vp_sum(e->hidden), 2), vp_sum_mul(vp_sum(width), 3));
    struct vp_sum forward = vp_sum_mul(vp_sum_mul(per_patch, out->items), e->item_patches);
    kept = vp_dtype_bytes(compute, kept);
    forward = vp_dtype_bytes(compute, forward);
    out->overflow = kept.overflow || forward.overflow || forward.v > UINT64_MAX / high;
    if (out->overflow)
        return;
    out->kept_bytes = kept.v;
    out->forward = (struct vp_amount){forward.v * low / 1000, forward.v, forward.v * high / 1000};
}

void vp_encoder_add(struct vp_ledger *ledger, const struct vp_encoder_run *run,
                    const struct vp_scenario *scenario, uint32_t device) {
    const struct vp_encoder *e = &scenario->model->encoder;

    if (!run->known)
        return;
    struct vp_row *row = vp_ledger_add(ledger, VP_C_VISION, VP_FORMULA_ENCODER_KEPT, device,
                                       "encoder outputs and pixels");
    row->from = VP_STEP_PROFILE;
    vp_row_input(row, "items", run->items);
    vp_row_input(row, "outputs", e->item_outputs);
    vp_row_input(row, "width", e->output_width);
    vp_row_input(row, "patches", e->item_patches);
    vp_row_input(row, "elements", e->patch_elements);
    vp_row_input(row, "budget_tokens", run->budget_tokens);
    row->bytes = vp_exactly(run->kept_bytes);
    ledger->overflow |= run->overflow;
}
