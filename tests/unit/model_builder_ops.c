#include "tests/unit/model_builder_ops.h"

#include <string.h>

struct vp_ops ops_list;

void ops_make(const struct vp_block *block) {
    struct vp_model model = {.hidden = HIDDEN};
    vp_ops_block(&ops_list, &model, block);
    assert_false(ops_list.overflow);
    assert_true(ops_list.count <= VP_OPS_MAX);
}

const struct vp_op *ops_nth(const char *name, int n) {
    for (uint32_t i = 0; i < ops_list.count; i++)
        if (strcmp(ops_list.item[i].name, name) == 0 && n-- == 0)
            return &ops_list.item[i];
    fail_msg("no operator \"%s\"", name);
    return NULL;
}

const struct vp_op *ops_named(const char *name) { return ops_nth(name, 0); }

bool ops_has(const char *name) {
    for (uint32_t i = 0; i < ops_list.count; i++)
        if (strcmp(ops_list.item[i].name, name) == 0)
            return true;
    return false;
}

uint64_t ops_parameters(void) {
    struct vp_sum sum = vp_sum(0);
    for (uint32_t i = 0; i < ops_list.count; i++)
        sum = vp_sum_plus(sum, vp_op_parameters(&ops_list.item[i]));
    assert_false(sum.overflow);
    return sum.v;
}

uint64_t ops_active(void) {
    struct vp_sum sum = vp_sum(0);
    for (uint32_t i = 0; i < ops_list.count; i++)
        sum = vp_sum_plus(sum, vp_op_active(&ops_list.item[i]));
    assert_false(sum.overflow);
    return sum.v;
}

struct vp_block ops_gqa(void) {
    struct vp_block block = block_gqa(4, 2, 8);
    block.attention.v_head_dim = 6;
    block.attention.rotary_dim = 4;
    return block;
}

struct vp_block ops_recurrent(enum vp_linear_kind kind) {
    struct vp_block block = {.norms = 1};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_LINEAR,
                                            .linear = kind,
                                            .key_heads = 2,
                                            .key_dim = 3,
                                            .value_heads = 4,
                                            .value_dim = 5,
                                            .conv_kernel = 4,
                                            .conv_channels = 2 * 6 + 20,
                                            .state_elements = 4 * 3 * 5};
    return block;
}

struct vp_block ops_feed_forward(enum vp_mlp_kind kind, bool bias) {
    struct vp_block block = {.norms = 0};
    block.mlp = (struct vp_mlp){.kind = kind, .intermediate = 40, .bias = bias};
    return block;
}

struct vp_block ops_experts(enum vp_mlp_kind kind) {
    struct vp_block block = {.norms = 0};
    block.moe = (struct vp_moe){.kind = kind, .experts = 10, .top_k = 3, .intermediate = 12};
    return block;
}
