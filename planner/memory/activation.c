#include "planner/memory/activation.h"

#include <string.h>

/* Widest block: elements per token that live at once in its feed-forward, and those of the
 * grouped buffers of its experts; held: the part of these that the engine keeps allocated. MXFP4
 * kernels have no such workspace (2.87 GiB logged for gpt-oss, 2.86 without it). */
struct width {
    uint64_t layer, experts, held;
};

static struct width widest(const struct vp_scenario *scenario) {
    const struct vp_model *model = scenario->model;
    struct vp_layout layout = vp_stage_layout(scenario);
    struct width out = {0, 0, 0};

    for (uint32_t i = 0; i < model->block_count; i++) {
        const struct vp_block *block = &model->blocks[i];
        const struct vp_moe *moe = &block->moe;
        uint64_t dense = vp_ceil_div(block->mlp.intermediate, layout.tensor);
        uint64_t heads =
            vp_ceil_div(block->attention.heads * block->attention.head_dim, layout.attention);
        uint64_t inside = block->mlp.kind == VP_MLP_GATED ? 3 * dense : 2 * dense;
        if (moe->kind != VP_MLP_NONE) {
            /* both grouped products write into buffers of top_k rows per token: gate and up (or
             * the output, when wider), then the activation's result */
            uint64_t width = vp_ceil_div(moe->intermediate, layout.expert_width);
            uint64_t first = moe->kind == VP_MLP_GATED ? 2 * width : width;
            uint64_t input = moe->input > 0 ? moe->input : model->hidden;
            uint64_t rows = moe->top_k * (vp_max(first, input) + width);
            out.experts = vp_max(out.experts, rows);
            const struct vp_scheme *scheme = &model->schemes[block->scheme[VP_ROLE_EXPERT_UP]];
            if (scheme->data != VP_DTYPE_MXFP4)
                out.held = vp_max(out.held, rows);
            inside = vp_max(inside, 3 * vp_ceil_div(moe->shared_intermediate, layout.tensor));
        }
        out.layer = vp_max(out.layer, vp_max(inside, 3 * heads) + 3 * model->hidden);
    }
    return out;
}

/* Tokens of the profile run (of the largest batch, where there is none): a batch; in early vLLM
 * without chunked prefill a whole sequence. */
static uint64_t profile_tokens(const struct vp_scenario *scenario) {
    const struct vp_engine *engine = &scenario->engine;
    bool whole = engine->kind == VP_ENGINE_VLLM && !engine->chunked_prefill &&
                 engine->rules.budget <= VP_VLLM_V0;

    return whole ? vp_max(engine->max_model_len, engine->max_batched_tokens)
                 : engine->max_batched_tokens;
}

static struct vp_amount spread(const struct vp_rules *rules, uint64_t peak) {
    uint64_t slack = rules->activation_slack_bytes;
    uint64_t low = vp_mul_div(peak, rules->activation_low_permille, 1000);
    uint64_t high = vp_mul_div(peak, rules->activation_high_permille, 1000);

    low = vp_min(low, peak > slack ? peak - slack : 0);
    return (struct vp_amount){low, peak, vp_max(high, peak + slack)};
}

/* The encoder's own run, before the network's: images of the largest size, all at once. */
static void add_encoder(struct vp_activation *out) {
    uint64_t kept = out->encoder.kept_bytes;
    struct vp_amount run = vp_amount_add(vp_exactly(kept), out->encoder.forward);

    out->encoder_wins = run.likely > out->total.likely;
    out->total.low = vp_max(out->total.low, run.low);
    out->total.likely = vp_max(out->total.likely, run.likely);
    out->total.high = vp_max(out->total.high, run.high);
}

/* With speculative decoding the rejection sampler is tried as well, on two rows per sequence: up to
 * four copies of the logits in 16 bit, none in some versions (a Qwen3.5-9B with its own layer lost
 * 0.39 GiB to it where the four would be 0.47). A head also keeps the target's hidden states. */
static void add_speculation(struct vp_activation *out, const struct vp_scenario *scenario,
                            bool samples, uint64_t hidden) {
    const uint64_t copies = 8;
    struct vp_sum more = vp_sum_mul(vp_sum(scenario->engine.max_num_seqs), scenario->model->vocab);

    if (scenario->draft.method == VP_DRAFT_NONE || !samples)
        return;
    more = vp_sum_mul(more, copies);
    out->speculation_bytes = more.v / 2;
    struct vp_sum high = vp_sum_add(vp_sum_add(more, hidden), out->total.high);
    out->overflow |= high.overflow;
    if (out->overflow)
        return;
    out->total.likely += out->speculation_bytes;
    out->total.high = high.v;
}

void vp_activation_make(struct vp_activation *out, const struct vp_scenario *scenario, bool last) {
    const struct vp_rules *rules = &scenario->engine.rules;
    const struct vp_model *model = scenario->model;
    uint64_t element = vp_dtype_bytes(scenario->precision.compute, vp_sum(1)).v;
    struct width width = widest(scenario);
    struct vp_sum sampler, layer, experts, held, hidden;

    memset(out, 0, sizeof *out);
    out->tokens = profile_tokens(scenario);
    hidden = vp_sum_mul(vp_sum_mul(vp_sum(out->tokens), model->hidden), element);
    sampler = vp_sum_mul(vp_sum(scenario->engine.max_num_seqs), model->vocab);
    sampler = vp_sum_mul(sampler, rules->sampler_millibytes +
                                      (rules->sampler_adds_logits ? 1000 * element : 0));
    sampler.v = last && model->lm_head ? sampler.v / 1000 : 0;
    layer = vp_sum_mul(vp_sum_mul(vp_sum(out->tokens), width.layer), element);
    experts = vp_sum_mul(vp_sum_mul(vp_sum(out->tokens), width.experts), element);
    held = vp_sum_mul(vp_sum_mul(vp_sum(out->tokens), width.held), element);
    if (!rules->workspace_held)
        held = vp_sum(0);
    out->sampler_bytes = sampler.v;
    out->layer_bytes = layer.v;
    out->workspace_bytes = experts.v;
    vp_encoder_run(&out->encoder, scenario);
    if (model->multimodal && !out->encoder.known && !scenario->images.off &&
        !scenario->images.unprofiled)
        out->encoder_bytes = rules->multimodal_bytes;

    /* during the sampler's run the hidden states are alive, and a workspace that is kept */
    struct vp_sum in_sampler =
        vp_sum_add(vp_sum_plus(sampler, hidden), rules->activation_fixed_bytes);
    struct vp_sum in_layer = vp_sum_plus(layer, experts);
    in_sampler = vp_sum_plus(in_sampler, held);
    out->sampler_wins = in_sampler.v >= in_layer.v;
    if (out->sampler_wins)
        out->workspace_bytes = held.v;
    struct vp_sum peak = vp_sum_add(out->sampler_wins ? in_sampler : in_layer, out->encoder_bytes);
    peak = vp_sum_add(peak, out->encoder.kept_bytes);
    out->overflow =
        peak.overflow || in_layer.overflow || in_sampler.overflow || out->encoder.overflow;
    if (out->overflow)
        return;
    out->total = spread(rules, peak.v);
    add_encoder(out);
    add_speculation(out, scenario, sampler.v > 0, hidden.v);
}

/* The row's formula and what it is called. */
static struct vp_row *add_row(struct vp_ledger *ledger, const struct vp_activation *activation,
                              uint32_t device) {
    enum vp_formula formula = activation->encoder_wins   ? VP_FORMULA_ACT_ENCODER
                              : activation->sampler_wins ? VP_FORMULA_ACT_SAMPLER
                                                         : VP_FORMULA_ACT_LAYER;
    const char *owner = activation->encoder_wins   ? "encoder"
                        : activation->sampler_wins ? "sampler"
                                                   : "forward pass";
    return vp_ledger_add(ledger, VP_C_ACTIVATIONS, formula, device, owner);
}

static void add_inputs(struct vp_row *row, const struct vp_activation *activation,
                       const struct vp_scenario *scenario) {
    const struct vp_encoder *encoder = &scenario->model->encoder;

    if (activation->speculation_bytes > 0)
        vp_row_input(row, "speculation", activation->speculation_bytes);
    if (activation->encoder_wins) {
        vp_row_input(row, "items", activation->encoder.items);
        vp_row_input(row, "patches", encoder->item_patches);
        vp_row_input(row, "hidden", encoder->hidden);
        vp_row_input(row, "width", encoder->width);
        return;
    }
    if (activation->sampler_wins) {
        vp_row_input(row, "max_num_seqs", scenario->engine.max_num_seqs);
        vp_row_input(row, "vocabulary", scenario->model->vocab);
        vp_row_input(row, "sampler_bytes", activation->sampler_bytes);
    } else {
        vp_row_input(row, "layer_bytes", activation->layer_bytes);
    }
    vp_row_input(row, "tokens", activation->tokens);
    vp_row_input(row, "hidden", scenario->model->hidden);
    if (activation->workspace_bytes > 0)
        vp_row_input(row, "expert_workspace", activation->workspace_bytes);
    vp_row_input(row, "fixed", scenario->engine.rules.activation_fixed_bytes);
    vp_row_input(row, "encoder", activation->encoder_bytes);
}

void vp_activation_add(struct vp_ledger *ledger, const struct vp_activation *activation,
                       const struct vp_scenario *scenario, uint32_t device) {
    const struct vp_amount total = activation->total;
    uint64_t kept = activation->encoder.kept_bytes;

    vp_encoder_add(ledger, &activation->encoder, scenario, device);
    struct vp_row *row = add_row(ledger, activation, device);
    row->from = VP_STEP_PROFILE;
    ledger->overflow |= activation->overflow;
    add_inputs(row, activation, scenario);
    row->bytes = (struct vp_amount){total.low - vp_min(kept, total.low),
                                    total.likely - vp_min(kept, total.likely),
                                    total.high - vp_min(kept, total.high)};
}
