#include "tests/unit/tape_builder.h"

#include <string.h>

struct vp_model model;
struct vp_scenario scenario;
struct vp_block block;
struct vp_tape tape;

const enum vp_role QV[2] = {VP_ROLE_Q, VP_ROLE_V};
const enum vp_role ALL[7] = {VP_ROLE_Q,    VP_ROLE_K,  VP_ROLE_V,   VP_ROLE_O,
                             VP_ROLE_GATE, VP_ROLE_UP, VP_ROLE_DOWN};

void begin(enum vp_dtype dtype) {
    memset(&scenario, 0, sizeof scenario);
    memset(&model, 0, sizeof model);
    memset(&block, 0, sizeof block);
    model.model_type = "blocks";
    model.hidden = H;
    model.vocab = 500;
    model.embedding = model.lm_head = true;
    model.schemes[0] = (struct vp_scheme){.data = dtype};
    model.scheme_count = 1;
    model.blocks = &block;
    model.block_count = 1;
    block.count = 1;
    block.norms = 2;
    scenario.model = &model;
    scenario.engine.kind = VP_ENGINE_PYTORCH;
    scenario.parallel = (struct vp_parallel){
        .tensor = 1, .pipeline = 1, .data = 1, .expert = 1, .context = 1, .attention_data = 1};
    scenario.precision.compute = dtype;
    scenario.train.micro_batch = B;
    scenario.train.sequence = S;
    scenario.train.parameters = dtype;
    scenario.train.input_grad = true;
    scenario.training = true;
}

struct vp_attention heads(uint64_t kv, bool bias) {
    return (struct vp_attention){.kind = VP_ATTENTION_GQA,
                                 .heads = HEADS,
                                 .kv_heads = kv,
                                 .head_dim = D,
                                 .v_head_dim = D,
                                 .qkv_bias = bias,
                                 .out_bias = bias};
}

void gpt2(enum vp_dtype dtype, bool dropout) {
    begin(dtype);
    block.norm = VP_NORM_LAYER;
    block.attention = heads(HEADS, true);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = 4 * H, .bias = true};
    scenario.engine.rules.train.joint_qkv = scenario.engine.rules.train.residual_dropout = true;
    scenario.train.ops.dropout_ppb = dropout ? 100000000 : 0;
}

void llama(enum vp_dtype dtype, uint64_t kv, enum vp_attention_impl attention) {
    begin(dtype);
    block.norm = VP_NORM_RMS;
    block.attention = heads(kv, false);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = F};
    scenario.engine.rules.train.softmax_fp32 = true;
    scenario.train.ops.attention = attention;
    scenario.train.ops.repeat_kv = attention != VP_IMPL_FLASH;
}

uint64_t saved(void) {
    vp_tape_block(&tape, &scenario, &block, false);
    assert_false(tape.overflow);
    return tape.saved_bytes;
}

uint64_t saved_first(void) {
    vp_tape_block(&tape, &scenario, &block, true);
    return tape.saved_bytes;
}

uint64_t item_bytes(const char *name) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tape.count; i++)
        if (strcmp(tape.item[i].name, name) == 0)
            bytes += tape.item[i].bytes;
    return bytes;
}

uint64_t group_bytes(enum vp_tape_group group) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tape.count; i++)
        if (tape.item[i].group == group)
            bytes += tape.item[i].bytes;
    return bytes;
}

uint64_t llama_norms(uint64_t e, bool fused) {
    if (fused)
        return 2 * (2 * e * T * H + 4 * T);
    return 2 * ((e == 4 ? 12 : 4 + 2 * e) * T * H + 4 * T);
}

void mla(enum vp_dtype dtype, enum vp_attention_impl attention) {
    llama(dtype, HEADS, attention);
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_MLA,
                                            .heads = HEADS,
                                            .kv_heads = HEADS,
                                            .head_dim = NOPE + ROPE,
                                            .v_head_dim = VD,
                                            .q_lora_rank = QL,
                                            .kv_lora_rank = KL,
                                            .qk_nope_head_dim = NOPE,
                                            .qk_rope_head_dim = ROPE};
}

void moe(enum vp_dtype dtype, uint64_t shared) {
    llama(dtype, 2, VP_IMPL_FLASH);
    block.mlp.kind = VP_MLP_NONE;
    block.moe = (struct vp_moe){.kind = VP_MLP_GATED,
                                .experts = EXPERTS,
                                .top_k = TOP,
                                .intermediate = FE,
                                .shared_intermediate = shared};
}

uint64_t moe_kept(uint64_t e, uint64_t rows) {
    return 4 * T * EXPERTS + (8 + 4) * T * TOP + 4 * T +
           rows * (16 + e * H + 4 * e * FE + e * H + e);
}

void recurrent(enum vp_linear_kind kind) {
    llama(VP_DTYPE_BF16, 2, VP_IMPL_FLASH);
    block.norms = 1;
    block.mlp.kind = VP_MLP_NONE;
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_LINEAR,
                                            .linear = kind,
                                            .key_heads = 2,
                                            .key_dim = 16,
                                            .value_heads = 4,
                                            .value_dim = 12,
                                            .step_rank = 3,
                                            .conv_kernel = 4,
                                            .conv_channels = 2 * 32 + 48,
                                            .state_elements = 1000};
}

void adapt(const enum vp_role *roles, uint32_t count, enum vp_dtype dtype, bool dropout) {
    scenario.train.frozen = scenario.train.lora.enabled = true;
    scenario.train.lora.rank = 4;
    scenario.train.lora.dtype = dtype;
    scenario.train.lora.dropout_ppb = dropout ? 50000000 : 0;
    for (uint32_t i = 0; i < count; i++)
        scenario.train.lora.roles[roles[i]] = true;
}
