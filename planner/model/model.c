#include "planner/model/model.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *names;
    enum vp_class class_;
    enum vp_shard shard;
} ROLES[VP_ROLE_COUNT] = {
#define X(name, class_, shard, names)                                                              \
    [VP_ROLE_##name] = {names, VP_CLASS_##class_, VP_SHARD_##shard},
#include "planner/model/roles.def"
#undef X
};

static const struct {
    const char *name;
    bool quantised;
} CLASSES[VP_CLASS_COUNT] = {
#define X(name, text, quantised) [VP_CLASS_##name] = {text, quantised},
#include "planner/model/classes.def"
#undef X
};

const char *vp_role_names(enum vp_role role) { return ROLES[role].names; }

enum vp_class vp_role_class(enum vp_role role) { return ROLES[role].class_; }

enum vp_shard vp_role_shard(enum vp_role role) { return ROLES[role].shard; }

const char *vp_class_name(enum vp_class class_) { return CLASSES[class_].name; }

bool vp_class_quantised(enum vp_class class_) { return CLASSES[class_].quantised; }

static bool scheme_equal(const struct vp_scheme *a, const struct vp_scheme *b) {
    return strcmp(a->name, b->name) == 0 && a->data == b->data && a->scale == b->scale &&
           a->scale_dtype == b->scale_dtype && a->group == b->group &&
           a->block_out == b->block_out && a->block_in == b->block_in &&
           a->zero_dtype == b->zero_dtype && a->extra_per_input == b->extra_per_input &&
           a->pad_out == b->pad_out && a->pad_in == b->pad_in && a->input_scale == b->input_scale;
}

uint32_t vp_model_scheme(struct vp_model *model, const struct vp_scheme *scheme) {
    uint32_t i = 0;
    while (i < model->scheme_count && !scheme_equal(&model->schemes[i], scheme))
        i++;
    if (i == model->scheme_count && i < VP_MAX_SCHEMES)
        model->schemes[model->scheme_count++] = *scheme;
    return i;
}

/* The comparisons name every member: padding between members has no defined value, and a layer
 * that differs only there would count as a kind of its own. test_model.c fails when a member was
 * added without being compared. */

static bool attention_equal(const struct vp_attention *a, const struct vp_attention *b) {
    bool heads = a->kind == b->kind && a->heads == b->heads && a->kv_heads == b->kv_heads &&
                 a->head_dim == b->head_dim && a->v_head_dim == b->v_head_dim &&
                 a->window == b->window && a->chunk == b->chunk && a->qkv_bias == b->qkv_bias &&
                 a->out_bias == b->out_bias && a->output_gate == b->output_gate &&
                 a->sinks == b->sinks && a->key_is_value == b->key_is_value &&
                 a->shares_cache == b->shares_cache && a->qk_norm == b->qk_norm &&
                 a->rotary_dim == b->rotary_dim && a->no_key_bias == b->no_key_bias &&
                 a->bidirectional == b->bidirectional && a->head_gate == b->head_gate &&
                 a->source_tokens == b->source_tokens;
    bool latent = a->q_lora_rank == b->q_lora_rank && a->kv_lora_rank == b->kv_lora_rank &&
                  a->qk_nope_head_dim == b->qk_nope_head_dim &&
                  a->qk_rope_head_dim == b->qk_rope_head_dim && a->index_heads == b->index_heads &&
                  a->index_head_dim == b->index_head_dim && a->expanded == b->expanded &&
                  a->out_groups == b->out_groups && a->out_lora_rank == b->out_lora_rank &&
                  a->compress == b->compress && a->overlap == b->overlap;
    bool linear = a->linear == b->linear && a->key_heads == b->key_heads &&
                  a->key_dim == b->key_dim && a->value_heads == b->value_heads &&
                  a->value_dim == b->value_dim && a->conv_kernel == b->conv_kernel &&
                  a->conv_channels == b->conv_channels && a->state_elements == b->state_elements &&
                  a->parameters == b->parameters && a->conv_bias == b->conv_bias &&
                  a->step_rank == b->step_rank && a->state_norms == b->state_norms &&
                  a->no_norm == b->no_norm && a->state_dtype == b->state_dtype;
    return heads && latent && linear;
}

static bool mlp_equal(const struct vp_mlp *a, const struct vp_mlp *b) {
    return a->kind == b->kind && a->intermediate == b->intermediate && a->bias == b->bias;
}

static bool moe_equal(const struct vp_moe *a, const struct vp_moe *b) {
    return a->kind == b->kind && a->experts == b->experts && a->top_k == b->top_k &&
           a->intermediate == b->intermediate && a->shared_intermediate == b->shared_intermediate &&
           a->input == b->input && a->zero_experts == b->zero_experts && a->bias == b->bias &&
           a->router_bias == b->router_bias && a->score_bias == b->score_bias &&
           a->shared_switch == b->shared_switch;
}

/* The same kind of layer, whatever the counts. */
static bool block_equal(const struct vp_block *a, const struct vp_block *b) {
    return a->norms == b->norms && a->norm == b->norm &&
           attention_equal(&a->attention, &b->attention) &&
           attention_equal(&a->second, &b->second) && mlp_equal(&a->mlp, &b->mlp) &&
           moe_equal(&a->moe, &b->moe) && memcmp(a->scheme, b->scheme, sizeof a->scheme) == 0;
}

/* n is at most VP_MAX_LAYERS layers of VP_MAX_BLOCKS kinds, and real models have below ten kinds:
 * a plain search. What exceeds the caps is kept as a count that vp_model_validate refuses. */
void vp_model_fold(struct vp_ctx *ctx, struct vp_model *model, const struct vp_block *layers,
                   uint32_t count) {
    uint32_t kept = count < VP_MAX_LAYERS ? count : VP_MAX_LAYERS;
    uint32_t capacity = kept < VP_MAX_BLOCKS ? kept : VP_MAX_BLOCKS;
    struct vp_block *blocks = VP_NEW_ARRAY(ctx->arena, capacity, struct vp_block);
    uint16_t *index = VP_NEW_ARRAY(ctx->arena, kept, uint16_t);
    uint32_t kinds = 0;
    for (uint32_t layer = 0; layer < kept; layer++) {
        uint32_t i = 0;
        while (i < kinds && !block_equal(&blocks[i], &layers[layer]))
            i++;
        if (i == VP_MAX_BLOCKS) {
            kinds = VP_MAX_BLOCKS + 1;
            break;
        }
        if (i == kinds) {
            blocks[kinds] = layers[layer];
            blocks[kinds++].count = 0;
        }
        blocks[i].count++;
        index[layer] = (uint16_t)i;
    }
    model->blocks = blocks;
    model->block_count = kinds;
    model->layers = index;
    model->layer_count = count;
}

static void *duplicate(struct vp_arena *arena, const void *items, size_t count, size_t size) {
    void *copy = vp_arena_array(arena, count, size);
    return count ? memcpy(copy, items, count * size) : copy;
}

struct vp_model *vp_model_copy(struct vp_arena *arena, const struct vp_model *model) {
    struct vp_model *to = duplicate(arena, model, 1, sizeof *model);
    to->blocks = duplicate(arena, model->blocks, model->block_count, sizeof *model->blocks);
    to->layers = duplicate(arena, model->layers, model->layer_count, sizeof *model->layers);
    to->extras = duplicate(arena, model->extras, model->extra_count, sizeof *model->extras);
    for (uint32_t i = 0; i < to->extra_count; i++)
        if (to->extras[i].layer)
            to->extras[i].layer = duplicate(arena, to->extras[i].layer, 1, sizeof(struct vp_block));
    return to;
}

const struct vp_extra *vp_model_mtp(const struct vp_model *model) {
    for (uint32_t i = 0; i < model->extra_count; i++)
        if (model->extras[i].layer && strcmp(model->extras[i].name, "MTP layers") == 0)
            return &model->extras[i];
    return NULL;
}

bool vp_model_has_experts(const struct vp_model *model) {
    for (uint32_t b = 0; b < model->block_count; b++)
        if (model->blocks[b].moe.kind != VP_MLP_NONE)
            return true;
    return false;
}
